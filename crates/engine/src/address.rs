//! The address of a record, as a hint.

/// Where an engine keeps an entry, or kept it: a hint that saves a later change the search. It is
/// never believed: the record there says whether it is the key's. The default is no address.
///
/// ```
/// use sapwood_engine::RecordAddress;
///
/// let address = RecordAddress::from_word(24);
/// assert_eq!(address.word(), 24);
/// assert_ne!(address, RecordAddress::default());
/// ```
///
/// # Consistency
/// A plain word: it says nothing about what lies there by now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RecordAddress(u64);

impl RecordAddress {
    /// The address as a word, to be kept among other things.
    #[inline(always)]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The address of this word. Any word may be given: an address is never believed.
    #[inline(always)]
    pub fn from_word(word: u64) -> RecordAddress {
        RecordAddress(word)
    }
}

impl std::fmt::Debug for RecordAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RecordAddress").finish_non_exhaustive()
    }
}
