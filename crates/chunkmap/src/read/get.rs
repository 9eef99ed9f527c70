//! Look-ups of a key.

use crate::error::Result;
use crate::map::{ChunkMap, check_key};
use crate::node::chunk::{Find, Wanted};

#[cfg(doc)]
use crate::error::Error;

impl ChunkMap {
    /// Reads a value in place: `read` gets its bytes, which stay as they are until
    /// it returns. `None` if the key is absent.
    ///
    /// # Errors
    /// [`Error::KeyLength`]; inside a closure that changes a value also
    /// [`Error::Reentrant`] and [`Error::WouldBlock`].
    pub fn get_with<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        check_key(key)?;
        Ok(self.read_lock_unpinned(key)?.map(|lock| read(lock.value())))
    }

    /// A copy of a value. Errors as of [`get_with`](Self::get_with).
    ///
    /// # Errors
    /// The errors of [`get_with`](Self::get_with).
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Is the key there? Never waits, not even for a writer of this key.
    ///
    /// # Errors
    /// [`Error::KeyLength`].
    pub fn contains_key(&self, key: &[u8]) -> Result<bool> {
        check_key(key)?;
        let guard = self.tree.reclaimer.pin();
        loop {
            let leaf = self.tree.leaf(&guard, key);
            match leaf.chunk.find(key, Wanted::Key) {
                Find::Hit(_) => return Ok(true),
                Find::Miss(miss) if miss.stale && !self.tree.is_current(&guard, &leaf.chunk) => {}
                Find::Miss(_) => return Ok(false),
            }
        }
    }
}
