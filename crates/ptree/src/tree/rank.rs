//! Ranks: how many entries a range has, and which entry has how many before it.
//!
//! A rank is the sum of what lies left of one way down. The sums of subtrees are kept in memory (`sums`), once they
//! were counted, and forgotten where a commit has changed a node. *Useful for* pages of a list, percentiles, positions.

use std::ops::Bound;
use std::sync::PoisonError;

use sapwood_engine::{Direction, KeyRange};
use smallvec::SmallVec;

use super::entry::{Entry, Probe};
use super::structure::{Flow, Head, Part, Structure, TreeKind};
use super::{BTree, CritBit, RedBlack, Tree, with_structure};
use crate::error::Result;
use crate::object::ObjectId;
use crate::sums::Sums;
use crate::view::{Committed, View};

type OwnedEntry = (Vec<u8>, Vec<u8>);

impl Tree {
    /// The number of entries in a range, at one moment of the call: commits to the tree wait meanwhile. The changes of
    /// a transaction are counted once it has committed.
    ///
    /// The first call visits all nodes; later ones visit those on the ways to both ends of the range, and what
    /// commits have changed since.
    ///
    /// ```
    /// # use sapwood_ptree::{Pool, PoolOptions, TreeKind, TreeLayout};
    /// # let pool = Pool::in_memory(PoolOptions::default())?;
    /// let tree = pool.create_tree("numbers", TreeKind::BTree, TreeLayout::Fixed)?;
    /// pool.transaction(|tx| tx.load(&tree, (0..10_000_u64).map(|n| (n.to_be_bytes(), [0; 8]))))?;
    /// let (low, high) = (100_u64.to_be_bytes(), 350_u64.to_be_bytes());
    /// assert_eq!(tree.count(low..high)?, 250);
    /// assert_eq!(tree.rank(high)?, 350);
    /// assert_eq!(tree.nth(350)?.expect("there are more").0, high);
    /// # Ok::<(), sapwood_ptree::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tree::len`].
    pub fn count(&self, range: impl KeyRange) -> Result<u64> {
        let (low, high) = range.bounds();
        // As many entries lie before a range as there are before the first one that is not.
        let behind = match high {
            Bound::Unbounded => None,
            Bound::Included(high) => Some(Bound::Excluded(high)),
            Bound::Excluded(high) => Some(Bound::Included(high)),
        };
        self.with_sums(|sums, view, head| {
            with_structure!(head.kind, S => {
                forget_touched::<S>(view, head, sums)?;
                let to = match behind {
                    None => head.count,
                    Some(behind) => entries_before::<S>(view, head, behind, sums)?,
                };
                Ok(to.saturating_sub(entries_before::<S>(view, head, low, sums)?))
            })
        })
    }

    /// The number of entries whose keys are below `key`, which need not be there.
    ///
    /// # Errors
    /// The errors of [`Tree::len`].
    pub fn rank(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.count(..key.as_ref())
    }

    /// The entry that has `rank` entries before it, at one moment of the call; `None` if there are not so many.
    ///
    /// # Errors
    /// The errors of [`Tree::len`].
    pub fn nth(&self, rank: u64) -> Result<Option<OwnedEntry>> {
        self.with_sums(|sums, view, head| {
            let entry = with_structure!(head.kind, S => {
                forget_touched::<S>(view, head, sums)?;
                entry_of_rank::<S>(view, head, rank, sums)?
            });
            let Some(entry) = entry else { return Ok(None) };
            let (mut key, mut value) = (Vec::new(), Vec::new());
            head.layout.read_key(view, entry, &mut key)?;
            head.layout.read_value(view, entry, &mut value)?;
            Ok(Some((key, value)))
        })
    }

