use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use super::StoreError;

/// A file that is locked, until it is dropped or the process ends in whatever way.
///
/// The file itself stays: two processes that lock a name, one of them a file that has since been
/// removed, would both believe that they are alone.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Waits until nobody else has it.
    pub(super) fn wait(path: &Path) -> Result<Self, StoreError> {
        let file = open(path)?;
        loop {
            match file.lock() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(StoreError::io("lock", path)(error)),
                Ok(()) => return Ok(Self(file)),
            }
        }
    }

    /// Waits until nobody has it alone. Any number may have it so.
    pub(super) fn share(path: &Path) -> Result<Self, StoreError> {
        let file = open(path)?;
        loop {
            match file.lock_shared() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(StoreError::io("lock", path)(error)),
                Ok(()) => return Ok(Self(file)),
            }
        }
    }

    /// Takes it if nobody else has it.
    pub(super) fn try_lock(path: &Path) -> Result<Option<Self>, StoreError> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StoreError::io("lock", path)(error)),
        }
    }

    /// The file, for what is to be remembered under the lock.
    pub(super) fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for Lock {
    /// In so many words: a process that another thread is just starting has the descriptor too until it is another
    /// program, and closing ours would leave it locked that long.
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
    fn one_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let lock = Lock::wait(&path).unwrap();
        assert!(Lock::try_lock(&path).unwrap().is_none());
        let _elsewhere = lock.file().try_clone().unwrap();
        drop(lock);
        assert!(Lock::try_lock(&path).unwrap().is_some());
    }
}
