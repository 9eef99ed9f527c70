//! Compaction in memory: sparse blocks are emptied and go back to the system.
//!
//! A removed record leaves a hole that only records of its size can have. After
//! many removals in no order every block of the arena still holds a few records,
//! and none can go back. A *pass* empties the blocks that hold the least: the
//! arena puts nothing new into them, and the pass walks over the chunks in key
//! order and moves what lies there into the holes of the other blocks. A record
//! moves as an update by copy does (`supersede`): readers inside keep the old
//! bytes, and the entry's word is the only thing that changes. Chunks and inner
//! nodes that lie there are built anew, and small chunks join.
//!
//! The map has no thread of its own. Passes are made
//! - by [`ChunkMap::trim`], as many as pay;
//! - by the operations themselves: when more than half of the memory is idle, the
//!   operations that hand retired records to the epochs each take a step of a few
//!   chunks. A pass begins anew only after a quarter of the data went or a quarter
//!   of memory came, so that a moved byte is paid for by removed ones.
//!
//! *Thread safety*: one thread steps at a time, under a lock that no operation
//! waits for; only `trim` does. Under it no user code runs, and no record is
//! waited for: one that a writer has stays where it is.

use sapwood_mem::reclaim::{Guard, Kind, Left};
use sapwood_mem::sync::Ordering;
use sapwood_mem::{OutOfMemory, SliceRef};

use crate::layout::{EntryState, record};
use crate::map::ChunkMap;
use crate::map::compaction::{Progress, State, Usage};
use crate::node::chunk::{Chunk, Hit, RECORD_LINES};
use crate::node::record::Record;
use crate::node::reentrancy::holds_any;

/// Entries that one step looks at, up to a chunk: two chunks of the default size ...
const STEP_ENTRIES: usize = 1024;
/// ... where the search for a chunk counts as so many ...
const CHUNK_ENTRIES: usize = 16;
/// ... and bytes that it moves, up to a record.
const STEP_BYTES: u64 = 256 << 10;
/// Passes that `trim` makes at most: each leaves less to gain for the next.
const TRIM_PASSES: usize = 8;
/// Room for a few nodes of the default size.
const ROOM_BYTES: usize = 64 << 10;
/// Records to ask for ahead of the one that is moved.
const AHEAD: usize = 8;
/// Times that a flush is repeated for readers that are about to leave.
const FLUSHES: usize = 4;

impl ChunkMap {
    /// Moves what is left of removed neighbours together, and gives the memory
    /// that becomes free back to the system; returns how many bytes.
    ///
    /// By itself a map gives memory back once more than half of it is idle, and
    /// never the last two blocks: see `docs/design/chunkmap.md`. This goes to the
    /// end: afterwards the map takes about what a fresh load of its entries takes.
    /// Call it after many removals, or before a long rest.
    ///
    /// Other threads go on meanwhile. The map is walked chunk by chunk, once or a
    /// few times, and what lies in sparse blocks is copied; within a budget that is
    /// used up, only as far as there is room. A record that a closure reads, or an
    /// [`Entry`](crate::Entry) holds, stays until its reader leaves, of this thread as of
    /// others; a [`Range`](crate::Range) holds nothing back.
    ///
    /// ```
    /// # use sapwood_chunkmap::ChunkMap;
    /// let map = ChunkMap::new();
    /// for key in 0..10_000_u32 {
    ///     map.put(&key.to_be_bytes(), &[7; 1_000])?;
    /// }
    /// for key in (0..10_000_u32).filter(|key| key % 10 != 0) {
    ///     map.remove(&key.to_be_bytes())?;
    /// }
    /// map.trim();
    /// assert!(map.stats().reserved_bytes < 2_000_000);
    /// # Ok::<(), sapwood_chunkmap::Error>(())
    /// ```
    pub fn trim(&self) -> u64 {
        let before = self.usage().reserved_bytes;
        self.tree.reclaimer.flush();
        self.tree.arena.end_rows();
        self.tree.arena.trim();
        for made in 0..TRIM_PASSES {
            let (pass, reserved_bytes) = {
                let mut state = self.compaction.lock();
                let usage = self.usage();
                let pays = self.begin(&mut state, usage);
                if !pays && made > 0 {
                    break;
                }
                // The first pass joins small chunks even if it empties no block.
                state.cursor.get_or_insert_default();
                (state.passes, usage.reserved_bytes)
            };
            self.go_on(pass);
            self.tree.arena.trim();
            let usage = self.usage();
            if usage.reserved_bytes + gain_bytes(reserved_bytes) > reserved_bytes {
                self.compaction.lock().trimmed = Some(usage);
            }
        }
        before.saturating_sub(self.usage().reserved_bytes)
    }

