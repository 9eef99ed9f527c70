//! The threads of a run.
//!
//! A run has parts. Each thread of the [`Pool`] has a [`Worker`] that takes parts, one after the
//! other, hands their objects to its sink, counts what it visits, reports progress and notices that
//! the run is to end.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use sapwood_aggregate::QueryError;
use sapwood_chunkmap::Piece;
use sapwood_engine::{ColumnBatch, ColumnBuffer, Columns};
use sapwood_hashlog::HashLog;

use crate::sink::Sink;
use crate::{Cancel, Error, Execution, Progress, Result};

/// Reads many values at once.
pub(crate) trait GetMany {
    fn get_many(&self, keys: &[&[u8]], read: impl FnMut(usize, Option<&[u8]>)) -> Result<()>;
}

/// Whether objects are known to be selected.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Chosen {
    /// All of them are.
    All,
    /// The sink looks at each key.
    Perhaps,
}

/// The sinks of a run, filled.
pub struct Filled<S> {
    /// Of each thread.
    pub(crate) sinks: Vec<S>,
    pub(crate) visited: u64,
}

/// Why a run came to no end.
enum Ended {
    Cancelled,
    Failed(Error),
}

impl Ended {
    fn into_error(self, pool: &Pool<'_>) -> Error {
        match self {
            Ended::Cancelled => Error::Cancelled { visited: pool.done() },
            Ended::Failed(error) => error,
        }
    }
}

/// Why a thread leaves a walk.
pub(crate) enum Stop {
    Cancelled,
    /// Another thread has ended the run.
    Over,
    /// Boxed, since what says whether to go on is moved for each object.
    Query(Box<QueryError>),
}

/// The threads of a run, and what they share.
pub struct Pool<'a> {
    threads: usize,
    status: Status<'a>,
}

/// The state that all threads of a run share.
struct Status<'a> {
    cancel: Option<&'a Cancel>,
    progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    total: u64,
    done: AtomicU64,
    is_over: AtomicBool,
}

/// A thread of a run, and its sink.
pub(crate) struct Worker<'a, S> {
    pub(crate) sink: S,
    /// Visits that are reported.
    reported: u64,
    visited: u64,
    /// Objects of 8-byte keys and values that go on by columns.
    buffer: Option<Box<ColumnBuffer>>,
    status: &'a Status<'a>,
}

/// Visits between two looks at the status: some ten microseconds.
const LOOK_EVERY: u64 = 4_096;

