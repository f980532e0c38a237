use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Digest, ImageError, Reference};

/// The directory of a store, and what lies where in it.
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
    /// Opens the directory, and makes what is not there.
    pub(super) fn open(path: &Path) -> Result<Self, ImageError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(path).map_err(ImageError::io("make the directory", path))?;
        // The user may have put the store elsewhere by a link. From here on it is not followed again.
        let path = path.canonicalize().map_err(ImageError::io("find the directory", path))?;
        check(&path)?;
        for name in [BLOBS, REFERENCES, ROOTS, LOCKS, TEMPORARY] {
            let path = path.join(name);
            builder.create(&path).map_err(ImageError::io("make the directory", &path))?;
            check(&path)?;
        }
        Ok(Self { path: path.into() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where a document or a layer lies, under its digest.
    pub(crate) fn blob(&self, digest: &Digest) -> PathBuf {
        self.blobs().join(digest.digits())
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.path.join(BLOBS)
    }

    /// Where it lies what a name means. A hash of the name is a file's name whatever the name is.
    pub(super) fn reference(&self, reference: &Reference) -> PathBuf {
        self.references().join(Digest::of(reference.canonical().as_bytes()).digits())
    }

    pub(super) fn references(&self) -> PathBuf {
        self.path.join(REFERENCES)
    }

    /// Where the unpacked image lies, under the digest of its manifest.
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

    /// Shared by those who add or look something up; whoever removes has it alone.
    pub(super) fn lock_of_store(&self) -> PathBuf {
        self.locks().join(STORE)
    }

    /// Shared by those who use the unpacked image; whoever makes or removes it has it alone.
    pub(super) fn lock_of_root(&self, manifest: &Digest) -> PathBuf {
        self.locks().join(manifest.digits())
    }
}

/// No digest looks like this.
pub(super) const STORE: &str = "store";

/// What is in it is trusted, so nobody else may be able to put anything there.
fn check(path: &Path) -> Result<(), ImageError> {
    let found = path.symlink_metadata().map_err(ImageError::io("look at", path))?;
    let user = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
        return Err(ImageError::NotPrivate(path.to_owned()));
    }
    Ok(())
}

/// The names in one of our directories, sorted.
pub(super) fn names(path: &Path) -> Result<Vec<String>, ImageError> {
    let failed = || ImageError::io("list", path);
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(failed())? {
        names.extend(entry.map_err(failed())?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Removes a file, or a directory with all that is in it, whether or not it is there.
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

/// Reads something that was written here; nothing if it is not there.
pub(super) fn read_record<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ImageError> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.map_err(ImageError::io("read", path))?,
    };
    let damaged = |error: serde_json::Error| ImageError::Damaged {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}

/// Writes something that is there whole or not at all. `temporary` is on the same file system.
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
