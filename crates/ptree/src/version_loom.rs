//! Models of readers beside a writer: loom runs every interleaving up to a bound on preemptions.
//!
//! The words of a heap are relaxed atomics here as there; what is tried is that a version tells
//! whether they belong together.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use crate::object::ObjectId;
use crate::state::TreeState;
use crate::version::Version;

struct Heap {
    version: Version,
    words: [AtomicU64; 3],
}

impl Heap {
    fn new(words: [u64; 3]) -> Arc<Heap> {
        Arc::new(Heap { version: Version::new(), words: words.map(AtomicU64::new) })
    }

    fn load(&self, at: usize) -> u64 {
        self.words[at].load(Ordering::Relaxed)
    }

    fn store(&self, at: usize, value: u64) {
        self.words[at].store(value, Ordering::Relaxed);
    }

    /// What `look` answers of one moment; `None` where a change went on.
    fn read<R>(&self, look: impl Fn(&Heap) -> R) -> Option<R> {
        let moment = self.version.read();
        let seen = look(self);
        self.version.is_still(moment).then_some(seen)
    }
}

#[test]
fn loom_a_reader_believes_no_half_of_a_commit() {
    loom::model(|| {
        let heap = Heap::new([1, 1, 0]);
        let writer = Arc::clone(&heap);
        let writing = thread::spawn(move || {
            for value in 2..4 {
                writer.version.begin_change();
                writer.store(0, value);
                writer.store(1, value);
                writer.version.end_change();
            }
        });
        if let Some((a, b)) = heap.read(|heap| (heap.load(0), heap.load(1))) {
            assert_eq!(a, b, "words of one commit");
        }
        writing.join().expect("no panic");
        assert_eq!(heap.read(|heap| (heap.load(0), heap.load(1))), Some((3, 3)));
    });
}

/// An object that a commit freed is used again by a transaction that has not committed: its words
/// are stored without any version.
#[test]
fn loom_a_reader_believes_nothing_of_an_object_that_was_freed_and_used_again() {
    loom::model(|| {
        // Word 0 leads to object 1 or 2.
        let heap = Heap::new([1, 10, 20]);
        let writer = Arc::clone(&heap);
        let writing = thread::spawn(move || {
            writer.version.begin_change();
            writer.store(0, 2);
            writer.version.end_change();
            writer.store(1, 99);
        });
        if let Some(seen) = heap.read(|heap| heap.load(heap.load(0) as usize)) {
            assert!(seen == 10 || seen == 20, "{seen} was never committed");
        }
        writing.join().expect("no panic");
    });
}

#[test]
fn loom_one_transaction_at_a_time_has_a_tree() {
    loom::model(|| {
        let state = Arc::new(TreeState::new(ObjectId::new(1), String::new()));
        let inside = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (state, inside) = (Arc::clone(&state), Arc::clone(&inside));
                thread::spawn(move || {
                    state.hold().expect("no transaction of this thread has it");
                    // Relaxed: the lock orders them.
                    assert_eq!(inside.load(Ordering::Relaxed), 0, "alone");
                    inside.store(1, Ordering::Relaxed);
                    inside.store(0, Ordering::Relaxed);
                    state.release();
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!((state.try_hold(), state.try_hold()), (Ok(true), Ok(false)));
    });
}
