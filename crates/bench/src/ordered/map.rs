//! The interface of an ordered map, and a job on one, with the loop compiled for that map.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::job::{End, Kind, OrderedJob, QUEUED, Scan, ScanForm};
use super::space::{KeyBuffer, Space};
use crate::harness::*;

pub(crate) trait Value {
    fn sum(&self) -> u64;

    fn copy(&self) -> Vec<u8>;
}

impl Value for [u8] {
    #[inline]
    fn sum(&self) -> u64 {
        consume(self)
    }

    #[inline]
    fn copy(&self) -> Vec<u8> {
        self.to_vec()
    }
}

/// An ordered map under test. Sums are [`consume`]'s of every byte read.
pub(crate) trait OrderedMap: Send + Sync + Sized {
    type Value: Value + ?Sized;

    const NAME: &'static str;
    /// True if it can [`pop`](Self::pop).
    const POPS: bool = false;
    /// True if it can [`get_many`](Self::get_many).
    const BATCHES: bool = false;
    const KEY_BYTES_MAX: usize = usize::MAX;

    fn new() -> Self;

    fn put(&self, key: &[u8], value: &[u8]);

    fn put_if_absent(&self, key: &[u8], value: &[u8]);

    /// Inserts `value`, or adds one to the first 8 bytes of the value there, as a little-endian
    /// number, in place.
    fn put_if_absent_or_update(&self, key: &[u8], value: &[u8]);

    /// Reads a value where it lies.
    fn read<R>(&self, key: &[u8], read: impl FnOnce(&Self::Value) -> R) -> Option<R>;

    #[inline]
    fn get(&self, key: &[u8]) -> Option<u64> {
        self.read(key, Self::Value::sum)
    }

    #[inline]
    fn get_copy(&self, key: &[u8]) -> Option<u64> {
        self.read(key, Self::Value::copy).map(|value| consume(&value))
    }

    /// The sums of many values, read where they lie, in one call.
    fn get_many(&self, _keys: &[&[u8]]) -> Tally {
        unreachable!("it says that it cannot")
    }

    fn remove(&self, key: &[u8]);

    /// Visits as many entries as a scan has, at most, from `from` on, itself included.
    fn scan(&self, from: &[u8], scan: Scan) -> Tally;

    fn first(&self) -> Tally {
        self.scan(&[0], Scan { entries: 1, ..EVERYTHING })
    }

    /// Removes the first entry or the last one; the sum of its value.
    fn pop(&self, _end: End) -> Option<u64> {
        unreachable!("it says that it cannot")
    }

    fn accounted(&self) -> Option<Accounted> {
        None
    }
}

const EVERYTHING: Scan = Scan { form: ScanForm::Stream, descending: false, entries: usize::MAX };

#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderedLoad {
    pub(crate) elapsed: Duration,
    /// Growth of resident memory (of the heap in use, for a JVM) over the load.
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) accounted: Option<Accounted>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Accounted {
    /// Keys, values and everything that they need.
    pub(crate) used_bytes: u64,
    pub(crate) overhead_bytes: u64,
    pub(crate) free_bytes: u64,
    /// Bytes that it has moved by itself so far.
    pub(crate) moved_bytes: u64,
    pub(crate) pages: &'static str,
}

pub(crate) struct Settled {
    pub(crate) scans: usize,
    pub(crate) moved_bytes: u64,
    pub(crate) used_bytes: u64,
}

/// One participant, and what is done to it outside the rounds.
pub(crate) trait OrderedContender: Engine<OrderedJob> {
    /// True if resident memory tells what it takes although the process has freed memory at hand.
    fn maps_its_memory(&self) -> bool {
        true
    }

    fn key_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Loads the space's entries on one thread, with put_if_absent, in its order.
    fn load(&mut self, space: &Arc<Space>) -> Result<OrderedLoad>;

    /// The tally of a full scan; `None` where there is nothing to check.
    fn everything(&mut self) -> Result<Option<Tally>>;

    /// Scans everything until scans change nothing any more inside of the engine; `None` where they
    /// never do.
    fn settle(&mut self) -> Option<Settled> {
        None
    }
}

pub(crate) struct LoadedMap<E> {
    engine: E,
    space: Option<Arc<Space>>,
}

impl<E: OrderedMap> LoadedMap<E> {
    pub(crate) fn boxed() -> Box<dyn OrderedContender>
    where
        E: 'static,
    {
        Box::new(LoadedMap { engine: E::new(), space: None })
    }

    fn space(&self) -> &Arc<Space> {
        self.space.as_ref().expect("loaded before it runs")
    }
}

impl<E: OrderedMap> Engine<OrderedJob> for LoadedMap<E> {
    fn name(&self) -> &str {
        E::NAME
    }

    fn runs(&self, job: &OrderedJob) -> bool {
        match job.workload.kind {
            Kind::GetMany => E::BATCHES,
            Kind::Queue(_) => E::POPS,
            _ => true,
        }
    }

