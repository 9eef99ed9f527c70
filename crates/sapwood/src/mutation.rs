//! Where does every change to a table pass?
//!
//! Through `Store::change`, and nowhere else: the method is private to this file and the two below
//! it, [`ordered`] and [`hash`], which hold every operation that changes what a table contains. A
//! store lends its engine to readers. A table in memory needs nothing done there, so `change` only
//! runs the operation; it is the seam for a log of changes. (A hash table in a directory has its
//! engine's own log and checkpoints below the seam.)
//!
//! What a log can rely on:
//! - **Effects are two.** Each operation leaves a key with new bytes, or without any. An `update`
//!   or `compute` closure runs here, and what it leaves in the value is its whole effect, so
//!   bytes are logged and closures are not.
//! - **Order per key** is the engine's: changes of one key take effect one after the other, and
//!   an operation's answer (replaced, inserted, absent) says which effect it had.
//! - **Deterministic.** No clock and no randomness enter, so the same effects in the same order
//!   give the same contents.
//! - A batch is its entries in order, for each key; `clear`, `remove_range` and `retain` are the
//!   removals of the entries that they find.
//! - Checkpoints and compactions change where bytes lie, and no contents: they are not changes.

pub(crate) mod hash;
mod ordered;

/// An engine, lent to readers and changed only by the files below this one.
pub(crate) struct Store<E> {
    engine: E,
}

impl<E> Store<E> {
    pub(crate) fn new(engine: E) -> Self {
        Self { engine }
    }

    /// For operations that change no contents.
    pub(crate) fn read(&self) -> &E {
        &self.engine
    }

    /// The one place that changes pass.
    fn change<R>(&self, run: impl FnOnce(&E) -> R) -> R {
        run(&self.engine)
    }
}
