//! Inner nodes: separators, and the child that covers a key.
//!
//! Separators are fixed when the node is built; child words change under the
//! node's latch. Adding or removing a child builds a new node (`tree.rs`).
//!
//! | shared word | written by | read by |
//! |---|---|---|
//! | child | holder of the latch (Release) | every thread (Acquire) |
//! | latch | the thread that changes the tree here (CAS Acquire, store Release) | the same |
//! | state, bit 0: obsolete | holder of the latch, before it lets go | the next holder |
//! | state, above: the sum of entries below | counters, writers below (AcqRel) | counters (Acquire): see `ticket` |

use std::cell::Cell;
use std::marker::PhantomData;

use sapwood_mem::SliceRef;
use sapwood_mem::arena::prefetch_line;
use sapwood_mem::sync::{Backoff, Ordering, RawAtomicU64};

use crate::layout::{GROUP_ENTRIES, InnerHead, InnerLayout, KIND_INNER};
use crate::node::abbreviation::{abbreviate_foreign, lower_bound};
use crate::node::ticket::Ticket;

/// In the word of a node's state.
const OBSOLETE: u64 = 1;
/// The sum of the entries below is unknown where no bit of this mask is set.
const STEP: u64 = 0b110;
const COUNTING: u64 = 0b010;
const KNOWN: u64 = 0b100;
const SUM_SHIFT: u32 = 3;

/// A node and the least key it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Child<'a> {
    pub(crate) separator: &'a [u8],
    pub(crate) node: SliceRef,
}

/// An inner node, while its reader is pinned.
#[derive(Clone, Copy)]
pub(crate) struct Inner<'g> {
    base: *mut u8,
    slice: SliceRef,
    pinned: PhantomData<&'g ()>,
}

/// The way of a search where the key is a separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// To the child that covers the key.
    Covering,
    /// To the child with the keys just below it.
    Below,
}

/// Each thread remembers its last search at heights below this one, which few trees reach; chunks are at height 0.
const REMEMBERED_HEIGHTS: usize = 4;

/// The node of a thread's last search at a height, and the child it went to. A hint: the node may be freed since.
#[derive(Clone, Copy)]
struct LastSearch {
    node: *const u8,
    child: usize,
}

impl LastSearch {
    const NONE: LastSearch = LastSearch { node: std::ptr::null(), child: 0 };
}

std::thread_local! {
    static LAST_SEARCHES: [Cell<LastSearch>; REMEMBERED_HEIGHTS] =
        const { [const { Cell::new(LastSearch::NONE) }; REMEMBERED_HEIGHTS] };
}

