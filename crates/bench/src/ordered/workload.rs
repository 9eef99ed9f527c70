//! The workloads: the timed operations, and the keys of each.

use super::space::Space;
use crate::clock::Clock;
use crate::figures::{Timed, Unit};
use crate::random::{Random, zipf};
use crate::rounds::Run;

/// Entries that a long scan visits, as in Oak's evaluation.
pub(crate) const SCAN_ENTRIES: usize = 10_000;
/// Writes in a hundred operations of the mixed workload.
const MIXED_WRITES_PERCENT: u64 = 5;
/// Keys of a call that looks many up.
const KEYS_OF_A_CALL: usize = 64;

/// The value of each entry of a queue.
pub(crate) const QUEUED: [u8; 100] = [7; 100];

/// Oak's scenarios, scans of keys alone and of few entries, batches, queues, skew and loads in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Workload {
    GetZeroCopy,
    GetCopy,
    GetMany,
    Mixed,
    PutIfAbsentOrUpdate,
    Put,
    UpdateZipf,
    LoadAscending,
    LoadDescending,
    AscendingStream,
    AscendingIterator,
    DescendingStream,
    DescendingIterator,
    AscendingKeys,
    DescendingKeys,
    Scan1,
    Scan10,
    Scan100,
    First,
    Fifo,
    Lifo,
}

impl Workload {
    /// All timed ones, in the order of a run.
    pub(crate) const TIMED: [Workload; 21] = [
        Workload::GetZeroCopy,
        Workload::GetCopy,
        Workload::GetMany,
        Workload::AscendingStream,
        Workload::AscendingIterator,
        Workload::DescendingStream,
        Workload::DescendingIterator,
        Workload::AscendingKeys,
        Workload::DescendingKeys,
        Workload::Scan1,
        Workload::Scan10,
        Workload::Scan100,
        Workload::First,
        Workload::Fifo,
        Workload::Lifo,
        Workload::LoadAscending,
        Workload::LoadDescending,
        Workload::Mixed,
        Workload::UpdateZipf,
        Workload::PutIfAbsentOrUpdate,
        Workload::Put,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Workload::GetZeroCopy => "get-zero-copy",
            Workload::GetCopy => "get-copy",
            Workload::GetMany => "get-many",
            Workload::Mixed => "get-95-put-5",
            Workload::PutIfAbsentOrUpdate => "put-if-absent-or-update",
            Workload::Put => "put",
            Workload::UpdateZipf => "update-zipf",
            Workload::LoadAscending => "load-ascending",
            Workload::LoadDescending => "load-descending",
            Workload::AscendingStream => "scan-ascending-stream",
            Workload::AscendingIterator => "scan-ascending-iterator",
            Workload::DescendingStream => "scan-descending-stream",
            Workload::DescendingIterator => "scan-descending-iterator",
            Workload::AscendingKeys => "scan-ascending-keys",
            Workload::DescendingKeys => "scan-descending-keys",
            Workload::Scan1 => "scan-1",
            Workload::Scan10 => "scan-10",
            Workload::Scan100 => "scan-100",
            Workload::First => "first",
            Workload::Fifo => "fifo",
            Workload::Lifo => "lifo",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Workload> {
        Self::TIMED.into_iter().find(|workload| workload.name() == name)
    }

    pub(crate) fn is_scan(self) -> bool {
        self.scan().is_some()
    }

    /// Whether it is a scan of few entries, of which a run has as many as of point operations.
    pub(crate) fn is_short_scan(self) -> bool {
        self.scan().is_some_and(|scan| scan.entries < SCAN_ENTRIES)
    }

    /// The end that it pops from a queue of its own, after each put, if it does.
    pub(crate) fn pops(self) -> Option<End> {
        match self {
            Workload::Fifo => Some(End::First),
            Workload::Lifo => Some(End::Last),
            _ => None,
        }
    }

    /// Operations of one call.
    pub(crate) fn operations_of_a_call(self) -> usize {
        if self == Workload::GetMany { KEYS_OF_A_CALL } else { 1 }
    }

    /// Whether it puts all entries into an empty map, in an order of its own.
    pub(crate) fn loads(self) -> bool {
        matches!(self, Workload::LoadAscending | Workload::LoadDescending)
    }

    /// Direction, form and length, if this is a scan.
    pub(crate) fn scan(self) -> Option<Scan> {
        let (form, descending, entries) = match self {
            Workload::AscendingStream => (ScanForm::Stream, false, SCAN_ENTRIES),
            Workload::AscendingIterator => (ScanForm::Iterator, false, SCAN_ENTRIES),
            Workload::AscendingKeys => (ScanForm::Keys, false, SCAN_ENTRIES),
            Workload::DescendingStream => (ScanForm::Stream, true, SCAN_ENTRIES),
            Workload::DescendingIterator => (ScanForm::Iterator, true, SCAN_ENTRIES),
            Workload::DescendingKeys => (ScanForm::Keys, true, SCAN_ENTRIES),
            Workload::Scan1 => (ScanForm::Stream, false, 1),
            Workload::Scan10 => (ScanForm::Stream, false, 10),
            Workload::Scan100 => (ScanForm::Stream, false, 100),
            _ => return None,
        };
        Some(Scan { form, descending, entries })
    }

    /// Whether a run leaves other entries or values behind than it found.
    pub(crate) fn changes(self) -> bool {
        matches!(
            self,
            Workload::Mixed | Workload::PutIfAbsentOrUpdate | Workload::Put | Workload::UpdateZipf
        )
    }
}

impl Timed for Workload {
    fn name(self) -> String {
        Workload::name(self).to_owned()
    }

