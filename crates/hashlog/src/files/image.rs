//! Images: an index written to a file.
//!
//! An image is a stream of words that mean something to the index alone. It is written in chunks of
//! at most [`CHUNK_BYTES`], each sealed, and ends with a block that counts them, so that a reader
//! notices an image that was cut off.
//!
//! ```text
//!  0        4 KiB          1 MiB + 4 KiB                          a multiple of 4 KiB
//!  ├────────┼──────────────┼──────── ··· ────┼──────────────┼─────┤
//!  │ header │ chunk 0      │ chunk 1         │ last chunk,  │ end │
//!  │        │ 1 MiB, full  │ 1 MiB, full     │ may be short │     │
//! ```

use std::sync::Arc;

use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, File};

use crate::error::{Error, Result};
use crate::files::checkpoint_number::CheckpointNumber;
use crate::files::stored::{
    self, Damage, Envelope, FileKind, ImageChunk, ImageEnd, ImageHeader, Kind,
};

/// Bytes of a full chunk. Stored: every chunk but the last is full.
const CHUNK_BYTES: usize = 1 << 20;
const WORDS_MAX: usize = words_max(CHUNK_BYTES);

/// Words that fit into a chunk.
const fn words_max(chunk_bytes: usize) -> usize {
    (chunk_bytes - size_of::<ImageChunk>()) / size_of::<u64>()
}

/// Writes an image.
pub(crate) struct ImageWriter<'a> {
    disk: &'a dyn Disk,
    file: Arc<dyn File>,
    name: String,
    chunk: Blocks,
    /// Words in `chunk`.
    count: usize,
    sequence: u64,
    total: u64,
    offset: u64,
}

impl<'a> ImageWriter<'a> {
    /// Begins the image of checkpoint `number`, in place of one that was left behind.
    pub(crate) fn create(
        disk: &'a dyn Disk,
        number: CheckpointNumber,
        params: [u64; 8],
    ) -> Result<ImageWriter<'a>> {
        let file = FileKind::Image.create(disk, number)?;
        let mut writer = ImageWriter {
            disk,
            file,
            name: FileKind::Image.file_name(number),
            chunk: Blocks::new(CHUNK_BYTES),
            count: 0,
            sequence: 0,
            total: 0,
            offset: 0,
        };
        let mut block = Blocks::new(BLOCK_BYTES);
        let header = ImageHeader {
            envelope: Envelope::unsealed(),
            number: number.get().into(),
            params: params.map(Into::into),
        };
        stored::seal(Kind::ImageHeader, &header, block.bytes_mut());
        writer.append(&block)?;
        Ok(writer)
    }

    /// Adds a word.
    pub(crate) fn push(&mut self, word: u64) -> Result<()> {
        let at = size_of::<ImageChunk>() + self.count * size_of::<u64>();
        self.chunk.bytes_mut()[at..at + size_of::<u64>()].copy_from_slice(&word.to_le_bytes());
        self.count += 1;
        if self.count == WORDS_MAX { self.write_chunk() } else { Ok(()) }
    }

    fn write_chunk(&mut self) -> Result<()> {
        let used = size_of::<ImageChunk>() + self.count * size_of::<u64>();
        self.chunk.bytes_mut()[used..].fill(0);
        self.chunk.resize(used);
        let header = ImageChunk {
            envelope: Envelope::unsealed(),
            sequence: self.sequence.into(),
            count: (self.count as u64).into(),
        };
        stored::seal(Kind::ImageChunk, &header, self.chunk.bytes_mut());
        let mut chunk = std::mem::take(&mut self.chunk);
        let written = self.append(&chunk);
        chunk.resize(CHUNK_BYTES);
        self.chunk = chunk;
        self.total += self.count as u64;
        self.count = 0;
        self.sequence += 1;
        written
    }

    fn append(&mut self, blocks: &Blocks) -> Result<()> {
        self.file
            .write_at(self.offset, blocks)
            .map_err(|cause| Error::io(format!("write {}", self.name), &cause))?;
        self.offset += blocks.bytes().len() as u64;
        Ok(())
    }

    /// Ends the image and makes it last. Answers its bytes.
    ///
    /// # Errors
    /// `Io` when the disk failed; the image is worthless then.
    pub(crate) fn finish(mut self) -> Result<u64> {
        if self.count > 0 {
            self.write_chunk()?;
        }
        let mut block = Blocks::new(BLOCK_BYTES);
        let end = ImageEnd {
            envelope: Envelope::unsealed(),
            sequence: self.sequence.into(),
            count: self.total.into(),
        };
        stored::seal(Kind::ImageEnd, &end, block.bytes_mut());
        self.append(&block)?;
        self.file.sync().map_err(|cause| Error::io(format!("sync {}", self.name), &cause))?;
        stored::sync_names(self.disk)?;
        Ok(self.offset)
    }
}

/// Reads an image, chunk by chunk.
pub(crate) struct ImageReader {
    file: Arc<dyn File>,
    name: String,
    file_bytes: u64,
    params: [u64; 8],
    chunk: Blocks,
    words: Vec<u64>,
    offset: u64,
    sequence: u64,
    total: u64,
    ended: bool,
}

