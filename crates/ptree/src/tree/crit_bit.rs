//! Crit-bit trees: a binary trie with one node for each position at which keys differ.
//!
//! A node says at which bit, the *critical* one, the keys below it differ first, and leads to those
//! that have a 0 there and those that have a 1 (Morrison: "PATRICIA: practical algorithm to retrieve
//! information coded in alphanumeric", JACM 1968; Bernstein: "Crit-bit trees", 2004). A way down
//! looks at bits, and at one whole key, at its end. Nothing is ever balanced.
//!
//! As in Morrison's form a node has an entry, too, which has nothing to do with its bit, so that `n`
//! entries take `n` nodes and not `2n - 1`. A way down ends at a *leaf link*, which says: the entry
//! of this node.
//!
//! ```text
//! node: header | left | right | a | b
//!
//!  63    62        48 47               0
//! +------+-----------+------------------+
//! | leaf | position  | name of the node |   left has the low 15 bits of the node's own position,
//! +------+-----------+------------------+   right those above
//! ```
//!
//! # Invariants
//! - I-RISE: positions rise on every way down.
//! - I-BELOW: the leaf link to a node is in the node itself or below it. So the entry at the end of
//!   a way down lies in memory that was just looked at.
//! - I-BASE: one node, the *base*, has an entry alone: no link leads to it but its leaf link.
//!
//! # Positions
//! In layout `Fixed` the bits of the key, the highest first. In layout `Bytes` 16 numbers for each
//! byte: the first says that there is a byte, then its bits follow. So a key that is the beginning
//! of another differs from it where it ends, and comes first.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Bound;

use sapwood_engine::Direction;
use smallvec::SmallVec;

use super::entry::{Entry, Probe, TreeLayout};
use super::structure::{Flow, Head, Inserted, Looks, Part, Place, Reached, Structure};
use crate::error::{Error, Result};
use crate::object::{ObjectId, ObjectType, load, type_of};
use crate::transaction::{Edit, Transaction};
use crate::view::View;

const LEFT: usize = 1;
const A: usize = 3;
const B: usize = 4;
const NODE_WORDS: usize = 5;

/// The crit-bit tree.
pub(crate) struct CritBit;

/// The number of a bit of a key.
type Position = u32;
/// The number behind those of all bits: 65,535 bytes of 16 numbers each.
const POSITION_LIMIT: Position = 1 << 20;

/// A link without a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link(u64);

impl Link {
    const LEAF: u64 = 1 << 63;
    const POSITION_SHIFT: u32 = 48;
    const POSITION_BITS: u32 = 15;
    const POSITION_MASK: u64 = ((1 << Link::POSITION_BITS) - 1) << Link::POSITION_SHIFT;

    #[inline]
    fn new(word: u64) -> Link {
        Link(word & !Link::POSITION_MASK)
    }

    fn to_node(id: ObjectId) -> Link {
        Link(id.word())
    }

    fn to_entry(id: ObjectId) -> Link {
        Link(id.word() | Link::LEAF)
    }

    #[inline]
    fn is_leaf(self) -> bool {
        self.0 & Link::LEAF != 0
    }

    #[inline]
    fn id(self) -> ObjectId {
        ObjectId::new(self.0 & !Link::LEAF)
    }

    /// The word with this link that a node of a position has on a side.
    fn at(self, side: usize, position: Position) -> u64 {
        let part = u64::from(position) >> (side as u32 * Link::POSITION_BITS);
        self.0 | part << Link::POSITION_SHIFT & Link::POSITION_MASK
    }
}

/// What a link leads to, and the position above it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subtree {
    link: Link,
    above: Option<Position>,
}

/// What a node is besides its entry.
#[derive(Debug, Clone, Copy)]
struct Fork {
    position: Position,
    links: [u64; 2],
}

impl Fork {
    /// The fork of a node below one of `above`.
    #[inline]
    fn read(view: &impl View, id: ObjectId, above: Option<Position>) -> Result<Fork> {
        let words = view.object(id, NODE_WORDS)?;
        let links = [load(&words[LEFT]), load(&words[LEFT + 1])];
        let part = |word: u64| (word & Link::POSITION_MASK) >> Link::POSITION_SHIFT;
        let position = (part(links[0]) | part(links[1]) << Link::POSITION_BITS) as Position;
        if above.is_some_and(|above| position <= above) || position >= POSITION_LIMIT {
            return Err(no_rise(id));
        }
        Ok(Fork { position, links })
    }

