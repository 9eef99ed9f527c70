//! How do many operations share their waits?
//!
//! A batch goes in groups: hash all keys of a group and ask for their buckets' lines; look into
//! the buckets and ask for the records' lines; then do each operation, which now finds in the cache
//! what it needs. Sixteen in flight keep the memory of one core busy; more are no faster. Where
//! records lie on the disk, reads run ahead of the operations that will need them, so that the
//! disk has always enough to do. Operations take effect in the order given.

use std::cell::{Cell, RefCell};

use sapwood_mem::boundary::Pin;
use sapwood_mem::sync::Backoff;

use crate::address::Address;
use crate::cold::{self, ColdRecord, Coming, Fetched};
use crate::core::{Core, Stop};
use crate::error::{BatchError, Error, Result};
use crate::index::Look;
use crate::log::Log;
use crate::point::{InPlace, Rmw, Write};
use crate::value::ValueMut;

const GROUP: usize = 16;
/// In place of an address: only a search can tell. No log begins that low.
const SOMEWHERE: Address = Address::from_units(1);

#[inline(always)]
fn address_of(look: Look) -> Address {
    match look {
        Look::Named(first) => first,
        Look::Behind(_) | Look::Unsure => SOMEWHERE,
        Look::Nothing => Address::NONE,
    }
}

/// Where the index's first guess at a key's record lies.
enum Named {
    /// In the region where the operation may be done at once: see [`Core::look`].
    Here(Address),
    Elsewhere,
    /// There is none.
    Nothing,
}

impl Named {
    #[inline(always)]
    fn here(self) -> Option<Address> {
        match self {
            Named::Here(address) => Some(address),
            Named::Elsewhere | Named::Nothing => None,
        }
    }
}

/// Reads that have begun for operations to come.
struct Ahead {
    /// Operations that are looked at, from the next one on.
    most: usize,
    /// Operations below were looked at.
    asked: usize,
    /// By operation.
    coming: Coming<usize>,
}

impl Ahead {
    fn new(budget: Option<u64>) -> Ahead {
        Ahead { most: cold::in_flight_max(budget), asked: 0, coming: Coming::default() }
    }

    /// Whether it is time to look at more operations.
    #[inline]
    fn is_short(&self, done: usize, len: usize) -> bool {
        self.asked < len && self.asked <= done + self.most / 2
    }

    /// What was read for an operation, of which those before are done.
    fn take<F: InPlace>(&mut self, log: &Log, operation: usize) -> Option<Result<ColdRecord>> {
        while self.coming.first().is_some_and(|earlier| *earlier < operation) {
            self.coming.skip();
        }
        let is_next = self.coming.first().is_some_and(|next| *next == operation);
        if is_next { self.coming.receive::<F>(log).map(|(_, read)| read) } else { None }
    }
}

type Batch<T> = std::result::Result<T, BatchError>;
type Attempt<T> = std::result::Result<T, Stop>;

