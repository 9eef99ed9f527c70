//! Walks and look-ups by columns: the first bytes of many keys and values, gathered into batches.
//!
//! *Useful for* figures of fields of fixed width. *Not useful for* whole keys and values of any length: `scan` shows
//! those. Each record of a group is asked for ahead, all are declared ([`HazardPointers`](crate::node::hazard_pointers::HazardPointers)), and then
//! read one after the other, without a count and without a closure in between.
//!
//! ```text
//!  chunk ── words of a group ──► prefetch ──► declare ──► fence ──► header, key, value of each ──► columns
//!               of the next one ──► prefetch                            │ dead, in change, too short
//!                                                                       └──► by its key, with a count
//! ```
//!
//! *Thread safety*: each walk has its own columns and its own filter.

use std::mem::MaybeUninit;
use std::ops::ControlFlow;

use sapwood_engine::{Column, ColumnBatch, KeyRange, Validity};
use sapwood_mem::arena::{LastBlock, prefetch_line};
use sapwood_mem::reclaim::Guard;
use sapwood_mem::sync::{Ordering, RawAtomicU64};

use crate::Direction;
use crate::error::Result;
use crate::layout::EntryState;
use crate::layout::record::value_offset;
use crate::map::{ChunkMap, check_key};
use crate::node::chunk::{Chunk, Find, Wanted};
use crate::node::cursor::{Merge, Visit, look};
use crate::node::hazard_pointers::{Bits, Declaring, page};
use crate::node::record::{Entered, ReadLock, Record};
use crate::read::scan::{From, Place, Step, key_bounds, next_border, walk};
use crate::tree::{Found, Tree};

/// Most bytes of a key, and of a value, that columns have.
pub const WIDTH_MAX: usize = 128;
/// Most entries of a batch.
const LEN_MAX: usize = 1_024;
/// Bytes of a batch's columns that lie near by, in the first cache.
const NEAR_BYTES: usize = 16 << 10;
/// Records that are declared together: about twice as many as a core keeps loads in flight for, so that one fence is
/// for many.
const GROUP: usize = if cfg!(loom) { 2 } else { 64 };

/// How many of the first bytes of keys and values columns have; 0: that column is not wanted.
///
/// Columns may be wider than was asked for: what lies behind the asked bytes is undefined.
///
/// ```
/// use sapwood_chunkmap::{WIDTH_MAX, Widths};
///
/// assert!(Widths::new(0, 8).is_some());
/// assert!(Widths::new(0, WIDTH_MAX + 1).is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    key: usize,
    value: usize,
}

impl Widths {
    /// `None` if either is more than [`WIDTH_MAX`].
    pub fn new(key: usize, value: usize) -> Option<Widths> {
        (key.max(value) <= WIDTH_MAX).then_some(Widths { key, value })
    }
}

/// What a walk by columns shows.
#[derive(Debug, Clone, Copy)]
pub enum Piece<'a> {
    /// Entries whose keys and values are as long as was asked for.
    Batch(&'a ColumnBatch<'a>),
    /// An entry that is shorter, or was being changed: whole.
    Entry(&'a [u8], &'a [u8]),
}

