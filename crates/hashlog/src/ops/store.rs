//! The store, and the driving of one operation: search, attempt, wait, next attempt.
//!
//! An operation is an attempt under a pin. An attempt that cannot go on says why ([`Stop`]), the
//! pin goes, the cause is waited for, and the next attempt starts from the top. So no thread waits
//! for another while it is pinned, and everything that waits for pinned threads comes to an end.

use std::sync::atomic::{AtomicBool, Ordering};

use sapwood_mem::epoch::Pin;
use sapwood_mem::sync::Backoff;

use crate::compaction::background::Compactor;
use crate::counter::Counter;
use crate::error::{Error, Result, no_memory};
use crate::files::kept::Checkpoints;
use crate::files::parts::Parts;
use crate::index::{Index, Insert, Probe, SlotRef, Walk};
use crate::log::begin_lock::{BeginLock, Shared};
use crate::log::cold::{self, ColdRecord, Fetched};
use crate::log::frames::frame_bytes;
use crate::log::{Log, Share};
use crate::options::Options;
use crate::record::address::Address;
use crate::record::in_place::{InPlace, Stop};
use crate::record::layout::{bucket, control};
use crate::record::value::Held;
use crate::record::{Form, Record};

/// Everything of a hash log but the choice of its layout.
pub(crate) struct Store {
    pub(crate) options: Options,
    pub(crate) index: Index,
    pub(crate) log: Log,
    /// An estimate in a directory: a put does not read what it replaces.
    pub(crate) entries: Counter,
    /// Held by the walk that will set `entries` right.
    pub(crate) counting: std::sync::Mutex<()>,
    /// Bytes of superseded records in memory.
    pub(crate) garbage: Counter,
    pub(crate) cold_reads: Counter,
    /// Records that walks of the log asked the index about.
    pub(crate) chains_asked: Counter,
    /// A read found no room at the tail for a copy of what it had read from the disk.
    pub(crate) copy_wants_page: AtomicBool,
    /// Shared by everything that relies on `begin`: snapshots, walks; a compaction takes it alone.
    pub(crate) begin_lock: BeginLock,
    pub(crate) compactor: Compactor,
    /// `None` in memory.
    pub(crate) checkpoints: Option<Checkpoints>,
}

/// A record of a key.
pub(crate) enum Found<'f> {
    Memory(Record, Address),
    Disk(&'f ColdRecord),
}

impl Found<'_> {
    pub(crate) fn is_tombstone(&self) -> bool {
        match self {
            Found::Memory(record, _) => record.is_tombstone(),
            Found::Disk(record) => record.is_tombstone(),
        }
    }

    /// The record, where it is in memory and can be marked.
    pub(crate) fn in_memory(&self) -> Option<(Record, Address)> {
        match self {
            Found::Memory(record, address) => Some((*record, *address)),
            Found::Disk(_) => None,
        }
    }
}

impl Store {
    /// An empty log, in a directory if one is given.
    pub(crate) fn create(options: Options, files: Option<(Checkpoints, Parts)>) -> Result<Store> {
        options.validate_new()?;
        let buckets = Index::buckets_for(options.expected_entries);
        let index =
            Index::new(buckets, options.pages, options.memory_budget).map_err(no_memory(0))?;
        let (checkpoints, parts) = match files {
            Some((checkpoints, parts)) => (Some(checkpoints), Some(parts)),
            None => (None, None),
        };
        let log = Log::new(&options, parts, 1)?;
        Ok(Store::assemble(options, index, log, checkpoints))
    }

    pub(crate) fn assemble(
        options: Options,
        index: Index,
        log: Log,
        checkpoints: Option<Checkpoints>,
    ) -> Store {
        let compactor = Compactor::new(options.compaction.filter(|_| checkpoints.is_some()));
        Store {
            options,
            index,
            log,
            entries: Counter::default(),
            counting: std::sync::Mutex::default(),
            garbage: Counter::default(),
            cold_reads: Counter::default(),
            chains_asked: Counter::default(),
            copy_wants_page: AtomicBool::new(false),
            begin_lock: BeginLock::default(),
            compactor,
            checkpoints,
        }
    }

