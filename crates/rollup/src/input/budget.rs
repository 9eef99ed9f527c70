//! A bound on what decoding allocates.

/// The bytes that a decoder may still allocate: what is small may claim to be large.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Budget {
        Budget { left: bytes }
    }

    /// Takes `count` times so many bytes out of it; none if there are not so many left.
    pub(crate) fn take(&mut self, count: usize, bytes: usize) -> Option<()> {
        self.left = self.left.checked_sub(count.checked_mul(bytes)?)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is() {
        let mut budget = Budget::new(10);
        assert_eq!(budget.take(3, 3), Some(()));
        assert_eq!(budget.take(1, 2), None);
        assert_eq!(budget.take(usize::MAX, 2), None);
        assert_eq!(budget.take(1, 1), Some(()));
        assert_eq!(budget.take(1, 1), None);
    }
}
