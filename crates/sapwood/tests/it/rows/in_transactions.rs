//! Rows that are read and changed in transactions.

use std::ops::ControlFlow;

use sapwood::row::Row;
use sapwood::schema::{Error as Cause, Type, Value};
use sapwood::{Db, Direction, Engine, Error, Rows};

use super::{ENGINES, create, schema, word};

const ACCOUNTS: &str = "owner:text, balance:i64, note:text?, key(owner)";

fn account(owner: &str, balance: i64) -> [Value<'_>; 3] {
    [owner.into(), balance.into(), Value::Null]
}

fn balance(rows: &Rows, owner: &str) -> Option<Value<'static>> {
    rows.get(&[owner.into()]).expect("read").map(|row| row[1].clone())
}

#[test]
fn changes_of_rows_are_there_together_or_not_at_all() {
    let db = Db::in_memory();
    let tables: Vec<Rows> = ENGINES
        .iter()
        .map(|engine| {
            create(&db, word(*engine), *engine, Some(&schema(ACCOUNTS))).expect("made");
            db.rows(word(*engine)).expect("rows")
        })
        .collect();
    for rows in &tables {
        rows.put(&account("ada", 100)).expect("put");
        rows.put(&account("eve", 5)).expect("put");
    }
    let change = |is_wanted: bool| {
        db.transaction(|tx| {
            for rows in &tables {
                let rows = tx.rows(rows);
                assert!(rows.update(&["ada".into()], |row| row[1] = 70.into())?);
                assert!(rows.insert(&account("bob", 0))?);
                assert!(!rows.insert(&account("bob", 1))?);
                assert!(rows.update_column(&["bob".into()], "balance", &30.into())?);
                assert!(rows.update_column(&["bob".into()], 2, &"from ada".into())?);
                assert!(!rows.update(&["tim".into()], |_| panic!("there is none"))?);
                assert!(rows.remove(&["eve".into()])?);
                assert!(!rows.remove(&["eve".into()])?);
                // It sees what it did.
                let bob = rows.get(&["bob".into()])?.expect("it is there");
                assert_eq!(bob, ["bob".into(), 30.into(), "from ada".into()]);
                assert_eq!(rows.get(&["eve".into()])?, None);
            }
            match is_wanted {
                true => Ok(()),
                false => Err(Error::NoSchema { table: "given up".into() }),
            }
        })
    };
    assert!(change(false).is_err());
    for rows in &tables {
        let table = rows.table().name();
        assert_eq!(balance(rows, "ada"), Some(100.into()), "{table}");
        assert_eq!((balance(rows, "bob"), balance(rows, "eve")), (None, Some(5.into())), "{table}");
    }
    assert_eq!(change(true), Ok(()));
    for rows in &tables {
        let table = rows.table().name();
        assert_eq!(balance(rows, "ada"), Some(70.into()), "{table}");
        assert_eq!(
            (balance(rows, "bob"), balance(rows, "eve")),
            (Some(30.into()), None),
            "{table}"
        );
    }
}

#[test]
fn a_row_that_was_read_and_changed_since_is_a_conflict() {
    for engine in [Engine::Ordered, Engine::Hash] {
        let db = Db::in_memory();
        create(&db, "t", engine, Some(&schema(ACCOUNTS))).expect("made");
        let rows = db.rows("t").expect("rows");
        rows.put(&account("ada", 1)).expect("put");
        let tx = db.begin().expect("begun");
        assert!(tx.rows(&rows).update(&["ada".into()], |row| row[1] = 2.into()).expect("updated"));
        rows.update_column(&["ada".into()], "balance", &9.into()).expect("updated");
        assert_eq!(tx.commit().map(drop), Err(Error::Conflict));
        assert_eq!(balance(&rows, "ada"), Some(9.into()));
        // Run again, it counts from what is there.
        let mut runs = 0;
        let add = db.transaction(|tx| {
            runs += 1;
            let there = tx.rows(&rows).get(&["ada".into()])?.expect("it is there");
            if runs == 1 {
                rows.update_column(&["ada".into()], "balance", &10.into())?;
            }
            let Value::Int(there) = there[1] else { panic!("a number") };
            tx.rows(&rows).update_column(&["ada".into()], 1, &(there + 1).into())
        });
        assert_eq!((add, runs), (Ok(true), 2), "{engine:?}");
        assert_eq!(balance(&rows, "ada"), Some(11.into()));
    }
}

#[test]
fn refused_changes_leave_the_transaction_as_it_was() {
    for engine in ENGINES {
        let db = Db::in_memory();
        create(&db, "t", engine, Some(&schema(ACCOUNTS))).expect("made");
        let rows = db.rows("t").expect("rows");
        rows.put(&account("ada", 1)).expect("put");
        db.transaction(|tx| {
            let rows = tx.rows(&rows);
            let key = ["ada".into()];
            for refused in [
                rows.put(&["x".into()]).map(drop),
                rows.put(&["x".into(), "many".into(), Value::Null]).map(drop),
                rows.get(&[]).map(drop),
                rows.update(&key, |row| row[1] = Value::Null).map(drop),
                rows.update(&key, |row| row[0] = "bob".into()).map(drop),
                rows.update_column(&key, "owner", &"bob".into()).map(drop),
                rows.update_column(&key, "wings", &2.into()).map(drop),
            ] {
                let error = refused.expect_err("it is refused");
                assert!(matches!(error, Error::Schema { .. }), "{error}");
            }
            rows.update_column(&key, "note", &"kept".into()).map(drop)
        })
        .expect("committed");
        let row = rows.get(&["ada".into()]).expect("read").expect("it is there");
        assert_eq!(row, ["ada".into(), 1.into(), "kept".into()], "{engine:?}");
    }
}

