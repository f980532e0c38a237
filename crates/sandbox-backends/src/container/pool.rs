//! A pool of containers that are started ahead. Each is used once.
//!
//! One thread starts containers of the kinds that were requested more than once, and another
//! removes used ones. The pool is an optimisation: if nothing is ready, a claim starts its own
//! container.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sandbox_core::{BackendError, PoolStats, Start};

use super::ContainerSpec;
use super::pool_state::{PoolState, Task};
use crate::error::failed;

/// Creates containers of one kind.
pub(crate) trait ContainerFactory: Send + Sync + 'static {
    /// A container. Dropping it removes it.
    type Container: Send + 'static;

    /// Creates a container in which an agent waits for a request.
    fn build(&self, spec: &ContainerSpec) -> Result<Self::Container, BackendError>;

    /// Whether its agent still waits.
    fn is_waiting(&self, container: &mut Self::Container) -> bool;
}

/// The pool and its threads.
pub(crate) struct ContainerPool<F: ContainerFactory> {
    shared: Arc<Shared<F>>,
    maker: Option<JoinHandle<()>>,
    remover: Option<JoinHandle<()>>,
    prepared_claims: AtomicU64,
    built_claims: AtomicU64,
}

struct Shared<F: ContainerFactory> {
    factory: F,
    state: Mutex<State<F::Container>>,
    changed: Condvar,
}

struct State<C> {
    pool: PoolState<C>,
    used: Vec<C>,
    /// Used containers that are being removed.
    under_way: usize,
    /// No further containers are created.
    is_closing: bool,
    /// No further containers will be used.
    is_over: bool,
}

/// A container in use. Dropping the lease queues it for removal.
pub(crate) struct Lease<'a, F: ContainerFactory> {
    container: Option<F::Container>,
    pub(crate) start: Start,
    pool: &'a ContainerPool<F>,
}

/// Maximum number of used containers that wait for removal; further executions wait.
const MAX_AWAITING_REMOVAL: usize = 16;

impl<F: ContainerFactory> ContainerPool<F> {
    /// Starts a pool that keeps up to `spare` containers of each kind in demand.
    pub(crate) fn start(factory: F, spare: usize) -> Result<Self, BackendError> {
        let state = State {
            pool: PoolState::new(spare),
            used: Vec::new(),
            under_way: 0,
            is_closing: false,
            is_over: false,
        };
        let shared =
            Arc::new(Shared { factory, state: Mutex::new(state), changed: Condvar::new() });
        let spawn = |name: &str, work: fn(&Shared<F>)| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(name.to_owned());
            let started = thread.spawn(move || work(&shared));
            started.map(Some).map_err(|error| failed("start a thread", error))
        };
        let (maker, remover) =
            (spawn("sandbox-make", Shared::make)?, spawn("sandbox-retire", Shared::tear_down)?);
        let (prepared_claims, built_claims) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { shared, maker, remover, prepared_claims, built_claims })
    }

    /// Claims a container with this specification: a waiting one, or a new one.
    pub(crate) fn claim(&self, spec: &ContainerSpec) -> Result<Lease<'_, F>, BackendError> {
        let (container, start) = match self.take(spec) {
            Some(container) => (container, Start::Prepared),
            None => (self.shared.factory.build(spec)?, Start::Cold),
        };
        let claims = match start {
            Start::Cold => &self.built_claims,
            _ => &self.prepared_claims,
        };
        claims.fetch_add(1, Ordering::Relaxed);
        Ok(Lease { container: Some(container), start, pool: self })
    }

    pub(crate) fn stats(&self) -> PoolStats {
        let state = self.shared.lock();
        PoolStats {
            wanted: state.pool.wanted(),
            ready: state.pool.ready(),
            prepared_claims: self.prepared_claims.load(Ordering::Relaxed),
            built_claims: self.built_claims.load(Ordering::Relaxed),
            ..PoolStats::default()
        }
    }

    fn take(&self, spec: &ContainerSpec) -> Option<F::Container> {
        let mut state = self.shared.lock();
        let (taken, given_up) = state
            .pool
            .take(spec, Instant::now(), |container| self.shared.factory.is_waiting(container));
        state.used.extend(given_up);
        drop(state);
        self.shared.changed.notify_all();
        taken
    }

    fn retire(&self, container: F::Container) {
        let mut state = self.shared.lock();
        while state.used.len() + state.under_way >= MAX_AWAITING_REMOVAL {
            state = self.shared.wait(state, None);
        }
        state.used.push(container);
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl<F: ContainerFactory> Drop for ContainerPool<F> {
    /// All containers are removed when this returns.
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.shared.changed.notify_all();
        // A panic has been printed already.
        let _ = self.maker.take().map(JoinHandle::join);
        let mut state = self.shared.lock();
        let rest = state.pool.empty();
        state.used.extend(rest);
        state.is_over = true;
        drop(state);
        self.shared.changed.notify_all();
        let _ = self.remover.take().map(JoinHandle::join);
    }
}

impl<F: ContainerFactory> Shared<F> {
    fn lock(&self) -> MutexGuard<'_, State<F::Container>> {
        // A panic leaves nothing half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State<F::Container>>,
        timeout: Option<Duration>,
    ) -> MutexGuard<'a, State<F::Container>> {
        match timeout {
            Some(timeout) => {
                let waited = self.changed.wait_timeout(state, timeout);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Creates containers in demand until the pool closes.
    fn make(&self) {
        let mut state = self.lock();
        while !state.is_closing {
            match state.pool.next_task(Instant::now()) {
                Task::Make(spec) => {
                    drop(state);
                    let made = self.factory.build(&spec);
                    state = self.lock();
                    let rejected = match made {
                        Ok(container) if state.is_closing => Some(container),
                        Ok(container) => state.pool.put(&spec, container),
                        // The next claim retries and gets the error.
                        Err(_) => {
                            state.pool.forget(&spec);
                            None
                        }
                    };
                    state.used.extend(rejected);
                }
                Task::GiveUp(containers) => state.used.extend(containers),
                Task::Wait(timeout) => {
                    state = self.wait(state, timeout);
                    continue;
                }
            }
            self.changed.notify_all();
        }
    }

    /// Removes used containers until the pool is closed and empty.
    fn tear_down(&self) {
        let mut state = self.lock();
        loop {
            let used = std::mem::take(&mut state.used);
            if used.is_empty() {
                if state.is_over {
                    return;
                }
                state = self.wait(state, None);
                continue;
            }
            state.under_way = used.len();
            drop(state);
            drop(used);
            state = self.lock();
            state.under_way = 0;
            self.changed.notify_all();
        }
    }
}

impl<F: ContainerFactory> Lease<'_, F> {
    pub(crate) fn container(&mut self) -> &mut F::Container {
        self.container.as_mut().expect("it is there until the lease ends")
    }

    /// Takes the container out of the pool. Whoever has it removes it.
    pub(crate) fn into_container(mut self) -> F::Container {
        self.container.take().expect("it is there until the lease ends")
    }
}

impl<F: ContainerFactory> Drop for Lease<'_, F> {
    fn drop(&mut self) {
        if let Some(container) = self.container.take() {
            self.pool.retire(container);
        }
    }
}
