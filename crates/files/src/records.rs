//! The fields of the records of CSV.
//!
//! Records are those of RFC 4180, as the reader of the crate `csv` has them: a quote at the beginning of a field opens
//! it, two stand for one, others are as they are; empty lines are none; `\r` ends a record as `\n` does.
//!
//! Signs that matter are found 64 bytes at a time, with arithmetic on words of 8. Fields that are not wanted
//! cost no more than that.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr3};

/// Where a field stands: in the block, or behind its end in the bytes beside it.
#[derive(Debug, Clone, Copy)]
struct Span {
    begin: u32,
    end: u32,
}

/// The wanted fields of the records of a block.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// So many for each record as are wanted.
    spans: Vec<Span>,
    /// Where each record begins.
    begins: Vec<u32>,
    /// Fields that do not stand in the block as they are: with two quotes for one.
    beside: Vec<u8>,
    wanted: usize,
    /// Records that are none.
    pub(crate) refused: Vec<Refused>,
}

/// Why a record is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// So many fields, at an offset of the block.
    Width(usize, usize),
    Utf8(usize),
    /// A quote that nothing closes.
    Unclosed(usize),
}

/// How records are split.
#[derive(Debug, Clone)]
pub(crate) struct Splitter {
    delimiter: u8,
    /// The fields of a record.
    width: usize,
    /// Those wanted, ascending; behind them, more than there are.
    wanted: Vec<usize>,
    skips: bool,
}

impl Splitter {
    pub(crate) fn new(delimiter: u8, width: usize, wanted: &[usize], skips: bool) -> Splitter {
        debug_assert!(wanted.is_sorted_by(|left, right| left < right));
        let wanted = wanted.iter().copied().chain([usize::MAX]).collect();
        Splitter { delimiter, width, wanted, skips }
    }

    /// Finds the fields of the records of `block` from an offset on.
    pub(crate) fn split(
        &self,
        block: &[u8],
        from: usize,
        fields: &mut Fields,
    ) -> Result<(), Refused> {
        fields.spans.clear();
        fields.begins.clear();
        fields.beside.clear();
        fields.wanted = self.wanted.len() - 1;
        fields.refused.clear();
        let checks = std::str::from_utf8(block).is_err();
        let is_rare = memchr(b'"', block).is_some() || memchr(b'\r', block).is_some();
        match is_rare {
            true => self.records::<true>(block, from, checks, fields),
            false => self.records::<false>(block, from, checks, fields),
        }
    }

    fn records<const RARE: bool>(
        &self,
        block: &[u8],
        from: usize,
        checks: bool,
        fields: &mut Fields,
    ) -> Result<(), Refused> {
        let mut signs = Signs::<RARE>::new(block, self.delimiter, from);
        let (mut begin, mut field, mut slot) = (from, 0, 0);
        let mut start = from;
        let mut quoted: Option<Span> = None;
        loop {
            let at = signs.next();
            let sign = at.map_or(b'\n', |at| block[at]);
            let end = at.unwrap_or(block.len());
            if RARE && sign == b'"' {
                // Others than the first of a field belong to it.
                if end == begin {
                    let (span, behind) = self.quoted(block, end, &mut fields.beside)?;
                    quoted = Some(span);
                    signs.seek(behind);
                }
                continue;
            }
            let is_record_end = sign != self.delimiter;
            let is_blank = is_record_end && end == start && (!RARE || quoted.is_none());
            if !is_blank {
                if self.wanted[slot] == field {
                    let span = Span { begin: begin as u32, end: end as u32 };
                    fields.spans.push(if RARE { quoted.unwrap_or(span) } else { span });
                    slot += 1;
                }
                field += 1;
                if RARE {
                    quoted = None;
                }
            }
            begin = end + 1;
            if !is_record_end {
                continue;
            }
            if !is_blank {
                self.end(block, start..end, field, checks, fields)?;
            }
            if at.is_none() {
                return Ok(());
            }
            (start, field, slot) = (begin, 0, 0);
        }
    }

    /// Takes a record, or leaves it out.
    #[inline]
    fn end(
        &self,
        block: &[u8],
        record: Range<usize>,
        width: usize,
        checks: bool,
        fields: &mut Fields,
    ) -> Result<(), Refused> {
        let refused = if width != self.width {
            Refused::Width(record.start, width)
        } else if checks && std::str::from_utf8(&block[record.clone()]).is_err() {
            Refused::Utf8(record.start)
        } else {
            fields.begins.push(record.start as u32);
            return Ok(());
        };
        if !self.skips {
            return Err(refused);
        }
        fields.refused.push(refused);
        fields.spans.truncate(fields.begins.len() * fields.wanted);
        Ok(())
    }

