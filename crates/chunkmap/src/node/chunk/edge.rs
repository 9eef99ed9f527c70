//! What searches for the nearest entry at an end of a chunk leave to those that follow.

use sapwood_engine::Direction;
use sapwood_mem::sync::Ordering;

use super::Chunk;
use crate::options::DELTA_ENTRIES_MAX;

/// What is known of an end of a chunk. It stays true: tombstones stay what they are, an entry keeps its key (I-KEY-ONCE),
/// and a delta grows at its end alone (I-APPEND).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    /// So many sorted entries there are tombstones.
    pub(crate) gone: usize,
    /// Of so many entries of the delta, ...
    pub(crate) read: usize,
    /// ... but for those that are tombstones, this one is nearest to the end, if it is none.
    pub(crate) nearest: usize,
}

impl Edge {
    fn shift(direction: Direction) -> u32 {
        match direction {
            Direction::Ascending => 0,
            Direction::Descending => u32::BITS,
        }
    }

    #[inline]
    fn from_bits(bits: u32) -> Edge {
        let [read, nearest] = [16, 24].map(|shift| usize::from((bits >> shift) as u8));
        Edge { gone: usize::from(bits as u16), read, nearest }
    }

    fn to_bits(self) -> u32 {
        let gone = self.gone.min(usize::from(u16::MAX));
        (gone | self.read << 16 | self.nearest << 24) as u32
    }
}

const _: () = assert!(DELTA_ENTRIES_MAX <= u8::MAX as usize);

impl Chunk<'_> {
    /// What is known of the end where a walk begins.
    #[inline]
    pub(crate) fn edge(&self, direction: Direction) -> Edge {
        // Acquire: pairs with the Release in `note_edge`: a thread that relies on it sees what it was made of.
        let edges = self.head().edges.load(Ordering::Acquire);
        Edge::from_bits((edges >> Edge::shift(direction)) as u32)
    }

    /// Notes what is known.
    #[cold]
    pub(crate) fn note_edge(&self, direction: Direction, edge: Edge) {
        let shift = Edge::shift(direction);
        let others = self.head().edges.load(Ordering::Acquire) & !(u64::from(u32::MAX) << shift);
        // Release: pairs with the Acquire in `edge`. What another thread has noted meanwhile may get lost.
        self.head().edges.store(others | u64::from(edge.to_bits()) << shift, Ordering::Release);
    }
}
