//! The log as the testkit's engine, and the configurations it is tested in.

use sapwood_disk::{Disk, SimDisk};
use sapwood_hashlog::{
    Addresses, BatchError, ColdReads, ColumnScan, Columns, Compaction, Compute, Computed, Error,
    HashLog, KEY_BYTES_MAX, Layout, Options, RecordAddress, Snapshot, Upsert, ValueMut,
};
use sapwood_testkit::engine::{self, Decision, Edit, Edited, Pair, Refusal, Upserted};
use sapwood_testkit::heard::Heard;
use sapwood_testkit::keyed::stress::ValueSizes;
use sapwood_testkit::keyed::{Batch, KeyedEngine, Lengths, Walk};
use sapwood_testkit::{Bytes, interleave::pause};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// How a log is laid out, and where.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Configuration {
    pub(crate) layout: Layout,
    pub(crate) page_bytes: usize,
    /// With a budget there is a directory too, and nearly everything lies in it.
    pub(crate) memory_budget: Option<u64>,
    pub(crate) cold_reads: ColdReads,
    pub(crate) mutable_share: f64,
    /// `None`: none, since these budgets are small.
    pub(crate) read_cache: u64,
    /// It compacts itself, however short it is, as soon as a tenth is garbage.
    pub(crate) keeps_short: bool,
    /// A journal hears its changes.
    pub(crate) is_told: bool,
}

/// Memory alone, in pages as small as they come: nearly every record opens a page.
pub(crate) const NASTIEST: Configuration = Configuration {
    layout: Layout::Variable,
    page_bytes: 64,
    memory_budget: None,
    cold_reads: ColdReads::CopyToTail,
    mutable_share: 0.9,
    read_cache: 0,
    keeps_short: false,
    is_told: false,
};

/// A few pages of memory before a directory: nearly every record is cold.
pub(crate) const COLDEST: Configuration = Configuration {
    page_bytes: 4 << 10,
    memory_budget: Some(40 << 10),
    mutable_share: 0.3,
    ..NASTIEST
};

/// In memory, the nastiest first, the default last.
pub(crate) const IN_MEMORY: [Configuration; 5] = [
    NASTIEST,
    Configuration { layout: Layout::Fixed8, ..NASTIEST },
    Configuration { page_bytes: 4 << 10, ..NASTIEST },
    Configuration { layout: Layout::Fixed8, page_bytes: 4 << 10, ..NASTIEST },
    Configuration { page_bytes: 2 << 20, ..NASTIEST },
];

/// On disk, the nastiest first.
pub(crate) const ON_DISK: [Configuration; 5] = [
    COLDEST,
    Configuration { layout: Layout::Fixed8, ..COLDEST },
    Configuration { mutable_share: 0.0, ..CACHED },
    Configuration {
        layout: Layout::Fixed8,
        cold_reads: ColdReads::Stay,
        mutable_share: 1.0,
        ..COLDEST
    },
    Configuration {
        page_bytes: 16 << 10,
        memory_budget: Some(512 << 10),
        mutable_share: 0.9,
        ..COLDEST
    },
];

/// With a cache of a few records that were read.
pub(crate) const CACHED: Configuration =
    Configuration { cold_reads: ColdReads::Stay, read_cache: 6 << 10, ..COLDEST };

/// On disk, and compacting themselves all the time, the nastiest first.
pub(crate) const KEPT_SHORT: [Configuration; 4] = [
    Configuration { keeps_short: true, page_bytes: 64, ..COLDEST },
    Configuration { keeps_short: true, ..COLDEST },
    Configuration { keeps_short: true, ..ON_DISK[1] },
    Configuration { keeps_short: true, ..ON_DISK[4] },
];

/// Those whose changes a journal hears.
pub(crate) const TOLD: [Configuration; 4] = [
    Configuration { is_told: true, ..NASTIEST },
    Configuration { is_told: true, ..IN_MEMORY[3] },
    Configuration { is_told: true, ..KEPT_SHORT[1] },
    Configuration { is_told: true, ..KEPT_SHORT[2] },
];

/// Those that do not compact themselves.
pub(crate) fn configurations() -> impl Iterator<Item = Configuration> {
    IN_MEMORY.into_iter().chain(ON_DISK)
}

