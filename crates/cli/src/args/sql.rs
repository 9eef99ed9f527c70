//! The arguments of `sapwood sql`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::ValueEnum;

use crate::args::types::Types;
use crate::terminal::format::parse_bytes;

#[derive(Debug, clap::Args)]
pub(crate) struct Sql {
    /// Statements, which stand between semicolons; `-` reads them from standard input
    #[arg(required_unless_present = "file")]
    pub(crate) statements: Option<String>,

    /// Read the statements from a file
    #[arg(long, short, value_name = "FILE", conflicts_with = "statements")]
    pub(crate) file: Option<PathBuf>,

    /// The directory of a database whose tables need no more than their names
    ///
    /// It is opened to be read, unless a statement changes tables; then it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// How answers are written [default: table; with --json, objects]
    #[arg(long, value_name = "MODE", conflicts_with = "json")]
    pub(crate) mode: Option<Mode>,

    /// Types of columns of CSV and JSON files, instead of those that their values have
    #[arg(long, value_name = "COLUMN:TYPE,...")]
    pub(crate) types: Option<Types>,

    /// The text that stands for a missing value in files, beside the empty one [default: NA, if a column
    /// of numbers has it]
    #[arg(long, value_name = "TEXT")]
    pub(crate) na: Option<String>,

    /// The delimiter of CSV files [default: the one that their first lines have]
    #[arg(long, value_name = "SIGN", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,

    /// Leave out records of files that cannot be read, and count them; else they are an error
    #[arg(long)]
    pub(crate) skip_malformed: bool,

    /// Threads that read rows [default: as many as the machine has]
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<NonZeroUsize>,

    /// The most memory that groups and rows of an answer may take [default: 4G]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
}

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Columns side by side, numbers to the right
    Table,
    /// Comma-separated, with a header
    Csv,
    /// One JSON object a row
    Json,
    /// A table of Markdown
    Markdown,
}

/// Reads a delimiter of CSV.
pub(crate) fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" | "\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [sign] if sign.is_ascii_punctuation() => Ok(*sign),
            _ => Err("one sign is expected, or `tab`".to_owned()),
        },
    }
}
