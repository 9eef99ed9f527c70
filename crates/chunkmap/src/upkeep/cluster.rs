//! Clustering: the records of neighbouring keys are moved together.
//!
//! Records lie in the order of their arrival, so that a walk in key order waits for
//! memory at each of them. Once a chunk has been walked over twice, and its records
//! lie apart, the thread that walks moves them into slices in a row ([mem](sapwood_mem::Arena::alloc_in_row)):
//! the delta is merged first, then each record moves as in a pass of `compact`. What
//! was walked over once stays as it is, and so do chunks that no thread walks over.
//!
//! *Memory*: the slices that were left are holes here and there, which only records
//! of their size can have. So that the map does not grow by what it moves, it moves on
//! when these are no more than a thirtieth of it. Else a pass empties the sparsest spans
//! first, by steps that the walks take, and blocks that are free go back to the system
//! where they are more than a sixtieth. Scans leave a map as it is that has used up two
//! thirds of its budget.
//!
//! *Thread safety*: under the lock of `compact`, which a walk does not wait for.

use sapwood_mem::OutOfMemory;
use sapwood_mem::reclaim::Guard;

use crate::map::ChunkMap;
use crate::map::compaction::{Progress, State, Usage};
use crate::node::chunk::{CLUSTERED_BYTES_MAX, Chunk};
use crate::node::reentrancy::holds_any;

/// Steps of a pass that a walk takes in place of moving a chunk: a pass ends soon, and no walk waits for all of it.
const PASS_STEPS: usize = 4;
/// Times that `compact` goes over a map at most: each leaves less to move for the next.
const SWEEPS: usize = 4;
/// The share of live bytes that moves may leave as holes before a pass fills them.
const HOLES_SHARE: u64 = 40;
/// The share that they may leave at the very most, where passes do not fill them.
const HOLES_SHARE_MOST: u64 = 16;
/// The share of live bytes that has to be left of a budget before scans move records.
const BUDGET_SHARE: u64 = 2;

/// What became of a chunk.
enum Clustered {
    /// Its records lie together; the key where the next chunk begins.
    Done(Option<Vec<u8>>),
    /// A pass made room first.
    NotYet,
    /// Too little memory is left under the budget.
    NoRoom,
}

/// What became of a map.
enum Swept {
    /// Its records lie together.
    Whole,
    /// A pass has scattered some of it again on the way.
    Anew,
    /// There were too many holes, or too little memory under the budget.
    NoRoom,
}

impl ChunkMap {
    /// Moves the records of neighbouring keys together, all over the map, so that scans find them one behind the
    /// other.
    ///
    /// By itself a map does so where it is scanned: the second scan over a chunk of scattered records moves them. This
    /// goes over the whole map at once, after a load in no order, say, and merges what was inserted since the last
    /// rebalance of each chunk. Afterwards the map takes about as much memory as before, and on the way a twentieth
    /// more; after removals, [`trim`](Self::trim) first.
    ///
    /// Other threads go on meanwhile. A record that a writer has at that moment stays where it is, as do records of more
    /// than 4 KiB; within a budget that is used up, all do.
    ///
    /// ```
    /// # use sapwood_chunkmap::ChunkMap;
    /// let map = ChunkMap::new();
    /// for key in 0..10_000_u32 {
    ///     map.put(&key.reverse_bits().to_be_bytes(), b"in no order")?;
    /// }
    /// map.compact();
    /// # Ok::<(), sapwood_chunkmap::Error>(())
    /// ```
    pub fn compact(&self) {
        for sweep in 1..=SWEEPS {
            match self.sweep() {
                Swept::Whole => break,
                Swept::Anew => {}
                Swept::NoRoom if sweep < SWEEPS && self.fill_holes() => {}
                Swept::NoRoom => break,
            }
        }
        self.flush_what_is_left();
        self.tree.arena.end_rows();
        self.tree.arena.trim();
    }

