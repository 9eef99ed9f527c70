//! Readers beside a writer see committed states alone.

use std::sync::atomic::{AtomicBool, Ordering};

use sapwood_ptree::{Pool, PoolOptions, TreeLayout};

use crate::model::KINDS;

/// Each transaction gives all entries the same number, and their count grows and shrinks.
#[test]
fn a_reader_sees_no_transaction_by_half() {
    for kind in KINDS {
        for layout in [TreeLayout::Fixed, TreeLayout::Bytes] {
            let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
            let tree = pool.create_tree("t", kind, layout).expect("made");
            tree.put([0; 8], [0; 8]).expect("put");
            let is_done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    let (tree, is_done) = (&tree, &is_done);
                    scope.spawn(move || {
                        let mut last = 0;
                        while !is_done.load(Ordering::Acquire) {
                            let frozen = tree.frozen();
                            let entries: Vec<_> =
                                tree.iter().map(|entry| entry.expect("an entry")).collect();
                            let len = tree.len().expect("read");
                            drop(frozen);
                            assert_eq!(entries.len() as u64, len);
                            assert!(entries.iter().all(|(_, value)| *value == entries[0].1));
                            let value = tree.get([0; 8]).expect("read").expect("always there");
                            let round = u64::from_le_bytes(*value.first_chunk().expect("8 bytes"));
                            assert!(round >= last, "time goes forward");
                            last = round;
                        }
                    });
                }
                for round in 1..400u64 {
                    let tx = pool.begin().expect("begun");
                    let count = round * 37 % 90 + 1;
                    for number in 0..90u64 {
                        match number < count {
                            true => drop(
                                tx.put(&tree, number.to_be_bytes(), round.to_le_bytes())
                                    .expect("put"),
                            ),
                            false => drop(tx.remove(&tree, number.to_be_bytes()).expect("removed")),
                        }
                    }
                    tx.commit().expect("committed");
                }
                is_done.store(true, Ordering::Release);
            });
            assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
        }
    }
}

#[test]
fn walks_beside_a_writer_miss_nothing_that_stays() {
    for kind in KINDS {
        let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
        let tree = pool.create_tree("t", kind, TreeLayout::Bytes).expect("made");
        for number in (0..2000u32).step_by(2) {
            tree.put(number.to_be_bytes(), b"stays").expect("put");
        }
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (tree, is_done) = (&tree, &is_done);
            scope.spawn(move || {
                while !is_done.load(Ordering::Acquire) {
                    let mut stayed = 0;
                    let mut last = None;
                    for entry in tree.iter() {
                        let (key, value) = entry.expect("an entry");
                        stayed += usize::from(value == b"stays");
                        assert!(last.as_ref() < Some(&key), "keys ascend");
                        last = Some(key);
                    }
                    assert_eq!(stayed, 1000);
                }
            });
            for round in 0..6000u32 {
                let number = (round * 7919 % 1000) * 2 + 1;
                match round % 2 {
                    0 => drop(tree.put(number.to_be_bytes(), b"goes").expect("put")),
                    _ => drop(tree.remove(number.to_be_bytes()).expect("removed")),
                }
            }
            is_done.store(true, Ordering::Release);
        });
    }
}
