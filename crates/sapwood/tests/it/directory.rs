//! A database in a directory: what is there again when it is opened again.

use std::fs;
use std::path::Path;

use sapwood::{
    ColdReads, Compaction, Cut, Db, Error, HashTable, HashTableOptions, Layout, Options,
    TableOptions,
};
use tempfile::TempDir;

fn directory() -> TempDir {
    TempDir::new().expect("a directory for the test")
}

fn open(path: &TempDir) -> Db {
    Db::open(path.path()).expect("the directory is free")
}

fn plain() -> HashTableOptions {
    HashTableOptions::default()
}

fn counter(table: &HashTable, key: &str) -> Option<i64> {
    let value = table.get(key.as_bytes()).expect("get")?;
    Some(i64::from_le_bytes(value.try_into().expect("a counter")))
}

#[test]
fn a_closed_database_is_there_again() {
    let path = directory();
    let db = open(&path);
    let hits = db.create_hash_table("hits", plain()).expect("a free name");
    for index in 0..10_000 {
        hits.add(format!("page {index}").as_bytes(), index).expect("add");
    }
    db.create_hash_table("empty", plain()).expect("a free name");
    drop(hits);
    db.close().expect("a checkpoint of each");

    let db = open(&path);
    assert_eq!(db.directory(), Some(path.path()));
    assert_eq!(db.table_names(), ["empty", "hits"]);
    assert_eq!(db.stats().unopened, ["empty", "hits"]);
    let hits = db.hash_table("hits").expect("it is there");
    assert_eq!(hits.len_exact(), Ok(10_000));
    for index in 0..10_000 {
        assert_eq!(counter(&hits, &format!("page {index}")), Some(index));
    }
    hits.check().expect("a sound table");
    assert_eq!(db.stats().unopened, ["empty"]);
    assert!(db.stats().file_bytes > 0);
    assert_eq!(db.hash_table("empty").expect("it is there").len_exact(), Ok(0));
}

#[test]
fn without_close_there_is_what_the_last_checkpoint_has() {
    let path = directory();
    let db = open(&path);
    let hits = db.create_hash_table("hits", plain()).expect("a free name");
    hits.add(b"/", 1).expect("add");
    db.checkpoint().expect("a checkpoint of each");
    hits.add(b"/", 1).expect("add");
    hits.add(b"/new", 1).expect("add");
    drop((hits, db));

    let hits = open(&path).hash_table("hits").expect("it is there");
    assert_eq!((counter(&hits, "/"), counter(&hits, "/new")), (Some(1), None));
}

#[test]
fn a_table_without_a_checkpoint_is_there_and_empty() {
    let path = directory();
    let hits = open(&path).create_hash_table("hits", plain()).expect("a free name");
    hits.add(b"/", 1).expect("add");
    drop(hits);
    let hits = open(&path).hash_table("hits").expect("it is there");
    assert_eq!(hits.len_exact(), Ok(0));
}

#[test]
fn ordered_tables_live_in_memory_alone() {
    let path = directory();
    let db = open(&path);
    let table = db.create_table("t", TableOptions::default()).expect("a free name");
    table.put(b"k", b"v").expect("put");
    drop(table);
    db.close().expect("nothing of it is kept");
    let db = open(&path);
    assert_eq!(db.table_names(), Vec::<String>::new());
    db.create_hash_table("t", plain()).expect("the name is free");
}

#[test]
fn one_database_at_a_time_has_a_directory() {
    let path = directory();
    let db = open(&path);
    let in_use = Error::DirectoryInUse { path: path.path().to_owned() };
    assert_eq!(Db::open(path.path()).err(), Some(in_use.clone()));
    let table = db.create_hash_table("t", plain()).expect("a free name");
    db.close().expect("close");
    // A handle could still write.
    assert_eq!(Db::open(path.path()).err(), Some(in_use));
    drop(table);
    open(&path);
}

#[test]
fn a_directory_is_made_and_a_file_is_none() {
    let path = directory();
    let deep = path.path().join("a/b/c");
    Db::open(&deep).expect("it is made");
    let file = path.path().join("file");
    fs::write(&file, "").expect("a file for the test");
    let error = Db::open(&file).expect_err("a file");
    assert!(matches!(&error, Error::Directory { path, .. } if *path == file), "{error}");
    assert!(error.to_string().contains("cannot be opened"), "{error}");
}

