//! Aggregates: what each group remembers of its values.
//!
//! The states of all groups stand in vectors, so that a batch goes into them in one loop. States of several
//! threads merge. Sums are exact until they are rounded at the end: they depend neither on the order of the rows nor on
//! the number of threads, and are an error only if the result itself is too large.

mod pairs;

use std::collections::HashMap;

use datasketches::common::SearchCriteria;
use datasketches::hll::{HllSketch, HllType, HllUnion};
use datasketches::kll::KllSketch;
use sapwood_aggregate::{FloatSum, spread};
use sapwood_schema::{Cell, Data, POWERS_OF_TEN, Value, Vector};

use crate::error::{Error, Result};
use crate::functions::compare;
use crate::group::{DistinctValues, encode_value};
use crate::kind::Kind;
use crate::node::Node;
use crate::order::{Direction, Nulls};
use pairs::Pairs;

/// What is computed of the values of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Aggregate {
    CountRows,
    Count,
    Sum,
    Average,
    Min,
    Max,
    /// Of any row.
    First,
    Variance(Spread, Root),
    BoolAnd,
    BoolOr,
    /// The value at a share of the sorted values, interpolated.
    QuantileContinuous(f64),
    /// The least value with that share of the values at or below it.
    QuantileDiscrete(f64),
    ApproximateQuantile(f64),
    ApproximateDistinct,
    /// The value that most rows have; of several, the least.
    Mode,
    /// The value of the row whose other value is the greatest, or the least.
    ArgMax,
    ArgMin,
    Covariance(Spread),
    Correlation,
    /// Texts, one behind the other.
    Join {
        direction: Direction,
        nulls: Nulls,
    },
}

/// An aggregate of some expression, for each group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AggregateCall {
    pub(crate) aggregate: Aggregate,
    /// The value of a row; `None` where rows are counted.
    pub(crate) input: Option<Node>,
    /// The value beside it, of aggregates of two.
    pub(crate) second: Option<Node>,
    /// Between texts that are joined.
    pub(crate) separator: Option<String>,
    /// Which rows it takes: `filter (where ...)`.
    pub(crate) filter: Option<Node>,
    pub(crate) is_distinct: bool,
    /// The type of the result.
    pub(crate) kind: Kind,
}

/// Over what squared differences are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// One less than the values.
    Sample,
    Population,
}

impl Spread {
    fn divisor(self, count: u64) -> u64 {
        match self {
            Spread::Sample => count.saturating_sub(1),
            Spread::Population => count,
        }
    }
}

/// Whether the root of a variance is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    Variance,
    Deviation,
}

/// The states of an aggregate, one for each group.
#[derive(Debug)]
pub(crate) enum States {
    Counts(Vec<u64>),
    /// Sums of whole numbers and of units of decimals, and how many there were.
    Whole {
        /// Parts of the sums; the rest is in `spilled`.
        sums: Vec<i128>,
        counts: Vec<u64>,
        spilled: HashMap<u32, FloatSum>,
    },
    /// Sums of floats, and how many there were.
    Floats {
        sums: Vec<FloatSum>,
        counts: Vec<u64>,
        /// Sums of the values of a group that are infinite or NaN.
        infinite: HashMap<u32, f64>,
    },
    Moments {
        moments: Vec<Moments>,
        /// Groups that have a value that is infinite or NaN.
        infinite: HashMap<u32, f64>,
    },
    /// A value of each group; null until there is one.
    Extremes {
        values: Vec<Option<Vector>>,
        is_max: bool,
        is_first: bool,
    },
    Truths {
        values: Vec<Option<bool>>,
        is_and: bool,
    },
    /// All values.
    Values(Vec<Vector>),
    Quantiles(Vec<Quantiles>),
    Distinct(Vec<HllSketch>),
    Pairs(Pairs),
}

/// Sums of floats and of their squares, and how many there were.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moments {
    count: u64,
    sum: FloatSum,
    squares: FloatSum,
}

impl Moments {
    /// The variance; `None` of too few values.
    fn variance(&self, over: Spread) -> Result<Option<f64>> {
        let divisor = over.divisor(self.count);
        if divisor == 0 {
            return Ok(None);
        }
        let variance = spread(&self.sum, &self.squares, self.count, divisor);
        variance.map(Some).ok_or_else(|| Error::value("a variance is too large for double"))
    }
}

