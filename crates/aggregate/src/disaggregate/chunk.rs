//! Chunks of collected objects.
//!
//! In chunks of some thousand, in the order of their arrival, each thing they have in a column of its
//! own. A key of 8 bytes takes 8 bytes, an address takes 8 or, at a constant distance from the one before,
//! a bit; weights and numbers that were held before are kept where parts depend on them alone.

use std::sync::OnceLock;

use sapwood_engine::{HeldKeys, RecordAddress, RecordRun};

use crate::columns::kernels::RUN;

const _: () = assert!(RUN == RecordRun::LEN_MAX);

/// Objects of a chunk at most. It is also after how many an application can be cancelled, so it takes
/// well below a millisecond in memory.
pub(super) const CHUNK: usize = 4 * RUN;
/// Bytes of keys of a chunk, unless one key alone has more.
const KEY_BYTES_MAX: usize = 1 << 20;
/// Keys of a chunk that are copied when they turn out to differ in width.
const REPACKED_MAX: usize = 64;

/// Columns of a run of objects.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) keys: Keys,
    pub(super) addresses: AddressColumn,
    /// Empty where parts do not depend on weights.
    pub(super) weights: Vec<u64>,
    pub(super) risks: Risks,
}

/// Objects to which not every part can be added: what they held when they were collected.
#[derive(Debug, Clone, Default)]
pub(super) struct Risks {
    pub(super) at: Vec<u32>,
    /// Whole numbers, or the bits of floats.
    pub(super) before: Ints,
}

/// The keys of a chunk.
#[derive(Debug, Clone)]
pub(super) enum Keys {
    Words(Vec<[u8; 8]>),
    /// Of 8 bytes, in records that stay where they are, to be read by [`Chunk::keys`]. Their addresses
    /// are runs.
    Held {
        count: usize,
        /// Those that were read, where each object is looked at after all.
        read: OnceLock<Box<Keys>>,
    },
    Fixed {
        width: usize,
        count: usize,
        bytes: Vec<u8>,
    },
    Any {
        bytes: Vec<u8>,
        /// Where each key ends.
        ends: Vec<u32>,
    },
}

impl Keys {
    pub(super) fn new(width: usize) -> Keys {
        match width {
            8 => Keys::Words(Vec::new()),
            _ => Keys::Fixed { width, count: 0, bytes: Vec::new() },
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Keys::Words(words) => words.len(),
            Keys::Held { count, .. } | Keys::Fixed { count, .. } => *count,
            Keys::Any { ends, .. } => ends.len(),
        }
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> &[u8] {
        match self {
            Keys::Words(words) => &words[at],
            Keys::Held { .. } => unreachable!("keys of records are read together"),
            Keys::Fixed { width, bytes, .. } => &bytes[at * width..(at + 1) * width],
            Keys::Any { bytes, ends } => {
                let begin = at.checked_sub(1).map_or(0, |before| ends[before]);
                &bytes[begin as usize..ends[at] as usize]
            }
        }
    }

    pub(super) fn words(&self) -> Option<&[[u8; 8]]> {
        match self {
            Keys::Words(words) => Some(words),
            Keys::Held { .. } | Keys::Fixed { .. } | Keys::Any { .. } => None,
        }
    }

    /// Whether so many more keys of a width can be pushed.
    pub(super) fn has_room(&self, width: usize, count: usize) -> bool {
        let is_of_width = match self {
            Keys::Words(_) | Keys::Held { .. } => width == 8,
            Keys::Fixed { width: known, .. } => {
                *known == width && (self.len() + count) * width <= KEY_BYTES_MAX
            }
            Keys::Any { .. } => false,
        };
        is_of_width && self.len() + count <= CHUNK
    }

    /// False if the key must go into another chunk.
    pub(super) fn push(&mut self, key: &[u8]) -> bool {
        if self.len() == CHUNK {
            return false;
        }
        match self {
            Keys::Held { .. } => return false,
            Keys::Words(words) if key.len() == 8 => {
                words.push(key.try_into().expect("8 bytes"));
                return true;
            }
            Keys::Fixed { width, count, bytes }
                if *width == key.len()
                    && (*count == 0 || bytes.len() + key.len() <= KEY_BYTES_MAX) =>
            {
                bytes.extend_from_slice(key);
                *count += 1;
                return true;
            }
            Keys::Any { bytes, ends } if bytes.len() + key.len() <= KEY_BYTES_MAX => {
                bytes.extend_from_slice(key);
                ends.push(bytes.len() as u32);
                return true;
            }
            Keys::Any { .. } => return false,
            Keys::Words(_) | Keys::Fixed { .. } if self.len() > REPACKED_MAX => return false,
            Keys::Words(_) | Keys::Fixed { .. } => {}
        }
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for at in 0..self.len() {
            bytes.extend_from_slice(self.get(at));
            ends.push(bytes.len() as u32);
        }
        if !bytes.is_empty() && bytes.len() + key.len() > KEY_BYTES_MAX {
            return false;
        }
        *self = Keys::Any { bytes, ends };
        match self {
            Keys::Any { bytes, ends } => {
                bytes.extend_from_slice(key);
                ends.push(bytes.len() as u32);
            }
            Keys::Words(_) | Keys::Held { .. } | Keys::Fixed { .. } => unreachable!("just made"),
        }
        true
    }
}

/// The addresses of the objects of a chunk.
#[derive(Debug, Clone)]
pub(super) enum AddressColumn {
    None,
    Each(Vec<RecordAddress>),
    Runs(Vec<RecordRun>),
}

impl Chunk {
    /// The keys, read where records hold them.
    ///
    /// # Panics
    /// If records hold them, and it is not said which.
    pub(super) fn keys(&self, held: Option<&dyn HeldKeys>) -> &Keys {
        let Keys::Held { read, .. } = &self.keys else { return &self.keys };
        read.get_or_init(|| {
            let mut words = Vec::new();
            self.read_held(held, &mut words);
            Box::new(Keys::Words(words))
        })
    }

