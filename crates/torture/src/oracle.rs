//! What a database must hold, known from the seed and from what workers told: outside of the
//! process that is tortured, and without the database's own word for anything.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use sapwood::{Db, HashTable};

use crate::leftovers;
use crate::message::Message;
use crate::stream::{Contents, Stream};
use crate::tables;

/// All that is known of a database.
#[derive(Debug, Clone)]
pub(crate) struct Oracle {
    seed: u64,
    threads: u64,
    tables: BTreeMap<String, TableOracle>,
}

#[derive(Debug, Clone)]
struct TableOracle {
    presence: Presence,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    There,
    /// It was being made or dropped.
    Either,
}

/// The contents of one thread's part of a table.
#[derive(Debug, Clone)]
struct Part {
    stream: Stream,
    /// Its position as it was found last; `None` before the first one lasts.
    found: Option<u64>,
    /// Operations that lasting checkpoints cover.
    least: u64,
    /// The findings then.
    contents: Contents,
}

/// The counts and findings of a look at a database.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compared {
    pub(crate) tables: u64,
    pub(crate) entries: u64,
    /// Operations that were not there at the look before.
    pub(crate) operations: u64,
    /// Files that nothing needs.
    pub(crate) leftovers: Vec<String>,
}

impl Oracle {
    pub(crate) fn new(seed: u64, threads: u64) -> Oracle {
        Oracle { seed, threads, tables: BTreeMap::new() }
    }

    /// Takes in what a worker told. `Err` is what the worker itself found wrong.
    pub(crate) fn hear(&mut self, messages: &[Message]) -> Result<(), String> {
        for message in messages {
            match message {
                Message::Making(name) => {
                    let streams = tables::streams(self.seed, name, self.threads);
                    let part =
                        |stream| Part { stream, found: None, least: 0, contents: Contents::new() };
                    let parts = streams.into_iter().map(part).collect();
                    let table = TableOracle { presence: Presence::Either, parts };
                    self.tables.insert(name.clone(), table);
                }
                Message::Made(name) => self.table(name)?.presence = Presence::There,
                Message::Dropping(name) => self.table(name)?.presence = Presence::Either,
                Message::Dropped(name) => drop(self.tables.remove(name)),
                Message::Checkpoint(name, covered) => {
                    for (part, covered) in self.table(name)?.parts.iter_mut().zip(covered) {
                        part.least = part.least.max(*covered);
                    }
                }
                Message::Wrong(what) => return Err(format!("the worker says: {what}")),
                Message::Opened
                | Message::Step(..)
                | Message::Refused(_)
                | Message::Calls(_)
                | Message::Ended => {}
            }
        }
        Ok(())
    }

    fn table(&mut self, name: &str) -> Result<&mut TableOracle, String> {
        self.tables.get_mut(name).ok_or_else(|| format!("the worker told of {name} out of order"))
    }

    /// Opens the database and compares all of it; what is found is what the next look begins with.
    pub(crate) fn look(&mut self, folder: &Path) -> Result<Compared, String> {
        let db = Db::open(folder).map_err(|e| format!("the database does not open: {e}"))?;
        let mut compared = self.compare(&db)?;
        for name in self.tables.keys() {
            let table = db.hash_table(name).map_err(|e| e.to_string())?;
            let left = leftovers::of_table(&folder.join("tables").join(name), &table)?;
            compared.leftovers.extend(left.iter().map(|file| format!("{name}/{file}")));
        }
        Ok(compared)
    }

    /// The same on a disk without room: the database opens; a table that needs room to take the changes of
    /// the log says so, and a reader has all of it.
    pub(crate) fn look_without_room(&mut self, folder: &Path) -> Result<Compared, String> {
        let db = Db::open(folder).map_err(|e| format!("the database does not open: {e}"))?;
        for name in self.tables.keys() {
            match db.hash_table(name) {
                Ok(table) => table.check().map_err(|e| e.to_string())?,
                Err(e)
                    if db.table_names().contains(name) && !e.to_string().contains("No space") =>
                {
                    return Err(format!("table {name} does not open: {e}"));
                }
                Err(_) => {}
            }
        }
        drop(db);
        let db = Db::open_read_only(folder).map_err(|e| format!("it cannot be read: {e}"))?;
        self.compare(&db)
    }

    fn compare(&mut self, db: &Db) -> Result<Compared, String> {
        let there: BTreeSet<String> = db.table_names().into_iter().collect();
        if let Some(name) = there.iter().find(|name| !self.tables.contains_key(*name)) {
            return Err(format!("table {name} is there, and was dropped or never made"));
        }
        for (name, table) in &self.tables {
            if table.presence == Presence::There && !there.contains(name) {
                return Err(format!("table {name} is gone"));
            }
        }
        self.tables.retain(|name, _| there.contains(name));
        let mut compared = Compared::default();
        for (name, oracle) in &mut self.tables {
            oracle.presence = Presence::There;
            let table = db.hash_table(name).map_err(|e| format!("it does not open: {e}"))?;
            let parts = compare(&table, oracle).map_err(|what| format!("table {name}: {what}"))?;
            compared.tables += 1;
            compared.entries += parts.entries;
            compared.operations += parts.operations;
        }
        Ok(compared)
    }
}

