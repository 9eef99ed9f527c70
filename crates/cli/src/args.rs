//! The arguments of the command line, with their help.
//!
//! | module | holds |
//! |---|---|
//! | `rows` | the arguments of the commands that read rows of a file |
//! | `directories` | the arguments of the commands that work on the directory of a database |
//! | `key_spec` | the argument of `--key` |
//! | `exchange` | the arguments of `export` and `import` |
//! | `serve` | the options of a server |
//! | `sql` | the arguments of `sql` |
//! | `tables` | the tables of a directory, and changes of rows |
//! | `types` | types of columns |
//! | `quotes` | the quotes of CSV, for lists on the command line and for files |

pub(crate) mod directories;
pub(crate) mod exchange;
pub(crate) mod key_spec;
pub(crate) mod quotes;
pub(crate) mod rows;
pub(crate) mod serve;
pub(crate) mod sql;
pub(crate) mod tables;
pub(crate) mod types;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use directories::{Backup, Check, Checkpoints, Inspect, ListBackups, Repair, Restore, Tail};
use exchange::{Export, Import};
use rows::{Aggregate, Get, Load, Scan, Stats};
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
  sapwood sample delays                  rolled up as they come in, with charts of their delays
  sapwood sample files                   flights.csv.zst, stops.csv and the other files of examples")]
    Sample(Sample),

    /// Load a file into a table and say how that went
    #[command(after_help = "\
Examples:
  sapwood load flights.csv.zst --key carrier,flight,month,day,sched_dep_time
  sapwood load events.jsonl --key user:str,time --duplicates all
  sapwood load flights.csv.zst --key carrier,flight,month,day --engine hash --dir flights
  sapwood load flights.csv.zst --key time_hour,carrier,flight --engine tree --dir by_hour
  sapwood load flights.csv.zst --types 'flight:u16, distance:u16' --dir every
  zcat rows.csv.gz | sapwood load - --format csv --key id --strict --json

`sapwood sample files` writes the files.

CSV (with commas, semicolons, tabs or bars), JSON, JSON lines, Parquet and Arrow are told by the
name or the first bytes. Columns have the types of all their values, which are shown; --types says
others. Without --key each row gets a number as its key.

Rows that cannot be used are named on standard error with their lines, counted and left out. Rows
whose key came before are named and counted too; --duplicates says which of them stay. With
--strict either makes the exit code 1.")]
    Load(Load),

    /// Print the row with a key
    #[command(after_help = "\
Examples:
  sapwood get flights.csv.zst --key carrier,flight,month,day,sched_dep_time UA 1545 1 1 515
  sapwood get flights.csv.zst --key carrier,flight,month,day UA 1545 1 1 --json
  sapwood get deltas.csv --key delta:int -- -5
  sapwood get flights UA 1545 1 1

`sapwood sample files` writes the files; examples of `load` and `ingest` make the directories.

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

`sapwood sample files` writes the files; examples of `load` and `ingest` make the directories.

Rows are printed as CSV with a header, those of a file of JSON lines as they stand there; with
--json as objects, the fields of a CSV file as strings. Values are separated by commas as in CSV:
\"a,b\" in quotes is one value. A hash table (of a directory, or --engine hash) has no order: its
rows come as they were written last.

Entries of a table without columns have two, key and value: bytes that are not printable
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

`sapwood sample files` writes the files; examples of `load` and `ingest` make the directories.

Without --key every row of a file counts. With --key a file is a table, which has one row a key:
rows that --duplicates drops are in no figure, and a warning says how many.

Figures are exact, or say under the table how far they may be off. Floats are shortened for
people; --json has all digits. Nothing is changed, and Ctrl-C ends it at once.")]
    Aggregate(Box<Aggregate>),

    /// Ask files and tables in SQL, and change tables
    #[command(after_help = "\
