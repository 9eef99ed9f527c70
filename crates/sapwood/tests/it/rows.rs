//! Tables of typed rows.

mod derived;
mod in_transactions;
mod random;

use std::ops::{Bound, ControlFlow};
use std::path::Path;

use sapwood::schema::{Error as Cause, Schema, Type, Value};
use sapwood::{
    Backups, Db, DbOptions, Direction, Durability, Engine, Error, HashTableOptions,
    OrderedTableOptions, RecordLayout, RollupTableOptions, Rows, TreeTableOptions, rollup,
};
use sapwood_disk::SimDisk;

const ENGINES: [Engine; 3] = [Engine::Ordered, Engine::Hash, Engine::Tree];

/// What a table of an engine is called.
fn word(engine: Engine) -> &'static str {
    match engine {
        Engine::Ordered => "ordered",
        Engine::Hash => "hash",
        Engine::Tree => "tree",
        other => panic!("{other:?} has no rows"),
    }
}

fn schema(text: &str) -> Schema {
    text.parse().expect("a schema")
}

fn create(db: &Db, name: &str, engine: Engine, schema: Option<&Schema>) -> sapwood::Result<()> {
    match engine {
        Engine::Ordered => {
            let options = OrderedTableOptions::default();
            let options = match schema {
                Some(schema) => options.schema(schema.clone()),
                None => options,
            };
            db.create_ordered_table(name, options).map(drop)
        }
        Engine::Hash => {
            let options = HashTableOptions::default().page_bytes(1 << 16);
            let options = match schema {
                Some(schema) => options.schema(schema.clone()),
                None => options,
            };
            db.create_hash_table(name, options).map(drop)
        }
        Engine::Tree => {
            let options = TreeTableOptions::default();
            let options = match schema {
                Some(schema) => options.schema(schema.clone()),
                None => options,
            };
            db.create_tree_table(name, options).map(drop)
        }
        other => panic!("{other:?} has no rows"),
    }
}

/// All rows, in the order of their texts.
fn all(rows: &Rows) -> Vec<Vec<Value<'static>>> {
    let mut found = Vec::new();
    let walked = rows.for_each(|row| match row.to_values() {
        Ok(row) => {
            found.push(row);
            ControlFlow::Continue(())
        }
        Err(error) => ControlFlow::Break(error),
    });
    assert_eq!(walked, Ok(ControlFlow::Continue(())));
    found.sort_by_key(|row| format!("{row:?}"));
    found
}

fn text_of(db: &Db, table: &str) -> Option<String> {
    db.schema(table).expect("the table is there").map(|schema| schema.to_string())
}

const PLANES: &str = "tail:text, seats:u16, name:text?, key(tail)";

/// Each engine with rows of `PLANES`, in a directory that is closed.
fn planes_in(path: &Path) {
    let db = Db::open(path).expect("opened");
    for engine in ENGINES {
        let name = word(engine);
        create(&db, name, engine, Some(&schema(PLANES))).expect("made");
        let rows = db.rows(name).expect("it has a schema");
        rows.put(&["N1".into(), 10.into(), "Ada".into()]).expect("put");
        rows.put(&["N2".into(), 20.into(), Value::Null]).expect("put");
    }
    db.close().expect("closed");
}

#[test]
fn schemas_and_rows_last() {
    let directory = tempfile::tempdir().expect("a directory");
    planes_in(directory.path());
    for reopen in [Db::open, Db::open_read_only] {
        let db = reopen(directory.path()).expect("opened");
        assert_eq!(db.table_names().len(), 3, "{:?}", db.table_names());
        for engine in ENGINES {
            let name = word(engine);
            // Before the table is opened.
            assert_eq!(text_of(&db, name).as_deref(), Some(PLANES));
            let rows = db.rows(name).expect("opened");
            assert_eq!(rows.table().engine(), engine);
            assert_eq!(
                rows.get(&["N1".into()]),
                Ok(Some(vec!["N1".into(), Value::Int(10), "Ada".into()]))
            );
            assert_eq!(all(&rows).len(), 2);
        }
    }
}

