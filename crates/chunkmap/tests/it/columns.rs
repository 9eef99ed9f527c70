//! Walks and look-ups by columns: what they show is what `scan` and `get_many` show, beside writers too.

use crate::adapter::{ALL, CONFIGURATIONS, NASTIEST, map};
use sapwood_chunkmap::{ChunkMap, Compute, Direction, Error, Piece, WIDTH_MAX, Widths};
use sapwood_testkit::case;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the writers, however the test ends.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// What a walk has shown: the first bytes of entries in batches, and entries by themselves; each in order.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    in_batches: Pairs,
    whole: Pairs,
}

impl Shown {
    fn take(
        &mut self,
        piece: Piece<'_>,
        (key_width, value_width): (usize, usize),
    ) -> ControlFlow<()> {
        match piece {
            Piece::Batch(batch) => {
                assert!(!batch.is_empty() && batch.len() <= 1_024);
                assert!(batch.keys().width() >= key_width && batch.values().width() >= value_width);
                for at in 0..batch.len() {
                    let (key, value) = batch.entry(at).expect("all count");
                    self.in_batches
                        .push((key[..key_width].to_vec(), value[..value_width].to_vec()));
                }
            }
            Piece::Entry(key, value) => self.whole.push((key.to_vec(), value.to_vec())),
        }
        ControlFlow::Continue(())
    }

    fn sorted(mut self) -> Shown {
        self.in_batches.sort();
        self.whole.sort();
        self
    }

    /// What is to be shown of these entries.
    fn expected(entries: &[(Vec<u8>, Vec<u8>)], (key_width, value_width): (usize, usize)) -> Shown {
        let mut shown = Shown::default();
        for (key, value) in entries {
            if key.len() >= key_width && value.len() >= value_width {
                shown.in_batches.push((key[..key_width].to_vec(), value[..value_width].to_vec()));
            } else {
                shown.whole.push((key.clone(), value.clone()));
            }
        }
        shown.sorted()
    }
}

fn widths((key, value): (usize, usize)) -> Widths {
    Widths::new(key, value).expect("not wide")
}

fn scanned(map: &ChunkMap, bounds: (Bound<&[u8]>, Bound<&[u8]>), asked: (usize, usize)) -> Shown {
    let mut shown = Shown::default();
    let flow = map.scan_columns(bounds, widths(asked), |piece| shown.take(piece, asked));
    assert!(flow.expect("no closure").is_continue());
    shown.sorted()
}

fn looked_up(map: &ChunkMap, keys: &[Vec<u8>], asked: (usize, usize)) -> Shown {
    let mut shown = Shown::default();
    let flow = map.get_many_columns(keys, widths(asked), |piece| shown.take(piece, asked));
    assert!(flow.expect("no closure").is_continue());
    shown.sorted()
}

/// A map of random keys and values of random lengths, many of them removed, replaced and grown.
fn random_map(configuration: (usize, usize), random: &mut fastrand::Rng) -> ChunkMap {
    let map = map(configuration);
    let count = random.usize(0..3_000);
    for _ in 0..count {
        let key = random_key(random);
        let mut value = vec![0; random.usize(0..40)];
        random.fill(&mut value);
        match random.u8(0..8) {
            0 => drop(map.remove(&key).unwrap()),
            1 => drop(map.update(&key, |value| value.resize(20).unwrap()).unwrap()),
            _ => drop(map.put(&key, &value).unwrap()),
        }
    }
    if random.bool() {
        map.compact();
    }
    map
}

fn random_key(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = if random.bool() { 8 } else { random.usize(1..20) };
    let mut key = vec![0; len];
    // Few different bytes: keys meet again.
    key.fill_with(|| random.u8(0..3));
    key
}

#[test]
fn a_walk_by_columns_shows_what_a_scan_shows() {
    case!().seeds(60, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let map = random_map(CONFIGURATIONS[seed as usize % 3], &mut random);
        for _ in 0..20 {
            let ends = [random_key(&mut random), random_key(&mut random)];
            let mut bound = |key| match random.u8(0..4) {
                0 => Bound::Unbounded,
                1 => Bound::Excluded(key),
                _ => Bound::Included(key),
            };
            let bounds = (bound(&ends[0][..]), bound(&ends[1][..]));
            let asked = (random.usize(0..12), random.usize(0..24));
            let mut entries = Vec::new();
            for direction in [Direction::Descending, Direction::Ascending] {
                entries.clear();
                let _ = map
                    .scan(bounds, direction, |key, value| {
                        entries.push((key.to_vec(), value.to_vec()));
                        ControlFlow::<()>::Continue(())
                    })
                    .unwrap();
            }
            assert_eq!(
                scanned(&map, bounds, asked),
                Shown::expected(&entries, asked),
                "{bounds:?}"
            );
        }
    });
}

