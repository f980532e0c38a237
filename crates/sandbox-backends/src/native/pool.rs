//! The pool of slots that are prepared before they are requested: for any program, or with a
//! waiting runtime.
//!
//! Joining a cgroup after idleness takes milliseconds and starting a runtime takes longer, so
//! threads do both in the background. They are an optimisation: if nothing is ready, a claim
//! prepares its own slot.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sandbox_core::{
    BackendError, CancelToken, Limits, PoolStats, SandboxSpec, StagePlan, Start, WarmPoolStats,
};
use sandbox_linux::UnconfiguredLauncher;
use sandbox_linux::seccomp::Notifications;
use sandbox_protocol::launcher::SlotKind;

use super::cpu_shares::CpuShare;
use super::deferred_waker::DeferredWaker;
use super::descriptors::Budget;
use super::host::Host;
use super::pool_state::{REFILL_PAUSE, RefillState, State};
use super::refill::Shared;
use super::slots::{ReadySlot, SlotFactory, SupervisionHandles, launch_failed};
use super::teardown::{TeardownQueue, is_closed};
use super::warm::StartMethod;
use super::{NativeOptions, Spare, warm};

/// Background work waits this long after an execution, so that the response goes out first.
const RESPONSE_DELAY: Duration = Duration::from_millis(1);

/// A slot in use. It is torn down when the lease is dropped.
pub(crate) struct Lease<'a> {
    ready: Option<ReadySlot>,
    pub(crate) start: Start,
    pool: &'a Pool,
    /// `None` only while it is dropped.
    cpu_share: Option<CpuShare>,
    /// Memory that the ended sandbox still holds, once it is known.
    held_bytes: OnceLock<u64>,
}

pub(crate) struct Pool {
    /// Declared first, so that its callback stops before what it uses is dropped.
    waker: DeferredWaker,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    teardown: Arc<TeardownQueue>,
    prepared_claims: AtomicU64,
    built_claims: AtomicU64,
}

impl Pool {
    pub(crate) fn start(
        host: Arc<Host>,
        launcher: UnconfiguredLauncher,
        options: &NativeOptions,
    ) -> Result<Self, BackendError> {
        let NativeOptions { spare, max_warm, fork_policy, .. } = *options;
        let teardown = Arc::new(TeardownQueue::start()?);
        let shared = Arc::new(Shared {
            slot_factory: SlotFactory::start(Arc::clone(&host), launcher)?,
            host,
            spare,
            max_warm,
            fork_policy,
            teardown: Arc::clone(&teardown),
            state: Mutex::new(State::default()),
            wanted: Condvar::new(),
            warm_wanted: Condvar::new(),
            made: Condvar::new(),
        });
        let mut threads = Vec::new();
        if !matches!(spare, Spare::Keep(0) | Spare::Once(0)) {
            // An immediate claim then waits for the first slot.
            shared.lock().refill = RefillState::Underway;
            let shared = Arc::clone(&shared);
            threads.push(super::spawn("sandbox-prepare", move || shared.keep_ready())?);
        }
        if max_warm > 0 {
            for _ in
                0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(4)
            {
                let shared = Arc::clone(&shared);
                threads.push(super::spawn("sandbox-warm", move || shared.keep_warm())?);
            }
        }
        let (prepared_claims, built_claims) = (AtomicU64::new(0), AtomicU64::new(0));
        let (woken, reminded) = (Arc::clone(&shared), Arc::clone(&teardown));
        let waker = DeferredWaker::start(move || {
            reminded.wake();
            woken.wanted.notify_one();
            woken.warm_wanted.notify_one();
        })?;
        Ok(Self { waker, shared, threads, teardown, prepared_claims, built_claims })
    }

    pub(crate) fn starts_runtimes_ahead(&self) -> bool {
        self.shared.max_warm > 0
    }

    /// Creates slots, and mounts for them.
    pub(crate) fn slot_factory(&self) -> &SlotFactory {
        &self.shared.slot_factory
    }

