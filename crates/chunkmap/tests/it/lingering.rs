//! A reader or a closure that stays holds back one record, however much others write meanwhile.
//!
//! Each case stays inside of the map in its own way while another thread replaces every entry many
//! times over. Nothing depends on time: the case goes on when the writing is done.

use crate::adapter::ALL;
use sapwood_chunkmap::{ChunkMap, Compute, Direction, Options};
use sapwood_testkit::case;
use std::ops::ControlFlow;

/// Live bytes, about.
const LIVE: u64 = ENTRIES as u64 * 1_000;
const ENTRIES: u32 = 8_000;
/// Entries that are written in one piece of the writing: all of them, eight times over.
const CHURN: u32 = 8 * ENTRIES;

/// Even keys come and go; odd ones stay as they are.
fn key(index: u32) -> [u8; 4] {
    (index * 2).to_be_bytes()
}

const STABLE: [u8; 4] = (ENTRIES + 1).to_be_bytes();

fn map(budget: Option<u64>) -> ChunkMap {
    let mut options = Options::default();
    options.memory_budget = budget;
    let map = ChunkMap::with_options(options).expect("valid options");
    for index in 0..ENTRIES {
        map.put(&key(index), &value(index)).unwrap();
    }
    map.put(&STABLE, b"stable").unwrap();
    map
}

/// Lengths vary, so that a put of a key that is there is a new record, too.
fn value(step: u32) -> Vec<u8> {
    vec![step as u8; 900 + (step % 3) as usize * 100]
}

/// Removes and puts `count` entries on a thread of its own.
fn churn(map: &ChunkMap, count: u32) {
    let write = || {
        for step in 0..count {
            let key = key(step.wrapping_mul(7_919) % ENTRIES);
            if step % 2 == 0 {
                assert_eq!(map.remove(&key), Ok(true), "every key is there between two steps");
            }
            map.put(&key, &value(step)).unwrap_or_else(|error| panic!("step {step}: {error}"));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(write).join().unwrap_or_else(|thrown| std::panic::resume_unwind(thrown));
    });
}

/// A way to stay inside: calls the writing at least once from there.
type Stay = (&'static str, fn(&ChunkMap, &dyn Fn()));

const READERS: &[Stay] = &[
    ("get_with", |map, write| {
        map.get_with(&STABLE, |_| write()).unwrap().unwrap();
    }),
    ("get_with of a value that is replaced meanwhile", |map, write| {
        let read = |value: &[u8]| {
            let before = value.to_vec();
            write();
            assert_eq!(value, before);
        };
        map.get_with(&key(1), read).unwrap().unwrap();
    }),
    ("get_many", |map, write| {
        map.get_many(&[STABLE, STABLE], |_, _| write()).unwrap();
    }),
    ("scan", |map, write| {
        let show = |_: &[u8], _: &[u8]| {
            write();
            ControlFlow::Break(())
        };
        assert_eq!(map.scan(&STABLE[..].., Direction::Ascending, show), Ok(ControlFlow::Break(())));
    }),
    ("scan down, from the middle of a chunk", |map, write| {
        let show = |_: &[u8], _: &[u8]| {
            write();
            ControlFlow::Break(())
        };
        let bounds = ..=&STABLE[..];
        assert_eq!(map.scan(bounds, Direction::Descending, show), Ok(ControlFlow::Break(())));
    }),
    ("scan_keys", |map, write| {
        let show = |key: &[u8]| {
            let before = key.to_vec();
            write();
            assert_eq!(key, before);
            ControlFlow::Break(())
        };
        assert_eq!(map.scan_keys(ALL, Direction::Ascending, show), Ok(ControlFlow::Break(())));
    }),
    ("scan inside of a scan", |map, write| {
        let nested = |_: &[u8]| {
            write();
            ControlFlow::Break(())
        };
        let show = |_: &[u8], _: &[u8]| map.scan_keys(ALL, Direction::Descending, nested).unwrap();
        assert_eq!(map.scan(ALL, Direction::Ascending, show), Ok(ControlFlow::Break(())));
    }),
    ("remove_with", |map, write| {
        map.put(b"removed", b"before").unwrap();
        let read = |value: &[u8]| {
            write();
            assert_eq!(value, b"before");
        };
        map.remove_with(b"removed", read).unwrap().unwrap();
    }),
    ("an entry", |map, write| {
        let entry = map.floor(&key(5)).unwrap().unwrap();
        let before = entry.to_owned();
        write();
        assert_eq!(entry.to_owned(), before);
    }),
    ("a hundred entries", |map, write| {
        let entries: Vec<_> = map.range(ALL).take(100).map(Result::unwrap).collect();
        let before: Vec<_> = entries.iter().map(|entry| entry.to_owned()).collect();
        write();
        let after: Vec<_> = entries.iter().map(|entry| entry.to_owned()).collect();
        assert_eq!(after, before);
    }),
    ("a leaked entry", |map, write| {
        std::mem::forget(map.first());
        write();
    }),
    ("a range", |map, write| {
        let mut range = map.range(ALL);
        range.next().unwrap().unwrap();
        range.next_back().unwrap().unwrap();
        write();
        assert_eq!(range.next().unwrap().unwrap().key(), key(1));
        assert_eq!(range.next_back().unwrap().unwrap().key(), key(ENTRIES - 2));
    }),
    ("a dump that is written slowly", |map, write| {
        struct Slow<'a>(&'a dyn Fn(), bool);
        impl std::io::Write for Slow<'_> {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                if !std::mem::replace(&mut self.1, true) {
                    (self.0)();
                }
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        map.dump(&mut Slow(write, false)).unwrap();
    }),
];

