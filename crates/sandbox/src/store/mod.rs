//! The store: compiled programs and layers, kept between executions.
//!
//! Everything is in one directory, which belongs to the user and which nobody else can write to:
//!
//! ```text
//! compiled/ab/abcdef…    the result of one compile stage, one file each
//! layers/abcdef…/        an immutable directory (tree) and its metadata (manifest)
//! empty/                 a directory that stays empty, to mount over others
//! locks/                 lock files; they are never removed
//! temporary/             files being written; they become entries by a rename
//! ```
//!
//! A [`Key`] is a hash of everything that a result depends on, so an entry is never out of date. Every entry appears by
//! one rename, so a process that dies leaves nothing half written. Everything can be removed at any time, at the cost of
//! building it again.

mod settings;

mod compiled;
mod layers;

mod key;

mod by_owner;
mod directory;
mod locks;
mod temporary;

mod error;

use std::path::{Path, PathBuf};

use sandbox_core::ByteSize;

pub(crate) use compiled::Compiled;
pub use compiled::CompiledCache;
pub use error::StoreError;
pub use key::{InvalidKey, Key};
pub use layers::{Layer, LayerManifest, LayerStore};

pub(crate) use key::KeyBuilder;
pub(crate) use layers::{LayerUse, LayerWriter};

use directory::StoreDirectory;
use settings::Settings;

/// The store of a user.
#[derive(Debug)]
pub struct Store {
    directory: StoreDirectory,
    compiled: CompiledCache,
    layers: LayerStore,
}

/// Number and size of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of programs or layers.
    pub entries: u64,
    /// Total bytes in their files.
    pub bytes: u64,
}

impl Store {
    /// Default maximum size of all compiled programs.
    pub const DEFAULT_BOUND: ByteSize = settings::DEFAULT_CACHE_SIZE;

    /// Opens the store that the environment variables name. Creates it if needed.
    ///
    /// Its directory is `$SANDBOX_RUN_STORE`, or else in `sandbox-run/store` below the user's cache
    /// directory. `$SANDBOX_RUN_CACHE_SIZE` bounds the compiled programs; 0 turns their cache off.
    /// `$SANDBOX_RUN_PACKAGES_SIZE` bounds the installed packages.
    pub fn open() -> Result<Self, StoreError> {
        let settings = Settings::from_environment()?;
        let mut store = Self::open_in(&settings.directory, settings.max_compiled)?;
        store.layers.max_packages = settings.max_packages;
        Ok(store)
    }

    /// Opens a store in a certain directory, with a maximum size for compiled programs.
    pub fn open_in(directory: &Path, max_compiled: ByteSize) -> Result<Self, StoreError> {
        let directory = StoreDirectory::open(directory)?;
        Ok(Self {
            compiled: CompiledCache::open(directory.clone(), max_compiled),
            layers: LayerStore::open(directory.clone()),
            directory,
        })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// An empty directory, to mount over others.
    pub(crate) fn empty_directory(&self) -> Result<PathBuf, StoreError> {
        self.directory.empty()
    }

    /// Results of compile stages.
    pub fn compiled(&self) -> &CompiledCache {
        &self.compiled
    }

    /// Layers.
    pub fn layers(&self) -> &LayerStore {
        &self.layers
    }
}

impl Usage {
    fn add(&mut self, bytes: u64) {
        self.entries += 1;
        self.bytes += bytes;
    }
}
