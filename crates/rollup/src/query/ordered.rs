//! Facts of several places in the order of their times.

use std::ops::ControlFlow;

use sapwood_chunkmap::Direction;

use super::batch::FactBatch;
use super::source::{BoundPlace, Cursor, Place};
use crate::error::Result;
use crate::time::interval::Interval;

/// Hands over the facts of some intervals in the order of their times: rows of a batch of one place, as many as come
/// before the next fact of another. Facts of one time come place by place. `expect_wanted` ends it before it reads on.
pub(crate) fn each_run<'p>(
    bound: &'p [BoundPlace<'p>],
    intervals: &[Interval],
    direction: Direction,
    expect_wanted: impl Fn() -> Result<()>,
    mut each: impl FnMut(&'p Place, &FactBatch, &[u32]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let cursors = bound.iter().map(|bound| Cursor::new(bound, intervals, direction));
    let mut cursors: Vec<Cursor<'_>> = cursors.collect::<Result<_>>()?;
    let mut run = Vec::new();
    while let Some(Next { cursor, until }) = next_cursor(&cursors, direction)? {
        let cursor = &mut cursors[cursor];
        if !cursor.is_read() {
            cursor.read(&expect_wanted)?;
            continue;
        }
        run.clear();
        run.extend(std::iter::from_fn(|| cursor.take_until(until)));
        if each(cursor.place(), &cursor.batch, &run)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// The cursor that has the next fact, or has to read to say so.
struct Next {
    cursor: usize,
    /// The time up to which no other has one that comes before.
    until: Option<i64>,
}

fn next_cursor(cursors: &[Cursor<'_>], direction: Direction) -> Result<Option<Next>> {
    let is_before = |time: i64, other: i64| match direction {
        Direction::Ascending => time < other,
        Direction::Descending => time > other,
    };
    let mut next: Option<(i64, usize)> = None;
    let mut until: Option<i64> = None;
    for (at, cursor) in cursors.iter().enumerate() {
        let Some(time) = cursor.bound()? else { continue };
        let other = match next {
            None => {
                next = Some((time, at));
                continue;
            }
            Some((before, _)) if is_before(time, before) => {
                next = Some((time, at));
                before
            }
            Some(_) => time,
        };
        if until.is_none_or(|until| is_before(other, until)) {
            until = Some(other);
        }
    }
    Ok(next.map(|(_, cursor)| Next { cursor, until }))
}
