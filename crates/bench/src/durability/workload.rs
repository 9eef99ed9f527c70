//! The timed operations; keys and values.

use crate::figures::{Timed, Unit};

/// What a change outlives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// Nothing: the table ends with the process
    Memory,
    /// The end of the process; nothing is synced
    Buffered,
    /// As buffered, and power loss after a tenth of a second (of Redis: a second)
    Async,
    /// Power loss: a change waits for the disk
    Sync,
}

impl Level {
    pub(crate) const ALL: [Level; 4] = [Level::Memory, Level::Buffered, Level::Async, Level::Sync];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Level::Memory => "memory",
            Level::Buffered => "buffered",
            Level::Async => "async",
            Level::Sync => "sync",
        }
    }
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
    pub(crate) const ALL: [Data; 2] = [Data::Small, Data::Large];

    /// As tables show it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Data::Small => "8 B",
            Data::Large => "1 KB",
        }
    }

    /// Bytes of a key and of a value.
    pub fn lengths(self) -> [usize; 2] {
        match self {
            Data::Small => [8, 8],
            Data::Large => [100, 1000],
        }
    }
}

/// Puts to keys that are there, at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) data: Data,
    pub(crate) level: Level,
}

impl Timed for Workload {
    fn name(self) -> String {
        format!("put {}, {}", self.data.name(), self.level.name())
    }

    fn unit(self) -> Unit {
        Unit::Operations
    }
}

/// Bytes of one entry, made of numbers.
///
/// The first 8 bytes of a key are its number, mixed; the others are the same in all keys. A value's
/// first and last 8 bytes are its stamp: its key's number, mixed, and the low bits of a draw. So a
/// value under another key is seen, and one that was torn.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// Bits of a stamp that a draw gives.
const DRAW_BITS: u32 = 16;

impl Entry {
    pub(crate) fn new(data: Data) -> Entry {
        let [key, value] = data.lengths();
        Entry { key: vec![b'k'; key], value: vec![b'v'; value] }
    }

    /// That of a number, with the value of a draw.
    pub(crate) fn of(data: Data, number: u32, draw: u64) -> Entry {
        let mut entry = Entry::new(data);
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

    /// Whether a value is one that the key may have.
    pub(crate) fn may_have(&self, value: &[u8]) -> bool {
        let (Some(first), Some(last)) = (value.first_chunk::<8>(), value.last_chunk::<8>()) else {
            return false;
        };
        let number = |stamp: &[u8]| stamp[DRAW_BITS as usize / 8..] == *self.number();
        value.len() == self.value.len() && first == last && number(first)
    }

    /// The stamp of its own value, without the draw.
    fn number(&self) -> &[u8] {
        &self.value[DRAW_BITS as usize / 8..8]
    }
}

/// A number, one to one: the finalizer of SplitMix64, with another first constant for 0's sake.
fn mix(number: u32) -> u64 {
    let mut mixed = (u64::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_that_of_its_key_alone_and_whole() {
        for data in Data::ALL {
            let [one, other] = [3, 4].map(|number| Entry::of(data, number, 0));
            assert_ne!(one.key, other.key);
            assert!(one.may_have(&Entry::of(data, 3, 77).value), "of another draw");
            assert!(!one.may_have(&other.value), "of another key");
            assert!(!one.may_have(&one.value[1..]), "too short");
        }
        let [first, last] = [1, 2].map(|draw| Entry::of(Data::Large, 3, draw).value);
        let torn = [&first[..500], &last[500..]].concat();
        assert!(!Entry::of(Data::Large, 3, 0).may_have(&torn));
    }
}
