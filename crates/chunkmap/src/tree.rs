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

use std::sync::Arc;

use sapwood_mem::reclaim::{Epoch, Guard, Kind, Reclaimer};
use sapwood_mem::sync::{Backoff, Ordering, RawAtomicU64};
use sapwood_mem::{Arena, ArenaOptions, OutOfMemory, SliceRef};

use crate::Direction;
use crate::build::{ChunkPlan, write_chunk, write_inner};
use crate::chunk::Chunk;
use crate::inner::{Child, Inner, Latch, Side};
use crate::layout::KIND_CHUNK;
use crate::record::Record;

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

/// Why nodes could not be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotReplaced {
    /// The two old nodes have different parents.
    NotSiblings,
    OutOfMemory(OutOfMemory),
}

impl From<OutOfMemory> for NotReplaced {
    fn from(refused: OutOfMemory) -> Self {
        NotReplaced::OutOfMemory(refused)
    }
}

/// The tree of nodes over an arena.
pub(crate) struct Tree {
    pub(crate) arena: Arc<Arena>,
    pub(crate) reclaimer: Reclaimer,
    root: Box<RootCell>,
    fanout: usize,
}

/// Searches for keys that ascend: a search goes on in the inner node in which the one before ended, unless the guard has
/// gone on to another epoch since.
///
/// That node may have been replaced since. Its children stay as they were then: chunks that were current at a time
/// after the first search, as a chunk is that was found and then replaced.
pub(crate) struct Ascent<'g> {
    tree: &'g Tree,
    guard: &'g Guard<'g>,
    /// Of the last search from the root.
    epoch: Epoch,
    /// The node above the chunk that was found last; `None` before the first search, and where the root is a chunk.
    above: Option<Inner<'g>>,
    /// Keys from here on are of another node; `None`: no key is.
    node_high: Option<&'g [u8]>,
    /// Keys from here on are of another chunk; `None`: no key is.
    chunk_high: Option<&'g [u8]>,
}

impl<'g> Ascent<'g> {
    /// The chunk that covers `key`, which is not below the keys before. The chunk is not touched, but its head is asked for.
    #[inline]
    pub(crate) fn find(&mut self, key: &[u8]) -> Found {
        let slice = match self.above {
            // INVARIANT: I-PINNED: reached under the guard, which has not gone on to another epoch since.
            Some(inner)
                if self.guard.epoch() == self.epoch
                    && self.node_high.is_none_or(|high| key < high) =>
            {
                self.child(inner, key)
            }
            _ => self.descend(key),
        };
        self.tree.arena.prefetch(slice, 1);
        Found { slice, epoch: self.epoch }
    }

    /// Whether `key`, which is not below the key that was searched for last, is of the chunk that was found.
    #[inline]
    pub(crate) fn is_of_the_last(&self, key: &[u8]) -> bool {
        self.chunk_high.is_none_or(|high| key < high)
    }

    fn descend(&mut self, key: &[u8]) -> SliceRef {
        (self.above, self.node_high, self.chunk_high) = (None, None, None);
        self.epoch = self.guard.epoch();
        let mut slice = self.tree.root();
        while let Node::Inner(inner) = self.tree.node(self.guard, slice) {
            slice = self.child(inner, key);
            if inner.height() == 1 {
                self.above = Some(inner);
                break;
            }
            self.tree.arena.prefetch(slice, INNER_LINES);
            self.node_high = self.chunk_high;
        }
        slice
    }

    /// The child of `inner`, whose keys end at `node_high`, for a key.
    #[inline]
    fn child(&mut self, inner: Inner<'g>, key: &[u8]) -> SliceRef {
        let at = inner.index_of(key, Side::Covering);
        self.chunk_high =
            if at + 1 < inner.len() { Some(inner.separator(at)) } else { self.node_high };
        inner.child(at)
    }
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
        Ok(Tree { arena, reclaimer, root, fanout })
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

