//! Facts as rows of typed columns, for readers that have questions of their own.

use std::ops::ControlFlow;
use std::sync::Arc;

use sapwood_chunkmap::Direction;

use crate::contents::numbered;
use crate::error::Result;
use crate::live::state::Place as StatePlace;
use crate::query::batch::{FactBatch, FactColumn, Texts};
use crate::query::columns::{Form, Source};
use crate::query::ordered::each_run;
use crate::query::plan::Plan;
use crate::query::source::{BoundPlace, Place, places};
use crate::query::{Query, ScanOrder};
use crate::rollup::Rollup;
use crate::schema::{Dimension, DimensionKind, MetricKind, TIME_COLUMN};
use crate::sketch::{Reading, SketchKind};
use crate::time::interval::Interval;
use crate::value::Value;

/// A column of facts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FactField {
    /// Its name: `__time`, that of a dimension, or that of a metric.
    pub name: String,
    /// What its values are.
    pub kind: FactKind,
}

/// What the values of a column of facts are, unless they are null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FactKind {
    /// Milliseconds since 1970; never null.
    Time,
    /// [`Value::Text`], or [`Value::List`] of them.
    Text,
    /// [`Value::Long`].
    Long,
    /// [`Value::Double`].
    Double,
}

/// The facts of a roll-up as they are at one moment: see [`Rollup::facts`].
pub struct FactRows<'r> {
    rollup: &'r Rollup,
    places: Vec<Place>,
    dimensions: Vec<Dimension>,
}

/// A fact.
pub struct FactRow<'a> {
    plan: &'a Plan<'a>,
    /// For each column that is asked for the one of the batch, if there is one.
    columns: &'a [Option<usize>],
    batch: &'a FactBatch,
    texts: &'a Texts<'a>,
    row: usize,
}

impl Rollup {
    /// The columns of the facts: the time, the dimensions as far as they are known, and the metrics. A metric that is
    /// a sketch is the figure that a scan shows, or its estimate, or its median.
    pub fn fact_fields(&self) -> Vec<FactField> {
        let time = FactField { name: TIME_COLUMN.to_owned(), kind: FactKind::Time };
        let dimensions = self.dimensions().into_iter().map(|dimension| FactField {
            kind: match dimension.kind {
                DimensionKind::Text => FactKind::Text,
                DimensionKind::Long => FactKind::Long,
                DimensionKind::Double => FactKind::Double,
            },
            name: dimension.name,
        });
        let metrics = self.schema().metrics().iter().zip(&self.layout().slots);
        let metrics = metrics.map(|(metric, slot)| FactField {
            kind: match (Form::of_state(slot.place), &metric.kind) {
                (Form::Long | Form::TimedLong | Form::Ids, _) => FactKind::Long,
                (Form::Sketch, MetricKind::Distinct { .. }) => FactKind::Long,
                (Form::Double | Form::TimedDouble | Form::Sketch, _) => FactKind::Double,
            },
            name: metric.name.clone(),
        });
        std::iter::once(time).chain(dimensions).chain(metrics).collect()
    }

    /// All facts as they are now, live ones too. Facts of the same time and dimensions in several segments, or in one
    /// and among live facts, are several, as in a scan.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::sync::Arc;
    /// use sapwood::rollup::{Dimension, Interval, Metric, Rollup, RowBatch, Schema, Writer};
    ///
    /// let schema = Schema::new("time").dimension(Dimension::text("page")).metric(Metric::count("edits"));
    /// let rollup = Arc::new(Rollup::new(schema)?);
    /// let rows = br#"{"time": 7, "page": "Oak"}
    ///     {"time": 7, "page": "Oak"}"#;
    /// Writer::new(&rollup).ingest(&RowBatch::from_json_lines(rows).0)?;
    ///
    /// let (facts, mut seen) = (rollup.facts(), Vec::new());
    /// for part in 0..facts.parts() {
    ///     let _ = facts.read(part, &["page", "edits"], Interval::ETERNITY, &mut |fact| {
    ///         seen.push(format!("{:?} {:?}", fact.value(0), fact.value(1)));
    ///         ControlFlow::Continue(())
    ///     })?;
    /// }
    /// assert_eq!(seen, [r#"Ok(Text("Oak")) Ok(Long(2))"#]);
    /// # Ok::<(), sapwood::rollup::Error>(())
    /// ```
    pub fn facts(&self) -> FactRows<'_> {
        let contents = self.contents();
        let live = Arc::clone(&contents.live);
        let places = places(contents, &[Interval::ETERNITY]);
        // After the snapshots: no fact of them has a dimension that came later.
        let dimensions = live.columns().iter().map(|column| column.dimension()).collect();
        FactRows { rollup: self, places, dimensions }
    }
}

