//! What can go wrong, where, and what to do next.

use std::sync::Arc;

use crate::EngineError;

/// The result of an operation on a [`Db`](crate::Db) or a [`Table`](crate::Table).
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation was refused. Nothing was changed, unless the variant says what was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that no table can have.
    #[error(
        "table name {name:?} {why}; use 1 to {max} letters, digits, `_`, `-` or `.`, \
         beginning with a letter or a digit",
        max = crate::db::NAME_BYTES_MAX
    )]
    TableName {
        /// The name given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The table to create is there already.
    #[error("table `{name}` exists already; open it with `Db::table`, or choose another name")]
    TableExists {
        /// Its name.
        name: String,
    },
    /// The table to open or drop is not there.
    #[error("no table `{name}`; {}", known_tables(known))]
    TableMissing {
        /// The name given.
        name: String,
        /// Some of the tables that are there, in order.
        known: Vec<String>,
    },
    /// The table's engine refused.
    #[error("table `{table}`: {cause}{}", next_step(cause))]
    Engine {
        /// The name of the table.
        table: Arc<str>,
        /// What the engine said.
        cause: EngineError,
    },
    /// A batch stopped: its first `done` entries are in, the others are not.
    #[error(
        "table `{table}`: the batch stopped after {done} entries, which are in: {cause}{}",
        next_step(cause)
    )]
    Batch {
        /// The name of the table.
        table: Arc<str>,
        /// How many entries of the batch are in the table.
        done: usize,
        /// What the engine said to the next one.
        cause: EngineError,
    },
    /// [`Table::check`](crate::Table::check) found a broken invariant: a bug of the engine.
    #[error(
        "table `{table}` is corrupt: {what}; stop using it, and report this with `Table::dump`"
    )]
    Corrupt {
        /// The name of the table.
        table: Arc<str>,
        /// The invariant, and where it does not hold.
        what: String,
    },
}

impl Error {
    /// What the engine said, when it was the engine that refused.
    ///
    /// ```
    /// use sapwood::{Db, EngineError, TableOptions};
    ///
    /// let table = Db::in_memory().create_table("t", TableOptions::default())?;
    /// let error = table.put(b"", b"value").unwrap_err();
    /// assert_eq!(error.engine(), Some(&EngineError::KeyLength { len: 0 }));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn engine(&self) -> Option<&EngineError> {
        match self {
            Self::Engine { cause, .. } | Self::Batch { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// How many names an error lists.
pub(crate) const KNOWN_COUNT: usize = 8;

fn known_tables(known: &[String]) -> String {
    match known {
        [] => "there is none yet, `Db::create_table` makes one".to_owned(),
        some if some.len() < KNOWN_COUNT => format!("there are: {}", some.join(", ")),
        some => format!("there are: {}, ...", some.join(", ")),
    }
}

/// What only the facade knows to say: the option by its name here.
fn next_step(cause: &EngineError) -> &'static str {
    match cause {
        EngineError::OutOfMemory { budget: u64::MAX, .. } => "",
        EngineError::OutOfMemory { .. } => " (`TableOptions::memory_budget`)",
        _ => "",
    }
}
