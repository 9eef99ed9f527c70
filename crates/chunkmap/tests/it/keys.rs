//! Scans of keys alone, which read them from their chunk where they can: of keys of every kind, they show what a map of
//! the standard library has.

use crate::adapter::{ALL, CONFIGURATIONS, map};
use sapwood_chunkmap::{ChunkMap, Direction};
use sapwood_testkit::case;
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering};

/// A kind of keys: what it is, and the key of a number.
type Kind = (&'static str, fn(u64) -> Vec<u8>);

const KINDS: [Kind; 12] = [
    ("numbers", |i| i.to_be_bytes().to_vec()),
    ("numbers in long keys", |i| [&[7; 40][..], &i.to_be_bytes(), &[9; 52]].concat()),
    ("two numbers with equal bytes between", |i| {
        [&(i / 30).to_be_bytes()[..], b"between", &(i % 30).to_be_bytes()].concat()
    }),
    ("numbers in words", |i| format!("user{i:012}@example").into_bytes()),
    ("numbers without leading zeros", |i| format!("user{i}").into_bytes()),
    ("random bytes", |i| {
        let bits = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        [bits.to_be_bytes(), bits.rotate_left(23).to_be_bytes()].concat()
    }),
    ("short keys", |i| i.to_be_bytes()[8 - (1 + (i % 3) as usize)..].to_vec()),
    ("a byte far behind", |i| [&i.to_be_bytes()[..], &[1; 300], &[(i % 5) as u8]].concat()),
    ("equal for 300 bytes", |i| [&[1; 300][..], &i.to_be_bytes()].concat()),
    ("now and then a longer one", |i| {
        let mut key = [&[3; 20][..], &i.to_be_bytes()].concat();
        if i.is_multiple_of(97) {
            key.push(0);
        }
        key
    }),
    ("now and then another byte in the middle", |i| {
        let mut key = [&[3; 20][..], &i.to_be_bytes(), &[0; 8]].concat();
        key[2] += u8::from(i.is_multiple_of(97));
        key[33] += u8::from(i.is_multiple_of(89));
        key
    }),
    ("now and then a shorter one", |i| {
        let key = [&[0xFF; 4][..], &i.to_be_bytes(), &[0xFF; 12]].concat();
        key[..key.len() - usize::from(i.is_multiple_of(83)) * 9].to_vec()
    }),
];

fn keys_of(map: &ChunkMap, bounds: (Bound<&[u8]>, Bound<&[u8]>), way: Direction) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let flow = map.scan_keys(bounds, way, |key| {
        keys.push(key.to_vec());
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(flow, Ok(ControlFlow::Continue(())));
    keys
}

/// The map has these keys and no others, between any bounds, up and down.
fn shows(map: &ChunkMap, wanted: &BTreeSet<Vec<u8>>, probes: &[Vec<u8>], name: &str) {
    let mut all: Vec<Vec<u8>> = wanted.iter().cloned().collect();
    assert_eq!(keys_of(map, ALL, Direction::Ascending), all, "{name}");
    all.reverse();
    assert_eq!(keys_of(map, ALL, Direction::Descending), all, "{name}");
    assert_eq!(map.len_exact(), all.len(), "{name}");
    for pair in probes.windows(2) {
        let (low, high) =
            ((&pair[0]).min(&pair[1]).as_slice(), (&pair[0]).max(&pair[1]).as_slice());
        if low == high {
            continue;
        }
        for bounds in [
            (Bound::Included(low), Bound::Excluded(high)),
            (Bound::Excluded(low), Bound::Included(high)),
            (Bound::Excluded(high), Bound::Unbounded),
            (Bound::Unbounded, Bound::Included(low)),
        ] {
            let mut inside: Vec<Vec<u8>> = wanted.range::<[u8], _>(bounds).cloned().collect();
            assert_eq!(keys_of(map, bounds, Direction::Ascending), inside, "{name}");
            inside.reverse();
            assert_eq!(keys_of(map, bounds, Direction::Descending), inside, "{name}");
        }
    }
}

#[test]
fn keys_of_every_kind_are_shown_as_they_are() {
    case!().seeds(2, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        for (name, key) in KINDS {
            for configuration in CONFIGURATIONS {
                let map = map(configuration);
                let mut wanted = BTreeSet::new();
                // So many that the largest chunks split, too.
                let keys = if configuration.0 < 100 { 600 } else { 3_000 };
                for round in 0..6 {
                    let live = rng.u64(1..keys);
                    for _ in 0..keys {
                        let key = key(rng.u64(0..live));
                        // Grows, shrinks, and changes about.
                        if rng.u64(0..5) < [4, 4, 1, 2, 3, 0][round] {
                            assert_eq!(map.put(&key, b"value"), Ok(!wanted.insert(key)));
                        } else {
                            assert_eq!(map.remove(&key), Ok(wanted.remove(&key)));
                        }
                    }
                    let run: Vec<_> = (live..live + 80).map(|i| (key(i), b"of a run")).collect();
                    map.put_many(&run).unwrap();
                    wanted.extend(run.into_iter().map(|(key, _)| key));
                    let probes: Vec<_> = (0..6).map(|_| key(rng.u64(0..keys))).collect();
                    shows(&map, &wanted, &probes, name);
                    map.check().unwrap();
                }
            }
        }
    });
}

/// Keys that a thread has seen gone are not shown to it afterwards, and those that it has put back are shown once, however far
/// the other thread is that removes them.
#[test]
fn keys_that_were_seen_gone_are_not_shown() {
    const KEYS: u64 = 40;
    case!().once(|| {
        for configuration in [CONFIGURATIONS[0], CONFIGURATIONS[2], CONFIGURATIONS[4]] {
            let map = map(configuration);
            for key in 0..KEYS {
                map.put(&key.to_be_bytes(), b"").unwrap();
            }
            // The key that is to be removed next, from 1 on; 0: it is gone.
            let (to_remove, rounds) = (AtomicU64::new(0), 3_000_u64);
            let (map, to_remove) = (&map, &to_remove);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let key = loop {
                            match to_remove.load(Ordering::Acquire) {
                                0 => std::thread::yield_now(),
                                key => break key - 1,
                            }
                        };
                        assert_eq!(map.remove(&key.to_be_bytes()), Ok(true));
                        to_remove.store(0, Ordering::Release);
                    }
                });
                for round in 0..rounds {
                    let key = round * 7 % KEYS;
                    let bytes = key.to_be_bytes();
                    let way =
                        if round % 2 == 0 { Direction::Ascending } else { Direction::Descending };
                    to_remove.store(key + 1, Ordering::Release);
                    while map.contains_key(&bytes).unwrap() {
                        std::thread::yield_now();
                    }
                    // Its record is dead; whether its word tells so is open.
                    let before = keys_of(map, ALL, way);
                    assert!(!before.contains(&bytes.to_vec()), "{key} was gone");
                    assert_eq!(before.len() as u64, KEYS - 1);
                    map.put(&bytes, b"").unwrap();
                    let after = keys_of(map, ALL, way);
                    assert_eq!(after.len() as u64, KEYS, "{after:?}");
                    while to_remove.load(Ordering::Acquire) != 0 {
                        std::thread::yield_now();
                    }
                }
            });
            map.check().unwrap();
        }
    });
}

/// What the closure of a scan removes it is not shown afterwards, although the chunk is replaced meanwhile.
#[test]
fn keys_that_the_closure_removes_are_not_shown() {
    const KEYS: u64 = 500;
    case!().once(|| {
        for way in [Direction::Ascending, Direction::Descending] {
            let map = map(CONFIGURATIONS[4]);
            let run: Vec<_> = (0..KEYS).map(|key| (key.to_be_bytes(), b"value")).collect();
            map.put_many(&run).unwrap();
            let mut seen = Vec::new();
            let flow = map.scan_keys(ALL, way, |shown| {
                seen.push(shown.to_vec());
                // All but three that come next, at the first one.
                let first = u64::from_be_bytes(seen[0][..].try_into().unwrap());
                for (key, _) in &run {
                    if u64::from_be_bytes(*key).abs_diff(first) > 3 {
                        map.remove(key).unwrap();
                    }
                }
                ControlFlow::<()>::Continue(())
            });
            assert_eq!(flow, Ok(ControlFlow::Continue(())));
            assert_eq!(seen.len(), 4, "{seen:?}");
        }
    });
}
