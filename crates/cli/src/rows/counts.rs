//! The rows of a file, counted by what became of them.

use std::time::Duration;

use crate::args::rows::{Duplicates, Input};
use crate::rows::kept::Held;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::plural;
use crate::terminal::stderr;

/// Counts of rows, by their outcome.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    /// All that were read, good or not.
    pub(crate) rows: u64,
    pub(crate) malformed: u64,
    /// Rows whose key an earlier row had.
    pub(crate) duplicates: u64,
    pub(crate) elapsed: Duration,
}

impl Counts {
    /// Says how many rows are not in the table, and in which ways all would be.
    pub(crate) fn warn(&self, duplicates: Duplicates, held: Held, ways: &[&str]) {
        if self.malformed > 0 {
            let malformed = plural(self.malformed as usize, "malformed row");
            stderr::line(format_args!("warning: {malformed} left out"));
        }
        if self.duplicates == 0 {
            return;
        }
        let rows = plural(self.duplicates as usize, "row");
        let what = match (duplicates, held) {
            // All are there, as was asked.
            (Duplicates::All, _) => return,
            (Duplicates::First, Held::Nothing) => "dropped: an earlier row has the same key",
            (Duplicates::First, Held::Rows) => {
                "dropped: the table or an earlier row has the same key"
            }
            (Duplicates::Last, Held::Nothing) => "dropped: a later row has the same key",
            (Duplicates::Last, Held::Rows) => {
                "dropped, of the table or of the file: a later row has the same key"
            }
        };
        let ways = match ways {
            [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
            ways => ways.concat(),
        };
        stderr::line(format_args!("warning: {rows} {what}; {ways} would keep them all"));
    }

    pub(crate) fn strictly(&self, input: &Input) -> Outcome {
        let Counts { malformed, duplicates, .. } = *self;
        let duplicates = match input.duplicates {
            Duplicates::All => 0,
            Duplicates::First | Duplicates::Last => duplicates,
        };
        if input.strict && (malformed > 0 || duplicates > 0) {
            let malformed = plural(malformed as usize, "malformed row");
            let duplicates = plural(duplicates as usize, "repeated key");
            return Err(Failure::Failed(format!("--strict: {malformed}, {duplicates}")));
        }
        Ok(())
    }
}
