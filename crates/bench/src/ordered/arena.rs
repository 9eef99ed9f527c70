//! Memory on 2 MiB pages for the off-heap peer and for the floor, without unsafe code.

use std::sync::atomic::AtomicU64;

use memmap2::{Advice, MmapMut};
use parking_lot::Mutex;
use zerocopy::FromBytes;

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

/// Zeroed memory on 2 MiB pages where the system gives them, else on 4 KiB ones.
pub(crate) fn map_huge(bytes: usize) -> MmapMut {
    let map =
        MmapMut::map_anon(bytes).expect("the system gives memory: lower --entries if it does not");
    let _refused = map.advise(Advice::HugePage);
    map
}
