//! Sums of numbers without an error.
//!
//! [`Exact`] is a sum in fixed point, wide enough for every float of 64 bits, every whole number of
//! 128 bits and their squares, so that nothing is ever rounded away: sums do not depend on the
//! order of what they add, nor on how partial sums were merged. One rounding, in [`quotient`], makes
//! a figure of it. The idea of a small superaccumulator of overlapping limbs is R. M. Neal's ("Fast
//! exact summation using small and large superaccumulators", 2015); this one has a window that grows
//! with the magnitudes it meets, since most sums need a few limbs.

use num_bigint::{BigInt, BigUint, Sign};

use crate::value::stored::{Corrupt, Reader};

/// Bits of a limb that count; the others let carries wait.
const LIMB_BITS: i32 = 32;
const LIMB_MASK: i64 = (1 << LIMB_BITS) - 1;
/// Each addition adds less than 2^32 to a limb: after so many it is below 2^62.
const PENDING_MAX: u32 = if cfg!(test) { 5 } else { 1 << 29 };

/// Exponents of two that can come up: squares of the least float, and 2^64 squares of the greatest
/// number.
const EXPONENT_MIN: i32 = -2_148;
const EXPONENT_MAX: i32 = 2_112;

/// An exact sum: limb `i` counts 2^(32 * (low + i)).
#[derive(Debug, Clone, Default)]
pub(crate) struct Exact {
    low: i32,
    limbs: Vec<i64>,
    /// Additions since carries were last propagated.
    pending: u32,
}

/// The effect of a term on a sum.
#[derive(Debug, Clone, Copy)]
enum Effect {
    Add,
    Subtract,
}

impl Exact {
    /// Adds `magnitude * 2^exponent`.
    pub(crate) fn add(&mut self, magnitude: u128, exponent: i32) {
        self.apply(Effect::Add, magnitude, exponent);
    }

    /// Adds `magnitude * 2^exponent`, or subtracts it.
    fn apply(&mut self, effect: Effect, magnitude: u128, exponent: i32) {
        if magnitude == 0 {
            return;
        }
        let first = exponent.div_euclid(LIMB_BITS);
        let shift = exponent.rem_euclid(LIMB_BITS).cast_unsigned();
        let low = magnitude << shift;
        let high = magnitude.checked_shr(128 - shift).unwrap_or(0);
        let digit = |at: u32| (low >> (LIMB_BITS.cast_unsigned() * at)) as i64 & LIMB_MASK;
        let digits = [digit(0), digit(1), digit(2), digit(3), high as i64];
        let begin = digits.iter().position(|&digit| digit != 0).expect("not zero");
        let limit = digits.iter().rposition(|&digit| digit != 0).expect("not zero") + 1;
        let at = self.room(first + begin as i32, limit - begin);
        for (limb, digit) in self.limbs[at..].iter_mut().zip(&digits[begin..limit]) {
            *limb += match effect {
                Effect::Add => *digit,
                Effect::Subtract => -digit,
            };
        }
        self.count(1);
    }

    pub(crate) fn add_int(&mut self, value: i128) {
        let effect = if value < 0 { Effect::Subtract } else { Effect::Add };
        self.apply(effect, value.unsigned_abs(), 0);
    }

    /// Adds the square of a whole number.
    pub(crate) fn add_int_squared(&mut self, value: i128) {
        let magnitude = value.unsigned_abs();
        let (high, low) = (magnitude >> 64, magnitude & u128::from(u64::MAX));
        self.add(low * low, 0);
        // Twice the product of the halves.
        self.add(high * low, 65);
        self.add(high * high, 128);
    }

    /// `value` is finite.
    pub(crate) fn add_float(&mut self, value: f64) {
        let (mantissa, exponent) = parts(value);
        let effect = if value.is_sign_negative() { Effect::Subtract } else { Effect::Add };
        self.apply(effect, mantissa.into(), exponent);
    }

    /// Adds the square of a finite number.
    pub(crate) fn add_float_squared(&mut self, value: f64) {
        let (mantissa, exponent) = parts(value);
        self.add(u128::from(mantissa) * u128::from(mantissa), 2 * exponent);
    }

    /// Adds the product of two finite numbers.
    pub(crate) fn add_float_product(&mut self, left: f64, right: f64) {
        let ((left_bits, left_exponent), (right_bits, right_exponent)) =
            (parts(left), parts(right));
        let effect = match left.is_sign_negative() == right.is_sign_negative() {
            true => Effect::Add,
            false => Effect::Subtract,
        };
        let magnitude = u128::from(left_bits) * u128::from(right_bits);
        self.apply(effect, magnitude, left_exponent + right_exponent);
    }

