//! Layers: immutable directories. The caller mounts them read-only.

mod evict;
mod manifest;
mod writer;

#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sandbox_core::ByteSize;

use super::directory::StoreDirectory;
use super::locks::Lock;
use super::{Key, StoreError, Usage, settings, temporary};

pub(crate) use evict::LayerUse;
pub use manifest::LayerManifest;
pub(crate) use writer::LayerWriter;

/// Names of the files and the manifest in the directory of a layer.
const TREE: &str = "tree";
const MANIFEST: &str = "manifest.toml";

/// Immutable directories by the key of everything that went into them.
#[derive(Debug)]
pub struct LayerStore {
    directory: StoreDirectory,
    pub(super) max_packages: ByteSize,
}

/// One layer of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its key.
    pub key: Key,
    /// Its manifest; `None` if unreadable.
    pub manifest: Option<LayerManifest>,
}

impl LayerStore {
    pub(super) fn open(directory: StoreDirectory) -> Self {
        Self { directory, max_packages: settings::DEFAULT_PACKAGES_SIZE }
    }

    /// Maximum size of all installed packages.
    pub fn max_packages(&self) -> ByteSize {
        self.max_packages
    }

    /// The directory with the files of a layer, if the layer exists. Layers appear atomically.
    pub(crate) fn path(&self, key: &Key) -> Option<PathBuf> {
        let tree = self.place_of(key).join(TREE);
        tree.is_dir().then_some(tree)
    }

    /// The directory with the files of a layer. If the layer is missing, `make` writes it first.
    ///
    /// Of several callers with one key, in any process, one builds the layer and the others wait. If `make` fails, nothing
    /// is left, and the next caller tries again.
    pub(crate) fn build<E: From<StoreError>>(
        &self,
        key: &Key,
        about: &str,
        make: impl FnOnce(&LayerWriter) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        if let Some(tree) = self.path(key) {
            return Ok(tree);
        }
        let _lock = Lock::wait(&self.directory.lock_of_layer(key))?;
        if let Some(tree) = self.path(key) {
            return Ok(tree);
        }
        temporary::sweep(&self.directory);
        let site = BuildDirectory::clear(temporary::layer_path(&self.directory, key))?;
        let writer = LayerWriter::begin(site.path.join(TREE))?;
        make(&writer)?;
        let manifest = writer.finish(about)?;
        manifest.write(&site.path.join(MANIFEST))?;
        site.move_to(&self.place_of(key))?;
        Ok(self.place_of(key).join(TREE))
    }

    /// All layers, by key.
    pub fn list(&self) -> Result<Vec<Layer>, StoreError> {
        let directory = self.directory.layers();
        let mut layers = Vec::new();
        for entry in fs::read_dir(&directory).map_err(StoreError::io("list", &directory))? {
            let entry = entry.map_err(StoreError::io("list", &directory))?;
            if let Some(key) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                let manifest = LayerManifest::read(&entry.path().join(MANIFEST)).ok();
                layers.push(Layer { key, manifest });
            }
        }
        layers.sort_by_key(|layer| layer.key);
        Ok(layers)
    }

    /// Number and total size of the layers.
    pub fn usage(&self) -> Result<Usage, StoreError> {
        let mut usage = Usage::default();
        for layer in self.list()? {
            usage.add(layer.bytes());
        }
        Ok(usage)
    }

    /// Compares the files of a layer with its manifest.
    pub fn verify(&self, key: &Key) -> Result<(), StoreError> {
        let place = self.place_of(key);
        LayerManifest::read(&place.join(MANIFEST))?.compare(&place.join(TREE))
    }

    /// Removes a layer, if it exists. A sandbox that has it mounted loses its files.
    pub fn remove(&self, key: &Key) -> Result<(), StoreError> {
        let _lock = Lock::wait(&self.directory.lock_of_layer(key))?;
        // Rename first, so that the layer disappears atomically; then remove the files.
        let site = BuildDirectory::clear(temporary::layer_path(&self.directory, key))?;
        let place = self.place_of(key);
        match fs::rename(&place, site.path.join(TREE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(StoreError::io("remove", &place)(error)),
            Ok(()) => site.remove(),
        }
    }

    /// Removes all layers, and returns their number and size.
    pub fn clear(&self) -> Result<Usage, StoreError> {
        temporary::sweep(&self.directory);
        let mut freed = Usage::default();
        for layer in self.list()? {
            self.remove(&layer.key)?;
            freed.add(layer.bytes());
        }
        Ok(freed)
    }

    fn place_of(&self, key: &Key) -> PathBuf {
        self.directory.layers().join(key.to_string())
    }
}

impl Layer {
    /// Total size of its files, if known; otherwise 0.
    pub fn bytes(&self) -> u64 {
        self.manifest.as_ref().map_or(0, |manifest| manifest.bytes)
    }
}

/// The directory in which a layer is being built. Only the holder of its lock uses it.
struct BuildDirectory {
    path: PathBuf,
}

impl BuildDirectory {
    /// Creates the directory anew: a dead process can have left a partial one.
    fn clear(path: PathBuf) -> Result<Self, StoreError> {
        temporary::remove(&path)?;
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(StoreError::io("make the directory", &path))?;
        Ok(Self { path })
    }

    /// Moves the layer to its final path after all of it is on disk.
    fn move_to(self, place: &Path) -> Result<(), StoreError> {
        let failed = StoreError::io("write", &self.path);
        // Sync the whole file system: a layer has thousands of files, and syncing each of them would take longer than
        // writing them.
        File::open(&self.path).and_then(|site| Ok(rustix::fs::syncfs(site)?)).map_err(failed)?;
        fs::rename(&self.path, place).map_err(StoreError::io("rename a layer to", place))?;
        let layers = place.parent().expect("a layer lies in a directory");
        let synced = File::open(layers).and_then(|layers| layers.sync_all());
        synced.map_err(StoreError::io("write", layers))
    }

    fn remove(self) -> Result<(), StoreError> {
        temporary::remove(&self.path)
    }
}

impl Drop for BuildDirectory {
    fn drop(&mut self) {
        // After success nothing is left to remove. If this fails, the next holder of the lock tries again.
        let _ = temporary::remove(&self.path);
    }
}
