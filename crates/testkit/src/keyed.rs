//! The trait of an engine that knows keys but no order: the adapter that each one writes.
//!
//! | contents | module |
//! |---|---|
//! | the operations of a stream | [`op`], [`stream`] |
//! | the right answers on one thread | [`oracle`] |
//! | rounds of threads that get in each other's way | [`stress`] |
//! | the check that a walk saw one moment | [`ledger`] |
//! | an engine that is right because it is simple | [`mod@reference`] |

pub mod ledger;
pub mod op;
pub mod oracle;
pub mod reference;
pub mod stream;
pub mod stress;

use crate::Bytes;
use crate::engine::{Computed, Decision, Edit, Edited, Pair, Refusal, Result, Upserted};
use std::ops::RangeInclusive;

/// The outcome of a batch; or how many of its entries are done, and why no more.
pub type Batch<T> = std::result::Result<T, (usize, Refusal)>;

/// Which of an engine's walks over all pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    /// A closure sees each pair; what writers do meanwhile may be seen or not.
    ForEach,
    /// The same, in so many parts.
    ForEachParts(usize),
    /// Every pair as it was at one moment of the call.
    Log,
    /// Every pair as it was when the snapshot was taken.
    Snapshot,
    /// The same, in so many parts.
    SnapshotParts(usize),
    /// As `ForEachParts`, in the order in which pairs were written.
    Sweep(usize),
    /// An iterator hands out owned pairs; else as `ForEach`.
    Iter,
    /// In steps of so many pairs, between which the walk holds nothing; else as `ForEach`.
    Steps(usize),
}

impl Walk {
    /// Every walk.
    pub const ALL: [Walk; 8] = [
        Walk::ForEach,
        Walk::ForEachParts(3),
        Walk::Log,
        Walk::Snapshot,
        Walk::SnapshotParts(2),
        Walk::Sweep(2),
        Walk::Iter,
        Walk::Steps(5),
    ];
}

/// How long keys and values may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lengths {
    /// Of a key.
    pub key: RangeInclusive<usize>,
    /// Of a value.
    pub value: RangeInclusive<usize>,
    /// Most bytes of a key and its value together.
    pub pair_max: usize,
    /// Where they are counted together, a key takes whole units of so many bytes.
    pub key_unit: usize,
}

impl Lengths {
    /// Any value, and any key but the empty one that the ordered engine would take.
    pub const ANY: Lengths = Lengths {
        key: 1..=crate::keys::KEY_BYTES_MAX,
        value: 0..=usize::MAX,
        pair_max: usize::MAX,
        key_unit: 1,
    };

    /// 8 bytes each.
    pub const EIGHT: Lengths = Lengths { key: 8..=8, value: 8..=8, pair_max: 16, key_unit: 1 };

    /// Of a value of a key of `key_len` bytes.
    pub fn value_of(&self, key_len: usize) -> RangeInclusive<usize> {
        let beside = self.pair_max.saturating_sub(key_len.next_multiple_of(self.key_unit));
        *self.value.start()..=beside.min(*self.value.end())
    }

    /// Of a key that leaves room for a value.
    pub fn key_of_pair(&self) -> RangeInclusive<usize> {
        *self.key.start()..=self.pair_max.min(*self.key.end())
    }

    /// Whether such a pair can be put. A longer key can be asked for nonetheless.
    pub fn fit(&self, key_len: usize, value_len: usize) -> Result<()> {
        if !self.key_of_pair().contains(&key_len) {
            return Err(Refusal::KeyLength);
        }
        match self.value_of(key_len).contains(&value_len) {
            true => Ok(()),
            false => Err(Refusal::ValueLength),
        }
    }

    /// Whether all pairs have the same lengths.
    pub fn is_fixed(&self) -> bool {
        self.value.start() == self.value.end()
    }
}

/// An engine of byte keys and byte values without order, with owned answers.
///
/// Adapters call [`crate::interleave::pause`] wherever the engine runs their closure.
pub trait KeyedEngine: Sync {
    /// The lengths that it takes.
    fn lengths(&self) -> Lengths;
    /// A copy of the value.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// A copy of the value, made in a closure that sees it in place. An adapter checks that the
    /// bytes are the same at the closure's end as at its begin.
    fn get_with(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Whether the key is there.
    fn contains_key(&self, key: &[u8]) -> Result<bool>;
    /// A put that does not say whether it replaced.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Whether it inserted.
    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool>;
    /// Whether the key was there.
    fn remove(&self, key: &[u8]) -> Result<bool>;
    /// Removes an entry and returns what it was, shown by the engine in a closure.
    fn take(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Lets a closure see the value and decide.
    fn compute(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Decision,
    ) -> Result<Computed>;
    /// Removes the entries that a closure refuses, and counts them.
    fn retain(&self, keep: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<u64>;
    /// A change in place.
    fn update(&self, key: &[u8], edits: &[Edit]) -> Result<Option<Edited>>;
    /// An insert, or else a change in place.
    fn upsert(&self, key: &[u8], value: &[u8], edits: &[Edit]) -> Result<Upserted>;
    /// Whether the value was `expected`, and `new` was put in its place.
    fn compare_and_put(&self, key: &[u8], expected: &[u8], new: &[u8]) -> Result<bool>;
    /// The sum, an absent counter counting as 0.
    fn add(&self, key: &[u8], delta: i64) -> Result<i64>;
    /// The value of each key.
    fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Vec<u8>>>>;
    /// Puts pairs in order.
    fn put_many(&self, pairs: &[(Bytes, Bytes)]) -> Batch<()>;
    /// The same change in place on each key, and what it left there.
    fn update_many(&self, keys: &[Bytes], edits: &[Edit]) -> Batch<Vec<Option<Edited>>>;
    /// Adds to counters in order.
    fn add_many(&self, deltas: &[(Bytes, i64)]) -> Batch<()>;
    /// Every pair, in any order.
    fn pairs(&self, walk: Walk) -> Result<Vec<Pair>>;
    /// Number of entries, by counter, where the engine keeps it exact.
    fn len_counted(&self) -> Option<usize>;
    /// Number of entries, by walking.
    fn len_exact(&self) -> Result<usize>;
    /// Removes everything.
    fn clear(&self) -> Result<()>;
    /// Verifies the engine's own invariants while no thread writes.
    fn check(&self) -> std::result::Result<(), String>;
}
