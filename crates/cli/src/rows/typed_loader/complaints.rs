//! Rows that are not as they should be, in the order of the file: the first ones.

use std::collections::BTreeMap;
use std::fmt;

use super::encoder::Place;
use crate::args::rows::Input;
use crate::terminal::stderr;

/// What is wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A row before it has its key.
    Repeated,
    /// No table has it.
    Malformed,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Repeated => "repeated",
            Kind::Malformed => "malformed",
        })
    }
}

/// The complaints that are shown: as many as the user wants, those of the first lines, in whatever order they come.
pub(super) struct Complaints {
    shown_max: usize,
    /// How many were noted: those of one place stay in this order.
    noted: u64,
    first: BTreeMap<(Place, u64), (Kind, String)>,
}

impl Complaints {
    pub(super) fn of(input: &Input) -> Complaints {
        let shown_max = usize::try_from(input.show_errors).unwrap_or(usize::MAX);
        Complaints { shown_max, noted: 0, first: BTreeMap::new() }
    }

    /// Notes what is wrong with a row, if it is among the first.
    pub(super) fn note(&mut self, place: Place, kind: Kind, what: impl FnOnce() -> String) {
        let at = (place, self.noted);
        self.noted += 1;
        if self.first.len() >= self.shown_max {
            match self.first.last_entry() {
                Some(last) if *last.key() > at => drop(last.remove()),
                _ => return,
            }
        }
        self.first.insert(at, (kind, what()));
    }

    pub(super) fn say(&self) {
        for ((Place { line, .. }, _), (kind, what)) in &self.first {
            stderr::line(format_args!("line {line}: {kind}: {what}"));
        }
    }
}
