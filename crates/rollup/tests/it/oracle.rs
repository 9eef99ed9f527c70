//! Random schemas, rows and queries against plain code.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;
use sapwood_disk::SimDisk;
use sapwood_rollup::{
    Aggregation, Column, Dimension, DimensionKind, Expression, Filter, Granularity, Interval,
    Metric, MetricKind, Number, Query, Rollup, RowBatch, RowBatchBuilder, ScanOrder, Schema,
    TopNMetric, Value, VirtualColumn, Writer,
};

use crate::model::{Fact, Key, Model, Row, aggregate, coded, truth};

const HOUR: i64 = 3_600_000;
/// 2013-03-09T12:00Z: clocks in New York are set the next day.
const BEGIN: i64 = 1_362_830_400_000;

struct Case {
    rng: Rng,
    dimensions: Vec<(String, DimensionKind)>,
    metrics: Vec<Metric>,
    granularity: Granularity,
    rollup: bool,
    filter: Option<Filter>,
}

const WORDS: [&str; 7] = ["", "oak", "Elm", "ash tree", "10", "9", "ö"];

impl Case {
    fn new(seed: u64) -> Case {
        let mut rng = Rng::with_seed(seed);
        let mut dimensions = Vec::new();
        for number in 0..rng.usize(0..5) {
            let kind = match rng.u8(0..5) {
                0 => DimensionKind::Long,
                1 => DimensionKind::Double,
                _ => DimensionKind::Text,
            };
            dimensions.push((format!("d{number}"), kind));
        }
        let granularity = ["none", "minute", "hour", "six_hour", "day", "PT2H"];
        let mut granularity = Granularity::parse(granularity[rng.usize(0..6)]).expect("known");
        if rng.bool() {
            granularity = granularity.in_zone("America/New_York").expect("known");
        }
        let rollup = rng.u8(0..5) > 0;
        let mut case =
            Case { rng, dimensions, metrics: Vec::new(), granularity, rollup, filter: None };
        for number in 0..case.rng.usize(0..8) {
            let metric = case.metric(number);
            case.metrics.push(metric);
        }
        if case.rng.u8(0..4) == 0 {
            case.filter = Some(case.filter(0, &["d0", "d1", "x", "__time"]));
        }
        case
    }

    fn number(&mut self) -> Number {
        if self.rng.bool() { Number::Long } else { Number::Double }
    }

    fn metric(&mut self, number: usize) -> Metric {
        let kind = match self.rng.u8(0..9) {
            0 | 1 => MetricKind::Count,
            2 => MetricKind::Sum(self.number()),
            3 => MetricKind::Min(self.number()),
            4 => MetricKind::Max(self.number()),
            5 => MetricKind::First(self.number()),
            6 => MetricKind::Last(self.number()),
            7 => MetricKind::Distinct { precision: 14 },
            _ if self.rng.bool() => MetricKind::Quantiles { accuracy: 0.01 },
            _ => MetricKind::Variance,
        };
        let fields = ["x", "y", "d0", "d1"];
        let field = match kind {
            MetricKind::Count => None,
            _ => Some(fields[self.rng.usize(0..4)].to_owned()),
        };
        let filter = (self.rng.u8(0..4) == 0).then(|| self.filter(0, &fields));
        Metric { name: format!("m{number}"), field, kind, filter }
    }

