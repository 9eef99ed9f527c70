//! Files that lie: a pool refuses them, or works as far as it can, and neither panics nor hangs.

use std::ops::ControlFlow;
use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sapwood_disk::{Disk, SimDisk};
use sapwood_ptree::{Direction, Error, ObjectType, Pool, PoolOptions};

use crate::model::{change, create_all};

/// Where objects begin: behind the descriptors.
const OBJECTS: usize = 18 << 16;

pub(crate) fn options() -> PoolOptions {
    PoolOptions::default().limit_bytes(64 << 20)
}

/// Pools with a checkpoint and a log behind it.
pub(crate) fn prepared() -> SimDisk {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
    let mut model = create_all(&pool);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for part in 0..2 {
        for _ in 0..20 {
            let tx = pool.begin().expect("begun");
            for (name, entries) in &mut model {
                let tree = pool.tree(name).expect("it is there");
                for _ in 0..10 {
                    change(&mut rng, &tx, &tree, entries).expect("changed");
                }
            }
            tx.make_object(ObjectType(3), b"an object").expect("made");
            tx.commit().expect("committed");
        }
        if part == 0 {
            pool.checkpoint().expect("written");
        }
    }
    disk.crash(0);
    drop(pool);
    // What was written lasts.
    disk
}

/// A disk with the same files.
pub(crate) fn copy_of(disk: &SimDisk) -> SimDisk {
    let copy = SimDisk::new();
    for name in disk.list().expect("names") {
        copy.plant(&name, &disk.contents(&name).expect("there")).expect("planted");
    }
    copy
}

/// A copy of a disk, damaged here and there.
pub(crate) fn damaged(disk: &SimDisk, rng: &mut ChaCha8Rng) -> SimDisk {
    let damaged = SimDisk::new();
    for name in &disk.list().expect("names") {
        let mut bytes = disk.contents(name).expect("there");
        if rng.random_ratio(1, 2) {
            for _ in 0..rng.random_range(1..6) {
                let len = bytes.len();
                let at = match (name.as_str(), rng.random_range(0..6)) {
                    // The superblocks and the root.
                    ("heap", 0) => rng.random_range(0..3 * 4096),
                    // Descriptors.
                    ("heap", 1) => 65_536 + rng.random_range(0..100 * 33 * 8),
                    ("heap", _) => rng.random_range(OBJECTS..len),
                    (_, 0) => rng.random_range(0..4096),
                    _ => rng.random_range(0..len),
                };
                let at = at.min(len - 8) / 8 * 8;
                let word = match rng.random_range(0..4) {
                    0 => rng.random::<u64>(),
                    1 => rng.random_range(0..1 << 20),
                    2 => u64::MAX,
                    _ => u64::from_le_bytes(*bytes[at..].first_chunk().expect("8 bytes")) ^ 1,
                };
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
        }
        if rng.random_ratio(1, 40) {
            bytes.truncate(rng.random_range(0..bytes.len()));
        }
        damaged.plant(name, &bytes).expect("planted");
    }
    damaged
}

/// Everything that a pool does. It may answer with errors, and nothing else.
fn use_it(pool: &Pool, rng: &mut ChaCha8Rng) -> Result<(), Error> {
    let _report = pool.check();
    let _report = pool.heap_report();
    let _objects = pool.objects();
    let _root = pool.root()?;
    for info in pool.trees()? {
        let tree = pool.tree(&info.name)?;
        let mut told = 0u64;
        let _ended = tree.scan(.., Direction::Ascending, |_, _| {
            told += 1;
            // A cycle that the tree's count allows for is the caller's to end.
            if told < 10_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let _split_points = tree.split_points(.., 4);
        let _ended = tree.scan(.., Direction::Descending, |_, _| {
            told -= 1;
            if told > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        for _ in 0..20 {
            let key = crate::model::key(rng, tree.layout());
            let _value = tree.get(&key);
            let _entry = tree.first(&key[..]..);
            let value = crate::model::value(rng, tree.layout());
            let _put = tree.put(&key, value);
            let _removed = tree.remove(crate::model::key(rng, tree.layout()));
        }
        let _cleared = pool.transaction(|tx| tx.clear(&tree));
    }
    pool.checkpoint()
}

#[test]
fn any_damage_is_an_error_or_does_no_more_harm() {
    let disk = prepared();
    let mut opened = 0;
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(400);
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let damaged = damaged(&disk, &mut rng);
        if let Ok(pool) = Pool::open(Arc::new(damaged), options()) {
            opened += 1;
            let _used = use_it(&pool, &mut rng);
        }
    }
    assert!(opened > seeds / 4, "{opened} damaged pools were opened");
}

#[test]
fn errors_name_the_file_and_the_damage() {
    let disk = prepared();
    let open = |disk: SimDisk| Pool::open(Arc::new(disk), options()).expect_err("refused");
    let copy = || copy_of(&disk);
    let damaged = copy();
    damaged.damage("heap", 20, 1).expect("damaged");
    damaged.damage("heap", 4096 + 20, 1).expect("damaged");
    let error = open(damaged).to_string();
    assert!(error.contains("heap is damaged") && error.contains("checksum"), "{error}");
    let damaged = copy();
    for name in damaged.list().expect("names").into_iter().filter(|name| name != "heap") {
        damaged.remove(&name).expect("removed");
    }
    let error = open(damaged).to_string();
    assert!(error.contains("of the log is missing"), "{error}");
    let damaged = copy();
    damaged.truncate("heap", 5 * 4096).expect("cut");
    let error = open(damaged).to_string();
    assert!(error.contains("heap is damaged") && error.contains("words"), "{error}");
    let other = Pool::open(Arc::new(copy()), options().layout_name("another"));
    let error = other.expect_err("refused").to_string();
    assert!(error.contains("\"another\""), "{error}");
    let none = Pool::open(Arc::new(SimDisk::new()), options()).expect_err("refused").to_string();
    assert!(none.contains("open heap"), "{none}");
    let twice = Pool::create(Arc::new(copy()), options()).expect_err("refused").to_string();
    assert!(twice.contains("holds a pool already"), "{twice}");
}
