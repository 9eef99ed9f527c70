//! The costs of a hash table, in memory and on the disk.

use comfy_table::{CellAlignment, Table};
use serde_json::{Value, json};

use crate::terminal::format::{bytes, count, table};

use super::fields;

/// Every figure under its name.
pub(crate) fn as_json(stats: &sapwood::HashStats) -> serde_json::Map<String, Value> {
    fields(json!({
        "entries_estimate": stats.entries_estimate,
        "buckets": stats.buckets,
        "overflow_buckets": stats.overflow_buckets,
        "slots": stats.slots,
        "index_bytes": stats.index_bytes,
        "log_bytes": stats.log_bytes,
        "reserved_bytes": stats.reserved_bytes,
        "budget_bytes": stats.budget_bytes,
        "begin": stats.begin,
        "head": stats.head,
        "safe_read_only": stats.safe_read_only,
        "tail": stats.tail,
        "garbage_bytes": stats.garbage_bytes,
        "file_bytes": stats.file_bytes,
        "held_bytes": stats.held_bytes,
        "compactions": stats.compactions,
        "compacted_bytes": stats.compacted_bytes,
        "moved_bytes": stats.moved_bytes,
        "compaction_error": stats.compaction_error.as_ref().map(ToString::to_string),
        "cold_reads": stats.cold_reads,
        "cached_reads": stats.cached_reads,
        "read_cache_bytes": stats.read_cache_bytes,
        "pages": stats.pages,
    }))
}

/// Where the bytes of a table are, in all and for each entry.
pub(crate) fn as_table(stats: &sapwood::HashStats) -> Table {
    let each = |number: u64| match stats.entries_estimate {
        0 => String::new(),
        entries => format!("{:.1}", number as f64 / entries as f64),
    };
    let mut table = table(["where", "bytes", "", "an entry"]);
    for (name, number) in [
        ("index", stats.index_bytes),
        ("log in memory", stats.log_bytes),
        ("read cache", stats.read_cache_bytes),
        ("mapped from the system", stats.reserved_bytes),
        ("log on disk", stats.file_bytes),
        ("  held for checkpoints", stats.held_bytes),
        ("log in use, begin to tail", stats.tail - stats.begin),
        ("  garbage", stats.garbage_bytes),
    ] {
        table.add_row([name.to_owned(), count(number), bytes(number), each(number)]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.add_row([
        "entries".to_owned(),
        count(stats.entries_estimate),
        format!("{} buckets", count(stats.buckets)),
        format!("{:.2} slots each", stats.load()),
    ]);
    table.add_row(["pages", "", "", stats.pages]);
    if let Some(error) = &stats.compaction_error {
        table.add_row(["compaction stopped".to_owned(), error.to_string()]);
    }
    table
}
