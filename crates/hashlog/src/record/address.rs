//! Addresses of records in the log.

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
