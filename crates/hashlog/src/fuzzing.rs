//! Decoders for the fuzz targets in `fuzz`.
//!
//! Each takes any bytes and panics where a promise is broken: bytes are refused as corrupt, or
//! mean something of which the same bytes would be written. Checksums of such a build are all zero
//! ([`sapwood_disk::checksum`]), so that what lies behind them is reached.

use std::ops::ControlFlow;
use std::sync::Arc;

use sapwood_disk::{BLOCK_BYTES, Blocks, SimDisk};

use crate::error::{Error, Result};
use crate::files::checkpoint_number::CheckpointNumber;
use crate::files::image::{ImageReader, ImageWriter};
use crate::files::manifest::Manifest;
use crate::files::page::for_each_stored;
use crate::files::parts::Parts;
use crate::files::stored::{self, FileKind, Kind};
use crate::record::address::PageNumber;
use crate::record::{Fixed, Form, Variable};

/// Blocks of which the input has the first bytes alone, since hardly more than these say anything:
/// a piece is a kind and 64 bytes. Of most kinds it goes without an envelope, which it gets here.
fn blocks(input: &[u8]) -> Vec<u8> {
    const PIECE: usize = 64;
    let mut bytes = Vec::new();
    for piece in input.chunks(1 + PIECE) {
        let mut block = vec![0; BLOCK_BYTES];
        let (kind, begin) = match piece[0] % 8 {
            1 => (Some(Kind::Manifest), 16),
            2 => (Some(Kind::ImageHeader), 16),
            3 => (Some(Kind::ImageChunk), 16),
            4 => (Some(Kind::ImageEnd), 16),
            5 => (Some(Kind::PartHeader), 16),
            6 => (Some(Kind::PageTrailer), 16),
            _ => (None, 0),
        };
        if let Some(kind) = kind {
            block[..16].copy_from_slice(&stored::envelope_of(kind));
        }
        let rest = &piece[1..];
        block[begin..begin + rest.len()].copy_from_slice(rest);
        bytes.extend(block);
    }
    bytes
}

/// Bytes that are damaged, or of a later format.
fn expect_refused(error: &Error) {
    assert!(matches!(error, Error::Corrupt { .. } | Error::Newer { .. }), "{error}");
}

/// A manifest.
pub fn manifest(input: &[u8]) {
    // It has more than a piece.
    let mut block = Blocks::new(BLOCK_BYTES);
    let len = input.len().min(BLOCK_BYTES - 16);
    block.bytes_mut()[..16].copy_from_slice(&stored::envelope_of(Kind::Manifest));
    block.bytes_mut()[16..16 + len].copy_from_slice(&input[..len]);
    if let Ok(manifest) = Manifest::decode(block.bytes()) {
        assert_eq!(manifest.encode().bytes(), block.bytes());
    }
    let _refused = Manifest::decode(input);
}

/// The checkpoint that the image is of, in seeds as well.
const IMAGE: CheckpointNumber = CheckpointNumber::new(7);

fn read_image(disk: &SimDisk) -> Result<([u64; 8], Vec<u64>)> {
    let mut image = ImageReader::open(disk, IMAGE)?;
    let mut words = Vec::new();
    while let Some(more) = image.next_words()? {
        words.extend_from_slice(more);
    }
    Ok((image.params(), words))
}

/// The image of an index.
pub fn image(input: &[u8]) {
    let (disk, name) = (SimDisk::new(), FileKind::Image.file_name(IMAGE));
    let bytes = blocks(input);
    disk.plant(&name, &bytes).expect("a valid name");
    match read_image(&disk) {
        Err(error) => expect_refused(&error),
        Ok((params, words)) => {
            let mut image =
                ImageWriter::create(&disk, IMAGE, params).expect("a disk without faults");
            for word in words {
                image.push(word).expect("a disk without faults");
            }
            image.finish().expect("a disk without faults");
            let is_older = |block: &[u8]| block[8..12] == stored::VERSION_MIN.to_le_bytes();
            if bytes.chunks(BLOCK_BYTES).any(is_older) {
                // Written again, it has this version.
                return;
            }
            assert_eq!(disk.contents(&name).expect("just written"), bytes);
        }
    }
}

/// Pages of a part, each in three blocks: the page, and its two trailers.
pub fn part(input: &[u8]) {
    const PAGE_BYTES: usize = 64;
    let disk = SimDisk::new();
    let bytes = blocks(input);
    let count = bytes.len().saturating_sub(BLOCK_BYTES) as u64 / (3 * BLOCK_BYTES as u64);
    let (first, limit) = (PageNumber::ZERO, PageNumber::new(count.max(1)));
    disk.plant(&FileKind::Part.file_name(PageNumber::ZERO), &bytes).expect("a valid name");
    let open = || Parts::open(Arc::new(disk.clone()), PAGE_BYTES, 0, first, limit);
    let parts = match open() {
        Ok(parts) => parts,
        Err(error) => return expect_refused(&error),
    };
    for page in PageNumber::each(first..first.plus(count)) {
        let mut block = Blocks::default();
        let used = match parts.read_page(page, &mut block) {
            Ok(used) => used,
            Err(error) => return expect_refused(&error),
        };
        assert!(used <= PAGE_BYTES && parts.used(page) == Ok(used));
        let mut again = vec![0; used / 2];
        parts.read(page.get() * PAGE_BYTES as u64, &mut again).expect("it was read just now");
        assert_eq!(again, block.bytes()[..used / 2]);
        // It goes on with the same bytes.
        let (written, _) = parts.begin_write_page(page, block, move |_| used).wait();
        written.expect("a disk without faults");
    }
    parts.sync().expect("a disk without faults");
    open().expect("it was written just now");
}

fn records<F: Form>(page: &[u8]) {
    let mut end = 0;
    let _all = for_each_stored::<F, ()>(page, 0, |offset, record| {
        assert!(offset >= end && !record.is_empty(), "records lie side by side");
        end = offset + record.len();
        if let Some((key, value)) = F::split(record) {
            assert!(8 + key.len() + value.len() <= record.len(), "inside of the record");
        }
        Ok(ControlFlow::Continue(()))
    })
    .expect("the closure answers with no error");
    assert!(end <= page.len());
}

/// Records of a page, in both layouts.
pub fn page(input: &[u8]) {
    records::<Fixed>(input);
    records::<Variable>(input);
}