Examples:
  sapwood sql \"select carrier, avg(dep_delay) from 'flights.csv.zst' group by 1 order by 2\"
  sapwood sql \"summarize 'flights.csv.zst'\" --mode markdown
  sapwood sql --dir delays \"create table flights as select * from 'flights.csv.zst'\"
  sapwood sql --dir delays \"select dest, median(arr_delay) from flights group by 1\" --json
  sapwood sql --dir delays \"copy (select * from flights where day = 1) to 'first.csv.zst'\"
  sapwood sql --dir delays \"select count(*) from flights where dest = ?\" --param MIA
  sapwood sql --dir delays \"show tables; describe flights\"

`sapwood sample files` writes the files.

A table is a file in quotes, a table of a directory (DIR.table), or with --dir the name of a
table. Every row of a file counts. Types of CSV and JSON are found by looking at the values;
--types says others. `explain` and `explain analyze` show how a select is answered. What SQL has
here, and where it differs from other databases: docs/sql.md.

A statement that is refused is shown with its place, and the exit code is 2.")]
    Sql(sql::Sql),

    /// Bring rows of files into a roll-up table of a directory, each once
    #[command(after_help = "\
Examples:
  sapwood ingest flights.csv.zst --dir events --table flights --schema schema.json
  sapwood ingest flights.csv.zst --dir events --table flights --seal

`sapwood sample files` writes the files.

Schemas are those of Druid's dataSchema: docs/design/rollup.md lists their fields. The table is
made where it is not there. It remembers how far it has taken each file: run it again after it was
interrupted, or when a file has grown, and it goes on from there. Rows without a time, and values
that cannot be read, are counted and shown. Formats are told by the ending: .csv, .jsonl, .ndjson,
.msgpack, .mpk, .arrow, .arrows, .feather, .parquet.")]
    Ingest(rows::Ingest),

    /// Answer one of Druid's native queries about a roll-up table, or about rows of files
    #[command(after_help = "\
Examples:
  sapwood query query.json events --table flights
  sapwood query --schema schema.json query.json flights.csv.zst
  sapwood query --schema schema.json '{\"queryType\": \"timeBoundary\"}' flights.csv.zst --json

`sapwood sample files` writes the files; examples of `load` and `ingest` make the directories.

Schemas are those of Druid's dataSchema, queries its native ones: docs/design/rollup.md lists
their fields. Both may be files. Rows of files are rolled up in memory first. With --json the
answer is as Druid writes it, with --csv a table, with --arrow a stream of Apache Arrow. Rows that
have no time, and values that cannot be read, are counted and shown.")]
    Query(rows::Query),

    /// Load a file into a table and say what the table costs, to the byte
    #[command(after_help = "\
Examples:
  sapwood stats flights.csv.zst --key carrier,flight,month,day,sched_dep_time
  sapwood stats flights.csv.zst --key carrier,flight,month,day,sched_dep_time --json
  sapwood stats flights

`sapwood sample files` writes the files; examples of `load` and `ingest` make the directories.")]
    Stats(Stats),

    /// List the tables of a directory, with their columns
    #[command(after_help = "\
Examples:
  sapwood tables flights
  sapwood tables flights --json

Examples of `load`, `ingest` and `import` make the directories.")]
    Tables(tables::Tables),

    /// Print the columns of a table: names, types, and the key
    #[command(after_help = "\
Examples:
  sapwood describe flights
  sapwood describe flights rows --json

Examples of `load`, `ingest` and `import` make the directories.")]
    Describe(tables::Describe),

    /// Put a row into a table of a directory; one with the same key is replaced
    #[command(after_help = "\
Examples:
  sapwood put flights carrier=UA flight=1545 month=1 day=1 dep_delay=2

Examples of `load`, `ingest` and `import` make the directories.

A column that is not named has no value. Values are written as `get` prints them. Entries of a
table without columns are a key and a value: bytes that are not printable stand as \\xE2, and a
backslash as two.")]
    Put(tables::Put),

    /// Remove the rows with a key from a table of a directory
    #[command(after_help = "\
Examples:
  sapwood remove flights UA 1545 1 1

