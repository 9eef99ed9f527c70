//! `sapwood sample`: bundled real data, and questions that a person would ask of it.
//!
//! Each question is answered from the tables, timed, and compared with [`expected`], which finds the
//! same by plain iteration over the parsed rows; the comparison is not timed.

mod airports;
mod answer;
mod cancelled;
pub(crate) mod counters;
mod delays;
mod expected;
mod flight;
mod latest;
mod lookups;
mod march;
mod memory;
mod tables;
mod totals;
mod unpack;

use std::thread;

use crate::args::{Sample, SampleName};
use crate::exit::{Failure, Outcome};
use crate::ui::Ui;

use tables::Tables;

pub(crate) fn run(args: &Sample, ui: &Ui) -> Outcome {
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get().min(256) as u16);
    let threads = args.threads.unwrap_or_else(cores);
    match (args.name, &args.dir) {
        (SampleName::Flights, None) => flights(threads, ui),
        (SampleName::Flights, Some(_)) => Err(Failure::Usage(
            "the flights are in ordered tables, which live in memory alone: --dir is of `sapwood sample counters`"
                .to_owned(),
        )),
        (SampleName::Counters, directory) => counters::run(threads, directory.as_deref(), ui),
        (SampleName::Airports, None) => airports::run(threads, ui),
        (SampleName::Airports, Some(_)) => Err(Failure::Usage(
            "the airports are asked about in memory: --dir is of `sapwood sample counters`"
                .to_owned(),
        )),
    }
}

fn flights(threads: u16, ui: &Ui) -> Outcome {
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
