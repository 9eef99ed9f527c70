//! The figures of a run of objects, by column, as a state takes them.

use sapwood_mem::vector::Level;

use super::extreme::Side;
use crate::columns::kernels;

/// What a run gives to a state.
#[derive(Debug)]
pub(crate) struct Figures<'a> {
    pub(crate) level: Level,
    /// How many objects.
    pub(crate) count: u64,
    /// Lanes of the state's field, and what they are more than its numbers.
    pub(crate) column: Option<(&'a [u64], i128)>,
    pub(crate) mask: Option<&'a [u64]>,
}

impl Figures<'_> {
    pub(crate) fn sum(&self) -> i128 {
        let Some((lanes, bias)) = self.column else { return 0 };
        let sum = match self.mask {
            None => kernels::sum(self.level, lanes),
            Some(mask) => kernels::sum_masked(self.level, lanes, mask),
        };
        sum.cast_signed() - bias * i128::from(self.count)
    }

    /// None of no objects.
    pub(crate) fn extreme(&self, side: Side) -> Option<i128> {
        let (_, bias) = self.column?;
        self.extreme_lane(side).map(|lane| i128::from(lane) - bias)
    }

    /// None of no objects.
    pub(crate) fn extreme_lane(&self, side: Side) -> Option<u64> {
        let (lanes, _) = self.column.filter(|_| self.count > 0)?;
        Some(match (side, self.mask) {
            (Side::Least, None) => kernels::least(self.level, lanes),
            (Side::Least, Some(mask)) => kernels::least_masked(self.level, lanes, mask),
            (Side::Greatest, None) => kernels::greatest(self.level, lanes),
            (Side::Greatest, Some(mask)) => kernels::greatest_masked(self.level, lanes, mask),
        })
    }
}
