//! Where things lie in a heap: zones, chunks, slots.
//!
//! ```text
//! heap                 zone, 256 MiB              descriptor, 33 words
//! ┌────────┬────────┬─ ┌───────┬───────┬───────┬─ ┌───────────┬───────────────────────┐
//! │ zone 0 │ zone 1 │  │ chunk │ descr.│ chunk │  │ kind, ... │ bitmap: one bit a slot│
//! └────────┴────────┴─ │   0   │ 1..18 │  18   │  └───────────┴───────────────────────┘
//!                      └───────┴───────┴───────┴─
//! ```
//! Chunk 0 of zone 0 has the superblock and the root; those of other zones are empty. A chunk is
//! free, a *run* of slots of one size class, or (part of) one large object.

use std::ops::Range;

use crate::object::ObjectId;

/// Words of a chunk: 64 KiB.
pub(crate) const CHUNK_WORDS: usize = 8192;
/// Chunks of a zone.
pub(crate) const ZONE_CHUNKS: usize = 4096;
/// Words of a chunk's descriptor: kind and bitmap.
pub(crate) const DESCRIPTOR_WORDS: usize = 1 + BITMAP_WORDS;
/// Words of a run's bitmap.
pub(crate) const BITMAP_WORDS: usize = 32;
/// Chunks at the beginning of each zone that hold no objects.
pub(crate) const RESERVED_CHUNKS: usize =
    1 + (ZONE_CHUNKS * DESCRIPTOR_WORDS).div_ceil(CHUNK_WORDS);
/// Words at the beginning of the heap that are written by checkpoints alone: the superblock.
pub(crate) const SUPERBLOCK_WORDS: usize = 1024;
/// Words of a page.
pub(crate) const PAGE_WORDS: usize = 512;

/// The root, an object that every heap has.
pub(crate) const ROOT: ObjectId = ObjectId::new(SUPERBLOCK_WORDS as u64);
/// Words of the root.
pub(crate) const ROOT_WORDS: usize = 16;
/// Its word that counts the chunks that were ever used, the reserved ones of their zones included.
pub(crate) const ROOT_CHUNKS: usize = 1;
/// Its word that names the user's root object.
pub(crate) const ROOT_OBJECT: usize = 2;
/// Its word that names the head of the catalog, the tree of all trees.
pub(crate) const ROOT_CATALOG: usize = 3;

/// Words of the slots of each size class, the object's header included.
pub(crate) const CLASSES: &[u16] = &[
    4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80, 88, 96, 112, 128, 144,
    160, 192, 224, 256, 320, 384, 455, 512, 585, 682, 819, 1024, 1365, 2048, 2730, 4096,
];
/// Words of the largest object that shares a chunk.
pub(crate) const SHARED_WORDS_MAX: usize = 4096;
/// Words of the largest object.
pub(crate) const OBJECT_WORDS_MAX: usize = (ZONE_CHUNKS - RESERVED_CHUNKS) * CHUNK_WORDS;

/// A chunk's number, counted from the beginning of the heap.
pub(crate) type Chunk = usize;

/// A size class: its number in [`CLASSES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Class(pub(crate) u8);

impl Class {
    /// The smallest class whose slots have so many words, at most [`SHARED_WORDS_MAX`].
    pub(crate) fn of(words: usize) -> Class {
        Class(CLASSES.partition_point(|&class| usize::from(class) < words) as u8)
    }

    /// The class of a number that a descriptor holds.
    pub(crate) fn from_stored(number: u64) -> Option<Class> {
        (number < CLASSES.len() as u64).then_some(Class(number as u8))
    }

    /// Words of a slot.
    pub(crate) fn words(self) -> usize {
        usize::from(CLASSES[usize::from(self.0)])
    }

    /// Slots of a run.
    pub(crate) fn slots(self) -> usize {
        CHUNK_WORDS / self.words()
    }
}

/// What a chunk is, as the first word of its descriptor says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Free,
    Run(Class),
    /// The first chunk of an object of so many.
    Large {
        chunks: usize,
    },
    /// Another chunk of a large object.
    Rest,
}

impl Kind {
    pub(crate) fn stored(self) -> u64 {
        match self {
            Kind::Free => 0,
            Kind::Run(class) => 1 | u64::from(class.0) << 8,
            Kind::Large { chunks } => 2 | (chunks as u64) << 32,
            Kind::Rest => 3,
        }
    }

    pub(crate) fn from_stored(word: u64) -> Option<Kind> {
        let kind = match word & 0xff {
            0 => Kind::Free,
            1 => Kind::Run(Class::from_stored(word >> 8 & 0xff)?),
            2 => Kind::Large { chunks: (word >> 32) as usize },
            3 => Kind::Rest,
            _ => return None,
        };
        (kind.stored() == word).then_some(kind)
    }
}

/// The first word of a chunk.
pub(crate) fn first_word(chunk: Chunk) -> usize {
    chunk * CHUNK_WORDS
}

