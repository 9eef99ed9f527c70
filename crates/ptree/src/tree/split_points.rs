//! Keys that cut a range into parts, and how many entries it may have.

use std::ops::{Bound, ControlFlow};

use sapwood_engine::{Direction, KeyRange};

use super::structure::{Structure, TreeKind};
use super::{BTree, CritBit, RedBlack, Tree, with_structure};
use crate::error::Result;

/// Entries near the root that are looked at for each part.
const SAMPLES_A_PART: usize = 8;
/// Entries near the root that are looked at whatever the parts.
const SAMPLES: usize = 64;
/// Entries up to which a range is counted: it may be short where samples lie far apart.
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
    /// Keys that cut a range into `parts`, or fewer, and an estimate of its entries: from entries
    /// near the root, and a short walk.
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
        let least = parts.saturating_mul(SAMPLES_A_PART).max(SAMPLES);
        let (count, mut sample) = self.read(|view, head| {
            let mut keys = Vec::new();
            let mut tell = |entry| {
                let mut key = Vec::new();
                head.layout.read_key(view, entry, &mut key)?;
                keys.push(key);
                Ok(())
            };
            with_structure!(head.kind, S => S::sample(view, head, least, &mut tell))?;
            Ok((head.count, keys))
        })?;
        sample.sort_unstable();
        sample.dedup();
        let sampled = sample.len() as u64;
        let (low, high) = range.bounds();
        sample.retain(|key| is_inside(key, low, high));
        let mut counted = 0;
        let _ended = self.scan(range, Direction::Ascending, |_, _| {
            counted += 1;
            if counted < COUNTED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let entries = match counted < COUNTED {
            true => counted,
            false => {
                let share = sample.len() as f64 / sampled.max(1) as f64;
                ((count as f64 * share) as u64).max(counted)
            }
        };
        let parts = parts.clamp(1, sample.len() + 1);
        let keys = (1..parts).map(|part| sample[part * sample.len() / parts].clone()).collect();
        Ok(SplitPoints { keys, entries })
    }
}

/// Whether a key begins a part of a range: it lies in it, and is not its first.
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
