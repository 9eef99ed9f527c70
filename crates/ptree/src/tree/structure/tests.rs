//! What holds of every structure: it is an ordered map, whatever happens to its transactions.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::ops::Bound;

use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use sapwood_mem::sync::Ordering;

use super::*;
use crate::options::PoolOptions;
use crate::pool::Pool;
use crate::tree::btree::BTree;
use crate::tree::crit_bit::CritBit;
use crate::tree::red_black::RedBlack;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Pair = (Vec<u8>, Vec<u8>);

/// A tree of a structure in a pool of its own.
struct Subject<S> {
    pool: Pool,
    head: ObjectId,
    layout: TreeLayout,
    /// Objects of the heap besides nodes and records.
    others: u64,
    structure: PhantomData<S>,
}

impl<S: Structure> Subject<S> {
    fn new(layout: TreeLayout) -> Subject<S> {
        let pool = Pool::in_memory(PoolOptions::default()).expect("memory");
        let tx = pool.begin().expect("a transaction");
        // The kind is the verbs' matter, which are not used here.
        let head = Head::make(&tx, TreeKind::BTree, layout).expect("room");
        tx.commit().expect("a commit");
        let others = pool.heap_report().expect("a sound heap").objects;
        Subject { pool, head, layout, others, structure: PhantomData }
    }

    fn put(&self, tx: &Transaction<'_>, key: &[u8], value: &[u8]) -> Result<bool> {
        let mut head = Head::read(tx, self.head)?;
        let probe = Probe::new(key);
        match S::insert(tx, &mut head, probe, || self.layout.make(tx, probe, value))? {
            Inserted::New => Ok(true),
            Inserted::There(place, entry) => {
                let next = self.layout.replace(tx, probe, entry, value)?;
                S::set(tx, &head, place, next)?;
                Ok(false)
            }
        }
    }

    fn remove(&self, tx: &Transaction<'_>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut head = Head::read(tx, self.head)?;
        let Some(entry) = S::remove(tx, &mut head, Probe::new(key))? else { return Ok(None) };
        let mut value = Vec::new();
        self.layout.read_value(tx, entry, &mut value)?;
        self.layout.free(tx, entry)?;
        Ok(Some(value))
    }

    /// Asserts that a place has the entry that a look-up finds.
    fn assert_placed(&self, tx: &Transaction<'_>, key: &[u8]) {
        let head = Head::read(tx, self.head).expect("a head");
        let found = S::find(tx, &head, Probe::new(key)).expect("an answer");
        let placed = S::place(tx, &head, Probe::new(key)).expect("an answer");
        assert_eq!(placed.map(|(_, entry)| entry), found);
        if let Some((place, entry)) = placed {
            S::set(tx, &head, place, entry).expect("an entry is there");
        }
    }

    fn find(&self, view: &impl View, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let head = Head::read(view, self.head)?;
        let Some(entry) = S::find(view, &head, Probe::new(key))? else { return Ok(None) };
        let mut value = Vec::new();
        self.layout.read_value(view, entry, &mut value)?;
        Ok(Some(value))
    }

