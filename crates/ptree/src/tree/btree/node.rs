//! Nodes of a B-tree: what their words mean.
//!
//! ```text
//! leaf, 63 words: 512 bytes with its size class
//! ┌────────┬───────────────┬─────────────────────────────┐
//! │ header │ order         │ (a, b) of each entry        │
//! │ 1 word │ 4 words       │ 29 slots                    │
//! └────────┴───────────────┴─────────────────────────────┘
//! inner node, 93 words: 768 bytes with its size class
//! ┌────────┬───────────────┬─────────────────────────────┬──────────┬────────────────┐
//! │ header │ order         │ (a, child behind) of each   │ leftmost │ b of each entry│
//! │ 1 word │ 4 words       │ 29 slots                    │ child    │ 29 slots       │
//! └────────┴───────────────┴─────────────────────────────┴──────────┴────────────────┘
//! order, byte by byte
//! ┌─────────────────────────────────────────────┬──────┬───────┬─────────┐
//! │ slots, by the rank of their entries; then   │ zero │ level │ entries │
//! │ those that are free: 29 bytes               │      │       │         │
//! └─────────────────────────────────────────────┴──────┴───────┴─────────┘
//! ```
//! An entry stays in its slot while others come and go: an insert sets an entry and one to four
//! words of order, where a sorted node would have half of its words shifted and logged (the
//! permutation of Mao, Kohler and Morris: "Cache craftiness for fast multicore key-value storage",
//! EuroSys 2012, and the slot array of Chen and Jin: "Persistent B+-trees in non-volatile main
//! memory", VLDB 2015).
//!
//! A free slot's `a` is all ones (I-FREE). So the rank of a key is how many of all 29 `a` are
//! smaller: a loop without a branch that could be mispredicted, whose cache misses overlap.
//! What a look-up wants next lies beside `a`, and mostly on the same cache line: `b` in a leaf, the
//! child in an inner node, whose `b` is for equal keys alone.

use crate::error::{Error, Result};
use crate::object::{ObjectId, ObjectType, Word, load, type_of};
use crate::transaction::{Edit, Transaction};
use crate::tree::entry::Entry;
use crate::view::View;

/// Entries of a full node: as many as fit 512 bytes in a leaf, a size class that wastes no byte of a
/// chunk and keeps nodes aligned with cache lines.
pub(super) const SLOTS: usize = 29;

/// Words of a leaf.
const LEAF_WORDS: usize = ENTRIES + 2 * SLOTS;
/// Words of an inner node.
const INNER_WORDS: usize = INNER_B + SLOTS;

const ORDER: usize = 1;
const ORDER_WORDS: usize = 4;
const ENTRIES: usize = ORDER + ORDER_WORDS;
const LEFTMOST: usize = ENTRIES + 2 * SLOTS;
const INNER_B: usize = LEFTMOST + 1;

/// `a` of a free slot: not smaller than any key's (I-FREE).
const FREE: u64 = u64::MAX;

/// The level of leaves; inner nodes have greater ones.
pub(super) const LEAF: usize = 1;

fn words_of(level: usize) -> usize {
    if level == LEAF { LEAF_WORDS } else { INNER_WORDS }
}

/// The word of a slot's `a`.
#[inline]
fn a_of(slot: usize) -> usize {
    ENTRIES + 2 * slot
}

/// The word of a slot's `b`.
#[inline]
fn b_of(level: usize, slot: usize) -> usize {
    if level == LEAF { ENTRIES + 2 * slot + 1 } else { INNER_B + slot }
}

/// The word of the child behind a slot's entry, in an inner node.
#[inline]
fn child_of(slot: usize) -> usize {
    ENTRIES + 2 * slot + 1
}

/// A node as an operation sees it. It has at least one entry, and at most [`SLOTS`].
#[derive(Clone, Copy)]
pub(super) struct Node<'v> {
    pub(super) id: ObjectId,
    pub(super) level: usize,
    pub(super) len: usize,
    /// As many as a leaf has.
    words: &'v [Word; LEAF_WORDS],
    /// The others of an inner node.
    others: &'v [Word],
}

