//! Rebalances: a full chunk, or one full of tombstones, becomes new chunks.
//!
//! ```text
//!  1 claim ─► 2 freeze every word ─► 3 gather, merge the delta in ─► 4 build
//!                                                       5 replace in the tree
//! ```
//! One thread does it; writers that meet a frozen word wait for step 5, readers
//! never do. Between 2 and 5 no user code runs and no record is waited for. If
//! memory runs out, the words thaw and nothing has changed.

use std::cmp::Ordering as KeyOrder;
use std::ops::Range;

use sapwood_mem::OutOfMemory;
use sapwood_mem::reclaim::Guard;
use sapwood_mem::sync::{Backoff, Ordering};

use crate::error::{Error, Result};
use crate::map::ChunkMap;
use crate::node::abbreviation::separator;
use crate::node::build::{ChunkPlan, write_chunk};
use crate::node::chunk::{Chunk, Gathered};
use crate::node::inner::Child;
use crate::node::shape::{self, Shape};
use crate::tree::{Leaf, NotReplaced};

impl ChunkMap {
    /// Replaces the chunk by one or two that have room, or waits for the thread
    /// that is doing so.
    pub(crate) fn rebalance(&self, guard: &Guard, leaf: Leaf<'_>) -> Result<()> {
        let chunk = leaf.chunk;
        if !chunk.claim() {
            self.wait_for_successor(guard, &chunk);
            return Ok(());
        }
        self.count_rebalance();
        chunk.freeze();
        let entries = chunk.gather();
        match self.merge_with_neighbour(guard, leaf, &entries) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(refused) => {
                chunk.thaw();
                return Err(refused.into());
            }
        }
        let split = self.split_point(&chunk, &entries);
        let (bounds, shape) = (leaf.bounds(), Some(chunk.shape_of_all(std::iter::empty())));
        let replaced =
            self.replace_chunks(guard, &[leaf], bounds, &entries, split.as_slice(), shape);
        replaced.map_err(|refused| {
            chunk.thaw();
            match refused {
                NotReplaced::OutOfMemory(refused) => Error::from(refused),
                NotReplaced::NotSiblings => unreachable!("one chunk alone has no sibling"),
            }
        })
    }

    /// Joins a small frozen chunk with a neighbour; false if none can be had.
    fn merge_with_neighbour(
        &self,
        guard: &Guard,
        leaf: Leaf<'_>,
        entries: &[Gathered],
    ) -> std::result::Result<bool, OutOfMemory> {
        if entries.len() > self.options.chunk_entries / 4 {
            return Ok(false);
        }
        let low = leaf.chunk.low().unwrap_or_default();
        // A neighbour below another parent becomes a sibling when the parents join.
        for (side, join_parents) in
            [(HalfSide::Right, false), (HalfSide::Left, false), (HalfSide::Right, true)]
        {
            if join_parents {
                self.tree.merge_inner(guard, low);
            }
            let Some(neighbour) = self.claim_neighbour(guard, &leaf.chunk, side, entries.len())
            else {
                continue;
            };
            neighbour.chunk.freeze();
            let theirs = neighbour.chunk.gather();
            let shape = shape_of_either((&leaf.chunk, entries), (&neighbour.chunk, &theirs));
            let (old, joined) = match side {
                HalfSide::Right => ([leaf, neighbour], [entries, &theirs].concat()),
                HalfSide::Left => ([neighbour, leaf], [&theirs, entries].concat()),
            };
            let bounds = Bounds { low: old[0].chunk.low(), high: old[1].chunk.high() };
            let middle = self.middle(&leaf.chunk, &joined);
            match self.replace_chunks(guard, &old, bounds, &joined, middle.as_slice(), shape) {
                Ok(()) => {
                    self.tree.merge_inner(guard, low);
                    return Ok(true);
                }
                Err(NotReplaced::NotSiblings) => neighbour.chunk.thaw(),
                Err(NotReplaced::OutOfMemory(refused)) => {
                    neighbour.chunk.thaw();
                    return Err(refused);
                }
            }
        }
        Ok(false)
    }

    /// Whether a chunk of so many entries would join a neighbour.
    pub(crate) fn fits_beside(&self, guard: &Guard, leaf: Leaf<'_>, entry_count: usize) -> bool {
        let chunk = &leaf.chunk;
        entry_count <= self.options.chunk_entries / 4
            && [HalfSide::Right, HalfSide::Left].into_iter().any(|side| {
                self.neighbour(guard, chunk, side)
                    .is_some_and(|neighbour| self.fits(entry_count, &neighbour.chunk))
            })
    }

    /// A neighbour, claimed, if the two fit into one chunk. An empty chunk fits to any.
    fn claim_neighbour<'g>(
        &'g self,
        guard: &'g Guard,
        chunk: &Chunk<'g>,
        side: HalfSide,
        entry_count: usize,
    ) -> Option<Leaf<'g>> {
        let neighbour = self.neighbour(guard, chunk, side)?;
        (self.fits(entry_count, &neighbour.chunk) && neighbour.chunk.claim()).then_some(neighbour)
    }

    fn neighbour<'g>(
        &'g self,
        guard: &'g Guard,
        chunk: &Chunk<'g>,
        side: HalfSide,
    ) -> Option<Leaf<'g>> {
        Some(match side {
            HalfSide::Right => self.tree.leaf(guard, chunk.high()?),
            HalfSide::Left => self.tree.leaf_below(guard, chunk.low()?),
        })
    }

    fn fits(&self, entry_count: usize, neighbour: &Chunk<'_>) -> bool {
        entry_count == 0 || entry_count + neighbour.sorted_len() <= self.options.chunk_entries
    }

    /// Builds chunks of `entries`, which meet at `cuts`, and puts them in the place of frozen ones.
    pub(crate) fn replace_chunks(
        &self,
        guard: &Guard,
        old: &[Leaf<'_>],
        bounds: Bounds<'_>,
        entries: &[Gathered],
        cuts: &[usize],
        abbreviated_with: Option<Shape<'_>>,
    ) -> std::result::Result<(), NotReplaced> {
        let key = |at: usize| old[0].chunk.record(entries[at].slice).key();
        let least = bounds.low.unwrap_or_default();
        // INVARIANT: I-TICKET: read after the chunks were frozen.
        let ticket = Chunk::inherited_ticket(old.iter().map(|leaf| &leaf.chunk));
        let mut built: Vec<Child<'_>> = Vec::with_capacity(1 + cuts.len());
        let write = |low, high, entries| -> std::result::Result<_, OutOfMemory> {
            let delta_cap = self.options.delta_entries();
            // What the whole is not, a part may be; and an empty chunk says nothing of what comes.
            let is_whole = cuts.is_empty() && old.iter().any(|leaf| leaf.chunk.sorted_len() > 0);
            let may_be_exact = !is_whole
                && abbreviated_with.is_none_or(|shape| shape.tail.is_none())
                && may_be_exact(&old[0].chunk, entries);
            let plan =
                ChunkPlan { low, high, delta_cap, entries, abbreviated_with, may_be_exact, ticket };
            // SAFETY: I-PINNED, I-FROZEN: the frozen chunks name the entries' records, and the
            // guard keeps them.
            unsafe { write_chunk(&self.tree.arena, &plan) }
        };
        // INVARIANT: I-BOUNDS: the new chunks divide the bounds of the old ones, each time between two
        // of their keys.
        let result = (|| {
            let (mut begin, mut low) = (0, bounds.low);
            for &cut in cuts {
                let middle = separator(key(cut - 1), key(cut));
                let node = write(low, Some(middle), &entries[begin..cut])?;
                built.push(Child { separator: low.unwrap_or_default(), node });
                (begin, low) = (cut, Some(middle));
            }
            let node = write(low, bounds.high, &entries[begin..])?;
            built.push(Child { separator: low.unwrap_or_default(), node });
            let slices: Vec<_> = old.iter().map(|leaf| leaf.slice).collect();
            self.tree.replace(guard, least, &slices, &built)
        })();
        if result.is_err() {
            for child in built {
                // SAFETY: never published.
                unsafe { self.tree.arena.free(child.node) };
            }
        }
        result
    }

    /// Where to split the entries of a frozen chunk; `None` if they fit into one.
    fn split_point(&self, chunk: &Chunk<'_>, entries: &[Gathered]) -> Option<usize> {
        let middle = self.middle(chunk, entries)?;
        let (half, limit) = (entries.len() / 2, self.options.chunk_entries);
        // The side that grew ends where it grew, and is as full as can be: what comes next
        // finds nothing behind it that would be copied each time. Never less than half, for the
        // next keys may come elsewhere.
        let at = match growth(chunk, entries) {
            Some(Growth::Up(run)) => run.end.min(limit).max(half),
            Some(Growth::Down(run)) => run.start.max(entries.len() - limit).min(half),
            None => return Some(middle),
        };
        between_keys(chunk, entries, at).or(Some(middle))
    }

    /// Where to cut entries into halves; `None` if they fit into one chunk.
    fn middle(&self, chunk: &Chunk<'_>, entries: &[Gathered]) -> Option<usize> {
        if entries.len() <= self.options.chunk_entries {
            return None;
        }
        between_keys(chunk, entries, entries.len() / 2)
    }

    /// Waits until a frozen chunk has been replaced, or thawed for lack of memory.
    pub(crate) fn wait_for_successor(&self, guard: &Guard, chunk: &Chunk<'_>) {
        let backoff = Backoff::new();
        while chunk.is_claimed() && self.tree.is_current(guard, chunk) {
            backoff.wait();
        }
    }

    pub(crate) fn count_rebalance(&self) {
        self.rebalances.fetch_add(1, Ordering::Relaxed);
    }
}

