//! What a journal hears, and when.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use loom::sync::atomic::{AtomicUsize, Ordering};
use sapwood_engine::{Effect, Journal};

use super::{model, small_map, spawn};
use crate::{ChunkMap, Direction};

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

fn logged_map() -> (Arc<ChunkMap>, Arc<Last>) {
    let last = Arc::new(Last::default());
    let map = Arc::into_inner(small_map()).expect("not shared yet");
    (Arc::new(map.with_journal(last.clone() as Arc<dyn Journal>)), last)
}

/// The last change of a key that a journal hears of is the last that happened.
#[track_caller]
fn last_logged_is_there(first: fn(&ChunkMap), second: fn(&ChunkMap)) {
    model(move || {
        let (map, last) = logged_map();
        let other = spawn(&map, first);
        second(&map);
        other.join().expect("no panic");
        assert_eq!(*last.0.lock().expect("no panic"), map.get(b"k").expect("a fine key"));
    });
}

#[test]
fn loom_logged_insert_insert() {
    last_logged_is_there(
        |map| drop(map.put(b"k", b"1").expect("memory")),
        |map| drop(map.put(b"k", b"2").expect("memory")),
    );
}

#[test]
fn loom_logged_insert_remove() {
    last_logged_is_there(
        |map| drop(map.put_if_absent(b"k", b"1").expect("memory")),
        |map| drop(map.remove(b"k").expect("a fine key")),
    );
}

#[test]
fn loom_logged_remove_insert() {
    last_logged_is_there(
        |map| {
            map.put(b"k", b"1").expect("memory");
            map.remove(b"k").expect("a fine key");
        },
        |map| drop(map.put(b"k", b"2").expect("memory")),
    );
}

/// A reader sees a value only after the journal has heard of it.
#[test]
fn loom_logged_before_read() {
    model(|| {
        let (map, last) = logged_map();
        let other = spawn(&map, |map| drop(map.put(b"k", b"1").expect("memory")));
        if let Some(value) = map.get(b"k").expect("a fine key") {
            assert_eq!(*last.0.lock().expect("no panic"), Some(value));
        }
        other.join().expect("no panic");
    });
}

/// How many changes a journal has heard of.
#[derive(Debug, Default)]
struct Count(AtomicUsize);

impl Journal for Count {
    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn log(&self, _: &[u8], _: Effect<'_>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// A scan that begins once the journal has heard of a change of an entry shows what the change has left: a checkpoint
/// begins so, and the log gives up what came before it.
#[track_caller]
fn logged_before_scan(change: fn(&ChunkMap), left: Option<u8>) {
    model(move || {
        let told = Arc::new(Count::default());
        let map = Arc::into_inner(small_map()).expect("not shared yet");
        let map = Arc::new(map.with_journal(told.clone() as Arc<dyn Journal>));
        map.put(b"k", b"1").expect("memory");
        let other = spawn(&map, change);
        if told.0.load(Ordering::Acquire) == 2 {
            let mut found = None;
            let flow = map.scan(.., Direction::Ascending, |_, value| {
                found = Some(value[0]);
                ControlFlow::<()>::Continue(())
            });
            assert!(flow.expect("no closure that changes a value").is_continue());
            assert_eq!(found, left);
        }
        other.join().expect("no panic");
        assert_eq!(map.get(b"k").expect("a fine key").map(|value| value[0]), left);
    });
}

#[test]
fn loom_scan_behind_remove() {
    logged_before_scan(|map| assert!(map.remove(b"k").expect("a fine key")), None);
}

/// Runs a change while its thread reads the entry.
fn beside_reader(map: &ChunkMap, change: impl FnOnce()) {
    let read = map.get_with(b"k", |value| {
        change();
        value[0]
    });
    assert_eq!(read.expect("a fine key"), Some(b'1'));
}

#[test]
fn loom_scan_behind_remove_beside_reader() {
    let remove = |map: &ChunkMap| {
        beside_reader(map, || assert!(map.remove(b"k").expect("a fine key")));
    };
    logged_before_scan(remove, None);
}

#[test]
fn loom_scan_behind_put_beside_reader() {
    let put = |map: &ChunkMap| {
        beside_reader(map, || assert!(map.put(b"k", b"2").expect("memory")));
    };
    logged_before_scan(put, Some(b'2'));
}

#[test]
fn loom_scan_behind_update_beside_reader() {
    let update = |map: &ChunkMap| {
        let change = || map.update(b"k", |value| value[0] = b'2').expect("memory");
        beside_reader(map, || assert!(change().is_some()));
    };
    logged_before_scan(update, Some(b'2'));
}

#[test]
fn loom_scan_behind_longer_put() {
    logged_before_scan(|map| assert!(map.put(b"k", &[b'2'; 200]).expect("memory")), Some(b'2'));
}
