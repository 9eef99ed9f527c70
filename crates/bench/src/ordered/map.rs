//! The interface of an ordered map, and a job on one, with the loop compiled for that map.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::job::{End, KeyOp, Kind, OrderedJob, QUEUED, ScanForm};
use super::space::{KeyBuffer, Space};
use crate::Error;
use crate::harness::consume::consume;
use crate::harness::rounds::{Engine, Outcome, run_threads};
use crate::harness::sample::{Percentiles, new_histogram};
use crate::harness::system::{growth, resident_bytes, touch};
use crate::harness::tally::Tally;

/// An ordered map under test. Sums are [`consume`]'s of every byte read.
pub(crate) trait OrderedMap: Send + Sync + Sized {
    const NAME: &'static str;
    /// True if it can [`pop`](Self::pop).
    const POPS: bool = false;
    /// True if it can [`get_many`](Self::get_many).
    const BATCHES: bool = false;
    /// Most bytes of a key.
    const KEY_BYTES_MAX: usize = usize::MAX;

    fn new() -> Self;

    fn put(&self, key: &[u8], value: &[u8]);

    fn put_if_absent(&self, key: &[u8], value: &[u8]);

    /// Inserts `value`, or adds one to the first 8 bytes of the value there, as a little-endian
    /// number, in place.
    fn put_if_absent_or_update(&self, key: &[u8], value: &[u8]);

    /// The value's sum, read where it lies.
    fn get(&self, key: &[u8]) -> Option<u64>;

    /// The sum of a copy of the value.
    fn get_copy(&self, key: &[u8]) -> Option<u64>;

    /// The sums of many values, read where they lie, in one call.
    fn get_many(&self, _keys: &[&[u8]]) -> Tally {
        unreachable!("it says that it cannot")
    }

    fn remove(&self, key: &[u8]) -> bool;

    /// Visits `limit` entries at most from `from` on, itself included.
    fn ascend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally;

    fn descend(&self, from: &[u8], limit: usize, form: ScanForm) -> Tally;

    /// The first entry, or none.
    fn first(&self) -> Tally {
        self.ascend(&[0], 1, ScanForm::Stream)
    }

    /// Removes the first entry or the last one; the sum of its value.
    fn pop(&self, _end: End) -> Option<u64> {
        unreachable!("it says that it cannot")
    }

    fn accounted(&self) -> Option<Accounted> {
        None
    }

    /// Bytes that it has moved by itself so far, if it does.
    fn moved_bytes(&self) -> Option<u64> {
        None
    }

    /// True if it maps its memory itself, so that resident memory grows by what it takes even
    /// where the process has freed memory at hand.
    fn maps_its_memory(&self) -> bool {
        false
    }
}

/// Figures of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderedLoad {
    pub(crate) elapsed: Duration,
    /// Growth of resident memory (of the heap in use, for a JVM) over the load.
    pub(crate) resident_bytes: Option<u64>,
    /// Bytes by the engine's own account, if it keeps one.
    pub(crate) accounted: Option<Accounted>,
}

/// Bytes by an engine's own account.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accounted {
    /// Keys, values and everything that they need.
    pub(crate) used_bytes: u64,
    pub(crate) overhead_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) pages: &'static str,
}

/// The effect on an engine of scans of everything, before scans are timed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settled {
    pub(crate) scans: usize,
    /// Bytes that they moved inside of the engine.
    pub(crate) moved_bytes: u64,
    pub(crate) accounted: Option<Accounted>,
}

/// One participant, and what is done to it outside the rounds.
pub(crate) trait OrderedContender: Engine<OrderedJob> {
    /// True if resident memory tells what it takes although the process has freed memory at hand.
    fn maps_its_memory(&self) -> bool;

    /// Most bytes of a key that it takes.
    fn key_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Loads the space's entries on one thread, with put_if_absent, in its order.
    fn load(&mut self, space: &Arc<Space>) -> Result<OrderedLoad, Error>;

    /// The tally of a full scan; `None` where there is nothing to check.
    fn everything(&mut self) -> Result<Option<Tally>, Error>;

    /// Scans everything until scans change nothing any more inside of the engine; `None` where they
    /// never do.
    fn settle(&mut self) -> Option<Settled> {
        None
    }
}

