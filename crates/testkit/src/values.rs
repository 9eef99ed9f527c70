//! Values, in sizes that have broken allocators before.

use crate::{Bytes, Rng};
use rand::{Rng as _, RngExt as _};

/// A family of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueShape {
    /// No bytes at all.
    Empty,
    /// 0 to 16 bytes.
    Small,
    /// 900 to 1,100 bytes.
    Kilobyte,
    /// Sizes drift up to 6 KB over the first half of a stream and down again over the second.
    Drift,
    /// Powers of two up to 16 KiB, one less and one more: the edges of size classes.
    Edges,
    /// Mostly small, a few of up to 3 MiB.
    FewLarge,
    /// Some of each but the large ones.
    Mixed,
}

impl ValueShape {
    /// Every shape, the nastiest first.
    pub const ALL: [ValueShape; 7] = [
        ValueShape::Edges,
        ValueShape::Drift,
        ValueShape::Mixed,
        ValueShape::FewLarge,
        ValueShape::Small,
        ValueShape::Empty,
        ValueShape::Kilobyte,
    ];

    /// A value for a stream that is `progress` (0.0 to 1.0) of its way through.
    pub fn value(self, progress: f64, rng: &mut Rng) -> Bytes {
        filled(self.len(progress, rng), rng)
    }

    /// A length for a stream that is `progress` (0.0 to 1.0) of its way through.
    pub fn len(self, progress: f64, rng: &mut Rng) -> usize {
        match self {
            ValueShape::Empty => 0,
            ValueShape::Small => rng.random_range(0..=16),
            ValueShape::Kilobyte => rng.random_range(900..=1_100),
            ValueShape::Drift => {
                let height = 1.0 - (2.0 * progress - 1.0).abs();
                (height * 6_000.0) as usize + rng.random_range(0..=64)
            }
            ValueShape::Edges => (1 << rng.random_range(0..=14)) - 1 + rng.random_range(0..=2),
            ValueShape::FewLarge if rng.random_ratio(1, 64) => rng.random_range(0..=3 << 20),
            ValueShape::FewLarge => rng.random_range(0..=100),
            ValueShape::Mixed => {
                let shapes = [
                    ValueShape::Empty,
                    ValueShape::Small,
                    ValueShape::Kilobyte,
                    ValueShape::Drift,
                    ValueShape::Edges,
                ];
                shapes[rng.random_range(0..shapes.len())].len(progress, rng)
            }
        }
    }
}

/// `len` bytes that tell where they belong: a misplaced piece of them shows.
fn filled(len: usize, rng: &mut Rng) -> Bytes {
    let mut bytes = vec![0; len];
    let random_len = len.min(64);
    rng.fill_bytes(&mut bytes[..random_len]);
    let salt = bytes.first().copied().unwrap_or(0);
    for (index, byte) in bytes.iter_mut().enumerate().skip(random_len) {
        *byte = salt ^ (index as u8) ^ ((index >> 8) as u8).rotate_left(3);
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_keep_to_their_sizes_and_repeat_themselves() {
        let sizes = |shape: ValueShape, progress| {
            let mut rng = crate::rng(9);
            let mut size = || shape.value(progress, &mut rng).len();
            let sizes: Vec<usize> = (0..200).map(|_| size()).collect();
            (*sizes.iter().min().expect("200"), *sizes.iter().max().expect("200"))
        };
        assert_eq!(sizes(ValueShape::Empty, 0.5), (0, 0));
        assert_eq!(sizes(ValueShape::Small, 0.5), (0, 16));
        assert!(sizes(ValueShape::Drift, 0.5).0 >= 6_000);
        assert!(sizes(ValueShape::Drift, 0.0).1 <= 64);
        assert!(sizes(ValueShape::Drift, 1.0).1 <= 64);
        assert!(sizes(ValueShape::Edges, 0.5).1 >= 16 << 10);
        assert!(sizes(ValueShape::FewLarge, 0.5).1 > 100 << 10);
        for shape in ValueShape::ALL {
            assert_eq!(sizes(shape, 0.3), sizes(shape, 0.3));
        }
    }
}
