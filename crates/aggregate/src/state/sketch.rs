//! Which value has so many below it? Exactly of few numbers, else within a relative error.
//!
//! Up to [`FEW_MAX`] different numbers are counted each. With more, a DDSketch (Masson, Rim, Lee:
//! "DDSketch: a fast and fully-mergeable quantile sketch with relative-error guarantees", VLDB 2019)
//! takes their place: numbers are counted in bins whose bounds grow by a constant factor, so that the
//! middle of a bin is within the accuracy of all numbers in it. Bins are counted in order, none is joined,
//! and zero is a bin of its own: low quantiles keep their bound, and equal sets have equal states. The
//! least and the greatest number are kept as well, and bound every answer.
//!
//! Which of the two it is depends on the numbers alone and not on their order: what was counted is
//! never forgotten, so there are few different numbers in the end or there are not.

use std::collections::BTreeMap;

use super::count::{CountOverflow, add_counts};
use super::extreme::{self, Side};
use crate::value::stored::{self, Corrupt, Reader};
use crate::value::{Float, Value};

/// The least and the greatest accuracy that can be asked for.
pub(crate) const ACCURACY_MIN: f64 = 1e-4;
pub(crate) const ACCURACY_MAX: f64 = 0.5;

/// So many different numbers are counted each: as many as `top` counts, at about 50 bytes each.
pub(crate) const FEW_MAX: usize = 4096;

#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    mapping: Mapping,
    counts: Counts,
}

#[derive(Debug, Clone)]
enum Counts {
    /// Of each number, in its one form; ascending, [`FEW_MAX`] at most.
    Few(BTreeMap<Value<'static>, u64>),
    Many(Bins),
}

/// What is known of many numbers.
#[derive(Debug, Clone, Default)]
struct Bins {
    /// Ascending by what they stand for.
    bins: BTreeMap<Bin, u64>,
    least: Option<Value<'static>>,
    greatest: Option<Value<'static>>,
}

/// The bins of positive numbers: bin `i` has those from `gamma^i` up to `gamma^(i + 1)`.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    gamma: f64,
    gamma_ln: f64,
}

impl Mapping {
    fn new(accuracy: f64) -> Mapping {
        let gamma = (1.0 + accuracy) / (1.0 - accuracy);
        Mapping { gamma, gamma_ln: gamma.ln() }
    }

    /// The bin of a number, which is positive and normal.
    fn bin(self, value: f64) -> i32 {
        (value.ln() / self.gamma_ln).floor() as i32
    }

    /// The number whose relative distance to both bounds of a bin is the same: the accuracy.
    fn middle(self, bin: i32) -> f64 {
        (f64::from(bin) * self.gamma_ln).exp() * (2.0 * self.gamma / (1.0 + self.gamma))
    }
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
    fn of(value: f64, mapping: Mapping) -> Bin {
        if value.abs() < f64::MIN_POSITIVE {
            Bin::Zero
        } else if value < 0.0 {
            Bin::Negative(std::cmp::Reverse(mapping.bin(-value)))
        } else {
            Bin::Positive(mapping.bin(value))
        }
    }

    /// The number that stands for all of the bin.
    fn middle(self, mapping: Mapping) -> f64 {
        match self {
            Bin::Negative(index) => -mapping.middle(index.0),
            Bin::Zero => 0.0,
            Bin::Positive(index) => mapping.middle(index),
        }
    }

    /// Whether some number lies in it.
    fn exists(self, mapping: Mapping) -> bool {
        match self {
            Bin::Zero => true,
            Bin::Negative(std::cmp::Reverse(index)) | Bin::Positive(index) => {
                (mapping.bin(f64::MIN_POSITIVE)..=mapping.bin(f64::MAX)).contains(&index)
            }
        }
    }
}

impl Bins {
    fn push(
        &mut self,
        value: &Value<'_>,
        count: u64,
        mapping: Mapping,
    ) -> Result<(), CountOverflow> {
        let bin = Bin::of(number_of(value), mapping);
        add_counts(self.bins.entry(bin).or_default(), count)?;
        extreme::push(&mut self.least, Side::Least, value);
        extreme::push(&mut self.greatest, Side::Greatest, value);
        Ok(())
    }

