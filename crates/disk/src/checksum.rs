//! CRC-32: whether bytes are the ones that were written.

/// CRC-32 (ISO-HDLC, as in gzip) of `bytes`.
///
/// It finds every burst of up to 32 wrong bits and misses one in 2^32 of all other damage. It
/// proves nothing against deception.
///
/// In a build for a fuzzer it is always zero: else hardly anything that a fuzzer makes up would be
/// read any further.
pub fn checksum(bytes: &[u8]) -> u32 {
    if cfg!(fuzzing) {
        return 0;
    }
    crc32fast::hash(bytes)
}

/// The same of several pieces, one behind the other.
pub(crate) fn checksum_of(pieces: &[&[u8]]) -> u32 {
    if cfg!(fuzzing) {
        return 0;
    }
    let mut hasher = crc32fast::Hasher::new();
    for piece in pieces {
        hasher.update(piece);
    }
    hasher.finalize()
}

/// Checksums of bytes behind a beginning that all of them share.
#[derive(Debug, Clone)]
pub(crate) struct Behind(crc32fast::Hasher);

impl Behind {
    pub(crate) fn new(beginning: &[u8]) -> Behind {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(beginning);
        Behind(hasher)
    }

    /// The checksum of the beginning and these bytes.
    #[inline]
    pub(crate) fn checksum(&self, bytes: &[u8]) -> u32 {
        if cfg!(fuzzing) {
            return 0;
        }
        let mut hasher = self.0.clone();
        hasher.update(bytes);
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(super::checksum(b"123456789"), 0xcbf4_3926);
        assert_eq!(super::checksum(b""), 0);
    }

    #[test]
    fn a_checksum_is_the_same_in_one_piece_and_in_several() {
        let whole = super::checksum(b"acorn, oak");
        assert_eq!(super::checksum_of(&[b"acorn", b", ", b"oak"]), whole);
        let behind = super::Behind::new(b"acorn");
        assert_eq!(behind.checksum(b", oak"), whole);
        assert_eq!(behind.checksum(b""), super::checksum(b"acorn"));
    }
}
