//! Opening: snapshots are read, and the changes behind them done again.

use std::collections::BTreeMap;
use std::sync::Arc;

use sapwood_disk::log::{Log, LogStart, Lsn};
use sapwood_disk::{Disk, is_full};
use sapwood_engine::Effect;

use crate::error::Error;
use crate::frame::{self, Frame, TableId};
use crate::manifest::Manifest;
use crate::snapshot::{self, Identity, Snapshot};
use crate::view::View;
use crate::wal::{
    Current, LOG_PREFIX, OpenTable, Recovered, Tables, Wal, WalOptions, remove_snapshots_but,
};

/// What opening a log tells, in an order in which it happened: nothing of tables that end in the log.
pub trait Recovery<E> {
    /// There is a table. One whose engine writes checkpoints is to be opened as of its newest, which
    /// has `own` or a higher number.
    ///
    /// # Errors
    /// Any ends the opening, as of all methods.
    fn create(
        &mut self,
        table: TableId,
        name: &str,
        description: &[u8],
        own: Option<u64>,
    ) -> std::result::Result<(), E>;
    /// The table's entries can be read in place, and the log has so many bytes of changes of them, which are told in any
    /// case: true if they are read so, else they are told.
    ///
    /// # Errors
    /// Any ends the opening.
    fn stored(
        &mut self,
        table: TableId,
        snapshot: Snapshot,
        change_bytes: u64,
    ) -> std::result::Result<bool, E> {
        let _told_instead = (table, snapshot, change_bytes);
        Ok(false)
    }
    /// The table has this entry. Those of a table's snapshot come in the order of the snapshot, each
    /// once, and before all changes.
    fn entry(&mut self, table: TableId, key: &[u8], value: &[u8]) -> std::result::Result<(), E>;
    /// An entry of the table changes. What a [`Effect::Write`] does not fit is as it will be, and the
    /// effect to be passed over.
    fn change(
        &mut self,
        table: TableId,
        key: &[u8],
        effect: Effect<'_>,
    ) -> std::result::Result<(), E>;
    /// So much of so many bytes has been read, of snapshots and of the log: told every few megabytes.
    fn progress(&mut self, read: u64, all: u64) {
        let _not_shown = (read, all);
    }
}

/// Bytes that are read between two calls of [`Recovery::progress`].
const PROGRESS_BYTES: u64 = 4 << 20;

/// How far reading has come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    read: u64,
    told: u64,
    all: u64,
}

impl Progress {
    fn add<E>(&mut self, bytes: u64, recovery: &mut dyn Recovery<E>) {
        self.read += bytes;
        if self.read - self.told >= PROGRESS_BYTES {
            self.told = self.read;
            recovery.progress(self.read.min(self.all), self.all);
        }
    }
}

impl Wal {
    /// Opens the log in a folder, and tells what its tables have. Each that is there at the end is to be
    /// given back by [`Wal::adopt`]. The number in the options is not asked for.
    ///
    /// # Errors
    /// [`Error::CorruptFile`] where a file is damaged that lasts, [`Error::Io`], and those of
    /// `recovery`. A record that a crash cut off at the log's end is not damage: it was never
    /// answered as lasting.
    pub fn open<E: From<Error>>(
        disk: Arc<dyn Disk>,
        mut options: WalOptions,
        recovery: &mut dyn Recovery<E>,
    ) -> std::result::Result<Wal, E> {
        let manifest = Manifest::read(&*disk)?;
        options.id = manifest.log;
        let (newest, snapshot_bytes) = snapshots(&*disk, manifest.checkpoint)?;
        let next_number = newest.saturating_add(1);
        let noted = Noted::read(&*disk, &manifest)?;
        let mut replay = Replay::begin(&*disk, &manifest, noted, snapshot_bytes, recovery)?;
        let mut take = |lsn: Lsn, record: &[u8]| replay.take(lsn, record);
        let log =
            Log::open(Arc::clone(&disk), manifest.log, options.log(), manifest.start, &mut take);
        let log = log.map_err(Refused::into_inner)?;
        replay.end();
        let Replay { tables, records, .. } = replay;
        let recovered = Recovered {
            records,
            log_bytes: log.position().0.saturating_sub(manifest.start.lsn),
            snapshot_bytes,
            cut_off: log.cut_off().map(|cut| (cut.file.clone(), cut.offset, cut.bytes)),
        };
        // The manifest that was read may have its name in the page cache alone, and after a sync that
        // failed a later one promises nothing: it is written anew before files go that the one before
        // it needs.
        match manifest.write(&*disk) {
            // Then none goes. What there is can be read, and the first change tells.
            Err(Error::Io { kind, .. }) if is_full(kind) => {}
            written => {
                written?;
                remove_snapshots_but(&*disk, manifest.checkpoint)?;
            }
        }
        let current = Current { manifest, next_number, snapshot_bytes };
        Ok(Wal { recovered, ..Wal::over(disk, options, log, tables, current) })
    }