    /// Claims a slot for one stage: a warm one, a spare one, the one being prepared, or a new one.
    pub(crate) fn claim(
        &self,
        plan: &StagePlan,
        cancel: &CancelToken,
    ) -> Result<Option<Lease<'_>>, BackendError> {
        match self.take_warm(plan) {
            Some((ready, Start::Prepared)) => Ok(Some(self.lease_prepared(ready, &plan.sandbox))),
            Some((ready, start)) => Ok(Some(self.lease(ready, start, &plan.sandbox))),
            None => self.claim_any(&plan.sandbox, cancel),
        }
    }

    /// Claims a slot in which no program runs; `None` if cancelled while waiting.
    pub(crate) fn claim_any(
        &self,
        spec: &SandboxSpec,
        cancel: &CancelToken,
    ) -> Result<Option<Lease<'_>>, BackendError> {
        loop {
            match self.shared.take_ready() {
                // Its processes may have been killed while it waited.
                Some(ready) if is_closed(&ready.slot.socket, Duration::ZERO) => {
                    self.teardown.discard(ready.slot);
                }
                Some(ready) => return Ok(Some(self.lease_prepared(ready, spec))),
                None => {
                    let Shared { host, slot_factory, .. } = self.shared.as_ref();
                    let Some(permit) = host.wait(|| Budget::of_process().acquire(cancel))? else {
                        return Ok(None);
                    };
                    let built =
                        host.wait(|| slot_factory.prepare(SlotKind::Any, &Limits::run(), &permit));
                    let built = built.map_err(|error| launch_failed("prepare a sandbox", error))?;
                    self.built_claims.fetch_add(1, Ordering::Relaxed);
                    return Ok(Some(self.lease(built, Start::Cold, spec)));
                }
            }
        }
    }

    fn take_warm(&self, plan: &StagePlan) -> Option<(ReadySlot, Start)> {
        if self.shared.max_warm == 0 {
            return None;
        }
        let wanted = warm::wanted(plan)?;
        loop {
            let (taken, copied) = {
                let mut state = self.shared.lock();
                state.last_claim = Some(Instant::now());
                let pool = state.warm_pool_for(plan, &wanted);
                let taken = pool.take(self.shared.max_warm);
                let start = pool.spec.start();
                let copied = pool.spec.is_forked().then(|| Arc::clone(&pool.spec));
                (taken.map(|taken| (taken, start)), copied)
            };
            if taken.is_none() {
                self.shared.warm_wanted.notify_one();
            }
            match (taken, copied) {
                (Some((ready, _)), _) if !warm::is_healthy(&self.shared.host, &ready) => {
                    self.teardown.discard(ready.slot);
                }
                (Some(taken), _) => return Some(taken),
                // Forking is faster than a cold start, even while the caller waits.
                (None, Some(spec)) => {
                    let Shared { host, slot_factory, .. } = self.shared.as_ref();
                    let copy =
                        host.wait(|| warm::start(host, slot_factory, &spec, StartMethod::Fork));
                    return copy.ok().map(|copy| (copy, Start::Warm));
                }
                (None, None) => return None,
            }
        }
    }

    fn lease_prepared(&self, ready: ReadySlot, spec: &SandboxSpec) -> Lease<'_> {
        self.prepared_claims.fetch_add(1, Ordering::Relaxed);
        self.lease(ready, Start::Prepared, spec)
    }

    fn lease(&self, ready: ReadySlot, start: Start, spec: &SandboxSpec) -> Lease<'_> {
        ready.permit.claim();
        self.shared.lock().leased += 1;
        self.teardown.begun();
        // A replacement is prepared even while a long program runs.
        self.waker.wake_after(REFILL_PAUSE);
        let host = &self.shared.host;
        let (cgroup, before) = (ready.slot.cgroup.as_ref(), ready.before.cpu_total);
        let owner = spec.owner.clone();
        let share = host.cpu_shares.enter(&host.hierarchy, cgroup, owner, before, Instant::now());
        let (ready, cpu_share) = (Some(ready), Some(share));
        Lease { ready, start, pool: self, cpu_share, held_bytes: OnceLock::new() }
    }

    pub(crate) fn stats(&self) -> PoolStats {
        let (Spare::Keep(wanted) | Spare::Once(wanted)) = self.shared.spare;
        let state = self.shared.lock();
        let runtimes = state.warm_pools.iter().filter_map(|pool| {
            let runtime = pool.spec.runtime()?;
            let failure = pool.failure.as_ref().map(|(reason, _)| reason.clone());
            Some(WarmPoolStats {
                name: runtime.warm.name.clone(),
                wanted: pool.wanted,
                ready: pool.ready.len(),
                hits: pool.hits,
                misses: pool.misses,
                failure: failure.or_else(|| runtime.fork_failure()),
            })
        });
        let programs = state.warm_pools.iter().filter(|pool| pool.spec.runtime().is_none());
        PoolStats {
            wanted,
            ready: state.ready.len(),
            loaded: programs.map(|pool| pool.ready.len()).sum(),
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
        let warm_pools = std::mem::take(&mut state.warm_pools);
        let ready = std::mem::take(&mut state.ready);
        for ready in ready.into_iter().chain(warm_pools.into_iter().flat_map(|pool| pool.ready)) {
            self.teardown.discard(ready.slot);
        }
    }
}

