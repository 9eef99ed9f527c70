//! The facts: a map from time and dimensions to states.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sapwood_chunkmap::{ChunkMap, Direction};
use sapwood_engine::Upsert;

use super::history::{Batch, Generation, History};
use super::key::time_bound;
use super::state::StateLayout;
use crate::error::{Error, Result};
use crate::time::interval::Interval;

/// Live facts, which change while they are read.
#[derive(Debug)]
pub(crate) struct Facts {
    map: ChunkMap,
    history: History,
    /// Rows so far, without roll-up.
    sequence: AtomicU64,
    /// Facts that batches under way may add, beside those that are there.
    reserved: AtomicU64,
}

/// Facts as they were at one moment.
#[derive(Debug)]
pub(crate) struct FactsSnapshot {
    facts: Arc<Facts>,
    generation: Arc<Generation>,
}

/// Room for facts that a batch may add, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved<'f> {
    facts: &'f Facts,
    count: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.facts.reserved.fetch_sub(self.count, Ordering::Relaxed);
    }
}

impl Facts {
    pub(crate) fn new() -> Result<Facts> {
        Ok(Facts {
            map: ChunkMap::with_options(sapwood_chunkmap::Options::default())?,
            history: History::default(),
            sequence: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.map.len() as u64
    }

    /// Bytes mapped for them.
    pub(crate) fn bytes(&self) -> u64 {
        self.map.reserved_bytes()
    }

    /// Numbers for so many rows: the first of them.
    pub(crate) fn take_numbers(&self, count: usize) -> i64 {
        self.sequence.fetch_add(count as u64, Ordering::Relaxed).cast_signed()
    }

    /// Makes room for the keys that are new.
    ///
    /// # Errors
    /// [`Error::Full`] if there is none.
    pub(crate) fn reserve<'f, K: AsRef<[u8]>>(
        &'f self,
        keys: &[K],
        max: u64,
    ) -> Result<Reserved<'f>> {
        let reserve = |count: u64| {
            let before = self.reserved.fetch_add(count, Ordering::Relaxed);
            let reserved = Reserved { facts: self, count };
            let facts = self.len() + before + count;
            if facts <= max { Ok(reserved) } else { Err((facts, reserved)) }
        };
        // Mostly there is room for all; only near the limit does it matter which are new.
        if let Ok(reserved) = reserve(keys.len() as u64) {
            return Ok(reserved);
        }
        let mut new = 0;
        for key in keys {
            new += u64::from(!self.map.contains_key(key.as_ref())?);
        }
        reserve(new)
            .map_err(|(facts, _)| Error::Full { what: format!("{facts} facts"), limit: max })
    }

    /// Begins a batch, which no snapshot cuts.
    pub(crate) fn batch(&self) -> Batch<'_> {
        self.history.batch()
    }

    /// Merges states into the facts of their keys, all within one batch. Calls `refused` with the index
    /// of each entry whose figures would leave their type; its fact stays as it is. Returns how many
    /// facts are new.
    pub(crate) fn merge<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        batch: &Batch<'_>,
        layout: &StateLayout,
        entries: &[(K, V)],
        mut refused: impl FnMut(usize, super::state::Overflow),
    ) -> Result<usize> {
        if let Some(generation) = batch.newest() {
            for (key, _) in entries {
                generation.keep(key.as_ref(), || self.map.get(key.as_ref()))?;
            }
        }
        let mut buffer = Vec::new();
        let mut failed = None;
        let inserted = self.map.put_if_absent_or_update_many(entries, |index, fact| {
            let merged = layout.merged(fact, entries[index].1.as_ref(), &mut buffer);
            match merged {
                Ok(()) if buffer.len() == fact.len() => fact.copy_from_slice(&buffer),
                Ok(()) => failed = failed.take().or(fact.set(&buffer).err()),
                Err(overflow) => refused(index, overflow),
            }
        });
        match (inserted, failed) {
            (Ok(inserted), None) => Ok(inserted),
            (Ok(_), Some(error)) => Err(error.into()),
            (Err(stopped), _) => Err(stopped.error.into()),
        }
    }

    /// Merges one state, as [`merge`](Self::merge) does.
    pub(crate) fn merge_one(
        &self,
        batch: &Batch<'_>,
        layout: &StateLayout,
        key: &[u8],
        state: &[u8],
    ) -> Result<std::result::Result<Upsert<()>, super::state::Overflow>> {
        let mut refused = None;
        let inserted =
            self.merge(batch, layout, &[(key, state)], |_, overflow| refused = Some(overflow))?;
        Ok(match refused {
            Some(overflow) => Err(overflow),
            None if inserted == 1 => Ok(Upsert::Inserted),
            None => Ok(Upsert::Updated(())),
        })
    }

    /// The facts as they are now, between two batches.
    pub(crate) fn snapshot(self: &Arc<Self>) -> FactsSnapshot {
        FactsSnapshot { generation: self.history.snapshot(), facts: Arc::clone(self) }
    }
}

impl FactsSnapshot {
    /// The same facts once more.
    pub(crate) fn again(&self) -> FactsSnapshot {
        FactsSnapshot { facts: Arc::clone(&self.facts), generation: Arc::clone(&self.generation) }
    }

    /// The keys of an interval: the least of them, and the least beyond.
    pub(crate) fn bounds(interval: Interval) -> (Vec<u8>, Vec<u8>) {
        (time_bound(interval.start), time_bound(interval.end))
    }

    /// Shows the facts of a range of keys, in their order.
    pub(crate) fn scan_keys<B>(
        &self,
        range: (Bound<&Vec<u8>>, Bound<&Vec<u8>>),
        direction: Direction,
        show: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let flow = self.facts.map.scan(range, direction, |key, state| {
            let shown = self.generation.show(key, state, |state| show(key, state));
            shown.unwrap_or(ControlFlow::Continue(()))
        })?;
        Ok(flow)
    }

    /// Cuts an interval into parts of about as many facts: the keys between them.
    pub(crate) fn split(&self, interval: Interval, parts: usize) -> Vec<Vec<u8>> {
        let (low, high) = FactsSnapshot::bounds(interval);
        let points = self.facts.map.split_points(&low[..]..&high[..], parts);
        points.keys
    }
}
