//! `sapwood checkpoints`: which checkpoints a table of a directory has, and the way back to one.

use std::io::Write;
use std::time::UNIX_EPOCH;

use comfy_table::{CellAlignment, Table, presets};
use sapwood::StoredCheckpoint;
use serde_json::{Value, json};

use crate::args::directories::Checkpoints;
use crate::rows::kept;
use crate::terminal::exit::Outcome;
use crate::terminal::format::{bytes, count, plural, time};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &Checkpoints, ui: &Ui) -> Outcome {
    let db = match args.go_back {
        Some(_) => kept::database_to_change(&args.directory, ui)?,
        None => kept::database(&args.directory, ui)?,
    };
    if let Some(number) = args.go_back {
        let newer = db.checkpoints(&args.table)?;
        let newer = newer.iter().filter(|checkpoint| checkpoint.number > number).count();
        db.hash_table_at(&args.table, number)
            .map_err(|error| kept::explained(&args.directory, &args.table, error))?;
        let removed = plural(newer, "newer checkpoint");
        ui.notice(format_args!(
            "table {} of {} goes on from checkpoint {number}; {removed} removed",
            args.table,
            args.directory.display()
        ));
    }
    let all = db.checkpoints(&args.table)?;
    match ui.answers {
        Answers::Json => all.iter().try_for_each(|one| ui.print_json(&as_json(one))),
        Answers::Text => ui.print(|out| writeln!(out, "{}", as_table(&all))),
    }
}

fn as_json(checkpoint: &StoredCheckpoint) -> Value {
    let taken = checkpoint.taken.and_then(|taken| taken.duration_since(UNIX_EPOCH).ok());
    let mut object = json!({
        "checkpoint": checkpoint.number,
        "taken_unix_seconds": taken.map(|taken| taken.as_secs()),
    });
    let fields = match &checkpoint.state {
        Ok(info) => json!({
            "opens": true,
            "full": info.full,
            "entries": info.entries,
            "log_bytes": info.end - info.begin,
            "written_bytes": info.written_bytes,
        }),
        Err(why) => json!({ "opens": false, "error": why.to_string() }),
    };
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object
}

fn as_table(all: &[StoredCheckpoint]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_header(["checkpoint", "entries", "log", "written", "taken", "state"]);
    for one in all {
        let age = one.taken.and_then(|taken| taken.elapsed().ok());
        let taken = age.map_or_else(|| "unknown".to_owned(), |age| format!("{} ago", time(age)));
        let number = one.number.to_string();
        table.add_row(match &one.state {
            Ok(info) => [
                number,
                count(info.entries),
                bytes(info.end - info.begin),
                bytes(info.written_bytes),
                taken,
                if info.full { "whole" } else { "whole, upon an older index" }.to_owned(),
            ],
            Err(why) => {
                let none = String::new;
                [number, none(), none(), none(), taken, format!("does not open: {why}")]
            }
        });
    }
    for column in table.column_iter_mut().take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
