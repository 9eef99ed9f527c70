//! The speed of a store whose data is larger than its memory.
//!
//! FASTER's workloads on keys of 8 bytes and values of 100, of which a quarter fits into the
//! memory budget: reads, blind updates, both, and read-modify-writes, one key a call and in
//! batches. Nothing is synced while a run is timed. Every byte that is read is compared, written
//! values are looked at after each run. The disk's own random reads take their turns in the same
//! rounds, and each rate is set against what they allow at the miss rate that was seen. A run does
//! as many operations as fit into a second, so that a run on a slow disk ends.
//!
//! Engines outside this workspace run the same workloads through [`SpillStore`] and
//! [`run_with`](super::run_with).

mod disk;
mod form;
mod ours;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use ours::engines;
pub use store::{SpillEngine, SpillKey, SpillPlace, SpillStore, SpillValue, VALUE_BYTES};

use super::job::{Draw, HashJob, Mix};
use super::{HashArgs, engines::SAPWOOD};
use crate::harness::*;
use disk::{DiskFile, DiskReads, depth_of};
use form::SpillForm;

pub(crate) const STAY: &str = "sapwood-stay";

const TARGET_KEYS: u32 = 10_000_000;
/// The budget that goes with them: over a quarter of keys and values.
const TARGET_BUDGET: u64 = 300_000_000;
const ENTRY_BYTES: u64 = 8 + VALUE_BYTES as u64;
/// The untimed work before a run, in multiples of its time: popular keys must be in memory.
const WARM_RUNS: [(Draw, u32); 2] = [(Draw::Uniform, 1), (Draw::Zipf, 4)];

const BOTH: &[usize] = &[1, 2];
const OURS: &[&str] = &[SAPWOOD, "sapwood-batch-64", "sapwood-batch-1024"];
const UPDATES: &[&str] = &["update uniform"];

const TARGETS: Targets = Targets {
    judged: TARGET_KEYS as usize..=usize::MAX,
    size_unit: "entries",
    hint: "leave --spill-keys out to judge them",
    rows: &[
        // Engines that the peer projects `faster` and `spill` bring.
        Target::rate(&[SAPWOOD], UPDATES, 1.0, &["faster"]).on(BOTH),
        Target::rate(&[SAPWOOD], UPDATES, 10.0, &["rocksdb"]).on(BOTH),
        Target::rate(OURS, &["read uniform", "read-modify-write uniform"], 0.9, &[])
            .on(BOTH)
            .of(&SHARE_OF_DISK)
            .against(Against::Constant(1.0)),
    ],
};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SpillFlags {
    /// Keys with values of 100 bytes, where data is larger than memory [default: 10000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..1 << 30))]
    spill_keys: Option<u32>,

    /// Bytes of memory for them [default: a quarter of keys and values, and a tenth]
    #[arg(long, value_name = "BYTES")]
    budget: Option<u64>,

    /// Seconds that a run takes, as many operations as fit; --ops fixes the operations instead
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    run_time: f64,
}

struct SpillSize {
    keys: u32,
    budget_bytes: u64,
    /// Operations of each thread that are planned: where each may read the disk, and where none
    /// does.
    ops: [usize; 2],
    /// True if each store does only as many of them as take about `run_time`.
    paced: bool,
    run_time: Duration,
}

impl SpillSize {
    fn new(args: &HashArgs, mode: Mode) -> Result<SpillSize> {
        let (flags, ops) = (&args.spill, args.flags.ops);
        if !(0.001..=3600.0).contains(&flags.run_time) {
            bail!("--run-time is 0.001 to 3600 seconds");
        }
        let is_smoke = mode == Mode::Smoke;
        let keys = flags.spill_keys.unwrap_or(if is_smoke { 20_000 } else { TARGET_KEYS });
        let quarter = u64::from(keys) * ENTRY_BYTES * 11 / 40;
        let budget = if keys == TARGET_KEYS { TARGET_BUDGET } else { quarter };
        Ok(SpillSize {
            keys,
            budget_bytes: flags.budget.unwrap_or(budget),
            ops: match (ops, is_smoke) {
                (Some(ops), _) => [ops; 2],
                (None, true) => [200, 1_000],
                (None, false) => [500_000, 2_000_000],
            },
            paced: ops.is_none() && !is_smoke,
            run_time: Duration::from_secs_f64(if is_smoke { 0.02 } else { flags.run_time }),
        })
    }
}

/// A job of which each store does as much as its pace allows, and checks it itself.
struct SpillJob(HashJob);

impl Job for SpillJob {
    fn workload(&self) -> String {
        self.0.workload()
    }

    fn threads(&self) -> usize {
        self.0.threads()
    }
}

trait SpillEntrant: Engine<SpillJob> {
    fn form(&mut self) -> Option<&mut SpillForm> {
        None
    }
}

type Entrants = Vec<Box<dyn SpillEntrant>>;

fn forms(entrants: &mut Entrants) -> impl Iterator<Item = &mut SpillForm> {
    entrants.iter_mut().filter_map(|entrant| entrant.form())
}

