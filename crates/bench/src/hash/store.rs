//! The interface of an engine, one key a call or many.

use std::ops::Range;

use super::workload::{Mix, Op, key, number_of, value};
use crate::Error;
use crate::tally::Tally;

/// A concurrent map from 8-byte keys to 8-byte values.
pub trait Store: Send + Sync + Sized {
    /// As tables and `--engines` name it.
    const NAME: &'static str;

    /// Empty, with room for `keys` entries.
    ///
    /// # Errors
    ///
    /// The engine refuses to be made.
    fn with_room(keys: u32) -> Result<Self, Error>;

    /// What a thread does before its first call, where the engine has sessions.
    fn enter(&self) {}

    /// What a thread does after its last call.
    fn leave(&self) {}

    /// The key's value, if it is there.
    fn get(&self, key: u64) -> Option<u64>;

    /// Inserts or replaces, without asking for what was there.
    fn put(&self, key: u64, value: u64);

    /// Adds one to the value that is there, atomically.
    fn increment(&self, key: u64);

    /// Puts the entries of `numbers` as loaded.
    fn load(&self, numbers: Range<u32>) {
        for number in numbers {
            self.put(key(number), value(number, 0));
        }
    }

    /// Does what is planned, one key a call, and sums what it read: the values of a mix's updates
    /// have `low` in their lower half.
    #[inline]
    fn work(&self, mix: Mix, low: u32, plan: &[Op]) -> Tally {
        singly(self, mix, low, plan)
    }

    /// Bytes by its own account.
    fn accounted_bytes(&self) -> Option<u64> {
        None
    }
}

/// A thread's calls on a store, from the first to the last.
pub(crate) struct Visit<'s, S: Store>(&'s S);

impl<S: Store> Visit<'_, S> {
    pub(crate) fn begin(store: &S) -> Visit<'_, S> {
        store.enter();
        Visit(store)
    }
}

impl<S: Store> Drop for Visit<'_, S> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A store that takes many keys in one call.
pub(crate) trait BatchStore: Store {
    type Key: Copy;
    type Entry: Copy;

    fn batch_key(key: u64) -> Self::Key;
    fn batch_entry(key: u64, value: u64) -> Self::Entry;

    /// Calls `read` with each value that is there.
    fn get_many(&self, keys: &[Self::Key], read: impl FnMut(u64));
    fn put_many(&self, entries: &[Self::Entry]);
    fn increment_many(&self, keys: &[Self::Key]);
}

/// The form of calls: one key or many.
pub(crate) trait CallForm<S>: 'static {
    /// The contender's name.
    const NAME: &'static str;
    /// Tells this form's updates from those of other forms of the same store.
    const MARK: u32;
    /// Operations of a call.
    const CALL: usize;

    /// Does what is planned and sums what it read.
    fn work(store: &S, mix: Mix, low: u32, plan: &[Op]) -> Tally;
}

/// One key a call, in the order of the plan.
#[inline]
fn singly<S: Store>(store: &S, mix: Mix, low: u32, plan: &[Op]) -> Tally {
    let mut tally = Tally::default();
    match mix {
        Mix::ReadModifyWrite => {
            for op in plan {
                store.increment(key(op.number()));
            }
        }
        Mix::Reads(_) => {
            for op in plan {
                let number = op.number();
                if op.writes() {
                    store.put(key(number), value(number, low));
                } else if let Some(value) = store.get(key(number)) {
                    tally.add(number_of(value));
                }
            }
        }
    }
    tally
}

/// `N` keys a call: reads are gathered in one batch and updates in another, and each is handed
/// over when it is full.
#[inline]
pub(crate) fn batched<const N: usize, S: BatchStore>(
    store: &S,
    mix: Mix,
    low: u32,
    plan: &[Op],
) -> Tally {
    let mut tally = Tally::default();
    match mix {
        Mix::ReadModifyWrite => {
            let mut keys = [S::batch_key(0); N];
            for part in plan.chunks(N) {
                for (key_of, op) in keys.iter_mut().zip(part) {
                    *key_of = S::batch_key(key(op.number()));
                }
                store.increment_many(&keys[..part.len()]);
            }
        }
        Mix::Reads(_) => {
            let mut reads = [S::batch_key(0); N];
            let mut updates = [S::batch_entry(0, 0); N];
            let (mut read_count, mut update_count) = (0, 0);
            for op in plan {
                let number = op.number();
                let key = key(number);
                // Both are written and one is kept, so that nothing waits for a guess.
                reads[read_count] = S::batch_key(key);
                updates[update_count] = S::batch_entry(key, value(number, low));
                read_count += usize::from(!op.writes());
                update_count += usize::from(op.writes());
                if read_count == N {
                    store.get_many(&reads, |value| tally.add(number_of(value)));
                    read_count = 0;
                }
                if update_count == N {
                    store.put_many(&updates);
                    update_count = 0;
                }
            }
            store.get_many(&reads[..read_count], |value| tally.add(number_of(value)));
            store.put_many(&updates[..update_count]);
        }
    }
    tally
}
