//! What the log keeps of tables: all of it, whatever ends the program.

use std::collections::BTreeMap;
use std::thread;

use sapwood::aggregate::Disaggregation;
use sapwood::{
    AnyTable, Compute, Cut, Db, DbOptions, Durability, Error, HashTable, HashTableOptions,
    OrderedTable, OrderedTableOptions, RecordLayout, TableRef,
};
use sapwood_testkit::case;
use tempfile::TempDir;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn directory() -> TempDir {
    TempDir::new().expect("a directory for the test")
}

fn open(path: &TempDir) -> Db {
    Db::open(path.path()).expect("the directory is free")
}

fn ordered(db: &Db, name: &str) -> OrderedTable {
    let options = OrderedTableOptions::default();
    db.open_or_create_ordered_table(name, options).expect("made, or there")
}

fn entries(table: &AnyTable) -> Entries {
    let mut entries = Entries::new();
    let walked = table.for_each(|key, value| {
        entries.insert(key.to_vec(), value.to_vec());
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert!(walked.expect("walked").is_continue());
    entries
}

/// Opens the directory anew, where each table must have what it had.
fn reopened(path: &TempDir, db: Db, names: &[&str]) -> Db {
    let contents = |db: &Db| -> Vec<Entries> {
        names.iter().map(|name| entries(&db.table(name).expect("it is there"))).collect()
    };
    let before = contents(&db);
    drop(db);
    let db = open(path);
    assert_eq!(contents(&db), before);
    db
}

#[test]
fn an_ordered_table_is_there_again_with_its_options() {
    let path = directory();
    let db = open(&path);
    let options = OrderedTableOptions::default()
        .memory_budget(8 << 20)
        .chunk_entries(64)
        .fields("n:i64le".parse().expect("a layout"));
    let table = db.create_ordered_table("t", options).expect("a free name");
    for number in 0..5_000_i64 {
        table.add(number.to_be_bytes(), number).expect("add");
    }
    drop(table);
    let db = reopened(&path, db, &["t"]);
    let table = db.ordered_table("t").expect("it is there");
    assert_eq!(table.stats().budget_bytes, Some(8 << 20));
    assert!(table.query().is_ok(), "its fields are known");
    table.check().expect("a sound table");
    // The budget holds as it did.
    let refused = (0_u64..).find_map(|n| table.put(n.to_le_bytes(), [0; 10_000]).err());
    assert!(matches!(refused, Some(Error::OrderedEngine { .. })), "{refused:?}");
    drop(table);
    reopened(&path, db, &["t"]).close().expect("closed");
    drop(reopened(&path, open(&path), &["t"]));
}

/// Each operation that changes something, once.
#[test]
fn every_change_is_logged() {
    let path = directory();
    let db = open(&path);
    let t = ordered(&db, "t");
    let number = |n: i64| n.to_le_bytes();
    t.put_many(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5")]).expect("put");
    t.add_many(&[("n1", 1), ("n2", 2), ("n3", 3)]).expect("add");
    assert_eq!(t.put_if_absent("f", "6"), Ok(true));
    assert_eq!(t.update_many(&["a", "b"], |_, value| value[0] += 1), Ok(2));
    assert_eq!(t.compare_and_put("c", "3", "three"), Ok(true));
    assert_eq!(t.add("n1", 9), Ok(10));
    assert_eq!(t.remove("d"), Ok(true));
    assert_eq!(t.remove_with("e", |value| value.to_vec()), Ok(Some(b"5".to_vec())));
    assert!(t.update("f", |value| value.extend_from_slice(b"66")).expect("update").is_some());
    t.put_if_absent_or_update("g", "7", |_| ()).expect("put");
    t.put_if_absent_or_update("g", "7", |value| value[0] = b'G').expect("updated");
    t.compute("h", |_| Compute::Replace(b"eight".to_vec())).expect("put");
    t.compute("a", |_| Compute::Remove).expect("removed");
    let db = reopened(&path, db_without(db, t), &["t"]);
    let t = ordered(&db, "t");
    t.put_many(&[("0", "first"), ("z", "last")]).expect("put");
    assert!(t.pop_first().expect("pop").is_some() && t.pop_last().expect("pop").is_some());
    assert_eq!(t.remove_range("b".."d"), Ok(2));
    assert_eq!(t.retain(|key, _| key != b"g"), Ok(1));
    let db = reopened(&path, db_without(db, t), &["t"]);
    let t = ordered(&db, "t");
    assert_eq!(t.remove_range("f".."i"), Ok(2));
    let more = Disaggregation::new("n:i64le".parse().expect("a layout"), "n", 30).adding();
    assert_eq!(t.disaggregate(&more).expect("spread").given, 30);
    assert_ne!(t.get("n1"), Ok(Some(number(10).to_vec())));
    let db = reopened(&path, db_without(db, t), &["t"]);
    let t = ordered(&db, "t");
    t.clear().expect("clear");
    t.put("only", "one").expect("put");
    reopened(&path, db_without(db, t), &["t"]);
}

fn db_without<T>(db: Db, handle: T) -> Db {
    drop(handle);
    db
}

#[test]
fn names_come_and_go_with_their_tables() {
    let path = directory();
    let db = open(&path);
    ordered(&db, "a").put("k", "of a").expect("put");
    ordered(&db, "b").put("k", "of b").expect("put");
    db.checkpoint().expect("written");
    db.drop_table("a").expect("dropped");
    let db = reopened(&path, db, &["b"]);
    assert_eq!(db.table_names(), ["b"]);
    ordered(&db, "a").put("k", "another").expect("put");
    db.drop_table("b").expect("dropped");
    let db = reopened(&path, db, &["a"]);
    assert_eq!(db.table_names(), ["a"]);
    db.close().expect("closed");
    assert_eq!(open(&path).table_names(), ["a"]);
}

/// Changes through a handle of a table that was dropped end with it, and reach no other.
#[test]
fn a_dropped_table_takes_its_late_changes_along() {
    let path = directory();
    let db = open(&path);
    let late = ordered(&db, "t");
    db.drop_table("t").expect("dropped");
    let table = ordered(&db, "t");
    late.put("late", "").expect("handles work on");
    table.put("k", "").expect("put");
    drop((late, table));
    let db = reopened(&path, db, &["t"]);
    assert_eq!(ordered(&db, "t").len(), Ok(1));
}

#[test]
fn a_reader_sees_ordered_tables_and_changes_nothing() {
    let path = directory();
    let db = open(&path);
    ordered(&db, "t").put("k", "v").expect("put");
    db.checkpoint().expect("written");
    ordered(&db, "t").put("l", "w").expect("put");
    drop(db);
    let before = files(&path);
    let (one, other) = (Db::open_read_only(path.path()), Db::open_read_only(path.path()));
    for db in [one.expect("opened"), other.expect("opened")] {
        let table = db.ordered_table("t").expect("it is there");
        assert_eq!(table.get("l"), Ok(Some(b"w".to_vec())));
        let read_only = Error::ReadOnly { path: path.path().to_owned() };
        assert_eq!(table.put("m", "x"), Err(read_only.clone()));
        assert_eq!(db.drop_table("t"), Err(read_only.clone()));
        let options = OrderedTableOptions::default;
        assert_eq!(db.create_ordered_table("u", options()).err(), Some(read_only));
        db.create_ordered_table("u", options().volatile()).expect("it needs no directory");
    }
    assert_eq!(files(&path), before);
    drop(reopened(&path, open(&path), &["t"]));
}

fn files(path: &TempDir) -> Vec<(String, u64)> {
    let log = std::fs::read_dir(path.path().join("log")).expect("it is there");
    let mut files: Vec<_> = log
        .map(|file| {
            let file = file.expect("listed");
            let bytes = file.metadata().expect("a file").len();
            (file.file_name().into_string().expect("text"), bytes)
        })
        .collect();
    files.sort();
    files
}

/// A table of one of the engines that the log has.
fn any(db: &Db, name: &str) -> AnyTable {
    match name {
        "hash" => hash(db, name).into(),
        "cold" => {
            // Nearly all of it lies on the disk.
            let options = HashTableOptions::default().page_bytes(4096).memory_budget(64 << 10);
            db.open_or_create_hash_table(name, options).expect("made, or there").into()
        }
        _ => ordered(db, name).into(),
    }
}

fn hash(db: &Db, name: &str) -> HashTable {
    let options = HashTableOptions::default();
    db.open_or_create_hash_table(name, options).expect("made, or there")
}

const NAMES: [&str; 3] = ["cold", "hash", "ordered"];

/// Lives of a database whose tables are compared with maps, with checkpoints between.
#[test]
fn streams_over_many_lives_lose_nothing() {
    case!().seeds(12, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let path = directory();
        let mut model: BTreeMap<&str, Entries> = BTreeMap::new();
        for _life in 0..6 {
            let durability = [Durability::Buffered, Durability::Sync][rng.usize(..2)];
            let options = DbOptions::default().durability(durability).checkpoint_bytes(30_000);
            let options = if rng.bool() { options.lazy() } else { options };
            let db = Db::open_with(path.path(), options).expect("the directory is free");
            for (name, model) in &model {
                let table = db.table(name).expect("it is there");
                assert_eq!(entries(&table), *model, "{name}");
            }
            assert_eq!(db.table_names(), model.keys().copied().collect::<Vec<_>>());
            for _ in 0..rng.usize(..200) {
                let name = NAMES[rng.usize(..3)];
                match rng.u8(..100) {
                    0 => db.checkpoint().expect("written"),
                    1 if model.remove(name).is_some() => db.drop_table(name).expect("dropped"),
                    2 => db.sync().expect("lasts"),
                    3 => {
                        if let TableRef::Hash(table) = any(&db, name).resolve() {
                            table.checkpoint(Cut::Incremental).expect("written");
                        }
                        model.entry(name).or_default();
                    }
                    what => step(&any(&db, name), model.entry(name).or_default(), what, &mut rng),
                }
            }
            if rng.bool() {
                db.close().expect("closed");
            }
        }
    });
}

fn step(table: &AnyTable, model: &mut Entries, what: u8, rng: &mut fastrand::Rng) {
    let key = vec![rng.u8(..4); rng.usize(1..40)];
    let mut value = vec![0; rng.usize(..300)];
    rng.fill(&mut value);
    match what {
        4..20 => {
            assert_eq!(table.remove(&key), Ok(model.remove(&key).is_some()));
        }
        20..50 => {
            let at = rng.usize(..100);
            let written = table.update(&key, |there| {
                if let Some(byte) = there.get_mut(at) {
                    *byte ^= 1;
                }
            });
            let there = model.get_mut(&key);
            assert_eq!(written.expect("update").is_some(), there.is_some());
            if let Some(byte) = there.and_then(|there| there.get_mut(at)) {
                *byte ^= 1;
            }
        }
        50..60 => {
            let resized = table.update(&key, |there| there.set(&value)).expect("update");
            resized.transpose().expect("it fits");
            if let Some(there) = model.get_mut(&key) {
                there.clone_from(&value);
            }
        }
        _ => {
            table.put(&key, &value).expect("put");
            model.insert(key, value);
        }
    }
}

/// Threads on few keys, with checkpoints beside them: the log has the order that memory had.
#[test]
fn threads_and_the_log_agree_about_the_order() {
    case!().seeds(6, |seed| {
        let path = directory();
        let options = DbOptions::default().checkpoint_bytes(50_000);
        let db = Db::open_with(path.path(), options).expect("the directory is free");
        let name = NAMES[seed as usize % 3];
        let table = any(&db, name);
        thread::scope(|scope| {
            for number in 0..3 {
                let table = &table;
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(seed * 3 + number);
                    for _ in 0..2_000 {
                        let key = [rng.u8(..5)];
                        let done = match rng.u8(..6) {
                            0 => table.remove(key).map(drop),
                            1 => table.update(key, |value| value[0] = rng.u8(..)).map(drop),
                            2 => table.put_if_absent(key, [number as u8; 9]).map(drop),
                            3 => table
                                .compute(key, |value| match value {
                                    Some(_) => Compute::Remove,
                                    None => Compute::Replace(vec![rng.u8(..); 5]),
                                })
                                .map(drop),
                            _ => table.put(key, vec![rng.u8(..); rng.usize(1..60)]),
                        };
                        done.expect("changed");
                    }
                });
            }
            scope.spawn(|| (0..5).for_each(|_| db.checkpoint().expect("written")));
        });
        drop(table);
        let db = reopened(&path, db, &[name]);
        any(&db, name).check().expect("a sound table");
    });
}

