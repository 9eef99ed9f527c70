//! Values in parts: written to where they lie, and beside puts that do not look at what they overwrite.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sapwood::{Db, DbOptions, Durability, HashTableOptions};
use sapwood_disk::SimDisk;
use sapwood_server::Service;
use sapwood_server::clock::Clock;
use sapwood_server::service::Options;
use sapwood_server::store::format;
use sapwood_server::store::keyspace::{
    Change, INLINE_BYTES_MAX, Keys, Keyspace, VALUE_BYTES_MAX, Written,
};

use crate::client::{Client, START, Value, ok, service};

/// A value in two parts.
const LONG: usize = INLINE_BYTES_MAX + 1;

fn space() -> Keyspace {
    Keyspace::open(&Db::in_memory(), "k", HashTableOptions::default()).expect("memory")
}

fn keys(space: &Keyspace) -> Keys<'_> {
    Keys { space, now: START, is_exclusive: false }
}

fn put(keys: &Keys<'_>, key: &[u8], value: &[u8], end: Option<u64>) {
    keys.modify(key, |_| Change::Put(value.into(), end)).expect("memory");
}

/// Puts a value without a look.
fn put_unseen(keys: &Keys<'_>, key: &[u8], value: &[u8]) {
    let mut stored = Vec::new();
    format::encode(value, None, &mut stored);
    keys.put_many(&[(key, &stored)]).expect("memory");
}

/// Parts in the table of parts.
fn parts(space: &Keyspace) -> usize {
    space.lasting().nth(1).map_or(0, |parts| parts.len().expect("memory"))
}

#[test]
fn a_put_without_a_look_frees_the_parts_of_what_it_overwrites() {
    let space = space();
    let keys = keys(&space);
    for end in [None, Some(START + 1)] {
        put(&keys, b"a", &[1; LONG], end);
        put(&keys, b"b", &[2; LONG], end);
        assert_eq!(parts(&space), 4);
        put_unseen(&keys, b"a", b"short");
        assert_eq!(parts(&space), 2, "of the other key");
        assert_eq!(keys.get(b"a").expect("memory").as_deref(), Some(&b"short"[..]));
        assert_eq!(keys.get(b"b").expect("memory").map(|value| value.len()), Some(LONG));
        put_unseen(&keys, b"b", b"short");
        assert_eq!(parts(&space), 0);
    }
}

#[test]
fn each_way_to_lose_a_long_value_frees_its_parts_once() {
    let space = space();
    let keys = keys(&space);
    for key in [&b"plain"[..], b"", &[b'x'; 9_000]] {
        put(&keys, key, &[1; LONG], None);
        put(&keys, key, &[2; LONG], None);
        // An empty key takes no room of its own.
        assert_eq!(parts(&space), 2);
        assert!(keys.remove(key).expect("memory"));
        assert_eq!(parts(&space), 0);
        put(&keys, key, &[3; LONG], Some(START + 1));
        let later = Keys { now: START + 1, ..keys };
        assert!(!later.expire(10, |_| {}).expect("memory"));
        assert_eq!(parts(&space), 0);
        put(&keys, key, &[4; LONG], Some(START + 1));
        put(&later, key, b"short", None);
        later.remove(key).expect("memory");
        assert_eq!(parts(&space), 0);
    }
}

/// Threads that put long values, short ones, and remove them, under the same few keys: in the end
/// each part has its head, and each head its parts.
#[test]
fn no_part_is_left_without_a_head_by_threads_that_race() {
    let space = space();
    let names = [&b"a"[..], b"b", b"c"];
    let rounds = if cfg!(debug_assertions) { 60 } else { 600 };
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let space = &space;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                let keys = keys(space);
                for _ in 0..rounds {
                    let key = names[random.usize(..names.len())];
                    match random.u8(..8) {
                        0..=2 => put(&keys, key, &[random.u8(..); LONG], None),
                        3..=5 => put_unseen(&keys, key, b"short"),
                        6 => drop(keys.set_expiry(key, |_| Some(Some(START + 1)))),
                        _ => drop(keys.remove(key)),
                    }
                }
            });
        }
    });
    let keys = keys(&space);
    let mut heads = 0;
    for key in names {
        let facts = keys.facts(key).expect("memory");
        heads += usize::from(facts.is_some_and(|facts| facts.is_in_parts));
        let value = keys.get(key).expect("its parts are there");
        assert_eq!(value.map(|value| value.len()), facts.map(|facts| facts.len));
    }
    assert_eq!(parts(&space), 2 * heads);
    names.iter().for_each(|key| put_unseen(&keys, key, b"short"));
    assert_eq!(parts(&space), 0);
}