    fn walk(
        &self,
        view: &impl View,
        from: Bound<&[u8]>,
        direction: Direction,
        most: usize,
    ) -> Result<Vec<Pair>> {
        let head = Head::read(view, self.head)?;
        let mut told = Vec::new();
        S::walk(view, &head, from.map(Probe::new), direction, &mut |entry| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            self.layout.read_key(view, entry, &mut key)?;
            self.layout.read_value(view, entry, &mut value)?;
            told.push((key, value));
            Ok(if told.len() < most { Flow::Continue(()) } else { Flow::Break(()) })
        })?;
        Ok(told)
    }

    /// Checks the structure; its nodes, and its records.
    fn check(&self, view: &impl View) -> Result<(Vec<ObjectId>, Vec<ObjectId>)> {
        let head = Head::read(view, self.head)?;
        let (mut nodes, mut records) = (Vec::new(), Vec::new());
        let mut node = |id| {
            nodes.push(id);
            Ok(())
        };
        let mut entry = |entry| {
            records.extend(self.layout.record_of(entry));
            Ok(())
        };
        S::check(view, &head, &mut node, &mut entry)?;
        Ok((nodes, records))
    }

    /// Asserts that the tree holds what a map holds, as far as a view tells.
    fn assert_holds(&self, view: &impl View, model: &Model) {
        let (nodes, records) = self.check(view).expect("a sound tree");
        let distinct: BTreeSet<_> = nodes.iter().chain(&records).collect();
        assert_eq!(distinct.len(), nodes.len() + records.len(), "an object was told twice");
        let all = pairs(model.iter());
        let ascending = self.walk(view, Bound::Unbounded, Direction::Ascending, usize::MAX);
        assert_eq!(ascending.expect("a walk"), all);
        let descending = self.walk(view, Bound::Unbounded, Direction::Descending, usize::MAX);
        assert_eq!(descending.expect("a walk"), pairs(model.iter().rev()));
        for (key, value) in model {
            assert_eq!(self.find(view, key).expect("an answer").as_ref(), Some(value));
        }
    }

    /// Asserts that committed words hold what a map holds, and that the heap has nothing else.
    fn assert_committed(&self, model: &Model) {
        let view = self.pool.inner.committed();
        self.assert_holds(&view, model);
        let (nodes, records) = self.check(&view).expect("a sound tree");
        let objects = self.pool.heap_report().expect("a sound heap").objects;
        assert_eq!(objects, self.others + (nodes.len() + records.len()) as u64, "objects leak");
    }

    fn assert_walks_from(&self, view: &impl View, model: &Model, key: &[u8]) {
        for bound in [Bound::Included(key), Bound::Excluded(key)] {
            let ascending = self.walk(view, bound, Direction::Ascending, 9).expect("a walk");
            let right = model.range::<[u8], _>((bound, Bound::Unbounded));
            assert_eq!(ascending, pairs(right.take(9)), "up from {bound:?}");
            let descending = self.walk(view, bound, Direction::Descending, 9).expect("a walk");
            let right = model.range::<[u8], _>((Bound::Unbounded, bound));
            assert_eq!(descending, pairs(right.rev().take(9)), "down from {bound:?}");
        }
    }

    fn build(&self, tx: &Transaction<'_>, model: &Model) -> Result<()> {
        let mut head = Head::read(tx, self.head)?;
        let mut entries =
            model.iter().map(|(key, value)| self.layout.make(tx, Probe::new(key), value));
        S::build(tx, &mut head, &mut entries)
    }

    fn built(layout: TreeLayout, model: &Model) -> Subject<S> {
        let subject = Subject::new(layout);
        let tx = subject.pool.begin().expect("a transaction");
        subject.build(&tx, model).expect("a tree");
        tx.commit().expect("a commit");
        subject
    }
}

fn pairs<'m>(entries: impl Iterator<Item = (&'m Vec<u8>, &'m Vec<u8>)>) -> Vec<Pair> {
    entries.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// A key such as trees find hard: of few bytes and some lengths, often the beginning of another.
fn key(rng: &mut ChaCha8Rng, layout: TreeLayout) -> Vec<u8> {
    if layout == TreeLayout::Fixed {
        let key: u64 = match rng.random_range(0..4) {
            0 => rng.random_range(0..40),
            1 => u64::MAX - rng.random_range(0..40),
            2 => 1 << rng.random_range(0..64),
            _ => rng.random_range(0..400) << 40,
        };
        return key.to_be_bytes().to_vec();
    }
    let bytes: &[u8] = &[0, 0, 0, 1, 0x7f, 0x80, 0xff];
    let len = [0, 1, 2, 7, 8, 9, 15, 16, 17, 300][rng.random_range(0..10)];
    let filled = bytes[rng.random_range(0..bytes.len())];
    let mut key = vec![filled; len];
    for _ in 0..rng.random_range(0..3) {
        if len > 0 {
            let at = if rng.random() { rng.random_range(0..len) } else { len - 1 };
            key[at] = bytes[rng.random_range(0..bytes.len())];
        }
    }
    key
}

fn value(rng: &mut ChaCha8Rng, layout: TreeLayout) -> Vec<u8> {
    let len = match layout {
        TreeLayout::Fixed => 8,
        TreeLayout::Bytes => [0, 1, 8, 9, 70][rng.random_range(0..5)],
    };
    (0..len).map(|_| rng.random()).collect()
}

fn model_of(rng: &mut ChaCha8Rng, layout: TreeLayout, entries: usize) -> Model {
    (0..entries).map(|_| (key(rng, layout), value(rng, layout))).collect()
}

