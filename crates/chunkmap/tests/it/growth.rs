//! Chunks that grow at one end stay whole when they split; those that grow everywhere are halved.

use sapwood_chunkmap::{ChunkMap, Options, OrderedStats};

use crate::adapter::{CONFIGURATIONS, map};

const COUNT: u32 = 60_000;

fn load(map: &ChunkMap, keys: impl Iterator<Item = [u8; 8]>) -> OrderedStats {
    keys.for_each(|key| assert_eq!(map.put(&key, b""), Ok(false)));
    map.check().expect("every invariant holds");
    map.stats()
}

/// The key of a number at one of a few places.
fn at(place: u32, number: u32) -> [u8; 8] {
    (u64::from(place) << 32 | u64::from(number)).to_be_bytes()
}

/// Entries of a chunk on average, as a share of the most it is built with.
fn fill(stats: &OrderedStats) -> f64 {
    stats.entries as f64 / stats.chunks as f64 / Options::default().chunk_entries as f64
}

fn index_bytes_an_entry(stats: &OrderedStats) -> f64 {
    stats.index_bytes as f64 / stats.entries as f64
}

#[test]
fn loads_in_either_order_leave_full_chunks() {
    let ascending = load(&ChunkMap::new(), (0..COUNT).map(|number| at(0, number)));
    let descending = load(&ChunkMap::new(), (0..COUNT).rev().map(|number| at(0, number)));
    for stats in [ascending, descending] {
        assert!(fill(&stats) > 0.97, "{stats:?}");
        assert!(index_bytes_an_entry(&stats) < 19.5, "{stats:?}");
        // Each chunk is copied once a delta until it is full, and not again.
        assert!(stats.rebalances < u64::from(COUNT) / 64 + 8, "{stats:?}");
    }
}

#[test]
fn appends_and_prepends_in_turn_at_a_few_places_leave_full_chunks() {
    for places in [2, 3, 16] {
        let ascending = (0..COUNT).map(|number| at(number % places, number));
        let descending = (0..COUNT).map(|number| at(number % places, COUNT - number));
        let both = (0..COUNT).map(|number| match number % places {
            place if place < places / 2 => at(place, COUNT - number),
            place => at(place, number),
        });
        let stats = [
            load(&ChunkMap::new(), ascending),
            load(&ChunkMap::new(), descending),
            load(&ChunkMap::new(), both),
        ];
        for stats in stats {
            assert!(fill(&stats) > 0.85, "{places} places: {}, {stats:?}", fill(&stats));
        }
    }
}

#[test]
fn keys_in_no_order_halve_chunks() {
    let mut numbers: Vec<u32> = (0..COUNT).collect();
    fastrand::Rng::with_seed(5).shuffle(&mut numbers);
    let stats = load(&ChunkMap::new(), numbers.iter().map(|number| at(0, *number)));
    assert!((0.6..0.85).contains(&fill(&stats)), "{}, {stats:?}", fill(&stats));
}

/// Runs of keys that each end soon: the side that grew is no small remainder.
#[test]
fn short_runs_leave_no_small_chunks() {
    let users = COUNT / 100;
    for descending in [false, true] {
        let order = |number: u32, count: u32| match descending {
            true => count - 1 - number,
            false => number,
        };
        let profiles = (0..users).map(|user| at(user, 0));
        let events =
            (0..users * 99).map(|number| at(order(number / 99, users), 1 + order(number % 99, 99)));
        let stats = load(&ChunkMap::new(), profiles.chain(events));
        assert!(fill(&stats) > 0.5, "{descending}: {}, {stats:?}", fill(&stats));
    }
}

#[test]
fn threads_that_append_to_one_place_leave_full_chunks() {
    let map = ChunkMap::new();
    let next = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if number >= COUNT {
                        return;
                    }
                    assert_eq!(map.put(&at(0, number), b""), Ok(false));
                }
            });
        }
    });
    map.check().expect("every invariant holds");
    assert_eq!(map.len_exact(), COUNT as usize);
    let stats = map.stats();
    assert!(fill(&stats) > 0.75, "{}, {stats:?}", fill(&stats));
}

/// Growth at one end beside removals, which leave tombstones in the run and dead records of its keys.
#[test]
fn growth_beside_removals_keeps_every_entry() {
    for configuration in CONFIGURATIONS {
        for descending in [false, true] {
            let map = map(configuration);
            let key = |number: u32| at(0, if descending { 3_000 - number } else { number });
            let put = |from: u32| {
                for number in (from..3_000).step_by(2) {
                    assert_eq!(map.put(&key(number), b"1"), Ok(false));
                    if number % 6 == from {
                        assert_eq!(map.remove(&key(number)), Ok(true));
                        assert_eq!(map.put(&key(number), b"2"), Ok(false));
                    }
                    if number % 10 == from {
                        assert_eq!(map.remove(&key(number)), Ok(true));
                    }
                }
            };
            std::thread::scope(|scope| {
                scope.spawn(|| put(0));
                scope.spawn(|| put(1));
            });
            map.check().expect("every invariant holds");
            assert_eq!(map.len_exact(), 2_400);
        }
    }
}
