//! Statements over files.

use std::path::PathBuf;

use sapwood::Db;
use sapwood::sql::{Options, Outcome, Session, Tables, parse};

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().expect("a directory for the test"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, contents: &str) {
        std::fs::write(self.path(name), contents).expect("a file of the test");
    }

    /// Executes statements, whose files stand in the folder.
    fn sql(&self, db: &Db, statements: &str) -> Result<Vec<String>, String> {
        let folder = format!("'{}/", self.0.path().display());
        let outcome = db.sql(&statements.replace("'@", &folder));
        match outcome.map_err(|error| error.what().to_owned())? {
            Outcome::Rows(answer) => Ok((0..answer.len())
                .map(|row| {
                    let values = answer.row(row).expect("values");
                    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
                })
                .collect()),
            other => Ok(vec![format!("{other:?}")]),
        }
    }
}

#[test]
fn statements_read_and_write_files_of_every_format() {
    let (files, db) = (Files::new(), Db::in_memory());
    files.write("a.csv", "day,n\n2013-01-01,1\n2013-01-02,\n");
    for format in ["csv", "csv.gz", "jsonl", "jsonl.zst", "msgpack", "parquet", "arrow"] {
        let copied = files.sql(&db, &format!("copy (select * from '@a.csv') to '@b.{format}'"));
        assert_eq!(copied, Ok(vec!["Changed { what: \"written\", rows: 2 }".to_owned()]));
        let all = files.sql(&db, &format!("select day + interval '1 day', n from '@b.{format}'"));
        assert_eq!(all, Ok(vec!["2013-01-02 1".into(), "2013-01-03 null".into()]), "{format}");
        let again = files.sql(&db, &format!("copy (select 1) to '@b.{format}'"));
        assert!(again.is_err_and(|what| what.contains("is there, and stays as it is")));
    }
    files.sql(&db, "create table t as select * from '@a.csv'").expect("a table");
    files.sql(&db, "insert into t select * from '@b.parquet'; copy t from '@a.csv'").expect("rows");
    assert_eq!(files.sql(&db, "select count(*), sum(n) from t"), Ok(vec!["6 3".into()]));
}

#[test]
fn many_files_are_one_table() {
    let (files, db) = (Files::new(), Db::in_memory());
    std::fs::create_dir(files.path("logs")).expect("a folder");
    files.write("logs/1.csv", "a,b\n1,x\n");
    files.write("logs/2.csv", "b,a\ny,2.5\n");
    files.write("logs/words.txt", "no rows");
    for name in ["@logs/*.csv", "@logs", "@logs/[12].csv"] {
        let rows = files.sql(&db, &format!("select a, b from '{name}' order by a"));
        assert_eq!(rows, Ok(vec!["1 x".into(), "2.5 y".into()]), "{name}");
    }
    let none = files.sql(&db, "select * from '@logs/*.json'");
    assert!(none.is_err_and(|what| what.starts_with("no file is called as")));
}

#[test]
fn types_widen_where_later_rows_have_others() {
    let (files, db) = (Files::new(), Db::in_memory());
    let numbers: String = (0..30_000).map(|number| format!("{number}\n")).collect();
    files.write("a.csv", &format!("n\n{numbers}x\n"));
    let longest = "select max(length(cast(n as text))), count(*) from '@a.csv'";
    assert_eq!(files.sql(&db, longest), Ok(vec!["5 30001".into()]));
    files.sql(&db, "create table t as select * from '@a.csv'").expect("a table");
    assert_eq!(files.sql(&db, "select n from t where n = 'x'"), Ok(vec!["x".into()]));
}

#[test]
fn sessions_over_tables_refuse_files() {
    let (files, db) = (Files::new(), Db::in_memory());
    files.write("a.csv", "a\n1\n");
    db.sql("create table t (a bigint)").expect("a table");
    let tables = Tables::of(&db);
    let path = files.path("a.csv").display().to_string();
    for statement in [
        format!("select * from '{path}'"),
        format!("insert into t select * from '{path}'"),
        format!("copy t from '{path}'"),
        format!("create table u as select * from '{path}'"),
        format!("copy t to '{path}.new.csv'"),
    ] {
        let parsed = parse(&statement).expect("a statement");
        let refused = Session::new(&tables, Options::default()).execute(&parsed[0]);
        let refused = refused.expect_err("files are refused");
        assert!(refused.what().contains("tables alone"), "{statement}: {refused}");
    }
    assert_eq!(std::fs::read_dir(files.path("")).expect("a folder").count(), 1);
}