    /// Sets `words` to the keys that records hold.
    pub(super) fn read_held(&self, held: Option<&dyn HeldKeys>, words: &mut Vec<[u8; 8]>) {
        let held = held.expect("keys that were not kept are given by what holds the records");
        words.clear();
        self.addresses.runs().iter().for_each(|run| held.read_run(run, words));
        assert_eq!(words.len(), self.keys.len(), "each record of a run has a key");
    }
}

impl AddressColumn {
    /// Sets `out` to the addresses; false if they are not known.
    pub(super) fn list(&self, out: &mut Vec<RecordAddress>) -> bool {
        out.clear();
        match self {
            AddressColumn::None => return false,
            AddressColumn::Each(addresses) => out.extend_from_slice(addresses),
            AddressColumn::Runs(runs) => runs.iter().for_each(|run| list(run, out)),
        }
        true
    }

    /// The runs, if it is of runs.
    pub(super) fn runs(&self) -> &[RecordRun] {
        match self {
            AddressColumn::Runs(runs) => runs,
            AddressColumn::None | AddressColumn::Each(_) => &[],
        }
    }

    /// The address of object number `at` of a column of runs.
    pub(super) fn nth(&self, mut at: usize) -> Option<RecordAddress> {
        for run in self.runs() {
            let len = run.len();
            if at < len {
                return run.address(at);
            }
            at -= len;
        }
        None
    }

    /// The addresses, in order; none for each object if they are not known.
    #[inline]
    pub(super) fn iter(&self) -> AddressIter<'_> {
        match self {
            AddressColumn::None => AddressIter::None,
            AddressColumn::Each(addresses) => AddressIter::Each(addresses.iter()),
            AddressColumn::Runs(runs) => AddressIter::Runs(RunIter {
                first: 0,
                step: 0,
                word: 0,
                base: 0,
                words: [].iter(),
                runs: runs.iter(),
            }),
        }
    }
}

/// Appends the addresses of a run.
fn list(run: &RecordRun, out: &mut Vec<RecordAddress>) {
    for (word, &bits) in (0..).step_by(64).zip(&run.bits) {
        let address = |bit: u64| run.address_of_slot(word + bit);
        if bits == u64::MAX {
            out.extend((0..64).map(address));
            continue;
        }
        let mut rest = bits;
        out.extend((0..bits.count_ones()).map(|_| {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            address(bit.into())
        }));
    }
}

#[derive(Debug, Clone)]
pub(super) enum AddressIter<'a> {
    None,
    Each(std::slice::Iter<'a, RecordAddress>),
    Runs(RunIter<'a>),
}

#[derive(Debug, Clone)]
pub(super) struct RunIter<'a> {
    first: u64,
    step: u64,
    /// Bits that are still to come, of objects from `base` of the run on.
    word: u64,
    base: u64,
    words: std::slice::Iter<'a, u64>,
    runs: std::slice::Iter<'a, RecordRun>,
}

impl AddressIter<'_> {
    /// The next object's address. There are as many as objects, and the caller counts those.
    #[inline]
    pub(super) fn next(&mut self) -> Option<RecordAddress> {
        match self {
            AddressIter::None => None,
            AddressIter::Each(addresses) => addresses.next().copied(),
            AddressIter::Runs(runs) => runs.next(),
        }
    }
}

impl RunIter<'_> {
    #[inline]
    fn next(&mut self) -> Option<RecordAddress> {
        while self.word == 0 {
            self.advance()?;
        }
        let bit = self.base + u64::from(self.word.trailing_zeros());
        self.word &= self.word - 1;
        let ahead = bit.wrapping_mul(self.step);
        Some(RecordAddress::from_word(self.first.wrapping_add(ahead)))
    }

    fn advance(&mut self) -> Option<()> {
        if let Some(&word) = self.words.next() {
            self.word = word;
            self.base = self.base.wrapping_add(64);
        } else {
            let run = self.runs.next()?;
            (self.first, self.step) = (run.first.word(), run.step);
            self.words = run.bits.iter();
            // The first word begins at zero.
            self.base = 0_u64.wrapping_sub(64);
        }
        Some(())
    }
}

/// Whole numbers, in 64 bits as long as these hold them.
#[derive(Debug, Clone)]
pub(super) enum Ints {
    Narrow(Vec<i64>),
    Wide(Vec<i128>),
}

