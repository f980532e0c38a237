//! Removes files in `temporary/` that dead processes left.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::directory::StoreDirectory;
use super::locks::Lock;
use super::{Key, StoreError};

/// Writing a file never takes this long.
const MAX_AGE: Duration = Duration::from_hours(1);

/// Where a layer is being built. The name contains the key: the holder of the key's lock knows that existing contents are
/// abandoned.
pub(super) fn layer_path(directory: &StoreDirectory, key: &Key) -> PathBuf {
    directory.temporary().join(format!("{LAYER}{key}"))
}

const LAYER: &str = "layer-";

/// Removes abandoned files. Errors are ignored: the next call tries again.
pub(super) fn sweep(directory: &StoreDirectory) {
    let listing = fs::read_dir(directory.temporary()).into_iter().flatten();
    for entry in listing.flatten() {
        let age = entry.metadata().and_then(|found| found.modified()).map(|written| {
            // A time in the future means that the clock was set back; treat it as age zero.
            SystemTime::now().duration_since(written).unwrap_or_default()
        });
        if age.is_ok_and(|age| age > MAX_AGE) {
            let _ = remove_abandoned(directory, &entry.path());
        }
    }
}

fn remove_abandoned(directory: &StoreDirectory, path: &Path) -> Result<(), StoreError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let layer = name.strip_prefix(LAYER).and_then(|key| key.parse().ok());
    let Some(key) = layer else {
        return remove(path);
    };
    // Building a layer can take longer than an hour. Its lock shows whether the build still runs.
    match Lock::try_lock(&directory.lock_of_layer(&key))? {
        Some(_lock) => remove(path),
        None => Ok(()),
    }
}

/// Removes a file or a directory tree, if it exists.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::KeyBuilder;
    use std::fs::File;

    #[test]
    fn only_what_is_old_and_not_in_use_goes() {
        let root = tempfile::tempdir().unwrap();
        let directory = StoreDirectory::open(root.path()).unwrap();
        let file = |name| directory.temporary().join(name);
        let layer = |name| layer_path(&directory, &KeyBuilder::new(name).finish());
        let (old, new, dead, alive) = (file("old"), file("new"), layer("dead"), layer("alive"));
        for path in [&old, &new] {
            File::create(path).unwrap();
        }
        for path in [&dead, &alive] {
            fs::create_dir_all(path.join("tree")).unwrap();
        }
        let long_ago = SystemTime::now() - MAX_AGE - Duration::from_secs(1);
        for path in [&old, &dead, &alive] {
            File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        let lock = directory.lock_of_layer(&KeyBuilder::new("alive").finish());
        let _lock = Lock::wait(&lock).unwrap();
        sweep(&directory);
        let left = [&old, &new, &dead, &alive].map(|path| path.exists());
        assert_eq!(left, [false, true, false, true]);
    }
}
