//! Keys, in shapes that have broken ordered maps before.

use crate::{Bytes, Rng};
use rand::{Rng as _, RngExt as _};
use std::collections::BTreeSet;

/// The largest key that an engine takes.
pub const KEY_BYTES_MAX: usize = 64 * 1024;

/// A family of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyShape {
    /// 0, 1, 2 .. as 8 bytes, big-endian.
    DenseInts,
    /// 1 to 64 bytes of anything.
    RandomBytes,
    /// A prefix of 40 to 300 bytes, then a few bytes that differ.
    SharedPrefix,
    /// Keys that are prefixes of other keys, some followed by zero bytes.
    Nested,
    /// Nothing but 0x00, 0x01, 0xFE and 0xFF.
    Extremes,
    /// Groups of one prefix that agree in 8 to 16 more bytes: abbreviations of them tie.
    Ties,
    /// Tens of KiB up to the largest key, that differ at either end.
    Huge,
    /// Some of each but the huge ones.
    Mixed,
}

impl KeyShape {
    /// Every shape, the nastiest first.
    pub const ALL: [KeyShape; 8] = [
        KeyShape::Ties,
        KeyShape::Nested,
        KeyShape::Extremes,
        KeyShape::Mixed,
        KeyShape::SharedPrefix,
        KeyShape::Huge,
        KeyShape::RandomBytes,
        KeyShape::DenseInts,
    ];

    /// Up to `count` distinct keys, ascending; fewer where the shape has no more, never none.
    pub fn keys(self, count: usize, rng: &mut Rng) -> Vec<Bytes> {
        let mut keys = BTreeSet::new();
        let fixed = Fixed::new(rng);
        // Shapes with few possible keys repeat themselves; stop asking after a while.
        for index in 0..4 * count {
            if keys.len() >= count {
                break;
            }
            keys.insert(self.key(index, &fixed, rng));
        }
        keys.into_iter().map(Bytes::from).collect()
    }

    fn key(self, index: usize, fixed: &Fixed, rng: &mut Rng) -> Vec<u8> {
        match self {
            KeyShape::DenseInts => (index as u64).to_be_bytes().to_vec(),
            KeyShape::RandomBytes => random_bytes(1..=64, rng),
            KeyShape::SharedPrefix => {
                let mut key = fixed.long_prefix.clone();
                key.extend(random_bytes(0..=6, rng));
                key
            }
            KeyShape::Nested => {
                let mut key = b"abababababababababababab"[..rng.random_range(1..=24)].to_vec();
                key.extend(std::iter::repeat_n(0, rng.random_range(0..=9)));
                key
            }
            KeyShape::Extremes => {
                let byte = |_| [0x00, 0x01, 0xFE, 0xFF][rng.random_range(0..4)];
                (0..index % 12 + 1).map(byte).collect()
            }
            KeyShape::Ties => {
                let mut key = fixed.group_prefixes[rng.random_range(0..3)].clone();
                let tie = [8, 12, 16][rng.random_range(0..3)];
                key.extend(std::iter::repeat_n(b'=', tie));
                key.extend(random_bytes(0..=3, rng));
                key
            }
            KeyShape::Huge => {
                let len = [KEY_BYTES_MAX, KEY_BYTES_MAX - 1, 40_000, 4_096, 4_095];
                let mut key = vec![b'h'; len[rng.random_range(0..len.len())]];
                let end = key.len() - 1;
                let differs = [0, end / 2, end][rng.random_range(0..3)];
                key[differs] = rng.random();
                key
            }
            KeyShape::Mixed => {
                let shapes = [
                    KeyShape::DenseInts,
                    KeyShape::RandomBytes,
                    KeyShape::SharedPrefix,
                    KeyShape::Nested,
                    KeyShape::Extremes,
                    KeyShape::Ties,
                ];
                shapes[rng.random_range(0..shapes.len())].key(index, fixed, rng)
            }
        }
    }
}

/// A key beside `key` that is likely absent: its neighbours in byte order and its near relatives.
pub fn near(key: &[u8], rng: &mut Rng) -> Bytes {
    let mut near = key.to_vec();
    let last = near.len() - 1;
    match rng.random_range(0..4) {
        0 if near.len() < KEY_BYTES_MAX => near.push(0),
        1 if last > 0 => near.truncate(last),
        2 => near[last] = near[last].wrapping_add(1),
        _ => near[last] = near[last].wrapping_sub(1),
    }
    near.into()
}

/// The common form of the keys of one stream.
struct Fixed {
    long_prefix: Vec<u8>,
    group_prefixes: [Vec<u8>; 3],
}

impl Fixed {
    fn new(rng: &mut Rng) -> Self {
        Fixed {
            long_prefix: random_bytes(40..=300, rng),
            group_prefixes: std::array::from_fn(|_| random_bytes(1..=20, rng)),
        }
    }
}

fn random_bytes(len: std::ops::RangeInclusive<usize>, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; rng.random_range(len)];
    rng.fill_bytes(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_gives_distinct_ascending_keys_within_bounds_and_repeats_itself() {
        for shape in KeyShape::ALL {
            let count = if shape == KeyShape::Huge { 12 } else { 100 };
            let keys = shape.keys(count, &mut crate::rng(1));
            assert!(keys.is_sorted_by(|a, b| a < b), "{shape:?}");
            assert!(keys.len() * 2 > count, "{shape:?}: {}", keys.len());
            let within = |key: &Bytes| (1..=KEY_BYTES_MAX).contains(&key.len());
            assert!(keys.iter().all(within), "{shape:?}");
            assert_eq!(keys, shape.keys(count, &mut crate::rng(1)), "{shape:?}");
            assert_ne!((shape, &keys), (shape, &shape.keys(count / 2, &mut crate::rng(2))));
        }
    }

    #[test]
    fn ties_agree_past_an_abbreviation_and_nested_keys_hold_prefixes_of_each_other() {
        let ties = KeyShape::Ties.keys(60, &mut crate::rng(3));
        let tied = |pair: &&[Bytes]| {
            let agree = pair[0].iter().zip(&*pair[1]).take_while(|(a, b)| a == b);
            agree.count() >= 9
        };
        assert!(ties.windows(2).filter(tied).count() > 20);
        let nested = KeyShape::Nested.keys(60, &mut crate::rng(3));
        let prefixes = nested.windows(2).filter(|w| w[1].starts_with(&w[0]));
        assert!(prefixes.count() > 20);
    }

    #[test]
    fn near_keys_differ_and_stay_within_bounds() {
        let mut rng = crate::rng(5);
        for key in [&b"a"[..], b"\0", b"\xff\xff", &[7; KEY_BYTES_MAX]] {
            for _ in 0..50 {
                let near = near(key, &mut rng);
                assert!(*near != *key && (1..=KEY_BYTES_MAX).contains(&near.len()));
            }
        }
    }
}
