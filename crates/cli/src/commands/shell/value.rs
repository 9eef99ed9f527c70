//! Replies as values, out of bytes that come in any pieces.

/// Bytes of a line that announces a value, at most.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Values within values, at most.
const DEPTH_MAX: usize = 128;
/// Bytes that were decoded and are still kept, at most.
const DECODED_BYTES_MAX: usize = 1 << 16;

/// A value of a reply, in either version of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    /// A short text such as `OK`.
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    /// Text for people, shown as it is.
    Verbatim(Vec<u8>),
    Double(f64),
    Boolean(bool),
    /// The digits of an integer of any length.
    BigNumber(Vec<u8>),
    /// An array or a set.
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    /// A message that is no reply.
    Push(Vec<Value>),
}

impl Value {
    /// The bytes of a text, of any kind.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Simple(bytes) | Value::Bulk(bytes) | Value::Verbatim(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Whether other values are in it.
    pub(crate) fn is_nested(&self) -> bool {
        matches!(self, Value::Array(_) | Value::Map(_) | Value::Push(_))
    }

    /// The value under a name, of a map or of an array of names and values.
    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        let is_named = |key: &Value| key.bytes() == Some(name.as_bytes());
        match self {
            Value::Map(pairs) => pairs.iter().find(|(key, _)| is_named(key)).map(|(_, it)| it),
            Value::Array(values) => {
                values.chunks_exact(2).find(|pair| is_named(&pair[0])).map(|pair| &pair[1])
            }
            _ => None,
        }
    }
}

/// Bytes that are no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer is not of the Redis protocol")
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Array,
    Map,
    Push,
    /// Something about the value that follows; it is left out.
    Attribute,
}

/// A value whose elements are not all there.
#[derive(Debug)]
struct Frame {
    kind: Kind,
    missing: usize,
    values: Vec<Value>,
}

/// Values out of bytes.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    bytes: Vec<u8>,
    /// Where the bytes begin that are not decoded.
    at: usize,
    frames: Vec<Frame>,
}

impl Decoder {
    /// The buffer behind which more bytes are appended.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        if self.at > DECODED_BYTES_MAX || self.at == self.bytes.len() {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        &mut self.bytes
    }

    /// The next value, if all of it is there.
    pub(crate) fn next(&mut self) -> Result<Option<Value>, Malformed> {
        loop {
            let Some(value) = self.element()? else { return Ok(None) };
            let Some(value) = value else { continue };
            if let Some(whole) = self.complete(value) {
                return Ok(Some(whole));
            }
        }
    }

    /// A value without elements, or nothing if one with elements has begun; `None` if bytes are
    /// missing.
    fn element(&mut self) -> Result<Option<Option<Value>>, Malformed> {
        let rest = &self.bytes[self.at..];
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
            return if rest.len() > LINE_BYTES_MAX { Err(Malformed) } else { Ok(None) };
        };
        let [kind, line @ ..] = &rest[..end] else { return Err(Malformed) };
        let (kind, line, behind) = (*kind, line.to_vec(), self.at + end + 2);
        let value = match kind {
            b'+' => Value::Simple(line),
            b'-' => Value::Error(line),
            b':' => Value::Integer(number(&line)?),
            b'_' => Value::Null,
            b'(' => Value::BigNumber(line),
            b'#' => Value::Boolean(match &line[..] {
                b"t" => true,
                b"f" => false,
                _ => return Err(Malformed),
            }),
            b',' => Value::Double(number(&line)?),
            b'$' | b'!' | b'=' => {
                let Some(len) = length(&line)? else {
                    self.at = behind;
                    return Ok(Some(Some(Value::Null)));
                };
                let end = behind.checked_add(len).ok_or(Malformed)?;
                let ending = end.checked_add(2).ok_or(Malformed)?;
                let Some(ended) = self.bytes.get(end..ending) else { return Ok(None) };
                if ended != b"\r\n" {
                    return Err(Malformed);
                }
                let bytes = self.bytes[behind..end].to_vec();
                self.at = ending;
                return Ok(Some(Some(match kind {
                    b'$' => Value::Bulk(bytes),
                    b'!' => Value::Error(bytes),
                    // Three letters and a colon say what kind of text it is.
                    _ => Value::Verbatim(bytes.get(4..).ok_or(Malformed)?.to_vec()),
                })));
            }
            b'*' | b'~' | b'>' | b'%' | b'|' => {
                self.at = behind;
                let Some(len) = length(&line)? else { return Ok(Some(Some(Value::Null))) };
                let (kind, each) = match kind {
                    b'>' => (Kind::Push, 1),
                    b'%' => (Kind::Map, 2),
                    b'|' => (Kind::Attribute, 2),
                    _ => (Kind::Array, 1),
                };
                if self.frames.len() == DEPTH_MAX {
                    return Err(Malformed);
                }
                let missing = len.checked_mul(each).ok_or(Malformed)?;
                let frame = Frame { kind, missing, values: Vec::new() };
                if missing == 0 {
                    return Ok(Some(frame.value()));
                }
                self.frames.push(frame);
                return Ok(Some(None));
            }
            _ => return Err(Malformed),
        };
        self.at = behind;
        Ok(Some(Some(value)))
    }

    /// Puts a value where it belongs; answers a reply that is whole with it.
    fn complete(&mut self, value: Value) -> Option<Value> {
        let mut value = value;
        loop {
            let Some(frame) = self.frames.last_mut() else { return Some(value) };
            frame.values.push(value);
            frame.missing -= 1;
            if frame.missing > 0 {
                return None;
            }
            value = self.frames.pop()?.value()?;
        }
    }
}

