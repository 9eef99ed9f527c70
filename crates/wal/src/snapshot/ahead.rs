//! Blocks that the system reads while others are worked on.

use std::ops::Range;

use super::Snapshot;

/// Blocks that are looked at to tell whether all are in memory.
const LOOKS: usize = 16;

/// The system reads so many blocks while as many are worked on: some megabytes.
const AHEAD: usize = 64;

/// Tells the system which blocks of a snapshot are read next, if some are on the disk alone. Many reads of a disk at
/// once take a fraction of the time that they take one after the other.
#[derive(Debug)]
pub struct ReadAhead<'s> {
    snapshot: &'s Snapshot,
    blocks: Range<usize>,
    is_needed: bool,
}

impl Snapshot {
    /// Blocks that are to be read in their order, by any number of threads.
    ///
    /// # Panics
    /// If there are fewer, here, and later of a block that is none of them.
    pub fn read_ahead(&self, blocks: Range<usize>) -> ReadAhead<'_> {
        let step = blocks.len().div_ceil(LOOKS).max(1);
        let mut looks = self.places()[blocks.clone()].iter().step_by(step);
        let is_on_disk = |offset: u64| !self.file().is_in_memory(offset);
        let is_needed = looks.any(|block| is_on_disk(block.offset + block.bytes() / 2));
        ReadAhead { snapshot: self, blocks, is_needed }
    }
}

impl ReadAhead<'_> {
    /// Is told before a block is read.
    pub fn begin(&self, block: usize) {
        if !self.is_needed {
            return;
        }
        let next = &self.snapshot.places()[next(&self.blocks, block)];
        if let (Some(first), Some(last)) = (next.first(), next.last()) {
            let bytes = last.offset + last.bytes() - first.offset;
            self.snapshot.file().read_ahead(first.offset, bytes);
        }
    }
}

/// The blocks that the system is told of when one of them is read: those behind the ones before.
fn next(blocks: &Range<usize>, block: usize) -> Range<usize> {
    let at = block - blocks.start;
    if !at.is_multiple_of(AHEAD) {
        return block..block;
    }
    // The first read tells of twice as many.
    let from = if at == 0 { block } else { block + AHEAD };
    from.min(blocks.end)..blocks.end.min(block + 2 * AHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_is_told_once_and_before_it_is_read() {
        for blocks in [3..3, 0..1, 5..6, 7..70, 0..64, 1..66, 0..128, 9..500] {
            let mut told = blocks.start;
            for block in blocks.clone() {
                let next = next(&blocks, block);
                if !next.is_empty() {
                    assert_eq!(next.start, told);
                    told = next.end;
                }
                assert!(told >= blocks.end.min(block + AHEAD), "{block} of {blocks:?}");
            }
            assert_eq!(told, blocks.end);
        }
    }
}
