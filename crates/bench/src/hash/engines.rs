//! The maps of this process: ours, and those of other crates, which all hash with foldhash
//! (hashbrown's default) and are made with room for all keys.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};
use sapwood_hashlog::{HashLog, Layout, Options};

use super::floor::floors;
use super::job::{Mix, key, number_of, value};
use super::store::{HashContender, HashPeer, HashStore, Shared, StoreForm};
use super::{BYTES_MAX, takes};
use crate::harness::*;

pub(crate) const SAPWOOD: &str = "sapwood";
pub(crate) const SAPWOOD_16: &str = "sapwood-batch-16";
pub(crate) const SAPWOOD_32: &str = "sapwood-batch-32";

/// Above this many keys moka is left out: at less than a million operations a second, and over 200
/// bytes an entry, it would take most of the time of a run.
pub(crate) const MOKA_NUMBERS_MAX: usize = 1_000_000;

/// Maps of other crates, with the bytes that an entry costs at 50 million keys.
const PEERS: [HashPeer; 7] = [
    HashPeer::of::<Shards>(25),
    HashPeer::of::<Dash>(25),
    HashPeer::of::<Papaya>(56),
    HashPeer::of::<PapayaAtomic>(56),
    HashPeer::of::<Scc>(25),
    HashPeer::of::<Moka>(200),
    HashPeer::of::<Dictionary>(25),
];
const OUR_BYTES: u64 = 40;
const FLOOR_BYTES: u64 = 12;

pub(crate) fn chosen(plan: &Plan, outside: &[HashPeer]) -> Result<Vec<Box<dyn HashContender>>> {
    let keys = plan.size();
    let wanted = &|name: &str| plan.takes(name) && takes(name, keys);
    let peers: Vec<&HashPeer> =
        outside.iter().chain(&PEERS).filter(|peer| wanted(peer.name)).collect();
    let mut all = ours(wanted);
    let floors = floors(wanted);
    let each: u64 = peers.iter().map(|peer| peer.bytes_expected).sum::<u64>()
        + if all.is_empty() { 0 } else { OUR_BYTES }
        + floors.len() as u64 * FLOOR_BYTES;
    if each * keys as u64 > BYTES_MAX {
        bail!(
            "{keys} keys would take about {} MB in these engines together: choose fewer with \
             --engines, or fewer --keys",
            each * keys as u64 / 1_000_000
        );
    }
    all.extend(peers.into_iter().map(|peer| (peer.make)()));
    all.extend(floors.into_iter().map(|floor| Box::new(floor) as Box<dyn HashContender>));
    Ok(all)
}

/// Forms of our store. The first that is wanted loads for all.
fn ours(wanted: &dyn Fn(&str) -> bool) -> Vec<Box<dyn HashContender>> {
    let mut all: Vec<Box<dyn HashContender>> = Vec::new();
    let shared = Shared::<SapwoodHash>::new();
    let forms = [(SAPWOOD, 1), (SAPWOOD_16, 16), (SAPWOOD_32, 32)];
    for (mark, (name, call)) in (0..).zip(forms).filter(|(_, (name, _))| wanted(name)) {
        let (loads, shared) = (all.is_empty(), Arc::clone(&shared));
        all.push(Box::new(StoreForm { name, call, mark, loads, shared }));
    }
    all
}

const LOADED_TOGETHER: usize = 256;
const IN_MEMORY: &str = "the keys have 8 bytes and memory has no budget";

/// The hash log in memory, with keys and values of 8 bytes.
pub(crate) struct SapwoodHash(HashLog);

impl HashStore for SapwoodHash {
    const NAME: &'static str = SAPWOOD;

    fn with_room(keys: u32) -> Result<SapwoodHash> {
        let mut options = Options::default();
        options.layout = Layout::Fixed8;
        options.expected_entries = u64::from(keys);
        Ok(SapwoodHash(HashLog::in_memory(options)?))
    }

