//! Writing a snapshot.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, File, checksum};

use super::dictionary::{Coded, Dictionary};
use super::streams::{Stream, push, take_planes, to_planes};
use super::{BLOCK, END_BYTES, ENTRIES_MAX, INDEX, Identity, MAGIC, PREFIX_BYTES, WHOLE};
use crate::error::{Error, Result};
use crate::pace::Pace;

/// A block ends with the entry that makes it so large.
const BYTES_MAX: usize = 512 << 10;
/// A block with a value beyond that leaves no memory behind.
const KEPT_BYTES_MAX: usize = 8 * BYTES_MAX;
/// Bytes that are written in one go.
const WINDOW_BYTES: usize = 256 << 10;

/// How the entries of a table are cut, so that pieces which are alike lie together in its snapshots.
pub trait Cut: Debug + Send + Sync {
    /// Appends the length of each piece of the key, then of the value; `None` of an entry that is not to be cut. Entries
    /// of one layout have the same number of pieces.
    fn cut(&self, key: &[u8], value: &[u8], lens: &mut Vec<u32>) -> Option<Layout>;
}

/// What the pieces of an entry are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Which one it is; above 0.
    pub number: u32,
    /// How many pieces make up the key.
    pub key_pieces: usize,
}

/// How snapshots are written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Writing<'p> {
    pub(crate) pace: Option<&'p Pace>,
    pub(crate) cut: Option<&'p dyn Cut>,
}

/// Entries that become a block.
#[derive(Default)]
struct Entries {
    /// Keys and values, one behind the other.
    bytes: Vec<u8>,
    /// Of each the lengths of key and value.
    whole: Vec<[u32; 2]>,
    /// Of each the lengths of its pieces, if all so far are of one layout.
    lens: Vec<u32>,
    /// For each piece the bits in which its lengths differ from that of the first entry.
    varying: Vec<u32>,
    layout: Option<Layout>,
    first_key: usize,
}

