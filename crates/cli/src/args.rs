//! The arguments of the command line, with their help.
//!
//! | module | holds |
//! |---|---|
//! | `key_spec` | the argument of `--key` |
//! | `exchange` | the arguments of `export` and `import` |
//! | `serve` | the options of a server |
//! | `quotes` | the quotes of CSV, for lists on the command line and for files |

pub(crate) mod exchange;
pub(crate) mod key_spec;
pub(crate) mod quotes;
pub(crate) mod serve;

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use sapwood::Engine;
use sapwood::aggregate::Executor;

use crate::terminal::format::parse_bytes;

use exchange::{Export, Import};
use key_spec::KeySpec;
use serve::{Config, Serve};

const AFTER_HELP: &str = "\
Examples:
  sapwood sample flights
  sapwood scan flights.csv.zst --key carrier,flight,month,day,sched_dep_time --limit 5
  sapwood help scan

Exit codes: 0 done; 1 failed, or `get` found nothing, or --strict and rows were refused;
2 the arguments cannot be used; 130 stopped by Ctrl-C.
NO_COLOR=1 turns colours off.";

/// Hot, fast-changing keyed state in memory and beyond, outside every managed heap.
#[derive(Debug, Parser)]
#[command(name = "sapwood", version, propagate_version = true, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Answer with JSON objects, one a line
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) json: bool,

    /// No progress and no notices; warnings and errors stay
    #[arg(long, short, global = true, help_heading = "Output")]
    pub(crate) quiet: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Load bundled real data and answer questions about it
    #[command(after_help = "\
Examples:
  sapwood sample flights                 all questions, for people
  sapwood sample flights --threads 4     delay totals by four threads
  sapwood sample flights --json          one JSON object an answer
  sapwood sample counters                counted by a process that is killed, and counted on
  sapwood sample ledger                  booked in transactions, by a process that is killed often
  sapwood sample airports                figures of flights by every way to reach them, explained")]
    Sample(Sample),

    /// Load a file into a table and say how that went
    #[command(after_help = "\
Examples:
  sapwood load flights.csv.zst --key carrier,flight,month,day,sched_dep_time
  sapwood load events.jsonl --key user:str,time --duplicates all
  sapwood load flights.csv.zst --key carrier,flight,month,day --engine hash --dir flights
  sapwood load flights.csv.zst --key time_hour,carrier,flight --engine tree --dir by_hour
  zcat rows.csv.gz | sapwood load - --format csv --key id --strict --json

Rows that cannot be used are named on standard error with their lines, counted and left out. Rows
whose key came before are named and counted too; --duplicates says which of them stay. With --strict
either makes the exit code 1.")]
    Load(Load),

    /// Print the row with a key
    #[command(after_help = "\
Examples:
  sapwood get flights.csv.zst --key carrier,flight,month,day,sched_dep_time UA 1545 1 1 515
  sapwood get flights.csv.zst --key carrier,flight,month,day UA 1545 1 1 --json
  sapwood get deltas.csv --key delta:int -- -5
  sapwood get flights UA 1545 1 1

The exit code is 1 if no row has the key.")]
    Get(Get),

    /// Print rows in the order of their keys, or of a hash table as they were written
    #[command(after_help = "\
Examples:
  sapwood scan flights.csv.zst --key carrier,flight,month,day,sched_dep_time --prefix UA,1545,
  sapwood scan flights.csv.zst --key tailnum,time_hour,flight --prefix N14 --limit 5
  sapwood scan flights.csv.zst --key time_hour,carrier,flight --from 2013-03-01 --to 2013-04-01
  sapwood scan flights.csv.zst --key time_hour,carrier,flight --reverse --limit 10 --json
  sapwood scan flights --limit 5

Rows are printed as they stand in the file, below its header; with --json as objects, the fields of
CSV as strings. Values are separated by commas as in CSV: \"a,b\" in quotes is one value. A hash
table (of a directory, or --engine hash) has no order: its rows come as they were written last.

Entries of a table that a program made have two columns, key and value: bytes that are not printable
stand as \\xE2, \\n or \\0, and a backslash as two. Keys are typed so, too.")]
    Scan(Scan),

    /// Print figures of rows: sums, means, ranks and more, of all or of groups
    #[command(after_help = "\
