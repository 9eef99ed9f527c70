//! Errors: what is refused, and what to do next.

use std::io;
use std::sync::Arc;

use sapwood_disk::log::Damage;

/// The reason why something was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is not what was written.
    #[error("{file} is damaged at byte {offset}: {what}; bring it back from a copy")]
    CorruptFile {
        /// The name of the file.
        file: String,
        /// At which byte of it.
        offset: u64,
        /// The damage.
        what: String,
    },
    /// A later version of Sapwood has written a file. It is as it should be, and is not changed.
    #[error(
        "{file} was written by format {found}, and this program reads up to {known}: upgrade to the version of Sapwood \
         that wrote it, or a later one"
    )]
    Newer {
        /// The name of the file.
        file: String,
        /// The version of its format.
        found: u64,
        /// The last one that is known.
        known: u64,
    },
    /// The disk refused. After a sync of which this is said, the log takes no more changes: those
    /// that were made behind the last sync that succeeded may last, or not.
    #[error("{what}: {why}")]
    Io {
        /// The failed step.
        what: String,
        /// The system's answer.
        kind: io::ErrorKind,
        /// The system's answer in words.
        why: Arc<str>,
    },
    /// The log could not get room for a change, which was not made. It takes changes as soon as
    /// there is room.
    #[error("no room for the change, which was not made: {why}")]
    NoRoom {
        /// The system's answer.
        kind: io::ErrorKind,
        /// The system's answer in words.
        why: Arc<str>,
    },
    /// The log does not have what came behind a position any more.
    #[error(
        "what came behind position {position} of the log is gone with a checkpoint: it begins at {first} \
         now; take a copy of the tables, and follow the log from there"
    )]
    Gone {
        /// The position.
        position: u64,
        /// The first one that there is.
        first: u64,
    },
    /// The entries of a table cannot be had.
    #[error("a table cannot be saved: {why}")]
    Contents {
        /// What its engine says.
        why: String,
    },
    /// A table is too many, or has a name or a description that does not fit.
    #[error("{0}")]
    Table(String),
}

/// The result of an operation on a log.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn io(what: impl Into<String>, cause: &io::Error) -> Error {
        Error::Io { what: what.into(), kind: cause.kind(), why: cause.to_string().into() }
    }

    pub(crate) fn no_room(cause: &io::Error) -> Error {
        Error::NoRoom { kind: cause.kind(), why: cause.to_string().into() }
    }

    /// Of reading the log.
    pub(crate) fn unread(cause: &io::Error) -> Error {
        let damage = cause.get_ref().and_then(|inner| inner.downcast_ref::<Damage>());
        match damage {
            Some(damage) => Error::damaged(damage),
            None if cause.kind() == io::ErrorKind::InvalidData => {
                Error::corrupt("the log", 0, cause.to_string())
            }
            None => Error::io("read the log", cause),
        }
    }

    /// Refuses a file whose first bytes are those of a later version: the byte before the last one is its number.
    pub(crate) fn expect_known(file: &str, begin: &[u8], magic: [u8; 8]) -> Result<()> {
        match begin.first_chunk::<8>() {
            Some(&[ref kind @ .., found, last])
                if kind[..] == magic[..6] && last == magic[7] && found > magic[6] =>
            {
                let (found, known) = (found.into(), magic[6].into());
                Err(Error::Newer { file: file.to_owned(), found, known })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn damaged(damage: &Damage) -> Error {
        Error::corrupt(&damage.file, damage.offset, damage.what.clone())
    }

    pub(crate) fn corrupt(file: &str, offset: u64, what: impl Into<String>) -> Error {
        Error::CorruptFile { file: file.to_owned(), offset, what: what.into() }
    }
}
