//! Wakes background threads a few milliseconds late, so that they do not delay the response.
//!
//! When an execution ends, background threads tear its slot down and prepare another one. Waking
//! them immediately would take the CPU from the caller that is about to return the report. Instead,
//! a thread polls every two milliseconds for requested wake-ups, as long as there is activity.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sandbox_core::BackendError;

/// How often the thread polls.
const TICK_INTERVAL: Duration = Duration::from_millis(2);
/// The thread stops polling after this time without a request, until the next one.
const IDLE_TIMEOUT: Duration = Duration::from_millis(300);

pub(crate) struct DeferredWaker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Ends the thread's sleep.
    wake_up: Condvar,
}

#[derive(Default)]
struct State {
    /// When to call the callback.
    due: Option<Instant>,
    is_asleep: bool,
    is_closing: bool,
}

impl DeferredWaker {
    /// Starts the thread, which calls `wake` after each requested delay.
    pub(crate) fn start(wake: impl Fn() + Send + 'static) -> Result<Self, BackendError> {
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let thread = super::spawn("sandbox-waker", move || for_thread.work(wake))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Calls the callback after this delay.
    pub(crate) fn wake_after(&self, delay: Duration) {
        let due = Instant::now() + delay;
        let mut state = self.shared.lock();
        state.due = Some(state.due.map_or(due, |known| known.min(due)));
        if std::mem::take(&mut state.is_asleep) {
            self.shared.wake_up.notify_one();
        }
    }
}

impl Drop for DeferredWaker {
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.shared.wake_up.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self, wake: impl Fn()) {
        let mut last = Instant::now();
        let mut state = self.lock();
        while !state.is_closing {
            state.is_asleep = state.due.is_none() && last.elapsed() >= IDLE_TIMEOUT;
            state = if state.is_asleep {
                self.wake_up.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.wake_up
                    .wait_timeout(state, TICK_INTERVAL)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            };
            if state.due.is_some_and(|due| due <= Instant::now()) {
                state.due = None;
                drop(state);
                wake();
                last = Instant::now();
                state = self.lock();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