    /// Goes over the map once.
    fn sweep(&self) -> Swept {
        let (mut from, mut swept) = (Some(Vec::new()), Swept::Whole);
        while let Some(key) = from.take() {
            let mut state = self.compaction.lock();
            match self.cluster(&mut state, &key) {
                Clustered::Done(next) => from = next,
                Clustered::NotYet => {
                    swept = Swept::Anew;
                    from = Some(key);
                }
                Clustered::NoRoom => return Swept::NoRoom,
            }
        }
        swept
    }

    /// Ends rows, and fills holes by a pass; false if that has gained nothing.
    fn fill_holes(&self) -> bool {
        let mut state = self.compaction.lock();
        self.flush_what_is_left();
        self.tree.arena.end_rows();
        let before = self.usage();
        if state.cursor.is_none() {
            if !self.tree.arena.begin_drain_spans(self.hole_bytes_most(&before) / 2) {
                return false;
            }
            (state.cursor, state.is_of_spans) = (Some(Vec::new()), true);
        }
        while !matches!(self.step(&mut state), Progress::Done) {}
        self.finish(&mut state);
        self.usage().hole_bytes() < before.hole_bytes()
    }

    /// Counts a walk over the whole chunk, which the guard protects, and moves its records together when it is time.
    /// The guard lets go meanwhile.
    #[inline]
    pub(crate) fn cluster_if_due(&self, guard: &Guard, chunk: &Chunk<'_>) {
        // Not inside of a closure that changes a value: its time is the caller's.
        if !holds_any() && chunk.count_walk() {
            let low = chunk.low().unwrap_or_default().to_vec();
            guard.outside(|| self.cluster_beside_others(&low));
        }
    }

    #[cold]
    fn cluster_beside_others(&self, low: &[u8]) {
        let Ok(mut state) = self.compaction.state.try_lock() else { return };
        // What is left of a budget is for entries, and holes take those of one size alone.
        let left_bytes = self.tree.arena.room_bytes() as u64;
        let is_left =
            state.cursor.is_some() || left_bytes >= self.usage().live_bytes / BUDGET_SHARE;
        if !is_left || matches!(self.cluster(&mut state, low), Clustered::NoRoom) {
            // Not at each walk, in vain.
            let guard = self.tree.reclaimer.pin();
            self.tree.leaf(&guard, low).chunk.note_clustered();
        }
        // What was retired here is no reason for a step of a pass.
        self.compaction.set_done();
    }

    /// Moves the records of the chunk that begins with `low` together, or takes steps of a pass that makes room.
    fn cluster(&self, state: &mut State, low: &[u8]) -> Clustered {
        let arena = &self.tree.arena;
        if state.cursor.is_none() {
            let mut usage = self.usage();
            if !self.has_room(state, &usage) {
                return Clustered::NoRoom;
            }
            if !self.may_leave_holes(state, &usage) {
                self.flush_what_is_left();
                usage = self.usage();
            }
            if !self.may_leave_holes(state, &usage) {
                if arena.begin_drain_spans(self.hole_bytes_most(&usage) / 2) {
                    (state.cursor, state.is_of_spans) = (Some(Vec::new()), true);
                } else {
                    // They are there for other reasons, and no pass would fill them.
                    state.hole_bytes = Some(usage.hole_bytes());
                }
            }
            if state.cursor.is_none() {
                let moved = self.move_together(low);
                arena.trim_to(self.hole_bytes_most(&usage) / 2);
                return moved.map_or(Clustered::NoRoom, Clustered::Done);
            }
        }
        for _ in 0..PASS_STEPS {
            if self.step(state) == Progress::Done {
                self.finish(state);
                break;
            }
        }
        Clustered::NotYet
    }

    /// Whether there is memory for a chunk, and moves have left holes in moderation, whatever passes could do about it:
    /// of many sizes each has some.
    fn has_room(&self, state: &mut State, usage: &Usage) -> bool {
        let more_bytes = beyond_least(&mut state.first_hole_bytes, usage.hole_bytes());
        let blocks_bytes = 2 * self.options.block_bytes as u64;
        self.tree.arena.room_bytes() as u64 > self.hole_bytes_most(usage)
            && more_bytes <= usage.live_bytes / HOLES_SHARE_MOST + blocks_bytes
    }

