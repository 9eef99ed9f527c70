//! How the records of a chunk lie, and the walks that find out.

use sapwood_mem::SliceRef;
use sapwood_mem::sync::Ordering;

use super::Chunk;
use crate::layout::EntryState;

/// The walk over a chunk that looks at how its records lie ...
const WALKS_LOOK: usize = 2;
/// ... and the one after which all begins anew.
const WALKS_MOST: usize = 256;
/// Longest record that is moved beside its neighbours: of a longer one, the lines that no walk waits for are by far
/// the most.
pub(crate) const CLUSTERED_BYTES_MAX: usize = 4 << 10;

impl Chunk<'_> {
    /// Counts a walk over the whole chunk; true if it is time to move its records together.
    ///
    /// A record that lies apart costs a walk about as much as its move does, and its neighbours move with it. So it is
    /// time after two walks where all lie apart, and later where some do.
    #[inline]
    pub(crate) fn count_walk(&self) -> bool {
        // Relaxed: a hint. Where threads count at the same time, a walk gets lost.
        let known = self.head().walks.load(Ordering::Relaxed);
        let walks = known as u32 as usize + 1;
        let apart = match walks {
            WALKS_LOOK => self.records_apart(),
            _ => (known >> 32) as usize,
        };
        let next = if walks < WALKS_MOST { walks as u64 | (apart as u64) << 32 } else { 0 };
        self.head().walks.store(next, Ordering::Relaxed);
        apart > 0 && walks * apart >= WALKS_LOOK * self.sorted_len
    }

    /// Notes that the records lie together as well as can be: the next look at them is many walks away.
    pub(crate) fn note_clustered(&self) {
        self.head().walks.store(WALKS_LOOK as u64, Ordering::Relaxed);
    }

    /// Forgets how the records lay: some have moved away.
    pub(crate) fn forget_walks(&self) {
        self.head().walks.store(0, Ordering::Relaxed);
    }

    /// Records of the sorted part, among those that can be moved together, that do not lie behind the one before of
    /// their size, as a share of the sorted part; none if they are as few as the ends of spans.
    pub(crate) fn records_apart(&self) -> usize {
        /// Sizes in view at a time: as many as the numbers of their classes differ in their low bits.
        const SIZES: usize = 32;
        let mut before: [Option<SliceRef>; SIZES] = [None; SIZES];
        let (mut apart, mut pairs) = (0, 0);
        for word in self.sorted_words() {
            // Acquire: pairs with the CAS that published the record: its block is in the table.
            let EntryState::Record(slice) = EntryState::of(word.load(Ordering::Acquire)) else {
                continue;
            };
            if self.slice_bytes(slice) > CLUSTERED_BYTES_MAX {
                continue;
            }
            let before = before[slice.size_class() % SIZES].replace(slice);
            if let Some(before) = before.filter(|it| it.size_class() == slice.size_class()) {
                pairs += 1;
                apart += usize::from(!slice.follows(before));
            }
        }
        if apart * 8 > pairs { apart * self.sorted_len / pairs } else { 0 }
    }
}
