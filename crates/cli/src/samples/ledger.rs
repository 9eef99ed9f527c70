//! `sapwood sample ledger`: flights booked into three trees, a transaction each, by a process that is
//! killed again and again; what is there afterwards, to the row.
//!
//! The number of booked flights is counted in the same transaction. So the database itself says which
//! flights must be in all three trees, and no others: a recount of exactly those must find the
//! same accounts, whenever the process was killed.
//!
//! | module | holds |
//! |---|---|
//! | `account` | what is booked of a flight, and under which keys |
//! | `books` | the tables, and the transaction |
//! | `recount` | the same in memory, and the comparison |
//! | `moment` | when the process is killed |
//! | `process` | the process |

mod account;
mod books;
mod moment;
mod process;
mod recount;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use comfy_table::CellAlignment;
use sapwood::aggregate::Aggregate;
use sapwood::record::Record;
use sapwood::{TreeKind, TreeTable};
use serde_json::{Value, json};

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{bytes, count, plural, time};
use crate::terminal::ui::Ui;

use super::answer::{Answer, Effort, equal, listing};
use super::flight::Flight;
use super::folder::DatabaseFolder;
use super::unpack::{ROWS, unpack};

use account::{Account, BOOKS, Book};
use books::Books;
use moment::{KILLS, Moment, Moments};
use process::Life;
use recount::{Comparison, Recount};

pub(crate) use process::book_until_killed;

/// Runs the whole sample.
pub(super) fn run(seed: Option<u64>, directory: Option<&Path>, ui: &Ui) -> Outcome {
    let place = DatabaseFolder::new("ledger", directory)?;
    let rows = unpack(ui)?.rows;
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let tour = Tour { rows: &rows, seed, path: place.path(), ui };
    tour.book_and_kill()?;
    tour.totals()?;
    ui.notice("after each kill every account was compared with a recount of exactly the booked flights, and all are equal");
    if directory.is_some() {
        ui.notice(format_args!("the ledger is kept in {}", place.path().display()));
    }
    Ok(())
}

struct Tour<'a> {
    rows: &'a [Flight],
    seed: u64,
    path: &'a Path,
    ui: &'a Ui,
}

/// What was found after the end of a process.
struct Found {
    /// When it was killed; nothing of the one that booked the rest.
    moment: Option<Moment>,
    /// Flights that it said were booked.
    said: Option<usize>,
    booked: usize,
    /// The time to open the database again.
    opened: Duration,
    comparison: Comparison,
}

