//! The end of a command: failures, their words, and exit codes.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done; also when the reader of the output closed it (`sapwood scan ... \| head`) |
//! | 1 | failed, or `get` found nothing, or `--strict` and rows were refused, or `shell` got an error |
//! | 2 | the arguments cannot be used |
//! | 130 | stopped by Ctrl-C or a termination signal |

use std::io::{self, Write};
use std::process::ExitCode;

use sapwood::aggregate;
use sapwood::schema::nearest;
use sapwood::{Engine, Error, HashEngineError, OrderedEngineError, TreeEngineError};

use crate::terminal::format::shown;
use crate::terminal::stderr;

/// The table of a directory that describes the others; messages do not list it.
pub(crate) const COLUMNS_TABLE: &str = "load.columns";

/// Why a command did not finish.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments do not fit each other or the file.
    Usage(String),
    /// What, where, and what to do next.
    Failed(String),
    /// Failed, and told so already.
    Said,
    /// Ctrl-C; what had been done.
    Interrupted(String),
    /// The reader of the output has closed it.
    OutputClosed,
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Of writing to standard output.
    pub(crate) fn of_output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Failed(format!("standard output cannot be written: {error}"))
        }
    }
}

impl From<sapwood::files::Error> for Failure {
    fn from(error: sapwood::files::Error) -> Self {
        use sapwood::files::Error;
        let what = error.to_string();
        match error {
            Error::Cancelled(_) => Self::Interrupted(what),
            Error::Format(_) => Self::Usage(what),
            Error::Write { kind: io::ErrorKind::BrokenPipe, .. } => Self::OutputClosed,
            Error::Exists { .. } => Self::Failed(format!(
                "{what} (--overwrite of `sapwood export` and `sapwood sql` does)"
            )),
            _ => Self::Failed(what),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(words(&error))
    }
}

fn entries(count: usize) -> String {
    match count {
        1 => "1 entry".to_owned(),
        many => format!("{many} entries"),
    }
}

/// What a user of the command line can do about an error of the library, which speaks to programs.
pub(crate) fn words(error: &Error) -> String {
    match error {
        Error::DirectoryInUse { path } => format!(
            "another process has {} open and changes it: wait until it ends, or stop it; commands that only read, as \
             `sapwood get` and `sapwood scan`, work beside it",
            path.display()
        ),
        Error::TableMissing { name, known } => {
            let known: Vec<&str> =
                known.iter().map(String::as_str).filter(|known| *known != COLUMNS_TABLE).collect();
            match &known[..] {
                [] => format!("no table `{}`, and no other; `sapwood load` makes one", shown(name)),
                known => match nearest(name, known.iter().copied()) {
                    Some(near) => format!("no table `{}`: did you mean `{near}`?", shown(name)),
                    None => format!("no table `{}`; there are: {}", shown(name), known.join(", ")),
                },
            }
        }
        Error::TableInUse { name, what } => {
            format!("table `{name}` is in use, so this command cannot {what} it; try again")
        }
        Error::OtherEngine { name, engine: Engine::Rollup } => format!(
            "table `{name}` is a roll-up table, which has no keys: `SW.QUERY` and `SW.INGEST` of \
             `sapwood serve` reach it; choose another --table"
        ),
        Error::OtherEngine { name, engine } | Error::TableExists { name, engine } => {
            format!("table `{name}` is there already and is {engine}; choose another --table")
        }
        Error::OrderedEngine { table, cause } => {
            let option = match cause {
                OrderedEngineError::OutOfMemory { budget: u64::MAX, .. } => "",
                OrderedEngineError::OutOfMemory { .. } => " (--memory-budget)",
                _ => "",
            };
            format!("table `{table}`: {cause}{option}")
        }
        Error::HashEngine { table, cause } => {
            let option = match cause {
                HashEngineError::OutOfMemory { budget: u64::MAX, .. } => "",
                HashEngineError::OutOfMemory { .. } => " (--memory-budget, --dir)",
                _ => "",
            };
            format!("table `{table}`: {cause}{option}")
        }
        Error::TreeEngine { table, cause } => format!("table `{table}`: {cause}"),
        Error::Trees { path: Some(path), cause } => {
            let next = match cause {
                TreeEngineError::Newer { .. } => "",
                _ => "; bring that folder back from a copy if it stays so",
            };
            format!("the tree tables in {}: {cause}{next}", path.display())
        }
        Error::Trees { path: None, cause } => format!("the tree tables: {cause}"),
        Error::OrderedBatch { table, done, cause } => {
            format!("table `{table}`: stopped after {}: {cause}", entries(*done))
        }
        Error::HashBatch { table, done, cause } => {
            format!("table `{table}`: stopped after {}: {cause}", entries(*done))
        }
        Error::Query(aggregate::QueryError::TooManyGroups { max }) => format!(
            "the rows fall into more than {max} groups: group by something coarser, or raise \
             --groups-max"
        ),
        Error::NoFields { table } => {
            format!("table `{table}` declares no fields: say with --layout how its rows are read")
        }
        Error::Corrupt { table, what } | Error::HashCorrupt { table, what } => format!(
            "table `{table}` is corrupt: {what}; stop using it, and report this with what \
             `sapwood stats` prints"
        ),
        Error::NoOrder { table } => format!(
            "table `{table}` is a hash table, which keeps no order: look keys up one by one, or load it with \
             --engine ordered"
        ),
        Error::NoSchema { table } => {
            format!("table `{table}` has keys and values of bytes, and no columns")
        }
        Error::Conflict => {
            "another process changes the same entries all the time: try again".to_owned()
        }
        Error::ReadOnly { path } => {
            format!("{} is open to be read: nothing in it can be changed", path.display())
        }
        Error::TreesCorrupt { problems } => format!(
            "the tree tables are corrupt: {}; bring their folder back from a copy, or save what can be read \
             (`sapwood repair DIR --into NEW`)",
            problems.join("; ")
        ),
        Error::NoDirectory => "there is no directory to keep the rows in: add --dir".to_owned(),
        Error::StoredOptions { path, offset, what } => format!(
            "{} is corrupt at offset {offset}: {what}; bring the directory back from a copy",
            path.display()
        ),
        other => other.to_string(),
    }
}

impl From<sapwood::rollup::Error> for Failure {
    fn from(error: sapwood::rollup::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<sapwood::key::DecodeError> for Failure {
    fn from(error: sapwood::key::DecodeError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Prints what there is to say and answers the exit code.
pub(crate) fn code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(Failure::Failed(message)) => {
            stderr::line(format_args!("error: {message}"));
            ExitCode::from(1)
        }
        Err(Failure::Said) => ExitCode::from(1),
        Err(Failure::Usage(message)) => {
            stderr::line(format_args!("error: {message}\n\nFor more information, try '--help'."));
            ExitCode::from(2)
        }
        Err(Failure::Interrupted(done)) => {
            stderr::line(format_args!("interrupted: {done}"));
            ExitCode::from(130)
        }
    }
}

/// Prints what is to be said of arguments that were not taken: help, a version, or a mistake.
pub(crate) fn of_arguments(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    match printed {
        // Help and versions are answers; of a mistake the exit code tells.
        Err(unwritten) if !error.use_stderr() => code(Err(Failure::of_output(unwritten))),
        _ => ExitCode::from(u8::try_from(error.exit_code()).expect("0 or 2")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood::{Db, HashTableOptions, OrderedTableOptions};

    #[test]
    fn errors_speak_of_options_and_commands_not_of_types() {
        let directory = tempfile::TempDir::new().expect("a directory for the test");
        let path = directory.path().to_string_lossy();
        let db = Db::open(directory.path()).expect("a database");
        let in_memory = Db::in_memory();
        let name = || "t".to_owned();
        let small = OrderedTableOptions::default().memory_budget(1 << 16);
        let small = in_memory.create_ordered_table("small", small).and_then(|table| {
            (0..100_000_u32).try_for_each(|n| table.put(n.to_be_bytes(), [0; 100]).map(drop))
        });
        let small_hash = HashTableOptions::default().memory_budget(1 << 20).page_bytes(1 << 16);
        let small_hash = in_memory.create_hash_table("small-hash", small_hash).and_then(|table| {
            (0..100_000_u32).try_for_each(|n| table.put(n.to_be_bytes(), [0; 100]).map(drop))
        });
        in_memory.create_ordered_table("ordered", OrderedTableOptions::default()).expect("a table");
        let batch = |done| {
            let cause = OrderedEngineError::KeyLength { len: 0 };
            Error::OrderedBatch { table: "t".into(), done, cause }
        };
        let held = db.create_hash_table("held", HashTableOptions::default()).expect("a table");
        for (error, says) in [
            (Db::open(directory.path()).map(drop), "another process has "),
            (db.hash_table("none").map(drop), "there are: held"),
            (in_memory.ordered_table("none").map(drop), "there are: ordered"),
            (Db::in_memory().ordered_table("none").map(drop), "`sapwood load` makes one"),
            (db.drop_table("held"), "is in use"),
            (in_memory.hash_table("ordered").map(drop), "choose another --table"),
            (in_memory.checkpoint(), "--dir"),
            (small, "(--memory-budget)"),
            (small_hash, "(--memory-budget, --dir)"),
            (Err(batch(1)), "after 1 entry:"),
            (Err(batch(2)), "after 2 entries:"),
            (Err(Error::NoFields { table: "t".into() }), "--layout"),
            (Err(Error::Corrupt { table: "t".into(), what: name() }), "sapwood stats"),
            (Err(Error::Query(aggregate::QueryError::TooManyGroups { max: 2 })), "--groups-max"),
        ] {
            // A random name of a directory may have any letters in it.
            let words = words(&error.expect_err(says)).replace(&*path, "DIR");
            assert!(words.contains(says), "{words}");
            for word in
                ["Db", "Options", "HashTable", "OrderedTable::", "Query::", "handle", "groups_max"]
            {
                assert!(!words.contains(word), "{words}");
            }
        }
        drop(held);
    }
}
