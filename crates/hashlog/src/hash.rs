//! Which bucket and tag has a key?
//!
//! Buckets and tags are stored in index images, so these functions never change.

/// The 64-bit hash of a key of any length: XXH3.
#[inline]
pub(crate) fn of_bytes(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// The 64-bit hash of a key of 8 bytes: one multiplication to 128 bits folded to 64, and a
/// second round for the low bits, which choose the bucket.
#[inline]
pub(crate) fn of_word(key: u64) -> u64 {
    let wide = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (wide >> 64) as u64 ^ wide as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fewest and most keys of 2^20 in any of 2^10 classes cut out of the hash.
    fn spread(keys: impl Iterator<Item = u64>, shift: u32) -> (u32, u32) {
        let mut counts = vec![0; 1024];
        keys.for_each(|key| counts[(of_word(key) >> shift) as usize & 1023] += 1);
        (*counts.iter().min().expect("1024 classes"), *counts.iter().max().expect("1024 classes"))
    }

    #[test]
    fn patterned_keys_spread_over_buckets_and_tags() {
        let patterns: [fn(u64) -> u64; 5] =
            [|i| i, |i| i << 20, |i| i << 44, |i| i * 64, |i| i.swap_bytes()];
        for pattern in patterns {
            for shift in [0, 10, 23, 40] {
                let (least, most) = spread((0..1 << 20).map(pattern), shift);
                // A random function stays within 6 standard deviations of 1024 (32 each).
                assert!(least > 800 && most < 1250, "{least} to {most} keys at bit {shift}");
            }
        }
    }
}
