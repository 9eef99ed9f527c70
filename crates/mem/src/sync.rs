//! Atomics, locks and waits: the machine's, or a model checker's.
//!
//! Engines take every atomic that belongs to a protocol from here. Under
//! `--cfg loom` they become loom's, so that a model runs the very code that
//! ships.
//!
//! [`RawAtomicU64`] is the word that engines lay out in arena memory. Loom's
//! own atomics are fat objects that cannot live at an address of our choice;
//! in a model each word therefore has a *shadow*, a loom atomic found by the
//! word's address. [`RawAtomicU64::init`] makes the shadow, [`read_bytes`] and
//! [`write_bytes`] tell loom about plain accesses to the bytes of a record, so
//! that it finds data races on them too.
//!
//! Counters for statistics and the allocator's locks are the standard
//! library's in every build: no protocol depends on their order, and no model
//! switches threads while one is held. Locks for which that is not so come
//! from [`held`].

pub use std::sync::atomic::Ordering;

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, fence};

#[cfg(not(loom))]
pub use std::thread::yield_now;

#[cfg(loom)]
pub use loom::thread::yield_now;

/// Locks that may be held while a model switches threads.
pub mod held {
    #[cfg(loom)]
    pub use loom::sync::{Mutex, MutexGuard, RwLock};
    #[cfg(not(loom))]
    pub use std::sync::{Mutex, MutexGuard, RwLock};
}

/// Counters that no protocol depends on: the standard library's in every build.
pub mod counter {
    pub use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize};
}

/// A 64-bit word in arena memory, shared between threads.
///
/// The interface is that of [`std::sync::atomic::AtomicU64`].
#[repr(transparent)]
pub struct RawAtomicU64(std::sync::atomic::AtomicU64);

impl RawAtomicU64 {
    /// Makes the word at `word` valid, with `value`.
    ///
    /// # Safety
    /// `word` is aligned, lies in memory that the caller owns alone, and stays
    /// mapped for as long as a reference made from it lives.
    #[inline]
    pub unsafe fn init(word: *mut RawAtomicU64, value: u64) {
        debug_assert!(word.is_aligned());
        // SAFETY: the caller owns the aligned word.
        unsafe { word.cast::<u64>().write(value) };
        #[cfg(loom)]
        shadow::init(word as usize, value);
    }
}

#[cfg(not(loom))]
mod machine {
    use super::{Ordering, RawAtomicU64};

    impl RawAtomicU64 {
        /// As of [`std::sync::atomic::AtomicU64`].
        #[inline]
        pub fn load(&self, order: Ordering) -> u64 {
            self.0.load(order)
        }

        /// As of [`std::sync::atomic::AtomicU64`].
        #[inline]
        pub fn store(&self, value: u64, order: Ordering) {
            self.0.store(value, order);
        }

        /// As of [`std::sync::atomic::AtomicU64`].
        #[inline]
        pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
            self.0.fetch_or(bits, order)
        }

        /// As of [`std::sync::atomic::AtomicU64`].
        #[inline]
        pub fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
            self.0.fetch_and(bits, order)
        }

        /// As of [`std::sync::atomic::AtomicU64`].
        #[inline]
        pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_add(value, order)
        }

        /// As of [`std::sync::atomic::AtomicU64`].
        ///
        /// # Errors
        /// The word's value, when it was not `current`.
        #[inline]
        pub fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            self.0.compare_exchange(current, new, success, failure)
        }
    }
}

