//! Which part of which block is free? The buddy system over an arena's blocks.
//!
//! Blocks are powers of two from 4 KiB; a span is a power-of-two part of one,
//! aligned to its own size; two free halves of the same part (buddies) join.
//! Always called under the arena's lock; one call a span, not a slice.
//!
//! *Invariants*
//! - I-APART: live slices do not overlap: an extent has one owner, a slot of a span one slice.
//! - I-BUDGET: no block is mapped with which the mapped bytes would exceed the budget.
//! - I-DRAINED: no slice is handed out in a drained block.
//!
//! Source: K. Knowlton, "A fast storage allocator", CACM 1965.

use std::collections::BTreeSet;

use crate::region::{PAGE_BYTES, Pages, Region};
use crate::slice::{BLOCK_BYTES_MAX, BLOCKS_MAX};

const ORDER_MIN: u32 = PAGE_BYTES.ilog2();
const ORDERS: usize = (BLOCK_BYTES_MAX.ilog2() - ORDER_MIN + 1) as usize;
/// The first block of a small table.
const FIRST_BLOCK_BYTES: usize = 16 << 10;

/// A power-of-two part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Extent {
    pub(crate) block: u32,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// Why there was no extent: the budget, or the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoExtent {
    pub(crate) used: u64,
    pub(crate) budget: Option<u64>,
    pub(crate) wanted: u64,
}

/// A change of a block, for the keeper of the block table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockChange {
    Mapped { block: u32, base: *mut u8, bytes: usize },
    Unmapped { block: u32 },
    Drained { block: u32 },
    Restored { block: u32 },
}

struct Block {
    region: Region,
    purpose: Purpose,
}

/// The purpose of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Its extents go to the thread that asks.
    Shared,
    /// Shared, and being emptied: nothing new goes in.
    Drained,
    /// Has a slice of its own, and takes no part in the buddy system.
    Own,
}

/// Free extents by order, lowest block and offset first, so that high blocks
/// drain and go back to the system.
type FreeExtents = [BTreeSet<(u32, u32)>; ORDERS];

/// Every block of an arena and every free extent in them.
pub(crate) struct Buddy {
    block_bytes: usize,
    budget: Option<u64>,
    wanted_pages: Pages,
    blocks: Vec<Option<Block>>,
    unused_ids: Vec<u32>,
    free: FreeExtents,
    /// Those of drained blocks.
    drained_free: FreeExtents,
    reserved_bytes: usize,
    /// Bytes of drained blocks, part of what is reserved.
    drained_bytes: usize,
    free_bytes: usize,
    /// Blocks that are free from end to end, kept for the next burst ...
    idle: BTreeSet<u32>,
    /// ... and their bytes.
    idle_bytes: usize,
    huge_bytes: usize,
    huge_pages: Pages,
    changes: Vec<BlockChange>,
}

impl Buddy {
    pub(crate) fn new(block_bytes: usize, budget: Option<u64>, wanted_pages: Pages) -> Buddy {
        assert!(block_bytes.is_power_of_two());
        assert!((PAGE_BYTES..=BLOCK_BYTES_MAX).contains(&block_bytes));
        Buddy {
            block_bytes,
            budget,
            wanted_pages,
            blocks: Vec::new(),
            unused_ids: Vec::new(),
            free: std::array::from_fn(|_| BTreeSet::new()),
            drained_free: std::array::from_fn(|_| BTreeSet::new()),
            reserved_bytes: 0,
            drained_bytes: 0,
            free_bytes: 0,
            idle: BTreeSet::new(),
            idle_bytes: 0,
            huge_bytes: 0,
            huge_pages: Pages::Small,
            changes: Vec::new(),
        }
    }

    pub(crate) fn reserved_bytes(&self) -> usize {
        self.reserved_bytes
    }

    pub(crate) fn free_bytes(&self) -> usize {
        self.free_bytes
    }

    /// The pages that most of the memory lies on.
    pub(crate) fn pages(&self) -> Pages {
        if self.huge_bytes * 2 >= self.reserved_bytes { self.huge_pages } else { Pages::Small }
    }

    /// Blocks mapped and unmapped since the last call, in order.
    pub(crate) fn take_changes(&mut self) -> Vec<BlockChange> {
        std::mem::take(&mut self.changes)
    }

