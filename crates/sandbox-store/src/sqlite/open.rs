use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};

use super::SqliteStore;
use crate::StoreError;

/// Reading is quick: more connections than this would wait for the processor, not for the disk.
const READERS: u32 = 4;

/// How long to wait for another process that writes, such as one that makes a key.
const PATIENCE: Duration = Duration::from_secs(10);

/// A log that grew beyond this under load is cut back at a checkpoint.
const LONGEST_LOG: &str = "67108864";

/// All steps from an empty file to today's tables. One that was released is never edited: databases
/// remember a hash of each that they took, and refuse to open if it changed. Each is a transaction.
fn migrations() -> Migrator {
    Migrator::with_migrations(vec![
        migration(
            1,
            "executions, keys and audit",
            include_str!("migrations/0001_executions_keys_audit.sql"),
        ),
        migration(2, "callbacks", include_str!("migrations/0002_callbacks.sql")),
    ])
}

fn migration(number: i64, about: &'static str, statements: &'static str) -> Migration {
    Migration::new(number, about.into(), MigrationType::Simple, statements.into_sql_str(), false)
}

pub(super) async fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    let _alone = alone(path).await.map_err(|cause| cannot_open(path, cause))?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true)
        .busy_timeout(PATIENCE)
        .synchronous(SqliteSynchronous::Normal);
    let writing = options
        .clone()
        // So that a sweep can give room back to the system. It must be said before the first table.
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("journal_size_limit", LONGEST_LOG);
    let writer = pool(1).connect_with(writing).await.map_err(|cause| cannot_open(path, cause))?;
    migrations().run(&writer).await.map_err(|cause| cannot_open(path, cause))?;
    let readers = pool(READERS).connect_lazy_with(options.read_only(true));
    Ok(SqliteStore { writer, readers })
}

/// Connections to a file do not go stale: they are kept, and not asked before each use.
fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}

/// Makes the file if there is none, and waits until nobody else is opening it; others may have it
/// open. SQLite does not wait for its own locks while a new file is given its write-ahead log: of
/// two processes that open it at once, one would fail.
async fn alone(path: &Path) -> io::Result<File> {
    let path = path.to_owned();
    let locked = tokio::task::spawn_blocking(move || {
        make_directory(&path)?;
        // A file of its own, never removed: a lock on a removed file keeps nobody out.
        let mut name = path.clone().into_os_string();
        name.push("-lock");
        let lock = OpenOptions::new().append(true).create(true).mode(0o600).open(name)?;
        lock.lock()?;
        make_file(&path)?;
        Ok(lock)
    });
    locked.await?
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

fn cannot_open(
    path: &Path,
    cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    StoreError::Open { path: path.display().to_string(), cause: cause.into() }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// If this fails, put the change into a migration of its own.
    #[test]
    fn released_migrations_are_as_they_were() {
        let hashes: Vec<String> = migrations()
            .iter()
            .map(|migration| {
                migration.checksum.iter().take(16).fold(String::new(), |mut hex, byte| {
                    write!(hex, "{byte:02x}").expect("writing to a string succeeds");
                    hex
                })
            })
            .collect();
        assert_eq!(
            hashes,
            ["02ee2ee630c96c3a2939af1a3afb2da8", "50e674ab050158ace3a0a7349cab38e4"]
        );
    }
}
