use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::{NamedTempFile, TempDir};

use super::directory::{Directory, names, remove, write_record};
use super::lock::Lock;
use super::references::{self, Named};
use crate::documents::{ConfigFile, Document, Manifest};
use crate::unpack::{Packed, unpack};
use crate::{Digest, ImageError, Limits, Progress, Reference};

/// Images on their way into the store. Nothing of them is there until [`Staging::publish`]; if that is never called,
/// nothing of them was.
///
/// All of it lies in a temporary directory of its own, on the same file system, so that each piece appears by one
/// rename. The store's lock is shared for as long: nobody removes anything meanwhile.
#[derive(Debug)]
pub(crate) struct Staging<'a> {
    pub(crate) limits: &'a Limits,
    directory: &'a Directory,
    place: TempDir,
    blobs: BTreeMap<Digest, PathBuf>,
    roots: BTreeMap<Digest, PathBuf>,
    needed: BTreeSet<Digest>,
    _lock: Lock,
}

/// A blob that is being written, and hashed on the way.
#[derive(Debug)]
pub(crate) struct BlobWriter {
    file: NamedTempFile,
    hash: Sha256,
    size: u64,
}

/// What is known of an unpacked image, beside its tree.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct About {
    /// Bytes of its layers.
    pub(super) bytes: u64,
    /// Files, directories and links.
    pub(super) entries: u64,
}

/// The names of the two in a root's directory.
pub(super) const TREE: &str = "tree";
pub(super) const ABOUT: &str = "about.json";

impl<'a> Staging<'a> {
    pub(crate) fn begin(directory: &'a Directory, limits: &'a Limits) -> Result<Self, ImageError> {
        let lock = directory.lock_of_store();
        if let Some(_alone) = Lock::alone_if_free(&lock)? {
            // Nobody is adding anything, so what is there was left by somebody who died.
            sweep(directory)?;
        }
        let lock = Lock::shared(&lock)?;
        let temporary = directory.temporary();
        let place = TempDir::new_in(&temporary).map_err(ImageError::io("write to", &temporary))?;
        Ok(Self {
            limits,
            directory,
            place,
            blobs: BTreeMap::new(),
            roots: BTreeMap::new(),
            needed: BTreeSet::new(),
            _lock: lock,
        })
    }

    pub(crate) fn writer(&self) -> Result<BlobWriter, ImageError> {
        let file = NamedTempFile::new_in(self.place.path());
        let file = file.map_err(ImageError::io("write to", self.place.path()))?;
        Ok(BlobWriter { file, hash: Sha256::new(), size: 0 })
    }

    /// Keeps what was written under its own digest.
    pub(crate) fn keep(&mut self, blob: BlobWriter) -> Result<(Digest, u64), ImageError> {
        let digest = Digest::from_hash(blob.hash);
        let path = self.place.path().join(digest.digits());
        let kept = blob.file.as_file().sync_all().and_then(|()| Ok(blob.file.persist(&path)?));
        kept.map_err(ImageError::io("write", &path))?;
        self.blobs.insert(digest.clone(), path);
        Ok((digest, blob.size))
    }

    /// Keeps bytes that are here already.
    pub(crate) fn keep_bytes(&mut self, bytes: &[u8]) -> Result<Digest, ImageError> {
        let mut writer = self.writer()?;
        writer.write_all(bytes).map_err(ImageError::io("write to", self.place.path()))?;
        Ok(self.keep(writer)?.0)
    }

