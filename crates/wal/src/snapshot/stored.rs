//! Reading a snapshot: all of it, or what is wanted.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use sapwood_disk::{CachedFile, Disk, Presence, checksum};

use super::streams::{Stream, from_planes};
use super::{BLOCK, CODES_MAX, END_BYTES, ENTRIES_MAX, INDEX, Identity, MAGIC, PREFIX_BYTES, Told};
use crate::error::{Error, Result};
use crate::frame::{number, split};

/// The entries of a table in a file that nothing changes, read in place. It stays readable when the file is removed.
/// Threads share it.
pub struct Snapshot {
    source: Arc<Source>,
    entries: u64,
    key_bytes: u64,
    value_bytes: u64,
    blocks: Vec<BlockAt>,
}

/// Where a block lies.
pub(super) struct BlockAt {
    pub(super) offset: u64,
    head: usize,
    body: usize,
    entries: usize,
    first: Box<[u8]>,
}

/// Some entries of a snapshot, in the order of their keys, whose pieces are read once they are asked for.
pub struct Block {
    source: Arc<Source>,
    number: usize,
    entries: usize,
    layout: u32,
    key_pieces: usize,
    pieces: Vec<PieceAt>,
    read: Vec<OnceLock<Piece>>,
}

/// How a piece of the entries lies in its block.
struct PieceAt {
    /// Of the file.
    offset: u64,
    values: ValuesAt,
    /// Of a dictionary: which of the values each entry has.
    codes: Option<Stream>,
}

/// How values lie one behind the other.
struct ValuesAt {
    len: usize,
    width: Width,
    lens: Option<Stream>,
    bytes: Stream,
}

enum Width {
    Same(usize),
    /// The width of each length.
    Lens(usize),
}

/// The same piece of each entry of a block.
#[derive(Debug)]
pub struct Piece {
    values: Values,
    /// Which of the values each entry has; without, each has its own.
    codes: Option<Vec<u8>>,
}

/// Bytes of several values.
#[derive(Debug)]
pub struct Values {
    bytes: Vec<u8>,
    width: usize,
    len: usize,
    /// Where each ends, if they differ in length.
    ends: Option<Vec<usize>>,
}

impl Piece {
    /// That of an entry of the block.
    ///
    /// # Panics
    /// If the block has fewer.
    #[inline]
    pub fn get(&self, entry: usize) -> &[u8] {
        match &self.codes {
            None => self.values.get(entry),
            Some(codes) => self.values.get(codes[entry].into()),
        }
    }

    /// Those of all entries, one behind the other; or, where there are [codes](Self::codes), those that differ, of which
    /// there are 256 at most.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Where few values differ, the number of that of each entry.
    pub fn codes(&self) -> Option<&[u8]> {
        self.codes.as_deref()
    }
}

impl Values {
    /// One of them.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn get(&self, at: usize) -> &[u8] {
        match &self.ends {
            None => &self.bytes[at * self.width..(at + 1) * self.width],
            Some(ends) => {
                let begin = if at == 0 { 0 } else { ends[at - 1] };
                &self.bytes[begin..ends[at]]
            }
        }
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "a block has entries")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Some of them, one behind the other, and where each ends.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn run(&self, some: Range<usize>) -> (&[u8], impl Iterator<Item = usize>) {
        let end_of = |at: usize| match &self.ends {
            None => at * self.width,
            Some(_) if at == 0 => 0,
            Some(ends) => ends[at - 1],
        };
        let begin = end_of(some.start);
        let bytes = &self.bytes[begin..end_of(some.end)];
        (bytes, some.map(move |at| end_of(at + 1) - begin))
    }

    /// How many bytes each has, if they have as many.
    pub fn width(&self) -> Option<usize> {
        self.ends.is_none().then_some(self.width)
    }
}

/// A file, and which one it should be.
struct Source {
    name: String,
    identity: Identity,
    file: Arc<dyn CachedFile>,
    bytes: u64,
}

/// A head, and where what is behind it begins and how long that is.
struct Section {
    head: Vec<u8>,
    body: u64,
    body_bytes: u64,
}

impl Section {
    fn end(&self) -> u64 {
        self.body + self.body_bytes
    }
}

