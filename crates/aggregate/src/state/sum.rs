//! Sums, means and variances, without an error until the last rounding.
//!
//! Whole numbers are added in 128 bits and moved to a [`FloatSum`] where these overflow, so that
//! only the final figure can be out of range. The variance is that of the definition,
//! `(n Σx² - (Σx)²) / (n (n - 1))`: over exact sums it loses nothing, which no running method in
//! floats can say.

use num_bigint::{BigInt, BigUint, Sign};

use super::count::{CountOverflow, add_counts};
use crate::value::exact::{Exact, quotient};
use crate::value::float_sum::FloatSum;
use crate::value::stored::{Corrupt, Reader};
use crate::value::{Float, Spread, Value};

/// How many numbers, and their sum.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sum {
    count: u64,
    /// Part of the sum; the rest is in `floats`.
    ints: i128,
    floats: FloatSum,
    /// Whether a float was among them: then the sum is one.
    has_floats: bool,
}

/// A figure that its type cannot hold, in words.
pub(crate) type OutOfRange = String;

impl Sum {
    #[inline]
    pub(crate) fn push(&mut self, value: &Value<'_>) {
        match value {
            Value::Int(value) => self.push_ints(1, *value),
            Value::Float(value) => {
                self.count += 1;
                self.has_floats = true;
                self.floats.add(value.get());
            }
            Value::Bool(_) | Value::Bytes(_) => unreachable!("I-FINITE: numbers only"),
        }
    }

    /// Adds the sum of `count` whole numbers.
    #[inline]
    pub(crate) fn push_ints(&mut self, count: u64, sum: i128) {
        self.count += count;
        self.ints = self.ints.checked_add(sum).unwrap_or_else(|| self.spill(sum));
    }

    #[cold]
    fn spill(&mut self, next: i128) -> i128 {
        self.floats.add_int(self.ints);
        next
    }

    pub(crate) fn merge(&mut self, other: &Sum) -> Result<(), CountOverflow> {
        add_counts(&mut self.count, other.count)?;
        self.push_ints(0, other.ints);
        self.floats.merge(&other.floats);
        self.has_floats |= other.has_floats;
        Ok(())
    }

    fn total(&self) -> Exact {
        let mut total = self.floats.total();
        total.add_int(self.ints);
        total
    }

    /// How many numbers.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The sum: whole if all numbers are.
    pub(crate) fn sum(&self) -> Result<Value<'static>, OutOfRange> {
        let total = self.total();
        if !self.has_floats {
            let whole = total.to_int().map(Value::Int);
            return whole.ok_or_else(|| format!("about 2^{}", bits(&total)));
        }
        rounded(&total, 1)
    }

    /// The mean; `None` of nothing.
    pub(crate) fn mean(&self) -> Result<Option<Value<'static>>, OutOfRange> {
        if self.count == 0 { Ok(None) } else { rounded(&self.total(), self.count).map(Some) }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.count.to_le_bytes());
        out.push(self.has_floats.into());
        self.total().encode(out);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Sum, Corrupt> {
        let count = reader.u64("a count")?;
        let has_floats = match reader.u8("the type of a sum")? {
            flag @ (0 | 1) => flag == 1,
            _ => return Err(reader.corrupt("the type of a sum is unknown")),
        };
        let floats = FloatSum::from(Exact::decode(reader)?);
        Ok(Sum { count, ints: 0, floats, has_floats })
    }
}

/// The exponent of two below the magnitude of a sum.
fn bits(total: &Exact) -> i64 {
    let (number, exponent) = total.scaled();
    number.bits().cast_signed() + i64::from(exponent) - 1
}

fn rounded(total: &Exact, divisor: u64) -> Result<Value<'static>, OutOfRange> {
    let (number, exponent) = total.scaled();
    float(quotient(&number, exponent, &BigUint::from(divisor)))
        .ok_or_else(|| format!("about 2^{}", bits(total)))
}

fn float(value: Option<f64>) -> Option<Value<'static>> {
    value.and_then(Float::new).map(Value::Float)
}

const ABOVE: &str = "above 2^1024";