    fn unit(self) -> Unit {
        if self.is_scan() { Unit::Scans } else { Unit::Operations }
    }
}

/// An end of a queue whose entries are put in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

/// The form in which a scan returns entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanForm {
    /// A closure is called with each entry.
    Stream,
    /// An iterator yields each entry.
    Iterator,
    /// Keys alone are read.
    Keys,
}

/// A scan's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scan {
    pub(crate) form: ScanForm,
    pub(crate) descending: bool,
    /// Entries that it visits, where as many are loaded.
    pub(crate) entries: usize,
}

/// One timed run: the same for every engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) workload: Workload,
    pub(crate) threads: usize,
    /// Operations of each thread.
    pub(crate) ops: usize,
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
}

impl Run for Job {
    type Workload = Workload;

    fn workload(&self) -> Workload {
        self.workload
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn operations(&self) -> usize {
        self.ops * self.threads
    }
}

/// One planned operation: a key's number or a scan's first rank, and whether it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Op(u32);

const WRITES: u32 = 1 << 31;

impl Op {
    pub(crate) fn number(self) -> u32 {
        self.0 & !WRITES
    }

    pub(crate) fn writes(self) -> bool {
        self.0 & WRITES != 0
    }
}

impl Job {
    /// The operations of one thread, drawn before the clock starts.
    ///
    /// Gets draw from the loaded keys, so that each reads a value; writes draw from the whole
    /// range, so that half of them insert, but for skewed updates, which draw from the loaded keys;
    /// scans begin where all their entries are ahead; threads that load take every so manieth key.
    pub(crate) fn plan(&self, space: &Space, thread: usize) -> Vec<Op> {
        let seed = self.seed.wrapping_add((thread as u64) << 32);
        let mut random = Random::new(seed);
        let loaded = space.loaded_in_order();
        match self.workload {
            Workload::UpdateZipf => {
                let ranks = zipf(loaded.len() as u32, self.ops, seed);
                return ranks.iter().map(|&rank| Op(loaded[rank as usize] | WRITES)).collect();
            }
            Workload::LoadAscending => {
                let mine = loaded.iter().skip(thread).step_by(self.threads);
                return mine.map(|&number| Op(number | WRITES)).collect();
            }
            Workload::LoadDescending => {
                let mine = loaded.iter().rev().skip(thread).step_by(self.threads);
                return mine.map(|&number| Op(number | WRITES)).collect();
            }
            _ => {}
        }
        let scan = self.workload.scan();
        let scan_entries = scan.map_or(0, |scan| space.scan_entries(scan.entries));
        let starts = (loaded.len() - scan_entries + 1) as u32;
        (0..self.ops)
            .map(|_| match self.workload {
                Workload::GetZeroCopy | Workload::GetCopy | Workload::GetMany => {
                    Op(loaded[random.below(loaded.len() as u32) as usize])
                }
                Workload::Mixed => {
                    if random.next() % 100 < MIXED_WRITES_PERCENT {
                        Op(random.below(space.range()) | WRITES)
                    } else {
                        Op(loaded[random.below(loaded.len() as u32) as usize])
                    }
                }
                Workload::Put | Workload::PutIfAbsentOrUpdate => {
                    Op(random.below(space.range()) | WRITES)
                }
                Workload::First | Workload::Fifo | Workload::Lifo => Op(0),
                _ => {
                    let rank = random.below(starts);
                    let descending = scan.is_some_and(|scan| scan.descending);
                    Op(if descending { rank + scan_entries as u32 - 1 } else { rank })
                }
            })
            .collect()
    }
}
