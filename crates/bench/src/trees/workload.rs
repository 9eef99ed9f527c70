//! The timed operations; keys and values.

use super::store::Entry;
use crate::figures::{Timed, Unit};
use crate::random::Random;

/// The order in which keys come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// All 64 bits drawn at random
    Random,
    /// 0, 1, 2 ...
    Sequential,
}

impl Order {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Order::Random => "random",
            Order::Sequential => "sequential",
        }
    }
}

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Phase {
    /// Inserts into an empty tree, a transaction each, safe against the end of the process
    InsertEach,
    /// Removes, a transaction each, until the tree is empty
    RemoveEach,
    /// Inserts into an empty tree, all in one transaction
    InsertTogether,
    /// Look-ups of all keys, in another order
    Get,
    /// A walk over all entries in order
    Iterate,
    /// Removes of all entries in one transaction
    RemoveTogether,
    /// Inserts, a transaction each, that wait until they last
    Sync,
    /// Opening what an ended process left: the log is read
    Recover,
    /// Removes in one transaction from a tree ten times as large, by engines of ours
    RemoveTenfold,
}

impl Phase {
    pub(crate) const ALL: [Phase; 9] = [
        Phase::InsertEach,
        Phase::RemoveEach,
        Phase::InsertTogether,
        Phase::Get,
        Phase::Iterate,
        Phase::RemoveTogether,
        Phase::Sync,
        Phase::Recover,
        Phase::RemoveTenfold,
    ];
    pub(crate) const USUAL: [Phase; 8] = [
        Phase::InsertEach,
        Phase::RemoveEach,
        Phase::InsertTogether,
        Phase::Get,
        Phase::Iterate,
        Phase::RemoveTogether,
        Phase::Sync,
        Phase::Recover,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::InsertEach => "insert-each",
            Phase::RemoveEach => "remove-each",
            Phase::InsertTogether => "insert-together",
            Phase::Get => "get",
            Phase::Iterate => "iterate",
            Phase::RemoveTogether => "remove-together",
            Phase::Sync => "sync",
            Phase::Recover => "recover",
            Phase::RemoveTenfold => "remove-tenfold",
        }
    }
}

/// A phase on keys of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) phase: Phase,
    pub(crate) order: Order,
}

impl Timed for Workload {
    fn name(self) -> String {
        format!("{} {}", self.phase.name(), self.order.name())
    }

    fn unit(self) -> Unit {
        Unit::Operations
    }
}

/// The entries of a run, in the orders in which they are used.
pub(crate) struct Entries {
    pub(crate) inserted: Vec<Entry>,
    /// The same ones: in an order of their own if the inserted ones have no order, for look-ups
    /// and removes.
    pub(crate) taken: Vec<Entry>,
}

impl Entries {
    pub(crate) fn new(order: Order, count: usize) -> Entries {
        let mut random = Random::new(0x7265_6573);
        let inserted: Vec<Entry> = (0..count as u64)
            .map(|number| match order {
                // Words of the stream do not repeat: each is its state, mixed one to one.
                Order::Random => entry(random.next()),
                Order::Sequential => entry(number),
            })
            .collect();
        let mut taken = inserted.clone();
        if order == Order::Random {
            shuffle(&mut taken, &mut random);
        }
        Entries { inserted, taken }
    }
}

/// Keys compare as the numbers do. A value is made of its key, and is never the key itself.
fn entry(number: u64) -> Entry {
    (number.to_be_bytes(), number.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1).to_le_bytes())
}

/// Durstenfeld's shuffle ("Algorithm 235: random permutation", CACM 1964).
fn shuffle(entries: &mut [Entry], random: &mut Random) {
    for last in (1..entries.len()).rev() {
        let other = (random.next() % (last as u64 + 1)) as usize;
        entries.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_keys_differ_and_come_back_in_another_order() {
        let Entries { mut inserted, mut taken } = Entries::new(Order::Random, 1_000);
        assert_ne!(inserted, taken);
        inserted.sort_unstable();
        taken.sort_unstable();
        assert_eq!(inserted, taken);
        assert!(inserted.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn sequential_keys_begin_with_zero_and_ascend() {
        let Entries { inserted, .. } = Entries::new(Order::Sequential, 300);
        assert_eq!(inserted[0].0, [0; 8]);
        assert!(inserted.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