    fn run(&mut self, job: &OrderedJob) -> Result<Outcome> {
        let (space, plans) = (self.space(), plans(self.space(), job));
        if job.workload.kind.loads() {
            // What the last run gave back its host may have taken meanwhile.
            touch(space.bytes_needed());
        }
        let map = Ground::of(job, &self.engine);
        let (elapsed, tallies) = run_threads(&plans, |plan| {
            map.work(space, job.workload.kind, plan, &mut buffers(space, job.workload.kind))
        });
        let tally = tallies.into_iter().sum();
        map.check(space, job.workload.kind, &plans)?;
        let operations = plans.iter().map(Vec::len).sum();
        Ok(Outcome::of(operations, elapsed, tally))
    }

    fn latencies(&mut self, job: &OrderedJob) -> Result<Option<Percentiles>> {
        let (space, plans) = (self.space(), plans(self.space(), job));
        let map = Ground::of(job, &self.engine);
        let kind = job.workload.kind;
        let call = kind.operations_of_a_call();
        let work = |buffers: &mut Vec<KeyBuffer>, call: &[Op]| {
            std::hint::black_box(map.work(space, kind, call, buffers));
            Ok(())
        };
        let latencies = time_calls(&plans, (call, call), || buffers(space, kind), work)?;
        map.check(space, kind, &plans)?;
        Ok(Some(latencies))
    }
}

impl<E: OrderedMap> OrderedContender for LoadedMap<E> {
    fn maps_its_memory(&self) -> bool {
        self.engine.accounted().is_some()
    }

    fn key_bytes_max(&self) -> usize {
        E::KEY_BYTES_MAX
    }

    fn load(&mut self, space: &Arc<Space>) -> Result<OrderedLoad> {
        let before = resident_bytes();
        let mut buffer = space.key_buffer();
        let begin = Instant::now();
        for &number in &space.load_order {
            self.engine.put_if_absent(space.key(number, &mut buffer), space.value(number));
        }
        let elapsed = begin.elapsed();
        let after = resident_bytes();
        self.space = Some(Arc::clone(space));
        Ok(OrderedLoad {
            elapsed,
            resident_bytes: growth(before, after),
            accounted: self.engine.accounted(),
        })
    }

    fn everything(&mut self) -> Result<Option<Tally>> {
        Ok(Some(self.engine.scan(&[0], EVERYTHING)))
    }

    fn settle(&mut self) -> Option<Settled> {
        let before = self.engine.accounted()?.moved_bytes;
        let (mut last, mut scans, mut idle) = (before, 0, 0);
        loop {
            std::hint::black_box(self.engine.scan(&[0], EVERYTHING));
            scans += 1;
            let Accounted { moved_bytes, used_bytes, .. } = self.engine.accounted()?;
            idle = if moved_bytes == last { idle + 1 } else { 0 };
            last = moved_bytes;
            if idle == IDLE_SCANS || scans == SETTLING_SCANS_MAX {
                return Some(Settled { scans, moved_bytes: last - before, used_bytes });
            }
        }
    }
}

/// Scans that move nothing, after which an engine is settled ...
const IDLE_SCANS: usize = 16;
/// ... and scans after which it is taken as it is.
const SETTLING_SCANS_MAX: usize = 100;

/// The map that a job works on.
struct Ground<'a, E> {
    loaded: &'a E,
    /// A map of the job's own, for a load or a queue.
    own: Option<E>,
    /// The next key of a queue. Keys ascend.
    next: AtomicU64,
}

const QUEUED_ENTRIES: u64 = 10_000;

impl<E: OrderedMap> Ground<'_, E> {
    fn of<'a>(job: &OrderedJob, loaded: &'a E) -> Ground<'a, E> {
        let is_queue = matches!(job.workload.kind, Kind::Queue(_));
        let own = (is_queue || job.workload.kind.loads()).then(E::new);
        let ground = Ground { loaded, own, next: AtomicU64::new(0) };
        if is_queue {
            (0..QUEUED_ENTRIES).for_each(|_| ground.put_next());
        }
        ground
    }

    #[inline]
    fn map(&self) -> &E {
        self.own.as_ref().unwrap_or(self.loaded)
    }

    #[inline]
    fn put_next(&self) {
        let mut key = [0; 16];
        // Relaxed: each number is taken once, and that is all it says.
        key[8..].copy_from_slice(&self.next.fetch_add(1, Relaxed).to_be_bytes());
        self.map().put(&key, &QUEUED);
    }

    #[inline]
    fn work(&self, space: &Space, kind: Kind, plan: &[Op], buffers: &mut [KeyBuffer]) -> Tally {
        let Kind::Queue(end) = kind else {
            return work(self.map(), space, kind, plan, buffers);
        };
        let mut tally = Tally::default();
        for _ in plan {
            self.put_next();
            tally.add(self.map().pop(end).expect("as many were put as popped, and more"));
        }
        tally
    }

    /// Compares what the plans have left behind with what they must have, and puts the loaded map
    /// back.
    fn check(&self, space: &Space, kind: Kind, plans: &[Vec<Op>]) -> Result {
        if !kind.loads() {
            return restore(self.map(), space, kind, plans);
        }
        let (found, expected) = (self.map().scan(&[0], EVERYTHING), space.everything());
        if found != expected {
            bail!("it holds {found} after a load, not {expected}");
        }
        Ok(())
    }
}

