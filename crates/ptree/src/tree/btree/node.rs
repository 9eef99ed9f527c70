//! Nodes of a B-tree: what their words mean.
//!
//! ```text
//! leaf, 46 words: 384 bytes with its size class
//! ┌────────┬───────────────┬─────────────────────────────┐
//! │ header │ order         │ (a, b) of each entry        │
//! │ 1 word │ 3 words       │ 21 slots                    │
//! └────────┴───────────────┴─────────────────────────────┘
//! order, byte by byte
//! ┌─────────────────────────────────────────────┬──────┬───────┬─────────┐
//! │ slots, by the rank of their entries; then   │ zero │ level │ entries │
//! │ those that are free: 21 bytes               │      │       │         │
//! └─────────────────────────────────────────────┴──────┴───────┴─────────┘
//! inner node, 96 words: 768 bytes
//! ┌────────┬──────────────────────┬────────────────┬──────────────┬───────────────┐
//! │ header │ entries, level, zeros│ a of each entry│ children     │ b of each     │
//! │ 1 word │ 1, 1 and 6 bytes     │ 31 words       │ 32 words     │ 31 words      │
//! └────────┴──────────────────────┴────────────────┴──────────────┴───────────────┘
//! ```
//! An entry of a leaf stays in its slot while others come and go: an insert sets an entry and one to
//! three words of order, where a sorted leaf would have half of its words shifted and logged (the
//! permutation of Mao, Kohler and Morris: "Cache craftiness for fast multicore key-value storage",
//! EuroSys 2012, and the slot array of Chen and Jin: "Persistent B+-trees in non-volatile main
//! memory", VLDB 2015). Inner nodes change once for ten inserts, and are searched by all: they are
//! sorted.
//!
//! An `a` where no entry is has all bits set (I-FREE). So the rank of a key is how many `a` are
//! smaller, with no look at the order or the number of entries: in a leaf of all `a`, whose cache
//! misses overlap, in an inner node of every eighth, and then of the seven between two of those.
//! There is no branch that could be mispredicted (after Khuong and Morin: "Array layouts for
//! comparison-based searching", JEA 2017).

use sapwood_mem::arena::prefetch_line;

use crate::error::{Error, Result};
use crate::object::{ObjectId, ObjectType, Word, load, type_of};
use crate::transaction::{Edit, Transaction};
use crate::tree::entry::Entry;
use crate::tree::structure::Place;
use crate::view::View;

/// The level of leaves; inner nodes have greater ones.
pub(super) const LEAF: usize = 1;

/// Entries of a full leaf. More make a look-up wait for more cache lines, and a change copy more;
/// fewer cost memory and levels.
pub(super) const LEAF_SLOTS: usize = 21;
const LEAF_WORDS: usize = PAIRS + 2 * LEAF_SLOTS;
const ORDER: usize = 1;
const ORDER_WORDS: usize = (LEAF_SLOTS + 3) / 8;
const PAIRS: usize = ORDER + ORDER_WORDS;

/// Entries of a full inner node: four groups of eight, less one.
pub(super) const INNER_SLOTS: usize = 4 * GROUP - 1;
const GROUP: usize = 8;
const INNER_WORDS: usize = INNER_B + INNER_SLOTS;
const INNER_LEN: usize = 1;
const INNER_A: usize = 2;
const CHILDREN: usize = INNER_A + INNER_SLOTS;
const INNER_B: usize = CHILDREN + INNER_SLOTS + 1;

const _: () = assert!(LEAF_SLOTS + 3 == 8 * ORDER_WORDS, "the order has no bytes to spare");

/// Words of a cache line.
const LINE_WORDS: usize = 8;

/// `a` where no entry is: not smaller than any key's (I-FREE).
const FREE: u64 = u64::MAX;

/// Entries of a full node.
#[inline]
pub(super) fn slots(level: usize) -> usize {
    if level == LEAF { LEAF_SLOTS } else { INNER_SLOTS }
}