    /// Takes a free extent of `bytes` (a power of two, at least a page), mapping
    /// a block if there is none.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<Extent, NoExtent> {
        debug_assert!(bytes.is_power_of_two() && bytes >= PAGE_BYTES && bytes <= self.block_bytes);
        if let Some(extent) = self.take_mapped(bytes) {
            return Ok(extent);
        }
        self.map_shared(bytes)?;
        Ok(self.take_mapped(bytes).expect("a block was mapped just now"))
    }

    /// Takes a free extent of `bytes` from the blocks that are there.
    pub(crate) fn take_mapped(&mut self, bytes: usize) -> Option<Extent> {
        let order = order_of(bytes);
        let from = (order..ORDERS).find(|order| !self.free[*order].is_empty())?;
        let (block, offset) = self.free[from].pop_first().expect("found not empty");
        if bytes_of(from) == self.blocks[block as usize].as_ref().expect("mapped").region.bytes() {
            self.idle.remove(&block);
            self.idle_bytes -= bytes_of(from);
        }
        for smaller in (order..from).rev() {
            self.free[smaller].insert((block, offset + bytes_of(smaller) as u32));
        }
        self.free_bytes -= bytes;
        debug_assert!((offset as usize).is_multiple_of(bytes), "an extent lies on its own size");
        // INVARIANT: I-APART: the extent hangs in no set from here until `give`.
        Some(Extent { block, offset, bytes: bytes as u32 })
    }

    /// Gives an extent back; a block that is idle beyond what is worth keeping
    /// goes back to the system.
    pub(crate) fn give(&mut self, extent: Extent) {
        let block = self.blocks[extent.block as usize].as_mut().expect("mapped");
        let whole = block.region.bytes();
        debug_assert!((extent.offset as usize).is_multiple_of(extent.bytes as usize));
        debug_assert!(extent.offset as usize + extent.bytes as usize <= whole, "inside its block");
        let drained = block.purpose == Purpose::Drained;
        let free = if drained { &mut self.drained_free } else { &mut self.free };
        self.free_bytes += extent.bytes as usize;
        let (mut offset, mut bytes) = (extent.offset, extent.bytes as usize);
        while bytes < whole {
            let buddy = offset ^ bytes as u32;
            if !free[order_of(bytes)].remove(&(extent.block, buddy)) {
                break;
            }
            offset = offset.min(buddy);
            bytes *= 2;
        }
        if drained && bytes == whole {
            // It is empty now, which is all that was wanted of it.
            block.purpose = Purpose::Shared;
            self.drained_bytes -= whole;
            self.changes.push(BlockChange::Restored { block: extent.block });
        }
        let free = if drained && bytes < whole { &mut self.drained_free } else { &mut self.free };
        let fresh = free[order_of(bytes)].insert((extent.block, offset));
        assert!(fresh, "an extent is given back once");
        if bytes == whole {
            self.idle.insert(extent.block);
            self.idle_bytes += whole;
            self.shed_idle();
        }
    }

    /// Unmaps idle blocks beyond what is worth keeping, which becomes less as
    /// blocks go.
    fn shed_idle(&mut self) {
        while self.idle_bytes > self.block_bytes.max(self.reserved_bytes / 8) {
            let block = *self.idle.last().expect("idle bytes are of idle blocks");
            self.unmap_idle(block);
        }
    }

    /// The blocks among which those to be emptied are chosen.
    pub(crate) fn ground(&self) -> Ground {
        let mut free = vec![0; self.blocks.len()];
        for (order, extents) in self.free.iter().chain(&self.drained_free).enumerate() {
            for (block, _) in extents {
                free[*block as usize] += bytes_of(order % ORDERS);
            }
        }
        let blocks = self.blocks.iter().zip(free).enumerate();
        let shared = blocks.filter_map(|(id, (block, extents_bytes))| {
            let block = block.as_ref().filter(|block| block.purpose != Purpose::Own)?;
            Some(SharedBlock { id: id as u32, bytes: block.region.bytes(), extents_bytes })
        });
        Ground {
            shared: shared.collect(),
            block_bytes: self.block_bytes,
            unmapped_budget: self.unmapped_budget(),
        }
    }

    /// Bytes that extents can be had of without touching a drained block.
    pub(crate) fn room_bytes(&self) -> usize {
        let drained_bytes: usize = self
            .drained_free
            .iter()
            .enumerate()
            .map(|(order, extents)| extents.len() * bytes_of(order))
            .sum();
        self.unmapped_budget().saturating_add(self.free_bytes - drained_bytes)
    }

    /// Bytes that may still be mapped.
    fn unmapped_budget(&self) -> usize {
        let budget = self.budget.unwrap_or(u64::MAX);
        usize::try_from(budget.saturating_sub(self.reserved_bytes as u64)).unwrap_or(usize::MAX)
    }

    /// Nothing is taken from these blocks until they are empty or restored.
    pub(crate) fn drain(&mut self, blocks: &[u32]) {
        for id in blocks {
            let Some(block) = &mut self.blocks[*id as usize] else { continue };
            if block.purpose == Purpose::Shared && !self.idle.contains(id) {
                block.purpose = Purpose::Drained;
                self.drained_bytes += block.region.bytes();
                self.changes.push(BlockChange::Drained { block: *id });
            }
        }
        let blocks = &self.blocks;
        let drained = |(id, _): &(u32, u32)| {
            blocks[*id as usize].as_ref().is_some_and(|block| block.purpose == Purpose::Drained)
        };
        // INVARIANT: I-DRAINED: allocations do not look at the extents of drained blocks.
        for (free, drained_free) in self.free.iter_mut().zip(&mut self.drained_free) {
            drained_free.extend(free.extract_if(.., drained));
        }
    }

    /// All blocks serve again.
    pub(crate) fn restore(&mut self) {
        for (id, block) in self.blocks.iter_mut().enumerate() {
            if let Some(block) = block.as_mut().filter(|block| block.purpose == Purpose::Drained) {
                block.purpose = Purpose::Shared;
                self.changes.push(BlockChange::Restored { block: id as u32 });
            }
        }
        for (free, drained_free) in self.free.iter_mut().zip(&mut self.drained_free) {
            free.append(drained_free);
        }
        self.drained_bytes = 0;
    }

    /// Maps a block for one slice of `bytes` alone.
    pub(crate) fn take_own(&mut self, bytes: usize) -> Result<u32, NoExtent> {
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        if self.over_budget(bytes) {
            self.trim(0);
        }
        if self.over_budget(bytes) {
            return Err(self.no_memory(bytes));
        }
        self.map_block(bytes, Purpose::Own)
    }

    /// Unmaps the block of a slice that had it alone.
    pub(crate) fn give_own(&mut self, block: u32) {
        let own =
            self.blocks[block as usize].as_ref().is_some_and(|block| block.purpose == Purpose::Own);
        assert!(own, "the block of a slice with its own mapping");
        self.unmap(block);
        self.shed_idle();
    }

    /// Replaces the budget. What is mapped beyond it stays.
    pub(crate) fn set_budget(&mut self, budget: Option<u64>) {
        self.budget = budget;
    }

    /// Unmaps blocks that are free from end to end, until no more than `kept_bytes` are left of them.
    pub(crate) fn trim(&mut self, kept_bytes: usize) {
        while self.idle_bytes > kept_bytes {
            let block = *self.idle.last().expect("idle bytes are of idle blocks");
            self.unmap_idle(block);
        }
    }

    fn unmap_idle(&mut self, block: u32) {
        let bytes = self.blocks[block as usize].as_ref().expect("mapped").region.bytes();
        let was_free = self.free[order_of(bytes)].remove(&(block, 0));
        assert!(was_free, "only idle blocks are unmapped");
        self.idle.remove(&block);
        self.idle_bytes -= bytes;
        self.free_bytes -= bytes;
        self.unmap(block);
    }

    fn unmap(&mut self, block: u32) {
        let gone = self.blocks[block as usize].take().expect("mapped");
        self.reserved_bytes -= gone.region.bytes();
        if gone.region.pages() != Pages::Small {
            self.huge_bytes -= gone.region.bytes();
        }
        self.unused_ids.push(block);
        self.changes.push(BlockChange::Unmapped { block });
    }

    /// Asked before each mapping, under the lock of the buddy system.
    fn over_budget(&self, more: usize) -> bool {
        // INVARIANT: I-BUDGET: no block is mapped where this is true.

        self.budget.is_some_and(|budget| (self.reserved_bytes + more) as u64 > budget)
    }

    fn no_memory(&self, wanted: usize) -> NoExtent {
        NoExtent { used: self.reserved_bytes as u64, budget: self.budget, wanted: wanted as u64 }
    }

    /// Maps a block that holds at least `bytes`; a smaller one where the budget ends.
    fn map_shared(&mut self, bytes: usize) -> Result<(), NoExtent> {
        let staying = self.reserved_bytes - self.drained_bytes;
        let mut block_bytes = next_block_bytes(self.block_bytes, staying).max(bytes);
        while self.over_budget(block_bytes) && block_bytes > bytes {
            block_bytes /= 2;
        }
        if self.over_budget(block_bytes) {
            return Err(self.no_memory(bytes));
        }
        let block = self.map_block(block_bytes, Purpose::Shared)?;
        self.free[order_of(block_bytes)].insert((block, 0));
        self.free_bytes += block_bytes;
        self.idle.insert(block);
        self.idle_bytes += block_bytes;
        Ok(())
    }

    fn map_block(&mut self, bytes: usize, purpose: Purpose) -> Result<u32, NoExtent> {
        if self.unused_ids.is_empty() && self.blocks.len() == BLOCKS_MAX {
            return Err(self.no_memory(bytes));
        }
        let region = Region::map(bytes, self.wanted_pages).map_err(|_| self.no_memory(bytes))?;
        let block = self.unused_ids.pop().unwrap_or(self.blocks.len() as u32);
        self.reserved_bytes += bytes;
        if region.pages() != Pages::Small {
            self.huge_bytes += bytes;
            self.huge_pages = region.pages();
        }
        self.changes.push(BlockChange::Mapped { block, base: region.base().as_ptr(), bytes });
        let entry = Some(Block { region, purpose });
        match self.blocks.get_mut(block as usize) {
            Some(slot) => *slot = entry,
            None => self.blocks.push(entry),
        }
        Ok(block)
    }
}

