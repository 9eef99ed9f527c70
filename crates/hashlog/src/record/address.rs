//! Addresses of records in the log, and the numbers of its pages.

use std::ops::Range;

use sapwood_engine::RecordAddress;

/// A place in the log, counted in units of 8 bytes since it was first made. Zero is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Address(u64);

/// Bytes of a unit: the alignment of every record.
pub(crate) const UNIT_BYTES: usize = 8;

impl Address {
    pub(crate) const NONE: Address = Address(0);

    #[inline]
    pub(crate) const fn from_units(units: u64) -> Address {
        Address(units)
    }

    pub(crate) const fn from_bytes(bytes: u64) -> Address {
        Address(bytes / UNIT_BYTES as u64)
    }

    #[inline]
    pub(crate) const fn units(self) -> u64 {
        self.0
    }

    /// So many bytes further, a multiple of a unit.
    #[inline]
    pub(crate) const fn plus(self, bytes: usize) -> Address {
        Address(self.0 + (bytes / UNIT_BYTES) as u64)
    }

    pub(crate) const fn bytes(self) -> u64 {
        self.0 * UNIT_BYTES as u64
    }
}

impl From<Address> for RecordAddress {
    #[inline(always)]
    fn from(address: Address) -> RecordAddress {
        RecordAddress::from_word(address.0)
    }
}

impl From<RecordAddress> for Address {
    #[inline(always)]
    fn from(address: RecordAddress) -> Address {
        Address(address.word())
    }
}

/// The number of a page of the log, counted from its first byte. Page zero holds no record, since
/// address zero is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub(crate) struct PageNumber(u64);

impl PageNumber {
    pub(crate) const ZERO: PageNumber = PageNumber(0);
    /// The first page with records.
    pub(crate) const FIRST: PageNumber = PageNumber(1);

    #[inline]
    pub(crate) const fn new(number: u64) -> PageNumber {
        PageNumber(number)
    }

    #[inline]
    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// So many pages further.
    #[inline]
    pub(crate) const fn plus(self, pages: u64) -> PageNumber {
        PageNumber(self.0 + pages)
    }

    #[inline]
    pub(crate) const fn next(self) -> PageNumber {
        self.plus(1)
    }

    /// So many pages back, but no further than to page zero.
    pub(crate) const fn before(self, pages: u64) -> PageNumber {
        PageNumber(self.0.saturating_sub(pages))
    }

    /// Pages from `first` to this one, which is not below.
    pub(crate) const fn since(self, first: PageNumber) -> u64 {
        debug_assert!(first.0 <= self.0, "a page lies below the first");
        self.0 - first.0
    }

    /// Pages from this one up to `limit`, if that lies above.
    pub(crate) const fn until(self, limit: PageNumber) -> u64 {
        limit.0.saturating_sub(self.0)
    }

    /// The pages of a range, in order.
    pub(crate) fn each(
        pages: Range<PageNumber>,
    ) -> impl DoubleEndedIterator<Item = PageNumber> + ExactSizeIterator {
        // A range of `usize` knows its length.
        let first = pages.start;
        (0..first.until(pages.end) as usize).map(move |at| first.plus(at as u64))
    }
}

impl From<u64> for PageNumber {
    fn from(number: u64) -> PageNumber {
        PageNumber(number)
    }
}

impl From<PageNumber> for u64 {
    fn from(page: PageNumber) -> u64 {
        page.0
    }
}

impl std::fmt::Display for PageNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_and_walked_in_order() {
        let page = PageNumber::new;
        assert_eq!(page(7).since(page(4)), 3);
        assert_eq!((page(4).until(page(7)), page(7).until(page(4))), (3, 0));
        assert_eq!((page(5).before(3), page(2).before(3)), (page(2), page(0)));
        assert_eq!((page(4).next(), page(4).plus(2)), (page(5), page(6)));
        let walked: Vec<_> = PageNumber::each(page(4)..page(7)).collect();
        assert_eq!(walked, [page(4), page(5), page(6)]);
        assert_eq!(PageNumber::each(page(7)..page(4)).len(), 0);
        assert_eq!(page(12).to_string(), "12");
    }
}
