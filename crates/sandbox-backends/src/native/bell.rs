//! Has work begun a moment later than it is asked for.
//!
//! What an execution leaves for others to do (a slot to be taken down, another to be made in its place) can
//! wait until its caller has the report. Waking a thread for it at once would take the CPU from exactly that:
//! so nobody is woken. A thread looks every two milliseconds whether somebody asked, as long as there is
//! anything going on.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sandbox_core::BackendError;

/// How often it is looked.
const TICK: Duration = Duration::from_millis(2);
/// After so long without being asked it sleeps until it is.
const AWAKE: Duration = Duration::from_millis(300);

pub(crate) struct Bell {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// It is to wake up.
    called: Condvar,
}

#[derive(Default)]
struct State {
    /// When it is to ring.
    due: Option<Instant>,
    is_asleep: bool,
    is_closing: bool,
}

impl Bell {
    /// Starts the thread, which calls this a moment after it was asked to.
    pub(crate) fn start(ring: impl Fn() + Send + 'static) -> Result<Self, BackendError> {
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let thread = super::spawn("sandbox-bell", move || for_thread.work(ring))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Asks for it, after this time.
    pub(crate) fn ring_after(&self, delay: Duration) {
        let due = Instant::now() + delay;
        let mut state = self.shared.lock();
        state.due = Some(state.due.map_or(due, |known| known.min(due)));
        if std::mem::take(&mut state.is_asleep) {
            self.shared.called.notify_one();
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.shared.called.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self, ring: impl Fn()) {
        let mut last = Instant::now();
        let mut state = self.lock();
        while !state.is_closing {
            state.is_asleep = state.due.is_none() && last.elapsed() >= AWAKE;
            state = if state.is_asleep {
                self.called.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.called.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0
            };
            if state.due.is_some_and(|due| due <= Instant::now()) {
                state.due = None;
                drop(state);
                ring();
                last = Instant::now();
                state = self.lock();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
