//! Sums of floats without an error, quick while two floats hold them.

use num_bigint::BigUint;

use crate::value::exact::{self, Exact};

/// A sum of finite floats and whole numbers, exact until it is rounded once.
///
/// Two floats hold the sum of most values: each addition splits into its rounded result and the error of that (D. E.
/// Knuth's two-sum), and both are kept. Where they cannot hold it, they move to a sum in fixed point. So the result
/// depends neither on the order of the values nor on how partial sums were merged, and it is too large only if the
/// exact sum is.
///
/// ```
/// let mut sum = sapwood_aggregate::FloatSum::default();
/// [1e308, 1e308, -1e308].into_iter().for_each(|value| sum.add(value));
/// assert_eq!(sum.rounded(), Some(1e308));
/// assert_eq!(sum.quotient(2, 0), Some(5e307));
/// sum.add(1e308);
/// assert_eq!(sum.rounded(), None, "2e308 is no float");
/// ```
#[derive(Debug, Clone, Default)]
pub struct FloatSum {
    /// Part of the sum; the rest is in `low` and `exact`.
    high: f64,
    low: f64,
    exact: Option<Box<Exact>>,
}

/// Squares of magnitudes from here to [`SQUARE_MAX`] are the sum of two floats.
const SQUARE_MIN: f64 = 1e-140;
const SQUARE_MAX: f64 = 1e150;

/// Products whose magnitude lies from here to [`PRODUCT_MAX`] are the sum of two floats.
const PRODUCT_MIN: f64 = 1e-280;
const PRODUCT_MAX: f64 = 1e300;

impl FloatSum {
    /// Adds a finite value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        debug_assert!(value.is_finite());
        let (high, error) = two_sum(self.high, value);
        let (low, lost) = two_sum(self.low, error);
        // Also false of what is infinite or NaN.
        if lost == 0.0 && high.is_finite() {
            (self.high, self.low) = (high, low);
        } else {
            self.spill(value);
        }
    }

    /// Adds the square of a finite value.
    #[inline]
    pub fn add_squared(&mut self, value: f64) {
        if value == 0.0 || (SQUARE_MIN..SQUARE_MAX).contains(&value.abs()) {
            let (square, error) = squared(value);
            self.add(square);
            self.add(error);
        } else {
            self.exact_mut().add_float_squared(value);
        }
    }

    /// Adds the product of two finite values.
    pub fn add_product(&mut self, left: f64, right: f64) {
        let product = left * right;
        if (PRODUCT_MIN..PRODUCT_MAX).contains(&product.abs()) {
            self.add(product);
            self.add(left.mul_add(right, -product));
        } else if left != 0.0 && right != 0.0 {
            self.exact_mut().add_float_product(left, right);
        }
    }

    /// Adds a whole number.
    pub fn add_int(&mut self, value: i128) {
        self.exact_mut().add_int(value);
    }

    /// Adds a whole number that is not negative.
    pub fn add_uint(&mut self, value: u128) {
        self.exact_mut().add(value, 0);
    }

    /// Adds the square of a whole number.
    pub(crate) fn add_int_squared(&mut self, value: i128) {
        self.exact_mut().add_int_squared(value);
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &FloatSum) {
        self.add(other.high);
        self.add(other.low);
        if let Some(exact) = &other.exact {
            self.exact_mut().merge(exact);
        }
    }

    #[cold]
    fn spill(&mut self, value: f64) {
        let (high, low) = (self.high, self.low);
        let exact = self.exact_mut();
        exact.add_float(high);
        exact.add_float(low);
        (self.high, self.low) = (value, 0.0);
    }

    fn exact_mut(&mut self) -> &mut Exact {
        self.exact.get_or_insert_default()
    }

    /// The whole sum in fixed point.
    pub(crate) fn total(&self) -> Exact {
        let mut total = self.exact.as_deref().cloned().unwrap_or_default();
        total.add_float(self.high);
        total.add_float(self.low);
        total
    }

    /// The nearest float, ties to even; `None` if it is beyond the range of floats.
    pub fn rounded(&self) -> Option<f64> {
        match self.exact {
            // One addition rounds once.
            None => Some(self.high + self.low).filter(|sum| sum.is_finite()),
            Some(_) => self.quotient(1, 0),
        }
    }

    /// The float nearest to the sum by `count` and by ten to the power of `scale`; `None` if it is beyond the range of
    /// floats.
    pub fn quotient(&self, count: u64, scale: u8) -> Option<f64> {
        if self.exact.is_none() && self.low == 0.0 && scale == 0 && count < 1 << 53 {
            return Some(self.high / count as f64);
        }
        let (number, exponent) = self.total().scaled();
        let divisor = BigUint::from(count) * BigUint::from(10_u8).pow(scale.into());
        exact::quotient(&number, exponent, &divisor)
    }

    /// The sum, if it is a whole number of 128 bits.
    pub fn to_int(&self) -> Option<i128> {
        self.total().to_int()
    }

    /// The sum, if it is a whole number of 128 bits without a sign.
    pub fn to_uint(&self) -> Option<u128> {
        self.total().to_uint()
    }
}