impl<'v> Node<'v> {
    /// # Errors
    /// [`Error::Corrupt`] where no node can be, or one without entries.
    #[inline(always)]
    pub(super) fn read(view: &'v impl View, id: ObjectId, level: usize) -> Result<Node<'v>> {
        let words = view.object(id, words_of(level))?;
        let Some((words, others)) = words.split_first_chunk::<LEAF_WORDS>() else {
            return Err(crate::view::outside(id, words_of(level)));
        };
        let len = (load(&words[ORDER + ORDER_WORDS - 1]) >> 56) as usize;
        if !(1..=SLOTS).contains(&len) {
            return Err(wrong_len(id, len));
        }
        Ok(Node { id, level, len, words, others })
    }

    /// How many `a` are smaller than `head`.
    #[inline(always)]
    pub(super) fn count_below(&self, head: u64) -> usize {
        // By I-FREE free slots count for nothing.
        let pairs = self.words[ENTRIES..].chunks_exact(2);
        pairs.map(|pair| usize::from(load(&pair[0]) < head)).sum()
    }

    /// The slot of the entry of a rank.
    #[inline(always)]
    pub(super) fn slot(&self, rank: usize) -> usize {
        let word = load(&self.words[ORDER + rank / 8 % ORDER_WORDS]);
        // What is no slot is read as the last one: `check` tells, a reader need not.
        ((word >> (rank % 8 * 8)) as u8 as usize).min(SLOTS - 1)
    }

    #[inline(always)]
    pub(super) fn a(&self, rank: usize) -> u64 {
        load(&self.words[a_of(self.slot(rank))])
    }

    #[inline]
    pub(super) fn entry(&self, rank: usize) -> Entry {
        let slot = self.slot(rank);
        let b = match self.level {
            LEAF => load(&self.words[b_of(LEAF, slot)]),
            _ => self.others.get(1 + slot).map_or(0, load),
        };
        Entry { a: load(&self.words[a_of(slot)]), b }
    }

    /// The child in front of the entry of a rank, or behind all entries; of inner nodes.
    #[inline(always)]
    pub(super) fn child(&self, rank: usize) -> Result<ObjectId> {
        let word = match rank {
            0 => self.others.first(),
            _ => Some(&self.words[child_of(self.slot(rank - 1))]),
        };
        match word {
            Some(child) => Ok(ObjectId::new(load(child))),
            None => Err(Error::corrupt(self.id.index(), "a leaf has no children")),
        }
    }

    /// # Errors
    /// [`Error::Corrupt`] for whatever no change leaves behind.
    pub(super) fn check(&self) -> Result<()> {
        let corrupt = |what: &str| Err(Error::corrupt(self.id.index(), what));
        if type_of(load(&self.words[0])) != ObjectType::BTREE_NODE {
            return corrupt("no node of a B-tree is there");
        }
        let order = Order::read(&self.words[..]);
        if !order.is_sound(self.level) {
            return corrupt("the order of a node is none");
        }
        for rank in self.len..SLOTS {
            if load(&self.words[a_of(order.slot(rank))]) != FREE {
                return corrupt("a free slot of a node looks like an entry");
            }
        }
        Ok(())
    }
}

#[cold]
fn wrong_len(id: ObjectId, len: usize) -> Error {
    Error::corrupt(id.index(), format!("a node of a B-tree cannot have {len} entries"))
}

/// A node that a transaction changes.
#[derive(Clone, Copy)]
pub(super) struct NodeEdit<'t> {
    pub(super) id: ObjectId,
    pub(super) level: usize,
    edit: Edit<'t>,
    order: Order,
}