    #[inline(always)]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get_with(&key.to_le_bytes(), word).expect(IN_MEMORY)
    }

    #[inline(always)]
    fn put(&self, key: u64, value: u64) {
        self.0.put(&key.to_le_bytes(), &value.to_le_bytes()).expect(IN_MEMORY);
    }

    #[inline(always)]
    fn increment(&self, key: u64) {
        self.0.add(&key.to_le_bytes(), 1).expect(IN_MEMORY);
    }

    fn load(&self, numbers: Range<u32>) {
        let mut batch = [([0; 8], [0; 8]); LOADED_TOGETHER];
        for begin in numbers.clone().step_by(LOADED_TOGETHER) {
            let limit = numbers.end.min(begin.saturating_add(LOADED_TOGETHER as u32));
            let entries = &mut batch[..(limit - begin) as usize];
            for (slot, number) in entries.iter_mut().zip(begin..) {
                *slot = entry(number, 0);
            }
            self.0.put_many(entries).expect(IN_MEMORY);
        }
    }

    #[inline]
    fn work_many(&self, call: usize, mix: Mix, low: u32, plan: &[Op]) -> Tally {
        match call {
            16 => self.batched::<16>(mix, low, plan),
            32 => self.batched::<32>(mix, low, plan),
            _ => unreachable!("batches of 16 and 32 have names"),
        }
    }

    fn accounted_bytes(&self) -> Option<u64> {
        Some(self.0.stats().reserved_bytes)
    }
}

impl SapwoodHash {
    #[inline]
    fn get_many(&self, keys: &[[u8; 8]], tally: &mut Tally) {
        let each = |_, value: Option<&[u8]>| {
            value.into_iter().for_each(|it| tally.add(number_of(word(it))))
        };
        self.0.get_many(keys, each).expect(IN_MEMORY);
    }

    /// `N` keys a call: reads are gathered in one batch and updates in another, and each is handed
    /// over when it is full.
    #[inline]
    fn batched<const N: usize>(&self, mix: Mix, low: u32, plan: &[Op]) -> Tally {
        let mut tally = Tally::default();
        if mix == Mix::ReadModifyWrite {
            let mut deltas = [([0; 8], 1i64); N];
            for part in plan.chunks(N) {
                for (delta, op) in deltas.iter_mut().zip(part) {
                    delta.0 = key(op.number()).to_le_bytes();
                }
                self.0.add_many(&deltas[..part.len()]).expect(IN_MEMORY);
            }
            return tally;
        }
        let mut reads = [[0; 8]; N];
        let mut updates = [([0; 8], [0; 8]); N];
        let (mut read_count, mut update_count) = (0, 0);
        for op in plan {
            // Both are written and one is kept, so that nothing waits for a guess.
            let entry = entry(op.number(), low);
            reads[read_count] = entry.0;
            updates[update_count] = entry;
            read_count += usize::from(!op.writes());
            update_count += usize::from(op.writes());
            if read_count == N {
                self.get_many(&reads, &mut tally);
                read_count = 0;
            }
            if update_count == N {
                self.0.put_many(&updates).expect(IN_MEMORY);
                update_count = 0;
            }
        }
        self.get_many(&reads[..read_count], &mut tally);
        self.0.put_many(&updates[..update_count]).expect(IN_MEMORY);
        tally
    }
}

#[inline]
fn entry(number: u32, low: u32) -> ([u8; 8], [u8; 8]) {
    (key(number).to_le_bytes(), value(number, low).to_le_bytes())
}

#[inline]
fn word(value: &[u8]) -> u64 {
    u64::from_le_bytes(*value.first_chunk().expect("values have 8 bytes"))
}

type Hasher = foldhash::fast::RandomState;

/// Shards; so many that two threads seldom meet.
const SHARD_COUNT: usize = 1024;
/// Room above the mean, for shards that get more than their share: over six deviations at 50
/// million keys.
const ROOM: f64 = 1.03;

/// Padded, so that locks do not share cache lines.
#[repr(align(64))]
struct Shard(RwLock<HashTable<(u64, u64)>>);

/// hashbrown tables, each behind a lock of its own.
struct Shards {
    shards: Box<[Shard]>,
    hasher: Hasher,
}

impl Shards {
    /// The hash, taken once, and its shard: from bits that the tables do not use.
    #[inline]
    fn find(&self, key: u64) -> (u64, &RwLock<HashTable<(u64, u64)>>) {
        let hash = self.hasher.hash_one(key);
        (hash, &self.shards[(hash >> 40) as usize % SHARD_COUNT].0)
    }
}

impl HashStore for Shards {
    const NAME: &'static str = "hashbrown-shards";

    fn with_room(keys: u32) -> Result<Shards> {
        let room = (f64::from(keys) / SHARD_COUNT as f64 * ROOM) as usize + 1;
        let shard = || Shard(RwLock::new(HashTable::with_capacity(room)));
        Ok(Shards {
            shards: (0..SHARD_COUNT).map(|_| shard()).collect(),
            hasher: Hasher::default(),
        })
    }

    #[inline(always)]
    fn get(&self, key: u64) -> Option<u64> {
        let (hash, shard) = self.find(key);
        shard.read().find(hash, |entry| entry.0 == key).map(|entry| entry.1)
    }

