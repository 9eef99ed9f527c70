//! Keys that cut a range into parts, and how many entries it may have.
//!
//! A range is the entries on two ways down, to its first entry and to its last, and the subtrees between them. How many
//! entries a subtree has, a random way down tells: those of each node on the way count for as many as there are such ways
//! (Knuth: "Estimating the efficiency of backtrack programs", Mathematics of Computation 1975). That is right on average,
//! and far off where one side of a node has most. So the subtree that seems to have most entries is taken apart, time and
//! again, until there are many small ones, as in stratified sampling; then a new way down each tells how many they have.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::{Bound, ControlFlow};

use sapwood_engine::{Direction, KeyRange};
use smallvec::SmallVec;

use super::entry::{Entry, Probe};
use super::structure::{Head, Part, Structure, TreeKind};
use super::{BTree, CritBit, RedBlack, Tree, with_structure};
use crate::error::Result;
use crate::view::View;

/// Pieces for each part, up to a limit.
const PIECES_A_PART: usize = 4;
const PIECES_MAX: usize = 1_024;
/// Entries of a piece that is not taken apart.
const SMALL: f64 = 8.0;
/// Nodes after which no piece is taken apart any more: ways are long where each key begins with the one before.
const NODES_MAX: u64 = 1 << 15;
/// Entries up to which a range is counted.
const COUNTED: u64 = 256;

/// Keys that cut a range into parts of about the same size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitPoints {
    /// Strictly inside of the range, and ascending: each begins a part.
    pub keys: Vec<Vec<u8>>,
    /// How many entries the range has, about.
    pub entries: u64,
}

impl Tree {
    /// Keys that cut a range into `parts`, or fewer, and an estimate of its entries: from the
    /// way to either end of it, and looks at what lies between.
    ///
    /// ```
    /// # use sapwood_ptree::{Pool, PoolOptions, TreeKind, TreeLayout};
    /// # let pool = Pool::in_memory(PoolOptions::default())?;
    /// let tree = pool.create_tree("numbers", TreeKind::RedBlack, TreeLayout::Fixed)?;
    /// pool.transaction(|tx| tx.load(&tree, (0..10_000_u64).map(|n| (n.to_be_bytes(), [0; 8]))))?;
    /// let half = 5_000_u64.to_be_bytes();
    /// let split_points = tree.split_points(..half, 4)?;
    /// assert!(split_points.keys.len() <= 3 && split_points.keys.iter().all(|key| key[..] < half[..]));
    /// assert!((2_500..7_500).contains(&split_points.entries));
    /// # Ok::<(), sapwood_ptree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`Tree::len`].
    pub fn split_points(&self, range: impl KeyRange, parts: usize) -> Result<SplitPoints> {
        let (low, high) = range.bounds();
        let (mut counted, mut first) = (0, Vec::new());
        let _ended = self.scan((low, high), Direction::Ascending, |key, _| {
            if counted == 0 {
                first.extend_from_slice(key);
            }
            counted += 1;
            if counted < COUNTED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if counted == 0 || counted < COUNTED && parts <= 1 {
            return Ok(SplitPoints { keys: Vec::new(), entries: counted });
        }
        let mut last = Vec::new();
        let _ended = self.scan((low, high), Direction::Descending, |key, _| {
            last.extend_from_slice(key);
            ControlFlow::Break(())
        })?;
        let (count, mut pieces) = self.read(|view, head| {
            let first = (low != Bound::Unbounded).then(|| Probe::new(&first));
            let last = (high != Bound::Unbounded).then(|| Probe::new(&last));
            let mut pieces = Vec::new();
            let mut tell = |entry, entries| {
                let mut key = Vec::new();
                if parts > 1 {
                    head.layout.read_key(view, entry, &mut key)?;
                }
                pieces.push((key, entries));
                Ok(())
            };
            let range = (first, last);
            with_structure!(head.kind, S => take_apart::<S>(view, head, range, parts, &mut tell))?;
            Ok((head.count, pieces))
        })?;
        let sum: f64 = pieces.iter().map(|(_, entries)| entries).sum();
        let is_all = low == Bound::Unbounded && high == Bound::Unbounded;
        let entries = match counted < COUNTED {
            true => counted,
            false if is_all => count.max(counted),
            false => (sum as u64).clamp(counted, count.max(counted)),
        };
        pieces.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let (mut keys, mut before) = (Vec::new(), 0.0);
        for (key, entries) in pieces {
            let limit = sum / parts as f64 * (keys.len() + 1) as f64;
            let ends_part = before + entries / 2.0 >= limit && keys.len() + 1 < parts;
            before += entries;
            if ends_part && keys.last() != Some(&key) && is_inside(&key, low, high) {
                keys.push(key);
            }
        }
        Ok(SplitPoints { keys, entries })
    }
}

/// A subtree of a range.
struct Piece<S> {
    subtree: S,
    /// Of its entries, one, and how many it seems to have.
    entry: Entry,
    entries: f64,
}

impl<S> PartialEq for Piece<S> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<S> Eq for Piece<S> {}

impl<S> PartialOrd for Piece<S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<S> Ord for Piece<S> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.entries.total_cmp(&other.entries)
    }
}