/// Values of which quantiles are wanted: all while they are few, then a sketch.
#[derive(Debug)]
pub(crate) enum Quantiles {
    Few(Vec<f64>),
    /// Of [`place_of`] each.
    Many(Box<KllSketch<i64>>),
}

/// A whole number that sorts as a float does.
fn place_of(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    bits ^ (bits >> 63).cast_unsigned().wrapping_shr(1).cast_signed()
}

/// The float whose place that is.
fn at_place(place: i64) -> f64 {
    let bits = place ^ (place >> 63).cast_unsigned().wrapping_shr(1).cast_signed();
    f64::from_bits(bits.cast_unsigned())
}

/// Values up to which an approximate quantile is exact.
const FEW_VALUES: usize = 4_096;

/// Of the sketch: ranks are off by 0.17 % at 99 % confidence.
const KLL_K: u16 = 1_000;

/// Of the sketch: counts are off by 0.8 % (one standard error), and less while they are few.
const HLL_LG_K: u8 = 14;

impl Quantiles {
    fn push(&mut self, value: f64) {
        match self {
            Quantiles::Few(values) if values.len() < FEW_VALUES => values.push(value),
            Quantiles::Few(values) => {
                let mut sketch = KllSketch::new(KLL_K).expect("a size that it allows");
                values.iter().for_each(|value| sketch.update(place_of(*value)));
                sketch.update(place_of(value));
                *self = Quantiles::Many(Box::new(sketch));
            }
            Quantiles::Many(sketch) => sketch.update(place_of(value)),
        }
    }

    fn merge(&mut self, other: &Quantiles) {
        match (&mut *self, other) {
            (_, Quantiles::Few(values)) => values.iter().for_each(|value| self.push(*value)),
            (Quantiles::Many(sketch), Quantiles::Many(other)) => {
                sketch.merge(other).expect("they are of one size");
            }
            (Quantiles::Few(values), Quantiles::Many(other)) => {
                let mut sketch = other.clone();
                values.iter().for_each(|value| sketch.update(place_of(*value)));
                *self = Quantiles::Many(sketch);
            }
        }
    }
}

/// An aggregate of one expression, with its states.
#[derive(Debug)]
pub(crate) struct Accumulator {
    pub(crate) aggregate: Aggregate,
    /// The kind of the values, and of those beside them.
    input: Kind,
    second: Kind,
    /// Between texts that are joined.
    separator: String,
    states: States,
    /// Where only values count that differ.
    distinct: Option<Distinct>,
}

/// The values that count, in the order in which they came.
#[derive(Debug)]
struct Distinct {
    set: DistinctValues,
    groups: Vec<u32>,
    values: Vector,
}

impl Distinct {
    /// Whether the value of a row is new in a group.
    fn insert(&mut self, group: u32, vector: &Vector, row: usize) -> bool {
        let is_new = self.set.insert(group, vector, row);
        if is_new {
            self.groups.push(group);
            self.values.push_from(vector, row);
        }
        is_new
    }
}

