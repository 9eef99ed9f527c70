//! The memory of a flight.

use std::time::Instant;

use serde_json::json;

use crate::commands::stats;
use crate::terminal::exit::Outcome;
use crate::terminal::format::bytes;
use crate::terminal::ui::Ui;

use super::tables::Tables;
use crate::samples::answer::{Answer, Effort, equal};

impl Tables {
    pub(super) fn memory(&self, ui: &Ui) -> Outcome {
        let started = Instant::now();
        let stats = self.flights.stats();
        let elapsed = started.elapsed();
        let rows = &self.source.rows;
        let mut key = Vec::new();
        let (mut key_bytes, mut value_bytes) = (0, 0);
        for flight in rows {
            flight.id.encode_into(&mut key);
            key_bytes += key.len() as u64;
            value_bytes += flight.details.encode().len() as u64;
        }
        equal("bytes of keys", stats.key_bytes, key_bytes)?;
        equal("bytes of values", stats.value_bytes, value_bytes)?;
        let accounted = stats.key_bytes
            + stats.value_bytes
            + stats.overhead_bytes
            + stats.retired_bytes
            + stats.free_bytes;
        equal("bytes accounted for", accounted, stats.reserved_bytes)?;
        let each = |bytes: u64| bytes as f64 / rows.len() as f64;
        let raw = self.source.csv_bytes;
        let mut json = stats::as_json(&stats);
        json.insert("csv_bytes".to_owned(), json!(raw));
        Answer {
            name: "memory",
            question: "What does a flight cost in memory?".to_owned(),
            text: format!(
                "{}\n{:.1} B mapped for each flight; its key and value have {:.1} B, its line of CSV {:.1} B ({} in all)",
                stats::as_table(&stats),
                each(stats.reserved_bytes),
                each(stats.key_bytes + stats.value_bytes),
                each(raw),
                bytes(raw),
            ),
            json: json.into(),
            effort: Effort {
                work: 1,
                unit: "stats",
                elapsed,
            },
            verified: "the bytes of all keys and values, encoded again, add up to the same",
        }
        .print(ui)
    }
}
