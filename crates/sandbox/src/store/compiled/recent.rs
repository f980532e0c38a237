//! Recently read entries, kept in memory: a judge runs one program many times in a row, and reading and verifying megabytes
//! takes longer than most programs run.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Compiled;
use crate::store::Key;

/// Maximum total size in memory.
const MAX_BYTES: usize = 64 << 20;
/// An entry is read again after this time, which also updates its time of use on disk.
const REREAD_INTERVAL: Duration = Duration::from_mins(1);

/// Most recently used first.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    key: Key,
    read: Instant,
    stamp: Stamp,
    compiled: Arc<Compiled>,
}

/// What changes when a file is written to, replaced, or used by another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            length: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Recent {
    /// Returns an entry whose file is unchanged.
    pub(super) fn get(&self, key: &Key, path: &Path) -> Option<Arc<Compiled>> {
        let mut entries = self.lock();
        let place = entries.iter().position(|entry| entry.key == *key)?;
        let entry = entries.remove(place)?;
        let stamp = Stamp::of(&std::fs::metadata(path).ok()?);
        if entry.stamp != stamp || entry.read.elapsed() >= REREAD_INTERVAL {
            return None;
        }
        let compiled = Arc::clone(&entry.compiled);
        entries.push_front(entry);
        Some(compiled)
    }

    /// Adds an entry, and drops the least recently used ones.
    pub(super) fn add(&self, key: &Key, stamp: Stamp, compiled: &Arc<Compiled>) {
        let mut entries = self.lock();
        entries.retain(|entry| entry.key != *key);
        let compiled = Arc::clone(compiled);
        entries.push_front(Entry { key: *key, read: Instant::now(), stamp, compiled });
        let mut bytes = 0;
        entries.retain(|entry| {
            bytes += entry.compiled.size();
            bytes <= MAX_BYTES
        });
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::KeyBuilder;

    fn key(name: &str) -> Key {
        KeyBuilder::new("test").part("name", name).finish()
    }

    #[test]
    fn what_was_used_last_stays_as_long_as_there_is_room() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stamp = Stamp::of(&file.path().metadata().unwrap());
        let recent = Recent::default();
        let add = |name, bytes| {
            let compiled = Compiled { stdout: vec![0; bytes], ..Compiled::default() };
            recent.add(&key(name), stamp, &Arc::new(compiled));
        };
        let is_there = |name| recent.get(&key(name), file.path()).is_some();
        for name in ["a", "b", "c"] {
            add(name, MAX_BYTES / 4);
        }
        assert!(is_there("a"));
        add("d", MAX_BYTES / 2);
        assert_eq!(["a", "b", "c", "d"].map(is_there), [true, false, true, true]);
        recent.clear();
        assert!(!is_there("a"));
        add("e", 1);
        std::fs::write(file.path(), "changed").unwrap();
        assert!(!is_there("e"));
    }
}
