//! The interface of a map, one key a call or many, and a job on one: the loop is compiled for each
//! map and form of calls.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use super::job::{HashJob, Mix, Op, key, number_of, value};
use crate::harness::*;

/// A concurrent map from 8-byte keys to 8-byte values.
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

    /// Bytes by its own account.
    fn accounted_bytes(&self) -> Option<u64> {
        None
    }
}

/// A thread's calls on a store, from the first to the last.
struct Visit<'s, S: HashStore>(&'s S);

impl<S: HashStore> Visit<'_, S> {
    fn begin(store: &S) -> Visit<'_, S> {
        store.enter();
        Visit(store)
    }
}

impl<S: HashStore> Drop for Visit<'_, S> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A store that takes many keys in one call.
pub(crate) trait BatchStore: HashStore {
    type Key: Copy;
    type Entry: Copy;

    fn batch_key(key: u64) -> Self::Key;
    fn batch_entry(key: u64, value: u64) -> Self::Entry;

    /// Calls `read` with each value that is there.
    fn get_many(&self, keys: &[Self::Key], read: impl FnMut(u64));
    fn put_many(&self, entries: &[Self::Entry]);
    fn increment_many(&self, keys: &[Self::Key]);
}

/// The form of calls: one key or many.
pub(crate) trait CallForm<S>: 'static {
    const NAME: &'static str;
    /// Tells this form's updates from those of other forms of the same store.
    const MARK: u32;
    const CALL: usize;

    fn work(store: &S, mix: Mix, low: u32, plan: &[Op]) -> Tally;
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

