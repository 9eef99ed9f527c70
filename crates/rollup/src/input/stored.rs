//! The stored form of a batch: small and fast, for a log that has checksums of its own.
//!
//! | bytes | what |
//! |---|---|
//! | version | 1 |
//! | packing | 1: what follows as it is; 2: its length, then an LZ4 block of it |
//! | rows, columns | two numbers |
//! | each column | its name with its length, the kind of its values, which are null, the values |
//!
//! Lengths and counts have as many bytes as they need (LEB128). Codes begin at 1. A batch has one form, and the
//! form gives an equal batch: bits of doubles and values below nulls are kept.
//!
//! - I-BOUNDED: encoding and decoding take the same bytes out of a budget for the same parts, and
//!   decoding does so before it allocates. So what was written is read, and no bytes make a decoder allocate
//!   more than a small multiple of [`DECODED_BYTES_MAX`].

mod decode;
mod encode;

use super::budget::Budget;
use crate::value::Value;

/// A batch in memory has no more bytes than this, as [`Costs`] counts them.
const DECODED_BYTES_MAX: usize = 1 << 30;

const VERSION: u8 = 1;

/// How the bytes behind the head are packed. Stored: do not renumber.
const PLAIN: u8 = 1;
const LZ4: u8 = 2;

/// Kinds of columns. Stored: do not renumber.
const LONGS: u8 = 1;
const DOUBLES: u8 = 2;
const TEXTS: u8 = 3;
const MIXED: u8 = 4;

/// Which values of a column are null: none, without a list; those whose bit is set. Stored: do not renumber.
const NO_NULLS: u8 = 1;
const NULL_BITS: u8 = 2;

/// How whole numbers lie: themselves, or the first and what each is above the one before. Stored: do not
/// renumber.
const NUMBERS: u8 = 1;
const DIFFERENCES: u8 = 2;

/// How texts lie: one after the other, or each different one once, and then their numbers. Stored: do not
/// renumber.
const EACH: u8 = 1;
const DICTIONARY: u8 = 2;

/// Types of a value of a mixed column. Stored: do not renumber.
const VALUE_NULL: u8 = 1;
const VALUE_LONG: u8 = 2;
const VALUE_DOUBLE: u8 = 3;
const VALUE_TEXT: u8 = 4;
const VALUE_LIST: u8 = 5;

/// Lists inside of lists.
const LIST_DEPTH_MAX: usize = 128;

/// What parts of a batch count for. The numbers belong to the form: they are the same on every machine,
/// and no part has fewer bytes in memory, or more in its plain form.
#[derive(Debug)]
struct Costs(Budget);

/// A row by itself, which may have no columns.
const ROW_BYTES: usize = 8;
const COLUMN_BYTES: usize = 128;
const NULL_BYTES: usize = 1;
const NUMBER_BYTES: usize = 8;
const VALUE_BYTES: usize = 32;