/// Puts the SeqCst accesses before it and the loads behind it into one order for loom, which knows
/// that order of fences alone. The machine has it without.
#[inline]
pub fn order_in_model() {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// Tells a model that the bytes at `base` are read without an atomic.
#[inline]
pub fn read_bytes(base: *const u8) {
    #[cfg(loom)]
    shadow::read_bytes(base as usize);
    let _ = base;
}

/// Tells a model that the bytes at `base` are written without an atomic.
#[inline]
pub fn write_bytes(base: *const u8) {
    #[cfg(loom)]
    shadow::write_bytes(base as usize);
    let _ = base;
}

/// Ends the life of every word in a range that was freed or unmapped.
#[inline]
pub(crate) fn forget_range(base: *const u8, bytes: usize) {
    #[cfg(loom)]
    shadow::forget(base as usize, bytes);
    let _ = (base, bytes);
}

/// Waits a little longer each time: spins, then yields, then sleeps.
///
/// Only for waits that another thread ends in bounded work, or that a user's
/// closure of arbitrary length ends (hence the sleep).
#[derive(Debug, Default)]
pub struct Backoff {
    #[cfg(not(loom))]
    spins: crossbeam_utils::Backoff,
}

impl Backoff {
    /// A fresh one, spinning first.
    pub fn new() -> Backoff {
        Backoff::default()
    }

    /// Waits one step.
    pub fn wait(&self) {
        #[cfg(loom)]
        loom::thread::yield_now();
        #[cfg(not(loom))]
        if self.spins.is_completed() {
            std::thread::sleep(std::time::Duration::from_micros(50));
        } else {
            self.spins.snooze();
        }
    }
}

#[cfg(loom)]
pub(crate) mod shadow {
    //! Shadows of raw words and bytes, for the loom build only.

    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicU64;

    use super::{Ordering, RawAtomicU64};

    struct Shadows {
        words: BTreeMap<usize, Arc<AtomicU64>>,
        bytes: BTreeMap<usize, Arc<Cell>>,
    }

    struct Cell(UnsafeCell<()>);

    std::thread_local! {
        /// All threads of a model run on one thread of the system, so this is the
        /// model's own, and models can run side by side.
        static SHADOWS: RefCell<Shadows> =
            const { RefCell::new(Shadows { words: BTreeMap::new(), bytes: BTreeMap::new() }) };
    }

    fn shadows<R>(f: impl FnOnce(&mut Shadows) -> R) -> R {
        SHADOWS.with(|shadows| f(&mut shadows.borrow_mut()))
    }

    /// Forgets every shadow.
    pub(crate) fn forget_all() {
        let old = shadows(|s| (std::mem::take(&mut s.words), std::mem::take(&mut s.bytes)));
        // Objects of an earlier execution must not run their destructors in this one.
        std::mem::forget(old);
    }

    pub(super) fn init(address: usize, value: u64) {
        let shadow = Arc::new(AtomicU64::new(value));
        let old = shadows(|s| s.words.insert(address, shadow));
        drop(old);
    }

    pub(super) fn forget(base: usize, bytes: usize) {
        let range = base..base + bytes;
        let gone = shadows(|s| {
            let words: Vec<_> = s.words.range(range.clone()).map(|(at, _)| *at).collect();
            let cells: Vec<_> = s.bytes.range(range).map(|(at, _)| *at).collect();
            let words: Vec<_> = words.iter().filter_map(|at| s.words.remove(at)).collect();
            let cells: Vec<_> = cells.iter().filter_map(|at| s.bytes.remove(at)).collect();
            (words, cells)
        });
        drop(gone);
    }

    fn word(raw: &RawAtomicU64) -> Arc<AtomicU64> {
        let address = std::ptr::from_ref(raw) as usize;
        shadows(|s| s.words.get(&address).cloned())
            .expect("use of a word that was never initialised, or was freed")
    }

    fn cell(address: usize) -> Arc<Cell> {
        if let Some(cell) = shadows(|s| s.bytes.get(&address).cloned()) {
            return cell;
        }
        let fresh = Arc::new(Cell(UnsafeCell::new(())));
        shadows(|s| s.bytes.entry(address).or_insert(fresh).clone())
    }

    pub(super) fn read_bytes(address: usize) {
        cell(address).0.with(|_| ());
    }

    pub(super) fn write_bytes(address: usize) {
        cell(address).0.with_mut(|_| ());
    }

    impl RawAtomicU64 {
        /// See the machine's.
        pub fn load(&self, order: Ordering) -> u64 {
            word(self).load(order)
        }

        /// See the machine's.
        pub fn store(&self, value: u64, order: Ordering) {
            word(self).store(value, order);
        }

        /// See the machine's.
        pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
            word(self).fetch_or(bits, order)
        }

        /// See the machine's.
        pub fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
            word(self).fetch_and(bits, order)
        }

        /// See the machine's.
        pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            word(self).fetch_add(value, order)
        }

        /// See the machine's.
        ///
        /// # Errors
        /// The word's value, when it was not `current`.
        pub fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            word(self).compare_exchange(current, new, success, failure)
        }
    }
}
