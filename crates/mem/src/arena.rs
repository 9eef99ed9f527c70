//! The arena: an allocator of slices under one budget, for one table.
//!
//! ```text
//!  Arena ── block table ──► block ┌────────span────────┬──span──┬─free extent─┐
//!    │                            │slice│slice│free│...│        │             │
//!    ├─ stripes (by thread): spans of each size class  └────────┴─────────────┘
//!    └─ buddy system: free extents, budget, mapping
//! ```
//! *Thread safety*: every method takes `&self`; a stripe's lock is held for one
//! slice, the buddy system's for one span.
//!
//! *Invariants*
//! - I-LIVE: a slice is live from the `alloc` that returned it to its `free`; the
//!   bytes of a live slice stay mapped at one address.
//! - I-TABLE: the block table holds the base of every block with a live slice.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;

use crate::buddy::{BlockChange, Buddy, Extent, NoExtent};
use crate::drain;
use crate::region::{PAGE_BYTES, Pages};
use crate::slice::{BLOCK_BYTES_MAX, BLOCKS_MAX, Class, SHARED_BYTES_MAX, SliceRef};
use crate::stripe::{Row, Stripe, least_span_bytes};

/// How an arena maps memory, and how much.
#[derive(Debug, Clone)]
pub struct ArenaOptions {
    /// Largest block, bytes: a power of two, 4 KiB to 16 MiB. Default 2 MiB, one huge page.
    pub block_bytes: usize,
    /// Most bytes to map. Default: no limit.
    pub budget: Option<u64>,
    /// Pages to ask for. Default: transparent huge pages.
    pub pages: Pages,
}

impl Default for ArenaOptions {
    fn default() -> Self {
        ArenaOptions { block_bytes: 2 << 20, budget: None, pages: Pages::default() }
    }
}

/// The budget is used up, or the kernel has no memory left; nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes mapped.
    pub used: u64,
    /// Bytes that may be mapped; `u64::MAX` without a budget.
    pub budget: u64,
    /// Bytes that were wanted on top.
    pub wanted: u64,
}

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let OutOfMemory { used, budget, wanted } = self;
        if *budget == u64::MAX {
            return write!(f, "the system has no memory for {wanted} more bytes ({used} in use)");
        }
        write!(f, "{wanted} more bytes do not fit: {used} of a budget of {budget} bytes are in use")
    }
}

impl std::error::Error for OutOfMemory {}

/// Where an arena's bytes are. `reserved = live + free + waste`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArenaStats {
    /// Mapped from the system.
    pub reserved_bytes: u64,
    /// In live slices, rounding included.
    pub live_bytes: u64,
    /// In free slices and free extents.
    pub free_bytes: u64,
    /// In free extents, which serve any size: part of the free bytes.
    pub extent_bytes: u64,
    /// At the ends of spans, too short for a slice.
    pub waste_bytes: u64,
    /// Tables about all this, on the heap beside the mappings.
    pub table_bytes: u64,
    /// The pages that most of the memory lies on.
    pub pages: Pages,
}

const FIRST_SEGMENT_BLOCKS: usize = 32;
const SEGMENTS: usize = (BLOCKS_MAX.ilog2() - FIRST_SEGMENT_BLOCKS.ilog2() + 1) as usize;

/// Base and page map of a block.
#[derive(Default)]
struct BlockSlot {
    base: AtomicPtr<u8>,
    bytes: AtomicUsize,
    /// By page of the block: the span that covers it (see [`SpanId`]).
    page_map: AtomicPtr<AtomicU32>,
    /// The block is being emptied: a hint for the thread that moves slices.
    drained: AtomicBool,
}

/// Stripe and span in one word.
#[derive(Clone, Copy)]
struct SpanId(u32);

impl SpanId {
    const INDEX_BITS: u32 = 26;
    /// In a page map: the span is being emptied, a hint as `BlockSlot::drained` is.
    const DRAINED: u32 = 1 << 31;

    fn new(stripe: usize, index: u32) -> SpanId {
        assert!(index < 1 << SpanId::INDEX_BITS, "spans of a page cover a quarter of a TiB");
        SpanId((stripe as u32) << SpanId::INDEX_BITS | index)
    }

    fn stripe(self) -> usize {
        ((self.0 & !SpanId::DRAINED) >> SpanId::INDEX_BITS) as usize
    }

    fn index(self) -> u32 {
        self.0 & ((1 << SpanId::INDEX_BITS) - 1)
    }
}

/// The preference for a new span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefer {
    /// Its size: spans of many slices are opened rarely.
    LargeSpans,
    /// Memory that is mapped already, in however small pieces.
    MappedMemory,
    /// The same, in pieces of some slices each.
    MappedRows,
}

/// The fewest slices for which a row begins where memory is mapped already.
const ROW_SLICES: usize = 16;

/// Most stripes; a `SpanId` has room for 32.
const STRIPES_MAX: usize = 16;

/// Blocks of memory and the slices in them. See the [module](self).
///
/// ```
/// use sapwood_mem::{Arena, ArenaOptions};
///
/// let arena = Arena::new(ArenaOptions::default());
/// let slice = arena.alloc(100)?;
/// // SAFETY: the slice is live and known here alone.
/// unsafe {
///     arena.ptr(slice).write_bytes(0xAB, 100);
///     arena.free(slice);
/// }
/// assert_eq!(arena.stats().live_bytes, 0);
/// # Ok::<(), sapwood_mem::OutOfMemory>(())
/// ```
pub struct Arena {
    segments: [AtomicPtr<BlockSlot>; SEGMENTS],
    stripes: Box<[CachePadded<Mutex<Stripe>>]>,
    buddy: Mutex<Buddy>,
    own_bytes: AtomicUsize,
    /// Held while blocks begin or end to be drained; true while some are.
    draining: Mutex<bool>,
    options: ArenaOptions,
}