/// A block that slices share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedBlock {
    pub(crate) id: u32,
    pub(crate) bytes: usize,
    /// In free extents.
    pub(crate) extents_bytes: usize,
}

/// The blocks that slices share, and how more would be mapped.
pub(crate) struct Ground {
    pub(crate) shared: Vec<SharedBlock>,
    pub(crate) unmapped_budget: usize,
    block_bytes: usize,
}

impl Ground {
    /// Bytes of the blocks that `bytes` more would take beside `reserved_bytes`.
    pub(crate) fn mapped_for(&self, bytes: usize, reserved_bytes: usize) -> usize {
        let mut mapped = 0;
        while mapped < bytes {
            let block_bytes = next_block_bytes(self.block_bytes, reserved_bytes + mapped);
            if block_bytes == self.block_bytes {
                return mapped + (bytes - mapped).next_multiple_of(block_bytes);
            }
            mapped += block_bytes;
        }
        mapped
    }
}

/// Bytes of the next block where `reserved_bytes` are mapped: small ones first,
/// so that a small table stays small.
fn next_block_bytes(block_bytes_max: usize, reserved_bytes: usize) -> usize {
    let grown = (reserved_bytes / 4).next_power_of_two().max(FIRST_BLOCK_BYTES);
    grown.min(block_bytes_max)
}

