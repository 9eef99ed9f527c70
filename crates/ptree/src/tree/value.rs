//! Values under change.

use std::ops::{Deref, DerefMut};

use super::ValueBuffer;
use super::entry::TreeLayout;
use crate::error::Result;

/// The value of a key while a closure changes it: its bytes, of which there may become more or fewer.
/// It is a copy, and becomes the value when the closure is through.
#[derive(Debug)]
pub struct ValueMut<'v> {
    bytes: &'v mut ValueBuffer,
    layout: TreeLayout,
}

impl<'v> ValueMut<'v> {
    pub(crate) fn new(bytes: &'v mut ValueBuffer, layout: TreeLayout) -> ValueMut<'v> {
        ValueMut { bytes, layout }
    }

    /// The same, for a shorter time.
    pub fn reborrow(&mut self) -> ValueMut<'_> {
        ValueMut { bytes: self.bytes, layout: self.layout }
    }

    /// Gives the value another length; what is added is zeros.
    ///
    /// # Errors
    /// [`Error::ValueLength`](crate::Error::ValueLength), which changes nothing.
    pub fn resize(&mut self, len: usize) -> Result<()> {
        self.layout.check_value_len(len)?;
        self.bytes.resize(len, 0);
        Ok(())
    }
}

impl Deref for ValueMut<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl DerefMut for ValueMut<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}
