//! Red-black trees: binary search trees whose longest ways down are at most twice the shortest.
//!
//! Links have colours, as in the original (Guibas and Sedgewick: "A dichromatic framework for
//! balanced trees", FOCS 1978). A black link leads down a level, and a red one to a node of the same
//! level. So most recolouring changes both links of one node, and looks at no other. Insertion and
//! removal follow Cormen et al.: "Introduction to algorithms", chapter 13, without links to parents:
//! a path has them, and they would be one more word to log for each node that moves.
//!
//! ```text
//! node: header | left | right | a | b
//!
//!  63   62            48 47               0
//! +-----+---------------+------------------+
//! | red | zero          | name of the node |   zero: no node
//! +-----+---------------+------------------+
//! ```
//!
//! # Invariants
//! - I-RED: a node that a red link leads to has no red links. The root's link is black.
//! - I-BLACK: all ways down from a node to where none is have as many black links.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Bound;

use sapwood_engine::Direction;
use smallvec::SmallVec;

use super::entry::{Entry, Probe};
use super::structure::{Flow, Head, Inserted, Looks, Part, Place, Reached, Structure};
use crate::error::{Error, Result};
use crate::object::{ObjectId, ObjectType, Word, load, type_of};
use crate::transaction::{Edit, Transaction};
use crate::view::View;

const LEFT: usize = 1;
const A: usize = 3;
const B: usize = 4;
const NODE_WORDS: usize = 5;

/// Nodes of the longest way down: two for each level of a tree of 2^48 nodes.
const HEIGHT_MAX: usize = 96;

/// The red-black tree.
pub(crate) struct RedBlack;

/// A link and its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link(u64);

impl Link {
    const RED: u64 = 1 << 63;
    const NONE: Link = Link(0);

    fn red_to(id: ObjectId) -> Link {
        Link(id.word() | Link::RED)
    }

    #[inline]
    fn id(self) -> ObjectId {
        ObjectId::new(self.0 & !Link::RED)
    }

    #[inline]
    fn is_none(self) -> bool {
        self.id().is_null()
    }

    fn is_red(self) -> bool {
        self.0 & Link::RED != 0
    }

    fn red(self) -> Link {
        Link(self.0 | Link::RED)
    }

    fn black(self) -> Link {
        Link(self.0 & !Link::RED)
    }

    /// The same link in the colour of another.
    fn coloured_as(self, other: Link) -> Link {
        Link(self.0 & !Link::RED | other.0 & Link::RED)
    }
}

#[inline]
fn node_words(view: &impl View, id: ObjectId) -> Result<&[Word]> {
    view.object(id, NODE_WORDS)
}

#[inline]
fn entry_of(words: &[Word]) -> Entry {
    Entry { a: load(&words[A]), b: load(&words[B]) }
}

#[inline]
fn link_of(words: &[Word], side: usize) -> Link {
    Link(load(&words[LEFT + (side & 1)]))
}

fn link_at(view: &impl View, id: ObjectId, side: usize) -> Result<Link> {
    Ok(link_of(node_words(view, id)?, side))
}

/// What a link leads to, and the nodes above it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subtree {
    link: Link,
    depth: usize,
}

/// A node on a way down, the link that led to it, and the side on which the way left it.
#[derive(Debug, Clone, Copy)]
struct Step {
    link: Link,
    side: usize,
}

type Path = SmallVec<[Step; 64]>;

/// The node of a key, if it is there. Each node on the way is told, with its side; that of the key
/// itself is not.
#[inline]
fn descend(
    view: &impl View,
    head: &Head,
    key: Probe<'_>,
    mut step: impl FnMut(Step),
) -> Result<Option<(Link, Entry)>> {
    let mut link = Link(head.root);
    for _ in 0..HEIGHT_MAX {
        if link.is_none() {
            return Ok(None);
        }
        let words = node_words(view, link.id())?;
        let a = load(&words[A]);
        let side = if key.head == a {
            let entry = entry_of(words);
            match head.layout.compare(view, key, entry)? {
                Ordering::Equal => return Ok(Some((link, entry))),
                order => usize::from(order == Ordering::Greater),
            }
        } else {
            usize::from(key.head > a)
        };
        step(Step { link, side });
        link = link_of(words, side);
    }
    Err(too_deep(link.id()))
}

#[cold]
fn too_deep(id: ObjectId) -> Error {
    Error::corrupt(id.index(), "a red-black tree is deeper than any")
}

