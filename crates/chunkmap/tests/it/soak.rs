//! Memory over a long life: what is removed is reused, what is dropped goes back to the system.
//!
//! Each test has a process of its own: a thread that stays pinned for another test would keep
//! memory from being reused here.
//!
//! Sizes are those of a smoke run; `SAPWOOD_SOAK=full` runs the long ones, best with `--release`.

use crate::adapter::{CONFIGURATIONS, NASTIEST, bounded, map};
use sapwood_chunkmap::{ChunkMap, Error, OrderedStats};
use sapwood_testkit::case;
use sapwood_testkit::case::Case;
use std::time::Duration;

fn sized(smoke: u64, full: u64) -> u64 {
    match std::env::var("SAPWOOD_SOAK").as_deref() {
        Ok("full") => full,
        Ok(other) => panic!("SAPWOOD_SOAK={other}: only `full` has a meaning"),
        Err(_) => smoke,
    }
}

/// The long sizes take minutes, on a slow machine many.
fn long(case: Case) -> Case {
    case.hangs_after(Duration::from_secs(sized(300, 7_200)))
}

/// xorshift64*: these loops want a stream of numbers that costs nothing beside the map.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 33) % limit
    }
}

/// Nothing is live in `map`, to the byte.
fn assert_empty(map: &ChunkMap) {
    map.check().unwrap();
    assert_eq!(map.len_exact(), 0);
    let OrderedStats { entries, key_bytes, value_bytes, .. } = map.stats();
    assert_eq!((entries, key_bytes, value_bytes), (0, 0, 0));
}

#[test]
fn a_budget_reached_and_released_is_reached_again_with_as_much_in_it() {
    long(case!()).alone(|| {
        for configuration in CONFIGURATIONS {
            let budget = sized(6 << 20, 256 << 20);
            let map = bounded(configuration, Some(budget));
            let mut counts = Vec::new();
            for round in 0..3u64 {
                // The same sizes in another order of keys each time.
                let mut sizes = Numbers(7);
                let mut count = 0u64;
                let key =
                    |index: u64| (index ^ round).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
                loop {
                    match map.put(&key(count), &vec![1; sizes.below(2_000) as usize]) {
                        Ok(_) => count += 1,
                        Err(Error::OutOfMemory { .. }) => break,
                        Err(other) => panic!("{other}"),
                    }
                }
                assert_eq!(map.len_exact() as u64, count);
                assert!(map.stats().reserved_bytes <= budget);
                match round {
                    0 => (0..count).for_each(|index| assert_eq!(map.remove(&key(index)), Ok(true))),
                    1 => while map.pop_last().unwrap().is_some() {},
                    _ => map.clear().unwrap(),
                }
                assert_empty(&map);
                counts.push(count);
            }
            let least = counts.iter().min().unwrap();
            assert!(least * 100 >= counts[0] * 95, "{configuration:?}: {counts:?}");
        }
    });
}

#[test]
fn without_a_budget_a_second_round_takes_no_more_memory_than_the_first() {
    long(case!()).alone(|| {
        for configuration in CONFIGURATIONS {
            let map = map(configuration);
            let mut reserved = Vec::new();
            for round in 0..3u64 {
                let mut sizes = Numbers(11);
                for index in 0..sized(5_000, 500_000) {
                    let key = (index ^ round).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
                    map.put(&key, &vec![1; sizes.below(2_000) as usize]).unwrap();
                }
                reserved.push(map.stats().reserved_bytes);
                map.clear().unwrap();
                assert_empty(&map);
            }
            let most = reserved.iter().max().unwrap();
            assert!(most * 100 <= reserved[0] * 110, "{configuration:?}: {reserved:?}");
        }
    });
}

/// Puts `count` keys in the order of `key`, each but the `live` latest removed again in that
/// order; returns the stats after each tenth.
fn churn(map: &ChunkMap, live: u64, count: u64, key: impl Fn(u64) -> Vec<u8>) -> Vec<OrderedStats> {
    let mut tenths = Vec::new();
    for index in 0..count {
        map.put(&key(index), &[7; 50]).unwrap();
        if index >= live {
            map.remove(&key(index - live)).unwrap();
        }
        if (index + 1) % (count / 10) == 0 {
            tenths.push(map.stats());
        }
    }
    assert_eq!(map.len_exact() as u64, live.min(count));
    map.check().unwrap();
    tenths
}

/// From the third tenth on, memory and chunks stay what they are.
fn assert_flat(what: &str, tenths: &[OrderedStats]) {
    let early = tenths[..4].iter();
    let reserved = early.clone().map(|stats| stats.reserved_bytes).max().unwrap();
    let chunks = early.map(|stats| stats.chunks).max().unwrap();
    for stats in &tenths[4..] {
        let flat =
            stats.reserved_bytes * 100 <= reserved * 115 && stats.chunks * 100 <= chunks * 125;
        let told: Vec<_> =
            tenths.iter().map(|stats| (stats.reserved_bytes, stats.chunks)).collect();
        assert!(flat, "{what}: bytes reserved and chunks after each tenth: {told:?}");
    }
}

