//! Why a command is not done.

use std::borrow::Cow;

use crate::protocol::reply::Reply;
use crate::store::keyspace;

/// Why a command is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The text that the client gets, with its code.
    Text(Cow<'static, str>),
    /// It must run with no other beside it.
    NeedsExclusive,
}

impl Refusal {
    /// `ERR` and a text.
    pub(crate) fn err(text: impl std::fmt::Display) -> Refusal {
        Refusal::Text(format!("ERR {text}").into())
    }

    /// A text with its code.
    pub(crate) const fn text(text: &'static str) -> Refusal {
        Refusal::Text(Cow::Borrowed(text))
    }

    /// A number of arguments that is wrong.
    pub(crate) fn arguments(name: &str) -> Refusal {
        Refusal::err(format!("wrong number of arguments for '{name}' command"))
    }

    pub(crate) fn unknown(args: &[&[u8]]) -> Refusal {
        let cut = |arg: &[u8], most: usize| {
            String::from_utf8_lossy(&arg[..arg.len().min(most)]).into_owned()
        };
        let mut beginning = String::new();
        for arg in &args[1..] {
            if beginning.len() >= 128 {
                break;
            }
            beginning += &format!("'{}' ", cut(arg, 128 - beginning.len()));
        }
        let name = cut(args[0], 128);
        Refusal::err(format!("unknown command '{name}', with args beginning with: {beginning}"))
    }
}

/// Arguments that do not fit together.
pub(crate) const SYNTAX: Refusal = Refusal::text("ERR syntax error");
/// A number that is none.
pub(crate) const NOT_AN_INTEGER: Refusal =
    Refusal::text("ERR value is not an integer or out of range");
/// A floating-point number that is none.
pub(crate) const NOT_A_FLOAT: Refusal = Refusal::text("ERR value is not a valid float");
/// A key on which a user has not the rights.
pub(crate) const NO_KEY: Refusal = Refusal::text(
    "NOPERM this user has no permissions to access one of the keys used as arguments",
);
/// A channel on which a user has not the rights.
pub(crate) const NO_CHANNEL: Refusal = Refusal::text(
    "NOPERM this user has no permissions to access one of the channels used as arguments",
);
/// Without memory.
pub(crate) const OUT_OF_MEMORY: Refusal =
    Refusal::text("OOM command not allowed when used memory > 'maxmemory'.");
/// A number that no database has.
pub(crate) const NO_DATABASE: Refusal = Refusal::text("ERR DB index is out of range");

impl From<keyspace::Error> for Refusal {
    fn from(error: keyspace::Error) -> Refusal {
        match error {
            keyspace::Error::NeedsExclusive => Refusal::NeedsExclusive,
            keyspace::Error::Table(error) => error.into(),
            error => Refusal::err(error),
        }
    }
}

impl From<sapwood::Error> for Refusal {
    fn from(error: sapwood::Error) -> Refusal {
        use sapwood::{Error, HashEngineError, OrderedEngineError};
        match error {
            Error::HashEngine { cause: HashEngineError::OutOfMemory { .. }, .. }
            | Error::HashBatch { cause: HashEngineError::OutOfMemory { .. }, .. }
            | Error::OrderedEngine { cause: OrderedEngineError::OutOfMemory { .. }, .. } => {
                OUT_OF_MEMORY
            }
            error if error.lacks_room() || matches!(error, Error::Log { .. }) => {
                Refusal::Text(format!("MISCONF {error}").into())
            }
            error => Refusal::err(error),
        }
    }
}

impl From<Refusal> for String {
    fn from(refusal: Refusal) -> String {
        match refusal {
            Refusal::Text(text) => text.into_owned(),
            Refusal::NeedsExclusive => "ERR this needs the database for itself".to_owned(),
        }
    }
}

/// Writes a refusal as a reply.
pub(crate) fn refuse(reply: &mut Reply<'_>, refusal: &Refusal) {
    match refusal {
        Refusal::Text(text) => reply.error(text),
        Refusal::NeedsExclusive => reply.error("ERR this needs the database for itself"),
    }
}
