//! The check of every invariant, and a dump of the tree.

use std::io::Write;

use sapwood_mem::reclaim::Guard;
use sapwood_mem::sync::Ordering;

use crate::layout::{EntryState, FROZEN};
use crate::map::ChunkMap;
use crate::node::chunk::Chunk;
use crate::tree::Node;

/// A broken invariant: a bug of this crate, or memory that was overwritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// The broken invariant, and where it is broken.
    pub what: String,
}

impl std::fmt::Display for Corruption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the map is corrupt: {}", self.what)
    }
}

impl std::error::Error for Corruption {}

macro_rules! ensure {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err(Corruption { what: format!($($what)+) });
        }
    };
}

/// The counts of a check.
#[derive(Default)]
struct Sums {
    entries: u64,
    key_bytes: u64,
    value_bytes: u64,
    slice_bytes: u64,
}

impl ChunkMap {
    /// Verifies every structural invariant. Call it while no writer runs, and with
    /// no [`Entry`](crate::Entry) held.
    ///
    /// # Errors
    /// The first broken invariant.
    pub fn check(&self) -> Result<(), Corruption> {
        self.tree.reclaimer.flush();
        let guard = self.tree.reclaimer.pin();
        let mut sums = Sums::default();
        let root = self.tree.root_node(&guard);
        self.check_node(&guard, root, (None, None), None, &mut sums)?;
        let totals = self.counters.totals();
        let counted = (sums.entries, sums.key_bytes, sums.value_bytes);
        let counters = (totals.entries, totals.key_bytes, totals.value_bytes);
        ensure!(
            counted == counters,
            "a walk finds {counted:?} entries, key and value bytes; the counters say {counters:?}"
        );
        let live = self.tree.arena.stats().live_bytes;
        let known = sums.slice_bytes + self.tree.reclaimer.retired_bytes();
        ensure!(live == known, "{live} bytes are allocated, {known} are reachable or retired");
        Ok(())
    }

    fn check_node(
        &self,
        guard: &Guard,
        node: Node<'_>,
        bounds: (Option<&[u8]>, Option<&[u8]>),
        height: Option<u8>,
        sums: &mut Sums,
    ) -> Result<(), Corruption> {
        match node {
            Node::Chunk(chunk) => {
                ensure!(
                    height.is_none_or(|height| height == 0),
                    "a chunk hangs at height {height:?}"
                );
                sums.slice_bytes += chunk.node_bytes() as u64;
                self.check_chunk(&chunk, bounds, sums)
            }
            Node::Inner(inner) => {
                let expected = height.unwrap_or(inner.height());
                ensure!(
                    inner.height() == expected && expected > 0,
                    "an inner node of height {} hangs at {expected}",
                    inner.height()
                );
                sums.slice_bytes += self.tree.arena.capacity(inner.slice()) as u64;
                let (mut low, before) = (bounds.0, sums.entries);
                for at in 0..inner.len() {
                    let high =
                        if at + 1 < inner.len() { Some(inner.separator(at)) } else { bounds.1 };
                    ensure!(
                        low.is_none() || high.is_none() || low < high,
                        "separators {low:?} and {high:?} do not ascend"
                    );
                    let child = self.tree.node(guard, inner.child(at));
                    self.check_node(guard, child, (low, high), Some(expected - 1), sums)?;
                    low = high;
                }
                let below = sums.entries - before;
                let kept = inner.sum();
                ensure!(
                    kept.is_none_or(|kept| kept == below),
                    "I-SUM: {below} entries lie below a node that says {kept:?}"
                );
                Ok(())
            }
        }
    }

