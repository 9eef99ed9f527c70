//! Chunks: ordered runs of entries, searched and appended to.
//!
//! A chunk has two parts. The *sorted* part is fixed when the chunk is built:
//! abbreviations in order, and for each the word of its record. The *delta*
//! takes what is inserted afterwards, in order of arrival: an entry is appended
//! by one compare-and-swap of the first empty word. An inserter has passed every
//! earlier entry, so a key cannot be inserted twice. A rebalance merges the two
//! parts into a new chunk.
//!
//! | shared word | written by | read by |
//! |---|---|---|
//! | sorted word, delta word | inserter: empty -> record (CAS, AcqRel); writer of the record: record -> successor or tombstone (CAS, AcqRel) | every thread (Acquire) |
//! | | rebalance: frozen bit (AcqRel) | writers, whose CAS fails |
//! | fingerprint byte, delta abbreviation | inserter, after its CAS (Release, Relaxed): a hint that may lag | searches; zero means "look at the word" |
//! | claim | rebalance (CAS, AcqRel), given back if memory runs out | writers that met a frozen word |
//! | tombstones, with a ticket | remover (Acquire); counter, gives a ticket (AcqRel); inserter or remover, takes it back (AcqRel) | the same; inserter, after its CAS (Relaxed) |
//! | edges | search for the nearest entry at an end (Release) | the next one (Acquire), which passes over what that has looked at |
//!
//! *Invariants*
//! - I-APPEND: delta words fill from the first to the last and never become empty again.
//! - I-KEY-ONCE: at most one record of a key in a chunk is not dead; an entry never
//!   changes to another key.
//! - I-FROZEN: after a rebalance froze every word, none of them changes, unless the
//!   rebalance gives up and thaws them all.
//! - I-SORTED: live sorted entries are in key order, and abbreviations do not descend.
//! - I-EXACT: the shape of an exact chunk gives its sorted keys from their abbreviations.
//! - I-BOUNDS: every key of a chunk is at least its low bound and below its high bound.

mod count;
mod delta;
mod edge;
mod walks;

pub(crate) use count::Tombstone;
pub(crate) use delta::Append;
pub(crate) use edge::Edge;
pub(crate) use walks::CLUSTERED_BYTES_MAX;

use std::cmp::Ordering as KeyOrder;
use std::marker::PhantomData;

use sapwood_mem::arena::{LastBlock, prefetch_line};
use sapwood_mem::sync::{Ordering, RawAtomicU64};
use sapwood_mem::{Arena, SliceRef};

use self::delta::{fingerprint, match_bytes};
use crate::layout::{
    ChunkHead, ChunkLayout, DISTINCT, EXACT, EntryState, FINGERPRINTS_PER_WORD, FROZEN,
    GROUP_BYTES, GROUP_ENTRIES, INEXACT_CAME, KIND_CHUNK, PREFIX_BY_BOUNDS, REPLACING, TOMBSTONE,
    TOMBSTONES, UNBOUNDED,
};
use crate::node::abbreviation::lower_bound;
use crate::node::record::Record;
use crate::node::shape::{PICKS_MAX, Shape};
use crate::node::ticket::Ticket;

/// A chunk, while its reader is pinned.
#[derive(Clone, Copy)]
pub(crate) struct Chunk<'g> {
    base: *mut u8,
    slice: SliceRef,
    arena: &'g Arena,
    layout: ChunkLayout,
    sorted_len: usize,
    delta_cap: usize,
    pinned: PhantomData<&'g ()>,
}

/// Lines of a record to ask for before its key is compared: some 1,200 bytes; what
/// is longer, the processor's own prefetcher continues.
pub(crate) const RECORD_LINES: usize = 20;

/// Lines to ask for where keys alone are read.
pub(crate) const KEY_LINES: usize = 2;

/// How much of a record the caller of a search is about to use.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// Its key, and a part of its value at most.
    Key,
    /// All of it.
    Record,
}

/// An entry whose record was alive when it was looked at. Small, so that a search answers in
/// registers.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'g> {
    pub(crate) word: &'g RawAtomicU64,
    pub(crate) slice: SliceRef,
    pub(crate) record: Record<'g>,
}

