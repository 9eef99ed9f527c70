//! Looking at the pool of tree tables: its files, its heap, whether all that must hold does; and what
//! can be saved where not.

use std::fs;
use std::io;
use std::path::Path;

use super::Db;
use crate::directory::Directory;
use crate::{Error, Result, TreeCheck, TreeEngineError, TreeHeap, TreePoolInfo, TreeSalvage};

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
        let Some(pool) = self.shared.trees.opened() else { return Ok(None) };
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
        let Some(pool) = self.shared.trees.opened() else { return Ok(None) };
        pool.check().map(Some).map_err(|cause| self.trees_refused(cause))
    }

    /// Copies what can be read of the tree tables in a directory whose pool is damaged into a new
    /// directory, and the files of its hash tables as they are. The damaged directory is not written.
    ///
    /// Words have no checksums: a damaged word that still is a value, or a key, is copied as it is.
    /// Below a node that is damaged nothing is found, and all else is.
    ///
    /// # Errors
    /// [`Error::Trees`] where there are no tree tables, or nothing says where to begin, or the new
    /// directory is not empty; [`Error::Directory`] where files cannot be read or copied;
    /// [`Error::DirectoryInUse`].
    ///
    /// ```
    /// # use sapwood::{Db, TreeTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let (damaged, new) = (directory.path().join("damaged"), directory.path().join("new"));
    /// # let db = Db::open(&damaged)?;
    /// # db.create_tree_table("t", TreeTableOptions::default())?.put(b"k", b"v")?;
    /// # db.close()?;
    /// let salvage = Db::salvage(&damaged, &new)?;
    /// assert!(salvage.is_complete());
    /// assert!(Db::open(&new)?.tree_table("t")?.contains_key(b"k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn salvage(damaged: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<TreeSalvage> {
        let (damaged, new) = (damaged.as_ref(), new.as_ref());
        let refused = |path: &Path, why: &str| Error::Trees {
            path: Some(path.to_owned()),
            cause: TreeEngineError::Options(why.to_owned()),
        };
        let from = Directory::open_read_only(damaged)?;
        let disk = from.pool_disk()?.ok_or_else(|| refused(damaged, "there are none"))?;
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|cause| Error::directory(path, "found", &cause))
        };
        if absolute(new)?.starts_with(absolute(damaged)?) {
            return Err(refused(new, "the directory lies in the damaged one: choose another"));
        }
        match new.read_dir().map(|mut files| files.next().is_none()) {
            Ok(true) => {}
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Ok(false) => return Err(refused(new, "the directory is not empty: choose another")),
            Err(cause) => return Err(Error::directory(new, "read", &cause)),
        }
        let tables = damaged.join("tables");
        if tables.is_dir() {
            copy_folder(&tables, &new.join("tables"))?;
        }
        let db = Db::open(new)?;
        let pool = db.shared.trees.pool(db.shared.directory.as_ref())?;
        let salvage = pool
            .salvage(&*disk)
            .map_err(|cause| Error::Trees { path: Some(from.pool_path()), cause })?;
        db.close()?;
        Ok(salvage)
    }

    fn trees_refused(&self, cause: TreeEngineError) -> Error {
        Error::Trees { path: self.shared.directory.as_ref().map(|of| of.pool_path()), cause }
    }
}

/// Copies a folder with all that is in it.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(|cause| Error::directory(to, "made", &cause))?;
    let unread = |cause: io::Error| Error::directory(from, "read", &cause);
    for entry in fs::read_dir(from).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(unread)?.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            fs::copy(&from, &to).map_err(|cause| Error::directory(&from, "copied", &cause))?;
        }
    }
    Ok(())
}
