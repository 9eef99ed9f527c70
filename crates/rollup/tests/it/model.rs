//! Roll-up in plain code: rows into facts, facts into answers, one after another.

use std::collections::{BTreeMap, BTreeSet};

use sapwood_rollup::{
    Aggregation, AggregationKind, DimensionKind, Filter, Granularity, Metric, MetricKind, Number,
    Value,
};

/// A row of input.
pub(crate) type Row = BTreeMap<String, Value<'static>>;

/// A value that can be a key.
#[derive(Debug, Clone)]
pub(crate) struct Key(pub(crate) Value<'static>);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.compare(&other.0)
    }
}

/// What a model remembers of a metric or a figure: everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) count: i64,
    /// Each value, and its time.
    pub(crate) values: Vec<(i64, Value<'static>)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Fact {
    /// Time and dimensions.
    key: (i64, Vec<Key>),
    pub(crate) time: i64,
    pub(crate) dimensions: BTreeMap<String, Value<'static>>,
    pub(crate) metrics: BTreeMap<String, Seen>,
}

/// Facts in plain code.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) facts: Vec<Fact>,
    known: BTreeMap<(i64, Vec<Key>), usize>,
    /// How many of the facts are in segments.
    pub(crate) sealed: usize,
}

pub(crate) fn get(row: &Row, name: &str) -> Value<'static> {
    row.get(name).cloned().unwrap_or(Value::Null)
}

/// A value as a dimension has it.
pub(crate) fn coded(value: Value<'static>, kind: DimensionKind) -> Value<'static> {
    let text = |value: &Value<'static>| match value {
        Value::Null => Value::Null,
        other => Value::from(other.to_string()),
    };
    match (kind, value) {
        (DimensionKind::Text, Value::List(values)) => {
            let mut texts: Vec<_> = values.iter().map(text).collect();
            texts.sort_by(Value::compare);
            match texts.len() {
                0 => Value::Null,
                1 => texts.remove(0),
                _ => Value::List(texts),
            }
        }
        (DimensionKind::Text, value) => text(&value),
        (DimensionKind::Long, value) => number(&value, Number::Long),
        (DimensionKind::Double, value) => number(&value, Number::Double),
    }
}