/// The sum of the squared distances from the mean of `count` numbers, by a divisor.
fn spread_of(sum: &Exact, squares: &Exact, count: u64, divisor: u64) -> Result<f64, OutOfRange> {
    let (sum, sum_exponent) = sum.scaled();
    let (squares, squares_exponent) = squares.scaled();
    let exponent = squares_exponent.min(2 * sum_exponent);
    let spread: BigInt = ((squares * count) << (squares_exponent - exponent))
        - ((&sum * &sum) << (2 * sum_exponent - exponent));
    // Squares of real numbers are never less, but a state may have been made up.
    if spread.sign() == Sign::Minus {
        return Err("less than zero, so the partial state is not of any numbers".to_owned());
    }
    let divisor = BigUint::from(count) * divisor;
    quotient(&spread, exponent, &divisor).ok_or_else(|| ABOVE.to_owned())
}

/// The sum of the squared distances of `count` floats from their mean, by `divisor`: from their sum and the sum of their
/// squares, and rounded once. `None` if it is beyond the range of floats.
///
/// # Panics
/// If `count` or `divisor` is zero.
pub fn spread(sum: &FloatSum, squares: &FloatSum, count: u64, divisor: u64) -> Option<f64> {
    spread_of(&sum.total(), &squares.total(), count, divisor).ok()
}

/// The sum of the products of the distances that `count` pairs of floats have from their means, by
/// `divisor`: from the sums of both and that of their products, and rounded once. `None` if it is
/// beyond the range of floats.
///
/// # Panics
/// If `count` or `divisor` is zero.
pub fn joint_spread(
    (left, right): (&FloatSum, &FloatSum),
    products: &FloatSum,
    count: u64,
    divisor: u64,
) -> Option<f64> {
    let (left, left_exponent) = left.total().scaled();
    let (right, right_exponent) = right.total().scaled();
    let (products, products_exponent) = products.total().scaled();
    let exponent = products_exponent.min(left_exponent + right_exponent);
    let spread: BigInt = ((products * count) << (products_exponent - exponent))
        - ((left * right) << (left_exponent + right_exponent - exponent));
    quotient(&spread, exponent, &(BigUint::from(count) * divisor))
}

/// How many numbers, their mean, and the sum of their squared distances from it, each rounded once.
///
/// By these other systems merge variances: of two groups with `n` and `m` numbers whose means lie `d` apart, the squares
/// of both together are those of each, and `d * d * n * m / (n + m)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CentralMoments {
    /// How many numbers.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The sum of their squared distances from the mean.
    pub squares: f64,
}

/// How many numbers, their sum, and the sum of their squares.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moments {
    sum: Sum,
    /// Part of the squares; the rest is in `floats`.
    squares: u128,
    floats: FloatSum,
}

impl Moments {
    #[inline]
    pub(super) fn push(&mut self, value: &Value<'_>) {
        self.sum.push(value);
        match value {
            Value::Int(value) => {
                let square = value.unsigned_abs().checked_pow(2);
                match square.and_then(|square| self.squares.checked_add(square)) {
                    Some(sum) => self.squares = sum,
                    None => self.floats.add_int_squared(*value),
                }
            }
            Value::Float(value) => self.floats.add_squared(value.get()),
            Value::Bool(_) | Value::Bytes(_) => unreachable!("I-FINITE: numbers only"),
        }
    }

    pub(super) fn merge(&mut self, other: &Moments) -> Result<(), CountOverflow> {
        self.sum.merge(&other.sum)?;
        if other.squares != 0 {
            self.floats.add_uint(other.squares);
        }
        self.floats.merge(&other.floats);
        Ok(())
    }

    fn squares(&self) -> Exact {
        let mut squares = self.floats.total();
        squares.add(self.squares, 0);
        squares
    }

