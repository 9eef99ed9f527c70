//! A database of Redis: keys with strings, and the ends of their times.

mod changing;
mod ends;
mod reading;
mod writing;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use sapwood::{Db, HashTable, HashTableOptions, OrderedTableOptions};
use sha2::{Digest, Sha256};

use crate::store::expiries::Expiries;
use crate::store::format::{self, Millis, Parts, Stored};
use crate::store::heads::Heads;
use crate::store::memory::Memory;
use crate::store::parts::{PART_BYTES, PartsTable, id_of, pieces};

/// Bytes of the longest key that is stored as it is.
pub const KEY_BYTES_MAX: usize = 8 << 10;
/// Bytes of the longest value that is stored in one piece.
pub const INLINE_BYTES_MAX: usize = PART_BYTES;
/// Bytes of the longest value.
pub const VALUE_BYTES_MAX: usize = 512 << 20;
/// Locks of keys whose values are written to in parts.
const WRITING_STRIPES: usize = 64;
/// What a stored key begins with that stands for a key which is empty, too long, or begins so
/// itself. The key's SHA-256 follows, and the key lies in parts with its value.
const HASHED: &[u8; 8] = b"\0sw:key\0";

/// Why a change was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Bytes of a long value are to be overwritten while other threads may read it: the caller takes
    /// the keyspace for itself and tries again. Nothing was changed.
    #[error("bytes of a long value are overwritten in the keyspace of one caller alone")]
    NeedsExclusive,
    /// A table refused.
    #[error(transparent)]
    Table(#[from] sapwood::Error),
    /// The parts of a long value are not there.
    #[error("parts of a long value are missing; put it again, or remove its key")]
    NoParts,
    /// A table holds bytes that no keyspace wrote.
    #[error(
        "the value of a key is in no form that this version knows; was the directory written by a \
         newer one, or by another program?"
    )]
    Form,
}

/// The result of an operation on a keyspace.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A value and the end of its time, as it is before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current<'a> {
    /// Its bytes.
    pub value: &'a [u8],
    /// The end of its time.
    pub expiry: Option<Millis>,
}

/// What becomes of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<'v> {
    /// Nothing.
    Keep,
    /// It goes.
    Remove,
    /// It gets this value, and the end of its time.
    Put(Cow<'v, [u8]>, Option<Millis>),
}

/// The fate of bytes that were written into a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// They are there, and the value has so many bytes.
    Len(usize),
    /// Nothing: the value would have more than [`VALUE_BYTES_MAX`].
    TooLong,
}

/// Figures about a key that do not need its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Bytes of the value.
    pub len: usize,
    /// The end of its time.
    pub expiry: Option<Millis>,
    /// Whether the value lies in parts.
    pub is_in_parts: bool,
}

/// Tables of one database.
#[derive(Debug)]
pub struct Keyspace {
    db: Db,
    name: String,
    table: HashTable,
    parts: OnceLock<PartsTable>,
    /// Heads of plain keys, which a put may overwrite without a look.
    heads: Heads,
    /// Held, by the key's hash, while a value grows in place: two threads would write to the same room.
    writing: [Mutex<()>; WRITING_STRIPES],
    expiries: Expiries,
    unsettled: Mutex<Unsettled>,
}

/// What is still to be done behind changes of heads: the table that it concerns refused. The changes
/// are made, and commands see them; it is tried again by a timer.
#[derive(Debug, Default)]
struct Unsettled {
    /// Entries that the table of ends lacks.
    ends: Vec<(Millis, Vec<u8>)>,
    /// Parts that no head names any more.
    parts: Vec<Parts>,
    /// Keys some of whose heads may have been overwritten.
    keys: Vec<Vec<u8>>,
}

/// A keyspace at a moment, for one caller.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'k> {
    /// The keyspace.
    pub space: &'k Keyspace,
    /// The moment: what has ended by then is not there.
    pub now: Millis,
    /// Whether the caller has the keyspace for itself.
    pub is_exclusive: bool,
}

