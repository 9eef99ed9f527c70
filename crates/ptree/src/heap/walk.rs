//! Walks over all objects of a heap, and what they take.

use sapwood_mem::words::Words;

use super::layout::{self, CHUNK_WORDS, CLASSES, Chunk, Kind, ROOT, ROOT_CHUNKS};
use super::{descriptor_words, kind};
use crate::error::{Error, Result};
use crate::object::{ObjectId, ObjectType, load, type_of};

/// An object that a walk found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub id: ObjectId,
    /// Its type.
    pub object_type: ObjectType,
    /// Words that it takes, its header and what its size class adds included.
    pub words: usize,
}

/// All objects, in the order in which they lie in the heap.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    space: &'a Words,
    chunk: Chunk,
    slot: usize,
    end: Chunk,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(space: &'a Words) -> Walk<'a> {
        let chunks = space.get(ROOT.index() + ROOT_CHUNKS, 1).map_or(0, |word| load(&word[0]));
        Walk { space, chunk: layout::RESERVED_CHUNKS, slot: 0, end: chunks as usize }
    }

    fn found(&self, at: usize, words: usize) -> Result<Found> {
        let header = self.space.get(at, words).map(|words| load(&words[0]));
        let header = header.ok_or_else(|| Error::corrupt(at, "an object goes beyond the heap"))?;
        Ok(Found { id: ObjectId::new(at as u64), object_type: type_of(header), words })
    }

    fn step(&mut self) -> Result<Option<Found>> {
        while self.chunk < self.end {
            let chunk = self.chunk;
            if !layout::holds_objects(chunk) {
                self.chunk = layout::zone_of(chunk).start;
                continue;
            }
            match kind(self.space, chunk)? {
                Kind::Free | Kind::Rest => {}
                Kind::Large { chunks } => {
                    self.chunk += chunks.max(1);
                    return self.found(layout::first_word(chunk), chunks * CHUNK_WORDS).map(Some);
                }
                Kind::Run(class) => {
                    let taken = &descriptor_words(self.space, chunk)?[1..];
                    while self.slot < class.slots() {
                        let slot = self.slot;
                        self.slot += 1;
                        if load(&taken[slot / 64]) & 1 << (slot % 64) != 0 {
                            let at = layout::first_word(chunk) + slot * class.words();
                            return self.found(at, class.words()).map(Some);
                        }
                    }
                    self.slot = 0;
                }
            }
            self.chunk += 1;
        }
        Ok(None)
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Found>;

    fn next(&mut self) -> Option<Result<Found>> {
        let step = self.step().transpose();
        if matches!(step, Some(Err(_))) {
            self.chunk = self.end;
        }
        step
    }
}

/// Words of the object that begins there, by its chunk; the bitmap is not asked.
pub(crate) fn object_words(space: &Words, id: ObjectId) -> Result<usize> {
    if id == ROOT {
        return Ok(layout::ROOT_WORDS);
    }
    let chunk = layout::chunk_of(id.index());
    let within = id.index() % CHUNK_WORDS;
    if !layout::holds_objects(chunk) {
        return Err(Error::NoObject(id));
    }
    match kind(space, chunk)? {
        Kind::Run(class)
            if within.is_multiple_of(class.words()) && within / class.words() < class.slots() =>
        {
            Ok(class.words())
        }
        Kind::Large { chunks } if within == 0 => Ok(chunks * CHUNK_WORDS),
        _ => Err(Error::NoObject(id)),
    }
}

/// Whether an object that is committed begins there, by the descriptor of its chunk.
pub(crate) fn is_taken(space: &Words, id: ObjectId) -> Result<bool> {
    let chunk = layout::chunk_of(id.index());
    let Kind::Run(class) = kind(space, chunk)? else { return Ok(true) };
    let slot = id.index() % CHUNK_WORDS / class.words();
    Ok(load(&descriptor_words(space, chunk)?[1 + slot / 64]) & 1 << (slot % 64) != 0)
}

/// How full a heap is, and how its free room is spread: what defragmenting could win.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HeapReport {
    /// Bytes from the beginning of the heap to the end of the last chunk that was ever used.
    pub heap_bytes: u64,
    /// Objects.
    pub objects: u64,
    /// Bytes of their slots and chunks.
    pub object_bytes: u64,
    /// Bytes of whole free chunks.
    pub free_chunk_bytes: u64,
    /// Bytes of the largest object that fits without growing the heap.
    pub largest_free_bytes: u64,
    /// Of each size class that is in use: bytes of a slot, runs, slots, and those taken.
    pub classes: Vec<ClassReport>,
}

/// The runs of one size class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClassReport {
    /// Bytes of a slot.
    pub slot_bytes: u64,
    /// Runs: chunks of 64 KiB.
    pub runs: u64,
    /// Slots in them.
    pub slots: u64,
    /// Slots that hold objects.
    pub taken: u64,
}

pub(crate) fn report(space: &Words) -> Result<HeapReport> {
    let end = space.get(ROOT.index() + ROOT_CHUNKS, 1).map_or(0, |word| load(&word[0])) as usize;
    let mut report =
        HeapReport { heap_bytes: (end * CHUNK_WORDS * 8) as u64, ..HeapReport::default() };
    let mut classes = vec![ClassReport::default(); CLASSES.len()];
    let mut chunk = layout::RESERVED_CHUNKS;
    let mut free_row = 0u64;
    while chunk < end {
        if !layout::holds_objects(chunk) {
            chunk = layout::zone_of(chunk).start;
            free_row = 0;
            continue;
        }
        let chunk_bytes = CHUNK_WORDS as u64 * 8;
        let mut chunks = 1;
        let of_chunk = kind(space, chunk)?;
        match of_chunk {
            Kind::Free => {
                free_row += chunk_bytes;
                report.free_chunk_bytes += chunk_bytes;
                report.largest_free_bytes = report.largest_free_bytes.max(free_row);
            }
            Kind::Rest => {}
            Kind::Large { chunks: many } => {
                chunks = many.max(1);
                report.objects += 1;
                report.object_bytes += chunks as u64 * chunk_bytes;
            }
            Kind::Run(class) => {
                let slot_bytes = class.words() as u64 * 8;
                let bits = &descriptor_words(space, chunk)?[1..];
                let taken = bits.iter().map(|bits| u64::from(load(bits).count_ones())).sum::<u64>();
                let of = &mut classes[usize::from(class.0)];
                of.slot_bytes = slot_bytes;
                of.runs += 1;
                of.slots += class.slots() as u64;
                of.taken += taken;
                report.objects += taken;
                report.object_bytes += taken * slot_bytes;
                if taken < class.slots() as u64 {
                    report.largest_free_bytes = report.largest_free_bytes.max(slot_bytes);
                }
            }
        }
        if of_chunk != Kind::Free {
            free_row = 0;
        }
        chunk += chunks;
    }
    report.classes = classes.into_iter().filter(|class| class.runs > 0).collect();
    Ok(report)
}
