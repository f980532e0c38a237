use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Serialize;

use super::directory::{STORE_LOCK, names, read_record, remove};
use super::lock::Lock;
use super::staging::{ROOT_INFO, RootInfo, blobs_of, remove_leftovers};
use super::{Store, references};
use crate::{Digest, ImageError};

/// How much [`Store::prune`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// The number of documents and layers.
    pub blobs: usize,
    /// The number of unpacked images.
    pub roots: usize,
    /// The number of incomplete images left by killed processes.
    pub leftovers: usize,
    /// The approximate size of all that, in bytes.
    pub bytes: u64,
    /// The number of images without a name that were kept because they are in use.
    pub in_use: usize,
}

impl Store {
    /// Removes images without a name, unless they are in use.
    pub fn prune(&self) -> Result<Pruned, ImageError> {
        let lock = Lock::exclusive_with_timeout(&self.directory.store_lock())?;
        let _lock = lock.ok_or(ImageError::Busy)?;
        let mut pruned =
            Pruned { leftovers: remove_leftovers(&self.directory)?, ..Pruned::default() };
        let mut needed = BTreeSet::new();
        for (_, record) in references::all(&self.directory)? {
            needed.insert(record.manifest);
        }
        self.prune_roots(&mut needed, &mut pruned)?;
        let mut blobs = needed.clone();
        for manifest in &needed {
            blobs.extend(blobs_of(&self.manifest(manifest)?).cloned());
        }
        let directory = self.directory.blobs();
        for name in names(&directory)? {
            if !contains(&blobs, &name) {
                let path = directory.join(name);
                pruned.bytes += size(&path);
                remove(&path)?;
                pruned.blobs += 1;
            }
        }
        Ok(pruned)
    }

    /// Removes unpacked images that are not needed. Adds those in use to `needed`.
    fn prune_roots(
        &self,
        needed: &mut BTreeSet<Digest>,
        pruned: &mut Pruned,
    ) -> Result<(), ImageError> {
        let locks = self.directory.locks();
        for name in names(&self.directory.roots())? {
            if contains(needed, &name) {
                continue;
            }
            // No process can start to use it now: that requires the store's lock, which is held here.
            let Some(_exclusive) = Lock::try_exclusive(&locks.join(&name))? else {
                pruned.in_use += 1;
                needed.extend(format!("sha256:{name}").parse());
                continue;
            };
            let path = self.directory.roots().join(&name);
            let info: Option<RootInfo> = read_record(&path.join(ROOT_INFO)).unwrap_or_default();
            pruned.bytes += info.map_or(0, |info| info.bytes);
            // Renamed first: a crash during removal must not leave an incomplete image under this name.
            let removed = self.directory.temporary().join(&name);
            fs::rename(&path, &removed).map_err(ImageError::io("remove", &path))?;
            remove(&removed)?;
            pruned.roots += 1;
        }
        for name in names(&locks)? {
            if name != STORE_LOCK && !contains(needed, &name) {
                remove(&locks.join(&name))?;
            }
        }
        Ok(())
    }
}

fn contains(digests: &BTreeSet<Digest>, name: &str) -> bool {
    let digest: Option<Digest> = format!("sha256:{name}").parse().ok();
    digest.is_some_and(|digest| digests.contains(&digest))
}

fn size(path: &Path) -> u64 {
    path.symlink_metadata().map_or(0, |found| found.len())
}
