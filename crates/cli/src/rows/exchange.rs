//! Rows of tables in files of other programs: CSV, JSON lines, Parquet and Arrow, there and back.
//!
//! A row of a file is a list of [`cell::Cell`]s. A [`form::Form`] splits an entry of a table into
//! cells and joins cells to the same entry, byte for byte; a form that cannot do that for every entry
//! is not used to write a table ([`survey`]).
//!
//! | module | holds |
//! |---|---|
//! | `cell` | a value of a row, its type, and its text |
//! | `packed` | keys and values whose fields lie one behind the other, as cells |
//! | `form` | the forms in which entries are rows |
//! | `survey` | the form that fits all entries of a table |
//! | `origin` | what a file of typed columns says of the table that it came from |
//! | `file_format` | formats, by the ending of a name |
//! | `text_reader` | rows of CSV and JSON lines |
//! | `text_rows` | rows of CSV and JSON lines as their text |
//! | `column_reader` | rows of files whose columns have types |
//! | `writer` | rows in any of the formats |
//! | `reader` | the way back |

pub(crate) mod cell;
mod column_reader;
#[cfg(test)]
mod damage;
pub(crate) mod file_format;
pub(crate) mod form;
pub(crate) mod origin;
mod packed;
pub(crate) mod reader;
pub(crate) mod survey;
mod text_reader;
mod text_rows;
pub(crate) mod writer;
