//! The heap: which words belong to objects, and which are free.
//!
//! What is durable are the descriptors of chunks: their kinds and bitmaps. What is free is known in
//! memory, too, and found out from the descriptors bit by bit, so that a heap opens at once whatever
//! its size. A slot that a transaction takes leaves the memory's lists at once and gets its bit in
//! the bitmap when the transaction commits; one that a transaction frees goes the other way.

use std::collections::BTreeMap;
use std::ops::Range;

use sapwood_mem::sync::Ordering;
use sapwood_mem::words::Words;

use crate::error::{Error, Result};
use crate::object::{ObjectId, load};
use crate::redo::{Redo, out_of_memory};
use layout::{
    BITMAP_WORDS, CHUNK_WORDS, CLASSES, Chunk, Class, Kind, RESERVED_CHUNKS, ROOT, ROOT_CHUNKS,
    ZONE_CHUNKS,
};

pub(crate) mod layout;
pub(crate) mod walk;

pub(crate) use walk::{HeapReport, is_taken, object_words, report};

/// Descriptors that are looked at in one go.
const SCAN_CHUNKS: usize = 4096;

/// Bytes of changes from which on no more runs become chunks at a time: half of what the log keeps room for.
pub(crate) const DISSOLVED_BYTES: usize = 8 << 10;

/// The free slots of a run, one bit each.
pub(crate) type Slots = [u64; BITMAP_WORDS];

/// What is free.
#[derive(Debug)]
pub(crate) struct Heap {
    /// Chunks that were ever used, the reserved ones included.
    chunks: usize,
    /// Chunks that were in use when the heap was opened, and the first of them that was not looked
    /// at yet.
    unseen: Range<Chunk>,
    /// By chunk.
    runs: Runs,
    /// By class: runs that may have free slots.
    partial: Vec<Vec<Chunk>>,
    /// Runs that may have become empty.
    empty: Vec<Chunk>,
    /// Free chunks: the first, and how many.
    free: BTreeMap<Chunk, usize>,
    /// Words that there may be at most.
    limit: usize,
}

#[derive(Debug)]
struct Run {
    class: Class,
    /// Slots that are free and that no lane has.
    free: Slots,
    count: u32,
    /// Whether `partial` lists it.
    listed: bool,
}

/// The runs that are known, by chunk: a commit looks one up for each object that it frees.
#[derive(Debug, Default)]
struct Runs(Vec<Option<Box<Run>>>);

impl Runs {
    fn get(&self, chunk: Chunk) -> Option<&Run> {
        self.0.get(chunk)?.as_deref()
    }

    #[inline]
    fn get_mut(&mut self, chunk: Chunk) -> Option<&mut Run> {
        self.0.get_mut(chunk)?.as_deref_mut()
    }

    fn insert(&mut self, chunk: Chunk, run: Run) {
        if chunk >= self.0.len() {
            self.0.resize_with(chunk + 1, || None);
        }
        self.0[chunk] = Some(Box::new(run));
    }

    fn remove(&mut self, chunk: Chunk) {
        if let Some(run) = self.0.get_mut(chunk) {
            *run = None;
        }
    }
}

/// Slots of a run that a lane may give out.
#[derive(Debug)]
pub(crate) struct LaneRun {
    pub(crate) chunk: Chunk,
    pub(crate) slots: Slots,
    /// The first word of `slots` that may have a bit.
    pub(crate) from: usize,
}

impl LaneRun {
    /// Takes the first free slot.
    #[inline]
    pub(crate) fn take(&mut self, class: Class) -> Option<ObjectId> {
        while self.from < BITMAP_WORDS {
            let word = &mut self.slots[self.from];
            if *word != 0 {
                let slot = self.from * 64 + word.trailing_zeros() as usize;
                *word &= *word - 1;
                let at = layout::first_word(self.chunk) + slot * class.words();
                return Some(ObjectId::new(at as u64));
            }
            self.from += 1;
        }
        None
    }
}

impl Heap {
    /// A heap over words whose root says how many chunks are in use.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the root cannot be right.
    pub(crate) fn open(space: &Words, limit: usize) -> Result<Heap> {
        let at = ROOT.index() + ROOT_CHUNKS;
        let chunks = space.get(at, 1).map_or(0, |word| load(&word[0])) as usize;
        // The last zone is full, or has more than its reserved chunks.
        let within = chunks % ZONE_CHUNKS;
        let plausible = chunks >= RESERVED_CHUNKS
            && (within == 0 || within >= RESERVED_CHUNKS)
            && chunks <= (1 << 48) / CHUNK_WORDS;
        if !plausible {
            return Err(Error::corrupt(at, format!("{chunks} chunks cannot be in use")));
        }
        // A log may end before the words at the end of the last object, which were never set.
        let words = chunks * CHUNK_WORDS;
        if words > limit {
            return Err(out_of_memory(words, limit, "its limit is lower than what it has"));
        }
        space.grow(words).map_err(|cause| out_of_memory(0, words, &cause.to_string()))?;
        Ok(Heap {
            chunks,
            unseen: RESERVED_CHUNKS..chunks,
            runs: Runs::default(),
            partial: vec![Vec::new(); CLASSES.len()],
            empty: Vec::new(),
            free: BTreeMap::new(),
            limit,
        })
    }