#[test]
fn a_look_up_by_columns_shows_what_is_there() {
    case!().seeds(60, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let map = random_map(CONFIGURATIONS[seed as usize % 3], &mut random);
        for round in 0..8 {
            let count = random.usize(0..700);
            let mut keys: Vec<_> =
                std::iter::repeat_with(|| random_key(&mut random)).take(count).collect();
            if round % 2 == 0 {
                keys.sort();
            }
            let asked = (random.usize(0..12), random.usize(0..24));
            let found = |key: &Vec<u8>| Some((key.clone(), map.get(key).unwrap()?));
            let entries: Pairs = keys.iter().filter_map(found).collect();
            assert_eq!(looked_up(&map, &keys, asked), Shown::expected(&entries, asked));
        }
    });
}

#[test]
fn wide_columns_have_shorter_batches_and_all_entries() {
    let map = ChunkMap::new();
    let entry = |number: u32| (number.to_be_bytes().repeat(32), number.to_le_bytes().repeat(33));
    let entries: Pairs = (0..3_000).map(entry).collect();
    map.put_many(&entries).unwrap();
    let asked = (WIDTH_MAX, WIDTH_MAX);
    assert_eq!(scanned(&map, ALL, asked), Shown::expected(&entries, asked));
    assert_eq!(scanned(&map, ALL, (0, 0)).in_batches.len(), 3_000);
    assert_eq!(Widths::new(WIDTH_MAX + 1, 0).or(Widths::new(0, WIDTH_MAX + 1)), None);
}

#[test]
fn a_walk_ends_where_it_is_told_to() {
    let map = map(NASTIEST);
    for key in 0..5_000_u32 {
        // Some are too short.
        map.put(&key.to_be_bytes(), &vec![1; 8 - key as usize % 997 / 996]).unwrap();
    }
    let keys: Vec<_> = (0..5_000_u32).map(u32::to_be_bytes).collect();
    for pieces in 1..6 {
        let mut left = pieces;
        let mut until_none = |_: Piece<'_>| {
            left -= 1;
            if left == 0 { ControlFlow::Break("enough") } else { ControlFlow::Continue(()) }
        };
        let flow = match pieces % 2 {
            0 => map.scan_columns(ALL, widths((0, 8)), &mut until_none),
            _ => map.get_many_columns(&keys, widths((0, 8)), &mut until_none),
        };
        assert_eq!((flow.unwrap(), left), (ControlFlow::Break("enough"), 0));
    }
}

/// Closures change the map that is walked over, and walk over it, deeper than there are filters.
#[test]
fn closures_change_what_is_walked_over() {
    let map = map(NASTIEST);
    for key in 0..4_000_u32 {
        map.put(&key.to_be_bytes(), &key.to_le_bytes().repeat(1 + key as usize % 3)).unwrap();
    }
    fn walk(map: &ChunkMap, depth: u32) -> usize {
        let asked = (4, 8);
        let mut keys = BTreeSet::new();
        let flow = map.scan_columns(ALL, widths(asked), |piece| {
            let mut shown = Shown::default();
            let _ = shown.take(piece, asked);
            for (key, _) in shown.in_batches.into_iter().chain(shown.whole) {
                let number = u32::from_be_bytes(key[..4].try_into().unwrap());
                assert!(keys.insert(number), "{number} twice");
                // Even numbers stay.
                if number % 2 == 1 {
                    map.remove(&key[..4]).unwrap();
                } else if number % 64 == 0 {
                    map.update(&key[..4], |value| value[0] ^= 1).unwrap();
                }
            }
            if depth > 0 && keys.len() % 2 == 0 && keys.len() < 2_000 {
                assert!(walk(map, depth - 1) >= 2_000);
            }
            ControlFlow::<()>::Continue(())
        });
        assert!(flow.unwrap().is_continue());
        assert_eq!(keys.iter().filter(|number| *number % 2 == 0).count(), 2_000, "at {depth}");
        keys.len()
    }
    // So deep at the first piece alone.
    fn nest(map: &ChunkMap, depth: u32) {
        let flow = map.scan_columns(ALL, widths((4, 8)), |_| {
            if depth > 0 {
                nest(map, depth - 1);
            } else {
                assert_eq!(scanned(map, ALL, (4, 4)).in_batches.len(), 4_000);
                let keys: Vec<_> = (0..4_000_u32).map(|key| key.to_be_bytes().to_vec()).collect();
                assert_eq!(looked_up(map, &keys, (4, 4)).in_batches.len(), 4_000);
            }
            ControlFlow::Break(())
        });
        assert!(flow.unwrap().is_break());
    }
    nest(&map, 20);
    walk(&map, 1);
    map.check().unwrap();
}

