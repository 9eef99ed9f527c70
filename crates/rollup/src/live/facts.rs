//! The facts: a map from time and dimensions to states, and the texts of the dimensions.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use sapwood_chunkmap::{ChunkMap, Direction};
use sapwood_engine::Upsert;

use super::dictionary::Dictionary;
use super::history::{Batch, Generation, History};
use super::key::time_bound;
use super::state::StateLayout;
use crate::error::{Error, Result};
use crate::schema::{DIMENSIONS_MAX, Dimension, DimensionKind, NAME_BYTES_MAX};
use crate::time::interval::Interval;

/// Live facts, which change while they are read.
#[derive(Debug)]
pub(crate) struct Facts {
    map: ChunkMap,
    history: History,
    /// Declared dimensions, then those that were discovered; only ever longer.
    dimensions: RwLock<Arc<Vec<DimensionColumn>>>,
    /// Rows so far, without roll-up.
    sequence: AtomicU64,
    /// Facts that batches under way may add, beside those that are there.
    reserved: AtomicU64,
}

/// A dimension, and its texts.
#[derive(Debug, Clone)]
pub(crate) struct DimensionColumn {
    pub(crate) name: String,
    pub(crate) kind: DimensionKind,
    /// Empty of numbers.
    pub(crate) dictionary: Arc<Dictionary>,
}

impl DimensionColumn {
    fn new(dimension: &Dimension) -> DimensionColumn {
        DimensionColumn {
            name: dimension.name.clone(),
            kind: dimension.kind,
            dictionary: Arc::default(),
        }
    }

    pub(crate) fn dimension(&self) -> Dimension {
        Dimension { name: self.name.clone(), kind: self.kind }
    }
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
    /// Without facts and texts.
    pub(crate) fn new(dimensions: &[Dimension]) -> Result<Facts> {
        let columns = dimensions.iter().map(DimensionColumn::new).collect();
        Ok(Facts {
            dimensions: RwLock::new(Arc::new(columns)),
            map: ChunkMap::with_options(sapwood_chunkmap::Options::default())?,
            history: History::default(),
            sequence: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.map.len() as u64
    }

    /// Bytes mapped for them, and those of dictionaries.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let columns = self.columns();
        let dictionaries = columns.iter().map(|column| column.dictionary.read().heap_bytes());
        (self.map.reserved_bytes(), dictionaries.sum())
    }

    /// Gives back what is kept free for more of both.
    pub(crate) fn trim(&self) {
        self.map.trim();
        self.columns().iter().for_each(|column| column.dictionary.trim());
    }

    /// The dimensions, with those that were discovered so far.
    pub(crate) fn columns(&self) -> Arc<Vec<DimensionColumn>> {
        Arc::clone(&self.dimensions.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds dimensions that are not there yet.
    pub(crate) fn discover(&self, found: &[Dimension]) -> Result<()> {
        let mut dimensions = self.dimensions.write().unwrap_or_else(PoisonError::into_inner);
        let mut more: Vec<DimensionColumn> = dimensions.to_vec();
        for dimension in found {
            if more.iter().any(|known| known.name == dimension.name) {
                continue;
            }
            if more.len() == DIMENSIONS_MAX {
                return Err(Error::Input(format!(
                    "`{}` would be dimension {}: declare the dimensions, or exclude columns",
                    dimension.name,
                    DIMENSIONS_MAX + 1
                )));
            }
            if dimension.name.len() > NAME_BYTES_MAX {
                return Err(Error::Input(format!(
                    "a column has a name of {} bytes, and dimensions have {NAME_BYTES_MAX} at most: exclude it",
                    dimension.name.len()
                )));
            }
            more.push(DimensionColumn::new(dimension));
        }
        *dimensions = Arc::new(more);
        Ok(())
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

    /// Begins a batch, which no snapshot cuts; none once the facts are closed.
    pub(crate) fn batch(&self) -> Option<Batch<'_>> {
        self.history.batch()
    }

    /// Waits for the batches under way. No fact changes from here on.
    pub(crate) fn close(&self) {
        self.history.close();
    }

    /// Shows all facts in their order, as they are: of closed facts, for good.
    pub(crate) fn for_each<B>(
        &self,
        mut show: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        Ok(self.map.scan(.., Direction::Ascending, |key, state| show(key, state))?)
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
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
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