impl Arena {
    /// An arena that has mapped nothing yet.
    ///
    /// # Panics
    /// If `block_bytes` is not a power of two of 4 KiB to 16 MiB.
    pub fn new(options: ArenaOptions) -> Arena {
        let stripes = stripe_count();
        Arena {
            segments: [const { AtomicPtr::new(std::ptr::null_mut()) }; SEGMENTS],
            stripes: (0..stripes).map(|_| CachePadded::default()).collect(),
            buddy: Mutex::new(Buddy::new(options.block_bytes, options.budget, options.pages)),
            own_bytes: AtomicUsize::new(0),
            draining: Mutex::new(false),
            options,
        }
    }

    /// The options that the arena was made with.
    pub fn options(&self) -> &ArenaOptions {
        &self.options
    }

    /// Replaces the budget of the options. What is mapped beyond it stays.
    pub fn set_budget(&self, budget: Option<u64>) {
        self.lock_buddy().set_budget(budget);
    }

    /// A new slice of at least `bytes`, 8-byte aligned (64-byte aligned if
    /// `bytes` is a multiple of 64), with whatever was there before in it.
    ///
    /// # Errors
    /// [`OutOfMemory`]: the budget is used up or the kernel refused.
    pub fn alloc(&self, bytes: usize) -> Result<SliceRef, OutOfMemory> {
        if bytes > self.shared_bytes_max() {
            return self.alloc_own(bytes);
        }
        let class = Class::for_bytes(bytes);
        let home = stripe_of_thread(self.stripes.len());
        let taken = self.lock_stripe(home).take(class, Row::Broken);
        taken.map_or_else(|| self.alloc_slow(home, class), Ok)
    }

    /// Longest slice that shares a block with others.
    #[inline]
    fn shared_bytes_max(&self) -> usize {
        SHARED_BYTES_MAX.min((self.options.block_bytes / 2).max(PAGE_BYTES))
    }

    /// No span of the thread's stripe has room.
    #[cold]
    fn alloc_slow(&self, home: usize, class: Class) -> Result<SliceRef, OutOfMemory> {
        match self.alloc_shared(home, class, Prefer::LargeSpans) {
            Ok(slice) => Ok(slice),
            // Blocks that are being emptied serve again before anything is refused.
            Err(_) if self.end_drain() => self
                .alloc_shared(home, class, Prefer::LargeSpans)
                .map_err(|refused| self.out_of_memory(refused)),
            Err(refused) => Err(self.out_of_memory(refused)),
        }
    }

    fn alloc_shared(
        &self,
        home: usize,
        class: Class,
        prefer: Prefer,
    ) -> Result<SliceRef, NoExtent> {
        let refused = {
            let mut stripe = self.lock_stripe(home);
            let row = match prefer {
                Prefer::LargeSpans => Row::Broken,
                Prefer::MappedMemory | Prefer::MappedRows => Row::Kept,
            };
            if let Some(slice) = stripe.take(class, row) {
                return Ok(slice);
            }
            match self.open_span(home, &mut stripe, class, prefer) {
                Ok(_) => {
                    let taken = stripe.take(class, Row::Kept);
                    return Ok(taken.expect("a span was opened just now"));
                }
                Err(refused) => refused,
            }
        };
        // No room for a span: another stripe may still have a slice.
        self.take_from_any(class, Row::Broken).ok_or(refused)
    }

    fn take_from_any(&self, class: Class, row: Row) -> Option<SliceRef> {
        (0..self.stripes.len()).find_map(|stripe| self.lock_stripe(stripe).take(class, row))
    }

    /// As [`alloc`](Self::alloc), for what leaves a drained block: holes of all
    /// stripes first, and what is being drained stays so when there is no room.
    ///
    /// # Errors
    /// As of [`alloc`](Self::alloc).
    pub fn alloc_elsewhere(&self, bytes: usize) -> Result<SliceRef, OutOfMemory> {
        let class = Class::for_bytes(bytes);
        let home = stripe_of_thread(self.stripes.len());
        let taken = self.lock_stripe(home).take(class, Row::Kept);
        taken
            .or_else(|| self.take_from_any(class, Row::Kept))
            .map_or_else(|| self.alloc_shared(home, class, Prefer::MappedMemory), Ok)
            .map_err(|refused| self.out_of_memory(refused))
    }

    /// As [`alloc`](Self::alloc), of the slice behind the one that this thread's last call for this size
    /// gave, mostly: for what is read in this order. What is being drained stays so when there is no room, and what is
    /// too large to share a block with others lies on its own.
    ///
    /// # Errors
    /// As of [`alloc`](Self::alloc).
    pub fn alloc_in_row(&self, bytes: usize) -> Result<SliceRef, OutOfMemory> {
        if bytes > self.shared_bytes_max() {
            return self.alloc_own(bytes);
        }
        let class = Class::for_bytes(bytes);
        let home = stripe_of_thread(self.stripes.len());
        let mut stripe = self.lock_stripe(home);
        if let Some(slice) = stripe.take_in_row(class) {
            return Ok(slice);
        }
        let opened = self.open_span(home, &mut stripe, class, Prefer::MappedRows);
        let index = opened.map_err(|refused| self.out_of_memory(refused))?;
        stripe.begin_row(index);
        Ok(stripe.take_in_row(class).expect("a row was begun just now"))
    }

    /// Ends what [`alloc_in_row`](Self::alloc_in_row) has begun: what rows have not used yet serves any slice of their size.
    pub fn end_rows(&self) {
        for stripe in 0..self.stripes.len() {
            self.lock_stripe(stripe).end_rows();
        }
    }