/// A value as a number of a type; null if it is none.
fn number(value: &Value<'static>, kind: Number) -> Value<'static> {
    match kind {
        Number::Long => value.to_long().ok().flatten().map_or(Value::Null, Value::Long),
        Number::Double => value.to_double().ok().flatten().map_or(Value::Null, Value::Double),
    }
}

/// The sketches of Apache DataSketches have tests of their own.
const NOT_DRAWN: &str = "the streams have no such sketch";

fn metric_number(kind: MetricKind) -> Option<Number> {
    match kind {
        MetricKind::Sum(number)
        | MetricKind::Min(number)
        | MetricKind::Max(number)
        | MetricKind::First(number)
        | MetricKind::Last(number) => Some(number),
        MetricKind::Quantiles { .. } | MetricKind::Variance => Some(Number::Double),
        MetricKind::Count | MetricKind::Distinct { .. } => None,
        MetricKind::Hll { .. } | MetricKind::Theta { .. } | MetricKind::Kll { .. } => {
            unreachable!("{NOT_DRAWN}")
        }
    }
}

impl Model {
    /// Live facts become those of segments: rows make others from here on.
    pub(crate) fn seal(&mut self) {
        self.sealed = self.facts.len();
        self.known.clear();
    }

    /// Facts of segments that agree become one, if there is roll-up.
    pub(crate) fn merge(&mut self, rollup: bool) {
        if !rollup {
            return;
        }
        let live = self.facts.split_off(self.sealed);
        let mut places: BTreeMap<(i64, Vec<Key>), usize> = BTreeMap::new();
        for fact in std::mem::take(&mut self.facts) {
            let at = *places.entry(fact.key.clone()).or_insert(self.facts.len());
            let Some(known) = self.facts.get_mut(at) else {
                self.facts.push(fact);
                continue;
            };
            for (name, seen) in fact.metrics {
                let into = known.metrics.get_mut(&name).expect("facts have the same metrics");
                into.count += seen.count;
                into.values.extend(seen.values);
            }
        }
        self.sealed = self.facts.len();
        self.known.clear();
        self.facts.extend(live);
        // The live facts stand elsewhere now.
        for (at, fact) in self.facts.iter().enumerate().skip(self.sealed) {
            let key = fact.key.clone();
            self.known.insert(key, at);
        }
    }

    pub(crate) fn add(
        &mut self,
        row: &Row,
        time: i64,
        dimensions: &[(String, DimensionKind)],
        metrics: &[Metric],
        granularity: &Granularity,
        rollup: bool,
    ) {
        let start = granularity.bucket(time).0;
        let coded: Vec<(String, Value<'static>)> = dimensions
            .iter()
            .map(|(name, kind)| (name.clone(), coded(get(row, name), *kind)))
            .collect();
        let key = (start, coded.iter().map(|(_, value)| Key(value.clone())).collect());
        let at = match self.known.get(&key) {
            Some(&at) if rollup => at,
            _ => {
                self.known.insert(key.clone(), self.facts.len());
                self.facts.push(Fact {
                    key,
                    time: start,
                    dimensions: coded.into_iter().collect(),
                    metrics: BTreeMap::new(),
                });
                self.facts.len() - 1
            }
        };
        let with_time = |name: &str| match name {
            "__time" => Value::Long(time),
            name => get(row, name),
        };
        for metric in metrics {
            let seen = self.facts[at].metrics.entry(metric.name.clone()).or_default();
            if metric.filter.as_ref().is_some_and(|filter| truth(filter, &with_time) != Some(true))
            {
                continue;
            }
            seen.count += 1;
            let Some(field) = &metric.field else { continue };
            let values = match get(row, field) {
                Value::List(values) if matches!(metric.kind, MetricKind::Distinct { .. }) => values,
                value => vec![value],
            };
            for value in values {
                let value = match metric_number(metric.kind) {
                    Some(kind) => number(&value, kind),
                    None => value,
                };
                if !value.is_null() {
                    seen.values.push((time, value));
                }
            }
        }
    }
}

impl Fact {
    /// A value as a filter or a scan sees it.
    pub(crate) fn value(&self, name: &str, metrics: &[Metric]) -> Value<'static> {
        if name == "__time" {
            return Value::Long(self.time);
        }
        if let Some(value) = self.dimensions.get(name) {
            return value.clone();
        }
        let metric = metrics.iter().find(|metric| metric.name == name);
        metric.map_or(Value::Null, |metric| figure(metric.kind, &self.metrics[name]))
    }
}

/// The figure that a metric has of what it has seen.
pub(crate) fn figure(kind: MetricKind, seen: &Seen) -> Value<'static> {
    let long = |value: &Value<'_>| value.to_long().expect("a long").expect("not null");
    let double = |value: &Value<'_>| value.to_double().expect("a double").expect("not null");
    let values = seen.values.iter().map(|(_, value)| value);
    let by_time = |left: &&(i64, Value<'static>), right: &&(i64, Value<'static>)| {
        left.0.cmp(&right.0).then_with(|| left.1.compare(&right.1))
    };
    let found = match kind {
        MetricKind::Count => return Value::Long(seen.count),
        MetricKind::Distinct { .. } => {
            let different: BTreeSet<Key> = values.cloned().map(Key).collect();
            return Value::Long(different.len() as i64);
        }
        _ if seen.values.is_empty() => None,
        MetricKind::Sum(Number::Long) => Some(Value::Long(values.map(long).sum())),
        MetricKind::Sum(Number::Double) => Some(Value::Double(values.map(double).sum())),
        MetricKind::Min(_) => values.min_by(|left, right| left.compare(right)).cloned(),
        MetricKind::Max(_) => values.max_by(|left, right| left.compare(right)).cloned(),
        MetricKind::First(_) => seen.values.iter().min_by(by_time).map(|(_, value)| value.clone()),
        MetricKind::Last(_) => seen.values.iter().max_by(by_time).map(|(_, value)| value.clone()),
        MetricKind::Quantiles { .. } => Some(quantile(seen, 0.5)),
        MetricKind::Variance => Some(variance(seen)),
        MetricKind::Hll { .. } | MetricKind::Theta { .. } | MetricKind::Kll { .. } => {
            unreachable!("{NOT_DRAWN}")
        }
    };
    found.unwrap_or(Value::Null)
}