    #[inline]
    fn link(&self, side: usize) -> Link {
        Link::new(self.links[side & 1])
    }
}

#[cold]
fn no_rise(id: ObjectId) -> Error {
    Error::corrupt(id.index(), "a crit-bit tree's positions do not rise")
}

/// The bit of a key at a position.
#[inline]
fn bit(layout: TreeLayout, key: Probe<'_>, position: Position) -> usize {
    match layout {
        TreeLayout::Fixed => (key.head >> (63 - position.min(63)) & 1) as usize,
        TreeLayout::Bytes => {
            let byte = key.key.get(position as usize / 16);
            byte.map_or(0, |&byte| (0x100 | usize::from(byte)) >> (8 - (position % 16).min(8)) & 1)
        }
    }
}

/// The first position at which a key and that of an entry differ; none if they are the same.
fn difference(
    layout: TreeLayout,
    view: &impl View,
    key: Probe<'_>,
    entry: Entry,
) -> Result<Option<Position>> {
    let differing = key.head ^ entry.a;
    let in_head = (differing != 0).then(|| differing.leading_zeros() as usize);
    if layout == TreeLayout::Fixed {
        return Ok(in_head.map(|bit| bit as Position));
    }
    let shorter = key.key.len().min(entry.key_len());
    let mut first = in_head;
    if first.is_none() && shorter > 8 {
        let words = key.rest().chunks(8).map(super::entry::key_word).zip(entry.rest(view)?);
        first = words
            .map(|(of_key, word)| of_key ^ load(word))
            .enumerate()
            .find(|&(_, differing)| differing != 0)
            .map(|(index, differing)| (index + 1) * 64 + differing.leading_zeros() as usize);
    }
    // Behind its end a key has zeros, which are not bytes of it.
    let position = match first.filter(|bit| bit / 8 < shorter) {
        Some(bit) => bit / 8 * 16 + 1 + bit % 8,
        None if key.key.len() == entry.key_len() => return Ok(None),
        None => shorter * 16,
    };
    Ok(Some(position as Position))
}

fn entry_at(view: &impl View, id: ObjectId) -> Result<Entry> {
    let words = view.object(id, NODE_WORDS)?;
    Ok(Entry { a: load(&words[A]), b: load(&words[B]) })
}

/// A node on a way down, and the side on which the way left it.
#[derive(Debug, Clone, Copy)]
struct Step {
    id: ObjectId,
    side: usize,
}

type Path = SmallVec<[Step; 64]>;

/// The node that has the entry at the end of a key's way down; each step is told.
#[inline]
fn descend(
    view: &impl View,
    head: &Head,
    key: Probe<'_>,
    mut step: impl FnMut(Step),
) -> Result<ObjectId> {
    let mut link = Link::new(head.root);
    let mut above = None;
    while !link.is_leaf() {
        let id = link.id();
        let fork = Fork::read(view, id, above)?;
        let side = bit(head.layout, key, fork.position);
        step(Step { id, side });
        link = fork.link(side);
        above = Some(fork.position);
    }
    Ok(link.id())
}

/// The entry at the end of a key's way down, if it is of this key, and its node.
#[inline]
fn look(
    view: &impl View,
    head: &Head,
    key: Probe<'_>,
    step: impl FnMut(Step),
) -> Result<Option<(ObjectId, Entry)>> {
    if head.root == 0 {
        return Ok(None);
    }
    let id = descend(view, head, key, step)?;
    let entry = entry_at(view, id)?;
    let is_same = head.layout.compare(view, key, entry)? == Ordering::Equal;
    Ok(is_same.then_some((id, entry)))
}

/// Gives the node at the end of a path another link in place of the one that the path took; the
/// root without a node.
fn relink(tx: &Transaction<'_>, head: &mut Head, from: Option<&Step>, link: Link) -> Result<()> {
    let Some(step) = from else { return head.set_root(tx, link.0) };
    let node = tx.edit(step.id, NODE_WORDS)?;
    let position = node.get(LEFT + step.side) & Link::POSITION_MASK;
    node.set(LEFT + step.side, link.0 | position);
    Ok(())
}

