//! Line numbers of records, and of quotes that are never closed.
//!
//! The CSV reader counts a line when it reads past its end, which for `\r\n` and for empty lines is
//! with the next record. So the offsets of line ends are noted as the bytes go by, and asked for
//! the offset at which a record ended.
//!
//! The reader also ends a quoted field where the input ends, as if a quote stood there, and does
//! not say so. So quotes are followed as it follows them; a test compares the two over all short
//! texts.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::rc::Rc;

use crate::args::quotes::{QuoteState, Quotes};
use crate::terminal::exit::Failure;

/// The longest quoted field that is read: no longer value could be kept. What lies behind a quote
/// that nothing closes stays in memory up to here.
const QUOTED_BYTES_MAX: u64 = sapwood::VALUE_BYTES_MAX as u64;

/// The line ends that were read and not yet asked for, and whether a quote is open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines {
    shared: Rc<RefCell<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Bytes that were read.
    bytes: u64,
    /// Offsets of `\n` at or beyond the last offset asked for.
    ends: VecDeque<u64>,
    /// Line ends before those.
    ends_before: u64,
    /// Whether the reader has met the end of the input.
    input_ended: bool,
    quotes: Quotes,
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
        // A `\n` that ends the record belongs to its line.
        let before = offset.saturating_sub(1);
        while seen.ends.front().is_some_and(|end| *end < before) {
            seen.ends.pop_front();
            seen.ends_before += 1;
        }
        seen.ends_before + 1
    }

    /// The line on which a quote opens that the input does not close, if it has one.
    pub(crate) fn unclosed_quote(&self) -> Option<u64> {
        let seen = self.shared.borrow();
        let has_ended = seen.input_ended || seen.quotes.length > QUOTED_BYTES_MAX;
        (has_ended && seen.quotes.state == QuoteState::Quoted).then_some(seen.quotes.opened_on)
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
        seen.input_ended = length == 0 && !buffer.is_empty();
        let mark = if first == 0 { byte_order_mark(&buffer[..length]) } else { 0 };
        seen.quotes.pass(&buffer[mark..length]);
        if seen.quotes.length > QUOTED_BYTES_MAX {
            return Err(io::Error::other("a quoted value is longer than 256 MiB"));
        }
        Ok(length)
    }
}

/// The length of the byte order mark that some programs put before UTF-8.
pub(crate) fn byte_order_mark(bytes: &[u8]) -> usize {
    const MARK: &[u8] = b"\xEF\xBB\xBF";
    if bytes.starts_with(MARK) { MARK.len() } else { 0 }
}

/// Of a quote behind which everything would be one value.
pub(crate) fn unclosed(name: &str, line: u64) -> Failure {
    Failure::Failed(format!(
        "{name} cannot be read from line {line} on: a quote opens a value there, and none closes it; \
         close it, or write \"\" for a quote that belongs to the value"
    ))
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
    }

    /// Reads so many bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len());
            (&mut self.0).take(length as u64).read(buffer)
        }
    }

    /// The line of the quote that is open at the end, read in pieces.
    fn unclosed(text: &[u8], piece: usize) -> Option<u64> {
        let lines = Lines::default();
        let mut reader = lines.note(Pieces(text, piece));
        io::copy(&mut reader, &mut io::sink()).expect("bytes in memory");
        lines.unclosed_quote()
    }

    /// Whether the CSV reader is within quotes at the end of `text`: then more lines are no
    /// records.
    fn is_within_quotes(text: &[u8]) -> bool {
        let text = [text, b"\nX\n"].concat();
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&text[..]);
        let last = reader.byte_records().last().expect("a record").expect("bytes in memory");
        last.len() != 1 || &last[0] != b"X"
    }

    #[test]
    fn quotes_are_followed_as_the_csv_reader_follows_them() {
        const BYTES: &[u8] = b"\",\n\ra";
        const LENGTH_MAX: u32 = 7;
        for length in 0..=LENGTH_MAX {
            for number in 0..BYTES.len().pow(length) {
                let place = |at| BYTES[number / BYTES.len().pow(at) % BYTES.len()];
                let text: Vec<u8> = (0..length).map(place).collect();
                let found = unclosed(&text, 64);
                let shown = String::from_utf8_lossy(&text);
                assert_eq!(found.is_some(), is_within_quotes(&text), "{shown:?}");
                assert_eq!(unclosed(&text, 1), found, "{shown:?}");
            }
        }
    }

    #[test]
    fn a_quote_that_nothing_closes_is_known_by_its_line() {
        for (text, line) in [
            (&b"a,b\n1,\"x\ny\"\n2,\"z"[..], Some(4)),
            (b"a,b\n1,\"x\ny\n2,z\n", Some(2)),
            (b"\xEF\xBB\xBF\"a\n", Some(1)),
            (b"a\n\"x\"\"\n", Some(2)),
            (b"a\nx\"\n", None),
            (b"a\n\"x\"", None),
        ] {
            for piece in [4, 5, 100] {
                assert_eq!(unclosed(text, piece), line, "{}", String::from_utf8_lossy(text));
            }
        }
    }
}
