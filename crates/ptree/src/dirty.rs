//! Pages that were changed since they were last written.

use std::ops::Range;

use crate::heap::layout::PAGE_WORDS;

/// One bit a page.
#[derive(Debug, Default)]
pub(crate) struct DirtyPages {
    bits: Vec<u64>,
    count: usize,
}

impl DirtyPages {
    /// Marks the pages of some words.
    #[inline]
    pub(crate) fn mark(&mut self, at: usize, words: usize) {
        for page in at / PAGE_WORDS..=(at + words.max(1) - 1) / PAGE_WORDS {
            let word = page / 64;
            if word >= self.bits.len() {
                self.bits.resize((word + 1).next_power_of_two(), 0);
            }
            let bit = 1 << (page % 64);
            self.count += usize::from(self.bits[word] & bit == 0);
            self.bits[word] |= bit;
        }
    }

    /// Pages.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of them.
    pub(crate) fn bytes(&self) -> u64 {
        (self.count * PAGE_WORDS * 8) as u64
    }

    /// Runs of pages that are marked, at most `longest` in each.
    pub(crate) fn runs(&self, longest: usize) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (index, bits) in self.bits.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let page = index * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                match runs.last_mut() {
                    Some(run) if run.end == page && run.len() < longest => run.end += 1,
                    _ => runs.push(page..page + 1),
                }
            }
        }
        runs
    }

    /// Marks what `other` has marked, too.
    pub(crate) fn add(&mut self, other: &DirtyPages) {
        for run in other.runs(usize::MAX) {
            self.mark(run.start * PAGE_WORDS, run.len() * PAGE_WORDS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_all_marked_pages_and_no_other() {
        let mut pages = DirtyPages::default();
        pages.mark(0, 1);
        pages.mark(PAGE_WORDS - 1, 2);
        pages.mark(200 * PAGE_WORDS, 3 * PAGE_WORDS);
        assert_eq!(pages.count(), 5);
        assert_eq!(pages.runs(8), [0..2, 200..203]);
        assert_eq!(pages.runs(2), [0..2, 200..202, 202..203]);
        let mut others = DirtyPages::default();
        others.mark(2 * PAGE_WORDS, 1);
        others.add(&pages);
        assert_eq!(others.runs(8), [0..3, 200..203]);
    }
}
