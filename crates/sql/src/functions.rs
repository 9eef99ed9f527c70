//! Functions of the values of a row.
//!
//! A function of a null is null, but for `concat`, `greatest` and `least`, which pass over nulls.

use std::cmp::Ordering;

use sapwood_schema::{Data, POWERS_OF_TEN, Type, Value, Vector, rescale};

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::node::OnFailure;
use crate::out::{Out, compare_floats, texts};
use crate::time::{Field, Format, Interval, Unit, last_day};

/// A function, with what is constant of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Function {
    /// Refuses what a narrower type cannot have: `cast(x as smallint)`.
    Narrow(Type, OnFailure),
    /// `||`.
    Join,
    Concat,
    Abs,
    Sign,
    /// To so many digits behind the point.
    Round(i64),
    Floor,
    Ceil,
    Truncate,
    /// A function of floats: its name, and what it computes.
    OfFloat(FloatFunction),
    Power,
    Atan2,
    Greatest,
    Least,
    Length,
    OctetLength,
    Lower,
    Upper,
    Trim(Side),
    Substring,
    Replace,
    StartsWith,
    EndsWith,
    Contains,
    Position,
    Left,
    Right,
    Reverse,
    Repeat,
    Pad(Side),
    SplitPart,
    DateTrunc(Unit),
    Extract(Field),
    AddInterval(Interval),
    /// The whole units between two moments.
    DateDiff(Unit),
    /// The last day of a month.
    LastDay,
    /// The beginning of the span of this length that a moment is in; spans are counted from an
    /// origin.
    Bucket(Interval),
    /// `strftime`.
    Format(Format),
    /// Item of an array, from 1.
    Item(Type, u16),
}

/// An end of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Both,
    Left,
    Right,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloatFunction {
    Sqrt,
    Ln,
    Log10,
    Log2,
    Exp,
    Cbrt,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Degrees,
    Radians,
}

impl FloatFunction {
    pub(crate) fn of_name(name: &str) -> Option<FloatFunction> {
        Some(match name {
            "sqrt" => FloatFunction::Sqrt,
            "ln" => FloatFunction::Ln,
            "log" | "log10" => FloatFunction::Log10,
            "log2" => FloatFunction::Log2,
            "exp" => FloatFunction::Exp,
            "cbrt" => FloatFunction::Cbrt,
            "sin" => FloatFunction::Sin,
            "cos" => FloatFunction::Cos,
            "tan" => FloatFunction::Tan,
            "asin" => FloatFunction::Asin,
            "acos" => FloatFunction::Acos,
            "atan" => FloatFunction::Atan,
            "sinh" => FloatFunction::Sinh,
            "cosh" => FloatFunction::Cosh,
            "tanh" => FloatFunction::Tanh,
            "degrees" => FloatFunction::Degrees,
            "radians" => FloatFunction::Radians,
            _ => return None,
        })
    }

    fn apply(self, value: f64) -> Result<f64> {
        let (result, refused) = match self {
            FloatFunction::Sqrt if value < 0.0 => (0.0, Some("a square root of a negative number")),
            FloatFunction::Ln | FloatFunction::Log10 | FloatFunction::Log2 if value <= 0.0 => {
                (0.0, Some("a logarithm of a number that is not above zero"))
            }
            FloatFunction::Sin | FloatFunction::Cos | FloatFunction::Tan if value.is_infinite() => {
                (0.0, Some("a sine, cosine or tangent of infinity"))
            }
            FloatFunction::Asin | FloatFunction::Acos if value.abs() > 1.0 => {
                (0.0, Some("a number whose sine or cosine is beyond -1 to 1"))
            }
            FloatFunction::Sqrt => (value.sqrt(), None),
            FloatFunction::Ln => (value.ln(), None),
            FloatFunction::Log10 => (value.log10(), None),
            FloatFunction::Log2 => (value.log2(), None),
            FloatFunction::Exp => (value.exp(), None),
            FloatFunction::Cbrt => (value.cbrt(), None),
            FloatFunction::Sin => (value.sin(), None),
            FloatFunction::Cos => (value.cos(), None),
            FloatFunction::Tan => (value.tan(), None),
            FloatFunction::Asin => (value.asin(), None),
            FloatFunction::Acos => (value.acos(), None),
            FloatFunction::Atan => (value.atan(), None),
            FloatFunction::Sinh => (value.sinh(), None),
            FloatFunction::Cosh => (value.cosh(), None),
            FloatFunction::Tanh => (value.tanh(), None),
            FloatFunction::Degrees => (value.to_degrees(), None),
            FloatFunction::Radians => (value.to_radians(), None),
        };
        match refused {
            Some(refused) => Err(Error::value(format!("there is no {}", &refused[2..]))),
            None if result.is_infinite() && value.is_finite() => {
                Err(Error::value("a result is too large for double"))
            }
            None => Ok(result),
        }
    }
}

