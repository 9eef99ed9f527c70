//! What a log reads of its files, and when: nothing of its pages when it is opened, little for one
//! key, each page once for a walk; and what its walks ask the index about.

use crate::adapter::{COLDEST, Configuration, contents, key, see, snapped, swept, value};
use sapwood_disk::{Blocks, CachedFile, Disk, File, Presence, Read, SimDisk, Work};
use sapwood_hashlog::{ColdReads, Cut, HashLog, Layout};
use sapwood_testkit::engine::Pair;
use sapwood_testkit::interleave::{Running, StartLine};
use std::collections::BTreeMap;
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// All of it fits into memory.
const ROOMY: Configuration =
    Configuration { page_bytes: 16 << 10, memory_budget: Some(8 << 20), ..COLDEST };

const CONFIGURATIONS: [Configuration; 3] = [
    ROOMY,
    Configuration { layout: Layout::Fixed8, ..ROOMY },
    Configuration { layout: Layout::Fixed8, cold_reads: ColdReads::Stay, ..ROOMY },
];

/// A simulated disk that counts what is read of parts of the log.
#[derive(Debug)]
struct CountingDisk {
    disk: SimDisk,
    read: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Debug)]
struct CountingFile {
    file: Arc<dyn File>,
    read: Option<Arc<Counts>>,
}

impl CountingDisk {
    fn new(disk: &SimDisk) -> Arc<CountingDisk> {
        Arc::new(CountingDisk { disk: disk.clone(), read: Arc::default() })
    }

    fn counting(&self, name: &str, file: Arc<dyn File>) -> Arc<dyn File> {
        let read = name.starts_with("log-").then(|| Arc::clone(&self.read));
        Arc::new(CountingFile { file, read })
    }

    fn bytes(&self) -> u64 {
        self.read.bytes.load(Ordering::Relaxed)
    }

    fn reads(&self) -> u64 {
        self.read.reads.load(Ordering::Relaxed)
    }
}

impl Disk for CountingDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.counting(name, self.disk.create(name)?))
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.counting(name, self.disk.open(name)?))
    }
    fn cached(&self, name: &str, presence: Presence) -> io::Result<Arc<dyn CachedFile>> {
        self.disk.cached(name, presence)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }
    fn read_many(&self, reads: &mut [Read<'_>]) {
        for read in reads {
            read.result = read.file.read_at(read.offset, read.into);
        }
    }
    fn spawn(&self, works: Vec<Work>) {
        self.disk.spawn(works);
    }
    fn place(&self) -> String {
        self.disk.place()
    }
}