fn make_node<'t>(
    tx: &'t Transaction<'_>,
    entry: Entry,
    fork: Option<Fork>,
) -> Result<(ObjectId, Edit<'t>)> {
    let (id, node) = tx.make(ObjectType::CRIT_BIT_NODE, NODE_WORDS)?;
    set_fork(node, fork, id);
    node.set(A, entry.a);
    node.set(B, entry.b);
    Ok((id, node))
}

/// Sets the links of a node; a link of zero stands for that to its own entry.
fn set_fork(node: Edit<'_>, fork: Option<Fork>, id: ObjectId) {
    for side in [0, 1] {
        let word = fork.map_or(0, |fork| match fork.links[side] {
            0 => Link::to_entry(id).at(side, fork.position),
            link => Link(link).at(side, fork.position),
        });
        node.set(LEFT + side, word);
    }
}

impl Structure for CritBit {
    type Subtree = Subtree;
    const LOOKS: Looks = Looks { pieces: 64, ways: 2 };

    #[inline]
    fn find(view: &impl View, head: &Head, key: Probe<'_>) -> Result<Option<Entry>> {
        Ok(look(view, head, key, |_| {})?.map(|(_, entry)| entry))
    }

    fn place(tx: &Transaction<'_>, head: &Head, key: Probe<'_>) -> Result<Option<(Place, Entry)>> {
        let found = look(tx, head, key, |_| {})?;
        Ok(found.map(|(node, entry)| (Place { node, slot: 0 }, entry)))
    }

    fn insert(
        tx: &Transaction<'_>,
        head: &mut Head,
        key: Probe<'_>,
        make: impl FnOnce() -> Result<Entry>,
    ) -> Result<Inserted> {
        if head.root == 0 {
            let entry = make()?;
            return tx.nested(|tx| {
                let (id, _) = make_node(tx, entry, None)?;
                head.set_root(tx, Link::to_entry(id).0)?;
                head.count_up(tx)?;
                Ok(Inserted::New)
            });
        }
        let mut path = Path::new();
        let node = descend(tx, head, key, |step| path.push(step))?;
        let near = entry_at(tx, node)?;
        let Some(position) = difference(head.layout, tx, key, near)? else {
            return Ok(Inserted::There(Place { node, slot: 0 }, near));
        };
        // The new fork comes above those of later bits: for most keys, a step or two up.
        let mut below = Link::to_entry(node);
        while let Some(step) = path.last() {
            let fork = Fork::read(tx, step.id, None)?;
            if fork.position == position {
                return Err(no_rise(step.id));
            }
            if fork.position < position {
                break;
            }
            below = Link::to_node(step.id);
            path.pop();
        }
        let entry = make()?;
        let mut links = [0; 2];
        links[1 - bit(head.layout, key, position)] = below.0;
        tx.nested(|tx| {
            let (id, _) = make_node(tx, entry, Some(Fork { position, links }))?;
            relink(tx, head, path.last(), Link::to_node(id))?;
            head.count_up(tx)?;
            Ok(Inserted::New)
        })
    }

    fn set(tx: &Transaction<'_>, _head: &Head, place: Place, entry: Entry) -> Result<()> {
        tx.edit(place.node, NODE_WORDS)?.set(B, entry.b);
        Ok(())
    }

    fn remove(tx: &Transaction<'_>, head: &mut Head, key: Probe<'_>) -> Result<Option<Entry>> {
        let mut path = Path::new();
        let Some((node, entry)) = look(tx, head, key, |step| path.push(step))? else {
            return Ok(None);
        };
        tx.nested(|tx| {
            unlink(tx, head, &path, node)?;
            tx.free(node)?;
            head.count_down(tx)?;
            Ok(Some(entry))
        })
    }