/// Texts that a statement makes are at most so long.
const TEXT_BYTES_MAX: usize = 64 << 20;

type Parts<'p, 'a> = &'p [(Out<'a>, &'p Kind)];

/// The rows of which a part is null.
fn nulls_of(parts: Parts<'_, '_>, len: usize) -> Option<Vec<bool>> {
    let mut nulls: Option<Vec<bool>> = None;
    for (out, _) in parts.iter().filter(|(out, _)| out.vector.nulls.is_some()) {
        let nulls = nulls.get_or_insert_with(|| vec![false; len]);
        for (row, null) in nulls.iter_mut().enumerate() {
            *null |= out.is_null(row);
        }
    }
    nulls
}

fn ints<'a>(out: &'a Out<'_>) -> &'a [i64] {
    match &out.vector.data {
        Data::Int(values) => values,
        other => unreachable!("{other:?} are no whole numbers"),
    }
}

fn floats<'a>(out: &'a Out<'_>) -> &'a [f64] {
    match &out.vector.data {
        Data::Float(values) => values,
        other => unreachable!("{other:?} are no floats"),
    }
}

/// A whole number for each row that has values.
fn each_int(
    len: usize,
    nulls: Option<Vec<bool>>,
    mut apply: impl FnMut(usize) -> Result<i64>,
) -> Result<Vector> {
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls[row]);
    let values = (0..len).map(|row| if is_null(row) { Ok(0) } else { apply(row) });
    Ok(Vector { data: Data::Int(values.collect::<Result<_>>()?), nulls })
}

fn each_float(
    len: usize,
    nulls: Option<Vec<bool>>,
    mut apply: impl FnMut(usize) -> Result<f64>,
) -> Result<Vector> {
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls[row]);
    let values = (0..len).map(|row| if is_null(row) { Ok(0.0) } else { apply(row) });
    Ok(Vector { data: Data::Float(values.collect::<Result<_>>()?), nulls })
}

fn each_truth(
    len: usize,
    nulls: Option<Vec<bool>>,
    mut apply: impl FnMut(usize) -> Result<bool>,
) -> Result<Vector> {
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls[row]);
    let values = (0..len).map(|row| if is_null(row) { Ok(false) } else { apply(row) });
    Ok(Vector { data: Data::Bool(values.collect::<Result<_>>()?), nulls })
}

