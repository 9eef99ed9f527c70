//! A database in a directory: what is there again when it is opened again.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use sapwood::aggregate::{Aggregate, Compiled, Execution, Executor, Query, Selection};
use sapwood::{
    Backups, ColdReads, Compaction, Cut, Db, DbOptions, Durability, Error, HashEngineError,
    HashTable, HashTableOptions, OrderedTableOptions, RecordLayout, Table, TreeTableOptions,
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
    assert_eq!(hits.len(), Ok(10_000));
    for index in 0..10_000 {
        assert_eq!(counter(&hits, &format!("page {index}")), Some(index));
    }
    hits.check().expect("a sound table");
    assert_eq!(db.stats().unopened, ["empty"]);
    assert!(db.stats().file_bytes > 0);
    assert_eq!(db.hash_table("empty").expect("it is there").len(), Ok(0));
}

#[test]
fn without_the_log_there_is_what_the_last_checkpoint_has() {
    let path = directory();
    let db = Db::open_with(path.path(), DbOptions::default().without_log()).expect("it is free");
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
fn a_table_without_a_checkpoint_is_there() {
    let path = directory();
    let hits = open(&path).create_hash_table("hits", plain()).expect("a free name");
    hits.add(b"/", 1).expect("add");
    drop(hits);
    let hits = open(&path).hash_table("hits").expect("it is there");
    assert_eq!(hits.get_counter(b"/"), Ok(Some(1)));
}

#[test]
fn a_volatile_table_ends_with_its_database() {
    let path = directory();
    let db = open(&path);
    let options = OrderedTableOptions::default().volatile();
    let table = db.create_ordered_table("t", options.clone()).expect("a free name");
    table.put(b"k", b"v").expect("put");
    // Another part of the program may not know how the table was made.
    let again = db.open_or_create_ordered_table("t", OrderedTableOptions::default());
    assert_eq!(again.expect("it is there").get(b"k"), Ok(Some(b"v".to_vec())));
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

/// The lock is that of the directory, whatever its path: another database may be made where it was.
#[test]
fn a_directory_that_was_moved_and_one_in_its_place_harm_each_other_in_nothing() {
    let put = |table: &Table, number: u32, value: &str| table.put(number.to_be_bytes(), value);
    for durability in [Durability::Sync, Durability::Buffered] {
        let folder = directory();
        let path = |name: &str| folder.path().join(name);
        let backups = Backups::open_or_create(path("backups")).expect("made");
        let open =
            |name: &str| Db::open_with(path(name), DbOptions::default().durability(durability));
        let make = |db: &Db| -> [Table; 3] {
            let ordered = db.create_ordered_table("ordered", OrderedTableOptions::default());
            let tree = db.create_tree_table("tree", TreeTableOptions::default());
            let hash = db.create_hash_table("hash", plain().page_bytes(4096));
            [
                ordered.expect("a free name").into(),
                tree.expect("a free name").into(),
                hash.expect("a free name").into(),
            ]
        };
        let one = open("data").expect("made");
        let tables = make(&one);
        tables.iter().for_each(|table| (0..300).for_each(|n| put(table, n, "one").expect("room")));
        fs::rename(path("data"), path("moved")).expect("moved");
        let other = open("data").expect("another");
        for table in make(&other) {
            (0..300).for_each(|n| put(&table, n, "other").expect("room"));
        }

        let is_told = |error: Error| assert!(error.to_string().contains("was moved or removed"));
        let mut lasting = [300; 3];
        for (table, lasting) in tables.iter().zip(&mut lasting) {
            for n in 300..350 {
                match put(table, n, "one") {
                    Ok(()) => *lasting = n + 1,
                    Err(error) => is_told(error),
                }
            }
        }
        is_told(one.checkpoint().expect_err("its files would be the other's"));
        is_told(backups.add(&one, |_| true).expect_err("the files are the other's"));
        is_told(one.create_hash_table("new", plain()).map(drop).expect_err("a folder"));
        is_told(one.drop_table("ordered").expect_err("the drop cannot last"));
        other.checkpoint().expect("it is in its place");
        drop((tables, one, other));

        for (name, value, lasting) in [("moved", "one", lasting), ("data", "other", [300; 3])] {
            let check = Db::check(path(name)).expect("checked");
            assert!(check.problems.is_empty(), "{name}: {:?}", check.problems);
            let db = open(name).expect("whole");
            for (table, lasting) in ["ordered", "tree", "hash"].iter().zip(lasting) {
                let table = db.table(table).expect("it is there");
                for n in 0..lasting {
                    let found = table.get(n.to_be_bytes()).expect("read");
                    assert_eq!(found.as_deref(), Some(value.as_bytes()), "{name}, {n}");
                }
            }
        }
    }
}

#[test]
fn changes_of_a_directory_that_was_removed_are_refused() {
    let folder = directory();
    let path = folder.path().join("data");
    let options = DbOptions::default().durability(Durability::Sync);
    let db = Db::open_with(&path, options).expect("made");
    let table = db.create_ordered_table("t", OrderedTableOptions::default()).expect("made");
    table.put("before", "1").expect("put");
    fs::remove_dir_all(&path).expect("removed");
    let error = table.put("after", "2").expect_err("nothing of it would last");
    assert!(error.to_string().contains("was moved or removed"), "{error}");
    assert!(db.create_hash_table("h", plain()).is_err() && db.checkpoint().is_err());
    drop((table, db));
    assert!(!path.exists(), "nothing is made where it was");
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
fn a_checkpoint_may_be_of_an_earlier_snapshot() {
    let path = directory();
    {
        let db =
            Db::open_with(path.path(), DbOptions::default().without_log()).expect("it is free");
        let table = db.create_hash_table("t", plain()).expect("a free name");
        table.put(b"k", b"then").expect("it is small");
        let then = table.snapshot().expect("it is held");
        table.put(b"k", b"later").expect("it is small");
        table.put(b"l", b"later").expect("it is small");
        then.checkpoint(Cut::Full).expect("it is kept");
    }
    let db = open(&path);
    let table = db.hash_table("t").expect("it is there");
    assert_eq!(table.get(b"k"), Ok(Some(b"then".to_vec())));
    assert_eq!((table.len(), table.len_estimate()), (Ok(1), 1));
    // Checkpoints come in the order of their moments.
    let earlier = table.snapshot().expect("it is held");
    table.put(b"k", b"now").expect("it is small");
    table.checkpoint(Cut::Incremental).expect("it is kept");
    let error = earlier.checkpoint(Cut::Incremental).expect_err("a later one is there");
    assert!(matches!(error.hash_engine(), Some(HashEngineError::Argument(_))), "{error}");
    drop((table, db));
    let db = open(&path);
    assert_eq!(db.hash_table("t").expect("it is there").get(b"k"), Ok(Some(b"now".to_vec())));
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
        .layout(RecordLayout::Fixed8)
        .page_bytes(64 << 10)
        .memory_budget(8 << 20)
        .cold_reads(ColdReads::Stay)
        .expected_entries(100);
    let key = 1_u64.to_le_bytes();
    let db = open(&path);
    let table = db.create_hash_table("t", options.clone()).expect("a free name");
    table.add(key, 5).expect("add");
    drop(table);
    db.close().expect("close");

    let db = open(&path);
    let table = db.hash_table("t").expect("it is there");
    assert_eq!(table.stats().budget_bytes, Some(8 << 20));
    assert!(table.put(b"not eight", b"bytes").is_err());
    table.add(key, 1).expect("add");
    drop(table);
    let table = db.hash_table_with("t", options.clone().memory_budget(16 << 20));
    let table = table.expect("no handle is in use");
    assert_eq!(table.stats().budget_bytes, Some(16 << 20));
    assert_eq!(table.add(key, 0), Ok(6), "changes since the checkpoint are kept");
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
    assert_eq!(table.len(), Ok(0));
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
    assert_eq!(table.len(), Ok(0));
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

/// A copy would be of the same version, and the table is whole.
#[test]
fn what_a_later_version_has_written_is_not_called_damaged() {
    let path = directory();
    drop(open(&path).create_hash_table("t", plain()).expect("a free name"));
    let file = path.path().join("tables/t/options");
    let mut bytes = fs::read(&file).expect("it is there");
    let at = bytes.iter().position(u8::is_ascii_digit).expect("a version");
    bytes[at] = b'9';
    fs::write(&file, &bytes).expect("written");
    let error = open(&path).hash_table("t").expect_err("another format");
    assert_eq!(error, Error::NewerFormat { path: file.clone(), found: 9, known: 4 });
    let manifest = path.path().join("log/manifest");
    let mut log = fs::read(&manifest).expect("it is there");
    log[6] = 9;
    fs::write(&manifest, log).expect("written");
    for told in [error, Db::open(path.path()).expect_err("another format")] {
        let told = told.to_string();
        assert!(told.contains("written by format 9") && told.contains("upgrade"), "{told}");
        assert!(!told.contains("drop") && !told.contains("copy"), "{told}");
    }
    assert_eq!(fs::read(&file).expect("it is there"), bytes);
}

/// One file of each engine at a time. None is taken for a leftover and removed, and no older state is opened.
#[test]
fn files_of_a_later_version_are_refused_and_stay() {
    let path = directory();
    let db = open(&path);
    let hash = db.create_hash_table("hash", plain()).expect("a free name");
    hash.put("k", "v").expect("room");
    hash.checkpoint(Cut::Full).expect("written");
    drop(hash);
    db.create_tree_table("tree", TreeTableOptions::default()).expect("a free name");
    db.close().expect("written");
    let all = || {
        let mut all = std::collections::BTreeMap::new();
        let mut folders = vec![path.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("listed") {
                let entry = entry.expect("listed").path();
                match entry.is_dir() {
                    true => folders.push(entry),
                    false => drop(all.insert(entry.clone(), fs::read(entry).expect("read"))),
                }
            }
        }
        all
    };
    let files = all();
    // A magic of 8 bytes, and the version: of parts of the log, the heap of trees, and files of hash tables.
    let is_versioned = |bytes: &[u8]| {
        bytes.starts_with(b"SW") && bytes.len() > 16 && bytes[8] < 9 && bytes[9..12] == [0; 3]
    };
    let mut kinds = std::collections::BTreeSet::new();
    // An index of an older checkpoint is not read.
    let is_image = |file: &Path| file.extension().is_some_and(|kind| kind == "image");
    let versioned = files.iter().filter(|(file, bytes)| is_versioned(bytes) && !is_image(file));
    for (file, bytes) in versioned {
        let mut later = bytes.clone();
        later[8] = 9;
        fs::write(file, &later).expect("written");
        let opened = Db::open(path.path()).and_then(|db| db.hash_table("hash").map(drop));
        let name = file.file_name().expect("a file").to_string_lossy().into_owned();
        let told = opened.expect_err(&name).to_string();
        assert!(told.contains("written by format 9") && told.contains("upgrade"), "{name}: {told}");
        assert!(!told.contains("drop") && !told.contains("copy"), "{told}");
        assert_eq!(fs::read(file).expect("it is there"), later, "{name}");
        fs::write(file, bytes).expect("written");
        kinds.insert(name.split(['-', '.']).next().map(str::to_owned));
    }
    assert!(kinds.len() >= 4, "{kinds:?} of {:?}", files.keys());
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
        table.put(index.to_le_bytes(), [7; 64]).expect("it spills");
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
        table.put(entry.to_be_bytes(), value(entry)).expect("it spills");
    }
    let stats = table.stats();
    assert!(stats.reserved_bytes <= 2 << 20, "{stats:?}");
    assert!(stats.head > stats.begin, "something left memory: {stats:?}");
    for entry in (0..ENTRIES).step_by(7) {
        let right = table.get_with(entry.to_be_bytes(), |bytes| *bytes == value(entry));
        assert_eq!(right, Ok(Some(true)), "{entry}");
    }
    drop(table);
    db.close().expect("close");
    let table = open(&path).hash_table("t").expect("it is there");
    assert_eq!(table.len(), Ok(ENTRIES as usize));
}

#[test]
fn compaction_gives_the_disk_back() {
    let path = directory();
    let db = open(&path);
    let options = plain().page_bytes(4096).checkpoints_kept(1);
    let table = db.create_hash_table("t", options).expect("a free name");
    table.put(b"old", b"kept").expect("put");
    for round in 0..2000_u32 {
        table.put((round % 10).to_be_bytes(), vec![b'x'; round as usize]).expect("put");
    }
    table.checkpoint(Cut::Full).expect("checkpoint");
    let compacted = table.compact(1.0).expect("compact");
    assert!(compacted.records_dropped > 1000 && compacted.bytes_freed > 1 << 20, "{compacted:?}");
    table.checkpoint(Cut::Full).expect("checkpoint");
    drop(table);
    db.close().expect("close");
    let table = open(&path).hash_table("t").expect("it is there");
    assert_eq!(table.get(b"old"), Ok(Some(b"kept".to_vec())));
    assert_eq!(table.len(), Ok(11));
    assert_eq!(table.get_with(9_u32.to_be_bytes(), <[u8]>::len), Ok(Some(1999)));
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
            table.put(key.to_be_bytes(), [round as u8; 200]).expect("put");
        }
    }
    // Its own thread does it; how soon is not promised. It may wait for checkpoints, which keep
    // the files.
    let short = |table: &HashTable| table.stats().tail - table.stats().begin < 4 << 20;
    while !short(&table) {
        table.checkpoint(Cut::Incremental).expect("checkpoint");
    }
    let stats = table.stats();
    assert!(stats.compactions > 0 && stats.compacted_bytes > 4 << 20, "{stats:?}");
    assert_eq!(stats.compaction_error, None);
    assert!(table.estimate_garbage().expect("an estimate") < 4 << 20);
    assert_eq!(table.get(7_u64.to_be_bytes()), Ok(Some(vec![19; 200])));
    assert_eq!(table.len(), Ok(5000));
    drop(table);

    let table = db.hash_table_with("t", options.compaction(None)).expect("no other handle");
    let before = table.stats().begin;
    for round in 0..20_u64 {
        for key in 0..5000_u64 {
            table.put(key.to_be_bytes(), [round as u8; 200]).expect("put");
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
    let db = open(&path);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| db.hash_table("t").expect("it is there").add(b"k", 1).expect("add"));
        }
    });
    assert_eq!(counter(&db.hash_table("t").expect("it is there"), "k"), Some(9));
}

