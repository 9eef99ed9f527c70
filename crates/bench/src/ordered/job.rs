//! The workloads: the timed operations, and the keys of each.

use super::space::Space;
use crate::harness::*;

/// Entries that a long scan visits, as in Oak's evaluation.
const SCAN_ENTRIES: usize = 10_000;
/// Writes in a hundred operations of the mixed workload.
const MIXED_WRITES_PERCENT: u64 = 5;
const KEYS_OF_A_CALL: usize = 64;

/// The value of each entry of a queue.
pub(crate) const QUEUED: [u8; 100] = [7; 100];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderedWorkload {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Seeds of keys have it.
    number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    GetCopy,
    GetMany,
    Mixed,
    PutIfAbsentOrUpdate,
    Put,
    UpdateZipf,
    /// All entries are put into an empty map, in the order of their keys or against it.
    Load {
        descending: bool,
    },
    Scan(Scan),
    First,
    /// A put, and a pop at one end of a queue.
    Queue(End),
}

/// An end of a queue whose entries are put in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scan {
    pub(crate) form: ScanForm,
    pub(crate) descending: bool,
    pub(crate) entries: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanForm {
    Stream,
    Iterator,
    Keys,
}

const fn scan(form: ScanForm, descending: bool, entries: usize) -> Kind {
    Kind::Scan(Scan { form, descending, entries })
}

const KINDS: [(&str, Kind); 21] = [
    ("get-zero-copy", Kind::Get),
    ("get-copy", Kind::GetCopy),
    ("get-many", Kind::GetMany),
    ("scan-ascending-stream", scan(ScanForm::Stream, false, SCAN_ENTRIES)),
    ("scan-ascending-iterator", scan(ScanForm::Iterator, false, SCAN_ENTRIES)),
    ("scan-descending-stream", scan(ScanForm::Stream, true, SCAN_ENTRIES)),
    ("scan-descending-iterator", scan(ScanForm::Iterator, true, SCAN_ENTRIES)),
    ("scan-ascending-keys", scan(ScanForm::Keys, false, SCAN_ENTRIES)),
    ("scan-descending-keys", scan(ScanForm::Keys, true, SCAN_ENTRIES)),
    ("scan-1", scan(ScanForm::Stream, false, 1)),
    ("scan-10", scan(ScanForm::Stream, false, 10)),
    ("scan-100", scan(ScanForm::Stream, false, 100)),
    ("first", Kind::First),
    ("fifo", Kind::Queue(End::First)),
    ("lifo", Kind::Queue(End::Last)),
    ("load-ascending", Kind::Load { descending: false }),
    ("load-descending", Kind::Load { descending: true }),
    ("get-95-put-5", Kind::Mixed),
    ("update-zipf", Kind::UpdateZipf),
    ("put-if-absent-or-update", Kind::PutIfAbsentOrUpdate),
    ("put", Kind::Put),
];

pub(crate) const NAMES: [&str; KINDS.len()] = names(&KINDS);

impl OrderedWorkload {
    pub(crate) fn named(name: &str) -> Option<OrderedWorkload> {
        let at = KINDS.iter().position(|(known, _)| *known == name)?;
        Some(OrderedWorkload { name: KINDS[at].0, kind: KINDS[at].1, number: at as u64 })
    }
}

impl Scan {
    /// False for a scan of few entries, of which a run has as many as of point operations.
    pub(crate) fn is_long(self) -> bool {
        self.entries == SCAN_ENTRIES
    }
}

impl Kind {
    pub(crate) fn operations_of_a_call(self) -> usize {
        if self == Kind::GetMany { KEYS_OF_A_CALL } else { 1 }
    }

    pub(crate) fn loads(self) -> bool {
        matches!(self, Kind::Load { .. })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct OrderedJob {
    pub(crate) workload: OrderedWorkload,
    pub(crate) threads: usize,
    pub(crate) ops: usize,
    pub(crate) seed: u64,
    pub(crate) expected: Option<Tally>,
}

impl OrderedJob {
    pub(crate) fn new(
        workload: OrderedWorkload,
        threads: usize,
        ops: usize,
        round: usize,
    ) -> OrderedJob {
        let seed = (workload.number << 24) | ((threads as u64) << 16) | round as u64;
        OrderedJob { workload, threads, ops, seed, expected: None }
    }
}

impl Job for OrderedJob {
    fn workload(&self) -> String {
        self.workload.name.to_owned()
    }

    fn unit(&self) -> &'static Unit {
        if matches!(self.workload.kind, Kind::Scan(_)) { &SCANS } else { &OPERATIONS }
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn expected(&self) -> Option<Tally> {
        self.expected
    }
}

impl OrderedJob {
    /// The operations of one thread, drawn before the clock starts: numbers of keys, or first ranks
    /// of scans.
    ///
    /// Gets draw from the loaded keys, so that each reads a value; writes draw from the whole
    /// range, so that half of them insert, but for skewed updates, which draw from the loaded keys;
    /// scans begin where all their entries are ahead; threads that load take every so manieth key.
    pub(crate) fn plan(&self, space: &Space, thread: usize) -> Vec<Op> {
        let seed = self.seed.wrapping_add((thread as u64) << 32);
        let mut random = Random::new(seed);
        let loaded = &space.in_order;
        let mut repeat = |op: &mut dyn FnMut(&mut Random) -> Op| -> Vec<Op> {
            (0..self.ops).map(|_| op(&mut random)).collect()
        };
        let of_loaded = |random: &mut Random| {
            Op::new(loaded[random.below(loaded.len() as u32) as usize], false)
        };
        let written = |random: &mut Random| Op::new(random.below(space.range), true);
        match self.workload.kind {
            Kind::Get | Kind::GetCopy | Kind::GetMany => repeat(&mut |random| of_loaded(random)),
            Kind::Mixed => repeat(&mut |random| match random.next() % 100 {
                0..MIXED_WRITES_PERCENT => written(random),
                _ => of_loaded(random),
            }),
            Kind::Put | Kind::PutIfAbsentOrUpdate => repeat(&mut |random| written(random)),
            Kind::UpdateZipf => {
                let ranks = zipf(loaded.len() as u32, self.ops, seed);
                ranks.iter().map(|&rank| Op::new(loaded[rank as usize], true)).collect()
            }
            Kind::Load { descending: false } => every(loaded.iter(), thread, self.threads),
            Kind::Load { descending: true } => every(loaded.iter().rev(), thread, self.threads),
            Kind::First | Kind::Queue(_) => vec![Op::new(0, false); self.ops],
            Kind::Scan(scan) => {
                let entries = space.scan_entries(scan.entries);
                let starts = (loaded.len() - entries + 1) as u32;
                let last = if scan.descending { entries as u32 - 1 } else { 0 };
                repeat(&mut |random| Op::new(random.below(starts) + last, false))
            }
        }
    }
}

fn every<'n>(numbers: impl Iterator<Item = &'n u32>, thread: usize, threads: usize) -> Vec<Op> {
    numbers.skip(thread).step_by(threads).map(|&number| Op::new(number, true)).collect()
}
