//! The map as the testkit's engine, and the configurations it is tested in.

use sapwood_chunkmap::{BatchError, ValueMut};
use sapwood_chunkmap::{ChunkMap, Compute, Computed, Direction, Entry, Error, Options, Upsert};
use sapwood_testkit::engine::{self, Decision, Edit, Edited, Pair, Refusal, ScanForm, Upserted};
use sapwood_testkit::{Bytes, interleave::pause};
use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};

/// Chunk sizes and block sizes, the nastiest first, the default last.
pub(crate) const CONFIGURATIONS: [(usize, usize); 5] =
    [(2, 4 << 10), (3, 4 << 10), (8, 16 << 10), (64, 64 << 10), (512, 2 << 20)];

/// The nastiest configuration: every second insert rebalances, every block is one page.
pub(crate) const NASTIEST: (usize, usize) = CONFIGURATIONS[0];

/// A map of one of the [`CONFIGURATIONS`].
pub(crate) fn map((chunk_entries, block_bytes): (usize, usize)) -> ChunkMap {
    bounded((chunk_entries, block_bytes), None)
}

/// A map of one of the [`CONFIGURATIONS`] with a memory budget.
pub(crate) fn bounded(
    (chunk_entries, block_bytes): (usize, usize),
    memory_budget: Option<u64>,
) -> ChunkMap {
    let mut options = Options::default();
    options.chunk_entries = chunk_entries;
    options.block_bytes = block_bytes;
    options.memory_budget = memory_budget;
    ChunkMap::with_options(options).expect("valid options")
}

/// The entries of a map, by a scan.
pub(crate) fn contents(map: &ChunkMap) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let scan = map.scan(.., Direction::Ascending, |key, value| {
        pairs.push((key.to_vec(), value.to_vec()));
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(scan, Ok(ControlFlow::Continue(())));
    pairs
}

/// A map as an engine.
pub(crate) struct Adapter(pub(crate) ChunkMap, Trims);

/// Whether every removal trims and compacts the map, too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trims {
    Never,
    WithRemovals,
}

impl Adapter {
    pub(crate) fn new(configuration: (usize, usize)) -> Self {
        Adapter::of(map(configuration))
    }

    pub(crate) fn of(map: ChunkMap) -> Self {
        Adapter(map, Trims::Never)
    }

    /// Every removal trims and compacts the map, too.
    pub(crate) fn trimming(configuration: (usize, usize)) -> Self {
        Adapter(map(configuration), Trims::WithRemovals)
    }
}

fn refusal(error: Error) -> Refusal {
    match error {
        Error::KeyLength { .. } => Refusal::KeyLength,
        Error::ValueLength { .. } => Refusal::ValueLength,
        Error::OutOfMemory { .. } => Refusal::OutOfMemory,
        other => Refusal::Other(other.to_string()),
    }
}

/// Copies bytes that a guard or a closure shows, and sees them stay as they are.
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

fn edit(edits: &[Edit]) -> impl FnOnce(&mut ValueMut<'_>) -> Edited {
    |value| {
        let edited = Edited::apply(edits, &mut Editing(value));
        pause();
        assert_eq!(edited.after, **value, "bytes changed under their only writer");
        edited
    }
}

fn owned(entry: sapwood_chunkmap::Result<Option<Entry<'_>>>) -> engine::Result<Option<Pair>> {
    let entry = entry.map_err(refusal)?;
    Ok(entry.map(|entry| (steady(entry.key()), steady(entry.value()))))
}

fn direction(direction: engine::Direction) -> Direction {
    match direction {
        engine::Direction::Ascending => Direction::Ascending,
        engine::Direction::Descending => Direction::Descending,
    }
}

