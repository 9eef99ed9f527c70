//! What goes wrong in PMDK's key-value store and its example trees, and does not here.

use std::ops::ControlFlow;
use std::sync::Arc;

use sapwood_disk::SimDisk;
use sapwood_ptree::{Direction, Pool, PoolOptions, TreeLayout};

use crate::model::{KINDS, LAYOUTS};

fn pool() -> Pool {
    Pool::in_memory(PoolOptions::default()).expect("memory")
}

/// Its B-tree and red-black tree keep both.
#[test]
fn a_key_that_is_put_twice_is_there_once() {
    for kind in KINDS {
        for layout in LAYOUTS {
            let pool = pool();
            let tree = pool.create_tree("t", kind, layout).expect("made");
            assert!(tree.put(b"a key ..", b"value 1.").expect("put"));
            assert!(!tree.put(b"a key ..", b"value 2.").expect("put"));
            assert!(!tree.put_if_absent(b"a key ..", b"value 3.").expect("put"));
            assert_eq!(tree.len().expect("read"), 1);
            assert_eq!(tree.get(b"a key ..").expect("read").as_deref(), Some(&b"value 2."[..]));
            assert_eq!(
                tree.remove(b"a key ..").expect("removed").as_deref(),
                Some(&b"value 2."[..])
            );
            assert_eq!(tree.get(b"a key ..").expect("read"), None);
        }
    }
}

/// Its B-tree loses key 0, and its crit-bit tree overwrites it.
#[test]
fn key_zero_and_the_empty_key_are_keys_like_others() {
    for kind in KINDS {
        let pool = pool();
        let tree = pool.create_tree("t", kind, TreeLayout::Fixed).expect("made");
        for number in [5u64, 0, u64::MAX, 1] {
            tree.put(number.to_be_bytes(), number.to_le_bytes()).expect("put");
        }
        for number in [0u64, 1, 5, u64::MAX] {
            let value = tree.get(number.to_be_bytes()).expect("read");
            assert_eq!(value, Some(number.to_le_bytes().to_vec()));
        }
        let first = tree.first(..).expect("read").expect("four of them");
        assert_eq!(first.0, [0; 8]);
        let tree = pool.create_tree("bytes", kind, TreeLayout::Bytes).expect("made");
        let keys: [&[u8]; 5] = [b"", b"\0", b"\0\0", b"a", b"a\0"];
        for key in keys {
            assert!(tree.put(key, key).expect("put"), "{key:?} is new");
        }
        let found: Vec<_> = tree.iter().map(|entry| entry.expect("an entry").0).collect();
        assert_eq!(found, keys);
    }
}

/// A null value at the root is invisible there.
#[test]
fn a_value_of_zeros_and_an_empty_one_are_values() {
    for kind in KINDS {
        let pool = pool();
        let fixed = pool.create_tree("fixed", kind, TreeLayout::Fixed).expect("made");
        fixed.put([0; 8], [0; 8]).expect("put");
        assert_eq!(fixed.get([0; 8]).expect("read"), Some(vec![0; 8]));
        let bytes = pool.create_tree("bytes", kind, TreeLayout::Bytes).expect("made");
        bytes.put(b"k", b"").expect("put");
        assert_eq!(bytes.get(b"k").expect("read"), Some(Vec::new()));
        assert_eq!(bytes.len().expect("read"), 1);
    }
}

/// Its server hashes keys to 32 bits, so that two of them answer for each other.
#[test]
fn keys_that_begin_alike_are_told_apart_whatever_their_length() {
    for kind in KINDS {
        let pool = pool();
        let tree = pool.create_tree("t", kind, TreeLayout::Bytes).expect("made");
        let key = |number: u32| format!("{}{number}", "the same beginning ".repeat(9));
        for number in 0..500 {
            tree.put(key(number), number.to_le_bytes()).expect("put");
        }
        for number in 0..500 {
            let value = tree.get(key(number)).expect("read");
            assert_eq!(value, Some(number.to_le_bytes().to_vec()));
        }
    }
}

