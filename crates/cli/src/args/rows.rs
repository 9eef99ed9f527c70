//! The arguments of the commands that read rows of a file: `load`, `get`, `scan`, `aggregate`, `query`,
//! `stats`.

use std::path::PathBuf;

use clap::ValueEnum;
use sapwood::Engine;
use sapwood::aggregate::Executor;

use crate::args::key_spec::KeySpec;
use crate::args::types::TextColumns;
use crate::terminal::format::parse_bytes;

/// A file, and how its rows become entries of a table.
#[derive(Debug, clap::Args)]
pub(crate) struct Input {
    /// CSV with a header, JSON, JSON lines, Parquet or Arrow; .zst and .gz are unpacked; `-` is standard input
    ///
    /// Commands that look at rows take a directory too, which `sapwood load --dir` has filled.
    pub(crate) file: PathBuf,

    /// The columns that make the key, in the order in which they sort
    ///
    /// A column sorts as the type that all its values have: numbers, dates, text. Say the type to be sure:
    /// carrier:str,flight:int,delay:float; --types has more. Needed for a file, but by `load` and by
    /// `aggregate`, which counts every row without it; a directory knows its own.
    #[arg(long, short, value_name = "COLUMN[:TYPE],...")]
    pub(crate) key: Option<KeySpec>,

    /// Which engine keeps the rows [default: ordered]
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<EngineName>,

    /// How the tree of --engine tree is balanced [default: btree]
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<TreeName>,

    /// The table's name, in a directory
    #[arg(long, value_name = "NAME", default_value = "rows")]
    pub(crate) table: String,

    /// Look at a table of a directory as it was at this checkpoint, and change nothing
    /// [default: the newest]
    ///
    /// `sapwood checkpoints DIRECTORY` lists them.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) checkpoint: Option<u64>,

    /// The format of the rows [default: by the file's name, or its first bytes]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,

    #[command(flatten)]
    pub(crate) text: TextColumns,

    /// Which rows to keep when several have the same key; they are counted in any case
    #[arg(long, value_name = "WHICH", default_value = "last")]
    pub(crate) duplicates: Duplicates,

    /// Fail if any row was refused or any key came twice (unless --duplicates all)
    #[arg(long)]
    pub(crate) strict: bool,

    /// How many refused rows and repeated keys to name; the rest is only counted
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) show_errors: u64,

    /// The most memory the table may map, such as 512M or 2G [default: no limit]
    ///
    /// What does not fit is an error, but in a directory, where it lies on the disk; a directory
    /// that is read has the budget that it was loaded with, or this one.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) memory_budget: Option<u64>,
}

/// How rows are written in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// With a header line, and a delimiter between fields.
    Csv,
    /// One JSON object a line.
    Jsonl,
}

impl From<Format> for sapwood::files::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Csv => Self::Csv,
            Format::Jsonl => Self::Jsonl,
        }
    }
}

/// How events are written in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventFormat {
    /// Comma-separated, with a header line
    Csv,
    /// One JSON object a line
    Jsonl,
    /// MessagePack: maps, or lists of them, one after the other
    Msgpack,
    /// Apache Arrow: a file, or a stream
    Arrow,
    /// Apache Parquet
    Parquet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// In the order of the keys, in memory, or with --dir in a directory
    Ordered,
    /// Without order; in memory, or with --dir in a directory
    Hash,
    /// In the order of the keys, in a tree; in memory, or with --dir in a directory
    Tree,
}

impl EngineName {
    /// As the library calls it.
    pub(crate) fn engine(self) -> Engine {
        match self {
            Self::Ordered => Engine::Ordered,
            Self::Hash => Engine::Hash,
            Self::Tree => Engine::Tree,
        }
    }
}

