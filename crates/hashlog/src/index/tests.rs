//! What if others change the bucket between an insert's look at it and its first write to it?
//! They are played by one thread, so that it happens each time; loom models that they are others.

use super::*;
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    static OTHERS: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Called by an insert that has chosen a vacant slot.
pub(super) fn meanwhile() {
    if let Some(others) = OTHERS.take() {
        others();
    }
}

/// Keys of bucket 0 of two, whose tags differ, and of which a split moves the first alone.
const KEY: u64 = 0b0110;
const GONE: u64 = 0b1100;

#[derive(Clone)]
struct Bench {
    index: Rc<Index>,
    epochs: Rc<Epochs>,
}

impl Bench {
    /// Two buckets, with `GONE` in the first slot.
    fn new() -> Bench {
        let index = Index::new(2, Pages::Small, None).expect("two buckets");
        let bench = Bench { index: Rc::new(index), epochs: Rc::new(Epochs::new()) };
        assert_eq!(bench.insert(GONE, 1), Insert::Done);
        bench
    }

    fn insert(&self, hash: u64, units: u64) -> Insert {
        let address = Address::from_units(units);
        self.index.insert(hash, address, &self.epochs, true).expect("no bucket is added")
    }

    /// The same, and what others do after its look.
    fn insert_while(&self, hash: u64, units: u64, others: fn(&Bench)) -> Insert {
        let bench = self.clone();
        OTHERS.set(Some(Box::new(move || others(&bench))));
        let outcome = self.insert(hash, units);
        assert!(OTHERS.take().is_none(), "the others came in between");
        outcome
    }

    /// Empties the slot of a key, as a removal does.
    fn remove(&self, hash: u64) {
        let Probe::Hit(place, ()) = self.index.find(hash, |_| Walk::Hit(())) else {
            panic!("{hash:#b} has a slot");
        };
        assert!(place.clear(), "nobody else changes it");
        self.index.slots.add(-1);
    }

    /// What slots name that agree with a hash, in the bucket that it is looked for in.
    fn named(&self, hash: u64) -> Vec<u64> {
        let (first, link) = self.index.locate(hash);
        let tag = slot::tag_of(hash, link.depth());
        let words = (0..bucket::SLOTS).map(|at| first.slot(at).load(Ordering::Acquire));
        words
            .filter(|word| slot::agrees(*word, tag))
            .inspect(|word| assert_eq!(word & slot::PARITY, slot::parity(link.depth())))
            .map(|word| slot::address(word).units())
            .collect()
    }
}

/// Another insert of the same tag, which found a slot before ours that was vacated meanwhile.
#[test]
fn an_insert_that_another_overtook_makes_no_second_slot() {
    let bench = Bench::new();
    let outcome = bench.insert_while(KEY, 3, |others| {
        others.remove(GONE);
        assert_eq!(others.insert(KEY, 2), Insert::Done);
    });
    assert_eq!(outcome, Insert::Raced);
    assert_eq!(bench.named(KEY), [2], "the other one's");
    assert_eq!(bench.index.slots.sum(), 1);
}

/// A split that moves the inserted tag to a bucket that is new.
#[test]
fn an_insert_into_a_bucket_that_was_split_meanwhile_goes_where_it_is_looked_for() {
    let bench = Bench::new();
    let outcome = bench.insert_while(KEY, 2, |Bench { index, epochs }| {
        // As if the index had its load, and then as it is.
        index.slots.add(12);
        index.grow(epochs, |_, _| unreachable!("tags are long")).expect("memory");
        index.slots.add(-12);
        assert_eq!(index.count(), 3, "one bucket more");
    });
    assert_eq!(outcome, Insert::Done);
    assert_eq!((bench.named(KEY), bench.named(GONE)), (vec![2], vec![1]));
    assert_eq!(bench.index.slots.sum(), 2);
}