const LAYOUTS: [TreeLayout; 2] = [TreeLayout::Fixed, TreeLayout::Bytes];

fn transactions_agree_with_a_map<S: Structure>() {
    for seed in 0..60 {
        for layout in LAYOUTS {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let subject = Subject::<S>::new(layout);
            let mut committed = Model::new();
            // Some streams grow, and some shrink down to nothing again and again.
            let removals = rng.random_range(2..8);
            for _ in 0..40 {
                let tx = subject.pool.begin().expect("a transaction");
                let mut model = committed.clone();
                for _ in 0..rng.random_range(1..20) {
                    let mut key = key(&mut rng, layout);
                    if rng.random_range(0..10) < removals {
                        let present = model.range(key.clone()..).next().map(|(key, _)| key.clone());
                        key = present.unwrap_or(key);
                        let removed = subject.remove(&tx, &key).expect("an answer");
                        assert_eq!(removed, model.remove(&key), "seed {seed}");
                    } else {
                        let value = value(&mut rng, layout);
                        let is_new = subject.put(&tx, &key, &value).expect("an answer");
                        assert_eq!(is_new, model.insert(key, value).is_none(), "seed {seed}");
                    }
                }
                subject.assert_placed(&tx, &key(&mut rng, layout));
                subject.assert_holds(&tx, &model);
                if rng.random() {
                    tx.commit().expect("a commit");
                    committed = model;
                } else {
                    tx.abort();
                }
                subject.assert_committed(&committed);
                let absent = key(&mut rng, layout);
                let found = subject.find(&subject.pool.inner.committed(), &absent);
                assert_eq!(found.expect("an answer"), committed.get(&absent).cloned());
            }
        }
    }
}

fn walks_begin_at_every_bound<S: Structure>() {
    for seed in 0..20 {
        for layout in LAYOUTS {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let entries = rng.random_range(0..60);
            let model = model_of(&mut rng, layout, entries);
            let subject = Subject::<S>::built(layout, &model);
            let view = subject.pool.inner.committed();
            for key in model.keys() {
                subject.assert_walks_from(&view, &model, key);
            }
            for _ in 0..60 {
                subject.assert_walks_from(&view, &model, &key(&mut rng, layout));
            }
        }
    }
}

fn trees_of_every_size_are_built_and_taken_down_to_nothing<S: Structure>() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for layout in LAYOUTS {
        for entries in (0..70).chain([300, 1000]) {
            let mut model = model_of(&mut rng, layout, entries);
            let subject = Subject::<S>::built(layout, &model);
            subject.assert_committed(&model);
            let step = model.len() / 7 + 1;
            while !model.is_empty() {
                let tx = subject.pool.begin().expect("a transaction");
                for _ in 0..step.min(model.len()) {
                    let at = rng.random_range(0..model.len());
                    let key = model.keys().nth(at).expect("a key").clone();
                    assert_eq!(subject.remove(&tx, &key).expect("an answer"), model.remove(&key));
                }
                tx.commit().expect("a commit");
                subject.assert_committed(&model);
            }
            let objects = subject.pool.heap_report().expect("a sound heap").objects;
            assert_eq!(objects, subject.others);
        }
    }
}

fn ascending_and_descending_keys_come_and_go<S: Structure>() {
    let keys: Vec<_> = (0..500_u64).map(|key| key.to_be_bytes()).collect();
    let descending: Vec<_> = keys.iter().rev().copied().collect();
    for layout in LAYOUTS {
        for inserted in [&keys, &descending] {
            for removed in [&keys, &descending] {
                let subject = Subject::<S>::new(layout);
                let mut model = Model::new();
                for (number, key) in inserted.iter().enumerate() {
                    let tx = subject.pool.begin().expect("a transaction");
                    assert!(subject.put(&tx, key, key).expect("room"));
                    tx.commit().expect("a commit");
                    model.insert(key.to_vec(), key.to_vec());
                    if number % 50 == 0 {
                        subject.assert_committed(&model);
                    }
                }
                for (number, key) in removed.iter().enumerate() {
                    let tx = subject.pool.begin().expect("a transaction");
                    assert_eq!(subject.remove(&tx, key).expect("an answer"), Some(key.to_vec()));
                    tx.commit().expect("a commit");
                    model.remove(&key[..]);
                    if number % 50 == 0 {
                        subject.assert_committed(&model);
                    }
                }
                subject.assert_committed(&model);
            }
        }
    }
}

