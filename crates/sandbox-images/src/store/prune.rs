use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Serialize;

use super::directory::{STORE, names, read_record, remove};
use super::lock::Lock;
use super::staging::{ABOUT, About, parts, sweep};
use super::{Store, references};
use crate::{Digest, ImageError};

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// Documents and layers.
    pub blobs: usize,
    /// Unpacked images.
    pub roots: usize,
    /// What processes had left that died.
    pub leftovers: usize,
    /// Bytes of all that, about.
    pub bytes: u64,
    /// Unpacked images that no name needs and that are being used. They stay.
    pub in_use: usize,
}

impl Store {
    /// Removes what no name needs. An image that somebody uses stays.
    pub fn prune(&self) -> Result<Pruned, ImageError> {
        let lock = Lock::alone_soon(&self.directory.lock_of_store())?;
        let _lock = lock.ok_or(ImageError::Busy)?;
        let mut pruned = Pruned { leftovers: sweep(&self.directory)?, ..Pruned::default() };
        let mut needed = BTreeSet::new();
        for (_, named) in references::all(&self.directory)? {
            needed.insert(named.manifest);
        }
        self.prune_roots(&mut needed, &mut pruned)?;
        let mut blobs = needed.clone();
        for manifest in &needed {
            blobs.extend(parts(&self.manifest(manifest)?).cloned());
        }
        let place = self.directory.blobs();
        for name in names(&place)? {
            if !is_among(&blobs, &name) {
                let path = place.join(name);
                pruned.bytes += size(&path);
                remove(&path)?;
                pruned.blobs += 1;
            }
        }
        Ok(pruned)
    }

    /// What is used and has no name becomes needed.
    fn prune_roots(
        &self,
        needed: &mut BTreeSet<Digest>,
        pruned: &mut Pruned,
    ) -> Result<(), ImageError> {
        let locks = self.directory.locks();
        for name in names(&self.directory.roots())? {
            if is_among(needed, &name) {
                continue;
            }
            // Nobody can begin to use it: that takes the store's lock, which we have.
            let Some(_alone) = Lock::alone_if_free(&locks.join(&name))? else {
                pruned.in_use += 1;
                needed.extend(format!("sha256:{name}").parse());
                continue;
            };
            let path = self.directory.roots().join(&name);
            let about: Option<About> = read_record(&path.join(ABOUT)).unwrap_or_default();
            pruned.bytes += about.map_or(0, |about| about.bytes);
            // Half of it must never be found under this name, if we die now.
            let removed = self.directory.temporary().join(&name);
            fs::rename(&path, &removed).map_err(ImageError::io("remove", &path))?;
            remove(&removed)?;
            pruned.roots += 1;
        }
        for name in names(&locks)? {
            if name != STORE && !is_among(needed, &name) {
                remove(&locks.join(&name))?;
            }
        }
        Ok(())
    }
}

fn is_among(digests: &BTreeSet<Digest>, name: &str) -> bool {
    let digest: Option<Digest> = format!("sha256:{name}").parse().ok();
    digest.is_some_and(|digest| digests.contains(&digest))
}

fn size(path: &Path) -> u64 {
    path.symlink_metadata().map_or(0, |found| found.len())
}
