//! The size of the database, and whether it can be read and written.

use std::ffi::OsString;
use std::fs::{OpenOptions, remove_file};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rusqlite::Connection;
use rustix::fs::{StatVfsMountFlags, statvfs};

use super::open::cannot_open;
use crate::StoreError;

/// A small write may fit into free pages of the database, so the probe writes this many bytes to a file beside it.
const PROBE_BYTES: usize = 64 << 10;

/// With less free space than this the store is degraded. It is far more than can be written between the check and
/// the next write.
const MIN_FREE_BYTES: u64 = 1 << 30;

/// Returns the size of the database without its write-ahead log, in bytes.
pub(super) fn size(connection: &Connection) -> Result<u64, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    )?;
    let bytes: i64 = query.query_row((), |row| row.get(0))?;
    Ok(bytes.unsigned_abs())
}

/// Reads from the database file: a query on a table, since a constant would not touch the file.
pub(super) fn ping(connection: &Connection) -> Result<(), StoreError> {
    connection.prepare_cached("SELECT 1 FROM executions LIMIT 1")?.exists(())?;
    Ok(())
}

/// Writes to the file system and to the database, and leaves nothing behind.
pub(super) fn probe(connection: &Connection, database: &Path) -> Result<(), StoreError> {
    let mut name = OsString::from(database);
    name.push("-probe");
    let name = Path::new(&name);
    let written = write_file(name);
    let removed = remove_file(name);
    written.and(removed).map_err(|error| cannot_open(database, error))?;
    // Its value is zero already; SQLite writes it all the same.
    connection.pragma_update(None, "application_id", 0)?;
    Ok(())
}

fn write_file(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&vec![0; PROBE_BYTES])
}

/// Whether the file system of the database has little free space, or is read-only.
pub(super) fn is_nearly_full(database: &Path) -> bool {
    statvfs(database).map_or(true, |stat| {
        stat.f_flag.contains(StatVfsMountFlags::RDONLY)
            || stat.f_bavail.saturating_mul(stat.f_frsize) < MIN_FREE_BYTES
    })
}
