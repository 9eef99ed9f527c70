//! Bytes as a person can read them: escaped, and cut when long.

use std::fmt;

/// Shows at most this many bytes of each end of a long byte string.
const SHOWN_BYTES: usize = 24;

/// Displays bytes as a literal; long ones as their two ends and their length.
pub struct Shown<'a>(pub &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        if bytes.len() <= 2 * SHOWN_BYTES {
            return write!(f, "b\"{}\"", bytes.escape_ascii());
        }
        let (begin, end) = (&bytes[..SHOWN_BYTES], &bytes[bytes.len() - SHOWN_BYTES..]);
        let (begin, end) = (begin.escape_ascii(), end.escape_ascii());
        write!(f, "b\"{begin} .. {end}\" ({} bytes)", bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Shown;

    #[test]
    fn short_bytes_are_whole_and_long_ones_keep_their_ends() {
        assert_eq!(Shown(b"a\0\xff").to_string(), "b\"a\\x00\\xff\"");
        let mut long = vec![b'a'; 1000];
        long[999] = b'z';
        let shown = Shown(&long).to_string();
        assert!(shown.ends_with("z\" (1000 bytes)"), "{shown}");
        assert!(shown.len() < 80, "{shown}");
    }
}