    /// Tells as [`Wal::open`] does, and changes nothing; the number of the log, and the position behind its last
    /// record.
    ///
    /// # Errors
    /// As of [`Wal::open`].
    pub fn view<E: From<Error>>(
        disk: &dyn Disk,
        recovery: &mut dyn Recovery<E>,
    ) -> std::result::Result<(u64, Lsn), E> {
        View::begin(disk)?.tell(recovery)
    }
}

/// The highest number of a checkpoint that a file has, or had by the manifest, and the bytes of the snapshots of
/// one.
pub(crate) fn snapshots(disk: &dyn Disk, checkpoint: u64) -> Result<(u64, u64), Error> {
    let (mut newest, mut all) = (checkpoint, 0);
    for name in disk.list().map_err(|cause| Error::io("list the files of the log", &cause))? {
        let found = snapshot::checkpoint_of(&name).unwrap_or(0);
        newest = newest.max(found);
        if found == checkpoint && found > 0 {
            let bytes = disk.open(&name).and_then(|file| file.bytes());
            all += bytes.map_err(|cause| Error::io(format!("read {name}"), &cause))?;
        }
    }
    Ok((newest, all))
}

/// An error on its way through the log.
pub(crate) struct Refused<E>(E);

impl<E> Refused<E> {
    pub(crate) fn into_inner(self) -> E {
        self.0
    }
}

impl<E: From<Error>> From<std::io::Error> for Refused<E> {
    fn from(cause: std::io::Error) -> Refused<E> {
        Refused(Error::unread(&cause).into())
    }
}

/// What is to be known of a log before its changes are done again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noted {
    /// Up to where a table's own checkpoint has its changes; [`Lsn::MAX`] of a table that ends in the log.
    pub(crate) saved: BTreeMap<TableId, Lsn>,
    /// Bytes of the changes of each table that has some.
    pub(crate) changed: BTreeMap<TableId, u64>,
    /// Where the log ends.
    pub(crate) end: Lsn,
}

impl Noted {
    fn read(disk: &dyn Disk, manifest: &Manifest) -> Result<Noted, Error> {
        let mut noted = Noted::default();
        let mut note = |_lsn: Lsn, frame: &Frame<'_>| {
            note_saved(&mut noted.saved, frame);
            note_changed(&mut noted.changed, frame);
        };
        let end = read_frames(disk, manifest.log, manifest.start, &mut note)?;
        Ok(Noted { end: end.lsn, ..noted })
    }
}

/// Reads the frames of the log from a position on; where it ends.
pub(crate) fn read_frames(
    disk: &dyn Disk,
    log: u64,
    start: LogStart,
    note: &mut dyn FnMut(Lsn, &Frame<'_>),
) -> Result<LogStart, Error> {
    let mut take = |lsn: Lsn, record: &[u8]| {
        for_each_frame::<Error>(record, &mut |frame| {
            note(lsn, frame);
            Ok(())
        })
    };
    let read = Log::view(disk, log, LOG_PREFIX, start, &mut take);
    let (lsn, part) = read.map_err(Refused::into_inner)?;
    Ok(LogStart { lsn, part, durable: lsn })
}

pub(crate) fn note_saved(saved: &mut BTreeMap<TableId, Lsn>, frame: &Frame<'_>) {
    let (table, before) = match *frame {
        Frame::Saved { table, before } => (table, before),
        Frame::Drop { table } => (table, Lsn::MAX),
        Frame::Change { .. } | Frame::Create { .. } => return,
    };
    let known = saved.entry(table).or_insert(before);
    *known = before.max(*known);
}

pub(crate) fn note_changed(changed: &mut BTreeMap<TableId, u64>, frame: &Frame<'_>) {
    if let Frame::Change { table, key, effect } = *frame {
        let bytes = match effect {
            Effect::Put(bytes) | Effect::Write { bytes, .. } => bytes.len(),
            Effect::Remove => 0,
        };
        *changed.entry(table).or_default() += (key.len() + bytes) as u64;
    }
}

fn for_each_frame<E: From<Error>>(
    mut record: &[u8],
    take: &mut dyn FnMut(&Frame<'_>) -> std::result::Result<(), Refused<E>>,
) -> std::result::Result<(), Refused<E>> {
    while let Some(frame) = frame::next(&mut record) {
        let frame = frame.map_err(|what| Refused(Error::corrupt("the log", 0, what).into()))?;
        take(&frame)?;
    }
    Ok(())
}

/// The entries of a snapshot on their way.
struct Telling<'t, E> {
    table: TableId,
    recovery: &'t mut dyn Recovery<E>,
    progress: &'t mut Progress,
}

impl<E: From<Error>> snapshot::Told<E> for Telling<'_, E> {
    fn entry(&mut self, key: &[u8], value: &[u8]) -> std::result::Result<(), E> {
        self.recovery.entry(self.table, key, value)
    }

    fn read(&mut self, bytes: u64) {
        self.progress.add(bytes, self.recovery);
    }
}

