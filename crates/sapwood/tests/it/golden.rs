//! A directory that an earlier version wrote opens, holds what it held, and goes on being used.
//!
//! `tests/golden/directory-2.bin` has its files, without their zeros: of each the length of its path, the
//! path, its length and runs of other bytes, each with its place and its length; a run of none ends a
//! file. Numbers have 8 bytes. Some of each table is in a checkpoint, some in a log alone. In `directory-1.bin`
//! trees have a log of their own.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use sapwood::{
    AnyTable, Db, DbOptions, Durability, HashTableOptions, OrderedTableOptions, RecordLayout,
    TreeTableOptions,
};
use tempfile::TempDir;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Bytes between two runs, at least.
const GAP: usize = 32;

const FIELDS: &str = "hits:i64le";

/// Hash tables, an ordered table, and trees; those that end with a digit have entries of 8 bytes, and 8 of a
/// value are a number in tables with fields.
const NAMES: [&str; 7] = ["bytes", "cold", "fields8", "fixed8", "ordered8", "tree", "tree8"];

/// A directory for a test, of which the database is told nothing.
fn directory() -> TempDir {
    TempDir::new().expect("a directory for the test")
}

fn open(path: &Path) -> Db {
    let options = DbOptions::default().durability(Durability::Buffered).tree_memory(8 << 20);
    Db::open_with(path, options).expect("opened")
}

fn create(db: &Db, name: &str) {
    let layout = match name.ends_with('8') {
        true => RecordLayout::Fixed8,
        false => RecordLayout::Variable,
    };
    let fields = || FIELDS.parse().expect("a layout");
    let hash = HashTableOptions::default().layout(layout).page_bytes(4096);
    let made = match name {
        "ordered8" => {
            let options = OrderedTableOptions::default().memory_budget(8 << 20).chunk_entries(64);
            db.create_ordered_table(name, options.fields(fields())).map(AnyTable::from)
        }
        "cold" => db.create_hash_table(name, hash.memory_budget(64 << 10)).map(AnyTable::from),
        "fields8" => db.create_hash_table(name, hash.fields(fields())).map(AnyTable::from),
        _ if name.starts_with("tree") => db
            .create_tree_table(name, TreeTableOptions::default().layout(layout))
            .map(AnyTable::from),
        _ => db.create_hash_table(name, hash).map(AnyTable::from),
    };
    made.expect("a free name");
}

fn entry(name: &str, number: u64) -> (Vec<u8>, Vec<u8>) {
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if name.ends_with('8') {
        return (scattered.to_be_bytes().to_vec(), number.to_le_bytes().to_vec());
    }
    let mut key = scattered.to_be_bytes()[..number as usize % 5].to_vec();
    key.extend(format!("{number}/{}", "x".repeat(number as usize % 23)).into_bytes());
    let len = if name == "cold" { 150 } else { number as usize * 7 % 60 + 1 };
    (key, vec![number as u8 | 1; len])
}

/// Of the first 150 numbers every third is removed again, and of others the first byte is one more.
fn expected(name: &str) -> Entries {
    let kept = (0..150).filter(|number| number % 3 != 0);
    let entries = kept.map(|number| {
        let (key, mut value) = entry(name, number);
        value[0] = value[0].wrapping_add(u8::from(number % 7 == 0));
        (key, value)
    });
    entries.collect()
}

fn change(db: &Db, numbers: std::ops::Range<u64>) {
    for name in NAMES {
        let table = db.table(name).expect("it is there");
        for number in numbers.clone() {
            let (key, value) = entry(name, number);
            table.put(&key, value).expect("put");
            if number % 7 == 0 {
                let add = |value: &mut sapwood::ValueMut<'_>| value[0] = value[0].wrapping_add(1);
                assert!(table.update(&key, add).expect("update").is_some());
            }
        }
    }
}

fn remove(db: &Db, numbers: std::ops::Range<u64>) {
    let (done, changes) = db
        .together(|| {
            NAMES.into_iter().try_for_each(|name| {
                let table = db.table(name)?;
                let thirds = numbers.clone().filter(|number| number % 3 == 0);
                thirds.map(|number| entry(name, number).0).try_for_each(|key| {
                    assert!(table.remove(key)?, "it is there");
                    Ok(())
                })
            })
        })
        .expect("begun");
    done.and_then(|()| changes.wait()).expect("removed");
}

/// Writes a directory, as a process leaves it that was killed.
fn write(path: &Path) {
    let db = open(path);
    NAMES.iter().for_each(|name| create(&db, name));
    let gone = db.create_ordered_table("gone", OrderedTableOptions::default()).expect("free");
    gone.put("k", "v").expect("put");
    change(&db, 0..90);
    remove(&db, 0..60);
    db.checkpoint().expect("written");
    change(&db, 90..150);
    remove(&db, 60..150);
    db.drop_table("gone").expect("dropped");
    db.sync().expect("synced");
}