/// The way of short values is the same before, beside and behind those that lie in parts.
#[test]
fn commands_put_short_values_over_long_ones() {
    let service = service();
    let mut client = Client::new(&service);
    let long = vec![b'x'; LONG];
    for key in [&b"k"[..], b"", &[b'x'; 9_000]] {
        assert_eq!(client.call(&[b"SET", key, &long]), ok());
        assert_eq!(client.call(&[b"STRLEN", key]), (LONG as i64).into());
        assert_eq!(client.call(&[b"SET", key, b"1"]), ok());
        assert_eq!(client.call(&[b"INCR", key]), 2.into());
        assert_eq!(client.call(&[b"DEL", key]), 1.into());
    }
}

/// Bytes at places where values change their form: around a piece, around a part, and beyond.
const LENGTHS: [usize; 9] = [0, 1, 100, 4_095, 4_096, 4_097, 9_000, INLINE_BYTES_MAX, LONG];

/// Values that are written to in any order, beside byte strings.
#[test]
fn values_are_written_to_where_they_lie() {
    let space = space();
    let keys = Keys { is_exclusive: true, ..keys(&space) };
    let mut random = fastrand::Rng::with_seed(7);
    let names = [&b"plain"[..], b"", &[b'x'; 9_000]];
    let mut values = [const { Vec::new() }; 3];
    let rounds = if cfg!(debug_assertions) { 60 } else { 600 };
    for round in 0..rounds {
        let at = random.usize(..names.len());
        let (key, value) = (names[at], &mut values[at]);
        let bytes = vec![random.u8(1..); LENGTHS[random.usize(..LENGTHS.len() - 2)]];
        let len = value.len();
        match random.u8(..12) {
            0 => {
                *value = vec![round as u8; LENGTHS[random.usize(..LENGTHS.len())]];
                put(&keys, key, value, random.bool().then_some(START + 1));
            }
            1 => {
                value.clear();
                drop(keys.remove(key));
            }
            2 => drop(keys.set_expiry(key, |_| Some(random.bool().then_some(START + 1)))),
            3..=7 => {
                let written = keys.write(key, &bytes, |len| len).expect("memory");
                value.extend_from_slice(&bytes);
                assert_eq!(written, Written::Len(value.len()));
            }
            _ => {
                // Within it, over its end, or behind a gap.
                let offset = random.usize(..len + 5_000);
                let written = keys.write(key, &bytes, |_| offset).expect("memory");
                let end = (offset + bytes.len()).max(len);
                value.resize(end, 0);
                value[offset..offset + bytes.len()].copy_from_slice(&bytes);
                assert_eq!(written, Written::Len(end));
            }
        }
        let facts = keys.facts(key).expect("memory");
        assert_eq!(facts.map_or(0, |facts| facts.len), value.len(), "round {round}");
        let begin = random.usize(..value.len() + 1);
        let range = begin..random.usize(begin..value.len() + 1);
        let is_right =
            keys.get_range(key, |_| range.clone(), |found| found == &value[range.clone()]);
        assert!(is_right.expect("memory"), "round {round}: {range:?}");
        let is_right = keys
            .get_with(key, |found| found.map_or(value.is_empty(), |found| found.value == value));
        assert!(is_right.expect("memory"), "round {round}");
    }
    names.iter().for_each(|key| drop(keys.remove(key)));
    assert_eq!(parts(&space), 0);
}

#[test]
fn a_value_grows_no_further_than_others() {
    let space = space();
    let keys = Keys { is_exclusive: true, ..keys(&space) };
    for at in [0, 5_000, LONG] {
        put(&keys, b"k", &vec![1; at], None);
        let written = keys.write(b"k", b"ab", |_| VALUE_BYTES_MAX - 1).expect("memory");
        assert_eq!(written, Written::TooLong);
        let written = keys.write(b"k", b"ab", |_| usize::MAX).expect("memory");
        assert_eq!(written, Written::TooLong);
        assert_eq!(keys.facts(b"k").expect("memory").map(|facts| facts.len), Some(at));
    }
}