impl Tour<'_> {
    /// Books all flights, in processes of which all but the last are killed.
    fn book_and_kill(&self) -> Outcome {
        let started = Instant::now();
        // The tables are there before the first process is, which may be killed at any moment.
        drop(Books::open(self.path)?);
        let mut moments = Moments::new(self.seed, self.rows.len());
        let progress = self.ui.progress("booking in other processes", ROWS as u64);
        let mut all: Vec<Found> = Vec::new();
        let outcome: Outcome = (0..=KILLS).try_for_each(|kill| {
            let booked = all.last().map_or(0, |found| found.booked);
            let mut life =
                Life { directory: self.path, limit: self.rows.len(), progress: &progress };
            let (moment, said) = if kill < KILLS {
                let (moment, limit) = moments.draw(kill, booked);
                life.limit = limit;
                (Some(moment), life.until_killed(moment, self.ui)?)
            } else {
                (None, life.to_the_end(self.ui)?)
            };
            let found = self.reopen(moment, said)?;
            let least = said.unwrap_or(0).max(booked);
            equal("flights, no fewer than were committed", found.booked.max(least), found.booked)?;
            all.push(found);
            Ok(())
        });
        progress.finish_and_clear();
        outcome?;
        equal("flights", all.last().map(|found| found.booked), Some(self.rows.len()))?;
        self.print_kills(&all, started.elapsed())
    }

    /// Opens the database again, and compares what is there with a recount.
    fn reopen(&self, moment: Option<Moment>, said: Option<usize>) -> Outcome<Found> {
        let started = Instant::now();
        let books = Books::open(self.path)?;
        let opened = started.elapsed();
        let booked = books.booked()?;
        let flights = self.rows.get(..booked).ok_or_else(|| {
            Failure::Failed(format!("{booked} flights are booked, of {}", self.rows.len()))
        })?;
        let comparison = Recount::of(flights).compare(&books)?;
        if let Some(first) = &comparison.first {
            return Err(Failure::Failed(format!(
                "seed {}: after {} of {} accounts differ from the recount; the first: {first}; \
                 this is a bug of sapwood, please report it",
                self.seed,
                plural(booked, "flight"),
                comparison.compared,
            )));
        }
        books.check()?;
        Ok(Found { moment, said, booked, opened, comparison })
    }

    fn print_kills(&self, all: &[Found], elapsed: Duration) -> Outcome {
        let mut listing = listing(&[
            "killed while",
            "it said booked",
            "found booked",
            "opened in",
            "compared",
            "different",
        ]);
        for found in all {
            listing.add_row([
                found.name().to_owned(),
                found.said.map_or("nothing".to_owned(), |said| count(said as u64)),
                count(found.booked as u64),
                time(found.opened),
                count(found.comparison.compared),
                count(found.comparison.different),
            ]);
        }
        for column in listing.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let compared: u64 = all.iter().map(|found| found.comparison.compared).sum();
        Answer {
            name: "kills",
            question: format!(
                "Book {} flights in three trees, a transaction each, and kill the process {} \
                 times. Does each flight count in all three trees, or in none?",
                count(ROWS as u64),
                count(KILLS as u64),
            ),
            text: format!(
                "{listing}\nseed {}: `sapwood sample ledger --seed {}` draws these moments again",
                self.seed, self.seed
            ),
            json: json!({
                "seed": self.seed,
                "kills": all.iter().map(Found::as_json).collect::<Vec<_>>(),
            }),
            effort: Effort { work: compared, unit: "accounts compared", elapsed },
            verified: "each time, every account equals a recount of the flights that the ledger counts",
        }
        .print_as("ledger", self.ui)
    }

    /// Asks each tree for its totals, which must be those of the data.
    fn totals(&self) -> Outcome {
        let books = Books::open(self.path)?;
        let flights = self.rows.len() as u64;
        let minutes: i64 =
            self.rows.iter().filter_map(|flight| flight.details.dep_delay).map(i64::from).sum();
        let recount = Recount::of(self.rows);
        let started = Instant::now();
        let mut listing =
            listing(&["table", "tree", "accounts", "flights", "minutes late", "the latest", ""]);
        let mut json = serde_json::Map::new();
        let mut work = 0;
        for ((book, table), expected) in BOOKS.into_iter().zip(&books.tables).zip(&recount.accounts)
        {
            let figures = Aggregate::list("sum(flights), sum(minutes)").map_err(sapwood_bug)?;
            let answer = table.aggregate(&table.query()?.aggregates(figures))?;
            let figure = |name: &str| {
                let value = answer.value(0, name).map_err(sapwood_bug)?.to_string();
                value.parse::<i64>().map_err(sapwood_bug)
            };
            let ends = if book == Book::Airport { 2 } else { 1 };
            let (found_flights, found_minutes) = (figure("sum(flights)")?, figure("sum(minutes)")?);
            equal("flights", found_flights, (ends * flights) as i64)?;
            equal("minutes", found_minutes, ends as i64 * minutes)?;
            let (most, key) = most_late(table)?;
            let latest = expected.iter().map(|(key, account)| (account.minutes.get(), key.clone()));
            equal("the most minutes", Some((most, key.clone())), latest.max())?;
            let entries = table.len()? as u64;
            equal("accounts", entries, expected.len() as u64)?;
            work += entries;
            let kind = match table.kind() {
                TreeKind::BTree => "B-tree",
                TreeKind::CritBit => "crit-bit",
                TreeKind::RedBlack => "red-black",
            };
            listing.add_row([
                book.name().to_owned(),
                kind.to_owned(),
                count(entries),
                count(found_flights.unsigned_abs()),
                count(found_minutes.unsigned_abs()),
                book.subject(&key),
                count(most.unsigned_abs()),
            ]);
            json.insert(
                book.name().to_owned(),
                json!({
                    "accounts": entries,
                    "flights": found_flights,
                    "minutes": found_minutes,
                    "latest": { "subject": book.subject(&key), "minutes": most },
                }),
            );
        }
        let elapsed = started.elapsed();
        for column in listing.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let heap = books.heap_bytes();
        json.insert("heap_bytes".to_owned(), json!(heap));
        Answer {
            name: "totals",
            question: "What does the ledger say in the end?".to_owned(),
            text: format!("{listing}\nall in a heap of {}", bytes(heap)),
            json: json.into(),
            effort: Effort { work, unit: "accounts", elapsed },
            verified: "the sums of each tree are those of the data",
        }
        .print_as("ledger", self.ui)?;
        books.close()
    }
}

impl Found {
    fn name(&self) -> &'static str {
        match self.moment {
            Some(Moment::Opening { .. }) => "opening",
            Some(Moment::Booking { .. }) => "booking",
            None => "not killed",
        }
    }

    fn as_json(&self) -> Value {
        json!({
            "while": self.moment.map(|_| self.name()),
            "said": self.said,
            "booked": self.booked,
            "open_seconds": self.opened.as_secs_f64(),
            "compared": self.comparison.compared,
            "different": self.comparison.different,
        })
    }
}

/// The greatest sum of minutes of a table, and its key.
fn most_late(table: &TreeTable) -> Outcome<(i64, Vec<u8>)> {
    let mut most = (i64::MIN, Vec::new());
    let _all = table.for_each(|key, value| {
        if let Ok(account) = Account::view(value) {
            most = most.clone().max((account.minutes.get(), key.to_vec()));
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(most)
}

fn sapwood_bug(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("{error}; this is a bug of sapwood, please report it"))
}
