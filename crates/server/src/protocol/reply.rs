//! Replies: values as bytes that a client reads, in either version of the protocol.
//!
//! A reply is written behind the others into one buffer, so that the replies of a pipeline go out
//! with one system call, in the order of their requests. An array, a map or a set is its length and
//! then its elements. What version 2 has no form for is written in the form that Redis takes then:
//! maps and sets are arrays, doubles are bulk strings, booleans are integers.

/// The version of the protocol that a client chose with `HELLO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Version 2, as every client begins.
    #[default]
    Resp2,
    /// Version 3.
    Resp3,
}

/// Writes replies behind what a buffer holds.
///
/// ```
/// use sapwood_server::protocol::reply::{Protocol, Reply};
///
/// let mut out = Vec::new();
/// let mut reply = Reply::new(&mut out, Protocol::Resp3);
/// reply.map(1);
/// reply.bulk(b"hits");
/// reply.integer(42);
/// assert_eq!(out, b"%1\r\n$4\r\nhits\r\n:42\r\n");
/// ```
#[derive(Debug)]
pub struct Reply<'o> {
    out: &'o mut Vec<u8>,
    protocol: Protocol,
}

impl<'o> Reply<'o> {
    /// Replies in a version of the protocol.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>, protocol: Protocol) -> Reply<'o> {
        Reply { out, protocol }
    }

    /// The same replies, for a shorter time.
    pub fn reborrow(&mut self) -> Reply<'_> {
        Reply { out: self.out, protocol: self.protocol }
    }

    /// The version of the protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Writes in another version from here on.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Bytes that the buffer holds.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes back what was written since the buffer had so many bytes.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
    }

    /// A reply that was written elsewhere.
    pub fn written(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A short text without line ends, such as `OK`.
    #[inline]
    pub fn simple(&mut self, text: &str) {
        debug_assert!(!text.contains(['\r', '\n']), "a simple string has one line");
        self.out.push(b'+');
        self.out.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// An error: its code in capitals, a space, and a text. Line ends in it become spaces, since an
    /// argument of the client may be quoted in it.
    pub fn error(&mut self, text: &str) {
        self.out.push(b'-');
        let byte = |byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
        self.out.extend(text.bytes().map(byte));
        self.end();
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        self.marked(b':', number);
    }

    /// Bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.out.reserve(bytes.len() + 25);
        self.marked(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end();
    }

    /// An integer as bytes, such as the value of a counter.
    pub fn bulk_integer(&mut self, number: i64) {
        self.bulk(itoa::Buffer::new().format(number).as_bytes());
    }

    /// The absence of a value.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The absence of an array, such as the answer of a transaction that was given up.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The beginning of an array of so many elements.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.marked(b'*', len);
    }

    /// The beginning of a map of so many pairs of key and value.
    pub fn map(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.marked(b'*', len * 2),
            Protocol::Resp3 => self.marked(b'%', len),
        }
    }

    /// The beginning of a set of so many elements.
    pub fn set(&mut self, len: usize) {
        self.marked(if self.protocol == Protocol::Resp3 { b'~' } else { b'*' }, len);
    }

    /// The beginning of a message of so many elements that answers no request.
    pub fn push(&mut self, len: usize) {
        self.marked(if self.protocol == Protocol::Resp3 { b'>' } else { b'*' }, len);
    }

    /// A floating-point number: the shortest text that reads back as the same number.
    pub fn double(&mut self, number: f64) {
        let text = match number {
            number if number.is_nan() => "nan".to_owned(),
            number if number.is_infinite() => if number > 0.0 { "inf" } else { "-inf" }.to_owned(),
            // As short as it is, up to the magnitude where digits would be invented.
            number if number == 0.0 || (1e-5..1e17).contains(&number.abs()) => number.to_string(),
            number => exponent(number),
        };
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.out.push(b',');
                self.out.extend_from_slice(text.as_bytes());
                self.end();
            }
        }
    }

    /// A truth value.
    pub fn boolean(&mut self, is_true: bool) {
        match (self.protocol, is_true) {
            (Protocol::Resp2, _) => self.integer(i64::from(is_true)),
            (Protocol::Resp3, true) => self.out.extend_from_slice(b"#t\r\n"),
            (Protocol::Resp3, false) => self.out.extend_from_slice(b"#f\r\n"),
        }
    }

    /// An integer of any size, such as an exact sum.
    pub fn big_number(&mut self, digits: &str) {
        debug_assert!(digits.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit()));
        match self.protocol {
            Protocol::Resp2 => self.bulk(digits.as_bytes()),
            Protocol::Resp3 => {
                self.out.push(b'(');
                self.out.extend_from_slice(digits.as_bytes());
                self.end();
            }
        }
    }

    /// A text for people, which clients show as it is.
    pub fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.marked(b'=', text.len() + 4);
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.end();
            }
        }
    }

    #[inline]
    fn marked(&mut self, mark: u8, number: impl itoa::Integer) {
        self.out.push(mark);
        self.out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.end();
    }

    #[inline]
    fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

/// A number with an exponent that has a sign, as C writes it.
fn exponent(number: f64) -> String {
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power}"),
        _ => text,
    }
}
