//! The delta: entries in the order of their arrival.

use sapwood_mem::SliceRef;
use sapwood_mem::arena::prefetch_line;
use sapwood_mem::sync::{Ordering, RawAtomicU64};

use super::{Chunk, Gathered, Miss};
use crate::layout::{EntryState, FINGERPRINTS_PER_WORD, FROZEN, INEXACT_CAME};
use crate::node::shape::PICKS_MAX;

/// The outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Append {
    Done,
    /// Another thread inserted the same key first.
    Exists,
    Full,
    Frozen,
}

impl<'g> Chunk<'g> {
    #[inline]
    pub(crate) fn delta_words(&self) -> &'g [RawAtomicU64] {
        self.words_at(self.layout.delta_words, self.delta_cap)
    }

    #[inline]
    pub(super) fn delta_abbreviations(&self) -> &'g [RawAtomicU64] {
        self.words_at(self.layout.delta_abbreviations, self.delta_cap)
    }

    #[inline]
    pub(super) fn fingerprints(&self) -> &'g [RawAtomicU64] {
        self.words_at(self.layout.fingerprints, self.delta_cap.div_ceil(FINGERPRINTS_PER_WORD))
    }

    /// Asks for the lines that [`append`](Self::append) goes to and no search does.
    #[inline]
    pub(crate) fn prefetch_append(&self, end: usize) {
        prefetch_line(self.base.wrapping_add(self.layout.delta_abbreviations + end * 8));
        // Of a short one, its length tells all.
        if self.head().tail_len as usize > PICKS_MAX
            && let Some(tail) = self.tail()
        {
            for line in (0..tail.len()).step_by(64) {
                prefetch_line(tail.as_ptr().wrapping_add(line));
            }
        }
    }

    /// Appends a record of `key`, which a search has missed, at the first empty delta word from where that ended.
    ///
    /// Linearization point of an insert: the successful exchange.
    pub(crate) fn append(&self, miss: Miss, key: &[u8], slice: SliceRef) -> Append {
        debug_assert!(self.covers(key), "I-BOUNDS");
        let Miss { abbreviation, end, .. } = miss;
        debug_assert_eq!(abbreviation, self.abbreviate(key), "the search was in this chunk");
        if self.is_exact() && !self.gives(key, abbreviation) {
            // INVARIANT: I-EXACT: known before the key is in a chunk that freezes. Release: pairs with the Acquire
            // in `shape_of_all`.
            self.head().tombstones.fetch_or(INEXACT_CAME, Ordering::Release);
        }
        let mut at = end;
        loop {
            let Some(word) = self.delta_words().get(at) else {
                return Append::Full;
            };
            // INVARIANT: I-APPEND, I-KEY-ONCE: only the first empty word is taken, and the record
            // that was there first is compared. AcqRel: publishes the record, which pairs with the
            // Acquire in `accepted`; on failure Acquire pairs with the CAS of the thread that was
            // first.
            match word.compare_exchange(0, slice.word(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(now) if now & FROZEN != 0 => return Append::Frozen,
                Err(now) => match EntryState::of(now) {
                    EntryState::Record(other) if self.record(other).key() == key => {
                        return Append::Exists;
                    }
                    _ => at += 1,
                },
            }
        }
        // Relaxed: a hint; a search that sees zero reads the key.
        self.delta_abbreviations()[at].store(abbreviation, Ordering::Relaxed);
        let shift = at % FINGERPRINTS_PER_WORD * 8;
        let byte = u64::from(fingerprint(abbreviation, key)) << shift;
        // Release: pairs with the Acquire in `find_where` and `likely_slice`.
        self.fingerprints()[at / FINGERPRINTS_PER_WORD].fetch_or(byte, Ordering::Release);
        Append::Done
    }

    /// Delta entries up to the first empty word.
    pub(crate) fn delta_len(&self) -> usize {
        // Acquire: pairs with the CAS in `append`.
        let empty =
            |word: &RawAtomicU64| EntryState::of(word.load(Ordering::Acquire)) == EntryState::Empty;
        // I-APPEND.
        self.delta_words().iter().position(empty).unwrap_or(self.delta_cap)
    }

    /// Entries of the delta that are not empty or tombstones: index, abbreviation, slice.
    pub(crate) fn delta_entries(&self) -> impl Iterator<Item = (usize, Gathered)> + use<'g> {
        self.delta_entries_where(|_| true)
    }

    /// Those of them whose abbreviation is wanted, when it is asked about.
    #[inline]
    pub(crate) fn delta_entries_where<F: Fn(u64) -> bool>(
        &self,
        is_wanted: F,
    ) -> DeltaEntries<'g, F> {
        self.delta_entries_from(0, is_wanted)
    }

    /// The same from a place on.
    #[inline]
    pub(crate) fn delta_entries_from<F: Fn(u64) -> bool>(
        &self,
        next: usize,
        is_wanted: F,
    ) -> DeltaEntries<'g, F> {
        DeltaEntries { chunk: *self, next, is_wanted }
    }

    /// The entry of the delta that is at a place, unless `record` tells none of its word.
    #[inline]
    pub(crate) fn delta_entry(
        &self,
        at: usize,
        record: impl Fn(&'g RawAtomicU64) -> Option<SliceRef>,
    ) -> Option<Gathered> {
        let slice = record(&self.delta_words()[at])?;
        // Relaxed: a hint; zero means that it is not known yet.
        let abbreviation = match self.delta_abbreviations()[at].load(Ordering::Relaxed) {
            0 => self.abbreviate(self.record(slice).key()),
            known => known,
        };
        Some(Gathered { abbreviation, slice })
    }
}

