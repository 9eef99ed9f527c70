//! What a table of any kind holds and costs.

use crate::{HashStats, OrderedStats, TreeStats};

/// What a [`Table`](crate::Table) holds and costs, as its engine tells it.
///
/// # Consistency
///
/// Figures are read one after another while writers go on; each is right for some moment of the
/// call.
///
/// ```
/// use sapwood::{Db, OrderedTableOptions, TableStats};
///
/// let db = Db::in_memory();
/// let options = OrderedTableOptions::default().memory_budget(1 << 20);
/// db.create_ordered_table("t", options)?.put(b"key", b"value")?;
/// let stats = db.table("t")?.stats();
/// assert_eq!((stats.entries_estimate(), stats.budget_bytes()), (1, Some(1 << 20)));
/// let TableStats::Ordered(ordered) = stats else { unreachable!("it was made so") };
/// assert_eq!((ordered.key_bytes, ordered.value_bytes), (3, 5));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum TableStats {
    /// Of an ordered table.
    Ordered(OrderedStats),
    /// Of a hash table.
    Hash(HashStats),
    /// Of a tree table.
    Tree(TreeStats),
}

impl TableStats {
    /// Entries, as [`Table::len_estimate`](crate::Table::len_estimate) counts them.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_hash_table("t", HashTableOptions::default())?.put(b"k", b"v")?;
    /// assert_eq!(db.table("t")?.stats().entries_estimate(), 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn entries_estimate(&self) -> u64 {
        match self {
            Self::Ordered(stats) => stats.entries,
            Self::Hash(stats) => stats.entries_estimate,
            Self::Tree(stats) => stats.entries,
        }
    }

    /// Bytes mapped from the system; none by a tree table alone, whose memory is that of all tree
    /// tables ([`DbStats::trees`](crate::DbStats::trees)).
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// assert!(db.table("t")?.stats().reserved_bytes() > 0);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn reserved_bytes(&self) -> u64 {
        match self {
            Self::Ordered(stats) => stats.reserved_bytes,
            Self::Hash(stats) => stats.reserved_bytes,
            Self::Tree(_) => 0,
        }
    }

    /// Bytes that the table may map; `None` without a budget.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # let db = Db::in_memory();
    /// db.create_hash_table("t", HashTableOptions::default().memory_budget(16 << 20))?;
    /// assert_eq!(db.table("t")?.stats().budget_bytes(), Some(16 << 20));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn budget_bytes(&self) -> Option<u64> {
        match self {
            Self::Ordered(stats) => stats.budget_bytes,
            Self::Hash(stats) => stats.budget_bytes,
            Self::Tree(_) => None,
        }
    }
}
