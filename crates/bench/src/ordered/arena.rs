//! Blocks of memory on 2 MiB pages for the off-heap peer.

use std::sync::atomic::AtomicU64;

use memmap2::MmapMut;
use parking_lot::Mutex;
use zerocopy::FromBytes;

use crate::pages::map_huge;

/// Words of a block: 64 MiB.
pub(crate) const BLOCK_WORDS: usize = 8 << 20;

/// Blocks that were mapped and given back: references to them are `'static`, so they are used
/// again and never unmapped.
static SPARE: Mutex<Vec<&'static [AtomicU64]>> = Mutex::new(Vec::new());

pub(crate) fn take_block() -> &'static [AtomicU64] {
    if let Some(block) = SPARE.lock().pop() {
        return block;
    }
    let map: &'static mut MmapMut = Box::leak(Box::new(map_huge(BLOCK_WORDS * 8)));
    let words = <[AtomicU64]>::mut_from_bytes(&mut map[..]);
    words.expect("a map is page-aligned and a whole number of words")
}

pub(crate) fn give_block(block: &'static [AtomicU64]) {
    SPARE.lock().push(block);
}