pub(crate) fn quantile(seen: &Seen, share: f64) -> Value<'static> {
    let mut values: Vec<f64> = doubles(seen).collect();
    values.sort_by(f64::total_cmp);
    let position = share * (values.len() - 1) as f64;
    let (below, rest) = (position.floor() as usize, position.fract());
    let next = values.get(below + 1).copied().unwrap_or(values[below]);
    Value::Double(values[below] + (next - values[below]) * rest)
}

pub(crate) fn variance(seen: &Seen) -> Value<'static> {
    let count = seen.values.len() as f64;
    let mean = doubles(seen).sum::<f64>() / count;
    Value::Double(doubles(seen).map(|value| (value - mean) * (value - mean)).sum::<f64>() / count)
}

fn doubles(seen: &Seen) -> impl Iterator<Item = f64> {
    seen.values.iter().map(|(_, value)| value.to_double().expect("a double").expect("not null"))
}

/// Whether a filter takes a row, by the three truths of SQL.
pub(crate) fn truth(filter: &Filter, row: &dyn Fn(&str) -> Value<'static>) -> Option<bool> {
    let any = |column: &str, test: &dyn Fn(&Value<'static>) -> Option<bool>| match row(column) {
        Value::List(values) if values.is_empty() => test(&Value::Null),
        Value::List(values) => or(values.iter().map(test)),
        value => test(&value),
    };
    match filter {
        Filter::True => Some(true),
        Filter::False => Some(false),
        Filter::And(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| truth(part, row)).collect();
            not(or(parts.into_iter().map(not)))
        }
        Filter::Or(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| truth(part, row)).collect();
            or(parts.into_iter())
        }
        Filter::Not(part) => not(truth(part, row)),
        Filter::In { column, values } => any(column, &|value| match value {
            Value::Null if values.iter().any(Value::is_null) => Some(true),
            Value::Null => None,
            Value::Text(text) => {
                Some(values.iter().any(|known| !known.is_null() && known.to_string() == **text))
            }
            number => Some(values.iter().any(|known| same_number(known, number))),
        }),
        Filter::IsNull { column } => any(column, &|value| Some(value.is_null())),
        Filter::Bound { column, lower, lower_strict, upper, upper_strict, numeric: true } => {
            any(column, &|value| {
                if value.is_null() {
                    return None;
                }
                let Ok(Some(value)) = value.to_double() else { return Some(false) };
                let bound = |bound: &Value<'_>| bound.to_double().ok().flatten().expect("a number");
                let above = lower.as_ref().is_none_or(|lower| {
                    if *lower_strict { value > bound(lower) } else { value >= bound(lower) }
                });
                let below = upper.as_ref().is_none_or(|upper| {
                    if *upper_strict { value < bound(upper) } else { value <= bound(upper) }
                });
                Some(above && below)
            })
        }
        Filter::Bound { column, lower, upper, .. } => any(column, &|value| {
            if value.is_null() {
                return None;
            }
            let text = value.to_string();
            Some(
                lower.as_ref().is_none_or(|lower| text >= lower.to_string())
                    && upper.as_ref().is_none_or(|upper| text <= upper.to_string()),
            )
        }),
        Filter::Contains { column, text, .. } => any(column, &|value| match value {
            Value::Null => None,
            value => Some(value.to_string().to_lowercase().contains(&text.to_lowercase())),
        }),
        Filter::Like { column, pattern, .. } => any(column, &|value| match value {
            Value::Null => None,
            value => Some(like(&value.to_string(), pattern)),
        }),
        Filter::Interval { column, intervals } => {
            any(column, &|value| match value {
                Value::Null => None,
                value => {
                    Some(value.to_long().ok().flatten().is_some_and(|time| {
                        intervals.iter().any(|interval| interval.contains(time))
                    }))
                }
            })
        }
        other => panic!("the model has no {other:?}"),
    }
}