    /// Frees a slice.
    ///
    /// # Safety
    /// The slice is live, of this arena, and no thread reads or writes it any more.
    pub unsafe fn free(&self, slice: SliceRef) {
        if slice.class() == Class::OWN_MAPPING {
            let bytes = self.capacity(slice);
            self.own_bytes.fetch_sub(bytes, Ordering::Relaxed);
            let mut buddy = self.lock_buddy();
            // The table forgets the block before its number can be used again.
            buddy.give_own(slice.block());
            self.apply_changes(&mut buddy);
            return;
        }
        let slot = self.block_slot(slice.block());
        let page = slice.offset() / PAGE_BYTES;
        // Acquire: pairs with the Release in `apply_changes`. The map's entry was
        // written before the slice was handed out.
        let page_map = slot.page_map.load(Ordering::Acquire);
        // SAFETY: I-LIVE: the block is mapped, and its map has an entry a page.
        let span = SpanId(unsafe { &*page_map.add(page) }.load(Ordering::Relaxed));
        let mut stripe = self.lock_stripe(span.stripe());
        // INVARIANT: I-LIVE: the slice's life ends under its stripe's lock, before its block can
        // empty.
        // SAFETY: I-LIVE: the page map named the span that the slice came from; the caller gives
        // it up.
        let emptied = unsafe { stripe.give(span.index(), slice) };
        drop(stripe);
        if let Some(extent) = emptied {
            let mut buddy = self.lock_buddy();
            buddy.give(extent);
            self.apply_changes(&mut buddy);
        }
    }

    /// First byte of a live slice.
    #[inline]
    pub fn ptr(&self, slice: SliceRef) -> *mut u8 {
        let slot = self.block_slot(slice.block());
        // Acquire: pairs with the Release in `apply_changes`. A thread that got the slice from
        // another one has synchronised with that one anyway.
        let base = slot.base.load(Ordering::Acquire);
        debug_assert!(!base.is_null(), "I-TABLE");
        // SAFETY: I-LIVE, I-TABLE: the base is that of the slice's block; offsets stay inside of
        // it.
        unsafe { base.add(slice.offset()) }
    }

    /// Bytes that a live slice has room for.
    #[inline]
    pub fn capacity(&self, slice: SliceRef) -> usize {
        if slice.class() == Class::OWN_MAPPING {
            // Acquire: pairs with the Release in `apply_changes`, as in `ptr`.
            return self.block_slot(slice.block()).bytes.load(Ordering::Acquire);
        }
        slice.class().bytes()
    }

    /// Asks the processor for the first `lines` cache lines of a slice, at most as
    /// many as it has: the first two into its first cache, the others into its
    /// second, whose larger queue of misses does not stall the caller.
    #[inline]
    pub fn prefetch(&self, slice: SliceRef, lines: usize) {
        let (base, lines) = self.lines(slice, lines);
        for line in 0..lines.min(2) {
            prefetch_line(base.wrapping_add(line * 64));
        }
        for line in 2..lines {
            prefetch_line_far(base.wrapping_add(line * 64));
        }
    }

    /// As [`prefetch`](Self::prefetch), the last line first: for slices that lie one in front of the other. Asked for
    /// in the order of their addresses, each of them would look to the processor's own prefetcher like a stream of its own.
    #[inline]
    pub fn prefetch_down(&self, slice: SliceRef, lines: usize) {
        let (base, lines) = self.lines(slice, lines);
        for line in (2..lines).rev() {
            prefetch_line_far(base.wrapping_add(line * 64));
        }
        for line in (0..lines.min(2)).rev() {
            prefetch_line(base.wrapping_add(line * 64));
        }
    }

    /// Where a slice begins, and how many lines it has, `most` at most.
    #[inline]
    fn lines(&self, slice: SliceRef, most: usize) -> (*const u8, usize) {
        let bytes =
            if slice.class() == Class::OWN_MAPPING { PAGE_BYTES } else { slice.class().bytes() };
        (self.ptr(slice), most.min(bytes.div_ceil(64)))
    }

    /// Gives idle blocks back to the system.
    pub fn trim(&self) {
        self.trim_to(0);
    }

    /// Gives idle blocks back to the system, until no more than `kept_bytes` are left of them.
    pub fn trim_to(&self, kept_bytes: u64) {
        let mut buddy = self.lock_buddy();
        buddy.trim(usize::try_from(kept_bytes).unwrap_or(usize::MAX));
        self.apply_changes(&mut buddy);
    }

    /// Chooses the blocks that are worth emptying, if that gives back at least
    /// `gain_bytes`: from now on nothing new goes into them, and the caller moves
    /// what [`is_drained`](Self::is_drained). Ends whatever was drained before.
    ///
    /// Looks at every span; chooses without a lock that another thread waits for.
    pub fn begin_drain(&self, gain_bytes: u64) -> bool {
        let mut draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        self.restore(&mut draining);
        let mut spans = Vec::new();
        for stripe in 0..self.stripes.len() {
            self.lock_stripe(stripe).survey(&mut spans);
        }
        let ground = self.lock_buddy().ground();
        let blocks = drain::choose(&ground, &spans, gain_bytes);
        if blocks.is_empty() {
            return false;
        }
        {
            let mut buddy = self.lock_buddy();
            buddy.drain(&blocks);
            self.apply_changes(&mut buddy);
        }
        *draining = true;
        for stripe in 0..self.stripes.len() {
            self.lock_stripe(stripe).drain(|block| self.is_drained_block(block));
        }
        true
    }

    /// As [`begin_drain`](Self::begin_drain), of spans: pieces of blocks of one size of slice. What they hold fits into the
    /// holes of other spans, and what lies in the same blocks stays. No block goes back by that, but slices of
    /// any size can have what the spans had.
    pub fn begin_drain_spans(&self, gain_bytes: u64) -> bool {
        let mut draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        self.restore(&mut draining);
        let (mut spans, mut of_stripe) = (Vec::new(), Vec::new());
        for stripe in 0..self.stripes.len() {
            self.lock_stripe(stripe).survey(&mut of_stripe);
            spans.extend(of_stripe.drain(..).map(|span| (stripe, span)));
        }
        let chosen = drain::choose_spans(spans, gain_bytes);
        *draining = !chosen.is_empty();
        for (stripe, span) in &chosen {
            let mut stripe = self.lock_stripe(*stripe);
            if let Some(extent) = stripe.drain_span(span.index, span.class) {
                // Under the lock: the span has slices, so that its block stays.
                for page in self.pages_of(extent) {
                    page.fetch_or(SpanId::DRAINED, Ordering::Relaxed);
                }
            }
        }
        *draining
    }

