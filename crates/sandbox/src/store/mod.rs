//! What is kept between executions: compiled programs, and layers that were made once.
//!
//! Everything lies below one directory that belongs to the user and that nobody else can write:
//!
//! ```text
//! compiled/ab/abcdef…    what came of one compile stage, one file for each
//! layers/abcdef…/        an immutable directory (tree) and what is known about it (manifest)
//! empty/                 a directory that stays empty, to cover others with
//! locks/                 files that processes lock; they stay
//! temporary/             what is being written; nothing here counts until it is renamed
//! ```
//!
//! A [`Key`] is a hash of everything that a result depends on, so an entry is never out of date: it is
//! found, or it is not. Everything appears by one rename, so that a process that dies leaves nothing
//! half done, and everything can be removed at any time, at the cost of making it again.

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

/// The store of this user.
#[derive(Debug)]
pub struct Store {
    directory: StoreDirectory,
    compiled: CompiledCache,
    layers: LayerStore,
}

/// How much there is of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many programs or layers.
    pub entries: u64,
    /// How many bytes in their files.
    pub bytes: u64,
}

impl Store {
    /// How much room compiled programs have unless something else is said.
    pub const DEFAULT_BOUND: ByteSize = settings::DEFAULT_CACHE_SIZE;

    /// Opens the store that the environment names, and makes it if it is not there.
    ///
    /// It lies in `$SANDBOX_RUN_STORE`, or else in `sandbox-run/store` below the user's cache
    /// directory. `$SANDBOX_RUN_CACHE_SIZE` bounds the compiled programs; 0 turns their cache off.
    /// `$SANDBOX_RUN_PACKAGES_SIZE` bounds the installed packages.
    pub fn open() -> Result<Self, StoreError> {
        let settings = Settings::from_environment()?;
        let mut store = Self::open_in(&settings.directory, settings.max_compiled)?;
        store.layers.max_packages = settings.max_packages;
        Ok(store)
    }

    /// Opens a store in a certain directory, with a certain bound for compiled programs.
    pub fn open_in(directory: &Path, max_compiled: ByteSize) -> Result<Self, StoreError> {
        let directory = StoreDirectory::open(directory)?;
        Ok(Self {
            compiled: CompiledCache::open(directory.clone(), max_compiled),
            layers: LayerStore::open(directory.clone()),
            directory,
        })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A directory with nothing in it, to cover others with.
    pub(crate) fn empty_directory(&self) -> Result<PathBuf, StoreError> {
        self.directory.empty()
    }

    /// What came of compile stages.
    pub fn compiled(&self) -> &CompiledCache {
        &self.compiled
    }

    /// Directories that were made once.
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
