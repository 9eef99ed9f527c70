//! A name that stands for a hash table: stored, open, or just dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sapwood_hashlog::HashLog;
use sapwood_wal::TableId;

use crate::db::recovery::LoggedHash;
use crate::db_log::{DbLog, DropOfHash, Kept, Place};
use crate::directory::Directory;
use crate::stored_options;
use crate::{Cut, Error, HashEngineError, HashTable, HashTableOptions, Result, StoredCheckpoint};

/// A hash table by name. Opening it, which may take long, locks this name alone.
#[derive(Debug)]
pub(crate) struct HashSlot {
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Lies in the directory.
    Stored(Stored),
    Open(HashTable),
    /// Dropped by a thread that is about to take the name away.
    Dropped,
}

/// What is known of a table that is not open.
#[derive(Debug, Clone, Default)]
struct Stored {
    /// Its number in the log, where there is one.
    logged: Option<(Arc<DbLog>, TableId)>,
    /// Why what the log has of it cannot be put into it.
    unrecovered: Option<Error>,
}

/// How a table is to be opened.
pub(crate) enum Opening {
    /// As the newest checkpoint left it, or as it is if it is open.
    Newest,
    /// As the newest checkpoint left it, with other options.
    With(HashTableOptions),
    /// As a checkpoint of this number left it.
    At(u64),
}