Examples:
  sapwood aggregate flights.csv.zst --by carrier
  sapwood aggregate flights.csv.zst --key time_hour,carrier,flight --from 2013-03-01 --by origin
  sapwood aggregate flights --by carrier --select 'mean(dep_delay) as late' --order 'late desc'
  sapwood aggregate flights --where 'dest = \"MIA\" and dep_delay > 60' --by 'bucket(hour, 6)' --json
  sapwood aggregate flights --select 'median(arr_delay), top(dest, 3)' --explain
  echo UA,1545,1,1 | sapwood aggregate flights --keys - --select 'sum(distance)'

Without --key every row of a file counts. With --key a file is a table, which has one row a key:
rows that --duplicates drops are in no figure, and a warning says how many.

Figures are exact, or say under the table how far they may be off. Floats are shortened for people;
--json has all digits. Nothing is changed, and Ctrl-C ends it at once.")]
    Aggregate(Box<Aggregate>),

    /// Load a file into a table and say what the table costs, to the byte
    #[command(after_help = "\
Examples:
  sapwood stats flights.csv.zst --key carrier,flight,month,day,sched_dep_time
  sapwood stats flights.csv.zst --key carrier,flight,month,day,sched_dep_time --json
  sapwood stats flights")]
    Stats(Stats),

    /// List the checkpoints of a table in a directory, or go back to one
    #[command(after_help = "\
Examples:
  sapwood checkpoints flights
  sapwood checkpoints flights --table rows --json
  sapwood checkpoints flights --go-back 1
  sapwood scan flights --checkpoint 1 --limit 5

Works where a table does not open because its newest checkpoint is damaged. `get`, `scan`,
`aggregate` and `stats` look at an older one with --checkpoint, and change nothing.")]
    Checkpoints(Checkpoints),

    /// Check every file of a directory, and print what is wrong
    #[command(after_help = "\
Examples:
  sapwood check flights
  sapwood check flights --json

The log with each of its records, snapshots, checkpoints of hash tables with each page, and the
heap of tree tables are read; at last the directory is opened, so ordered tables must fit in
memory. It is not changed, and must not be open in a process that writes. The exit code is 1 if
something is wrong.")]
    Check(Check),

    /// Look into the log of a directory, or beneath its tree tables
    #[command(after_help = "\
Examples:
  sapwood inspect log flights
  sapwood inspect pool by_hour
  sapwood inspect pool by_hour --json
  sapwood inspect pool by_hour --check

The directory is not changed. The exit code is 1 if --check finds damage.")]
    Inspect(Inspect),

    /// Add a backup of a directory to a folder of backups
    #[command(after_help = "\
Examples:
  sapwood backup counters backups
  sapwood backup counters backups --keep 7

What is the same in several backups is there once, so that the second one writes what has changed.
The directory must not be open in a process that writes; such a process takes its backups itself
(`SW.BACKUP` of a server with --backups, `Backups::add` in programs).")]
    Backup(Backup),

    /// List the backups of a folder, or verify them
    #[command(after_help = "\
Examples:
  sapwood backups backups
  sapwood backups backups --verify --json")]
    Backups(ListBackups),

    /// Make a directory of a backup
    #[command(after_help = "\
Examples:
  sapwood restore backups again
  sapwood restore backups before --number 1

All of it is verified before the directory has its name.")]
    Restore(Restore),

    /// Copy what can be read of a damaged directory into a new one
    #[command(after_help = "\
Examples:
  sapwood repair by_hour --into saved
  sapwood repair flights --into copy --past-damage --json

Ordered tables are copied as of the last checkpoint, hash tables as of their newest one that can be
read, both with the changes of the log before the first that is damaged; --past-damage takes those
behind it, too, and what comes of it need never have been there at one moment. Each tree is copied
as far as it can be read; words of trees have no checksums: one that is damaged, and still a value,
is copied as it is. The damaged directory is not written. The exit code is 1 if something is lost.")]
    Repair(Repair),

    /// Write every entry of a table as CSV, JSON lines, Parquet or Arrow
    #[command(after_help = "\
Examples:
  sapwood export flights rows --to flights.parquet
  sapwood export flights rows --to flights.csv.zst
  sapwood export flights rows --format jsonl | head
  sapwood export flights rows --raw --to flights.arrow --json