fn keys_that_begin_others_are_keys_of_their_own<S: Structure>() {
    let subject = Subject::<S>::new(TreeLayout::Bytes);
    let mut model = Model::new();
    for filled in [0, 1, 0xff] {
        for len in 0..40 {
            model.insert(vec![filled; len], vec![filled; 3]);
        }
    }
    model.insert(vec![0; 65_535], vec![1]);
    model.insert([vec![0; 65_534], vec![1]].concat(), vec![2]);
    let tx = subject.pool.begin().expect("a transaction");
    for (number, (key, value)) in model.iter().enumerate() {
        assert!(subject.put(&tx, key, value).expect("room"), "key {number}");
        assert!(!subject.put(&tx, key, value).expect("room"), "key {number} again");
    }
    tx.commit().expect("a commit");
    subject.assert_committed(&model);
    for key in model.keys() {
        subject.assert_walks_from(&subject.pool.inner.committed(), &model, key);
    }
}

fn an_entry_that_is_refused_leaves_the_tree_as_it_was<S: Structure>() {
    for layout in LAYOUTS {
        let mut model = model_of(&mut ChaCha8Rng::seed_from_u64(5), layout, 20);
        model.remove(&[0; 8][..]);
        let subject = Subject::<S>::built(layout, &model);
        let tx = subject.pool.begin().expect("a transaction");
        let mut head = Head::read(&tx, subject.head).expect("a head");
        let refused = S::insert(&tx, &mut head, Probe::new(&[0; 8]), || Err(Error::ReadOnly));
        assert_eq!(refused, Err(Error::ReadOnly));
        subject.assert_holds(&tx, &model);
        tx.commit().expect("the transaction goes on");
        subject.assert_committed(&model);
    }
}

/// A word that is stored over another: any, a small one, or the name of a node and some bits.
#[derive(Debug, Clone)]
enum Scribble {
    Any(u64),
    Small(u64),
    Node(prop::sample::Index, u64),
}

fn scribbles() -> impl Strategy<Value = Vec<(prop::sample::Index, usize, Scribble)>> {
    let word = prop_oneof![
        any::<u64>().prop_map(Scribble::Any),
        (0_u64..1 << 20).prop_map(Scribble::Small),
        (any::<prop::sample::Index>(), 0_u64..1 << 16)
            .prop_map(|(node, high)| Scribble::Node(node, high << 48)),
        (any::<prop::sample::Index>(), prop_oneof![Just(0), Just(1 << 63)])
            .prop_map(|(node, high)| Scribble::Node(node, high)),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 1_usize..6, word), 1..12)
}

fn survives<S: Structure>(
    layout: TreeLayout,
    seed: u64,
    scribbles: &[(prop::sample::Index, usize, Scribble)],
) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let model = model_of(&mut rng, layout, 50);
    let subject = Subject::<S>::built(layout, &model);
    let view = subject.pool.inner.committed();
    let (nodes, records) = subject.check(&view).expect("a sound tree");
    let objects: Vec<_> = nodes.iter().chain(&records).copied().collect();
    for (object, word, scribble) in scribbles {
        let at = object.get(&objects).index() + word;
        let value = match scribble {
            Scribble::Any(word) | Scribble::Small(word) => *word,
            Scribble::Node(node, high) => node.get(&nodes).word() | high,
        };
        if let Some([word]) = subject.pool.inner.space.get(at, 1) {
            word.store(value, Ordering::Relaxed);
        }
    }
    // Whatever the answers are: there are some, soon.
    let _ = subject.check(&view);
    for key in model.keys() {
        let _ = subject.find(&view, key);
        for direction in [Direction::Ascending, Direction::Descending] {
            for bound in [Bound::Unbounded, Bound::Included(&key[..]), Bound::Excluded(key)] {
                let _ = subject.walk(&view, bound, direction, usize::MAX);
            }
        }
    }
    for _ in 0..20 {
        let tx = subject.pool.begin().expect("a transaction");
        let key = key(&mut rng, layout);
        let _ = subject.put(&tx, &key, &value(&mut rng, layout));
        let _ = subject.remove(&tx, &key);
        if let Some((key, _)) = model.range(key..).next() {
            let _ = subject.remove(&tx, key);
        }
    }
}

