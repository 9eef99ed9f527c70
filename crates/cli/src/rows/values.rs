//! Typed values as text, in CSV and in JSON.

use std::io::{self, Write};

use sapwood::schema::{Schema, Value};

/// The values of a row as they are shown.
pub(crate) fn shown<'v>(values: Vec<Value<'v>>, schema: &Schema) -> Vec<Value<'v>> {
    let values = values.into_iter().zip(schema.columns());
    values.map(|(value, column)| value.shown_as(&column.kind)).collect()
}

/// A field of CSV. Null is an empty one.
pub(crate) fn csv_text(value: &Value<'_>) -> String {
    match value {
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// An object, and a line end. Whole numbers have all their digits, and so have decimals.
pub(crate) fn write_json_object<'v>(
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

fn json(value: &Value<'_>) -> String {
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
