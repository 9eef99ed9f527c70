//! Values of which few differ: those, and which of them each entry has.

use super::CODES_MAX;

/// Entries for each value, at least, that pay for a dictionary.
const ENTRIES_A_VALUE: usize = 4;
/// Places of the hash table: four for each value.
const PLACES: usize = 4 * CODES_MAX;
/// Of a place without a value.
const EMPTY: u16 = u16::MAX;

/// Finds the values of a piece that differ. Its memory is used by one piece after the other.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    /// What was found, in the order in which it came.
    found: Vec<Found>,
    /// A hash table of numbers in `found`.
    places: Vec<u16>,
    codes: Vec<u8>,
    values: Vec<u8>,
    lens: Vec<u32>,
}

/// A value, and where it lies.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// Its first eight bytes, then its last, and its length: all there is of a value of up to 16.
    ends: Ends,
    begin: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends {
    first: u64,
    last: u64,
    len: u32,
}

impl Ends {
    /// Of bytes that begin there.
    #[inline]
    fn of(bytes: &[u8], begin: usize, len: u32) -> Ends {
        let (rest, len_of_it) = (&bytes[begin..], len as usize);
        let (first, last) = if len_of_it >= 8 {
            let last = rest[len_of_it - 8..].first_chunk();
            (rest.first_chunk().copied(), last.copied())
        } else {
            (None, None)
        };
        match (first, last) {
            (Some(first), Some(last)) => {
                Ends { first: u64::from_le_bytes(first), last: u64::from_le_bytes(last), len }
            }
            _ => {
                let first = match rest.first_chunk() {
                    Some(chunk) => u64::from_le_bytes(*chunk) & ((1 << (len_of_it * 8)) - 1),
                    None => {
                        let mut chunk = [0; 8];
                        chunk[..len_of_it].copy_from_slice(&rest[..len_of_it]);
                        u64::from_le_bytes(chunk)
                    }
                };
                Ends { first, last: 0, len }
            }
        }
    }

    /// Where the search for the value begins.
    #[inline]
    fn place(self) -> usize {
        let mixed = (self.first ^ self.last.rotate_left(29) ^ u64::from(self.len))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 48) as usize % PLACES
    }
}

/// The values that differ, ascending, and the code of each entry.
pub(super) struct Coded<'d> {
    /// One behind the other.
    pub(super) values: &'d [u8],
    /// Of each value.
    pub(super) lens: &'d [u32],
    pub(super) codes: &'d [u8],
}

impl Dictionary {
    /// Bytes of the values that it has room for.
    pub(super) fn memory(&self) -> usize {
        self.values.capacity()
    }

    /// The values that begin at these places of `bytes`; `None` if too many differ.
    pub(super) fn find(
        &mut self,
        bytes: &[u8],
        begins: &[usize],
        lens: impl Iterator<Item = u32>,
    ) -> Option<Coded<'_>> {
        let most = CODES_MAX.min(begins.len() / ENTRIES_A_VALUE);
        self.found.clear();
        self.codes.clear();
        self.places.clear();
        self.places.resize(PLACES, EMPTY);
        let value = |of: &Found| &bytes[of.begin..of.begin + of.ends.len as usize];
        for (&begin, len) in begins.iter().zip(lens) {
            let next = Found { ends: Ends::of(bytes, begin, len), begin };
            let mut place = next.ends.place();
            let code = loop {
                let code = self.places[place];
                match self.found.get(usize::from(code)) {
                    Some(found)
                        if found.ends == next.ends
                            && (len <= 16 || value(found) == value(&next)) =>
                    {
                        break code;
                    }
                    Some(_) => place = (place + 1) % PLACES,
                    None if self.found.len() == most => return None,
                    None => {
                        let code = self.found.len() as u16;
                        self.places[place] = code;
                        self.found.push(next);
                        break code;
                    }
                }
            };
            self.codes.push(code as u8);
        }
        // Blocks that have the same values then have the same dictionary.
        let mut order: Vec<u16> = (0..self.found.len() as u16).collect();
        let found = |number: u16| value(&self.found[usize::from(number)]);
        order.sort_unstable_by_key(|number| found(*number));
        let mut code_of = [0; CODES_MAX];
        self.values.clear();
        self.lens.clear();
        for (code, &number) in order.iter().enumerate() {
            code_of[usize::from(number)] = code as u8;
            self.values.extend_from_slice(found(number));
            self.lens.push(found(number).len() as u32);
        }
        self.codes.iter_mut().for_each(|code| *code = code_of[usize::from(*code)]);
        Some(Coded { values: &self.values, lens: &self.lens, codes: &self.codes })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Places of values that lie one behind the other.
    fn begins_of(values: &[Vec<u8>]) -> Vec<usize> {
        let ends = values.iter().scan(0, |end, value| {
            *end += value.len();
            Some(*end)
        });
        std::iter::once(0).chain(ends).take(values.len()).collect()
    }

    proptest! {
        #[test]
        fn codes_are_those_of_the_values(
            pool in prop::collection::vec(prop::collection::vec(0_u8..3, 0..20), 1..300),
            count in 1_usize..3_000,
            seed: u64,
        ) {
            let mut random = fastrand::Rng::with_seed(seed);
            let values: Vec<Vec<u8>> =
                (0..count).map(|_| pool[random.usize(..pool.len())].clone()).collect();
            let (bytes, begins) = (values.concat(), begins_of(&values));
            let lens = values.iter().map(|value| value.len() as u32);
            let different: std::collections::BTreeSet<&Vec<u8>> = values.iter().collect();
            let is_few = different.len() <= CODES_MAX.min(count / ENTRIES_A_VALUE);
            let mut dictionary = Dictionary::default();
            let Some(coded) = dictionary.find(&bytes, &begins, lens) else {
                prop_assert!(!is_few);
                return Ok(());
            };
            prop_assert!(is_few);
            let mut rest = coded.values;
            for (len, value) in coded.lens.iter().zip(&different) {
                prop_assert_eq!(rest.split_off(..*len as usize), Some(&value[..]));
            }
            prop_assert!(rest.is_empty() && coded.lens.len() == different.len());
            for (code, value) in coded.codes.iter().zip(&values) {
                let number = different.iter().position(|it| *it == value);
                prop_assert_eq!(number, Some(usize::from(*code)));
            }
        }
    }

    #[test]
    fn values_that_differ_in_their_middle_differ() {
        let value = |middle: u8| [&[1; 8][..], &[middle], &[1; 8]].concat();
        let values: Vec<Vec<u8>> = (0..40).map(|at| value(at % 10)).collect();
        let mut dictionary = Dictionary::default();
        let coded = dictionary
            .find(&values.concat(), &begins_of(&values), values.iter().map(|it| it.len() as u32))
            .expect("ten differ");
        assert_eq!(coded.codes[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
    }
}
