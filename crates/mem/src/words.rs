//! Words: memory as one array of atomic 64-bit words that grows without moving.
//!
//! Every word is an atomic one, so that readers may look at words that a writer changes meanwhile,
//! and decide afterwards whether what they saw was of one moment (Boehm: "Can seqlocks get along
//! with programming language memory models?", MSPC 2012).

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::mm::{MapFlags, ProtFlags};

use crate::region::{HUGE_PAGE_BYTES, PAGE_BYTES, Pages};
use crate::reserve::{Backing, Reservation};
use crate::sync::RawAtomicU64;

/// Bytes of a word.
pub const WORD_BYTES: usize = 8;

/// How words of a mapped file are going to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// The system reads ahead as it likes, megabytes for one word: much of the file fits into memory.
    Ahead,
    /// A page at a time: what is read ahead would take the place of what is read again.
    Scattered,
}

/// An array of words. It holds zeros where no thread has stored anything.
#[derive(Debug)]
pub struct Words {
    space: Reservation,
    /// Words that can be used.
    len: AtomicUsize,
    growing: Mutex<()>,
}

impl Words {
    /// An empty array that can grow to `most_bytes`, a power of two of at least 2 MiB, or to less
    /// where address space is short, but to `least_bytes`.
    ///
    /// # Errors
    /// [`NoAddressSpace`](crate::reserve::NoAddressSpace).
    pub fn new(most_bytes: usize, least_bytes: usize) -> std::io::Result<Words> {
        let space = Reservation::new(most_bytes, least_bytes, Pages::Transparent)?;
        Ok(Words { space, len: AtomicUsize::new(0), growing: Mutex::new(()) })
    }

    /// The words at `at..at + len`; `None` beyond the end.
    #[inline]
    pub fn get(&self, at: usize, len: usize) -> Option<&[RawAtomicU64]> {
        // Acquire: what `grow` did to the memory is done.
        if at.checked_add(len)? > self.len.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the words are committed, aligned by the base of the reservation, never move, and
        // stay until `self` goes, which the answer borrows. All of them are atomics.
        Some(unsafe {
            let base = self.space.base().cast::<RawAtomicU64>().add(at);
            NonNull::slice_from_raw_parts(base, len).as_ref()
        })
    }

    /// The number of words that can be used.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Words that there may come to be.
    pub fn most(&self) -> usize {
        self.space.bytes() / WORD_BYTES
    }

    /// Makes at least `len` words usable. More than 2 MiB of them lie on huge pages where the system
    /// has some.
    ///
    /// # Errors
    /// [`NoMemory`](crate::reserve::NoMemory), and the same where there would be more than
    /// [`Words::most`].
    pub fn grow(&self, len: usize) -> std::io::Result<()> {
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let from = self.len.load(Ordering::Relaxed) * WORD_BYTES;
        let step = if len * WORD_BYTES < HUGE_PAGE_BYTES { PAGE_BYTES } else { HUGE_PAGE_BYTES };
        let to = (len * WORD_BYTES).next_multiple_of(step);
        if to <= from {
            return Ok(());
        }
        if to > self.space.bytes() {
            return Err(std::io::Error::new(
                std::io::ErrorKind::OutOfMemory,
                crate::reserve::NoMemory {
                    bytes: (to - from) as u64,
                    why: format!("{} bytes of address space were kept for it", self.space.bytes()),
                },
            ));
        }
        let border = from.next_multiple_of(HUGE_PAGE_BYTES).min(to);
        if border > from {
            self.space.commit(from, border - from, Backing::Small)?;
        }
        if to > border {
            self.space.commit(border, to - border, Backing::Huge)?;
        }
        self.init(from / WORD_BYTES..to / WORD_BYTES);
        // Release: see `get`.
        self.len.store(to / WORD_BYTES, Ordering::Release);
        Ok(())
    }

    /// Makes the first `bytes` of a file the first words, little endian, and no others usable. The
    /// file is read when words are touched, and never written: pages that are stored to become this
    /// process's own. The file must not be cut while it is mapped.
    ///
    /// # Errors
    /// The system's answer.
    ///
    /// # Panics
    /// If the array is not empty, or `bytes` are not whole pages.
    pub fn map_file(
        &self,
        file: BorrowedFd<'_>,
        bytes: usize,
        reads: Reads,
    ) -> std::io::Result<()> {
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(self.is_empty() && bytes.is_multiple_of(PAGE_BYTES), "an empty array, whole pages");
        if bytes == 0 {
            return Ok(());
        }
        if bytes > self.space.bytes() {
            let why = format!("{} bytes of address space were kept for it", self.space.bytes());
            let refused = crate::reserve::NoMemory { bytes: bytes as u64, why };
            return Err(std::io::Error::new(std::io::ErrorKind::OutOfMemory, refused));
        }
        // SAFETY: no word of it was handed out.
        unsafe { self.map_over(file, bytes, reads) }?;
        // Release: see `get`.
        self.len.store(bytes / WORD_BYTES, Ordering::Release);
        Ok(())
    }

