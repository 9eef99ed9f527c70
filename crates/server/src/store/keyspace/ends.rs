//! The ends of keys' times: set, kept, and swept.

use sapwood::{Compute, Computed};

use crate::store::format::{self, Millis, Parts, Stored};

use super::{Change, Error, HASHED, Keys, Result, stored_key};

impl Keys<'_> {
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
}
