//! What is known of keys, as bytes.

use std::ops::Bound;

use sapwood_sql::KeyFilter;

use crate::key;
use crate::schema::{RowFormat, Value};

/// The keys that can be those of rows that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Keys {
    Every,
    /// These alone, ascending.
    Listed(Vec<Vec<u8>>),
    /// Those in these ranges, ascending: each from its first key to before its last.
    Ranges(Vec<(Vec<u8>, Option<Vec<u8>>)>),
}

/// The keys of rows of a format that a filter can be true for.
pub(super) fn keys_of(format: &RowFormat, filter: &KeyFilter) -> Keys {
    if filter.is_empty() {
        return Keys::Every;
    }
    let mut prefixes: Vec<Vec<Value<'static>>> = vec![Vec::new()];
    for values in &filter.equal {
        let longer = prefixes.iter().flat_map(|prefix| {
            values.iter().map(|value| [&prefix[..], std::slice::from_ref(value)].concat())
        });
        prefixes = longer.collect();
    }
    let encode = |values: &[Value<'static>]| {
        let mut key = Vec::new();
        // A value that the column cannot have is that of no row.
        format.encode_key(values, &mut key).ok().map(|()| key)
    };
    let schema = format.schema();
    if filter.equal.len() == schema.key_columns().len() && !schema.is_numbered() {
        let mut keys: Vec<Vec<u8>> = prefixes.iter().filter_map(|prefix| encode(prefix)).collect();
        keys.sort_unstable();
        keys.dedup();
        return Keys::Listed(keys);
    }
    let limit_of = |prefix: &[u8]| key::prefix_range(prefix).limit().map(<[u8]>::to_vec);
    let mut ranges = Vec::with_capacity(prefixes.len());
    for prefix in prefixes {
        let Some(whole) = encode(&prefix) else { continue };
        let bound =
            |value: &Value<'static>| encode(&[&prefix[..], std::slice::from_ref(value)].concat());
        let (mut begin, mut limit) = (whole.clone(), limit_of(&whole));
        if let Some((from, to)) = &filter.range {
            match from {
                Bound::Included(value) => begin = bound(value).unwrap_or(begin),
                // Behind all keys that begin so; there may be none.
                Bound::Excluded(value) => match bound(value).map(|key| limit_of(&key)) {
                    Some(Some(behind)) => begin = behind,
                    Some(None) => continue,
                    None => {}
                },
                Bound::Unbounded => {}
            }
            match to {
                Bound::Included(value) => {
                    if let Some(key) = bound(value) {
                        limit = limit_of(&key);
                    }
                }
                Bound::Excluded(value) => limit = bound(value).or(limit),
                Bound::Unbounded => {}
            }
        }
        if limit.as_ref().is_none_or(|limit| begin < *limit) {
            ranges.push((begin, limit));
        }
    }
    ranges.sort_unstable();
    ranges.dedup();
    Keys::Ranges(ranges)
}

/// As [`keys_of`], of a table whose keys are bytes.
pub(super) fn keys_of_bytes(filter: &KeyFilter) -> Keys {
    let bytes = |value: &Value<'static>| match value {
        Value::Bytes(bytes) => Some(bytes.to_vec()),
        _ => None,
    };
    match (&filter.equal[..], &filter.range) {
        ([values], _) => {
            let mut keys: Vec<Vec<u8>> = values.iter().filter_map(bytes).collect();
            keys.sort_unstable();
            keys.dedup();
            Keys::Listed(keys)
        }
        (_, Some((from, to))) => {
            let after = |value: &Value<'static>| {
                // The next byte string there is.
                bytes(value).map(|bytes| [&bytes[..], &[0]].concat())
            };
            let begin = match from {
                Bound::Included(value) => bytes(value),
                Bound::Excluded(value) => after(value),
                Bound::Unbounded => None,
            };
            let limit = match to {
                Bound::Included(value) => after(value),
                Bound::Excluded(value) => bytes(value),
                Bound::Unbounded => None,
            };
            Keys::Ranges(vec![(begin.unwrap_or_default(), limit)])
        }
        _ => Keys::Every,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(schema: &str, filter: &KeyFilter) -> Keys {
        keys_of(&RowFormat::new(schema.parse().expect("a schema")), filter)
    }

    #[test]
    fn whole_keys_are_listed() {
        let filter = KeyFilter {
            equal: vec![vec!["b".into(), "a".into()], vec![Value::Int(1), Value::Int(1)]],
            range: None,
        };
        let listed = vec![b"a\0\x01\0\x01".to_vec(), b"b\0\x01\0\x01".to_vec()];
        assert_eq!(keys("k:text, n:u16, key(k, n)", &filter), Keys::Listed(listed));
        let Keys::Ranges(ranges) = keys("k:text, n:u16, key(k, n, #)", &filter) else {
            panic!("numbers follow")
        };
        assert_eq!(ranges[0], (b"a\0\x01\0\x01".to_vec(), Some(b"a\0\x01\0\x02".to_vec())));
    }

    #[test]
    fn bounds_are_those_of_all_keys_that_begin_so() {
        let bounds =
            |from, to| KeyFilter { equal: vec![vec!["a".into()]], range: Some((from, to)) };
        let schema = "k:text, n:u8, m:u8, key(k, n, m)";
        for (from, to, begin, limit) in [
            (
                Bound::Included(Value::Int(3)),
                Bound::Unbounded,
                &b"a\0\x01\x03"[..],
                &b"a\0\x02"[..],
            ),
            (Bound::Excluded(Value::Int(3)), Bound::Unbounded, b"a\0\x01\x04", b"a\0\x02"),
            (Bound::Unbounded, Bound::Included(Value::Int(3)), b"a\0\x01", b"a\0\x01\x04"),
            (Bound::Unbounded, Bound::Excluded(Value::Int(3)), b"a\0\x01", b"a\0\x01\x03"),
        ] {
            let expected = Keys::Ranges(vec![(begin.to_vec(), Some(limit.to_vec()))]);
            assert_eq!(keys(schema, &bounds(from, to)), expected);
        }
        let none = bounds(Bound::Excluded(Value::Int(3)), Bound::Included(Value::Int(3)));
        assert_eq!(keys(schema, &none), Keys::Ranges(Vec::new()));
    }
}
