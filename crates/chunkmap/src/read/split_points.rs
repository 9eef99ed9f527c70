//! Split points: keys that cut a range into parts of about equal size, and how much lies in it.
//!
//! The tree knows without visiting entries: chunks know how many they have, and of many nodes one
//! path below each tells how many chunks there are (Knuth, Estimating the efficiency of backtrack
//! programs). *Useful for* threads that share a scan, and for choosing between ways to read.
//! *Not useful for* counting.

use std::ops::Bound;

use sapwood_engine::KeyRange;
use sapwood_mem::reclaim::Guard;

use crate::map::ChunkMap;
use crate::node::chunk::Chunk;
use crate::node::cursor::{Inside, KeyBounds};
use crate::read::scan::key_bounds;
use crate::tree::Node;

/// The answer of [`ChunkMap::split_points`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitPoints {
    /// Keys strictly within the range, ascending: each begins another part.
    pub keys: Vec<Vec<u8>>,
    /// About how many entries lie in the range.
    pub entries: u64,
}

/// For each part so many nodes are looked for, so that parts differ by few per cent.
const NODES_A_PART: usize = 32;

/// A node of the level that is looked at, of which some keys lie in the range.
struct Covering<'g> {
    node: Node<'g>,
    low: Option<&'g [u8]>,
    high: Option<&'g [u8]>,
}

impl ChunkMap {
    /// Cuts the range into at most `parts` parts, without visiting entries; fewer where there are
    /// not so many chunks.
    ///
    /// # Consistency
    /// As the tree is at some moment of the call. Parts are ranges of keys, and so stay disjoint
    /// and whole whatever is written.
    ///
    /// ```
    /// use sapwood_chunkmap::ChunkMap;
    ///
    /// let map = ChunkMap::new();
    /// for number in 0..10_000_u32 {
    ///     map.put(&number.to_be_bytes(), b"")?;
    /// }
    /// let half = 5_000_u32.to_be_bytes();
    /// let split_points = map.split_points(..&half[..], 4);
    /// assert!(split_points.keys.len() <= 3 && split_points.keys.iter().all(|key| key[..] < half[..]));
    /// assert!((2_500..7_500).contains(&split_points.entries));
    /// # Ok::<(), sapwood_chunkmap::Error>(())
    /// ```
    pub fn split_points(&self, bounds: impl KeyRange, parts: usize) -> SplitPoints {
        let bounds = key_bounds(&bounds);
        let entries = self.len() as u64;
        if bounds.is_empty() {
            return SplitPoints { keys: Vec::new(), entries: 0 };
        }
        let guard = self.tree.reclaimer.pin();
        let root = self.tree.root_node(&guard);
        let mut level = vec![Covering { node: root, low: None, high: None }];
        while level.len() < parts.max(1).saturating_mul(NODES_A_PART) {
            let mut below = Vec::new();
            for covering in &level {
                let Node::Inner(inner) = covering.node else { continue };
                for at in 0..inner.len() {
                    let low = if at == 0 { covering.low } else { Some(inner.separator(at - 1)) };
                    let is_last = at + 1 == inner.len();
                    let high = if is_last { covering.high } else { Some(inner.separator(at)) };
                    let outside = low.is_some_and(|low| bounds.ends_before(low))
                        || high.is_some_and(|high| bounds.begins_at(high));
                    if !outside {
                        let node = self.tree.node(&guard, inner.child(at));
                        below.push(Covering { node, low, high });
                    }
                }
            }
            if below.is_empty() {
                break;
            }
            level = below;
        }
        let within = |(at, covering): (usize, &Covering<'_>)| match covering.node {
            Node::Chunk(chunk) => entries_within(&chunk, bounds) as f64,
            // At either end a node may lie in the range in part.
            node => share_within(bounds, covering) * self.entries_below(node, at, &guard),
        };
        let is_all = bounds.low == Bound::Unbounded && bounds.high == Bound::Unbounded;
        let entries = match is_all {
            true => entries,
            false => entries.min(level.iter().enumerate().map(within).sum::<f64>().round() as u64),
        };
        let split_points = level.iter().filter_map(|covering| covering.low);
        let keys: Vec<&[u8]> = split_points.filter(|key| !bounds.begins_at(key)).collect();
        let count = parts.max(1).min(keys.len() + 1);
        let keys = (1..count).map(|part| keys[part * (keys.len() + 1) / count - 1].to_vec());
        SplitPoints { keys: keys.collect(), entries }
    }
}

impl ChunkMap {
    /// Entries below a node, about: of its children and theirs one is looked at, another one for
    /// each `draw`.
    fn entries_below<'g>(&'g self, mut node: Node<'g>, draw: usize, guard: &'g Guard<'_>) -> f64 {
        let mut nodes = 1.0;
        loop {
            match node {
                Node::Chunk(chunk) => {
                    return nodes * (chunk.sorted_len() + chunk.delta_len()) as f64;
                }
                Node::Inner(inner) => {
                    nodes *= inner.len() as f64;
                    node =
                        self.tree.node(guard, inner.child((inner.len() / 2 + draw) % inner.len()));
                }
            }
        }
    }
}

