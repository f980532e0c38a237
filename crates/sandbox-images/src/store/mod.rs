//! What is kept: documents and layers by digest, unpacked images by the digest of their manifest, and names.
//!
//! ```text
//! blobs/abcdef…         a manifest, a configuration or a layer, one file for each
//! roots/abcdef…/        an unpacked image (tree) and what is known of it (about.json); nobody writes to it
//! references/123456…    what a name means; the name of the file is a hash of the name
//! locks/                files that processes lock
//! temporary/            what is being made; nothing here counts until it is renamed
//! ```
//!
//! Those who add or look something up share the store's lock; whoever removes has it alone. A crash leaves what is
//! in `temporary`, which goes with the next addition, or blobs and roots without a name, which go with
//! [`Store::prune`].

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
use references::Named;
use staging::{ABOUT, About, TREE};

pub use prune::Pruned;
#[cfg(feature = "pull")]
pub(crate) use staging::BlobWriter;
pub(crate) use staging::Staging;

/// Images in a directory that belongs to us and that nobody else can write to.
#[derive(Clone, Debug)]
pub struct Store {
    directory: Directory,
    limits: Limits,
}

/// An image that is here and stays while this value lives.
#[derive(Clone, Debug)]
pub struct Image {
    /// What it was asked for as.
    pub reference: Reference,
    /// The digest of its manifest.
    pub digest: Digest,
    /// Its files, to be shown to sandboxes read-only and never written to.
    ///
    /// They are a stranger's: a link in them leads wherever the stranger liked. Use it as a root, and look
    /// nothing up in it from outside.
    pub root: PathBuf,
    /// How it wants to be used.
    pub config: ImageConfig,
    /// Keeps it from being removed.
    _in_use: Arc<Lock>,
}

/// What is known of an image in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Its name, as short as it can be written.
    pub reference: String,
    /// The digest of its manifest.
    pub digest: Digest,
    /// How many layers it was made of.
    pub layers: usize,
    /// How many files, directories and links its layers have.
    pub entries: u64,
    /// How many bytes its layers have, decompressed.
    pub bytes: u64,
    /// When it was pulled or imported, in seconds since 1970.
    pub added_at: u64,
}

impl Store {
    /// Opens a store, and makes it if it is not there.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        Ok(Self { directory: Directory::open(path)?, limits: Limits::default() })
    }

    /// Opens the store that the environment names: `$SANDBOX_RUN_IMAGES`, or else `sandbox-run/images` below
    /// `$XDG_DATA_HOME`, or else for root `/var/lib/sandbox-run/images` and for others
    /// `~/.local/share/sandbox-run/images`.
    pub fn of_user() -> Result<Self, ImageError> {
        Self::open(&settings::directory()?)
    }

    /// The same with other limits for what is pulled and imported.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Finds an image that was pulled or imported, and holds on to it.
    pub fn resolve(&self, reference: &Reference) -> Result<Image, ImageError> {
        let _lock = Lock::shared(&self.directory.lock_of_store())?;
        let named = references::find(&self.directory, reference)?;
        let in_use = Lock::shared(&self.directory.lock_of_root(&named.manifest))?;
        let manifest = self.manifest(&named.manifest)?;
        let config = ConfigFile::parse(&self.document(&manifest.config.digest)?)?;
        let root = self.directory.root(&named.manifest).join(TREE);
        if !root.is_dir() {
            let reason = "it is not there any more".to_owned();
            return Err(ImageError::Damaged { path: root, reason });
        }
        Ok(Image {
            reference: reference.clone(),
            digest: named.manifest,
            root,
            config: config.into_config(),
            _in_use: Arc::new(in_use),
        })
    }

    /// All images, in the order of their names.
    pub fn list(&self) -> Result<Vec<Kept>, ImageError> {
        let _lock = Lock::shared(&self.directory.lock_of_store())?;
        let all = references::all(&self.directory)?;
        all.iter().map(|(reference, named)| self.kept(reference, named)).collect()
    }

    /// What is known of one.
    pub fn find(&self, reference: &Reference) -> Result<Kept, ImageError> {
        let _lock = Lock::shared(&self.directory.lock_of_store())?;
        self.kept(reference, &references::find(&self.directory, reference)?)
    }

    /// Forgets a name. What no other name needs goes with the next [`Store::prune`].
    pub fn remove(&self, reference: &Reference) -> Result<(), ImageError> {
        let _lock = Lock::shared(&self.directory.lock_of_store())?;
        references::find(&self.directory, reference)?;
        remove(&self.directory.reference(reference))
    }

    pub(crate) fn stage(&self) -> Result<Staging<'_>, ImageError> {
        Staging::begin(&self.directory, &self.limits)
    }

    fn kept(&self, reference: &Reference, named: &Named) -> Result<Kept, ImageError> {
        let path = self.directory.root(&named.manifest).join(ABOUT);
        let about: Option<About> = read_record(&path)?;
        let reason = "it is not there any more".to_owned();
        let about = about.ok_or(ImageError::Damaged { path, reason })?;
        Ok(Kept {
            reference: reference.to_string(),
            digest: named.manifest.clone(),
            layers: self.manifest(&named.manifest)?.layers.len(),
            entries: about.entries,
            bytes: about.bytes,
            added_at: named.added_at,
        })
    }

    fn manifest(&self, digest: &Digest) -> Result<Manifest, ImageError> {
        let damaged =
            |reason: String| ImageError::Damaged { path: self.directory.blob(digest), reason };
        // It passed when it was added, perhaps with other limits.
        let limits = Limits { layers: usize::MAX, blob_bytes: u64::MAX, ..self.limits.clone() };
        match Document::parse(&self.document(digest)?, &limits) {
            Ok(Document::Manifest(manifest)) => Ok(manifest),
            Ok(Document::Index(_)) => Err(damaged("it is an index".to_owned())),
            Err(error) => Err(damaged(error.to_string())),
        }
    }

    fn document(&self, digest: &Digest) -> Result<Vec<u8>, ImageError> {
        let path = self.directory.blob(digest);
        let bytes = fs::read(&path).map_err(ImageError::io("read", &path))?;
        if Digest::of(&bytes) != *digest {
            let reason = "it does not have the digest that it is called by".to_owned();
            return Err(ImageError::Damaged { path, reason });
        }
        Ok(bytes)
    }
}