    pub(crate) fn merge(&mut self, other: &Exact) {
        if other.limbs.is_empty() {
            return;
        }
        let mut other = std::borrow::Cow::Borrowed(other);
        if self.pending + other.pending >= PENDING_MAX {
            self.carry();
            other.to_mut().carry();
        }
        let at = self.room(other.low, other.limbs.len());
        for (limb, add) in self.limbs[at..].iter_mut().zip(&other.limbs) {
            *limb += add;
        }
        self.count(other.pending + 1);
    }

    /// Makes room for limbs from number `first` on; answers where they lie.
    fn room(&mut self, first: i32, count: usize) -> usize {
        if self.limbs.is_empty() {
            self.low = first;
        }
        if first < self.low {
            let more = (self.low - first).cast_unsigned() as usize;
            self.limbs.splice(..0, std::iter::repeat_n(0, more));
            self.low = first;
        }
        let at = (first - self.low).cast_unsigned() as usize;
        if at + count > self.limbs.len() {
            self.limbs.resize(at + count, 0);
        }
        at
    }

    fn count(&mut self, additions: u32) {
        self.pending += additions;
        if self.pending >= PENDING_MAX {
            self.carry();
        }
    }

    /// Leaves 32 bits in each limb, and the sign and what is left over in the last.
    fn carry(&mut self) {
        let mut carry = 0;
        let last = self.limbs.len().saturating_sub(1);
        for (at, limb) in self.limbs.iter_mut().enumerate() {
            let sum = *limb + carry;
            let stays = at == last && sum.unsigned_abs() <= LIMB_MASK.unsigned_abs();
            carry = if stays { 0 } else { sum >> LIMB_BITS };
            *limb = if stays { sum } else { sum & LIMB_MASK };
        }
        if carry != 0 {
            self.limbs.push(carry);
        }
        self.pending = 1;
    }

    /// The sum as `number * 2^exponent`; the number is odd, or zero with the exponent zero.
    pub(crate) fn scaled(&self) -> (BigInt, i32) {
        let mut sum = BigInt::ZERO;
        for &limb in self.limbs.iter().rev() {
            sum = (sum << LIMB_BITS) + limb;
        }
        match sum.trailing_zeros() {
            None => (sum, 0),
            Some(zeros) => {
                let shift = i32::try_from(zeros).expect("a sum has a few thousand bits");
                (sum >> shift, self.low * LIMB_BITS + shift)
            }
        }
    }

    /// The sum, if it is a whole number of 128 bits.
    pub(crate) fn to_int(&self) -> Option<i128> {
        let (number, exponent) = self.scaled();
        // A number of 128 bits has no more than 127 zeros at its end.
        let shift = u32::try_from(exponent).ok().filter(|&shift| shift < 128)?;
        i128::try_from(number << shift).ok()
    }

    /// The sum, if it is a whole number of 128 bits without a sign.
    pub(crate) fn to_uint(&self) -> Option<u128> {
        let (number, exponent) = self.scaled();
        let shift = u32::try_from(exponent).ok().filter(|&shift| shift < 128)?;
        u128::try_from(number << shift).ok()
    }

    /// One form for one sum.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (number, exponent) = self.scaled();
        let bytes = number.to_signed_bytes_le();
        out.extend(exponent.to_le_bytes());
        out.extend(u16::try_from(bytes.len()).expect("below a thousand bytes").to_le_bytes());
        out.extend(bytes);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Exact, Corrupt> {
        let exponent = reader.u32("the exponent of a sum")?.cast_signed();
        let len = reader.u16("the length of a sum")?;
        let bytes = reader.bytes(len.into(), "a sum")?;
        let number = BigInt::from_signed_bytes_le(bytes);
        let is_odd = number.trailing_zeros() == Some(0);
        let bits = i32::try_from(number.bits()).expect("at most 64 KiB");
        let in_range = exponent >= EXPONENT_MIN && exponent.saturating_add(bits) <= EXPONENT_MAX;
        let is_canonical = if is_odd { in_range } else { number == BigInt::ZERO && exponent == 0 };
        if !is_canonical || number.to_signed_bytes_le() != bytes {
            return Err(reader.corrupt("a sum is not in its one form"));
        }
        let mut sum = Exact::default();
        let effect = match number.sign() {
            Sign::Minus => Effect::Subtract,
            Sign::Plus | Sign::NoSign => Effect::Add,
        };
        for (digit, at) in number.magnitude().to_u32_digits().into_iter().zip(0..) {
            sum.apply(effect, digit.into(), exponent + LIMB_BITS * at);
        }
        Ok(sum)
    }
}

