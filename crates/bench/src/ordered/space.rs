//! The keys and values of a run, and their sums.
//!
//! Keys are numbered `0..range` in key order; half of them, drawn at random, are loaded in random
//! order. Generated keys are the number as 8 big-endian bytes, followed by zeros (Oak's shape), or
//! after bytes that all keys share, or on both sides of them. A generated value is a window of a
//! pool of random bytes that begins at the number, so that making it costs nothing and neighbours
//! differ.

use std::io::Write;
use std::ops::Range;

use super::job::{Kind, OrderedJob, QUEUED, ScanForm};
use crate::harness::*;

/// Bytes of the pool that values are windows of: fits the L2 cache.
const POOL_BYTES: usize = 64 * 1024;
/// Bytes that an engine is taken to need for an entry, beyond keys and values.
const ENTRY_OVERHEAD: usize = 100;
const SEED: u64 = 0x5A90_00D5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpaceData {
    /// Generated keys and values of these sizes.
    Generated { key_bytes: usize, value_bytes: usize, shape: KeyShape },
    /// Flights of 2013 out of New York by (carrier, flight, date, origin).
    Flights,
}

/// The place of the number in a generated key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum KeyShape {
    /// 8 big-endian bytes in front, zeros behind, as in Oak's evaluation.
    Integer,
    /// Bytes that all keys share in front, 8 big-endian bytes at the end.
    Prefix,
    /// Bytes that all keys share between 8 big-endian bytes in front, of a sixteenth of the number,
    /// and one byte at the end, of the rest.
    Middle,
}

impl SpaceData {
    pub(crate) fn name(self) -> String {
        let SpaceData::Generated { key_bytes, value_bytes, shape } = self else {
            return "flights".to_owned();
        };
        let shared = match shape {
            KeyShape::Integer => "",
            KeyShape::Prefix => ", shared prefix",
            KeyShape::Middle => ", shared middle",
        };
        format!("{key_bytes}+{value_bytes} B{shared}")
    }
}

pub(crate) struct Space {
    pub(crate) data: SpaceData,
    keys: SpaceBytes,
    values: SpaceBytes,
    pub(crate) range: u32,
    pub(crate) load_order: Vec<u32>,
    /// Loaded numbers in key order: a place here is a rank.
    pub(crate) in_order: Vec<u32>,
    pub(crate) loaded: Vec<bool>,
    /// Sum of keys and values, and of keys, of the ranks below each index.
    sums_below: Vec<u64>,
    key_sums_below: Vec<u64>,
}

enum SpaceBytes {
    /// `template` with the number at `at`.
    Numbered { template: Vec<u8>, at: usize },
    /// `template` with a number's sixteenth in front and the rest in its last byte.
    Around { template: Vec<u8> },
    /// Windows of a pool.
    Windows { pool: Vec<u8>, len: usize },
    /// Byte strings one after the other; `ends[n]` is where number n ends.
    Listed { bytes: Vec<u8>, ends: Vec<usize> },
}

pub(crate) struct KeyBuffer(Vec<u8>);

