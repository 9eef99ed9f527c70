//! The figures of groups, as columns: a state for each group.

use sapwood_aggregate::{Accumulator, Function, Spread};

use super::batch::{FactBatch, FactColumn, Texts, figure_of_nothing, from_cell};
use super::columns::{Columns, Form, Source};
use super::{Aggregation, AggregationKind};
use crate::error::{Error, Result};
use crate::live::state::{Cell, CellKind, double, long, sketch_of, with_cell};
use crate::schema::Number;
use crate::value::{Value, long_of};

/// A figure that is asked for, bound to the columns that are read.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) name: String,
    kind: FigureKind,
    /// Which of the filters of figures says what counts.
    pub(crate) filter: Option<usize>,
}

#[derive(Debug, Clone)]
enum FigureKind {
    Count,
    Cell { kind: CellKind, input: Option<usize> },
    Sketch { function: Function, input: Option<usize>, is_state: bool, numbers: bool },
}

/// The states of a figure, by group.
#[derive(Debug)]
pub(crate) enum FigureStates {
    Count(Vec<i64>),
    Cells { kind: CellKind, cells: Vec<u8>, set: Vec<bool> },
    Sketches { function: Function, sketches: Vec<Option<Accumulator>> },
}

impl Figure {
    /// Binds an aggregation.
    ///
    /// # Errors
    /// [`Error::Query`] if there is no such column, or if it is a sketch of another figure.
    pub(crate) fn new(
        aggregation: &Aggregation,
        columns: &mut Columns<'_>,
        filter: Option<usize>,
    ) -> Result<Figure> {
        let name = aggregation.name.clone();
        let refused = |why: &str| Error::Query(format!("`{name}`: {why}"));
        let found = match &aggregation.field {
            Some(field) => columns.read(field)?,
            None if aggregation.kind == AggregationKind::Count => None,
            None => return Err(refused("it needs a `fieldName`")),
        };
        let field = aggregation.field.as_deref().unwrap_or_default();
        let cell = |kind: CellKind| match found {
            Some((_, Form::Sketch)) => {
                Err(refused(&format!("`{field}` is a sketch, and no number")))
            }
            found => Ok(FigureKind::Cell { kind, input: found.map(|(at, _)| at) }),
        };
        let sketch = |function: Function| -> Result<FigureKind> {
            let is_state = matches!(found, Some((_, Form::Sketch)));
            let numbers = !matches!(function, Function::Distinct { .. });
            let function = match is_state {
                true => of_metric(columns, field, function).map_err(|why| refused(&why))?,
                false => function,
            };
            // The numbers of the function are within their ranges, or it says so.
            Accumulator::new(function.clone())?;
            let input = found.map(|(at, _)| at);
            Ok(FigureKind::Sketch { function, input, is_state, numbers })
        };
        let input = || field.into();
        let kind = match aggregation.kind {
            AggregationKind::Count => FigureKind::Count,
            AggregationKind::Sum(Number::Long) => cell(CellKind::SumLong)?,
            AggregationKind::Sum(Number::Double) => cell(CellKind::SumDouble)?,
            AggregationKind::Min(Number::Long) => cell(CellKind::MinLong)?,
            AggregationKind::Min(Number::Double) => cell(CellKind::MinDouble)?,
            AggregationKind::Max(Number::Long) => cell(CellKind::MaxLong)?,
            AggregationKind::Max(Number::Double) => cell(CellKind::MaxDouble)?,
            AggregationKind::First(Number::Long) => cell(CellKind::FirstLong)?,
            AggregationKind::First(Number::Double) => cell(CellKind::FirstDouble)?,
            AggregationKind::Last(Number::Long) => cell(CellKind::LastLong)?,
            AggregationKind::Last(Number::Double) => cell(CellKind::LastDouble)?,
            AggregationKind::Distinct { precision } => {
                sketch(Function::Distinct { input: input(), precision })?
            }
            AggregationKind::Quantile { share, accuracy } => {
                sketch(Function::Quantile { input: input(), share, accuracy })?
            }
            AggregationKind::Variance { root: false } => {
                sketch(Function::Variance(input(), Spread::Population))?
            }
            AggregationKind::Variance { root: true } => {
                sketch(Function::Deviation(input(), Spread::Population))?
            }
        };
        Ok(Figure { name, kind, filter })
    }

