//! Keys from a chunk: those of the sorted part, of an *exact* chunk, without a look at records.
//!
//! The keys of a chunk mostly are as long as each other and differ in the eight bytes of their abbreviations alone:
//! numbers of fixed width, with what comes before and behind. Then its shape gives them, see `shape`.
//! Words tell which of them are there. They tell of a removal later than the record does, so that a walk begins here
//! only if no removal is in progress: see [`Removals`](crate::map::counters::Removals).

use sapwood_engine::Direction;
use sapwood_mem::sync::Ordering;

use crate::layout::{EntryState, FROZEN};
use crate::node::chunk::{Chunk, KEY_LINES};
use crate::node::cursor::{At, KeyBounds, Merge, Visit, look};
use crate::node::record::Record;
use crate::node::shape::Picked;

/// Walks the keys of an exact chunk that lie within bounds.
pub(crate) struct KeyCursor<'g, 'k> {
    merge: Merge<'g>,
    /// A sorted key, once there is one: the picked bytes come into prefix, template and tail.
    key: &'k mut Vec<u8>,
    prefix_len: usize,
    picked: Picked,
    /// The entry seen last: its abbreviation, and its record if that was read.
    previous: Option<(u64, Option<Record<'g>>)>,
}

/// What a [`KeyCursor`] comes to.
pub(crate) enum Seen<'g> {
    /// A sorted key, which is [`KeyCursor::key`].
    Sorted,
    /// An entry that is not gone, of the delta or of a frozen chunk.
    Entry(Visit<'g>),
}

impl<'g, 'k> KeyCursor<'g, 'k> {
    /// A cursor over the keys of `chunk`, which is exact, within `bounds`. It writes them to `key`.
    pub(crate) fn new(
        chunk: Chunk<'g>,
        bounds: KeyBounds<'_>,
        direction: Direction,
        key: &'k mut Vec<u8>,
    ) -> KeyCursor<'g, 'k> {
        debug_assert!(chunk.is_exact());
        let merge = Merge::new(chunk, bounds, direction);
        for slice in merge.delta_slices() {
            chunk.prefetch_record(slice, KEY_LINES);
        }
        let shape = chunk.shape();
        key.clear();
        key.extend_from_slice(shape.prefix);
        key.extend_from_slice(shape.template);
        key.extend_from_slice(shape.tail.expect("an exact chunk"));
        let (prefix_len, picked) = (shape.prefix.len(), shape.picked());
        KeyCursor { merge, key, prefix_len, picked, previous: None }
    }

    /// The sorted key in hand.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.key
    }

