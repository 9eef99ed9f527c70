//! The typed columns of a table, as all its handles see them.
//!
//! A chain of row formats, one for each version of the schema since the table was opened. Formats are added at
//! its end and never taken away, so that a reader borrows one without a lock and without a count.
//!
//! # Thread safety
//!
//! | word | written | read |
//! |---|---|---|
//! | `Version::wider` | once, under the lock on the table's name | by any thread, at any time |
//! | `counter` | set once, under `counting`; then by `fetch_update`, `fetch_max` | by threads that put numbered rows |
//!
//! A thread that meets a row meets its format in the chain, too: the format was added before a row of
//! it could be put, and the engine orders the put before what reads the row.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sapwood_wal::{Cut, Layout};

use crate::Result;
use crate::schema::{RowCut, RowFormat, Schema};

/// The formats of a table's rows, and the number of the next row.
#[derive(Debug)]
pub struct Formats {
    first: Version,
    /// A number that no row has, and none above it; absent before it is first needed.
    counter: OnceLock<AtomicU64>,
    /// Locked while the counter is found.
    counting: Mutex<()>,
}

/// The formats of a table; none in a table of plain bytes. Set before a program has the table.
pub(crate) type FormatsCell = Arc<OnceLock<Arc<Formats>>>;

#[derive(Debug)]
struct Version {
    format: RowFormat,
    wider: OnceLock<Box<Version>>,
}

impl Version {
    fn of(schema: Schema) -> Version {
        Version { format: RowFormat::new(schema), wider: OnceLock::new() }
    }
}

impl Formats {
    pub(crate) fn new(schema: Schema) -> Formats {
        Formats { first: Version::of(schema), counter: OnceLock::new(), counting: Mutex::default() }
    }

    /// The format that rows are written in now. It reads all rows that this thread has met.
    #[inline]
    pub(crate) fn newest(&self) -> &RowFormat {
        &self.last().format
    }

    /// Adds a version of the schema. The caller holds the lock on the table's name.
    pub(crate) fn widen(&self, schema: Schema) {
        let added = self.last().wider.set(Box::new(Version::of(schema)));
        assert!(added.is_ok(), "the name of the table is locked");
    }

    fn last(&self) -> &Version {
        let mut version = &self.first;
        while let Some(wider) = version.wider.get() {
            version = wider;
        }
        version
    }

    /// The counter of row numbers. `largest` finds the largest number in the table: once, before the first
    /// row is put whose number the counter gives.
    pub(crate) fn counter(
        &self,
        largest: impl FnOnce() -> Result<Option<u64>>,
    ) -> Result<&AtomicU64> {
        if let Some(counter) = self.counter.get() {
            return Ok(counter);
        }
        let _counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = self.counter.get() {
            return Ok(counter);
        }
        let next = largest()?.map_or(FIRST_NUMBER, |largest| largest.saturating_add(1));
        Ok(self.counter.get_or_init(|| AtomicU64::new(next)))
    }
}

/// Rows are cut by the columns that the table has when they are read: columns that come later only add to them.
impl Cut for Formats {
    fn cut(&self, key: &[u8], value: &[u8], lens: &mut Vec<u32>) -> Option<Layout> {
        let RowCut { version, key_pieces } = self.newest().cut(key, value, lens)?;
        Some(Layout { number: version.into(), key_pieces })
    }
}

/// The number of the first row.
pub(crate) const FIRST_NUMBER: u64 = 1;

/// Takes so many numbers that no row has: the first of them, or none if there are not so many.
pub(crate) fn take_numbers(counter: &AtomicU64, count: u64) -> Option<u64> {
    // Relaxed: the numbers alone must differ. Rows are ordered by the engine.
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(count)).ok()
}

/// Lets the counter give none of the numbers up to this one.
pub(crate) fn pass_number(counter: &AtomicU64, number: u64) {
    // Relaxed: as in `take_numbers`.
    counter.fetch_max(number.saturating_add(1), Ordering::Relaxed);
}