fn plans(space: &Space, job: &OrderedJob) -> Vec<Vec<Op>> {
    (0..job.threads).map(|thread| job.plan(space, thread)).collect()
}

fn buffers(space: &Space, kind: Kind) -> Vec<KeyBuffer> {
    (0..kind.operations_of_a_call()).map(|_| space.key_buffer()).collect()
}

#[inline]
fn work<E: OrderedMap>(
    engine: &E,
    space: &Space,
    kind: Kind,
    plan: &[Op],
    buffers: &mut [KeyBuffer],
) -> Tally {
    if kind == Kind::GetMany {
        return plan.chunks(buffers.len()).fold(Tally::default(), |tally, ops| {
            let keyed = ops.iter().zip(&mut *buffers);
            let keys: Vec<&[u8]> =
                keyed.map(|(op, buffer)| space.key(op.number(), buffer)).collect();
            tally.merge(engine.get_many(&keys))
        });
    }
    let buffer = &mut buffers[0];
    match kind {
        Kind::Get => each(space, plan, buffer, |_, key| engine.get(key)),
        Kind::GetCopy => each(space, plan, buffer, |_, key| engine.get_copy(key)),
        Kind::Mixed => each(space, plan, buffer, |op, key| {
            if op.writes() {
                engine.put(key, space.value(op.number()));
                return None;
            }
            engine.get(key)
        }),
        Kind::PutIfAbsentOrUpdate | Kind::UpdateZipf => {
            write(space, plan, buffer, |key, value| engine.put_if_absent_or_update(key, value))
        }
        Kind::Put => write(space, plan, buffer, |key, value| engine.put(key, value)),
        Kind::Load { .. } => {
            write(space, plan, buffer, |key, value| engine.put_if_absent(key, value))
        }
        Kind::First => plan.iter().fold(Tally::default(), |tally, _| tally.merge(engine.first())),
        Kind::Scan(scan) => {
            let scan = Scan { entries: space.scan_entries(scan.entries), ..scan };
            plan.iter().fold(Tally::default(), |tally, op| {
                let number = space.in_order[op.number() as usize];
                tally.merge(engine.scan(space.key(number, buffer), scan))
            })
        }
        Kind::GetMany | Kind::Queue(_) => unreachable!("they have loops of their own"),
    }
}

#[inline]
fn each(
    space: &Space,
    plan: &[Op],
    buffer: &mut KeyBuffer,
    work: impl Fn(Op, &[u8]) -> Option<u64>,
) -> Tally {
    let mut tally = Tally::default();
    for op in plan {
        if let Some(sum) = work(*op, space.key(op.number(), buffer)) {
            tally.add(sum);
        }
    }
    tally
}

#[inline]
fn write(space: &Space, plan: &[Op], buffer: &mut KeyBuffer, put: impl Fn(&[u8], &[u8])) -> Tally {
    plan.iter().for_each(|op| put(space.key(op.number(), buffer), space.value(op.number())));
    Tally::default()
}

/// Checks each value that the plans wrote, then removes what they inserted and undoes updates, so
/// that every run of every engine finds the same half of the range.
fn restore<E: OrderedMap>(engine: &E, space: &Space, kind: Kind, plans: &[Vec<Op>]) -> Result {
    // What a run leaves behind; others change nothing.
    if !matches!(kind, Kind::Mixed | Kind::PutIfAbsentOrUpdate | Kind::Put | Kind::UpdateZipf) {
        return Ok(());
    }
    let mut writes = BTreeMap::<u32, u64>::new();
    for op in plans.iter().flatten().filter(|op| op.writes()) {
        *writes.entry(op.number()).or_default() += 1;
    }
    let mut buffer = space.key_buffer();
    for (number, times) in writes {
        let loaded = space.loaded[number as usize];
        let value = space.value(number);
        let key = space.key(number, &mut buffer);
        let updates = match kind {
            Kind::PutIfAbsentOrUpdate | Kind::UpdateZipf if loaded => times,
            Kind::PutIfAbsentOrUpdate => times - 1,
            _ => 0,
        };
        // An update adds one to the first word.
        let expected = consume(value).wrapping_add(updates);
        let found = engine.get(key);
        if found != Some(expected) {
            bail!("value {number} sums to {found:?} afterwards, not {expected}");
        }
        if !loaded {
            engine.remove(key);
        } else if updates > 0 {
            engine.put(key, value);
        }
    }
    Ok(())
}
