//! What changes do, told as they happen.

use std::fmt::{self, Debug};
use std::io;
use std::sync::Arc;

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
/// order in which a journal hears of changes to a key is the order in which they happened. It tells
/// a change before any thread reads it (the ordered engine), or once it is made (the hash engine),
/// in either case before the call returns that made it. A scan that begins once a change was told
/// shows what the change has left.
///
/// A journal may be full. So an engine [claims](Journal::claim) room before it makes a change, and
/// makes none where that is refused.
pub trait Journal: Debug + Send + Sync {
    /// Keeps room for changes whose keys and bytes have so many bytes together, until it is [given
    /// back](Journal::give_back), by the number of the answer. [`Claim`] does both. By default
    /// there is room for all.
    ///
    /// # Errors
    /// The reason why the changes must not be made.
    fn claim(&self, bytes: usize, changes: usize) -> Result<u64, Refused> {
        let _no_bound = (bytes, changes);
        Ok(0)
    }

    /// Ends a claim, once its changes were told, or if none are made.
    fn give_back(&self, claimed: u64) {
        let _no_bound = claimed;
    }

    /// Takes down a change for which there is a claim. It must not call the table, nor panic. Where
    /// it fails, it remembers the failure itself, and takes down nothing more.
    fn log(&self, key: &[u8], effect: Effect<'_>);

    /// Makes all that was told before last. An engine that writes checkpoints calls it before one counts
    /// that has these changes: else the checkpoint could have a change whose predecessors are lost.
    ///
    /// # Errors
    /// Why it is not known to last; the checkpoint must not count.
    fn sync(&self) -> io::Result<()>;
}

/// The reason why a journal has no room for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The system's answer.
    pub kind: io::ErrorKind,
    /// The journal's words.
    pub why: Arc<str>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// Room in a journal for changes to come, until it is dropped.
#[derive(Debug)]
pub struct Claim<'j> {
    journal: &'j dyn Journal,
    claimed: u64,
}

impl<'j> Claim<'j> {
    /// Claims room, as [`Journal::claim`] does.
    ///
    /// # Errors
    /// The errors of [`Journal::claim`].
    #[inline]
    pub fn new(
        journal: &'j dyn Journal,
        bytes: usize,
        changes: usize,
    ) -> Result<Claim<'j>, Refused> {
        let claimed = journal.claim(bytes, changes)?;
        Ok(Claim { journal, claimed })
    }
}

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        self.journal.give_back(self.claimed);
    }
}
