//! One server for each data directory.
//!
//! Two servers on one database would both take up what waits in it and run every execution twice. Commands
//! such as `sandboxd keys create` take no lock: they only add to the database, beside a running server.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::create_directory;
use crate::config::Config;

/// The lock file of a data directory. It is never removed: a lock on a removed file keeps nobody out.
const FILE_NAME: &str = "sandboxd.lock";

/// The lock file of a database is named after it.
const SUFFIX: &str = ".server-lock";

/// Longer than any process id.
const MAX_PID_LENGTH: u64 = 16;

/// Exclusive locks on the data directory and on the database. The kernel releases them when
/// the process ends, however it ends; no other process inherits them.
pub(super) struct DataLock([File; 2]);

impl DataLock {
    /// Acquires the locks, or says at once who holds them.
    pub(super) fn acquire(config: &Config) -> Result<Self> {
        let directory = &config.data_dir;
        create_directory(directory)?;
        let directory_lock =
            lock(&directory.join(FILE_NAME), "data directory", directory, "--data-dir")?;
        // Another data directory may name the same database.
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

/// Where the database really lies: another path to the same file must lead to the same lock.
fn resolve(database: &Path) -> Result<PathBuf> {
    if let Ok(path) = database.canonicalize() {
        return Ok(path);
    }
    let parent = database.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    create_directory(parent)?;
    let parent = parent.canonicalize();
    let parent = parent.with_context(|| format!("cannot resolve {}", database.display()))?;
    Ok(parent.join(database.file_name().unwrap_or_default()))
}

/// Locks this file for the sake of something else, which another setting can replace.
fn lock(path: &Path, kind: &str, guarded: &Path, setting: &str) -> Result<File> {
    let cannot_lock = || format!("cannot lock the {kind} {}", guarded.display());
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(path).with_context(cannot_lock)?;
    match file.try_lock() {
        Ok(()) => {
            // It only makes the message of a second server better: a full disk is no reason to stop.
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

/// The process that wrote its id when it acquired the lock.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(MAX_PID_LENGTH).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
