//! Text and byte strings: escaped, and ended by a mark that sorts before any continuation.
//!
//! ```text
//! "a"    61 00 01          a zero byte inside becomes 00 FF, the end is 00 01:
//! "a\0b" 61 00 FF 62 00 01 "a" sorts before "a\0b" because 01 < FF,
//! "ab"   61 62 00 01       and before "ab" because 00 < 62
//! ```

use super::{DecodeError, Decoder, KeyDecode, KeyEncode};

/// Begins both an escape and the end mark.
const ESCAPE: u8 = 0x00;
/// After `ESCAPE`: the byte 0x00 stood here. Stored: do not renumber.
const ZERO: u8 = 0xFF;
/// After `ESCAPE`: the string ends here. Stored: do not renumber.
const END: u8 = 0x01;
// The end must sort before an escaped zero.
const _: () = assert!(END < ZERO);

/// Appends `bytes` with zero bytes escaped, without the end mark.
pub(super) fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for run in bytes.split_inclusive(|&byte| byte == ESCAPE) {
        out.extend_from_slice(run);
        if run.last() == Some(&ESCAPE) {
            out.push(ZERO);
        }
    }
}

fn unescape(decoder: &mut Decoder<'_>) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::new();
    loop {
        let [byte] = decoder.take()?;
        if byte != ESCAPE {
            out.push(byte);
            continue;
        }
        match decoder.rest().first() {
            Some(&ZERO) => out.push(0),
            Some(&END) => {
                decoder.take::<1>()?;
                return Ok(out);
            }
            Some(other) => {
                return Err(decoder.error(format!(
                    "0x01 or 0xff expected after a zero byte, found {other:#04x}"
                )));
            }
            None => return Err(decoder.error("1 byte expected, 0 left")),
        }
        decoder.take::<1>()?;
    }
}

impl KeyEncode for [u8] {
    fn encode_to(&self, out: &mut Vec<u8>) {
        escape(self, out);
        out.extend_from_slice(&[ESCAPE, END]);
    }
}

impl KeyEncode for Vec<u8> {
    fn encode_to(&self, out: &mut Vec<u8>) {
        self.as_slice().encode_to(out);
    }
}

impl KeyDecode for Vec<u8> {
    fn decode_from(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        unescape(decoder)
    }
}

impl KeyEncode for str {
    fn encode_to(&self, out: &mut Vec<u8>) {
        self.as_bytes().encode_to(out);
    }
}

impl KeyEncode for String {
    fn encode_to(&self, out: &mut Vec<u8>) {
        self.as_str().encode_to(out);
    }
}

impl KeyDecode for String {
    fn decode_from(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        // The error points at the text, so it is made before the text is taken.
        let not_text = decoder.error("the text is not UTF-8");
        String::from_utf8(unescape(decoder)?).map_err(|_| not_text)
    }
}
