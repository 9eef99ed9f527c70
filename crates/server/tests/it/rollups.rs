//! Roll-ups over the wire: rows in, answers out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use sapwood::rollup::{Metric, RowBatch, Schema};
use sapwood::{Db, RollupTableOptions};
use sapwood_server::session::Next;
use sapwood_server::{Service, Session};

use crate::client::{Client, Value, field, ok, replies, request, service};
use crate::users::NO_KEY;

pub(crate) const SCHEMA: &str = r#"{
    "timestampSpec": {"column": "time"},
    "dimensionsSpec": {"dimensions": ["page", {"type": "long", "name": "size"}]},
    "metricsSpec": [
        {"type": "count", "name": "edits"},
        {"type": "longSum", "name": "added", "fieldName": "added"}
    ],
    "granularitySpec": {"queryGranularity": "hour"}
}"#;

pub(crate) fn create(client: &mut Client) {
    let args: [&[u8]; 6] =
        [b"SW.CREATE", b"edits", b"ENGINE", b"ROLLUP", b"SCHEMA", SCHEMA.as_bytes()];
    assert_eq!(client.call(&args), ok());
}

/// A group-by of pages with the sum of what was added.
pub(crate) const BY_PAGE: &str = r#"{
    "queryType": "groupBy", "dataSource": "edits", "dimensions": ["page"], "granularity": "all",
    "intervals": ["2013-01-01/P1Y"],
    "aggregations": [{"type": "longSum", "name": "added", "fieldName": "added"}],
    "limitSpec": {"type": "default", "columns": ["page"]}
}"#;

fn by_page(client: &mut Client) -> Value {
    field(&client.call(&[b"SW.QUERY", b"edits", BY_PAGE.as_bytes()]), "rows")
}

fn ingest(client: &mut Client, payloads: &[&str]) -> Value {
    let mut args: Vec<&[u8]> = vec![b"SW.INGEST", b"edits"];
    args.extend(payloads.iter().map(|payload| payload.as_bytes()));
    client.call(&args)
}

fn count(reply: &Value, name: &str) -> i64 {
    match field(reply, name) {
        Value::Integer(count) => count,
        other => panic!("{name} is {other:?}"),
    }
}

fn refusal(reply: Value) -> String {
    match reply {
        Value::Error(text) => text,
        other => panic!("not refused: {other:?}"),
    }
}

const ROWS: [&str; 3] = [
    r#"{"time": "2013-01-01T00:10Z", "page": "Oak", "size": 1, "added": 3}"#,
    r#"{"time": "2013-01-01T00:20Z", "page": "Oak", "size": 1, "added": 4}"#,
    r#"{"time": "2013-01-01T01:20Z", "page": "Elm", "size": 2, "added": 5}"#,
];

#[test]
fn rows_become_facts_and_facts_answers_in_both_versions_of_the_protocol() {
    for version in ["2", "3"] {
        let mut client = Client::new(&service());
        client.line(&format!("HELLO {version}"));
        create(&mut client);
        let told = ingest(&mut client, &ROWS);
        assert_eq!(matches!(told, Value::Map(_)), version == "3");
        assert_eq!((count(&told, "processed"), count(&told, "new_facts")), (3, 2));
        assert_eq!(field(&told, "samples"), Value::Array(vec![]));
        let answer = client.call(&[b"SW.QUERY", b"edits", BY_PAGE.as_bytes()]);
        let columns = ["timestamp", "page", "added"].map(Value::from);
        assert_eq!(field(&answer, "columns"), Value::Array(columns.to_vec()));
        let row = |page: &str, added: i64| {
            Value::Array(vec![1_356_998_400_000.into(), page.into(), added.into()])
        };
        assert_eq!(field(&answer, "rows"), Value::Array(vec![row("Elm", 5), row("Oak", 7)]));
    }
}

