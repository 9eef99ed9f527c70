//! `sapwood sample`: bundled real data, and questions that a person would ask of it.
//!
//! | module | holds |
//! |---|---|
//! | `flights` | flights in ordered tables |
//! | `airports` | figures of flights, in both engines by each executor |
//! | `delays` | flights rolled up as they come in |
//! | `counters` | events counted into a hash table by a process that is killed |
//! | `unpack`, `flight` | the data in the binary, and one row of it |
//! | `folder`, `child` | the directory of a database, and a process that is killed |
//! | `answer` | an answer: the question, the outcome, the time, the comparison |

pub(crate) mod counters;

mod airports;
mod answer;
mod child;
mod delays;
mod flight;
mod flights;
mod folder;
mod unpack;

use std::thread;

use sapwood::Db;

use crate::args::{Sample, SampleName};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::ui::Ui;

/// Loads the flights into an ordered table `flights`, if there is none; answers how many there are.
pub(crate) fn load_flights(db: &Db, is_stopped: &dyn Fn() -> bool) -> Outcome<u64> {
    airports::load_flights(db, is_stopped)
}

pub(crate) fn run(args: &Sample, ui: &Ui) -> Outcome {
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get().min(256) as u16);
    let threads = args.threads.unwrap_or_else(cores);
    let directory = args.dir.as_deref();
    match (args.name, directory) {
        (SampleName::Flights, None) => flights::run(threads, ui),
        (SampleName::Flights, Some(_)) => Err(Failure::Usage(
            "the flights are in ordered tables, which live in memory alone: --dir is of `sapwood sample counters`"
                .to_owned(),
        )),
        (SampleName::Counters, directory) => counters::run(threads, directory, ui),
        (SampleName::Airports, None) => airports::run(threads, ui),
        (SampleName::Airports, Some(_)) => Err(Failure::Usage(
            "the airports are asked about in memory: --dir is of `sapwood sample counters`"
                .to_owned(),
        )),
        (SampleName::Delays, None) => delays::run(threads, ui),
        (SampleName::Delays, Some(_)) => Err(Failure::Usage(
            "the delays are rolled up in memory: --dir is of `sapwood sample counters`".to_owned(),
        )),
    }
}