#[test]
fn a_damaged_log_is_refused_with_its_file() {
    let path = directory();
    let db = open(&path);
    ordered(&db, "t").put("k", vec![7; 10_000]).expect("put");
    db.close().expect("closed");
    let log = path.path().join("log");
    for file in std::fs::read_dir(&log).expect("it is there") {
        let file = file.expect("listed").path();
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        if !name.starts_with("snapshot-") && name != "manifest" {
            continue;
        }
        let good = std::fs::read(&file).expect("read");
        let mut bad = good.clone();
        bad[100] ^= 1;
        std::fs::write(&file, &bad).expect("written");
        // An opening to read leaves a snapshot where it is, until it is read.
        let get = |db: Db| db.ordered_table("t")?.get("k");
        for read in [Db::open(path.path()), Db::open_read_only(path.path())] {
            let Err(error) = read.and_then(get) else { panic!("{name} is believed") };
            assert!(matches!(error, Error::Log { .. }), "{error:?}");
            let text = error.to_string();
            assert!(text.contains(&name) && text.contains("bring it back from a copy"), "{text}");
        }
        std::fs::write(&file, &good).expect("written");
    }
    assert_eq!(ordered(&open(&path), "t").len(), Ok(1));
}

/// A checkpoint comes by itself, and the files of the log do not grow without bound.
#[test]
fn the_log_is_given_back() {
    let path = directory();
    let options = DbOptions::default().checkpoint_bytes(1 << 20);
    let db = Db::open_with(path.path(), options).expect("the directory is free");
    let table = ordered(&db, "t");
    let mut most = 0;
    for round in 0..300_u32 {
        for number in 0..100_u32 {
            table.put(number.to_be_bytes(), [round as u8; 1_000]).expect("put");
        }
        most = most.max(db.stats().log.expect("there is a directory").unsaved_bytes);
        // The thread that writes them may not have been run yet.
        while db.stats().log.expect("there is a directory").unsaved_bytes > 2 << 20 {
            thread::yield_now();
        }
    }
    let log = db.stats().log.expect("there is a directory");
    assert!(most < 4 << 20 && log.log_bytes < 20 << 20, "{most}, {log:?}");
    assert_eq!((log.refuses_changes, log.failed_checkpoint), (None, None));
    drop(table);
    reopened(&path, db, &["t"]);
}