/// Measures a structure: nanoseconds an operation, the least of some rounds, of random keys in a pool
/// in memory.
fn measure<S: Structure>(entries: usize, rounds: usize) {
    let mut least = BTreeMap::new();
    for _ in 0..rounds {
        measure_once::<S>(entries, &mut |what, ns| {
            let least = least.entry(what).or_insert(ns);
            *least = ns.min(*least);
        });
    }
    for (what, ns) in least {
        println!("{what}: {ns} ns");
    }
}

fn measure_once<S: Structure>(entries: usize, tell: &mut dyn FnMut(&'static str, usize)) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut keys: Vec<[u8; 8]> = (0..entries).map(|_| rng.random::<u64>().to_be_bytes()).collect();
    let mut timed = |what: &'static str, run: &mut dyn FnMut(&[[u8; 8]])| {
        keys.shuffle(&mut rng);
        let begin = std::time::Instant::now();
        run(&keys);
        tell(what, begin.elapsed().as_nanos() as usize / keys.len());
    };
    let mut map = BTreeMap::new();
    timed("std insert", &mut |keys| map.extend(keys.iter().map(|key| (*key, *key))));
    timed("std look-up", &mut |keys| assert!(keys.iter().all(|key| map.contains_key(key))));
    drop(map);
    let subject = Subject::<S>::new(TreeLayout::Fixed);
    let view = subject.pool.inner.committed();
    timed("insert, a transaction each", &mut |keys| {
        for key in keys {
            let tx = subject.pool.begin().expect("a transaction");
            subject.put(&tx, key, key).expect("room");
            tx.commit().expect("a commit");
        }
    });
    timed("look-up", &mut |keys| {
        for key in keys {
            let head = Head::read(&view, subject.head).expect("a head");
            assert!(S::find(&view, &head, Probe::new(key)).expect("an answer").is_some());
        }
    });
    timed("walk", &mut |keys| {
        let head = Head::read(&view, subject.head).expect("a head");
        let mut told = 0;
        S::walk(&view, &head, Bound::Unbounded, Direction::Ascending, &mut |_| {
            told += 1;
            Ok(Flow::Continue(()))
        })
        .expect("a walk");
        assert_eq!(told, keys.len());
    });
    timed("remove, a transaction each", &mut |keys| {
        for key in keys {
            let tx = subject.pool.begin().expect("a transaction");
            subject.remove(&tx, key).expect("an answer").expect("an entry");
            tx.commit().expect("a commit");
        }
    });
    let subject = Subject::<S>::new(TreeLayout::Fixed);
    timed("insert, one transaction", &mut |keys| {
        let tx = subject.pool.begin().expect("a transaction");
        for key in keys {
            subject.put(&tx, key, key).expect("room");
        }
        tx.commit().expect("a commit");
    });
    timed("remove, one transaction", &mut |keys| {
        let tx = subject.pool.begin().expect("a transaction");
        for key in keys {
            subject.remove(&tx, key).expect("an answer").expect("an entry");
        }
        tx.commit().expect("a commit");
    });
}

/// The tests of a structure.
macro_rules! structure_tests {
    ($structure:ident, $($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                super::$name::<$structure>();
            }
        )*

        #[test]
        #[ignore = "a measurement: run it with --release --nocapture"]
        fn bench_binary() {
            measure::<$structure>(1_000_000, 3);
        }

        proptest! {
            #[test]
            fn any_words_in_nodes_have_an_answer(
                layout in prop::sample::select(&LAYOUTS),
                seed: u64,
                scribbles in scribbles(),
            ) {
                survives::<$structure>(layout, seed, &scribbles);
            }
        }
    };
    ($structure:ident) => {
        structure_tests!(
            $structure,
            transactions_agree_with_a_map,
            walks_begin_at_every_bound,
            trees_of_every_size_are_built_and_taken_down_to_nothing,
            ascending_and_descending_keys_come_and_go,
            keys_that_begin_others_are_keys_of_their_own,
            an_entry_that_is_refused_leaves_the_tree_as_it_was
        );
    };
}

mod btree {
    use super::*;
    structure_tests!(BTree);
}

mod crit_bit {
    use super::*;
    structure_tests!(CritBit);
}

mod red_black {
    use super::*;
    structure_tests!(RedBlack);
}
