//! Batches: many operations that share their waits.
//!
//! A batch goes in groups: hash all keys of a group and ask for their buckets' lines; look into the
//! buckets and ask for the records' lines; ask for the buckets of the next group, so that memory
//! does not idle between the two; then do each operation, which now finds in the cache what it
//! needs. Where records lie on the disk, reads run ahead of the operations that will need them, so
//! that the disk has always enough to do. Operations take effect in the order given.

use std::collections::VecDeque;
use std::ops::Range;

use sapwood_mem::epoch::Pin;
use sapwood_mem::sync::Backoff;

use crate::error::{BatchError, Error, Result};
use crate::index::Look;
use crate::log::cold::{self, ColdRecord, Coming, Extent, Fetched};
use crate::log::{Log, Share};
use crate::ops::rmw::Rmw;
use crate::ops::store::Store;
use crate::record::Form;
use crate::record::address::Address;
use crate::record::in_place::Stop;
use crate::record::in_place::{InPlace, Write};
use crate::record::value::ValueMut;
use sapwood_engine::RecordAddress;

const GROUP: usize = 32;

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
enum Guess {
    /// In the region where the operation may be done at once: see [`Store::look`].
    Here(Address),
    Elsewhere,
    /// There is none.
    Nothing,
}

/// Operations whose searches overlap.
struct Group {
    hashes: [u64; GROUP],
    count: usize,
}

/// The access of a batch to records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchAccess {
    /// It reads them.
    Read,
    /// It writes, whatever is there.
    Put,
    /// It writes by what is there.
    Change,
}

impl BatchAccess {
    /// Whether an operation must know what is there.
    #[inline(always)]
    fn reads(self) -> bool {
        self != BatchAccess::Put
    }

    /// From where up the first record that the index names will do.
    #[inline(always)]
    fn region(self, log: &Log) -> Address {
        match self {
            BatchAccess::Read => log.head(),
            BatchAccess::Put | BatchAccess::Change => log.read_only(),
        }
    }
}

/// An operation of a batch.
struct Op<'k, F: Form> {
    index: usize,
    key: F::Key<'k>,
    hash: u64,
}

/// Reads that have begun for operations to come.
struct Ahead {
    /// Operations that are looked at, from the next one on.
    most: usize,
    /// Operations below were looked at.
    asked: usize,
    /// By operation.
    coming: Coming<usize>,
    /// Records that were in the read cache, by operation.
    cached: VecDeque<(usize, ColdRecord)>,
}

impl Ahead {
    fn new(budget: Option<u64>) -> Ahead {
        Ahead {
            most: cold::in_flight_max(budget),
            asked: 0,
            coming: Coming::default(),
            cached: VecDeque::new(),
        }
    }

    /// Whether it is time to look at more operations.
    #[inline]
    fn is_short(&self, done: usize, len: usize) -> bool {
        self.asked < len && self.asked <= done + self.most / 2
    }

    /// Records read for an operation; the operations before it are done.
    fn take<F: InPlace>(&mut self, log: &Log, operation: usize) -> Option<Result<ColdRecord>> {
        while self.cached.front().is_some_and(|(earlier, _)| *earlier < operation) {
            self.cached.pop_front();
        }
        if self.cached.front().is_some_and(|(next, _)| *next == operation) {
            return self.cached.pop_front().map(|(_, record)| Ok(record));
        }
        while self.coming.first().is_some_and(|(earlier, _)| *earlier < operation) {
            self.coming.skip();
        }
        let (_, address) = self.coming.first().filter(|(next, _)| **next == operation)?;
        let (_, read) = self.coming.receive::<F>(log, Extent::Whole)?;
        // Without it the operation searches anew.
        cold::unless_given_up(log, address, read)
    }
}

type Batch<T> = std::result::Result<T, BatchError>;
type Attempt<T> = std::result::Result<T, Stop>;

