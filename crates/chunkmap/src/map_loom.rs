//! Models of the map's protocols: loom runs every interleaving up to a bound on
//! preemptions. The code under test is the code that ships, down to the epochs;
//! words of freed records are gone in a model, so a use after free panics.

mod columns;
mod journal;
mod moves;
mod ranks;
mod rebalances;
mod reclaim;
mod scans;
mod writes;

use std::ops::ControlFlow;
use std::sync::Arc;

use loom::thread;
use sapwood_mem::model;

use crate::{ChunkMap, Direction, Options};

/// Chunks of two entries: the third insert rebalances.
fn small_map() -> Arc<ChunkMap> {
    map_of(2)
}

/// Chunks of so many entries, and of two unsorted ones.
fn map_of(chunk_entries: usize) -> Arc<ChunkMap> {
    let mut options = Options::default();
    options.chunk_entries = chunk_entries;
    options.block_bytes = 4096;
    Arc::new(ChunkMap::with_options(options).expect("a few pages"))
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    check_with(&loom::model::Builder::new(), check);
}

/// Checks a model that takes a minute with two preemptions: with one, unless `cargo xtask loom` has set
/// `LOOM_LONG`.
fn model_long(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    if std::env::var_os("LOOM_LONG").is_none() {
        builder.preemption_bound = builder.preemption_bound.map(|most| most.min(1));
    }
    check_with(&builder, check);
}

fn check_with(builder: &loom::model::Builder, check: impl Fn() + Sync + Send + 'static) {
    builder.check(move || {
        model::reset();
        check();
    });
}

fn spawn<R: 'static>(
    map: &Arc<ChunkMap>,
    work: impl FnOnce(&ChunkMap) -> R + 'static,
) -> thread::JoinHandle<R> {
    let map = Arc::clone(map);
    thread::spawn(move || work(&map))
}

/// The wait of a closure that stays: the other thread may go on.
fn stay() {
    thread::yield_now();
}

/// The keys that a scan shows, which a chunk tells by its words alone.
fn keys_of(map: &ChunkMap) -> Vec<u8> {
    let mut keys = Vec::new();
    let flow = map.scan_keys(.., Direction::Ascending, |key| {
        keys.push(key[0]);
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(flow.expect("no closure"), ControlFlow::Continue(()));
    keys
}

/// Puts another chunk in the place of the only one.
fn rebalance(map: &ChunkMap) {
    let guard = map.tree.reclaimer.pin();
    map.rebalance(&guard, map.tree.leaf(&guard, b"a")).expect("memory");
}