impl Accumulator {
    pub(crate) fn new(call: &AggregateCall) -> Accumulator {
        let aggregate = call.aggregate;
        let input = call.input.as_ref().map_or(&Kind::Null, |input| &input.kind);
        let second = call.second.as_ref().map_or(input, |second| &second.kind);
        let states = match aggregate {
            Aggregate::CountRows | Aggregate::Count => States::Counts(Vec::new()),
            Aggregate::Sum | Aggregate::Average => match input {
                Kind::Float => States::Floats {
                    sums: Vec::new(),
                    counts: Vec::new(),
                    infinite: HashMap::new(),
                },
                _ => {
                    States::Whole { sums: Vec::new(), counts: Vec::new(), spilled: HashMap::new() }
                }
            },
            Aggregate::Min | Aggregate::Max | Aggregate::First => States::Extremes {
                values: Vec::new(),
                is_max: aggregate == Aggregate::Max,
                is_first: aggregate == Aggregate::First,
            },
            Aggregate::Variance(..) => {
                States::Moments { moments: Vec::new(), infinite: HashMap::new() }
            }
            Aggregate::BoolAnd | Aggregate::BoolOr => {
                States::Truths { values: Vec::new(), is_and: aggregate == Aggregate::BoolAnd }
            }
            Aggregate::QuantileContinuous(_) | Aggregate::QuantileDiscrete(_) | Aggregate::Mode => {
                States::Values(Vec::new())
            }
            Aggregate::ApproximateQuantile(_) => States::Quantiles(Vec::new()),
            Aggregate::ApproximateDistinct => States::Distinct(Vec::new()),
            other => {
                let pairs = Pairs::new(other);
                States::Pairs(pairs.expect("all others are of two values"))
            }
        };
        let values = || Vector::new(input.data());
        let distinct = call.is_distinct.then(|| Distinct {
            set: DistinctValues::default(),
            groups: Vec::new(),
            values: values(),
        });
        let separator = call.separator.clone().unwrap_or_default();
        let (input, second) = (input.clone(), second.clone());
        Accumulator { aggregate, input, second, separator, states, distinct }
    }

    /// Makes room for groups up to a number.
    pub(crate) fn grow(&mut self, groups: usize) {
        let data = self.input.data();
        match &mut self.states {
            States::Pairs(pairs) => pairs.grow(groups, &data, &self.second.data()),
            States::Counts(counts) => counts.resize(groups, 0),
            States::Whole { sums, counts, .. } => {
                sums.resize(groups, 0);
                counts.resize(groups, 0);
            }
            States::Floats { sums, counts, .. } => {
                sums.resize_with(groups, FloatSum::default);
                counts.resize(groups, 0);
            }
            States::Moments { moments, .. } => moments.resize_with(groups, Moments::default),
            States::Extremes { values, .. } => values.resize(groups, None),
            States::Truths { values, .. } => values.resize(groups, None),
            States::Values(values) => values.resize_with(groups, || Vector::new(data.clone())),
            States::Quantiles(values) => {
                values.resize_with(groups, || Quantiles::Few(Vec::new()));
            }
            States::Distinct(sketches) => {
                sketches.resize_with(groups, || {
                    HllSketch::new(HLL_LG_K, HllType::Hll8).expect("a size that it allows")
                });
            }
        }
    }

    /// Takes the values of some rows, each into its group: `groups` has one for each row. `second`
    /// has those beside them, if they are others.
    pub(crate) fn update(
        &mut self,
        vector: Option<&Vector>,
        second: Option<&Vector>,
        rows: &[u32],
        groups: &[u32],
    ) {
        let Some(vector) = vector else {
            let States::Counts(counts) = &mut self.states else { unreachable!("rows are counted") };
            groups.iter().for_each(|&group| counts[group as usize] += 1);
            return;
        };
        let mut new_rows = Vec::new();
        let mut new_groups = Vec::new();
        let (mut rows, mut groups) = (rows, groups);
        if let Some(distinct) = &mut self.distinct {
            for (&row, &group) in rows.iter().zip(groups) {
                if !vector.is_null(row as usize) && distinct.insert(group, vector, row as usize) {
                    new_rows.push(row);
                    new_groups.push(group);
                }
            }
            (rows, groups) = (&new_rows, &new_groups);
        }
        match &mut self.states {
            States::Pairs(pairs) => pairs.update(vector, second.unwrap_or(vector), rows, groups),
            states => states.update(vector, rows, groups),
        }
    }

    /// Takes what another has of its groups, each of which is a group here.
    pub(crate) fn merge(&mut self, other: &Accumulator, groups: &[u32]) {
        let Some(distinct) = &other.distinct else {
            return self.states.merge(&other.states, groups);
        };
        let rows: Vec<u32> = (0..distinct.values.len() as u32).collect();
        let groups: Vec<u32> = distinct.groups.iter().map(|own| groups[*own as usize]).collect();
        self.update(Some(&distinct.values), None, &rows, &groups);
    }

