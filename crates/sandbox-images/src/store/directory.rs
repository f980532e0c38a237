use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Digest, ImageError, Reference};

/// The directory of a store, and the paths in it.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    path: Arc<Path>,
}

const BLOBS: &str = "blobs";
const REFERENCES: &str = "references";
const ROOTS: &str = "roots";
const LOCKS: &str = "locks";
const TEMPORARY: &str = "temporary";

impl Directory {
    /// Opens the directory. Creates it and its subdirectories if they do not exist.
    pub(super) fn open(path: &Path) -> Result<Self, ImageError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(path).map_err(ImageError::io("create the directory", path))?;
        // The path may be a link. It is resolved once, so that a later change of the link has no effect.
        let path = path.canonicalize().map_err(ImageError::io("resolve the directory", path))?;
        check_private(&path)?;
        for name in [BLOBS, REFERENCES, ROOTS, LOCKS, TEMPORARY] {
            let path = path.join(name);
            builder.create(&path).map_err(ImageError::io("create the directory", &path))?;
            check_private(&path)?;
        }
        Ok(Self { path: path.into() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a document or a layer.
    pub(crate) fn blob(&self, digest: &Digest) -> PathBuf {
        self.blobs().join(digest.digits())
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.path.join(BLOBS)
    }

    /// The path of the record of a name. The file name is a hash of the name.
    pub(super) fn reference(&self, reference: &Reference) -> PathBuf {
        self.references().join(Digest::of(reference.canonical().as_bytes()).digits())
    }

    pub(super) fn references(&self) -> PathBuf {
        self.path.join(REFERENCES)
    }

    /// The path of an unpacked image.
    pub(super) fn root(&self, manifest: &Digest) -> PathBuf {
        self.roots().join(manifest.digits())
    }

    pub(super) fn roots(&self) -> PathBuf {
        self.path.join(ROOTS)
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.path.join(TEMPORARY)
    }

    pub(super) fn locks(&self) -> PathBuf {
        self.path.join(LOCKS)
    }

    /// The lock of the store. Adding images and looking them up share it; removal holds it exclusively.
    pub(super) fn store_lock(&self) -> PathBuf {
        self.locks().join(STORE_LOCK)
    }

    /// The lock of an unpacked image. Its users share it; removal holds it exclusively.
    pub(super) fn root_lock(&self, manifest: &Digest) -> PathBuf {
        self.locks().join(manifest.digits())
    }
}

/// The file name of the store's lock, which no digest equals.
pub(super) const STORE_LOCK: &str = "store";

/// Checks that only the current user can write to a directory, because its content is trusted.
fn check_private(path: &Path) -> Result<(), ImageError> {
    let found = path.symlink_metadata().map_err(ImageError::io("inspect", path))?;
    let user = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
        return Err(ImageError::NotPrivate(path.to_owned()));
    }
    Ok(())
}

/// Lists the names in a directory, sorted.
pub(super) fn names(path: &Path) -> Result<Vec<String>, ImageError> {
    let failed = || ImageError::io("list", path);
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(failed())? {
        names.extend(entry.map_err(failed())?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Removes a file or a directory tree, if it exists.
pub(super) fn remove(path: &Path) -> Result<(), ImageError> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ImageError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Reads a record; none if it does not exist.
pub(super) fn read_record<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ImageError> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.map_err(ImageError::io("read", path))?,
    };
    let corrupt = |error: serde_json::Error| ImageError::Corrupt {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(corrupt)
}

/// Writes a record atomically. `temporary` is a directory on the same file system.
pub(super) fn write_record(
    path: &Path,
    temporary: &Path,
    record: &impl Serialize,
) -> Result<(), ImageError> {
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(temporary)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    };
    write().map_err(ImageError::io("write", path))
}
