//! Commits that are logged together are there together, or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sapwood_disk::SimDisk;
use sapwood_ptree::{Error, Pool, PoolOptions, Tree, TreeKind, TreeLayout};

fn options() -> PoolOptions {
    PoolOptions::default().checkpoint_bytes(16 << 10).id(7)
}

fn pair(pool: &Pool) -> [Tree; 2] {
    ["left", "right"].map(|name| match pool.tree(name) {
        Ok(tree) => tree,
        Err(_) => pool.create_tree(name, TreeKind::BTree, TreeLayout::Bytes).expect("made"),
    })
}

fn step(tree: &Tree) -> Option<Vec<u8>> {
    tree.get("step").expect("read")
}

#[test]
fn beside_other_writers_and_checkpoints_both_sides_are_of_one_step() {
    for seed in 0..30 {
        let disk = SimDisk::new();
        let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
        let [left, right] = pair(&pool);
        pool.checkpoint().expect("written");
        disk.stop_after(40 + seed * 17);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let other = pool.create_tree("other", TreeKind::RedBlack, TreeLayout::Bytes);
                let Ok(other) = other else { return };
                for number in 0u32.. {
                    if is_over.load(Ordering::Relaxed)
                        || other.put(number.to_be_bytes(), vec![7; 100]).is_err()
                    {
                        return;
                    }
                }
            });
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) && pool.checkpoint().is_ok() {
                    std::thread::yield_now();
                }
            });
            for number in 0..2_000u32 {
                let both = pool.together(|| -> Result<(), Error> {
                    left.put("step", number.to_be_bytes())?;
                    left.put(number.to_be_bytes(), vec![1; 40])?;
                    right.put("step", number.to_be_bytes()).map(drop)
                });
                if both.is_err() {
                    break;
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let pool = Pool::open(Arc::new(disk.crash(seed)), options()).expect("opened");
        let [left, right] = pair(&pool);
        assert_eq!(step(&left), step(&right), "seed {seed}");
        assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
    }
}

#[test]
fn what_a_panic_leaves_is_committed_and_the_next_commit_is_apart() {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
    let [left, _] = pair(&pool);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pool.together(|| {
            left.put("step", "1").expect("put");
            panic!("in the middle");
        })
    }));
    assert!(panicked.is_err());
    left.put("after", "2").expect("put");
    pool.sync().expect("synced");
    let pool = Pool::open(Arc::new(disk.crash(0)), options()).expect("opened");
    let [left, _] = pair(&pool);
    assert_eq!(step(&left), Some(b"1".to_vec()));
    assert_eq!(left.get("after").expect("read"), Some(b"2".to_vec()));
}

#[test]
fn what_would_wait_for_itself_is_refused() {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk), options()).expect("made");
    let [left, right] = pair(&pool);
    let (inner, commit) = pool
        .together(|| {
            assert!(matches!(pool.checkpoint(), Err(Error::Options(_))));
            let commit = pool.transaction(|tx| tx.put(&left, "step", "1")).and_then(|_| {
                let tx = pool.begin()?;
                tx.put(&right, "step", "1")?;
                tx.commit()
            });
            let commit = commit.expect("committed");
            assert!(!commit.is_durable());
            assert!(matches!(commit.wait(), Err(Error::Options(_))));
            // Inside it is a part of the outer one.
            let (_, nested) = pool.together(|| left.put("step", "2").expect("put")).expect("ran");
            assert!(matches!(nested.wait(), Err(Error::Options(_))));
            commit
        })
        .expect("logged");
    inner.wait().expect("synced");
    commit.wait().expect("synced");
    assert!(inner.is_durable() && commit.is_durable());
    pool.checkpoint().expect("written");
}

#[test]
fn a_checkpoint_writes_no_half_of_them() {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
    let [left, right] = pair(&pool);
    for number in 0..4u32 {
        let (image, _) = std::thread::scope(|scope| {
            pool.together(|| {
                left.put("step", number.to_be_bytes()).expect("put");
                scope.spawn(|| pool.checkpoint().expect("written"));
                // Time enough to write what it must not; none of it is needed to pass.
                std::thread::sleep(std::time::Duration::from_millis(10));
                let image = disk.crash(u64::from(number));
                right.put("step", number.to_be_bytes()).expect("put");
                image
            })
            .expect("logged")
        });
        let pool = Pool::open(Arc::new(image), options()).expect("opened");
        let [left, right] = pair(&pool);
        assert_eq!(step(&left), step(&right), "step {number}");
    }
}

#[test]
fn a_commit_of_another_thread_is_logged_when_its_thread_goes_on() {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
    let [left, right] = pair(&pool);
    let goes_on = AtomicBool::new(false);
    std::thread::scope(|scope| {
        pool.together(|| {
            left.put("step", "1").expect("put");
            scope.spawn(|| {
                right.put("step", "1").expect("put");
                goes_on.store(true, Ordering::Release);
            });
            while right.get("step").expect("read").is_none() {
                std::thread::yield_now();
            }
            // It is visible. Time enough to go on, where it does so too early.
            std::thread::sleep(std::time::Duration::from_millis(10));
            assert!(!goes_on.load(Ordering::Acquire), "its commit is not logged");
        })
        .expect("logged");
    });
    assert!(goes_on.load(Ordering::Acquire));
}

/// Room of the log that was kept for what came to nothing is there for others.
#[test]
fn what_is_given_up_keeps_no_room() {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
    let [left, _] = pair(&pool);
    left.put("first", "1").expect("put");
    let before = disk.file_bytes();
    for round in 0..500_usize {
        let given_up = || {
            let tx = pool.begin().expect("begun");
            // So long that it gets chunks of its own, which are free again after it.
            tx.put(&left, round.to_be_bytes(), vec![1; 200_000]).expect("put");
            tx.abort();
        };
        pool.together(given_up).expect("nothing to log");
    }
    left.put("last", "1").expect("put");
    assert!(disk.file_bytes() <= 2 * before.max(1 << 20), "{} bytes", disk.file_bytes());
}