/// Bytes of a value that others may read are overwritten by one alone.
#[test]
fn bytes_in_parts_are_overwritten_by_a_caller_that_is_alone() {
    let space = space();
    let keys = keys(&space);
    put(&keys, b"k", &[1; LONG], None);
    let refused = keys.write(b"k", b"ab", |_| 10).expect_err("it is not alone");
    assert_eq!(refused, sapwood_server::store::keyspace::Error::NeedsExclusive);
    let written = keys.write(b"k", b"ab", |len| len).expect("no reader looks there");
    assert_eq!(written, Written::Len(LONG + 2));
    let service = service();
    let mut client = Client::new(&service);
    assert_eq!(client.call(&[b"SET", b"k", &vec![b'1'; LONG]]), ok());
    assert_eq!(client.line("SETRANGE k 10 ab"), (LONG as i64).into());
    assert_eq!(client.line("GETRANGE k 9 12"), "1ab1".into());
    assert_eq!(client.line("APPEND k cd"), (LONG as i64 + 2).into());
    assert_eq!(client.line("GETRANGE k -3 -1"), "1cd".into());
    assert_eq!(client.line("SETRANGE k 524034 e"), (LONG as i64 + 2).into());
    assert_eq!(client.line("GETRANGE k -3 -1"), "1ce".into());
}

/// A change of a long value costs the bytes that are written, in memory and in the log, and not those
/// that are there.
#[test]
fn a_change_of_a_few_bytes_costs_a_few_bytes() {
    const APPENDS: u64 = 500;
    let folder = tempfile::tempdir().expect("a folder");
    let db = Db::open(folder.path()).expect("a directory");
    let space = Keyspace::open(&db, "k", HashTableOptions::default()).expect("a directory");
    let keys = Keys { is_exclusive: true, ..keys(&space) };
    for len in [0, 100_000, 1 << 20] {
        put(&keys, b"k", &vec![1; len], None);
        // From here on it lies as it does for good.
        put_bytes(&keys, &[2; 5_000]);
        let written = || db.stats().log.expect("it has a log").unsaved_bytes;
        let grown = || {
            let stats = space.lasting().map(|table| table.stats());
            stats.map(|stats| stats.tail - stats.begin).sum::<u64>()
        };
        let before = (written(), grown());
        (0..APPENDS).for_each(|_| put_bytes(&keys, &[3; 100]));
        let bytes = (written() - before.0, grown() - before.1);
        // Bytes and room for them, and a head for each.
        assert!(bytes.0 < APPENDS * (2 * 100 + 150), "{} bytes of log at {len}", bytes.0);
        assert!(bytes.1 < APPENDS * 2 * 100, "{} bytes of memory at {len}", bytes.1);
        let before = (written(), grown());
        for at in 0..APPENDS as usize {
            keys.write(b"k", b"abc", |len| len / 600 * at).expect("a directory");
        }
        let bytes = (written() - before.0, grown() - before.1);
        assert!(bytes.0 < APPENDS * 100, "{} bytes of log at {len}", bytes.0);
        assert_eq!(bytes.1, 0, "at {len}");
    }
}

fn put_bytes(keys: &Keys<'_>, bytes: &[u8]) {
    keys.write(b"k", bytes, |len| len).expect("it is written");
}

#[test]
fn what_was_written_is_there_after_an_opening() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || {
        let db = Db::open(folder.path()).expect("a directory");
        Keyspace::open(&db, "k", HashTableOptions::default()).expect("a directory")
    };
    let mut value = vec![1; LONG];
    {
        let space = open();
        let keys = Keys { is_exclusive: true, ..keys(&space) };
        put(&keys, b"k", &value, None);
        for number in 0..100 {
            put_bytes(&keys, &[number; 333]);
            value.extend_from_slice(&[number; 333]);
        }
        keys.write(b"k", b"abc", |_| 3).expect("it is written");
        value[3..6].copy_from_slice(b"abc");
        keys.write(b"k", b"xyz", |len| len - 2).expect("it is written");
        value.truncate(value.len() - 2);
        value.extend_from_slice(b"xyz");
    }
    for _ in 0..2 {
        let space = open();
        let keys = keys(&space);
        let is_right = keys.get_with(b"k", |found| found.map(|found| found.value == value));
        assert_eq!(is_right.expect("it is read"), Some(true));
        put_bytes(&keys, b"more");
        value.extend_from_slice(b"more");
    }
}