#[inline]
fn words_of(level: usize) -> usize {
    if level == LEAF { LEAF_WORDS } else { INNER_WORDS }
}

/// The word of a slot's `a`.
#[inline]
fn a_of(level: usize, slot: usize) -> usize {
    if level == LEAF { PAIRS + 2 * slot } else { INNER_A + slot }
}

/// The word of a slot's `b`.
#[inline]
fn b_of(level: usize, slot: usize) -> usize {
    if level == LEAF { PAIRS + 2 * slot + 1 } else { INNER_B + slot }
}

/// The word with the number of entries and the level.
#[inline]
fn len_of(level: usize) -> usize {
    if level == LEAF { ORDER + ORDER_WORDS - 1 } else { INNER_LEN }
}

/// The level of an object of so many words, if it is a node.
pub(super) fn level_of(view: &impl View, id: ObjectId, words: usize) -> Result<Option<usize>> {
    let object = view.object(id, words)?;
    if type_of(object.first().map_or(0, load)) != ObjectType::BTREE_NODE {
        return Ok(None);
    }
    Ok(match words {
        LEAF_WORDS => Some(LEAF),
        INNER_WORDS => {
            Some((load(&object[INNER_LEN]) >> 48) as u8 as usize).filter(|level| *level > LEAF)
        }
        _ => None,
    })
}

/// A node as an operation sees it. It has at least one entry, and at most [`slots`].
#[derive(Clone, Copy)]
pub(super) struct Node<'v> {
    pub(super) id: ObjectId,
    pub(super) level: usize,
    pub(super) len: usize,
    /// As many as nodes of the level have.
    words: &'v [Word],
}

