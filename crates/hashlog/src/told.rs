//! The operations that change something, told to the log's journal.
//!
//! Each takes the latch of its key's stripe, claims room in the journal (I-CLAIMED), does what
//! `untold` does, and tells the effect (I-TOLD, both in `journal`). What a closure changes itself,
//! in calls of its own, is told by these calls. Where one of them changed a key of the same stripe,
//! which may be the same key, the engine decides which of the two counts: so what is there
//! afterwards is told.

use std::cell::Cell;
use std::ops::Range;

use sapwood_engine::{Claim, Compute, Computed, Refused, Upsert};

use crate::error::{BatchError, Error, Result};
use crate::journal::{Changed, Latch, Told, has_no_latch};
use crate::map::HashLog;
use crate::ops::by_layout;
use crate::record::Form;
use crate::record::value::ValueMut;

/// Keys of a batch whose latches are taken together.
const GROUP: usize = 32;

type Batch<T> = std::result::Result<T, BatchError>;

thread_local! {
    /// A value before and after its change, kept for their memory.
    static IMAGES: Cell<(Vec<u8>, Vec<u8>)> = const { Cell::new((Vec::new(), Vec::new())) };
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

/// A change that is about to be told: the key's stripe, under its latch, and how many changes of that
/// stripe had been told before.
struct Telling<'t> {
    told: &'t Told,
    stripe: usize,
    since: u64,
    _latch: Latch<'t>,
}

/// The keys of a group of a batch, all latched.
struct Latched<'t> {
    told: &'t Told,
    stripes: [usize; GROUP],
    _latches: Vec<Latch<'t>>,
}

impl HashLog {
    fn stripe(&self, key: &[u8]) -> Result<usize> {
        by_layout!(self, F => Ok(Told::stripe_of(F::hash(F::key(key)?))))
    }

    /// Whether this thread may wait for a latch (I-NO-WAIT).
    fn may_wait(&self) -> bool {
        has_no_latch() && !self.store.log.epochs.is_pinned()
    }

