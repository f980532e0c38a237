//! Containers that wait for programs, so that nobody waits for containers. Each is used once.
//!
//! A thread makes them of the kinds that were asked for more than once, and another takes used ones down. They are
//! not needed for correctness: with nothing ready a claim builds its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sandbox_core::{BackendError, PoolFigures, Start};

use super::Purpose;
use super::stock::{Stock, Task};
use crate::failed;

/// Who makes containers of one sort.
pub(crate) trait Workshop: Send + Sync + 'static {
    /// One of them. Dropping it takes it down.
    type Container: Send + 'static;

    /// Makes one, in which an agent waits for its order.
    fn build(&self, purpose: &Purpose) -> Result<Self::Container, BackendError>;

    /// Whether its agent still waits.
    fn is_waiting(&self, container: &mut Self::Container) -> bool;
}

/// The containers that wait, and the threads that see to them.
pub(crate) struct ContainerPool<W: Workshop> {
    shared: Arc<Shared<W>>,
    maker: Option<JoinHandle<()>>,
    remover: Option<JoinHandle<()>>,
    prepared_claims: AtomicU64,
    built_claims: AtomicU64,
}

struct Shared<W: Workshop> {
    workshop: W,
    state: Mutex<State<W::Container>>,
    changed: Condvar,
}

struct State<C> {
    stock: Stock<C>,
    used: Vec<C>,
    /// Used ones that are being taken down.
    under_way: usize,
    /// No more are made.
    is_closing: bool,
    /// No more come to be taken down.
    is_over: bool,
}

/// A container in use. However its use ends, it is then taken down, by somebody else.
pub(crate) struct Lease<'a, W: Workshop> {
    container: Option<W::Container>,
    pub(crate) start: Start,
    pool: &'a ContainerPool<W>,
}

/// So many used ones may wait to be taken down before executions have to wait for that.
const MAX_AWAITING_REMOVAL: usize = 16;

impl<W: Workshop> ContainerPool<W> {
    /// Keeps up to so many ready of each kind that is in demand.
    pub(crate) fn start(workshop: W, spare: usize) -> Result<Self, BackendError> {
        let state = State {
            stock: Stock::new(spare),
            used: Vec::new(),
            under_way: 0,
            is_closing: false,
            is_over: false,
        };
        let shared =
            Arc::new(Shared { workshop, state: Mutex::new(state), changed: Condvar::new() });
        let spawn = |name: &str, work: fn(&Shared<W>)| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(name.to_owned());
            let started = thread.spawn(move || work(&shared));
            started.map(Some).map_err(|error| failed("start a thread", error))
        };
        let (maker, remover) =
            (spawn("sandbox-make", Shared::make)?, spawn("sandbox-retire", Shared::take_down)?);
        let (prepared_claims, built_claims) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { shared, maker, remover, prepared_claims, built_claims })
    }

    /// A container of this kind: one that waits, or else a new one.
    pub(crate) fn claim(&self, purpose: &Purpose) -> Result<Lease<'_, W>, BackendError> {
        let (container, start) = match self.take(purpose) {
            Some(container) => (container, Start::Prepared),
            None => (self.shared.workshop.build(purpose)?, Start::Cold),
        };
        let claims = match start {
            Start::Cold => &self.built_claims,
            _ => &self.prepared_claims,
        };
        claims.fetch_add(1, Ordering::Relaxed);
        Ok(Lease { container: Some(container), start, pool: self })
    }

    pub(crate) fn figures(&self) -> PoolFigures {
        let state = self.shared.lock();
        PoolFigures {
            wanted: state.stock.wanted(),
            ready: state.stock.ready(),
            prepared_claims: self.prepared_claims.load(Ordering::Relaxed),
            built_claims: self.built_claims.load(Ordering::Relaxed),
            ..PoolFigures::default()
        }
    }

    fn take(&self, purpose: &Purpose) -> Option<W::Container> {
        let mut state = self.shared.lock();
        let (taken, given_up) = state
            .stock
            .take(purpose, Instant::now(), |container| self.shared.workshop.is_waiting(container));
        state.used.extend(given_up);
        drop(state);
        self.shared.changed.notify_all();
        taken
    }

    fn retire(&self, container: W::Container) {
        let mut state = self.shared.lock();
        while state.used.len() + state.under_way >= MAX_AWAITING_REMOVAL {
            state = self.shared.wait(state, None);
        }
        state.used.push(container);
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl<W: Workshop> Drop for ContainerPool<W> {
    /// Everything is taken down when this returns.
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.shared.changed.notify_all();
        // One that broke off has said so.
        let _ = self.maker.take().map(JoinHandle::join);
        let mut state = self.shared.lock();
        let rest = state.stock.empty();
        state.used.extend(rest);
        state.is_over = true;
        drop(state);
        self.shared.changed.notify_all();
        let _ = self.remover.take().map(JoinHandle::join);
    }
}

impl<W: Workshop> Shared<W> {
    fn lock(&self) -> MutexGuard<'_, State<W::Container>> {
        // Nothing is left half changed by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State<W::Container>>,
        patience: Option<Duration>,
    ) -> MutexGuard<'a, State<W::Container>> {
        match patience {
            Some(patience) => {
                let waited = self.changed.wait_timeout(state, patience);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Makes what is in demand, until the end.
    fn make(&self) {
        let mut state = self.lock();
        while !state.is_closing {
            match state.stock.next_task(Instant::now()) {
                Task::Make(purpose) => {
                    drop(state);
                    let made = self.workshop.build(&purpose);
                    state = self.lock();
                    let rejected = match made {
                        Ok(container) if state.is_closing => Some(container),
                        Ok(container) => state.stock.put(&purpose, container),
                        // Whoever asks next is told why, or gets one.
                        Err(_) => {
                            state.stock.forget(&purpose);
                            None
                        }
                    };
                    state.used.extend(rejected);
                }
                Task::GiveUp(containers) => state.used.extend(containers),
                Task::Wait(patience) => {
                    state = self.wait(state, patience);
                    continue;
                }
            }
            self.changed.notify_all();
        }
    }

    /// Takes down what was used, until there is nothing left and no more comes.
    fn take_down(&self) {
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

impl<W: Workshop> Lease<'_, W> {
    pub(crate) fn container(&mut self) -> &mut W::Container {
        self.container.as_mut().expect("it is there until the lease ends")
    }
}

impl<W: Workshop> Drop for Lease<'_, W> {
    fn drop(&mut self) {
        if let Some(container) = self.container.take() {
            self.pool.retire(container);
        }
    }
}
