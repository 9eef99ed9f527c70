//! The most frequent values.
//!
//! Counted exactly while there are no more different values than the capacity. When there are more,
//! the count that half of the capacity exceeds is taken off all counts, and what is left of none is
//! forgotten: Misra and Gries's summary, thinned out by halves, which merges (Agarwal et al.,
//! "Mergeable summaries", PODS 2012). What was taken off is the error: each count is between what is
//! left and that plus the error, and a value that is not there occurred at most error times. The
//! error is at most 2 n / capacity for n objects, in whatever order they came and were merged.

use std::cmp::Reverse;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::count::{CountOverflow, add_counts};
use crate::value::Value;
use crate::value::stored::{self, Corrupt, Reader};

/// A frequent value, and how often it occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TopEntry {
    /// The value.
    pub value: Value<'static>,
    /// It occurs at least so often.
    pub at_least: u64,
    /// It occurs at most so often; the same as `at_least` if it was counted exactly.
    pub at_most: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Top {
    /// By the stored form of the value.
    counts: HashMap<Box<[u8]>, u64>,
    error: u64,
}

impl Top {
    #[inline]
    pub(super) fn push(&mut self, capacity: u32, value: &Value<'_>) {
        let mut bytes = SmallVec::<[u8; 64]>::new();
        stored::value(Some(value), &mut bytes);
        match self.counts.get_mut(&bytes[..]) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(bytes.as_slice().into(), 1);
                self.thin_out(capacity);
            }
        }
    }

    fn thin_out(&mut self, capacity: u32) {
        let capacity = capacity as usize;
        if self.counts.len() <= capacity {
            return;
        }
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let (_, &mut taken, _) =
            counts.select_nth_unstable_by_key(capacity / 2, |&count| Reverse(count));
        self.counts.retain(|_, count| {
            *count = count.saturating_sub(taken);
            *count > 0
        });
        self.error = self.error.saturating_add(taken);
    }

    pub(super) fn merge(&mut self, capacity: u32, other: Top) -> Result<(), CountOverflow> {
        add_counts(&mut self.error, other.error)?;
        for (value, count) in other.counts {
            add_counts(self.counts.entry(value).or_default(), count)?;
        }
        self.thin_out(capacity);
        Ok(())
    }

    /// The most frequent values, the most frequent first, equally frequent ones by value.
    pub(crate) fn entries(&self, count: usize) -> Vec<TopEntry> {
        let read = |(value, count): (&[u8], u64)| {
            let value = Reader::new(value).present().expect("written or checked by this file");
            let at_most = count.saturating_add(self.error);
            TopEntry { value: value.into_owned(), at_least: count, at_most }
        };
        let counts = self.counts.iter().map(|(value, &count)| (&value[..], count));
        let mut entries: Vec<TopEntry> = counts.map(read).collect();
        let rank = |left: &TopEntry, right: &TopEntry| {
            right.at_least.cmp(&left.at_least).then_with(|| left.value.cmp(&right.value))
        };
        entries.sort_unstable_by(rank);
        entries.truncate(count);
        entries
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.error.to_le_bytes());
        out.extend(stored::len(self.counts.len()).to_le_bytes());
        let mut counts: Vec<_> = self.counts.iter().collect();
        counts.sort_unstable();
        for (value, count) in counts {
            out.extend_from_slice(value);
            out.extend(count.to_le_bytes());
        }
    }

    pub(super) fn decode(capacity: u32, reader: &mut Reader<'_>) -> Result<Top, Corrupt> {
        let error = reader.u64("the error of counts")?;
        let len = reader.count(9, "values")?;
        if len > capacity as usize {
            return Err(reader.corrupt("there are more values than are counted"));
        }
        let mut last = Vec::new();
        let mut counts = HashMap::with_capacity(len);
        for _ in 0..len {
            let mut bytes = Vec::new();
            stored::value(Some(&reader.present()?), &mut bytes);
            let count = reader.u64("the count of a value")?;
            if bytes <= last || count == 0 {
                return Err(reader.corrupt("values do not ascend, or do not occur"));
            }
            counts.insert(bytes.as_slice().into(), count);
            last = bytes;
        }
        Ok(Top { counts, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(capacity: u32, values: &[u8]) -> Top {
        let mut top = Top::default();
        values.iter().for_each(|&value| top.push(capacity, &Value::from(value)));
        top
    }

    fn count_of(values: &[u8], wanted: &Value<'_>) -> u64 {
        values.iter().filter(|&&value| Value::from(value) == *wanted).count() as u64
    }

    proptest! {
        #[test]
        fn counts_lie_within_their_bounds_however_they_were_merged(
            values in prop::collection::vec(prop_oneof![0_u8..4, 0_u8..60], 0..400),
            cuts in prop::collection::vec(0_usize..400, 0..6),
            capacity in 2_u32..70,
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(values.len())).collect();
            cuts.extend([0, values.len()]);
            cuts.sort_unstable();
            let mut top = Top::default();
            for part in cuts.windows(2) {
                top.merge(capacity, of(capacity, &values[part[0]..part[1]])).expect("few");
            }
            let entries = top.entries(usize::MAX);
            prop_assert!(entries.len() <= capacity as usize);
            prop_assert!(top.error <= 2 * values.len() as u64 / u64::from(capacity));
            for entry in &entries {
                let count = count_of(&values, &entry.value);
                prop_assert!(entry.at_least <= count && count <= entry.at_most, "{count} {entry:?}");
            }
            for value in 0..60_u8 {
                let value = Value::from(value);
                if entries.iter().all(|entry| entry.value != value) {
                    prop_assert!(count_of(&values, &value) <= top.error);
                }
            }
            let different = (0..60).filter(|value| values.contains(value)).count();
            if different <= capacity as usize {
                prop_assert_eq!(top.error, 0);
                let exact = of(1000, &values);
                prop_assert_eq!(top.entries(60), exact.entries(60));
            }
        }
    }

    #[test]
    fn the_most_frequent_come_first_and_ties_go_by_value() {
        let entries = of(10, &[3, 1, 2, 3, 2, 9]).entries(3);
        let found: Vec<_> = entries.iter().map(|e| (e.value.clone(), e.at_least)).collect();
        assert_eq!(found, [(2.into(), 2), (3.into(), 2), (1.into(), 1)]);
    }

    #[test]
    fn what_no_summary_is_stored_as_is_refused() {
        let mut bytes = Vec::new();
        of(10, &[1, 2]).encode(&mut bytes);
        let decode = |capacity, bytes: &[u8]| Top::decode(capacity, &mut Reader::new(bytes));
        assert!(decode(2, &bytes).is_ok() && decode(1, &bytes).is_err());
        for (at, byte) in [(8, 9), (12, 1), (13, 2), (12 + 9, 0)] {
            let mut lie = bytes.clone();
            lie[at] = byte;
            assert!(decode(10, &lie).is_err(), "{at} {byte}");
        }
    }
}