impl Core {
    /// Does an operation for each key, in order. `first` tries the record that the index named when
    /// the group was looked up, if it named one, true if that was all; `attempt` does what is left,
    /// and is over when it answers Ok. Both get the key's hash and index. `reads`: whether an
    /// operation must know what is there; `in_place`: whether `first` writes.
    #[inline(always)]
    fn batch<'k, F: InPlace>(
        &self,
        len: usize,
        reads: bool,
        in_place: bool,
        key_at: impl Fn(usize) -> &'k [u8],
        mut first: impl FnMut(&Pin<'_>, Named, u64, usize, F::Key<'k>) -> bool,
        mut attempt: impl FnMut(&Pin<'_>, &Fetched, u64, usize, F::Key<'k>) -> Attempt<()>,
    ) -> Batch<()> {
        let mut done = 0;
        let mut ahead = Ahead::new(self.options.memory_budget);
        while done < len {
            if reads && self.log.begin() < self.log.head() && ahead.is_short(done, len) {
                self.read_ahead::<F>(&mut ahead, done, len, &key_at);
            }
            let group = (len - done).min(GROUP);
            let mut hashes = [0; GROUP];
            for (at, hash) in hashes[..group].iter_mut().enumerate() {
                // A key of a wrong length ends the batch when its turn comes.
                if let Ok(key) = F::key(key_at(done + at)) {
                    *hash = F::hash(key);
                    self.index.prefetch(*hash);
                }
            }
            let mut pin = self.log.epochs.pin();
            let region = |log: &Log| if in_place { log.mutable() } else { log.head() };
            let mut from = region(&self.log);
            let mut looked = self.look_at_group(&pin, &hashes[..group]);
            let mut repinned = false;
            for at in 0..group {
                let index = done + at;
                let failed = |error| BatchError { done: index, error };
                let key = F::key(key_at(index)).map_err(failed)?;
                if repinned {
                    from = region(&self.log);
                    let again = match self.index.look(hashes[at]) {
                        Look::Behind(next) => self.index.look_behind(hashes[at], next),
                        look => look,
                    };
                    looked[at] = address_of(again);
                }
                let named = match looked[at] {
                    Address::NONE => Named::Nothing,
                    below if below < from => Named::Elsewhere,
                    here => Named::Here(here),
                };
                if first(&pin, named, hashes[at], index, key) {
                    continue;
                }
                drop(pin);
                let read = ahead.take::<F>(&self.log, index);
                self.one_of_batch::<F>(read, &mut |pin, fetched| {
                    attempt(pin, fetched, hashes[at], index, key)
                })
                .map_err(failed)?;
                pin = self.log.epochs.pin();
                repinned = true;
            }
            done += group;
            drop(pin);
            self.let_index_catch_up::<F>();
        }
        Ok(())
    }

    /// Looks a group of keys up, whose buckets are on their way, and asks for the records that are
    /// named first, SOMEWHERE, or NONE.
    #[inline(always)]
    fn look_at_group(&self, pin: &Pin<'_>, hashes: &[u64]) -> [Address; GROUP] {
        let mut looked = [Address::NONE; GROUP];
        let (mut behind, mut waiting) = ([(0, 0); GROUP], 0);
        for (at, hash) in hashes.iter().enumerate() {
            match self.index.look(*hash) {
                Look::Behind(next) => {
                    self.index.prefetch_overflow(next);
                    behind[waiting] = (at, next);
                    waiting += 1;
                }
                look => {
                    looked[at] = address_of(look);
                    self.log.prefetch(pin, looked[at]);
                }
            }
        }
        for (at, next) in &behind[..waiting] {
            looked[*at] = address_of(self.index.look_behind(hashes[*at], *next));
            self.log.prefetch(pin, looked[*at]);
        }
        looked
    }

    /// Begins to read from the disk what the operations to come will need, as far as the index can
    /// tell.
    #[inline(never)]
    fn read_ahead<'k, F: InPlace>(
        &self,
        ahead: &mut Ahead,
        done: usize,
        len: usize,
        key_at: &dyn Fn(usize) -> &'k [u8],
    ) {
        let mut wanted = Vec::new();
        let limit = len.min(done + ahead.most);
        {
            let pin = self.log.epochs.pin();
            for index in ahead.asked.max(done)..limit {
                let Ok(key) = F::key(key_at(index)) else { continue };
                let none = Fetched::default();
                if let Err(Stop::Cold(address)) =
                    self.find_known::<F>(&pin, F::hash(key), key, &none)
                {
                    wanted.push((index, address));
                }
            }
        }
        self.cold_reads.add(wanted.len() as i64);
        ahead.coming.send(&self.log, wanted);
        ahead.asked = limit;
    }

    /// One operation of a batch that is not done at first sight.
    #[inline(never)]
    fn one_of_batch<F: InPlace>(
        &self,
        read: Option<Result<ColdRecord>>,
        attempt: &mut dyn FnMut(&Pin<'_>, &Fetched) -> Attempt<()>,
    ) -> Result<()> {
        let mut fetched = Fetched::default();
        if let Some(read) = read {
            fetched.push(read?);
        }
        let backoff = Backoff::new();
        loop {
            let pin = self.log.epochs.pin();
            let nested = !pin.is_outermost();
            let Err(stop) = attempt(&pin, &fetched) else { return Ok(()) };
            drop(pin);
            self.wait_for::<F>(stop, nested, &mut fetched, &backoff)?;
        }
    }

    #[inline]
    pub(crate) fn get_many<F: InPlace, K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        read: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        // Never borrowed twice: one operation ends before the next begins.
        let read = RefCell::new(read);
        self.batch::<F>(
            keys.len(),
            true,
            false,
            |index| keys[index].as_ref(),
            |pin, named, _, index, key| {
                let value = named.here().and_then(|first| self.get_first::<F>(pin, first, key));
                if let Some(value) = &value {
                    read.borrow_mut()(index, Some(value.as_ref()));
                }
                value.is_some()
            },
            |pin, fetched, hash, index, key| {
                let mut present = Some(|value: &[u8]| read.borrow_mut()(index, Some(value)));
                if self.get_attempt::<F, ()>(pin, fetched, hash, key, &mut present)?.is_none() {
                    read.borrow_mut()(index, None);
                }
                Ok(())
            },
        )
        .map_err(|stopped| stopped.error)?;
        self.make_room_for_copies();
        Ok(())
    }

    #[inline]
    pub(crate) fn put_many<F: InPlace, K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: &[(K, V)],
    ) -> Batch<()> {
        self.batch::<F>(
            entries.len(),
            false,
            true,
            |index| entries[index].0.as_ref(),
            |pin, named, hash, index, key| {
                let value = entries[index].1.as_ref();
                if F::check_value(key, value.len(), self.log.page_bytes).is_err() {
                    return false;
                }
                match named {
                    Named::Here(first) => self.put_first::<F>(pin, first, key, value),
                    // A new record goes to the tail, whatever the old one is.
                    Named::Elsewhere => {
                        let none = Fetched::default();
                        self.put_attempt::<F>(pin, &none, hash, key, value).is_ok()
                    }
                    Named::Nothing => self.put_new::<F>(pin, hash, key, value),
                }
            },
            |pin, fetched, hash, index, key| {
                let value = entries[index].1.as_ref();
                F::check_value(key, value.len(), self.log.page_bytes)?;
                self.put_attempt::<F>(pin, fetched, hash, key, value)
            },
        )
    }

    #[inline]
    pub(crate) fn update_many<F: InPlace, K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        change: &mut impl FnMut(usize, &mut ValueMut<'_>),
    ) -> Batch<usize> {
        let (found, change) = (Cell::new(0), RefCell::new(change));
        self.batch::<F>(
            keys.len(),
            true,
            true,
            |index| keys[index].as_ref(),
            |pin, named, _, index, key| {
                let done = named.here().and_then(|first| {
                    self.rmw_first::<F, ()>(pin, first, key, &mut |value| {
                        (change.borrow_mut()(index, value), Write::Changed)
                    })
                });
                found.update(|found| found + usize::from(done.is_some()));
                done.is_some()
            },
            |pin, fetched, hash, index, key| {
                let done =
                    self.rmw_attempt::<F, ()>(pin, fetched, hash, key, None, &mut |value| {
                        (change.borrow_mut()(index, value), Write::Changed)
                    })?;
                found.update(|found| found + usize::from(matches!(done, Rmw::Updated(()))));
                Ok(())
            },
        )?;
        Ok(found.get())
    }

    #[inline]
    pub(crate) fn add_many<F: InPlace, K: AsRef<[u8]>>(&self, deltas: &[(K, i64)]) -> Batch<()> {
        self.batch::<F>(
            deltas.len(),
            true,
            true,
            |index| deltas[index].0.as_ref(),
            |pin, named, _, index, key| {
                let add = |first| self.add_first::<F>(pin, first, key, deltas[index].1);
                named.here().and_then(add).is_some()
            },
            |pin, fetched, hash, index, key| {
                F::check_value(key, size_of::<i64>(), self.log.page_bytes)?;
                self.add_attempt::<F>(pin, fetched, hash, key, deltas[index].1).map(drop)
            },
        )
    }
}

impl From<BatchError> for Error {
    fn from(stopped: BatchError) -> Error {
        stopped.error
    }
}
