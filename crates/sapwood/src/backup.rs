//! Backups: copies of a database in a directory, taken while it changes, that share what is the same.
//!
//! A backup is what a crash would leave, at a moment at which no file that counts goes away: checkpoints wait
//! while files are copied, changes do not. A database that is restored does the log's changes again, as
//! after a crash, so that it has one prefix of what happened, with all that was acknowledged before the
//! backup began.
//!
//! | modules, each above those it uses | |
//! |---|---|
//! | `info` | a backup in a list, and the progress of one |
//! | `store` | pieces of files, by what is in them, and lists of files |
//! | `copy` | files into a store, and out of it |
//!
//! ```text
//! BACKUPS/pieces/3f/3f9a...-4194304    a piece of a file: XXH3-128 of its bytes, and how many
//!        /1.backup, 2.backup           a list of files, each a list of pieces; a checksum at its end
//! ```

mod copy;
mod info;
mod store;
mod stored;

use std::path::Path;

use crate::directory::Directory;
use crate::{Db, Error, Result};

use store::Store;

pub use info::{BackupInfo, BackupProgress};

/// A folder of backups of one database, or of several: what is the same in them is there once.
///
/// Whatever ends a backup, a restoring or a removal, those that are listed are whole.
///
/// ```
/// use sapwood::{Backups, Db, HashTableOptions};
///
/// # let directory = tempfile::tempdir().expect("a directory for the example");
/// # let path = |name: &str| directory.path().join(name);
/// let db = Db::open(path("shop"))?;
/// let orders = db.create_hash_table("orders", HashTableOptions::default())?;
/// orders.put(b"1", b"an oak")?;
///
/// let backups = Backups::open_or_create(path("backups"))?;
/// let first = backups.add(&db, |_progress| true)?;
/// orders.put(b"2", b"an elm")?;
/// backups.add(&db, |_progress| true)?;
///
/// backups.restore(Some(first.number), path("before"), |_progress| true)?;
/// assert_eq!(Db::open(path("before"))?.hash_table("orders")?.len()?, 1);
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug)]
pub struct Backups {
    store: Store,
}

