//! The arguments of `sapwood sql`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::ValueEnum;

use crate::args::types::TextColumns;
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
    #[arg(
        long,
        short = 'o',
        visible_alias = "output",
        value_name = "MODE",
        conflicts_with = "json"
    )]
    pub(crate) mode: Option<Mode>,

    #[command(flatten)]
    pub(crate) text: TextColumns,

    /// A value for $1, the next one for $2, or for each `?`; may be repeated
    ///
    /// A number, true, false, null, or a text; a text that looks like one of these stands in single
    /// quotes.
    #[arg(long = "param", value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) parameters: Vec<String>,

    /// Let `copy ... to` replace a file that is there
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Leave out records of files that cannot be read, and count them; else they are an error
    #[arg(long)]
    pub(crate) skip_malformed: bool,

    /// Threads that read rows [default: as many as the machine has]
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<NonZeroUsize>,

    /// The most memory that groups, rows of an answer and changes of rows may take [default: 4G]
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
