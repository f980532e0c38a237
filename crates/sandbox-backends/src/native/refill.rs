//! The threads that make slots and start runtimes ahead, and let go of what nobody needs.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbox_core::Limits;
use sandbox_protocol::launcher::SlotKind;

use super::host::Host;
use super::retire::Retirement;
use super::slots::{Maker, ReadySlot};
use super::stock::{State, Supply};
use super::{Copies, Spare, warm};

/// How often it is looked for what has been waiting for nothing.
const SHRINK_INTERVAL: Duration = Duration::from_secs(10);

/// Waiting runtimes may have one of so many parts of the memory.
const WARM_SHARE: u64 = 8;

/// What a pool and its threads share.
pub(crate) struct Shared {
    pub(crate) host: Arc<Host>,
    pub(crate) maker: Maker,
    pub(crate) spare: Spare,
    /// How many runtimes of one shape may wait.
    pub(crate) most_warm: usize,
    pub(crate) copies: Copies,
    pub(crate) retirement: Arc<Retirement>,
    pub(crate) state: Mutex<State>,
    /// A slot was taken, or an execution has ended.
    pub(crate) wanted: Condvar,
    /// A runtime is asked for.
    pub(crate) warm_wanted: Condvar,
    /// What was underway is there, or failed.
    pub(crate) made: Condvar,
}

impl Shared {
    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A spare slot. If one is being made and nobody else waits for it, it is sooner there than a new
    /// one would be.
    pub(crate) fn take_ready(&self) -> Option<ReadySlot> {
        let mut state = self.lock();
        if state.supply == Supply::Stalled {
            state.supply = Supply::Idle;
        }
        if state.ready.is_empty() && state.supply == Supply::Underway {
            state.supply = Supply::Awaited;
            while state.ready.is_empty() && state.supply == Supply::Awaited {
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
            if state.supply == Supply::Stalled || state.ready.len() >= wanted {
                state = self.wanted.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if let Some(pause) = state.pause(state.ready.len(), wanted, Duration::ZERO) {
                let paused = self.wanted.wait_timeout(state, pause);
                state = paused.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state.supply = Supply::Underway;
            drop(state);
            let prepared = self.maker.prepare_ahead(SlotKind::Any, &Limits::run());
            left -= 1;
            state = self.lock();
            state.supply = match prepared {
                Ok(slot) => {
                    state.ready.push_back(slot);
                    Supply::Idle
                }
                Err(_) => Supply::Stalled,
            };
            self.made.notify_all();
        }
    }

    /// Starts runtimes where they are missing, and lets go of those that nobody needs.
    pub(crate) fn keep_warm(&self) {
        let mut state = self.lock();
        while !state.closing {
            let spare = state.shrink();
            for ready in spare {
                self.retirement.discard(ready.slot);
            }
            // The stock that lacks most of what it should have.
            let has_room = state.warm_memory() < self.host.memory / WARM_SHARE;
            let missing = state.shelves.iter().enumerate();
            let missing = missing.filter(|(_, stock)| has_room && stock.deficit() > 0);
            let emptiest = missing.min_by_key(|(_, stock)| (stock.ready.len(), stock.underway));
            let Some((place, stock)) = emptiest else {
                let paused = self.warm_wanted.wait_timeout(state, SHRINK_INTERVAL);
                state = paused.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            };
            if let Some(pause) = state.pause(stock.ready.len(), stock.wanted, stock.start_time) {
                let paused = self.warm_wanted.wait_timeout(state, pause);
                state = paused.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let (shape, way) = (Arc::clone(&stock.shape), stock.way(self.copies));
            state.shelves[place].underway += 1;
            drop(state);
            let begun = Instant::now();
            let started = warm::start(&self.host, &self.maker, &shape, way);
            state = self.lock();
            state.put(&shape, started, begun.elapsed(), &self.retirement);
        }
    }
}
