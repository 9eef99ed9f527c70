//! Runs of new keys in batches: they go in together, and are what they are one by one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use sapwood_chunkmap::{ChunkMap, Direction, Error, KEY_BYTES_MAX, Options};

fn map(chunk_entries: usize, budget: Option<u64>) -> ChunkMap {
    let mut options = Options::default();
    (options.chunk_entries, options.block_bytes) = (chunk_entries, 4 << 10);
    options.memory_budget = budget;
    ChunkMap::with_options(options).expect("memory for an empty map")
}

/// Keys of different lengths, whose order is that of the numbers.
fn key(number: u32) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    key.extend((0..number % 13).map(|byte| byte as u8));
    key
}

fn entries(numbers: impl Iterator<Item = u32>) -> Vec<(Vec<u8>, Vec<u8>)> {
    numbers.map(|number| (key(number), vec![number as u8; number as usize % 40])).collect()
}

fn all(map: &ChunkMap) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    let flow = map.scan(.., Direction::Ascending, |key, value| {
        all.push((key.to_vec(), value.to_vec()));
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(flow, Ok(ControlFlow::Continue(())));
    all
}

#[test]
fn batches_with_runs_are_what_their_entries_are() {
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let map = map([2, 3, 8, 64, 512][seed as usize % 5], None);
        let mut model = BTreeMap::<Vec<u8>, Vec<u8>>::new();
        for _ in 0..30 {
            let mut numbers: Vec<u32> = Vec::new();
            for _ in 0..rng.usize(1..4) {
                let (begin, step) = (rng.u32(0..20_000), rng.u32(1..5));
                numbers.extend((0..rng.u32(0..1_000)).map(|number| begin + number * step));
            }
            match rng.u8(0..4) {
                0 => numbers.sort_unstable(),
                1 => numbers.reverse(),
                _ => {}
            }
            let batch = entries(numbers.into_iter());
            if rng.bool() {
                let mut replaced = 0;
                for (key, value) in &batch {
                    replaced += usize::from(model.insert(key.clone(), value.clone()).is_some());
                }
                assert_eq!(map.put_many(&batch), Ok(replaced), "seed {seed}");
            } else {
                let mut absent = 0;
                for (key, value) in &batch {
                    match model.get_mut(key) {
                        Some(known) => known.iter_mut().for_each(|byte| *byte ^= 1),
                        None => {
                            model.insert(key.clone(), value.clone());
                            absent += 1;
                        }
                    }
                }
                let change = |_, value: &mut sapwood_chunkmap::ValueMut<'_>| {
                    value.iter_mut().for_each(|byte| *byte ^= 1);
                };
                let inserted = map.put_if_absent_or_update_many(&batch, change);
                assert_eq!(inserted, Ok(absent), "seed {seed}");
            }
            for _ in 0..rng.usize(0..300) {
                let key = key(rng.u32(0..24_000));
                assert_eq!(map.remove(&key), Ok(model.remove(&key).is_some()), "seed {seed}");
            }
            map.check().expect("every invariant holds");
            assert_eq!(map.len(), model.len(), "seed {seed}");
        }
        assert!(all(&map).into_iter().eq(model), "seed {seed}");
    }
}

#[test]
fn a_run_is_one_rebalance() {
    for chunk_entries in [64, 512] {
        let map = map(chunk_entries, None);
        let batch = entries(0..6_000);
        assert_eq!(map.put_many(&batch), Ok(0));
        let stats = map.stats();
        // Three chunks a rebalance, and not one a delta.
        assert!(stats.rebalances <= 6_000 / (3 * chunk_entries as u64) + 1, "{stats:?}");
        assert!(stats.chunks <= 6_000 / chunk_entries as u64 + 1, "{stats:?}");
        // Between two keys that are there, and in front of them.
        let map = self::map(chunk_entries, None);
        let ends = [(key(0), vec![]), (key(9_999), vec![])];
        assert_eq!(map.put_many(&ends), Ok(0));
        assert_eq!(map.put_many(&entries(1..6_000)), Ok(0));
        let stats = map.stats();
        assert!(stats.rebalances <= 6_000 / (3 * chunk_entries as u64) + 2, "{stats:?}");
        map.check().expect("every invariant holds");
        assert_eq!(map.len(), 6_001);
    }
}

#[test]
fn a_batch_stops_at_the_entry_that_is_refused_within_a_run() {
    let map = map(8, None);
    let mut batch = entries(0..100);
    batch[57].0.resize(KEY_BYTES_MAX + 1, 0xff);
    let stopped = map.put_many(&batch).expect_err("the key is too long");
    assert_eq!(stopped.done, 57);
    assert!(matches!(stopped.error, Error::KeyLength { .. }), "{}", stopped.error);
    assert!(all(&map).into_iter().eq(batch[..57].to_vec()));
}

#[test]
fn runs_that_have_no_memory_go_in_as_far_as_it_lasts() {
    for pages in 4..60 {
        let map = map(8, Some(pages * 4096));
        let batch = entries(0..20_000);
        let stopped = map.put_many(&batch).expect_err("there are more entries than memory");
        assert!(matches!(stopped.error, Error::OutOfMemory { .. }), "{}", stopped.error);
        map.check().expect("every invariant holds");
        assert!(all(&map).into_iter().eq(batch[..stopped.done].to_vec()), "{pages} pages");
        // What was taken back is there for others.
        for (key, _) in &batch[..stopped.done] {
            assert_eq!(map.remove(key), Ok(true));
        }
        assert_eq!((map.len(), map.check()), (0, Ok(())));
    }
}

#[test]
fn threads_append_runs_beside_each_other_and_beside_readers() {
    const THREADS: u32 = 3;
    for chunk_entries in [2, 8, 512] {
        let map = map(chunk_entries, None);
        let done = AtomicBool::new(false);
        let per_batch = if chunk_entries == 2 { 7 } else { 150 };
        let batches = 60_000 / per_batch / if chunk_entries == 2 { 8 } else { 1 };
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let map = &map;
                    scope.spawn(move || {
                        for number in (thread..batches).step_by(THREADS as usize) {
                            let batch = entries(number * per_batch..(number + 1) * per_batch);
                            match number % 2 {
                                0 => assert_eq!(map.put_many(&batch), Ok(0)),
                                _ => assert_eq!(
                                    map.put_if_absent_or_update_many(&batch, |_, _| {
                                        panic!("each key comes once")
                                    }),
                                    Ok(per_batch as usize)
                                ),
                            }
                            let probe = key(number * per_batch + number % per_batch);
                            assert!(map.contains_key(&probe).expect("a fine key"));
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                let mut count = 0;
                while !done.load(Ordering::Acquire) {
                    let seen = all(&map);
                    assert!(seen.is_sorted_by(|(a, _), (b, _)| a < b));
                    assert!(seen.len() >= count, "keys are never removed");
                    count = seen.len();
                }
            });
            for writer in writers {
                writer.join().expect("no panic");
            }
            done.store(true, Ordering::Release);
        });
        map.check().expect("every invariant holds");
        assert!(all(&map).into_iter().eq(entries(0..batches * per_batch)));
    }
}
