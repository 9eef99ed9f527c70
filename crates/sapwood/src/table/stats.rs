//! Statistics of tables.

use crate::{HashStats, OrderedStats, RecordLayout, TreeKind};

/// Statistics of a table of any engine: [`AnyTable::stats`](crate::Table::stats).
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
    /// Statistics of an ordered table.
    Ordered(OrderedStats),
    /// Statistics of a hash table.
    Hash(HashStats),
    /// Statistics of a tree table.
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

impl From<OrderedStats> for TableStats {
    fn from(stats: OrderedStats) -> TableStats {
        TableStats::Ordered(stats)
    }
}

impl From<HashStats> for TableStats {
    fn from(stats: HashStats) -> TableStats {
        TableStats::Hash(stats)
    }
}

impl From<TreeStats> for TableStats {
    fn from(stats: TreeStats) -> TableStats {
        TableStats::Tree(stats)
    }
}

/// Statistics of a [`TreeTable`](crate::TreeTable).
///
/// ```
/// use sapwood::{Db, TreeTableOptions};
///
/// let table = Db::in_memory().create_tree_table("t", TreeTableOptions::default())?;
/// table.put(b"key", b"value")?;
/// assert_eq!(table.stats().entries, 1);
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeStats {
    /// Entries.
    pub entries: u64,
    /// The structure of the tree.
    #[cfg_attr(feature = "serde", serde(serialize_with = "as_text"))]
    pub kind: TreeKind,
    /// The lengths of its keys and values.
    #[cfg_attr(feature = "serde", serde(serialize_with = "as_text"))]
    pub layout: RecordLayout,
    /// The memory of all tree tables of the database.
    pub trees: TreePoolStats,
}

/// The memory of the tree tables of a database.
///
/// ```
/// use sapwood::{Db, TreeTableOptions};
///
/// let db = Db::in_memory();
/// db.create_tree_table("t", TreeTableOptions::default())?.put(b"key", b"value")?;
/// assert!(db.stats().trees.expect("there is one").heap_bytes > 0);
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreePoolStats {
    /// Bytes of the heap, from its beginning to the end of what was ever used.
    pub heap_bytes: u64,
}

#[cfg(feature = "serde")]
fn as_text<S: serde::Serializer>(
    value: &impl std::fmt::Debug,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{value:?}"))
}