    /// The next key. A key can have two entries, one of them dead: only the first of both counts.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Seen<'g>> {
        loop {
            let at = self.merge.next()?;
            let chunk = self.merge.chunk();
            let (word, abbreviation) = match at {
                At::Sorted(at) => {
                    let (word, abbreviation) =
                        (chunk.sorted_word(at), chunk.sorted_abbreviation(at));
                    // Relaxed: no record is read. What this thread knew to be removed when it came to the chunk has come
                    // before.
                    let now = word.load(Ordering::Relaxed);
                    if now & FROZEN == 0 {
                        if let EntryState::Record(_) = EntryState::of(now)
                            && self.is_next(abbreviation)
                        {
                            return Some(Seen::Sorted);
                        }
                        continue;
                    }
                    // What is removed from now on leaves no tombstone here.
                    (word, abbreviation)
                }
                At::Delta { at, abbreviation } => (&chunk.delta_words()[at], abbreviation),
            };
            let (visit, _) = look(chunk, word);
            let (Visit::Record(record) | Visit::Moved(record)) = visit else { continue };
            let again = self.was_seen(abbreviation, record.key());
            self.previous = Some((abbreviation, Some(record)));
            if !again {
                return Some(Seen::Entry(visit));
            }
        }
    }

    /// Takes the sorted key of this abbreviation in hand; false if it was seen just before.
    #[inline(always)]
    fn is_next(&mut self, abbreviation: u64) -> bool {
        self.picked.write(abbreviation, &mut self.key[self.prefix_len..]);
        let again = self.was_seen(abbreviation, self.key);
        self.previous = Some((abbreviation, None));
        !again
    }

    /// Whether the entry seen last has this key, of this abbreviation.
    #[inline]
    fn was_seen(&self, abbreviation: u64, key: &[u8]) -> bool {
        self.previous.is_some_and(|(before, record)| {
            before == abbreviation && record.map_or(&self.key[..], |record| record.key()) == key
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ops::Bound;

    use super::*;
    use crate::ChunkMap;
    use crate::write::lock::{Intent, Writer};

    /// Entries in exact chunks, of a hundred.
    fn exact(map: &ChunkMap, keys: impl Iterator<Item = Vec<u8>>) -> usize {
        let guard = map.tree.reclaimer.pin();
        let of: Vec<bool> = keys.map(|key| map.tree.leaf(&guard, &key).chunk.is_exact()).collect();
        of.iter().filter(|exact| **exact).count() * 100 / of.len()
    }

    fn loaded(key: impl Fn(u64) -> Vec<u8>) -> usize {
        const KEYS: u64 = 20_000;
        let map = ChunkMap::new();
        // In no order, each once.
        for i in 0..KEYS {
            map.put(&key(i * 7_919 % KEYS), b"value").expect("memory");
        }
        map.check().expect("every invariant holds");
        exact(&map, (0..KEYS).map(key))
    }

    /// Scans of keys are fast by this alone: what they show is right either way.
    #[test]
    fn chunks_of_numbers_are_exact() {
        assert_eq!(loaded(|i| i.to_be_bytes().to_vec()), 100);
        assert_eq!(loaded(|i| [&[7; 40][..], &i.to_be_bytes(), &[9; 52]].concat()), 100);
        assert_eq!(loaded(|i| [&i.to_be_bytes()[..], &[0; 92]].concat()), 100);
        assert_eq!(loaded(|i| format!("user{i:012}@example").into_bytes()), 100);
        let pair = |i: u64| [(i / 30).to_be_bytes(), (i % 30).to_be_bytes()].concat();
        assert_eq!(loaded(pair), 100);
        // Until they part, there are chunks of both.
        let families = |i: u64| match i % 2 {
            0 => [&[1][..], &i.to_be_bytes()].concat(),
            _ => [&[2][..], &i.to_be_bytes(), &[0; 4]].concat(),
        };
        assert!(loaded(families) > 90);
        let random = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let long = |i: u64| [random(i).to_be_bytes(), random(random(i)).to_be_bytes()].concat();
        assert_eq!(loaded(long), 0, "sixteen bytes that vary");
        assert_eq!(loaded(|i| format!("user{i}").into_bytes()), 0, "lengths that meet");
    }

    /// A key that came back while the thread that removes it is between record and word has two entries.
    #[test]
    fn a_key_that_comes_back_beside_its_removal_is_seen_once() {
        let map = ChunkMap::new();
        let run: Vec<_> = (0..200_u64).map(|key| (key.to_be_bytes(), b"value")).collect();
        map.put_many(&run).expect("memory");
        let guard = map.tree.reclaimer.pin();
        let key = 77_u64.to_be_bytes();
        let locked = map.lock_writer(&guard, &key, Intent::Remove).expect("no closure");
        let Writer::Locked(_, mut lock) = locked else { unreachable!("it is there") };
        lock.bury();
        assert!(!map.put(&key, b"again").expect("memory"));
        let chunk = map.tree.leaf(&guard, &key).chunk;
        let everything = KeyBounds { low: Bound::Unbounded, high: Bound::Unbounded };
        for way in [Direction::Ascending, Direction::Descending] {
            let (mut buffer, mut seen) = (Vec::new(), Vec::new());
            let mut cursor = KeyCursor::new(chunk, everything, way, &mut buffer);
            while let Some(next) = cursor.next() {
                match next {
                    Seen::Sorted => seen.push(cursor.key().to_vec()),
                    Seen::Entry(Visit::Record(record)) => seen.push(record.key().to_vec()),
                    Seen::Entry(_) => unreachable!("what is seen is alive"),
                }
            }
            if way == Direction::Descending {
                seen.reverse();
            }
            assert!(seen.iter().eq(run.iter().map(|(key, _)| &key[..])), "{seen:?}");
        }
    }
}
