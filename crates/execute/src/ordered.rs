//! The executors of the ordered engine.

use std::ops::Bound;
use std::time::Duration;

use sapwood_aggregate::{KeyList, Selection};
use sapwood_chunkmap::{ChunkMap, Direction, KEY_BYTES_MAX};

use crate::objects::{Reach, Request, batch, check_ns};
use crate::pool::{Filled, GetMany, Pool};
use crate::sink::Sink;
use crate::{Candidate, Executor, Result};

/// Keys that are looked up together.
const BATCH: usize = 1_024;

/// A look-up among others, in ns: three waits for memory, overlapped.
const LOOK_UP_NS: f64 = 250.0;

/// An entry of a scan, in ns: its record lies anywhere, and was asked for ahead.
const SCAN_NS: f64 = 30.0;

impl Reach for ChunkMap {
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Candidate>> {
        let selection = request.selection;
        let borders = self.split_points(selection.bounds(), 1);
        let (reached, checks) = match selection.as_keys() {
            Some(keys) => (keys.len() as f64, check_ns(selection)),
            None => (borders.entries as f64, 0.0),
        };
        let candidate = |executor, visits: u64, visit_ns: f64| {
            let ns = visits as f64 * visit_ns + reached * request.object_ns;
            let estimate = Duration::from_nanos((ns / request.threads as f64) as u64);
            Candidate { executor, visits, read_back_bytes: 0, estimate }
        };
        let range = candidate(Executor::Range, borders.entries, SCAN_NS + checks);
        let look_up = selection
            .as_keys()
            .map(|keys| candidate(Executor::LookUp, keys.len() as u64, LOOK_UP_NS));
        Ok(look_up.into_iter().chain([range]).collect())
    }

    fn shows_one_moment(&self, _executor: Executor) -> bool {
        false
    }

    fn reach<S: Sink>(
        &self,
        executor: Executor,
        request: &Request<'_>,
        pool: &Pool<'_>,
        make: &(impl Fn() -> S + Sync),
    ) -> Result<Filled<S>> {
        match (executor, request.selection.as_keys()) {
            (Executor::LookUp, Some(keys)) => look_up(self, keys, pool, make),
            _ => scan(self, request.selection, pool, make),
        }
    }
}

impl GetMany for ChunkMap {
    fn get_many(&self, keys: &[&[u8]], read: impl FnMut(usize, Option<&[u8]>)) -> Result<()> {
        Ok(ChunkMap::get_many(self, keys, read)?)
    }
}

fn scan<S: Sink>(
    map: &ChunkMap,
    selection: &Selection,
    pool: &Pool<'_>,
    make: &(impl Fn() -> S + Sync),
) -> Result<Filled<S>> {
    let (begin, limit) = selection.bounds();
    // More parts than threads, so that no thread waits long for the last.
    let parts = if pool.threads() == 1 { 1 } else { pool.threads() * 8 };
    let borders = map.split_points((begin, limit), parts).keys;
    let is_list = selection.as_keys().is_some();
    pool.in_parts(borders.len() + 1, make, |part, worker| {
        let border = |at: usize| borders.get(at).map(Vec::as_slice);
        let from = match part.checked_sub(1).and_then(border) {
            Some(border) => Bound::Included(border),
            None => begin,
        };
        let to = border(part).map_or(limit, Bound::Excluded);
        Ok(map.scan((from, to), Direction::Ascending, |key, value| {
            if is_list { worker.push(key, value) } else { worker.push_selected(key, value) }
        })?)
    })
}

fn look_up<S: Sink>(
    map: &ChunkMap,
    keys: &KeyList,
    pool: &Pool<'_>,
    make: &(impl Fn() -> S + Sync),
) -> Result<Filled<S>> {
    pool.in_parts(keys.len().div_ceil(BATCH), make, |part, worker| {
        let can_hold = |key: &&[u8]| (1..=KEY_BYTES_MAX).contains(&key.len());
        let keys = batch(keys, part, BATCH).filter(can_hold);
        worker.look_up(map, keys, |worker, key, value| worker.push_selected(key, value))
    })
}
