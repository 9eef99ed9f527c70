//! The executors of an ordered table.

use std::ops::Bound;
use std::time::Duration;

use sapwood_aggregate::{KeyList, Selection};

use super::objects::{Asked, Crew, Ended, Gather, Gathered, GetMany, Objects, batch, check_ns};
use super::{Candidate, Executor};
use crate::{Direction, KEY_BYTES_MAX, OrderedTable};

/// Keys that are looked up together.
const BATCH: usize = 1_024;

/// A look-up among others, in ns: three waits for memory, overlapped.
const LOOK_UP_NS: f64 = 250.0;

/// An entry of a scan, in ns: its record lies anywhere, and was asked for ahead.
const SCAN_NS: f64 = 30.0;

impl Objects for OrderedTable {
    fn candidates(&self, asked: &Asked<'_>) -> Vec<Candidate> {
        let selection = asked.selection;
        let borders = self.map().split_points(selection.bounds(), 1);
        let (reached, checks) = match selection.as_keys() {
            Some(keys) => (keys.len() as f64, check_ns(selection)),
            None => (borders.entries as f64, 0.0),
        };
        let candidate = |executor, visits: u64, visit_ns: f64| {
            let ns = visits as f64 * visit_ns + reached * asked.object_ns;
            let estimate = Duration::from_nanos((ns / asked.threads as f64) as u64);
            Candidate { executor, visits, estimate }
        };
        let range = candidate(Executor::Range, borders.entries, SCAN_NS + checks);
        let look_up = selection
            .as_keys()
            .map(|keys| candidate(Executor::LookUp, keys.len() as u64, LOOK_UP_NS));
        look_up.into_iter().chain([range]).collect()
    }

    fn reach<G: Gather>(
        &self,
        executor: Executor,
        asked: &Asked<'_>,
        crew: &Crew<'_>,
        make: &(impl Fn() -> G + Sync),
    ) -> Result<Gathered<G>, Ended> {
        match (executor, asked.selection.as_keys()) {
            (Executor::LookUp, Some(keys)) => look_up(self, keys, crew, make),
            _ => scan(self, asked.selection, crew, make),
        }
    }
}

impl GetMany for OrderedTable {
    fn get_many(
        &self,
        keys: &[&[u8]],
        read: impl FnMut(usize, Option<&[u8]>),
    ) -> crate::Result<()> {
        OrderedTable::get_many(self, keys, read)
    }
}

fn scan<G: Gather>(
    table: &OrderedTable,
    selection: &Selection,
    crew: &Crew<'_>,
    make: &(impl Fn() -> G + Sync),
) -> Result<Gathered<G>, Ended> {
    let (begin, limit) = selection.bounds();
    // More parts than threads, so that no thread waits long for the last.
    let parts = if crew.threads() == 1 { 1 } else { crew.threads() * 8 };
    let borders = table.map().split_points((begin, limit), parts).keys;
    let is_list = selection.as_keys().is_some();
    crew.in_parts(borders.len() + 1, make, |part, work| {
        let border = |at: usize| borders.get(at).map(Vec::as_slice);
        let from = match part.checked_sub(1).and_then(border) {
            Some(border) => Bound::Included(border),
            None => begin,
        };
        let to = border(part).map_or(limit, Bound::Excluded);
        table.scan((from, to), Direction::Ascending, |key, value| {
            if is_list { work.push(key, value) } else { work.push_selected(key, value) }
        })
    })
}

fn look_up<G: Gather>(
    table: &OrderedTable,
    keys: &KeyList,
    crew: &Crew<'_>,
    make: &(impl Fn() -> G + Sync),
) -> Result<Gathered<G>, Ended> {
    crew.in_parts(keys.len().div_ceil(BATCH), make, |part, work| {
        let can_hold = |key: &&[u8]| (1..=KEY_BYTES_MAX).contains(&key.len());
        let keys = batch(keys, part, BATCH).filter(can_hold);
        work.look_up(table, keys, |work, key, value| work.push_selected(key, value))
    })
}
