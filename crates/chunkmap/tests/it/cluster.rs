//! Records of neighbouring keys come to lie together where they are scanned, and the map does not grow by it.
//!
//! Judged by where values lie, and by what the map says that it has mapped and moved.

use crate::adapter::{CONFIGURATIONS, NASTIEST, bounded, contents, map};
use sapwood_chunkmap::{ChunkMap, Compute, Direction, Error};
use sapwood_testkit::case;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Scans of the whole map after which all of it lies together: passes make room in between.
const SCANS: usize = 40;

/// A key that says nothing about when it was put.
fn key(index: u64) -> [u8; 8] {
    index.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

type Len = fn(u64) -> usize;

fn hundred(_index: u64) -> usize {
    100
}

fn thousand(_index: u64) -> usize {
    1_000
}

/// A dozen sizes.
fn sizes(index: u64) -> usize {
    (index.wrapping_mul(0xA24B_AED4_963E_E407) >> 33) as usize % 12 * 40
}

fn value(index: u64, len: Len) -> Vec<u8> {
    vec![index as u8; len(index)]
}

fn load(map: &ChunkMap, indices: std::ops::Range<u64>, len: Len) {
    for index in indices {
        map.put(&key(index), &value(index, len)).unwrap();
    }
}

/// Exactly `indices` are there, and every invariant holds.
fn holds(map: &ChunkMap, indices: std::ops::Range<u64>, len: Len) {
    let mut pairs: Vec<_> = indices.map(|index| (key(index).to_vec(), value(index, len))).collect();
    pairs.sort();
    assert!(contents(map) == pairs, "the map holds something else");
    map.check().unwrap();
}

/// Shows every value, and says how many of a hundred lie at most four of their own size behind some value among the
/// sixty-four before.
fn scan(map: &ChunkMap, direction: Direction) -> u64 {
    let mut before = [0_usize; 64];
    let (mut near, mut count) = (0_u64, 0_usize);
    let flow = map.scan(.., direction, |_key, value| {
        let at = value.as_ptr() as usize;
        let room = 4 * (value.len() + 64);
        near += u64::from(before.iter().any(|before| before.abs_diff(at) <= room));
        before[count % before.len()] = at;
        count += 1;
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(flow, Ok(ControlFlow::Continue(())));
    near * 100 / count.max(1) as u64
}

fn reserved(map: &ChunkMap) -> u64 {
    map.stats().reserved_bytes
}

#[test]
fn scans_move_scattered_records_together_and_the_map_does_not_grow() {
    case!().once(|| {
        let cases: [((usize, usize), u64, Len); 4] = [
            (CONFIGURATIONS[4], 40_000, thousand),
            (CONFIGURATIONS[4], 200_000, hundred),
            (CONFIGURATIONS[3], 50_000, hundred),
            (CONFIGURATIONS[3], 60_000, sizes),
        ];
        for (configuration, count, len) in cases {
            for direction in [Direction::Ascending, Direction::Descending] {
                let map = map(configuration);
                load(&map, 0..count, len);
                let before = reserved(&map);
                let data = map.stats().key_bytes + map.stats().value_bytes;
                let told = format!("{configuration:?}, {count} entries, {before} bytes");
                let apart = scan(&map, direction);
                assert!(apart < 50, "{told}: {apart} % lie together after a load in no order");
                assert_eq!(map.stats().moved_bytes, 0, "{told}: one scan moves nothing");
                scan(&map, direction);
                assert!(map.stats().moved_bytes > 0, "{told}: the second one does");
                let most = before + before / 20 + 4 * configuration.1 as u64;
                for _ in 0..SCANS {
                    scan(&map, direction);
                    let now = reserved(&map);
                    assert!(now <= most, "{told}: {now} while records move");
                }
                let together = scan(&map, direction);
                // Of a dozen sizes, rows are short, and end often.
                let least = if len(0) == len(1) && len(1) == len(2) { 90 } else { 70 };
                assert!(together > least, "{told}: {together} % lie together");
                let (after, moved) = (reserved(&map), map.stats().moved_bytes);
                let most = before + before / 20 + configuration.1 as u64;
                assert!(after <= most, "{told}: {after} afterwards");
                assert!((data..4 * data).contains(&moved), "{told}: {moved} moved of {data}");
                for _ in 0..5 {
                    scan(&map, direction);
                }
                let again = map.stats().moved_bytes - moved;
                assert!(again < data / 10, "{told}: {again} bytes moved again");
                holds(&map, 0..count, len);
            }
        }
    });
}

#[test]
fn compact_does_it_at_once_and_not_again() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            for len in [hundred as Len, sizes] {
                let map = map(configuration);
                load(&map, 0..20_000, len);
                // Half of the keys go, so that there is room for what comes next.
                for index in 0..10_000 {
                    map.remove(&key(index)).unwrap();
                }
                map.trim();
                let before = reserved(&map);
                map.compact();
                let (after, moved) = (reserved(&map), map.stats().moved_bytes);
                let told = format!("{configuration:?}: {before} bytes, {after} afterwards");
                let blocks = 4 * configuration.1.max(32 << 10) as u64;
                assert!(after <= before + before / 20 + blocks, "{told}");
                if configuration.0 >= 64 {
                    let together = scan(&map, Direction::Ascending);
                    assert!(together > 70, "{told}: {together} % lie together");
                    map.compact();
                    let again = map.stats().moved_bytes - moved;
                    assert!(again * 2 < moved, "{told}: {again} moved again, {moved} before");
                }
                holds(&map, 10_000..20_000, len);
            }
        }
    });
}

