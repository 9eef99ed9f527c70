//! One file of the log.

use std::io;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, File, OwnedRead, Read, checksum};

use super::PartShape;
use crate::error::{Error, Result};
use crate::files::stored::{self, Damage, Envelope, FileKind, Kind, PageTrailer, PartHeader};
use crate::record::address::PageNumber;

/// Pages whose trailers are read at once when a part is opened.
const OPEN_BATCH: usize = 64;

/// Room for a read and what it must match.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) blocks: Blocks,
    pub(super) checksums: Vec<u32>,
}

/// Blocks of a page that are to be read, and the bytes of them that are wanted.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    page: PageNumber,
    /// In the file, of the first block.
    offset: u64,
    /// Bytes of the blocks that are used, and have checksums.
    used: usize,
    wanted: Range<usize>,
}

/// Bytes of a file that are copied together.
const COPIED_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Part {
    shape: PartShape,
    first_page: PageNumber,
    name: String,
    file: Arc<dyn File>,
    /// Shared by writers of pages; a sync has it alone, since a trailer that is written again while
    /// it is synced might be torn afterwards (I-TRAILER).
    writing: RwLock<()>,
    table: RwLock<Table>,
}

/// The state of the pages. Grows with the part.
#[derive(Debug, Default)]
struct Table {
    header: Fate,
    pages: Vec<Page>,
    /// By page, then by block of its area.
    checksums: Vec<u32>,
    /// Where the file ends.
    limit: u64,
    /// Where the room begins that was not given back, behind the header.
    begin: u64,
}

/// Whether something lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Fate {
    /// Nothing was written.
    #[default]
    Absent,
    /// Written since the last sync.
    Unsynced,
    /// Synced.
    Lasting,
    /// A write or sync of it failed (I-HONEST).
    Doubtful,
}

#[derive(Debug, Clone, Copy, Default)]
struct Page {
    /// Of the newest trailer, whether it was written whole or not.
    generation: u64,
    fate: Fate,
    /// Whether it can be read, and up to which byte.
    used: Option<u32>,
    /// The trailer that says so.
    trailer: TrailerSide,
    /// The bytes that a crash leaves.
    lasting: Option<Lasting>,
}

#[derive(Debug, Clone, Copy)]
struct Lasting {
    used: u32,
    trailer: TrailerSide,
}

/// One of a page's two trailers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TrailerSide {
    #[default]
    First,
    Second,
}

impl TrailerSide {
    fn other(self) -> TrailerSide {
        match self {
            TrailerSide::First => TrailerSide::Second,
            TrailerSide::Second => TrailerSide::First,
        }
    }
}

/// A trailer that was read and is valid.
#[derive(Debug, Clone)]
struct Trailer {
    generation: u64,
    used: u32,
    place: TrailerSide,
    checksums: Vec<u32>,
}

impl Part {
    /// Makes the file and writes its header.
    pub(super) fn create(disk: &dyn Disk, shape: PartShape, number: u64) -> Result<Part> {
        let first_page = shape.first_page_of(number);
        let file = FileKind::Part.create(disk, first_page)?;
        let part = Part::with(shape, first_page, file, Table::default());
        part.write_header()?;
        Ok(part)
    }

    fn with(shape: PartShape, first_page: PageNumber, file: Arc<dyn File>, table: Table) -> Part {
        let name = FileKind::Part.file_name(first_page);
        let (writing, table) = (RwLock::default(), RwLock::new(table));
        Part { shape, first_page, name, file, writing, table }
    }

    fn write_header(&self) -> Result<()> {
        let mut block = Blocks::new(BLOCK_BYTES);
        let header = PartHeader {
            envelope: Envelope::unsealed(),
            page_bytes: self.shape.page_bytes.into(),
            first_page: self.first_page.get().into(),
            page_count: self.shape.pages_per_part.into(),
            table_id: self.shape.table_id.into(),
        };
        stored::seal(Kind::PartHeader, &header, block.bytes_mut());
        let written = self.file.write_at(0, &block);
        let mut table = self.table_mut();
        table.header = if written.is_ok() { Fate::Unsynced } else { Fate::Doubtful };
        table.limit = table.limit.max(BLOCK_BYTES as u64);
        written.map_err(|cause| Error::io(format!("write the header of {}", self.name), &cause))
    }