impl Configuration {
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::default();
        options.layout = self.layout;
        options.page_bytes = self.page_bytes;
        options.memory_budget = self.memory_budget;
        options.cold_reads = self.cold_reads;
        options.read_cache = self.read_cache;
        options.mutable_share = self.mutable_share;
        if self.keeps_short {
            let compaction =
                Compaction { garbage_share: 0.1, log_bytes_min: 0, ..Compaction::default() };
            options.compaction = Some(compaction);
        }
        options
    }

    /// An empty log: in memory, or where there is a budget on a disk of its own.
    pub(crate) fn log(&self) -> HashLog {
        match self.memory_budget {
            None => self.told(HashLog::in_memory(self.options()).expect("valid options")),
            Some(_) => self.open(&SimDisk::new()),
        }
    }

    /// What is on `disk`.
    pub(crate) fn open(&self, disk: &SimDisk) -> HashLog {
        self.try_open(disk).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    pub(crate) fn try_open(&self, disk: &SimDisk) -> sapwood_hashlog::Result<HashLog> {
        self.try_open_on(Arc::new(disk.clone()))
    }

    /// What is on any disk.
    pub(crate) fn try_open_on(&self, disk: Arc<dyn Disk>) -> sapwood_hashlog::Result<HashLog> {
        HashLog::open(disk, self.options()).map(|log| self.told(log))
    }

    fn told(&self, log: HashLog) -> HashLog {
        match self.is_told {
            true => log.with_journal(Heard::journal().1),
            false => log,
        }
    }

    pub(crate) fn adapter(&self) -> Adapter {
        Adapter::new(self.log(), *self)
    }

    pub(crate) fn lengths(&self) -> Lengths {
        match self.layout {
            Layout::Fixed8 => Lengths::EIGHT,
            Layout::Variable => {
                let (key, pair_max) = (1..=KEY_BYTES_MAX, self.page_bytes - RECORD_BYTES);
                Lengths { key, value: 0..=usize::MAX, pair_max, key_unit: 8 }
            }
        }
    }

    /// The values of rounds of threads.
    pub(crate) fn sizes(&self) -> ValueSizes {
        match self.layout {
            Layout::Fixed8 => ValueSizes::Counters,
            Layout::Variable if self.page_bytes < 4 << 10 => {
                ValueSizes::AtMost(*self.lengths().value_of(8).end())
            }
            Layout::Variable => ValueSizes::Any,
        }
    }
}

/// What a record of variable length takes beside key and value.
const RECORD_BYTES: usize = 16;

/// A size of a test that the environment may change.
pub(crate) fn number_of_environment(name: &str, default: u64) -> u64 {
    let number = |text: String| {
        text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a whole number"))
    };
    std::env::var(name).map_or(default, number)
}

/// A key that every configuration takes.
pub(crate) fn key(index: u64) -> [u8; 8] {
    // Spread, for keys that differ in their last bits alone are kind to a hash.
    index.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// A value that every configuration takes.
pub(crate) fn value(count: u64) -> [u8; 8] {
    count.to_le_bytes()
}

/// A change of the keys that are there.
pub(crate) fn present(
    mut change: impl FnMut(usize, &mut ValueMut<'_>),
) -> impl FnMut(usize, Option<&mut ValueMut<'_>>) {
    move |at, value| {
        if let Some(value) = value {
            change(at, value);
        }
    }
}

/// What a log holds, by a walk, in the order of the keys.
pub(crate) fn contents(log: &HashLog) -> Vec<Pair> {
    try_contents(log).unwrap()
}

/// As [`contents`], where the disk may fail.
pub(crate) fn try_contents(log: &HashLog) -> sapwood_hashlog::Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    let walk = log.for_each(|key, value| see(&mut pairs, key, value))?;
    assert_eq!(walk, ControlFlow::Continue(()));
    pairs.sort_unstable();
    Ok(pairs)
}

pub(crate) fn see(pairs: &mut Vec<Pair>, key: &[u8], value: &[u8]) -> ControlFlow<()> {
    pairs.push((steady(key), steady(value)));
    ControlFlow::Continue(())
}

/// What a snapshot holds, walked in `parts` parts.
pub(crate) fn snapped(snapshot: &Snapshot<'_>, parts: usize) -> sapwood_hashlog::Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for part in 0..parts {
        let from = pairs.len();
        let _ = snapshot.scan_part(part, parts, |key, value| see(&mut pairs, key, value))?;
        let seen = sorted(&pairs[from..]);
        for columns in [Columns::Values, Columns::Entries, Columns::Addresses] {
            let Some(walk) = snapshot.by_columns(columns) else { continue };
            let told = batch_pairs(&walk, part, parts)?;
            match columns {
                Columns::Values => assert_eq!(values_of(&told), values_of(&seen), "values alone"),
                _ => assert_eq!(told, seen, "batches of {columns:?}"),
            }
        }
    }
    Ok(pairs)
}

