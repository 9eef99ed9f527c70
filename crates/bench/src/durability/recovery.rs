//! Opening what was closed, and what ended without a checkpoint. The files are made once; in each round
//! each is opened, from the page cache, one at a time.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Instant;

use indicatif::ProgressBar;

use super::Plan;
use super::measure::Figures;
use super::ours::{Kind, Ours};
use super::redis::{self, Files, Redis};
use super::workload::{Data, Entry, Level};
use super::writers::load;
use crate::Error;
use crate::consume::consume;
use crate::figures::median;
use crate::folder::Folder;
use crate::tally::Tally;

/// How a store was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// A checkpoint has everything.
    Closed,
    /// The log has everything.
    Ended,
}

impl Left {
    const ALL: [Left; 2] = [Left::Closed, Left::Ended];

    /// As tables show what is read.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Left::Closed => "checkpoint",
            Left::Ended => "log",
        }
    }
}

/// What it took to open a store.
pub(crate) struct Recovered {
    pub(crate) engine: &'static str,
    pub(crate) left: Left,
    pub(crate) entries: u32,
    /// Bytes that were read.
    pub(crate) bytes: u64,
    /// Of each round.
    pub(crate) seconds: Vec<f64>,
}

impl Recovered {
    pub(crate) fn median(&self) -> f64 {
        median(&self.seconds)
    }

    /// Entries a second, of each round.
    pub(crate) fn rates(&self) -> Vec<f64> {
        self.seconds.iter().map(|seconds| f64::from(self.entries) / seconds).collect()
    }
}

const DATA: Data = Data::Small;

/// A store that is to be opened.
struct Stored {
    /// Redis has both kinds of files in one.
    folder: Rc<Folder>,
    by: By,
    recovered: Recovered,
}

enum By {
    Ours { expected: Tally },
    Redis(Files),
}

pub(crate) fn turns(plan: &Plan) -> usize {
    (Kind::ALL.len() + 1) * Left::ALL.len() * (plan.runs + 1)
}

pub(crate) fn measure(plan: &Plan, figures: &mut Figures, bar: &ProgressBar) -> Result<(), Error> {
    let mut stored = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| plan.takes(kind.name())) {
        for left in Left::ALL {
            bar.set_message(format!("{}: made to be opened from its {}", kind.name(), left.name()));
            stored.push(make_ours(plan, kind, left)?);
            bar.inc(1);
        }
    }
    if plan.takes(redis::NAME) {
        bar.set_message("redis: made to be opened");
        match make_redis(plan) {
            Ok(both) => stored.extend(both),
            Err(error) => figures.leave_out(format!("{}, recovery: {error}", redis::NAME)),
        }
    }
    for round in 0..plan.runs {
        for turn in 0..stored.len() {
            let at = (round + turn) % stored.len();
            let stored = &mut stored[at];
            let Recovered { engine, left, .. } = stored.recovered;
            bar.set_message(format!("{engine}: opened from its {}", left.name()));
            let seconds = stored.open()?;
            stored.recovered.seconds.push(seconds);
            bar.inc(1);
        }
    }
    figures.recovered.extend(stored.into_iter().map(|stored| stored.recovered));
    Ok(())
}

fn make_ours(plan: &Plan, kind: Kind, left: Left) -> Result<Stored, Error> {
    let entries = plan.recovered;
    let folder = Folder::new(&plan.dir, &format!("{}-{}", kind.name(), left.name()))?;
    let ours = Ours::create(folder.path(), kind, Level::Buffered, DATA, entries)?;
    load(&ours, DATA, entries)?;
    let Ours { db, table } = ours;
    drop(table);
    match left {
        Left::Closed => db.close()?,
        // A database that is dropped does nothing more to its files, as if its process had ended.
        Left::Ended => drop(db),
    }
    folder.sync()?;
    let mut expected = Tally::default();
    for number in 0..entries {
        let entry = Entry::of(DATA, number, 0);
        expected.add(pair(&entry.key, &entry.value));
    }
    let ours = Ours::reopen(folder.path())?;
    let stats = ours.db.stats();
    let log = stats.log.map_or(0, |log| log.log_bytes - log.unsaved_bytes);
    // Room of the log that nothing was written to does not count.
    let bytes = stats.file_bytes - log;
    let recovered = Recovered { engine: kind.name(), left, entries, bytes, seconds: Vec::new() };
    Ok(Stored { folder: Rc::new(folder), by: By::Ours { expected }, recovered })
}

fn make_redis(plan: &Plan) -> Result<[Stored; 2], Error> {
    let entries = plan.recovered;
    let folder = Rc::new(Folder::new(&plan.dir, redis::NAME)?);
    let (redis, _) = Redis::start(&folder, Files::Aof("no"))?;
    redis.load(DATA, entries)?;
    let before = folder.bytes()?.unwrap_or(0);
    redis.save()?;
    // It ends at once, and closes nothing.
    drop(redis);
    folder.sync()?;
    let after = folder.bytes()?.unwrap_or(0);
    let of = |left, files, bytes| Stored {
        folder: Rc::clone(&folder),
        by: By::Redis(files),
        recovered: Recovered { engine: redis::NAME, left, entries, bytes, seconds: Vec::new() },
    };
    Ok([
        of(Left::Closed, Files::Rdb, after.saturating_sub(before)),
        of(Left::Ended, Files::Aof("no"), before),
    ])
}

impl Stored {
    /// Opens it, and checks what it has: the seconds until its first answer.
    fn open(&self) -> Result<f64, Error> {
        match self.by {
            By::Ours { expected } => {
                let begin = Instant::now();
                let ours = Ours::reopen(self.folder.path())?;
                let elapsed = begin.elapsed();
                let mut found = Tally::default();
                let _: ControlFlow<()> = ours.table.for_each(|key, value| {
                    found.add(pair(key, value));
                    ControlFlow::Continue(())
                })?;
                if found != expected {
                    let engine = self.recovered.engine;
                    return Err(format!("{engine} recovered {found}, not {expected}").into());
                }
                Ok(elapsed.as_secs_f64())
            }
            By::Redis(files) => {
                let (redis, elapsed) = Redis::start(&self.folder, files)?;
                let found = redis.len()?;
                if found != u64::from(self.recovered.entries) {
                    let all = self.recovered.entries;
                    return Err(format!("redis recovered {found} of {all} entries").into());
                }
                Ok(elapsed.as_secs_f64())
            }
        }
    }
}

/// Both key and value, so that a value under another key is seen.
fn pair(key: &[u8], value: &[u8]) -> u64 {
    consume(key).rotate_left(7) ^ consume(value)
}
