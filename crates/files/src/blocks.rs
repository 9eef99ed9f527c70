//! Text in blocks that end between records, for any number of threads.
//!
//! A thread takes the next block under a lock: the bytes are read, unpacked, and cut there. All else is done
//! outside of it.

use std::io;
use std::sync::{Mutex, PoisonError};

use memchr::memchr_iter;

use crate::cuts::Cuts;
use crate::input::Reader;

/// The longest record: no longer value could be kept.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// The blocks of a file that are not yet taken.
pub(crate) struct Blocks {
    rest: Mutex<Rest>,
    block_bytes: usize,
}

struct Rest {
    reader: Reader,
    cuts: Cuts,
    /// What was read behind the last record of the block before.
    carry: Vec<u8>,
    number: u64,
    line: u64,
    has_ended: bool,
}

/// Where a block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The blocks before it.
    pub(crate) number: u64,
    /// The line on which it begins, from one.
    pub(crate) line: u64,
    /// Whether the input ends with it.
    pub(crate) is_last: bool,
}

impl Blocks {
    pub(crate) fn new(reader: Reader, cuts: Cuts, block_bytes: usize) -> Blocks {
        let rest = Rest { reader, cuts, carry: Vec::new(), number: 0, line: 1, has_ended: false };
        Blocks { rest: Mutex::new(rest), block_bytes }
    }

    /// Fills `block` with the next records; none at the end of the input. The first block lacks the byte order mark,
    /// and has more than blank lines; the last one may be empty.
    pub(crate) fn next(&self, block: &mut Vec<u8>) -> io::Result<Option<Place>> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = &mut *rest;
        block.clear();
        if rest.has_ended {
            return Ok(None);
        }
        block.append(&mut rest.carry);
        let mut wanted = self.block_bytes;
        let end = loop {
            // The mark has three bytes.
            let more = match rest.number {
                0 => wanted.max(3),
                _ => wanted,
            };
            let read = fill(&mut rest.reader, block, more)?;
            if rest.number == 0 && wanted == self.block_bytes {
                block.drain(..byte_order_mark(block));
            }
            if read < more {
                rest.has_ended = true;
                break block.len();
            }
            let end = rest.cuts.find(block);
            let is_blank = rest.number == 0 && block[..end].trim_ascii().is_empty();
            match if is_blank { 0 } else { end } {
                0 if block.len() > RECORD_BYTES_MAX => {
                    let what = format!(
                        "the record on line {} is longer than 256 MiB; is a quote left open?",
                        rest.line
                    );
                    return Err(io::Error::other(what));
                }
                0 => wanted = block.len().max(self.block_bytes + 1),
                end => break end,
            }
        };
        rest.carry.extend_from_slice(&block[end..]);
        block.truncate(end);
        rest.cuts.pass();
        let place = Place { number: rest.number, line: rest.line, is_last: rest.has_ended };
        rest.number += 1;
        rest.line += memchr_iter(b'\n', block).count() as u64;
        Ok(Some(place))
    }

    /// Gives no more blocks: a thread has failed.
    pub(crate) fn stop(&self) {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner).has_ended = true;
    }
}

/// Appends so many bytes, fewer at the end of the input; how many there were.
fn fill(reader: &mut Reader, block: &mut Vec<u8>, wanted: usize) -> io::Result<usize> {
    let begin = block.len();
    let mut end = begin;
    block.resize(begin + wanted, 0);
    let read = loop {
        match reader.read(&mut block[end..]) {
            Ok(0) => break Ok(end - begin),
            Ok(read) => end += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    block.truncate(end);
    read
}

/// The length of the byte order mark that some programs put before UTF-8.
pub(crate) fn byte_order_mark(bytes: &[u8]) -> usize {
    const MARK: &[u8] = b"\xEF\xBB\xBF";
    if bytes.starts_with(MARK) { MARK.len() } else { 0 }
}

/// The number of a batch: of those of a block, which has fewer than 2^24, in the order of blocks.
pub(crate) fn batch_number(block: u64, batch: usize) -> u64 {
    block << 24 | batch as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn blocks_are_the_text_and_know_their_lines() {
        let text = "\u{FEFF}a,b\n1,\"x\ny\"\n\n2,\"\"\"\n\"\n3,zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz";
        for block_bytes in 1..70 {
            let reader = Box::new(Cursor::new(text.as_bytes()));
            let blocks = Blocks::new(reader, Cuts::csv(b','), block_bytes);
            let (mut block, mut whole) = (Vec::new(), String::from("\u{FEFF}"));
            let mut number = 0;
            while let Some(place) = blocks.next(&mut block).expect("bytes in memory") {
                assert_eq!(place.number, number);
                assert_eq!(place.line, whole.matches('\n').count() as u64 + 1);
                whole.push_str(std::str::from_utf8(&block).expect("whole records"));
                let quotes = whole.matches('"').count();
                assert!(quotes.is_multiple_of(2), "{whole}");
                number += 1;
            }
            assert_eq!(whole, text, "{block_bytes}");
        }
    }
}
