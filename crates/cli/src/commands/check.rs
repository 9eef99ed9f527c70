//! `sapwood check`: whether the files of a directory are what was written.

use std::io::Write;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table};
use sapwood::{Db, DbCheck, Problem};
use serde_json::{Value, json};

use crate::args::directories::Check;
use crate::rows::kept;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, plural, table, time, write_table};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &Check, ui: &Ui) -> Outcome {
    kept::expect_database(&args.directory)?;
    let started = Instant::now();
    let bar = ui.progress_unknown("checking");
    bar.enable_steady_tick(Duration::from_millis(100));
    let checked = Db::check(&args.directory);
    bar.finish_and_clear();
    let check = checked?;
    match ui.answers {
        Answers::Json => ui.print_json(&as_json(&check))?,
        Answers::Text => ui.print(|out| {
            if !check.tables.is_empty() {
                write_table(&as_table(&check), out)?;
            }
            for problem in &check.problems {
                writeln!(out, "{problem}")?;
            }
            if let Some(log) = &check.log {
                writeln!(
                    out,
                    "the log has {} up to position {}, and ended there",
                    plural(log.records as usize, "record"),
                    log.end
                )?;
            }
            if check.problems.is_empty() {
                writeln!(out, "everything is as it was written ({})", time(started.elapsed()))?;
            }
            Ok(())
        })?,
    }
    match check.problems.len() {
        0 => Ok(()),
        found => Err(Failure::Failed(format!(
            "{} in {}; `sapwood repair {} --into NEW` copies what can be read, and `sapwood restore` makes a \
             directory of a backup",
            plural(found, "problem"),
            args.directory.display(),
            args.directory.display()
        ))),
    }
}

pub(super) fn problem_as_json(problem: &Problem) -> Value {
    json!({
        "table": problem.table,
        "file": problem.path,
        "offset": problem.offset,
        "what": problem.what,
    })
}

fn as_json(check: &DbCheck) -> Value {
    let tables = check.tables.iter().map(|table| {
        json!({
            "table": table.name,
            "engine": super::stats::engine_name(table.engine),
            "entries": table.entries,
        })
    });
    json!({
        "sound": check.problems.is_empty(),
        "problems": check.problems.iter().map(problem_as_json).collect::<Vec<_>>(),
        "tables": tables.collect::<Vec<_>>(),
        "log_end": check.log.as_ref().map(|log| log.end),
        "log_records": check.log.as_ref().map(|log| log.records),
    })
}

fn as_table(check: &DbCheck) -> Table {
    let mut table = table(["table", "engine", "entries"]);
    for checked in &check.tables {
        let engine = super::stats::engine_name(checked.engine);
        table.add_row([checked.name.clone(), engine.to_owned(), count(checked.entries)]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