impl Function {
    /// The values for `len` rows.
    pub(crate) fn evaluate(&self, parts: Parts<'_, '_>, len: usize, kind: &Kind) -> Result<Vector> {
        let nulls = match self {
            Function::Concat | Function::Greatest | Function::Least => None,
            _ => nulls_of(parts, len),
        };
        let part = |at: usize| &parts[at].0;
        let text = |at: usize, row: usize| part(at).text(row);
        let int = |at: usize, row: usize| ints(part(at))[row * part(at).step()];
        let float = |at: usize, row: usize| floats(part(at))[row * part(at).step()];
        match self {
            Function::Narrow(narrow, on_failure) => {
                narrowed(part(0), narrow, *on_failure, len, nulls)
            }
            Function::Join => texts(len, nulls, |row, out| {
                for at in 0..parts.len() {
                    out.extend_from_slice(part(at).bytes(row));
                }
                Ok(())
            }),
            Function::Concat => texts(len, None, |row, out| {
                for (part, _) in parts.iter().filter(|(part, _)| !part.is_null(row)) {
                    out.extend_from_slice(part.bytes(row));
                }
                Ok(())
            }),
            Function::Abs | Function::Sign => self.by_sign(part(0), len, nulls, kind),
            Function::Round(digits) => round(part(0), parts[0].1, len, nulls, *digits, kind),
            Function::Floor | Function::Ceil | Function::Truncate => {
                self.to_whole(part(0), len, nulls, parts[0].1)
            }
            Function::OfFloat(function) => {
                each_float(len, nulls, |row| function.apply(float(0, row)))
            }
            Function::Power => each_float(len, nulls, |row| {
                let (base, exponent) = (float(0, row), float(1, row));
                let power = base.powf(exponent);
                let is_new = |it: bool| it && base.is_finite() && exponent.is_finite();
                match () {
                    () if is_new(power.is_nan()) => {
                        Err(Error::value("there is no such power of a negative number"))
                    }
                    () if is_new(power.is_infinite()) => {
                        Err(Error::value("a power is too large for double"))
                    }
                    () => Ok(power),
                }
            }),
            Function::Atan2 => each_float(len, nulls, |row| Ok(float(0, row).atan2(float(1, row)))),
            Function::Greatest => Ok(extreme(parts, len, kind, Ordering::is_gt)),
            Function::Least => Ok(extreme(parts, len, kind, Ordering::is_lt)),
            Function::Length => {
                each_int(len, nulls, |row| Ok(text(0, row)?.chars().count() as i64))
            }
            Function::OctetLength => {
                each_int(len, nulls, |row| Ok(part(0).bytes(row).len() as i64))
            }
            Function::Lower => texts(len, nulls, |row, out| {
                out.extend_from_slice(text(0, row)?.to_lowercase().as_bytes());
                Ok(())
            }),
            Function::Upper => texts(len, nulls, |row, out| {
                out.extend_from_slice(text(0, row)?.to_uppercase().as_bytes());
                Ok(())
            }),
            Function::Trim(side) => texts(len, nulls, |row, out| {
                let letters: Vec<char> =
                    if parts.len() > 1 { text(1, row)?.chars().collect() } else { vec![' '] };
                let whole = text(0, row)?;
                let trimmed = match side {
                    Side::Both => whole.trim_matches(&letters[..]),
                    Side::Left => whole.trim_start_matches(&letters[..]),
                    Side::Right => whole.trim_end_matches(&letters[..]),
                };
                out.extend_from_slice(trimmed.as_bytes());
                Ok(())
            }),
            Function::Substring => texts(len, nulls, |row, out| {
                let limit = if parts.len() > 2 { Some(int(2, row)) } else { None };
                let cut = substring(text(0, row)?, int(1, row), limit)?;
                out.extend_from_slice(cut.as_bytes());
                Ok(())
            }),
            Function::Replace => texts(len, nulls, |row, out| {
                let (whole, old, new) = (text(0, row)?, text(1, row)?, text(2, row)?);
                if old.is_empty() {
                    out.extend_from_slice(whole.as_bytes());
                    return Ok(());
                }
                let count = whole.matches(old).count();
                expect_short(whole.len() + count * new.len())?;
                out.extend_from_slice(whole.replace(old, new).as_bytes());
                Ok(())
            }),
            Function::StartsWith => {
                each_truth(len, nulls, |row| Ok(text(0, row)?.starts_with(text(1, row)?)))
            }
            Function::EndsWith => {
                each_truth(len, nulls, |row| Ok(text(0, row)?.ends_with(text(1, row)?)))
            }
            Function::Contains => {
                each_truth(len, nulls, |row| Ok(text(0, row)?.contains(text(1, row)?)))
            }
            Function::Position => each_int(len, nulls, |row| {
                let whole = text(0, row)?;
                let found = whole.find(text(1, row)?);
                Ok(found.map_or(0, |at| whole[..at].chars().count() as i64 + 1))
            }),
            Function::Left | Function::Right => texts(len, nulls, |row, out| {
                let (whole, count) = (text(0, row)?, int(1, row));
                let all = whole.chars().count() as i64;
                // A negative count leaves so many letters of the other end away.
                let kept = if count < 0 { (all + count).max(0) } else { count.min(all) };
                let cut = match self {
                    Function::Left => byte_of(whole, kept)..byte_of(whole, kept),
                    _ => byte_of(whole, all - kept)..whole.len(),
                };
                let kept = match self {
                    Function::Left => &whole[..cut.start],
                    _ => &whole[cut],
                };
                out.extend_from_slice(kept.as_bytes());
                Ok(())
            }),
            Function::Reverse => texts(len, nulls, |row, out| {
                let reversed: String = text(0, row)?.chars().rev().collect();
                out.extend_from_slice(reversed.as_bytes());
                Ok(())
            }),
            Function::Repeat => texts(len, nulls, |row, out| {
                let (whole, count) = (text(0, row)?, int(1, row).max(0) as usize);
                expect_short(whole.len().saturating_mul(count))?;
                (0..count).for_each(|_| out.extend_from_slice(whole.as_bytes()));
                Ok(())
            }),
            Function::Pad(side) => texts(len, nulls, |row, out| {
                let (whole, wanted) = (text(0, row)?, int(1, row).max(0));
                let letters = if parts.len() > 2 { text(2, row)? } else { " " };
                expect_short(usize::try_from(wanted).unwrap_or(usize::MAX).saturating_mul(4))?;
                let missing = (wanted - whole.chars().count() as i64).max(0) as usize;
                let pad: String = letters.chars().cycle().take(missing).collect();
                let kept = &whole[..byte_of(whole, wanted)];
                let (first, last) = match side {
                    Side::Left => (pad.as_str(), kept),
                    _ => (kept, pad.as_str()),
                };
                out.extend_from_slice(first.as_bytes());
                out.extend_from_slice(last.as_bytes());
                Ok(())
            }),
            Function::SplitPart => texts(len, nulls, |row, out| {
                let (whole, separator, index) = (text(0, row)?, text(1, row)?, int(2, row));
                let parts: Vec<&str> = match separator {
                    "" => vec![whole],
                    separator => whole.split(separator).collect(),
                };
                // The first is 1, the last -1.
                let at = match index {
                    1.. => usize::try_from(index - 1).ok(),
                    0 => return Err(Error::value("parts are numbered from 1: there is no part 0")),
                    _ => usize::try_from(parts.len() as i64 + index).ok(),
                };
                out.extend_from_slice(
                    at.and_then(|at| parts.get(at)).copied().unwrap_or("").as_bytes(),
                );
                Ok(())
            }),
            Function::DateTrunc(unit) => {
                each_int(len, nulls, |row| Ok(unit.truncate(int(0, row), parts[0].1)))
            }
            Function::Extract(field) => match kind {
                Kind::Float => {
                    each_float(len, nulls, |row| Ok(field.seconds(int(0, row), parts[0].1)))
                }
                _ => each_int(len, nulls, |row| Ok(field.of(int(0, row), parts[0].1))),
            },
            Function::AddInterval(interval) => each_int(len, nulls, |row| {
                let too_far = || Error::value(format!("a {kind} is out of range"));
                interval.add_to(int(0, row), kind).ok_or_else(too_far)
            }),
            Function::DateDiff(unit) => each_int(len, nulls, |row| {
                let begin = unit.count(int(0, row), parts[0].1);
                Ok(unit.count(int(1, row), parts[1].1) - begin)
            }),
            Function::LastDay => each_int(len, nulls, |row| Ok(last_day(int(0, row), parts[0].1))),
            Function::Bucket(interval) => each_int(len, nulls, |row| {
                let origin = (parts.len() > 1).then(|| int(1, row));
                let too_far = || Error::value(format!("a {kind} is out of range"));
                interval.bucket_of(int(0, row), origin, kind).ok_or_else(too_far)
            }),
            Function::Format(format) => texts(len, nulls, |row, out| {
                format.write(int(0, row), parts[0].1, out);
                Ok(())
            }),
            Function::Item(item, count) => {
                let width = item.width().expect("items have a width");
                let array = Type::Array(Box::new(item.clone()), *count);
                let mut vector = Vector::new(kind.data());
                for row in 0..len {
                    let at = int(1, row);
                    let is_null = nulls.as_ref().is_some_and(|nulls| nulls[row]);
                    if is_null || !(1..=i64::from(*count)).contains(&at) {
                        vector.push_null();
                        continue;
                    }
                    debug_assert_eq!(array.width(), Some(part(0).bytes(row).len()));
                    let bytes = &part(0).bytes(row)[(at as usize - 1) * width..][..width];
                    let one = Type::Array(Box::new(item.clone()), 1);
                    let value = sapwood_schema::Cell::Array(bytes).into_value(&one);
                    match value {
                        Ok(Value::Array(items)) => vector.push_value(&items[0]),
                        _ => unreachable!("an array has items"),
                    }
                }
                Ok(vector)
            }
        }
    }

