//! B-trees against the standard library's, on damaged words, and how fast they are.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Instant;

use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};
use sapwood_mem::sync::Ordering;

use super::*;
use crate::error::Error;
use crate::options::PoolOptions;
use crate::pool::Pool;
use crate::tree::entry::TreeLayout;
use crate::tree::structure::TreeKind;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A tree on a heap of its own.
struct Tested {
    pool: Pool,
    head: ObjectId,
    layout: TreeLayout,
    /// Objects before the first entry.
    objects: u64,
}

fn put(tx: &Transaction<'_>, head: &mut Head, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
    let (key, layout) = (Probe::new(key), head.layout);
    match BTree::insert(tx, head, key, || layout.make(tx, key, value))? {
        Inserted::New => Ok(None),
        Inserted::There(place, entry) => {
            let mut old = Vec::new();
            layout.read_value(tx, entry, &mut old)?;
            assert_eq!(BTree::place(tx, head, key)?, Some((place, entry)));
            let changed = layout.replace(tx, key, entry, value)?;
            BTree::set(tx, head, place, changed)?;
            Ok(Some(old))
        }
    }
}

fn take(tx: &Transaction<'_>, head: &mut Head, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(entry) = BTree::remove(tx, head, Probe::new(key))? else { return Ok(None) };
    let mut old = Vec::new();
    head.layout.read_value(tx, entry, &mut old)?;
    head.layout.free(tx, entry)?;
    Ok(Some(old))
}

fn find(view: &impl View, head: &Head, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(entry) = BTree::find(view, head, Probe::new(key))? else { return Ok(None) };
    let mut value = Vec::new();
    head.layout.read_value(view, entry, &mut value)?;
    Ok(Some(value))
}

/// At most `most` entries of a walk.
fn told(
    view: &impl View,
    head: &Head,
    from: Bound<&[u8]>,
    direction: Direction,
    most: usize,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut told = Vec::new();
    BTree::walk(view, head, from.map(Probe::new), direction, &mut |entry| {
        if told.len() == most {
            return Ok(Flow::Break(()));
        }
        let (mut key, mut value) = (Vec::new(), Vec::new());
        head.layout.read_key(view, entry, &mut key)?;
        head.layout.read_value(view, entry, &mut value)?;
        told.push((key, value));
        Ok(Flow::Continue(()))
    })?;
    Ok(told)
}

/// Compares a tree with its model: all of it, and from some keys on.
fn compare(view: &impl View, head: &Head, model: &Model, keys: &[Vec<u8>]) {
    let pairs = |pair: (&Vec<u8>, &Vec<u8>)| (pair.0.clone(), pair.1.clone());
    assert_eq!(head.count, model.len() as u64);
    let all: Vec<_> = model.iter().map(pairs).collect();
    let ascending = told(view, head, Bound::Unbounded, Direction::Ascending, usize::MAX);
    assert_eq!(ascending.expect("a sound tree"), all);
    let mut descending = told(view, head, Bound::Unbounded, Direction::Descending, usize::MAX)
        .expect("a sound tree");
    descending.reverse();
    assert_eq!(descending, all);
    for key in keys {
        assert_eq!(find(view, head, key).expect("a sound tree").as_ref(), model.get(key));
        for bound in [Bound::Included(key), Bound::Excluded(key)] {
            let view_from = |direction| {
                told(view, head, bound.map(|key| &key[..]), direction, 70).expect("a sound tree")
            };
            let above = model.range::<Vec<u8>, _>((bound, Bound::Unbounded)).take(70).map(pairs);
            assert_eq!(view_from(Direction::Ascending), above.collect::<Vec<_>>());
            let below =
                model.range::<Vec<u8>, _>((Bound::Unbounded, bound)).rev().take(70).map(pairs);
            assert_eq!(view_from(Direction::Descending), below.collect::<Vec<_>>());
        }
    }
}

