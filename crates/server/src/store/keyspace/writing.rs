//! Writes of a few bytes into a value, which cost no more for a long one.

use std::borrow::Cow;
use std::hash::BuildHasher as _;
use std::sync::PoisonError;

use foldhash::fast::FixedState;
use sapwood::{Compute, Computed};

use crate::store::format::{self, Parts, Stored};
use crate::store::parts::PIECE_BYTES;

use super::{Change, Error, Keys, Result, VALUE_BYTES_MAX, WRITING_STRIPES, Written, stored_key};

/// Bytes of the longest value that is written anew when it grows; longer ones grow in pieces.
const REWRITTEN_BYTES_MAX: usize = PIECE_BYTES;

impl Keys<'_> {
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
            let seen = self.look(&stored_key, &mut |current| current.map(|it| it.value.len()))?;
            let len = match seen {
                Ok(len) => len.unwrap_or(0),
                Err(head) => head.len as usize,
            };
            let at = offset(len);
            let end = at.saturating_add(bytes.len());
            if end > VALUE_BYTES_MAX {
                return Ok(Written::TooLong);
            }
            let done = match seen {
                Ok(_) if end <= len && len > REWRITTEN_BYTES_MAX => {
                    self.overwrite_inline(&stored_key, len, at, bytes)?
                }
                Ok(_) if len > REWRITTEN_BYTES_MAX => {
                    self.grow_inline(&stored_key, len, at, bytes)?
                }
                Ok(_) => return self.rewrite(key, bytes, offset),
                Err(head) => {
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

    /// Writes bytes into a short value, as [`write`](Self::write) does, by a new one.
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
