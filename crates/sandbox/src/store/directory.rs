use std::fs::{DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Key, StoreError};

/// The directory of a store. It belongs to this user and nobody else can write to it, so its contents are trusted like the
/// user's own programs.
#[derive(Clone, Debug)]
pub(super) struct StoreDirectory {
    path: Arc<Path>,
}

const COMPILED: &str = "compiled";
const LAYERS: &str = "layers";
const EMPTY: &str = "empty";
const LOCKS: &str = "locks";
const TEMPORARY: &str = "temporary";

impl StoreDirectory {
    /// Opens the directory. Creates it and its subdirectories if needed.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(StoreError::io("create the directory", path))?;
        // The path of the store can be a link. Resolve it once, here.
        let path = path.canonicalize().map_err(StoreError::io("resolve the directory", path))?;
        let found = path.metadata().map_err(StoreError::io("read the directory", &path))?;
        check(&path, &found)?;
        for name in [COMPILED, LAYERS, LOCKS, TEMPORARY] {
            make_inside(&path.join(name))?;
        }
        Ok(Self { path: path.into() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn compiled(&self) -> PathBuf {
        self.path.join(COMPILED)
    }

    pub(super) fn layers(&self) -> PathBuf {
        self.path.join(LAYERS)
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.path.join(TEMPORARY)
    }

    /// The directory that stays empty. Unlike the others it is mounted into sandboxes, where every user may read it.
    pub(super) fn empty(&self) -> Result<PathBuf, StoreError> {
        let path = self.path.join(EMPTY);
        make_inside(&path)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o755))
            .map_err(StoreError::io("set the mode of the directory", &path))?;
        Ok(path)
    }

    /// The file to lock before the total of compiled programs changes.
    pub(super) fn lock_of_compiled(&self) -> PathBuf {
        self.path.join(LOCKS).join(COMPILED)
    }

    /// The file to lock before a layer is made or removed.
    pub(super) fn lock_of_layer(&self, key: &Key) -> PathBuf {
        self.path.join(LOCKS).join(format!("layer-{key}"))
    }

    /// The file that users of a layer of packages lock.
    pub(super) fn lock_of_layer_use(&self, key: &Key) -> PathBuf {
        self.path.join(LOCKS).join(format!("use-{key}"))
    }
}

/// Creates a subdirectory, and checks that it is a directory and not a link.
fn make_inside(path: &Path) -> Result<(), StoreError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(StoreError::io("create the directory", path)(error));
        }
        _ => {}
    }
    let found = path.symlink_metadata();
    check(path, &found.map_err(StoreError::io("read the directory", path))?)
}

fn check(path: &Path, found: &Metadata) -> Result<(), StoreError> {
    if !found.is_dir() {
        return Err(StoreError::damaged(path, "it is not a directory"));
    }
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        return Err(StoreError::Foreign { path: path.to_owned(), owner: found.uid(), user });
    }
    // Access control lists show in the group bits, so this check covers them too.
    if found.mode() & 0o022 != 0 {
        return Err(StoreError::WritableByOthers {
            path: path.to_owned(),
            mode: found.mode() & 0o7777,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn it_is_made_for_us_alone_and_found_again() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/store");
        for _ in 0..2 {
            let directory = StoreDirectory::open(&path).unwrap();
            for path in [directory.path(), &directory.compiled(), &directory.layers()] {
                assert_eq!(mode(path), 0o700, "{}", path.display());
            }
        }
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        for mode in [0o770, 0o702, 0o1777] {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().join("store");
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = StoreDirectory::open(&path).unwrap_err();
            assert!(matches!(error, StoreError::WritableByOthers { .. }), "{mode:o}: {error}");
            assert!(!path.join(COMPILED).exists(), "something was put into it");
        }
    }

    #[test]
    fn a_directory_inside_that_others_can_write_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let compiled = StoreDirectory::open(root.path()).unwrap().compiled();
        fs::set_permissions(&compiled, Permissions::from_mode(0o777)).unwrap();
        let error = StoreDirectory::open(root.path()).unwrap_err();
        assert!(matches!(error, StoreError::WritableByOthers { .. }), "{error}");
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused() {
        let root = tempfile::tempdir().unwrap();
        // As root, give a directory to another user; otherwise, use one that belongs to root.
        let (path, owner) = if rustix::process::geteuid().is_root() {
            chown(root.path(), Some(4242), None).unwrap();
            (root.path(), 4242)
        } else {
            (Path::new("/usr"), 0)
        };
        let error = StoreDirectory::open(path).unwrap_err();
        assert!(
            matches!(error, StoreError::Foreign { owner: found, .. } if found == owner),
            "{error}"
        );
    }

    #[test]
    fn the_store_may_be_a_link_but_nothing_inside_it() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("real");
        fs::create_dir(&real).unwrap();
        let link = root.path().join("link");
        symlink(&real, &link).unwrap();
        let directory = StoreDirectory::open(&link).unwrap();
        assert_eq!(directory.path(), real.canonicalize().unwrap());
        fs::remove_dir(directory.compiled()).unwrap();
        symlink(root.path(), directory.compiled()).unwrap();
        let error = StoreDirectory::open(&link).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }
}
