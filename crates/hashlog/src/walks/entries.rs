//! An iterator over owned entries, a few buckets at a time.
//!
//! Each step walks the buckets of one share of the hashes, so between two steps nothing is held:
//! the index may grow and the log be compacted. A key's share depends on its hash alone, however
//! many buckets there are, so each key belongs to one step.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::ops::store::Store;
use crate::record::Form;

/// Buckets of one step: their entries are in memory at a time.
const BUCKETS: u64 = 64;

type Entry = (Vec<u8>, Vec<u8>);

/// The entries of a log, share by share.
pub(crate) struct Entries<'a, F> {
    store: &'a Store,
    /// There are `1 << bits` shares.
    bits: u32,
    /// The share that comes next.
    next: u64,
    step: std::vec::IntoIter<Entry>,
    form: std::marker::PhantomData<F>,
}

impl Store {
    pub(crate) fn entries<F: Form>(&self) -> Entries<'_, F> {
        // The number of buckets only grows, so that a share has whole buckets for ever.
        let bits = (self.index.count() / BUCKETS).max(1).ilog2().min(Self::SHARE_BITS_MAX);
        let (step, form) = (Vec::new().into_iter(), std::marker::PhantomData);
        Entries { store: self, bits, next: 0, step, form }
    }
}

impl<F: Form> Entries<'_, F> {
    fn walk_next(&mut self) -> Result<()> {
        let mut entries = Vec::new();
        let _all = self.store.walk_share::<F, ()>(self.next, self.bits, &mut |key, value| {
            entries.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })?;
        self.step = entries.into_iter();
        Ok(())
    }
}

impl<F: Form> Iterator for Entries<'_, F> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        loop {
            if let Some(entry) = self.step.next() {
                return Some(Ok(entry));
            }
            if self.next >> self.bits != 0 {
                return None;
            }
            if let Err(error) = self.walk_next() {
                // An error is the end.
                self.next = 1 << self.bits;
                return Some(Err(error));
            }
            self.next += 1;
        }
    }
}