    fn text(&mut self) -> Value<'static> {
        Value::text(WORDS[self.rng.usize(0..WORDS.len())])
    }

    fn value(&mut self) -> Value<'static> {
        match self.rng.u8(0..8) {
            0 => Value::Null,
            1 | 2 => Value::Long(self.rng.i64(-3..12)),
            // Sums of quarters are exact in any order.
            3 => Value::Double(self.rng.i32(-12..12).into()),
            4 => Value::Double(f64::from(self.rng.i32(-12..12)) / 4.0),
            _ => self.text(),
        }
    }

    fn row(&mut self) -> Row {
        let mut row = Row::new();
        for name in ["d0", "d1", "d2", "d3", "x", "y"] {
            if self.rng.u8(0..6) > 0 {
                let value = match self.rng.u8(0..8) {
                    0 => {
                        let len = self.rng.usize(0..4);
                        let value = |case: &mut Case| match case.rng.bool() {
                            true => case.text(),
                            false => Value::Null,
                        };
                        Value::List((0..len).map(|_| value(self)).collect())
                    }
                    _ => self.value(),
                };
                row.insert(name.to_owned(), value);
            }
        }
        row
    }

    fn filter(&mut self, depth: usize, columns: &[&str]) -> Filter {
        let column = columns[self.rng.usize(0..columns.len())].to_owned();
        match self.rng.u8(0..if depth < 3 { 11 } else { 7 }) {
            0 => Filter::IsNull { column },
            1 | 2 => {
                let len = self.rng.usize(1..4);
                Filter::In { column, values: (0..len).map(|_| self.value()).collect() }
            }
            3 => {
                let lower = self.rng.bool().then(|| Value::Long(self.rng.i64(-4..10)));
                let upper = self.rng.bool().then(|| Value::Double(self.rng.i32(-4..10).into()));
                let (lower_strict, upper_strict) = (self.rng.bool(), self.rng.bool());
                Filter::Bound { column, lower, lower_strict, upper, upper_strict, numeric: true }
            }
            4 => {
                let (lower, upper) = (Some(self.text()), self.rng.bool().then(|| self.text()));
                let (lower_strict, upper_strict) = (false, false);
                Filter::Bound { column, lower, lower_strict, upper, upper_strict, numeric: false }
            }
            5 => {
                let patterns = ["%a%", "oak", "%k", "", "%", "1%", "a%t%e"];
                let pattern = patterns[self.rng.usize(0..patterns.len())].to_owned();
                Filter::Like { column, pattern, escape: None }
            }
            6 => {
                let text = ["A", "k", "1", ""][self.rng.usize(0..4)].to_owned();
                Filter::Contains { column, text, case_sensitive: false }
            }
            7 | 8 => Filter::not(self.filter(depth + 1, columns)),
            9 => Filter::and((0..2).map(|_| self.filter(depth + 1, columns)).collect::<Vec<_>>()),
            _ => Filter::or((0..2).map(|_| self.filter(depth + 1, columns)).collect::<Vec<_>>()),
        }
    }

    fn aggregation(&mut self, number: usize) -> Aggregation {
        let name = format!("a{number}");
        let metric = match self.metrics.len() {
            0 => None,
            len => Some(self.metrics[self.rng.usize(0..len)].clone()),
        };
        let share = f64::from(self.rng.u8(0..=4)) / 4.0;
        let by_number = |field: &str, kind: u8| match kind {
            0 => Aggregation::long_sum(&name, field),
            1 => Aggregation::double_sum(&name, field),
            2 => Aggregation::long_min(&name, field),
            3 => Aggregation::double_max(&name, field),
            4 => Aggregation::double_first(&name, field),
            5 => Aggregation::long_last(&name, field),
            6 => Aggregation::distinct(&name, field),
            7 => Aggregation::quantile(&name, field, share),
            _ => Aggregation::variance(&name, field),
        };
        let kind = self.rng.u8(0..9);
        let aggregation = match metric {
            Some(metric) if self.rng.bool() => match metric.kind {
                MetricKind::Distinct { .. } => Aggregation::distinct(&name, &metric.name),
                MetricKind::Quantiles { .. } => Aggregation::quantile(&name, &metric.name, share),
                MetricKind::Variance => Aggregation::deviation(&name, &metric.name),
                _ => by_number(&metric.name, kind),
            },
            // Of several values of a fact no number is made, but each is different.
            _ => match self.dimensions.len() {
                0 => Aggregation::count(&name),
                len => {
                    let (field, field_kind) = self.dimensions[self.rng.usize(0..len)].clone();
                    match field_kind {
                        DimensionKind::Text => Aggregation::distinct(&name, field),
                        _ => by_number(&field, kind),
                    }
                }
            },
        };
        match self.rng.u8(0..4) {
            0 => {
                let columns = self.columns();
                let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
                aggregation.where_(self.filter(1, &columns))
            }
            _ => aggregation,
        }
    }

    fn columns(&self) -> Vec<String> {
        let dimensions = self.dimensions.iter().map(|(name, _)| name.clone());
        std::iter::once("__time".to_owned()).chain(dimensions).collect()
    }

    fn interval(&mut self) -> Interval {
        let start = BEGIN + self.rng.i64(-2..40) * HOUR;
        Interval { start, end: start + self.rng.i64(0..40) * HOUR }
    }

    fn schema(&self) -> Schema {
        let mut schema = Schema::new("time").query_granularity(self.granularity.clone());
        for (name, kind) in &self.dimensions {
            schema = schema.dimension(Dimension { name: name.clone(), kind: *kind });
        }
        for metric in &self.metrics {
            schema = schema.metric(metric.clone());
        }
        if let Some(filter) = &self.filter {
            schema = schema.filter(filter.clone());
        }
        schema.rollup(self.rollup)
    }
}

