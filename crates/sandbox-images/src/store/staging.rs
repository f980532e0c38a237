use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::{NamedTempFile, TempDir};

use super::directory::{Directory, names, remove, write_record};
use super::lock::Lock;
use super::references::{self, ReferenceRecord};
use crate::documents::{ConfigFile, Document, Manifest};
use crate::unpack::{Layer, unpack};
use crate::{Digest, ImageError, Limits, Progress, Reference};

/// Images being added to the store. They become visible with [`Staging::publish`], and are discarded without it.
///
/// They are in a temporary directory on the same file system, so that each part appears atomically by a rename. The
/// store's lock is shared for as long, so that nothing is removed meanwhile.
#[derive(Debug)]
pub(crate) struct Staging<'a> {
    pub(crate) limits: &'a Limits,
    directory: &'a Directory,
    temporary: TempDir,
    blobs: BTreeMap<Digest, PathBuf>,
    roots: BTreeMap<Digest, PathBuf>,
    referenced: BTreeSet<Digest>,
    _lock: Lock,
}

/// Writes a blob and hashes it.
#[derive(Debug)]
pub(crate) struct BlobWriter {
    file: NamedTempFile,
    hash: Sha256,
    size: u64,
}

/// The size of an unpacked image, stored beside its tree.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct RootInfo {
    /// The uncompressed size of its layers.
    pub(super) bytes: u64,
    /// The number of files, directories and links.
    pub(super) entries: u64,
}

/// The file names in the directory of an unpacked image.
pub(super) const TREE: &str = "tree";
pub(super) const ROOT_INFO: &str = "about.json";

impl<'a> Staging<'a> {
    pub(crate) fn begin(directory: &'a Directory, limits: &'a Limits) -> Result<Self, ImageError> {
        let lock = directory.store_lock();
        if let Some(_exclusive) = Lock::try_exclusive(&lock)? {
            // No other process is adding images, so everything temporary was left by a killed process.
            remove_leftovers(directory)?;
        }
        let lock = Lock::shared(&lock)?;
        let parent = directory.temporary();
        let temporary = TempDir::new_in(&parent).map_err(ImageError::io("write to", &parent))?;
        Ok(Self {
            limits,
            directory,
            temporary,
            blobs: BTreeMap::new(),
            roots: BTreeMap::new(),
            referenced: BTreeSet::new(),
            _lock: lock,
        })
    }

    pub(crate) fn blob_writer(&self) -> Result<BlobWriter, ImageError> {
        let file = NamedTempFile::new_in(self.temporary.path());
        let file = file.map_err(ImageError::io("write to", self.temporary.path()))?;
        Ok(BlobWriter { file, hash: Sha256::new(), size: 0 })
    }

    /// Adds a written blob under its digest.
    pub(crate) fn add(&mut self, blob: BlobWriter) -> Result<(Digest, u64), ImageError> {
        let digest = Digest::from_hash(blob.hash);
        let path = self.temporary.path().join(digest.digits());
        let added = blob.file.as_file().sync_all().and_then(|()| Ok(blob.file.persist(&path)?));
        added.map_err(ImageError::io("write", &path))?;
        self.blobs.insert(digest.clone(), path);
        Ok((digest, blob.size))
    }

