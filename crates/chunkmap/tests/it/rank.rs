//! Ranks against a `BTreeMap`, over chunks of all sizes, and beside writers.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use sapwood_chunkmap::{ChunkMap, Options};

/// Two of the nastiest, one in between, and the default.
const CHUNK_ENTRIES: [usize; 4] = [2, 5, 32, 512];

fn map_of(chunk_entries: usize) -> ChunkMap {
    let mut options = Options::default();
    options.chunk_entries = chunk_entries;
    ChunkMap::with_options(options).expect("options that work")
}

type Oracle = BTreeMap<Vec<u8>, Vec<u8>>;

/// Short keys of few letters, so that many share what comes first, and some are what others begin with.
fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    (0..random.usize(1..6)).map(|_| random.u8(b'a'..b'e')).collect()
}

fn rank_of(oracle: &Oracle, key: &[u8]) -> u64 {
    oracle.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key))).count() as u64
}

fn bound<'k>(random: &mut fastrand::Rng, key: &'k [u8]) -> Bound<&'k [u8]> {
    match random.u8(..8) {
        0 => Bound::Unbounded,
        1..4 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

fn agree(map: &ChunkMap, oracle: &Oracle, random: &mut fastrand::Rng) {
    assert_eq!(map.count(..), oracle.len() as u64);
    let (one, other) = (key(random), key(random));
    assert_eq!(map.rank(&one), rank_of(oracle, &one), "{one:?}");
    let (low, high) = (one.clone().min(other.clone()), one.max(other));
    let range = (bound(random, &low), bound(random, &high));
    // The oracle refuses what is no range.
    if range != (Bound::Excluded(&low[..]), Bound::Excluded(&low[..])) {
        let expected = oracle.range::<[u8], _>(range).count() as u64;
        assert_eq!(map.count(range), expected, "{range:?}");
    }
    let rank = random.usize(..oracle.len() + 2);
    let found = map.nth(rank as u64).expect("no closure runs");
    let found = found.map(|entry| (entry.key().to_vec(), entry.value().to_vec()));
    let expected = oracle.iter().nth(rank).map(|(key, value)| (key.clone(), value.clone()));
    assert_eq!(found, expected, "of rank {rank}");
}

fn stream(chunk_entries: usize, seed: u64, checks: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (map, mut oracle) = (map_of(chunk_entries), Oracle::new());
    for _ in 0..checks {
        for _ in 0..random.usize(..8) {
            let key = key(&mut random);
            if random.u8(..10) < 6 {
                let value = vec![random.u8(..); random.usize(..40)];
                map.put(&key, &value).expect("memory");
                oracle.insert(key, value);
            } else {
                map.remove(&key).expect("no closure runs");
                oracle.remove(&key);
            }
        }
        match random.u8(..50) {
            0 => {
                let mut run: Vec<_> = (0..random.u32(..200))
                    .map(|at| ([&[b'c'][..], &at.to_be_bytes()].concat(), vec![7]))
                    .collect();
                run.sort();
                map.put_many(&run).expect("memory");
                oracle.extend(run);
            }
            1 => {
                map.trim();
            }
            2 if random.u8(..8) == 0 => {
                map.clear().expect("no closure runs");
                oracle.clear();
            }
            _ => {}
        }
        agree(&map, &oracle, &mut random);
    }
    map.check().expect("every invariant holds");
}

#[test]
fn ranks_are_those_of_the_oracle() {
    for chunk_entries in CHUNK_ENTRIES {
        for seed in 1..=8 {
            stream(chunk_entries, seed, 1_500);
        }
    }
}

/// Each thread alone changes the keys of its own range: what it counts there is exact, whatever other threads do.
#[test]
fn a_thread_counts_what_it_has_done() {
    const KEYS: u32 = 600;
    for chunk_entries in CHUNK_ENTRIES {
        let map = map_of(chunk_entries);
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let map = &map;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(u64::from(thread) + 1);
                    let key = |at: u32| [&[thread][..], &at.to_be_bytes()].concat();
                    let mut there = vec![false; KEYS as usize];
                    let mut count = 0;
                    for _ in 0..6_000 {
                        let at = random.u32(..KEYS);
                        if random.bool() {
                            count += u64::from(!map.put(&key(at), b"v").expect("memory"));
                            there[at as usize] = true;
                        } else {
                            count -= u64::from(map.remove(&key(at)).expect("no closure runs"));
                            there[at as usize] = false;
                        }
                        if random.u8(..4) == 0 {
                            assert_eq!(map.count(&[thread][..]..&[thread + 1][..]), count);
                            let rank = there[..at as usize].iter().filter(|there| **there).count();
                            let own = map.count(&[thread][..]..&key(at)[..]);
                            assert_eq!(own, rank as u64);
                        }
                    }
                });
            }
        });
        assert_eq!(map.count(..), map.len_exact() as u64);
        map.check().expect("every invariant holds");
    }
}

/// Entries that stay are counted and found by their rank; others come and go between them.
#[test]
fn counts_beside_writers_lie_between() {
    const STAY: u32 = 2_000;
    for chunk_entries in [2, 32] {
        let map = map_of(chunk_entries);
        let key =
            |at: u32, is_there: bool| [&at.to_be_bytes()[..], &[u8::from(!is_there)]].concat();
        for at in 0..STAY {
            map.put(&key(at, true), b"").expect("memory");
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 0..2 {
                let (map, is_over) = (&map, &is_over);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    while !is_over.load(Ordering::Relaxed) {
                        let key = key(random.u32(..STAY), false);
                        if random.bool() {
                            map.put(&key, b"").expect("memory");
                        } else {
                            map.remove(&key).expect("no closure runs");
                        }
                    }
                });
            }
            let mut random = fastrand::Rng::with_seed(9);
            for _ in 0..1_500 {
                let at = random.u32(..STAY);
                let rank = map.rank(&key(at, true));
                assert!((u64::from(at)..=2 * u64::from(at)).contains(&rank), "{rank} of {at}");
                let entry =
                    map.nth(u64::from(at)).expect("no closure runs").expect("there are more");
                let found = u32::from_be_bytes(entry.key()[..4].try_into().expect("four bytes"));
                assert!((at / 2..=at).contains(&found), "{found} for {at}");
            }
            is_over.store(true, Ordering::Relaxed);
        });
        map.check().expect("every invariant holds");
    }
}
