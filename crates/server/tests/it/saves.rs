//! Saves beside commands: one moment of all tables, and values in parts that are whole whenever the
//! process ends.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sapwood::{Cut, Db};
use sapwood_server::Service;
use sapwood_server::clock::Clock;
use sapwood_server::service::Options;

use crate::client::{Client, START, Value, ok};

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

fn number(value: Value) -> i64 {
    match value {
        Value::Bulk(digits) => std::str::from_utf8(&digits).expect("text").parse().expect("digits"),
        Value::Null => 0,
        other => panic!("no number: {other:?}"),
    }
}

/// A writer counts in a database, then in another, then in a table: in each save the first is ahead
/// by one at most.
#[test]
fn a_save_is_one_moment_of_all_tables() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut before = 0;
    for _ in 0..5 {
        let (_, service) = open(directory.path());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = Client::new(&service);
                client.line("sw.create counters engine hash");
                while !is_over.load(Ordering::SeqCst) {
                    client.line("incr first");
                    client.line("select 1");
                    client.line("incr second");
                    let text = client.line("get second");
                    let Value::Bulk(digits) = text else { panic!("a count") };
                    client.call(&[b"sw.put", b"counters", b"third", &digits]);
                    client.line("select 0");
                }
            });
            let mut reader = Client::new(&service);
            for _ in 0..4 {
                let seen = number(reader.line("get first"));
                while number(reader.line("get first")) < seen + 20 {}
                service.save().expect("it is kept");
            }
            is_over.store(true, Ordering::SeqCst);
        });
        // What came behind the last save is lost.
        drop(service);
        let (_, service) = open(directory.path());
        let mut client = Client::new(&service);
        let first = number(client.line("get first"));
        client.line("select 1");
        let second = number(client.line("get second"));
        let third = number(client.line("sw.get counters third"));
        let counts = [first, second, third];
        assert!(counts.is_sorted_by(|a, b| a >= b) && first - third <= 1, "{counts:?}");
        assert!(first >= before + 60, "{first} after {before}");
        before = third;
        // The writer goes on where it was: all equal.
        client.line("select 0");
        client.call(&[b"set", b"first", third.to_string().as_bytes()]);
        client.line("select 1");
        client.call(&[b"set", b"second", third.to_string().as_bytes()]);
        service.save().expect("it is kept");
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