fn same_number(known: &Value<'_>, number: &Value<'_>) -> bool {
    match (known.to_double(), number.to_double()) {
        (Ok(Some(known)), Ok(Some(number))) => known == number,
        _ => false,
    }
}

/// `%` is any text; there is no other sign in the patterns of the model.
fn like(text: &str, pattern: &str) -> bool {
    let parts: Vec<&str> = pattern.split('%').collect();
    let [first, middle @ .., last] = &parts[..] else { return text == pattern };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn not(truth: Option<bool>) -> Option<bool> {
    truth.map(|truth| !truth)
}

fn or(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(false);
    for part in parts {
        match part {
            Some(true) => return Some(true),
            None => result = None,
            Some(false) => {}
        }
    }
    result
}

/// A figure of facts.
pub(crate) fn aggregate(
    aggregation: &Aggregation,
    facts: &[&Fact],
    metrics: &[Metric],
) -> Value<'static> {
    let taken = facts.iter().filter(|fact| {
        let row = |name: &str| fact.value(name, metrics);
        aggregation.filter.as_ref().is_none_or(|filter| truth(filter, &row) == Some(true))
    });
    let mut seen = Seen::default();
    for fact in taken {
        seen.count += 1;
        let Some(field) = &aggregation.field else { continue };
        let metric = metrics.iter().find(|metric| metric.name == *field);
        match metric.map(|metric| (metric.kind, &fact.metrics[field])) {
            Some((
                MetricKind::Distinct { .. } | MetricKind::Quantiles { .. } | MetricKind::Variance,
                kept,
            )) => seen.values.extend(kept.values.iter().cloned()),
            // First and last keep the time of their value.
            Some((kind @ (MetricKind::First(_) | MetricKind::Last(_)), kept)) => {
                let value = figure(kind, kept);
                let times = kept.values.iter().filter(|(_, known)| known.compare(&value).is_eq());
                let times = times.map(|(time, _)| *time);
                let time =
                    if matches!(kind, MetricKind::First(_)) { times.min() } else { times.max() };
                seen.values.extend(time.map(|time| (time, value)));
            }
            _ => {
                let values = match fact.value(field, metrics) {
                    Value::List(values) => values,
                    value => vec![value],
                };
                let values = values.into_iter().filter(|value| !value.is_null());
                seen.values.extend(values.map(|value| (fact.time, value)));
            }
        }
    }
    let numbers = |kind: Number, seen: &Seen| {
        let values = seen.values.iter().map(|(time, value)| (*time, number(value, kind)));
        Seen { count: seen.count, values: values.filter(|(_, value)| !value.is_null()).collect() }
    };
    match aggregation.kind {
        AggregationKind::Count => Value::Long(seen.count),
        AggregationKind::Sum(kind) => figure(MetricKind::Sum(kind), &numbers(kind, &seen)),
        AggregationKind::Min(kind) => figure(MetricKind::Min(kind), &numbers(kind, &seen)),
        AggregationKind::Max(kind) => figure(MetricKind::Max(kind), &numbers(kind, &seen)),
        AggregationKind::First(kind) => figure(MetricKind::First(kind), &numbers(kind, &seen)),
        AggregationKind::Last(kind) => figure(MetricKind::Last(kind), &numbers(kind, &seen)),
        AggregationKind::Distinct { precision } => {
            figure(MetricKind::Distinct { precision }, &seen)
        }
        AggregationKind::Quantile { share, .. } => {
            let seen = numbers(Number::Double, &seen);
            if seen.values.is_empty() { Value::Null } else { quantile(&seen, share) }
        }
        AggregationKind::Variance { root } => {
            let seen = numbers(Number::Double, &seen);
            if seen.values.is_empty() {
                return Value::Null;
            }
            match variance(&seen) {
                Value::Double(variance) if root => Value::Double(variance.sqrt()),
                variance => variance,
            }
        }
        AggregationKind::Hll { .. }
        | AggregationKind::Theta { .. }
        | AggregationKind::Kll { .. } => unreachable!("{NOT_DRAWN}"),
    }
}