impl Default for Ints {
    fn default() -> Ints {
        Ints::Narrow(Vec::new())
    }
}

impl Ints {
    pub(super) fn push(&mut self, value: i128) {
        match self {
            Ints::Narrow(numbers) => match i64::try_from(value) {
                Ok(value) => numbers.push(value),
                Err(_) => {
                    let mut wide: Vec<i128> = numbers.iter().map(|&number| number.into()).collect();
                    wide.push(value);
                    *self = Ints::Wide(wide);
                }
            },
            Ints::Wide(numbers) => numbers.push(value),
        }
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> i128 {
        match self {
            Ints::Narrow(numbers) => numbers[at].into(),
            Ints::Wide(numbers) => numbers[at],
        }
    }
}

impl Ints {
    /// Makes a number one greater, which is below the greatest.
    pub(super) fn increment(&mut self, at: usize) {
        match self {
            Ints::Narrow(numbers) if numbers[at] < i64::MAX => numbers[at] += 1,
            Ints::Narrow(numbers) => {
                let mut wide: Vec<i128> = numbers.iter().map(|&number| number.into()).collect();
                wide[at] += 1;
                *self = Ints::Wide(wide);
            }
            Ints::Wide(numbers) => numbers[at] = numbers[at].wrapping_add(1),
        }
    }

    /// Each becomes its negative; the least number of 128 bits is its own.
    pub(super) fn negate(&mut self) {
        match self {
            // The magnitudes of 64 bits are below 2^63.
            Ints::Narrow(numbers) => numbers.iter_mut().for_each(|number| *number = -*number),
            Ints::Wide(numbers) => {
                numbers.iter_mut().for_each(|number| *number = number.wrapping_neg());
            }
        }
    }
}

impl FromIterator<i128> for Ints {
    fn from_iter<I: IntoIterator<Item = i128>>(values: I) -> Ints {
        let mut ints = Ints::default();
        values.into_iter().for_each(|value| ints.push(value));
        ints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_any_width_are_kept_in_order() {
        for widths in [&[8, 8, 8][..], &[3, 3], &[0, 0, 0], &[8, 3, 8], &[1, 2], &[0, 8]] {
            let mut keys = Keys::new(widths[0]);
            let all: Vec<_> =
                widths.iter().enumerate().map(|(at, &width)| vec![at as u8; width]).collect();
            assert!(all.iter().all(|key| keys.push(key)));
            let kept: Vec<_> = (0..keys.len()).map(|at| keys.get(at).to_vec()).collect();
            assert_eq!(kept, all);
        }
        // Many of one width end with the first of another, and a chunk ends when it is full.
        let mut keys = Keys::new(8);
        assert!((0..CHUNK).all(|_| keys.push(&[7; 8])));
        assert!(!keys.push(&[7; 8]) && !keys.push(&[7; 9]));
        // Long keys end a chunk early, and one that is too long alone has its own.
        let mut keys = Keys::new(KEY_BYTES_MAX + 1);
        assert!(keys.push(&vec![0; KEY_BYTES_MAX + 1]) && !keys.push(&[]));
    }

    #[test]
    fn runs_of_addresses_are_listed() {
        let mut bits = [0; RUN / 64];
        (bits[0], bits[1], bits[15]) = (0b101, 1 << 63, 1);
        let run =
            |first, step, bits| RecordRun { first: RecordAddress::from_word(first), step, bits };
        let runs =
            vec![run(1000, 24, bits), run(7, 1, [0; RUN / 64]), run(5, 8, [u64::MAX; RUN / 64])];
        let column = AddressColumn::Runs(runs);
        let mut addresses = column.iter();
        let mut words = || addresses.next().map(RecordAddress::word);
        let first: Vec<_> = (0..4).map_while(|_| words()).collect();
        assert_eq!(first, [1000, 1048, 1000 + 127 * 24, 1000 + 960 * 24]);
        let rest: Vec<_> = (0..RUN).map_while(|_| words()).collect();
        assert_eq!(rest, (0..RUN as u64).map(|at| 5 + 8 * at).collect::<Vec<_>>());
        assert_eq!(words(), None);
        let mut listed = vec![RecordAddress::from_word(7)];
        assert!(column.list(&mut listed));
        let words: Vec<_> = listed.iter().map(|address| address.word()).collect();
        assert_eq!(words, [first, rest].concat());
        assert!(!AddressColumn::None.list(&mut listed) && listed.is_empty());
    }

    #[test]
    fn numbers_widen_where_they_must() {
        let mut ints: Ints = [i64::MAX.into(), 3].into_iter().collect();
        assert!(matches!(ints, Ints::Narrow(_)));
        ints.increment(1);
        ints.increment(0);
        ints.negate();
        assert!(matches!(ints, Ints::Wide(_)));
        assert_eq!([ints.get(0), ints.get(1)], [-(1 << 63), -4]);
        ints.push(i128::MIN);
        ints.negate();
        assert_eq!([ints.get(0), ints.get(2)], [1 << 63, i128::MIN]);
    }
}