impl Source {
    fn open(disk: &dyn Disk, identity: &Identity) -> Result<Source> {
        let name = identity.file_name();
        let unread = |cause| Error::io(format!("read {name}"), &cause);
        let file = disk.cached(&name, Presence::There).map_err(unread)?;
        let bytes = file.bytes().map_err(unread)?;
        let source = Source { name, identity: *identity, file, bytes };
        if source.read(0, 32)? != identity.bytes(MAGIC) {
            return Err(source.corrupt(0, "it is not the snapshot that it should be"));
        }
        Ok(source)
    }

    #[cold]
    fn corrupt(&self, offset: u64, what: &str) -> Error {
        Error::corrupt(&self.name, offset, what)
    }

    fn read(&self, offset: u64, bytes: u64) -> Result<Vec<u8>> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.bytes);
        let Some(len) = end.and_then(|_| usize::try_from(bytes).ok()) else {
            return Err(self.corrupt(offset, "it is cut off"));
        };
        let mut read = vec![0; len];
        match self.file.read_at(offset, &mut read) {
            Ok(()) => Ok(read),
            Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.corrupt(offset, "it is cut off"))
            }
            Err(cause) => Err(Error::io(format!("read {}", self.name), &cause)),
        }
    }

    /// Reads the head of the block of this number, or of the index behind so many.
    fn section(&self, offset: u64, number: usize) -> Result<Section> {
        let prefix = self.read(offset, PREFIX_BYTES as u64)?;
        let word = |at: usize| u32::from_le_bytes(prefix[at..at + 4].try_into().expect("4 bytes"));
        let (sum, head_bytes) = (word(0), u64::from(word(4)));
        let body_bytes = u64::from_le_bytes(prefix[8..].try_into().expect("8 bytes"));
        let begin = offset + PREFIX_BYTES as u64;
        let ends = (begin + head_bytes).checked_add(body_bytes);
        if ends.is_none_or(|ends| ends > self.bytes) {
            return Err(self.corrupt(offset, "it is cut off"));
        }
        let head = match self.read(begin, head_bytes) {
            Err(Error::CorruptFile { .. }) => None,
            head => Some(head?),
        };
        let head = head.filter(|head| {
            self.identity.checksum(number as u64, &[&prefix[4..], head].concat()) == sum
        });
        let Some(head) = head else {
            return Err(self.corrupt(offset, "a checksum is wrong"));
        };
        Ok(Section { head, body: begin + head_bytes, body_bytes })
    }

    fn stream(&self, offset: u64, stream: &Stream) -> Result<Vec<u8>> {
        let packed = self.read(offset, stream.packed as u64)?;
        stream.unpack(packed).map_err(|what| self.corrupt(offset, what))
    }
}

impl Snapshot {
    /// Opens one of this version.
    pub(super) fn open(disk: &dyn Disk, identity: &Identity) -> Result<Snapshot> {
        let source = Arc::new(Source::open(disk, identity)?);
        let at = source.bytes.saturating_sub(END_BYTES as u64);
        let end = source.read(at, END_BYTES as u64)?;
        let (covered, sum) = end.split_at(END_BYTES - 4);
        let covers = [&identity.bytes(MAGIC)[..], covered].concat();
        if checksum(&covers).to_le_bytes() != *sum || covered[..8] != MAGIC {
            return Err(source.corrupt(at, "it does not end as a snapshot does"));
        }
        let index = u64::from_le_bytes(covered[8..].try_into().expect("8 bytes"));
        // Its checksum has the number of blocks, which is not known yet.
        let wrong = || source.corrupt(index, "its index is not that of a snapshot");
        let prefix = source.read(index, PREFIX_BYTES as u64)?;
        let head_bytes = u32::from_le_bytes(prefix[4..8].try_into().expect("4 bytes"));
        let head = source.read(index + PREFIX_BYTES as u64, head_bytes.into())?;
        let blocks = index_head(&head).ok_or_else(wrong)?.blocks;
        let section = source.section(index, usize::try_from(blocks).map_err(|_| wrong())?)?;
        let IndexHead { blocks, entries, key_bytes, value_bytes, stream } =
            index_head(&section.head).ok_or_else(wrong)?;
        let told = source.stream(section.body, &stream)?;
        let blocks = blocks_of(&told, blocks).ok_or_else(wrong)?;
        let end = blocks.last().map_or(32, |last| last.offset + last.bytes());
        let counted: u64 = blocks.iter().map(|block| block.entries as u64).sum();
        if end != index || counted != entries {
            return Err(wrong());
        }
        Ok(Snapshot { source, entries, key_bytes, value_bytes, blocks })
    }

