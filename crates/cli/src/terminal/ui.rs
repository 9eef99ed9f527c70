//! The output of a command: standard output for answers, standard error for everything else.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use sapwood::aggregate::Cancel;

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::stderr;

/// The output of this run: its form, its notices, its interrupt.
#[derive(Debug)]
pub(crate) struct Ui {
    pub(crate) interrupt: Interrupt,
    pub(crate) answers: Answers,
    notices: Notices,
}

/// In what form answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// For people.
    Text,
    /// JSON objects, one a line.
    Json,
}

/// Whether progress and notices are shown; warnings and errors always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notices {
    Shown,
    Hidden,
}

impl Ui {
    pub(crate) fn new(answers: Answers, notices: Notices) -> Self {
        Self { interrupt: Interrupt::listen(), answers, notices }
    }

    /// One of a command that hears signals by itself.
    pub(crate) fn with_own_signals(answers: Answers, notices: Notices) -> Self {
        Self { interrupt: Interrupt::of(Cancel::new()), answers, notices }
    }

    /// The same for a part of a command, which `cancel` stops.
    pub(crate) fn stopped_by(&self, cancel: Cancel) -> Self {
        Self { interrupt: Interrupt::of(cancel), answers: self.answers, notices: self.notices }
    }

    /// One that says nothing by the way.
    #[cfg(test)]
    pub(crate) fn quiet(interrupt: Interrupt) -> Self {
        Self { interrupt, answers: Answers::Text, notices: Notices::Hidden }
    }

    /// Runs `write` over buffered standard output and flushes it.
    pub(crate) fn print<T>(&self, write: impl FnOnce(&mut Out) -> io::Result<T>) -> Outcome<T> {
        let mut out = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
        let answer = write(&mut out).and_then(|answer| out.flush().map(|()| answer));
        answer.map_err(|error| {
            // What is still buffered can go nowhere; do not try again on drop.
            let _ = out.into_parts();
            Failure::of_output(error)
        })
    }

    /// True where answers have colours: on a terminal whose user wants them.
    pub(crate) fn has_colours(&self) -> bool {
        io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
    }

    /// Prints one JSON object on a line.
    pub(crate) fn print_json(&self, object: &serde_json::Value) -> Outcome {
        self.print(|out| writeln!(out, "{object}"))
    }

    /// Says something by the way.
    pub(crate) fn notice(&self, text: impl std::fmt::Display) {
        if self.notices == Notices::Shown {
            stderr::line(text);
        }
    }

    /// A bar over `length` units of work; draws only on a terminal.
    pub(crate) fn progress(&self, what: &'static str, length: u64) -> ProgressBar {
        self.bar(length, "{msg} [{bar:32}] {human_pos} of {human_len}, {rate}{left}", what)
    }

    /// A bar over `length` bytes of input.
    pub(crate) fn progress_bytes(&self, what: &'static str, length: u64) -> ProgressBar {
        let style = "{msg} [{bar:32}] {bytes} of {total_bytes}, {bytes_per_sec}{left}";
        self.bar(length, style, what)
    }

    /// A spinner for input whose length is not known.
    pub(crate) fn progress_unknown(&self, what: &'static str) -> ProgressBar {
        match self.notices {
            Notices::Hidden => ProgressBar::hidden(),
            Notices::Shown => {
                let style =
                    ProgressStyle::with_template("{msg} {spinner} {bytes}, {bytes_per_sec}");
                ProgressBar::new_spinner()
                    .with_style(style.expect("a template that a test draws"))
                    .with_message(what)
            }
        }
    }

    fn bar(&self, length: u64, template: &str, what: &'static str) -> ProgressBar {
        match self.notices {
            Notices::Hidden => ProgressBar::hidden(),
            Notices::Shown => {
                let style = ProgressStyle::with_template(template);
                ProgressBar::new(length)
                    .with_style(
                        style
                            .expect("a template that a test draws")
                            .progress_chars("=> ")
                            .with_key("rate", write_rate)
                            .with_key("left", write_left),
                    )
                    .with_message(what)
            }
        }
    }
}

fn write_rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let rate = state.per_sec();
    // Formatting into the bar's line does not fail; without the rate it would still be a bar.
    let _ = write!(out, "{:.0} K/s", rate / 1e3);
}

/// The time in which the rate says nothing of the rest.
const WARMING_UP: Duration = Duration::from_secs(2);

fn write_left(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    if state.elapsed() > WARMING_UP {
        let _ = write!(out, ", {} left", HumanDuration(state.eta()));
    }
}

/// Buffered standard output.
pub(crate) type Out = BufWriter<StdoutLock<'static>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_templates_are_valid() {
        let ui =
            Ui { interrupt: Interrupt::listen(), answers: Answers::Text, notices: Notices::Shown };
        for bar in
            [ui.progress("rows", 10), ui.progress_bytes("bytes", 10), ui.progress_unknown("input")]
        {
            bar.inc(3);
            assert_eq!(bar.position(), 3);
            bar.finish_and_clear();
        }
    }
}
