//! States of aggregates of two values a row. Rows in which either is null are passed over, but for
//! texts: these may be sorted by a null.

use std::cmp::Ordering;

use sapwood_aggregate::{FloatSum, joint_spread, spread};
use sapwood_schema::{Data, Value, Vector};

use super::{Aggregate, Spread};
use crate::error::{Error, Result};
use crate::functions::compare;
use crate::order::{Direction, Nulls};

/// The states, one for each group.
#[derive(Debug)]
pub(crate) enum Pairs {
    /// The value beside the greatest or the least other one.
    Best {
        best: Vec<Option<Pair>>,
        is_max: bool,
    },
    Products(Vec<Products>),
    /// Texts, and what they are sorted by.
    Texts(Vec<Pair>),
}

/// Values, and those beside them.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    values: Vector,
    others: Vector,
}

/// Sums of pairs of floats, of their squares and of their products.
#[derive(Debug, Default)]
pub(crate) struct Products {
    count: u64,
    sums: [FloatSum; 2],
    squares: [FloatSum; 2],
    products: FloatSum,
    /// True where a value is infinite or NaN.
    has_infinite: bool,
}

impl Products {
    fn add(&mut self, left: f64, right: f64) {
        self.count += 1;
        if !(left.is_finite() && right.is_finite()) {
            self.has_infinite = true;
            return;
        }
        for (at, value) in [left, right].into_iter().enumerate() {
            self.sums[at].add(value);
            self.squares[at].add_squared(value);
        }
        self.products.add_product(left, right);
    }

    fn merge(&mut self, other: &Products) {
        self.count += other.count;
        self.has_infinite |= other.has_infinite;
        for at in 0..2 {
            self.sums[at].merge(&other.sums[at]);
            self.squares[at].merge(&other.squares[at]);
        }
        self.products.merge(&other.products);
    }

    fn covariance(&self, over: Spread) -> Result<Option<f64>> {
        let divisor = over.divisor(self.count);
        if divisor == 0 {
            return Ok(None);
        }
        if self.has_infinite {
            return Ok(Some(f64::NAN));
        }
        let [left, right] = &self.sums;
        joint_spread((left, right), &self.products, self.count, divisor)
            .map(Some)
            .ok_or_else(|| Error::value("a covariance is too large for double"))
    }

    /// None of fewer than two pairs, and where all values of a side are equal.
    fn correlation(&self) -> Result<Option<f64>> {
        let Some(covariance) = self.covariance(Spread::Population)? else { return Ok(None) };
        let mut correlation = covariance;
        if !self.has_infinite {
            for (sum, squares) in self.sums.iter().zip(&self.squares) {
                let variance = spread(sum, squares, self.count, self.count);
                let deviation = variance.map(f64::sqrt);
                let deviation =
                    deviation.ok_or_else(|| Error::value("a variance is too large for double"))?;
                if deviation == 0.0 {
                    return Ok(None);
                }
                correlation /= deviation;
            }
            correlation = correlation.clamp(-1.0, 1.0);
        }
        Ok(Some(correlation))
    }
}

impl Pairs {
    /// States of an aggregate of two values, without groups.
    pub(super) fn new(aggregate: Aggregate) -> Option<Pairs> {
        match aggregate {
            Aggregate::ArgMax => Some(Pairs::Best { best: Vec::new(), is_max: true }),
            Aggregate::ArgMin => Some(Pairs::Best { best: Vec::new(), is_max: false }),
            Aggregate::Covariance(_) | Aggregate::Correlation => Some(Pairs::Products(Vec::new())),
            Aggregate::Join { .. } => Some(Pairs::Texts(Vec::new())),
            _ => None,
        }
    }

    pub(super) fn grow(&mut self, groups: usize, values: &Data, others: &Data) {
        match self {
            Pairs::Best { best, .. } => best.resize(groups, None),
            Pairs::Products(products) => products.resize_with(groups, Products::default),
            Pairs::Texts(texts) => texts.resize_with(groups, || Pair {
                values: Vector::new(values.clone()),
                others: Vector::new(others.clone()),
            }),
        }
    }

    pub(super) fn update(
        &mut self,
        values: &Vector,
        others: &Vector,
        rows: &[u32],
        groups: &[u32],
    ) {
        let places = rows.iter().zip(groups).map(|(&row, &group)| (row as usize, group as usize));
        let may_be_null = matches!(self, Pairs::Texts(_));
        let places = places
            .filter(|(row, _)| !values.is_null(*row) && (may_be_null || !others.is_null(*row)));
        match (self, &values.data, &others.data) {
            (Pairs::Best { best, is_max }, ..) => {
                for (row, group) in places {
                    offer(&mut best[group], values, others, row, *is_max);
                }
            }
            (Pairs::Products(products), Data::Float(left), Data::Float(right)) => {
                places.for_each(|(row, group)| products[group].add(left[row], right[row]));
            }
            (Pairs::Texts(texts), ..) => {
                for (row, group) in places {
                    texts[group].values.push_from(values, row);
                    texts[group].others.push_from(others, row);
                }
            }
            (states, left, right) => unreachable!("{left:?}, {right:?} do not go into {states:?}"),
        }
    }