const WRITERS: &[Stay] = &[
    ("update", |map, write| {
        let change = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
            write();
            value.fill(b'!');
        };
        map.update(&STABLE, change).unwrap().unwrap();
        assert_eq!(map.get(&STABLE), Ok(Some(b"!!!!!!".to_vec())));
    }),
    ("update that grows the value afterwards", |map, write| {
        let change = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
            write();
            value.set(&[b'!'; 5_000])
        };
        map.update(&STABLE, change).unwrap().unwrap().unwrap();
        assert_eq!(map.get(&STABLE), Ok(Some(vec![b'!'; 5_000])));
    }),
    ("update of a copy", |map, write| {
        let reader = map.floor(&STABLE).unwrap().unwrap();
        let change = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
            write();
            value.fill(b'!');
        };
        map.update(&STABLE, change).unwrap().unwrap();
        assert_eq!(reader.value(), b"stable");
        assert_eq!(map.get(&STABLE), Ok(Some(b"!!!!!!".to_vec())));
    }),
    ("put_if_absent_or_update", |map, write| {
        let change = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
            value.extend_from_slice(b"!").unwrap();
            write();
        };
        map.put_if_absent_or_update(&STABLE, b"", change).unwrap();
        assert_eq!(map.get(&STABLE), Ok(Some(b"stable!".to_vec())));
    }),
    ("compute that replaces", |map, write| {
        let decide = |_: Option<&[u8]>| {
            write();
            Compute::Replace(vec![b'!'; 3_000])
        };
        map.compute(&STABLE, decide).unwrap();
        assert_eq!(map.get(&STABLE), Ok(Some(vec![b'!'; 3_000])));
    }),
    ("compute that removes", |map, write| {
        let decide = |_: Option<&[u8]>| {
            write();
            Compute::Remove
        };
        map.compute(&STABLE, decide).unwrap();
        assert_eq!(map.get(&STABLE), Ok(None));
    }),
    ("compute of an absent key", |map, write| {
        let decide = |_: Option<&[u8]>| {
            write();
            Compute::Replace(b"computed".to_vec())
        };
        map.compute(b"absent", decide).unwrap();
        assert_eq!(map.get(b"absent"), Ok(Some(b"computed".to_vec())));
    }),
    ("update that another reader and another writer wait for", |map, write| {
        let begun = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                begun.wait();
                let seen = map.get(&STABLE).unwrap().unwrap();
                assert!(seen == b"!!!!!!" || seen == b"??????");
            });
            scope.spawn(|| {
                begun.wait();
                map.update(&STABLE, |value| value.fill(b'?')).unwrap().unwrap();
            });
            let change = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
                begun.wait();
                write();
                value.fill(b'!');
            };
            map.update(&STABLE, change).unwrap().unwrap();
        });
    }),
    ("update that a scan and an iterator wait for", |map, write| {
        let begun = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                begun.wait();
                let show = |_: &[u8], value: &[u8]| ControlFlow::Break(value.to_vec());
                let seen = map.scan(&STABLE[..].., Direction::Ascending, show).unwrap();
                assert_eq!(seen, ControlFlow::Break(b"!!!!!!".to_vec()));
            });
            scope.spawn(|| {
                begun.wait();
                let seen = map.range(..=&STABLE[..]).next_back().unwrap().unwrap();
                assert_eq!(seen.value(), b"!!!!!!");
            });
            let change = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
                begun.wait();
                write();
                value.fill(b'!');
            };
            map.update(&STABLE, change).unwrap().unwrap();
        });
    }),
];

