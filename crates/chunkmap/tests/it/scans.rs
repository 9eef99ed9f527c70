//! Scans keep their promise while writers run, and what a guard shows stays.

use crate::adapter::{ALL, Adapter, CONFIGURATIONS, NASTIEST, map};
use sapwood_chunkmap::Direction;
use sapwood_testkit::case;
use sapwood_testkit::engine::{self, OrderedEngine as _, ScanForm};
use sapwood_testkit::interleave::{self, StartLine};
use sapwood_testkit::stress::Round;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

fn check(configuration: (usize, usize), round: &Round, seed: u64) {
    if let Err(told) = round.check(&Adapter::new(configuration), seed) {
        panic!("{configuration:?}, seed {seed}: {told}");
    }
}

#[test]
fn stable_keys_among_churning_ones() {
    case!().seeds(60, |seed| {
        let round = Round {
            scanner_count: 2,
            scans_per_scanner: 12,
            is_stable: |index| index % 4 == 0,
            ..Round::few_keys(3, 150, 40)
        };
        check(NASTIEST, &round, seed);
    });
}

#[test]
fn all_keys_churn() {
    case!().seeds(60, |seed| {
        let round =
            Round { scanner_count: 2, scans_per_scanner: 20, ..Round::few_keys(3, 120, 10) };
        check(NASTIEST, &round, seed);
    });
}

#[test]
fn many_keys_in_every_configuration() {
    case!().seeds(6, |seed| {
        for configuration in CONFIGURATIONS {
            let round = Round {
                scanner_count: 2,
                scans_per_scanner: 8,
                is_stable: |index| index % 3 == 0,
                ..Round::few_keys(3, 600, 300)
            };
            check(configuration, &round, seed);
        }
    });
}

/// Entries stay as they are under their guards while other threads change, remove and overwrite
/// them many times over, and reuse the memory of what they removed.
#[test]
fn guarded_entries_do_not_change_while_others_write() {
    case!().seeds(10, |seed| {
        let map = map(CONFIGURATIONS[seed as usize % 3]);
        let key = |index: u32| index.to_be_bytes();
        let value =
            |round: u32, index: u32| vec![round as u8 ^ index as u8; 10 + index as usize * 7];
        for index in 0..64 {
            map.put(&key(index), &value(0, index)).unwrap();
        }
        let held: Vec<_> = map.range(ALL).map(|entry| entry.unwrap()).collect();
        assert_eq!(held.len(), 64);
        std::thread::scope(|scope| {
            for thread in 0..3u32 {
                let map = &map;
                scope.spawn(move || {
                    for round in 1..20u32 {
                        for index in 0..64 {
                            match (round + index + thread) % 4 {
                                0 => {
                                    map.put(&key(index), &value(round, index)).unwrap();
                                }
                                1 => {
                                    map.remove(&key(index)).unwrap();
                                }
                                2 => {
                                    map.update(&key(index), |value| value.fill(0xEE)).unwrap();
                                }
                                _ => {
                                    let grow = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
                                        let len = value.len();
                                        value.resize(len + 33).unwrap();
                                    };
                                    map.put_if_absent_or_update(&key(index), b"new", grow).unwrap();
                                }
                            }
                        }
                    }
                });
            }
        });
        for (entry, index) in held.iter().zip(0u32..) {
            assert_eq!(entry.key(), key(index));
            assert_eq!(entry.value(), value(0, index));
        }
        drop(held);
        map.check().unwrap();
    });
}

/// An iterator that stands still does not hold writers up, and goes on where it stood.
#[test]
fn an_iterator_left_alone_goes_on_where_it_stood() {
    for configuration in CONFIGURATIONS {
        let map = map(configuration);
        for index in 0..1_000u32 {
            map.put(&(index * 2).to_be_bytes(), b"old").unwrap();
        }
        let mut up = map.range(ALL);
        let mut down = map.range(ALL).rev();
        for index in 0..100u32 {
            assert_eq!(up.next().unwrap().unwrap().key(), (index * 2).to_be_bytes());
            assert_eq!(down.next().unwrap().unwrap().key(), (1_998 - index * 2).to_be_bytes());
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for index in 0..1_000u32 {
                    map.put(&(index * 2 + 1).to_be_bytes(), b"odd").unwrap();
                    if index % 10 != 0 {
                        map.remove(&(index * 2).to_be_bytes()).unwrap();
                    }
                }
            });
        });
        let rest = |keys: &mut dyn Iterator<Item = Vec<u8>>| -> Vec<u32> {
            let number = |key: Vec<u8>| u32::from_be_bytes(key.try_into().expect("4 bytes"));
            keys.map(number).collect()
        };
        let up = rest(&mut up.map(|entry| entry.unwrap().key().to_vec()));
        assert!(up.is_sorted_by(|a, b| a < b) && up[0] > 198);
        let down = rest(&mut down.map(|entry| entry.unwrap().key().to_vec()));
        assert!(down.is_sorted_by(|a, b| a > b) && down[0] < 1_800);
        // These stayed all the time.
        for index in (0..1_000).step_by(10).map(|index| index * 2) {
            assert_eq!(up.contains(&index), index > 198, "{index} {configuration:?}");
            assert_eq!(down.contains(&index), index < 1_800, "{index} {configuration:?}");
        }
    }
}

