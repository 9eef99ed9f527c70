//! Chains of workers on one pool, killed at any moment, and the pool compared with the oracle
//! between them: three trees of a thread change in one transaction a step, and what was acknowledged
//! is there, whatever the commits wait for.
//!
//! Losses of power are not for here: stores to the mapped log are no calls, so that the shim sees
//! none of them and takes none back. The simulated disk plays them out (`tests/it/crashes.rs` of
//! `ptree`, `tests/it/log.rs` of `disk`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use sapwood_disk::{Disk, FileDisk};
use sapwood_ptree::Pool;
use sapwood_testkit::Rng;

use crate::message::Message;
use crate::report::Outcome;
use crate::runs::{DatabaseFolder, Kill, Run, watched};
use steps::{Contents, KINDS, STEPS, tree_name};
use worker::Level;
pub(crate) use worker::PoolWork;

mod steps;
pub(crate) mod worker;

/// Steps of each thread of a worker that comes to its end.
const WORKER_STEPS: u64 = 400;
const THREADS: u64 = 2;

/// A chain: all of it follows from the seed, but for the moment of a kill and for the order in
/// which threads get on.
#[derive(Debug, Clone)]
pub(crate) struct PoolChain {
    pub(crate) seed: u64,
    pub(crate) links: u64,
    pub(crate) within: Option<PathBuf>,
}

/// What a thread's trees hold after a step, and the last step that was told of.
#[derive(Debug, Default)]
struct Oracle {
    step: u64,
    contents: Contents,
    told: u64,
}

impl PoolChain {
    pub(crate) fn run(&self) -> Outcome {
        let repeat = || format!("pools --seed {} --chains 1 --links {}", self.seed, self.links);
        Outcome::of(self.within.as_deref(), repeat, |place, outcome| self.torture(place, outcome))
    }

    fn torture(&self, place: &DatabaseFolder, outcome: &mut Outcome) -> Result<(), String> {
        let mut rng = sapwood_testkit::rng(self.seed);
        let mut oracles: Vec<Oracle> = (0..THREADS).map(|_| Oracle::default()).collect();
        for link in 0..self.links {
            let at = |what| format!("link {link}: {what}");
            let level = match rng.random_range(0..4) {
                0 => Level::Sync,
                1 => Level::Interval,
                _ => Level::Buffered,
            };
            let work = PoolWork {
                dir: place.database.clone(),
                seed: self.seed,
                threads: THREADS,
                steps: WORKER_STEPS,
                level,
            };
            // The flushes of persistent memory, on what is none.
            let is_dax = rng.random_range(0..3) == 0;
            let variables = if is_dax { &[("SAPWOOD_FORCE_DAX", "1")][..] } else { &[] };
            let run = Run::of_line(&work.arguments(), variables, Some(kill(&mut rng)), || Ok(()))
                .map_err(at)?;
            hear(&mut oracles, &run.messages).and_then(|()| run.expect_ended()).map_err(at)?;
            let ended = if run.was_killed() { "kills" } else { "workers that came to their end" };
            outcome.add(ended, 1);
            outcome.add(
                "ended before the pool was open",
                u64::from(!run.messages.contains(&Message::Opened)),
            );
            look(&work, &mut oracles, &mut rng, outcome).map_err(at)?;
        }
        Ok(())
    }
}

/// By lines: at some point of the work. By time: anywhere, and while the pool opens.
fn kill(rng: &mut Rng) -> Kill {
    let (lines, delay_max) = match rng.random_range(0..3) {
        0 => (0, 25_000),
        _ => (rng.random_range(0..2 * WORKER_STEPS as usize), 3_000),
    };
    Kill { lines, delay: Duration::from_micros(rng.random_range(0..delay_max)) }
}

fn hear(oracles: &mut [Oracle], messages: &[Message]) -> Result<(), String> {
    for message in messages {
        match message {
            Message::Wrong(what) => return Err(what.clone()),
            Message::Step(thread, step) => {
                let oracle = oracles.get_mut(*thread as usize).ok_or("a thread of no number")?;
                if *step <= oracle.told {
                    return Err(format!("thread {thread} does step {step} again"));
                }
                oracle.told = *step;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Opens the pool here, in this process: a panic is a failure, and a hang ends it aloud.
fn look(
    work: &PoolWork,
    oracles: &mut [Oracle],
    rng: &mut Rng,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let way = [Way::ReadOnly, Way::Open, Way::Close][rng.random_range(0..3)];
    watched(&work.dir, || compare(work, oracles, way, outcome))
}

/// How the oracle opens a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    ReadOnly,
    /// To go on, and drop.
    Open,
    /// To go on, and close with a checkpoint.
    Close,
}

fn compare(
    work: &PoolWork,
    oracles: &mut [Oracle],
    way: Way,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let refused = |error: sapwood_ptree::Error| format!("{way:?}: {error}");
    let disk = match way {
        Way::ReadOnly => FileDisk::open_read_only(&work.dir),
        Way::Open | Way::Close => FileDisk::open(&work.dir),
    };
    let disk: Arc<dyn Disk> = Arc::new(disk.map_err(|cause| cause.to_string())?);
    if !Pool::is_on(&*disk).map_err(refused)? {
        let told = oracles.iter().any(|oracle| oracle.told > 0);
        return if told { Err("the pool is gone".to_owned()) } else { Ok(()) };
    }
    let pool = match way {
        Way::ReadOnly => Pool::open_read_only(disk, work.options()),
        Way::Open | Way::Close => Pool::open(disk, work.options()),
    };
    let pool = pool.map_err(refused)?;
    let report = pool.check().map_err(refused)?;
    if let Some(problem) = report.problems.first() {
        return Err(format!("{way:?}: {problem}, and {} more", report.problems.len() - 1));
    }
    outcome.add("pools compared", 1);
    let has_trees = pool.trees().map_err(refused)?.iter().any(|tree| tree.name == STEPS);
    for (thread, oracle) in oracles.iter_mut().enumerate() {
        let thread = thread as u64;
        let found = match has_trees {
            true => steps::last_step(&pool, thread).map_err(refused)?,
            false => 0,
        };
        if found < oracle.told {
            return Err(format!(
                "thread {thread}: the pool has step {found}, and {} was acknowledged",
                oracle.told
            ));
        }
        // The step that was about to be told of.
        if found > oracle.told + 1 {
            return Err(format!("thread {thread}: step {found} of {} is there", oracle.told));
        }
        outcome.add("steps that lasted", found - oracle.step);
        while oracle.step < found {
            oracle.step += 1;
            steps::apply(steps::changes(work.seed, thread, oracle.step), &mut oracle.contents);
        }
        oracle.told = found;
        for kind in KINDS.iter().filter(|_| has_trees) {
            let tree = pool.tree(&tree_name(*kind, thread)).map_err(refused)?;
            let contents = tree.iter().collect::<Result<Contents, _>>().map_err(refused)?;
            if contents != oracle.contents {
                return Err(format!("thread {thread}: {kind:?} is not that of step {found}"));
            }
            outcome.add("entries compared", contents.len() as u64);
        }
    }
    match way {
        Way::Close => pool.close().map_err(refused),
        Way::ReadOnly | Way::Open => Ok(()),
    }
}
