//! Tables that are loaded in the order of their keys.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::thread;

use fastrand::Rng;
use sapwood::{Db, DbOptions, Direction, Error, KEY_BYTES_MAX, OrderedTable, OrderedTableOptions};
use sapwood_disk::SimDisk;
use sapwood_testkit::case;
use tempfile::TempDir;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn directory() -> TempDir {
    TempDir::new().expect("a directory for the test")
}

fn some_entries(rng: &mut Rng, most: usize) -> Entries {
    let (long, count) = (rng.usize(2..30), rng.usize(..most));
    let entry = |_| {
        let key = (0..rng.usize(1..=long)).map(|_| rng.u8(..)).collect();
        (key, vec![rng.u8(..); rng.usize(..50)])
    };
    (0..count).map(entry).collect()
}

fn expect_all(table: &OrderedTable, all: &Entries) {
    assert_eq!(table.len(), Ok(all.len()));
    let mut seen = Vec::new();
    let _all = table
        .scan(.., Direction::Ascending, |key, value| {
            seen.push((key.to_vec(), value.to_vec()));
            ControlFlow::<()>::Continue(())
        })
        .expect("read");
    assert!(seen.into_iter().eq(all.clone()));
}

fn load(db: &Db, name: &str, all: &Entries) -> OrderedTable {
    let mut load = db.bulk_load(name, OrderedTableOptions::default()).expect("a new name");
    for (key, value) in all {
        load.push(key, value).expect("in order");
    }
    load.finish().expect("written")
}

#[test]
fn what_is_loaded_is_a_table_like_any() {
    case!().seeds(12, |seed| {
        let (mut rng, path) = (Rng::with_seed(seed), directory());
        let options = match rng.u8(..3) {
            0 => DbOptions::default(),
            1 => DbOptions::default().lazy(),
            _ => DbOptions::default().without_log(),
        };
        let is_logged = format!("{options:?}").contains("is_logged: true");
        let db = Db::open_with(path.path(), options).expect("new");
        let other = db.create_ordered_table("other", OrderedTableOptions::default()).expect("made");
        other.put("k", "v").expect("room");
        let most = [2, 50_000][rng.usize(..2)];
        let mut all = some_entries(&mut rng, most);
        let table = load(&db, "t", &all);
        expect_all(&table, &all);
        expect_all(&ordered(&Db::open_read_only(path.path()).expect("it opens")), &all);
        for key in some_entries(&mut rng, 30).into_keys() {
            table.put(&key, "changed").expect("room");
            all.insert(key, b"changed".to_vec());
        }
        expect_all(&table, &all);
        if rng.bool() || !is_logged {
            db.checkpoint().expect("written");
        }
        expect_all(&table, &all);
        db.sync().expect("synced");
        drop((table, other, db));
        let db = Db::open(path.path()).expect("it opens");
        expect_all(&ordered(&db), &all);
        ordered(&db).check().expect("a sound table");
        let other = db.ordered_table("other").expect("it is there");
        assert_eq!(other.get("k").expect("read").as_deref(), Some(&b"v"[..]));
    });
}

fn ordered(db: &Db) -> OrderedTable {
    db.ordered_table("t").expect("it is there")
}

#[test]
fn entries_that_are_refused_are_left_out() {
    let path = directory();
    for db in [Db::in_memory(), Db::open(path.path()).expect("new")] {
        let options = OrderedTableOptions::default().memory_budget(64 << 20);
        for (name, options) in [("t", OrderedTableOptions::default()), ("budget", options)] {
            let mut load = db.bulk_load(name, options).expect("a new name");
            load.push("b", "1").expect("the first");
            for key in ["a", "b"] {
                let refused = load.push(key, "2").expect_err("it does not come behind b");
                assert!(
                    matches!(&refused, Error::KeyOrder { name: of } if of == name),
                    "{refused}"
                );
            }
            for len in [0, KEY_BYTES_MAX + 1] {
                let refused = load.push(vec![b'c'; len], "2").expect_err("no key is so long");
                assert!(matches!(refused, Error::OrderedEngine { .. }), "{refused}");
            }
            load.push(vec![b'c'; KEY_BYTES_MAX], "3").expect("in order");
            let table = load.finish().expect("written");
            let all = [(b"b".to_vec(), b"1".to_vec()), (vec![b'c'; KEY_BYTES_MAX], b"3".to_vec())];
            expect_all(&table, &all.into());
            let taken = db.bulk_load(name, OrderedTableOptions::default());
            assert!(matches!(taken, Err(Error::TableExists { .. })));
        }
    }
}

