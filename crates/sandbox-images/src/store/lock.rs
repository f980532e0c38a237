use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::ImageError;

/// A file locked by `flock(2)`, until this is dropped or the process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

/// Longer than a lookup holds the lock.
const EXCLUSIVE_TIMEOUT: Duration = Duration::from_secs(2);
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

impl Lock {
    /// Waits for a shared lock.
    pub(super) fn shared(path: &Path) -> Result<Self, ImageError> {
        let file = open(path)?;
        loop {
            match file.lock_shared() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ImageError::io("lock", path)(error)),
                Ok(()) => return Ok(Self { file }),
            }
        }
    }

    /// Takes an exclusive lock if the file is not locked.
    pub(super) fn try_exclusive(path: &Path) -> Result<Option<Self>, ImageError> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(ImageError::io("lock", path)(error)),
        }
    }

    /// Waits a short time for an exclusive lock.
    pub(super) fn exclusive_with_timeout(path: &Path) -> Result<Option<Self>, ImageError> {
        let deadline = Instant::now() + EXCLUSIVE_TIMEOUT;
        loop {
            let lock = Self::try_exclusive(path)?;
            if lock.is_some() || Instant::now() > deadline {
                return Ok(lock);
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
    }
}

impl Drop for Lock {
    /// Unlocks explicitly: a child that another thread has just forked shares the open file until it calls exec, so
    /// closing this descriptor alone would leave the file locked until then.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

fn open(path: &Path) -> Result<File, ImageError> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).map_err(ImageError::io("open", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_shared_or_exclusive() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let (first, second) = (Lock::shared(&path).unwrap(), Lock::shared(&path).unwrap());
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        let _elsewhere = first.file.try_clone().unwrap();
        drop((first, second));
        let _exclusive = Lock::try_exclusive(&path).unwrap().unwrap();
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
    }
}