impl Keyspace {
    /// Opens the tables of a name, or makes them.
    ///
    /// # Errors
    /// As of [`Db::open_or_create_hash_table`]; [`Error::Form`].
    pub fn open(db: &Db, name: &str, options: HashTableOptions) -> Result<Keyspace> {
        let table = db.open_or_create_hash_table(name, options)?;
        let expiries_name = format!("{name}.expiries");
        // One that an opening left which failed behind this line.
        drop_if_there(db, &expiries_name)?;
        let expiries = OrderedTableOptions::default().volatile();
        let expiries = db.create_ordered_table(&expiries_name, expiries)?;
        let space = Keyspace {
            db: db.clone(),
            name: name.to_owned(),
            table,
            parts: OnceLock::new(),
            heads: Heads::default(),
            writing: std::array::from_fn(|_| Mutex::default()),
            expiries: Expiries::new(expiries),
            unsettled: Mutex::default(),
        };
        space.take_stock()?;
        Ok(space)
    }

    /// Opens the tables of a name, without what they held. Nothing but jobs that read may use them.
    ///
    /// New tables take the place of the old ones. Where those cannot be dropped, because of an error
    /// or because a job or a checkpoint is reading them, their entries are removed one by one.
    ///
    /// # Errors
    /// As of [`open`](Self::open); what they held may be there then. The caller tries again before
    /// commands see them.
    pub fn open_empty(db: &Db, name: &str, options: HashTableOptions) -> Result<Keyspace> {
        // Parts stay while heads do: a new table of parts begins with numbers that heads may name.
        let dropped = drop_if_there(db, name)
            .and_then(|()| drop_if_there(db, &format!("{name}.parts")))
            .and_then(|()| drop_if_there(db, &format!("{name}.expiries")));
        let space = Keyspace::open(db, name, options)?;
        if dropped.is_err() {
            for table in space.lasting() {
                table.clear()?;
            }
            space.expiries.table().clear()?;
        }
        Ok(space)
    }

    /// Finds the ends and the parts of what was stored before. A crash may have come between the change
    /// of parts and that of their head: parts without a head go, and a head without its parts, which an
    /// earlier version may have left.
    fn take_stock(&self) -> Result<()> {
        let mut failure = None;
        let mut heads = Vec::new();
        let _all = self.table.scan_log(|key, stored| match format::decode(stored) {
            None => {
                failure = Some(Error::Form);
                ControlFlow::Break(())
            }
            Some(stored) => {
                if let Stored::Parts(head) = stored {
                    heads.push((key.to_vec(), head));
                }
                match stored.expiry().map(|time| self.expiries.add(time, key)) {
                    Some(Err(error)) => {
                        failure = Some(error.into());
                        ControlFlow::Break(())
                    }
                    _ => ControlFlow::Continue(()),
                }
            }
        })?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        let has_table = self.db.table_names().contains(&format!("{}.parts", self.name));
        if has_table || !heads.is_empty() {
            let parts = self.parts()?;
            let mut known = HashMap::new();
            for (key, head) in heads {
                if parts.is_whole(&head)? {
                    known.insert(head.id, pieces(&head));
                    if is_plain(&key) {
                        self.heads.add(&key, head);
                    }
                } else {
                    self.table.remove(&key)?;
                }
            }
            parts.retain(|id| known.get(&id).copied())?;
        }
        Ok(())
    }

    fn parts(&self) -> Result<&PartsTable> {
        if let Some(parts) = self.parts.get() {
            return Ok(parts);
        }
        let name = format!("{}.parts", self.name);
        let table = self.db.open_or_create_hash_table(&name, HashTableOptions::default())?;
        let mut next_id = 1;
        let _all = table.for_each(|key, _part| {
            next_id = id_of(key).map_or(next_id, |id| next_id.max(id + 1));
            ControlFlow::<()>::Continue(())
        })?;
        Ok(self.parts.get_or_init(|| PartsTable::new(table, next_id)))
    }

    /// The table of heads and values that are stored in one piece.
    pub fn table(&self) -> &HashTable {
        &self.table
    }