    /// The variance; `None` of nothing, and of one number as a sample.
    pub(crate) fn variance(&self, over: Spread) -> Result<Option<Value<'static>>, OutOfRange> {
        match over {
            Spread::Sample => self.spread(self.sum.count.saturating_sub(1)),
            Spread::Population => self.spread(self.sum.count),
        }
    }

    /// Count, mean, and the sum of the squared distances from it; `None` of nothing.
    pub(crate) fn central(&self) -> Result<Option<CentralMoments>, OutOfRange> {
        let number = |value| match value {
            Value::Float(number) => number.get(),
            _ => unreachable!("means and spreads are floats"),
        };
        let (Some(mean), Some(squares)) = (self.sum.mean()?, self.spread(1)?) else {
            return Ok(None);
        };
        let (mean, squares) = (number(mean), number(squares));
        Ok(Some(CentralMoments { count: self.sum.count, mean, squares }))
    }

    /// The sum of the squared distances from the mean, by a divisor; `None` by zero, and of nothing.
    fn spread(&self, divisor: u64) -> Result<Option<Value<'static>>, OutOfRange> {
        let count = self.sum.count;
        if divisor == 0 || count == 0 {
            return Ok(None);
        }
        let variance = spread_of(&self.sum.total(), &self.squares(), count, divisor)?;
        float(Some(variance)).map(Some).ok_or_else(|| ABOVE.to_owned())
    }

    /// The root of the variance.
    pub(crate) fn deviation(&self, over: Spread) -> Result<Option<Value<'static>>, OutOfRange> {
        let root = |variance| match variance {
            Value::Float(variance) => float(Some(variance.get().sqrt())),
            other => Some(other),
        };
        Ok(self.variance(over)?.and_then(root))
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        self.sum.encode(out);
        self.squares().encode(out);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Moments, Corrupt> {
        let sum = Sum::decode(reader)?;
        let floats = FloatSum::from(Exact::decode(reader)?);
        Ok(Moments { sum, squares: 0, floats })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(value: f64) -> Value<'static> {
        Value::float(value).expect("not NaN")
    }

    fn moments(values: &[Value<'_>]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|value| moments.push(value));
        moments
    }

    #[test]
    fn sums_overflow_at_the_end_and_not_on_the_way() {
        let (max, one) = (Value::Int(i128::MAX), Value::Int(1));
        for (values, expected) in [
            (vec![], Ok(Value::Int(0))),
            (vec![max.clone(), one.clone(), Value::Int(-1)], Ok(max.clone())),
            (vec![max.clone(), one.clone()], Err("about 2^127".to_owned())),
            (vec![Value::Int(i128::MIN), Value::Int(-1)], Err("about 2^127".to_owned())),
            (vec![one.clone(), float(0.5)], Ok(float(1.5))),
            (vec![float(f64::MAX), float(f64::MAX)], Err("about 2^1024".to_owned())),
            (vec![float(f64::MAX), float(f64::MAX), float(-f64::MAX)], Ok(float(f64::MAX))),
        ] {
            assert_eq!(moments(&values).sum.sum(), expected, "{values:?}");
        }
    }

    #[test]
    fn means_and_variances_are_those_of_the_definition() {
        let ints = |values: &[i128]| values.iter().map(|&int| Value::Int(int)).collect::<Vec<_>>();
        for (values, mean, population, sample) in [
            (vec![], None, None, None),
            (ints(&[7]), Some(7.0), Some(0.0), None),
            (ints(&[2, 4, 4, 4, 5, 5, 7, 9]), Some(5.0), Some(4.0), Some(32.0 / 7.0)),
            // Where a difference of rounded squares has no digit left.
            (ints(&[1 << 90, (1 << 90) + 2]), Some((1_u128 << 90) as f64), Some(1.0), Some(2.0)),
            (vec![float(1e9), float(1e9 + 0.5)], Some(1e9 + 0.25), Some(0.0625), Some(0.125)),
            (vec![float(1e200), float(-1e200)], Some(0.0), None, None),
        ] {
            let moments = moments(&values);
            let number = |found: Option<Value<'_>>| match found {
                Some(Value::Float(value)) => Some(value.get()),
                None => None,
                other => panic!("{other:?}"),
            };
            assert_eq!(moments.sum.mean().map(number), Ok(mean), "{values:?}");
            if mean == Some(0.0) {
                assert_eq!(moments.variance(Spread::Sample), Err("above 2^1024".to_owned()));
                continue;
            }
            assert_eq!(
                moments.variance(Spread::Population).map(number),
                Ok(population),
                "{values:?}"
            );
            assert_eq!(moments.variance(Spread::Sample).map(number), Ok(sample), "{values:?}");
            let deviation = moments.deviation(Spread::Population).map(number);
            assert_eq!(deviation, Ok(population.map(f64::sqrt)), "{values:?}");
        }
    }

    #[test]
    fn squares_of_wide_numbers_are_kept() {
        let values: Vec<_> = [i128::MAX, i128::MAX - 2].map(Value::Int).into();
        assert_eq!(moments(&values).variance(Spread::Population), Ok(Some(float(1.0))));
    }

    #[test]
    fn a_made_up_variance_is_refused() {
        let mut lie = moments(&[Value::Int(5), Value::Int(6)]);
        lie.squares = 1;
        assert!(lie.variance(Spread::Sample).is_err());
    }
}
