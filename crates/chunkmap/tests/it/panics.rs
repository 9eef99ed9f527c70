//! A closure that panics leaves the map usable, and the value in the state that the docs say.

use crate::adapter::{ALL, CONFIGURATIONS, contents, map};
use sapwood_chunkmap::{ChunkMap, Compute, Direction, ValueMut};
use sapwood_testkit::case;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

/// What the closures throw: no message, no payload of another panic.
struct Thrown;

/// Runs `call`, which must throw.
#[track_caller]
fn throws<R>(call: impl FnOnce() -> R) {
    let thrown = catch_unwind(AssertUnwindSafe(call)).err().expect("the closure throws");
    assert!(thrown.is::<Thrown>(), "another panic came through");
}

/// Maps of every configuration with 20 keys, of which `key` is one in the middle; after `body`,
/// the map works for this thread and for others, and its invariants hold.
fn each(body: impl Fn(&ChunkMap, &[u8])) {
    for configuration in CONFIGURATIONS {
        let map = map(configuration);
        for index in 0..20u8 {
            map.put(&[b'k', index], b"before").unwrap();
        }
        body(&map, b"k\x0a");
        map.check().unwrap();
        std::thread::scope(|scope| {
            // Another thread would wait for ever for a lock that the panic left behind.
            scope.spawn(|| {
                for index in 0..20u8 {
                    map.put(&[b'k', index], b"after").unwrap();
                    assert_eq!(map.update(&[b'k', index], |value| value.len()), Ok(Some(5)));
                    assert_eq!(map.get(&[b'k', index]), Ok(Some(b"after".to_vec())));
                }
            });
        });
        assert_eq!(contents(&map).len(), 20);
        // Nor does this thread hold anything.
        map.update(b"k\x01", |_| map.put(b"k\x02", b"nested")).unwrap().unwrap().unwrap();
        map.clear().unwrap();
        map.check().unwrap();
        let stats = map.stats();
        assert_eq!((stats.entries, stats.key_bytes, stats.value_bytes), (0, 0, 0));
    }
}

#[test]
fn an_update_that_panics_leaves_exactly_what_it_had_written() {
    /// A change, and the value it leaves.
    type Case = (fn(&mut ValueMut<'_>), &'static [u8]);
    let cases: [Case; 7] = [
        (|_| (), b"before"),
        (|value| value[..3].copy_from_slice(b"XYZ"), b"XYZore"),
        (|value| value.resize(2).unwrap(), b"be"),
        (|value| value.resize(8).unwrap(), b"before\0\0"),
        (|value| value.set(&[b'l'; 5_000]).unwrap(), &[b'l'; 5_000]),
        (|value| value.set(b"").unwrap(), b""),
        (
            |value| {
                value.resize(9_000).unwrap();
                value.resize(1).unwrap();
                value.extend_from_slice(b"!").unwrap();
            },
            b"b!",
        ),
    ];
    case!().once(|| {
        for (change, expect) in cases {
            let change = |value: &mut ValueMut<'_>| {
                change(value);
                panic_any(Thrown)
            };
            each(|map, key| {
                throws(|| map.update(key, change));
                assert_eq!(map.get(key), Ok(Some(expect.to_vec())));
            });
            each(|map, key| {
                throws(|| map.put_if_absent_or_update(key, b"new", change));
                assert_eq!(map.get(key), Ok(Some(expect.to_vec())));
            });
            // While a reader is inside, the change goes to a copy; it counts all the same.
            each(|map, key| {
                let reader = map.floor(key).unwrap().unwrap();
                throws(|| map.update(key, change));
                assert_eq!(reader.value(), b"before");
                drop(reader);
                assert_eq!(map.get(key), Ok(Some(expect.to_vec())));
            });
        }
    });
}

#[test]
fn a_compute_that_panics_changes_nothing() {
    case!().once(|| {
        each(|map, key| {
            for key in [key, b"absent"] {
                let before = map.get(key);
                throws(|| map.compute(key, |_| panic_any(Thrown)));
                assert_eq!(map.get(key), before);
            }
            assert_eq!(map.len(), 20);
        });
    });
}

#[test]
fn a_reader_that_panics_lets_go() {
    case!().once(|| {
        each(|map, key| {
            throws(|| map.get_with(key, |_| panic_any(Thrown)));
            throws(|| map.get_many(&[&b"k\x01"[..], key], |_, _| panic_any(Thrown)));
            assert_eq!(map.get(key), Ok(Some(b"before".to_vec())));
        });
    });
}

#[test]
fn a_scan_that_panics_lets_go() {
    case!().once(|| {
        for direction in [Direction::Ascending, Direction::Descending] {
            each(|map, key| {
                let stop = |seen: &[u8]| match seen == key {
                    true => panic_any(Thrown),
                    false => ControlFlow::<()>::Continue(()),
                };
                throws(|| map.scan(ALL, direction, |key, _| stop(key)));
                throws(|| map.scan_keys(ALL, direction, stop));
                assert_eq!(map.len_exact(), 20);
            });
        }
    });
}

#[test]
fn a_removal_whose_reader_panics_has_removed() {
    case!().once(|| {
        each(|map, key| {
            throws(|| map.remove_with(key, |_| panic_any(Thrown)));
            assert_eq!(map.get(key), Ok(None));
            assert_eq!(map.len(), 19);
        });
    });
}

#[test]
fn a_panic_inside_nested_updates_unwinds_all_of_them() {
    case!().once(|| {
        each(|map, key| {
            throws(|| {
                map.update(b"k\x01", |outer| {
                    outer.set(b"outer").unwrap();
                    map.update(key, |inner| {
                        inner.set(b"inner").unwrap();
                        map.compute(b"k\x03", |_| -> Compute { panic_any(Thrown) })
                    })
                })
            });
            assert_eq!(map.get(b"k\x01"), Ok(Some(b"outer".to_vec())));
            assert_eq!(map.get(key), Ok(Some(b"inner".to_vec())));
            assert_eq!(map.get(b"k\x03"), Ok(Some(b"before".to_vec())));
        });
    });
}
