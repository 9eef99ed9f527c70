//! From the rows of a batch to a state for each key.

use super::rows::Rows;
use crate::error::Result;
use crate::filter::Compiled;
use crate::input::batch::{Column, Nulls, Values, is_null};
use crate::live::state::{
    Cell, CellKind, Place, Slot, StateLayout, push_sketch, sketch_kind, with_cell,
};
use crate::report::Ingested;
use crate::rollup::Rollup;
use crate::schema::{Metric, MetricKind, SketchInput};
use crate::sketch::{Sketch, SketchKind};
use crate::value::{Value, canonical};

/// What the rows of a batch give to each metric.
pub(super) struct Inputs<'r> {
    rollup: &'r Rollup,
    rows: &'r Rows<'r>,
    inputs: Vec<Input<'r>>,
}

/// What the rows give to one metric.
struct Input<'r> {
    values: InputValues<'r>,
    /// Rows that count for it, where it has a filter.
    taken: Option<Vec<bool>>,
}

enum InputValues<'r> {
    /// No row has one.
    Nothing,
    /// Each row counts as one.
    Ones,
    Longs(&'r [i64], &'r Nulls),
    Doubles(&'r [f64], &'r Nulls),
    ReadLongs(Vec<Option<i64>>),
    ReadDoubles(Vec<Option<f64>>),
    /// For sketches, whatever it is.
    Column(&'r Column),
    /// Sketches that the rows bring, by row.
    Sketches(Vec<Option<Sketch>>),
}

/// The states of the keys of a batch.
#[derive(Debug)]
pub(super) struct States {
    /// The cells, so many bytes a key.
    cells: Vec<u8>,
    cell_bytes: usize,
    /// So many a key.
    sketches: Vec<Option<Sketch>>,
    /// Keys whose figures leave their types within the batch, if there is any.
    overflowed: Vec<bool>,
    /// Cells and sketches of each key, where there are sketches.
    encoded: Vec<u8>,
    ends: Vec<usize>,
}

