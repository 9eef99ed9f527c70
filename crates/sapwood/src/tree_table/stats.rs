//! What a tree table holds and costs.

use crate::{RecordLayout, TreeKind};

/// What a [`TreeTable`](crate::TreeTable) holds, and what it costs with all others.
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
    /// How the tree is balanced.
    #[cfg_attr(feature = "serde", serde(serialize_with = "as_text"))]
    pub kind: TreeKind,
    /// Which keys and values it takes.
    #[cfg_attr(feature = "serde", serde(serialize_with = "as_text"))]
    pub layout: RecordLayout,
    /// What all tree tables of the database cost.
    pub trees: TreePoolStats,
}

/// What the tree tables of a database cost, together.
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