impl File for CountingFile {
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }
    fn read_at(&self, offset: u64, into: &mut Blocks) -> io::Result<()> {
        if let Some(read) = &self.read {
            read.reads.fetch_add(1, Ordering::Relaxed);
            read.bytes.fetch_add(into.bytes().len() as u64, Ordering::Relaxed);
        }
        self.file.read_at(offset, into)
    }
    fn write_at(&self, offset: u64, from: &Blocks) -> io::Result<()> {
        self.file.write_at(offset, from)
    }
    fn write_some_at(&self, offset: u64, from: &Blocks, blocks: Range<usize>) -> io::Result<()> {
        self.file.write_some_at(offset, from, blocks)
    }
    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.file.cut(bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

fn open(configuration: Configuration, disk: &Arc<CountingDisk>) -> HashLog {
    let disk = Arc::clone(disk) as Arc<dyn Disk>;
    HashLog::open(disk, configuration.options()).expect("a whole checkpoint")
}

const KEYS: u64 = 12_000;

/// Half of the keys are replaced, and a fifth of them is removed.
const CHANGED_MAX: u64 = KEYS / 2 + KEYS / 5;

/// A log of keys that were put once.
fn put(configuration: Configuration) -> (SimDisk, Vec<Pair>) {
    let disk = SimDisk::new();
    let log = configuration.open(&disk);
    for index in 0..KEYS {
        log.put(&key(index), &value(index)).expect("memory");
    }
    log.checkpoint(Cut::Full).expect("a checkpoint");
    let pairs = (0..KEYS).map(|index| (key(index).to_vec(), value(index).to_vec()));
    (disk, sorted(pairs.collect()))
}

/// A log in which a third of the records was superseded after it was written, and every fifth key
/// removed.
fn stored(configuration: Configuration) -> (SimDisk, Vec<Pair>) {
    let (disk, _) = put(configuration);
    let log = configuration.open(&disk);
    let mut right: BTreeMap<u64, u64> = (0..KEYS).map(|index| (index, index)).collect();
    for index in (0..KEYS).step_by(2) {
        log.put(&key(index), &value(index + KEYS)).expect("memory");
        right.insert(index, index + KEYS);
    }
    for index in (0..KEYS).step_by(5) {
        assert_eq!(log.remove(&key(index)), Ok(true));
        right.remove(&index);
    }
    log.checkpoint(Cut::Full).expect("a checkpoint");
    let pairs = right.iter().map(|(index, count)| (key(*index).to_vec(), value(*count).to_vec()));
    (disk, sorted(pairs.collect()))
}

fn sorted(mut pairs: Vec<Pair>) -> Vec<Pair> {
    pairs.sort_unstable();
    pairs
}

/// Every walk of a whole log; what it meets, in the order of the keys.
type Walks = [(&'static str, fn(&HashLog) -> Vec<Pair>); 4];

const WALKS: Walks = [
    ("for_each", contents),
    ("for_each_part", |log| {
        let mut pairs = Vec::new();
        for part in 0..3 {
            let walked = log.for_each_part(part, 3, |key, value| see(&mut pairs, key, value));
            assert_eq!(walked, Ok(ControlFlow::Continue(())));
        }
        sorted(pairs)
    }),
    ("snapshot", |log| {
        let snapshot = log.snapshot().expect("unpinned");
        sorted(snapped(&snapshot, 1).expect("reads"))
    }),
    ("sweep", |log| sorted(swept(log, 2).expect("reads"))),
];

#[test]
fn opening_reads_no_page_and_a_look_up_reads_a_block() {
    for configuration in CONFIGURATIONS {
        let (disk, pairs) = stored(configuration);
        let disk = CountingDisk::new(&disk);
        let log = open(configuration, &disk);
        let stats = log.stats();
        let log_bytes = stats.tail - stats.begin;
        let pages = log_bytes / configuration.page_bytes as u64;
        assert!(pages > 20, "{stats:?}");
        // The header of each part, and two trailers of each page.
        let (opening, parts) = (disk.bytes(), stats.file_bytes.div_ceil(64 << 20));
        assert!(opening <= parts * 4096 + pages * 8192, "{opening} bytes of {pages} pages");
        assert_eq!((stats.head, stats.log_bytes), (stats.tail, 0), "no page is in memory");
        assert_eq!(stats.returning_bytes, log_bytes);
        let page_bytes = configuration.page_bytes as u64;
        assert!(stats.read_back_bytes <= log_bytes, "{stats:?}");
        assert!(stats.read_back_bytes + 3 * page_bytes > log_bytes, "{stats:?}");

        let reads = disk.reads();
        let (first, expected) = &pairs[pairs.len() / 2];
        assert_eq!(log.get(first).as_ref(), Ok(&Some(expected.clone())));
        let (reads, bytes) = (disk.reads() - reads, disk.bytes() - opening);
        // A step of the chain each, and what comes back for it.
        let most = 3 * (8192 + (64 << 10));
        assert!(reads <= 15 && bytes <= most, "{reads} reads, {bytes} bytes");
        assert_eq!(log.stats().tail, stats.tail, "what comes back by itself is not copied");
    }
}

#[test]
fn a_look_whether_there_is_anything_reads_little() {
    for configuration in CONFIGURATIONS {
        let (disk, _) = stored(configuration);
        let disk = CountingDisk::new(&disk);
        let log = open(configuration, &disk);
        let page = configuration.page_bytes as u64;
        let opening = disk.bytes();
        let found = log.for_each(|_, _| ControlFlow::Break(())).expect("a walk");
        assert_eq!(found, ControlFlow::Break(()));
        let walked = disk.bytes();
        assert!(walked - opening <= 300 * 4096, "{} bytes", walked - opening);
        let found = log.scan_log(|_, _| ControlFlow::Break(())).expect("a walk");
        assert_eq!(found, ControlFlow::Break(()));
        assert!(disk.bytes() - walked <= page, "{} bytes", disk.bytes() - walked);
    }
}

#[test]
fn a_walk_reads_each_page_once_and_keeps_it() {
    for configuration in CONFIGURATIONS {
        let (disk, pairs) = stored(configuration);
        for (name, walk) in WALKS {
            let disk = CountingDisk::new(&disk);
            let log = open(configuration, &disk);
            let (opening, page) = (disk.bytes(), configuration.page_bytes as u64);
            let told = log.stats().read_back_bytes;
            assert!(walk(&log) == pairs, "{name}, {configuration:?}");
            // A walk by keys looks at a few records first, one of the log at a page a thread. Pages
            // are read by blocks.
            let read = disk.bytes() - opening;
            let most = told + told / 16 + 2 * page + 400 * 4096;
            assert!((told..=most).contains(&read), "{name}: {read} of {told}");
            assert_eq!(log.stats().read_back_bytes, 0, "{name}");
            let before = disk.bytes();
            for (again, walk) in WALKS {
                assert!(walk(&log) == pairs, "{again} after {name}, {configuration:?}");
            }
            assert_eq!(disk.bytes(), before, "{name}, {configuration:?}");
            let stats = log.stats();
            assert_eq!((stats.head, stats.returning_bytes), (stats.begin, 0), "{name}");
            log.check().expect("invariants");
        }
    }
}

/// The rest is read from the disk by every walk, as before.
#[test]
fn what_the_budget_has_no_room_for_stays_on_the_disk() {
    for layout in [Layout::Variable, Layout::Fixed8] {
        let roomy = Configuration { layout, ..ROOMY };
        let (disk, pairs) = stored(roomy);
        for memory_budget in [600 << 10, 500 << 10, 440 << 10] {
            let tight = Configuration { memory_budget: Some(memory_budget), ..roomy };
            let disk = CountingDisk::new(&disk);
            let log = open(tight, &disk);
            for (name, walk) in WALKS {
                assert!(walk(&log) == pairs, "{name}, {tight:?}");
                let stats = log.stats();
                assert!(stats.reserved_bytes <= memory_budget, "{name}: {stats:?}");
                assert!(stats.head > stats.begin, "{name}: {stats:?}");
            }
            // Writers get their room.
            for index in 0..KEYS {
                log.put(&key(index), &value(index)).expect("it spills");
            }
            assert_eq!(log.len_exact(), Ok(KEYS as usize));
            log.check().expect("invariants");
        }
    }
}

/// A program that goes on looking keys up has all in memory at last, and the log is no longer for
/// it.
#[test]
fn look_ups_bring_pages_back() {
    for configuration in CONFIGURATIONS {
        for batched in [false, true] {
            let (disk, pairs) = stored(configuration);
            let disk = CountingDisk::new(&disk);
            let log = open(configuration, &disk);
            let tail = log.stats().tail;
            let look_up_all = || {
                let keys: Vec<&[u8]> = pairs.iter().map(|(key, _)| &key[..]).collect();
                if batched {
                    let same = |at: usize, found: Option<&[u8]>| {
                        assert_eq!(found, Some(&pairs[at].1[..]));
                    };
                    log.get_many(&keys, same).expect("reads");
                } else {
                    for (key, value) in &pairs {
                        assert_eq!(log.get(key).as_ref(), Ok(&Some(value.clone())));
                    }
                }
            };
            look_up_all();
            let stats = log.stats();
            assert_eq!((stats.head, stats.returning_bytes), (stats.begin, 0), "{stats:?}");
            assert!(stats.cold_reads < 2_500, "{stats:?}");
            assert_eq!(stats.tail, tail, "{stats:?}");
            let before = disk.bytes();
            look_up_all();
            assert_eq!(disk.bytes(), before);
        }
    }
}

/// Records come back without marks: the index is asked about those that a newer one names, and a
/// walk asks about none but a few a thread, which it looks at before pages come back.
/// The second walk asks about nothing, as if they had never left.
#[test]
fn records_that_none_names_are_not_asked_about() {
    for configuration in CONFIGURATIONS {
        for (name, walk) in WALKS {
            let first = 256 * if name == "sweep" { 2 } else { 1 };
            // Of other keys with the same tag.
            let shared = KEYS / 20;
            for (is_changed, named) in [(false, 0), (true, CHANGED_MAX)] {
                let (disk, pairs) =
                    if is_changed { stored(configuration) } else { put(configuration) };
                let log = configuration.open(&disk);
                assert!(walk(&log) == pairs, "{name}, {configuration:?}");
                let stats = log.stats();
                let asked = stats.chains_asked;
                assert!(asked <= named + shared + first, "{name}: {stats:?}");
                for (again, walk) in WALKS {
                    assert!(walk(&log) == pairs, "{again} after {name}, {configuration:?}");
                }
                assert_eq!(log.stats().chains_asked, asked, "{name}");
            }
        }
    }
}

/// What is superseded while it lies on the disk gets no mark, and what is while it is in memory
/// does: the answers are right either way, and complete in the end.
#[test]
fn changes_before_and_after_pages_come_back() {
    for configuration in CONFIGURATIONS {
        for (name, walk) in WALKS {
            let (disk, pairs) = stored(configuration);
            let mut right: BTreeMap<Vec<u8>, Vec<u8>> = pairs.into_iter().collect();
            let log = configuration.open(&disk);
            let put = |right: &mut BTreeMap<Vec<u8>, Vec<u8>>, index: u64, count: u64| {
                log.put(&key(index), &value(count)).expect("memory");
                right.insert(key(index).to_vec(), value(count).to_vec());
            };
            // Blindly, over records on the disk.
            (0..KEYS).step_by(7).for_each(|index| put(&mut right, index, index + 7));
            let pairs_of = |right: &BTreeMap<Vec<u8>, Vec<u8>>| -> Vec<Pair> {
                right.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
            };
            {
                // For which what is replaced now is live.
                let older = log.snapshot().expect("unpinned");
                let before = pairs_of(&right);
                (0..KEYS).step_by(11).for_each(|index| put(&mut right, index, index + 11));
                assert!(walk(&log) == pairs_of(&right), "{name}, {configuration:?}");
                (0..KEYS).step_by(13).for_each(|index| put(&mut right, index, index + 13));
                assert!(walk(&log) == pairs_of(&right), "{name}, {configuration:?}");
                assert!(
                    sorted(snapped(&older, 2).expect("reads")) == before,
                    "{name}, {configuration:?}"
                );
            }
            for (again, walk) in WALKS {
                (0..KEYS).step_by(17).for_each(|index| put(&mut right, index, index + 17));
                assert!(walk(&log) == pairs_of(&right), "{again}, {name}, {configuration:?}");
            }
            log.check().expect("invariants");
        }
    }
}

/// Among writers, and readers that bring pages back, every walk meets each key once.
#[test]
fn pages_come_back_among_writers() {
    const KEYS: u64 = 600;
    let small = Configuration { page_bytes: 1 << 10, ..ROOMY };
    for seed in 0..30 {
        for configuration in [small, Configuration { layout: Layout::Fixed8, ..small }] {
            let disk = SimDisk::new();
            let log = configuration.open(&disk);
            for index in 0..KEYS {
                log.put(&key(index), &value(1)).expect("memory");
            }
            log.checkpoint(Cut::Full).expect("a checkpoint");
            drop(log);
            let log = configuration.open(&disk);
            let (line, running) = (StartLine::new(4), Running::new(2));
            std::thread::scope(|scope| {
                for writer in 0..2 {
                    let (log, line, running) = (&log, &line, &running);
                    scope.spawn(move || {
                        let _working = running.guard();
                        line.wait();
                        for round in 2..6 {
                            for index in (0..KEYS).filter(|index| index % 2 == writer) {
                                let key = key(index * 7 % KEYS);
                                match (index + seed) % 3 {
                                    0 => log.put(&key, &value(round)).expect("memory"),
                                    _ => drop(log.add(&key, 1).expect("memory")),
                                }
                            }
                        }
                    });
                }
                scope.spawn(|| {
                    line.wait();
                    while running.any() {
                        for index in 0..KEYS {
                            assert!(log.get(&key(index)).expect("a read").is_some());
                        }
                    }
                });
                line.wait();
                while running.any() {
                    for (name, walk) in WALKS {
                        let keys: Vec<_> = walk(&log).into_iter().map(|(key, _)| key).collect();
                        assert_eq!(keys.len(), KEYS as usize, "{name}, {configuration:?}");
                        assert!(keys.is_sorted_by(|one, two| one < two), "{name}: a key twice");
                    }
                }
            });
            let last = contents(&log);
            for (name, walk) in WALKS {
                assert!(walk(&log) == last, "{name}, {configuration:?}");
            }
            log.check().expect("invariants");
        }
    }
}