/// Tells pieces of a range between two keys, which belong to it, in any order: one of the entries of each, and how many
/// it has, about.
fn take_apart<S: Structure>(
    view: &impl View,
    head: &Head,
    range: (Option<Probe<'_>>, Option<Probe<'_>>),
    parts: usize,
    tell: &mut impl FnMut(Entry, f64) -> Result<()>,
) -> Result<()> {
    let least = S::LOOKS.pieces;
    let wanted = least.max(PIECES_MAX.min(parts.saturating_mul(PIECES_A_PART)));
    let mut parts = parts_of_range::<S>(view, head, range)?;
    let mut ways = Ways { nodes: 0 };
    let (mut pieces, mut sum) = (BinaryHeap::new(), 0.0);
    loop {
        for part in parts.drain(..) {
            match part {
                Part::Entry(entry) => {
                    sum += 1.0;
                    tell(entry, 1.0)?;
                }
                Part::Subtree(subtree) => {
                    let piece = ways.piece::<S>(view, subtree)?;
                    sum += piece.entries;
                    pieces.push(piece);
                }
            }
        }
        let Some(greatest) = pieces.peek() else { return Ok(()) };
        if greatest.entries <= SMALL.max(sum / wanted as f64) || ways.nodes > NODES_MAX {
            break;
        }
        sum -= greatest.entries;
        S::parts(view, greatest.subtree, &mut |part| parts.push(part))?;
        pieces.pop();
    }
    for piece in pieces {
        // Anew: those of which the first ways told too much were taken apart, the others were not.
        let (_, entries) = ways.down::<S>(view, piece.subtree)?;
        tell(piece.entry, entries)?;
    }
    Ok(())
}

/// Random ways down, the same ones for the same tree.
struct Ways {
    /// Seen on all of them.
    nodes: u64,
}

impl Ways {
    fn piece<S: Structure>(
        &mut self,
        view: &impl View,
        subtree: S::Subtree,
    ) -> Result<Piece<S::Subtree>> {
        let (mut entry, mut entries) = self.down::<S>(view, subtree)?;
        for _ in 1..S::LOOKS.ways {
            let other = self.down::<S>(view, subtree)?;
            if other.1 > entries {
                (entry, entries) = other;
            }
        }
        Ok(Piece { subtree, entry, entries })
    }

    /// The last entry on a way down, and how many there are by that.
    fn down<S: Structure>(
        &mut self,
        view: &impl View,
        mut subtree: S::Subtree,
    ) -> Result<(Entry, f64)> {
        let (mut like_this, mut entries, mut last) = (1.0, 0.0, None);
        let mut below = SmallVec::<[S::Subtree; 32]>::new();
        loop {
            self.nodes += 1;
            S::parts(view, subtree, &mut |part| match part {
                Part::Entry(entry) => {
                    entries += like_this;
                    last = Some(entry);
                }
                Part::Subtree(subtree) => below.push(subtree),
            })?;
            if below.is_empty() {
                return Ok((last.expect("no node is without entries and subtrees"), entries));
            }
            like_this *= below.len() as f64;
            subtree = below[self.choose(below.len())];
            below.clear();
        }
    }

    /// A number below `len`, by a hash of the count of nodes: no two steps share a count.
    fn choose(&self, len: usize) -> usize {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(self.nodes);
        // The high half of a product is uniform below the factor (Lemire, 2019).
        ((u128::from(hash) * len as u128) >> 64) as usize
    }
}

/// Subtrees and entries that are the entries between two keys of a tree, those included, in key order.
fn parts_of_range<S: Structure>(
    view: &impl View,
    head: &Head,
    (first, last): (Option<Probe<'_>>, Option<Probe<'_>>),
) -> Result<Vec<Part<S::Subtree>>> {
    let parts_of = |subtree| -> Result<Vec<Part<S::Subtree>>> {
        let mut parts = Vec::new();
        S::parts(view, subtree, &mut |part| parts.push(part))?;
        Ok(parts)
    };
    let Some(mut common) = S::whole(head)? else { return Ok(Vec::new()) };
    if first.is_none() && last.is_none() {
        return Ok(vec![Part::Subtree(common)]);
    }
    // Down to where the ways to both keys part.
    let (parts, from, to) = loop {
        let parts = parts_of(common)?;
        let of = |key| S::part_of(view, head, common, key);
        let from = first.map_or(Ok(0), of)?;
        let to = last.map_or(Ok(parts.len() - 1), of)?.min(parts.len() - 1);
        match parts.get(from) {
            Some(&Part::Subtree(subtree)) if from == to => common = subtree,
            _ => break (parts, from, to),
        }
    };
    if from >= to {
        return Ok(parts.get(from).copied().into_iter().collect());
    }
    let mut range = Vec::new();
    let mut at = Some(parts[from]);
    while let (Some(Part::Subtree(subtree)), Some(key)) = (at, first) {
        let parts = parts_of(subtree)?;
        let own = S::part_of(view, head, subtree, key)?;
        range.extend(parts.iter().skip(own + 1).rev());
        at = parts.get(own).copied();
    }
    range.extend(at);
    range.reverse();
    range.extend(&parts[from + 1..to]);
    let mut at = Some(parts[to]);
    while let (Some(Part::Subtree(subtree)), Some(key)) = (at, last) {
        let parts = parts_of(subtree)?;
        let own = S::part_of(view, head, subtree, key)?;
        range.extend(parts.iter().take(own));
        at = parts.get(own).copied();
    }
    range.extend(at);
    Ok(range)
}

/// Whether a key can begin a part of a range: it lies in it, and behind a bound that it has.
fn is_inside(key: &[u8], low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    let above = match low {
        Bound::Unbounded => true,
        Bound::Included(low) | Bound::Excluded(low) => key > low,
    };
    let below = match high {
        Bound::Unbounded => true,
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
    };
    above && below
}
