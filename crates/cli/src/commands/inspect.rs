//! `sapwood inspect`: what lies beneath the tables of a directory.

mod log;
mod pool;

use crate::args::directories::{Inspect, InspectCommand};
use crate::terminal::exit::Outcome;
use crate::terminal::ui::Ui;

pub(crate) fn run(args: &Inspect, ui: &Ui) -> Outcome {
    match &args.command {
        InspectCommand::Log(log) => log::inspect(&log.directory, ui),
        InspectCommand::Pool(pool) if pool.check => pool::check(&pool.directory, ui),
        InspectCommand::Pool(pool) => pool::inspect(&pool.directory, ui),
    }
}
