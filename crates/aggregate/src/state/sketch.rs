//! Which value has so many below it? Within a relative error.
//!
//! A DDSketch (Masson, Rim, Lee: "DDSketch: a fast and fully-mergeable quantile sketch with
//! relative-error guarantees", VLDB 2019): numbers are counted in bins whose bounds grow by a
//! constant factor, so that the middle of a bin is within the accuracy of all that lies in it. The
//! mapping of numbers to bins is that of the crate `sketches-ddsketch`. Its store of bins is not
//! used: it joins the least bins when there are many, so that low quantiles lose their bound, and it
//! sums floats in the order of arrival, so that equal sets have different states. Here bins are
//! counted in order, none is joined, and zero is a bin of its own. The least and the greatest number
//! are kept as well, and bound every answer.

use std::collections::BTreeMap;

use sketches_ddsketch::Config;

use super::extreme::{self, Side};
use super::{CountOverflow, add_counts};
use crate::stored::{self, Corrupt, Reader};
use crate::value::{Float, Value};

/// The least and the greatest accuracy that can be asked for.
pub(crate) const ACCURACY_MIN: f64 = 1e-4;
pub(crate) const ACCURACY_MAX: f64 = 0.5;

#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    config: Config,
    /// Ascending by what they stand for.
    bins: BTreeMap<Bin, u64>,
    least: Option<Value<'static>>,
    greatest: Option<Value<'static>>,
}

/// Numbers that are counted together. The order is that of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bin {
    /// Bins of greater magnitude come first.
    Negative(std::cmp::Reverse<i32>),
    Zero,
    Positive(i32),
}

impl Bin {
    fn of(value: f64, config: &Config) -> Bin {
        if value.abs() < config.min_possible() {
            Bin::Zero
        } else if value < 0.0 {
            Bin::Negative(std::cmp::Reverse(config.key(-value)))
        } else {
            Bin::Positive(config.key(value))
        }
    }

    /// The number that stands for all of the bin.
    fn middle(self, config: &Config) -> f64 {
        match self {
            Bin::Negative(index) => -config.value(index.0),
            Bin::Zero => 0.0,
            Bin::Positive(index) => config.value(index),
        }
    }

    /// Whether some number lies in it.
    fn exists(self, config: &Config) -> bool {
        match self {
            Bin::Zero => true,
            Bin::Negative(std::cmp::Reverse(index)) | Bin::Positive(index) => {
                (config.key(f64::MIN_POSITIVE)..=config.key(f64::MAX)).contains(&index)
            }
        }
    }
}

impl Sketch {
    pub(super) fn new(accuracy: f64) -> Sketch {
        // Nothing but what is no normal float counts as zero. The number of bins matters to the
        // library's store only.
        let config = Config::new(accuracy, 1, f64::MIN_POSITIVE);
        Sketch { config, bins: BTreeMap::new(), least: None, greatest: None }
    }

    #[inline]
    pub(super) fn push(&mut self, value: &Value<'_>) {
        let number = match value {
            Value::Int(value) => *value as f64,
            Value::Float(value) => value.get(),
            Value::Bool(_) | Value::Bytes(_) => unreachable!("I-FINITE: numbers only"),
        };
        *self.bins.entry(Bin::of(number, &self.config)).or_default() += 1;
        extreme::push(&mut self.least, Side::Least, value);
        extreme::push(&mut self.greatest, Side::Greatest, value);
    }

    pub(super) fn merge(&mut self, other: Sketch) -> Result<(), CountOverflow> {
        for (bin, count) in other.bins {
            add_counts(self.bins.entry(bin).or_default(), count)?;
        }
        if let (Some(least), Some(greatest)) = (&other.least, &other.greatest) {
            extreme::push(&mut self.least, Side::Least, least);
            extreme::push(&mut self.greatest, Side::Greatest, greatest);
        }
        Ok(())
    }

