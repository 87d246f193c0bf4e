// SPDX-License-Identifier: MIT
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is behind these mutexes is whole between any two statements, so a panic
/// elsewhere is no reason to stop extending a lock.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
