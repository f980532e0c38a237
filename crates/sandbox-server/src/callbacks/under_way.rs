//! What is being sent, and how much of it to whom.
//!
//! A receiver that answers slowly has its few places and no more, and so has a client that makes up slow
//! receivers: the others' callbacks go past them.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox_store::{CallbackExclusions, DueCallback};

/// How many callbacks go out at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) all: usize,
    pub(super) of_one_owner: usize,
    pub(super) to_one_host: usize,
}

impl Default for Bounds {
    /// Each holds one report in memory.
    fn default() -> Self {
        Self { all: 32, of_one_owner: 8, to_one_host: 2 }
    }
}

pub(super) struct UnderWay {
    bounds: Bounds,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    executions: HashSet<String>,
    of_owner: HashMap<Option<String>, usize>,
    to_host: HashMap<String, usize>,
}

/// A callback is under way until this is dropped.
pub(super) struct Place {
    under_way: Arc<UnderWay>,
    execution: String,
    owner: Option<String>,
    host: String,
}

impl UnderWay {
    pub(super) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, now: Mutex::default() })
    }

    pub(super) fn has_room(&self) -> bool {
        self.lock().executions.len() < self.bounds.all
    }

    /// Who has as much under way as may be.
    pub(super) fn busy(&self) -> CallbackExclusions {
        let now = self.lock();
        CallbackExclusions {
            hosts: at_bound(&now.to_host, self.bounds.to_one_host),
            owners: at_bound(&now.of_owner, self.bounds.of_one_owner),
        }
    }

    /// So many have to be looked at to find one that can be begun: all others may be under way.
    pub(super) fn enough(&self) -> u32 {
        u32::try_from(self.bounds.all).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// A place for this one, unless it has one or there is no more.
    pub(super) fn take(self: &Arc<Self>, callback: &DueCallback) -> Option<Place> {
        let mut now = self.lock();
        let of_owner = now.of_owner.get(&callback.owner).copied().unwrap_or_default();
        let to_host = now.to_host.get(&callback.host).copied().unwrap_or_default();
        let may_begin = now.executions.len() < self.bounds.all
            && of_owner < self.bounds.of_one_owner
            && to_host < self.bounds.to_one_host
            && !now.executions.contains(&callback.execution);
        if !may_begin {
            return None;
        }
        now.executions.insert(callback.execution.clone());
        now.of_owner.insert(callback.owner.clone(), of_owner + 1);
        now.to_host.insert(callback.host.clone(), to_host + 1);
        drop(now);
        Some(Place {
            under_way: Arc::clone(self),
            execution: callback.execution.clone(),
            owner: callback.owner.clone(),
            host: callback.host.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        // Nothing in here panics half way.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut now = self.under_way.lock();
        now.executions.remove(&self.execution);
        one_less(&mut now.of_owner, &self.owner);
        one_less(&mut now.to_host, &self.host);
    }
}

fn at_bound<K: Clone>(counts: &HashMap<K, usize>, bound: usize) -> Vec<K> {
    counts.iter().filter(|(_, count)| **count >= bound).map(|(key, _)| key.clone()).collect()
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
        let under_way = UnderWay::new(Bounds { all: 4, of_one_owner: 3, to_one_host: 2 });
        let take = |execution, owner, host| under_way.take(&callback(execution, owner, host));
        let first = take("1", "a", "x").expect("it is the first");
        assert!(take("1", "a", "x").is_none(), "it is under way");
        let _second = take("2", "a", "x").expect("two may go to a host");
        assert!(take("3", "b", "x").is_none(), "three may not");
        assert_eq!(
            under_way.busy(),
            CallbackExclusions { hosts: vec!["x".to_owned()], owners: vec![] }
        );
        let _third = take("3", "a", "y").expect("an owner may have three");
        assert!(take("4", "a", "z").is_none(), "four it may not");
        assert_eq!(under_way.busy().owners, [Some("a".to_owned())]);
        let fourth = take("4", "b", "z").expect("four may be under way");
        assert!(!under_way.has_room());
        assert!(take("5", "c", "w").is_none(), "five may not");
        drop(fourth);
        assert!(under_way.has_room());
        drop(first);
        assert_eq!(under_way.busy(), CallbackExclusions::default());
        assert!(take("1", "a", "x").is_some(), "its place is free again");
    }

    #[test]
    fn nothing_is_kept_of_what_is_over() {
        let under_way = UnderWay::new(Bounds::default());
        drop(under_way.take(&callback("1", "a", "x")));
        let now = under_way.lock();
        assert!(now.executions.is_empty() && now.of_owner.is_empty() && now.to_host.is_empty());
    }
}