impl Entries {
    fn push(&mut self, key: &[u8], value: &[u8], cut: Option<&dyn Cut>) {
        let is_first = self.whole.is_empty();
        let begin = self.lens.len();
        let layout = match self.layout.is_some() || is_first {
            true => cut.and_then(|cut| cut.cut(key, value, &mut self.lens)),
            false => None,
        };
        if is_first {
            self.layout = layout;
            self.first_key = key.len();
            self.varying.resize(self.lens.len(), 0);
        }
        if layout.is_none() || layout != self.layout {
            self.layout = None;
            self.lens.clear();
        } else {
            let (before, lens) = self.lens.split_at(begin);
            let first = if is_first { lens } else { before };
            for ((varying, len), first) in self.varying.iter_mut().zip(lens).zip(first) {
                *varying |= len ^ first;
            }
        }
        debug_assert!(
            self.layout.is_none()
                || self.lens[begin..].iter().map(|&len| len as usize).sum::<usize>()
                    == key.len() + value.len(),
            "pieces make up the entry"
        );
        self.whole.push([key.len() as u32, value.len() as u32]);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    fn is_full(&self) -> bool {
        self.whole.len() == ENTRIES_MAX || self.bytes.len() >= BYTES_MAX
    }

    /// Forgets all, and keeps the memory.
    fn clear(&mut self) {
        self.bytes.clear();
        self.whole.clear();
        self.lens.clear();
        self.varying.clear();
        self.layout = None;
    }

    /// The lengths of all pieces, and which pieces have one length in all entries.
    fn pieces(&self) -> (&[u32], Layout, Vec<bool>) {
        match self.layout {
            Some(layout) => (&self.lens, layout, self.varying.iter().map(|it| *it == 0).collect()),
            None => {
                let layout = Layout { number: WHOLE, key_pieces: 1 };
                let is_fixed = |piece: usize| {
                    let mut lens = self.whole.iter().map(|lens| lens[piece]);
                    let first = lens.next();
                    lens.all(|len| Some(len) == first)
                };
                (self.whole.as_flattened(), layout, vec![is_fixed(0), is_fixed(1)])
            }
        }
    }
}

/// Writes the entries that `tell` tells as a snapshot, which lasts then; how many there are, and the bytes of the
/// file. Keys ascend where a reader is to find them. Another thread packs the blocks of a table that has several.
pub(crate) fn write(
    disk: &dyn Disk,
    identity: &Identity,
    writing: Writing<'_>,
    tell: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()>,
) -> Result<(u64, u64)> {
    let mut writer = Some(Writer::create(disk, identity, writing)?);
    thread::scope(|scope| {
        let mut packing: Option<Packing<'_, '_>> = None;
        let mut entries = Entries::default();
        let told = tell(&mut |key, value| {
            if entries.is_full() {
                let packing = packing.get_or_insert_with(|| {
                    Packing::begin(scope, writer.take().expect("it begins once"))
                });
                entries = packing.pack(std::mem::take(&mut entries))?;
            }
            entries.push(key, value, writing.cut);
            Ok(())
        });
        // Where a block could not be written, that is why no more was told.
        let mut writer = match packing {
            Some(packing) => packing.end()?,
            None => writer.take().expect("nothing has taken it"),
        };
        told?;
        if !entries.whole.is_empty() {
            writer.write_block(&entries)?;
        }
        writer.finish()
    })
}

/// A thread that writes blocks, so that the next ones are read meanwhile.
struct Packing<'scope, 'd> {
    blocks: SyncSender<Entries>,
    written: Receiver<Entries>,
    thread: ScopedJoinHandle<'scope, Result<Writer<'d>>>,
}

impl<'scope, 'd: 'scope> Packing<'scope, 'd> {
    fn begin(scope: &'scope Scope<'scope, '_>, mut writer: Writer<'d>) -> Packing<'scope, 'd> {
        let (blocks, to_write) = sync_channel::<Entries>(1);
        let (back, written) = channel();
        let thread = scope.spawn(move || {
            for mut entries in to_write {
                writer.write_block(&entries)?;
                if entries.bytes.capacity() <= KEPT_BYTES_MAX {
                    entries.clear();
                    // Where the other end has gone, no more is to be written.
                    let _not_used_again = back.send(entries);
                }
            }
            Ok(writer)
        });
        Packing { blocks, written, thread }
    }

    /// Lets a block be written; room for the next.
    fn pack(&mut self, entries: Entries) -> Result<Entries> {
        if self.blocks.send(entries).is_err() {
            // The end of the thread says why.
            return Err(Error::Contents { why: "a block was not written".to_owned() });
        }
        Ok(self.written.try_recv().unwrap_or_default())
    }

    fn end(self) -> Result<Writer<'d>> {
        drop(self.blocks);
        self.thread.join().expect("its panic was told")
    }
}

/// A file that is being written, block by block.
struct Writer<'d> {
    name: String,
    identity: Identity,
    pace: Option<&'d Pace>,
    out: Out,
    /// What the index has of the blocks.
    index: Vec<u8>,
    blocks: u64,
    entries: u64,
    key_bytes: u64,
    value_bytes: u64,
    // Used by one block after the other.
    head: Vec<u8>,
    body: Vec<u8>,
    scratch: Vec<u8>,
    planes: Vec<u8>,
    dictionary: Dictionary,
}