#[test]
fn a_reader_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    planes_in(directory.path());
    let db = Db::open_read_only(directory.path()).expect("opened");
    for engine in ENGINES {
        let name = word(engine);
        let refused = db.add_column(name, "year", Type::Int(16)).expect_err("it is read only");
        assert!(matches!(refused, Error::ReadOnly { .. }), "{refused}");
        let row = ["N3".into(), 1.into(), Value::Null];
        db.rows(name).expect("opened").put(&row).expect_err("it is read only");
    }
    // What ends with the process may have a schema all the same.
    let options = OrderedTableOptions::default().volatile().schema(schema("a:u8"));
    db.create_ordered_table("latest", options).expect("made");
    db.add_column("latest", "b", Type::Text).expect("in memory");
    assert_eq!(db.rows("latest").expect("rows").put(&[1.into(), "b".into()]), Ok(Some(1)));
}

#[test]
fn a_column_that_is_added_is_seen_at_once_and_lasts() {
    let directory = tempfile::tempdir().expect("a directory");
    planes_in(directory.path());
    let db = Db::open(directory.path()).expect("opened");
    for engine in ENGINES {
        let name = word(engine);
        let rows = db.rows(name).expect("opened");
        db.add_column(name, "year", Type::Int(16)).expect("added");
        assert_eq!(rows.schema().version(), 2);
        assert_eq!(rows.get(&["N1".into()]).expect("read").expect("there")[3], Value::Null);
        rows.put(&["N3".into(), 30.into(), Value::Null, 1998.into()]).expect("put");
        // A row that was put before has room for it only once it is written anew.
        assert_eq!(rows.update_column(&["N1".into()], "year", &2001.into()), Ok(true));
        assert_eq!(rows.update_column(&["N1".into()], "year", &2002.into()), Ok(true));
        let refused = db.add_column(name, "year", Type::Text).expect_err("the name is taken");
        assert!(refused.to_string().contains(&format!("table `{name}`: two columns")), "{refused}");
    }
    let expected = |rows: &Rows| {
        let years: Vec<_> = all(rows).into_iter().map(|row| row[3].clone()).collect();
        assert_eq!(years, [2002.into(), Value::Null, Value::Int(1998)]);
    };
    ENGINES.iter().for_each(|engine| expected(&db.rows(word(*engine)).expect("rows")));
    // Not closed: what a crash of the process leaves.
    drop(db);
    let db = Db::open(directory.path()).expect("opened");
    ENGINES.iter().for_each(|engine| expected(&db.rows(word(*engine)).expect("rows")));
}

#[test]
fn a_table_has_no_schema_of_an_earlier_one() {
    let directory = tempfile::tempdir().expect("a directory");
    for in_memory in [true, false] {
        let open = || match in_memory {
            true => Db::in_memory(),
            false => Db::open(directory.path()).expect("opened"),
        };
        let mut db = open();
        for engine in ENGINES {
            for next in ENGINES {
                create(&db, "t", engine, Some(&schema("a:u8"))).expect("made");
                assert!(db.rows("t").is_ok());
                db.drop_table("t").expect("dropped");
                assert!(matches!(db.schema("t"), Err(Error::TableMissing { .. })));
                create(&db, "t", next, None).expect("made");
                assert_eq!(db.schema("t"), Ok(None));
                assert!(matches!(db.rows("t"), Err(Error::NoSchema { .. })));
                if !in_memory {
                    drop(db);
                    db = open();
                    assert_eq!(db.schema("t"), Ok(None));
                    assert!(db.table("t").expect("there").schema().is_none());
                }
                db.drop_table("t").expect("dropped");
            }
        }
        create(&db, "t", Engine::Ordered, Some(&schema("a:u8"))).expect("made");
        let again = create(&db, "t", Engine::Tree, Some(&schema("b:u8")));
        assert!(matches!(again, Err(Error::TableExists { .. })), "{again:?}");
        assert_eq!(text_of(&db, "t").as_deref(), Some("a:u8, key(#)"));
    }
}

#[test]
fn the_table_of_schemas_is_the_databases_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Db::open(directory.path()).expect("opened");
    for engine in ENGINES {
        let refused = create(&db, "sapwood.schemas", engine, None).expect_err("it is taken");
        assert!(matches!(refused, Error::TableName { .. }), "{refused}");
    }
    // It is not there before it is needed.
    create(&db, "bytes", Engine::Hash, None).expect("made");
    assert_eq!(db.engine("sapwood.schemas"), None);
    create(&db, "rows", Engine::Ordered, Some(&schema("a:u8"))).expect("made");
    assert_eq!(db.table_names(), ["bytes", "rows"]);
    assert_eq!(db.open_hash_tables().len(), 1);
    assert_eq!(db.stats().hash_tables.len(), 1);
    let refused = db.drop_table("sapwood.schemas").expect_err("it stays");
    assert!(matches!(refused, Error::TableName { .. }), "{refused}");
    let missing = db.table("other").expect_err("missing").to_string();
    assert!(missing.contains("there are: bytes, rows"), "{missing}");
    db.close().expect("closed");

    let check = Db::check(directory.path()).expect("checked");
    assert!(check.problems.is_empty(), "{:?}", check.problems);
    assert!(check.tables.iter().any(|table| table.name == "sapwood.schemas"));
}