    pub(crate) fn new_states(&self) -> FigureStates {
        match &self.kind {
            FigureKind::Count => FigureStates::Count(Vec::new()),
            FigureKind::Cell { kind, .. } => {
                FigureStates::Cells { kind: *kind, cells: Vec::new(), set: Vec::new() }
            }
            FigureKind::Sketch { function, .. } => {
                FigureStates::Sketches { function: function.clone(), sketches: Vec::new() }
            }
        }
    }

    /// Folds facts into the states of their groups.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(crate) fn fold(
        &self,
        states: &mut FigureStates,
        batch: &FactBatch,
        texts: &Texts<'_>,
        pairs: &[(u32, u32)],
    ) -> Result<()> {
        let done = match (&self.kind, states) {
            (FigureKind::Count, FigureStates::Count(counts)) => {
                pairs.iter().for_each(|&(_, group)| counts[group as usize] += 1);
                true
            }
            (FigureKind::Cell { input: None, .. }, _)
            | (FigureKind::Sketch { input: None, .. }, _) => true,
            (
                FigureKind::Cell { kind, input: Some(input) },
                FigureStates::Cells { cells, set, .. },
            ) => with_cell!(*kind, C => {
                fold_cells::<C>(*kind, cells, set, batch, texts, *input, pairs)
            }),
            (
                FigureKind::Sketch { function, input: Some(input), is_state, numbers },
                FigureStates::Sketches { sketches, .. },
            ) => {
                if *is_state {
                    fold_states(function, sketches, &batch.columns[*input], pairs)?;
                } else {
                    fold_values(function, sketches, batch, texts, *input, *numbers, pairs)?;
                }
                true
            }
            _ => unreachable!("`new_states` makes the states of each kind"),
        };
        if done { Ok(()) } else { Err(Error::Overflow { column: format!("`{}`", self.name) }) }
    }

    /// The figure of a group.
    ///
    /// # Errors
    /// [`Error::Sketch`] if it leaves its type.
    pub(crate) fn value(&self, states: &FigureStates, group: usize) -> Result<Value<'static>> {
        Ok(match states {
            FigureStates::Count(counts) => Value::Long(counts[group]),
            FigureStates::Cells { set, .. } if !set[group] => Value::Null,
            FigureStates::Cells { kind, cells, .. } => {
                let cell = &cells[group * kind.bytes()..];
                match kind {
                    CellKind::SumLong | CellKind::MinLong | CellKind::MaxLong => {
                        Value::Long(long(cell))
                    }
                    CellKind::SumDouble | CellKind::MinDouble | CellKind::MaxDouble => {
                        Value::Double(double(cell))
                    }
                    CellKind::FirstLong | CellKind::LastLong => Value::Long(long(&cell[8..])),
                    CellKind::FirstDouble | CellKind::LastDouble => {
                        Value::Double(double(&cell[8..]))
                    }
                }
            }
            FigureStates::Sketches { function, sketches } => match &sketches[group] {
                Some(sketch) => from_cell(&sketch.cell_as(function)?),
                None => figure_of_nothing(function),
            },
        })
    }
}

