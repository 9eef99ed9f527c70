//! Commands with random arguments, most of them wrong in one way or in several: the replies of
//! `redis-server`, where it is installed, beside ours, byte for byte.

use fastrand::Rng;

use crate::beside_redis::{Clients, Ours, Redis};

/// A command, and words that stand among its arguments.
const COMMANDS: &[(&str, &[&str])] = &[
    ("GET", &[]),
    ("SET", &["v", "NX", "XX", "GET", "KEEPTTL", "EX", "PX", "EXAT", "PXAT", "PERSIST"]),
    ("GETSET", &[]),
    ("GETDEL", &[]),
    ("GETEX", &["EX", "PX", "EXAT", "PXAT", "PERSIST", "KEEPTTL", "NX"]),
    ("SETNX", &[]),
    ("SETEX", &[]),
    ("PSETEX", &[]),
    ("MGET", &[]),
    ("MSET", &[]),
    ("MSETNX", &[]),
    ("APPEND", &[]),
    ("STRLEN", &[]),
    ("GETRANGE", &[]),
    ("SUBSTR", &[]),
    ("SETRANGE", &[]),
    ("INCR", &[]),
    ("DECR", &[]),
    ("INCRBY", &[]),
    ("DECRBY", &[]),
    ("INCRBYFLOAT", &["1.5", "inf", "-inf", "nan", "3.0e3", "abc", "\" 1\"", "-0"]),
    ("DEL", &[]),
    ("UNLINK", &[]),
    ("EXISTS", &[]),
    ("TOUCH", &[]),
    ("TYPE", &[]),
    ("KEYS", &["[a-c]", "none?"]),
    ("SCAN", &["MATCH", "COUNT", "TYPE", "string", "NOVALUES"]),
    ("RENAME", &[]),
    ("RENAMENX", &[]),
    ("COPY", &["DB", "REPLACE", "replace"]),
    ("DBSIZE", &[]),
    ("FLUSHDB", &["ASYNC", "SYNC", "x"]),
    ("EXPIRE", &["NX", "XX", "GT", "LT", "ZZ"]),
    ("PEXPIRE", &["NX", "XX", "GT", "LT", "ZZ"]),
    ("EXPIREAT", &["NX", "XX", "GT", "LT", "ZZ"]),
    ("PEXPIREAT", &["NX", "XX", "GT", "LT", "ZZ"]),
    ("TTL", &[]),
    ("PTTL", &[]),
    ("EXPIRETIME", &[]),
    ("PEXPIRETIME", &[]),
    ("PERSIST", &[]),
    ("OBJECT", &["ENCODING", "REFCOUNT", "FREQ", "NONE"]),
    ("WAIT", &["0"]),
    ("EXEC", &[]),
    ("DISCARD", &[]),
    ("WATCH", &[]),
    ("UNWATCH", &[]),
    ("ECHO", &[]),
    ("PING", &[]),
    ("SELECT", &["1"]),
];

const KEYS: &[&str] = &["a", "b", "c", "n", "none", "\"\""];

/// Numbers, and what is none. Times of seconds and of milliseconds are long over, or far away, so
/// that nothing depends on when the test runs.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "5",
    "-5",
    "100000",
    "9999999999",
    "99999999999400",
    "+1",
    "01",
    "1.0",
    "abc",
    "\" 1\"",
    "\"1 \"",
    "\"\"",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "9223372036854775",
    "536870911",
    "536870912",
    "-0",
];

/// What was once answered in another way than by Redis.
const FOUND: &[&str] = &[
    "SET t v PXAT 99999999999400",
    "EXPIRETIME t",
    "GETEX none EX 0",
    "GETEX none EX abc",
    "GETEX none EX 0 BOGUS",
    "GETEX t PERSIST PERSIST",
    "SET t v EX 0 BOGUS",
    "SET t v EX 0 EX 99999999",
    "EXPIRE t abc ZZ",
    "EXPIRE none abc",
    "SELECT x",
    "SELECT 9999999999",
    "COPY t u DB 9999999999",
    "EXEC x",
    "MULTI; SET t w; EXEC x; EXEC",
];

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.usize(..from.len())]
}

/// A word in letters of any size.
fn in_any_size(rng: &mut Rng, word: &str) -> String {
    match rng.u8(..4) {
        0 => word.to_lowercase(),
        _ => word.to_owned(),
    }
}