    /// The result of each group, of the kind that the aggregate has.
    pub(crate) fn finish(self, kind: &Kind) -> Result<Vector> {
        let mut vector = Vector::new(kind.data());
        match self.states {
            States::Pairs(pairs) => pairs.finish(self.aggregate, &self.separator, &mut vector)?,
            States::Counts(counts) => {
                vector.data = Data::Int(counts.into_iter().map(|count| count as i64).collect());
            }
            States::Whole { sums, counts, mut spilled } => {
                for ((sum, count), group) in sums.into_iter().zip(counts).zip(0..) {
                    let spilled = spilled.remove(&group);
                    match (count, self.aggregate) {
                        (0, _) => vector.push_null(),
                        (_, Aggregate::Sum) => {
                            vector.push_cell(&whole_sum(sum, spilled, &self.input)?);
                        }
                        (count, _) => {
                            let mean = whole_mean(sum, spilled, count, &self.input)?;
                            vector.push_value(&Value::Float(mean));
                        }
                    }
                }
            }
            States::Floats { sums, counts, infinite } => {
                for ((sum, count), group) in sums.into_iter().zip(counts).zip(0..) {
                    let result = match (count, infinite.get(&group), self.aggregate) {
                        (0, ..) => None,
                        (_, Some(infinite), _) => Some(*infinite),
                        (_, None, Aggregate::Sum) => {
                            Some(sum.rounded().ok_or_else(|| too_large(&Kind::Float))?)
                        }
                        (count, None, _) => {
                            Some(sum.quotient(count, 0).ok_or_else(|| too_large(&Kind::Float))?)
                        }
                    };
                    vector.push_value(&result.map_or(Value::Null, Value::Float));
                }
            }
            States::Moments { moments, infinite } => {
                let Aggregate::Variance(spread, root) = self.aggregate else {
                    unreachable!("moments are of variances")
                };
                for (moments, group) in moments.into_iter().zip(0..) {
                    let variance = match infinite.contains_key(&group) {
                        true => Some(f64::NAN),
                        false => moments.variance(spread)?,
                    };
                    let result = match root {
                        Root::Variance => variance,
                        Root::Deviation => variance.map(f64::sqrt),
                    };
                    vector.push_value(&result.map_or(Value::Null, Value::Float));
                }
            }
            States::Extremes { values, .. } => {
                for value in values {
                    match value {
                        Some(value) => vector.push_from(&value, 0),
                        None => vector.push_null(),
                    }
                }
            }
            States::Truths { values, .. } => {
                values.into_iter().for_each(|value| vector.push_value(&Value::from(value)));
            }
            States::Values(values) => {
                for values in values {
                    self.aggregate.quantile_of(values, &self.input, &mut vector);
                }
            }
            States::Quantiles(all) => {
                let Aggregate::ApproximateQuantile(share) = self.aggregate else {
                    unreachable!("sketches are of quantiles")
                };
                for quantiles in all {
                    match quantiles {
                        Quantiles::Few(values) if values.is_empty() => vector.push_null(),
                        Quantiles::Few(values) => {
                            vector.push_value(&Value::Float(interpolated(values, share)));
                        }
                        Quantiles::Many(sketch) => match sketch
                            .quantile(share, SearchCriteria::Inclusive)
                        {
                            Ok(Some(place)) => vector.push_value(&Value::Float(at_place(place))),
                            _ => vector.push_null(),
                        },
                    }
                }
            }
            States::Distinct(sketches) => {
                for sketch in sketches {
                    let count = sketch.estimate().round() as i64;
                    vector.push_value(&Value::from(count));
                }
            }
        }
        Ok(vector)
    }

    /// Bytes of memory that the states take, about.
    pub(crate) fn memory(&self) -> usize {
        let states = match &self.states {
            States::Counts(counts) => counts.len() * 8,
            States::Whole { sums, .. } => sums.len() * 24,
            States::Floats { sums, .. } => sums.len() * 32,
            States::Moments { moments, .. } => moments.len() * size_of::<Moments>(),
            States::Extremes { values, .. } => values.len() * 160,
            States::Truths { values, .. } => values.len(),
            States::Values(values) => values.iter().map(|values| values.memory() + 64).sum(),
            States::Quantiles(all) => {
                let each = |quantiles: &Quantiles| match quantiles {
                    Quantiles::Few(values) => values.capacity() * 8 + 32,
                    Quantiles::Many(_) => usize::from(KLL_K) * 32,
                };
                all.iter().map(each).sum()
            }
            States::Distinct(sketches) => sketches.len() * (1 << HLL_LG_K),
            States::Pairs(pairs) => pairs.memory(),
        };
        let distinct = self.distinct.as_ref().map_or(0, |distinct| {
            distinct.set.memory() + distinct.groups.len() * 4 + distinct.values.memory()
        });
        states + distinct
    }
}

