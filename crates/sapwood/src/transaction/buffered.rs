//! Tables whose changes a transaction buffers until its commit: ordered tables and hash tables.

use std::sync::Arc;

use sapwood_chunkmap::ChunkMap;

use crate::db_log::Kept;
use crate::formats::Formats;
use crate::table::{Bounds, Page, Refusal, SortedVerbs};
use crate::{Compute, Direction, Error, HashTable, OrderedTable, RecordLayout, Result};

/// A table whose changes wait in a transaction for its commit. What it does goes to the engine: the
/// transaction has the stripes of the keys.
#[derive(Debug, Clone)]
pub(crate) enum Buffered {
    Ordered(OrderedTable),
    Hash(HashTable),
}

impl Buffered {
    pub(crate) fn name(&self) -> &Arc<str> {
        match self {
            Buffered::Ordered(table) => &table.shared.name,
            Buffered::Hash(table) => &table.shared.name,
        }
    }

    pub(crate) fn kept(&self) -> &Kept {
        match self {
            Buffered::Ordered(table) => &table.shared.kept,
            Buffered::Hash(table) => &table.shared.kept,
        }
    }

    pub(crate) fn is_same(&self, other: &Buffered) -> bool {
        match (self, other) {
            (Buffered::Ordered(one), Buffered::Ordered(other)) => {
                Arc::ptr_eq(&one.shared, &other.shared)
            }
            (Buffered::Hash(one), Buffered::Hash(other)) => Arc::ptr_eq(&one.shared, &other.shared),
            (Buffered::Ordered(_), Buffered::Hash(_))
            | (Buffered::Hash(_), Buffered::Ordered(_)) => false,
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self {
            Buffered::Ordered(table) => table.get(key),
            Buffered::Hash(table) => table.get(key),
        }
    }

    pub(crate) fn len(&self) -> Result<usize> {
        match self {
            Buffered::Ordered(table) => table.len(),
            Buffered::Hash(table) => table.len(),
        }
    }

    /// Some of the entries between bounds, in order, from the end where `direction` begins.
    pub(crate) fn some(
        &self,
        bounds: Bounds<'_>,
        direction: Direction,
        entries_max: usize,
    ) -> Result<Page> {
        let Buffered::Ordered(table) = self else {
            return Err(Error::NoOrder { table: Arc::clone(self.name()) });
        };
        SortedVerbs::page(table, bounds, direction, entries_max)
    }

    /// Refuses a value that a commit could not put, or a key that none could have.
    pub(crate) fn expect_fits(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let any_len = match self {
            Buffered::Hash(table) if table.layout() == RecordLayout::Fixed8 => 8,
            Buffered::Ordered(_) | Buffered::Hash(_) => 0,
        };
        self.expect_lengths(key, value.map_or(any_len, <[u8]>::len))
    }

    /// Refuses what a commit could not put.
    pub(crate) fn expect_lengths(&self, key: &[u8], value_len: usize) -> Result<()> {
        match self {
            Buffered::Ordered(table) => table.named(ChunkMap::expect_lengths(key, value_len)),
            Buffered::Hash(table) => table.named(table.log().expect_lengths(key, value_len)),
        }
    }

    pub(crate) fn refused(&self, refusal: Refusal) -> Error {
        match self {
            Buffered::Ordered(table) => table.refused(refusal),
            Buffered::Hash(table) => table.refused(refusal),
        }
    }

    pub(crate) fn formats(&self) -> Option<&Arc<Formats>> {
        match self {
            Buffered::Ordered(table) => table.formats(),
            Buffered::Hash(table) => table.formats(),
        }
    }

    /// Puts a value, or removes the key.
    pub(crate) fn set(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        match (self, value) {
            (Buffered::Ordered(table), Some(value)) => {
                table.named(table.map_at(key)?.put(key, value).map(drop))
            }
            (Buffered::Ordered(table), None) => {
                table.named(table.map_at(key)?.remove(key).map(drop))
            }
            (Buffered::Hash(table), Some(value)) => table.named(table.log().put(key, value)),
            (Buffered::Hash(table), None) => table.named(table.log().remove(key).map(drop)),
        }
    }

    /// Changes a value, and answers the one that the key had.
    pub(crate) fn exchange(&self, key: &[u8], value: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let mut before = None;
        let decide = |there: Option<&[u8]>| {
            before = there.map(<[u8]>::to_vec);
            match value {
                Some(value) => Compute::Replace(value.to_vec()),
                None => Compute::Remove,
            }
        };
        match self {
            Buffered::Ordered(table) => {
                table.named(table.map_at(key)?.compute(key, decide).map(drop))?
            }
            Buffered::Hash(table) => table.named(table.log().compute(key, decide).map(drop))?,
        }
        Ok(before)
    }
}
