//! Something wrong with the files of a database.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

#[cfg(feature = "rollup")]
use crate::rollup;
use crate::{HashEngineError, LogError, TreeEngineError};

/// Something wrong with the files of a database in a directory: what, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The table that it concerns, if it is one.
    pub table: Option<String>,
    /// The file, or the folder.
    pub path: PathBuf,
    /// At which byte of the file, where that is known.
    pub offset: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(table) = &self.table {
            write!(f, "table {table}: ")?;
        }
        write!(f, "{}", self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, ", byte {offset}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl Problem {
    pub(super) fn new(path: &Path, what: impl ToString) -> Problem {
        Problem { table: None, path: path.to_owned(), offset: None, what: what.to_string() }
    }

    pub(super) fn of_table(self, name: &str) -> Problem {
        Problem { table: Some(name.to_owned()), ..self }
    }

    fn at(folder: &Path, file: &str, offset: u64, what: &str) -> Problem {
        let path = folder.join(file);
        Problem { table: None, path, offset: Some(offset), what: what.to_owned() }
    }

    /// Of the log, in its folder.
    pub(super) fn of_log(folder: &Path, error: &LogError) -> Problem {
        match error {
            LogError::CorruptFile { file, offset, what } => {
                Problem::at(folder, file, *offset, what)
            }
            other => Problem::new(folder, other),
        }
    }

    /// Of a hash table, in its folder.
    pub(super) fn of_hash(folder: &Path, name: &str, error: &HashEngineError) -> Problem {
        let problem = match error {
            HashEngineError::Corrupt { file, offset, what } => {
                Problem::at(folder, file, *offset, what)
            }
            other => Problem::new(folder, other),
        };
        problem.of_table(name)
    }

    /// Of a roll-up table, in its folder.
    #[cfg(feature = "rollup")]
    pub(super) fn of_rollup(folder: &Path, name: &str, error: &rollup::Error) -> Problem {
        let problem = match error {
            rollup::Error::Corrupt { file, offset, what } => {
                Problem::at(folder, file, *offset, what)
            }
            other => Problem::new(folder, other),
        };
        problem.of_table(name)
    }

    /// Of the pool of tree tables, in its folder.
    pub(super) fn of_trees(folder: &Path, error: &TreeEngineError) -> Problem {
        match error {
            TreeEngineError::CorruptFile { file, offset, what } => {
                Problem::at(folder, file, *offset, what)
            }
            other => Problem::new(folder, other),
        }
    }
}