    /// Opens the file, of which pages within `pages` must be there.
    pub(super) fn open(
        disk: &dyn Disk,
        shape: PartShape,
        number: u64,
        pages: &Range<PageNumber>,
    ) -> Result<Part> {
        let first_page = shape.first_page_of(number);
        let file = FileKind::Part.open(disk, first_page)?;
        let part = Part::with(shape, first_page, file, Table::default());
        let file_bytes = stored::file_bytes(&*part.file, &part.name)?;
        part.check_header()?;
        let expected =
            pages.start.max(first_page)..pages.end.min(first_page.plus(shape.pages_per_part));
        let limit = part.slot_limit(expected.end.before(1));
        if file_bytes < limit {
            let what = format!("the file ends before byte {limit}, where its last page should");
            return Err(Error::Corrupt { file: part.name, offset: file_bytes, what });
        }
        let mut table = Table { header: Fate::Lasting, limit: file_bytes, ..Table::default() };
        let numbers: Vec<PageNumber> = PageNumber::each(expected).collect();
        for batch in numbers.chunks(OPEN_BATCH) {
            part.open_pages(disk, batch, &mut table)?;
        }
        *part.table_mut() = table;
        Ok(part)
    }

    fn check_header(&self) -> Result<()> {
        let block = stored::read_block(&*self.file, &self.name, 0)?;
        let header: PartHeader = stored::check_alone(Kind::PartHeader, block.bytes())
            .map_err(|damage| damage.in_file(&self.name, 0))?;
        for (offset, what, stored, expected) in [
            (
                std::mem::offset_of!(PartHeader, page_bytes),
                "bytes in a page",
                header.page_bytes,
                self.shape.page_bytes,
            ),
            (
                std::mem::offset_of!(PartHeader, first_page),
                "for its first page",
                header.first_page,
                self.first_page.get(),
            ),
            (
                std::mem::offset_of!(PartHeader, page_count),
                "pages in a part",
                header.page_count,
                self.shape.pages_per_part,
            ),
        ] {
            if stored != expected {
                let what = format!("the header says {stored} {what}, and {expected} is expected");
                return Err(Damage::new(offset, what).in_file(&self.name, 0));
            }
        }
        if header.table_id != self.shape.table_id {
            let offset = std::mem::offset_of!(PartHeader, table_id);
            return Err(stored::of_another_table(offset, "log part").in_file(&self.name, 0));
        }
        Ok(())
    }

    /// Learns of pages from their trailers.
    fn open_pages(&self, disk: &dyn Disk, batch: &[PageNumber], table: &mut Table) -> Result<()> {
        let trailer_bytes = self.shape.trailer_bytes() as usize;
        let mut buffers = vec![Blocks::new(2 * trailer_bytes); batch.len()];
        let mut reads: Vec<Read<'_>> = batch
            .iter()
            .zip(&mut buffers)
            .map(|(page, into)| {
                let offset = self.trailer_offset(*page, TrailerSide::First);
                Read { file: &*self.file, offset, into, result: Ok(()) }
            })
            .collect();
        disk.read_many(&mut reads);
        for (page, read) in batch.iter().zip(reads) {
            read.result.map_err(|cause| {
                stored::read_error(&self.name, read.offset, 2 * trailer_bytes, &cause)
            })?;
            let (first, second) = read.into.bytes().split_at(trailer_bytes);
            let first = self.parse_trailer(*page, TrailerSide::First, first);
            let second = self.parse_trailer(*page, TrailerSide::Second, second);
            let trailer = match (first, second) {
                (Ok(first), Ok(second)) => self.pick(*page, first, second)?,
                (Ok(trailer), Err(_)) | (Err(_), Ok(trailer)) => trailer,
                (Err(damage), Err(_)) => return Err(damage.in_file(&self.name, read.offset)),
            };
            table.take_over(self.index(*page), trailer, self.shape);
        }
        Ok(())
    }

    /// The newer of two valid trailers, if the blocks that it vouches for are there: it may have
    /// reached the disk before they did.
    fn pick(&self, page: PageNumber, first: Trailer, second: Trailer) -> Result<Trailer> {
        let (older, newer) =
            if first.generation < second.generation { (first, second) } else { (second, first) };
        Ok(if self.blocks_match(page, &older, &newer)? { newer } else { older })
    }

