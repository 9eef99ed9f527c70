//! How is everything visited? In bucket order, or in log order as of one moment.
//!
//! Bucket order goes slot by slot and follows each chain: random reads, weakly consistent. Log
//! order goes page by page: sequential, and exact. Its moment is fixed by
//! [`Log::pin_below`](crate::log::Log::pin_below): records below the boundary stay as they are,
//! what is changed meanwhile is appended above. Of those below, the newest of each key is live at
//! that moment: one in memory that no flag calls superseded; of the others the chain tells, whose
//! first record of the key below the boundary it is or is not.

use std::ops::ControlFlow;
use std::sync::PoisonError;

use sapwood_disk::Blocks;
use sapwood_mem::boundary::Pin;
use sapwood_mem::sync::Ordering;

use crate::address::{Address, UNIT_BYTES};
use crate::bucket::Bucket;
use crate::cold::{self, Coming, Extent, Fetched};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::index::{Probe, Walk};
use crate::layout::{bucket, control, slot};
use crate::life::Shared;
use crate::record::{Form, Record, word_at};

/// A moment that is being looked at.
pub(crate) struct Moment<'a> {
    core: &'a Core,
    /// Records below are as of the moment.
    pub(crate) boundary: Address,
    /// Nothing is compacted meanwhile.
    _life: Shared<'a>,
}

impl Drop for Moment<'_> {
    fn drop(&mut self) {
        self.core.log.unpin_below(self.boundary);
    }
}

/// A record whose chain goes on at one that must be read first.
struct Doubt {
    address: Address,
    key: Vec<u8>,
    value: Vec<u8>,
    fetched: Fetched,
    wanted: Address,
}

/// Records are asked for together.
const SENT: usize = 64;

/// What a record's flags say about it.
pub(crate) enum Verdict {
    Live,
    Dead,
    /// Only its chain knows.
    Ask,
}

pub(crate) fn verdict(flags: u64, marked: bool) -> Verdict {
    if flags & control::TOMBSTONE != 0 {
        Verdict::Dead
    } else if flags & control::SUPERSEDED == 0 {
        if marked { Verdict::Live } else { Verdict::Ask }
    } else if flags & control::LATE == 0 {
        Verdict::Dead
    } else {
        Verdict::Ask
    }
}