    /// The page map's entries of a span that has live slices.
    fn pages_of(&self, extent: Extent) -> &[AtomicU32] {
        // Acquire: pairs with the Release in `apply_changes`.
        let page_map = self.block_slot(extent.block).page_map.load(Ordering::Acquire);
        let first = extent.offset as usize / PAGE_BYTES;
        // SAFETY: I-LIVE, I-TABLE: the block is mapped, and its map has an entry for each of its pages.
        unsafe {
            std::slice::from_raw_parts(page_map.add(first), extent.bytes as usize / PAGE_BYTES)
        }
    }

    /// All blocks serve again; true if some were drained.
    pub fn end_drain(&self) -> bool {
        let mut draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        self.restore(&mut draining)
    }

    /// Under the lock of `draining`.
    fn restore(&self, draining: &mut bool) -> bool {
        if !std::mem::take(draining) {
            return false;
        }
        {
            let mut buddy = self.lock_buddy();
            buddy.restore();
            self.apply_changes(&mut buddy);
        }
        for stripe in 0..self.stripes.len() {
            self.lock_stripe(stripe).restore(|extent| {
                for page in self.pages_of(extent) {
                    page.fetch_and(!SpanId::DRAINED, Ordering::Relaxed);
                }
            });
        }
        true
    }

    /// Bytes that new spans can have, under the budget, while blocks are drained.
    pub fn room_bytes(&self) -> usize {
        self.lock_buddy().room_bytes()
    }

    /// Whether the slice, which is live, lies in a block or a span that is being emptied.
    #[inline]
    pub fn is_drained(&self, slice: SliceRef) -> bool {
        if self.is_drained_block(slice.block()) {
            return true;
        }
        // Acquire: pairs with the Release in `apply_changes`.
        let page_map = self.block_slot(slice.block()).page_map.load(Ordering::Acquire);
        // SAFETY: I-LIVE: the block is mapped, and its map has an entry a page.
        let span = unsafe { &*page_map.add(slice.offset() / PAGE_BYTES) };
        // Relaxed: a hint, as above.
        span.load(Ordering::Relaxed) & SpanId::DRAINED != 0
    }

    fn is_drained_block(&self, block: u32) -> bool {
        // Relaxed: a hint. A slice that stays where it is, or moves in vain, does no harm.
        self.block_slot(block).drained.load(Ordering::Relaxed)
    }

    /// Where the bytes are; exact while no other thread allocates or frees.
    pub fn stats(&self) -> ArenaStats {
        let mut stats = ArenaStats::default();
        let own_bytes = self.own_bytes.load(Ordering::Relaxed) as u64;
        stats.live_bytes = own_bytes;
        for stripe in &self.stripes {
            let stripe = stripe.lock().unwrap_or_else(PoisonError::into_inner);
            stats.live_bytes += stripe.live_bytes as u64;
            stats.free_bytes += stripe.free_bytes as u64;
            stats.waste_bytes += stripe.waste_bytes as u64;
            stats.table_bytes += stripe.table_bytes() as u64;
        }
        let buddy = self.lock_buddy();
        stats.extent_bytes = buddy.free_bytes() as u64;
        stats.free_bytes += stats.extent_bytes;
        stats.reserved_bytes = buddy.reserved_bytes() as u64;
        stats.pages = buddy.pages();
        stats.table_bytes +=
            stats.reserved_bytes / PAGE_BYTES as u64 * size_of::<AtomicU32>() as u64;
        stats.table_bytes += (self.stripes.len() * size_of::<CachePadded<Mutex<Stripe>>>()) as u64;
        stats
    }

    fn alloc_own(&self, bytes: usize) -> Result<SliceRef, OutOfMemory> {
        let mut buddy = self.lock_buddy();
        let taken = buddy.take_own(bytes);
        self.apply_changes(&mut buddy);
        let block = taken.map_err(|refused| self.out_of_memory(refused))?;
        let slice = SliceRef::new(Class::OWN_MAPPING, block, 0);
        self.own_bytes.fetch_add(self.capacity(slice), Ordering::Relaxed);
        Ok(slice)
    }

