//! Slots ready before they are needed: for any program, and with a runtime that waits in them.
//!
//! Threads work beside the executions: joining a cgroup after idleness takes milliseconds, and starting a
//! runtime takes more, so neither must happen while someone waits. They are not needed for correctness:
//! with nothing ready a claim prepares its own slot.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sandbox_core::{BackendError, CancelToken, Limits, PoolFigures, StagePlan, Start, WarmFigures};
use sandbox_linux::UnconfiguredLauncher;
use sandbox_linux::seccomp::Notifications;
use sandbox_protocol::launcher::SlotKind;

use super::bell::Bell;
use super::descriptors::Budget;
use super::host::Host;
use super::refill::Shared;
use super::retire::{Retirement, is_closed};
use super::slots::{Maker, ReadySlot, Tools, launch_failed};
use super::stock::{REFILL_PAUSE, State, Supply};
use super::warm::Way;
use super::{NativeOptions, Spare, warm};

/// An execution that has ended leaves the CPU to the answer for so long.
const ANSWER_TIME: Duration = Duration::from_millis(1);

/// A slot in use. However its use ends, it is then taken down.
pub(crate) struct Lease<'a> {
    ready: Option<ReadySlot>,
    pub(crate) start: Start,
    pool: &'a Pool,
    /// Memory that is left in it, once that is known.
    held_bytes: Cell<Option<u64>>,
}

pub(crate) struct Pool {
    /// First, so that nobody is called any more when the others go.
    bell: Bell,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    retirement: Arc<Retirement>,
    prepared_claims: AtomicU64,
    built_claims: AtomicU64,
}

impl Pool {
    pub(crate) fn start(
        host: Arc<Host>,
        launcher: UnconfiguredLauncher,
        options: &NativeOptions,
    ) -> Result<Self, BackendError> {
        let NativeOptions { spare, most_warm, copies, .. } = *options;
        let retirement = Arc::new(Retirement::start()?);
        let shared = Arc::new(Shared {
            maker: Maker::start(Arc::clone(&host), launcher)?,
            host,
            spare,
            most_warm,
            copies,
            retirement: Arc::clone(&retirement),
            state: Mutex::new(State::default()),
            wanted: Condvar::new(),
            warm_wanted: Condvar::new(),
            made: Condvar::new(),
        });
        let mut threads = Vec::new();
        if !matches!(spare, Spare::Keep(0) | Spare::Once(0)) {
            // Whoever claims at once finds it underway.
            shared.lock().supply = Supply::Underway;
            let shared = Arc::clone(&shared);
            threads.push(super::spawn("sandbox-prepare", move || shared.keep_ready())?);
        }
        if most_warm > 0 {
            for _ in
                0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(4)
            {
                let shared = Arc::clone(&shared);
                threads.push(super::spawn("sandbox-warm", move || shared.keep_warm())?);
            }
        }
        let (prepared_claims, built_claims) = (AtomicU64::new(0), AtomicU64::new(0));
        let (woken, reminded) = (Arc::clone(&shared), Arc::clone(&retirement));
        let bell = Bell::start(move || {
            reminded.remind();
            woken.wanted.notify_one();
            woken.warm_wanted.notify_one();
        })?;
        Ok(Self { bell, shared, threads, retirement, prepared_claims, built_claims })
    }

    pub(crate) fn starts_runtimes_ahead(&self) -> bool {
        self.shared.most_warm > 0
    }

    /// What makes slots, and mounts for them.
    pub(crate) fn maker(&self) -> &Maker {
        &self.shared.maker
    }

