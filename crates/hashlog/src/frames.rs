//! Which memory holds page N of the log?

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use sapwood_mem::Pages;
use sapwood_mem::region::{HUGE_PAGE_BYTES, PAGE_BYTES, Region};
use sapwood_mem::sync::RawAtomicU64;
use sapwood_mem::sync::held::Mutex;

use crate::index::lock;

/// Pages in memory at once: the table of their frames is mapped for so many, and grows resident
/// as they are used.
const FRAMES_MAX: u64 = 1 << 18;

/// Frames of pages.
pub(crate) struct Frames {
    page_bytes: usize,
    pages: Pages,
    /// Frame of page `n` at `n % FRAMES_MAX`.
    table: Region,
    owned: Mutex<Owned>,
    mapped: AtomicU64,
}

#[derive(Default)]
struct Owned {
    by_page: BTreeMap<u64, Region>,
    spare: Vec<Region>,
}

impl Frames {
    pub(crate) fn new(page_bytes: usize, pages: Pages) -> std::io::Result<Frames> {
        let bytes = (FRAMES_MAX as usize * 8).next_multiple_of(HUGE_PAGE_BYTES);
        Ok(Frames {
            page_bytes,
            pages,
            table: Region::map(bytes, Pages::Small)?,
            owned: Mutex::default(),
            mapped: AtomicU64::new(0),
        })
    }

    #[inline]
    fn entry(&self, page: u64) -> &AtomicPtr<u8> {
        let at = (page % FRAMES_MAX) as usize;
        // SAFETY: inside the table, which is zeroed when mapped and used as atomics alone.
        unsafe { &*self.table.base().as_ptr().cast::<AtomicPtr<u8>>().add(at) }
    }

    /// First byte of a page that is in memory.
    #[inline]
    pub(crate) fn base(&self, page: u64) -> *mut u8 {
        self.entry(page).load(Ordering::Acquire)
    }

    /// Gives a page a zeroed frame.
    pub(crate) fn install(&self, page: u64) -> std::io::Result<()> {
        let mut owned = lock(&self.owned);
        let region = match owned.spare.pop() {
            Some(region) => {
                // SAFETY: a spare frame is nobody's.
                unsafe { region.base().as_ptr().write_bytes(0, region.bytes()) };
                region
            }
            None => {
                // The first page of a small table shall not take a huge page.
                let pages = if owned.by_page.is_empty() { Pages::Small } else { self.pages };
                let region = Region::map(self.frame_bytes() as usize, pages)?;
                self.mapped.fetch_add(self.frame_bytes(), Ordering::Relaxed);
                region
            }
        };
        for word in (0..self.page_bytes / 8).filter(|_| cfg!(loom)) {
            // SAFETY: inside the frame, which nobody else knows yet.
            unsafe {
                RawAtomicU64::init(region.base().as_ptr().cast::<RawAtomicU64>().add(word), 0)
            };
        }
        // Release: pairs with the Acquire in `base`.
        self.entry(page).store(region.base().as_ptr(), Ordering::Release);
        owned.by_page.insert(page, region);
        Ok(())
    }

    /// Takes the frame of a page back that nobody can reach any more.
    pub(crate) fn evict(&self, page: u64, keep: bool) {
        let mut owned = lock(&self.owned);
        self.entry(page).store(std::ptr::null_mut(), Ordering::Relaxed);
        let Some(region) = owned.by_page.remove(&page) else { return };
        // One is enough: the next page takes it.
        if keep && owned.spare.is_empty() {
            owned.spare.push(region);
        } else {
            self.mapped.fetch_sub(region.bytes() as u64, Ordering::Relaxed);
        }
    }

    /// Pages in memory.
    pub(crate) fn count(&self) -> u64 {
        lock(&self.owned).by_page.len() as u64
    }

    /// Bytes that a page takes in memory.
    pub(crate) fn frame_bytes(&self) -> u64 {
        self.page_bytes.next_multiple_of(PAGE_BYTES) as u64
    }

    pub(crate) fn mapped_bytes(&self) -> u64 {
        self.mapped.load(Ordering::Relaxed)
    }

    pub(crate) fn count_max(&self) -> u64 {
        FRAMES_MAX
    }

    /// What the newest frame lies on.
    pub(crate) fn pages(&self) -> Pages {
        lock(&self.owned).by_page.values().next_back().map_or(Pages::Small, Region::pages)
    }
}