#[test]
fn first_in_first_out_churn_keeps_memory_flat() {
    long(case!()).alone(|| {
        for configuration in [CONFIGURATIONS[4], CONFIGURATIONS[2], NASTIEST] {
            let (live, count) = (sized(3_000, 10_000), sized(150_000, 10_000_000));
            let tenths =
                churn(&map(configuration), live, count, |index| index.to_be_bytes().into());
            assert_flat(&format!("{configuration:?}"), &tenths);
        }
    });
}

/// Keys that arrive a little out of order empty their chunks one by one, in no order.
#[test]
fn churn_a_little_out_of_order_keeps_memory_flat() {
    long(case!()).alone(|| {
        for configuration in [CONFIGURATIONS[4], CONFIGURATIONS[2], NASTIEST] {
            let (live, count) = (sized(3_000, 10_000), sized(150_000, 10_000_000));
            let jittered = |index: u64| {
                let mut numbers = Numbers(index * 2 + 1);
                numbers.next();
                let key = index * 16 + numbers.below(live * 32);
                [&key.to_be_bytes()[..], &index.to_be_bytes()[..]].concat()
            };
            let tenths = churn(&map(configuration), live, count, jittered);
            assert_flat(&format!("{configuration:?}"), &tenths);
        }
    });
}

/// The keys stay, their values change size as `len` says for each of `steps`; the most memory of
/// the last two cycles is what it was in the first two.
fn resize(what: &str, configuration: (usize, usize), steps: u64, len: impl Fn(u64, u64) -> u64) {
    const KEYS: u64 = 400;
    let map = map(configuration);
    let (mut peaks, mut data_peak) = (Vec::new(), 0);
    for cycle in 0..4 {
        let mut peak = 0;
        for step in 0..steps {
            for key in 0..KEYS {
                let len = len(step, key) as usize;
                let key = key.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
                match (step + cycle) % 3 {
                    0 => {
                        map.put(&key, &vec![1; len]).unwrap();
                    }
                    1 => {
                        map.put_if_absent_or_update(&key, &vec![2; len], |value| value.resize(len))
                            .unwrap();
                    }
                    _ => {
                        map.update(&key, |value| value.set(&vec![3; len])).unwrap();
                    }
                }
            }
            let stats = map.stats();
            peak = stats.reserved_bytes.max(peak);
            data_peak = (stats.key_bytes + stats.value_bytes).max(data_peak);
        }
        peaks.push(peak);
    }
    map.check().unwrap();
    let most = peaks.iter().max().unwrap();
    let told = format!("{what}, {configuration:?}: peaks {peaks:?} for {data_peak} bytes of data");
    let early = peaks[0].max(peaks[1]);
    assert!(most * 100 <= early * 115 + (64 << 10) * 100, "{told}");
    assert!(*most <= data_peak * 2 + (6 << 20), "{told}");
    map.clear().unwrap();
    assert_empty(&map);
}

#[test]
fn values_that_grow_and_shrink_keep_memory_flat() {
    long(case!()).alone(|| {
        let steps = sized(30, 1_000);
        for configuration in [CONFIGURATIONS[4], CONFIGURATIONS[2], NASTIEST] {
            let any = |step: u64, key: u64| Numbers(step * 1_000 + key + 1).next() >> 52;
            resize("any size", configuration, steps, any);
            let drift = |step: u64, key: u64| {
                let height = step.min(steps - step) * 2;
                height * 6_000 / steps + key % 64
            };
            resize("all drift up, then down", configuration, steps, drift);
            let edge = |step: u64, key: u64| (1 << ((step + key) % 13)) + key % 3;
            resize("around powers of two", configuration, steps, edge);
            let one_large = |step: u64, key: u64| match (step + key) % 400 {
                0 => 300_000,
                _ => key % 50,
            };
            resize("one large at a time", configuration, steps, one_large);
            let saw = |step: u64, key: u64| (step % 10) * 150 + key;
            resize("grow by pieces, then fall", configuration, steps, saw);
        }
    });
}

#[test]
fn an_empty_table_costs_under_64_kib() {
    long(case!()).alone(|| {
        for configuration in CONFIGURATIONS {
            let map = map(configuration);
            let OrderedStats { reserved_bytes, table_bytes, .. } = map.stats();
            assert!(
                reserved_bytes + table_bytes < 64 << 10,
                "{configuration:?}: {:?}",
                map.stats()
            );
            // Nor does it cost more once it was full, is empty again, and was asked to give back.
            for index in 0..10_000u32 {
                map.put(&index.to_be_bytes(), &[1; 300]).unwrap();
            }
            map.clear().unwrap();
            assert_empty(&map);
            map.trim();
            let OrderedStats { reserved_bytes, .. } = map.stats();
            assert!(reserved_bytes <= 64 << 10, "{configuration:?}: {:?}", map.stats());
        }
    });
}