/// What a query of a table that was opened would read back and visit is what it then does, and what
/// it answers is what the table answered before. The first walk of either kind brings all back, and
/// leaves later ones nothing to ask the index about.
#[test]
fn an_opened_table_is_walked_in_the_cheapest_way() {
    const ENTRIES: u64 = 20_000;
    /// Of the few records that a walk looks at before pages come back, and of keys that share slots.
    const ASKED_MAX: u64 = 256 + ENTRIES / 20;
    let selections = [
        Selection::EVERYTHING,
        Selection::prefix([0; 7]),
        Selection::prefix([0; 6]),
        Selection::keys((0..300_u64).map(u64::to_be_bytes)),
        Selection::keys((0..ENTRIES).map(u64::to_be_bytes)),
    ];
    let queries = selections.map(|selection| {
        let query = Query::new("n:u64le".parse().expect("a layout")).select(selection);
        query
            .aggregates(Aggregate::list("count, sum(n)").expect("figures"))
            .compile()
            .expect("a query")
    });
    let ways = [None, Some(Executor::Log), Some(Executor::Walk)].map(|executor| match executor {
        Some(executor) => Execution::new().executor(executor),
        None => Execution::new(),
    });
    let openings: [fn(&Path) -> Db; 2] = [
        |path| Db::open(path).expect("it opens"),
        |path| Db::open_read_only(path).expect("it opens"),
    ];
    let layouts = [RecordLayout::Variable, RecordLayout::Fixed8];
    for (layout, replaced) in layouts.into_iter().flat_map(|layout| [(layout, 0), (layout, 3)]) {
        let path = directory();
        let db = open(&path);
        // Several pages: of one alone a walk of the log keeps nothing.
        let options = plain().layout(layout).page_bytes(16 << 10);
        let table = db.create_hash_table("t", options).expect("a free name");
        let put = |entry: u64| table.put(entry.to_be_bytes(), entry.to_le_bytes()).expect("put");
        (0..ENTRIES).for_each(put);
        if replaced > 0 {
            db.checkpoint().expect("a checkpoint");
            (0..ENTRIES).step_by(replaced).for_each(put);
        }
        let answer_of = |table: &HashTable, query: &Compiled| {
            let run = table.aggregate_with(query, &Execution::new()).expect("an answer");
            run.answer().expect("an answer").to_string()
        };
        let answers = queries.each_ref().map(|query| answer_of(&table, query));
        drop(table);
        db.close().expect("close");

        for (query, answer) in queries.iter().zip(&answers) {
            for (way, opening) in ways.iter().flat_map(|way| openings.map(|opening| (way, opening)))
            {
                let db = opening(path.as_ref());
                let table = db.hash_table("t").expect("it is there");
                let run = || {
                    let run = table.aggregate_with(query, way).expect("an answer");
                    let plan = run.plan.clone();
                    assert_eq!(run.answer().expect("an answer").to_string(), *answer, "{plan}");
                    plan
                };
                let before = table.stats();
                assert!(before.read_back_bytes >= ENTRIES * 24, "{before:?}");
                let plan = run();
                let (expected, measured) = (plan.expected(), plan.measured.expect("it ran"));
                let visits = measured.visited / 2..=measured.visited * 2;
                assert!(visits.contains(&expected.visits), "{plan}");
                if plan.executor == Executor::LookUp {
                    assert_eq!(expected.read_back_bytes, 0, "{plan}");
                    continue;
                }
                assert_eq!(expected.read_back_bytes, before.read_back_bytes, "{plan}");
                let after = table.stats();
                assert_eq!(after.read_back_bytes, 0, "{plan}");
                let named = if replaced > 0 { ENTRIES / replaced as u64 } else { 0 };
                assert!(after.chains_asked <= ASKED_MAX + named, "{after:?}, {plan}");
                let again = run();
                assert_eq!(again.expected().read_back_bytes, 0, "{again}");
                assert_eq!(table.stats().chains_asked, after.chains_asked, "{again}");
                if !plan.is_forced {
                    // Keys of a list may be looked up once all is back.
                    assert_eq!(plan.executor, Executor::Log);
                    assert_ne!(again.executor, Executor::Walk, "{again}");
                }
            }
        }
    }
}

