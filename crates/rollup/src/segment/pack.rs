//! Whole numbers in as few bits as the widest of them needs, beyond the least.
//!
//! | part | bytes |
//! |---|---|
//! | least | 8 |
//! | bits of each number | 1: 0 to 56, or 64 |
//! | numbers, less the least | so many bits each, the first in the lowest bits |
//! | zeros | 7, where there are bits, so that any number can be read as 8 bytes |

use super::bytes::Reader;
use crate::error::Result;

/// Widths beyond this are 64: a number and the bits before it fit into 8 bytes.
const WIDTH_MAX: u32 = 56;

/// Bytes behind the numbers.
const PADDING: usize = 7;

/// Appends numbers.
pub(super) fn pack(out: &mut Vec<u8>, numbers: &[i64]) {
    let least = numbers.iter().copied().min().unwrap_or_default();
    let most = numbers.iter().copied().max().unwrap_or_default();
    let range = most.wrapping_sub(least).cast_unsigned();
    let width = match u64::BITS - range.leading_zeros() {
        width @ 0..=WIDTH_MAX => width,
        _ => u64::BITS,
    };
    out.extend_from_slice(&least.to_le_bytes());
    out.push(width as u8);
    let offsets = numbers.iter().map(|number| number.wrapping_sub(least).cast_unsigned());
    if width == 0 {
        return;
    }
    if width == u64::BITS {
        out.extend(offsets.flat_map(u64::to_le_bytes));
        return;
    }
    let (mut word, mut used) = (0_u128, 0);
    for offset in offsets {
        word |= u128::from(offset) << used;
        used += width;
        while used >= 8 {
            out.push(word as u8);
            word >>= 8;
            used -= 8;
        }
    }
    if used > 0 {
        out.push(word as u8);
    }
    out.extend_from_slice(&[0; PADDING]);
}

/// Takes numbers off a reader that [`pack`] wrote, and appends what they are made of.
#[inline]
pub(super) fn unpack<T>(
    reader: &mut Reader<'_>,
    count: usize,
    into: &mut Vec<T>,
    mut of: impl FnMut(i64) -> T,
) -> Result<()> {
    let least = reader.i64()?;
    let at = reader.clone();
    let width = usize::from(reader.u8()?);
    match width {
        0 => into.extend((0..count).map(|_| of(least))),
        64 => {
            let numbers = reader.u64s(count)?.iter();
            into.extend(numbers.map(|number| of(least.wrapping_add(i64::from_le_bytes(*number)))));
        }
        1..=56 => {
            let bytes = reader.take((count * width).div_ceil(8) + PADDING)?;
            let mask = (1_u64 << width) - 1;
            into.extend((0..count).map(|number| {
                let bit = number * width;
                let word = bytes[bit / 8..][..8].try_into().expect("8 bytes were taken");
                let offset = u64::from_le_bytes(word) >> (bit % 8) & mask;
                of(least.wrapping_add(offset.cast_signed()))
            }));
        }
        _ => return Err(at.corrupt(format!("numbers of {width} bits are not written"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(numbers: &[i64]) -> usize {
        let mut bytes = Vec::new();
        pack(&mut bytes, numbers);
        let mut read = Vec::new();
        let mut reader = Reader::new(&bytes, 0);
        unpack(&mut reader, numbers.len(), &mut read, |number| number).expect("as written");
        assert!(reader.rest().is_empty());
        assert_eq!(read, numbers);
        for cut in 0..bytes.len() {
            let reader = &mut Reader::new(&bytes[..cut], 0);
            assert!(unpack(reader, numbers.len(), &mut Vec::new(), |number| number).is_err());
        }
        bytes.len()
    }

    #[test]
    fn numbers_of_each_width_are_read_back() {
        assert_eq!(round(&[7; 1000]), 9);
        assert_eq!(round(&[-1, 0, 1, 2]), 9 + 1 + PADDING);
        assert_eq!(round(&[i64::MIN, i64::MAX, 0]), 9 + 24);
        let mut rng = fastrand::Rng::with_seed(1);
        for width in 0..64 {
            let numbers: Vec<i64> = (0..rng.usize(1..200))
                .map(|_| (rng.u64(..) & ((1 << width) - 1)).cast_signed() - 77)
                .collect();
            round(&numbers);
        }
        let reader = &mut Reader::new(&[0, 0, 0, 0, 0, 0, 0, 0, 60], 0);
        assert!(unpack(reader, 0, &mut Vec::new(), |number| number).is_err());
    }
}
