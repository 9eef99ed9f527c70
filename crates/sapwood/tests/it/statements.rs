//! Statements of SQL that change rows: all of them, or none.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sapwood::schema::Schema;
use sapwood::sql::{ErrorKind, Options, Outcome, Session, Tables, parse};
use sapwood::{
    Compute, Db, DbOptions, Durability, HashTableOptions, OrderedTableOptions, TreeTableOptions,
};
use sapwood_disk::SimDisk;

const ENGINES: [&str; 3] = ["ordered", "hash", "tree"];

/// Rows of a table: more than one batch, and more than one part of a log.
const ROWS: usize = 2_500;

fn run(db: &Db, sql: &str) -> u64 {
    match db.sql(sql).unwrap_or_else(|error| panic!("{sql}: {error}")) {
        Outcome::Changed { rows, .. } => rows,
        _ => 0,
    }
}

fn made(db: &Db, engine: &str) {
    made_with(db, engine, ROWS);
}

fn made_with(db: &Db, engine: &str, rows: usize) {
    run(db, &format!("create table t (a bigint primary key, b bigint) with (engine = '{engine}')"));
    let values: Vec<String> = (0..rows).map(|row| format!("({row}, {row})")).collect();
    assert_eq!(run(db, &format!("insert into t values {}", values.join(", "))), rows as u64);
}

fn sums(db: &Db) -> Vec<String> {
    let sql = "select count(*), sum(a), sum(b) from t";
    let Ok(Outcome::Rows(answer)) = db.sql(sql) else { panic!("{sql}") };
    let row = answer.row(0).expect("one row");
    row.iter().map(ToString::to_string).collect()
}

/// Statements that fail at a row in the middle.
fn failing() -> [String; 5] {
    let half = ROWS / 2;
    [
        format!("update t set b = 10 / (a - {half})"),
        format!("update t set b = 7 where a < {half} or 10 / (a - {half}) = 0"),
        format!("delete from t where 10 / (a - {half}) < 100"),
        format!("insert into t select a - {half}, b from t"),
        format!("insert into t values (-1, 1), (-2, 2), ({half}, 3)"),
    ]
}

#[test]
fn a_statement_that_fails_changes_nothing() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().expect("a directory");
        let db = Db::open(directory.path()).expect("opened");
        made(&db, engine);
        let before = sums(&db);
        for sql in failing() {
            let refused = db.sql(&sql).expect_err(&sql).to_string();
            assert!(!refused.contains("rows are"), "{engine}: {refused}");
            assert_eq!(sums(&db), before, "{engine}: {sql}: {refused}");
        }
        drop(db);
        let db = Db::open(directory.path()).expect("opened");
        assert_eq!(sums(&db), before, "{engine}: opened again");
        // What has succeeded is there as a whole, too.
        assert_eq!(run(&db, "update t set b = b + 1 where a >= 10"), ROWS as u64 - 10);
        assert_eq!(run(&db, "delete from t where a < 10"), 10);
        assert_eq!(run(&db, "insert into t select a + 100000, b from t"), ROWS as u64 - 10);
        let after = sums(&db);
        drop(db);
        let db = Db::open(directory.path()).expect("opened");
        assert_eq!(sums(&db), after, "{engine}: opened again");
    }
}

#[test]
fn readers_see_nothing_of_a_statement_that_fails() {
    for engine in ENGINES {
        let db = Db::in_memory();
        made(&db, engine);
        let before = sums(&db);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut looks = 0;
                while !is_done.load(Ordering::Relaxed) || looks == 0 {
                    assert_eq!(sums(&db), before, "{engine}");
                    looks += 1;
                }
            });
            for sql in failing().iter().cycle().take(10) {
                db.sql(sql).expect_err(sql);
            }
            is_done.store(true, Ordering::Relaxed);
            reader.join().expect("it saw nothing else");
        });
    }
}

