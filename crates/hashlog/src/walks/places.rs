//! The order of places, in which walks begin, stop and go on.
//!
//! The place of a key is its hash with the bits reversed. A bucket is told from others by the low
//! bits of hashes, so its keys lie in one run of places, and a split cuts that run in the middle.
//! So a boundary between two buckets stays one for as long as the index grows, and places that were
//! cut once mean the same keys however many buckets there are, also after the table was opened
//! again. Redis walks its tables in the same order (`dictScan`, "reverse binary iteration").

use crate::index::IndexShape;

/// A run of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    first: u64,
    /// The last one, included; below the first one of an empty run.
    last: u64,
}

/// The highest bits of a place, at which parts are cut: parts have whole buckets in a larger index.
const PART_BITS: u32 = 16;

impl Places {
    /// Part `part` of `parts` of all places.
    pub(crate) fn of_part(part: usize, parts: usize) -> Places {
        let cut = |part: u128| (part << PART_BITS).div_ceil(parts as u128);
        let (from, to) = (cut(part as u128), cut(part as u128 + 1));
        if from == to {
            return Places { first: 1, last: 0 };
        }
        let place = |cut: u128| (cut << (u64::BITS - PART_BITS)) as u64;
        // Behind the last part there is place 0 again.
        Places { first: place(from), last: place(to).wrapping_sub(1) }
    }

    /// The places of so many buckets, one at least, from `first` on, or of all that are left. In the
    /// midst of a bucket it is the rest of that one.
    pub(crate) fn of_buckets(first: u64, buckets: u64, count: u64) -> Places {
        let mut run = Places { first, last: u64::MAX };
        let buckets = if run.begins_bucket(count) { buckets.max(1) } else { 1 };
        let last = run.ends(count).take(buckets as usize).last();
        run.last = last.map_or(u64::MAX, |(_, last)| last);
        run
    }

    /// The place of the keys of a hash; the hash of a place.
    #[inline(always)]
    pub(crate) fn reversed(hash: u64) -> u64 {
        hash.reverse_bits()
    }

    /// The place behind; `None` at the end of all.
    pub(crate) fn next(self) -> Option<u64> {
        self.last.checked_add(1)
    }

    #[inline(always)]
    pub(crate) fn owns(self, hash: u64) -> bool {
        let all = self.first == 0 && self.last == u64::MAX;
        all || (self.first..=self.last).contains(&Places::reversed(hash))
    }

    /// Whether it begins and ends with buckets of an index of `count`.
    pub(crate) fn is_whole(self, count: u64) -> bool {
        // Behind the last place there is place 0, where every index has a boundary.
        let behind = Places { first: self.last.wrapping_add(1), ..self };
        self.begins_bucket(count) && behind.begins_bucket(count)
    }

    /// The buckets of its keys, in the order of places.
    pub(crate) fn buckets(self, count: u64) -> impl Iterator<Item = u64> {
        self.ends(count).map(|(number, _)| number)
    }

    fn begins_bucket(self, count: u64) -> bool {
        let (_, depth) = IndexShape::new(count).number_and_depth(Places::reversed(self.first));
        self.first & (u64::MAX >> depth) == 0
    }

    /// The buckets of its keys, each with its last place.
    fn ends(self, count: u64) -> impl Iterator<Item = (u64, u64)> {
        let shape = IndexShape::new(count);
        let mut next = Some(self.first);
        std::iter::from_fn(move || {
            let place = next.filter(|place| *place <= self.last)?;
            let (number, depth) = shape.number_and_depth(Places::reversed(place));
            let last = place | u64::MAX >> depth;
            next = last.checked_add(1);
            Some((number, last))
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const COUNTS: [u64; 10] = [2, 3, 4, 5, 7, 8, 1_000, 65_535, 65_536, 70_001];

    /// Whatever the number of buckets, and however it grows meanwhile, steps of one bucket meet
    /// each bucket once.
    #[test]
    fn runs_meet_each_bucket_once() {
        for count in COUNTS {
            for step in [1, 2, 7, 4_096] {
                let (mut met, mut next) = (vec![0; count as usize], Some(0));
                while let Some(first) = next {
                    let run = Places::of_buckets(first, step, count);
                    assert!(run.is_whole(count), "{run:?} of {count}");
                    let buckets: Vec<u64> = run.buckets(count).collect();
                    assert!(buckets.len() as u64 == step || run.next().is_none());
                    buckets.iter().for_each(|number| met[*number as usize] += 1);
                    next = run.next();
                }
                assert!(met.iter().all(|met| *met == 1), "{count} buckets by {step}");
            }
        }
    }

    #[test]
    fn a_boundary_stays_one_while_the_index_grows() {
        for (older, newer) in COUNTS.iter().zip(&COUNTS[1..]) {
            let mut next = Some(0);
            while let Some(first) = next {
                let run = Places::of_buckets(first, 1, *older);
                assert!(run.is_whole(*newer), "{run:?} of {older}, then {newer}");
                next = run.next();
            }
        }
    }

    #[test]
    fn a_run_from_the_midst_of_a_bucket_ends_with_it() {
        for count in COUNTS {
            let whole = Places::of_buckets(0, 1, count);
            let rest = Places::of_buckets(1, 100, count);
            assert_eq!(rest.next(), whole.next());
            assert!(!rest.is_whole(count));
            assert_eq!(rest.buckets(count).collect::<Vec<_>>(), [0]);
            assert!(!rest.owns(0) && rest.owns(Places::reversed(1)));
            assert_eq!(Places::of_buckets(u64::MAX, 100, count).next(), None);
        }
    }

    /// Each place is in one part, also where there are more parts than cuts.
    #[test]
    fn parts_are_disjoint_and_all() {
        for parts in [1, 2, 3, 7, 16, 100, 65_536, 65_537, 100_000] {
            let mut next = Some(0);
            for part in 0..parts {
                let places = Places::of_part(part, parts);
                if places.first <= places.last {
                    assert_eq!(Some(places.first), next, "part {part} of {parts}");
                    next = places.next();
                }
            }
            assert_eq!(next, None, "{parts} parts");
        }
        assert!(!Places::of_part(1, usize::MAX).owns(1));
        assert!(Places::of_part(usize::MAX - 1, usize::MAX).next().is_some());
    }

    #[test]
    fn parts_of_a_small_index_share_buckets() {
        assert!(Places::of_part(3, 4).is_whole(4));
        assert!(!Places::of_part(3, 4).is_whole(2));
        // The second third begins at the bits 1010...1011, in a bucket that is split as the 54,614th.
        assert!(!Places::of_part(2, 3).is_whole(54_613));
        assert!(Places::of_part(2, 3).is_whole(54_614));
    }
}
