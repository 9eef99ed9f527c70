//! An engine's turn in a round: it runs the workloads one after the other, each pair of inserts and
//! removes on an empty folder of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::store::{CommitLevel, TreeEngine, TreeEntry, TreePhase, TreePlace, TreeStore, Writers};
use crate::harness::*;

/// One sync of the disk: the least cost of a durable commit that shares it with none.
pub(crate) const FLOOR: &str = "floor-fdatasync";
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Order {
    /// All 64 bits drawn at random
    Random,
    /// 0, 1, 2 ...
    Sequential,
}

#[derive(Clone)]
pub(crate) struct TreeJob {
    round: usize,
    order: Order,
    entries: Arc<Entries>,
    phases: Vec<&'static str>,
    writers: Vec<usize>,
    ops: usize,
    syncs: usize,
    dir: PathBuf,
}

impl TreeJob {
    pub(crate) fn new(plan: &Plan, order: Order, ops: usize, syncs: usize) -> TreeJob {
        TreeJob {
            round: 0,
            order,
            entries: Arc::new(Entries::new(order, plan.size())),
            phases: plan.workloads.clone(),
            writers: plan.threads.clone(),
            ops,
            syncs: syncs.min(plan.size()),
            dir: plan.dir.clone(),
        }
    }

    pub(crate) fn in_round(&self, round: usize) -> TreeJob {
        TreeJob { round, ..self.clone() }
    }

    fn has(&self, phases: &[&str]) -> bool {
        phases.iter().any(|phase| self.phases.contains(phase))
    }

    fn workload_of(&self, phase: &str) -> String {
        format!("{phase} {}", self.order.name())
    }
}

impl Job for TreeJob {
    fn workload(&self) -> String {
        self.workload_of("all workloads")
    }
}

pub(crate) struct SyncFloor;

impl Engine<TreeJob> for SyncFloor {
    fn name(&self) -> &str {
        FLOOR
    }

    fn run(&mut self, job: &TreeJob) -> Result<Outcome> {
        let folder = Folder::new(&job.dir, FLOOR)?;
        let (_, elapsed) = sync_pages(folder.path(), job.syncs, |count, _| count < job.syncs)?;
        let figure = Figure::rate(job.syncs, elapsed).of(job.workload_of("sync"));
        Ok(Outcome::from(vec![figure]))
    }
}

pub(crate) struct TreeContender(pub(crate) TreeEngine);

impl Engine<TreeJob> for TreeContender {
    fn name(&self) -> &str {
        self.0.name
    }

    fn run(&mut self, job: &TreeJob) -> Result<Outcome> {
        let mut turn = Turn { job, engine: &self.0, outcome: Outcome::default() };
        if job.has(&["insert-each", "remove-each"]) {
            turn.each()?;
        }
        if job.has(&["insert-together", "get", "iterate", "remove-together"]) {
            turn.together()?;
        }
        let writers = job.writers.iter().filter(|_| job.has(&["sync"]));
        writers.copied().try_for_each(|writers| turn.sync(writers))?;
        if job.has(&["recover"]) {
            turn.recover()?;
        }
        // Once: the larger tree takes ten times as long.
        if job.has(&["remove-tenfold"]) && job.round == 0 && is_ours(self.0.name) {
            turn.tenfold()?;
        }
        Ok(turn.outcome)
    }
}

struct Turn<'j> {
    job: &'j TreeJob,
    engine: &'j TreeEngine,
    outcome: Outcome,
}

