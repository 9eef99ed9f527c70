//! Delay totals of a carrier to a destination: a value that is added to in place.

use crate::samples::flight::{Code, Details};

/// Carrier and destination.
pub(super) type Pair = (Code<2>, Code<3>);

/// The value of a pair: 32 bytes, least significant byte first.
///
/// ```text
/// offset  bytes  value
///      0      4  flights that left
///      4      4  of them early
///      8      4  of them on the minute
///     12      4  of them late: early + on the minute + late = flights
///     16      8  departure delays in minutes, signed
///     24      8  arrival delays in minutes, signed, of those that arrived
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) flights: u32,
    pub(super) early: u32,
    pub(super) on_the_minute: u32,
    pub(super) late: u32,
    pub(super) departure_minutes: i64,
    pub(super) arrival_minutes: i64,
}

const TOTALS_BYTES: usize = 32;

impl Totals {
    /// Of one flight; none if it was cancelled.
    pub(super) fn of(details: &Details) -> Option<Self> {
        let delay = details.dep_delay?;
        Some(Self {
            flights: 1,
            early: u32::from(delay < 0),
            on_the_minute: u32::from(delay == 0),
            late: u32::from(delay > 0),
            departure_minutes: i64::from(delay),
            arrival_minutes: details.arr_delay.map_or(0, i64::from),
        })
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.flights += other.flights;
        self.early += other.early;
        self.on_the_minute += other.on_the_minute;
        self.late += other.late;
        self.departure_minutes += other.departure_minutes;
        self.arrival_minutes += other.arrival_minutes;
    }

    pub(super) fn encode(&self) -> [u8; TOTALS_BYTES] {
        let mut out = [0; TOTALS_BYTES];
        let counts = [self.flights, self.early, self.on_the_minute, self.late];
        for (place, count) in out.chunks_exact_mut(4).zip(counts) {
            place.copy_from_slice(&count.to_le_bytes());
        }
        out[16..24].copy_from_slice(&self.departure_minutes.to_le_bytes());
        out[24..32].copy_from_slice(&self.arrival_minutes.to_le_bytes());
        out
    }

    pub(super) fn decode(value: &[u8]) -> Option<Self> {
        let value: &[u8; TOTALS_BYTES] = value.try_into().ok()?;
        let (counts, sums) = value.split_at(16);
        let count = |index: usize| counts.as_chunks().0.get(index).copied().map(u32::from_le_bytes);
        let sum = |index: usize| sums.as_chunks().0.get(index).copied().map(i64::from_le_bytes);
        Some(Self {
            flights: count(0)?,
            early: count(1)?,
            on_the_minute: count(2)?,
            late: count(3)?,
            departure_minutes: sum(0)?,
            arrival_minutes: sum(1)?,
        })
    }

    /// Holds at every moment for a value that is changed in one step.
    pub(super) fn is_whole(&self) -> bool {
        self.flights == self.early + self.on_the_minute + self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_come_back_from_their_bytes() {
        let totals = Totals {
            flights: 7,
            early: 1,
            on_the_minute: 2,
            late: 4,
            departure_minutes: -3,
            arrival_minutes: 1 << 40,
        };
        assert!(totals.is_whole());
        assert_eq!(Totals::decode(&totals.encode()), Some(totals));
        assert_eq!(Totals::decode(&totals.encode()[1..]), None);
        assert!(!Totals { late: 3, ..totals }.is_whole());
    }
}