    /// Words from the beginning to the end of the last chunk that was ever used.
    pub(crate) fn used_words(&self) -> usize {
        self.chunks * CHUNK_WORDS
    }

    /// All free slots of some run of this class. What has to be logged for it is added to `redo` and
    /// done to `space`; it is right whatever becomes of the transaction.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and [`Error::Corrupt`].
    pub(crate) fn take_run(
        &mut self,
        space: &Words,
        class: Class,
        redo: &mut Redo,
    ) -> Result<LaneRun> {
        loop {
            while let Some(chunk) = self.partial[usize::from(class.0)].pop() {
                let Some(run) = self.runs.get_mut(chunk) else { continue };
                if run.class != class {
                    continue;
                }
                run.listed = false;
                if run.count > 0 {
                    run.count = 0;
                    let slots = std::mem::replace(&mut run.free, [0; BITMAP_WORDS]);
                    return Ok(LaneRun { chunk, slots, from: 0 });
                }
            }
            if !self.scan(space)? {
                break;
            }
        }
        let chunk = self.take_chunks(space, 1, redo)?;
        let at = layout::descriptor(chunk);
        redo.store_word(at, Kind::Run(class).stored());
        let descriptor = descriptor_words(space, chunk)?;
        descriptor[0].store(Kind::Run(class).stored(), Ordering::Relaxed);
        for (index, word) in descriptor[1..].iter().enumerate() {
            if load(word) != 0 {
                word.store(0, Ordering::Relaxed);
                redo.store_word(at + 1 + index, 0);
            }
        }
        let run = Run { class, free: [0; BITMAP_WORDS], count: 0, listed: false };
        self.runs.insert(chunk, run);
        Ok(LaneRun { chunk, slots: all_slots(class), from: 0 })
    }

    /// Takes so many chunks in a row. As [`Heap::take_run`].
    pub(crate) fn take_chunks(
        &mut self,
        space: &Words,
        count: usize,
        redo: &mut Redo,
    ) -> Result<Chunk> {
        loop {
            if let Some(chunk) = self.take_free(count) {
                return Ok(chunk);
            }
            let mut came_free = false;
            while redo.bytes().len() < DISSOLVED_BYTES
                && let Some(chunk) = self.empty.pop()
            {
                came_free |= self.dissolve(space, chunk, redo)?;
            }
            if !came_free && !self.scan(space)? {
                break;
            }
        }
        self.grow(space, count, redo)
    }

    fn take_free(&mut self, count: usize) -> Option<Chunk> {
        let (&chunk, &len) = self.free.iter().find(|&(_, &len)| len >= count)?;
        self.free.remove(&chunk);
        if len > count {
            self.free.insert(chunk + count, len - count);
        }
        Some(chunk)
    }

    /// Makes a run without objects free chunks, if it still is one.
    fn dissolve(&mut self, space: &Words, chunk: Chunk, redo: &mut Redo) -> Result<bool> {
        match self.runs.get(chunk) {
            Some(run) if run.count as usize == run.class.slots() => {}
            _ => return Ok(false),
        }
        self.runs.remove(chunk);
        redo.store_word(layout::descriptor(chunk), Kind::Free.stored());
        descriptor_words(space, chunk)?[0].store(Kind::Free.stored(), Ordering::Relaxed);
        self.add_free(chunk, 1);
        Ok(true)
    }

    /// Adds chunks to the free ones, joined with free neighbours of the same zone.
    fn add_free(&mut self, mut chunk: Chunk, mut count: usize) {
        if let Some((&before, &len)) = self.free.range(..chunk).next_back()
            && before + len == chunk
            && layout::zone_of(before) == layout::zone_of(chunk)
        {
            self.free.remove(&before);
            (chunk, count) = (before, count + len);
        }
        if let Some(&len) = self.free.get(&(chunk + count))
            && layout::zone_of(chunk + count) == layout::zone_of(chunk)
        {
            self.free.remove(&(chunk + count));
            count += len;
        }
        self.free.insert(chunk, count);
    }