/// The first word of a chunk's descriptor.
pub(crate) fn descriptor(chunk: Chunk) -> usize {
    let zone = chunk / ZONE_CHUNKS * ZONE_CHUNKS;
    first_word(zone + 1) + (chunk % ZONE_CHUNKS) * DESCRIPTOR_WORDS
}

/// The chunk that a word lies in.
pub(crate) fn chunk_of(word: usize) -> Chunk {
    word / CHUNK_WORDS
}

/// Whether a chunk is one that holds objects.
pub(crate) fn holds_objects(chunk: Chunk) -> bool {
    chunk % ZONE_CHUNKS >= RESERVED_CHUNKS
}

/// The chunks of the zone of `chunk` that hold objects.
pub(crate) fn zone_of(chunk: Chunk) -> Range<Chunk> {
    let zone = chunk / ZONE_CHUNKS * ZONE_CHUNKS;
    zone + RESERVED_CHUNKS..zone + ZONE_CHUNKS
}

/// The word and the bit of a bitmap that stand for a slot.
pub(crate) fn bit(chunk: Chunk, slot: usize) -> (usize, u64) {
    (descriptor(chunk) + 1 + slot / 64, 1 << (slot % 64))
}

/// The words of a descriptor and of the root, for the table of bytes.
#[cfg(test)]
pub(crate) fn layout() -> [Vec<crate::object::LayoutRow>; 4] {
    let bits = |word: u64| (word.trailing_zeros(), word.count_ones());
    let (run, large) = (Kind::Run(Class(0)).stored(), Kind::Large { chunks: 0 }.stored());
    let codes = [Kind::Free.stored(), run, large, Kind::Rest.stored()];
    assert_eq!(codes, [0, 1, 2, 3], "as the table says");
    let class = bits(Kind::Run(Class(u8::MAX)).stored() ^ run);
    let chunks = bits(Kind::Large { chunks: u32::MAX as usize }.stored() ^ large);
    let word = |at: usize| at as u32;
    [
        vec![
            (0, 1, "chunk 0", "of zone 0: superblock (2 pages), then the root; of others nothing"),
            (1, word(RESERVED_CHUNKS - 1), "descriptors", "33 words for each chunk of the zone"),
            (
                word(RESERVED_CHUNKS),
                word(ZONE_CHUNKS - RESERVED_CHUNKS),
                "chunks",
                "65,536 bytes each",
            ),
        ],
        vec![
            (0, 1, "kind", "what the chunk is"),
            (1, word(BITMAP_WORDS), "bitmap", "of a run: one bit a slot, set where an object is"),
        ],
        vec![
            (0, 8, "kind", "0 free, 1 run, 2 first of a large object, 3 another chunk of it"),
            (class.0, class.1, "class", "of a run: which size its slots have, counted from 0"),
            (chunks.0, chunks.1, "chunks", "of the first chunk of a large object: how many it has"),
        ],
        vec![
            (0, 1, "header", "type 0"),
            (
                word(ROOT_CHUNKS),
                1,
                "chunks",
                "that were ever used, the reserved ones of their zones included",
            ),
            (word(ROOT_OBJECT), 1, "root", "the user's root object, 0 without one"),
            (word(ROOT_CATALOG), 1, "catalog", "head of the tree of all trees, 0 without one"),
            (word(ROOT_CATALOG + 1), word(ROOT_WORDS - ROOT_CATALOG - 1), "unused", "zero"),
        ],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_fits_its_bitmap_and_every_size_its_class() {
        for words in 1..=SHARED_WORDS_MAX {
            let class = Class::of(words);
            assert!(class.words() >= words && class.slots() <= BITMAP_WORDS * 64);
            assert!(class.0 == 0 || usize::from(CLASSES[usize::from(class.0) - 1]) < words);
        }
    }

    #[test]
    fn kinds_are_read_as_they_were_stored() {
        for kind in [Kind::Free, Kind::Run(Class(7)), Kind::Large { chunks: 9 }, Kind::Rest] {
            assert_eq!(Kind::from_stored(kind.stored()), Some(kind));
        }
        assert_eq!(Kind::from_stored(1 | 99 << 8), None, "no such class");
        assert_eq!(Kind::from_stored(4), None, "no such kind");
    }

    #[test]
    fn descriptors_lie_in_the_reserved_chunks_of_their_zone() {
        for chunk in [0, RESERVED_CHUNKS, ZONE_CHUNKS - 1, ZONE_CHUNKS, 3 * ZONE_CHUNKS - 1] {
            let (from, to) = (descriptor(chunk), descriptor(chunk) + DESCRIPTOR_WORDS - 1);
            for word in [from, to] {
                assert!(
                    !holds_objects(chunk_of(word)) && !chunk_of(word).is_multiple_of(ZONE_CHUNKS)
                );
                assert_eq!(chunk_of(word) / ZONE_CHUNKS, chunk / ZONE_CHUNKS);
            }
        }
    }
}
