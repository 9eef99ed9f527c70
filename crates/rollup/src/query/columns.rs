//! The columns of facts that a query reads.

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

/// The columns that there are, by name, and those of them that a query reads, by number.
#[derive(Debug)]
pub(crate) struct Columns<'r> {
    dimensions: &'r [Dimension],
    metrics: &'r [Metric],
    layout: &'r StateLayout,
    /// Whether a column that is not there is one that has not come yet, and null.
    lenient: bool,
    /// What is read, in the order in which it was asked for.
    pub(crate) read: Vec<(Source, Form)>,
}

impl<'r> Columns<'r> {
    pub(crate) fn new(
        dimensions: &'r [Dimension],
        metrics: &'r [Metric],
        layout: &'r StateLayout,
        lenient: bool,
    ) -> Columns<'r> {
        Columns { dimensions, metrics, layout, lenient, read: Vec::new() }
    }

    /// A column by its name, if there is one.
    pub(crate) fn find(&self, name: &str) -> Option<(Source, Form)> {
        if name == TIME_COLUMN {
            return Some((Source::Time, Form::Long));
        }
        if let Some(at) = self.dimensions.iter().position(|known| known.name == name) {
            let form = match self.dimensions[at].kind {
                DimensionKind::Text => Form::Ids,
                DimensionKind::Long => Form::Long,
                DimensionKind::Double => Form::Double,
            };
            return Some((Source::Dimension(at), form));
        }
        let at = self.metrics.iter().position(|known| known.name == name)?;
        let form = match self.layout.slots[at].place {
            Place::Sketch(_) => Form::Sketch,
            Place::Cell(kind, _) => match kind {
                CellKind::SumLong | CellKind::MinLong | CellKind::MaxLong => Form::Long,
                CellKind::SumDouble | CellKind::MinDouble | CellKind::MaxDouble => Form::Double,
                CellKind::FirstLong | CellKind::LastLong => Form::TimedLong,
                CellKind::FirstDouble | CellKind::LastDouble => Form::TimedDouble,
            },
        };
        Some((Source::Metric(at), form))
    }

    /// The number under which a column is read. None of a column that has not come yet, where rows
    /// bring columns of their own: it is null.
    ///
    /// # Errors
    /// [`Error::Query`] if there is no such column.
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<(usize, Form)>> {
        let Some((source, form)) = self.find(name) else {
            return if self.lenient { Ok(None) } else { Err(self.unknown(name)) };
        };
        let known = self.read.iter().position(|(known, _)| *known == source);
        let at = known.unwrap_or_else(|| {
            self.read.push((source, form));
            self.read.len() - 1
        });
        Ok(Some((at, form)))
    }

    pub(crate) fn dimension_at(&self, number: usize) -> &'r Dimension {
        &self.dimensions[number]
    }

    pub(crate) fn metric_at(&self, number: usize) -> &'r Metric {
        &self.metrics[number]
    }

    /// All names: time, dimensions, metrics.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'r str> + use<'r> {
        let dimensions = self.dimensions.iter().map(|dimension| dimension.name.as_str());
        let metrics = self.metrics.iter().map(|metric| metric.name.as_str());
        std::iter::once(TIME_COLUMN).chain(dimensions).chain(metrics)
    }

    /// An error that tells which columns there are.
    fn unknown(&self, name: &str) -> Error {
        let known: Vec<_> = self.names().collect();
        Error::Query(format!("there is no column `{name}`; there are {}", known.join(", ")))
    }
}