    fn walk(
        view: &impl View,
        head: &Head,
        from: Bound<Probe<'_>>,
        direction: Direction,
        tell: &mut dyn FnMut(Entry) -> Result<Flow>,
    ) -> Result<()> {
        if head.root == 0 {
            return Ok(());
        }
        let first = match direction {
            Direction::Ascending => 0,
            Direction::Descending => 1,
        };
        let mut ahead = match from {
            Bound::Unbounded => Ahead::from_slice(&[(Link::new(head.root), None)]),
            Bound::Included(key) => ahead_of(view, head, key, first, Own::Told)?,
            Bound::Excluded(key) => ahead_of(view, head, key, first, Own::Skipped)?,
        };
        let mut told = 0;
        while let Some((mut link, mut above)) = ahead.pop() {
            while !link.is_leaf() {
                let fork = Fork::read(view, link.id(), above)?;
                above = Some(fork.position);
                ahead.push((fork.link(1 - first), above));
                link = fork.link(first);
            }
            told += 1;
            if told > head.count {
                return Err(too_many(head));
            }
            if tell(entry_at(view, link.id())?)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn check(
        view: &impl View,
        head: &Head,
        node: &mut dyn FnMut(ObjectId) -> Result<()>,
        entry: &mut dyn FnMut(Entry) -> Result<()>,
    ) -> Result<()> {
        let mut told = 0;
        if head.root != 0 {
            let mut base = None;
            let mut open: Vec<Open> = Vec::new();
            let mut last: Option<(Vec<u8>, Position)> = None;
            let mut next = Some(Link::new(head.root));
            while let Some(mut link) = next {
                while !link.is_leaf() {
                    let id = link.id();
                    let above = open.last().map(|above| above.fork.position);
                    let fork = Fork::read(view, id, above)?;
                    open.push(Open { id, fork, turned: Turned::NotYet });
                    link = fork.link(0);
                }
                told += 1;
                if told > head.count {
                    return Err(too_many(head));
                }
                let id = link.id();
                check_leaf(view, head, id, last.as_ref())?;
                if !open.iter().rev().any(|above| above.id == id) {
                    if let Some(other) = base.replace(id) {
                        let what = format!("neither it nor node {other} is above its own entry");
                        return Err(Error::corrupt(id.index(), what));
                    }
                    node(id)?;
                }
                let found = entry_at(view, id)?;
                let mut key = last.take().map_or_else(Vec::new, |(key, _)| key);
                head.layout.check_key_of(view, found, &mut key)?;
                entry(found)?;
                next = None;
                while let Some(above) = open.last_mut() {
                    if above.turned == Turned::NotYet {
                        above.turned = Turned::Right;
                        last = Some((key, above.fork.position));
                        next = Some(above.fork.link(1));
                        break;
                    }
                    node(above.id)?;
                    open.pop();
                }
            }
        }
        match told == head.count {
            true => Ok(()),
            false => Err(Error::corrupt(
                head.id.index(),
                format!("a crit-bit tree has {told} entries and counts {}", head.count),
            )),
        }
    }

    /// A node's own entry belongs to the tree, whether or not the way to its leaf link is damaged.
    fn reach(view: &impl View, head: &Head, tell: &mut dyn FnMut(Reached)) {
        if head.root == 0 {
            return;
        }
        let mut told = HashSet::new();
        let mut forks = HashSet::new();
        let mut open = vec![Link::new(head.root)];
        while let Some(link) = open.pop() {
            if let Err(error) = reach_node(view, link, &mut told, &mut forks, &mut open, tell) {
                tell(Reached::Nothing(error));
            }
        }
    }

    fn whole(head: &Head) -> Result<Option<Subtree>> {
        Ok((head.root != 0).then_some(Subtree { link: Link::new(head.root), above: None }))
    }

    /// An entry is no subtree: a way down that has met it goes on at the other side.
    fn parts(
        view: &impl View,
        subtree: Subtree,
        tell: &mut impl FnMut(Part<Subtree>),
    ) -> Result<()> {
        let Subtree { link, above } = subtree;
        if link.is_leaf() {
            tell(Part::Entry(entry_at(view, link.id())?));
            return Ok(());
        }
        let fork = Fork::read(view, link.id(), above)?;
        for side in [0, 1] {
            let link = fork.link(side);
            tell(match link.is_leaf() {
                true => Part::Entry(entry_at(view, link.id())?),
                false => Part::Subtree(Subtree { link, above: Some(fork.position) }),
            });
        }
        Ok(())
    }

    fn top(subtree: Subtree) -> ObjectId {
        subtree.link.id()
    }

    fn entry_in(view: &impl View, id: ObjectId, words: usize) -> Result<Option<Entry>> {
        let is_node = words == NODE_WORDS
            && type_of(load(&view.object(id, NODE_WORDS)?[0])) == ObjectType::CRIT_BIT_NODE;
        is_node.then(|| entry_at(view, id)).transpose()
    }

    fn part_of(view: &impl View, head: &Head, subtree: Subtree, key: Probe<'_>) -> Result<usize> {
        if subtree.link.is_leaf() {
            return Ok(0);
        }
        let fork = Fork::read(view, subtree.link.id(), subtree.above)?;
        Ok(bit(head.layout, key, fork.position))
    }

    fn build(
        tx: &Transaction<'_>,
        head: &mut Head,
        entries: &mut dyn Iterator<Item = Result<Entry>>,
    ) -> Result<()> {
        tx.nested(|tx| build(tx, head, entries))
    }
}

/// Takes the entry of a node, to which a path leads, and the node, out of the tree.
///
/// The entry's leaf link goes with the fork that has it, and that fork's other side takes the
/// fork's place. The fork's node has an entry itself, which stays: so the node takes over the fork
/// of the node that goes.
fn unlink(tx: &Transaction<'_>, head: &mut Head, path: &[Step], node: ObjectId) -> Result<()> {
    let Some((last, above)) = path.split_last() else { return head.set_root(tx, 0) };
    let other = Fork::read(tx, last.id, None)?.link(1 - last.side);
    let Some(at) = path.iter().rposition(|step| step.id == node) else {
        // The base: the fork's node is it from now on.
        relink(tx, head, above.last(), other)?;
        let base = tx.edit(last.id, NODE_WORDS)?;
        set_fork(base, None, last.id);
        return Ok(());
    };
    relink(tx, head, above.last(), other)?;
    if at < above.len() {
        let words = tx.object(node, NODE_WORDS)?;
        let heir = tx.edit(last.id, NODE_WORDS)?;
        for word in [LEFT, LEFT + 1] {
            heir.set(word, load(&words[word]));
        }
        relink(tx, head, path[..at].last(), Link::to_node(last.id))?;
    }
    Ok(())
}

/// Links that a walk has yet to follow, the next one last, and the positions above them.
type Ahead = SmallVec<[(Link, Option<Position>); 64]>;

/// What a walk does with the entry of the key that it begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Told,
    Skipped,
}

/// What lies ahead of a key, for a walk that takes side `first` first.
fn ahead_of(
    view: &impl View,
    head: &Head,
    key: Probe<'_>,
    first: usize,
    own: Own,
) -> Result<Ahead> {
    let near = entry_at(view, descend(view, head, key, |_| {})?)?;
    let differing = difference(head.layout, view, key, near)?;
    let limit = differing.unwrap_or(POSITION_LIMIT);
    let mut ahead = Ahead::new();
    let mut link = Link::new(head.root);
    let mut above = None;
    while !link.is_leaf() {
        let fork = Fork::read(view, link.id(), above)?;
        if fork.position > limit {
            break;
        }
        above = Some(fork.position);
        let side = bit(head.layout, key, fork.position);
        if side == first {
            ahead.push((fork.link(1 - first), above));
        }
        link = fork.link(side);
    }
    // All that is below differs from the key at the same position, if it does.
    let is_ahead = match differing {
        Some(position) => bit(head.layout, key, position) == first,
        None => own == Own::Told,
    };
    if is_ahead {
        ahead.push((link, above));
    }
    Ok(ahead)
}

#[cold]
fn too_many(head: &Head) -> Error {
    Error::corrupt(head.id.index(), "a crit-bit tree has more entries than it counts")
}

/// Whether a check has gone to the right of a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turned {
    NotYet,
    Right,
}