    /// Adds a blob with these bytes.
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) -> Result<Digest, ImageError> {
        let mut writer = self.blob_writer()?;
        writer.write_all(bytes).map_err(ImageError::io("write to", self.temporary.path()))?;
        Ok(self.add(writer)?.0)
    }

    /// Whether a blob is staged or in the store.
    #[cfg(feature = "pull")]
    pub(crate) fn contains(&self, digest: &Digest) -> bool {
        self.blobs.contains_key(digest) || self.directory.blob(digest).exists()
    }

    fn open(&self, digest: &Digest, what: &str) -> Result<File, ImageError> {
        let in_store = self.directory.blob(digest);
        let path = self.blobs.get(digest).unwrap_or(&in_store);
        match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(ImageError::Missing { what: format!("{what} ({digest})") })
            }
            file => file.map_err(ImageError::io("open", path)),
        }
    }

    /// Reads a document, within its size limit.
    pub(crate) fn document(&self, digest: &Digest, what: &str) -> Result<Vec<u8>, ImageError> {
        let limit = self.limits.document_bytes;
        let mut bytes = Vec::new();
        let read = self.open(digest, what)?.take(limit + 1).read_to_end(&mut bytes);
        read.map_err(ImageError::io("read", &self.directory.blob(digest)))?;
        if bytes.len() as u64 > limit {
            let what = format!("the size of {what} in bytes");
            return Err(ImageError::LimitExceeded { what, limit });
        }
        Ok(bytes)
    }

    /// Unpacks the image of a manifest, whose blobs are all staged or in the store.
    pub(crate) fn unpack(
        &mut self,
        digest: &Digest,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), ImageError> {
        let bytes = self.document(digest, "the manifest")?;
        let Document::Manifest(manifest) = Document::parse(&bytes, self.limits)? else {
            return Err(ImageError::document("manifest", "it is an index"));
        };
        let config = self.document(&manifest.config.digest, "the configuration")?;
        let config = ConfigFile::parse(&config)?;
        config.check(manifest.layers.len())?;
        self.referenced.extend(blobs_of(&manifest).chain([digest]).cloned());
        if self.roots.contains_key(digest) || self.directory.root(digest).exists() {
            return Ok(());
        }
        let mut layers = Vec::new();
        for (layer, diff_id) in manifest.layers.iter().zip(config.diff_ids()) {
            let file = self.open(&layer.digest, &format!("layer {}", layers.len() + 1))?;
            layers.push(Layer { digest: layer.digest.clone(), file, diff_id: diff_id.clone() });
        }
        let root = self.temporary.path().join(format!("root-{}", digest.digits()));
        let tree = root.join(TREE);
        fs::create_dir_all(&tree).map_err(ImageError::io("create", &tree))?;
        let unpacked = unpack(layers, &tree, self.limits, progress)?;
        make_readable(&tree)?;
        let info = RootInfo { bytes: unpacked.bytes, entries: unpacked.entries };
        write_record(&root.join(ROOT_INFO), self.temporary.path(), &info)?;
        self.roots.insert(digest.clone(), root);
        Ok(())
    }

    /// Moves everything into the store, names last: an image with a name is complete.
    pub(crate) fn publish(self, images: &[(Reference, Digest)]) -> Result<(), ImageError> {
        sync(self.temporary.path())?;
        for (digest, path) in &self.blobs {
            if self.referenced.contains(digest) {
                let target = self.directory.blob(digest);
                fs::rename(path, &target).map_err(ImageError::io("write", &target))?;
            }
        }
        for (digest, path) in &self.roots {
            let target = self.directory.root(digest);
            match fs::rename(path, &target) {
                // Another process added the same image meanwhile.
                Err(_) if target.exists() => {}
                renamed => renamed.map_err(ImageError::io("write", &target))?,
            }
        }
        for (reference, manifest) in images {
            let record = ReferenceRecord::now(reference, manifest);
            references::write(self.directory, self.temporary.path(), reference, &record)?;
        }
        Ok(())
    }
}

impl BlobWriter {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The digest of the bytes written so far.
    #[cfg(feature = "pull")]
    pub(crate) fn digest(&self) -> Digest {
        Digest::from_hash(self.hash.clone())
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns the blobs that a manifest refers to.
pub(super) fn blobs_of(manifest: &Manifest) -> impl Iterator<Item = &Digest> {
    let layers = manifest.layers.iter().map(|layer| &layer.digest);
    layers.chain([&manifest.config.digest])
}

/// Removes incomplete images. The caller holds the store's lock exclusively.
pub(super) fn remove_leftovers(directory: &Directory) -> Result<usize, ImageError> {
    let temporary = directory.temporary();
    let leftovers = names(&temporary)?;
    for name in &leftovers {
        remove(&temporary.join(name))?;
    }
    Ok(leftovers.len())
}

/// Makes the root readable for everyone: sandboxes run as other users.
fn make_readable(tree: &Path) -> Result<(), ImageError> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(tree, mode).map_err(ImageError::io("set the mode of", tree))
}

/// Flushes the file system: files that are renamed before they are on disk would be empty after a power failure.
fn sync(path: &Path) -> Result<(), ImageError> {
    let synced = File::open(path).and_then(|file| Ok(rustix::fs::syncfs(&file)?));
    synced.map_err(ImageError::io("write", path))
}
