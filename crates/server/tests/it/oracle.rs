//! Streams of commands against a map.

use proptest::prelude::*;

use crate::client::{Client, Value, ok, request, service};
use crate::command_stream::check;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 96 } else { 1024 }))]

    /// Commands of two clients one by one, and in pipelines of any length: the replies of a map.
    #[test]
    fn commands_answer_as_a_map_does(bytes in prop::collection::vec(any::<u8>(), 1..1000)) {
        check(&bytes);
    }
}

/// Found by the above: the write begins a batch when the replies before it are too many to go on.
#[test]
fn a_write_behind_a_long_read_has_its_reply() {
    let mut client = Client::new(&service());
    let long = vec![b'x'; 3 << 20];
    assert_eq!(client.call(&[b"SET", b"long", &long]), ok());
    let requests: [&[&[u8]]; 4] =
        [&[b"GET", b"long"], &[b"SET", b"k", b"v"], &[b"GET", b"k"], &[b"ECHO", b"end"]];
    let bytes: Vec<u8> = requests.iter().flat_map(|args| request(args)).collect();
    let expected = [Value::Bulk(long), ok(), "v".into(), "end".into()];
    assert!(client.send(&bytes) == expected, "each request has its reply");
}

/// Found by the above: a time that is set again is a change.
#[test]
fn the_same_end_set_again_breaks_a_watch() {
    let service = service();
    let (mut one, mut two) = (Client::new(&service), Client::new(&service));
    one.line("set a 1 ex 5");
    for change in ["getex a ex 5", "expire a 5", "getex a ex 5"] {
        one.line("watch a");
        two.line(change);
        one.line("multi");
        assert_eq!(one.line("exec"), Value::Null, "after {change}");
    }
}

/// Found by the above: Redis reads no number of 5 KiB or more.
#[test]
fn a_number_of_many_digits_is_none() {
    let mut client = Client::new(&service());
    let no = Value::Error("ERR value is not a valid float".to_owned());
    for (len, expected) in [(5_119, "1".into()), (5_120, no)] {
        client.call(&[b"set", b"a", &vec![b'0'; len]]);
        assert_eq!(client.line("incrbyfloat a 1"), expected, "{len} digits");
    }
}
