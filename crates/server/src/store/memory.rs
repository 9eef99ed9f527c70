//! The memory of tables: what they have taken from the system, and what of that is in use.
//!
//! The rest is what removed and superseded entries have left. It counts as room: entries are written
//! there, or a timer gives it back (`tidying`).

use std::iter::Sum;
use std::ops::Add;

use sapwood::{HashStats, OrderedStats};

/// Bytes of memory of some tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Taken from the system.
    pub(crate) reserved: u64,
    /// Bytes of these in entries, indexes and what both need.
    pub(crate) used: u64,
}

impl Memory {
    /// All of it is in use, as far as is known.
    pub(crate) fn all_used(reserved: u64) -> Memory {
        Memory { reserved, used: reserved }
    }

    pub(crate) fn of_hash(stats: &HashStats) -> Memory {
        let Stretch { log, garbage } = Stretch::of(stats);
        // A log that lies on the disk in part has its garbage there, too.
        let in_memory = stats.log_bytes.min(log);
        let left = match log {
            0 => 0,
            log => (u128::from(garbage) * u128::from(in_memory) / u128::from(log)) as u64,
        };
        Memory { reserved: stats.reserved_bytes, used: stats.reserved_bytes - left }
    }

    pub(crate) fn of_ordered(stats: &OrderedStats) -> Memory {
        let left = stats.free_bytes + stats.retired_bytes;
        let used = stats.reserved_bytes.saturating_sub(left);
        Memory { reserved: stats.reserved_bytes, used }
    }
}

impl Add for Memory {
    type Output = Memory;

    fn add(self, other: Memory) -> Memory {
        Memory { reserved: self.reserved + other.reserved, used: self.used + other.used }
    }
}

impl Sum for Memory {
    fn sum<I: Iterator<Item = Memory>>(all: I) -> Memory {
        all.fold(Memory::default(), Memory::add)
    }
}

/// The log of a hash table from its oldest record to its newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Bytes of it.
    pub(crate) log: u64,
    /// Bytes of these in records that are superseded or removed, by the table's count.
    pub(crate) garbage: u64,
}

impl Stretch {
    pub(crate) fn of(stats: &HashStats) -> Stretch {
        let log = stats.tail.saturating_sub(stats.begin);
        Stretch { log, garbage: stats.garbage_bytes.min(log) }
    }
}

#[cfg(test)]
mod tests {
    use sapwood::{Db, HashTableOptions, OrderedTableOptions};

    use super::*;

    #[test]
    fn what_removed_entries_have_left_is_not_in_use() {
        let db = Db::in_memory();
        let hash = db.create_hash_table("hash", HashTableOptions::default()).expect("memory");
        let ordered =
            db.create_ordered_table("ordered", OrderedTableOptions::default()).expect("memory");
        let keys = || (0..2_000_u64).map(u64::to_be_bytes);
        for key in keys() {
            hash.put(key, [1; 1_000]).expect("memory");
            ordered.put(key, [1; 1_000]).expect("memory");
        }
        let full = [Memory::of_hash(&hash.stats()), Memory::of_ordered(&ordered.stats())];
        for memory in full {
            assert!((2_000_000..=memory.reserved).contains(&memory.used), "{memory:?}");
        }
        for key in keys().skip(20) {
            hash.remove(key).expect("memory");
            ordered.remove(key).expect("memory");
        }
        for (left, full) in
            [Memory::of_hash(&hash.stats()), Memory::of_ordered(&ordered.stats())].iter().zip(full)
        {
            assert!(left.used < full.used / 2, "{left:?} of {full:?}");
        }
    }
}
