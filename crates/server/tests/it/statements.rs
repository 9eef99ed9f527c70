//! Statements of SQL over the wire.

use crate::client::{Client, Value, field, ok, service};
use crate::users::NO_KEY;

fn sql(client: &mut Client, statement: &str) -> Value {
    client.call(&[b"sw.sql", statement.as_bytes()])
}

/// The rows of a reply, each as a text.
fn rows(reply: &Value) -> Vec<String> {
    let Value::Array(rows) = field(reply, "rows") else { panic!("{reply:?}") };
    let text = |value: &Value| match value {
        Value::Null => "null".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    };
    let row = |row: &Value| match row {
        Value::Array(cells) => cells.iter().map(text).collect::<Vec<_>>().join(" "),
        other => panic!("{other:?}"),
    };
    rows.iter().map(row).collect()
}

fn refusal(reply: Value) -> String {
    match reply {
        Value::Error(text) => text,
        other => panic!("{other:?}"),
    }
}

const CREATE: &str = "create table trees (kind text, height bigint, planted date, mark uhugeint, \
    primary key (kind))";
const INSERT: &str = "insert into trees values ('oak', 30, '1990-05-01', 7), \
    ('elm', null, '2001-02-03', 340282366920938463463374607431768211455)";

#[test]
fn statements_make_change_and_ask_tables() {
    let mut client = Client::new(&service());
    sql(&mut client, CREATE);
    let changed = sql(&mut client, INSERT);
    assert_eq!(
        (field(&changed, "done"), field(&changed, "rows")),
        ("inserted".into(), Value::Integer(2))
    );
    let asked = sql(&mut client, "select * from trees order by kind");
    let names = ["kind", "height", "planted", "mark"].map(Value::from);
    assert_eq!(field(&asked, "columns"), Value::Array(names.to_vec()));
    let types = ["text", "i64", "date", "u128"].map(Value::from);
    assert_eq!(field(&asked, "types"), Value::Array(types.to_vec()));
    assert_eq!(
        rows(&asked),
        ["elm null 2001-02-03 340282366920938463463374607431768211455", "oak 30 1990-05-01 7"]
    );
    sql(
        &mut client,
        "update trees set height = 31 where kind = 'oak'; delete from trees where height is null",
    );
    let ro = client.call(&[b"sw.sql_ro", b"select count(*), max(height) from trees"]);
    assert_eq!(rows(&ro), ["1 31"]);
    // Commands see what statements made, and the other way round.
    assert_eq!(client.line("sw.list"), Value::Array(vec!["trees".into()]));
    assert_eq!(client.line("sw.create bytes engine hash"), ok());
    assert_eq!(client.line("sw.put bytes k v"), ok());
    assert_eq!(rows(&sql(&mut client, "select key, value from bytes")), ["k v"]);
    assert_eq!(client.line("set a b"), ok());
    assert_eq!(rows(&sql(&mut client, "select count(*) from trees")), ["1"]);
    assert_eq!(client.line("sw.drop trees"), ok());
}

#[test]
fn statements_that_cannot_be_are_refused() {
    let mut client = Client::new(&service());
    sql(&mut client, CREATE);
    client.line("set a b");
    for (statement, says) in [
        ("", "a statement is expected"),
        ("selec", "ERR "),
        ("select height from", "ERR "),
        ("select wings from trees", "no column is called `wings`"),
        ("select * from none", "none"),
        ("select * from 'trees.csv'", "a server reads no files"),
        ("copy trees to 'trees.csv'", "a server writes no files"),
        ("drop table trees", "SW.DROP trees"),
        ("select * from \"redis.0\"", "the server's own tables"),
        ("create table \"redis.9\" (a bigint)", "the server's own tables"),
    ] {
        let text = refusal(sql(&mut client, statement));
        assert!(text.contains(says) && !text.contains('\n'), "{statement}: {text}");
    }
    for statement in ["insert into trees values ('x', 1, null, 2)", "create table t (a int)"] {
        let text = refusal(client.call(&[b"sw.sql_ro", statement.as_bytes()]));
        assert!(text.contains("SW.SQL executes it"), "{text}");
    }
    assert!(refusal(client.call(&[b"sw.sql", b"select '\xFF'"])).contains("UTF-8"));
}

