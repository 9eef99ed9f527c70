//! Files as sources of typed rows, for statements and for loads.
//!
//! A [`FileSource`] is a file whose columns have types: those that the file says, or those that its first rows
//! have. Every row counts, and none has a key. Any number of threads read it: text is cut into blocks between
//! records, which threads parse on their own, and Parquet is shared by its groups of rows.
//!
//! | module | holds |
//! |---|---|
//! | `options` | what a statement says of a file |
//! | `input` | the bytes of a file, unpacked, from the beginning as often as wanted |
//! | `content` | the format that a name or the first bytes tell |
//! | `blocks` | text in blocks that end between records |
//! | `cuts` | where records end |
//! | `records` | the fields of the records of CSV |
//! | `looks` | what is known of the columns of a file, and the types that they have |
//! | `habits` | what other programs write, and how it is told |
//! | `field` | text as values of a column |
//! | `text` | a file of text, whose types may widen |
//! | `csv`, `json`, `columnar` | files of each format |
//! | `members` | values of JSON as they are written |
//! | `objects` | the objects in a block of JSON |
//! | `source` | a file as a source |
//!
//! *Not for* entries that `import` has back byte for byte (`exchange`).

mod blocks;
#[cfg(feature = "columnar")]
mod columnar;
mod content;
mod csv;
mod cuts;
mod field;
mod habits;
mod input;
mod json;
mod looks;
mod members;
mod objects;
mod options;
mod records;
mod source;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use options::{FrameOptions, Malformed};
pub(crate) use source::FileSource;
