//! The order of measurements. All stores are loaded one after the other, one for each form
//! of each engine. Then, for each workload, every store works untimed, until memory holds what it
//! would hold after a while, and finds out how many operations a run takes; then stores and the
//! disk itself run in rounds.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::disk_baseline::{self, DiskBaseline, DiskReads};
use super::form::SpillContender;
use super::store::{Engine, Place};
use super::{ENTRY_BYTES, Plan};
use crate::Error;
use crate::figures::{Percentiles, Rate, Rates, Timed};
use crate::hash::workload::{Draw, Job, Mix, Workload};
use crate::report::tell;
use crate::rounds::{Contender, Outcome, latencies, progress, rounds};

/// The untimed work before a run, in multiples of its time: popular keys must be in memory.
const WARM_RUNS: [(Draw, u32); 2] = [(Draw::Uniform, 1), (Draw::Zipf, 4)];

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
    /// The disk's own random reads in the rounds of a workload, with so many in flight.
    pub(crate) fn disk(
        &self,
        depth: usize,
        workload: Workload,
        threads: usize,
    ) -> Option<&Rate<Workload>> {
        self.rates.rate(&disk_baseline::name_of(depth), workload, threads)
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
        // Leftovers stand in a folder that names its owner.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A participant of a round.
enum Entrant {
    Store(Box<SpillContender>),
    Disk(DiskReads),
}

impl Entrant {
    fn form(&self) -> Option<&SpillContender> {
        match self {
            Entrant::Store(form) => Some(form),
            Entrant::Disk(_) => None,
        }
    }

    fn form_mut(&mut self) -> Option<&mut SpillContender> {
        match self {
            Entrant::Store(form) => Some(form),
            Entrant::Disk(_) => None,
        }
    }

    fn contender(&mut self) -> &mut dyn Contender<Job> {
        match self {
            Entrant::Store(form) => &mut **form,
            Entrant::Disk(disk) => disk,
        }
    }
}

impl Contender<Job> for Entrant {
    fn name(&self) -> &str {
        match self {
            Entrant::Store(form) => form.name(),
            Entrant::Disk(disk) => disk.name(),
        }
    }

    fn runs(&self, workload: Workload) -> bool {
        match self {
            Entrant::Store(form) => form.runs(workload),
            Entrant::Disk(disk) => disk.runs(workload),
        }
    }

    fn run(&mut self, job: &Job) -> Result<Outcome, Error> {
        self.contender().run(job)
    }

    fn latencies(&mut self, job: &Job) -> Result<Percentiles, Error> {
        self.contender().latencies(job)
    }

    fn is_timed_singly(&self) -> bool {
        matches!(self, Entrant::Store(_))
    }
}

/// Tells how far it is: by a bar on a terminal, else by a line for each workload.
struct ProgressLines {
    begin: Instant,
    done: usize,
    groups: usize,
}

impl ProgressLines {
    fn line(&self, what: &str) {
        if !std::io::stderr().is_terminal() {
            let seconds = self.begin.elapsed().as_secs();
            let (done, groups) = (self.done, self.groups);
            tell(format_args!("{seconds:5} s, {done} of {groups} workloads done: {what}"));
        }
    }
}

pub(crate) fn measure(plan: &Plan, engines: &[Engine]) -> Result<Figures, Error> {
    let folder = Folder::new(&plan.dir)?;
    let rounds = &plan.rounds;
    let groups = rounds.mixes.len() * rounds.draws.len() * rounds.threads.len();
    let mut lines = ProgressLines { begin: Instant::now(), done: 0, groups };
    let baseline = Arc::new(DiskBaseline::new(&folder.0, u64::from(plan.keys) * ENTRY_BYTES)?);
    let mut figures = Figures {
        keys: plan.keys,
        budget_bytes: plan.budget_bytes,
        place: plan.dir.clone(),
        direct: baseline.direct,
        rates: Rates::default(),
        memory: Vec::new(),
        misses: Vec::new(),
    };
    let mut entrants = load(plan, engines, &folder.0, &mut figures, &lines)?;
    for depth in depths(&entrants, &rounds.threads) {
        entrants.push(Entrant::Disk(DiskReads::new(&baseline, depth, plan.run_time / 2)));
    }
    let timed = rounds.runs + usize::from(rounds.latencies);
    let progress = progress(groups * timed * entrants.len());
    for &mix in &rounds.mixes {
        for &draw in &rounds.draws {
            for &threads in &rounds.threads {
                let name = Workload::Mixed(mix, draw).name();
                lines.line(&format!("{name} on {threads}"));
                workload(plan, &mut entrants, &mut figures, &progress, mix, draw, threads)?;
                lines.done += 1;
            }
        }
    }
    lines.line("the end");
    progress.finish_and_clear();
    for form in entrants.iter().filter_map(Entrant::form) {
        let bytes = form.store().accounted_bytes();
        figures.memory.extend(bytes.map(|bytes| (form.name().to_owned(), bytes)));
    }
    // Files are closed before their folder goes.
    drop(entrants);
    Ok(figures)
}

/// Loads a store for each form of each wanted engine.
fn load(
    plan: &Plan,
    engines: &[Engine],
    folder: &Path,
    figures: &mut Figures,
    lines: &ProgressLines,
) -> Result<Vec<Entrant>, Error> {
    let wanted =
        |name: &str| plan.engines.is_empty() || plan.engines.iter().any(|wanted| wanted == name);
    let wanted: Vec<&Engine> = engines.iter().filter(|engine| wanted(engine.name)).collect();
    let calls = |engine: &Engine| std::iter::once(1).chain(engine.batches.iter().copied());
    let progress = progress(wanted.iter().flat_map(|engine| calls(engine)).count());
    let mut entrants = Vec::new();
    for engine in wanted {
        progress.set_message(format!("{}: loading", engine.name));
        lines.line(&format!("{}: loading", engine.name));
        let mut rounds = Vec::new();
        for call in calls(engine) {
            let dir = folder.join(format!("{}-{call}", engine.name));
            let place = Place { dir, budget_bytes: plan.budget_bytes, keys: plan.keys };
            let form = SpillContender::open(engine, place, call)?;
            rounds.push(form.load()?);
            entrants.push(Entrant::Store(Box::new(form)));
            progress.inc(1);
        }
        let engine = engine.name.to_owned();
        figures.rates.rates.push(Rate { workload: Workload::Load, threads: 1, engine, rounds });
    }
    progress.finish_and_clear();
    Ok(entrants)
}

/// Reads in flight that calls of these stores come to.
fn depths(entrants: &[Entrant], threads: &[usize]) -> Vec<usize> {
    let calls = entrants.iter().filter_map(Entrant::form).map(SpillContender::call);
    let mut depths: Vec<usize> = calls
        .flat_map(|call| threads.iter().map(move |threads| disk_baseline::depth_of(call, *threads)))
        .collect();
    depths.sort_unstable();
    depths.dedup();
    depths
}

fn workload(
    plan: &Plan,
    entrants: &mut Vec<Entrant>,
    figures: &mut Figures,
    progress: &indicatif::ProgressBar,
    mix: Mix,
    draw: Draw,
    threads: usize,
) -> Result<(), Error> {
    let ops = plan.ops[usize::from(mix == Mix::Reads(0))];
    // Tags differ from run to run, so that a lost update shows.
    let first = figures.rates.rates.len() as u32 + 1;
    let job = |round: usize| {
        let tag = first * 64 + round as u32;
        Job::plan(mix, draw, plan.keys, threads, ops, tag, plan.rounds.clock)
    };
    let (warm, paced) = (job(63), job(62));
    let warm_runs = WARM_RUNS.iter().find(|(of, _)| *of == draw).map_or(1, |(_, runs)| *runs);
    for form in entrants.iter_mut().filter_map(Entrant::form_mut) {
        progress.set_message(format!("{}: untimed", form.name()));
        let prepared = form
            .settle()
            .and_then(|()| form.warm(&warm, plan.run_time * warm_runs))
            .and_then(|()| if plan.paced { form.find_pace(&paced, plan.run_time) } else { Ok(()) });
        prepared.map_err(|error| format!("{}: {error}", form.name()))?;
        form.take_misses();
    }
    rounds(entrants, &mut figures.rates, progress, plan.rounds.runs, job, |_| None)?;
    for form in entrants.iter_mut().filter_map(Entrant::form_mut) {
        let rounds = form.take_misses();
        if !rounds.is_empty() {
            let engine = form.name().to_owned();
            let workload = Workload::Mixed(mix, draw);
            figures.misses.push(Misses { engine, workload, threads, rounds });
        }
    }
    if plan.rounds.latencies {
        let job = job(61).first(ops / 4 + 1);
        latencies(entrants, &mut figures.rates, progress, &job)?;
    }
    Ok(())
}