impl<'d> Writer<'d> {
    fn create(disk: &dyn Disk, identity: &Identity, writing: Writing<'d>) -> Result<Writer<'d>> {
        let name = identity.file_name();
        let file = disk.create(&name).map_err(|cause| Error::io(format!("make {name}"), &cause))?;
        let out = Out { file, window: Blocks::new(WINDOW_BYTES), used: 0, offset: 0 };
        let mut writer = Writer {
            name,
            identity: *identity,
            pace: writing.pace,
            out,
            index: Vec::new(),
            blocks: 0,
            entries: 0,
            key_bytes: 0,
            value_bytes: 0,
            head: Vec::new(),
            body: Vec::new(),
            scratch: Vec::new(),
            planes: Vec::new(),
            dictionary: Dictionary::default(),
        };
        writer.write(&identity.bytes(MAGIC))?;
        Ok(writer)
    }

    /// Ends the file and makes it last; how many entries it has, and its bytes.
    fn finish(mut self) -> Result<(u64, u64)> {
        let at = self.out.position();
        self.head.clear();
        self.body.clear();
        let stream = Stream::pack(&self.index, &mut self.body);
        for part in [INDEX, self.blocks, self.entries, self.key_bytes, self.value_bytes] {
            push(part, &mut self.head);
        }
        stream.encode(&mut self.head);
        self.write_section()?;
        let mut end = [&MAGIC[..], &at.to_le_bytes()].concat();
        let sum = checksum(&[&self.identity.bytes(MAGIC)[..], &end].concat());
        end.extend_from_slice(&sum.to_le_bytes());
        debug_assert_eq!(end.len(), END_BYTES);
        let used = (self.out.position() + end.len() as u64) as usize;
        let gap = used.next_multiple_of(BLOCK_BYTES) - used;
        self.write(&vec![0; gap])?;
        self.write(&end)?;
        let named = |cause| Error::io(format!("write {}", self.name), &cause);
        self.out.flush(self.pace).map_err(named)?;
        let bytes = self.out.file.bytes();
        let bytes = self.out.file.sync().and(bytes).map_err(named)?;
        Ok((self.entries, bytes))
    }

    /// Writes entries, of which there are some, as a block.
    fn write_block(&mut self, of: &Entries) -> Result<()> {
        let entries = of.whole.len();
        let (lens, layout, is_fixed) = of.pieces();
        let pieces = is_fixed.len();
        let Writer { head, body, scratch, planes, dictionary, .. } = self;
        head.clear();
        body.clear();
        let (number, key_pieces) = (u64::from(layout.number), layout.key_pieces as u64);
        for part in [BLOCK, entries as u64, number, key_pieces, pieces as u64] {
            push(part, head);
        }
        let mut begins = Vec::with_capacity(entries);
        let mut begin = 0;
        for [key, value] in &of.whole {
            begins.push(begin);
            begin += (key + value) as usize;
            self.key_bytes += u64::from(*key);
            self.value_bytes += u64::from(*value);
        }
        for (piece, is_fixed) in is_fixed.into_iter().enumerate() {
            let lens = lens[piece..].iter().step_by(pieces).copied();
            let coded = match is_fixed && lens.clone().next().is_none_or(|width| width <= 1) {
                true => None,
                false => dictionary.find(&of.bytes, &begins, lens.clone()),
            };
            if let Some(Coded { values, lens: lens_of_values, codes }) = coded {
                for part in [0, 0, lens_of_values.len() as u64] {
                    push(part, head);
                }
                let lens_of_values = lens_of_values.iter().copied();
                if is_fixed {
                    let width = lens_of_values.clone().next().unwrap_or_default() as usize;
                    to_planes(values, width, planes);
                    push(width as u64 + 1, head);
                    Stream::pack(planes, body).encode(head);
                } else {
                    write_lens(lens_of_values, (scratch, planes), (head, body));
                    Stream::pack(values, body).encode(head);
                }
                Stream::pack(codes, body).encode(head);
                begins.iter_mut().zip(lens).for_each(|(begin, len)| *begin += len as usize);
                continue;
            }
            if is_fixed {
                let width = lens.clone().next().unwrap_or_default() as usize;
                take_planes(&of.bytes, &mut begins, width, planes);
                push(width as u64 + 1, head);
                Stream::pack(planes, body).encode(head);
                continue;
            }
            write_lens(lens.clone(), (scratch, planes), (head, body));
            scratch.clear();
            for (begin, len) in begins.iter_mut().zip(lens) {
                scratch.extend_from_slice(&of.bytes[*begin..*begin + len as usize]);
                *begin += len as usize;
            }
            Stream::pack(scratch, body).encode(head);
        }
        let first = &of.bytes[..of.first_key];
        for part in [head.len(), body.len(), entries, first.len()] {
            push(part as u64, &mut self.index);
        }
        self.index.extend_from_slice(first);
        self.write_section()?;
        self.blocks += 1;
        self.entries += entries as u64;
        for buffer in [&mut self.body, &mut self.scratch, &mut self.planes] {
            if buffer.capacity() > KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
        if self.dictionary.memory() > KEPT_BYTES_MAX {
            self.dictionary = Dictionary::default();
        }
        Ok(())
    }

    /// Writes head and body.
    fn write_section(&mut self) -> Result<()> {
        let (head, body) = (std::mem::take(&mut self.head), std::mem::take(&mut self.body));
        let lengths = [&(head.len() as u32).to_le_bytes()[..], &(body.len() as u64).to_le_bytes()];
        let covered = [&lengths.concat()[..], &head].concat();
        let sum = self.identity.checksum(self.blocks, &covered);
        debug_assert_eq!(4 + covered.len(), PREFIX_BYTES + head.len());
        self.write(&sum.to_le_bytes())?;
        self.write(&covered)?;
        self.write(&body)?;
        (self.head, self.body) = (head, body);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.out.write(bytes, self.pace);
        written.map_err(|cause| Error::io(format!("write {}", self.name), &cause))
    }
}

/// Writes lengths that differ.
fn write_lens(
    lens: impl Iterator<Item = u32> + Clone,
    (scratch, planes): (&mut Vec<u8>, &mut Vec<u8>),
    (head, body): (&mut Vec<u8>, &mut Vec<u8>),
) {
    let width = match lens.clone().max().unwrap_or_default() {
        ..=0xFF => 1,
        0x100..=0xFFFF => 2,
        _ => 4,
    };
    push(0, head);
    push(width as u64, head);
    scratch.clear();
    lens.for_each(|len| scratch.extend_from_slice(&len.to_le_bytes()[..width]));
    to_planes(scratch, width, planes);
    Stream::pack(planes, body).encode(head);
}

/// Writes a made-up head and body as a block of so many entries.
#[cfg(any(fuzzing, test))]
pub(crate) fn write_block(
    disk: &dyn Disk,
    identity: &Identity,
    (head, body): (&[u8], &[u8]),
    entries: u64,
) -> Result<()> {
    let mut writer = Writer::create(disk, identity, Writing::default())?;
    (writer.head, writer.body) = (head.to_vec(), body.to_vec());
    writer.write_section()?;
    for part in [head.len() as u64, body.len() as u64, entries, 0] {
        push(part, &mut writer.index);
    }
    (writer.blocks, writer.entries) = (1, entries);
    writer.finish().map(drop)
}

/// A file that is written from its beginning to its end.
struct Out {
    file: Arc<dyn File>,
    window: Blocks,
    used: usize,
    /// Where the window begins.
    offset: u64,
}

impl Out {
    fn position(&self) -> u64 {
        self.offset + self.used as u64
    }

    fn write(&mut self, mut bytes: &[u8], pace: Option<&Pace>) -> std::io::Result<()> {
        while !bytes.is_empty() {
            if self.used == WINDOW_BYTES {
                self.flush(pace)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(WINDOW_BYTES - self.used));
            self.window.bytes_mut()[self.used..self.used + now.len()].copy_from_slice(now);
            self.used += now.len();
            bytes = later;
        }
        Ok(())
    }

    /// Writes the window, which has whole blocks of the disk.
    fn flush(&mut self, pace: Option<&Pace>) -> std::io::Result<()> {
        self.file.write_some_at(self.offset, &self.window, 0..self.used / BLOCK_BYTES)?;
        self.offset += self.used as u64;
        if let Some(pace) = pace {
            pace.wait(self.used);
        }
        self.used = 0;
        Ok(())
    }
}
