//! Following a log while another process appends to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sapwood_disk::Disk;
use sapwood_disk::log::{Log, LogStart, Lsn};
use sapwood_engine::Effect;

use crate::error::{Error, Result};
use crate::frame::{self, Frame, RECORDS, TableId};
use crate::manifest::Manifest;
use crate::wal::LOG_PREFIX;

/// What one record of the log says: all of it happened, or nothing.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LogRecord<'a> {
    /// The position behind the record: following from there tells what came later.
    pub position: u64,
    /// What happened, in order.
    pub changes: &'a [LogChange<'a>],
}

/// A change of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogChange<'a> {
    /// A value was put.
    Put {
        /// The table's name.
        table: &'a str,
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Some bytes of a value changed in place. Where the value has other bytes there by now, or is shorter,
    /// a later change says how it is.
    Write {
        /// The table's name.
        table: &'a str,
        /// The key.
        key: &'a [u8],
        /// Where they begin in the value.
        offset: usize,
        /// The new bytes.
        bytes: &'a [u8],
    },
    /// An entry was removed.
    Remove {
        /// The table's name.
        table: &'a str,
        /// The key.
        key: &'a [u8],
    },
    /// A table was made, and is empty.
    Create {
        /// The table's name.
        table: &'a str,
    },
    /// A table was dropped, with its entries.
    Drop {
        /// The table's name.
        table: &'a str,
    },
}

/// Reads a log from a position on, as often as one likes, while another process appends to it.
#[derive(Debug)]
pub struct Follower {
    disk: Arc<dyn Disk>,
    log: u64,
    /// The record that is read next, and the part that it is in.
    lsn: Lsn,
    part: u64,
    /// What was told, or was not wanted.
    told: Lsn,
    tables: BTreeMap<TableId, Arc<str>>,
}

impl Follower {
    /// Follows the log in a folder from a position on, or from the first record that there is.
    ///
    /// # Errors
    /// [`Error::Gone`]; [`Error::Table`] for a position that the log has not come to, and else as of
    /// [`Wal::view`](crate::Wal::view).
    pub fn open(disk: Arc<dyn Disk>, from: Option<u64>) -> Result<Follower> {
        let manifest = Manifest::read(&*disk)?;
        let LogStart { lsn, part, .. } = manifest.start;
        let (told, tables) = (from.unwrap_or(lsn), BTreeMap::new());
        let mut follower = Follower { disk, log: manifest.log, lsn, part, told, tables };
        follower.begin(manifest)?;
        let end = follower.retry(Follower::end)?;
        if end < told {
            let what = format!("the log ends at position {end}, before {told}");
            return Err(Error::Table(what));
        }
        Ok(follower)
    }

    /// The position behind what was told.
    pub fn position(&self) -> u64 {
        self.told
    }

    /// Tells the records that the log has by now, behind those that were told. A record may be told that a
    /// power loss takes back, but none that the end of the process does.
    ///
    /// # Errors
    /// [`Error::Gone`] where checkpoints have overtaken it; as of [`Wal::view`](crate::Wal::view), and those of
    /// `record`, whose record is told again by the next call.
    pub fn read(&mut self, record: &mut dyn FnMut(LogRecord<'_>) -> Result<()>) -> Result<()> {
        self.retry(|follower| follower.read_once(record))
    }

    /// Goes on from where a checkpoint has let the log begin.
    fn begin(&mut self, manifest: Manifest) -> Result<()> {
        let LogStart { lsn, part, .. } = manifest.start;
        if self.told < lsn {
            return Err(Error::Gone { position: self.told, first: lsn });
        }
        (self.lsn, self.part, self.log) = (lsn, part, manifest.log);
        let named = manifest.tables.into_iter().filter(|table| table.name != RECORDS);
        self.tables = named.map(|table| (table.id, table.name.into())).collect();
        Ok(())
    }

    fn start(&self) -> LogStart {
        LogStart { lsn: self.lsn, part: self.part, durable: self.lsn }
    }

    /// Reads, and again where a checkpoint began to count meanwhile, with which parts went.
    fn retry<R>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> std::result::Result<R, Stopped>,
    ) -> Result<R> {
        loop {
            match read(self) {
                Ok(done) => return Ok(done),
                Err(Stopped::Record(error)) => return Err(error),
                // A part that got another name since names were read, or went: they are read again.
                Err(Stopped::Disk(cause)) if cause.kind() == std::io::ErrorKind::NotFound => {}
                Err(Stopped::Disk(cause)) => {
                    let manifest = Manifest::read(&*self.disk)?;
                    if (manifest.start.lsn, manifest.start.part) == (self.lsn, self.part) {
                        return Err(Error::unread(&cause));
                    }
                    self.begin(manifest)?;
                }
            }
        }
    }

