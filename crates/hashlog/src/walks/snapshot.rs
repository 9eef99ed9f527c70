//! Walks that a caller holds on to: of one moment, or of the live log.

use std::ops::ControlFlow;

use sapwood_engine::{Columns, broken_off, keep_break};

use crate::error::{Error, Result};
use crate::ops::by_layout;
use crate::ops::store::Store;
use crate::options::Layout;
use crate::walks::VisitEntry;
use crate::walks::by_log::Moment;
use crate::walks::columns::ColumnScan;

/// All entries as they were at one moment. Threads share it.
pub struct Snapshot<'a> {
    pub(crate) moment: Moment<'a>,
    pub(crate) store: &'a Store,
}

impl Snapshot<'_> {
    /// Visits the entries in log order, until `visit` breaks.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corrupt`] for records on the disk.
    pub fn scan<B>(
        &self,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.scan_part(0, 1, visit)
    }

    /// Part `part` of `parts` disjoint parts of [`Snapshot::scan`], for as many threads.
    ///
    /// # Errors
    /// As [`Snapshot::scan`]; [`Error::Argument`] if `part` is not below `parts`.
    pub fn scan_part<B>(
        &self,
        part: usize,
        parts: usize,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        check_part(part, parts)?;
        keep_break(|broken| {
            self.walk_part((part, parts), &mut |key, value| broken_off(visit(key, value), broken))
        })
    }

    fn walk_part(&self, part: (usize, usize), visit: VisitEntry<'_>) -> Result<ControlFlow<()>> {
        let mut visit = |_, key: &[u8], value: &[u8]| visit(key, value);
        by_layout!(self, F => self.store.scan::<F, ()>(&self.moment, part, &mut visit))
    }

    /// The same walk by batches: columns of many entries at once, several times as fast. `None`
    /// unless the layout is [`Layout::Fixed8`].
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use sapwood_hashlog::{Columns, HashLog, Layout, Options};
    ///
    /// let mut options = Options::default();
    /// options.layout = Layout::Fixed8;
    /// let log = HashLog::in_memory(options)?;
    /// for key in 0..5_000_u64 {
    ///     log.put(&key.to_le_bytes(), &2_u64.to_le_bytes())?;
    /// }
    /// let snapshot = log.snapshot()?;
    /// let walk = snapshot.by_columns(Columns::Values).expect("records of fixed length");
    /// let mut sum = 0;
    /// let _all = walk.scan(|batch| {
    ///     let values = batch.values().words().expect("values of 8 bytes");
    ///     sum += values.iter().map(|value| u64::from_le_bytes(*value)).sum::<u64>();
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(sum, 10_000);
    /// # Ok::<(), sapwood_hashlog::Error>(())
    /// ```
    pub fn by_columns(&self, columns: Columns) -> Option<ColumnScan<'_>> {
        let fixed = self.store.options.layout == Layout::Fixed8;
        fixed.then_some(ColumnScan { snapshot: self, columns })
    }

    pub(crate) fn moment(&self) -> (&Store, &Moment<'_>) {
        (self.store, &self.moment)
    }
}

/// A walk of all entries, each as it is when it is visited. Threads share it.
pub struct Sweep<'a>(pub(crate) Snapshot<'a>);

impl Sweep<'_> {
    /// Visits part `part` of `parts` disjoint parts of the entries in log order, until `visit`
    /// breaks.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corrupt`] for records on the disk; [`Error::Argument`] if `part`
    /// is not below `parts`.
    pub fn scan_part<B>(
        &self,
        part: usize,
        parts: usize,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.0.scan_part(part, parts, visit)
    }

    /// The same walk by batches, as [`Snapshot::by_columns`].
    pub fn by_columns(&self, columns: Columns) -> Option<ColumnScan<'_>> {
        self.0.by_columns(columns)
    }
}

impl std::fmt::Debug for Sweep<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sweep").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

/// Refuses a part that is not there.
pub(crate) fn check_part(part: usize, parts: usize) -> Result<()> {
    if part < parts {
        return Ok(());
    }
    let why = format!("there is no part {part} of {parts}: parts are numbered from 0");
    Err(Error::Argument(why))
}
