//! JSON and MessagePack objects, rows of text and keys of parts, from bytes to answers.

use sapwood_aggregate::{Aggregate, Answer, Group, Mismatches, Missing, Query, QueryError, Value};

fn ask(query: &Query, objects: &[(&[u8], &[u8])]) -> Result<Answer, QueryError> {
    let query = query.compile()?;
    let mut fold = query.fold();
    for (key, value) in objects {
        fold.push(key, value)?;
    }
    query.finish(fold.into_partial())
}

fn query(layout: &str, figures: &str) -> Query {
    Query::new(layout.parse().unwrap_or_else(|error| panic!("{error}")))
        .aggregates(Aggregate::list(figures).unwrap_or_else(|error| panic!("{error}")))
}

const FLIGHTS: [(&[u8], &[u8]); 5] = [
    (b"1", br#"{"carrier": "UA", "delay": 7, "gate": {"row": 1}}"#),
    (b"2", br#"{"carrier": "AA", "delay": null}"#),
    (b"3", br#"{"carrier": "UA", "delay": 0.5, "gate": {"row": 1.0}}"#),
    (b"4", br#"{"carrier": "UA", "delay": "late"}"#),
    (b"5", br#"{"carrier": "UA", "#),
];

#[test]
fn objects_are_read_by_path() {
    let query = query(
        "carrier:json($.carrier), delay:json($.delay), row:json($.gate.row)",
        "count, count(delay), sum(delay), max(delay), distinct(row)",
    )
    .group_by(Group::list("carrier").expect("groups"));
    let answer = ask(&query, &FLIGHTS[..3]).expect("an answer");
    let value = |row, column| answer.value(row, column).cloned();
    assert_eq!(value(0, "carrier"), Ok("AA".into()));
    assert_eq!(value(0, "count"), Ok(1.into()));
    assert_eq!(value(0, "sum(delay)"), Err(QueryError::Nothing { column: "sum(delay)".into() }));
    assert_eq!(value(1, "sum(delay)"), Value::float(7.5));
    assert_eq!(value(1, "max(delay)"), Ok(7.into()));
    assert_eq!(value(1, "distinct(row)"), Ok(1.into()), "1 and 1.0 are one number");
    assert_eq!(answer.tally.missing, 1);

    // A text where numbers are added up, and what is no JSON.
    let error = ask(&query, &FLIGHTS).expect_err("mismatches").to_string();
    assert!(error.starts_with("2 of 5 selected objects"), "{error}");
    assert!(error.contains("key 4: field `delay` is a text, and a number is needed"), "{error}");
    let skipping = query.clone().mismatches(Mismatches::Skip);
    let answer = ask(&skipping, &FLIGHTS).expect("an answer");
    assert_eq!((answer.tally.mismatched, answer.tally.matched), (2, 3));
    assert_eq!(answer.value(1, "count"), Ok(&2.into()));

    let strict = query.missing(Missing::Refuse);
    let error = ask(&strict, &FLIGHTS[..3]).expect_err("something is missing").to_string();
    assert!(error.contains("key 2: field `delay` is missing"), "{error}");
}

#[test]
fn message_pack_is_read_by_path() {
    let object = |delay: u8| [&b"\x81\xA5delay\x92\xC0"[..], &[delay]].concat();
    let objects = [object(3), object(4)];
    let objects: Vec<(&[u8], &[u8])> =
        objects.iter().map(|object| (&b"k"[..], &object[..])).collect();
    let answer = ask(&query("d:msgpack($.delay[1])", "sum(d), count(d)"), &objects);
    assert_eq!(answer.expect("an answer").value(0, "sum(d)"), Ok(&7.into()));
}

#[test]
fn counters_are_read_as_redis_writes_them() {
    let objects: [(&[u8], &[u8]); 3] = [(b"a", b"10"), (b"b", b"-3"), (b"c", b"2.5")];
    let answer = ask(&query("n:decimal", "sum(n), min(n)"), &objects).expect("an answer");
    assert_eq!(answer.value(0, "sum(n)").cloned(), Value::float(9.5));
    let error = ask(&query("n:decimal", "sum(n)"), &[(b"a", b"ten")]).expect_err("no number");
    assert!(error.to_string().contains("is not a decimal number"), "{error}");
}

#[test]
fn groups_are_parts_of_keys() {
    let key = |carrier: &str, day: u16| [carrier.as_bytes(), &[0, 1], &day.to_be_bytes()].concat();
    let keys = [key("UA", 1), key("AA", 1), key("UA", 2), key("UA", 9)];
    let objects: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &b""[..])).collect();
    let query = query("key(carrier:str, day:u16)", "count")
        .group_by(Group::list("carrier, bucket(day, 7, 1) as week").expect("groups"));
    let answer = ask(&query, &objects).expect("an answer");
    let rows: Vec<_> = (0..answer.rows.len())
        .map(|row| {
            ["carrier", "week", "count"].map(|c| answer.value(row, c).expect("a value").to_string())
        })
        .collect();
    assert_eq!(rows, [["AA", "1", "1"], ["UA", "1", "2"], ["UA", "8", "1"]]);

    let objects: [(&[u8], &[u8]); 3] = [(b"user/7/a", b""), (b"user/8/b", b""), (b"user/7/c", b"")];
    let split = Query::new("".parse().unwrap_or_default())
        .aggregates(vec![Aggregate::count()])
        .group_by(Group::list("id:key.split('/',1).decimal").expect("groups"));
    let answer = ask(&split, &objects).expect("an answer");
    assert_eq!(answer.value(0, "id"), Ok(&7.into()));
    assert_eq!(answer.value(0, "count"), Ok(&2.into()));
}