The columns are:
  those of the file, of rows that `sapwood load` keeps; JSON lines stay lines in jsonl, and are
    bytes elsewhere. In parquet and arrow a column is numbers if each of its values is one, written as
    it would be printed, or missing (empty, or NA), else text;
  the fields that the table declares, if they cover the value (or the key) without a gap; a key or
    value that they do not cover is bytes, in a column called key or value;
  else key and value, as bytes: Binary in parquet and arrow; in csv and jsonl text in which bytes
    that are not printable stand as \\xE2, \\n or \\0, and a backslash as two.

Every entry is looked at first: where one would not come back to the byte (a key that --duplicates
all numbered, a record that a program wrote otherwise), all are written as bytes, and a notice says
why.

A file is whole or not there: it is called FILE.part until it is done. It is read back by `sapwood
import`. The directory is not changed.")]
    Export(Export),

    /// Put the rows of a CSV, JSON lines, Parquet or Arrow file into a table of a directory
    #[command(after_help = "\
Examples:
  sapwood import flights rows flights.parquet
  sapwood import new rows flights.csv.zst --engine tree -k carrier:str,flight:int,month:int,day:int
  sapwood import stock pieces pieces.csv --layout 'key(shop:str), pieces:u32le, euros:f64le@4'
  zcat hits.jsonl.gz | sapwood import counters hits - --format jsonl --json

What `sapwood export` wrote comes back to the same bytes. Parquet and arrow files say how their rows
are keys and values; for a new table, --key or --layout says it of csv and jsonl (the export prints
the command). Columns called key and value alone are bytes, as `sapwood scan` prints them. A table
that is there knows its own columns.

An entry whose key is there takes its place; none is removed. The first row that cannot be used ends
it with its line and exit code 1; the rows before it stay, and are counted.")]
    Import(Import),

    /// Print the changes of a directory's tables, also while another process makes them
    #[command(after_help = "\
Examples:
  sapwood tail counters
  sapwood tail counters --table hits --json
  timeout 1 sapwood tail counters --follow || true

A line is a change: the position behind it, the table, what was done, key and value. Lines of one
position happened together. Nothing is locked, and the directory is not changed. Changes of tree
tables are not told.

The log begins where the last checkpoint of the directory needs it: a reader that stays behind
finds the next change gone, and says so.")]
    Tail(Tail),

    /// Measure an engine beside its peers, in one process and in turns
    #[command(after_help = "\
Examples:
  sapwood bench ordered --smoke
  sapwood bench ordered --entries 1000000 --threads 1,2 --json
  sapwood bench hash --keys 5000000 --engines sapwood,papaya
  sapwood bench aggregate --objects 10000000 --threads 1
  sapwood bench trees --keys 100000 --engines sapwood-btree,redb --dir /var/tmp
  sapwood bench durability --part levels,recovery --engines sapwood-ordered,redis --dir /var/tmp")]
    Bench(Bench),

    /// Serve tables to Redis clients, until it is told to stop
    #[command(after_help = "\
Examples:
  sapwood serve
  sapwood serve --port 7000 --dir data --maxmemory 2G
  sapwood serve --sample flights
  sapwood serve --config sapwood.toml --http 127.0.0.1:9121

A flag goes before its variable of the environment, and that before the file of --config, whose
options have the flags' names: `port = 7000`. `sapwood config print` shows what holds.

Stop it with Ctrl-C, SIGTERM or SHUTDOWN: with --dir a last checkpoint is taken then. A second
signal ends it at once, as of the checkpoint before.")]
    Serve(Box<Serve>),

    /// Look at the options that a server would have
    #[command(after_help = "\
Examples:
  sapwood config print
  sapwood config print --config sapwood.toml --port 7000 --json")]
    Config(Config),

    /// Talk to a server, or to a database in this process
    #[command(after_help = "\
Examples:
  sapwood shell                                     a database in memory
  sapwood shell --dir flights                       tables in a directory
  sapwood shell redis://user@127.0.0.1:6379/0       a server; rediss:// with TLS
  sapwood shell unix:///run/sapwood.sock
  sapwood shell -c 'SET a 1' -c 'GET a'             commands, and an end
  echo 'GET a' | sapwood shell 127.0.0.1 --output json