/// How a tree is balanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TreeName {
    /// The fastest, and the smallest
    Btree,
    /// By the bits at which keys differ
    CritBit,
    RedBlack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Duplicates {
    /// The first row of a key stays
    First,
    /// A later row takes the place of an earlier one
    Last,
    /// All, in the order of the file
    All,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Keep the rows in this directory; without it nothing is kept, and only the figures are shown
    ///
    /// Rows of a table that is there already stay, and its columns and types too; a row with the key of one
    /// takes its place, or is left out, as --duplicates says. If the load fails or is stopped, the directory is
    /// as it was.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,

    /// When a table in --dir gives disk space back by itself: at so many percent of garbage, or
    /// `off` [default: 50]
    ///
    /// From 256 MiB of log on. A table that is there already keeps what it was made with.
    #[arg(long, value_name = "PERCENT", value_parser = parse_compact_at, requires = "dir")]
    pub(crate) compact_at: Option<CompactAt>,
}

/// When a table compacts itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CompactAt {
    Off,
    Share(f64),
}

fn parse_compact_at(text: &str) -> Result<CompactAt, String> {
    match (text, text.trim_end_matches('%').parse::<u8>()) {
        ("off", _) => Ok(CompactAt::Off),
        (_, Ok(percent @ 1..=99)) => Ok(CompactAt::Share(f64::from(percent) / 100.0)),
        _ => Err("1 to 99 percent are expected, such as 50, or `off`".to_owned()),
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) input: Input,

    /// The value of each key column
    #[arg(required = true, allow_negative_numbers = true)]
    pub(crate) values: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Scan {
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) range: KeyRange,

    /// From the greatest key down
    #[arg(long, short)]
    pub(crate) reverse: bool,

    /// At most this many rows
    #[arg(long, short, value_name = "COUNT")]
    pub(crate) limit: Option<u64>,
}

/// Between which keys.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyRange {
    /// From this key on; values for the first columns are enough
    #[arg(long, value_name = "VALUES", allow_hyphen_values = true)]
    pub(crate) from: Option<String>,

    /// Up to this key, which is not in it
    #[arg(long, value_name = "VALUES", allow_hyphen_values = true)]
    pub(crate) to: Option<String>,

    /// Only keys that begin so; the last value may be the beginning of a text, `UA,` is all of UA
    #[arg(long, value_name = "VALUES", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    pub(crate) prefix: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Aggregate {
    #[command(flatten)]
    pub(crate) input: Input,

    /// The figures of each row of the answer
    ///
    /// count, count(x), sum(x), min(x), max(x), mean(x), variance(x), variance_pop(x), stddev(x),
    /// stddev_pop(x), first(x), last(x), first(x by t), last(x by t), distinct(x), median(x),
    /// quantile(x, 0.9), top(x, 5), of columns, with commas between. A name may follow:
    /// `mean(delay) as late`. Columns whose names are not plain words stand in `backquotes`.
    #[arg(long, short, value_name = "FIGURES", default_value = "count")]
    pub(crate) select: String,

    /// A row of the answer for each group of rows that agree in all of these
    ///
    /// Columns, steps of a number such as bucket(hour, 6), classes such as classes(delay, 0, 15,
    /// 60) for what is below 0, from 0, from 15 and from 60 on, with commas between.
    #[arg(long, short, value_name = "GROUPS")]
    pub(crate) by: Option<String>,

    /// Only rows for which this is true: `delay > 15 and carrier in ("UA", "AA")`
    ///
    /// =, !=, <, <=, >, >=, in (...), not in (...), begins with "...", is missing, is not missing;
    /// and, or, not, parentheses. What compares with something missing is not taken.
    #[arg(long = "where", short = 'w', value_name = "CONDITION")]
    pub(crate) filter: Option<String>,

    /// Only rows of the answer for which this is true: `count > 100`
    #[arg(long, value_name = "CONDITION")]
    pub(crate) having: Option<String>,

    /// Sorts the answer: `mean(delay) desc, carrier` [default: by the groups]
    #[arg(long, short, value_name = "COLUMNS")]
    pub(crate) order: Option<String>,

    /// At most this many rows of the answer
    #[arg(long, short, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,

    #[command(flatten)]
    pub(crate) range: KeyRange,

    /// Only the rows with the keys in this file: the values of a key on a line, as CSV; `-` is
    /// standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "to", "prefix"])]
    pub(crate) keys: Option<PathBuf>,

    /// How rows of a directory are read: fields beside those that they have, or instead of one of them
    ///
    /// --explain prints how each column is read; that of a file has a type, which --types changes. A table that a
    /// program made has the fields that it declared; others lie in the bytes of its keys and values: `hits:i64le`,
    /// `kind:key.u8`. Of rows that are kept as text, `zip:cell(4).text` reads a column of CSV, and
    /// `city:json($.address.city)` a member of JSON lines.
    #[arg(long, value_name = "FIELDS")]
    pub(crate) layout: Option<String>,

    /// What happens with missing values
    #[arg(long, value_name = "WHAT", default_value = "pass-over")]
    pub(crate) missing: OnMissing,

    /// What happens with rows that do not have what is read, such as text where a number is needed
    #[arg(long, value_name = "WHAT", default_value = "refuse")]
    pub(crate) mismatches: OnMismatch,

    /// The most groups that there may be; each takes memory
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    pub(crate) groups_max: usize,

    /// Threads [default: one a core]
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// How rows are reached: look-up of keys, range of an ordered table, walk or log of a hash
    /// table [default: what is expected to be the fastest]
    #[arg(long, value_name = "look-up|range|walk|log")]
    pub(crate) executor: Option<Executor>,

    /// Print how columns are read and rows reached, what that was expected to cost and what it did
    ///
    /// With --json as a last object, with how exact each column is and how many rows went which
    /// way.
    #[arg(long)]
    pub(crate) explain: bool,

    /// Only explain, and answer nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What happens with missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnMissing {
    /// Figures pass over them; grouped by, they are a group of their own
    PassOver,
    /// They are mismatches
    Refuse,
}

