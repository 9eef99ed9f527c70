//! The `sapwood` command line: samples, loading files, looking around in them.
//!
//! Each module uses those above it alone:
//!
//! | module | holds |
//! |---|---|
//! | `terminal` | answers, notices, errors and exit codes |
//! | `args` | the arguments, with their help |
//! | `rows` | rows of files and of directories |
//! | `commands` | a module for each command |
//! | `samples` | bundled real data, and questions about it |
#![forbid(unsafe_code)]
// They panic when the reader has left: `stderr::line` and `Ui::print` are the ways out.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod commands;
mod rows;
mod samples;
mod terminal;

use std::env;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use args::{Args, Command};
use commands::{
    aggregate, backup, check, checkpoints, compact, describe, export, get, import, ingest, inspect,
    load, manual, put, query, remove, repair, scan, serve, shell, sql, stats, tables, tail,
};
use terminal::exit;
use terminal::ui::{Answers, Notices, Ui};

fn main() -> ExitCode {
    // Most commands end soon, and the thread that waits for Ctrl-C is to come.
    sapwood::prepare_process();
    let mut words: Vec<_> = env::args_os().collect();
    if words.len() <= 1 && io::stdin().is_terminal() && io::stdout().is_terminal() {
        words.push("shell".into());
    }
    let parsed = Args::command().try_get_matches_from(words).and_then(|matches| {
        let args =
            Args::from_arg_matches(&matches).map_err(|error| error.format(&mut Args::command()))?;
        Ok((matches, args))
    });
    let (matches, args) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return exit::of_arguments(&error),
    };
    // It has signals of its own.
    if let (Command::Serve(_), Some(("serve", options))) = (&args.command, matches.subcommand()) {
        return exit::code(serve::run(options, samples::load_flights));
    }
    let answers = if args.json { Answers::Json } else { Answers::Text };
    let notices = if args.quiet { Notices::Hidden } else { Notices::Shown };
    if let Command::Shell(args) = &args.command {
        return exit::code(shell::run(args, &Ui::with_own_signals(answers, notices)));
    }
    let ui = Ui::new(answers, notices);
    let outcome = match &args.command {
        Command::Sample(sample) => samples::run(sample, &ui),
        Command::Load(load) => load::run(load, &ui),
        Command::Get(get) => get::run(get, &ui),
        Command::Ingest(args) => ingest::run(args, &ui),
        Command::Query(query) => query::run(query, &ui),
        Command::Sql(args) => sql::run(args, &ui),
        Command::Scan(scan) => scan::run(scan, &ui),
        Command::Aggregate(aggregate) => aggregate::run(aggregate, &ui),
        Command::Stats(stats) => stats::run(stats, &ui),
        Command::Tables(args) => tables::run(args, &ui),
        Command::Describe(args) => describe::run(args, &ui),
        Command::Put(args) => put::run(args, &ui),
        Command::Remove(args) => remove::run(args, &ui),
        Command::Compact(args) => compact::run(args, &ui),
        Command::Checkpoints(args) => checkpoints::run(args, &ui),
        Command::Backup(args) => backup::backup(args, &ui),
        Command::Backups(args) => backup::list(args, &ui),
        Command::Restore(args) => backup::restore(args, &ui),
        Command::Check(args) => check::run(args, &ui),
        Command::Inspect(args) => inspect::run(args, &ui),
        Command::Repair(args) => repair::run(args, &ui),
        Command::Export(args) => export::run(args, &ui),
        Command::Import(args) => import::run(args, &ui),
        Command::Tail(args) => tail::run(args, &ui),
        Command::Shell(args) => shell::run(args, &ui),
        Command::Config(_) => match matches.subcommand().and_then(|(_, of)| of.subcommand()) {
            Some((_, options)) => serve::print_options(options, &ui),
            None => Ok(()),
        },
        // Above.
        Command::Serve(_) => Ok(()),
        Command::Completions(completions) => manual::completions(completions, &ui),
        Command::Man(man) => manual::man(man, &ui),
    };
    exit::code(outcome)
}
