//! Waiting for a condition, with a deadline.

use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Polls until there is a value; `None` at the timeout.
pub fn wait_for<T>(timeout: Duration, mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(found) = poll() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Polls until the list is empty; returns what is left at the timeout.
pub fn wait_until_empty<T>(timeout: Duration, mut list: impl FnMut() -> Vec<T>) -> Vec<T> {
    let gone = wait_for(timeout, || list().is_empty().then_some(()));
    match gone {
        Some(()) => Vec::new(),
        None => list(),
    }
}
