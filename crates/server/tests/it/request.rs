//! Requests, whole, cut anywhere, and wrong.

use proptest::collection::vec;
use proptest::prelude::*;
use sapwood_server::protocol::request::{Limits, Parser, RequestError, integer};

/// All requests of the bytes, which come `step` at a time.
fn all(bytes: &[u8], step: usize) -> Result<Vec<Vec<Vec<u8>>>, RequestError> {
    let mut parser = Parser::new(Limits::REDIS);
    let (mut requests, mut begin, mut come) = (Vec::new(), 0, 0);
    loop {
        match parser.parse(&bytes[begin..come])? {
            Some(end) => {
                let buffer = &bytes[begin..come];
                assert!(end > 0 && end <= buffer.len(), "{end} of {}", buffer.len());
                requests.push(parser.arguments(buffer).map(<[u8]>::to_vec).collect());
                begin += end;
            }
            None if come == bytes.len() => return Ok(requests),
            None => {
                assert!(parser.wanted() > come - begin, "more is wanted than there is");
                come = (come + step).min(bytes.len());
            }
        }
    }
}

fn array(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend(format!("${}\r\n", argument.len()).bytes());
        bytes.extend(argument);
        bytes.extend(b"\r\n");
    }
    bytes
}

proptest! {
    /// However the bytes are cut, the same requests are found.
    #[test]
    fn requests_are_found_in_pieces(
        requests in vec(vec(vec(any::<u8>(), 0..40), 1..6), 1..8),
        step in 1_usize..50,
    ) {
        let bytes: Vec<u8> = requests.iter().flat_map(|request| array(request)).collect();
        prop_assert_eq!(all(&bytes, step), Ok(requests));
    }

    /// No bytes are a panic, and pieces change neither requests nor refusals.
    #[test]
    fn any_bytes_are_requests_or_refused(
        bytes in vec(prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'-'),
            Just(b'"'), Just(b'\''), Just(b'\\'), Just(b'x'), Just(b' '), b'0'..=b'9', any::<u8>()], 0..60),
        step in 1_usize..9,
    ) {
        prop_assert_eq!(all(&bytes, step), all(&bytes, usize::MAX >> 1));
    }

    /// Quoting is undone.
    #[test]
    fn quoted_words_come_back(words in vec(vec(any::<u8>(), 0..12), 1..5)) {
        let quoted = words.iter().map(|word| {
            let inside: String = word.iter().map(|byte| format!("\\x{byte:02X}")).collect();
            format!("\"{inside}\"")
        });
        let line = quoted.collect::<Vec<_>>().join(" ") + "\r\n";
        prop_assert_eq!(all(line.as_bytes(), 7), Ok(vec![words]));
    }

    #[test]
    fn integers_are_those_that_print_so(number in any::<i64>()) {
        prop_assert_eq!(integer(number.to_string().as_bytes()), Some(number));
    }
}

#[test]
fn words_are_cut_as_by_a_shell() {
    let cut = |line: &str| all(line.as_bytes(), 100).map(|requests| requests.concat());
    let words = |words: &[&str]| Ok(words.iter().map(|word| word.as_bytes().to_vec()).collect());
    assert_eq!(cut("SET  k\tv \r\n"), words(&["SET", "k", "v"]));
    assert_eq!(cut("SET k \"a b\\n\\\"\\q\"\n"), words(&["SET", "k", "a b\n\"q"]));
    assert_eq!(cut("SET k 'a \\' \\n'\n"), words(&["SET", "k", "a ' \\n"]));
    assert_eq!(cut("SET k \"\\xzz\"\n"), words(&["SET", "k", "xzz"]));
    assert_eq!(cut("a\"b\" ''\n"), words(&["ab", ""]));
    assert_eq!(cut("\r\n \n\n"), words(&[]));
    for line in ["SET k \"a\n", "SET k 'a\n", "SET k \"a\"b\n", "SET k 'a'b\n", "\"\\\n"] {
        assert_eq!(cut(line), Err(RequestError::Quotes), "{line}");
    }
}

#[test]
fn what_is_no_request_is_refused_as_redis_does() {
    let refused = |bytes: &[u8]| all(bytes, 1 << 20).expect_err("no request").to_string();
    assert_eq!(refused(b"*x\r\n"), "Protocol error: invalid multibulk length");
    assert_eq!(refused(b"*2147483648\r\n"), "Protocol error: invalid multibulk length");
    assert_eq!(refused(b"*99999999999999999999\r\n"), "Protocol error: invalid multibulk length");
    assert_eq!(refused(b"*1\r\nPING"), "Protocol error: expected '$', got 'P'");
    assert_eq!(refused(b"*1\r\n$-1\r\n"), "Protocol error: invalid bulk length");
    assert_eq!(refused(b"*1\r\n$+1\r\n"), "Protocol error: invalid bulk length");
    assert_eq!(refused(b"*1\r\n$536870913\r\n"), "Protocol error: invalid bulk length");
    assert_eq!(refused(&[b'x'; 70_000]), "Protocol error: too big inline request");
    let long = |begin: &[u8]| [begin, &[b'1'; 70_000]].concat();
    assert_eq!(refused(&long(b"*")), "Protocol error: too big mbulk count string");
    assert_eq!(refused(&long(b"*1\r\n$")), "Protocol error: too big bulk count string");
}

#[test]
fn empty_requests_have_no_arguments() {
    let none: Vec<Vec<u8>> = vec![];
    assert_eq!(
        all(b"*0\r\n*-1\r\n*1\r\n$0\r\n\r\n", 3),
        Ok(vec![none.clone(), none, vec![vec![]]])
    );
}

#[test]
fn a_client_without_a_password_sends_little() {
    let parse = |bytes: &[u8]| Parser::new(Limits::UNAUTHENTICATED).parse(bytes);
    assert_eq!(parse(b"*11\r\n"), Err(RequestError::UnauthenticatedCount));
    assert_eq!(parse(b"*1\r\n$16385\r\n"), Err(RequestError::UnauthenticatedLength));
    assert_eq!(parse(b"*10\r\n$16384\r\n"), Ok(None));
}

#[test]
fn a_length_of_a_gibibyte_reserves_nothing() {
    let mut parser = Parser::new(Limits::REDIS);
    assert_eq!(parser.parse(b"*2147483647\r\n$1\r\n"), Ok(None));
    let mut parser = Parser::new(Limits::REDIS);
    let buffer = b"*2\r\n$3\r\nSET\r\n$536870912\r\nabc";
    assert_eq!(parser.parse(buffer), Ok(None));
    assert_eq!(parser.wanted(), buffer.len() - 3 + (512 << 20) + 2);
}

#[test]
fn integers_have_one_form() {
    for text in ["", "-", "+1", "01", "-0", "-01", " 1", "1 ", "1x", "9223372036854775808"] {
        assert_eq!(integer(text.as_bytes()), None, "{text}");
    }
    assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
    assert_eq!(integer(b"-9223372036854775809"), None);
}