    fn by_sign(
        &self,
        out: &Out<'_>,
        len: usize,
        nulls: Option<Vec<bool>>,
        kind: &Kind,
    ) -> Result<Vector> {
        let is_abs = *self == Function::Abs;
        let too_large = || Error::value(format!("a value is too large for {kind}"));
        let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls[row]);
        let step = out.step();
        let data = match &out.vector.data {
            Data::Float(values) => {
                let value = |row: usize| values[row * step];
                match is_abs {
                    true => Data::Float((0..len).map(|row| value(row).abs()).collect()),
                    false => {
                        let sign = |value: f64| i64::from(value > 0.0) - i64::from(value < 0.0);
                        Data::Int((0..len).map(|row| sign(value(row))).collect())
                    }
                }
            }
            Data::Int(values) => {
                let apply = |row: usize| match (is_null(row), is_abs) {
                    (true, _) => Ok(0),
                    (_, true) => values[row * step].checked_abs().ok_or_else(too_large),
                    (_, false) => Ok(values[row * step].signum()),
                };
                Data::Int((0..len).map(apply).collect::<Result<_>>()?)
            }
            Data::Huge(values) if is_abs => {
                Data::Huge((0..len).map(|row| values[row * step]).collect())
            }
            Data::Huge(values) => {
                Data::Int((0..len).map(|row| i64::from(values[row * step] > 0)).collect())
            }
            Data::Big(values) if is_abs => {
                let apply = |row: usize| match is_null(row) {
                    true => Ok(0),
                    false => values[row * step].checked_abs().ok_or_else(too_large),
                };
                Data::Big((0..len).map(apply).collect::<Result<_>>()?)
            }
            Data::Big(values) => {
                Data::Int((0..len).map(|row| values[row * step].signum() as i64).collect())
            }
            other => unreachable!("{other:?} have no sign"),
        };
        Ok(Vector { data, nulls })
    }

    /// Of floats floats, of decimals whole numbers.
    fn to_whole(
        &self,
        out: &Out<'_>,
        len: usize,
        nulls: Option<Vec<bool>>,
        from: &Kind,
    ) -> Result<Vector> {
        let step = out.step();
        let data = match (&out.vector.data, from) {
            (Data::Float(values), _) => {
                let apply = match self {
                    Function::Floor => f64::floor,
                    Function::Ceil => f64::ceil,
                    _ => f64::trunc,
                };
                Data::Float((0..len).map(|row| apply(values[row * step])).collect())
            }
            (Data::Big(values), Kind::Decimal(scale)) => {
                let power = POWERS_OF_TEN[usize::from(*scale)];
                let apply = |row: usize| {
                    let value = values[row * step];
                    match self {
                        Function::Floor => value.div_euclid(power),
                        Function::Ceil => -(-value).div_euclid(power),
                        _ => value / power,
                    }
                };
                Data::Big((0..len).map(apply).collect())
            }
            // Whole numbers are whole.
            (_, _) => {
                (0..len)
                    .fold(out.vector.emptied(), |mut vector, row| {
                        vector.push_from(&out.vector, row * step);
                        vector
                    })
                    .data
            }
        };
        Ok(Vector { data, nulls })
    }
}