const _: () = assert!(size_of::<Value<'_>>() <= VALUE_BYTES && size_of::<usize>() == NUMBER_BYTES);

impl Costs {
    fn new() -> Costs {
        Costs(Budget::new(DECODED_BYTES_MAX))
    }

    fn rows(&mut self, rows: usize) -> Option<()> {
        self.0.take(rows, ROW_BYTES)
    }

    fn column(&mut self, name: &str) -> Option<()> {
        self.0.take(1, COLUMN_BYTES)?;
        self.0.take(1, name.len())
    }

    fn nulls(&mut self, rows: usize) -> Option<()> {
        self.0.take(rows, NULL_BYTES)
    }

    /// Longs, doubles, or where texts end.
    fn numbers(&mut self, rows: usize) -> Option<()> {
        self.0.take(rows, NUMBER_BYTES)
    }

    fn values(&mut self, count: usize) -> Option<()> {
        self.0.take(count, VALUE_BYTES)
    }

    fn text(&mut self, bytes: usize) -> Option<()> {
        self.0.take(bytes, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::input::batch::{Column, RowBatch, Values};
    use fastrand::Rng;

    fn stored(batch: &RowBatch) -> Vec<u8> {
        let mut out = vec![7];
        batch.encode(&mut out).expect("it is small");
        assert_eq!(out.remove(0), 7, "what was there stays");
        out
    }

    /// Equal to the bit: a form has one batch, and a batch one form.
    fn expect_same(batch: &RowBatch) -> Vec<u8> {
        let bytes = stored(batch);
        let read = RowBatch::decode(&bytes).expect("it was written");
        assert_eq!(stored(&read), bytes);
        // NaN is not equal to itself; as text it is.
        assert_eq!(format!("{read:?}"), format!("{batch:?}"));
        bytes
    }

    fn expect_refused(bytes: &[u8]) {
        match RowBatch::decode(bytes) {
            Err(Error::Corrupt { what, .. }) => assert!(!what.is_empty()),
            other => panic!("{other:?}"),
        }
    }

    fn text(rng: &mut Rng) -> String {
        let letters = ["a", "ö", "", "€", "🦀", "0", " "];
        (0..rng.usize(..6)).map(|_| letters[rng.usize(..letters.len())]).collect()
    }

    fn value(rng: &mut Rng, depth: usize) -> Value<'static> {
        match rng.u8(..if depth == 0 { 4 } else { 5 }) {
            0 => Value::Null,
            1 => Value::Long(long(rng)),
            2 => Value::Double(double(rng)),
            3 => Value::from(text(rng)),
            _ => Value::List((0..rng.usize(..4)).map(|_| value(rng, depth - 1)).collect()),
        }
    }

    fn long(rng: &mut Rng) -> i64 {
        match rng.u8(..4) {
            0 => [i64::MIN, i64::MAX, 0, -1][rng.usize(..4)],
            1 => rng.i64(..),
            bits => rng.i64(-1 << (8 * bits)..1 << (8 * bits)),
        }
    }

    fn double(rng: &mut Rng) -> f64 {
        match rng.u8(..3) {
            0 => [f64::NAN, -0.0, f64::INFINITY, f64::MIN, 5e-324][rng.usize(..5)],
            1 => f64::from_bits(rng.u64(..)),
            _ => rng.f64(),
        }
    }

    /// Any column, of any size of numbers, with nulls or without.
    fn column(rng: &mut Rng, rows: usize) -> Column {
        let nulls = match rng.u8(..3) {
            0 => None,
            1 => Some(vec![false; rows]),
            _ => Some((0..rows).map(|_| rng.bool()).collect()),
        };
        Column(match rng.u8(..7) {
            0 => {
                let (least, bits) = (long(rng), rng.u32(..64));
                let near = |_| least.wrapping_add((rng.u64(..) >> bits) as i64);
                Values::Longs { values: (0..rows).map(near).collect(), nulls }
            }
            1 => {
                let (mut at, bits) = (long(rng), rng.u32(..64));
                let mut next = |_| {
                    at = at.wrapping_add((rng.u64(..) >> bits) as i64);
                    at
                };
                Values::Longs { values: (0..rows).map(&mut next).collect(), nulls }
            }
            2 => Values::Longs { values: (0..rows).map(|_| long(rng)).collect(), nulls },
            3 => Values::Doubles { values: (0..rows).map(|_| double(rng)).collect(), nulls },
            4 | 5 => {
                let few: Vec<String> = (0..rng.usize(1..300)).map(|_| text(rng)).collect();
                let (mut bytes, mut ends) = (String::new(), Vec::new());
                for _ in 0..rows {
                    bytes.push_str(&few[rng.usize(..few.len())]);
                    ends.push(bytes.len());
                }
                Values::Texts { bytes, ends, nulls }
            }
            _ => Values::Mixed((0..rows).map(|_| value(rng, 3)).collect()),
        })
    }

    fn batch(rng: &mut Rng) -> RowBatch {
        let rows = [0, 1, 2, 9, 300][rng.usize(..5)];
        (0..rng.usize(..5)).fold(RowBatch::new(rows), |batch, at| {
            batch.column(format!("{at}{}", text(rng)), column(rng, rows)).expect("of one length")
        })
    }

    #[test]
    fn batches_are_read_as_they_were() {
        let mut rng = Rng::with_seed(11);
        for _ in 0..1_500 {
            expect_same(&batch(&mut rng));
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_another_batch() {
        let mut rng = Rng::with_seed(12);
        let (mut refused, mut read) = (0, 0);
        for _ in 0..4_000 {
            let mut bytes = stored(&batch(&mut rng));
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(..bytes.len());
                match rng.u8(..4) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes.insert(at, rng.u8(..)),
                    2 => bytes[at] = [0, 1, 2, 0x7f, 0x80, 0xff][rng.usize(..6)],
                    _ => bytes[at] ^= 1 << rng.u8(..8),
                }
            }
            match RowBatch::decode(&bytes) {
                Ok(batch) => {
                    read += 1;
                    drop(expect_same(&batch));
                }
                Err(error) => {
                    refused += 1;
                    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
                }
            }
        }
        assert!(refused > 1_000 && read > 100, "{refused} {read}");
    }

    #[test]
    fn every_cut_is_refused() {
        let batch = RowBatch::new(40)
            .column("time", Column::longs(0..40))
            .and_then(|batch| batch.column("page", Column::texts((0..40).map(|n| n.to_string()))))
            .and_then(|batch| batch.column("x", Column::doubles((0..40).map(f64::from))))
            .expect("of one length");
        let bytes = expect_same(&batch);
        (0..bytes.len()).for_each(|len| expect_refused(&bytes[..len]));
    }

    #[test]
    fn what_is_regular_is_small() {
        let rows = 10_000;
        let pages = ["Oak", "Elm", "Ash"];
        let batch = RowBatch::new(rows as usize)
            .column("time", Column::longs((0..rows).map(|row| 1_356_998_400_000 + row * 500)))
            .and_then(|batch| {
                batch.column("page", Column::texts((0..rows).map(|row| pages[row as usize % 3])))
            })
            .and_then(|batch| batch.column("added", Column::longs((0..rows).map(|row| row % 250))))
            .expect("of one length");
        let len = expect_same(&batch).len();
        assert!(len < rows as usize / 10, "{len}");
    }

    /// A body as it would be written.
    fn body(parts: &[&[u8]]) -> Vec<u8> {
        [&[VERSION, PLAIN][..], &parts.concat()].concat()
    }

    #[test]
    fn forged_counts_allocate_nothing() {
        let many = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
        let rows = b"\x80\x80\x80\x80\x01";
        let frame_of_none = &[0, 0, 0, 0, 0, 0, 0, 0, 0][..];
        for parts in [
            &[&many[..], b"\0"][..],
            &[rows, b"\0"],
            &[b"\x01", many],
            &[b"\x01\x01", many],
            &[b"\x80\x80\x80\x30\x02\x01a", &[LONGS, NO_NULLS, NUMBERS], frame_of_none],
            &[b"\x01\x01\x01a", &[TEXTS, NO_NULLS, DICTIONARY], many],
            &[b"\x01\x01\x01a", &[TEXTS, NO_NULLS, EACH, 8], &[0; 8], &[0xff; 8]],
            &[b"\x01\x01\x01a", &[MIXED, VALUE_LIST], many],
            &[b"\x01\x01\x01a", &[MIXED, VALUE_TEXT], many],
        ] {
            expect_refused(&body(parts));
        }
        // A long text for each of many rows.
        let long = [b'x'; 1 << 15];
        let one = [&[1, 2][..], &[0; 8], &(1_u16 << 15).to_le_bytes(), &long].concat();
        let head: &[u8] = &[1, 1, 1, b'a', TEXTS, NO_NULLS, DICTIONARY];
        expect_refused(&body(&[b"\x80\x80\x04", &head[1..], &one, frame_of_none]));
        assert_eq!(
            RowBatch::decode(&body(&[head, &one, frame_of_none])).map(|batch| batch.rows()),
            Ok(1)
        );
        expect_refused(&[&[VERSION, LZ4][..], many, b"\0"].concat());
    }

    #[test]
    fn versions_and_codes_that_are_not_known_are_refused() {
        expect_refused(&[]);
        for bytes in [[0, PLAIN, 0, 0], [2, PLAIN, 0, 0], [VERSION, 0, 0, 0], [VERSION, 3, 0, 0]] {
            expect_refused(&bytes);
        }
        assert_eq!(RowBatch::decode(&[VERSION, PLAIN, 0, 0]), Ok(RowBatch::new(0)));
        expect_refused(&[VERSION, PLAIN, 0, 0, 0]);
        for code in [0, 5] {
            expect_refused(&body(&[b"\0\x01\x01a", &[code, NO_NULLS, NUMBERS], &[0; 9]]));
            expect_refused(&body(&[b"\0\x01\x01a", &[LONGS, code, NUMBERS], &[0; 9]]));
            expect_refused(&body(&[b"\0\x01\x01a", &[LONGS, NO_NULLS, code], &[0; 9]]));
        }
        // A name twice; a name that is no text; a text that ends within a letter.
        let column: &[u8] = &[1, b'a', DOUBLES, NO_NULLS];
        expect_refused(&body(&[b"\0\x02", column, column]));
        expect_refused(&body(&[b"\0\x01\x01\xff", &[DOUBLES, NO_NULLS]]));
        let halves: &[u8] = &[TEXTS, NO_NULLS, EACH, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        expect_refused(&body(&[b"\x02\x01\x01a", halves, "ö".as_bytes()]));
    }

    #[test]
    fn lists_have_a_bound_of_their_depth() {
        let nested = |depth| {
            let list = (0..depth).fold(Value::Null, |inside, _| Value::List(vec![inside]));
            RowBatch::new(1).column("a", Column::values([list])).expect("of one row")
        };
        expect_same(&nested(LIST_DEPTH_MAX));
        let mut out = vec![7];
        assert!(matches!(nested(LIST_DEPTH_MAX + 1).encode(&mut out), Err(Error::Input(_))));
        assert_eq!(out, [7], "nothing of it is there");
        let lists = [VALUE_LIST, 1].repeat(1_000_000);
        expect_refused(&body(&[b"\x01\x01\x01a", &[MIXED], &lists, &[VALUE_NULL]]));
    }

    #[test]
    fn a_batch_that_is_too_large_is_refused() {
        let batch = RowBatch::new(DECODED_BYTES_MAX / ROW_BYTES + 1);
        assert!(matches!(batch.encode(&mut Vec::new()), Err(Error::Input(_))));
    }
}
