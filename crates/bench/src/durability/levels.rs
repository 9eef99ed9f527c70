//! Rates of puts at each level. All levels of all engines take turns in a round, with the disk by
//! itself: a file that grows, and syncs of a page.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::data::{Data, Level};
use super::redis::{self, Redis, RedisFiles};
use super::store::{DurableEngine, DurablePlace, DurableStore};
use super::writers::{Timing, WriterJob, check, load, write_while};
use super::{Sizes, ours};
use crate::harness::*;

pub(crate) const FLOOR: &str = "floor-disk";

const BLOCK_BYTES: usize = 1 << 20;
/// Blocks that are synced together: as much as a log may have unsynced by default.
const SYNCED_BLOCKS: usize = 64;
/// Pages of the file that is synced.
const PAGES: usize = 1024;

struct PutJob {
    data: Data,
    keys: u32,
    writers: usize,
    time: Duration,
    seed: u64,
}

impl Job for PutJob {
    fn workload(&self) -> String {
        format!("put {}", self.data.name())
    }

    fn threads(&self) -> usize {
        self.writers
    }
}

/// An engine at a level, or the disk by itself.
struct Putting {
    name: &'static str,
    level: Option<Level>,
    run: Box<dyn FnMut(&PutJob) -> Result<Vec<Figure>>>,
}

impl Engine<PutJob> for Putting {
    fn name(&self) -> &str {
        self.name
    }

    fn workload(&self, job: &PutJob) -> String {
        let level = self.level.map(|level| format!(", {}", level.name()));
        job.workload() + &level.unwrap_or_default()
    }

    fn run(&mut self, job: &PutJob) -> Result<Outcome> {
        (self.run)(job).map(Outcome::from)
    }
}

fn disk(dir: &Path, job: &PutJob) -> Result<Vec<Figure>> {
    let folder = Folder::new(dir, FLOOR)?;
    let bytes = Figure::new(bytes_a_second(folder.path(), job.time)?);
    let goes_on = |count, elapsed| count == 0 || elapsed < job.time;
    let (syncs, elapsed) = sync_pages(folder.path(), PAGES, goes_on)?;
    let bytes = bytes.of("sequential").unit(&BYTES_A_SECOND);
    Ok(vec![bytes.on(1), Figure::rate(syncs, elapsed).of("sync").on(1)])
}

fn bytes_a_second(dir: &Path, time: Duration) -> Result<f64> {
    let mut file = File::create(dir.join("sequential"))?;
    let block = vec![1; BLOCK_BYTES];
    let begin = Instant::now();
    let mut blocks = 0;
    while blocks == 0 || begin.elapsed() < time {
        file.write_all(&block)?;
        blocks += 1;
        if blocks % SYNCED_BLOCKS == 0 {
            file.sync_data()?;
        }
    }
    file.sync_data()?;
    Ok((blocks * BLOCK_BYTES) as f64 / begin.elapsed().as_secs_f64())
}

/// Puts to a store of this process.
fn put(store: &dyn DurableStore, level: Level, job: &PutJob) -> Result<Vec<Figure>> {
    let &PutJob { data, keys, writers, time, seed } = job;
    let puts = WriterJob { data, keys, writers, seed, timing: Timing::Together };
    let log = store.log_bytes();
    let (written, ()) = write_while(store, &puts, || wait(store, level, time))?;
    let log_bytes = store.log_bytes().zip(log).map(|(end, begin)| end - begin);
    check(store, data, keys, seed)?;
    let mut figures = vec![Figure::new(written.rate())];
    if let Some(bytes) = log_bytes.filter(|&bytes| bytes > 0) {
        figures.push(Figure::rate(bytes as usize, written.elapsed).unit(&LOG_BYTES_A_SECOND));
    }
    store.settle()?;
    Ok(figures)
}

/// Waits beside the writers; for an engine without a thread of its own, syncs as ours does.
fn wait(store: &dyn DurableStore, level: Level, time: Duration) -> Result {
    if level != Level::Async || store.syncs_itself() {
        std::thread::sleep(time);
        return Ok(());
    }
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        std::thread::sleep(left.min(ours::SYNC_INTERVAL));
        if left <= ours::SYNC_INTERVAL {
            return Ok(());
        }
        store.sync()?;
    }
}