    fn begin_telling<'t>(&self, told: &'t Told, key: &[u8]) -> Result<Telling<'t>> {
        let stripe = self.stripe(key)?;
        let latch = told.latch(stripe, self.may_wait())?;
        Ok(Telling { told, stripe, since: told.changes(stripe), _latch: latch })
    }

    /// Tells by `tell` what an operation did to a key, or what is there, if its closure changed keys of
    /// the same stripe.
    fn tell(
        &self,
        told: &Told,
        (stripe, since): (usize, u64),
        key: &[u8],
        tell: impl FnOnce(&Told, usize),
    ) {
        if told.changes(stripe) == since {
            return tell(told, stripe);
        }
        match self.get(key) {
            Ok(Some(value)) => {
                // The claim of the operation may be shorter than what it tells now.
                let _more = told.claim(key.len() + value.len(), 1);
                told.put(stripe, key, &value);
            }
            Ok(None) => told.remove(stripe, key),
            // The disk took what was written just now, and does not give it back.
            Err(_) => tell(told, stripe),
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn put_told(&self, told: &Told, key: &[u8], value: &[u8]) -> Result<()> {
        let telling = self.begin_telling(told, key)?;
        let _claim = told.claim(key.len() + value.len(), 1)?;
        self.put_untold(key, value)?;
        told.put(telling.stripe, key, value);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn put_if_absent_told(&self, told: &Told, key: &[u8], value: &[u8]) -> Result<bool> {
        let telling = self.begin_telling(told, key)?;
        let _claim = told.claim(key.len() + value.len(), 1)?;
        let done = self.put_if_absent_untold(key, value)?;
        if done {
            told.put(telling.stripe, key, value);
        }
        Ok(done)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn remove_told(&self, told: &Told, key: &[u8]) -> Result<bool> {
        let telling = self.begin_telling(told, key)?;
        let _claim = told.claim(key.len(), 1)?;
        let done = self.remove_untold(key)?;
        if done {
            told.remove(telling.stripe, key);
        }
        Ok(done)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn add_told(&self, told: &Told, key: &[u8], delta: i64) -> Result<i64> {
        let telling = self.begin_telling(told, key)?;
        let _claim = told.claim(key.len() + 8, 1)?;
        let sum = self.add_untold(key, delta)?;
        told.put(telling.stripe, key, &sum.to_le_bytes());
        Ok(sum)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn compare_and_put_told(
        &self,
        told: &Told,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<bool> {
        let telling = self.begin_telling(told, key)?;
        let _claim = told.claim(key.len() + new.len(), 1)?;
        let done = self.compare_and_put_untold(key, expected, new)?;
        if done {
            told.change(telling.stripe, key, new, &Changed::between(expected, new));
        }
        Ok(done)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn update_told<R>(
        &self,
        told: &Told,
        key: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Option<R>> {
        let telling = self.begin_telling(told, key)?;
        with_images(|before, after| {
            let mut seen = Seen::new(told, before, after);
            let done = self.update_untold(key, |value| seen.change(key, value, &mut *change))?;
            let done = done.transpose()?;
            if done.is_some() {
                telling.tell(self, key, |_, stripe| seen.tell(stripe, key));
            }
            Ok(done)
        })
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn put_if_absent_or_update_told<R>(
        &self,
        told: &Told,
        key: &[u8],
        value: &[u8],
        change: &mut dyn FnMut(&mut ValueMut<'_>) -> R,
    ) -> Result<Upsert<R>> {
        let telling = self.begin_telling(told, key)?;
        with_images(|before, after| {
            let _claim = told.claim(key.len() + value.len(), 1)?;
            let mut seen = Seen::new(told, before, after);
            let changing = |value: &mut ValueMut<'_>| seen.change(key, value, &mut *change);
            let done = match self.put_if_absent_or_update_untold(key, value, changing)? {
                Upsert::Inserted => Upsert::Inserted,
                Upsert::Updated(done) => Upsert::Updated(done?),
            };
            telling.tell(self, key, |told, stripe| match &done {
                Upsert::Inserted => told.put(stripe, key, value),
                Upsert::Updated(_) => seen.tell(stripe, key),
            });
            Ok(done)
        })
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn compute_told(
        &self,
        told: &Told,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Compute,
    ) -> Result<Computed> {
        let telling = self.begin_telling(told, key)?;
        with_images(|before, after| {
            let (mut claim, mut changed) = (Ok(None), Changed::All);
            let done = self.compute_untold(key, &mut |value| {
                copy(value.unwrap_or_default(), before);
                let decision = decide(value);
                let bytes = match &decision {
                    Compute::Keep => return decision,
                    Compute::Remove => 0,
                    Compute::Replace(new) => {
                        copy(new, after);
                        changed = value.map_or(Changed::All, |old| Changed::between(old, new));
                        changed.told_bytes(new)
                    }
                };
                claim = told.claim(key.len() + bytes, 1).map(Some);
                match claim {
                    Ok(_) => decision,
                    Err(_) => Compute::Keep,
                }
            })?;
            let _claim = claim?;
            if !matches!(done, Computed::Kept | Computed::Absent) {
                telling.tell(self, key, |told, stripe| match done {
                    Computed::Removed => told.remove(stripe, key),
                    Computed::Replaced => told.change(stripe, key, after, &changed),
                    _ => told.put(stripe, key, after),
                });
            }
            Ok(done)
        })
    }

    /// Runs a batch in groups, each under the latches of its keys.
    fn in_groups<'k, 't>(
        &self,
        told: &'t Told,
        len: usize,
        key_at: impl Fn(usize) -> &'k [u8],
        mut group: impl FnMut(Range<usize>, &Latched<'t>) -> Batch<()>,
    ) -> Batch<()> {
        let may_wait = self.may_wait();
        let mut begin = 0;
        while begin < len {
            let range = begin..len.min(begin + GROUP);
            let mut latched = Latched { told, stripes: [0; GROUP], _latches: Vec::new() };
            for (at, stripe) in range.clone().zip(&mut latched.stripes) {
                // A key that is none has the latch of another, and is refused by the operation, in its
                // turn.
                *stripe = self.stripe(key_at(at)).unwrap_or(0);
            }
            let mut stripes = latched.stripes;
            let stripes = &mut stripes[..range.len()];
            stripes.sort_unstable();
            latched._latches.reserve_exact(stripes.len());
            for stripes in stripes.chunk_by(|one, other| one == other) {
                let latch = told.latch(stripes[0], may_wait);
                latched._latches.push(latch.map_err(|error| BatchError { done: begin, error })?);
            }
            begin = range.end;
            let first = range.start;
            group(range, &latched)
                .map_err(|stopped| BatchError { done: first + stopped.done, ..stopped })?;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn put_many_told<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        told: &Told,
        entries: &[(K, V)],
    ) -> Batch<()> {
        let key_at = |at: usize| entries[at].0.as_ref();
        self.in_groups(told, entries.len(), key_at, |range, latched| {
            let entries = &entries[range];
            let lens = entries.iter().map(|(key, value)| key.as_ref().len() + value.as_ref().len());
            let claim = told.claim(lens.sum(), entries.len());
            let _claim = claim.map_err(|refused| BatchError { done: 0, error: refused.into() })?;
            let put = self.put_many_untold(entries);
            let done = put.as_ref().map_or_else(|stopped| stopped.done, |()| entries.len());
            for ((key, value), stripe) in entries[..done].iter().zip(latched.stripes) {
                told.put(stripe, key.as_ref(), value.as_ref());
            }
            put
        })
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn add_many_told<K: AsRef<[u8]>>(
        &self,
        told: &Told,
        deltas: &[(K, i64)],
    ) -> Batch<()> {
        let key_at = |at: usize| deltas[at].0.as_ref();
        self.in_groups(told, deltas.len(), key_at, |range, latched| {
            let deltas = &deltas[range];
            let bytes = deltas.iter().map(|(key, _)| key.as_ref().len() + 8).sum();
            let claim = told.claim(bytes, deltas.len());
            let _claim = claim.map_err(|refused| BatchError { done: 0, error: refused.into() })?;
            let mut sums = [0; GROUP];
            let added = self.add_many_untold(deltas, &mut |at, sum| sums[at] = sum);
            let done = added.as_ref().map_or_else(|stopped| stopped.done, |()| deltas.len());
            // Not before: the batch is pinned meanwhile, and a journal may take its time.
            for (at, (key, _)) in deltas[..done].iter().enumerate() {
                told.put(latched.stripes[at], key.as_ref(), &sums[at].to_le_bytes());
            }
            added
        })
    }

    /// As `update_many`, where `change` is told of keys that are not there, too.
    #[cold]
    #[inline(never)]
    pub(crate) fn update_each_told<K: AsRef<[u8]>>(
        &self,
        told: &Told,
        keys: &[K],
        change: &mut dyn FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> Batch<usize> {
        let mut found = 0;
        let key_at = |at: usize| keys[at].as_ref();
        with_images(|before, after| {
            let mut seen = Seen::new(told, before, after);
            self.in_groups(told, keys.len(), key_at, |range, latched| {
                let (begin, keys) = (range.start, &keys[range]);
                // The key whose closure ran last. Its change is made when that of another runs, which
                // may change the first one again, or panic: it is told before.
                let mut last: Option<(usize, u64)> = None;
                // The first key whose change was refused. No other is changed from then on.
                let mut refused: Option<(usize, Error)> = None;
                let updated = self.update_each_untold(keys, &mut |at, value| {
                    if let Some(made) = last.take_if(|(earlier, _)| *earlier != at) {
                        self.tell_one(latched, keys, made, &seen);
                    }
                    let since = last.take().map(|(_, since)| since);
                    if let Some((first, _)) = &mut refused {
                        *first = at.min(*first);
                        return;
                    }
                    let Some(value) = value else { return change(begin + at, None) };
                    let since = since.unwrap_or_else(|| told.changes(latched.stripes[at]));
                    let mut change = |value: &mut ValueMut<'_>| change(begin + at, Some(value));
                    match seen.change(keys[at].as_ref(), value, &mut change) {
                        Ok(()) => last = Some((at, since)),
                        Err(error) => refused = Some((at, error.into())),
                    }
                });
                let done = updated.as_ref().map_or_else(|stopped| stopped.done, |_| keys.len());
                if let Some(made) = last.filter(|(at, _)| *at < done) {
                    self.tell_one(latched, keys, made, &seen);
                }
                found += updated?;
                refused.map_or(Ok(()), |(done, error)| Err(BatchError { done, error }))
            })
        })?;
        Ok(found)
    }

    /// Tells the change of one key of a group.
    fn tell_one<K: AsRef<[u8]>>(
        &self,
        latched: &Latched<'_>,
        keys: &[K],
        (at, since): (usize, u64),
        seen: &Seen<'_, '_>,
    ) {
        let key = keys[at].as_ref();
        self.tell(latched.told, (latched.stripes[at], since), key, |_, stripe| {
            seen.tell(stripe, key);
        });
    }
}

impl Telling<'_> {
    fn tell(&self, log: &HashLog, key: &[u8], tell: impl FnOnce(&Told, usize)) {
        log.tell(self.told, (self.stripe, self.since), key, tell);
    }
}

/// The change of a value by a closure, whose last run counts.
struct Seen<'t, 'i> {
    told: &'t Told,
    before: &'i mut Vec<u8>,
    after: &'i mut Vec<u8>,
    changed: Changed,
    /// Room for what is to be told of it.
    claim: Option<Claim<'t>>,
}

impl<'t, 'i> Seen<'t, 'i> {
    fn new(told: &'t Told, before: &'i mut Vec<u8>, after: &'i mut Vec<u8>) -> Seen<'t, 'i> {
        Seen { told, before, after, changed: Changed::Nothing, claim: None }
    }

    /// Runs the closure. Where the journal has no room for what it did, the value is what it was
    /// (I-CLAIMED).
    fn change<R>(
        &mut self,
        key: &[u8],
        value: &mut ValueMut<'_>,
        change: &mut dyn FnMut(&mut ValueMut<'_>) -> R,
    ) -> std::result::Result<R, Refused> {
        copy(value, self.before);
        let done = change(value);
        copy(value, self.after);
        self.changed = Changed::between(self.before, self.after);
        match self.told.claim(key.len() + self.changed.told_bytes(self.after), 1) {
            Ok(room) => {
                self.claim = Some(room);
                Ok(done)
            }
            Err(refused) => {
                value.set(self.before).expect("it had that length");
                Err(refused)
            }
        }
    }

    fn tell(&self, stripe: usize, key: &[u8]) {
        self.told.change(stripe, key, self.after, &self.changed);
    }
}