impl Space {
    /// `entries` loaded out of twice as many, or half of the flights if those are fewer.
    pub(crate) fn new(data: SpaceData, entries: usize) -> Result<Space> {
        let (keys, values, range) = match data {
            SpaceData::Generated { key_bytes, value_bytes, shape } => {
                if key_bytes < 8 || value_bytes < 8 {
                    bail!(
                        "generated keys and values have at least 8 bytes: raise --key-bytes or \
                         --value-bytes"
                    );
                }
                if value_bytes >= POOL_BYTES {
                    bail!("generated values have at most {POOL_BYTES} bytes: lower --value-bytes");
                }
                if shape == KeyShape::Middle && key_bytes < 9 {
                    bail!("keys with a shared middle have at least 9 bytes: raise --key-bytes");
                }
                let keys = match shape {
                    KeyShape::Integer => {
                        SpaceBytes::Numbered { template: vec![0; key_bytes], at: 0 }
                    }
                    KeyShape::Prefix => {
                        SpaceBytes::Numbered { template: vec![b'k'; key_bytes], at: key_bytes - 8 }
                    }
                    KeyShape::Middle => SpaceBytes::Around { template: vec![b'k'; key_bytes] },
                };
                let mut random = Random::new(SEED);
                let pool = (0..POOL_BYTES / 8).flat_map(|_| random.next().to_le_bytes()).collect();
                (keys, SpaceBytes::Windows { pool, len: value_bytes }, entries * 2)
            }
            SpaceData::Flights => read_flights(entries * 2)?,
        };
        if !(4..1 << 31).contains(&range) {
            bail!("{entries} entries cannot be loaded: choose 2 to 1,000,000,000 with --entries");
        }
        let range = range as u32;
        let mut load_order: Vec<u32> = (0..range).collect();
        Random::new(SEED + 1).shuffle(&mut load_order);
        load_order.truncate(range as usize / 2);
        load_order.shrink_to_fit();
        let mut loaded = vec![false; range as usize];
        for &number in &load_order {
            loaded[number as usize] = true;
        }
        let in_order: Vec<u32> = (0..range).filter(|&number| loaded[number as usize]).collect();
        let (sums_below, key_sums_below) = (vec![0], vec![0]);
        let mut space = Space {
            data,
            keys,
            values,
            range,
            load_order,
            in_order,
            loaded,
            sums_below,
            key_sums_below,
        };
        space.sum_up();
        Ok(space)
    }

    fn sum_up(&mut self) {
        let mut buffer = self.key_buffer();
        let (mut sum, mut key_sum) = (0u64, 0u64);
        for at in 0..self.entries() {
            let key = consume(self.key(self.in_order[at], &mut buffer));
            key_sum = key_sum.wrapping_add(key);
            sum = sum.wrapping_add(key).wrapping_add(consume(self.value(self.in_order[at])));
            self.sums_below.push(sum);
            self.key_sums_below.push(key_sum);
        }
    }

    pub(crate) fn entries(&self) -> usize {
        self.in_order.len()
    }

    /// Entries that a scan of so many visits: fewer where not enough are loaded.
    pub(crate) fn scan_entries(&self, most: usize) -> usize {
        most.min(self.entries() / 2)
    }

    pub(crate) fn key_buffer(&self) -> KeyBuffer {
        match &self.keys {
            SpaceBytes::Numbered { template, .. } | SpaceBytes::Around { template } => {
                KeyBuffer(template.clone())
            }
            _ => KeyBuffer(Vec::new()),
        }
    }

    #[inline]
    pub(crate) fn key<'a>(&'a self, number: u32, buffer: &'a mut KeyBuffer) -> &'a [u8] {
        match &self.keys {
            SpaceBytes::Numbered { at, .. } => {
                buffer.0[*at..*at + 8].copy_from_slice(&u64::from(number).to_be_bytes());
                &buffer.0
            }
            SpaceBytes::Around { template } => {
                buffer.0[..8].copy_from_slice(&u64::from(number / 16).to_be_bytes());
                buffer.0[template.len() - 1] = (number % 16) as u8;
                &buffer.0
            }
            other => other.get(number),
        }
    }

    #[inline]
    pub(crate) fn value(&self, number: u32) -> &[u8] {
        self.values.get(number)
    }

    /// Bytes that an engine is taken to need for all entries.
    pub(crate) fn bytes_needed(&self) -> usize {
        self.entries() * (self.payload_bytes() as usize + ENTRY_OVERHEAD)
    }

    pub(crate) fn payload_bytes(&self) -> f64 {
        let mut buffer = self.key_buffer();
        let bytes: usize = self
            .in_order
            .iter()
            .map(|&number| self.key(number, &mut buffer).len() + self.value(number).len())
            .sum();
        bytes as f64 / self.entries() as f64
    }

    pub(crate) fn everything(&self) -> Tally {
        Tally { entries: self.entries() as u64, sum: self.sums_below[self.entries()] }
    }