pub(crate) fn measure(sizes: &Sizes, engines: &[DurableEngine], data: Data) -> Result<Report> {
    let keys = sizes.keys(data);
    let mut report = Report::new("durability", keys as usize, data.title(), &[]);
    report.title = ": puts to keys that are there. Redis is over loopback, one request in flight \
                    on each connection; its async is everysec"
        .to_owned();
    report.size = sizes.time.as_millis() as usize;
    let mut contenders = open_all(sizes, engines, data, &mut report)?;
    for &writers in &sizes.plan.threads {
        rounds(&mut contenders, &mut report, sizes.plan.runs, |round| PutJob {
            data,
            keys,
            writers,
            time: sizes.time,
            seed: round as u64 + 1,
        })?;
    }
    context(&mut report, data);
    Ok(report)
}

fn open_all(
    sizes: &Sizes,
    engines: &[DurableEngine],
    data: Data,
    report: &mut Report,
) -> Result<Vec<Putting>> {
    let (plan, keys) = (&sizes.plan, sizes.keys(data));
    let mut contenders = Vec::new();
    for engine in engines.iter().filter(|engine| plan.takes(engine.name)) {
        for &level in &sizes.levels {
            let name = engine.name;
            let folder = Folder::new(&plan.dir, &format!("{name}-{}", level.name()))?;
            let place = DurablePlace { dir: folder.path().to_owned(), level, data, keys };
            let opened = (engine.open)(&place).and_then(|store| {
                store.iter().try_for_each(|store| load(&**store, data, keys))?;
                Ok(store)
            });
            match opened {
                Ok(Some(store)) => {
                    store.settle()?;
                    // The folder goes after the store.
                    let kept = (store, folder);
                    let run = Box::new(move |job: &PutJob| {
                        let (store, _folder) = &kept;
                        put(&**store, level, job)
                    });
                    contenders.push(Putting { name, level: Some(level), run });
                }
                Ok(None) => report.leave_out(format!("{name} has no level {}", level.name())),
                Err(error) if is_ours(name) => bail!("{name}: {error}"),
                Err(error) => report.leave_out(format!("{name}: {error}")),
            }
        }
    }
    for &level in sizes.levels.iter().filter(|_| plan.takes(redis::NAME)) {
        let folder = Folder::new(&plan.dir, &format!("{}-{}", redis::NAME, level.name()))?;
        let started = Redis::start(&folder, RedisFiles::of(level)).and_then(|(redis, _)| {
            redis.load(data, keys)?;
            folder.sync()?;
            Ok(redis)
        });
        let redis = match started {
            Ok(redis) => redis,
            Err(error) => {
                report.leave_out(format!("{}: {error}", redis::NAME));
                continue;
            }
        };
        let run = Box::new(move |job: &PutJob| {
            let &PutJob { data, keys, writers, time, seed } = job;
            let rate = redis.put_for(data, keys, writers, time, seed)?;
            redis.check(data, keys, seed)?;
            // Leaves the disk idle.
            folder.sync()?;
            Ok(vec![Figure::new(rate)])
        });
        contenders.push(Putting { name: redis::NAME, level: Some(level), run });
    }
    if plan.takes(FLOOR) {
        let dir = plan.dir.clone();
        let run = Box::new(move |job: &PutJob| disk(&dir, job));
        contenders.push(Putting { name: FLOOR, level: None, run });
    }
    Ok(contenders)
}

/// Adds to rates their share of those of memory, and to logs their share of the disk by itself.
fn context(report: &mut Report, data: Data) {
    let memory = format!("put {}, {}", data.name(), Level::Memory.name());
    let of = |sample: &Sample| -> Option<(&str, serde_json::Value)> {
        if sample.unit == &LOG_BYTES_A_SECOND {
            let disk = report.sample(FLOOR, "sequential", 1, Some(&BYTES_A_SECOND))?;
            return Some(("share_of_disk", json!(sample.median() / disk.median())));
        }
        let memory = report.rate(&sample.engine, &memory, sample.threads)?;
        let ratio = Ratio::of(&sample.rounds, &memory.rounds).json();
        (sample.unit.is_rate() && sample.workload != memory.workload)
            .then_some(("of_memory", ratio))
    };
    let found: Vec<_> = report.samples.iter().map(of).collect();
    for (sample, found) in report.samples.iter_mut().zip(found) {
        sample.fields.extend(found.map(|(name, value)| (name.to_owned(), value)));
    }
}