    /// How many entries it has.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes of all keys, and of all values.
    pub fn entry_bytes(&self) -> (u64, u64) {
        (self.key_bytes, self.value_bytes)
    }

    /// How many blocks it has.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The block that has a key if any has: the last that does not begin behind it.
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        self.blocks.partition_point(|block| &*block.first <= key).checked_sub(1)
    }

    pub(super) fn file(&self) -> &dyn CachedFile {
        &*self.source.file
    }

    /// Where blocks lie.
    pub(super) fn places(&self) -> &[BlockAt] {
        &self.blocks
    }

    /// The first key of a block.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn first_key(&self, number: usize) -> &[u8] {
        &self.blocks[number].first
    }

    /// Opens a block.
    ///
    /// # Errors
    /// [`Error::CorruptFile`], [`Error::Io`].
    ///
    /// # Panics
    /// If there are fewer.
    pub fn block(&self, number: usize) -> Result<Block> {
        let at = &self.blocks[number];
        let (block, end) = Block::open(&self.source, at.offset, number)?;
        match end == at.offset + at.bytes() && block.entries == at.entries {
            true => Ok(block),
            false => Err(self.source.corrupt(at.offset, "a block is not as the index says")),
        }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("name", &self.source.name)
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}

impl BlockAt {
    pub(super) fn bytes(&self) -> u64 {
        PREFIX_BYTES as u64 + self.head as u64 + self.body as u64
    }
}

struct IndexHead {
    blocks: u64,
    entries: u64,
    key_bytes: u64,
    value_bytes: u64,
    stream: Stream,
}

fn index_head(mut head: &[u8]) -> Option<IndexHead> {
    let rest = &mut head;
    let (kind, blocks, entries) = (number(rest)?, number(rest)?, number(rest)?);
    let (key_bytes, value_bytes) = (number(rest)?, number(rest)?);
    let stream = Stream::decode(rest)?;
    let told = IndexHead { blocks, entries, key_bytes, value_bytes, stream };
    (kind == INDEX && rest.is_empty()).then_some(told)
}

fn blocks_of(mut told: &[u8], count: u64) -> Option<Vec<BlockAt>> {
    let rest = &mut told;
    let mut blocks: Vec<BlockAt> = Vec::new();
    let mut offset = 32_u64;
    for _ in 0..count {
        let mut part = || number(rest).and_then(|part| usize::try_from(part).ok());
        let (head, body, entries, first) = (part()?, part()?, part()?, part()?);
        if !(1..=ENTRIES_MAX).contains(&entries) {
            return None;
        }
        let first: Box<[u8]> = split(rest, first as u64)?.into();
        if blocks.last().is_some_and(|before| before.first >= first) {
            return None;
        }
        let block = BlockAt { offset, head, body, entries, first };
        let bytes = (head as u64).checked_add(body as u64)?.checked_add(PREFIX_BYTES as u64)?;
        offset = offset.checked_add(bytes)?;
        blocks.push(block);
    }
    rest.is_empty().then_some(blocks)
}

impl Width {
    fn parse(rest: &mut &[u8]) -> Option<Width> {
        Some(match number(rest)?.checked_sub(1) {
            Some(width) => Width::Same(usize::try_from(width).ok()?),
            None => Width::Lens(usize::try_from(number(rest)?).ok()?),
        })
    }
}

impl ValuesAt {
    fn parse(
        rest: &mut &[u8],
        len: usize,
        width: Width,
        stream: &mut impl FnMut(&mut &[u8]) -> Option<Stream>,
    ) -> Option<ValuesAt> {
        let lens = match width {
            Width::Same(_) => None,
            Width::Lens(1 | 2 | 4) => Some(stream(rest)?),
            Width::Lens(_) => return None,
        };
        let bytes = stream(rest)?;
        let is_whole = match (&width, &lens) {
            (Width::Lens(width), Some(lens)) => len.checked_mul(*width) == Some(lens.bytes),
            (Width::Same(width), _) => len.checked_mul(*width) == Some(bytes.bytes),
            (Width::Lens(_), None) => false,
        };
        is_whole.then_some(ValuesAt { len, width, lens, bytes })
    }

