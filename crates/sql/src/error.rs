//! What is wrong with a statement, and where.

use std::fmt;

use sqlparser::tokenizer::{Location, Span};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A statement that is refused, or that has no answer.
///
/// Its text has three parts: what is wrong and what to do, the line of the statement, and marks below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    what: String,
    kind: ErrorKind,
    at: Option<Span>,
    /// The line of the statement and the marks below it.
    shown: Option<(String, String)>,
}

/// The ways in which a statement ends without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// It cannot be read.
    Syntax,
    /// It can be read, and is not supported.
    Unsupported,
    /// It names what is not there, or uses a value where its type has no meaning.
    Meaning,
    /// A value has no result: an overflow, a division by zero, a text that is no number.
    Value,
    /// Rows cannot be read or changed.
    Source,
    /// It needs more memory than it may take.
    Memory,
    /// It was told to stop.
    Cancelled,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, what: impl Into<String>) -> Error {
        Error { what: what.into(), kind, at: None, shown: None }
    }

    pub(crate) fn meaning(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Meaning, what)
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, what)
    }

    /// A value that has no result, or none that its reader can use.
    pub fn value(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Value, what)
    }

    pub(crate) fn source(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Source, what)
    }

    /// Where in the statement, unless that is known more closely.
    pub(crate) fn at(mut self, span: Span) -> Error {
        if self.at.is_none() && span.start.line > 0 {
            self.at = Some(span);
        }
        self
    }

    /// With the line that it is about.
    pub(crate) fn shown_in(mut self, sql: &str) -> Error {
        let Some(Span { start, end }) = self.at else { return self };
        let Some(line) = sql.split('\n').nth(start.line.saturating_sub(1) as usize) else {
            return self;
        };
        let len = line.chars().count();
        let begin = (start.column.saturating_sub(1) as usize).min(len);
        // Spans end with their last sign, or behind it, and perhaps in a later line.
        let end = if end.line > start.line { len } else { end.column.saturating_sub(1) as usize };
        let marks = end.clamp(begin + 1, len.max(begin + 1)) - begin;
        let line: String = line.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
        self.shown = Some((line, format!("{}{}", " ".repeat(begin), "^".repeat(marks))));
        self
    }

    /// Of which kind it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What is wrong, without the line that it is about.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The line and the column of the statement, each from 1, if one place of it is wrong.
    pub fn place(&self) -> Option<(u64, u64)> {
        self.at.map(|Span { start: Location { line, column }, .. }| (line, column))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.shown {
            Some((line, marks)) => write!(f, "\n  {line}\n  {marks}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
