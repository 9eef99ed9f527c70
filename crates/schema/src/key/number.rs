//! Integers, floats, booleans and options: fixed layouts, most significant byte first.

use super::{DecodeError, Decoder, KeyDecode, KeyEncode};

macro_rules! unsigned {
    ($($int:ty)*) => {$(
        impl KeyEncode for $int {
            fn encode_to(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
        impl KeyDecode for $int {
            fn decode_from(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                Ok(<$int>::from_be_bytes(decoder.take()?))
            }
        }
    )*};
}
unsigned!(u8 u16 u32 u64 u128);

// Flipping the sign bit moves MIN..=MAX onto 0..=unsigned MAX without changing the order.
macro_rules! signed {
    ($($int:ty as $bits:ty)*) => {$(
        impl KeyEncode for $int {
            fn encode_to(&self, out: &mut Vec<u8>) {
                (*self ^ <$int>::MIN).cast_unsigned().encode_to(out);
            }
        }
        impl KeyDecode for $int {
            fn decode_from(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                Ok(<$bits>::decode_from(decoder)?.cast_signed() ^ <$int>::MIN)
            }
        }
    )*};
}
signed!(i8 as u8 i16 as u16 i32 as u32 i64 as u64 i128 as u128);

// IEEE 754 orders floats of one sign as their bits; negative ones run the other way. So a
// negative float has all its bits flipped and a positive one its sign bit: the total order.
macro_rules! float {
    ($($float:ty as $bits:ty)*) => {$(
        impl KeyEncode for $float {
            fn encode_to(&self, out: &mut Vec<u8>) {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = self.to_bits();
                (if bits & SIGN == 0 { bits | SIGN } else { !bits }).encode_to(out);
            }
        }
        impl KeyDecode for $float {
            fn decode_from(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = <$bits>::decode_from(decoder)?;
                Ok(Self::from_bits(if bits & SIGN == 0 { !bits } else { bits ^ SIGN }))
            }
        }
    )*};
}
float!(f32 as u32 f64 as u64);

impl KeyEncode for bool {
    fn encode_to(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl KeyDecode for bool {
    fn decode_from(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        match decoder.rest().first() {
            Some(0 | 1) => Ok(decoder.take::<1>()? == [1]),
            Some(other) => Err(decoder.error(format!("0 or 1 expected, found {other:#04x}"))),
            None => Err(decoder.error("1 byte expected, 0 left")),
        }
    }
}

/// Marks of an option; stored: do not renumber.
const NONE: u8 = 1;
const SOME: u8 = 2;

/// `None` sorts before every `Some`.
impl<K: KeyEncode> KeyEncode for Option<K> {
    fn encode_to(&self, out: &mut Vec<u8>) {
        match self {
            None => out.push(NONE),
            Some(key) => {
                out.push(SOME);
                key.encode_to(out);
            }
        }
    }
}

impl<K: KeyDecode> KeyDecode for Option<K> {
    fn decode_from(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        match decoder.rest().first() {
            Some(&NONE) => {
                decoder.take::<1>()?;
                Ok(None)
            }
            Some(&SOME) => {
                decoder.take::<1>()?;
                K::decode_from(decoder).map(Some)
            }
            Some(other) => Err(decoder.error(format!("1 or 2 expected, found {other:#04x}"))),
            None => Err(decoder.error("1 byte expected, 0 left")),
        }
    }
}
