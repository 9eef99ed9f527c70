//! `sapwood repair`: what can be read of damaged tree tables, copied into a new directory.

use std::io::Write;

use comfy_table::{CellAlignment, Table};
use sapwood::{Db, TreeSalvage};
use serde_json::{Value, json};

use crate::args::Repair;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, table, write_table};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &Repair, ui: &Ui) -> Outcome {
    let salvage = Db::salvage(&args.directory, &args.into)?;
    // What is handed over is sound, or said not to be.
    let new = Db::open_read_only(&args.into)?;
    if let Some(report) = new.check_trees()?
        && let Some(problem) = report.problems.first()
    {
        return Err(Failure::Failed(format!(
            "the copy in {} is not sound: {problem}; this is a bug of sapwood, please report it",
            args.into.display()
        )));
    }
    match ui.answers {
        Answers::Json => ui.print_json(&as_json(&salvage))?,
        Answers::Text => ui.print(|out| {
            write_table(&as_table(&salvage), out)?;
            for problem in &salvage.problems {
                writeln!(out, "{problem}")?;
            }
            for tree in &salvage.trees {
                for problem in &tree.problems {
                    writeln!(out, "table {}: {problem}", tree.name)?;
                }
                let more = tree.problem_count - tree.problems.len() as u64;
                if more > 0 {
                    writeln!(out, "table {}: and {} more", tree.name, count(more))?;
                }
            }
            Ok(())
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

fn as_json(salvage: &TreeSalvage) -> Value {
    let trees = salvage.trees.iter().map(|tree| {
        json!({
            "table": tree.name,
            "copied": tree.copied,
            "counted": tree.counted,
            "problems": tree.problems,
            "problem_count": tree.problem_count,
        })
    });
    json!({
        "complete": salvage.is_complete(),
        "problems": salvage.problems,
        "trees": trees.collect::<Vec<_>>(),
    })
}

fn as_table(salvage: &TreeSalvage) -> Table {
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
