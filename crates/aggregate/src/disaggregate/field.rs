//! The fields that can be changed, and the change of one.
//!
//! Numbers of fixed width are changed where they lie, decimal digits at the end of a value are written
//! anew. What a field would become is computed and checked before a byte is changed.

use std::fmt;

use crate::error::{QueryError, Result, Why};
use crate::question::layout::{Field, Part, Place, Read};
use crate::value::number::{Form, Number, Order};
use crate::value::{Float, Value};

/// The use of an object's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The field becomes the part. Doing it twice is doing it once.
    Set,
    /// The part is added to the field.
    Add,
}

/// What a field holds, before or after a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// The value that stands for missing.
    Missing,
    /// A whole number.
    Whole(i128),
    /// A floating point number, never NaN.
    Float(f64),
}

/// What became of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// What it held.
    pub before: Amount,
    /// What it holds now.
    pub after: Amount,
}

/// Why an object was not changed: it no longer has the field, or the field cannot hold what it would
/// become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal(pub(super) Why);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Refusal {}

impl Amount {
    pub(super) fn value(self) -> Option<Value<'static>> {
        match self {
            Amount::Missing => None,
            Amount::Whole(value) => Some(Value::Int(value)),
            Amount::Float(value) => Float::new(value).map(Value::Float),
        }
    }

    /// What says which amount of its field it is; none where it is missing.
    pub(super) fn bits(self) -> Option<i128> {
        match self {
            Amount::Missing => None,
            Amount::Whole(value) => Some(value),
            Amount::Float(value) => Some(value.to_bits().into()),
        }
    }
}

/// A field that can be changed.
#[derive(Debug, Clone)]
pub(super) struct Target {
    field: Field,
    offset: usize,
    /// Behind the last byte of a number.
    end: usize,
    write: Write,
    /// The whole numbers that it can hold; none of floats.
    range: Option<(i128, i128)>,
}

#[derive(Debug, Clone, Copy)]
enum Write {
    Number(Number),
    /// Digits to the end of the value.
    Decimal,
}

impl Target {
    pub(super) fn new(field: &Field) -> Result<Target> {
        let refused = |why: &str| {
            let name = &field.name;
            Err(QueryError::Query(format!(
                "field `{name}` cannot be changed: {why}. What can be is a number of fixed width, or decimal digits to the end, at an offset of the value"
            )))
        };
        let write = match (field.place, &field.read) {
            (Place::Key, _) => return refused("it is part of the key"),
            (_, Read::Number(number)) => Write::Number(*number),
            (_, Read::Decimal) => Write::Decimal,
            (_, Read::Bytes(_) | Read::Text(_)) => return refused("it is not a number"),
            (_, Read::Json(_) | Read::MessagePack(_)) => return refused("it lies in a document"),
            (_, Read::Tuple(_)) => return refused("it is part of a tuple"),
            (_, Read::Row(_)) => {
                return refused("it is a column of rows that may be null, or whose place changes");
            }
        };
        match field.part {
            Part::From(offset) => {
                let (range, bytes) = match write {
                    Write::Number(number) => (number.range(), number.bytes()),
                    Write::Decimal => (Some((i128::MIN, i128::MAX)), 0),
                };
                // Beyond all values where the offset is.
                let end = offset.saturating_add(bytes);
                Ok(Target { field: field.clone(), offset, end, write, range })
            }
            Part::Split { .. } => refused("it lies between separators"),
            Part::Cell(_) => refused("it lies in a row of cells"),
        }
    }

