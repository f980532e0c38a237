//! Host directories that several processes share: the first one creates the directory, and the last
//! one removes it.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

/// Maximum number of attempts; another process removes the directory between two steps at most a
/// few times in a row.
const MAX_ATTEMPTS: usize = 20;

/// Creates a subdirectory of this process in a shared directory.
pub(crate) fn enter(place: &Path, name: &str) -> io::Result<PathBuf> {
    let own = place.join(name);
    again_if_gone(|| {
        open_directory(place)?;
        make_directory(&own)
    })?;
    Ok(own)
}

/// Removes the subdirectory, and the shared directory if it is empty. What cannot be removed is
/// removed by a later start.
pub(crate) fn leave(own: &Path) {
    let _ = fs::remove_dir_all(own);
    if let Some(place) = own.parent() {
        let _ = fs::remove_dir(place);
    }
}

/// Retries a step while its directory does not exist: another process may remove the empty
/// directory between two steps.
pub(crate) fn again_if_gone<T>(step: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let is_gone = |result: &io::Result<T>| {
        result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let mut tries = std::iter::repeat_with(&step).take(MAX_ATTEMPTS);
    tries.find(|result| !is_gone(result)).unwrap_or_else(step)
}

/// Creates a directory of this user, unless it exists.
pub(crate) fn open_directory(path: &Path) -> io::Result<()> {
    match make_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::symlink_metadata(path)?;
            if metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw() {
                return Ok(());
            }
            Err(io::Error::other(format!("{} is not a directory of this user", path.display())))
        }
        result => result,
    }
}

/// Other users may traverse it, like a runtime that runs as nobody, but not list it. Independent of
/// the umask.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o711))
}

/// Writes a new file. Independent of the umask.
pub(crate) fn write(path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(contents)?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_entering_and_leaving_do_not_interfere() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("place");
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let own = enter(&place, name).unwrap();
                        write(&own.join("file"), b"x", 0o600).unwrap();
                        leave(&own);
                    }
                });
            }
        });
        assert!(!place.exists(), "the last one leaves nothing");
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("place");
        std::os::unix::fs::symlink(directory.path(), &place).unwrap();
        let error = enter(&place, "own").unwrap_err();
        assert!(error.to_string().contains("is not a directory of this user"), "{error}");
    }
}
