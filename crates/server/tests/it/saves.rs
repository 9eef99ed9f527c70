//! Saves beside commands: one moment of all tables, and values in parts that are whole whenever the
//! process ends.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sapwood::{Cut, Db};
use sapwood_server::Service;
use sapwood_server::clock::Clock;
use sapwood_server::service::Options;

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
                // The last save has these.
                last = before + 2;
            }
            is_over.store(true, Ordering::SeqCst);
        });
        // What came behind the last save is lost.
        drop(service);
        let (_, service) = open(directory.path());
        let mut client = Client::new(&service);
        let first = client.line("get first");
        client.line("select 1");
        let found = [first, client.line("get second"), client.line("sw.get counts third")];
        let counts = found.map(number);
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
        assert!(counts[0] >= last, "{counts:?}, of {last}");
        last = counts[0];
    }
}

/// The process ends when parts are written and heads are not.
#[test]
fn long_values_of_a_save_outlast_one_that_is_cut_off() {
    let directory = tempfile::tempdir().expect("a directory");
    {
        let (db, service) = open(directory.path());
        let mut client = Client::new(&service);
        for key in [&b"replaced"[..], b"removed", b"shortened", b"ended"] {
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
        let parts = db.hash_table("redis.0.parts").expect("it is there");
        parts.checkpoint(Cut::Incremental).expect("it is kept");
    }
    let (_, service) = open(directory.path());
    let mut client = Client::new(&service);
    for key in [&b"replaced"[..], b"removed", b"shortened", b"ended"] {
        let is_whole = client.call(&[b"get", key]) == Value::Bulk(long(b'a'));
        assert!(is_whole, "{} of the last save", key.escape_ascii());
    }
    assert_eq!(client.line("get new"), Value::Null);
}

/// What no checkpoint names goes with the next save; what none has named goes at once.
#[test]
fn parts_that_no_checkpoint_names_go() {
    let directory = tempfile::tempdir().expect("a directory");
    let (db, service) = open(directory.path());
    let mut client = Client::new(&service);
    let left = || db.hash_table("redis.0.parts").expect("it is there").len().expect("a walk");
    for byte in b'a'..b'f' {
        assert_eq!(client.call(&[b"set", b"key", &long(byte)]), ok());
        assert_eq!(left(), 2, "none was saved");
    }
    service.save().expect("it is kept");
    for byte in b'a'..b'f' {
        assert_eq!(client.call(&[b"set", b"key", &long(byte)]), ok());
        assert_eq!(left(), 4, "of the save, and of now");
    }
    service.save().expect("it is kept");
    assert_eq!(left(), 2);
    drop(client);
    drop((service, db));
    // A head of a checkpoint names what was there when it was opened.
    let (db, service) = open(directory.path());
    let mut client = Client::new(&service);
    client.line("del key");
    let parts = db.hash_table("redis.0.parts").expect("it is there");
    assert_eq!(parts.len().expect("a walk"), 2);
    service.save().expect("it is kept");
    assert_eq!(parts.len().expect("a walk"), 0);
}
