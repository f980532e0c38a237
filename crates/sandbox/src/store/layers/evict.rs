//! Which layers of packages are removed when they are too many or too old.
//!
//! Whoever uses such a layer holds a shared lock on a file of its own. The file's time says when the layer was used
//! last, and its text for whom. Layers without such a file belong to toolchains: they are few, and stay.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, SystemTime};

use super::super::by_owner::{ByOwner, Evictable};
use super::super::locks::Lock;
use super::super::{Key, StoreError, Usage};
use super::LayerStore;

/// Packages that were not used for this long are removed.
const MAX_UNUSED: Duration = Duration::from_hours(30 * 24);

/// Protects a layer of packages from eviction, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct LayerUse {
    _lock: Lock,
}

/// A layer that can be evicted.
struct Candidate {
    key: Key,
    owner: String,
    used: SystemTime,
    bytes: u64,
}

impl Evictable for Candidate {
    fn owner(&self) -> String {
        self.owner.clone()
    }

    fn used(&self) -> SystemTime {
        self.used
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl LayerStore {
    /// Marks a layer of packages as used by an owner, whether or not the layer exists yet.
    pub(crate) fn hold(&self, key: &Key, owner: Option<&str>) -> Result<LayerUse, StoreError> {
        let path = self.directory.lock_of_layer_use(key);
        let lock = Lock::share(&path)?;
        // The owner is part of the key, so concurrent users write the same text.
        let noted = lock.file().write_all_at(owner.unwrap_or_default().as_bytes(), 0);
        let noted = noted.and_then(|()| lock.file().set_modified(SystemTime::now()));
        noted.map_err(StoreError::io("write", &path))?;
        Ok(LayerUse { _lock: lock })
    }

    /// Number and total size of the layers with packages.
    pub fn packages(&self) -> Result<Usage, StoreError> {
        let mut usage = Usage::default();
        for candidate in self.candidates()? {
            usage.add(candidate.bytes);
        }
        Ok(usage)
    }

    /// Evicts packages that were not used for a long time, and then more until the rest fits. Skips packages in use.
    pub(crate) fn evict_packages(&self) -> Result<Usage, StoreError> {
        let (now, mut freed) = (SystemTime::now(), Usage::default());
        let is_old = |candidate: &Candidate| {
            now.duration_since(candidate.used).is_ok_and(|unused| unused >= MAX_UNUSED)
        };
        let (old, rest): (Vec<_>, Vec<_>) = self.candidates()?.into_iter().partition(is_old);
        let mut kept = ByOwner::new(rest);
        let mut total = kept.bytes();
        for candidate in old {
            if self.remove_if_unused(&candidate.key)? {
                freed.add(candidate.bytes);
            } else {
                total += candidate.bytes;
            }
        }
        while total > self.max_packages.as_u64()
            && let Some(candidate) = kept.pop()
        {
            if self.remove_if_unused(&candidate.key)? {
                freed.add(candidate.bytes);
                total -= candidate.bytes;
            }
        }
        Ok(freed)
    }

    fn remove_if_unused(&self, key: &Key) -> Result<bool, StoreError> {
        // A new user waits for the lock, and then builds the layer again.
        let path = self.directory.lock_of_layer_use(key);
        let Some(_lock) = Lock::try_lock(&path)? else { return Ok(false) };
        self.remove(key)?;
        Ok(true)
    }

    /// All layers of packages.
    fn candidates(&self) -> Result<Vec<Candidate>, StoreError> {
        let mut candidates = Vec::new();
        for layer in self.list()? {
            // A layer without this file belongs to a toolchain.
            let Ok(mut file) = fs::File::open(self.directory.lock_of_layer_use(&layer.key)) else {
                continue;
            };
            let mut owner = String::new();
            let read = file.read_to_string(&mut owner).and_then(|_| file.metadata()?.modified());
            let (used, bytes) = (read.unwrap_or(SystemTime::UNIX_EPOCH), layer.bytes());
            candidates.push(Candidate { key: layer.key, owner, used, bytes });
        }
        Ok(candidates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{KeyBuilder, Store};
    use sandbox_core::ByteSize;
    use tempfile::TempDir;

    const LAYER: u64 = 1000;

    fn store(most: u64) -> (TempDir, Store) {
        let root = tempfile::tempdir().unwrap();
        let mut store = Store::open_in(root.path(), ByteSize::mib(1)).unwrap();
        store.layers.max_packages = ByteSize::bytes(most);
        (root, store)
    }

    fn key(name: &str) -> Key {
        KeyBuilder::new("test").part("name", name).finish()
    }

    fn build(store: &Store, name: &str) {
        let build = store.layers().build(&key(name), name, |writer| {
            writer.file(&"file".parse().unwrap(), &[0; 1000], false)
        });
        build.unwrap();
    }

    /// A layer of packages that was last used this many seconds ago.
    fn packages(store: &Store, owner: Option<&str>, name: &str, ago: u64) {
        let _in_use = store.layers().hold(&key(name), owner).unwrap();
        build(store, name);
        set_used(store, name, SystemTime::now() - Duration::from_secs(ago));
    }

    fn set_used(store: &Store, name: &str, at: SystemTime) {
        let path = store.directory.lock_of_layer_use(&key(name));
        fs::File::open(path).unwrap().set_modified(at).unwrap();
    }

    fn is_there(store: &Store, name: &str) -> bool {
        store.layers().path(&key(name)).is_some()
    }

    #[test]
    fn the_least_recently_used_layer_of_the_largest_owner_is_evicted() {
        let (_root, store) = store(4 * LAYER);
        build(&store, "toolchain");
        packages(&store, Some("quiet"), "quiet", 900);
        for (name, ago) in [("a", 500), ("b", 400), ("c", 300), ("d", 200), ("e", 100)] {
            packages(&store, Some("greedy"), name, ago);
        }
        assert_eq!(store.layers().packages().unwrap().bytes, 6 * LAYER);
        let freed = store.layers().evict_packages().unwrap();
        assert_eq!(freed, Usage { entries: 2, bytes: 2 * LAYER });
        for name in ["toolchain", "quiet", "c", "d", "e"] {
            assert!(is_there(&store, name), "{name}");
        }
        assert_eq!(store.layers().evict_packages().unwrap(), Usage::default());
    }

    #[test]
    fn unused_packages_expire_and_packages_in_use_stay() {
        let (_root, store) = store(10 * LAYER);
        let month = 31 * 24 * 3600;
        packages(&store, None, "old", month);
        packages(&store, None, "used", month);
        packages(&store, None, "new", 5);
        let in_use = store.layers().hold(&key("used"), None).unwrap();
        set_used(&store, "used", SystemTime::UNIX_EPOCH);
        assert_eq!(store.layers().evict_packages().unwrap().entries, 1);
        assert!(!is_there(&store, "old") && is_there(&store, "used") && is_there(&store, "new"));
        drop(in_use);
        assert_eq!(store.layers().evict_packages().unwrap().entries, 1);
        assert!(!is_there(&store, "used"));
        // It can be made again.
        packages(&store, None, "used", 0);
        assert!(is_there(&store, "used"));
    }
}