    /// Attempts until it is done.
    #[inline(never)]
    pub(crate) fn drive<F: InPlace, R>(
        &self,
        mut attempt: impl FnMut(&Pin<'_>, &Fetched) -> std::result::Result<R, Stop>,
    ) -> Result<R> {
        let pin = self.log.epochs.pin();
        let attempted = attempt(&pin, &Fetched::default());
        let nested = !pin.is_outermost();
        drop(pin);
        self.let_index_catch_up::<F>();
        match attempted {
            Ok(done) => Ok(done),
            Err(stop) => self.drive_slow::<F, R>(stop, nested, &mut attempt),
        }
    }

    /// While the index has twice the load that it is made for, helps it grow, then yields so that
    /// the growing thread, or one that it waits for, can run. Call it unpinned.
    #[inline]
    pub(crate) fn let_index_catch_up<F: Form>(&self) {
        if self.index.behind.load(Ordering::Relaxed) != 0 {
            self.catch_up::<F>();
        }
    }

    #[cold]
    fn catch_up<F: Form>(&self) {
        /// A few: a thread may stay pinned for as long as a user's closure runs.
        const YIELDS: usize = 16;
        for _ in 0..YIELDS {
            let epoch = self.index.behind.load(Ordering::Relaxed);
            if epoch == 0 || self.log.epochs.is_pinned() {
                return;
            }
            if self.log.epochs.is_safe(epoch) {
                self.grow::<F>(&self.log.epochs.pin());
            }
            sapwood_mem::sync::yield_now();
        }
    }

    #[cold]
    #[inline(never)]
    fn drive_slow<F: InPlace, R>(
        &self,
        mut stop: Stop,
        nested: bool,
        attempt: &mut dyn FnMut(&Pin<'_>, &Fetched) -> std::result::Result<R, Stop>,
    ) -> Result<R> {
        let mut fetched = Fetched::default();
        let backoff = Backoff::new();
        loop {
            self.wait_for::<F>(stop, nested, &mut fetched, &backoff)?;
            let pin = self.log.epochs.pin();
            match attempt(&pin, &fetched) {
                Ok(done) => return Ok(done),
                Err(next) => stop = next,
            }
        }
    }

    /// After a read, unpinned: begins the page that its copy wanted. A read does not fail because
    /// there is no room for more.
    pub(crate) fn make_room_for_copies(&self) {
        if self.copy_wants_page.load(Ordering::Relaxed) && !self.log.epochs.is_pinned() {
            self.copy_wants_page.store(false, Ordering::Relaxed);
            let _copies_stay_cold = self.log.turn(false, self.bytes_beside());
            self.request_compaction();
        }
    }

    /// Waits for what stopped an attempt.
    pub(crate) fn wait_for<F: InPlace>(
        &self,
        stop: Stop,
        nested: bool,
        fetched: &mut Fetched,
        backoff: &Backoff,
    ) -> Result<()> {
        match stop {
            Stop::Failed(error) => return Err(*error),
            Stop::Raced => backoff.wait(),
            // No page was begun: nothing of what is open to be read is ever changed.
            Stop::PageFull if self.is_read_only() => return Err(Error::ReadOnly),
            Stop::PageFull => {
                // Pages that hold nothing live go without room for a copy.
                while let Err(error) = self.log.turn(nested, self.bytes_beside()) {
                    if nested || !self.reclaim::<F>() {
                        return Err(error);
                    }
                }
                if !nested {
                    self.compact_in_memory::<F>()?;
                }
            }
            Stop::Fuzzy(_) if nested => return Err(Error::WouldBlock),
            Stop::Fuzzy(address) => {
                while (self.log.safe_read_only()..self.log.read_only()).contains(&address) {
                    backoff.wait();
                }
            }
            Stop::Edited(_) if nested => return Err(Error::WouldBlock),
            Stop::Edited(address) => {
                while self.log.is_edited(address) {
                    backoff.wait();
                }
            }
            Stop::Locked(identity) => {
                if let Some(error) = Held::refusal(identity) {
                    return Err(error);
                }
                backoff.wait();
            }
            Stop::Held(identity) if nested => {
                return Err(Held::refusal(identity).unwrap_or(Error::WouldBlock));
            }
            // Unpinned, it waits for no other thread that waits for this one.
            Stop::Held(_) => backoff.wait(),
            Stop::Pinned(epoch) => self.log.wait_for_epoch(epoch),
            Stop::Cold(address) => {
                self.cold_reads.add(1);
                fetched.push(cold::fetch::<F>(&self.log, address)?);
                if !nested {
                    self.read_back::<F>(Share::Earned(1));
                }
            }
        }
        Ok(())
    }

    /// The record at an address from `head` up, if it is of this key and no tombstone. Nearly
    /// every search ends here; the others begin again in `find`.
    #[inline(always)]
    pub(crate) fn record_of<F: Form>(
        &self,
        pin: &Pin<'_>,
        address: Address,
        key: F::Key<'_>,
    ) -> Option<Record> {
        let record = self.log.record(pin, address);
        (F::has_key(record, key) && !record.is_tombstone()).then_some(record)
    }

    /// As `record_of`, if the record may be written in place.
    #[inline(always)]
    pub(crate) fn writable_record_of<F: InPlace>(
        &self,
        pin: &Pin<'_>,
        address: Address,
        key: F::Key<'_>,
    ) -> Option<Record> {
        let record = self.log.record(pin, address);
        // INVARIANT: I-HOLD: the caller writes under the pin under which this is read.
        let is_open = record.flags() & (control::TOMBSTONE | F::HELD) == 0;
        (F::has_key(record, key) && is_open).then_some(record)
    }

    /// Searches for a key's newest record.
    #[cold]
    #[inline(never)]
    pub(crate) fn find<'a, F: Form>(
        &'a self,
        pin: &Pin<'_>,
        hash: u64,
        key: F::Key<'_>,
        fetched: &'a Fetched,
    ) -> std::result::Result<Probed<'a>, Stop> {
        let head = self.log.head();
        let probe = self.index.find(hash, |newest| {
            let mut address = newest;
            loop {
                if address >= head {
                    let record = self.log.record(pin, address);
                    if F::has_key(record, key) {
                        return Walk::Hit(Found::Memory(record, address));
                    }
                    address = record.previous();
                } else if address < self.log.begin() {
                    return Walk::End;
                } else {
                    match fetched.get(address) {
                        None => return Walk::Cold(address),
                        Some(record) if F::key_eq(key, record.key::<F>()) => {
                            return Walk::Hit(Found::Disk(record));
                        }
                        Some(record) => address = record.previous(),
                    }
                }
            }
        });
        Ok(match probe {
            Probe::Hit(place, found) if !found.is_tombstone() => Probed::Present(place, found),
            Probe::Hit(place, found) => Probed::Absent(Some(place), Some(found)),
            Probe::Absent(place) => Probed::Absent(place, None),
            Probe::Cold(place, address) => Probed::Unknown(place, address),
            Probe::Unclear(address) => return Err(Stop::Cold(address)),
        })
    }