    /// Whether a change keeps the length of the value.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self.write, Write::Number(_))
    }

    /// Whether it is a float of 4 bytes.
    fn is_narrow(&self) -> bool {
        self.range.is_none() && matches!(self.write, Write::Number(number) if number.bytes() == 4)
    }

    /// A signed number of 8 bytes, little endian, with which a value begins, and which always is there.
    pub(super) fn is_word(&self) -> bool {
        let word = Number::new(Form::Signed, 8, Order::Little);
        self.offset == 0
            && self.field.absent.is_none()
            && matches!(self.write, Write::Number(number) if Some(number) == word)
    }

    /// Whole numbers that were held before, and to which each of `parts` can be added without a look
    /// at the sum; none if the least is above the greatest.
    pub(super) fn safe(&self, (least, greatest): (i128, i128)) -> (i128, i128) {
        let (min, max) = self.range.unwrap_or_else(|| {
            // Every whole number up to there is a float.
            let most = 1 << if self.is_narrow() { 24 } else { 53 };
            (-most, most)
        });
        if self.field.absent.is_some() {
            return (0, -1);
        }
        let (least, greatest) = (least.min(0), greatest.max(0));
        (min.saturating_sub(least), max.saturating_sub(greatest))
    }

    /// What the field of a value holds.
    #[inline]
    pub(super) fn read(&self, value: &[u8]) -> std::result::Result<Amount, Why> {
        if let (Write::Number(number), None) = (self.write, &self.field.absent)
            && let Some(bytes) = value.get(self.offset..self.end)
        {
            return match number.read(bytes)? {
                Value::Int(whole) => Ok(Amount::Whole(whole)),
                Value::Float(float) => Ok(Amount::Float(float.get())),
                Value::Bool(_) | Value::Bytes(_) => unreachable!("a number is read as one"),
            };
        }
        self.read_slow(value)
    }

    fn read_slow(&self, value: &[u8]) -> std::result::Result<Amount, Why> {
        match self.field.read(&[], value)? {
            None => Ok(Amount::Missing),
            Some(Value::Int(whole)) => Ok(Amount::Whole(whole)),
            Some(Value::Float(float)) => match self.write {
                Write::Number(_) => Ok(Amount::Float(float.get())),
                Write::Decimal => Err(Why::NotWhole),
            },
            Some(other) => {
                Err(Why::Kind { found: other.kind(), wanted: crate::value::Kind::Number })
            }
        }
    }

    /// What the field becomes.
    #[inline]
    pub(super) fn after(
        &self,
        before: Amount,
        action: Action,
        part: i128,
    ) -> std::result::Result<Amount, Why> {
        let after = match (action, before) {
            (Action::Set, _) => self.whole(part)?,
            (Action::Add, Amount::Missing) => return Err(Why::Missing),
            (Action::Add, Amount::Whole(before)) => {
                self.whole(before.checked_add(part).ok_or(Why::BeyondWhole)?)?
            }
            (Action::Add, Amount::Float(before)) => {
                Amount::Float(self.narrow(add_exactly(before, part)?)?)
            }
        };
        self.check_writable(after)?;
        Ok(after)
    }

    /// Whether it holds floats.
    pub(super) fn is_float(&self) -> bool {
        self.field.is_float()
    }

    /// The float that the field holds when it is given this one.
    pub(super) fn rounded(&self, value: f64) -> f64 {
        if self.is_narrow() { f64::from(value as f32) } else { value }
    }

    /// Refuses what would be read as missing.
    pub(super) fn check_writable(&self, after: Amount) -> std::result::Result<(), Why> {
        match &self.field.absent {
            Some(absent) => self.check_present(absent, after),
            None => Ok(()),
        }
    }

    /// Writes what the field becomes. Reading has checked that it is there.
    pub(super) fn put(&self, value: &mut Vec<u8>, after: Amount) {
        match (self.write, after) {
            (Write::Number(number), _) => write(number, after, &mut value[self.offset..self.end]),
            (Write::Decimal, Amount::Whole(digits)) => {
                value.truncate(self.offset);
                value.extend_from_slice(digits.to_string().as_bytes());
            }
            (Write::Decimal, _) => unreachable!("decimal digits are whole"),
        }
    }

    /// Refuses what would be read as missing.
    fn check_present(&self, absent: &Value<'_>, after: Amount) -> std::result::Result<(), Why> {
        let whole = match after {
            Amount::Whole(value) => value,
            Amount::Float(value) => value as i128,
            Amount::Missing => unreachable!("nothing becomes missing"),
        };
        let stands_for_missing = match (absent, self.write) {
            (Value::Bytes(absent), Write::Decimal) => whole.to_string().as_bytes() == &**absent,
            // What lies behind the number would have to agree too, and may.
            (Value::Bytes(absent), Write::Number(number)) => {
                let mut bytes = [0; 16];
                let bytes = &mut bytes[..number.bytes()];
                write(number, after, bytes);
                absent.starts_with(bytes)
            }
            (absent, _) => after.value().as_ref() == Some(absent),
        };
        if stands_for_missing { Err(Why::StandsForMissing { value: whole }) } else { Ok(()) }
    }

    #[inline]
    pub(super) fn whole(&self, value: i128) -> std::result::Result<Amount, Why> {
        match self.range {
            Some((min, max)) if (min..=max).contains(&value) => Ok(Amount::Whole(value)),
            Some(_) => Err(Why::OutOfRange { value }),
            None => {
                let float = exact_float(value).ok_or(Why::Inexact)?;
                self.narrow(float).map(Amount::Float)
            }
        }
    }

    /// The float, if the field can hold it without rounding.
    fn narrow(&self, value: f64) -> std::result::Result<f64, Why> {
        let is_exact = !self.is_narrow() || f64::from(value as f32) == value;
        if is_exact { Ok(value) } else { Err(Why::Inexact) }
    }

    /// Changes the field of a value in place, or nothing. It is of fixed width.
    #[inline]
    pub(super) fn change(
        &self,
        value: &mut [u8],
        action: Action,
        part: i128,
    ) -> std::result::Result<Change, Why> {
        let Write::Number(number) = self.write else {
            unreachable!("`Disaggregator::change` asks whether it is of fixed width");
        };
        let before = self.read(value)?;
        let after = self.after(before, action, part)?;
        // Reading has checked that it is there.
        let bytes = &mut value[self.offset..self.end];
        write(number, after, bytes);
        Ok(Change { before, after })
    }

    /// Appends what the whole value becomes, or nothing.
    pub(super) fn rewrite(
        &self,
        value: &[u8],
        action: Action,
        part: i128,
        out: &mut Vec<u8>,
    ) -> std::result::Result<Change, Why> {
        let begin = out.len();
        if self.is_fixed() {
            out.extend_from_slice(value);
            let change = self.change(&mut out[begin..], action, part);
            if change.is_err() {
                out.truncate(begin);
            }
            return change;
        }
        let before = self.read(value)?;
        let after = self.after(before, action, part)?;
        let Amount::Whole(digits) = after else { unreachable!("decimal digits are whole") };
        out.extend_from_slice(&value[..self.offset]);
        out.extend_from_slice(digits.to_string().as_bytes());
        Ok(Change { before, after })
    }

    /// What [`Amount`] some bits are, as [`Amount::bits`] made them.
    pub(super) fn amount(&self, bits: i128) -> Amount {
        if self.field.is_float() {
            Amount::Float(f64::from_bits(bits as u64))
        } else {
            Amount::Whole(bits)
        }
    }

    /// The name of the field, for messages.
    pub(super) fn name(&self) -> &str {
        &self.field.name
    }
}