The password comes from the address, from SAPWOOD_PASSWORD, or with --askpass from the terminal.
Lines are quoted as for redis-cli; `help COMMAND` says what a command does. History is kept in the
user's state folder, or where SAPWOOD_HISTORY says; commands with passwords are not.")]
    Shell(Shell),

    /// Count the bundled flights until killed; a part of `sapwood sample counters`
    #[command(hide = true)]
    CountFlights(CountFlights),

    /// Book the bundled flights until killed; a part of `sapwood sample ledger`
    #[command(hide = true)]
    BookFlights(BookFlights),

    /// Print completions for a shell
    #[command(after_help = "\
Examples:
  sapwood completions bash > ~/.local/share/bash-completion/completions/sapwood
  sapwood completions fish > ~/.config/fish/completions/sapwood.fish
  sapwood completions zsh > \"${fpath[1]}/_sapwood\"")]
    Completions(Completions),

    /// Print the manual page, or write one for each command
    #[command(after_help = "\
Examples:
  sapwood man | man -l -
  sapwood man ~/.local/share/man/man1")]
    Man(Man),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sample {
    /// Which data
    pub(crate) name: SampleName,

    /// Threads that add up delays, beside one that reads meanwhile, or that count, or that answer
    /// [default: one a core]
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// Where the counters or the ledger are kept: a directory that is empty or not there yet
    /// [default: a temporary one]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,

    /// Draws the moments at which the process of the ledger is killed [default: another each time]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Shell {
    /// The server: HOST:PORT, redis://, rediss:// or unix:// [default: a database in this process]
    #[arg(conflicts_with = "dir")]
    pub(crate) address: Option<String>,

    /// Open the tables of this directory in this process [default: in memory]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,

    /// Execute this line and end; may be repeated
    ///
    /// The exit code is 1 if a reply is an error. Without it lines come from standard input.
    #[arg(long = "command", short, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) commands: Vec<String>,

    /// The form of replies [default: table, or json with --json]
    #[arg(long, short, value_name = "FORM")]
    pub(crate) output: Option<Form>,

    /// Say how long each reply took, on standard error
    #[arg(long)]
    pub(crate) timing: bool,

    /// Ask for the password
    #[arg(long, requires = "address")]
    pub(crate) askpass: bool,

    /// Trust the certificates in this PEM file [default: those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "address")]
    pub(crate) cacert: Option<PathBuf>,
}

/// The form of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Tables, lists and values, for people
    Table,
    /// JSON, a reply a line
    Json,
    /// CSV, an element a row
    Csv,
}

/// The arguments of the process that `sapwood sample counters` kills.
#[derive(Debug, clap::Args)]
pub(crate) struct CountFlights {
    /// Where the counters are kept
    #[arg(long)]
    pub(crate) dir: PathBuf,

    /// Threads that count
    #[arg(long)]
    pub(crate) threads: u16,
}

/// The arguments of the process that `sapwood sample ledger` kills.
#[derive(Debug, clap::Args)]
pub(crate) struct BookFlights {
    /// Where the ledger is kept
    #[arg(long)]
    pub(crate) dir: PathBuf,

    /// Flights after which it ends if that is all, or waits to be killed
    #[arg(long)]
    pub(crate) limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SampleName {
    /// The 336,776 flights that left New York City in 2013, in ordered tables
    Flights,
    /// The same as events, counted into a hash table larger than its memory, that survives a kill
    Counters,
    /// The same as records in both engines, and figures of them by every way to reach them
    Airports,
    /// The same, booked into three trees in a transaction each, by processes that are killed
    Ledger,
}

/// A file, and how its rows become entries of a table.
#[derive(Debug, clap::Args)]
pub(crate) struct Input {
    /// CSV with a header, or JSON lines; .zst and .gz are unpacked; `-` is standard input
    ///
    /// Commands that look at rows take a directory too, which `sapwood load --dir` has filled.
    pub(crate) file: PathBuf,

    /// The columns that make the key, in the order in which they sort
    ///
    /// A column sorts as numbers if all its values in the first 1,000 rows are numbers as they
    /// would be printed, else as text. Say the type to be sure: carrier:str,flight:int,delay:float.
    /// Needed for a file, but by `aggregate`, which counts every row without it; a directory knows
    /// its own.
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

    /// The format of the rows [default: by the file's name]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,

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
    /// Comma-separated, with a header line.
    Csv,
    /// One JSON object a line.
    Jsonl,
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

    /// Keep the rows in this directory, for `sapwood get`, `scan` and `stats`; needs --engine hash or
    /// tree
    ///
    /// Rows of a table that is there already stay; a row with the key of one takes its place, or is
    /// left out, as --duplicates says. If the load fails or is stopped, the directory is as it was.
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

