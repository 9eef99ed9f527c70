//! Walks and look-ups by columns, which declare records in place of counting themselves.

use std::ops::ControlFlow;

use super::{model, small_map, spawn};
use crate::node::chunk::{Find, Wanted};
use crate::node::hazard_pointers::Bits;
use crate::{ChunkMap, Piece, Widths};

/// How many of the keys a look-up by columns shows.
fn looked_up(map: &ChunkMap, keys: [&[u8; 1]; 2]) -> usize {
    let mut count = 0;
    let flow = map.get_many_columns(&keys, Widths::new(1, 1).expect("not wide"), |piece| {
        count += match piece {
            Piece::Batch(batch) => batch.len(),
            Piece::Entry(..) => 1,
        };
        ControlFlow::<()>::Continue(())
    });
    assert!(flow.expect("no closure").is_continue());
    count
}

/// While a thread reads a record that it has declared, a writer changes a copy. Here, and not in a walk, since between
/// its reads and its end a walk has fences, after which a write would be in order.
#[test]
fn loom_columns_declared() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 16]).expect("memory");
        let guard = map.tree.reclaimer.pin();
        let chunk = map.tree.leaf(&guard, b"k").chunk;
        let Find::Hit(entry) = chunk.find(b"k", Wanted::Record) else {
            unreachable!("put just now")
        };
        let other = spawn(&map, |map| map.update(b"k", |value| value.fill(2)).expect("memory"));
        let declaring = map.hazards.filter().expect("no other reader");
        let mut bits = Bits::default();
        bits.add(entry.record.address());
        declaring.declare(&bits);
        // SAFETY: declared just now, and reached under the guard.
        if let Some((key, value)) = unsafe { entry.record.read_declared() } {
            assert_eq!(key, b"k");
            assert!(value == [1; 16] || value == [2; 16], "half an update: {value:?}");
        }
        other.join().expect("no panic");
        drop(declaring);
        drop(guard);
        assert_eq!(map.get(b"k").expect("a fine key"), Some(vec![2; 16]));
    });
}

/// A walk by columns sees a value before or after an update in place, never half of it; and finds a record that a copy
/// replaced.
#[test]
fn loom_columns_update() {
    model(|| {
        let map = small_map();
        map.put(b"k", &[1; 16]).expect("memory");
        let other = spawn(&map, |map| {
            map.update(b"k", |value| value.iter_mut().for_each(|byte| *byte += 1)).expect("memory")
        });
        let mut seen = Vec::new();
        let flow = map.scan_columns(.., Widths::new(1, 16).expect("not wide"), |piece| {
            match piece {
                Piece::Batch(batch) => {
                    seen.extend((0..batch.len()).map(|at| batch.values().item(at).to_vec()))
                }
                Piece::Entry(_, value) => seen.push(value.to_vec()),
            }
            ControlFlow::<()>::Continue(())
        });
        assert!(flow.expect("no closure").is_continue());
        assert!(seen == [[1; 16]] || seen == [[2; 16]], "half an update: {seen:?}");
        other.join().expect("no panic");
        assert_eq!(map.get(b"k").expect("a fine key"), Some(vec![2; 16]));
    });
}

/// A look-up by columns beside an insert that rebalances and a remove sees what was there all the time.
#[test]
fn loom_columns_rebalance() {
    model(|| {
        let map = small_map();
        map.put(b"a", b"1").expect("memory");
        map.put(b"c", b"1").expect("memory");
        let other = spawn(&map, |map| {
            map.put(b"b", b"2").expect("memory");
            map.remove(b"a").expect("a fine key");
        });
        let count = looked_up(&map, [b"a", b"c"]);
        assert!(count == 1 || count == 2, "{count} of two keys, one of which stays");
        other.join().expect("no panic");
        assert_eq!(map.len_exact(), 2);
    });
}

/// Keys of one group are looked for from one node, which another thread replaces between two of them, together with the
/// chunk of the second.
#[test]
fn loom_columns_node_above_replaced() {
    model(|| {
        let map = small_map();
        for key in [b"a", b"b", b"c", b"d", b"e", b"f"] {
            map.put(key, b"1").expect("memory");
        }
        let before = map.stats();
        assert_eq!((before.height, before.chunks), (2, 2), "a node above two chunks");
        let other = spawn(&map, |map| {
            map.put(b"g", b"1").expect("memory");
            map.tree.reclaimer.flush();
        });
        assert_eq!(looked_up(&map, [b"a", b"f"]), 2, "both keys are there all the time");
        other.join().expect("no panic");
        assert_eq!(map.stats().chunks, 3, "the chunk of the second has split");
    });
}
