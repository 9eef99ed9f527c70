//! Passwords: their hashes, and a comparison whose time tells nothing.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// Bytes of a hash.
const HASH_BYTES: usize = 32;

/// The SHA-256 of a password. Its text for debugging hides it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash([u8; HASH_BYTES]);

impl Hash {
    /// The hash of no password that is in use.
    pub(crate) const NONE: Hash = Hash([0; HASH_BYTES]);

    /// The hash of a password.
    pub(crate) fn of(password: &[u8]) -> Hash {
        Hash(Sha256::digest(password).into())
    }

    /// A hash of 64 hexadecimal digits, of which letters are small.
    pub(crate) fn from_hex(text: &[u8]) -> Option<Hash> {
        let mut bytes = [0; HASH_BYTES];
        if text.len() != 2 * HASH_BYTES {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(digits[0])? << 4 | digit(digits[1])?;
        }
        Some(Hash(bytes))
    }

    /// The hash in hexadecimal digits.
    pub(crate) fn to_hex(self) -> String {
        hex(&self.0)
    }

    /// Whether two hashes are the same. The time that it takes depends on neither.
    pub(crate) fn is(&self, other: &Hash) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(hidden)")
    }
}

/// A password that a program hands over. Its text for debugging hides it.
///
/// ```
/// use sapwood_server::acl::Secret;
///
/// assert_eq!(format!("{:?}", Secret::from("correct horse")), "Secret(hidden)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

impl Secret {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(password: &str) -> Secret {
        Secret(password.as_bytes().into())
    }
}

impl From<&[u8]> for Secret {
    fn from(password: &[u8]) -> Secret {
        Secret(password.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_as_they_are_written() {
        let hash = Hash::of(b"passwd4");
        let text = "34344e4d60c2b6d639b7bd22e18f2b0b91bc34bf0ac5f9952744435093cfb4e6";
        assert_eq!(hash.to_hex(), text);
        assert_eq!(Hash::from_hex(text.as_bytes()), Some(hash));
        for wrong in [&text[1..], &text.to_uppercase(), &text.replace('3', "g"), ""] {
            assert_eq!(Hash::from_hex(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn only_the_same_hash_is_the_same() {
        let hash = Hash::of(b"one");
        assert!(bool::from(hash.is(&Hash::of(b"one"))));
        assert!(!bool::from(hash.is(&Hash::of(b"two"))));
        assert!(!bool::from(hash.is(&Hash::NONE)));
    }

    #[test]
    fn texts_for_debugging_hide_both() {
        let hash = Hash::of(b"one");
        assert!(!format!("{hash:?}").contains(&hash.to_hex()[..8]));
        assert!(!format!("{:?}", Secret::from("one")).contains("one"));
    }
}