    /// Takes a step if one has fallen due. Called at the end of operations, unpinned.
    #[inline]
    pub(crate) fn compact_if_due(&self) {
        if self.compaction.is_due() {
            self.take_step();
        }
    }

    /// Looks anew, whatever was found before. Called when the map was emptied, unpinned.
    pub(crate) fn compact_now(&self) {
        if let Ok(mut state) = self.compaction.state.try_lock() {
            state.settled = None;
        }
        self.take_step();
    }

    /// Retires a record that was removed or superseded.
    ///
    /// # Safety
    /// As of [`Reclaimer::retire`](sapwood_mem::reclaim::Reclaimer::retire).
    pub(crate) unsafe fn retire(&self, slice: SliceRef) {
        // SAFETY: the caller's.
        let handed_bytes = unsafe { self.tree.reclaimer.retire(slice, Kind::Counted) };
        if handed_bytes > 0 {
            let before = self.compaction.handed_bytes.fetch_add(handed_bytes, Ordering::Relaxed);
            if before + handed_bytes >= self.compaction.look_at_bytes.load(Ordering::Relaxed) {
                self.compaction.set_due();
            }
        }
    }

    #[cold]
    fn take_step(&self) {
        // Inside a closure that changes a value: when its operation ends.
        if holds_any() {
            return;
        }
        self.compaction.set_done();
        let Ok(mut state) = self.compaction.state.try_lock() else { return };
        if state.cursor.is_none() && !self.look(&mut state) {
            return;
        }
        if self.step(&mut state) == Progress::Done {
            self.finish(&mut state);
        }
        // What the step itself retired is no reason for another one.
        self.compaction.set_done();
    }

    /// Begins a pass if memory is mostly idle.
    fn look(&self, state: &mut State) -> bool {
        let usage = self.usage();
        self.compaction.handed_bytes.store(0, Ordering::Relaxed);
        let look_at_bytes = (usage.reserved_bytes / 64).max(16 << 10);
        self.compaction.look_at_bytes.store(look_at_bytes, Ordering::Relaxed);
        let block_bytes = self.options.block_bytes;
        let moved_on = state.settled.is_none_or(|settled| usage.has_moved_on(&settled));
        if !moved_on || !usage.is_sparse(block_bytes) {
            return false;
        }
        self.flush_what_is_left();
        let usage = self.usage();
        if !usage.is_sparse(block_bytes) {
            return false;
        }
        state.settled = Some(usage);
        let begun = self.tree.arena.begin_drain(usage.reserved_bytes / 8);
        if begun {
            state.cursor = Some(Vec::new());
            // From now on each bag makes a step due.
            self.compaction.look_at_bytes.store(0, Ordering::Relaxed);
        }
        begun
    }

    /// The last slices that were retired keep a block each.
    pub(crate) fn flush_what_is_left(&self) {
        for _ in 0..FLUSHES {
            if self.tree.reclaimer.flush() == Left::Read {
                return;
            }
            sapwood_mem::sync::yield_now();
        }
    }

    /// Begins a pass of `trim`, or goes on with one; false if it would not pay.
    fn begin(&self, state: &mut State, usage: Usage) -> bool {
        if std::mem::take(&mut state.is_of_spans) {
            // It would give no block back.
            state.cursor = None;
            state.passes += 1;
            self.tree.arena.end_drain();
        }
        let in_vain = state.trimmed.is_some_and(|trimmed| usage.is_close_to(&trimmed));
        let gain_bytes = gain_bytes(usage.reserved_bytes);
        if state.cursor.is_none() && !in_vain && self.tree.arena.begin_drain(gain_bytes) {
            state.cursor = Some(Vec::new());
        }
        state.cursor.is_some()
    }

    /// Makes what is left of the pass of this number, as other threads do.
    fn go_on(&self, pass: u64) {
        loop {
            let mut state = self.compaction.lock();
            if state.passes != pass {
                return;
            }
            if self.step(&mut state) == Progress::Done {
                self.finish(&mut state);
            }
        }
    }

    pub(crate) fn finish(&self, state: &mut State) {
        state.cursor = None;
        state.passes += 1;
        self.flush_what_is_left();
        self.tree.arena.end_drain();
        let usage = self.usage();
        state.hole_bytes = Some(usage.hole_bytes());
        if std::mem::take(&mut state.is_of_spans) {
            return;
        }
        state.first_hole_bytes = None;
        state.settled = Some(usage);
        let look_at_bytes = (usage.reserved_bytes / 64).max(16 << 10);
        self.compaction.look_at_bytes.store(look_at_bytes, Ordering::Relaxed);
    }