/// Without the log a load is there with its checkpoint, or not at all, and nothing old comes back.
#[test]
fn a_load_without_the_log_is_there_as_a_whole() {
    let path = directory();
    let db = open(&path);
    ordered(&db, "t").put("k", "logged").expect("put");
    drop(db);
    let unlogged = || Db::open_with(path.path(), DbOptions::default().without_log());
    let db = unlogged().expect("the directory is free");
    ordered(&db, "t").put("k", "lost").expect("put");
    ordered(&db, "new").put("k", "lost").expect("put");
    drop(db);
    let db = reopened(&path, open(&path), &["t"]);
    assert_eq!(ordered(&db, "t").get("k"), Ok(Some(b"logged".to_vec())));
    assert_eq!(ordered(&db, "new").len(), Ok(0));
    drop(db);
    let db = unlogged().expect("the directory is free");
    ordered(&db, "t").put("k", "loaded").expect("put");
    db.checkpoint().expect("written");
    drop(db);
    assert_eq!(ordered(&open(&path), "t").get("k"), Ok(Some(b"loaded".to_vec())));
}

/// A crash is a copy of the files as they are: the log is mapped, so that they have what was told.
fn copied(path: &TempDir) -> TempDir {
    fn copy(from: &std::path::Path, to: &std::path::Path) {
        std::fs::create_dir_all(to).expect("made");
        for entry in std::fs::read_dir(from).expect("listed") {
            let entry = entry.expect("listed");
            let to = to.join(entry.file_name());
            match entry.file_type().expect("known").is_dir() {
                true => copy(&entry.path(), &to),
                false => drop(std::fs::copy(entry.path(), to).expect("copied")),
            }
        }
    }
    let to = directory();
    copy(path.path(), to.path());
    to
}