    /// Bytes of holes that moves may leave before a pass fills them.
    fn hole_bytes_most(&self, usage: &Usage) -> u64 {
        // Beside the chunk in hand, which a few blocks hold.
        let blocks_bytes = (2 * self.options.block_bytes as u64).min(usage.live_bytes / 128);
        usage.live_bytes / HOLES_SHARE + blocks_bytes
    }

    /// Whether holes have become few since the last pass.
    fn may_leave_holes(&self, state: &mut State, usage: &Usage) -> bool {
        let more_bytes = beyond_least(&mut state.hole_bytes, usage.hole_bytes());
        more_bytes <= self.hole_bytes_most(usage)
    }

    /// Moves the records of the chunk that begins with `low` together; answers where the next one begins.
    fn move_together(&self, low: &[u8]) -> Result<Option<Vec<u8>>, OutOfMemory> {
        let guard = self.tree.reclaimer.pin();
        let leaf = self.tree.leaf(&guard, low);
        let end = leaf.chunk.high().map(<[u8]>::to_vec);
        if leaf.chunk.delta_len() > 0 {
            // Without memory its delta stays apart.
            let _ = self.rebalance(&guard, leaf);
        }
        let mut from = low.to_vec();
        // The rebalance has made two of it at most; what comes behind is for the next call.
        for _ in 0..2 {
            let chunk = self.tree.leaf(&guard, &from).chunk;
            if chunk.records_apart() > 0 {
                let arena = &self.tree.arena;
                let wanted = |slice| arena.capacity(slice) <= CLUSTERED_BYTES_MAX;
                let in_row = |bytes| arena.alloc_in_row(bytes);
                self.move_records(&guard, &chunk, wanted, in_row, &mut { u64::MAX })?;
            }
            chunk.note_clustered();
            match chunk.high().map(<[u8]>::to_vec) {
                Some(next) if end.as_ref().is_none_or(|end| next < *end) => from = next,
                next => return Ok(next),
            }
        }
        Ok(Some(from))
    }
}

/// How much more this is than the least that was seen, which it may be itself.
fn beyond_least(least: &mut Option<u64>, now: u64) -> u64 {
    let known = least.map_or(now, |least| least.min(now));
    *least = Some(known);
    now - known
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Options;

    /// A map of which two fifths have gone, here and there.
    fn sparse() -> ChunkMap {
        let options = Options { chunk_entries: 64, block_bytes: 64 << 10, ..Options::default() };
        let map = ChunkMap::with_options(options).expect("memory");
        let key = |at: u32| at.wrapping_mul(0x9E37_79B9).to_be_bytes();
        (0..40_000).for_each(|at| assert_eq!(map.put(&key(at), &[at as u8; 100]), Ok(false)));
        for at in (0..40_000).filter(|at| at % 5 < 2) {
            assert_eq!(map.remove(&key(at)), Ok(true));
        }
        map
    }

    /// Scans may have left a pass half done: it gives no block back, and `trim` does not take it for its own.
    #[test]
    fn trim_ends_what_scans_have_begun() {
        let (alone, map) = (sparse(), sparse());
        alone.trim();
        {
            let mut state = map.compaction.lock();
            assert!(map.tree.arena.begin_drain_spans(1), "holes are everywhere");
            (state.cursor, state.is_of_spans) = (Some(vec![u8::MAX; 8]), true);
        }
        assert!(map.trim() > 0);
        let (trimmed, wanted) = (map.reserved_bytes(), alone.reserved_bytes());
        assert!(trimmed <= wanted + wanted / 16, "{trimmed} bytes, {wanted} without the scans");
        assert!(!map.compaction.lock().is_of_spans);
        map.check().expect("every invariant holds");
    }
}
