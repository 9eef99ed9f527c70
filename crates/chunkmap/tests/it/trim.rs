//! Memory is given back after removals: some by itself, nearly all by `trim`.
//!
//! Judged by what the map says that it has mapped, never by time or by the process's own size.

use crate::adapter::{Adapter, CONFIGURATIONS, NASTIEST, bounded, contents, map};
use sapwood_chunkmap::{ChunkMap, Compute, Direction, Error};
use sapwood_testkit::case;
use sapwood_testkit::stress::Round;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// A key that says nothing about when it was put.
fn key(index: u64) -> [u8; 8] {
    index.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// `0..count` in an order without a pattern.
fn shuffled(count: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    order.sort_by_key(|index| (index + 7).wrapping_mul(0xD134_2543_DE82_EF95).rotate_left(23));
    order
}

/// How long the value of a key is.
type Len = fn(u64) -> usize;

fn hundred(_index: u64) -> usize {
    100
}

fn any_size(index: u64) -> usize {
    (index.wrapping_mul(0xA24B_AED4_963E_E407) >> 33) as usize % 4_001
}

fn load(map: &ChunkMap, indices: impl Iterator<Item = u64>, len: Len) {
    for index in indices {
        map.put(&key(index), &vec![index as u8; len(index)]).unwrap();
    }
}

fn reserved(map: &ChunkMap) -> u64 {
    map.stats().reserved_bytes
}

/// Two of the largest blocks, and never less than this: what a map may keep for the next burst
/// beside three times its data.
fn kept(configuration: (usize, usize)) -> u64 {
    2 * configuration.1.max(32 << 10) as u64
}

/// Exactly `indices` are there, and every invariant holds.
fn holds(map: &ChunkMap, indices: impl Iterator<Item = u64>, len: Len) {
    let mut pairs: Vec<_> =
        indices.map(|index| (key(index).to_vec(), vec![index as u8; len(index)])).collect();
    pairs.sort();
    assert!(contents(map) == pairs, "the map holds something else");
    map.check().unwrap();
}

/// A tenth of a load is left, here and there: how much memory stays, by itself and after `trim`?
fn nine_of_ten(configuration: (usize, usize), count: u64, len: Len) {
    let map = map(configuration);
    load(&map, 0..count, len);
    let loaded = reserved(&map);
    let order = shuffled(count);
    let (removed, left) = order.split_at(order.len() / 10 * 9);
    for index in removed {
        assert_eq!(map.remove(&key(*index)), Ok(true));
    }
    let fresh = crate::adapter::map(configuration);
    load(&fresh, left.iter().copied(), len);
    let wanted = reserved(&fresh);
    let alone = reserved(&map);
    // Chunks of two entries are not joined before they are empty: half of the index is air.
    let index = if configuration == NASTIEST { 2 } else { 1 };
    let told = format!("{configuration:?}: {loaded} bytes loaded, {wanted} wanted for a tenth");
    let most = wanted * index * 3 + kept(configuration);
    assert!(alone <= most, "{told}, {alone} reserved by itself");
    let given = map.trim();
    let trimmed = reserved(&map);
    let most = wanted * index * 5 / 4 + (64 << 10);
    assert!(trimmed <= most, "{told}, {trimmed} reserved after trim");
    assert_eq!(given, alone - trimmed, "{told}");
    holds(&map, left.iter().copied(), len);
}

#[test]
fn a_tenth_that_is_left_here_and_there_takes_little_more_than_a_fresh_load() {
    case!().once(|| {
        nine_of_ten(CONFIGURATIONS[4], 150_000, hundred);
        nine_of_ten(CONFIGURATIONS[3], 50_000, hundred);
        nine_of_ten(CONFIGURATIONS[2], 30_000, hundred);
        nine_of_ten(NASTIEST, 20_000, hundred);
    });
}

#[test]
fn a_tenth_of_values_of_any_size_takes_little_more_than_a_fresh_load() {
    case!().once(|| {
        nine_of_ten(CONFIGURATIONS[4], 40_000, any_size);
        nine_of_ten(CONFIGURATIONS[3], 20_000, any_size);
    });
}

/// Everything goes, in no order: how much memory stays?
fn none(configuration: (usize, usize), count: u64, len: Len) {
    let map = map(configuration);
    load(&map, 0..count, len);
    let loaded = reserved(&map);
    for index in shuffled(count) {
        assert_eq!(map.remove(&key(index)), Ok(true));
    }
    let alone = reserved(&map);
    let told = format!("{configuration:?}: {loaded} bytes loaded");
    assert!(alone <= kept(configuration), "{told}, {alone} reserved by itself when empty");
    map.trim();
    let trimmed = reserved(&map);
    assert!(trimmed <= 64 << 10, "{told}, {trimmed} reserved when empty and trimmed");
    holds(&map, 0..0, len);
    assert_eq!(map.trim(), 0, "{told}: nothing is left to give back");
}

#[test]
fn an_emptied_map_keeps_two_blocks_at_most() {
    case!().once(|| {
        for configuration in [CONFIGURATIONS[4], CONFIGURATIONS[3], CONFIGURATIONS[2]] {
            none(configuration, 60_000, hundred);
        }
        none(NASTIEST, 20_000, hundred);
        none(CONFIGURATIONS[4], 40_000, any_size);
        none(CONFIGURATIONS[3], 20_000, any_size);
    });
}

/// `clear` and the two ends empty a map as well as single removals do.
#[test]
fn however_a_map_is_emptied_it_keeps_two_blocks_at_most() {
    case!().once(|| {
        let empty: [fn(&ChunkMap); 4] = [
            |map| map.clear().unwrap(),
            |map| while map.pop_first().unwrap().is_some() {},
            |map| while map.pop_last().unwrap().is_some() {},
            |map| {
                for index in shuffled(40_000) {
                    map.compute(&key(index), |_| Compute::Remove).unwrap();
                }
            },
        ];
        for empty in empty {
            for configuration in [CONFIGURATIONS[4], CONFIGURATIONS[3]] {
                let map = map(configuration);
                load(&map, 0..40_000, hundred);
                empty(&map);
                let left = reserved(&map);
                assert!(left <= kept(configuration), "{configuration:?}: {left} bytes reserved");
                holds(&map, 0..0, hundred);
            }
        }
    });
}

/// Values that become short leave holes as removals do.
#[test]
fn values_that_shrink_give_their_memory_back() {
    case!().once(|| {
        for configuration in [CONFIGURATIONS[4], CONFIGURATIONS[3]] {
            let map = map(configuration);
            load(&map, 0..20_000, |_| 2_000);
            for index in shuffled(20_000) {
                assert_eq!(map.put(&key(index), &[index as u8; 20]), Ok(true));
            }
            let fresh = crate::adapter::map(configuration);
            load(&fresh, 0..20_000, |_| 20);
            let (alone, wanted) = (reserved(&map), reserved(&fresh));
            let told = format!("{configuration:?}: {wanted} wanted");
            assert!(alone <= wanted * 3 + kept(configuration), "{told}, {alone} by itself");
            map.trim();
            let trimmed = reserved(&map);
            assert!(trimmed <= wanted * 5 / 4 + (64 << 10), "{told}, {trimmed} after trim");
            holds(&map, 0..20_000, |_| 20);
        }
    });
}

/// A moved byte is paid for by removed ones: neither growth, nor churn at a constant size, nor
/// sizes that go up and down make a map move its entries to and fro.
#[test]
fn no_more_is_moved_than_was_removed() {
    case!().once(|| {
        for (configuration, live) in
            [(CONFIGURATIONS[4], 40_000), (CONFIGURATIONS[3], 20_000), (NASTIEST, 4_000)]
        {
            for len in [hundred as Len, |index| any_size(index) / 8] {
                let map = map(configuration);
                load(&map, 0..live, len);
                assert_eq!(map.stats().moved_bytes, 0, "{configuration:?}: growth moves nothing");
                // First in, first out, then in no order, then the size halves and doubles.
                let order = shuffled(live);
                for index in 0..live {
                    map.remove(&key(index)).unwrap();
                    load(&map, live + index..live + index + 1, len);
                }
                for index in &order {
                    map.remove(&key(live + index)).unwrap();
                    load(&map, *index..index + 1, len);
                }
                let mut removed: u64 = 2 * (0..live).map(|index| bytes(index, len)).sum::<u64>();
                let told = format!("{configuration:?}, {live} live");
                let moved = map.stats().moved_bytes;
                assert!(moved <= removed / 8, "{told}: {moved} bytes moved at a constant size");
                for _ in 0..4 {
                    for index in &order[..live as usize / 2] {
                        map.remove(&key(*index)).unwrap();
                        removed += bytes(*index, len);
                    }
                    load(&map, order[..live as usize / 2].iter().copied(), len);
                }
                let moved = map.stats().moved_bytes;
                assert!(moved <= removed, "{told}: {moved} bytes moved, {removed} removed");
                // What `trim` has done, it does not do again.
                map.trim();
                let (reserved, moved) = (reserved(&map), map.stats().moved_bytes);
                for _ in 0..10 {
                    map.trim();
                }
                let again = map.stats().moved_bytes - moved;
                assert!(again <= reserved / 4, "{told}: {again} of {reserved} bytes moved again");
                holds(&map, 0..live, len);
            }
        }
    });
}

fn bytes(index: u64, len: Len) -> u64 {
    16 + len(index) as u64
}

/// Within a budget that is used up, nothing is refused because of a move, and as much fits
/// afterwards as before.
#[test]
fn at_a_full_budget_removals_and_trims_succeed() {
    case!().once(|| {
        let cases = [
            (NASTIEST, 1 << 20),
            (CONFIGURATIONS[1], 1 << 20),
            (CONFIGURATIONS[2], 2 << 20),
            (CONFIGURATIONS[4], 16 << 20),
        ];
        for (configuration, budget) in cases {
            for len in [hundred as Len, any_size] {
                let map = bounded(configuration, Some(budget));
                let told = format!("{configuration:?} within {budget}");
                let fill = |from: u64| {
                    let mut index = from;
                    loop {
                        match map.put(&key(index), &vec![index as u8; len(index)]) {
                            Ok(replaced) => assert!(!replaced),
                            Err(Error::OutOfMemory { .. }) => return index,
                            Err(other) => panic!("{told}: {other}"),
                        }
                        index += 1;
                    }
                };
                let count = fill(0);
                let order = shuffled(count);
                let (removed, left) = order.split_at(order.len() / 10 * 9);
                for index in removed {
                    assert_eq!(map.remove(&key(*index)), Ok(true), "{told}");
                    assert!(reserved(&map) <= budget);
                }
                map.trim();
                let trimmed = reserved(&map);
                assert!(trimmed <= budget / 3, "{told}: {trimmed} reserved after trim");
                holds(&map, left.iter().copied(), len);
                // Other keys than before, so that nothing is where it was.
                let more = fill(count) - count;
                let fits = (more + left.len() as u64) * 100 >= count * 90;
                assert!(fits, "{told}: {count} entries fit, then {more} beside {}", left.len());
                map.trim();
                assert!(reserved(&map) <= budget);
                map.check().unwrap();
            }
        }
    });
}

/// `trim` in a loop while `work` runs.
fn trimming<R>(map: &ChunkMap, work: impl FnOnce() -> R) -> R {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Also when the work panics.
        let _stop = Stop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                map.trim();
            }
        });
        work()
    })
}