impl States {
    fn update(&mut self, vector: &Vector, rows: &[u32], groups: &[u32]) {
        let nulls = vector.nulls.as_deref();
        let places = || {
            let places = rows.iter().map(|&row| row as usize);
            let places = places.zip(groups.iter().map(|&group| group as usize));
            places.filter(|&(row, _)| nulls.is_none_or(|nulls| !nulls[row]))
        };
        match (self, &vector.data) {
            (States::Counts(counts), _) => places().for_each(|(_, group)| counts[group] += 1),
            (States::Whole { sums, counts, .. }, Data::Int(values)) => {
                for (row, group) in places() {
                    // 2^63 values of 64 bits go into 127, and are alone in their sum.
                    sums[group] += i128::from(values[row]);
                    counts[group] += 1;
                }
            }
            (States::Whole { sums, counts, spilled }, Data::Big(values)) => {
                for (row, group) in places() {
                    add_whole(&mut sums[group], values[row], group, spilled);
                    counts[group] += 1;
                }
            }
            (States::Whole { sums, counts, spilled }, Data::Huge(values)) => {
                for (row, group) in places() {
                    match i128::try_from(values[row]) {
                        Ok(value) => add_whole(&mut sums[group], value, group, spilled),
                        Err(_) => spilled.entry(group as u32).or_default().add_uint(values[row]),
                    }
                    counts[group] += 1;
                }
            }
            (States::Floats { sums, counts, infinite }, Data::Float(values)) => {
                for (row, group) in places() {
                    counts[group] += 1;
                    match values[row] {
                        value if value.is_finite() => sums[group].add(value),
                        value => *infinite.entry(group as u32).or_default() += value,
                    }
                }
            }
            (States::Moments { moments, infinite }, Data::Float(values)) => {
                for (row, group) in places() {
                    let moments = &mut moments[group];
                    moments.count += 1;
                    match values[row] {
                        value if value.is_finite() => {
                            moments.sum.add(value);
                            moments.squares.add_squared(value);
                        }
                        value => *infinite.entry(group as u32).or_default() += value,
                    }
                }
            }
            (States::Extremes { values, is_max, is_first }, _) => {
                for (row, group) in places() {
                    offer(&mut values[group], vector, row, *is_max, *is_first);
                }
            }
            (States::Truths { values, is_and }, Data::Bool(truths)) => {
                for (row, group) in places() {
                    let value = values[group].get_or_insert(*is_and);
                    *value = if *is_and { *value && truths[row] } else { *value || truths[row] };
                }
            }
            (States::Values(all), Data::Float(values)) => {
                for (row, group) in places() {
                    let Data::Float(own) = &mut all[group].data else {
                        unreachable!("they are of the values' representation")
                    };
                    own.push(values[row]);
                }
            }
            (States::Values(all), _) => {
                for (row, group) in places() {
                    all[group].push_from(vector, row);
                }
            }
            (States::Quantiles(all), Data::Float(values)) => {
                for (row, group) in places() {
                    all[group].push(values[row]);
                }
            }
            (States::Distinct(sketches), _) => {
                let mut bytes = Vec::new();
                for (row, group) in places() {
                    bytes.clear();
                    encode_value(vector, row, &mut bytes);
                    sketches[group].update(&bytes[..]);
                }
            }
            (states, data) => unreachable!("{data:?} do not go into {states:?}"),
        }
    }

