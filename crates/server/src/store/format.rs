//! The stored form of a string: its bytes, and beside them what Redis knows of it.
//!
//! A hash table rounds a value up to 8 bytes, so a mark on every value would cost 8 bytes where the
//! values have 8. A value of a multiple of 8 bytes is therefore stored as it is; every other length
//! says that a mark stands first:
//!
//! | first byte | stored | means |
//! |---|---|---|
//! | none: a length of 8n | `value` | the value, kept for good |
//! | `\n`, length not 8n + 1 | `\n value` | the same |
//! | `\n`, length 8n + 1 | `\n value \r` | the same, where one byte more would make 8n |
//! | `E` | `E value time` | until `time`: 8 bytes, little-endian, in ms since 1970 |
//! | `e` | `e value time 0` | the same, where one byte less would make 8n |
//! | `L`, length 25 | `L id key_len len` | in parts; three numbers of 8 bytes |
//! | `L`, length 33 | `L id key_len len time` | in parts, until `time` |
//! | `P`, length 33 | `P id key_len len base` | in parts, and from byte `base` of the value on in pieces |
//! | `P`, length 41 | `P id key_len len base time` | the same, until `time` |
//!
//! The first mark is a line's end on purpose: in a request the bytes of an argument lie between
//! `\n` and `\r`, so that what is stored is a slice of what came, and is not copied together first.

/// Milliseconds since 1970.
pub type Millis = u64;

const PLAIN: u8 = b'\n';
const PLAIN_PAD: u8 = b'\r';
const EXPIRING: u8 = b'E';
const EXPIRING_PADDED: u8 = b'e';
const IN_PARTS: u8 = b'L';
const IN_PIECES: u8 = b'P';

/// A stored value, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored<'a> {
    /// A value that lies here.
    Inline {
        /// Its bytes.
        value: &'a [u8],
        /// The end of its time.
        expiry: Option<Millis>,
    },
    /// A value that lies in parts elsewhere.
    Parts(Parts),
}

/// The head of a value in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Names the parts.
    pub id: u64,
    /// Bytes of the key, if it lies before the value; 0 if it does not.
    pub key_len: u64,
    /// Bytes of the value.
    pub len: u64,
    /// Bytes of the value in parts; the others lie in pieces, which it has grown by since.
    pub base: u64,
    /// The end of its time.
    pub expiry: Option<Millis>,
}

impl Stored<'_> {
    /// The end of its time.
    pub fn expiry(&self) -> Option<Millis> {
        match self {
            Stored::Inline { expiry, .. } | Stored::Parts(Parts { expiry, .. }) => *expiry,
        }
    }

    /// Whether its time has ended.
    #[inline]
    pub fn has_expired(&self, now: Millis) -> bool {
        self.expiry().is_some_and(|expiry| expiry <= now)
    }
}

/// Takes a stored value apart; `None` for bytes that this module did not write.
#[inline]
pub fn decode(stored: &[u8]) -> Option<Stored<'_>> {
    if stored.len().is_multiple_of(8) {
        return Some(Stored::Inline { value: stored, expiry: None });
    }
    let (mark, rest) = stored.split_first()?;
    match *mark {
        PLAIN if stored.len() % 8 == 1 => {
            let (_pad, value) = rest.split_last()?;
            Some(Stored::Inline { value, expiry: None })
        }
        PLAIN => Some(Stored::Inline { value: rest, expiry: None }),
        EXPIRING => expiring(rest),
        EXPIRING_PADDED => expiring(rest.split_last()?.1),
        IN_PARTS | IN_PIECES => {
            let (id, rest) = number(rest)?;
            let (key_len, rest) = number(rest)?;
            let (len, rest) = number(rest)?;
            let (base, rest) = if *mark == IN_PIECES { number(rest)? } else { (len, rest) };
            let expiry = match rest {
                [] => None,
                time => Some(u64::from_le_bytes(time.try_into().ok()?)),
            };
            let parts = Parts { id, key_len, len, base, expiry };
            (base <= len).then_some(Stored::Parts(parts))
        }
        _ => None,
    }
}