    pub(crate) fn usage(&self) -> Usage {
        let arena = self.tree.arena.stats();
        let retired_bytes = self.tree.reclaimer.retired_bytes();
        Usage {
            reserved_bytes: arena.reserved_bytes,
            live_bytes: arena.live_bytes.saturating_sub(retired_bytes),
            extent_bytes: arena.extent_bytes,
        }
    }

    /// Visits a few chunks of the pass under way.
    pub(crate) fn step(&self, state: &mut State) -> Progress {
        let (mut left_bytes, mut seen) = (STEP_BYTES, 0);
        while seen < STEP_ENTRIES {
            let Some(from) = state.cursor.take() else { return Progress::Done };
            let guard = self.tree.reclaimer.pin();
            let chunk = self.tree.leaf(&guard, &from).chunk;
            let before_bytes = left_bytes;
            let drained = |slice| self.tree.arena.is_drained(slice);
            let elsewhere = |bytes| self.tree.arena.alloc_elsewhere(bytes);
            let moved = self.move_records(&guard, &chunk, drained, elsewhere, &mut left_bytes);
            if left_bytes < before_bytes {
                chunk.forget_walks();
            }
            // Out of memory: the rest stays where it is.
            if moved.is_err() {
                return Progress::Done;
            }
            if left_bytes == 0 {
                // The chunk may hold more.
                state.cursor = Some(from);
                return Progress::More;
            }
            self.put_in_order(&guard, &from);
            seen += chunk.sorted_len() + chunk.delta_cap() + CHUNK_ENTRIES;
            state.cursor = chunk.high().map(<[u8]>::to_vec);
        }
        if state.cursor.is_none() { Progress::Done } else { Progress::More }
    }

    /// Builds the chunk that covers `key` anew, as the nodes above it, if it lies in
    /// a drained block, has many tombstones or fits into a neighbour.
    ///
    /// Only where memory is to be had: a chunk that found none would end the drain.
    fn put_in_order(&self, guard: &Guard, key: &[u8]) {
        let arena = &self.tree.arena;
        if arena.room_bytes() < ROOM_BYTES {
            return;
        }
        self.tree.renew_inner(guard, key, |slice| arena.is_drained(slice));
        let leaf = self.tree.leaf(guard, key);
        let words = leaf.chunk.sorted_words().chain(leaf.chunk.delta_words());
        let (mut live, mut tombstones) = (0, 0);
        for word in words {
            // Acquire: pairs with the CAS that published the record.
            match EntryState::of(word.load(Ordering::Acquire)) {
                EntryState::Record(_) => live += 1,
                EntryState::Tombstone => tombstones += 1,
                EntryState::Empty => {}
            }
        }
        let wasteful = tombstones > (live / 4).max(8);
        if arena.is_drained(leaf.slice) || wasteful || self.fits_beside(guard, leaf, live) {
            // Without memory it stays as it is.
            let _ = self.rebalance(guard, leaf);
        }
    }

    /// Moves the records of a chunk that `wanted` picks into slices that `alloc` gives, at most `left_bytes`
    /// and one more, which are counted down. Those in the hands of a writer stay.
    pub(crate) fn move_records(
        &self,
        guard: &Guard,
        chunk: &Chunk<'_>,
        wanted: impl Fn(SliceRef) -> bool,
        alloc: impl Fn(usize) -> Result<SliceRef, OutOfMemory>,
        left_bytes: &mut u64,
    ) -> Result<(), OutOfMemory> {
        // Acquire: pairs with the CAS that published the record.
        let hits: Vec<Hit<'_>> = chunk
            .sorted_words()
            .chain(chunk.delta_words())
            .filter_map(|word| match EntryState::of(word.load(Ordering::Acquire)) {
                EntryState::Record(slice) if wanted(slice) => {
                    Some(Hit { chunk: *chunk, word, slice, record: chunk.record(slice) })
                }
                _ => None,
            })
            .collect();
        for (at, hit) in hits.iter().enumerate() {
            if *left_bytes == 0 {
                break;
            }
            if let Some(ahead) = hits.get(at + AHEAD) {
                chunk.prefetch_record(ahead.slice, RECORD_LINES);
            }
            let moved_bytes = self.move_record(guard, *hit, &alloc)?;
            *left_bytes = left_bytes.saturating_sub(moved_bytes);
        }
        Ok(())
    }

    /// Moves a record to another slice; returns its bytes, zero if it stays.
    fn move_record(
        &self,
        guard: &Guard,
        hit: Hit<'_>,
        alloc: impl Fn(usize) -> Result<SliceRef, OutOfMemory>,
    ) -> Result<u64, OutOfMemory> {
        let Some(lock) = hit.record.try_move() else { return Ok(0) };
        let (key, value) = (lock.key(), lock.value());
        let bytes = record::bytes(key.len(), value.len());
        let slice = alloc(bytes)?;
        // SAFETY: a new slice of the right size, ours alone.
        unsafe { Record::write(self.tree.arena.ptr(slice), key, value) };
        self.bury_behind(guard, hit, lock, slice);
        // SAFETY: I-OWNER: no current chunk names the record any more.
        unsafe { self.tree.reclaimer.retire(hit.slice, Kind::Counted) };
        self.compaction.moved_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes as u64)
    }
}