/// What happens with rows that do not have what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnMismatch {
    /// There is no answer, but an error that counts them and shows one
    Refuse,
    /// They are left out and counted
    Skip,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) input: Input,
}

/// Rows of files, into a roll-up table of a directory.
#[derive(Debug, clap::Args)]
pub(crate) struct Ingest {
    /// CSV with a header, JSON lines, MessagePack, Arrow or Parquet; .zst and .gz are unpacked; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The directory, made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,

    /// The table
    #[arg(long, value_name = "NAME")]
    pub(crate) table: String,

    /// How rows become facts, for a table that is not there yet: a JSON object, or the path of a file with one
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) schema: Option<String>,

    /// The format of the rows [default: by the file's name]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<EventFormat>,

    /// Seal the facts into segments at the end
    #[arg(long)]
    pub(crate) seal: bool,
}

/// A question about a roll-up table, or about rows of files that are rolled up.
#[derive(Debug, clap::Args)]
pub(crate) struct Query {
    /// How rows of files become facts: a JSON object, or the path of a file with one
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) schema: Option<String>,

    /// The table of a directory [default: the `dataSource` of the query, or the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,

    /// The question: a JSON object, or the path of a file with one
    pub(crate) query: String,

    /// A directory; or files of CSV with a header, JSON lines, MessagePack, Arrow or Parquet; .zst and .gz are unpacked; `-` is standard input
    #[arg(required = true, value_name = "DIR | FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The format of the rows [default: by the file's name]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<EventFormat>,

    /// Threads that answer
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..=256), default_value_t = 1)]
    pub(crate) threads: u16,

    /// Print the answer as CSV
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,

    /// Print the answer as a stream of Apache Arrow, not to a terminal
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) arrow: bool,

    /// Fail if any row was refused
    #[arg(long)]
    pub(crate) strict: bool,
}