#[test]
fn backups_and_salvage_have_schemas() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    planes_in(&at("db"));
    let db = Db::open(at("db")).expect("opened");
    db.add_column("ordered", "year", Type::Int(16)).expect("added");
    let backups = Backups::open_or_create(at("backups")).expect("made");
    backups.add(&db, |_| true).expect("backed up");
    drop(db);
    backups.restore(None, at("restored"), |_| true).expect("restored");
    let salvage = Db::salvage(at("db"), at("salvaged")).expect("salvaged");
    assert!(salvage.problems.is_empty(), "{:?}", salvage.problems);
    for copy in ["restored", "salvaged"] {
        let db = Db::open(at(copy)).expect("opened");
        for engine in ENGINES {
            let name = word(engine);
            let rows = db.rows(name).unwrap_or_else(|error| panic!("{copy}, {name}: {error}"));
            assert_eq!(all(&rows).len(), 2, "{copy}, {name}");
        }
        assert!(db.schema("ordered").expect("read").expect("there").find("year").is_some());
    }
}

#[test]
fn a_database_without_a_log_has_schemas() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = || Db::open_with(directory.path(), DbOptions::default().without_log());
    let db = open().expect("opened");
    create(&db, "t", Engine::Ordered, Some(&schema("a:u8"))).expect("made");
    db.add_column("t", "b", Type::Text).expect("added");
    // Nothing is closed.
    drop(db);
    let db = open().expect("opened");
    assert_eq!(text_of(&db, "t").as_deref(), Some("a:u8, b:text? since 2, key(#)"));
    db.drop_table("t").expect("dropped");
    create(&db, "t", Engine::Ordered, None).expect("made");
    drop(db);
    assert_eq!(text_of(&open().expect("opened"), "t"), None);
}

#[test]
fn tables_of_rows_are_not_made_among_changes_that_go_together() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Db::open(directory.path()).expect("opened");
    let made = |schema: Option<&Schema>| {
        let (made, _) = db.together(|| create(&db, "t", Engine::Ordered, schema)).expect("run");
        made
    };
    // Where there are no schemas, a table needs none to be removed.
    made(None).expect("made");
    db.drop_table("t").expect("dropped");
    let refused = made(Some(&schema("a:u8"))).expect_err("its schema would come behind it");
    assert!(matches!(refused, Error::Log { .. }), "{refused}");
    create(&db, "rows", Engine::Ordered, Some(&schema("a:u8"))).expect("made");
    let refused = made(None).expect_err("it could have an earlier schema");
    assert!(matches!(refused, Error::Log { .. }), "{refused}");
    let (added, _) = db.together(|| db.add_column("rows", "b", Type::Text)).expect("run");
    added.expect_err("rows of it could come before it");
    create(&db, "t", Engine::Ordered, Some(&schema("b:u8"))).expect("made");
    assert_eq!(text_of(&db, "t").as_deref(), Some("b:u8, key(#)"));
}

/// The power goes at any change of the disk: a table has its own schema, in each of its versions.
#[test]
fn any_crash_leaves_tables_with_their_own_schemas() {
    let mut seen = 0;
    for seed in 0..12_u64 {
        for engine in ENGINES {
            let disk = SimDisk::new();
            let options = || {
                DbOptions::default().durability(match seed % 2 {
                    0 => Durability::Sync,
                    _ => Durability::Buffered,
                })
            };
            let db = Db::open_simulated(&disk, options()).expect("opened");
            disk.take_images(seed << 8, 1);
            let (wide, other) = (schema("a:u8, b:text?"), schema("c:f64"));
            // What the tables `t` of these steps are, one after the other; each has its own number of columns.
            create(&db, "t", engine, Some(&wide)).expect("made");
            db.rows("t").expect("rows").put(&[1.into(), "one".into()]).expect("put");
            db.add_column("t", "d", Type::Int(64)).expect("added");
            db.rows("t").expect("rows").put(&[1.into(), "one".into(), 4.into()]).expect("put");
            db.drop_table("t").expect("dropped");
            create(&db, "t", engine, None).expect("made");
            db.table("t").expect("there").put(b"bytes", b"bytes").expect("put");
            db.drop_table("t").expect("dropped");
            create(&db, "t", engine, Some(&other)).expect("made");
            db.rows("t").expect("rows").put(&[0.5.into()]).expect("put");
            let mut images = disk.taken();
            images.push(disk.crash(seed));
            for (number, image) in images.into_iter().enumerate() {
                seen += 1;
                let what = format!("{engine}, seed {seed}, image {number}");
                check_image(&image, options(), &what);
            }
        }
    }
    assert!(seen > 500, "{seen} images");
}