/// Values that a narrower type has, too.
fn narrowed(
    out: &Out<'_>,
    narrow: &Type,
    on_failure: OnFailure,
    len: usize,
    nulls: Option<Vec<bool>>,
) -> Result<Vector> {
    let vector = &out.vector;
    let kind = Kind::of_type(narrow).to_type();
    let mut narrowed = vector.emptied();
    for row in 0..len {
        if nulls.as_ref().is_some_and(|nulls| nulls[row]) {
            narrowed.push_null();
            continue;
        }
        let value = vector.value(row * out.step(), &kind);
        let value = value.map_err(|error| Error::value(error.to_string()))?;
        match (value.to_type(narrow), on_failure) {
            (Ok(value), _) => narrowed.push_value(&value),
            (Err(_), OnFailure::Null) => narrowed.push_null(),
            (Err(what), OnFailure::Refuse) => return Err(Error::value(what)),
        }
    }
    Ok(narrowed)
}

/// Halves go away from zero.
fn round(
    out: &Out<'_>,
    from: &Kind,
    len: usize,
    nulls: Option<Vec<bool>>,
    digits: i64,
    kind: &Kind,
) -> Result<Vector> {
    let step = out.step();
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls[row]);
    let too_large = || Error::value(format!("a value is too large for {kind}"));
    let data = match &out.vector.data {
        Data::Float(values) => {
            let apply = |row: usize| {
                let value = values[row * step];
                let rounded = round_float(value, digits);
                match rounded.is_finite() || !value.is_finite() {
                    true => Ok(rounded),
                    false => Err(too_large()),
                }
            };
            Data::Float((0..len).map(apply).collect::<Result<_>>()?)
        }
        Data::Int(values) => {
            let apply = |row: usize| match is_null(row) {
                true => Ok(0),
                false => round_units(values[row * step].into(), 0, digits)
                    .and_then(|rounded| i64::try_from(rounded).ok())
                    .ok_or_else(too_large),
            };
            Data::Int((0..len).map(apply).collect::<Result<_>>()?)
        }
        Data::Big(values) => {
            // At once: 499.9 is no 500 before it is rounded to thousands.
            let (scale, most) = match from {
                Kind::Decimal(scale) => (*scale, POWERS_OF_TEN[38] - 1),
                _ => (0, i128::MAX),
            };
            let apply = |row: usize| match is_null(row) {
                true => Ok(0),
                false => round_units(values[row * step], scale, digits)
                    .filter(|rounded| rounded.unsigned_abs() <= most.unsigned_abs())
                    .ok_or_else(too_large),
            };
            Data::Big((0..len).map(apply).collect::<Result<_>>()?)
        }
        Data::Huge(values) => {
            let apply = |row: usize| match is_null(row) {
                true => Ok(0),
                false => round_unsigned(values[row * step], digits).ok_or_else(too_large),
            };
            Data::Huge((0..len).map(apply).collect::<Result<_>>()?)
        }
        other => unreachable!("{other:?} are not rounded"),
    };
    Ok(Vector { data, nulls })
}

