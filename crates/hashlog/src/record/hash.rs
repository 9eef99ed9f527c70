//! The hash of a key, and the bucket and tag in it.
//!
//! Buckets and tags are stored in index images, so these functions never change.

/// The 64-bit hash of a key of any length: XXH3.
#[inline]
pub(crate) fn of_bytes(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// The 64-bit hash of a key of 8 bytes: two rounds of shift, xor and multiplication, with
/// Stafford's constants (his "Mix13", as in SplitMix64). Each round can be undone, so no two keys
/// have the same hash, and every bit of the key reaches those few that choose bucket and tag: one
/// multiplication, however wide, leaves ascending big-endian numbers on a lattice there.
#[inline]
pub(crate) fn of_word(key: u64) -> u64 {
    let word = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
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

    /// Keys whose bits for bucket and tag are those of another cost a chain. Of 2^20 keys in 2^28
    /// places a random function puts 2,045 where one is already.
    #[test]
    fn patterned_keys_seldom_share_bucket_and_tag() {
        fn digits(number: u64) -> u64 {
            u64::from_le_bytes(format!("{number:08}").into_bytes().try_into().expect("8 digits"))
        }
        let patterns: [(&str, fn(u64) -> u64); 9] = [
            ("numbers", |i| i),
            ("big-endian numbers", u64::swap_bytes),
            ("numbers of 32 bits, twice", |i| i << 32 | i),
            ("numbers in the upper half", |i| i << 32),
            ("multiples of 64", |i| i * 64),
            ("big-endian multiples", |i| (i * 1_000).swap_bytes()),
            ("decimal digits", digits),
            ("big-endian floats", |i| (i as f64).to_bits().swap_bytes()),
            ("pairs of numbers", |i| (i & 0x7FF) << 32 | i >> 11),
        ];
        for (name, pattern) in patterns {
            let mut seen = vec![0_u64; 1 << 22];
            let mut shared = 0;
            for place in (0..1 << 20).map(|i| of_word(pattern(i)) & 0xFFF_FFFF) {
                let (word, bit) = (&mut seen[place as usize / 64], 1 << (place % 64));
                shared += u32::from(*word & bit != 0);
                *word |= bit;
            }
            // Six standard deviations, which are roots of what is expected.
            assert!(shared < 2_045 + 6 * 46, "{name}: {shared}");
        }
    }

    /// Of a hundred million big-endian numbers those at this distance shared bucket and tag, 36
    /// bits, more than a hundred times as often as they should, after one wide multiplication.
    #[test]
    fn big_endian_numbers_far_apart_seldom_share_bucket_and_tag() {
        const APART: u64 = 5_798_524;
        let place = |number: u64| of_word(number.swap_bytes()) & 0xF_FFFF_FFFF;
        let numbers = (0..1 << 20).map(|i| i * 61);
        let shared = numbers.filter(|&i| place(i) == place(i + APART)).count();
        assert!(shared < 5, "{shared}");
    }
}
