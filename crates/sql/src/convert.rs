//! Values in another kind: where kinds meet, and by `cast`.

use std::fmt::Write;

use sapwood_schema::{DAY_SECONDS, Data, POWERS_OF_TEN, Precision, Type, Value, Vector, rescale};

use crate::error::{Error, Result};
use crate::functions::scaled_to_whole;
use crate::kind::Kind;
use crate::node::OnFailure;

/// Whether a value of one kind can become one of another by `cast`.
pub(crate) fn can_convert(from: &Kind, to: &Kind) -> bool {
    let is_number_or_bool = |kind: &Kind| kind.is_number() || *kind == Kind::Bool;
    match (from, to) {
        (from, to) if from == to => true,
        (Kind::Null | Kind::Text, Kind::Array(_)) => *from == Kind::Null,
        (Kind::Null | Kind::Text, _) | (_, Kind::Text) => true,
        (from, to) if from.is_time() && to.is_time() => true,
        (from, to) => is_number_or_bool(from) && is_number_or_bool(to),
    }
}

/// The values of a vector in another kind.
pub(crate) fn convert(
    vector: &Vector,
    from: &Kind,
    to: &Kind,
    on_failure: OnFailure,
) -> Result<Vector> {
    if from == to {
        return Ok(vector.clone());
    }
    if *from == Kind::Null {
        let mut nulls = Vector::new(to.data());
        (0..vector.len()).for_each(|_| nulls.push_null());
        return Ok(nulls);
    }
    // What never fails, in one go.
    let data = match (&vector.data, from, to) {
        (Data::Int(values), Kind::Int, Kind::Big) => {
            Some(Data::Big(values.iter().map(|&value| value.into()).collect()))
        }
        (Data::Int(values), Kind::Int, Kind::Float) => {
            Some(Data::Float(values.iter().map(|&value| value as f64).collect()))
        }
        (Data::Float(values), Kind::Real, Kind::Float) => Some(Data::Float(values.clone())),
        (Data::Huge(values), Kind::Huge, Kind::Float) => {
            Some(Data::Float(values.iter().map(|&value| value as f64).collect()))
        }
        (Data::Big(values), Kind::Big, Kind::Float) => {
            Some(Data::Float(values.iter().map(|&value| value as f64).collect()))
        }
        _ => None,
    };
    if let Some(data) = data {
        return Ok(Vector { data, nulls: vector.nulls.clone() });
    }
    let mut converted = Vector::new(to.data());
    let kind = from.to_type();
    for row in 0..vector.len() {
        if vector.is_null(row) {
            converted.push_null();
            continue;
        }
        let value = vector.value(row, &kind).map_err(|error| Error::value(error.to_string()))?;
        let value = match to {
            Kind::Text | Kind::Decimal(_) => value.shown_as(&kind),
            _ => value,
        };
        match (convert_value(&value, to), on_failure) {
            (Some(value), _) => converted.push_value(&value),
            (None, OnFailure::Null) => converted.push_null(),
            (None, OnFailure::Refuse) => {
                let shown = match &value {
                    Value::Text(text) => format!("text '{}'", text.escape_debug()),
                    other => other.to_string(),
                };
                return Err(Error::value(format!("{shown} cannot be a {to}")));
            }
        }
    }
    Ok(converted)
}

