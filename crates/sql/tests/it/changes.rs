//! Statements that change rows and tables.

use crate::memory::Memory;
use sapwood_sql::Outcome;

#[track_caller]
fn changed(outcome: Outcome) -> (&'static str, u64) {
    match outcome {
        Outcome::Changed { what, rows } => (what, rows),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_are_inserted_updated_and_deleted() {
    let db = Memory::default().with("t", "a:i32, b:text?, c:f64?, key(a)", "");
    assert_eq!(
        changed(db.run("insert into t values (1, 'x', 1.5), (2, null, 2)")),
        ("inserted", 2)
    );
    assert_eq!(changed(db.run("insert into t (c, a) values (7, 3)")), ("inserted", 1));
    assert_eq!(db.rows("select * from t order by a"), ["1 x 1.5", "2 null 2", "3 null 7"]);
    assert_eq!(
        changed(db.run("update t set c = c * 2 + a, b = 'n' || a where a >= 2")),
        ("updated", 2)
    );
    assert_eq!(db.rows("select * from t order by a"), ["1 x 1.5", "2 n2 6", "3 n3 17"]);
    assert_eq!(changed(db.run("update t set b = null where a = 1")), ("updated", 1));
    assert_eq!(changed(db.run("delete from t where b is null or c > 10")), ("deleted", 2));
    assert_eq!(db.rows("select a from t"), ["2"]);
    assert_eq!(changed(db.run("insert into t select a + 10, b, c from t")), ("inserted", 1));
    assert_eq!(changed(db.run("delete from t")), ("deleted", 2));
}

#[test]
fn a_select_of_no_table_is_one_row() {
    let db = Memory::default().with("t", "a:i32, b:text?, key(a)", "");
    assert_eq!(changed(db.run("insert into t select 7, 'x'")), ("inserted", 1));
    assert_eq!(changed(db.run("insert into t (a) select 8")), ("inserted", 1));
    assert_eq!(db.rows("select * from t order by a"), ["7 x", "8 null"]);
}

#[test]
fn a_table_that_is_put_into_itself_is_read_first() {
    let db = Memory::default().with("t", "a:i32", "(1), (2), (3), (4), (5)");
    assert_eq!(changed(db.run("insert into t select a + 10 from t")), ("inserted", 5));
    assert_eq!(changed(db.run("insert into t select a from memory.t")), ("inserted", 10));
    assert_eq!(db.rows("select count(*), count(distinct a), max(a) from t"), ["20 10 15"]);
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let db = Memory::default().with("t", "a:i8, b:text, d:date?, key(a)", "(1, 'x', null)");
    for (sql, says) in [
        ("insert into t values (1, 'y', null)", "the key of row 1 is there"),
        ("insert into t values (300, 'y', null)", "column `a`: 300 does not fit into i8"),
        ("insert into t values (2, null, null)", "column `b`: a value is needed"),
        ("insert into t (a) values (2)", "`b` needs a value"),
        ("insert into t values (2, 'y')", "3 columns are to be filled, and the row has 2"),
        ("insert into t values (2, 'y', 'soon')", "column `d`: `soon` is no date"),
        ("insert into t (a, a) values (2, 3)", "`a` is named twice"),
        ("insert into t (x) values (2)", "no column is called `x`"),
        ("update t set a = 2", "part of the key"),
        ("update t set b = null", "column `b`: a value is needed"),
        ("update t set d = '2013-13-01'", "column `d`: `2013-13-01` is no date"),
        ("update t set b = 'a', b = 'b'", "`b` is set twice"),
        (
            "insert into t values (4, 'y', null) on conflict do nothing",
            "`on conflict` is not supported",
        ),
        ("delete from t using u", "delete is written as"),
    ] {
        let error = db.refused(sql);
        assert!(error.what().contains(says), "{sql}: {error}");
    }
    assert_eq!(db.rows("select * from t"), ["1 x null"]);
    assert_eq!(changed(db.run("insert into t values (2, 5, '2013-01-01')")), ("inserted", 1));
    assert_eq!(db.rows("select b, d from t where a = 2"), ["5 2013-01-01"]);
}

#[test]
fn tables_are_made_changed_and_removed() {
    let db = Memory::default();
    db.run("create table t (a int, b text not null, c decimal(10,2), primary key (a))");
    assert_eq!(
        db.rows("describe t"),
        ["a i32 false 1", "b text false null", "c decimal(10,2) true null"]
    );
    db.run("insert into t values (1, 'x', 2.5)");
    db.run("alter table t add column d date");
    assert_eq!(db.rows("select * from t"), ["1 x 2.50 null"]);
    db.run("alter table t alter column c type decimal(30,2)");
    db.run("alter table t add column e smallint");
    db.run("insert into t values (2, 'y', 3, null, 32767)");
    let refused = db.refused("insert into t values (3, 'z', 3, null, 32768)");
    let says =
        "32768 does not fit into i16; `alter table ... alter column e type bigint` gives it room";
    assert!(refused.what().contains(says), "{refused}");
    db.run("alter table t alter column e set data type bigint");
    db.run("insert into t values (3, 'z', 12345678901234567890.5, null, 32768)");
    assert_eq!(
        db.rows("select a, c, e + 1 from t order by a"),
        ["1 2.50 null", "2 3.00 32768", "3 12345678901234567890.50 32769"]
    );
    db.run("create table if not exists t (z int)");
    db.run("create table u as select a, b || '!' as b from t");
    assert_eq!(db.rows("select * from u"), ["1 x!", "2 y!", "3 z!"]);
    db.run("create table v (k bigint primary key) with (engine = 'hash')");
    db.run("drop table u; drop table if exists u");
    for (sql, says) in [
        ("create table t (a int)", "`t` is there"),
        ("create table w (a int default 1)", "is not supported"),
        ("create table w (a int, a int)", "two columns are called `a`"),
        ("create table w (a int, primary key (b))", "names `b`"),
        ("create table w (a int primary key, b int primary key)", "one primary key"),
        ("create temporary table w (a int)", "create table is written as"),
        ("create table w (a money)", "no type is called `money`"),
        ("drop table u", "no table is called `u`"),
        ("alter table t drop column a", "one new column"),
        ("alter table t add column e int not null", "null in the rows"),
        ("alter table t alter column e type int", "does not have all values"),
        ("alter table t alter column e type text", "does not have all values"),
        ("alter table t alter column a type bigint", "keep their type"),
        ("alter table t alter column z type bigint", "no column is called `z`"),
        ("alter table t alter column e drop not null", "one new column"),
    ] {
        let error = db.refused(sql);
        assert!(error.what().contains(says), "{sql}: {error}");
    }
}

#[test]
fn answers_are_written_to_files() {
    let db = Memory::default().with("t", "a:i32, b:text?, key(a)", "(1, 'x'), (2, 'y')");
    assert_eq!(changed(db.run("copy t to 't.parquet'")), ("written", 2));
    assert_eq!(changed(db.run("copy (select a from t where a > 1) to 'x.csv'")), ("written", 1));
    let written = db.written.lock().expect("unpoisoned").clone();
    assert_eq!(written, [("t.parquet".to_owned(), 2), ("x.csv".to_owned(), 1)]);
    assert!(db.refused("copy t to 't.csv' (delimiter ';')").what().contains("ending of the file"));
    assert!(db.refused("copy t from 'nowhere.csv'").what().contains("nowhere.csv"));
}

#[test]
fn a_statement_that_fails_changes_nothing() {
    let rows: Vec<String> = (0..200).map(|row| format!("({row}, 1)")).collect();
    let db = Memory::default().with("t", "a:i32, b:i32, key(a)", &rows.join(", "));
    for sql in [
        "update t set b = 10 / (a - 100)",
        "delete from t where 10 / (a - 100) > -5",
        "insert into t select a + 150, b from t",
        "insert into t values (300, 1), (301, 1 / 0)",
        "insert into t values (300, 1), (100, 1)",
    ] {
        let refused = db.refused(sql);
        assert!(!refused.what().contains("rows are"), "{refused}");
        assert_eq!(db.rows("select count(*), sum(a), sum(b) from t"), ["200 19900 200"], "{sql}");
    }
}

#[test]
fn truncate_removes_all_rows() {
    let db = Memory::default().with("t", "a:i32", "(1), (2), (3)");
    assert_eq!(changed(db.run("truncate table t")), ("deleted", 3));
    assert_eq!(db.value("select count(*) from t"), "0");
    assert!(db.refused("truncate t, u").what().contains("truncate is written as"));
}