#[test]
fn changes_that_go_together_are_there_together() {
    let path = directory();
    let db = open(&path);
    let (a, b) = (ordered(&db, "a"), ordered(&db, "b"));
    let mut half = None;
    let (done, changes) = db
        .together(|| {
            a.put("k", "1").expect("put");
            half = Some(copied(&path));
            b.put("k", "1")
        })
        .expect("the log takes changes");
    done.expect("put");
    changes.wait().expect("they last");
    assert!(changes.are_durable());
    let half = open(&half.expect("copied"));
    assert_eq!((ordered(&half, "a").len(), ordered(&half, "b").len()), (Ok(0), Ok(0)));
    let whole = copied(&path);
    let whole = open(&whole);
    assert_eq!((ordered(&whole, "a").len(), ordered(&whole, "b").len()), (Ok(1), Ok(1)));
}

/// Each operation of a hash table that changes something, in both layouts.
#[test]
fn every_change_of_a_hash_table_is_logged() {
    let path = directory();
    let db = open(&path);
    let fixed = HashTableOptions::default().layout(RecordLayout::Fixed8);
    let numbers = db.create_hash_table("numbers", fixed).expect("a free name");
    for table in [&hash(&db, "t"), &numbers] {
        let word = |n: u64| n.to_le_bytes();
        let keys: Vec<[u8; 8]> = (0..40).map(word).collect();
        table.put_many(&keys.iter().map(|key| (key, word(1))).collect::<Vec<_>>()).expect("put");
        table.add_many(&keys.iter().map(|key| (key, 5)).collect::<Vec<_>>()).expect("add");
        table.update_many(&keys[..20], |_, value| value[1] = 1).expect("changed");
        assert_eq!(table.put_if_absent(word(50), word(2)), Ok(true));
        table.update(keys[0], |value| value[0] += 1).expect("changed");
        table.put_if_absent_or_update(keys[1], word(0), |value| value[0] += 1).expect("changed");
        table.put_if_absent_or_update(word(51), word(3), |_| ()).expect("put");
        assert_eq!(table.compare_and_put(keys[30], word(6), word(8)), Ok(true));
        table.compute(keys[31], |_| Compute::Replace(word(9).to_vec())).expect("put");
        table.compute(keys[32], |_| Compute::Remove).expect("removed");
        assert_eq!(table.remove(keys[33]), Ok(true));
        assert!(table.remove_with(keys[34], |_| ()).expect("removed").is_some());
        assert_eq!(table.retain(|key, _| *key != keys[35]), Ok(1));
        let more = Disaggregation::new("n:i64le".parse().expect("a layout"), "n", 38).adding();
        assert_eq!(table.disaggregate(&more).expect("spread").given, 38);
    }
    drop(numbers);
    let db = reopened(&path, db, &["numbers", "t"]);
    assert_eq!(hash(&db, "t").len(), Ok(38));
    hash(&db, "t").clear().expect("cleared");
    let db = reopened(&path, db, &["numbers", "t"]);
    db.drop_table("t").expect("dropped");
    hash(&db, "t").put("k", "another").expect("put");
    reopened(&path, db, &["numbers", "t"]);
}

