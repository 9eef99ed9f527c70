//! Ranks against a `BTreeMap`, of all kinds of trees, and beside a writer.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sapwood_ptree::{Pool, PoolOptions, Tree, TreeLayout};

use crate::model::KINDS;

type Oracle = BTreeMap<Vec<u8>, Vec<u8>>;

/// Numbers of 8 bytes, or texts that share long beginnings, of which some are what others begin with.
fn key(layout: TreeLayout, number: u64) -> Vec<u8> {
    match layout {
        TreeLayout::Fixed => number.to_be_bytes().to_vec(),
        TreeLayout::Bytes => format!("a prefix of many bytes/{:b}", number % 5_000).into_bytes(),
    }
}

fn rank_of(oracle: &Oracle, key: &[u8]) -> u64 {
    oracle.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key))).count() as u64
}

fn agree(tree: &Tree, oracle: &Oracle, rng: &mut ChaCha8Rng) {
    let layout = tree.layout();
    assert_eq!(tree.count(..).expect("counted"), oracle.len() as u64);
    let [one, other] = [(); 2].map(|()| key(layout, rng.random_range(0..6_000)));
    assert_eq!(tree.rank(&one).expect("counted"), rank_of(oracle, &one), "{one:?}");
    let (low, high) = (one.clone().min(other.clone()), one.max(other));
    let mut bound = |key| match rng.random_range(0..8) {
        0 => Bound::Unbounded,
        1..4 => Bound::Excluded(key),
        _ => Bound::Included(key),
    };
    let range = (bound(&low[..]), bound(&high[..]));
    // The oracle refuses what is no range.
    if range != (Bound::Excluded(&low[..]), Bound::Excluded(&low[..])) {
        let expected = oracle.range::<[u8], _>(range).count() as u64;
        assert_eq!(tree.count(range).expect("counted"), expected, "{range:?}");
    }
    let rank = rng.random_range(0..oracle.len() + 2);
    let expected = oracle.iter().nth(rank).map(|(key, value)| (key.clone(), value.clone()));
    assert_eq!(tree.nth(rank as u64).expect("found"), expected, "of rank {rank}");
}

#[test]
fn ranks_are_those_of_the_oracle() {
    for kind in KINDS {
        for layout in [TreeLayout::Fixed, TreeLayout::Bytes] {
            for seed in 0..3 {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
                let tree = pool.create_tree("t", kind, layout).expect("made");
                let other = pool.create_tree("other", kind, layout).expect("made");
                let mut oracle = Oracle::new();
                for _ in 0..400 {
                    let tx = pool.begin().expect("begun");
                    let mut after = oracle.clone();
                    // Few changes, or as many as leave no sum.
                    let changes =
                        if rng.random_ratio(1, 30) { 1_500 } else { rng.random_range(0..12) };
                    let grows = rng.random_ratio(2, 3);
                    for _ in 0..changes {
                        let key = key(layout, rng.random_range(0..6_000));
                        if rng.random_ratio(if grows { 4 } else { 1 }, 5) {
                            let value = rng.random::<u64>().to_le_bytes();
                            tx.put(&tree, &key, value).expect("put");
                            after.insert(key, value.to_vec());
                        } else {
                            tx.remove(&tree, &key).expect("removed");
                            after.remove(&key);
                        }
                    }
                    tx.put(&other, key(layout, rng.random_range(0..6_000)), [1; 8]).expect("put");
                    if rng.random_ratio(1, 100) {
                        tx.clear(&tree).expect("cleared");
                        after.clear();
                    }
                    if rng.random_ratio(1, 4) {
                        // What it has not committed is counted nowhere, now or later.
                        agree(&tree, &oracle, &mut rng);
                    }
                    if rng.random_ratio(1, 8) {
                        tx.abort();
                    } else {
                        tx.commit().expect("committed");
                        oracle = after;
                    }
                    agree(&tree, &oracle, &mut rng);
                }
            }
        }
    }
}

/// Each transaction moves one entry across a border, and so changes no sum of both sides.
#[test]
fn a_count_is_of_one_moment() {
    const ENTRIES: u64 = 4_000;
    for kind in KINDS {
        let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
        let tree = pool.create_tree("t", kind, TreeLayout::Fixed).expect("made");
        let key = |number: u64| number.to_be_bytes();
        let entries = (0..ENTRIES).map(|number| (key(number * 2), [0; 8]));
        pool.transaction(|tx| tx.load(&tree, entries)).expect("loaded");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut rng = ChaCha8Rng::seed_from_u64(1);
                while !is_over.load(Ordering::Relaxed) {
                    let [from, to] = [(); 2].map(|()| key(rng.random_range(0..ENTRIES * 2)));
                    pool.transaction(|tx| {
                        match (tx.contains_key(&tree, from)?, tx.contains_key(&tree, to)?) {
                            (true, false) => {
                                tx.remove(&tree, from)?;
                                tx.put(&tree, to, [1; 8]).map(drop)
                            }
                            _ => Ok(()),
                        }
                    })
                    .expect("committed");
                }
            });
            let mut rng = ChaCha8Rng::seed_from_u64(2);
            for _ in 0..3_000 {
                assert_eq!(tree.count(..).expect("counted"), ENTRIES);
                let rank = rng.random_range(0..ENTRIES);
                assert!(tree.nth(rank).expect("found").is_some(), "{rank}");
                let border = key(rng.random_range(0..ENTRIES * 2));
                let below = tree.rank(border).expect("counted");
                assert!(below <= ENTRIES);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let entries: Vec<_> = tree.iter().map(|entry| entry.expect("an entry").0).collect();
        for (rank, key) in entries.iter().enumerate() {
            assert_eq!(tree.rank(key).expect("counted"), rank as u64);
        }
    }
}
