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

/// Bytes of memory that a control group of the system may have, page cache included.
#[cfg(target_os = "linux")]
const GROUP_BYTES: u64 = 16 << 20;

/// A control group for one process; removed on drop.
#[cfg(target_os = "linux")]
struct ControlGroup(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl ControlGroup {
    /// The file that limits a group's memory, below where groups are made. Of both versions.
    const PLACES: [(&str, &str); 2] =
        [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];

    /// `None` where this process may make none.
    fn make() -> Option<ControlGroup> {
        let name = format!("sapwood-{}", std::process::id());
        ControlGroup::PLACES.iter().find_map(|(place, limit)| {
            let path = std::path::Path::new(place).join(&name);
            std::fs::create_dir(&path).ok()?;
            let group = ControlGroup(path);
            // Not made by such a write where it is no file of the system's.
            let limited = group.0.join(limit).exists()
                && std::fs::write(group.0.join(limit), GROUP_BYTES.to_string()).is_ok();
            // Where there is swap, it does not count as memory.
            let _without = std::fs::write(group.0.join("memory.swap.max"), "0");
            limited.then_some(group)
        })
    }

    /// Puts this process into a group.
    fn join(path: &std::path::Path) {
        let this = std::process::id().to_string();
        std::fs::write(path.join("cgroup.procs"), this).expect("the group takes this process");
    }
}

#[cfg(target_os = "linux")]
impl Drop for ControlGroup {
    fn drop(&mut self) {
        // A group without processes can be removed.
        let _left = std::fs::remove_dir(&self.0);
    }
}

/// The system itself counts, page cache and all, and ends a process that takes more. Where no control
/// group can be made, `a_pool_of_ten_times_its_memory_works` has to do.
#[test]
#[cfg(target_os = "linux")]
fn a_pool_of_ten_times_what_the_system_allows_works() {
    const GROUP: &str = "SAPWOOD_TEST_GROUP";
    if let Some(group) = std::env::var_os(GROUP) {
        ControlGroup::join(std::path::Path::new(&group));
        let folder = tempfile::tempdir().expect("a folder");
        return work_on_a_large_pool(folder.path());
    }
    let Some(group) = ControlGroup::make() else {
        eprintln!("skipped: this process may make no control group with a limit of memory");
        return;
    };
    let program = std::env::current_exe().expect("this program");
    let name = "memory::a_pool_of_ten_times_what_the_system_allows_works";
    let done = std::process::Command::new(program)
        .args(["--exact", name, "--nocapture"])
        .env(GROUP, &group.0)
        .output()
        .expect("it runs");
    assert!(done.status.success(), "{}: {}", done.status, String::from_utf8_lossy(&done.stderr));
}

#[cfg(target_os = "linux")]
fn work_on_a_large_pool(folder: &std::path::Path) {
    const COUNT: u64 = 10_600;
    let disk = || Arc::new(FileDisk::open(folder).expect("a disk"));
    let options = || PoolOptions::default().memory_bytes(4 << 20).checkpoint_bytes(16 << 20);
    let pool = Pool::create(disk(), options()).expect("made");
    let tree = pool.create_tree("t", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let value = |number: u64| vec![number as u8; 16_000];
    for number in 0..COUNT {
        tree.put(key(number), value(number)).expect("put");
    }
    pool.checkpoint().expect("written");
    for number in (0..COUNT).step_by(31) {
        assert_eq!(tree.get(key(number)).expect("read"), Some(value(number)));
        assert_eq!(tree.remove(key(number)).expect("removed"), Some(value(number)));
    }
    drop((tree, pool));
    let pool = Pool::open(disk(), options()).expect("opened");
    let tree = pool.tree("t").expect("it is there");
    let mut seen = 0;
    for entry in tree.iter() {
        let (key, value) = entry.expect("read");
        assert!(value.len() == 16_000 && value.iter().all(|byte| *byte == value[0]), "{key:?}");
        seen += 1;
    }
    assert_eq!(seen, COUNT - COUNT.div_ceil(31));
    assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
    pool.close().expect("closed");
}