    /// How columns are read: fields beside those that the rows have, or instead of one of them
    ///
    /// A column of CSV is numbers if all its values in the first 10,000 rows are, else text. NaN
    /// and infinities are no numbers, since nothing adds up with them; +4 is one beside others. A
    /// key column is what --key says. --explain prints how each is read; change what does not suit:
    /// `zip:cell(4).text`, `city:json($.address.city)`, `hits:i64le`. A table that a program made
    /// has the fields that it declared.
    #[arg(long, value_name = "FIELDS")]
    pub(crate) layout: Option<String>,

    /// The text that stands for a missing value [default: empty; NA in a file whose numbers have
    /// it]
    ///
    /// A file has one way to write what is missing: if NA stands in a column of numbers, it is
    /// missing in columns of text too. A column that has empty values keeps to those.
    #[arg(long, value_name = "TEXT")]
    pub(crate) na: Option<String>,

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

#[derive(Debug, clap::Args)]
pub(crate) struct Checkpoints {
    /// A directory that `sapwood load --dir` has filled, or a program
    pub(crate) directory: PathBuf,

    /// The table's name
    #[arg(long, value_name = "NAME", default_value = "rows")]
    pub(crate) table: String,

    /// Go on from this checkpoint: newer ones, and what was changed since, are removed
    #[arg(long, value_name = "NUMBER")]
    pub(crate) go_back: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tail {
    /// A directory of a database
    pub(crate) directory: PathBuf,

    /// Begin behind this position, as a line before said [default: what the log has]
    #[arg(long, value_name = "POSITION")]
    pub(crate) from: Option<u64>,

    /// Wait for what comes, until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Print the changes of this table alone
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    #[command(subcommand)]
    pub(crate) command: InspectCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InspectCommand {
    /// The log: its files, positions, what it says, and its tables
    Log(InspectLog),
    /// The pool of tree tables: its files, its trees, and how full its heap is
    Pool(InspectPool),
}

#[derive(Debug, clap::Args)]
pub(crate) struct InspectLog {
    /// A directory of a database, which a process may have open
    pub(crate) directory: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// A directory of a database
    pub(crate) directory: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InspectPool {
    /// A directory of a database, or the folder of its pool
    pub(crate) directory: PathBuf,

    /// Check everything, and print what is wrong
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Backup {
    /// A directory of a database
    pub(crate) directory: PathBuf,

    /// The folder of backups, made if it is not there
    pub(crate) backups: PathBuf,

    /// Remove the oldest backups but for so many, with this one
    #[arg(long, value_name = "COUNT")]
    pub(crate) keep: Option<NonZero<usize>>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListBackups {
    /// The folder of backups
    pub(crate) backups: PathBuf,

    /// Read all of them, and compare them with their checksums
    #[arg(long)]
    pub(crate) verify: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// The folder of backups
    pub(crate) backups: PathBuf,

    /// Where the database goes: a directory that is empty or not there yet
    pub(crate) directory: PathBuf,

    /// Which backup [default: the newest]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) number: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Repair {
    /// A directory of a database, or the folder of its pool
    pub(crate) directory: PathBuf,

    /// Where the copy goes: a directory that is empty or not there yet
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) into: PathBuf,

    /// Take changes behind damage of the log, too
    #[arg(long)]
    pub(crate) past_damage: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) engine: BenchEngine,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchEngine {
    /// The ordered engine beside other ordered maps
    Ordered(sapwood_bench::ordered::Args),
    /// The hash log beside other concurrent hash maps, in memory and beyond it
    Hash(sapwood_bench::hash::Args),
    /// Figures of many objects: every executor, the planner, and a plain loop over the same bytes
    Aggregate(sapwood_bench::aggregate::Args),
    /// The server beside Redis, over loopback: requests, memory, and sums over the wire
    Server(sapwood_bench::server::Args),
    /// The transactional trees beside embedded stores, at equal durability
    Trees(sapwood_bench::trees::Args),
    /// What it costs that ordered and hash tables last, and how long opening them takes, beside Redis
    Durability(sapwood_bench::durability::Args),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Where to write a page for each command; without it the main page is printed
    pub(crate) directory: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_well_formed() {
        Args::command().debug_assert();
    }
}
