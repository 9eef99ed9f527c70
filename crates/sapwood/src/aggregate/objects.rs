//! The objects of an engine, and the threads that share the visits to them.
//!
//! An engine says which executors can reach what a selection selects ([`Objects::candidates`]), and
//! runs one of them, in parts: each thread has a [`Work`] that takes objects in, counts what is
//! visited, tells progress and notices that it is to stop.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use sapwood_aggregate::{
    Block, Collector, Compiled, Disaggregator, Fold, KeyList, Live, Places, QueryError, Selection,
    Strided,
};
use sapwood_hashlog::{Columns, Place, Run};

use super::{Cancel, Candidate, Execution, Executor, Progress};
use crate::{Error, HashTable};

/// Takes objects in.
pub(super) trait Gather: Send {
    /// An object that may be selected.
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError>;
    /// An object that is.
    fn push_selected(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError>;
    /// Objects of 8-byte keys and values, by columns.
    fn push_words(&mut self, words: &Words<'_>) -> Result<(), QueryError>;
}

/// Objects of 8-byte keys and values, by columns.
pub(super) struct Words<'a> {
    /// Empty if nothing asks for them; then all are selected.
    keys: &'a [[u8; 8]],
    values: &'a [[u8; 8]],
    /// Empty if they are not known.
    places: &'a [Place],
    are_selected: bool,
}

impl<'a> Words<'a> {
    fn block(&self) -> Result<Block<'a>, QueryError> {
        let column = |items: &'a [[u8; 8]]| Strided::new(items.as_flattened(), 0, 8, 8);
        let keys = if self.keys.is_empty() { Strided::NOTHING } else { column(self.keys)? };
        Block::new(self.values.len(), keys, column(self.values)?, Live::All)
    }
}

impl Gather for Fold<'_> {
    #[inline]
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Fold::push(self, key, value)
    }

    #[inline]
    fn push_selected(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Fold::push_selected(self, key, value)
    }

    fn push_words(&mut self, words: &Words<'_>) -> Result<(), QueryError> {
        match words.are_selected {
            true => self.push_block_selected(&words.block()?),
            false => self.push_block(&words.block()?),
        }
    }
}

impl Gather for Collector<'_> {
    #[inline]
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Collector::push(self, key, value);
        Ok(())
    }

    #[inline]
    fn push_selected(&mut self, key: &[u8], value: &[u8]) -> Result<(), QueryError> {
        Collector::push_selected(self, key, value, None);
        Ok(())
    }

    fn push_words(&mut self, words: &Words<'_>) -> Result<(), QueryError> {
        let mut list = [0; Run::LEN_MAX];
        let list = &mut list[..words.places.len()];
        for (word, place) in list.iter_mut().zip(words.places) {
            *word = place.word();
        }
        let places = match stepped(list) {
            Some(stepped) => stepped,
            None if list.is_empty() => Places::None,
            None => Places::Each(list),
        };
        match words.are_selected {
            true => self.push_block_selected(&words.block()?, places),
            false => self.push_block(&words.block()?, places),
        }
        Ok(())
    }
}

/// Places that are at one distance from each to the next, which those of a page are where all its
/// entries are live.
fn stepped(places: &[u64]) -> Option<Places<'static>> {
    let [first, second, ..] = *places else { return None };
    let step = second.wrapping_sub(first);
    let is_step = |(place, next): (&u64, &u64)| next.wrapping_sub(*place) == step;
    let all = places.iter().zip(&places[1..]).fold(true, |all, pair| all & is_step(pair));
    all.then_some(Places::Stepped { first, step })
}

/// Reads many values at once.
pub(super) trait GetMany {
    fn get_many(&self, keys: &[&[u8]], read: impl FnMut(usize, Option<&[u8]>))
    -> crate::Result<()>;
}

/// What is asked of an engine.
pub(super) struct Asked<'a> {
    pub(super) selection: &'a Selection,
    pub(super) threads: usize,
    pub(super) at_one_moment: bool,
    /// What is read of runs of objects.
    pub(super) columns: Columns,
    /// What a selected object costs beside being reached, one by one and in a run, in ns.
    pub(super) object_ns: f64,
    pub(super) run_object_ns: f64,
}

