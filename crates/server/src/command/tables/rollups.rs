//! Roll-ups: rows in, answers out.

use std::borrow::Cow;
use std::time::Instant;

use sapwood::RollupTable;
use sapwood::rollup::{
    Answer as Rows, BadLine, BadRow, DimensionKind, Ingested, MetricKind, Number, Query, RowBatch,
    RowBatchBuilder, SAMPLES_MAX, SketchInput, Value,
};

use crate::command::arguments::is;
use crate::command::{Answer, Call};
use crate::jobs::Effect;
use crate::protocol::native::Outline;
use crate::protocol::reply::Reply;
use crate::refusal::Refusal;

use super::question::threads;
use super::words::{Words, one_of, shown};
use super::work::{Telling, Terms, Work, start_on};
use super::{catalog, cells, open_rollup, refused, unfit};

/// The form of rows that come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Csv,
    MessagePack,
    /// Streams of it.
    #[cfg(feature = "arrow")]
    Arrow,
}

const FORMATS: &[(&str, Format)] = &[
    ("json", Format::Json),
    ("csv", Format::Csv),
    ("msgpack", Format::MessagePack),
    #[cfg(feature = "arrow")]
    ("arrow", Format::Arrow),
];

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Rows,
    /// As Druid writes it.
    Json,
    Csv,
    /// A stream of it.
    #[cfg(feature = "arrow")]
    Arrow,
}

const FORMS: &[(&str, Form)] = &[
    ("rows", Form::Rows),
    ("json", Form::Json),
    ("csv", Form::Csv),
    #[cfg(feature = "arrow")]
    ("arrow", Form::Arrow),
];

/// Bytes of rows that are taken in on a thread that serves clients, at most: some hundred rows, which take
/// less than a job costs. More are a job.
const AT_ONCE_BYTES: usize = 32 << 10;

/// A query of fewer facts is answered by one thread, which takes less than others cost to start.
const ALONE_FACTS: u64 = 1 << 16;

pub(super) fn ingest(call: &mut Call<'_>) -> Answer {
    let (format, payloads) = match call.args[2..] {
        [word, format, ref payloads @ ..] if is(word, "format") => {
            (one_of(format, FORMATS)?, payloads)
        }
        ref payloads => (Format::Json, payloads),
    };
    if payloads.is_empty() {
        return Err(Refusal::arguments(call.command.name));
    }
    let payloads = match format {
        Format::Json | Format::Csv => vec![joined(payloads)],
        _ => payloads.iter().map(|payload| Cow::Borrowed(*payload)).collect(),
    };
    let (table, reply) = open_rollup(call)?;
    if payloads.iter().map(|payload| payload.len()).sum::<usize>() <= AT_ONCE_BYTES {
        let batch = Batch::parse(format, &payloads)?;
        batch.ingest(table, reply)?;
        return Ok(());
    }
    let table = table.clone();
    let payloads: Vec<Cow<'static, [u8]>> =
        payloads.into_iter().map(|payload| Cow::Owned(payload.into_owned())).collect();
    let name: Box<str> = table.name().into();
    let work = move |work: &Work<'_, RollupTable>, reply: &mut Reply<'_>| {
        let batch = Batch::parse(format, &payloads)?;
        work.check_cancelled()?;
        batch.ingest(work.table, reply)
    };
    start_on(call, (&name, table), Terms::new(Effect::Changes, Telling::Nothing), work)
}

/// All payloads as one text, in which each begins a line.
fn joined<'a>(payloads: &[&'a [u8]]) -> Cow<'a, [u8]> {
    match payloads {
        [one] => Cow::Borrowed(one),
        all => {
            let mut text = Vec::with_capacity(all.iter().map(|payload| payload.len() + 1).sum());
            for payload in all {
                text.extend_from_slice(payload);
                if !payload.ends_with(b"\n") {
                    text.push(b'\n');
                }
            }
            Cow::Owned(text)
        }
    }
}

/// What is no row.
struct Bad {
    place: Place,
    why: String,
}

/// Where a row is, or would be; from 0.
#[derive(Clone, Copy)]
enum Place {
    /// Among those that were read.
    Row(usize),
    /// In the text.
    Line(usize),
    /// In the bytes of all payloads.
    Offset(usize),
}

/// Rows that were read, and what is none.
struct Batch {
    rows: RowBatch,
    bad: Vec<Bad>,
}

