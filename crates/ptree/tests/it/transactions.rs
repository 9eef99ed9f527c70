//! Transactions: alone, nested, many at once.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sapwood_disk::{FileDisk, SimDisk};
use sapwood_ptree::{Compute, Computed, Error, Pool, PoolOptions, TreeKind, TreeLayout};

fn number(value: Option<Vec<u8>>) -> u64 {
    let value = value.expect("the key is there");
    u64::from_le_bytes(*value.first_chunk().expect("8 bytes"))
}

#[test]
fn a_transaction_sees_its_changes_and_others_see_them_after_the_commit() {
    let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
    let tree = pool.create_tree("t", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    let tx = pool.begin().expect("begun");
    tx.put(&tree, b"a", b"1").expect("put");
    assert_eq!(tx.get(&tree, b"a").expect("read"), Some(b"1".to_vec()));
    assert_eq!(tree.get(b"a").expect("read"), None);
    tx.commit().expect("committed");
    assert_eq!(tree.get(b"a").expect("read"), Some(b"1".to_vec()));
}

#[test]
fn an_aborted_transaction_leaves_nothing() {
    let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
    let tree = pool.create_tree("t", TreeKind::RedBlack, TreeLayout::Bytes).expect("made");
    let before = pool.heap_report().expect("a report");
    let tx = pool.begin().expect("begun");
    for number in 0..1000u32 {
        tx.put(&tree, number.to_be_bytes(), vec![1; 100]).expect("put");
    }
    let other = tx.create_tree(&pool, "other", TreeKind::CritBit, TreeLayout::Fixed).expect("made");
    tx.abort();
    assert_eq!(pool.heap_report().expect("a report").objects, before.objects);
    assert!(tree.is_empty().expect("read"));
    assert_eq!(other.len().expect_err("it was never there"), Error::TreeRemoved);
    assert!(matches!(pool.tree("other"), Err(Error::NoTree { .. })));
    // What it took is taken again.
    for round in 0..3 {
        let tx = pool.begin().expect("begun");
        for number in 0..1000u32 {
            tx.put(&tree, number.to_be_bytes(), vec![1; 100]).expect("put");
        }
        if round < 2 { tx.abort() } else { drop(tx.commit().expect("committed")) }
    }
    assert_eq!(tree.len().expect("read"), 1000);
    assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
}

#[test]
fn trees_are_made_and_removed_in_transactions() {
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), PoolOptions::default()).expect("made");
    let empty = pool.create_tree("first", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    let objects = pool.heap_report().expect("a report").objects;
    let tree = pool.create_tree("t", TreeKind::CritBit, TreeLayout::Bytes).expect("made");
    assert!(matches!(
        pool.create_tree("t", TreeKind::BTree, TreeLayout::Fixed),
        Err(Error::TreeExists { .. })
    ));
    tree.put(b"a", b"1").expect("put");
    pool.remove_tree(&tree).expect("removed");
    assert_eq!(tree.get(b"a").expect_err("removed"), Error::TreeRemoved);
    assert_eq!(tree.put(b"a", b"1").expect_err("removed"), Error::TreeRemoved);
    assert_eq!(pool.heap_report().expect("a report").objects, objects);
    let again = pool.create_tree("t", TreeKind::RedBlack, TreeLayout::Fixed).expect("made anew");
    assert_eq!((again.kind(), again.len().expect("read")), (TreeKind::RedBlack, 0));
    drop((empty, tree, again, pool));
    let pool = Pool::open(Arc::new(disk), PoolOptions::default()).expect("opened");
    let trees = pool.trees().expect("a catalog");
    let names: Vec<_> = trees.iter().map(|tree| (tree.name.as_str(), tree.kind)).collect();
    assert_eq!(names, [("first", TreeKind::BTree), ("t", TreeKind::RedBlack)]);
}

