//! The journal's half of each change: the latch of its key, the claim, and what is logged.
//!
//! Where there is a journal, a change takes the latch of its key's stripe, claims room in the journal (I-CLAIMED), does
//! what it does without one, and logs the effect (I-LOGGED, both in `journal`). What a closure changes itself,
//! in calls of its own, is logged by these calls. Where one of them changed a key of the same stripe,
//! which may be the same key, the engine decides which of the two counts: so what is there
//! afterwards is logged.

use std::cell::Cell;
use std::ops::Range;

use sapwood_engine::{Claim, Compute, Computed, Refused};

use crate::error::{BatchError, Error, Result};
use crate::journal::{Changed, Latch, LatchedJournal, has_no_latch};
use crate::map::HashLog;
use crate::ops::by_layout;
use crate::ops::rmw::Rmw;
use crate::record::Form;
use crate::record::value::{ChangeValue, ValueMut};

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

/// A change that is about to be logged: the key's stripe, under its latch, and how many changes of that stripe had
/// been logged before.
pub(crate) struct Logging<'t> {
    journal: &'t LatchedJournal,
    stripe: usize,
    since: u64,
    _latch: Latch<'t>,
}

/// The keys of a group of a batch, all latched.
struct Latched<'t> {
    journal: &'t LatchedJournal,
    stripes: [usize; GROUP],
    _latches: Vec<Latch<'t>>,
}

/// A decision about a value, as an operation takes it from its caller.
type Decide<'c> = dyn FnMut(Option<&[u8]>) -> Compute + 'c;

impl HashLog {
    fn stripe(&self, key: &[u8]) -> Result<usize> {
        by_layout!(self, F => Ok(LatchedJournal::stripe_of(F::hash(F::key(key)?))))
    }

    /// True where this thread may wait for a latch (I-NO-WAIT).
    fn may_wait(&self) -> bool {
        has_no_latch() && !self.store.log.epochs.is_pinned()
    }