impl Store {
    /// Does an operation for each key, in order. `first` tries the record that the index named when
    /// the group was looked up, if it named one, true if that was all; `attempt` does what is left,
    /// and is over when it answers Ok. Both get `state`.
    #[inline(always)]
    fn batch<'k, F: InPlace, S>(
        &self,
        state: &mut S,
        len: usize,
        access: BatchAccess,
        key_at: impl Fn(usize) -> &'k [u8],
        mut first: impl FnMut(&mut S, &Pin<'_>, Guess, &Op<'k, F>) -> bool,
        mut attempt: impl FnMut(&mut S, &Pin<'_>, &Fetched, &Op<'k, F>) -> Attempt<()>,
    ) -> Batch<()> {
        let mut ahead = Ahead::new(self.options.memory_budget);
        let mut done = 0;
        let mut group = self.begin_group::<F>(0..len, &key_at);
        while done < len {
            let Group { hashes, count } = group;
            if count == 0 {
                F::key(key_at(done)).map_err(|error| BatchError { done, error })?;
            }
            if access.reads() && self.log.has_cold() && ahead.is_short(done, len) {
                self.begin_reads::<F>(&mut ahead, done, len, &key_at);
            }
            let mut pin = self.log.epochs.pin();
            let mut from = access.region(&self.log);
            let looked = self.look_at_group(&pin, &hashes[..count]);
            // Its buckets come while the operations of this group wait for their records.
            group = self.begin_group::<F>(done + count..len, &key_at);
            let mut repinned = false;
            for at in 0..count {
                let index = done + at;
                let key =
                    F::key(key_at(index)).map_err(|error| BatchError { done: index, error })?;
                let op = Op { index, key, hash: hashes[at] };
                // What was seen under another pin does not count.
                let first_named = if repinned { self.look_again(op.hash) } else { looked[at] };
                let named = match first_named {
                    here if here >= from => Guess::Here(here),
                    Address::NONE => Guess::Nothing,
                    _ => Guess::Elsewhere,
                };
                if first(state, &pin, named, &op) {
                    continue;
                }
                drop(pin);
                let read = ahead.take::<F>(&self.log, op.index);
                self.one_of_batch::<F>(read, &mut |pin, fetched| attempt(state, pin, fetched, &op))
                    .map_err(|error| BatchError { done: op.index, error })?;
                pin = self.log.epochs.pin();
                from = access.region(&self.log);
                repinned = true;
            }
            drop(pin);
            done += count;
            self.let_index_catch_up::<F>();
        }
        Ok(())
    }

    /// Hashes the keys of a group and asks for their buckets. It ends before a key that is refused.
    #[inline(always)]
    fn begin_group<'k, F: Form>(
        &self,
        operations: Range<usize>,
        key_at: &impl Fn(usize) -> &'k [u8],
    ) -> Group {
        let mut group = Group { hashes: [0; GROUP], count: 0 };
        for index in operations.take(GROUP) {
            let Ok(key) = F::key(key_at(index)) else { break };
            group.hashes[group.count] = F::hash(key);
            self.index.prefetch(group.hashes[group.count]);
            group.count += 1;
        }
        group
    }

    /// As `look_at_group`, for one key.
    #[inline(never)]
    fn look_again(&self, hash: u64) -> Address {
        match self.index.look(hash) {
            Address::NONE => address_of(match self.index.look_on(hash) {
                Look::Behind(next) => self.index.look_behind(hash, next),
                look => look,
            }),
            named => named,
        }
    }

    /// Looks a group of keys up, whose buckets are on their way, and asks for the records that are
    /// named first, SOMEWHERE, or NONE.
    #[inline(always)]
    fn look_at_group(&self, pin: &Pin<'_>, hashes: &[u64]) -> [Address; GROUP] {
        let mut looked = [Address::NONE; GROUP];
        let (mut behind, mut waiting) = ([(0, 0); GROUP], 0);
        for (at, hash) in hashes.iter().enumerate() {
            looked[at] = self.index.look(*hash);
            if looked[at] != Address::NONE {
                self.log.prefetch(pin, looked[at]);
                continue;
            }
            match self.index.look_on(*hash) {
                // At once: these have one more line to wait for than the others.
                Look::Behind(next) => {
                    self.index.prefetch_overflow(next);
                    behind[waiting] = (at, next);
                    waiting += 1;
                }
                look => looked[at] = address_of(look),
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
    fn begin_reads<'k, F: InPlace>(
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
                    match self.cached_record(address) {
                        Some(record) => ahead.cached.push_back((index, record)),
                        None => wanted.push((index, address)),
                    }
                }
            }
        }
        let reads = wanted.len() as u64;
        self.cold_reads.add(reads as i64);
        ahead.coming.send(&self.log, wanted);
        ahead.asked = limit;
        if reads > 0 {
            self.read_back::<F>(Share::Earned(reads));
        }
    }

    /// A read as a batch begins it for its first operation, and what that gets.
    #[cfg(all(test, not(loom)))]
    pub(super) fn read_for_batch<F: InPlace>(
        &self,
        address: Address,
    ) -> Option<Result<ColdRecord>> {
        let mut ahead = Ahead::new(self.options.memory_budget);
        ahead.coming.send(&self.log, vec![(0, address)]);
        ahead.take::<F>(&self.log, 0)
    }

    /// One operation of a batch that is not done at first sight.
    #[inline(never)]
    fn one_of_batch<F: InPlace>(
        &self,
        read: Option<Result<ColdRecord>>,
        attempt: &mut dyn FnMut(&Pin<'_>, &Fetched) -> Attempt<()>,
    ) -> Result<()> {
        let mut fetched = Fetched::default();
        if let Some(record) = read {
            fetched.push(record?);
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
        read: &mut impl FnMut(usize, Option<(&[u8], RecordAddress)>),
    ) -> Result<()> {
        self.batch::<F, _>(
            read,
            keys.len(),
            BatchAccess::Read,
            |index| keys[index].as_ref(),
            |read, pin, named, op| {
                let Guess::Here(first) = named else { return false };
                // Other reads of the batch came between the look and this.
                let value = self.get_first_now::<F>(pin, first, op.key);
                if let Some(value) = &value {
                    read(op.index, Some((value.as_ref(), RecordAddress::from(first))));
                }
                value.is_some()
            },
            |read, pin, fetched, op| {
                let nowhere = RecordAddress::default();
                let mut present = Some(|value: &[u8]| read(op.index, Some((value, nowhere))));
                let found =
                    self.get_attempt::<F, ()>(pin, fetched, op.hash, op.key, &mut present)?;
                if found.is_none() {
                    read(op.index, None);
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
        self.batch::<F, _>(
            &mut (),
            entries.len(),
            BatchAccess::Put,
            |index| entries[index].0.as_ref(),
            |(), pin, named, op| {
                let value = entries[op.index].1.as_ref();
                if F::check_value(op.key, value.len(), self.log.page_bytes).is_err() {
                    return false;
                }
                match named {
                    Guess::Here(first) => self.put_first::<F>(pin, first, op.key, value),
                    // A new record goes to the tail, whatever the old one is.
                    Guess::Elsewhere => {
                        let none = Fetched::default();
                        self.put_attempt::<F>(pin, &none, op.hash, op.key, value).is_ok()
                    }
                    Guess::Nothing => self.put_new::<F>(pin, op.hash, op.key, value),
                }
            },
            |(), pin, fetched, op| {
                let value = entries[op.index].1.as_ref();
                F::check_value(op.key, value.len(), self.log.page_bytes)?;
                self.put_attempt::<F>(pin, fetched, op.hash, op.key, value)
            },
        )
    }

    #[inline]
    pub(crate) fn update_many<F: InPlace, K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        change: &mut impl FnMut(usize, Option<&mut ValueMut<'_>>),
    ) -> Batch<usize> {
        let mut state = (0, change);
        self.batch::<F, _>(
            &mut state,
            keys.len(),
            BatchAccess::Change,
            |index| keys[index].as_ref(),
            |(found, change), pin, named, op| {
                let Guess::Here(first) = named else { return false };
                let done = self.rmw_first::<F, ()>(pin, first, op.key, &mut |value| {
                    (change(op.index, Some(value)), Write::Changed)
                });
                *found += usize::from(done.is_some());
                done.is_some()
            },
            |(found, change), pin, fetched, op| {
                let done =
                    self.rmw_attempt::<F, ()>(pin, fetched, op.hash, op.key, None, &mut |value| {
                        (change(op.index, Some(value)), Write::Changed)
                    })?;
                match done {
                    Rmw::Updated(()) => *found += 1,
                    Rmw::Inserted | Rmw::Absent => change(op.index, None),
                }
                Ok(())
            },
        )?;
        Ok(state.0)
    }

    #[inline]
    pub(crate) fn add_many<F: InPlace, K: AsRef<[u8]>>(
        &self,
        deltas: &[(K, i64)],
        sum: &mut impl FnMut(usize, i64),
    ) -> Batch<()> {
        self.batch::<F, _>(
            sum,
            deltas.len(),
            BatchAccess::Change,
            |index| deltas[index].0.as_ref(),
            |sum, pin, named, op| {
                let Guess::Here(first) = named else { return false };
                let added = self.add_first::<F>(pin, first, op.key, deltas[op.index].1);
                added.map(|total| sum(op.index, total)).is_some()
            },
            |sum, pin, fetched, op| {
                F::check_value(op.key, size_of::<i64>(), self.log.page_bytes)?;
                let delta = deltas[op.index].1;
                let total = self.add_attempt::<F>(pin, fetched, op.hash, op.key, delta)?;
                sum(op.index, total);
                Ok(())
            },
        )
    }
}

impl From<BatchError> for Error {
    fn from(stopped: BatchError) -> Error {
        stopped.error
    }
}
