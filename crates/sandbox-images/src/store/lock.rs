use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::ImageError;

/// A file that is locked until this is dropped, or the process ends in whatever way. The kernel calls it
/// `flock`.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

/// Longer than anybody holds a lock who only looks something up.
const A_MOMENT: Duration = Duration::from_secs(2);
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

impl Lock {
    /// Waits until nobody has it alone.
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

    /// Takes it if nobody else has it.
    pub(super) fn alone_if_free(path: &Path) -> Result<Option<Self>, ImageError> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(ImageError::io("lock", path)(error)),
        }
    }

    /// Takes it unless others have it for longer than a moment.
    pub(super) fn alone_soon(path: &Path) -> Result<Option<Self>, ImageError> {
        let deadline = Instant::now() + A_MOMENT;
        loop {
            let lock = Self::alone_if_free(path)?;
            if lock.is_some() || Instant::now() > deadline {
                return Ok(lock);
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
    }
}

impl Drop for Lock {
    /// In so many words: a process that another thread is just starting has the descriptor too until it is another
    /// program, and closing ours would leave it locked that long.
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
    fn many_share_it_or_one_has_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lock");
        let (first, second) = (Lock::shared(&path).unwrap(), Lock::shared(&path).unwrap());
        assert!(Lock::alone_if_free(&path).unwrap().is_none());
        let _elsewhere = first.file.try_clone().unwrap();
        drop((first, second));
        let _alone = Lock::alone_if_free(&path).unwrap().unwrap();
        assert!(Lock::alone_if_free(&path).unwrap().is_none());
    }
}