impl<'a> Asked<'a> {
    pub(super) fn by_query(query: &'a Compiled, execution: &Execution<'_>) -> Asked<'a> {
        let (threads, at_one_moment) = (execution.threads, execution.at_one_moment);
        let selection = query.selection();
        let without_keys = query.goes_by_column()
            && !query.needs_keys()
            && selection.is_everything()
            && query.value_bytes_min() <= FIXED_BYTES;
        let columns = if without_keys { Columns::Values } else { Columns::Entries };
        let [object_ns, run_object_ns] = if query.goes_by_column() {
            BY_COLUMN_NS
        } else {
            let ns = ONE_BY_ONE_NS + query.columns().len() as f64 * FIGURE_NS;
            [ns, ns]
        };
        Asked { selection, threads, at_one_moment, columns, object_ns, run_object_ns }
    }

    pub(super) fn by_disaggregation(by: &'a Disaggregator, execution: &Execution<'_>) -> Asked<'a> {
        let (threads, at_one_moment) = (execution.threads, execution.at_one_moment);
        let [object_ns, run_object_ns] = COLLECTED_NS;
        let (selection, columns) = (by.selection(), Columns::Places);
        Asked { selection, threads, at_one_moment, columns, object_ns, run_object_ns }
    }
}

/// Bytes of a value in a run.
const FIXED_BYTES: usize = 8;

// What an object costs, pushed and in a run: `docs/design/executors.md`, "Costs".
const BY_COLUMN_NS: [f64; 2] = [6.0, 0.5];
const ONE_BY_ONE_NS: f64 = 20.0;
const FIGURE_NS: f64 = 40.0;
const COLLECTED_NS: [f64; 2] = [15.0, 3.0];

/// Batch number `at` of the keys, `len` in each but the last.
pub(super) fn batch(keys: &KeyList, at: usize, len: usize) -> impl Iterator<Item = &[u8]> {
    (at * len..((at + 1) * len).min(keys.len())).map(|rank| keys.get(rank))
}

/// Checking whether a visited object is selected, in ns.
pub(super) fn check_ns(selection: &Selection) -> f64 {
    match selection.as_keys() {
        Some(_) => 20.0,
        None if selection.is_everything() => 0.0,
        None => 2.0,
    }
}

/// What an engine can do for queries.
pub(super) trait Objects: Sync {
    /// The executors that can reach what is selected, and what they are expected to cost.
    fn candidates(&self, asked: &Asked<'_>) -> Vec<Candidate>;

    /// Hands over what is selected, by one of them.
    fn reach<G: Gather>(
        &self,
        executor: Executor,
        asked: &Asked<'_>,
        crew: &Crew<'_>,
        make: &(impl Fn() -> G + Sync),
    ) -> Result<Gathered<G>, Ended>;
}

/// What the threads of a run gathered.
pub(super) struct Gathered<G> {
    /// Of each thread.
    pub(super) parts: Vec<G>,
    pub(super) visited: u64,
}

/// Why a run came to no end.
pub(super) enum Ended {
    Cancelled,
    Query(QueryError),
    Engine(Error),
}

impl Ended {
    pub(super) fn into_error(self, table: &Arc<str>, crew: &Crew<'_>) -> Error {
        match self {
            Ended::Cancelled => Error::Cancelled { table: Arc::clone(table), visited: crew.done() },
            Ended::Query(cause) => Error::Query(cause),
            Ended::Engine(error) => error,
        }
    }
}

/// Why a thread leaves a walk.
pub(super) enum Stop {
    Cancelled,
    /// Another thread has ended the run.
    Over,
    /// Boxed, since what says whether to go on is moved for each object.
    Query(Box<QueryError>),
}

/// The threads of a run, and what they share.
pub(super) struct Crew<'a> {
    threads: usize,
    watch: Watch<'a>,
}

/// What all threads of a run look at.
struct Watch<'a> {
    cancel: Option<&'a Cancel>,
    progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    total: u64,
    done: AtomicU64,
    is_over: AtomicBool,
}

/// What a thread does.
pub(super) struct Work<'a, G> {
    pub(super) gather: G,
    /// Visits that the watch knows of.
    told: u64,
    visited: u64,
    /// Objects of 8-byte keys and values that go on by columns.
    buffer: Option<Box<Buffer>>,
    watch: &'a Watch<'a>,
}

struct Buffer {
    len: usize,
    keys: [[u8; 8]; Run::LEN_MAX],
    values: [[u8; 8]; Run::LEN_MAX],
    /// If they are asked for.
    places: [Place; Run::LEN_MAX],
}

/// Visits between two looks at the watch: some ten microseconds.
const LOOK_EVERY: u64 = 4_096;

impl Buffer {
    fn new() -> Box<Buffer> {
        let columns = [[0; 8]; Run::LEN_MAX];
        let places = [Place::default(); Run::LEN_MAX];
        Box::new(Buffer { len: 0, keys: columns, values: columns, places })
    }
}

