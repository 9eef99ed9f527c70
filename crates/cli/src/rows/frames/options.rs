//! What a statement says of a file.

use sapwood::schema::Type;

use crate::args::rows::Format;

/// The bytes of a block of text: large beside a system call and a lock, small beside a cache of the second level
/// that two threads have.
const BLOCK_BYTES: usize = 1 << 20;

/// Rows from which types are found before a file is read.
const SAMPLE_ROWS: usize = 20_000;

/// How a file is read.
#[derive(Debug, Clone)]
pub(crate) struct FrameOptions {
    /// Types of columns by their names, instead of those that are found. A value that is none of such a type is an
    /// error.
    pub(crate) types: Vec<(String, Type)>,
    /// The text that stands for a missing value, beside the empty one. Without it, `NA` is found by itself.
    pub(crate) na: Option<String>,
    /// The columns of a key: their texts are what they are, also empty ones and those that stand for a missing value
    /// in other columns.
    pub(crate) key: Vec<String>,
    /// What becomes of records that are none.
    pub(crate) malformed: Malformed,
    /// How many of the records that are left out are kept in mind, with the reason.
    pub(crate) notes_max: usize,
    /// The format, instead of the one that the name or the first bytes tell.
    pub(crate) format: Option<Format>,
    /// The delimiter of CSV, instead of the one that the first lines have.
    pub(crate) delimiter: Option<u8>,
    /// The bytes of a block. Tests have small ones.
    pub(crate) block_bytes: usize,
    /// The rows that are looked at before the first scan.
    pub(crate) sample_rows: usize,
}

impl Default for FrameOptions {
    fn default() -> Self {
        FrameOptions {
            types: Vec::new(),
            na: None,
            key: Vec::new(),
            malformed: Malformed::Refuse,
            notes_max: 0,
            format: None,
            delimiter: None,
            block_bytes: BLOCK_BYTES,
            sample_rows: SAMPLE_ROWS,
        }
    }
}

/// What becomes of a record that is none: with another number of fields than the header, not in UTF-8, or with a value
/// that is none of the type that was said for its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// It ends the scan.
    Refuse,
    /// It is counted and left out.
    Skip,
}
