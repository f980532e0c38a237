//! The capacity that running executions share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sandbox_store::{Capacity, Queue, Resources};

use crate::lock::lock;

/// Admits executions while their number and the sum of their memory limits stay within the server's capacity, and
/// those of one owner within the owner's share.
pub(crate) struct Budget {
    max: Resources,
    max_per_owner: Resources,
    used: Mutex<Used>,
    /// Woken when capacity is released.
    queue: Arc<dyn Queue>,
}

#[derive(Default)]
struct Used {
    total: Resources,
    /// Only owners that use something.
    by_owner: HashMap<String, Resources>,
}

/// The capacity of one execution; released when dropped.
pub(crate) struct Permit {
    budget: Arc<Budget>,
    owner: Option<String>,
    resources: Resources,
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
        let max = Resources { jobs: max_running.max(1), memory: max_memory };
        let max_per_owner = Resources {
            jobs: (max.jobs.saturating_mul(share) / 100).max(1),
            memory: max_memory / 100 * u64::from(share_per_owner)
                + max_memory % 100 * u64::from(share_per_owner) / 100,
        };
        Self { max, max_per_owner, used: Mutex::default(), queue }
    }

    /// The memory that the executions of this owner can have at once.
    pub(crate) fn max_memory(&self, owner: Option<&str>) -> u64 {
        self.max_of(owner).memory
    }

    /// The capacity that is free.
    pub(crate) fn capacity(&self) -> Capacity {
        let used = lock(&self.used);
        let owners = used
            .by_owner
            .iter()
            .map(|(owner, used)| (owner.clone(), rest(self.max_per_owner, *used)));
        Capacity {
            free: rest(self.max, used.total),
            per_owner: self.max_per_owner,
            owners: owners.collect(),
        }
    }

    /// Acquires a permit for an execution with this memory limit, if it fits.
    pub(crate) fn try_acquire(
        self: &Arc<Self>,
        owner: Option<&str>,
        memory: u64,
    ) -> Option<Permit> {
        let resources = Resources { jobs: 1, memory };
        let mut used = lock(&self.used);
        let fits = fits(used.of(owner), resources, self.max_of(owner))
            && fits(used.total, resources, self.max);
        if !fits {
            return None;
        }
        add(&mut used.total, resources);
        if let Some(owner) = owner {
            add(used.by_owner.entry(owner.to_owned()).or_default(), resources);
        }
        Some(Permit { budget: Arc::clone(self), owner: owner.map(ToOwned::to_owned), resources })
    }

    pub(crate) fn running(&self) -> usize {
        lock(&self.used).total.jobs
    }

    /// Clients without a key are one tenant, and have the server for themselves.
    fn max_of(&self, owner: Option<&str>) -> Resources {
        if owner.is_some() { self.max_per_owner } else { self.max }
    }
}

/// What is left of these resources.
fn rest(max: Resources, used: Resources) -> Resources {
    Resources {
        jobs: max.jobs.saturating_sub(used.jobs),
        memory: max.memory.saturating_sub(used.memory),
    }
}

fn add(used: &mut Resources, more: Resources) {
    used.jobs += more.jobs;
    used.memory += more.memory;
}

fn subtract(used: &mut Resources, less: Resources) {
    used.jobs -= less.jobs;
    used.memory -= less.memory;
}

/// Whether `more` fits beside what is used.
fn fits(used: Resources, more: Resources, max: Resources) -> bool {
    let rest = rest(max, used);
    rest.jobs >= more.jobs && rest.memory >= more.memory
}

impl Used {
    fn of(&self, owner: Option<&str>) -> Resources {
        owner.and_then(|owner| self.by_owner.get(owner)).copied().unwrap_or_default()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut used = lock(&self.budget.used);
        subtract(&mut used.total, self.resources);
        if let Some(owner) = &self.owner
            && let Some(of_owner) = used.by_owner.get_mut(owner)
        {
            subtract(of_owner, self.resources);
            if *of_owner == Resources::default() {
                used.by_owner.remove(owner);
            }
        }
        drop(used);
        self.budget.queue.wake();
    }
}

#[cfg(test)]
mod tests {
    use sandbox_store::{Fit, Job, LocalQueue};

    use super::*;

    fn budget(running: usize, memory: u64, share: u8) -> Arc<Budget> {
        Arc::new(Budget::new(running, memory, share, Arc::new(LocalQueue::new(1))))
    }

    /// Acquires a permit, and checks that the free capacity said the same.
    fn acquire(budget: &Arc<Budget>, owner: Option<&str>, memory: u64) -> Result<Permit, Fit> {
        let job = Job {
            id: String::new(),
            owner: owner.map(ToOwned::to_owned),
            priority: 0,
            memory,
            attempts: 0,
        };
        let fit = budget.capacity().fit(&job);
        let permit = budget.try_acquire(owner, memory);
        assert_eq!(permit.is_some(), fit == Fit::Now, "{fit:?}");
        permit.ok_or(fit)
    }

    #[test]
    fn no_capacity_is_used_twice() {
        let budget = budget(3, 100, 100);
        let fits = |memory| acquire(&budget, None, memory).is_ok();
        let large = acquire(&budget, None, 60);
        assert!(fits(40) && !fits(41));
        let (_one, two) = (acquire(&budget, None, 10), acquire(&budget, None, 10));
        assert_eq!(acquire(&budget, None, 1).err(), Some(Fit::NoCapacity), "three are running");
        drop(two);
        assert!(fits(30) && !fits(31));
        drop(large);
        assert_eq!(budget.running(), 1);
        assert!(fits(90));
    }

    #[test]
    fn an_owner_gets_its_share_and_leaves_the_rest() {
        let budget = budget(4, 100, 75);
        let acquire = |owner, memory| acquire(&budget, Some(owner), memory);
        assert_eq!(acquire("a", 76).err(), Some(Fit::OwnerAtLimit));
        let held = [acquire("a", 25), acquire("a", 25), acquire("a", 24)];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(acquire("a", 1).err(), Some(Fit::OwnerAtLimit), "three of four run");
        assert_eq!(acquire("b", 27).err(), Some(Fit::NoCapacity));
        let other = acquire("b", 26);
        assert_eq!(acquire("c", 0).err(), Some(Fit::NoCapacity), "four of four run");
        drop((held, other));
        assert!(lock(&budget.used).by_owner.is_empty());
        assert!(acquire("a", 75).is_ok() && budget.try_acquire(None, 100).is_some());
    }

    #[test]
    fn the_smallest_share_is_one_execution() {
        let budget = budget(2, 100, 1);
        assert!(acquire(&budget, Some("a"), 1).is_ok());
        assert_eq!(budget.max_memory(Some("a")), 1);
        assert_eq!(budget.max_memory(None), 100);
    }
}