    fn merge(&mut self, other: &States, groups: &[u32]) {
        let at = |own: usize| groups[own] as usize;
        match (self, other) {
            (States::Counts(counts), States::Counts(others)) => {
                others.iter().enumerate().for_each(|(own, count)| counts[at(own)] += count);
            }
            (
                States::Whole { sums, counts, spilled },
                States::Whole { sums: other_sums, counts: other_counts, spilled: other_spilled },
            ) => {
                for (own, (sum, count)) in other_sums.iter().zip(other_counts).enumerate() {
                    add_whole(&mut sums[at(own)], *sum, at(own), spilled);
                    counts[at(own)] += count;
                }
                for (own, other) in other_spilled {
                    spilled.entry(groups[*own as usize]).or_default().merge(other);
                }
            }
            (
                States::Floats { sums, counts, infinite },
                States::Floats { sums: other_sums, counts: other_counts, infinite: other_infinite },
            ) => {
                for (own, (sum, count)) in other_sums.iter().zip(other_counts).enumerate() {
                    sums[at(own)].merge(sum);
                    counts[at(own)] += count;
                }
                for (own, other) in other_infinite {
                    *infinite.entry(groups[*own as usize]).or_default() += other;
                }
            }
            (
                States::Moments { moments, infinite },
                States::Moments { moments: others, infinite: other_infinite },
            ) => {
                for (own, other) in others.iter().enumerate() {
                    let moments = &mut moments[at(own)];
                    moments.count += other.count;
                    moments.sum.merge(&other.sum);
                    moments.squares.merge(&other.squares);
                }
                for (own, other) in other_infinite {
                    *infinite.entry(groups[*own as usize]).or_default() += other;
                }
            }
            (
                States::Extremes { values, is_max, is_first },
                States::Extremes { values: others, .. },
            ) => {
                for (own, other) in others.iter().enumerate() {
                    if let Some(other) = other {
                        offer(&mut values[at(own)], other, 0, *is_max, *is_first);
                    }
                }
            }
            (States::Pairs(pairs), States::Pairs(others)) => pairs.merge(others, groups),
            (States::Truths { values, is_and }, States::Truths { values: others, .. }) => {
                for (own, other) in others.iter().enumerate() {
                    let value = &mut values[at(own)];
                    *value = match (*value, *other) {
                        (Some(left), Some(right)) if *is_and => Some(left && right),
                        (Some(left), Some(right)) => Some(left || right),
                        (left, right) => left.or(right),
                    };
                }
            }
            (States::Values(all), States::Values(others)) => {
                for (own, other) in others.iter().enumerate() {
                    (0..other.len()).for_each(|row| all[at(own)].push_from(other, row));
                }
            }
            (States::Quantiles(all), States::Quantiles(others)) => {
                others.iter().enumerate().for_each(|(own, other)| all[at(own)].merge(other));
            }
            (States::Distinct(sketches), States::Distinct(others)) => {
                for (own, other) in others.iter().enumerate() {
                    let mut union = HllUnion::new(HLL_LG_K).expect("a size that it allows");
                    union.update(&sketches[at(own)]);
                    union.update(other);
                    sketches[at(own)] = union.to_sketch(HllType::Hll8);
                }
            }
            (states, other) => unreachable!("{other:?} do not go into {states:?}"),
        }
    }
}

/// Adds a whole number to the sum of a group, or to its spilled part where 128 bits do not hold it.
#[inline]
fn add_whole(sum: &mut i128, value: i128, group: usize, spilled: &mut HashMap<u32, FloatSum>) {
    match sum.checked_add(value) {
        Some(next) => *sum = next,
        None => {
            spilled.entry(group as u32).or_default().add_int(*sum);
            *sum = value;
        }
    }
}

/// The sum of whole numbers, or of units of decimals.
fn whole_sum(sum: i128, spilled: Option<FloatSum>, kind: &Kind) -> Result<Cell<'static>> {
    let spilled = spilled.map(|mut spilled| {
        spilled.add_int(sum);
        spilled
    });
    if *kind == Kind::Huge {
        let sum = match &spilled {
            Some(spilled) => spilled.to_uint(),
            None => u128::try_from(sum).ok(),
        };
        return sum.map(Cell::Huge).ok_or_else(|| too_large(kind));
    }
    let sum = match &spilled {
        Some(spilled) => spilled.to_int(),
        None => Some(sum),
    };
    let limit = match kind {
        Kind::Decimal(_) => POWERS_OF_TEN[38].unsigned_abs(),
        _ => u128::MAX,
    };
    let sum = sum.filter(|sum| sum.unsigned_abs() < limit);
    sum.map(Cell::Big).ok_or_else(|| too_large(kind))
}