fn check_image(image: &SimDisk, options: DbOptions, what: &str) {
    let db = match number_of(what) % 2 {
        0 => Db::open_simulated(image, options),
        _ => Db::open_simulated_read_only(image),
    };
    let db = match db {
        Ok(db) => db,
        // A reader makes no directory.
        Err(Error::Directory { .. }) => return,
        Err(error) => panic!("{what}: {error}"),
    };
    let Ok(table) = db.table("t") else { return };
    let columns = db.schema("t").unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(columns.as_ref(), table.schema(), "{what}");
    let mut entries = 0;
    let walked = table.for_each(|key, value| {
        entries += 1;
        if let Some(format) = table.row_format() {
            format.decode(key, value).unwrap_or_else(|error| panic!("{what}: {error}"));
        } else {
            assert_eq!((key, value), (&b"bytes"[..], &b"bytes"[..]), "{what}");
        }
        ControlFlow::<()>::Continue(())
    });
    let _all = walked.unwrap_or_else(|error| panic!("{what}: {error}"));
    let text = columns.map_or("none".to_owned(), |schema| schema.to_string());
    let known = [
        ("none", 0..=1),
        ("a:u8, b:text?, key(#)", 0..=1),
        ("a:u8, b:text?, d:i64? since 2, key(#)", 0..=2),
        ("c:f64, key(#)", 0..=1),
    ];
    assert!(
        known.iter().any(|(known, counts)| *known == text && counts.contains(&entries)),
        "{what}: {entries} rows of {text}"
    );
}

fn number_of(what: &str) -> usize {
    what.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("it ends with one")
}

#[test]
fn numbers_go_on_behind_the_largest() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut db = Db::open(directory.path()).expect("opened");
    let keyed = schema("day:u8, text:text, key(day, #)");
    for engine in ENGINES {
        create(&db, &format!("plain-{}", word(engine)), engine, Some(&schema("text:text")))
            .expect("made");
        create(&db, &format!("keyed-{}", word(engine)), engine, Some(&keyed)).expect("made");
    }
    for life in 0..3_u64 {
        for engine in ENGINES {
            let plain = db.rows(&format!("plain-{}", word(engine))).expect("rows");
            let base = life * 103;
            assert_eq!(plain.put(&["a".into()]), Ok(Some(base + 1)), "{engine}");
            plain.put_many(&[["b".into()], ["c".into()]]).expect("put");
            plain.put_at(base + 103, &["d".into()]).expect("put");
            assert_eq!(plain.get(&[(base + 3).into()]), Ok(Some(vec!["c".into()])));
            assert!(plain.get(&[(base + 4).into()]).expect("read").is_none());

            let keyed = db.rows(&format!("keyed-{}", word(engine))).expect("rows");
            let numbers = [1, 2, 1].map(|day| keyed.put(&[day.into(), "x".into()]).expect("put"));
            let base = life * 2;
            match engine {
                Engine::Hash => assert_eq!(numbers, [1, 2, 3].map(|n| Some(life * 3 + n))),
                _ => assert_eq!(numbers, [Some(base + 1), Some(life + 1), Some(base + 2)]),
            }
        }
        drop(db);
        db = Db::open(directory.path()).expect("opened");
    }
}

