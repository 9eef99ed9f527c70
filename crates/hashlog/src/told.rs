//! Changes as a journal hears of them.
//!
//! Values of the fixed layout change by atomic instructions, so that no record has a lock under which a
//! change could be told. Where there is a journal, and there alone, a writer has a *latch* instead: that of
//! the stripe of its key's hash.
//!
//! - I-TOLD: a writer takes the latch before its operation, and tells what that did before the latch goes.
//!   So changes of a key are told in the order in which they happened, and what was told before a
//!   checkpoint's moment is in that checkpoint.
//! - I-NO-WAIT: a thread that has a latch, or a pin, waits for no other: its calls answer
//!   [`Error::WouldBlock`] where they would. A batch takes the latches of a group of keys in the order of
//!   the stripes. So no two threads wait for each other.
//!
//! Readers, copies of records to the tail and compaction take none.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, PoisonError, TryLockError};

use crossbeam_utils::CachePadded;
use sapwood_engine::{Compute, Computed, Effect, Journal, Upsert};
use sapwood_mem::sync::held::{Mutex, MutexGuard};

use crate::error::{BatchError, Error, Result};
use crate::map::HashLog;
use crate::ops::by_layout;
use crate::options::Layout;
use crate::record::value::ValueMut;
use crate::record::{Fixed, Form, Variable};

/// A power of two. One in a model, whose keys share it.
const STRIPES: usize = if cfg!(loom) { 1 } else { 1024 };
/// Keys of a batch whose latches are taken together.
const GROUP: usize = 32;

type Stripe = CachePadded<Mutex<()>>;
type Batch<T> = std::result::Result<T, BatchError>;

/// A journal, and the latches.
#[derive(Debug)]
pub(crate) struct Told {
    journal: Arc<dyn Journal>,
    stripes: Box<[Stripe]>,
}

thread_local! {
    /// The stripes whose latches this thread has.
    static LATCHED: RefCell<Vec<*const Stripe>> = const { RefCell::new(Vec::new()) };
    /// A value before and after its change, kept for their memory.
    static IMAGES: Cell<(Vec<u8>, Vec<u8>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// A latch that this thread has until it is dropped; without a guard where it had it already.
struct Latch<'t> {
    stripe: *const Stripe,
    guard: Option<MutexGuard<'t, ()>>,
}

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        if self.guard.is_some() {
            LATCHED.with_borrow_mut(|latched| {
                let at = latched.iter().rposition(|stripe| *stripe == self.stripe);
                at.map(|at| latched.swap_remove(at));
            });
        }
    }
}

impl Told {
    pub(crate) fn new(journal: Arc<dyn Journal>) -> Told {
        Told { journal, stripes: (0..STRIPES).map(|_| CachePadded::new(Mutex::new(()))).collect() }
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    fn number(hash: u64) -> usize {
        // Other bits than those that choose buckets and tags.
        (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % STRIPES
    }

    /// INVARIANT: I-NO-WAIT: it waits where `may_wait` says so, and a thread says that without latches,
    /// or of stripes behind all that it has.
    fn latch(&self, number: usize, may_wait: bool) -> Result<Latch<'_>> {
        let stripe = &self.stripes[number];
        let address: *const Stripe = stripe;
        if LATCHED.with_borrow(|latched| latched.contains(&address)) {
            return Ok(Latch { stripe: address, guard: None });
        }
        // A panic of a closure leaves nothing half changed.
        let guard = match stripe.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if may_wait => {
                stripe.lock().unwrap_or_else(PoisonError::into_inner)
            }
            Err(TryLockError::WouldBlock) => return Err(Error::WouldBlock),
        };
        LATCHED.with_borrow_mut(|latched| latched.push(address));
        Ok(Latch { stripe: address, guard: Some(guard) })
    }

    /// Whether this thread has no latch of any log.
    fn has_none() -> bool {
        LATCHED.with_borrow(Vec::is_empty)
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        self.journal.log(key, Effect::Put(value));
    }

    /// Tells how a value changed: by the bytes between the first and the last that differ where they
    /// are at most half of it.
    fn change(&self, key: &[u8], before: &[u8], after: &[u8]) {
        if before.len() != after.len() {
            return self.put(key, after);
        }
        let differs = |at: &usize| before[*at] != after[*at];
        let Some(first) = (0..after.len()).find(differs) else { return };
        let last = (first..after.len()).rev().find(differs).unwrap_or(first);
        match (last + 1 - first) * 2 <= after.len() && after.len() > 8 {
            true => {
                let bytes = &after[first..=last];
                self.journal.log(key, Effect::Write { offset: first, bytes });
            }
            false => self.put(key, after),
        }
    }
}