/// The feature `files` of the facade is built in: tests ask for it.
#[test]
fn clients_reach_no_files_of_the_server() {
    let folder = tempfile::tempdir().expect("a directory for the test");
    let (there, new) = (folder.path().join("a.csv"), folder.path().join("b.csv"));
    std::fs::write(&there, "kind,height\nyew,9\n").expect("a file of the test");
    let db = sapwood::Db::in_memory();
    assert!(db.sql(&format!("select * from '{}'", there.display())).is_ok(), "a program may");
    let mut client = Client::new(&service());
    sql(&mut client, CREATE);
    let (there, new) = (there.display(), new.display());
    let pattern = folder.path().join("*.csv").display().to_string();
    for (command, statement) in [
        ("sw.sql", format!("select * from '{there}'")),
        ("sw.sql_ro", format!("select * from '{there}'")),
        ("sw.sql_ro", format!("select count(*) from '{pattern}'")),
        ("sw.sql_ro", format!("explain select * from '{there}'")),
        ("sw.sql_ro", format!("describe '{there}'")),
        ("sw.sql_ro", format!("summarize '{there}'")),
        ("sw.sql", format!("insert into trees (kind, height) select * from '{there}'")),
        ("sw.sql", format!("copy trees (kind, height) from '{there}'")),
        ("sw.sql", format!("create table more as select * from '{there}'")),
        ("sw.sql", format!("copy trees to '{new}'")),
        ("sw.sql", format!("copy (select 1) to '{new}'")),
    ] {
        let text = refusal(client.call(&[command.as_bytes(), statement.as_bytes()]));
        assert!(
            text.contains("a server reads no files") || text.contains("a server writes no files"),
            "{statement}: {text}"
        );
    }
    assert_eq!(rows(&sql(&mut client, "select count(*) from trees")), ["0"]);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn rights_are_those_on_the_tables_of_a_statement() {
    let service = service();
    let mut admin = Client::new(&service);
    sql(&mut admin, CREATE);
    sql(&mut admin, INSERT);
    sql(&mut admin, "create table others (a bigint, primary key (a))");
    for rule in [
        "acl setuser reader on >pw %R~trees +sw.sql +sw.sql_ro",
        "acl setuser writer on >pw ~trees +@table",
        "acl setuser looker on >pw ~trees +@read",
    ] {
        assert_eq!(admin.line(rule), ok(), "{rule}");
    }
    let update = "update trees set height = 1 where kind = 'oak'";
    for (user, command, statement, expected) in [
        ("reader", "sw.sql_ro", "select height from trees", None),
        ("reader", "sw.sql", update, Some(NO_KEY)),
        ("reader", "sw.sql_ro", "select * from others", Some(NO_KEY)),
        ("writer", "sw.sql", update, None),
        ("writer", "sw.sql", "create table more (a bigint)", Some(NO_KEY)),
        ("looker", "sw.sql_ro", "select height from trees", None),
        ("looker", "sw.sql", update, Some("no permissions to run the 'sw.sql' command")),
    ] {
        let mut client = Client::new(&service);
        assert_eq!(client.line(&format!("auth {user} pw")), ok());
        let reply = client.call(&[command.as_bytes(), statement.as_bytes()]);
        match expected {
            None => assert!(!matches!(reply, Value::Error(_)), "{user} {statement}: {reply:?}"),
            Some(says) => assert!(refusal(reply).contains(says), "{user} {statement}"),
        }
    }
}

#[test]
fn statements_are_steps_of_transactions() {
    let service = service();
    let mut client = Client::new(&service);
    sql(&mut client, CREATE);
    client.line("multi");
    sql(&mut client, INSERT);
    client.call(&[b"sw.sql_ro", b"select count(*) from trees"]);
    let Value::Array(replies) = client.line("exec") else { panic!("no replies") };
    assert_eq!(field(&replies[0], "rows"), Value::Integer(2));
    assert_eq!(rows(&replies[1]), ["2"]);
}
