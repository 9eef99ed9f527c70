//! Single puts beside a checkpoint of all tables, and without one; bytes of the log for a change.
//! Nothing else writes checkpoints.

use std::time::Instant;

use serde_json::json;

use super::data::{Data, Level, StampedEntry};
use super::ours::Ours;
use super::store::DurableStore;
use super::writers::{Timing, WriterJob, check, load, write_while};
use super::{BESIDE, Sizes, WITHOUT};
use crate::harness::*;

const WRITERS: [usize; 2] = [1, 2];
const DATA: Data = Data::Large;
/// Memory of an entry in both tables at most, with copies that a hash table makes while a
/// checkpoint is written.
const ENTRY_BYTES: u64 = 6_000;
/// Changes of each kind at most, and the bytes that a counter has and an update changes.
const CHANGES: u32 = 10_000;
const CHANGED_BYTES: usize = 8;

/// Puts for some time without a checkpoint, then beside one after another.
struct BesideJob<'s> {
    sizes: &'s Sizes,
    keys: u32,
    writers: usize,
    round: u64,
}

impl Job for BesideJob<'_> {
    fn workload(&self) -> String {
        BESIDE.to_owned()
    }

    fn threads(&self) -> usize {
        self.writers
    }
}

/// A table of ours. Changes last soon.
struct Checkpointed {
    kind: TableKind,
    ours: Ours,
    _folder: Folder,
}

impl<'s> Engine<BesideJob<'s>> for Checkpointed {
    fn name(&self) -> &str {
        self.kind.engine()
    }

    fn run(&mut self, job: &BesideJob<'s>) -> Result<Outcome> {
        let (ours, keys, writers, time) = (&self.ours, job.keys, job.writers, job.sizes.time);
        let puts = |seed| WriterJob { data: DATA, keys, writers, seed, timing: Timing::Singly };
        let (without, ()) = write_while(ours, &puts(2 * job.round), || {
            std::thread::sleep(time);
            Ok(())
        })?;
        let (beside, seconds) = write_while(ours, &puts(2 * job.round + 1), || {
            let begin = Instant::now();
            let mut count = 0;
            while count == 0 || begin.elapsed() < time {
                ours.checkpoint()?;
                count += 1;
            }
            Ok(begin.elapsed().as_secs_f64() / f64::from(count))
        })?;
        check(ours, DATA, keys, job.round)?;
        // What the last puts left is not written during the next ones.
        ours.checkpoint()?;
        let figures =
            [(WITHOUT, &without), (BESIDE, &beside)].into_iter().flat_map(|(name, it)| {
                [Figure::new(it.rate()).of(name), Figure::latencies(it.latencies).of(name)]
            });
        let one = Figure::new(seconds).of("checkpoint").unit(&SECONDS);
        Ok(Outcome { figures: figures.chain([one]).collect(), ..Outcome::default() })
    }
}

pub(crate) fn measure(sizes: &Sizes) -> Result<Report> {
    let (plan, wanted) = (&sizes.plan, sizes.checkpointed);
    let most = available_bytes().map_or(u64::MAX, |bytes| bytes / ENTRY_BYTES);
    let keys = wanted.min(u32::try_from(most).unwrap_or(u32::MAX)).max(1);
    let mut report = Report::new("durability", keys as usize, DATA.title(), &[]);
    report.title = ": puts beside checkpoints; async".to_owned();
    if keys < wanted {
        report.leave_out(format!("{} of {wanted} entries: memory is short", wanted - keys));
    }
    let mut engines = Vec::new();
    for kind in TableKind::ALL.into_iter().filter(|kind| plan.takes(kind.engine())) {
        let folder = Folder::new(&plan.dir, kind.engine())?;
        let ours = Ours::create(folder.path(), kind, Level::Async, DATA, keys)?;
        load(&ours, DATA, keys)?;
        ours.checkpoint()?;
        engines.push(Checkpointed { kind, ours, _folder: folder });
    }
    for writers in WRITERS {
        let job = |round: usize| BesideJob { sizes, keys, writers, round: round as u64 };
        rounds(&mut engines, &mut report, plan.runs, job)?;
    }
    Ok(report)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Put,
    Add,
    Update,
}

pub(crate) fn log_bytes(sizes: &Sizes, data: Data) -> Result<Report> {
    let changes = sizes.keys(data).clamp(1, CHANGES);
    let mut report = Report::new("durability", changes as usize, data.title(), &[]);
    report.title = ": bytes of the log for a change".to_owned();
    let [key, value] = data.lengths();
    let kinds = match data {
        Data::Small => [("put 8 B", Change::Put), ("add", Change::Add)],
        Data::Large => [("put 1 KB", Change::Put), ("update 8 B of 1 KB", Change::Update)],
    };
    for kind in TableKind::ALL.into_iter().filter(|kind| sizes.plan.takes(kind.engine())) {
        for (name, change) in kinds {
            let folder = Folder::new(&sizes.plan.dir, kind.engine())?;
            let ours = Ours::create(folder.path(), kind, Level::Buffered, data, changes)?;
            let bytes = change.log_bytes(&ours, data, changes)?;
            let changed = if change == Change::Put { value } else { CHANGED_BYTES };
            let user = json!({ "user_bytes": key + changed });
            report.note(name, 1, kind.engine(), &LOG_BYTES, Figure::new(bytes).with(user));
        }
    }
    Ok(report)
}

impl Change {
    fn log_bytes(self, ours: &Ours, data: Data, changes: u32) -> Result<f64> {
        if self == Change::Add {
            let key = |number| StampedEntry::of(data, number, 0).key;
            ours.load(&(0..changes).map(|it| (key(it), vec![0; 8])).collect::<Vec<_>>())?;
        } else {
            load(ours, data, changes)?;
        }
        ours.checkpoint()?;
        let position = || ours.log_bytes().ok_or("a table in a directory has a log");
        let begin = position()?;
        for number in 0..changes {
            self.make(ours, &StampedEntry::of(data, number, 1))?;
        }
        Ok((position()? - begin) as f64 / f64::from(changes))
    }

    fn make(self, ours: &Ours, entry: &StampedEntry) -> Result {
        match self {
            Change::Put => ours.put(&entry.key, &entry.value),
            Change::Add => Ok(ours.table.add(&entry.key, 1).map(drop)?),
            Change::Update => {
                let middle = entry.value.len() / 2;
                let found = ours.table.update(&entry.key, |value| {
                    let changed = &mut value[middle..middle + CHANGED_BYTES];
                    changed.iter_mut().for_each(|byte| *byte = !*byte);
                })?;
                found.ok_or_else(|| "a key is lost".into())
            }
        }
    }
}
