//! The tree: the search path from the root to a chunk, and the replacing of nodes.
//!
//! ```text
//!  root ──► inner ──► inner ──► chunk      all leaves at one depth
//! ```
//! Readers go down without latches. A chunk is replaced by storing one child
//! word; when the number of children changes, the parent is copied and replaced
//! in its own parent, and so on up.
//!
//! *Invariants*
//! - I-CURRENT: a node is reachable from the root, or its obsolete mark is set (inner
//!   nodes) or it is frozen (chunks).
//! - I-LATCHES: latches are taken from the bottom to the top, and on one level from
//!   left to right; hence no threads wait in a circle.

mod ascent;
mod counts;
mod replace;

pub(crate) use replace::NotReplaced;

use std::sync::Arc;

use sapwood_mem::reclaim::{Epoch, Guard, Reclaimer};
use sapwood_mem::sync::counter::AtomicU64;
use sapwood_mem::sync::{Ordering, RawAtomicU64};
use sapwood_mem::{Arena, ArenaOptions, OutOfMemory, SliceRef};

use crate::Direction;
use crate::layout::KIND_CHUNK;
use crate::node::build::{ChunkPlan, write_chunk};
use crate::node::chunk::Chunk;
use crate::node::inner::{Inner, Side};
use crate::node::record::Record;

/// Cache lines of a node to ask for at once: head, fingerprints, template and
/// samples of a chunk with the default options.
const HEAD_LINES: usize = 7;

/// The same of an inner node: head, samples and a short prefix.
const INNER_LINES: usize = 3;

/// A node of either kind.
#[derive(Clone, Copy)]
pub(crate) enum Node<'g> {
    Chunk(Chunk<'g>),
    Inner(Inner<'g>),
}

/// A chunk, and the slice it lies in.
#[derive(Clone, Copy)]
pub(crate) struct Leaf<'g> {
    pub(crate) chunk: Chunk<'g>,
    pub(crate) slice: SliceRef,
}

/// A chunk that was found for a key by an earlier search, and when. It may have been replaced since.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    slice: SliceRef,
    epoch: Epoch,
}

/// The tree of nodes over an arena.
pub(crate) struct Tree {
    pub(crate) arena: Arc<Arena>,
    pub(crate) reclaimer: Reclaimer,
    root: Box<RootCell>,
    fanout: usize,
    /// Counts of subtrees begun so far: each has a ticket of its own.
    counts: AtomicU64,
}

/// The root's word and its latch; boxed, since words must not move.
struct RootCell {
    node: RawAtomicU64,
    latch: RawAtomicU64,
}

impl Tree {
    /// A tree of one empty chunk.
    pub(crate) fn new(
        options: ArenaOptions,
        fanout: usize,
        delta_cap: usize,
    ) -> Result<Tree, OutOfMemory> {
        let arena = Arc::new(Arena::new(options));
        let plan = ChunkPlan {
            low: None,
            high: None,
            delta_cap,
            entries: &[],
            abbreviated_with: None,
            may_be_exact: false,
            ticket: None,
        };
        // SAFETY: there are no entries.
        let first = unsafe { write_chunk(&arena, &plan) }?;
        let mut root = Box::<RootCell>::new_uninit();
        let cell = root.as_mut_ptr();
        // SAFETY: the box is ours; both words are written before it counts as initialised.
        let root = unsafe {
            RawAtomicU64::init(&raw mut (*cell).node, first.word());
            RawAtomicU64::init(&raw mut (*cell).latch, 0);
            root.assume_init()
        };
        let reclaimer = Reclaimer::new(Arc::clone(&arena), |base| {
            // SAFETY: counted slices are records, and live until they are freed.
            unsafe { Record::is_read(base) }
        });
        Ok(Tree { arena, reclaimer, root, fanout, counts: AtomicU64::new(0) })
    }

    #[inline]
    fn root(&self) -> SliceRef {
        // Acquire: pairs with the Release in `replace_root`.
        SliceRef::from_word(self.root.node.load(Ordering::Acquire)).expect("there is always a root")
    }