/// A value in another kind; none if it has no counterpart.
pub(crate) fn convert_value<'a>(value: &'a Value<'_>, to: &Kind) -> Option<Value<'a>> {
    Some(match (value, to) {
        (Value::Null, _) => Value::Null,
        (Value::Text(text), Kind::Text) => Value::Text(text.as_ref().into()),
        (Value::Text(text), Kind::Bytes) => return Value::of_text(text, &Type::Bytes).ok(),
        (Value::Bytes(bytes), Kind::Text) => Value::Text(std::str::from_utf8(bytes).ok()?.into()),
        (value, Kind::Text) => Value::Text(text_of(value).into()),
        (Value::Text(text), to) => return of_text(text.trim(), to),
        (Value::Bool(value), Kind::Int | Kind::Big | Kind::Huge) => Value::Int((*value).into()),
        (Value::Bool(value), Kind::Real | Kind::Float) => Value::Float(u8::from(*value).into()),
        (value, Kind::Real) => return value.clone().into_owned().to_type(&Type::F32).ok(),
        (Value::Bool(value), Kind::Decimal(scale)) => {
            Value::Decimal { units: rescale((*value).into(), 0, *scale)?, scale: *scale }
        }
        (Value::Int(value), Kind::Bool) => Value::Bool(*value != 0),
        (Value::Float(value), Kind::Bool) => Value::Bool(*value != 0.0),
        (Value::Decimal { units, .. }, Kind::Bool) => Value::Bool(*units != 0),
        (Value::Int(value), Kind::Int) => Value::Int(i64::try_from(*value).ok()?.into()),
        (Value::Int(value), Kind::Big) => Value::Int(*value),
        (Value::Int(value), Kind::Huge) => Value::from(u128::try_from(*value).ok()?),
        (Value::Huge(_), Kind::Bool) => Value::Bool(true),
        (Value::Huge(value), Kind::Huge) => Value::Huge(*value),
        (Value::Huge(value), Kind::Float) => Value::Float(*value as f64),
        (Value::Int(value), Kind::Float) => Value::Float(*value as f64),
        (Value::Int(value), Kind::Decimal(scale)) => decimal(*value, 0, *scale)?,
        (Value::Decimal { units, scale }, Kind::Int | Kind::Big) => {
            let whole = Value::Int(rescale(*units, *scale, 0)?);
            return match to {
                Kind::Int => i64::try_from(rescale(*units, *scale, 0)?)
                    .ok()
                    .map(|whole| Value::Int(whole.into())),
                _ => Some(whole),
            };
        }
        (Value::Decimal { units, scale }, Kind::Huge) => {
            Value::from(u128::try_from(rescale(*units, *scale, 0)?).ok()?)
        }
        (Value::Decimal { units, scale }, Kind::Float) => {
            let value = Value::Decimal { units: *units, scale: *scale };
            value.to_type(&Type::F64).ok()?
        }
        (Value::Decimal { units, scale: from }, Kind::Decimal(scale)) => {
            decimal(*units, *from, *scale)?
        }
        (Value::Float(value), Kind::Int | Kind::Big) => {
            // Halves go to the even neighbour, as in other databases.
            let whole = value.round_ties_even();
            let limit = if *to == Kind::Int { 2_f64.powi(63) } else { 2_f64.powi(127) };
            // The bounds are powers of two, and exact; NaN is within none.
            if !(-limit..limit).contains(&whole) {
                return None;
            }
            Value::Int(whole as i128)
        }
        (Value::Float(value), Kind::Huge) => {
            let whole = value.round_ties_even();
            if !(0.0..2_f64.powi(128)).contains(&whole) {
                return None;
            }
            Value::from(whole as u128)
        }
        (Value::Float(value), Kind::Decimal(scale)) => {
            let units = scaled_to_whole(*value, (*scale).into());
            if !units.is_finite() || units.abs() >= 1e38 {
                return None;
            }
            Value::Decimal { units: units as i128, scale: *scale }
        }
        (Value::Date(days), Kind::Date) => Value::Date(*days),
        (Value::Date(days), Kind::Timestamp(precision)) => {
            let ticks = i64::from(*days) * DAY_SECONDS;
            let ticks = ticks.checked_mul(precision.ticks())?;
            Value::Timestamp { ticks, precision: *precision }
        }
        (Value::Timestamp { ticks, precision }, Kind::Date) => {
            let day = precision.ticks() * DAY_SECONDS;
            Value::Date(i32::try_from(ticks.div_euclid(day)).ok()?)
        }
        (Value::Timestamp { ticks, precision }, Kind::Timestamp(to)) => {
            Value::Timestamp { ticks: ticks_in(*ticks, *precision, *to)?, precision: *to }
        }
        _ => return None,
    })
}

/// The moment in another unit, rounded to it; halves go away from 1970.
fn ticks_in(ticks: i64, from: Precision, to: Precision) -> Option<i64> {
    if to >= from {
        return ticks.checked_mul(to.ticks() / from.ticks());
    }
    let halves = ticks / (from.ticks() / to.ticks() / 2);
    Some((halves + halves.signum()) / 2)
}

fn decimal(units: i128, from: u8, to: u8) -> Option<Value<'static>> {
    let units = rescale(units, from, to)?;
    let fits = units.unsigned_abs() < POWERS_OF_TEN[38].unsigned_abs();
    fits.then_some(Value::Decimal { units, scale: to })
}

/// A value as text: floats that are whole have a point.
pub(crate) fn text_of(value: &Value<'_>) -> String {
    let mut text = value.to_string();
    if let Value::Float(number) = value
        && number.is_finite()
        && !text.contains(['.', 'e'])
    {
        write!(text, ".0").expect("a string takes everything");
    }
    text
}

fn of_text(text: &str, to: &Kind) -> Option<Value<'static>> {
    match to {
        Kind::Null | Kind::Text | Kind::Bytes | Kind::Array(_) => None,
        Kind::Bool => match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Some(Value::Bool(true)),
            "false" | "f" | "no" | "n" | "off" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        Kind::Int | Kind::Big | Kind::Huge | Kind::Decimal(_) => {
            // They may have more digits than decimals.
            if let Ok(whole) = Value::of_text(text, &Type::Int(128))
                .or_else(|_| Value::of_text(text, &Type::UInt(128)))
            {
                return convert_value(&whole, to).map(Value::into_owned);
            }
            let (units, scale) = sapwood_schema::decimal_of_text(text)?;
            convert_value(&Value::Decimal { units, scale }, to).map(Value::into_owned)
        }
        Kind::Date => match Value::of_text(text, &Type::Date) {
            Ok(value) => Some(value.into_owned()),
            // A moment has a day.
            Err(_) => convert_value(&moment_of_text(text)?, to).map(Value::into_owned),
        },
        Kind::Timestamp(_) => convert_value(&moment_of_text(text)?, to).map(Value::into_owned),
        to => Value::of_text(text, &to.to_type()).ok().map(Value::into_owned),
    }
}

/// A moment with all the digits that it has.
fn moment_of_text(text: &str) -> Option<Value<'_>> {
    let precisions = [Precision::Micros, Precision::Nanos];
    precisions.iter().find_map(|it| Value::of_text(text, &Type::Timestamp(*it)).ok())
}
