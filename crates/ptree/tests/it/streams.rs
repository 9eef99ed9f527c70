//! Random transactions over all kinds of trees, against maps.

use std::ops::Bound;
use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sapwood_disk::{FileDisk, SimDisk};
use sapwood_ptree::{Pool, PoolOptions, TreeLayout};

use crate::model::{Model, assert_holds, change, create_all, key};

/// A transaction over some trees, committed, aborted, or aborted by a nested one that fails.
fn transact(rng: &mut ChaCha8Rng, pool: &Pool, model: &mut Model) {
    let mut after = model.clone();
    let names: Vec<_> = model.keys().cloned().collect();
    let tx = pool.begin().expect("begun");
    for _ in 0..rng.random_range(0..30) {
        let name = &names[rng.random_range(0..names.len())];
        let tree = pool.tree(name).expect("it is there");
        let entries = after.get_mut(name).expect("a tree");
        if rng.random_ratio(1, 60) {
            tx.clear(&tree).expect("cleared");
            entries.clear();
            continue;
        }
        change(rng, &tx, &tree, entries).expect("changed");
    }
    match rng.random_range(0..5) {
        0 => tx.abort(),
        1 => {
            let failed: Result<(), _> =
                tx.nested(|_| Err(sapwood_ptree::Error::Options("on purpose".to_owned())));
            failed.expect_err("it fails on purpose");
            assert_eq!(tx.commit().expect_err("aborted"), sapwood_ptree::Error::Aborted);
        }
        _ => {
            tx.commit().expect("committed");
            *model = after;
        }
    }
}

fn stream(seed: u64, pool: &Pool, model: &mut Model, transactions: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for number in 0..transactions {
        transact(&mut rng, pool, model);
        if number % 16 == 0 {
            assert_holds(pool, model);
        }
        if rng.random_ratio(1, 20) {
            pool.checkpoint().expect("written");
        }
    }
    assert_holds(pool, model);
}

#[test]
fn a_pool_in_memory_holds_what_transactions_did() {
    for seed in 0..6 {
        let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
        let mut model = create_all(&pool);
        stream(seed, &pool, &mut model, 120);
    }
}

#[test]
fn a_pool_that_is_opened_again_holds_what_was_committed() {
    for seed in 0..4 {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = || Arc::new(FileDisk::open(folder.path()).expect("a disk"));
        let pool = Pool::create(disk(), PoolOptions::default().id(seed)).expect("made");
        let mut model = create_all(&pool);
        drop(pool);
        for life in 0..5 {
            let pool = Pool::open(disk(), PoolOptions::default()).expect("opened");
            assert_holds(&pool, &model);
            stream(seed * 100 + life, &pool, &mut model, 40);
            match life % 2 {
                0 => pool.close().expect("closed"),
                _ => drop(pool),
            }
            let disk = Arc::new(FileDisk::open_read_only(folder.path()).expect("a disk"));
            let reader = Pool::open_read_only(disk, PoolOptions::default()).expect("opened");
            assert_holds(&reader, &model);
            assert_eq!(reader.begin().expect_err("to be read"), sapwood_ptree::Error::ReadOnly);
        }
    }
}

#[test]
fn small_checkpoints_and_many_parts_lose_nothing() {
    for seed in 0..4 {
        let disk = SimDisk::new();
        let options = || PoolOptions::default().checkpoint_bytes(64 << 10);
        let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
        let mut model = create_all(&pool);
        stream(seed, &pool, &mut model, 150);
        drop(pool);
        let pool = Pool::open(Arc::new(disk), options()).expect("opened");
        assert_holds(&pool, &model);
    }
}

#[test]
fn ranges_have_what_a_map_has_in_them() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
    let mut model = create_all(&pool);
    for _ in 0..60 {
        transact(&mut rng, &pool, &mut model);
        for (name, entries) in &model {
            let tree = pool.tree(name).expect("it is there");
            let bound = |rng: &mut ChaCha8Rng| {
                let key = key(rng, tree.layout());
                match rng.random_range(0..3) {
                    0 => Bound::Unbounded,
                    1 => Bound::Included(key),
                    _ => Bound::Excluded(key),
                }
            };
            let range = (bound(&mut rng), bound(&mut rng));
            let within: Vec<_> = entries
                .iter()
                .filter(|(key, _)| std::ops::RangeBounds::<Vec<u8>>::contains(&range, *key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            let ascending: Vec<_> =
                tree.range(&range).map(|entry| entry.expect("an entry")).collect();
            assert_eq!(ascending, within, "{name} {range:?}");
            let mut descending: Vec<_> =
                tree.range_descending(&range).map(|entry| entry.expect("an entry")).collect();
            descending.reverse();
            assert_eq!(descending, within, "{name} {range:?}");
            assert_eq!(tree.first(&range).expect("read"), within.first().cloned());
            assert_eq!(tree.last(&range).expect("read"), within.last().cloned());
        }
    }
}

#[test]
fn a_load_is_as_if_each_entry_was_put() {
    for count in [0u64, 1, 2, 31, 32, 33, 1000, 5000] {
        let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
        let mut model = create_all(&pool);
        for (name, entries) in &mut model {
            let tree = pool.tree(name).expect("it is there");
            for number in 0..count {
                let key = match tree.layout() {
                    TreeLayout::Fixed => (number * 3).to_be_bytes().to_vec(),
                    TreeLayout::Bytes => format!("key {number:05}").into_bytes(),
                };
                entries.insert(key, number.to_le_bytes().to_vec());
            }
            let loaded = pool.transaction(|tx| tx.load(&tree, entries.iter())).expect("loaded");
            assert_eq!(loaded, count);
        }
        assert_holds(&pool, &model);
        let mut rng = ChaCha8Rng::seed_from_u64(count);
        for _ in 0..20 {
            transact(&mut rng, &pool, &mut model);
        }
        assert_holds(&pool, &model);
    }
}