/// Going back to a checkpoint leaves what the log has of later times.
#[test]
fn a_table_that_goes_back_stays_there() {
    let path = directory();
    let db = open(&path);
    let table = hash(&db, "t");
    table.put("k", "first").expect("put");
    let first = table.checkpoint(Cut::Full).expect("written").number;
    table.put("k", "second").expect("put");
    table.checkpoint(Cut::Full).expect("written");
    table.put("k", "third").expect("put");
    drop(table);
    let table = db.hash_table_at("t", first).expect("it opens");
    assert_eq!(table.get("k"), Ok(Some(b"first".to_vec())));
    drop(table);
    let db = reopened(&path, db, &["t"]);
    hash(&db, "t").put("l", "since").expect("put");
    let db = reopened(&path, db, &["t"]);
    // Other options mean another engine over the same files.
    let options = HashTableOptions::default().memory_budget(8 << 20);
    let table = db.hash_table_with("t", options).expect("no handle is in use");
    table.put("m", "with other options").expect("put");
    drop(table);
    reopened(&path, db, &["t"]);
}

/// A reader has what a crash left in the log alone, also beyond a memory budget, and changes nothing.
#[test]
fn a_reader_has_the_changes_of_the_log() {
    let path = directory();
    let db = open(&path);
    let saved = hash(&db, "saved");
    saved.put("k", "v").expect("put");
    saved.checkpoint(Cut::Full).expect("written");
    saved.put("l", "w").expect("put");
    saved.remove("k").expect("removed");
    hash(&db, "ahead").put("k", "v").expect("put");
    let options = HashTableOptions::default().page_bytes(64 << 10).memory_budget(1 << 20);
    let large = db.create_hash_table("large", options).expect("made");
    let value = [7; 4096];
    for number in 0..2_000_u32 {
        large.put(number.to_le_bytes(), value).expect("put");
    }
    drop((saved, large, db));
    let files = || crate::directory::files_of(path.path());
    let before = files();
    let reader = Db::open_read_only(path.path()).expect("opened");
    let saved = reader.hash_table("saved").expect("it is there");
    assert_eq!(saved.get("l"), Ok(Some(b"w".to_vec())));
    assert_eq!((saved.get("k"), saved.len()), (Ok(None), Ok(1)));
    assert_eq!(saved.checkpoints().expect("listed").len(), 1);
    let ahead = reader.hash_table("ahead").expect("it is there");
    assert_eq!(ahead.get("k"), Ok(Some(b"v".to_vec())));
    let large = reader.hash_table("large").expect("it is there");
    assert_eq!(large.len(), Ok(2_000));
    assert_eq!(large.get(1_999_u32.to_le_bytes()), Ok(Some(value.to_vec())));
    for table in [&saved, &ahead, &large] {
        let refused = [
            table.put("k", "new").map(drop),
            table.remove("k").map(drop),
            table.remove("l").map(drop),
            table.update("k", |value| value.fill(1)).map(drop),
            table.update(1_u32.to_le_bytes(), |value| value.fill(1)).map(drop),
            table.checkpoint(Cut::Full).map(drop),
            table.clear().map(drop),
        ];
        for (at, refused) in refused.into_iter().enumerate() {
            match refused {
                // There was nothing to change.
                Ok(()) => assert!((1..=4).contains(&at), "{at} of {}", table.name()),
                Err(error) => {
                    assert_eq!(
                        error.hash_engine(),
                        Some(&sapwood::HashEngineError::ReadOnly),
                        "{at}: {error}"
                    );
                }
            }
        }
        table.check().expect("its invariants");
    }
    assert_eq!(ahead.get("k"), Ok(Some(b"v".to_vec())));
    assert_eq!(large.get(1_u32.to_le_bytes()), Ok(Some(value.to_vec())));
    drop((saved, ahead, large, reader));
    assert_eq!(files(), before);
    drop(reopened(&path, open(&path), &["ahead", "saved"]));
}

