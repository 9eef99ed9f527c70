//! `sapwood sample`: bundled real data, and questions that a person would ask of it.
//!
//! | module | holds |
//! |---|---|
//! | `flights` | flights in ordered tables |
//! | `delays` | flights rolled up as they come in |
//! | `files` | the files that examples name |
//! | `served` | flights for the clients of a server |
//! | `unpack`, `flight` | the data in the binary, and one row of it |
//! | `answer` | an answer: the question, the outcome, the time, the comparison |

mod answer;
mod delays;
mod files;
mod flight;
mod flights;
mod served;
mod unpack;

use std::thread;

use crate::args::{Sample, SampleName};
use crate::terminal::exit::Outcome;
use crate::terminal::ui::Ui;

pub(crate) use served::load_flights;

pub(crate) fn run(args: &Sample, ui: &Ui) -> Outcome {
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get().min(256) as u16);
    let threads = args.threads.unwrap_or_else(cores);
    match args.name {
        SampleName::Flights => flights::run(threads, ui),
        SampleName::Delays => delays::run(threads, ui),
        SampleName::Files => files::run(ui),
    }
}