#[test]
fn a_scan_stops_where_its_closure_says_and_returns_what_it_says() {
    let map = map(NASTIEST);
    for index in 0..50u8 {
        map.put(&[index], &[index; 3]).unwrap();
    }
    for (direction, stop) in [(Direction::Ascending, 30), (Direction::Descending, 10)] {
        let mut seen = 0;
        let flow = map.scan(ALL, direction, |key, value| {
            seen += 1;
            match key == [stop] {
                true => ControlFlow::Break((key.to_vec(), value.to_vec())),
                false => ControlFlow::Continue(()),
            }
        });
        assert_eq!(flow, Ok(ControlFlow::Break((vec![stop], vec![stop; 3]))));
        assert_eq!(seen, if stop == 30 { 31 } else { 40 });
    }
}

#[test]
fn bounds_mean_what_they_say() {
    let map = map(NASTIEST);
    for index in 0..20u8 {
        map.put(&[index], b"").unwrap();
    }
    let keys = |bounds: (Bound<&[u8]>, Bound<&[u8]>)| -> Vec<u8> {
        let ascending: Vec<u8> = map.range(bounds).map(|entry| entry.unwrap().key()[0]).collect();
        let mut descending: Vec<u8> =
            map.range(bounds).rev().map(|entry| entry.unwrap().key()[0]).collect();
        descending.reverse();
        assert_eq!(ascending, descending);
        ascending
    };
    let (five, nine) = (&[5][..], &[9][..]);
    assert_eq!(keys((Bound::Included(five), Bound::Excluded(nine))), [5, 6, 7, 8]);
    assert_eq!(keys((Bound::Excluded(five), Bound::Included(nine))), [6, 7, 8, 9]);
    assert_eq!(keys((Bound::Excluded(five), Bound::Excluded(five))), [0u8; 0]);
    assert_eq!(keys((Bound::Included(nine), Bound::Included(five))), [0u8; 0]);
    assert_eq!(keys((Bound::Included(&[]), Bound::Excluded(&[2]))), [0, 1]);
    assert_eq!(map.range(..&[3][..]).count(), 3);
    assert_eq!(map.range(&[18][..]..).count(), 2);
    assert_eq!(map.range(five..nine).count(), 4);
    assert_eq!(map.range(..).count(), 20);
}

/// Two threads that only read never see a key vanish that a third keeps replacing.
#[test]
fn a_replaced_key_is_never_missing() {
    case!().seeds(5, |seed| {
        let map = map(CONFIGURATIONS[seed as usize % 2]);
        for index in 0..8u8 {
            map.put(&[index], &[0; 20]).unwrap();
        }
        let done = AtomicBool::new(false);
        let start = StartLine::new(3);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    while !done.load(Ordering::Acquire) {
                        for direction in [Direction::Ascending, Direction::Descending] {
                            let mut seen = 0;
                            let see = |_: &[u8], value: &[u8]| {
                                seen += 1;
                                assert!(value.windows(2).all(|pair| pair[0] == pair[1]), "torn");
                                ControlFlow::<()>::Continue(())
                            };
                            map.scan(ALL, direction, see).unwrap().continue_value().unwrap();
                            assert_eq!(seen, 8, "{direction:?}");
                        }
                        assert_eq!(map.floor(&[5]).unwrap().unwrap().key(), [5]);
                        assert_eq!(map.ceiling(&[5]).unwrap().unwrap().key(), [5]);
                        assert_eq!(map.first().unwrap().unwrap().key(), [0]);
                        assert_eq!(map.last().unwrap().unwrap().key(), [7]);
                    }
                });
            }
            start.wait();
            for round in 0..4_000u32 {
                let len = [20, 90, 20, 300][round as usize % 4];
                map.put(&[(round * 5 % 8) as u8], &vec![round as u8; len]).unwrap();
            }
            done.store(true, Ordering::Release);
        });
    });
}