fn expiring(rest: &[u8]) -> Option<Stored<'_>> {
    let (value, time) = rest.split_last_chunk()?;
    Some(Stored::Inline { value, expiry: Some(u64::from_le_bytes(*time)) })
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

/// The stored form of `request[from..to]`, an argument between the line ends of a request, without
/// a copy; `None` if other bytes lie around it.
#[inline]
pub fn within(request: &[u8], from: usize, to: usize) -> Option<&[u8]> {
    match (to - from) % 8 {
        0 => Some(&request[from..to]),
        7 => (from > 0 && request[from - 1] == PLAIN && request.get(to) == Some(&PLAIN_PAD))
            .then(|| &request[from - 1..to + 1]),
        _ => (from > 0 && request[from - 1] == PLAIN).then(|| &request[from - 1..to]),
    }
}

/// Bytes of the stored form of a value.
pub fn encoded_len(len: usize, expiry: Option<Millis>) -> usize {
    match (len % 8, expiry) {
        (7, None) => len + 2,
        (0, None) => len,
        (_, None) => len + 1,
        (7, Some(_)) => len + 10,
        (_, Some(_)) => len + 9,
    }
}

/// Appends the stored form of a value.
pub fn encode(value: &[u8], expiry: Option<Millis>, out: &mut Vec<u8>) {
    let begin = out.len();
    let len = encoded_len(value.len(), expiry);
    out.reserve(len);
    let is_padded = value.len() % 8 == 7;
    match expiry {
        None if value.len().is_multiple_of(8) => out.extend_from_slice(value),
        None => {
            out.push(PLAIN);
            out.extend_from_slice(value);
            if is_padded {
                out.push(PLAIN_PAD);
            }
        }
        Some(time) => {
            out.push(if is_padded { EXPIRING_PADDED } else { EXPIRING });
            out.extend_from_slice(value);
            out.extend_from_slice(&time.to_le_bytes());
            if is_padded {
                out.push(0);
            }
        }
    }
    debug_assert_eq!(out.len() - begin, len);
}

/// The offset of a value that lies in its stored form.
pub fn value_begin(stored: &[u8]) -> usize {
    usize::from(!stored.len().is_multiple_of(8))
}

/// Appends the stored form of the head of a value in parts.
pub fn encode_parts(parts: &Parts, out: &mut Vec<u8>) {
    let &Parts { id, key_len, len, base, expiry } = parts;
    debug_assert!(base <= len, "what lies in parts is of the value");
    let has_pieces = base < len;
    out.push(if has_pieces { IN_PIECES } else { IN_PARTS });
    for number in [Some(id), Some(key_len), Some(len), has_pieces.then_some(base), expiry] {
        out.extend(number.into_iter().flat_map(u64::to_le_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(value: Vec<u8>, expiry: Option<u64>) {
            let mut stored = Vec::new();
            encode(&value, expiry, &mut stored);
            prop_assert_eq!(stored.len(), encoded_len(value.len(), expiry));
            prop_assert_eq!(decode(&stored), Some(Stored::Inline { value: &value, expiry }));
        }

        #[test]
        fn an_argument_is_stored_as_it_lies(value: Vec<u8>) {
            let request = [b"$9\r\n", &value[..], b"\r\n"].concat();
            let stored = within(&request, 4, 4 + value.len()).expect("it lies between line ends");
            prop_assert_eq!(decode(stored), Some(Stored::Inline { value: &value, expiry: None }));
            let mut copied = Vec::new();
            encode(&value, None, &mut copied);
            prop_assert_eq!(stored, copied);
        }

        #[test]
        fn heads_are_decoded(id: u64, key_len: u64, base: u64, more: u8, expiry: Option<u64>) {
            let len = base.saturating_add(more.into());
            let parts = Parts { id, key_len, len, base, expiry };
            let mut stored = Vec::new();
            encode_parts(&parts, &mut stored);
            prop_assert_eq!(decode(&stored), Some(Stored::Parts(parts)));
        }

        #[test]
        fn any_bytes_are_taken_or_refused(stored: Vec<u8>) {
            let _ = decode(&stored);
        }
    }

    #[test]
    fn eight_bytes_are_stored_in_eight() {
        assert_eq!(encoded_len(8, None), 8);
        assert_eq!(encoded_len(0, None), 0);
    }
}