/// The shape of the one of two frozen chunks that has entries, if the other has none.
fn shape_of_either<'g>(
    (a, of_a): (&Chunk<'g>, &[Gathered]),
    (b, of_b): (&Chunk<'g>, &[Gathered]),
) -> Option<Shape<'g>> {
    match (of_a.is_empty(), of_b.is_empty()) {
        (false, true) => Some(a.shape_of_all(std::iter::empty())),
        (true, false) => Some(b.shape_of_all(std::iter::empty())),
        (true, true) | (false, false) => None,
    }
}

/// Whether the keys look as if a shape could be exact of them: some of them are asked.
fn may_be_exact(chunk: &Chunk<'_>, entries: &[Gathered]) -> bool {
    const ASKED: usize = 8;
    let asked = entries.iter().step_by((entries.len() / ASKED).max(1)).chain(entries.last());
    shape::may_be_exact(asked.map(|of| chunk.record(of.slice).key()))
}

/// The first place from `at` on that lies between two different keys.
pub(crate) fn between_keys(chunk: &Chunk<'_>, entries: &[Gathered], at: usize) -> Option<usize> {
    let key = |at: usize| chunk.record(entries[at].slice).key();
    // A removed record can still be there beside its successor of the same key.
    (at..entries.len()).find(|at| key(at - 1) != key(*at))
}

