//! How a log comes to be: new, or of a directory.

use std::sync::Arc;

use sapwood_disk::Disk;

use super::HashLog;
use crate::checkpoint::{self, Opening};
use crate::error::{Error, Result};
use crate::ops::store::Store;
use crate::options::{ColdReads, Layout, Options};
use crate::record::{Fixed, Variable};
use crate::stats::StoredCheckpoint;

impl HashLog {
    /// An empty log in memory.
    ///
    /// # Errors
    /// [`Error::Options`], or [`Error::OutOfMemory`] if not even an empty one fits.
    pub fn in_memory(options: Options) -> Result<HashLog> {
        options.validate()?;
        Ok(HashLog::of(Store::create(options, None)?))
    }

    /// Opens the log in a directory: as its newest checkpoint left it, or empty if it never had
    /// one.
    ///
    /// # Errors
    /// [`Error::CheckpointDamaged`] if the newest checkpoint is damaged, or its manifest missing,
    /// and names one that [`HashLog::open_at`] opens; [`Error::Corrupt`] if none opens. Nothing is
    /// changed then. [`Error::Options`] if the directory was made with another layout or page size.
    ///
    /// Of a disk that is open to be read only nothing is changed: what would change the log answers
    /// [`Error::ReadOnly`], and newer checkpoints stay.
    pub fn open(disk: Arc<dyn Disk>, options: Options) -> Result<HashLog> {
        HashLog::open_to_stay(disk, options, Opening::Newest)
    }

    /// Goes back: opens a log as checkpoint `number` left it, and removes newer ones, damaged ones
    /// among them. Their numbers are not used again.
    ///
    /// # Errors
    /// As [`HashLog::open`]; [`Error::Options`] names the checkpoints that are there.
    pub fn open_at(disk: Arc<dyn Disk>, options: Options, number: u64) -> Result<HashLog> {
        HashLog::open_to_stay(disk, options, Opening::Back(number.into()))
    }

    /// Looks at a log as checkpoint `number` left it, and changes nothing on the disk. What is put
    /// into the view lives in its memory alone: once that is full it fails with [`Error::Io`], and
    /// a checkpoint of it answers [`Error::View`]. Nothing else may have the directory open.
    ///
    /// # Errors
    /// As [`HashLog::open_at`].
    pub fn view(disk: Arc<dyn Disk>, options: Options, number: u64) -> Result<HashLog> {
        // There is no room for copies of what is read.
        let options = Options { cold_reads: ColdReads::Stay, ..options };
        HashLog::open_by(disk, options, Opening::View(number.into()))
    }

    /// As [`HashLog::open`], to put changes in that came since the newest checkpoint: of a disk that is open to
    /// be read only, they live in memory alone, and [`HashLog::read_only`] ends them. A memory budget that they
    /// do not fit into makes them fail with [`Error::Io`].
    ///
    /// # Errors
    /// As [`HashLog::open`].
    pub fn open_to_recover(disk: Arc<dyn Disk>, options: Options) -> Result<HashLog> {
        HashLog::open_by(disk, options, Opening::Newest)
    }

    /// Ends changes: from now on what would change the log answers [`Error::ReadOnly`].
    #[must_use]
    pub fn read_only(self) -> HashLog {
        self.store.freeze();
        self
    }

    /// The checkpoints in a directory that is not open, oldest first, and whether each opens: its
    /// index image is read whole, of the log only where its pages lie. A newest one whose manifest
    /// is missing is listed too. Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn stored(disk: &Arc<dyn Disk>) -> Result<Vec<StoredCheckpoint>> {
        checkpoint::list(disk)
    }

    /// What is wrong with the files in a directory that is not open: each checkpoint that does not open, and each
    /// page of the newest one that is not what was written. All of these are read. Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn check_files(disk: &Arc<dyn Disk>) -> Result<Vec<Error>> {
        checkpoint::check(disk)
    }

    fn open_to_stay(disk: Arc<dyn Disk>, options: Options, opening: Opening) -> Result<HashLog> {
        let is_read_only = disk.is_read_only();
        let log = HashLog::open_by(disk, options, opening)?;
        if is_read_only {
            log.store.begin_no_page();
        }
        Ok(log)
    }

    fn open_by(disk: Arc<dyn Disk>, options: Options, opening: Opening) -> Result<HashLog> {
        options.validate()?;
        let store = match options.layout {
            Layout::Fixed8 => Store::open::<Fixed>(disk, options, opening),
            Layout::Variable => Store::open::<Variable>(disk, options, opening),
        }?;
        Ok(HashLog::of(store))
    }

    fn of(store: Store) -> HashLog {
        let store = Arc::new(store);
        store.employ_compactor();
        let has_fast_path = store.options.layout == Layout::Fixed8;
        HashLog { store, journal: None, has_fast_path }
    }
}