impl Turn<'_> {
    /// Runs with a transaction each: inserts into an empty tree, and removes until it is empty.
    fn each(&mut self) -> Result {
        let (entries, ops) = (Arc::clone(&self.job.entries), self.job.ops);
        let inserted = &entries.inserted[..ops];
        // The taken ones are those that were inserted, where not all are.
        let removed = if ops == entries.taken.len() { &entries.taken[..] } else { inserted };
        let (_folder, mut store) = self.open(CommitLevel::Buffered)?;
        let log = store.log_position()?;
        let begin = Instant::now();
        store.insert_each(inserted)?;
        self.rate("insert-each", inserted.len(), took(&*store, begin));
        let full = store.log_position()?;
        self.log("insert-each", log, full, inserted.len());
        check_contents(&*store, inserted)?;
        self.read("remove-each", removed, &mut *store, TreeStore::remove_each)?;
        self.log("remove-each", full, store.log_position()?, removed.len());
        check_contents(&*store, &[])
    }

    /// Runs with one transaction around all inserts, and one around all removes; reads between
    /// them.
    fn together(&mut self) -> Result {
        let entries = Arc::clone(&self.job.entries);
        let Entries { inserted, taken } = &*entries;
        let (folder, mut store) = self.open(CommitLevel::Buffered)?;
        let log = store.log_position()?;
        let begin = Instant::now();
        store.insert_all(inserted)?;
        self.rate("insert-together", inserted.len(), took(&*store, begin));
        self.log("insert-together", log, store.log_position()?, inserted.len());
        let bytes = store.bytes().map_or_else(|| folder.bytes(), |bytes| Ok(Some(bytes)))?;
        if let Some(bytes) = bytes {
            let per_entry = Figure::new(bytes as f64 / inserted.len() as f64);
            self.figure("insert-together", per_entry.unit(&BYTES_OF_ENTRY));
        }

        self.read("get", taken, &mut *store, |store, entries, read| store.get_all(entries, read))?;

        let mut tally = Tally::default();
        let (mut is_ordered, mut last) = (true, None);
        let begin = Instant::now();
        store.iterate(&mut |key, value| {
            let key = number_of_key(key);
            is_ordered &= last < Some(key);
            last = Some(key);
            tally.add(number(value));
        })?;
        self.rate("iterate", inserted.len(), took(&*store, begin));
        check("walked over", tally, values(inserted))?;
        if !is_ordered {
            bail!("keys do not ascend");
        }

        let most = self.most(&*store, TreePhase::RemoveTogether, taken.len());
        let (removed, left) = taken.split_at(most);
        self.read("remove-together", removed, &mut *store, TreeStore::remove_all)?;
        check_contents(&*store, left)
    }

    /// Times work that tells a value for each entry: it must be its own.
    fn read(
        &mut self,
        phase: &str,
        entries: &[TreeEntry],
        store: &mut Store,
        work: impl FnOnce(&mut Store, &[TreeEntry], &mut dyn FnMut(&[u8])) -> Result,
    ) -> Result {
        let mut tally = Tally::default();
        let begin = Instant::now();
        work(store, entries, &mut |value| tally.add(number(value)))?;
        self.rate(phase, entries.len(), took(store, begin));
        check(phase, tally, values(entries))
    }

    fn sync(&mut self, writers: usize) -> Result {
        let entries = Arc::clone(&self.job.entries);
        let (_folder, store) = self.open(CommitLevel::Sync)?;
        let Some(shared) = store.writers() else { return Ok(()) };
        let inserted = &entries.inserted[..self.most(&*store, TreePhase::Sync, self.job.syncs)];
        let parts: Vec<&[TreeEntry]> = inserted.chunks(inserted.len().div_ceil(writers)).collect();
        let insert =
            |part: &&[TreeEntry]| part.iter().try_for_each(|entry| Writers::insert(shared, entry));
        let (elapsed, results) = run_threads(&parts, insert);
        results.into_iter().collect::<Result<Vec<()>>>()?;
        self.figure("sync", Figure::rate(inserted.len(), elapsed).on(writers));
        check_contents(&*store, inserted)
    }

    fn recover(&mut self) -> Result {
        let Some(recover) = self.engine.recover else { return Ok(()) };
        let folder = Folder::new(&self.job.dir, self.engine.name)?;
        let inserted = &self.job.entries.inserted[..self.job.ops];
        let place = self.place(&folder, CommitLevel::Buffered, inserted.len());
        let found = recover(&place, inserted)?;
        if found.entries != inserted.len() as u64 {
            bail!("{} of {} entries came back", found.entries, inserted.len());
        }
        self.rate("recover", inserted.len(), found.elapsed);
        let bytes = Figure::rate(found.log_bytes as usize, found.elapsed);
        self.figure("recover", bytes.unit(&LOG_BYTES_A_SECOND));
        Ok(())
    }

    /// Removes in one transaction from a tree ten times as large: they cost no more each, but for
    /// caches, if their cost is linear.
    fn tenfold(&mut self) -> Result {
        let count = self.job.entries.inserted.len() * 10;
        let Entries { inserted, taken } = Entries::new(self.job.order, count);
        let folder = Folder::new(&self.job.dir, self.engine.name)?;
        let mut store = (self.engine.open)(&self.place(&folder, CommitLevel::Buffered, count))?;
        store.insert_all(&inserted)?;
        self.read("remove-tenfold", &taken, &mut *store, TreeStore::remove_all)
    }

    fn place(&self, folder: &Folder, level: CommitLevel, keys: usize) -> TreePlace {
        TreePlace { dir: folder.path().to_owned(), level, keys }
    }

    fn open(&self, level: CommitLevel) -> Result<(Folder, Box<dyn TreeStore>)> {
        let folder = Folder::new(&self.job.dir, self.engine.name)?;
        let keys = self.job.entries.inserted.len();
        let store = (self.engine.open)(&self.place(&folder, level, keys))?;
        Ok((folder, store))
    }

    /// The operations of a workload that the store does; a sentence tells of the others.
    fn most(&mut self, store: &dyn TreeStore, phase: TreePhase, wanted: usize) -> usize {
        let Some(limit) = store.limit(phase).filter(|limit| limit.most < wanted) else {
            return wanted;
        };
        let name = match phase {
            TreePhase::Sync => "sync",
            TreePhase::RemoveTogether => "remove-together",
        };
        if self.job.has(&[name]) {
            self.outcome.left_out.push(format!(
                "{}, {name}: all but {} of {wanted} operations: {}",
                self.engine.name, limit.most, limit.why
            ));
        }
        limit.most
    }

    fn figure(&mut self, phase: &str, figure: Figure) {
        if self.job.has(&[phase]) {
            self.outcome.figures.push(figure.of(self.job.workload_of(phase)));
        }
    }

    fn rate(&mut self, phase: &str, operations: usize, elapsed: Duration) {
        self.figure(phase, Figure::rate(operations, elapsed));
    }

    /// Notes the bytes of the log for an operation, where the store knows them.
    fn log(&mut self, phase: &str, begin: Option<u64>, end: Option<u64>, count: usize) {
        if let Some((begin, end)) = begin.zip(end) {
            let bytes = end.saturating_sub(begin) as f64 / count as f64;
            self.figure(phase, Figure::new(bytes).unit(&LOG_BYTES));
        }
    }
}