    /// Stands for the number at position `floor(share * (n - 1))` of all, from 0, ascending: within
    /// the accuracy of it. `None` of nothing.
    pub(crate) fn quantile(&self, share: f64) -> Option<Value<'static>> {
        let (least, greatest) = (self.least.as_ref()?, self.greatest.as_ref()?);
        let count: u128 = self.bins.values().map(|&count| u128::from(count)).sum();
        let last = count.saturating_sub(1);
        // Counts are below 2^64 by far: what a float loses of them is below the accuracy of ranks.
        let rank = ((share * last as f64) as u128).min(last);
        if rank == 0 || rank == last {
            let exact = if rank == 0 { least } else { greatest };
            return Some(exact.clone().into_float());
        }
        let mut below = 0;
        let found = self.bins.iter().find(|(_, count)| {
            below += u128::from(**count);
            below > rank
        });
        let middle = found.map(|(bin, _)| bin.middle(&self.config))?;
        let middle = Float::new(middle).map(Value::Float)?;
        Some(middle.max(least.clone()).min(greatest.clone()).into_float())
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        stored::value(self.least.as_ref(), out);
        stored::value(self.greatest.as_ref(), out);
        out.extend(stored::len(self.bins.len()).to_le_bytes());
        for (bin, count) in &self.bins {
            let (sign, index): (u8, i32) = match bin {
                Bin::Negative(index) => (NEGATIVE, index.0),
                Bin::Zero => (ZERO, 0),
                Bin::Positive(index) => (POSITIVE, *index),
            };
            out.push(sign);
            out.extend(index.to_le_bytes());
            out.extend(count.to_le_bytes());
        }
    }

    pub(super) fn decode(accuracy: f64, reader: &mut Reader<'_>) -> Result<Sketch, Corrupt> {
        let mut sketch = Sketch::new(accuracy);
        let least = number(reader)?;
        let greatest = number(reader)?;
        let bins = &mut sketch.bins;
        for _ in 0..reader.count(13, "bins")? {
            let sign = reader.u8("the sign of a bin")?;
            let index = reader.u32("the number of a bin")?.cast_signed();
            let bin = match (sign, index) {
                (NEGATIVE, index) => Bin::Negative(std::cmp::Reverse(index)),
                (ZERO, 0) => Bin::Zero,
                (POSITIVE, index) => Bin::Positive(index),
                _ => return Err(reader.corrupt("a bin has no known sign")),
            };
            let count = reader.u64("the count of a bin")?;
            let ascends = bins.last_key_value().is_none_or(|(last, _)| *last < bin);
            if !ascends || count == 0 || !bin.exists(&sketch.config) {
                return Err(reader.corrupt("bins do not ascend, are empty, or hold no number"));
            }
            bins.insert(bin, count);
        }
        if bins.is_empty() != least.is_none() || bins.is_empty() != greatest.is_none() {
            return Err(reader.corrupt("a least and a greatest number belong to bins"));
        }
        if least > greatest {
            return Err(reader.corrupt("the least number is above the greatest"));
        }
        Ok(Sketch { least, greatest, ..sketch })
    }
}

/// A finite number, if there is one.
fn number(reader: &mut Reader<'_>) -> Result<Option<Value<'static>>, Corrupt> {
    match reader.value()? {
        Some(Value::Float(value)) if value.get().is_infinite() => {
            Err(reader.corrupt("a number is infinite"))
        }
        Some(Value::Bool(_) | Value::Bytes(_)) => Err(reader.corrupt("a number is expected")),
        other => Ok(other.map(Value::into_owned)),
    }
}

/// Stored: do not renumber.
const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
const POSITIVE: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sketch(accuracy: f64, values: &[f64]) -> Sketch {
        let mut sketch = Sketch::new(accuracy);
        for &value in values {
            sketch.push(&Value::float(value).expect("not NaN"));
        }
        sketch
    }

    fn number_of(value: Option<Value<'_>>) -> f64 {
        match value {
            Some(Value::Float(value)) => value.get(),
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn quantiles_are_within_the_accuracy(
            values in prop::collection::vec(
                prop_oneof![-1e3..1e3, -1e300..1e300, Just(0.0), -1e-300..1e-300, (-50_i32..50).prop_map(f64::from)],
                1..60,
            ),
            share in 0.0..=1.0,
            accuracy in prop_oneof![Just(0.01), Just(ACCURACY_MAX), Just(ACCURACY_MIN)],
        ) {
            let found = number_of(sketch(accuracy, &values).quantile(share));
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let exact = sorted[(share * (sorted.len() - 1) as f64) as usize];
            // What rounding of logarithms adds is below a millionth of the accuracy.
            prop_assert!((found - exact).abs() <= exact.abs() * accuracy * 1.000_001, "{found} for {exact}");
        }
    }

    #[test]
    fn nothing_has_no_quantile_and_the_ends_are_exact() {
        assert_eq!(Sketch::new(0.01).quantile(0.5), None);
        let values = [3.3, -7.7, 1e-320, 123.456];
        let sketch = sketch(0.5, &values);
        assert_eq!(number_of(sketch.quantile(0.0)), -7.7);
        assert_eq!(number_of(sketch.quantile(1.0)), 123.456);
        assert_eq!(number_of(sketch.quantile(0.4)), 0.0, "no normal float");
    }

    #[test]
    fn what_no_sketch_is_stored_as_is_refused() {
        let mut bytes = Vec::new();
        sketch(0.01, &[1.0, 2.0]).encode(&mut bytes);
        let decode = |bytes: &[u8]| Sketch::decode(0.01, &mut Reader::new(bytes));
        assert!(decode(&bytes).is_ok());
        let bins_at = bytes.len() - 26 - 4;
        for (at, byte) in
            [(0, 3), (0, 2), (bins_at, 9), (bins_at + 4, 9), (bins_at + 8, 0x7F), (bins_at + 9, 0)]
        {
            let mut lie = bytes.clone();
            lie[at] = byte;
            assert!(decode(&lie).is_err(), "{at} {byte}");
        }
    }
}