    fn check_chunk(
        &self,
        chunk: &Chunk<'_>,
        bounds: (Option<&[u8]>, Option<&[u8]>),
        sums: &mut Sums,
    ) -> Result<(), Corruption> {
        ensure!(
            (chunk.low(), chunk.high()) == bounds,
            "I-BOUNDS: a chunk says {:?} to {:?}, its parent {bounds:?}",
            chunk.low(),
            chunk.high()
        );
        ensure!(!chunk.is_claimed(), "a chunk is claimed, and no thread is at work");
        // Acquire: pairs with the CAS that published the record.
        let words: Vec<u64> = chunk
            .sorted_words()
            .chain(chunk.delta_words())
            .map(|word| word.load(Ordering::Acquire))
            .collect();
        ensure!(
            words.iter().all(|word| word & FROZEN == 0),
            "I-FROZEN: a word of a current chunk is frozen"
        );
        let mut ended = false;
        for word in &words[chunk.sorted_len()..] {
            let empty = EntryState::of(*word) == EntryState::Empty;
            ensure!(empty || !ended, "I-APPEND: an entry lies behind an empty one");
            ended |= empty;
        }
        let abbreviations: Vec<u64> =
            (0..chunk.sorted_len()).map(|at| chunk.sorted_abbreviation(at)).collect();
        ensure!(abbreviations.is_sorted(), "I-SORTED: abbreviations descend");
        for (abbreviation, word) in abbreviations.iter().zip(&words) {
            if let EntryState::Record(slice) = EntryState::of(*word) {
                let key = chunk.record(slice).key();
                let wanted = chunk.abbreviate(key);
                ensure!(
                    *abbreviation == wanted,
                    "an abbreviation is {abbreviation:x} and should be {wanted:x}"
                );
                ensure!(
                    !chunk.is_exact()
                        || key.starts_with(chunk.prefix()) && chunk.shape().gives(key, wanted),
                    "I-EXACT: {key:?} does not follow from its abbreviation"
                );
            }
        }
        let mut previous: Option<&[u8]> = None;
        for entry in chunk.gather() {
            let record = chunk.record(entry.slice);
            let key = record.key();
            ensure!(
                !record.is_dead(),
                "an entry names a dead record of {key:?}, and no thread is at work"
            );
            ensure!(
                bounds.0.is_none_or(|low| low <= key) && bounds.1.is_none_or(|high| key < high),
                "I-BOUNDS: key {key:?} is outside of {bounds:?}"
            );
            ensure!(
                previous.is_none_or(|previous| previous < key),
                "I-SORTED, I-KEY-ONCE: {key:?} follows {previous:?}"
            );
            let found = chunk.find_slice(key, entry.slice).is_some();
            ensure!(found, "a search does not find {key:?}");
            let Some(value_len) = record.idle_value_len() else {
                return Err(Corruption {
                    what: format!("the record of {key:?} is locked, and no thread is at work"),
                });
            };
            previous = Some(key);
            sums.entries += 1;
            sums.key_bytes += key.len() as u64;
            sums.value_bytes += value_len as u64;
            sums.slice_bytes += self.tree.arena.capacity(entry.slice) as u64;
        }
        Ok(())
    }

    /// Writes the tree for a person to read: a line for each inner node and chunk.
    ///
    /// # Errors
    /// As of `out`.
    pub fn dump(&self, out: &mut impl Write) -> std::io::Result<()> {
        let mut text = Vec::new();
        {
            let guard = self.tree.reclaimer.pin();
            self.dump_node(&guard, self.tree.root_node(&guard), 0, &mut text)?;
        }
        // Unpinned, since `out` may take its time.
        out.write_all(&text)
    }

    fn dump_node(
        &self,
        guard: &Guard,
        node: Node<'_>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        let indent = depth * 2;
        match node {
            Node::Chunk(chunk) => {
                let words = chunk.sorted_words().chain(chunk.delta_words());
                let tombstones = words
                    .filter(|word| {
                        // Acquire: pairs with the CAS in `swap`.
                        EntryState::of(word.load(Ordering::Acquire)) == EntryState::Tombstone
                    })
                    .count();
                writeln!(
                    out,
                    "{:indent$}chunk [{}, {}) sorted {} delta {}/{} tombstones {tombstones} prefix {} bytes, {} bytes",
                    "",
                    bound(chunk.low(), "first"),
                    bound(chunk.high(), "last"),
                    chunk.sorted_len(),
                    chunk.delta_entries().count(),
                    chunk.delta_cap(),
                    chunk.prefix_len(),
                    chunk.node_bytes(),
                )
            }
            Node::Inner(inner) => {
                writeln!(
                    out,
                    "{:indent$}inner height {} children {} {} bytes",
                    "",
                    inner.height(),
                    inner.len(),
                    self.tree.arena.capacity(inner.slice())
                )?;
                (0..inner.len()).try_for_each(|at| {
                    self.dump_node(guard, self.tree.node(guard, inner.child(at)), depth + 1, out)
                })
            }
        }
    }
}

fn bound(key: Option<&[u8]>, open: &str) -> String {
    key.map_or_else(|| open.to_string(), |key| format!("\"{}\"", key.escape_ascii()))
}