/// A fork above a check.
#[derive(Debug, Clone, Copy)]
struct Open {
    id: ObjectId,
    fork: Fork,
    turned: Turned,
}

/// Checks a node, and that its key differs from the one before it at the fork between them, where
/// it has the 1. If all do, and positions rise, every key has on its whole way down the bits that
/// led there.
fn check_leaf(
    view: &impl View,
    head: &Head,
    id: ObjectId,
    last: Option<&(Vec<u8>, Position)>,
) -> Result<()> {
    let header = load(&view.object(id, NODE_WORDS)?[0]);
    if type_of(header) != ObjectType::CRIT_BIT_NODE {
        return Err(Error::corrupt(id.index(), "no node of a crit-bit tree is there"));
    }
    let Some((key, between)) = last else { return Ok(()) };
    let key = Probe::new(key);
    let differing = difference(head.layout, view, key, entry_at(view, id)?)?;
    match differing == Some(*between) && bit(head.layout, key, *between) == 0 {
        true => Ok(()),
        false => Err(Error::corrupt(id.index(), "a crit-bit tree's key is not where it leads")),
    }
}

/// A step of [`CritBit::reach`]: tells the entry of a node, and opens what a link to it leads to.
fn reach_node(
    view: &impl View,
    link: Link,
    told: &mut HashSet<ObjectId>,
    forks: &mut HashSet<ObjectId>,
    open: &mut Vec<Link>,
    tell: &mut dyn FnMut(Reached),
) -> Result<()> {
    let id = link.id();
    let wrong = || Error::corrupt(id.index(), "a link of a crit-bit tree is wrong");
    if type_of(load(&view.object(id, NODE_WORDS)?[0])) != ObjectType::CRIT_BIT_NODE {
        return Err(wrong());
    }
    if told.insert(id) {
        tell(Reached::Entry(entry_at(view, id)?));
    }
    if !link.is_leaf() {
        if !forks.insert(id) {
            return Err(wrong());
        }
        let fork = Fork::read(view, id, None)?;
        open.extend([fork.link(1), fork.link(0)]);
    }
    Ok(())
}

