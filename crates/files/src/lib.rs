//! Files of rows: CSV, JSON, MessagePack, Parquet and Arrow, read into batches of typed columns, and written.
//!
//! A [`FileSource`] is a file whose columns have types: those that the file says, or those that its first rows
//! have. A pattern (`logs/*.csv`) and a folder are many files as one. Every row counts, and none has a key. Any number
//! of threads read it: text is cut into blocks between records, which threads parse on their own, and Parquet is
//! shared by its groups of rows. A [`FileWriter`] writes rows of typed columns into a file that is there whole or not
//! at all.
//!
//! ```
//! use std::ops::ControlFlow;
//! use sapwood::files::{FileSource, ReadOptions};
//!
//! # let folder = tempfile::tempdir().expect("a directory for the example");
//! # let path = folder.path().join("flights.csv");
//! std::fs::write(&path, "carrier,delay\nUA,11\nAA,\n").expect("room");
//! let flights = FileSource::open(&path, &ReadOptions::default())?;
//! assert_eq!(flights.columns()[1].kind.to_string(), "i64");
//!
//! let mut rows = 0;
//! let scan = flights.scan(&[1], false)?;
//! scan.work(&mut |_, batch| {
//!     rows += batch.len;
//!     ControlFlow::Continue(())
//! })
//! .expect("it is whole");
//! assert_eq!(rows, 2);
//! # Ok::<(), sapwood::files::Error>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `options` | what is said of a file |
//! | `format`, `packing` | formats and packing, by names |
//! | `pattern` | files that a name stands for |
//! | `input`, `watch` | the bytes of a file, unpacked, from the beginning as often as wanted, under a watch |
//! | `content` | the format that a name or the first bytes tell |
//! | `blocks`, `cuts` | text in blocks that end between records |
//! | `records` | the fields of the records of CSV |
//! | `looks` | what is known of the columns of a file, and the types that they have |
//! | `habits` | what other programs write, and how it is told |
//! | `field` | text as values of a column |
//! | `text` | a file of text, whose types may widen |
//! | `csv`, `json`, `columnar` | files of each format |
//! | `message_pack` | MessagePack as lines of JSON |
//! | `members`, `objects` | values of JSON as they are written; the objects in a block |
//! | `source` | a file, or several, as a source |
//! | `write` | the way back |
//!
//! *Useful for* questions about files and loads of them. *Not useful for* entries of tables that are to come back byte
//! for byte.
#![forbid(unsafe_code)]

mod blocks;
#[cfg(feature = "columnar")]
mod columnar;
mod content;
mod csv;
mod cuts;
mod error;
mod field;
mod format;
#[cfg(feature = "columnar")]
mod guard;
mod habits;
mod input;
mod json;
mod looks;
mod members;
mod message_pack;
mod names;
mod objects;
mod options;
mod packing;
mod pattern;
mod records;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod watch;
pub mod words;
mod write;

pub use error::{Error, Result};
pub use format::Format;
#[cfg(feature = "columnar")]
pub use guard::guarded;
pub use names::{Renamed, distinct_names, no_column};
pub use options::{Malformed, ReadOptions};
pub use packing::{Packing, ending, extension, plain, unpack};
pub use source::FileSource;
pub use watch::Watch;
pub use write::{Existing, FileSink, FileWriter, csv_text, write_json_object};
