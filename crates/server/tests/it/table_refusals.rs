//! Arguments that no client should send.

use crate::client::{Client, Value, ok, service};

/// Refused with a text that has these words, and the server goes on.
const REFUSED: &[(&str, &str)] = &[
    ("sw.create t engine hash", "exists already"),
    ("sw.create u engine", "wrong number of arguments for 'sw.create'"),
    ("sw.create u layout n:u8", "syntax error"),
    ("sw.create u engine btree", "'btree' is none of: hash, ordered"),
    ("sw.create u engine hash chunk 9", "CHUNK is no option of a hash table"),
    ("sw.create u engine ordered record fixed8", "RECORD is no option of an ordered table"),
    ("sw.create u engine ordered entries 9", "ENTRIES is no option"),
    ("sw.create u engine hash page 3", "page"),
    ("sw.create u engine hash page 9223372036854775807", "page"),
    ("sw.create u engine hash entries 9223372036854775807", ""),
    ("sw.create u engine ordered chunk 0", "chunk"),
    ("sw.create u engine hash budget -1", "not an integer"),
    ("sw.create u engine hash budget 1", ""),
    ("sw.create u engine hash layout n:u99", "layout cannot be read"),
    ("sw.create u engine hash colour red", "'colour' is no option here"),
    ("sw.create ../u engine hash", "table name"),
    ("sw.list pattern", "syntax error"),
    ("sw.put t k v later", "syntax error"),
    ("sw.put t k v nx xx", "syntax error"),
    ("sw.mput t k v k2", "wrong number of arguments for 'sw.mput'"),
    ("sw.madd t k 1 k2", "wrong number of arguments for 'sw.madd'"),
    ("sw.madd t k 1 k2 x", "not an integer"),
    ("sw.add t k 1.5", "not an integer"),
    ("sw.add t text 1", "8 bytes"),
    ("sw.counter t text", "8 bytes"),
    ("sw.update t k n", "wrong number of arguments for 'sw.update'"),
    ("sw.update t k n add 1 n", "wrong number of arguments for 'sw.update'"),
    ("sw.update t k x add 1", "no field `x`"),
    ("sw.update t k n times 2", "'times' is none of: set, add, min, max"),
    ("sw.update t k n set one", "not a valid float"),
    ("sw.update t k n set nan", "not a valid float"),
    ("sw.update t k n set 0.5", "holds whole numbers"),
    ("sw.update t text n set 1", "needs 8 bytes"),
    ("sw.update bare k n set 1", "no layout"),
    ("sw.range t a b", "min or max not valid string range item"),
    ("sw.range t - + limit 1", "syntax error"),
    ("sw.range t - + limit a b", "not an integer"),
    ("sw.range t - + where x", "'where' is no option here"),
    ("sw.range bare - +", "has no order"),
    ("sw.scan t x", "invalid cursor"),
    ("sw.scan t 5", "invalid cursor"),
    ("sw.scan t -1", "invalid cursor"),
    ("sw.scan bare (key", "invalid cursor"),
    ("sw.scan t 0 count 0", "syntax error"),
    ("sw.scan t 0 count -1", "not an integer"),
    ("sw.aggregate t", "asks for nothing"),
    ("sw.aggregate t select", "syntax error"),
    ("sw.aggregate t select sum(", "cannot be read at character"),
    ("sw.aggregate t select sum(x)", "no field `x`"),
    ("sw.aggregate bare select sum(x)", "no field `x`"),
    ("sw.aggregate t select count keys 3 a b", "can't be greater than number of args"),
    ("sw.aggregate t select count keys -1 a", "not an integer"),
    ("sw.aggregate t select count range a b", "min or max not valid"),
    ("sw.aggregate t select count threads 0", "THREADS is a number from 1 to 256"),
    ("sw.aggregate t select count threads 100000", "THREADS is a number from 1 to 256"),
    ("sw.aggregate t select count using magic", "'magic' is none of: planner, lookup"),
    ("sw.aggregate t select count using log", "cannot answer the query here"),
    ("sw.aggregate t select count moment", "one moment"),
    ("sw.aggregate t select count states 1 x", "'states' is no option here"),
    ("sw.aggregate t select count mismatches ignore", "'ignore' is none of: refuse, skip"),
    ("sw.aggregate t select sum(n)", "do not have what the query reads"),
    ("sw.aggregate t by key select count groups 1", "more than 1 groups"),
    ("sw.explain t select count partial", "'partial' is no option here"),
    ("sw.merge t select count partial", "syntax error"),
    ("sw.merge t states 1 x select count", "corrupt"),
    ("sw.merge t states 1 x", "asks for nothing"),
    ("sw.disaggregate t n x", "not an integer"),
    ("sw.disaggregate t x 5", "x"),
    ("sw.disaggregate bare n 5", "has no layout"),
    ("sw.disaggregate t n 5 weights 2 a 1 b", "can't be greater than number of args"),
    ("sw.disaggregate t n 5 weights 1 a -1", "not an integer"),
    ("sw.disaggregate t n 5 prefix zz", "nothing is selected"),
    ("sw.disaggregate t n 5 rest xx", "corrupt"),
    ("sw.disaggregate t n 5 by", "syntax error"),
    ("sw.cancel x", "not an integer"),
];

