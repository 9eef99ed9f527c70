//! What the files of a log say, and what can be read of damaged ones.

use std::collections::BTreeMap;

use sapwood_disk::Disk;
use sapwood_disk::log::{Log, LogSurvey, Lsn};
use sapwood_engine::Effect;

use crate::error::{Error, Result};
use crate::frame::{self, Frame, TableId};
use crate::manifest::{Manifest, Table};
use crate::open::{Progress, Recovery, Replay, note_saved};
use crate::snapshot::{self, Identity};
use crate::wal::{LOG_PREFIX, Tables, Wal};

/// What the files of a log say ([`Wal::inspect`]).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The number of the last checkpoint; 0 before the first.
    pub checkpoint: u64,
    /// The position that the log begins at: what came before is in the checkpoint.
    pub start: u64,
    /// The position behind the last record.
    pub end: u64,
    /// The log was synced up to there, as far as its files tell.
    pub durable: u64,
    /// The files of the log, in order, with the position of the first record and the bytes of each.
    pub parts: Vec<(String, u64, u64)>,
    /// The byte of the last file of the log at which its records end.
    pub end_offset: u64,
    /// The record that a crash has cut off at the end: its file, at which byte, and how many.
    pub cut_off: Option<(String, u64, u64)>,
    /// Files that are none of the log's, or were left by a crash.
    pub unread: Vec<String>,
    /// Records of the log.
    pub records: u64,
    /// What they say.
    pub frames: Frames,
    /// The tables that there are behind the last record.
    pub tables: Vec<InspectedTable>,
    /// What is damaged: the log, and, where snapshots were read, those.
    pub problems: Vec<Error>,
}

/// How often the log says something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frames {
    /// A key gets a value.
    pub puts: u64,
    /// Bytes of a value change in place.
    pub writes: u64,
    /// An entry goes.
    pub removes: u64,
    /// A table is made.
    pub creates: u64,
    /// A table ends.
    pub drops: u64,
    /// A table's engine has written a checkpoint.
    pub saves: u64,
}

/// A table of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InspectedTable {
    /// Its number, which no other table has or had.
    pub id: TableId,
    /// Its name.
    pub name: String,
    /// What its maker said of it.
    pub description: Vec<u8>,
    /// The file of its snapshot and the bytes of that; none of a table whose engine writes checkpoints, and of
    /// one that was made since the last checkpoint.
    pub snapshot: Option<(String, u64)>,
    /// Entries of its snapshot, if that was read.
    pub snapshot_entries: Option<u64>,
    /// The number of its engine's checkpoint as of the log's last one.
    pub own: Option<u64>,
    /// Its changes in the log.
    pub changes: u64,
}

impl Wal {
    /// Looks at the files of a log, whether they are damaged or not, and changes nothing. Records are read
    /// up to the first that is damaged; snapshots if `reads_snapshots`.
    ///
    /// # Errors
    /// [`Error::CorruptFile`] where the manifest is damaged, [`Error::Io`]. All else is in the answer.
    pub fn inspect(disk: &dyn Disk, reads_snapshots: bool) -> Result<Inspection> {
        let manifest = Manifest::read(disk)?;
        let mut problems = Vec::new();
        let mut tables = BTreeMap::new();
        for table in &manifest.tables {
            let mut inspected = InspectedTable::new(table.id, &table.name, &table.description);
            inspected.own = table.own;
            if table.own.is_none() {
                let Manifest { log, checkpoint, .. } = manifest;
                let identity = Identity { log, checkpoint, table: table.id };
                let name = identity.file_name();
                match disk.open(&name).and_then(|file| file.bytes()) {
                    Ok(bytes) => {
                        inspected.snapshot = Some((name, bytes));
                        let read = reads_snapshots.then(|| {
                            snapshot::read::<Error>(disk, &identity, &mut |_: &[u8], _: &[u8]| {
                                Ok(())
                            })
                        });
                        match read.transpose() {
                            Ok(entries) => inspected.snapshot_entries = entries,
                            Err(problem) => problems.push(problem),
                        }
                    }
                    Err(cause) => problems.push(Error::corrupt(&name, 0, cause.to_string())),
                }
            }
            tables.insert(table.id, inspected);
        }
        let (mut frames, mut records) = (Frames::default(), 0);
        let mut take = |_lsn: Lsn, mut record: &[u8]| -> Result<()> {
            records += 1;
            while let Some(frame) = frame::next(&mut record) {
                match frame {
                    Ok(frame) => frames.count(&frame, &mut tables),
                    Err(what) => {
                        problems.push(Error::corrupt("the log", 0, what));
                        break;
                    }
                }
            }
            Ok(())
        };
        let survey = survey(disk, &manifest, false, &mut take)?;
        problems.extend(survey.damage.iter().map(Error::damaged));
        Ok(Inspection {
            checkpoint: manifest.checkpoint,
            start: manifest.start.lsn,
            end: survey.end,
            durable: survey.durable,
            parts: survey
                .parts
                .into_iter()
                .map(|part| (part.name, part.first, part.bytes))
                .collect(),
            end_offset: survey.end_offset,
            cut_off: survey.cut_off.map(|cut| (cut.file, cut.offset, cut.bytes)),
            unread: survey.unread,
            records,
            frames,
            tables: tables.into_values().collect(),
            problems,
        })
    }

