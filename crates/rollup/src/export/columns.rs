//! Facts gathered into batches of Arrow, which is what the writer of Parquet takes.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder,
    TimestampMillisecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema as ArrowSchema, SchemaRef, TimeUnit};
use sapwood_aggregate::CentralMoments;

use crate::error::Result;
use crate::facts::reading;
use crate::live::dictionary::Entry;
use crate::live::state::Place;
use crate::query::batch::{FactBatch, FactColumn, Texts};
use crate::query::columns::{Form, Source};
use crate::query::plan::Plan;
use crate::schema::{DimensionKind, Metric, MetricKind};
use crate::sketch::Sketch;
use crate::value::Value;

/// Rows of a batch, and about the bytes of texts and states at which it ends before it has them.
const BATCH_ROWS: usize = 8_192;
const BATCH_BYTES: usize = 8 << 20;

/// How a column of facts is written: as one column, or as several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time,
    Text,
    Texts,
    Long,
    Double,
    TimedLong,
    TimedDouble,
    Distinct,
    /// Sketches whose figure is a double: an estimate, or the median.
    Sketch,
    Variance,
}

/// The columns of the files of an export.
#[derive(Debug)]
pub(super) struct Shape<'p> {
    plan: &'p Plan<'p>,
    /// Of each column that the plan reads.
    kinds: Vec<Kind>,
    pub(super) schema: SchemaRef,
}

pub(crate) fn timestamps() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

/// The name of the values of a list that Parquet has.
fn element() -> Field {
    Field::new("element", DataType::Utf8, true)
}

impl Kind {
    /// What stands behind the name of each of its columns, and their types.
    fn columns(self) -> Vec<(&'static str, DataType)> {
        let long = || DataType::Int64;
        let double = || DataType::Float64;
        match self {
            Kind::Time => vec![("", timestamps())],
            Kind::Text => vec![("", DataType::Utf8)],
            Kind::Texts => vec![("", DataType::List(Arc::new(element())))],
            Kind::Long => vec![("", long())],
            Kind::Double => vec![("", double())],
            Kind::TimedLong => vec![("", long()), ("_time", timestamps())],
            Kind::TimedDouble => vec![("", double()), ("_time", timestamps())],
            Kind::Distinct => vec![("", long()), ("_state", DataType::Binary)],
            Kind::Sketch => vec![("", double()), ("_state", DataType::Binary)],
            Kind::Variance => {
                vec![("", double()), ("_count", long()), ("_mean", double()), ("_m2", double())]
            }
        }
    }
}

impl<'p> Shape<'p> {
    /// `names` are those of the columns that the plan reads, in its order; `lists` says of each dimension whether it is
    /// lists.
    pub(super) fn new(
        names: &[String],
        plan: &'p Plan<'p>,
        metrics: &[Metric],
        lists: &[bool],
    ) -> Shape<'p> {
        let kind = |(source, form): &(Source, Form)| match (*source, *form) {
            (Source::Time, _) => Kind::Time,
            (Source::Dimension(number), _) => match plan.columns.dimension_at(number).kind {
                DimensionKind::Text if lists[number] => Kind::Texts,
                DimensionKind::Text => Kind::Text,
                DimensionKind::Long => Kind::Long,
                DimensionKind::Double => Kind::Double,
            },
            (Source::Metric(number), Form::Sketch) => match metrics[number].kind {
                MetricKind::Distinct { .. } => Kind::Distinct,
                MetricKind::Variance => Kind::Variance,
                _ => Kind::Sketch,
            },
            (Source::Metric(_), Form::Double) => Kind::Double,
            (Source::Metric(_), Form::TimedLong) => Kind::TimedLong,
            (Source::Metric(_), Form::TimedDouble) => Kind::TimedDouble,
            (Source::Metric(_), Form::Long | Form::Ids) => Kind::Long,
            (Source::Virtual(_), _) => unreachable!("an export asks for none"),
        };
        let kinds: Vec<Kind> = plan.columns.read.iter().map(kind).collect();
        let mut taken: Vec<String> = names.to_vec();
        let mut fields = Vec::new();
        for (name, kind) in names.iter().zip(&kinds) {
            for (behind, data_type) in kind.columns() {
                let mut full = format!("{name}{behind}");
                if !behind.is_empty() {
                    while taken.contains(&full) {
                        full.push('_');
                    }
                    taken.push(full.clone());
                }
                fields.push(Field::new(full, data_type, *kind != Kind::Time));
            }
        }
        Shape { plan, kinds, schema: Arc::new(ArrowSchema::new(fields)) }
    }
}