#[test]
fn one_goes_back_to_an_older_checkpoint() {
    let path = directory();
    let db = open(&path);
    let hits = db.create_hash_table("hits", plain().checkpoints_kept(3)).expect("a free name");
    let mut numbers = Vec::new();
    for cut in [Cut::Full, Cut::Incremental, Cut::Incremental] {
        hits.add(b"/", 1).expect("add");
        numbers.push(hits.checkpoint(cut).expect("checkpoint").number);
    }
    let listed = hits.checkpoints().expect("a list");
    assert_eq!(listed.iter().map(|info| info.number).collect::<Vec<_>>(), numbers);

    let error = db.hash_table_at("hits", numbers[1]).expect_err("a handle is in use");
    assert_eq!(error.to_string(), "table `hits` has handles in use; drop them first, then open it");
    drop(hits);
    let error = db.hash_table_at("hits", 77).expect_err("no such number");
    assert!(error.to_string().starts_with("table `hits` has no checkpoint 77; it has "), "{error}");
    let hits = db.hash_table_at("hits", numbers[1]).expect("it is there");
    assert_eq!(counter(&hits, "/"), Some(2));
    drop((hits, db));

    // The newer one is gone for good, and the older one is not.
    let db = open(&path);
    assert_eq!(counter(&db.hash_table("hits").expect("it is there"), "/"), Some(2));
    let hits = db.hash_table_at("hits", numbers[0]).expect("it is there");
    assert_eq!(counter(&hits, "/"), Some(1));
}

#[test]
fn options_are_kept_and_those_that_can_be_others_are_changed() {
    let path = directory();
    let options = plain()
        .layout(Layout::Fixed8)
        .page_bytes(64 << 10)
        .memory_budget(8 << 20)
        .cold_reads(ColdReads::Stay)
        .expected_entries(100);
    let key = 1_u64.to_le_bytes();
    let db = open(&path);
    let table = db.create_hash_table("t", options.clone()).expect("a free name");
    table.add(&key, 5).expect("add");
    drop(table);
    db.close().expect("close");

    let db = open(&path);
    let table = db.hash_table("t").expect("it is there");
    assert_eq!(table.stats().budget_bytes, Some(8 << 20));
    assert!(table.put(b"not eight", b"bytes").is_err());
    table.add(&key, 1).expect("add");
    drop(table);
    let table = db.hash_table_with("t", options.clone().memory_budget(16 << 20));
    let table = table.expect("no handle is in use");
    assert_eq!(table.stats().budget_bytes, Some(16 << 20));
    assert_eq!(table.add(&key, 0), Ok(6), "changes since the checkpoint are kept");
    drop(table);
    let error = db.hash_table_with("t", options.page_bytes(128 << 10)).expect_err("other pages");
    assert!(error.to_string().contains("pages of 65536 bytes"), "{error}");
    drop(db);
    assert_eq!(open(&path).hash_table("t").expect("there").stats().budget_bytes, Some(16 << 20));
}

#[test]
fn a_dropped_table_leaves_no_files() {
    let path = directory();
    let db = open(&path);
    let table = db.create_hash_table("t", plain()).expect("a free name");
    table.add(b"k", 1).expect("add");
    table.checkpoint(Cut::Full).expect("checkpoint");
    let folder = path.path().join("tables/t");
    assert!(folder.is_dir());
    let error = db.drop_table("t").expect_err("a handle is in use");
    assert_eq!(error, Error::TableInUse { name: "t".to_owned(), what: "drop" });
    drop(table);
    db.drop_table("t").expect("no handle is in use");
    assert!(!folder.exists());
    let table = db.create_hash_table("t", plain()).expect("the name is free again");
    assert_eq!(table.len_exact(), Ok(0));
    drop((table, db));
    // One that was not opened goes too.
    let db = open(&path);
    db.drop_table("t").expect("it is there");
    drop(db);
    assert_eq!(open(&path).table_names(), Vec::<String>::new());
}

#[test]
fn what_a_crash_left_of_a_table_is_cleared() {
    let path = directory();
    let folder = path.path().join("tables/t");
    fs::create_dir_all(&folder).expect("a folder for the test");
    fs::write(folder.join("left-over"), "bytes").expect("a file for the test");
    let db = open(&path);
    assert_eq!(db.table_names(), Vec::<String>::new());
    let table = db.create_hash_table("t", plain()).expect("a free name");
    assert_eq!(table.len_exact(), Ok(0));
    assert!(!folder.join("left-over").exists());
}