    /// As `find`, reading what must be read to know.
    #[inline]
    pub(crate) fn find_known<'a, F: Form>(
        &'a self,
        pin: &Pin<'_>,
        hash: u64,
        key: F::Key<'_>,
        fetched: &'a Fetched,
    ) -> std::result::Result<Probed<'a>, Stop> {
        match self.find::<F>(pin, hash, key, fetched)? {
            Probed::Unknown(_, address) => Err(Stop::Cold(address)),
            known => Ok(known),
        }
    }

    /// Writes a new record of a key at the tail and makes it the newest of its chain.
    ///
    /// `old` is the key's record so far where it is in memory; the caller holds its lock where the
    /// layout has one. Else a removal in place that began while the record was mutable may bury it
    /// until it is marked as superseded: that removal counts as just before, and the answer tells.
    /// The linearization point is the publication in the chain's slot.
    #[inline]
    pub(crate) fn append<F: Form>(
        &self,
        pin: &Pin<'_>,
        hash: u64,
        key: F::Key<'_>,
        value: Option<&[u8]>,
        place: Option<SlotRef<'_>>,
        old: Option<(Record, Address)>,
    ) -> std::result::Result<Old, Stop> {
        let bytes = F::bytes(key, value.map_or(0, <[u8]>::len));
        let address = self.log.alloc(bytes)?;
        let record = self.log.record(pin, address);
        let flags = if value.is_some() { 0 } else { control::TOMBSTONE };
        // Known by now to a thread that allocated above a snapshot's boundary.
        let late = self.log.has_snapshots();
        let previous = match (place, old) {
            (None, _) => Address::NONE,
            // A chain in memory need not keep what no search needs any more.
            (Some(place), Some((old, at)))
                if at == place.address() && !late && self.log.parts.is_none() =>
            {
                old.previous()
            }
            (Some(place), _) => place.address(),
        };
        F::write(record, flags, previous, key, value.unwrap_or(&[]));
        let published = match place {
            // Addresses of a key only grow, so that a cut of the log is a cut of its history.
            Some(place) => place.address() < address && place.publish(address),
            None => match self.index.insert(hash, address, &self.log.epochs, self.may_extend()) {
                Ok(Insert::Done) => true,
                Ok(Insert::Full) => {
                    self.grow::<F>(pin);
                    true
                }
                Ok(Insert::Raced) => false,
                Ok(Insert::Crowded) => self.index.share_slot(hash, address, |previous| {
                    // Chains of several keys are read through: fewer slots for more reads.
                    F::write(record, flags, previous, key, value.unwrap_or(&[]));
                }),
                Err(cause) => {
                    self.abandon::<F>(record);
                    let used = self.log.mapped_bytes() + self.bytes_beside();
                    return Err(no_memory(used)(cause).into());
                }
            },
        };
        if !published {
            self.abandon::<F>(record);
            // A walk of this thread's own may be what is in the way.
            let own = place.is_none() && !pin.is_outermost() && !self.may_extend();
            return Err(if own { Error::WouldBlock.into() } else { Stop::Raced });
        }
        let late = if late { control::LATE } else { 0 };
        Ok(old.map_or(Old::Present, |(old, _)| self.drop_record::<F>(old, late)))
    }

    /// Marks a record that was never published.
    fn abandon<F: Form>(&self, record: Record) {
        record.abandon();
        self.garbage.add(F::bytes_of(record) as i64);
    }

    /// Marks a record that is not the newest of its key any more. Answers what it was.
    fn drop_record<F: Form>(&self, record: Record, flags: u64) -> Old {
        let before = record.supersede(flags);
        if before & control::SUPERSEDED == 0 {
            self.garbage.add(F::bytes_of(record) as i64);
        }
        match before & control::TOMBSTONE {
            0 => Old::Present,
            _ => Old::Absent,
        }
    }

    /// Makes sure that `begin` stays. A pinned thread must not block here: the compaction may be
    /// waiting for its pin.
    pub(crate) fn share_begin(&self) -> Result<Shared<'_>> {
        match self.log.epochs.is_pinned() {
            true => self.begin_lock.try_share().ok_or(Error::WouldBlock),
            false => Ok(self.begin_lock.share()),
        }
    }

    #[cold]
    fn grow<F: Form>(&self, pin: &Pin<'_>) {
        if !self.index.is_overloaded() || !self.may_grow() {
            self.index.behind.store(0, Ordering::Relaxed);
            return;
        }
        // An index that cannot grow has longer chains, and tries again at the next insert.
        let _longer_chains = self.index.grow(&self.log.epochs, |newest, hashes| {
            let mut address = newest;
            while address >= self.log.head() {
                let record = self.log.record(pin, address);
                hashes.push(F::hash_of(record));
                address = record.previous();
            }
            address < self.log.begin()
        });
    }

    /// Whether the index is below half of the budget: the rest is for pages.
    fn may_grow(&self) -> bool {
        self.index_may_pass(|budget| budget / 2)
    }

    /// Whether a full bucket may get another behind it: for a quarter more than the index may grow
    /// to. At the load that it grows at, every fourth bucket has one, and keys that share slots
    /// cost reads.
    fn may_extend(&self) -> bool {
        self.index_may_pass(|budget| budget / 8 * 5)
    }

    /// Whether the index may get another bucket: up to a share of the budget, and to what a page
    /// leaves of it.
    #[inline]
    fn index_may_pass(&self, share: impl FnOnce(u64) -> u64) -> bool {
        self.options.memory_budget.is_none_or(|budget| {
            let beside_a_page = budget.saturating_sub(frame_bytes(self.log.page_bytes));
            self.index.bytes() + bucket::BYTES as u64 <= share(budget).min(beside_a_page)
        })
    }

    /// Whether the log is open to be read alone.
    pub(crate) fn is_read_only(&self) -> bool {
        self.checkpoints.as_ref().is_some_and(|checkpoints| checkpoints.disk.is_read_only())
    }

    /// Bytes of memory beside the log's pages.
    pub(crate) fn bytes_beside(&self) -> u64 {
        let tables = self.log.parts.as_ref().map_or(0, |parts| parts.table_bytes());
        let buffers = self.compactor.buffer_bytes() + self.log.flight_bytes.load(Ordering::Relaxed);
        self.index.bytes() + tables + buffers
    }
}

/// The record that an append replaced, at the moment when it was marked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Old {
    /// It was not in memory, or no tombstone.
    Present,
    /// It was a tombstone.
    Absent,
}

/// The state of a key, as far as memory and the reads so far tell it.
pub(crate) enum Probed<'a> {
    Present(SlotRef<'a>, Found<'a>),
    /// Absent, and its tombstone if there is one. A new record belongs into the place's chain.
    Absent(Option<SlotRef<'a>>, Option<Found<'a>>),
    /// In this place's chain, if anywhere; the record at this address must be read to know.
    Unknown(SlotRef<'a>, Address),
}
