//! Runs: neighbours among the keys of a batch that lie where the map has no key between them.
//!
//! Events that come in the order of their times are such runs, mostly behind all other keys. One by one each
//! would go into the delta of a chunk, and be copied by the rebalances that follow; a run goes in by one
//! rebalance, which writes its records into the sorted parts of the new chunks.

use std::cmp::Ordering as KeyOrder;

use sapwood_mem::{Arena, SliceRef};

use crate::layout::record::bytes;
use crate::map::{ChunkMap, check_key, check_value};
use crate::node::chunk::{Chunk, Gathered};
use crate::node::record::Record;
use crate::tree::NotReplaced;
use crate::upkeep::rebalance::between_keys;

/// A run fills so many chunks at most: while they are written, threads that write into the chunk before them wait.
const RUN_CHUNKS_MAX: usize = 4;

/// Records that are not in the map yet; freed if they never get there.
struct FreshRun<'m> {
    arena: &'m Arena,
    slices: Vec<SliceRef>,
}

impl Drop for FreshRun<'_> {
    fn drop(&mut self) {
        for &slice in &self.slices {
            // SAFETY: never published.
            unsafe { self.arena.free(slice) };
        }
    }
}

impl ChunkMap {
    /// The least run that is put in as one: as many keys as make a chunk's delta full, which would cost a
    /// rebalance anyway.
    pub(crate) fn run_min(&self) -> usize {
        self.options.delta_entries()
    }

    /// Puts in the run that begins at the first entry, if there is one, and tells how many entries it has; else 0, and
    /// nothing has changed. Each entry is there from one moment on, at which all of them are. No journal hears of them.
    pub(crate) fn insert_run<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, entries: &[(K, V)]) -> usize {
        let (min, key) = (self.run_min(), |at: usize| entries[at].0.as_ref());
        if entries.len() < min || key(0) >= key(min - 1) {
            return 0;
        }
        let guard = self.tree.reclaimer.pin();
        let mut fresh = FreshRun { arena: &self.tree.arena, slices: Vec::new() };
        loop {
            let leaf = self.tree.leaf(&guard, key(0));
            let chunk = leaf.chunk;
            let len = self.run_len(&chunk, entries, fresh.slices.len());
            if len < min.max(fresh.slices.len()) {
                return 0;
            }
            for (key, value) in &entries[fresh.slices.len()..len] {
                let (key, value) = (key.as_ref(), value.as_ref());
                // Without memory for all of them, they go in one by one, as far as it lasts.
                let Ok(slice) = self.tree.arena.alloc(bytes(key.len(), value.len())) else {
                    return 0;
                };
                // SAFETY: a new slice of the right size, ours alone.
                unsafe { Record::write(self.tree.arena.ptr(slice), key, value) };
                fresh.slices.push(slice);
            }
            if !chunk.claim() {
                self.wait_for_successor(&guard, &chunk);
                continue;
            }
            self.count_rebalance();
            chunk.freeze();
            let run: Vec<Gathered> = fresh
                .slices
                .iter()
                .enumerate()
                .map(|(at, &slice)| Gathered { abbreviation: chunk.abbreviate(key(at)), slice })
                .collect();
            let Some((all, end)) = with_run(&chunk, &run) else {
                // Another thread was here since.
                chunk.thaw();
                return 0;
            };
            let cuts = self.cuts(&chunk, &all, end);
            let more = run.iter().enumerate().map(|(at, of)| (key(at), of.abbreviation));
            let shape = Some(chunk.shape_of_all(more));
            match self.replace_chunks(&guard, &[leaf], leaf.bounds(), &all, &cuts, shape) {
                Ok(()) => {}
                Err(NotReplaced::OutOfMemory(_)) => {
                    chunk.thaw();
                    return 0;
                }
                Err(NotReplaced::NotSiblings) => unreachable!("one chunk alone has no sibling"),
            }
            // They are in the map now.
            fresh.slices.clear();
            if chunk.ticket().is_some() {
                self.tree.forget_sums(&guard, key(0));
            }
            for (key, value) in &entries[..len] {
                self.counters.inserted(key.as_ref().len(), value.as_ref().len());
            }
            return len;
        }
    }

    /// How many of the first entries ascend, all below the next key of the map and in one chunk; those that it can take,
    /// at least so many if they are as many. Too few for a run may be told as 0.
    fn run_len<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        chunk: &Chunk<'_>,
        entries: &[(K, V)],
        at_least: usize,
    ) -> usize {
        let (first, reach) = (entries[0].0.as_ref(), entries[self.run_min() - 1].0.as_ref());
        let Some(next) = next_key(chunk, first, reach) else { return 0 };
        let most = (RUN_CHUNKS_MAX - 1) * self.options.chunk_entries;
        let most = most.max(at_least).min(entries.len());
        let fits = |at: usize| {
            let (key, value) = (entries[at].0.as_ref(), entries[at].1.as_ref());
            let ascends = at == 0 || entries[at - 1].0.as_ref() < key;
            let is_below = next.is_none_or(|next| key < next);
            ascends && is_below && check_key(key).is_ok() && check_value(value.len()).is_ok()
        };
        (0..most).find(|&at| !fits(at)).unwrap_or(most)
    }

    /// Where to cut the entries of a chunk with a run that ends at `end`: the chunks before the end of the run are full,
    /// for what comes next comes behind it, mostly.
    fn cuts(&self, chunk: &Chunk<'_>, all: &[Gathered], end: usize) -> Vec<usize> {
        let limit = self.options.chunk_entries;
        let mut cuts = Vec::with_capacity(RUN_CHUNKS_MAX);
        let mut begin = 0;
        while all.len() - begin > limit {
            // What lies behind the run stays together, where it has room.
            let is_last = begin < end && end - begin < limit && all.len() - end <= limit;
            let wanted = if is_last { end } else { begin + limit };
            let Some(cut) = between_keys(chunk, all, wanted) else { break };
            cuts.push(cut);
            begin = cut;
        }
        cuts
    }
}

/// The next key of a chunk from `key` on, or its upper bound; none if it is not above `reach`.
fn next_key<'g>(chunk: &Chunk<'g>, key: &[u8], reach: &[u8]) -> Option<Option<&'g [u8]>> {
    let mut next = chunk.high();
    if next.is_some_and(|high| high <= reach) {
        return None;
    }
    let from = chunk.sorted_bound(key, chunk.abbreviate(key), KeyOrder::Equal);
    // Behind entries that were removed comes the next one.
    let sorted = (from..chunk.sorted_len()).find_map(|at| chunk.sorted_key(at));
    // Last, for a look at one of these is a look at its record.
    let delta = chunk.delta_entries().map(|(_, entry)| chunk.record(entry.slice).key());
    for known in sorted.into_iter().chain(delta).filter(|known| *known >= key) {
        if known <= reach {
            return None;
        }
        if next.is_none_or(|next| known < next) {
            next = Some(known);
        }
    }
    Some(next)
}

/// The entries of a frozen chunk with a run among them, and where it ends; none if an entry lies within it.
fn with_run(chunk: &Chunk<'_>, run: &[Gathered]) -> Option<(Vec<Gathered>, usize)> {
    let mut all = chunk.gather();
    let (first, last) = (run.first()?, run.last()?);
    let at = all.partition_point(|entry| chunk.compare(entry, first).is_lt());
    if all.get(at).is_some_and(|entry| chunk.compare(entry, last).is_le()) {
        return None;
    }
    all.splice(at..at, run.iter().copied());
    Some((all, at + run.len()))
}