/// The place of the entries, in key order, that a chunk was given since it was built.
enum Growth {
    /// Each was put behind the one before, mostly.
    Up(Range<usize>),
    /// Each was put in front of the one before, mostly.
    Down(Range<usize>),
}

/// Where a frozen chunk grew, if that is one place: keys in no order lie everywhere.
fn growth(chunk: &Chunk<'_>, entries: &[Gathered]) -> Option<Growth> {
    let delta: Vec<Gathered> = chunk.delta_entries().map(|(_, entry)| entry).collect();
    let (first, last) = (delta.first()?, delta.last()?);
    let least = delta.iter().min_by(|a, b| chunk.compare(a, b))?;
    let greatest = delta.iter().max_by(|a, b| chunk.compare(a, b))?;
    let place = |of: &Gathered| entries.partition_point(|entry| chunk.compare(entry, of).is_lt());
    let run = place(least)..place(greatest) + 1;
    // Threads that append to one place overtake each other: a few of their keys are sorted already.
    let is_one_place = run.len() <= delta.len() + delta.len() / 4;
    // A few entries lie in one place by chance.
    let is_grown = delta.len() > chunk.delta_cap() / 2;
    (is_one_place && is_grown).then(|| match chunk.compare(first, last) {
        KeyOrder::Greater => Growth::Down(run),
        KeyOrder::Less | KeyOrder::Equal => Growth::Up(run),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HalfSide {
    Left,
    Right,
}

/// The keys that chunks cover.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'k> {
    low: Option<&'k [u8]>,
    high: Option<&'k [u8]>,
}

impl<'g> Leaf<'g> {
    pub(crate) fn bounds(&self) -> Bounds<'g> {
        Bounds { low: self.chunk.low(), high: self.chunk.high() }
    }
}
