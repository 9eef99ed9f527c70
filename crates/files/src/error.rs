//! Errors of files, for people.

use std::io;
use std::path::PathBuf;

/// The answer of an operation on files.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A file that cannot be read or written, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The reader was told to stop.
    #[error("{0}")]
    Cancelled(String),
    /// A name or an option tells no format, or one that this build cannot read and write.
    #[error("{0}")]
    Format(String),
    /// A file is there, and was not to be replaced.
    #[error("{} is there, and stays as it is: give another name, or remove it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read, or is not of its format.
    #[error("{0}")]
    Read(String),
    /// The file cannot be written.
    #[error("{what}")]
    Write {
        /// The file or the output, and the reason.
        what: String,
        /// The kind of the reason.
        kind: io::ErrorKind,
    },
}

impl Error {
    /// An error of writing.
    pub(crate) fn write(what: String, error: &io::Error) -> Error {
        Error::Write { what, kind: error.kind() }
    }
}