    /// Searches for keys that ascend.
    pub(crate) fn ascent<'g>(&'g self, guard: &'g Guard<'g>) -> Ascent<'g> {
        Ascent {
            tree: self,
            guard,
            epoch: guard.epoch(),
            above: None,
            node_high: None,
            chunk_high: None,
        }
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

    /// Puts `new` in the place of `old`, one or two neighbours; retires the old ones.
    ///
    /// `key` is any key that the first old node covers. No other thread replaces the old nodes, for
    /// the caller has claimed the chunks, or holds the latches of the inner nodes.
    pub(crate) fn replace(
        &self,
        guard: &Guard,
        key: &[u8],
        old: &[SliceRef],
        new: &[Child<'_>],
    ) -> Result<(), NotReplaced> {
        debug_assert!(matches!(old.len(), 1 | 2) && !new.is_empty(), "one or two nodes, by some");
        let backoff = Backoff::new();
        loop {
            let Some((slice, parent, at)) = self.parent_of(guard, key, old[0]) else {
                if self.replace_root(old, new)? {
                    break;
                }
                backoff.wait();
                continue;
            };
            let latch = parent.latch();
            if latch.is_none() || parent.child(at) != old[0] {
                drop(latch);
                backoff.wait();
                continue;
            }
            if let [_, second] = old {
                let next = (at + 1 < parent.len()).then(|| parent.child(at + 1));
                if next != Some(*second) {
                    return Err(NotReplaced::NotSiblings);
                }
            }
            if let ([_], [only]) = (old, new) {
                parent.set_child(at, only.node);
                break;
            }
            self.replace_parent(guard, key, slice, parent, at..at + old.len(), new)?;
            drop(latch);
            break;
        }
        for slice in old {
            // INVARIANT: I-PINNED: retired, not freed, since readers may be there.
            // SAFETY: I-CURRENT: unreachable since just now; this thread alone replaced it.
            unsafe { self.reclaimer.retire(*slice, Kind::Plain) };
        }
        Ok(())
    }

    /// The inner node right above `child` on the way to `key`, and its index there;
    /// `None` if `child` is the root, or was replaced.
    fn parent_of<'g>(
        &'g self,
        guard: &'g Guard,
        key: &[u8],
        child: SliceRef,
    ) -> Option<(SliceRef, Inner<'g>, usize)> {
        let mut slice = self.root();
        while let Node::Inner(inner) = self.node(guard, slice) {
            let at = inner.index_of(key, Side::Covering);
            let next = inner.child(at);
            if next == child {
                return Some((slice, inner, at));
            }
            slice = next;
        }
        None
    }

    /// Builds `parent` anew with other children and replaces it. Under its latch.
    fn replace_parent(
        &self,
        guard: &Guard,
        key: &[u8],
        slice: SliceRef,
        parent: Inner<'_>,
        range: std::ops::Range<usize>,
        new: &[Child<'_>],
    ) -> Result<(), NotReplaced> {
        // The first separator of a node is what its own parent says; it is not kept here.
        let mut children = parent.to_children(&[]);
        let first = children[range.start].separator;
        children.splice(range.clone(), new.iter().copied());
        children[range.start].separator = first;
        if children.len() == 1 && self.root() == slice {
            // Only the holder of the root node's latch replaces it.
            let replaced = self.replace_root(&[slice], &children)?;
            assert!(replaced, "the latch keeps the root as it is");
            // INVARIANT: I-PINNED: as in `replace`.
            // SAFETY: I-CURRENT: unreachable since just now; the latch kept other threads out.
            unsafe { self.reclaimer.retire(slice, Kind::Plain) };
        } else {
            self.replace_by_inner(guard, key, &[slice], parent.height(), &children)?;
        }
        parent.set_obsolete();
        Ok(())
    }

    /// Replaces inner nodes by one or two new ones over `children`.
    fn replace_by_inner(
        &self,
        guard: &Guard,
        key: &[u8],
        old: &[SliceRef],
        height: u8,
        children: &[Child<'_>],
    ) -> Result<(), NotReplaced> {
        let halves = if children.len() > self.fanout {
            vec![&children[..children.len() / 2], &children[children.len() / 2..]]
        } else {
            vec![children]
        };
        let mut built: Vec<Child<'_>> = Vec::with_capacity(2);
        let result = halves
            .iter()
            .try_for_each(|half| {
                let node = write_inner(&self.arena, height, half)?;
                built.push(Child { separator: half[0].separator, node });
                Ok(())
            })
            .and_then(|()| self.replace(guard, key, old, &built));
        if result.is_err() {
            for child in built {
                // SAFETY: never published.
                unsafe { self.arena.free(child.node) };
            }
        }
        result
    }

    /// Puts `new` in the place of the root; false if `old` is not the root.
    fn replace_root(&self, old: &[SliceRef], new: &[Child<'_>]) -> Result<bool, NotReplaced> {
        let _latch = Latch::take(&self.root.latch);
        if self.root() != old[0] {
            return Ok(false);
        }
        if old.len() > 1 {
            return Err(NotReplaced::NotSiblings);
        }
        let root = match new {
            [only] => only.node,
            several => write_inner(&self.arena, self.height_above(several), several)?,
        };
        // Release: pairs with the Acquire in `root`.
        self.root.node.store(root.word(), Ordering::Release);
        Ok(true)
    }

    fn height_above(&self, children: &[Child<'_>]) -> u8 {
        let slice = children[0].node;
        let base = self.arena.ptr(slice);
        // SAFETY: new nodes are the caller's, not published yet; the first byte is
        // the kind, and what is no chunk is an inner node.
        unsafe {
            if base.read() == KIND_CHUNK {
                return 1;
            }
            Inner::new(slice, base).height() + 1
        }
    }

    /// Joins inner nodes on the way to `key` with a neighbour where they are small,
    /// so that what is left of the nodes above removed keys goes, too. Best effort:
    /// without memory, or when others are at work here, they stay.
    ///
    /// Called without any latch.
    pub(crate) fn merge_inner(&self, guard: &Guard, key: &[u8]) {
        // Each success leaves one small node less on the way.
        while self.merge_small(guard, key).is_some() {}
    }

    /// Writes inner nodes on the way to `key` anew, as they are, where `wanted` says
    /// so. Best effort: without memory, or when others are at work here, they stay.
    ///
    /// Called without any latch.
    pub(crate) fn renew_inner(&self, guard: &Guard, key: &[u8], wanted: impl Fn(SliceRef) -> bool) {
        let (mut slice, mut low): (_, &[u8]) = (self.root(), &[]);
        while let Node::Inner(inner) = self.node(guard, slice) {
            let at = inner.index_of(key, Side::Covering);
            if wanted(slice) && self.renew(guard, slice, inner, low).is_none() {
                return;
            }
            // An old node leads to the same children as its copy, or to nodes that have been
            // replaced since: those are the business of the thread that replaced them.
            if at > 0 {
                low = inner.separator(at - 1);
            }
            slice = inner.child(at);
        }
    }

    /// Replaces an inner node by a copy; `low` is the least key it covers.
    fn renew(&self, guard: &Guard, slice: SliceRef, inner: Inner<'_>, low: &[u8]) -> Option<()> {
        let _latch = inner.latch()?;
        let children = inner.to_children(low);
        self.replace_by_inner(guard, low, &[slice], inner.height(), &children).ok()?;
        inner.set_obsolete();
        Some(())
    }

    /// Joins the highest small inner node on the way to `key`; `None` if there is
    /// none, or it could not be.
    fn merge_small(&self, guard: &Guard, key: &[u8]) -> Option<()> {
        let Node::Inner(mut above) = self.root_node(guard) else { return None };
        let mut low: &[u8] = &[];
        loop {
            let at = above.index_of(key, Side::Covering);
            let Node::Inner(inner) = self.node(guard, above.child(at)) else { return None };
            if inner.len() <= self.fanout / 4 && above.len() > 1 {
                let left_at = if at + 1 < above.len() { at } else { at - 1 };
                let left_low = if left_at == 0 { low } else { above.separator(left_at - 1) };
                return self.merge_pair(guard, above, left_at, left_low);
            }
            if at > 0 {
                low = above.separator(at - 1);
            }
            above = inner;
        }
    }

    /// Joins children `left_at` and `left_at + 1`, or evens them out if together they
    /// are too many for one; `key` is the least the left one covers.
    fn merge_pair(
        &self,
        guard: &Guard,
        above: Inner<'_>,
        left_at: usize,
        key: &[u8],
    ) -> Option<()> {
        let slices = [above.child(left_at), above.child(left_at + 1)];
        let nodes = slices.map(|slice| self.node(guard, slice));
        let [Node::Inner(left), Node::Inner(right)] = nodes else { return None };
        // I-LATCHES: left before right, both before the parent (in `replace`).
        let _left_latch = left.latch()?;
        let _right_latch = right.latch()?;
        let mut children = left.to_children(key);
        children.extend(right.to_children(above.separator(left_at)));
        self.replace_by_inner(guard, key, &slices, left.height(), &children).ok()?;
        left.set_obsolete();
        right.set_obsolete();
        Some(())
    }
}
