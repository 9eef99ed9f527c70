//! The executors of the ordered engine.

use std::ops::Bound;
use std::time::Duration;

use sapwood_aggregate::KeyList;
use sapwood_chunkmap::{ChunkMap, Direction, KEY_BYTES_MAX, Widths};

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
/// The same by columns: no count in the record, no closure.
const SCAN_COLUMNS_NS: f64 = 12.0;

/// A look-up by columns, in ns: the record is the key's own, the lines of a group and those of a chunk are for all keys
/// that are in it.
fn look_up_columns_ns(keys: u64, entries: u64) -> f64 {
    const RECORD_NS: f64 = 30.0;
    const GROUP_NS: f64 = 40.0;
    const GROUP_ENTRIES: f64 = 16.0;
    const CHUNK_NS: f64 = 250.0;
    const CHUNK_ENTRIES: f64 = 512.0;
    let apart = entries as f64 / keys.max(1) as f64;
    let own = |part_entries: f64| (apart / part_entries).min(1.0);
    RECORD_NS + own(GROUP_ENTRIES) * GROUP_NS + own(CHUNK_ENTRIES) * CHUNK_NS
}

impl Reach for ChunkMap {
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Candidate>> {
        let selection = request.selection;
        let borders = self.split_points(selection.bounds(), 1);
        let (reached, checks) = match selection.as_keys() {
            Some(keys) => (keys.len() as f64, check_ns(selection)),
            None => (borders.entries as f64, 0.0),
        };
        let candidate = |executor, visits: u64, visit_ns: f64, object_ns: f64| {
            let ns = visits as f64 * visit_ns + reached * object_ns;
            let estimate = Duration::from_nanos((ns / request.threads as f64) as u64);
            Candidate { executor, visits, read_back_bytes: 0, estimate }
        };
        let (one_by_one, in_a_run) = (request.object_ns, request.run_object_ns);
        let (scan_ns, object_ns) = match request.widths {
            Some(_) if selection.as_keys().is_none() => (SCAN_COLUMNS_NS, in_a_run),
            _ => (SCAN_NS + checks, one_by_one),
        };
        let range = candidate(Executor::Range, borders.entries, scan_ns, object_ns);
        let look_up = selection.as_keys().map(|keys| {
            let keys = keys.len() as u64;
            let (look_up_ns, object_ns) = match request.widths {
                Some(_) => (look_up_columns_ns(keys, borders.entries), in_a_run),
                None => (LOOK_UP_NS, one_by_one),
            };
            candidate(Executor::LookUp, keys, look_up_ns, object_ns)
        });
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
            (Executor::LookUp, Some(keys)) => look_up(self, keys, request.widths, pool, make),
            _ => scan(self, request, pool, make),
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
    request: &Request<'_>,
    pool: &Pool<'_>,
    make: &(impl Fn() -> S + Sync),
) -> Result<Filled<S>> {
    let (begin, limit) = request.selection.bounds();
    // More parts than threads, so that no thread waits long for the last.
    let parts = if pool.threads() == 1 { 1 } else { pool.threads() * 8 };
    let borders = map.split_points((begin, limit), parts).keys;
    let is_list = request.selection.as_keys().is_some();
    pool.in_parts(borders.len() + 1, make, |part, worker| {
        let border = |at: usize| borders.get(at).map(Vec::as_slice);
        let from = match part.checked_sub(1).and_then(border) {
            Some(border) => Bound::Included(border),
            None => begin,
        };
        let to = border(part).map_or(limit, Bound::Excluded);
        Ok(match request.widths {
            Some(widths) if !is_list => {
                map.scan_columns((from, to), widths, |piece| worker.push_piece(piece))
            }
            _ => map.scan((from, to), Direction::Ascending, |key, value| {
                if is_list { worker.push(key, value) } else { worker.push_selected(key, value) }
            }),
        }?)
    })
}

fn look_up<S: Sink>(
    map: &ChunkMap,
    keys: &KeyList,
    widths: Option<Widths>,
    pool: &Pool<'_>,
    make: &(impl Fn() -> S + Sync),
) -> Result<Filled<S>> {
    pool.in_parts(keys.len().div_ceil(BATCH), make, |part, worker| {
        let can_hold = |key: &&[u8]| (1..=KEY_BYTES_MAX).contains(&key.len());
        let keys = batch(keys, part, BATCH).filter(can_hold);
        if let Some(widths) = widths {
            let keys: Vec<&[u8]> = keys.collect();
            let before = worker.visited();
            let flow = map.get_many_columns(&keys, widths, |piece| worker.push_piece(piece))?;
            let absent = keys.len() as u64 - (worker.visited() - before);
            return Ok(if flow.is_continue() { worker.count(absent) } else { flow });
        }
        worker.look_up(map, keys, |worker, key, value| worker.push_selected(key, value))
    })
}