    /// Bytes of its streams.
    fn packed(&self) -> u64 {
        (self.lens.as_ref().map_or(0, |lens| lens.packed) + self.bytes.packed) as u64
    }
}

impl Block {
    /// Opens the block at an offset; where it ends.
    fn open(source: &Arc<Source>, offset: u64, number: usize) -> Result<(Block, u64)> {
        let section = source.section(offset, number)?;
        Ok((Block::of(source, &section, offset, number)?, section.end()))
    }

    fn of(source: &Arc<Source>, section: &Section, offset: u64, number: usize) -> Result<Block> {
        let wrong = || source.corrupt(offset, "a block says what this program does not know");
        Block::parse(source, section, number).ok_or_else(wrong)
    }

    fn parse(source: &Arc<Source>, section: &Section, block: usize) -> Option<Block> {
        let rest = &mut &section.head[..];
        let mut part = || number(rest).and_then(|part| usize::try_from(part).ok());
        if part()? != BLOCK as usize {
            return None;
        }
        let (entries, layout) = (part()?, u32::try_from(part()?).ok()?);
        let (key_pieces, count) = (part()?, part()?);
        if key_pieces > count || !(1..=ENTRIES_MAX).contains(&entries) {
            return None;
        }
        let mut pieces = Vec::new();
        let mut offset = section.body;
        for _ in 0..count {
            let begin = offset;
            let mut stream = |rest: &mut &[u8]| {
                let stream = Stream::decode(rest)?;
                offset = offset.checked_add(stream.packed as u64)?;
                Some(stream)
            };
            let (values, codes) = match Width::parse(rest)? {
                Width::Lens(0) => {
                    let len = usize::try_from(number(rest)?).ok()?;
                    if !(1..=CODES_MAX).contains(&len) {
                        return None;
                    }
                    let width = Width::parse(rest)?;
                    let values = ValuesAt::parse(rest, len, width, &mut stream)?;
                    let codes = stream(rest)?;
                    (values, Some((codes.bytes == entries).then_some(codes)?))
                }
                width => (ValuesAt::parse(rest, entries, width, &mut stream)?, None),
            };
            pieces.push(PieceAt { offset: begin, values, codes });
        }
        if !rest.is_empty() || offset != section.end() {
            return None;
        }
        let read = pieces.iter().map(|_| OnceLock::new()).collect();
        Some(Block {
            source: Arc::clone(source),
            number: block,
            entries,
            layout,
            key_pieces,
            pieces,
            read,
        })
    }

    /// Which one it is.
    pub fn number(&self) -> usize {
        self.number
    }

    /// How many entries it has; at least one.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The [number](super::Layout::number) of the layout of its entries; 0 where they are two pieces, key and value.
    pub fn layout(&self) -> u32 {
        self.layout
    }

    /// How many pieces its entries have.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// One piece of all entries.
    ///
    /// # Errors
    /// [`Error::CorruptFile`], [`Error::Io`].
    ///
    /// # Panics
    /// If there are fewer.
    pub fn piece(&self, number: usize) -> Result<&Piece> {
        if let Some(piece) = self.read[number].get() {
            return Ok(piece);
        }
        let piece = self.read_piece(&self.pieces[number])?;
        Ok(self.read[number].get_or_init(|| piece))
    }

    fn read_piece(&self, at: &PieceAt) -> Result<Piece> {
        let values = self.read_values(at.offset, &at.values)?;
        let codes = match &at.codes {
            None => None,
            Some(stream) => {
                let codes = self.source.stream(at.offset + at.values.packed(), stream)?;
                if codes.iter().any(|code| usize::from(*code) >= values.len) {
                    return Err(self.source.corrupt(at.offset, "a value is not in its dictionary"));
                }
                Some(codes)
            }
        };
        Ok(Piece { values, codes })
    }

