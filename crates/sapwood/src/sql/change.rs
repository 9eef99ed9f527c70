//! Changes of the rows of a table: those of a statement take effect together.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sapwood_sql::{Change, ChangeError, Changed, Error, Insertion, Room, SourceResult};

use super::table::{Form, Puts, TableSource};
use super::words::said;
use crate::schema::{Batch, Cell, RowFormat, SourceColumn, Value};
use crate::transaction::Decision;
use crate::{Retry, Rows};

/// Times that new rows get other numbers at most, where other threads take those that they have.
const NUMBERINGS_MAX: u32 = 1_000;

/// Bytes that a new row takes beside its key and its value.
const ENTRY_BYTES: usize = 128;

impl Change for TableSource<'_> {
    fn insert(&self) -> SourceResult<Box<dyn Insertion + '_>> {
        let rows = match &self.form {
            Form::Rows(format) => Some((Rows::new(self.table.clone()).map_err(said)?, &**format)),
            Form::Bytes => None,
        };
        Ok(Box::new(NewRows { source: self, rows, held: Mutex::default() }))
    }

    fn update(
        &self,
        ids: &[&[u8]],
        change: &mut dyn FnMut(&[Value<'_>]) -> Changed,
        room: &mut Room<'_>,
    ) -> Result<u64, ChangeError> {
        self.decide(ids, &mut |row| Ok(change(row)?.map(New::Row)), room)
    }

    fn remove(
        &self,
        ids: &[&[u8]],
        wanted: &mut dyn FnMut(&[Value<'_>]) -> Result<bool, Error>,
        room: &mut Room<'_>,
    ) -> Result<u64, ChangeError> {
        self.decide(ids, &mut |row| Ok(wanted(row)?.then_some(New::Nothing)), room)
    }
}

/// What takes the place of a row.
enum New {
    Row(Vec<Value<'static>>),
    Nothing,
}

impl From<crate::Error> for ChangeError {
    fn from(error: crate::Error) -> ChangeError {
        ChangeError::Source(said(error))
    }
}

impl TableSource<'_> {
    /// Changes the rows of keys as `decide` says: all, or none where it refuses one. Answers how
    /// many.
    fn decide(
        &self,
        keys: &[&[u8]],
        decide: &mut dyn FnMut(&[Value<'_>]) -> Result<Option<New>, Error>,
        room: &mut Room<'_>,
    ) -> Result<u64, ChangeError> {
        let Puts::Together(db, within) = &self.puts else {
            unreachable!("no statement names a table that is being filled")
        };
        // Of each key, and of all: an entry may be decided on again.
        let (mut taken, mut all) = (vec![0_usize; keys.len()], 0_usize);
        let mut decide_at =
            |at: usize, value: Option<&[u8]>| -> Result<Decision<'static>, ChangeError> {
                let (decision, bytes) = match value {
                    None => (Decision::Keep, 0),
                    Some(value) => {
                        let decision = self.new_value(keys[at], value, decide)?;
                        let bytes = bytes_until_made(keys[at], value, &decision);
                        (decision, bytes)
                    }
                };
                all = all - taken[at] + bytes;
                taken[at] = bytes;
                room(all).map_err(ChangeError::Statement)?;
                Ok(decision)
            };
        db.home().change_all(&self.table, keys, within, &mut decide_at)
    }

    /// The value that takes the place of another.
    fn new_value(
        &self,
        key: &[u8],
        value: &[u8],
        decide: &mut dyn FnMut(&[Value<'_>]) -> Result<Option<New>, Error>,
    ) -> Result<Decision<'static>, ChangeError> {
        let source = |error: crate::schema::Error| ChangeError::Source(error.to_string());
        let row = match &self.form {
            Form::Rows(format) => format.decode(key, value).map_err(source)?,
            Form::Bytes => vec![Value::from(key), Value::from(value)],
        };
        let new = match decide(&row).map_err(ChangeError::Statement)? {
            None => return Ok(Decision::Keep),
            Some(New::Nothing) => return Ok(Decision::Remove),
            Some(New::Row(new)) => new,
        };
        match (&self.form, &new[..]) {
            (Form::Rows(format), new) => {
                let (mut new_key, mut new_value) = (Vec::new(), Vec::new());
                let number = format.number_of(key);
                format.encode(new, number, &mut new_key, &mut new_value).map_err(source)?;
                debug_assert_eq!(new_key, key, "a statement does not change keys");
                Ok(Decision::Put(Cow::Owned(new_value)))
            }
            (Form::Bytes, [_, Value::Bytes(value)]) => {
                Ok(Decision::Put(Cow::Owned(value.to_vec())))
            }
            (Form::Bytes, new) => unreachable!("{new:?} are no bytes"),
        }
    }

    /// The refusal of an entry whose key is there.
    fn is_there(&self, key: &[u8], value: &[u8]) -> String {
        let shown = match &self.form {
            Form::Bytes => Value::from(key).to_string(),
            Form::Rows(format) => {
                let row = format.decode(key, value).unwrap_or_default();
                let columns = format.schema().key_columns().iter();
                let values = columns.filter_map(|&column| row.get(column));
                values.map(ToString::to_string).collect::<Vec<_>>().join(", ")
            }
        };
        format!("the key ({shown}) is there already: nothing is inserted")
    }
}

/// Bytes of memory that a change takes until all are made: the value that was there, the new one,
/// and the record of the log.
fn bytes_until_made(key: &[u8], value: &[u8], decision: &Decision<'_>) -> usize {
    match decision {
        Decision::Keep => 0,
        Decision::Put(new) => key.len() + value.len() + 2 * new.len(),
        Decision::Remove => key.len() + value.len(),
    }
}

/// New rows of a table: kept until all are there, or put as they come.
struct NewRows<'t> {
    source: &'t TableSource<'t>,
    /// The rows of a table that has columns, and the columns of the statement's beginning.
    rows: Option<(Rows, &'t RowFormat)>,
    held: Mutex<Held>,
}

/// The rows so far.
#[derive(Default)]
struct Held {
    /// By their keys.
    keyed: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Entries that get numbers at last, in their order.
    numbered: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
    count: u64,
}

impl NewRows<'_> {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes entries: of rows with numbers, keys that lack them.
    fn take(&self, entries: Vec<(Vec<u8>, Vec<u8>)>) -> SourceResult<()> {
        let count = entries.len() as u64;
        if matches!(self.source.puts, Puts::AsTheyCome) {
            for (mut key, value) in entries {
                let is_new = match &self.rows {
                    Some((rows, _)) => rows.insert_entry(&mut key, &value),
                    None => self.source.table.put_if_absent(&key, &value),
                };
                if !is_new.map_err(said)? {
                    return Err(self.source.is_there(&key, &value));
                }
            }
            self.held().count += count;
            return Ok(());
        }
        let mut held = self.held();
        // Each is in the record of the log as well.
        let sizes = entries.iter().map(|(key, value)| 2 * (key.len() + value.len()) + ENTRY_BYTES);
        held.bytes += sizes.sum::<usize>();
        held.count += count;
        if self.rows.as_ref().is_some_and(|(_, format)| format.schema().is_numbered()) {
            held.numbered.extend(entries);
            return Ok(());
        }
        for (key, value) in entries {
            if held.keyed.contains_key(&key) {
                return Err(self.source.is_there(&key, &value));
            }
            held.keyed.insert(key, value);
        }
        Ok(())
    }

    /// The entry of a row.
    fn entry<'c>(&self, cell: &impl Fn(usize) -> Cell<'c>) -> SourceResult<(Vec<u8>, Vec<u8>)> {
        match &self.rows {
            Some((rows, format)) => rows.encode_new_cells(format, cell).map_err(said),
            None => {
                let bytes = |column| match cell(column) {
                    Cell::Bytes(bytes) => bytes.to_vec(),
                    other => unreachable!("{other:?} are no bytes"),
                };
                Ok((bytes(0), bytes(1)))
            }
        }
    }
}

impl Insertion for NewRows<'_> {
    fn row(&self, row: &[Value<'_>]) -> SourceResult<()> {
        let entry = match (&self.rows, row) {
            (Some((rows, format)), row) => rows.encode_new(format, row).map_err(said)?,
            (None, [Value::Bytes(key), Value::Bytes(value)]) => (key.to_vec(), value.to_vec()),
            (None, row) => unreachable!("{row:?} are no bytes"),
        };
        self.take(vec![entry])
    }

    fn batch(&self, batch: &Batch, columns: &[SourceColumn]) -> SourceResult<()> {
        let entry = |row| {
            self.entry(&|column: usize| batch.columns[column].cell(row, &columns[column].kind))
        };
        self.take((0..batch.len).map(entry).collect::<SourceResult<_>>()?)
    }

    fn memory(&self) -> usize {
        self.held().bytes
    }

    fn finish(self: Box<Self>) -> SourceResult<u64> {
        let NewRows { source, rows, held } = *self;
        let held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Puts::Together(db, within) = &source.puts else { return Ok(held.count) };
        let numbers = rows.filter(|_| !held.numbered.is_empty());
        let mut entries: Vec<_> = held.numbered;
        entries.extend(held.keyed);
        let refused = |error| format!("{}; nothing is inserted", said(error));
        let patience = Retry::times(NUMBERINGS_MAX);
        let mut attempt = 0;
        loop {
            if let Some((rows, _)) = &numbers {
                rows.number_entries(&mut entries).map_err(said)?;
            }
            let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| &key[..]).collect();
            let put =
                db.home().change_all(&source.table, &keys, within, &mut |at, there| match there {
                    None => Ok(Decision::Put(Cow::Borrowed(&entries[at].1))),
                    Some(_) => Err(NotPut::IsThere(at)),
                });
            return match put {
                Ok(count) => Ok(count),
                // Another thread has taken its number.
                Err(NotPut::IsThere(_)) if numbers.is_some() => {
                    if patience.pause(attempt) {
                        attempt += 1;
                        continue;
                    }
                    Err(refused(crate::Error::Conflict))
                }
                Err(NotPut::IsThere(at)) => Err(source.is_there(&entries[at].0, &entries[at].1)),
                Err(NotPut::Refused(error)) => Err(refused(error)),
            };
        }
    }
}

/// Why new rows were not put.
enum NotPut {
    /// The key with this number is there.
    IsThere(usize),
    Refused(crate::Error),
}

impl From<crate::Error> for NotPut {
    fn from(error: crate::Error) -> NotPut {
        NotPut::Refused(error)
    }
}