/// The whole mantissa of a finite float and its exponent.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match (bits >> 52) as i32 & 0x7FF {
        0 => (fraction, -1074),
        exponent => (fraction | 1 << 52, exponent - 1075),
    }
}

/// `number * 2^exponent / divisor`, rounded once, to nearest, ties to even; `None` beyond the range
/// of floats.
pub(crate) fn quotient(number: &BigInt, exponent: i32, divisor: &BigUint) -> Option<f64> {
    if number.sign() == Sign::NoSign {
        return Some(0.0);
    }
    // Enough bits that those beyond the rounding are right.
    let shift = (66 + divisor.bits()).saturating_sub(number.magnitude().bits());
    let shifted = number.magnitude() << shift;
    let (whole, exponent) = (&shifted / divisor, i64::from(exponent) - shift.cast_signed());
    let is_inexact = &whole * divisor != shifted;
    let bits = whole.bits().cast_signed();
    // Numbers below the least normal one keep fewer bits.
    let kept = 53 - (-1022 - (bits - 1 + exponent)).max(0);
    let dropped = u64::try_from(bits - kept.max(0)).expect("66 bits at least");
    let mut mantissa = u64::try_from(&whole >> dropped).expect("at most 53 bits");
    let is_half = kept >= 0 && whole.bit(dropped - 1);
    let is_more = is_inexact || whole.trailing_zeros().is_some_and(|zeros| zeros < dropped - 1);
    if is_half && (is_more || mantissa & 1 == 1) {
        mantissa += 1;
    }
    let exponent = if mantissa == 0 { 0 } else { exponent + dropped.cast_signed() };
    // Both factors are exact, and so is the product, unless it is too large.
    let value = mantissa as f64 * power_of_two(exponent)?;
    let signed = if number.sign() == Sign::Minus { -value } else { value };
    value.is_finite().then_some(signed)
}