#[test]
fn operations_of_four_threads_stay_linearizable_beside_trim() {
    let moved = Cell::new(0);
    case!().seeds(60, |seed| {
        for configuration in [NASTIEST, CONFIGURATIONS[2]] {
            let engine = Adapter::trimming(configuration);
            if let Err(told) = Round::few_keys(4, 120, 5).check(&engine, seed) {
                panic!("{configuration:?}, seed {seed}: {told}");
            }
            moved.set(moved.get() + engine.0.stats().moved_bytes);
        }
    });
    assert!(moved.get() > 0, "the rounds would prove nothing");
}

/// Keys of each thread's own against a model, in a map that is sparse enough for every pass to
/// move a good part of it.
#[test]
fn four_threads_in_a_sparse_map_lose_nothing_beside_trim() {
    case!().seeds(3, |seed| {
        let mut moved = 0;
        for configuration in [NASTIEST, CONFIGURATIONS[2], CONFIGURATIONS[4]] {
            let map = map(configuration);
            let mut kept = trimming(&map, || {
                std::thread::scope(|scope| {
                    let threads: Vec<_> = (0..4u64)
                        .map(|thread| {
                            let map = &map;
                            scope.spawn(move || churn(map, seed * 4 + thread))
                        })
                        .collect();
                    let mut kept = Vec::new();
                    for thread in threads {
                        kept.extend(thread.join().unwrap());
                    }
                    kept
                })
            });
            kept.sort();
            assert!(contents(&map) == kept, "{configuration:?}: the map holds something else");
            map.check().unwrap();
            moved += map.stats().moved_bytes;
        }
        assert!(moved > 0, "nothing was moved");
    });
}

