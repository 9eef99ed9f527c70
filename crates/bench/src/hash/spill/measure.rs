//! In which order does everything run? The disk alone; then all stores are loaded one after the
//! other, one for each form of each engine; then for each workload every form of every store runs once untimed, so that memory holds
//! what it would hold after a while, and then in rounds.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::disk_floor::{self, DiskFloor};
use super::form::Form;
use super::store::{Engine, Place, SpillStore, VALUE_BYTES, key, value};
use super::{ENTRY_BYTES, Plan};
use crate::Error;
use crate::figures::{Rate, Rates};
use crate::hash::workload::{Draw, Job, Mix, Workload};
use crate::rounds::{Contender, latencies, progress, rounds};

/// Entries of a call while loading.
const LOADED_TOGETHER: u32 = 256;

/// All figures of data larger than memory.
pub(crate) struct Figures {
    pub(crate) keys: u32,
    pub(crate) budget_bytes: u64,
    pub(crate) place: PathBuf,
    /// Whether the disk's own reads pass the page cache by.
    pub(crate) direct: bool,
    pub(crate) rates: Rates<Workload>,
    /// Memory of each form's store by its own account after the last run.
    pub(crate) memory: Vec<(String, u64)>,
    pub(crate) misses: Vec<Misses>,
}

/// Entries that a form read from the disk, per operation.
pub(crate) struct Misses {
    pub(crate) engine: String,
    pub(crate) workload: Workload,
    pub(crate) threads: usize,
    pub(crate) rounds: Vec<f64>,
}

impl Figures {
    /// The disk's own random reads, with so many in flight.
    pub(crate) fn disk(&self, depth: usize) -> Option<&Rate<Workload>> {
        self.rates.rate(disk_floor::NAME, Workload::DiskReads, depth)
    }

    pub(crate) fn misses(&self, of: &Rate<Workload>) -> Option<&Misses> {
        self.misses.iter().find(|misses| {
            misses.engine == of.engine
                && misses.workload == of.workload
                && misses.threads == of.threads
        })
    }
}

/// A folder that is removed with all that is in it.
struct Folder(PathBuf);

