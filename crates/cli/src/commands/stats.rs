//! `sapwood stats`: the costs of a table, to the byte.

pub(crate) mod hash;

use comfy_table::{CellAlignment, Table};
use sapwood::{Engine, TableStats, TreeKind};
use serde_json::{Value, json};

use crate::args;
use crate::rows::open_input::open_input;
use crate::terminal::exit::Outcome;
use crate::terminal::format::{bytes, count, table, write_table};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &args::rows::Stats, ui: &Ui) -> Outcome {
    let loaded = open_input(&args.input, ui)?;
    loaded.tell(&args.input, ui);
    if let Some(table) = loaded.table.as_hash() {
        // The garbage of a table that was opened is unknown until it is estimated.
        table.estimate_garbage()?;
    }
    let (json, table) = match loaded.table.stats() {
        TableStats::Ordered(stats) => (as_json(&stats), as_table(&stats)),
        TableStats::Hash(stats) => (hash::as_json(&stats), hash::as_table(&stats)),
        TableStats::Tree(stats) => (tree_as_json(&stats), tree_as_table(&stats)),
        other => unreachable!("no other kind of table is made: {other:?}"),
    };
    match ui.answers {
        Answers::Json => {
            let mut object = json!({
                "file": args.input.file.display().to_string(),
                "key": loaded.keys.to_string(),
            });
            object.as_object_mut().expect("made so").extend(json);
            ui.print_json(&object)?;
        }
        Answers::Text => ui.print(|out| write_table(&table, out))?,
    }
    loaded.strictly(&args.input)
}

/// Every figure under its name.
pub(crate) fn as_json(stats: &sapwood::OrderedStats) -> serde_json::Map<String, Value> {
    let object = json!({
        "entries": stats.entries,
        "key_bytes": stats.key_bytes,
        "value_bytes": stats.value_bytes,
        "index_bytes": stats.index_bytes,
        "overhead_bytes": stats.overhead_bytes,
        "retired_bytes": stats.retired_bytes,
        "free_bytes": stats.free_bytes,
        "reserved_bytes": stats.reserved_bytes,
        "budget_bytes": stats.budget_bytes,
        "chunks": stats.chunks,
        "inner_nodes": stats.inner_nodes,
        "height": stats.height,
        "rebalances": stats.rebalances,
        "pages": stats.pages,
    });
    fields(object)
}

fn fields(object: Value) -> serde_json::Map<String, Value> {
    match object {
        Value::Object(object) => object,
        _ => unreachable!("json! of braces is an object"),
    }
}

fn tree_as_json(stats: &sapwood::TreeStats) -> serde_json::Map<String, Value> {
    fields(json!({
        "entries": stats.entries,
        "kind": kind_name(stats.kind),
        "heap_bytes": stats.trees.heap_bytes,
    }))
}

/// The engine of a table, as the arguments name it.
pub(crate) fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Ordered => "ordered",
        Engine::Hash => "hash",
        Engine::Tree => "tree",
        Engine::Rollup => "rollup",
        _ => "other",
    }
}

/// How a tree is balanced, as the arguments name it.
pub(crate) fn kind_name(kind: TreeKind) -> &'static str {
    match kind {
        TreeKind::BTree => "btree",
        TreeKind::CritBit => "crit-bit",
        TreeKind::RedBlack => "red-black",
    }
}

/// The heap is that of all tree tables of the directory.
fn tree_as_table(stats: &sapwood::TreeStats) -> Table {
    let mut table = table(["all tree tables", "bytes", ""]);
    let heap = stats.trees.heap_bytes;
    table.add_row(["heap".to_owned(), count(heap), bytes(heap)]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.add_row(["entries".to_owned(), count(stats.entries), kind_name(stats.kind).to_owned()]);
    table
}

/// Where the memory of a table is, in all and for each entry.
pub(crate) fn as_table(stats: &sapwood::OrderedStats) -> Table {
    let each = |number: u64| match stats.entries {
        0 => String::new(),
        entries => format!("{:.1}", number as f64 / entries as f64),
    };
    let mut table = table(["memory", "bytes", "", "an entry"]);
    for (name, number) in [
        ("keys", stats.key_bytes),
        ("values", stats.value_bytes),
        ("overhead", stats.overhead_bytes),
        ("  of it index", stats.index_bytes),
        ("retired, waiting for readers", stats.retired_bytes),
        ("free for new entries", stats.free_bytes),
        ("mapped from the system", stats.reserved_bytes),
    ] {
        table.add_row([name.to_owned(), count(number), bytes(number), each(number)]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.add_row([
        "entries".to_owned(),
        count(stats.entries),
        format!("{} chunks", count(stats.chunks)),
        format!("height {}", stats.height),
    ]);
    let pages = match stats.pages {
        "none" => "none: rows are read from the checkpoint",
        pages => pages,
    };
    table.add_row(["pages", "", "", pages]);
    table
}