#[test]
fn threads_get_numbers_of_their_own() {
    let db = Db::in_memory();
    for (engine, text) in ENGINES.iter().flat_map(|engine| {
        [(*engine, "thread:u8, n:u32"), (*engine, "thread:u8, n:u32, half:bool, key(half, #)")]
    }) {
        create(&db, "t", engine, Some(&schema(text))).expect("made");
        let rows = db.rows("t").expect("rows");
        let is_keyed = rows.schema().columns().len() == 3;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let rows = &rows;
                scope.spawn(move || {
                    for n in 0..200 {
                        let mut row = vec![Value::Int(thread), Value::Int(n)];
                        if is_keyed {
                            row.push(Value::Bool(n % 2 == 0));
                        }
                        match n % 3 {
                            0 => rows.put_many(&[row]).expect("put"),
                            _ => drop(rows.put(&row).expect("put")),
                        }
                    }
                });
            }
        });
        let mut found = all(&rows);
        assert_eq!(found.len(), 800, "{engine}, {text}");
        found.dedup();
        assert_eq!(found.len(), 800, "{engine}, {text}");
        db.drop_table("t").expect("dropped");
    }
}

#[test]
fn rows_are_read_while_columns_come() {
    let db = Db::in_memory();
    for engine in ENGINES {
        create(&db, "t", engine, Some(&schema("id:u8, n:u64, key(id)"))).expect("made");
        let rows = db.rows("t").expect("rows");
        std::thread::scope(|scope| {
            for id in 0..2_u8 {
                let rows = db.rows("t").expect("rows");
                scope.spawn(move || {
                    for n in 0..2_000 {
                        let mut row = vec![Value::from(id), Value::Int(n)];
                        row.resize(rows.schema().columns().len(), Value::Null);
                        // Another thread may have added a column meanwhile.
                        match rows.put(&row) {
                            Ok(_) => {}
                            Err(Error::Schema { cause: Cause::Schema(_), .. }) => {}
                            Err(error) => panic!("{engine}: {error}"),
                        }
                    }
                });
            }
            scope.spawn(|| {
                for number in 0..40 {
                    db.add_column("t", &format!("c{number}"), Type::Int(32)).expect("added");
                    std::thread::yield_now();
                }
            });
            for _ in 0..2_000 {
                for id in 0..2_u8 {
                    let row = rows.get(&[id.into()]).expect("rows of all versions are read");
                    assert!(row.is_none_or(|row| row[0] == Value::from(id)));
                }
            }
        });
        db.drop_table("t").expect("dropped");
    }
}

#[test]
fn wrong_values_are_refused_and_change_nothing() {
    let db = Db::in_memory();
    for engine in ENGINES {
        create(&db, "t", engine, Some(&schema(PLANES))).expect("made");
        let rows = db.rows("t").expect("rows");
        rows.put(&["N1".into(), 10.into(), Value::Null]).expect("put");
        let before = all(&rows);
        let key = [Value::from("N1")];
        let refused: Vec<(sapwood::Result<()>, &str)> = vec![
            (rows.put(&["N1".into(), 70_000.into(), Value::Null]).map(drop), "does not fit"),
            (rows.put(&["N1".into(), Value::Null, Value::Null]).map(drop), "not nullable"),
            (rows.put(&["N1".into(), 1.into()]).map(drop), "3 values here, and 2 are given"),
            (rows.insert(&[1.into(), 1.into(), Value::Null]).map(drop), "column `tail` (text)"),
            (rows.put_many(&[["N1".into(), "x".into(), Value::Null]]), "column `seats` (u16)"),
            (rows.put_at(1, &["N1".into(), 1.into(), Value::Null]), "no numbers"),
            (rows.update_column(&key, "seats", &(-1).into()).map(drop), "does not fit"),
            (rows.update_column(&key, "name", &1.into()).map(drop), "column `name` (text)"),
            (rows.update_column(&key, "wings", &1.into()).map(drop), "no column `wings`"),
            (rows.update_column(&key, 3, &1.into()).map(drop), "no column `3`"),
            (rows.update_column(&key, "tail", &"N2".into()).map(drop), "is in the key"),
            (rows.update(&key, |row| row[0] = "N2".into()).map(drop), "is in the key"),
            (rows.update(&key, |row| row.truncate(1)).map(drop), "3 values here"),
            (rows.get(&[]).map(drop), "a key has 1 values here"),
            (rows.get(&["N1".into(), 1.into()]).map(drop), "a key has 1 values here"),
            (rows.remove(&[7.into()]).map(drop), "column `tail` (text)"),
        ];
        for (refused, says) in refused {
            let refused = refused.expect_err(says).to_string();
            assert!(refused.contains(says) && refused.contains("table `t`"), "{refused}");
        }
        assert_eq!(all(&rows), before);
        // Entries that are no rows are told, and are as they were.
        rows.table().put(b"no row", b"\x09").expect("as bytes");
        let walked = rows.for_each(|row| match row.values() {
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        });
        assert!(matches!(walked, Ok(ControlFlow::Break(Error::Schema { .. }))), "{walked:?}");
        db.drop_table("t").expect("dropped");
    }
}

