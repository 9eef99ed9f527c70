//! Plans become answers: batches of rows through filters, groups and sorts, by several threads.

mod grouped;
mod rows;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::evaluate::{evaluate, rows_where};
use crate::plan::Plan;
use crate::source::Source;
use sapwood_schema::{Batch, Vector};

use grouped::GroupedRows;
use rows::CollectedRows;

/// How statements are executed.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options<'a> {
    /// Threads that read rows: by default as many as the machine has.
    pub threads: usize,
    /// Bytes of memory that groups and rows of an answer may take, and changes of rows until all are
    /// made: by default 4 GiB.
    pub memory_bytes_max: usize,
    /// Ends a statement once it answers true.
    pub cancel: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Options<'_> {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|is_cancelled| is_cancelled())
    }
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("threads", &self.threads)
            .field("memory_bytes_max", &self.memory_bytes_max)
            .finish_non_exhaustive()
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Options { threads, memory_bytes_max: 4 << 30, cancel: None }
    }
}

/// Rows below which one thread is enough.
const ROWS_A_THREAD: u64 = 20_000;

/// What was counted while a plan was executed.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) rows: AtomicU64,
    pub(crate) matched: AtomicU64,
    pub(crate) groups: AtomicU64,
    pub(crate) threads: AtomicU64,
    /// Nanoseconds of all threads together: all, those of filters, of groups and rows of the
    /// answer.
    pub(crate) work_nanos: AtomicU64,
    pub(crate) filter_nanos: AtomicU64,
    pub(crate) fold_nanos: AtomicU64,
    /// Until rows were in their order.
    pub(crate) finish_nanos: AtomicU64,
}

/// Runs something, and adds the time that it takes.
fn timed<R>(nanos: &AtomicU64, run: impl FnOnce() -> R) -> R {
    let began = Instant::now();
    let done = run();
    nanos.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
    done
}

/// What threads share while they execute a plan.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) options: &'a Options<'a>,
    pub(crate) counts: &'a Counts,
    /// Bytes that all threads have taken.
    memory: AtomicU64,
    /// Set once a thread has failed, or has all the rows that are wanted.
    is_done: AtomicBool,
}

impl Shared<'_> {
    /// Notes that a thread takes more memory, or less, than before.
    pub(crate) fn take_memory(&self, before: &mut usize, now: usize) -> Result<()> {
        let change = now as i64 - *before as i64;
        *before = now;
        let all =
            self.memory.fetch_add(change as u64, Ordering::Relaxed).wrapping_add(change as u64);
        if all > self.options.memory_bytes_max as u64 {
            return Err(Error::new(
                ErrorKind::Memory,
                format!(
                    "the answer needs more than {} MiB of memory: filter or group more, or add a limit",
                    self.options.memory_bytes_max >> 20
                ),
            ));
        }
        Ok(())
    }

    fn expect_wanted(&self) -> Result<()> {
        match self.options.is_cancelled() {
            true => Err(Error::new(ErrorKind::Cancelled, "the statement was cancelled")),
            false => Ok(()),
        }
    }
}

/// What a thread makes of batches.
enum Worker {
    Grouped(Box<GroupedRows>),
    Rows(Box<CollectedRows>),
}

impl Worker {
    fn new(plan: &Plan) -> Worker {
        match &plan.grouping {
            Some(grouping) => Worker::Grouped(Box::new(GroupedRows::new(grouping))),
            None => Worker::Rows(Box::new(CollectedRows::new(plan))),
        }
    }

    /// Takes a batch: breaks if no more is wanted.
    fn push(&mut self, number: u64, batch: &Batch, shared: &Shared<'_>) -> Result<ControlFlow<()>> {
        shared.expect_wanted()?;
        let Counts { rows, matched, filter_nanos, fold_nanos, .. } = shared.counts;
        rows.fetch_add(batch.len as u64, Ordering::Relaxed);
        let kept = match &shared.plan.filter {
            None => None,
            Some(filter) => Some(timed(filter_nanos, || rows_where(filter, batch))?),
        };
        let count = kept.as_ref().map_or(batch.len, Vec::len);
        matched.fetch_add(count as u64, Ordering::Relaxed);
        if count == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let narrowed;
        let batch = match kept {
            Some(kept) if count < batch.len => {
                narrowed = take(batch, &kept);
                &narrowed
            }
            _ => batch,
        };
        timed(fold_nanos, || match self {
            Worker::Grouped(groups) => {
                groups.push(batch, shared)?;
                Ok(ControlFlow::Continue(()))
            }
            Worker::Rows(rows) => rows.push(number, batch, shared),
        })
    }
}

/// Some rows of a batch.
pub(crate) fn take(batch: &Batch, rows: &[u32]) -> Batch {
    Batch {
        len: rows.len(),
        columns: batch.columns.iter().map(|column| column.take(rows)).collect(),
        ids: batch.ids.as_ref().map(|ids| rows.iter().map(|&row| ids.get(row as usize)).collect()),
    }
}