    /// A field that begins with a quote, and the offset behind it.
    fn quoted(
        &self,
        block: &[u8],
        quote: usize,
        beside: &mut Vec<u8>,
    ) -> Result<(Span, usize), Refused> {
        let begin = quote + 1;
        let from = beside.len();
        let mut at = begin;
        loop {
            let found = memchr(b'"', &block[at..]).ok_or(Refused::Unclosed(quote))?;
            let close = at + found;
            let behind = close + 1;
            let is_end = match block.get(behind) {
                None => true,
                Some(b'"') => false,
                Some(next) => [self.delimiter, b'\n', b'\r'].contains(next),
            };
            if is_end && at == begin {
                return Ok((Span { begin: begin as u32, end: close as u32 }, behind));
            }
            beside.extend_from_slice(&block[at..close]);
            let place = |end: usize| Span {
                begin: (block.len() + from) as u32,
                end: (block.len() + end) as u32,
            };
            if is_end {
                return Ok((place(beside.len()), behind));
            }
            if block[behind] == b'"' {
                beside.push(b'"');
                at = behind + 1;
                continue;
            }
            // What stands behind the closing quote belongs to the field, as it is.
            let rest = memchr3(self.delimiter, b'\n', b'\r', &block[behind..]);
            let end = rest.map_or(block.len(), |rest| behind + rest);
            beside.extend_from_slice(&block[behind..end]);
            return Ok((place(beside.len()), end));
        }
    }

    /// The fields of the first record, and the offset behind it; none if there are blank lines alone.
    pub(crate) fn first(
        delimiter: u8,
        block: &[u8],
    ) -> Result<Option<(Vec<Vec<u8>>, usize)>, Refused> {
        let mut at = 0;
        while matches!(block.get(at), Some(b'\n' | b'\r')) {
            at += 1;
        }
        if at == block.len() {
            return Ok(None);
        }
        let splitter = Splitter::new(delimiter, 0, &[], false);
        let mut beside = Vec::new();
        let mut first = Vec::new();
        loop {
            let mut behind = at;
            let mut span = None;
            if block.get(at) == Some(&b'"') {
                let (quoted, end) = splitter.quoted(block, at, &mut beside)?;
                (span, behind) = (Some(quoted), end);
            }
            let end = memchr3(delimiter, b'\n', b'\r', &block[behind..]);
            let end = end.map_or(block.len(), |found| behind + found);
            let span = span.unwrap_or(Span { begin: at as u32, end: end as u32 });
            first.push(bytes(block, &beside, span).to_vec());
            at = (end + 1).min(block.len());
            if block.get(end) != Some(&delimiter) {
                return Ok(Some((first, at)));
            }
        }
    }
}

/// The fields of a block, those of records that are none left out.
pub(crate) struct Texts<'b> {
    fields: &'b Fields,
    block: &'b [u8],
    block_text: Option<&'b str>,
    beside_text: Option<&'b str>,
}

impl<'b> Texts<'b> {
    /// The fields of some records that stand at a place among those wanted.
    pub(crate) fn column(
        &self,
        slot: usize,
        records: Range<usize>,
    ) -> impl ExactSizeIterator<Item = &'b str> {
        let Texts { fields, block, .. } = *self;
        let spans = &fields.spans[records.start * fields.wanted..records.end * fields.wanted];
        spans.chunks_exact(fields.wanted).map(move |spans| {
            let Span { begin, end } = spans[slot];
            let (begin, end) = (begin as usize, end as usize);
            let text = match begin.checked_sub(block.len()) {
                Some(begin) if end > block.len() => {
                    self.beside_text.and_then(|text| text.get(begin..end - block.len()))
                }
                _ => self.block_text.and_then(|text| text.get(begin..end)),
            };
            text.unwrap_or_else(|| {
                let bytes = bytes(block, &fields.beside, spans[slot]);
                std::str::from_utf8(bytes).expect("others were left out")
            })
        })
    }
}

#[inline]
fn bytes<'b>(block: &'b [u8], beside: &'b [u8], span: Span) -> &'b [u8] {
    let (begin, end) = (span.begin as usize, span.end as usize);
    match begin.checked_sub(block.len()) {
        Some(begin) if end > block.len() => &beside[begin..end - block.len()],
        _ => &block[begin..end],
    }
}

