//! Bytes of a segment, read as what they are said to be: none of them is believed before it was checked.

use crate::error::{Error, Result};

/// Bytes that are taken apart from their beginning on.
#[derive(Debug, Clone)]
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    /// Where the bytes begin in their file, for messages.
    offset: u64,
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8], offset: u64) -> Reader<'b> {
        Reader { bytes, offset }
    }

    /// An error about the next byte.
    #[cold]
    pub(super) fn corrupt(&self, what: impl Into<String>) -> Error {
        Error::corrupt(self.offset, what)
    }

    /// The same place with these bytes alone, which begin there.
    pub(super) fn over(&self, bytes: &'b [u8]) -> Reader<'b> {
        Reader { bytes, offset: self.offset }
    }

    /// The bytes that are left.
    pub(super) fn rest(&self) -> &'b [u8] {
        self.bytes
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Result<&'b [u8]> {
        match self.bytes.split_at_checked(len) {
            Some((taken, rest)) => {
                self.bytes = rest;
                self.offset += len as u64;
                Ok(taken)
            }
            None => Err(self.corrupt(format!("{len} bytes are expected, and there are fewer"))),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("so many were taken"))
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// A text behind its length of two bytes.
    pub(super) fn text(&mut self) -> Result<&'b str> {
        let len = usize::from(self.u16()?);
        let at = self.clone();
        std::str::from_utf8(self.take(len)?).map_err(|_| at.corrupt("a name is expected, in UTF-8"))
    }

    /// Several numbers of 8 bytes.
    pub(super) fn u64s(&mut self, count: usize) -> Result<&'b [[u8; 8]]> {
        let bytes = self.take(count.saturating_mul(8))?;
        Ok(bytes.as_chunks().0)
    }
}