    fn read_values(&self, offset: u64, at: &ValuesAt) -> Result<Values> {
        let ValuesAt { len, width, lens, bytes } = at;
        let (width, lens_width) = match *width {
            Width::Same(width) => {
                let planes = self.source.stream(offset, bytes)?;
                let bytes = from_planes(planes, width);
                return Ok(Values { bytes, width, len: *len, ends: None });
            }
            Width::Lens(width) => (0, width),
        };
        let lens = lens.as_ref().expect("lengths that differ are there");
        let planes = self.source.stream(offset, lens)?;
        let all = self.source.stream(offset + lens.packed as u64, bytes)?;
        let mut end = 0_usize;
        let ends = from_planes(planes, lens_width);
        let ends = ends.chunks_exact(lens_width).map(|len| {
            let mut word = [0; 4];
            word[..lens_width].copy_from_slice(len);
            end += u32::from_le_bytes(word) as usize;
            end
        });
        let ends: Vec<usize> = ends.collect();
        if end != all.len() {
            return Err(self.source.corrupt(offset, "lengths do not add up"));
        }
        Ok(Values { bytes: all, width, len: *len, ends: Some(ends) })
    }

    /// Replaces `key` by that of an entry.
    ///
    /// # Errors
    /// As of [`piece`](Self::piece).
    pub fn key(&self, entry: usize, key: &mut Vec<u8>) -> Result<()> {
        key.clear();
        for piece in 0..self.key_pieces {
            key.extend_from_slice(self.piece(piece)?.get(entry));
        }
        Ok(())
    }

    /// Replaces `value` by that of an entry.
    ///
    /// # Errors
    /// As of [`piece`](Self::piece).
    pub fn value(&self, entry: usize, value: &mut Vec<u8>) -> Result<()> {
        value.clear();
        for piece in self.key_pieces..self.pieces.len() {
            value.extend_from_slice(self.piece(piece)?.get(entry));
        }
        Ok(())
    }