/// Every file and folder of a directory: its bytes, and when it was changed.
pub(crate) fn files_of(
    path: &Path,
) -> std::collections::BTreeMap<std::path::PathBuf, (Vec<u8>, SystemTime)> {
    let mut files = std::collections::BTreeMap::new();
    let changed = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).expect("a time");
    for entry in fs::read_dir(path).expect("it can be listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.append(&mut files_of(&path));
        } else {
            let bytes = fs::read(&path).expect("it can be read");
            let time = changed(&path);
            files.insert(path, (bytes, time));
        }
    }
    files.insert(path.to_owned(), (Vec::new(), changed(path)));
    files
}

/// Two checkpoints, of which the older has 300 entries and the newer 200 more.
fn written() -> TempDir {
    let path = directory();
    let db = open(&path);
    let options = plain().page_bytes(4096).memory_budget(64 << 10);
    for layout in [RecordLayout::Variable, RecordLayout::Fixed8] {
        let name = format!("{layout:?}");
        let table = db.create_hash_table(&name, options.clone().layout(layout)).expect("free");
        for entries in [0..300_u64, 200..500] {
            for entry in entries {
                table.put(entry.to_be_bytes(), entry.to_le_bytes()).expect("put");
            }
            table.checkpoint(Cut::Incremental).expect("a checkpoint");
        }
    }
    path
}

