//! Memory that removed entries have left in hash tables, given back to the system.
//!
//! The writers of a table keep garbage below half of it, at pages that they fill. Where nothing is
//! written, no page is filled: so a timer looks at each table, and begins a *lap* where a sixth of
//! the log or more is garbage. A lap gives up one page after another, from the oldest, until little
//! garbage is left or the log has been gone through once. Garbage that a lap left behind begins no
//! other.
//!
//! While a table is written to fast, its writers do that work, less often and so for less: a lap
//! begins when the log grows slowly, or when memory is short.

use std::collections::HashMap;

use sapwood::{HashStats, HashTable, Result};

use crate::store::memory::Stretch;

/// Bytes of garbage that no lap begins for: a page of the default size.
const LEAST_BYTES: u64 = 2 << 20;
/// A lap begins when so large a part of the log is garbage, and what is left takes 1.2 times what is
/// live ...
const BEGIN_PART: u64 = 6;
/// ... and ends when this part of it is.
const END_PART: u64 = 32;
/// A log that has grown by this part since the last look, a tenth of a second before, is written to
/// fast: it doubles in some seconds.
const FAST_PART: u64 = 64;
/// The garbage of a log on the disk is looked at when the log has grown by this part.
const SAMPLED_PART: u64 = 64;

/// Laps by the names of tables.
#[derive(Debug, Default)]
pub(crate) struct Tidying {
    laps: HashMap<String, Lap>,
}

/// Knowledge of a table from earlier looks.
#[derive(Debug, Default)]
struct Lap {
    /// End of the lap that is under way.
    limit: Option<u64>,
    /// Garbage that the last lap has left, or less that there was since.
    left: u64,
    /// End of the log at the last look ...
    tail: Option<u64>,
    /// ... and when its garbage was looked at on the disk.
    sampled: u64,
}

impl Tidying {
    /// Forgets tables that are not there any more.
    pub(crate) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.laps.retain(|name, _| is_there(name));
    }

    /// Looks at a table, and gives pages up as long as that pays and `go_on` says so; true if there
    /// is more to do. `is_short` of memory, every page counts.
    ///
    /// # Errors
    /// The errors of the table, such as of a read from the disk.
    pub(crate) fn tidy(
        &mut self,
        table: &HashTable,
        is_short: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let lap = match self.laps.get_mut(table.name()) {
            Some(lap) => lap,
            None => self.laps.entry(table.name().to_owned()).or_default(),
        };
        let tidied = lap.tidy(table, is_short, go_on);
        lap.tail = Some(table.stats().tail);
        tidied
    }
}

impl Lap {
    fn tidy(
        &mut self,
        table: &HashTable,
        is_short: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let mut stats = table.stats();
        if self.limit.is_none() {
            if !self.is_due(&stats, is_short) && !self.wants_sample(&stats) {
                return Ok(false);
            }
            if is_on_disk(&stats) {
                // Garbage on the disk is estimated, and a lap reads all of it.
                self.sample(table)?;
                stats = table.stats();
            }
            if !self.is_due(&stats, is_short) {
                return Ok(false);
            }
            self.limit = Some(stats.tail);
        }
        while self.is_under_way(&stats) {
            if !go_on() {
                return Ok(true);
            }
            match table.compact_step() {
                // A walk or a checkpoint goes on, and this can wait.
                Ok(None) => return Ok(false),
                Ok(Some(done)) if done.bytes_freed > 0 => stats = table.stats(),
                Ok(Some(_)) => break,
                Err(error) => {
                    self.end(&stats);
                    return Err(error);
                }
            }
        }
        if is_on_disk(&stats) {
            self.sample(table)?;
            stats = table.stats();
        }
        self.end(&stats);
        Ok(false)
    }

    /// Tells if a lap should begin.
    fn is_due(&mut self, stats: &HashStats, is_short: bool) -> bool {
        let Stretch { log, garbage } = Stretch::of(stats);
        self.left = self.left.min(garbage);
        let grown = stats.tail.saturating_sub(self.tail.unwrap_or(stats.tail));
        let is_fast = grown > log / FAST_PART;
        let least = if is_short { LEAST_BYTES } else { LEAST_BYTES.max(log / BEGIN_PART) };
        garbage - self.left > least && (is_short || !is_fast)
    }

    /// Tells if the lap that is under way has more to do.
    fn is_under_way(&self, stats: &HashStats) -> bool {
        let Stretch { log, garbage } = Stretch::of(stats);
        let little = (LEAST_BYTES / 2).max(log / END_PART);
        self.limit.is_some_and(|limit| stats.begin < limit) && garbage > little
    }

    fn end(&mut self, stats: &HashStats) {
        self.limit = None;
        self.left = Stretch::of(stats).garbage;
    }