/// The columns of a batch, as far as they have come.
enum Builder {
    Time(TimestampMillisecondBuilder),
    Text(StringBuilder),
    Texts(ListBuilder<StringBuilder>),
    Long(Int64Builder),
    Double(Float64Builder),
    TimedLong(Int64Builder, TimestampMillisecondBuilder),
    TimedDouble(Float64Builder, TimestampMillisecondBuilder),
    Distinct(Int64Builder, BinaryBuilder),
    Sketch(Float64Builder, BinaryBuilder),
    Variance(Box<VarianceBuilder>),
}

#[derive(Default)]
struct VarianceBuilder {
    variances: Float64Builder,
    counts: Int64Builder,
    means: Float64Builder,
    squares: Float64Builder,
}

impl Builder {
    fn new(kind: Kind) -> Builder {
        let times = || TimestampMillisecondBuilder::new().with_data_type(timestamps());
        match kind {
            Kind::Time => Builder::Time(times()),
            Kind::Text => Builder::Text(StringBuilder::new()),
            Kind::Texts => {
                Builder::Texts(ListBuilder::new(StringBuilder::new()).with_field(element()))
            }
            Kind::Long => Builder::Long(Int64Builder::new()),
            Kind::Double => Builder::Double(Float64Builder::new()),
            Kind::TimedLong => Builder::TimedLong(Int64Builder::new(), times()),
            Kind::TimedDouble => Builder::TimedDouble(Float64Builder::new(), times()),
            Kind::Distinct => Builder::Distinct(Int64Builder::new(), BinaryBuilder::new()),
            Kind::Sketch => Builder::Sketch(Float64Builder::new(), BinaryBuilder::new()),
            Kind::Variance => Builder::Variance(Box::default()),
        }
    }

    fn finish(&mut self, arrays: &mut Vec<ArrayRef>) {
        match self {
            Builder::Time(times) => arrays.push(Arc::new(times.finish())),
            Builder::Text(texts) => arrays.push(Arc::new(texts.finish())),
            Builder::Texts(lists) => arrays.push(Arc::new(lists.finish())),
            Builder::Long(values) => arrays.push(Arc::new(values.finish())),
            Builder::Double(values) => arrays.push(Arc::new(values.finish())),
            Builder::TimedLong(values, times) => {
                arrays.push(Arc::new(values.finish()));
                arrays.push(Arc::new(times.finish()));
            }
            Builder::TimedDouble(values, times) => {
                arrays.push(Arc::new(values.finish()));
                arrays.push(Arc::new(times.finish()));
            }
            Builder::Distinct(estimates, states) => {
                arrays.push(Arc::new(estimates.finish()));
                arrays.push(Arc::new(states.finish()));
            }
            Builder::Sketch(figures, states) => {
                arrays.push(Arc::new(figures.finish()));
                arrays.push(Arc::new(states.finish()));
            }
            Builder::Variance(built) => {
                arrays.push(Arc::new(built.variances.finish()));
                arrays.push(Arc::new(built.counts.finish()));
                arrays.push(Arc::new(built.means.finish()));
                arrays.push(Arc::new(built.squares.finish()));
            }
        }
    }
}

/// Facts on their way into batches of Arrow.
pub(super) struct Batches<'s> {
    shape: &'s Shape<'s>,
    builders: Vec<Builder>,
    rows: usize,
    bytes: usize,
    taken: u64,
}

