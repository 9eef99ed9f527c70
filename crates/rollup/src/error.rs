//! What can be refused, and what to do next.

use std::fmt;

/// Why a schema, rows or a query were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The parts of a schema do not fit together, or one of them is not known.
    #[error("the schema cannot be: {0}")]
    Schema(String),
    /// The parts of a query do not fit together, or to the schema.
    #[error("the query cannot be answered: {0}")]
    Query(String),
    /// An expression cannot be read.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A time, an interval or a time zone cannot be read.
    #[error("{0}")]
    Time(String),
    /// Rows cannot be read as what they are said to be.
    #[error("{0}")]
    Input(String),
    /// The limits of the live facts would be passed. No row of the batch is in.
    #[error(
        "{what} would pass the limit of {limit}: seal the facts into a segment, raise the limit, or drop old intervals; no row of the batch was taken"
    )]
    Full {
        /// Facts or bytes, and how many.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// A figure leaves the range of its type.
    #[error("{column} leaves the range of its type: ask for fewer facts, or for a sum of doubles")]
    Overflow {
        /// The column of the answer.
        column: String,
    },
    /// Bytes of a stored file are not what was written.
    #[error("{file} is corrupt at offset {offset}: {what}")]
    Corrupt {
        /// The file.
        file: String,
        /// At which byte of it.
        offset: u64,
        /// What is wrong there.
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
        found: u32,
        /// The last one that is known.
        known: u32,
    },
    /// A file cannot be written or read.
    #[error("{what}: {cause}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system answered.
        cause: String,
        /// Its kind.
        kind: std::io::ErrorKind,
    },
    /// An earlier failure left in memory less than what lasts, or the other way round.
    #[error("the roll-up takes nothing more since a failure: {0}; open it again")]
    Failed(String),
    /// The caller cancelled the query.
    #[error("the query was cancelled")]
    Cancelled,
    /// The time of the query is over.
    #[error("the query took longer than its timeout: ask for fewer facts, or give it more time")]
    Timeout,
    /// The map of the facts refused a change, for lack of memory of the system.
    #[error("the facts: {0}")]
    Facts(#[from] sapwood_chunkmap::Error),
    /// A sketch was refused.
    #[error(transparent)]
    Sketch(#[from] sapwood_aggregate::QueryError),
    /// A sketch of Apache DataSketches was refused.
    #[error("the sketch cannot be read: {0}")]
    Datasketch(String),
}

impl Error {
    /// Bytes that are wrong, of a file that [`in_file`](Self::in_file) names.
    #[cold]
    pub(crate) fn corrupt(offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt { file: String::new(), offset, what: what.into() }
    }

    /// Refuses a later version of the format of a file that [`in_file`](Self::in_file) names.
    pub(crate) fn expect_known(found: u32, known: u32) -> Result<()> {
        match sapwood_disk::is_later_version(found, known) {
            true => Err(Error::Newer { file: String::new(), found, known }),
            false => Ok(()),
        }
    }

    /// Names the file.
    pub(crate) fn in_file(self, name: &str) -> Error {
        match self {
            Error::Corrupt { file, offset, what } if file.is_empty() => {
                Error::Corrupt { file: name.to_owned(), offset, what }
            }
            Error::Newer { file, found, known } if file.is_empty() => {
                Error::Newer { file: name.to_owned(), found, known }
            }
            error => error,
        }
    }

    #[cold]
    pub(crate) fn io(what: impl Into<String>, cause: &std::io::Error) -> Error {
        Error::Io { what: what.into(), cause: cause.to_string(), kind: cause.kind() }
    }
}

/// The result of what this crate does.
pub type Result<T> = std::result::Result<T, Error>;

/// An expression that cannot be read: where, and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The whole text.
    pub text: String,
    /// At which byte.
    pub offset: usize,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, offset, what } = self;
        write!(f, "the expression `{text}` cannot be read at byte {offset}: {what}")
    }
}

impl std::error::Error for SyntaxError {}