    /// Whether the blocks are there that `newer` vouches for and `older` does not.
    fn blocks_match(&self, page: PageNumber, older: &Trailer, newer: &Trailer) -> Result<bool> {
        let used = newer.used as usize;
        let count = used.div_ceil(BLOCK_BYTES);
        let old_whole = older.used as usize / BLOCK_BYTES;
        let same = |block: &usize| {
            *block < old_whole && older.checksums[*block] == newer.checksums[*block]
        };
        let Some(from) = (0..count).find(|block| !same(block)) else {
            return Ok(true);
        };
        let mut blocks = Blocks::new((count - from) * BLOCK_BYTES);
        let offset = self.area_offset(page) + (from * BLOCK_BYTES) as u64;
        stored::read(&*self.file, &self.name, offset, &mut blocks)?;
        let used = &blocks.bytes()[..used - from * BLOCK_BYTES];
        let mut checksums = used.chunks(BLOCK_BYTES).map(checksum);
        Ok(newer.checksums[from..count].iter().all(|expected| checksums.next() == Some(*expected)))
    }

    fn parse_trailer(
        &self,
        page: PageNumber,
        place: TrailerSide,
        bytes: &[u8],
    ) -> std::result::Result<Trailer, Damage> {
        let raw: PageTrailer = stored::check(Kind::PageTrailer, bytes)?;
        if raw.page != page.get() {
            let what = format!("the trailer is of page {}, not {page}", raw.page);
            return Err(Damage::new(std::mem::offset_of!(PageTrailer, page), what));
        }
        if raw.used.get() > self.shape.page_bytes {
            let what = format!("{} bytes of a page of {}", raw.used, self.shape.page_bytes);
            return Err(Damage::new(std::mem::offset_of!(PageTrailer, used), what));
        }
        if raw.generation == 0 || raw.reserved != 0 {
            let what = "a generation of zero, or reserved bytes that are not zero";
            return Err(Damage::new(std::mem::offset_of!(PageTrailer, generation), what));
        }
        let used_blocks = (raw.used.get() as usize).div_ceil(BLOCK_BYTES);
        stored::check_zeros(bytes, size_of::<PageTrailer>() + 4 * used_blocks)?;
        let checksums = &bytes[size_of::<PageTrailer>()..][..4 * self.shape.blocks_per_page()];
        let (checksums, _) = checksums.as_chunks::<4>();
        Ok(Trailer {
            generation: raw.generation.get(),
            used: raw.used.get() as u32,
            place,
            checksums: checksums.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
        })
    }

    pub(super) fn write_page(
        &self,
        page: PageNumber,
        used: usize,
        bytes: &Blocks,
        scratch: &mut Scratch,
    ) -> Result<()> {
        debug_assert!(used as u64 <= self.shape.page_bytes && used <= bytes.bytes().len());
        let _shared = self.writing.read().unwrap_or_else(PoisonError::into_inner);
        if self.table().header == Fate::Doubtful {
            self.write_header()?;
        }
        scratch.checksums.clear();
        scratch.checksums.extend(bytes.bytes()[..used].chunks(BLOCK_BYTES).map(checksum));
        self.check_prefix(page, used, bytes, &scratch.checksums)?;

        let index = self.index(page);
        let mut table = self.table_mut();
        table.reach(index, self.shape);
        let state = &mut table.pages[index];
        // Until all is written, a crash may find any part of it.
        state.fate = Fate::Doubtful;
        state.generation += 1;
        let (generation, lasting) = (state.generation, state.lasting);
        table.limit = table.limit.max(self.slot_limit(page));
        drop(table);

        let place = lasting.map_or(TrailerSide::First, |lasting| lasting.trailer.other());
        // Blocks that last whole are not touched again.
        let from = lasting.map_or(0, |lasting| lasting.used as usize / BLOCK_BYTES);
        let offset = self.area_offset(page) + (from * BLOCK_BYTES) as u64;
        self.file
            .write_some_at(offset, bytes, from..used.div_ceil(BLOCK_BYTES))
            .and_then(|()| {
                self.seal_trailer(page, used, generation, scratch);
                if lasting.is_none() {
                    // The first trailer clears the place of the second: what an older file or a
                    // forgotten page left there must not be taken for this page's.
                    scratch.blocks.resize(2 * self.shape.trailer_bytes() as usize);
                }
                self.file.write_at(self.trailer_offset(page, place), &scratch.blocks)
            })
            .map_err(|cause| Error::io(format!("write page {page} to {}", self.name), &cause))?;

        let mut table = self.table_mut();
        let first = index * self.shape.blocks_per_page();
        table.checksums[first..][..scratch.checksums.len()].copy_from_slice(&scratch.checksums);
        let state = &mut table.pages[index];
        state.fate = Fate::Unsynced;
        state.used = Some(used as u32);
        state.trailer = place;
        Ok(())
    }

