//! The block table: where each block lies, and which span covers each of its pages.
//!
//! Written under the buddy system's lock, but for the page map, which the opener of a span writes, and a
//! thread that drains it; read by every thread without a lock.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::buddy::{BlockChange, Extent};
use crate::region::PAGE_BYTES;
use crate::slice::{BLOCKS_MAX, SliceRef};

const FIRST_SEGMENT_BLOCKS: usize = 32;
const SEGMENTS: usize = (BLOCKS_MAX.ilog2() - FIRST_SEGMENT_BLOCKS.ilog2() + 1) as usize;

/// The blocks of an arena, in segments that never move.
pub(super) struct BlockTable {
    segments: [AtomicPtr<BlockSlot>; SEGMENTS],
}

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
pub(super) struct SpanId(u32);

impl SpanId {
    const INDEX_BITS: u32 = 26;
    /// In a page map: the span is being emptied, a hint as `BlockSlot::drained` is.
    const DRAINED: u32 = 1 << 31;
    /// Stripes that it can tell apart.
    pub(super) const STRIPES_MAX: usize = 1 << (31 - SpanId::INDEX_BITS);

    pub(super) fn new(stripe: usize, index: u32) -> SpanId {
        assert!(index < 1 << SpanId::INDEX_BITS, "spans of a page cover a quarter of a TiB");
        SpanId((stripe as u32) << SpanId::INDEX_BITS | index)
    }

    pub(super) fn stripe(self) -> usize {
        ((self.0 & !SpanId::DRAINED) >> SpanId::INDEX_BITS) as usize
    }

    pub(super) fn index(self) -> u32 {
        self.0 & ((1 << SpanId::INDEX_BITS) - 1)
    }
}

impl BlockTable {
    pub(super) fn new() -> BlockTable {
        BlockTable { segments: [const { AtomicPtr::new(std::ptr::null_mut()) }; SEGMENTS] }
    }

    /// First byte of a block.
    #[inline]
    pub(super) fn base(&self, block: u32) -> *mut u8 {
        // Acquire: pairs with the Release in `apply`. A thread that got a slice of the block from
        // another one has synchronised with that one anyway.
        self.slot(block).base.load(Ordering::Acquire)
    }

    /// Length of a block.
    #[inline]
    pub(super) fn bytes(&self, block: u32) -> usize {
        // Acquire: pairs with the Release in `apply`, as in `base`.
        self.slot(block).bytes.load(Ordering::Acquire)
    }

    /// The span of a slice.
    ///
    /// # Safety
    /// The slice is live, and has no mapping of its own.
    pub(super) unsafe fn span_of(&self, slice: SliceRef) -> SpanId {
        // SAFETY: the caller's. The entry was written before the slice was handed out.
        SpanId(unsafe { self.page_of(slice) }.load(Ordering::Relaxed))
    }

    /// Whether the slice's span is being emptied.
    ///
    /// # Safety
    /// The slice is live.
    #[inline]
    pub(super) unsafe fn is_drained(&self, slice: SliceRef) -> bool {
        // SAFETY: the caller's. Relaxed: a hint, as in `is_drained_block`.
        unsafe { self.page_of(slice) }.load(Ordering::Relaxed) & SpanId::DRAINED != 0
    }

    /// Whether the block is being emptied.
    #[inline]
    pub(super) fn is_drained_block(&self, block: u32) -> bool {
        // Relaxed: a hint. A slice that stays where it is, or moves in vain, does no harm.
        self.slot(block).drained.load(Ordering::Relaxed)
    }

    /// Notes the span that covers an extent from now on.
    ///
    /// # Safety
    /// The extent's block stays mapped meanwhile.
    pub(super) unsafe fn set_span(&self, extent: Extent, span: SpanId) {
        // SAFETY: the caller's.
        for page in unsafe { self.pages_of(extent) } {
            page.store(span.0, Ordering::Relaxed);
        }
    }

    /// Notes whether the span that covers an extent is being emptied.
    ///
    /// # Safety
    /// The extent's block stays mapped meanwhile.
    pub(super) unsafe fn set_drained(&self, extent: Extent, is_drained: bool) {
        // SAFETY: the caller's.
        for page in unsafe { self.pages_of(extent) } {
            match is_drained {
                true => page.fetch_or(SpanId::DRAINED, Ordering::Relaxed),
                false => page.fetch_and(!SpanId::DRAINED, Ordering::Relaxed),
            };
        }
    }