/// Keys that go and come back leave several entries in a chunk, which a rebalance may freeze at any
/// moment. Scans once looked such a key up afresh for each of its entries and showed it twice, and
/// iterators took the second entry for the end of the range.
#[test]
fn a_key_that_goes_and_comes_back_is_seen_once_and_hides_no_other() {
    const FIRST: &[u8] = b"a";
    const LAST: &[u8] = b"z";
    case!().seeds(6, |seed| {
        let engine = Adapter::new(NASTIEST);
        engine.0.put(FIRST, b"stays").unwrap();
        engine.0.put(LAST, b"stays").unwrap();
        let writing = AtomicUsize::new(6);
        let start = StartLine::new(8);
        std::thread::scope(|scope| {
            for thread in 0..6u64 {
                let (engine, writing, start) = (&engine, &writing, &start);
                scope.spawn(move || {
                    interleave::seed_thread(seed * 10 + thread);
                    start.wait();
                    for step in 0..3_000u32 {
                        let key = [b'm', (step % 3) as u8];
                        engine.0.remove(&key).unwrap();
                        interleave::pause();
                        engine.0.put(&key, &[b'x'; 50][..(step % 50) as usize]).unwrap();
                    }
                    writing.fetch_sub(1, Ordering::Release);
                });
            }
            for thread in 6..8u64 {
                let (engine, writing, start) = (&engine, &writing, &start);
                scope.spawn(move || {
                    interleave::seed_thread(seed * 10 + thread);
                    start.wait();
                    while writing.load(Ordering::Acquire) > 0 {
                        for form in ScanForm::ALL {
                            for way in [engine::Direction::Ascending, engine::Direction::Descending]
                            {
                                let pairs = engine.scan(form, ALL, way, usize::MAX).unwrap();
                                let mut keys: Vec<_> =
                                    pairs.into_iter().map(|pair| pair.0).collect();
                                if way == engine::Direction::Descending {
                                    keys.reverse();
                                }
                                let right = keys.is_sorted_by(|a, b| a < b)
                                    && keys.first().is_some_and(|key| key == FIRST)
                                    && keys.last().is_some_and(|key| key == LAST);
                                assert!(right, "{form:?} {way:?} saw {keys:?}");
                            }
                        }
                    }
                });
            }
        });
    });
}

/// How keys move in a test.
#[derive(Debug, Clone, Copy)]
enum Move {
    /// Away from where searches begin.
    Away,
    /// Towards it.
    Towards,
    /// To and fro, in the chunk where searches begin, of which other keys are outside of the bounds, and in the next.
    ToAndFro,
}

/// Keys that move, each put before the one before it is removed. There is always one of them, and a search once passed
/// over all of them to a key that stays behind.
#[test]
fn the_nearest_of_keys_that_move_is_one_of_them() {
    const STEPS: u64 = 600;
    const ORIGIN: u64 = 1_000_000;
    // The key that lies so far from where searches begin.
    let key = |direction: Direction, far: u64| match direction {
        Direction::Ascending => (ORIGIN + far).to_be_bytes(),
        Direction::Descending => (ORIGIN - far).to_be_bytes(),
    };
    let far = |way: Move, step: u64| match way {
        Move::Away => 1 + step,
        Move::Towards => 1 + STEPS - step,
        Move::ToAndFro => 1 + step * 5 % 8,
    };
    let directions = [Direction::Ascending, Direction::Descending];
    let ways = [Move::Away, Move::Towards, Move::ToAndFro];
    let ways = directions.into_iter().flat_map(|direction| ways.map(|way| (direction, way)));
    case!().seeds(2, |seed| {
        for (configuration, (direction, way)) in
            CONFIGURATIONS.into_iter().flat_map(|small| ways.clone().map(move |way| (small, way)))
        {
            let map = map(configuration);
            map.put(&key(direction, 2 * STEPS), b"stays").unwrap();
            if let Move::ToAndFro = way {
                for far in 0..8 {
                    map.put(&key(direction, far), b"about to go").unwrap();
                }
                let outside = match direction {
                    Direction::Ascending => key(Direction::Descending, 1),
                    Direction::Descending => key(Direction::Ascending, 1),
                };
                map.put(&outside, b"stays").unwrap();
                for far in 0..8 {
                    map.remove(&key(direction, far)).unwrap();
                }
            }
            map.put(&key(direction, far(way, 0)), b"moves").unwrap();
            let gone = AtomicU64::new(0);
            let start = StartLine::new(4);
            let search = |thread: u64| {
                interleave::seed_thread(seed * 10 + thread);
                start.wait();
                for turn in thread.. {
                    let from = gone.load(Ordering::Acquire);
                    if from == STEPS {
                        break;
                    }
                    let origin = key(direction, 0);
                    let has_bound = turn % 2 == 0 || matches!(way, Move::ToAndFro);
                    let found = match (direction, has_bound) {
                        (Direction::Ascending, false) => map.first(),
                        (Direction::Ascending, true) => map.higher(&origin),
                        (Direction::Descending, false) => map.last(),
                        (Direction::Descending, true) => map.lower(&origin),
                    };
                    let found = found.unwrap().expect("one stays").key().to_vec();
                    let to = gone.load(Ordering::Acquire);
                    assert!(
                        (from..=to + 1).any(|step| key(direction, far(way, step))[..] == found[..]),
                        "{configuration:?} {direction:?} {way:?}: {found:?} at step {from} to {to}"
                    );
                }
            };
            std::thread::scope(|scope| {
                let search = &search;
                for thread in 1..4 {
                    scope.spawn(move || search(thread));
                }
                interleave::seed_thread(seed * 10);
                start.wait();
                for step in 0..STEPS {
                    map.put(&key(direction, far(way, step + 1)), b"moves").unwrap();
                    interleave::pause();
                    assert!(map.remove(&key(direction, far(way, step))).unwrap());
                    gone.store(step + 1, Ordering::Release);
                }
            });
        }
    });
}
