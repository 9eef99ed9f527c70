//! The arguments of `sapwood export` and `sapwood import`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::args::key_spec::KeySpec;
use crate::args::rows::EngineName;

/// The format of a file of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    /// Comma-separated, with a header line
    Csv,
    /// One JSON object a line
    Jsonl,
    /// Apache Parquet: typed columns, packed
    Parquet,
    /// Apache Arrow's file format: typed columns
    Arrow,
}

impl From<FileFormat> for sapwood::files::Format {
    fn from(format: FileFormat) -> Self {
        match format {
            FileFormat::Csv => Self::Csv,
            FileFormat::Jsonl => Self::Jsonl,
            FileFormat::Parquet => Self::Parquet,
            FileFormat::Arrow => Self::Arrow,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// A directory of a database
    pub(crate) directory: PathBuf,

    /// The table's name; `rows` is where `sapwood load` puts them
    pub(crate) table: String,

    /// The format [default: by the ending of --to: .csv, .jsonl (both also with .zst or .gz),
    /// .parquet, .arrow; else csv]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<FileFormat>,

    /// Where to write [default: standard output; parquet and arrow not to a terminal]; of a roll-up, a folder
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,

    /// Write keys and values as bytes, whatever columns the table has
    #[arg(long)]
    pub(crate) raw: bool,

    /// Replace a file that is there
    #[arg(long)]
    pub(crate) overwrite: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// A directory of a database, which is made if it is not there
    pub(crate) directory: PathBuf,

    /// The table's name; it is made if it is not there
    pub(crate) table: String,

    /// The file; `-` is standard input, of csv and jsonl
    pub(crate) file: PathBuf,

    /// Which engine keeps a new table [default: the one that a parquet or arrow file names, else
    /// ordered]
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<EngineName>,

    /// The format [default: by the file's name]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<FileFormat>,

    /// The columns that make the key, with their types: rows are kept as text, which `sapwood load` makes typed columns of
    #[arg(long, short, value_name = "COLUMN:TYPE,...", conflicts_with_all = ["layout", "raw"])]
    pub(crate) key: Option<KeySpec>,

    /// Rows of JSON lines are kept by their columns, as those of CSV are, and not as lines
    #[arg(long, requires = "key")]
    pub(crate) cells: bool,

    /// Where columns lie in keys and values; a new table declares these fields
    #[arg(long, value_name = "FIELDS", conflicts_with = "raw")]
    pub(crate) layout: Option<String>,

    /// Columns key and value are bytes, whatever columns the table has
    #[arg(long)]
    pub(crate) raw: bool,
}
