//! Which slice of a size class is next? One stripe of an arena: its spans.
//!
//! A span is an extent cut into slices of one class. New slices come from the
//! span's free list, a chain through the freed slices themselves, then from its
//! untouched end. Spans with room hang in a list per class; an empty span goes
//! back to the buddy system at once, so that memory freed by one class serves
//! any other.
//!
//! *Invariants*
//! - I-SUM: reserved bytes are those of live slices, of free ones and waste.

use crate::buddy::Extent;
use crate::region::{PAGE_BYTES, poison, unpoison};
use crate::slice::{Class, SliceRef};

/// Index of a span in its stripe, plus one; zero for none.
type SpanLink = u32;

struct Span {
    extent: Extent,
    base: *mut u8,
    class: Class,
    slots: u32,
    /// Slots below this have been handed out at least once.
    touched: u32,
    live: u32,
    /// Slot number plus one of the last freed slice; each holds the next.
    free_head: u32,
    next: SpanLink,
    previous: SpanLink,
    /// Lies in a drained block: hangs in no list, so that no slice comes from it.
    drained: bool,
}

impl Span {
    /// Whether it hangs in the list of its class.
    fn is_linked(&self) -> bool {
        !self.drained && self.live < self.slots
    }
}

/// The contents of a span, for the choice of blocks to empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanUse {
    pub(crate) block: u32,
    pub(crate) class: Class,
    pub(crate) live_bytes: usize,
    pub(crate) free_bytes: usize,
}

#[derive(Default, Clone)]
struct ClassState {
    /// Spans with room, the last freed into first.
    roomy: SpanLink,
    span_bytes: usize,
}

/// A share of an arena that few threads contend for.
#[derive(Default)]
pub(crate) struct Stripe {
    spans: Vec<Span>,
    unused_spans: Vec<u32>,
    /// By class index, as far as used.
    classes: Vec<ClassState>,
    pub(crate) live_bytes: usize,
    /// Free slots of spans, in bytes.
    pub(crate) free_bytes: usize,
    /// Ends of spans that are too short for a slice.
    pub(crate) waste_bytes: usize,
}

// SAFETY: the raw span bases point into the arena's blocks, which outlive the
// stripe; slots are only touched under the stripe's lock while they are free.
unsafe impl Send for Stripe {}

impl Stripe {
    /// A slice from a span that has room.
    pub(crate) fn take(&mut self, class: Class) -> Option<SliceRef> {
        let link = self.classes.get(class.index())?.roomy;
        let span = self.spans.get_mut((link as usize).checked_sub(1)?)?;
        let slot = match span.free_head {
            0 => {
                span.touched += 1;
                span.touched - 1
            }
            head => {
                let slot = head - 1;
                let slice_bytes = class.bytes();
                // SAFETY: the slot is free and inside the span; a freed slot
                // starts with the link that `give` wrote.
                span.free_head =
                    unsafe { span.base.add(slot as usize * slice_bytes).cast::<u32>().read() };
                slot
            }
        };
        span.live += 1;
        let full = span.live == span.slots;
        let offset = slot as usize * class.bytes();
        let slice = SliceRef::new(class, span.extent.block, span.extent.offset as usize + offset);
        // SAFETY: the slot lies inside the span.
        unpoison(unsafe { span.base.add(offset) }, class.bytes());
        if full {
            self.unlink(link);
        }
        // INVARIANT: I-SUM: live grows by what free loses.
        self.live_bytes += class.bytes();
        self.free_bytes -= class.bytes();
        // INVARIANT: I-APART: the slot is in no list of free ones, and below `touched`.
        debug_assert_eq!(slice.class(), class);
        Some(slice)
    }

    /// Gives a slice back to `span`; returns the span's extent if nothing lives in it any more.
    ///
    /// # Safety
    /// `slice` was taken from this very span, and no thread reads it any more.
    pub(crate) unsafe fn give(&mut self, span_index: u32, slice: SliceRef) -> Option<Extent> {
        let link = span_index + 1;
        let span = &mut self.spans[span_index as usize];
        let slice_bytes = span.class.bytes();
        debug_assert_eq!(span.class, slice.class());
        debug_assert_eq!(span.extent.block, slice.block());
        let offset = slice.offset() - span.extent.offset as usize;
        debug_assert!(offset.is_multiple_of(slice_bytes), "a slice begins where a slot does");
        debug_assert!(((offset / slice_bytes) as u32) < span.touched, "the slot was taken before");
        debug_assert!(span.live > 0, "I-APART: a slice is given back once");
        let was_linked = span.is_linked();
        // SAFETY: the slot is inside the span, free from now on, and granules
        // are aligned for a u32.
        unsafe {
            let slot = span.base.add(offset);
            crate::sync::forget_range(slot, slice_bytes);
            slot.cast::<u32>().write(span.free_head);
            poison(slot.add(8), slice_bytes - 8);
        }
        span.free_head = (offset / slice_bytes) as u32 + 1;
        span.live -= 1;
        let (empty, linked) = (span.live == 0, span.is_linked());
        self.live_bytes -= slice_bytes;
        self.free_bytes += slice_bytes;
        if linked && !was_linked {
            self.link(link);
        }
        empty.then(|| self.close(link))
    }

