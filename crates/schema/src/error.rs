//! The ways in which schemas, rows and values are refused.

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What is wrong with a schema, a row or a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text of a schema cannot be read.
    #[error("the schema cannot be read at byte {offset}: {what}")]
    Syntax {
        /// Where in the text, in bytes.
        offset: usize,
        /// What is expected, or wrong.
        what: String,
    },
    /// A schema that cannot be.
    #[error("{0}")]
    Schema(String),
    /// A value that its column cannot have.
    #[error("column `{column}` ({wanted}): {what}")]
    Value {
        /// The column's name.
        column: String,
        /// Its type.
        wanted: String,
        /// What is wrong with the value.
        what: String,
    },
    /// Bytes that are not a row of the schema.
    #[error("the {side} is no row of this schema: {what}")]
    Bytes {
        /// `key` or `value`.
        side: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

impl Error {
    pub(crate) fn key(what: impl Into<String>) -> Error {
        Error::Bytes { side: "key", what: what.into() }
    }

    pub(crate) fn value(what: impl Into<String>) -> Error {
        Error::Bytes { side: "value", what: what.into() }
    }
}
