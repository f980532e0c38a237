//! The lock on the data directory: only one server can use it.
//!
//! Two servers with the same database would both recover the queued executions and run each twice. Commands such as
//! `sandboxd keys create` take no lock: they can use the database next to a running server.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::create_directory;
use crate::config::Config;

/// The lock file of a data directory. It is never removed: a lock on a removed file excludes no other process.
const FILE_NAME: &str = "sandboxd.lock";

/// The suffix of a database's lock file.
const SUFFIX: &str = ".server-lock";

/// Longer than any process id.
const MAX_PID_LEN: u64 = 16;

/// Exclusive locks on the data directory and on the database. The kernel releases them when
/// the process ends, however it ends; no other process inherits them.
pub(super) struct DataLock([File; 2]);

impl DataLock {
    /// Acquires the locks. Fails at once if another process holds one, and names the process.
    pub(super) fn acquire(config: &Config) -> Result<Self> {
        let directory = &config.data_dir;
        create_directory(directory)?;
        let directory_lock =
            lock(&directory.join(FILE_NAME), "data directory", directory, "--data-dir")?;
        // A server with another data directory may use the same database.
        let database = resolve(&config.database)?;
        let mut name = OsString::from(&database);
        name.push(SUFFIX);
        let database_lock = lock(Path::new(&name), "database", &database, "--database")?;
        Ok(Self([directory_lock, database_lock]))
    }
}

impl Drop for DataLock {
    fn drop(&mut self) {
        for file in &self.0 {
            // Closing the file releases it too.
            let _ = file.unlock();
        }
    }
}

/// The canonical path of the database: different paths to one file must use the same lock.
fn resolve(database: &Path) -> Result<PathBuf> {
    if let Ok(path) = database.canonicalize() {
        return Ok(path);
    }
    let parent = database.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    create_directory(parent)?;
    let parent = parent.canonicalize();
    let parent = parent.with_context(|| format!("failed to resolve {}", database.display()))?;
    Ok(parent.join(database.file_name().unwrap_or_default()))
}

/// Locks the file `path` in order to guard `guarded`, which `setting` configures.
fn lock(path: &Path, kind: &str, guarded: &Path, setting: &str) -> Result<File> {
    let cannot_lock = || format!("failed to lock the {kind} {}", guarded.display());
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(path).with_context(cannot_lock)?;
    match file.try_lock() {
        Ok(()) => {
            // The pid is only for the error message of a second server, so a full disk is no error.
            let _ = write_pid(&mut file);
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let holder = holder(&mut file).map(|pid| format!(" (pid {pid})")).unwrap_or_default();
            bail!(
                "the {kind} {} is in use by another sandboxd{holder}: stop it, or choose another one \
                 with {setting}",
                guarded.display()
            )
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(cannot_lock),
    }
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}

/// The pid of the process that holds the lock.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(MAX_PID_LEN).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