impl<'a> Crew<'a> {
    /// `total`: how many visits are expected.
    pub(super) fn new(execution: &Execution<'a>, total: u64) -> Crew<'a> {
        let watch = Watch {
            cancel: execution.cancel,
            progress: execution.progress,
            total,
            done: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        };
        Crew { threads: execution.threads, watch }
    }

    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Visits that the threads have told of.
    pub(super) fn done(&self) -> u64 {
        self.watch.done.load(Ordering::Relaxed)
    }

    /// Runs `each` for every one of `parts` parts; a thread that is done with one takes the next.
    pub(super) fn in_parts<G: Gather>(
        &self,
        parts: usize,
        make: &(impl Fn() -> G + Sync),
        each: impl Fn(usize, &mut Work<'_, G>) -> crate::Result<ControlFlow<Stop>> + Sync,
    ) -> Result<Gathered<G>, Ended> {
        match self.all_parts(parts, make, each) {
            (gathered, None) => {
                let visited = gathered.iter().map(|(_, visited)| visited).sum();
                let parts = gathered.into_iter().map(|(gather, _)| gather).collect();
                Ok(Gathered { parts, visited })
            }
            (_, Some(ended)) => Err(ended),
        }
    }

    /// As `in_parts`; what was gathered counts, with how much was visited for it, however it ended.
    pub(super) fn all_parts<G: Send>(
        &self,
        parts: usize,
        make: &(impl Fn() -> G + Sync),
        each: impl Fn(usize, &mut Work<'_, G>) -> crate::Result<ControlFlow<Stop>> + Sync,
    ) -> (Vec<(G, u64)>, Option<Ended>) {
        let next = AtomicUsize::new(0);
        let labour = || {
            let mut work =
                Work { gather: make(), told: 0, visited: 0, buffer: None, watch: &self.watch };
            let end = work.take_parts(&next, parts, &each);
            if end.is_err() {
                self.watch.is_over.store(true, Ordering::Relaxed);
            }
            (work.gather, work.visited, end)
        };
        let ends = thread::scope(|scope| {
            let others = self.threads.min(parts).saturating_sub(1);
            // Where the system has no more threads, fewer do the work.
            let spawn = |_| thread::Builder::new().spawn_scoped(scope, labour).ok();
            let others: Vec<_> = (0..others).filter_map(spawn).collect();
            let own = labour();
            let join = |other: thread::ScopedJoinHandle<'_, _>| {
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            std::iter::once(own).chain(others.into_iter().map(join)).collect::<Vec<_>>()
        });
        let mut ended = None;
        let mut gathered = Vec::with_capacity(ends.len());
        for (gather, visited, end) in ends {
            gathered.push((gather, visited));
            // An error is worth more than a stop.
            if let Err(Some(why)) = end
                && matches!(ended, None | Some(Ended::Cancelled))
            {
                ended = Some(why);
            }
        }
        (gathered, ended)
    }
}

impl<G> Work<'_, G> {
    /// `Err(None)`: another thread has ended the run.
    fn take_parts(
        &mut self,
        next: &AtomicUsize,
        parts: usize,
        each: &(impl Fn(usize, &mut Self) -> crate::Result<ControlFlow<Stop>> + Sync),
    ) -> Result<(), Option<Ended>> {
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                let _only_told = self.look_around();
                return Ok(());
            }
            let flow = match self.look_around() {
                ControlFlow::Continue(()) => each(part, self),
                stop => Ok(stop),
            };
            match flow {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(Stop::Over)) => return Err(None),
                Ok(ControlFlow::Break(Stop::Cancelled)) => return Err(Some(Ended::Cancelled)),
                Ok(ControlFlow::Break(Stop::Query(error))) => {
                    return Err(Some(Ended::Query(*error)));
                }
                Err(error) => return Err(Some(Ended::Engine(error))),
            }
        }
    }

    #[inline]
    pub(super) fn count(&mut self, visits: u64) -> ControlFlow<Stop> {
        self.visited += visits;
        if self.visited - self.told < LOOK_EVERY {
            return ControlFlow::Continue(());
        }
        self.look_around()
    }

    /// Tells what was visited; breaks if the run is to end.
    fn look_around(&mut self) -> ControlFlow<Stop> {
        let watch = self.watch;
        let visits = self.visited - self.told;
        self.told = self.visited;
        let before = watch.done.fetch_add(visits, Ordering::Relaxed);
        let done = before + visits;
        let step = (watch.total / 256).max(1);
        if let Some(tell) = watch.progress
            && (before / step < done / step || before == 0 || visits > 0 && done >= watch.total)
        {
            tell(Progress { done, total: watch.total.max(done) });
        }
        if watch.cancel.is_some_and(Cancel::is_cancelled) {
            return ControlFlow::Break(Stop::Cancelled);
        }
        if watch.is_over.load(Ordering::Relaxed) {
            return ControlFlow::Break(Stop::Over);
        }
        ControlFlow::Continue(())
    }
}