/// Entries of a delta, each with its place.
pub(crate) struct DeltaEntries<'g, F> {
    chunk: Chunk<'g>,
    next: usize,
    is_wanted: F,
}

impl<F> DeltaEntries<'_, F> {
    /// Where it goes on; once there are no more, the end of the delta.
    pub(crate) fn place(&self) -> usize {
        self.next
    }
}

impl<F: Fn(u64) -> bool> Iterator for DeltaEntries<'_, F> {
    type Item = (usize, Gathered);

    #[inline]
    fn next(&mut self) -> Option<(usize, Gathered)> {
        let chunk = self.chunk;
        let abbreviations = chunk.delta_abbreviations();
        // Relaxed: zero where it is not known yet, and behind the last entry.
        let mut rest = (self.next..).zip(&abbreviations[self.next..]);
        loop {
            let mut known = rest.by_ref().map(|(at, known)| (at, known.load(Ordering::Relaxed)));
            let found = known.find(|(_, known)| *known == 0 || (self.is_wanted)(*known));
            let Some((at, known)) = found else {
                self.next = chunk.delta_cap;
                return None;
            };
            // Acquire: pairs with the CAS in `append` or `swap` that published the record.
            let word = chunk.delta_words()[at].load(Ordering::Acquire);
            let slice = match EntryState::of(word) {
                EntryState::Record(slice) => slice,
                // I-APPEND: nothing lies behind an empty word.
                EntryState::Empty => {
                    self.next = at;
                    return None;
                }
                EntryState::Tombstone => continue,
            };
            let abbreviation = match known {
                0 => chunk.abbreviate(chunk.record(slice).key()),
                known => known,
            };
            if known != 0 || (self.is_wanted)(abbreviation) {
                self.next = at + 1;
                return Some((at, Gathered { abbreviation, slice }));
            }
        }
    }
}

/// One byte of a key, never zero: tells most other keys of the delta apart
/// without looking at them.
#[inline]
pub(super) fn fingerprint(abbreviation: u64, key: &[u8]) -> u8 {
    let tail = match key.last_chunk::<8>() {
        Some(tail) => u64::from_le_bytes(*tail),
        None => key.len() as u64,
    };
    let mixed = (abbreviation ^ tail.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 56) as u8).max(1)
}

/// The high bit of each byte of `bytes` that is `wanted` or zero; now and then
/// of one that is neither.
#[inline]
pub(super) fn match_bytes(bytes: u64, wanted: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let same = bytes ^ (ONES * u64::from(wanted));
    ((same.wrapping_sub(ONES) & !same) | (bytes.wrapping_sub(ONES) & !bytes)) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::match_bytes;

    #[test]
    fn matches_are_never_missed() {
        let bytes = u64::from_le_bytes([7, 9, 7, 0, 255, 1, 6, 8]);
        for (wanted, at) in [(7, 0), (7, 2), (9, 1), (255, 4), (1, 5), (200, 3)] {
            assert!(match_bytes(bytes, wanted) >> (at * 8) & 0x80 != 0, "{wanted} at {at}");
        }
        assert_eq!(match_bytes(u64::from_le_bytes([2; 8]), 7), 0);
    }
}
