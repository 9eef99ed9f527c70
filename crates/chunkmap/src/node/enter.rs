//! The wait for a record that another thread has for itself.

use sapwood_mem::reclaim::Guard;
use sapwood_mem::sync::Backoff;

use crate::error::Result;
use crate::node::record::Entered;

/// Goes into a record by `try_enter`, and waits without a pin while it is busy; `None` if the key
/// is to be looked up again.
#[inline]
pub(crate) fn enter<T>(
    guard: &Guard,
    try_enter: impl Fn() -> Result<Entered<T>>,
) -> Result<Option<T>> {
    match try_enter()? {
        Entered::Inside(lock) => Ok(Some(lock)),
        Entered::Dead => Ok(None),
        Entered::Busy => enter_slow(guard, try_enter),
    }
}

#[cold]
fn enter_slow<T>(guard: &Guard, try_enter: impl Fn() -> Result<Entered<T>>) -> Result<Option<T>> {
    let (epoch, backoff) = (guard.epoch(), Backoff::new());
    loop {
        guard.outside(|| backoff.wait());
        if guard.epoch() != epoch {
            // The record may have gone.
            return Ok(None);
        }
        match try_enter()? {
            Entered::Inside(lock) => return Ok(Some(lock)),
            Entered::Dead => return Ok(None),
            Entered::Busy => {}
        }
    }
}