#[test]
fn a_walk_inside_of_a_change_is_refused_at_the_changed_key() {
    let map = ChunkMap::new();
    for key in 0..100_u8 {
        map.put(&[key], &[key; 8]).unwrap();
    }
    let outcome = map.update(&[50], |_| {
        let scanned = map.scan_columns(ALL, widths((0, 8)), |_| ControlFlow::<()>::Continue(()));
        let key = |_: Piece<'_>| ControlFlow::<()>::Continue(());
        let looked_up = map.get_many_columns(&[[50]], widths((0, 8)), key);
        let beside = map.get_many_columns(&[[51]], widths((0, 8)), key);
        (scanned.map(drop), looked_up.map(drop), beside.map(drop))
    });
    assert_eq!(outcome.unwrap(), Some((Err(Error::Reentrant), Err(Error::Reentrant), Ok(()))));
    // A writer that decides has not changed anything yet.
    let decided = map.compute(&[50], |_| {
        assert_eq!(scanned(&map, ALL, (0, 8)).in_batches.len(), 100);
        Compute::Keep
    });
    decided.unwrap();
    let long = vec![0; sapwood_chunkmap::KEY_BYTES_MAX + 1];
    for key in [&[][..], &long] {
        let refused =
            map.get_many_columns(&[key], widths((0, 0)), |_| ControlFlow::<()>::Continue(()));
        assert!(matches!(refused, Err(Error::KeyLength { .. })));
    }
}

/// Values are whole, keys that stay are shown once each, and none twice, while threads change values in place and by
/// copies, insert and remove, chunks are replaced and records are moved.
#[test]
fn walks_beside_writers_show_whole_values_and_each_key_once() {
    const STABLE: u32 = 600;
    case!().seeds(6, |seed| {
        let map = map(CONFIGURATIONS[seed as usize % 3]);
        // A value is one byte, eight times or more.
        let fill = |byte: u8, len: usize| vec![byte; len];
        for number in 0..STABLE {
            map.put(&(number * 2).to_be_bytes(), &fill(0, 16)).unwrap();
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..2_u64 {
                let (map, is_over) = (&map, &is_over);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed * 7 + writer);
                    while !is_over.load(Ordering::Relaxed) {
                        let number = random.u32(0..STABLE);
                        let (stable, other) = (number * 2, number * 2 + 1);
                        let byte = random.u8(..);
                        match random.u8(0..8) {
                            0 => drop(
                                map.put(&other.to_be_bytes(), &fill(byte, 8 + number as usize % 9)),
                            ),
                            1 => drop(map.remove(&other.to_be_bytes())),
                            2 => {
                                drop(map.put(
                                    &stable.to_be_bytes(),
                                    &fill(byte, 8 + random.usize(0..20)),
                                ))
                            }
                            3 if random.u8(..) == 0 => map.compact(),
                            _ => {
                                let change = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
                                    value.iter_mut().for_each(|old| *old = byte);
                                };
                                map.update(&stable.to_be_bytes(), change).unwrap();
                            }
                        }
                    }
                });
            }
            let _at_end = AtEnd(&is_over);
            let keys: Vec<_> = (0..STABLE * 2).map(|key| key.to_be_bytes().to_vec()).collect();
            for round in 0..60 {
                let asked = (4, if round % 3 == 0 { 12 } else { 8 });
                let shown = match round % 2 {
                    0 => scanned(&map, ALL, asked),
                    _ => looked_up(&map, &keys, asked),
                };
                let mut seen = BTreeMap::new();
                for (key, value) in shown.in_batches.iter().chain(&shown.whole) {
                    assert!(value.iter().all(|byte| *byte == value[0]), "torn: {value:?}");
                    assert_eq!(seen.insert(key.clone(), ()), None, "{key:?} twice");
                }
                let stable = |number: u32| seen.contains_key(&(number * 2).to_be_bytes()[..]);
                assert!((0..STABLE).all(stable), "a key that was there is missing");
            }
        });
        map.check().unwrap();
    });
}
