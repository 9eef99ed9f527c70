//! Walks: ranges of tables with order, and scans of all tables in steps.

use std::ops::{Bound, ControlFlow};

use sapwood::{AnyTable, Direction, Engine, TableRef};

use crate::command::arguments::{integer, is};
use crate::command::{Answer, Call};
use crate::jobs::Effect;
use crate::protocol::glob;
use crate::protocol::reply::Reply;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX};

use super::cells::{Entries, Shown};
use super::words::{Words, bounds};
use super::work::{Telling, Work, start};
use super::{open, refused};

/// Entries that a command visits on a thread that serves clients, at most; more are a job.
const AT_ONCE: u64 = 4_096;

const INVALID_CURSOR: Refusal = Refusal::text("ERR invalid cursor");

/// A range to be answered.
struct Range {
    /// `None` where no key can lie.
    bounds: Option<(Bound<Vec<u8>>, Bound<Vec<u8>>)>,
    direction: Direction,
    offset: u64,
    count: u64,
    shown: Shown,
}

pub(super) fn range(call: &mut Call<'_>) -> Answer {
    let (min, max) = (call.args[2], call.args[3]);
    answer_range(call, min, max, Direction::Ascending)
}

pub(super) fn revrange(call: &mut Call<'_>) -> Answer {
    let (max, min) = (call.args[2], call.args[3]);
    answer_range(call, min, max, Direction::Descending)
}

fn answer_range(call: &mut Call<'_>, min: &[u8], max: &[u8], direction: Direction) -> Answer {
    let owned = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
    let bounds = bounds(min, max)?.map(|(begin, limit)| (owned(begin), owned(limit)));
    let (mut offset, mut count, mut shown) = (0, u64::MAX, Shown::Entries);
    let mut words = Words::new(&call.args[4..]);
    while let Some(word) = words.keyword() {
        if is(word, "limit") {
            // As Redis has it: nothing begins before the first, and a negative count is no bound.
            offset = u64::try_from(integer(words.value()?)?).unwrap_or(u64::MAX);
            count = u64::try_from(integer(words.value()?)?).unwrap_or(u64::MAX);
        } else if is(word, "novalues") {
            shown = Shown::Keys;
        } else {
            return words.unknown();
        }
    }
    let range = Range { bounds, direction, offset, count, shown };
    let (table, reply) = open(call)?;
    expect_order(table)?;
    if range.count == 0 || range.offset.saturating_add(range.count) <= AT_ONCE {
        return range.answer(table, reply, || Ok(()));
    }
    start(call, Effect::Reads, Telling::Nothing, move |work: &Work<'_>, reply| {
        range.answer(work.table, reply, || work.check_cancelled())
    })
}

fn expect_order(table: &AnyTable) -> Answer {
    match table.engine() {
        Engine::Hash => {
            let name = table.name();
            Err(Refusal::err(format!("table '{name}' has no order: SW.SCAN walks it")))
        }
        _ => Ok(()),
    }
}

impl Range {
    fn answer(
        &self,
        table: &AnyTable,
        reply: &mut Reply<'_>,
        go_on: impl Fn() -> Answer,
    ) -> Answer {
        let mut entries = Entries::new(self.shown, reply.protocol());
        let (Some((begin, limit)), 1..) = (&self.bounds, self.count) else {
            entries.write(reply);
            return Ok(());
        };
        let bounds = (begin.as_ref().map(Vec::as_slice), limit.as_ref().map(Vec::as_slice));
        let mut before = self.offset;
        let mut visited = 0_u64;
        let flow = table.scan(bounds, self.direction, |key, value| {
            visited += 1;
            if visited.is_multiple_of(AT_ONCE)
                && let Err(refusal) = go_on()
            {
                return ControlFlow::Break(Err(refusal));
            }
            if before > 0 {
                before -= 1;
                return ControlFlow::Continue(());
            }
            entries.push(key, value);
            match entries.len() as u64 == self.count {
                true => ControlFlow::Break(Ok(())),
                false => ControlFlow::Continue(()),
            }
        });
        if let ControlFlow::Break(ended) = flow.map_err(refused)? {
            ended?;
        }
        entries.write(reply);
        Ok(())
    }
}

