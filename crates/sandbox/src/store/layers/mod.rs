//! Layers: directories that are made once and never change. The caller mounts them read-only.

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

/// The files of a layer, and what is known about them, lie beside each other.
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
    /// What it is found by.
    pub key: Key,
    /// What is known about it; nothing if that cannot be read.
    pub manifest: Option<LayerManifest>,
}

impl LayerStore {
    pub(super) fn open(directory: StoreDirectory) -> Self {
        Self { directory, max_packages: settings::DEFAULT_PACKAGES_SIZE }
    }

    /// How many bytes of packages are kept at most.
    pub fn max_packages(&self) -> ByteSize {
        self.max_packages
    }

    /// Where the files of a layer lie, if it is there. Layers appear whole or not at all.
    pub(crate) fn path(&self, key: &Key) -> Option<PathBuf> {
        let tree = self.place_of(key).join(TREE);
        tree.is_dir().then_some(tree)
    }

    /// Where the files of a layer lie, after `make` has written them if it is not there yet.
    ///
    /// Of several callers with one key, in whatever process, one makes the layer and the others wait
    /// for it. If `make` fails nothing is left, and the next caller tries again.
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
        let site = Site::clear(temporary::layer_path(&self.directory, key))?;
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

    /// How many layers there are, and how large they are together.
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

    /// Removes a layer, whether or not it is there. A sandbox that has it mounted loses its files.
    pub fn remove(&self, key: &Key) -> Result<(), StoreError> {
        let _lock = Lock::wait(&self.directory.lock_of_layer(key))?;
        // It disappears at once and as a whole, and is then taken apart where nobody looks for it.
        let site = Site::clear(temporary::layer_path(&self.directory, key))?;
        let place = self.place_of(key);
        match fs::rename(&place, site.path.join(TREE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(StoreError::io("remove", &place)(error)),
            Ok(()) => site.remove(),
        }
    }

    /// Removes all layers, and says how much that was.
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
    /// How large its files are together, as far as that is known.
    pub fn bytes(&self) -> u64 {
        self.manifest.as_ref().map_or(0, |manifest| manifest.bytes)
    }
}

/// Where a layer is made, which nobody but the holder of its lock touches.
struct Site {
    path: PathBuf,
}

impl Site {
    /// Makes the place anew: somebody who died may have left it half done.
    fn clear(path: PathBuf) -> Result<Self, StoreError> {
        temporary::remove(&path)?;
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(StoreError::io("make the directory", &path))?;
        Ok(Self { path })
    }

    /// Makes the layer visible, once all of it is on the disk.
    fn move_to(self, place: &Path) -> Result<(), StoreError> {
        let failed = StoreError::io("write", &self.path);
        // One call for the whole file system: a layer has thousands of files, and to sync each of
        // them would take longer than to write them.
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

impl Drop for Site {
    fn drop(&mut self) {
        // Nothing is there any more if all went well. Else, if this fails too, the next one to hold
        // the lock tries again.
        let _ = temporary::remove(&self.path);
    }
}