Examples of `load`, `ingest` and `import` make the directories.

All rows that `get` shows are removed. The exit code is 1 if there are none.")]
    Remove(tables::Remove),

    /// Give disk space back: what is superseded and removed goes out of hash tables and the log
    #[command(after_help = "\
Examples:
  sapwood compact flights

Examples of `load`, `ingest` and `import` make the directories.

Older checkpoints of a table go with the files that they need. The heap of tree tables is used
again, but not given back.")]
    Compact(tables::Compact),

    /// List the checkpoints of a table in a directory, or go back to one
    #[command(after_help = "\
Examples:
  sapwood checkpoints flights
  sapwood checkpoints flights --table rows --json
  sapwood checkpoints flights --go-back 1
  sapwood scan flights --checkpoint 1 --limit 5

Examples of `load`, `ingest` and `import` make the directories.

Works where a table does not open because its newest checkpoint is damaged. `get`, `scan`,
`aggregate` and `stats` look at an older one with --checkpoint, and change nothing.")]
    Checkpoints(Checkpoints),

    /// Check every file of a directory, and print what is wrong
    #[command(after_help = "\
Examples:
  sapwood check flights
  sapwood check flights --json

Examples of `load`, `ingest` and `import` make the directories.

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

Examples of `load`, `ingest` and `import` make the directories.

The directory is not changed. The exit code is 1 if --check finds damage.")]
    Inspect(Inspect),

    /// Add a backup of a directory to a folder of backups
    #[command(after_help = "\
Examples:
  sapwood backup counters backups
  sapwood backup counters backups --keep 7

Examples of `load`, `ingest` and `import` make the directories.

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

Examples of `load`, `ingest` and `import` make the directories.

Ordered tables are copied as of the last checkpoint, hash tables as of their newest one that can
be read, both with the changes of the log before the first that is damaged; --past-damage takes
those behind it, too, and what comes of it need never have been there at one moment. Each tree is
copied as far as it can be read; words of trees have no checksums: one that is damaged, and still
a value, is copied as it is. Of a roll-up, segments that can be read are copied, and rows that the
log has behind them. The damaged directory is not written. The exit code is 1 if something is
lost.")]
    Repair(Repair),

    /// Write every entry of a table as CSV, JSON lines, Parquet or Arrow, or the facts of a roll-up as Parquet
    #[command(after_help = "\
Examples:
  sapwood export flights rows --to flights.parquet
  sapwood export flights rows --to rows.csv.zst
  sapwood export flights rows --format jsonl | head
  sapwood export flights rows --raw --to flights.arrow --json
  sapwood export events flights --to facts

Examples of `load`, `ingest` and `import` make the directories.

The columns are:
  those of the table, if it has typed columns, as `sapwood load` makes them;
  those of the file, of rows that are kept as text (`sapwood import --key`, earlier versions of load);
    JSON lines stay lines in jsonl, and are bytes elsewhere. In parquet and arrow a column is numbers if
    each of its values is one, written as it would be printed, or missing (empty, or NA), else text;
  the fields that the table declares, if they cover the value (or the key) without a gap; a key or
    value that they do not cover is bytes, in a column called key or value;
  else key and value, as bytes: Binary in parquet and arrow; in csv and jsonl text in which bytes
    that are not printable stand as \\xE2, \\n or \\0, and a backslash as two.

Every entry is looked at first: where one would not come back to the byte (a key that --duplicates
all numbered, a record that a program wrote otherwise), all are written as bytes, and a notice
says why.

A file is whole or not there: it is called FILE.part until it is done. One that is there stays,
unless --overwrite is given. The command that reads it back is printed: `sapwood load` for typed
columns, else `sapwood import`. The directory is not changed.

Of a roll-up, --to names a folder, in which there is a Parquet file for each interval of the
segment granularity: __time, the dimensions, and the metrics, with the states of sketches beside
them.")]
    Export(Export),

    /// Put the rows of a CSV, JSON lines, Parquet or Arrow file into a table of a directory
    #[command(after_help = "\
