//! The read cache: records that were lately read from the disk, by their addresses.
//!
//! *For* a log that is larger than its memory and does not copy what it reads
//! ([`ColdReads::Stay`](crate::ColdReads)), of which some records are read more often than others. *Not
//! for* records that are found in memory, nor for walks, which read each record once.
//!
//! FASTER has a second log for that, whose addresses the index holds (Chandramouli et al., "FASTER: a
//! concurrent key-value store with in-place updates", SIGMOD 2018, and its read cache since). Here the
//! index knows nothing of it: a search that comes to an address on the disk asks here first. The oldest
//! records go, as new ones come; one that is found in the older half is written anew, so that what is
//! read often stays.
//!
//! *Thread safety*: a shard for each part of the addresses, behind a lock that is held for one copy of a
//! record, and under which no thread waits for anything. So a pinned thread may take it.
//!
//! # Invariants
//!
//! - I-IMMUTABLE: a record below `head` never changes, and a log gives each address to one record. So
//!   what is here is what the disk has, and nothing is ever taken out: a record that was superseded or
//!   compacted away is not asked for any more, and goes in its turn.
//! - I-LIVE: a slot tells of bytes that were not overwritten since, by the bytes that were ever written.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::options::Layout;
use crate::record::address::Address;

/// Slots in which an address may be.
const WAYS: usize = 8;
/// Bytes of a shard at least: threads seldom meet in one of as many as this leaves.
const SHARD_BYTES_MIN: usize = 64 << 10;
const SHARDS_MAX: usize = 64;
/// Bytes before a record.
const LEN_BYTES: usize = size_of::<u32>();

/// The cache. It has no memory before it is begun.
pub(crate) struct ReadCache {
    bytes: usize,
    /// Bytes of a record, by which slots are counted: of records of 128 bytes, half of the slots of a set
    /// are in use.
    record_bytes: usize,
    shards: OnceLock<Box<[Mutex<Shard>]>>,
}

struct Shard {
    /// Records one behind the other, each behind its length, round and round.
    ring: Box<[u8]>,
    /// Bytes that were ever written.
    written: u64,
    sets: Box<[[Slot; WAYS]]>,
}

#[derive(Clone, Copy)]
struct Slot {
    address: Address,
    /// Where it was written, in bytes that were ever written.
    at: u64,
}

/// The places of an address.
struct Spot {
    shard: usize,
    set: u32,
}

impl ReadCache {
    /// A cache of so many bytes; `None` where a record or two would not fit.
    pub(crate) fn new(bytes: u64, layout: Layout) -> Option<ReadCache> {
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes >= 1024)?;
        let record_bytes = match layout {
            Layout::Fixed8 => 24,
            Layout::Variable => 72,
        };
        Some(ReadCache { bytes, record_bytes, shards: OnceLock::new() })
    }

    /// Bytes of memory that it takes once it has begun.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.shards.get().is_some()
    }

    /// Takes its memory.
    pub(crate) fn begin(&self) {
        self.shards.get_or_init(|| {
            let count = (self.bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
            let shard = || Mutex::new(Shard::new(self.bytes / count, self.record_bytes));
            std::iter::repeat_with(shard).take(count).collect()
        });
    }

    fn shard(&self, address: Address) -> Option<(MutexGuard<'_, Shard>, Spot)> {
        let shards = self.shards.get()?;
        let spot = Spot::of(address, shards.len());
        Some((shards[spot.shard].lock().unwrap_or_else(PoisonError::into_inner), spot))
    }

    /// The bytes of a record, if they are there.
    pub(crate) fn get(&self, address: Address) -> Option<Vec<u8>> {
        let (mut shard, spot) = self.shard(address)?;
        let (at, record) = shard.find(&spot, address)?;
        let record = record.to_vec();
        if shard.written - at > shard.ring.len() as u64 / 2 {
            shard.insert(&spot, address, &record);
        }
        Some(record)
    }

    /// Keeps a record that was read from the disk.
    pub(crate) fn keep(&self, address: Address, record: &[u8]) {
        let Some((mut shard, spot)) = self.shard(address) else { return };
        // Another thread may have read it, too.
        if shard.find(&spot, address).is_none() {
            shard.insert(&spot, address, record);
        }
    }
}

impl Spot {
    fn of(address: Address, shards: usize) -> Spot {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        // Of a product the upper bits depend on all that was multiplied, the lower ones do not.
        let product = address.units().wrapping_mul(ODD);
        let hash = product ^ product >> 32;
        Spot { shard: scaled((hash >> 32) as u32, shards), set: hash as u32 }
    }
}

/// A number below `count`, by a number of 32 bits.
fn scaled(number: u32, count: usize) -> usize {
    ((u64::from(number) * count as u64) >> 32) as usize
}

impl Shard {
    fn new(bytes: usize, record_bytes: usize) -> Shard {
        let sets = (bytes / (WAYS * (record_bytes + size_of::<Slot>()))).max(1);
        let ring = bytes.saturating_sub(sets * size_of::<[Slot; WAYS]>());
        Shard {
            ring: vec![0; ring].into_boxed_slice(),
            written: 0,
            sets: vec![[Slot { address: Address::NONE, at: 0 }; WAYS]; sets].into_boxed_slice(),
        }
    }

    /// Where a record was written, and its bytes.
    fn find(&self, spot: &Spot, address: Address) -> Option<(u64, &[u8])> {
        let set = &self.sets[scaled(spot.set, self.sets.len())];
        let slot = set.iter().find(|slot| slot.address == address && self.is_live(slot))?;
        // I-LIVE: it is whole.
        let begin = (slot.at % self.ring.len() as u64) as usize;
        let (len, behind) = self.ring[begin..].split_first_chunk::<LEN_BYTES>()?;
        Some((slot.at, &behind[..u32::from_le_bytes(*len) as usize]))
    }

