//! SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): small enough to be the same in Java; and Zipf's
//! law.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

/// The step by which a state of the generator grows.
pub(crate) const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// Skew of the Zipf draw, as in FASTER's evaluation and YCSB.
const ZIPF_EXPONENT: f64 = 0.99;

/// Scrambles a number: no two are made one.
#[inline]
#[must_use]
pub(crate) fn scrambled(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// `count` numbers below `limit` by Zipf's law, popular ones scattered.
pub(crate) fn zipf(limit: u32, count: usize, seed: u64) -> Vec<u32> {
    let zipf = Zipf::new(f64::from(limit), ZIPF_EXPONENT)
        .expect("there are some, and the exponent is positive");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..count)
        .map(|_| {
            let rank = zipf.sample(&mut random) as u64;
            // YCSB's scattering: some numbers share a rank's place, all are in range.
            ((u128::from(scrambled(rank)) * u128::from(limit)) >> 64) as u32
        })
        .collect()
}

/// A stream of random words; equal seeds give equal streams, here and in `bench-vs/jvm`.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        let next = scrambled(self.0);
        self.0 = self.0.wrapping_add(STEP);
        next
    }

    /// Fisher and Yates.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }

    /// A number below `limit`, from the high half of a word.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * u64::from(limit)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_stream_is_the_published_one() {
        // First outputs of the reference implementation for seed 1234567.
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn numbers_stay_below_their_limit() {
        let mut random = Random::new(7);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[random.below(10) as usize] = true;
        }
        assert_eq!(seen, [true; 10]);
    }
}
