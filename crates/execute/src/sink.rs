//! Sinks: what takes the objects of a run in.

use sapwood_aggregate::{Collector, Fold, QueryError};
use sapwood_engine::ColumnBatch;

/// What takes objects in.
pub trait Sink: Send {
    /// An object that may be selected.
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError>;
    /// An object that is.
    fn push_selected(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError>;
    /// Objects that may be selected, by columns.
    fn push_batch(&mut self, batch: &ColumnBatch<'_>) -> Result<(), QueryError>;
    /// Objects that are, by columns.
    fn push_batch_selected(&mut self, batch: &ColumnBatch<'_>) -> Result<(), QueryError>;
}

impl Sink for Fold<'_> {
    #[inline]
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Fold::push(self, key, value)
    }

    #[inline]
    fn push_selected(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Fold::push_selected(self, key, value)
    }

    #[inline]
    fn push_batch(&mut self, batch: &ColumnBatch<'_>) -> Result<(), QueryError> {
        Fold::push_batch(self, batch)
    }

    #[inline]
    fn push_batch_selected(&mut self, batch: &ColumnBatch<'_>) -> Result<(), QueryError> {
        Fold::push_batch_selected(self, batch)
    }
}

impl Sink for Collector<'_> {
    #[inline]
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Collector::push(self, key, value);
        Ok(())
    }

    #[inline]
    fn push_selected(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Collector::push_selected(self, key, value, None);
        Ok(())
    }

    #[inline]
    fn push_batch(&mut self, batch: &ColumnBatch<'_>) -> Result<(), QueryError> {
        Collector::push_batch(self, batch);
        Ok(())
    }

    #[inline]
    fn push_batch_selected(&mut self, batch: &ColumnBatch<'_>) -> Result<(), QueryError> {
        Collector::push_batch_selected(self, batch);
        Ok(())
    }
}
