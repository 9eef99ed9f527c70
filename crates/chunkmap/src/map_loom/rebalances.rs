//! Writers beside a rebalance: of a full chunk, of one that grows at its end, and of runs.

use super::{keys_of, model, small_map, spawn};

/// Inserts that find the chunk full or frozen lose nothing.
#[test]
fn loom_rebalance_insert() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        // The delta has room for two: both threads' inserts go through a rebalance.
        let other = spawn(&map, |map| map.put(b"b", b"2").expect("memory"));
        assert!(!map.put(b"d", b"3").expect("memory"));
        assert!(!other.join().expect("no panic"));
        assert_eq!(keys_of(&map), b"abcd");
    });
}

/// A chunk that was appended to splits where it grew, and both threads find their end.
#[test]
fn loom_growth_insert() {
    model(|| {
        let map = small_map();
        for key in [b"a", b"b", b"c", b"d"] {
            map.put(key, b"1").expect("memory");
        }
        // Two are sorted, and the delta is full.
        let other = spawn(&map, |map| map.put(b"e", b"2").expect("memory"));
        assert!(!map.put(b"bb", b"3").expect("memory"));
        assert!(!other.join().expect("no panic"));
        for key in [&b"a"[..], b"b", b"bb", b"c", b"d", b"e"] {
            assert!(map.contains_key(key).expect("a fine key"), "{key:?}");
        }
        assert_eq!(map.len_exact(), 6);
    });
}

/// A batch that found its chunks before another thread replaces them loses nothing.
#[test]
fn loom_growth_batch() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        let other = spawn(&map, |map| {
            let inserted = map.put_if_absent(b"d", b"2").expect("memory");
            map.tree.reclaimer.flush();
            inserted
        });
        let entries = [(b"a", b"7"), (b"d", b"7")];
        let inserted = map.put_if_absent_or_update_many(&entries, |_, value| value[0] += 1);
        let theirs = other.join().expect("no panic");
        assert_eq!(inserted.expect("memory"), usize::from(!theirs), "one of the two inserts");
        assert_eq!(map.get(b"a").expect("a fine key").as_deref(), Some(&b"2"[..]));
        let wanted = if theirs { b"3" } else { b"7" };
        assert_eq!(map.get(b"d").expect("a fine key").as_deref(), Some(&wanted[..]));
        assert_eq!(map.len_exact(), 3);
    });
}

/// Reads and updates that found their chunks before another thread replaces them meet what is there all the time, and
/// what was put before them.
#[test]
fn loom_growth_reads() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        let other = spawn(&map, |map| map.put_if_absent(b"d", b"1").expect("memory"));
        let mut read = Vec::new();
        let batch = map.get_many(&[b"a", b"d"], |_, value| read.push(value.map(<[u8]>::to_vec)));
        batch.expect("no closure");
        let wanted = read[1].is_some();
        let changed = map.update_many(&[b"d"], |_, value| value[0] += 1).expect("memory");
        assert_eq!(read[0].as_deref(), Some(&b"1"[..]));
        assert!(changed == 1 || !wanted, "what was read is there");
        assert!(other.join().expect("no panic"));
        let left = if changed == 1 { b"2" } else { b"1" };
        assert_eq!(map.get(b"d").expect("a fine key").as_deref(), Some(&left[..]));
    });
}

/// A run beside an insert of a key among its own, of one in front of it, or behind: all are in, each once.
#[test]
fn loom_run_insert() {
    for key in [b"a", b"d", b"z"] {
        model(move || {
            let map = small_map();
            map.put(b"b", b"0").expect("memory");
            let other = spawn(&map, move |map| map.put_if_absent(key, b"1").expect("memory"));
            let run = [(b"c", b"2"), (b"d", b"2"), (b"e", b"2")];
            let mut updated = 0;
            let inserted = map.put_if_absent_or_update_many(&run, |_, _| updated += 1);
            assert_eq!(inserted.expect("memory") + updated, 3);
            let theirs = other.join().expect("no panic");
            assert_eq!(theirs, key != b"d" || updated == 1, "one of the two inserts it");
            assert_eq!(map.len_exact(), if key == b"d" { 4 } else { 5 });
            let (value, mine) = (map.get(key).expect("a fine key"), !theirs);
            assert_eq!(value.as_deref(), Some(if mine { &b"2"[..] } else { b"1" }));
            map.check().expect("every invariant holds");
        });
    }
}

/// Two runs that lie in one gap, one behind the other or one within the other: all keys are in, each once.
#[test]
fn loom_run_run() {
    for theirs in [[b"e", b"f"], [b"b", b"d"]] {
        model(move || {
            let map = small_map();
            let other = spawn(&map, move |map| {
                map.put_many(&theirs.map(|key| (key, b"1"))).expect("memory");
            });
            let run = [(b"a", b"2"), (b"c", b"2")];
            assert_eq!(map.put_many(&run).expect("memory"), 0, "no key is twice");
            other.join().expect("no panic");
            assert_eq!(map.len_exact(), 4);
            for (key, value) in run.iter().copied().chain(theirs.map(|key| (key, b"1"))) {
                assert_eq!(map.get(key).expect("a fine key").as_deref(), Some(&value[..]));
            }
            map.check().expect("every invariant holds");
        });
    }
}

/// A value replaced while its chunk is rebalanced is replaced in the new chunk.
#[test]
fn loom_rebalance_replace() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        let other = spawn(&map, |map| map.put(b"a", &[2; 100]).expect("memory"));
        assert!(!map.put(b"b", b"3").expect("memory"));
        assert!(other.join().expect("no panic"), "the key was there all the time");
        assert_eq!(map.get(b"a").expect("a fine key"), Some(vec![2; 100]));
        assert_eq!(map.len_exact(), 3);
    });
}

/// A reader finds a key that is there all the time, whatever a rebalance does.
#[test]
fn loom_rebalance_get() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        let other = spawn(&map, |map| map.put(b"b", b"2").expect("memory"));
        assert_eq!(map.get(b"c").expect("a fine key").as_deref(), Some(&b"1"[..]));
        other.join().expect("no panic");
    });
}