    /// Tells what can be read of a log that may be damaged, as [`Wal::view`] does of one that is not, and
    /// changes nothing; what is wrong with it. Of a damaged snapshot the entries before the damage are told. Where
    /// `goes_on`, changes behind damage of the log are told too: what comes of it need never have been there.
    ///
    /// Where the manifest is damaged, the newest snapshots count, and the whole log that there is; tables of
    /// which nothing else has the name are called `table-` and their number, and have no description.
    ///
    /// # Errors
    /// [`Error::Io`], and those of `recovery`.
    pub fn salvage<E: From<Error>>(
        disk: &dyn Disk,
        goes_on: bool,
        recovery: &mut dyn Recovery<E>,
    ) -> std::result::Result<Vec<Error>, E> {
        let mut problems = Vec::new();
        // What is to be known of the log before its changes are told.
        let (mut saved, mut made) = (BTreeMap::new(), BTreeMap::new());
        let mut look = |_lsn: Lsn, mut record: &[u8]| -> Result<()> {
            while let Some(Ok(frame)) = frame::next(&mut record) {
                note_saved(&mut saved, &frame);
                if let Frame::Create { table, name, description } = frame {
                    made.insert(table, (name.to_owned(), description.to_vec()));
                }
            }
            Ok(())
        };
        let manifest = match Manifest::read(disk) {
            Ok(manifest) => {
                survey(disk, &manifest, goes_on, &mut look)?;
                manifest
            }
            Err(newer @ Error::Newer { .. }) => return Err(newer.into()),
            Err(problem) => {
                problems.push(problem);
                let mut manifest = Manifest::made_up(disk)?;
                survey(disk, &manifest, goes_on, &mut look)?;
                for table in &mut manifest.tables {
                    if let Some((name, description)) = made.get(&table.id) {
                        (table.name, table.description) = (name.clone(), description.clone());
                    }
                }
                manifest
            }
        };
        let tables = Tables { next: manifest.next_table, open: BTreeMap::new() };
        let mut replay =
            Replay { tables, saved, recovery, progress: Progress::default(), records: 0 };
        for table in &manifest.tables {
            replay.create(table.id, &table.name, &table.description, table.own)?;
            if table.own.is_some() || replay.ends(table.id) {
                continue;
            }
            let Manifest { log, checkpoint, .. } = manifest;
            let identity = Identity { log, checkpoint, table: table.id };
            let read =
                snapshot::read::<Ended<E>>(disk, &identity, &mut |key: &[u8], value: &[u8]| {
                    replay.recovery.entry(table.id, key, value).map_err(Ended::ByRecovery)
                });
            match read {
                Ok(_entries) => {}
                Err(Ended::ByFile(problem)) => problems.push(problem),
                Err(Ended::ByRecovery(error)) => return Err(error),
            }
        }
        let mut unknown: BTreeMap<TableId, u64> = BTreeMap::new();
        let mut take = |lsn: Lsn, mut record: &[u8]| -> std::result::Result<(), Ended<E>> {
            while let Some(frame) = frame::next(&mut record) {
                match frame {
                    Ok(Frame::Change { table, .. }) if !replay.knows(table) => {
                        *unknown.entry(table).or_default() += 1;
                    }
                    Ok(frame) => replay.frame(lsn, &frame).map_err(Ended::ByRecovery)?,
                    Err(what) => {
                        problems.push(Error::corrupt("the log", 0, what));
                        break;
                    }
                }
            }
            Ok(())
        };
        let survey = match survey(disk, &manifest, goes_on, &mut take) {
            Err(Ended::ByFile(error)) => return Err(error.into()),
            Err(Ended::ByRecovery(error)) => return Err(error),
            Ok(survey) => survey,
        };
        problems.extend(survey.damage.iter().map(Error::damaged));
        for (table, changes) in unknown {
            // Of one that was dropped the last changes may come behind the drop.
            if !made.contains_key(&table) {
                let what = format!(
                    "{changes} changes are of table number {table}, of which nothing has the name"
                );
                problems.push(Error::corrupt("the log", 0, what));
            }
        }
        Ok(problems)
    }
}