    fn is_live(&self, slot: &Slot) -> bool {
        slot.address != Address::NONE && self.written - slot.at <= self.ring.len() as u64
    }

    fn insert(&mut self, spot: &Spot, address: Address, record: &[u8]) {
        let (bytes, needed) = (self.ring.len(), LEN_BYTES + record.len());
        // One that is long would take the place of many.
        if needed > bytes / 4 {
            return;
        }
        let mut begin = (self.written % bytes as u64) as usize;
        if begin + needed > bytes {
            // It lies in one piece.
            self.written += (bytes - begin) as u64;
            begin = 0;
        }
        let (len, behind) = self.ring[begin..begin + needed].split_at_mut(LEN_BYTES);
        len.copy_from_slice(&(record.len() as u32).to_le_bytes());
        behind.copy_from_slice(record);
        let slot = Slot { address, at: self.written };
        self.written += needed as u64;
        let set = scaled(spot.set, self.sets.len());
        // Its own, or one that tells of nothing, or the oldest.
        let rank = |slot: &Slot| match slot.address == address {
            true => (0, 0),
            false if !self.is_live(slot) => (1, 0),
            false => (2, slot.at),
        };
        let way = (0..WAYS).min_by_key(|way| rank(&self.sets[set][*way])).unwrap_or(0);
        self.sets[set][way] = slot;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn begun(bytes: u64, layout: Layout) -> ReadCache {
        let cache = ReadCache::new(bytes, layout).expect("it holds some");
        cache.begin();
        cache
    }

    fn address(number: u64) -> Address {
        Address::from_units(8 + 3 * number)
    }

    /// A record of a length and bytes of its own.
    fn record(number: u64) -> Vec<u8> {
        (0..24 + number * 7 % 200).map(|at| (number * 31 + at) as u8).collect()
    }

    #[test]
    fn it_has_no_memory_before_it_begins_and_no_more_than_its_own_then() {
        assert!(ReadCache::new(0, Layout::Variable).is_none());
        for (bytes, shards) in [(1024, 1), (100_000, 1), (1 << 20, 16), (64 << 20, SHARDS_MAX)] {
            let cache = ReadCache::new(bytes, Layout::Fixed8).expect("it holds some");
            cache.keep(address(1), &[1; 24]);
            assert!(!cache.has_begun() && cache.get(address(1)).is_none());
            cache.begin();
            cache.keep(address(1), &[1; 24]);
            assert_eq!(cache.get(address(1)), Some(vec![1; 24]));
            let all = cache.shards.get().expect("it has begun");
            let of = |shard: &Mutex<Shard>| {
                let shard = shard.lock().expect("no panic");
                shard.ring.len() + size_of_val(&*shard.sets)
            };
            let taken = all.iter().map(of).sum::<usize>() as u64;
            assert!(all.len() == shards && taken <= bytes && taken > bytes * 9 / 10, "{taken}");
        }
    }

    /// I-LIVE: what is found is what was put there, whatever came after it.
    #[test]
    fn what_is_found_is_what_was_kept() {
        for (bytes, layout) in
            [(1024, Layout::Variable), (9_000, Layout::Fixed8), (300_000, Layout::Variable)]
        {
            let cache = begun(bytes, layout);
            let mut draw = fastrand::Rng::with_seed(bytes);
            let mut found = HashMap::new();
            for _ in 0..100_000 {
                let most = draw.u64(1..4000);
                let number = draw.u64(..most);
                match cache.get(address(number)) {
                    Some(bytes) => {
                        assert_eq!(bytes, record(number), "{number}");
                        *found.entry(number).or_insert(0) += 1;
                    }
                    None => cache.keep(address(number), &record(number)),
                }
            }
            assert!(found.len() > 5, "some are found: {}", found.len());
        }
    }

    #[test]
    fn the_oldest_go_and_those_that_are_kept_again_stay() {
        let cache = begun(40_000, Layout::Variable);
        cache.keep(address(0), &record(0));
        let mut number = 1;
        let mut missed = 0;
        while number < 1_000 {
            cache.keep(address(number), &record(number));
            number += 1;
            // It is written anew when it must be.
            if cache.get(address(0)).is_none() {
                missed += 1;
                cache.keep(address(0), &record(0));
            }
        }
        assert!(missed <= 2, "it went {missed} times, as its set was full");
        let there: Vec<u64> = (1..1_000).filter(|it| cache.get(address(*it)).is_some()).collect();
        assert!((100..400).contains(&there.len()), "{}", there.len());
        // Ways of a set run out now and then.
        assert!(there[there.len() / 10] > 700 && there.ends_with(&[999]), "{there:?}");
    }

    #[test]
    fn a_long_record_is_left_out() {
        let cache = begun(40_000, Layout::Variable);
        cache.keep(address(1), &record(1));
        cache.keep(address(2), &[7; 20_000]);
        assert_eq!((cache.get(address(2)), cache.get(address(1))), (None, Some(record(1))));
    }

    #[test]
    fn threads_share_it() {
        let cache = begun(300_000, Layout::Variable);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    let mut draw = fastrand::Rng::with_seed(thread);
                    for _ in 0..20_000 {
                        let number = draw.u64(..3_000);
                        match cache.get(address(number)) {
                            Some(bytes) => assert_eq!(bytes, record(number)),
                            None => cache.keep(address(number), &record(number)),
                        }
                    }
                });
            }
        });
    }
}
