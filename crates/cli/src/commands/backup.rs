//! `sapwood backup`, `sapwood backups`, `sapwood restore`.

use std::io::Write;
use std::time::{Instant, UNIX_EPOCH};

use comfy_table::{CellAlignment, Table};
use indicatif::ProgressBar;
use sapwood::{BackupInfo, BackupProgress, Backups};
use serde_json::{Value, json};

use crate::args::directories::{Backup, ListBackups, Restore};
use crate::rows::kept;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{bytes, count, plural, rate, table, time, write_table};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn backup(args: &Backup, ui: &Ui) -> Outcome {
    kept::expect_database(&args.directory)?;
    let started = Instant::now();
    let backups = Backups::open_or_create(&args.backups)?;
    // What was begun is taken away before the command ends.
    let _promise = ui.interrupt.promise();
    let bar = ui.progress_bytes("reading", 0);
    let done = backups.add_directory(&args.directory, told(&bar, ui));
    bar.finish_and_clear();
    let info = done.map_err(|error| unless_interrupted(error, ui, "there is no new backup"))?;
    let gone = match args.keep {
        Some(keep) => backups.keep(keep.get())?,
        None => Vec::new(),
    };
    match ui.answers {
        Answers::Json => ui.print_json(&as_json(&info))?,
        Answers::Text => ui.print(|out| {
            let BackupInfo { number, bytes: all, own_bytes, .. } = info;
            writeln!(
                out,
                "backup {number} of {} in {}: {}, {} of them written, in {} ({})",
                args.directory.display(),
                args.backups.display(),
                bytes(all),
                bytes(own_bytes),
                time(started.elapsed()),
                rate(all / 1_000_000, "MB", started.elapsed()),
            )
        })?,
    }
    if !gone.is_empty() {
        ui.notice(format_args!("{} removed", plural(gone.len(), "older backup")));
    }
    Ok(())
}

pub(crate) fn list(args: &ListBackups, ui: &Ui) -> Outcome {
    let backups = Backups::open(&args.backups)?;
    let infos = backups.list()?;
    if args.verify {
        let bar = ui.progress_bytes("verifying", 0);
        let done = backups.verify(None, told(&bar, ui));
        bar.finish_and_clear();
        done.map_err(|error| unless_interrupted(error, ui, "not all of it was read"))?;
    }
    match ui.answers {
        Answers::Json => infos.iter().try_for_each(|info| ui.print_json(&as_json(info))),
        Answers::Text => ui.print(|out| write_table(&as_table(&infos), out)),
    }
}

pub(crate) fn restore(args: &Restore, ui: &Ui) -> Outcome {
    let started = Instant::now();
    let backups = Backups::open(&args.backups)?;
    let _promise = ui.interrupt.promise();
    let bar = ui.progress_bytes("writing", 0);
    let done = backups.restore(args.number, &args.directory, told(&bar, ui));
    bar.finish_and_clear();
    let nothing = format!("{} is as it was", args.directory.display());
    let info = done.map_err(|error| unless_interrupted(error, ui, &nothing))?;
    match ui.answers {
        Answers::Json => ui.print_json(&as_json(&info)),
        Answers::Text => ui.print(|out| {
            writeln!(
                out,
                "{} is backup {} of {}: {} in {}",
                args.directory.display(),
                info.number,
                info.of,
                bytes(info.bytes),
                time(started.elapsed()),
            )
        }),
    }
}

/// Tells a bar, and ends the work on Ctrl-C.
fn told<'b>(bar: &'b ProgressBar, ui: &'b Ui) -> impl FnMut(BackupProgress) -> bool + 'b {
    |progress| {
        bar.set_length(progress.all);
        bar.set_position(progress.done);
        !ui.interrupt.asked()
    }
}

fn unless_interrupted(error: sapwood::Error, ui: &Ui, done: &str) -> Failure {
    match ui.interrupt.asked() {
        true => Failure::Interrupted(done.to_owned()),
        false => error.into(),
    }
}

fn as_json(info: &BackupInfo) -> Value {
    let taken = info.taken.duration_since(UNIX_EPOCH).ok();
    json!({
        "backup": info.number,
        "taken_unix_seconds": taken.map(|taken| taken.as_secs()),
        "of": info.of,
        "files": info.files,
        "bytes": info.bytes,
        "own_bytes": info.own_bytes,
    })
}

fn as_table(infos: &[BackupInfo]) -> Table {
    let mut table = table(["backup", "files", "bytes", "its own", "taken", "of"]);
    for info in infos {
        let age = info.taken.elapsed();
        table.add_row([
            info.number.to_string(),
            count(info.files),
            bytes(info.bytes),
            bytes(info.own_bytes),
            age.map_or_else(|_| "just now".to_owned(), |age| format!("{} ago", time(age))),
            info.of.clone(),
        ]);
    }
    for column in table.column_iter_mut().take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
