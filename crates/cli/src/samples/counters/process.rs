//! The process that counts and is killed: this program, started again with a hidden command.
//!
//! It prints a line for what it has done, which the other side reads: `counted FLIGHTS`, and
//! `checkpoint NUMBER FLIGHTS BYTES NANOSECONDS`, where the nanoseconds are the time that counting
//! waited. After the second checkpoint it is killed. If the kill takes long, the process stops at
//! three quarters and waits, so that there is always something left to count.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;
use sapwood::{Cut, Db, DbOptions};

use crate::args::CountFlights;
use crate::samples::child::{Guarded, exit_when_left_alone, say, signal};
use crate::samples::unpack::{ROWS, unpack};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::ui::Ui;

use super::counting::{self, Counting};

/// The numbers of counted flights at which checkpoints begin.
const CHECKPOINTS_AT: [u64; 2] = [ROWS as u64 / 4, ROWS as u64 / 2];
/// Where counting waits to be killed.
const LIMIT: usize = ROWS / 4 * 3;

/// The output of the other process, and its end.
pub(super) struct Killed {
    pub(super) process: u32,
    pub(super) signal: Option<i32>,
    pub(super) checkpoints: Vec<Checkpoint>,
}

/// A checkpoint that was complete.
pub(super) struct Checkpoint {
    pub(super) number: u64,
    /// Counted when it was begun, or a few more.
    pub(super) flights: u64,
    pub(super) written_bytes: u64,
    /// The time that counting paused for it.
    pub(super) waited: Duration,
}

/// Starts the process, waits for its checkpoints, and kills it.
pub(super) fn spawn_and_kill(directory: &Path, threads: u16, ui: &Ui) -> Outcome<Killed> {
    let failed = |what: &str, error: io::Error| {
        Failure::Failed(format!("the process that counts cannot be {what}: {error}"))
    };
    let started = Guarded::start(|program| {
        program.args(["count-flights", "--threads", &threads.to_string(), "--dir"]).arg(directory);
    });
    let mut guarded = started.map_err(|error| failed("started", error))?;
    let stdout = guarded.child.stdout.take().expect("piped");
    let progress = ui.progress("counting in another process", ROWS as u64);
    let checkpoints = read_checkpoints(BufReader::new(stdout), &progress);
    progress.finish_and_clear();
    let checkpoints = checkpoints.map_err(|error| failed("heard", error))?;
    guarded.child.kill().map_err(|error| failed("killed", error))?;
    let status = guarded.child.wait().map_err(|error| failed("waited for", error))?;
    if ui.interrupt.asked() {
        return Err(Failure::Interrupted("flights were being counted".to_owned()));
    }
    if checkpoints.len() < CHECKPOINTS_AT.len() {
        return Err(Failure::Failed(format!(
            "the process that counts ended before it was killed, with {status}"
        )));
    }
    Ok(Killed { process: guarded.child.id(), signal: signal(status), checkpoints })
}

/// Reads until all checkpoints are complete, or the process has ended.
fn read_checkpoints(lines: impl BufRead, progress: &ProgressBar) -> io::Result<Vec<Checkpoint>> {
    let mut checkpoints = Vec::new();
    for line in lines.lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words.get(index).and_then(|word| word.parse().ok());
        match (words.first(), [1, 2, 3, 4].map(number)) {
            (Some(&"counted"), [Some(flights), ..]) => progress.set_position(flights),
            (
                Some(&"checkpoint"),
                [Some(number), Some(flights), Some(written_bytes), Some(nanoseconds)],
            ) => {
                let waited = Duration::from_nanos(nanoseconds);
                checkpoints.push(Checkpoint { number, flights, written_bytes, waited });
            }
            _ => return Err(io::Error::other(format!("it said `{line}`"))),
        }
        if checkpoints.len() == CHECKPOINTS_AT.len() {
            break;
        }
    }
    Ok(checkpoints)
}

/// The hidden command: counts, takes checkpoints while it counts, and waits to be killed.
pub(crate) fn count_until_killed(args: &CountFlights, ui: &Ui) -> Outcome {
    exit_when_left_alone();
    let rows = unpack(ui)?.rows;
    let db = Db::open_with(&args.dir, DbOptions::default().without_log())?;
    let table = counting::create(&db)?;
    let counting = Counting::new(&rows, &table, args.threads);
    let counted = AtomicU64::new(0);
    thread::scope(|scope| {
        let counter = scope.spawn(|| counting.count_to(LIMIT, &counted, ui));
        for at in CHECKPOINTS_AT {
            while counted.load(Ordering::Relaxed) < at && !counter.is_finished() {
                say(format_args!("counted {}", counted.load(Ordering::Relaxed)))?;
                thread::sleep(Duration::from_millis(2));
            }
            take_checkpoint(&counting, &counted)?;
        }
        counter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    loop {
        thread::park();
    }
}

fn take_checkpoint(counting: &Counting<'_>, counted: &AtomicU64) -> Outcome {
    let flights = counted.load(Ordering::Relaxed);
    // The first with an image of the index, the second without, so that recovery uses both.
    let cut = if counting.table.checkpoints()?.is_empty() { Cut::Full } else { Cut::Incremental };
    let (taken, waited) = counting.checkpoint(cut)?;
    let (number, written, waited) = (taken.number, taken.written_bytes, waited.as_nanos());
    say(format_args!("checkpoint {number} {flights} {written} {waited}"))
}