impl From<Exact> for FloatSum {
    fn from(exact: Exact) -> Self {
        FloatSum { exact: Some(Box::new(exact)), ..FloatSum::default() }
    }
}

/// The rounded sum of two floats, and its error; not finite where the sum is not.
#[inline]
fn two_sum(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    let of_right = sum - left;
    let of_left = sum - of_right;
    (sum, (left - of_left) + (right - of_right))
}

/// The rounded square, and its error, by T. J. Dekker's split of the factor into halves.
#[inline]
fn squared(value: f64) -> (f64, f64) {
    const SPLIT: f64 = ((1_u64 << 27) + 1) as f64;
    let wide = SPLIT * value;
    let high = wide - (wide - value);
    let low = value - high;
    let square = value * value;
    let error = ((high * high - square) + 2.0 * high * low) + low * low;
    (square, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn finite() -> impl Strategy<Value = f64> {
        let any = any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |f| f.is_finite());
        let cents = (-1_000_000_i64..1_000_000).prop_map(|cents| cents as f64 / 100.0);
        prop_oneof![
            any,
            cents,
            -1e6..1e6,
            -1e300..1e300,
            Just(f64::MAX),
            Just(-f64::MAX),
            Just(f64::from_bits(1)),
            Just(-0.0),
        ]
    }

    fn bytes(sum: &Exact) -> Vec<u8> {
        let mut out = Vec::new();
        sum.encode(&mut out);
        out
    }

    proptest! {
        #[test]
        fn sums_are_those_of_fixed_point(values in prop::collection::vec(finite(), 0..60), cut in 0_usize..60) {
            let mut exact = Exact::default();
            values.iter().for_each(|&value| exact.add_float(value));
            let mut squares = Exact::default();
            values.iter().for_each(|&value| squares.add_float_squared(value));

            let sums = |values: &[f64]| {
                let (mut sum, mut squares) = (FloatSum::default(), FloatSum::default());
                for &value in values {
                    sum.add(value);
                    squares.add_squared(value);
                }
                (sum, squares)
            };
            let (left, right) = values.split_at(cut.min(values.len()));
            let (mut sum, mut sum_of_squares) = sums(right);
            let (left, left_squares) = sums(left);
            sum.merge(&left);
            sum_of_squares.merge(&left_squares);
            for (merged, all, expected) in
                [(&sum, sums(&values).0, &exact), (&sum_of_squares, sums(&values).1, &squares)]
            {
                prop_assert_eq!(bytes(&merged.total()), bytes(expected));
                prop_assert_eq!(bytes(&all.total()), bytes(expected));
                let (number, exponent) = expected.scaled();
                for count in [1, 3, 10] {
                    let rounded = exact::quotient(&number, exponent, &BigUint::from(count));
                    prop_assert_eq!(merged.quotient(count, 0), rounded);
                    prop_assert_eq!(all.quotient(count, 0), rounded);
                    if count == 1 {
                        prop_assert_eq!(merged.rounded(), rounded);
                        prop_assert_eq!(all.rounded(), rounded);
                    }
                }
            }
        }
    }

    #[test]
    fn whole_numbers_are_whole_again() {
        let mut sum = FloatSum::default();
        sum.add_int(i128::MAX);
        sum.add_int(1);
        assert_eq!((sum.to_int(), sum.to_uint()), (None, Some(1 << 127)));
        sum.add_uint(u128::MAX);
        assert_eq!(sum.to_uint(), None);
        sum.add_int(i128::MIN);
        sum.add_int(-1);
        assert_eq!(sum.to_uint(), Some(u128::MAX - 1));
        assert_eq!(sum.quotient(2, 1), Some(u128::MAX as f64 / 20.0));
    }
}