impl Lease<'_> {
    /// Leaves a denied call unanswered until the slot is torn down.
    pub(crate) fn leave_waiting(&mut self, denied_calls: Notifications) {
        let ready = self.ready.as_mut().expect("only dropping takes it");
        ready.slot.denied_calls = Some(denied_calls.into());
    }

    /// Sets how much memory the ended sandbox holds, once; by default its memory limit counts.
    pub(crate) fn note_held_bytes(&self, bytes: u64) {
        let _ = self.held_bytes.set(bytes);
    }

    /// When to call [`check_cpu_share`](Self::check_cpu_share).
    pub(crate) fn next_cpu_share_check(&self) -> Option<Instant> {
        self.cpu_share.as_ref().and_then(CpuShare::next_check)
    }

    /// Counts the CPU time that the owner has used, if it is time.
    pub(crate) fn check_cpu_share(&mut self, now: Instant) {
        let host = &self.pool.shared.host;
        if let (Some(ready), Some(share)) = (&self.ready, &mut self.cpu_share) {
            host.cpu_shares.check(&host.hierarchy, ready.slot.cgroup.as_ref(), share, now);
        }
    }

    /// Gives a sandbox that must end soon the CPU time for that.
    pub(crate) fn leave_background(&self) {
        let _ = self.slot.cgroup.set_background(false);
    }

    /// Takes the pipes and descriptors for supervision; once.
    pub(crate) fn take_handles(&mut self) -> SupervisionHandles {
        let ready = self.ready.as_mut().expect("only dropping takes it");
        ready.handles.take().expect("an execution takes them once")
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
        // Tearing down happens in the background, so that it does not delay the response.
        let ready = self.ready.take();
        let host = &self.pool.shared.host;
        if let (Some(ready), Some(share)) = (&ready, self.cpu_share.take()) {
            let cgroup = ready.slot.cgroup.as_ref();
            host.cpu_shares.leave(&host.hierarchy, cgroup, share, Instant::now());
        }
        let limit = ready.as_ref().and_then(|ready| ready.limits.memory_bytes);
        let bytes = self.held_bytes.get().copied().or(limit).unwrap_or(0);
        self.pool.teardown.ended(ready.map(|ready| ready.slot), bytes);
        let mut state = self.pool.shared.lock();
        state.leased = state.leased.saturating_sub(1);
        drop(state);
        self.pool.waker.wake_after(RESPONSE_DELAY);
    }
}
