//! An iterator over owned entries, a few buckets at a time.
//!
//! Each step goes on from the cursor of the one before, so between two steps nothing is held: the
//! index may grow and the log be compacted.

use crate::error::Result;
use crate::ops::store::Store;
use crate::record::Form;

/// Entries of one step, and a few more: they are in memory at a time.
const ENTRIES: usize = 256;

type Entry = (Vec<u8>, Vec<u8>);

/// The entries of a log, step by step.
pub(crate) struct Entries<'a, F> {
    store: &'a Store,
    /// The cursor of the next step; `None` after the last one.
    next: Option<u64>,
    step: std::vec::IntoIter<Entry>,
    form: std::marker::PhantomData<F>,
}

impl Store {
    pub(crate) fn entries<F: Form>(&self) -> Entries<'_, F> {
        let (step, form) = (Vec::new().into_iter(), std::marker::PhantomData);
        Entries { store: self, next: Some(0), step, form }
    }
}

impl<F: Form> Iterator for Entries<'_, F> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        loop {
            if let Some(entry) = self.step.next() {
                return Some(Ok(entry));
            }
            // An error is the end.
            let cursor = self.next.take()?;
            let mut entries = Vec::new();
            let stepped = self.store.scan_from::<F>(cursor, ENTRIES, &mut |key, value| {
                entries.push((key.to_vec(), value.to_vec()));
            });
            match stepped {
                Ok(next) => self.next = (next != 0).then_some(next),
                Err(error) => return Some(Err(error)),
            }
            self.step = entries.into_iter();
        }
    }
}
