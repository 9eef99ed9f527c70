//! Descending components: the bytes of the ascending one, each inverted.
//!
//! No encoding is a prefix of another of its type, so that two that differ do so in a byte that both have: inverted, that
//! byte decides the other way.

use std::cmp::Reverse;

use super::{DecodeError, Decoder, KeyDecode, KeyEncode};

impl<K: KeyEncode> KeyEncode for Reverse<K> {
    fn encode_to(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        self.0.encode_to(out);
        out[begin..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

impl<K: KeyDecode> KeyDecode for Reverse<K> {
    fn decode_from(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let ascending: Vec<u8> = decoder.rest().iter().map(|byte| !byte).collect();
        let mut inner = Decoder::new(&ascending);
        let offset = |error: DecodeError| decoder.error_behind(error);
        let value = K::decode_from(&mut inner).map_err(offset)?;
        decoder.skip(ascending.len() - inner.rest().len());
        Ok(Reverse(value))
    }
}
