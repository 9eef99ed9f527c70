//! Threads that count a stream of flights, each from its own position on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use sapwood::{CheckpointInfo, Cut, Db, HashTable, HashTableOptions};

use crate::samples::flight::Flight;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::count;
use crate::terminal::ui::Ui;

use super::events;

/// The table of all counters.
pub(super) const TABLE: &str = "counters";

/// Less than half of what the counters need, so that most of them lie on the disk.
pub(super) const MEMORY_BUDGET: u64 = 12 << 20;

/// Flights of a batch: what one `add_many` counts.
pub(super) const BATCH_FLIGHTS: usize = 256;

/// About how many counters there will be.
const COUNTERS: u64 = 500_000;

pub(super) fn create(db: &Db) -> Outcome<HashTable> {
    let options = HashTableOptions::default()
        .memory_budget(MEMORY_BUDGET)
        .page_bytes(256 << 10)
        .expected_entries(COUNTERS);
    Ok(db.create_hash_table(TABLE, options)?)
}

/// A stream, and the table that it is counted into. Batch `b` of the stream is counted by thread
/// `b % threads`.
pub(super) struct Counting<'a> {
    pub(super) rows: &'a [Flight],
    pub(super) table: &'a HashTable,
    pub(super) threads: u16,
    /// Held shared to add a batch, exclusively to fix the moment of a checkpoint.
    gate: RwLock<()>,
}

/// The flights of a batch; none beyond the last.
pub(super) fn batch(rows: &[Flight], number: usize) -> &[Flight] {
    let begin = (number * BATCH_FLIGHTS).min(rows.len());
    let limit = (begin + BATCH_FLIGHTS).min(rows.len());
    &rows[begin..limit]
}

/// Which batch of the stream is batch `index` of a thread.
pub(super) fn batch_of_thread(thread: u16, index: u64, threads: u16) -> usize {
    index as usize * usize::from(threads) + usize::from(thread)
}

impl<'a> Counting<'a> {
    pub(super) fn new(rows: &'a [Flight], table: &'a HashTable, threads: u16) -> Self {
        Self { rows, table, threads, gate: RwLock::new(()) }
    }

    /// The batches that each thread has counted, by the table's counters.
    pub(super) fn positions(&self) -> Outcome<Vec<u64>> {
        let read = |thread| {
            let position = self.table.get_with(events::position_key(thread), decode)?;
            let position = position.flatten().unwrap_or(0);
            u64::try_from(position).map_err(|_| {
                Failure::Failed(format!("thread {thread} has the position {position}"))
            })
        };
        (0..self.threads).map(read).collect()
    }

    /// Counts up to the flight of index `limit`, and says in `counted` how many it has.
    pub(super) fn count_to(&self, limit: usize, counted: &AtomicU64, ui: &Ui) -> Outcome {
        let positions = self.positions()?;
        thread::scope(|scope| {
            let counters: Vec<_> = (0..self.threads)
                .zip(positions)
                .map(|(thread, position)| {
                    scope.spawn(move || self.count_thread(thread, position, limit, counted, ui))
                })
                .collect();
            let joined = counters.into_iter().map(|counter| {
                counter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            // All are joined before one failure is answered.
            joined.collect::<Vec<Outcome>>().into_iter().collect()
        })
    }

    fn count_thread(
        &self,
        thread: u16,
        position: u64,
        limit: usize,
        counted: &AtomicU64,
        ui: &Ui,
    ) -> Outcome {
        let rows = &self.rows[..limit];
        let mut deltas = Vec::new();
        for index in position.. {
            let flights = batch(rows, batch_of_thread(thread, index, self.threads));
            // A batch that the limit cuts is left for the next time: positions count whole ones.
            let is_cut = flights.len() < BATCH_FLIGHTS && limit < self.rows.len();
            if flights.is_empty() || is_cut || ui.interrupt.asked() {
                break;
            }
            deltas.clear();
            for flight in flights {
                events::append(flight, &mut deltas);
            }
            deltas.push((events::position_key(thread), 1));
            {
                let _open = self.gate.read().unwrap_or_else(PoisonError::into_inner);
                self.table.add_many(&deltas)?;
            }
            // Relaxed: a figure to look at; it guards nothing.
            counted.fetch_add(flights.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Takes a checkpoint while other threads count, whose moment lies between batches: a batch is
    /// many additions, and a checkpoint by itself may fall between two of them. Answers for how
    /// long counting waited, too.
    ///
    /// No thread adds while the gate is closed, so the part of the log that is changed in place begins
    /// at another address only because the checkpoint has fixed its moment. From then on changes
    /// go beyond it, and counting goes on while the checkpoint is written.
    pub(super) fn checkpoint(&self, cut: Cut) -> Outcome<(CheckpointInfo, Duration)> {
        thread::scope(|scope| {
            let closed = self.gate.write().unwrap_or_else(PoisonError::into_inner);
            let started = Instant::now();
            let before = self.table.stats().safe_read_only;
            let checkpoint = scope.spawn(|| self.table.checkpoint(cut));
            while self.table.stats().safe_read_only == before && !checkpoint.is_finished() {
                thread::yield_now();
            }
            drop(closed);
            let waited = started.elapsed();
            let info =
                checkpoint.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((info, waited))
        })
    }

    /// Counts the rest of the stream; answers how many additions that were.
    pub(super) fn count_to_end(&self, ui: &Ui) -> Outcome<u64> {
        let positions = self.positions()?;
        let left: Vec<&Flight> = self.left(&positions).collect();
        let mut deltas = Vec::new();
        left.iter().for_each(|flight| events::append(flight, &mut deltas));
        let progress = ui.progress("counting", left.len() as u64);
        let counted = AtomicU64::new(0);
        let outcome = thread::scope(|scope| {
            let counting = scope.spawn(|| self.count_to(self.rows.len(), &counted, ui));
            while !counting.is_finished() {
                progress.set_position(counted.load(Ordering::Relaxed));
                thread::sleep(std::time::Duration::from_millis(10));
            }
            counting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        progress.finish_and_clear();
        outcome.map(|()| deltas.len() as u64)
    }

    /// The flights that are not counted yet.
    fn left(&self, positions: &[u64]) -> impl Iterator<Item = &Flight> {
        let threads = self.threads;
        let positions = positions.to_vec();
        let batches = (0..self.rows.len().div_ceil(BATCH_FLIGHTS)).filter(move |number| {
            let thread = number % usize::from(threads);
            (number / usize::from(threads)) as u64 >= positions[thread]
        });
        batches.flat_map(|number| batch(self.rows, number))
    }

    /// `210 batches (thread 0), 208 batches (thread 1)`.
    pub(super) fn describe(&self, positions: &[u64]) -> String {
        let each = positions
            .iter()
            .enumerate()
            .map(|(thread, batches)| format!("{} batches (thread {thread})", count(*batches)));
        each.collect::<Vec<_>>().join(", ")
    }
}

/// A counter as it is stored.
pub(super) fn decode(value: &[u8]) -> Option<i64> {
    value.try_into().ok().map(i64::from_le_bytes)
}