fn entries(table: &AnyTable) -> Entries {
    let mut entries = Entries::new();
    let walked = table.for_each(|key, value| {
        entries.insert(key.to_vec(), value.to_vec());
        ControlFlow::<()>::Continue(())
    });
    assert!(walked.expect("walked").is_continue());
    entries
}

fn assert_holds(db: &Db) {
    assert_eq!(db.table_names(), NAMES);
    for name in NAMES {
        let table = db.table(name).expect("it is there");
        assert!(entries(&table) == expected(name), "{name}");
        table.check().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let fields = db.hash_table("fields8").expect("it is there");
    assert!(fields.query().is_ok(), "its fields are known");
    let ordered = db.ordered_table("ordered8").expect("it is there");
    assert_eq!(ordered.stats().budget_bytes, Some(8 << 20));
    assert!(ordered.query().is_ok(), "its fields are known");
}

fn assert_is_golden(path: &Path) {
    let reader = Db::open_read_only(path).expect("opened");
    assert_holds(&reader);
    drop(reader);
    let db = open(path);
    assert_holds(&db);
    // It goes on being used.
    for name in NAMES {
        let table = db.table(name).expect("it is there");
        for (key, value) in expected(name).into_iter().step_by(2) {
            assert!(table.remove(&key).expect("removed"));
            table.put(&key, &value).expect("put");
        }
    }
    drop(db);
    let db = open(path);
    assert_holds(&db);
    db.close().expect("closed");
    assert_holds(&open(path));
}

/// All files of a folder and of those in it, by their path.
fn files(folder: &Path, prefix: &str, into: &mut BTreeMap<String, Vec<u8>>) {
    for file in fs::read_dir(folder).expect("a folder") {
        let file = file.expect("listed");
        let name = file.file_name().into_string().expect("text");
        match file.path().is_dir() {
            true => files(&file.path(), &format!("{prefix}{name}/"), into),
            // Locks are made again.
            false if name.starts_with('.') => {}
            false => {
                into.insert(format!("{prefix}{name}"), fs::read(file.path()).expect("read"));
            }
        }
    }
}

fn pack(path: &Path) -> Vec<u8> {
    let mut all = BTreeMap::new();
    files(path, "", &mut all);
    let mut packed = Vec::new();
    let number = |packed: &mut Vec<u8>, number: usize| packed.extend((number as u64).to_le_bytes());
    for (name, bytes) in all {
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

fn unpack(mut packed: &[u8], into: &Path) {
    fn take<'a>(packed: &mut &'a [u8], len: usize) -> &'a [u8] {
        let (taken, rest) = packed.split_at(len);
        *packed = rest;
        taken
    }
    fn number(packed: &mut &[u8]) -> usize {
        u64::from_le_bytes(take(packed, 8).try_into().expect("8 bytes")) as usize
    }
    while !packed.is_empty() {
        let len = number(&mut packed);
        let path = into.join(std::str::from_utf8(take(&mut packed, len)).expect("a path"));
        let mut bytes = vec![0; number(&mut packed)];
        loop {
            let (begin, len) = (number(&mut packed), number(&mut packed));
            if len == 0 {
                break;
            }
            bytes[begin..begin + len].copy_from_slice(take(&mut packed, len));
        }
        fs::create_dir_all(path.parent().expect("in the directory")).expect("made");
        fs::write(path, bytes).expect("written");
    }
}

/// Directories as they were written, the last one as they are written now. One of another version gets another
/// name, and those before stay. `BLESS=1` writes one that is missing.
const VERSIONS: [&str; 2] = ["directory-1.bin", "directory-2.bin"];

#[test]
fn directories_of_all_versions_open() {
    for version in VERSIONS {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/").to_owned() + version;
        if std::env::var_os("BLESS").is_some() && !Path::new(&golden).exists() {
            let path = directory();
            write(path.path());
            fs::write(&golden, pack(path.path())).expect("the golden file can be written");
        }
        let path = directory();
        unpack(&fs::read(golden).expect("the golden file is there"), path.path());
        assert_is_golden(path.path());
        // What opening it has moved elsewhere is there, too.
        assert_is_golden(path.path());
    }
}

#[test]
fn a_directory_that_is_written_now_holds_the_same() {
    let (written, unpacked) = (directory(), directory());
    write(written.path());
    unpack(&pack(written.path()), unpacked.path());
    let of = |path: &TempDir| {
        let mut all = BTreeMap::new();
        files(path.path(), "", &mut all);
        all
    };
    let (written, copied) = (of(&written), of(&unpacked));
    assert!(written == copied, "packing loses nothing");
    let has = |what: &str| written.keys().any(|name| name.starts_with(what));
    let parts =
        ["log/wal", "log/snapshot-", "log/manifest", "trees/heap", "tables/fields8/options"];
    assert!(parts.into_iter().all(has), "{:?}", written.keys());
    assert!(has("tables/bytes/checkpoint-") && has("tables/bytes/log-"));
    assert_is_golden(unpacked.path());
}