impl Fields {
    /// The records that there are.
    pub(crate) fn len(&self) -> usize {
        self.begins.len()
    }

    /// The fields of some records that stand at a place among those wanted.
    pub(crate) fn column<'b>(
        &'b self,
        block: &'b [u8],
        slot: usize,
        records: Range<usize>,
    ) -> impl ExactSizeIterator<Item = &'b [u8]> {
        let spans = &self.spans[records.start * self.wanted..records.end * self.wanted];
        spans.chunks_exact(self.wanted).map(move |spans| bytes(block, &self.beside, spans[slot]))
    }

    /// The same as text. Blocks are checked as a whole, which is faster.
    pub(crate) fn texts<'b>(&'b self, block: &'b [u8]) -> Texts<'b> {
        let as_text = |bytes: &'b [u8]| std::str::from_utf8(bytes).ok();
        Texts {
            fields: self,
            block,
            block_text: as_text(block),
            beside_text: as_text(&self.beside),
        }
    }

    /// Leaves records out; their numbers go up.
    pub(crate) fn remove(&mut self, records: &[usize]) {
        let mut number = 0;
        let mut stays = || {
            number += 1;
            records.binary_search(&(number - 1)).is_err()
        };
        let stays: Vec<bool> = self.begins.iter().map(|_| stays()).collect();
        let mut of_record = stays.iter();
        self.begins.retain(|_| *of_record.next().expect("one for each"));
        let mut of_span = stays.iter().flat_map(|stays| std::iter::repeat_n(*stays, self.wanted));
        self.spans.retain(|_| of_span.next().expect("so many for each"));
    }

    /// The line of a block on which each record begins, from zero.
    pub(crate) fn lines(&self, block: &[u8]) -> Vec<u64> {
        let (mut line, mut at) = (0, 0);
        let of_record = |begin: &u32| {
            let begin = *begin as usize;
            line += memchr_iter(b'\n', &block[at..begin]).count() as u64;
            at = begin;
            line
        };
        self.begins.iter().map(of_record).collect()
    }

    /// The line of a block on which a record begins, from zero.
    pub(crate) fn line(&self, block: &[u8], record: usize) -> u64 {
        line_at(block, self.begins[record] as usize)
    }
}

/// The line of a block on which an offset lies, from zero.
pub(crate) fn line_at(block: &[u8], offset: usize) -> u64 {
    memchr_iter(b'\n', &block[..offset]).count() as u64
}

/// Delimiters and line ends in their order; quotes and `\r` too, where there are `RARE` signs.
struct Signs<'b, const RARE: bool> {
    block: &'b [u8],
    delimiter: u64,
    /// The offset of the 64 bytes that `found` is about.
    base: usize,
    /// A bit for each sign in them that is not yet shown.
    found: u64,
}