/// Iterators count as scans do; what is not walked over from end to end does not.
#[test]
fn iterators_move_records_and_short_scans_do_not() {
    case!().once(|| {
        let map = map(CONFIGURATIONS[3]);
        load(&map, 0..20_000, hundred);
        for round in 0..10 {
            for start in 0..2_000 {
                let low = key(start * 10 + round);
                let mut left = 8;
                let flow = map.scan(&low[..].., Direction::Ascending, |_, _| {
                    left -= 1;
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                assert!(flow.is_ok());
                let high = (u64::from_be_bytes(low) | 0xFFFF_FFFF_FFFF).to_be_bytes();
                assert!(map.range(&low[..]..&high[..]).all(|entry| entry.is_ok()));
            }
        }
        // Now and then one of them crosses a small chunk.
        let moved = map.stats().moved_bytes;
        assert!(moved < 20_000 * 10, "{moved} bytes moved by short scans");
        assert!(scan(&map, Direction::Ascending) < 50);
        for _ in 0..SCANS {
            assert!(map.range(..).all(|entry| entry.is_ok()));
            assert!(map.range(..).rev().all(|entry| entry.is_ok()));
        }
        let together = scan(&map, Direction::Ascending);
        assert!(together > 90, "{together} % lie together");
        holds(&map, 0..20_000, hundred);
    });
}

/// A table that scans have moved together takes in as much as another one, of whatever size.
#[test]
fn near_a_budget_no_entry_is_refused_because_of_scans() {
    case!().once(|| {
        for (configuration, budget) in
            [(NASTIEST, 1 << 20), (CONFIGURATIONS[3], 4 << 20), (CONFIGURATIONS[4], 32 << 20)]
        {
            // So much of the budget is used, and scanned, then the rest comes in another size.
            let fits = |full: u64, scans: usize| {
                let map = bounded(configuration, Some(budget));
                let mut index = 0;
                let fill = |len: Len, index: &mut u64| {
                    let first = *index;
                    loop {
                        match map.put(&key(*index), &value(*index, len)) {
                            Ok(replaced) => assert!(!replaced),
                            Err(Error::OutOfMemory { .. }) => return *index - first,
                            Err(other) => panic!("{other}"),
                        }
                        *index += 1;
                    }
                };
                while reserved(&map) < budget / 100 * full {
                    map.put(&key(index), &value(index, hundred)).unwrap();
                    index += 1;
                }
                (0..scans).for_each(|_| _ = scan(&map, Direction::Ascending));
                let more = fill(thousand, &mut index);
                (0..scans).for_each(|_| _ = scan(&map, Direction::Descending));
                map.compact();
                assert!(reserved(&map) <= budget);
                map.check().unwrap();
                more
            };
            for (full, least) in [(85, 98), (50, 85)] {
                let (alone, scanned) = (fits(full, 0), fits(full, SCANS));
                let told = format!("{configuration:?}: {alone} more fit, {scanned} after scans");
                assert!(scanned * 100 >= alone * least, "{told}, {full} % full");
            }
        }
    });
}

/// Scans move records while writers change, replace and remove them.
#[test]
fn records_move_beside_writers_and_every_value_stays_whole() {
    case!().seeds(4, |seed| {
        let configuration = CONFIGURATIONS[1 + seed as usize % 4];
        let map = map(configuration);
        let count = 3_000;
        load(&map, 0..count, hundred);
        let scanned = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (map, scanned) = (&map, &scanned);
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(seed * 2 + thread);
                    // Until the scans have ended, and for some time at least.
                    let mut step = 0;
                    while step < 20_000 || scanned.load(Ordering::Relaxed) < 2 {
                        step += 1;
                        // Each thread has its own keys, so that it knows what they hold.
                        let index = rng.u64(0..count / 2) * 2 + thread;
                        let own = key(index);
                        match rng.u8(0..8) {
                            0 => {
                                map.remove(&own).unwrap();
                                assert_eq!(map.get(&own), Ok(None));
                            }
                            1 => {
                                let new = vec![step as u8; rng.usize(0..300)];
                                map.put(&own, &new).unwrap();
                                assert_eq!(map.get(&own), Ok(Some(new)));
                            }
                            2 => {
                                let outcome = map.compute(&own, |_| Compute::Replace(vec![7; 100]));
                                assert!(outcome.is_ok());
                            }
                            _ => {
                                let add = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
                                    value.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                                };
                                let before = map.get(&own).unwrap();
                                map.update(&own, add).unwrap();
                                let after = map.get(&own).unwrap();
                                let added = before.map(|mut value| {
                                    value.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                                    value
                                });
                                assert_eq!(after, added, "an update is lost");
                            }
                        }
                    }
                });
            }
            for direction in [Direction::Ascending, Direction::Descending] {
                let (map, scanned) = (&map, &scanned);
                scope.spawn(move || {
                    for _ in 0..60 {
                        let mut last: Option<Vec<u8>> = None;
                        let flow = map.scan(.., direction, |key, value| {
                            let whole = value.iter().all(|byte| *byte == value[0]);
                            assert!(whole, "half an update");
                            let in_order = last.as_ref().is_none_or(|last| match direction {
                                Direction::Ascending => &last[..] < key,
                                Direction::Descending => &last[..] > key,
                            });
                            assert!(in_order);
                            last = Some(key.to_vec());
                            ControlFlow::<()>::Continue(())
                        });
                        assert!(flow.is_ok());
                    }
                    scanned.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert!(map.stats().moved_bytes > 0, "{configuration:?}: nothing moved");
        map.check().unwrap();
    });
}

/// Inside of closures scans and `compact` return, and the bytes that are shown stay.
#[test]
fn inside_closures_nothing_that_is_shown_moves() {
    case!().once(|| {
        for configuration in [NASTIEST, CONFIGURATIONS[3], CONFIGURATIONS[4]] {
            let map = map(configuration);
            load(&map, 0..5_000, hundred);
            let (own, shown) = (key(7), value(7, hundred));
            let work = || {
                (0..4).for_each(|_| _ = scan_inside(&map));
                map.compact();
            };
            let read = map.get_with(&own, |value| {
                work();
                assert_eq!(value, shown);
            });
            assert_eq!(read, Ok(Some(())));
            let moved = map.stats().moved_bytes;
            assert!(moved > 0, "{configuration:?}: a reader is in nothing's way");
            let entry = map.floor(&own).unwrap().expect("it is there");
            work();
            assert_eq!(entry.value(), shown);
            drop(entry);
            let update = map.update(&own, |value| {
                map.compact();
                assert_eq!(**value, shown[..]);
                value.fill(8);
            });
            assert_eq!(update, Ok(Some(())));
            assert_eq!(map.get(&own), Ok(Some(vec![8; 100])));
            map.put(&own, &shown).unwrap();
            holds(&map, 0..5_000, hundred);
        }
    });
}

fn scan_inside(map: &ChunkMap) -> usize {
    let mut count = 0;
    let flow = map.scan(.., Direction::Ascending, |_, _| {
        count += 1;
        ControlFlow::<()>::Continue(())
    });
    assert!(flow.is_ok());
    count
}
