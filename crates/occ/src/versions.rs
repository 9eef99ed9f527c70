//! A word for each stripe of keys.
//!
//! Before the first transaction a change costs a pin: no word is looked at. The first transaction says
//! that words count from now on, and waits until every change that may not have seen this is over.
//!
//! | word | written | read |
//! |---|---|---|
//! | `counts` | the first transaction: Release, then an epoch begins | a change, under a pin; a transaction: Acquire |
//! | a stripe, shared | a change, before and after: AcqRel | a transaction, around a read and at its commit: Acquire |
//! | a stripe, alone | a commit, before it validates and after it has applied: AcqRel | as above, and by changes, which wait |
//! | `steps` | a commit, for each entry that it changes: Relaxed | whatever loses its patience: Relaxed |
//!
//! *Invariants*
//! - I-ALONE: while a transaction has a stripe alone, no change of its keys is under way.
//! - I-SEEN: a version is counted up after each change, and before another thread finds the stripe
//!   free. So what is read while the word stays the same, and is free, is what all changes that the
//!   version counts have left.

use sapwood_mem::epoch::{Epochs, Pin};
use sapwood_mem::sync::held::Mutex;
use sapwood_mem::sync::{AtomicU64, Ordering, yield_now};

use std::time::Duration;

use crate::Conflict;
use crate::turn::{Turn, Turns};

/// Stripes of all tables of a database. A model has few, each of which it checks.
const STRIPES: usize = if cfg!(loom) { 2 } else { 4096 };

/// A transaction has the stripe alone.
pub(crate) const ALONE: u64 = 1;
/// A change that shares the stripe; there may be as many as fit below the version.
const SHARE: u64 = 2;
const SHARES: u64 = VERSION - SHARE;
/// A change that is over. The version is in the highest bits, so that it falls off when it is full,
/// after 2^44 changes of a stripe; a transaction that lasts that long may miss a change.
const VERSION: u64 = 1 << 20;

/// Times that a transaction lets other threads go on before it takes a stripe as busy ...
const PATIENCE: u32 = if cfg!(loom) { 1 } else { 2_000 };
/// ... and before it reads while no change may come.
const PATIENCE_TO_READ: u32 = if cfg!(loom) { 0 } else { 32 };
/// Times that a change sleeps for [`PAUSE`](crate::turn::PAUSE) while a commit has its stripe: a second or
/// so. Mostly a commit is over long before; one that waits for a closure in which the change is made would
/// never be.
const PATIENCE_TO_CHANGE: u32 = if cfg!(loom) { u32::MAX } else { 10_000 };
/// Times that a change begins to wait anew since a commit has got on: minutes, which a statement of many rows takes.
const RENEWALS_TO_CHANGE: u32 = 300;

/// A stripe of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stripe(pub(crate) u32);

impl Stripe {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The versions of all keys of a database.
pub struct Versions {
    words: Box<[AtomicU64]>,
    /// Whether words count: 1 once a transaction wants that, 2 once it is so.
    counts: AtomicU64,
    /// Steps of commits that are under way: one that gets on is waited for.
    steps: AtomicU64,
    epochs: Epochs,
    first: Mutex<()>,
    turns: Turns,
}

const WANTED: u64 = 1;
const COUNT: u64 = 2;

impl Default for Versions {
    fn default() -> Versions {
        Versions::new()
    }
}

impl std::fmt::Debug for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Versions").field("stripes", &self.words.len()).finish_non_exhaustive()
    }
}

impl Versions {
    /// Versions of keys that no transaction has used.
    pub fn new() -> Versions {
        Versions {
            words: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
            counts: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            epochs: Epochs::new(),
            first: Mutex::new(()),
            turns: Turns::default(),
        }
    }

    /// Notes that a commit, which has its stripes, gets on: a thread that waits for one of them
    /// waits longer.
    #[inline]
    pub fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// The stripe of a key, by a hash of which all bits are as random as any.
    pub fn stripe(&self, hash: u64) -> Stripe {
        Stripe(((u128::from(hash) * self.words.len() as u128) >> 64) as u32)
    }

