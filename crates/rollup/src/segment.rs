//! Segments: facts of an interval that do not change any more, as columns.
//!
//! A segment is one piece of bytes: a file, mapped where it can be, or memory. Its rows are sorted by time and then
//! by the values of their dimensions; its columns are cut into blocks of 1,024 rows. Opening reads header and
//! footer alone; the checksum of a column is compared when the column is first read.
//!
//! *Thread safety*: a segment is read by any number of threads.

mod block;
mod build;
mod bytes;
mod dictionary;
mod format;
mod pack;
mod table;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use roaring::RoaringBitmap;
use sapwood_disk::{View, checksum};

use crate::error::{Error, Result};
use crate::live::dictionary::Entries;
use crate::live::state::{Place, StateLayout};
use crate::schema::{Dimension, DimensionKind, Schema, TIME_COLUMN};
use crate::time::interval::Interval;
use block::{read_doubles, read_longs, read_strings};
use bytes::Reader;
use format::{Footer, FooterDimension, Header, SectionAt, header};
use pack::unpack;
use table::TableValues;

pub(crate) use build::build;
pub(crate) use dictionary::SegmentTexts;
pub(crate) use table::{FactTable, Folding, Numbered};

/// Rows of a block.
pub(crate) const BLOCK_ROWS: usize = 1024;

/// Most rows of a segment.
pub(crate) const ROWS_MAX: usize = 1 << 22;

/// Facts of an interval that do not change any more.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The name of its file, or how messages call it.
    name: String,
    file: Arc<dyn View>,
    rows: usize,
    interval: Interval,
    dimensions: Vec<SegmentDimension>,
    metrics: Vec<Section>,
    zones: Section,
    times: Section,
}

#[derive(Debug)]
struct SegmentDimension {
    dimension: Dimension,
    words: Section,
    /// What a look at all words has shown.
    looked: OnceLock<Result<()>>,
    bitmaps: Section,
    values: Section,
}

#[derive(Debug)]
struct Section {
    at: SectionAt,
    /// What comparing its checksum has shown.
    checked: OnceLock<Result<()>>,
}

impl From<SectionAt> for Section {
    fn from(at: SectionAt) -> Section {
        Section { at, checked: OnceLock::new() }
    }
}