#[cold]
fn too_many(head: &Head) -> Error {
    Error::corrupt(head.id.index(), "a red-black tree has more entries than it counts")
}

/// Changes a tree along a path.
struct Change<'c, 't> {
    tx: &'c Transaction<'t>,
    head: &'c mut Head,
    path: Path,
}

impl Change<'_, '_> {
    fn link(&self, id: ObjectId, side: usize) -> Result<Link> {
        link_at(self.tx, id, side)
    }

    fn set_link(&self, id: ObjectId, side: usize, link: Link) -> Result<()> {
        self.tx.edit(id, NODE_WORDS)?.set(LEFT + (side & 1), link.0);
        Ok(())
    }

    /// Gives the step at `depth`, or what comes to be there, another link: in its parent, or as the
    /// root.
    fn set_link_to(&mut self, depth: usize, link: Link) -> Result<()> {
        match depth.checked_sub(1) {
            None => self.head.set_root(self.tx, link.black().0),
            Some(above) => {
                let Step { link: parent, side } = self.path[above];
                self.set_link(parent.id(), side, link)
            }
        }
    }

    /// Adds a node at the end of the path.
    fn add(&mut self, node: ObjectId) -> Result<()> {
        let mut depth = self.path.len();
        let mut added = Link::red_to(node);
        self.set_link_to(depth, added)?;
        // I-RED may not hold between `added`, at `depth`, and its parent.
        while depth >= 2 && self.path[depth - 1].link.is_red() {
            let parent = self.path[depth - 1];
            let above = self.path[depth - 2];
            let uncle = self.link(above.link.id(), 1 - above.side)?;
            if !uncle.is_red() {
                return self.rotate_added(depth, added, parent, above);
            }
            let words = self.tx.edit(above.link.id(), NODE_WORDS)?;
            words.set(LEFT + above.side, parent.link.black().0);
            words.set(LEFT + 1 - above.side, uncle.black().0);
            depth -= 2;
            added = above.link.red();
            if depth > 0 {
                self.set_link_to(depth, added)?;
            }
        }
        Ok(())
    }

    /// Makes the middle one of three nodes in a row, with red links, the one above the others.
    fn rotate_added(&mut self, depth: usize, added: Link, parent: Step, above: Step) -> Result<()> {
        let (outer, inner) = (above.side, 1 - above.side);
        if parent.side == outer {
            let between = self.link(parent.link.id(), inner)?;
            self.set_link(above.link.id(), outer, between)?;
            self.set_link(parent.link.id(), inner, above.link.red())?;
            return self.set_link_to(depth - 2, parent.link.black());
        }
        let node = self.tx.edit(added.id(), NODE_WORDS)?;
        self.set_link(parent.link.id(), inner, Link(node.get(LEFT + outer)))?;
        self.set_link(above.link.id(), outer, Link(node.get(LEFT + inner)))?;
        node.set(LEFT + outer, parent.link.red().0);
        node.set(LEFT + inner, above.link.red().0);
        self.set_link_to(depth - 2, added.black())
    }

    /// Takes the entry of a node out, at the end of the path.
    fn take(&mut self, found: Link) -> Result<()> {
        let (mut gone, depth) = (found, self.path.len());
        let mut links = [self.link(gone.id(), 0)?, self.link(gone.id(), 1)?];
        if !links[0].is_none() && !links[1].is_none() {
            // The next entry comes into this node, and its node goes.
            self.path.push(Step { link: gone, side: 1 });
            gone = links[1];
            loop {
                links = [self.link(gone.id(), 0)?, self.link(gone.id(), 1)?];
                if links[0].is_none() {
                    break;
                }
                if self.path.len() == HEIGHT_MAX {
                    return Err(too_deep(gone.id()));
                }
                self.path.push(Step { link: gone, side: 0 });
                gone = links[0];
            }
            let moved = entry_of(node_words(self.tx, gone.id())?);
            let node = self.tx.edit(self.path[depth].link.id(), NODE_WORDS)?;
            node.set(A, moved.a);
            node.set(B, moved.b);
        }
        let below = if links[0].is_none() { links[1] } else { links[0] };
        self.set_link_to(self.path.len(), below.black())?;
        if !gone.is_red() && !below.is_red() {
            self.deepen()?;
        }
        self.tx.free(gone.id())
    }