    /// A slot for one stage: one in which its runtime waits, a spare one, the one that is nearly there, or
    /// one made for it.
    pub(crate) fn claim(
        &self,
        plan: &StagePlan,
        cancel: &CancelToken,
    ) -> Result<Option<Lease<'_>>, BackendError> {
        match self.take_warm(plan) {
            Some((ready, Start::Prepared)) => Ok(Some(self.lease_prepared(ready))),
            Some((ready, start)) => Ok(Some(self.lease(ready, start))),
            None => self.claim_any(cancel),
        }
    }

    /// A slot in which nothing runs yet; none if it was cancelled while it waited for its turn.
    fn claim_any(&self, cancel: &CancelToken) -> Result<Option<Lease<'_>>, BackendError> {
        loop {
            match self.shared.take_ready() {
                // Its processes may have been killed while it paused.
                Some(ready) if is_closed(&ready.slot.socket, Duration::ZERO) => {
                    self.retirement.discard(ready.slot);
                }
                Some(ready) => return Ok(Some(self.lease_prepared(ready))),
                None => {
                    let Shared { host, maker, .. } = self.shared.as_ref();
                    let Some(permit) = host.wait(|| Budget::of_process().acquire(cancel))? else {
                        return Ok(None);
                    };
                    let built = host.wait(|| maker.prepare(SlotKind::Any, &Limits::run(), &permit));
                    let built = built.map_err(|error| launch_failed("prepare a sandbox", error))?;
                    self.built_claims.fetch_add(1, Ordering::Relaxed);
                    return Ok(Some(self.lease(built, Start::Cold)));
                }
            }
        }
    }

    fn take_warm(&self, plan: &StagePlan) -> Option<(ReadySlot, Start)> {
        if self.shared.most_warm == 0 {
            return None;
        }
        let wanted = warm::wanted(plan)?;
        loop {
            let (taken, copied) = {
                let mut state = self.shared.lock();
                state.last_claim = Some(Instant::now());
                let stock = state.shelf_for(plan, &wanted);
                let taken = stock.take(self.shared.most_warm);
                let start = stock.shape.start();
                let copied = stock.shape.is_copied().then(|| Arc::clone(&stock.shape));
                (taken.map(|taken| (taken, start)), copied)
            };
            if taken.is_none() {
                self.shared.warm_wanted.notify_one();
            }
            match (taken, copied) {
                (Some((ready, _)), _) if !warm::is_healthy(&self.shared.host, &ready) => {
                    self.retirement.discard(ready.slot);
                }
                (Some(taken), _) => return Some(taken),
                // Making a copy takes less than starting another, also for whoever waits.
                (None, Some(shape)) => {
                    let Shared { host, maker, .. } = self.shared.as_ref();
                    let copy = host.wait(|| warm::start(host, maker, &shape, Way::Quickest));
                    return copy.ok().map(|copy| (copy, Start::Warm));
                }
                (None, None) => return None,
            }
        }
    }

    fn lease_prepared(&self, ready: ReadySlot) -> Lease<'_> {
        self.prepared_claims.fetch_add(1, Ordering::Relaxed);
        self.lease(ready, Start::Prepared)
    }

    fn lease(&self, ready: ReadySlot, start: Start) -> Lease<'_> {
        ready.permit.claim();
        self.shared.lock().leased += 1;
        self.retirement.begun();
        // A long program need not end before there is another one in its place.
        self.bell.ring_after(REFILL_PAUSE);
        Lease { ready: Some(ready), start, pool: self, held_bytes: Cell::new(None) }
    }

    pub(crate) fn figures(&self) -> PoolFigures {
        let (Spare::Keep(wanted) | Spare::Once(wanted)) = self.shared.spare;
        let state = self.shared.lock();
        let runtimes = state.shelves.iter().filter_map(|stock| {
            let runtime = stock.shape.runtime()?;
            let failure = stock.failure.as_ref().map(|(reason, _)| reason.clone());
            Some(WarmFigures {
                name: runtime.warm.name.clone(),
                wanted: stock.wanted,
                ready: stock.ready.len(),
                hits: stock.hits,
                misses: stock.misses,
                failure: failure.or_else(|| runtime.why_not_copied()),
            })
        });
        let programs = state.shelves.iter().filter(|stock| stock.shape.runtime().is_none());
        PoolFigures {
            wanted,
            ready: state.ready.len(),
            loaded: programs.map(|stock| stock.ready.len()).sum(),
            prepared_claims: self.prepared_claims.load(Ordering::Relaxed),
            built_claims: self.built_claims.load(Ordering::Relaxed),
            warm: runtimes.collect(),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.wanted.notify_all();
        self.shared.warm_wanted.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let mut state = self.shared.lock();
        let shelves = std::mem::take(&mut state.shelves);
        let ready = std::mem::take(&mut state.ready);
        for ready in ready.into_iter().chain(shelves.into_iter().flat_map(|stock| stock.ready)) {
            self.retirement.discard(ready.slot);
        }
    }
}

impl Lease<'_> {
    /// Keeps the caller of a denied call waiting until the slot is taken down.
    pub(crate) fn leave_waiting(&mut self, denied_calls: Notifications) {
        let ready = self.ready.as_mut().expect("only dropping takes it");
        ready.slot.denied_calls = Some(denied_calls.into());
    }

    /// Says how much memory it holds now that its program has ended; until then its limit counts.
    pub(crate) fn note_held_bytes(&self, bytes: u64) {
        self.held_bytes.set(Some(bytes));
    }

    /// The pipes and the watch of this slot, once.
    pub(crate) fn take_tools(&mut self) -> Tools {
        let ready = self.ready.as_mut().expect("only dropping takes it");
        ready.tools.take().expect("an execution takes them once")
    }
}

impl std::ops::Deref for Lease<'_> {
    type Target = ReadySlot;

    fn deref(&self) -> &ReadySlot {
        self.ready.as_ref().expect("only dropping takes it")
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // What is left to do is taking down, and proving it: not on the path of the answer.
        let ready = self.ready.take();
        let limit = ready.as_ref().and_then(|ready| ready.limits.memory_bytes);
        let bytes = self.held_bytes.get().or(limit).unwrap_or(0);
        self.pool.retirement.ended(ready.map(|ready| ready.slot), bytes);
        let mut state = self.pool.shared.lock();
        state.leased = state.leased.saturating_sub(1);
        drop(state);
        self.pool.bell.ring_after(ANSWER_TIME);
    }
}
