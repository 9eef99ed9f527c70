//! Roll-ups: rows in, answers out.

use std::borrow::Cow;

use sapwood::RollupTable;
use sapwood::rollup::{
    Answer as Rows, BadLine, DimensionKind, Ingested, MetricKind, Number, Query, RowBatch,
    SAMPLES_MAX, SketchInput, Value,
};

use crate::command::arguments::is;
use crate::command::{Answer, Call};
use crate::jobs::Effect;
use crate::protocol::native;
use crate::protocol::reply::Reply;
use crate::refusal::Refusal;

use super::question::threads;
use super::words::{Words, one_of, shown};
use super::work::{Telling, Work, start_on};
use super::{catalog, cells, open_rollup, refused, unfit};

/// The form of rows that come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Csv,
}

const FORMATS: &[(&str, Format)] = &[("json", Format::Json), ("csv", Format::Csv)];

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Rows,
    /// As Druid writes it.
    Json,
    Csv,
}

const FORMS: &[(&str, Form)] = &[("rows", Form::Rows), ("json", Form::Json), ("csv", Form::Csv)];

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
    let text = joined(payloads);
    let (table, reply) = open_rollup(call)?;
    if text.len() <= AT_ONCE_BYTES {
        let batch = Batch::parse(format, &text)?;
        batch.ingest(table, reply)?;
        return Ok(());
    }
    let (table, text) = (table.clone(), text.into_owned());
    let name: Box<str> = table.name().into();
    let work = move |work: &Work<'_, RollupTable>, reply: &mut Reply<'_>| {
        let batch = Batch::parse(format, &text)?;
        work.check_cancelled()?;
        batch.ingest(work.table, reply)
    };
    start_on(call, (&name, table), Effect::Changes, Telling::Nothing, work)
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

/// Rows that were read, and the lines that are none.
struct Batch {
    rows: RowBatch,
    bad: Vec<BadLine>,
}

impl Batch {
    fn parse(format: Format, text: &[u8]) -> Result<Batch, Refusal> {
        let (rows, bad) = match format {
            Format::Json => RowBatch::from_json_lines(text),
            Format::Csv => RowBatch::from_csv(text).map_err(unfit)?,
        };
        Ok(Batch { rows, bad })
    }

    /// Folds the rows into the facts, and tells what became of them.
    fn ingest(self, table: &RollupTable, reply: &mut Reply<'_>) -> Answer {
        let told = table.ingest(&self.rows).map_err(refused)?;
        write_told(reply, &told, &self.bad);
        Ok(())
    }
}

/// Lines that are no rows count as those without a time that can be read.
fn write_told(reply: &mut Reply<'_>, told: &Ingested, bad: &[BadLine]) {
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
    let lines = &bad[..bad.len().min(SAMPLES_MAX)];
    let rows = &told.samples[..told.samples.len().min(SAMPLES_MAX - lines.len())];
    reply.array(lines.len() + rows.len());
    for line in lines {
        sample(reply, (None, Some(line.line)), None, &line.why);
    }
    for row in rows {
        sample(reply, (Some(row.row), None), Some(&row.column), &row.why);
    }
}

/// A row by its number among those that were read, or a line by its number in the text; from 0.
fn sample(
    reply: &mut Reply<'_>,
    (row, line): (Option<usize>, Option<usize>),
    column: Option<&str>,
    why: &str,
) {
    reply.map(4);
    for (name, number) in [("row", row), ("line", line)] {
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
    let threads = call.service.options.threads;
    let table = open_rollup(call)?.0.clone();
    let name: Box<str> = table.name().into();
    let work = move |work: &Work<'_, RollupTable>, reply: &mut Reply<'_>| {
        let threads = given.unwrap_or_else(|| match work.table.stats().facts {
            facts if facts < ALONE_FACTS => 1,
            _ => threads,
        });
        let query = parse(&text, work.table.name())?;
        let query = query.threads(threads).cancelled_by(work.running.cancel.flag());
        let answer = work.table.query(&query).map_err(refused)?;
        match form {
            Form::Rows => rows(reply, &answer),
            Form::Json => reply.bulk(answer.to_json().as_bytes()),
            Form::Csv => reply.bulk(answer.to_csv().as_bytes()),
        }
        Ok(())
    };
    start_on(call, (&name, table), Effect::Reads, Telling::Nothing, work)
}

/// The query, which may name the table once more, but no other.
fn parse(text: &[u8], table: &str) -> Result<Query, Refusal> {
    let json = native::json(text).map_err(Refusal::err)?;
    if let Some(name) = native::data_source(&json).map_err(Refusal::err)?
        && name != table
    {
        let name = shown(name.as_bytes());
        return Err(Refusal::err(format!(
            "the query's dataSource is '{name}', and the command's table '{table}': name one table"
        )));
    }
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