/// One table that is damaged does not keep the others shut, nor is anything of it lost.
#[test]
fn a_damaged_hash_table_keeps_its_changes_in_the_log() {
    let path = directory();
    let db = open(&path);
    hash(&db, "t").put("k", "saved").expect("put");
    hash(&db, "t").checkpoint(Cut::Full).expect("written");
    hash(&db, "t").put("k", "logged").expect("put");
    ordered(&db, "o").put("k", "v").expect("put");
    drop(db);
    let file = std::fs::read_dir(path.path().join("tables/t")).expect("listed");
    let file = file.map(|file| file.expect("listed").path()).find(|file| {
        file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-"))
    });
    let file = file.expect("a part of its log");
    let good = std::fs::read(&file).expect("read");
    std::fs::write(&file, &good[..100]).expect("written");
    let db = open(&path);
    assert_eq!(ordered(&db, "o").len(), Ok(1));
    assert!(matches!(db.hash_table("t"), Err(Error::HashEngine { .. })));
    assert!(matches!(db.checkpoint(), Err(Error::Log { .. })), "the log is needed");
    ordered(&db, "o").put("l", "w").expect("the log takes changes");
    drop(db);
    std::fs::write(&file, &good).expect("written");
    let db = open(&path);
    assert_eq!(hash(&db, "t").get("k"), Ok(Some(b"logged".to_vec())));
    assert_eq!(ordered(&db, "o").len(), Ok(2));
    db.checkpoint().expect("all is there");
}

