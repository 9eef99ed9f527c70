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

mod block_table;
mod draining;

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;

use crate::buddy::{Buddy, NoExtent};
use block_table::{BlockTable, SpanId};

use crate::region::{PAGE_BYTES, Pages};
use crate::slice::{BLOCK_BYTES_MAX, Class, SHARED_BYTES_MAX, SliceRef};
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
    blocks: BlockTable,
    stripes: Box<[CachePadded<Mutex<Stripe>>]>,
    buddy: Mutex<Buddy>,
    own_bytes: AtomicUsize,
    /// Held while blocks begin or end to be drained; true while some are.
    draining: Mutex<bool>,
    options: ArenaOptions,
}

/// The block that a slice was in.
pub struct LastBlock {
    number: u32,
    base: *mut u8,
}

impl Default for LastBlock {
    fn default() -> Self {
        // No block has this number.
        LastBlock { number: u32::MAX, base: std::ptr::null_mut() }
    }
}

impl Arena {
    /// An arena that has mapped nothing yet.
    ///
    /// # Panics
    /// If `block_bytes` is not a power of two of 4 KiB to 16 MiB.
    pub fn new(options: ArenaOptions) -> Arena {
        let stripes = stripe_count();
        Arena {
            blocks: BlockTable::new(),
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
        // SAFETY: I-LIVE: the slice is live until `give` below.
        let span = unsafe { self.blocks.span_of(slice) };
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
        let base = self.blocks.base(slice.block());
        debug_assert!(!base.is_null(), "I-TABLE");
        // SAFETY: I-LIVE, I-TABLE: the base is that of the slice's block; offsets stay inside of
        // it.
        unsafe { base.add(slice.offset()) }
    }

    /// As [`ptr`](Self::ptr), for one slice after the other, of which those before live, too: many have a block in common.
    #[inline(always)]
    pub fn ptr_near(&self, last: &mut LastBlock, slice: SliceRef) -> *mut u8 {
        if slice.block() != last.number {
            *last = LastBlock { number: slice.block(), base: self.blocks.base(slice.block()) };
        }
        debug_assert!(!last.base.is_null(), "I-TABLE");
        // SAFETY: as in `ptr`: a block stays where it is while a slice of it lives.
        unsafe { last.base.add(slice.offset()) }
    }

    /// Bytes that a live slice has room for.
    #[inline]
    pub fn capacity(&self, slice: SliceRef) -> usize {
        if slice.class() == Class::OWN_MAPPING {
            return self.blocks.bytes(slice.block());
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
        // SAFETY: I-TABLE: `apply_changes` has written the base; the extent lies inside its block.
        let base = unsafe { self.blocks.base(extent.block).add(extent.offset as usize) };
        let index = stripe.open(class, extent, base);
        // SAFETY: I-TABLE: the block is mapped while the extent is in use.
        unsafe { self.blocks.set_span(extent, SpanId::new(home, index)) };
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
            self.blocks.apply(change);
        }
    }

    fn lock_stripe(&self, stripe: usize) -> MutexGuard<'_, Stripe> {
        self.stripes[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_buddy(&self) -> MutexGuard<'_, Buddy> {
        self.buddy.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
const _: () = assert!(STRIPES_MAX <= SpanId::STRIPES_MAX);

#[cfg(test)]
mod tests;
