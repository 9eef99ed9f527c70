//! The objects of an engine, as queries reach them.

use sapwood_aggregate::{Compiled, Disaggregator, KeyList, Selection};
use sapwood_chunkmap::{ChunkMap, Widths};
use sapwood_engine::Columns;
use sapwood_hashlog::HashLog;
use sapwood_ptree::Tree;

use crate::change::ChangeObjects;
use crate::execution::Within;
use crate::pool::{Filled, Pool};
use crate::sink::Sink;
use crate::{Candidate, Execution, Executor, Plan, Result};

/// An engine whose objects queries reach: `ChunkMap`, `HashLog` and `Tree`.
///
/// Engines alone implement it. It says which executors can reach what a selection selects, and at
/// which expected cost; it runs one of them, in parts that threads share; and it gives objects their
/// parts of a total.
///
/// # Consistency
///
/// An object is read whole, as it was at one moment. A key that is there throughout is visited
/// exactly once by every executor, while writers write; one that comes or goes meanwhile at most
/// once.
pub trait Objects: Reach + ChangeObjects {}

impl Objects for ChunkMap {}
impl Objects for HashLog {}
impl Objects for Tree {}

/// What a run asks of an engine.
pub struct Request<'a> {
    pub(crate) selection: &'a Selection,
    pub(crate) threads: usize,
    pub(crate) at_one_moment: bool,
    /// Inside of which the moment is taken.
    pub(crate) within: Option<Within<'a>>,
    /// What is read of batches of objects.
    pub(crate) columns: Columns,
    /// How much of keys and values is read, where the first bytes of objects that are selected are enough.
    pub(crate) widths: Option<Widths>,
    /// What a selected object costs beside being reached, one by one and in a run, in ns.
    pub(crate) object_ns: f64,
    pub(crate) run_object_ns: f64,
}

impl<'a> Request<'a> {
    pub(crate) fn of_query(query: &'a Compiled, execution: &Execution<'a>) -> Request<'a> {
        let selection = query.selection();
        let without_keys = query.gathers_batches()
            && !query.needs_keys()
            && selection.is_everything()
            && query.value_bytes_min() <= FIXED_BYTES;
        let columns = if without_keys { Columns::Values } else { Columns::Entries };
        let [object_ns, run_object_ns] = if query.gathers_batches() {
            GATHERED_NS
        } else if query.goes_by_column() {
            BY_COLUMN_NS
        } else {
            let ns = ONE_BY_ONE_NS + query.columns().len() as f64 * FIGURE_NS;
            [ns, ns]
        };
        let widths = query
            .gathers_batches()
            .then(|| Widths::new(query.key_bytes_min(), query.value_bytes_min()))
            .flatten();
        let request = Request::of_addresses(selection, execution);
        Request { columns, widths, object_ns, run_object_ns, ..request }
    }

    /// The way in which an engine reaches what is asked for.
    pub(crate) fn plan(&self, objects: &impl Objects, execution: &Execution<'_>) -> Result<Plan> {
        let shows_one_moment = |executor| objects.shows_one_moment(executor);
        Plan::choose(objects.candidates(self)?, shows_one_moment, execution)
    }

    pub(crate) fn of_disaggregation(
        by: &'a Disaggregator,
        execution: &Execution<'a>,
    ) -> Request<'a> {
        Request::of_addresses(by.selection(), execution)
    }

    /// Of the addresses of objects, which are collected.
    fn of_addresses(selection: &'a Selection, execution: &Execution<'a>) -> Request<'a> {
        let &Execution { threads, at_one_moment, within, .. } = execution;
        let [object_ns, run_object_ns] = COLLECTED_NS;
        Request {
            selection,
            threads,
            at_one_moment,
            within,
            columns: Columns::Addresses,
            widths: None,
            object_ns,
            run_object_ns,
        }
    }
}

/// Bytes of a value in a batch.
const FIXED_BYTES: usize = 8;

// What an object costs, pushed and in a run: `docs/design/executors.md`, "Costs".
const GATHERED_NS: [f64; 2] = [6.0, 0.5];
const BY_COLUMN_NS: [f64; 2] = [20.0, 20.0];
const ONE_BY_ONE_NS: f64 = 20.0;
const FIGURE_NS: f64 = 40.0;
const COLLECTED_NS: [f64; 2] = [15.0, 3.0];

/// Batch number `at` of the keys, `len` in each but the last.
pub(crate) fn batch(keys: &KeyList, at: usize, len: usize) -> impl Iterator<Item = &[u8]> {
    (at * len..((at + 1) * len).min(keys.len())).map(|rank| keys.get(rank))
}

/// Checking whether a visited object is selected, in ns.
pub(crate) fn check_ns(selection: &Selection) -> f64 {
    match selection.as_keys() {
        Some(_) => 20.0,
        None if selection.is_everything() => 0.0,
        None => 2.0,
    }
}

/// The way to an engine's objects.
pub trait Reach: Sync {
    /// The executors that can reach what is selected, and what they are expected to cost.
    ///
    /// # Errors
    /// What the engine says where it cannot be read.
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Candidate>>;

    /// Whether an executor can show all objects as of one moment.
    fn shows_one_moment(&self, executor: Executor) -> bool;

    /// Hands over what is selected, by one of them.
    fn reach<S: Sink>(
        &self,
        executor: Executor,
        request: &Request<'_>,
        pool: &Pool<'_>,
        make: &(impl Fn() -> S + Sync),
    ) -> Result<Filled<S>>;
}
