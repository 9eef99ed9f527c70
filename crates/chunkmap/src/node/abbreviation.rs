//! Abbreviations: eight bytes of a key, in key order.
//!
//! An abbreviation is eight bytes of a key, big-endian, so that `u64` order is
//! key order as far as it goes. Equal abbreviations decide nothing: compare the
//! keys. Here they are the eight bytes behind a common prefix; `shape.rs` leaves
//! out what tells no keys apart.
//!
//! Source: D. Lomet, "The evolution of effective B-tree page organization and
//! techniques", SIGMOD Record 2001 (poor man's normalized keys).

use std::cmp::Ordering;

/// The eight bytes of `key` from `prefix_len` on, zero-padded.
#[inline]
pub(crate) fn abbreviate(key: &[u8], prefix_len: usize) -> u64 {
    let Some(rest) = key.get(prefix_len..) else {
        return 0;
    };
    if let Some(head) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    let mut padded = [0u8; 8];
    padded[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(padded)
}

/// As [`abbreviate`], for a key that may lack the prefix: such keys sort before
/// or behind all that have it.
#[inline]
pub(crate) fn abbreviate_foreign(key: &[u8], prefix: &[u8]) -> u64 {
    if key.starts_with(prefix) {
        return abbreviate(key, prefix.len());
    }
    match key.cmp(prefix) {
        Ordering::Less => 0,
        Ordering::Equal | Ordering::Greater => u64::MAX,
    }
}

/// Bytes that both keys begin with.
pub(crate) fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The shortest key that is above `below` and not above `above`.
pub(crate) fn separator<'k>(below: &[u8], above: &'k [u8]) -> &'k [u8] {
    debug_assert!(below < above);
    &above[..common_prefix_len(below, above) + 1]
}

/// First index whose abbreviation is not less than `wanted`; without branches
/// that could be mispredicted.
#[inline]
pub(crate) fn lower_bound(abbreviations: &[u64], wanted: u64) -> usize {
    let mut base = 0;
    let mut len = abbreviations.len();
    while len > 1 {
        let half = len / 2;
        // SAFETY: base + half - 1 < base + len <= abbreviations.len().
        let less = unsafe { *abbreviations.get_unchecked(base + half - 1) } < wanted;
        base += std::hint::select_unpredictable(less, half, 0);
        len -= half;
    }
    base + usize::from(len == 1 && abbreviations[base] < wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_bound_is_the_partition_point() {
        for len in 0..40u64 {
            let values: Vec<u64> = (0..len).map(|i| i / 3 * 10).collect();
            for wanted in 0..(len * 4 + 2) {
                let expected = values.partition_point(|value| *value < wanted);
                assert_eq!(lower_bound(&values, wanted), expected, "{wanted} in {values:?}");
            }
        }
    }

    #[test]
    fn abbreviations_never_contradict_the_keys() {
        let keys: Vec<&[u8]> = vec![
            b"",
            b"\0",
            b"a",
            b"a\0",
            b"ab",
            b"abc",
            b"abcdefgh",
            b"abcdefghi",
            b"abcdefgi",
            b"abd",
            b"b",
            b"\xff",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ];
        for prefix in [&b""[..], b"a", b"ab", b"abcdefgh", b"\xff"] {
            for low in &keys {
                for high in keys.iter().filter(|high| low < high) {
                    assert!(abbreviate_foreign(low, prefix) <= abbreviate_foreign(high, prefix));
                }
            }
        }
    }

    #[test]
    fn separators_lie_between() {
        for (below, above) in
            [(&b"abc"[..], &b"abd"[..]), (b"ab", b"abc"), (b"a", b"b"), (b"a\0", b"a\0\0")]
        {
            let between = separator(below, above);
            assert!(below < between && between <= above);
        }
    }
}
