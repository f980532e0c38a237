use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::checkpointer::Checkpointer;
use super::writer::Writer;
use super::{SqliteStore, WriteHalf, migrations};
use crate::StoreError;

/// How long to wait while another process writes, such as one that adds a key.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The length of the write-ahead log, in pages, at which the writer itself checkpoints it.
const WAL_AUTOCHECKPOINT_PAGES: u32 = 16 * 1024;

/// The size, in bytes, to which a checkpoint truncates a larger write-ahead log.
const WAL_SIZE_LIMIT: u32 = 64 * 1024 * 1024;

/// The number of statements kept prepared on each connection: more than there are.
const STATEMENT_CACHE_SIZE: usize = 64;

pub(super) async fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    let database = path.to_owned();
    let opening = tokio::task::spawn_blocking(move || open_blocking(&database));
    let opened = opening.await.map_err(|cause| cannot_open(path, cause))?;
    opened.map_err(|cause| cannot_open(path, cause))
}

fn open_blocking(path: &Path) -> Result<SqliteStore, Box<dyn std::error::Error + Send + Sync>> {
    let _lock = lock(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Allows a sweep to return free pages to the file system. Must be set before the first table is created.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "journal_size_limit", WAL_SIZE_LIMIT)?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_AUTOCHECKPOINT_PAGES)?;
    migrations::run(&mut connection)?;
    let (writer, thread) = Writer::start(connection)?;
    let checkpointer = Checkpointer::start(path.to_owned())?;
    let write_half = WriteHalf { writer: Arc::new(writer), thread, checkpointer };
    Ok(SqliteStore::new(write_half, path.to_owned()))
}

/// Opens a read-only connection.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Opens a connection for checkpoints.
pub(super) fn checkpointer(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    // `NO_MUTEX` is safe because Rust's ownership rules let only one thread use a connection at a time.
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
    Ok(connection)
}

/// Creates the file if it does not exist, and waits until no other process is opening it; others may have it
/// open. SQLite does not wait for its own locks while it switches a new file to write-ahead logging: of two
/// processes that open it at the same time, one would fail.
fn lock(path: &Path) -> io::Result<File> {
    create_directory(path)?;
    // The lock file is never removed: a lock on a removed file excludes nobody.
    let mut name = path.to_owned().into_os_string();
    name.push("-lock");
    let lock = OpenOptions::new().append(true).create(true).mode(0o600).open(name)?;
    lock.lock()?;
    create_file(path)?;
    Ok(lock)
}

fn create_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)
        }
        _ => Ok(()),
    }
}

/// Creates the file before SQLite does, because SQLite would make it readable by everyone. SQLite gives the files
/// beside it the same mode.
fn create_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        // Set by path, without opening the file: closing any descriptor of it would release the POSIX locks that
        // SQLite holds on it elsewhere in this process.
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