    /// The first entry whose key is not below this one; that of the key if the answer is true.
    ///
    /// # Errors
    /// As of [`piece`](Self::piece).
    pub fn search(&self, key: &[u8]) -> Result<(usize, bool)> {
        let (mut from, mut to) = (0, self.entries);
        let mut middle_key = Vec::new();
        while from < to {
            let middle = (from + to) / 2;
            self.key(middle, &mut middle_key)?;
            match middle_key[..].cmp(key) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Ok((middle, true)),
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        Ok((from, false))
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block")
            .field("number", &self.number)
            .field("entries", &self.entries)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

/// Tells all entries; how many there are. It reads one block after the other, and needs the index for none of them.
pub(super) fn read<E: From<Error>>(
    disk: &dyn Disk,
    identity: &Identity,
    told: &mut dyn Told<E>,
) -> std::result::Result<u64, E> {
    let source = Arc::new(Source::open(disk, identity)?);
    let (mut offset, mut blocks, mut entries) = (32, 0, 0);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    loop {
        let section = source.section(offset, blocks)?;
        if let Some(index) = index_head(&section.head) {
            if index.blocks != blocks as u64 || index.entries != entries {
                return Err(source.corrupt(offset, "it ends where it does not").into());
            }
            // What else is at the end.
            Snapshot::open(disk, identity)?;
            return Ok(entries);
        }
        let block = Block::of(&source, &section, offset, blocks)?;
        for at in 0..block.entries {
            block.key(at, &mut key)?;
            block.value(at, &mut value)?;
            entries += 1;
            told.entry(&key, &value)?;
        }
        told.read(section.end() - offset);
        offset = section.end();
        blocks += 1;
    }
}

#[cfg(test)]
mod tests {
    use sapwood_disk::SimDisk;

    use super::super::streams::push;
    use super::super::{BLOCK, Cut, Layout, Writing, open, write, write_block};
    use super::*;

    const IDENTITY: Identity = Identity { log: 1, checkpoint: 2, table: 3 };

    /// Keys are one piece; values three: of one width, of any, and the rest.
    #[derive(Debug)]
    struct Thirds;

    impl Cut for Thirds {
        fn cut(&self, key: &[u8], value: &[u8], lens: &mut Vec<u32>) -> Option<Layout> {
            let second = value[3..].iter().position(|byte| *byte == b'.')? + 1;
            lens.extend([key.len() as u32, 3, second as u32, (value.len() - 3 - second) as u32]);
            Some(Layout { number: 1, key_pieces: 1 })
        }
    }

    #[test]
    fn pieces_of_which_few_values_differ_are_read_as_they_were_written() {
        let texts = ["", "a", "seven..", "eight...", "more than sixteen bytes", "\0", "\0\0"];
        let mut random = fastrand::Rng::with_seed(4);
        let entries: Vec<(Vec<u8>, Vec<u8>)> = (0..20_000_u32)
            .map(|at| {
                let text = texts[random.usize(..texts.len())].replace('.', "-");
                let third = random.u32(..1 << 20).to_string();
                let value = format!("{:03}{text}.{third}", random.u32(..200));
                (at.to_be_bytes().to_vec(), value.into_bytes())
            })
            .collect();
        let disk = SimDisk::new();
        let writing = Writing { cut: Some(&Thirds), pace: None };
        let tell = |entry: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>| {
            entries.iter().try_for_each(|(key, value)| entry(key, value))
        };
        write(&disk, &IDENTITY, writing, tell).expect("a disk without faults");
        let snapshot = open(&disk, &IDENTITY).expect("no faults").expect("of this version");
        let (mut at, mut key, mut value) = (0, Vec::new(), Vec::new());
        for number in 0..snapshot.blocks() {
            let block = snapshot.block(number).expect("it is there");
            let is_coded: Vec<bool> = (0..4)
                .map(|piece| block.piece(piece).expect("it is there").codes().is_some())
                .collect();
            assert_eq!(is_coded, [false, true, true, false]);
            let piece = block.piece(1).expect("it is there");
            assert_eq!((piece.values().width(), piece.values().len()), (Some(3), 200));
            assert_eq!(block.piece(2).expect("it is there").values().len(), texts.len());
            for entry in 0..block.entries() {
                block.key(entry, &mut key).expect("no faults");
                block.value(entry, &mut value).expect("no faults");
                assert_eq!((&key, &value), (&entries[at].0, &entries[at].1));
                at += 1;
            }
        }
        assert_eq!(at, entries.len());
        assert_eq!(
            read(&disk, &IDENTITY, &mut |_: &[u8], _: &[u8]| Ok::<(), Error>(())),
            Ok(20_000)
        );
    }

    /// Heads and streams that no writer writes, but whose checksums are right.
    #[test]
    fn dictionaries_that_are_none_are_refused() {
        // Two values of one byte each, for three entries; and an empty value.
        let read = |values: usize, codes: &[u8]| {
            let (mut head, mut body) = (Vec::new(), Vec::new());
            for part in [BLOCK, 3, 1, 1, 2, 0, 0, values as u64, 2] {
                push(part, &mut head);
            }
            let bytes: Vec<u8> = (0..values).map(|value| value as u8).collect();
            Stream::pack(&bytes, &mut body).encode(&mut head);
            Stream::pack(codes, &mut body).encode(&mut head);
            push(1, &mut head);
            Stream::pack(b"", &mut body).encode(&mut head);
            let disk = SimDisk::new();
            write_block(&disk, &IDENTITY, (&head, &body), 3).expect("no faults");
            let snapshot = open(&disk, &IDENTITY)?.expect("of this version");
            let block = snapshot.block(0)?;
            let piece = block.piece(0)?;
            Ok((0..3).map(|entry| piece.get(entry)[0]).collect::<Vec<u8>>())
        };
        assert_eq!(read(2, &[0, 1, 0]), Ok(vec![0, 1, 0]));
        assert_eq!(read(256, &[0, 255, 7]), Ok(vec![0, 255, 7]));
        let expect_refused = |read: Result<Vec<u8>>, why: &str| match read {
            Err(Error::CorruptFile { what, .. }) => assert!(what.contains(why), "{what}"),
            read => panic!("{read:?}"),
        };
        expect_refused(read(2, &[0, 2, 0]), "a value is not in its dictionary");
        expect_refused(read(0, &[0, 0, 0]), "does not know");
        expect_refused(read(257, &[0, 0, 0]), "does not know");
        expect_refused(read(2, &[0, 1]), "does not know");
        expect_refused(read(2, &[0, 1, 0, 0]), "does not know");
    }
}
