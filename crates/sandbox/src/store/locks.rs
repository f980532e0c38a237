use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use super::StoreError;

/// A file lock, held until it is dropped or the process ends.
///
/// The file is never removed: otherwise one process could lock the removed file and another the new one, and both would
/// hold "the" lock.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Waits for the exclusive lock.
    pub(super) fn wait(path: &Path) -> Result<Self, StoreError> {
        Self::acquire(path, File::lock)
    }

    /// Waits for a shared lock.
    pub(super) fn share(path: &Path) -> Result<Self, StoreError> {
        Self::acquire(path, File::lock_shared)
    }

    fn acquire(path: &Path, lock: fn(&File) -> io::Result<()>) -> Result<Self, StoreError> {
        let file = open(path)?;
        loop {
            match lock(&file) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(StoreError::io("lock", path)(error)),
                Ok(()) => return Ok(Self(file)),
            }
        }
    }

    /// Takes the exclusive lock if it is free.
    pub(super) fn try_lock(path: &Path) -> Result<Option<Self>, StoreError> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StoreError::io("lock", path)(error)),
        }
    }

    /// The locked file, which can hold data.
    pub(super) fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for Lock {
    /// Unlocks explicitly: a child that another thread is just starting holds a copy of the descriptor until it execs, and
    /// closing ours would keep the lock until then.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).map_err(StoreError::io("open", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_holds_an_exclusive_lock() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let lock = Lock::wait(&path).unwrap();
        assert!(Lock::try_lock(&path).unwrap().is_none());
        let _elsewhere = lock.file().try_clone().unwrap();
        drop(lock);
        assert!(Lock::try_lock(&path).unwrap().is_some());
    }
}
