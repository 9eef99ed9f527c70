//! A table is opened from files that lie: it refuses them, or works as a table does.
//!
//! A lie is sealed, since no checksum counts in this build. What checksums alone protect is left as
//! it was: records, and the slots of an index, of which a log believes that they were its own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sapwood_disk::SimDisk;
use sapwood_hashlog::{Cut, Error, HashLog, Layout, Options};
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

const KEYS: u64 = 300;
const BLOCK: usize = 4096;
const LIES_MAX: usize = 6;

fn options(layout: Layout) -> Options {
    let mut options = Options::default();
    options.layout = layout;
    options.page_bytes = BLOCK;
    options.memory_budget = Some(64 << 10);
    options
}

type Files = Vec<(String, Vec<u8>)>;

/// Tables with a full checkpoint, one upon it, and records that came after them.
static TABLES: LazyLock<Vec<(Layout, Files)>> = LazyLock::new(|| {
    let table = |layout| {
        let disk = SimDisk::new();
        let log = HashLog::open(Arc::new(disk.clone()), options(layout)).expect("an empty folder");
        let put = |index: u64| log.put(&index.to_le_bytes(), &index.to_le_bytes());
        for (from, cut) in [(0, Cut::Full), (100, Cut::Incremental), (200, Cut::Full)] {
            (from..from + KEYS / 3).for_each(|index| put(index).expect("room"));
            log.remove(&from.to_le_bytes()).expect("room");
            log.checkpoint(cut).expect("a disk without faults");
        }
        drop(log);
        let names = sapwood_disk::Disk::list(&disk).expect("names");
        let files = names.into_iter().map(|name| {
            let bytes = disk.contents(&name).expect("it was listed");
            (name, bytes)
        });
        (layout, files.collect())
    };
    [Layout::Fixed8, Layout::Variable].map(table).into()
});

/// What was made up so far, byte by byte; zeros when it is at its end.
struct Lies<'a>(&'a [u8]);

impl Lies<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn number(&mut self) -> u64 {
        u64::from(self.byte()) << 8 | u64::from(self.byte())
    }

    fn word(&mut self) -> u64 {
        match self.byte() % 4 {
            0 => self.number(),
            1 => self.number() * BLOCK as u64,
            2 => 1 << (self.byte() % 64),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }
}

/// Changes a word of a structure, cuts a file, takes one away, or gives it another's name.
fn lie(files: &mut Files, lies: &mut Lies<'_>) {
    let count = files.len();
    if count == 0 {
        return;
    }
    let at = lies.byte() as usize % count;
    match lies.byte() % 16 {
        0 => drop(files.remove(at)),
        1 => {
            let other = lies.byte() as usize % count;
            files[other].1 = files[at].1.clone();
        }
        2 => {
            let keep = lies.number() as usize * 16 % (files[at].1.len() + 1);
            files[at].1.truncate(keep);
        }
        _ => {
            let (name, bytes) = &mut files[at];
            let block = lies.number() as usize % bytes.len().div_ceil(BLOCK).max(1);
            // Of a part: the header, and after each page its trailers.
            let is_page = name.starts_with("log-") && block % 3 == 1;
            // Of an image: of what lies behind a chunk's header, nothing.
            let words = if name.starts_with("index-") && block > 0 { 4 } else { 20 };
            let at = block * BLOCK + lies.byte() as usize % words * 8;
            let word = lies.word().to_le_bytes();
            if !is_page && let Some(place) = bytes.get_mut(at..at + 8) {
                place.copy_from_slice(&word);
            }
        }
    }
}

/// Everything that a table does. It may answer with errors, and nothing else.
fn use_it(log: &HashLog) -> Result<(), Error> {
    for index in 0..KEYS {
        let key = index.to_le_bytes();
        log.get(&key)?;
        match index % 4 {
            0 => drop(log.put(&key, &key)?),
            1 => drop(log.remove(&key)?),
            2 => drop(log.add(&key, 1)),
            _ => {}
        }
    }
    let mut seen = 0;
    let mut count = |_: &[u8], _: &[u8]| {
        seen += 1;
        ControlFlow::<()>::Continue(())
    };
    let _ = log.for_each(&mut count)?;
    let _ = log.scan_log(&mut count)?;
    let _told = log.check();
    log.checkpoint(Cut::Full)?;
    log.compact(0.5)?;
    log.checkpoint(Cut::Incremental)?;
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let mut lies = Lies(bytes);
    let (layout, files) = &TABLES[lies.byte() as usize % TABLES.len()];
    let mut files = files.clone();
    // With many lies nothing is opened.
    for _ in 0..LIES_MAX {
        if !lies.0.is_empty() {
            lie(&mut files, &mut lies);
        }
    }
    let disk = SimDisk::new();
    for (name, bytes) in &files {
        disk.plant(name, bytes).expect("a valid name");
    }
    if let Ok(log) = HashLog::open(Arc::new(disk.clone()), options(*layout)) {
        let used = use_it(&log);
        drop(log);
        // What it has written itself it reads.
        if used.is_ok() {
            HashLog::open(Arc::new(disk), options(*layout)).expect("two checkpoints of its own");
        }
    }
});
