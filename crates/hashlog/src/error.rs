//! Errors: what is refused, and what to do next.

use std::sync::Arc;

use sapwood_engine::Refused;
use sapwood_mem::reserve::{NoAddressSpace, NoMemory};

/// The reason why an operation was refused. Whatever it says, the log is as it was before, unless
/// the operation's own documentation says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The key has a length that the table does not take.
    KeyLength {
        /// Bytes of the key that was given.
        len: usize,
        /// Fewest bytes of a key.
        min: usize,
        /// Most bytes of a key.
        max: usize,
    },
    /// The value has a length that the table does not take.
    ValueLength {
        /// Bytes of the value that was given or asked for.
        len: usize,
        /// Fewest bytes of a value.
        min: usize,
        /// Most bytes of a value: a record must fit into a page.
        max: usize,
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
        /// Bytes in use.
        used: u64,
        /// Bytes that may be; `u64::MAX` without a budget.
        budget: u64,
        /// Bytes that did not fit.
        wanted: u64,
    },
    /// The process gets no address space for a log, which needs some before it needs memory.
    AddressSpace {
        /// Bytes that would have done.
        wanted: u64,
        /// The system's answer in words.
        why: Arc<str>,
    },
    /// A closure that is changing a key's value asked for the same key again.
    Reentrant,
    /// Inside a closure that reads or changes a value, an operation needed to wait for all
    /// readers to leave, this closure's own among them. Retry it after the closure.
    WouldBlock,
    /// The disk refused.
    Io {
        /// The failed step, and its file.
        what: String,
        /// The system's answer.
        kind: std::io::ErrorKind,
        /// The system's answer in words.
        why: Arc<str>,
    },
    /// The journal has no room for the change, which was not made.
    Journal(Refused),
    /// Stored bytes are not what was written.
    Corrupt {
        /// The name of the file.
        file: String,
        /// At which byte of it.
        offset: u64,
        /// The damage.
        what: String,
    },
    /// A later version of Sapwood has written a file. It is as it should be, and is not changed.
    Newer {
        /// The name of the file.
        file: String,
        /// The version of its format.
        found: u32,
        /// The last one that is known.
        known: u32,
    },
    /// The newest checkpoint cannot be opened, and an older one can be. Nothing was changed.
    CheckpointDamaged {
        /// The newest one.
        number: u64,
        /// The damage.
        cause: Arc<Error>,
        /// The newest of those that open.
        opens: u64,
    },
    /// The log is a view of a checkpoint, and the operation would write to its directory.
    View,
    /// The table has no directory, and the operation needs one.
    NoDirectory,
    /// The table's disk is open to be read only, and the operation would change the table.
    ReadOnly,
    /// The options cannot work, or contradict what the directory holds.
    Options(String),
    /// An argument is outside of what the operation takes: which, and what it takes.
    Argument(String),
}

/// The result of an operation on a log.
pub type Result<T> = std::result::Result<T, Error>;

/// A batch stopped: the first `done` entries were handled, `error` met the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchError {
    /// The number of entries of the batch that are done.
    pub done: usize,
    /// The error of the next one.
    pub error: Error,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::KeyLength { len, min, max } if min == max => {
                write!(f, "the key has {len} bytes: keys of this table have {min}")
            }
            Error::KeyLength { len, min, max } => write!(
                f,
                "the key has {len} bytes: keys are {min} to {max} bytes; shorten or hash it"
            ),
            Error::ValueLength { len, min, max } if min == max => {
                write!(f, "the value has {len} bytes: values of this table have {min}")
            }
            Error::ValueLength { len, max, .. } => write!(
                f,
                "the value has {len} bytes, more than the {max} that fit into a page: split it over several keys, or make the table with larger pages"
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
                "{wanted} more bytes do not fit into the memory budget: {used} of {budget} bytes are in use; remove entries, raise the budget, or give the table a directory to spill to"
            ),
            Error::AddressSpace { wanted, why } => write!(
                f,
                "the process gets no {wanted} more bytes of address space ({why}): raise its limit (`ulimit -v`), or keep fewer tables"
            ),
            Error::Reentrant => f.write_str(
                "a closure that is changing this key asked for the same key again: use the value the closure was given",
            ),
            Error::WouldBlock => f.write_str(
                "this must wait until all readers have left, and the closure it was called in is one of them: retry after the closure",
            ),
            Error::Io { what, why, .. } => write!(f, "{what}: {why}"),
            Error::Journal(refused) => {
                write!(f, "the change was not made, as its journal has no room: {refused}")
            }
            Error::Corrupt { file, offset, what } => {
                write!(f, "{file} is corrupt at offset {offset}: {what}")
            }
            Error::Newer { file, found, known } => write!(
                f,
                "{file} was written by format {found}, and this program reads up to {known}: upgrade to the version of Sapwood that wrote it, or a later one"
            ),
            Error::CheckpointDamaged { number, cause, opens } => write!(
                f,
                "checkpoint {number} cannot be opened: {cause}; bring the file back from a copy, or go back to checkpoint {opens}, which opens"
            ),
            Error::View => f.write_str(
                "this is a view of a checkpoint, which only reads files: go back to the checkpoint to go on from it",
            ),
            Error::NoDirectory => f.write_str(
                "the table lives in memory alone: open it with a directory to take checkpoints",
            ),
            Error::ReadOnly => f.write_str(
                "the table is open to be read only: nothing was changed; open it to be written",
            ),
            Error::Options(why) => write!(f, "these options cannot work: {why}"),
            Error::Argument(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Error {
        Error::Journal(refused)
    }
}

impl Error {
    pub(crate) fn io(what: impl Into<String>, cause: &std::io::Error) -> Error {
        Error::Io { what: what.into(), kind: cause.kind(), why: cause.to_string().into() }
    }
}

impl std::fmt::Display for BatchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the batch stopped after {} entries: {}", self.done, self.error)
    }
}

impl std::error::Error for BatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The error for memory that could not be had, in a log that uses so many bytes.
pub(crate) fn no_memory(used: u64) -> impl Fn(std::io::Error) -> Error {
    move |cause| {
        let inner = cause.get_ref();
        if let Some(space) = inner.and_then(|inner| inner.downcast_ref::<NoAddressSpace>()) {
            return Error::AddressSpace { wanted: space.bytes, why: space.why.as_str().into() };
        }
        let memory = inner.and_then(|inner| inner.downcast_ref::<NoMemory>());
        let wanted = memory.map_or(0, |memory| memory.bytes);
        Error::OutOfMemory { used, budget: u64::MAX, wanted }
    }
}