/// While a table is loaded it answers nothing, others go on, and checkpoints wait.
#[test]
fn a_table_that_is_being_loaded_stands_in_no_way() {
    let path = directory();
    let db = Db::open(path.path()).expect("new");
    let other = db.create_ordered_table("other", OrderedTableOptions::default()).expect("made");
    let mut load = db.bulk_load("t", OrderedTableOptions::default()).expect("a new name");
    load.push([0], "first").expect("in order");
    let table = ordered(&db);
    let loading = |error: Error| assert!(matches!(error, Error::Loading { .. }), "{error}");
    loading(table.get("k").expect_err("it is being loaded"));
    loading(table.put("k", "v").expect_err("it is being loaded"));
    loading(table.first().map(drop).expect_err("it is being loaded"));
    loading(table.len().expect_err("it is being loaded"));
    loading(table.clear().expect_err("it is being loaded"));
    loading(table.range(..).next().expect("an error").map(drop).expect_err("it is being loaded"));
    let refused = db.sql("select count(*) from t").expect_err("it is being loaded");
    assert!(refused.to_string().contains("being loaded"), "{refused}");
    assert_eq!((table.len_estimate(), table.stats().entries), (0, 0));
    thread::scope(|scope| {
        let checkpoint = scope.spawn(|| db.checkpoint());
        for number in 1..200_u8 {
            other.put([number], [number]).expect("room");
            load.push([number], [number]).expect("in order");
        }
        let table = load.finish().expect("written");
        assert_eq!(table.len(), Ok(200));
        checkpoint.join().expect("no panic").expect("written");
    });
    assert_eq!((table.len(), other.len()), (Ok(200), Ok(199)));
    drop((table, other, db));
    let db = Db::open(path.path()).expect("it opens");
    assert_eq!(ordered(&db).len(), Ok(200));
    assert_eq!(db.ordered_table("other").and_then(|table| table.len()), Ok(199));
}

#[test]
fn a_load_that_is_given_up_leaves_no_table() {
    let path = directory();
    let db = Db::open(path.path()).expect("new");
    for turn in 0..3_u32 {
        // Nothing of the one before is left that another schema would not fit.
        let schema = ["n:u32, key(n)", "name:text, key(name)"][turn as usize % 2];
        let schema = schema.parse().expect("a schema");
        let options = OrderedTableOptions::default().schema(schema);
        let mut load = db.bulk_load("t", options).expect("a new name");
        for number in 0..turn * 20_000 {
            load.push(number.to_be_bytes(), "x").expect("in order");
        }
        drop(load);
        assert!(db.table_names().is_empty());
        assert!(db.stats().log.expect("it has one").failed_checkpoint.is_none());
    }
    drop(db);
    let db = Db::open(path.path()).expect("it opens");
    assert!(db.table_names().is_empty());
    let rows = some_entries(&mut Rng::with_seed(1), 40_000);
    expect_all(&load(&db, "t", &rows), &rows);
}