/// A step of a scan.
struct Step {
    from: Cursor,
    pattern: Option<Vec<u8>>,
    count: u64,
    shown: Shown,
}

/// The place from which a scan goes on: `0` at its beginning and its end. Of a hash table it is a
/// number, and of one with order `(` and the last key, as in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cursor {
    Number(u64),
    Behind(Vec<u8>),
}

impl Cursor {
    fn parse(argument: &[u8]) -> Result<Cursor, Refusal> {
        if let [b'(', key @ ..] = argument {
            return Ok(Cursor::Behind(key.to_vec()));
        }
        let number = std::str::from_utf8(argument).ok().and_then(|text| text.parse().ok());
        number.map(Cursor::Number).ok_or(INVALID_CURSOR)
    }

    fn write(&self, reply: &mut Reply<'_>) {
        match self {
            Cursor::Number(number) => reply.bulk(itoa::Buffer::new().format(*number).as_bytes()),
            Cursor::Behind(key) => reply.bulk(&[b"(", &key[..]].concat()),
        }
    }
}

pub(super) fn scan(call: &mut Call<'_>) -> Answer {
    let mut step = Step {
        from: Cursor::parse(call.args[2])?,
        pattern: None,
        count: 10,
        shown: Shown::Entries,
    };
    let mut words = Words::new(&call.args[3..]);
    while let Some(word) = words.keyword() {
        if is(word, "match") {
            step.pattern = Some(words.value()?.to_vec());
        } else if is(word, "count") {
            step.count = u64::try_from(integer(words.value()?)?).map_err(|_| NOT_AN_INTEGER)?;
            if step.count == 0 {
                return Err(SYNTAX);
            }
        } else if is(word, "novalues") {
            step.shown = Shown::Keys;
        } else {
            return words.unknown();
        }
    }
    let (table, reply) = open(call)?;
    if step.count <= AT_ONCE {
        return step.answer(table, reply);
    }
    start(call, Effect::Reads, Telling::Nothing, move |work: &Work<'_>, reply| {
        step.answer(work.table, reply)
    })
}

impl Step {
    fn answer(&self, table: &AnyTable, reply: &mut Reply<'_>) -> Answer {
        let mut entries = Entries::new(self.shown, reply.protocol());
        let mut visit = |key: &[u8], value: &[u8]| {
            if self.pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, key)) {
                entries.push(key, value);
            }
        };
        let next = match (table.resolve(), &self.from) {
            (TableRef::Hash(table), Cursor::Number(from)) => {
                let count = usize::try_from(self.count).unwrap_or(usize::MAX);
                Cursor::Number(table.scan_from(*from, count, visit).map_err(refused)?)
            }
            (TableRef::Hash(_), Cursor::Behind(_)) => return Err(INVALID_CURSOR),
            (_, from) => {
                let begin = match from {
                    Cursor::Number(0) => Bound::Unbounded,
                    Cursor::Number(_) => return Err(INVALID_CURSOR),
                    Cursor::Behind(key) => Bound::Excluded(&key[..]),
                };
                let mut left = self.count;
                let bounds = (begin, Bound::Unbounded);
                let flow = table.scan(bounds, Direction::Ascending, |key, value| {
                    visit(key, value);
                    left -= 1;
                    match left {
                        0 => ControlFlow::Break(key.to_vec()),
                        _ => ControlFlow::Continue(()),
                    }
                });
                match flow.map_err(refused)? {
                    ControlFlow::Break(last) => Cursor::Behind(last),
                    ControlFlow::Continue(()) => Cursor::Number(0),
                }
            }
        };
        reply.array(2);
        next.write(reply);
        entries.write(reply);
        Ok(())
    }
}