    /// Tells if more has been written to the disk than the last estimate of its garbage covers.
    fn wants_sample(&self, stats: &HashStats) -> bool {
        let part = LEAST_BYTES.max(Stretch::of(stats).log / SAMPLED_PART);
        is_on_disk(stats) && stats.tail.saturating_sub(self.sampled) > part
    }

    fn sample(&mut self, table: &HashTable) -> Result<()> {
        self.sampled = table.stats().tail;
        table.estimate_garbage().map(drop)
    }
}

/// Tells if a table has files, whose garbage is not counted but estimated.
fn is_on_disk(stats: &HashStats) -> bool {
    !stats.reads_by.is_empty()
}

#[cfg(test)]
mod tests {
    use sapwood::{Db, HashTableOptions};

    use super::*;

    const VALUE: [u8; 1_000] = [7; 1_000];

    fn key(number: u64) -> [u8; 8] {
        number.to_le_bytes()
    }

    fn table(db: &Db, entries: u64) -> HashTable {
        let table = db.create_hash_table("t", HashTableOptions::default()).expect("a table");
        (0..entries).for_each(|number| table.put(key(number), VALUE).expect("room"));
        table
    }

    fn tidy(tidying: &mut Tidying, table: &HashTable) -> bool {
        tidying.tidy(table, false, &mut || true).expect("memory")
    }

    #[test]
    fn a_table_gives_back_what_removed_entries_have_left() {
        let folder = tempfile::tempdir().expect("a folder");
        for db in [Db::in_memory(), Db::open(folder.path()).expect("a directory")] {
            let table = table(&db, 20_000);
            let mut tidying = Tidying::default();
            assert!(!tidy(&mut tidying, &table));
            let full = table.stats();
            assert_eq!(full.compactions, 0, "there is no garbage");
            for number in (0..20_000).filter(|number| number % 10 > 0) {
                table.remove(key(number)).expect("it is there");
            }
            assert!(!tidy(&mut tidying, &table), "all is done");
            let left = table.stats();
            let fresh = full.log_bytes / 10;
            assert!(left.log_bytes < fresh * 12 / 10 + 2 * LEAST_BYTES, "{left:?}");
            for number in 0..20_000 {
                let there = table.contains_key(key(number)).expect("it is read");
                assert_eq!(there, number % 10 == 0, "{number}");
            }
            table.check().expect("all is well");
            // Garbage that is left begins no other lap.
            assert!(!tidy(&mut tidying, &table));
            assert_eq!(table.stats().compactions, left.compactions);
        }
    }

    #[test]
    fn a_lap_is_made_in_parts_and_gives_way_to_walks() {
        let db = Db::in_memory();
        let table = table(&db, 10_000);
        (1..10_000).for_each(|number| _ = table.remove(key(number)).expect("it is there"));
        let mut tidying = Tidying::default();
        let snapshot = table.snapshot().expect("memory");
        assert!(!tidy(&mut tidying, &table), "it waits for nothing");
        assert_eq!(table.stats().compacted_bytes, 0);
        drop(snapshot);
        let mut calls = 0;
        while tidying.tidy(&table, false, &mut steps(1)).expect("memory") {
            calls += 1;
        }
        assert!(calls > 2, "{calls} calls");
        assert!(table.stats().log_bytes <= 2 * LEAST_BYTES, "{:?}", table.stats());
    }

    /// Lets so many steps be made.
    fn steps(mut left: u32) -> impl FnMut() -> bool {
        move || {
            left = left.wrapping_sub(1);
            left != u32::MAX
        }
    }

    #[test]
    fn a_table_that_is_written_to_fast_is_left_to_its_writers_unless_memory_is_short() {
        let db = Db::in_memory();
        let table = table(&db, 10_000);
        let mut tidying = Tidying::default();
        tidy(&mut tidying, &table);
        (0..4_000).for_each(|number| _ = table.remove(key(number)).expect("it is there"));
        (20_000..22_000).for_each(|number| table.put(key(number), VALUE).expect("memory"));
        let before = table.stats();
        tidy(&mut tidying, &table);
        assert_eq!(table.stats().begin, before.begin, "it has grown");
        (22_000..24_000).for_each(|number| table.put(key(number), VALUE).expect("memory"));
        tidying.tidy(&table, true, &mut || true).expect("memory");
        assert!(table.stats().begin > before.begin, "memory is short");
        (4_000..8_000).for_each(|number| _ = table.remove(key(number)).expect("it is there"));
        let before = table.stats();
        tidy(&mut tidying, &table);
        assert!(table.stats().begin > before.begin, "it has not grown");
    }

    #[test]
    fn tables_that_have_gone_are_forgotten() {
        let db = Db::in_memory();
        let mut tidying = Tidying::default();
        tidy(&mut tidying, &table(&db, 1));
        tidying.retain(|name| name == "t");
        assert_eq!(tidying.laps.len(), 1);
        tidying.retain(|_| false);
        assert!(tidying.laps.is_empty());
    }
}