#[test]
fn a_new_table_has_none_of_the_changes_of_one_of_its_name() {
    let path = directory();
    let db = open(&path);
    for life in 0..3_u8 {
        let table = hash(&db, "t");
        for key in 0..100_u8 {
            table.put([life, key], [key]).expect("room");
        }
        drop(table);
        if life < 2 {
            db.drop_table("t").expect("no handle is left");
        }
    }
    assert_eq!(hash(&db, "t").len(), Ok(100));
    reopened(&path, db, &["t"]);
}

/// More than a batch of changes for each of the threads that do them again, over few keys, so that two
/// threads with changes of one key would leave another value behind.
#[test]
fn many_changes_of_few_keys_are_done_again_in_their_order() {
    const CHANGES: u64 = 120_000;
    const FIELD: &str = "n:i64le";
    let path = directory();
    let db = open(&path);
    let fixed = HashTableOptions::default().layout(RecordLayout::Fixed8);
    let counters = db.create_hash_table("fixed", fixed).expect("a free name");
    let tables = [AnyTable::from(ordered(&db, "ordered")), hash(&db, "hash").into()];
    let mut rng = fastrand::Rng::with_seed(17);
    for change in 0..CHANGES {
        if change == CHANGES / 3 {
            db.checkpoint().expect("a disk");
        }
        let key = rng.u64(0..40).to_be_bytes();
        counters.add(key, 1).expect("room");
        for table in &tables {
            if change % 500 == 499 {
                // Told as the bytes that it writes.
                let share = Disaggregation::new(FIELD.parse().expect("a layout"), "n", 1_000);
                table.disaggregate(&share.adding()).expect("numbers");
            }
            match rng.u8(0..10) {
                0 => drop(table.remove(key).expect("a fine key")),
                1..=5 => {
                    let at = rng.usize(0..200);
                    let _there = table.update(key, |value| value[at] ^= 0x5A).expect("room");
                }
                _ => table.put(key, [change as u8; 200]).expect("room"),
            }
        }
    }
    drop((tables, counters));
    reopened(&path, db, &["ordered", "hash", "fixed"]);
}