/// An entry and its chunk.
#[derive(Clone, Copy)]
pub(crate) struct Hit<'g> {
    pub(crate) chunk: Chunk<'g>,
    pub(crate) word: &'g RawAtomicU64,
    pub(crate) slice: SliceRef,
    pub(crate) record: Record<'g>,
}

impl<'g> Entry<'g> {
    /// The entry in `chunk`, where it was found.
    #[inline]
    pub(crate) fn of(self, chunk: Chunk<'g>) -> Hit<'g> {
        Hit { chunk, word: self.word, slice: self.slice, record: self.record }
    }
}

/// The answer of a search.
pub(crate) enum Find<'g> {
    Hit(Entry<'g>),
    Miss(Miss),
}

/// Where a search ended that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Miss {
    /// The delta entry to append to; its capacity if it is full.
    pub(crate) end: usize,
    /// The key's, in the chunk.
    pub(crate) abbreviation: u64,
    /// A dead record of the key was met in a frozen chunk. If the chunk has been
    /// replaced since, its successor may hold a live one.
    pub(crate) stale: bool,
}

/// An entry's abbreviation and the slice of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gathered {
    pub(crate) abbreviation: u64,
    pub(crate) slice: SliceRef,
}

impl<'g> Chunk<'g> {
    /// # Safety
    /// `slice`, at `base`, is a chunk of `arena` that stays live for `'g`.
    #[inline]
    pub(crate) unsafe fn new(arena: &'g Arena, slice: SliceRef, base: *mut u8) -> Chunk<'g> {
        // SAFETY: the caller's chunk starts with its head, whose sizes never change.
        let head = unsafe { &*base.cast::<ChunkHead>() };
        debug_assert_eq!(head.kind, KIND_CHUNK);
        let (sorted_len, delta_cap) = (head.sorted_len as usize, head.delta_cap as usize);
        let layout = ChunkLayout::new(sorted_len, delta_cap, head.span as usize);
        Chunk { base, slice, arena, layout, sorted_len, delta_cap, pinned: PhantomData }
    }

    #[inline]
    fn head(&self) -> &'g ChunkHead {
        // SAFETY: valid by `new`'s contract.
        unsafe { &*self.base.cast::<ChunkHead>() }
    }

    pub(crate) fn is(&self, other: &Chunk<'_>) -> bool {
        std::ptr::eq(self.base, other.base)
    }

    pub(crate) fn sorted_len(&self) -> usize {
        self.sorted_len
    }

    pub(crate) fn delta_cap(&self) -> usize {
        self.delta_cap
    }

    pub(crate) fn prefix_len(&self) -> usize {
        self.head().prefix_len as usize
    }