/// The function of a metric, if what is asked for can be made of its states.
fn of_metric(
    columns: &Columns<'_>,
    field: &str,
    wanted: Function,
) -> std::result::Result<Function, String> {
    let Some((Source::Metric(number), _)) = columns.find(field) else {
        return Ok(wanted);
    };
    let metric = columns.metric_at(number);
    let kept = crate::live::state::sketch_function(metric).expect("it is a sketch");
    match (wanted, kept) {
        (Function::Distinct { .. }, kept @ Function::Distinct { .. }) => Ok(kept),
        (Function::Quantile { input, share, .. }, Function::Quantile { accuracy, .. }) => {
            Ok(Function::Quantile { input, share, accuracy })
        }
        (wanted @ (Function::Variance(..) | Function::Deviation(..)), Function::Variance(..)) => {
            Ok(wanted)
        }
        (wanted, kept) => Err(format!("`{field}` keeps {kept}, of which {wanted} cannot be made")),
    }
}

impl FigureStates {
    /// Makes states for so many groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        match self {
            FigureStates::Count(counts) => counts.resize(groups, 0),
            FigureStates::Cells { kind, cells, set } => {
                cells.resize(groups * kind.bytes(), 0);
                set.resize(groups, false);
            }
            FigureStates::Sketches { sketches, .. } => sketches.resize_with(groups, || None),
        }
    }

    /// Merges the state of a group of other states into that of a group; false if the figure leaves its
    /// type.
    ///
    /// # Errors
    /// [`Error::Sketch`] if a counter of a sketch passes its range.
    pub(crate) fn merge(
        &mut self,
        group: usize,
        other: &FigureStates,
        other_group: usize,
    ) -> Result<bool> {
        match (self, other) {
            (FigureStates::Count(counts), FigureStates::Count(others)) => {
                counts[group] += others[other_group];
            }
            (
                FigureStates::Cells { kind, cells, set },
                FigureStates::Cells { cells: others, set: others_set, .. },
            ) => {
                if !others_set[other_group] {
                    return Ok(true);
                }
                let bytes = kind.bytes();
                let from = &others[other_group * bytes..][..bytes];
                let into = &mut cells[group * bytes..][..bytes];
                if std::mem::replace(&mut set[group], true) {
                    return Ok(kind.merge(into, from));
                }
                into.copy_from_slice(from);
            }
            (
                FigureStates::Sketches { sketches, .. },
                FigureStates::Sketches { sketches: others, .. },
            ) => {
                if let Some(other) = &others[other_group] {
                    match &mut sketches[group] {
                        Some(sketch) => sketch.merge(other.clone())?,
                        none => *none = Some(other.clone()),
                    }
                }
            }
            _ => unreachable!("the states of one figure are of one kind"),
        }
        Ok(true)
    }
}

/// Folds a column into cells; false if a figure leaves its type.
fn fold_cells<C: Cell>(
    kind: CellKind,
    cells: &mut [u8],
    set: &mut [bool],
    batch: &FactBatch,
    texts: &Texts<'_>,
    input: usize,
    pairs: &[(u32, u32)],
) -> bool {
    let is_long = matches!(
        kind,
        CellKind::SumLong
            | CellKind::MinLong
            | CellKind::MaxLong
            | CellKind::FirstLong
            | CellKind::LastLong
    );
    let of_long = |value: i64| match is_long {
        true => Some(value.to_le_bytes()),
        false => Some((value as f64).to_le_bytes()),
    };
    let of_double = |value: f64| match is_long {
        true => long_of(value).map(i64::to_le_bytes),
        false => Some(value.to_le_bytes()),
    };
    let of_text = |value: Value<'_>| match is_long {
        true => value.to_long().ok().flatten().map(i64::to_le_bytes),
        false => value.to_double().ok().flatten().map(f64::to_le_bytes),
    };
    let mut fold = Fold { cells, set, pairs };
    let fact_time = |row: usize| batch.times[row];
    match &batch.columns[input] {
        FactColumn::Longs { values, present } => {
            fold.each::<C>(fact_time, |row| if present[row] { of_long(values[row]) } else { None })
        }
        FactColumn::Doubles { values, present } => fold
            .each::<C>(fact_time, |row| if present[row] { of_double(values[row]) } else { None }),
        FactColumn::TimedLongs { times, values, present } => fold.each::<C>(
            |row| times[row],
            |row| if present[row] { of_long(values[row]) } else { None },
        ),
        FactColumn::TimedDoubles { times, values, present } => fold.each::<C>(
            |row| times[row],
            |row| if present[row] { of_double(values[row]) } else { None },
        ),
        FactColumn::Ids(ids) => {
            fold.each::<C>(fact_time, |row| of_text(texts.value(input, ids[row])))
        }
        FactColumn::Sketches { .. } => true,
    }
}

