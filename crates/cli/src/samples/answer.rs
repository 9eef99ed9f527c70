//! An answer of the sample: what was asked, what came out, how long it took, and what it was
//! compared with.

use std::io::Write;
use std::time::Duration;

use comfy_table::{Table, presets};
use serde_json::{Value, json};

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, per_second, rate, time};
use crate::terminal::ui::{Answers, Ui};

pub(super) struct Answer {
    /// Names the answer for machines.
    pub(super) name: &'static str,
    pub(super) question: String,
    /// For people; may be several lines.
    pub(super) text: String,
    /// For machines.
    pub(super) json: Value,
    pub(super) effort: Effort,
    /// The source that the answer was compared with.
    pub(super) verified: &'static str,
}

/// Work done, and the time it took.
pub(super) struct Effort {
    pub(super) work: u64,
    pub(super) unit: &'static str,
    pub(super) elapsed: Duration,
}

impl Answer {
    /// An answer of `sapwood sample flights`.
    pub(super) fn print(&self, ui: &Ui) -> Outcome {
        self.print_as("flights", ui)
    }

    pub(super) fn print_as(&self, sample: &str, ui: &Ui) -> Outcome {
        let Effort { work, unit, elapsed } = self.effort;
        match ui.answers {
            Answers::Json => ui.print_json(&json!({
                "sample": sample,
                "question": self.name,
                "answer": self.json,
                "seconds": elapsed.as_secs_f64(),
                "work": work,
                "unit": unit,
                "per_second": per_second(work, elapsed),
                "verified": self.verified,
            })),
            Answers::Text => ui.print(|out| {
                writeln!(out, "{}", self.question)?;
                for line in self.text.lines() {
                    writeln!(out, "    {line}")?;
                }
                match work {
                    1 => writeln!(out, "    in {}", time(elapsed))?,
                    _ => {
                        let (work, speed) = (count(work), rate(work, unit, elapsed));
                        writeln!(out, "    {work} {unit} in {}: {speed}", time(elapsed))?;
                    }
                }
                writeln!(out, "    verified: {}\n", self.verified)
            }),
        }
    }
}

/// A plain listing with a header.
pub(super) fn listing(header: &[&str]) -> Table {
    let mut listing = Table::new();
    listing.load_style(presets::NOTHING);
    listing.set_header(header.iter().copied());
    listing
}

/// The check of every answer: the sample fails rather than print one that is not so.
pub(super) fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    let shorten = |value: &T| {
        let text = format!("{value:?}");
        text.chars().take(200).collect::<String>()
    };
    let (found, expected) = (shorten(&found), shorten(&expected));
    Err(Failure::Failed(format!(
        "{what}: the tables say {found}, the rows say {expected}; this is a bug of sapwood, please report it"
    )))
}