/// An engine and the space that it was loaded from.
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

    fn run(&mut self, job: &OrderedJob) -> Result<Outcome, Error> {
        let (space, plans) = (self.space(), plans(self.space(), job));
        if job.workload.kind.loads() {
            // What the last run gave back its host may have taken meanwhile.
            touch(space.bytes_needed());
        }
        let map = Map::of(job, &self.engine);
        let (elapsed, tallies) = run_threads(&plans, |plan| {
            map.work(space, job.workload.kind, plan, &mut buffers(space, job.workload.kind))
        });
        let tally = tallies.into_iter().fold(Tally::default(), Tally::merge);
        map.check(space, job.workload.kind, &plans)?;
        let operations = plans.iter().map(Vec::len).sum();
        Ok(Outcome::of(operations, elapsed, tally))
    }

    fn latencies(&mut self, job: &OrderedJob) -> Result<Option<Percentiles>, Error> {
        let (space, plans) = (self.space(), plans(self.space(), job));
        let map = Map::of(job, &self.engine);
        let (_, histograms) = run_threads(&plans, |plan| {
            let mut histogram = new_histogram();
            let mut buffers = buffers(space, job.workload.kind);
            for call in plan.chunks(job.workload.kind.operations_of_a_call()) {
                let begin = Instant::now();
                std::hint::black_box(map.work(space, job.workload.kind, call, &mut buffers));
                histogram.saturating_record(begin.elapsed().as_nanos() as u64);
            }
            histogram
        });
        map.check(space, job.workload.kind, &plans)?;
        Percentiles::of_all(histograms).map(Some)
    }
}

impl<E: OrderedMap> OrderedContender for LoadedMap<E> {
    fn maps_its_memory(&self) -> bool {
        self.engine.maps_its_memory()
    }

    fn key_bytes_max(&self) -> usize {
        E::KEY_BYTES_MAX
    }

    fn load(&mut self, space: &Arc<Space>) -> Result<OrderedLoad, Error> {
        let before = resident_bytes();
        let mut buffer = space.key_buffer();
        let begin = Instant::now();
        for &number in space.load_order() {
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

    fn everything(&mut self) -> Result<Option<Tally>, Error> {
        Ok(Some(self.engine.ascend(&[0], usize::MAX, ScanForm::Stream)))
    }

    fn settle(&mut self) -> Option<Settled> {
        let before = self.engine.moved_bytes()?;
        let (mut moved, mut scans, mut idle) = (before, 0, 0);
        while idle < IDLE_SCANS && scans < SETTLING_SCANS_MAX {
            std::hint::black_box(self.engine.ascend(&[0], usize::MAX, ScanForm::Stream));
            scans += 1;
            let now = self.engine.moved_bytes()?;
            idle = if now == moved { idle + 1 } else { 0 };
            moved = now;
        }
        Some(Settled { scans, moved_bytes: moved - before, accounted: self.engine.accounted() })
    }
}

/// Scans that move nothing, after which an engine is settled ...
const IDLE_SCANS: usize = 16;
/// ... and scans after which it is taken as it is.
const SETTLING_SCANS_MAX: usize = 100;

/// The map that a job works on.
enum Map<'a, E> {
    Loaded(&'a E),
    /// A map of the job's own, empty at first.
    Empty(E),
    Queue(Queue<E>),
}

impl<E: OrderedMap> Map<'_, E> {
    fn of<'a>(job: &OrderedJob, loaded: &'a E) -> Map<'a, E> {
        match job.workload.kind {
            Kind::Queue(end) => Map::Queue(Queue::popped_at(end)),
            Kind::Load { .. } => Map::Empty(E::new()),
            _ => Map::Loaded(loaded),
        }
    }

    #[inline]
    fn work(&self, space: &Space, kind: Kind, plan: &[KeyOp], buffers: &mut [KeyBuffer]) -> Tally {
        match self {
            Map::Loaded(engine) => work(*engine, space, kind, plan, buffers),
            Map::Empty(engine) => work(engine, space, kind, plan, buffers),
            Map::Queue(queue) => queue.work(plan),
        }
    }

    /// Compares what the plans have left behind with what they must have, and puts the loaded map
    /// back.
    fn check(&self, space: &Space, kind: Kind, plans: &[Vec<KeyOp>]) -> Result<(), Error> {
        match self {
            Map::Loaded(engine) => restore(*engine, space, kind, plans),
            Map::Empty(engine) => {
                let (found, expected) =
                    (engine.ascend(&[0], usize::MAX, ScanForm::Stream), space.everything());
                if found != expected {
                    return Err(format!("it holds {found} after a load, not {expected}").into());
                }
                Ok(())
            }
            Map::Queue(_) => Ok(()),
        }
    }
}

/// Entries of a queue while it is worked on.
const QUEUED_ENTRIES: u64 = 10_000;

/// A map of its own that threads put into and pop from. Keys ascend.
struct Queue<E> {
    engine: E,
    end: End,
    next: AtomicU64,
}

impl<E: OrderedMap> Queue<E> {
    fn popped_at(end: End) -> Queue<E> {
        let queue = Queue { engine: E::new(), end, next: AtomicU64::new(0) };
        (0..QUEUED_ENTRIES).for_each(|_| queue.put());
        queue
    }