/// The mean of whole numbers or of decimals.
fn whole_mean(sum: i128, spilled: Option<FloatSum>, count: u64, kind: &Kind) -> Result<f64> {
    /// Floats have all whole numbers up to this.
    const FLOAT_MAX: u128 = 1 << 53;
    let scale = match kind {
        Kind::Decimal(scale) => *scale,
        _ => 0,
    };
    let divisor = POWERS_OF_TEN[usize::from(scale)].unsigned_abs().checked_mul(count.into());
    match divisor {
        // Both are exact, and their quotient is rounded once.
        Some(divisor)
            if spilled.is_none() && sum.unsigned_abs() <= FLOAT_MAX && divisor <= FLOAT_MAX =>
        {
            Ok(sum as f64 / divisor as f64)
        }
        _ => {
            let mut all = spilled.unwrap_or_default();
            all.add_int(sum);
            all.quotient(count, scale).ok_or_else(|| too_large(&Kind::Float))
        }
    }
}

fn too_large(kind: &Kind) -> Error {
    let next = match kind {
        Kind::Float => "",
        _ => ": sum(cast(... as double))",
    };
    Error::value(format!("a sum is too large for {kind}{next}"))
}

/// Takes a value if it is better than the one that is there.
fn offer(best: &mut Option<Vector>, vector: &Vector, row: usize, is_max: bool, is_first: bool) {
    let is_better = match best {
        None => true,
        Some(_) if is_first => false,
        Some(best) if is_max => compare(vector, row, best, 0).is_gt(),
        Some(best) => compare(vector, row, best, 0).is_lt(),
    };
    if is_better {
        let mut one = vector.emptied();
        one.push_from(vector, row);
        *best = Some(one);
    }
}

/// The value at a share of the sorted values, between two neighbours in proportion.
fn interpolated(mut values: Vec<f64>, share: f64) -> f64 {
    let order = |left: &f64, right: &f64| crate::out::compare_floats(*left, *right);
    let place = share * (values.len() - 1) as f64;
    let (_, below, behind) = values.select_nth_unstable_by(place.floor() as usize, order);
    let below = *below;
    match behind.iter().copied().min_by(order) {
        Some(above) if place.fract() != 0.0 && above != below => {
            let (difference, share) = (above - below, place.fract());
            match difference.is_finite() || !above.is_finite() || !below.is_finite() {
                true => below + difference * share,
                // The difference of two finite values may be beyond the range of floats.
                false => below * (1.0 - share) + above * share,
            }
        }
        _ => below,
    }
}

impl Aggregate {
    /// Appends the quantile of some values.
    fn quantile_of(&self, values: Vector, kind: &Kind, out: &mut Vector) {
        if values.is_empty() {
            return out.push_null();
        }
        match (self, values.data) {
            (Aggregate::QuantileContinuous(share), Data::Float(values)) => {
                out.push_value(&Value::Float(interpolated(values, *share)));
            }
            (Aggregate::QuantileDiscrete(share), data) => {
                let values = Vector::new(data);
                let mut order: Vec<usize> = (0..values.len()).collect();
                let at = (share * values.len() as f64).ceil() as usize;
                let order_of =
                    |&left: &usize, &right: &usize| compare(&values, left, &values, right);
                let (_, &mut at, _) = order.select_nth_unstable_by(at.max(1) - 1, order_of);
                out.push_from(&values, at);
            }
            (Aggregate::Mode, data) => {
                let values = Vector::new(data);
                let mut order: Vec<usize> = (0..values.len()).collect();
                order.sort_unstable_by(|&left, &right| compare(&values, left, &values, right));
                let runs =
                    order.chunk_by(|&one, &next| compare(&values, one, &values, next).is_eq());
                // The first of the longest.
                let longest = runs.rev().max_by_key(|run| run.len());
                out.push_from(&values, longest.expect("there is a value")[0]);
            }
            (aggregate, data) => unreachable!("{aggregate:?} of {data:?} ({kind})"),
        }
    }
}