    fn open_span(
        &self,
        home: usize,
        stripe: &mut Stripe,
        class: Class,
        prefer: Prefer,
    ) -> Result<u32, NoExtent> {
        let limit = (self.options.block_bytes / 2).max(PAGE_BYTES);
        let wanted = match prefer {
            Prefer::LargeSpans | Prefer::MappedMemory => stripe.next_span_bytes(class, 8, limit),
            // Smaller, since it comes on top of what other slices have not used yet.
            Prefer::MappedRows => {
                let of_class = stripe.next_span_bytes(class, 128, limit);
                let some_slices = (2 * ROW_SLICES * class.bytes()).next_power_of_two();
                let ordinary = stripe.next_span_bytes(class, 8, limit);
                of_class.max(some_slices).min(ordinary)
            }
        };
        let least = least_span_bytes(class);
        let mut buddy = self.lock_buddy();
        // Down to the least size, which is a power of two, too.
        let mut sizes = std::iter::successors(Some(wanted), |bytes| Some(bytes / 2))
            .take_while(|bytes| *bytes >= least);
        let mapped = match prefer {
            Prefer::LargeSpans => None,
            Prefer::MappedMemory => sizes.clone().find_map(|bytes| buddy.take_mapped(bytes)),
            Prefer::MappedRows => {
                let mut rows =
                    sizes.clone().take_while(|bytes| *bytes >= ROW_SLICES * class.bytes());
                rows.find_map(|bytes| buddy.take_mapped(bytes))
            }
        };
        let taken = match mapped {
            Some(extent) => Ok(extent),
            None => {
                let mut refused = None;
                let found = sizes.find_map(|bytes| match buddy.take(bytes) {
                    Ok(extent) => Some(extent),
                    Err(no_memory) => {
                        refused = Some(no_memory);
                        None
                    }
                });
                found.ok_or_else(|| refused.expect("one size at least was tried"))
            }
        };
        self.apply_changes(&mut buddy);
        let extent = taken?;
        drop(buddy);
        let slot = self.block_slot(extent.block);
        // Acquire, here and below: pairs with the Release in `apply_changes`, maybe of another
        // thread: the buddy system's lock has ordered the two besides.
        // SAFETY: I-TABLE: `apply_changes` has written the base; the extent lies inside its block.
        let base = unsafe { slot.base.load(Ordering::Acquire).add(extent.offset as usize) };
        let index = stripe.open(class, extent, base);
        let span = SpanId::new(home, index);
        let page_map = slot.page_map.load(Ordering::Acquire);
        let first_page = extent.offset as usize / PAGE_BYTES;
        for page in first_page..first_page + extent.bytes as usize / PAGE_BYTES {
            // SAFETY: I-TABLE: `apply_changes` made the map with an entry for each page of the block.
            unsafe { &*page_map.add(page) }.store(span.0, Ordering::Relaxed);
        }
        Ok(index)
    }

    fn out_of_memory(&self, refused: NoExtent) -> OutOfMemory {
        OutOfMemory {
            used: refused.used,
            budget: refused.budget.unwrap_or(u64::MAX),
            wanted: refused.wanted,
        }
    }

    /// Brings the block table up to date with the buddy system, under its lock.
    fn apply_changes(&self, buddy: &mut Buddy) {
        for change in buddy.take_changes() {
            match change {
                BlockChange::Mapped { block, base, bytes } => {
                    self.grow_table(block);
                    let slot = self.block_slot(block);
                    let pages = bytes / PAGE_BYTES;
                    let page_map: Box<[AtomicU32]> =
                        (0..pages).map(|_| AtomicU32::new(0)).collect();
                    // INVARIANT: I-TABLE: written under the buddy system's lock, before a slice
                    // of the block is handed out. Release: pairs with the Acquire in `ptr`,
                    // `capacity` and `free`.
                    slot.bytes.store(bytes, Ordering::Release);
                    slot.page_map.store(Box::into_raw(page_map).cast(), Ordering::Release);
                    slot.base.store(base, Ordering::Release);
                }
                BlockChange::Unmapped { block } => self.forget_block(self.block_slot(block)),
                BlockChange::Drained { block } => {
                    self.block_slot(block).drained.store(true, Ordering::Relaxed);
                }
                BlockChange::Restored { block } => {
                    self.block_slot(block).drained.store(false, Ordering::Relaxed);
                }
            }
        }
    }

    fn forget_block(&self, slot: &BlockSlot) {
        // No slice of the block is live, so no thread loads these words before `apply_changes` has
        // written them anew. AcqRel: the Acquire pairs with the Release there, so that the map is
        // dropped whole; the Releases pair with the Acquire in `ptr` and `free`.
        slot.base.store(std::ptr::null_mut(), Ordering::Release);
        let page_map = slot.page_map.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !page_map.is_null() {
            // Acquire: pairs with the Release in `apply_changes`.
            let pages = slot.bytes.load(Ordering::Acquire) / PAGE_BYTES;
            // SAFETY: I-TABLE: made by `apply_changes` with this length, taken out of the slot just
            // now, and only read while the block has live slices.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(page_map, pages)) });
        }
    }

    fn grow_table(&self, block: u32) {
        let (segment, _) = locate(block);
        // Acquire: pairs with the Release below; both are under the buddy system's lock.
        if self.segments[segment].load(Ordering::Acquire).is_null() {
            let slots: Box<[BlockSlot]> =
                (0..FIRST_SEGMENT_BLOCKS << segment).map(|_| BlockSlot::default()).collect();
            // INVARIANT: I-TABLE: the segment is there before the block's slot is written. Release:
            // pairs with the Acquire in `block_slot`.
            self.segments[segment].store(Box::into_raw(slots).cast(), Ordering::Release);
        }
    }

    #[inline]
    fn block_slot(&self, block: u32) -> &BlockSlot {
        let (segment, index) = locate(block);
        // Acquire: pairs with the Release in `grow_table`.
        let slots = self.segments[segment].load(Ordering::Acquire);
        debug_assert!(!slots.is_null(), "I-TABLE");
        // SAFETY: I-TABLE: a block that a slice names has its segment, and segments stay for the
        // arena's life.
        unsafe { &*slots.add(index) }
    }

    fn lock_stripe(&self, stripe: usize) -> MutexGuard<'_, Stripe> {
        self.stripes[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_buddy(&self) -> MutexGuard<'_, Buddy> {
        self.buddy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for (segment, slots) in self.segments.iter().enumerate() {
            // Acquire: pairs with the Release in `grow_table`; `&mut self` has ordered the two
            // besides.
            let slots = slots.load(Ordering::Acquire);
            if slots.is_null() {
                continue;
            }
            let count = FIRST_SEGMENT_BLOCKS << segment;
            // SAFETY: I-TABLE: made by `grow_table` with this length; `&mut self` is alone.
            let slots = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(slots, count)) };
            for slot in &slots {
                self.forget_block(slot);
            }
        }
    }
}

