//! After any crash a pool is sound and holds a prefix of the commits, with all that lasted.

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sapwood_disk::SimDisk;
use sapwood_ptree::{Durability, Error, Pool, PoolOptions};

use crate::model::{Model, assert_holds, change, contents, create_all};

fn options() -> PoolOptions {
    PoolOptions::default().checkpoint_bytes(24 << 10).id(7)
}

/// A pool with all kinds of trees, of which everything lasts.
fn prepared() -> (SimDisk, Model) {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
    let model = create_all(&pool);
    pool.close().expect("closed");
    (disk, model)
}

/// Transacts until the power goes; all states that were committed, and how many of them last.
fn run(rng: &mut ChaCha8Rng, disk: &SimDisk, model: Model) -> (Vec<Model>, usize) {
    let mut states = vec![model];
    let mut durable = 0;
    let Ok(pool) = Pool::open(Arc::new(disk.clone()), options()) else { return (states, 0) };
    for _ in 0..60 {
        let mut after = states.last().expect("one at least").clone();
        let names: Vec<_> = after.keys().cloned().collect();
        let transact = |rng: &mut ChaCha8Rng, after: &mut Model| -> Result<_, Error> {
            let tx = pool.begin()?;
            for _ in 0..rng.random_range(1..8) {
                let name = &names[rng.random_range(0..names.len())];
                let tree = pool.tree(name)?;
                change(rng, &tx, &tree, after.get_mut(name).expect("a tree"))?;
            }
            Ok(tx)
        };
        let done = (|| -> Result<(), Error> {
            let commit = if rng.random_ratio(1, 4) {
                let count = rng.random_range(1..4);
                let all = pool.together(|| -> Result<(), Error> {
                    (0..count).try_for_each(|_| transact(rng, &mut after)?.commit().map(drop))
                });
                // Where it fails, it may be there all the same. States between are not.
                states.push(after);
                let (done, commit) = all?;
                done?;
                commit
            } else {
                let tx = transact(rng, &mut after)?;
                states.push(after);
                tx.commit()?
            };
            if rng.random_ratio(1, 4) {
                commit.wait()?;
                durable = states.len() - 1;
            }
            if rng.random_ratio(1, 12) {
                pool.checkpoint()?;
                durable = states.len() - 1;
            }
            Ok(())
        })();
        if done.is_err() {
            break;
        }
    }
    (states, durable)
}

fn assert_prefix(disk: &SimDisk, states: &[Model], durable: usize, what: &str) -> usize {
    let pool = Pool::open(Arc::new(disk.clone()), options())
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = contents(&pool);
    let at = states.iter().rposition(|state| *state == found);
    let at = at.unwrap_or_else(|| panic!("{what}: a state that was never committed"));
    let lasts = states[durable..].contains(&found);
    assert!(lasts, "{what}: state {at}, but {durable} lasts");
    assert_holds(&pool, &found);
    at
}

#[test]
fn any_power_loss_leaves_a_committed_prefix() {
    for seed in 0..20 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (disk, model) = prepared();
        disk.stop_after(rng.random_range(1..600));
        let (states, durable) = run(&mut rng, &disk, model);
        for image in 0..4 {
            let crashed = disk.crash(rng.random());
            assert_prefix(&crashed, &states, durable, &format!("seed {seed}, image {image}"));
        }
    }
}

#[test]
fn each_change_of_the_disk_is_a_moment_at_which_power_may_go() {
    let (disk, model) = prepared();
    let changes = {
        let disk = disk.crash(0);
        let before = disk.operations();
        run(&mut ChaCha8Rng::seed_from_u64(1), &disk, model.clone());
        disk.operations() - before
    };
    let step = (changes / 50).max(1) as usize;
    for stop in (0..changes).step_by(step) {
        let disk = disk.crash(0);
        disk.stop_after(stop);
        let (states, durable) = run(&mut ChaCha8Rng::seed_from_u64(1), &disk, model.clone());
        for seed in 0..2 {
            let what = format!("stopped after {stop}, image {seed}");
            assert_prefix(&disk.crash(seed), &states, durable, &what);
        }
    }
}

