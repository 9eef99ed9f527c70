//! Typed columns of tables.
//!
//! A [`Schema`] names the columns of a table and their [`Type`]s, and says which of them make the key.
//! Rows of a schema are bytes: the key sorts as its columns do, and the value has the other columns, those
//! of fixed width first, so that one column is read or changed without parsing the row ([`RowFormat`]). A
//! [`Value`] is what a column of a row has, outside of any table. [`Inference`] finds the types of columns
//! that are text.
//!
//! *Useful for* rows that programs, files and questions share. *Not useful for* values that are one number
//! or one blob: plain bytes need no schema.
//!
//! `docs/design/schema.md` describes the bytes.
#![forbid(unsafe_code)]

mod batch;
mod calendar;
mod decimal;
mod error;
mod infer;
pub mod key;
mod nearest;
mod row;
mod schema;
mod types;
mod value;

pub use batch::{BATCH_ROWS, Batch, Data, Scan, Sink, SourceColumn, Strings, Vector};
pub use calendar::{
    Civil, DAY_SECONDS, date_of_text, date_to_text, days_of, timestamp_of_text, timestamp_to_text,
};
pub use decimal::{POWERS_OF_TEN, decimal_of_text, decimal_to_text, rescale};
pub use error::{Error, Result};
pub use infer::{Inference, Missing};
pub use nearest::nearest;
pub use row::{Cell, ColumnPiece, Projection, RowCut, RowFormat, write_array};
pub use schema::{Column, Schema, SchemaBuilder};
pub use types::{DECIMAL_DIGITS_MAX, Precision, Type};
pub use value::Value;
