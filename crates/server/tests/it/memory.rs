//! Memory: its limit, the room that removals make, and what comes back of it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sapwood::Db;
use sapwood_server::Service;
use sapwood_server::clock::Clock;
use sapwood_server::net::Housekeeping;
use sapwood_server::service::Options;

use crate::client::{Client, START, Value, ok};

const LIMIT: u64 = 16 << 20;
const VALUE: [u8; 1_000] = [b'v'; 1_000];

fn full() -> Value {
    Value::Error("OOM command not allowed when used memory > 'maxmemory'.".to_owned())
}

fn key(number: u32) -> Vec<u8> {
    format!("k{number}").into_bytes()
}

/// A service, and the folder that it lies in if it has one.
fn service(is_in_memory: bool) -> (Arc<Service>, Option<tempfile::TempDir>) {
    let (db, folder) = match is_in_memory {
        true => (Db::in_memory(), None),
        false => {
            let folder = tempfile::tempdir().expect("a folder");
            (Db::open(folder.path()).expect("a directory"), Some(folder))
        }
    };
    let clock = Clock::Manual(AtomicU64::new(START));
    let options = Options { clock, threads: 2, maxmemory: Some(LIMIT), ..Options::default() };
    (Arc::new(Service::new(db, options).expect("its tables open")), folder)
}

/// Sets keys until it is refused; answers how many are set.
fn fill(service: &Service, mut set: impl FnMut(&[u8]) -> Value) -> u32 {
    for number in 0..100_000 {
        if number % 100 == 0 {
            service.check_memory();
        }
        match set(&key(number)) {
            reply if reply == full() => return number,
            reply => assert!(!matches!(reply, Value::Error(_)), "{reply:?}"),
        }
    }
    panic!("the limit is never reached");
}

/// Each way in which entries go makes room for others at once, and not when a timer has come by.
#[test]
fn removals_make_room_at_once() {
    type Remove = fn(&Service, &mut Client, u32);
    let ways: [(&str, &[&[u8]], Remove); 5] = [
        ("half of them", &[], |_, client, count| {
            (0..count / 2).for_each(|number| _ = client.call(&[b"DEL", &key(2 * number)]));
        }),
        ("all of them", &[], |_, client, count| {
            (0..count).for_each(|number| _ = client.call(&[b"UNLINK", &key(number)]));
        }),
        ("a flush", &[], |_, client, _| assert_eq!(client.line("FLUSHALL"), ok())),
        ("a flush of ends", &[b"PX", b"1000"], |_, client, _| {
            assert_eq!(client.line("FLUSHDB"), ok());
        }),
        ("the end of their time", &[b"PX", b"1000"], |service, _, _| {
            service.set_clock(START + 1_000);
            while service.expire().expect("memory") {}
        }),
    ];
    for is_in_memory in [true, false] {
        for (what, options, remove) in &ways {
            let (service, _folder) = service(is_in_memory);
            let mut client = Client::new(&service);
            let set = |client: &mut Client, key: &[u8]| {
                client.call(&[&[&b"SET"[..], key, &VALUE][..], options].concat())
            };
            let count = fill(&service, |key| set(&mut client, key));
            assert!(count > 10_000, "{what}: {count} keys");
            assert_eq!(client.line("MULTI"), ok());
            assert_eq!(set(&mut client, b"more"), full(), "{what}");
            assert_eq!(client.line("DISCARD"), ok());
            remove(&service, &mut client, count);
            for number in 0..count / 3 {
                assert_eq!(set(&mut client, &key(number)), ok(), "{what}: {number} of {count}");
            }
        }
    }
}

#[test]
fn removals_from_tables_make_room() {
    for engine in ["hash", "ordered"] {
        let (service, _) = service(true);
        let mut client = Client::new(&service);
        assert_eq!(client.line(&format!("SW.CREATE t ENGINE {engine}")), ok());
        let count = fill(&service, |key| client.call(&[b"SW.PUT", b"t", key, &VALUE]));
        for number in 0..count / 2 {
            client.call(&[b"SW.REMOVE", b"t", &key(2 * number)]);
        }
        service.check_memory();
        for number in 0..count / 3 {
            let put = client.call(&[b"SW.PUT", b"t", &key(2 * number), &VALUE]);
            assert_ne!(put, full(), "{engine}: {number} of {count}");
        }
    }
}

/// The limit holds for what is live, however often it was filled and emptied before.
#[test]
fn the_limit_is_the_same_after_many_turns() {
    let (service, _) = service(true);
    let mut client = Client::new(&service);
    let mut counts = Vec::new();
    for _ in 0..4 {
        let count = fill(&service, |key| client.call(&[b"SET", key, &VALUE]));
        counts.push(count);
        (0..count).for_each(|number| _ = client.call(&[b"DEL", &key(number)]));
        while service.tidy(|| true).expect("memory") {}
    }
    let (least, most) = (counts.iter().min(), counts.iter().max());
    assert!(most.zip(least).is_some_and(|(most, least)| most - least < most / 4), "{counts:?}");
}

/// Memory of removed keys comes back though nothing is written any more.
#[test]
fn memory_comes_back_without_writes() {
    for is_in_memory in [true, false] {
        let (service, _folder) = service(is_in_memory);
        let (fresh, _other) = self::service(is_in_memory);
        let (mut client, mut other) = (Client::new(&service), Client::new(&fresh));
        for number in 0..10_000 {
            assert_eq!(client.call(&[b"SET", &key(number), &VALUE]), ok());
        }
        for number in 0..10_000 {
            match number % 3 {
                0 => assert_eq!(other.call(&[b"SET", &key(number), &VALUE]), ok()),
                1 => assert_eq!(client.call(&[b"DEL", &key(number)]), 1.into()),
                _ => assert_eq!(client.call(&[b"PEXPIRE", &key(number), b"10"]), 1.into()),
            }
        }
        service.set_clock(START + 10);
        while service.expire().expect("memory") {}
        assert!(field(&mut client, "allocator_active") > 2 * field(&mut client, "used_memory"));
        while service.tidy(|| true).expect("memory") {}
        let (left, fresh) = (service.reserved_memory(), fresh.reserved_memory());
        // A page of the log more is there than is in use, and one of the table of ends.
        assert!(left <= fresh * 12 / 10 + (4 << 20), "{left} bytes, {fresh} of a fresh load");
        for number in (0..10_000).step_by(3) {
            assert_eq!(client.call(&[b"STRLEN", &key(number)]), 1_000.into(), "{number}");
        }
    }
}

/// A number of `INFO`.
fn field(client: &mut Client, name: &str) -> u64 {
    let Value::Bulk(info) = client.line("INFO memory") else { panic!("a text") };
    let info = String::from_utf8(info).expect("text");
    let mut fields = info.lines().filter_map(|line| line.split_once(':'));
    fields
        .find_map(|(found, number)| (found == name).then_some(number))
        .expect("a field")
        .parse()
        .expect("a number")
}

/// A server does so by itself.
#[test]
fn a_timer_gives_memory_back() {
    let (service, _) = service(true);
    let mut client = Client::new(&service);
    let count = fill(&service, |key| client.call(&[b"SET", key, &VALUE]));
    (0..count).for_each(|number| _ = client.call(&[b"DEL", &key(number)]));
    let _housekeeping = Housekeeping::start(Arc::clone(&service)).expect("a thread");
    while service.reserved_memory() > LIMIT / 3 {
        std::thread::yield_now();
    }
    assert_eq!(client.call(&[b"SET", b"more", &VALUE]), ok());
}