impl Core {
    /// Fixes this moment.
    pub(crate) fn moment(&self) -> Result<Moment<'_>> {
        if self.log.epochs.is_pinned() {
            return Err(Error::WouldBlock);
        }
        let life = self.life.share();
        let boundary = self.log.pin_below();
        Ok(Moment { core: self, boundary, _life: life })
    }

    /// Visits what was live at a moment, of some pages.
    pub(crate) fn scan<F: Form, B>(
        &self,
        boundary: Address,
        (part, parts): (usize, usize),
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let first = self.log.page_of(self.log.begin());
        let pages = self.log.page_of(boundary) - first;
        let (from, to) = share(pages, part, parts);
        let (mut doubts, mut coming) = (Vec::new(), Coming::default());
        let most = cold::in_flight_max(self.options.memory_budget);
        let mut buffer = None;
        for page in first + from..first + to {
            let mut flow =
                self.scan_page::<F, B>(page, boundary, &mut buffer, &mut doubts, visit)?;
            if flow.is_continue() && doubts.len() >= SENT {
                flow = self.resolve::<F, B>(boundary, &mut doubts, &mut coming, most, visit)?;
            }
            if flow.is_break() {
                return Ok(flow);
            }
        }
        self.resolve::<F, B>(boundary, &mut doubts, &mut coming, 0, visit)
    }

    fn scan_page<F: Form, B>(
        &self,
        page: u64,
        boundary: Address,
        buffer: &mut Option<Blocks>,
        doubts: &mut Vec<Doubt>,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let start = self.log.page_start(page);
        {
            let pin = self.log.epochs.pin();
            if start >= self.log.head() {
                let marked = start >= self.log.marked();
                return self.scan_memory::<F, B>(&pin, page, marked, boundary, doubts, visit);
            }
        }
        let parts = self.log.parts.as_ref().expect("pages below head are on the disk");
        let blocks = buffer.get_or_insert_with(|| Blocks::new(self.log.page_bytes));
        parts.read_page(page, blocks)?;
        let stored = &blocks.bytes()[..self.log.page_bytes];
        for_each_stored::<F, B>(stored, 0, |offset, record| {
            let address = self.at(page, offset);
            let (key, value) =
                F::split(record).ok_or_else(|| not_a_record(parts.place(), address))?;
            let flags = word_at(record, 0).expect("a record has a control word");
            self.judge::<F, B>(address, flags, false, boundary, (key, value), doubts, visit)
        })
    }

    fn scan_memory<F: Form, B>(
        &self,
        pin: &Pin<'_>,
        page: u64,
        marked: bool,
        boundary: Address,
        doubts: &mut Vec<Doubt>,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let mut offset = 0;
        while let Some((address, record, flags)) = self.next_record::<F>(pin, page, &mut offset) {
            let flow = match verdict(flags, marked) {
                Verdict::Dead => continue,
                Verdict::Live => F::visit(record, &mut *visit),
                Verdict::Ask => F::visit(record, |key, value| {
                    self.judge::<F, B>(
                        address,
                        flags,
                        marked,
                        boundary,
                        (key, value),
                        doubts,
                        visit,
                    )
                })?,
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    #[expect(clippy::too_many_arguments, reason = "one step of two loops")]
    fn judge<F: Form, B>(
        &self,
        address: Address,
        flags: u64,
        marked: bool,
        boundary: Address,
        (key, value): (&[u8], &[u8]),
        doubts: &mut Vec<Doubt>,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        match verdict(flags, marked) {
            Verdict::Dead => return Ok(ControlFlow::Continue(())),
            Verdict::Live => return Ok(visit(key, value)),
            Verdict::Ask => {}
        }
        match self.was_live::<F>(address, boundary, F::key(key)?, &Fetched::default()) {
            Ok(true) => Ok(visit(key, value)),
            Ok(false) => Ok(ControlFlow::Continue(())),
            Err(wanted) => {
                let (key, value) = (key.to_vec(), value.to_vec());
                doubts.push(Doubt { address, key, value, fetched: Fetched::default(), wanted });
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Reads what doubts wait for, until no more than `most` are left.
    fn resolve<F: Form, B>(
        &self,
        boundary: Address,
        doubts: &mut Vec<Doubt>,
        coming: &mut Coming<Doubt>,
        most: usize,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        loop {
            while coming.len() > most {
                let Some((mut doubt, record)) = coming.receive::<F>(&self.log, Extent::Key) else {
                    break;
                };
                doubt.fetched.push(record?);
                let key = F::key(&doubt.key)?;
                match self.was_live::<F>(doubt.address, boundary, key, &doubt.fetched) {
                    Ok(false) => {}
                    Err(wanted) => doubts.push(Doubt { wanted, ..doubt }),
                    Ok(true) => {
                        if let flow @ ControlFlow::Break(_) = visit(&doubt.key, &doubt.value) {
                            return Ok(flow);
                        }
                    }
                }
            }
            if doubts.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            self.cold_reads.add(doubts.len() as i64);
            let wanted = doubts.drain(..).map(|doubt| {
                let wanted = doubt.wanted;
                (doubt, wanted)
            });
            coming.send(&self.log, wanted.collect());
        }
    }

    /// Whether the record at `target` was the newest of its key below `boundary`, or which record
    /// must be read to know.
    pub(crate) fn was_live<F: Form>(
        &self,
        target: Address,
        boundary: Address,
        key: F::Key<'_>,
        fetched: &Fetched,
    ) -> std::result::Result<bool, Address> {
        let pin = self.log.epochs.pin();
        let head = self.log.head();
        let probe = self.index.find(F::hash(key), |newest| {
            let mut address = newest;
            while address > target {
                let same_key;
                let previous;
                if address >= head {
                    let record = self.log.record(&pin, address);
                    same_key = address < boundary && F::has_key(record, key);
                    previous = record.previous();
                } else if let Some(record) = fetched.get(address) {
                    same_key = address < boundary && F::key_eq(key, record.key::<F>());
                    previous = record.previous();
                } else {
                    return Walk::Cold(address);
                }
                if same_key {
                    return Walk::Hit(false);
                }
                address = previous;
            }
            if address == target { Walk::Hit(true) } else { Walk::End }
        });
        match probe {
            Probe::Hit(_, live) => Ok(live),
            Probe::Absent(_) => Ok(false),
            Probe::Cold(_, address) | Probe::Unclear(address) => Err(address),
        }
    }

    /// The next record of a page in memory, its address and flags.
    #[inline]
    pub(crate) fn next_record<F: Form>(
        &self,
        pin: &Pin<'_>,
        page: u64,
        offset: &mut usize,
    ) -> Option<(Address, Record, u64)> {
        while *offset + F::PREFIX <= self.log.page_bytes {
            let address = self.at(page, *offset);
            let record = self.log.record(pin, address);
            let flags = record.flags();
            if flags & control::VALID != 0 {
                *offset += F::bytes_of(record);
                return Some((address, record, flags));
            }
            if F::STRIDE == 0 {
                return None;
            }
            *offset += F::STRIDE;
        }
        None
    }

    pub(crate) fn at(&self, page: u64, offset: usize) -> Address {
        Address::from_units((page * self.log.page_bytes as u64 + offset as u64) / UNIT_BYTES as u64)
    }

    /// Visits the entries of some buckets. The index does not grow meanwhile.
    pub(crate) fn walk_buckets<F: Form, B>(
        &self,
        (part, parts): (usize, usize),
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let _life = self.life.share();
        let _still = self.index.growing.read().unwrap_or_else(PoisonError::into_inner);
        let share = Share { part, parts };
        let count = self.index.count();
        let (mut chains, mut words) = (Vec::new(), Vec::new());
        let mut coming = Coming::default();
        let most = cold::in_flight_max(self.options.memory_budget);
        let mut group = 0;
        while group < count {
            let limit = (group + GROUP).min(count);
            if !(group..limit).any(|number| share.may_own(number, self.index.bucket(number))) {
                group = limit;
                continue;
            }
            let pin = self.log.epochs.pin();
            // Two passes, so that the records' lines are on their way.
            for number in group..limit {
                self.index.prefetch_bucket((number + GROUP).min(count - 1));
                self.for_each_slot(number, |word| self.log.prefetch(&pin, slot::address(word)));
            }
            for number in group..limit {
                if !share.may_own(number, self.index.bucket(number)) {
                    continue;
                }
                let depth = self.index.bucket(number).link().depth();
                self.slots_at_once(number, &mut words);
                for word in &words {
                    let mut chain = Chain::new(*word, number, depth, share);
                    let flow = chain.visit::<F, B>(self, &pin, visit);
                    if flow.is_break() {
                        return Ok(flow);
                    }
                    if chain.wanted.is_some() {
                        chains.push(chain);
                    }
                }
            }
            drop(pin);
            group = limit;
            if chains.len() >= SENT {
                let flow = self.follow_chains::<F, B>(&mut chains, &mut coming, most, visit)?;
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        self.follow_chains::<F, B>(&mut chains, &mut coming, 0, visit)
    }

    /// The words of a bucket's slots as they were at one moment, so that a key that leaves one slot
    /// and comes back in another is in one of them: read until two readings are the same. No word
    /// ever comes back, since no address is given twice.
    fn slots_at_once(&self, number: u64, words: &mut Vec<u64>) {
        loop {
            words.clear();
            self.for_each_slot(number, |word| words.push(word & !slot::FROZEN));
            let (mut at, mut same) = (0, true);
            self.for_each_slot(number, |word| {
                same &= words.get(at) == Some(&(word & !slot::FROZEN));
                at += 1;
            });
            if same && at == words.len() {
                return;
            }
        }
    }

    /// Words of the slots in use of a chain of buckets.
    pub(crate) fn for_each_slot(&self, number: u64, mut each: impl FnMut(u64)) {
        for bucket in self.index.chain(self.index.bucket(number)) {
            for at in 0..bucket::SLOTS {
                let word = bucket.slot(at).load(Ordering::Acquire);
                if word & slot::ADDRESS_MASK != 0 && word & slot::TENTATIVE == 0 {
                    each(word);
                }
            }
        }
    }

    /// Follows chains whose next record must be read, until no more than `most` are left.
    fn follow_chains<F: Form, B>(
        &self,
        chains: &mut Vec<Chain>,
        coming: &mut Coming<Chain>,
        most: usize,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        loop {
            while coming.len() > most {
                let Some((mut chain, record)) = coming.receive::<F>(&self.log, Extent::Whole)
                else {
                    break;
                };
                chain.fetched.push(record?);
                let pin = self.log.epochs.pin();
                let flow = chain.visit::<F, B>(self, &pin, visit);
                if flow.is_break() {
                    return Ok(flow);
                }
                if chain.wanted.is_some() {
                    chains.push(chain);
                }
            }
            if chains.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            self.cold_reads.add(chains.len() as i64);
            let wanted = chains.drain(..).filter_map(|chain| {
                let wanted = chain.wanted?;
                Some((chain, wanted))
            });
            coming.send(&self.log, wanted.collect());
        }
    }
}

/// Buckets whose lines are fetched together.
const GROUP: u64 = 8;

/// Part of the keys, by bits of their hashes: the same keys however many buckets there are.
#[derive(Clone, Copy)]
struct Share {
    part: usize,
    parts: usize,
}

impl Share {
    const BITS: u32 = 16;

    fn owns(self, hash: u64) -> bool {
        // Reversed, so that few parts are contiguous runs of many low bits.
        let place = usize::from((hash as u16).reverse_bits());
        (place * self.parts) >> Self::BITS == self.part
    }

    /// Whether all keys of a bucket of this depth are in the same part.
    fn is_whole(self, depth: u32) -> bool {
        self.parts == 1 || depth >= Self::BITS
    }

    fn may_own(self, number: u64, bucket: &Bucket) -> bool {
        self.parts == 1 || !self.is_whole(bucket.link().depth()) || self.owns(number)
    }
}

/// A chain that is being followed, from its newest record at one moment.
struct Chain {
    word: u64,
    number: u64,
    depth: u32,
    share: Share,
    next: Address,
    /// Keys met so far, of chains of more than one record.
    seen: Vec<Vec<u8>>,
    fetched: Fetched,
    wanted: Option<Address>,
}

impl Chain {
    fn new(word: u64, number: u64, depth: u32, share: Share) -> Chain {
        let (next, seen, fetched) = (slot::address(word), Vec::new(), Fetched::default());
        Chain { word, number, depth, share, next, seen, fetched, wanted: None }
    }

    /// Whether the slot is the one that the key is looked for in: another may share its chain.
    fn owns(&self, hash: u64) -> bool {
        hash & ((1 << self.depth) - 1) == self.number
            && slot::agrees(self.word, slot::tag_of(hash, self.depth))
            && self.share.owns(hash)
    }

    fn visit<F: Form, B>(
        &mut self,
        core: &Core,
        pin: &Pin<'_>,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.wanted = None;
        let (head, read_only) = (core.log.head(), core.log.read_only());
        while self.next >= core.log.begin() {
            let address = self.next;
            if address >= head {
                let record = core.log.record(pin, address);
                self.next = record.previous();
                let alone = address == slot::address(self.word) && self.next < core.log.begin();
                let tombstone = record.is_tombstone();
                if alone && tombstone {
                    return ControlFlow::Continue(());
                }
                // Even alone it may be what is left of a chain that was dealt out to two buckets.
                if !self.owns(F::hash_of(record)) {
                    continue;
                }
                let still = address < read_only;
                let value = loop {
                    match F::value(record, || still) {
                        Some(value) => break value,
                        // A writer is copying a value in: a matter of nanoseconds.
                        None => std::hint::spin_loop(),
                    }
                };
                let flow = F::with_key(record, |key| {
                    self.meet(key, value.as_ref(), tombstone, alone, visit)
                });
                if let Some(answer) = flow {
                    return ControlFlow::Break(answer);
                }
            } else {
                let Some(position) = self.fetched.position(address) else {
                    self.wanted = Some(address);
                    return ControlFlow::Continue(());
                };
                let record = self.fetched.take(position);
                self.next = record.previous();
                let (key, value) = (record.key::<F>(), record.value::<F>());
                if F::key(key).is_ok_and(|key| self.owns(F::hash(key)))
                    && let Some(answer) = self.meet(key, value, record.is_tombstone(), false, visit)
                {
                    return ControlFlow::Break(answer);
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn meet<B>(
        &mut self,
        key: &[u8],
        value: &[u8],
        tombstone: bool,
        alone: bool,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Option<B> {
        if !alone {
            if self.seen.iter().any(|seen| seen == key) {
                return None;
            }
            self.seen.push(key.to_vec());
        }
        if tombstone { None } else { visit(key, value).break_value() }
    }
}

/// Calls `each` with the offset and the bytes of every record of a stored page.
pub(crate) fn for_each_stored<F: Form, B>(
    stored: &[u8],
    mut offset: usize,
    mut each: impl FnMut(usize, &[u8]) -> Result<ControlFlow<B>>,
) -> Result<ControlFlow<B>> {
    while let Some(word) = word_at(stored, offset) {
        if word & control::VALID == 0 {
            if F::STRIDE == 0 {
                break;
            }
            offset += F::STRIDE;
            continue;
        }
        let rest = &stored[offset..];
        let bytes = F::stored_bytes(rest).unwrap_or(rest.len()).min(rest.len());
        let flow = each(offset, &rest[..bytes])?;
        if flow.is_break() {
            return Ok(flow);
        }
        offset += bytes;
    }
    Ok(ControlFlow::Continue(()))
}

pub(crate) fn not_a_record(file: String, address: Address) -> Error {
    let what = "no record at this address of the log".to_owned();
    Error::Corrupt { file, offset: address.bytes(), what }
}

/// Part `part` of `parts` of `0..len`.
pub(crate) fn share(len: u64, part: usize, parts: usize) -> (u64, u64) {
    let at = |part: usize| (u128::from(len) * part as u128 / parts as u128) as u64;
    (at(part), at(part + 1))
}