fn batch(rows: &[(i64, Row)], columnar: bool) -> RowBatch {
    if columnar {
        let names: BTreeSet<&String> = rows.iter().flat_map(|(_, row)| row.keys()).collect();
        let times = Column::longs(rows.iter().map(|(time, _)| *time));
        let mut batch = RowBatch::new(rows.len()).column("time", times).expect("as long");
        for name in names {
            let values = rows.iter().map(|(_, row)| row.get(name).cloned().unwrap_or(Value::Null));
            batch = batch.column(name, Column::values(values)).expect("as long");
        }
        return batch;
    }
    let mut builder = RowBatchBuilder::new();
    for (time, row) in rows {
        builder.push("time", *time);
        row.iter().for_each(|(name, value)| builder.push(name, value.clone()));
        builder.end_row().expect("within the limits");
    }
    builder.finish()
}

/// Close enough: sketches add squares in another order.
fn same(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => {
            (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1.0)
        }
        // A figure of a sketch is a whole number if it can be.
        (Value::Double(_), Value::Long(_)) | (Value::Long(_), Value::Double(_)) => {
            left.compare(right).is_eq()
        }
        (left, right) => left == right,
    }
}

fn expect_rows(
    seed: u64,
    what: &str,
    found: &[Vec<Value<'static>>],
    wanted: &[Vec<Value<'static>>],
) {
    assert_eq!(found.len(), wanted.len(), "seed {seed}, {what}: {found:?}\nwanted {wanted:?}");
    for (found, wanted) in found.iter().zip(wanted) {
        let agrees = found.iter().zip(wanted).all(|(left, right)| same(left, right));
        assert!(
            agrees && found.len() == wanted.len(),
            "seed {seed}, {what}: {found:?}\nwanted {wanted:?}"
        );
    }
}

/// The groups of facts, by bucket of time and values of dimensions; of several values each.
fn grouped<'f>(
    facts: &[&'f Fact],
    granularity: &Granularity,
    dimensions: &[String],
    start: i64,
) -> BTreeMap<(i64, Vec<Key>), Vec<&'f Fact>> {
    let mut groups: BTreeMap<(i64, Vec<Key>), Vec<&Fact>> = BTreeMap::new();
    for fact in facts {
        let time = if granularity.is_all() { start } else { granularity.bucket(fact.time).0 };
        let mut keys: Vec<Vec<Key>> = vec![Vec::new()];
        for name in dimensions {
            let values = match fact.value(name, &[]) {
                Value::List(values) => values,
                value => vec![value],
            };
            keys = keys
                .iter()
                .flat_map(|key| {
                    values.iter().map(|value| [&key[..], &[Key(value.clone())]].concat())
                })
                .collect();
        }
        for key in keys {
            groups.entry((time, key)).or_default().push(fact);
        }
    }
    groups
}

/// Draws virtual columns, and shows facts with them.
fn with_virtual_columns(case: &mut Case, facts: &[Fact]) -> (Vec<VirtualColumn>, Vec<Fact>) {
    let mut facts = facts.to_vec();
    let mut columns: Vec<VirtualColumn> = Vec::new();
    for name in ["v0", "v1"].into_iter().take(case.rng.usize(0..=2)) {
        let Some((input, _)) = case.rng.choice(&case.dimensions).cloned() else { break };
        let texts = [
            input.clone(),
            format!("lower({input})"),
            format!("concat({input}, '-', __time % 3)"),
            format!("nvl({input}, 'oak')"),
            format!("if({input} == 'oak', 3, {input})"),
            format!("strlen({input})"),
            "timestamp_floor(__time, 'P1D', 'America/New_York')".to_owned(),
        ];
        let expression = Expression::parse(case.rng.choice(&texts).expect("some")).expect("one");
        let kinds = [DimensionKind::Text, DimensionKind::Long, DimensionKind::Double];
        let kind = *case.rng.choice(&kinds).expect("some");
        // One may hide the column that it is made of.
        let name = if case.rng.u8(0..6) == 0 { input.as_str() } else { name };
        if columns.iter().any(|known| known.name == name) {
            continue;
        }
        let values: Option<Vec<Value<'static>>> = facts
            .iter()
            .map(|fact| {
                let value = expression.evaluate(&|name| fact.value(name, &case.metrics));
                value.ok().map(|value| coded(value.into_owned(), kind))
            })
            .collect();
        // An expression without a value is an error of the query.
        let Some(values) = values else { continue };
        for (fact, value) in facts.iter_mut().zip(values) {
            fact.dimensions.insert(name.to_owned(), value);
        }
        case.dimensions.retain(|(known, _)| known != name);
        case.dimensions.push((name.to_owned(), kind));
        columns.push(VirtualColumn { name: name.to_owned(), expression, kind });
    }
    (columns, facts)
}

fn check_queries(seed: u64, case: &mut Case, rollup: &Rollup, model: &Model) {
    let dimensions = case.dimensions.clone();
    for number in 0..8 {
        case.dimensions.clone_from(&dimensions);
        let (virtual_columns, all) = with_virtual_columns(case, &model.facts);
        let with_columns = |query: Query| {
            virtual_columns.iter().fold(query, |query, column| {
                let VirtualColumn { name, expression, kind } = column;
                query.virtual_column(name, expression.text(), *kind).expect("it was read")
            })
        };
        let interval = case.interval();
        let columns = case.columns();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let filter = case.rng.bool().then(|| case.filter(0, &columns));
        let aggregations: Vec<Aggregation> =
            (0..case.rng.usize(1..5)).map(|number| case.aggregation(number)).collect();
        let granularity = match case.rng.u8(0..3) {
            0 => Granularity::ALL,
            1 => Granularity::parse("day")
                .and_then(|it| it.in_zone("America/New_York"))
                .expect("known"),
            _ => Granularity::parse("PT3H").expect("known"),
        };
        let mut dimensions: Vec<String> =
            case.dimensions.iter().map(|(name, _)| name.clone()).collect();
        case.rng.shuffle(&mut dimensions);
        let top_n = number == 1 && !dimensions.is_empty();
        dimensions.truncate(if top_n { 1 } else { case.rng.usize(0..=2) });
        let facts: Vec<&Fact> = all
            .iter()
            .filter(|fact| {
                let row = |name: &str| fact.value(name, &case.metrics);
                interval.contains(fact.time)
                    && filter.as_ref().is_none_or(|filter| truth(filter, &row) == Some(true))
            })
            .collect();
        let mut query = match top_n {
            true => Query::top_n(dimensions[0].as_str(), TopNMetric::Greatest("a0".into()), 3),
            false => Query::group_by(dimensions.iter().map(String::as_str)),
        };
        query = with_columns(query);
        query =
            query.granularity(granularity.clone()).interval(interval).threads(case.rng.usize(1..4));
        if let Some(filter) = filter.clone() {
            query = query.filter(filter);
        }
        for aggregation in &aggregations {
            query = query.aggregation(aggregation.clone());
        }
        let answer = rollup.query(&query).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let groups = grouped(&facts, &granularity, &dimensions, interval.start);
        let mut wanted: Vec<Vec<Value<'static>>> = groups
            .iter()
            .map(|((time, key), facts)| {
                let mut row = vec![Value::Long(*time)];
                row.extend(key.iter().map(|key| key.0.clone()));
                row.extend(aggregations.iter().map(|it| aggregate(it, facts, &case.metrics)));
                row
            })
            .collect();
        if top_n {
            wanted.sort_by(|left, right| {
                let by_figure = match (left[2].is_null(), right[2].is_null()) {
                    (false, false) => right[2].compare(&left[2]),
                    (left, right) => left.cmp(&right),
                };
                left[0].compare(&right[0]).then(by_figure).then(left[1].compare(&right[1]))
            });
            let mut kept: BTreeMap<Key, usize> = BTreeMap::new();
            wanted.retain(|row| {
                let count = kept.entry(Key(row[0].clone())).or_default();
                *count += 1;
                *count <= 3
            });
        }
        let what = format!("{query:?}");
        expect_rows(seed, &what, &answer.rows, &wanted);

        // The facts themselves.
        let order = if case.rng.bool() { ScanOrder::Ascending } else { ScanOrder::Descending };
        let mut query = with_columns(Query::scan([], order).interval(interval));
        if let Some(filter) = filter {
            query = query.filter(filter);
        }
        let answer = rollup.query(&query).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let names: Vec<String> = answer.columns.clone();
        let row = |fact: &&Fact| -> Vec<Value<'static>> {
            names.iter().map(|name| fact.value(name, &case.metrics)).collect()
        };
        let by_value = |left: &Vec<Value<'static>>, right: &Vec<Value<'static>>| {
            let pairs = left.iter().zip(right).map(|(left, right)| left.compare(right));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        };
        let times: Vec<_> = answer.rows.iter().map(|row| row[0].to_long().ok()).collect();
        match order {
            ScanOrder::Ascending => assert!(times.is_sorted(), "seed {seed}"),
            ScanOrder::Descending => assert!(times.iter().rev().is_sorted(), "seed {seed}"),
        }
        let (mut found, mut wanted) = (answer.rows, facts.iter().map(row).collect::<Vec<_>>());
        found.sort_by(by_value);
        wanted.sort_by(by_value);
        expect_rows(seed, &format!("scan of {:?}", case.metrics), &found, &wanted);
    }
    case.dimensions = dimensions;
}