    /// Holds what a change needs while it is under way. `stripes` tells the stripes of the keys that it
    /// may change, if that is needed, in any order and as often as it likes.
    ///
    /// It waits for transactions that are being committed; they do not wait for it for long.
    ///
    /// # Errors
    /// [`Conflict::Busy`]: a commit lasts so long that it may be waiting for this thread, which is in a
    /// closure that an engine runs.
    #[inline]
    pub fn share(
        &self,
        stripes: impl FnOnce(&mut dyn FnMut(Stripe)),
    ) -> Result<Shared<'_>, Conflict> {
        // Words that count once count for ever: no pin for nothing. Acquire: as below.
        if self.counts.load(Ordering::Acquire) != 0 {
            return self.share_counted(stripes);
        }
        let pin = self.epochs.pin();
        // INVARIANT: I-ALONE: a pin that does not see this is waited for before words count.
        // Acquire: pairs with the Release in `count`.
        if self.counts.load(Ordering::Acquire) == 0 {
            return Ok(Shared(Held::Pinned { _pin: pin }));
        }
        drop(pin);
        self.share_counted(stripes)
    }

    /// Holds what a change of any keys needs, if that takes neither a call nor a wait: `None` once
    /// there was a transaction, for a thread that is within a change, and for its first one.
    /// [`share`](Self::share) is for what is left.
    #[inline(always)]
    pub fn share_at_once(&self) -> Option<SharedAtOnce<'_>> {
        let pin = self.epochs.pin_at_once()?;
        // INVARIANT: I-ALONE: as in `share`. Acquire: pairs with the Release in `count`.
        (self.counts.load(Ordering::Acquire) == 0).then_some(SharedAtOnce { _pin: pin })
    }

    /// As [`share`](Self::share), of a change of keys that are not known before.
    ///
    /// # Errors
    /// As of [`share`](Self::share).
    #[inline]
    pub fn share_all(&self) -> Result<Shared<'_>, Conflict> {
        self.share(|stripe| (0..STRIPES as u32).for_each(|at| stripe(Stripe(at))))
    }

    #[cold]
    #[inline(never)]
    fn share_counted(
        &self,
        stripes: impl FnOnce(&mut dyn FnMut(Stripe)),
    ) -> Result<Shared<'_>, Conflict> {
        let mut one = None;
        let mut more = Vec::new();
        stripes(&mut |stripe| match one {
            None => one = Some(stripe),
            Some(first) => {
                if more.is_empty() {
                    more.push(first);
                }
                more.push(stripe);
            }
        });
        if more.is_empty() {
            let Some(one) = one else { return Ok(Shared(Held::Nothing)) };
            self.let_pass(&[one]);
            self.share_word(one)?;
            return Ok(Shared(Held::One(self.word(one))));
        }
        more.sort_unstable();
        more.dedup();
        self.let_pass(&more);
        let mut held =
            Shared(Held::Many { versions: self, stripes: Vec::with_capacity(more.len()) });
        for stripe in more {
            self.share_word(stripe)?;
            if let Held::Many { stripes, .. } = &mut held.0 {
                stripes.push(stripe);
            }
        }
        Ok(held)
    }

    /// Gives this thread its turn: changes, and commits that [let it pass](Self::let_pass), wait where they
    /// want one of these stripes, for at most `time`, and a second. None while another thread has the turn.
    pub fn take_turn(&self, stripes: Vec<Stripe>, time: Duration) -> Option<Turn<'_>> {
        self.turns.take(stripes.into_iter().map(|stripe| stripe.0).collect(), time)
    }

    /// Waits while another thread has its [turn](Self::take_turn) with one of these stripes. Called before a
    /// commit holds anything; a change does so by itself.
    #[inline]
    pub fn let_pass(&self, stripes: &[Stripe]) {
        self.turns.let_pass(stripes.iter().map(|stripe| stripe.0));
    }

    fn share_word(&self, stripe: Stripe) -> Result<(), Conflict> {
        let word = self.word(stripe);
        // INVARIANT: I-ALONE: of a share and of a transaction's claim, one comes first in the word.
        // Acquire: what an earlier transaction has applied is there.
        while word.fetch_add(SHARE, Ordering::AcqRel) & ALONE != 0 {
            word.fetch_sub(SHARE, Ordering::AcqRel);
            let mut patience = Patience::of_a_change(self);
            while word.load(Ordering::Relaxed) & ALONE != 0 {
                patience.once()?;
            }
        }
        Ok(())
    }

    pub(crate) fn word(&self, stripe: Stripe) -> &AtomicU64 {
        &self.words[stripe.index()]
    }

    pub(crate) fn stripes(&self) -> impl Iterator<Item = Stripe> + use<> {
        (0..STRIPES as u32).map(Stripe)
    }

    /// Lets words count, from the first transaction on.
    pub(crate) fn count(&self) -> Result<(), Conflict> {
        // Acquire: pairs with the Release below: the changes that were waited for are over.
        if self.counts.load(Ordering::Acquire) == COUNT {
            return Ok(());
        }
        self.begin_to_count()
    }

    #[cold]
    fn begin_to_count(&self) -> Result<(), Conflict> {
        if self.epochs.is_pinned() {
            return Err(Conflict::Within);
        }
        let _first = match self.first.lock() {
            Ok(first) => first,
            Err(poisoned) => poisoned.into_inner(),
        };
        if self.counts.load(Ordering::Acquire) != COUNT {
            self.counts.store(WANTED, Ordering::Release);
            let epoch = self.epochs.bump();
            let mut wait = Wait::default();
            while !self.epochs.is_safe(epoch) {
                wait.once();
            }
            self.counts.store(COUNT, Ordering::Release);
        }
        Ok(())
    }

    /// Takes a stripe alone, if that is to be had soon.
    pub(crate) fn claim(&self, stripe: Stripe) -> Result<(), Conflict> {
        let word = self.word(stripe);
        let mut patience = Patience::of_a_transaction(self);
        // Acquire: what changes before have left is there.
        while word.fetch_or(ALONE, Ordering::AcqRel) & ALONE != 0 {
            patience.once()?;
        }
        // Changes that come from now on wait; those that are under way end.
        while word.load(Ordering::Acquire) & SHARES != 0 {
            if let Err(busy) = patience.once() {
                self.release(stripe);
                return Err(busy);
            }
        }
        Ok(())
    }

    /// Gives back a stripe in which nothing was changed.
    pub(crate) fn release(&self, stripe: Stripe) {
        self.word(stripe).fetch_sub(ALONE, Ordering::AcqRel);
    }

    /// Gives back a stripe that was changed.
    pub(crate) fn release_changed(&self, stripe: Stripe) {
        // INVARIANT: I-SEEN: the version and the end of the claim are one step.
        self.word(stripe).fetch_add(VERSION - ALONE, Ordering::AcqRel);
    }
}