impl<'t> NodeEdit<'t> {
    /// # Errors
    /// [`Error::Corrupt`] where nothing can be changed without making it worse.
    #[inline]
    pub(super) fn open(
        tx: &'t Transaction<'_>,
        id: ObjectId,
        level: usize,
    ) -> Result<NodeEdit<'t>> {
        let edit = tx.edit(id, words_of(level))?;
        let order = Order::read(edit.words());
        if !order.is_sound(level) {
            return Err(Error::corrupt(id.index(), "the order of a node is none"));
        }
        Ok(NodeEdit { id, level, edit, order })
    }

    /// Makes a node without entries.
    pub(super) fn make(tx: &'t Transaction<'_>, level: usize) -> Result<NodeEdit<'t>> {
        let (id, edit) = tx.make(ObjectType::BTREE_NODE, words_of(level))?;
        let order = Order::empty(level);
        for (index, word) in order.words.into_iter().enumerate() {
            edit.set(ORDER + index, word);
        }
        for slot in 0..SLOTS {
            edit.set(a_of(slot), FREE);
        }
        Ok(NodeEdit { id, level, edit, order })
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn entry(&self, rank: usize) -> Entry {
        let slot = self.order.slot(rank);
        Entry { a: self.edit.get(a_of(slot)), b: self.edit.get(b_of(self.level, slot)) }
    }

    /// The child in front of the entry of a rank, or behind all entries; none in a leaf.
    pub(super) fn child(&self, rank: usize) -> ObjectId {
        match self.level {
            LEAF => ObjectId::NULL,
            _ => ObjectId::new(self.edit.get(self.child_word(rank))),
        }
    }

    pub(super) fn set_child(&mut self, rank: usize, child: ObjectId) {
        if self.level != LEAF {
            self.edit.set(self.child_word(rank), child.word());
        }
    }

    fn child_word(&self, rank: usize) -> usize {
        match rank {
            0 => LEFTMOST,
            _ => child_of(self.order.slot(rank - 1)),
        }
    }

    /// Puts an entry, with the child behind it, in front of that of a rank.
    #[inline]
    pub(super) fn insert(&mut self, rank: usize, entry: Entry, right: ObjectId) {
        let slot = self.order.insert(rank);
        self.edit.set(a_of(slot), entry.a);
        self.edit.set(b_of(self.level, slot), entry.b);
        if self.level != LEAF {
            self.edit.set(child_of(slot), right.word());
        }
        self.write_order();
    }

    /// Takes an entry out, with the child behind it.
    #[inline]
    pub(super) fn remove(&mut self, rank: usize) {
        let slot = self.order.remove(rank);
        self.edit.set(a_of(slot), FREE);
        self.write_order();
    }

    /// Takes all entries from a rank on out, with the children behind them.
    pub(super) fn truncate(&mut self, len: usize) {
        for rank in len..self.len() {
            self.edit.set(a_of(self.order.slot(rank)), FREE);
        }
        self.order.set_len(len);
        self.write_order();
    }

    /// Gives a rank another entry; children stay.
    pub(super) fn replace(&mut self, rank: usize, entry: Entry) {
        let slot = self.order.slot(rank);
        self.edit.set(a_of(slot), entry.a);
        self.edit.set(b_of(self.level, slot), entry.b);
    }

    /// Gives the entry of a slot, which has the same key, another second word.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the node has no such slot.
    pub(super) fn set_b(tx: &Transaction<'_>, id: ObjectId, slot: usize, b: u64) -> Result<()> {
        let order = Order::read(tx.object(id, ENTRIES)?);
        let level = order.level();
        if slot >= SLOTS || level < LEAF {
            return Err(Error::corrupt(id.index(), "a node has no such slot"));
        }
        tx.edit(id, words_of(level))?.set(b_of(level, slot), b);
        Ok(())
    }

    /// What is set is logged: words of the order that stay the same are left alone.
    #[inline]
    fn write_order(&self) {
        for (index, word) in self.order.words.into_iter().enumerate() {
            if self.edit.get(ORDER + index) != word {
                self.edit.set(ORDER + index, word);
            }
        }
    }
}

/// The slots of a node, by the ranks of their entries, then free ones; its level, and how many
/// entries there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Order {
    words: [u64; ORDER_WORDS],
}

