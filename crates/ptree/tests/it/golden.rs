//! A pool that version 1 wrote opens, and holds what it held.
//!
//! `tests/golden/pool-1.bin` has its files, without their zeros: of each the length of its name, the
//! name, its length and runs of other bytes, each with its place and its length; a run of none ends a
//! file. Numbers have 8 bytes. Some of the pool is in pages, some in the log alone.

use std::sync::Arc;

use sapwood_disk::{Disk, SimDisk};
use sapwood_ptree::{ObjectType, Pool, PoolOptions, TreeLayout};

use crate::model::{Entries, KINDS, LAYOUTS, Model, assert_holds, contents, create_all, name};

const OBJECT: ObjectType = ObjectType(7);
/// Bytes between two runs, at least.
const GAP: usize = 32;

fn options() -> PoolOptions {
    PoolOptions::default().id(0x600d).layout_name("golden")
}

fn entry(layout: TreeLayout, number: u64) -> (Vec<u8>, Vec<u8>) {
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if layout == TreeLayout::Fixed {
        return (scattered.to_be_bytes().to_vec(), number.to_le_bytes().to_vec());
    }
    // Short keys and long ones, of which some begin with others; values of all lengths.
    let mut key = scattered.to_be_bytes()[..number as usize % 5].to_vec();
    key.extend(format!("{number}/{}", "x".repeat(number as usize % 23)).into_bytes());
    let len = if number == 17 { 9000 } else { number as usize * 7 % 60 };
    (key, vec![number as u8; len])
}

/// What each tree of a layout holds: of the first 260 numbers every third is removed again.
fn expected(layout: TreeLayout) -> Entries {
    (0..260).filter(|number| number % 3 != 0).map(|number| entry(layout, number)).collect()
}

fn object() -> Vec<u8> {
    (0..70_000u32).map(|at| (at / 512) as u8).collect()
}

/// Writes the pool.
fn write() -> SimDisk {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), options()).expect("made");
    create_all(&pool);
    let steps = |pool: &Pool, numbers: std::ops::Range<u64>| {
        for number in numbers {
            let tx = pool.begin().expect("begun");
            for kind in KINDS {
                for layout in LAYOUTS {
                    let tree = pool.tree(&name(kind, layout)).expect("a tree");
                    let (key, value) = entry(layout, number);
                    tx.put(&tree, key, value).expect("put");
                    // Each third one, long after it came.
                    if let Some(old) = number.checked_sub(60)
                        && old % 3 == 0
                    {
                        let (key, value) = entry(layout, old);
                        assert_eq!(tx.remove(&tree, key).expect("removed"), Some(value));
                    }
                }
            }
            tx.commit().expect("committed");
        }
    };
    steps(&pool, 0..240);
    let tx = pool.begin().expect("begun");
    let id = tx.make_object(OBJECT, &object()).expect("made");
    tx.set_root(id).expect("set");
    tx.commit().expect("committed");
    pool.close().expect("closed");
    // The log begins anew.
    let pool = Pool::open(Arc::new(disk.clone()), options()).expect("opened");
    pool.checkpoint().expect("written");
    steps(&pool, 240..260);
    let tx = pool.begin().expect("begun");
    for kind in KINDS {
        for layout in LAYOUTS {
            let tree = pool.tree(&name(kind, layout)).expect("a tree");
            for number in (200..260).filter(|number| number % 3 == 0) {
                tx.remove(&tree, entry(layout, number).0).expect("removed");
            }
        }
    }
    tx.commit().expect("committed");
    pool.sync().expect("synced");
    disk
}

fn pack(disk: &SimDisk) -> Vec<u8> {
    let mut packed = Vec::new();
    let number = |packed: &mut Vec<u8>, number: usize| packed.extend((number as u64).to_le_bytes());
    for name in disk.list().expect("names") {
        let bytes = disk.contents(&name).expect("there");
        number(&mut packed, name.len());
        packed.extend(name.as_bytes());
        number(&mut packed, bytes.len());
        let mut at = 0;
        while let Some(begin) = bytes[at..].iter().position(|byte| *byte != 0) {
            let begin = at + begin;
            let gap = bytes[begin..].windows(GAP).position(|gap| gap == [0; GAP]);
            at = gap.map_or(bytes.len(), |gap| begin + gap);
            number(&mut packed, begin);
            number(&mut packed, at - begin);
            packed.extend(&bytes[begin..at]);
        }
        number(&mut packed, 0);
        number(&mut packed, 0);
    }
    packed
}

fn unpack(mut packed: &[u8]) -> SimDisk {
    fn take<'a>(packed: &mut &'a [u8], len: usize) -> &'a [u8] {
        let (taken, rest) = packed.split_at(len);
        *packed = rest;
        taken
    }
    fn number(packed: &mut &[u8]) -> usize {
        u64::from_le_bytes(take(packed, 8).try_into().expect("8 bytes")) as usize
    }
    let disk = SimDisk::new();
    while !packed.is_empty() {
        let len = number(&mut packed);
        let name = std::str::from_utf8(take(&mut packed, len)).expect("a name");
        let mut bytes = vec![0; number(&mut packed)];
        loop {
            let (begin, len) = (number(&mut packed), number(&mut packed));
            if len == 0 {
                break;
            }
            bytes[begin..begin + len].copy_from_slice(take(&mut packed, len));
        }
        disk.plant(name, &bytes).expect("planted");
    }
    disk
}

fn assert_is_golden(disk: SimDisk) {
    let mut right = Model::new();
    for kind in KINDS {
        for layout in LAYOUTS {
            right.insert(name(kind, layout), expected(layout));
        }
    }
    let before = Pool::open_read_only(Arc::new(disk.clone()), options()).expect("opened");
    assert_eq!(contents(&before), right);
    drop(before);
    let pool = Pool::open(Arc::new(disk.clone()), options()).expect("opened");
    assert_holds(&pool, &right);
    let root = pool.root().expect("read").expect("there is a root");
    assert_eq!(pool.read_object(root).expect("read"), (OBJECT, object()));
    // It goes on being used.
    for (name, entries) in &right {
        let tree = pool.tree(name).expect("a tree");
        for (key, value) in entries.iter().step_by(2) {
            assert_eq!(tree.remove(key).expect("removed").as_ref(), Some(value));
            tree.put(key, value).expect("put");
        }
    }
    pool.close().expect("closed");
    let pool = Pool::open(Arc::new(disk), options()).expect("opened");
    assert_holds(&pool, &right);
}

/// A file of another version gets another name, and this one stays. `BLESS=1` writes one that is
/// missing.
#[test]
fn a_pool_of_version_1_opens() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/pool-1.bin");
    if std::env::var_os("BLESS").is_some() && !std::path::Path::new(path).exists() {
        std::fs::write(path, pack(&write())).expect("the golden file can be written");
    }
    assert_is_golden(unpack(&std::fs::read(path).expect("the golden file is there")));
}

#[test]
fn a_pool_that_is_written_now_holds_the_same() {
    let written = write();
    let unpacked = unpack(&pack(&written));
    for name in written.list().expect("names") {
        assert!(
            written.contents(&name).expect("there") == unpacked.contents(&name).expect("there")
        );
    }
    assert_is_golden(unpacked);
}