Examples:
  sapwood import new rows flights.csv.zst --engine tree -k carrier:str,flight:int,month:int,day:int
  sapwood import stock pieces pieces.csv --layout 'key(shop:str), pieces:u32le, euros:f64le@4'
  zcat hits.jsonl.gz | sapwood import counters hits - --format jsonl --json

`sapwood sample files` writes the files.

Rows of typed columns are for `sapwood load`. What `sapwood export` wrote of other tables comes
back to the same bytes. Parquet and arrow files say how their rows are keys and values; for a new
table, --key or --layout says it of csv and jsonl (the export prints the command). Columns called
key and value alone are bytes, as `sapwood scan` prints them. A table that is there knows its own
columns.

An entry whose key is there takes its place; none is removed. The first row that cannot be used
ends it with its line and exit code 1; the rows before it stay, and are counted.")]
    Import(Import),

    /// Print the changes of a directory's tables, also while another process makes them
    #[command(after_help = "\
Examples:
  sapwood tail counters
  sapwood tail counters --table hits --json
  timeout 1 sapwood tail counters --follow || true

Examples of `load`, `ingest` and `import` make the directories.

A line is a change: the position behind it, the table, what was done, key and value. Lines of one
position happened together. Nothing is locked, and the directory is not changed. Changes of tree
tables are not told.

The log begins where the last checkpoint of the directory needs it: a reader that stays behind
finds the next change gone, and says so.")]
    Tail(Tail),

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

    /// Commands and SQL: to a database in this process, or commands to a server
    #[command(after_help = "\
Examples:
  sapwood shell                                     a database in memory, and files
  sapwood shell flights                             tables in a directory
  sapwood shell -c \"select count(*) from 'flights.csv.zst'\"
  sapwood shell redis://user@127.0.0.1:6379/0       a server; rediss:// with TLS
  sapwood shell unix:///run/sapwood.sock
  sapwood shell -c 'SET a 1' -c 'GET a'             commands, and an end
  echo 'GET a' | sapwood shell 127.0.0.1 --output json

The password comes from the address, from SAPWOOD_PASSWORD, or with --askpass from the terminal.
Statements of SQL go over lines and end with `;`. Lines of commands are quoted as for redis-cli.
`.help` says what there is, `help COMMAND` what a command does. History is kept in the user's
state folder, or where SAPWOOD_HISTORY says; commands with passwords are not. On a terminal
`sapwood` alone is this shell.")]
    Shell(Shell),

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

    /// Threads that add up delays, beside one that reads meanwhile, or that answer [default: one a core]
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Shell {
    /// A directory to open in this process, or a server: HOST:PORT, redis://, rediss:// or unix://
    /// [default: a database in memory]
    ///
    /// A directory is there, or begins with `/`, `./` or `../`; any other text is a server.
    #[arg(conflicts_with = "dir", value_name = "DIR | ADDRESS")]
    pub(crate) target: Option<String>,

    /// The same as DIR, whatever its name
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,

    /// Execute this line, or these statements, and end; may be repeated
    ///
    /// The exit code is 1 if a reply is an error. Without it lines come from standard input.
    #[arg(long = "command", short, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) commands: Vec<String>,

    /// The form of replies [default: table, or json with --json]
    #[arg(long, short, visible_alias = "mode", value_name = "FORM")]
    pub(crate) output: Option<Form>,

    /// Say how long each reply took, on standard error
    #[arg(long)]
    pub(crate) timing: bool,

    /// Ask for the password
    #[arg(long, requires = "target")]
    pub(crate) askpass: bool,

    /// Trust the certificates in this PEM file [default: those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "target")]
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
    /// Tables of Markdown; values as with table
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SampleName {
    /// The 336,776 flights that left New York City in 2013, in ordered tables
    Flights,
    /// The same, rolled up as they come in, by hour, carrier, origin and destination
    Delays,
    /// The files that examples of the help and of README name, written into the current directory
    Files,
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
