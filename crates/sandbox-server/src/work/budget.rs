use std::sync::{Arc, Mutex};

use sandbox_store::Queue;

use super::live::lock;

/// What running executions may have together. The sum of their memory limits stays within it, so that
/// all of them can use what they were promised.
pub(super) struct Budget {
    most: usize,
    memory: u64,
    used: Mutex<Used>,
    /// Told when something is given back: what did not fit may fit now.
    queue: Arc<dyn Queue>,
}

#[derive(Default)]
struct Used {
    running: usize,
    memory: u64,
}

/// What one execution has, until it is dropped.
pub(super) struct Place {
    budget: Arc<Budget>,
    memory: u64,
}

impl Budget {
    pub(super) fn new(most: usize, memory: u64, queue: Arc<dyn Queue>) -> Self {
        Self { most: most.max(1), memory, used: Mutex::default(), queue }
    }

    /// Whether one with this memory could ever run.
    pub(super) fn could_fit(&self, memory: u64) -> bool {
        memory <= self.memory
    }

    /// A place for one with this memory, if there is one now.
    pub(super) fn try_take(self: &Arc<Self>, memory: u64) -> Option<Place> {
        let mut used = lock(&self.used);
        let fits = used.running < self.most && self.memory.saturating_sub(used.memory) >= memory;
        fits.then(|| {
            used.running += 1;
            used.memory += memory;
            Place { budget: Arc::clone(self), memory }
        })
    }

    pub(super) fn running(&self) -> usize {
        lock(&self.used).running
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut used = lock(&self.budget.used);
        used.running -= 1;
        used.memory -= self.memory;
        drop(used);
        self.budget.queue.wake();
    }
}

#[cfg(test)]
mod tests {
    use sandbox_store::LocalQueue;

    use super::*;

    #[test]
    fn neither_places_nor_memory_are_given_twice() {
        let budget = Arc::new(Budget::new(3, 100, Arc::new(LocalQueue::new(1))));
        assert!(budget.could_fit(100) && !budget.could_fit(101));
        let fits = |memory| budget.try_take(memory).is_some();
        let large = budget.try_take(60);
        assert!(fits(40) && !fits(41));
        let (_one, two) = (budget.try_take(10), budget.try_take(10));
        assert!(!fits(1), "three are running");
        drop(two);
        assert!(fits(30) && !fits(31));
        drop(large);
        assert_eq!(budget.running(), 1);
        assert!(fits(90));
    }
}