/// `N` keys a call: reads are gathered in one batch and updates in another, and each is handed
/// over when it is full.
#[inline]
pub(crate) fn batched<const N: usize, S: BatchStore>(
    store: &S,
    mix: Mix,
    low: u32,
    plan: &[Op],
) -> Tally {
    let mut tally = Tally::default();
    match mix {
        Mix::ReadModifyWrite => {
            let mut keys = [S::batch_key(0); N];
            for part in plan.chunks(N) {
                for (key_of, op) in keys.iter_mut().zip(part) {
                    *key_of = S::batch_key(key(op.number()));
                }
                store.increment_many(&keys[..part.len()]);
            }
        }
        Mix::Reads(_) => {
            let mut reads = [S::batch_key(0); N];
            let mut updates = [S::batch_entry(0, 0); N];
            let (mut read_count, mut update_count) = (0, 0);
            for op in plan {
                let number = op.number();
                let key = key(number);
                // Both are written and one is kept, so that nothing waits for a guess.
                reads[read_count] = S::batch_key(key);
                updates[update_count] = S::batch_entry(key, value(number, low));
                read_count += usize::from(!op.writes());
                update_count += usize::from(op.writes());
                if read_count == N {
                    store.get_many(&reads, |value| tally.add(number_of(value)));
                    read_count = 0;
                }
                if update_count == N {
                    store.put_many(&updates);
                    update_count = 0;
                }
            }
            store.get_many(&reads[..read_count], |value| tally.add(number_of(value)));
            store.put_many(&updates[..update_count]);
        }
    }
    tally
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct HashLoad {
    pub(crate) elapsed: Duration,
    /// Growth of resident memory from before the store was made to after the load.
    pub(crate) resident_bytes: Option<u64>,
    /// Resident bytes that lie on 2 MiB pages.
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

pub(crate) struct Singles;

impl<S: HashStore> CallForm<S> for Singles {
    const NAME: &'static str = S::NAME;
    const MARK: u32 = 0;
    const CALL: usize = 1;

    #[inline]
    fn work(store: &S, mix: Mix, low: u32, plan: &[Op]) -> Tally {
        store.work(mix, low, plan)
    }
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
    Box::new(StoreForm::<S, Singles>::of(Arc::new(RwLock::new(Shared::empty())), Rank::First))
}

/// Operations of which one call is timed, where calls are timed singly.
const SAMPLED: usize = 64;

/// A store that forms of it share.
pub(crate) struct Shared<S> {
    store: Option<S>,
    keys: u32,
    /// Sum of the lower halves at the last full check, and of what was added since; none once a
    /// blind update has overwritten lower halves.
    added: Option<u64>,
}

/// The rank of a form among those that share a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// It loads and checks the store for all of them.
    First,
    Further,
}

pub(crate) struct StoreForm<S, F> {
    shared: Arc<RwLock<Shared<S>>>,
    rank: Rank,
    form: PhantomData<F>,
}

impl<S: HashStore, F: CallForm<S>> StoreForm<S, F> {
    pub(crate) fn of(shared: Arc<RwLock<Shared<S>>>, rank: Rank) -> StoreForm<S, F> {
        StoreForm { shared, rank, form: PhantomData }
    }
}

impl<S: HashStore> Shared<S> {
    pub(crate) fn empty() -> Shared<S> {
        Shared { store: None, keys: 0, added: None }
    }

    fn store(&self) -> &S {
        self.store.as_ref().expect("loaded before it runs")
    }

    fn probed(&self, job: &HashJob) -> Vec<Option<u64>> {
        let _visit = Visit::begin(self.store());
        job.probes.iter().map(|&(number, _)| self.store().get(key(number))).collect()
    }

    /// Compares probes with what the job must have left there, and notes what it added.
    fn check_after(&mut self, job: &HashJob, low: u32, before: &[Option<u64>]) -> Result {
        for ((&(number, writes), before), after) in
            job.probes.iter().zip(before).zip(self.probed(job))
        {
            let expected = match job.mix {
                Mix::Reads(_) => Some(value(number, low)),
                Mix::ReadModifyWrite => before.map(|value| value + u64::from(writes)),
            };
            if after != expected {
                bail!("entry {number} holds {after:x?} after {writes} writes, not {expected:x?}");
            }
        }
        match job.mix {
            Mix::Reads(100) => {}
            Mix::Reads(_) => self.added = None,
            Mix::ReadModifyWrite => {
                self.added = self.added.map(|added| added + job.operations() as u64);
            }
        }
        Ok(())
    }
}

impl<S: HashStore + 'static, F: CallForm<S>> Engine<HashJob> for StoreForm<S, F> {
    fn name(&self) -> &str {
        F::NAME
    }

    fn run(&mut self, job: &HashJob) -> Result<Outcome> {
        let mut shared = self.shared.write();
        let before = shared.probed(job);
        let low = job.tag << 2 | F::MARK;
        let store = shared.store();
        // A quarter of the operations as reads, so that caches hold this store and not the last
        // contender's.
        run_threads(&job.plans, |plan| {
            let _visit = Visit::begin(store);
            let reads: Vec<Op> =
                plan[..plan.len() / 4].iter().map(|op| Op::read(op.number())).collect();
            std::hint::black_box(F::work(store, Mix::Reads(100), low, &reads));
        });
        let (elapsed, tallies) = run_threads(&job.plans, |plan| {
            let _visit = Visit::begin(store);
            F::work(store, job.mix, low, plan)
        });
        shared.check_after(job, low, &before)?;
        let tally = tallies.into_iter().fold(Tally::default(), Tally::merge);
        Ok(Outcome::of(job.operations(), elapsed, tally))
    }

    fn latencies(&mut self, job: &HashJob) -> Result<Option<Percentiles>> {
        let mut shared = self.shared.write();
        let before = shared.probed(job);
        let low = job.tag << 2 | F::MARK;
        let store = shared.store();
        let (_, histograms) = run_threads(&job.plans, |plan| {
            let _visit = Visit::begin(store);
            let mut histogram = new_histogram();
            for part in plan.chunks(SAMPLED) {
                let (timed, rest) = part.split_at(F::CALL.min(part.len()));
                let begin = Instant::now();
                std::hint::black_box(F::work(store, job.mix, low, timed));
                histogram.saturating_record(begin.elapsed().as_nanos() as u64);
                std::hint::black_box(F::work(store, job.mix, low, rest));
            }
            histogram
        });
        shared.check_after(job, low, &before)?;
        Percentiles::of_all(histograms).map(Some)
    }
}

impl<S: HashStore + 'static, F: CallForm<S>> HashContender for StoreForm<S, F> {
    fn load(&mut self, keys: u32) -> Result<Option<HashLoad>> {
        if self.rank != Rank::First {
            return Ok(None);
        }
        let mut shared = self.shared.write();
        shared.store = None;
        let (resident, huge) = (resident_bytes(), huge_bytes());
        let store = S::with_room(keys)?;
        let begin = Instant::now();
        {
            let _visit = Visit::begin(&store);
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
        if self.rank != Rank::First {
            return Ok(());
        }
        let mut shared = self.shared.write();
        let store = shared.store();
        let visit = Visit::begin(store);
        let mut low_sum = 0u64;
        for number in 0..shared.keys {
            let found = store.get(key(number));
            if found.map(number_of) != Some(u64::from(number)) {
                bail!("{} holds {found:x?} for entry {number}", F::NAME);
            }
            low_sum += found.unwrap_or(0) & u64::from(u32::MAX);
        }
        drop(visit);
        if let Some(added) = shared.added.filter(|&added| added != low_sum) {
            bail!("{} lost additions: {low_sum} of {added} are there", F::NAME);
        }
        shared.added = Some(low_sum);
        Ok(())
    }
}
