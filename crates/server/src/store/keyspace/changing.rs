//! Changes of keys by whole values.

use std::borrow::Cow;

use sapwood::{Compute, Computed};

use crate::store::format::{self, Millis, Parts, Stored};

use super::{Change, Current, Error, INLINE_BYTES_MAX, Keys, Result, is_plain, stored_key};

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

impl Keys<'_> {
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
    /// An error of the tables. Nothing was changed.
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
}