impl<G: Gather> Work<'_, G> {
    /// Takes an object that may be selected.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<Stop> {
        match self.gather.push(key, value) {
            Ok(()) => self.count(1),
            Err(error) => ControlFlow::Break(Stop::Query(Box::new(error))),
        }
    }

    /// Takes an object that is selected.
    #[inline]
    pub(super) fn push_selected(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<Stop> {
        match self.gather.push_selected(key, value) {
            Ok(()) => self.count(1),
            Err(error) => ControlFlow::Break(Stop::Query(Box::new(error))),
        }
    }

    /// Takes a run of objects; without keys, all are selected.
    pub(super) fn push_run(&mut self, run: &Run) -> ControlFlow<Stop> {
        let (keys, values, places) = (run.keys(), run.values(), run.places());
        self.push_words(&Words { keys, values, places, are_selected: keys.is_empty() })
    }

    /// Takes an object of a table with 8-byte keys and values, to go on with others. End with
    /// [`flush`](Self::flush).
    #[inline]
    pub(super) fn push_word(
        &mut self,
        key: &[u8],
        value: &[u8],
        is_selected: bool,
    ) -> ControlFlow<Stop> {
        let (Ok(key), Ok(value)) = (key.try_into(), value.try_into()) else {
            return if is_selected {
                self.push_selected(key, value)
            } else {
                self.push(key, value)
            };
        };
        let buffer = self.buffer.get_or_insert_with(Buffer::new);
        (buffer.keys[buffer.len], buffer.values[buffer.len]) = (key, value);
        buffer.len += 1;
        if buffer.len < Run::LEN_MAX {
            return ControlFlow::Continue(());
        }
        self.flush(is_selected)
    }

    /// Takes in what `push_word` has kept.
    pub(super) fn flush(&mut self, are_selected: bool) -> ControlFlow<Stop> {
        let Some(mut buffer) = self.buffer.take_if(|buffer| buffer.len > 0) else {
            return ControlFlow::Continue(());
        };
        let (keys, values) = (&buffer.keys[..buffer.len], &buffer.values[..buffer.len]);
        let flow = self.push_words(&Words { keys, values, places: &[], are_selected });
        buffer.len = 0;
        self.buffer = Some(buffer);
        flow
    }

    fn push_words(&mut self, words: &Words<'_>) -> ControlFlow<Stop> {
        match self.gather.push_words(words) {
            Ok(()) => self.count(words.values.len() as u64),
            Err(error) => ControlFlow::Break(Stop::Query(Box::new(error))),
        }
    }

    /// Looks up to 1,024 keys up in a table of 8-byte keys and values, and takes their objects.
    pub(super) fn look_up_words(
        &mut self,
        table: &HashTable,
        keys: &[[u8; 8]],
        with_places: bool,
    ) -> crate::Result<ControlFlow<Stop>> {
        let mut buffer = self.buffer.take().unwrap_or_else(Buffer::new);
        let Buffer { keys: met, values, places, .. } = &mut *buffer;
        let mut len = 0;
        table.get_many_placed(keys, |at, found| {
            if let Some((value, place)) = found
                && let Ok(value) = value.try_into()
            {
                (met[len], values[len], places[len]) = (keys[at], value, place);
                len += 1;
            }
        })?;
        let places = &places[..if with_places { len } else { 0 }];
        let words = Words { keys: &met[..len], values: &values[..len], places, are_selected: true };
        let flow = if len > 0 { self.push_words(&words) } else { ControlFlow::Continue(()) };
        self.buffer = Some(buffer);
        Ok(if flow.is_continue() { self.count((keys.len() - len) as u64) } else { flow })
    }

    /// Looks keys up, and takes their objects. `take` takes one.
    pub(super) fn look_up<'k>(
        &mut self,
        table: &impl GetMany,
        keys: impl Iterator<Item = &'k [u8]>,
        mut take: impl FnMut(&mut Self, &[u8], &[u8]) -> ControlFlow<Stop>,
    ) -> crate::Result<ControlFlow<Stop>> {
        let keys: Vec<&[u8]> = keys.collect();
        let mut flow = ControlFlow::Continue(());
        let mut absent = 0;
        table.get_many(&keys, |at, value| match value {
            Some(value) if flow.is_continue() => flow = take(self, keys[at], value),
            Some(_) => {}
            None => absent += 1,
        })?;
        Ok(if flow.is_continue() { self.count(absent) } else { flow })
    }
}
