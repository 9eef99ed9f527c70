//! Following the log of a database that another process has open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sapwood_disk::FileDisk;
use sapwood_wal::{Follower, LogRecord};

use crate::directory::LOG;
use crate::{Error, LogError, Result};

/// Follows the changes of ordered and hash tables of a database in a directory, in the order of its log, while
/// another process, or this one, has it open and changes it: for copies elsewhere, caches to be emptied,
/// change data capture.
///
/// Nothing is locked, and nothing is changed. A reader stops and goes on at any position; one that stays
/// behind while checkpoints are written finds what it wanted gone ([`LogError::Gone`]): the log keeps no
/// more than opening the database needs. What is told survives the end of the process that wrote it; the
/// last changes before a power loss may be told though they are lost ([`Durability`](crate::Durability)).
///
/// ```
/// use sapwood::{Db, LogChange, LogReader, OrderedTableOptions};
///
/// # let directory = tempfile::tempdir().expect("a directory for the example");
/// # let path = directory.path();
/// let db = Db::open(path)?;
/// let mut reader = LogReader::open(path)?;
/// let trees = db.create_ordered_table("trees", OrderedTableOptions::default())?;
/// trees.put(b"oak", b"12 m")?;
///
/// let mut heard = Vec::new();
/// reader.read(|record| {
///     for change in record.changes {
///         match change {
///             LogChange::Create { table } => heard.push(format!("made {table}")),
///             LogChange::Put { table, key, .. } => heard.push(format!("{table}: {key:?}")),
///             _ => {}
///         }
///     }
///     Ok(())
/// })?;
/// assert_eq!(heard, ["made trees", "trees: [111, 97, 107]"]);
///
/// trees.remove(b"oak")?;
/// let mut later = LogReader::open_at(path, reader.position())?;
/// later.read(|record| {
///     assert_eq!(record.changes, [LogChange::Remove { table: "trees", key: b"oak" }]);
///     Ok(())
/// })?;
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug)]
pub struct LogReader {
    follower: Follower,
    path: PathBuf,
}

impl LogReader {
    /// Follows the log of the database in a directory, from the first change that it has.
    ///
    /// # Errors
    /// [`Error::Directory`] where there is no log; [`Error::Log`] where it is damaged.
    ///
    /// ```
    /// # use sapwood::{Db, LogReader};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path();
    /// let _db = Db::open(path)?;
    /// let begin = LogReader::open(path)?.position();
    /// assert_eq!(LogReader::open_at(path, begin)?.position(), begin);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<LogReader> {
        LogReader::open_from(path.as_ref(), None)
    }

    /// The same from a [`position`](Self::position) on.
    ///
    /// # Errors
    /// As of [`open`](Self::open); [`Error::Log`] with [`LogError::Gone`], and with
    /// [`LogError::Table`] for a position that the log has not come to.
    ///
    /// ```
    /// # use sapwood::{Db, LogReader};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let path = directory.path();
    /// let _db = Db::open(path)?;
    /// let position = LogReader::open(path)?.position();
    /// assert!(LogReader::open_at(path, position).is_ok());
    /// assert!(LogReader::open_at(path, position + 1_000_000).is_err());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn open_at(path: impl AsRef<Path>, position: u64) -> Result<LogReader> {
        LogReader::open_from(path.as_ref(), Some(position))
    }

    fn open_from(path: &Path, position: Option<u64>) -> Result<LogReader> {
        let path = path.join(LOG);
        let disk = FileDisk::open_unlocked(&path)
            .map_err(|cause| Error::directory(&path, "opened", &cause))?;
        match Follower::open(Arc::new(disk), position) {
            Ok(follower) => Ok(LogReader { follower, path }),
            Err(cause) => Err(Error::Log { path, cause }),
        }
    }

    /// The position behind what was told: [`open_at`](Self::open_at) goes on there.
    ///
    /// ```
    /// # use sapwood::{Db, LogReader, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let db = Db::open(directory.path())?;
    /// let mut reader = LogReader::open(directory.path())?;
    /// let before = reader.position();
    /// db.create_ordered_table("t", OrderedTableOptions::default())?;
    /// reader.read(|_| Ok(()))?;
    /// assert!(reader.position() > before);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn position(&self) -> u64 {
        self.follower.position()
    }

    /// Tells the changes that the log has by now, and that were not told yet. It waits for none: call it
    /// again after a while.
    ///
    /// # Errors
    /// Those of `record`, whose record comes again with the next call; [`Error::Log`] with
    /// [`LogError::Gone`] where checkpoints have overtaken the reader.
    ///
    /// ```
    /// # use sapwood::{Db, LogReader, OrderedTableOptions};
    /// # let directory = tempfile::tempdir().expect("a directory for the example");
    /// # let db = Db::open(directory.path())?;
    /// # let (one, other) = (OrderedTableOptions::default(), OrderedTableOptions::default());
    /// let (stock, orders) = (db.create_ordered_table("stock", one)?, db.create_ordered_table("orders", other)?);
    /// let mut reader = LogReader::open(directory.path())?;
    /// reader.read(|_| Ok(()))?;
    /// db.together(|| {
    ///     stock.put("oak", "2")?;
    ///     orders.put("1", "oak")
    /// })?.0?;
    /// // Changes that went together are one record.
    /// let mut changes = Vec::new();
    /// reader.read(|record| Ok(changes.push(record.changes.len())))?;
    /// assert_eq!(changes, [2]);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn read(&mut self, mut record: impl FnMut(LogRecord<'_>) -> Result<()>) -> Result<()> {
        let mut refused = None;
        let read = self.follower.read(&mut |told| {
            record(told).map_err(|error| {
                let why = error.to_string();
                refused = Some(error);
                LogError::Contents { why }
            })
        });
        match (read, refused) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(error)) => Err(error),
            (Err(cause), None) => Err(Error::Log { path: self.path.clone(), cause }),
        }
    }
}
