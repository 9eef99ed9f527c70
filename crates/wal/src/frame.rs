//! Frames: what one record of the log says, as bytes.
//!
//! A record is one frame after another, and all of them happened or none.
//!
//! ```text
//! put     1 | table | key length | key | value
//! write   2 | table | key length | key | offset | bytes
//! remove  3 | table | key length | key
//! create  4 | table | name length | name | description
//! drop    5 | table
//! saved   6 | table | position
//! ```
//! Before each frame stands its length. Numbers have as many bytes as they need, seven bits each, low
//! ones first; the first of each line is one byte. Stored: do not renumber.

use integer_encoding::VarInt;
use sapwood_engine::Effect;

/// The number of a table, which none other of the log has or had.
pub type TableId = u64;

/// The name of a table whose changes are records of its engine, and no entries: [`Follower`](crate::Follower) tells
/// nothing of it.
pub const RECORDS: &str = "";

/// Most bytes of a frame but its key, or its name, and those behind: five numbers and a code.
pub(crate) const FRAME_HEAD_BYTES_MAX: usize = 56;

const PUT: u8 = 1;
const WRITE: u8 = 2;
const REMOVE: u8 = 3;
const CREATE: u8 = 4;
const DROP: u8 = 5;
const SAVED: u8 = 6;

/// One of the things that a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Change {
        table: TableId,
        key: &'a [u8],
        effect: Effect<'a>,
    },
    Create {
        table: TableId,
        name: &'a str,
        description: &'a [u8],
    },
    Drop {
        table: TableId,
    },
    /// A checkpoint of the table's engine has all changes before the position; see [`loaded`](Frame::loaded).
    Saved {
        table: TableId,
        before: u64,
    },
}

impl Frame<'_> {
    /// A table without changes gets entries that the log does not have, with the next checkpoint: it is saved before the
    /// first of them.
    pub(crate) fn loaded(table: TableId) -> Frame<'static> {
        Frame::Saved { table, before: 0 }
    }

    pub(crate) fn is_loaded(&self) -> bool {
        matches!(self, Frame::Saved { before: 0, .. })
    }

    /// Bytes of its key, or its name, and of those behind.
    pub(crate) fn bytes(&self) -> usize {
        let (first, last) = match self {
            Frame::Change {
                key, effect: Effect::Put(bytes) | Effect::Write { bytes, .. }, ..
            } => (key.len(), bytes.len()),
            Frame::Change { key, effect: Effect::Remove, .. } => (key.len(), 0),
            Frame::Create { name, description, .. } => (name.len(), description.len()),
            Frame::Drop { .. } | Frame::Saved { .. } => (0, 0),
        };
        first + last
    }

    /// Appends the frame.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut head = [0; 32];
        let mut len = 0;
        let mut number =
            |value: u64, head: &mut [u8; 32]| len += value.encode_var(&mut head[len..]);
        let (code, table) = match self {
            Frame::Change { table, effect: Effect::Put(_), .. } => (PUT, table),
            Frame::Change { table, effect: Effect::Write { .. }, .. } => (WRITE, table),
            Frame::Change { table, effect: Effect::Remove, .. } => (REMOVE, table),
            Frame::Create { table, .. } => (CREATE, table),
            Frame::Drop { table } => (DROP, table),
            Frame::Saved { table, .. } => (SAVED, table),
        };
        number(code.into(), &mut head);
        number(*table, &mut head);
        let (first, offset, last): (&[u8], Option<u64>, &[u8]) = match self {
            Frame::Change { key, effect: Effect::Put(value), .. } => (key, None, value),
            Frame::Change { key, effect: Effect::Write { offset, bytes }, .. } => {
                (key, Some(*offset as u64), bytes)
            }
            Frame::Change { key, effect: Effect::Remove, .. } => (key, None, &[]),
            Frame::Create { name, description, .. } => (name.as_bytes(), None, description),
            Frame::Drop { .. } | Frame::Saved { .. } => (&[], None, &[]),
        };
        match self {
            Frame::Drop { .. } => {}
            Frame::Saved { before, .. } => number(*before, &mut head),
            Frame::Change { .. } | Frame::Create { .. } => number(first.len() as u64, &mut head),
        }
        let offset_len = offset.map_or(0, |offset| offset.required_space());
        let all = len + first.len() + offset_len + last.len();
        let mut before = [0; 10];
        let before_len = (all as u64).encode_var(&mut before);
        out.reserve(before_len + all);
        out.extend_from_slice(&before[..before_len]);
        out.extend_from_slice(&head[..len]);
        out.extend_from_slice(first);
        if let Some(offset) = offset {
            let mut bytes = [0; 10];
            let len = offset.encode_var(&mut bytes);
            out.extend_from_slice(&bytes[..len]);
        }
        out.extend_from_slice(last);
    }
}

/// Takes the next frame off a record; `None` at its end, and what is wrong with one that is none.
pub(crate) fn next<'a>(record: &mut &'a [u8]) -> Option<Result<Frame<'a>, &'static str>> {
    if record.is_empty() {
        return None;
    }
    let mut parse = || {
        let len = number(record)?;
        let mut frame = split(record, len)?;
        let code = split(&mut frame, 1)?[0];
        let table = number(&mut frame)?;
        if code == DROP {
            return frame.is_empty().then_some(Frame::Drop { table });
        }
        if code == SAVED {
            let before = number(&mut frame)?;
            return frame.is_empty().then_some(Frame::Saved { table, before });
        }
        let first_len = number(&mut frame)?;
        let first = split(&mut frame, first_len)?;
        let effect = match code {
            PUT => Effect::Put(frame),
            WRITE => {
                let offset = usize::try_from(number(&mut frame)?).ok()?;
                Effect::Write { offset, bytes: frame }
            }
            REMOVE if frame.is_empty() => Effect::Remove,
            CREATE => {
                let name = std::str::from_utf8(first).ok()?;
                return Some(Frame::Create { table, name, description: frame });
            }
            _ => return None,
        };
        Some(Frame::Change { table, key: first, effect })
    };
    Some(parse().ok_or("a record says what this program does not know"))
}

pub(crate) fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, len) = u64::decode_var(bytes)?;
    *bytes = &bytes[len..];
    Some(number)
}

pub(crate) fn split<'a>(bytes: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (first, rest) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
    *bytes = rest;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let long = vec![7; 70_000];
        let frames = [
            Frame::Change { table: 1, key: b"k", effect: Effect::Put(b"value") },
            Frame::Change { table: u64::MAX, key: b"", effect: Effect::Put(&long) },
            Frame::Change { table: 300, key: &long, effect: Effect::Remove },
            Frame::Change {
                table: 2,
                key: b"k",
                effect: Effect::Write { offset: 900, bytes: b"x" },
            },
            Frame::Create { table: 7, name: "å", description: b"\0\xff" },
            Frame::Drop { table: 7 },
            Frame::Saved { table: 7, before: u64::MAX },
        ];
        let mut record = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut record));
        let mut rest = &record[..];
        let read: Vec<_> =
            std::iter::from_fn(|| next(&mut rest)).collect::<Result<_, _>>().expect("frames");
        assert_eq!(read, frames);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while let Some(Ok(_)) = next(&mut rest) {}
        }
    }
}
