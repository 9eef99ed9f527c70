//! What a server in a directory keeps: every command that was executed, as a whole, whenever the process
//! ends.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sapwood::{Cut, Db};
use sapwood_server::clock::Clock;
use sapwood_server::service::Options;
use sapwood_server::{Service, Session};

use crate::client::{Client, START, Value, ok, request};

fn open(path: &Path) -> (Db, Arc<Service>) {
    let db = Db::open(path).expect("a directory");
    let clock = Clock::Manual(AtomicU64::new(START));
    let options = Options { clock, threads: 2, ..Options::default() };
    let service = Service::new(db.clone(), options).expect("its tables");
    (db, Arc::new(service))
}

/// A value of two parts.
fn long(byte: u8) -> Vec<u8> {
    vec![byte; 600_000]
}

fn number(value: Value) -> u64 {
    match value {
        Value::Bulk(digits) => std::str::from_utf8(&digits).expect("text").parse().expect("digits"),
        other => panic!("no number: {other:?}"),
    }
}

/// A transaction that takes its time between what it writes to two databases and to a table: a save
/// has all of it or nothing.
#[test]
fn a_save_is_one_moment_of_all_tables() {
    let directory = tempfile::tempdir().expect("a directory");
    let transaction = |count: u64| -> Vec<u8> {
        let count = count.to_string();
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let between = words(&format!("mset{}", " key value".repeat(1_000)));
        let begin = [words("multi"), words(&format!("set first {count}"))];
        let second = [words("select 1"), words(&format!("set second {count}")), words("select 0")];
        let third = [words(&format!("sw.put counts third {count}")), words("exec")];
        let all = begin.into_iter().chain([between]).chain(second).chain(third);
        let args = all.flat_map(|line| {
            let args: Vec<&[u8]> = line.iter().map(String::as_bytes).collect();
            request(&args)
        });
        args.collect()
    };
    let mut last = 0;
    for _ in 0..5 {
        let (_, service) = open(directory.path());
        let is_over = AtomicBool::new(false);
        let done = AtomicU64::new(last);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = Client::new(&service);
                client.line("sw.create counts engine hash");
                let mut count = done.load(Ordering::SeqCst) + 1;
                let mut next = transaction(count);
                while !is_over.load(Ordering::SeqCst) {
                    client.send(&next);
                    next = transaction(count + 1);
                    done.store(count, Ordering::SeqCst);
                    count += 1;
                }
            });
            for _ in 0..2 {
                let before = done.load(Ordering::SeqCst);
                while done.load(Ordering::SeqCst) < before + 2 {
                    std::thread::yield_now();
                }
                service.save().expect("it is kept");
            }
            is_over.store(true, Ordering::SeqCst);
        });
        last = done.load(Ordering::SeqCst);
        drop(service);
        let (_, service) = open(directory.path());
        let mut client = Client::new(&service);
        let first = client.line("get first");
        client.line("select 1");
        let found = [first, client.line("get second"), client.line("sw.get counts third")];
        let counts = found.map(number);
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
        assert_eq!(counts[0], last, "all of them");
    }
}

#[test]
fn long_values_are_as_they_were_when_the_process_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    {
        let (db, service) = open(directory.path());
        let mut client = Client::new(&service);
        for key in [&b"replaced"[..], b"removed", b"shortened", b"ended", b"kept"] {
            assert_eq!(client.call(&[b"set", key, &long(b'a')]), ok());
        }
        service.save().expect("it is kept");
        assert_eq!(client.call(&[b"set", b"replaced", &long(b'b')]), ok());
        assert_eq!(client.call(&[b"set", b"new", &long(b'b')]), ok());
        client.line("del removed");
        client.line("set shortened b");
        client.line("pexpire ended 5");
        service.set_clock(START + 10);
        while service.expire().expect("a table") {}
        // A checkpoint of one of the two tables alone.
        let parts = db.hash_table("redis.0.parts").expect("it is there");
        parts.checkpoint(Cut::Incremental).expect("it is kept");
    }
    let (_, service) = open(directory.path());
    let mut client = Client::new(&service);
    for (key, byte) in [(&b"replaced"[..], b'b'), (b"new", b'b'), (b"kept", b'a')] {
        let is_whole = client.call(&[b"get", key]) == Value::Bulk(long(byte));
        assert!(is_whole, "{}", key.escape_ascii());
    }
    assert_eq!(client.line("get removed"), Value::Null);
    assert_eq!(client.line("get ended"), Value::Null);
    assert_eq!(client.line("get shortened"), Value::Bulk(b"b".to_vec()));
}

#[test]
fn parts_that_no_head_names_go() {
    let directory = tempfile::tempdir().expect("a directory");
    let (db, service) = open(directory.path());
    let mut client = Client::new(&service);
    let left = || db.hash_table("redis.0.parts").expect("it is there").len().expect("a walk");
    for byte in b'a'..b'f' {
        assert_eq!(client.call(&[b"set", b"key", &long(byte)]), ok());
        assert_eq!(left(), 2);
        service.save().expect("it is kept");
    }
    drop(client);
    drop((service, db));
    let (db, service) = open(directory.path());
    let parts = db.hash_table("redis.0.parts").expect("it is there");
    assert_eq!(parts.len().expect("a walk"), 2);
    Client::new(&service).line("del key");
    assert_eq!(parts.len().expect("a walk"), 0);
}

/// At `appendfsync always` what was changed is to last before it is answered; reads wait for nothing.
#[test]
fn a_service_that_syncs_always_says_what_is_to_last() {
    let directory = tempfile::tempdir().expect("a directory");
    let (db, service) = open(directory.path());
    db.set_sync_interval(None);
    let mut session = Session::new(Arc::clone(&service));
    let mut run = |line: &str| {
        let mut out = Vec::new();
        session.run(format!("{line}\r\n").as_bytes(), &mut out);
        (session.take_unlasting(), String::from_utf8(out).expect("text"))
    };
    assert!(run("CONFIG GET appendfsync").1.contains("everysec"));
    assert!(run("SET k 1").0.is_none(), "nothing waits");
    assert!(run("CONFIG SET appendfsync never").1.starts_with("-ERR"));
    assert_eq!(run("CONFIG SET appendfsync always").1, "+OK\r\n");
    db.set_sync_interval(None);
    let (unlasting, out) = run("SET k 2");
    assert_eq!(out, "+OK\r\n");
    let unlasting = unlasting.expect("a change");
    assert!(!unlasting.are_durable());
    assert!(run("GET k").0.is_none(), "a read waits for nothing");
    assert!(run("SET k 2 NX").0.is_none(), "nothing has changed");
    unlasting.wait().expect("it lasts");
    assert!(unlasting.are_durable());
    assert!(run("INFO persistence").1.contains("aof_enabled:1"));
    assert!(run("CONFIG GET appendonly").1.contains("yes"));
}