#[test]
fn crashes_during_recovery_and_again_lose_nothing_more() {
    for seed in 0..8 {
        let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
        let (mut disk, mut model) = prepared();
        for life in 0..5 {
            disk.stop_after(rng.random_range(1..250));
            let (states, durable) = run(&mut rng, &disk, model);
            disk = disk.crash(rng.random());
            // An opening that is cut off.
            disk.stop_after(rng.random_range(0..12));
            let _cut_off = Pool::open(Arc::new(disk.clone()), options());
            disk = disk.crash(rng.random());
            let what = format!("seed {seed}, life {life}");
            let at = assert_prefix(&disk, &states, durable, &what);
            model = states[at].clone();
        }
    }
}

#[test]
fn a_killed_process_loses_no_commit() {
    for seed in 0..12 {
        let mut rng = ChaCha8Rng::seed_from_u64(2000 + seed);
        let (disk, mut model) = prepared();
        for life in 0..4 {
            let count = rng.random_range(1..300);
            let stop = disk.operations() + count;
            disk.stop_after(count);
            let (states, _) = run(&mut rng, &disk, model);
            let was_cut = disk.operations() >= stop;
            // The page cache stays.
            disk.stop_after(1 << 40);
            // Stores behind the last moment were not made, though commits said so; what was
            // committed before is there.
            let least = if was_cut { 0 } else { states.len() - 1 };
            let at = assert_prefix(&disk, &states, least, &format!("seed {seed}, life {life}"));
            model = states[at].clone();
        }
    }
}

#[test]
fn a_commit_that_waits_lasts() {
    for seed in 0..20 {
        let disk = SimDisk::new();
        let options = || options().durability(Durability::Sync);
        let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
        let model = create_all(&pool);
        let tree = pool.tree(model.keys().next().expect("a tree")).expect("it is there");
        for number in 0..10 {
            tree.put(format!("{number:08}"), b"acorn\0\0\0").expect("put");
            let crashed = Pool::open(Arc::new(disk.crash(seed)), options()).expect("opened");
            assert_eq!(contents(&crashed), contents(&pool));
        }
    }
}

#[test]
fn every_crash_while_a_pool_is_made_leaves_none_or_an_empty_one() {
    let count = {
        let disk = SimDisk::new();
        Pool::create(Arc::new(disk.clone()), options()).expect("made");
        disk.operations()
    };
    for stop in 0..=count {
        for seed in 0..20 {
            let disk = SimDisk::new();
            disk.stop_after(stop);
            let made = Pool::create(Arc::new(disk.clone()), options());
            let crashed = disk.crash(seed);
            if Pool::is_on(&crashed).expect("names") {
                let pool = Pool::open(Arc::new(crashed), options()).expect("opened");
                assert_holds(&pool, &Model::new());
            } else {
                assert!(made.is_err(), "a pool that was made is there");
                Pool::create(Arc::new(crashed), options()).expect("made anew");
            }
        }
    }
}

#[test]
fn a_full_disk_refuses_commits_and_loses_none() {
    use sapwood_disk::Faults;
    let (disk, model) = prepared();
    let pool = Pool::open(Arc::new(disk.clone()), options()).expect("opened");
    let name = model.keys().find(|name| name.ends_with("Bytes")).expect("a tree");
    let tree = pool.tree(name).expect("it is there");
    disk.set_faults(Faults::new().space(disk.file_bytes() + (256 << 10)));
    let mut put = 0u32;
    let refused = loop {
        match tree.put(put.to_be_bytes(), [7; 3000]) {
            Ok(_) => put += 1,
            Err(refused) => break refused,
        }
    };
    assert!(
        matches!(refused, Error::Io { kind: std::io::ErrorKind::StorageFull, .. }),
        "{refused}"
    );
    assert_eq!(tree.len().expect("read"), u64::from(put));
    disk.set_faults(Faults::new());
    drop((tree, pool));
    let pool = Pool::open(Arc::new(disk), options()).expect("opened");
    let tree = pool.tree(name).expect("it is there");
    assert_eq!(tree.len().expect("read"), u64::from(put));
    tree.put(put.to_be_bytes(), [7; 3000]).expect("there is room again");
}