impl<'v> Node<'v> {
    /// # Errors
    /// [`Error::Corrupt`] where no node can be, or one without entries.
    // Inlined, as are all steps of a search: a node on the stack costs more than a look at it.
    #[inline(always)]
    pub(super) fn read(view: &'v impl View, id: ObjectId, level: usize) -> Result<Node<'v>> {
        let words = view.object(id, words_of(level))?;
        let len = words.get(len_of(level)).map_or(0, |word| load(word) >> 56) as usize;
        if len.wrapping_sub(1) >= slots(level) {
            return Err(wrong_len(id, len));
        }
        Ok(Node { id, level, len, words })
    }

    /// How many `a` are smaller than `head`. By I-FREE those of no entry count for nothing.
    #[inline(always)]
    pub(super) fn count_below(&self, head: u64) -> usize {
        let below = |word: &Word| usize::from(load(word) < head);
        if self.level == LEAF {
            let Some(words) = self.words.first_chunk::<LEAF_WORDS>() else { return 0 };
            return (0..LEAF_SLOTS).map(|slot| below(&words[a_of(LEAF, slot)])).sum();
        }
        let Some(words) = self.words.first_chunk::<INNER_WORDS>() else { return 0 };
        let group: usize = (1..4).map(|group| below(&words[INNER_A + group * GROUP - 1])).sum();
        let begin = group * GROUP;
        let within = words.get(INNER_A + begin..).and_then(|a| a.first_chunk::<{ GROUP - 1 }>());
        begin + within.map_or(0, |a| a.iter().map(below).sum())
    }

    /// The slot of the entry of a rank.
    #[inline(always)]
    pub(super) fn slot(&self, rank: usize) -> usize {
        if self.level != LEAF {
            return rank;
        }
        let word = self.words.get(ORDER + rank / 8).map_or(0, load);
        (word >> (rank % 8 * 8)) as u8 as usize
    }

    /// A word; zero where a damaged order leads beyond the node: `check` tells, a reader need not.
    #[inline(always)]
    fn word(&self, index: usize) -> u64 {
        self.words.get(index).map_or(0, load)
    }

    #[inline(always)]
    pub(super) fn a(&self, rank: usize) -> u64 {
        self.word(a_of(self.level, self.slot(rank)))
    }

    #[inline(always)]
    pub(super) fn entry(&self, rank: usize) -> Entry {
        let slot = self.slot(rank);
        Entry { a: self.word(a_of(self.level, slot)), b: self.word(b_of(self.level, slot)) }
    }

    /// The child in front of the entry of a rank, or behind all entries; none of a leaf.
    #[inline(always)]
    pub(super) fn child(&self, rank: usize) -> ObjectId {
        match self.level {
            LEAF => ObjectId::NULL,
            _ => ObjectId::new(self.word(CHILDREN + rank)),
        }
    }

    /// Has a child's cache lines fetched: a walk comes there when it is through with another child.
    #[inline]
    pub(super) fn prefetch_child(&self, view: &impl View, rank: usize) {
        if rank <= self.len
            && let Ok(words) = view.object(self.child(rank), LEAF_WORDS)
        {
            for line in words.chunks(LINE_WORDS) {
                prefetch_line(line.as_ptr().cast());
            }
        }
    }

    /// The place of the entry of a rank.
    pub(super) fn place(&self, rank: usize) -> Place {
        Place { node: self.id, slot: self.level << 8 | self.slot(rank) }
    }

    /// # Errors
    /// [`Error::Corrupt`] for whatever no change leaves behind.
    pub(super) fn check(&self) -> Result<()> {
        let corrupt = |what: &str| Err(Error::corrupt(self.id.index(), what));
        if type_of(self.word(0)) != ObjectType::BTREE_NODE {
            return corrupt("no node of a B-tree is there");
        }
        if !Order::read(self.words, self.level).is_sound(self.level) {
            return corrupt("the order of a node is none");
        }
        match (self.len..slots(self.level)).all(|rank| self.a(rank) == FREE) {
            true => Ok(()),
            false => corrupt("a free slot of a node looks like an entry"),
        }
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
        let order = Order::read(edit.words(), level);
        if !order.is_sound(level) {
            return Err(Error::corrupt(id.index(), "the order of a node is none"));
        }
        Ok(NodeEdit { id, level, edit, order })
    }

    /// Makes a node without entries.
    pub(super) fn make(tx: &'t Transaction<'_>, level: usize) -> Result<NodeEdit<'t>> {
        let (id, edit) = tx.make(ObjectType::BTREE_NODE, words_of(level))?;
        let order = Order::empty(level);
        for (index, word) in order.words_of(level).iter().enumerate() {
            edit.set(ORDER + index, *word);
        }
        for slot in 0..slots(level) {
            edit.set(a_of(level, slot), FREE);
        }
        Ok(NodeEdit { id, level, edit, order })
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.order.len(self.level)
    }

    #[inline]
    fn slot(&self, rank: usize) -> usize {
        if self.level == LEAF { self.order.slot(rank) } else { rank }
    }

    pub(super) fn entry(&self, rank: usize) -> Entry {
        let slot = self.slot(rank);
        Entry { a: self.edit.get(a_of(self.level, slot)), b: self.edit.get(b_of(self.level, slot)) }
    }

    /// The child in front of the entry of a rank, or behind all entries; none of a leaf.
    pub(super) fn child(&self, rank: usize) -> ObjectId {
        match self.level {
            LEAF => ObjectId::NULL,
            _ => ObjectId::new(self.edit.get(CHILDREN + rank)),
        }
    }

    pub(super) fn set_child(&mut self, rank: usize, child: ObjectId) {
        if self.level != LEAF {
            self.edit.set(CHILDREN + rank, child.word());
        }
    }

    #[inline]
    fn set_slot(&self, slot: usize, entry: Entry) {
        self.edit.set(a_of(self.level, slot), entry.a);
        self.edit.set(b_of(self.level, slot), entry.b);
    }

