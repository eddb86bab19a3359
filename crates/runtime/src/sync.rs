//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what no panic can leave half done: every critical section here only moves values.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