    /// Whether a blob is here or was in the store before.
    #[cfg(feature = "pull")]
    pub(crate) fn has(&self, digest: &Digest) -> bool {
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

    /// A document, if it is no larger than documents are.
    pub(crate) fn document(&self, digest: &Digest, what: &str) -> Result<Vec<u8>, ImageError> {
        let most = self.limits.document_bytes;
        let mut bytes = Vec::new();
        let read = self.open(digest, what)?.take(most + 1).read_to_end(&mut bytes);
        read.map_err(ImageError::io("read", &self.directory.blob(digest)))?;
        if bytes.len() as u64 > most {
            let what = format!("the size of {what} in bytes");
            return Err(ImageError::TooMuch { what, most });
        }
        Ok(bytes)
    }

    /// Unpacks the image of a manifest, all of whose parts are here.
    pub(crate) fn prepare(
        &mut self,
        digest: &Digest,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), ImageError> {
        let bytes = self.document(digest, "its manifest")?;
        let Document::Manifest(manifest) = Document::parse(&bytes, self.limits)? else {
            return Err(ImageError::document("manifest", "it is an index"));
        };
        let config = self.document(&manifest.config.digest, "its configuration")?;
        let config = ConfigFile::parse(&config)?;
        config.check(manifest.layers.len())?;
        self.needed.extend(parts(&manifest).chain([digest]).cloned());
        if self.roots.contains_key(digest) || self.directory.root(digest).exists() {
            return Ok(());
        }
        let mut layers = Vec::new();
        for (layer, content) in manifest.layers.iter().zip(config.contents()) {
            let file = self.open(&layer.digest, &format!("layer {}", layers.len() + 1))?;
            layers.push(Packed { digest: layer.digest.clone(), file, content: content.clone() });
        }
        let root = self.place.path().join(format!("root-{}", digest.digits()));
        let tree = root.join(TREE);
        fs::create_dir_all(&tree).map_err(ImageError::io("make", &tree))?;
        let unpacked = unpack(layers, &tree, self.limits, progress)?;
        make_readable(&tree)?;
        let about = About { bytes: unpacked.bytes, entries: unpacked.entries };
        write_record(&root.join(ABOUT), self.place.path(), &about)?;
        self.roots.insert(digest.clone(), root);
        Ok(())
    }

    /// Puts everything into the store, the names last: what has a name is there whole.
    pub(crate) fn publish(self, images: &[(Reference, Digest)]) -> Result<(), ImageError> {
        sync(self.place.path())?;
        for (digest, path) in &self.blobs {
            if self.needed.contains(digest) {
                let wanted = self.directory.blob(digest);
                fs::rename(path, &wanted).map_err(ImageError::io("write", &wanted))?;
            }
        }
        for (digest, path) in &self.roots {
            let wanted = self.directory.root(digest);
            match fs::rename(path, &wanted) {
                // Somebody else made the same one meanwhile.
                Err(_) if wanted.exists() => {}
                renamed => renamed.map_err(ImageError::io("write", &wanted))?,
            }
        }
        for (reference, manifest) in images {
            let named = Named::now(reference, manifest);
            references::write(self.directory, self.place.path(), reference, &named)?;
        }
        Ok(())
    }
}

impl BlobWriter {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The digest of all that was written so far.
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

/// What a manifest needs beside itself.
pub(super) fn parts(manifest: &Manifest) -> impl Iterator<Item = &Digest> {
    let layers = manifest.layers.iter().map(|layer| &layer.digest);
    layers.chain([&manifest.config.digest])
}

/// Removes what was left behind. Only for who has the store's lock alone.
pub(super) fn sweep(directory: &Directory) -> Result<usize, ImageError> {
    let temporary = directory.temporary();
    let left = names(&temporary)?;
    for name in &left {
        remove(&temporary.join(name))?;
    }
    Ok(left.len())
}

/// Sandboxes of other users see the image as its root.
fn make_readable(tree: &Path) -> Result<(), ImageError> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(tree, mode).map_err(ImageError::io("change", tree))
}

/// Files that were renamed before they were written would be empty after a power failure.
fn sync(path: &Path) -> Result<(), ImageError> {
    let synced = File::open(path).and_then(|file| Ok(rustix::fs::syncfs(&file)?));
    synced.map_err(ImageError::io("write", path))
}