/// Requests on a line; a transaction is over at the end of its line.
fn line(rng: &mut Rng) -> String {
    if rng.u8(..10) > 0 {
        return request(rng);
    }
    // Replies within that of `EXEC` are compared byte for byte.
    const APART: &[&str] = &["ttl", "expiretime", "keys", "scan", "exec", "discard"];
    let mut requests = vec!["MULTI".to_owned()];
    while requests.len() < 5 {
        let request = request(rng);
        if !APART.iter().any(|name| request.to_lowercase().contains(name)) {
            requests.push(request);
        }
    }
    requests.push(pick(rng, &["EXEC", "exec", "DISCARD", "EXEC x; DISCARD"]).to_owned());
    requests.join("; ")
}

fn request(rng: &mut Rng) -> String {
    let (name, words) = COMMANDS[rng.usize(..COMMANDS.len())];
    let mut request = in_any_size(rng, name);
    // As many as are right are common.
    let count = match rng.u8(..4) {
        0 => rng.usize(..7),
        1 => 1,
        2 => 2,
        _ => 3,
    };
    for at in 0..count {
        request.push(' ');
        let is_word = !words.is_empty() && rng.bool();
        match at {
            // Sums of other numbers are not those of Redis to the last digit.
            0 if name == "INCRBYFLOAT" => request.push('f'),
            _ if name == "INCRBYFLOAT" => request.push_str(pick(rng, words)),
            0 if name == "SCAN" => request.push_str(pick(rng, &["0", "abc"])),
            0 if rng.u8(..8) > 0 && name != "OBJECT" => request.push_str(pick(rng, KEYS)),
            _ if is_word => request.push_str(&{
                let word = pick(rng, words);
                in_any_size(rng, word)
            }),
            _ if rng.u8(..4) == 0 => request.push_str(pick(rng, KEYS)),
            _ => request.push_str(match pick(rng, NUMBERS) {
                // No time ends while the test runs.
                "1" | "5" | "100000" if name.contains("EX") || name == "SET" => "99999999",
                number => number,
            }),
        }
    }
    request
}

/// What may be compared of a reply.
fn comparable(name: &str, reply: &str) -> String {
    let number = || reply.strip_prefix(':')?.split("\r\n").next()?.parse::<i64>().ok();
    match (name, number()) {
        // Of a time that a request named, rounded.
        ("EXPIRETIME", Some(99_999_999_999 | 100_000_000_000)) => reply.to_owned(),
        // Seconds pass between the two servers.
        ("TTL", Some(number)) => (number + 50).div_euclid(100).to_string(),
        ("PTTL", Some(number)) => (number + 50_000).div_euclid(100_000).to_string(),
        ("EXPIRETIME", Some(number)) => (number + 50).div_euclid(100).to_string(),
        ("PEXPIRETIME", Some(number)) => (number + 50_000).div_euclid(100_000).to_string(),
        // The order of keys is not that of Redis.
        ("KEYS", _) | ("SCAN", _) if reply.starts_with('*') => String::new(),
        _ => reply.to_owned(),
    }
}

#[test]
fn wrong_arguments_are_refused_as_redis_does() {
    const REQUESTS: usize = 6_000;
    const AT_ONCE: usize = 100;
    let folder = tempfile::tempdir().expect("a folder");
    let redis_path = folder.path().join("redis");
    let Some(_redis) = Redis::start(&redis_path) else {
        println!("skipped: redis-server is not installed");
        return;
    };
    let ours = Ours::start(&folder.path().join("sapwood"));
    let (mut theirs, mut clients) = (Clients::new(redis_path), Clients::new(ours.path.clone()));
    let mut rng = Rng::with_seed(12);
    let mut differences = Vec::new();
    for at in 0..REQUESTS / AT_ONCE {
        let lines: Vec<String> = match at {
            0 => FOUND.iter().map(|line| (*line).to_owned()).collect(),
            _ => (0..AT_ONCE).map(|_| line(&mut rng)).collect(),
        };
        let replies = theirs.call_many("a", &lines).into_iter().zip(clients.call_many("a", &lines));
        for (line, (theirs, ours)) in lines.iter().zip(replies) {
            let name = line.split(' ').next().unwrap_or_default().to_uppercase();
            if comparable(&name, &theirs) != comparable(&name, &ours) {
                differences.push(format!("{line}\n  theirs: {theirs:?}\n  ours:   {ours:?}"));
            }
        }
    }
    ours.end();
    println!("{} differences", differences.len());
    differences.truncate(60);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