fn power_of_two(exponent: i64) -> Option<f64> {
    match exponent {
        -1074..-1022 => Some(f64::from_bits(1 << (exponent + 1074))),
        -1022..=1023 => Some(f64::from_bits((exponent + 1023).cast_unsigned() << 52)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What `value` is worth, in units of 2^-1074.
    fn units(value: f64) -> BigInt {
        let (mantissa, exponent) = parts(value);
        let magnitude = BigInt::from(mantissa) << (exponent + 1074);
        if value.is_sign_negative() { -magnitude } else { magnitude }
    }

    fn finite() -> impl Strategy<Value = f64> {
        let any = any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |f| f.is_finite());
        // Cancellation needs magnitudes that are near each other.
        prop_oneof![any, (-1e6..1e6), (-1e300..1e300), Just(f64::MAX), Just(-f64::from_bits(1))]
    }

    fn sum(values: &[f64]) -> Exact {
        let mut sum = Exact::default();
        values.iter().for_each(|&value| sum.add_float(value));
        sum
    }

    fn bytes(sum: &Exact) -> Vec<u8> {
        let mut out = Vec::new();
        sum.encode(&mut out);
        out
    }

    fn one() -> BigUint {
        BigUint::from(1_u8)
    }

    /// Whether no float is nearer to `exact` (in units of 2^-1074 / divisor) than `value`.
    fn is_nearest(value: f64, exact: &BigInt, divisor: &BigUint) -> bool {
        let divisor = BigInt::from(divisor.clone());
        let middle = |other: f64| (units(value) + units(other)) * &divisor;
        let twice: BigInt = exact * 2;
        let (below, above) = (middle(value.next_down()), middle(value.next_up()));
        let is_even = value.to_bits() & 1 == 0;
        (twice > below || is_even && twice == below) && (twice < above || is_even && twice == above)
    }

    proptest! {
        #[test]
        fn sums_are_exact_in_any_order(values in prop::collection::vec(finite(), 0..40), cut in 0_usize..40) {
            let exact: BigInt = values.iter().map(|&value| units(value)).sum();
            let whole = sum(&values);
            let (number, exponent) = whole.scaled();
            let scaled = if exponent >= -1074 { number << (exponent + 1074) } else { BigInt::from(-1) };
            prop_assert_eq!(&scaled, &exact);

            let (left, right) = values.split_at(cut.min(values.len()));
            let (mut merged, left) = (sum(right), sum(left));
            merged.merge(&left);
            let bytes = bytes(&whole);
            prop_assert_eq!(&super::tests::bytes(&merged), &bytes);
            let mut reader = Reader::new(&bytes);
            let decoded = Exact::decode(&mut reader).expect("what was encoded");
            prop_assert_eq!(super::tests::bytes(&decoded), bytes);
        }

        #[test]
        fn quotients_are_the_nearest_floats(values in prop::collection::vec(finite(), 0..5), divisor in 1_u64..) {
            let exact: BigInt = values.iter().map(|&value| units(value)).sum();
            let divisor = BigUint::from(divisor);
            let (number, exponent) = sum(&values).scaled();
            match quotient(&number, exponent, &divisor) {
                // Neighbours of the least and greatest floats are no floats.
                Some(value) if value.abs() < f64::MAX => prop_assert!(is_nearest(value, &exact, &divisor)),
                Some(_) => {}
                None => prop_assert!(exact.magnitude() / divisor > *units(f64::MAX).magnitude()),
            }
        }

        #[test]
        fn squares_are_exact(value in any::<i128>(), float in finite()) {
            let mut square = Exact::default();
            square.add_int_squared(value);
            let (number, exponent) = square.scaled();
            prop_assert_eq!(number << exponent, BigInt::from(value) * value);

            let mut square = Exact::default();
            square.add_float_squared(float);
            let (number, exponent) = square.scaled();
            prop_assert_eq!(number << (exponent + 2148), units(float) * units(float));
        }

        #[test]
        fn products_are_exact(left in finite(), right in finite()) {
            let mut product = Exact::default();
            product.add_float_product(left, right);
            let (number, exponent) = product.scaled();
            prop_assert_eq!(number << (exponent + 2148), units(left) * units(right));
        }

        #[test]
        fn whole_sums_are_whole(values in prop::collection::vec(any::<i128>(), 0..20)) {
            let mut sum = Exact::default();
            values.iter().for_each(|&value| sum.add_int(value));
            let exact: BigInt = values.into_iter().map(BigInt::from).sum();
            prop_assert_eq!(sum.to_int(), i128::try_from(exact).ok());
        }

        #[test]
        fn any_bytes_decode_to_a_sum_or_are_refused(given in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader::new(&given);
            if let Ok(sum) = Exact::decode(&mut reader) {
                prop_assert_eq!(&bytes(&sum)[..], &given[..reader.offset()]);
            }
        }
    }

    #[test]
    fn rounding_at_the_edges() {
        let least = f64::from_bits(1);
        for (values, expected) in [
            (&[][..], Some(0.0)),
            (&[1e100, 1.0, -1e100], Some(1.0)),
            (&[f64::MAX, f64::MAX, -f64::MAX], Some(f64::MAX)),
            (&[f64::MAX, f64::MAX], None),
            (&[-f64::MAX, -f64::MAX], None),
            (&[least, least], Some(2.0 * least)),
            (&[0.1; 10], Some(1.0)),
            // Half way: to even.
            (&[1.0, f64::EPSILON / 2.0], Some(1.0)),
            (&[1.0, f64::EPSILON / 2.0, least], Some(1.0 + f64::EPSILON)),
            (&[f64::MAX, 9.9e291], Some(f64::MAX)),
            (&[f64::MAX, 1e292], None),
        ] {
            let (number, exponent) = sum(values).scaled();
            assert_eq!(quotient(&number, exponent, &one()), expected, "{values:?}");
        }
        let (number, exponent) = sum(&[least]).scaled();
        assert_eq!(quotient(&number, exponent, &BigUint::from(2_u8)), Some(0.0), "half: to even");
        assert_eq!(quotient(&(number * 3), exponent, &BigUint::from(4_u8)), Some(least));
    }

    /// Found by random bytes: the check of the range overflowed.
    #[test]
    fn exponents_beyond_the_range_are_refused() {
        for exponent in [i32::MIN, EXPONENT_MIN - 1, EXPONENT_MAX, i32::MAX] {
            let bytes = [&exponent.to_le_bytes()[..], &[1, 0, 3]].concat();
            assert!(Exact::decode(&mut Reader::new(&bytes)).is_err(), "{exponent}");
        }
    }

    #[test]
    fn a_number_that_returns_to_zero_has_the_bytes_of_zero() {
        let mut sum = Exact::default();
        for sign in [1.0, -1.0] {
            for value in [1e300, 1e-300, 3.0] {
                sum.add_float(sign * value);
            }
        }
        assert_eq!(bytes(&sum), bytes(&Exact::default()));
    }
}
