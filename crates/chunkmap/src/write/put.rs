//! Puts and removals of a key.

use crate::error::Result;
use crate::map::{ChunkMap, check_key, check_value};
use crate::node::chunk::{Find, Wanted};
use crate::tree::Found;
use crate::write::entry::Fresh;
use crate::write::lock::{Intent, Writer};

#[cfg(doc)]
use crate::error::Error;

impl ChunkMap {
    /// Puts a value, whether there was one or not; true if it replaced one.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::ValueLength`], [`Error::OutOfMemory`]; inside a
    /// closure that changes a value also [`Error::Reentrant`] and [`Error::WouldBlock`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_at(None, key, value)
    }

    /// Puts a value from a chunk that was found before: see
    /// [`put_if_absent_or_update_at`](Self::put_if_absent_or_update_at).
    #[inline]
    pub(crate) fn put_at(
        &self,
        mut found: Option<Found>,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        check_key(key)?;
        check_value(value.len())?;
        self.with_memory(|guard| {
            let mut fresh = Fresh::new(&self.tree.arena);
            loop {
                let leaf = || self.leaf_once(guard, &mut found, key);
                match self.lock_writer_in(guard, key, Intent::Overwrite, leaf)? {
                    Writer::Locked(hit, lock) => {
                        self.overwrite(guard, hit, lock, value, &mut fresh)?;
                        return Ok(true);
                    }
                    Writer::Absent(leaf, miss) => {
                        if self.insert(guard, leaf, miss, key, value, &mut fresh)? {
                            return Ok(false);
                        }
                    }
                }
            }
        })
    }

    /// Puts a value unless there is one; true if it did.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::ValueLength`], [`Error::OutOfMemory`].
    pub fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_new(None, key, value, self.is_logged())
    }

    /// Removes an entry; true if there was one.
    ///
    /// # Errors
    /// [`Error::KeyLength`]; inside a closure that changes a value also
    /// [`Error::Reentrant`] and [`Error::WouldBlock`].
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        check_key(key)?;
        {
            let guard = self.tree.reclaimer.pin();
            match self.lock_writer(&guard, key, Intent::Remove)? {
                Writer::Absent(..) => return Ok(false),
                Writer::Locked(hit, lock) => self.unlink(&guard, hit, lock)?,
            }
        }
        self.compact_if_due();
        Ok(true)
    }

    /// Removes an entry and shows its value to `read`, afterwards: the entry is
    /// gone by then, also if `read` panics.
    ///
    /// # Errors
    /// The errors of [`remove`](Self::remove).
    pub fn remove_with<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        check_key(key)?;
        let guard = self.tree.reclaimer.pin();
        let shown = match self.lock_writer(&guard, key, Intent::Decide)? {
            Writer::Absent(..) => return Ok(None),
            Writer::Locked(hit, lock) => {
                let removed = lock.read();
                self.unlink(&guard, hit, lock)?;
                guard.outside(|| read(removed.value()))
            }
        };
        drop(guard);
        self.compact_if_due();
        Ok(Some(shown))
    }

    /// Puts a value unless there is one; true if it did. The journal hears of it, or has it from elsewhere. The chunk
    /// may have been found before: see [`put_if_absent_or_update_at`](Self::put_if_absent_or_update_at).
    #[inline]
    pub(crate) fn put_new(
        &self,
        mut found: Option<Found>,
        key: &[u8],
        value: &[u8],
        is_logged: bool,
    ) -> Result<bool> {
        check_key(key)?;
        check_value(value.len())?;
        self.with_memory(|guard| {
            let mut fresh = Fresh::new(&self.tree.arena);
            loop {
                let leaf = self.leaf_once(guard, &mut found, key);
                match leaf.chunk.find(key, Wanted::Record) {
                    Find::Hit(_) => return Ok(false),
                    Find::Miss(miss) => {
                        if self.append(guard, leaf, miss, (key, value), &mut fresh, is_logged)? {
                            return Ok(true);
                        }
                    }
                }
            }
        })
    }
}
