//! The table type: one handle and one set of verbs for every engine.
//!
//! An engine implements [`Verbs`] over its own handle; the methods here are the same for all. They are
//! generic in the engine, so that the quick half of an operation becomes part of the caller's code.

mod entry;
mod key_entry;
mod paged;
mod query;
mod range;
mod read;
mod stats;
mod verbs;
mod visit;
mod walk;
mod write;

use std::fmt;
use std::sync::Arc;

use crate::formats::Formats;
use crate::schema::{RowFormat, Schema};
use crate::{Durability, Error, Result};

pub use entry::Entry;
pub use key_entry::KeyEntry;
pub(crate) use paged::Paged;
pub(crate) use query::operations;
pub use range::{Keys, Range};
pub use stats::{TableStats, TreePoolStats, TreeStats};
pub(crate) use verbs::{Bounds, Nearest, Page, Refusal, SortedVerbs, StoredVerbs, Verbs};
pub use verbs::{Keyed, Sorted, Stored};
pub use visit::Visit;

/// A named table from byte keys to byte values, kept by the engine `E`.
///
/// | type | engine | keys | values |
/// |---|---|---|---|
/// | [`OrderedTable`](crate::OrderedTable) | [`Ordered`](crate::Ordered) | 1 byte to 64 KiB, in byte order | to 256 MiB, in memory |
/// | [`HashTable`](crate::HashTable) | [`Hash`](crate::Hash) | 1 byte to 16 KiB, no order | to a page of the log, in memory and on the disk |
/// | [`TreeTable`](crate::TreeTable) | [`Tree`](crate::Tree) | any, in byte order | any, in a crash-safe heap |
/// | [`AnyTable`](crate::AnyTable) | [`Any`](crate::Any) | those of the engine that it turns out to have | |
/// | [`TransactionTable`](crate::TransactionTable) | any, seen by a [`Transaction`](crate::Transaction) | | |
///
/// The verbs of single keys ([`Keyed`]) are those of all engines. Neighbours, ranges and ranks ([`Sorted`])
/// are those of engines with order. Aggregates and statistics ([`Stored`]) are those of the table itself, not of
/// a transaction's view. The options of each engine say what only it can do.
///
/// A `Table` is a handle: clones are the same table, and threads share it freely, but for one of a transaction.
///
/// # Consistency
///
/// Each operation on one key is linearizable: it takes effect at one moment between its call and its return,
/// for every thread. A value is read whole, as it was at one moment, also while another thread changes it in
/// place. Walks, ranges and batches are a series of operations, not one atomic one: a key that is there
/// throughout is seen exactly once; a key that is put or removed meanwhile may or may not be seen. A tree
/// commits a batch as a whole.
///
/// A closure that is given a value may call back into this table or another; a call that would wait for
/// itself answers `Reentrant` or `WouldBlock`.
///
/// # Errors
///
/// An engine's refusals are [`Error::OrderedEngine`], [`Error::HashEngine`] and [`Error::TreeEngine`], with
/// the table's name: `KeyLength`, `ValueLength`, `OutOfMemory`, `Io`, `Corrupt`, and the two above. A change of
/// a table in a directory also answers [`Error::Log`] where the log has no room or its disk has failed, and
/// [`Error::ReadOnly`]. An operation that is refused has changed nothing.
///
/// ```
/// use sapwood::{Db, OrderedTableOptions};
///
/// let db = Db::in_memory();
/// let table = db.create_ordered_table("oaks", OrderedTableOptions::default())?;
/// table.put(b"robur", b"pedunculate")?;
/// table.put(b"petraea", b"sessile")?;
/// let len = table.get_with(b"robur", |value| value.len())?;
/// assert_eq!(len, Some(11));
/// let first = table.first()?.expect("two entries");
/// assert_eq!((first.key(), first.value()), (&b"petraea"[..], &b"sessile"[..]));
/// # Ok::<(), sapwood::Error>(())
/// ```
///
/// A hash table has no order, and so no ranges; asking for one does not compile:
///
/// ```compile_fail
/// # use sapwood::{Db, HashTableOptions};
/// # let hits = Db::in_memory().create_hash_table("hits", HashTableOptions::default())?;
/// hits.range(..);
/// # Ok::<(), sapwood::Error>(())
/// ```
pub struct Table<E: Verbs> {
    pub(crate) shared: E::Shared,
    /// When changes through this handle are durable; `None` as the database says.
    pub(crate) durability: Option<Durability>,
}

impl<E: Verbs> Clone for Table<E> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), durability: self.durability }
    }
}

impl<E: Verbs> fmt::Debug for Table<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        E::debug(self, f)
    }
}

impl<E: Keyed> Table<E> {
    pub(crate) fn of(shared: E::Shared) -> Self {
        Self { shared, durability: None }
    }

    /// The table's name.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
    /// assert_eq!(table.name(), "t");
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        E::shared_name(self)
    }

    /// The typed columns of the table, if it was created with some. A column that was added
    /// ([`Db::add_column`](crate::Db::add_column)) is among them at once.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "day:date, hits:u64, key(day)".parse().expect("a schema");
    /// let table = db.create_hash_table("t", HashTableOptions::default().schema(schema))?;
    /// assert_eq!(table.schema().and_then(|schema| schema.find("hits")), Some(1));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn schema(&self) -> Option<&Schema> {
        self.row_format().map(RowFormat::schema)
    }

    /// The encoding of the table's rows as bytes, if it has a schema. It reads every row that was put before the
    /// call; a column that is added later has another one.
    ///
    /// ```
    /// # use sapwood::schema::Value;
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// let schema = "day:date, hits:u64, key(day)".parse().expect("a schema");
    /// let table = db.create_ordered_table("t", OrderedTableOptions::default().schema(schema))?;
    /// db.rows("t")?.put(&[Value::Date(0), 7.into()])?;
    /// let format = table.row_format().expect("it has a schema");
    /// let mut key = Vec::new();
    /// format.encode_key(&[Value::Date(0)], &mut key).expect("a day");
    /// let hits = table.get_with(&key, |value| format.get(1, &key, value).expect("a row").to_string())?;
    /// assert_eq!(hits.as_deref(), Some("7"));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn row_format(&self) -> Option<&RowFormat> {
        self.formats().map(|formats| formats.newest())
    }

    pub(crate) fn formats(&self) -> Option<&Arc<Formats>> {
        E::formats(self)
    }

    /// The value of a counter.
    fn counter(&self, value: &[u8]) -> Result<i64> {
        match value.try_into() {
            Ok(bytes) => Ok(i64::from_le_bytes(bytes)),
            Err(_) => Err(self.refused(Refusal::NotACounter { len: value.len() })),
        }
    }

    #[cold]
    pub(crate) fn refused(&self, refusal: Refusal) -> Error {
        E::refused(self, refusal)
    }
}

impl<E: Stored> Table<E> {
    /// A handle of the same table whose changes have another durability than
    /// [`DbOptions::durability`](crate::DbOptions::durability). It changes nothing for a table in memory; changes of a tree
    /// table wait at least as long as those of the database.
    ///
    /// ```
    /// use sapwood::{Db, Durability, HashTableOptions};
    ///
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let db = Db::open(directory.path())?;
    /// let orders = db.create_hash_table("orders", HashTableOptions::default())?;
    /// orders.put(b"1", b"an oak")?; // On the disk soon.
    /// orders.with_durability(Durability::Sync).put(b"2", b"an elm")?; // On the disk, with all before it.
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn with_durability(&self, durability: Durability) -> Self {
        E::with_durability(self, durability)
    }
}