    /// Gives the memory of the first `bytes` back to the system: the file, which holds the same
    /// words, takes its place, as after [`Words::map_file`], to be read a page at a time. Threads may read meanwhile. What the file
    /// does not hold, and what a thread stores meanwhile, is lost.
    ///
    /// # Errors
    /// The system's answer; nothing has changed then.
    ///
    /// # Panics
    /// If `bytes` are not whole pages of the array.
    pub fn give_way_to_file(&self, file: BorrowedFd<'_>, bytes: usize) -> std::io::Result<()> {
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(bytes.is_multiple_of(PAGE_BYTES) && bytes <= self.len() * WORD_BYTES, "pages");
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller wants it so; the system replaces the mapping in one step, so that a
        // reader finds words of the one or of the other.
        unsafe { self.map_over(file, bytes, Reads::Scattered) }
    }

    /// # Safety
    /// No thread misses what the range held.
    unsafe fn map_over(
        &self,
        file: BorrowedFd<'_>,
        bytes: usize,
        reads: Reads,
    ) -> std::io::Result<()> {
        // SAFETY: the range is the reservation's own, and stays mapped.
        let mapped = unsafe {
            rustix::mm::mmap(
                self.space.base().as_ptr().cast(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED,
                file,
                0,
            )
        }?;
        debug_assert_eq!(mapped.cast(), self.space.base().as_ptr());
        if reads == Reads::Scattered {
            // SAFETY: the range that was just mapped, whose bytes stay. A system that refuses is
            // slower where memory is short.
            let _advised =
                unsafe { rustix::mm::madvise(mapped, bytes, rustix::mm::Advice::Random) };
        }
        Ok(())
    }

    /// Gives back the memory of all words from `len` on, rounded up to pages; they are not usable
    /// any more.
    pub fn shrink(&mut self, len: usize) {
        let to = self.len.load(Ordering::Relaxed) * WORD_BYTES;
        let step = if len * WORD_BYTES < HUGE_PAGE_BYTES { PAGE_BYTES } else { HUGE_PAGE_BYTES };
        let from = (len * WORD_BYTES).next_multiple_of(step);
        if from < to {
            self.len.store(from / WORD_BYTES, Ordering::Release);
            // SAFETY: `&mut self`: no reference to a word is left.
            unsafe { self.space.release(from, to - from) };
        }
    }

    /// Begins the lives of words for a model checker.
    fn init(&self, words: Range<usize>) {
        #[cfg(loom)]
        for word in words {
            // SAFETY: committed, and not handed out yet.
            unsafe {
                RawAtomicU64::init(self.space.base().cast::<RawAtomicU64>().add(word).as_ptr(), 0);
            }
        }
        #[cfg(not(loom))]
        let _ = words;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn words_are_zeros_and_keep_what_is_stored() {
        let words = Words::new(1 << 30, 1 << 21).expect("address space");
        assert!(words.get(0, 1).is_none() && words.get(0, 0).is_some());
        words.grow(1).expect("a page");
        assert_eq!(words.len(), PAGE_BYTES / WORD_BYTES);
        let first = words.get(0, 2).expect("two words");
        first[1].store(7, Ordering::Relaxed);
        words.grow(1 << 20).expect("8 MiB");
        assert_eq!(first[1].load(Ordering::Relaxed), 7, "words do not move");
        let last = words.get((1 << 20) - 1, 1).expect("the last one");
        assert_eq!(last[0].load(Ordering::Relaxed), 0);
        assert!(words.get(words.len(), 1).is_none() && words.get(usize::MAX, 2).is_none());
        assert!(words.grow(1 << 40).is_err(), "beyond what was kept");
    }

    #[test]
    fn shrunk_words_begin_anew() {
        let mut words = Words::new(1 << 30, 1 << 21).expect("address space");
        words.grow(1 << 20).expect("8 MiB");
        words.get(1 << 19, 1).expect("a word")[0].store(7, Ordering::Relaxed);
        words.shrink(1 << 18);
        assert_eq!(words.len(), 1 << 18);
        words.grow(1 << 20).expect("8 MiB");
        assert_eq!(words.get(1 << 19, 1).expect("a word")[0].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_mapped_file_is_read_and_not_written() {
        let mut file = tempfile::tempfile().expect("a file");
        let mut bytes = vec![0; 4 * PAGE_BYTES];
        bytes[PAGE_BYTES] = 9;
        file.write_all(&bytes).expect("written");
        let words = Words::new(1 << 30, 1 << 21).expect("address space");
        words.map_file(file.as_fd(), bytes.len(), Reads::Ahead).expect("mapped");
        let word = &words.get(PAGE_BYTES / WORD_BYTES, 1).expect("a word")[0];
        assert_eq!(word.load(Ordering::Relaxed), 9);
        word.store(10, Ordering::Relaxed);
        assert_eq!(word.load(Ordering::Relaxed), 10);
        words.grow(1 << 18).expect("2 MiB more");
        assert_eq!(words.get((1 << 18) - 1, 1).expect("a word")[0].load(Ordering::Relaxed), 0);
        words.give_way_to_file(file.as_fd(), bytes.len()).expect("mapped");
        assert_eq!(word.load(Ordering::Relaxed), 9, "what the file holds");
    }
}
