//! Admission by file descriptors: every sandbox uses some of this process's, and a process without
//! free descriptors can neither start, supervise nor end anything.
//!
//! Executions that do not fit wait in order. Sandboxes prepared ahead use at most half of the
//! descriptors, and none while an execution waits, so that idle sandboxes never delay an execution.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sandbox_core::{BackendError, CancelToken};

use crate::error::failed;

/// Descriptors of one sandbox: 30 under cgroup v1, which needs the most, and a few more while it is
/// built.
pub(crate) const PER_SANDBOX: usize = 32;
/// Descriptors of one sandbox after its cgroup control files are closed, for a long-running
/// program.
pub(crate) const PER_LONG_RUNNING: usize = 18;
/// An execution that waits longer than this is refused.
const TURN_TIMEOUT: Duration = Duration::from_mins(10);
/// Assumed number of open descriptors if they cannot be counted.
const ASSUMED_OPEN: usize = 64;

static BUDGET: OnceLock<Budget> = OnceLock::new();

/// The descriptors of this process, shared by all sandboxes.
pub(crate) struct Budget {
    /// Number of descriptors that were open before the first sandbox.
    open_before: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    used: usize,
    /// The part of `used` that belongs to sandboxes prepared ahead.
    ahead: usize,
    waiting: VecDeque<Arc<Waiter>>,
}

#[derive(Default)]
struct Waiter {
    woken: Condvar,
    is_cancelled: AtomicBool,
}

/// The descriptors of one sandbox, released when dropped.
pub(crate) struct Permit {
    budget: &'static Budget,
    count: AtomicUsize,
    is_ahead: AtomicBool,
}

/// Raises the soft limit to the hard limit. The usual soft limit exists for programs that use
/// `select`.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If this fails, fewer sandboxes fit at once.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

impl Budget {
    /// The budget of this process.
    pub(crate) fn of_process() -> &'static Self {
        BUDGET.get_or_init(|| {
            let open = std::fs::read_dir("/proc/self/fd").map_or(ASSUMED_OPEN, Iterator::count);
            Self { open_before: open, state: Mutex::default() }
        })
    }

    /// Descriptors that all sandboxes may use. Computed each time, because the limit can change.
    fn total(&self) -> usize {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        total_of(usize::try_from(limit).unwrap_or(usize::MAX), self.open_before)
    }

    /// Waits for descriptors for an execution, in order; `None` if it is cancelled.
    pub(crate) fn acquire(
        &'static self,
        cancel: &CancelToken,
    ) -> Result<Option<Arc<Permit>>, BackendError> {
        if let Some(permit) = self.try_take(false) {
            return Ok(Some(permit));
        }
        let waiter = Arc::new(Waiter::default());
        let woken = Arc::clone(&waiter);
        let _registration = cancel.on_cancel(move || {
            woken.is_cancelled.store(true, Ordering::Relaxed);
            // Under the lock, so that it cannot fall between the check of the flag and the wait.
            let _state = self.lock();
            woken.woken.notify_one();
        });
        self.wait_for_turn(&waiter)
    }

    fn wait_for_turn(
        &'static self,
        waiter: &Arc<Waiter>,
    ) -> Result<Option<Arc<Permit>>, BackendError> {
        let deadline = Instant::now() + TURN_TIMEOUT;
        let mut state = self.lock();
        state.waiting.push_back(Arc::clone(waiter));
        let outcome = loop {
            let is_first = state.waiting.front().is_some_and(|first| Arc::ptr_eq(first, waiter));
            if waiter.is_cancelled.load(Ordering::Relaxed) {
                break Ok(None);
            }
            if is_first && self.fits(&state, false) {
                break Ok(Some(self.take(&mut state, false)));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break Err(no_turn());
            }
            let woken = waiter.woken.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        };
        state.waiting.retain(|other| !Arc::ptr_eq(other, waiter));
        wake_first(&state);
        outcome
    }

    /// Acquires descriptors for a sandbox prepared ahead, if there are enough.
    pub(crate) fn try_acquire_ahead(&'static self) -> io::Result<Arc<Permit>> {
        self.try_take(true).ok_or_else(|| {
            let reason = "executions need the file descriptors that are left";
            io::Error::new(io::ErrorKind::QuotaExceeded, reason)
        })
    }

    fn try_take(&'static self, ahead: bool) -> Option<Arc<Permit>> {
        let mut state = self.lock();
        let is_free = state.waiting.is_empty() && self.fits(&state, ahead);
        is_free.then(|| self.take(&mut state, ahead))
    }

    fn fits(&self, state: &State, ahead: bool) -> bool {
        let total = self.total();
        state.used + PER_SANDBOX <= total && (!ahead || state.ahead + PER_SANDBOX <= total / 2)
    }

    fn take(&'static self, state: &mut State, ahead: bool) -> Arc<Permit> {
        state.used += PER_SANDBOX;
        if ahead {
            state.ahead += PER_SANDBOX;
        }
        let (count, is_ahead) = (AtomicUsize::new(PER_SANDBOX), AtomicBool::new(ahead));
        Arc::new(Permit { budget: self, count, is_ahead })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// Marks a sandbox prepared ahead as used by an execution.
    pub(crate) fn claim(&self) {
        if self.is_ahead.swap(false, Ordering::Relaxed) {
            let mut state = self.budget.lock();
            state.ahead -= self.count.load(Ordering::Relaxed);
        }
    }

    /// Releases all but this many descriptors.
    pub(crate) fn shrink(&self, count: usize) {
        let before = self.count.fetch_min(count, Ordering::Relaxed);
        let mut state = self.budget.lock();
        state.used -= before.saturating_sub(count);
        wake_first(&state);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.claim();
        let mut state = self.budget.lock();
        state.used -= self.count.load(Ordering::Relaxed);
        wake_first(&state);
    }
}

