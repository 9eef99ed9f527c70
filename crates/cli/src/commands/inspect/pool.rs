//! `sapwood inspect pool`: the files, trees and heap of tree tables, and whether all that must hold
//! does.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table};
use sapwood::{Db, Engine, RecordLayout, TreePool, TreeTable};
use serde_json::{Value, json};

use crate::commands::stats::kind_name;
use crate::rows::kept;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{bytes, count, plural, table, time, write_table};
use crate::terminal::ui::{Answers, Ui};

/// A pool that was opened, and the time that took.
struct Opened {
    db: Db,
    elapsed: Duration,
}

fn open(directory: &Path, ui: &Ui) -> Outcome<Opened> {
    let started = Instant::now();
    let db = kept::database(directory, ui)?;
    let elapsed = started.elapsed();
    match db.has_trees() {
        true => Ok(Opened { db, elapsed }),
        false => Err(Failure::Failed(format!(
            "{} has no tree tables; `sapwood load FILE --engine tree --dir {}` makes one",
            directory.display(),
            directory.display()
        ))),
    }
}

pub(super) fn inspect(directory: &Path, ui: &Ui) -> Outcome {
    let Opened { db, elapsed } = open(directory, ui)?;
    let Some(pool) = db.tree_pool()? else { return Ok(()) };
    let names = db.table_names().into_iter();
    let trees = names.filter(|name| db.engine(name) == Some(Engine::Tree));
    let trees = trees.map(|name| db.tree_table(&name)).collect::<sapwood::Result<Vec<_>>>()?;
    match ui.answers {
        Answers::Json => ui.print_json(&as_json(&pool, &trees, elapsed)?),
        Answers::Text => {
            let tables = [as_table(&pool, elapsed), trees_as_table(&trees)?, heap_as_table(&pool)];
            ui.print(|out| {
                tables.iter().enumerate().try_for_each(|(index, table)| {
                    if index > 0 {
                        writeln!(out)?;
                    }
                    write_table(table, out)
                })
            })
        }
    }
}

/// Checks everything, and prints what is wrong.
pub(super) fn check(directory: &Path, ui: &Ui) -> Outcome {
    let Opened { db, .. } = open(directory, ui)?;
    let started = Instant::now();
    let Some(report) = db.check_trees()? else { return Ok(()) };
    let elapsed = started.elapsed();
    match ui.answers {
        Answers::Json => ui.print_json(&json!({
            "trees": report.trees,
            "entries": report.entries,
            "objects": report.objects,
            "seconds": elapsed.as_secs_f64(),
            "problems": report.problems,
        }))?,
        Answers::Text => ui.print(|out| {
            writeln!(
                out,
                "{}, {} of {}: checked in {}",
                plural(report.trees as usize, "tree"),
                plural(report.objects as usize, "object"),
                match report.entries {
                    1 => "1 entry".to_owned(),
                    many => format!("{} entries", count(many)),
                },
                time(elapsed)
            )?;
            report.problems.iter().try_for_each(|problem| writeln!(out, "{problem}"))
        })?,
    }
    match report.problems.len() {
        0 => Ok(()),
        problems => Err(Failure::Failed(format!(
            "the tree tables in {} are damaged ({}): bring the directory back from a copy, or save \
             what can be read: `sapwood repair {} --into NEW`",
            directory.display(),
            plural(problems, "problem"),
            directory.display()
        ))),
    }
}

fn as_json(pool: &TreePool, trees: &[TreeTable], elapsed: Duration) -> Outcome<Value> {
    let tree = |tree: &TreeTable| {
        Ok(json!({
            "table": tree.name(),
            "kind": kind_name(tree.kind()),
            "layout": layout_name(tree.layout()),
            "entries": tree.len()?,
            "fields": tree.fields().map(ToString::to_string),
        }))
    };
    let trees = trees.iter().map(tree).collect::<sapwood::Result<Vec<_>>>()?;
    let classes = pool.heap.classes.iter().map(|class| {
        json!({
            "slot_bytes": class.slot_bytes,
            "runs": class.runs,
            "slots": class.slots,
            "taken": class.taken,
        })
    });
    Ok(json!({
        "version": pool.files.as_ref().map(|files| files.version),
        "id": pool.files.as_ref().map(|files| format!("{:016x}", files.id)),
        "layout_name": pool.files.as_ref().map(|files| &files.layout_name),
        "checkpoint": pool.files.as_ref().map(|files| files.generation),
        "checkpoint_bytes": pool.files.as_ref().map(|files| files.checkpoint_bytes),
        "log_bytes": pool.files.as_ref().map(|files| files.log_bytes),
        "open_seconds": elapsed.as_secs_f64(),
        "trees": trees,
        "heap": {
            "bytes": pool.heap.heap_bytes,
            "objects": pool.heap.objects,
            "object_bytes": pool.heap.object_bytes,
            "free_chunk_bytes": pool.heap.free_chunk_bytes,
            "largest_free_bytes": pool.heap.largest_free_bytes,
            "classes": classes.collect::<Vec<_>>(),
        },
    }))
}

fn as_table(pool: &TreePool, elapsed: Duration) -> Table {
    let mut table = table(["pool", ""]);
    if let Some(files) = &pool.files {
        table.add_row(["version".to_owned(), files.version.to_string()]);
        table.add_row(["number".to_owned(), format!("{:016x}", files.id)]);
        if !files.layout_name.is_empty() {
            table.add_row(["layout name".to_owned(), files.layout_name.clone()]);
        }
        table.add_row(["checkpoint".to_owned(), count(files.generation)]);
        table.add_row(["log since then".to_owned(), bytes(files.log_bytes)]);
    }
    table.add_row(["opened in".to_owned(), time(elapsed)]);
    let heap = &pool.heap;
    table.add_row(["heap".to_owned(), bytes(heap.heap_bytes)]);
    let objects = format!("{} in {}", count(heap.objects), bytes(heap.object_bytes));
    table.add_row(["objects".to_owned(), objects]);
    table.add_row(["free chunks".to_owned(), bytes(heap.free_chunk_bytes)]);
    table.add_row(["largest free".to_owned(), bytes(heap.largest_free_bytes)]);
    table
}

fn trees_as_table(trees: &[TreeTable]) -> Outcome<Table> {
    let mut table = table(["table", "kind", "layout", "entries", "fields"]);
    for tree in trees {
        table.add_row([
            tree.name().to_owned(),
            kind_name(tree.kind()).to_owned(),
            layout_name(tree.layout()).to_owned(),
            count(tree.len()? as u64),
            tree.fields().map(ToString::to_string).unwrap_or_default(),
        ]);
    }
    for column in table.column_iter_mut().skip(3).take(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Ok(table)
}

/// What defragmenting could win: slots that are free in runs of each size.
fn heap_as_table(pool: &TreePool) -> Table {
    let mut table = table(["slots of", "runs", "slots", "taken", "full"]);
    for class in &pool.heap.classes {
        table.add_row([
            bytes(class.slot_bytes),
            count(class.runs),
            count(class.slots),
            count(class.taken),
            format!("{:.0} %", class.taken as f64 / class.slots.max(1) as f64 * 100.0),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn layout_name(layout: RecordLayout) -> &'static str {
    match layout {
        RecordLayout::Fixed8 => "fixed8",
        RecordLayout::Variable => "variable",
    }
}