impl Tested {
    fn new(layout: TreeLayout) -> Tested {
        Tested::on(Pool::in_memory(PoolOptions::default()).expect("a pool"), layout)
    }

    fn on(pool: Pool, layout: TreeLayout) -> Tested {
        let head = pool.transaction(|tx| Head::make(tx, TreeKind::BTree, layout)).expect("a head");
        let objects = pool.heap_report().expect("a sound heap").objects;
        Tested { pool, head, layout, objects }
    }

    fn head(&self) -> Head {
        Head::read(&self.pool.inner.committed(), self.head).expect("a head")
    }

    fn change<R>(
        &self,
        change: impl FnOnce(&Transaction<'_>, &mut Head) -> Result<R>,
    ) -> Result<R> {
        self.pool.transaction(|tx| {
            let mut head = Head::read(tx, self.head)?;
            change(tx, &mut head)
        })
    }

    /// Checks the tree and that every object of the heap is one of it.
    fn check(&self) -> Result<()> {
        let view = self.pool.inner.committed();
        let (mut nodes, mut records) = (0, 0);
        let mut node = |_| {
            nodes += 1;
            Ok(())
        };
        let mut entry = |entry| {
            records += u64::from(self.layout.record_of(entry).is_some());
            Ok(())
        };
        BTree::check(&view, &self.head(), &mut node, &mut entry)?;
        let report = self.pool.heap_report()?;
        assert_eq!(report.objects, self.objects + nodes + records, "nothing leaks");
        Ok(())
    }
}

/// Keys that a layout finds hard: shared prefixes, prefixes of others, zeros and ones.
fn key(layout: TreeLayout, random: &mut ChaCha8Rng, space: u32) -> Vec<u8> {
    let number = random.random_range(0..space);
    if layout == TreeLayout::Fixed {
        let spread = match random.random_range(0..20) {
            0 => u64::MAX - u64::from(number % 3),
            1 => u64::from(number % 3),
            _ => u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        return spread.to_be_bytes().to_vec();
    }
    let prefix: &[u8] =
        [&b""[..], b"\0\0\0\0\0\0\0\0", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"01234567"]
            [random.random_range(0..4)];
    let len = [0, 1, 7, 8, 9, 16, 300][random.random_range(0..7)];
    let mut key = prefix.to_vec();
    let digits = number.to_be_bytes();
    let zeros = random.random_range(0..2) == 0;
    key.extend((0..len).map(|index| match zeros {
        true if index + 4 < len => 0,
        _ => digits[(index + 4 - len % 4) % 4],
    }));
    key.truncate(len.max(prefix.len().min(len)));
    key
}

fn value(layout: TreeLayout, random: &mut ChaCha8Rng) -> Vec<u8> {
    let len = match layout {
        TreeLayout::Fixed => 8,
        TreeLayout::Bytes => random.random_range(0..20),
    };
    let mut value = vec![0; len];
    random.fill_bytes(&mut value);
    value
}

/// Transactions of random changes, some of which are aborted, beside a model.
fn stream(layout: TreeLayout, seed: u64, transactions: usize, space: u32) {
    let tested = Tested::new(layout);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut model = Model::new();
    for round in 0..transactions {
        let tx = tested.pool.begin().expect("a transaction");
        let mut head = Head::read(&tx, tested.head).expect("a head");
        let mut changed = model.clone();
        let mut keys = Vec::new();
        // The tree grows, then shrinks, then grows again.
        let inserts = if round / 40 % 2 == 0 { 8 } else { 2 };
        for _ in 0..random.random_range(0..60) {
            let key = match changed.range(key(layout, &mut random, space)..).next() {
                Some((key, _)) if random.random_range(0..2) == 0 => key.clone(),
                _ => key(layout, &mut random, space),
            };
            if random.random_range(0..10) < inserts {
                let value = value(layout, &mut random);
                let old = put(&tx, &mut head, &key, &value).expect("a change");
                assert_eq!(old, changed.insert(key.clone(), value), "seed {seed}");
            } else {
                let old = take(&tx, &mut head, &key).expect("a change");
                assert_eq!(old, changed.remove(&key), "seed {seed}");
            }
            keys.push(key);
        }
        keys.truncate(5);
        compare(&tx, &head, &changed, &keys);
        if random.random_range(0..4) == 0 {
            tx.abort();
        } else {
            tx.commit().expect("a commit");
            model = changed;
        }
        tested.check().expect("a sound tree");
        compare(&tested.pool.inner.committed(), &tested.head(), &model, &keys);
    }
    while let Some(key) = model.keys().nth(random.random_range(0..model.len().max(1))).cloned() {
        let old = tested.change(|tx, head| take(tx, head, &key)).expect("a change");
        assert_eq!(old, model.remove(&key));
    }
    tested.check().expect("a sound tree");
    assert_eq!((tested.head().root, tested.head().height), (0, 0), "no node is left");
    let report = tested.pool.heap_report().expect("a sound heap");
    assert_eq!(report.objects, tested.objects);
}

#[test]
fn a_stream_of_fixed_keys_does_what_the_standard_map_does() {
    for seed in 0..4 {
        stream(TreeLayout::Fixed, seed, 120, 3000);
        stream(TreeLayout::Fixed, 100 + seed, 60, 40);
    }
}

#[test]
fn a_stream_of_byte_keys_does_what_the_standard_map_does() {
    for seed in 0..4 {
        stream(TreeLayout::Bytes, seed, 120, 3000);
        stream(TreeLayout::Bytes, 100 + seed, 60, 40);
    }
}

fn number(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

#[test]
fn keys_in_order_leave_full_nodes_and_others_half_full_ones_at_least() {
    let orders: [(&str, Vec<u64>, u64); 3] = [
        ("ascending", (0..20_000).collect(), 20),
        ("descending", (0..20_000).rev().collect(), 20),
        ("shuffled", (0..20_000).map(|key| key * 7919 % 20_011).collect(), 13),
    ];
    for (what, keys, least) in orders {
        let tested = Tested::new(TreeLayout::Fixed);
        for part in keys.chunks(100) {
            let insert = |tx: &Transaction<'_>, head: &mut Head| {
                part.iter().try_for_each(|&key| put(tx, head, &number(key), &[0; 8]).map(|_| ()))
            };
            tested.change(insert).expect("a change");
            tested.check().expect("a sound tree");
        }
        let nodes = tested.pool.heap_report().expect("a sound heap").objects - tested.objects;
        let fill = keys.len() as u64 / nodes;
        assert!(fill >= least - 1, "{what}: {fill} entries a node");
    }
}

#[test]
fn trees_of_every_size_are_built_full_and_take_changes() {
    for layout in [TreeLayout::Fixed, TreeLayout::Bytes] {
        let sizes =
            (0..100).chain([630, 650, 651, 652, 671, 13_670, 20_180, 20_181, 20_182, 22_000]);
        for size in sizes {
            let tested = Tested::new(layout);
            let mut model: Model =
                (0..size).map(|key| (number(2 * key).to_vec(), number(key).to_vec())).collect();
            let build = |tx: &Transaction<'_>, head: &mut Head| {
                let mut entries =
                    model.iter().map(|(key, value)| layout.make(tx, Probe::new(key), value));
                BTree::build(tx, head, &mut entries)
            };
            tested.change(build).expect("a tree");
            tested.check().expect("a sound tree");
            compare(&tested.pool.inner.committed(), &tested.head(), &model, &[number(size).into()]);
            let classes = tested.pool.heap_report().expect("a sound heap").classes;
            let leaves = classes.iter().find(|class| class.slot_bytes == 384);
            assert!(leaves.map_or(0, |class| class.taken) <= size.div_ceil(21) + 1, "full leaves");
            let change = |tx: &Transaction<'_>, head: &mut Head| {
                put(tx, head, &number(size + 1), b"12345678")?;
                take(tx, head, &number(0))
            };
            tested.change(change).expect("a change");
            model.insert(number(size + 1).into(), b"12345678".into());
            model.remove(&number(0)[..]);
            tested.check().expect("a sound tree");
            compare(&tested.pool.inner.committed(), &tested.head(), &model, &[]);
        }
    }
}

