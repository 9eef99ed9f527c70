//! `sapwood sample flights`: flights in ordered tables.
//!
//! Each question is answered from the tables, timed, and compared with [`expected`], which finds
//! the same by plain iteration over the parsed rows; the comparison is not timed.
//!
//! | module | holds |
//! |---|---|
//! | `tables` | the tables, filled |
//! | `lookups`, `march`, `latest` | single keys; a range; the last entries, descending |
//! | `totals`, `delays` | totals that threads add to in place |
//! | `memory` | the bytes of a flight |
//! | `cancelled` | removal, and the memory around it |
//! | `expected` | the same answers by plain iteration |

mod cancelled;
mod delays;
mod expected;
mod latest;
mod lookups;
mod march;
mod memory;
mod tables;
mod totals;

use crate::terminal::exit::Outcome;
use crate::terminal::ui::Ui;

use tables::Tables;

pub(super) fn run(threads: u16, ui: &Ui) -> Outcome {
    let sample = Tables::load(ui)?;
    sample.one_flight(ui)?;
    sample.every_flight(ui)?;
    sample.carrier_in_march(ui)?;
    sample.latest_departures(ui)?;
    sample.delay_totals(threads, ui)?;
    sample.memory(ui)?;
    sample.remove_cancelled(ui)?;
    for table in [&sample.flights, &sample.departures, &sample.delays] {
        table.check()?;
    }
    ui.notice("every answer was compared with one found by plain iteration over the rows, and all are equal");
    Ok(())
}
