use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. No panic in this crate leaves locked data half changed, so poisoning is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