    /// Gives the side at the end of the path a black link more, which it lacks by I-BLACK.
    fn deepen(&mut self) -> Result<()> {
        while let Some(Step { link: parent, side }) = self.path.pop() {
            let (mut parent, mut depth) = (parent, self.path.len());
            let mut sibling = self.link(parent.id(), 1 - side)?;
            if sibling.is_red() {
                // The sibling comes above the parent, and a black child of it is the sibling then.
                let nephew = self.link(sibling.id(), side)?;
                self.set_link(parent.id(), 1 - side, nephew)?;
                self.set_link(sibling.id(), side, parent.red())?;
                self.set_link_to(depth, sibling.black())?;
                self.path.push(Step { link: sibling.black(), side });
                (parent, sibling, depth) = (parent.red(), nephew, depth + 1);
            }
            if sibling.is_none() || sibling.is_red() {
                return Err(Error::corrupt(parent.id().index(), "a sibling is not black"));
            }
            let near = self.link(sibling.id(), side)?;
            let far = self.link(sibling.id(), 1 - side)?;
            if far.is_red() {
                self.set_link(parent.id(), 1 - side, near)?;
                let top = self.tx.edit(sibling.id(), NODE_WORDS)?;
                top.set(LEFT + side, parent.black().0);
                top.set(LEFT + 1 - side, far.black().0);
                return self.set_link_to(depth, sibling.coloured_as(parent));
            }
            if near.is_red() {
                let top = self.tx.edit(near.id(), NODE_WORDS)?;
                self.set_link(parent.id(), 1 - side, Link(top.get(LEFT + side)))?;
                self.set_link(sibling.id(), side, Link(top.get(LEFT + 1 - side)))?;
                top.set(LEFT + side, parent.black().0);
                top.set(LEFT + 1 - side, sibling.black().0);
                return self.set_link_to(depth, near.coloured_as(parent));
            }
            self.set_link(parent.id(), 1 - side, sibling.red())?;
            if parent.is_red() {
                return self.set_link_to(depth, parent.black());
            }
        }
        Ok(())
    }
}

impl Structure for RedBlack {
    type Subtree = Subtree;
    const LOOKS: Looks = Looks { pieces: 32, ways: 1 };

    #[inline]
    fn find(view: &impl View, head: &Head, key: Probe<'_>) -> Result<Option<Entry>> {
        Ok(descend(view, head, key, |_| {})?.map(|(_, entry)| entry))
    }

    fn place(tx: &Transaction<'_>, head: &Head, key: Probe<'_>) -> Result<Option<(Place, Entry)>> {
        let found = descend(tx, head, key, |_| {})?;
        Ok(found.map(|(link, entry)| (Place { node: link.id(), slot: 0 }, entry)))
    }

    fn insert(
        tx: &Transaction<'_>,
        head: &mut Head,
        key: Probe<'_>,
        make: impl FnOnce() -> Result<Entry>,
    ) -> Result<Inserted> {
        let mut path = Path::new();
        if let Some((link, entry)) = descend(tx, head, key, |step| path.push(step))? {
            return Ok(Inserted::There(Place { node: link.id(), slot: 0 }, entry));
        }
        let entry = make()?;
        tx.nested(|tx| {
            let (node, _) = make_node(tx, entry, Link::NONE)?;
            head.count_up(tx)?;
            Change { tx, head, path }.add(node)?;
            Ok(Inserted::New)
        })
    }

    fn set(tx: &Transaction<'_>, _head: &Head, place: Place, entry: Entry) -> Result<()> {
        tx.edit(place.node, NODE_WORDS)?.set(B, entry.b);
        Ok(())
    }

