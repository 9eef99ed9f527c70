//! Typed values as text, in CSV and in JSON, and as values of MessagePack.

use std::io::{self, Write};

use rmp::encode::{
    write_array_len, write_bool, write_f64, write_map_len, write_nil, write_sint, write_str,
    write_uint,
};
use sapwood_schema::Value;

/// A field of CSV. Null is an empty one.
pub fn csv_text(value: &Value<'_>) -> String {
    match value {
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Writes an object of JSON, and a line end. Whole numbers have all their digits, and so have decimals.
///
/// # Errors
/// An error of the writer.
pub fn write_json_object<'v>(
    fields: impl Iterator<Item = (&'v str, &'v Value<'v>)>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut begin = "{";
    for (name, value) in fields {
        write!(out, "{begin}{}:{}", json_text(name), json(value))?;
        begin = ",";
    }
    out.write_all(if begin == "{" { b"{}\n" } else { b"}\n" })
}

/// Text in quotes.
fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value as JSON has it.
pub(crate) fn json(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Int(_) | Value::Huge(_) | Value::Decimal { .. } => {
            value.to_string()
        }
        // JSON has no other floats.
        Value::Float(number) if number.is_finite() => serde_json::Value::from(*number).to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json).collect();
            format!("[{}]", items.join(","))
        }
        other => json_text(&other.to_string()),
    }
}

/// A number with more digits than readers of JSON keep, as text.
pub(super) fn readable<'v>(value: &'v Value<'_>) -> Value<'v> {
    /// Decimal digits that every float of 64 bits has.
    const DIGITS: u32 = 15;
    let is_kept = match value {
        Value::Int(number) => i64::try_from(*number).is_ok() || u64::try_from(*number).is_ok(),
        Value::Huge(_) => false,
        Value::Decimal { units, .. } => units.unsigned_abs() < 10_u128.pow(DIGITS),
        _ => true,
    };
    match is_kept {
        true => value.clone(),
        false => Value::text(value.to_string()),
    }
}

/// Writes a map of MessagePack.
pub(super) fn write_map<'v>(
    fields: impl ExactSizeIterator<Item = (&'v str, &'v Value<'v>)>,
    out: &mut impl Write,
) -> io::Result<()> {
    write_map_len(out, fields.len() as u32)?;
    for (name, value) in fields {
        write_str(out, name)?;
        write_packed(value, out)?;
    }
    Ok(())
}

fn write_packed(value: &Value<'_>, out: &mut impl Write) -> io::Result<()> {
    match value {
        Value::Null => write_nil(out)?,
        Value::Bool(value) => write_bool(out, *value)?,
        Value::Float(number) => write_f64(out, *number)?,
        Value::Int(number) => match (i64::try_from(*number), u64::try_from(*number)) {
            (Ok(number), _) => drop(write_sint(out, number)?),
            (_, Ok(number)) => drop(write_uint(out, number)?),
            _ => write_str(out, &number.to_string())?,
        },
        Value::Array(items) => {
            write_array_len(out, items.len() as u32)?;
            items.iter().try_for_each(|item| write_packed(item, out))?;
        }
        other => write_str(out, &other.to_string())?,
    }
    Ok(())
}