    #[inline(always)]
    fn put(&self, key: u64, value: u64) {
        let (hash, shard) = self.find(key);
        let mut table = shard.write();
        if let Some(entry) = table.find_mut(hash, |entry| entry.0 == key) {
            entry.1 = value;
        } else {
            table.insert_unique(hash, (key, value), |entry| self.hasher.hash_one(entry.0));
        }
    }

    #[inline(always)]
    fn increment(&self, key: u64) {
        let (hash, shard) = self.find(key);
        if let Some(entry) = shard.write().find_mut(hash, |entry| entry.0 == key) {
            entry.1 += 1;
        }
    }
}

macro_rules! peers {
    ($($(#[$doc:meta])* $peer:ident($map:ty) $name:literal:
        with_room $keys:ident => $made:expr;
        get $this:ident, $key:ident => $get:expr;
        put $value:ident => $put:expr;
        increment => $increment:expr;
    )*) => {$(
        $(#[$doc])*
        struct $peer($map);

        impl HashStore for $peer {
            const NAME: &'static str = $name;

            fn with_room($keys: u32) -> Result<$peer> {
                Ok($peer($made))
            }

            #[inline(always)]
            fn get(&self, $key: u64) -> Option<u64> {
                let $this = &self.0;
                $get
            }

            #[inline(always)]
            fn put(&self, $key: u64, $value: u64) {
                let $this = &self.0;
                $put;
            }

            #[inline(always)]
            fn increment(&self, $key: u64) {
                let $this = &self.0;
                $increment;
            }
        }
    )*};
}

peers! {
    /// dashmap, with as many shards as it chooses.
    Dash(dashmap::DashMap<u64, u64, Hasher>) "dashmap":
        with_room keys => dashmap::DashMap::with_capacity_and_hasher(keys as usize, Hasher::default());
        get map, key => map.get(&key).map(|value| *value);
        put value => map.insert(key, value);
        increment => if let Some(mut value) = map.get_mut(&key) {
            *value += 1;
        };

    /// papaya: an update allocates an entry and retires the old one.
    Papaya(papaya::HashMap<u64, u64, Hasher>) "papaya":
        with_room keys => {
            papaya::HashMap::builder().capacity(keys as usize).hasher(Hasher::default()).build()
        };
        get map, key => map.pin().get(&key).copied();
        put value => map.pin().insert(key, value);
        increment => map.pin().update(key, |value| value + 1);

    /// papaya: an update stores to the entry that is there.
    PapayaAtomic(papaya::HashMap<u64, AtomicU64, Hasher>) "papaya-atomic":
        with_room keys => {
            papaya::HashMap::builder().capacity(keys as usize).hasher(Hasher::default()).build()
        };
        get map, key => map.pin().get(&key).map(|value| value.load(Relaxed));
        put value => {
            let map = map.pin();
            match map.get(&key) {
                Some(cell) => cell.store(value, Relaxed),
                None => {
                    map.insert(key, AtomicU64::new(value));
                }
            }
        };
        increment => if let Some(cell) = map.pin().get(&key) {
            cell.fetch_add(1, Relaxed);
        };

    Scc(scc::HashMap<u64, u64, Hasher>) "scc":
        with_room keys => scc::HashMap::with_capacity_and_hasher(keys as usize, Hasher::default());
        get map, key => map.read_sync(&key, |_, value| *value);
        put value => map.upsert_sync(key, value);
        increment => map.update_sync(&key, |_, value| *value += 1);

    /// moka, with twice the room, so that it evicts nothing.
    Moka(moka::sync::Cache<u64, u64, Hasher>) "moka":
        with_room keys => moka::sync::Cache::builder()
            .max_capacity(u64::from(keys) * 2)
            .initial_capacity(keys as usize)
            .build_with_hasher(Hasher::default());
        get map, key => map.get(&key);
        put value => map.insert(key, value);
        increment => map.entry(key).and_compute_with(|entry| match entry {
            Some(entry) => moka::ops::compute::Op::Put(entry.into_value() + 1),
            None => moka::ops::compute::Op::Nop,
        });

    /// One map under one lock: what a program has before it looks for anything better.
    Dictionary(Mutex<HashMap<u64, u64, Hasher>>) "mutex-hashmap":
        with_room keys => {
            Mutex::new(HashMap::with_capacity_and_hasher(keys as usize, Hasher::default()))
        };
        get map, key => map.lock().get(&key).copied();
        put value => map.lock().insert(key, value);
        increment => if let Some(value) = map.lock().get_mut(&key) {
            *value += 1;
        };
}
