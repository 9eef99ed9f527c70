//! Removal of the cancelled flights, and the memory around it.

use std::ops::ControlFlow;
use std::time::Instant;

use comfy_table::CellAlignment;
use sapwood::Direction;
use serde_json::json;

use crate::terminal::exit::Outcome;
use crate::terminal::format::{bytes, count};
use crate::terminal::ui::Ui;

use super::expected;
use super::tables::Tables;
use crate::samples::answer::{Answer, Effort, equal, listing};
use crate::samples::flight::Details;

impl Tables {
    pub(super) fn remove_cancelled(&self, ui: &Ui) -> Outcome {
        let before = self.flights.stats();
        let started = Instant::now();
        let mut cancelled = Vec::new();
        let _ = self.flights.scan(.., Direction::Ascending, |key, value| {
            if Details::decode(value).is_some_and(|details| details.dep_time.is_none()) {
                cancelled.push(key.to_vec());
            }
            ControlFlow::<()>::Continue(())
        })?;
        let mut removed = 0_u64;
        for key in &cancelled {
            removed += u64::from(self.flights.remove(key)?);
        }
        let elapsed = started.elapsed();
        let after = self.flights.stats();
        let expected = expected::cancelled(&self.source.rows);
        equal("cancelled flights", removed, expected as u64)?;
        equal("flights left", self.flights.len()?, self.source.rows.len() - expected)?;
        for flight in &self.source.rows {
            let there = self.flights.contains_key(flight.id.encode())?;
            equal("whether a flight is left", there, !flight.is_cancelled())?;
        }
        let live = |stats: &sapwood::OrderedStats| stats.key_bytes + stats.value_bytes;
        let reusable = |stats: &sapwood::OrderedStats| stats.free_bytes + stats.retired_bytes;
        let mut listing = listing(&["", "before", "after"]);
        for (name, before, after) in [
            ("flights", count(before.entries), count(after.entries)),
            ("keys and values", bytes(live(&before)), bytes(live(&after))),
            ("free or about to be", bytes(reusable(&before)), bytes(reusable(&after))),
            ("mapped", bytes(before.reserved_bytes), bytes(after.reserved_bytes)),
        ] {
            listing.add_row([name.to_owned(), before, after]);
        }
        for column in listing.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        Answer {
            name: "cancelled",
            question: "How many flights were cancelled, and what is left without them?".to_owned(),
            text: format!("{} were cancelled and are removed\n{listing}", count(removed)),
            json: json!({
                "removed": removed,
                "entries_before": before.entries,
                "entries_after": after.entries,
                "data_bytes_before": live(&before),
                "data_bytes_after": live(&after),
                "free_bytes_before": before.free_bytes,
                "free_bytes_after": after.free_bytes,
                "reserved_bytes_before": before.reserved_bytes,
                "reserved_bytes_after": after.reserved_bytes,
            }),
            effort: Effort { work: before.entries, unit: "flights", elapsed },
            verified: "each flight of the data is there, or gone if it has no departure",
        }
        .print(ui)
    }
}
