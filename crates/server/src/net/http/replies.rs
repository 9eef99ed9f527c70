//! Replies of commands in version 3 of the protocol, as JSON.

use std::ops::Range;

use serde_json::{Map, Number, Value as Json};

/// The error that a reply is, if it is one.
pub(super) fn error(reply: &[u8]) -> Option<String> {
    let text = reply.strip_prefix(b"-")?;
    let (line, _) = line(text)?;
    Some(String::from_utf8_lossy(line).into_owned())
}

/// The place of the bytes in a reply that is a bulk string.
pub(super) fn bulk(reply: &[u8]) -> Option<Range<usize>> {
    let (digits, rest) = line(reply.strip_prefix(b"$")?)?;
    let start = reply.len() - rest.len();
    let end = start.checked_add(number(digits)?)?;
    (end <= reply.len()).then_some(start..end)
}

/// A reply without its forms; `None` where it is none. Bytes that are no text lose what is none of it.
pub(super) fn json(reply: &[u8]) -> Option<Json> {
    match value(reply)? {
        (json, b"") => Some(json),
        _ => None,
    }
}

fn value(reply: &[u8]) -> Option<(Json, &[u8])> {
    let (mark, behind) = reply.split_first()?;
    let (said, rest) = line(behind)?;
    let text = |bytes: &[u8]| Json::String(String::from_utf8_lossy(bytes).into_owned());
    Some(match mark {
        b'+' | b'-' | b'(' => (text(said), rest),
        b':' => (Json::Number(std::str::from_utf8(said).ok()?.parse::<i64>().ok()?.into()), rest),
        b',' => {
            let number = std::str::from_utf8(said).ok()?.parse::<f64>().ok()?;
            (Number::from_f64(number).map_or(Json::Null, Json::Number), rest)
        }
        b'_' => (Json::Null, rest),
        b'#' => (Json::Bool(said == b"t"), rest),
        b'$' | b'=' => {
            let (bytes, rest) = rest.split_at_checked(number(said)?)?;
            (text(bytes), rest.strip_prefix(b"\r\n")?)
        }
        b'*' | b'~' => {
            let (values, rest) = values(number(said)?, rest)?;
            (Json::Array(values), rest)
        }
        b'%' => {
            let (values, rest) = values(number(said)?.checked_mul(2)?, rest)?;
            let mut map = Map::new();
            let mut values = values.into_iter();
            while let (Some(name), Some(value)) = (values.next(), values.next()) {
                let Json::String(name) = name else { return None };
                map.insert(name, value);
            }
            (Json::Object(map), rest)
        }
        _ => return None,
    })
}

fn values(count: usize, mut rest: &[u8]) -> Option<(Vec<Json>, &[u8])> {
    let mut values = Vec::new();
    for _ in 0..count {
        let (json, behind) = value(rest)?;
        values.push(json);
        rest = behind;
    }
    Some((values, rest))
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What stands before a line's end, and what is behind it.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::reply::{Protocol, Reply};

    #[test]
    fn each_form_has_one_in_json() {
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, Protocol::Resp3);
        reply.map(3);
        reply.bulk(b"counts");
        reply.array(3);
        reply.integer(-7);
        reply.double(1.5);
        reply.double(f64::INFINITY);
        reply.bulk(b"none");
        reply.null();
        reply.bulk(b"rest");
        reply.array(5);
        reply.boolean(true);
        reply.boolean(false);
        reply.simple("OK");
        reply.big_number("99999999999999999999");
        reply.bulk(b"a\r\nb\xFF");
        let expected = json!({
            "counts": [-7, 1.5, null],
            "none": null,
            "rest": [true, false, "OK", "99999999999999999999", "a\r\nb\u{FFFD}"],
        });
        assert_eq!(json(&out), Some(expected));
        for len in 0..out.len() {
            assert_eq!(json(&out[..len]), None, "{len}");
        }
    }

    #[test]
    fn errors_and_bytes_are_found() {
        assert_eq!(error(b"-ERR no such table\r\n").as_deref(), Some("ERR no such table"));
        assert_eq!(error(b"+OK\r\n"), None);
        assert_eq!(bulk(b"$3\r\nabc\r\n"), Some(4..7));
        assert_eq!(bulk(b"$4\r\nab"), None);
        assert_eq!(bulk(b"_\r\n"), None);
        assert_eq!(bulk(b"$18446744073709551615\r\n\r\n"), None);
    }
}
