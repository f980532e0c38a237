//! Background threads that prepare slots and start runtimes ahead, and release unused ones.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbox_core::Limits;
use sandbox_protocol::launcher::SlotKind;

use super::host::Host;
use super::pool_state::{RefillState, State};
use super::slots::{ReadySlot, SlotFactory};
use super::teardown::TeardownQueue;
use super::{ForkPolicy, Spare, warm};

/// How often to look for unused slots.
const SHRINK_INTERVAL: Duration = Duration::from_secs(10);

/// Waiting runtimes may use this fraction of the memory: one in this many parts.
const WARM_MEMORY_DIVISOR: u64 = 8;

/// State shared by the pool and its threads.
pub(crate) struct Shared {
    pub(crate) host: Arc<Host>,
    pub(crate) slot_factory: SlotFactory,
    pub(crate) spare: Spare,
    /// Maximum number of waiting runtimes with one specification.
    pub(crate) max_warm: usize,
    pub(crate) fork_policy: ForkPolicy,
    pub(crate) teardown: Arc<TeardownQueue>,
    pub(crate) state: Mutex<State>,
    /// Notifies that a slot was taken, or that an execution has ended.
    pub(crate) wanted: Condvar,
    /// Notifies that a runtime was requested.
    pub(crate) warm_wanted: Condvar,
    /// Notifies that a preparation has finished or failed.
    pub(crate) made: Condvar,
}

impl Shared {
    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a spare slot. Waits for the slot that is being prepared, if no other claim does: it is
    /// ready sooner than a new one.
    pub(crate) fn take_ready(&self) -> Option<ReadySlot> {
        let mut state = self.lock();
        if state.refill == RefillState::Stalled {
            state.refill = RefillState::Idle;
        }
        if state.ready.is_empty() && state.refill == RefillState::Underway {
            state.refill = RefillState::Awaited;
            while state.ready.is_empty() && state.refill == RefillState::Awaited {
                state = self.made.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let ready = state.ready.pop_front();
        state.last_claim = Some(Instant::now());
        if ready.is_none() {
            self.wanted.notify_one();
        }
        ready
    }

    pub(crate) fn keep_ready(&self) {
        let (wanted, mut left) = match self.spare {
            Spare::Keep(count) => (count, usize::MAX),
            Spare::Once(count) => (count, count),
        };
        let mut state = self.lock();
        while !state.closing && left > 0 {
            if state.refill == RefillState::Stalled || state.ready.len() >= wanted {
                state = self.wanted.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if let Some(pause) = state.pause(state.ready.len(), wanted, Duration::ZERO) {
                let paused = self.wanted.wait_timeout(state, pause);
                state = paused.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state.refill = RefillState::Underway;
            drop(state);
            let prepared = self.slot_factory.prepare_ahead(SlotKind::Any, &Limits::run());
            left -= 1;
            state = self.lock();
            state.refill = match prepared {
                Ok(slot) => {
                    state.ready.push_back(slot);
                    RefillState::Idle
                }
                Err(_) => RefillState::Stalled,
            };
            self.made.notify_all();
        }
    }

    /// Starts missing runtimes and releases unused ones.
    pub(crate) fn keep_warm(&self) {
        let mut state = self.lock();
        while !state.closing {
            let spare = state.shrink();
            for ready in spare {
                self.teardown.discard(ready.slot);
            }
            // The emptiest pool first.
            let has_room = state.warm_memory() < self.host.memory / WARM_MEMORY_DIVISOR;
            let missing = state.warm_pools.iter().enumerate();
            let missing = missing.filter(|(_, pool)| has_room && pool.deficit() > 0);
            let emptiest = missing.min_by_key(|(_, pool)| (pool.ready.len(), pool.underway));
            let Some((place, pool)) = emptiest else {
                let paused = self.warm_wanted.wait_timeout(state, SHRINK_INTERVAL);
                state = paused.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            };
            if let Some(pause) = state.pause(pool.ready.len(), pool.wanted, pool.start_time) {
                let paused = self.warm_wanted.wait_timeout(state, pause);
                state = paused.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let (spec, method) = (Arc::clone(&pool.spec), pool.method(self.fork_policy));
            state.warm_pools[place].underway += 1;
            drop(state);
            let begun = Instant::now();
            let started = warm::start(&self.host, &self.slot_factory, &spec, method);
            state = self.lock();
            state.put(&spec, started, begun.elapsed(), &self.teardown);
        }
    }
}
