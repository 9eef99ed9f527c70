//! The numbers of checkpoints.

/// The number of a checkpoint, counted from 1; a higher one is newer. Zero is of none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(crate) struct CheckpointNumber(u64);

impl CheckpointNumber {
    /// No checkpoint.
    pub(crate) const NONE: CheckpointNumber = CheckpointNumber::new(0);
    pub(crate) const FIRST: CheckpointNumber = CheckpointNumber::new(1);
    /// The last number there is. No checkpoint has it: another could not follow.
    pub(crate) const LAST: CheckpointNumber = CheckpointNumber::new(u64::MAX);

    pub(crate) const fn new(number: u64) -> CheckpointNumber {
        CheckpointNumber(number)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// The number of the checkpoint that follows, or the last there is.
    pub(crate) const fn next(self) -> CheckpointNumber {
        CheckpointNumber(self.0.saturating_add(1))
    }
}

impl From<u64> for CheckpointNumber {
    fn from(number: u64) -> CheckpointNumber {
        CheckpointNumber(number)
    }
}

impl From<CheckpointNumber> for u64 {
    fn from(number: CheckpointNumber) -> u64 {
        number.0
    }
}

impl std::fmt::Display for CheckpointNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_checkpoint_has_a_higher_number() {
        assert_eq!(CheckpointNumber::NONE.next(), CheckpointNumber::FIRST);
        assert!(CheckpointNumber::FIRST.next() > CheckpointNumber::FIRST);
        assert_eq!(CheckpointNumber::LAST.next(), CheckpointNumber::LAST);
        assert_eq!(CheckpointNumber::from(16).to_string(), "16");
    }
}