#[test]
fn rows_with_numbers_get_further_ones() {
    for engine in ENGINES {
        let db = Db::in_memory();
        for (name, text) in [("lines", "line:text"), ("by_day", "day:date, line:text, key(day, #)")]
        {
            create(&db, name, engine, Some(&schema(text))).expect("made");
        }
        let (lines, by_day) = (db.rows("lines").expect("rows"), db.rows("by_day").expect("rows"));
        lines.put(&["first".into()]).expect("put");
        by_day.put(&[Value::Date(1), "first".into()]).expect("put");
        db.transaction(|tx| {
            assert_eq!(tx.rows(&lines).put(&["second".into()])?, Some(2));
            assert_eq!(tx.rows(&lines).put(&["third".into()])?, Some(3));
            assert!(tx.rows(&by_day).insert(&[Value::Date(1), "second".into()])?);
            let number = tx.rows(&by_day).put(&[Value::Date(1), "third".into()])?;
            assert_eq!(number, Some(3));
            assert_eq!(tx.rows(&lines).get(&[3.into()])?, Some(vec!["third".into()]));
            Ok(())
        })
        .expect("committed");
        assert_eq!(lines.put(&["fourth".into()]), Ok(Some(4)), "{engine:?}");
        assert_eq!(by_day.put(&[Value::Date(1), "fourth".into()]), Ok(Some(4)), "{engine:?}");
    }
}

#[test]
fn scans_show_the_rows_of_the_transaction() {
    for engine in [Engine::Ordered, Engine::Tree] {
        let db = Db::in_memory();
        create(&db, "t", engine, Some(&schema("a:i32, b:u8, key(a, b)"))).expect("made");
        let rows = db.rows("t").expect("rows");
        rows.put_many(&[[1.into(), 1.into()], [2.into(), 1.into()], [2.into(), 2.into()]])
            .expect("put");
        let found = db.transaction(|tx| {
            tx.rows(&rows).put(&[2.into(), 3.into()])?;
            tx.rows(&rows).remove(&[2.into(), 1.into()])?;
            let two = [Value::Int(2)];
            let mut found = Vec::new();
            let _ = tx.rows(&rows).scan(two.clone()..=two, Direction::Descending, |row| {
                found.push(row.get("b").map(Value::into_owned));
                ControlFlow::<()>::Continue(())
            })?;
            Ok(found)
        });
        assert_eq!(found, Ok(vec![Ok(3.into()), Ok(2.into())]), "{engine:?}");
    }
    let db = Db::in_memory();
    create(&db, "t", Engine::Hash, Some(&schema("a:i32, key(a)"))).expect("made");
    let rows = db.rows("t").expect("rows");
    let scanned = db.transaction(|tx| {
        tx.rows(&rows).scan(.., Direction::Ascending, |_| ControlFlow::<()>::Continue(()))
    });
    assert!(matches!(scanned, Err(Error::NoOrder { .. })));
}

#[test]
fn structs_are_changed_in_transactions() {
    #[derive(Row, Debug, Clone, PartialEq)]
    struct Plane {
        #[row(key)]
        tail: String,
        seats: u16,
    }
    let plane = |seats: u16| Plane { tail: "N14228".to_owned(), seats };
    for engine in ENGINES {
        let db = Db::in_memory();
        create(&db, "planes", engine, Some(&Plane::schema())).expect("made");
        let rows = db.rows("planes").expect("rows");
        let planes = rows.typed::<Plane>().expect("its columns");
        // A column that the struct does not know stays as it is.
        db.add_column("planes", "owner", Type::Text).expect("added");
        rows.put(&["N14228".into(), 1.into(), "ada".into()]).expect("put");
        let key = "N14228";
        db.transaction(|tx| {
            let planes = tx.rows(&planes);
            assert_eq!(planes.get(key)?, Some(plane(1)));
            assert!(planes.update(key, |plane| plane.seats += 1)?);
            assert!(!planes.insert(&plane(9))?);
            let other = planes.update(key, |plane| plane.tail.push('x'));
            assert!(matches!(other, Err(Error::Schema { cause: Cause::Schema(_), .. })));
            assert_eq!(planes.get(key)?, Some(plane(2)));
            Ok(())
        })
        .expect("committed");
        let row = rows.get(&[key.into()]).expect("read").expect("it is there");
        assert_eq!(row, ["N14228".into(), 2.into(), "ada".into()], "{engine:?}");
        assert_eq!(db.transaction(|tx| tx.rows(&planes).remove(key)), Ok(true));
        assert_eq!(db.transaction(|tx| tx.rows(&planes).put(&plane(7)).map(drop)), Ok(()));
        assert_eq!(planes.get(key), Ok(Some(plane(7))));
    }
}
