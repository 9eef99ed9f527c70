//! `sapwood scan`: rows in the order of their keys, both ways; those of a hash table in the order
//! in which they were written.

use std::ops::{Bound, ControlFlow};

use sapwood::{Direction, Engine};

use crate::args::rows::{EngineName, Scan};
use crate::rows::key_range::KeyBounds;
use crate::rows::open_input::open_input;
use crate::rows::stored::Stored;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::plural;
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &Scan, ui: &Ui) -> Outcome {
    let asked = KeyBounds::parse(&args.range, args.input.key.as_ref())?;
    if args.input.engine == Some(EngineName::Hash) {
        expect_no_order(args)?;
    }
    let loaded = open_input(&args.input, ui)?;
    if loaded.table.engine() == Engine::Hash {
        expect_no_order(args)?;
    }
    loaded.tell(&args.input, ui);
    let (begin, limit) = asked.bounds(&loaded.keys)?;
    let direction = if args.reverse { Direction::Descending } else { Direction::Ascending };
    let rows_max = args.limit.unwrap_or(u64::MAX);
    let stored = Stored { columns: &loaded.columns };
    ui.print(|out| {
        if ui.answers == Answers::Text {
            stored.write_header(out)?;
        }
        let empty = limit.as_ref().is_some_and(|limit| begin >= *limit);
        if empty || rows_max == 0 {
            return Ok(Ok(()));
        }
        let mut rows = 0;
        let visit = |key: &[u8], value: &[u8]| {
            let written = match ui.answers {
                Answers::Json => stored.write_json(key, value, out),
                Answers::Text => stored.write_row(key, value, out),
            };
            rows += 1;
            match written {
                Err(error) => ControlFlow::Break(Stop::Output(error)),
                Ok(()) if ui.interrupt.asked() => ControlFlow::Break(Stop::Interrupt),
                Ok(()) if rows == rows_max => ControlFlow::Break(Stop::Limit),
                Ok(()) => ControlFlow::Continue(()),
            }
        };
        let end = match loaded.table.as_hash() {
            Some(table) => table.scan_log(visit),
            None => {
                let bounds = (
                    Bound::Included(&begin[..]),
                    limit.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
                );
                loaded.table.scan(bounds, direction, visit)
            }
        };
        match end {
            Ok(ControlFlow::Continue(()) | ControlFlow::Break(Stop::Limit)) => Ok(Ok(())),
            Ok(ControlFlow::Break(Stop::Output(error))) => Err(error),
            Ok(ControlFlow::Break(Stop::Interrupt)) => {
                let rows = plural(rows as usize, "row");
                Ok(Err(Failure::Interrupted(format!("{rows} had been printed"))))
            }
            Err(error) => Ok(Err(error.into())),
        }
    })??;
    loaded.strictly(&args.input)
}

/// Refuses options that ask a hash table for an order.
fn expect_no_order(args: &Scan) -> Outcome {
    match needs_order(args) {
        None => Ok(()),
        Some(option) => Err(Failure::Usage(format!(
            "a hash table has no order: {option} needs a tree table, or a file and --engine ordered"
        ))),
    }
}

/// The first option that was given and asks for an order.
fn needs_order(args: &Scan) -> Option<&'static str> {
    [
        (args.range.from.is_some(), "--from"),
        (args.range.to.is_some(), "--to"),
        (args.range.prefix.is_some(), "--prefix"),
        (args.reverse, "--reverse"),
    ]
    .into_iter()
    .find_map(|(given, name)| given.then_some(name))
}

/// Why a scan ended before its range did.
enum Stop {
    Limit,
    Interrupt,
    Output(std::io::Error),
}
