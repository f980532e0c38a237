use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::checkpoints::Checkpoints;
use super::writer::Writer;
use super::{Open, SqliteStore, migrations};
use crate::StoreError;

/// How long to wait for another process that writes, such as one that makes a key.
const PATIENCE: Duration = Duration::from_secs(10);

/// A log that grew beyond this under load is worked into the file by the writer itself, in pages.
const LONG_LOG: u32 = 16 * 1024;

/// A log that grew beyond this is cut back then, in bytes.
const LONGEST_LOG: u32 = 64 * 1024 * 1024;

/// Statements that are kept prepared, on each connection: more than we have.
const STATEMENTS: usize = 64;

pub(super) async fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    let wanted = path.to_owned();
    let opening = tokio::task::spawn_blocking(move || open_here(&wanted));
    let opened = opening.await.map_err(|cause| cannot_open(path, cause))?;
    opened.map_err(|cause| cannot_open(path, cause))
}

fn open_here(path: &Path) -> Result<SqliteStore, Box<dyn std::error::Error + Send + Sync>> {
    let _alone = alone(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // So that a sweep can give room back to the system. It must be said before the first table.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "journal_size_limit", LONGEST_LOG)?;
    connection.pragma_update(None, "wal_autocheckpoint", LONG_LOG)?;
    migrations::run(&mut connection)?;
    let (writer, thread) = Writer::start(connection)?;
    let checkpoints = Checkpoints::start(path.to_owned())?;
    let open = Open { writer: Arc::new(writer), thread, checkpoints };
    Ok(SqliteStore::new(open, path.to_owned()))
}

/// A connection that cannot write.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// A connection that works the log into the file.
pub(super) fn checkpointer(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    // Each connection is used by one thread at a time, which Rust sees to.
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Makes the file if there is none, and waits until nobody else is opening it; others may have it
/// open. SQLite does not wait for its own locks while a new file is given its write-ahead log: of
/// two processes that open it at once, one would fail.
fn alone(path: &Path) -> io::Result<File> {
    make_directory(path)?;
    // A file of its own, never removed: a lock on a removed file keeps nobody out.
    let mut name = path.to_owned().into_os_string();
    name.push("-lock");
    let lock = OpenOptions::new().append(true).create(true).mode(0o600).open(name)?;
    lock.lock()?;
    make_file(path)?;
    Ok(lock)
}

fn make_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)
        }
        _ => Ok(()),
    }
}

/// Makes the file before SQLite does, which would let everybody read it; SQLite gives the files that
/// it puts beside it the same mode.
fn make_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        // By its path, never by opening it: closing any descriptor of the file would drop the locks
        // that SQLite holds on it elsewhere in this process.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::set_permissions(path, Permissions::from_mode(0o600))
        }
        Err(error) => Err(error),
    }
}

pub(super) fn cannot_open(
    path: &Path,
    cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    StoreError::Open { path: path.display().to_string(), cause: cause.into() }
}
