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

use crate::terminal::exit::Outcome;
use crate::terminal::ui::Ui;

use super::unpack::unpack;
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