/// The record at the end that a power loss has torn is told, and what was read.
#[test]
fn opening_tells_what_it_read_and_what_was_cut_off() {
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path();
    let db = Db::open_with(path, DbOptions::default().durability(Durability::Buffered));
    let db = db.expect("new");
    let table = db.create_ordered_table("t", OrderedTableOptions::default()).expect("made");
    let value = [7; 60 << 10];
    for number in 0..200_u32 {
        table.put(number.to_be_bytes(), value).expect("room");
    }
    drop((table, db));
    let log = Db::inspect_log(path).expect("it can be read").expect("there is one");
    assert_eq!((log.records, log.cut_off), (201, None));
    let (part, ..) = log.parts.last().expect("one at least");
    let part = path.join("log").join(part);
    let mut bytes = std::fs::read(&part).expect("there");
    bytes[log.end_offset as usize - 100] ^= 1;
    std::fs::write(&part, bytes).expect("written");

    let cut = Db::inspect_log(path).expect("it can be read").expect("there is one");
    assert_eq!(cut.records, 200);
    let (_, offset, length) = cut.cut_off.expect("the last record was begun");
    assert_eq!(offset + length, log.end_offset);
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let tell = std::sync::Arc::clone(&told);
    let options = DbOptions::default().on_recovery(move |progress| {
        tell.lock().expect("no panic").push((progress.bytes, progress.all_bytes));
    });
    let db = Db::open_with(path, options).expect("it opens");
    assert_eq!(db.ordered_table("t").expect("there").len().expect("counted"), 199);
    let stats = db.stats().log.expect("there is a directory");
    assert_eq!(stats.recovered_records, 200);
    assert!(stats.recovered_bytes > 199 * (60 << 10), "{}", stats.recovered_bytes);
    assert!(stats.cut_off.expect("it is told").contains("is cut off"));
    let told = told.lock().expect("no panic");
    assert!(told.len() > 2 && told.is_sorted(), "{told:?}");
    assert!(told.last().is_some_and(|(read, all)| read == all), "{told:?}");
}

#[test]
fn checkpoints_are_compressed_and_read_as_they_were_written() {
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path();
    let mut rng = fastrand::Rng::with_seed(7);
    // Some of it can be compressed, and some cannot; entries lie across blocks.
    let entries: Vec<(Vec<u8>, Vec<u8>)> = (0..6_000_u32)
        .map(|number| {
            let len = if number == 70 { 700 << 10 } else { rng.usize(..600) };
            let is_random = number / 1_000 % 2 == 0;
            let value = std::iter::repeat_with(|| if is_random { rng.u8(..) } else { b'a' });
            (number.to_be_bytes().to_vec(), value.take(len).collect())
        })
        .collect();
    let mut bytes = Vec::new();
    for _ in 0..2 {
        let db = Db::open(path).expect("it opens");
        let options = OrderedTableOptions::default();
        let table = db.open_or_create_ordered_table("t", options).expect("there");
        table.put_many(&entries).expect("room");
        db.checkpoint().expect("written");
        bytes.push(db.stats().log.expect("there is a directory").snapshot_bytes);
        drop((table, db));
        assert_eq!(Db::check(path).expect("it can be read").problems, []);
        let read = Db::open_read_only(path).expect("it opens").ordered_table("t").expect("there");
        assert_eq!(read.len().expect("counted"), entries.len());
        for (key, value) in &entries {
            assert_eq!(read.get(key).expect("read").as_ref(), Some(value));
        }
    }
    assert_eq!(bytes[0], bytes[1]);
    let all: usize = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert!(bytes[1] < all as u64 * 3 / 4, "{bytes:?} of {all}");
}

/// At a byte a second the checkpoint would take days.
#[test]
fn what_waits_for_a_slow_checkpoint_hurries_it() {
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path();
    let options = DbOptions::default().checkpoint_rate(1).checkpoint_bytes(1 << 20);
    let db = Db::open_with(path, options.clone()).expect("new");
    let table = db.create_ordered_table("t", OrderedTableOptions::default()).expect("made");
    for number in 0..4_000_u32 {
        table.put(number.to_be_bytes(), [7; 400]).expect("room");
    }
    // The one that is due by now is under way, or comes.
    db.checkpoint().expect("written");
    for number in 0..4_000_u32 {
        table.put(number.to_be_bytes(), [8; 400]).expect("room");
    }
    drop((table, db));
    let db = Db::open_with(path, options).expect("it opens");
    assert_eq!(db.ordered_table("t").expect("there").len().expect("counted"), 4_000);
    db.close().expect("written");
}