/// Resident memory of this process, bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    let kib = line.split_whitespace().nth(1).expect("a figure");
    kib.parse::<u64>().expect("a number") << 10
}

#[test]
#[cfg_attr(asan, ignore = "the sanitizer's own memory drowns the figures")]
fn a_dropped_table_gives_its_memory_back_to_the_system() {
    long(case!()).alone(|| {
        let before = resident();
        let data = sized(100 << 20, 2 << 30);
        for configuration in [CONFIGURATIONS[4], CONFIGURATIONS[3]] {
            let map = map(configuration);
            for index in 0..data / 1_024 {
                map.put(&index.to_be_bytes(), &[1; 1_016]).unwrap();
            }
            let filled = resident();
            assert!(filled > before + data, "{before} before, {filled} with {data} in it");
            drop(map);
            let after = resident();
            assert!(
                after < before + data / 20,
                "{before} before, {filled} with data, {after} after"
            );
        }
    });
}

#[test]
#[cfg_attr(asan, ignore = "the sanitizer's own memory drowns the figures")]
fn a_thousand_empty_tables_cost_under_64_mb() {
    long(case!()).alone(|| {
        let before = resident();
        let maps: Vec<ChunkMap> = (0..1_000).map(|_| ChunkMap::new()).collect();
        let used = resident() - before;
        assert!(used < 64_000_000, "{used} bytes for {} empty tables", maps.len());
        // With an entry each they are hardly more.
        for map in &maps {
            map.put(b"key", b"value").unwrap();
        }
        let used = resident() - before;
        assert!(used < 64_000_000, "{used} bytes for {} small tables", maps.len());
    });
}

/// No thread leaves anything behind: neither in the table nor in the process.
#[test]
#[cfg_attr(asan, ignore = "the sanitizer's own memory drowns the figures")]
fn twelve_hundred_threads_over_a_lifetime() {
    long(case!()).alone(|| {
        let map = map(CONFIGURATIONS[2]);
        let (mut reserved, mut residents) = (Vec::new(), Vec::new());
        for group in 0..150u64 {
            std::thread::scope(|scope| {
                for thread in 0..8u64 {
                    let map = &map;
                    scope.spawn(move || {
                        for step in 0..40u64 {
                            let key = (step * 8 + thread).to_be_bytes();
                            map.put(&key, &vec![1; (group * 13 + step) as usize % 400]).unwrap();
                            map.update(&key, |value| value.resize(step as usize * 10)).unwrap();
                            if step % 3 == 0 {
                                map.remove(&key).unwrap();
                            }
                        }
                    });
                }
            });
            if group % 15 == 14 {
                // What is retired and what is sparse come and go: without both.
                map.trim();
                reserved.push(map.stats().reserved_bytes);
                residents.push(resident());
            }
        }
        assert_eq!(map.len_exact(), 26 * 8);
        map.check().unwrap();
        let told = format!("after each tenth: reserved {reserved:?}, resident {residents:?}");
        // A few pages more or less, as threads happened to meet.
        assert!(reserved[9] <= reserved[3] * 2, "{told}");
        assert!(residents[9] <= residents[3] + (4 << 20), "{told}");
    });
}

/// A reader that stays in one table holds back nothing in another.
#[test]
fn a_reader_in_one_table_keeps_no_memory_of_another() {
    long(case!()).alone(|| {
        let (read, churned) = (map(CONFIGURATIONS[2]), bounded(CONFIGURATIONS[2], Some(1 << 20)));
        read.put(b"key", b"value").unwrap();
        let entry = read.first().unwrap().expect("just put");
        let within = read.get_with(b"key", |value| {
            for index in 0..sized(20_000, 2_000_000) {
                churned.put(&(index % 50).to_be_bytes(), &vec![1; index as usize % 3_000]).unwrap();
            }
            value.to_vec()
        });
        assert_eq!(within, Ok(Some(b"value".to_vec())));
        assert_eq!(entry.value(), b"value");
        churned.check().unwrap();
    });
}

/// A thread that outlives many tables keeps nothing of them.
#[test]
#[cfg_attr(asan, ignore = "the sanitizer's own memory drowns the figures")]
fn ten_thousand_tables_in_the_life_of_a_thread() {
    long(case!()).alone(|| {
        let mut residents = Vec::new();
        let kept = ChunkMap::new();
        for index in 0..10_000u32 {
            let map = map(CONFIGURATIONS[4]);
            map.put(b"key", &[1; 2_000]).unwrap();
            map.put(b"key", &[2; 20]).unwrap();
            kept.put(b"index", &index.to_be_bytes()).unwrap();
            drop(map);
            if index % 1_000 == 999 {
                residents.push(resident());
            }
        }
        assert!(residents[9] <= residents[1] + (2 << 20), "after each tenth: {residents:?}");
    });
}
