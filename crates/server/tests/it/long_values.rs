//! Values in parts beside puts that do not look at what they overwrite.

use sapwood::{Db, HashTableOptions};
use sapwood_server::store::format;
use sapwood_server::store::keyspace::{Change, INLINE_BYTES_MAX, Keys, Keyspace};

use crate::client::{Client, START, ok, service};

/// A value in two parts.
const LONG: usize = INLINE_BYTES_MAX + 1;

fn space() -> Keyspace {
    Keyspace::open(&Db::in_memory(), "k", HashTableOptions::default()).expect("memory")
}

fn keys(space: &Keyspace) -> Keys<'_> {
    Keys { space, now: START }
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