    /// The position behind the last record that there is.
    fn end(&mut self) -> std::result::Result<Lsn, Stopped> {
        let mut pass = |_: Lsn, _: &[u8]| Ok(());
        let start = self.start();
        Log::view(&*self.disk, self.log, LOG_PREFIX, start, &mut pass).map(|(end, _)| end)
    }

    fn read_once(
        &mut self,
        record: &mut dyn FnMut(LogRecord<'_>) -> Result<()>,
    ) -> std::result::Result<(), Stopped> {
        let start = self.start();
        let Follower { told, tables, .. } = self;
        let mut take = |position: Lsn, bytes: &[u8]| {
            let named = names(bytes, tables).map_err(Stopped::Record)?;
            if position > *told {
                let changes: Vec<_> = named.iter().map(Named::as_change).collect();
                if !changes.is_empty() {
                    record(LogRecord { position, changes: &changes }).map_err(Stopped::Record)?;
                }
                *told = position;
            }
            for named in &named {
                if let Frame::Drop { table } = named.frame {
                    tables.remove(&table);
                }
            }
            Ok(())
        };
        let (lsn, part) =
            Log::view::<Stopped>(&*self.disk, self.log, LOG_PREFIX, start, &mut take)?;
        (self.lsn, self.part) = (lsn, part);
        self.told = self.told.max(lsn);
        Ok(())
    }
}

/// Why reading ended.
enum Stopped {
    Disk(std::io::Error),
    Record(Error),
}

impl From<std::io::Error> for Stopped {
    fn from(cause: std::io::Error) -> Stopped {
        Stopped::Disk(cause)
    }
}

/// A change of a table whose name is known.
struct Named<'a> {
    table: Arc<str>,
    frame: Frame<'a>,
}

impl Named<'_> {
    fn as_change(&self) -> LogChange<'_> {
        let table = &*self.table;
        match self.frame {
            Frame::Change { key, effect: Effect::Put(value), .. } => {
                LogChange::Put { table, key, value }
            }
            Frame::Change { key, effect: Effect::Write { offset, bytes }, .. } => {
                LogChange::Write { table, key, offset, bytes }
            }
            Frame::Change { key, effect: Effect::Remove, .. } => LogChange::Remove { table, key },
            Frame::Create { .. } => LogChange::Create { table },
            Frame::Drop { .. } | Frame::Saved { .. } => LogChange::Drop { table },
        }
    }
}

/// What a record says of tables that there are, and those that it makes.
fn names<'a>(
    mut record: &'a [u8],
    tables: &mut BTreeMap<TableId, Arc<str>>,
) -> Result<Vec<Named<'a>>> {
    let mut named = Vec::new();
    while let Some(frame) = frame::next(&mut record) {
        let frame = frame.map_err(|what| Error::corrupt("the log", 0, what))?;
        let table = match frame {
            Frame::Saved { .. } | Frame::Create { name: RECORDS, .. } => None,
            // Of a table that was dropped before the last of its writers ended nothing is told.
            Frame::Change { table, .. } | Frame::Drop { table } => tables.get(&table).cloned(),
            Frame::Create { table, name, .. } => {
                Some(Arc::clone(tables.entry(table).or_insert_with(|| name.into())))
            }
        };
        named.extend(table.map(|table| Named { table, frame }));
    }
    Ok(named)
}