/// Where segments are kept.
enum Home {
    Memory,
    /// A folder, which is opened again now and then.
    Disk(Arc<SimDisk>),
}

impl Home {
    fn open(&self, schema: Schema) -> Arc<Rollup> {
        Arc::new(match self {
            Home::Memory => Rollup::new(schema).expect("a schema"),
            Home::Disk(disk) => Rollup::on_disk(schema, disk.clone()).expect("segments"),
        })
    }
}

/// Seals, merges and opens again, or does not.
fn settle(case: &mut Case, home: &Home, rollup: &mut Arc<Rollup>, model: &mut Model) {
    match case.rng.u8(0..6) {
        0 | 1 => {}
        2 => {
            // In two steps, between which queries see facts that are no more live.
            rollup.cut().expect("memory");
            model.seal();
        }
        action => {
            rollup.seal().expect("a disk that works");
            model.seal();
            if action == 4 {
                while rollup.merge_all().expect("segments") {}
                model.merge(case.rollup);
            }
            if action == 5 && matches!(home, Home::Disk(_)) {
                *rollup = home.open(case.schema());
            }
        }
    }
}

fn check(seed: u64) {
    let mut case = Case::new(seed);
    let home = match case.rng.bool() {
        true => Home::Memory,
        false => Home::Disk(Arc::new(SimDisk::new())),
    };
    let mut rollup = home.open(case.schema());
    let mut model = Model::default();
    let threads = case.rng.usize(1..4);
    for _ in 0..case.rng.usize(1..6) {
        // Now and then more than a block of a segment.
        let count = if case.rng.u8(0..8) == 0 { 3_000 } else { 150 };
        let rows: Vec<(i64, Row)> = (0..case.rng.usize(0..count))
            .map(|_| (BEGIN + case.rng.i64(0..40 * HOUR / 60_000) * 60_000 / 7, case.row()))
            .collect();
        let columnar = case.rng.bool();
        std::thread::scope(|scope| {
            for share in rows.chunks(rows.len().div_ceil(threads).max(1)) {
                let rollup = &rollup;
                scope.spawn(move || {
                    let told = Writer::new(rollup).ingest(&batch(share, columnar)).expect("room");
                    assert_eq!(told.processed + told.thrown_away, share.len() as u64);
                });
            }
        });
        for (time, row) in &rows {
            let with_time = |name: &str| match name {
                "__time" => Value::Long(*time),
                name => crate::model::get(row, name),
            };
            if case.filter.as_ref().is_none_or(|filter| truth(filter, &with_time) == Some(true)) {
                let (dimensions, granularity) = (&case.dimensions, &case.granularity);
                model.add(row, *time, dimensions, &case.metrics, granularity, case.rollup);
            }
        }
        settle(&mut case, &home, &mut rollup, &mut model);
        let stats = rollup.stats();
        assert_eq!(stats.facts + stats.segment_facts, model.facts.len() as u64, "seed {seed}");
        check_queries(seed, &mut case, &rollup, &model);
    }
}

#[test]
fn random_questions_have_the_answers_of_plain_code() {
    let first: u64 = std::env::var("SEED").ok().map_or(1, |seed| seed.parse().expect("a number"));
    let count: u64 =
        std::env::var("CASES").ok().map_or(300, |count| count.parse().expect("a number"));
    for seed in first..first + count {
        check(seed);
    }
}
