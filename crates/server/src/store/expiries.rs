//! Keys by the end of their time, in an ordered table.
//!
//! An entry says that a key may end then: a value that was written since has another end, or none,
//! and its entry is passed over when its time comes. Writers only add entries, after the value is
//! there. When the table has doubled since it was looked through last, or since it was shortest, the
//! entries that no value agrees with are taken out, so that a key that is written again and again holds few.
//!
//! An entry is taken out before its value is looked at, and put back if they agree: so none is lost
//! that a writer adds at that moment.

use std::sync::atomic::{AtomicUsize, Ordering};

use sapwood::{OrderedTable, Result};

use crate::store::format::Millis;

/// Entries below which the table is not looked through.
const SWEPT_MIN: usize = 4096;

/// The table of ends.
#[derive(Debug)]
pub(crate) struct Expiries {
    table: OrderedTable,
    /// Entries that were left when the table was looked through last, or fewer that it had since.
    left: AtomicUsize,
}

impl Expiries {
    pub(crate) fn new(table: OrderedTable) -> Expiries {
        Expiries { table, left: AtomicUsize::new(0) }
    }

    pub(crate) fn add(&self, time: Millis, stored_key: &[u8]) -> Result<()> {
        self.table.put(entry(time, stored_key), [])
    }

    /// The end that comes first.
    pub(crate) fn first(&self) -> Result<Option<Millis>> {
        Ok(self.table.first()?.and_then(|entry| time_of(entry.key())))
    }

    /// Takes the first entry out if its time has come.
    pub(crate) fn pop(&self, now: Millis) -> Result<Option<(Millis, Vec<u8>)>> {
        if self.first()?.is_none_or(|time| time > now) {
            return Ok(None);
        }
        // Entries that came since lie before it, or behind it: this one's time has come, too.
        Ok(self.table.pop_first()?.and_then(|(mut entry, _)| {
            let time = time_of(&entry)?;
            entry.drain(..8);
            Some((time, entry))
        }))
    }

    /// Tells if the table has doubled since it was looked through, or was shortest.
    pub(crate) fn wants_sweep(&self) -> bool {
        let len = self.table.len_estimate();
        // Relaxed: one thread sweeps.
        let left = self.left.fetch_min(len, Ordering::Relaxed).min(len);
        len > SWEPT_MIN.max(2 * left)
    }

    /// Takes out entries that `agrees` denies, `count` at most, behind `from`; answers where to go
    /// on, or `None` at the end.
    pub(crate) fn sweep(
        &self,
        from: &[u8],
        count: usize,
        mut agrees: impl FnMut(Millis, &[u8]) -> Result<bool>,
    ) -> Result<Option<Vec<u8>>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let mut keys = Vec::with_capacity(count);
        for entry in self.table.range((Excluded(from), Unbounded)).take(count) {
            keys.push(entry?.key().to_vec());
        }
        for key in &keys {
            if let Some(time) = time_of(key)
                && !agrees(time, &key[8..])?
            {
                self.table.remove(key)?;
                if agrees(time, &key[8..])? {
                    self.table.put(key, [])?;
                }
            }
        }
        let last = keys.pop();
        if last.is_none() {
            self.left.store(self.table.len_estimate(), Ordering::Relaxed);
        }
        Ok(last)
    }

    pub(crate) fn table(&self) -> &OrderedTable {
        &self.table
    }
}

fn entry(time: Millis, stored_key: &[u8]) -> Vec<u8> {
    [&time.to_be_bytes(), stored_key].concat()
}

fn time_of(entry: &[u8]) -> Option<Millis> {
    Some(u64::from_be_bytes(*entry.first_chunk()?))
}
