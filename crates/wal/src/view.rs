//! Reading what a log has at one moment, while another process appends to it and writes checkpoints.
//!
//! ```text
//! begin:  hold files ── manifest ── log, to its end ─────┐
//! caller: opens what tables have beside the log          ├── all of it is of moments before the end
//! tell:   log, to its end again: the end ────────────────┘
//!         snapshots ── log, up to the end
//! ```
//!
//! # Invariants
//!
//! - I-BEHIND: whatever a file that the caller opens between `begin` and `tell` has of a table, the log
//!   has up to the end: changes are in the log before any other file has them, and the end is looked for afterwards.
//!   Doing changes again harms nothing, so that the tables are as of the end.
//!
//! What the manifest names stays, though newer checkpoints are written: the writer asks whether the folder
//! [is being read](Disk::is_being_read) before it takes away or uses again what its own manifest names no more.
//! If the reader held the files first, the writer sees that. If the writer asked first, its new manifest was there
//! by then, and the reader reads that one or a later one.
//!
//! The entries of a table that is loaded are in its snapshot alone, and the log says that it is loaded before the new
//! manifest counts ([`Frame::loaded`]). A reader that is told so, and then finds another manifest than its own, may have
//! later changes of the table without these entries.

use std::collections::{BTreeMap, BTreeSet};

use sapwood_disk::log::{Log, LogStart, Lsn};
use sapwood_disk::{Disk, Reading};

use crate::error::{Error, Result};
use crate::frame::{Frame, TableId};
use crate::manifest::Manifest;
use crate::open::{
    Noted, Recovery, Refused, Replay, note_changed, note_saved, read_frames, snapshots,
};
use crate::wal::LOG_PREFIX;

/// The log in a folder, of which a writer may be another process. Its checkpoint and what comes after it stay there
/// as long as this lives.
#[derive(Debug)]
pub struct View<'d> {
    disk: &'d dyn Disk,
    reading: Option<Reading>,
    manifest: Manifest,
    /// Up to where checkpoints of tables count that were complete when it began.
    saved: BTreeMap<TableId, Lsn>,
    /// Names and descriptions of those that there were then.
    tables: BTreeMap<TableId, (String, Vec<u8>)>,
    /// Bytes of the changes that the log has of each, so far.
    changed: BTreeMap<TableId, u64>,
    /// Where the log ended then, or, once all is told, up to where.
    end: LogStart,
    /// True where the log says up to there that a table is loaded.
    has_loads: bool,
}

impl<'d> View<'d> {
    /// Looks for the checkpoint and for the end of the log.
    ///
    /// # Errors
    /// As of [`Wal::open`](crate::Wal::open).
    pub fn begin(disk: &'d dyn Disk) -> Result<View<'d>> {
        let reading = disk.begin_reading();
        let reading = reading.map_err(|cause| Error::io("begin to read the log", &cause))?;
        let manifest = Manifest::read(disk)?;
        let named = manifest.tables.iter();
        let mut tables: BTreeMap<TableId, (String, Vec<u8>)> = named
            .map(|table| (table.id, (table.name.clone(), table.description.clone())))
            .collect();
        let (mut saved, mut changed) = (BTreeMap::new(), BTreeMap::new());
        let mut has_loads = false;
        let mut note = |_lsn: Lsn, frame: &Frame<'_>| {
            note_saved(&mut saved, frame);
            note_changed(&mut changed, frame);
            has_loads |= frame.is_loaded();
            if let Frame::Create { table, name, description } = *frame {
                tables.insert(table, (name.to_owned(), description.to_vec()));
            }
        };
        let end = read_frames(disk, manifest.log, manifest.start, &mut note)?;
        tables.retain(|table, _| saved.get(table) != Some(&Lsn::MAX));
        Ok(View { disk, reading, manifest, saved, tables, changed, end, has_loads })
    }

    /// The tables that there were when it began: number, name, description. What is to be read of the files of
    /// each must be open before [`tell`](Self::tell).
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &str, &[u8])> {
        self.tables.iter().map(|(id, (name, description))| (*id, name.as_str(), &description[..]))
    }

    /// The number that a table's own checkpoint had at the checkpoint of the log; none of a table without such, and of
    /// one that came later.
    pub fn checkpoint_of(&self, table: TableId) -> Option<u64> {
        self.manifest.tables.iter().find(|known| known.id == table).and_then(|known| known.own)
    }

    /// Whether a table was there when it began. Of one that came later the log has all changes.
    pub fn knows(&self, table: TableId) -> bool {
        self.tables.contains_key(&table)
    }

    /// Tells what the tables have at the end of the log, as [`Wal::open`](crate::Wal::open) does, and nothing of
    /// what is appended meanwhile; the number of the log, and where it ended.
    ///
    /// # Errors
    /// As of [`Wal::open`](crate::Wal::open).
    pub fn tell<E: From<Error>>(
        &mut self,
        recovery: &mut dyn Recovery<E>,
    ) -> std::result::Result<(u64, Lsn), E> {
        let View { disk, ref manifest, .. } = *self;
        let mut saved = self.saved.clone();
        // A checkpoint of a table that was completed since may be newer than what the caller has opened: it does
        // not count.
        let mut note = |_lsn: Lsn, frame: &Frame<'_>| {
            if matches!(frame, Frame::Drop { .. }) {
                note_saved(&mut saved, frame);
            }
            note_changed(&mut self.changed, frame);
            self.has_loads |= frame.is_loaded();
        };
        let end = read_frames(disk, manifest.log, self.end, &mut note)?;
        let (_, snapshot_bytes) = snapshots(disk, manifest.checkpoint)?;
        let noted = Noted { saved, changed: self.changed.clone(), end: end.lsn };
        let mut replay = Replay::begin(disk, manifest, noted, snapshot_bytes, recovery)?;
        let mut take = |lsn: Lsn, record: &[u8]| match lsn <= end.lsn {
            true => replay.take(lsn, record),
            false => Ok(()),
        };
        let read = Log::view(disk, manifest.log, LOG_PREFIX, manifest.start, &mut take);
        read.map_err(Refused::into_inner)?;
        replay.end();
        self.end = end;
        Ok((manifest.log, end.lsn))
    }

    /// The tables that have ended since it began, or since all was told.
    ///
    /// # Errors
    /// As of [`Wal::open`](crate::Wal::open).
    pub fn ended_since(&self) -> Result<BTreeSet<TableId>> {
        let mut ended = BTreeSet::new();
        let mut note = |_lsn: Lsn, frame: &Frame<'_>| {
            if let Frame::Drop { table } = *frame {
                ended.insert(table);
            }
        };
        read_frames(self.disk, self.manifest.log, self.end, &mut note)?;
        Ok(ended)
    }

    /// True where all that the manifest names was there all the time, and nothing was missing that it does not name: the
    /// writer knew of this reader, and has loaded no table, or it has written no other manifest.
    ///
    /// # Errors
    /// As of [`Wal::open`](crate::Wal::open).
    pub fn is_whole(&self) -> Result<bool> {
        let is_kept = self.reading.is_some() && !self.has_loads;
        Ok(is_kept || Manifest::read(self.disk)? == self.manifest)
    }
}
