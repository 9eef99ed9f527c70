//! Redo: the changes of a transaction as they are logged.
//!
//! A sequence of changes, each a word that says what and where, little endian, and words behind it:
//!
//! ```text
//!  63    60 59    48 47               0
//! +--------+--------+------------------+
//! | change | count  | first word       |   1: `count` words follow, and are stored there
//! +--------+--------+------------------+   2, 3: a mask follows, whose bits are set, cleared
//! ```
//! Doing all changes of a log from some point on, in order, to words of any later moment makes them
//! those of its end: each bit is what the last change to it says. So a log may be replayed onto
//! pages that were written at any time since (the physical logging of Satyanarayanan et al.:
//! "Lightweight recoverable virtual memory", SOSP 1993).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::object::{Word, load};

const STORE: u64 = 1;
const SET: u64 = 2;
const CLEAR: u64 = 3;
/// Words that one change stores at most.
const COUNT_MAX: usize = 4095;

/// Changes on their way to the log.
#[derive(Debug, Default)]
pub(crate) struct Redo {
    bytes: Vec<u8>,
    /// Where the changes of descriptors begin.
    allocations: usize,
}

impl Redo {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.allocations = 0;
        // A transaction of millions should not keep its memory for ever.
        self.bytes.shrink_to(1 << 20);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What follows are changes of descriptors.
    pub(crate) fn begin_allocations(&mut self) {
        self.allocations = self.bytes.len();
    }

    /// The changes of descriptors.
    pub(crate) fn allocations(&self) -> &[u8] {
        &self.bytes[self.allocations..]
    }

    fn push(&mut self, word: u64) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    fn begin(&mut self, change: u64, count: usize, at: usize) {
        debug_assert!(count <= COUNT_MAX && (at as u64) < 1 << 48);
        self.push(change << 60 | (count as u64) << 48 | at as u64);
    }

    /// Words are stored from `at` on.
    pub(crate) fn store(&mut self, at: usize, words: &[Word]) {
        for (part, words) in words.chunks(COUNT_MAX).enumerate() {
            self.begin(STORE, words.len(), at + part * COUNT_MAX);
            for word in words {
                self.push(load(word));
            }
        }
    }

    /// One word is stored.
    pub(crate) fn store_word(&mut self, at: usize, value: u64) {
        self.begin(STORE, 1, at);
        self.push(value);
    }

    /// Bits of a word are set.
    pub(crate) fn set_bits(&mut self, at: usize, mask: u64) {
        self.begin(SET, 0, at);
        self.push(mask);
    }

    /// Bits of a word are cleared.
    pub(crate) fn clear_bits(&mut self, at: usize, mask: u64) {
        self.begin(CLEAR, 0, at);
        self.push(mask);
    }
}

/// One change of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    /// Words, little endian, from a word on.
    Store {
        at: usize,
        words: &'a [u8],
    },
    Set {
        at: usize,
        mask: u64,
    },
    Clear {
        at: usize,
        mask: u64,
    },
}

impl Change<'_> {
    /// The first word that it changes.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        match *self {
            Change::Store { at, .. } | Change::Set { at, .. } | Change::Clear { at, .. } => at,
        }
    }
}

/// Takes the first change off `bytes`.
///
/// # Errors
/// [`Error::Corrupt`], which names word 0, where `bytes` are no changes.
// Inlined: a replay waits longer for an answer on its stack than for all else that is done here.
#[inline(always)]
pub(crate) fn next<'a>(bytes: &mut &'a [u8]) -> Result<Option<Change<'a>>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let what = take_word(bytes)?;
    let at = (what & ((1 << 48) - 1)) as usize;
    let count = (what >> 48 & 0xfff) as usize;
    Ok(Some(match what >> 60 {
        STORE => {
            let Some((words, rest)) = bytes.split_at_checked(count * 8) else {
                return Err(cut_off());
            };
            *bytes = rest;
            Change::Store { at, words }
        }
        SET => Change::Set { at, mask: take_word(bytes)? },
        CLEAR => Change::Clear { at, mask: take_word(bytes)? },
        other => return Err(unknown(other)),
    }))
}

#[inline(always)]
fn take_word(bytes: &mut &[u8]) -> Result<u64> {
    let Some((word, rest)) = bytes.split_first_chunk::<8>() else { return Err(cut_off()) };
    *bytes = rest;
    Ok(u64::from_le_bytes(*word))
}

#[cold]
fn unknown(change: u64) -> Error {
    Error::corrupt(0, format!("the log has a change of kind {change}"))
}

#[cold]
fn cut_off() -> Error {
    Error::corrupt(0, "a change in the log is cut off")
}

/// The system refused memory.
pub(crate) fn out_of_memory(used: usize, limit: usize, why: &str) -> Error {
    Error::OutOfMemory { used: used as u64 * 8, limit: limit as u64 * 8, why: Arc::from(why) }
}

/// The bits of the word that a change begins with, for the table of bytes.
#[cfg(test)]
pub(crate) fn layout() -> Vec<crate::object::LayoutRow> {
    assert_eq!([STORE, SET, CLEAR], [1, 2, 3], "as the table says");
    let mut redo = Redo::default();
    redo.begin(STORE, COUNT_MAX, (1 << 48) - 1);
    assert_eq!(redo.bytes(), (STORE << 60 | ((1 << 60) - 1)).to_le_bytes());
    vec![
        (0, 48, "word", "the first that changes, counted from the beginning of the heap"),
        (48, COUNT_MAX.count_ones(), "count", "of 1: words that follow and are stored; else 0"),
        (60, 4, "change", "1 stores words, 2 sets and 3 clears the bits of one mask that follows"),
    ]
}
