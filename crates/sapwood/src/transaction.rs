//! Transactions over tables of all kinds.
//!
//! | modules, each above those it uses | |
//! |---|---|
//! | `retry` | repetitions after a conflict |
//! | `buffered` | ordered tables and hash tables, whose changes wait for the commit |
//! | `pending` | reads and changes of these, and the commit |
//! | `table` | tables of any kind as a transaction sees them |
//! | `batch` | changes without reads |
//! | `statement` | changes of many entries of a table, each by its value |

mod batch;
mod buffered;
mod pending;
mod retry;
#[cfg(feature = "sql")]
mod statement;
mod table;

use std::cell::{OnceCell, RefCell};

use sapwood_occ::{Reads, Stripe};

use crate::home::Home;
use crate::tree_table::TreeTransaction;
use crate::{Changes, Result, TreeTable};

use pending::{Writes, commit};

pub use batch::Batch;
pub use retry::Retry;
#[cfg(feature = "sql")]
pub(crate) use statement::{Decision, Within};
pub use table::{InTransaction, TransactionTable};

#[cfg(doc)]
use crate::{Error, TreeEngineError};

/// Changes to any tables of a database that take effect together, at [`commit`](Self::commit), or not at
/// all. [`Db::transaction`](crate::Db::transaction) and [`Db::begin`](crate::Db::begin) make it; one that is dropped is aborted.
///
/// # Isolation
///
/// Transactions are serializable, with each other and with every change that is made outside of them: what
/// comes of them is what comes of running them one after the other. All that a transaction reads was so
/// at one moment. Reads outside of transactions are of single keys, and see what a commit does to several
/// keys of ordered tables and hash tables one after the other.
///
/// *Ordered tables and hash tables* are not held: the commit looks whether what was read is still so, and
/// answers [`Error::Conflict`] if not. Changes wait in memory until then. What is looked at are stripes of
/// keys, so that a change of another key is taken for one of this key now and then; after
/// [`len`](crate::Table::len), [`scan`](crate::Table::scan) and the like of such a table any change of any is a conflict. One that
/// met many conflicts has its turn: see [`Retry`].
///
/// *Tree tables* that it reads or changes it has for itself until it ends; other transactions wait, and
/// readers outside see what was there before. Where two could wait for each other, one is refused
/// ([`TreeEngineError::Conflict`]). [`Db::begin_on`](crate::Db::begin_on) takes all of them at once and meets no such conflict.
///
/// # Durability
///
/// The changes of a transaction, in tables of any kind, are one record of the log: after a crash all of it is there, or
/// nothing.
///
/// # Cost
///
/// A read looks again at all reads before it. From the first transaction over an ordered table or a
/// hash table on, each change outside of transactions counts in the stripe of its key, which takes some
/// nanoseconds; a change of unknown keys, as of [`pop_first`](crate::Table::pop_first), counts in all stripes, which
/// takes some microseconds, and a long one lets transactions wait, or meet conflicts, meanwhile.
///
/// A transaction stays in its thread. An operation that is refused changes nothing, and the
/// transaction goes on.
///
/// Source: H. T. Kung, J. T. Robinson, "On Optimistic Methods for Concurrency Control", TODS 1981.
///
/// ```
/// use sapwood::{Db, HashTableOptions, OrderedTableOptions, TreeTableOptions};
///
/// let db = Db::in_memory();
/// let accounts = db.create_hash_table("accounts", HashTableOptions::default())?;
/// let by_day = db.create_ordered_table("by_day", OrderedTableOptions::default())?;
/// let bookings = db.create_tree_table("bookings", TreeTableOptions::default())?;
/// accounts.add(b"ada", 100)?;
///
/// db.transaction(|tx| {
///     let accounts = tx.table(&accounts);
///     if accounts.get_counter(b"ada")?.unwrap_or(0) >= 30 {
///         accounts.add(b"ada", -30)?;
///         accounts.add(b"bob", 30)?;
///         tx.table(&by_day).add(b"2026-11-01", 30)?;
///         tx.table(&bookings).put(b"2026-11-01/1", b"ada bob 30")?;
///     }
///     Ok(())
/// })?;
/// assert_eq!(accounts.get_counter(b"bob")?, Some(30));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug)]
pub struct Transaction<'db> {
    home: &'db Home,
    /// The transaction of tree tables, once one was used.
    tree: OnceCell<TreeTransaction<'db>>,
    pending: RefCell<Pending<'db>>,
}

/// Reads and changes of the other tables.
#[derive(Debug, Default)]
struct Pending<'db> {
    /// Begun with the first use.
    reads: Option<Reads<'db>>,
    writes: Writes,
}

impl<'db> Transaction<'db> {
    pub(crate) fn begin(home: &'db Home) -> Transaction<'db> {
        Transaction { home, tree: OnceCell::new(), pending: RefCell::default() }
    }

    pub(crate) fn begin_on(home: &'db Home, tables: &[&TreeTable]) -> Result<Transaction<'db>> {
        let begun = Transaction::begin(home);
        let tree = TreeTransaction::begin_on(home.pool()?, tables)?;
        Ok(Transaction { tree: OnceCell::from(tree), ..begun })
    }

    /// The stripes of all that it has read, and will change, in ordered tables and hash tables.
    pub(crate) fn stripes(&self) -> Vec<Stripe> {
        let Pending { reads, writes } = &*self.pending.borrow();
        writes.stripes().into_iter().chain(reads.iter().flat_map(Reads::stripes)).collect()
    }

    /// The transaction of the trees, begun if it is not.
    fn tree(&self) -> Result<&TreeTransaction<'db>> {
        if let Some(tx) = self.tree.get() {
            return Ok(tx);
        }
        let tx = TreeTransaction::begin(self.home.pool()?)?;
        Ok(self.tree.get_or_init(|| tx))
    }

    /// Makes all changes visible and durable, as far as [`Durability`](crate::Durability) says. The
    /// answer waits for more, if more is wanted.
    ///
    /// # Errors
    /// [`Error::Conflict`]: what was read is no longer so, or what is to be changed is being changed; run
    /// the transaction again. [`Error::OrderedEngine`] and [`Error::HashEngine`] where a table has no
    /// room; [`Error::Trees`] and [`Error::Log`] where the disk refused. Nothing changed, unless
    /// it is [`Error::HalfMade`], or a sync failed: then the changes are seen, and may last or not.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// let tx = db.begin()?;
    /// tx.table(&table).put(b"k", b"v")?;
    /// tx.commit()?;
    /// assert!(table.contains_key(b"k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn commit(self) -> Result<Changes> {
        let Pending { reads, writes } = self.pending.into_inner();
        let tree = self.tree.into_inner();
        let unsettled = match (reads.is_none() && writes.is_empty(), tree) {
            (true, tree) => tree.map(TreeTransaction::commit).transpose()?,
            (false, tree) => commit(self.home, reads, &writes, tree)?,
        };
        self.home.settle(unsettled)
    }

    /// Forgets all changes, as dropping the transaction does.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let db = Db::in_memory();
    /// # let table = db.create_tree_table("t", TreeTableOptions::default())?;
    /// let tx = db.begin()?;
    /// tx.table(&table).put(b"k", b"v")?;
    /// tx.abort();
    /// assert!(!table.contains_key(b"k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn abort(self) {
        drop(self);
    }
}