pub(crate) struct Replay<'r, E> {
    pub(crate) tables: Tables,
    pub(crate) saved: BTreeMap<TableId, Lsn>,
    pub(crate) recovery: &'r mut dyn Recovery<E>,
    pub(crate) progress: Progress,
    /// Records of the log.
    pub(crate) records: u64,
}

impl<'r, E: From<Error>> Replay<'r, E> {
    /// Reads the snapshots, once it is known what is not to be done again, or leaves them to be read
    /// [in place](Recovery::stored).
    pub(crate) fn begin(
        disk: &dyn Disk,
        manifest: &Manifest,
        noted: Noted,
        snapshot_bytes: u64,
        recovery: &'r mut dyn Recovery<E>,
    ) -> std::result::Result<Replay<'r, E>, E> {
        let Noted { saved, changed, end } = noted;
        let tables = Tables { next: manifest.next_table, open: BTreeMap::new() };
        let all = snapshot_bytes + end.saturating_sub(manifest.start.lsn);
        let progress = Progress { all, ..Progress::default() };
        let mut replay = Replay { tables, saved, recovery, progress, records: 0 };
        for table in &manifest.tables {
            replay.create(table.id, &table.name, &table.description, table.own)?;
            if table.own.is_some() || replay.ends(table.id) {
                continue;
            }
            let Manifest { log, checkpoint, .. } = *manifest;
            let identity = Identity { log, checkpoint, table: table.id };
            let change_bytes = changed.get(&table.id).copied().unwrap_or(0);
            if let Some(stored) = snapshot::open(disk, &identity)?
                && replay.recovery.stored(table.id, stored, change_bytes)?
            {
                continue;
            }
            let Replay { recovery, progress, .. } = &mut replay;
            snapshot::read(
                disk,
                &identity,
                &mut Telling { table: table.id, recovery: *recovery, progress },
            )?;
        }
        Ok(replay)
    }

    /// Whether the table is there, or was.
    pub(crate) fn knows(&self, table: TableId) -> bool {
        self.tables.open.contains_key(&table) || self.ends(table)
    }

    /// Whether the table ends in the log.
    pub(crate) fn ends(&self, table: TableId) -> bool {
        self.saved.get(&table) == Some(&Lsn::MAX)
    }

    pub(crate) fn create(
        &mut self,
        id: TableId,
        name: &str,
        description: &[u8],
        own: Option<u64>,
    ) -> std::result::Result<(), E> {
        self.tables.next = self.tables.next.max(id.saturating_add(1));
        // One that was made while the checkpoint was begun may be in both.
        if self.knows(id) {
            return Ok(());
        }
        let (name_kept, description_kept) = (name.to_owned(), description.to_vec());
        let open = OpenTable { name: name_kept, description: description_kept, contents: None };
        self.tables.open.insert(id, open);
        self.recovery.create(id, name, description, own)
    }

    /// All was read.
    pub(crate) fn end(&mut self) {
        self.recovery.progress(self.progress.all, self.progress.all);
    }

    /// Does a record of the log again.
    pub(crate) fn take(&mut self, lsn: Lsn, record: &[u8]) -> std::result::Result<(), Refused<E>> {
        self.records += 1;
        self.progress.add(record.len() as u64, self.recovery);
        for_each_frame(record, &mut |frame| self.frame(lsn, frame).map_err(Refused))
    }

    pub(crate) fn frame(&mut self, lsn: Lsn, frame: &Frame<'_>) -> std::result::Result<(), E> {
        match *frame {
            // Tables that end in the log are not told.
            Frame::Saved { .. } | Frame::Drop { .. } => Ok(()),
            Frame::Change { table, .. } if self.saved.get(&table).is_some_and(|to| lsn <= *to) => {
                Ok(())
            }
            // Of a table that was dropped before the last of its writers ended.
            Frame::Change { table, .. } if !self.tables.open.contains_key(&table) => Ok(()),
            Frame::Change { table, key, effect } => self.recovery.change(table, key, effect),
            Frame::Create { table, name, description } => {
                self.create(table, name, description, None)
            }
        }
    }
}