#[test]
fn values_have_the_forms_of_the_protocol() {
    let scan =
        r#"{"queryType": "scan", "columns": ["page", "size", "added"], "order": "ascending"}"#;
    for (version, expected) in [("2", Value::Null), ("3", Value::Null)] {
        let mut client = Client::new(&service());
        client.line(&format!("HELLO {version}"));
        create(&mut client);
        ingest(&mut client, &[r#"{"time": "2013-01-01", "page": ["b", "a"], "added": 1}"#]);
        let rows = field(&client.call(&[b"SW.QUERY", b"edits", scan.as_bytes()]), "rows");
        let pages = Value::Array(vec!["a".into(), "b".into()]);
        assert_eq!(rows, Value::Array(vec![Value::Array(vec![pages, expected, 1.into()])]));
    }
    let mean = BY_PAGE.replace(
        r#""limitSpec""#,
        r#""postAggregations": [
        {"type": "expression", "name": "half", "expression": "added / 2.0"}], "limitSpec""#,
    );
    for (version, half) in [("2", Value::from("1.5")), ("3", Value::Double("1.5".to_owned()))] {
        let mut client = Client::new(&service());
        client.line(&format!("HELLO {version}"));
        create(&mut client);
        ingest(&mut client, &ROWS[..1]);
        let rows = field(&client.call(&[b"SW.QUERY", b"edits", mean.as_bytes()]), "rows");
        let Value::Array(rows) = rows else { panic!("{rows:?}") };
        let Value::Array(row) = &rows[0] else { panic!("{rows:?}") };
        assert_eq!(row.last(), Some(&half));
    }
}

#[test]
fn answers_are_written_as_druid_does_and_as_csv() {
    let mut client = Client::new(&service());
    create(&mut client);
    ingest(&mut client, &ROWS);
    let mut ask = |form: &str| {
        client.call(&[b"SW.QUERY", b"edits", BY_PAGE.as_bytes(), b"FORMAT", form.as_bytes()])
    };
    let Value::Bulk(json) = ask("JSON") else { panic!("no text") };
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let row = |page: &str, added: i64| {
        serde_json::json!({
            "version": "v1",
            "timestamp": "2013-01-01T00:00:00.000Z",
            "event": {"page": page, "added": added},
        })
    };
    assert_eq!(json, serde_json::json!([row("Elm", 5), row("Oak", 7)]));
    let csv = "timestamp,page,added\n2013-01-01T00:00:00.000Z,Elm,5\n\
               2013-01-01T00:00:00.000Z,Oak,7\n";
    assert_eq!(ask("csv"), csv.into());
    let Value::Bulk(stream) = ask("arrow") else { panic!("no bytes") };
    let batches = RowBatch::from_arrow_stream(&stream).expect("a stream");
    assert_eq!((batches.len(), batches[0].rows()), (1, 2));
}

#[test]
fn payloads_are_lines_of_one_text() {
    let mut client = Client::new(&service());
    create(&mut client);
    let two = [ROWS[0], ROWS[1]].join("\n");
    assert_eq!(count(&ingest(&mut client, &[&two, ROWS[2]]), "processed"), 3);
    // With the names of columns in the first payload alone.
    let told = client.line(
        "sw.ingest edits format CSV time,page,size,added 2013-01-02,Oak,1,10 2013-01-02,Elm,,20",
    );
    assert_eq!(count(&told, "processed"), 2);
    let row = |page: &str, added: i64| {
        Value::Array(vec![1_356_998_400_000.into(), page.into(), added.into()])
    };
    assert_eq!(by_page(&mut client), Value::Array(vec![row("Elm", 25), row("Oak", 17)]));
}

#[test]
fn payloads_of_bytes_are_batches_of_their_own_which_go_in_together() {
    let mut client = Client::new(&service());
    client.line("HELLO 3");
    create(&mut client);
    let mut call = |format: &[u8], payloads: &[&[u8]]| {
        let mut args: Vec<&[u8]> = vec![b"SW.INGEST", b"edits", b"FORMAT", format];
        args.extend(payloads);
        client.call(&args)
    };
    let row: &[u8] = b"\x82\xa4time\x00\xa5added\x01";
    // The second one is damaged, and the third is read all the same.
    let damaged = [row, b"\xc1", row].concat();
    let told = call(b"msgpack", &[row, &damaged, row]);
    assert_eq!(["processed", "unparseable", "new_facts"].map(|name| count(&told, name)), [3, 1, 1]);
    let Value::Array(samples) = field(&told, "samples") else { panic!("{told:?}") };
    assert_eq!(field(&samples[0], "offset"), (2 * row.len() as i64).into());
    assert_eq!((field(&samples[0], "line"), field(&samples[0], "row")), (Value::Null, Value::Null));
    // Rows with other columns.
    let page: &[u8] = b"\x83\xa5added\x02\xa4page\xa3Oak\xa4time\x00";
    let told = call(b"MSGPACK", &[row, page, b""]);
    assert_eq!(["processed", "unparseable", "new_facts"].map(|name| count(&told, name)), [2, 0, 1]);
    assert_eq!(count(&client.line("sw.info edits"), "facts"), 2);
    for refused in [&b"no stream"[..], b""] {
        let told = client.call(&[b"SW.INGEST", b"edits", b"FORMAT", b"ARROW", refused]);
        assert!(refusal(told).contains("no Arrow stream"));
    }
}

#[test]
fn what_cannot_be_read_is_counted_and_shown() {
    let mut client = Client::new(&service());
    create(&mut client);
    let text = [
        ROWS[0],
        "{broken",
        r#"{"page": "Oak"}"#,
        r#"{"time": "2013-01-01", "page": "Oak", "size": "wide", "added": 1}"#,
        "[1]",
    ];
    let told = ingest(&mut client, &[&text.join("\n")]);
    let counts =
        ["processed", "processed_with_error", "unparseable"].map(|name| count(&told, name));
    assert_eq!(counts, [2, 1, 3]);
    let Value::Array(samples) = field(&told, "samples") else { panic!("{told:?}") };
    let places: Vec<(Value, Value, Value)> = samples
        .iter()
        .map(|sample| (field(sample, "line"), field(sample, "row"), field(sample, "column")))
        .collect();
    let expected = [
        (1.into(), Value::Null, Value::Null),
        (4.into(), Value::Null, Value::Null),
        (Value::Null, 1.into(), "time".into()),
        (Value::Null, 2.into(), "size".into()),
    ];
    assert_eq!(places, expected, "{samples:?}");
    let csv = client.line("sw.ingest edits format csv time,page 2013-01-01,Oak 2013-01-01,Oak,1");
    assert_eq!((count(&csv, "processed"), count(&csv, "unparseable")), (1, 1));
    // No more samples than are of use.
    let many = vec!["{"; 1_000].join("\n");
    let told = ingest(&mut client, &[&many]);
    let Value::Array(samples) = field(&told, "samples") else { panic!("{told:?}") };
    assert_eq!((count(&told, "unparseable"), samples.len()), (1_000, 10));
}

#[test]
fn bad_input_is_refused_and_changes_nothing() {
    let mut client = Client::new(&service());
    create(&mut client);
    client.line("sw.create t engine hash");
    ingest(&mut client, &ROWS);
    let before = by_page(&mut client);
    let mut wrong = Vec::new();
    let refused: &[(&[&str], &str)] = &[
        (&["sw.create", "u", "engine", "rollup"], "needs a SCHEMA"),
        (&["sw.create", "u", "engine", "hash", "schema", SCHEMA], "SCHEMA is no option of a hash"),
        (&["sw.create", "u", "engine", "rollup", "schema", "{"], "the schema cannot be: it is no"),
        (&["sw.create", "u", "engine", "rollup", "schema", r#"{"colour": 1}"#], "colour"),
        (
            &["sw.create", "u", "engine", "rollup", "schema", SCHEMA, "layout", "n:u8"],
            "LAYOUT is no option of a roll-up table",
        ),
        (
            &["sw.create", "u", "engine", "rollup", "schema", SCHEMA, "budget", "9"],
            "BUDGET is no option of a roll-up table",
        ),
        (&["sw.create", "edits", "engine", "rollup", "schema", SCHEMA], "exists already"),
        (&["sw.create", "redis.7", "engine", "rollup", "schema", SCHEMA], "names that begin with"),
        (&["sw.ingest", "edits"], "wrong number of arguments for 'sw.ingest'"),
        (&["sw.ingest", "edits", "format", "csv"], "wrong number of arguments for 'sw.ingest'"),
        (
            &["sw.ingest", "edits", "format", "xml", "<a/>"],
            "'xml' is none of: json, csv, msgpack, arrow",
        ),
        (&["sw.ingest", "edits", "format", "csv", "a,a\n1,2"], "names `a` twice"),
        (&["sw.ingest", "none", "{}"], "no such table"),
        (&["sw.ingest", "t", "{}"], "table 't' is a hash table, and no roll-up"),
        (&["sw.ingest", "redis.0", "{}"], "names that begin with"),
        (&["sw.query", "edits"], "wrong number of arguments for 'sw.query'"),
        (&["sw.query", "none", BY_PAGE], "no such table"),
        (&["sw.query", "t", BY_PAGE], "table 't' is a hash table, and no roll-up"),
        (&["sw.query", "edits", ""], "the query is no JSON"),
        (&["sw.query", "edits", "[]"], "the query cannot be answered"),
        (&["sw.query", "edits", r#"{"queryType": "sql"}"#], "say timeseries, topN"),
        (
            &["sw.query", "edits", r#"{"queryType": "timeBoundary", "dataSource": "others"}"#],
            "dataSource is 'others', and the command's table 'edits'",
        ),
        (
            &["sw.query", "edits", r#"{"queryType": "timeBoundary", "dataSource": ["edits"]}"#],
            "dataSource is no table",
        ),
        (
            &["sw.query", "edits", BY_PAGE, "format", "xml"],
            "'xml' is none of: rows, json, csv, arrow",
        ),
        (&["sw.query", "edits", BY_PAGE, "threads", "0"], "THREADS is a number from 1 to 256"),
        (&["sw.query", "edits", BY_PAGE, "loudly"], "'loudly' is no option here"),
        (
            &["sw.query", "edits", r#"{"queryType": "groupBy", "dimensions": ["user"]}"#],
            "the query cannot be answered",
        ),
        (&["sw.get", "edits", "k"], "is a roll-up, which has no keys"),
        (&["sw.put", "edits", "k", "v"], "is a roll-up, which has no keys"),
        (&["sw.mget", "edits", "k", "l"], "is a roll-up, which has no keys"),
        (&["sw.range", "edits", "-", "+"], "is a roll-up, which has no keys"),
        (&["sw.scan", "edits", "0"], "is a roll-up, which has no keys"),
        (&["sw.aggregate", "edits", "select", "count"], "is a roll-up, which has no keys"),
        (&["sw.disaggregate", "edits", "n", "5"], "is a roll-up, which has no keys"),
        (&["sw.check", "edits"], "is a roll-up, which has no keys"),
        (&["sw.list", "engine", "tables"], "'tables' is none of: hash, ordered, tree, rollup"),
    ];
    for (args, words) in refused {
        let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        match client.call(&args) {
            Value::Error(text) if text.contains(words) => {}
            other => {
                wrong.push(format!("{:?}: {other:?}", String::from_utf8_lossy(&args.concat())))
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for bytes in [
        &[b"sw.ingest", &b"edits"[..], b"\xFF\xFE"][..],
        &[b"sw.ingest", b"edits", b"format", b"csv", b"\xFF\n\xFF"],
        &[b"sw.query", b"edits", b"\xFF"],
        &[b"sw.create", b"u", b"engine", b"rollup", b"schema", b"\xFF"],
    ] {
        // Refused, or counted as no row.
        match client.call(bytes) {
            Value::Error(_) => {}
            told => assert_eq!(count(&told, "processed"), 0, "{told:?}"),
        }
    }
    assert_eq!(by_page(&mut client), before);
    assert_eq!(client.line("sw.list"), Value::Array(vec!["edits".into(), "t".into()]));
}

#[test]
fn roll_ups_are_listed_shown_and_dropped() {
    let mut client = Client::new(&service());
    client.line("HELLO 3");
    create(&mut client);
    client.line("sw.create t engine hash");
    ingest(&mut client, &ROWS);
    assert_eq!(client.line("sw.list"), Value::Array(vec!["edits".into(), "t".into()]));
    assert_eq!(client.line("sw.list engine rollup"), Value::Array(vec!["edits".into()]));
    assert_eq!(client.line("sw.list match e* engine hash"), Value::Array(vec![]));
    let info = client.line("sw.info edits");
    assert_eq!(field(&info, "engine"), "rollup".into());
    assert_eq!((field(&info, "facts"), field(&info, "kept")), (2.into(), Value::Boolean(false)));
    let column = |name: &str, kind: &str| {
        Value::Map(vec![("name".into(), name.into()), ("type".into(), kind.into())])
    };
    let dimensions = Value::Array(vec![column("page", "string"), column("size", "long")]);
    assert_eq!(field(&info, "dimensions"), dimensions);
    let metrics = Value::Array(vec![column("edits", "count"), column("added", "longSum")]);
    assert_eq!(field(&info, "metrics"), metrics);
    let stats = client.line("sw.stats edits");
    assert_eq!((count(&stats, "facts"), count(&stats, "processed")), (2, 3));
    assert!(count(&stats, "fact_bytes") > 0 && count(&stats, "dictionary_bytes") > 0);
    assert_eq!(client.line("sw.drop edits"), ok());
    assert_eq!(client.line("sw.drop edits"), Value::Error("ERR no such table".to_owned()));
    assert_eq!(by_page_refused(&mut client), "ERR no such table");
    create(&mut client);
    assert_eq!(count(&client.line("sw.info edits"), "facts"), 0);
}

fn by_page_refused(client: &mut Client) -> String {
    refusal(client.call(&[b"SW.QUERY", b"edits", BY_PAGE.as_bytes()]))
}

#[test]
fn a_name_is_free_for_a_table_of_another_kind() {
    let service = service();
    let (mut one, mut two) = (Client::new(&service), Client::new(&service));
    create(&mut one);
    ingest(&mut two, &ROWS);
    assert_eq!(one.line("sw.drop edits"), ok());
    assert_eq!(one.line("sw.create edits engine hash"), ok());
    assert_eq!(two.line("sw.put edits k v"), ok());
    assert!(by_page_refused(&mut two).contains("and no roll-up"));
}

#[test]
fn roll_ups_that_the_host_makes_are_found() {
    let db = Db::in_memory();
    let service = Arc::new(Service::new(db.clone(), Default::default()).expect("memory"));
    let schema = Schema::new("time").metric(Metric::count("edits"));
    let table = db.create_rollup_table("edits", RollupTableOptions::new(schema)).expect("a name");
    table.ingest(&RowBatch::from_csv(b"time\n2013-01-01\n").expect("CSV").0).expect("room");
    let mut client = Client::new(&service);
    assert_eq!(count(&client.line("sw.info edits"), "facts"), 1);
    assert_eq!(count(&client.line(r#"sw.ingest edits {"time":"2013-01-01"}"#), "new_facts"), 0);
    assert_eq!(table.stats().processed, 2);
}

#[test]
fn transactions_ingest_and_ask_in_their_order() {
    let mut client = Client::new(&service());
    create(&mut client);
    let queued = Value::Simple("QUEUED".to_owned());
    assert_eq!(client.line("multi"), ok());
    assert_eq!(ingest(&mut client, &ROWS[..1]), queued);
    let ask: [&[u8]; 3] = [b"SW.QUERY", b"edits", BY_PAGE.as_bytes()];
    assert_eq!(client.call(&ask), queued);
    assert_eq!(ingest(&mut client, &ROWS[1..]), queued);
    assert_eq!(client.call(&ask), queued);
    assert_eq!(ingest(&mut client, &["{"]), queued);
    let Value::Array(replies) = client.line("exec") else { panic!("no array") };
    let added = |answer: &Value| {
        let Value::Array(rows) = field(answer, "rows") else { panic!("{answer:?}") };
        rows.into_iter()
            .map(|row| match row {
                Value::Array(mut row) => row.pop().expect("a sum"),
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(added(&replies[1]), [Value::Integer(3)]);
    assert_eq!(added(&replies[3]), [Value::Integer(5), Value::Integer(7)]);
    assert_eq!(count(&replies[4], "unparseable"), 1);
    // A command that is refused in between leaves the others.
    client.line("multi");
    ingest(&mut client, &ROWS[..1]);
    client.line("sw.query edits {}");
    let Value::Array(replies) = client.line("exec") else { panic!("no array") };
    assert_eq!(count(&replies[0], "processed"), 1);
    assert!(matches!(&replies[1], Value::Error(_)), "{replies:?}");
}

#[test]
fn rights_are_those_on_the_name_of_the_table() {
    let service = service();
    let mut admin = Client::new(&service);
    create(&mut admin);
    ingest(&mut admin, &ROWS);
    for rule in [
        "acl setuser reader on >pw %R~edits +@table",
        "acl setuser writer on >pw %W~edits +@table",
        "acl setuser other on >pw ~others +@table",
        "acl setuser none on >pw ~edits +ping",
        "acl setuser looker on >pw ~edits +@read",
    ] {
        assert_eq!(admin.line(rule), ok(), "{rule}");
    }
    for (user, asked, brought) in [
        ("reader", None, Some(NO_KEY)),
        ("writer", Some(NO_KEY), None),
        ("other", Some(NO_KEY), Some(NO_KEY)),
        (
            "none",
            Some("NOPERM this user has no permissions to run the 'sw.query' command"),
            Some("NOPERM this user has no permissions to run the 'sw.ingest' command"),
        ),
        (
            "looker",
            None,
            Some("NOPERM this user has no permissions to run the 'sw.ingest' command"),
        ),
    ] {
        let mut client = Client::new(&service);
        assert_eq!(client.line(&format!("auth {user} pw")), ok());
        for (reply, refused) in [
            (client.call(&[b"SW.QUERY", b"edits", BY_PAGE.as_bytes()]), asked),
            (ingest(&mut client, &ROWS[..1]), brought),
        ] {
            match (reply, refused) {
                (Value::Error(text), Some(refused)) => assert_eq!(text, refused, "{user}"),
                (Value::Error(text), None) => panic!("{user}: {text}"),
                (_, refused) => assert_eq!(refused, None, "{user}"),
            }
        }
    }
}

#[test]
fn commands_say_what_they_are() {
    let mut client = Client::new(&service());
    let Value::Array(docs) = client.line("command docs sw.ingest sw.query") else { panic!("no") };
    assert_eq!(docs.len(), 4);
    let keys = client.call(&[b"command", b"getkeys", b"sw.query", b"edits", BY_PAGE.as_bytes()]);
    assert_eq!(keys, Value::Array(vec!["edits".into()]));
    let Value::Array(table) = client.line("acl cat table") else { panic!("no list") };
    assert!(table.contains(&"sw.ingest".into()) && table.contains(&"sw.query".into()));
}

#[test]
fn limits_of_the_schema_and_of_the_server_are_kept() {
    let mut client = Client::new(&service());
    let limited = SCHEMA.replacen('{', r#"{"limits": {"maxRowsInMemory": 1},"#, 1);
    let args: [&[u8]; 6] =
        [b"SW.CREATE", b"edits", b"ENGINE", b"ROLLUP", b"SCHEMA", limited.as_bytes()];
    assert_eq!(client.call(&args), ok());
    assert!(refusal(ingest(&mut client, &ROWS)).starts_with("OOM "));
    assert_eq!(count(&client.line("sw.stats edits"), "processed"), 0, "all or none");
    assert_eq!(count(&ingest(&mut client, &ROWS[..2]), "processed"), 2);
    // Roll-ups count as used memory.
    client.line("config set maxmemory 1");
    let refused = refusal(ingest(&mut client, &ROWS[..1]));
    assert_eq!(refused, "OOM command not allowed when used memory > 'maxmemory'.");
    assert!(!matches!(by_page(&mut client), Value::Error(_)), "what is there is shown");
}

/// The job of a request.
fn job(session: &mut Session, args: &[&[u8]]) -> sapwood_server::jobs::Job {
    let mut out = Vec::new();
    match session.run(&request(args), &mut out).1 {
        Next::Job(job) => job,
        other => panic!("no job: {other:?} {}", String::from_utf8_lossy(&out)),
    }
}

#[test]
fn queries_and_many_rows_are_jobs_that_end_when_they_are_told() {
    let service = service();
    let mut client = Client::new(&service);
    create(&mut client);
    ingest(&mut client, &ROWS);
    let mut session = Session::new(Arc::clone(&service));
    let query = job(&mut session, &[b"SW.QUERY", b"edits", BY_PAGE.as_bytes()]);
    let Value::Array(jobs) = client.line("sw.jobs") else { panic!("no list") };
    assert_eq!(field(&jobs[0], "command"), "sw.query".into());
    assert!(refusal(client.line("sw.drop edits")).contains("in use by a job"));
    query.cancel().cancel();
    let mut out = Vec::new();
    query.run(&mut out);
    assert_eq!(replies(&out), [Value::Error("ERR cancelled".to_owned())]);

    let many = vec![ROWS[0]; 2_000].join("\n");
    let mut ingestion = |cancelled: bool| {
        let job = job(&mut session, &[b"SW.INGEST", b"edits", many.as_bytes()]);
        if cancelled {
            job.cancel().cancel();
        }
        let mut out = Vec::new();
        job.run(&mut out);
        replies(&out).remove(0)
    };
    assert_eq!(ingestion(true), Value::Error("ERR cancelled".to_owned()));
    assert_eq!(count(&client.line("sw.stats edits"), "processed"), 3);
    assert_eq!(count(&ingestion(false), "processed"), 2_000);
    assert_eq!(client.line("sw.drop edits"), ok(), "no job is left");
}

#[test]
fn sums_are_exact_while_clients_bring_rows() {
    const CLIENTS: usize = 3;
    const COMMANDS: usize = 60;
    let service = service();
    create(&mut Client::new(&service));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..CLIENTS).map(|writer| {
            let service = &service;
            scope.spawn(move || {
                let mut client = Client::new(service);
                for number in 0..COMMANDS {
                    // The rows of a command add up to 0: a part of them would show. Some are a job.
                    let pairs = if number % 10 == 0 { 400 } else { 2 };
                    let rows: Vec<String> = (0..pairs).flat_map(|row| {
                        let page = (row * 7 + number) % 50;
                        [(writer, 5), (page, -5)].map(|(page, added)| format!(
                            r#"{{"time": "2013-01-01T{:02}:00Z", "page": "{page}", "added": {added}}}"#,
                            number % 24,
                        ))
                    }).collect();
                    let told = ingest(&mut client, &[&rows.join("\n")]);
                    assert_eq!(count(&told, "processed"), rows.len() as i64);
                }
            })
        }).collect();
        let reader = scope.spawn(|| {
            let mut client = Client::new(&service);
            while !done.load(Ordering::Relaxed) {
                let Value::Array(rows) = by_page(&mut client) else { panic!("no rows") };
                let sum: i64 = rows
                    .iter()
                    .map(|row| match row {
                        Value::Array(row) => match row.last() {
                            Some(Value::Integer(sum)) => *sum,
                            other => panic!("{other:?}"),
                        },
                        other => panic!("{other:?}"),
                    })
                    .sum();
                assert_eq!(sum, 0);
            }
        });
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        done.store(true, Ordering::Relaxed);
        reader.join().expect("no panic");
    });
    let mut client = Client::new(&service);
    let rows = CLIENTS * (COMMANDS / 10 * 800 + COMMANDS * 9 / 10 * 4);
    assert_eq!(count(&client.line("sw.stats edits"), "processed"), rows as i64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 32 } else { 256 }))]

    /// A map answers the same.
    #[test]
    fn sums_by_page_are_those_of_a_map(
        commands in prop::collection::vec(
            prop::collection::vec((0_u8..5, any::<i32>(), 0_u8..4), 1..20), 1..8,
        )
    ) {
        let mut client = Client::new(&service());
        create(&mut client);
        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for rows in &commands {
            let lines: Vec<String> = rows.iter().map(|(page, added, kind)| match kind {
                0 => "{no row".to_owned(),
                1 => format!(r#"{{"page": "{page}", "added": {added}}}"#),
                _ => format!(r#"{{"time": "2013-01-01", "page": "{page}", "added": {added}}}"#),
            }).collect();
            let mut expected = 0;
            for (page, added, _) in rows.iter().filter(|row| row.2 > 1) {
                *sums.entry(page.to_string()).or_default() += i64::from(*added);
                expected += 1;
            }
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let told = ingest(&mut client, &lines);
            prop_assert_eq!(count(&told, "processed"), expected);
            prop_assert_eq!(count(&told, "unparseable"), rows.len() as i64 - expected);
        }
        let row = |(page, added): (&String, &i64)| Value::Array(vec![
            1_356_998_400_000.into(), page.as_str().into(), (*added).into(),
        ]);
        prop_assert_eq!(by_page(&mut client), Value::Array(sums.iter().map(row).collect()));
    }
}
