//! Mutexes that outlive a panic: what they guard is never left half changed, and the panic has been reported.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also one that a thread held when it panicked.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what a mutex guards, also if a thread held it when it panicked.
pub fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