impl HashSlot {
    /// Of a table of a directory that is open to be read, where nothing is logged.
    pub(crate) fn stored() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Stored(Stored::default())) })
    }

    /// Of a table that the log has, if there is one.
    pub(crate) fn logged(table: LoggedHash, log: Option<&Arc<DbLog>>) -> Arc<Self> {
        let with = |id| log.cloned().zip(id);
        let state = match table {
            LoggedHash::Open(table) => State::Open(table),
            LoggedHash::Closed(id) => {
                State::Stored(Stored { logged: with(Some(id)), unrecovered: None })
            }
            LoggedHash::Unrecovered(id, error) => {
                State::Stored(Stored { logged: with(id), unrecovered: Some(error) })
            }
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    pub(crate) fn open_already(table: HashTable) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Open(table)) })
    }

    /// The table, if it is open.
    pub(crate) fn opened(&self) -> Option<HashTable> {
        match &*self.state() {
            State::Open(table) => Some(table.clone()),
            State::Stored(_) | State::Dropped => None,
        }
    }

    /// Opens the table; `None` if it was dropped.
    pub(crate) fn open(
        &self,
        name: &Arc<str>,
        opening: Opening,
        directory: Option<&Arc<Directory>>,
    ) -> Result<Option<HashTable>> {
        let mut state = self.state();
        match (&*state, &opening) {
            (State::Dropped, _) => return Ok(None),
            (State::Open(table), Opening::Newest) => return Ok(Some(table.clone())),
            (State::Open(table), _) => {
                if directory.is_none() {
                    return Err(Error::NoDirectory);
                }
                expect_unused(table, "open")?;
                match opening {
                    // What was changed since the last checkpoint stays.
                    Opening::With(_) if !is_read_only(directory) => {
                        table.checkpoint(Cut::Incremental).map(|_| ())?
                    }
                    Opening::At(number) => expect_checkpoint(table, number)?,
                    Opening::With(_) | Opening::Newest => {}
                }
                *state = State::Stored(closed(table)?);
            }
            (State::Stored(_), _) => {}
        }
        let State::Stored(known) = &mut *state else { return Ok(None) };
        let directory = directory.expect("only tables of a directory are stored");
        let folder = directory.folder(name)?;
        let stored = folder.read_options()?;
        match (&opening, &known.unrecovered) {
            (Opening::Newest | Opening::With(_), Some(error)) => return Err(error.clone()),
            (Opening::At(number), _) if !directory.is_read_only() => {
                // It opens: what is newer may go.
                HashLog::view(Arc::clone(&folder.disk), stored.engine(), *number)
                    .map_err(|cause| Error::HashEngine { table: Arc::clone(name), cause })?;
                if let Some((log, id)) = &mut known.logged {
                    // What the log has of it is of another history from here on.
                    let before = std::mem::replace(id, log.create_hash(name)?);
                    log.drop_hash(before)?;
                }
                known.unrecovered = None;
            }
            _ => {}
        }
        let disk = Arc::clone(&folder.disk);
        let fields = match &opening {
            Opening::With(options) => &options.fields,
            Opening::Newest | Opening::At(_) => &stored.fields,
        };
        let log = match &opening {
            Opening::Newest => HashLog::open(disk, stored.engine()),
            Opening::At(number) => HashLog::open_at(disk, stored.engine(), *number),
            Opening::With(options) => {
                expect_same_shape(name, &stored, options)?;
                stored_options::check(name, options)?;
                HashLog::open(disk, options.engine())
            }
        };
        let log = log.map_err(|cause| Error::HashEngine { table: Arc::clone(name), cause })?;
        if let Opening::With(options) = &opening
            && !directory.is_read_only()
        {
            folder.write_options(options)?;
        }
        let (log, kept) = match &known.logged {
            Some((db_log, id)) => db_log.open_hash(*id, log),
            None => (Arc::new(log), Kept::in_memory(directory.versions())),
        };
        let directory = Some(Arc::clone(directory));
        let table = HashTable::new(Arc::clone(name), log, fields.clone(), directory, kept);
        *state = State::Open(table.clone());
        Ok(Some(table))
    }

    /// The options of the table, read from its directory unless it is open; `None` if it was dropped.
    pub(crate) fn options(
        &self,
        name: &str,
        directory: Option<&Arc<Directory>>,
    ) -> Result<Option<HashTableOptions>> {
        match &*self.state() {
            State::Dropped => Ok(None),
            State::Open(table) => Ok(Some(table.options())),
            State::Stored(_) => {
                let directory = directory.expect("only tables of a directory are stored");
                directory.folder(name)?.read_options().map(Some)
            }
        }
    }

    /// Opens a view of the table as a checkpoint left it; `None` if it was dropped.
    pub(crate) fn view(
        &self,
        name: &Arc<str>,
        number: u64,
        directory: Option<&Arc<Directory>>,
    ) -> Result<Option<HashTable>> {
        // Held, so that no other thread opens the table beside it.
        let state = self.state();
        match &*state {
            State::Dropped => return Ok(None),
            State::Open(_) if directory.is_none() => return Err(Error::NoDirectory),
            State::Open(_) => return Err(Error::TableOpen { name: name.to_string() }),
            State::Stored(_) => {}
        }
        let directory = directory.expect("only tables of a directory are stored");
        let folder = directory.folder(name)?;
        let stored = folder.read_options()?;
        let log = HashLog::view(Arc::clone(&folder.disk), stored.engine(), number)
            .map_err(|cause| Error::HashEngine { table: Arc::clone(name), cause })?;
        let kept = Kept::in_memory(directory.versions());
        let directory = Some(Arc::clone(directory));
        let view = HashTable::new(Arc::clone(name), Arc::new(log), stored.fields, directory, kept);
        Ok(Some(view))
    }

    /// The table's checkpoints; `None` if it was dropped.
    pub(crate) fn checkpoints(
        &self,
        name: &Arc<str>,
        directory: Option<&Arc<Directory>>,
    ) -> Result<Option<Vec<StoredCheckpoint>>> {
        let state = self.state();
        let directory = directory.ok_or(Error::NoDirectory)?;
        let taken = |file: &str| directory.written(name, file);
        let all = match &*state {
            State::Dropped => return Ok(None),
            State::Open(table) => table
                .checkpoints()?
                .into_iter()
                .map(|info| StoredCheckpoint {
                    number: info.number,
                    taken: taken(&info.file_name()),
                    state: Ok(info),
                })
                .collect(),
            State::Stored(_) => {
                let folder = directory.folder(name)?;
                let stored = HashLog::stored(&folder.disk)
                    .map_err(|cause| Error::HashEngine { table: Arc::clone(name), cause })?;
                let stored = stored.into_iter().map(|stored| StoredCheckpoint {
                    number: stored.number,
                    taken: taken(&stored.file_name()),
                    state: stored.state,
                });
                stored.collect()
            }
        };
        Ok(Some(all))
    }

    /// Takes the table and its files away; false if another thread did.
    pub(crate) fn remove(&self, name: &str, directory: Option<&Directory>) -> Result<bool> {
        let mut state = self.state();
        match (&*state, directory) {
            (State::Dropped, _) => return Ok(false),
            (State::Open(table), Some(_)) => expect_unused(table, "drop")?,
            _ => {}
        }
        if let Some(directory) = directory {
            directory.expect_writable()?;
        }
        let in_memory = match (&*state, directory) {
            (State::Open(table), None) => Some(table.shared.kept.clone()),
            _ => None,
        };
        // Its files are closed before they go; if they cannot go, it can be opened again.
        let (known, unsaved) = match &*state {
            State::Open(table) => let_go(table)?,
            State::Stored(known) => (known.clone(), None),
            State::Dropped => (Stored::default(), None),
        };
        let logged = known.logged.clone();
        *state = State::Stored(known);
        let removed = || -> Result<()> {
            if let Some((log, _)) = &logged {
                // The table ends with its files: changes of other tables before that must last, too.
                log.sync()?;
            }
            directory.map_or(Ok(()), |directory| directory.remove(name))
        };
        if let Err(error) = removed() {
            if let (State::Stored(known), Some(unsaved)) = (&mut *state, unsaved) {
                // Its files have less than the log, which is done again when the database is opened.
                known.unrecovered = Some(error.clone());
                unsaved.failed(format!("table `{name}` cannot be dropped: {error}"));
            }
            return Err(error);
        }
        if let Some(kept) = in_memory {
            kept.note_dropped(name);
        }
        *state = State::Dropped;
        // A crash in between leaves a table of the log that has no folder: opening takes it out.
        let ended = logged.map_or(Ok(()), |(log, id)| log.drop_hash(id));
        if let Some(unsaved) = unsaved {
            unsaved.done();
        }
        ended.map(|()| true)
    }

    // Each step leaves a state that is true, so that a panic between them does no harm.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of a table that is about to be closed: what its newest checkpoint does not have is
