//! The state of the pool: what is ready, and the demand.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbox_core::StagePlan;

use super::slots::ReadySlot;
use super::teardown::TeardownQueue;
use super::warm::{WarmRequest, WarmSpec};
use super::warm_pool::WarmPool;

/// Preparing a slot takes CPU time that a program that just started could use. So it waits this
/// long, or until that program has ended, if there are other slots left.
pub(crate) const REFILL_PAUSE: Duration = Duration::from_millis(20);
/// A runtime that is slow to start (a virtual machine) must not start in the middle of a short
/// execution: it waits for this fraction of its start time.
const BACKOFF_DIVISOR: u32 = 5;
const MAX_BACKOFF: Duration = Duration::from_millis(100);
/// More pools than a server with a dozen languages and a few sets of limits needs.
const MAX_POOLS: usize = 32;
/// Maximum number of pools for compiled programs. A judge runs one program many times, then
/// another.
const MAX_PROGRAMS: usize = 4;

/// The state of the pool.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) ready: VecDeque<ReadySlot>,
    pub(crate) warm_pools: Vec<WarmPool>,
    pub(crate) refill: RefillState,
    /// Number of slots in use.
    pub(crate) leased: usize,
    /// Time of the last claim.
    pub(crate) last_claim: Option<Instant>,
    pub(crate) closing: bool,
}

/// State of the thread that prepares slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RefillState {
    /// Idle.
    #[default]
    Idle,
    /// Preparing a slot.
    Underway,
    /// Preparing a slot for which a claim waits.
    Awaited,
    /// The last attempt failed. The next claim retries and gets the error.
    Stalled,
}

impl State {
    /// How long to wait before preparing another slot, given the number of slots left and how long
    /// one takes.
    pub(crate) fn pause(
        &self,
        left: usize,
        wanted: usize,
        start_time: Duration,
    ) -> Option<Duration> {
        if self.leased == 0 || left <= wanted / 4 {
            return None;
        }
        let passed = self.last_claim?.elapsed();
        let pause = (start_time / BACKOFF_DIVISOR).clamp(REFILL_PAUSE, MAX_BACKOFF);
        pause.checked_sub(passed).filter(|left| !left.is_zero())
    }

    pub(crate) fn warm_pool_for(
        &mut self,
        plan: &StagePlan,
        wanted: &WarmRequest<'_>,
    ) -> &mut WarmPool {
        let place = self.warm_pools.iter().position(|pool| pool.spec.fits(plan, wanted));
        let place = place.unwrap_or_else(|| {
            self.warm_pools.push(WarmPool::new(WarmSpec::of(plan, wanted)));
            self.warm_pools.len() - 1
        });
        &mut self.warm_pools[place]
    }

    /// Memory in use by waiting runtimes.
    pub(crate) fn warm_memory(&self) -> u64 {
        let waiting = self.warm_pools.iter().flat_map(|pool| &pool.ready);
        waiting.map(|ready| ready.before.memory_current).sum()
    }

    /// Removes slots of idle pools, and pools that exceed their maximum number.
    pub(crate) fn shrink(&mut self) -> Vec<ReadySlot> {
        let mut spare: Vec<ReadySlot> =
            self.warm_pools.iter_mut().flat_map(WarmPool::shrink).collect();
        self.warm_pools.retain(|pool| !pool.is_expired());
        self.keep_at_most(MAX_PROGRAMS, |pool| pool.spec.runtime().is_none(), &mut spare);
        self.keep_at_most(MAX_POOLS, |_| true, &mut spare);
        spare
    }

    /// Removes the least recently used pools of a kind until at most this many are left.
    fn keep_at_most(
        &mut self,
        most: usize,
        is_one: impl Fn(&WarmPool) -> bool,
        spare: &mut Vec<ReadySlot>,
    ) {
        while self.warm_pools.iter().filter(|pool| is_one(pool)).count() > most {
            let all = self.warm_pools.iter().enumerate();
            let unused = all.filter(|(_, pool)| is_one(pool) && pool.underway == 0);
            let oldest = unused.min_by_key(|(_, pool)| pool.last_use);
            let Some((place, _)) = oldest else { break };
            spare.extend(self.warm_pools.swap_remove(place).ready);
        }
    }

    /// Adds a prepared slot, or records why preparing it failed.
    pub(crate) fn put(
        &mut self,
        spec: &Arc<WarmSpec>,
        started: Result<ReadySlot, String>,
        start_time: Duration,
        teardown: &TeardownQueue,
    ) {
        let pool = self.warm_pools.iter_mut().find(|pool| Arc::ptr_eq(&pool.spec, spec));
        match (pool, started) {
            (Some(pool), Ok(ready)) => {
                pool.underway -= 1;
                pool.start_time = start_time;
                pool.failure = None;
                pool.ready.push_back(ready);
            }
            (Some(pool), Err(reason)) => {
                pool.underway -= 1;
                pool.failure = Some((reason, Instant::now()));
            }
            (None, Ok(ready)) => teardown.discard(ready.slot),
            (None, Err(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::warm::Content;
    use super::*;

    fn programs(state: &State) -> Vec<String> {
        let key = |pool: &WarmPool| match &pool.spec.content {
            Content::Artefacts(artefacts) => artefacts.key.clone(),
            Content::Runtime(_) => None,
        };
        state.warm_pools.iter().filter_map(key).collect()
    }

    /// Programs that were used one after another.
    fn used(count: usize) -> State {
        let mut state = State::default();
        let start = Instant::now();
        for number in 0..count {
            let mut pool = WarmPool::new(WarmSpec::of_program(&number.to_string()));
            pool.last_use = start + Duration::from_nanos(number as u64);
            state.warm_pools.push(pool);
        }
        state
    }

    #[test]
    fn of_too_many_programs_those_used_last_are_kept() {
        let mut state = used(MAX_PROGRAMS + 2);
        state.shrink();
        let mut left = programs(&state);
        left.sort();
        assert_eq!(left, ["2", "3", "4", "5"]);
    }

    #[test]
    fn a_program_that_is_being_loaded_is_kept() {
        let mut state = used(MAX_PROGRAMS + 1);
        state.warm_pools[0].underway = 1;
        state.shrink();
        let left = programs(&state);
        assert_eq!(left.len(), MAX_PROGRAMS);
        assert!(left.contains(&"0".to_owned()) && !left.contains(&"1".to_owned()), "{left:?}");
    }

    #[test]
    fn as_many_programs_as_there_may_be_are_left_alone() {
        let mut state = used(MAX_PROGRAMS);
        state.shrink();
        assert_eq!(programs(&state).len(), MAX_PROGRAMS);
    }
}