/// Threads that append to the same key, while others set and remove it: none of a thread's bytes is
/// lost or torn, and nothing is left over.
#[test]
fn threads_append_to_one_value() {
    const RECORD: usize = 300;
    let space = space();
    let rounds = if cfg!(debug_assertions) { 100 } else { 2_000 };
    let append_all = |is_disturbed: bool| {
        put(&keys(&space), b"k", &[0; 5_000], None);
        std::thread::scope(|scope| {
            for thread in 1..=3_u8 {
                let space = &space;
                scope.spawn(move || {
                    for _ in 0..rounds {
                        put_bytes(&keys(space), &[thread; RECORD]);
                    }
                });
            }
            if is_disturbed {
                for round in 0..rounds {
                    match round % 3 {
                        0 => put(&keys(&space), b"k", &[0; 5_000], None),
                        1 => put_unseen(&keys(&space), b"k", &[0; 5_000]),
                        _ => drop(keys(&space).set_expiry(b"k", |_| Some(Some(START + 1)))),
                    }
                }
            }
        });
        let value = keys(&space).get(b"k").expect("memory").expect("a value");
        let records = value[5_000..].chunks(RECORD);
        assert!(value[..5_000].iter().all(|byte| *byte == 0));
        assert!(
            records.clone().all(|it| it.iter().all(|byte| *byte == it[0] && it.len() == RECORD))
        );
        records.map(|record| record[0]).collect::<Vec<u8>>()
    };
    let threads = append_all(false);
    for thread in 1..=3 {
        assert_eq!(threads.iter().filter(|it| **it == thread).count(), rounds);
    }
    append_all(true);
    assert!(keys(&space).remove(b"k").expect("memory"));
    assert_eq!(parts(&space), 0);
}

/// A crash at any moment of a change leaves a long value as it was after one of the changes.
#[test]
fn a_crash_leaves_a_long_value_as_it_was_between_changes() {
    // Bytes around this one are in two parts.
    const BORDER: usize = (512 << 10) - 256;
    fn client_of(disk: &SimDisk) -> Client {
        let db = Db::open_simulated(disk, DbOptions::default().durability(Durability::Sync));
        let clock = Clock::Manual(AtomicU64::new(START));
        let options = Options { clock, threads: 1, ..Options::default() };
        let service = Service::new(db.expect("a sound disk"), options).expect("its tables open");
        Client::new(&Arc::new(service))
    }
    let value = |client: &mut Client| client.call(&[b"GET", b"k"]);
    let long = vec![b'a'; LONG];
    let offsets = [10, BORDER - 6, LONG + 6_098].map(|offset| offset.to_string());
    let changes: [&[&[u8]]; 12] = [
        &[b"SET", b"k", &long],
        &[b"APPEND", b"k", &[b'b'; 100]],
        // The rest of a piece, and another.
        &[b"APPEND", b"k", &[b'c'; 6_000]],
        &[b"SETRANGE", b"k", offsets[0].as_bytes(), b"xyz"],
        &[b"SETRANGE", b"k", offsets[1].as_bytes(), b"in both of two parts"],
        &[b"SETRANGE", b"k", offsets[2].as_bytes(), b"over the end"],
        &[b"SET", b"k", b"short"],
        &[b"APPEND", b"k", &[b'd'; 5_000]],
        &[b"APPEND", b"k", &[b'e'; 100]],
        &[b"SETRANGE", b"k", b"4000", &[b'f'; 3_000]],
        &[b"SET", b"k", &long],
        &[b"DEL", b"k"],
    ];
    let disk = SimDisk::new();
    let mut client = client_of(&disk);
    let (mut states, mut images) = (vec![Value::Null], 0);
    for (number, change) in changes.into_iter().enumerate() {
        disk.take_images(number as u64, 1);
        let reply = client.call(change);
        assert!(!matches!(reply, Value::Error(_)), "{number}: {reply:?}");
        states.push(value(&mut client));
        for image in disk.taken() {
            images += 1;
            let mut left = client_of(&image);
            let found = value(&mut left);
            assert!(states.contains(&found), "change {number}: it never was so");
            left.call(&[b"APPEND", b"k", b"more"]);
            let Value::Bulk(grown) = value(&mut left) else { panic!("a value") };
            let found = if let Value::Bulk(found) = found { found } else { Vec::new() };
            assert!(grown == [&found, &b"more"[..]].concat(), "change {number}: it does not grow");
        }
    }
    assert!(images > 3 * 12, "only {images}");
}
