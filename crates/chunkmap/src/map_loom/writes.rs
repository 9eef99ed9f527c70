//! Threads that write one key, and read it.

use super::{model, small_map, spawn};

/// One of two inserts of a key wins, and its value stays.
#[test]
fn loom_insert_insert() {
    model(|| {
        let map = small_map();
        let other = spawn(&map, |map| map.put_if_absent(b"k", b"1").expect("memory"));
        let mine = map.put_if_absent(b"k", b"2").expect("memory");
        let theirs = other.join().expect("no panic");
        assert!(mine != theirs, "exactly one inserts");
        let value = map.get(b"k").expect("a fine key").expect("inserted");
        assert_eq!(value, if mine { b"2" } else { b"1" });
    });
}

/// A remove takes what an insert made, or finds nothing; then the key can come back.
#[test]
fn loom_insert_remove() {
    model(|| {
        let map = small_map();
        let other = spawn(&map, |map| map.remove(b"k").expect("a fine key"));
        assert!(map.put_if_absent(b"k", b"1").expect("memory"), "no other thread inserts");
        let removed = other.join().expect("no panic");
        assert_eq!(map.contains_key(b"k").expect("a fine key"), !removed);
        assert_eq!(map.put(b"k", b"2").expect("memory"), !removed);
        assert_eq!(map.get(b"k").expect("a fine key").as_deref(), Some(&b"2"[..]));
        assert_eq!(map.len(), 1);
    });
}

/// Of two removes one takes the entry, and frees it once.
#[test]
fn loom_remove_remove() {
    model(|| {
        let map = small_map();
        map.put(b"k", b"1").expect("memory");
        let other = spawn(&map, |map| map.remove(b"k").expect("a fine key"));
        let mine = map.remove(b"k").expect("a fine key");
        assert!(mine != other.join().expect("no panic"), "exactly one removes");
        assert_eq!(map.len(), 0);
    });
}

/// A reader sees a value before or after an update, never half of it; and the
/// update is not lost.
#[test]
fn loom_update_get() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 16]).expect("memory");
        let other = spawn(&map, |map| {
            map.update(b"k", |value| value.iter_mut().for_each(|byte| *byte += 1)).expect("memory")
        });
        let seen = map.get(b"k").expect("a fine key").expect("never removed");
        assert!(seen == [1; 16] || seen == [2; 16], "half an update: {seen:?}");
        other.join().expect("no panic");
        assert_eq!(map.get(b"k").expect("a fine key"), Some(vec![2; 16]));
    });
}

/// Two updates of a value both count.
#[test]
fn loom_update_update() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[0]).expect("memory");
        let other = spawn(&map, |map| {
            map.update(b"k", |value| value[0] += 1).expect("memory");
        });
        map.update(b"k", |value| value[0] += 1).expect("memory");
        other.join().expect("no panic");
        assert_eq!(map.get(b"k").expect("a fine key"), Some(vec![2]));
    });
}

/// An update that grows the value moves it; a remove at the same time takes the
/// old or the new one.
#[test]
fn loom_grow_remove() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1]).expect("memory");
        let other = spawn(&map, |map| {
            map.update(b"k", |value| value.resize(100).expect("memory")).expect("memory").is_some()
        });
        let removed = map.remove_with(b"k", <[u8]>::len).expect("a fine key").expect("one remover");
        let updated = other.join().expect("no panic");
        assert_eq!(removed, if updated { 100 } else { 1 });
        assert!(map.is_empty());
    });
}
