//! Addresses of records in the log.

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

/// Where a log keeps an entry, or kept it: a hint that saves
/// [`HashLog::update_placed`](crate::HashLog::update_placed) and [`Edit`](crate::Edit) the search.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Place(pub(crate) Address);

impl Place {
    /// The place as a word, to be kept among other things.
    #[inline]
    pub fn word(self) -> u64 {
        self.0.units()
    }

    /// The place that has this word. Any word may be given: a place is never believed.
    #[inline]
    pub fn from_word(word: u64) -> Place {
        Place(Address::from_units(word))
    }

    pub(crate) fn at(address: Address) -> Place {
        Place(address)
    }

    #[inline(always)]
    pub(crate) fn address(self) -> Address {
        self.0
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Place").finish_non_exhaustive()
    }
}