#[test]
fn memory_follows_the_number_of_entries() {
    let tested = Tested::new(TreeLayout::Fixed);
    let keys = 30_000u64;
    for part in 0..keys / 100 {
        let fill = |tx: &Transaction<'_>, head: &mut Head| {
            (0..100).try_for_each(|key| {
                put(tx, head, &number((part * 100 + key) * 7919 % 30_011), &[0; 8]).map(|_| ())
            })
        };
        tested.change(fill).expect("a change");
    }
    let mut left = keys;
    for key in (0..keys).map(|key| key * 104_729 % 30_011) {
        let removed = tested.change(|tx, head| take(tx, head, &number(key))).expect("a change");
        left -= u64::from(removed.is_some());
        if left.is_multiple_of(1000) {
            tested.check().expect("a sound tree");
            let nodes = tested.pool.heap_report().expect("a sound heap").objects - tested.objects;
            assert!(nodes <= left / fill_least(LEAF) as u64 + 3, "{nodes} nodes of {left} entries");
        }
    }
}

#[test]
fn what_fails_before_a_change_leaves_the_tree_as_it_was() {
    let tested = Tested::new(TreeLayout::Fixed);
    // Sizes of full nodes on one, two and three levels are among these.
    for key in 0..2000u64 {
        let refused = |tx: &Transaction<'_>, head: &mut Head| {
            let make = || Err(Error::Options("no".into()));
            let refused = BTree::insert(tx, head, Probe::new(&number(key)), make);
            assert_eq!(refused, Err(Error::Options("no".into())));
            assert_eq!(head.count, key);
            Ok(())
        };
        tested.change(refused).expect("a change");
        tested.check().expect("a sound tree");
        tested.change(|tx, head| put(tx, head, &number(key), &[0; 8])).expect("a change");
    }
}

