//! The memory of the log's pages.
//!
//! The pages in memory lie one behind the other in a ring of address space: page and offset are
//! found by one mask, wherever the log is.

use std::collections::BTreeMap;

use sapwood_mem::Pages;
use sapwood_mem::region::{HUGE_PAGE_BYTES, PAGE_BYTES};
use sapwood_mem::reserve::{Backing, Reservation, fillable_bytes};
use sapwood_mem::sync::RawAtomicU64;
use sapwood_mem::sync::held::Mutex;

use crate::lock::lock;
use crate::options::frame_bytes;
use crate::record::address::{Address, PageNumber, UNIT_BYTES};

/// Address space that a ring begins with, and that it makes do with where there is little.
const RING_BYTES_MIN: usize = 16 * HUGE_PAGE_BYTES;

/// Frames of pages.
pub(crate) struct Frames {
    page_bytes: usize,
    ring: Reservation,
    /// Units of the ring, less one.
    ring_mask: u64,
    owned: Mutex<Owned>,
}

/// Where in the ring an address is.
#[derive(Clone, Copy)]
pub(crate) struct Addressing {
    base: *mut u8,
    /// Units of the ring, less one.
    mask: u64,
}

impl Addressing {
    #[inline(always)]
    pub(crate) fn at(&self, address: Address) -> *mut u8 {
        let offset = (address.units() & self.mask) as usize * UNIT_BYTES;
        self.base.wrapping_add(offset)
    }
}

struct Owned {
    /// And how many bytes of memory each takes at most.
    pages: BTreeMap<PageNumber, u64>,
    /// Sum of these.
    mapped_bytes: u64,
    /// The kind of machine pages under the newest frame.
    granted: Pages,
}

impl Frames {
    /// Frames for a log of which no more than `most` bytes are in memory at once.
    pub(crate) fn new(
        page_bytes: usize,
        pages: Pages,
        most: Option<u64>,
    ) -> std::io::Result<Frames> {
        // One page more is there while the oldest one goes.
        let most = most.map_or(usize::MAX, |bytes| bytes as usize).min(fillable_bytes());
        let bytes = (most + 2 * page_bytes).next_power_of_two().max(RING_BYTES_MIN);
        let least = RING_BYTES_MIN.max(4 * page_bytes);
        let ring = Reservation::new(bytes, least, pages)?;
        Ok(Frames {
            page_bytes,
            ring_mask: (ring.bytes() / UNIT_BYTES) as u64 - 1,
            ring,
            owned: Mutex::new(Owned {
                pages: BTreeMap::new(),
                mapped_bytes: 0,
                granted: Pages::Small,
            }),
        })
    }

    /// The byte at an address, which is in memory.
    #[inline(always)]
    pub(crate) fn at(&self, address: Address) -> *mut u8 {
        self.addressing().at(address)
    }

    #[inline(always)]
    pub(crate) fn addressing(&self) -> Addressing {
        Addressing { base: self.ring.base().as_ptr(), mask: self.ring_mask }
    }

    /// First byte of a page that is in memory.
    pub(crate) fn base(&self, page: PageNumber) -> *mut u8 {
        self.at(Address::from_bytes(page.get() * self.page_bytes as u64))
    }

    /// Bytes from the ring's base to a page's frame.
    fn offset(&self, page: PageNumber) -> usize {
        self.base(page).addr() - self.ring.base().addr().get()
    }

    /// Gives a page a zeroed frame.
    pub(crate) fn install(&self, page: PageNumber) -> std::io::Result<()> {
        self.install_used(page, self.page_bytes)
    }

    /// The same for a page of which only the first `used` bytes will ever be written: memory comes
    /// with the first write to it, so that the rest costs address space alone.
    pub(crate) fn install_used(&self, page: PageNumber, used: usize) -> std::io::Result<()> {
        let mut owned = lock(&self.owned);
        debug_assert!(used <= self.page_bytes, "a page has no more");
        debug_assert!(!owned.pages.contains_key(&page), "a page has one frame");
        // The first page of a small table shall not take a huge page, nor one that is mostly empty.
        let is_large = !owned.pages.is_empty() && used > self.page_bytes / 2;
        let backing = if is_large { Backing::Huge } else { Backing::Small };
        // Several frames may share a page of the machine.
        let offset = self.offset(page) / PAGE_BYTES * PAGE_BYTES;
        owned.granted = self.ring.commit(offset, self.frame_bytes() as usize, backing)?;
        for word in (0..self.page_bytes / 8).filter(|_| cfg!(loom)) {
            // SAFETY: inside the frame, which no other thread knows yet.
            unsafe { RawAtomicU64::init(self.base(page).cast::<RawAtomicU64>().add(word), 0) };
        }
        let bytes = used.max(1).next_multiple_of(PAGE_BYTES) as u64;
        owned.mapped_bytes += bytes;
        owned.pages.insert(page, bytes);
        debug_assert!(owned.pages.len() as u64 <= self.count_max(), "the ring is not full");
        Ok(())
    }

    /// Takes the frame of a page back that no thread can reach any more: oldest first.
    pub(crate) fn evict(&self, page: PageNumber) {
        let mut owned = lock(&self.owned);
        let Some(bytes) = owned.pages.remove(&page) else { return };
        debug_assert!(owned.pages.range(..page).next().is_none(), "the oldest goes first");
        owned.mapped_bytes -= bytes;
        let (begin, end) = (self.offset(page), self.offset(page) + self.page_bytes);
        // Of frames that share a page of the machine the last one gives it back.
        if end.is_multiple_of(PAGE_BYTES) {
            let begin = begin / PAGE_BYTES * PAGE_BYTES;
            // SAFETY: I-PINNED: the caller has waited for the threads that could reach this frame;
            // the older ones beside it went before.
            unsafe { self.ring.release(begin, end - begin) };
        }
    }

    /// Pages in memory.
    pub(crate) fn count(&self) -> u64 {
        lock(&self.owned).pages.len() as u64
    }

    /// Bytes that a page takes in memory.
    pub(crate) fn frame_bytes(&self) -> u64 {
        frame_bytes(self.page_bytes)
    }

    pub(crate) fn mapped_bytes(&self) -> u64 {
        lock(&self.owned).mapped_bytes
    }

    /// Pages that may be in memory at once.
    pub(crate) fn count_max(&self) -> u64 {
        (self.ring.bytes() / self.page_bytes) as u64
    }

    /// The kind of machine pages under the newest frame.
    pub(crate) fn pages(&self) -> Pages {
        lock(&self.owned).granted
    }
}
