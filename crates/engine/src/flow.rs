//! Walks whose visitors break with a value, over walks that know no type of it.
//!
//! A walk is generic in its visitor for the caller's sake alone. The engine's code takes a `&mut dyn FnMut`
//! that breaks with nothing, so that it is compiled once, and not again in each caller.

use std::ops::ControlFlow;

/// Runs a walk whose visitor puts the value that it breaks with aside, by [`broken_off`].
///
/// # Errors
/// The walk's own error.
///
/// ```
/// use std::ops::ControlFlow;
/// use sapwood_engine::{broken_off, keep_break};
///
/// fn each(visit: &mut dyn FnMut(u8) -> ControlFlow<()>) -> Result<ControlFlow<()>, ()> {
///     Ok((0..9).try_for_each(visit))
/// }
/// let odd = |number| if number % 2 == 1 { ControlFlow::Break(number) } else { ControlFlow::Continue(()) };
/// let first = keep_break(|kept| each(&mut |number| broken_off(odd(number), kept)));
/// assert_eq!(first, Ok(ControlFlow::Break(1)));
/// ```
#[inline]
pub fn keep_break<B, E>(
    walk: impl FnOnce(&mut Option<B>) -> Result<ControlFlow<()>, E>,
) -> Result<ControlFlow<B>, E> {
    let mut kept = None;
    let _flow = walk(&mut kept)?;
    Ok(kept.map_or(ControlFlow::Continue(()), ControlFlow::Break))
}

/// The flow of a walk after its visitor's, whose value goes into `kept`.
#[inline]
pub fn broken_off<B>(flow: ControlFlow<B>, kept: &mut Option<B>) -> ControlFlow<()> {
    match flow {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(value) => {
            *kept = Some(value);
            ControlFlow::Break(())
        }
    }
}
