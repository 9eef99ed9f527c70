//! Blocks: 1,024 values of a column.
//!
//! A block of numbers begins with which of them are there:
//!
//! | code | rows |
//! |---|---|
//! | 0 | all |
//! | 1 | none, and nothing follows |
//! | 2 | those whose bit is set, in a byte for each 8 rows, the least bit first |
//!
//! Whole numbers follow as `pack` writes them, with a 0 where none is. Floating point numbers begin with a code:
//!
//! | code | numbers |
//! |---|---|
//! | 0 | 8 bytes each |
//! | 1 | the same, in LZ4, behind 4 bytes of its length |
//! | 2, 3, 4, 5 | whole numbers, packed, of which these are the 1st, 10th, 100th, 1000th parts |
//!
//! Codes are stored: do not renumber.

use super::bytes::Reader;
use super::pack::{pack, unpack};
use crate::error::Result;

const ALL: u8 = 0;
const NONE: u8 = 1;
const SOME: u8 = 2;

const RAW: u8 = 0;
const LZ4: u8 = 1;
/// The first of the codes of scaled numbers.
const SCALED: u8 = 2;
const SCALES: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];

/// Whole numbers up to this are exact as floating point numbers.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Appends which rows have a value; false if none has.
fn push_present(out: &mut Vec<u8>, present: &[bool]) -> bool {
    if present.iter().all(|present| *present) {
        out.push(ALL);
        return true;
    }
    if !present.contains(&true) {
        out.push(NONE);
        return false;
    }
    out.push(SOME);
    out.extend(
        present
            .chunks(8)
            .map(|rows| rows.iter().rev().fold(0, |byte, present| byte << 1 | u8::from(*present))),
    );
    true
}

/// Reads which rows have a value; false if none has.
fn read_present(reader: &mut Reader<'_>, rows: usize, present: &mut Vec<bool>) -> Result<bool> {
    let at = reader.clone();
    match reader.u8()? {
        ALL => present.extend(std::iter::repeat_n(true, rows)),
        NONE => {
            present.extend(std::iter::repeat_n(false, rows));
            return Ok(false);
        }
        SOME => {
            let bits = reader.take(rows.div_ceil(8))?;
            present.extend((0..rows).map(|row| bits[row / 8] >> (row % 8) & 1 == 1));
        }
        code => return Err(at.corrupt(format!("no rows are present by code {code}"))),
    }
    Ok(true)
}

pub(super) fn push_longs(out: &mut Vec<u8>, values: &[i64], present: &[bool]) {
    if push_present(out, present) {
        pack(out, values);
    }
}

pub(super) fn read_longs(
    reader: &mut Reader<'_>,
    rows: usize,
    values: &mut Vec<i64>,
    present: &mut Vec<bool>,
) -> Result<()> {
    if read_present(reader, rows, present)? {
        return unpack(reader, rows, values, |value| value);
    }
    values.extend(std::iter::repeat_n(0, rows));
    Ok(())
}

pub(super) fn push_doubles(out: &mut Vec<u8>, values: &[f64], present: &[bool]) {
    if !push_present(out, present) {
        return;
    }
    for (code, scale) in (SCALED..).zip(SCALES) {
        if let Some(scaled) = scaled(values, scale) {
            out.push(code);
            pack(out, &scaled);
            return;
        }
    }
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let packed = lz4_flex::block::compress(&raw);
    if packed.len() < raw.len() / 8 * 7 {
        out.push(LZ4);
        out.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        out.extend_from_slice(&packed);
    } else {
        out.push(RAW);
        out.extend_from_slice(&raw);
    }
}

/// Numbers as whole ones times a scale, if that keeps each bit of them.
fn scaled(values: &[f64], scale: f64) -> Option<Vec<i64>> {
    let whole = |value: &f64| {
        let scaled = (value * scale).round();
        let is_exact = scaled.abs() < EXACT_MAX && (scaled / scale).to_bits() == value.to_bits();
        // Minus zero is another number.
        (is_exact && (scaled as i64 as f64).to_bits() == scaled.to_bits()).then_some(scaled as i64)
    };
    values.iter().map(whole).collect()
}

pub(super) fn read_doubles(
    reader: &mut Reader<'_>,
    rows: usize,
    values: &mut Vec<f64>,
    present: &mut Vec<bool>,
) -> Result<()> {
    if !read_present(reader, rows, present)? {
        values.extend(std::iter::repeat_n(0.0, rows));
        return Ok(());
    }
    let at = reader.clone();
    let read = |bytes: &[[u8; 8]], values: &mut Vec<f64>| {
        values.extend(bytes.iter().map(|bytes| f64::from_le_bytes(*bytes)));
    };
    match reader.u8()? {
        RAW => read(reader.u64s(rows)?, values),
        LZ4 => {
            let len = reader.u32()? as usize;
            let mut raw = [0; super::BLOCK_ROWS * 8];
            let raw = &mut raw[..rows * 8];
            match lz4_flex::block::decompress_into(reader.take(len)?, raw) {
                Ok(len) if len == rows * 8 => read(raw.as_chunks().0, values),
                _ => return Err(at.corrupt("LZ4 of other numbers is expected")),
            }
        }
        code @ SCALED..=5 => {
            let scale = SCALES[usize::from(code - SCALED)];
            unpack(reader, rows, values, |whole| whole as f64 / scale)?;
        }
        code => return Err(at.corrupt(format!("no numbers are written by code {code}"))),
    }
    Ok(())
}

