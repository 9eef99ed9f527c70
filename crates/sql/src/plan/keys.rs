//! What a condition says of keys.

use std::ops::Bound;

use sapwood_schema::{Type, Value};

use crate::kind::Kind;
use crate::node::{Comparison, Node, Op};
use crate::source::{KeyFilter, Source};

/// Keys that are looked up one by one, at most: beyond, all rows are looked at.
const KEYS_MAX: usize = 100_000;

/// The conditions that hold together where a node is true.
fn conjuncts(node: &Node) -> Vec<&Node> {
    match &node.op {
        Op::And(parts) => parts.iter().flat_map(conjuncts).collect(),
        _ => vec![node],
    }
}

/// What is known of the keys of all rows for which a filter is true. Its columns are those of the source.
pub(crate) fn key_filter(source: &dyn Source, filter: Option<&Node>) -> KeyFilter {
    let mut keys = KeyFilter::default();
    let Some(filter) = filter else { return keys };
    let parts = conjuncts(filter);
    let mut product = 1_usize;
    for &column in source.key_columns() {
        let kind = &source.columns()[column].kind;
        let values = parts.iter().filter_map(|part| equal_values(part, column, kind));
        if let Some(values) = values.min_by_key(Vec::len) {
            product = product.saturating_mul(values.len().max(1));
            if product <= KEYS_MAX {
                keys.equal.push(values);
                continue;
            }
        }
        keys.range = range_of(&parts, column, kind);
        break;
    }
    keys
}

/// True for a column, and for its values in a finer kind: these sort as it does.
fn is_column(node: &Node, column: usize) -> bool {
    match &node.op {
        Op::Column(found) => *found == column,
        Op::Convert(inner, _) => match (&inner.kind, &node.kind) {
            (Kind::Timestamp(from), Kind::Timestamp(to)) => {
                from.ticks() <= to.ticks() && is_column(inner, column)
            }
            (Kind::Real, Kind::Float) => is_column(inner, column),
            _ => false,
        },
        _ => false,
    }
}

/// The values of a column for which a condition can be true, if it names them.
fn equal_values(part: &Node, column: usize, kind: &Type) -> Option<Vec<Value<'static>>> {
    let is_column = |node: &Node| is_column(node, column);
    // What the column's type has not, no row has.
    let stored = |values: Vec<Value<'static>>| -> Vec<Value<'static>> {
        values.into_iter().filter_map(|value| value.to_type(kind).ok()).collect()
    };
    match &part.op {
        Op::Compare(Comparison::Equal, left, right) if is_column(left) => {
            let value = right.as_constant()?;
            Some(if value.is_null() { Vec::new() } else { stored(vec![value.clone()]) })
        }
        Op::In(inner, members) if is_column(inner) => {
            let mut values = stored(members.values.clone());
            // Equal ones would be shown twice.
            let mut seen = std::collections::HashSet::new();
            values.retain(|value| seen.insert(value.to_string()));
            Some(values)
        }
        // A truth value stands for itself.
        Op::Column(found) if *found == column => Some(vec![Value::Bool(true)]),
        Op::Not(inner) if is_column(inner) => Some(vec![Value::Bool(false)]),
        _ => None,
    }
}

/// Bounds of a column, if conditions have some.
fn range_of(
    parts: &[&Node],
    column: usize,
    kind: &Type,
) -> Option<(Bound<Value<'static>>, Bound<Value<'static>>)> {
    let (mut begin, mut end) = (Bound::Unbounded, Bound::Unbounded);
    for part in parts {
        let (left, right) = match &part.op {
            Op::Compare(comparison, left, right) => (left, Ok((comparison, right))),
            Op::Like(left, pattern) => (left, Err(pattern.prefix())),
            _ => continue,
        };
        if !is_column(left, column) {
            continue;
        }
        match right {
            Ok((comparison, right)) => {
                let Some(value) = right.as_constant() else { continue };
                // A bound that the type has not says nothing, and neither does one that it rounds.
                let Ok(stored) = value.clone().to_type(kind) else { continue };
                if stored.is_null() || is_rounded(value, &stored) {
                    continue;
                }
                let value = stored;
                match comparison {
                    Comparison::Less => narrow_end(&mut end, Bound::Excluded(value)),
                    Comparison::LessOrEqual => narrow_end(&mut end, Bound::Included(value)),
                    Comparison::Greater => narrow_begin(&mut begin, Bound::Excluded(value)),
                    Comparison::GreaterOrEqual => narrow_begin(&mut begin, Bound::Included(value)),
                    Comparison::Equal | Comparison::NotEqual => {}
                }
            }
            Err(Some(prefix)) => {
                if let Some(limit) = behind(&prefix) {
                    narrow_end(&mut end, Bound::Excluded(Value::Text(limit.into())));
                }
                narrow_begin(&mut begin, Bound::Included(Value::Text(prefix.into())));
            }
            Err(None) => {}
        }
    }
    let is_bound = |bound: &Bound<_>| !matches!(bound, Bound::Unbounded);
    (is_bound(&begin) || is_bound(&end)).then_some((begin, end))
}

fn is_rounded(value: &Value<'_>, stored: &Value<'_>) -> bool {
    matches!((value, stored), (Value::Float(value), Value::Float(stored)) if value != stored)
}

/// The least text that is greater than all that begin with a prefix.
fn behind(prefix: &str) -> Option<String> {
    let mut letters: Vec<char> = prefix.chars().collect();
    while let Some(last) = letters.pop() {
        // The next letter; those between the two halves of the range are none.
        let next = (last as u32 + 1..=char::MAX as u32).find_map(char::from_u32);
        if let Some(next) = next {
            letters.push(next);
            return Some(letters.into_iter().collect());
        }
    }
    None
}

/// Bounds are compared where that is easy, so that the narrowest is kept; either would be right.
fn is_less(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left < right,
        (Value::Huge(left), Value::Huge(right)) => left < right,
        (Value::Int(_), Value::Huge(_)) => true,
        (Value::Float(left), Value::Float(right)) => left < right,
        (Value::Date(left), Value::Date(right)) => left < right,
        (Value::Text(left), Value::Text(right)) => left < right,
        (Value::Timestamp { ticks: left, .. }, Value::Timestamp { ticks: right, .. }) => {
            left < right
        }
        (Value::Decimal { units: left, .. }, Value::Decimal { units: right, .. }) => left < right,
        _ => false,
    }
}

fn narrow_begin(begin: &mut Bound<Value<'static>>, new: Bound<Value<'static>>) {
    let is_narrower = match (&*begin, &new) {
        (
            Bound::Included(old) | Bound::Excluded(old),
            Bound::Included(value) | Bound::Excluded(value),
        ) => is_less(old, value),
        _ => true,
    };
    if is_narrower {
        *begin = new;
    }
}

fn narrow_end(end: &mut Bound<Value<'static>>, new: Bound<Value<'static>>) {
    let is_narrower = match (&*end, &new) {
        (
            Bound::Included(old) | Bound::Excluded(old),
            Bound::Included(value) | Bound::Excluded(value),
        ) => is_less(value, old),
        _ => true,
    };
    if is_narrower {
        *end = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_behind_a_prefix_is_greater_than_all_with_it() {
        assert_eq!(behind("N14").as_deref(), Some("N15"));
        assert_eq!(behind("a\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!(behind("\u{D7FF}").as_deref(), Some("\u{E000}"));
        assert_eq!(behind("\u{10FFFF}"), None);
    }
}