/// Segment and index of a block's slot: segments double, so slots never move.
#[inline]
fn locate(block: u32) -> (usize, usize) {
    let above = block as usize + FIRST_SEGMENT_BLOCKS;
    let segment = (above.ilog2() - FIRST_SEGMENT_BLOCKS.ilog2()) as usize;
    (segment, above - (FIRST_SEGMENT_BLOCKS << segment))
}

pub(crate) fn stripe_count() -> usize {
    use std::sync::OnceLock;
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        cores.next_power_of_two().min(STRIPES_MAX)
    })
}

/// Spreads threads over `stripes` (a power of two), the same one each time.
#[inline]
pub fn stripe_of_thread(stripes: usize) -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local! {
        /// 0: the thread has none yet.
        static TICKET: Cell<usize> = const { Cell::new(0) };
    }
    debug_assert!(stripes.is_power_of_two());
    if TICKET.get() == 0 {
        TICKET.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    TICKET.get() & (stripes - 1)
}

/// Asks the processor for the cache line at `address`, which need not be valid.
#[inline]
pub fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless, and SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// As [`prefetch_line`], into the second cache.
#[inline]
pub fn prefetch_line_far(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless, and SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

const _: () = assert!(BLOCK_BYTES_MAX / PAGE_BYTES <= u32::MAX as usize);
const _: () = assert!(STRIPES_MAX <= 1 << (31 - SpanId::INDEX_BITS));

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check_sums(arena: &Arena) {
        let stats = arena.stats();
        let sum = stats.live_bytes + stats.free_bytes + stats.waste_bytes;
        assert_eq!(stats.reserved_bytes, sum, "{stats:?}");
    }

    /// Live slices never overlap, keep their bytes, and every byte is accounted for.
    #[test]
    fn slices_keep_their_bytes() {
        for block_bytes in [4096, 64 << 10, 2 << 20] {
            let arena = Arena::new(ArenaOptions { block_bytes, ..ArenaOptions::default() });
            let mut rng = 7u64;
            let mut live: Vec<(SliceRef, usize, u8)> = Vec::new();
            for step in 0..20_000u64 {
                rng = rng.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let grow = step < 10_000;
                if live.is_empty() || (rng >> 60) < if grow { 10 } else { 6 } {
                    let exponent = (rng >> 20) % 13;
                    let bytes = 1 + (rng >> 33) as usize % (1 << exponent).max(16);
                    let slice = arena.alloc(bytes).expect("no budget");
                    assert!(arena.capacity(slice) >= bytes);
                    let mark = step as u8;
                    // SAFETY: I-LIVE: the slice has room for `bytes`.
                    unsafe { arena.ptr(slice).write_bytes(mark, bytes) };
                    live.push((slice, bytes, mark));
                } else {
                    let (slice, bytes, mark) = live.swap_remove((rng >> 33) as usize % live.len());
                    // SAFETY: I-LIVE: until the `free` below; `bytes` were written.
                    unsafe {
                        let stored = std::slice::from_raw_parts(arena.ptr(slice), bytes);
                        assert!(stored.iter().all(|byte| *byte == mark));
                        arena.free(slice);
                    }
                }
                if step % 1000 == 0 {
                    check_sums(&arena);
                }
            }
            let mut ranges = BTreeMap::new();
            for (slice, ..) in &live {
                ranges.insert(arena.ptr(*slice) as usize, arena.capacity(*slice));
            }
            assert_eq!(ranges.len(), live.len());
            let ends = ranges.iter().map(|(base, bytes)| base + bytes);
            assert!(ends.zip(ranges.keys().skip(1)).all(|(end, next)| end <= *next));
            for (slice, ..) in live {
                // SAFETY: I-LIVE: freed once, and not read any more.
                unsafe { arena.free(slice) };
            }
            check_sums(&arena);
            assert_eq!(arena.stats().live_bytes, 0);
            arena.trim();
            assert_eq!(arena.stats().reserved_bytes, 0);
        }
    }

    #[test]
    fn memory_of_one_size_serves_every_other() {
        let arena = Arena::new(ArenaOptions::default());
        let mut most = 0;
        for bytes in (16..4000).step_by(40) {
            let slices: Vec<_> =
                (0..(8 << 20) / bytes).map(|_| arena.alloc(bytes).expect("no budget")).collect();
            most = most.max(arena.stats().reserved_bytes);
            for slice in slices {
                // SAFETY: I-LIVE: freed once, and not read.
                unsafe { arena.free(slice) };
            }
        }
        assert!(most <= 14 << 20, "8 MiB at a time took {most} bytes");
    }

    #[test]
    fn threads_free_what_others_allocated() {
        let arena = Arena::new(ArenaOptions { block_bytes: 64 << 10, ..ArenaOptions::default() });
        let (send, receive) = std::sync::mpsc::sync_channel::<(SliceRef, usize)>(64);
        let receive = Mutex::new(receive);
        std::thread::scope(|scope| {
            for thread in 0..3usize {
                let (send, arena) = (send.clone(), &arena);
                scope.spawn(move || {
                    for i in 0..5000usize {
                        let bytes = 8 + (i * 37 + thread * 11) % 900;
                        let slice = arena.alloc(bytes).expect("no budget");
                        // SAFETY: I-LIVE: ours until sent.
                        unsafe { arena.ptr(slice).write_bytes(bytes as u8, bytes) };
                        send.send((slice, bytes)).expect("receivers outlive senders");
                    }
                });
            }
            drop(send);
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let next = receive.lock().expect("no panics").recv();
                        let Ok((slice, bytes)) = next else { break };
                        // SAFETY: sent to this thread alone, which frees it.
                        unsafe {
                            let stored = std::slice::from_raw_parts(arena.ptr(slice), bytes);
                            assert!(stored.iter().all(|byte| *byte == bytes as u8));
                            arena.free(slice);
                        }
                    }
                });
            }
        });
        assert_eq!(arena.stats().live_bytes, 0);
        check_sums(&arena);
    }

    #[test]
    fn at_the_budget_freed_slices_serve_again() {
        let arena = Arena::new(ArenaOptions { budget: Some(1 << 20), ..ArenaOptions::default() });
        let mut slices = Vec::new();
        let refused = loop {
            match arena.alloc(1000) {
                Ok(slice) => slices.push(slice),
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused.budget, 1 << 20);
        assert!(refused.used > (1 << 20) * 9 / 10, "{refused}");
        assert!(arena.alloc(1 << 20).is_err(), "a large slice does not fit either");
        // SAFETY: I-LIVE: freed once, and not read.
        unsafe { arena.free(slices.pop().expect("about a thousand")) };
        assert!(arena.alloc(1000).is_ok());
        for slice in slices {
            // SAFETY: as above.
            unsafe { arena.free(slice) };
        }
        let large = arena.alloc(700 << 10).expect("the freed blocks make room");
        // SAFETY: as above.
        unsafe { arena.free(large) };
    }

    fn free_all(arena: &Arena, slices: impl IntoIterator<Item = SliceRef>) {
        for slice in slices {
            // SAFETY: I-LIVE: freed once, and no thread reads it.
            unsafe { arena.free(slice) };
        }
    }

    /// One in eight slices of `bytes_of`, here and there in many blocks.
    fn sparse(arena: &Arena, bytes_of: impl Fn(usize) -> usize) -> Vec<SliceRef> {
        let slices: Vec<_> =
            (0..20_000).map(|at| arena.alloc(bytes_of(at)).expect("no budget")).collect();
        let (kept, gone): (Vec<_>, Vec<_>) =
            slices.into_iter().enumerate().partition(|(at, _)| at * 7 % 8 == 0);
        free_all(arena, gone.into_iter().map(|(_, slice)| slice));
        kept.into_iter().map(|(_, slice)| slice).collect()
    }

    #[test]
    fn drained_blocks_take_nothing_new_and_go_back_when_they_are_empty() {
        for block_bytes in [4096, 64 << 10, 2 << 20] {
            for bytes_of in [|_| 200, |at: usize| at * 37 % 2_000] {
                let arena = Arena::new(ArenaOptions { block_bytes, ..ArenaOptions::default() });
                let mut slices = sparse(&arena, bytes_of);
                let before = arena.stats();
                assert!(!arena.begin_drain(before.reserved_bytes), "not all of it can go");
                assert!(arena.begin_drain(before.reserved_bytes / 2));
                for slice in &mut slices {
                    let moved = arena.alloc_elsewhere(arena.capacity(*slice)).expect("no budget");
                    assert!(!arena.is_drained(moved), "new slices go elsewhere");
                    let gone = match arena.is_drained(*slice) {
                        true => std::mem::replace(slice, moved),
                        false => moved,
                    };
                    free_all(&arena, [gone]);
                }
                check_sums(&arena);
                assert!(arena.end_drain());
                assert!(!arena.end_drain(), "it has ended");
                arena.trim();
                let after = arena.stats();
                assert_eq!(after.live_bytes, before.live_bytes);
                let told = format!("blocks of {block_bytes}: {before:?}, then {after:?}");
                assert!(after.reserved_bytes * 2 <= before.reserved_bytes, "{told}");
                free_all(&arena, slices);
                check_sums(&arena);
                arena.trim();
                assert_eq!(arena.stats().reserved_bytes, 0, "{told}");
            }
        }
    }

    /// Blocks that are being emptied serve again before anything is refused.
    #[test]
    fn a_drain_ends_where_the_budget_does() {
        let options = ArenaOptions { block_bytes: 64 << 10, ..ArenaOptions::default() };
        let arena = Arena::new(ArenaOptions { budget: Some(1 << 20), ..options });
        let mut slices = Vec::new();
        while let Ok(slice) = arena.alloc(200) {
            slices.push(slice);
        }
        let full = slices.len();
        let kept = slices.iter().step_by(8).copied().collect::<Vec<_>>();
        slices.retain(|slice| !kept.contains(slice));
        free_all(&arena, slices);
        assert!(arena.begin_drain(1));
        let mut fresh = Vec::new();
        while let Ok(slice) = arena.alloc_elsewhere(200) {
            assert!(!arena.is_drained(slice));
            fresh.push(slice);
        }
        assert!(fresh.len() + kept.len() < full / 2, "most of it is drained");
        while let Ok(slice) = arena.alloc(200) {
            fresh.push(slice);
        }
        assert_eq!(fresh.len() + kept.len(), full, "all of it serves");
        assert!(!arena.end_drain(), "it has ended by itself");
        free_all(&arena, fresh.into_iter().chain(kept));
        check_sums(&arena);
    }

    /// Slices in a row lie one behind the other, whatever was freed before and comes in between, and
    /// what they leave serves other slices.
    #[test]
    fn rows_lie_together_and_their_holes_serve() {
        for block_bytes in [64 << 10, 2 << 20] {
            for bytes in [24, 200, 1_112] {
                let arena = Arena::new(ArenaOptions { block_bytes, ..ArenaOptions::default() });
                let kept = sparse(&arena, |_| bytes);
                let mut row: Vec<SliceRef> = Vec::new();
                let mut between = Vec::new();
                for at in 0..2_000 {
                    row.push(arena.alloc_in_row(bytes).expect("no budget"));
                    if at % 3 == 0 {
                        between.push(arena.alloc(bytes).expect("no budget"));
                    }
                }
                check_sums(&arena);
                let together = row.windows(2).filter(|pair| pair[1].follows(pair[0])).count();
                // A row ends where its span does, which is an eighth of the size's at first.
                assert!(together > 1_800, "{together} of {} in blocks of {block_bytes}", row.len());
                let mut bases: Vec<_> = row.iter().chain(&between).chain(&kept).collect();
                bases.sort_unstable_by_key(|slice| arena.ptr(**slice));
                let apart = |pair: &[&SliceRef]| {
                    arena.ptr(*pair[0]).wrapping_add(arena.capacity(*pair[0]))
                        <= arena.ptr(*pair[1])
                };
                assert!(bases.windows(2).all(apart), "I-APART");
                // Every second one goes: as many fit in without more memory.
                let before = arena.stats();
                let (gone, stay): (Vec<_>, Vec<_>) =
                    row.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
                free_all(&arena, gone.into_iter().map(|(_, slice)| slice));
                let holes = arena.stats().free_bytes / arena.capacity(stay[0].1) as u64;
                let mut filled = Vec::new();
                while arena.stats().free_bytes > before.free_bytes && filled.len() < holes as usize
                {
                    filled.push(arena.alloc(bytes).expect("no budget"));
                }
                assert!(filled.len() >= 1_000);
                assert_eq!(arena.stats().reserved_bytes, before.reserved_bytes);
                free_all(&arena, filled.into_iter().chain(between).chain(kept));
                free_all(&arena, stay.into_iter().map(|(_, slice)| slice));
                check_sums(&arena);
                arena.trim();
                assert_eq!(arena.stats().reserved_bytes, 0);
            }
        }
    }

    /// Slices in a row come from no drained block, and a row's end serves others before memory is refused.
    #[test]
    fn rows_end_with_a_drain_and_with_the_budget() {
        let options = ArenaOptions { block_bytes: 64 << 10, ..ArenaOptions::default() };
        let arena = Arena::new(ArenaOptions { budget: Some(1 << 20), ..options });
        let mut slices = Vec::new();
        while let Ok(slice) = arena.alloc(200) {
            slices.push(slice);
        }
        let full = slices.len();
        assert!(arena.alloc_in_row(200).is_err(), "no span is to be had");
        free_all(&arena, slices.drain(..full / 2));
        slices.push(arena.alloc_in_row(200).expect("a half is free"));
        while let Ok(slice) = arena.alloc(200) {
            slices.push(slice);
        }
        assert!(slices.len() >= full, "the row's end serves, too");
        // Half of it is sparse, and half of it free.
        let kept: Vec<_> = slices[..full / 2].iter().step_by(8).copied().collect();
        slices.retain(|slice| !kept.contains(slice));
        free_all(&arena, slices);
        let first = arena.alloc_in_row(200).expect("most is free");
        assert!(arena.begin_drain(1));
        let second = arena.alloc_in_row(200).expect("most is free");
        assert!(!arena.is_drained(second));
        check_sums(&arena);
        free_all(&arena, [first, second].into_iter().chain(kept));
        assert_eq!(arena.stats().live_bytes, 0);
        arena.end_drain();
        check_sums(&arena);
        arena.trim();
        assert_eq!(arena.stats().reserved_bytes, 0);
    }

    /// Sparse spans are emptied into others of their size; what lies beside them stays, and serves in a row.
    #[test]
    fn drained_spans_serve_other_sizes_when_they_are_empty() {
        for block_bytes in [16 << 10, 64 << 10, 2 << 20] {
            let arena = Arena::new(ArenaOptions { block_bytes, ..ArenaOptions::default() });
            let row: Vec<_> =
                (0..2_000).map(|_| arena.alloc_in_row(200).expect("no budget")).collect();
            let mut slices = sparse(&arena, |_| 200);
            let before = arena.stats();
            assert!(!arena.begin_drain_spans(before.reserved_bytes), "not all of it can go");
            assert!(arena.begin_drain_spans(before.free_bytes / 2));
            assert!(row.iter().all(|slice| !arena.is_drained(*slice)), "full spans stay");
            let drained = slices.iter().filter(|slice| arena.is_drained(**slice)).count();
            assert!(drained > slices.len() / 2, "{drained} of {}", slices.len());
            for slice in slices.iter_mut().filter(|slice| arena.is_drained(**slice)) {
                let moved = arena.alloc_elsewhere(200).expect("no budget");
                assert!(!arena.is_drained(moved), "new slices go elsewhere");
                free_all(&arena, [std::mem::replace(slice, moved)]);
            }
            check_sums(&arena);
            let after = arena.stats();
            let freed = after.extent_bytes - before.extent_bytes.min(after.extent_bytes)
                + (before.reserved_bytes - after.reserved_bytes);
            assert!(freed * 4 > before.free_bytes, "{before:?}, then {after:?}");
            assert_eq!(after.live_bytes, before.live_bytes);
            assert!(arena.end_drain());
            assert!(slices.iter().all(|slice| !arena.is_drained(*slice)), "it has ended");
            free_all(&arena, slices.into_iter().chain(row));
            check_sums(&arena);
            arena.trim();
            assert_eq!(arena.stats().reserved_bytes, 0);
        }
    }

    /// Idle blocks are few beside what is mapped, also while that becomes less.
    #[test]
    fn idle_blocks_are_an_eighth_at_most_or_one() {
        let options = ArenaOptions { block_bytes: 64 << 10, ..ArenaOptions::default() };
        let arena = Arena::new(options);
        let mut slices: Vec<_> =
            (0..400).map(|_| arena.alloc(32 << 10).expect("no budget")).collect();
        while let Some(slice) = slices.pop() {
            free_all(&arena, [slice]);
            let stats = arena.stats();
            let most = (stats.reserved_bytes / 8).max(64 << 10);
            // Beside idle blocks, half of the one that is being emptied is free.
            assert!(stats.free_bytes <= most + (32 << 10), "{stats:?}");
        }
    }

    #[test]
    fn an_unused_arena_maps_nothing() {
        let stats = Arena::new(ArenaOptions::default()).stats();
        assert_eq!(stats.reserved_bytes, 0);
        assert!(stats.table_bytes < 16 << 10, "{stats:?}");
    }
}