impl<'s> Batches<'s> {
    pub(super) fn new(shape: &'s Shape<'s>) -> Batches<'s> {
        let builders = shape.kinds.iter().map(|kind| Builder::new(*kind)).collect();
        Batches { shape, builders, rows: 0, bytes: 0, taken: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows == BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// How many rows were taken.
    pub(super) fn rows_taken(&self) -> u64 {
        self.taken
    }

    /// The rows so far.
    pub(super) fn take(&mut self) -> RecordBatch {
        let mut arrays = Vec::with_capacity(self.shape.schema.fields().len());
        self.builders.iter_mut().for_each(|builder| builder.finish(&mut arrays));
        self.taken += self.rows as u64;
        (self.rows, self.bytes) = (0, 0);
        let schema = Arc::clone(&self.shape.schema);
        RecordBatch::try_new(schema, arrays).expect("each row has a value for each column")
    }

    /// Appends a fact.
    ///
    /// # Errors
    /// [`Error::Sketch`](crate::Error::Sketch) if a state cannot be read.
    pub(super) fn push(&mut self, batch: &FactBatch, texts: &Texts<'_>, row: usize) -> Result<()> {
        for (column, builder) in self.builders.iter_mut().enumerate() {
            self.bytes += match &batch.columns[column] {
                FactColumn::Ids(ids) => push_text(builder, texts, column, ids[row]),
                FactColumn::Longs { values, present } => {
                    let value = present[row].then_some(values[row]);
                    match builder {
                        Builder::Time(times) => times.append_option(value),
                        Builder::Long(longs) => longs.append_option(value),
                        _ => unreachable!("{KINDS}"),
                    }
                    0
                }
                FactColumn::Doubles { values, present } => {
                    let Builder::Double(doubles) = builder else { unreachable!("{KINDS}") };
                    doubles.append_option(present[row].then_some(values[row]));
                    0
                }
                FactColumn::TimedLongs { times: at, values, present } => {
                    let Builder::TimedLong(longs, times) = builder else { unreachable!("{KINDS}") };
                    longs.append_option(present[row].then_some(values[row]));
                    times.append_option(present[row].then_some(at[row]));
                    0
                }
                FactColumn::TimedDoubles { times: at, values, present } => {
                    let Builder::TimedDouble(doubles, times) = builder else {
                        unreachable!("{KINDS}")
                    };
                    doubles.append_option(present[row].then_some(values[row]));
                    times.append_option(present[row].then_some(at[row]));
                    0
                }
                sketches @ FactColumn::Sketches { .. } => {
                    let Source::Metric(metric) = self.shape.plan.columns.read[column].0 else {
                        unreachable!("a metric alone is a sketch")
                    };
                    push_sketch(builder, self.shape.plan, metric, sketches.sketch(row))?
                }
            };
        }
        self.rows += 1;
        Ok(())
    }
}

const KINDS: &str = "a column is built as the kind of its form";

/// Appends what the number of a text stands for, and answers its bytes.
fn push_text(builder: &mut Builder, texts: &Texts<'_>, column: usize, id: u32) -> usize {
    let words = texts.words(column);
    match (builder, words.entry(id)) {
        (Builder::Text(built), Entry::Text(text)) => {
            built.append_value(text);
            text.len()
        }
        (Builder::Text(built), _) => {
            built.append_null();
            0
        }
        (Builder::Texts(built), Entry::Null) => {
            built.append_null();
            0
        }
        (Builder::Texts(built), Entry::Text(text)) => {
            built.values().append_value(text);
            built.append(true);
            text.len()
        }
        (Builder::Texts(built), Entry::List(ids)) => {
            let mut bytes = 0;
            for id in ids.iter() {
                let text = words.text(id);
                bytes += text.map_or(0, str::len);
                built.values().append_option(text);
            }
            built.append(true);
            bytes
        }
        _ => unreachable!("{KINDS}"),
    }
}

/// Appends a sketch and its figure, and answers its bytes. A figure that its type cannot hold is null, as in a scan.
fn push_sketch(
    builder: &mut Builder,
    plan: &Plan<'_>,
    metric: usize,
    bytes: &[u8],
) -> Result<usize> {
    let Place::Sketch(number) = plan.layout.slots[metric].place else {
        unreachable!("its form says so")
    };
    let kind = &plan.layout.sketches[number];
    let sketch = match bytes {
        [] => None,
        bytes => Some(kind.decode(bytes)?),
    };
    let reading = reading(kind);
    let figure = match &sketch {
        None => reading.of_nothing(),
        Some(sketch) => sketch.value(&reading).unwrap_or(Value::Null),
    };
    let state = sketch.is_some().then_some(bytes);
    match builder {
        Builder::Distinct(estimates, states) => {
            estimates.append_option(figure.to_long().ok().flatten());
            states.append_option(state);
        }
        Builder::Sketch(figures, states) => {
            figures.append_option(figure.to_double().ok().flatten());
            states.append_option(state);
        }
        Builder::Variance(built) => {
            built.variances.append_option(figure.to_double().ok().flatten());
            let count = sketch.as_ref().map_or(Some(0), count_of);
            let moments = sketch.as_ref().and_then(moments_of);
            built.counts.append_option(count);
            built.means.append_option(moments.map(|moments| moments.mean));
            built.squares.append_option(moments.map(|moments| moments.squares));
        }
        _ => unreachable!("{KINDS}"),
    }
    Ok(bytes.len())
}

fn moments_of(sketch: &Sketch) -> Option<CentralMoments> {
    let Sketch::Own(own) = sketch else { return None };
    own.central_moments().ok().flatten()
}

fn count_of(sketch: &Sketch) -> Option<i64> {
    moments_of(sketch).and_then(|moments| i64::try_from(moments.count).ok())
}
