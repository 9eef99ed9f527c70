//! The value of the first or last object: by key, or by a field and then by key.
//!
//! Keys are unique in a table, so there are no ties. Between tables, whose partial states may be
//! merged, the value decides last: the lesser is first, the greater last.

use std::cmp::Ordering;

use super::extreme::Side;
use crate::value::Value;
use crate::value::stored::{self, Corrupt, Reader};

/// An object at the edge. All values are in their canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    by: Option<Value<'static>>,
    key: Vec<u8>,
    value: Value<'static>,
}

impl Edge {
    fn compare(&self, by: Option<&Value<'_>>, key: &[u8], value: &Value<'_>) -> Ordering {
        let kept = (self.by.as_ref(), &self.key[..], &self.value);
        by.cmp(&kept.0).then_with(|| key.cmp(kept.1)).then_with(|| value.cmp(kept.2))
    }

    /// The value of the object.
    pub(crate) fn value(&self) -> &Value<'static> {
        &self.value
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Option<Edge>, Corrupt> {
        match reader.u8("whether there is a first or last")? {
            0 => Ok(None),
            1 => {
                let by = reader.value()?.map(Value::into_owned);
                let key = reader.sized("a key")?.to_vec();
                let value = reader.present()?.into_owned();
                Ok(Some(Edge { by, key, value }))
            }
            _ => Err(reader.corrupt("a first or last is neither there nor not")),
        }
    }
}

/// Keeps the better of two objects.
#[inline]
pub(super) fn push(
    edge: &mut Option<Box<Edge>>,
    side: Side,
    by: Option<&Value<'_>>,
    key: &[u8],
    value: &Value<'_>,
) {
    let is_better = match edge {
        None => true,
        Some(kept) => side.prefers(kept.compare(by, key, value)),
    };
    if is_better {
        let owned = |value: &Value<'_>| value.clone().canonical().into_owned();
        *edge = Some(Box::new(Edge { by: by.map(owned), key: key.to_vec(), value: owned(value) }));
    }
}

pub(super) fn merge(edge: &mut Option<Box<Edge>>, side: Side, other: Option<Box<Edge>>) {
    if let Some(other) = other {
        push(edge, side, other.by.as_ref(), &other.key, &other.value);
    }
}

pub(super) fn encode(edge: Option<&Edge>, out: &mut Vec<u8>) {
    match edge {
        None => out.push(0),
        Some(edge) => {
            out.push(1);
            stored::value(edge.by.as_ref(), out);
            stored::sized(&edge.key, out);
            stored::value(Some(&edge.value), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_by_key_and_then_by_value() {
        let objects =
            [(5, "b", 1), (3, "c", 2), (3, "a", 3), (5, "a", 4), (3, "a", 2), (5, "b", 9)];
        let mut orders = vec![objects.to_vec()];
        orders.push(objects.iter().rev().copied().collect());
        for order in orders {
            let (mut first, mut last, mut by_key) = (None, None, None);
            for (by, key, value) in order {
                let (by, value) = (Value::from(by), Value::from(value));
                push(&mut first, Side::Least, Some(&by), key.as_bytes(), &value);
                push(&mut last, Side::Greatest, Some(&by), key.as_bytes(), &value);
                push(&mut by_key, Side::Greatest, None, key.as_bytes(), &value);
            }
            let value = |edge: Option<Box<Edge>>| edge.expect("an object").value().clone();
            assert_eq!(value(first), Value::Int(2));
            assert_eq!(value(last), Value::Int(9));
            assert_eq!(value(by_key), Value::Int(2));
        }
    }
}