/// Fills, removes here and there, changes and reads what is left; answers what is there at the end.
fn churn(map: &ChunkMap, salt: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let name = |index: u64| [key(index), salt.to_be_bytes()].concat();
    let mut model = std::collections::BTreeMap::new();
    for round in 0..3u64 {
        for index in 0..1_500 {
            let value = vec![round as u8; any_size(index) / 10];
            let known = model.insert(name(index), value.clone()).is_some();
            assert_eq!(map.put(&name(index), &value), Ok(known));
        }
        for (at, index) in shuffled(1_500).into_iter().enumerate() {
            let name = name(index);
            if at % 8 != 0 {
                let value = map.remove_with(&name, <[u8]>::to_vec).unwrap();
                assert_eq!(value, model.remove(&name));
                continue;
            }
            assert_eq!(map.get(&name).unwrap().as_ref(), model.get(&name));
            let len = any_size(index + round) / 20;
            let change = |value: &mut Vec<u8>| {
                value.resize(len, 0);
                value.fill(index as u8);
            };
            let updated = map.update(&name, |value| {
                value.resize(len).unwrap();
                value.fill(index as u8);
            });
            assert_eq!(updated, Ok(Some(())));
            change(model.get_mut(&name).expect("put above"));
        }
        // The map is as sparse as it gets, whatever the trimming thread is at.
        map.trim();
        let (mut seen, low) = (0, &b""[..]);
        let flow = map.scan(low.., Direction::Ascending, |key, value| {
            if key.ends_with(&salt.to_be_bytes()) {
                assert_eq!(model.get(key).map(Vec::as_slice), Some(value));
                seen += 1;
            }
            ControlFlow::<()>::Continue(())
        });
        assert_eq!((flow, seen), (Ok(ControlFlow::Continue(())), model.len()));
    }
    model.into_iter().collect()
}

