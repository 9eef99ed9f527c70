//! Errors: each says what was refused, and what to do next.

use sapwood_engine::Refused;
use sapwood_mem::OutOfMemory;

use crate::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// Why an operation was refused. Whatever it says, the map is as it was before,
/// unless the operation's own documentation says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Keys are 1 byte to [`KEY_BYTES_MAX`].
    KeyLength {
        /// Bytes of the key that was given.
        len: usize,
    },
    /// Values are at most [`VALUE_BYTES_MAX`].
    ValueLength {
        /// Bytes of the value that was given or asked for.
        len: usize,
    },
    /// `add` met a value that is not a counter of 8 bytes.
    NotACounter {
        /// Bytes of the value.
        len: usize,
    },
    /// `add` would leave the range of `i64`.
    Overflow {
        /// The counter as it is.
        value: i64,
        /// The operand of the addition.
        delta: i64,
    },
    /// The memory budget is used up, or the system has no memory left.
    OutOfMemory {
        /// Bytes the map has mapped.
        used: u64,
        /// Bytes it may map; `u64::MAX` without a budget.
        budget: u64,
        /// Bytes that did not fit.
        wanted: u64,
    },
    /// A closure that is changing a key's value asked for the same key again.
    Reentrant,
    /// A closure that is changing one key's value asked for another key, whose
    /// value another thread is changing at this moment. Waiting for it here could
    /// wait for ever; retry once the closure has returned.
    WouldBlock,
    /// The journal has no room for the change, which was not made.
    Journal(Refused),
    /// The options cannot work together.
    Options(&'static str),
}

/// The result of an operation on a map.
pub type Result<T> = std::result::Result<T, Error>;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::KeyLength { len: 0 } => {
                write!(f, "the key is empty: keys are 1 to {KEY_BYTES_MAX} bytes")
            }
            Error::KeyLength { len } => write!(
                f,
                "the key has {len} bytes, more than the {KEY_BYTES_MAX} a key may have: shorten or hash it"
            ),
            Error::ValueLength { len } => write!(
                f,
                "the value has {len} bytes, more than the {VALUE_BYTES_MAX} a value may have: split it over several keys"
            ),
            Error::NotACounter { len } => write!(
                f,
                "the value has {len} bytes, and a counter has 8: put 8 bytes, little endian, before adding"
            ),
            Error::Overflow { value, delta } => write!(
                f,
                "{value} + {delta} leaves the range of a 64-bit counter; the counter is unchanged"
            ),
            Error::OutOfMemory { used, budget: u64::MAX, wanted } => write!(
                f,
                "the system has no memory for {wanted} more bytes ({used} bytes are mapped): free some, or remove entries"
            ),
            Error::OutOfMemory { used, budget, wanted } => write!(
                f,
                "{wanted} more bytes do not fit into the memory budget: {used} of {budget} bytes are in use; remove entries or raise the budget"
            ),
            Error::Reentrant => f.write_str(
                "a closure that is changing this key asked for the same key again: use the value the closure was given",
            ),
            Error::WouldBlock => f.write_str(
                "another thread is changing this key, and waiting for it inside a closure that changes another key could wait for ever: retry after the closure",
            ),
            Error::Journal(refused) => {
                write!(f, "the change was not made, as its journal has no room: {refused}")
            }
            Error::Options(why) => write!(f, "these options cannot work: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Error {
        Error::Journal(refused)
    }
}

impl From<OutOfMemory> for Error {
    fn from(refused: OutOfMemory) -> Error {
        let OutOfMemory { used, budget, wanted } = refused;
        Error::OutOfMemory { used, budget, wanted }
    }
}

/// A batch stopped: the first `done` entries are done, the others are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchError {
    /// Entries that are done.
    pub done: usize,
    /// Why the next one was refused.
    pub error: Error,
}

impl std::fmt::Display for BatchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "entry {} of the batch (the ones before it are done): {}", self.done, self.error)
    }
}

impl std::error::Error for BatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