/// Reads a table in every way there is, which must agree, and compares it with the oracle.
fn compare(table: &HashTable, oracle: &mut TableOracle) -> Result<Compared, String> {
    let all = read_all(table)?;
    let mut compared = Compared { entries: all.len() as u64, ..Compared::default() };
    let mut parts: BTreeMap<u64, Contents> = BTreeMap::new();
    for (key, value) in all {
        let owner = Stream::owner(table.layout(), &key);
        let owner = owner.filter(|owner| *owner < oracle.parts.len() as u64);
        let owner = owner.ok_or_else(|| format!("the key {key:?} was never put"))?;
        parts.entry(owner).or_default().insert(key, value);
    }
    for part in &mut oracle.parts {
        let contents = parts.remove(&part.stream.thread).unwrap_or_default();
        let operations = part
            .advance(contents)
            .map_err(|what| format!("thread {}: {what}", part.stream.thread))?;
        compared.operations += operations;
        for (key, value) in &part.contents {
            let found = table.get(key).map_err(|e| format!("get: {e}"))?;
            if found.as_ref() != Some(value) {
                return Err(format!("get of {key:?} answers {found:?}, and a walk {value:?}"));
            }
        }
        // Keys that are not there are not found either.
        for number in 0..40 {
            for key in part.stream.op(number).keys() {
                let found = table.contains_key(key).map_err(|e| format!("contains_key: {e}"))?;
                if found != part.contents.contains_key(key) {
                    return Err(format!("contains_key of {key:?} answers {found}"));
                }
            }
        }
    }
    table.check().map_err(|e| e.to_string())?;
    Ok(compared)
}

/// All entries, by two walks and a count that must agree.
pub(crate) fn read_all(table: &HashTable) -> Result<Contents, String> {
    let mut walked = Contents::new();
    let mut twice = None;
    let _all = table
        .for_each(|key, value| {
            if walked.insert(key.to_vec(), value.to_vec()).is_some() {
                twice = Some(key.to_vec());
            }
            ControlFlow::<()>::Continue(())
        })
        .map_err(|e| format!("for_each: {e}"))?;
    let mut scanned = Contents::new();
    let _all = table
        .scan_log(|key, value| {
            if scanned.insert(key.to_vec(), value.to_vec()).is_some() {
                twice = Some(key.to_vec());
            }
            ControlFlow::<()>::Continue(())
        })
        .map_err(|e| format!("scan_log: {e}"))?;
    if let Some(key) = twice {
        return Err(format!("a walk sees the key {key:?} twice"));
    }
    if let Some(what) = difference(&scanned, &walked) {
        return Err(format!("scan_log and for_each differ: {what}"));
    }
    let count = table.len().map_err(|e| format!("len: {e}"))?;
    if count != walked.len() {
        return Err(format!("len counts {count}, and a walk {}", walked.len()));
    }
    Ok(walked)
}

impl Part {
    /// Compares what was found with what the operations up to the position in it have made, and
    /// takes it over. Answers how many operations came since.
    fn advance(&mut self, mut found: Contents) -> Result<u64, String> {
        let position = found.remove(&self.stream.position_key());
        let position = match position.as_deref().map(<[u8; 8]>::try_from) {
            None => None,
            Some(Ok(bytes)) => Some(u64::from_le_bytes(bytes)),
            Some(Err(_)) => return Err(format!("the position is {position:?}")),
        };
        if position.unwrap_or(0) < self.least {
            return Err(format!("{position:?} operations last, and {} should", self.least));
        }
        let before = self.found;
        let first = before.map_or(0, |found| found + 1);
        let operations = match position {
            _ if position == before => 0,
            Some(position) if position >= first => position - first,
            _ => return Err(format!("the position went from {before:?} back to {position:?}")),
        };
        for number in first..first + operations {
            self.stream.op(number).apply(&mut self.contents);
        }
        // The operation at the position may be there in part; not if nothing came since, for it is
        // not done again.
        let mut doubtful = Contents::new();
        if position != before {
            let next = self.stream.op(first + operations);
            let stages = next.stages(&self.contents);
            for key in BTreeSet::from_iter(next.keys()) {
                let value = found.remove(key);
                if !stages.iter().any(|stage| stage.get(key) == value.as_ref()) {
                    let number = first + operations;
                    return Err(format!(
                        "after a part of operation {number}: {key:?} has {value:?}"
                    ));
                }
                self.contents.remove(key);
                doubtful.extend(value.map(|value| (key.to_vec(), value)));
            }
        }
        if let Some(what) = difference(&found, &self.contents) {
            return Err(format!("not what {position:?} operations leave: {what}"));
        }
        self.contents.extend(doubtful);
        self.found = position;
        self.least = position.unwrap_or(0);
        Ok(operations)
    }
}

/// How two contents differ, in a few words.
pub(crate) fn difference(found: &Contents, right: &Contents) -> Option<String> {
    let only = |these: &Contents, those: &Contents| -> Vec<Vec<u8>> {
        these.keys().filter(|key| !those.contains_key(*key)).cloned().collect()
    };
    let (more, less) = (only(found, right), only(right, found));
    let other: Vec<&Vec<u8>> = found
        .iter()
        .filter(|(key, value)| right.get(*key).is_some_and(|right| right != *value))
        .map(|(key, _)| key)
        .collect();
    if more.is_empty() && less.is_empty() && other.is_empty() {
        return None;
    }
    Some(format!(
        "{} keys too many, {} missing, {} with another value, such as {:?}",
        more.len(),
        less.len(),
        other.len(),
        more.iter().chain(&less).chain(other).next()
    ))
}
