//! The interface of a map, one key a call or many, and a job on one: the loop is compiled for each
//! map and form of calls.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use super::job::{HashJob, Mix, key, number_of, value};
use crate::harness::*;

/// A concurrent map from 8-byte keys to 8-byte values. `get`, `put` and `increment` are compiled into
/// the loop of operations, as into a program that calls them in one.
pub trait HashStore: Send + Sync + Sized {
    /// The name in tables and in `--engines`.
    const NAME: &'static str;

    /// Empty, with room for `keys` entries.
    ///
    /// # Errors
    ///
    /// The engine refuses to be made.
    fn with_room(keys: u32) -> Result<Self>;

    /// Begins a thread's session before its first call, where the engine has such.
    fn enter(&self) {}

    /// Ends a thread's session after its last call.
    fn leave(&self) {}

    /// The key's value, if it is there.
    fn get(&self, key: u64) -> Option<u64>;

    /// Inserts or replaces, without asking for what was there.
    fn put(&self, key: u64, value: u64);

    /// Adds one to the value that is there, atomically.
    fn increment(&self, key: u64);

    /// Puts the entries of `numbers` as loaded.
    fn load(&self, numbers: Range<u32>) {
        for number in numbers {
            self.put(key(number), value(number, 0));
        }
    }

    /// Does what is planned, one key a call, and sums what it read: the values of a mix's updates
    /// have `low` in their lower half.
    #[inline]
    fn work(&self, mix: Mix, low: u32, plan: &[Op]) -> Tally {
        singly(self, mix, low, plan)
    }

    /// Does what is planned with so many keys a call, where it has such calls.
    #[inline]
    fn work_many(&self, _call: usize, mix: Mix, low: u32, plan: &[Op]) -> Tally {
        self.work(mix, low, plan)
    }

    /// Bytes by its own account.
    fn accounted_bytes(&self) -> Option<u64> {
        None
    }
}

fn visit<S: HashStore>(store: &S) -> Finally<impl FnMut()> {
    store.enter();
    Finally(|| store.leave())
}

/// One key a call, in the order of the plan.
#[inline]
fn singly<S: HashStore>(store: &S, mix: Mix, low: u32, plan: &[Op]) -> Tally {
    let mut tally = Tally::default();
    match mix {
        Mix::ReadModifyWrite => {
            for op in plan {
                store.increment(key(op.number()));
            }
        }
        Mix::Reads(_) => {
            for op in plan {
                let number = op.number();
                if op.writes() {
                    store.put(key(number), value(number, low));
                } else if let Some(value) = store.get(key(number)) {
                    tally.add(number_of(value));
                }
            }
        }
    }
    tally
}

pub(crate) struct HashLoad {
    pub(crate) elapsed: Duration,
    /// Growth of resident memory from before the store was made to after the load.
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) huge_bytes: Option<u64>,
    pub(crate) accounted_bytes: Option<u64>,
}

/// One participant, and what is done to it outside the rounds.
pub(crate) trait HashContender: Engine<HashJob> {
    /// Makes its store anew and loads all keys on one thread; `None` where another form does.
    fn load(&mut self, keys: u32) -> Result<Option<HashLoad>>;

    /// Reads every entry and compares: an error says what is wrong.
    fn check_everything(&mut self) -> Result;
}

/// A map outside this workspace.
#[derive(Clone, Copy)]
pub struct HashPeer {
    pub(super) name: &'static str,
    /// Bytes that an entry costs, for asking beforehand whether all fit.
    pub(super) bytes_expected: u64,
    pub(super) make: fn() -> Box<dyn HashContender>,
}

impl HashPeer {
    /// The map `S`, of which an entry costs about so many bytes.
    #[must_use]
    pub const fn of<S: HashStore + 'static>(bytes_expected: u64) -> HashPeer {
        HashPeer { name: S::NAME, bytes_expected, make: singles::<S> }
    }
}

fn singles<S: HashStore + 'static>() -> Box<dyn HashContender> {
    Box::new(StoreForm { name: S::NAME, call: 1, mark: 0, loads: true, shared: Shared::<S>::new() })
}

/// Operations of which one call is timed, where calls are timed singly.
const SAMPLED: usize = 64;

pub(crate) struct Shared<S> {
    store: Option<S>,
    keys: u32,
    /// Sum of the lower halves at the last full check, and of what was added since; none once a
    /// blind update has overwritten lower halves.
    added: Option<u64>,
}

pub(crate) struct StoreForm<S> {
    pub(crate) name: &'static str,
    pub(crate) call: usize,
    /// Tells this form's updates from those of other forms of the same store.
    pub(crate) mark: u32,
    /// True if it loads and checks the store for all forms.
    pub(crate) loads: bool,
    pub(crate) shared: Arc<RwLock<Shared<S>>>,
}