impl FactRows<'_> {
    /// The parts that they lie in, each of which one thread reads.
    pub fn parts(&self) -> usize {
        self.places.len()
    }

    /// Shows the facts of a part whose times are in an interval, in their order; the columns are those of these names, and
    /// of one that no fact has the values are null.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::Corrupt`](crate::Error::Corrupt), and
    /// [`Error::Query`](crate::Error::Query) for a name that no column has.
    ///
    /// # Panics
    /// If there are fewer parts.
    pub fn read(
        &self,
        part: usize,
        names: &[&str],
        interval: Interval,
        show: &mut dyn FnMut(&FactRow<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let place = &self.places[part];
        if place.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let schema = self.rollup.schema();
        let query = Query::scan([], ScanOrder::Ascending);
        let more: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let plan = Plan::new(&query, schema, &self.dimensions, self.rollup.layout(), &more)?;
        let columns = names.iter().map(|name| {
            let (source, _) = plan.columns.find(name)?;
            plan.columns.read.iter().position(|(read, _)| *read == source)
        });
        let columns: Vec<Option<usize>> = columns.collect();
        let bound = [BoundPlace::new(place, &plan, numbered(schema))?];
        let mut flow = ControlFlow::Continue(());
        each_run(
            &bound,
            &[interval],
            Direction::Ascending,
            || Ok(()),
            |place, batch, rows| {
                let texts = place.texts(&plan.columns)?;
                for &row in rows {
                    let row = row as usize;
                    flow = show(&FactRow {
                        plan: &plan,
                        columns: &columns,
                        batch,
                        texts: &texts,
                        row,
                    });
                    if flow.is_break() {
                        break;
                    }
                }
                Ok(flow)
            },
        )?;
        Ok(flow)
    }
}

impl FactRow<'_> {
    /// A column, by its place among the names that were asked for.
    ///
    /// # Errors
    /// [`Error::Sketch`](crate::Error::Sketch) if a state cannot be read.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn value(&self, column: usize) -> Result<Value<'_>> {
        let row = self.row;
        let Some(column) = self.columns[column] else { return Ok(Value::Null) };
        let present = |present: &[bool], value: Value<'static>| match present[row] {
            true => value,
            false => Value::Null,
        };
        Ok(match &self.batch.columns[column] {
            FactColumn::Ids(ids) => self.texts.value(column, ids[row]),
            FactColumn::Longs { values, present: there }
            | FactColumn::TimedLongs { values, present: there, .. } => {
                present(there, Value::Long(values[row]))
            }
            FactColumn::Doubles { values, present: there }
            | FactColumn::TimedDoubles { values, present: there, .. } => {
                present(there, Value::Double(values[row]))
            }
            sketches @ FactColumn::Sketches { .. } => {
                let Source::Metric(metric) = self.plan.columns.read[column].0 else {
                    unreachable!("a metric alone is a sketch")
                };
                self.figure(metric, sketches.sketch(row))?
            }
        })
    }

    /// The figure of a sketch; null where its type cannot hold it, as in a scan.
    fn figure(&self, metric: usize, bytes: &[u8]) -> Result<Value<'static>> {
        let StatePlace::Sketch(number) = self.plan.layout.slots[metric].place else {
            unreachable!("its form says so")
        };
        let kind = &self.plan.layout.sketches[number];
        let reading = reading(kind);
        Ok(match bytes {
            [] => reading.of_nothing(),
            bytes => kind.decode(bytes)?.value(&reading).unwrap_or(Value::Null),
        }
        .into_owned())
    }
}

/// The figure of a sketch: what a scan shows of ours, and what it estimates of those that a scan shows as bytes.
pub(crate) fn reading(kind: &SketchKind) -> Reading {
    match kind {
        SketchKind::Own(function) => Reading::Own(function.clone()),
        SketchKind::Hll { .. } | SketchKind::Theta { .. } => Reading::Estimate { rounded: false },
        SketchKind::Kll { .. } => Reading::Quantile(0.5),
    }
}
