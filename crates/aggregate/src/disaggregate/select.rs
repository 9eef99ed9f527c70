//! The objects with the least keys.
//!
//! Of many objects the so many with the least keys are told from the others by one key, which is found
//! by selection, not by sorting.

use sapwood_engine::HeldKeys;
use sapwood_mem::vector::Level;

use super::chunk::{Chunk, Keys};
use super::disaggregator::Disaggregator;
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
    held: Option<&dyn HeldKeys>,
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
    let is_of_words = |chunk: &Chunk| matches!(chunk.keys, Keys::Words(_) | Keys::Held { .. });
    if !chunks.is_empty() && chunks.iter().all(is_of_words) {
        return bound_of(WordChunks { chunks, held }.least(count, rank));
    }
    let mut order: Vec<&[u8]> = keys().collect();
    let bound = nth(&mut order, rank);
    bound.map(|key| Bound::Below(key.into())).map_err(|key| key.into())
}

fn bound_of(found: Result<u64, u64>) -> Result<Bound, Box<[u8]>> {
    let bound = |word: u64| word.to_be_bytes().into();
    found.map(bound).map(Bound::Below).map_err(bound)
}

/// A guess between which two keys of 8 bytes those end that get a unit more: where objects are
/// collected, it is counted how many lie below, and what lies between is gathered. So no key is read
/// again if it turns out right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guess {
    begin: u64,
    last: u64,
}

impl Disaggregator {
    /// Guesses from how many objects there will be, and from the keys of some of them. None if no
    /// object gets more than others, or too few keys are known.
    pub fn guess(&self, count: u64, sample: &[[u8; 8]]) -> Option<Guess> {
        let is_whole = self.selection().is_everything() && self.query.test.is_none();
        if !self.has_equal_parts() || !is_whole || sample.len() < SAMPLE_MIN || count == 0 {
            return None;
        }
        let rank = self.total().unsigned_abs() % u128::from(count);
        let mut words: Vec<u64> = sample.iter().map(|key| u64::from_be_bytes(*key)).collect();
        (rank > 0).then(|| Guess::of(&mut words, count as usize, rank as usize))
    }
}

impl Guess {
    /// From a sample.
    fn of(sample: &mut [u64], count: usize, rank: usize) -> Guess {
        let guess = (rank as u128 * sample.len() as u128 / count as u128) as usize;
        let margin = margin(sample.len());
        let begin = guess.checked_sub(margin).map_or(0, |at| *sample.select_nth_unstable(at).1);
        let last = guess + margin;
        let last = match last < sample.len() {
            true => *sample.select_nth_unstable(last).1,
            false => u64::MAX,
        };
        Guess { begin, last }
    }
}

/// What a guess came to.
#[derive(Debug, Clone)]
pub(super) struct Guessed {
    guess: Guess,
    /// Objects that it was counted for.
    objects: u64,
    below: u64,
    between: Vec<u64>,
}

impl Guessed {
    pub(super) fn new(guess: Guess) -> Guessed {
        Guessed { guess, objects: 0, below: 0, between: Vec::new() }
    }

    /// Counts keys.
    pub(super) fn count(&mut self, level: Level, keys: &[[u8; 8]]) {
        let Guess { begin, last } = self.guess;
        self.objects += keys.len() as u64;
        self.below += kernels::part_words(level, keys, begin, last, &mut self.between);
    }

    /// Counts keys that are lanes, as they lie in memory.
    pub(super) fn count_lanes(&mut self, level: Level, lanes: &[u64]) {
        let mut words = [[0; 8]; 64];
        for lanes in lanes.chunks(words.len()) {
            for (word, lane) in words.iter_mut().zip(lanes) {
                *word = lane.to_le_bytes();
            }
            self.count(level, &words[..lanes.len()]);
        }
    }

    /// Both, of other objects. Of another guess it stays as it is, and does not count all.
    pub(super) fn merge(&mut self, other: Guessed) {
        if self.guess == other.guess {
            self.objects += other.objects;
            self.below += other.below;
            self.between.extend(other.between);
        }
    }

