//! `sapwood inspect log`: what the log of a directory says.

use std::io::Write;
use std::path::Path;

use comfy_table::{CellAlignment, Table};
use sapwood::{Db, LogFrames, LogInspection};
use serde_json::{Value, json};

use crate::rows::kept;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{bytes, count, table, write_table};
use crate::terminal::ui::{Answers, Ui};

pub(super) fn inspect(directory: &Path, ui: &Ui) -> Outcome {
    kept::expect_database(directory)?;
    let Some(log) = Db::inspect_log(directory)? else {
        return Err(Failure::Failed(format!(
            "{} has no log: a program that opens it to change it makes one",
            directory.display()
        )));
    };
    match ui.answers {
        Answers::Json => ui.print_json(&as_json(&log))?,
        Answers::Text => ui.print(|out| {
            write_table(&figures(&log), out)?;
            writeln!(out)?;
            write_table(&parts(&log), out)?;
            if !log.tables.is_empty() {
                writeln!(out)?;
                write_table(&tables(&log), out)?;
            }
            for problem in &log.problems {
                writeln!(out, "{problem}")?;
            }
            Ok(())
        })?,
    }
    match log.problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(format!(
            "the log is damaged; `sapwood check {}` tells of all files",
            directory.display()
        ))),
    }
}

/// What the log says, how often.
fn frames(frames: &LogFrames) -> [(&'static str, u64); 6] {
    [
        ("puts", frames.puts),
        ("writes", frames.writes),
        ("removes", frames.removes),
        ("creates", frames.creates),
        ("drops", frames.drops),
        ("saves", frames.saves),
    ]
}

fn as_json(log: &LogInspection) -> Value {
    let parts = log
        .parts
        .iter()
        .map(|(file, first, bytes)| json!({ "file": file, "position": first, "bytes": bytes }));
    let tables = log.tables.iter().map(|table| {
        json!({
            "table": Some(&table.name).filter(|name| !name.is_empty()),
            "id": table.id,
            "changes": table.changes,
            "snapshot": table.snapshot.as_ref().map(|(file, _)| file),
            "snapshot_bytes": table.snapshot.as_ref().map(|(_, bytes)| bytes),
            "checkpoint": table.own,
        })
    });
    let said: serde_json::Map<String, Value> = frames(&log.frames)
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect();
    json!({
        "checkpoint": log.checkpoint,
        "begins": log.start,
        "ends": log.end,
        "durable": log.durable,
        "records": log.records,
        "says": said,
        "parts": parts.collect::<Vec<_>>(),
        "tables": tables.collect::<Vec<_>>(),
        "problems": log.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn figures(log: &LogInspection) -> Table {
    let mut table = table(["log", ""]);
    let positions = [
        ("last checkpoint", count(log.checkpoint)),
        ("begins at position", count(log.start)),
        ("ends at position", count(log.end)),
        ("known to last up to", count(log.durable)),
        ("records", count(log.records)),
    ];
    for (name, value) in positions {
        table.add_row([name.to_owned(), value]);
    }
    for (name, value) in frames(&log.frames) {
        table.add_row([name.to_owned(), count(value)]);
    }
    right(table, 1)
}

fn parts(log: &LogInspection) -> Table {
    let mut table = table(["file", "from position", "bytes"]);
    for (file, first, size) in &log.parts {
        table.add_row([file.clone(), count(*first), bytes(*size)]);
    }
    right(table, 1)
}

fn tables(log: &LogInspection) -> Table {
    let mut table = table(["table", "number", "changes", "saved in", "bytes"]);
    for of in &log.tables {
        let saved = match (&of.snapshot, of.own) {
            (Some((file, _)), _) => file.clone(),
            (None, Some(number)) => format!("its checkpoint {number}"),
            (None, None) => "the log".to_owned(),
        };
        let size = of.snapshot.as_ref().map_or(String::new(), |(_, size)| bytes(*size));
        // No table has such a name: the commits of all tree tables.
        let name = if of.name.is_empty() { "(trees)".to_owned() } else { of.name.clone() };
        table.add_row([name, of.id.to_string(), count(of.changes), saved, size]);
    }
    right(table, 1)
}

fn right(mut table: Table, from: usize) -> Table {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
