//! The objects with the least keys.
//!
//! Of many objects the so many with the least keys are told from the others by one key, which is found
//! by selection, not by sorting.

use fearless_simd::Level;

use super::chunk::Chunk;
use crate::columns::kernels;
use crate::plan::membership::first_word_from;

/// What parts the objects with the least keys from the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bound {
    /// None of them is meant.
    None,
    All,
    /// Those with keys below this one.
    Below(Box<[u8]>),
}

impl Bound {
    #[inline]
    pub(super) fn is_above(&self, key: &[u8]) -> bool {
        match self {
            Bound::None => false,
            Bound::All => true,
            Bound::Below(bound) => key < &**bound,
        }
    }

    /// The number below which those 8-byte keys lie, read most significant byte first.
    pub(super) fn word(&self) -> WordBound {
        match self {
            Bound::None => WordBound::Below(0),
            Bound::All => WordBound::All,
            Bound::Below(bound) => first_word_from(bound).map_or(WordBound::All, WordBound::Below),
        }
    }
}

/// The same of 8-byte keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordBound {
    All,
    Below(u64),
}

/// What parts the `rank` least of `count` keys from the others. `chunks` are these keys, if they are
/// all keys of some chunks, so that those of 8 bytes are selected as numbers. An error is a key that
/// comes twice, so that nothing parts one from the other.
pub(super) fn least_keys<'k, I: Iterator<Item = &'k [u8]>>(
    chunks: &[Chunk],
    keys: impl Fn() -> I,
    count: usize,
    rank: usize,
) -> Result<Bound, Box<[u8]>> {
    if rank == 0 {
        return Ok(Bound::None);
    }
    if rank >= count {
        return Ok(Bound::All);
    }
    let words: Option<Vec<&[[u8; 8]]>> = chunks.iter().map(|chunk| chunk.keys.words()).collect();
    if let Some(words) = words.filter(|words| !words.is_empty()) {
        let bound = |word: u64| word.to_be_bytes().into();
        return least_words(&words, count, rank).map(bound).map(Bound::Below).map_err(bound);
    }
    let mut order: Vec<&[u8]> = keys().collect();
    let bound = nth(&mut order, rank);
    bound.map(|key| Bound::Below(key.into())).map_err(|key| key.into())
}

/// The key with `rank` others below it; an error if one of them is not below it but the same.
fn nth<K: Copy + Ord>(keys: &mut [K], rank: usize) -> Result<K, K> {
    let (below, &mut bound, _) = keys.select_nth_unstable(rank);
    if below.contains(&bound) { Err(bound) } else { Ok(bound) }
}

/// Keys that are looked at to guess where the bound lies.
const SAMPLE: usize = 16_384;
/// Keys of the sample to both sides of the guess that the bound lies between: four standard errors,
/// which are at most half the root of the sample.
const MARGIN: usize = 4 * 64;

/// The key, as a number, that has `rank` of `count` below it.
///
/// A sample says between which two keys it lies, almost surely; then one pass counts what is below
/// and gathers what is between. If it lies elsewhere, because the order of the keys fools the sample,
/// all are gathered.
fn least_words(chunks: &[&[[u8; 8]]], count: usize, rank: usize) -> Result<u64, u64> {
    let number = |key: &[u8; 8]| u64::from_be_bytes(*key);
    let all = || chunks.iter().flat_map(|keys| keys.iter().map(number));
    if count > 4 * SAMPLE {
        let mut sample = sample(chunks, count);
        sample.sort_unstable();
        let guess = (rank as u128 * sample.len() as u128 / count as u128) as usize;
        let begin = guess.checked_sub(MARGIN).map_or(0, |at| sample[at]);
        let last = sample.get(guess + MARGIN).map_or(u64::MAX, |&key| key);
        let (below, mut between) = part(chunks, begin, last);
        if let Some(rank) = rank.checked_sub(below)
            && rank < between.len()
        {
            return nth(&mut between, rank);
        }
    }
    let mut order: Vec<u64> = all().collect();
    nth(&mut order, rank)
}

/// Keys from everywhere: of each of so many equal parts of them one, which one of them is mixed from
/// its number, so that keys in any regular order do not fool it.
fn sample(chunks: &[&[[u8; 8]]], count: usize) -> Vec<u64> {
    let part = (count / SAMPLE) as u64;
    let place = |at: u64| at * part + (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % part;
    let mut places = (0..SAMPLE as u64).map(|at| place(at) as usize).peekable();
    let mut sample = Vec::with_capacity(SAMPLE);
    let mut begin = 0;
    for keys in chunks {
        while let Some(place) = places.next_if(|&place| place - begin < keys.len()) {
            sample.push(u64::from_be_bytes(keys[place - begin]));
        }
        begin += keys.len();
    }
    sample
}

/// How many keys lie below `begin`, and those from there to `last`.
fn part(chunks: &[&[[u8; 8]]], begin: u64, last: u64) -> (usize, Vec<u64>) {
    let level = Level::new();
    let mut between = Vec::new();
    let parted =
        chunks.iter().map(|keys| kernels::part_words(level, keys, begin, last, &mut between));
    (parted.sum::<u64>() as usize, between)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disaggregate::chunk::CHUNK;

    #[test]
    fn bounds_of_words_are_those_of_bytes() {
        let ff = [0xFF_u8; 9];
        for bound in [
            Bound::None,
            Bound::All,
            Bound::Below([].into()),
            Bound::Below([7, 7].into()),
            Bound::Below([7, 7, 0, 0, 0, 0, 0, 0].into()),
            Bound::Below([7, 7, 0, 0, 0, 0, 0, 0, 0].into()),
            Bound::Below(ff[..8].into()),
            Bound::Below(ff.into()),
        ] {
            for word in [0, 7 << 56, 0x0707 << 48, (0x0707 << 48) + 1, u64::MAX - 1, u64::MAX] {
                let is_above = match bound.word() {
                    WordBound::All => true,
                    WordBound::Below(bound) => word < bound,
                };
                assert_eq!(is_above, bound.is_above(&u64::to_be_bytes(word)), "{bound:?} {word:x}");
            }
        }
    }

    /// Orders that are like a sample, and orders that fool it.
    #[test]
    fn the_least_of_many_words_are_found() {
        let count = 5 * SAMPLE + 77;
        let orders: [fn(u64) -> u64; 4] = [
            |at| at,
            |at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            |at| u64::MAX - at * 3,
            // Every key that the sample takes is great.
            |at| if at.is_multiple_of(5) { u64::MAX - at } else { at },
        ];
        for order in orders {
            let keys: Vec<[u8; 8]> = (0..count as u64).map(|at| order(at).to_be_bytes()).collect();
            let mut sorted: Vec<u64> = (0..count as u64).map(order).collect();
            sorted.sort_unstable();
            let chunks: Vec<_> = keys.chunks(CHUNK).collect();
            for rank in [0, 1, 1000, count / 2, count - 2, count - 1] {
                assert_eq!(least_words(&chunks, count, rank), Ok(sorted[rank]), "{rank}");
            }
        }
    }
}
