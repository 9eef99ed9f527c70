//! Transactions, batches, changes that go together, and waiting for what was changed to last.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sapwood_ptree::Unsettled;

use super::Db;
use crate::{Batch, Changes, Error, Result, Retry, Transaction, TreeTable};

#[cfg(doc)]
use crate::LogError;

impl Db {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Error::Log`]: the log takes no changes.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// let tx = db.begin()?;
    /// tx.table(&table).put(b"k", b"v")?;
    /// tx.commit()?.wait().expect("on the disk");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn begin(&self) -> Result<Transaction<'_>> {
        self.home().check()?;
        Ok(Transaction::begin(self.home()))
    }

    /// Begins a transaction that has these tree tables from the beginning: it waits for all of them now,
    /// in an order of its own, so that it meets no conflict with them later.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), and [`Error::Trees`]; tables of another database are refused.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let from = db.create_tree_table("from", TreeTableOptions::default())?;
    /// # let to = db.create_tree_table("to", TreeTableOptions::default())?;
    /// let tx = db.begin_on(&[&to, &from])?;
    /// tx.table(&from).add(b"k", -1)?;
    /// tx.table(&to).add(b"k", 1)?;
    /// tx.commit()?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn begin_on(&self, tables: &[&TreeTable]) -> Result<Transaction<'_>> {
        self.home().check()?;
        Transaction::begin_on(self.home(), tables)
    }

    /// Runs `change` in a transaction and commits, or aborts where it fails. Where it meets a conflict it is
    /// run again, as [`Retry::default`] says; so `change` does nothing beside that must not be done twice.
    ///
    /// # Errors
    /// Those of `change`, of [`begin`](Self::begin) and of [`Transaction::commit`].
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// # let counts = db.create_hash_table("counts", HashTableOptions::default())?;
    /// let refused = db.transaction(|tx| {
    ///     tx.table(&counts).add(b"puts", 1)?;
    ///     tx.table(&table).put(b"a", b"no number")?;
    ///     tx.table(&table).add(b"a", 1)
    /// });
    /// assert!(refused.is_err() && table.is_empty()? && counts.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn transaction<R>(&self, change: impl FnMut(&Transaction<'_>) -> Result<R>) -> Result<R> {
        self.transaction_with(Retry::default(), change)
    }

    /// As [`transaction`](Self::transaction), run again as often as `retry` says.
    ///
    /// # Errors
    /// As [`transaction`](Self::transaction); the last conflict, where there was one each time.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions, Retry};
    /// # let db = Db::in_memory();
    /// # let table = db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// let mut runs = 0;
    /// let met = db.transaction_with(Retry::times(3), |tx| {
    ///     runs += 1;
    ///     let read = tx.table(&table).get_counter(b"k")?;
    ///     table.add(b"k", 1)?; // Another thread, say.
    ///     tx.table(&table).put(b"sum", read.unwrap_or(0).to_le_bytes())
    /// });
    /// assert!(met.unwrap_err().is_conflict());
    /// assert_eq!(runs, 4);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn transaction_with<R>(
        &self,
        retry: Retry,
        mut change: impl FnMut(&Transaction<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut attempt = 0;
        let mut turn = None;
        loop {
            let began = Instant::now();
            let mut used = Vec::new();
            let mut run = || -> Result<R> {
                let transaction = self.begin()?;
                let done = change(&transaction);
                if Retry::has_turn(attempt + 1) {
                    used = transaction.stripes();
                }
                let done = done?;
                transaction.commit()?;
                Ok(done)
            };
            let done = run();
            drop(turn.take());
            let took = began.elapsed();
            match done {
                Err(error) if error.is_conflict() && retry.pause(attempt) => attempt += 1,
                done => return done,
            }
            if !used.is_empty() {
                turn = self.home().versions().take_turn(used, took * 4);
            }
        }
    }

    /// A batch of puts and removals that take effect together.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// let mut batch = db.batch();
    /// batch.put(&table, b"a", b"1")?;
    /// batch.put(&table, b"b", b"2")?;
    /// batch.commit()?;
    /// assert_eq!(table.len()?, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self.home())
    }

    /// Runs `changes`, after which all that they changed lasts together: after a crash all of it is there, or
    /// nothing. Readers see each change when it is made, and nothing is taken back where `changes` fails or
    /// panics. For code that cannot keep a [`Transaction`] in hand.
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
        let (log, trees) = (&self.home().log, self.home().opened_pool());
        if let Some(log) = log {
            log.check()?;
        }
        let of_trees = || match trees {
            Some(pool) => pool.together_unsettled(changes).map(|(done, end)| (done, Some(end))),
            None => Ok((changes(), None)),
        };
        // Within those of the log, whose record the commits to trees end.
        let done = match log {
            Some(log) => log.wal().together(of_trees),
            None => of_trees(),
        };
        let (done, unsettled) = done.map_err(Error::trees)?;
        if let Some(log) = log {
            // They are appended at the end, and nothing in them could tell that this failed.
            log.check()?;
        }
        let commit = unsettled.map(Unsettled::settle).transpose().map_err(Error::trees)?;
        let log = log.as_ref().map(|log| (Arc::clone(log), log.wal().told()));
        Ok((done, Changes { log, trees: commit }))
    }

    /// Runs `changes`, for which the log keeps room beforehand: for so many, whose keys and values
    /// have so many bytes together. A full disk refuses them here, and none of them later; what
    /// they need beyond that is refused, or not, by itself.
    ///
    /// # Errors
    /// [`Error::Log`] with [`LogError::NoRoom`]: `changes` has not run.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let accounts = db.create_hash_table("accounts", HashTableOptions::default())?;
    /// db.with_room(2 * (3 + 8), 2, || {
    ///     accounts.add(b"ada", -5)?;
    ///     accounts.add(b"bob", 5)
    /// })??;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn with_room<R>(
        &self,
        bytes: usize,
        count: usize,
        changes: impl FnOnce() -> R,
    ) -> Result<R> {
        match self.home().log() {
            None => Ok(changes()),
            Some(log) => {
                let _room = log.wal().room(bytes, count).map_err(|cause| log.named(cause))?;
                Ok(changes())
            }
        }
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
        if let Some(log) = &self.home().log {
            log.wal().set_sync_interval(interval);
        }
        if let Some(pool) = self.home().opened_pool() {
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
        self.home().changes()
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
        let log = self.home().log.as_ref().map_or(Ok(()), |log| log.sync());
        let trees = self.home().opened_pool();
        log.and(trees.map_or(Ok(()), |pool| pool.sync().map_err(Error::trees)))
    }
}
