//! The process that books and is killed: this program, started again with a hidden command.
//!
//! It prints a line for what it does, which the other side reads: `opening`, then `booked FLIGHTS`
//! now and then, after the transaction of the last of these flights was committed. The last line
//! therefore names flights that must be there after the kill.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::thread;

use indicatif::ProgressBar;

use crate::args::BookFlights;
use crate::samples::child::{Guarded, SIGKILL, exit_when_left_alone, say, signal};
use crate::samples::unpack::unpack;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::ui::Ui;

use super::books::Books;
use super::moment::Moment;

/// Flights between two lines.
const SAY_EVERY: usize = 256;

/// A process, from its start to its end.
pub(super) struct Life<'a> {
    pub(super) directory: &'a Path,
    /// Flights after which the process ends, or waits to be killed if it is to be.
    pub(super) limit: usize,
    pub(super) progress: &'a ProgressBar,
}

impl Life<'_> {
    /// Starts the process and kills it at a moment. Answers how many flights it said were booked,
    /// or nothing if it had not come so far.
    pub(super) fn until_killed(&self, moment: Moment, ui: &Ui) -> Outcome<Option<usize>> {
        let failed = |what: &str, error: io::Error| {
            Failure::Failed(format!("the process that books cannot be {what}: {error}"))
        };
        let mut guarded = self.start().map_err(|error| failed("started", error))?;
        let stdout = guarded.child.stdout.take().expect("piped");
        let mut lines = Lines { lines: BufReader::new(stdout).lines(), said: None };
        let after = match moment {
            Moment::Opening { after } => {
                lines.next(self.progress).map_err(|error| failed("heard", error))?;
                after
            }
            Moment::Booking { flights, after } => {
                while lines.said.is_none_or(|said| said < flights)
                    && lines.next(self.progress).map_err(|error| failed("heard", error))?
                {
                }
                after
            }
        };
        thread::sleep(after);
        guarded.child.kill().map_err(|error| failed("killed", error))?;
        let status = guarded.child.wait().map_err(|error| failed("waited for", error))?;
        while lines.next(self.progress).map_err(|error| failed("heard", error))? {}
        if ui.interrupt.asked() {
            return Err(interrupted(lines.said));
        }
        match signal(status) {
            Some(SIGKILL) => Ok(lines.said),
            _ => Err(Failure::Failed(format!(
                "the process that books ended before it was killed, with {status}"
            ))),
        }
    }

    /// Starts the process and waits until it has booked all.
    pub(super) fn to_the_end(&self, ui: &Ui) -> Outcome<Option<usize>> {
        let failed = |what: &str, error: io::Error| {
            Failure::Failed(format!("the process that books cannot be {what}: {error}"))
        };
        let mut guarded = self.start().map_err(|error| failed("started", error))?;
        let stdout = guarded.child.stdout.take().expect("piped");
        let mut lines = Lines { lines: BufReader::new(stdout).lines(), said: None };
        while lines.next(self.progress).map_err(|error| failed("heard", error))? {}
        let status = guarded.child.wait().map_err(|error| failed("waited for", error))?;
        if ui.interrupt.asked() {
            return Err(interrupted(lines.said));
        }
        match status.success() {
            true => Ok(lines.said),
            false => Err(Failure::Failed(format!("the process that books ended with {status}"))),
        }
    }

    fn start(&self) -> io::Result<Guarded> {
        Guarded::start(|program| {
            program.args(["book-flights", "--limit", &self.limit.to_string(), "--dir"]);
            program.arg(self.directory);
        })
    }
}

fn interrupted(said: Option<usize>) -> Failure {
    let booked = said.unwrap_or(0);
    Failure::Interrupted(format!("{booked} flights had been booked"))
}

/// The lines of a process, and what the last one said.
struct Lines<L> {
    lines: io::Lines<L>,
    said: Option<usize>,
}

impl<L: BufRead> Lines<L> {
    /// Reads a line; false at the end of the process.
    fn next(&mut self, progress: &ProgressBar) -> io::Result<bool> {
        let Some(line) = self.lines.next() else { return Ok(false) };
        let line = line?;
        match line.strip_prefix("booked ").map(str::parse) {
            Some(Ok(flights)) => {
                self.said = Some(flights);
                progress.set_position(flights as u64);
            }
            _ if line == "opening" => {}
            _ => return Err(io::Error::other(format!("it said `{line}`"))),
        }
        Ok(true)
    }
}

/// The hidden command: books up to a limit; there it ends if that is all, or waits to be killed.
pub(crate) fn book_until_killed(args: &BookFlights, ui: &Ui) -> Outcome {
    exit_when_left_alone();
    let rows = unpack(ui)?.rows;
    say(format_args!("opening"))?;
    let books = Books::open(&args.dir)?;
    let mut booked = books.booked()?;
    say(format_args!("booked {booked}"))?;
    let limit = args.limit.min(rows.len());
    for flight in rows.get(booked..limit).unwrap_or(&[]) {
        if ui.interrupt.asked() {
            return Err(interrupted(Some(booked)));
        }
        books.book(flight)?;
        booked += 1;
        if booked.is_multiple_of(SAY_EVERY) || booked == limit {
            say(format_args!("booked {booked}"))?;
        }
    }
    if limit == rows.len() {
        return books.close();
    }
    loop {
        thread::park();
    }
}
