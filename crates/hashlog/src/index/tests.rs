//! Changes of a bucket between two steps of an operation on it. One thread plays all, so that each
//! change happens every time; loom models them with threads of their own.

use super::*;
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    static OTHERS: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Called by an insert that has chosen a vacant slot, and by a look that has found one that
/// agrees.
pub(crate) fn meanwhile() {
    if let Some(others) = OTHERS.take() {
        others();
    }
}

/// Keys of bucket 0 of two, whose tags differ, and of which a split moves the first alone.
const KEY: u64 = 0b0110;
const GONE: u64 = 0b1100;
/// A key whose tag is `KEY`'s as far as a scan compares it.
const ALIKE: u64 = KEY | 1 << 12;

const UNSURE: [u64; 3] = [slot::TENTATIVE, slot::FROZEN, slot::SHARED];

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

    /// What an operation answers if others come in between.
    fn meanwhile<R>(&self, others: fn(&Bench), operation: impl FnOnce() -> R) -> R {
        let bench = self.clone();
        OTHERS.set(Some(Box::new(move || others(&bench))));
        let answer = operation();
        assert!(OTHERS.take().is_none(), "the others came in between");
        answer
    }

    /// The slot of a key.
    fn slot(&self, hash: u64) -> &RawAtomicU64 {
        let tag = slot::tag_of(hash, 1);
        let mut slots = (0..layout::bucket::SLOTS).map(|at| self.index.bucket(0).slot(at));
        slots.find(|slot| slot::agrees(slot.load(Ordering::Acquire), tag)).expect("it has one")
    }

    /// Empties the slot of a key, as a removal does.
    fn remove(&self, hash: u64) {
        let Probe::Hit(place, ()) = self.index.find(hash, |_| Walk::Hit(())) else {
            panic!("{hash:#b} has a slot");
        };
        assert!(place.clear(), "no other thread changes it");
        self.index.slots.add(-1);
    }

    /// What slots name that agree with a hash, in the bucket that it is looked for in.
    fn named(&self, hash: u64) -> Vec<u64> {
        let (first, link) = self.index.locate(hash);
        let tag = slot::tag_of(hash, link.depth());
        let words = (0..layout::bucket::SLOTS).map(|at| first.slot(at).load(Ordering::Acquire));
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
    let overtake = |others: &Bench| {
        others.remove(GONE);
        assert_eq!(others.insert(KEY, 2), Insert::Done);
    };
    let outcome = bench.meanwhile(overtake, || bench.insert(KEY, 3));
    assert_eq!(outcome, Insert::Raced);
    assert_eq!(bench.named(KEY), [2], "the other one's");
    assert_eq!(bench.index.slots.sum(), 1);
}

/// A split that moves the inserted tag to a bucket that is new.
#[test]
fn an_insert_into_a_bucket_that_was_split_meanwhile_goes_where_it_is_looked_for() {
    let bench = Bench::new();
    let split = |Bench { index, epochs }: &Bench| {
        // As if the index had its load, and then as it is.
        index.slots.add(12);
        index.grow(epochs, |_, _| unreachable!("tags are long")).expect("memory");
        index.slots.add(-12);
        assert_eq!(index.count(), 3, "one bucket more");
    };
    let outcome = bench.meanwhile(split, || bench.insert(KEY, 2));
    assert_eq!(outcome, Insert::Done);
    assert_eq!((bench.named(KEY), bench.named(GONE)), (vec![2], vec![1]));
    assert_eq!(bench.index.slots.sum(), 2);
}

/// What a slot names is a key's newest record only if it is final, and of one bucket (I-OWN-HEAD,
/// I-TENTATIVE).
#[test]
fn a_first_look_takes_no_slot_that_is_unsure() {
    for flag in UNSURE {
        let bench = Bench::new();
        assert_eq!(bench.insert(KEY, 2), Insert::Done);
        assert_eq!(bench.index.look(KEY), Address::from_units(2));
        // Alone, and as one of two that look alike.
        for _ in 0..2 {
            bench.slot(KEY).fetch_or(flag, Ordering::AcqRel);
            assert_ne!(bench.index.look(KEY), Address::from_units(2), "{flag:#x}");
            bench.slot(KEY).fetch_and(!flag, Ordering::AcqRel);
            assert_eq!(bench.index.look(KEY), Address::from_units(2));
            let _there_by_now = bench.insert(ALIKE, 3);
        }
    }
}

/// The same if the slot becomes so between the scan and the load of its word, where that is not the
/// same load.
#[test]
fn a_first_look_takes_no_slot_that_becomes_unsure() {
    fn set<const FLAG: u64>(others: &Bench) {
        others.slot(KEY).fetch_or(FLAG, Ordering::AcqRel);
    }
    let each: [fn(&Bench); 3] =
        [set::<{ slot::TENTATIVE }>, set::<{ slot::FROZEN }>, set::<{ slot::SHARED }>];
    for others in each {
        for alike in [false, true] {
            let bench = Bench::new();
            assert_eq!(bench.insert(KEY, 2), Insert::Done);
            if alike {
                assert_eq!(bench.insert(ALIKE, 3), Insert::Done);
            }
            let look = || bench.index.bucket(0).look(BucketScan::NARROW, KEY >> 1);
            assert_eq!(bench.meanwhile(others, look), Address::NONE);
        }
    }
}

/// The address space of overflow buckets ends, as memory may.
#[test]
fn an_overflow_bucket_that_is_refused_uses_no_number_up() {
    let index = Index::new(2, Pages::Small, Some(64)).expect("two buckets");
    let epochs = Epochs::new();
    let mut taken = 0;
    while index.take_overflow(&epochs).is_ok() {
        taken += 1;
    }
    assert!(taken > 0);
    let bytes = index.bytes();
    for _ in 0..100 {
        assert!(index.take_overflow(&epochs).is_err());
    }
    assert_eq!((index.overflow_in_use(), index.bytes()), (taken, bytes));
    // One that is given back is to be had again, and all are different.
    index.give_overflow([taken - 1], 0);
    assert_eq!(index.take_overflow(&epochs).expect("it is free"), taken - 1);
    assert!(index.take_overflow(&epochs).is_err());
}
