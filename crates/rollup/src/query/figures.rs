//! The figures of groups, as columns: a state for each group.

use sapwood_aggregate::{Function, Spread};

use super::batch::{FactBatch, FactColumn, Texts};
use super::columns::{Columns, Form, Source};
use super::{Aggregation, AggregationKind, SketchFigure};
use crate::error::{Error, Result};
use crate::live::state::{Cell, CellKind, double, long, sketch_kind, with_cell};
use crate::schema::{DimensionKind, Number};
use crate::sketch::{Reading, Sketch, SketchKind};
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
    Cell {
        kind: CellKind,
        input: Option<usize>,
    },
    Sketch {
        sketches: Sketches,
        reading: Reading,
    },
    /// Another reading of the sketches of the figure of this number.
    Shared {
        of: usize,
        reading: Reading,
    },
}

/// Sketches that grow with the facts of their groups.
#[derive(Debug, Clone, PartialEq)]
struct Sketches {
    kind: SketchKind,
    input: Option<usize>,
    /// Whether the column has sketches, and not values.
    is_state: bool,
}

/// The states of a figure, by group.
#[derive(Debug)]
pub(crate) enum FigureStates {
    Count(Vec<i64>),
    Cells {
        kind: CellKind,
        cells: Vec<u8>,
        set: Vec<bool>,
    },
    Sketches(Vec<Option<Sketch>>),
    /// Those of another figure.
    Shared,
}

impl Figure {
    /// Binds an aggregation; `others` are the figures before it.
    ///
    /// # Errors
    /// [`Error::Query`] if there is no such column, or if it is a sketch of another figure.
    pub(crate) fn new(
        aggregation: &Aggregation,
        columns: &mut Columns<'_>,
        filter: Option<usize>,
        others: &[Figure],
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
        let sketch = |(kind, reading): (SketchKind, Reading)| -> Result<FigureKind> {
            let is_state = matches!(found, Some((_, Form::Sketch)));
            let (kind, reading) = match is_state {
                true => of_metric(columns, field, kind, reading).map_err(|why| refused(&why))?,
                false => (kind, reading),
            };
            if !reads(&kind, &reading) {
                return Err(refused("its sketch has no such figure"));
            }
            // The numbers of the kind are within their ranges, or it says so.
            kind.sketch()?;
            let sketches = Sketches { kind, input: found.map(|(at, _)| at), is_state };
            let is_same = |other: &Figure| {
                other.filter == filter
                    && matches!(&other.kind, FigureKind::Sketch { sketches: of, .. } if *of == sketches)
            };
            Ok(match others.iter().position(is_same) {
                Some(of) => FigureKind::Shared { of, reading },
                None => FigureKind::Sketch { sketches, reading },
            })
        };
        let input = || field.into();
        let own =
            |kind: Function, reading: Function| (SketchKind::Own(kind), Reading::Own(reading));
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
                let function = Function::Distinct { input: input(), precision };
                sketch(own(function.clone(), function))?
            }
            AggregationKind::Quantile { share, accuracy } => {
                let function = |share| Function::Quantile { input: input(), share, accuracy };
                // Also the share is looked at.
                SketchKind::Own(function(share)).sketch()?;
                sketch(own(function(0.5), function(share)))?
            }
            AggregationKind::Variance { root } => {
                let variance = Function::Variance(input(), Spread::Population);
                let reading = match root {
                    false => variance.clone(),
                    true => Function::Deviation(input(), Spread::Population),
                };
                sketch(own(variance, reading))?
            }
            AggregationKind::Hll { lg_k, texts, figure } => {
                sketch((SketchKind::Hll { lg_k, texts }, figure.reading()))?
            }
            AggregationKind::Theta { lg_k, figure } => {
                sketch((SketchKind::Theta { lg_k }, figure.reading()))?
            }
            AggregationKind::Kll { k, figure } => {
                sketch((SketchKind::Kll { k }, figure.reading()))?
            }
        };
        Ok(Figure { name, kind, filter })
    }

    /// The number of the figure that has its states, if it is another one.
    pub(crate) fn shares(&self) -> Option<usize> {
        match self.kind {
            FigureKind::Shared { of, .. } => Some(of),
            _ => None,
        }
    }

    /// The size of the theta sketches that it is read from, if it is.
    pub(crate) fn theta_lg_k(&self) -> Option<u8> {
        match &self.kind {
            FigureKind::Sketch {
                sketches: Sketches { kind: SketchKind::Theta { lg_k }, .. },
                ..
            } => Some(*lg_k),
            _ => None,
        }
    }

    pub(crate) fn new_states(&self) -> FigureStates {
        match &self.kind {
            FigureKind::Count => FigureStates::Count(Vec::new()),
            FigureKind::Cell { kind, .. } => {
                FigureStates::Cells { kind: *kind, cells: Vec::new(), set: Vec::new() }
            }
            FigureKind::Sketch { .. } => FigureStates::Sketches(Vec::new()),
            FigureKind::Shared { .. } => FigureStates::Shared,
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
            (FigureKind::Cell { input: None, .. } | FigureKind::Shared { .. }, _) => true,
            (
                FigureKind::Cell { kind, input: Some(input) },
                FigureStates::Cells { cells, set, .. },
            ) => with_cell!(*kind, C => {
                fold_cells::<C>(*kind, cells, set, batch, texts, *input, pairs)
            }),
            (FigureKind::Sketch { sketches: of, .. }, FigureStates::Sketches(sketches)) => {
                let Sketches { kind, input, is_state } = of;
                match input {
                    None => {}
                    Some(at) if *is_state => {
                        fold_states(kind, sketches, &batch.columns[*at], pairs)?;
                    }
                    Some(at) => fold_values(kind, sketches, batch, texts, *at, pairs)?,
                }
                true
            }
            _ => unreachable!("`new_states` makes the states of each kind"),
        };
        if done { Ok(()) } else { Err(Error::Overflow { column: format!("`{}`", self.name) }) }
    }

    /// The figure of a group, by its own states, or those of the figure that it [shares](Self::shares).
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
            FigureStates::Sketches(sketches) => {
                let (FigureKind::Sketch { reading, .. } | FigureKind::Shared { reading, .. }) =
                    &self.kind
                else {
                    unreachable!("figures of other kinds have no sketches")
                };
                match &sketches[group] {
                    Some(sketch) => sketch.value(reading)?,
                    None => reading.of_nothing(),
                }
            }
            FigureStates::Shared => unreachable!("the states of the other figure are read"),
        })
    }
}

