//! What changes do, told as they happen.

use std::fmt::Debug;
use std::io;

/// What a change did to the entry of a key, so that it can be done again.
///
/// Done again in the order in which they were told, effects lead to the same entries, also where some
/// of them are in the entries already: none depends on what was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect<'a> {
    /// The entry has this value, whether there was one or not.
    Put(&'a [u8]),
    /// The value has these bytes from `offset` on, and is as long as it was.
    Write {
        /// In bytes, from the value's beginning.
        offset: usize,
        /// Within the value.
        bytes: &'a [u8],
    },
    /// There is no entry.
    Remove,
}

/// Takes down what changes do to a table.
///
/// An engine tells each change once, while no other thread can change the entry of that key: so the
/// order in which a journal hears of changes to a key is the order in which they happened. It tells a
/// change before any thread reads it (the ordered engine), or once it is made (the hash engine), in
/// either case before the call returns that made it. A scan that begins once a change was told shows what the
/// change has left.
pub trait Journal: Debug + Send + Sync {
    /// Takes down a change. It must not call the table, nor panic. Where it fails, it remembers the
    /// failure itself, and takes down nothing more.
    fn log(&self, key: &[u8], effect: Effect<'_>);

    /// Makes all that was told before last. An engine that writes checkpoints calls it before one counts
    /// that has these changes: else the checkpoint could have a change whose predecessors are lost.
    ///
    /// # Errors
    /// Why it is not known to last; the checkpoint must not count.
    fn sync(&self) -> io::Result<()>;
}
