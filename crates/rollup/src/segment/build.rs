//! From a table of facts to the bytes of a segment.

use roaring::RoaringBitmap;

use super::block::{STRINGS_BYTES_MAX, push_doubles, push_longs, push_strings};
use super::format::{Footer, FooterDimension, SectionAt, header};
use super::pack::pack;
use super::table::{Dictionaries, FactTable, Folding, TableValues};
use super::{BLOCK_ROWS, dictionary};
use crate::error::Result;
use crate::live::state::{Place, StateLayout, double, long};
use crate::time::interval::Interval;

/// A dictionary has bitmaps if its words have so many rows each, on average: where nearly each row has a word of
/// its own, they would take as much as the rows.
const ROWS_A_BITMAP: usize = 4;

/// Writes the segment of an interval. Rows that agree in time and dimensions become one, if `folding`.
///
/// # Errors
/// [`Error::Full`](crate::Error::Full) if the sketches of some rows are too large for a block.
pub(crate) fn build(
    mut table: FactTable,
    dictionaries: &Dictionaries<'_>,
    layout: &StateLayout,
    interval: Interval,
    folding: Folding,
) -> Result<Vec<u8>> {
    let mut words: Vec<Option<Vec<u8>>> = Vec::with_capacity(table.dimensions.len());
    for (dimension, entries) in table.dimensions.iter_mut().zip(dictionaries) {
        let (TableValues::Ids(ids), Some(entries)) = (&mut dimension.values, entries) else {
            words.push(None);
            continue;
        };
        let mut bytes = Vec::new();
        let new = dictionary::build(&mut bytes, entries, ids.iter().copied());
        ids.iter_mut().for_each(|id| *id = new[*id as usize]);
        words.push(Some(bytes));
    }
    let table = table.sorted(layout, folding);
    let mut out = Sections(vec![0; header::BYTES]);
    let zones = out.write(|out| {
        for times in table.times.chunks(BLOCK_ROWS) {
            let (first, last) = (times[0], times[times.len() - 1]);
            out.extend(first.to_le_bytes().into_iter().chain(last.to_le_bytes()));
        }
    });
    let times = out.blocks(table.times.chunks(BLOCK_ROWS), pack);
    let mut dimensions = Vec::with_capacity(table.dimensions.len());
    for (dimension, words) in table.dimensions.iter().zip(words) {
        let (mut words_at, mut bitmaps_at) = (SectionAt::default(), SectionAt::default());
        let values = match &dimension.values {
            TableValues::Ids(ids) => {
                let words = words.expect("a dimension of texts has a dictionary");
                words_at = out.write(|out| out.extend_from_slice(&words));
                bitmaps_at = out.write(|out| push_bitmaps(out, ids));
                out.blocks(ids.chunks(BLOCK_ROWS), |out, ids| {
                    let ids: Vec<i64> = ids.iter().map(|id| i64::from(*id)).collect();
                    pack(out, &ids);
                })
            }
            TableValues::Longs(values) => out.blocks(values.chunks(BLOCK_ROWS), |out, values| {
                let (values, present) = parted(values.iter().copied());
                push_longs(out, &values, &present);
            }),
            TableValues::Doubles(values) => out.blocks(values.chunks(BLOCK_ROWS), |out, values| {
                let (values, present) = parted(values.iter().copied());
                push_doubles(out, &values, &present);
            }),
        };
        let dimension = dimension.dimension.clone();
        dimensions.push(FooterDimension {
            dimension,
            words: words_at,
            bitmaps: bitmaps_at,
            values,
        });
    }
    let rows = table.len();
    let blocks = || (0..rows).step_by(BLOCK_ROWS).map(|first| first..rows.min(first + BLOCK_ROWS));
    let mut metrics = Vec::with_capacity(layout.slots.len());
    for (metric, slot) in layout.slots.iter().enumerate() {
        metrics.push(match slot.place {
            Place::Cell(kind, _) => out.blocks(blocks(), |out, rows| {
                let cell = |row| layout.cell(metric, table.state(row));
                let is_timed = kind.bytes() == 16;
                let value_at = if is_timed { 8 } else { 0 };
                if is_timed {
                    let times = rows.clone().map(|row| cell(row).map(long));
                    let (times, present) = parted(times);
                    push_longs(out, &times, &present);
                }
                if kind.is_double() {
                    let values = rows.map(|row| cell(row).map(|cell| double(&cell[value_at..])));
                    let (values, present) = parted(values);
                    push_doubles(out, &values, &present);
                } else {
                    let values = rows.map(|row| cell(row).map(|cell| long(&cell[value_at..])));
                    let (values, present) = parted(values);
                    push_longs(out, &values, &present);
                }
            }),
            Place::Sketch(number) => {
                let sketch = |row| {
                    let mut all = layout.sketch_bytes(table.state(row));
                    all.nth(number).expect("a state has each sketch")
                };
                if let Some(full) = blocks().find(|rows| {
                    rows.clone().map(|row| sketch(row).len()).sum::<usize>() > STRINGS_BYTES_MAX
                }) {
                    return Err(crate::Error::Full {
                        what: format!("the sketches of {} facts", full.len()),
                        limit: STRINGS_BYTES_MAX as u64,
                    });
                }
                out.blocks(blocks(), |out, rows| {
                    let (mut bytes, mut lens) = (Vec::new(), Vec::new());
                    for row in rows {
                        let sketch = sketch(row);
                        bytes.extend_from_slice(sketch);
                        lens.push(sketch.len() as i64);
                    }
                    push_strings(out, &bytes, &lens);
                })
            }
        });
    }
    let footer = Footer { dimensions, zones, times, metrics };
    Ok(footer.finish(out.0, rows as u64, interval, layout))
}