    /// Refuses what breaks I-PREFIX.
    fn check_prefix(
        &self,
        page: PageNumber,
        used: usize,
        bytes: &Blocks,
        checksums: &[u32],
    ) -> Result<()> {
        let table = self.table();
        let state = table.page(self.index(page));
        let Some(old_used) = state.used.map(|used| used as usize) else {
            return Ok(());
        };
        if state.lasting.is_none() && state.fate == Fate::Doubtful {
            return Ok(());
        }
        let (whole, rest) = (old_used / BLOCK_BYTES, old_used % BLOCK_BYTES);
        let old = table.checksums_of(self.index(page), self.shape);
        let same = used >= old_used
            && old[..whole] == checksums[..whole]
            && (rest == 0 || old[whole] == checksum(&bytes.bytes()[whole * BLOCK_BYTES..][..rest]));
        if same {
            return Ok(());
        }
        Err(Error::Corrupt {
            file: self.name.clone(),
            offset: self.area_offset(page),
            what: format!(
                "page {page} is to be written with {used} bytes, and the {old_used} that it has would change: nothing was written"
            ),
        })
    }

    fn seal_trailer(&self, page: PageNumber, used: usize, generation: u64, scratch: &mut Scratch) {
        scratch.blocks.resize(self.shape.trailer_bytes() as usize);
        let bytes = scratch.blocks.bytes_mut();
        bytes.fill(0);
        let (places, _) = bytes[size_of::<PageTrailer>()..].as_chunks_mut::<4>();
        for (place, checksum) in places.iter_mut().zip(&scratch.checksums) {
            *place = checksum.to_le_bytes();
        }
        let trailer = PageTrailer {
            envelope: Envelope::unsealed(),
            page: page.get().into(),
            generation: generation.into(),
            used: (used as u64).into(),
            reserved: 0.into(),
        };
        stored::seal(Kind::PageTrailer, &trailer, bytes);
    }

    pub(super) fn sync(&self) -> Result<()> {
        let _alone = self.writing.write().unwrap_or_else(PoisonError::into_inner);
        if self.table().has(Fate::Unsynced) {
            let synced = self.file.sync();
            let fate = if synced.is_ok() { Fate::Lasting } else { Fate::Doubtful };
            self.table_mut().settle(fate);
            synced.map_err(|cause| Error::io(format!("sync {}", self.name), &cause))?;
        }
        let table = self.table();
        let doubtful = table.pages.iter().position(|page| page.fate == Fate::Doubtful);
        let Some(index) = doubtful else {
            return Ok(());
        };
        let page = self.first_page.plus(index as u64);
        let why =
            format!("page {page} may be lost since a write or sync of it failed: write it again");
        Err(Error::io(format!("sync {}", self.name), &io::Error::other(why)))
    }

    /// Bytes of a page that were written.
    pub(super) fn used(&self, page: PageNumber) -> Result<usize> {
        let used = self.table().page(self.index(page)).used;
        used.map(|used| used as usize).ok_or_else(|| Error::Corrupt {
            file: self.name.clone(),
            offset: self.area_offset(page),
            what: format!("page {page} was never written"),
        })
    }

    /// The blocks to read for bytes of one page, with the checksums that the blocks had when this
    /// was asked. Should the page be written again meanwhile, the bytes that these vouch for stay
    /// the same (I-PREFIX).
    pub(super) fn plan(&self, address: u64, len: usize, scratch: &mut Scratch) -> Result<Piece> {
        let page = self.shape.page_of(address);
        let begin = (address % self.shape.page_bytes) as usize;
        let index = self.index(page);
        let table = self.table();
        let limit = begin.saturating_add(len);
        let used = table.page(index).used.map(|used| used as usize);
        let Some(used) = used.filter(|used| limit <= *used) else {
            let what = match used {
                None => format!("page {page} was never written"),
                Some(used) => {
                    format!("page {page} has {used} bytes, and {begin} to {limit} are wanted")
                }
            };
            return Err(Error::Corrupt {
                file: self.name.clone(),
                offset: self.area_offset(page),
                what,
            });
        };
        let blocks = begin / BLOCK_BYTES..limit.div_ceil(BLOCK_BYTES).max(begin / BLOCK_BYTES);
        scratch.checksums.clear();
        let checksums = table.checksums_of(index, self.shape);
        scratch.checksums.extend_from_slice(&checksums[blocks.clone()]);
        drop(table);
        scratch.blocks.resize(blocks.len() * BLOCK_BYTES);
        let base = blocks.start * BLOCK_BYTES;
        let piece = Piece {
            page,
            offset: self.area_offset(page) + base as u64,
            used: used.min(blocks.end * BLOCK_BYTES).saturating_sub(base),
            wanted: begin - base..limit - base,
        };
        debug_assert!(piece.wanted.end <= piece.used, "only what is used has checksums");
        debug_assert!(piece.offset + scratch.blocks.bytes().len() as u64 <= self.slot_limit(page));
        Ok(piece)
    }