/// The power goes at any change of the disk: the table has all entries, or none, and other tables have all.
#[test]
fn a_crash_leaves_all_of_a_load_or_nothing() {
    case!().seeds(4, |seed| {
        let mut rng = Rng::with_seed(seed);
        let disk = SimDisk::new();
        let options = || match seed % 2 {
            0 => DbOptions::default(),
            _ => DbOptions::default().lazy(),
        };
        let db = Db::open_simulated(&disk, options()).expect("new");
        let other = db.create_ordered_table("other", OrderedTableOptions::default()).expect("made");
        other.put("k", "v").expect("room");
        db.sync().expect("synced");
        let mut all = some_entries(&mut rng, 20_000);
        all.insert(vec![1], vec![2]);
        disk.take_images(seed << 32, 1);
        let table = load(&db, "t", &all);
        drop(table);
        let before = disk.taken();
        assert!(before.len() > 5, "{}", before.len());
        let after = disk.crash(seed);
        let (count, mut whole) = (before.len(), 0);
        for (number, image) in before.into_iter().chain([after]).enumerate() {
            let db = Db::open_simulated(&image, options()).expect("it opens");
            let other = db.ordered_table("other").expect("it is there");
            assert_eq!(other.get("k").expect("read").as_deref(), Some(&b"v"[..]));
            match db.ordered_table("t") {
                Ok(table) if table.len() != Ok(0) => {
                    expect_all(&table, &all);
                    whole += 1;
                }
                Ok(_) | Err(Error::TableMissing { .. }) => {
                    assert!(number < count, "it was finished")
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(whole >= 1);
    });
}

/// A disk that fails while a table is loaded: an error, and no table.
#[test]
fn a_disk_that_fails_leaves_no_table() {
    for count in (0..60).step_by(3) {
        let disk = SimDisk::new();
        let db = Db::open_simulated(&disk, DbOptions::default()).expect("new");
        let mut rng = Rng::with_seed(count);
        let all = some_entries(&mut rng, 40_000);
        disk.stop_after(count);
        let done = db.bulk_load("t", OrderedTableOptions::default()).and_then(|mut load| {
            all.iter().try_for_each(|(key, value)| load.push(key, value))?;
            load.finish()
        });
        if let Ok(table) = &done {
            expect_all(table, &all);
        }
        drop((done, db));
        let db = Db::open_simulated(&disk.crash(count), DbOptions::default()).expect("it opens");
        match db.ordered_table("t") {
            Ok(table) if table.len() != Ok(0) => expect_all(&table, &all),
            Ok(_) | Err(Error::TableMissing { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A thread that loads does other things, too: nothing hangs, and no table but its own goes with a load.
#[test]
fn a_thread_that_loads_does_not_wait_for_itself() {
    let path = directory();
    let db = Db::open(path.path()).expect("new");
    let hash = db.create_hash_table("hash", Default::default()).expect("made");
    hash.put("k", "v").expect("room");
    drop(hash);
    let mut one = db.bulk_load("one", OrderedTableOptions::default()).expect("a new name");
    let mut two = db.bulk_load("two", OrderedTableOptions::default()).expect("a new name");
    for number in 0..30_000_u32 {
        one.push(number.to_be_bytes(), [1; 50]).expect("in order");
        two.push(number.to_be_bytes(), [2; 50]).expect("in order");
    }
    let waits = |error: Error| assert!(error.to_string().contains("finish the load"), "{error}");
    waits(db.checkpoint().expect_err("it would wait"));
    waits(db.drop_table("hash").expect_err("it would wait"));
    assert!(db.stats().log.expect("it has one").unsaved_bytes > 0);
    assert_eq!(two.finish().and_then(|table| table.len()), Ok(30_000));
    assert_eq!(one.finish().and_then(|table| table.len()), Ok(30_000));
    db.checkpoint().expect("written");

    // The name of one that is given up has another table by now.
    for other in [false, true] {
        let mut load = db.bulk_load("three", OrderedTableOptions::default()).expect("a new name");
        load.push("k", "v").expect("in order");
        thread::scope(|scope| {
            let change = || {
                db.drop_table("three").expect("dropped");
                if other {
                    let options = OrderedTableOptions::default();
                    let table = db.create_ordered_table("three", options).expect("made");
                    table.put("other", "v").expect("room");
                }
            };
            scope.spawn(change).join().expect("no panic");
        });
        load.finish().expect_err("its table has gone");
        let there = db.ordered_table("three").map(|table| table.len());
        assert_eq!(there.ok(), other.then_some(Ok(1)));
        assert!(!other || db.drop_table("three").is_ok());
    }
    db.close().expect("closed");
    let db = Db::open(path.path()).expect("it opens");
    assert_eq!(db.table_names(), ["hash", "one", "two"]);
}

/// Checkpoints that come while tables are loaded wait, and fail no load.
#[test]
fn loads_and_checkpoints_of_many_threads_all_succeed() {
    let path = directory();
    let db = Db::open(path.path()).expect("new");
    thread::scope(|scope| {
        for thread in 0..4_u32 {
            let db = &db;
            scope.spawn(move || {
                for turn in 0..6_u32 {
                    let name = format!("t{thread}.{turn}");
                    let mut rng = Rng::with_seed(u64::from(thread * 100 + turn));
                    let all = some_entries(&mut rng, 3_000);
                    expect_all(&load(db, &name, &all), &all);
                    db.checkpoint().expect("written");
                }
            });
        }
    });
    assert_eq!(db.table_names().len(), 24);
    db.table_names().iter().for_each(|name| {
        db.ordered_table(name).expect("it is there").check().expect("a sound table");
    });
}
