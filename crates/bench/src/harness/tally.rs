//! The entries that a run read, and their sum.

/// The entries that a run read and their sum, so that no engine wins by not
/// looking, and none by answering something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub(crate) entries: u64,
    pub(crate) sum: u64,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} entries that sum to {:x}", self.entries, self.sum)
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Tally>>(tallies: I) -> Tally {
        tallies.fold(Tally::default(), Tally::merge)
    }
}

impl Tally {
    /// Counts an entry, and sums what was read of it.
    #[inline]
    pub fn add(&mut self, sum: u64) {
        self.entries += 1;
        self.sum = self.sum.wrapping_add(sum);
    }

    pub(crate) fn merge(self, other: Tally) -> Tally {
        Tally { entries: self.entries + other.entries, sum: self.sum.wrapping_add(other.sum) }
    }
}
