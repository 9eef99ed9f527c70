//! Values as serde writes them.

use serde::{Serialize, Serializer};

use super::{Float, Value};

/// Numbers as such, text as text. Formats for people write other bytes in hexadecimal and infinite
/// numbers as `inf` and `-inf`; formats for machines get bytes and floats.
impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Bool(value) => to.serialize_bool(*value),
            Value::Int(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => to.serialize_i64(value),
                (_, Ok(value)) => to.serialize_u64(value),
                _ => to.serialize_i128(*value),
            },
            Value::Float(Float(value)) if value.is_infinite() && to.is_human_readable() => {
                to.collect_str(value)
            }
            Value::Float(Float(value)) => to.serialize_f64(*value),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => to.serialize_str(text),
                Err(_) if to.is_human_readable() => to.collect_str(self),
                Err(_) => to.serialize_bytes(bytes),
            },
        }
    }
}
