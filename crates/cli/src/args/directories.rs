//! The arguments of the commands that work on the directory of a database.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Subcommand;

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
