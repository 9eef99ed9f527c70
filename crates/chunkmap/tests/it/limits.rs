//! At each limit: the last that is taken, the first that is refused, and nothing lost by it.

use crate::adapter::{ALL, CONFIGURATIONS, NASTIEST, bounded, contents, map};
use sapwood_chunkmap::{
    BatchError, ChunkMap, Compute, Direction, Error, KEY_BYTES_MAX, Options, VALUE_BYTES_MAX,
};
use sapwood_testkit::case;
use std::ops::{Bound, ControlFlow};

#[test]
fn keys_are_1_byte_to_64_kib() {
    for configuration in CONFIGURATIONS {
        let map = map(configuration);
        for len in [1, KEY_BYTES_MAX - 1, KEY_BYTES_MAX] {
            let key = vec![b'k'; len];
            assert_eq!(map.put(&key, b"v"), Ok(false));
            assert_eq!(map.get(&key), Ok(Some(b"v".to_vec())));
        }
        let held = contents(&map);
        for len in [0, KEY_BYTES_MAX + 1, 3 * KEY_BYTES_MAX] {
            let key = &vec![b'k'; len][..];
            let refused = Error::KeyLength { len };
            assert_eq!(map.get(key), Err(refused.clone()));
            assert_eq!(map.get_with(key, |_| ()), Err(refused.clone()));
            assert_eq!(map.contains_key(key), Err(refused.clone()));
            assert_eq!(map.put(key, b""), Err(refused.clone()));
            assert_eq!(map.put_if_absent(key, b""), Err(refused.clone()));
            assert_eq!(map.remove(key), Err(refused.clone()));
            assert_eq!(map.remove_with(key, |_| ()), Err(refused.clone()));
            assert_eq!(map.update(key, |_| ()), Err(refused.clone()));
            let upsert = map.put_if_absent_or_update(key, b"", |_| ());
            assert_eq!(upsert, Err(refused.clone()));
            assert_eq!(map.compute(key, |_| Compute::Remove), Err(refused.clone()));
            assert_eq!(map.get_many(&[key], |_, _| ()), Err(refused.clone()));
            let batch = map.put_many(&[(&b"a"[..], b"1"), (key, b"2"), (&b"b"[..], b"3")]);
            let error = refused.clone();
            assert_eq!(batch, Err(BatchError { done: 1, error }));
            assert_eq!(map.remove(b"a"), Ok(true));
            assert_eq!(contents(&map), held);
        }
        map.check().unwrap();
    }
}

/// Bounds of ranges are not keys: none is too short or too long for its place in the order.
#[test]
fn bounds_may_be_of_any_length() {
    let map = map(NASTIEST);
    for key in [&b"a"[..], b"b", b"c"] {
        map.put(key, b"").unwrap();
    }
    let beyond = vec![b'b'; 2 * KEY_BYTES_MAX];
    let count = |bounds: (Bound<&[u8]>, Bound<&[u8]>)| {
        let both = [Direction::Ascending, Direction::Descending].map(|direction| {
            let mut count = 0;
            let walked = map.scan(bounds, direction, |_, _| {
                count += 1;
                ControlFlow::<()>::Continue(())
            });
            assert_eq!(walked, Ok(ControlFlow::Continue(())));
            count
        });
        assert_eq!(both[0], both[1]);
        assert_eq!(map.range(bounds).count(), both[0]);
        assert_eq!(map.range(bounds).rev().count(), both[0]);
        both[0]
    };
    assert_eq!(count((Bound::Included(&[]), Bound::Unbounded)), 3);
    assert_eq!(count((Bound::Unbounded, Bound::Excluded(&[]))), 0);
    assert_eq!(count((Bound::Unbounded, Bound::Excluded(&beyond))), 2);
    assert_eq!(count((Bound::Excluded(&beyond), Bound::Unbounded)), 1);
}