impl Backups {
    /// Opens a folder of backups, after making it if it is not there. One at a time has it open.
    ///
    /// # Errors
    /// [`Error::Backup`].
    ///
    /// ```
    /// # use sapwood::Backups;
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let backups = Backups::open_or_create(directory.path().join("backups"))?;
    /// assert!(backups.list()?.is_empty());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<Backups> {
        Ok(Backups { store: Store::open_or_create(path.as_ref())? })
    }

    /// Opens a folder of backups that is there.
    ///
    /// # Errors
    /// [`Error::Backup`].
    ///
    /// ```
    /// # use sapwood::Backups;
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// assert!(Backups::open(directory.path().join("none")).is_err());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Backups> {
        Ok(Backups { store: Store::open(path.as_ref())? })
    }

    /// Takes a backup of a database in a directory, while other threads change it: it has every change that
    /// was made before the call. A checkpoint is taken first, and none is while files are copied; a table that
    /// is made waits for the copy of the log, which is short, and one that is dropped for the end. All hash tables
    /// are opened.
    ///
    /// Of a database that is open to be read it is one of its [directory](Self::add_directory).
    ///
    /// `progress` is called now and then, and ends the backup by answering false.
    ///
    /// # Errors
    /// [`Error::NoDirectory`] in memory; those of [`Db::checkpoint`]; [`Error::Backup`], also if it was
    /// ended. Then there is no such backup.
    ///
    /// ```
    /// # use sapwood::{Backups, Db, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = |name: &str| directory.path().join(name);
    /// let db = Db::open(path("shop"))?;
    /// db.create_ordered_table("t", OrderedTableOptions::default())?.put(b"k", b"v")?;
    /// let backups = Backups::open_or_create(path("backups"))?;
    /// let info = backups.add(&db, |_progress| true)?;
    /// assert_eq!(backups.list()?.len(), 1);
    /// assert!(info.own_bytes <= info.bytes);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add(&self, db: &Db, progress: impl FnMut(BackupProgress) -> bool) -> Result<BackupInfo> {
        if db.is_read_only() {
            return self.add_directory(db.directory().ok_or(Error::NoDirectory)?, progress);
        }
        db.hold_files(|directory, tables| copy::add(&self.store, directory, tables, progress))?
    }

    /// Takes a backup of a directory that no process has open to be written, without opening the database:
    /// it has what [`Db::open`] would find.
    ///
    /// # Errors
    /// [`Error::DirectoryInUse`]; else as of [`add`](Self::add).
    ///
    /// ```
    /// # use sapwood::{Backups, Db, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = |name: &str| directory.path().join(name);
    /// let db = Db::open(path("shop"))?;
    /// db.create_ordered_table("t", OrderedTableOptions::default())?.put(b"k", b"v")?;
    /// drop(db);
    /// let backups = Backups::open_or_create(path("backups"))?;
    /// backups.add_directory(path("shop"), |_progress| true)?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn add_directory(
        &self,
        path: impl AsRef<Path>,
        progress: impl FnMut(BackupProgress) -> bool,
    ) -> Result<BackupInfo> {
        // Locked, so that none writes.
        let directory = Directory::open_read_only(path.as_ref())?;
        copy::add(&self.store, &directory, (), progress)
    }

    /// The backups that are there, the oldest first.
    ///
    /// # Errors
    /// [`Error::Backup`] where a list of files is damaged.
    ///
    /// ```
    /// # use sapwood::Backups;
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// let backups = Backups::open_or_create(directory.path())?;
    /// assert_eq!(backups.list()?, []);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn list(&self) -> Result<Vec<BackupInfo>> {
        self.store.infos()
    }

    /// Reads all bytes of a backup, or of all where none is named, and compares them with their checksums; then opens the
    /// database as it would be restored, with all its tables, to read it. That takes the memory of a
    /// [reader](Db::open_read_only), and no room on the disk.
    ///
    /// # Errors
    /// [`Error::Backup`]: the first piece that is missing or damaged, and the file that it is of; else why the database
    /// does not open.
    ///
    /// ```
    /// # use sapwood::{Backups, Db};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = |name: &str| directory.path().join(name);
    /// let backups = Backups::open_or_create(path("backups"))?;
    /// backups.add(&Db::open(path("shop"))?, |_progress| true)?;
    /// backups.verify(None, |_progress| true)?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn verify(
        &self,
        number: Option<u64>,
        progress: impl FnMut(BackupProgress) -> bool,
    ) -> Result<()> {
        copy::verify(&self.store, number, progress)
    }

    /// Makes a directory of a backup, the newest where none is named; it must not be there, or be empty. It
    /// has its name only once all of it is verified and on the disk. [`Db::open`] opens it.
    ///
    /// # Errors
    /// [`Error::Backup`].
    ///
    /// ```
    /// # use sapwood::{Backups, Db, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = |name: &str| directory.path().join(name);
    /// let db = Db::open(path("shop"))?;
    /// db.create_ordered_table("t", OrderedTableOptions::default())?.put(b"k", b"v")?;
    /// let backups = Backups::open_or_create(path("backups"))?;
    /// backups.add(&db, |_progress| true)?;
    /// backups.restore(None, path("again"), |_progress| true)?;
    /// assert!(Db::open(path("again"))?.ordered_table("t")?.contains_key(b"k")?);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn restore(
        &self,
        number: Option<u64>,
        to: impl AsRef<Path>,
        progress: impl FnMut(BackupProgress) -> bool,
    ) -> Result<BackupInfo> {
        copy::restore(&self.store, number, to.as_ref(), progress)
    }

    /// Removes the oldest backups but for `count`, and what no other has of their files; answers the numbers of
    /// those that are gone.
    ///
    /// # Errors
    /// [`Error::Backup`]; some may be gone.
    ///
    /// ```
    /// # use sapwood::{Backups, Db};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = |name: &str| directory.path().join(name);
    /// let db = Db::open(path("shop"))?;
    /// let backups = Backups::open_or_create(path("backups"))?;
    /// let first = backups.add(&db, |_progress| true)?;
    /// backups.add(&db, |_progress| true)?;
    /// assert_eq!(backups.keep(1)?, [first.number]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn keep(&self, count: usize) -> Result<Vec<u64>> {
        self.store.keep(count)
    }
}