/// The time since `begin`, or of the last call alone where the store knows it.
fn took(store: &dyn TreeStore, begin: Instant) -> Duration {
    let elapsed = begin.elapsed();
    store.elapsed().unwrap_or(elapsed)
}

/// A value as a number; one of another length is that of no key.
#[inline]
fn number(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_le_bytes)
}

#[inline]
fn number_of_key(key: &[u8]) -> u64 {
    key.try_into().map_or(0, u64::from_be_bytes)
}

fn values(entries: &[TreeEntry]) -> Tally {
    let mut tally = Tally::default();
    entries.iter().for_each(|(_, value)| tally.add(number(value)));
    tally
}

/// Compares both keys and values, so that a value under another key is seen.
fn check_contents(store: &dyn TreeStore, entries: &[TreeEntry]) -> Result {
    let pair = |key: &[u8], value: &[u8]| number_of_key(key).rotate_left(7) ^ number(value);
    let mut expected = Tally::default();
    entries.iter().for_each(|(key, value)| expected.add(pair(key, value)));
    let mut found = Tally::default();
    store.iterate(&mut |key, value| found.add(pair(key, value)))?;
    check("held", found, expected)
}

fn check(what: &str, found: Tally, expected: Tally) -> Result {
    if found != expected {
        bail!("{what}: {found}, not {expected}");
    }
    Ok(())
}

type Store = dyn TreeStore;

struct Entries {
    inserted: Vec<TreeEntry>,
    /// Inserted entries, in an order of their own if those have none, for look-ups
    /// and removes.
    taken: Vec<TreeEntry>,
}

impl Entries {
    fn new(order: Order, count: usize) -> Entries {
        let mut random = Random::new(0x7265_6573);
        let inserted: Vec<TreeEntry> = (0..count as u64)
            .map(|number| match order {
                // Words of the stream do not repeat: each is its state, mixed one to one.
                Order::Random => entry(random.next()),
                Order::Sequential => entry(number),
            })
            .collect();
        let mut taken = inserted.clone();
        if order == Order::Random {
            random.shuffle(&mut taken);
        }
        Entries { inserted, taken }
    }
}

/// An entry whose key compares as its number does. A value is made of its key, and is never the key
/// itself.
fn entry(number: u64) -> TreeEntry {
    (number.to_be_bytes(), number.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_come_back_in_another_order() {
        let Entries { mut inserted, mut taken } = Entries::new(Order::Random, 1_000);
        assert_ne!(inserted, taken);
        inserted.sort_unstable();
        taken.sort_unstable();
        assert_eq!(inserted, taken);
        assert!(inserted.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let Entries { inserted, .. } = Entries::new(Order::Sequential, 300);
        assert_eq!(inserted[0].0, [0; 8]);
        assert!(inserted.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