    /// Puts an entry, with the child behind it, in front of that of a rank.
    #[inline]
    pub(super) fn insert(&mut self, rank: usize, entry: Entry, right: ObjectId) {
        if self.level == LEAF {
            let slot = self.order.insert(rank);
            self.set_slot(slot, entry);
        } else {
            let len = self.len();
            for rank in (rank..len).rev() {
                self.set_slot(rank + 1, self.entry(rank));
                self.set_child(rank + 2, self.child(rank + 1));
            }
            self.set_slot(rank, entry);
            self.set_child(rank + 1, right);
            self.order.set_len(self.level, len + 1);
        }
        self.write_order();
    }

    /// Takes an entry out, with the child behind it.
    #[inline]
    pub(super) fn remove(&mut self, rank: usize) {
        if self.level == LEAF {
            let slot = self.order.remove(rank);
            self.edit.set(a_of(LEAF, slot), FREE);
        } else {
            let last = self.len() - 1;
            for rank in rank..last {
                self.set_slot(rank, self.entry(rank + 1));
                self.set_child(rank + 1, self.child(rank + 2));
            }
            self.edit.set(a_of(self.level, last), FREE);
            self.order.set_len(self.level, last);
        }
        self.write_order();
    }

    /// Takes all entries from a rank on out, with the children behind them.
    pub(super) fn truncate(&mut self, len: usize) {
        for rank in len..self.len() {
            self.edit.set(a_of(self.level, self.slot(rank)), FREE);
        }
        self.order.set_len(self.level, len);
        self.write_order();
    }

    /// Gives a rank another entry; children stay.
    pub(super) fn replace(&mut self, rank: usize, entry: Entry) {
        self.set_slot(self.slot(rank), entry);
    }

    /// Gives the entry of a place, which has the same key, another second word.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the node has no such slot.
    pub(super) fn set_b(tx: &Transaction<'_>, place: Place, b: u64) -> Result<()> {
        let (level, slot) = (place.slot >> 8, place.slot & 0xff);
        if slot >= slots(level) {
            return Err(Error::corrupt(place.node.index(), "a node has no such slot"));
        }
        tx.edit(place.node, words_of(level))?.set(b_of(level, slot), b);
        Ok(())
    }

    /// What is set is logged: words of the order that stay the same are left alone.
    #[inline]
    fn write_order(&self) {
        for (index, word) in self.order.words_of(self.level).iter().enumerate() {
            if self.edit.get(ORDER + index) != *word {
                self.edit.set(ORDER + index, *word);
            }
        }
    }
}

/// The slots of a leaf, by the ranks of their entries, then free ones; the level of a node, and how
/// many entries it has. That of an inner node is its first word alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Order {
    words: [u64; ORDER_WORDS],
}

impl Order {
    fn empty(level: usize) -> Order {
        let mut words = [0; ORDER_WORDS];
        if level == LEAF {
            for slot in 0..LEAF_SLOTS {
                words[slot / 8] |= (slot as u64) << (slot % 8 * 8);
            }
        }
        words[len_of(level) - ORDER] |= (level as u64) << 48;
        Order { words }
    }

    #[inline]
    fn read(node: &[Word], level: usize) -> Order {
        let mut words = [0; ORDER_WORDS];
        let count = if level == LEAF { ORDER_WORDS } else { 1 };
        for (word, found) in words.iter_mut().zip(&node[ORDER..]).take(count) {
            *word = load(found);
        }
        Order { words }
    }

    /// Those that a node of a level has.
    #[inline]
    fn words_of(&self, level: usize) -> &[u64] {
        if level == LEAF { &self.words } else { &self.words[..1] }
    }

    #[inline]
    fn len(&self, level: usize) -> usize {
        (self.words[len_of(level) - ORDER] >> 56) as usize
    }

    #[inline]
    fn set_len(&mut self, level: usize, len: usize) {
        let word = &mut self.words[len_of(level) - ORDER];
        *word = *word & (u64::MAX >> 8) | (len as u64) << 56;
    }

