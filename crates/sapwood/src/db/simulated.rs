//! A database on a simulated disk, for tests of what power losses and failing disks leave of it.

use std::path::Path;

use sapwood_disk::SimDisk;

use super::Db;
use crate::directory::Directory;
use crate::{DbOptions, Result};

/// Where errors say that the database lies.
const PATH: &str = "simulated";

impl Db {
    /// As [`Db::open_with`], on a simulated disk.
    ///
    /// # Errors
    /// Those of [`Db::open_with`].
    ///
    /// ```
    /// use sapwood::{Db, DbOptions, Durability, OrderedTableOptions};
    /// use sapwood_disk::SimDisk;
    ///
    /// let disk = SimDisk::new();
    /// let options = || DbOptions::default().durability(Durability::Sync);
    /// let db = Db::open_simulated(&disk, options())?;
    /// db.create_ordered_table("t", OrderedTableOptions::default())?.put("k", "v")?;
    /// let db = Db::open_simulated(&disk.crash(7), options())?;
    /// assert!(db.ordered_table("t")?.contains_key("k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn open_simulated(disk: &SimDisk, options: DbOptions) -> Result<Self> {
        let folders = disk.folders();
        Self::of_directory(Directory::open_in(Path::new(PATH), folders)?, &options)
    }

    /// As [`Db::open_read_only`], on a simulated disk.
    ///
    /// # Errors
    /// Those of [`Db::open_read_only`].
    ///
    /// ```
    /// # use sapwood::{Db, DbOptions};
    /// # use sapwood_disk::SimDisk;
    /// let disk = SimDisk::new();
    /// Db::open_simulated(&disk, DbOptions::default())?.close()?;
    /// assert!(Db::open_simulated_read_only(&disk)?.table_names().is_empty());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn open_simulated_read_only(disk: &SimDisk) -> Result<Self> {
        let folders = disk.folders();
        let directory = Directory::open_beside_in(Path::new(PATH), folders)?;
        Self::of_directory(directory, &DbOptions::default())
    }
}
