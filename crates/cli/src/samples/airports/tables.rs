//! The tables of the sample, and the first check: every flight is in both.

use std::time::Instant;

use sapwood::{Db, HashTable, HashTableOptions, OrderedTable, OrderedTableOptions};
use serde_json::json;

use crate::samples::answer::{Answer, Effort, equal};
use crate::samples::flight::Flight;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{bytes, count, rate, time};
use crate::terminal::ui::Ui;

use super::record::{self, Record, VALUE_BYTES};

/// The flights, twice.
pub(super) struct Tables {
    pub(super) ordered: OrderedTable,
    pub(super) hash: HashTable,
}

/// Flights that are put at once.
const BATCH: usize = 1024;

impl Tables {
    pub(super) fn load(rows: &[Flight], ui: &Ui) -> Outcome<Self> {
        let records = record::all(rows);
        let db = Db::in_memory();
        let ordered = db.create_ordered_table("departures", OrderedTableOptions::default())?;
        let hash = db.create_hash_table("flights", HashTableOptions::default())?;

        let progress = ui.progress("loading", 2 * records.len() as u64);
        let put_all = |put: &dyn Fn(&Record) -> sapwood::Result<bool>| -> Outcome<_> {
            let started = Instant::now();
            let mut inserted = 0;
            for batch in records.chunks(BATCH) {
                for record in batch {
                    inserted += u64::from(put(record)?);
                }
                progress.inc(batch.len() as u64);
                if ui.interrupt.asked() {
                    progress.finish_and_clear();
                    let done = count(inserted);
                    return Err(Failure::Interrupted(format!("{done} flights had been loaded")));
                }
            }
            equal("flights put", inserted, records.len() as u64)?;
            Ok(started.elapsed())
        };
        let into_ordered = put_all(&|(key, value)| ordered.put_if_absent(key, value))?;
        let into_hash = put_all(&|(key, value)| hash.put_if_absent(key, value))?;
        progress.finish_and_clear();

        equal("entries of the ordered table", ordered.len()?, records.len())?;
        equal("entries of the hash table", hash.len()?, records.len())?;
        let tables = Self { ordered, hash };
        tables.expect(&records)?;
        let row_count = rows.len() as u64;
        let (ordered_bytes, hash_bytes) =
            (tables.ordered.stats().reserved_bytes, tables.hash.stats().reserved_bytes);
        Answer {
            name: "load",
            question: format!("Are all {} flights in both tables?", count(row_count)),
            text: format!(
                "an ordered table by (month, day, scheduled departure, carrier, flight): {}, {}, {}\n\
                 a hash table with the same keys and records of {VALUE_BYTES} bytes: {}, {}, {}",
                time(into_ordered),
                rate(row_count, "flights", into_ordered),
                bytes(ordered_bytes),
                time(into_hash),
                rate(row_count, "flights", into_hash),
                bytes(hash_bytes),
            ),
            json: json!({
                "flights": row_count,
                "ordered_bytes": ordered_bytes,
                "ordered_seconds": into_ordered.as_secs_f64(),
                "hash_bytes": hash_bytes,
                "hash_seconds": into_hash.as_secs_f64(),
            }),
            effort: Effort {
                work: 2 * row_count,
                unit: "flights",
                elapsed: into_ordered + into_hash,
            },
            verified: "each record was read back from both tables and is the same",
        }
        .print_as("airports", ui)?;
        Ok(tables)
    }

    /// Fails unless both tables have these records.
    pub(super) fn expect(&self, records: &[Record]) -> Outcome {
        for (key, value) in records {
            let is_same = |found: &[u8]| found == value;
            let ordered = self.ordered.get_with(key, is_same)?;
            equal("a record of the ordered table", ordered, Some(true))?;
            equal("a record of the hash table", self.hash.get_with(key, is_same)?, Some(true))?;
        }
        Ok(())
    }
}