impl AggregationKind {
    /// What its figures are.
    pub(crate) fn value(self) -> DimensionKind {
        match self {
            AggregationKind::Count | AggregationKind::Distinct { .. } => DimensionKind::Long,
            AggregationKind::Sum(number)
            | AggregationKind::Min(number)
            | AggregationKind::Max(number)
            | AggregationKind::First(number)
            | AggregationKind::Last(number) => match number {
                Number::Long => DimensionKind::Long,
                Number::Double => DimensionKind::Double,
            },
            AggregationKind::Quantile { .. } | AggregationKind::Variance { .. } => {
                DimensionKind::Double
            }
            AggregationKind::Hll { figure, .. }
            | AggregationKind::Theta { figure, .. }
            | AggregationKind::Kll { figure, .. } => figure.value(),
        }
    }
}

impl SketchFigure {
    /// What it is.
    pub(crate) fn value(self) -> DimensionKind {
        match self {
            SketchFigure::Rounded | SketchFigure::Count => DimensionKind::Long,
            SketchFigure::Estimate | SketchFigure::Quantile { .. } => DimensionKind::Double,
            SketchFigure::Bytes => DimensionKind::Text,
        }
    }

    pub(crate) fn reading(self) -> Reading {
        match self {
            SketchFigure::Estimate => Reading::Estimate { rounded: false },
            SketchFigure::Rounded => Reading::Estimate { rounded: true },
            SketchFigure::Count => Reading::Count,
            SketchFigure::Quantile { share } => Reading::Quantile(share),
            SketchFigure::Bytes => Reading::Bytes,
        }
    }
}

/// Whether a sketch has a figure.
fn reads(kind: &SketchKind, reading: &Reading) -> bool {
    match (kind, reading) {
        (SketchKind::Own(_), Reading::Own(_)) => true,
        (SketchKind::Own(_), _) | (_, Reading::Own(_)) => false,
        (_, Reading::Bytes) => true,
        (SketchKind::Kll { .. }, Reading::Count) => true,
        (SketchKind::Kll { .. }, Reading::Quantile(share)) => (0.0..=1.0).contains(share),
        (SketchKind::Hll { .. } | SketchKind::Theta { .. }, Reading::Estimate { .. }) => true,
        _ => false,
    }
}

