//! Requests of clients: however their bytes are cut, the same ones are found or refused; and the
//! first of them as a pattern ends, whatever the second is.
#![no_main]

use sapwood_server::protocol::glob;
use sapwood_server::protocol::request::{Limits, Parser, RequestError};

type Requests = Vec<Vec<Vec<u8>>>;

/// All requests of the bytes, which come `step` at a time; with the refusal that ended them.
fn requests(bytes: &[u8], step: usize) -> (Requests, Option<RequestError>) {
    let mut parser = Parser::new(Limits::REDIS);
    let (mut found, mut begin, mut come) = (Vec::new(), 0, 0);
    loop {
        let buffer = &bytes[begin..come];
        match parser.parse(buffer) {
            Ok(Some(end)) => {
                assert!((1..=buffer.len()).contains(&end));
                found.push(parser.arguments(buffer).map(<[u8]>::to_vec).collect());
                begin += end;
            }
            Ok(None) if come == bytes.len() => return (found, None),
            Ok(None) => {
                assert!(parser.wanted() > buffer.len());
                come = (come + step).min(bytes.len());
            }
            Err(refused) => return (found, Some(refused)),
        }
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((step, bytes)) = bytes.split_first() else { return };
    let whole = requests(bytes, bytes.len().max(1));
    assert_eq!(requests(bytes, usize::from(*step) % 16 + 1), whole);
    if let Some([pattern, text, ..]) = whole.0.first().map(Vec::as_slice) {
        glob::matches(pattern, text);
    }
});
