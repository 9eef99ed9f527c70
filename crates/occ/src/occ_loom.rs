//! Models: transactions and changes beside each other, on two cells that stand for keys.
//!
//! A cell is read and written by single operations, as an engine's: each is linearizable, and two of them
//! are not one.

use std::sync::Arc;

use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::thread;
use sapwood_mem::model;

use crate::{Conflict, Reads, Stripe, Versions};

struct Cells {
    versions: Versions,
    cells: [AtomicU64; 2],
}

impl Cells {
    fn new() -> Arc<Cells> {
        model::reset();
        let cells = [AtomicU64::new(0), AtomicU64::new(0)];
        Arc::new(Cells { versions: Versions::new(), cells })
    }

    fn get(&self, at: usize) -> u64 {
        self.cells[at].load(Acquire)
    }

    fn put(&self, at: usize, value: u64) {
        self.cells[at].store(value, Release);
    }

    /// A change of one key that reads it before.
    fn add(&self, at: usize) {
        let shared = self.versions.share(|stripe| stripe(Stripe(at as u32)));
        let _shared = shared.expect("commits are short");
        // One operation of an engine.
        self.cells[at].fetch_add(1, loom::sync::atomic::Ordering::AcqRel);
    }

    /// Sets cell `to` to a sum of what both have.
    fn transact(&self, to: usize, sum: impl FnOnce(u64, u64) -> u64) -> Result<(), Conflict> {
        let mut reads = Reads::begin(&self.versions)?;
        let one = reads.read(Stripe(0), || self.get(0))?;
        let other = reads.read(Stripe(1), || self.get(1))?;
        let mut stripes = vec![Stripe(to as u32)];
        let _claimed = reads.claim(&mut stripes)?;
        self.put(to, sum(one, other));
        Ok(())
    }
}

#[test]
fn loom_of_two_transactions_each_of_which_reads_what_the_other_writes_one_is_refused() {
    loom::model(|| {
        let cells = Cells::new();
        let other = thread::spawn({
            let cells = Arc::clone(&cells);
            move || cells.transact(0, |one, other| one + other + 1)
        });
        let mine = cells.transact(1, |one, other| one + other + 1);
        let other = other.join().expect("no panic");
        let expected = match (mine.is_ok(), other.is_ok()) {
            (true, true) => vec![[1, 2], [2, 1]],
            (true, false) => vec![[0, 1]],
            (false, true) => vec![[1, 0]],
            (false, false) => vec![[0, 0]],
        };
        // Cell 0 is the other's. Both from zero is no order of the two.
        assert!(expected.contains(&[cells.get(0), cells.get(1)]), "{mine:?} {other:?}");
    });
}

#[test]
fn loom_a_change_beside_the_first_transaction_is_not_lost() {
    loom::model(|| {
        let cells = Cells::new();
        let other = thread::spawn({
            let cells = Arc::clone(&cells);
            move || cells.add(0)
        });
        let mine = cells.transact(0, |one, _| one + 10);
        other.join().expect("no panic");
        assert_eq!(cells.get(0), if mine.is_ok() { 11 } else { 1 });
    });
}

#[test]
fn loom_a_change_beside_a_transaction_is_not_lost() {
    loom::model(|| {
        let cells = Cells::new();
        assert_eq!(cells.versions.count(), Ok(()));
        let other = thread::spawn({
            let cells = Arc::clone(&cells);
            move || cells.add(0)
        });
        let mine = cells.transact(0, |one, _| one + 10);
        other.join().expect("no panic");
        assert_eq!(cells.get(0), if mine.is_ok() { 11 } else { 1 });
    });
}

#[test]
fn loom_a_transaction_reads_one_moment() {
    loom::model(|| {
        let cells = Cells::new();
        assert_eq!(cells.versions.count(), Ok(()));
        let other = thread::spawn({
            let cells = Arc::clone(&cells);
            move || {
                let reads = Reads::begin(&cells.versions)?;
                let mut stripes = vec![Stripe(1), Stripe(0)];
                let _claimed = reads.claim(&mut stripes)?;
                cells.put(0, 1);
                cells.put(1, 1);
                Ok::<(), Conflict>(())
            }
        });
        let mut reads = Reads::begin(&cells.versions).expect("words count");
        let both = reads.read(Stripe(0), || cells.get(0)).and_then(|one| {
            let other = reads.read(Stripe(1), || cells.get(1))?;
            Ok((one, other))
        });
        if let Ok((one, other)) = both {
            assert_eq!(one, other);
        }
        let _refused = other.join().expect("no panic");
    });
}

#[test]
fn loom_a_read_of_all_stripes_is_of_one_moment() {
    loom::model(|| {
        let cells = Cells::new();
        assert_eq!(cells.versions.count(), Ok(()));
        let other = thread::spawn({
            let cells = Arc::clone(&cells);
            move || {
                let _shared = cells.versions.share_all().expect("commits are short");
                cells.put(0, 1);
                cells.put(1, 1);
            }
        });
        let mut reads = Reads::begin(&cells.versions).expect("words count");
        if let Ok((one, other)) = reads.read_all(|| (cells.get(0), cells.get(1))) {
            assert_eq!(one, other);
        }
        other.join().expect("no panic");
    });
}
