//! A map serves a thread to its end: the destructors of its thread-locals may use it, too.

use crate::adapter::{ALL, NASTIEST, map};
use sapwood_chunkmap::{ChunkMap, Compute, Direction};
use sapwood_testkit::case;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Uses its map when the thread ends.
struct AtTheEnd(Arc<ChunkMap>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        work(&self.0);
    }
}

thread_local! {
    static AT_THE_END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// One of each kind of operation, with closures that call back; leaves as many entries as before.
fn work(map: &ChunkMap) {
    let seen = map.get_with(b"a", |value| {
        map.put(b"nested", &[0; 300]).unwrap();
        map.trim();
        value.len()
    });
    assert_eq!(seen, Ok(Some(8)));
    assert_eq!(map.remove_with(b"nested", <[u8]>::len), Ok(Some(300)));
    let add = |value: &mut sapwood_chunkmap::ValueMut<'_>| value[0] += 1;
    map.update(b"count", add).unwrap().unwrap();
    map.compute(b"b", |value| Compute::Replace(value.unwrap().to_vec())).unwrap();
    let mut keys = 0;
    let _ = map
        .scan_keys(ALL, Direction::Ascending, |_| {
            keys += map.range(ALL).count();
            ControlFlow::<()>::Continue(())
        })
        .unwrap();
    assert_eq!(keys, 9);
}

#[test]
fn destructors_of_thread_locals_may_use_a_map() {
    case!().once(|| {
        let map = Arc::new(map(NASTIEST));
        for key in [&b"a"[..], b"b", b"count"] {
            map.put(key, &[0; 8]).unwrap();
        }
        const THREADS: u8 = 40;
        for round in 0..THREADS {
            let map = Arc::clone(&map);
            let thread = std::thread::spawn(move || {
                // Half of them before the thread's first operation: then what the map itself keeps
                // for the thread is gone before.
                let store = |map| AT_THE_END.set(Some(AtTheEnd(map)));
                if round % 2 == 0 {
                    store(Arc::clone(&map));
                    work(&map);
                } else {
                    work(&map);
                    store(Arc::clone(&map));
                }
            });
            thread.join().unwrap();
        }
        assert_eq!(map.get_with(b"count", |value| value[0]), Ok(Some(2 * THREADS)));
        map.check().unwrap();
        assert_eq!(map.stats().retired_bytes, 0, "no thread is left behind pinned");
    });
}
