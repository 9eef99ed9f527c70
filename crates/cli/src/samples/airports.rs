//! `sapwood sample airports`: figures of flights, computed where the flights lie.
//!
//! The flights are in an ordered table and in a hash table, with the same keys and records. Each
//! question is answered by every executor that can reach what it selects, in both tables. The
//! answers must be the same, and equal to what plain loops over the rows find. The last one goes
//! the other way: a figure is spread back over the flights.

mod budget;
mod plain;
mod question;
mod record;
mod tables;
mod ways;

use sapwood::{Db, OrderedTableOptions};

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::ui::Ui;

use super::flight::Flight;
use super::unpack::{self, unpack};
use question::QUESTIONS;
use tables::Tables;

pub(super) fn run(threads: u16, ui: &Ui) -> Outcome {
    let rows = unpack(ui)?.rows;
    let tables = Tables::load(&rows, ui)?;
    for question in &QUESTIONS {
        question.answer(&tables, &rows, threads, ui)?;
    }
    budget::answer(&tables, &rows, threads, ui)?;
    tables.ordered.check()?;
    tables.hash.check()?;
    ui.notice(
        "every figure was compared with one found by plain loops over the rows, and all are equal",
    );
    Ok(())
}

/// Loads the flights into an ordered table in memory whose fields have names.
pub(super) fn load_flights(db: &Db, is_stopped: &dyn Fn() -> bool) -> Outcome<u64> {
    let damaged = |what: &dyn std::fmt::Display| {
        Failure::Failed(format!("the bundled flights are damaged ({what}); build sapwood again"))
    };
    let options = OrderedTableOptions::default().volatile().fields(record::layout());
    let table = db.open_or_create_ordered_table("flights", options)?;
    let mut reader = unpack::reader().map_err(|error| damaged(&error))?;
    let (mut row, mut key, mut loaded) = (csv::StringRecord::new(), Vec::new(), 0_u64);
    while reader.read_record(&mut row).map_err(|error| damaged(&error))? {
        if loaded.is_multiple_of(1024) && is_stopped() {
            break;
        }
        let flight = Flight::parse(&row).map_err(|column| damaged(&format!("column {column}")))?;
        key.clear();
        record::encode_key(&flight, &mut key);
        table.put(&key, record::encode(&flight))?;
        loaded += 1;
    }
    Ok(loaded)
}