    #[inline]
    pub(crate) fn node<'g>(&'g self, _guard: &'g Guard, slice: SliceRef) -> Node<'g> {
        let base = self.arena.ptr(slice);
        // SAFETY: I-PINNED: nodes are retired after they became unreachable, and the guard was
        // there when this one was reached; the first byte is the kind.
        unsafe {
            if base.read() == KIND_CHUNK {
                Node::Chunk(Chunk::new(&self.arena, slice, base))
            } else {
                Node::Inner(Inner::new(slice, base))
            }
        }
    }

    pub(crate) fn root_node<'g>(&'g self, guard: &'g Guard) -> Node<'g> {
        self.node(guard, self.root())
    }

    /// The chunk that covers `key`.
    #[inline]
    pub(crate) fn leaf<'g>(&'g self, guard: &'g Guard, key: &[u8]) -> Leaf<'g> {
        self.leaf_at(guard, |inner| inner.index_of(key, Side::Covering))
    }

    /// The chunk that covers `key`. The chunk itself is not touched, but its first lines are asked for.
    #[inline]
    pub(crate) fn find_leaf<'g>(&'g self, guard: &'g Guard, key: &[u8]) -> Found {
        let mut slice = self.root();
        while let Node::Inner(inner) = self.node(guard, slice) {
            slice = inner.child(inner.index_of(key, Side::Covering));
            if inner.height() == 1 {
                break;
            }
            self.arena.prefetch(slice, INNER_LINES);
        }
        self.arena.prefetch(slice, HEAD_LINES);
        Found { slice, epoch: guard.epoch() }
    }

    /// A chunk that was found, unless it may be gone.
    #[inline]
    pub(crate) fn found_leaf<'g>(&'g self, guard: &'g Guard, found: Found) -> Option<Leaf<'g>> {
        if !guard.keeps(found.epoch) {
            return None;
        }
        // INVARIANT: I-PINNED: reached under a guard, and no epoch has begun since.
        match self.node(guard, found.slice) {
            Node::Chunk(chunk) => Some(Leaf { chunk, slice: found.slice }),
            Node::Inner(_) => None,
        }
    }

    /// The chunk with the keys just below `key`.
    pub(crate) fn leaf_below<'g>(&'g self, guard: &'g Guard, key: &[u8]) -> Leaf<'g> {
        self.leaf_at(guard, |inner| inner.index_of(key, Side::Below))
    }

    /// The chunk at an end of the tree. Inlined, so that the direction is a constant.
    #[inline(always)]
    pub(crate) fn outermost_leaf<'g>(&'g self, guard: &'g Guard, direction: Direction) -> Leaf<'g> {
        let mut slice = self.root();
        loop {
            match self.node(guard, slice) {
                Node::Chunk(chunk) => return Leaf { chunk, slice },
                Node::Inner(inner) => {
                    slice = inner.child(match direction {
                        Direction::Ascending => 0,
                        Direction::Descending => inner.len() - 1,
                    });
                }
            }
        }
    }

    /// The chunk to which `choose` leads. It looks far into each node, of which many lines are asked for.
    #[inline]
    fn leaf_at<'g>(&'g self, guard: &'g Guard, choose: impl Fn(&Inner<'g>) -> usize) -> Leaf<'g> {
        let mut slice = self.root();
        loop {
            match self.node(guard, slice) {
                Node::Chunk(chunk) => return Leaf { chunk, slice },
                Node::Inner(inner) => {
                    slice = inner.child(choose(&inner));
                    let lines = if inner.height() == 1 { HEAD_LINES } else { INNER_LINES };
                    self.arena.prefetch(slice, lines);
                }
            }
        }
    }

    /// Whether this chunk is still the one that covers its keys.
    pub(crate) fn is_current(&self, guard: &Guard, chunk: &Chunk<'_>) -> bool {
        self.leaf(guard, chunk.low().unwrap_or_default()).chunk.is(chunk)
    }
}