    /// Begins to use chunks behind all that were.
    fn grow(&mut self, space: &Words, count: usize, redo: &mut Redo) -> Result<Chunk> {
        let mut chunk = self.chunks;
        if !layout::holds_objects(chunk) {
            chunk = layout::zone_of(chunk).start;
        }
        let zone = layout::zone_of(chunk);
        let skipped = if chunk + count > zone.end { chunk..zone.end } else { chunk..chunk };
        if !skipped.is_empty() {
            chunk = layout::zone_of(zone.end).start;
        }
        let words = (chunk + count) * CHUNK_WORDS;
        if words > self.limit {
            return Err(out_of_memory(self.used_words(), self.limit, "its limit is reached"));
        }
        let refused = |cause: std::io::Error| {
            out_of_memory(self.chunks * CHUNK_WORDS, self.limit, &cause.to_string())
        };
        space.grow(words).map_err(refused)?;
        self.chunks = chunk + count;
        let at = ROOT.index() + ROOT_CHUNKS;
        redo.store_word(at, self.chunks as u64);
        space.get(at, 1).ok_or_else(|| crate::view::outside(ROOT, layout::ROOT_WORDS))?[0]
            .store(self.chunks as u64, Ordering::Relaxed);
        if !skipped.is_empty() {
            self.add_free(skipped.start, skipped.len());
        }
        Ok(chunk)
    }

    /// Looks at some more descriptors of what was there at opening; whether there were any.
    fn scan(&mut self, space: &Words) -> Result<bool> {
        if self.unseen.is_empty() {
            return Ok(false);
        }
        let end = self.unseen.end.min(self.unseen.start + SCAN_CHUNKS);
        while self.unseen.start < end {
            let chunk = self.unseen.start;
            let mut next = chunk + 1;
            if !layout::holds_objects(chunk) {
                next = layout::zone_of(chunk).start;
            } else {
                match kind(space, chunk)? {
                    Kind::Free => self.add_free(chunk, 1),
                    Kind::Run(class) => self.see_run(space, chunk, class)?,
                    Kind::Large { chunks } => next = chunk + chunks.max(1),
                    Kind::Rest => {}
                }
            }
            self.unseen.start = next.min(self.unseen.end);
        }
        Ok(true)
    }

    fn see_run(&mut self, space: &Words, chunk: Chunk, class: Class) -> Result<()> {
        let mut free = all_slots(class);
        for (free, taken) in free.iter_mut().zip(&descriptor_words(space, chunk)?[1..]) {
            *free &= !load(taken);
        }
        let count: u32 = free.iter().map(|word| word.count_ones()).sum();
        if count > 0 {
            self.partial[usize::from(class.0)].push(chunk);
        }
        if count as usize == class.slots() {
            self.empty.push(chunk);
        }
        self.runs.insert(chunk, Run { class, free, count, listed: count > 0 });
        Ok(())
    }

    /// Gives back the room of an object that was made in vain.
    pub(crate) fn give_back(&mut self, id: ObjectId, words: usize) {
        match words <= layout::SHARED_WORDS_MAX {
            true => self.give_slot(id),
            false => self.add_free(layout::chunk_of(id.index()), words.div_ceil(CHUNK_WORDS)),
        }
    }

    /// Gives back the room of an object that a commit has freed, and that had so many chunks for
    /// itself, if any.
    pub(crate) fn give_freed(&mut self, id: ObjectId, chunks: Option<usize>) {
        match chunks {
            None => self.give_slot(id),
            Some(chunks) => self.give_chunks(layout::chunk_of(id.index()), chunks),
        }
    }

    /// Gives the slot of an object back, which no bitmap has any more, or none had.
    fn give_slot(&mut self, id: ObjectId) {
        let chunk = layout::chunk_of(id.index());
        // A chunk that was not looked at: its bitmap tells when it will be.
        let Some(run) = self.runs.get_mut(chunk) else { return };
        let slot = id.index() % CHUNK_WORDS / run.class.words();
        debug_assert!(run.free[slot / 64] & 1 << (slot % 64) == 0, "a slot is free once");
        run.free[slot / 64] |= 1 << (slot % 64);
        run.count += 1;
        if !run.listed {
            run.listed = true;
            self.partial[usize::from(run.class.0)].push(chunk);
        }
        if run.count as usize == run.class.slots() {
            self.empty.push(chunk);
        }
    }

    /// Gives chunks back, whose descriptors say so, or never said otherwise.
    fn give_chunks(&mut self, chunk: Chunk, count: usize) {
        // Those that were not looked at are found by the scan.
        if !self.unseen.contains(&chunk) {
            self.add_free(chunk, count);
        }
    }
}

/// The descriptor of a chunk.
pub(crate) fn descriptor_words(space: &Words, chunk: Chunk) -> Result<&[crate::object::Word]> {
    let at = layout::descriptor(chunk);
    space
        .get(at, layout::DESCRIPTOR_WORDS)
        .ok_or_else(|| Error::corrupt(at, format!("chunk {chunk} has no descriptor")))
}

/// What a chunk is.
pub(crate) fn kind(space: &Words, chunk: Chunk) -> Result<Kind> {
    let word = load(&descriptor_words(space, chunk)?[0]);
    Kind::from_stored(word).ok_or_else(|| {
        Error::corrupt(layout::descriptor(chunk), format!("{word:#x} is no kind of chunk"))
    })
}

/// All slots of a run.
fn all_slots(class: Class) -> Slots {
    let mut slots = [0; BITMAP_WORDS];
    for slot in 0..class.slots() {
        slots[slot / 64] |= 1 << (slot % 64);
    }
    slots
}
