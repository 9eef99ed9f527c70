//! What a journal hears, and when.

use std::sync::{Arc, Mutex};

use sapwood_engine::{Effect, Journal};

use super::{model, small_map, spawn};
use crate::ChunkMap;

/// What a journal heard of a key last.
#[derive(Debug, Default)]
struct Last(Mutex<Option<Vec<u8>>>);

impl Journal for Last {
    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn log(&self, _: &[u8], effect: Effect<'_>) {
        *self.0.lock().expect("no panic") = match effect {
            Effect::Put(value) => Some(value.to_vec()),
            Effect::Write { .. } => unreachable!("values of one byte are told whole"),
            Effect::Remove => None,
        };
    }
}

fn told_map() -> (Arc<ChunkMap>, Arc<Last>) {
    let last = Arc::new(Last::default());
    let map = Arc::into_inner(small_map()).expect("not shared yet");
    (Arc::new(map.with_journal(last.clone() as Arc<dyn Journal>)), last)
}

/// The last change of a key that a journal hears of is the last that happened.
#[track_caller]
fn last_told_is_there(first: fn(&ChunkMap), second: fn(&ChunkMap)) {
    model(move || {
        let (map, last) = told_map();
        let other = spawn(&map, first);
        second(&map);
        other.join().expect("no panic");
        assert_eq!(*last.0.lock().expect("no panic"), map.get(b"k").expect("a fine key"));
    });
}

#[test]
fn loom_told_insert_insert() {
    last_told_is_there(
        |map| drop(map.put(b"k", b"1").expect("memory")),
        |map| drop(map.put(b"k", b"2").expect("memory")),
    );
}

#[test]
fn loom_told_insert_remove() {
    last_told_is_there(
        |map| drop(map.put_if_absent(b"k", b"1").expect("memory")),
        |map| drop(map.remove(b"k").expect("a fine key")),
    );
}

#[test]
fn loom_told_remove_insert() {
    last_told_is_there(
        |map| {
            map.put(b"k", b"1").expect("memory");
            map.remove(b"k").expect("a fine key");
        },
        |map| drop(map.put(b"k", b"2").expect("memory")),
    );
}

/// A reader sees a value only after the journal has heard of it.
#[test]
fn loom_told_before_read() {
    model(|| {
        let (map, last) = told_map();
        let other = spawn(&map, |map| drop(map.put(b"k", b"1").expect("memory")));
        if let Some(value) = map.get(b"k").expect("a fine key") {
            assert_eq!(*last.0.lock().expect("no panic"), Some(value));
        }
        other.join().expect("no panic");
    });
}
