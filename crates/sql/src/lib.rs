//! SQL over rows with typed columns.
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
mod parse;
mod plan;
mod session;
mod source;
mod states;
mod time;
mod vector;

pub use answer::Answer;
pub use error::{Error, ErrorKind, Result};
pub use execute::Options;
pub use session::{Outcome, Session, Statement, parse};
pub use source::{
    Catalog, Change, ChangeError, Changed, KeyFilter, Request, Scan, Sink, Source, SourceColumn,
    SourceResult, TableName, TableSummary,
};
pub use vector::{BATCH_ROWS, Batch, Data, Strings, Vector};