/// Entries of a chunk that lie in the range, but for those that were removed.
fn entries_within(chunk: &Chunk<'_>, bounds: KeyBounds<'_>) -> u64 {
    let inside = Inside::of(chunk, bounds);
    let delta = chunk.delta_entries_where(|abbreviation| inside.may_have(abbreviation));
    let delta = delta.filter(|(_, entry)| inside.contains(chunk, entry)).count();
    (inside.sorted(chunk).len() + delta) as u64
}

/// How much of a node lies in the range, as a guess: all, half or a quarter.
fn share_within(bounds: KeyBounds<'_>, covering: &Covering<'_>) -> f64 {
    let whole = |is_whole: bool| if is_whole { 1.0 } else { 0.5 };
    let from = match covering.low {
        Some(low) => bounds.above_low(low),
        None => bounds.low == Bound::Unbounded,
    };
    let to = match covering.high {
        Some(high) => !bounds.ends_before(high),
        None => bounds.high == Bound::Unbounded,
    };
    whole(from) * whole(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    fn key(number: u32) -> [u8; 4] {
        number.to_be_bytes()
    }

    fn map_of(count: u32) -> ChunkMap {
        let options = Options { chunk_entries: 4, ..Options::default() };
        let map = ChunkMap::with_options(options).expect("options that work");
        (0..count).for_each(|number| {
            map.put(&key(number * 2), b"").expect("room");
        });
        map
    }

    #[test]
    fn split_points_lie_strictly_inside_and_ascend() {
        let map = map_of(3_000);
        let (low, high) = (key(1_000), key(5_001));
        for parts in 1..40 {
            let range = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
            let split_points = map.split_points(range, parts);
            assert!(split_points.keys.len() < parts, "{parts}: {}", split_points.keys.len());
            assert!(split_points.keys.is_sorted_by(|a, b| a < b), "{parts}");
            assert!(split_points.keys.iter().all(|key| key[..] > low[..] && key[..] < high[..]));
            assert!(
                (1_400..2_600).contains(&split_points.entries),
                "{parts}: {}",
                split_points.entries
            );
        }
    }

    /// Entries of a range of any length are estimated within twice and half of what there is, and a
    /// few: put in order or not, with entries in deltas, in chunks of any size.
    #[test]
    fn entries_of_a_range_are_known_within_a_factor_of_two() {
        const COUNT: u32 = 20_000;
        for chunk_entries in [4, 64, 1_024] {
            for step in [1, 7_919] {
                let options = Options { chunk_entries, ..Options::default() };
                let map = ChunkMap::with_options(options).expect("options that work");
                (0..COUNT).for_each(|at| {
                    map.put(&key(at * step % COUNT * 2), b"").expect("room");
                });
                for len in [1, 5, 40, 300, 2_000, 9_000, COUNT] {
                    for from in [0, 1, 4_321, 11_000, COUNT - len].map(|from| from.min(COUNT - len))
                    {
                        let (low, high) = (key(from * 2), key((from + len) * 2));
                        let range = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
                        let entries = map.split_points(range, 1).entries as u32;
                        let (least, most) = (len / 2, len * 2 + 2);
                        let of = format!("{entries} of {len} from {from} of {chunk_entries}");
                        assert!((least..=most).contains(&entries), "{of} by {step}");
                    }
                }
            }
        }
    }

    #[test]
    fn parts_are_of_about_one_size() {
        let map = map_of(20_000);
        let split_points = map.split_points(.., 8);
        assert_eq!(split_points.keys.len(), 7);
        let mut limits: Vec<u32> = split_points
            .keys
            .iter()
            .map(|border| {
                let mut bytes = [0; 4];
                bytes[..border.len()].copy_from_slice(border);
                u32::from_be_bytes(bytes)
            })
            .collect();
        limits.push(40_000);
        let mut from = 0;
        for limit in limits {
            assert!((2_500..10_000).contains(&(limit - from)), "{from} to {limit}");
            from = limit;
        }
        assert_eq!(split_points.entries, 20_000);
    }

    #[test]
    fn small_and_empty_ranges_have_no_split_points() {
        let map = map_of(3_000);
        let nothing =
            map.split_points((Bound::Included(&key(9)[..]), Bound::Excluded(&key(9)[..])), 4);
        assert_eq!(nothing, SplitPoints { keys: vec![], entries: 0 });
        let one = map.split_points((Bound::Included(&key(8)[..]), Bound::Included(&key(8)[..])), 4);
        assert!(one.entries <= 8 && one.keys.len() <= 1, "{one:?}");
        assert_eq!(map_of(0).split_points(.., 4), SplitPoints { keys: vec![], entries: 0 });
        assert_eq!(map_of(3).split_points(.., 4), SplitPoints { keys: vec![], entries: 3 });
    }
}