#[inline]
fn write(number: Number, after: Amount, bytes: &mut [u8]) {
    match after {
        Amount::Whole(after) => number.write(after, bytes),
        Amount::Float(after) => number.write_float(after, bytes),
        Amount::Missing => unreachable!("nothing becomes missing"),
    }
}

/// The float that is this whole number, if there is one.
fn exact_float(value: i128) -> Option<f64> {
    let float = value as f64;
    match Value::Float(Float::new(float)?).canonical() {
        Value::Int(whole) if whole == value => Some(float),
        _ => None,
    }
}

/// The sum, if no bit of it is lost.
fn add_exactly(before: f64, part: i128) -> std::result::Result<f64, Why> {
    let before = Float::new(before).ok_or(Why::Nan)?;
    if before.get().is_infinite() {
        return Err(Why::NotFinite);
    }
    if let Value::Int(whole) = Value::Float(before).canonical() {
        let sum = whole.checked_add(part).ok_or(Why::Inexact)?;
        return exact_float(sum).ok_or(Why::Inexact);
    }
    // With a fraction, or beyond 128 bits: the sum can be exact only if the part is a float. What is
    // lost in adding two floats is itself a float (Knuth's two-sum).
    let (before, part) = (before.get(), exact_float(part).ok_or(Why::Inexact)?);
    let sum = before + part;
    let part_again = sum - before;
    let lost = (before - (sum - part_again)) + (part - part_again);
    if sum.is_finite() && lost == 0.0 { Ok(sum) } else { Err(Why::Inexact) }
}