    /// Looks at a tree that no commit changes meanwhile (I-SUMS).
    fn with_sums<R>(
        &self,
        look: impl FnOnce(&mut Sums, &Committed<'_>, &Head) -> Result<R>,
    ) -> Result<R> {
        let mut sums = self.state.sums.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.check()?;
        let view = self.inner().committed();
        let head = Head::read(&view, self.state.head)?;
        look(&mut sums, &view, &head)
    }
}

/// The parts right below the top of a subtree.
type Parts<S> = SmallVec<[Part<<S as Structure>::Subtree>; 3]>;

fn parts_of<S: Structure>(view: &impl View, subtree: S::Subtree) -> Result<Parts<S>> {
    let mut parts = Parts::<S>::new();
    S::parts(view, subtree, &mut |part| parts.push(part))?;
    Ok(parts)
}

/// Visits the subtrees on the way to a key that is there, each with its parts and the number of the one that has it.
fn descend<S: Structure>(
    view: &impl View,
    head: &Head,
    key: Probe<'_>,
    mut visit: impl FnMut(S::Subtree, &[Part<S::Subtree>], usize) -> Result<()>,
) -> Result<()> {
    let mut below = S::whole(head)?;
    while let Some(subtree) = below {
        let (parts, own) = (parts_of::<S>(view, subtree)?, S::part_of(view, head, subtree, key)?);
        visit(subtree, &parts, own.min(parts.len()))?;
        below = match parts.get(own) {
            Some(Part::Subtree(subtree)) => Some(*subtree),
            Some(Part::Entry(_)) | None => None,
        };
    }
    Ok(())
}

/// Forgets the sums that commits have made wrong since the last look.
fn forget_touched<S: Structure>(view: &impl View, head: &Head, sums: &mut Sums) -> Result<()> {
    let mut key = Vec::new();
    for (id, words) in sums.take_touched() {
        sums.forget(id);
        // What was freed since, or never was a node, leads to no way.
        let Ok(Some(entry)) = S::entry_in(view, id, words) else { continue };
        key.clear();
        if head.layout.read_key(view, entry, &mut key).is_ok() {
            descend::<S>(view, head, Probe::new(&key), |subtree, _, _| {
                sums.forget(S::top(subtree));
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The number of entries before the first one that a bound leaves.
fn entries_before<S: Structure>(
    view: &impl View,
    head: &Head,
    bound: Bound<&[u8]>,
    sums: &mut Sums,
) -> Result<u64> {
    if bound == Bound::Unbounded {
        return Ok(0);
    }
    let mut first = None;
    S::walk(view, head, bound.map(Probe::new), Direction::Ascending, &mut |entry| {
        first = Some(entry);
        Ok(Flow::Break(()))
    })?;
    let Some(first) = first else { return Ok(head.count) };
    let mut key = Vec::new();
    head.layout.read_key(view, first, &mut key)?;
    let mut before = 0;
    descend::<S>(view, head, Probe::new(&key), |_, parts, own| {
        for part in &parts[..own] {
            before += entries_of::<S>(view, *part, sums)?;
        }
        Ok(())
    })?;
    Ok(before)
}

fn entry_of_rank<S: Structure>(
    view: &impl View,
    head: &Head,
    rank: u64,
    sums: &mut Sums,
) -> Result<Option<Entry>> {
    let (mut below, mut left) = (S::whole(head)?, rank);
    while let Some(subtree) = below.take() {
        for part in parts_of::<S>(view, subtree)? {
            let entries = entries_of::<S>(view, part, sums)?;
            match part {
                Part::Entry(entry) if left == 0 => return Ok(Some(entry)),
                Part::Subtree(subtree) if left < entries => {
                    below = Some(subtree);
                    break;
                }
                _ => left -= entries,
            }
        }
    }
    Ok(None)
}

/// A subtree that is being counted: the entries so far, and what is still to be counted.
struct Counting<S: Structure> {
    top: ObjectId,
    entries: u64,
    left: SmallVec<[S::Subtree; 2]>,
}

fn begin<S: Structure>(view: &impl View, subtree: S::Subtree) -> Result<Counting<S>> {
    let mut counting = Counting { top: S::top(subtree), entries: 0, left: SmallVec::new() };
    match S::leaf_len(view, subtree)? {
        Some(len) => counting.entries = len,
        None => S::parts(view, subtree, &mut |part| match part {
            Part::Entry(_) => counting.entries += 1,
            Part::Subtree(subtree) => counting.left.push(subtree),
        })?,
    }
    Ok(counting)
}

/// Counts the entries of a part. Ways down may be long: they are kept in a list, and not on the stack.
fn entries_of<S: Structure>(
    view: &impl View,
    part: Part<S::Subtree>,
    sums: &mut Sums,
) -> Result<u64> {
    let Part::Subtree(subtree) = part else { return Ok(1) };
    if let Some(sum) = sums.of(S::top(subtree)) {
        return Ok(sum);
    }
    let mut above: Vec<Counting<S>> = Vec::new();
    let mut now = begin::<S>(view, subtree)?;
    loop {
        if let Some(subtree) = now.left.pop() {
            match sums.of(S::top(subtree)) {
                Some(sum) => now.entries += sum,
                None => above.push(std::mem::replace(&mut now, begin::<S>(view, subtree)?)),
            }
            continue;
        }
        sums.keep(now.top, now.entries);
        let Some(mut next) = above.pop() else { return Ok(now.entries) };
        next.entries += now.entries;
        now = next;
    }
}
