//! What a transaction has read, and its commit.
//!
//! *Invariants*
//! - I-MOMENT: all that a transaction has read was so at one moment, that of the last read: each read
//!   looks again at those before it.
//! - I-ORDER: a commit takes all stripes that it changes before it looks whether what it read is still
//!   so, and holds them until it has changed them. So of two transactions each of which reads what
//!   the other changes, one sees the other.

use crate::Conflict;
use crate::versions::{Patience, Stripe, Versions, version, version_alone};
use sapwood_mem::sync::{Ordering, fence};

/// What a transaction has read. It holds nothing: dropped, it was never there.
#[derive(Debug)]
pub struct Reads<'a> {
    versions: &'a Versions,
    /// Each stripe with the version that was read; a stripe may be there more than once.
    seen: Vec<(Stripe, u64)>,
    /// Whether every stripe is there.
    has_all: bool,
}

impl<'a> Reads<'a> {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Conflict::Within`] in the middle of a change of this thread, where no transaction was begun
    /// before.
    pub fn begin(versions: &'a Versions) -> Result<Reads<'a>, Conflict> {
        versions.count()?;
        Ok(Reads { versions, seen: Vec::new(), has_all: false })
    }

    /// The stripes that were read so far.
    pub fn stripes(&self) -> impl Iterator<Item = Stripe> {
        self.seen.iter().map(|(stripe, _)| *stripe)
    }

    /// Reads something that lies in a stripe. `read` may be called more than once, and the last answer
    /// counts.
    ///
    /// # Errors
    /// [`Conflict::Changed`] where something read before is no longer so, [`Conflict::Busy`].
    pub fn read<R>(&mut self, stripe: Stripe, mut read: impl FnMut() -> R) -> Result<R, Conflict> {
        let mut patience = Patience::of_a_read();
        loop {
            let word = self.versions.word(stripe);
            // Acquire: pairs with the ends of changes: what the version counts is there to be read.
            let before = word.load(Ordering::Acquire);
            if let Some(version) = version(before) {
                let done = read();
                // INVARIANT: I-SEEN of `versions`. The fence keeps the reads above it.
                fence(Ordering::Acquire);
                if word.load(Ordering::Relaxed) == before {
                    return self.note(stripe, version).map(|()| done);
                }
            }
            if patience.once().is_err() {
                // Changes that follow each other leave no moment to read in: it is read alone.
                return self.read_alone(stripe, read);
            }
        }
    }

    fn read_alone<R>(
        &mut self,
        stripe: Stripe,
        mut read: impl FnMut() -> R,
    ) -> Result<R, Conflict> {
        let mut stripes = vec![stripe];
        let held = Claims::take(self.versions, &mut stripes)?;
        let version = version_alone(self.versions.word(stripe).load(Ordering::Acquire));
        let done = read();
        drop(held);
        self.note(stripe, version).map(|()| done)
    }

    /// Reads something that may lie in any stripe: any change until the commit is a conflict.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_all<R>(&mut self, read: impl FnOnce() -> R) -> Result<R, Conflict> {
        if !self.has_all {
            for stripe in self.versions.stripes() {
                let version = self.version_of(stripe)?;
                self.seen.push((stripe, version));
            }
            self.has_all = true;
        }
        let done = read();
        fence(Ordering::Acquire);
        self.validate(&[]).map(|()| done)
    }

    /// The version of a stripe, once nothing changes it.
    fn version_of(&self, stripe: Stripe) -> Result<u64, Conflict> {
        let mut patience = Patience::of_a_transaction(self.versions);
        loop {
            // Acquire: as in `read`.
            if let Some(version) = version(self.versions.word(stripe).load(Ordering::Acquire)) {
                return Ok(version);
            }
            patience.once()?;
        }
    }

    fn note(&mut self, stripe: Stripe, version: u64) -> Result<(), Conflict> {
        // INVARIANT: I-MOMENT.
        self.validate(&[])?;
        if !self.has_all {
            self.seen.push((stripe, version));
        }
        Ok(())
    }

    /// Whether all that was read is still so. `held` are the stripes, in order, that this transaction
    /// has alone.
    fn validate(&self, held: &[Stripe]) -> Result<(), Conflict> {
        let is_still_so = |(stripe, seen): &(Stripe, u64)| {
            let word = self.versions.word(*stripe).load(Ordering::Acquire);
            match held.binary_search(stripe) {
                Ok(_) => version_alone(word) == *seen,
                Err(_) => version(word) == Some(*seen),
            }
        };
        match self.seen.iter().all(is_still_so) {
            true => Ok(()),
            false => Err(Conflict::Changed),
        }
    }

    /// Takes the stripes that the transaction changes, if all that was read is still so. The caller makes its changes while it
    /// holds the claims: when they are dropped, each stripe counts one.
    ///
    /// Sorts the stripes, and leaves each once. Linearization point: the last look at the versions.
    ///
    /// # Errors
    /// [`Conflict::Changed`] where something read has changed; [`Conflict::Busy`] where another transaction holds a
    /// stripe. Nothing is held then.
    pub fn claim<'s>(self, stripes: &'s mut Vec<Stripe>) -> Result<Claims<'s>, Conflict>
    where
        'a: 's,
    {
        let mut held = Claims::take(self.versions, stripes)?;
        // INVARIANT: I-ORDER: either this sees the other's claim, or the other sees this one's.
        fence(Ordering::SeqCst);
        self.validate(held.stripes)?;
        held.have_changed = true;
        Ok(held)
    }
}

/// No version: its low bits are those of changes.
const CHANGING: u64 = u64::MAX;

/// The versions of all stripes at one look. What is found after it can be changed together, and
/// what others have changed meanwhile is looked at again: for changes of many keys, each by its own
/// value.
#[derive(Debug)]
pub struct Look<'a> {
    versions: &'a Versions,
    /// The version of each stripe.
    seen: Vec<u64>,
}

impl<'a> Look<'a> {
    /// Looks, and waits for no change.
    ///
    /// # Errors
    /// The errors of [`Reads::begin`].
    pub fn begin(versions: &'a Versions) -> Result<Look<'a>, Conflict> {
        Reads::begin(versions)?;
        // Acquire: as in `Reads::read`. A stripe that is being changed counts as changed by the commit.
        let now = |stripe| version(versions.word(stripe).load(Ordering::Acquire));
        let seen = versions.stripes().map(|stripe| now(stripe).unwrap_or(CHANGING));
        Ok(Look { versions, seen: seen.collect() })
    }

    /// Runs `apply`, which changes keys of the stripes that are given, and of no others. It is told
    /// which of these have changed since the look. No change and no other commit is under way in
    /// them meanwhile.
    ///
    /// # Errors
    /// [`Conflict::Busy`]; `apply` did not run.
    pub fn commit<R>(
        self,
        stripes: &mut Vec<Stripe>,
        apply: impl FnOnce(&dyn Fn(Stripe) -> bool) -> R,
    ) -> Result<R, Conflict> {
        let mut held = Claims::take(self.versions, stripes)?;
        held.have_changed = true;
        // Acquire: what the version counts is there to be read.
        let version = |stripe| version_alone(self.versions.word(stripe).load(Ordering::Acquire));
        Ok(apply(&|stripe| version(stripe) != self.seen[stripe.index()]))
    }
}

/// Stripes that a commit has alone, in order: [`Reads::claim`]. Dropped, they are free again, and count a change each; also
/// after a panic of the thread that changes them.
#[must_use = "dropped, the stripes are free again"]
#[derive(Debug)]
pub struct Claims<'a> {
    versions: &'a Versions,
    stripes: &'a [Stripe],
    have_changed: bool,
}

impl<'a> Claims<'a> {
    fn take(versions: &'a Versions, stripes: &'a mut Vec<Stripe>) -> Result<Claims<'a>, Conflict> {
        stripes.sort_unstable();
        stripes.dedup();
        let mut held = Claims { versions, stripes: &[], have_changed: false };
        for at in 0..stripes.len() {
            versions.claim(stripes[at])?;
            held.stripes = &stripes[..=at];
        }
        Ok(held)
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        for stripe in self.stripes {
            match self.have_changed {
                true => self.versions.release_changed(*stripe),
                false => self.versions.release(*stripe),
            }
        }
    }
}
