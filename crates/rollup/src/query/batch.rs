//! Facts as columns: how a query reads them.

use super::columns::{Columns, Form, Source};
use crate::error::Result;
use crate::live::dictionary::{EntriesRead, Entry, NULL};
use crate::live::key::Parts;
use crate::live::state::{Place, StateLayout, double, long};
use crate::schema::DimensionKind;
use crate::segment::{BLOCK_ROWS, CellValues, Cells, Numbered, Segment, SegmentTexts};
use crate::value::Value;

/// So many facts are looked at together: their columns stay in the first caches.
pub(crate) const BATCH_ROWS: usize = BLOCK_ROWS;

/// Some facts, as columns.
#[derive(Debug)]
pub(crate) struct FactBatch {
    pub(crate) times: Vec<i64>,
    pub(crate) columns: Vec<FactColumn>,
}

/// The values of a column. What is not present is null.
#[derive(Debug)]
pub(crate) enum FactColumn {
    /// Numbers of a dictionary.
    Ids(Vec<u32>),
    Longs {
        values: Vec<i64>,
        present: Vec<bool>,
    },
    Doubles {
        values: Vec<f64>,
        present: Vec<bool>,
    },
    TimedLongs {
        times: Vec<i64>,
        values: Vec<i64>,
        present: Vec<bool>,
    },
    TimedDoubles {
        times: Vec<i64>,
        values: Vec<f64>,
        present: Vec<bool>,
    },
    /// The states of sketches; empty of nothing.
    Sketches {
        bytes: Vec<u8>,
        ends: Vec<usize>,
    },
}

impl FactColumn {
    fn new(form: Form) -> FactColumn {
        match form {
            Form::Ids => FactColumn::Ids(Vec::new()),
            Form::Long => FactColumn::Longs { values: Vec::new(), present: Vec::new() },
            Form::Double => FactColumn::Doubles { values: Vec::new(), present: Vec::new() },
            Form::TimedLong => FactColumn::TimedLongs {
                times: Vec::new(),
                values: Vec::new(),
                present: Vec::new(),
            },
            Form::TimedDouble => FactColumn::TimedDoubles {
                times: Vec::new(),
                values: Vec::new(),
                present: Vec::new(),
            },
            Form::Sketch => FactColumn::Sketches { bytes: Vec::new(), ends: Vec::new() },
        }
    }

    fn clear(&mut self) {
        match self {
            FactColumn::Ids(ids) => ids.clear(),
            FactColumn::Longs { values, present } => {
                values.clear();
                present.clear();
            }
            FactColumn::Doubles { values, present } => {
                values.clear();
                present.clear();
            }
            FactColumn::TimedLongs { times, values, present } => {
                times.clear();
                values.clear();
                present.clear();
            }
            FactColumn::TimedDoubles { times, values, present } => {
                times.clear();
                values.clear();
                present.clear();
            }
            FactColumn::Sketches { bytes, ends } => {
                bytes.clear();
                ends.clear();
            }
        }
    }

    /// Appends nulls.
    fn fill_null(&mut self, rows: usize) {
        match self {
            FactColumn::Ids(ids) => ids.resize(rows, NULL),
            FactColumn::Longs { values, present } => {
                values.resize(rows, 0);
                present.resize(rows, false);
            }
            FactColumn::Doubles { values, present } => {
                values.resize(rows, 0.0);
                present.resize(rows, false);
            }
            FactColumn::TimedLongs { .. }
            | FactColumn::TimedDoubles { .. }
            | FactColumn::Sketches { .. } => unreachable!("a segment has each metric"),
        }
    }