impl ImageReader {
    /// Opens the image of checkpoint `number`.
    ///
    /// # Errors
    /// `Corrupt` when it is missing or its header is damaged, `Io` when the disk fails.
    pub(crate) fn open(disk: &dyn Disk, number: CheckpointNumber) -> Result<ImageReader> {
        let name = FileKind::Image.file_name(number);
        let file = FileKind::Image.open(disk, number)?;
        let file_bytes = stored::file_bytes(&*file, &name)?;
        let block = stored::read_block(&*file, &name, 0)?;
        let header: ImageHeader = stored::check_alone(Kind::ImageHeader, block.bytes())
            .map_err(|damage| damage.in_file(&name, 0))?;
        if header.number != number.get() {
            let what = format!("the image of checkpoint {} under this name", header.number);
            let damage = Damage::new(std::mem::offset_of!(ImageHeader, number), what);
            return Err(damage.in_file(&name, 0));
        }
        Ok(ImageReader {
            file,
            name,
            file_bytes,
            params: header.params.map(|param| param.get()),
            chunk: Blocks::default(),
            words: Vec::new(),
            offset: BLOCK_BYTES as u64,
            sequence: 0,
            total: 0,
            ended: false,
        })
    }

    /// The parameters given to [`ImageWriter::create`].
    pub(crate) fn params(&self) -> [u64; 8] {
        self.params
    }

    /// The next words, at least one, or `None` after the last. Only `None` says that the image was
    /// whole.
    ///
    /// # Errors
    /// `Corrupt` where the image is damaged or cut off, `Io` when the disk fails; the same again
    /// when asked again.
    pub(crate) fn next_words(&mut self) -> Result<Option<&[u64]>> {
        if self.ended {
            return Ok(None);
        }
        let rest = self.file_bytes.saturating_sub(self.offset);
        let bytes = rest.min(CHUNK_BYTES as u64) as usize / BLOCK_BYTES * BLOCK_BYTES;
        self.chunk.resize(bytes);
        stored::read(&*self.file, &self.name, self.offset, &mut self.chunk)?;
        let bytes = self.chunk.bytes();
        let full = self.total == self.sequence * WORDS_MAX as u64;
        let parsed = if rest == BLOCK_BYTES as u64 {
            parse_end(bytes, self.sequence, self.total).map(|()| BLOCK_BYTES)
        } else if !full {
            Err(Damage::new(0, "another chunk follows a short one"))
        } else {
            parse_chunk(bytes, self.sequence, &mut self.words)
        };
        let len = parsed.map_err(|damage| damage.in_file(&self.name, self.offset))?;
        if rest == BLOCK_BYTES as u64 {
            self.ended = true;
            return Ok(None);
        }
        self.offset += len as u64;
        self.sequence += 1;
        self.total += self.words.len() as u64;
        Ok(Some(&self.words))
    }
}

/// Takes the words of the chunk that begins `bytes`; answers how long the chunk is.
fn parse_chunk(
    bytes: &[u8],
    sequence: u64,
    words: &mut Vec<u64>,
) -> std::result::Result<usize, Damage> {
    // How much the checksum covers depends on the count, which it covers: so the count is only
    // believed as far as there are bytes.
    let unchecked: ImageChunk = match zerocopy::FromBytes::read_from_prefix(bytes) {
        Ok((header, _)) => header,
        Err(_) => return Err(Damage::new(bytes.len(), "the image is cut off")),
    };
    let count = unchecked.count.get();
    let offset = std::mem::offset_of!(ImageChunk, count);
    if count == 0 || count > WORDS_MAX as u64 {
        let what = format!("{count} words, and a chunk has 1 to {WORDS_MAX}");
        return Err(Damage::new(offset, what));
    }
    let used = size_of::<ImageChunk>() + count as usize * size_of::<u64>();
    let len = used.next_multiple_of(BLOCK_BYTES);
    if len > bytes.len() {
        let what = format!("{count} words do not fit into the rest of the file");
        return Err(Damage::new(offset, what));
    }
    let header: ImageChunk = stored::check(Kind::ImageChunk, &bytes[..len])?;
    stored::check_zeros(&bytes[..len], used)?;
    if header.sequence != sequence {
        let what = format!("chunk {} where {sequence} should be", header.sequence);
        return Err(Damage::new(std::mem::offset_of!(ImageChunk, sequence), what));
    }
    let (stored_words, _) = bytes[size_of::<ImageChunk>()..used].as_chunks::<8>();
    words.clear();
    words.extend(stored_words.iter().map(|word| u64::from_le_bytes(*word)));
    Ok(len)
}

fn parse_end(bytes: &[u8], sequence: u64, total: u64) -> std::result::Result<(), Damage> {
    let end: ImageEnd = stored::check_alone(Kind::ImageEnd, bytes)?;
    if end.sequence != sequence || end.count != total {
        let what = format!(
            "the image should have {} words in {} chunks, and {total} in {sequence} are there",
            end.count, end.sequence
        );
        return Err(Damage::new(std::mem::offset_of!(ImageEnd, sequence), what));
    }
    Ok(())
}

/// Removes an image, if it is there.
pub(crate) fn remove(disk: &dyn Disk, number: CheckpointNumber) -> Result<()> {
    FileKind::Image.remove(disk, number)
}

#[cfg(test)]
mod tests;