/// in the log, if anywhere.
fn closed(table: &HashTable) -> Result<Stored> {
    let Place::Logged { log, id } = &table.shared.kept.place else { return Ok(Stored::default()) };
    // Refused where it would wait for a checkpoint that waits for this thread.
    log.close_hash(*id, 0)?;
    let newest = table.checkpoints()?.last().map_or(0, |info| info.number);
    log.close_hash(*id, newest)?;
    Ok(Stored { logged: Some((Arc::clone(log), *id)), unrecovered: None })
}

/// Closes a table that is about to be dropped. Where its newest checkpoint lacks changes, they are in the log alone, which
/// keeps them until the drop has ended.
fn let_go(table: &HashTable) -> Result<(Stored, Option<DropOfHash>)> {
    match &table.shared.kept.place {
        Place::Logged { log, id } if table.log().unchanged_since().is_none() => {
            let unsaved = log.begin_drop_of_hash(*id)?;
            let known = Stored { logged: Some((Arc::clone(log), *id)), unrecovered: None };
            Ok((known, Some(unsaved)))
        }
        _ => closed(table).map(|known| (known, None)),
    }
}

fn is_read_only(directory: Option<&Arc<Directory>>) -> bool {
    directory.is_some_and(|directory| directory.is_read_only())
}

/// Two logs must not write to one folder. The slot's own handle does not count; it is under this
/// slot's lock, so that no other is given out meanwhile.
fn expect_unused(table: &HashTable, what: &'static str) -> Result<()> {
    match table.is_only_handle() {
        true => Ok(()),
        false => Err(Error::TableInUse { name: table.name().to_owned(), what }),
    }
}

/// Before the table is closed for it, and what was changed since its last checkpoint lost.
fn expect_checkpoint(table: &HashTable, number: u64) -> Result<()> {
    let known: Vec<u64> = table.checkpoints()?.iter().map(|info| info.number).collect();
    match known.contains(&number) {
        true => Ok(()),
        false => Err(Error::CheckpointMissing { name: table.name().to_owned(), number, known }),
    }
}

fn expect_same_shape(
    name: &Arc<str>,
    stored: &HashTableOptions,
    options: &HashTableOptions,
) -> Result<()> {
    if (stored.layout, stored.page_bytes) == (options.layout, options.page_bytes) {
        return Ok(());
    }
    let what = format!(
        "the table was made with layout {:?} and pages of {} bytes, and keeps them",
        stored.layout, stored.page_bytes
    );
    let cause = HashEngineError::Options(what);
    Err(Error::HashEngine { table: Arc::clone(name), cause })
}
