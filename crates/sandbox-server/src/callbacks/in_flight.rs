//! Limits on the callbacks in flight.
//!
//! A slow receiver holds only the few slots of its host, and a client with many slow receivers only those of its owner,
//! so the callbacks of others are not delayed.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox_store::{CallbackExclusions, DueCallback};

/// The maximum numbers of callbacks in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) total: usize,
    pub(super) per_owner: usize,
    pub(super) per_host: usize,
}

impl Default for Limits {
    /// Each holds one report in memory.
    fn default() -> Self {
        Self { total: 32, per_owner: 8, per_host: 2 }
    }
}

pub(super) struct InFlight {
    limits: Limits,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    executions: HashSet<String>,
    of_owner: HashMap<Option<String>, usize>,
    to_host: HashMap<String, usize>,
}

/// A callback is in flight until this is dropped.
pub(super) struct Slot {
    in_flight: Arc<InFlight>,
    execution: String,
    owner: Option<String>,
    host: String,
}

impl InFlight {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, counts: Mutex::default() })
    }

    pub(super) fn has_free_slot(&self) -> bool {
        self.lock().executions.len() < self.limits.total
    }

    /// The hosts and owners that have reached their limits.
    pub(super) fn exclusions(&self) -> CallbackExclusions {
        let counts = self.lock();
        CallbackExclusions {
            hosts: at_limit(&counts.to_host, self.limits.per_host),
            owners: at_limit(&counts.of_owner, self.limits.per_owner),
        }
    }

    /// The number of due callbacks that contains one to start: all others may be in flight.
    pub(super) fn max_due(&self) -> u32 {
        u32::try_from(self.limits.total).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Acquires a slot, unless the callback has one or a limit is reached.
    pub(super) fn try_acquire(self: &Arc<Self>, callback: &DueCallback) -> Option<Slot> {
        let mut counts = self.lock();
        let of_owner = counts.of_owner.get(&callback.owner).copied().unwrap_or_default();
        let to_host = counts.to_host.get(&callback.host).copied().unwrap_or_default();
        let may_start = counts.executions.len() < self.limits.total
            && of_owner < self.limits.per_owner
            && to_host < self.limits.per_host
            && !counts.executions.contains(&callback.execution);
        if !may_start {
            return None;
        }
        counts.executions.insert(callback.execution.clone());
        counts.of_owner.insert(callback.owner.clone(), of_owner + 1);
        counts.to_host.insert(callback.host.clone(), to_host + 1);
        drop(counts);
        Some(Slot {
            in_flight: Arc::clone(self),
            execution: callback.execution.clone(),
            owner: callback.owner.clone(),
            host: callback.host.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        // Nothing in here panics half way.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.in_flight.lock();
        counts.executions.remove(&self.execution);
        one_less(&mut counts.of_owner, &self.owner);
        one_less(&mut counts.to_host, &self.host);
    }
}

fn at_limit<K: Clone>(counts: &HashMap<K, usize>, limit: usize) -> Vec<K> {
    counts.iter().filter(|(_, count)| **count >= limit).map(|(key, _)| key.clone()).collect()
}

fn one_less<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callback(execution: &str, owner: &str, host: &str) -> DueCallback {
        DueCallback {
            execution: execution.to_owned(),
            owner: Some(owner.to_owned()),
            url: String::new(),
            host: host.to_owned(),
            tries: 0,
        }
    }

    #[test]
    fn each_bound_holds_until_a_place_is_free() {
        let in_flight = InFlight::new(Limits { total: 4, per_owner: 3, per_host: 2 });
        let take =
            |execution, owner, host| in_flight.try_acquire(&callback(execution, owner, host));
        let first = take("1", "a", "x").expect("it is the first");
        assert!(take("1", "a", "x").is_none(), "it is in flight");
        let _second = take("2", "a", "x").expect("two may go to a host");
        assert!(take("3", "b", "x").is_none(), "three may not");
        assert_eq!(
            in_flight.exclusions(),
            CallbackExclusions { hosts: vec!["x".to_owned()], owners: vec![] }
        );
        let _third = take("3", "a", "y").expect("an owner may have three");
        assert!(take("4", "a", "z").is_none(), "four it may not");
        assert_eq!(in_flight.exclusions().owners, [Some("a".to_owned())]);
        let fourth = take("4", "b", "z").expect("four may be in flight");
        assert!(!in_flight.has_free_slot());
        assert!(take("5", "c", "w").is_none(), "five may not");
        drop(fourth);
        assert!(in_flight.has_free_slot());
        drop(first);
        assert_eq!(in_flight.exclusions(), CallbackExclusions::default());
        assert!(take("1", "a", "x").is_some(), "its slot is free again");
    }

    #[test]
    fn nothing_is_kept_of_what_is_over() {
        let in_flight = InFlight::new(Limits::default());
        drop(in_flight.try_acquire(&callback("1", "a", "x")));
        let counts = in_flight.lock();
        assert!(
            counts.executions.is_empty() && counts.of_owner.is_empty() && counts.to_host.is_empty()
        );
    }
}
