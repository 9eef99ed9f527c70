//! A flat arena of equal slices with per-thread free lists, and the words that name live ones.
//!
//! Invariants: I-LIVE: a slice named by a word of `live` is in no free list until it was
//! swapped out and its scheme saw every reader of the time leave. I-OWNED: a slice taken from
//! a free list belongs to the taker until it is published.

use std::cell::RefCell;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Mutex, OnceLock};

/// Header 12, key 100, value 1,000.
pub(crate) const SLICE_BYTES: usize = 1112;
const VALUE_OFFSET: usize = 112;
/// Spare slices bound the garbage that a run may pile up.
const SPARE: u32 = 400_000;
/// A thread takes and gives back this many free slices at once.
const BATCH: usize = 1024;

static THE_ONE: OnceLock<Arena> = OnceLock::new();

pub(crate) struct Arena {
    base: *mut u8,
    pub(crate) entries: u32,
    live: Vec<AtomicU64>,
    free: Mutex<Vec<u32>>,
    garbage: AtomicI64,
    garbage_peak: AtomicI64,
}

// SAFETY: `base` is only dereferenced under I-LIVE and I-OWNED.
unsafe impl Send for Arena {}
// SAFETY: as above; all else is atomic or locked.
unsafe impl Sync for Arena {}

thread_local! {
    static FREE: RefCell<Local> = const { RefCell::new(Local { free: Vec::new(), arena: None }) };
}

/// A thread's free slices; given back when it ends.
struct Local {
    free: Vec<u32>,
    arena: Option<&'static Arena>,
}

impl Drop for Local {
    fn drop(&mut self) {
        if let Some(arena) = self.arena {
            arena.free.lock().expect("no holder panics").append(&mut self.free);
        }
    }
}

impl Arena {
    /// Fills an arena of 2 MiB pages, where the system gives them, for the life of the process.
    pub(crate) fn make(entries: u32) -> &'static Arena {
        let slices = entries + SPARE.min(entries * 8);
        let mut map = memmap2::MmapMut::map_anon(slices as usize * SLICE_BYTES)
            .expect("memory for the arena");
        // Refused on systems without transparent huge pages: every scheme then pays alike.
        let _ = map.advise(memmap2::Advice::HugePage);
        for (i, byte) in map.iter_mut().enumerate() {
            *byte = i as u8;
        }
        let base = map.as_mut_ptr();
        std::mem::forget(map);
        THE_ONE.get_or_init(|| Arena {
            base,
            entries,
            live: (0..u64::from(entries)).map(AtomicU64::new).collect(),
            free: Mutex::new((entries..slices).collect()),
            garbage: AtomicI64::new(0),
            garbage_peak: AtomicI64::new(0),
        })
    }

    /// For reclamation functions that are handed an address alone.
    pub(crate) fn the_one() -> &'static Arena {
        THE_ONE.get().expect("made before the first run")
    }

    pub(crate) fn address(&self, slice: u32) -> *mut u8 {
        // SAFETY: slice numbers come from `make` and lie within the map.
        unsafe { self.base.add(slice as usize * SLICE_BYTES) }
    }

    pub(crate) fn slice_at(&self, address: *mut u8) -> u32 {
        ((address as usize - self.base as usize) / SLICE_BYTES) as u32
    }

    /// Sums the value that `entry` names now; the caller is pinned.
    pub(crate) fn sum_live(&self, entry: u32) -> u64 {
        // SeqCst: what seize asks of a protected load; a plain load on x86 and ldar on ARM.
        let slice = self.live[entry as usize].load(SeqCst) as u32;
        // SAFETY: I-LIVE by the caller's pin.
        let value =
            unsafe { std::slice::from_raw_parts(self.address(slice).add(VALUE_OFFSET), 1000) };
        value.chunks_exact(8).fold(0u64, |sum, word| {
            sum.wrapping_add(u64::from_le_bytes(word.try_into().expect("8 bytes")))
        })
    }

    /// Writes a free slice and names it in `entry`; answers the slice to retire.
    pub(crate) fn swap(&'static self, entry: u32) -> u32 {
        let slice = self.take();
        // SAFETY: I-OWNED: `take` gave the slice to this thread alone.
        unsafe { std::ptr::write_bytes(self.address(slice), entry as u8, SLICE_BYTES) };
        let old = self.live[entry as usize].swap(u64::from(slice), AcqRel) as u32;
        let garbage = self.garbage.fetch_add(1, Relaxed) + 1;
        if garbage > self.garbage_peak.load(Relaxed) {
            self.garbage_peak.fetch_max(garbage, Relaxed);
        }
        old
    }

    /// Returns a retired slice to the free list.
    pub(crate) fn reclaim(&'static self, slice: u32) {
        self.garbage.fetch_sub(1, Relaxed);
        let refused = FREE.try_with(|local| {
            let mut local = local.borrow_mut();
            local.arena = Some(self);
            local.free.push(slice);
            if local.free.len() > 4 * BATCH {
                let keep = local.free.len() - 2 * BATCH;
                self.free.lock().expect("no holder panics").extend(local.free.drain(keep..));
            }
        });
        if refused.is_err() {
            // This thread is ending and has given its list back.
            self.free.lock().expect("no holder panics").push(slice);
        }
    }

    fn take(&'static self) -> u32 {
        FREE.with(|local| {
            let mut local = local.borrow_mut();
            local.arena = Some(self);
            if local.free.is_empty() {
                let mut free = self.free.lock().expect("no holder panics");
                let keep = free.len().saturating_sub(BATCH);
                local.free.extend(free.drain(keep..));
            }
            local.free.pop().expect("spare slices outlast the garbage of a run; use fewer --ops")
        })
    }

    pub(crate) fn reset_garbage(&self) {
        self.garbage_peak.store(self.garbage.load(Relaxed), Relaxed);
    }

    pub(crate) fn garbage(&self) -> u64 {
        self.garbage.load(Relaxed).max(0) as u64
    }

    pub(crate) fn garbage_peak(&self) -> u64 {
        self.garbage_peak.load(Relaxed).max(0) as u64
    }
}