    fn merge(&mut self, other: Bins) -> Result<(), CountOverflow> {
        for (bin, count) in other.bins {
            add_counts(self.bins.entry(bin).or_default(), count)?;
        }
        if let (Some(least), Some(greatest)) = (&other.least, &other.greatest) {
            extreme::push(&mut self.least, Side::Least, least);
            extreme::push(&mut self.greatest, Side::Greatest, greatest);
        }
        Ok(())
    }

    fn quantile(&self, share: f64, mapping: Mapping) -> Option<Value<'static>> {
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
        let middle = found.map(|(bin, _)| bin.middle(mapping))?;
        let middle = Float::new(middle).map(Value::Float)?;
        Some(middle.max(least.clone()).min(greatest.clone()).into_float())
    }

    fn encode(&self, out: &mut Vec<u8>) {
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

    fn decode(mapping: Mapping, reader: &mut Reader<'_>) -> Result<Bins, Corrupt> {
        let least = number(reader)?;
        let greatest = number(reader)?;
        let mut bins = BTreeMap::new();
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
            if !ascends || count == 0 || !bin.exists(mapping) {
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
        Ok(Bins { bins, least, greatest })
    }
}

impl Sketch {
    pub(super) fn new(accuracy: f64) -> Sketch {
        Sketch { mapping: Mapping::new(accuracy), counts: Counts::Few(BTreeMap::new()) }
    }

    #[inline]
    pub(super) fn push(&mut self, value: &Value<'_>) {
        // A state counts objects of one process, which are fewer than 2^64.
        self.add(value, 1).expect("a counter of objects does not overflow");
    }

    fn add(&mut self, value: &Value<'_>, count: u64) -> Result<(), CountOverflow> {
        let number = match value {
            Value::Int(_) | Value::Float(_) => value.clone().into_owned().canonical(),
            Value::Bool(_) | Value::Bytes(_) => unreachable!("I-FINITE: numbers only"),
        };
        match &mut self.counts {
            Counts::Few(few) => {
                add_counts(few.entry(number).or_default(), count)?;
                if few.len() > FEW_MAX {
                    self.many()?;
                }
                Ok(())
            }
            Counts::Many(bins) => bins.push(&number, count, self.mapping),
        }
    }

    /// The bins, which take the place of the single numbers if there are any.
    fn many(&mut self) -> Result<&mut Bins, CountOverflow> {
        if let Counts::Few(few) = &self.counts {
            let mut bins = Bins::default();
            for (value, count) in few {
                bins.push(value, *count, self.mapping)?;
            }
            self.counts = Counts::Many(bins);
        }
        match &mut self.counts {
            Counts::Many(bins) => Ok(bins),
            Counts::Few(_) => unreachable!("they were made bins above"),
        }
    }

    pub(super) fn merge(&mut self, other: Sketch) -> Result<(), CountOverflow> {
        match other.counts {
            Counts::Few(few) => few.iter().try_for_each(|(value, count)| self.add(value, *count)),
            Counts::Many(bins) => self.many()?.merge(bins),
        }
    }

    /// Whether each number was counted, so that quantiles are exact.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.counts, Counts::Few(_))
    }

    /// The number at position `share * (n - 1)` of all, from 0, ascending; between two of them what
    /// lies so far on the way from the lower to the upper. Of many different numbers the lower one,
    /// within the accuracy of it. `None` of nothing.
    pub(crate) fn quantile(&self, share: f64) -> Option<Value<'static>> {
        match &self.counts {
            Counts::Few(few) => between(few, share),
            Counts::Many(bins) => bins.quantile(share, self.mapping),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match &self.counts {
            Counts::Few(few) => {
                out.push(FEW);
                out.extend(stored::len(few.len()).to_le_bytes());
                for (value, count) in few {
                    stored::value(Some(value), out);
                    out.extend(count.to_le_bytes());
                }
            }
            Counts::Many(bins) => {
                out.push(MANY);
                bins.encode(out);
            }
        }
    }

    pub(super) fn decode(accuracy: f64, reader: &mut Reader<'_>) -> Result<Sketch, Corrupt> {
        let mut sketch = Sketch::new(accuracy);
        // Version 1 had bins alone.
        let form = if reader.version() == 1 { MANY } else { reader.u8("the form of a sketch")? };
        match form {
            FEW => sketch.counts = Counts::Few(few(reader)?),
            MANY => {
                let bins = Bins::decode(sketch.mapping, reader)?;
                match bins.bins.is_empty() {
                    // Of nothing there is one form.
                    true if reader.version() == 1 => {}
                    true => return Err(reader.corrupt("there are no bins of many numbers")),
                    false => sketch.counts = Counts::Many(bins),
                }
            }
            _ => return Err(reader.corrupt("a sketch has no known form")),
        }
        Ok(sketch)
    }
}

