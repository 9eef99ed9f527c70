//! Reads of values and of what is known about them.

use std::ops::Range;

use crate::store::format::{self, Parts, Stored};

use super::{Current, Error, Facts, HASHED, Keys, Result, is_plain, stored_key};

impl Keys<'_> {
    /// Shows a value that is stored in one piece, or `None`, to `read`; answers the head of one in parts.
    #[inline]
    pub(super) fn look<R>(
        &self,
        stored_key: &[u8],
        read: &mut impl FnMut(Option<Current<'_>>) -> R,
    ) -> Result<Result<R, Parts>> {
        let seen = self.space.table.get_with(stored_key, |stored| {
            Ok::<_, Error>(match format::decode(stored).ok_or(Error::Form)? {
                stored if stored.has_expired(self.now) => Ok(read(None)),
                Stored::Inline { value, expiry } => Ok(read(Some(Current { value, expiry }))),
                Stored::Parts(head) => Err(head),
            })
        })?;
        Ok(seen.transpose()?.unwrap_or_else(|| Ok(read(None))))
    }

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
            let head = match self.look(&stored_key, &mut read)? {
                Ok(answer) => return Ok(answer),
                Err(head) => head,
            };
            if let Some(value) = self.space.parts()?.value(&head)? {
                return Ok(read(Some(Current { value: &value, expiry: head.expiry })));
            }
            // A value that is gone was replaced meanwhile, or the head would have gone.
            if missed.replace(head.id) == Some(head.id) {
                return Err(Error::NoParts);
            }
        }
    }

    /// Shows the bytes of a value that `range` chooses by its length, which is 0 for a key that is not
    /// there. Other parts of it are not read.
    ///
    /// # Errors
    /// As [`get_with`](Self::get_with).
    pub fn get_range<R>(
        &self,
        key: &[u8],
        range: impl Fn(usize) -> Range<usize>,
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<R> {
        let stored_key = stored_key(key);
        let mut missed = None;
        loop {
            let seen = self.look(&stored_key, &mut |current| match current {
                None => read(&[]),
                Some(Current { value, .. }) => read(&value[range(value.len())]),
            })?;
            let head = match seen {
                Ok(answer) => return Ok(answer),
                Err(head) => head,
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
    pub(super) fn key_under(&self, stored_key: &[u8], stored: &[u8]) -> Result<Option<Vec<u8>>> {
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

/// A value that came before its turn.
enum Early {
    Value(Vec<u8>),
    Absent,
    InParts,
}
