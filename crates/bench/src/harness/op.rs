//! Planned operations.

/// One planned operation: a number, and whether it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op(u32);

const WRITES: u32 = 1 << 31;
/// The greatest number leaves a bit for [`WRITES`].
pub(crate) const NUMBERS_MAX: u32 = WRITES - 1;

impl Op {
    pub(crate) fn new(number: u32, writes: bool) -> Op {
        Op(number | if writes { WRITES } else { 0 })
    }

    /// The entry's number.
    #[inline]
    #[must_use]
    pub fn number(self) -> u32 {
        self.0 & !WRITES
    }

    /// True if it writes; else it reads.
    #[inline]
    #[must_use]
    pub fn writes(self) -> bool {
        self.0 & WRITES != 0
    }
}