/// Appends byte strings: their lengths, then all bytes, in LZ4 if that is shorter.
pub(super) fn push_strings(out: &mut Vec<u8>, bytes: &[u8], lens: &[i64]) {
    pack(out, lens);
    let packed = lz4_flex::block::compress(bytes);
    let is_shorter = packed.len() < bytes.len();
    out.push(if is_shorter { LZ4 } else { RAW });
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    let stored = if is_shorter { &packed } else { bytes };
    out.extend_from_slice(&(stored.len() as u32).to_le_bytes());
    out.extend_from_slice(stored);
}

/// Most bytes of the strings of a block, so that damage cannot ask for more memory than that.
pub(super) const STRINGS_BYTES_MAX: usize = 1 << 30;

pub(super) fn read_strings(
    reader: &mut Reader<'_>,
    rows: usize,
    bytes: &mut Vec<u8>,
    ends: &mut Vec<usize>,
) -> Result<()> {
    let (begin, mut end) = (bytes.len(), bytes.len() as u64);
    let at = reader.clone();
    let first = ends.len();
    unpack(reader, rows, ends, |len| {
        end = end.saturating_add(len.cast_unsigned());
        usize::try_from(end).unwrap_or(usize::MAX)
    })?;
    let code = reader.u8()?;
    let raw = reader.u32()? as usize;
    let stored = reader.u32()? as usize;
    let stored = reader.take(stored)?;
    let is_whole = ends[first..].is_sorted()
        && ends[first..].last().is_none_or(|end| *end == begin + raw)
        && raw <= STRINGS_BYTES_MAX;
    match code {
        RAW if is_whole && stored.len() == raw => bytes.extend_from_slice(stored),
        LZ4 if is_whole => {
            bytes.resize(begin + raw, 0);
            match lz4_flex::block::decompress_into(stored, &mut bytes[begin..]) {
                Ok(len) if len == raw => {}
                _ => return Err(at.corrupt("LZ4 of other strings is expected")),
            }
        }
        _ => return Err(at.corrupt("the lengths of strings are not those of their bytes")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubles(values: &[f64]) -> usize {
        let present: Vec<bool> = (0..values.len()).map(|row| row % 3 != 1).collect();
        let values: Vec<f64> = values
            .iter()
            .zip(&present)
            .map(|(value, present)| if *present { *value } else { 0.0 })
            .collect();
        let mut bytes = Vec::new();
        push_doubles(&mut bytes, &values, &present);
        let (mut read, mut read_present) = (Vec::new(), Vec::new());
        let mut reader = Reader::new(&bytes, 0);
        read_doubles(&mut reader, values.len(), &mut read, &mut read_present).expect("as written");
        assert!(reader.rest().is_empty());
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!((bits(&read), read_present), (bits(&values), present));
        for cut in 0..bytes.len() {
            let reader = &mut Reader::new(&bytes[..cut], 0);
            assert!(read_doubles(reader, values.len(), &mut Vec::new(), &mut Vec::new()).is_err());
        }
        bytes.len()
    }

    #[test]
    fn doubles_are_read_back_to_the_bit() {
        let mut rng = fastrand::Rng::with_seed(2);
        let any: Vec<f64> = (0..1024).map(|_| rng.f64() * 1e9).collect();
        assert!(doubles(&any) > 5 * 1024);
        let prices: Vec<f64> = (0..1024).map(|_| f64::from(rng.i32(0..20_000)) / 100.0).collect();
        assert!(doubles(&prices) < 2 * 1024 + 200);
        let few: Vec<f64> = (0..1024).map(|row| 1.0 / f64::from(row % 4 + 3)).collect();
        assert!(doubles(&few) < 4 * 1024);
        doubles(&[-0.0, 1.0, 5e-324, f64::MAX, f64::MIN, 1e15, 9_007_199_254_740_993.0]);
        doubles(&[]);
        let none = [false; 5];
        let mut bytes = Vec::new();
        push_doubles(&mut bytes, &[0.0; 5], &none);
        assert_eq!(bytes, [NONE]);
    }

    #[test]
    fn strings_are_read_back_behind_others() {
        let all = b"oakelmoakoakoakoakoakoakoakoakoakoakoakoakoakoakoakoakoak".repeat(4);
        let lens = [3, 0, 3, all.len() as i64 - 6];
        let mut written = Vec::new();
        push_strings(&mut written, &all, &lens);
        assert!(written.len() < all.len());
        let (mut bytes, mut ends) = (b"before".to_vec(), vec![6]);
        read_strings(&mut Reader::new(&written, 0), 4, &mut bytes, &mut ends).expect("as written");
        assert_eq!((&bytes[6..], &ends[..]), (&all[..], &[6, 9, 9, 12, 6 + all.len()][..]));
        for cut in 0..written.len() {
            let reader = &mut Reader::new(&written[..cut], 0);
            assert!(read_strings(reader, 4, &mut Vec::new(), &mut Vec::new()).is_err());
        }
        let mut other = written.clone();
        other[0] ^= 1;
        let reader = &mut Reader::new(&other, 0);
        assert!(read_strings(reader, 4, &mut Vec::new(), &mut Vec::new()).is_err());
    }
}