/// Values and which of them are there.
fn parted<T: Default>(values: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<bool>) {
    values
        .map(|value| (value.is_some(), value))
        .map(|(is, value)| (value.unwrap_or_default(), is))
        .unzip()
}

/// For each number of a dictionary, 0 for null too, which rows have it: where each bitmap ends, then all of them, in
/// the format that libraries of Roaring bitmaps share. Nothing, where words have too few rows.
fn push_bitmaps(out: &mut Vec<u8>, ids: &[u32]) {
    let words = ids.iter().max().map_or(0, |most| *most as usize + 1);
    if words * ROWS_A_BITMAP > ids.len() {
        return;
    }
    let mut bitmaps = vec![RoaringBitmap::new(); words];
    for (row, id) in (0..).zip(ids) {
        bitmaps[*id as usize].try_push(row).expect("rows ascend");
    }
    out.extend_from_slice(&(words as u32).to_le_bytes());
    let mut bytes = Vec::new();
    for bitmap in &mut bitmaps {
        bitmap.optimize();
        bitmap.serialize_into(&mut bytes).expect("memory takes all bytes");
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    }
    out.extend_from_slice(&bytes);
}

/// The sections of a segment, behind room for its header.
struct Sections(Vec<u8>);

impl Sections {
    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> SectionAt {
        let start = self.0.len();
        write(&mut self.0);
        SectionAt::new(start, &self.0[start..])
    }

    /// Blocks behind where each ends, from the first block on.
    fn blocks<B>(
        &mut self,
        blocks: impl ExactSizeIterator<Item = B>,
        mut push: impl FnMut(&mut Vec<u8>, B),
    ) -> SectionAt {
        self.write(|out| {
            let index = out.len();
            out.resize(index + blocks.len() * 8, 0);
            let first = out.len();
            for (block, rows) in blocks.enumerate() {
                push(out, rows);
                let end = (out.len() - first) as u64;
                out[index + block * 8..][..8].copy_from_slice(&end.to_le_bytes());
            }
        })
    }
}
