//! A database in a directory: what is there again when it is opened again.

mod damaged;
mod read_only;
mod spilled;

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use sapwood::{
    AnyTable, Backups, ColdReads, Cut, Db, DbOptions, Durability, Error, HashEngineError,
    HashTable, HashTableOptions, OrderedTableOptions, RecordLayout, TreeTableOptions,
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
    let put = |table: &AnyTable, number: u32, value: &str| table.put(number.to_be_bytes(), value);
    for durability in [Durability::Sync, Durability::Buffered] {
        let folder = directory();
        let path = |name: &str| folder.path().join(name);
        let backups = Backups::open_or_create(path("backups")).expect("made");
        let open =
            |name: &str| Db::open_with(path(name), DbOptions::default().durability(durability));
        let make = |db: &Db| -> [AnyTable; 3] {
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
