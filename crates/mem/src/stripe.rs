//! Which slice of a size class is next? One stripe of an arena: its spans.
//!
//! A span is an extent cut into slices of one class. New slices come from the
//! span's free list, a chain through the freed slices themselves, then from its
//! untouched end. Spans with room hang in a list per class; an empty span goes
//! back to the buddy system at once, so that memory freed by one class serves
//! any other.
//!
//! Slices that should lie one behind the other (`take_in_row`) come from the
//! untouched end of one span a class, the *row*. It hangs in no list while it is
//! that: what is freed in it, and slices of no order, wait until it is used up,
//! or until no other span of the class has room.
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
    /// Is the row of its class.
    in_row: bool,
}

impl Span {
    /// Whether it hangs in the list of its class.
    fn is_linked(&self) -> bool {
        !self.drained && !self.in_row && self.live < self.slots
    }
}

/// The contents of a span, for the choice of blocks to empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanUse {
    /// In its stripe.
    pub(crate) index: u32,
    pub(crate) block: u32,
    pub(crate) class: Class,
    pub(crate) live_bytes: usize,
    pub(crate) free_bytes: usize,
    /// Its free bytes are for what comes next in a row.
    pub(crate) in_row: bool,
}

/// Whether slices of no order may come from a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    Kept,
    Broken,
}

impl SpanUse {
    pub(crate) fn bytes(&self) -> usize {
        self.live_bytes + self.free_bytes
    }
}

#[derive(Default, Clone)]
struct ClassState {
    /// Spans with room, the last freed into first.
    roomy: SpanLink,
    /// The span whose untouched end the next slices in a row come from.
    row: SpanLink,
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
    /// A slice from a span that has room; from the row too, if it may be broken.
    pub(crate) fn take(&mut self, class: Class, row: Row) -> Option<SliceRef> {
        let state = self.classes.get(class.index())?;
        let link = match row {
            Row::Broken if state.roomy == 0 => state.row,
            Row::Broken | Row::Kept => state.roomy,
        };
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
        Some(self.hand_out(link, slot))
    }

    /// A slice that lies behind the one that this gave before, if the row has room.
    pub(crate) fn take_in_row(&mut self, class: Class) -> Option<SliceRef> {
        let link = self.classes.get(class.index())?.row;
        let span = self.spans.get_mut((link as usize).checked_sub(1)?)?;
        // A row with no untouched slot is none.
        span.touched += 1;
        let slot = span.touched - 1;
        Some(self.hand_out(link, slot))
    }

    /// Counts a slot that was taken out of what is free in its span.
    fn hand_out(&mut self, link: SpanLink, slot: u32) -> SliceRef {
        let span = &mut self.spans[link as usize - 1];
        let class = span.class;
        let was_linked = span.is_linked();
        span.live += 1;
        debug_assert!(slot < span.touched && span.touched <= span.slots);
        let offset = slot as usize * class.bytes();
        let slice = SliceRef::new(class, span.extent.block, span.extent.offset as usize + offset);
        // SAFETY: the slot lies inside the span.
        unpoison(unsafe { span.base.add(offset) }, class.bytes());
        let used_up = span.in_row && span.touched == span.slots;
        if was_linked && !span.is_linked() {
            self.unlink(link);
        }
        if used_up {
            self.end_row(class);
        }
        // INVARIANT: I-SUM: live grows by what free loses.
        self.live_bytes += class.bytes();
        self.free_bytes -= class.bytes();
        // INVARIANT: I-APART: the slot is in no list of free ones, and below `touched`.
        debug_assert_eq!(slice.class(), class);
        slice
    }

    /// The span at `index` gives the slices in a row of its class from now on, in place of another one.
    pub(crate) fn begin_row(&mut self, index: u32) {
        let link = index + 1;
        let class = self.spans[index as usize].class;
        self.end_row(class);
        debug_assert_eq!(self.spans[index as usize].touched, 0, "a new span");
        self.unlink(link);
        self.spans[index as usize].in_row = true;
        self.classes[class.index()].row = link;
    }

    /// What is free in rows serves any slice of their size again.
    pub(crate) fn end_rows(&mut self) {
        for link in self.classes.iter().map(|class| class.row).collect::<Vec<_>>() {
            if let Some(index) = (link as usize).checked_sub(1) {
                self.end_row(self.spans[index].class);
            }
        }
    }

    /// What is free in the row of the class serves any slice again.
    fn end_row(&mut self, class: Class) {
        let link = std::mem::take(&mut self.classes[class.index()].row);
        if link == 0 {
            return;
        }
        let span = &mut self.spans[link as usize - 1];
        span.in_row = false;
        if span.is_linked() {
            self.link(link);
        }
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
            in_row: false,
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

    /// How large the next span of a class should be: such a share of what the class
    /// has that the part not yet used stays small beside it, and large enough
    /// that its odd end is at most an eighth.
    pub(crate) fn next_span_bytes(&self, class: Class, share: usize, limit: usize) -> usize {
        let held = self.classes.get(class.index()).map_or(0, |state| state.span_bytes);
        let mut bytes = (held / share).next_power_of_two().max(least_span_bytes(class)).min(limit);
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
        let open = self.spans.iter().enumerate().filter(|(_, span)| span.live > 0);
        spans.extend(open.map(|(index, span)| {
            let slice_bytes = span.class.bytes();
            SpanUse {
                index: index as u32,
                block: span.extent.block,
                class: span.class,
                live_bytes: span.live as usize * slice_bytes,
                free_bytes: (span.slots - span.live) as usize * slice_bytes,
                in_row: span.in_row,
            }
        }));
    }

    /// Takes nothing from spans in drained blocks any more.
    pub(crate) fn drain(&mut self, is_drained: impl Fn(u32) -> bool) {
        for index in 0..self.spans.len() {
            let span = &self.spans[index];
            if span.live > 0 && is_drained(span.extent.block) {
                self.drain_at(index);
            }
        }
    }

    /// Takes nothing from one span any more, if it is still of this class and no row; where it lies.
    pub(crate) fn drain_span(&mut self, index: u32, class: Class) -> Option<Extent> {
        let span = &self.spans[index as usize];
        let is_same = span.live > 0 && span.class == class && !span.in_row && !span.drained;
        let extent = is_same.then_some(span.extent)?;
        self.drain_at(index as usize);
        Some(extent)
    }

    fn drain_at(&mut self, index: usize) {
        // INVARIANT: I-DRAINED: the span hangs in no list that `take` looks at, and is no row.
        if self.spans[index].in_row {
            self.end_row(self.spans[index].class);
        }
        if self.spans[index].is_linked() {
            self.unlink(index as SpanLink + 1);
        }
        self.spans[index].drained = true;
    }

    /// Every span serves again; tells where those lie that did not.
    pub(crate) fn restore(&mut self, mut restored: impl FnMut(Extent)) {
        for index in 0..self.spans.len() {
            let span = &mut self.spans[index];
            if span.drained && span.live > 0 {
                restored(span.extent);
                span.drained = false;
                if span.is_linked() {
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
        if std::mem::take(&mut span.in_row) {
            self.classes[span.class.index()].row = 0;
        }
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