#[test]
fn no_update_beside_a_statement_is_lost() {
    for engine in ENGINES {
        let db = Db::in_memory();
        made(&db, engine);
        let (statements, singles) = (3, 100);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..statements {
                        assert_eq!(run(&db, "update t set b = b + 1"), ROWS as u64);
                    }
                });
            }
            scope.spawn(|| {
                for row in 0..singles {
                    run(&db, &format!("update t set b = b + 1 where a = {}", row % 50));
                    run(&db, "delete from t where a < 0");
                }
            });
        });
        let once: u64 = (0..ROWS as u64).sum();
        let expected = once + 2 * statements * ROWS as u64 + singles;
        let all = [ROWS as u64, once, expected].map(|sum| sum.to_string());
        assert_eq!(sums(&db), all, "{engine}");
    }
}

#[test]
fn rows_with_numbers_are_put_as_a_whole() {
    for engine in ENGINES {
        let db = Db::in_memory();
        made(&db, engine);
        run(
            &db,
            &format!("create table n with (engine = '{engine}') as select a from t where a < 3"),
        );
        let half = ROWS / 2;
        db.sql(&format!("insert into n select 10 / (a - {half}) from t")).expect_err("by zero");
        let Ok(Outcome::Rows(answer)) = db.sql("select a from n order by a") else { panic!() };
        assert_eq!(answer.len(), 3, "{engine}");
        let both = || run(&db, "insert into n select a from t");
        std::thread::scope(|scope| {
            scope.spawn(both);
            scope.spawn(both);
        });
        let Ok(Outcome::Rows(answer)) = db.sql("select count(*) from n") else { panic!() };
        assert_eq!(answer.value(0, 0), Ok((2 * ROWS as i64 + 3).into()), "{engine}");
    }
}

/// Runs a statement that may take a MiB of memory.
fn in_a_mebibyte(db: &Db, sql: &str) -> Result<Outcome, sapwood::sql::Error> {
    let mut options = Options::default();
    options.memory_bytes_max = 1 << 20;
    let statements = parse(sql).expect(sql);
    Session::new(&Tables::of(db), options).execute(&statements[0])
}

#[test]
fn a_statement_that_needs_too_much_memory_changes_nothing() {
    let text = "x".repeat(500);
    let values = |rows: std::ops::Range<i32>| {
        let values: Vec<String> = rows.map(|row| format!("({row}, {row}, '{text}')")).collect();
        values.join(", ")
    };
    for engine in ENGINES {
        let db = Db::in_memory();
        let make = |name: &str, columns: &str| {
            run(&db, &format!("create table {name} ({columns}) with (engine = '{engine}')"));
        };
        make("t", "a bigint primary key, b bigint, c text");
        make("many", "a bigint primary key");
        for begin in [0, 500, 1_000, 1_500] {
            run(&db, &format!("insert into t values {}", values(begin..begin + 500)));
        }
        let names: Vec<String> = (0..9_000).map(|row| format!("({row})")).collect();
        run(&db, &format!("insert into many values {}", names.join(", ")));
        let before = sums(&db);
        for sql in [
            // The values that were there, the new ones, and what finds rows.
            "update t set c = c || 'y'".to_owned(),
            "delete from t".to_owned(),
            "truncate t".to_owned(),
            "delete from many".to_owned(),
            // New rows, and the record of the log.
            format!("insert into t values {}", values(10_000..11_200)),
        ] {
            let begin = &sql[..sql.len().min(30)];
            let refused = in_a_mebibyte(&db, &sql).expect_err(begin);
            assert_eq!(refused.kind(), ErrorKind::Memory, "{engine}: {begin}: {refused}");
            assert_eq!(sums(&db), before, "{engine}: {begin}");
        }
        let Ok(Outcome::Rows(answer)) = db.sql("select count(*) from many") else { panic!() };
        assert_eq!(answer.value(0, 0), Ok(9_000.into()), "{engine}");
        for (sql, rows) in [
            ("update t set c = c || 'y' where a < 300", 300),
            ("delete from t where b < 100", 100),
            ("delete from many where a < 4000", 4_000),
        ] {
            match in_a_mebibyte(&db, sql) {
                Ok(Outcome::Changed { rows: found, .. }) => assert_eq!(found, rows, "{sql}"),
                other => panic!("{engine}: {sql}: {other:?}"),
            }
        }
    }
}