#[test]
fn readers_share_a_directory_and_change_nothing_in_it() {
    let path = written();
    let before = files_of(path.path());
    let readers: Vec<Db> =
        (0..3).map(|_| Db::open_read_only(path.path()).expect("it is shared")).collect();
    for db in &readers {
        assert_eq!(db.table_names(), ["Fixed8", "Variable"]);
        for name in db.table_names() {
            let table = db.hash_table(&name).expect("it is there");
            for round in 0..2 {
                for entry in 0..500_u64 {
                    let value = table.get(entry.to_be_bytes());
                    assert_eq!(value, Ok(Some(entry.to_le_bytes().to_vec())), "{round}");
                }
            }
            assert_eq!(table.get(500_u64.to_be_bytes()), Ok(None));
            assert_eq!(table.len(), Ok(500));
            let mut seen = 0;
            let _ = table.scan_log(|_, _| {
                seen += 1;
                std::ops::ControlFlow::<()>::Continue(())
            });
            assert_eq!(seen, 500);
            assert_eq!(table.checkpoints().expect("a directory").len(), 2);
            table.check().expect("a sound table");
            drop(table);
            // With more memory, which is not remembered, or as it was.
            let more = db.hash_table_with(&name, {
                let layout =
                    if name == "Fixed8" { RecordLayout::Fixed8 } else { RecordLayout::Variable };
                plain().page_bytes(4096).layout(layout).memory_budget(1 << 20)
            });
            assert_eq!(more.expect("no thread has it").stats().budget_bytes, Some(1 << 20));
            let older = db.hash_table_at(&name, 1).expect("the older checkpoint");
            assert_eq!(older.len(), Ok(300));
        }
    }
    for db in readers {
        db.close().expect("there is nothing to keep");
    }
    assert_eq!(files_of(path.path()), before);
    let db = open(&path);
    let error = Db::open(path.path()).expect_err("a writer has it");
    assert!(matches!(error, Error::DirectoryInUse { .. }), "{error}");
    let table = db.hash_table("Fixed8").expect("it is there");
    assert_eq!((table.len(), table.checkpoints().map(|all| all.len())), (Ok(500), Ok(2)));
}

