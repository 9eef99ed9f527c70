//! Walks over the keys of a database.

use std::collections::BTreeSet;

use crate::client::{Client, Value, service};

fn keys_of(value: Value) -> Vec<Vec<u8>> {
    let Value::Array(values) = value else { panic!("an array, not {value:?}") };
    let key = |value| match value {
        Value::Bulk(key) => key,
        other => panic!("a key, not {other:?}"),
    };
    values.into_iter().map(key).collect()
}

/// The keys that a walk in steps finds.
fn scan(client: &mut Client, options: &str) -> Vec<Vec<u8>> {
    let mut cursor = "0".to_owned();
    let mut found = Vec::new();
    loop {
        let Value::Array(mut answer) = client.line(&format!("scan {cursor} {options}")) else {
            panic!("an array")
        };
        found.extend(keys_of(answer.remove(1)));
        let Value::Bulk(next) = answer.remove(0) else { panic!("a cursor") };
        cursor = String::from_utf8(next).expect("digits");
        if cursor == "0" {
            return found;
        }
    }
}

#[test]
fn walks_find_every_key_and_no_other() {
    let service = service();
    let mut client = Client::new(&service);
    let long = vec![b'x'; 30_000];
    let mut all = BTreeSet::from([long.clone(), Vec::new()]);
    client.call(&[b"set", &long, b"1"]);
    client.call(&[b"set", b"", b"1"]);
    for number in 0..2_000 {
        let key = format!("key:{number}");
        client.line(&format!("set {key} {number}"));
        all.insert(key.into_bytes());
    }
    client.line("set ended 1 px 1");
    service.set_clock(crate::client::START + 1);
    assert_eq!(BTreeSet::from_iter(keys_of(client.line("keys *"))), all);
    for options in ["", "count 1", "count 100000", "type string"] {
        let found = scan(&mut client, options);
        assert_eq!(found.len(), all.len(), "each key once, {options}");
        assert_eq!(BTreeSet::from_iter(found), all);
    }
    assert_eq!(keys_of(client.line("keys key:19?7")).len(), 10);
    assert_eq!(scan(&mut client, "match key:19?7").len(), 10);
    assert!(scan(&mut client, "type list").is_empty());
    assert_eq!(keys_of(client.line("keys x*")), [long]);
    for _ in 0..100 {
        let Value::Bulk(key) = client.line("randomkey") else { panic!("there are keys") };
        assert!(all.contains(&key));
    }
    assert_eq!(client.line("dbsize"), Value::Integer(all.len() as i64 + 1));
    client.line("flushall");
    assert_eq!(client.line("dbsize"), Value::Integer(0));
    assert_eq!(client.line("randomkey"), Value::Null);
    assert!(scan(&mut client, "").is_empty());
}