impl<'g> Inner<'g> {
    /// # Safety
    /// `slice`, at `base`, is an inner node that stays live for `'g`.
    #[inline]
    pub(crate) unsafe fn new(slice: SliceRef, base: *mut u8) -> Inner<'g> {
        let inner = Inner { base, slice, pinned: PhantomData };
        debug_assert_eq!(inner.head().kind, KIND_INNER);
        inner
    }

    #[inline]
    fn head(&self) -> &'g InnerHead {
        // SAFETY: valid by `new`'s contract.
        unsafe { &*self.base.cast::<InnerHead>() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.head().len as usize
    }

    /// The node's own slice.
    pub(crate) fn slice(&self) -> SliceRef {
        self.slice
    }

    #[inline]
    fn layout(&self) -> InnerLayout {
        InnerLayout::new(self.len(), self.head().prefix_len as usize)
    }

    #[inline]
    pub(crate) fn height(&self) -> u8 {
        self.head().height
    }

    #[inline]
    fn array<T>(&self, offset: usize, len: usize) -> &'g [T] {
        // SAFETY: the builder wrote `len` values of this type at `offset`, aligned.
        unsafe { std::slice::from_raw_parts(self.base.add(offset).cast(), len) }
    }

    #[inline]
    fn ends(&self) -> &'g [u32] {
        self.array(self.layout().ends, self.len() - 1)
    }

    /// Separator below child `at + 1`.
    pub(crate) fn separator(&self, at: usize) -> &'g [u8] {
        let begin = if at == 0 { 0 } else { self.ends()[at - 1] as usize };
        self.array(self.layout().bytes + begin, self.ends()[at] as usize - begin)
    }

    #[inline]
    fn prefix(&self) -> &'g [u8] {
        self.array(InnerLayout::prefix(self.len()), self.head().prefix_len as usize)
    }

    /// The child to go to for `key`.
    ///
    /// Calls in key order mostly go to the child of the call before. That one is tried first, by one branch that the
    /// processor foresees, so that it goes on below before the key is compared. The search for any other child has no branches.
    #[inline]
    pub(crate) fn index_of(&self, key: &[u8], side: Side) -> usize {
        let abbreviation = abbreviate_foreign(key, self.prefix());
        if let Some(last) = self.last_child()
            && self.is_between(last, abbreviation)
        {
            return last;
        }
        let at = self.search(abbreviation);
        let at = match self.abbreviations().get(at) {
            Some(equal) if *equal == abbreviation => self.index_among_equals(at, key, side),
            _ => at,
        };
        self.remember(at);
        at
    }

    /// Whether all keys of this abbreviation are of the child at `at`; false if that is not sure.
    ///
    /// The answer is one branch of the caller: of keys in no order each half of it would go either way as often.
    #[inline]
    fn is_between(&self, at: usize, abbreviation: u64) -> bool {
        let abbreviations = self.abbreviations();
        let is_below_high = abbreviations.get(at).is_none_or(|high| abbreviation < *high);
        let low = at.checked_sub(1).and_then(|below| abbreviations.get(below));
        let is_above_low = low.map_or(at == 0, |low| *low < abbreviation);
        std::hint::select_unpredictable(is_below_high, is_above_low, false)
    }

    /// First separator whose abbreviation is not less.
    #[inline]
    fn search(&self, abbreviation: u64) -> usize {
        if !InnerLayout::has_samples(self.len()) {
            return lower_bound(self.abbreviations(), abbreviation);
        }
        // The last group that begins below, or the first one.
        let group = lower_bound(self.group(InnerLayout::SAMPLES), abbreviation).saturating_sub(1);
        let begin = group * GROUP_ENTRIES;
        let abbreviations = self.layout().abbreviations + begin * 8;
        let children = self.children_offset() + begin * 8;
        for offset in [abbreviations + 64, children, children + 64] {
            prefetch_line(self.base.wrapping_add(offset));
        }
        begin + lower_bound(self.group(abbreviations), abbreviation)
    }

    /// The child to which this thread's last search at this height went, if that was in a node at this address.
    #[inline]
    fn last_child(&self) -> Option<usize> {
        let last = LAST_SEARCHES.with(|last| Some(last.get(usize::from(self.height()))?.get()))?;
        (last.node == self.base).then_some(last.child)
    }

    #[inline]
    fn remember(&self, child: usize) {
        // A model's runs must not depend on those before.
        if cfg!(loom) {
            return;
        }
        LAST_SEARCHES.with(|last| {
            if let Some(last) = last.get(usize::from(self.height())) {
                last.set(LastSearch { node: self.base, child });
            }
        });
    }

    /// The same where the separator at `at` is the first that has the key's abbreviation: by the separators themselves.
    #[cold]
    fn index_among_equals(&self, mut at: usize, key: &[u8], side: Side) -> usize {
        let rest = &self.abbreviations()[at..];
        let mut end = at + rest.iter().take_while(|other| **other == rest[0]).count();
        while at < end {
            let middle = at + (end - at) / 2;
            let separator = self.separator(middle);
            let passes = match side {
                Side::Covering => separator <= key,
                Side::Below => separator < key,
            };
            if passes {
                at = middle + 1;
            } else {
                end = middle;
            }
        }
        at
    }

    #[inline]
    fn abbreviations(&self) -> &'g [u64] {
        self.array(self.layout().abbreviations, self.len() - 1)
    }

    /// The samples, or a group of abbreviations.
    #[inline]
    fn group(&self, offset: usize) -> &'g [u64; GROUP_ENTRIES] {
        // SAFETY: the builder wrote so many at `offset`, aligned; they never change.
        unsafe { &*self.base.add(offset).cast() }
    }

    #[inline]
    fn children_offset(&self) -> usize {
        self.head().children_offset as usize
    }

    #[inline]
    fn children(&self) -> &'g [RawAtomicU64] {
        self.array(self.children_offset(), self.len())
    }

    #[inline]
    pub(crate) fn child(&self, at: usize) -> SliceRef {
        // Acquire: pairs with the Release in `set_child` and in the latch of the
        // node's own publication.
        let word = self.children()[at].load(Ordering::Acquire);
        SliceRef::from_word(word).expect("children are never empty")
    }

    /// Puts another node in a child's place. Under the latch.
    pub(crate) fn set_child(&self, at: usize, node: SliceRef) {
        debug_assert!(self.is_latched());
        // Release: pairs with the Acquire in `child`.
        self.children()[at].store(node.word(), Ordering::Release);
    }

    /// Children with the separators below them, the first with `first`.
    pub(crate) fn to_children(self, first: &'g [u8]) -> Vec<Child<'g>> {
        (0..self.len())
            .map(|at| {
                let separator = if at == 0 { first } else { self.separator(at - 1) };
                Child { separator, node: self.child(at) }
            })
            .collect()
    }

    /// Waits for the latch; `None` if the node has been replaced. One that has not is reachable
    /// (I-CURRENT), so that a change of it is seen.
    pub(crate) fn latch(&self) -> Option<Latch<'g>> {
        let latch = Latch::take(&self.head().latch);
        // Relaxed: read and written under the latch alone.
        (self.head().state.load(Ordering::Relaxed) & OBSOLETE == 0).then_some(latch)
    }

    /// Whether some thread has the latch: its holder asserts it.
    fn is_latched(&self) -> bool {
        self.head().latch.load(Ordering::Relaxed) != 0
    }

    /// Marks the node replaced. Under the latch.
    pub(crate) fn set_obsolete(&self) {
        debug_assert!(self.is_latched());
        // INVARIANT: I-CURRENT: the caller has just replaced the node. Relaxed: under the latch, as
        // above.
        self.head().state.fetch_or(OBSOLETE, Ordering::Relaxed);
    }

    /// The sum of the entries below, if it is known.
    pub(crate) fn sum(&self) -> Option<u64> {
        // Acquire: pairs with the exchange in `end_count`.
        let state = self.head().state.load(Ordering::Acquire);
        (state & STEP == KNOWN).then_some(state >> SUM_SHIFT)
    }

    /// Begins a count.
    pub(crate) fn begin_count(&self, ticket: Ticket) {
        self.set_step(|_| true, COUNTING | ticket.number() << SUM_SHIFT);
    }

    /// Keeps the sum of a count, unless it was forgotten meanwhile, or another count has begun.
    pub(crate) fn end_count(&self, ticket: Ticket, sum: u64) {
        let counting = COUNTING | ticket.number() << SUM_SHIFT;
        self.set_step(|step| step == counting, KNOWN | sum << SUM_SHIFT);
    }

    /// Forgets the sum.
    pub(crate) fn forget_sum(&self) {
        // AcqRel: what is counted from here on has what the caller has done.
        self.head().state.fetch_and(OBSOLETE, Ordering::AcqRel);
    }

    fn set_step(&self, may: impl Fn(u64) -> bool, step: u64) {
        let state = &self.head().state;
        let mut now = state.load(Ordering::Relaxed);
        while may(now & !OBSOLETE) {
            let new = now & OBSOLETE | step;
            // AcqRel: pairs with `forget_sum`, and with the load in `sum`.
            match state.compare_exchange(now, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
    }
}

/// Holds a latch until dropped. Held for the copying of one node at most, and
/// never while waiting for a record or a chunk.
pub(crate) struct Latch<'g>(&'g RawAtomicU64);