    fn begin_logging<'t>(&self, journal: &'t LatchedJournal, key: &[u8]) -> Result<Logging<'t>> {
        let stripe = self.stripe(key)?;
        let latch = journal.latch(stripe, self.may_wait())?;
        Ok(Logging { journal, stripe, since: journal.changes(stripe), _latch: latch })
    }

    /// Does a change, and logs what `log` says of its answer, where there is a journal; its record has so many bytes
    /// of key and value.
    #[inline]
    pub(crate) fn logged<R>(
        &self,
        key: &[u8],
        bytes: usize,
        mut change: impl FnMut() -> Result<R>,
        log: impl Fn(&Logging<'_>, &R),
    ) -> Result<R> {
        match &self.journal {
            None => change(),
            Some(journal) => {
                // Moved, so that without a journal the closures stay in registers.
                let (mut change, log) = (change, log);
                self.logged_slow(journal, (key, bytes), &mut change, &log)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn logged_slow<R>(
        &self,
        journal: &LatchedJournal,
        (key, bytes): (&[u8], usize),
        change: &mut dyn FnMut() -> Result<R>,
        log: &dyn Fn(&Logging<'_>, &R),
    ) -> Result<R> {
        let logging = self.begin_logging(journal, key)?;
        let _claim = journal.claim(bytes, 1)?;
        let done = change()?;
        log(&logging, &done);
        Ok(done)
    }

    /// Logs a change by a closure, which decides what is logged. `rmw` gets the closure, or one around it that
    /// compares values before and after it.
    #[inline]
    pub(crate) fn logged_rmw(
        &self,
        key: &[u8],
        absent: Option<&[u8]>,
        change: &mut ChangeValue<'_>,
        rmw: impl Fn(&mut ChangeValue<'_>) -> Result<Rmw<()>>,
    ) -> Result<Rmw<()>> {
        match &self.journal {
            None => rmw(change),
            Some(journal) => {
                let rmw = rmw;
                self.logged_rmw_slow(journal, key, absent, change, &rmw)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn logged_rmw_slow(
        &self,
        journal: &LatchedJournal,
        key: &[u8],
        absent: Option<&[u8]>,
        change: &mut ChangeValue<'_>,
        rmw: &dyn Fn(&mut ChangeValue<'_>) -> Result<Rmw<()>>,
    ) -> Result<Rmw<()>> {
        let logging = self.begin_logging(journal, key)?;
        with_images(|before, after| {
            let _claim =
                absent.map(|value| journal.claim(key.len() + value.len(), 1)).transpose()?;
            let mut recorder = Recorder::new(journal, before, after);
            let mut refused = None;
            let done = rmw(&mut |value| refused = recorder.change(key, value, change).err())?;
            match (&done, refused) {
                (Rmw::Updated(()), Some(refused)) => return Err(refused.into()),
                (Rmw::Updated(()), None) => {
                    logging.log_all(self, key, |_, stripe| recorder.log(stripe, key));
                }
                (Rmw::Inserted, _) => logging.log_all(self, key, |journal, stripe| {
                    journal.put(stripe, key, absent.unwrap_or_default());
                }),
                (Rmw::Absent, _) => {}
            }
            Ok(done)
        })
    }

    /// Logs a change by a closure that decides about a key.
    #[inline]
    pub(crate) fn logged_compute(
        &self,
        key: &[u8],
        decide: &mut Decide<'_>,
        compute: impl Fn(&mut Decide<'_>) -> Result<Computed>,
    ) -> Result<Computed> {
        match &self.journal {
            None => compute(decide),
            Some(journal) => {
                let compute = compute;
                self.logged_compute_slow(journal, key, decide, &compute)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn logged_compute_slow(
        &self,
        journal: &LatchedJournal,
        key: &[u8],
        decide: &mut Decide<'_>,
        compute: &dyn Fn(&mut Decide<'_>) -> Result<Computed>,
    ) -> Result<Computed> {
        let logging = self.begin_logging(journal, key)?;
        with_images(|before, after| {
            let (mut claim, mut changed) = (Ok(None), Changed::All);
            let done = compute(&mut |value| {
                copy(value.unwrap_or_default(), before);
                let decision = decide(value);
                let bytes = match &decision {
                    Compute::Keep => return decision,
                    Compute::Remove => 0,
                    Compute::Replace(new) => {
                        copy(new, after);
                        changed = value.map_or(Changed::All, |old| Changed::between(old, new));
                        changed.logged_bytes(new)
                    }
                };
                claim = journal.claim(key.len() + bytes, 1).map(Some);
                match claim {
                    Ok(_) => decision,
                    Err(_) => Compute::Keep,
                }
            })?;
            let _claim = claim?;
            if !matches!(done, Computed::Kept | Computed::Absent) {
                logging.log_all(self, key, |journal, stripe| match done {
                    Computed::Removed => journal.remove(stripe, key),
                    Computed::Replaced => journal.change(stripe, key, after, &changed),
                    _ => journal.put(stripe, key, after),
                });
            }
            Ok(done)
        })
    }

    /// Logs by `log` what an operation did to a key, or what is there, if its closure changed keys of
    /// the same stripe.
    fn log_one(
        &self,
        journal: &LatchedJournal,
        (stripe, since): (usize, u64),
        key: &[u8],
        log: impl FnOnce(&LatchedJournal, usize),
    ) {
        if journal.changes(stripe) == since {
            return log(journal, stripe);
        }
        match self.get(key) {
            Ok(Some(value)) => {
                // The claim of the operation may be shorter than what it logs now.
                let _more = journal.claim(key.len() + value.len(), 1);
                journal.put(stripe, key, &value);
            }
            Ok(None) => journal.remove(stripe, key),
            // The disk took what was written just now, and does not give it back.
            Err(_) => log(journal, stripe),
        }
    }

    /// Runs a batch in groups, each under the latches of its keys.
    fn in_groups<'k, 't>(
        &self,
        journal: &'t LatchedJournal,
        len: usize,
        key_at: impl Fn(usize) -> &'k [u8],
        mut group: impl FnMut(Range<usize>, &Latched<'t>) -> Batch<()>,
    ) -> Batch<()> {
        let may_wait = self.may_wait();
        let mut begin = 0;
        while begin < len {
            let range = begin..len.min(begin + GROUP);
            let mut latched = Latched { journal, stripes: [0; GROUP], _latches: Vec::new() };
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
                let latch = journal.latch(stripes[0], may_wait);
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
    pub(crate) fn put_many_logged<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        journal: &LatchedJournal,
        entries: &[(K, V)],
        put: impl Fn(&[(K, V)]) -> Batch<()>,
    ) -> Batch<()> {
        let key_at = |at: usize| entries[at].0.as_ref();
        self.in_groups(journal, entries.len(), key_at, |range, latched| {
            let entries = &entries[range];
            let lens = entries.iter().map(|(key, value)| key.as_ref().len() + value.as_ref().len());
            let claim = journal.claim(lens.sum(), entries.len());
            let _claim = claim.map_err(|refused| BatchError { done: 0, error: refused.into() })?;
            let put = put(entries);
            let done = put.as_ref().map_or_else(|stopped| stopped.done, |()| entries.len());
            for ((key, value), stripe) in entries[..done].iter().zip(latched.stripes) {
                journal.put(stripe, key.as_ref(), value.as_ref());
            }
            put
        })
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn add_many_logged<K: AsRef<[u8]>>(
        &self,
        journal: &LatchedJournal,
        deltas: &[(K, i64)],
        add: impl Fn(&[(K, i64)], &mut dyn FnMut(usize, i64)) -> Batch<()>,
    ) -> Batch<()> {
        let key_at = |at: usize| deltas[at].0.as_ref();
        self.in_groups(journal, deltas.len(), key_at, |range, latched| {
            let deltas = &deltas[range];
            let bytes = deltas.iter().map(|(key, _)| key.as_ref().len() + 8).sum();
            let claim = journal.claim(bytes, deltas.len());
            let _claim = claim.map_err(|refused| BatchError { done: 0, error: refused.into() })?;
            let mut sums = [0; GROUP];
            let added = add(deltas, &mut |at, sum| sums[at] = sum);
            let done = added.as_ref().map_or_else(|stopped| stopped.done, |()| deltas.len());
            // Not before: the batch is pinned meanwhile, and a journal may take its time.
            for (at, (key, _)) in deltas[..done].iter().enumerate() {
                journal.put(latched.stripes[at], key.as_ref(), &sums[at].to_le_bytes());
            }
            added
        })
    }

    /// Changes many keys; unlike that of `update_many`, `change` gets keys that are absent, too.
    #[cold]
    #[inline(never)]
    pub(crate) fn update_each_logged<K: AsRef<[u8]>>(
        &self,
        journal: &LatchedJournal,
        keys: &[K],
        change: &mut dyn FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> Batch<usize> {
        let mut found = 0;
        let key_at = |at: usize| keys[at].as_ref();
        with_images(|before, after| {
            let mut recorder = Recorder::new(journal, before, after);
            self.in_groups(journal, keys.len(), key_at, |range, latched| {
                let (begin, keys) = (range.start, &keys[range]);
                // The key whose closure ran last. Its change is made when that of another runs, which
                // may change the first one again, or panic: it is logged before.
                let mut last: Option<(usize, u64)> = None;
                // The first key whose change was refused. No other is changed from then on.
                let mut refused: Option<(usize, Error)> = None;
                let updated = by_layout!(self, F => self.store.update_many::<F, K>(keys, &mut |at, value| {
                    if let Some(made) = last.take_if(|(earlier, _)| *earlier != at) {
                        self.log_in_group(latched, keys, made, &recorder);
                    }
                    let since = last.take().map(|(_, since)| since);
                    if let Some((first, _)) = &mut refused {
                        *first = at.min(*first);
                        return;
                    }
                    let Some(value) = value else { return change(begin + at, None) };
                    let since = since.unwrap_or_else(|| journal.changes(latched.stripes[at]));
                    let mut change = |value: &mut ValueMut<'_>| change(begin + at, Some(value));
                    match recorder.change(keys[at].as_ref(), value, &mut change) {
                        Ok(()) => last = Some((at, since)),
                        Err(error) => refused = Some((at, error.into())),
                    }
                }));
                let done = updated.as_ref().map_or_else(|stopped| stopped.done, |_| keys.len());
                if let Some(made) = last.filter(|(at, _)| *at < done) {
                    self.log_in_group(latched, keys, made, &recorder);
                }
                found += updated?;
                refused.map_or(Ok(()), |(done, error)| Err(BatchError { done, error }))
            })
        })?;
        Ok(found)
    }

    /// Logs the change of one key of a group.
    fn log_in_group<K: AsRef<[u8]>>(
        &self,
        latched: &Latched<'_>,
        keys: &[K],
        (at, since): (usize, u64),
        recorder: &Recorder<'_, '_>,
    ) {
        let key = keys[at].as_ref();
        self.log_one(latched.journal, (latched.stripes[at], since), key, |_, stripe| {
            recorder.log(stripe, key);
        });
    }
}

impl Logging<'_> {
    pub(crate) fn put(&self, key: &[u8], value: &[u8]) {
        self.journal.put(self.stripe, key, value);
    }

    pub(crate) fn remove(&self, key: &[u8]) {
        self.journal.remove(self.stripe, key);
    }

    pub(crate) fn change(&self, key: &[u8], before: &[u8], after: &[u8]) {
        self.journal.change(self.stripe, key, after, &Changed::between(before, after));
    }

    /// Logs a change by a closure, which may have changed more.
    fn log_all(&self, log: &HashLog, key: &[u8], one: impl FnOnce(&LatchedJournal, usize)) {
        log.log_one(self.journal, (self.stripe, self.since), key, one);
    }
}

/// The change of a value by a closure, whose last run counts.
struct Recorder<'t, 'i> {
    journal: &'t LatchedJournal,
    before: &'i mut Vec<u8>,
    after: &'i mut Vec<u8>,
    changed: Changed,
    /// Room for what is to be logged of it.
    claim: Option<Claim<'t>>,
}

impl<'t, 'i> Recorder<'t, 'i> {
    fn new(
        journal: &'t LatchedJournal,
        before: &'i mut Vec<u8>,
        after: &'i mut Vec<u8>,
    ) -> Recorder<'t, 'i> {
        Recorder { journal, before, after, changed: Changed::Nothing, claim: None }
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
        match self.journal.claim(key.len() + self.changed.logged_bytes(self.after), 1) {
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

    fn log(&self, stripe: usize, key: &[u8]) {
        self.journal.change(stripe, key, self.after, &self.changed);
    }
}
