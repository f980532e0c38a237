use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::WorkspaceError;

/// The right to replace a workspace, until it is dropped or the process ends in whatever way.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes it if nobody else has it.
    pub(super) fn try_lock(path: &Path) -> Result<Option<Self>, WorkspaceError> {
        loop {
            let file = open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                // Somebody who only looks shares the lock for a moment; somebody who writes does not.
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

    /// Waits for a lock that nobody has for long.
    pub(super) fn wait(path: &Path) -> Result<Self, WorkspaceError> {
        let file = open(path)?;
        file.lock().map_err(WorkspaceError::io("lock", path))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Removes the file with the lock on it.
    pub(super) fn remove(self) -> Result<(), WorkspaceError> {
        fs::remove_file(&self.path).map_err(WorkspaceError::io("remove", &self.path))
    }
}

impl Drop for Lock {
    /// In so many words: a process that another thread is just starting has the descriptor too until it is another
    /// program, and closing ours would leave it locked that long.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Remembers that the workspace was used now.
pub(super) fn touch(path: &Path) {
    // For people to look at; nothing hangs on it.
    let _ = File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now()));
}

/// Whether somebody has the lock.
pub(super) fn is_locked(path: &Path) -> bool {
    let is_exclusive = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    File::open(path).is_ok_and(is_exclusive)
}

fn open(path: &Path) -> Result<File, WorkspaceError> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).map_err(WorkspaceError::io("open", path))
}

/// Somebody may have removed the file between our opening and our locking it. Two who lock a name, one of
/// them a file that is gone, would both believe that they are alone.
fn is_still_there(file: &File, path: &Path) -> Result<bool, WorkspaceError> {
    let error = || WorkspaceError::io("look at", path);
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