/// The bytes that a pass of `trim` has to give back: a thirty-second.
fn gain_bytes(reserved_bytes: u64) -> u64 {
    (reserved_bytes / 32).max(1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::Error;
    use crate::node::chunk::{Find, Wanted};
    use crate::node::record::Entered;

    fn hit<'g>(map: &'g ChunkMap, guard: &'g Guard, key: &[u8]) -> Hit<'g> {
        let chunk = map.tree.leaf(guard, key).chunk;
        match chunk.find(key, Wanted::Record) {
            Find::Hit(entry) => entry.of(chunk),
            Find::Miss(_) => panic!("the key is there"),
        }
    }

    /// Moves every record of the map.
    fn move_all(map: &ChunkMap) {
        let mut from = Some(Vec::new());
        while let Some(key) = from {
            let guard = map.tree.reclaimer.pin();
            let chunk = map.tree.leaf(&guard, &key).chunk;
            let elsewhere = |bytes| map.tree.arena.alloc_elsewhere(bytes);
            let all = &mut { u64::MAX };
            map.move_records(&guard, &chunk, |_| true, elsewhere, all).expect("memory");
            from = chunk.high().map(<[u8]>::to_vec);
        }
    }

    /// A mover waits for no thread, so a closure may wait for it: no user code has the key.
    #[test]
    fn a_write_inside_a_closure_waits_for_a_mover_and_not_for_a_writer() {
        let map = ChunkMap::new();
        map.put(b"own", b"1").expect("memory");
        map.put(b"other", b"1").expect("memory");
        let write_inside = |told: mpsc::Sender<()>| {
            let answer = map.update(b"own", |_| {
                told.send(()).expect("the test waits");
                map.put(b"other", b"2")
            });
            answer.expect("memory").expect("it is there")
        };
        for mover in [true, false] {
            let guard = map.tree.reclaimer.pin();
            let record = hit(&map, &guard, b"other").record;
            let lock = match mover {
                true => record.try_move().expect("no other thread writes"),
                false => match record.try_write_shared().expect("no closure of this thread") {
                    Entered::Inside(lock) => lock,
                    Entered::Dead | Entered::Busy => panic!("it is alive, and no thread writes it"),
                },
            };
            std::thread::scope(|scope| {
                let (told, inside) = mpsc::channel();
                let answer = scope.spawn(|| write_inside(told));
                inside.recv().expect("the closure begins");
                if mover {
                    // Without the wait the answer would be there long before.
                    std::thread::sleep(Duration::from_millis(50));
                    drop(lock);
                    assert_eq!(answer.join().expect("no panic"), Ok(true));
                } else {
                    let refused = Err(Error::WouldBlock);
                    assert_eq!(answer.join().expect("no panic"), refused);
                    drop(lock);
                }
            });
        }
    }

    #[test]
    fn records_that_move_keep_their_readers_and_values() {
        for chunk_entries in [2, 512] {
            let options = crate::Options { chunk_entries, ..crate::Options::default() };
            let map = ChunkMap::with_options(options).expect("memory");
            for key in 0..300_u32 {
                map.put(&key.to_be_bytes(), &vec![key as u8; key as usize]).expect("memory");
            }
            let entry = map.first().expect("no closure").expect("it is there");
            let key = 200_u32.to_be_bytes();
            map.get_with(&key, |value| {
                move_all(&map);
                // A record that a writer has stays, and its change is not lost.
                map.update(&7_u32.to_be_bytes(), |value| {
                    value.fill(1);
                    move_all(&map);
                    value[6] = 2;
                })
                .expect("memory");
                assert_eq!(value, [200; 200]);
            })
            .expect("it is there");
            assert_eq!(entry.value(), b"");
            drop(entry);
            move_all(&map);
            let moved = map.stats().moved_bytes;
            assert!(moved > 3 * 300 * 150, "{moved} bytes moved");
            assert_eq!(map.get(&7_u32.to_be_bytes()), Ok(Some(vec![1, 1, 1, 1, 1, 1, 2])));
            for key in (0..300_u32).filter(|key| *key != 7) {
                let value = vec![key as u8; key as usize];
                assert_eq!(map.get(&key.to_be_bytes()), Ok(Some(value)));
            }
            map.check().expect("every invariant holds");
        }
    }
}