/// The sketch of a metric and its reading, if what is asked for can be made of its states.
fn of_metric(
    columns: &Columns<'_>,
    field: &str,
    wanted: SketchKind,
    reading: Reading,
) -> std::result::Result<(SketchKind, Reading), String> {
    let Some((Source::Metric(number), _)) = columns.find(field) else {
        return Ok((wanted, reading));
    };
    let kept = sketch_kind(columns.metric_at(number)).expect("it is a sketch");
    let (own, reading) = match (wanted, reading) {
        (SketchKind::Own(own), Reading::Own(reading)) => (own, reading),
        (wanted, reading) => {
            let is_same = std::mem::discriminant(&wanted) == std::mem::discriminant(&kept);
            return match (is_same, &wanted, &kept) {
                // Hashes of the one and of the other have nothing in common.
                (true, SketchKind::Hll { texts, .. }, SketchKind::Hll { texts: own, .. })
                    if texts != own =>
                {
                    Err(format!("`{field}` has hashes of texts of another `stringEncoding`"))
                }
                (true, ..) => Ok((kept, reading)),
                (false, ..) => Err(format!("`{field}` keeps another sketch: {}", kept.name())),
            };
        }
    };
    let kept = match kept {
        SketchKind::Own(kept) => kept,
        // What is asked for of ours can be said by Apache's, too.
        kept => {
            return match (&kept, reading) {
                (SketchKind::Hll { .. } | SketchKind::Theta { .. }, Function::Distinct { .. }) => {
                    Ok((kept, Reading::Estimate { rounded: true }))
                }
                (SketchKind::Kll { .. }, Function::Quantile { share, .. }) => {
                    Ok((kept, Reading::Quantile(share)))
                }
                (_, wanted) => Err(format!(
                    "`{field}` keeps {}, of which {wanted} cannot be made",
                    kept.name()
                )),
            };
        }
    };
    let reading = match (own, &kept, reading) {
        (Function::Distinct { .. }, Function::Distinct { .. }, _) => kept.clone(),
        (
            Function::Quantile { .. },
            Function::Quantile { accuracy, .. },
            Function::Quantile { input, share, .. },
        ) => Function::Quantile { input, share, accuracy: *accuracy },
        (Function::Variance(..), Function::Variance(..), reading) => reading,
        (_, kept, wanted) => {
            return Err(format!("`{field}` keeps {kept}, of which {wanted} cannot be made"));
        }
    };
    Ok((SketchKind::Own(kept), Reading::Own(reading)))
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
            FigureStates::Sketches(sketches) => sketches.resize_with(groups, || None),
            FigureStates::Shared => {}
        }
    }

    /// Merges the state of a group of other states into that of a group; false if the figure leaves its
    /// type.
    ///
    /// # Errors
    /// [`Error::Sketch`] if a counter of a sketch passes its range.
    pub(crate) fn merge(
        &mut self,
        figure: &Figure,
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
            (FigureStates::Sketches(sketches), FigureStates::Sketches(others)) => {
                let FigureKind::Sketch { sketches: Sketches { kind, .. }, .. } = &figure.kind
                else {
                    unreachable!("figures of other kinds have no sketches")
                };
                if let Some(other) = &others[other_group] {
                    let sketch = &mut sketches[group];
                    match sketch {
                        Some(sketch) => sketch.merge_from(other)?,
                        none => none.insert(kind.sketch()?).merge_from(other)?,
                    }
                }
            }
            (FigureStates::Shared, FigureStates::Shared) => {}
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
    let is_long = !kind.is_double();
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
        match C::BYTES {
            16 => self.each_of::<C, 16>(|row| {
                let mut timed = [0; 16];
                timed[..8].copy_from_slice(&time(row).to_le_bytes());
                timed[8..].copy_from_slice(&value(row)?);
                Some(timed)
            }),
            _ => self.each_of::<C, 8>(value),
        }
    }

    /// `BYTES` are those of a cell.
    #[inline]
    fn each_of<C: Cell, const BYTES: usize>(
        &mut self,
        from: impl Fn(usize) -> Option<[u8; BYTES]>,
    ) -> bool {
        let cells = self.cells.as_chunks_mut::<BYTES>().0;
        for &(row, group) in self.pairs {
            let group = group as usize;
            let Some(from) = from(row as usize) else { continue };
            let into = &mut cells[group];
            if std::mem::replace(&mut self.set[group], true) {
                if !C::merge(into, &from) {
                    return false;
                }
            } else {
                *into = from;
            }
        }
        true
    }
}

fn fold_states(
    kind: &SketchKind,
    sketches: &mut [Option<Sketch>],
    column: &FactColumn,
    pairs: &[(u32, u32)],
) -> Result<()> {
    for &(row, group) in pairs {
        let bytes = column.sketch(row as usize);
        if bytes.is_empty() {
            continue;
        }
        let state = kind.decode(bytes)?;
        match &mut sketches[group as usize] {
            Some(sketch) => sketch.merge(state)?,
            none => *none = Some(state),
        }
    }
    Ok(())
}

fn fold_values(
    kind: &SketchKind,
    sketches: &mut [Option<Sketch>],
    batch: &FactBatch,
    texts: &Texts<'_>,
    input: usize,
    pairs: &[(u32, u32)],
) -> Result<()> {
    let mut push = |group: u32, value: &Value<'_>| kind.push(&mut sketches[group as usize], value);
    for &(row, group) in pairs {
        let at = row as usize;
        match &batch.columns[input] {
            FactColumn::Ids(ids) => push(group, &texts.value(input, ids[at]))?,
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