impl Batch {
    fn parse(format: Format, payloads: &[Cow<'_, [u8]>]) -> Result<Batch, Refusal> {
        let (mut batches, mut bad) = (Vec::with_capacity(payloads.len()), Vec::new());
        let mut before = 0;
        for payload in payloads {
            let line = |BadLine { line, why }| Bad { place: Place::Line(line), why };
            match format {
                Format::Json => {
                    let (rows, lines) = RowBatch::from_json_lines(payload);
                    batches.push(rows);
                    bad.extend(lines.into_iter().map(line));
                }
                Format::Csv => {
                    let (rows, lines) = RowBatch::from_csv(payload).map_err(unfit)?;
                    batches.push(rows);
                    bad.extend(lines.into_iter().map(line));
                }
                Format::MessagePack => {
                    let (rows, values) = RowBatch::from_message_pack(payload);
                    batches.push(rows);
                    bad.extend(values.into_iter().map(|BadRow { offset, why }| Bad {
                        place: Place::Offset(before + offset),
                        why,
                    }));
                }
                #[cfg(feature = "arrow")]
                Format::Arrow => {
                    batches.append(&mut RowBatch::from_arrow_stream(payload).map_err(unfit)?);
                }
            }
            before += payload.len();
        }
        Ok(Batch { rows: as_one(batches)?, bad })
    }

    /// Folds the rows into the facts, and tells what became of them.
    fn ingest(self, table: &RollupTable, reply: &mut Reply<'_>) -> Answer {
        let told = table.ingest(&self.rows).map_err(refused)?;
        write_told(reply, &told, &self.bad);
        Ok(())
    }
}

/// The rows of a command, which go in together.
fn as_one(mut batches: Vec<RowBatch>) -> Result<RowBatch, Refusal> {
    match batches.len() {
        1 => Ok(batches.remove(0)),
        _ => {
            let mut all = RowBatchBuilder::new();
            for batch in &batches {
                all.append(batch).map_err(unfit)?;
            }
            Ok(all.finish())
        }
    }
}

/// What is no row counts as one without a time that can be read.
fn write_told(reply: &mut Reply<'_>, told: &Ingested, bad: &[Bad]) {
    reply.map(7);
    catalog::figures(
        reply,
        &[
            ("processed", told.processed),
            ("processed_with_error", told.processed_with_error),
            ("thrown_away", told.thrown_away),
            ("unparseable", told.unparseable + bad.len() as u64),
            ("overflowed", told.overflowed),
            ("new_facts", told.new_facts),
        ],
    );
    reply.bulk(b"samples");
    let bad = &bad[..bad.len().min(SAMPLES_MAX)];
    let rows = &told.samples[..told.samples.len().min(SAMPLES_MAX - bad.len())];
    reply.array(bad.len() + rows.len());
    for Bad { place, why } in bad {
        sample(reply, *place, None, why);
    }
    for row in rows {
        sample(reply, Place::Row(row.row), Some(&row.column), &row.why);
    }
}

fn sample(reply: &mut Reply<'_>, place: Place, column: Option<&str>, why: &str) {
    let (row, line, offset) = match place {
        Place::Row(row) => (Some(row), None, None),
        Place::Line(line) => (None, Some(line), None),
        Place::Offset(offset) => (None, None, Some(offset)),
    };
    reply.map(5);
    for (name, number) in [("row", row), ("line", line), ("offset", offset)] {
        reply.bulk(name.as_bytes());
        match number {
            Some(number) => cells::count(reply, number as u64),
            None => reply.null(),
        }
    }
    reply.bulk(b"column");
    cells::text(reply, column);
    reply.bulk(b"why");
    reply.bulk(why.as_bytes());
}

pub(super) fn query(call: &mut Call<'_>) -> Answer {
    let (mut form, mut given) = (Form::Rows, None);
    let mut words = Words::new(&call.args[3..]);
    while let Some(word) = words.keyword() {
        if is(word, "format") {
            form = one_of(words.value()?, FORMS)?;
        } else if is(word, "threads") {
            given = Some(threads(&mut words)?);
        } else {
            return words.unknown();
        }
    }
    let text = call.args[2].to_vec();
    let outline = Outline::read(&text).map_err(Refusal::err)?;
    // From here on: a query that waits for a thread takes its time, too.
    let deadline = outline.timeout().and_then(|timeout| Instant::now().checked_add(timeout));
    let threads = call.service.options.threads;
    let table = open_rollup(call)?.0.clone();
    expect_table(&outline, table.name())?;
    let terms = Terms {
        name: outline.query_id().map(Box::from),
        deadline,
        ..Terms::new(Effect::Reads, Telling::Nothing)
    };
    let name: Box<str> = table.name().into();
    let work = move |work: &Work<'_, RollupTable>, reply: &mut Reply<'_>| {
        let threads = given.unwrap_or_else(|| match work.table.stats().facts {
            facts if facts < ALONE_FACTS => 1,
            _ => threads,
        });
        let mut query = parse(&text)?.threads(threads).cancelled_by(work.running.cancel.flag());
        if let Some(deadline) = deadline {
            query = query.timeout(deadline.saturating_duration_since(Instant::now()));
        }
        let answer = work.table.query(&query).map_err(refused)?;
        match form {
            Form::Rows => rows(reply, &answer),
            Form::Json => reply.bulk(answer.to_json().as_bytes()),
            Form::Csv => reply.bulk(answer.to_csv().as_bytes()),
            #[cfg(feature = "arrow")]
            Form::Arrow => reply.bulk(&answer.to_arrow_stream().map_err(unfit)?),
        }
        Ok(())
    };
    start_on(call, (&name, table), terms, work)
}

/// A query may name the table once more, but no other.
fn expect_table(query: &Outline, table: &str) -> Answer {
    match query.data_source().map_err(Refusal::err)? {
        Some(name) if name != table => {
            let name = shown(name.as_bytes());
            Err(Refusal::err(format!(
                "the query's dataSource is '{name}', and the command's table '{table}': name one table"
            )))
        }
        _ => Ok(()),
    }
}

fn parse(text: &[u8]) -> Result<Query, Refusal> {
    let text =
        std::str::from_utf8(text).map_err(|_| Refusal::text("ERR the query is not UTF-8"))?;
    Query::from_json(text).map_err(unfit)
}

/// Columns and rows; times are milliseconds since 1970.
fn rows(reply: &mut Reply<'_>, answer: &Rows) {
    reply.map(2);
    reply.bulk(b"columns");
    reply.array(answer.columns.len());
    answer.columns.iter().for_each(|name| reply.bulk(name.as_bytes()));
    reply.bulk(b"rows");
    reply.array(answer.rows.len());
    for row in &answer.rows {
        reply.array(row.len());
        row.iter().for_each(|it| value(reply, it));
    }
}

fn value(reply: &mut Reply<'_>, it: &Value<'_>) {
    match it {
        Value::Null => reply.null(),
        Value::Long(number) => reply.integer(*number),
        Value::Double(number) => reply.double(*number),
        Value::Text(text) => reply.bulk(text.as_bytes()),
        Value::List(values) => {
            reply.array(values.len());
            values.iter().for_each(|it| value(reply, it));
        }
    }
}

/// What `SW.INFO` says of a roll-up.
pub(super) fn info(table: &RollupTable, reply: &mut Reply<'_>) {
    let (dimensions, metrics) = (table.dimensions(), table.schema().metrics());
    reply.map(6);
    reply.bulk(b"name");
    reply.bulk(table.name().as_bytes());
    reply.bulk(b"engine");
    reply.bulk(b"rollup");
    reply.bulk(b"dimensions");
    reply.array(dimensions.len());
    for dimension in &dimensions {
        column(reply, &dimension.name, type_of_dimension(dimension.kind));
    }
    reply.bulk(b"metrics");
    reply.array(metrics.len());
    for metric in metrics {
        column(reply, &metric.name, type_of_metric(metric.kind));
    }
    reply.bulk(b"facts");
    let stats = table.stats();
    cells::count(reply, stats.facts + stats.segment_facts);
    reply.bulk(b"kept");
    reply.boolean(table.is_kept());
}

fn column(reply: &mut Reply<'_>, name: &str, kind: &str) {
    reply.map(2);
    reply.bulk(b"name");
    reply.bulk(name.as_bytes());
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
}

/// The word of a schema.
fn type_of_dimension(kind: DimensionKind) -> &'static str {
    match kind {
        DimensionKind::Text => "string",
        DimensionKind::Long => "long",
        DimensionKind::Double => "double",
    }
}