/// Another thread that is always faster ends a statement in the end.
#[test]
fn rows_whose_numbers_are_always_taken_are_refused() {
    for (engine, values) in [("ordered", "(1, 'a'), (1, 'b')"), ("tree", "(1, 'a')")] {
        let db = Db::in_memory();
        let schema: Schema = "day:i32, line:text, key(day, #)".parse().expect("a schema");
        match engine {
            "tree" => {
                let options = TreeTableOptions::default().schema(schema);
                db.create_tree_table("t", options).map(drop).expect("made");
            }
            _ => {
                let options = OrderedTableOptions::default().schema(schema);
                db.create_ordered_table("t", options).map(drop).expect("made");
            }
        }
        let (faster, taken) = (db.rows("t").expect("rows"), AtomicU64::new(0));
        // It rests after some time, so that a statement without an end has one, too.
        let hold = |change: &mut dyn FnMut()| {
            if taken.fetch_add(1, Ordering::Relaxed) < 2_000 {
                faster.put(&[1.into(), "faster".into()]).expect("put");
            }
            change();
        };
        let tables = Tables::of(&db).changing_within(&hold);
        let session = Session::new(&tables, Options::default());
        let insert = |values: &str| {
            let statements = parse(&format!("insert into t values {values}")).expect("a statement");
            session.execute(&statements[0])
        };
        let refused = insert(values).expect_err(values).to_string();
        let says =
            "other statements change the same rows all the time: run it again; nothing is inserted";
        assert!(refused.contains(says), "{engine}: {refused}");
        // One that others are in the way of only now and then succeeds.
        taken.store(1_990, Ordering::Relaxed);
        insert("(1, 'a'), (2, 'b')").expect("inserted");
        let Ok(Outcome::Rows(answer)) = db.sql("select line from t where line <> 'faster'") else {
            panic!()
        };
        assert_eq!(answer.len(), 2, "{engine}");
    }
}

/// The power goes at any change of the disk.
#[test]
fn a_crash_leaves_all_changes_of_a_statement_or_none() {
    for engine in ENGINES {
        let options = || DbOptions::default().durability(Durability::Sync).tree_memory(8 << 20);
        let disk = SimDisk::new();
        let db = Db::open_simulated(&disk, options()).expect("new");
        made_with(&db, engine, 200);
        let mut states = vec![sums(&db)];
        disk.take_images(7, 1);
        for _ in 0..2 {
            run(&db, "update t set b = b + 1");
            states.push(sums(&db));
        }
        let images = disk.taken();
        let mut found = [0; 3];
        for (number, image) in images.iter().enumerate() {
            let there = sums(&Db::open_simulated(image, options()).expect("it opens"));
            let state = states.iter().position(|state| *state == there);
            found[state.unwrap_or_else(|| panic!("{engine}, image {number}: {there:?}"))] += 1;
        }
        assert!(found[0] > 0 && found[1] > 0, "{engine}: {found:?}");
    }
}

/// A change of another table that lasts is none of a statement's business.
#[test]
fn a_statement_does_not_wait_for_changes_of_other_rows() {
    let db = Db::in_memory();
    let other = db.create_hash_table("other", HashTableOptions::default()).expect("made");
    made_with(&db, "hash", 2);
    let computed = other.compute("k", |_| {
        let insert = || run(&db, "insert into t values (10, 1), (11, 2)");
        let inserted = std::thread::scope(|scope| scope.spawn(insert).join());
        assert_eq!(inserted.expect("it does not panic"), 2);
        Compute::Keep
    });
    computed.expect("nothing refuses");
    assert_eq!(sums(&db), ["4", "22", "4"]);
}