    pub(super) fn merge(&mut self, other: &Pairs, groups: &[u32]) {
        let at = |own: usize| groups[own] as usize;
        match (self, other) {
            (Pairs::Best { best, is_max }, Pairs::Best { best: others, .. }) => {
                for (own, other) in others.iter().enumerate() {
                    if let Some(Pair { values, others }) = other {
                        offer(&mut best[at(own)], values, others, 0, *is_max);
                    }
                }
            }
            (Pairs::Products(products), Pairs::Products(others)) => {
                others.iter().enumerate().for_each(|(own, other)| products[at(own)].merge(other));
            }
            (Pairs::Texts(texts), Pairs::Texts(others)) => {
                for (own, other) in others.iter().enumerate() {
                    let Pair { values, others } = &mut texts[at(own)];
                    for row in 0..other.values.len() {
                        values.push_from(&other.values, row);
                        others.push_from(&other.others, row);
                    }
                }
            }
            (states, other) => unreachable!("{other:?} do not go into {states:?}"),
        }
    }

    /// Appends the result of each group.
    pub(super) fn finish(
        self,
        aggregate: Aggregate,
        separator: &str,
        out: &mut Vector,
    ) -> Result<()> {
        match self {
            Pairs::Best { best, .. } => {
                for best in best {
                    match best {
                        Some(best) => out.push_from(&best.values, 0),
                        None => out.push_null(),
                    }
                }
            }
            Pairs::Products(products) => {
                for products in products {
                    let result = match aggregate {
                        Aggregate::Covariance(over) => products.covariance(over)?,
                        _ => products.correlation()?,
                    };
                    out.push_value(&result.map_or(Value::Null, Value::Float));
                }
            }
            Pairs::Texts(texts) => {
                let Aggregate::Join { direction, nulls } = aggregate else {
                    unreachable!("texts are joined")
                };
                for texts in texts {
                    match texts.values.is_empty() {
                        true => out.push_null(),
                        false => {
                            let joined = texts.joined(separator, direction, nulls)?;
                            out.push_value(&Value::from(joined));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Bytes of memory that the states take, about.
    pub(super) fn memory(&self) -> usize {
        match self {
            Pairs::Best { best, .. } => best.len() * 320,
            Pairs::Products(products) => products.len() * size_of::<Products>(),
            Pairs::Texts(texts) => {
                let each = |texts: &Pair| texts.values.memory() + texts.others.memory() + 128;
                texts.iter().map(each).sum()
            }
        }
    }
}

impl Pair {
    /// All texts in their order, those that are sorted alike by themselves.
    fn joined(&self, separator: &str, direction: Direction, nulls: Nulls) -> Result<String> {
        let Pair { values, others } = self;
        let by_other = |left: usize, right: usize| -> Ordering {
            match (others.is_null(left), others.is_null(right), direction) {
                (false, false, Direction::Ascending) => compare(others, left, others, right),
                (false, false, Direction::Descending) => compare(others, right, others, left),
                (left, right, _) => match nulls {
                    Nulls::First => right.cmp(&left),
                    Nulls::Last => left.cmp(&right),
                },
            }
        };
        let mut rows: Vec<usize> = (0..values.len()).collect();
        rows.sort_by(|&left, &right| {
            by_other(left, right).then_with(|| compare(values, left, values, right))
        });
        let Data::Bytes(texts) = &values.data else { unreachable!("texts are joined") };
        let mut joined = Vec::new();
        for (number, row) in rows.into_iter().enumerate() {
            if number > 0 {
                joined.extend_from_slice(separator.as_bytes());
            }
            joined.extend_from_slice(texts.get(row));
        }
        String::from_utf8(joined).map_err(|_| Error::value("a text is not UTF-8"))
    }
}

/// Takes a value if the one beside it is better than that of the one that is there; of several that
/// are as good, the least.
fn offer(best: &mut Option<Pair>, values: &Vector, others: &Vector, row: usize, is_max: bool) {
    let is_better = best.as_ref().is_none_or(|best| {
        let by_other = compare(others, row, &best.others, 0);
        let by_other = if is_max { by_other.reverse() } else { by_other };
        by_other.then_with(|| compare(values, row, &best.values, 0)).is_lt()
    });
    if is_better {
        let one = |vector: &Vector| {
            let mut one = vector.emptied();
            one.push_from(vector, row);
            one
        };
        *best = Some(Pair { values: one(values), others: one(others) });
    }
}
