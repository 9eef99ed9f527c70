//! A name that stands for a hash table: stored, open, or just dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sapwood_hashlog::HashLog;

use crate::directory::Directory;
use crate::stored_options;
use crate::{Cut, Error, HashEngineError, HashTable, HashTableOptions, Result, StoredCheckpoint};

/// A hash table by name. Opening it, which may take long, locks this name alone.
#[derive(Debug)]
pub(super) struct HashSlot {
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Lies in the directory.
    Stored,
    Open(HashTable),
    /// Dropped by a thread that is about to take the name away.
    Dropped,
}

/// How a table is to be opened.
pub(super) enum Opening {
    /// As the newest checkpoint left it, or as it is if it is open.
    Newest,
    /// As the newest checkpoint left it, with other options.
    With(HashTableOptions),
    /// As a checkpoint of this number left it.
    At(u64),
}

impl HashSlot {
    pub(super) fn stored() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Stored) })
    }

    pub(super) fn open_already(table: HashTable) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Open(table)) })
    }

    /// The table, if it is open.
    pub(super) fn opened(&self) -> Option<HashTable> {
        match &*self.state() {
            State::Open(table) => Some(table.clone()),
            State::Stored | State::Dropped => None,
        }
    }

    /// Opens the table; `None` if it was dropped.
    pub(super) fn open(
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
                *state = State::Stored;
            }
            (State::Stored, _) => {}
        }
        let directory = directory.expect("only tables of a directory are stored");
        let folder = directory.folder(name)?;
        let stored = folder.read_options()?;
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
        let table =
            HashTable::new(Arc::clone(name), log, fields.clone(), Some(Arc::clone(directory)));
        *state = State::Open(table.clone());
        Ok(Some(table))
    }

    /// The options of the table, read from its directory unless it is open; `None` if it was dropped.
    pub(super) fn options(
        &self,
        name: &str,
        directory: Option<&Arc<Directory>>,
    ) -> Result<Option<HashTableOptions>> {
        match &*self.state() {
            State::Dropped => Ok(None),
            State::Open(table) => Ok(Some(table.options())),
            State::Stored => {
                let directory = directory.expect("only tables of a directory are stored");
                directory.folder(name)?.read_options().map(Some)
            }
        }
    }

    /// Opens a view of the table as a checkpoint left it; `None` if it was dropped.
    pub(super) fn view(
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
            State::Stored => {}
        }
        let directory = directory.expect("only tables of a directory are stored");
        let folder = directory.folder(name)?;
        let stored = folder.read_options()?;
        let log = HashLog::view(Arc::clone(&folder.disk), stored.engine(), number)
            .map_err(|cause| Error::HashEngine { table: Arc::clone(name), cause })?;
        let directory = Some(Arc::clone(directory));
        Ok(Some(HashTable::new(Arc::clone(name), log, stored.fields, directory)))
    }

    /// The table's checkpoints; `None` if it was dropped.
    pub(super) fn checkpoints(
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
            State::Stored => {
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
    pub(super) fn remove(&self, name: &str, directory: Option<&Directory>) -> Result<bool> {
        let mut state = self.state();
        match (&*state, directory) {
            (State::Dropped, _) => return Ok(false),
            (State::Open(table), Some(_)) => expect_unused(table, "drop")?,
            _ => {}
        }
        if let Some(directory) = directory {
            directory.expect_writable()?;
        }
        // Its files are closed before they go; if they cannot go, it can be opened again.
        *state = State::Stored;
        if let Some(directory) = directory {
            directory.remove(name)?;
        }
        *state = State::Dropped;
        Ok(true)
    }

    // Each step leaves a state that is true, so that a panic between them does no harm.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
