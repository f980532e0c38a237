use std::collections::BTreeMap;
use std::time::SystemTime;

/// Something that can be removed to make room.
pub(super) trait Evictable {
    /// Whose it is. What is shared belongs to one owner.
    fn owner(&self) -> String;
    /// When it was used last.
    fn used(&self) -> SystemTime;
    /// The room that it takes.
    fn bytes(&self) -> u64;
}

/// Things in the order in which they are removed to make room: of the owner with the most bytes, what was not
/// used for the longest time. So nobody can drive out what is another's.
pub(super) struct ByOwner<T> {
    owners: Vec<Owned<T>>,
}

struct Owned<T> {
    bytes: u64,
    /// The most recently used first.
    things: Vec<T>,
}

impl<T: Evictable> ByOwner<T> {
    pub(super) fn new(things: Vec<T>) -> Self {
        let mut owners: BTreeMap<String, Vec<T>> = BTreeMap::new();
        for thing in things {
            owners.entry(thing.owner()).or_default().push(thing);
        }
        let sorted = |mut things: Vec<T>| {
            things.sort_by_key(|thing| std::cmp::Reverse(thing.used()));
            Owned { bytes: things.iter().map(T::bytes).sum(), things }
        };
        Self { owners: owners.into_values().map(sorted).collect() }
    }

    /// All bytes that are left.
    pub(super) fn bytes(&self) -> u64 {
        self.owners.iter().map(|owner| owner.bytes).sum()
    }

    /// Takes out what is to be removed next.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.owners.retain(|owner| !owner.things.is_empty());
        let owner = self.owners.iter_mut().max_by_key(|owner| owner.bytes)?;
        let thing = owner.things.pop()?;
        owner.bytes -= thing.bytes();
        Some(thing)
    }
}
