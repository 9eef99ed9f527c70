//! The hash index: from a hash to the chain of records that may hold its key.
//!
//! Buckets by linear hashing: of `count` buckets, with N the greatest power of two up to it,
//! those below `count - N` and from N up are told apart by one more bit of the hash than the
//! others. A slot names a *chain*: the newest record of all keys that share the bucket and the
//! tag; each record names the one before.
//!
//! | module | holds |
//! |---|---|
//! | `bucket` | a line of seven slots and a link |
//! | `buckets` | an array of lines that grows without moving |
//! | `split` | growth, a bucket at a time |
//!
//! # Thread safety
//!
//! Everything by `&self`, pinned. Slots change by compare-and-swap alone, but for a tentative
//! one, which is its inserter's, and those of a frozen bucket, which are the splitter's.
//!
//! # Invariants
//!
//! - I-ONE-CHAIN: all records of a key from `begin` up are in the chain of one slot of its bucket,
//!   newest first, and no other slot of that bucket names that chain: so a slot may be widened to
//!   fewer tag bits and stays right.
//! - I-TENTATIVE: of two inserts with agreeing tags at once, one sees the other before it makes
//!   its slot final: each puts its tentative slot, then looks for others, both SeqCst.
//! - I-SPLIT: a look-up misses only in a bucket that was unfrozen, of the right depth and scanned
//!   the right way before and after its scan.
//! - I-OWN-HEAD: a slot that is not marked as shared, frozen or tentative names the newest record
//!   of all keys of its chain, whatever bucket its reader took this one for: none of them is looked
//!   for in another bucket.
//! - I-PARITY: a word read before a split of its bucket is never equal to one that is there after
//!   it: a slot knows one bit less after each split, and fourteen again after at least six, while
//!   no pinned thread sees a bucket split more than four times; the parity bit tells even depths
//!   from odd besides. A place that is written to was read under the depth that it was found by.

pub(crate) mod bucket;
mod buckets;
mod split;

use std::sync::atomic::AtomicU64 as Plain;

use sapwood_mem::Pages;
use sapwood_mem::epoch::Epochs;
use sapwood_mem::reserve::fillable_bytes;
use sapwood_mem::sync::held::{Mutex, RwLock};
use sapwood_mem::sync::{AtomicU64, Backoff, Ordering, RawAtomicU64};

use crate::index::bucket::{Bucket, BucketScan, Link};
use crate::index::buckets::Buckets;
use crate::lock::lock;
use crate::record::address::Address;
use crate::record::layout::{self, slot};
use crate::striped::StripedCounter;

/// Buckets of a new, empty index.
const BUCKETS_MIN: u64 = 2;
/// Slots in use for each bucket that an index is made for and grows at: six of seven. At that load
/// about a quarter of the buckets have one overflow bucket.
pub(crate) const LOAD: u64 = 6;

/// A hash index.
pub(crate) struct Index {
    buckets: Buckets,
    overflow: Buckets,
    /// The number of buckets in use.
    shape: AtomicU64,
    pub(crate) scan: BucketScan,
    /// Overflow buckets ever used; those free again are in `free`, under whose lock it grows.
    overflow_limit: Plain,
    free: Mutex<Vec<Freed>>,
    pub(crate) slots: StripedCounter,
    /// While the index has twice its load, the epoch that growth waits for; else 0.
    pub(crate) behind: Plain,
    /// Shared by walks over all buckets, taken alone by growth.
    pub(crate) growing: RwLock<crate::index::split::Growing>,
}

/// An overflow bucket unreachable to any thread pinned at `epoch` or later.
struct Freed {
    number: u64,
    epoch: u64,
}

/// A slot and its word when it was read.
#[derive(Clone, Copy)]
pub(crate) struct SlotRef<'a> {
    pub(crate) slot: &'a RawAtomicU64,
    pub(crate) word: u64,
}