/// The whole number nearest to `value * 10^digits`, halves away from zero; at least 2^52, and so whole without
/// rounding, or infinite, where floats have no digits there.
///
/// The value itself is looked at, not a rounded product: 2.675 is a float below the half of 2.67 and 2.68.
pub(crate) fn scaled_to_whole(value: f64, digits: u16) -> f64 {
    let scaled = value * power_of_ten(digits);
    let (magnitude, whole) = (scaled.abs(), scaled.abs().floor());
    if magnitude.is_nan() || magnitude >= 2_f64.powi(52) {
        return scaled;
    }
    // The product is off by a few units in the last place at most.
    if (magnitude - whole - 0.5).abs() > magnitude * f64::EPSILON * 4.0 {
        return scaled.round();
    }
    // A half ends with the bit behind those of `10^digits`.
    let halves = value.abs() * 2_f64.powi(i32::from(digits) + 1);
    let is_half = halves.is_finite() && halves % 2.0 == 1.0;
    let is_above = is_half || {
        let rounded = format!("{:.*}", usize::from(digits), value.abs()).replace('.', "");
        rounded.parse::<f64>().is_ok_and(|rounded| rounded > whole)
    };
    (whole + f64::from(u8::from(is_above))).copysign(value)
}

/// Ten to a power, rounded once.
fn power_of_ten(exponent: u16) -> f64 {
    match exponent {
        0..=22 => 10_f64.powi(exponent.into()),
        _ => format!("1e{exponent}").parse().unwrap_or(f64::INFINITY),
    }
}

fn round_float(value: f64, digits: i64) -> f64 {
    let places = digits.unsigned_abs().min(400) as u16;
    if !value.is_finite() {
        return value;
    }
    if digits >= 0 {
        let scaled = scaled_to_whole(value, places);
        return match scaled.abs() < 2_f64.powi(52) {
            true if places <= 22 => scaled / power_of_ten(places),
            true => format!("{scaled}e-{places}").parse().unwrap_or(value),
            // Finer than a float is.
            false => value,
        };
    }
    round_to_tens(value.abs(), places).copysign(value)
}

