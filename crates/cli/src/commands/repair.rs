//! `sapwood repair`: what can be read of a damaged directory, copied into a new one.

use std::io::Write;
use std::time::Duration;

use comfy_table::{CellAlignment, Table};
use sapwood::{Db, Salvage, TreeSalvage};
use serde_json::{Value, json};

use super::check::problem_as_json;
use super::stats::engine_name;
use crate::args::directories::Repair;
use crate::rows::kept;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, table, write_table};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &Repair, ui: &Ui) -> Outcome {
    kept::expect_database(&args.directory)?;
    let bar = ui.progress_unknown("copying");
    bar.enable_steady_tick(Duration::from_millis(100));
    let salvage = match args.past_damage {
        true => Db::salvage_past_damage(&args.directory, &args.into),
        false => Db::salvage(&args.directory, &args.into),
    };
    // What is handed over is sound, or said not to be.
    let checked = salvage.and_then(|salvage| Db::check(&args.into).map(|check| (salvage, check)));
    bar.finish_and_clear();
    let (salvage, check) = checked?;
    if let Some(problem) = check.problems.first() {
        return Err(Failure::Failed(format!(
            "the copy in {} is not sound: {problem}; this is a bug of sapwood, please report it",
            args.into.display()
        )));
    }
    match ui.answers {
        Answers::Json => ui.print_json(&as_json(&salvage))?,
        Answers::Text => ui.print(|out| {
            if !salvage.tables.is_empty() {
                write_table(&as_table(&salvage), out)?;
            }
            for problem in &salvage.problems {
                writeln!(out, "{problem}")?;
            }
            match &salvage.trees {
                Some(trees) => write_trees(trees, out),
                None => Ok(()),
            }
        })?,
    }
    match salvage.is_complete() {
        true => Ok(()),
        false => Err(Failure::Failed(format!(
            "{} has what could be read of {}, and something is lost",
            args.into.display(),
            args.directory.display()
        ))),
    }
}

fn write_trees(trees: &TreeSalvage, out: &mut impl Write) -> std::io::Result<()> {
    write_table(&trees_as_table(trees), out)?;
    for problem in &trees.problems {
        writeln!(out, "{problem}")?;
    }
    for tree in &trees.trees {
        for problem in &tree.problems {
            writeln!(out, "table {}: {problem}", tree.name)?;
        }
        let more = tree.problem_count - tree.problems.len() as u64;
        if more > 0 {
            writeln!(out, "table {}: and {} more", tree.name, count(more))?;
        }
    }
    Ok(())
}

fn as_json(salvage: &Salvage) -> Value {
    let tables = salvage.tables.iter().map(|table| {
        json!({ "table": table.name, "engine": engine_name(table.engine), "copied": table.entries })
    });
    let trees = salvage.trees.iter().flat_map(|trees| &trees.trees).map(|tree| {
        json!({
            "table": tree.name,
            "copied": tree.copied,
            "counted": tree.counted,
            "problems": tree.problems,
            "problem_count": tree.problem_count,
        })
    });
    let of_heap = salvage.trees.iter().flat_map(|trees| &trees.problems);
    json!({
        "complete": salvage.is_complete(),
        "problems": salvage.problems.iter().map(problem_as_json).collect::<Vec<_>>(),
        "tables": tables.collect::<Vec<_>>(),
        "trees": trees.collect::<Vec<_>>(),
        "heap_problems": of_heap.collect::<Vec<_>>(),
    })
}

fn as_table(salvage: &Salvage) -> Table {
    let mut table = table(["table", "engine", "copied"]);
    for saved in &salvage.tables {
        let engine = engine_name(saved.engine).to_owned();
        table.add_row([saved.name.clone(), engine, count(saved.entries)]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn trees_as_table(salvage: &TreeSalvage) -> Table {
    let mut table = table(["table", "copied", "it counted", "problems"]);
    for tree in &salvage.trees {
        table.add_row([
            tree.name.clone(),
            count(tree.copied),
            tree.counted.map_or("unknown".to_owned(), count),
            count(tree.problem_count),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