    /// Where the cells of a metric are read to.
    fn cells(&mut self) -> Cells<'_> {
        match self {
            FactColumn::Longs { values, present } => {
                Cells { times: None, values: CellValues::Longs(values), present }
            }
            FactColumn::Doubles { values, present } => {
                Cells { times: None, values: CellValues::Doubles(values), present }
            }
            FactColumn::TimedLongs { times, values, present } => {
                Cells { times: Some(times), values: CellValues::Longs(values), present }
            }
            FactColumn::TimedDoubles { times, values, present } => {
                Cells { times: Some(times), values: CellValues::Doubles(values), present }
            }
            FactColumn::Ids(_) | FactColumn::Sketches { .. } => unreachable!("{FORMS}"),
        }
    }

    fn push_long(&mut self, value: Option<i64>) {
        let FactColumn::Longs { values, present } = self else { unreachable!("{FORMS}") };
        values.push(value.unwrap_or_default());
        present.push(value.is_some());
    }

    fn push_double(&mut self, value: Option<f64>) {
        let FactColumn::Doubles { values, present } = self else { unreachable!("{FORMS}") };
        values.push(value.unwrap_or_default());
        present.push(value.is_some());
    }

    fn push_id(&mut self, id: u32) {
        let FactColumn::Ids(ids) = self else { unreachable!("{FORMS}") };
        ids.push(id);
    }

    fn push_cell(&mut self, cell: Option<&[u8]>) {
        match self {
            FactColumn::Longs { .. } => self.push_long(cell.map(long)),
            FactColumn::Doubles { .. } => self.push_double(cell.map(double)),
            FactColumn::TimedLongs { times, values, present } => {
                times.push(cell.map_or(0, long));
                values.push(cell.map_or(0, |cell| long(&cell[8..])));
                present.push(cell.is_some());
            }
            FactColumn::TimedDoubles { times, values, present } => {
                times.push(cell.map_or(0, long));
                values.push(cell.map_or(0.0, |cell| double(&cell[8..])));
                present.push(cell.is_some());
            }
            FactColumn::Ids(_) | FactColumn::Sketches { .. } => unreachable!("{FORMS}"),
        }
    }

    fn push_sketch(&mut self, sketch: &[u8]) {
        let FactColumn::Sketches { bytes, ends } = self else { unreachable!("{FORMS}") };
        bytes.extend_from_slice(sketch);
        ends.push(bytes.len());
    }

    /// The state of a sketch.
    pub(crate) fn sketch(&self, row: usize) -> &[u8] {
        let FactColumn::Sketches { bytes, ends } = self else { unreachable!("{FORMS}") };
        let start = if row == 0 { 0 } else { ends[row - 1] };
        &bytes[start..ends[row]]
    }
}

const FORMS: &str = "a column is made for the form that it is read in";

/// Takes live facts apart into columns.
#[derive(Debug)]
pub(crate) struct FactReader<'r> {
    layout: &'r StateLayout,
    /// Of each dimension up to the last that is read: its kind, and the column that it goes to.
    dimensions: Vec<(DimensionKind, Option<usize>)>,
    /// The columns of the time.
    times: Vec<usize>,
    /// The metric cells that are read, and their columns.
    cells: Vec<(usize, usize)>,
    /// The sketches that are read, and their columns.
    sketches: Vec<(usize, usize)>,
    /// Whether a row number stands behind the time.
    numbered: Numbered,
}

