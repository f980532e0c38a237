use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::WorkspaceError;

/// The exclusive lock of a workspace, held until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock if it is free.
    pub(super) fn try_lock(path: &Path) -> Result<Option<Self>, WorkspaceError> {
        loop {
            let file = open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                // A status query holds a shared lock for a moment; a writer holds the exclusive lock.
                Err(TryLockError::WouldBlock) if file.try_lock_shared().is_ok() => {
                    drop(file);
                    std::thread::yield_now();
                    continue;
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => {
                    return Err(WorkspaceError::io("lock", path)(error));
                }
            }
            if is_still_there(&file, path)? {
                return Ok(Some(Self { file, path: path.to_owned() }));
            }
        }
    }

    /// Waits for a lock that is never held for long.
    pub(super) fn wait(path: &Path) -> Result<Self, WorkspaceError> {
        let file = open(path)?;
        file.lock().map_err(WorkspaceError::io("lock", path))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Removes the lock file while it is locked.
    pub(super) fn remove(self) -> Result<(), WorkspaceError> {
        fs::remove_file(&self.path).map_err(WorkspaceError::io("remove", &self.path))
    }
}

impl Drop for Lock {
    /// Unlocks explicitly: a child that another thread is just starting holds a copy of the descriptor until it execs, and
    /// closing ours would keep the lock until then.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Updates the time of use of a workspace.
pub(super) fn touch(path: &Path) {
    // Errors are ignored: the time is only informational.
    let _ = File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now()));
}

/// Whether the lock is held exclusively.
pub(super) fn is_locked(path: &Path) -> bool {
    let is_exclusive = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    File::open(path).is_ok_and(is_exclusive)
}

fn open(path: &Path) -> Result<File, WorkspaceError> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).map_err(WorkspaceError::io("open", path))
}

/// Whether the locked file is still the one at this path. Another process can remove it between open and lock; then one
/// process would hold the lock of the removed file, and another that of its successor.
fn is_still_there(file: &File, path: &Path) -> Result<bool, WorkspaceError> {
    let error = || WorkspaceError::io("read the metadata of", path);
    let ours = file.metadata().map_err(error())?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
        Err(gone) if gone.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(other) => Err(error()(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_does_not_keep_anybody_out() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let looking = open(&path).unwrap();
        looking.lock_shared().unwrap();
        assert!(!is_locked(&path));
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| Lock::try_lock(&path).unwrap().is_some());
            drop(looking);
            assert!(taken.join().unwrap(), "a look was taken for a writer");
        });
    }

    #[test]
    fn whoever_else_has_the_descriptor_does_not_have_the_lock() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let lock = Lock::try_lock(&path).unwrap().unwrap();
        let elsewhere = lock.file.try_clone().unwrap();
        drop(lock);
        assert!(!is_locked(&path));
        drop(elsewhere);
    }

    #[test]
    fn one_at_a_time_also_after_the_file_was_removed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        assert!(!is_locked(&path));
        let lock = Lock::try_lock(&path).unwrap().unwrap();
        assert!(is_locked(&path));
        assert!(Lock::try_lock(&path).unwrap().is_none());
        lock.remove().unwrap();
        let stale = open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        stale.lock().unwrap();
        assert!(!is_still_there(&stale, &path).unwrap());
        assert!(Lock::try_lock(&path).unwrap().is_some());
    }
}