impl Order {
    fn empty(level: usize) -> Order {
        let mut bytes = [0; ORDER_WORDS * 8];
        for (slot, byte) in bytes[..SLOTS].iter_mut().enumerate() {
            *byte = slot as u8;
        }
        bytes[30] = level as u8;
        let mut words = [0; ORDER_WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        Order { words }
    }

    #[inline]
    fn read(node: &[Word]) -> Order {
        let mut words = [0; ORDER_WORDS];
        for (word, found) in words.iter_mut().zip(&node[ORDER..]) {
            *word = load(found);
        }
        Order { words }
    }

    #[inline]
    fn len(&self) -> usize {
        (self.words[ORDER_WORDS - 1] >> 56) as usize
    }

    fn level(&self) -> usize {
        (self.words[ORDER_WORDS - 1] >> 48) as u8 as usize
    }

    #[inline]
    fn set_len(&mut self, len: usize) {
        let last = &mut self.words[ORDER_WORDS - 1];
        *last = *last & (u64::MAX >> 8) | (len as u64) << 56;
    }

    #[inline]
    fn slot(&self, rank: usize) -> usize {
        (self.words[rank / 8] >> (rank % 8 * 8)) as u8 as usize
    }

    /// Whether each slot is there once, and the rest is as it should be.
    #[inline]
    fn is_sound(&self, level: usize) -> bool {
        let mut seen = 0u32;
        for rank in 0..SLOTS {
            let slot = self.slot(rank);
            seen |= if slot < SLOTS { 1 << slot } else { 0 };
        }
        let rest = self.words[ORDER_WORDS - 1] >> 40 & 0xffff;
        seen == (1 << SLOTS) - 1 && self.len() <= SLOTS && rest == (level as u64) << 8
    }

    /// Gives an entry of a rank a free slot.
    #[inline]
    fn insert(&mut self, rank: usize) -> usize {
        let len = self.len();
        debug_assert!(rank <= len && len < SLOTS, "a free slot");
        let slot = self.slot(len);
        let mut coming = slot as u64;
        for index in rank / 8..=len / 8 {
            let bytes = Bytes::within(index, rank, len);
            coming = bytes.rise(&mut self.words[index], coming);
        }
        self.set_len(len + 1);
        slot
    }

    /// Makes the slot of a rank free.
    #[inline]
    fn remove(&mut self, rank: usize) -> usize {
        let last = self.len() - 1;
        debug_assert!(rank <= last, "an entry");
        let slot = self.slot(rank);
        let mut coming = slot as u64;
        for index in (rank / 8..=last / 8).rev() {
            let bytes = Bytes::within(index, rank, last);
            coming = bytes.fall(&mut self.words[index], coming);
        }
        self.set_len(last);
        slot
    }
}

/// Some bytes of a word, in a row.
struct Bytes {
    mask: u64,
    /// Bits below them.
    from: u32,
    /// Bits below the last of them.
    last: u32,
}

impl Bytes {
    /// Those bytes of word `index` of an order that lie among the ranks from `first` to `last`.
    #[inline]
    fn within(index: usize, first: usize, last: usize) -> Bytes {
        let from = (first.max(index * 8) % 8 * 8) as u32;
        let last = (last.min(index * 8 + 7) % 8 * 8) as u32;
        Bytes { mask: (u64::MAX >> (56 - last)) & (u64::MAX << from), from, last }
    }

    /// Moves each byte one up; one comes from below, and the last goes.
    #[inline]
    fn rise(&self, word: &mut u64, coming: u64) -> u64 {
        let going = *word >> self.last & 0xff;
        let moved = (*word & self.mask) << 8;
        *word = *word & !self.mask | moved & self.mask | coming << self.from;
        going
    }

    /// Moves each byte one down; one comes from above, and the first goes.
    #[inline]
    fn fall(&self, word: &mut u64, coming: u64) -> u64 {
        let going = *word >> self.from & 0xff;
        let moved = (*word & self.mask) >> 8;
        *word = *word & !self.mask | moved & self.mask | coming << self.last;
        going
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_changes_as_a_list_of_slots_does() {
        let mut order = Order::empty(3);
        let mut list: Vec<usize> = (0..SLOTS).collect();
        let mut len = 0;
        let mut seed = 1u64;
        for _ in 0..10_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = (seed >> 33) as usize;
            if len < SLOTS && (len == 0 || seed >> 63 == 0) {
                let rank = draw % (len + 1);
                let slot = list.remove(len);
                list.insert(rank, slot);
                len += 1;
                assert_eq!(order.insert(rank), slot);
            } else {
                let rank = draw % len;
                let slot = list.remove(rank);
                len -= 1;
                list.insert(len, slot);
                assert_eq!(order.remove(rank), slot);
            }
            assert_eq!((0..SLOTS).map(|rank| order.slot(rank)).collect::<Vec<_>>(), list);
            assert_eq!((order.len(), order.level()), (len, 3));
            assert!(order.is_sound(3) && !order.is_sound(2));
        }
    }
}