    /// Its tables that last: values, and their parts if there are any.
    pub fn lasting(&self) -> impl Iterator<Item = &HashTable> {
        [Some(&self.table), self.parts.get().map(PartsTable::table)].into_iter().flatten()
    }

    /// Memory of the table of ends.
    pub(crate) fn memory_of_ends(&self) -> Memory {
        Memory::of_ordered(&self.expiries.table().stats())
    }

    /// Keys, about: what has ended a moment ago counts.
    ///
    /// # Errors
    /// As of [`HashTable::len`], which a directory needs.
    pub fn count(&self) -> Result<usize> {
        match self.db.directory() {
            None => Ok(self.table.len_estimate()),
            Some(_) => Ok(self.table.len()?),
        }
    }

    /// Whether [`count`](Self::count) needs no walk.
    pub fn counts_at_once(&self) -> bool {
        self.db.directory().is_none()
    }

    /// Keys whose time will end, about.
    pub fn expiring_estimate(&self) -> usize {
        self.expiries.table().len_estimate()
    }

    /// The end that comes first, of a key that may have another by now.
    ///
    /// # Errors
    /// Those of the table of ends.
    pub fn first_expiry(&self) -> Result<Option<Millis>> {
        Ok(self.expiries.first()?)
    }

    /// Adds an entry to the table of ends, now or later: the value that it is about is there.
    fn add_end(&self, time: Millis, stored_key: &[u8]) {
        if self.expiries.add(time, stored_key).is_err() {
            self.unsettled().ends.push((time, stored_key.to_vec()));
        }
    }

    /// Frees the parts of a head that was removed from its key or replaced. Where it is listed to be
    /// freed, but not yet, the thread that lists it does so.
    fn release(&self, stored_key: &[u8], head: &Parts) {
        if !is_plain(stored_key) || self.heads.take(stored_key, head.id) {
            self.free_parts(head);
        }
    }

    /// Lists a head that was put under a plain key, and frees its parts if the key has it no more.
    fn list(&self, stored_key: &[u8], head: Parts) {
        self.heads.add(stored_key, head);
        self.settle_heads(stored_key);
    }

    /// Frees the parts of listed heads that a plain key does not have any more, now or later.
    fn settle_heads(&self, stored_key: &[u8]) {
        let current = || -> Result<Option<u64>> {
            let head = |stored: &[u8]| match format::decode(stored) {
                Some(Stored::Parts(head)) => Some(head.id),
                _ => None,
            };
            Ok(self.table.get_with(stored_key, head)?.flatten())
        };
        match self.heads.take_stale(stored_key, current) {
            Ok(stale) => stale.iter().for_each(|head| self.free_parts(head)),
            Err(_) => self.unsettled().keys.push(stored_key.to_vec()),
        }
    }

    /// Removes parts that no head names any more, now or later.
    fn free_parts(&self, head: &Parts) {
        if self.parts().and_then(|parts| Ok(parts.remove_all(head)?)).is_err() {
            self.unsettled().parts.push(*head);
        }
    }

    /// Tries again what tables refused behind changes that were made. For a timer.
    pub fn settle(&self) {
        let Unsettled { ends, parts, keys } = std::mem::take(&mut *self.unsettled());
        ends.iter().for_each(|(time, stored_key)| self.add_end(*time, stored_key));
        parts.iter().for_each(|head| self.free_parts(head));
        keys.iter().for_each(|stored_key| self.settle_heads(stored_key));
    }

    fn unsettled(&self) -> MutexGuard<'_, Unsettled> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_if_there(db: &Db, name: &str) -> Result<()> {
    match db.drop_table(name) {
        Ok(()) | Err(sapwood::Error::TableMissing { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a key is stored as it is.
#[inline]
pub fn is_plain(key: &[u8]) -> bool {
    (1..=KEY_BYTES_MAX).contains(&key.len()) && (key[0] != 0 || !key.starts_with(HASHED))
}

fn stored_key(key: &[u8]) -> Cow<'_, [u8]> {
    if is_plain(key) {
        return Cow::Borrowed(key);
    }
    Cow::Owned([&HASHED[..], &Sha256::digest(key)].concat())
}
