//! Levels of durability; keys and values.

use crate::harness::*;

/// The failure that a change outlives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// Nothing: the table ends with the process
    Memory,
    /// The end of the process; nothing is synced
    Buffered,
    /// The end of the process, and power loss after a tenth of a second (of Redis: a second)
    Async,
    /// Power loss: a change waits for the disk
    Sync,
}

/// Keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Data {
    /// Keys and values of 8 bytes
    Small,
    /// Keys of 100 bytes, values of 1,000
    Large,
}

impl Data {
    pub(crate) fn name(self) -> &'static str {
        if self == Data::Small { "8 B" } else { "1 KB" }
    }

    /// The name in JSON lines.
    pub(crate) fn title(self) -> &'static str {
        if self == Data::Small { "8+8 B" } else { "100+1000 B" }
    }

    /// Bytes of a key and of a value.
    pub fn lengths(self) -> [usize; 2] {
        if self == Data::Small { [8, 8] } else { [100, 1000] }
    }
}

/// Bytes of one entry, made of numbers.
///
/// The first 8 bytes of a key are its number, mixed; the others are the same in all keys. A value's
/// first and last 8 bytes are its stamp: its key's number, mixed, and the low bits of a draw. So a
/// value under another key is seen, and one that was torn.
#[derive(Debug, Clone)]
pub(crate) struct StampedEntry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

const DRAW_BITS: u32 = 16;

impl StampedEntry {
    pub(crate) fn new(data: Data) -> StampedEntry {
        let [key, value] = data.lengths();
        StampedEntry { key: vec![b'k'; key], value: vec![b'v'; value] }
    }

    pub(crate) fn of(data: Data, number: u32, draw: u64) -> StampedEntry {
        let mut entry = StampedEntry::new(data);
        entry.set(number, draw);
        entry
    }

    #[inline]
    pub(crate) fn set(&mut self, number: u32, draw: u64) {
        let mixed = mix(number);
        self.key[..8].copy_from_slice(&mixed.to_be_bytes());
        let stamp = (mixed >> DRAW_BITS << DRAW_BITS) | (draw & ((1 << DRAW_BITS) - 1));
        let stamp = stamp.to_le_bytes();
        let last = self.value.len() - 8;
        self.value[..8].copy_from_slice(&stamp);
        self.value[last..].copy_from_slice(&stamp);
    }

    /// True if a value is one that the key may have.
    pub(crate) fn may_have(&self, value: &[u8]) -> bool {
        let (Some(first), Some(last)) = (value.first_chunk::<8>(), value.last_chunk::<8>()) else {
            return false;
        };
        let number = |stamp: &[u8]| stamp[DRAW_BITS as usize / 8..] == *self.number();
        value.len() == self.value.len() && first == last && number(first)
    }

    fn number(&self) -> &[u8] {
        &self.value[DRAW_BITS as usize / 8..8]
    }
}

/// A number, one to one, and never 0.
fn mix(number: u32) -> u64 {
    scrambled(u64::from(number).wrapping_mul(STEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_that_of_its_key_alone_and_whole() {
        for &data in Data::value_variants() {
            let [one, other] = [3, 4].map(|number| StampedEntry::of(data, number, 0));
            assert_ne!(one.key, other.key);
            assert!(one.may_have(&StampedEntry::of(data, 3, 77).value), "of another draw");
            assert!(!one.may_have(&other.value), "of another key");
            assert!(!one.may_have(&one.value[1..]), "too short");
        }
        let [first, last] = [1, 2].map(|draw| StampedEntry::of(Data::Large, 3, draw).value);
        let torn = [&first[..500], &last[500..]].concat();
        assert!(!StampedEntry::of(Data::Large, 3, 0).may_have(&torn));
    }
}
