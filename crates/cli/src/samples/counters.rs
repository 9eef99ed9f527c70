//! `sapwood sample counters`: events counted into a table larger than its memory, by a process that
//! is killed while it counts; what is there afterwards, and how counting goes on.
//!
//! The position of each counting thread in the stream is a counter of the same table, added to in
//! the same batch as the events, and checkpoints fall between batches. So the table itself says
//! which events a checkpoint covers, and a recount of exactly those must find the same counters. The
//! process that is killed counts without the log, so that checkpoints are all that lasts.

mod busiest;
mod counting;
mod events;
mod process;
mod recount;

use std::path::Path;
use std::time::Instant;

use sapwood::{Db, HashStats, HashTable};
use serde_json::json;

use crate::commands::stats;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{bytes, count, plural, time};
use crate::terminal::ui::Ui;

use super::answer::{Answer, Effort, equal};
use super::child::SIGKILL;
use super::folder::DatabaseFolder;
use super::unpack::{ROWS, unpack};

use counting::{Counting, MEMORY_BUDGET, TABLE};
use recount::Recount;

pub(crate) use process::count_until_killed;

/// Runs the whole sample.
pub(super) fn run(threads: u16, directory: Option<&Path>, ui: &Ui) -> Outcome {
    let place = DatabaseFolder::new("counters", directory)?;
    let rows = unpack(ui)?.rows;
    let tour = Tour { rows: &rows, threads, path: place.path(), ui };
    tour.count_and_kill()?;
    let db = tour.reopen()?;
    let table = tour.count_on(&db)?;
    busiest::answer(&table, &Recount::of_all(&rows), ui)?;
    table.check()?;
    drop(table);
    db.close()?;
    ui.notice(
        "every counter was compared with a recount of the events in memory, and all are equal",
    );
    if directory.is_some() {
        ui.notice(format_args!("the counters are kept in {}", place.path().display()));
    }
    Ok(())
}

struct Tour<'a> {
    rows: &'a [super::flight::Flight],
    threads: u16,
    path: &'a Path,
    ui: &'a Ui,
}

impl Tour<'_> {
    /// Counts in another process, and kills it.
    fn count_and_kill(&self) -> Outcome {
        let started = Instant::now();
        let killed = process::spawn_and_kill(self.path, self.threads, self.ui)?;
        let elapsed = started.elapsed();
        equal("the signal that ended the process", killed.signal, Some(SIGKILL))?;
        let covered = |checkpoint: &process::Checkpoint| {
            format!(
                "checkpoint {} after about {} flights: {} written, counting waited {}",
                checkpoint.number,
                count(checkpoint.flights),
                bytes(checkpoint.written_bytes),
                time(checkpoint.waited)
            )
        };
        let lines: Vec<String> = killed.checkpoints.iter().map(covered).collect();
        Answer {
            name: "kill",
            question: format!(
                "Count {} flights by {}, and kill the process that counts. How far did it come?",
                count(ROWS as u64),
                plural(events::KINDS, "key"),
            ),
            text: format!(
                "process {} counted with {}, in a memory budget of {}\n\
                 while it counted it took\n  {}\n\
                 then it was killed (signal {}), still counting",
                killed.process,
                plural(self.threads.into(), "thread"),
                bytes(MEMORY_BUDGET),
                lines.join("\n  "),
                SIGKILL,
            ),
            json: json!({
                "threads": self.threads,
                "memory_budget": MEMORY_BUDGET,
                "signal": killed.signal,
                "checkpoints": killed.checkpoints.iter().map(|checkpoint| json!({
                    "number": checkpoint.number,
                    "flights_about": checkpoint.flights,
                    "written_bytes": checkpoint.written_bytes,
                    "waited_seconds": checkpoint.waited.as_secs_f64(),
                })).collect::<Vec<_>>(),
            }),
            effort: Effort { work: 1, unit: "kill", elapsed },
            verified: "the system says that the signal ended it",
        }
        .print_as("counters", self.ui)
    }

    /// Opens the database again, and compares what is there with a recount.
    fn reopen(&self) -> Outcome<Db> {
        let started = Instant::now();
        let db = Db::open(self.path)?;
        let table = db.hash_table(TABLE)?;
        let elapsed = started.elapsed();
        let counting = Counting::new(self.rows, &table, self.threads);
        let positions = counting.positions()?;
        let recount = Recount::of_prefixes(self.rows, &positions);
        let flights = recount.flights();
        let found = recount.compare(&table)?;
        equal("flights counted, short of all", flights < ROWS as u64, true)?;
        let newest = table.checkpoints()?.last().map(|checkpoint| checkpoint.number);
        Answer {
            name: "recover",
            question: "What is there when the directory is opened again?".to_owned(),
            text: format!(
                "checkpoint {}: {} counters, of the first {} flights\nthe threads had counted {}",
                newest.map_or("none".to_owned(), |number| number.to_string()),
                count(found),
                count(flights),
                counting.describe(&positions),
            ),
            json: json!({
                "checkpoint": newest,
                "counters": found,
                "flights": flights,
                "batches_by_thread": positions,
            }),
            effort: Effort { work: found, unit: "counters", elapsed },
            verified: "every counter equals a recount of exactly the flights that the positions cover",
        }
        .print_as("counters", self.ui)?;
        Ok(db)
    }

    /// Counts the rest, from where the table says that each thread was.
    fn count_on(&self, db: &Db) -> Outcome<HashTable> {
        let table = db.hash_table(TABLE)?;
        let counting = Counting::new(self.rows, &table, self.threads);
        let started = Instant::now();
        let counted = counting.count_to_end(self.ui)?;
        let elapsed = started.elapsed();
        if self.ui.interrupt.asked() {
            return Err(Failure::Interrupted("flights were being counted".to_owned()));
        }
        let checkpoint_started = Instant::now();
        db.checkpoint()?;
        let checkpointed = checkpoint_started.elapsed();
        let stats = table.stats();
        let recount = Recount::of_all(self.rows);
        let counters = recount.compare(&table)?;
        equal("memory within its budget", stats.reserved_bytes <= MEMORY_BUDGET, true)?;
        equal("a log larger than its memory", stats.head > stats.begin, true)?;
        let mut json = stats::hash::as_json(&stats);
        json.insert("counters".to_owned(), json!(counters));
        json.insert("flights".to_owned(), json!(ROWS));
        Answer {
            name: "resume",
            question: "Does counting on from there end where counting once would?".to_owned(),
            text: format!(
                "{} counters of {} flights, kept by a checkpoint in {}\n{}",
                count(counters),
                count(ROWS as u64),
                time(checkpointed),
                where_it_lies(&stats),
            ),
            json: json.into(),
            effort: Effort { work: counted, unit: "additions", elapsed },
            verified: "every counter equals a recount of all flights in memory",
        }
        .print_as("counters", self.ui)?;
        Ok(table)
    }
}

fn where_it_lies(stats: &HashStats) -> String {
    format!(
        "memory: {} of {} (index {}, newest part of the log {})\n\
         disk: {}, of which {} lie there alone; {} records were read back from it",
        bytes(stats.reserved_bytes),
        bytes(MEMORY_BUDGET),
        bytes(stats.index_bytes),
        bytes(stats.log_bytes),
        bytes(stats.file_bytes),
        bytes(stats.head - stats.begin),
        count(stats.cold_reads),
    )
}