#[test]
fn tables_that_can_have_no_rows_refuse_schemas() {
    let db = Db::in_memory();
    let schema = schema("a:u8");
    let hash = HashTableOptions::default().layout(RecordLayout::Fixed8).schema(schema.clone());
    let tree = TreeTableOptions::default().layout(RecordLayout::Fixed8).schema(schema.clone());
    let refused = [
        db.create_hash_table("t", hash).map(drop).expect_err("fixed"),
        db.create_tree_table("t", tree).map(drop).expect_err("fixed"),
    ];
    for refused in refused {
        assert!(matches!(refused, Error::Schema { .. }), "{refused}");
    }
    assert!(db.table_names().is_empty());
    let options = RollupTableOptions::new(rollup::Schema::new("time"));
    db.create_rollup_table("facts", options).expect("made");
    assert_eq!(db.schema("facts"), Ok(None));
    create(&db, "bytes", Engine::Hash, None).expect("made");
    for table in ["facts", "bytes"] {
        let refused = db.add_column(table, "b", Type::Text).expect_err("it has no schema");
        assert!(matches!(refused, Error::NoSchema { .. }), "{refused}");
    }
    create(&db, "rows", Engine::Hash, Some(&schema)).expect("made");
    let rows = db.rows("rows").expect("rows");
    let scanned = rows.scan(.., Direction::Ascending, |_| ControlFlow::<()>::Continue(()));
    assert!(matches!(scanned, Err(Error::NoOrder { .. })), "{scanned:?}");
}

#[test]
fn options_of_a_hash_table_have_its_schema() {
    let directory = tempfile::tempdir().expect("a directory");
    planes_in(directory.path());
    let db = Db::open(directory.path()).expect("opened");
    let options = db.hash_table_options("hash").expect("read");
    let table =
        db.hash_table_with("hash", options.clone().memory_budget(64 << 20)).expect("opened");
    assert!(table.schema().is_some());
    drop(table);
    let other = db.hash_table_with("hash", options.schema(schema("a:u8")));
    assert!(matches!(other, Err(Error::Schema { .. })), "{other:?}");
}

#[test]
fn ranges_are_of_first_columns() {
    let db = Db::in_memory();
    for engine in [Engine::Ordered, Engine::Tree] {
        create(&db, "t", engine, Some(&schema("a:i8, b:text, key(a, b)"))).expect("made");
        let rows = db.rows("t").expect("rows");
        for a in [-1, 0, 1, 2] {
            for b in ["", "x", "xy"] {
                rows.put(&[a.into(), b.into()]).expect("put");
            }
        }
        let count = |scanned: &mut dyn FnMut(&mut Vec<String>)| {
            let mut found = Vec::new();
            scanned(&mut found);
            found.join(" ")
        };
        macro_rules! found {
            ($range:expr) => {
                count(&mut |found| {
                    let scanned = rows.scan($range, Direction::Ascending, |row| {
                        let values = row.values().expect("a row");
                        found.push(format!("{}{}", values[0], values[1]));
                        ControlFlow::<()>::Continue(())
                    });
                    assert_eq!(scanned, Ok(ControlFlow::Continue(())));
                })
            };
        }
        let one = |a: i8| [Value::from(a)];
        let two = |a: i8, b: &'static str| [Value::from(a), Value::from(b)];
        assert_eq!(found!(one(0)..=one(0)), "0 0x 0xy");
        assert_eq!(found!(one(0)..one(1)), "0 0x 0xy");
        assert_eq!(found!(..one(0)), "-1 -1x -1xy");
        assert_eq!(found!(..=one(-1)), "-1 -1x -1xy");
        assert_eq!(found!(two(1, "xy")..), "1xy 2 2x 2xy");
        assert_eq!(found!(two(1, "x")..=two(2, "")), "1x 1xy 2");
        assert_eq!(found!((Bound::Excluded(one(1)), Bound::Unbounded)), "2 2x 2xy");
        assert_eq!(found!((Bound::Excluded(two(1, "x")), Bound::Excluded(two(2, "x")))), "1xy 2");
        assert_eq!(found!(one(2)..one(0)), "");
        assert_eq!(found!(&[][..]..=&[][..]), found!(..));
        db.drop_table("t").expect("dropped");
    }
}