    /// The page map's entry where a slice begins.
    ///
    /// # Safety
    /// The slice is live.
    #[inline]
    unsafe fn page_of(&self, slice: SliceRef) -> &AtomicU32 {
        // Acquire: pairs with the Release in `apply`.
        let page_map = self.slot(slice.block()).page_map.load(Ordering::Acquire);
        // SAFETY: I-LIVE: the block is mapped, and its map has an entry a page.
        unsafe { &*page_map.add(slice.offset() / PAGE_BYTES) }
    }

    /// The page map's entries of an extent.
    ///
    /// # Safety
    /// The extent's block stays mapped for as long as they are used.
    unsafe fn pages_of(&self, extent: Extent) -> &[AtomicU32] {
        // Acquire: pairs with the Release in `apply`, maybe of another thread: the buddy system's
        // lock has ordered the two besides.
        let page_map = self.slot(extent.block).page_map.load(Ordering::Acquire);
        let (first, count) =
            (extent.offset as usize / PAGE_BYTES, extent.bytes as usize / PAGE_BYTES);
        // SAFETY: I-TABLE: the block is mapped, and its map has an entry for each of its pages.
        unsafe { std::slice::from_raw_parts(page_map.add(first), count) }
    }

    /// Follows a change of a block. Under the buddy system's lock.
    pub(super) fn apply(&self, change: BlockChange) {
        match change {
            BlockChange::Mapped { block, base, bytes } => {
                self.grow(block);
                let slot = self.slot(block);
                let pages = bytes / PAGE_BYTES;
                let page_map: Box<[AtomicU32]> = (0..pages).map(|_| AtomicU32::new(0)).collect();
                // INVARIANT: I-TABLE: written under the buddy system's lock, before a slice
                // of the block is handed out. Release: pairs with the Acquire in `base`,
                // `bytes` and `page_of`.
                slot.bytes.store(bytes, Ordering::Release);
                slot.page_map.store(Box::into_raw(page_map).cast(), Ordering::Release);
                slot.base.store(base, Ordering::Release);
            }
            BlockChange::Unmapped { block } => self.slot(block).forget(),
            BlockChange::Drained { block } => {
                self.slot(block).drained.store(true, Ordering::Relaxed);
            }
            BlockChange::Restored { block } => {
                self.slot(block).drained.store(false, Ordering::Relaxed);
            }
        }
    }

    fn grow(&self, block: u32) {
        let (segment, _) = locate(block);
        // Acquire: pairs with the Release below; both are under the buddy system's lock.
        if self.segments[segment].load(Ordering::Acquire).is_null() {
            let slots: Box<[BlockSlot]> =
                (0..FIRST_SEGMENT_BLOCKS << segment).map(|_| BlockSlot::default()).collect();
            // INVARIANT: I-TABLE: the segment is there before the block's slot is written. Release:
            // pairs with the Acquire in `slot`.
            self.segments[segment].store(Box::into_raw(slots).cast(), Ordering::Release);
        }
    }

    #[inline]
    fn slot(&self, block: u32) -> &BlockSlot {
        let (segment, index) = locate(block);
        // Acquire: pairs with the Release in `grow`.
        let slots = self.segments[segment].load(Ordering::Acquire);
        debug_assert!(!slots.is_null(), "I-TABLE");
        // SAFETY: I-TABLE: a block that a slice names has its segment, and segments stay for the
        // table's life.
        unsafe { &*slots.add(index) }
    }
}

impl BlockSlot {
    fn forget(&self) {
        // No slice of the block is live, so no thread loads these words before `apply` has
        // written them anew. AcqRel: the Acquire pairs with the Release there, so that the map is
        // dropped whole; the Releases pair with the Acquire in `base` and `page_of`.
        self.base.store(std::ptr::null_mut(), Ordering::Release);
        let page_map = self.page_map.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !page_map.is_null() {
            // Acquire: pairs with the Release in `apply`.
            let pages = self.bytes.load(Ordering::Acquire) / PAGE_BYTES;
            // SAFETY: I-TABLE: made by `apply` with this length, taken out of the slot just
            // now, and only read while the block has live slices.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(page_map, pages)) });
        }
    }
}

impl Drop for BlockTable {
    fn drop(&mut self) {
        for (segment, slots) in self.segments.iter().enumerate() {
            // Acquire: pairs with the Release in `grow`; `&mut self` has ordered the two besides.
            let slots = slots.load(Ordering::Acquire);
            if slots.is_null() {
                continue;
            }
            let count = FIRST_SEGMENT_BLOCKS << segment;
            // SAFETY: I-TABLE: made by `grow` with this length; `&mut self` is alone.
            let slots = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(slots, count)) };
            slots.iter().for_each(BlockSlot::forget);
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