impl<'r> FactReader<'r> {
    pub(crate) fn new(
        columns: &Columns<'_>,
        layout: &'r StateLayout,
        numbered: Numbered,
    ) -> FactReader<'r> {
        let mut reader = FactReader {
            layout,
            dimensions: Vec::new(),
            times: Vec::new(),
            cells: Vec::new(),
            sketches: Vec::new(),
            numbered,
        };
        for (column, (source, _)) in columns.read.iter().enumerate() {
            match *source {
                Source::Time => reader.times.push(column),
                Source::Virtual(_) => {}
                Source::Dimension(number) => {
                    while reader.dimensions.len() <= number {
                        let kind = columns.dimension_at(reader.dimensions.len()).kind;
                        reader.dimensions.push((kind, None));
                    }
                    reader.dimensions[number].1 = Some(column);
                }
                Source::Metric(number) => match layout.slots[number].place {
                    Place::Cell(..) => reader.cells.push((number, column)),
                    Place::Sketch(sketch) => reader.sketches.push((sketch, column)),
                },
            }
        }
        reader
    }

    /// Appends a fact.
    pub(crate) fn push(&self, batch: &mut FactBatch, key: &[u8], state: &[u8]) {
        let (time, mut parts) = Parts::new(key);
        batch.times.push(time);
        for &column in &self.times {
            batch.columns[column].push_long(Some(time));
        }
        if self.numbered == Numbered::Yes {
            let _ = parts.long();
        }
        for &(kind, column) in &self.dimensions {
            match kind {
                DimensionKind::Text => {
                    let id = parts.id();
                    if let Some(column) = column {
                        batch.columns[column].push_id(id);
                    }
                }
                DimensionKind::Long => {
                    let value = parts.long();
                    if let Some(column) = column {
                        batch.columns[column].push_long(value);
                    }
                }
                DimensionKind::Double => {
                    let value = parts.double();
                    if let Some(column) = column {
                        batch.columns[column].push_double(value);
                    }
                }
            }
        }
        for &(metric, column) in &self.cells {
            batch.columns[column].push_cell(self.layout.cell(metric, state));
        }
        if !self.sketches.is_empty() {
            let all: Vec<&[u8]> = self.layout.sketch_bytes(state).collect();
            for &(sketch, column) in &self.sketches {
                batch.columns[column].push_sketch(all[sketch]);
            }
        }
    }
}

impl FactBatch {
    /// Without facts, for the columns that a query reads.
    pub(crate) fn new(columns: &Columns<'_>) -> FactBatch {
        let new_column = |(_, form): &(Source, Form)| FactColumn::new(*form);
        FactBatch {
            times: Vec::with_capacity(BATCH_ROWS),
            columns: columns.read.iter().map(new_column).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    pub(crate) fn clear(&mut self) {
        self.times.clear();
        self.columns.iter_mut().for_each(FactColumn::clear);
    }
}

/// Reads the columns of a segment.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    /// Of each column that is read.
    columns: Vec<SegmentColumn>,
}

#[derive(Debug, Clone, Copy)]
enum SegmentColumn {
    Time,
    Dimension(usize),
    Metric(usize),
    /// The segment does not have it.
    Absent,
    /// It is made of others, once they are read.
    Made,
}

impl SegmentReader {
    pub(crate) fn new(columns: &Columns<'_>, segment: &Segment) -> SegmentReader {
        let find = |(source, _): &(Source, Form)| match *source {
            Source::Time => SegmentColumn::Time,
            Source::Virtual(_) => SegmentColumn::Made,
            Source::Metric(number) => SegmentColumn::Metric(number),
            Source::Dimension(number) => {
                let wanted = columns.dimension_at(number);
                match segment.dimension(&wanted.name) {
                    Some((at, kind)) if kind == wanted.kind => SegmentColumn::Dimension(at),
                    _ => SegmentColumn::Absent,
                }
            }
        };
        SegmentReader { columns: columns.read.iter().map(find).collect() }
    }

    /// The number of the segment's dimension that a column is read from.
    pub(crate) fn dimension(&self, column: usize) -> Option<usize> {
        match self.columns[column] {
            SegmentColumn::Dimension(at) => Some(at),
            _ => None,
        }
    }