#[test]
fn two_transactions_that_want_each_others_trees_do_not_wait_for_ever() {
    let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
    let a = pool.create_tree("a", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    let b = pool.create_tree("b", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    let conflicts = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (first, second) in [(&a, &b), (&b, &a), (&a, &b), (&b, &a)] {
            let (pool, conflicts) = (&pool, &conflicts);
            scope.spawn(move || {
                for number in 0..200u32 {
                    loop {
                        let done = pool.transaction(|tx| {
                            tx.put(first, number.to_be_bytes(), b"x")?;
                            tx.put(second, number.to_be_bytes(), b"x")
                        });
                        match done {
                            Ok(_) => break,
                            Err(Error::Conflict { .. }) => {
                                conflicts.fetch_add(1, Ordering::Relaxed);
                                std::thread::yield_now();
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!((a.len().expect("read"), b.len().expect("read")), (200, 200));
    // Named at once, they never conflict.
    std::thread::scope(|scope| {
        for trees in [[&a, &b], [&b, &a]] {
            let pool = &pool;
            scope.spawn(move || {
                for number in 0..200u32 {
                    let tx = pool.begin_on(&trees).expect("begun");
                    for tree in trees {
                        tx.put(tree, number.to_be_bytes(), b"y").expect("no conflict");
                    }
                    tx.commit().expect("committed");
                }
            });
        }
    });
}

/// Accounts in three trees: their sum stays the same in every state that a reader sees.
#[test]
fn many_transactions_at_once_lose_no_update() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = Arc::new(FileDisk::open(folder.path()).expect("a disk"));
    let pool = Pool::create(disk, PoolOptions::default().checkpoint_bytes(1 << 20)).expect("made");
    let kinds = [TreeKind::BTree, TreeKind::CritBit, TreeKind::RedBlack];
    let trees = kinds.map(|kind| {
        let tree = pool.create_tree(&format!("{kind:?}"), kind, TreeLayout::Fixed).expect("made");
        for account in 0..50u64 {
            tree.put(account.to_be_bytes(), 1000u64.to_le_bytes()).expect("put");
        }
        tree
    });
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (pool, trees) = (&pool, &trees);
            scope.spawn(move || {
                for round in 0..500u64 {
                    let account = (round * 7 + thread).wrapping_mul(0x9e37) % 50;
                    let (from, to) =
                        (&trees[(round % 3) as usize], &trees[((round + 1) % 3) as usize]);
                    let tx = pool.begin_on(&[from, to]).expect("begun");
                    for (tree, change) in [(from, -1i64), (to, 1)] {
                        let done = tx.update(tree, account.to_be_bytes(), |value| {
                            let before = i64::from_le_bytes(*value.first_chunk().expect("8 bytes"));
                            value.copy_from_slice(&(before + change).to_le_bytes());
                        });
                        done.expect("updated").expect("the account is there");
                    }
                    if round % 5 == 0 { tx.abort() } else { drop(tx.commit().expect("committed")) }
                }
            });
        }
    });
    let sum = |pool: &Pool| -> u64 {
        let trees = kinds.map(|kind| pool.tree(&format!("{kind:?}")).expect("it is there"));
        let values = trees.iter().flat_map(|tree| tree.iter());
        values.map(|entry| number(Some(entry.expect("an entry").1))).sum()
    };
    assert_eq!(sum(&pool), 150_000);
    assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
    drop((trees, pool));
    let disk = Arc::new(FileDisk::open(folder.path()).expect("a disk"));
    let pool = Pool::open(disk, PoolOptions::default()).expect("opened");
    assert_eq!(sum(&pool), 150_000);
}

#[test]
fn a_tree_of_another_pool_is_refused() {
    let one = Pool::in_memory(PoolOptions::default()).expect("memory");
    let other = Pool::in_memory(PoolOptions::default()).expect("memory");
    let tree = other.create_tree("t", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    let tx = one.begin().expect("begun");
    assert_eq!(tx.put(&tree, b"a", b"1").expect_err("refused"), Error::OtherPool);
}

#[test]
fn lengths_that_a_tree_does_not_take_are_refused_and_nothing_changes() {
    let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
    let bytes = pool.create_tree("bytes", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    let fixed = pool.create_tree("fixed", TreeKind::BTree, TreeLayout::Fixed).expect("made");
    let long = vec![0; sapwood_ptree::KEY_BYTES_MAX + 1];
    assert!(matches!(bytes.put(&long, b"v"), Err(Error::KeyLength { .. })));
    assert!(matches!(fixed.put(b"short", [0; 8]), Err(Error::KeyLength { .. })));
    assert!(matches!(fixed.put([0; 8], b"short"), Err(Error::ValueLength { .. })));
    assert!(matches!(fixed.get(b"short"), Err(Error::KeyLength { .. })));
    bytes.put(&long[1..], b"the longest key").expect("put");
    assert_eq!(bytes.get(&long[1..]).expect("read").expect("there"), b"the longest key");
    assert!(fixed.is_empty().expect("read"));
}

#[test]
fn a_pool_with_a_limit_says_so_and_loses_nothing() {
    let pool = Pool::in_memory(PoolOptions::default().limit_bytes(64 << 20)).expect("memory");
    let tree = pool.create_tree("t", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    let mut put = 0u64;
    let refused = loop {
        match tree.put(put.to_be_bytes(), vec![1; 100_000]) {
            Ok(_) => put += 1,
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, Error::OutOfMemory { .. }), "{refused}");
    assert!(put > 400, "{put} values of 100 KB fit into 64 MiB");
    assert_eq!(tree.len().expect("read"), put);
    for number in 0..put {
        tree.remove(number.to_be_bytes()).expect("removed");
    }
    tree.put(b"k", vec![1; 10 << 20]).expect("there is room again, also in one piece");
    assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
}

#[test]
fn objects_are_made_changed_and_freed_with_the_trees_of_a_transaction() {
    use sapwood_ptree::{ObjectId, ObjectType};
    let disk = SimDisk::new();
    let pool = Pool::create(Arc::new(disk.clone()), PoolOptions::default()).expect("made");
    let tree = pool.create_tree("t", TreeKind::RedBlack, TreeLayout::Bytes).expect("made");
    let objects = pool.heap_report().expect("a report").objects;
    let id = pool
        .transaction(|tx| {
            let id = tx.make_object(ObjectType(7), &[1; 100_000])?;
            tx.set_root(id)?;
            tx.put(&tree, b"large", id.word().to_le_bytes())?;
            Ok(id)
        })
        .expect("committed");
    let tx = pool.begin().expect("begun");
    tx.update_object(id, |bytes| bytes[99_999] = 2).expect("changed");
    assert_eq!(tx.read_object(id).expect("read").1[99_999], 2);
    assert_eq!(pool.read_object(id).expect("read").1[99_999], 1, "not committed");
    tx.commit().expect("committed");
    assert!(matches!(
        pool.transaction(|tx| tx.make_object(ObjectType(ObjectType::FIRST_RESERVED), b"")),
        Err(Error::Options(_))
    ));
    let head = pool.objects().expect("a walk");
    let head = head.iter().find(|found| found.object_type.0 >= ObjectType::FIRST_RESERVED);
    let head = head.expect("the catalog's head").id;
    assert_eq!(pool.read_object(head).expect_err("not a user's"), Error::NoObject(head));
    drop((tree, pool));
    let pool = Pool::open(Arc::new(disk), PoolOptions::default()).expect("opened");
    assert_eq!(pool.root().expect("read"), Some(id));
    let (object_type, bytes) = pool.read_object(id).expect("read");
    assert_eq!((object_type, bytes.len(), bytes[99_999]), (ObjectType(7), 100_000, 2));
    pool.transaction(|tx| {
        tx.free_object(id)?;
        tx.set_root(ObjectId::NULL)
    })
    .expect("committed");
    let left = pool.heap_report().expect("a report").objects;
    assert_eq!(left, objects + 2, "the tree's node and its record");
    assert_eq!(pool.root().expect("read"), None);
    assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
}

#[test]
fn a_frozen_tree_holds_up_its_own_commits_alone() {
    let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
    let a = pool.create_tree("a", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    let b = pool.create_tree("b", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    a.put(b"k", b"1").expect("put");
    let frozen = pool.frozen(&[&a]);
    std::thread::scope(|scope| {
        let (a, b) = (&a, &b);
        let waits = scope.spawn(move || a.put(b"k", b"2").expect("put, in the end"));
        b.put(b"k", b"1").expect("put at once");
        pool.check().expect("checked at once");
        assert_eq!(a.get(b"k").expect("read"), Some(b"1".to_vec()));
        drop(frozen);
        waits.join().expect("no panic");
    });
    assert_eq!(a.get(b"k").expect("read"), Some(b"2".to_vec()));
}

/// A transaction that is left behind by a thread that has ended holds its tree; others do not take it for theirs.
#[test]
fn a_transaction_of_a_thread_that_has_ended_is_told_from_ones_own() {
    let pool = Pool::in_memory(PoolOptions::default()).expect("made");
    let tree = pool.create_tree("t", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    std::thread::scope(|scope| {
        let leaves = scope.spawn(|| {
            let tx = pool.begin().expect("begun");
            tx.put(&tree, "k", "v").expect("put");
            std::mem::forget(tx);
        });
        leaves.join().expect("no panic");
        // A new thread may get what the other had.
        let other = scope.spawn(|| tree.put("k", "w"));
        let refused = other.join().expect("no panic");
        assert_eq!(refused, Err(Error::Abandoned { tree: "t".to_owned() }));
    });
    let abandoned = Error::Abandoned { tree: "t".to_owned() };
    assert_eq!(tree.put("k", "w"), Err(abandoned.clone()));
    // One that has another tree does not wait for this one, and is not told to run again.
    let other = pool.create_tree("u", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    let tx = pool.begin().expect("begun");
    tx.put(&other, "k", "v").expect("put");
    assert_eq!(tx.put(&tree, "k", "w").map(drop), Err(abandoned));
    drop(tx);
    assert_eq!(tree.get("k").expect("readers do not wait"), None);
}

#[test]
fn a_thread_does_not_wait_for_itself() {
    let pool = Pool::in_memory(PoolOptions::default()).expect("made");
    let [tree, other] = ["t", "u"]
        .map(|name| pool.create_tree(name, TreeKind::BTree, TreeLayout::Bytes).expect("made"));
    tree.put("k", "v").expect("put");
    let tx = pool.begin().expect("begun");
    tx.put(&tree, "k", "w").expect("put");
    let reentrant = Error::Reentrant { tree: "t".to_owned() };
    assert_eq!(tree.put("k", "x"), Err(reentrant.clone()));
    assert_eq!(tree.get("k"), Ok(Some(b"v".to_vec())), "readers wait for nothing");
    other.put("k", "x").expect("of no transaction");
    tx.commit().expect("committed");
    // A closure that decides about a value changes nothing else in its transaction, and reads.
    let changed = pool.transaction(|tx| {
        tx.update(&tree, "k", |value| {
            assert_eq!(tx.remove(&tree, "k"), Err(reentrant.clone()));
            assert_eq!(tx.get(&other, "k"), Ok(Some(b"x".to_vec())));
            value.resize(3)
        })
    });
    assert_eq!(changed, Ok(Some(Ok(()))));
    assert_eq!(tree.get("k"), Ok(Some(b"w\0\0".to_vec())));
}

#[test]
fn counters_and_decisions_are_those_of_all_tables() {
    let pool = Pool::in_memory(PoolOptions::default()).expect("made");
    for layout in [TreeLayout::Bytes, TreeLayout::Fixed] {
        let tree = pool.create_tree(&format!("{layout:?}"), TreeKind::CritBit, layout);
        let tree = tree.expect("made");
        let key = 7u64.to_be_bytes();
        assert_eq!(tree.add(key, -3), Ok(-3));
        assert_eq!(tree.add(key, 45), Ok(42));
        assert_eq!(tree.add(key, i64::MAX), Err(Error::Overflow { value: 42, delta: i64::MAX }));
        let replaced = tree.compute(key, |value| {
            assert_eq!(value, Some(&42i64.to_le_bytes()[..]));
            Compute::Replace(8u64.to_le_bytes().to_vec())
        });
        assert_eq!(replaced, Ok(Computed::Replaced));
        assert_eq!(tree.compute(key, |_| Compute::Keep), Ok(Computed::Kept));
        assert_eq!(tree.compute(key, |_| Compute::Remove), Ok(Computed::Removed));
        assert_eq!(tree.compute(key, |_| Compute::Remove), Ok(Computed::Absent));
        let insert = |_: Option<&[u8]>| Compute::Replace(vec![1; 8]);
        assert_eq!(tree.compute(key, insert), Ok(Computed::Inserted));
        assert_eq!(tree.len(), Ok(1));
        let too_long = Compute::Replace(vec![1; 9]);
        if layout == TreeLayout::Fixed {
            assert!(tree.compute(key, |_| too_long).is_err());
            assert_eq!(tree.update(key, |value| value.resize(9).is_err()), Ok(Some(true)));
        } else {
            assert_eq!(tree.compute(key, |_| too_long), Ok(Computed::Replaced));
            assert_eq!(tree.add(key, 1), Err(Error::NotACounter { len: 9 }));
        }
    }
    assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
}

#[test]
fn split_points_cut_ranges_of_every_kind() {
    let pool = Pool::in_memory(PoolOptions::default()).expect("made");
    for kind in crate::model::KINDS {
        let tree = pool.create_tree(&format!("{kind:?}"), kind, TreeLayout::Bytes).expect("made");
        assert_eq!(tree.split_points(.., 8).expect("empty").entries, 0);
        pool.transaction(|tx| {
            (0..20_000u32).try_for_each(|number| {
                // In no order, so that no tree leans.
                let key = (number.wrapping_mul(2_654_435_761)).to_be_bytes();
                tx.put(&tree, key, "v").map(drop)
            })
        })
        .expect("filled");
        let (low, high) = ([0x40, 0, 0, 0], [0xc0, 0, 0, 0]);
        for parts in 1..40 {
            let points = tree.split_points(low..high, parts).expect("read");
            assert!(points.keys.len() < parts, "{kind:?} {parts}");
            assert!(parts < 20 || points.keys.len() > parts / 2, "{kind:?} {parts}");
            assert!(points.keys.is_sorted_by(|a, b| a < b));
            assert!(points.keys.iter().all(|key| key[..] > low[..] && key[..] < high[..]));
            assert!((5_000..15_000).contains(&points.entries), "{kind:?} {}", points.entries);
        }
        let few = tree.split_points(low..[0x40, 0x10, 0, 0], 4).expect("read");
        assert!((1..COUNTED).contains(&few.entries), "{kind:?} {}", few.entries);
    }
}

/// Keys of several forms: numbers as bytes and as text, in order and in none, names of owners, some of which have most.
fn keys_of_many_forms(count: u32) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let mixed = |number: u32| number.wrapping_mul(2_654_435_761);
    let of = |key: &dyn Fn(u32) -> Vec<u8>| (0..count).map(key).collect::<Vec<_>>();
    vec![
        ("bytes in order", of(&|number| number.to_be_bytes().to_vec())),
        ("bytes in no order", of(&|number| mixed(number).to_be_bytes().to_vec())),
        ("text", of(&|number| format!("user:{}", number * 37).into_bytes())),
        ("text of fixed width", of(&|number| format!("{:010}", mixed(number)).into_bytes())),
        (
            "owners",
            of(&|number| {
                // The first has a third, the second a third of what is left, and so on.
                let owner =
                    (1.0 - f64::from(mixed(number)) / 4_294_967_296.0).log(2.0 / 3.0) as u32;
                format!("owner {owner:03}/{}/{number}", mixed(owner) % 1_000).into_bytes()
            }),
        ),
        (
            "halves",
            // A half of them at each length more.
            of(&|number| {
                let ones = (number + 1).trailing_zeros() as usize;
                [&vec![b'x'; ones][..], &mixed(number).to_be_bytes()].concat()
            }),
        ),
    ]
}

#[test]
fn entries_of_ranges_are_known_within_a_factor_of_two() {
    const COUNT: usize = 40_000;
    let pool = Pool::in_memory(PoolOptions::default()).expect("made");
    for kind in crate::model::KINDS {
        for (form, mut keys) in keys_of_many_forms(COUNT as u32) {
            let tree = pool.create_tree(&format!("{kind:?} {form}"), kind, TreeLayout::Bytes);
            let tree = tree.expect("made");
            pool.transaction(|tx| keys.iter().try_for_each(|key| tx.put(&tree, key, "").map(drop)))
                .expect("filled");
            keys.sort_unstable();
            for len in [1, 40, 256, 257, 400, 1_000, 5_000, 20_000, COUNT] {
                for at in 0..8 {
                    let from = (COUNT - len) * at / 7;
                    let bounds = (
                        Bound::Included(&keys[from][..]),
                        keys.get(from + len)
                            .map_or(Bound::Unbounded, |key| Bound::Excluded(&key[..])),
                    );
                    let found = tree.split_points(bounds, 1).expect("read").entries as usize;
                    let what = format!("{kind:?} {form}: {found} of {len} from {from}");
                    assert!((len / 2..=2 * len).contains(&found), "{what}");
                    assert!(len >= COUNTED as usize || found == len, "{what}");
                }
            }
            // Parts are of about one size, but where a few subtrees of a crit-bit tree have most.
            let leans = kind == TreeKind::CritBit && ["text", "owners", "halves"].contains(&form);
            let mut borders = tree.split_points(.., 8).expect("read").keys;
            assert!(borders.len() > 4, "{kind:?} {form}: {}", borders.len());
            borders.push(vec![0xff; 9]);
            let mut begin = 0;
            for border in borders {
                let limit = keys.partition_point(|key| *key < border);
                let part = limit - begin;
                assert!(part < COUNT / 8 * 2 || leans, "{kind:?} {form}: a part of {part}");
                begin = limit;
            }
        }
    }
}

/// Entries up to which ranges are counted.
const COUNTED: u64 = 256;

#[test]
fn notes_stay_with_their_trees() {
    let disk = sapwood_disk::SimDisk::new();
    let pool = Pool::create(std::sync::Arc::new(disk.clone()), PoolOptions::default());
    let pool = pool.expect("made");
    let tree = pool.create_tree("t", TreeKind::BTree, TreeLayout::Bytes).expect("made");
    tree.put("k", "v").expect("put");
    for note in [&b"first"[..], b"", &[9; 500]] {
        pool.transaction(|tx| tx.set_note(&tree, note)).expect("noted");
        assert_eq!(pool.trees().expect("listed")[0].note, note);
    }
    pool.close().expect("closed");
    let pool = Pool::open(std::sync::Arc::new(disk), PoolOptions::default()).expect("opened");
    assert_eq!(pool.trees().expect("listed")[0].note, [9; 500]);
    assert_eq!(pool.tree("t").expect("there").get("k"), Ok(Some(b"v".to_vec())));
}

/// Objects of one word of bytes, of some and of many: a transaction keeps them in other ways.
#[test]
fn a_transaction_finds_what_it_changed_and_not_what_it_freed() {
    use sapwood_ptree::ObjectType;
    let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
    for len in [8, 24, 32, 480, 512, 5_000] {
        let make =
            |tx: &sapwood_ptree::Transaction<'_>| tx.make_object(ObjectType(1), &vec![1; len]);
        let id = pool.transaction(make).expect("committed");
        let other = pool.transaction(make).expect("committed");
        for round in 2..5 {
            let tx = pool.begin().expect("begun");
            tx.update_object(other, |bytes| bytes[0] = 9).expect("changed");
            tx.update_object(id, |bytes| bytes[len - 1] = 9).expect("changed");
            assert_eq!(tx.read_object(id).expect("read").1[len - 1], 9);
            drop(tx);
            let change = |tx: &sapwood_ptree::Transaction<'_>| {
                assert_eq!(tx.read_object(id)?.1[len - 1], round - 1, "as it was committed");
                tx.update_object(id, |bytes| bytes[len - 1] = round)?;
                let made = make(tx)?;
                tx.update_object(made, |bytes| bytes[0] = round)?;
                assert_eq!(tx.read_object(made)?.1[0], round);
                tx.free_object(made)?;
                assert_eq!(tx.read_object(made).expect_err("freed"), Error::NoObject(made));
                assert_eq!(tx.free_object(made).expect_err("freed"), Error::NoObject(made));
                assert_eq!(tx.read_object(other)?.1[0], 1);
                Ok(())
            };
            pool.transaction(change).expect("committed");
            assert_eq!(pool.read_object(id).expect("read").1[len - 1], round);
        }
        let tx = pool.begin().expect("begun");
        tx.update_object(other, |bytes| bytes[0] = 9).expect("changed");
        for id in [id, other] {
            tx.free_object(id).expect("freed");
            assert_eq!(tx.read_object(id).expect_err("freed"), Error::NoObject(id));
        }
        tx.commit().expect("committed");
    }
    assert_eq!(pool.check().expect("checked").problems, Vec::<String>::new());
}
