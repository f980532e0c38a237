//! The capacity that running executions share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sandbox_store::{Fit, Queue};

use crate::lock::lock;

/// Admits executions while their number and the sum of their memory limits stay within the server's capacity, and
/// those of one owner within the owner's share.
pub(crate) struct Budget {
    max: Amount,
    max_per_owner: Amount,
    used: Mutex<Used>,
    /// Woken when capacity is released.
    queue: Arc<dyn Queue>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    running: usize,
    memory: u64,
}

#[derive(Default)]
struct Used {
    total: Amount,
    /// Only owners that use something.
    by_owner: HashMap<String, Amount>,
}

/// The capacity of one execution; released when dropped.
pub(crate) struct Permit {
    budget: Arc<Budget>,
    owner: Option<String>,
    amount: Amount,
}

impl Budget {
    /// `share_per_owner` is a percentage of both maximums.
    pub(crate) fn new(
        max_running: usize,
        max_memory: u64,
        share_per_owner: u8,
        queue: Arc<dyn Queue>,
    ) -> Self {
        let share = usize::from(share_per_owner);
        let max = Amount { running: max_running.max(1), memory: max_memory };
        let max_per_owner = Amount {
            running: (max.running.saturating_mul(share) / 100).max(1),
            memory: max_memory / 100 * u64::from(share_per_owner)
                + max_memory % 100 * u64::from(share_per_owner) / 100,
        };
        Self { max, max_per_owner, used: Mutex::default(), queue }
    }

    /// The memory that the executions of this owner can have at once.
    pub(crate) fn max_memory(&self, owner: Option<&str>) -> u64 {
        self.max_of(owner).memory
    }

    /// Acquires a permit for an execution with this memory limit, or says what is missing.
    pub(crate) fn try_acquire(
        self: &Arc<Self>,
        owner: Option<&str>,
        memory: u64,
    ) -> Result<Permit, Fit> {
        let amount = Amount { running: 1, memory };
        let mut used = lock(&self.used);
        if !used.of(owner).leaves(amount, self.max_of(owner)) {
            return Err(Fit::OwnerAtLimit);
        }
        if !used.total.leaves(amount, self.max) {
            return Err(Fit::NoCapacity);
        }
        used.total.add(amount);
        if let Some(owner) = owner {
            used.by_owner.entry(owner.to_owned()).or_default().add(amount);
        }
        Ok(Permit { budget: Arc::clone(self), owner: owner.map(ToOwned::to_owned), amount })
    }

    pub(crate) fn running(&self) -> usize {
        lock(&self.used).total.running
    }

    /// Clients without a key are one tenant, and have the server for themselves.
    fn max_of(&self, owner: Option<&str>) -> Amount {
        if owner.is_some() { self.max_per_owner } else { self.max }
    }
}

impl Amount {
    fn add(&mut self, other: Self) {
        self.running += other.running;
        self.memory += other.memory;
    }

    fn subtract(&mut self, other: Self) {
        self.running -= other.running;
        self.memory -= other.memory;
    }

    /// Whether `more` fits beside this amount.
    fn leaves(self, more: Self, max: Self) -> bool {
        self.running + more.running <= max.running
            && max.memory.saturating_sub(self.memory) >= more.memory
    }
}

impl Used {
    fn of(&self, owner: Option<&str>) -> Amount {
        owner.and_then(|owner| self.by_owner.get(owner)).copied().unwrap_or_default()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut used = lock(&self.budget.used);
        used.total.subtract(self.amount);
        if let Some(owner) = &self.owner
            && let Some(of_owner) = used.by_owner.get_mut(owner)
        {
            of_owner.subtract(self.amount);
            if *of_owner == Amount::default() {
                used.by_owner.remove(owner);
            }
        }
        drop(used);
        self.budget.queue.wake();
    }
}

#[cfg(test)]
mod tests {
    use sandbox_store::LocalQueue;

    use super::*;

    fn budget(running: usize, memory: u64, share: u8) -> Arc<Budget> {
        Arc::new(Budget::new(running, memory, share, Arc::new(LocalQueue::new(1))))
    }

    #[test]
    fn no_capacity_is_used_twice() {
        let budget = budget(3, 100, 100);
        let fits = |memory| budget.try_acquire(None, memory).is_ok();
        let large = budget.try_acquire(None, 60);
        assert!(fits(40) && !fits(41));
        let (_one, two) = (budget.try_acquire(None, 10), budget.try_acquire(None, 10));
        assert_eq!(budget.try_acquire(None, 1).err(), Some(Fit::NoCapacity), "three are running");
        drop(two);
        assert!(fits(30) && !fits(31));
        drop(large);
        assert_eq!(budget.running(), 1);
        assert!(fits(90));
    }

    #[test]
    fn an_owner_gets_its_share_and_leaves_the_rest() {
        let budget = budget(4, 100, 75);
        let acquire = |owner, memory| budget.try_acquire(Some(owner), memory);
        assert_eq!(acquire("a", 76).err(), Some(Fit::OwnerAtLimit));
        let held = [acquire("a", 25), acquire("a", 25), acquire("a", 24)];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(acquire("a", 1).err(), Some(Fit::OwnerAtLimit), "three of four run");
        assert_eq!(acquire("b", 27).err(), Some(Fit::NoCapacity));
        let other = acquire("b", 26);
        assert_eq!(acquire("c", 0).err(), Some(Fit::NoCapacity), "four of four run");
        drop((held, other));
        assert!(lock(&budget.used).by_owner.is_empty());
        assert!(acquire("a", 75).is_ok() && budget.try_acquire(None, 100).is_ok());
    }

    #[test]
    fn the_smallest_share_is_one_execution() {
        let budget = budget(2, 100, 1);
        assert!(budget.try_acquire(Some("a"), 1).is_ok());
        assert_eq!(budget.max_memory(Some("a")), 1);
        assert_eq!(budget.max_memory(None), 100);
    }
}