/// The rows of the answer to a plan: a vector for each output.
pub(crate) fn execute(
    plan: &Plan,
    source: &dyn Source,
    options: &Options<'_>,
    counts: &Counts,
) -> Result<(usize, Vec<Vector>)> {
    let shared = Shared {
        plan,
        options,
        counts,
        memory: AtomicU64::new(0),
        is_done: AtomicBool::new(false),
    };
    let mut workers = run(source, &shared)?;
    let mut first = workers.remove(0);
    for worker in workers {
        match (&mut first, worker) {
            (Worker::Grouped(first), Worker::Grouped(other)) => first.merge(&other),
            (Worker::Rows(first), Worker::Rows(other)) => first.merge(*other),
            _ => unreachable!("all are of one plan"),
        }
    }
    let rows = match first {
        Worker::Rows(rows) => *rows,
        Worker::Grouped(groups) => {
            let batch = groups.finish(plan)?;
            counts.groups.store(batch.len as u64, Ordering::Relaxed);
            let mut rows = CollectedRows::new(plan);
            let batch = match &plan.having {
                None => batch,
                Some(having) => take(&batch, &rows_where(having, &batch)?),
            };
            // One batch may be larger than others: nothing here depends on it.
            let _ = rows.push(0, &batch, &shared)?;
            rows
        }
    };
    Ok(timed(&counts.finish_nanos, || rows.finish(plan)))
}

/// Shows the rows of the answer batch by batch, each column an output, as they are found: for plans that neither group nor
/// sort. One thread shows them in the order of the source, several in any; the number of a batch says where it stands.
pub(crate) fn stream(
    plan: &Plan,
    source: &dyn Source,
    options: &Options<'_>,
    threads: usize,
    take_batch: &(dyn Fn(u64, Batch) -> Result<()> + Sync),
) -> Result<()> {
    debug_assert!(plan.is_stream(), "rows are answered as they come");
    let scan = source.scan(&plan.request).map_err(Error::source)?;
    let threads = threads.min(scan.threads_max());
    let is_done = AtomicBool::new(false);
    let work = || -> Option<(u64, Error)> {
        let mut failed = None;
        let worked = scan.work(&mut |number, batch| {
            let shown = || -> Result<()> {
                if options.is_cancelled() {
                    return Err(Error::new(ErrorKind::Cancelled, "the statement was cancelled"));
                }
                let narrowed;
                let batch = match &plan.filter {
                    None => batch,
                    Some(filter) => {
                        narrowed = take(batch, &rows_where(filter, batch)?);
                        &narrowed
                    }
                };
                let columns = plan
                    .outputs
                    .iter()
                    .map(|output| evaluate(&output.node, batch).map(std::borrow::Cow::into_owned));
                let columns = columns.collect::<Result<Vec<_>>>()?;
                take_batch(number, Batch { len: batch.len, columns, ids: batch.ids.clone() })
            };
            if is_done.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            match shown() {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some((number, error));
                    ControlFlow::Break(())
                }
            }
        });
        if let (Err(what), None) = (worked, &failed) {
            failed = Some((u64::MAX, Error::source(what)));
        }
        if failed.is_some() {
            is_done.store(true, Ordering::Relaxed);
        }
        failed
    };
    let failed: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let others = others.into_iter().map(|other| match other.join() {
            Ok(failed) => failed,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(own).chain(others).collect()
    });
    match failed.into_iter().flatten().min_by_key(|(number, _)| *number) {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

/// How many threads are worth their start.
pub(crate) fn threads_for(source: &dyn Source, options: &Options<'_>) -> usize {
    match source.rows_estimate() {
        Some(rows) => (rows / ROWS_A_THREAD + 1).min(options.threads as u64) as usize,
        None => options.threads,
    }
}

/// All batches go to workers, one for each thread.
fn run(source: &dyn Source, shared: &Shared<'_>) -> Result<Vec<Worker>> {
    let plan = shared.plan;
    // A limit alone is met by the first rows, which one thread finds in their order.
    let is_first_rows = plan.limit.is_some() && plan.order.is_empty() && plan.grouping.is_none();
    let threads = if is_first_rows { 1 } else { threads_for(source, shared.options) };
    if plan.limit == Some(0) && plan.grouping.is_none() {
        shared.counts.threads.store(1, Ordering::Relaxed);
        return Ok(vec![Worker::new(plan)]);
    }
    let scan = source.scan(&plan.request).map_err(Error::source)?;
    let threads = threads.min(scan.threads_max());
    shared.counts.threads.store(threads as u64, Ordering::Relaxed);
    let work = || -> (Worker, Option<(u64, Error)>) {
        let mut worker = Worker::new(plan);
        let mut failed = None;
        let worked = timed(&shared.counts.work_nanos, || {
            scan.work(&mut |number, batch| {
                if shared.is_done.load(Ordering::Relaxed) {
                    return ControlFlow::Break(());
                }
                match worker.push(number, batch, shared) {
                    Ok(flow) => flow,
                    Err(error) => {
                        failed = Some((number, error));
                        ControlFlow::Break(())
                    }
                }
            })
        });
        if let (Err(what), None) = (worked, &failed) {
            failed = Some((u64::MAX, Error::source(what)));
        }
        if failed.is_some() {
            shared.is_done.store(true, Ordering::Relaxed);
        }
        (worker, failed)
    };
    let done: Vec<_> = match threads {
        0 | 1 => vec![work()],
        threads => std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = others.into_iter().map(|other| match other.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(own).chain(others).collect()
        }),
    };
    let (workers, failed): (Vec<_>, Vec<_>) = done.into_iter().unzip();
    match failed.into_iter().flatten().min_by_key(|(number, _)| *number) {
        Some((_, error)) => Err(error),
        None => Ok(workers),
    }
}