impl ChunkMap {
    /// Shows every entry within `bounds` to `show`, until it breaks: the first bytes of keys and values by columns, in
    /// batches, and each entry that is too short for them by itself. They come about in key order.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use sapwood_chunkmap::{ChunkMap, Piece, Widths};
    ///
    /// let map = ChunkMap::new();
    /// map.put(b"a", &[1, 9, 9])?;
    /// map.put(b"b", &[2])?;
    /// map.put(b"c", &[])?;
    /// let (mut sum, mut short) = (0, 0);
    /// let widths = Widths::new(0, 1).expect("not wide");
    /// let flow = map.scan_columns(.., widths, |piece| {
    ///     match piece {
    ///         Piece::Batch(batch) => {
    ///             sum += (0..batch.len()).map(|at| u64::from(batch.values().item(at)[0])).sum::<u64>();
    ///         }
    ///         Piece::Entry(..) => short += 1,
    ///     }
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert!(flow.is_continue());
    /// assert_eq!((sum, short), (3, 1));
    /// # Ok::<(), sapwood_chunkmap::Error>(())
    /// ```
    ///
    /// # Consistency
    /// That of [`scan`](Self::scan), but for the order: every key present from start to end is shown exactly once, none
    /// twice, each value whole, as it was at one moment of the call. A writer that changes a value while a batch is
    /// gathered around it changes a copy.
    ///
    /// # Errors
    /// As of [`scan`](Self::scan). What was gathered until then may not have been shown.
    pub fn scan_columns<B>(
        &self,
        bounds: impl KeyRange,
        widths: Widths,
        mut show: impl FnMut(Piece<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let bounds = key_bounds(&bounds);
        let guard = self.tree.reclaimer.pin();
        let mut gathering = Gathering::new(self, &guard, widths);
        walk(&guard, bounds, Direction::Ascending, |rest, next| {
            let chunk = self.chunk_at_edge(&guard, rest, Direction::Ascending);
            let border = next_border(&chunk, bounds, Direction::Ascending);
            let following = border.map(|border| self.tree.find_leaf(&guard, border));
            let merge = Merge::new(chunk, rest, Direction::Ascending);
            let step = match gathering.chunk(merge, following, next, &mut show)? {
                Walked::Break(result) => return Ok(Step::Break(result)),
                Walked::Anew => Step::On,
                Walked::Whole => {
                    let step = next.step_behind(&chunk, bounds, Direction::Ascending);
                    if bounds.cover(&chunk) {
                        self.cluster_if_due(&guard, &chunk);
                    }
                    step
                }
            };
            let mut flow = gathering.show_late(&mut show)?;
            if flow.is_continue() && matches!(step, Step::Ended) {
                flow = gathering.hand_out(&mut show);
            }
            Ok(match flow {
                ControlFlow::Break(result) => Step::Break(result),
                ControlFlow::Continue(()) => step,
            })
        })
    }

    /// Looks many keys up, and shows the entries that are there as [`scan_columns`](Self::scan_columns) does. Fastest
    /// where keys ascend: those of one chunk are looked for together. A key that is given twice is shown twice.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use sapwood_chunkmap::{ChunkMap, Piece, Widths};
    ///
    /// let map = ChunkMap::new();
    /// map.put(b"acorn", &[3])?;
    /// map.put(b"twig", &[4])?;
    /// let mut found = 0;
    /// let widths = Widths::new(0, 1).expect("not wide");
    /// let flow = map.get_many_columns(&["acorn", "leaf", "twig"], widths, |piece| {
    ///     if let Piece::Batch(batch) = piece {
    ///         found += batch.len();
    ///     }
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert!(flow.is_continue());
    /// assert_eq!(found, 2);
    /// # Ok::<(), sapwood_chunkmap::Error>(())
    /// ```
    ///
    /// # Consistency
    /// As of [`get_many`](Self::get_many): each read is linearizable, the batch as a whole is not atomic.
    ///
    /// # Errors
    /// As of [`get_with`](Self::get_with), at a key that is refused. Those before it may not have been shown.
    pub fn get_many_columns<K: AsRef<[u8]>, B>(
        &self,
        keys: &[K],
        widths: Widths,
        mut show: impl FnMut(Piece<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let guard = self.tree.reclaimer.pin();
        let mut gathering = Gathering::new(self, &guard, widths);
        for keys in keys.chunks(GROUP) {
            gathering.keys(keys)?;
            let mut flow = gathering.show_late(&mut show)?;
            if flow.is_continue() && !gathering.columns.has_room() {
                flow = gathering.hand_out(&mut show);
            }
            if flow.is_break() {
                return Ok(flow);
            }
            guard.repin();
        }
        Ok(gathering.hand_out(&mut show))
    }
}

/// How the walk over a chunk ended.
enum Walked<B> {
    Whole,
    /// The chunk may have gone: from the place again.
    Anew,
    Break(B),
}

/// A walk, and what it has gathered.
struct Gathering<'m, 'g> {
    map: &'m ChunkMap,
    guard: &'g Guard<'g>,
    /// `None`: each record is read with a count.
    declaring: Option<Declaring<'m>>,
    columns: Buffer,
    ways: Ways<'g>,
    /// Entries that are too short for the columns.
    short: Vec<ReadLock<'m>>,
    /// Keys that are looked up again when the chunk is done with: their records were being changed, or had moved.
    late: Vec<Vec<u8>>,
}

/// The record before, of the same chunk.
#[derive(Clone, Copy)]
struct Previous<'g> {
    record: Option<Record<'g>>,
    /// Whether it was dead: its key is looked up.
    moved: bool,
}

impl Previous<'_> {
    #[inline]
    fn is_of(&self, key: &[u8]) -> bool {
        self.record.is_some_and(|record| record.key() == key)
    }
}