/// Inside closures, and beside entries and ranges: it returns, and the bytes that are shown stay.
#[test]
fn trim_inside_closures_moves_nothing_that_is_shown() {
    case!().once(|| {
        for configuration in [CONFIGURATIONS[4], CONFIGURATIONS[2], NASTIEST] {
            let count = 8_000;
            let order = shuffled(count);
            let (removed, left) = order.split_at(order.len() / 10 * 9);
            // What is removed inside is kept by the outer reader, so that passes find work.
            let sparse = || {
                let map = map(configuration);
                load(&map, 0..count, hundred);
                removed.iter().for_each(|index| assert!(map.remove(&key(*index)).unwrap()));
                map
            };
            let own = key(left[0]);
            let value = vec![left[0] as u8; 100];
            let map = sparse();
            let read = map.get_with(&own, |shown| {
                map.trim();
                assert_eq!(shown, value);
            });
            assert_eq!(read, Ok(Some(())));
            holds(&map, left.iter().copied(), hundred);

            let map = sparse();
            let entry = map.floor(&own).unwrap().expect("it is there");
            let mut range = map.range(&own[..]..);
            let first = range.next().expect("it is there").unwrap();
            map.trim();
            assert_eq!((entry.value(), first.value()), (&value[..], &value[..]));
            let behind = range.by_ref().map(|entry| entry.unwrap().key().to_vec());
            assert!(behind.is_sorted());
            drop((entry, first, range));
            map.trim();
            holds(&map, left.iter().copied(), hundred);

            let map = sparse();
            let update = map.update(&own, |shown| {
                map.trim();
                assert_eq!(**shown, value[..]);
                shown.fill(left[0] as u8);
            });
            assert_eq!(update, Ok(Some(())));
            let compute = map.compute(&own, |shown| {
                map.trim();
                assert_eq!(shown, Some(&value[..]));
                Compute::Keep
            });
            assert!(compute.is_ok());
            let flow = map.scan(.., Direction::Descending, |key, shown| {
                if key == own {
                    map.trim();
                    assert_eq!(shown, value);
                }
                ControlFlow::<()>::Continue(())
            });
            assert!(flow.is_ok());
            holds(&map, left.iter().copied(), hundred);
            map.trim();
            assert!(reserved(&map) <= 512 << 10, "{configuration:?}: {} bytes", reserved(&map));
        }
    });
}

/// A record that a reader holds keeps its block, and nothing else: later the rest goes, too.
#[test]
fn an_entry_that_is_held_delays_memory_and_loses_none() {
    case!().once(|| {
        let map = map(CONFIGURATIONS[3]);
        load(&map, 0..20_000, hundred);
        let entry = map.first().unwrap().expect("it is there");
        let shown = entry.to_owned();
        for index in shuffled(20_000) {
            assert_eq!(map.remove(&key(index)), Ok(true));
        }
        map.trim();
        assert_eq!(entry.to_owned(), shown);
        drop(entry);
        map.trim();
        assert!(reserved(&map) <= 64 << 10, "{} bytes reserved", reserved(&map));
        holds(&map, 0..0, hundred);
    });
}
