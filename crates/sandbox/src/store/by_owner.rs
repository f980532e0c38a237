use std::collections::BTreeMap;
use std::time::SystemTime;

/// An entry that can be evicted.
pub(super) trait Evictable {
    /// Its owner. All shared entries have one owner.
    fn owner(&self) -> String;
    /// Time of the last use.
    fn used(&self) -> SystemTime;
    /// Its size.
    fn bytes(&self) -> u64;
}

/// Entries in eviction order: the least recently used entry of the owner with the most bytes first, so that no owner can
/// evict the entries of another.
pub(super) struct ByOwner<T> {
    owners: Vec<Owned<T>>,
}

struct Owned<T> {
    bytes: u64,
    /// The most recently used first.
    entries: Vec<T>,
}

impl<T: Evictable> ByOwner<T> {
    pub(super) fn new(entries: Vec<T>) -> Self {
        let mut owners: BTreeMap<String, Vec<T>> = BTreeMap::new();
        for entry in entries {
            owners.entry(entry.owner()).or_default().push(entry);
        }
        let sorted = |mut entries: Vec<T>| {
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.used()));
            Owned { bytes: entries.iter().map(T::bytes).sum(), entries }
        };
        Self { owners: owners.into_values().map(sorted).collect() }
    }

    /// Total size of the remaining entries.
    pub(super) fn bytes(&self) -> u64 {
        self.owners.iter().map(|owner| owner.bytes).sum()
    }

    /// Removes and returns the next entry to evict.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.owners.retain(|owner| !owner.entries.is_empty());
        let owner = self.owners.iter_mut().max_by_key(|owner| owner.bytes)?;
        let entry = owner.entries.pop()?;
        owner.bytes -= entry.bytes();
        Some(entry)
    }
}