impl SlotRef<'_> {
    pub(crate) fn address(&self) -> Address {
        slot::address(self.word)
    }

    /// Lets the slot name another record, unless it changed since it was read.
    ///
    /// Release: pairs with the Acquire of every scan; the record is complete.
    pub(crate) fn publish(&self, address: Address) -> bool {
        debug_assert!(self.word & (slot::TENTATIVE | slot::FROZEN) == 0);
        let new = slot::with_address(self.word, address);
        // AcqRel: pairs with the Acquire of every scan; the record is complete.
        self.slot.compare_exchange(self.word, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Empties the slot, unless it changed since it was read.
    pub(crate) fn clear(&self) -> bool {
        self.slot.compare_exchange(self.word, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// The answer of a chain's records about a key.
pub(crate) enum Walk<T> {
    /// The newest record of the key.
    Hit(T),
    /// The chain goes on at a record that is not in memory.
    Cold(Address),
    /// The key is not in this chain.
    End,
}

/// The answer of the index about a key.
pub(crate) enum Probe<'a, T> {
    Hit(SlotRef<'a>, T),
    /// To know more, the record at this address must be read; the key, if it is there at all, is
    /// in this place's chain.
    Cold(SlotRef<'a>, Address),
    /// As `Cold`, but another chain comes into question too.
    Unclear(Address),
    /// Not there; a new record belongs into this place's chain, or into a new slot.
    Absent(Option<SlotRef<'a>>),
}

/// The answer of a chain about a key of which the first bucket names no record.
#[derive(Clone, Copy)]
pub(crate) enum Look {
    /// This record may be the key's newest.
    Named(Address),
    /// If there is one, it is in this overflow bucket or behind.
    Behind(u64),
    /// Only a search can tell.
    Unsure,
    Nothing,
}

/// The outcome of an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Insert {
    Done,
    /// As `Done`, and the index should grow.
    Full,
    /// Another insert was first: look again.
    Raced,
    /// The bucket is full, and may not have another behind it.
    Crowded,
}

/// The number of buckets in use, in one word: the level, log2 of N, in the lowest byte; above it
/// the buckets beyond N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexShape(pub(crate) u64);

impl IndexShape {
    pub(crate) fn new(count: u64) -> IndexShape {
        let level = count.ilog2();
        IndexShape((count - (1 << level)) << 8 | u64::from(level))
    }

    #[inline]
    fn level(self) -> u32 {
        self.0 as u32 & 0xFF
    }

    #[inline]
    fn count(self) -> u64 {
        (1 << self.level()) + (self.0 >> 8)
    }

    /// The bucket of a hash, and its depth.
    #[inline(always)]
    pub(crate) fn number_and_depth(self, hash: u64) -> (u64, u32) {
        let level = self.level();
        let half = 1 << level;
        let number = hash & (half - 1);
        let is_split = number < self.0 >> 8;
        // Any hash may go either way: no branch would foresee it.
        let split = hash & (2 * half - 1);
        (std::hint::select_unpredictable(is_split, split, number), level + u32::from(is_split))
    }
}

/// Depth of bucket `number` of `count`.
pub(crate) fn depth_of(number: u64, count: u64) -> u32 {
    let level = count.ilog2();
    let half = 1 << level;
    if number < count - half || number >= half { level + 1 } else { level }
}

impl Index {
    /// Buckets for so many entries.
    pub(crate) fn buckets_for(entries: u64) -> u64 {
        entries.div_ceil(LOAD).next_power_of_two().max(BUCKETS_MIN)
    }

    /// Bytes of buckets for so many entries.
    pub(crate) fn first_bytes(entries: u64) -> u64 {
        Index::buckets_for(entries).saturating_mul(layout::bucket::BYTES as u64)
    }

    /// An index of so many buckets, that may grow up to `most` bytes.
    pub(crate) fn new(count: u64, pages: Pages, most: Option<u64>) -> std::io::Result<Index> {
        let most = most.map_or(usize::MAX, |bytes| bytes as usize).min(fillable_bytes());
        let index = Index {
            // No table is all index, nor an index all overflow.
            buckets: Buckets::new(pages, (most / 2).max(count as usize * layout::bucket::BYTES))?,
            overflow: Buckets::new(pages, most / 4)?,
            shape: AtomicU64::new(IndexShape::new(count).0),
            scan: BucketScan::detect(),
            overflow_limit: Plain::new(0),
            free: Mutex::default(),
            slots: StripedCounter::default(),
            behind: Plain::new(0),
            growing: RwLock::default(),
        };
        index.buckets.ensure(count)?;
        for number in 0..count {
            let link = Link::new(depth_of(number, count), None, false);
            index.buckets.at(number).link_word().store(link.0, Ordering::Relaxed);
        }
        Ok(index)
    }

    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.shape().count()
    }

    #[inline(always)]
    fn shape(&self) -> IndexShape {
        // Acquire: pairs with the Release of the split that made the shape.
        IndexShape(self.shape.load(Ordering::Acquire))
    }

    pub(crate) fn set_count(&self, count: u64) {
        // Release: pairs with the Acquire in `shape`; the new bucket is complete.
        self.shape.store(IndexShape::new(count).0, Ordering::Release);
    }

    #[inline]
    pub(crate) fn bucket(&self, number: u64) -> &Bucket {
        self.buckets.at(number)
    }

    pub(crate) fn overflow(&self, number: u64) -> &Bucket {
        self.overflow.at(number)
    }

    pub(crate) fn ensure(&self, count: u64) -> std::io::Result<()> {
        self.buckets.ensure(count)
    }

    /// Asks for the line of a hash's bucket.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.buckets.prefetch(self.number(hash));
    }

    #[inline]
    fn number(&self, hash: u64) -> u64 {
        self.shape().number_and_depth(hash).0
    }

    /// Asks for the line of an overflow bucket.
    pub(crate) fn prefetch_overflow(&self, number: u64) {
        self.overflow.prefetch(number);
    }

    /// Asks for the line of a bucket.
    pub(crate) fn prefetch_bucket(&self, number: u64) {
        self.buckets.prefetch(number);
    }

    /// The bucket of a hash, and its link: unfrozen and of the depth that belongs to the hash.
    #[inline]
    pub(crate) fn locate(&self, hash: u64) -> (&Bucket, Link) {
        let number = self.number(hash);
        let bucket = self.bucket(number);
        let link = bucket.link();
        if !link.is_frozen() && hash & ((1 << link.depth()) - 1) == number {
            return (bucket, link);
        }
        self.locate_slow(hash)
    }

    #[cold]
    fn locate_slow(&self, hash: u64) -> (&Bucket, Link) {
        let backoff = Backoff::new();
        loop {
            let number = self.number(hash);
            let bucket = self.bucket(number);
            let link = bucket.link();
            if !link.is_frozen() && hash & ((1 << link.depth()) - 1) == number {
                return (bucket, link);
            }
            backoff.wait();
        }
    }

    /// The record that the first agreeing slot of a hash's bucket names, or NONE: where nearly
    /// every search ends. If it is the key's, it is the key's newest (I-OWN-HEAD, so that it does
    /// not matter whether the bucket has another depth by now); if not, or none, nothing is known.
    #[inline(always)]
    pub(crate) fn look(&self, hash: u64) -> Address {
        self.scan.look(&self.buckets, self.shape(), hash)
    }

    /// As `look`, going on where that named none.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_on(&self, hash: u64) -> Look {
        let link = self.bucket(self.number(hash)).link();
        match link.overflow() {
            Some(next) => Look::Behind(next),
            None if link.is_short() => Look::Unsure,
            None => Look::Nothing,
        }
    }

    /// As `look_on`, from an overflow bucket of the chain on to its end.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_behind(&self, hash: u64, mut next: u64) -> Look {
        let link = self.bucket(self.number(hash)).link();
        loop {
            let bucket = self.overflow(next);
            match bucket.look(self.scan, hash >> link.depth()) {
                Address::NONE => {}
                named => return Look::Named(named),
            }
            match bucket.link().overflow() {
                Some(number) => next = number,
                None if link.is_short() => return Look::Unsure,
                None => return Look::Nothing,
            }
        }
    }

    /// Searches for a key. `walk` follows a chain from its newest record.
    #[inline]
    pub(crate) fn find<T>(
        &self,
        hash: u64,
        mut walk: impl FnMut(Address) -> Walk<T>,
    ) -> Probe<'_, T> {
        'search: loop {
            let (first, link) = self.locate(hash);
            let depth = link.depth();
            let tag = slot::tag_of(hash, depth);
            let mut agreeing: Option<SlotRef<'_>> = None;
            let mut cold: Option<(SlotRef<'_>, Address)> = None;
            let mut chains = 0;
            let mut bucket = first;
            let mut next = link;
            loop {
                let mut candidates = match link.is_short() {
                    false => bucket.candidates::<{ slot::SCAN_MASK }>(self.scan, depth, tag),
                    true => bucket.candidates_slow(depth, tag),
                };
                while candidates != 0 {
                    let slot = bucket.slot(candidates.trailing_zeros() as usize);
                    candidates &= candidates - 1;
                    // Acquire: pairs with the Release of the thread that filled the slot.
                    let word = slot.load(Ordering::Acquire);
                    let settled = word & (slot::PARITY | slot::TENTATIVE) == slot::parity(depth);
                    if !settled || !slot::agrees(word, tag) {
                        continue;
                    }
                    // A frozen slot still names its chain; a change of it fails.
                    let place = SlotRef { slot, word: word & !slot::FROZEN };
                    chains += 1;
                    match walk(place.address()) {
                        // I-PARITY, since the place may be written to.
                        Walk::Hit(found) if link.stood_until(first.link()) => {
                            return Probe::Hit(place, found);
                        }
                        Walk::Hit(_) => continue 'search,
                        Walk::Cold(address) => cold = Some((place, address)),
                        Walk::End => agreeing = Some(place),
                    }
                }
                match next.overflow() {
                    None => break,
                    Some(number) => {
                        bucket = self.overflow(number);
                        next = bucket.link();
                    }
                }
            }
            // I-SPLIT. An overflow bucket that was added since is a tentative insert's, which
            // will see ours or we its final slot.
            let after = first.link();
            if !link.stood_until(after) {
                continue;
            }
            return match cold {
                Some((place, address)) if chains == 1 => Probe::Cold(place, address),
                Some((_, address)) => Probe::Unclear(address),
                None => Probe::Absent(agreeing),
            };
        }
    }

    /// Makes a slot for a record, unless its key has a chain.
    #[inline]
    pub(crate) fn insert(
        &self,
        hash: u64,
        address: Address,
        epochs: &Epochs,
        may_extend: bool,
    ) -> std::io::Result<Insert> {
        if Bucket::SCANS_IN_ORDER
            && let Some(done) = self.insert_quick(hash, address)
        {
            return Ok(done);
        }
        self.insert_slow(hash, address, epochs, may_extend)
    }

    /// Makes a slot in a bucket that has room, nothing behind, and no slot that looks like the new
    /// one.
    #[inline]
    fn insert_quick(&self, hash: u64, address: Address) -> Option<Insert> {
        let (first, link) = self.locate(hash);
        let tag = slot::tag_of(hash, link.depth());
        let alike = || first.candidates::<{ slot::SCAN_TAG_MASK }>(self.scan, 0, tag);
        let vacant = first.vacancies(self.scan);
        if vacant == 0 || link.is_short() || link.overflow().is_some() || alike() != 0 {
            return None;
        }
        #[cfg(all(test, not(loom)))]
        tests::meanwhile();
        let at = vacant.trailing_zeros() as usize;
        let mine = first.slot(at);
        let word = slot::word(link.depth(), tag, slot::TAG_BITS, address);
        // SeqCst: I-TENTATIVE.
        let tentative = word | slot::TENTATIVE;
        mine.compare_exchange(0, tentative, Ordering::SeqCst, Ordering::Relaxed).ok()?;
        let alone = first.link_in_order() == link && alike() == 1 << at;
        self.decide(mine, word, alone, (first, link, tag, (0, at)))
    }

    #[cold]
    #[inline(never)]
    fn insert_slow(
        &self,
        hash: u64,
        address: Address,
        epochs: &Epochs,
        may_extend: bool,
    ) -> std::io::Result<Insert> {
        let backoff = Backoff::new();
        let mut grew = false;
        loop {
            let (first, link) = self.locate(hash);
            let depth = link.depth();
            let tag = slot::tag_of(hash, depth);
            let word = slot::word(depth, tag, slot::TAG_BITS, address);
            let (mine, position) = match self.free_slot(first, depth, tag) {
                Free::Slot(free, position) => (free, position),
                Free::Taken => return Ok(Insert::Raced),
                Free::Tentative => {
                    backoff.wait();
                    continue;
                }
                Free::None(_) if !may_extend => return Ok(Insert::Crowded),
                Free::None(last) => {
                    self.extend(last, epochs)?;
                    grew = true;
                    continue;
                }
            };
            // SeqCst here and in `settle`: I-TENTATIVE.
            let tentative = word | slot::TENTATIVE;
            if mine.compare_exchange(0, tentative, Ordering::SeqCst, Ordering::Relaxed).is_err() {
                continue;
            }
            match self.decide(mine, word, false, (first, link, tag, position)) {
                Some(Insert::Done) if grew || position.0 > 0 => return Ok(Insert::Full),
                Some(decided) => return Ok(decided),
                None => backoff.wait(),
            }
        }
    }

    /// Makes a tentative slot final, unless another insert was first; `None` to try again. `alone`:
    /// there is no other, as is known by now.
    #[inline]
    fn decide(
        &self,
        mine: &RawAtomicU64,
        word: u64,
        alone: bool,
        (first, link, tag, position): (&Bucket, Link, u64, (usize, usize)),
    ) -> Option<Insert> {
        let settled = match alone {
            true => Settled::Alone,
            false => self.settle(first, link, tag, position),
        };
        match settled {
            Settled::Alone => {
                // Release: pairs with the Acquire of every scan; the record is complete.
                mine.store(word, Ordering::Release);
                self.slots.add(1);
                Some(Insert::Done)
            }
            Settled::Taken => {
                // Release: pairs with the Acquire of the next insert into the slot.
                mine.store(0, Ordering::Release);
                Some(Insert::Raced)
            }
            Settled::Yield => {
                // Release: pairs with the Acquire of the next insert into the slot.
                mine.store(0, Ordering::Release);
                None
            }
        }
    }

    /// Puts a slot of an index image back. No other thread uses the index yet.
    pub(crate) fn place(&self, number: u64, word: u64, epochs: &Epochs) -> std::io::Result<()> {
        loop {
            let first = self.bucket(number);
            let mut last = first;
            for bucket in self.chain(first) {
                for at in 0..layout::bucket::SLOTS {
                    if bucket.slot(at).load(Ordering::Relaxed) == 0 {
                        // Release: pairs with the Acquire of scans, once threads share the index.
                        bucket.slot(at).store(word, Ordering::Release);
                        if slot::known_bits(word) < slot::SCAN_BITS {
                            // Release: pairs with the Acquire of scans, once threads share the
                            // index.
                            first.link_word().fetch_or(layout::bucket::SHORT, Ordering::Release);
                        }
                        self.slots.add(1);
                        return Ok(());
                    }
                }
                last = bucket;
            }
            self.extend(last, epochs)?;
        }
    }

    /// Puts a record of a replayed log back: into the slot that named the record before it, else
    /// into a new one. No other thread uses the index yet.
    pub(crate) fn restore(
        &self,
        hash: u64,
        address: Address,
        previous: Address,
        begin: Address,
        epochs: &Epochs,
    ) -> std::io::Result<()> {
        let number = self.number(hash);
        let depth = self.bucket(number).link().depth();
        let tag = slot::tag_of(hash, depth);
        let first = self.bucket(number);
        let (mut given_up, mut shared) = (None, None);
        for bucket in self.chain(first) {
            for at in 0..layout::bucket::SLOTS {
                let slot = bucket.slot(at);
                let word = slot.load(Ordering::Relaxed);
                let agrees = slot::agrees(word, tag);
                if word != 0 && slot::address(word) == previous && previous >= begin {
                    if agrees {
                        // Release: pairs with the Acquire of scans, once threads share the index.
                        slot.store(slot::with_address(word, address), Ordering::Release);
                        return Ok(());
                    }
                    shared = Some((slot, word));
                } else if agrees && slot::address(word) < begin {
                    given_up = Some((slot, word));
                }
            }
        }
        if let Some((slot, word)) = shared {
            // It was found by fewer bits then: as many as both know.
            let known = slot::common_bits(word, tag);
            slot.store(slot::word(depth, tag, known, address), Ordering::Release);
            if known < slot::SCAN_BITS {
                // Release: pairs with the Acquire of scans, once threads share the index.
                first.link_word().fetch_or(layout::bucket::SHORT, Ordering::Release);
            }
            return Ok(());
        }
        match given_up {
            Some((slot, word)) => {
                // Release: pairs with the Acquire of scans, once threads share the index.
                slot.store(slot::with_address(word, address), Ordering::Release);
                Ok(())
            }
            None => self.place(number, slot::word(depth, tag, slot::TAG_BITS, address), epochs),
        }
    }

    fn free_slot<'a>(&'a self, first: &'a Bucket, depth: u32, tag: u64) -> Free<'a> {
        let mut free = None;
        for (step, bucket) in self.chain(first).enumerate() {
            for at in 0..layout::bucket::SLOTS {
                // Acquire: pairs with the Release of the thread that filled the slot.
                let word = bucket.slot(at).load(Ordering::Acquire);
                if word == 0 {
                    free = free.or(Some(Free::Slot(bucket.slot(at), (step, at))));
                } else if word & slot::PARITY == slot::parity(depth) && slot::agrees(word, tag) {
                    let tentative = word & slot::TENTATIVE != 0;
                    return if tentative { Free::Tentative } else { Free::Taken };
                }
            }
        }
        free.unwrap_or_else(|| Free::None(self.chain(first).last().expect("a chain has a bucket")))
    }

    /// Looks, with the tentative slot at `position` in place, whether another thread inserts or
    /// has inserted an agreeing tag.
    fn settle(&self, first: &Bucket, before: Link, tag: u64, position: (usize, usize)) -> Settled {
        loop {
            // Else the slot may lie in a bucket that was packed away.
            if !before.stood_until(first.link_in_order()) {
                return Settled::Yield;
            }
            let mut later = None;
            for (step, bucket) in self.chain(first).enumerate() {
                for at in 0..layout::bucket::SLOTS {
                    let word = bucket.slot(at).load(Ordering::SeqCst);
                    if (step, at) == position || !slot::agrees(word, tag) {
                        continue;
                    }
                    if word & slot::TENTATIVE == 0 {
                        return Settled::Taken;
                    }
                    if (step, at) < position {
                        return Settled::Yield;
                    }
                    later = Some((bucket.slot(at), word));
                }
            }
            let Some((slot, word)) = later else { return Settled::Alone };
            // The one further back gives way, or was about to be final: it never waits for us.
            let backoff = Backoff::new();
            while slot.load(Ordering::SeqCst) == word {
                backoff.wait();
            }
        }
    }

    /// The buckets of a chain.
    pub(crate) fn chain<'a>(&'a self, first: &'a Bucket) -> impl Iterator<Item = &'a Bucket> {
        std::iter::successors(Some(first), |bucket| {
            bucket.link().overflow().map(|number| self.overflow(number))
        })
    }

    /// Adds a bucket behind the last one of a chain, unless another thread did or it is frozen.
    fn extend(&self, last: &Bucket, epochs: &Epochs) -> std::io::Result<()> {
        let link = last.link();
        if link.is_frozen() || link.overflow().is_some() {
            return Ok(());
        }
        let number = self.take_overflow(epochs)?;
        let new = link.with_overflow(number);
        // Release: pairs with the Acquire in `link`; the bucket is zeroed.
        let linked = last
            .link_word()
            .compare_exchange(link.0, new.0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if !linked {
            self.give_overflow([number], 0);
        }
        Ok(())
    }

    /// An overflow bucket, all zero.
    pub(crate) fn take_overflow(&self, epochs: &Epochs) -> std::io::Result<u64> {
        let mut free = lock(&self.free);
        let number = match free.iter().position(|freed| epochs.is_safe(freed.epoch)) {
            Some(at) => free.swap_remove(at).number,
            None => {
                // Under the lock, and counted once it is there: a refusal uses no number up.
                let number = self.overflow_limit.load(Ordering::Relaxed);
                self.overflow.ensure(number + 1)?;
                self.overflow_limit.store(number + 1, Ordering::Relaxed);
                number
            }
        };
        drop(free);
        let bucket = self.overflow(number);
        for at in 0..layout::bucket::SLOTS {
            bucket.slot(at).store(0, Ordering::Relaxed);
        }
        bucket.link_word().store(layout::bucket::NO_SLOT, Ordering::Relaxed);
        Ok(number)
    }

    /// Frees overflow buckets unreachable to any thread pinned at `epoch` or later.
    pub(crate) fn give_overflow(&self, numbers: impl IntoIterator<Item = u64>, epoch: u64) {
        lock(&self.free).extend(numbers.into_iter().map(|number| Freed { number, epoch }));
    }

    pub(crate) fn overflow_in_use(&self) -> u64 {
        // Under the lock: what is free was counted before it became so.
        let free = lock(&self.free);
        self.overflow_limit.load(Ordering::Relaxed) - free.len() as u64
    }

    /// Whether so many slots ask for more buckets.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.slots.sum() > self.count() * LOAD
    }

    /// Bytes of buckets that were ever used.
    pub(crate) fn bytes(&self) -> u64 {
        (self.count() + self.overflow_limit.load(Ordering::Relaxed)) * layout::bucket::BYTES as u64
    }
}

enum Free<'a> {
    /// A free slot and its position in the chain.
    Slot(&'a RawAtomicU64, (usize, usize)),
    /// A final slot with an agreeing tag is there.
    Taken,
    /// A tentative slot with an agreeing tag is there.
    Tentative,
    /// No free slot up to this last bucket.
    None(&'a Bucket),
}

enum Settled {
    Alone,
    Taken,
    Yield,
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests;