/// Measures: loads a store for each form of each engine; then, for each workload, lets every store
/// work untimed, until memory holds what it would hold after a while, and finds out how many
/// operations a run takes; then runs stores and the disk itself in rounds.
pub(super) fn run_on(
    args: &HashArgs,
    plan: &Plan,
    engines: &[SpillEngine],
    sheet: &mut Sheet<'_>,
) -> Result {
    let size = SpillSize::new(args, plan.mode)?;
    let folder = Folder::new(&plan.dir, "spill")?;
    let bytes = u64::from(size.keys) * ENTRY_BYTES;
    let file = Arc::new(DiskFile::new(folder.path(), bytes)?);
    let mut report =
        Report::new("hash", size.keys as usize, "8+100 B, larger than memory", &[SAPWOOD]);
    report.title = format!(
        ": {} MB, a budget of {} MB, files in {}{}",
        bytes / 1_000_000,
        size.budget_bytes / 1_000_000,
        plan.dir.display(),
        if file.direct { "" } else { " (the disk's own reads went through the page cache)" }
    );
    let mut entrants = load(plan, &size, engines, folder.path(), &mut report)?;
    for depth in depths(&mut entrants, &plan.threads) {
        entrants.push(Box::new(DiskReads::new(&file, depth, size.run_time / 2)));
    }
    // Of the mixes between reads and updates there is one here.
    let mixes = plan.workloads.iter().filter_map(|name| Mix::named(name));
    for mix in mixes.filter(|mix| !matches!(mix, Mix::Reads(90..=99))) {
        for &draw in &args.draw {
            for &threads in &plan.threads {
                workload(args, plan, &size, &mut entrants, &mut report, (mix, draw, threads))?;
            }
        }
    }
    for form in forms(&mut entrants) {
        if let Some(bytes) = form.store().accounted_bytes() {
            let per_entry = bytes as f64 / f64::from(size.keys);
            report.bytes_per_entry.insert(form.name().to_owned(), per_entry);
        }
    }
    // Files are closed before their folder goes.
    drop(entrants);
    sheet.print(&report, &[&TARGETS])?;
    Ok(())
}

fn load(
    plan: &Plan,
    size: &SpillSize,
    engines: &[SpillEngine],
    folder: &Path,
    report: &mut Report,
) -> Result<Entrants> {
    let mut entrants = Entrants::new();
    for engine in engines.iter().filter(|engine| plan.takes(engine.name)) {
        report.progress.set_message(format!("{}: loading", engine.name));
        for &call in [1].iter().chain(engine.batches) {
            let dir: PathBuf = folder.join(format!("{}-{call}", engine.name));
            let place = SpillPlace { dir, budget_bytes: size.budget_bytes, keys: size.keys };
            let form = SpillForm::open(engine, place, call)?;
            report.note("load", 1, engine.name, &OPERATIONS, Figure::new(form.load()?));
            entrants.push(Box::new(form));
        }
    }
    Ok(entrants)
}

fn depths(entrants: &mut Entrants, threads: &[usize]) -> Vec<usize> {
    let calls = forms(entrants).map(|form| form.call());
    let mut depths: Vec<usize> = calls
        .flat_map(|call| threads.iter().map(move |threads| depth_of(call, *threads)))
        .collect();
    depths.sort_unstable();
    depths.dedup();
    depths
}

fn workload(
    args: &HashArgs,
    plan: &Plan,
    size: &SpillSize,
    entrants: &mut Entrants,
    report: &mut Report,
    (mix, draw, threads): (Mix, Draw, usize),
) -> Result {
    let ops = size.ops[usize::from(mix == Mix::Reads(0))];
    // Tags differ from run to run, so that a lost update shows.
    let first = report.samples.len() as u32 + 1;
    let job = |round: usize| {
        let tag = first * 64 + round as u32;
        HashJob::plan(mix, draw, size.keys, threads, ops, tag)
    };
    let (warm, paced) = (job(63), SpillJob(job(62)));
    let warm_runs = WARM_RUNS.iter().find(|(of, _)| *of == draw).map_or(1, |(_, runs)| *runs);
    for form in forms(entrants) {
        report.progress.set_message(format!("{}: untimed", form.name()));
        let prepared = form
            .settle()
            .and_then(|()| form.warm(&warm, size.run_time * warm_runs))
            .and_then(|()| if size.paced { form.find_pace(&paced, size.run_time) } else { Ok(()) });
        prepared.map_err(|error| format!("{}: {error}", form.name()))?;
    }
    rounds(entrants, report, plan.runs, |round| SpillJob(job(round)))?;
    for form in forms(entrants) {
        share_of_disk(report, form, &warm.workload(), threads);
    }
    if !args.no_latencies {
        latencies(entrants, report, &SpillJob(job(61).first(ops / 4 + 1)))?;
    }
    Ok(())
}

/// Notes a rate as a share of what the disk's random reads in the same rounds allow at its miss
/// rate, with as many of them in flight as the calls of all threads ask for. A shared disk is
/// faster at one time than at another.
fn share_of_disk(report: &mut Report, form: &SpillForm, workload: &str, threads: usize) {
    let depth = depth_of(form.call(), threads);
    let sample = |engine: &str, unit| report.sample(engine, workload, threads, Some(unit));
    let (rate, misses) = (sample(form.name(), &OPERATIONS), sample(form.name(), &MISSES));
    let disk = sample(&disk::name_of(depth), &OPERATIONS);
    let (Some(rate), Some(misses), Some(disk)) = (rate, misses, disk) else { return };
    // Where hardly anything was read the disk sets no limit.
    if misses.median() < 0.01 {
        return;
    }
    let reads = rate.rounds.iter().zip(&misses.rounds).map(|(rate, miss)| rate * miss);
    let shares: Vec<f64> = reads.zip(&disk.rounds).map(|(reads, disk)| reads / disk).collect();
    for share in shares {
        let figure = Figure::new(share).with(serde_json::json!({ "reads_in_flight": depth }));
        report.note(workload, threads, form.name(), &SHARE_OF_DISK, figure);
    }
}