impl<'m: 'g, 'g> Gathering<'m, 'g> {
    fn new(map: &'m ChunkMap, guard: &'g Guard<'g>, widths: Widths) -> Gathering<'m, 'g> {
        Gathering {
            map,
            guard,
            declaring: map.hazards.filter(),
            columns: Buffer::new(widths),
            ways: Ways::new(),
            short: Vec::new(),
            late: Vec::new(),
        }
    }

    /// Gathers entries of a chunk.
    fn chunk<B>(
        &mut self,
        mut merge: Merge<'g>,
        mut following: Option<Found>,
        next_place: &mut Place,
        show: &mut impl FnMut(Piece<'_>) -> ControlFlow<B>,
    ) -> Result<Walked<B>> {
        let (chunk, epoch) = (*merge.chunk(), self.guard.epoch());
        let bytes = self.columns.record_bytes(chunk.low().unwrap_or_default().len());
        let mut previous = Previous { record: None, moved: false };
        let (mut group, mut next) = (&mut Group::new(), &mut Group::new());
        group.fill(&mut merge, bytes);
        while let Some(Asked { record: last, .. }) = group.entries().last() {
            // Their records come while those of this group are read.
            next.fill(&mut merge, bytes);
            if merge.sorted_left() < GROUP
                && let Some(found) = following.take()
                && let Some(leaf) = self.map.tree.found_leaf(self.guard, found)
            {
                leaf.chunk.prefetch_begin(2 * GROUP);
            }
            self.group(&chunk, group, &mut previous)?;
            if !self.columns.has_room() || !self.short.is_empty() {
                next_place.set(From::Behind, last.key());
                if let ControlFlow::Break(result) = self.show_group(show) {
                    return Ok(Walked::Break(result));
                }
                if self.guard.epoch() != epoch {
                    return Ok(Walked::Anew);
                }
            }
            std::mem::swap(&mut group, &mut next);
        }
        Ok(Walked::Whole)
    }

    /// Gathers the entries of a group.
    fn group(
        &mut self,
        chunk: &Chunk<'g>,
        group: &Group<'g>,
        previous: &mut Previous<'g>,
    ) -> Result<()> {
        if let Some(declaring) = &self.declaring {
            declaring.declare(&group.bits);
        }
        let mut rest = group.entries();
        loop {
            if self.declaring.is_some() && !previous.moved {
                // SAFETY: declared just now, and reached under the guard.
                let taken = unsafe { self.columns.take_run(rest) };
                if let Some((last, _)) = rest[..taken].split_last() {
                    *previous = Previous { record: Some(last.record), moved: false };
                }
                rest = &rest[taken..];
            }
            let Some((entry, behind)) = rest.split_first() else { return Ok(()) };
            rest = behind;
            // Else as `ChunkCursor::next` says.
            if !(previous.moved && previous.is_of(entry.record.key())) {
                self.by_itself(chunk, *entry, previous)?;
            }
        }
    }

    /// Takes an entry that is too short for the columns, or whose record was dead or being changed, with a count.
    #[cold]
    fn by_itself(
        &mut self,
        chunk: &Chunk<'g>,
        Asked { word, record }: Asked<'g>,
        previous: &mut Previous<'g>,
    ) -> Result<()> {
        if self.enter(record)? {
            *previous = Previous { record: Some(record), moved: false };
            return Ok(());
        }
        let (record, moved) = match look(chunk, word).0 {
            Visit::Gone => return Ok(()),
            Visit::Record(record) => (record, false),
            Visit::Moved(record) => (record, true),
        };
        if !previous.is_of(record.key()) {
            self.late.push(record.key().to_vec());
        }
        *previous = Previous { record: Some(record), moved };
        Ok(())
    }

    /// Takes a record's entry if it is alive, now or later; false if it is dead.
    fn enter(&mut self, record: Record<'g>) -> Result<bool> {
        match record.try_read()? {
            Entered::Inside(lock) => {
                if !self.columns.take(lock.key(), lock.value()) {
                    // SAFETY: I-HELD: the borrow of the map ends before the map does.
                    self.short.push(unsafe { lock.unpinned() });
                }
                Ok(true)
            }
            Entered::Busy => {
                self.late.push(record.key().to_vec());
                Ok(true)
            }
            Entered::Dead => Ok(false),
        }
    }

    /// Gathers the entries of up to [`GROUP`] keys: each step for all of them before the next one for any.
    fn keys<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<()> {
        keys.iter().try_for_each(|key| check_key(key.as_ref()))?;
        self.ways.find_chunks(&self.map.tree, self.guard, keys);
        let bytes_of = |len| self.columns.record_bytes(len);
        let bits = self.ways.find_records(&self.map.tree, self.guard, keys, bytes_of);
        match &self.declaring {
            Some(declaring) => declaring.declare(&bits),
            None => self.ways.records = [None; GROUP],
        }
        for (at, key) in keys.iter().enumerate() {
            let key = key.as_ref();
            // SAFETY: declared just now, and reached under the guard.
            match self.ways.records[at].and_then(|record| unsafe { record.read_declared() }) {
                Some((found, value)) if found == key && self.columns.take(found, value) => {}
                _ => self.key_by_itself(self.ways.chunk(at).copied(), key)?,
            }
        }
        Ok(())
    }

    /// As [`by_itself`](Self::by_itself), of a key, which may be absent.
    fn key_by_itself(&mut self, chunk: Option<Chunk<'g>>, key: &[u8]) -> Result<()> {
        match chunk.map(|chunk| chunk.find(key, Wanted::Record)) {
            Some(Find::Hit(hit)) if self.enter(hit.record)? => {}
            Some(Find::Miss(miss)) if !miss.stale => {}
            _ => self.late.push(key.to_vec()),
        }
        Ok(())
    }

    /// Shows the short entries of a group, and what was gathered if there is no room for another group.
    fn show_group<B>(
        &mut self,
        show: &mut impl FnMut(Piece<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        for lock in std::mem::take(&mut self.short) {
            let shown = self.outside(|_| show(Piece::Entry(lock.key(), lock.value())));
            if shown.is_break() {
                return shown;
            }
        }
        if self.columns.has_room() { ControlFlow::Continue(()) } else { self.hand_out(show) }
    }

    /// Shows the entries that were left for later.
    fn show_late<B>(
        &mut self,
        show: &mut impl FnMut(Piece<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        if !self.late.is_empty() {
            self.withdraw();
        }
        for key in std::mem::take(&mut self.late) {
            if let Some(lock) = self.map.read_lock(self.guard, &key)? {
                // SAFETY: I-HELD: the borrow of the map ends before the map does.
                self.short.push(unsafe { lock.unpinned() });
            }
        }
        Ok(self.show_group(show))
    }

    /// Shows what was gathered.
    fn hand_out<B>(
        &mut self,
        show: &mut impl FnMut(Piece<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if self.columns.len == 0 {
            return ControlFlow::Continue(());
        }
        let flow = self.outside(|gathering| show(Piece::Batch(&gathering.columns.batch())));
        self.columns.len = 0;
        flow
    }

    /// Lets go of the pin and of what is declared, and calls a closure of the caller's.
    fn outside<R>(&self, work: impl FnOnce(&Self) -> R) -> R {
        self.withdraw();
        self.guard.outside(|| work(self))
    }

    fn withdraw(&self) {
        if let Some(declaring) = &self.declaring {
            declaring.withdraw();
        }
    }
}

/// An entry whose record is asked for.
#[derive(Clone, Copy)]
struct Asked<'g> {
    word: &'g RawAtomicU64,
    record: Record<'g>,
}

/// Entries of a chunk whose records are asked for.
struct Group<'g> {
    entries: [MaybeUninit<Asked<'g>>; GROUP],
    len: usize,
    bits: Bits,
}

impl<'g> Group<'g> {
    fn new() -> Group<'g> {
        Group { entries: [const { MaybeUninit::uninit() }; GROUP], len: 0, bits: Bits::default() }
    }

    #[inline]
    fn entries(&self) -> &[Asked<'g>] {
        let entries = &self.entries[..self.len];
        // SAFETY: `fill` has written so many.
        unsafe { std::slice::from_raw_parts(entries.as_ptr().cast(), entries.len()) }
    }

    /// Takes the next entries that have a record, and asks for so many bytes of each: none if there are no more.
    #[inline]
    fn fill(&mut self, merge: &mut Merge<'g>, bytes: usize) {
        self.len = 0;
        self.bits = Bits::default();
        let mut near = Near::default();
        let chunk = *merge.chunk();
        merge.prefetch_sorted(GROUP..2 * GROUP);
        while self.len < GROUP {
            let run = merge.sorted_run(GROUP - self.len);
            if run.is_empty() {
                // The next one is of the delta, or equal to it.
                let Some(at) = merge.next() else { break };
                self.take(&chunk, merge.word(at), bytes, &mut near);
            } else {
                run.for_each(|at| self.take(&chunk, chunk.sorted_word(at), bytes, &mut near));
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, chunk: &Chunk<'g>, word: &'g RawAtomicU64, bytes: usize, near: &mut Near) {
        // Acquire: pairs with the CAS in `append` or `swap` that published the record.
        if let EntryState::Record(slice) = EntryState::of(word.load(Ordering::Acquire)) {
            let record = chunk.record_near(&mut near.block, slice);
            near.ask(record, bytes, &mut self.bits);
            self.entries[self.len].write(Asked { word, record });
            self.len += 1;
        }
    }
}

/// The ways of a group of keys down to their records: each step for all of them before the next one for any, so that their
/// waits overlap.
struct Ways<'g> {
    found: Vec<Found>,
    chunks: Vec<Option<Chunk<'g>>>,
    /// Of each key, which of the chunks is its own.
    chunk_of: [u8; GROUP],
    abbreviations: [u64; GROUP],
    records: [Option<Record<'g>>; GROUP],
}

impl<'g> Ways<'g> {
    fn new() -> Ways<'g> {
        Ways {
            found: Vec::with_capacity(GROUP),
            chunks: Vec::with_capacity(GROUP),
            chunk_of: [0; GROUP],
            abbreviations: [0; GROUP],
            records: [None; GROUP],
        }
    }

    /// The chunk of a key, unless it may have gone.
    #[inline]
    fn chunk(&self, at: usize) -> Option<&Chunk<'g>> {
        self.chunks[usize::from(self.chunk_of[at])].as_ref()
    }

    /// Finds the chunks, and asks for their heads. Of keys that ascend, those between two of one chunk are not searched
    /// for.
    fn find_chunks<K: AsRef<[u8]>>(&mut self, tree: &'g Tree, guard: &'g Guard<'g>, keys: &[K]) {
        self.found.clear();
        if !keys.is_sorted_by(|a, b| a.as_ref() <= b.as_ref()) {
            self.found.extend(keys.iter().map(|key| tree.find_leaf(guard, key.as_ref())));
            (0..keys.len()).for_each(|at| self.chunk_of[at] = at as u8);
            return;
        }
        let mut ascent = tree.ascent(guard);
        let mut begin = 0;
        while begin < keys.len() {
            let found = ascent.find(keys[begin].as_ref());
            // The first key of another chunk, by steps that grow, and begin anew before a key that is.
            let (mut limit, mut step) = (begin + 1, 1);
            let mut beyond = keys.len();
            while limit < beyond {
                let at = (limit + step - 1).min(beyond - 1);
                if ascent.is_of_the_last(keys[at].as_ref()) {
                    (limit, step) = (at + 1, step * 2);
                } else {
                    (beyond, step) = (at, 1);
                }
            }
            self.chunk_of[begin..limit].fill(self.found.len() as u8);
            self.found.push(found);
            begin = limit;
        }
    }

    /// Goes on from the chunks to the records, which are probably those of the keys, and asks for these.
    fn find_records<K: AsRef<[u8]>>(
        &mut self,
        tree: &'g Tree,
        guard: &'g Guard<'g>,
        keys: &[K],
        bytes_of: impl Fn(usize) -> usize,
    ) -> Bits {
        self.chunks.clear();
        for found in &self.found {
            let chunk = tree.found_leaf(guard, *found).map(|leaf| leaf.chunk);
            chunk.iter().for_each(Chunk::prefetch_samples);
            self.chunks.push(chunk);
        }
        for (at, key) in keys.iter().enumerate() {
            if let Some(chunk) = self.chunk(at) {
                let abbreviation = chunk.abbreviate(key.as_ref());
                chunk.prefetch_group(abbreviation);
                self.abbreviations[at] = abbreviation;
            }
        }
        let (mut bits, mut near) = (Bits::default(), Near::default());
        for (at, key) in keys.iter().enumerate() {
            let key = key.as_ref();
            self.records[at] = self.chunk(at).and_then(|chunk| {
                let slice = chunk.likely_slice(key, self.abbreviations[at])?;
                let record = chunk.record_near(&mut near.block, slice);
                near.ask(record, bytes_of(key.len()), &mut bits);
                Some(record)
            });
        }
        bits
    }
}

/// Where the record before lies.
#[derive(Default)]
struct Near {
    block: LastBlock,
    page: usize,
    line: usize,
}

impl Near {
    /// Asks for the first bytes of a record, which may begin in the middle of a line, and adds its bit.
    #[inline(always)]
    fn ask(&mut self, record: Record<'_>, bytes: usize, bits: &mut Bits) {
        let page = page(record.address());
        if self.page != page {
            bits.add(record.address());
            self.page = page;
        }
        let first = record.address() as usize / 64;
        let last = (record.address() as usize + bytes - 1) / 64;
        if self.line != last {
            if self.line != first {
                prefetch_line(record.address());
            }
            for at in (64..bytes).step_by(64) {
                prefetch_line(record.address().wrapping_add(at));
            }
            prefetch_line(record.address().wrapping_add(bytes - 1));
            self.line = last;
        }
    }
}

/// Columns that are filled.
struct Buffer {
    asked: Widths,
    keys: Filled,
    values: Filled,
    len: usize,
    len_max: usize,
}

/// The bytes of a column.
struct Filled {
    bytes: Vec<u8>,
    /// Whole words, as many as hold what was asked for.
    width: usize,
}

impl Filled {
    fn new(width: usize, len: usize) -> Filled {
        Filled { bytes: vec![0; width * len], width }
    }

    /// Puts the first of these bytes at a place.
    #[inline(always)]
    fn put(&mut self, at: usize, bytes: &[u8]) {
        let width = self.width;
        let item = &mut self.bytes[at * width..][..width];
        match (item.first_chunk_mut::<8>(), bytes.first_chunk::<8>()) {
            (Some(word), Some(bytes)) if width == 8 => *word = *bytes,
            _ => {
                let len = width.min(bytes.len());
                item[..len].copy_from_slice(&bytes[..len]);
            }
        }
    }

    /// Of a column that is a word wide.
    fn words(&mut self) -> &mut [[u8; 8]] {
        self.bytes.as_chunks_mut().0
    }

    fn column(&self, len: usize) -> Column<'_> {
        match self.width {
            0 => Column::NOTHING,
            width => Column::new(&self.bytes[..len * width], 0, width, width)
                .expect("items as far apart as they are wide"),
        }
    }
}