#[test]
fn a_full_heap_refuses_an_insert_and_keeps_the_transaction() {
    let options = PoolOptions::default().limit_bytes(64 << 20);
    let pool = Pool::in_memory(options).expect("a pool");
    let head =
        pool.transaction(|tx| Head::make(tx, TreeKind::BTree, TreeLayout::Fixed)).expect("a head");
    let tx = pool.begin().expect("a transaction");
    let mut head = Head::read(&tx, head).expect("a head");
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let error = loop {
        if let Err(error) = put(&tx, &mut head, &number(random.next_u64()), &[0; 8]) {
            break error;
        }
    };
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    let mut count = 0;
    let mut entry = |_| {
        count += 1;
        Ok(())
    };
    BTree::check(&tx, &head, &mut |_| Ok(()), &mut entry).expect("a sound tree");
    assert!(count > 1 << 20 && count == head.count);
    tx.commit().expect("a commit");
}

/// A tree of a few levels, and all of its nodes.
fn damaged(layout: TreeLayout, entries: u64) -> (Tested, Vec<ObjectId>) {
    let tested = Tested::new(layout);
    let fill = |tx: &Transaction<'_>, head: &mut Head| {
        (0..entries).try_for_each(|key| {
            put(tx, head, &number(key * 7919 % 10_007), b"12345678").map(|_| ())
        })
    };
    tested.change(fill).expect("a change");
    let mut nodes = vec![tested.head];
    let mut node = |id| {
        nodes.push(id);
        Ok(())
    };
    let view = tested.pool.inner.committed();
    BTree::check(&view, &tested.head(), &mut node, &mut |_| Ok(())).expect("a sound tree");
    (tested, nodes)
}