/// What a sweep meets, by columns where the layout has them.
pub(crate) fn swept(log: &HashLog, parts: usize) -> sapwood_hashlog::Result<Vec<Pair>> {
    let sweep = log.sweep()?;
    let mut pairs = Vec::new();
    for part in 0..parts {
        match sweep.by_columns(Columns::Entries) {
            Some(walk) => pairs.extend(batch_pairs(&walk, part, parts)?),
            None => {
                let visit = |key: &[u8], value: &[u8]| see(&mut pairs, key, value);
                let _all = sweep.scan_part(part, parts, visit)?;
            }
        }
    }
    Ok(pairs)
}

/// What a walk in steps visits, with `between` after each step.
pub(crate) fn stepped(
    log: &HashLog,
    entries_min: usize,
    mut between: impl FnMut(),
) -> sapwood_hashlog::Result<Vec<Pair>> {
    let (mut cursor, mut pairs) = (0, Vec::new());
    loop {
        cursor = log.scan_from(cursor, entries_min, |key, value| {
            pairs.push((steady(key), steady(value)));
        })?;
        if cursor == 0 {
            return Ok(pairs);
        }
        between();
        pause();
    }
}

fn sorted(pairs: &[Pair]) -> Vec<Pair> {
    let mut pairs = pairs.to_vec();
    pairs.sort_unstable();
    pairs
}

fn values_of(pairs: &[Pair]) -> Vec<&[u8]> {
    let mut values: Vec<&[u8]> = pairs.iter().map(|(_, value)| &value[..]).collect();
    values.sort_unstable();
    values
}

