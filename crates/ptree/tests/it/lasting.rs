//! Commits last when they should: after an interval, or when a task waits for them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sapwood_disk::{Faults, FileDisk, SimDisk, SyncFault};
use sapwood_ptree::{Commit, Durability, Error, Pool, PoolOptions, Tree, TreeKind, TreeLayout};

use crate::model::{contents, create_all};

const INTERVAL: Duration = Duration::from_millis(100);

fn options() -> PoolOptions {
    PoolOptions::default().durability(Durability::Interval(INTERVAL)).checkpoint_bytes(64 << 10)
}

fn with_tree(pool: &Pool) -> Tree {
    pool.create_tree("t", TreeKind::BTree, TreeLayout::Bytes).expect("made")
}

fn put(pool: &Pool, tree: &Tree, number: u64) -> Result<Commit, Error> {
    let transaction = pool.begin()?;
    transaction.put(tree, number.to_be_bytes(), [7; 40])?;
    transaction.commit()
}

#[test]
fn power_loss_takes_nothing_that_is_older_than_the_interval() {
    for seed in 0..10 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let disk = SimDisk::new();
        let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
        create_all(&pool);
        let tree = with_tree(&pool);
        pool.sync().expect("synced");
        let mut now = Duration::ZERO;
        // When each number was put.
        let mut put_at = Vec::new();
        for _ in 0..60 {
            for _ in 0..rng.random_range(0..4) {
                put(&pool, &tree, put_at.len() as u64).expect("committed");
                put_at.push(now);
            }
            let step = INTERVAL.mul_f64(rng.random_range(0.0..1.5));
            disk.advance(step);
            now += step;
            disk.wait_for_sleepers(1);
            let old = put_at.iter().filter(|at| **at + INTERVAL <= now).count();
            let crashed = Arc::new(disk.crash(rng.random()));
            let crashed = Pool::open(crashed, PoolOptions::default()).expect("opened");
            let left = crashed.tree("t").expect("it lasts").len().expect("read");
            assert!(left >= old as u64, "seed {seed}: {left} of {old} that are old");
            assert!(left <= put_at.len() as u64);
        }
    }
}

#[test]
fn a_pool_that_goes_syncs_what_is_left_and_has_no_thread_any_more() {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
    create_all(&pool);
    let held = contents(&pool);
    drop(pool);
    disk.wait_for_sleepers(0);
    let crashed = Pool::open(Arc::new(disk.crash(3)), options()).expect("opened");
    assert_eq!(contents(&crashed), held);
    // The folder is free at once.
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Arc::new(FileDisk::open(folder.path()).expect("no pool has it"));
    let pool = Pool::create(open(), options()).expect("made");
    with_tree(&pool);
    drop(pool);
    for number in 0..20 {
        let pool = Pool::open(open(), options()).expect("opened");
        let tree = pool.tree("t").expect("it is there");
        assert_eq!(tree.len().expect("read"), number);
        put(&pool, &tree, number).expect("committed");
    }
}

/// By the clock of the system: however long that takes.
#[test]
fn commits_on_real_files_come_to_last_by_themselves() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = Arc::new(FileDisk::open(folder.path()).expect("a disk"));
    let options = || PoolOptions::default().durability(Durability::Interval(INTERVAL / 100));
    let pool = Pool::create(disk, options()).expect("made");
    let tree = with_tree(&pool);
    for number in 0..20 {
        let commit = put(&pool, &tree, number).expect("committed");
        while !commit.is_durable() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_sync_that_fails_in_the_background_is_told_by_the_pool() {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
    let tree = with_tree(&pool);
    let commit = put(&pool, &tree, 1).expect("committed");
    disk.wait_for_sleepers(1);
    assert!(pool.failed_sync().is_none());
    disk.set_faults(Faults::new().syncs(.., SyncFault::Lost(io::ErrorKind::Other)));
    disk.advance(INTERVAL);
    disk.wait_for_sleepers(1);
    disk.set_faults(Faults::new());
    let told = pool.failed_sync().expect("it failed");
    assert!(told.to_string().contains("fails as planned"), "{told}");
    assert!(!commit.is_durable());
    commit.wait().expect_err("it may be lost");
    let refused = put(&pool, &tree, 2).expect_err("the pool takes no more");
    assert!(refused.to_string().contains("fails as planned"), "{refused}");
    assert_eq!(tree.len().expect("read"), 1, "what is refused is not seen");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
}

#[test]
fn tasks_wait_for_commits_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Arc::new(FileDisk::open(folder.path()).expect("no pool has it"));
    let pool = Pool::create(open(), PoolOptions::default()).expect("made");
    let tree = with_tree(&pool);
    runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..200 {
            let (pool, tree) = (pool.clone(), tree.clone());
            tasks.spawn(async move {
                let commit = put(&pool, &tree, number).expect("committed");
                commit.clone().await.expect("it lasts");
                assert!(commit.is_durable());
            });
        }
        // Some are given up before they are done, or begin.
        for number in 200..220 {
            let (pool, tree) = (pool.clone(), tree.clone());
            let given_up = tasks.spawn(async move {
                put(&pool, &tree, number).expect("committed").await.expect("it lasts");
            });
            if number % 2 == 0 {
                tokio::task::yield_now().await;
            }
            given_up.abort();
        }
        while let Some(done) = tasks.join_next().await {
            assert!(done.is_ok() || done.is_err_and(|error| error.is_cancelled()));
        }
    });
    drop((tree, pool));
    let pool = Pool::open(open(), PoolOptions::default()).expect("opened");
    let left = pool.tree("t").expect("it is there").len().expect("read");
    assert!((200..=220).contains(&left), "{left} entries");
}

