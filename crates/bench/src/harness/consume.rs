//! One way to look at every byte, so that no engine wins by not looking.

/// Sums all bytes: little-endian 64-bit words, then the tail one byte at a time.
#[inline]
pub(crate) fn consume(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let mut sum = 0u64;
    for word in words {
        sum = sum.wrapping_add(u64::from_le_bytes(*word));
    }
    for byte in tail {
        sum = sum.wrapping_add(u64::from(*byte));
    }
    sum
}

/// Adds one to the first 8 bytes of a value.
#[inline]
pub(crate) fn increment(value: &mut [u8]) {
    let head = value.first_chunk_mut::<8>().expect("values have at least 8 bytes");
    *head = u64::from_le_bytes(*head).wrapping_add(1).to_le_bytes();
}

#[cfg(test)]
mod tests {
    use super::consume;

    #[test]
    fn every_byte_counts() {
        for len in 0..40 {
            let bytes = vec![0u8; len];
            let zero = consume(&bytes);
            for at in 0..len {
                let mut changed = bytes.clone();
                changed[at] = 7;
                assert_ne!(consume(&changed), zero, "byte {at} of {len} was not read");
            }
        }
    }
}
