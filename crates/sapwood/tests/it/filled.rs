//! Tables that a statement makes with their rows: all of them, or no table.

use sapwood::schema::Schema;
use sapwood::sql::{Catalog, Outcome, TableName, Tables};
use sapwood::{Backups, Db, DbOptions, Durability, Error, HashTableOptions};
use sapwood_disk::SimDisk;
use sapwood_testkit::case;

const ROWS: u64 = 300;

/// A table to select from.
fn prepare(db: &Db) {
    db.sql("create table s (a bigint primary key, b text)").expect("made");
    let rows = (0..ROWS).map(|row| format!("({row}, 'row {row}')")).collect::<Vec<_>>();
    db.sql(&format!("insert into s values {}", rows.join(", "))).expect("put");
}

fn rows(db: &Db, name: &str) -> u64 {
    let counted = db.sql(&format!("select count(*) from {name}")).expect("it is there");
    let Outcome::Rows(answer) = counted else { panic!("a select has rows") };
    answer.value(0, 0).expect("a count").to_string().parse().expect("a number")
}

fn statement(engine: &str) -> String {
    format!("create table t with (engine = '{engine}') as select a, b || '!' as b from s")
}

/// The power goes at any change of the disk; and a reader opens the directory at that moment.
#[test]
fn a_crash_leaves_all_rows_or_no_table() {
    case!().seeds(3, |seed| {
        let engine = ["ordered", "hash", "tree"][seed as usize % 3];
        let durability = [Durability::Sync, Durability::Buffered][seed as usize % 2];
        let options = || DbOptions::default().durability(durability).tree_memory(8 << 20);
        let disk = SimDisk::new();
        let db = Db::open_simulated(&disk, options()).expect("new");
        prepare(&db);
        db.sync().expect("synced");
        disk.take_images(seed << 32, 19);
        db.sql(&statement(engine)).expect("made");
        let images = disk.taken();
        let mut found = [0; 2];
        let mut look = |db: &Db, what: &str| {
            let is_there = db.engine("t").is_some();
            assert_eq!(db.table_names().contains(&"t".to_owned()), is_there);
            if is_there {
                assert_eq!(rows(db, "t"), ROWS, "{engine}, {what}");
            } else {
                assert!(matches!(db.table("t"), Err(Error::TableMissing { .. })), "{what}");
            }
            assert_eq!(rows(db, "s"), ROWS);
            found[usize::from(is_there)] += 1;
            is_there
        };
        for (number, image) in images.iter().enumerate() {
            let what = format!("image {number} of {}", images.len());
            let reader = Db::open_simulated_read_only(image);
            let seen = look(&reader.unwrap_or_else(|error| panic!("{what}: {error}")), &what);
            let db = Db::open_simulated(image, options());
            let db = db.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(look(&db, &what), seen, "{what}");
            if !seen && number % 16 == 0 {
                // Nothing of it is in the way of another.
                db.sql(&statement(engine)).expect("made");
                assert_eq!(rows(&db, "t"), ROWS);
                drop(db);
                let db = Db::open_simulated(image, options()).expect("opened again");
                assert_eq!(rows(&db, "t"), ROWS);
            }
        }
        assert!(look(&Db::open_simulated(&disk.crash(seed), options()).expect("it opens"), "end"));
        assert!(found[0] > 2 && found[1] > 0, "{engine}: {found:?}");
    });
}

fn named(name: &str) -> TableName {
    TableName { parts: vec![name.to_owned()], is_file: false }
}

/// Beside the statement that fills it, no handle, no reader and no backup has the table.
#[test]
fn a_table_has_no_name_before_it_has_its_rows() {
    let folder = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| folder.path().join(name);
    let backups = Backups::open_or_create(path("backups")).expect("made");
    let schema = || -> Schema { "a:i64, key(a)".parse().expect("a schema") };
    for (number, engine) in ["ordered", "hash", "tree"].into_iter().enumerate() {
        let is_absent = |db: &Db| {
            assert!(db.table_names().is_empty() && db.engine("t").is_none());
            assert!(matches!(db.table("t"), Err(Error::TableMissing { .. })));
            assert!(db.sql("select * from t").is_err());
        };
        let at = path(engine);
        let db = Db::open(&at).expect("new");
        for is_whole in [false, true] {
            let make =
                Tables::of(&db).create_filled(&named("t"), schema(), Some(engine), &mut |into| {
                    let rows = into.change().and_then(|change| change.insert()).expect("rows");
                    rows.row(&[7.into()]).expect("put");
                    assert_eq!(rows.finish(), Ok(1));
                    is_absent(&db);
                    is_absent(&Db::open_read_only(&at).expect("opened"));
                    db.checkpoint().expect("written");
                    is_absent(&Db::open_read_only(&at).expect("opened"));
                    backups.add(&db, |_| true).expect("room");
                    let restored = path(&format!("restored-{number}-{is_whole}"));
                    backups.restore(None, &restored, |_| true).expect("restored");
                    is_absent(&Db::open_read_only(&restored).expect("whole"));
                    is_absent(&Db::open(&restored).expect("whole"));
                    is_whole
                });
            make.expect("made, or not");
            if is_whole {
                assert_eq!(rows(&db, "t"), 1);
                assert_eq!(rows(&Db::open_read_only(&at).expect("opened"), "t"), 1);
            } else {
                is_absent(&db);
            }
        }
        drop(db);
        assert_eq!(rows(&Db::open(&at).expect("opened"), "t"), 1);
    }
}

/// Rows that are refused half way leave no table, and a name that is taken no change.
#[test]
fn a_select_that_fails_leaves_no_table() {
    let folder = tempfile::tempdir().expect("a directory for the test");
    for db in [Db::in_memory(), Db::open(folder.path()).expect("new")] {
        prepare(&db);
        for engine in ["ordered", "hash", "tree"] {
            let failing = format!(
                "create table t with (engine = '{engine}') as select a, 10 / (a - 200) as b from s"
            );
            assert!(db.sql(&failing).is_err());
            assert_eq!(db.table_names(), ["s"], "{engine}");
            db.sql(&statement(engine)).expect("the name is free");
            assert!(db.sql(&statement(engine)).is_err(), "it is taken");
            assert_eq!(rows(&db, "t"), ROWS);
            db.sql("drop table t").expect("dropped");
        }
        db.create_hash_table("t", HashTableOptions::default()).expect("a free name");
    }
}

/// A load without the log lasts as a whole, too.
#[test]
fn without_the_log_the_table_is_there_with_its_rows() {
    let folder = tempfile::tempdir().expect("a directory for the test");
    let options = || DbOptions::default().without_log();
    let db = Db::open_with(folder.path(), options()).expect("new");
    prepare(&db);
    db.sql(&statement("ordered")).expect("made");
    drop(db);
    assert_eq!(rows(&Db::open(folder.path()).expect("opened"), "t"), ROWS);
}