#[test]
fn a_commit_is_awaited_with_and_without_files() {
    let runtime = runtime();
    let pool = Pool::in_memory(PoolOptions::default()).expect("made");
    let tree = with_tree(&pool);
    runtime.block_on(async { put(&pool, &tree, 1)?.await }).expect("memory does not wait");
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), PoolOptions::default()).expect("made");
    let tree = with_tree(&pool);
    runtime.block_on(async { put(&pool, &tree, 1)?.await }).expect("it lasts");
    let crashed = Pool::open(Arc::new(disk.crash(1)), PoolOptions::default()).expect("opened");
    assert_eq!(crashed.tree("t").expect("it lasts").len().expect("read"), 1);
    disk.set_faults(Faults::new().syncs(.., SyncFault::Doubtful(io::ErrorKind::Other)));
    let told = runtime.block_on(async { put(&pool, &tree, 2)?.await }).expect_err("it may not");
    assert!(matches!(told, Error::Io { .. }), "{told}");
}

/// The file is longer already when it is to be made so, and no later sync says that this lasts.
#[test]
fn a_heap_is_as_long_as_its_superblock_says_though_a_sync_failed() {
    let disk = SimDisk::new();
    let open = || Arc::new(disk.clone());
    let options = || PoolOptions::default().durability(Durability::Sync);
    let pool = Pool::create(open(), options()).expect("made");
    let tree = with_tree(&pool);
    pool.checkpoint().expect("written");
    for number in 0..3000 {
        put(&pool, &tree, number).expect("committed");
    }
    disk.set_faults(Faults::new().syncs(..1, SyncFault::Doubtful(io::ErrorKind::Other)));
    assert!(matches!(pool.checkpoint(), Err(Error::Io { .. })), "the sync of the heap fails");
    disk.set_faults(Faults::new());
    drop((tree, pool));
    let pool = Pool::open(open(), options()).expect("opened");
    pool.checkpoint().expect("written");
    for image in 0..16 {
        let crashed = Pool::open(Arc::new(disk.crash(image)), options()).expect("opened");
        let left = crashed.tree("t").expect("it is there").len().expect("read");
        assert_eq!(left, 3000, "image {image}");
    }
}

/// Runs in a process of its own, whose environment says so.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_pool_of_real_files_is_taken_to_lie_in_persistent_memory_if_that_is_forced() {
    const FORCE: &str = "SAPWOOD_FORCE_DAX";
    let name =
        "lasting::a_pool_of_real_files_is_taken_to_lie_in_persistent_memory_if_that_is_forced";
    if std::env::var_os(FORCE).is_none() {
        let program = std::env::current_exe().expect("this program");
        let mut command = std::process::Command::new(program);
        let done = command.args(["--exact", name, "--nocapture"]).env(FORCE, "1").output();
        let done = done.expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Arc::new(FileDisk::open(folder.path()).expect("no pool has it"));
    let options = || PoolOptions::default().durability(Durability::Sync).checkpoint_bytes(1 << 20);
    let pool = Pool::create(open(), options()).expect("made");
    assert!(pool.is_dax());
    let tree = with_tree(&pool);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (pool, tree) = (&pool, &tree);
            scope.spawn(move || {
                for number in 0..5000 {
                    let commit = put(pool, tree, thread << 32 | number).expect("committed");
                    assert!(commit.is_durable());
                }
            });
        }
    });
    drop((tree, pool));
    let pool = Pool::open(open(), options()).expect("opened");
    assert_eq!(pool.tree("t").expect("it is there").len().expect("read"), 20_000);
    assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
}
