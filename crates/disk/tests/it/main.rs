//! The promises of every disk, and of each kind.

mod begun;
mod beside;
mod contract;
mod crashes;
mod faults;
mod files;
mod folders;
mod group;
mod log;

use sapwood_disk::{BLOCK_BYTES, Blocks, File};

/// Blocks full of these bytes, one each.
fn blocks(fills: &[u8]) -> Blocks {
    let mut blocks = Blocks::new(fills.len() * BLOCK_BYTES);
    for (block, fill) in blocks.bytes_mut().chunks_mut(BLOCK_BYTES).zip(fills) {
        block.fill(*fill);
    }
    blocks
}

/// The first byte of each block of a file, after checking that the block is full of it.
fn fills(file: &dyn File) -> Vec<u8> {
    let bytes = file.bytes().expect("a length");
    let mut all = Blocks::new(usize::try_from(bytes).expect("small"));
    file.read_at(0, &mut all).expect("the whole file");
    let fill = |block: &[u8]| {
        assert!(block.iter().all(|byte| *byte == block[0]), "one block, one write");
        block[0]
    };
    all.bytes().chunks(BLOCK_BYTES).map(fill).collect()
}
