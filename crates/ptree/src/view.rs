//! Views: the objects of a heap as an operation sees them.

use sapwood_mem::words::Words;

use crate::error::{Error, Result};
use crate::object::{ObjectId, Word};

/// Objects as an operation sees them: committed ones, or those of a transaction.
pub(crate) trait View {
    /// The first `words` words of an object. Relaxed loads of them are never torn; loads of several
    /// belong together only as far as the caller makes sure (see [`Version`](crate::version::Version)).
    ///
    /// # Errors
    /// [`Error::Corrupt`] beyond the end of the heap.
    fn object(&self, id: ObjectId, words: usize) -> Result<&[Word]>;
}

/// What is committed, and, at the moment of a commit, a mix of before and after.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Committed<'a>(pub(crate) &'a Words);

impl View for Committed<'_> {
    #[inline]
    fn object(&self, id: ObjectId, words: usize) -> Result<&[Word]> {
        match self.0.get(id.index(), words) {
            Some(found) if !id.is_null() => Ok(found),
            _ => Err(outside(id, words)),
        }
    }
}

#[cold]
pub(crate) fn outside(id: ObjectId, words: usize) -> Error {
    Error::corrupt(id.index(), format!("an object of {words} words cannot be there"))
}