#[test]
fn values_are_0_bytes_to_256_mib() {
    case!().alone(|| {
        let map = ChunkMap::new();
        assert_eq!(map.put(b"empty", b""), Ok(false));
        assert_eq!(map.get(b"empty"), Ok(Some(vec![])));
        assert_eq!(map.update(b"empty", |value| value.len()), Ok(Some(0)));

        let len = VALUE_BYTES_MAX + 1;
        let refused = Error::ValueLength { len };
        let mut huge = vec![0; len];
        huge[VALUE_BYTES_MAX - 1] = b'!';
        assert_eq!(map.put(b"k", &huge), Err(refused.clone()));
        assert_eq!(map.put_if_absent(b"k", &huge), Err(refused.clone()));
        let upsert = map.put_if_absent_or_update(b"k", &huge, |_| ());
        assert_eq!(upsert, Err(refused.clone()));
        assert_eq!(map.put_many(&[(b"k", &huge)]).unwrap_err().error, refused);
        assert_eq!(map.contains_key(b"k"), Ok(false));

        huge.truncate(VALUE_BYTES_MAX);
        assert_eq!(map.put(b"k", &huge), Ok(false));
        let ends = |value: &[u8]| (value.len(), value[0], value[value.len() - 1]);
        assert_eq!(map.get_with(b"k", ends), Ok(Some((VALUE_BYTES_MAX, 0, b'!'))));
        let grown = map.update(b"k", |value| {
            let one_more = value.resize(len);
            let appended = value.extend_from_slice(b"x");
            let overflowing = value.resize(usize::MAX);
            (one_more, appended, overflowing, ends(value))
        });
        let overflow = Error::ValueLength { len: usize::MAX };
        let kept = (VALUE_BYTES_MAX, 0, b'!');
        assert_eq!(grown, Ok(Some((Err(refused.clone()), Err(refused), Err(overflow), kept))));
        assert_eq!(map.stats().value_bytes, VALUE_BYTES_MAX as u64);
        assert_eq!(map.remove(b"k"), Ok(true));
        map.check().unwrap();
        // What one large value took is not kept for the next.
        map.trim();
        let reserved = map.stats().reserved_bytes;
        assert!(reserved < 8 << 20, "{reserved} bytes are still mapped");
    });
}

#[test]
fn options_that_cannot_work_are_refused() {
    let refused = |change: fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        ChunkMap::with_options(options).err()
    };
    let options =
        |error: Option<Error>| assert!(matches!(error, Some(Error::Options(_))), "{error:?}");
    options(refused(|options| options.chunk_entries = 0));
    options(refused(|options| options.chunk_entries = 1));
    options(refused(|options| options.chunk_entries = usize::MAX));
    options(refused(|options| options.block_bytes = 0));
    options(refused(|options| options.block_bytes = 5_000));
    options(refused(|options| options.block_bytes = 2 << 10));
    options(refused(|options| options.block_bytes = 32 << 20));
    let memory = refused(|options| options.memory_budget = Some(0));
    assert!(matches!(memory, Some(Error::OutOfMemory { budget: 0, .. })), "{memory:?}");
    assert_eq!(refused(|options| options.chunk_entries = 2), None);
}

/// Puts until the budget refuses; returns how many are in.
fn fill(map: &ChunkMap, value_len: usize) -> u32 {
    for index in 0u32.. {
        let value = vec![index as u8; value_len];
        match map.put(&index.to_be_bytes(), &value) {
            Ok(replaced) => assert!(!replaced),
            Err(Error::OutOfMemory { used, budget, .. }) => {
                assert!(used <= budget, "{used} of {budget} bytes in use");
                return index;
            }
            Err(other) => panic!("{other}"),
        }
    }
    unreachable!("the budget is finite")
}