impl Buffer {
    fn new(asked: Widths) -> Buffer {
        let [key, value] = [asked.key, asked.value].map(|width| width.next_multiple_of(8));
        let len_max = (NEAR_BYTES / (key + value).max(1)).clamp(2 * GROUP, LEN_MAX);
        let (keys, values) = (Filled::new(key, len_max), Filled::new(value, len_max));
        Buffer { asked, keys, values, len: 0, len_max }
    }

    /// Whether another group of entries has room.
    fn has_room(&self) -> bool {
        self.len + GROUP <= self.len_max
    }

    /// Takes the entries of records, up to one that is dead, being changed, or shorter than was asked for: how many.
    ///
    /// # Safety
    /// As of [`Record::read_declared`].
    #[inline]
    unsafe fn take_run(&mut self, asked: &[Asked<'_>]) -> usize {
        let taken = match (self.keys.width, self.values.width) {
            // SAFETY: the caller's.
            (0, 8) => unsafe { self.take_words::<false, true>(asked) },
            // SAFETY: the caller's.
            (8, 0) => unsafe { self.take_words::<true, false>(asked) },
            // SAFETY: the caller's.
            (8, 8) => unsafe { self.take_words::<true, true>(asked) },
            _ => 0,
        };
        // SAFETY: the caller's.
        let others =
            asked[taken..].iter().map_while(|asked| unsafe { asked.record.read_declared() });
        taken + others.take_while(|(key, value)| self.take(key, value)).count()
    }

    /// The same where columns are a word wide, of records that have as much.
    ///
    /// # Safety
    /// As of [`Record::read_declared`].
    #[inline]
    unsafe fn take_words<const KEYS: bool, const VALUES: bool>(
        &mut self,
        asked: &[Asked<'_>],
    ) -> usize {
        let begin = self.len;
        let room = begin..begin + asked.len();
        let keys = if KEYS { &mut self.keys.words()[room.clone()] } else { &mut [] };
        let values = if VALUES { &mut self.values.words()[room] } else { &mut [] };
        let mut taken = 0;
        for asked in asked {
            // SAFETY: the caller's.
            let Some((key, value)) = (unsafe { asked.record.read_declared() }) else { break };
            if KEYS {
                let Some(key) = key.first_chunk() else { break };
                keys[taken] = *key;
            }
            if VALUES {
                let Some(value) = value.first_chunk() else { break };
                values[taken] = *value;
            }
            taken += 1;
        }
        self.len += taken;
        taken
    }

    /// Takes an entry, unless it is shorter than was asked for.
    #[inline(always)]
    fn take(&mut self, key: &[u8], value: &[u8]) -> bool {
        let fits = self.asked.key <= key.len() && self.asked.value <= value.len();
        if fits {
            if self.keys.width > 0 {
                self.keys.put(self.len, key);
            }
            if self.values.width > 0 {
                self.values.put(self.len, value);
            }
            self.len += 1;
        }
        fits
    }

    fn batch(&self) -> ColumnBatch<'_> {
        let (keys, values) = (self.keys.column(self.len), self.values.column(self.len));
        ColumnBatch::new(self.len, keys, values, Validity::All).expect("columns of this length")
    }

    /// Bytes of a record that are read, if its key is so long.
    fn record_bytes(&self, key_len: usize) -> usize {
        value_offset(key_len) + self.values.width
    }
}