/// Takes up to `limit` entries and keeps the latest few under their guards for a while.
fn guarded<'m>(
    entries: impl Iterator<Item = sapwood_chunkmap::Result<Entry<'m>>>,
    limit: usize,
) -> engine::Result<Vec<Pair>> {
    const HELD_MAX: usize = 4;
    let mut held: VecDeque<(Entry<'m>, Pair)> = VecDeque::new();
    let mut pairs = Vec::new();
    let check = |(entry, pair): (Entry<'_>, Pair)| {
        assert_eq!(entry.to_owned(), pair, "an entry changed under its guard");
    };
    for entry in entries.take(limit) {
        let entry = entry.map_err(refusal)?;
        let pair = (steady(entry.key()), steady(entry.value()));
        pairs.push(pair.clone());
        held.push_back((entry, pair));
        if held.len() > HELD_MAX {
            held.pop_front().into_iter().for_each(check);
        }
    }
    held.into_iter().for_each(check);
    Ok(pairs)
}

impl engine::OrderedEngine for Adapter {
    fn get(&self, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
        self.0.get(key).map_err(refusal)
    }
    fn get_with(&self, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
        self.0.get_with(key, steady).map_err(refusal)
    }
    fn contains_key(&self, key: &[u8]) -> engine::Result<bool> {
        self.0.contains_key(key).map_err(refusal)
    }
    fn put(&self, key: &[u8], value: &[u8]) -> engine::Result<bool> {
        self.0.put(key, value).map_err(refusal)
    }
    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> engine::Result<bool> {
        self.0.put_if_absent(key, value).map_err(refusal)
    }
    fn remove(&self, key: &[u8]) -> engine::Result<bool> {
        let removed = self.0.remove(key).map_err(refusal);
        if self.1 == Trims::WithRemovals {
            self.0.trim();
            self.0.compact();
        }
        removed
    }
    fn take(&self, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
        self.0.remove_with(key, steady).map_err(refusal)
    }
    fn update(&self, key: &[u8], edits: &[Edit]) -> engine::Result<Option<Edited>> {
        self.0.update(key, edit(edits)).map_err(refusal)
    }
    fn upsert(&self, key: &[u8], value: &[u8], edits: &[Edit]) -> engine::Result<Upserted> {
        let upsert = self.0.put_if_absent_or_update(key, value, edit(edits));
        Ok(match upsert.map_err(refusal)? {
            Upsert::Inserted => Upserted::Inserted,
            Upsert::Updated(edited) => Upserted::Updated(edited),
        })
    }
    fn compute(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Decision,
    ) -> engine::Result<engine::Computed> {
        let computed = self.0.compute(key, |value| match decide(value) {
            Decision::Keep => Compute::Keep,
            Decision::Replace(value) => Compute::Replace(value),
            Decision::Remove => Compute::Remove,
        });
        Ok(match computed.map_err(refusal)? {
            Computed::Kept => engine::Computed::Kept,
            Computed::Inserted => engine::Computed::Inserted,
            Computed::Replaced => engine::Computed::Replaced,
            Computed::Removed => engine::Computed::Removed,
            Computed::Absent => engine::Computed::Absent,
        })
    }
    fn first(&self) -> engine::Result<Option<Pair>> {
        owned(self.0.first())
    }
    fn last(&self) -> engine::Result<Option<Pair>> {
        owned(self.0.last())
    }
    fn floor(&self, key: &[u8]) -> engine::Result<Option<Pair>> {
        owned(self.0.floor(key))
    }
    fn lower(&self, key: &[u8]) -> engine::Result<Option<Pair>> {
        owned(self.0.lower(key))
    }
    fn ceiling(&self, key: &[u8]) -> engine::Result<Option<Pair>> {
        owned(self.0.ceiling(key))
    }
    fn higher(&self, key: &[u8]) -> engine::Result<Option<Pair>> {
        owned(self.0.higher(key))
    }
    fn pop_first(&self) -> engine::Result<Option<Pair>> {
        self.0.pop_first().map_err(refusal)
    }
    fn pop_last(&self) -> engine::Result<Option<Pair>> {
        self.0.pop_last().map_err(refusal)
    }
    fn scan(
        &self,
        form: ScanForm,
        bounds: engine::Bounds<'_>,
        way: engine::Direction,
        limit: usize,
    ) -> engine::Result<Vec<Pair>> {
        let mut pairs = Vec::new();
        if limit == 0 {
            return Ok(pairs);
        }
        let range = || self.0.range(bounds);
        let mut see = |key: &[u8], value: &[u8]| {
            pairs.push((steady(key), steady(value)));
            match pairs.len() < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        match (form, way) {
            (ScanForm::Stream, _) => {
                let _ = self.0.scan(bounds, direction(way), see).map_err(refusal)?;
            }
            (ScanForm::Keys, _) => {
                let see = |key: &[u8]| see(key, &[]);
                let _ = self.0.scan_keys(bounds, direction(way), see).map_err(refusal)?;
            }
            (ScanForm::Entries, engine::Direction::Ascending) => return guarded(range(), limit),
            (ScanForm::Entries, engine::Direction::Descending) => {
                return guarded(range().rev(), limit);
            }
            (ScanForm::Owned, engine::Direction::Ascending) => {
                return range().owned().take(limit).map(|p| p.map_err(refusal)).collect();
            }
            (ScanForm::Owned, engine::Direction::Descending) => {
                return range().owned().rev().take(limit).map(|p| p.map_err(refusal)).collect();
            }
        }
        Ok(pairs)
    }
    fn both_ends(&self, bounds: engine::Bounds<'_>, from_back: u64) -> engine::Result<Vec<Pair>> {
        let mut range = self.0.range(bounds);
        let step = |index: u32| match from_back >> (index % 64) & 1 {
            0 => range.next(),
            _ => range.next_back(),
        };
        let entries = (0..).map_while(step);
        entries.map(|entry| Ok(entry.map_err(refusal)?.to_owned())).collect()
    }
    fn get_many(&self, keys: &[Bytes]) -> engine::Result<Vec<Option<Vec<u8>>>> {
        let mut values: Vec<Option<Option<Vec<u8>>>> = vec![None; keys.len()];
        let read = |index: usize, value: Option<&[u8]>| {
            let earlier = values[index].replace(value.map(steady));
            assert_eq!(earlier, None, "get_many read key {index} twice");
        };
        self.0.get_many(keys, read).map_err(refusal)?;
        let read = |value: Option<_>| value.expect("get_many reads every key");
        Ok(values.into_iter().map(read).collect())
    }
    fn put_many(&self, pairs: &[(Bytes, Bytes)]) -> Result<usize, (usize, Refusal)> {
        let stopped = |BatchError { done, error }| (done, refusal(error));
        self.0.put_many(pairs).map_err(stopped)
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    fn len_exact(&self) -> usize {
        self.0.len_exact()
    }
    fn clear(&self) -> engine::Result<()> {
        self.0.clear().map_err(refusal)
    }
    fn check(&self) -> Result<(), String> {
        self.0.check().map_err(|corruption| corruption.what)
    }
    fn accounting(&self) -> Option<engine::Accounting> {
        let stats = self.0.stats();
        Some(engine::Accounting {
            entries: stats.entries,
            key_bytes: stats.key_bytes,
            value_bytes: stats.value_bytes,
        })
    }
}

/// All of a map.
pub(crate) const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