/// The version of a word; `None` while it may change.
pub(crate) fn version(word: u64) -> Option<u64> {
    (word & (ALONE | SHARES) == 0).then_some(word)
}

/// The version of a word that the caller has alone. Changes that wait may be noted in it.
pub(crate) fn version_alone(word: u64) -> u64 {
    debug_assert_ne!(word & ALONE, 0, "the caller has it");
    word & !(ALONE | SHARES)
}

/// What a change holds while it is under way: see [`Versions::share_at_once`].
#[must_use = "the change is under way as long as this lives"]
pub struct SharedAtOnce<'a> {
    _pin: Pin<'a>,
}

impl std::fmt::Debug for SharedAtOnce<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedAtOnce")
    }
}

/// What a change holds while it is under way: see [`Versions::share`].
#[must_use = "the change is under way as long as this lives"]
#[derive(Debug)]
pub struct Shared<'a>(Held<'a>);

enum Held<'a> {
    /// Words do not count yet.
    Pinned {
        _pin: Pin<'a>,
    },
    Nothing,
    One(&'a AtomicU64),
    Many {
        versions: &'a Versions,
        stripes: Vec<Stripe>,
    },
}

impl std::fmt::Debug for Held<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Held::Pinned { .. } => "Pinned",
            Held::Nothing => "Nothing",
            Held::One(_) => "One",
            Held::Many { .. } => "Many",
        })
    }
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        match &self.0 {
            Held::Pinned { .. } | Held::Nothing => {}
            Held::One(word) => unshare(word),
            Held::Many { versions, stripes } => {
                stripes.iter().for_each(|stripe| unshare(versions.word(*stripe)));
            }
        }
    }
}

