//! Changes that go together, and waiting for what was changed to last.

use std::sync::Arc;
use std::time::Duration;

use sapwood_ptree::Pool;

use super::{Db, Shared};
use crate::{Changes, Error, Result, Transaction, TreeTable};

impl Db {
    /// Begins a transaction over tree tables.
    ///
    /// # Errors
    /// [`Error::Trees`]: the directory is open to be read only, or its disk has failed.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// let tx = db.begin()?;
    /// tx.put(&table, b"k", b"v")?;
    /// tx.commit()?.wait().expect("on the disk");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn begin(&self) -> Result<Transaction<'_>> {
        Transaction::begin(self.shared.trees.pool(self.shared.directory.as_ref())?)
    }

    /// Begins a transaction that has these tables from the beginning: it waits for all of them now,
    /// in an order of its own, so that it meets no conflict with them later.
    ///
    /// # Errors
    /// As [`begin`](Self::begin); tables of another database are refused.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let from = db.create_tree_table("from", TreeTableOptions::default())?;
    /// # let to = db.create_tree_table("to", TreeTableOptions::default())?;
    /// let tx = db.begin_on(&[&to, &from])?;
    /// tx.add(&from, b"k", -1)?;
    /// tx.add(&to, b"k", 1)?;
    /// tx.commit()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn begin_on(&self, tables: &[&TreeTable]) -> Result<Transaction<'_>> {
        Transaction::begin_on(self.shared.trees.pool(self.shared.directory.as_ref())?, tables)
    }

    /// Runs `change` in a transaction over tree tables and commits, or aborts where it fails.
    ///
    /// # Errors
    /// Those of `change`, of [`begin`](Self::begin) and of [`Transaction::commit`].
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// let refused = db.transaction(|tx| {
    ///     tx.put(&table, b"a", b"no number")?;
    ///     tx.add(&table, b"a", 1)
    /// });
    /// assert!(refused.is_err() && table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn transaction<R>(&self, change: impl FnOnce(&Transaction<'_>) -> Result<R>) -> Result<R> {
        let transaction = self.begin()?;
        let done = change(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// Runs `changes`, after which all that they changed in tree tables lasts together: after a crash all
    /// of it is there, or nothing; and so all that they changed in other tables that last. (A crash in
    /// between may leave the one without the other.) Readers see each change when it is made, and nothing
    /// is taken back where `changes` fails or panics. For code that cannot keep a [`Transaction`] in
    /// hand.
    ///
    /// Commits of other threads to tree tables wait for the end, after they are made; so `changes` waits
    /// for no thread that writes. The caller sees to it that no other thread changes the same entries of
    /// other tables meanwhile. No change waits for the disk until the end.
    ///
    /// # Errors
    /// [`Error::Trees`] and [`Error::Log`] where the disk refused.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let accounts = db.create_ordered_table("accounts", OrderedTableOptions::default())?;
    /// let (done, changes) = db.together(|| {
    ///     accounts.add(b"ada", -5)?;
    ///     accounts.add(b"bob", 5)
    /// })?;
    /// done?;
    /// changes.wait()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn together<R>(&self, changes: impl FnOnce() -> R) -> Result<(R, Changes)> {
        let Shared { log, trees, .. } = &*self.shared;
        if let Some(log) = log {
            log.check()?;
        }
        let logged = || match log {
            Some(log) => log.wal().together(changes),
            None => changes(),
        };
        let (done, commit) = match trees.opened() {
            Some(pool) => {
                let (done, commit) = pool.together(logged).map_err(Error::trees)?;
                (done, Some(commit))
            }
            None => (logged(), None),
        };
        if let Some(log) = log {
            // They are appended at the end, and nothing in them could tell that this failed.
            log.check()?;
        }
        let log = log.as_ref().map(|log| (Arc::clone(log), log.wal().told()));
        Ok((done, Changes { log, trees: commit }))
    }

    /// Replaces the time after which changes last that wait for nothing
    /// ([`Durability::Interval`](crate::Durability::Interval)), from the next change on; `None` leaves that
    /// to the system.
    ///
    /// ```
    /// # use sapwood::Db;
    /// # use std::time::Duration;
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// db.set_sync_interval(Some(Duration::from_secs(1)));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn set_sync_interval(&self, interval: Option<Duration>) {
        if let Some(log) = &self.shared.log {
            log.wal().set_sync_interval(interval);
        }
        if let Some(pool) = self.shared.trees.opened() {
            pool.set_sync_interval(interval);
        }
    }

    /// The changes that this thread has made so far to tables that last, to wait for: for a program whose
    /// [`DbOptions::durability`](crate::DbOptions::durability) lets changes go on at once, and that tells
    /// others of them once they last. It may have some of other threads, too.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let orders = db.create_ordered_table("orders", OrderedTableOptions::default())?;
    /// (0..100_u8).try_for_each(|order| orders.put([order], b"an oak"))?;
    /// db.changes().wait()?; // One sync for all.
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn changes(&self) -> Changes {
        let log = self.shared.log.as_ref();
        Changes {
            log: log.map(|log| (Arc::clone(log), log.wal().told())),
            trees: self.shared.trees.opened().map(Pool::last_commit),
        }
    }

    /// Waits until all changes so far survive power loss, of all tables that last.
    ///
    /// # Errors
    /// [`Error::Log`] and [`Error::Trees`] where the disk refused.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// db.create_tree_table("orders", TreeTableOptions::default())?.put(b"1", b"an oak")?;
    /// db.sync()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn sync(&self) -> Result<()> {
        let log = self.shared.log.as_ref().map_or(Ok(()), |log| log.sync());
        let trees = self.shared.trees.opened();
        log.and(trees.map_or(Ok(()), |pool| pool.sync().map_err(Error::trees)))
    }
}
