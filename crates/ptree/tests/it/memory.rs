//! A pool with a budget of memory keeps to it, whatever the size of its heap.

use std::sync::Arc;

use sapwood_disk::FileDisk;
use sapwood_ptree::{Pool, PoolOptions, TreeKind, TreeLayout};

const BUDGET: u64 = 8 << 20;

/// Memory of this process that no file has, in bytes.
#[cfg(target_os = "linux")]
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kib << 10
}

/// Runs in a process of its own: other tests have memory, too.
#[test]
#[cfg(target_os = "linux")]
fn a_pool_of_ten_times_its_memory_works() {
    let name = "memory::a_pool_of_ten_times_its_memory_works";
    if std::env::var_os("SAPWOOD_TEST_ALONE").is_none() {
        let program = std::env::current_exe().expect("this program");
        let done = std::process::Command::new(program)
            .args(["--exact", name, "--nocapture"])
            .env("SAPWOOD_TEST_ALONE", "1")
            .output()
            .expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let disk = || Arc::new(FileDisk::open(folder.path()).expect("a disk"));
    let options = || PoolOptions::default().memory_bytes(BUDGET);
    let pool = Pool::create(disk(), options()).expect("made");
    let tree = pool.create_tree("t", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    let before = anonymous_bytes();
    let mut most = 0;
    let value = |number: u64| vec![number as u8; 4000];
    for number in 0..22_000u64 {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        tree.put(key, value(number)).expect("put");
        if number % 100 == 0 {
            most = most.max(anonymous_bytes().saturating_sub(before));
        }
    }
    assert!(pool.heap_bytes() > 10 * BUDGET, "{} bytes of heap", pool.heap_bytes());
    // Pages, twice: copies for a checkpoint come on top.
    assert!(most < 3 * BUDGET, "{most} bytes of memory");
    for number in (0..22_000u64).step_by(7) {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        assert_eq!(tree.get(key).expect("read"), Some(value(number)));
        tree.update(key, |value| value[17] ^= 0xff).expect("updated");
    }
    assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
    drop((tree, pool));
    let pool = Pool::open(disk(), options()).expect("opened");
    let tree = pool.tree("t").expect("it is there");
    for number in 0..22_000u64 {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let mut expected = value(number);
        if number % 7 == 0 {
            expected[17] ^= 0xff;
        }
        assert_eq!(tree.get(key).expect("read"), Some(expected));
    }
    assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
}

/// Memory is given back beside readers.
#[test]
fn readers_notice_nothing_when_memory_is_given_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = Arc::new(FileDisk::open(folder.path()).expect("a disk"));
    let options = PoolOptions::default().memory_bytes(1 << 20);
    let pool = Pool::create(disk, options).expect("made");
    let tree = pool.create_tree("t", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    for number in 0..500u32 {
        tree.put(number.to_be_bytes(), number.to_le_bytes()).expect("put");
    }
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(std::sync::atomic::Ordering::Acquire) {
                for number in 0..500u32 {
                    let value = tree.get(number.to_be_bytes()).expect("read");
                    assert_eq!(value, Some(number.to_le_bytes().to_vec()));
                }
            }
        });
        for round in 0..3000u32 {
            tree.put((round % 700 + 1000).to_be_bytes(), vec![round as u8; 3000]).expect("put");
        }
        is_done.store(true, std::sync::atomic::Ordering::Release);
    });
    assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
}