impl<'r> Inputs<'r> {
    /// Reads the columns of the metrics. Values that cannot be read are null, and told.
    pub(super) fn new(rollup: &'r Rollup, rows: &'r Rows<'r>, told: &mut Ingested) -> Inputs<'r> {
        let mut inputs = Vec::with_capacity(rollup.schema().metrics.len());
        for (number, metric) in rollup.schema().metrics.iter().enumerate() {
            let Place::Cell(kind, _) = rollup.layout().slots[number].place else {
                let field = metric.field.as_deref().unwrap_or_default();
                let values = match (rows.find(field), input_of(metric)) {
                    (None, _) => InputValues::Nothing,
                    (Some(column), SketchInput::Values) => InputValues::Column(column),
                    (Some(column), SketchInput::Sketches) => {
                        sketches(rows, field, column, metric, told)
                    }
                };
                inputs.push(Input { values, taken: taken(rollup.metric_filter(number), rows) });
                continue;
            };
            let values = match &metric.field {
                None => InputValues::Ones,
                Some(field) => match rows.find(field) {
                    None => InputValues::Nothing,
                    Some(column) => numbers(rows, field, column, kind, told),
                },
            };
            inputs.push(Input { values, taken: taken(rollup.metric_filter(number), rows) });
        }
        let inputs = Inputs { rollup, rows, inputs };
        inputs.tell_refused_by_sketches(told);
        inputs
    }

    /// Whether a row has a value that could not be read.
    pub(super) fn has_error(&self, row: u32) -> bool {
        self.rows.has_error(row as usize)
    }

    /// What a sketch of numbers cannot take is told.
    fn tell_refused_by_sketches(&self, told: &mut Ingested) {
        for (metric, input) in self.rollup.schema().metrics.iter().zip(&self.inputs) {
            let InputValues::Column(column) = &input.values else { continue };
            if !sketch_kind(metric).is_some_and(|kind| kind.takes_numbers()) {
                continue;
            }
            let field = metric.field.as_deref().unwrap_or_default();
            for &row in self.rows.kept() {
                let value = column.value(row as usize);
                if value.to_double().is_err() {
                    self.rows.error(row as usize, field, told, || {
                        format!("`{value}` is no number of its type")
                    });
                }
            }
        }
    }

    /// Folds rows into so many states; each row comes with the number of its state.
    pub(super) fn fold(&self, pairs: &[(u32, u32)], count: usize) -> States {
        let layout = &**self.rollup.layout();
        let mut states = States {
            cells: vec![0; count * layout.fixed_bytes],
            cell_bytes: layout.fixed_bytes,
            sketches: Vec::new(),
            overflowed: Vec::new(),
            encoded: Vec::new(),
            ends: Vec::new(),
        };
        states.sketches.resize_with(count * layout.sketches.len(), || None);
        for ((slot, input), metric) in
            layout.slots.iter().zip(&self.inputs).zip(&self.rollup.schema().metrics)
        {
            let is_taken = |row: usize| input.taken.as_ref().is_none_or(|taken| taken[row]);
            if metric.kind == MetricKind::Count {
                // A count of no rows is 0, and not null.
                states.cells.chunks_mut(layout.fixed_bytes).for_each(|cells| slot.set(cells));
            }
            match slot.place {
                Place::Cell(kind, at) => {
                    with_cell!(kind, C => self.fold_cells::<C>(&mut states, slot, at, input, pairs));
                }
                Place::Sketch(number) => {
                    let kind = &layout.sketches[number];
                    for &(row, state) in pairs {
                        let row = row as usize;
                        if !is_taken(row) {
                            continue;
                        }
                        let at = state as usize * layout.sketches.len() + number;
                        let sketch = &mut states.sketches[at];
                        let done = match &input.values {
                            InputValues::Column(column) => kind.push(sketch, &column.value(row)),
                            InputValues::Sketches(brought) => merge(kind, sketch, &brought[row]),
                            _ => break,
                        };
                        // The values were looked at: a counter of a sketch that was brought passes its range.
                        if done.is_err() {
                            states.set_overflowed(state);
                        }
                    }
                }
            }
        }
        states
    }

    fn fold_cells<C: Cell>(
        &self,
        states: &mut States,
        slot: &Slot,
        at: usize,
        input: &Input<'_>,
        pairs: &[(u32, u32)],
    ) {
        match &input.values {
            InputValues::Nothing | InputValues::Column(_) | InputValues::Sketches(_) => {}
            InputValues::Ones => {
                self.fold_each::<C>(states, slot, at, input, pairs, |_| Some(1_i64.to_le_bytes()));
            }
            InputValues::Longs(values, nulls) => {
                self.fold_each::<C>(states, slot, at, input, pairs, |row| {
                    (!is_null(nulls, row)).then(|| values[row].to_le_bytes())
                });
            }
            InputValues::Doubles(values, nulls) => {
                self.fold_each::<C>(states, slot, at, input, pairs, |row| {
                    (!is_null(nulls, row)).then(|| canonical(values[row]).to_le_bytes())
                });
            }
            InputValues::ReadLongs(values) => {
                self.fold_each::<C>(states, slot, at, input, pairs, |row| {
                    values[row].map(i64::to_le_bytes)
                });
            }
            InputValues::ReadDoubles(values) => {
                self.fold_each::<C>(states, slot, at, input, pairs, |row| {
                    values[row].map(|value| canonical(value).to_le_bytes())
                });
            }
        }
    }

    #[inline]
    fn fold_each<C: Cell>(
        &self,
        states: &mut States,
        slot: &Slot,
        at: usize,
        input: &Input<'_>,
        pairs: &[(u32, u32)],
        value: impl Fn(usize) -> Option<[u8; 8]>,
    ) {
        for &(row, state) in pairs {
            let row = row as usize;
            if input.taken.as_ref().is_some_and(|taken| !taken[row]) {
                continue;
            }
            if let Some(value) = value(row) {
                let time = if C::BYTES == 16 { self.rows.time(row) } else { 0 };
                states.merge::<C>(slot, at, state, time, value);
            }
        }
    }
}

/// A column as the numbers that a cell takes.
fn numbers<'r>(
    rows: &'r Rows<'r>,
    field: &str,
    column: &'r Column,
    kind: CellKind,
    told: &mut Ingested,
) -> InputValues<'r> {
    let is_double = matches!(
        kind,
        CellKind::SumDouble
            | CellKind::MinDouble
            | CellKind::MaxDouble
            | CellKind::FirstDouble
            | CellKind::LastDouble
    );
    match (&column.0, is_double) {
        (Values::Longs { values, nulls }, false) => InputValues::Longs(values, nulls),
        (Values::Doubles { values, nulls }, true)
            if values.iter().all(|value| value.is_finite()) =>
        {
            InputValues::Doubles(values, nulls)
        }
        (_, false) => {
            InputValues::ReadLongs(rows.numbers(field, column, |value| value.to_long(), told))
        }
        (_, true) => {
            InputValues::ReadDoubles(rows.numbers(field, column, |value| value.to_double(), told))
        }
    }
}

