//! A database of Redis: keys with strings, and the ends of their times.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use foldhash::fast::FixedState;
use sapwood::{Compute, Computed, Db, HashTable, HashTableOptions, OrderedTableOptions};
use sha2::{Digest, Sha256};

use crate::store::expiries::Expiries;
use crate::store::format::{self, Millis, Parts, Stored};
use crate::store::heads::Heads;
use crate::store::memory::Memory;
use crate::store::parts::{PART_BYTES, PIECE_BYTES, PartsTable, id_of, pieces};

/// Bytes of the longest key that is stored as it is.
pub const KEY_BYTES_MAX: usize = 8 << 10;
/// Bytes of the longest value that is stored in one piece.
pub const INLINE_BYTES_MAX: usize = PART_BYTES;
/// Bytes of the longest value.
pub const VALUE_BYTES_MAX: usize = 512 << 20;
/// Bytes of the longest value that is written anew when it grows; longer ones grow in pieces.
const REWRITTEN_BYTES_MAX: usize = PIECE_BYTES;
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

/// What one look at a key has led to.
enum Step<'v> {
    /// The change is made; with the head of the parts that it left behind.
    Made { freed: Option<Parts>, expiry: Option<Millis> },
    /// The value lies in parts: they are to be read first.
    InParts(Parts),
    /// The new value must lie in parts; the value was `seen` when this was decided.
    Long { value: Cow<'v, [u8]>, expiry: Option<Millis>, seen: Option<Vec<u8>> },
    /// The bytes have no form.
    NoForm,
}

impl<'k> Keys<'k> {
    /// Shows a value, or `None`, to `read`.
    ///
    /// # Errors
    /// Those of the table, such as of a read from the disk.
    #[inline]
    pub fn get_with<R>(
        &self,
        key: &[u8],
        mut read: impl FnMut(Option<Current<'_>>) -> R,
    ) -> Result<R> {
        let stored_key = stored_key(key);
        let mut missed = None;
        loop {
            let seen = self.space.table.get_with(&stored_key, |stored| {
                match format::decode(stored).ok_or(Error::Form)? {
                    stored if stored.has_expired(self.now) => Ok::<_, Error>(Ok(read(None))),
                    Stored::Inline { value, expiry } => {
                        Ok(Ok(read(Some(Current { value, expiry }))))
                    }
                    Stored::Parts(head) => Ok(Err(head)),
                }
            })?;
            match seen.transpose()? {
                None => return Ok(read(None)),
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(head)) => {
                    if let Some(value) = self.space.parts()?.value(&head)? {
                        return Ok(read(Some(Current { value: &value, expiry: head.expiry })));
                    }
                    // A value that is gone was replaced meanwhile, or the head would have gone.
                    if missed.replace(head.id) == Some(head.id) {
                        return Err(Error::NoParts);
                    }
                }
            }
        }
    }

    /// Shows the bytes of a value that `range` chooses by its length, which is 0 for a key that is not
    /// there. Other parts of it are not read.
    ///
    /// # Errors
    /// The same as of [`get_with`](Self::get_with).
    pub fn get_range<R>(
        &self,
        key: &[u8],
        range: impl Fn(usize) -> Range<usize>,
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<R> {
        let stored_key = stored_key(key);
        let mut missed = None;
        loop {
            let seen = self.space.table.get_with(&stored_key, |stored| {
                match format::decode(stored).ok_or(Error::Form)? {
                    stored if stored.has_expired(self.now) => Ok::<_, Error>(Ok(read(&[]))),
                    Stored::Inline { value, .. } => Ok(Ok(read(&value[range(value.len())]))),
                    Stored::Parts(head) => Ok(Err(head)),
                }
            })?;
            let head = match seen.transpose()? {
                None => return Ok(read(&[])),
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(head)) => head,
            };
            let Range { start, end } = range(head.len as usize);
            let (from, to) = (head.key_len + start as u64, head.key_len + end as u64);
            if let Some(bytes) = self.space.parts()?.read(&head, from, to)? {
                return Ok(read(&bytes));
            }
            if missed.replace(head.id) == Some(head.id) {
                return Err(Error::NoParts);
            }
        }
    }