    /// Opens a span over `extent`; returns its index.
    pub(crate) fn open(&mut self, class: Class, extent: Extent, base: *mut u8) -> u32 {
        let slots = extent.bytes as usize / class.bytes();
        debug_assert!(slots > 0);
        poison(base, extent.bytes as usize);
        let span = Span {
            extent,
            base,
            class,
            slots: slots as u32,
            touched: 0,
            live: 0,
            free_head: 0,
            next: 0,
            previous: 0,
            drained: false,
        };
        let index = match self.unused_spans.pop() {
            Some(index) => {
                self.spans[index as usize] = span;
                index
            }
            None => {
                self.spans.push(span);
                self.spans.len() as u32 - 1
            }
        };
        if self.classes.len() <= class.index() {
            self.classes.resize(class.index() + 1, ClassState::default());
        }
        self.classes[class.index()].span_bytes += extent.bytes as usize;
        self.free_bytes += slots * class.bytes();
        self.waste_bytes += extent.bytes as usize - slots * class.bytes();
        self.link(index + 1);
        index
    }

    /// How large the next span of a class should be: an eighth of what the class
    /// has, so that the part not yet used stays small beside it, and large enough
    /// that its odd end is at most an eighth.
    pub(crate) fn next_span_bytes(&self, class: Class, block_bytes: usize) -> usize {
        let held = self.classes.get(class.index()).map_or(0, |state| state.span_bytes);
        let limit = (block_bytes / 2).max(PAGE_BYTES);
        let mut bytes = (held / 8).next_power_of_two().max(least_span_bytes(class)).min(limit);
        while bytes < limit && (bytes % class.bytes()) * 8 > bytes {
            bytes *= 2;
        }
        bytes
    }

    /// Bytes that the stripe's own tables take on the heap.
    pub(crate) fn table_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
            + self.unused_spans.capacity() * size_of::<u32>()
            + self.classes.capacity() * size_of::<ClassState>()
    }

    /// Adds up what each span holds.
    pub(crate) fn survey(&self, spans: &mut Vec<SpanUse>) {
        spans.extend(self.spans.iter().filter(|span| span.live > 0).map(|span| {
            let slice_bytes = span.class.bytes();
            SpanUse {
                block: span.extent.block,
                class: span.class,
                live_bytes: span.live as usize * slice_bytes,
                free_bytes: (span.slots - span.live) as usize * slice_bytes,
            }
        }));
    }

    /// Takes nothing from spans in drained blocks any more.
    pub(crate) fn drain(&mut self, is_drained: impl Fn(u32) -> bool) {
        for index in 0..self.spans.len() {
            let span = &self.spans[index];
            if span.live == 0 || !is_drained(span.extent.block) {
                continue;
            }
            // INVARIANT: I-DRAINED: the span hangs in no list that `take` looks at.
            if span.is_linked() {
                self.unlink(index as SpanLink + 1);
            }
            self.spans[index].drained = true;
        }
    }

    /// Every span serves again.
    pub(crate) fn restore(&mut self) {
        for index in 0..self.spans.len() {
            let span = &mut self.spans[index];
            if span.drained {
                span.drained = false;
                if span.is_linked() && span.live > 0 {
                    self.link(index as SpanLink + 1);
                }
            }
        }
    }

    fn close(&mut self, link: SpanLink) -> Extent {
        let index = link - 1;
        if self.spans[index as usize].is_linked() {
            self.unlink(link);
        }
        let span = &mut self.spans[index as usize];
        span.drained = false;
        let (class, extent, slots) = (span.class, span.extent, span.slots as usize);
        unpoison(span.base, extent.bytes as usize);
        self.classes[class.index()].span_bytes -= extent.bytes as usize;
        self.free_bytes -= slots * class.bytes();
        self.waste_bytes -= extent.bytes as usize - slots * class.bytes();
        self.unused_spans.push(index);
        extent
    }

    fn link(&mut self, link: SpanLink) {
        let class = self.spans[link as usize - 1].class.index();
        let head = std::mem::replace(&mut self.classes[class].roomy, link);
        let span = &mut self.spans[link as usize - 1];
        span.next = head;
        span.previous = 0;
        if head != 0 {
            self.spans[head as usize - 1].previous = link;
        }
    }

    fn unlink(&mut self, link: SpanLink) {
        let span = &self.spans[link as usize - 1];
        let (class, next, previous) = (span.class.index(), span.next, span.previous);
        if next != 0 {
            self.spans[next as usize - 1].previous = previous;
        }
        if previous == 0 {
            self.classes[class].roomy = next;
        } else {
            self.spans[previous as usize - 1].next = next;
        }
    }
}

/// The smallest span that holds a slice of the class.
pub(crate) fn least_span_bytes(class: Class) -> usize {
    class.bytes().next_power_of_two().max(PAGE_BYTES)
}