fn unshare(word: &AtomicU64) {
    // INVARIANT: I-SEEN: the version and the end of the share are one step. Release: the change is
    // there for the thread that finds the word free.
    word.fetch_add(VERSION - SHARE, Ordering::AcqRel);
}

/// Lets other threads go on: by spinning, then by giving up the processor.
#[derive(Default)]
struct Wait {
    /// Whether it sleeps at last.
    sleeps: bool,
    #[cfg(not(loom))]
    backoff: crossbeam_utils::Backoff,
}

impl Wait {
    fn once(&mut self) {
        #[cfg(not(loom))]
        if !self.backoff.is_completed() {
            return self.backoff.snooze();
        } else if self.sleeps {
            return std::thread::sleep(crate::turn::PAUSE);
        }
        yield_now();
    }
}

/// A [`Wait`] for some time; for longer while a commit gets on, which may have what is waited for.
pub(crate) struct Patience<'a> {
    wait: Wait,
    most: u32,
    left: u32,
    /// Times that it may still begin anew.
    renewals: u32,
    /// Whose steps count, and how many there were when it was looked.
    steps: Option<(&'a Versions, u64)>,
}

impl<'a> Patience<'a> {
    fn of_times(most: u32, wait: Wait, steps: Option<&'a Versions>) -> Patience<'a> {
        let steps = steps.map(|versions| (versions, versions.steps.load(Ordering::Relaxed)));
        Patience { wait, most, left: most, renewals: u32::MAX, steps }
    }

    pub(crate) fn of_a_transaction(versions: &'a Versions) -> Patience<'a> {
        Patience::of_times(PATIENCE, Wait::default(), Some(versions))
    }

    pub(crate) fn of_a_read() -> Patience<'a> {
        Patience::of_times(PATIENCE_TO_READ, Wait::default(), None)
    }

    fn of_a_change(versions: &'a Versions) -> Patience<'a> {
        let wait = Wait { sleeps: true, ..Wait::default() };
        let patience = Patience::of_times(PATIENCE_TO_CHANGE, wait, Some(versions));
        // A commit may wait for what this change is part of, and others may get on for ever.
        Patience { renewals: RENEWALS_TO_CHANGE, ..patience }
    }

    pub(crate) fn once(&mut self) -> Result<(), Conflict> {
        if self.left == 0 {
            self.look_at_steps()?;
        }
        self.left -= 1;
        self.wait.once();
        Ok(())
    }

    /// Begins anew, if a commit has got on since the last look.
    fn look_at_steps(&mut self) -> Result<(), Conflict> {
        let (versions, seen) = self.steps.as_mut().ok_or(Conflict::Busy)?;
        let steps = versions.steps.load(Ordering::Relaxed);
        if *seen == steps || self.most == 0 {
            return Err(Conflict::Busy);
        }
        self.renewals = self.renewals.checked_sub(1).ok_or(Conflict::Busy)?;
        (*seen, self.left) = (steps, self.most);
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_gets_on_is_waited_for() {
        let versions = Versions::new();
        let mut patience = Patience::of_times(3, Wait::default(), Some(&versions));
        for _ in 0..10 {
            (0..3).for_each(|_| assert!(patience.once().is_ok()));
            versions.step();
        }
        (0..3).for_each(|_| assert!(patience.once().is_ok()));
        assert!(patience.once().is_err(), "no commit has got on");
        assert!(patience.once().is_err());
    }

    #[test]
    fn a_change_begins_to_wait_anew_so_often() {
        let versions = Versions::new();
        let patience = Patience::of_times(3, Wait::default(), Some(&versions));
        let mut patience = Patience { renewals: 2, ..patience };
        for _ in 0..3 {
            (0..3).for_each(|_| assert!(patience.once().is_ok()));
            versions.step();
        }
        assert!(patience.once().is_err(), "the commits that get on may be others");
    }
}
