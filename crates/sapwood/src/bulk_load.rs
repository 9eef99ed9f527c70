//! Loading an ordered table from entries in the order of their keys.
//!
//! ```text
//! caller: push ── batches ──> a thread: writes a checkpoint, in which the table has these entries
//! ```

use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::db::ToLoad;
use crate::db_log::Loading;
use crate::ordered_table::Source;
use crate::{
    Db, Error, KEY_BYTES_MAX, LogError, OrderedEngineError, OrderedTable, OrderedTableOptions,
    Result, VALUE_BYTES_MAX,
};

/// Bytes and entries that are handed over together.
const BATCH_BYTES: usize = 256 << 10;
const BATCH_ENTRIES: usize = 8 << 10;
/// Batches that wait for the thread.
const WAITING: usize = 4;

/// An ordered table that is being loaded ([`Db::bulk_load`]).
#[derive(Debug)]
pub struct BulkLoad {
    db: Db,
    table: OrderedTable,
    /// The greatest key so far; empty before the first.
    last: Vec<u8>,
    batch: Batch,
    to: To,
    is_finished: bool,
}

#[derive(Debug)]
enum To {
    Puts,
    /// The end of the batches is none.
    Checkpoint(SyncSender<Option<Batch>>, JoinHandle<Result<()>>, Loading),
    Ended,
}

#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each key ends, and each value.
    ends: Vec<(usize, usize)>,
}

impl Batch {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES || self.ends.len() >= BATCH_ENTRIES
    }

    fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut begin = 0;
        self.ends.iter().map(move |&(key_end, end)| {
            let entry = (&self.bytes[begin..key_end], &self.bytes[key_end..end]);
            begin = end;
            entry
        })
    }
}

impl Db {
    /// Makes a table that is loaded from entries in the order of their keys, each key once: straight into a checkpoint,
    /// without a log and without memory for them, about as fast as the disk takes them. Until the load is
    /// [finished](BulkLoad::finish), the table answers [`Error::Loading`], and checkpoints of the database wait; a load
    /// that is dropped before leaves no table. The thread that loads is refused what would wait for itself: a checkpoint,
    /// a backup, closing the database. A table in memory, one with a memory budget, and one that is loaded beside another
    /// are loaded by puts.
    ///
    /// The table is used as one of a database that is opened [lazily](crate::DbOptions::lazy): gets and scans read what
    /// they need, and what needs the table as a whole, as neighbours and ranges, brings all of it into memory.
    ///
    /// # Errors
    /// As of [`create_ordered_table`](Self::create_ordered_table).
    ///
    /// ```
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let mut load = db.bulk_load("squares", OrderedTableOptions::default())?;
    /// for number in 0..100_000_u64 {
    ///     load.push(number.to_be_bytes(), (number * number).to_le_bytes())?;
    /// }
    /// let squares = load.finish()?; // It survives power loss from here on.
    /// assert_eq!(squares.len()?, 100_000);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn bulk_load(&self, name: &str, options: OrderedTableOptions) -> Result<BulkLoad> {
        let (table, to) = match self.create_to_load(name, &options)? {
            None => (self.create_ordered_table(name, options)?, To::Puts),
            Some(ToLoad { table, log, id, stored, loading }) => {
                let (sender, batches) = sync_channel(WAITING);
                let write = move || {
                    let loaded = |snapshot| stored.fill(Source::new(snapshot));
                    log.load(id, |entry| tell(&batches, entry), loaded)
                };
                (table, To::Checkpoint(sender, thread::spawn(write), loading))
            }
        };
        let (db, last, batch) = (self.clone(), Vec::new(), Batch::default());
        Ok(BulkLoad { db, table, last, batch, to, is_finished: false })
    }
}

impl BulkLoad {
    /// Takes the next entry.
    ///
    /// # Errors
    /// [`Error::KeyOrder`] of a key that does not come behind the one before it, and [`Error::OrderedEngine`] of a key or a
    /// value that no table has: the entry is left out. Where no more can be written, [`Error::Log`], and for a table
    /// that is loaded by puts those of [`put`](OrderedTable::put).
    ///
    /// ```
    /// # use sapwood::{Db, Error, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let db = Db::open(directory.path())?;
    /// let mut load = db.bulk_load("trees", OrderedTableOptions::default())?;
    /// load.push("elm", "ulmus")?;
    /// assert!(matches!(load.push("ash", "fraxinus"), Err(Error::KeyOrder { .. })));
    /// load.push("oak", "quercus")?;
    /// assert_eq!(load.finish()?.len()?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn push(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let refused = |cause| {
            let table = self.table.name().into();
            Err(Error::OrderedEngine { table, cause })
        };
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            return refused(OrderedEngineError::KeyLength { len: key.len() });
        }
        if value.len() > VALUE_BYTES_MAX {
            return refused(OrderedEngineError::ValueLength { len: value.len() });
        }
        if *self.last >= *key {
            return Err(Error::KeyOrder { name: self.table.name().to_owned() });
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.batch.push(key, value);
        match self.batch.is_full() {
            true => self.hand_over(),
            false => Ok(()),
        }
    }

    fn hand_over(&mut self) -> Result<()> {
        let batch = mem::take(&mut self.batch);
        match &self.to {
            To::Puts => {
                let entries: Vec<_> = batch.entries().collect();
                self.table.put_many(&entries)
            }
            To::Checkpoint(sender, ..) => match sender.send(Some(batch)) {
                Ok(()) => Ok(()),
                // The thread has ended: it says why.
                Err(_) => self.end(),
            },
            To::Ended => Err(Error::Loading { name: self.table.name().to_owned() }),
        }
    }

    /// Waits for the thread.
    fn end(&mut self) -> Result<()> {
        match mem::replace(&mut self.to, To::Ended) {
            To::Puts | To::Ended => Ok(()),
            To::Checkpoint(sender, writing, _loading) => {
                drop(sender);
                // It has told why it panicked.
                let ended = Error::Loading { name: self.table.name().to_owned() };
                writing.join().unwrap_or(Err(ended))
            }
        }
    }

    /// Waits until the checkpoint is written, and gives the table.
    ///
    /// # Errors
    /// [`Error::Log`]: there is no table then. As of [`push`](Self::push).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// let mut load = db.bulk_load("trees", OrderedTableOptions::default())?;
    /// load.push("oak", "quercus")?;
    /// assert_eq!(load.finish()?.get("oak")?.as_deref(), Some(&b"quercus"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn finish(mut self) -> Result<OrderedTable> {
        // Its end waits for those that go together.
        self.db.expect_apart()?;
        self.hand_over()?;
        if let To::Checkpoint(sender, ..) = &self.to {
            // Where the thread has ended, it says why.
            let _ended = sender.send(None);
            self.end()?;
        }
        self.is_finished = true;
        Ok(self.table.clone())
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        if !self.is_finished {
            // What it says is of entries that are given up.
            let _given_up = self.end();
            let _was_dropped = self.db.drop_loaded(&self.table);
        }
    }
}

/// Tells the entries of all batches.
fn tell(
    batches: &Receiver<Option<Batch>>,
    entry: &mut dyn FnMut(&[u8], &[u8]) -> sapwood_wal::Result<()>,
) -> sapwood_wal::Result<()> {
    loop {
        match batches.recv() {
            Ok(Some(batch)) => batch.entries().try_for_each(|(key, value)| entry(key, value))?,
            Ok(None) => return Ok(()),
            Err(_) => return Err(LogError::Contents { why: "the load was given up".to_owned() }),
        }
    }
}