// SAFETY: the raw pointers in `changes` are addresses to publish, nothing more.
unsafe impl Send for Buddy {}

fn order_of(bytes: usize) -> usize {
    (bytes.ilog2() - ORDER_MIN) as usize
}

fn bytes_of(order: usize) -> usize {
    PAGE_BYTES << order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_split_join_and_never_overlap() {
        let mut buddy = Buddy::new(1 << 20, None, Pages::Transparent);
        let mut rng = 12345u64;
        let mut held: Vec<Extent> = Vec::new();
        for step in 0..4000 {
            rng = rng.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if held.is_empty() || (rng >> 33) % 100 < if step < 2000 { 60 } else { 40 } {
                let bytes = PAGE_BYTES << ((rng >> 40) % 6);
                let taken = buddy.take(bytes).expect("no budget");
                for other in held.iter().filter(|other| other.block == taken.block) {
                    let apart = taken.offset + taken.bytes <= other.offset
                        || other.offset + other.bytes <= taken.offset;
                    assert!(apart, "{taken:?} overlaps {other:?}");
                }
                held.push(taken);
            } else {
                let at = (rng >> 33) as usize % held.len();
                buddy.give(held.swap_remove(at));
            }
            let held_bytes: usize = held.iter().map(|extent| extent.bytes as usize).sum();
            assert_eq!(held_bytes + buddy.free_bytes(), buddy.reserved_bytes());
        }
        for extent in held.drain(..) {
            buddy.give(extent);
        }
        buddy.trim(0);
        assert_eq!((buddy.reserved_bytes(), buddy.free_bytes(), buddy.idle_bytes), (0, 0, 0));
    }

    #[test]
    fn the_budget_holds_and_says_what_is_used() {
        let mut buddy = Buddy::new(64 << 10, Some(100 << 10), Pages::Small);
        let mut held = Vec::new();
        let refused = loop {
            match buddy.take(PAGE_BYTES) {
                Ok(extent) => held.push(extent),
                Err(refused) => break refused,
            }
        };
        assert_eq!(held.len(), 25);
        let (budget, wanted) = (Some(100 << 10), PAGE_BYTES as u64);
        assert_eq!(refused, NoExtent { used: 100 << 10, budget, wanted });
        assert!(buddy.take_own(PAGE_BYTES).is_err());
        buddy.give(held.pop().expect("25 are held"));
        assert!(buddy.take(PAGE_BYTES).is_ok());
    }
}