    /// What parts the `rank` least of `count` keys from the others, if it counted all of them and was
    /// right. An error is a key that comes twice.
    pub(super) fn least(mut self, count: u64, rank: u64) -> Option<Result<Bound, Box<[u8]>>> {
        let rank = rank.checked_sub(self.below).filter(|_| self.objects == count)? as usize;
        let is_between = rank < self.between.len();
        is_between.then(|| bound_of(nth(&mut self.between, rank)))
    }
}

/// The key with `rank` others below it; an error if one of them is not below it but the same.
fn nth<K: Copy + Ord>(keys: &mut [K], rank: usize) -> Result<K, K> {
    let (below, &mut bound, _) = keys.select_nth_unstable(rank);
    if below.contains(&bound) { Err(bound) } else { Ok(bound) }
}

/// Keys that are looked at to guess where the bound lies.
const SAMPLE: usize = 16_384;
/// From fewer nothing is guessed: most keys would lie between.
const SAMPLE_MIN: usize = 4_096;
/// Keys of a sample to both sides of the guess that the bound lies between: four standard errors,
/// which are at most half the root of the sample.
fn margin(sample: usize) -> usize {
    2 * sample.isqrt() + 1
}

/// Keys of 8 bytes, in chunks or in the records that hold them.
#[derive(Clone, Copy)]
struct WordChunks<'a> {
    chunks: &'a [Chunk],
    held: Option<&'a dyn HeldKeys>,
}

impl WordChunks<'_> {
    /// The key, as a number, that has `rank` of `count` below it.
    ///
    /// A sample says between which two keys it lies, almost surely; then one pass counts what is below
    /// and gathers what is between. If it lies elsewhere, because the order of the keys fools the
    /// sample, all are gathered.
    fn least(self, count: usize, rank: usize) -> Result<u64, u64> {
        if count > 4 * SAMPLE {
            let mut sample = self.sample(count);
            let mut guessed = Guessed::new(Guess::of(&mut sample, count, rank));
            let level = Level::detected();
            self.each(|keys| guessed.count(level, keys));
            if let Some(rank) = rank.checked_sub(guessed.below as usize)
                && rank < guessed.between.len()
            {
                return nth(&mut guessed.between, rank);
            }
        }
        let mut order = Vec::with_capacity(count);
        self.each(|keys| order.extend(keys.iter().map(|key| u64::from_be_bytes(*key))));
        nth(&mut order, rank)
    }

    /// Calls `visit` with the keys of each chunk.
    fn each(self, mut visit: impl FnMut(&[[u8; 8]])) {
        let mut read = Vec::new();
        for chunk in self.chunks {
            match chunk.keys.words() {
                Some(words) => visit(words),
                None => {
                    chunk.read_held(self.held, &mut read);
                    visit(&read);
                }
            }
        }
    }

    /// Keys from everywhere: of each of so many equal parts of them one, which one of them is mixed
    /// from its number, so that keys in any regular order do not fool it.
    fn sample(self, count: usize) -> Vec<u64> {
        let part = (count / SAMPLE) as u64;
        let place = |at: u64| at * part + (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % part;
        let mut places = (0..SAMPLE as u64).map(|at| place(at) as usize).peekable();
        let (mut sample, mut addresses) = (Vec::with_capacity(SAMPLE), Vec::new());
        let mut begin = 0;
        for chunk in self.chunks {
            let len = chunk.keys.len();
            while let Some(place) = places.next_if(|&place| place - begin < len) {
                match chunk.keys.words() {
                    Some(words) => sample.push(words[place - begin]),
                    None => addresses.extend(chunk.addresses.nth(place - begin)),
                }
            }
            begin += len;
        }
        if let Some(held) = self.held {
            held.read_each(&addresses, &mut sample);
        }
        sample.iter().map(|key| u64::from_be_bytes(*key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disaggregate::chunk::{AddressColumn, CHUNK};

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
            let chunk = |keys: &[[u8; 8]]| {
                let mut chunk = Chunk::new(8, AddressColumn::None);
                chunk.keys = Keys::Words(keys.to_vec());
                chunk
            };
            let chunks: Vec<Chunk> = keys.chunks(CHUNK).map(chunk).collect();
            let words = WordChunks { chunks: &chunks, held: None };
            for rank in [0, 1, 1000, count / 2, count - 2, count - 1] {
                assert_eq!(words.least(count, rank), Ok(sorted[rank]), "{rank}");
            }
        }
    }
}
