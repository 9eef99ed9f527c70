//! Errors: what is refused, and what to do next.

use std::sync::Arc;

use crate::object::ObjectId;

/// The reason why an operation was refused. The pool is as it was before. Inside a transaction the
/// transaction is, too, unless it says [`Error::Aborted`] from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The key has a length that the tree does not take.
    KeyLength {
        /// Bytes of the key that was given.
        len: usize,
        /// Fewest bytes of a key.
        min: usize,
        /// Most bytes of a key.
        max: usize,
    },
    /// The value has a length that the tree does not take.
    ValueLength {
        /// Bytes of the value that was given.
        len: usize,
        /// Fewest bytes of a value.
        min: usize,
        /// Most bytes of a value.
        max: usize,
    },
    /// `add` met a value that has not 8 bytes.
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
    /// An object of no words, or of more than the heap can hold in one piece.
    ObjectLength {
        /// Words that were asked for.
        words: usize,
        /// Most words of an object.
        most: usize,
    },
    /// The pool has reached its limit, or the system has no memory left.
    OutOfMemory {
        /// Bytes of the pool.
        used: u64,
        /// Bytes that it may have.
        limit: u64,
        /// The system's answer, where it was the system that refused.
        why: Arc<str>,
    },
    /// Another transaction holds the tree, and waiting for it could wait for ever: this transaction
    /// holds trees that the other may be waiting for. Give all up, and begin again with
    /// [`Pool::begin_on`](crate::Pool::begin_on), which takes several trees in one order.
    Conflict {
        /// The tree's name.
        tree: String,
    },
    /// A transaction of this thread holds the tree, and the thread would wait for itself: make the
    /// change in that transaction, or end it first.
    Reentrant {
        /// The tree's name.
        tree: String,
    },
    /// The thread of a transaction that holds the tree has ended without ending it, as by
    /// [`std::mem::forget`]: the tree can be changed again once the pool is opened again.
    Abandoned {
        /// The tree's name.
        tree: String,
    },
    /// The transaction was aborted, by a nested one that failed.
    Aborted,
    /// There is no tree of this name.
    NoTree {
        /// The name.
        name: String,
    },
    /// There is a tree of this name already.
    TreeExists {
        /// The name.
        name: String,
    },
    /// The tree was removed.
    TreeRemoved,
    /// The tree belongs to another pool than the transaction.
    OtherPool,
    /// No object begins there.
    NoObject(ObjectId),
    /// Stored words are not what was written.
    Corrupt {
        /// The byte of the heap where it shows.
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
    /// A file of the pool is not what was written.
    CorruptFile {
        /// The name of the file.
        file: String,
        /// At which byte of it.
        offset: u64,
        /// The damage.
        what: String,
    },
    /// The disk refused. After a commit or a checkpoint that said so, the pool takes no more
    /// transactions: open it again.
    Io {
        /// The failed step, and its file.
        what: String,
        /// The system's answer.
        kind: std::io::ErrorKind,
        /// The system's answer in words.
        why: Arc<str>,
    },
    /// The options cannot work, or contradict what the pool holds.
    Options(String),
    /// The pool is open to be read only.
    ReadOnly,
}

/// The result of an operation on a pool.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn io(what: impl Into<String>, cause: &std::io::Error) -> Error {
        Error::Io { what: what.into(), kind: cause.kind(), why: cause.to_string().into() }
    }

    pub(crate) fn corrupt(at: usize, what: impl Into<String>) -> Error {
        Error::Corrupt { offset: (at as u64).saturating_mul(8), what: what.into() }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::KeyLength { len, min, max } => {
                write!(f, "the key has {len} bytes: keys of this tree have {min} to {max}")
            }
            Error::ValueLength { len, min, max } => {
                write!(f, "the value has {len} bytes: values of this tree have {min} to {max}")
            }
            Error::NotACounter { len } => write!(
                f,
                "the value has {len} bytes, and a counter has 8: put 8 bytes, little endian, before adding"
            ),
            Error::Overflow { value, delta } => write!(
                f,
                "{value} + {delta} leaves the range of a 64-bit counter; the counter is unchanged"
            ),
            Error::ObjectLength { words, most } => {
                write!(f, "an object has 1 to {most} words of 8 bytes, not {words}")
            }
            Error::OutOfMemory { used, limit, why } => write!(
                f,
                "the pool has {used} bytes and may have {limit} ({why}): remove something, or open it with a higher limit"
            ),
            Error::Conflict { tree } => write!(
                f,
                "another transaction holds tree {tree:?}, and may wait for this one: abort, and begin again naming all trees at once"
            ),
            Error::Reentrant { tree } => write!(
                f,
                "a transaction of this thread holds tree {tree:?}: make the change in that transaction, or end it first"
            ),
            Error::Newer { file, found, known } => write!(
                f,
                "{file} was written by format {found}, and this program reads up to {known}: upgrade to the version of Sapwood that wrote it, or a later one"
            ),
            Error::Abandoned { tree } => write!(
                f,
                "a transaction holds tree {tree:?}, and its thread has ended without it: open the database again"
            ),
            Error::Aborted => {
                write!(f, "a nested transaction failed, so that the outer one is aborted")
            }
            Error::NoTree { name } => write!(f, "there is no tree {name:?}"),
            Error::TreeExists { name } => write!(f, "there is a tree {name:?} already"),
            Error::TreeRemoved => write!(f, "the tree was removed"),
            Error::OtherPool => write!(f, "the tree belongs to another pool"),
            Error::NoObject(id) => write!(f, "no object begins at {id}"),
            Error::Corrupt { offset, what } => {
                write!(f, "the heap is damaged at byte {offset}: {what}; `check` finds out how far")
            }
            Error::CorruptFile { file, offset, what } => {
                write!(f, "{file} is damaged at byte {offset}: {what}")
            }
            Error::Io { what, why, .. } => write!(f, "{what}: {why}"),
            Error::Options(why) => write!(f, "{why}"),
            Error::ReadOnly => write!(f, "the pool is open to be read only"),
        }
    }
}

impl std::error::Error for Error {}