impl<S: HashStore> Shared<S> {
    pub(crate) fn new() -> Arc<RwLock<Shared<S>>> {
        Arc::new(RwLock::new(Shared { store: None, keys: 0, added: None }))
    }

    fn store(&self) -> &S {
        self.store.as_ref().expect("loaded before it runs")
    }

    fn probed(&self, job: &HashJob) -> Vec<Option<u64>> {
        let _visit = visit(self.store());
        job.probes.iter().map(|&(number, _)| self.store().get(key(number))).collect()
    }

    /// Checks what a job has left, and notes what it added.
    fn check_after(&mut self, job: &HashJob, low: u32, before: &[Option<u64>]) -> Result {
        job.check(low, before, &self.probed(job))?;
        self.added = match job.mix {
            Mix::Reads(100) => self.added,
            Mix::Reads(_) => None,
            Mix::ReadModifyWrite => self.added.map(|added| added + job.operations() as u64),
        };
        Ok(())
    }
}

impl<S: HashStore> StoreForm<S> {
    #[inline]
    fn work(&self, store: &S, mix: Mix, low: u32, plan: &[Op]) -> Tally {
        match self.call {
            1 => store.work(mix, low, plan),
            call => store.work_many(call, mix, low, plan),
        }
    }
}

impl<S: HashStore + 'static> Engine<HashJob> for StoreForm<S> {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self, job: &HashJob) -> Result<Outcome> {
        let mut shared = self.shared.write();
        let before = shared.probed(job);
        let low = job.tag << 2 | self.mark;
        let store = shared.store();
        // A quarter of the operations as reads, so that caches hold this store and not the last
        // contender's.
        run_threads(&job.plans, |plan| {
            let _visit = visit(store);
            let reads: Vec<Op> =
                plan[..plan.len() / 4].iter().map(|op| Op::new(op.number(), false)).collect();
            std::hint::black_box(self.work(store, Mix::Reads(100), low, &reads));
        });
        let (elapsed, tallies) = run_threads(&job.plans, |plan| {
            let _visit = visit(store);
            self.work(store, job.mix, low, plan)
        });
        shared.check_after(job, low, &before)?;
        Ok(Outcome::of(job.operations(), elapsed, tallies.into_iter().sum()))
    }

    fn latencies(&mut self, job: &HashJob) -> Result<Option<Percentiles>> {
        let mut shared = self.shared.write();
        let before = shared.probed(job);
        let low = job.tag << 2 | self.mark;
        let store = shared.store();
        let work = |_: &mut _, plan: &[Op]| {
            std::hint::black_box(self.work(store, job.mix, low, plan));
            Ok(())
        };
        let begin = || visit(store);
        let latencies = time_calls(&job.plans, (self.call, SAMPLED), begin, work)?;
        shared.check_after(job, low, &before)?;
        Ok(Some(latencies))
    }
}

impl<S: HashStore + 'static> HashContender for StoreForm<S> {
    fn load(&mut self, keys: u32) -> Result<Option<HashLoad>> {
        if !self.loads {
            return Ok(None);
        }
        let mut shared = self.shared.write();
        shared.store = None;
        let (resident, huge) = (resident_bytes(), huge_bytes());
        let store = S::with_room(keys)?;
        let begin = Instant::now();
        {
            let _visit = visit(&store);
            store.load(0..keys);
        }
        let elapsed = begin.elapsed();
        let load = HashLoad {
            elapsed,
            resident_bytes: growth(resident, resident_bytes()),
            huge_bytes: growth(huge, huge_bytes()),
            accounted_bytes: store.accounted_bytes(),
        };
        *shared = Shared { store: Some(store), keys, added: Some(0) };
        Ok(Some(load))
    }

    fn check_everything(&mut self) -> Result {
        if !self.loads {
            return Ok(());
        }
        let mut shared = self.shared.write();
        let store = shared.store();
        let visit = visit(store);
        let mut low_sum = 0u64;
        for number in 0..shared.keys {
            let found = store.get(key(number));
            if found.map(number_of) != Some(u64::from(number)) {
                bail!("{} holds {found:x?} for entry {number}", self.name);
            }
            low_sum += found.unwrap_or(0) & u64::from(u32::MAX);
        }
        drop(visit);
        if let Some(added) = shared.added.filter(|&added| added != low_sum) {
            bail!("{} lost additions: {low_sum} of {added} are there", self.name);
        }
        shared.added = Some(low_sum);
        Ok(())
    }
}