/// What the batches of a part hold, in the order of the keys; without keys if they have none.
pub(crate) fn batch_pairs(
    walk: &ColumnScan<'_>,
    part: usize,
    parts: usize,
) -> sapwood_hashlog::Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    let _ = walk.scan_part(part, parts, |batch| {
        let keys = batch.keys().words().unwrap_or_default();
        let values = batch.values().words().expect("values of 8 bytes");
        assert!((1..=1024).contains(&batch.len()), "a batch of {}", batch.len());
        assert_eq!(values.len(), batch.len());
        assert!(keys.is_empty() || keys.len() == batch.len());
        let addresses = match batch.addresses() {
            Addresses::Each(addresses) => Some(addresses.len()),
            Addresses::None | Addresses::Stepped { .. } => None,
        };
        assert!(addresses.is_none_or(|len| len == batch.len()));
        pause();
        for (at, value) in values.iter().enumerate() {
            let key = keys.get(at).map_or(Vec::new(), |key| key.to_vec());
            pairs.push((key, value.to_vec()));
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(sorted(&pairs))
}

/// A log as an engine.
pub(crate) struct Adapter {
    pub(crate) log: HashLog,
    pub(crate) configuration: Configuration,
    /// Where walks met keys, however long ago: what every other `update_many` is told.
    addresses: Mutex<BTreeMap<Vec<u8>, RecordAddress>>,
    updates: AtomicUsize,
}

impl Adapter {
    pub(crate) fn new(log: HashLog, configuration: Configuration) -> Adapter {
        let (addresses, updates) = (Mutex::default(), AtomicUsize::default());
        Adapter { log, configuration, addresses, updates }
    }

    fn note_addresses(&self, snapshot: &Snapshot<'_>) -> sapwood_hashlog::Result<()> {
        let Some(walk) = snapshot.by_columns(Columns::Addresses) else { return Ok(()) };
        let mut addresses = self.addresses.lock().unwrap();
        let _ = walk.scan(|batch| {
            let keys = batch.keys().words().expect("keys of 8 bytes").iter();
            let found = keys
                .enumerate()
                .filter_map(|(at, key)| Some((key.to_vec(), batch.addresses().get(at)?)));
            addresses.extend(found);
            ControlFlow::<()>::Continue(())
        })?;
        Ok(())
    }
}

pub(crate) fn refusal(error: Error) -> Refusal {
    match error {
        Error::KeyLength { .. } => Refusal::KeyLength,
        Error::ValueLength { .. } => Refusal::ValueLength,
        Error::OutOfMemory { .. } => Refusal::OutOfMemory,
        Error::NotACounter { .. } => Refusal::NotACounter,
        Error::Overflow { .. } => Refusal::Overflow,
        other => Refusal::Other(other.to_string()),
    }
}

fn stopped(BatchError { done, error }: BatchError) -> (usize, Refusal) {
    (done, refusal(error))
}

/// Copies bytes that a closure shows, and sees them stay as they are.
fn steady(bytes: &[u8]) -> Vec<u8> {
    let copy = bytes.to_vec();
    pause();
    assert_eq!(copy, bytes, "bytes changed under a reader");
    copy
}

struct Editing<'a, 'b>(&'a mut ValueMut<'b>);

impl engine::ValueEdit for Editing<'_, '_> {
    fn bytes(&mut self) -> &mut [u8] {
        self.0
    }
    fn set(&mut self, bytes: &[u8]) -> engine::Result<()> {
        self.0.set(bytes).map_err(refusal)
    }
    fn append(&mut self, bytes: &[u8]) -> engine::Result<()> {
        self.0.extend_from_slice(bytes).map_err(refusal)
    }
    fn resize(&mut self, len: usize) -> engine::Result<()> {
        self.0.resize(len).map_err(refusal)
    }
}

fn edit(edits: &[Edit], value: &mut ValueMut<'_>) -> Edited {
    let edited = Edited::apply(edits, &mut Editing(value));
    pause();
    assert_eq!(edited.after, **value, "bytes changed under their only writer");
    edited
}

impl KeyedEngine for Adapter {
    fn lengths(&self) -> Lengths {
        self.configuration.lengths()
    }
    fn get(&self, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
        self.log.get(key).map_err(refusal)
    }
    fn get_with(&self, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
        self.log.get_with(key, steady).map_err(refusal)
    }
    fn contains_key(&self, key: &[u8]) -> engine::Result<bool> {
        self.log.contains_key(key).map_err(refusal)
    }
    fn put(&self, key: &[u8], value: &[u8]) -> engine::Result<()> {
        self.log.put(key, value).map_err(refusal)
    }
    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> engine::Result<bool> {
        self.log.put_if_absent(key, value).map_err(refusal)
    }
    fn remove(&self, key: &[u8]) -> engine::Result<bool> {
        self.log.remove(key).map_err(refusal)
    }
    fn take(&self, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
        self.log.remove_with(key, steady).map_err(refusal)
    }
    fn compute(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Decision,
    ) -> engine::Result<engine::Computed> {
        let computed = self.log.compute(key, |value| {
            let seen = value.map(steady);
            match decide(seen.as_deref()) {
                Decision::Keep => Compute::Keep,
                Decision::Replace(value) => Compute::Replace(value),
                Decision::Remove => Compute::Remove,
            }
        });
        Ok(match computed.map_err(refusal)? {
            Computed::Kept => engine::Computed::Kept,
            Computed::Inserted => engine::Computed::Inserted,
            Computed::Replaced => engine::Computed::Replaced,
            Computed::Removed => engine::Computed::Removed,
            Computed::Absent => engine::Computed::Absent,
        })
    }
    fn retain(&self, keep: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> engine::Result<u64> {
        self.log.retain(keep).map_err(refusal)
    }
    fn update(&self, key: &[u8], edits: &[Edit]) -> engine::Result<Option<Edited>> {
        self.log.update(key, |value| edit(edits, value)).map_err(refusal)
    }
    fn upsert(&self, key: &[u8], value: &[u8], edits: &[Edit]) -> engine::Result<Upserted> {
        let upsert = self.log.put_if_absent_or_update(key, value, |value| edit(edits, value));
        Ok(match upsert.map_err(refusal)? {
            Upsert::Inserted => Upserted::Inserted,
            Upsert::Updated(edited) => Upserted::Updated(edited),
        })
    }
    fn compare_and_put(&self, key: &[u8], expected: &[u8], new: &[u8]) -> engine::Result<bool> {
        self.log.compare_and_put(key, expected, new).map_err(refusal)
    }
    fn add(&self, key: &[u8], delta: i64) -> engine::Result<i64> {
        self.log.add(key, delta).map_err(refusal)
    }
    fn get_many(&self, keys: &[Bytes]) -> engine::Result<Vec<Option<Vec<u8>>>> {
        let mut values: Vec<Option<Option<Vec<u8>>>> = vec![None; keys.len()];
        let read = |index: usize, value: Option<&[u8]>| {
            let earlier = values[index].replace(value.map(steady));
            assert_eq!(earlier, None, "get_many read key {index} twice");
        };
        if self.updates.load(Relaxed).is_multiple_of(2) {
            self.log.get_many(keys, read).map_err(refusal)?;
        } else {
            let mut read = read;
            let mut met = Vec::new();
            let read = |index: usize, found: Option<(&[u8], RecordAddress)>| {
                met.extend(found.map(|(_, place)| (keys[index].to_vec(), place)));
                read(index, found.map(|(value, _)| value));
            };
            self.log.get_many_with_addresses(keys, read).map_err(refusal)?;
            self.addresses.lock().unwrap().extend(met);
        }
        let read = |value: Option<_>| value.expect("get_many reads every key");
        Ok(values.into_iter().map(read).collect())
    }
    fn put_many(&self, pairs: &[(Bytes, Bytes)]) -> Batch<()> {
        self.log.put_many(pairs).map_err(stopped)
    }
    fn update_many(&self, keys: &[Bytes], edits: &[Edit]) -> Batch<Vec<Option<Edited>>> {
        let mut left = vec![None; keys.len()];
        let change = |index: usize, value: &mut ValueMut<'_>| {
            left[index] = Some(edit(edits, value));
        };
        let addresses: Vec<RecordAddress> = {
            let known = self.addresses.lock().unwrap();
            let place = |key: &Bytes| known.get(key.as_ref()).copied().unwrap_or_default();
            keys.iter().map(place).collect()
        };
        let there = match self.updates.fetch_add(1, Relaxed) % 3 {
            0 => self.log.update_many(keys, change),
            1 => self.log.update_at(&addresses, keys, present(change)),
            _ => self.log.edit().update_at(&addresses, keys, present(change)),
        };
        let there = there.map_err(stopped)?;
        // Fewer where a key went between a try and the next.
        assert!(there <= left.iter().flatten().count(), "update_many counted otherwise");
        Ok(left)
    }
    fn add_many(&self, deltas: &[(Bytes, i64)]) -> Batch<()> {
        self.log.add_many(deltas).map_err(stopped)
    }
    fn pairs(&self, walk: Walk) -> engine::Result<Vec<Pair>> {
        let mut pairs = Vec::new();
        let visit = |key: &[u8], value: &[u8]| see(&mut pairs, key, value);
        let walked = match walk {
            Walk::ForEach => self.log.for_each(visit).map(drop),
            Walk::ForEachParts(parts) => {
                let mut visit = visit;
                (0..parts)
                    .try_for_each(|part| self.log.for_each_part(part, parts, &mut visit).map(drop))
            }
            Walk::Log => self.log.scan_log(visit).map(drop),
            Walk::Snapshot => self.log.snapshot().and_then(|it| {
                self.note_addresses(&it)?;
                it.scan(visit).map(drop)
            }),
            Walk::SnapshotParts(parts) => {
                let snapshot = self.log.snapshot().map_err(refusal)?;
                return snapped(&snapshot, parts).map_err(refusal);
            }
            Walk::Iter => {
                return self.log.iter().collect::<Result<_, _>>().map_err(refusal);
            }
            Walk::Steps(entries) => {
                return stepped(&self.log, entries, || ()).map_err(refusal);
            }
            Walk::Sweep(parts) => return swept(&self.log, parts).map_err(refusal),
        };
        walked.map_err(refusal)?;
        Ok(pairs)
    }
    fn len_counted(&self) -> Option<usize> {
        // Else it is an estimate: a put on a cold key may be of a new one.
        self.configuration.memory_budget.is_none().then(|| self.log.len_estimate())
    }
    fn len_exact(&self) -> engine::Result<usize> {
        self.log.len_exact().map_err(refusal)
    }
    fn clear(&self) -> engine::Result<()> {
        self.log.clear().map_err(refusal)
    }
    fn check(&self) -> Result<(), String> {
        self.log.check()
    }
}
