//! A thread that ends may use a map in the destructors of its thread-locals, those included that run
//! when the thread-locals of the engine are gone.

use crate::adapter::{CONFIGURATIONS, contents, map};
use sapwood_chunkmap::{Compute, Upsert};
use std::cell::RefCell;
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