impl<'a> Pool<'a> {
    /// `total`: how many visits are expected.
    pub(crate) fn new(execution: &Execution<'a>, total: u64) -> Pool<'a> {
        let status = Status {
            cancel: execution.cancel,
            progress: execution.progress,
            total,
            done: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        };
        Pool { threads: execution.threads, status }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Visits that the threads have reported.
    fn done(&self) -> u64 {
        self.status.done.load(Ordering::Relaxed)
    }

    /// Runs `each` for every one of `parts` parts; a thread that is done with one takes the next.
    pub(crate) fn in_parts<S: Sink>(
        &self,
        parts: usize,
        make: &(impl Fn() -> S + Sync),
        each: impl Fn(usize, &mut Worker<'_, S>) -> Result<ControlFlow<Stop>> + Sync,
    ) -> Result<Filled<S>> {
        match self.all_parts(parts, make, each) {
            (filled, None) => {
                let visited = filled.iter().map(|(_, visited)| visited).sum();
                let sinks = filled.into_iter().map(|(sink, _)| sink).collect();
                Ok(Filled { sinks, visited })
            }
            (_, Some(ended)) => Err(ended),
        }
    }

    /// As `in_parts`; what the sinks hold counts, with how much was visited for it, however it ended.
    pub(crate) fn all_parts<S: Send>(
        &self,
        parts: usize,
        make: &(impl Fn() -> S + Sync),
        each: impl Fn(usize, &mut Worker<'_, S>) -> Result<ControlFlow<Stop>> + Sync,
    ) -> (Vec<(S, u64)>, Option<Error>) {
        let next = AtomicUsize::new(0);
        let task = || {
            let mut worker = Worker {
                sink: make(),
                reported: 0,
                visited: 0,
                buffer: None,
                status: &self.status,
            };
            let end = worker.take_parts(&next, parts, &each);
            if end.is_err() {
                self.status.is_over.store(true, Ordering::Relaxed);
            }
            (worker.sink, worker.visited, end)
        };
        let ends = thread::scope(|scope| {
            let others = self.threads.min(parts).saturating_sub(1);
            // Where the system has no more threads, fewer do the worker.
            let spawn = |_| thread::Builder::new().spawn_scoped(scope, task).ok();
            let others: Vec<_> = (0..others).filter_map(spawn).collect();
            let own = task();
            let join = |other: thread::ScopedJoinHandle<'_, _>| {
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            std::iter::once(own).chain(others.into_iter().map(join)).collect::<Vec<_>>()
        });
        let mut ended = None;
        let mut filled = Vec::with_capacity(ends.len());
        for (sink, visited, end) in ends {
            filled.push((sink, visited));
            // An error is worth more than a stop.
            if let Err(Some(why)) = end
                && matches!(ended, None | Some(Ended::Cancelled))
            {
                ended = Some(why);
            }
        }
        (filled, ended.map(|ended| ended.into_error(self)))
    }
}

impl<S> Worker<'_, S> {
    /// `Err(None)`: another thread has ended the run.
    fn take_parts(
        &mut self,
        next: &AtomicUsize,
        parts: usize,
        each: &(impl Fn(usize, &mut Self) -> Result<ControlFlow<Stop>> + Sync),
    ) -> Result<(), Option<Ended>> {
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                let _only_reported = self.look_around();
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
                    return Err(Some(Ended::Failed(Error::Query(*error))));
                }
                Err(error) => return Err(Some(Ended::Failed(error))),
            }
        }
    }

    /// Objects and keys so far.
    pub(crate) fn visited(&self) -> u64 {
        self.visited
    }

    #[inline]
    pub(crate) fn count(&mut self, visits: u64) -> ControlFlow<Stop> {
        self.visited += visits;
        if self.visited - self.reported < LOOK_EVERY {
            return ControlFlow::Continue(());
        }
        self.look_around()
    }

    /// Reports what was visited; breaks if the run is to end.
    fn look_around(&mut self) -> ControlFlow<Stop> {
        let status = self.status;
        let visits = self.visited - self.reported;
        self.reported = self.visited;
        let before = status.done.fetch_add(visits, Ordering::Relaxed);
        let done = before + visits;
        let step = (status.total / 256).max(1);
        if let Some(tell) = status.progress
            && (before / step < done / step || before == 0 || visits > 0 && done >= status.total)
        {
            tell(Progress { done, total: status.total.max(done) });
        }
        if status.cancel.is_some_and(Cancel::is_cancelled) {
            return ControlFlow::Break(Stop::Cancelled);
        }
        if status.is_over.load(Ordering::Relaxed) {
            return ControlFlow::Break(Stop::Over);
        }
        ControlFlow::Continue(())
    }
}

