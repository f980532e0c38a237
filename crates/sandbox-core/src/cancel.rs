use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Requests the end of a running execution. Clones share one state: cancelling any of them cancels
/// all.
///
/// A supervisor that sleeps in the kernel registers a callback that wakes it; there is no polling.
#[derive(Clone, Default)]
pub struct CancelToken {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    cancelled: bool,
    next_key: u64,
    wakers: BTreeMap<u64, Box<dyn Fn() + Send>>,
}

/// Keeps a callback registered. Dropping it removes the callback.
#[must_use = "dropping the registration forgets the callback"]
pub struct CancelRegistration {
    token: CancelToken,
    key: u64,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels. Calling it again has no effect.
    pub fn cancel(&self) {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.cancelled, true) {
            for waker in state.wakers.values() {
                waker();
            }
        }
    }

    /// Whether the token is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Calls `waker` when the token is cancelled; immediately if it already is. The callback must
    /// be short and must not use the token.
    pub fn on_cancel(&self, waker: impl Fn() + Send + 'static) -> CancelRegistration {
        let mut state = self.lock();
        if state.cancelled {
            waker();
        }
        let key = state.next_key;
        state.next_key += 1;
        state.wakers.insert(key, Box::new(waker));
        CancelRegistration { token: self.clone(), key }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic in a callback leaves the flag and the table consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CancelRegistration {
    fn drop(&mut self) {
        self.token.lock().wakers.remove(&self.key);
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn callbacks_run_once_also_when_registered_late_and_not_when_dropped() {
        let calls = Arc::new(AtomicU32::new(0));
        let count = |calls: &Arc<AtomicU32>| {
            let calls = Arc::clone(calls);
            move || {
                calls.fetch_add(1, Ordering::SeqCst);
            }
        };
        let token = CancelToken::new();
        let _kept = token.on_cancel(count(&calls));
        drop(token.on_cancel(count(&calls)));
        assert!(!token.is_cancelled());
        token.clone().cancel();
        token.cancel();
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        let _late = token.on_cancel(count(&calls));
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        assert!(token.is_cancelled());
    }
}
