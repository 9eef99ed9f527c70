//! Values and rows as replies.

use sapwood::aggregate::{Accuracy, Answer, Cell, TopEntry, Value};

use crate::protocol::reply::{Protocol, Reply};

/// A whole number: an integer, or a big number beyond 64 bits.
pub(super) fn whole(reply: &mut Reply<'_>, number: i128) {
    match i64::try_from(number) {
        Ok(number) => reply.integer(number),
        Err(_) => reply.big_number(&number.to_string()),
    }
}

/// A count.
pub(super) fn count(reply: &mut Reply<'_>, number: u64) {
    whole(reply, number.into());
}

pub(super) fn value(reply: &mut Reply<'_>, value: &Value<'_>) {
    match value {
        Value::Bool(value) => reply.boolean(*value),
        Value::Int(value) => whole(reply, *value),
        Value::Float(value) => reply.double(value.get()),
        Value::Bytes(value) => reply.bulk(value),
    }
}

/// A value that may be absent.
pub(super) fn optional(reply: &mut Reply<'_>, found: Option<&Value<'_>>) {
    match found {
        Some(found) => value(reply, found),
        None => reply.null(),
    }
}

/// A text that may be absent.
pub(super) fn text(reply: &mut Reply<'_>, text: Option<&str>) {
    match text {
        Some(text) => reply.bulk(text.as_bytes()),
        None => reply.null(),
    }
}

fn cell(reply: &mut Reply<'_>, cell: &Cell) {
    match cell {
        Cell::Nothing => reply.null(),
        Cell::Value(found) => value(reply, found),
        Cell::Top(entries) => {
            reply.array(entries.len());
            for TopEntry { value: found, at_least, at_most } in entries {
                reply.array(3);
                value(reply, found);
                count(reply, *at_least);
                count(reply, *at_most);
            }
        }
    }
}

/// An answer: its columns, its rows, and how many objects went which way.
pub(super) fn answer(reply: &mut Reply<'_>, answer: &Answer) {
    reply.map(10);
    reply.bulk(b"columns");
    reply.array(answer.columns.len());
    for column in &answer.columns {
        reply.bulk(column.name.as_bytes());
    }
    reply.bulk(b"rows");
    reply.array(answer.rows.len());
    for row in &answer.rows {
        reply.array(row.len());
        row.iter().for_each(|it| cell(reply, it));
    }
    reply.bulk(b"accuracy");
    reply.array(answer.columns.len());
    for column in &answer.columns {
        reply.bulk(accuracy(column.accuracy).as_bytes());
    }
    let tally = &answer.tally;
    for (name, number) in [
        ("groups", answer.groups),
        ("selected", tally.selected),
        ("matched", tally.matched),
        ("mismatched", tally.mismatched),
        ("missing", tally.missing),
        ("absent", tally.absent),
    ] {
        reply.bulk(name.as_bytes());
        count(reply, number);
    }
    reply.bulk(b"mismatch");
    text(reply, tally.first_mismatch.as_ref().map(ToString::to_string).as_deref());
}

/// How exact the figures of a column are, in a word and a bound.
fn accuracy(accuracy: Accuracy) -> String {
    match accuracy {
        Accuracy::Exact => "exact".to_owned(),
        Accuracy::Rounded => "rounded".to_owned(),
        Accuracy::Within(share) => format!("within {share}"),
        Accuracy::Estimated { exact_max, standard_error } => {
            format!("exact to {exact_max}, then with a standard error of {standard_error}")
        }
        Accuracy::Bounded => "bounded".to_owned(),
    }
}

/// Values of entries beside their keys, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Entries,
    Keys,
}

/// Entries whose number is known when they all are written.
#[derive(Debug)]
pub(super) struct Entries {
    bytes: Vec<u8>,
    count: usize,
    shown: Shown,
    protocol: Protocol,
}

impl Entries {
    pub(super) fn new(shown: Shown, protocol: Protocol) -> Entries {
        Entries { bytes: Vec::new(), count: 0, shown, protocol }
    }

    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        let mut reply = Reply::new(&mut self.bytes, self.protocol);
        match (self.shown, self.protocol) {
            (Shown::Keys, _) => return reply.bulk(key),
            (Shown::Entries, Protocol::Resp2) => {}
            (Shown::Entries, Protocol::Resp3) => reply.array(2),
        }
        reply.bulk(key);
        reply.bulk(value);
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Pairs of key and value, as those of sorted sets: one behind the other in version 2 of the
    /// protocol, an array each in version 3. Keys alone are an array.
    pub(super) fn write(self, reply: &mut Reply<'_>) {
        let each = match (self.shown, self.protocol) {
            (Shown::Entries, Protocol::Resp2) => 2,
            _ => 1,
        };
        reply.array(self.count * each);
        reply.written(&self.bytes);
    }
}