fn survey<E: From<Error>>(
    disk: &dyn Disk,
    manifest: &Manifest,
    goes_on: bool,
    take: &mut dyn FnMut(Lsn, &[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<LogSurvey, E> {
    let mut take = |lsn: Lsn, record: &[u8]| take(lsn, record).map_err(Read::Taken);
    let Manifest { log, start, .. } = *manifest;
    Log::survey(disk, log, LOG_PREFIX, start, goes_on, &mut take).map_err(|read| match read {
        Read::Disk(cause) => Error::unread(&cause).into(),
        Read::Taken(error) => error,
    })
}

/// Why reading records ended.
enum Read<E> {
    Disk(std::io::Error),
    Taken(E),
}

impl<E> From<std::io::Error> for Read<E> {
    fn from(cause: std::io::Error) -> Read<E> {
        Read::Disk(cause)
    }
}

/// Why something ended.
enum Ended<E> {
    ByFile(Error),
    ByRecovery(E),
}

impl<E> From<Error> for Ended<E> {
    fn from(error: Error) -> Ended<E> {
        Ended::ByFile(error)
    }
}

impl Manifest {
    /// What may have stood in one that is damaged.
    fn made_up(disk: &dyn Disk) -> Result<Manifest> {
        let oldest = Log::oldest_part(disk, LOG_PREFIX).map_err(|cause| Error::unread(&cause))?;
        let Some((log, start)) = oldest else {
            return Err(Error::corrupt(
                "the log",
                0,
                "neither its manifest nor any part of it can be read",
            ));
        };
        let names = disk.list().map_err(|cause| Error::io("list the files of the log", &cause))?;
        let snapshots: Vec<_> =
            names.iter().filter_map(|name| snapshot::numbers_of(name)).collect();
        // A checkpoint that was not finished may have some; then the one before it has all.
        let numbers = snapshots.iter().map(|(checkpoint, _)| *checkpoint);
        let whole = |checkpoint: &u64| {
            let mut of_it = snapshots.iter().filter(|(number, _)| number == checkpoint);
            of_it.all(|&(checkpoint, table)| {
                let identity = Identity { log, checkpoint, table };
                snapshot::read::<Error>(disk, &identity, &mut |_: &[u8], _: &[u8]| Ok(())).is_ok()
            })
        };
        let newest = numbers.clone().max();
        let checkpoint = numbers.filter(whole).max().or(newest).unwrap_or(0);
        let of_it = snapshots.iter().filter(|(number, _)| *number == checkpoint);
        let tables = of_it.map(|(_, id)| {
            let name = format!("table-{id}");
            Table { id: *id, name, description: Vec::new(), own: None }
        });
        Ok(Manifest { log, checkpoint, start, next_table: 0, tables: tables.collect() })
    }
}

impl Frames {
    fn count(&mut self, frame: &Frame<'_>, tables: &mut BTreeMap<TableId, InspectedTable>) {
        match *frame {
            Frame::Change { table, effect, .. } => {
                match effect {
                    Effect::Put(_) => self.puts += 1,
                    Effect::Write { .. } => self.writes += 1,
                    Effect::Remove => self.removes += 1,
                }
                if let Some(table) = tables.get_mut(&table) {
                    table.changes += 1;
                }
            }
            Frame::Create { table, name, description } => {
                self.creates += 1;
                let made = || InspectedTable::new(table, name, description);
                tables.entry(table).or_insert_with(made);
            }
            Frame::Drop { table } => {
                self.drops += 1;
                tables.remove(&table);
            }
            Frame::Saved { .. } => self.saves += 1,
        }
    }
}

impl InspectedTable {
    fn new(id: TableId, name: &str, description: &[u8]) -> InspectedTable {
        InspectedTable {
            id,
            name: name.to_owned(),
            description: description.to_vec(),
            snapshot: None,
            snapshot_entries: None,
            own: None,
            changes: 0,
        }
    }
}
