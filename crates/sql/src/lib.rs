//! SQL over rows with typed columns.
#![forbid(unsafe_code)]

mod convert;
mod error;
mod evaluate;
mod functions;
mod group;
mod kind;
mod like;
mod node;
mod source;
mod states;
mod time;
mod vector;

pub use error::{Error, ErrorKind, Result};
pub use source::{
    Catalog, Change, ChangeError, Changed, KeyFilter, Request, Scan, Sink, Source, SourceColumn,
    SourceResult, TableName, TableSummary,
};
pub use vector::{BATCH_ROWS, Batch, Data, Strings, Vector};
/// An answer.
#[derive(Debug)]
pub struct Answer;