fn taken(filter: Option<&Compiled>, rows: &Rows<'_>) -> Option<Vec<bool>> {
    let filter = filter?;
    let mut taken = Vec::new();
    for &row in rows.kept() {
        let row = row as usize;
        taken.resize(row + 1, false);
        taken[row] = filter.matches(&|name| rows.value(name, row));
    }
    Some(taken)
}

fn input_of(metric: &Metric) -> SketchInput {
    match metric.kind {
        MetricKind::Hll { input, .. }
        | MetricKind::Theta { input, .. }
        | MetricKind::Kll { input, .. } => input,
        _ => SketchInput::Values,
    }
}

/// The sketches that rows bring. One that cannot be read is null, and told.
fn sketches<'r>(
    rows: &'r Rows<'r>,
    field: &str,
    column: &'r Column,
    metric: &Metric,
    told: &mut Ingested,
) -> InputValues<'r> {
    let kind = sketch_kind(metric).expect("it has the place of one");
    let mut brought = Vec::new();
    for &row in rows.kept() {
        let row = row as usize;
        brought.resize_with(row + 1, || None);
        brought[row] = match column.value(row) {
            Value::Null => None,
            Value::Text(text) => match kind.decode_text(&text) {
                Ok(sketch) => Some(sketch),
                Err(error) => {
                    rows.error(row, field, told, || error.to_string());
                    None
                }
            },
            _ => {
                rows.error(row, field, told, || "it is no sketch: its bytes in base64".to_owned());
                None
            }
        };
    }
    InputValues::Sketches(brought)
}

/// Merges a sketch into another, which is made for the first one.
fn merge(kind: &SketchKind, into: &mut Option<Sketch>, from: &Option<Sketch>) -> Result<()> {
    let Some(from) = from else { return Ok(()) };
    match into {
        Some(sketch) => sketch.merge_from(from),
        none => none.insert(kind.sketch()?).merge_from(from),
    }
}

impl States {
    #[inline]
    fn merge<C: Cell>(&mut self, slot: &Slot, at: usize, state: u32, time: i64, value: [u8; 8]) {
        let start = state as usize * self.cell_bytes;
        let cells = &mut self.cells[start..start + self.cell_bytes];
        let mut from = [0; 16];
        let from = match C::BYTES {
            16 => {
                from[..8].copy_from_slice(&time.to_le_bytes());
                from[8..].copy_from_slice(&value);
                &from[..]
            }
            _ => &value[..],
        };
        if slot.is_set(cells) {
            if !C::merge(&mut cells[at..at + C::BYTES], from) {
                self.set_overflowed(state);
            }
        } else {
            slot.set(cells);
            cells[at..at + C::BYTES].copy_from_slice(from);
        }
    }

    #[cold]
    fn set_overflowed(&mut self, state: u32) {
        let count = self.cells.len() / self.cell_bytes;
        self.overflowed.resize(count, false);
        self.overflowed[state as usize] = true;
    }

    pub(super) fn any_overflowed(&self) -> bool {
        !self.overflowed.is_empty()
    }

    /// Whether a figure of a key leaves its type within the batch.
    pub(super) fn is_overflowed(&self, number: u32) -> bool {
        self.overflowed.get(number as usize).is_some_and(|overflowed| *overflowed)
    }

    pub(super) fn overflowed(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.overflowed.len() as u32).filter(|&number| self.is_overflowed(number))
    }

    /// Makes the bytes of all states.
    pub(super) fn encode(&mut self, layout: &StateLayout) {
        let sketches = layout.sketches.len();
        if sketches == 0 {
            return;
        }
        for (number, of_key) in self.sketches.chunks(sketches).enumerate() {
            let start = number * self.cell_bytes;
            self.encoded.extend_from_slice(&self.cells[start..start + self.cell_bytes]);
            for sketch in of_key {
                push_sketch(&mut self.encoded, |out| {
                    if let Some(sketch) = sketch {
                        sketch.encode(out);
                    }
                });
            }
            self.ends.push(self.encoded.len());
        }
        self.sketches = Vec::new();
    }

    /// The bytes of a state.
    pub(super) fn get(&self, number: usize) -> &[u8] {
        if self.ends.is_empty() {
            let start = number * self.cell_bytes;
            return &self.cells[start..start + self.cell_bytes];
        }
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.encoded[start..self.ends[number]]
    }
}