#[test]
fn what_is_open_to_be_read_refuses_every_change() {
    let path = written();
    let before = files_of(path.path());
    let db = Db::open_read_only(path.path()).expect("it is shared");
    for name in db.table_names() {
        let table = db.hash_table(&name).expect("it is there");
        let (old, new) = (7_u64.to_be_bytes(), 1000_u64.to_be_bytes());
        let tried = |what: &str| {
            let refused = match what {
                "put" => table.put(old, new).map(drop),
                "put new" => table.put(new, new).map(drop),
                "put_many" => table.put_many(&[(old, new), (new, new)]).map(drop),
                "put_if_absent" => table.put_if_absent(new, new).map(drop),
                "remove" => table.remove(old).map(drop),
                "update" => table.update(old, |value| value[0] += 1).map(drop),
                "update_many" => table.update_many(&[old], |_, value| value[0] += 1).map(drop),
                "compare_and_put" => table.compare_and_put(old, 7_u64.to_le_bytes(), new).map(drop),
                "add" => table.add(old, 1).map(drop),
                "add_many" => table.add_many(&[(old, 1), (new, 1)]).map(drop),
                "clear" => table.clear().map(drop),
                "compact" => table.compact(1.0).map(drop),
                "checkpoint" => table.checkpoint(Cut::Full).map(drop),
                _ => unreachable!(),
            };
            refused.expect_err(what)
        };
        for round in ["from the disk", "in memory"] {
            for what in [
                "put",
                "put new",
                "put_many",
                "put_if_absent",
                "remove",
                "update",
                "update_many",
                "compare_and_put",
                "add",
                "add_many",
                "clear",
                "compact",
                "checkpoint",
            ] {
                let error = tried(what);
                let cause = error.hash_engine();
                assert_eq!(cause, Some(&HashEngineError::ReadOnly), "{what} {round}: {error}");
                assert!(error.to_string().contains("`Db::open`"), "{error}");
            }
            assert_eq!(table.len(), Ok(500), "{round}");
            assert_eq!(table.get(old), Ok(Some(7_u64.to_le_bytes().to_vec())), "{round}");
        }
        assert_eq!(table.remove(new), Ok(false), "which changes nothing");
    }
    let is_refused = |error: Error| matches!(error, Error::ReadOnly { .. });
    assert!(is_refused(db.create_hash_table("new", plain()).expect_err("no table is made")));
    assert!(is_refused(db.drop_table("Fixed8").expect_err("no table is dropped")));
    assert!(is_refused(db.checkpoint().expect_err("nothing is written")));
    assert_eq!(db.table_names(), ["Fixed8", "Variable"]);
    drop(db);
    assert_eq!(files_of(path.path()), before);
    let missing = path.path().join("missing");
    Db::open_read_only(&missing).expect_err("it is not made");
    assert!(!missing.exists());
}