#[test]
fn a_budget_refuses_with_nothing_lost_and_removal_makes_room() {
    case!().alone(|| {
        let cases =
            [(NASTIEST, 1 << 20), (CONFIGURATIONS[2], 1 << 20), (CONFIGURATIONS[4], 8 << 20)];
        for (configuration, budget) in cases {
            let map = bounded(configuration, Some(budget));
            let count = fill(&map, 1_000);
            assert!(u64::from(count) * 1_004 * 2 > budget, "{count} entries in {budget} bytes");
            let intact = |map: &ChunkMap| {
                for index in 0..count {
                    let value = vec![index as u8; 1_000];
                    assert_eq!(map.get(&index.to_be_bytes()), Ok(Some(value)));
                }
                assert_eq!(map.len_exact(), count as usize);
                map.check().unwrap();
            };
            intact(&map);
            let out = |error: Error| assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
            let (key, huge) = (&0u32.to_be_bytes()[..], &vec![1; budget as usize][..]);
            out(map.put(key, huge).unwrap_err());
            out(map.put_if_absent(b"new", huge).unwrap_err());
            out(map.put_if_absent_or_update(b"new", huge, |_| ()).unwrap_err());
            out(map.compute(key, |_| Compute::Replace(huge.to_vec())).unwrap_err());
            out(map.compute(b"new", |_| Compute::Replace(huge.to_vec())).unwrap_err());
            let grow = |value: &mut sapwood_chunkmap::ValueMut<'_>| {
                out(value.resize(huge.len()).unwrap_err());
                out(value.set(huge).unwrap_err());
                out(value.extend_from_slice(huge).unwrap_err());
            };
            map.update(key, grow).unwrap().unwrap();
            map.put_if_absent_or_update(key, b"", grow).unwrap();
            let batch = map.put_many(&[(key, &[0; 1_000][..]), (key, huge)]).unwrap_err();
            assert_eq!(batch.done, 1);
            out(batch.error);
            intact(&map);
            // Changes that need no memory go on; once a tenth is gone, entries can come and go.
            assert_eq!(map.update(key, |value| value.fill(9)), Ok(Some(())));
            assert_eq!(map.put(key, &[0; 1_000]), Ok(true));
            let tenth = count / 10;
            (0..tenth).for_each(|index| assert_eq!(map.remove(&index.to_be_bytes()), Ok(true)));
            for index in tenth..count {
                assert_eq!(map.remove(&index.to_be_bytes()), Ok(true));
                map.put(&(count + index).to_be_bytes(), &[7; 1_000])
                    .unwrap_or_else(|error| panic!("{configuration:?}, {index}: {error}"));
            }
            map.check().unwrap();
            // All of it goes, and as much fits again.
            map.clear().unwrap();
            let stats = map.stats();
            assert_eq!((stats.entries, stats.key_bytes, stats.value_bytes), (0, 0, 0));
            let again = fill(&map, 1_000);
            assert!(again * 100 >= count * 97, "{count} entries, then {again}");
        }
    });
}

/// Threads that meet the budget all the time lose nothing of what they were told is in.
#[test]
fn threads_at_the_budget_lose_nothing() {
    case!().seeds(6, |seed| {
        let map = bounded(CONFIGURATIONS[seed as usize % 3], Some(512 << 10));
        let (kept, refused) = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u8)
                .map(|thread| {
                    let map = &map;
                    scope.spawn(move || {
                        let mut model = std::collections::BTreeMap::new();
                        let mut refused = 0;
                        for step in 0..3_000u32 {
                            let key = vec![(step % 97) as u8, thread];
                            let value = vec![step as u8; (step as usize * 37) % 3_000];
                            if step % 5 == 4 {
                                let old = map.remove_with(&key, <[u8]>::to_vec).unwrap();
                                assert_eq!(old, model.remove(&key));
                                continue;
                            }
                            match map.put(&key, &value) {
                                Ok(replaced) => {
                                    assert_eq!(model.insert(key, value).is_some(), replaced);
                                }
                                Err(Error::OutOfMemory { .. }) => refused += 1,
                                Err(other) => panic!("{other}"),
                            }
                        }
                        (model, refused)
                    })
                })
                .collect();
            let mut kept = std::collections::BTreeMap::new();
            let mut refused = 0;
            for thread in threads {
                let (model, count) = thread.join().unwrap();
                kept.extend(model);
                refused += count;
            }
            (kept, refused)
        });
        assert!(refused > 0, "the budget was never met");
        assert_eq!(contents(&map), kept.into_iter().collect::<Vec<_>>());
        map.check().unwrap();
        let mut left = 0;
        for entry in map.range(ALL) {
            left += entry.unwrap().value().len() as u64;
        }
        assert_eq!(map.stats().value_bytes, left);
    });
}

/// Memory that was removed and has no readers serves again before the budget refuses.
#[test]
fn a_budget_counts_removed_bytes_no_longer_than_they_are_read() {
    case!().once(|| {
        for configuration in CONFIGURATIONS {
            // Room for a few values, but for fewer than wait together for their readers to leave.
            let map = bounded(configuration, Some(256 << 10));
            for step in 0..200usize {
                let value = vec![step as u8; 20_000 + step % 7 * 1_000];
                map.put(b"replaced", &value).unwrap();
                map.put(b"removed", &value).unwrap();
                assert_eq!(map.remove(b"removed"), Ok(true));
                let compute = |_: Option<&[u8]>| Compute::Replace(vec![1; 25_000]);
                map.compute(b"computed", compute).unwrap();
            }
            map.check().unwrap();
        }
    });
}