#[test]
fn damaged_options_are_named_with_file_and_offset() {
    let path = directory();
    drop(open(&path).create_hash_table("t", plain()).expect("a free name"));
    let file = path.path().join("tables/t/options");
    damage(&file, 30);
    let db = open(&path);
    let error = db.hash_table("t").expect_err("a damaged file");
    let Error::StoredOptions { path: named, offset, .. } = &error else { panic!("{error}") };
    assert_eq!((named, *offset), (&file, 28));
    assert!(error.to_string().contains("drop the table"), "{error}");
    db.drop_table("t").expect("what the error says");
    db.create_hash_table("t", plain()).expect("the name is free again");
}

#[test]
fn options_that_are_cut_off_are_named_with_file_and_offset() {
    let path = directory();
    drop(open(&path).create_hash_table("t", plain()).expect("a free name"));
    let file = path.path().join("tables/t/options");
    for len in [0, 30, 4095] {
        let cut = fs::File::options().write(true).open(&file).expect("it is there");
        cut.set_len(len).expect("it can be cut");
        let error = open(&path).hash_table("t").expect_err("a cut file");
        let Error::StoredOptions { path: named, offset, .. } = &error else { panic!("{error}") };
        assert_eq!((named, *offset), (&file, len));
        let told = error.to_string();
        assert!(told.contains("cut off") && told.contains("drop the table"), "{told}");
    }
}

/// The newest checkpoint is damaged: the error says which one opens and how, and it does.
#[test]
fn a_damaged_checkpoint_leads_to_the_one_before() {
    let path = directory();
    let db = open(&path);
    let hits = db.create_hash_table("hits", plain()).expect("a free name");
    let mut numbers = Vec::new();
    for _ in 0..2 {
        hits.add(b"/", 1).expect("add");
        numbers.push(hits.checkpoint(Cut::Full).expect("checkpoint").number);
    }
    let error = db.hash_table_view("hits", numbers[0]).expect_err("it is open");
    assert!(matches!(&error, Error::TableOpen { name } if name == "hits"), "{error}");
    let listed = db.checkpoints("hits").expect("of an open table");
    assert_eq!(listed.iter().map(|one| one.number).collect::<Vec<_>>(), numbers);
    assert!(listed.iter().all(|one| one.taken.is_some() && one.state.is_ok()), "{listed:?}");
    drop((hits, db));

    let image = format!("tables/hits/index-{:016x}.image", numbers[1]);
    damage(&path.path().join(image), 20);
    let db = open(&path);
    let told = db.hash_table("hits").expect_err("a damaged image").to_string();
    for part in [&*format!("index-{:016x}.image", numbers[1]), "checkpoint 1", "hash_table_at"] {
        assert!(told.contains(part), "{told}");
    }
    let listed = db.checkpoints("hits").expect("of a table that does not open");
    assert!(listed[0].state.is_ok() && listed[1].state.is_err(), "{listed:?}");
    assert_eq!(listed[0].state.as_ref().map(|info| info.entries), Ok(1));
    let view = db.hash_table_view("hits", numbers[0]).expect("a whole one");
    assert_eq!(counter(&view, "/"), Some(1));
    assert!(view.checkpoint(Cut::Full).is_err(), "of a view");
    drop(view);
    assert!(db.hash_table("hits").is_err(), "looking changes nothing");
    let hits = db.hash_table_at("hits", numbers[0]).expect("a whole one");
    assert_eq!(counter(&hits, "/"), Some(1));
    hits.checkpoint(Cut::Full).expect("it goes on");
    drop((hits, db));
    assert_eq!(counter(&open(&path).hash_table("hits").expect("it opens again"), "/"), Some(1));

    let error = Db::in_memory().checkpoints("t").expect_err("no table");
    assert!(matches!(error, Error::TableMissing { .. }), "{error}");
    let db = Db::in_memory();
    db.create_hash_table("t", plain()).expect("a free name");
    assert_eq!(db.checkpoints("t").expect_err("in memory"), Error::NoDirectory);
    assert_eq!(db.hash_table_view("t", 1).expect_err("in memory"), Error::NoDirectory);
}