/// Whatever is done to a damaged tree comes to an end.
fn try_everything(tested: &Tested, key: u64) {
    let view = tested.pool.inner.committed();
    let Ok(head) = Head::read(&view, tested.head) else { return };
    let key = number(key);
    let _ = find(&view, &head, &key);
    for direction in [Direction::Ascending, Direction::Descending] {
        for from in [Bound::Unbounded, Bound::Included(&key[..]), Bound::Excluded(&key[..])] {
            let _ = BTree::walk(&view, &head, from.map(Probe::new), direction, &mut |_| {
                Ok(Flow::Continue(()))
            });
        }
    }
    let _ = BTree::check(&view, &head, &mut |_| Ok(()), &mut |_| Ok(()));
    let Ok(tx) = tested.pool.begin() else { return };
    let Ok(mut head) = Head::read(&tx, tested.head) else { return };
    let _ = put(&tx, &mut head, &key, b"abcdefgh");
    let _ = take(&tx, &mut head, &key);
    let _ = take(&tx, &mut head, &number(5000));
}

proptest! {
    #[test]
    fn damage_is_told_and_never_a_panic_or_a_loop(
        fixed in any::<bool>(),
        scribbles in prop::collection::vec((any::<prop::sample::Index>(), 1_usize..97, any::<u64>(), 0_u8..4), 1..12),
        key in 0_u64..10_007,
    ) {
        let layout = if fixed { TreeLayout::Fixed } else { TreeLayout::Bytes };
        let (tested, nodes) = damaged(layout, 2000);
        for (node, word, value, what) in scribbles {
            let id = nodes[node.index(nodes.len())];
            let word = if id == tested.head { 1 + word % 7 } else { word };
            let Some(found) = tested.pool.inner.space.get(id.index(), word + 1) else { continue };
            let old = found[word].load(Ordering::Relaxed);
            found[word].store(
                match what {
                    0 => value,
                    1 => old ^ 1 << (value % 64),
                    2 => nodes[value as usize % nodes.len()].word(),
                    _ => old.wrapping_add(value % 5),
                },
                Ordering::Relaxed,
            );
        }
        try_everything(&tested, key);
    }
}

#[test]
fn a_child_that_leads_up_again_or_to_a_neighbour_is_told() {
    let (tested, nodes) = damaged(TreeLayout::Fixed, 10_000);
    let space = &tested.pool.inner.space;
    let root = ObjectId::new(tested.head().root);
    let children = 33..65;
    for target in [root, nodes[1], nodes[2], ObjectId::NULL, ObjectId::new(u64::MAX)] {
        for word in children.clone() {
            let word = &space.get(root.index(), 96).expect("the root")[word];
            let old = word.load(Ordering::Relaxed);
            word.store(target.word(), Ordering::Relaxed);
            try_everything(&tested, 77);
            word.store(old, Ordering::Relaxed);
        }
    }
    let view = tested.pool.inner.committed();
    let word = &space.get(root.index(), 96).expect("the root")[34];
    let leftmost = space.get(root.index(), 96).expect("the root")[33].load(Ordering::Relaxed);
    word.store(leftmost, Ordering::Relaxed);
    let walked =
        BTree::walk(&view, &tested.head(), Bound::Unbounded, Direction::Ascending, &mut |_| {
            Ok(Flow::Continue(()))
        });
    assert!(matches!(walked, Err(Error::Corrupt { .. })));
    assert!(matches!(tested.check(), Err(Error::Corrupt { .. })));
}

const BENCH_KEYS: usize = 1_000_000;

/// Runs `change` and prints what it took for a key.
fn timed(what: &str, change: impl FnOnce()) {
    let from = Instant::now();
    change();
    println!("{what:32} {:6.1} ns", from.elapsed().as_nanos() as f64 / BENCH_KEYS as f64);
}

fn shuffle(keys: &mut [u64], random: &mut ChaCha8Rng) {
    for index in (1..keys.len()).rev() {
        keys.swap(index, random.random_range(..=index));
    }
}

