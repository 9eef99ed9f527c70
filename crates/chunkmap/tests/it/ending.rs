//! A thread that ends may use a map in the destructors of its thread-locals, those included that
//! run when the thread-locals of the engine are gone.

use crate::adapter::{ALL, CONFIGURATIONS, NASTIEST, contents, map};
use sapwood_chunkmap::{ChunkMap, Compute, Direction, Upsert};
use sapwood_testkit::case;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};

/// Work for the end of a thread.
struct AtEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|work| work());
    }
}

thread_local! {
    static AT_END: RefCell<AtEnd> = const { RefCell::new(AtEnd(None)) };
}

#[test]
fn a_destructor_of_a_thread_local_uses_a_map_as_any_code_does() {
    for configuration in CONFIGURATIONS {
        let map = Arc::new(map(configuration));
        let (early, late) = (map.clone(), map.clone());
        let (tell, told) = mpsc::channel();
        let at_end = move || {
            let work = || {
                assert_eq!(late.put(b"put", b"1"), Ok(false));
                assert_eq!(late.get(b"put"), Ok(Some(b"1".to_vec())));
                let updated = late.update(b"counter", |value| {
                    value[0] += 1;
                    // What this thread holds is known all the same.
                    (late.update(b"counter", |_| ()).is_err(), late.get(b"put").is_ok())
                });
                assert_eq!(updated, Ok(Some((true, true))));
                let upsert = late.put_if_absent_or_update(b"counter", b"", |value| value[0]);
                assert_eq!(upsert, Ok(Upsert::Updated(2)));
                late.compute(b"put", |_| Compute::Remove).expect("no memory is needed");
                assert_eq!(late.remove(b"removed"), Ok(true));
                assert_eq!(late.first().map(|first| first.map(|entry| entry.key().to_vec())), {
                    Ok(Some(b"counter".to_vec()))
                });
            };
            tell.send(catch_unwind(AssertUnwindSafe(work))).expect("the test waits");
        };
        let thread = std::thread::spawn(move || {
            AT_END.with(|local| local.borrow_mut().0 = Some(Box::new(at_end)));
            // All that keeps something for its thread.
            early.put(b"counter", &[0]).expect("no budget");
            early.put(b"removed", b"").expect("no budget");
            early.update(b"counter", |value| value[0] = 1).expect("no budget");
        });
        thread.join().expect("no panic");
        told.recv().expect("the destructor runs").expect("no operation panics");
        assert_eq!(contents(&map), [(b"counter".to_vec(), vec![2])]);
        map.check().expect("a sound map");
    }
}

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