    pub(super) fn read(&self, piece: &Piece, scratch: &mut Scratch) -> Result<()> {
        stored::read(&*self.file, &self.name, piece.offset, &mut scratch.blocks)
    }

    /// The same read, to be begun.
    pub(super) fn owned_read(&self, piece: &Piece, into: Blocks) -> OwnedRead {
        OwnedRead { file: Arc::clone(&self.file), offset: piece.offset, into }
    }

    /// What has become of it.
    pub(super) fn answered(
        &self,
        piece: &Piece,
        scratch: &Scratch,
        result: io::Result<()>,
    ) -> Result<()> {
        let bytes = scratch.blocks.bytes().len();
        result.map_err(|cause| stored::read_error(&self.name, piece.offset, bytes, &cause))
    }

    /// The wanted bytes, once their blocks have been compared with their checksums.
    pub(super) fn check<'a>(&self, piece: &Piece, scratch: &'a Scratch) -> Result<&'a [u8]> {
        debug_assert!(piece.wanted.end <= piece.used, "each byte is checked before it is shown");
        debug_assert_eq!(scratch.checksums.len(), scratch.blocks.bytes().len() / BLOCK_BYTES);
        let used = &scratch.blocks.bytes()[..piece.used];
        for (number, (block, expected)) in
            used.chunks(BLOCK_BYTES).zip(&scratch.checksums).enumerate()
        {
            if checksum(block) != *expected {
                return Err(Error::Corrupt {
                    file: self.name.clone(),
                    offset: piece.offset + (number * BLOCK_BYTES) as u64,
                    what: format!("a block of page {} does not match its checksum", piece.page),
                });
            }
        }
        Ok(&scratch.blocks.bytes()[piece.wanted.clone()])
    }

    /// Reads the used bytes of a page to the front of `scratch`.
    pub(super) fn read_page(&self, page: PageNumber, scratch: &mut Scratch) -> Result<usize> {
        let used = self.table().page(self.index(page)).used.unwrap_or(0) as usize;
        let piece = self.plan(page.get() * self.shape.page_bytes, used, scratch)?;
        self.read(&piece, scratch)?;
        Ok(self.check(&piece, scratch)?.len())
    }

    /// Forgets pages from `page` on.
    pub(super) fn forget_from(&self, page: PageNumber) {
        let mut table = self.table_mut();
        let from = self.first_page.until(page) as usize;
        table.pages.truncate(from);
        table.checksums.truncate(from * self.shape.blocks_per_page());
    }

    /// Whether there are pages from `page` on.
    pub(super) fn has_from(&self, page: PageNumber) -> bool {
        self.table().pages.len() > self.first_page.until(page) as usize
    }

    /// The part with the pages below `page`, in a file of its own that takes this one's name.
    pub(super) fn copy_below(&self, disk: &dyn Disk, page: PageNumber) -> Result<Part> {
        let limit = self.area_offset(page);
        let io = |cause: std::io::Error| Error::io(format!("copy {}", self.name), &cause);
        let file = FileKind::UnfinishedPart.create(disk, self.first_page)?;
        let mut at = 0;
        while at < limit {
            let mut bytes = Blocks::new((limit - at).min(COPIED_BYTES) as usize);
            self.file.read_at(at, &mut bytes).map_err(io)?;
            file.write_at(at, &bytes).map_err(io)?;
            at += bytes.bytes().len() as u64;
        }
        file.sync().map_err(io)?;
        let unfinished = FileKind::UnfinishedPart.file_name(self.first_page);
        disk.rename(&unfinished, &self.name).map_err(io)?;
        stored::sync_names(disk)?;
        let table = std::mem::take(&mut *self.table_mut());
        let part = Part::with(self.shape, self.first_page, file, table);
        part.forget_from(page);
        let mut table = part.table_mut();
        (table.begin, table.limit) = (0, limit);
        drop(table);
        Ok(part)
    }

    /// Whether the file has bytes from `page` on.
    pub(super) fn reaches(&self, page: PageNumber) -> Result<bool> {
        Ok(stored::file_bytes(&*self.file, &self.name)? > self.area_offset(page))
    }

    /// Cuts off the bytes of forgotten pages from `page` on.
    pub(super) fn cut_from(&self, page: PageNumber) -> Result<()> {
        let limit = self.area_offset(page);
        if self.reaches(page)? {
            self.file
                .cut(limit)
                .map_err(|cause| Error::io(format!("shorten {}", self.name), &cause))?;
        }
        let mut table = self.table_mut();
        table.limit = table.limit.min(limit);
        Ok(())
    }

    /// Gives the room of the pages below `page` back, of which none is read again. Answers the bytes.
    pub(super) fn discard_below(&self, page: PageNumber) -> Result<u64> {
        let range = {
            let mut table = self.table_mut();
            let range =
                table.begin.max(BLOCK_BYTES as u64)..self.area_offset(page).min(table.limit);
            if range.is_empty() {
                return Ok(0);
            }
            table.begin = range.end;
            range
        };
        let given_back = self.file.discard(range.clone());
        given_back
            .map_err(|cause| Error::io(format!("give back room of {}", self.name), &cause))?;
        Ok(range.end - range.start)
    }

    /// Bytes of the file that have room.
    pub(super) fn file_bytes(&self) -> u64 {
        let table = self.table();
        table.limit.saturating_sub(table.begin.saturating_sub(BLOCK_BYTES as u64))
    }

    pub(super) fn table_bytes(&self) -> u64 {
        let table = self.table();
        let bytes = table.pages.capacity() * size_of::<Page>() + table.checksums.capacity() * 4;
        (bytes + size_of::<Part>() + self.name.capacity()) as u64
    }

    fn index(&self, page: PageNumber) -> usize {
        debug_assert_eq!(self.shape.first_page_of(self.shape.part_of(page)), self.first_page);
        page.since(self.first_page) as usize
    }

    fn area_offset(&self, page: PageNumber) -> u64 {
        BLOCK_BYTES as u64 + page.since(self.first_page) * self.shape.slot_bytes()
    }

    fn trailer_offset(&self, page: PageNumber, place: TrailerSide) -> u64 {
        let first = self.area_offset(page) + self.shape.area_bytes();
        match place {
            TrailerSide::First => first,
            TrailerSide::Second => first + self.shape.trailer_bytes(),
        }
    }

    fn slot_limit(&self, page: PageNumber) -> u64 {
        self.area_offset(page) + self.shape.slot_bytes()
    }

    fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn page(&self, index: usize) -> Page {
        self.pages.get(index).copied().unwrap_or_default()
    }

    fn checksums_of(&self, index: usize, shape: PartShape) -> &[u32] {
        let count = shape.blocks_per_page();
        &self.checksums[index * count..][..count]
    }

    fn reach(&mut self, index: usize, shape: PartShape) {
        if self.pages.len() <= index {
            self.pages.resize(index + 1, Page::default());
            self.checksums.resize((index + 1) * shape.blocks_per_page(), 0);
        }
    }

    /// Notes a page that was read from the disk.
    fn take_over(&mut self, index: usize, trailer: Trailer, shape: PartShape) {
        self.reach(index, shape);
        let Trailer { generation, used, place, checksums } = trailer;
        self.pages[index] = Page {
            generation,
            fate: Fate::Lasting,
            used: Some(used),
            trailer: place,
            lasting: Some(Lasting { used, trailer: place }),
        };
        self.checksums[index * shape.blocks_per_page()..][..checksums.len()]
            .copy_from_slice(&checksums);
    }

    fn has(&self, fate: Fate) -> bool {
        self.header == fate || self.pages.iter().any(|page| page.fate == fate)
    }

    /// Unsynced pages are lasting or doubtful from now on.
    fn settle(&mut self, fate: Fate) {
        if self.header == Fate::Unsynced {
            self.header = fate;
        }
        for page in self.pages.iter_mut().filter(|page| page.fate == Fate::Unsynced) {
            page.fate = fate;
            if let (Fate::Lasting, Some(used)) = (fate, page.used) {
                page.lasting = Some(Lasting { used, trailer: page.trailer });
            }
        }
    }
}