    /// Reads a block into an empty batch.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt).
    pub(crate) fn read(
        &self,
        segment: &Segment,
        block: usize,
        batch: &mut FactBatch,
    ) -> Result<()> {
        segment.read_times(block, &mut batch.times)?;
        let rows = batch.times.len();
        for (from, into) in self.columns.iter().zip(&mut batch.columns) {
            match (*from, into) {
                (SegmentColumn::Time, FactColumn::Longs { values, present }) => {
                    values.extend_from_slice(&batch.times);
                    present.resize(rows, true);
                }
                (SegmentColumn::Absent, into) => into.fill_null(rows),
                (SegmentColumn::Made, _) => {}
                (SegmentColumn::Dimension(at), FactColumn::Ids(ids)) => {
                    segment.read_ids(at, block, ids)?;
                }
                (SegmentColumn::Dimension(at), FactColumn::Longs { values, present }) => {
                    segment.read_long_dimension(at, block, values, present)?;
                }
                (SegmentColumn::Dimension(at), FactColumn::Doubles { values, present }) => {
                    segment.read_double_dimension(at, block, values, present)?;
                }
                (SegmentColumn::Metric(at), FactColumn::Sketches { bytes, ends }) => {
                    segment.read_sketches(at, block, bytes, ends)?;
                }
                (SegmentColumn::Metric(at), into) => {
                    segment.read_cells(at, block, into.cells())?;
                }
                _ => unreachable!("{FORMS}"),
            }
        }
        Ok(())
    }
}

/// The words of a dimension of texts, where they lie.
#[derive(Debug)]
pub(crate) enum Words<'d> {
    /// Holds the lock of the dictionary.
    Live(EntriesRead<'d>),
    Segment(SegmentTexts<'d>),
    /// The facts do not have the dimension: all are null.
    None,
}

impl Words<'_> {
    /// How many numbers there are, null not counted.
    pub(crate) fn len(&self) -> usize {
        match self {
            Words::Live(entries) => entries.len(),
            Words::Segment(texts) => texts.len(),
            Words::None => 0,
        }
    }

    /// What a number stands for.
    #[inline]
    pub(crate) fn entry(&self, id: u32) -> Entry<'_> {
        match self {
            Words::Live(entries) => entries.entry(id),
            Words::Segment(texts) => texts.entry(id),
            Words::None => Entry::Null,
        }
    }

    /// The text of a number that is none of a list; `None` of null.
    pub(crate) fn text(&self, id: u32) -> Option<&str> {
        match self.entry(id) {
            Entry::Text(text) => Some(text),
            Entry::Null | Entry::List(_) => None,
        }
    }
}

/// The words of the columns of texts that a query reads; none of other columns.
#[derive(Debug)]
pub(crate) struct Texts<'d> {
    words: Vec<Option<Words<'d>>>,
}

impl<'d> Texts<'d> {
    /// Writers that meet new texts wait while live ones are held.
    pub(crate) fn new(words: Vec<Option<Words<'d>>>) -> Texts<'d> {
        Texts { words }
    }

    pub(crate) fn words(&self, column: usize) -> &Words<'d> {
        self.words[column].as_ref().expect("a column of texts has words")
    }

    /// What the number of a text stands for.
    pub(crate) fn value(&self, column: usize, id: u32) -> Value<'_> {
        let entries = self.words(column);
        let text = |id: u32| entries.text(id).map_or(Value::Null, Value::text);
        match entries.entry(id) {
            Entry::Null => Value::Null,
            Entry::Text(text) => Value::text(text),
            Entry::List(ids) => Value::List(ids.iter().map(text).collect()),
        }
    }

    /// A value of a fact.
    pub(crate) fn value_of(
        &self,
        batch: &FactBatch,
        column: usize,
        row: usize,
        layout: &StateLayout,
        source: Source,
    ) -> Value<'_> {
        match &batch.columns[column] {
            FactColumn::Ids(ids) => self.value(column, ids[row]),
            FactColumn::Longs { values, present }
            | FactColumn::TimedLongs { values, present, .. } => match present[row] {
                true => Value::Long(values[row]),
                false => Value::Null,
            },
            FactColumn::Doubles { values, present }
            | FactColumn::TimedDoubles { values, present, .. } => match present[row] {
                true => Value::Double(values[row]),
                false => Value::Null,
            },
            sketches @ FactColumn::Sketches { .. } => {
                let Source::Metric(metric) = source else { return Value::Null };
                let Place::Sketch(number) = layout.slots[metric].place else { return Value::Null };
                let kind = &layout.sketches[number];
                match sketches.sketch(row) {
                    [] => kind.shown().of_nothing(),
                    bytes => {
                        let sketch = kind.decode(bytes);
                        sketch.and_then(|sketch| sketch.value(&kind.shown())).unwrap_or(Value::Null)
                    }
                }
            }
        }
    }
}
