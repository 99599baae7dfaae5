//! Locks that a failed thread does not close for all others.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thread that failed while it held the lock has left nothing half done: what is behind these locks is
/// replaced as a whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