/// A number that is not negative, to a multiple of ten to a power.
fn round_to_tens(value: f64, places: u16) -> f64 {
    let power = power_of_ten(places);
    if value < 2_f64.powi(53) {
        // The rest is exact, and so is the difference.
        let rest = value % power;
        return value - rest + if rest * 2.0 >= power { power } else { 0.0 };
    }
    // A whole number of many digits.
    let digits = format!("{value:.0}");
    let Some(kept) = digits.len().checked_sub(places.into()) else { return 0.0 };
    let (kept, rest) = digits.split_at(kept);
    let is_up = rest.starts_with(['5', '6', '7', '8', '9']);
    let nines = kept.len() - kept.trim_end_matches('9').len();
    let (head, nines) = kept.split_at(kept.len() - nines);
    let rounded = match (is_up, head.as_bytes().split_last()) {
        (false, _) => format!("0{kept}e{places}"),
        (true, None) => format!("1{}e{places}", "0".repeat(nines.len())),
        (true, Some((last, head))) => {
            let head = String::from_utf8_lossy(head);
            format!("{head}{}{}e{places}", char::from(last + 1), "0".repeat(nines.len()))
        }
    };
    rounded.parse().unwrap_or(f64::INFINITY)
}

/// A number of so many digits behind the point, rounded to a multiple of ten to a power: a whole number, none if 128
/// bits do not hold it.
fn round_units(units: i128, scale: u8, digits: i64) -> Option<i128> {
    match digits {
        0.. => Some(units),
        -38..0 => {
            let places = digits.unsigned_abs() as u8;
            rescale(units, scale + places, 0)?.checked_mul(POWERS_OF_TEN[usize::from(places)])
        }
        _ => Some(0),
    }
}

/// A number without a sign rounded to a multiple of ten to a power; none if 128 bits do not hold it.
fn round_unsigned(value: u128, digits: i64) -> Option<u128> {
    match digits {
        0.. => Some(value),
        -38..0 => {
            let power = POWERS_OF_TEN[digits.unsigned_abs() as usize].unsigned_abs();
            let whole = value / power + u128::from(value % power >= power / 2);
            whole.checked_mul(power)
        }
        _ => Some(0),
    }
}

/// The greatest or the least of the values that are not null.
fn extreme(
    parts: Parts<'_, '_>,
    len: usize,
    kind: &Kind,
    is_better: fn(Ordering) -> bool,
) -> Vector {
    let mut vector = Vector::new(kind.data());
    for row in 0..len {
        let mut best: Option<&Out<'_>> = None;
        for (out, _) in parts.iter().filter(|(out, _)| !out.is_null(row)) {
            let order = |best: &Out<'_>| {
                compare(&out.vector, row * out.step(), &best.vector, row * best.step())
            };
            if best.is_none_or(|best| is_better(order(best))) {
                best = Some(out);
            }
        }
        match best {
            Some(out) => vector.push_from(&out.vector, row * out.step()),
            None => vector.push_null(),
        }
    }
    vector
}

/// Two values of one representation, neither of them null.
pub(crate) fn compare(left: &Vector, left_at: usize, right: &Vector, right_at: usize) -> Ordering {
    match (&left.data, &right.data) {
        (Data::Bool(left), Data::Bool(right)) => left[left_at].cmp(&right[right_at]),
        (Data::Int(left), Data::Int(right)) => left[left_at].cmp(&right[right_at]),
        (Data::Big(left), Data::Big(right)) => left[left_at].cmp(&right[right_at]),
        (Data::Huge(left), Data::Huge(right)) => left[left_at].cmp(&right[right_at]),
        (Data::Float(left), Data::Float(right)) => compare_floats(left[left_at], right[right_at]),
        (Data::Bytes(left), Data::Bytes(right)) => left.get(left_at).cmp(right.get(right_at)),
        (left, right) => unreachable!("{left:?} is not compared with {right:?}"),
    }
}

fn expect_short(len: usize) -> Result<()> {
    match len <= TEXT_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::value("a text of more than 64 MiB is too long")),
    }
}

/// The byte at which so many letters have passed, or the end.
fn byte_of(text: &str, letters: i64) -> usize {
    let at = usize::try_from(letters).unwrap_or(0);
    text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte)
}

