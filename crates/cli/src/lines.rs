//! On which line does a record stand?
//!
//! The CSV reader counts a line when it reads past its end, which for `\r\n` and for empty lines is
//! with the next record. So the offsets of line ends are noted as the bytes go by, and asked for
//! the offset at which a record ended.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::rc::Rc;

/// The line ends that were read and not yet asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines {
    shared: Rc<RefCell<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// How many bytes were read.
    bytes: u64,
    /// Offsets of `\n` at or beyond the last offset asked for.
    ends: VecDeque<u64>,
    /// How many lay before.
    ends_before: u64,
    /// Whether the reader has met the end of the input.
    input_ended: bool,
}

impl Lines {
    /// Reads through `inner` and notes its line ends.
    pub(crate) fn note<R: Read>(&self, inner: R) -> NotingReader<R> {
        NotingReader { inner, lines: self.clone() }
    }

    /// The line on which the record that ends just before `offset` ends, counted from one.
    /// Offsets must not go down from call to call.
    pub(crate) fn of_record_end(&self, offset: u64) -> u64 {
        let mut seen = self.shared.borrow_mut();
        // A `\n` that ends the record belongs to its line. If the input ended it, a last `\n` lies
        // within it, behind a quote that never closes.
        let before = if seen.input_ended { offset } else { offset.saturating_sub(1) };
        while seen.ends.front().is_some_and(|end| *end < before) {
            seen.ends.pop_front();
            seen.ends_before += 1;
        }
        seen.ends_before + 1
    }
}

pub(crate) struct NotingReader<R> {
    inner: R,
    lines: Lines,
}

impl<R: Read> Read for NotingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        let mut seen = self.lines.shared.borrow_mut();
        let first = seen.bytes;
        let ends = buffer[..length].iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        seen.ends.extend(ends.map(|(index, _)| first + index as u64));
        seen.bytes += length as u64;
        seen.input_ended = length == 0;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_end_on_their_lines() {
        let lines = Lines::default();
        let mut reader = lines.note(&b"ab\r\n\n\ncd\ne\n"[..]);
        let mut buffer = [0; 64];
        assert_eq!(reader.read(&mut buffer).expect("bytes in memory"), 11);
        for (offset, line) in [(0, 1), (3, 1), (4, 1), (8, 4), (9, 4), (10, 5), (11, 5)] {
            assert_eq!(lines.of_record_end(offset), line, "offset {offset}");
        }
        assert_eq!(reader.read(&mut buffer).expect("bytes in memory"), 0);
        assert_eq!(lines.of_record_end(11), 6, "the last line end was within the record");
    }
}