#[test]
fn hostile_arguments_are_refused_and_change_nothing() {
    let mut client = Client::new(&service());
    assert_eq!(client.line("sw.create t engine ordered layout n:i64le"), ok());
    assert_eq!(client.line("sw.create bare engine hash"), ok());
    client.line("sw.add t k 5");
    client.line("sw.put t text abc");
    let mut wrong = Vec::new();
    for (line, words) in REFUSED {
        match client.line(line) {
            Value::Error(text) if text.contains(words) => {}
            other => wrong.push(format!("{line}: {other:?}")),
        }
        assert_eq!(client.line("sw.counter t k"), Value::Array(vec![5.into()]), "{line}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let names = Value::Array(vec!["bare".into(), "t".into()]);
    assert_eq!(client.line("sw.list"), names);
    assert_eq!(client.line("sw.check t"), ok());
}

#[test]
fn bytes_that_are_no_text_and_keys_that_no_table_has_are_refused() {
    let mut client = Client::new(&service());
    for engine in ["hash", "ordered"] {
        let name = engine.as_bytes();
        assert_eq!(client.line(&format!("sw.create {engine} engine {engine} layout n:u8")), ok());
        let long = vec![b'k'; 70_000];
        let bad: [&[u8]; 2] = [b"", &long];
        for key in bad {
            for args in [
                &[b"sw.put", name, key, b"v"][..],
                &[b"sw.get", name, key],
                &[b"sw.mput", name, b"good", b"1", key, b"2"],
                &[b"sw.add", name, key, b"1"],
                &[b"sw.cas", name, key, b"v", b"v"],
                &[b"sw.update", name, key, b"n", b"set", b"1"],
            ] {
                assert!(matches!(client.call(args), Value::Error(_)), "{engine} {args:?}");
            }
        }
        for args in [
            &[b"sw.aggregate", name, b"select", b"\xFF"][..],
            &[b"sw.aggregate", name, b"\xFF", b"x"],
            &[b"sw.update", name, b"k", b"\xFF", b"set", b"1"],
            &[b"sw.update", name, b"k", b"n", b"\xFF", b"1"],
            &[b"sw.update", name, b"k", b"n", b"set", b"\xFF"],
            &[b"sw.disaggregate", name, b"\xFF", b"1"],
            &[b"sw.scan", name, b"\xFF"],
            &[b"sw.get", b"\xFF\xFF", b"k"],
            &[b"sw.create", b"\xFF", b"engine", b"hash"],
            &[b"sw.drop", b"\xFF"],
        ] {
            assert!(matches!(client.call(args), Value::Error(_)), "{engine} {args:?}");
        }
        // Keys that no table has are none of a selection.
        let count =
            client.call(&[b"sw.aggregate", name, b"select", b"count", b"keys", b"2", b"", &long]);
        assert!(!matches!(count, Value::Error(_)), "{count:?}");
    }
}