    fn bytes(&self, offset: usize, len: usize) -> &'g [u8] {
        // SAFETY: the builder wrote low, high and prefix here; they never change.
        unsafe { std::slice::from_raw_parts(self.base.add(self.layout.bytes + offset), len) }
    }

    /// The lower bound: keys from here on; `None` in the first chunk.
    pub(crate) fn low(&self) -> Option<&'g [u8]> {
        let len = self.head().low_len;
        (len != UNBOUNDED).then(|| self.bytes(0, len as usize))
    }

    /// The upper bound: keys below this; `None` in the last chunk.
    pub(crate) fn high(&self) -> Option<&'g [u8]> {
        let (low_len, high_len) = (self.head().low_len, self.head().high_len);
        let offset = if low_len == UNBOUNDED { 0 } else { low_len as usize };
        (high_len != UNBOUNDED).then(|| self.bytes(offset, high_len as usize))
    }

    pub(crate) fn prefix(&self) -> &'g [u8] {
        self.bytes(self.bounds_len(), self.head().prefix_len as usize)
    }

    fn bounds_len(&self) -> usize {
        let bounds = [self.head().low_len, self.head().high_len];
        bounds.iter().filter(|len| **len != UNBOUNDED).map(|len| *len as usize).sum()
    }

    /// The tail of an exact shape.
    fn tail(&self) -> Option<&'g [u8]> {
        let (prefix_len, len) = (self.head().prefix_len as usize, self.head().tail_len as usize);
        self.is_exact().then(|| self.bytes(self.bounds_len() + prefix_len, len))
    }

    /// The bytes of keys that the abbreviations are made of.
    #[inline]
    pub(crate) fn shape(&self) -> Shape<'g> {
        Shape { tail: self.tail(), ..self.shape_without_tail() }
    }

    #[inline]
    fn shape_without_tail(&self) -> Shape<'g> {
        let head = self.head();
        // SAFETY: the builder wrote the template here; it never changes.
        let template = unsafe {
            let base = self.base.add(self.layout.template);
            std::slice::from_raw_parts(base, head.span as usize)
        };
        Shape { prefix: self.prefix(), picks: head.picks, template, tail: None }
    }

    /// Whether the shape is exact of the sorted keys.
    #[inline]
    pub(crate) fn is_exact(&self) -> bool {
        self.head().flags & EXACT != 0
    }

    /// The shape, and whether it is exact of all keys, those of the delta and `more` among them; of a frozen chunk.
    pub(crate) fn shape_of_all<'k>(
        &self,
        mut more: impl Iterator<Item = (&'k [u8], u64)>,
    ) -> Shape<'g> {
        let shape = self.shape();
        // Acquire: pairs with the Release in `append`.
        let came = self.head().tombstones.load(Ordering::Acquire) & INEXACT_CAME != 0;
        let is_exact = !came && more.all(|(key, abbreviation)| self.gives(key, abbreviation));
        let tail = shape.tail.filter(|_| is_exact);
        Shape { tail, ..shape }
    }

    /// Whether the shape is exact of a key that is routed to this chunk.
    #[inline]
    fn gives(&self, key: &[u8], abbreviation: u64) -> bool {
        let head = self.head();
        let (prefix_len, tail_len) = (head.prefix_len as usize, head.tail_len as usize);
        // I-BOUNDS: a key that is routed here has a prefix that the bounds imply.
        let has_prefix = prefix_len == 0 || head.flags & PREFIX_BY_BOUNDS != 0;
        if key.len() != prefix_len + head.span as usize + tail_len {
            return false;
        }
        if has_prefix && head.span == 0 && tail_len <= PICKS_MAX {
            return true;
        }
        let shape = self.shape();
        (has_prefix || key.starts_with(shape.prefix)) && shape.gives(key, abbreviation)
    }

    /// The key's abbreviation in this chunk.
    #[inline]
    pub(crate) fn abbreviate(&self, key: &[u8]) -> u64 {
        if self.head().flags & PREFIX_BY_BOUNDS != 0 {
            // I-BOUNDS: a key that is routed here has the prefix.
            return self.shape_without_tail().abbreviate_own(key);
        }
        self.shape_without_tail().abbreviate(key)
    }

    /// The abbreviation of a sorted entry.
    #[inline]
    pub(crate) fn sorted_abbreviation(&self, at: usize) -> u64 {
        debug_assert!(at < self.sorted_len);
        // SAFETY: inside the groups; written by the builder, never changed.
        unsafe { self.base.add(self.layout.sorted_abbreviation(at)).cast::<u64>().read() }
    }

    /// The word of a sorted entry.
    #[inline]
    pub(crate) fn sorted_word(&self, at: usize) -> &'g RawAtomicU64 {
        debug_assert!(at < self.sorted_len);
        // SAFETY: inside the groups; initialised by the builder.
        unsafe { &*self.base.add(self.layout.sorted_word(at)).cast::<RawAtomicU64>() }
    }

    /// Words of the sorted part, in order.
    pub(crate) fn sorted_words(&self) -> impl Iterator<Item = &'g RawAtomicU64> + use<'g> {
        let chunk = *self;
        (0..self.sorted_len).map(move |at| chunk.sorted_word(at))
    }

    /// Whether no two of the sorted entries have the same abbreviation.
    #[inline]
    fn is_distinct(&self) -> bool {
        self.head().flags & DISTINCT != 0
    }

    /// Offset of the group with the first sorted entry whose abbreviation is not less than `wanted`, or of the group
    /// before it.
    #[inline]
    fn group_offset(&self, wanted: u64) -> Option<usize> {
        let group_count = self.sorted_len.div_ceil(GROUP_ENTRIES);
        // SAFETY: `group_count` samples lie here, aligned, and never change.
        let samples: &[u64] = unsafe {
            std::slice::from_raw_parts(self.base.add(self.layout.samples).cast(), group_count)
        };
        // A group that begins with what is wanted has the first entry of it, unless the one before may end with it.
        let beyond = wanted.saturating_add(u64::from(self.is_distinct()));
        let group = lower_bound(samples, beyond).checked_sub(1)?;
        Some(self.layout.sorted_abbreviation(group * GROUP_ENTRIES))
    }

    /// First sorted entry whose abbreviation is not less than `wanted`.
    #[inline]
    fn lower_bound(&self, wanted: u64) -> usize {
        let Some(offset) = self.group_offset(wanted) else { return 0 };
        for line in 1..GROUP_BYTES / 64 {
            prefetch_line(self.base.wrapping_add(offset + line * 64));
        }
        // SAFETY: a group's abbreviations lie here, aligned, and never change; the
        // last group is filled up.
        let group: &[u64] =
            unsafe { std::slice::from_raw_parts(self.base.add(offset).cast(), GROUP_ENTRIES) };
        let begin = (offset - self.layout.groups) / GROUP_BYTES * GROUP_ENTRIES;
        (begin + lower_bound(group, wanted)).min(self.sorted_len)
    }

    /// Sorted entries of this very abbreviation.
    #[inline]
    fn run_of(&self, abbreviation: u64) -> std::ops::Range<usize> {
        let first = self.lower_bound(abbreviation);
        let matches =
            |at: usize| at < self.sorted_len && self.sorted_abbreviation(at) == abbreviation;
        if !matches(first) {
            return first..first;
        }
        if self.is_distinct() || !matches(first + 1) {
            return first..first + 1;
        }
        first..abbreviation.checked_add(1).map_or(self.sorted_len, |next| self.lower_bound(next))
    }

    #[inline]
    fn words_at(&self, offset: usize, len: usize) -> &'g [RawAtomicU64] {
        // SAFETY: `len` initialised atomic words lie at `offset`, aligned.
        unsafe { std::slice::from_raw_parts(self.base.add(offset).cast(), len) }
    }

    /// Bytes of the chunk's own slice.
    pub(crate) fn node_bytes(&self) -> usize {
        self.arena.capacity(self.slice)
    }

    /// Bytes that a record's slice has room for.
    pub(crate) fn slice_bytes(&self, slice: SliceRef) -> usize {
        self.arena.capacity(slice)
    }

    /// Asks for the first cache lines of a record.
    #[inline]
    pub(crate) fn prefetch_record(&self, slice: SliceRef, lines: usize) {
        self.arena.prefetch(slice, lines);
    }

    /// As [`prefetch_record`](Self::prefetch_record), for a walk down.
    #[inline]
    pub(crate) fn prefetch_record_down(&self, slice: SliceRef, lines: usize) {
        self.arena.prefetch_down(slice, lines);
    }

    /// The record that a word of this chunk names.
    #[inline]
    pub(crate) fn record(&self, slice: SliceRef) -> Record<'g> {
        // SAFETY: I-PINNED: words of a chunk name records that are retired only after no current
        // chunk names them; the guard of `'g` was there before.
        unsafe { Record::new(self.arena.ptr(slice)) }
    }

    /// As [`record`](Self::record), for one slice after the other, while a guard stays.
    #[inline(always)]
    pub(crate) fn record_near(&self, last: &mut LastBlock, slice: SliceRef) -> Record<'g> {
        // SAFETY: as in `record`.
        unsafe { Record::new(self.arena.ptr_near(last, slice)) }
    }

    /// Finds the live record of `key`.
    #[inline]
    pub(crate) fn find(&self, key: &[u8], wanted: Wanted) -> Find<'g> {
        self.find_where(key, wanted, |hit| !hit.record.is_dead())
    }

    /// Finds the entry whose word names `slice`, a record of `key`.
    pub(crate) fn find_slice(&self, key: &[u8], slice: SliceRef) -> Option<Hit<'g>> {
        match self.find_where(key, Wanted::Key, |hit| hit.slice == slice) {
            Find::Hit(entry) => Some(entry.of(*self)),
            Find::Miss(_) => None,
        }
    }

    /// The one search loop: visits every entry of `key`, sorted part first, until
    /// one is accepted.
    #[inline]
    fn find_where(
        &self,
        key: &[u8],
        wanted: Wanted,
        accept: impl Fn(&Entry<'g>) -> bool,
    ) -> Find<'g> {
        debug_assert!(self.covers(key), "I-BOUNDS");
        let abbreviation = self.abbreviate(key);
        let mut stale = false;
        for at in self.key_run(key, abbreviation) {
            if let Some(hit) = self.accepted(self.sorted_word(at), key, wanted, &accept, &mut stale)
            {
                return Find::Hit(hit);
            }
        }
        let fingerprint = fingerprint(abbreviation, key);
        for (group, fingerprints) in self.fingerprints().iter().enumerate() {
            // Acquire: pairs with the Release in `append`.
            let mut candidates = match_bytes(fingerprints.load(Ordering::Acquire), fingerprint);
            while candidates != 0 {
                let at = group * FINGERPRINTS_PER_WORD + candidates.trailing_zeros() as usize / 8;
                candidates &= candidates - 1;
                let Some(word) = self.delta_words().get(at) else {
                    break;
                };
                // Acquire: pairs with the CAS in `append`.
                if EntryState::of(word.load(Ordering::Acquire)) == EntryState::Empty {
                    // I-APPEND: nothing lies behind an empty word.
                    return Find::Miss(Miss { end: at, abbreviation, stale });
                }
                // Relaxed: a hint; zero means that it is not known yet.
                let known = self.delta_abbreviations()[at].load(Ordering::Relaxed);
                if known != 0 && known != abbreviation {
                    continue;
                }
                if let Some(hit) = self.accepted(word, key, wanted, &accept, &mut stale) {
                    return Find::Hit(hit);
                }
            }
        }
        Find::Miss(Miss { end: self.delta_cap, abbreviation, stale })
    }

    /// The entry of `word`, if it has this key and is accepted.
    #[inline]
    fn accepted(
        &self,
        word: &'g RawAtomicU64,
        key: &[u8],
        wanted: Wanted,
        accept: &impl Fn(&Entry<'g>) -> bool,
        stale: &mut bool,
    ) -> Option<Entry<'g>> {
        // Acquire: pairs with the CAS in `append` or `swap` that published the record.
        let mut value = word.load(Ordering::Acquire);
        loop {
            let EntryState::Record(slice) = EntryState::of(value) else {
                return None;
            };
            if let Wanted::Record = wanted {
                // The value comes while the key is compared, which is mostly this one.
                self.prefetch_record(slice, RECORD_LINES);
            }
            let hit = Entry { word, slice, record: self.record(slice) };
            if hit.record.key() != key {
                return None;
            }
            if accept(&hit) {
                return Some(hit);
            }
            // A replaced record dies after its word has moved on; a removed one before. Acquire:
            // pairs with the CAS in `swap`.
            let now = word.load(Ordering::Acquire);
            if EntryState::of(now) == EntryState::of(value) {
                *stale |= now & FROZEN != 0;
                return None;
            }
            value = now;
        }
    }

    /// The sorted entries that may have this key: all of its abbreviation if they
    /// are few, else found by their keys, which are in order (I-SORTED).
    #[inline]
    fn key_run(&self, key: &[u8], abbreviation: u64) -> std::ops::Range<usize> {
        const FEW: usize = 4;
        let run = self.run_of(abbreviation);
        if run.len() <= FEW {
            return run;
        }
        let low = self.lower_bound_in(run.start, run.end, key, KeyOrder::Less);
        let high = self.lower_bound_in(low, run.end, key, KeyOrder::Equal);
        low..high
    }

    /// First sorted index in `low..high` whose key is greater than `key`, or equal
    /// to it unless `below` is `Equal`. Tombstones have no key: they go with
    /// what follows.
    fn lower_bound_in(
        &self,
        mut low: usize,
        mut high: usize,
        key: &[u8],
        below: KeyOrder,
    ) -> usize {
        while low < high {
            let middle = low + (high - low) / 2;
            let keyed = (middle..high).find_map(|at| Some((at, self.sorted_key(at)?)));
            match keyed {
                None => high = middle,
                Some((at, other)) if other.cmp(key) <= below => low = at + 1,
                Some(_) => high = middle,
            }
        }
        low
    }

    pub(crate) fn sorted_key(&self, at: usize) -> Option<&'g [u8]> {
        self.sorted_entry(at).map(|entry| self.record(entry.slice).key())
    }

    /// First sorted index that is not below `key`, which has this abbreviation (with `or_equal`: not at or below it).
    pub(crate) fn sorted_bound(&self, key: &[u8], abbreviation: u64, or_equal: KeyOrder) -> usize {
        let run = self.run_of(abbreviation);
        self.lower_bound_in(run.start, run.end, key, or_equal)
    }

    /// Asks for the words of sorted entries, those that there are, and of as many abbreviations.
    #[inline]
    pub(crate) fn prefetch_sorted(&self, entries: std::ops::Range<usize>) {
        let last = entries.end.min(self.sorted_len);
        for at in (entries.start..last).step_by(64 / size_of::<u64>()) {
            prefetch_line(self.base.wrapping_add(self.layout.sorted_abbreviation(at)));
            prefetch_line(self.base.wrapping_add(self.layout.sorted_word(at)));
        }
    }

    /// Asks for what a walk over the chunk looks at first.
    pub(crate) fn prefetch_begin(&self, entries: usize) {
        self.prefetch_sorted(0..entries);
        prefetch_line(self.base.wrapping_add(self.layout.delta_words));
        prefetch_line(self.base.wrapping_add(self.layout.bytes));
    }

    /// Asks for what leads to a group: the template and the samples.
    #[inline]
    pub(crate) fn prefetch_samples(&self) {
        let end = self.layout.samples + self.sorted_len.div_ceil(GROUP_ENTRIES) * 8;
        for at in (self.layout.template / 64 * 64..end).step_by(64) {
            prefetch_line(self.base.wrapping_add(at));
        }
    }

    /// Asks for the group that keys of this abbreviation are in, without touching it.
    #[inline]
    pub(crate) fn prefetch_group(&self, abbreviation: u64) {
        if let Some(offset) = self.group_offset(abbreviation) {
            for line in 0..GROUP_BYTES / 64 {
                prefetch_line(self.base.wrapping_add(offset + line * 64));
            }
        }
    }

    /// The word of the delta's entry of `key`, which has this abbreviation, probably.
    #[inline]
    fn likely_delta(&self, key: &[u8], abbreviation: u64) -> Option<&'g RawAtomicU64> {
        let fingerprint = fingerprint(abbreviation, key);
        for (group, fingerprints) in self.fingerprints().iter().enumerate() {
            // Acquire: pairs with the Release in `append`.
            let candidates = match_bytes(fingerprints.load(Ordering::Acquire), fingerprint);
            if candidates != 0 {
                let at = group * FINGERPRINTS_PER_WORD + candidates.trailing_zeros() as usize / 8;
                return self.delta_words().get(at);
            }
        }
        None
    }

    /// Where the record of `key`, which has this abbreviation, probably is, without touching any record.
    #[inline]
    pub(crate) fn likely_slice(&self, key: &[u8], abbreviation: u64) -> Option<SliceRef> {
        let word = match self.run_of(abbreviation).next() {
            Some(at) => self.sorted_word(at),
            None => self.likely_delta(key, abbreviation)?,
        };
        // Acquire: pairs with the CAS in `append` or `swap`, so that the arena knows the slice's block.
        match EntryState::of(word.load(Ordering::Acquire)) {
            EntryState::Record(slice) => Some(slice),
            EntryState::Empty | EntryState::Tombstone => None,
        }
    }

    /// Whether the chunk's keys include `key`.
    fn covers(&self, key: &[u8]) -> bool {
        self.low().is_none_or(|low| low <= key) && self.high().is_none_or(|high| key < high)
    }

    /// Counts a tombstone. A rebalance pays if half of the sorted part is gone, or nothing is left at all.
    pub(crate) fn count_tombstone(&self) -> Tombstone {
        // Acquire: pairs with the exchange that gave the ticket, in `count_for`.
        let before = self.head().tombstones.fetch_add(1, Ordering::Acquire);
        let count = (before & TOMBSTONES) as usize + 1;
        let worth = (self.sorted_len / 2).max(self.delta_cap / 4);
        let pays = count >= worth
            || count >= self.sorted_len && count == self.sorted_len + self.delta_len();
        Tombstone { pays, ticket: Ticket::of(before) }
    }

    /// Claims the chunk for a rebalance by this thread; false if another one has it.
    pub(crate) fn claim(&self) -> bool {
        // AcqRel: Acquire pairs with the Release in `thaw`, Release with the Acquire in
        // `is_claimed`.
        self.head().claim.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn is_claimed(&self) -> bool {
        // Acquire: pairs with the CAS in `claim` and the Release in `thaw`.
        self.head().claim.load(Ordering::Acquire) != 0
    }

    /// Freezes every word (I-FROZEN). Only by the claimant.
    pub(crate) fn freeze(&self) {
        debug_assert!(self.is_claimed());
        for word in self.delta_words().iter().chain(self.sorted_words()) {
            // INVARIANT: I-FROZEN: every CAS of a word expects it without the bit. AcqRel: pairs
            // with the CAS in `append` and `swap`; what was written before is copied, what comes
            // after fails.
            word.fetch_or(FROZEN, Ordering::AcqRel);
        }
        // INVARIANT: I-TICKET: a count that begins after this is kept by no sum; one before has left its ticket,
        // for the new chunks. AcqRel: pairs with the exchange in `count_for`.
        self.head().tombstones.fetch_or(REPLACING, Ordering::AcqRel);
    }

    /// Undoes `freeze` and gives the claim back.
    pub(crate) fn thaw(&self) {
        debug_assert!(self.is_claimed());
        // AcqRel: as in `freeze`.
        self.head().tombstones.fetch_and(!REPLACING, Ordering::AcqRel);
        for word in self.delta_words().iter().chain(self.sorted_words()) {
            // AcqRel: pairs with the CAS in `append` and `swap`, as in `freeze`.
            word.fetch_and(!FROZEN, Ordering::AcqRel);
        }
        // Release: pairs with the Acquire in `claim` and `is_claimed`: every word has thawed.
        self.head().claim.store(0, Ordering::Release);
    }

    /// Every entry that is no tombstone, in key order; of a frozen chunk.
    pub(crate) fn gather(&self) -> Vec<Gathered> {
        let mut delta: Vec<Gathered> = self.delta_entries().map(|(_, entry)| entry).collect();
        delta.sort_unstable_by(|a, b| self.compare(a, b));
        let mut all = Vec::with_capacity(self.sorted_len + delta.len());
        let mut sorted = (0..self.sorted_len).peekable();
        for next in delta {
            let is_before = |at: &usize| {
                let entry = self.sorted_entry(*at);
                entry.is_none_or(|entry| self.compare(&entry, &next).is_le())
            };
            while let Some(at) = sorted.next_if(is_before) {
                all.extend(self.sorted_entry(at));
            }
            all.push(next);
        }
        all.extend(sorted.filter_map(|at| self.sorted_entry(at)));
        debug_assert!(all.is_sorted_by(|a, b| self.compare(a, b).is_le()), "I-SORTED");
        all
    }

    /// A sorted entry, unless it is a tombstone.
    #[inline]
    fn sorted_entry(&self, at: usize) -> Option<Gathered> {
        // Acquire: pairs with the CAS in `swap`; the first record of a sorted entry came with the
        // chunk.
        match EntryState::of(self.sorted_word(at).load(Ordering::Acquire)) {
            EntryState::Record(slice) => {
                Some(Gathered { abbreviation: self.sorted_abbreviation(at), slice })
            }
            EntryState::Empty | EntryState::Tombstone => None,
        }
    }

    /// Key order of two entries, from their abbreviations where these differ.
    #[inline]
    pub(crate) fn compare(&self, a: &Gathered, b: &Gathered) -> KeyOrder {
        a.abbreviation.cmp(&b.abbreviation).then_with(|| {
            let (a, b) = (self.record(a.slice), self.record(b.slice));
            a.key().cmp(b.key())
        })
    }
}

impl Hit<'_> {
    /// Changes the entry's word from its record to `successor`; false if it is frozen.
    pub(crate) fn swap(&self, successor: Successor) -> bool {
        let new = match successor {
            Successor::Record(slice) => slice.word(),
            Successor::Tombstone => TOMBSTONE,
        };
        // AcqRel: publishes the successor, before the predecessor is buried; pairs with the Acquire
        // in `accepted` and of cursors. On failure Acquire pairs with `freeze`.
        let swapped =
            self.word.compare_exchange(self.slice.word(), new, Ordering::AcqRel, Ordering::Acquire);
        debug_assert!(
            swapped.is_ok() || swapped == Err(self.slice.word() | FROZEN),
            "I-OWNER: only the writer of a record changes its word"
        );
        swapped.is_ok()
    }
}

/// The successor of a record in its entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Successor {
    Record(SliceRef),
    Tombstone,
}
