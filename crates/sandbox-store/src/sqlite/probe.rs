//! Whether there is room to write.

use std::ffi::OsString;
use std::fs::{OpenOptions, remove_file};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rusqlite::Connection;
use rustix::fs::{StatVfsMountFlags, statvfs};

use super::open::cannot_open;
use crate::StoreError;

/// A small write can fit into room that the database has already, so this much is written beside it.
const PROBE_SIZE: usize = 64 << 10;

/// With less room than this, writes are in doubt. It is far more than can be written between the question and
/// the next write.
const LITTLE_ROOM: u64 = 1 << 30;

/// Writes to the file system and to the database, and leaves nothing behind.
pub(super) fn write(connection: &Connection, database: &Path) -> Result<(), StoreError> {
    let mut name = OsString::from(database);
    name.push("-probe");
    let name = Path::new(&name);
    let written = write_file(name);
    let removed = remove_file(name);
    written.and(removed).map_err(|error| cannot_open(database, error))?;
    // It is zero already, and written all the same.
    connection.pragma_update(None, "application_id", 0)?;
    Ok(())
}

fn write_file(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&vec![0; PROBE_SIZE])
}

/// Whether there is little room on the file system of the database, or it cannot be written at all.
pub(super) fn is_nearly_full(database: &Path) -> bool {
    statvfs(database).map_or(true, |stat| {
        stat.f_flag.contains(StatVfsMountFlags::RDONLY)
            || stat.f_bavail.saturating_mul(stat.f_frsize) < LITTLE_ROOM
    })
}