impl<S: Sink> Worker<'_, S> {
    /// Takes an object that may be selected.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<Stop> {
        match self.sink.push(key, value) {
            Ok(()) => self.count(1),
            Err(error) => ControlFlow::Break(Stop::Query(Box::new(error))),
        }
    }

    /// Takes an object that is selected.
    #[inline]
    pub(crate) fn push_selected(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<Stop> {
        match self.sink.push_selected(key, value) {
            Ok(()) => self.count(1),
            Err(error) => ControlFlow::Break(Stop::Query(Box::new(error))),
        }
    }

    /// Takes objects that are selected, as an ordered map shows them.
    #[inline]
    pub(crate) fn push_piece(&mut self, piece: Piece<'_>) -> ControlFlow<Stop> {
        match piece {
            Piece::Batch(batch) => self.push_columns(batch, Chosen::All),
            Piece::Entry(key, value) => self.push_selected(key, value),
        }
    }

    /// Takes a batch of objects; without keys, all are selected.
    pub(crate) fn push_batch(&mut self, batch: &ColumnBatch<'_>) -> ControlFlow<Stop> {
        let has_keys = batch.keys().width() > 0;
        self.push_columns(batch, if has_keys { Chosen::Perhaps } else { Chosen::All })
    }

    /// Takes an object of a table with 8-byte keys and values, to go on with others. End with
    /// [`flush`](Self::flush).
    #[inline]
    pub(crate) fn push_word(
        &mut self,
        key: &[u8],
        value: &[u8],
        chosen: Chosen,
    ) -> ControlFlow<Stop> {
        let (Ok(key), Ok(value)) = (key.try_into(), value.try_into()) else {
            return match chosen {
                Chosen::All => self.push_selected(key, value),
                Chosen::Perhaps => self.push(key, value),
            };
        };
        let buffer = self.buffer.get_or_insert_with(ColumnBuffer::boxed);
        (buffer.keys[buffer.len], buffer.values[buffer.len]) = (key, value);
        buffer.len += 1;
        if !buffer.is_full() {
            return ControlFlow::Continue(());
        }
        self.flush(chosen)
    }

    /// Takes in what `push_word` has kept.
    pub(crate) fn flush(&mut self, chosen: Chosen) -> ControlFlow<Stop> {
        let Some(mut buffer) = self.buffer.take_if(|buffer| buffer.len > 0) else {
            return ControlFlow::Continue(());
        };
        let flow = self.push_columns(&buffer.batch(Columns::Entries), chosen);
        buffer.len = 0;
        self.buffer = Some(buffer);
        flow
    }

    /// Takes a batch of objects.
    pub(crate) fn push_columns(
        &mut self,
        batch: &ColumnBatch<'_>,
        chosen: Chosen,
    ) -> ControlFlow<Stop> {
        let pushed = match chosen {
            Chosen::All => self.sink.push_batch_selected(batch),
            Chosen::Perhaps => self.sink.push_batch(batch),
        };
        match pushed {
            Ok(()) => self.count(batch.len() as u64),
            Err(error) => ControlFlow::Break(Stop::Query(Box::new(error))),
        }
    }

    /// Looks up to 1,024 keys up in a table of 8-byte keys and values, and takes their objects.
    pub(crate) fn look_up_words(
        &mut self,
        log: &HashLog,
        keys: &[[u8; 8]],
        columns: Columns,
    ) -> Result<ControlFlow<Stop>> {
        let mut buffer = self.buffer.take().unwrap_or_else(ColumnBuffer::boxed);
        let ColumnBuffer { keys: met, values, addresses, .. } = &mut *buffer;
        let mut len = 0;
        log.get_many_with_addresses(keys, |at, found| {
            if let Some((value, address)) = found
                && let Ok(value) = value.try_into()
            {
                (met[len], values[len], addresses[len]) = (keys[at], value, address);
                len += 1;
            }
        })?;
        buffer.len = len;
        let flow = match len {
            0 => ControlFlow::Continue(()),
            _ => self.push_columns(&buffer.batch(columns), Chosen::All),
        };
        buffer.len = 0;
        self.buffer = Some(buffer);
        Ok(if flow.is_continue() { self.count((keys.len() - len) as u64) } else { flow })
    }

    /// Looks keys up, and takes their objects. `take` takes one.
    pub(crate) fn look_up<'k>(
        &mut self,
        engine: &impl GetMany,
        keys: impl Iterator<Item = &'k [u8]>,
        mut take: impl FnMut(&mut Self, &[u8], &[u8]) -> ControlFlow<Stop>,
    ) -> Result<ControlFlow<Stop>> {
        let keys: Vec<&[u8]> = keys.collect();
        let mut flow = ControlFlow::Continue(());
        let mut absent = 0;
        engine.get_many(&keys, |at, value| match value {
            Some(value) if flow.is_continue() => flow = take(self, keys[at], value),
            Some(_) => {}
            None => absent += 1,
        })?;
        Ok(if flow.is_continue() { self.count(absent) } else { flow })
    }
}