/// Without a budget, memory stays a small multiple of what is live; with one, nothing is refused.
fn stays_bounded((name, stay): &Stay) {
    let roomy = map(None);
    stay(&roomy, &|| churn(&roomy, CHURN));
    let stats = roomy.stats();
    assert!(
        stats.reserved_bytes < 3 * LIVE && stats.retired_bytes < LIVE / 4,
        "{name}: {} bytes are mapped, {} of them retired, for {LIVE} live ones",
        stats.reserved_bytes,
        stats.retired_bytes,
    );
    let tight = map(Some(2 * LIVE));
    stay(&tight, &|| churn(&tight, CHURN));
    for map in [&roomy, &tight] {
        map.check().unwrap_or_else(|corruption| panic!("{name}: {corruption}"));
    }
}

#[test]
fn readers_that_stay_hold_back_what_they_read() {
    case!().alone(|| READERS.iter().for_each(stays_bounded));
}

#[test]
fn closures_of_writers_that_stay_hold_back_what_they_write() {
    case!().alone(|| WRITERS.iter().for_each(stays_bounded));
}

/// A scan that lets writers work at each of its entries sees each key that stays once, in order.
#[test]
fn slow_scans_and_iterators_hold_back_nothing_and_miss_nothing() {
    /// Entries of the scan, and what is written at each of them.
    const STABLE_KEYS: u32 = 200;
    type Scan = (&'static str, fn(&ChunkMap, &mut dyn FnMut(&[u8])));
    let scans: [Scan; 6] = [
        ("scan", |map, see| {
            let show = |key: &[u8], _: &[u8]| {
                see(key);
                ControlFlow::<()>::Continue(())
            };
            let _ = map.scan(ALL, Direction::Ascending, show).unwrap();
        }),
        ("scan down", |map, see| {
            let show = |key: &[u8], _: &[u8]| {
                see(key);
                ControlFlow::<()>::Continue(())
            };
            let _ = map.scan(ALL, Direction::Descending, show).unwrap();
        }),
        ("scan_keys", |map, see| {
            let show = |key: &[u8]| {
                see(key);
                ControlFlow::<()>::Continue(())
            };
            let _ = map.scan_keys(ALL, Direction::Ascending, show).unwrap();
        }),
        ("scan_keys down", |map, see| {
            let show = |key: &[u8]| {
                see(key);
                ControlFlow::<()>::Continue(())
            };
            let _ = map.scan_keys(ALL, Direction::Descending, show).unwrap();
        }),
        ("range", |map, see| map.range(ALL).for_each(|entry| see(entry.unwrap().key()))),
        ("range from its end", |map, see| {
            map.range(ALL).rev().for_each(|entry| see(entry.unwrap().key()));
        }),
    ];
    case!().alone(|| {
        for (name, scan) in scans {
            let map = map(Some(2 * LIVE));
            let stable = |index: u32| (index * (2 * ENTRIES / STABLE_KEYS) + 1).to_be_bytes();
            map.remove(&STABLE).unwrap();
            for index in 0..STABLE_KEYS {
                map.put(&stable(index), b"stays").unwrap();
            }
            let mut seen: Vec<Vec<u8>> = Vec::new();
            scan(&map, &mut |key| {
                // Odd numbers stay; at each of them there is time for many writes.
                if key[3] % 2 == 1 {
                    churn(&map, 4 * CHURN / STABLE_KEYS);
                }
                seen.push(key.to_vec());
            });
            if name.contains("down") || name.contains("end") {
                seen.reverse();
            }
            assert!(seen.is_sorted_by(|a, b| a < b), "{name}: a key is shown twice or too late");
            seen.retain(|key| key[3] % 2 == 1);
            let all: Vec<_> = (0..STABLE_KEYS).map(|index| stable(index).to_vec()).collect();
            assert_eq!(seen, all, "{name}");
            map.check().unwrap();
        }
    });
}

/// What an entry held back is free when it goes, also where more entries were held than the count
/// in a record can tell.
#[test]
fn entries_that_go_give_back_what_they_held() {
    case!().alone(|| {
        let map = map(None);
        for _ in 0..3 {
            let held: Vec<_> = (0..70_000).map(|_| map.floor(&key(5)).unwrap().unwrap()).collect();
            map.put(&key(5), &[1; 3_000]).unwrap();
            map.trim();
            assert!(map.stats().retired_bytes > 0, "the entries keep their value");
            drop(held);
            map.trim();
            assert_eq!(map.stats().retired_bytes, 0);
        }
        map.check().unwrap();
    });
}