    #[inline]
    fn put(&self) {
        let mut key = [0; 16];
        // Relaxed: each number is taken once, and that is all it says.
        key[8..].copy_from_slice(&self.next.fetch_add(1, Relaxed).to_be_bytes());
        self.engine.put(&key, &QUEUED);
    }

    #[inline]
    fn work(&self, plan: &[KeyOp]) -> Tally {
        let mut tally = Tally::default();
        for _ in plan {
            self.put();
            tally.add(self.engine.pop(self.end).expect("as many were put as popped, and more"));
        }
        tally
    }
}

fn plans(space: &Space, job: &OrderedJob) -> Vec<Vec<KeyOp>> {
    (0..job.threads).map(|thread| job.plan(space, thread)).collect()
}

/// Room for the keys of a call.
fn buffers(space: &Space, kind: Kind) -> Vec<KeyBuffer> {
    (0..kind.operations_of_a_call()).map(|_| space.key_buffer()).collect()
}

#[inline]
fn work<E: OrderedMap>(
    engine: &E,
    space: &Space,
    kind: Kind,
    plan: &[KeyOp],
    buffers: &mut [KeyBuffer],
) -> Tally {
    let buffer = &mut buffers[0];
    let mut tally = Tally::default();
    match kind {
        Kind::Get => {
            for op in plan {
                get(engine, space, *op, buffer, &mut tally);
            }
        }
        Kind::GetCopy => {
            for op in plan {
                if let Some(sum) = engine.get_copy(space.key(op.number(), buffer)) {
                    tally.add(sum);
                }
            }
        }
        Kind::GetMany => {
            for ops in plan.chunks(buffers.len()) {
                let keyed = ops.iter().zip(&mut *buffers);
                let keys: Vec<&[u8]> =
                    keyed.map(|(op, buffer)| space.key(op.number(), buffer)).collect();
                tally = tally.merge(engine.get_many(&keys));
            }
        }
        Kind::Mixed => {
            for op in plan {
                if op.writes() {
                    engine.put(space.key(op.number(), buffer), space.value(op.number()));
                } else {
                    get(engine, space, *op, buffer, &mut tally);
                }
            }
        }
        Kind::PutIfAbsentOrUpdate | Kind::UpdateZipf => {
            for op in plan {
                engine.put_if_absent_or_update(
                    space.key(op.number(), buffer),
                    space.value(op.number()),
                );
            }
        }
        Kind::Put => {
            for op in plan {
                engine.put(space.key(op.number(), buffer), space.value(op.number()));
            }
        }
        Kind::Load { .. } => {
            for op in plan {
                engine.put_if_absent(space.key(op.number(), buffer), space.value(op.number()));
            }
        }
        Kind::First => {
            for _ in plan {
                tally = tally.merge(engine.first());
            }
        }
        Kind::Queue(_) => unreachable!("queues are maps of their own"),
        Kind::Scan(scan) => {
            let entries = space.scan_entries(scan.entries);
            for op in plan {
                let number = space.loaded_in_order()[op.number() as usize];
                let from = space.key(number, buffer);
                tally = tally.merge(if scan.descending {
                    engine.descend(from, entries, scan.form)
                } else {
                    engine.ascend(from, entries, scan.form)
                });
            }
        }
    }
    tally
}

#[inline]
fn get<E: OrderedMap>(
    engine: &E,
    space: &Space,
    op: KeyOp,
    buffer: &mut KeyBuffer,
    tally: &mut Tally,
) {
    if let Some(sum) = engine.get(space.key(op.number(), buffer)) {
        tally.add(sum);
    }
}

/// Checks each value that the plans wrote, then removes what they inserted and undoes updates, so
/// that every run of every engine finds the same half of the range.
fn restore<E: OrderedMap>(
    engine: &E,
    space: &Space,
    kind: Kind,
    plans: &[Vec<KeyOp>],
) -> Result<(), Error> {
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
        let loaded = space.is_loaded(number);
        let value = space.value(number);
        let key = space.key(number, &mut buffer);
        let updates = match kind {
            Kind::PutIfAbsentOrUpdate | Kind::UpdateZipf if loaded => times,
            Kind::PutIfAbsentOrUpdate => times - 1,
            _ => 0,
        };
        let expected = sum_after(value, updates);
        let found = engine.get(key);
        if found != Some(expected) {
            return Err(
                format!("value {number} sums to {found:?} afterwards, not {expected}").into()
            );
        }
        if !loaded {
            engine.remove(key);
        } else if updates > 0 {
            engine.put(key, value);
        }
    }
    Ok(())
}

/// The sum of `value` after `updates` additions of one to its first word.
fn sum_after(value: &[u8], updates: u64) -> u64 {
    consume(value).wrapping_add(updates)
}
