//! Bytes of a client, given to a session in pieces: whatever they are, each piece is used up or the
//! session ends, replies are well formed, and pieces of another length change none of them.
//!
//! The fuzz target `session` takes its check from here.

use sapwood_server::Session;
use sapwood_server::session::Next;

use crate::client::service;

/// Bytes of replies of one step at most: those of a transaction come all at once.
const REPLIES_BYTES_MAX: usize = 64 << 20;

/// Words of commands whose replies tell how bytes came, how long it took, or a random number; and
/// of the one that makes long values of few bytes.
const UNLIKE: [&[u8]; 9] = [
    b"client",
    b"debug",
    b"genpass",
    b"info",
    b"latency",
    b"memory",
    b"randomkey",
    b"setrange",
    b"slowlog",
];

/// All replies to the bytes, which come `step` at a time.
fn replies(bytes: &[u8], step: usize) -> Vec<u8> {
    let service = service();
    let mut session = Session::new(service.clone());
    let (mut begin, mut come, mut out) = (0, 0, Vec::new());
    loop {
        let before = out.len();
        let (used, next) = session.run(&bytes[begin..come], &mut out);
        assert!(used <= come - begin, "no more is used than has come");
        assert!(out.len() - before < REPLIES_BYTES_MAX, "replies are bounded");
        begin += used;
        match next {
            Next::More if come == bytes.len() => break,
            Next::More => come = (come + step).min(bytes.len()),
            // The clock stands still.
            Next::Full if session.pause_millis().is_some() => break,
            Next::Full => assert!(used > 0 && out.len() > before, "the session goes on"),
            Next::Job(job) => job.run(&mut out),
            Next::Close => break,
        }
    }
    session.messages(&mut out);
    service.check_memory();
    out
}

/// The bytes behind a reply; `None` if it is none.
fn behind(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, mut rest) = (&bytes[1..end], &bytes[end + 2..]);
    let len = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
    let parts = match bytes[0] {
        b'+' | b'-' | b':' | b',' | b'(' | b'_' | b'#' => 0,
        b'$' | b'=' => match len()? {
            -1 => 0,
            len => {
                let (_, behind) = rest.split_at_checked(usize::try_from(len).ok()?)?;
                return behind.strip_prefix(b"\r\n");
            }
        },
        b'*' | b'~' | b'>' => len().filter(|len| *len >= -1)?,
        b'%' => 2 * len().filter(|len| *len >= 0)?,
        _ => return None,
    };
    for _ in 0..parts {
        rest = behind(rest)?;
    }
    Some(rest)
}

/// Panics if something is wrong with the replies to these bytes.
pub(crate) fn check(bytes: &[u8], step: usize) {
    let lower = bytes.to_ascii_lowercase();
    let has = |word: &[u8]| lower.windows(word.len()).any(|window| window == word);
    // A value of 512 MiB is nothing for a fuzzer.
    if has(b"setrange") && bytes.iter().filter(|byte| byte.is_ascii_digit()).count() > 6 {
        return;
    }
    let whole = replies(bytes, bytes.len().max(1));
    let mut rest = &whole[..];
    while !rest.is_empty() {
        rest = behind(rest).unwrap_or_else(|| panic!("{:?}", String::from_utf8_lossy(rest)));
    }
    let pieces = replies(bytes, step);
    if !UNLIKE.iter().any(|word| has(word)) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&pieces), text(&whole));
    }
}
