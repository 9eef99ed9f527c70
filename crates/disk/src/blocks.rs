//! Buffers that a real disk reads into and writes from without copying.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// Bytes of a block: the unit of every read and write.
pub const BLOCK_BYTES: usize = 4096;

#[repr(C, align(4096))]
#[derive(Clone, FromBytes, IntoBytes, Immutable)]
pub(crate) struct Block([u8; BLOCK_BYTES]);

const _: () = assert!(size_of::<Block>() == BLOCK_BYTES && align_of::<Block>() == BLOCK_BYTES);

/// A buffer of whole blocks, aligned for direct I/O, zeroed when made.
#[derive(Clone, Default)]
pub struct Blocks(pub(crate) Vec<Block>);

impl Blocks {
    /// A buffer of at least `bytes` bytes, rounded up to whole blocks.
    pub fn new(bytes: usize) -> Blocks {
        let count = bytes.div_ceil(BLOCK_BYTES);
        Blocks(Block::new_vec_zeroed(count).expect("no more than the address space"))
    }

    /// Makes the buffer shorter or longer, rounded up to whole blocks. What stays keeps its bytes,
    /// what comes is zeroed; going back and forth allocates nothing.
    pub fn resize(&mut self, bytes: usize) {
        let count = bytes.div_ceil(BLOCK_BYTES);
        if count > self.0.capacity() {
            // Memory that the system has zeroed is not written to.
            let mut longer = Blocks::new(bytes).0;
            longer[..self.0.len()].clone_from_slice(&self.0);
            self.0 = longer;
        }
        self.0.resize(count, Block::new_zeroed());
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_slice().as_bytes()
    }

    /// The bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_slice().as_mut_bytes()
    }
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocks").field("count", &self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resized_buffer_keeps_its_front_and_grows_zeros() {
        let mut blocks = Blocks::new(3 * BLOCK_BYTES);
        blocks.bytes_mut().fill(7);
        let place = blocks.bytes().as_ptr();
        blocks.resize(BLOCK_BYTES + 1);
        assert_eq!(blocks.bytes(), [7; 2 * BLOCK_BYTES]);
        blocks.resize(3 * BLOCK_BYTES);
        assert_eq!(blocks.bytes()[2 * BLOCK_BYTES..], [0; BLOCK_BYTES]);
        assert_eq!(blocks.bytes().as_ptr(), place, "nothing was allocated");
    }

    #[test]
    fn buffers_are_whole_zeroed_aligned_blocks() {
        for (bytes, expected) in [(0, 0), (1, 4096), (4096, 4096), (4097, 8192)] {
            let mut blocks = Blocks::new(bytes);
            assert_eq!(blocks.bytes().len(), expected);
            assert!(blocks.bytes().iter().all(|byte| *byte == 0));
            assert_eq!(blocks.bytes().as_ptr().addr() % BLOCK_BYTES, 0);
            blocks.bytes_mut().fill(7);
            assert!(blocks.bytes().iter().all(|byte| *byte == 7));
        }
    }
}