/// Lends the thread's buffers for a value before and after its change.
fn with_images<R>(work: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>) -> R) -> R {
    const KEPT_BYTES_MAX: usize = 64 << 10;
    // A thread that is ending has none.
    let (mut before, mut after) = IMAGES.try_with(Cell::take).unwrap_or_default();
    let done = work(&mut before, &mut after);
    if before.capacity().max(after.capacity()) <= KEPT_BYTES_MAX {
        let _kept = IMAGES.try_with(|images| images.set((before, after)));
    }
    done
}

fn copy(from: &[u8], into: &mut Vec<u8>) {
    into.clear();
    into.extend_from_slice(from);
}

/// The operations that change something, told.
impl HashLog {
    /// The number of a key's stripe.
    fn stripe(&self, key: &[u8]) -> Result<usize> {
        by_layout!(self, F => Ok(Told::number(F::hash(F::key(key)?))))
    }

    fn latch<'t>(&self, told: &'t Told, key: &[u8]) -> Result<Latch<'t>> {
        let may_wait = Told::has_none() && !self.store.log.epochs.is_pinned();
        told.latch(self.stripe(key)?, may_wait)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn put_told(&self, told: &Told, key: &[u8], value: &[u8]) -> Result<()> {
        let _latch = self.latch(told, key)?;
        self.put_untold(key, value)?;
        told.put(key, value);
        Ok(())
    }

    #[cold]
    pub(crate) fn put_if_absent_told(&self, told: &Told, key: &[u8], value: &[u8]) -> Result<bool> {
        let _latch = self.latch(told, key)?;
        let done = self.put_if_absent_untold(key, value)?;
        if done {
            told.put(key, value);
        }
        Ok(done)
    }

    #[cold]
    pub(crate) fn remove_told(&self, told: &Told, key: &[u8]) -> Result<bool> {
        let _latch = self.latch(told, key)?;
        let done = self.remove_untold(key)?;
        if done {
            told.journal.log(key, Effect::Remove);
        }
        Ok(done)
    }

    #[cold]
    pub(crate) fn add_told(&self, told: &Told, key: &[u8], delta: i64) -> Result<i64> {
        let _latch = self.latch(told, key)?;
        let sum = self.add_untold(key, delta)?;
        told.put(key, &sum.to_le_bytes());
        Ok(sum)
    }

    #[cold]
    pub(crate) fn compare_and_put_told(
        &self,
        told: &Told,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<bool> {
        let _latch = self.latch(told, key)?;
        let done = self.compare_and_put_untold(key, expected, new)?;
        if done {
            told.change(key, expected, new);
        }
        Ok(done)
    }

    #[cold]
    pub(crate) fn update_told<R>(
        &self,
        told: &Told,
        key: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let _latch = self.latch(told, key)?;
        with_images(|before, after| {
            let done = self.update_untold(key, |value| seen(value, before, after, &mut *change))?;
            if done.is_some() {
                told.change(key, before, after);
            }
            Ok(done)
        })
    }

    #[cold]
    pub(crate) fn put_if_absent_or_update_told<R>(
        &self,
        told: &Told,
        key: &[u8],
        value: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let _latch = self.latch(told, key)?;
        with_images(|before, after| {
            let changing = |value: &mut ValueMut<'_>| seen(value, before, after, &mut *change);
            let done = self.put_if_absent_or_update_untold(key, value, changing)?;
            match &done {
                Upsert::Inserted => told.put(key, value),
                Upsert::Updated(_) => told.change(key, before, after),
            }
            Ok(done)
        })
    }

    #[cold]
    pub(crate) fn compute_told(
        &self,
        told: &Told,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        let _latch = self.latch(told, key)?;
        with_images(|before, after| {
            let done = self.compute_untold(key, &mut |value| {
                copy(value.unwrap_or_default(), before);
                let decision = decide(value);
                if let Compute::Replace(new) = &decision {
                    copy(new, after);
                }
                decision
            })?;
            match done {
                Computed::Inserted => told.put(key, after),
                Computed::Replaced => told.change(key, before, after),
                Computed::Removed => told.journal.log(key, Effect::Remove),
                Computed::Kept | Computed::Absent => {}
            }
            Ok(done)
        })
    }

    /// Runs a batch in groups, each under the latches of its keys.
    fn in_groups<'k>(
        &self,
        told: &Told,
        len: usize,
        key_at: impl Fn(usize) -> &'k [u8],
        mut group: impl FnMut(std::ops::Range<usize>) -> Batch<()>,
    ) -> Batch<()> {
        let may_wait = Told::has_none() && !self.store.log.epochs.is_pinned();
        let mut begin = 0;
        while begin < len {
            let end = len.min(begin + GROUP);
            // A key that is none is refused by the operation, in its turn.
            let mut stripes: Vec<usize> =
                (begin..end).filter_map(|at| self.stripe(key_at(at)).ok()).collect();
            stripes.sort_unstable();
            stripes.dedup();
            let latched: Result<Vec<Latch<'_>>> =
                stripes.into_iter().map(|number| told.latch(number, may_wait)).collect();
            let _latched = latched.map_err(|error| BatchError { done: begin, error })?;
            group(begin..end)
                .map_err(|stopped| BatchError { done: begin + stopped.done, ..stopped })?;
            begin = end;
        }
        Ok(())
    }

    #[cold]
    pub(crate) fn put_many_told<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        told: &Told,
        entries: &[(K, V)],
    ) -> Batch<()> {
        self.in_groups(
            told,
            entries.len(),
            |at| entries[at].0.as_ref(),
            |range| {
                let entries = &entries[range];
                let put = self.put_many_untold(entries);
                let done = put.as_ref().map_or_else(|stopped| stopped.done, |()| entries.len());
                for (key, value) in &entries[..done] {
                    told.put(key.as_ref(), value.as_ref());
                }
                put
            },
        )
    }

    #[cold]
    pub(crate) fn add_many_told<K: AsRef<[u8]>>(
        &self,
        told: &Told,
        deltas: &[(K, i64)],
    ) -> Batch<()> {
        for (done, (key, delta)) in deltas.iter().enumerate() {
            if done % GROUP == 0 {
                // Their misses overlap so. What is wrong with a key is said in its turn.
                let ahead = &deltas[done..deltas.len().min(done + GROUP)];
                let keys: Vec<&[u8]> = ahead.iter().map(|(key, _)| key.as_ref()).collect();
                let _warm = self.get_many(&keys, |_, _| ());
            }
            self.add_told(told, key.as_ref(), *delta)
                .map_err(|error| BatchError { done, error })?;
        }
        Ok(())
    }

    /// As `update_many`, where `change` is told of keys that are not there, too.
    #[cold]
    pub(crate) fn update_each_told<K: AsRef<[u8]>>(
        &self,
        told: &Told,
        keys: &[K],
        change: &mut dyn FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> Batch<usize> {
        let mut found = 0;
        self.in_groups(
            told,
            keys.len(),
            |at| keys[at].as_ref(),
            |range| {
                let (begin, keys) = (range.start, &keys[range]);
                let mut images: Vec<Option<(Vec<u8>, Vec<u8>)>> = Vec::new();
                images.resize_with(keys.len(), || None);
                let updated = self.update_each_untold(keys, &mut |at, value| match value {
                    None => {
                        images[at] = None;
                        change(begin + at, None);
                    }
                    Some(value) => {
                        let (before, after) = images[at].get_or_insert_default();
                        seen(value, before, after, &mut |value: &mut ValueMut<'_>| {
                            change(begin + at, Some(value));
                        });
                    }
                });
                let done = updated.as_ref().map_or_else(|stopped| stopped.done, |_| keys.len());
                for (key, image) in keys.iter().zip(&images).take(done) {
                    if let Some((before, after)) = image {
                        told.change(key.as_ref(), before, after);
                    }
                }
                updated.map(|there| found += there)
            },
        )?;
        Ok(found)
    }
}

/// Runs a closure and keeps the value as it was before and as it is afterwards: the last run counts.
fn seen<R>(
    value: &mut ValueMut<'_>,
    before: &mut Vec<u8>,
    after: &mut Vec<u8>,
    change: &mut dyn FnMut(&mut ValueMut<'_>) -> R,
) -> R {
    copy(value, before);
    let done = change(value);
    copy(value, after);
    done
}