/// The byte in each of a word's eight.
const fn eight(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

impl<'b, const RARE: bool> Signs<'b, RARE> {
    fn new(block: &'b [u8], delimiter: u8, from: usize) -> Self {
        let mut signs = Signs { block, delimiter: eight(delimiter), base: 0, found: 0 };
        signs.seek(from);
        signs
    }

    /// Goes on at an offset.
    fn seek(&mut self, offset: usize) {
        self.base = offset / 64 * 64;
        self.found = self.look() & (!0 << (offset % 64));
    }

    /// The offset of the next sign.
    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.found == 0 {
            self.base += 64;
            if self.base >= self.block.len() {
                return None;
            }
            self.found = self.look();
        }
        let at = self.base + self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        Some(at)
    }

    /// The signs among 64 bytes.
    #[inline]
    fn look(&self) -> u64 {
        match self.block.get(self.base..self.base + 64) {
            Some(bytes) => self.look_at(bytes.try_into().expect("64 bytes")),
            None => {
                let rest = self.block.get(self.base..).unwrap_or_default();
                let mut bytes = [0; 64];
                bytes[..rest.len()].copy_from_slice(rest);
                self.look_at(&bytes)
            }
        }
    }

    #[inline]
    fn look_at(&self, bytes: &[u8; 64]) -> u64 {
        const LOW: u64 = eight(0x7F);
        const HIGH: u64 = eight(0x80);
        // The high bit of each byte that differs. A carry cannot leave its byte: Mycroft's test in its exact form.
        let differs = |word: u64, sign: u64| {
            let word = word ^ sign;
            ((word & LOW) + LOW) | word
        };
        let mut found = 0;
        for (at, eight_bytes) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*eight_bytes);
            let mut all = differs(word, self.delimiter) & differs(word, eight(b'\n'));
            if RARE {
                all &= differs(word, eight(b'"')) & differs(word, eight(b'\r'));
            }
            // The multiplication brings the high bits of the eight bytes together.
            let bits = ((!all & HIGH) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            found |= bits << (8 * at);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records as the crate `csv` reads them, all of one width.
    fn expected(text: &[u8], delimiter: u8) -> Vec<Vec<Vec<u8>>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(text);
        let records = reader.byte_records().map(|record| record.expect("bytes in memory"));
        records.map(|record| record.iter().map(<[u8]>::to_vec).collect()).collect()
    }

    fn split(text: &[u8], delimiter: u8, width: usize) -> Result<Vec<Vec<Vec<u8>>>, Refused> {
        let all: Vec<usize> = (0..width).collect();
        let splitter = Splitter::new(delimiter, width, &all, true);
        let mut fields = Fields::default();
        splitter.split(text, 0, &mut fields)?;
        let record = |at| {
            let cell = |slot| fields.column(text, slot, at..at + 1).next().expect("one").to_vec();
            all.iter().map(|slot| cell(*slot)).collect()
        };
        Ok((0..fields.len()).map(record).collect())
    }

    #[test]
    fn records_of_all_short_texts_are_those_of_another_reader() {
        const BYTES: &[u8] = b"\",\n\ra";
        const LENGTH_MAX: u32 = 6;
        for length in 0..=LENGTH_MAX {
            for number in 0..BYTES.len().pow(length) {
                let place = |at| BYTES[number / BYTES.len().pow(at) % BYTES.len()];
                let text: Vec<u8> = (0..length).map(place).collect();
                let shown = String::from_utf8_lossy(&text);
                for width in 1..3 {
                    let mut all = expected(&text, b',');
                    let count = all.len();
                    all.retain(|record| record.len() == width);
                    match split(&text, b',', width) {
                        Ok(found) => assert_eq!(found, all, "{shown:?}"),
                        // The other reader closes it where the text ends.
                        Err(Refused::Unclosed(_)) => assert!(count > 0, "{shown:?}"),
                        Err(other) => panic!("{other:?} {shown:?}"),
                    }
                }
                if let Ok(Some((first, _))) = Splitter::first(b',', &text) {
                    assert_eq!(Some(&first), expected(&text, b',').first(), "{shown:?}");
                }
            }
        }
    }

    #[test]
    fn records_of_long_texts_are_those_of_another_reader() {
        let mut random = fastrand::Rng::with_seed(17);
        for _ in 0..500 {
            let mut text = Vec::new();
            for _ in 0..random.usize(1..60) {
                let fields: Vec<Vec<u8>> = (0..3)
                    .map(|_| match random.u8(0..6) {
                        0 => b"\"a, \"\"\n b\"".to_vec(),
                        1 => Vec::new(),
                        2 => "stra\u{DF}e \"x".as_bytes().to_vec(),
                        _ => vec![b'0' + random.u8(0..10); random.usize(0..70)],
                    })
                    .collect();
                text.extend(fields.join(&b';'));
                text.extend([&b"\n"[..], b"\r\n", b"\n\n"][random.usize(0..3)]);
            }
            assert_eq!(split(&text, b';', 3), Ok(expected(&text, b';')));
        }
    }

    #[test]
    fn what_is_no_record_is_told() {
        let refuse = |text: &[u8]| {
            Splitter::new(b',', 2, &[0], false).split(text, 0, &mut Fields::default())
        };
        assert_eq!(refuse(b"1,2\n3\n"), Err(Refused::Width(4, 1)));
        assert_eq!(refuse(b"1,2\n3,4,5\n"), Err(Refused::Width(4, 3)));
        assert_eq!(refuse(b"1,2\n3,\xFF\n"), Err(Refused::Utf8(4)));
        assert_eq!(refuse(b"1,2\n3,\"\n"), Err(Refused::Unclosed(6)));
        let mut fields = Fields::default();
        let splitter = Splitter::new(b',', 2, &[1], true);
        splitter.split(b"1,2\n3\n\xFF,1\n5,6", 0, &mut fields).expect("those are left out");
        assert_eq!((fields.len(), fields.refused.len()), (2, 2));
        assert_eq!(fields.line(b"1,2\n3\n\xFF,1\n5,6", 1), 3);
    }
}
