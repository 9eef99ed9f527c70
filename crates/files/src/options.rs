//! The way in which a file is read.

use std::sync::Arc;

use sapwood_schema::Type;

use crate::format::Format;
use crate::watch::{Unwatched, Watch};

/// The bytes of a block of text: large beside a system call and a lock, small beside a cache of the second level
/// that two threads have.
const BLOCK_BYTES: usize = 1 << 20;

/// Rows from which types are found before a file is read.
const SAMPLE_ROWS: usize = 20_000;

/// The way in which a file is read: by default as its name and its first bytes tell.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Types of columns by their names, instead of those that are found. A value that is none of such a type is an
    /// error.
    pub types: Vec<(String, Type)>,
    /// The text that stands for a missing value, beside the empty one. Without it, `NA` is found by itself.
    pub na: Option<String>,
    /// The columns of a key: their texts are what they are, also empty ones and those that stand for a missing value
    /// in other columns.
    pub key: Vec<String>,
    /// The fate of records that are none.
    pub malformed: Malformed,
    /// The number of records that are left out and kept in mind, with the reason.
    pub notes_max: usize,
    /// The format, instead of the one that the name or the first bytes tell.
    pub format: Option<Format>,
    /// The delimiter of CSV, instead of the one that the first lines have.
    pub delimiter: Option<u8>,
    /// The bytes of a block. Tests have small ones.
    pub block_bytes: usize,
    /// The rows that are looked at before the first scan.
    pub sample_rows: usize,
    /// Follows the bytes that are read, and may end it. By default nothing does.
    pub watch: Arc<dyn Watch>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            types: Vec::new(),
            na: None,
            key: Vec::new(),
            malformed: Malformed::Refuse,
            notes_max: 0,
            format: None,
            delimiter: None,
            block_bytes: BLOCK_BYTES,
            sample_rows: SAMPLE_ROWS,
            watch: Arc::new(Unwatched),
        }
    }
}

/// The fate of a record that is none: with another number of fields than the header, not in UTF-8, or with a value
/// that is none of the type that was said for its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// It ends the scan.
    Refuse,
    /// It is counted and left out.
    Skip,
}