/// As SQL says: from a letter, numbered from 1 and perhaps before the first, so many letters on.
fn substring(text: &str, from: i64, count: Option<i64>) -> Result<&str> {
    let limit = match count {
        Some(count) if count < 0 => {
            return Err(Error::value("a substring has no negative length"));
        }
        Some(count) => from.saturating_add(count),
        None => i64::MAX,
    };
    let (begin, limit) = (byte_of(text, from.max(1) - 1), byte_of(text, limit.max(1) - 1));
    Ok(&text[begin..limit.max(begin)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substrings_are_counted_in_letters_from_one() {
        for (text, from, count, expected) in [
            ("hello", 2, Some(3), "ell"),
            ("hello", 0, Some(2), "h"),
            ("hello", -1, Some(3), "h"),
            ("hello", 4, None, "lo"),
            ("hello", 9, None, ""),
            ("h\u{e4}llo", 2, Some(1), "\u{e4}"),
            ("hello", 2, Some(0), ""),
        ] {
            assert_eq!(substring(text, from, count).as_deref(), Ok(expected), "{text} {from}");
        }
        assert!(substring("a", 1, Some(-1)).is_err());
    }

    #[test]
    fn floats_are_rounded_by_what_they_are() {
        for (value, digits, expected) in [
            (2.675, 2, 2.67),
            (30.65, 1, 30.6),
            (42.12345, 4, 42.1234),
            (-2.675, 2, -2.67),
            (0.125, 2, 0.13),
            (-0.125, 2, -0.13),
            (2.5, 0, 3.0),
            (-2.5, 0, -3.0),
            (0.5, 0, 1.0),
            (0.499_999_999_999_999_94, 0, 0.0),
            (1.005, 2, 1.0),
            (1e300, 5, 1e300),
            (1.5e-300, 300, 2e-300),
            (f64::from_bits(1), 400, f64::from_bits(1)),
            (1234.5, -2, 1200.0),
            (25.0, -1, 30.0),
            (1_499.999_999_999_999_8, -3, 1_000.0),
            (1e300, -299, 1e300),
            (1e300, -301, 0.0),
            (6e300, -301, 1e301),
            (1.5e308, -308, f64::INFINITY),
            (1.4e308, -308, 1e308),
            (9_999_999_999_999_999_999.0, -1, 10_000_000_000_000_000_000.0),
            (19_999_999_999_999_999_999_999.0, -3, 2e22),
            (123_456_789_012_345_678_901_234.0, -4, 123_456_789_012_345_680_000_000.0),
            (7.0, -309, 0.0),
        ] {
            assert_eq!(round_float(value, digits), expected, "round({value}, {digits})");
        }
        for value in [f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!((round_float(value, -1), round_float(value, 1)), (value, value));
        }
        assert!(round_float(f64::NAN, -1).is_nan() && round_float(f64::NAN, 2).is_nan());
    }

    #[test]
    fn whole_numbers_are_rounded_to_tens() {
        for (value, digits, expected) in
            [(125, -1, 130), (-125, -1, -130), (124, -1, 120), (5, 2, 5), (5, -50, 0)]
        {
            assert_eq!(round_units(value, 0, digits), Some(expected));
        }
        for (units, scale, digits, expected) in [
            (4_999, 1, -3, 0),
            (-4_999, 1, -3, 0),
            (5_000, 1, -3, 1_000),
            (449, 1, -1, 40),
            (9_999, 1, -3, 1_000),
            (i128::MAX, 38, -38, 0),
            (i128::MAX, 0, -37, 17 * 10_i128.pow(37)),
        ] {
            let rounded = round_units(units, scale, digits);
            assert_eq!(rounded, Some(expected), "{units}e-{scale} {digits}");
        }
        assert_eq!(round_units(i128::MAX, 0, -38), None);
        for (value, digits, expected) in [
            (125, -1, Some(130)),
            (124, -1, Some(120)),
            (5, 2, Some(5)),
            (u128::MAX, -1, None),
            (u128::MAX, -2, None),
            (u128::MAX, -3, Some(u128::MAX / 1_000 * 1_000)),
            (u128::MAX, -38, Some(3 * 10_u128.pow(38))),
            (u128::MAX, -39, Some(0)),
        ] {
            assert_eq!(round_unsigned(value, digits), expected);
        }
    }
}