impl Frame {
    /// The value, of which all elements are there; nothing for an attribute.
    fn value(self) -> Option<Value> {
        match self.kind {
            Kind::Array => Some(Value::Array(self.values)),
            Kind::Push => Some(Value::Push(self.values)),
            Kind::Attribute => None,
            Kind::Map => {
                let mut pairs = Vec::with_capacity(self.values.len() / 2);
                let mut key = None;
                for value in self.values {
                    match key.take() {
                        None => key = Some(value),
                        Some(key) => pairs.push((key, value)),
                    }
                }
                Some(Value::Map(pairs))
            }
        }
    }
}

/// A length; `None` for -1, the absence of a value.
fn length(line: &[u8]) -> Result<Option<usize>, Malformed> {
    match number::<i64>(line)? {
        -1 => Ok(None),
        len => usize::try_from(len).map(Some).map_err(|_| Malformed),
    }
}

fn number<N: std::str::FromStr>(line: &[u8]) -> Result<N, Malformed> {
    std::str::from_utf8(line).ok().and_then(|line| line.parse().ok()).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.into())
    }

    #[test]
    fn values_come_whole_however_they_are_cut() {
        let bytes = b"+OK\r\n-ERR no\r\n:-5\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n_\r\n,1.5\r\n,inf\r\n\
            #t\r\n(123456789012345678901234567890\r\n=7\r\ntxt:a\nb\r\n!5\r\nERR x\r\n\
            *2\r\n*0\r\n%1\r\n$1\r\nk\r\n~1\r\n:1\r\n|1\r\n+ttl\r\n:3\r\n>2\r\n+a\r\n+b\r\n";
        let expected = [
            Value::Simple("OK".into()),
            Value::Error("ERR no".into()),
            Value::Integer(-5),
            bulk("a\r\n"),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Double(1.5),
            Value::Double(f64::INFINITY),
            Value::Boolean(true),
            Value::BigNumber("123456789012345678901234567890".into()),
            Value::Verbatim("a\nb".into()),
            Value::Error("ERR x".into()),
            Value::Array(vec![
                Value::Array(vec![]),
                Value::Map(vec![(bulk("k"), Value::Array(vec![Value::Integer(1)]))]),
            ]),
            Value::Push(vec![Value::Simple("a".into()), Value::Simple("b".into())]),
        ];
        for piece in 1..bytes.len() {
            let mut decoder = Decoder::default();
            let mut values = Vec::new();
            for bytes in bytes.chunks(piece) {
                decoder.buffer().extend_from_slice(bytes);
                while let Some(value) = decoder.next().expect("replies") {
                    values.push(value);
                }
            }
            assert_eq!(values, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let deep = "*1\r\n".repeat(DEPTH_MAX + 1);
        for bytes in [
            "HTTP/1.1 400\r\n",
            "\r\n",
            ":x\r\n",
            "$-2\r\n",
            "$1\r\nabc",
            "#x\r\n",
            "=1\r\nx\r\n",
            "*9223372036854775807x\r\n",
            "%9223372036854775807\r\n%9223372036854775807999\r\n",
            &deep,
        ] {
            let mut decoder = Decoder::default();
            decoder.buffer().extend_from_slice(bytes.as_bytes());
            assert_eq!(decoder.next(), Err(Malformed), "{bytes}");
        }
    }

    #[test]
    fn fields_are_found_in_both_versions() {
        let pairs = [(bulk("a"), Value::Integer(1)), (bulk("b"), Value::Integer(2))];
        let flat = pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]).collect();
        for value in [Value::Map(pairs.to_vec()), Value::Array(flat)] {
            assert_eq!(value.field("b"), Some(&Value::Integer(2)));
            assert_eq!(value.field("c"), None);
        }
    }
}