/// Builds a tree from left to right: a new fork takes in, as its left side, those on the tree's
/// right edge that are of later bits (Vuillemin: "A unifying look at data structures", CACM 1980).
fn build<'t>(
    tx: &'t Transaction<'_>,
    head: &mut Head,
    entries: &mut dyn Iterator<Item = Result<Entry>>,
) -> Result<()> {
    let Some(first) = entries.next().transpose()? else { return Ok(()) };
    let (mut last, _) = make_node(tx, first, None)?;
    let mut edge: Vec<(ObjectId, Edit<'t>, Position)> = Vec::new();
    let mut root = Link::to_entry(last);
    let mut key = Vec::new();
    head.layout.read_key(tx, first, &mut key)?;
    let mut count = 1;
    for entry in entries {
        let entry = entry?;
        count += 1;
        let differing = difference(head.layout, tx, Probe::new(&key), entry)?;
        let Some(position) = differing else {
            return Err(Error::corrupt(last.index(), "a key came twice"));
        };
        let mut below = Link::to_entry(last);
        while let Some((id, ..)) = edge.pop_if(|(.., above)| *above > position) {
            below = Link::to_node(id);
        }
        let (id, node) = make_node(tx, entry, Some(Fork { position, links: [below.0, 0] }))?;
        match edge.last() {
            None => root = Link::to_node(id),
            Some((_, above, position)) => {
                above.set(LEFT + 1, Link::to_node(id).at(1, *position));
            }
        }
        edge.push((id, node, position));
        last = id;
        key.clear();
        head.layout.read_key(tx, entry, &mut key)?;
    }
    head.set_count(tx, count)?;
    head.set_root(tx, root.0)
}

/// The words of a node and the bits of its links, for the table of bytes.
#[cfg(test)]
pub(crate) fn layout() -> [Vec<crate::object::LayoutRow>; 2] {
    let word = |at: usize| at as u32;
    [
        vec![
            (0, 1, "header", "type 0xff03"),
            (word(LEFT), 2, "links", "left, right"),
            (word(A), 1, "a", "of the entry"),
            (word(B), word(NODE_WORDS - B), "b", "of the entry"),
        ],
        vec![
            (0, Link::POSITION_SHIFT, "node", "its name, in words"),
            (
                Link::POSITION_SHIFT,
                Link::POSITION_BITS,
                "position",
                "of this node: left its low bits, right those above",
            ),
            (Link::LEAF.trailing_zeros(), 1, "leaf", "the link leads to the entry of the node"),
        ],
    ]
}
