//! A mutex locked whether or not a thread panicked with it: no step leaves the data half changed.

use sapwood_mem::sync::held::{Mutex, MutexGuard};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