    /// The expected tally of `job`, where it does not depend on timing.
    pub(crate) fn expected(&self, job: &OrderedJob) -> Option<Tally> {
        let mut tally = Tally::default();
        let range = |sums: &[u64], begin: usize, entries: usize| Tally {
            entries: entries as u64,
            sum: sums[begin + entries].wrapping_sub(sums[begin]),
        };
        for op in (0..job.threads).flat_map(|thread| job.plan(self, thread)) {
            match job.workload.kind {
                // Writes put the value that is there, so reads beside them are certain.
                Kind::Mixed if op.writes() => {}
                Kind::Get | Kind::GetCopy | Kind::GetMany | Kind::Mixed => {
                    tally.add(consume(self.value(op.number())));
                }
                Kind::Put | Kind::PutIfAbsentOrUpdate | Kind::UpdateZipf => return None,
                // It reads nothing.
                Kind::Load { .. } => {}
                Kind::First => tally = tally.merge(range(&self.sums_below, 0, 1)),
                Kind::Queue(_) => tally.add(consume(&QUEUED)),
                Kind::Scan(scan) => {
                    let sums = match scan.form {
                        ScanForm::Keys => &self.key_sums_below,
                        _ => &self.sums_below,
                    };
                    let (rank, entries) = (op.number() as usize, self.scan_entries(scan.entries));
                    let begin = if scan.descending { rank + 1 - entries } else { rank };
                    tally = tally.merge(range(sums, begin, entries));
                }
            }
        }
        Some(tally)
    }
}

impl SpaceBytes {
    #[inline]
    fn get(&self, number: u32) -> &[u8] {
        match self {
            SpaceBytes::Numbered { template, .. } | SpaceBytes::Around { template } => template,
            SpaceBytes::Windows { pool, len } => {
                let begin = (number as usize * 8) % (POOL_BYTES - len);
                &pool[begin..begin + len]
            }
            SpaceBytes::Listed { bytes, ends } => {
                let number = number as usize;
                let begin = if number == 0 { 0 } else { ends[number - 1] };
                &bytes[begin..ends[number]]
            }
        }
    }
}

/// Keys in order with the rest of their rows as values: every row, or `most` evenly spaced ones.
///
/// Rows are collected in few large pieces, which go back to the system when they are dropped:
/// many small ones would stay with the allocator and hide the growth of the first engine.
fn read_flights(most: usize) -> Result<(SpaceBytes, SpaceBytes, usize)> {
    let (mut reader, of_key) = flights(["carrier", "flight", "year", "month", "day", "origin"])?;
    let mut text = Vec::new();
    let mut rows: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    let mut row = csv::ByteRecord::new();
    while reader.read_byte_record(&mut row)? {
        let [carrier, flight, year, month, day, origin] =
            of_key.map(|at| String::from_utf8_lossy(&row[at]));
        let begin = text.len();
        write!(text, "{carrier}|{flight:0>4}|{year}-{month:0>2}-{day:0>2}|{origin}")?;
        let middle = text.len();
        for (_, field) in row.iter().enumerate().filter(|(at, _)| !of_key.contains(at)) {
            text.extend_from_slice(field);
            text.push(b',');
        }
        rows.push((begin..middle, middle..text.len()));
    }
    rows.sort_by_key(|(key, _)| &text[key.clone()]);
    if rows.windows(2).any(|pair| text[pair[0].0.clone()] == text[pair[1].0.clone()]) {
        bail!("two flights have one key");
    }
    let step = (rows.len() / most.max(1)).max(1);
    let chosen: Vec<_> = rows.into_iter().step_by(step).collect();
    let keys = list(&text, chosen.iter().map(|(key, _)| key));
    let values = list(&text, chosen.iter().map(|(_, value)| value));
    Ok((keys, values, chosen.len()))
}

fn list<'a>(text: &[u8], pieces: impl Iterator<Item = &'a Range<usize>>) -> SpaceBytes {
    let mut bytes = Vec::with_capacity(text.len());
    let mut ends = Vec::new();
    for piece in pieces {
        bytes.extend_from_slice(&text[piece.clone()]);
        ends.push(bytes.len());
    }
    bytes.shrink_to_fit();
    SpaceBytes::Listed { bytes, ends }
}
