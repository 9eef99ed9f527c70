//! Checkpoints: of all tables, and, of hash tables, which there are and how a table was at one.

use std::sync::Arc;
use std::time::SystemTime;

use super::tables::HashSlot;
use super::{Db, Slot, other_engine};
use crate::{CheckpointInfo, Cut, Error, HashEngineError, HashTable, Result};

/// A checkpoint of a hash table in a directory, as its files tell ([`Db::checkpoints`]).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredCheckpoint {
    /// Its number, higher is newer.
    pub number: u64,
    /// When it was taken, by the time of its file.
    pub taken: Option<SystemTime>,
    /// What it is, or why it does not open.
    pub state: std::result::Result<CheckpointInfo, HashEngineError>,
}

impl Db {
    /// Takes a checkpoint of all tables, while writers go on, after which the log before it goes. It comes
    /// by itself, too ([`DbOptions::checkpoint_bytes`](crate::DbOptions::checkpoint_bytes)); taken before
    /// the end of a program it makes the next opening quick.
    ///
    /// Where one table's checkpoint fails, those of the others are still taken, the log keeps what it has,
    /// and the first error is the answer. A database in memory answers [`Error::NoDirectory`].
    ///
    /// # Errors
    /// [`Error::NoDirectory`] in memory; [`Error::ReadOnly`]; [`Error::HashEngine`] of the first
    /// table whose checkpoint failed; [`Error::Log`]; [`Error::Trees`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let db = Db::open(directory.path())?;
    /// # let table = db.create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// db.checkpoint()?;
    /// assert_eq!(table.checkpoints()?.len(), 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn checkpoint(&self) -> Result<()> {
        match &self.home().directory {
            Some(directory) => {
                directory.expect_writable()?;
                self.checkpoint_all(Cut::Incremental)
            }
            None => Err(Error::NoDirectory),
        }
    }

    /// Takes a checkpoint of all tables, a full one of hash tables, so that opening them is fast, and gives
    /// this handle up. A `Db` that is dropped without it loses nothing: opening it reads the log.
    ///
    /// One that was opened [lazily](crate::DbOptions::lazy) leaves a few changes of ordered tables in the log, where
    /// the next opening finds them as fast; they last all the same.
    ///
    /// Errors are answered as by [`checkpoint`](Self::checkpoint). Other handles of the database
    /// and its tables work on, and keep the directory from being opened again until they are gone. In memory
    /// it does nothing.
    ///
    /// # Errors
    /// As of [`checkpoint`](Self::checkpoint).
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let db = Db::open(directory.path())?;
    /// # let table = db.create_hash_table("t", HashTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// drop(table);
    /// db.close()?;
    /// let table = Db::open(directory.path())?.hash_table("t")?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"v"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn close(self) -> Result<()> {
        match &self.home().directory {
            Some(directory) if !directory.is_read_only() => {
                if let Some(log) = &self.home().log {
                    if log.has_little() && !self.has_changed_hash_table() {
                        return self.sync();
                    }
                    log.begin_close();
                }
                self.checkpoint_all(Cut::Full)
            }
            _ => Ok(()),
        }
    }

    /// Whether a hash table has changes that no checkpoint of it has.
    fn has_changed_hash_table(&self) -> bool {
        self.slots().values().any(|slot| match slot {
            Slot::Hash(slot) => {
                slot.opened().is_some_and(|table| table.log().unchanged_since().is_none())
            }
            Slot::Ordered(_) | Slot::Tree(_) | Slot::Rollup(_) => false,
        })
    }

    fn checkpoint_all(&self, cut: Cut) -> Result<()> {
        let slots: Vec<Slot> = self.slots().values().cloned().collect();
        let mut first = Ok(());
        for slot in slots {
            if let Slot::Hash(slot) = slot
                && let Some(table) = slot.opened()
            {
                first = first.and(table.checkpoint(cut).map(drop));
            }
        }
        if let Some(pool) = self.home().opened_pool() {
            first = first.and(pool.checkpoint().map_err(Error::trees));
        }
        match &self.home().log {
            Some(log) => first.and(log.checkpoint()),
            None => first,
        }
    }

    /// The checkpoints of a hash table, the oldest first, and whether each opens: also of a table
    /// that does not, because its newest checkpoint is damaged. Index images are read whole for it,
    /// but of a table that is open. Nothing is opened and nothing changed.
    ///
    /// ```
    /// use sapwood::{Cut, Db, HashTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let hits = db.create_hash_table("hits", HashTableOptions::default())?;
    /// hits.add(b"/", 1)?;
    /// hits.checkpoint(Cut::Full)?;
    /// let all = db.checkpoints("hits")?;
    /// assert!(all.len() == 1 && all[0].state.is_ok());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoDirectory`](crate::Error::NoDirectory) in memory.
    pub fn checkpoints(&self, name: &str) -> Result<Vec<StoredCheckpoint>> {
        let (name, slot) = self.hash_slot(name)?;
        let listed = slot.checkpoints(&name, self.home().directory.as_ref())?;
        // Another thread may have dropped it meanwhile.
        listed.ok_or_else(|| Self::missing(&self.slots(), &name))
    }

    /// Looks at a hash table as its checkpoint `number` left it, and changes nothing in the
    /// directory. What is put into a view lives in its memory alone, and its checkpoints answer
    /// [`HashEngineError::View`]; [`Db::hash_table_at`] goes on from the checkpoint instead.
    ///
    /// As long as the view lives the table itself cannot be opened; a table that is open already
    /// answers [`Error::TableOpen`](crate::Error::TableOpen).
    ///
    /// # Errors
    /// [`Error::TableOpen`](crate::Error::TableOpen);
    /// [`Error::CheckpointMissing`](crate::Error::CheckpointMissing);
    /// [`Error::NoDirectory`](crate::Error::NoDirectory) in memory; else as [`Db::hash_table`].
    ///
    /// ```
    /// use sapwood::{Cut, Db, HashTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let hits = db.create_hash_table("hits", HashTableOptions::default())?;
    /// hits.add(b"/", 1)?;
    /// let first = hits.checkpoint(Cut::Full)?;
    /// hits.add(b"/", 1)?;
    /// drop(hits);
    /// db.close()?;
    ///
    /// let db = Db::open(directory.path())?;
    /// let view = db.hash_table_view("hits", first.number)?;
    /// assert_eq!(view.get(b"/")?, Some(1_i64.to_le_bytes().to_vec()));
    /// drop(view);
    /// assert_eq!(db.hash_table("hits")?.get(b"/")?, Some(2_i64.to_le_bytes().to_vec()));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn hash_table_view(&self, name: &str, number: u64) -> Result<HashTable> {
        let (name, slot) = self.hash_slot(name)?;
        let view = slot.view(&name, number, self.home().directory.as_ref())?;
        // Another thread may have dropped it meanwhile.
        let view = view.ok_or_else(|| Self::missing(&self.slots(), &name))?;
        self.give_schema(&view);
        Ok(view)
    }

    pub(super) fn hash_slot(&self, name: &str) -> Result<(Arc<str>, Arc<HashSlot>)> {
        let slots = self.slots();
        match slots.get_key_value(name) {
            Some((name, Slot::Hash(slot))) => Ok((Arc::clone(name), Arc::clone(slot))),
            Some((_, slot)) => Err(other_engine(name, slot)),
            None => Err(Self::missing(&slots, name)),
        }
    }
}
