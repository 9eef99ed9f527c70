//! Answers of the closures that walks call.

use std::convert::Infallible;
use std::ops::ControlFlow;

/// The answer of a closure that visits entries: `()` to see all of them, or a [`ControlFlow`] to stop.
///
/// A walk returns the same type: `()` at the end, or the `ControlFlow` that it ended with.
///
/// ```
/// use std::ops::ControlFlow;
/// use sapwood::{Db, HashTableOptions};
///
/// let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
/// table.put_many(&[("a", "1"), ("b", "2")])?;
/// let mut bytes = 0;
/// table.for_each(|key, value| bytes += key.len() + value.len())?;
/// assert_eq!(bytes, 4);
///
/// let found = table.for_each(|key, value| match value {
///     b"2" => ControlFlow::Break(key.to_vec()),
///     _ => ControlFlow::Continue(()),
/// })?;
/// assert_eq!(found, ControlFlow::Break(b"b".to_vec()));
/// # Ok::<(), sapwood::Error>(())
/// ```
pub trait Visit {
    /// The value that a visit may stop with.
    type Break;

    /// The answer as a flow.
    fn into_flow(self) -> ControlFlow<Self::Break>;

    /// The end of a walk as an answer.
    fn of_flow(flow: ControlFlow<Self::Break>) -> Self;
}

impl Visit for () {
    type Break = Infallible;

    #[inline(always)]
    fn into_flow(self) -> ControlFlow<Infallible> {
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn of_flow(_: ControlFlow<Infallible>) {}
}

impl<B> Visit for ControlFlow<B> {
    type Break = B;

    #[inline(always)]
    fn into_flow(self) -> ControlFlow<B> {
        self
    }

    #[inline(always)]
    fn of_flow(flow: ControlFlow<B>) -> Self {
        flow
    }
}
