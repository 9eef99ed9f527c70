//! Looking at the pool of tree tables: its files, its heap, whether all that must hold does.

use super::Db;
use crate::{Error, Result, TreeCheck, TreeEngineError, TreeHeap, TreePoolInfo};

/// What lies beneath the tree tables of a database.
///
/// ```
/// use sapwood::{Db, TreeTableOptions};
///
/// # let directory = tempfile::tempdir().expect("a directory for the example");
/// let db = Db::open(directory.path())?;
/// db.create_tree_table("t", TreeTableOptions::default())?.put(b"k", b"v")?;
/// let beneath = db.tree_pool()?.expect("there is a tree table");
/// assert_eq!(beneath.files.expect("there is a directory").generation, 1);
/// assert!(beneath.heap.objects > 0);
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreePool {
    /// What its files say; none of a database in memory.
    pub files: Option<TreePoolInfo>,
    /// How full its heap is.
    pub heap: TreeHeap,
}

impl Db {
    /// What lies beneath the tree tables: the files of their pool, and how full its heap is; none if
    /// there was never a tree table. This looks at the descriptors of all chunks, and at no entry.
    ///
    /// # Errors
    /// [`Error::Trees`] where the heap is damaged.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// let db = Db::in_memory();
    /// assert_eq!(db.tree_pool()?, None);
    /// db.create_tree_table("t", TreeTableOptions::default())?;
    /// assert!(db.tree_pool()?.expect("there is one").heap.heap_bytes > 0);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn tree_pool(&self) -> Result<Option<TreePool>> {
        let Some(pool) = self.home().opened_pool() else { return Ok(None) };
        let heap = pool.heap_report().map_err(|cause| self.trees_refused(cause))?;
        Ok(Some(TreePool { files: pool.info(), heap }))
    }

    /// Checks all tree tables and the heap that they share: descriptors, order, balance, links, counts,
    /// and that each object belongs to one tree. Commits wait meanwhile. None if there was never a
    /// tree table.
    ///
    /// # Errors
    /// [`Error::Trees`] where the heap is damaged so that it cannot be walked. All else is in the
    /// report.
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// let db = Db::in_memory();
    /// db.create_tree_table("t", TreeTableOptions::default())?.put(b"k", b"v")?;
    /// let report = db.check_trees()?.expect("there is a tree table");
    /// assert_eq!((report.entries, report.problems.len()), (1, 0));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn check_trees(&self) -> Result<Option<TreeCheck>> {
        let Some(pool) = self.home().opened_pool() else { return Ok(None) };
        pool.check().map(Some).map_err(|cause| self.trees_refused(cause))
    }

    fn trees_refused(&self, cause: TreeEngineError) -> Error {
        Error::Trees { path: self.home().directory.as_ref().map(|of| of.pool_path()), cause }
    }
}
