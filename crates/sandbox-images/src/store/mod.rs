//! The store: documents and layers by digest, unpacked images by the digest of their manifest, and names.
//!
//! ```text
//! blobs/abcdef…         a manifest, a configuration or a layer, one file each
//! roots/abcdef…/        an unpacked image (tree) and its size (about.json); never written to
//! references/123456…    the image of a name; the file name is a hash of the name
//! locks/                lock files
//! temporary/            images being added; renamed to their final paths when they are complete
//! ```
//!
//! Adding images and looking them up share the store's lock; removal holds it exclusively. After a crash, the next
//! addition removes what is left in `temporary`, and [`Store::prune`] removes blobs and roots without a name.

mod directory;
mod lock;
mod prune;
mod references;
mod settings;
mod staging;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::documents::{ConfigFile, Document, Manifest};
use crate::{Digest, ImageConfig, ImageError, Limits, Reference};

use directory::{Directory, read_record, remove};
use lock::Lock;
use references::ReferenceRecord;
use staging::{ROOT_INFO, RootInfo, TREE};

pub use prune::Pruned;
#[cfg(feature = "pull")]
pub(crate) use staging::BlobWriter;
pub(crate) use staging::Staging;

/// Images in a directory that only the current user can write to.
#[derive(Clone, Debug)]
pub struct Store {
    directory: Directory,
    limits: Limits,
}

/// An image in the store. It is not removed while this value exists.
#[derive(Clone, Debug)]
pub struct Image {
    /// The name by which it was resolved.
    pub reference: Reference,
    /// The digest of its manifest.
    pub digest: Digest,
    /// The directory of its files. Mount it read-only and never write to it.
    ///
    /// The files are untrusted: their links can lead anywhere. Use the directory as a root, and do not look up paths
    /// in it from outside.
    pub root: PathBuf,
    /// Its configuration.
    pub config: ImageConfig,
    /// Prevents its removal.
    _in_use: Arc<Lock>,
}

/// A description of an image in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageInfo {
    /// Its name, in the short form.
    pub reference: String,
    /// The digest of its manifest.
    pub digest: Digest,
    /// The number of layers.
    pub layers: usize,
    /// The number of files, directories and links in its layers.
    pub entries: u64,
    /// The uncompressed size of its layers, in bytes.
    pub bytes: u64,
    /// When it was pulled or imported, in seconds since 1970.
    pub added_at: u64,
}

impl Store {
    /// Opens a store. Creates it if it does not exist.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        Ok(Self { directory: Directory::open(path)?, limits: Limits::default() })
    }

    /// Opens the default store: `$SANDBOX_RUN_IMAGES`, or else `sandbox-run/images` below
    /// `$XDG_DATA_HOME`, or else for root `/var/lib/sandbox-run/images` and for others
    /// `~/.local/share/sandbox-run/images`.
    pub fn of_user() -> Result<Self, ImageError> {
        Self::open(&settings::default_directory()?)
    }

    /// Sets the limits for pulls and imports.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The directory of the store.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Finds an image and prevents its removal while the returned value exists.
    pub fn resolve(&self, reference: &Reference) -> Result<Image, ImageError> {
        let _lock = Lock::shared(&self.directory.store_lock())?;
        let record = references::find(&self.directory, reference)?;
        let in_use = Lock::shared(&self.directory.root_lock(&record.manifest))?;
        let manifest = self.manifest(&record.manifest)?;
        let config = ConfigFile::parse(&self.document(&manifest.config.digest)?)?;
        let root = self.directory.root(&record.manifest).join(TREE);
        if !root.is_dir() {
            let reason = "it is missing".to_owned();
            return Err(ImageError::Corrupt { path: root, reason });
        }
        Ok(Image {
            reference: reference.clone(),
            digest: record.manifest,
            root,
            config: config.into_config(),
            _in_use: Arc::new(in_use),
        })
    }

    /// Lists all images, ordered by name.
    pub fn list(&self) -> Result<Vec<ImageInfo>, ImageError> {
        let _lock = Lock::shared(&self.directory.store_lock())?;
        let all = references::all(&self.directory)?;
        all.iter().map(|(reference, record)| self.info(reference, record)).collect()
    }

    /// Describes one image.
    pub fn find(&self, reference: &Reference) -> Result<ImageInfo, ImageError> {
        let _lock = Lock::shared(&self.directory.store_lock())?;
        self.info(reference, &references::find(&self.directory, reference)?)
    }

    /// Removes a name. The next [`Store::prune`] removes the image, unless it has another name.
    pub fn remove(&self, reference: &Reference) -> Result<(), ImageError> {
        let _lock = Lock::shared(&self.directory.store_lock())?;
        references::find(&self.directory, reference)?;
        remove(&self.directory.reference(reference))
    }

    pub(crate) fn stage(&self) -> Result<Staging<'_>, ImageError> {
        Staging::begin(&self.directory, &self.limits)
    }

    fn info(
        &self,
        reference: &Reference,
        record: &ReferenceRecord,
    ) -> Result<ImageInfo, ImageError> {
        let path = self.directory.root(&record.manifest).join(ROOT_INFO);
        let root: Option<RootInfo> = read_record(&path)?;
        let reason = "it is missing".to_owned();
        let root = root.ok_or(ImageError::Corrupt { path, reason })?;
        Ok(ImageInfo {
            reference: reference.to_string(),
            digest: record.manifest.clone(),
            layers: self.manifest(&record.manifest)?.layers.len(),
            entries: root.entries,
            bytes: root.bytes,
            added_at: record.added_at,
        })
    }

    fn manifest(&self, digest: &Digest) -> Result<Manifest, ImageError> {
        let corrupt =
            |reason: String| ImageError::Corrupt { path: self.directory.blob(digest), reason };
        // It was checked when it was added, perhaps with other limits.
        let limits = Limits { layers: usize::MAX, blob_bytes: u64::MAX, ..self.limits.clone() };
        match Document::parse(&self.document(digest)?, &limits) {
            Ok(Document::Manifest(manifest)) => Ok(manifest),
            Ok(Document::Index(_)) => Err(corrupt("it is an index".to_owned())),
            Err(error) => Err(corrupt(error.to_string())),
        }
    }

    fn document(&self, digest: &Digest) -> Result<Vec<u8>, ImageError> {
        let path = self.directory.blob(digest);
        let bytes = fs::read(&path).map_err(ImageError::io("read", &path))?;
        if Digest::of(&bytes) != *digest {
            let reason = "its content does not match its digest".to_owned();
            return Err(ImageError::Corrupt { path, reason });
        }
        Ok(bytes)
    }
}
