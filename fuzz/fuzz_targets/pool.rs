//! A pool is opened from files that lie: it refuses them, or works as far as it can.
//!
//! No checksum counts in this build, so that records of the log are made up, too.
#![no_main]

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use sapwood_disk::{Disk, SimDisk};
use sapwood_ptree::{Direction, Error, ObjectType, Pool, PoolOptions, TreeKind, TreeLayout};

const LIES_MAX: usize = 8;
/// Where objects begin: behind the descriptors.
const OBJECTS: usize = 18 << 16;
/// Entries after which a walk is ended: damage may lead in a circle that is as long as a tree says.
const TOLD_MAX: u64 = 10_000;

fn options() -> PoolOptions {
    PoolOptions::default().limit_bytes(64 << 20)
}

type Files = Vec<(String, Vec<u8>)>;

/// A pool with trees of each kind, a checkpoint and a log behind it.
static FILES: LazyLock<Files> = LazyLock::new(|| {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("an empty folder");
    let mut trees = Vec::new();
    for kind in [TreeKind::BTree, TreeKind::CritBit, TreeKind::RedBlack] {
        for layout in [TreeLayout::Bytes, TreeLayout::Fixed] {
            let name = format!("{kind:?}-{layout:?}");
            trees.push(pool.create_tree(&name, kind, layout).expect("memory"));
        }
    }
    for number in 0..300u64 {
        let tx = pool.begin().expect("memory");
        for tree in &trees {
            tx.put(tree, (number * 7919).to_be_bytes(), number.to_le_bytes()).expect("memory");
        }
        tx.make_object(ObjectType(1), b"an object of a user").expect("memory");
        tx.commit().expect("a disk without faults");
        if number == 200 {
            pool.checkpoint().expect("a disk without faults");
        }
    }
    drop((trees, pool));
    let names = disk.list().expect("names");
    names
        .into_iter()
        .map(|name| {
            let bytes = disk.contents(&name).expect("it was listed");
            (name, bytes)
        })
        .collect()
});

/// What was made up so far, byte by byte; zeros when it is at its end.
struct Lies<'a>(&'a [u8]);

impl Lies<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn number(&mut self) -> usize {
        usize::from(self.byte()) << 16 | usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    fn word(&mut self) -> u64 {
        match self.byte() % 4 {
            0 => self.number() as u64,
            1 => OBJECTS as u64 / 8 + self.number() as u64 % 4096 * 8,
            2 => 1 << (self.byte() % 64),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }
}

/// Changes a word of a file, or cuts the file.
fn lie(files: &mut Files, lies: &mut Lies<'_>) {
    let at = usize::from(lies.byte()) % files.len();
    let (name, bytes) = &mut files[at];
    if lies.byte() % 32 == 0 {
        bytes.truncate(lies.number() * 16 % (bytes.len() + 1));
        return;
    }
    let place = match (name.as_str(), lies.byte() % 4) {
        ("heap", 0) => lies.number() % (3 * 4096),
        ("heap", 1) => 65_536 + lies.number() % (100 * 33 * 8),
        ("heap", _) => OBJECTS + lies.number(),
        (_, 0) => lies.number() % 64,
        (_, _) => 4096 + lies.number(),
    };
    let place = place / 8 * 8;
    let word = lies.word().to_le_bytes();
    if let Some(place) = bytes.get_mut(place..place + 8) {
        place.copy_from_slice(&word);
    }
}

/// Everything that a pool does. It may answer with errors, and nothing else.
fn use_it(pool: &Pool) -> Result<(), Error> {
    let _report = pool.check();
    let _report = pool.heap_report();
    let _objects = pool.objects();
    let _root = pool.root();
    for info in pool.trees()? {
        let tree = pool.tree(&info.name)?;
        for direction in [Direction::Ascending, Direction::Descending] {
            let mut told = 0;
            let _walked = tree.scan(.., direction, |_, _| {
                told += 1;
                if told < TOLD_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        }
        let _split_points = tree.split_points(.., 4);
        for number in 0..40u64 {
            let key = (number * 7919).to_be_bytes();
            let _value = tree.get(key);
            let _put = tree.put((number * 7919 + 1).to_be_bytes(), key);
            let _removed = tree.remove(key);
        }
        let _cleared = pool.transaction(|tx| tx.clear(&tree));
    }
    pool.checkpoint()
}

fuzz_target!(|bytes: &[u8]| {
    let mut lies = Lies(bytes);
    let mut files = FILES.clone();
    for _ in 0..LIES_MAX {
        if !lies.0.is_empty() {
            lie(&mut files, &mut lies);
        }
    }
    let disk = SimDisk::new();
    for (name, bytes) in &files {
        disk.plant(name, bytes).expect("a valid name");
    }
    if let Ok(pool) = Pool::open(Arc::new(disk.clone()), options()) {
        let used = use_it(&pool);
        drop(pool);
        // What it has written itself it reads.
        if used.is_ok() {
            Pool::open(Arc::new(disk), options()).expect("a checkpoint of its own");
        }
    }
});