#[test]
fn a_table_without_its_manifests_is_not_an_empty_one() {
    let path = directory();
    let db = open(&path);
    let hits = db.create_hash_table("hits", plain()).expect("a free name");
    hits.add(b"/", 1).expect("add");
    drop(hits);
    db.close().expect("a checkpoint");
    let folder = path.path().join("tables/hits");
    let manifest = folder.join("checkpoint-0000000000000001.manifest");
    let kept = fs::read(&manifest).expect("it is there");
    fs::remove_file(&manifest).expect("it is there");
    let count = || fs::read_dir(&folder).expect("a folder").count();
    let before = count();
    let db = open(&path);
    let told = db.hash_table("hits").expect_err("no manifest").to_string();
    assert!(told.contains("bring the file back") && told.contains("drop the table"), "{told}");
    assert_eq!(count(), before, "nothing is removed");
    fs::write(&manifest, kept).expect("brought back");
    assert_eq!(counter(&db.hash_table("hits").expect("it opens"), "/"), Some(1));
}

/// What was changed and never checkpointed takes no space once the table is closed.
#[test]
fn changes_without_a_checkpoint_leave_no_files() {
    let path = directory();
    let options = plain().page_bytes(64 << 10).memory_budget(1 << 20);
    let db = open(&path);
    let table = db.create_hash_table("t", options).expect("a free name");
    table.put(b"k", b"v").expect("room");
    drop(table);
    db.close().expect("a checkpoint");
    let bytes = || -> u64 {
        let files = fs::read_dir(path.path().join("tables/t")).expect("a folder");
        files.map(|file| file.and_then(|file| file.metadata()).expect("a file").len()).sum()
    };
    let before = bytes();
    let db = open(&path);
    let table = db.hash_table("t").expect("it is there");
    for index in 0..50_000_u32 {
        table.put(&index.to_le_bytes(), &[7; 64]).expect("it spills");
    }
    assert!(bytes() > before + (1 << 20), "it spilled");
    drop((table, db));
    assert_eq!(bytes(), before);
}

fn damage(file: &Path, offset: usize) {
    let mut bytes = fs::read(file).expect("it is there");
    bytes[offset] ^= 1;
    fs::write(file, bytes).expect("it can be written");
}

#[test]
fn a_table_larger_than_its_budget_lies_on_the_disk() {
    const ENTRIES: u32 = 20_000;
    let path = directory();
    let db = open(&path);
    let options = plain().page_bytes(64 << 10).memory_budget(2 << 20);
    let table = db.create_hash_table("t", options).expect("a free name");
    let value = |entry: u32| [entry.to_le_bytes()[0]; 500];
    for entry in 0..ENTRIES {
        table.put(&entry.to_be_bytes(), &value(entry)).expect("it spills");
    }
    let stats = table.stats();
    assert!(stats.reserved_bytes <= 2 << 20, "{stats:?}");
    assert!(stats.head > stats.begin, "something left memory: {stats:?}");
    for entry in (0..ENTRIES).step_by(7) {
        let right = table.get_with(&entry.to_be_bytes(), |bytes| *bytes == value(entry));
        assert_eq!(right, Ok(Some(true)), "{entry}");
    }
    drop(table);
    db.close().expect("close");
    let table = open(&path).hash_table("t").expect("it is there");
    assert_eq!(table.len_exact(), Ok(ENTRIES as usize));
}

#[test]
fn compaction_gives_the_disk_back() {
    let path = directory();
    let db = open(&path);
    let options = plain().page_bytes(4096).checkpoints_kept(1);
    let table = db.create_hash_table("t", options).expect("a free name");
    table.put(b"old", b"kept").expect("put");
    for round in 0..2000_u32 {
        table.put(&(round % 10).to_be_bytes(), &vec![b'x'; round as usize]).expect("put");
    }
    table.checkpoint(Cut::Full).expect("checkpoint");
    let compacted = table.compact(1.0).expect("compact");
    assert!(compacted.records_dropped > 1000 && compacted.bytes_freed > 1 << 20, "{compacted:?}");
    table.checkpoint(Cut::Full).expect("checkpoint");
    drop(table);
    db.close().expect("close");
    let table = open(&path).hash_table("t").expect("it is there");
    assert_eq!(table.get(b"old"), Ok(Some(b"kept".to_vec())));
    assert_eq!(table.len_exact(), Ok(11));
    assert_eq!(table.get_with(&9_u32.to_be_bytes(), <[u8]>::len), Ok(Some(1999)));
}

