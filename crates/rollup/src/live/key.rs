//! Keys of facts: the time, then the dimensions.
//!
//! | part | bytes |
//! |---|---|
//! | time | 6, big endian, milliseconds since year 0 |
//! | row number, without roll-up alone | as a long |
//! | null | `00` |
//! | number of a text up to 247 | 1: the number |
//! | number of a text beyond | `f8` + (n - 1), then the number less 248 in n bytes, big endian |
//! | long from 0 | `80` + n, then n bytes, big endian |
//! | long below 0 | `7f` - n, then n bytes of its two's complement, big endian |
//! | double | `01`, then 8 bytes whose order is that of numbers |
//!
//! Nulls at the end are left out: so a dimension that appears while rows come in leaves the keys of older
//! facts as they are. The order of keys is that of times, then of the parts.

use crate::time::TIME_MIN;
use crate::value::canonical;

/// Bytes of the time.
pub(crate) const TIME_BYTES: usize = 6;

const WIDE_ID: u32 = 248;

pub(crate) fn push_time(key: &mut Vec<u8>, time: i64) {
    let since = (time - TIME_MIN).cast_unsigned();
    key.extend_from_slice(&since.to_be_bytes()[2..]);
}

/// The least key of a time; where the time is beyond what keys have, one above all of them.
pub(crate) fn time_bound(time: i64) -> Vec<u8> {
    let since = (time - TIME_MIN).max(0).cast_unsigned();
    if since >> 48 != 0 {
        return vec![0xFF; TIME_BYTES + 1];
    }
    since.to_be_bytes()[2..].to_vec()
}

#[inline]
pub(crate) fn push_null(key: &mut Vec<u8>) {
    key.push(0);
}

/// Appends the number of a text, or 0 for null.
#[inline]
pub(crate) fn push_id(key: &mut Vec<u8>, id: u32) {
    if id < WIDE_ID {
        key.push(id as u8);
        return;
    }
    let bytes = (id - WIDE_ID).to_be_bytes();
    let skipped = bytes.iter().take(3).take_while(|byte| **byte == 0).count();
    key.push(0xF8 + (3 - skipped) as u8);
    key.extend_from_slice(&bytes[skipped..]);
}

#[inline]
pub(crate) fn push_long(key: &mut Vec<u8>, value: i64) {
    let bytes = value.to_be_bytes();
    let filler = if value < 0 { 0xFF } else { 0 };
    let skipped = bytes.iter().take_while(|byte| **byte == filler).count();
    let len = (8 - skipped) as u8;
    key.push(if value < 0 { 0x7F - len } else { 0x80 + len });
    key.extend_from_slice(&bytes[skipped..]);
}

#[inline]
pub(crate) fn push_double(key: &mut Vec<u8>, value: f64) {
    let bits = canonical(value).to_bits();
    let sortable = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
    key.push(1);
    key.extend_from_slice(&sortable.to_be_bytes());
}

/// Takes the parts off a key, in their order.
///
/// # Panics
/// Where the key is none that the functions above wrote for the same dimensions.
#[derive(Debug)]
pub(crate) struct Parts<'k>(&'k [u8]);

impl<'k> Parts<'k> {
    /// The time of the key, and its other parts.
    #[inline]
    pub(crate) fn new(key: &'k [u8]) -> (i64, Parts<'k>) {
        let (time, rest) = key.split_at(TIME_BYTES);
        let mut bytes = [0; 8];
        bytes[2..].copy_from_slice(time);
        (u64::from_be_bytes(bytes).cast_signed() + TIME_MIN, Parts(rest))
    }

    #[inline]
    fn take(&mut self, len: usize) -> &'k [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    /// The lead byte; 0 behind the end of the key.
    #[inline]
    fn lead(&mut self) -> u8 {
        match self.0 {
            [] => 0,
            [lead, rest @ ..] => {
                self.0 = rest;
                *lead
            }
        }
    }

    #[inline]
    pub(crate) fn id(&mut self) -> u32 {
        let lead = self.lead();
        if lead < WIDE_ID as u8 {
            return lead.into();
        }
        let number = self.take(usize::from(lead - 0xF8) + 1);
        number.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)) + WIDE_ID
    }

    #[inline]
    pub(crate) fn long(&mut self) -> Option<i64> {
        let lead = self.lead();
        let (len, filler) = match lead {
            0 => return None,
            lead if lead < 0x80 => (0x7F - lead, -1_i64),
            lead => (lead - 0x80, 0),
        };
        let bytes = self.take(len.into());
        Some(bytes.iter().fold(filler, |value, byte| value << 8 | i64::from(*byte)))
    }

    #[inline]
    pub(crate) fn double(&mut self) -> Option<f64> {
        if self.lead() == 0 {
            return None;
        }
        let sortable = u64::from_be_bytes(self.take(8).try_into().expect("8 bytes were taken"));
        let bits = if sortable >> 63 == 1 { sortable & !(1 << 63) } else { !sortable };
        Some(f64::from_bits(bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::TIME_END;

    fn in_order<T: Copy + std::fmt::Debug>(
        ascending: &[T],
        push: impl Fn(&mut Vec<u8>, T),
        read: impl Fn(&mut Parts<'_>) -> T,
        equal: impl Fn(T, T) -> bool,
    ) {
        let mut last = Vec::new();
        for &value in ascending {
            let mut key = Vec::new();
            push_time(&mut key, 0);
            push(&mut key, value);
            push_id(&mut key, 77);
            assert!(key > last, "{value:?}");
            let (time, mut parts) = Parts::new(&key);
            assert!(time == 0 && equal(read(&mut parts), value), "{value:?}");
            assert_eq!((parts.id(), parts.id(), parts.long()), (77, 0, None));
            last = key;
        }
    }

    #[test]
    fn parts_are_read_back_and_have_the_order_of_their_values() {
        let ids = [0, 1, 247, 248, 503, 504, 65_783, 65_784, 1 << 24, u32::MAX];
        in_order(&ids, push_id, |parts| parts.id(), |left, right| left == right);
        let longs =
            [i64::MIN, -65_537, -257, -256, -255, -2, -1, 0, 1, 255, 256, 1 << 40, i64::MAX];
        in_order(&longs, push_long, |parts| parts.long().expect("not null"), |l, r| l == r);
        let doubles = [f64::MIN, -1.5, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.5, f64::MAX];
        in_order(&doubles, push_double, |parts| parts.double().expect("not null"), |l, r| l == r);
        let mut null = Vec::new();
        push_time(&mut null, 0);
        push_null(&mut null);
        let mut least = Vec::new();
        push_time(&mut least, 0);
        push_long(&mut least, i64::MIN);
        assert!(null < least);
    }

    #[test]
    fn times_bound_the_keys_that_have_them() {
        let mut last = Vec::new();
        for time in [TIME_MIN, -1, 0, 1, TIME_END - 1] {
            let mut key = Vec::new();
            push_time(&mut key, time);
            assert!(key > last && key == time_bound(time) && Parts::new(&key).0 == time);
            last = key;
        }
        assert!(time_bound(TIME_END) > last && time_bound(TIME_MIN - 1) == time_bound(TIME_MIN));
    }
}
