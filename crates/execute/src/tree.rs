//! The executors of the tree engine.

use std::ops::Bound;
use std::time::Duration;

use sapwood_aggregate::{KeyList, Selection};
use sapwood_ptree::{Direction, Frozen, Tree, TreeKind, TreeLayout};

use crate::objects::{Reach, Request, batch, check_ns};
use crate::pool::{Filled, GetMany, Pool};
use crate::sink::Sink;
use crate::{Candidate, Executor, Result};

/// Keys that a thread looks up in one go.
const BATCH: usize = 256;

/// A look-up, in ns: a wait for memory for each level that is in no cache.
fn look_up_ns(kind: TreeKind) -> f64 {
    match kind {
        TreeKind::BTree => 350.0,
        TreeKind::CritBit | TreeKind::RedBlack => 1_000.0,
    }
}

/// An entry of a scan, in ns: nodes of a binary tree lie anywhere, and so do records.
fn scan_ns(kind: TreeKind, layout: TreeLayout) -> f64 {
    let node_ns = match kind {
        TreeKind::BTree => 15.0,
        TreeKind::CritBit | TreeKind::RedBlack => 120.0,
    };
    let record_ns = if layout == TreeLayout::Bytes { 60.0 } else { 0.0 };
    node_ns + record_ns
}

impl Reach for Tree {
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Candidate>> {
        let selection = request.selection;
        let entries = self.split_points(selection.bounds(), 1)?.entries;
        let (reached, checks) = match selection.as_keys() {
            Some(keys) => (keys.len() as f64, check_ns(selection)),
            None => (entries as f64, 0.0),
        };
        let candidate = |executor, visits: u64, visit_ns: f64| {
            let ns = visits as f64 * visit_ns + reached * request.object_ns;
            let estimate = Duration::from_nanos((ns / request.threads as f64) as u64);
            Candidate { executor, visits, read_back_bytes: 0, estimate }
        };
        let visit_ns = scan_ns(self.kind(), self.layout()) + checks;
        let range = candidate(Executor::Range, entries, visit_ns);
        let look_up = selection
            .as_keys()
            .map(|keys| candidate(Executor::LookUp, keys.len() as u64, look_up_ns(self.kind())));
        Ok(look_up.into_iter().chain([range]).collect())
    }

    /// Each, since commits are kept away meanwhile.
    fn shows_one_moment(&self, _executor: Executor) -> bool {
        true
    }

    fn reach<S: Sink>(
        &self,
        executor: Executor,
        request: &Request<'_>,
        pool: &Pool<'_>,
        make: &(impl Fn() -> S + Sync),
    ) -> Result<Filled<S>> {
        let _one_moment = request.at_one_moment.then(|| freeze(self, request));
        match (executor, request.selection.as_keys()) {
            (Executor::LookUp, Some(keys)) => look_up(self, keys, pool, make),
            _ => scan(self, request.selection, pool, make),
        }
    }
}

fn freeze<'t>(tree: &'t Tree, request: &Request<'_>) -> Frozen<'t> {
    let mut frozen = None;
    let mut freeze = || {
        frozen.get_or_insert_with(|| tree.frozen());
    };
    match request.within {
        Some(within) => within(&mut freeze),
        None => freeze(),
    }
    frozen.unwrap_or_else(|| tree.frozen())
}

impl GetMany for Tree {
    fn get_many(&self, keys: &[&[u8]], mut read: impl FnMut(usize, Option<&[u8]>)) -> Result<()> {
        for (index, key) in keys.iter().enumerate() {
            match self.get_with(key, |value| read(index, Some(value)))? {
                Some(()) => {}
                None => read(index, None),
            }
        }
        Ok(())
    }
}

fn scan<S: Sink>(
    tree: &Tree,
    selection: &Selection,
    pool: &Pool<'_>,
    make: &(impl Fn() -> S + Sync),
) -> Result<Filled<S>> {
    let (begin, limit) = selection.bounds();
    // More parts than threads, so that no thread waits long for the last.
    let parts = if pool.threads() == 1 { 1 } else { pool.threads() * 8 };
    let borders = tree.split_points((begin, limit), parts)?.keys;
    let is_list = selection.as_keys().is_some();
    pool.in_parts(borders.len() + 1, make, |part, worker| {
        let border = |at: usize| borders.get(at).map(Vec::as_slice);
        let from = match part.checked_sub(1).and_then(border) {
            Some(border) => Bound::Included(border),
            None => begin,
        };
        let to = border(part).map_or(limit, Bound::Excluded);
        Ok(tree.scan((from, to), Direction::Ascending, |key, value| {
            if is_list { worker.push(key, value) } else { worker.push_selected(key, value) }
        })?)
    })
}

fn look_up<S: Sink>(
    tree: &Tree,
    keys: &KeyList,
    pool: &Pool<'_>,
    make: &(impl Fn() -> S + Sync),
) -> Result<Filled<S>> {
    let lens = tree.layout().key_bytes();
    pool.in_parts(keys.len().div_ceil(BATCH), make, |part, worker| {
        let keys = batch(keys, part, BATCH).filter(|key| lens.contains(&key.len()));
        worker.look_up(tree, keys, |worker, key, value| worker.push_selected(key, value))
    })
}