fn number_of(value: &Value<'_>) -> f64 {
    match value {
        Value::Int(value) => *value as f64,
        Value::Float(value) => value.get(),
        Value::Bool(_) | Value::Bytes(_) => unreachable!("I-FINITE: numbers only"),
    }
}

/// The number at a share of all, or between two of them.
fn between(few: &BTreeMap<Value<'static>, u64>, share: f64) -> Option<Value<'static>> {
    let count: u128 = few.values().map(|&count| u128::from(count)).sum();
    let last = count.checked_sub(1)?;
    let position = share * last as f64;
    let rank = (position as u128).min(last);
    let way = if rank == last { 0.0 } else { position - position.floor() };
    let mut numbers = few.iter();
    let mut reached = 0;
    let lower = loop {
        let (value, count) = numbers.next()?;
        reached += u128::from(*count);
        if reached > rank {
            break number_of(value);
        }
    };
    // The next of all is the same number, unless this was the last of those.
    let upper = match numbers.next() {
        Some((upper, _)) if reached == rank + 1 => number_of(upper),
        _ => lower,
    };
    let found = if way == 0.0 || lower == upper {
        lower
    } else if (upper - lower).is_finite() {
        lower + (upper - lower) * way
    } else {
        lower * (1.0 - way) + upper * way
    };
    Float::new(found).map(Value::Float)
}

/// The single numbers of a sketch.
fn few(reader: &mut Reader<'_>) -> Result<BTreeMap<Value<'static>, u64>, Corrupt> {
    let mut few = BTreeMap::new();
    let count = reader.count(17, "numbers")?;
    if count > FEW_MAX {
        return Err(reader.corrupt("more numbers are counted each than a sketch counts"));
    }
    for _ in 0..count {
        let value = number(reader)?;
        let count = reader.u64("the count of a number")?;
        let ascends = few.last_key_value().map(|(last, _)| last) < value.as_ref();
        let (Some(value), true, 1..) = (value, ascends, count) else {
            return Err(reader.corrupt("numbers do not ascend, or are not there"));
        };
        few.insert(value, count);
    }
    Ok(few)
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

/// How a sketch is stored. Stored: do not renumber.
const FEW: u8 = 1;
const MANY: u8 = 2;

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

    /// The same in bins, as with many numbers.
    fn binned(accuracy: f64, values: &[f64]) -> Sketch {
        let mut sketch = sketch(accuracy, values);
        sketch.many().expect("few numbers");
        sketch
    }

    fn float_of(value: Option<Value<'_>>) -> f64 {
        match value {
            Some(Value::Float(value)) => value.get(),
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn quantiles_are_exact_or_within_the_accuracy(
            values in prop::collection::vec(
                prop_oneof![-1e3..1e3, -1e300..1e300, Just(0.0), -1e-300..1e-300, (-50_i32..50).prop_map(f64::from)],
                1..60,
            ),
            share in 0.0..=1.0,
            accuracy in prop_oneof![Just(0.01), Just(ACCURACY_MAX), Just(ACCURACY_MIN)],
        ) {
            let of_many = float_of(binned(accuracy, &values).quantile(share));
            let of_few = float_of(sketch(accuracy, &values).quantile(share));
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let position = share * (sorted.len() - 1) as f64;
            let lower = sorted[position as usize];
            let upper = sorted[(position as usize + 1).min(sorted.len() - 1)];
            // What rounding of logarithms adds is below a millionth of the accuracy.
            prop_assert!((of_many - lower).abs() <= lower.abs() * accuracy * 1.000_001, "{of_many} for {lower}");
            let expected = lower + (upper - lower) * position.fract();
            prop_assert_eq!(of_few, expected);
        }
    }

    #[test]
    fn the_median_of_two_lies_between_them() {
        for (values, share, expected) in [
            (&[116.0, 177.0][..], 0.5, 146.5),
            (&[1.0, 2.0, 4.0, 8.0], 0.5, 3.0),
            (&[1.0, 2.0, 4.0], 0.5, 2.0),
            (&[1.0, 1.0, 1.0, 9.0], 0.5, 1.0),
            (&[1.0, 1.0, 9.0, 9.0], 0.5, 5.0),
            (&[-5.0; 7], 0.5, -5.0),
            (&[0.0, 10.0], 0.25, 2.5),
            (&[-1e308, 1e308], 0.5, 0.0),
        ] {
            assert_eq!(float_of(sketch(0.01, values).quantile(share)), expected, "{values:?}");
        }
    }

    #[test]
    fn many_different_numbers_are_counted_in_bins_in_whatever_order_they_come() {
        let numbers = |range: std::ops::Range<usize>| range.map(|n| n as f64).collect::<Vec<_>>();
        let few = sketch(0.01, &numbers(0..FEW_MAX));
        assert!(few.is_exact());
        assert_eq!(float_of(few.quantile(0.5)), (FEW_MAX - 1) as f64 / 2.0);
        let all = numbers(0..FEW_MAX + 1);
        let mut whole = Vec::new();
        sketch(0.01, &all).encode(&mut whole);
        assert_eq!(whole[0], MANY);
        // Parts that are few each, and one that is many by itself.
        for split in [1, FEW_MAX / 2, FEW_MAX] {
            let mut merged = sketch(0.01, &all[..split]);
            merged.merge(sketch(0.01, &all[split / 2..])).expect("few numbers");
            let mut again = sketch(0.01, &all[split..]);
            again.merge(sketch(0.01, &all[..split])).expect("few numbers");
            let mut bytes = Vec::new();
            again.encode(&mut bytes);
            assert!(!merged.is_exact() && bytes == whole, "{split}");
        }
    }

    #[test]
    fn nothing_has_no_quantile_and_the_ends_are_exact() {
        assert_eq!(Sketch::new(0.01).quantile(0.5), None);
        let values = [3.3, -7.7, 1e-320, 123.456];
        let sketch = binned(0.5, &values);
        assert_eq!(float_of(sketch.quantile(0.0)), -7.7);
        assert_eq!(float_of(sketch.quantile(1.0)), 123.456);
        assert_eq!(float_of(sketch.quantile(0.4)), 0.0, "no normal float");
    }

    #[test]
    fn what_no_sketch_is_stored_as_is_refused() {
        let decode = |bytes: &[u8]| Sketch::decode(0.01, &mut Reader::new(bytes));
        let mut bytes = Vec::new();
        binned(0.01, &[1.0, 2.0]).encode(&mut bytes);
        assert!(decode(&bytes).is_ok());
        let bins_at = bytes.len() - 26 - 4;
        for (at, byte) in [
            (0, 3),
            (0, FEW),
            (1, 3),
            (1, 2),
            (bins_at, 9),
            (bins_at + 4, 9),
            (bins_at + 8, 0x7F),
            (bins_at + 9, 0),
        ] {
            let mut lie = bytes.clone();
            lie[at] = byte;
            assert!(decode(&lie).is_err(), "{at} {byte}");
        }
        // A form, a count, and for each number its tag, its bytes and how often it occurred.
        let mut bytes = Vec::new();
        sketch(0.01, &[1.0, 2.0]).encode(&mut bytes);
        assert!(decode(&bytes).is_ok());
        for (at, byte) in [(0, MANY), (0, 3), (1, 3), (5, 7), (5, 1), (6, 2), (14, 0)] {
            let mut lie = bytes.clone();
            lie[at] = byte;
            assert!(decode(&lie).is_err(), "{at} {byte}");
        }
        let mut empty = Vec::new();
        Sketch::new(0.01).encode(&mut empty);
        assert_eq!(empty, [FEW, 0, 0, 0, 0]);
        assert!(decode(&[MANY, 1, 1, 0, 0, 0, 0]).is_err(), "of nothing there is one form");
    }
}
