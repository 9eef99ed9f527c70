//! Changes without reads, which take effect together.

use super::buffered::Buffered;
use super::pending::{Writes, commit};
use crate::home::Home;
use crate::tree_table::TreeTransaction;
use crate::{Changes, Error, Result, Retry, TableRef, TreeTable};

#[cfg(doc)]
use super::Transaction;

/// Puts and removals in any tables of a database that take effect together, at
/// [`commit`](Self::commit), or not at all. [`Db::batch`](crate::Db::batch) makes it; one that is dropped changes nothing.
///
/// The last change of a key counts. For transactions and after a crash a batch is what a [`Transaction`]
/// is that reads nothing; it waits for others, and meets no conflict that its caller sees.
///
/// ```
/// use sapwood::{Db, HashTableOptions, OrderedTableOptions};
///
/// let db = Db::in_memory();
/// let users = db.create_hash_table("users", HashTableOptions::default())?;
/// let by_name = db.create_ordered_table("by_name", OrderedTableOptions::default())?;
///
/// let mut batch = db.batch();
/// batch.put(&users, b"7", b"ada")?;
/// batch.put(&by_name, b"ada", b"7")?;
/// batch.commit()?;
/// assert_eq!(users.get(b"7")?.as_deref(), Some(&b"ada"[..]));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is changed before it is committed"]
pub struct Batch<'db> {
    home: &'db Home,
    writes: Writes,
    trees: Vec<(TreeTable, Vec<u8>, Option<Vec<u8>>)>,
}

impl<'db> Batch<'db> {
    pub(crate) fn new(home: &'db Home) -> Batch<'db> {
        Batch { home, writes: Writes::default(), trees: Vec::new() }
    }

    /// Puts a value.
    ///
    /// # Errors
    /// `KeyLength` and `ValueLength` of an ordered table's or a hash table's engine;
    /// [`Error::OtherDatabase`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// let mut batch = db.batch();
    /// batch.put(&table, b"k", b"v")?;
    /// assert_eq!(table.get(b"k")?, None); // Not committed yet.
    /// batch.commit()?;
    /// assert_eq!(table.get(b"k")?.as_deref(), Some(&b"v"[..]));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn put<'t>(
        &mut self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.set(table.into(), key.as_ref(), Some(value.as_ref().to_vec()))
    }

    /// Removes a key, if it is there.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// table.put(b"k", b"v")?;
    /// let mut batch = db.batch();
    /// batch.remove(&table, b"k")?;
    /// batch.commit()?;
    /// assert!(table.is_empty()?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn remove<'t>(
        &mut self,
        table: impl Into<TableRef<'t>>,
        key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.set(table.into(), key.as_ref(), None)
    }

    fn set(&mut self, table: TableRef<'_>, key: &[u8], value: Option<Vec<u8>>) -> Result<()> {
        let table = match table {
            TableRef::Tree(table) => {
                self.trees.push((table.clone(), key.to_vec(), value));
                return Ok(());
            }
            TableRef::Ordered(table) => Buffered::Ordered(table.clone()),
            TableRef::Hash(table) => Buffered::Hash(table.clone()),
        };
        if !table.kept().keys.is_among(self.home.versions()) {
            return Err(Error::OtherDatabase { table: table.name().clone() });
        }
        table.expect_fits(key, value.as_deref())?;
        self.writes.set(&table, key, value);
        Ok(())
    }

    /// Makes all changes, durable as far as [`Durability`](crate::Durability) says. The answer waits for
    /// more, if more is wanted.
    ///
    /// # Errors
    /// The errors of [`Transaction::commit`], and of the engine of a tree table; nothing changed, as told there.
    /// [`Error::Conflict`] only where a change of the same keys lasts for long, as that by a closure in which
    /// the batch is committed.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let orders = db.create_hash_table("orders", HashTableOptions::default())?;
    /// let mut batch = db.batch();
    /// batch.put(&orders, b"1", b"an oak")?;
    /// batch.put(&orders, b"2", b"an elm")?;
    /// batch.commit()?.wait()?; // Both survive power loss.
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn commit(self) -> Result<Changes> {
        let Batch { home, writes, trees } = self;
        let mut tables: Vec<&TreeTable> = Vec::new();
        for (table, ..) in &trees {
            if !tables.iter().any(|there| there.tree().id() == table.tree().id()) {
                tables.push(table);
            }
        }
        let begin = || -> Result<Option<TreeTransaction<'db>>> {
            if tables.is_empty() {
                return Ok(None);
            }
            let tx = TreeTransaction::begin_on(home.pool()?, &tables)?;
            for (table, key, value) in &trees {
                match value {
                    Some(value) => tx.put(table, key, value)?,
                    None => drop(tx.remove(table, key)?),
                }
            }
            Ok(Some(tx))
        };
        if writes.is_empty() {
            return home.settle(begin()?.map(TreeTransaction::commit).transpose()?);
        }
        // It reads nothing, and whatever it meets is over soon.
        let patience = Retry::times(1_000);
        let mut attempt = 0;
        let unsettled = loop {
            match commit(home, None, &writes, begin()?) {
                Err(Error::Conflict) if patience.pause(attempt) => attempt += 1,
                done => break done?,
            }
        };
        home.settle(unsettled)
    }
}
