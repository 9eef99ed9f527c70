//! The engines that a table can have.

use std::fmt;

/// How a table keeps its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// In the order of their keys, in memory: neighbours, ranges and scans both ways. The handle is
    /// an [`OrderedTable`](crate::OrderedTable).
    Ordered,
    /// By the hash of their keys, in memory and on the disk: single keys, at the highest speed. The
    /// handle is a [`HashTable`](crate::HashTable).
    Hash,
    /// In the order of their keys, in trees of a crash-safe heap, by transactions. The handle is a
    /// [`TreeTable`](crate::TreeTable).
    Tree,
    /// As facts by time and dimensions, without keys: rows are folded in, and queries answered. The
    /// handle is a [`RollupTable`](crate::RollupTable).
    Rollup,
}

impl Engine {
    /// The method that opens such a table.
    pub(crate) fn opened_by(self) -> &'static str {
        match self {
            Self::Ordered => "Db::ordered_table",
            Self::Hash => "Db::hash_table",
            Self::Tree => "Db::tree_table",
            Self::Rollup => "Db::rollup_table",
        }
    }

    /// What readers of keys and values would look for in such a table, and do not find.
    pub(crate) fn absent(self) -> &'static str {
        match self {
            Self::Ordered | Self::Hash | Self::Tree => "",
            Self::Rollup => ", which has no keys: rows are ingested, and queries answered",
        }
    }
}

/// `an ordered table`, `a hash table`, `a tree table`, `a roll-up table`.
impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ordered => "an ordered table",
            Self::Hash => "a hash table",
            Self::Tree => "a tree table",
            Self::Rollup => "a roll-up table",
        })
    }
}