struct Fold<'f> {
    cells: &'f mut [u8],
    set: &'f mut [bool],
    pairs: &'f [(u32, u32)],
}

impl Fold<'_> {
    #[inline]
    fn each<C: Cell>(
        &mut self,
        time: impl Fn(usize) -> i64,
        value: impl Fn(usize) -> Option<[u8; 8]>,
    ) -> bool {
        for &(row, group) in self.pairs {
            let (row, group) = (row as usize, group as usize);
            let Some(value) = value(row) else { continue };
            let mut timed = [0; 16];
            let from = if C::BYTES == 16 {
                timed[..8].copy_from_slice(&time(row).to_le_bytes());
                timed[8..].copy_from_slice(&value);
                &timed[..]
            } else {
                &value[..]
            };
            let into = &mut self.cells[group * C::BYTES..][..C::BYTES];
            if std::mem::replace(&mut self.set[group], true) {
                if !C::merge(into, from) {
                    return false;
                }
            } else {
                into.copy_from_slice(from);
            }
        }
        true
    }
}

fn fold_states(
    function: &Function,
    sketches: &mut [Option<Accumulator>],
    column: &FactColumn,
    pairs: &[(u32, u32)],
) -> Result<()> {
    for &(row, group) in pairs {
        let bytes = column.sketch(row as usize);
        if bytes.is_empty() {
            continue;
        }
        let state = sketch_of(function, bytes)?;
        match &mut sketches[group as usize] {
            Some(sketch) => sketch.merge(state)?,
            none => *none = Some(state),
        }
    }
    Ok(())
}

fn fold_values(
    function: &Function,
    sketches: &mut [Option<Accumulator>],
    batch: &FactBatch,
    texts: &Texts<'_>,
    input: usize,
    numbers: bool,
    pairs: &[(u32, u32)],
) -> Result<()> {
    let mut push = |group: u32, value: &Value<'_>| -> Result<()> {
        let number = match (numbers, value) {
            (true, Value::Text(_)) => value.to_double().ok().flatten().map(Value::Double),
            (true, Value::List(_)) => None,
            _ => Some(value.borrowed()),
        };
        let Some(number) = number else { return Ok(()) };
        let Some(value) = number.to_aggregate() else { return Ok(()) };
        let sketch = &mut sketches[group as usize];
        let sketch = match sketch {
            Some(sketch) => sketch,
            none => none.insert(Accumulator::new(function.clone())?),
        };
        Ok(sketch.push(&value)?)
    };
    for &(row, group) in pairs {
        let at = row as usize;
        match &batch.columns[input] {
            FactColumn::Ids(ids) => match texts.value(input, ids[at]) {
                Value::List(values) if !numbers => {
                    values.iter().try_for_each(|value| push(group, value))?;
                }
                value => push(group, &value)?,
            },
            FactColumn::Longs { values, present }
            | FactColumn::TimedLongs { values, present, .. } => {
                if present[at] {
                    push(group, &Value::Long(values[at]))?;
                }
            }
            FactColumn::Doubles { values, present }
            | FactColumn::TimedDoubles { values, present, .. } => {
                if present[at] {
                    push(group, &Value::Double(values[at]))?;
                }
            }
            FactColumn::Sketches { .. } => {}
        }
    }
    Ok(())
}
