//! The columns of facts that a query reads.

use super::VirtualColumn;
use super::made::Made;
use crate::error::{Error, Result};
use crate::live::state::{CellKind, Place, StateLayout};
use crate::schema::{Dimension, DimensionKind, Metric, TIME_COLUMN};

/// Where a column of a fact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Time,
    /// The dimension of this number.
    Dimension(usize),
    /// The metric of this number.
    Metric(usize),
    /// The virtual column of this number.
    Virtual(usize),
}

/// How the values of a column are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Ids,
    Long,
    Double,
    /// With the time of each.
    TimedLong,
    TimedDouble,
    Sketch,
}

impl Form {
    /// That of a metric whose state is there.
    pub(crate) fn of_state(place: Place) -> Form {
        match place {
            Place::Sketch(_) => Form::Sketch,
            Place::Cell(kind, _) => match kind {
                CellKind::SumLong | CellKind::MinLong | CellKind::MaxLong => Form::Long,
                CellKind::SumDouble | CellKind::MinDouble | CellKind::MaxDouble => Form::Double,
                CellKind::FirstLong | CellKind::LastLong => Form::TimedLong,
                CellKind::FirstDouble | CellKind::LastDouble => Form::TimedDouble,
            },
        }
    }
}

/// The columns that there are, by name, and those of them that a query reads, by number.
#[derive(Debug)]
pub(crate) struct Columns<'r> {
    dimensions: &'r [Dimension],
    metrics: &'r [Metric],
    layout: &'r StateLayout,
    virtuals: &'r [VirtualColumn],
    /// Whether a column that is not there is one that has not come yet, and null.
    lenient: bool,
    /// What is read, in the order in which it was asked for.
    pub(crate) read: Vec<(Source, Form)>,
    /// Those of them that expressions make of columns before them.
    pub(crate) made: Vec<Made<'r>>,
}

impl<'r> Columns<'r> {
    pub(crate) fn new(
        dimensions: &'r [Dimension],
        metrics: &'r [Metric],
        layout: &'r StateLayout,
        virtuals: &'r [VirtualColumn],
        lenient: bool,
    ) -> Columns<'r> {
        let (read, made) = (Vec::new(), Vec::new());
        Columns { dimensions, metrics, layout, virtuals, lenient, read, made }
    }

    /// A column by its name, if there is one. A virtual one hides another of its name.
    pub(crate) fn find(&self, name: &str) -> Option<(Source, Form)> {
        self.find_before(name, self.virtuals.len())
    }

    /// As [`find`](Self::find), of the virtual columns among the first ones alone.
    fn find_before(&self, name: &str, virtuals: usize) -> Option<(Source, Form)> {
        let form = |kind: DimensionKind| match kind {
            DimensionKind::Text => Form::Ids,
            DimensionKind::Long => Form::Long,
            DimensionKind::Double => Form::Double,
        };
        if name == TIME_COLUMN {
            return Some((Source::Time, Form::Long));
        }
        if let Some(at) = self.virtuals[..virtuals].iter().position(|known| known.name == name) {
            return Some((Source::Virtual(at), form(self.virtuals[at].kind)));
        }
        if let Some(at) = self.dimensions.iter().position(|known| known.name == name) {
            return Some((Source::Dimension(at), form(self.dimensions[at].kind)));
        }
        let at = self.metrics.iter().position(|known| known.name == name)?;
        Some((Source::Metric(at), Form::of_state(self.layout.slots[at].place)))
    }

    /// What the values of a column are, if there is one: of a sketch, none of these.
    pub(crate) fn kind(&self, name: &str) -> Option<DimensionKind> {
        match self.find(name)?.1 {
            Form::Ids => Some(DimensionKind::Text),
            Form::Long | Form::TimedLong => Some(DimensionKind::Long),
            Form::Double | Form::TimedDouble => Some(DimensionKind::Double),
            Form::Sketch => None,
        }
    }

    /// The number under which a column is read. None of a column that has not come yet, where rows
    /// bring columns of their own: it is null.
    ///
    /// # Errors
    /// [`Error::Query`] if there is no such column.
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<(usize, Form)>> {
        self.read_before(name, self.virtuals.len())
    }

    fn read_before(&mut self, name: &str, virtuals: usize) -> Result<Option<(usize, Form)>> {
        let Some((source, form)) = self.find_before(name, virtuals) else {
            return if self.lenient { Ok(None) } else { Err(self.unknown(name)) };
        };
        if let Some(at) = self.read.iter().position(|(known, _)| *known == source) {
            return Ok(Some((at, form)));
        }
        if let Source::Virtual(number) = source {
            // What it is made of comes before it.
            let column = &self.virtuals[number];
            let mut inputs = Vec::new();
            for name in column.expression.columns() {
                if let Some((at, _)) = self.read_before(name, number)? {
                    inputs.push((name.to_owned(), at, self.read[at].0));
                }
            }
            self.made.push(Made::new(column, number, self.read.len(), inputs));
        }
        self.read.push((source, form));
        Ok(Some((self.read.len() - 1, form)))
    }

    /// The virtual column of a number, which is read.
    pub(crate) fn made_at(&self, number: usize) -> &Made<'r> {
        let made = self.made.iter().find(|made| made.number() == number);
        made.expect("what is read was made ready")
    }

    pub(crate) fn dimension_at(&self, number: usize) -> &'r Dimension {
        &self.dimensions[number]
    }

    pub(crate) fn metric_at(&self, number: usize) -> &'r Metric {
        &self.metrics[number]
    }

    /// All names: time, virtual columns, dimensions, metrics.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'r str> + use<'r> {
        let virtuals = self.virtuals.iter().map(|column| column.name.as_str());
        let dimensions = self.dimensions.iter().map(|dimension| dimension.name.as_str());
        let metrics = self.metrics.iter().map(|metric| metric.name.as_str());
        std::iter::once(TIME_COLUMN).chain(virtuals).chain(dimensions).chain(metrics)
    }

    /// An error that tells which columns there are.
    fn unknown(&self, name: &str) -> Error {
        let known: Vec<_> = self.names().collect();
        Error::Query(format!("there is no column `{name}`; there are {}", known.join(", ")))
    }
}