fn wake_first(state: &State) {
    if let Some(first) = state.waiting.front() {
        first.woken.notify_one();
    }
}

/// Descriptors for sandboxes: all but a reserve for connections, files and threads of this process.
/// At least two sandboxes are always allowed, one of them ahead; otherwise nothing would ever run.
fn total_of(limit: usize, open_before: usize) -> usize {
    limit.saturating_sub(open_before + reserve_of(limit)).max(2 * PER_SANDBOX)
}

/// With a low limit, half is reserved for connections; at most 1024.
fn reserve_of(limit: usize) -> usize {
    (limit / 2).min(1024)
}

fn no_turn() -> BackendError {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let minutes = TURN_TIMEOUT.as_secs() / 60;
    let cause = format!(
        "other executions have held all of this process's {limit} file descriptors for {minutes} minutes; \
         raise the limit (ulimit -n, LimitNOFILE=) or start fewer at once"
    );
    failed("wait for file descriptors", cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> &'static Budget {
        // As if all but two and a half sandboxes' worth of descriptors were open.
        let limit = getrlimit(Resource::Nofile).current.unwrap();
        let limit = usize::try_from(limit).unwrap();
        let open_before = limit - reserve_of(limit) - 5 * PER_SANDBOX / 2;
        Box::leak(Box::new(Budget { open_before, state: Mutex::default() }))
    }

    fn acquire(budget: &'static Budget) -> std::thread::JoinHandle<Arc<Permit>> {
        let before = budget.lock().waiting.len();
        let waiting = std::thread::spawn(move || {
            budget.acquire(&CancelToken::new()).unwrap().expect("nobody cancels")
        });
        while budget.lock().waiting.len() == before {
            std::thread::yield_now();
        }
        waiting
    }

    #[test]
    fn executions_without_descriptors_wait_in_order() {
        let budget = budget();
        let first = budget.acquire(&CancelToken::new()).unwrap();
        let second = budget.acquire(&CancelToken::new()).unwrap();
        let (third, fourth) = (acquire(budget), acquire(budget));
        assert!(!third.is_finished());
        drop(first);
        let third = third.join().unwrap();
        assert_eq!(budget.lock().waiting.len(), 1, "the fourth waits");
        drop(second);
        drop((third, fourth.join().unwrap()));
        assert_eq!(budget.lock().used, 0);
    }

    #[test]
    fn a_cancelled_execution_stops_waiting() {
        let budget = budget();
        let held = [(); 2].map(|()| budget.acquire(&CancelToken::new()).unwrap());
        let cancel = CancelToken::new();
        let token = cancel.clone();
        let waiting = std::thread::spawn(move || budget.acquire(&token).unwrap().is_none());
        while budget.lock().waiting.is_empty() {
            std::thread::yield_now();
        }
        cancel.cancel();
        assert!(waiting.join().unwrap());
        assert!(budget.lock().waiting.is_empty());
        drop(held);
    }

    #[test]
    fn what_is_prepared_ahead_leaves_half_to_executions() {
        let budget = budget();
        let ahead = budget.try_acquire_ahead().unwrap();
        assert!(budget.try_acquire_ahead().is_err());
        ahead.claim();
        let next = budget.try_acquire_ahead().unwrap();
        assert!(budget.try_acquire_ahead().is_err(), "all is taken");
        drop((ahead, next));
        let state = budget.lock();
        assert_eq!((state.used, state.ahead), (0, 0));
    }

    #[test]
    fn a_program_that_runs_long_leaves_room_for_another() {
        let budget = budget();
        let held = [(); 2].map(|()| budget.acquire(&CancelToken::new()).unwrap().unwrap());
        let third = acquire(budget);
        // Shrinking a second time releases nothing.
        for permit in held.iter().chain(&held) {
            permit.shrink(PER_LONG_RUNNING);
        }
        drop((third.join().unwrap(), held));
        assert_eq!(budget.lock().used, 0);
    }

    #[test]
    fn a_part_of_the_limit_is_left_for_the_rest_of_the_process() {
        assert_eq!(total_of(256, 20), 108);
        assert_eq!(total_of(20_000, 100), 18_876);
        assert_eq!(total_of(64, 60), 2 * PER_SANDBOX);
    }
}
