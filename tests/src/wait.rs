//! Waiting for a condition, with a deadline.

use std::time::{Duration, Instant};

/// Between two looks at a condition that nothing announces.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks until there is an answer, or gives up after `time`.
pub fn wait_for<T>(time: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + time;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Waits until nothing is left of what `look` lists; gives back what still is after `time`.
pub fn wait_until_empty<T>(time: Duration, mut look: impl FnMut() -> Vec<T>) -> Vec<T> {
    let gone = wait_for(time, || look().is_empty().then_some(()));
    match gone {
        Some(()) => Vec::new(),
        None => look(),
    }
}