/// Its server answers an older value after an overwrite, and a removed key that was overwritten
/// comes back.
#[test]
fn an_overwritten_key_has_its_last_value_and_is_gone_when_removed() {
    for kind in KINDS {
        let disk = SimDisk::new();
        let pool = Pool::create(Arc::new(disk.clone()), PoolOptions::default()).expect("made");
        let tree = pool.create_tree("t", kind, TreeLayout::Bytes).expect("made");
        for value in 0..100u32 {
            tree.put(b"key", vec![7; value as usize * 11]).expect("put");
        }
        assert_eq!(tree.get(b"key").expect("read"), Some(vec![7; 99 * 11]));
        tree.remove(b"key").expect("removed");
        drop((tree, pool));
        let pool = Pool::open(Arc::new(disk), PoolOptions::default()).expect("opened");
        assert_eq!(pool.tree("t").expect("it is there").get(b"key").expect("read"), None);
    }
}

/// Values that are overwritten leak there.
#[test]
fn what_is_overwritten_or_removed_leaves_no_object() {
    for kind in KINDS {
        for layout in LAYOUTS {
            let pool = pool();
            let tree = pool.create_tree("t", kind, layout).expect("made");
            let empty = pool.heap_report().expect("a report").objects;
            for round in 0..20u64 {
                for number in 0..200u64 {
                    let value = match layout {
                        TreeLayout::Fixed => round.to_le_bytes().to_vec(),
                        TreeLayout::Bytes => vec![1; (round * 37 % 300) as usize],
                    };
                    tree.put(number.to_be_bytes(), value).expect("put");
                }
            }
            assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
            for number in 0..200u64 {
                tree.remove(number.to_be_bytes()).expect("removed");
            }
            assert_eq!(pool.heap_report().expect("a report").objects, empty);
        }
    }
}

/// `pmempool` cannot check object pools.
#[test]
fn a_damaged_pool_is_noticed_by_a_check() {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), PoolOptions::default()).expect("made");
    for kind in KINDS {
        let tree = pool.create_tree(&format!("{kind:?}"), kind, TreeLayout::Bytes).expect("made");
        for number in 0..300u32 {
            tree.put(number.to_be_bytes(), vec![3; 20]).expect("put");
        }
    }
    pool.close().expect("closed");
    let bytes = disk.contents("heap").expect("there").len();
    let mut noticed = 0;
    // The objects lie behind the descriptors.
    for offset in (18 * 65_536..bytes).step_by(997) {
        let damaged = disk.crash(0);
        damaged.damage("heap", offset as u64, 0x55).expect("damaged");
        let pool = Pool::open(Arc::new(damaged), PoolOptions::default()).expect("opened");
        let is_sound = pool.check().is_ok_and(|report| report.problems.is_empty());
        noticed += usize::from(!is_sound);
    }
    assert!(noticed > 20, "{noticed} damages were noticed");
}

/// It has no ranges, cursors or string keys.
#[test]
fn ranges_go_both_ways() {
    for kind in KINDS {
        let pool = pool();
        let tree = pool.create_tree("t", kind, TreeLayout::Bytes).expect("made");
        for word in ["ash", "elm", "fir", "oak", "yew"] {
            tree.put(word, word.to_uppercase()).expect("put");
        }
        let mut words = Vec::new();
        let _ended = tree
            .scan("b".."p", Direction::Descending, |key, _| {
                words.push(String::from_utf8_lossy(key).into_owned());
                ControlFlow::<()>::Continue(())
            })
            .expect("read");
        assert_eq!(words, ["oak", "fir", "elm"]);
        assert_eq!(tree.last(..="g").expect("read").expect("fir").0, b"fir", "the floor");
        assert_eq!(tree.first("g"..).expect("read").expect("oak").0, b"oak", "the ceiling");
    }
}