    /// Copies a value out.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, |current| current.map(|current| current.value.to_vec()))
    }

    /// Figures about a key; `None` if it is not there.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    pub fn facts(&self, key: &[u8]) -> Result<Option<Facts>> {
        let stored = |stored: &[u8]| match format::decode(stored).ok_or(Error::Form)? {
            stored if stored.has_expired(self.now) => Ok(None),
            Stored::Inline { value, expiry } => {
                Ok(Some(Facts { len: value.len(), expiry, is_in_parts: false }))
            }
            Stored::Parts(Parts { len, expiry, .. }) => {
                Ok(Some(Facts { len: len as usize, expiry, is_in_parts: true }))
            }
        };
        self.space.table.get_with(stored_key(key), stored)?.unwrap_or(Ok(None))
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.facts(key)?.is_some())
    }

    /// Shows the values of many keys that are [plain](is_plain) in the order of the keys; their
    /// searches overlap.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with); values before were shown.
    pub fn get_many(&self, keys: &[&[u8]], mut read: impl FnMut(Option<&[u8]>)) -> Result<()> {
        debug_assert!(keys.iter().all(|key| is_plain(key)), "other keys are hashed");
        let mut shown = 0;
        // Those that came before their turn: records from the disk come when they come.
        let mut early: Vec<Option<Early>> = Vec::new();
        let mut failure = None;
        self.space.table.get_many(keys, |index, stored| {
            let value = match stored.map(format::decode) {
                None => Early::Absent,
                Some(Some(stored)) if stored.has_expired(self.now) => Early::Absent,
                Some(Some(Stored::Inline { value, .. })) if index == shown => {
                    read(Some(value));
                    shown += 1;
                    return;
                }
                Some(Some(Stored::Inline { value, .. })) => Early::Value(value.to_vec()),
                Some(Some(Stored::Parts(_))) => Early::InParts,
                Some(None) => {
                    failure = Some(Error::Form);
                    Early::Absent
                }
            };
            if index == shown && matches!(value, Early::Absent) {
                read(None);
                shown += 1;
            } else {
                early.resize_with(keys.len(), || None);
                early[index] = Some(value);
            }
        })?;
        for (index, key) in keys.iter().enumerate().skip(shown) {
            match early.get_mut(index).and_then(Option::take) {
                Some(Early::Value(value)) => read(Some(&value)),
                Some(Early::Absent) => read(None),
                None | Some(Early::InParts) => {
                    self.get_with(key, |current| read(current.map(|current| current.value)))?;
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Puts stored forms of values without an end under [plain](is_plain) keys, those of one key in
    /// order, and does not look at what was there.
    ///
    /// # Errors
    /// Those of the table.
    pub fn put_many(&self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        debug_assert!(entries.iter().all(|(key, _)| is_plain(key)), "other keys are hashed");
        let put = match entries {
            [(key, stored)] => self.space.table.put(key, stored),
            entries => self.space.table.put_many(entries),
        };
        // An error may come behind some that were put.
        let keys = entries.iter().map(|(key, _)| *key);
        self.space.heads.suspects(keys).for_each(|key| self.space.settle_heads(key));
        Ok(put?)
    }

    /// Shows a value, or `None`, to `decide`, and does what it says, in one step. The closure may
    /// run again, on a newer value; its last run counts.
    ///
    /// # Errors
    /// Those of the tables. Nothing was changed.
    pub fn modify<'v>(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<Current<'_>>) -> Change<'v>,
    ) -> Result<()> {
        let stored_key = stored_key(key);
        let is_hashed = matches!(stored_key, Cow::Owned(_));
        let mut missed = None;
        loop {
            let mut step = Step::NoForm;
            self.space.table.compute(&stored_key, |stored| {
                let decoded = match stored.map(format::decode) {
                    Some(None) => {
                        step = Step::NoForm;
                        return Compute::Keep;
                    }
                    Some(found) => found,
                    None => None,
                };
                let (current, ended) = match decoded {
                    None => (None, None),
                    Some(Stored::Parts(parts)) if parts.expiry.is_some_and(|at| at <= self.now) => {
                        (None, Some(parts))
                    }
                    Some(Stored::Parts(parts)) => {
                        step = Step::InParts(parts);
                        return Compute::Keep;
                    }
                    Some(stored) if stored.has_expired(self.now) => (None, None),
                    Some(Stored::Inline { value, expiry }) => {
                        (Some(Current { value, expiry }), None)
                    }
                };
                let made = |expiry| Step::Made { freed: ended, expiry };
                match decide(current) {
                    // What has ended goes, too.
                    Change::Keep if current.is_none() && stored.is_some() => {
                        step = made(None);
                        Compute::Remove
                    }
                    Change::Keep => {
                        step = Step::Made { freed: None, expiry: None };
                        Compute::Keep
                    }
                    Change::Remove => {
                        step = made(None);
                        Compute::Remove
                    }
                    Change::Put(value, expiry) if is_hashed || value.len() > INLINE_BYTES_MAX => {
                        let seen = stored.map(<[u8]>::to_vec);
                        step = Step::Long { value, expiry, seen };
                        Compute::Keep
                    }
                    Change::Put(value, expiry) => {
                        step = made(expiry);
                        let mut stored = Vec::new();
                        format::encode(&value, expiry, &mut stored);
                        Compute::Replace(stored)
                    }
                }
            })?;
            let done = match step {
                Step::Made { freed, expiry } => {
                    if let Some(time) = expiry {
                        self.space.add_end(time, &stored_key);
                    }
                    if let Some(head) = freed {
                        self.space.release(&stored_key, &head);
                    }
                    true
                }
                Step::InParts(head) => {
                    match self.space.parts()?.value(&head)? {
                        None if missed.replace(head.id) == Some(head.id) => {
                            return Err(Error::NoParts);
                        }
                        // Another thread has replaced it.
                        None => false,
                        Some(value) => {
                            let current = Current { value: &value, expiry: head.expiry };
                            let change = decide(Some(current));
                            let mut seen = Vec::new();
                            format::encode_parts(&head, &mut seen);
                            self.replace(key, &stored_key, Some(seen), change)?
                        }
                    }
                }
                Step::Long { value, expiry, seen } => {
                    self.replace(key, &stored_key, seen, Change::Put(value, expiry))?
                }
                Step::NoForm => return Err(Error::Form),
            };
            if done {
                return Ok(());
            }
        }
    }

    /// Makes a change whose old value or new one lies in parts, if the stored form is still `seen`.
    fn replace(
        &self,
        key: &[u8],
        stored_key: &[u8],
        seen: Option<Vec<u8>>,
        change: Change<'_>,
    ) -> Result<bool> {
        let is_hashed = !is_plain(key);
        let mut stored = Vec::new();
        let mut put = None;
        let mut end = None;
        let is_removal = change == Change::Remove;
        match change {
            Change::Keep => return Ok(true),
            Change::Remove => {}
            Change::Put(value, expiry) if is_hashed || value.len() > INLINE_BYTES_MAX => {
                let before: &[u8] = if is_hashed { key } else { &[] };
                let parts = self.space.parts()?;
                let (key_len, len) = (before.len() as u64, value.len() as u64);
                let head = Parts { id: parts.new_id(), key_len, len, base: len, expiry };
                if let Err(error) = parts.put(head.id, &[before, &value]) {
                    // The value is refused as a whole.
                    self.space.free_parts(&head);
                    return Err(error.into());
                }
                format::encode_parts(&head, &mut stored);
                (put, end) = (Some(head), expiry);
            }
            Change::Put(value, expiry) => {
                format::encode(&value, expiry, &mut stored);
                end = expiry;
            }
        }
        let outcome = self.space.table.compute(stored_key, |now| {
            if now != seen.as_deref() {
                Compute::Keep
            } else if is_removal {
                Compute::Remove
            } else {
                Compute::Replace(stored.clone())
            }
        });
        let is_made = match outcome {
            Ok(outcome) => outcome != Computed::Kept && outcome != Computed::Absent,
            Err(error) => {
                if let Some(head) = put {
                    self.space.free_parts(&head);
                }
                return Err(error.into());
            }
        };
        if !is_made {
            if let Some(head) = put {
                self.space.free_parts(&head);
            }
            return Ok(false);
        }
        if let Some(time) = end {
            self.space.add_end(time, stored_key);
        }
        if let Some(head) = put.filter(|_| !is_hashed) {
            self.space.list(stored_key, head);
        }
        if let Some(Stored::Parts(head)) = seen.as_deref().and_then(format::decode) {
            self.space.release(stored_key, &head);
        }
        Ok(true)
    }

    /// Writes bytes into a value at the offset that `offset` chooses by its length, which is 0 for a key
    /// that is not there; zeros fill a gap. The cost is that of the bytes, not of the value, where the
    /// value is long.
    ///
    /// # Errors
    /// The errors of the tables; [`Error::NeedsExclusive`] where bytes of a value in parts are
    /// overwritten. Nothing was changed, but by an error of a table some of the bytes that were.
    pub fn write(
        &self,
        key: &[u8],
        bytes: &[u8],
        offset: impl Fn(usize) -> usize,
    ) -> Result<Written> {
        let stored_key = stored_key(key);
        let hash = FixedState::default().hash_one(&*stored_key);
        let stripe = &self.space.writing[hash as usize % WRITING_STRIPES];
        let _writing = stripe.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missed = None;
        loop {
            let seen = self.space.table.get_with(&stored_key, |stored| {
                let decoded = format::decode(stored).ok_or(Error::Form)?;
                Ok::<_, Error>(match decoded {
                    stored if stored.has_expired(self.now) => None,
                    Stored::Inline { value, .. } => Some(Err(value.len())),
                    Stored::Parts(head) => Some(Ok(head)),
                })
            })?;
            let seen = seen.transpose()?.flatten();
            let len = match seen {
                None => 0,
                Some(Err(len)) => len,
                Some(Ok(head)) => head.len as usize,
            };
            let at = offset(len);
            let end = at.saturating_add(bytes.len());
            if end > VALUE_BYTES_MAX {
                return Ok(Written::TooLong);
            }
            let done = match seen {
                Some(Err(_)) if end <= len && len > REWRITTEN_BYTES_MAX => {
                    self.overwrite_inline(&stored_key, len, at, bytes)?
                }
                Some(Err(_)) if len > REWRITTEN_BYTES_MAX => {
                    self.grow_inline(&stored_key, len, at, bytes)?
                }
                None | Some(Err(_)) => return self.rewrite(key, bytes, offset),
                Some(Ok(head)) => {
                    let outcome = self.write_parts(&stored_key, &head, at, bytes)?;
                    // A value that is gone was replaced meanwhile, or the head would have gone.
                    if outcome == Outcome::Gone && missed.replace(head.id) == Some(head.id) {
                        return Err(Error::NoParts);
                    }
                    outcome == Outcome::Done
                }
            };
            if done {
                return Ok(Written::Len(end.max(len)));
            }
        }
    }

    /// The same as [`write`](Self::write), by a new value.
    fn rewrite(
        &self,
        key: &[u8],
        bytes: &[u8],
        offset: impl Fn(usize) -> usize,
    ) -> Result<Written> {
        let mut written = Written::TooLong;
        self.modify(key, |current| {
            let (old, expiry) = current.map_or((&[][..], None), |old| (old.value, old.expiry));
            let at = offset(old.len());
            let end = at.saturating_add(bytes.len());
            if end > VALUE_BYTES_MAX {
                written = Written::TooLong;
                return Change::Keep;
            }
            let mut value = Vec::with_capacity(end.max(old.len()));
            value.extend_from_slice(old);
            value.resize(end.max(old.len()), 0);
            value[at..end].copy_from_slice(bytes);
            written = Written::Len(value.len());
            Change::Put(Cow::Owned(value), expiry)
        })?;
        Ok(written)
    }

    /// Overwrites bytes of a value of a length that is stored in one piece; false if it is no more.
    fn overwrite_inline(
        &self,
        stored_key: &[u8],
        len: usize,
        at: usize,
        bytes: &[u8],
    ) -> Result<bool> {
        let written = self.space.table.update(stored_key, |stored| {
            let is_same = match format::decode(stored) {
                Some(found @ Stored::Inline { value, .. }) => {
                    value.len() == len && !found.has_expired(self.now)
                }
                _ => false,
            };
            if is_same {
                let begin = format::value_begin(stored) + at;
                stored[begin..][..bytes.len()].copy_from_slice(bytes);
            }
            is_same
        })?;
        Ok(written.unwrap_or(false))
    }

    /// Moves a value of a length that is stored in one piece to a part, and writes bytes behind it or
    /// over its end; false if it has changed meanwhile.
    fn grow_inline(&self, stored_key: &[u8], base: usize, at: usize, bytes: &[u8]) -> Result<bool> {
        let Some(seen) = self.space.table.get_with(stored_key, <[u8]>::to_vec)? else {
            return Ok(false);
        };
        let decoded = format::decode(&seen).filter(|found| !found.has_expired(self.now));
        let (value, expiry) = match decoded {
            Some(Stored::Inline { value, expiry }) if value.len() == base => (value, expiry),
            _ => return Ok(false),
        };
        let (inside, behind) = split_at_end(base, at, bytes);
        let mut value = value.to_vec();
        value[at.min(base)..][..inside.len()].copy_from_slice(inside);
        let parts = self.space.parts()?;
        let head =
            Parts { id: parts.new_id(), key_len: 0, len: base as u64, base: base as u64, expiry };
        let grown = Parts { len: (base + behind.len()) as u64, ..head };
        let put = parts.put(head.id, &[&value]).and_then(|()| parts.extend(&head, &behind));
        let is_made =
            put.map_err(Error::from).and_then(|_| self.exchange(stored_key, &seen, &grown));
        if !matches!(is_made, Ok(true)) {
            self.space.free_parts(&head);
        } else {
            self.space.list(stored_key, grown);
        }
        is_made
    }

    /// Writes bytes behind or over those of a value in parts.
    fn write_parts(
        &self,
        stored_key: &[u8],
        head: &Parts,
        at: usize,
        bytes: &[u8],
    ) -> Result<Outcome> {
        let len = head.len as usize;
        let (inside, behind) = split_at_end(len, at, bytes);
        if !inside.is_empty() && !self.is_exclusive {
            return Err(Error::NeedsExclusive);
        }
        let parts = self.space.parts()?;
        if !parts.overwrite(head, at.min(len) as u64, inside)? || !parts.extend(head, &behind)? {
            return Ok(Outcome::Gone);
        }
        if behind.is_empty() {
            return Ok(Outcome::Done);
        }
        let mut seen = Vec::new();
        format::encode_parts(head, &mut seen);
        let grown = Parts { len: (len + behind.len()) as u64, ..*head };
        if self.exchange(stored_key, &seen, &grown)? {
            return Ok(Outcome::Done);
        }
        let id = |stored: &[u8]| match format::decode(stored) {
            Some(Stored::Parts(head)) => Some(head.id),
            _ => None,
        };
        if self.space.table.get_with(stored_key, id)?.flatten() != Some(head.id) {
            // Its parts were freed, some of them perhaps before these pieces were put.
            parts.remove_behind(head)?;
        }
        Ok(Outcome::Changed)
    }

    /// Puts a head in the place of the stored form that was seen; false if that has changed.
    fn exchange(&self, stored_key: &[u8], seen: &[u8], head: &Parts) -> Result<bool> {
        let mut stored = Vec::new();
        format::encode_parts(head, &mut stored);
        let outcome = self.space.table.compute(stored_key, |now| match now == Some(seen) {
            true => Compute::Replace(stored.clone()),
            false => Compute::Keep,
        })?;
        Ok(outcome == Computed::Replaced)
    }

    /// Sets the end of a key's time by `decide`, which sees the one before and answers the new one,
    /// or `None` to leave it; false if the key is not there, or was left. The value is not moved
    /// where it lies in parts.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn set_expiry(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<Millis>) -> Option<Option<Millis>>,
    ) -> Result<bool> {
        let stored_key = stored_key(key);
        let mut is_form = true;
        let mut set = None;
        self.space.table.compute(&stored_key, |stored| {
            set = None;
            let Some(stored) = stored else { return Compute::Keep };
            let Some(decoded) = format::decode(stored) else {
                is_form = false;
                return Compute::Keep;
            };
            if decoded.has_expired(self.now) {
                return Compute::Keep;
            }
            set = decide(decoded.expiry());
            let Some(expiry) = set else { return Compute::Keep };
            let mut changed = Vec::new();
            match decoded {
                Stored::Inline { value, .. } => format::encode(value, expiry, &mut changed),
                Stored::Parts(head) => {
                    format::encode_parts(&Parts { expiry, ..head }, &mut changed);
                }
            }
            Compute::Replace(changed)
        })?;
        if !is_form {
            return Err(Error::Form);
        }
        if let Some(Some(time)) = set {
            self.space.add_end(time, &stored_key);
        }
        Ok(set.is_some())
    }

    /// Removes a key; true if it was there.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        let mut head = None;
        let stored_key = stored_key(key);
        let removed = self.space.table.remove_with(&stored_key, |stored| {
            let stored = format::decode(stored)?;
            if let Stored::Parts(parts) = stored {
                head = Some(parts);
            }
            Some(!stored.has_expired(self.now))
        })?;
        if let Some(head) = head {
            self.space.release(&stored_key, &head);
        }
        Ok(removed.flatten().unwrap_or(removed.is_some()))
    }

    /// Removes a key if its time has ended.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn remove_ended(&self, key: &[u8]) -> Result<()> {
        // What has ended is not there for the closure, and goes with it.
        self.modify(key, |_| Change::Keep)
    }

    /// Removes keys whose time has ended, `count` of the table of ends at most, and shows each to
    /// `removed`; true if there are more.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn expire(&self, count: usize, mut removed: impl FnMut(&[u8])) -> Result<bool> {
        let mut outcome = Ok(true);
        for _ in 0..count {
            let Some((time, stored_key)) = self.space.expiries.pop(self.now)? else {
                return outcome.map(|_| false);
            };
            match self.end(time, &stored_key) {
                Ok(Some(key)) => removed(&key),
                Ok(None) => {}
                Err(error) => {
                    // Its turn comes again, behind that of the others.
                    self.space.unsettled().ends.push((time, stored_key));
                    outcome = Err(error);
                }
            }
        }
        outcome
    }

    /// Removes a stored key if its time is the one given; answers the key.
    fn end(&self, time: Millis, stored_key: &[u8]) -> Result<Option<Vec<u8>>> {
        let ended = |stored: &[u8]| {
            format::decode(stored).filter(|stored| stored.expiry() == Some(time)).map(|stored| {
                match stored {
                    Stored::Parts(head) => Some(head),
                    Stored::Inline { .. } => None,
                }
            })
        };
        // Read before the parts go. A key that is set meanwhile is the same.
        let key = match stored_key.starts_with(HASHED) {
            false => stored_key.to_vec(),
            true => match self.space.table.get_with(stored_key, <[u8]>::to_vec)? {
                Some(stored) if ended(&stored).is_some() => {
                    self.key_under(stored_key, &stored)?.unwrap_or_default()
                }
                _ => return Ok(None),
            },
        };
        let mut freed = None;
        let outcome = self.space.table.compute(stored_key, |stored| {
            let ended = stored.and_then(ended);
            freed = ended.flatten();
            if ended.is_some() { Compute::Remove } else { Compute::Keep }
        })?;
        if let Some(head) = freed {
            self.space.release(stored_key, &head);
        }
        Ok((outcome == Computed::Removed).then_some(key))
    }

    /// Looks through entries of the table of ends that no key agrees with any more, `count` behind
    /// `from`; answers where to go on. Begins only when the table has doubled since the last time.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn sweep_expiries(&self, from: Option<&[u8]>, count: usize) -> Result<Option<Vec<u8>>> {
        if from.is_none() && !self.space.expiries.wants_sweep() {
            return Ok(None);
        }
        let agrees = |time, stored_key: &[u8]| {
            let expiry = |stored: &[u8]| format::decode(stored).and_then(|stored| stored.expiry());
            Ok(self.space.table.get_with(stored_key, expiry)?.flatten() == Some(time))
        };
        Ok(self.space.expiries.sweep(from.unwrap_or_default(), count, agrees)?)
    }

    /// Whether the time of a stored value has ended.
    pub fn has_ended(&self, stored: &[u8]) -> bool {
        format::decode(stored).is_some_and(|stored| stored.has_expired(self.now))
    }

    /// The key under a stored one, if its time has not ended.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn key_of(&self, stored_key: Vec<u8>, stored: &[u8]) -> Result<Option<Vec<u8>>> {
        if format::decode(stored).ok_or(Error::Form)?.has_expired(self.now) {
            return Ok(None);
        }
        match stored_key.starts_with(HASHED) {
            true => self.key_under(&stored_key, stored),
            false => Ok(Some(stored_key)),
        }
    }

    /// The key that lies in parts with its value; `None` if it is not there any more.
    fn key_under(&self, stored_key: &[u8], stored: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut stored = stored.to_vec();
        loop {
            let Some(Stored::Parts(head)) = format::decode(&stored) else {
                return Err(Error::Form);
            };
            if let Some(key) = self.space.parts()?.key(&head)? {
                return Ok(Some(key));
            }
            // The parts of a value go behind its head: another has replaced it, or it is gone.
            match self.space.table.get_with(stored_key, <[u8]>::to_vec)? {
                Some(newer) if newer != stored => stored = newer,
                _ => return Ok(None),
            }
        }
    }
}

/// The fate of bytes that were written into a value in parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    /// Another thread has changed the head.
    Changed,
    /// Parts are not there.
    Gone,
}

/// The bytes among those written at an offset that lie within a value of a length, and those behind its
/// end, with zeros for a gap before them.
fn split_at_end(len: usize, at: usize, bytes: &[u8]) -> (&[u8], Cow<'_, [u8]>) {
    match at.checked_sub(len) {
        None => {
            let (inside, behind) = bytes.split_at(bytes.len().min(len - at));
            (inside, Cow::Borrowed(behind))
        }
        Some(0) => (&[], Cow::Borrowed(bytes)),
        Some(gap) => {
            let mut behind = vec![0; gap];
            behind.extend_from_slice(bytes);
            (&[], Cow::Owned(behind))
        }
    }
}

/// A value that came before its turn.
enum Early {
    Value(Vec<u8>),
    Absent,
    InParts,
}
