//! `sapwood sample`: bundled real data, and questions that a person would ask of it.
//!
//! | module | holds |
//! |---|---|
//! | `flights` | flights in ordered tables |
//! | `airports` | figures of flights, in both engines by each executor |
//! | `delays` | flights rolled up as they come in |
//! | `unpack`, `flight` | the data in the binary, and one row of it |
//! | `answer` | an answer: the question, the outcome, the time, the comparison |

mod airports;
mod answer;
mod delays;
mod flight;
mod flights;
mod unpack;

use std::thread;

use sapwood::Db;

use crate::args::{Sample, SampleName};
use crate::terminal::exit::Outcome;
use crate::terminal::ui::Ui;

/// Loads the flights into an ordered table `flights`, if there is none; answers how many there are.
pub(crate) fn load_flights(db: &Db, is_stopped: &dyn Fn() -> bool) -> Outcome<u64> {
    airports::load_flights(db, is_stopped)
}

pub(crate) fn run(args: &Sample, ui: &Ui) -> Outcome {
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get().min(256) as u16);
    let threads = args.threads.unwrap_or_else(cores);
    match args.name {
        SampleName::Flights => flights::run(threads, ui),
        SampleName::Airports => airports::run(threads, ui),
        SampleName::Delays => delays::run(threads, ui),
    }
}