/// Inserts or removes keys, so many to a transaction, and prints what that takes.
fn bench_changes(
    tested: &Tested,
    keys: &[u64],
    to_each: usize,
    (what, change): (&str, fn(&Transaction<'_>, &mut Head, u64) -> Result<()>),
) {
    timed(&format!("{what}, {to_each} to a transaction"), || {
        for part in keys.chunks(to_each) {
            let tx = tested.pool.begin().expect("a transaction");
            for key in part {
                let mut head = Head::read(&tx, tested.head).expect("a head");
                change(&tx, &mut head, *key).expect("a change");
            }
            tx.commit().expect("a commit");
        }
    });
}

const INSERT: (&str, fn(&Transaction<'_>, &mut Head, u64) -> Result<()>) =
    ("insert", |tx, head, key| {
        let entry = Entry { a: key, b: key };
        BTree::insert(tx, head, Probe::new(&number(key)), || Ok(entry)).map(|_| ())
    });
const REMOVE: (&str, fn(&Transaction<'_>, &mut Head, u64) -> Result<()>) =
    ("remove", |tx, head, key| BTree::remove(tx, head, Probe::new(&number(key))).map(|_| ()));

/// A million random keys; prints what operations take, beside the standard library's map.
#[test]
#[ignore = "a measurement: run it with --release --nocapture"]
fn bench_btree() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut keys: Vec<u64> = (0..BENCH_KEYS).map(|_| random.next_u64()).collect();
    let sum = keys.iter().fold(0u64, |sum, key| sum.wrapping_add(*key));
    for round in 0..2 {
        println!("round {round}");
        let mut std = BTreeMap::new();
        timed("std insert", || std.extend(keys.iter().map(|key| (*key, *key))));
        let tested = Tested::new(TreeLayout::Fixed);
        bench_changes(&tested, &keys, 1, INSERT);
        shuffle(&mut keys, &mut random);
        timed("std look-up", || {
            assert_eq!(keys.iter().fold(0u64, |sum, key| sum.wrapping_add(std[key])), sum);
        });
        timed("look-up", || {
            let view = tested.pool.inner.committed();
            let found = keys.iter().fold(0u64, |sum, key| {
                let found = BTree::find(&view, &tested.head(), Probe::new(&number(*key)));
                sum.wrapping_add(found.expect("a sound tree").expect("an entry").b)
            });
            assert_eq!(found, sum);
        });
        for direction in [Direction::Ascending, Direction::Descending] {
            timed(&format!("walk, {direction:?}"), || {
                let view = tested.pool.inner.committed();
                let mut told = 0u64;
                let mut tell = |entry: Entry| {
                    told = told.wrapping_add(entry.b);
                    Ok(Flow::Continue(()))
                };
                BTree::walk(&view, &tested.head(), Bound::Unbounded, direction, &mut tell)
                    .expect("a sound tree");
                assert_eq!(told, sum);
            });
        }
        tested.check().expect("a sound tree");
        let heap_bytes = tested.pool.heap_bytes();
        println!("{:32} {:6.1} MiB", "heap", heap_bytes as f64 / (1 << 20) as f64);
        timed("std remove", || assert!(keys.iter().all(|key| std.remove(key).is_some())));
        bench_changes(&tested, &keys, 1, REMOVE);
        tested.check().expect("a sound tree");
        bench_changes(&tested, &keys, BENCH_KEYS, INSERT);
        bench_changes(&tested, &keys, BENCH_KEYS, REMOVE);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let disk = std::sync::Arc::new(sapwood_disk::FileDisk::open(folder.path()).expect("a disk"));
    let pool = Pool::create(disk, PoolOptions::default()).expect("a pool");
    let tested = Tested::on(pool, TreeLayout::Fixed);
    for change in [INSERT, REMOVE] {
        let begin = tested.pool.inner.last_commit().position();
        bench_changes(&tested, &keys, 1, change);
        let bytes = tested.pool.inner.last_commit().position() - begin;
        println!("{:32} {:6.1} bytes", "of the log", bytes as f64 / BENCH_KEYS as f64);
    }
}