impl<'g> Latch<'g> {
    pub(crate) fn take(word: &'g RawAtomicU64) -> Latch<'g> {
        let backoff = Backoff::new();
        // Acquire: pairs with the Release in `drop`.
        while word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            backoff.wait();
        }
        Latch(word)
    }
}

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `take`.
        self.0.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::FANOUT_MAX;
    use crate::node::build::write_inner;
    use sapwood_mem::{Arena, ArenaOptions};

    /// Keys that share `shared` bytes and differ behind those, in more than eight bytes at times.
    fn random_keys(random: &mut fastrand::Rng, shared: usize, count: usize) -> Vec<Vec<u8>> {
        let mut keys = std::collections::BTreeSet::new();
        while keys.len() < count {
            let mut key = vec![7; shared];
            let len = random.usize(1..14);
            key.extend((0..len).map(|_| [0, 1, 7, u8::MAX][random.usize(0..4)]));
            keys.insert(key);
        }
        keys.into_iter().collect()
    }

    #[test]
    fn every_key_goes_to_the_child_that_covers_it() {
        let mut random = fastrand::Rng::with_seed(1);
        let arena = Arena::new(ArenaOptions::default());
        for len in (1..40).chain(FANOUT_MAX - 2..=FANOUT_MAX).rev() {
            for shared in [0, 3, 90] {
                let separators = random_keys(&mut random, shared, len);
                let node = arena.alloc(64).expect("memory");
                let children: Vec<_> =
                    separators.iter().map(|separator| Child { separator, node }).collect();
                let slice = write_inner(&arena, 1, &children).expect("memory");
                // SAFETY: written just now, and the arena stays.
                let inner = unsafe { Inner::new(slice, arena.ptr(slice)) };
                let mut probes = random_keys(&mut random, shared, 200);
                probes.extend(random_keys(&mut random, shared / 2, 50));
                probes.extend(separators.iter().cloned());
                probes.push(vec![u8::MAX; 100]);
                for key in probes {
                    // The first separator is not kept: all that is below the second goes to the first child.
                    let covering = separators[1..].partition_point(|separator| *separator <= key);
                    let below = separators[1..].partition_point(|separator| *separator < key);
                    assert_eq!(inner.index_of(&key, Side::Covering), covering, "{key:?} of {len}");
                    assert_eq!(inner.index_of(&key, Side::Below), below, "below {key:?} of {len}");
                }
                // The next node of its size is at its address, where the last search went to a child that it may lack.
                // SAFETY: no other thread knows the node, and no search looks at it any more.
                unsafe { arena.free(slice) };
            }
        }
    }
}