/// The word of a schema.
fn type_of_metric(kind: MetricKind) -> &'static str {
    let of = |number, long, double| match number {
        Number::Long => long,
        Number::Double => double,
    };
    match kind {
        MetricKind::Count => "count",
        MetricKind::Sum(number) => of(number, "longSum", "doubleSum"),
        MetricKind::Min(number) => of(number, "longMin", "doubleMin"),
        MetricKind::Max(number) => of(number, "longMax", "doubleMax"),
        MetricKind::First(number) => of(number, "longFirst", "doubleFirst"),
        MetricKind::Last(number) => of(number, "longLast", "doubleLast"),
        MetricKind::Distinct { .. } => "distinct",
        MetricKind::Quantiles { .. } => "quantiles",
        MetricKind::Variance => "variance",
        MetricKind::Hll { input: SketchInput::Values, .. } => "HLLSketchBuild",
        MetricKind::Hll { input: SketchInput::Sketches, .. } => "HLLSketchMerge",
        MetricKind::Theta { .. } => "thetaSketch",
        MetricKind::Kll { input: SketchInput::Values, .. } => "KllDoublesSketch",
        MetricKind::Kll { input: SketchInput::Sketches, .. } => "KllDoublesSketchMerge",
    }
}

/// What `SW.STATS` says of a roll-up.
pub(super) fn stats(table: &RollupTable, reply: &mut Reply<'_>) {
    let stats = table.stats();
    let of = [
        ("facts", stats.facts),
        ("fact_bytes", stats.fact_bytes),
        ("dictionary_bytes", stats.dictionary_bytes),
        ("dimensions", stats.dimensions),
        ("processed", stats.processed),
        ("processed_with_error", stats.processed_with_error),
        ("thrown_away", stats.thrown_away),
        ("unparseable", stats.unparseable),
        ("overflowed", stats.overflowed),
    ];
    reply.map(of.len());
    catalog::figures(reply, &of);
}
