//! SQL over rows with typed columns.
//!
//! A [`Session`] executes [`Statement`]s over the tables of a [`Catalog`]. What a table is, this crate does not know: a
//! [`Source`] has typed columns and shows batches of its rows to any number of threads, and may change them.
//!
//! *Useful for* questions about rows of any origin, in the language that people know. *Not useful for* single
//! reads and changes of a program, which a table does by itself.
//!
//! `docs/sql.md` describes the language, `docs/design/sql.md` the way from a statement to its answer.
#![forbid(unsafe_code)]

mod answer;
mod bind;
mod convert;
mod error;
mod evaluate;
mod execute;
mod functions;
mod group;
mod kind;
mod like;
mod node;
mod order;
mod out;
mod parameters;
mod parse;
mod plan;
mod session;
mod source;
mod states;
mod time;

pub use answer::Answer;
pub use bind::function_names;
pub use error::{Error, ErrorKind, Result};
pub use execute::Options;
pub use parameters::parameter;
pub use session::{Outcome, Session, Statement, parse, parse_with};
pub use source::{
    Catalog, Change, ChangeError, Changed, Filling, Insertion, KeyFilter, Request, Room, Source,
    SourceResult, TableName, TableSummary,
};