    #[inline]
    fn slot(&self, rank: usize) -> usize {
        (self.words[rank / 8] >> (rank % 8 * 8)) as u8 as usize
    }

    /// Whether each slot is there once, and the rest is as it should be.
    #[inline]
    fn is_sound(&self, level: usize) -> bool {
        let rest = self.words[len_of(level) - ORDER] << 8;
        if level != LEAF {
            return rest == (level as u64) << 56 && self.len(level) <= INNER_SLOTS;
        }
        let mut seen = 0u64;
        for rank in 0..LEAF_SLOTS {
            seen |= 1u64.checked_shl(self.slot(rank) as u32).unwrap_or(0);
        }
        seen == (1 << LEAF_SLOTS) - 1
            && rest >> 48 == (LEAF as u64) << 8
            && self.len(LEAF) <= LEAF_SLOTS
    }

    /// Gives an entry of a rank a free slot.
    #[inline]
    fn insert(&mut self, rank: usize) -> usize {
        let len = self.len(LEAF);
        debug_assert!(rank <= len && len < LEAF_SLOTS, "a free slot");
        let slot = self.slot(len);
        let mut coming = slot as u64;
        for index in rank / 8..=len / 8 {
            let bytes = Bytes::within(index, rank, len);
            coming = bytes.rise(&mut self.words[index], coming);
        }
        self.set_len(LEAF, len + 1);
        slot
    }

    /// Makes the slot of a rank free.
    #[inline]
    fn remove(&mut self, rank: usize) -> usize {
        let last = self.len(LEAF) - 1;
        debug_assert!(rank <= last, "an entry");
        let slot = self.slot(rank);
        let mut coming = slot as u64;
        for index in (rank / 8..=last / 8).rev() {
            let bytes = Bytes::within(index, rank, last);
            coming = bytes.fall(&mut self.words[index], coming);
        }
        self.set_len(LEAF, last);
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

/// The words of a leaf and of an inner node, for the table of bytes.
#[cfg(test)]
pub(crate) fn layout() -> [Vec<crate::object::LayoutRow>; 2] {
    let word = |at: usize| at as u32;
    assert_eq!(PAIRS + 2 * LEAF_SLOTS, words_of(LEAF));
    assert_eq!(INNER_B + INNER_SLOTS, words_of(LEAF + 1));
    [
        vec![
            (0, 1, "header", "type 0xff02"),
            (
                word(ORDER),
                word(ORDER_WORDS),
                "order",
                "slots by rank, a byte each; zero, level, entries",
            ),
            (
                word(PAIRS),
                word(2 * LEAF_SLOTS),
                "entries",
                "a and b of each slot; a is all ones where none is",
            ),
        ],
        vec![
            (0, 1, "header", "type 0xff02"),
            (word(INNER_LEN), 1, "length", "entries, level, a byte each; zeros"),
            (word(INNER_A), word(INNER_SLOTS), "a", "of each entry in order; all ones behind"),
            (word(CHILDREN), word(INNER_SLOTS + 1), "children", "names of nodes"),
            (word(INNER_B), word(INNER_SLOTS), "b", "of each entry in order"),
        ],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_changes_as_a_list_of_slots_does() {
        let mut order = Order::empty(LEAF);
        let mut list: Vec<usize> = (0..LEAF_SLOTS).collect();
        let mut len = 0;
        let mut seed = 1u64;
        for _ in 0..10_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = (seed >> 33) as usize;
            if len < LEAF_SLOTS && (len == 0 || seed >> 63 == 0) {
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
            assert_eq!((0..LEAF_SLOTS).map(|rank| order.slot(rank)).collect::<Vec<_>>(), list);
            assert_eq!(order.len(LEAF), len);
            assert!(order.is_sound(LEAF) && !order.is_sound(LEAF + 1));
        }
    }
}
