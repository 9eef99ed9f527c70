//! Opening what was closed, and what ended without a checkpoint. The files are made once; in each
//! round each is opened, from the page cache, one at a time.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Instant;

use serde_json::json;

use super::Sizes;
use super::data::{Data, Level, StampedEntry};
use super::ours::Ours;
use super::redis::{self, Redis, RedisFiles};
use super::writers::load;
use crate::harness::*;

const DATA: Data = Data::Small;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum RecoverySource {
    Checkpoint,
    Log,
}

struct Opening;

impl Job for Opening {
    fn workload(&self) -> String {
        "recovery".to_owned()
    }

    fn unit(&self) -> &'static Unit {
        &SECONDS
    }
}

struct Stored {
    engine: &'static str,
    from: RecoverySource,
    bytes: u64,
    /// Opens it, and checks what it has: the seconds until its first answer.
    open: Box<dyn Fn() -> Result<f64>>,
}

impl Engine<Opening> for Stored {
    fn name(&self) -> &str {
        self.engine
    }

    fn workload(&self, job: &Opening) -> String {
        format!("{} from {}", job.workload(), self.from.name())
    }

    fn run(&mut self, _: &Opening) -> Result<Outcome> {
        let seconds = (self.open)()?;
        let bytes = json!({ "bytes": self.bytes });
        Ok(Outcome::from(vec![Figure::new(seconds).with(bytes)]))
    }
}

pub(crate) fn measure(sizes: &Sizes) -> Result<Report> {
    let entries = sizes.recovered;
    let mut report = Report::new("durability", entries as usize, DATA.title(), &[]);
    report.title = ": opened, from the page cache".to_owned();
    let mut stored = Vec::new();
    for kind in TableKind::ALL.into_iter().filter(|kind| sizes.plan.takes(kind.engine())) {
        for &from in RecoverySource::value_variants() {
            report.progress.set_message(format!("{}: made to be opened", kind.engine()));
            stored.push(make_ours(sizes, kind, from)?);
        }
    }
    if sizes.plan.takes(redis::NAME) {
        match make_redis(sizes) {
            Ok(both) => stored.extend(both),
            Err(error) => report.leave_out(format!("{}, recovery: {error}", redis::NAME)),
        }
    }
    rounds(&mut stored, &mut report, sizes.plan.runs, |_| Opening)?;
    for sample in &mut report.samples {
        let rate = f64::from(entries) / sample.median();
        sample.fields.insert("entries_per_second".to_owned(), json!(rate));
    }
    Ok(report)
}

fn make_ours(sizes: &Sizes, kind: TableKind, from: RecoverySource) -> Result<Stored> {
    let entries = sizes.recovered;
    let folder = Folder::new(&sizes.plan.dir, &format!("{}-{}", kind.engine(), from.name()))?;
    let ours = Ours::create(folder.path(), kind, Level::Buffered, DATA, entries)?;
    load(&ours, DATA, entries)?;
    let Ours { db, table } = ours;
    drop(table);
    match from {
        RecoverySource::Checkpoint => db.close()?,
        // A database that is dropped does nothing more to its files, as if its process had ended.
        RecoverySource::Log => drop(db),
    }
    folder.sync()?;
    let mut expected = Tally::default();
    for number in 0..entries {
        let entry = StampedEntry::of(DATA, number, 0);
        expected.add(pair(&entry.key, &entry.value));
    }
    let ours = Ours::reopen(folder.path())?;
    let stats = ours.db.stats();
    let log = stats.log.map_or(0, |log| log.log_bytes - log.unsaved_bytes);
    // Room of the log that nothing was written to does not count.
    let bytes = stats.file_bytes - log;
    let open = Box::new(move || {
        let begin = Instant::now();
        let ours = Ours::reopen(folder.path())?;
        let elapsed = begin.elapsed();
        let mut found = Tally::default();
        let _: ControlFlow<()> = ours.table.for_each(|key, value| {
            found.add(pair(key, value));
            ControlFlow::Continue(())
        })?;
        if found != expected {
            bail!("recovered {found}, not {expected}");
        }
        Ok(elapsed.as_secs_f64())
    });
    Ok(Stored { engine: kind.engine(), from, bytes, open })
}

fn make_redis(sizes: &Sizes) -> Result<[Stored; 2]> {
    let entries = sizes.recovered;
    let folder = Rc::new(Folder::new(&sizes.plan.dir, redis::NAME)?);
    let (redis, _) = Redis::start(&folder, RedisFiles::Aof("no"))?;
    redis.load(DATA, entries)?;
    let before = folder.bytes()?.unwrap_or(0);
    redis.save()?;
    // It ends at once, and closes nothing.
    drop(redis);
    folder.sync()?;
    let after = folder.bytes()?.unwrap_or(0);
    // Both kinds of files are in one folder.
    let of = |from, files, bytes| {
        let folder = Rc::clone(&folder);
        let open = Box::new(move || {
            let (redis, elapsed) = Redis::start(&folder, files)?;
            let found = redis.len()?;
            if found != u64::from(entries) {
                bail!("recovered {found} of {entries} entries");
            }
            Ok(elapsed.as_secs_f64())
        });
        Stored { engine: redis::NAME, from, bytes, open }
    };
    Ok([
        of(RecoverySource::Checkpoint, RedisFiles::Rdb, after.saturating_sub(before)),
        of(RecoverySource::Log, RedisFiles::Aof("no"), before),
    ])
}

/// Mixes key and value, so that a value under another key is seen.
fn pair(key: &[u8], value: &[u8]) -> u64 {
    consume(key).rotate_left(7) ^ consume(value)
}
