//! Roll-up tables in the log: their batches go there, and what is sealed is their checkpoint.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sapwood_rollup::{BatchLog, Rollup};
use sapwood_wal::{Checkpoints, Contents, RECORDS, Records, TableId, Wal};

use super::{DbLog, Description, Kept};
use crate::rollup::Schema;
use crate::{Error, LogError, Result};

/// The roll-ups that are open.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenRollups(Arc<Mutex<Vec<Weak<Rollup>>>>);

impl OpenRollups {
    fn push(&self, rollup: &Arc<Rollup>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|known| known.strong_count() > 0);
        open.push(Arc::downgrade(rollup));
    }

    /// Merges small segments.
    pub(super) fn merge(&self) {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for rollup in open.iter().filter_map(Weak::upgrade) {
            // Segments that cannot be merged stay as they are; their table gives the reason at the
            // next seal or query.
            while matches!(rollup.merge(), Ok(true)) {}
        }
    }
}

/// The log, as a roll-up uses it.
#[derive(Debug)]
struct Batches {
    records: Records,
    /// The roll-up does not keep it open.
    wal: Weak<Wal>,
}

impl BatchLog for Batches {
    fn append(&self, record: &[u8]) -> io::Result<()> {
        self.records.append(record)
    }

    fn sync(&self) -> io::Result<()> {
        self.records.sync()
    }

    fn apart(&self, work: &mut dyn FnMut()) -> io::Result<()> {
        match self.wal.upgrade() {
            Some(wal) => wal.apart(work).map_err(io::Error::other),
            None => Err(io::Error::other("the log is closed")),
        }
    }
}

/// A table that is open. Its number is that of the last batch in its segments.
#[derive(Debug)]
struct Open {
    rollup: Arc<Rollup>,
    wal: Weak<Wal>,
}

impl Checkpoints for Open {
    fn checkpoint(&self) -> sapwood_wal::Result<u64> {
        let refused = |why: &dyn std::fmt::Display| LogError::Contents { why: why.to_string() };
        let Some(wal) = self.wal.upgrade() else {
            return Err(refused(&"the log is being closed"));
        };
        wal.apart(|| self.rollup.cut())?.map_err(|cause| refused(&cause))?;
        self.rollup.seal_cut().map_err(|cause| refused(&cause))?;
        Ok(self.rollup.sealed_batches())
    }
}

/// A table that is being made, without batches.
#[derive(Debug)]
struct Making;

impl Checkpoints for Making {
    fn checkpoint(&self) -> sapwood_wal::Result<u64> {
        Ok(0)
    }
}

/// What the log has of roll-up tables.
impl DbLog {
    /// A number for a table that is to be made, by which its folder is named.
    pub(crate) fn reserve_rollup(&self) -> TableId {
        self.wal.reserve()
    }

    /// Notes a table that is made, and whose folder is there.
    pub(crate) fn create_rollup(
        self: &Arc<DbLog>,
        id: TableId,
        name: &Arc<str>,
        rollup: Rollup,
    ) -> Result<(Arc<Rollup>, Kept)> {
        let described = self.describe(name, rollup.schema())?;
        let made = Contents::Checkpoints(Arc::new(Making));
        let noted = self.wal.create_table(id, RECORDS, described.as_bytes(), made);
        noted.map_err(|cause| self.named(cause))?;
        Ok(self.open_rollup(id, Arc::new(rollup)))
    }

    fn describe(&self, name: &Arc<str>, schema: &Schema) -> Result<String> {
        let schema = schema.to_json();
        let schema = schema.map_err(|cause| Error::Rollup { table: Arc::clone(name), cause })?;
        Ok(Description::Rollup { name: name.to_string(), schema }.encode())
    }

    /// Lets a table, of which the log has told all, append its batches.
    pub(crate) fn open_rollup(
        self: &Arc<DbLog>,
        id: TableId,
        rollup: Arc<Rollup>,
    ) -> (Arc<Rollup>, Kept) {
        let rollup = match self.is_logged {
            true => {
                let wal = Arc::downgrade(&self.wal);
                rollup.with_log(Arc::new(Batches { records: self.wal.records(id), wal }))
            }
            false => rollup,
        };
        let open = Open { rollup: Arc::clone(&rollup), wal: Arc::downgrade(&self.wal) };
        self.wal.adopt(id, Contents::Checkpoints(Arc::new(open)));
        self.rollups.push(&rollup);
        (rollup, Kept::logged(self, id))
    }
}