/// By itself, and as its options say when it is opened again.
#[test]
fn a_table_keeps_itself_short_as_it_was_told() {
    let path = directory();
    let db = open(&path);
    let compaction =
        Compaction { garbage_share: 0.5, log_bytes_min: 1 << 20, ..Compaction::default() };
    let options = plain().page_bytes(16 << 10).memory_budget(512 << 10).compaction(compaction);
    drop(db.create_hash_table("t", options.clone()).expect("a free name"));
    db.close().expect("close");

    let db = open(&path);
    let table = db.hash_table("t").expect("it is there");
    for round in 0..20_u64 {
        for key in 0..5000_u64 {
            table.put(&key.to_be_bytes(), &[round as u8; 200]).expect("put");
        }
    }
    // Its own thread does it; how soon, nobody promises. It may wait for checkpoints, which keep
    // the files.
    let short = |table: &HashTable| table.stats().tail - table.stats().begin < 4 << 20;
    while !short(&table) {
        table.checkpoint(Cut::Incremental).expect("checkpoint");
    }
    let stats = table.stats();
    assert!(stats.compactions > 0 && stats.compacted_bytes > 4 << 20, "{stats:?}");
    assert_eq!(stats.compaction_error, None);
    assert!(table.estimate_garbage().expect("an estimate") < 4 << 20);
    assert_eq!(table.get(&7_u64.to_be_bytes()), Ok(Some(vec![19; 200])));
    assert_eq!(table.len_exact(), Ok(5000));
    drop(table);

    let table = db.hash_table_with("t", options.compaction(None)).expect("nobody has it");
    let before = table.stats().begin;
    for round in 0..20_u64 {
        for key in 0..5000_u64 {
            table.put(&key.to_be_bytes(), &[round as u8; 200]).expect("put");
        }
    }
    assert_eq!((table.stats().compactions, table.stats().begin), (0, before));
}

#[test]
fn counters_are_exact_while_they_spill() {
    const EVENTS: u64 = 60_000;
    // Hot ones, recent ones, and any: in place, in a copy, and back from the disk.
    let keys = |event: u64| {
        let random = event.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        [random % 16, 100 + event / 2, 100 + random % (event / 2 + 1)]
    };
    let path = directory();
    let db = open(&path);
    let options = plain().page_bytes(16 << 10).memory_budget(1 << 20);
    let table = db.create_hash_table("t", options).expect("a free name");
    let mut expected = std::collections::BTreeMap::new();
    (0..EVENTS).flat_map(keys).for_each(|key| *expected.entry(key).or_insert(0_i64) += 1);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let table = &table;
            scope.spawn(move || {
                for batch in (thread..EVENTS / 100).step_by(2) {
                    let events = batch * 100..(batch + 1) * 100;
                    let deltas: Vec<([u8; 8], i64)> =
                        events.flat_map(keys).map(|key| (key.to_be_bytes(), 1)).collect();
                    table.add_many(&deltas).expect("counters");
                }
            });
        }
        for _ in 0..3 {
            table.checkpoint(Cut::Incremental).expect("checkpoint");
        }
    });
    let equal = |table: &HashTable, when: &str| {
        let mut found = std::collections::BTreeMap::new();
        let mut visited = 0;
        let _ = table
            .scan_log(|key, value| {
                visited += 1;
                let key = u64::from_be_bytes(key.try_into().expect("8 bytes"));
                found.insert(key, i64::from_le_bytes(value.try_into().expect("a counter")));
                std::ops::ControlFlow::<()>::Continue(())
            })
            .expect("walk");
        assert_eq!(visited, expected.len(), "{when}: each once");
        let wrong = expected.iter().find(|(key, sum)| found.get(key) != Some(sum));
        assert_eq!(wrong, None, "{when}");
    };
    assert!(table.stats().head > table.stats().begin, "something left memory");
    equal(&table, "while open");
    drop(table);
    db.close().expect("close");
    equal(&open(&path).hash_table("t").expect("it is there"), "opened again");
}

#[test]
fn a_name_is_opened_once_by_many_threads() {
    let path = directory();
    let db = open(&path);
    db.create_hash_table("t", plain()).expect("a free name").add(b"k", 1).expect("add");
    db.close().expect("close");
    let db = Db::open_with(path.path(), Options::default()).expect("the directory is free");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| db.hash_table("t").expect("it is there").add(b"k", 1).expect("add"));
        }
    });
    assert_eq!(counter(&db.hash_table("t").expect("it is there"), "k"), Some(9));
}
