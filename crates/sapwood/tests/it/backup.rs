//! Backups, and what is restored of them.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use sapwood::rollup::{Aggregation, Metric, Query, RowBatch, Schema};
use sapwood::{
    AnyTable, Backups, Db, DbOptions, Durability, Error, HashTableOptions, OrderedTableOptions,
    RollupTableOptions, TreeTableOptions,
};
use sapwood_testkit::case;
use tempfile::TempDir;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(TempDir::new().expect("a directory for the test"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn backups(&self) -> Backups {
        Backups::open_or_create(self.path("backups")).expect("no other has it open")
    }
}

fn tables(db: &Db) -> [AnyTable; 4] {
    let cold = HashTableOptions::default().page_bytes(4096).memory_budget(64 << 10);
    [
        db.open_or_create_ordered_table("ordered", OrderedTableOptions::default())
            .expect("free")
            .into(),
        db.open_or_create_hash_table("hash", HashTableOptions::default()).expect("free").into(),
        db.open_or_create_hash_table("cold", cold).expect("free").into(),
        db.open_or_create_tree_table("tree", TreeTableOptions::default()).expect("free").into(),
    ]
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

fn contents(db: &Db) -> Vec<(String, Entries)> {
    let names = db.table_names().into_iter();
    names.map(|name| (name.clone(), entries(&db.table(&name).expect("it is there")))).collect()
}

fn all(_: sapwood::BackupProgress) -> bool {
    true
}

#[test]
fn each_backup_is_the_database_as_it_was() {
    case!().seeds(4, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let folder = Folder::new();
        let backups = folder.backups();
        let mut taken = Vec::new();
        let mut db = Db::open(folder.path("db")).expect("a new directory");
        for round in 0..5_u32 {
            if round != 2 {
                for table in tables(&db) {
                    for _ in 0..rng.u32(0..300) {
                        let key = rng.u16(0..500).to_be_bytes();
                        match rng.u8(0..4) {
                            0 => drop(table.remove(key).expect("removed")),
                            _ => table.put(key, vec![rng.u8(..); rng.usize(0..400)]).expect("room"),
                        }
                    }
                }
            }
            match rng.u8(0..4) {
                0 => db.checkpoint().expect("a disk"),
                1 => {
                    drop(db);
                    db = Db::open(folder.path("db")).expect("nothing else has it");
                }
                2 if db.engine("hash").is_some() => db.drop_table("hash").expect("it is there"),
                _ => {}
            }
            let info = backups.add(&db, all).expect("room");
            taken.push((info.number, contents(&db)));
        }
        drop(db);
        assert_eq!(backups.verify(None, all), Ok(()));
        for (number, expected) in taken {
            let to = folder.path(&format!("restored-{number}"));
            backups.restore(Some(number), &to, all).expect("restored");
            let restored = Db::open(&to).expect("it is whole");
            assert_eq!(contents(&restored), expected, "backup {number}");
            // It goes on by itself.
            tables(&restored)[0].put("more", "").expect("room");
            restored.close().expect("closed");
        }
    });
}

#[test]
fn a_backup_beside_writers_has_what_was_there_when_it_began_and_one_moment_of_the_rest() {
    let folder = Folder::new();
    let backups = folder.backups();
    let options = DbOptions::default().checkpoint_bytes(1 << 20).durability(Durability::Buffered);
    let db = Db::open_with(folder.path("db"), options).expect("a new directory");
    let tables = tables(&db);
    let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            // One writer: tables of the log have the same numbers, but for one that is on its way.
            for number in 0_u64.. {
                for table in &tables {
                    table.put((number % 5_000).to_be_bytes(), number.to_le_bytes()).expect("room");
                }
                written.store(number + 1, Ordering::SeqCst);
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        for _ in 0..6 {
            let before = written.load(Ordering::SeqCst);
            let info = backups.add(&db, all).expect("room");
            let to = folder.path(&format!("restored-{}", info.number));
            backups.restore(Some(info.number), &to, all).expect("restored");
            let restored = Db::open(&to).expect("it is whole");
            let last = |table: &str| {
                let table = restored.table(table).expect("it is there");
                entries(&table)
                    .values()
                    .map(|value| u64::from_le_bytes(value[..].try_into().expect("eight bytes")) + 1)
                    .max()
                    .unwrap_or(0)
            };
            let (ordered, hash, cold) = (last("ordered"), last("hash"), last("cold"));
            assert!(ordered >= before && last("tree") >= before, "{ordered} of {before}");
            assert!(ordered >= hash && hash >= cold && ordered - cold <= 1);
        }
        is_over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn a_backup_writes_what_has_changed() {
    let folder = Folder::new();
    let backups = folder.backups();
    let db = Db::open(folder.path("db")).expect("a new directory");
    let hash = db.create_hash_table("t", HashTableOptions::default()).expect("a free name");
    for key in 0..20_000_u32 {
        hash.put(key.to_be_bytes(), [key as u8; 1_000]).expect("room");
    }
    let first = backups.add(&db, all).expect("room");
    assert!(first.own_bytes > 20_000_000, "{first:?}");
    for key in 0..200_u32 {
        hash.put(key.to_be_bytes(), [1; 1_000]).expect("room");
    }
    let second = backups.add(&db, all).expect("room");
    assert!(second.own_bytes < first.own_bytes / 4, "{second:?}");
    let nothing = backups.add(&db, all).expect("room");
    assert!(nothing.own_bytes < first.own_bytes / 10, "{nothing:?}");
    let listed = backups.list().expect("whole");
    assert_eq!(listed.iter().map(|info| info.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(backups.keep(1), Ok(vec![1, 2]));
    assert_eq!(backups.verify(None, all), Ok(()));
    backups.restore(None, folder.path("again"), all).expect("restored");
    let again = Db::open(folder.path("again")).expect("it is whole");
    assert_eq!(contents(&again), contents(&db));
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files(&path, into),
            false => into.push(path),
        }
    }
}

#[test]
fn damage_of_any_file_is_found() {
    let folder = Folder::new();
    let backups = folder.backups();
    let db = Db::open(folder.path("db")).expect("a new directory");
    for table in tables(&db) {
        table.put("k", "v").expect("room");
    }
    backups.add(&db, all).expect("room");
    let mut paths = Vec::new();
    files(&folder.path("backups"), &mut paths);
    paths.retain(|path| path.metadata().expect("a file").len() > 0);
    assert!(paths.len() > 3);
    for path in paths {
        let whole = fs::read(&path).expect("readable");
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 1;
        for damage in [&damaged[..], &whole[..whole.len() - 1]] {
            fs::write(&path, damage).expect("room");
            let refused = [
                backups.verify(None, all).unwrap_err(),
                backups.restore(None, folder.path("again"), all).unwrap_err(),
            ];
            for refused in refused {
                assert!(matches!(refused, Error::Backup { .. }), "{refused}");
            }
            assert!(!folder.path("again").exists() && !folder.path("again.unfinished").exists());
        }
        fs::write(&path, whole).expect("room");
    }
    assert_eq!(backups.verify(None, all), Ok(()));
}

#[test]
fn what_is_ended_or_refused_leaves_nothing() {
    let folder = Folder::new();
    let backups = folder.backups();
    assert!(matches!(backups.add(&Db::in_memory(), all), Err(Error::NoDirectory)));
    let path = folder.path("db");
    let db = Db::open(&path).expect("a new directory");
    for table in tables(&db) {
        for key in 0..2_000_u32 {
            table.put(key.to_be_bytes(), [7; 100]).expect("room");
        }
    }
    for calls in 0..4 {
        let mut left = calls;
        let ended = backups.add(&db, |_| {
            left -= 1;
            left >= 0
        });
        assert!(matches!(ended, Err(Error::Backup { .. })));
    }
    assert_eq!(backups.list(), Ok(Vec::new()));
    assert!(backups.restore(None, folder.path("again"), all).is_err());
    let info = backups.add(&db, all).expect("room");
    assert!(backups.restore(Some(9), folder.path("again"), all).is_err());
    assert!(backups.restore(None, &path, all).is_err(), "it is not empty");
    assert!(backups.restore(None, folder.path("again"), |_| false).is_err());
    assert!(!folder.path("again").exists() && !folder.path("again.unfinished").exists());
    assert!(Backups::open(folder.path("none")).is_err());
    let beside = Backups::open(folder.path("backups"));
    assert!(matches!(beside, Err(Error::Directory { .. })), "one has it open");
    // Of a database that is open to be read, too.
    let expected = contents(&db);
    drop(db);
    let reader = Db::open_read_only(&path).expect("no other has it");
    let again = backups.add(&reader, all).expect("room");
    assert!(again.own_bytes < info.bytes);
    let beside = Db::open_read_only(&path).expect("readers are many");
    let closed = backups.add_directory(&path, all).expect("room");
    assert_eq!(closed.own_bytes, 0);
    drop((reader, beside));
    let db = Db::open(&path).expect("no other has it");
    assert!(matches!(backups.add_directory(&path, all), Err(Error::DirectoryInUse { .. })));
    let reader = Db::open_read_only(&path).expect("beside it");
    assert!(matches!(backups.add(&reader, all), Err(Error::DirectoryInUse { .. })));
    drop(reader);
    drop(db);
    backups.restore(None, folder.path("again"), all).expect("restored");
    let restored = Db::open(folder.path("again")).expect("it is whole");
    assert_eq!(contents(&restored), expected);
}

fn edits() -> RollupTableOptions {
    RollupTableOptions::new(Schema::new("time").metric(Metric::count("rows")))
}

fn bring(db: &Db, name: &str) {
    let batch = RowBatch::from_csv(b"time\n2015-09-12\n").expect("CSV").0;
    db.rollup_table(name).expect("it is there").ingest(&batch).expect("room");
}

fn rows(db: &Db, name: &str) -> i64 {
    let table = db.rollup_table(name).expect("it is there");
    let query = Query::group_by(Vec::<&str>::new());
    let sum = query.aggregation(Aggregation::long_sum("rows", "rows"));
    let answer = table.query(&sum).expect("answered");
    answer.rows.first().map_or(0, |row| row[1].to_long().ok().flatten().expect("a number"))
}

/// A table without segments has a folder without files, which no list of files has.
#[test]
fn a_roll_up_without_segments_is_restored() {
    let folder = Folder::new();
    let backups = folder.backups();
    let db = Db::open(folder.path("db")).expect("a new directory");
    db.create_rollup_table("empty", edits()).expect("a free name");
    db.create_rollup_table("sealed", edits()).expect("a free name");
    bring(&db, "sealed");
    backups.add(&db, all).expect("room");
    drop(db);
    backups.add_directory(folder.path("db"), all).expect("room");
    assert_eq!(backups.verify(None, all), Ok(()));
    for number in [1, 2] {
        let to = folder.path(&format!("restored-{number}"));
        backups.restore(Some(number), &to, all).expect("restored");
        let reader = Db::open_read_only(&to).expect("it is whole");
        assert_eq!((rows(&reader, "empty"), rows(&reader, "sealed")), (0, 1));
        drop(reader);
        assert!(Db::check(&to).expect("checked").problems.is_empty());
        let restored = Db::open(&to).expect("it is whole");
        bring(&restored, "empty");
        restored.close().expect("sealed");
        let restored = Db::open(&to).expect("again");
        assert_eq!((rows(&restored, "empty"), rows(&restored, "sealed")), (1, 1));
    }
}

/// Tables of the kind that has a folder each come and go meanwhile; checkpoints, loads and backups succeed, and what is
/// listed is whole.
#[test]
fn backups_and_checkpoints_beside_roll_ups_that_come_and_go_are_whole() {
    let folder = Folder::new();
    let backups = folder.backups();
    let db = Db::open(folder.path("db")).expect("a new directory");
    let is_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2 {
            let (db, is_ended) = (&db, &is_ended);
            scope.spawn(move || {
                let name = format!("turn{thread}");
                while !is_ended.load(Ordering::SeqCst) {
                    db.create_rollup_table(&name, edits()).expect("a free name");
                    bring(db, &name);
                    db.drop_table(&name).expect("it is there");
                }
            });
        }
        let end = scope.spawn(|| {
            for turn in 0..12 {
                backups.add(&db, all).expect("room");
                db.checkpoint().expect("a disk");
                let name = format!("loaded{turn}");
                let mut load = db.bulk_load(&name, OrderedTableOptions::default()).expect("free");
                load.push(b"key", b"value").expect("in order");
                load.finish().expect("loaded");
            }
        });
        let ended = end.join();
        is_ended.store(true, Ordering::SeqCst);
        ended.expect("no panic");
    });
    drop(db);
    assert_eq!(backups.verify(None, all), Ok(()));
    for info in backups.list().expect("listed") {
        let to = folder.path(&format!("restored-{}", info.number));
        backups.restore(Some(info.number), &to, all).expect("restored");
        Db::open_read_only(&to).unwrap_or_else(|error| panic!("{info:?}: {error}"));
        Db::open(&to).unwrap_or_else(|error| panic!("{info:?}: {error}"));
    }
}

/// Bytes that are as they were copied, of a directory that lacked some.
#[test]
fn verifying_opens_what_is_restored() {
    let folder = Folder::new();
    let backups = folder.backups();
    let db = Db::open(folder.path("db")).expect("a new directory");
    tables(&db)[1].put("key", "value").expect("room");
    db.create_rollup_table("edits", edits()).expect("a free name");
    bring(&db, "edits");
    db.close().expect("sealed");
    backups.add_directory(folder.path("db"), all).expect("room");
    assert_eq!(backups.verify(None, all), Ok(()));
    let lost = fs::read_dir(folder.path("db/rollups")).expect("read").next().expect("one");
    fs::remove_dir_all(lost.expect("read").path()).expect("removed");
    let second = backups.add_directory(folder.path("db"), all).expect("room").number;
    assert_eq!(backups.verify(Some(second - 1), all), Ok(()));
    let refused = backups.verify(Some(second), all).expect_err("the facts are not there");
    let refused = refused.to_string();
    assert!(refused.contains("does not open") && refused.contains(".backup"), "{refused}");
}