impl Segment {
    /// Opens a segment of a schema with these metrics.
    ///
    /// # Errors
    /// [`Error::Corrupt`], which names the file.
    pub(crate) fn open(
        name: impl Into<String>,
        file: Arc<dyn View>,
        layout: &StateLayout,
    ) -> Result<Segment> {
        let name = name.into();
        let named = |error: Error| error.in_file(&name);
        let header = Header::read(file.bytes()).map_err(named)?;
        let footer = Footer::read(file.bytes(), &header, layout).map_err(named)?;
        let dimension = |known: FooterDimension| SegmentDimension {
            dimension: known.dimension,
            words: known.words.into(),
            looked: OnceLock::new(),
            bitmaps: known.bitmaps.into(),
            values: known.values.into(),
        };
        Ok(Segment {
            rows: header.rows as usize,
            interval: header.interval,
            dimensions: footer.dimensions.into_iter().map(dimension).collect(),
            metrics: footer.metrics.into_iter().map(Section::from).collect(),
            zones: footer.zones.into(),
            times: footer.times.into(),
            name,
            file,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.file.bytes().len() as u64
    }

    /// A checksum that no other file of a segment has but by chance: of the header, which has that of the footer, which
    /// has those of all columns. The header's own is left out: with it, all headers would have one and the same.
    pub(crate) fn check_of_file(&self) -> u32 {
        checksum(&self.file.bytes()[..header::BYTES - 4])
    }

    pub(crate) fn interval(&self) -> Interval {
        self.interval
    }

    /// How many blocks it has.
    pub(crate) fn blocks(&self) -> usize {
        self.rows.div_ceil(BLOCK_ROWS)
    }

    /// How many rows a block has.
    pub(crate) fn rows_of(&self, block: usize) -> usize {
        (self.rows - block * BLOCK_ROWS).min(BLOCK_ROWS)
    }

    /// The number of a dimension, and its kind, if the segment has it.
    pub(crate) fn dimension(&self, name: &str) -> Option<(usize, DimensionKind)> {
        let at = self.dimensions.iter().position(|known| known.dimension.name == name)?;
        Some((at, self.dimensions[at].dimension.kind))
    }

    /// The bytes of a section, whose checksum was compared.
    fn section(&self, section: &Section) -> Result<Reader<'_>> {
        let bytes = &self.file.bytes()[section.at.range()];
        let reader = Reader::new(bytes, section.at.begin);
        let compare = || match checksum(bytes) == section.at.checksum {
            true => Ok(()),
            false => Err(self.named(reader.corrupt("the checksum of a column does not match"))),
        };
        section.checked.get_or_init(compare).clone()?;
        Ok(reader)
    }

    /// The bytes of a block.
    fn block(&self, section: &Section, block: usize) -> Result<Reader<'_>> {
        let mut reader = self.section(section)?;
        let find = |reader: &mut Reader<'_>| -> Result<Range<usize>> {
            let ends = reader.u64s(self.blocks())?;
            let end = |block: usize| u64::from_le_bytes(ends[block]);
            let begin = if block == 0 { 0 } else { end(block - 1) };
            match (usize::try_from(begin), usize::try_from(end(block))) {
                (Ok(begin), Ok(end)) if begin <= end => Ok(begin..end),
                _ => Err(reader.corrupt(format!("block {block} ends before it begins"))),
            }
        };
        let found = find(&mut reader).and_then(|range| {
            reader.take(range.start)?;
            let at = reader.clone();
            let bytes = reader.take(range.len())?;
            Ok(at.over(bytes))
        });
        found.map_err(|error| self.named(error))
    }

    #[cold]
    fn named(&self, error: Error) -> Error {
        error.in_file(&self.name)
    }

    /// The first and the last time of a block.
    pub(crate) fn zone(&self, block: usize) -> Result<(i64, i64)> {
        let mut zones = self.section(&self.zones)?;
        let read = zones.u64s(self.blocks() * 2).map_err(|error| self.named(error))?;
        let time = |at: usize| i64::from_le_bytes(read[at]);
        Ok((time(block * 2), time(block * 2 + 1)))
    }

    /// The blocks that may have rows of an interval.
    pub(crate) fn blocks_of(&self, interval: Interval) -> Result<Range<usize>> {
        let mut blocks = 0..self.blocks();
        while !blocks.is_empty() && self.zone(blocks.start)?.1 < interval.start {
            blocks.start += 1;
        }
        while !blocks.is_empty() && self.zone(blocks.end - 1)?.0 >= interval.end {
            blocks.end -= 1;
        }
        Ok(blocks)
    }

    pub(crate) fn read_times(&self, block: usize, times: &mut Vec<i64>) -> Result<()> {
        let reader = &mut self.block(&self.times, block)?;
        let read = unpack(reader, self.rows_of(block), times, |time| time);
        read.map_err(|error| self.named(error))
    }

    /// The words of a dimension of texts.
    pub(crate) fn texts(&self, dimension: usize) -> Result<SegmentTexts<'_>> {
        let known = &self.dimensions[dimension];
        let reader = self.section(&known.words)?;
        let look = || SegmentTexts::check(&reader).map_err(|error| self.named(error));
        known.looked.get_or_init(look).clone()?;
        SegmentTexts::find(reader).map_err(|error| self.named(error))
    }

    /// The rows whose number of a text is one of some; none where there are no bitmaps.
    pub(crate) fn rows_with(
        &self,
        dimension: usize,
        ids: impl Iterator<Item = u32>,
    ) -> Result<Option<RoaringBitmap>> {
        let mut reader = self.section(&self.dimensions[dimension].bitmaps)?;
        if reader.rest().is_empty() {
            return Ok(None);
        }
        let read = || -> Result<RoaringBitmap> {
            let words = reader.u32()? as usize;
            let ends = reader.u64s(words)?;
            let mut rows = RoaringBitmap::new();
            for id in ids {
                let at = id as usize;
                let Some(end) = ends.get(at) else { continue };
                let begin = if at == 0 { 0 } else { u64::from_le_bytes(ends[at - 1]) };
                let end = u64::from_le_bytes(*end);
                let bytes = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
                let bytes = bytes.and_then(|(begin, end)| reader.rest().get(begin..end));
                let bitmap = bytes.and_then(|bytes| RoaringBitmap::deserialize_from(bytes).ok());
                rows |=
                    bitmap.ok_or_else(|| reader.corrupt(format!("bitmap {at} cannot be read")))?;
            }
            Ok(rows)
        };
        read().map(Some).map_err(|error| self.named(error))
    }

    /// Reads the numbers of texts of a block.
    pub(crate) fn read_ids(
        &self,
        dimension: usize,
        block: usize,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let most = self.texts(dimension)?.len() as i64;
        let mut reader = self.block(&self.dimensions[dimension].values, block)?;
        let (at, mut is_good) = (reader.clone(), true);
        let read = unpack(&mut reader, self.rows_of(block), ids, |id| {
            is_good &= (0..=most).contains(&id);
            id as u32
        });
        let read = match is_good {
            true => read,
            false => Err(at.corrupt("the number of a text is none of the dictionary")),
        };
        read.map_err(|error| self.named(error))
    }

    /// Reads whole numbers of a dimension.
    pub(crate) fn read_long_dimension(
        &self,
        dimension: usize,
        block: usize,
        values: &mut Vec<i64>,
        present: &mut Vec<bool>,
    ) -> Result<()> {
        let reader = &mut self.block(&self.dimensions[dimension].values, block)?;
        let read = read_longs(reader, self.rows_of(block), values, present);
        read.map_err(|error| self.named(error))
    }

    /// Reads floating point numbers of a dimension.
    pub(crate) fn read_double_dimension(
        &self,
        dimension: usize,
        block: usize,
        values: &mut Vec<f64>,
        present: &mut Vec<bool>,
    ) -> Result<()> {
        let reader = &mut self.block(&self.dimensions[dimension].values, block)?;
        let read = read_doubles(reader, self.rows_of(block), values, present);
        read.map_err(|error| self.named(error))
    }

    /// Reads the cells of a metric.
    pub(crate) fn read_cells(&self, metric: usize, block: usize, into: Cells<'_>) -> Result<()> {
        let reader = &mut self.block(&self.metrics[metric], block)?;
        let rows = self.rows_of(block);
        let Cells { times, values, present } = into;
        let read = || -> Result<()> {
            if let Some(times) = times {
                read_longs(reader, rows, times, &mut Vec::with_capacity(rows))?;
            }
            match values {
                CellValues::Longs(values) => read_longs(reader, rows, values, present),
                CellValues::Doubles(values) => read_doubles(reader, rows, values, present),
            }
        };
        read().map_err(|error| self.named(error))
    }

    /// Reads the states of a sketch.
    pub(crate) fn read_sketches(
        &self,
        metric: usize,
        block: usize,
        bytes: &mut Vec<u8>,
        ends: &mut Vec<usize>,
    ) -> Result<()> {
        let reader = &mut self.block(&self.metrics[metric], block)?;
        let read = read_strings(reader, self.rows_of(block), bytes, ends);
        read.map_err(|error| self.named(error))
    }

    /// Reads all of it, and tells the first thing that is wrong.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Sketch`].
    pub(crate) fn check(&self, layout: &StateLayout) -> Result<()> {
        let dimensions = self.dimensions.iter().map(|known| known.dimension.clone());
        let mut table = FactTable::new(dimensions);
        let mut entries: Vec<Entries> =
            self.dimensions.iter().map(|_| Entries::default()).collect();
        self.append_to(&mut table, &mut entries, layout)?;
        for (at, known) in self.dimensions.iter().enumerate() {
            if known.dimension.kind == DimensionKind::Text {
                let ids = 0..=self.texts(at)?.len() as u32;
                let rows = self.rows_with(at, ids)?;
                if rows.is_some_and(|rows| rows.len() != self.rows as u64) {
                    let begin = known.bitmaps.at.begin;
                    return Err(
                        self.named(Error::corrupt(begin, "bitmaps have other rows than there are"))
                    );
                }
            }
        }
        for block in 0..self.blocks() {
            let (first, last) = self.zone(block)?;
            let times = block * BLOCK_ROWS..block * BLOCK_ROWS + self.rows_of(block);
            let times = &table.times[times];
            let is_inside = self.interval.contains(first) && self.interval.contains(last);
            if !is_inside
                || !times.is_sorted()
                || (times[0], times[times.len() - 1]) != (first, last)
            {
                let what = format!("the times of block {block} are not those of its zone");
                return Err(self.named(Error::corrupt(self.times.at.begin, what)));
            }
        }
        Ok(())
    }

    /// All bytes of it.
    pub(crate) fn file_bytes(&self) -> &[u8] {
        self.file.bytes()
    }

    /// The columns whose bytes are not those that were written, of a segment of this schema.
    pub(crate) fn damaged_columns(&self, schema: &Schema) -> Vec<String> {
        let is_damaged = |section: &Section| self.section(section).is_err();
        let times = is_damaged(&self.times).then(|| TIME_COLUMN.to_owned());
        let dimensions = self
            .dimensions
            .iter()
            .filter(|known| is_damaged(&known.values) || is_damaged(&known.words));
        let metrics = schema.metrics.iter().zip(&self.metrics);
        let metrics = metrics.filter(|(_, section)| is_damaged(section));
        let dimensions = dimensions.map(|known| known.dimension.name.clone());
        let metrics = metrics.map(|(metric, _)| metric.name.clone());
        times.into_iter().chain(dimensions).chain(metrics).collect()
    }

    /// Appends all facts to a table, whose numbers of texts are those of `dictionaries`, by dimension of the table.
    pub(crate) fn append_to(
        &self,
        table: &mut FactTable,
        dictionaries: &mut [Entries],
        layout: &StateLayout,
    ) -> Result<()> {
        let names: Vec<String> =
            table.dimensions.iter().map(|known| known.dimension.name.clone()).collect();
        let mut numbers = Vec::with_capacity(self.dimensions.len());
        for (at, known) in self.dimensions.iter().enumerate() {
            let place = names.iter().position(|name| *name == known.dimension.name);
            numbers.push(match (known.dimension.kind, place) {
                (DimensionKind::Text, Some(place)) => {
                    dictionary::intern(self.texts(at)?, &mut dictionaries[place])?
                }
                _ => Vec::new(),
            });
        }
        for block in 0..self.blocks() {
            self.read_times(block, &mut table.times)?;
            for (at, known) in self.dimensions.iter().enumerate() {
                let Some(values) = table.values_mut(&known.dimension.name) else { continue };
                let (mut present, mut read) = (Vec::new(), Vec::new());
                match values {
                    TableValues::Ids(ids) => {
                        let first = ids.len();
                        self.read_ids(at, block, ids)?;
                        ids[first..].iter_mut().for_each(|id| *id = numbers[at][*id as usize]);
                    }
                    TableValues::Longs(values) => {
                        self.read_long_dimension(at, block, &mut read, &mut present)?;
                        let read = read.iter().zip(&present);
                        values.extend(read.map(|(value, present)| present.then_some(*value)));
                    }
                    TableValues::Doubles(values) => {
                        let mut read = Vec::new();
                        self.read_double_dimension(at, block, &mut read, &mut present)?;
                        let read = read.iter().zip(&present);
                        values.extend(read.map(|(value, present)| present.then_some(*value)));
                    }
                }
            }
            table.fill();
            self.append_states(table, block, layout)?;
        }
        Ok(())
    }

    /// Appends the states of a block.
    fn append_states(
        &self,
        table: &mut FactTable,
        block: usize,
        layout: &StateLayout,
    ) -> Result<()> {
        let rows = self.rows_of(block);
        let mut fixed = vec![0; rows * layout.fixed_bytes];
        let mut sketches = Vec::with_capacity(layout.sketches.len());
        for (metric, slot) in layout.slots.iter().enumerate() {
            let Place::Cell(kind, cell_at) = slot.place else {
                let (mut bytes, mut ends) = (Vec::new(), Vec::new());
                self.read_sketches(metric, block, &mut bytes, &mut ends)?;
                sketches.push((bytes, ends));
                continue;
            };
            let (mut times, mut present) = (Vec::new(), Vec::new());
            let (mut longs, mut doubles) = (Vec::new(), Vec::new());
            let is_timed = kind.bytes() == 16;
            let into = Cells {
                times: is_timed.then_some(&mut times),
                values: match kind.is_double() {
                    true => CellValues::Doubles(&mut doubles),
                    false => CellValues::Longs(&mut longs),
                },
                present: &mut present,
            };
            self.read_cells(metric, block, into)?;
            for (row, state) in fixed.chunks_mut(layout.fixed_bytes).enumerate() {
                if !present[row] {
                    continue;
                }
                slot.set(state);
                let mut cell = &mut state[cell_at..];
                if is_timed {
                    cell[..8].copy_from_slice(&times[row].to_le_bytes());
                    cell = &mut cell[8..];
                }
                cell[..8].copy_from_slice(&match kind.is_double() {
                    true => doubles[row].to_le_bytes(),
                    false => longs[row].to_le_bytes(),
                });
            }
        }
        let mut state = Vec::new();
        for row in 0..rows {
            state.clear();
            state.extend_from_slice(&fixed[row * layout.fixed_bytes..][..layout.fixed_bytes]);
            for ((bytes, ends), kind) in sketches.iter().zip(&layout.sketches) {
                let sketch = &bytes[if row == 0 { 0 } else { ends[row - 1] }..ends[row]];
                if !sketch.is_empty() {
                    // Merges take it for granted that a state can be read.
                    kind.decode(sketch)?;
                }
                crate::live::state::push_sketch(&mut state, |out| out.extend_from_slice(sketch));
            }
            table.push_state(&state);
        }
        Ok(())
    }
}

/// Where the cells of a metric are read to.
pub(crate) struct Cells<'c> {
    /// Of the first and the last by time alone.
    pub(crate) times: Option<&'c mut Vec<i64>>,
    pub(crate) values: CellValues<'c>,
    pub(crate) present: &'c mut Vec<bool>,
}

/// The values of cells.
pub(crate) enum CellValues<'c> {
    Longs(&'c mut Vec<i64>),
    Doubles(&'c mut Vec<f64>),
}