    fn remove(tx: &Transaction<'_>, head: &mut Head, key: Probe<'_>) -> Result<Option<Entry>> {
        let mut path = Path::new();
        let Some((link, entry)) = descend(tx, head, key, |step| path.push(step))? else {
            return Ok(None);
        };
        tx.nested(|tx| {
            head.count_down(tx)?;
            Change { tx, head, path }.take(link)?;
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
        let (first, behind) = match direction {
            Direction::Ascending => (0, Ordering::Greater),
            Direction::Descending => (1, Ordering::Less),
        };
        // Nodes whose entries, and what is on the second side of them, are ahead.
        let mut ahead = SmallVec::<[&[Word]; 64]>::new();
        let mut link = Link(head.root);
        for height in 0.. {
            if link.is_none() {
                break;
            }
            if height == HEIGHT_MAX {
                return Err(too_deep(link.id()));
            }
            let words = node_words(view, link.id())?;
            let is_ahead = match from {
                Bound::Unbounded => true,
                Bound::Included(key) => head.layout.compare(view, key, entry_of(words))? != behind,
                Bound::Excluded(key) => {
                    head.layout.compare(view, key, entry_of(words))? == behind.reverse()
                }
            };
            if is_ahead {
                ahead.push(words);
            }
            link = link_of(words, if is_ahead { first } else { 1 - first });
        }
        let mut told = 0;
        while let Some(words) = ahead.pop() {
            told += 1;
            if told > head.count {
                return Err(too_many(head));
            }
            let mut link = link_of(words, 1 - first);
            if tell(entry_of(words))?.is_break() {
                return Ok(());
            }
            while !link.is_none() {
                if ahead.len() == HEIGHT_MAX {
                    return Err(too_deep(link.id()));
                }
                let words = node_words(view, link.id())?;
                ahead.push(words);
                link = link_of(words, first);
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
        let root = Link(head.root);
        if root.is_red() {
            return Err(Error::corrupt(head.id.index(), "a red-black tree's root is red"));
        }
        let mut check = Check { view, head, node, entry, told: 0, last: Vec::new() };
        check.below(root, 0)?;
        match check.told == head.count {
            true => Ok(()),
            false => Err(Error::corrupt(
                head.id.index(),
                format!("a red-black tree has {} entries and counts {}", check.told, head.count),
            )),
        }
    }

    fn reach(view: &impl View, head: &Head, tell: &mut dyn FnMut(Reached)) {
        let mut seen = HashSet::new();
        let mut open = vec![Link(head.root)];
        while let Some(link) = open.pop() {
            let id = link.id();
            if link.is_none() {
                continue;
            }
            let node = node_words(view, id).and_then(|words| {
                let is_node = type_of(load(&words[0])) == ObjectType::RED_BLACK_NODE;
                match is_node && seen.insert(id) {
                    true => Ok(words),
                    false => Err(Error::corrupt(id.index(), "a link of a red-black tree is wrong")),
                }
            });
            match node {
                Ok(words) => {
                    tell(Reached::Entry(entry_of(words)));
                    open.extend([link_of(words, 1), link_of(words, 0)]);
                }
                Err(error) => tell(Reached::Nothing(error)),
            }
        }
    }

    fn whole(head: &Head) -> Result<Option<Subtree>> {
        let link = Link(head.root);
        Ok((!link.is_none()).then_some(Subtree { link, depth: 0 }))
    }

    fn parts(
        view: &impl View,
        subtree: Subtree,
        tell: &mut impl FnMut(Part<Subtree>),
    ) -> Result<()> {
        let depth = subtree.depth + 1;
        if depth > HEIGHT_MAX {
            return Err(too_deep(subtree.link.id()));
        }
        let words = node_words(view, subtree.link.id())?;
        let below = |side| Some(link_of(words, side)).filter(|link| !link.is_none());
        if let Some(link) = below(0) {
            tell(Part::Subtree(Subtree { link, depth }));
        }
        tell(Part::Entry(entry_of(words)));
        if let Some(link) = below(1) {
            tell(Part::Subtree(Subtree { link, depth }));
        }
        Ok(())
    }

    fn top(subtree: Subtree) -> ObjectId {
        subtree.link.id()
    }

    fn entry_in(view: &impl View, id: ObjectId, words: usize) -> Result<Option<Entry>> {
        if words != NODE_WORDS {
            return Ok(None);
        }
        let words = node_words(view, id)?;
        let is_node = type_of(load(&words[0])) == ObjectType::RED_BLACK_NODE;
        Ok(is_node.then(|| entry_of(words)))
    }

    fn part_of(view: &impl View, head: &Head, subtree: Subtree, key: Probe<'_>) -> Result<usize> {
        let words = node_words(view, subtree.link.id())?;
        let own = usize::from(!link_of(words, 0).is_none());
        Ok(match head.layout.compare(view, key, entry_of(words))? {
            Ordering::Less => 0,
            Ordering::Equal => own,
            Ordering::Greater => own + 1,
        })
    }

    fn build(
        tx: &Transaction<'_>,
        head: &mut Head,
        entries: &mut dyn Iterator<Item = Result<Entry>>,
    ) -> Result<()> {
        tx.nested(|tx| {
            let entries = entries.collect::<Result<Vec<_>>>()?;
            // Levels that are full; those of the next one are red, so that I-BLACK holds.
            let full = (entries.len() + 1).ilog2();
            let root = build(tx, &entries, full)?;
            head.set_count(tx, entries.len() as u64)?;
            head.set_root(tx, root.black().0)
        })
    }
}

/// Makes a node with nothing on its right side.
fn make_node<'t>(
    tx: &'t Transaction<'_>,
    entry: Entry,
    left: Link,
) -> Result<(ObjectId, Edit<'t>)> {
    let (id, node) = tx.make(ObjectType::RED_BLACK_NODE, NODE_WORDS)?;
    node.set(LEFT, left.0);
    node.set(LEFT + 1, Link::NONE.0);
    node.set(A, entry.a);
    node.set(B, entry.b);
    Ok((id, node))
}

/// Builds a tree of so many full levels, with halves of the entries on both sides of each node.
fn build(tx: &Transaction<'_>, entries: &[Entry], full: u32) -> Result<Link> {
    let (before, rest) = entries.split_at(entries.len() / 2);
    let Some((&entry, behind)) = rest.split_first() else { return Ok(Link::NONE) };
    let below = full.saturating_sub(1);
    let left = build(tx, before, below)?;
    let (id, node) = make_node(tx, entry, left)?;
    node.set(LEFT + 1, build(tx, behind, below)?.0);
    Ok(if full == 0 { Link::red_to(id) } else { Link(id.word()) })
}

/// What a check knows.
struct Check<'c, V> {
    view: &'c V,
    head: &'c Head,
    node: &'c mut dyn FnMut(ObjectId) -> Result<()>,
    entry: &'c mut dyn FnMut(Entry) -> Result<()>,
    told: u64,
    /// The key of the last entry.
    last: Vec<u8>,
}

impl<V: View> Check<'_, V> {
    /// Checks all below a link; the number of black links down to where no node is.
    fn below(&mut self, link: Link, depth: usize) -> Result<usize> {
        let id = link.id();
        if link.is_none() {
            return match link == Link::NONE {
                true => Ok(0),
                false => Err(Error::corrupt(self.head.id.index(), "a red link leads nowhere")),
            };
        }
        if depth == HEIGHT_MAX {
            return Err(too_deep(id));
        }
        let words = node_words(self.view, id)?;
        if type_of(load(&words[0])) != ObjectType::RED_BLACK_NODE {
            return Err(Error::corrupt(id.index(), "no node of a red-black tree is there"));
        }
        let (left, right) = (link_of(words, 0), link_of(words, 1));
        if link.is_red() && (left.is_red() || right.is_red()) {
            return Err(Error::corrupt(id.index(), "red links follow each other"));
        }
        let blacks = self.below(left, depth + 1)?;
        self.tell(id, entry_of(words))?;
        if self.below(right, depth + 1)? != blacks {
            return Err(Error::corrupt(id.index(), "one side has more black links than the other"));
        }
        (self.node)(id)?;
        Ok(blacks + usize::from(!link.is_red()))
    }

    fn tell(&mut self, id: ObjectId, entry: Entry) -> Result<()> {
        let last = Probe::new(&self.last);
        if self.told > 0 && self.head.layout.compare(self.view, last, entry)? != Ordering::Less {
            return Err(Error::corrupt(id.index(), "a red-black tree's keys do not ascend"));
        }
        self.told += 1;
        if self.told > self.head.count {
            return Err(too_many(self.head));
        }
        self.head.layout.check_key_of(self.view, entry, &mut self.last)?;
        (self.entry)(entry)
    }
}

/// The words of a node and the bits of its links, for the table of bytes.
#[cfg(test)]
pub(crate) fn layout() -> [Vec<crate::object::LayoutRow>; 2] {
    let word = |at: usize| at as u32;
    [
        vec![
            (0, 1, "header", "type 0xff04"),
            (word(LEFT), 2, "links", "left, right"),
            (word(A), 1, "a", "of the entry"),
            (word(B), word(NODE_WORDS - B), "b", "of the entry"),
        ],
        vec![
            (0, 48, "node", "its name, in words; 0: none"),
            (48, 15, "unused", "zero"),
            (Link::RED.trailing_zeros(), 1, "red", "the node is on the same level"),
        ],
    ]
}