impl Folder {
    fn new(inside: &Path) -> Result<Folder, Error> {
        let path = inside.join(format!("sapwood-bench-spill-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|error| format!("{}: {error}; choose a folder with --dir", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is in a folder that says whose it is.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn measure(plan: &Plan, engines: &[Engine]) -> Result<Figures, Error> {
    let folder = Folder::new(&plan.dir)?;
    let wanted: Vec<&Engine> = engines
        .iter()
        .filter(|engine| {
            plan.engines.is_empty() || plan.engines.iter().any(|name| name == engine.name)
        })
        .collect();
    let mut figures = Figures {
        keys: plan.keys,
        budget_bytes: plan.budget_bytes,
        place: plan.dir.clone(),
        direct: false,
        rates: Rates::default(),
        memory: Vec::new(),
        misses: Vec::new(),
    };
    disk(plan, &folder.0, &mut figures)?;
    let mut forms: Vec<Form> = Vec::new();
    let calls = |engine: &Engine| std::iter::once(1).chain(engine.batches.iter().copied());
    let progress_of_loads = progress(wanted.iter().flat_map(|engine| calls(engine)).count());
    for engine in wanted {
        progress_of_loads.set_message(format!("{}: loading", engine.name));
        let mut rounds = Vec::new();
        for call in calls(engine) {
            let dir = folder.0.join(format!("{}-{call}", engine.name));
            std::fs::create_dir_all(&dir)?;
            let place = Place { dir, budget_bytes: plan.budget_bytes, keys: plan.keys };
            let form = Form::new(engine.name, (engine.open)(&place)?, call);
            rounds.push(load(form.store(), plan.keys)?);
            forms.push(form);
            progress_of_loads.inc(1);
        }
        let engine = engine.name.to_owned();
        figures.rates.rates.push(Rate { workload: Workload::Load, threads: 1, engine, rounds });
    }
    progress_of_loads.finish_and_clear();
    let groups = plan.rounds.mixes.len() * plan.rounds.draws.len() * plan.rounds.threads.len();
    let timed = plan.rounds.runs + usize::from(plan.rounds.latencies);
    let progress = progress(groups * timed * forms.len());
    for &mix in &plan.rounds.mixes {
        for &draw in &plan.rounds.draws {
            for &threads in &plan.rounds.threads {
                for form in &forms {
                    form.store().settle()?;
                }
                workload(plan, &mut forms, &mut figures, &progress, mix, draw, threads)?;
            }
        }
    }
    progress.finish_and_clear();
    for form in &forms {
        let bytes = form.store().accounted_bytes();
        figures.memory.extend(bytes.map(|bytes| (form.name().to_owned(), bytes)));
    }
    // Files are closed before their folder goes.
    drop(forms);
    Ok(figures)
}

/// The disk's own random reads, over as many bytes as the entries have.
fn disk(plan: &Plan, folder: &Path, figures: &mut Figures) -> Result<(), Error> {
    let time = Duration::from_millis(if plan.ops[0] < 10_000 { 50 } else { 1_000 });
    let floor = DiskFloor::new(folder, u64::from(plan.keys) * ENTRY_BYTES)?;
    figures.direct = floor.direct;
    let mut rounds = vec![Vec::new(); disk_floor::DEPTHS.len()];
    for round in 0..plan.rounds.runs {
        for (depth, rates) in disk_floor::DEPTHS.into_iter().zip(&mut rounds) {
            rates.push(floor.measure(depth, time, round as u64)?);
        }
    }
    for (depth, rounds) in disk_floor::DEPTHS.into_iter().zip(rounds) {
        figures.rates.rates.push(Rate {
            workload: Workload::DiskReads,
            threads: depth,
            engine: disk_floor::NAME.to_owned(),
            rounds,
        });
    }
    Ok(())
}

/// Loads all keys on one thread; entries a second.
fn load(store: &dyn SpillStore, keys: u32) -> Result<f64, Error> {
    let mut entries = vec![([0; 8], [0; VALUE_BYTES]); LOADED_TOGETHER as usize];
    let begin = Instant::now();
    for first in (0..keys).step_by(LOADED_TOGETHER as usize) {
        let limit = keys.min(first.saturating_add(LOADED_TOGETHER));
        let entries = &mut entries[..(limit - first) as usize];
        for (entry, number) in entries.iter_mut().zip(first..) {
            *entry = (key(number), value(number, 0));
        }
        store.put_many(entries)?;
    }
    Ok(f64::from(keys) / begin.elapsed().as_secs_f64())
}

fn workload(
    plan: &Plan,
    forms: &mut Vec<Form>,
    figures: &mut Figures,
    progress: &indicatif::ProgressBar,
    mix: Mix,
    draw: Draw,
    threads: usize,
) -> Result<(), Error> {
    let ops = plan.ops[usize::from(mix == Mix::Reads(0))];
    // Tags differ from run to run, so that a lost update shows.
    let first = figures.rates.rates.len() as u32 + 1;
    let job = |round: usize, ops: usize| {
        let tag = first * 64 + round as u32;
        Job::plan(mix, draw, plan.keys, threads, ops, tag, plan.rounds.clock)
    };
    let warm = job(63, ops);
    for form in forms.iter_mut() {
        progress.set_message(format!("{}: untimed", form.name()));
        form.run(&warm).map_err(|error| format!("{}: {error}", form.name()))?;
        form.take_misses();
    }
    rounds(
        forms,
        &mut figures.rates,
        progress,
        plan.rounds.runs,
        |round| job(round, ops),
        |job| Some(job.expected()),
    )?;
    for form in forms.iter_mut() {
        let rounds = form.take_misses();
        if !rounds.is_empty() {
            let engine = form.name().to_owned();
            let workload = Workload::Mixed(mix, draw);
            figures.misses.push(Misses { engine, workload, threads, rounds });
        }
    }
    if plan.rounds.latencies {
        latencies(forms, &mut figures.rates, progress, &job(62, ops / 8 + 1))?;
    }
    Ok(())
}
