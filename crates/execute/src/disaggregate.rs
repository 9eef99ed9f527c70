//! Disaggregation: a total, spread over the objects of an engine.
//!
//! First the objects are collected, by an executor as for a query, and each one's part is computed;
//! nothing is changed so far. Then the objects are changed by their keys, or where a hold keeps their
//! records, in batches that the threads share, each object in one step for every reader.

use std::time::Instant;

use sapwood_aggregate::{
    Collector, Disaggregated, DisaggregationProgress, Disaggregator, Pending, Shares,
};

use crate::change::Found;
use crate::held;
use crate::objects::Request;
use crate::pool::Pool;
use crate::{Error, Execution, Executor, Measured, Objects, Plan, Result};

/// The run of a disaggregation: what was done, what is left, and why.
#[derive(Debug, Clone)]
pub struct DisaggregationRun {
    /// What was done, and what is left.
    pub report: Disaggregated,
    /// What is left, if anything: the same objects get it from [`resume`], now or later, in this
    /// process or another ([`Pending::encode`]).
    pub pending: Option<Pending>,
    /// Why something is left: [`Error::Cancelled`], or what an engine refused.
    pub stopped: Option<Error>,
    /// How the objects were reached, and what was measured of that; `None` when resumed.
    pub plan: Option<Plan>,
}

/// Spreads a total over a field of the objects: collects them, then gives each its part. If it is
/// stopped while objects change, the run holds what is left.
///
/// # Errors
/// Nothing was changed: [`Error::Query`] if no object is selected, or a part does not fit into its
/// field; [`Error::Cancelled`], [`Error::Executor`]; what the engine says of an object that it
/// cannot read.
///
/// ```
/// use sapwood_aggregate::Disaggregation;
/// use sapwood_chunkmap::ChunkMap;
/// use sapwood_execute::{Execution, disaggregate};
///
/// let map = ChunkMap::new();
/// map.put(b"acorn", &[3])?;
/// map.put(b"twig", &[4])?;
/// let by = Disaggregation::new("n:u8".parse()?, "n", 10).adding().compile()?;
/// let run = disaggregate(&map, &by, &Execution::new())?;
/// assert_eq!((run.report.changed, run.report.given), (2, 10));
/// assert_eq!(map.get(b"acorn")?, Some(vec![8]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn disaggregate(
    objects: &impl Objects,
    by: &Disaggregator,
    execution: &Execution<'_>,
) -> Result<DisaggregationRun> {
    let request = Request::of_disaggregation(by, execution);
    let mut plan = request.plan(objects, execution)?;
    let begin = Instant::now();
    let pool = Pool::new(execution, plan.expected().visits);
    // A moment that is fixed keeps records from being changed where they are.
    let is_walked = plan.executor == Executor::Log && !execution.at_one_moment;
    // Other parts need keys and weights of all.
    let hold = match is_walked && by.changes_in_place() && by.has_equal_parts() {
        true => objects.hold()?,
        false => None,
    };
    let filled = match &hold {
        Some(hold) => {
            let guess = held::guess(hold, by);
            held::scan(hold, &request, &pool, &|| by.collector_of_held(guess))?
        }
        None => objects.reach(plan.executor, &request, &pool, &|| by.collector())?,
    };
    let mut collected: Vec<_> = filled.sinks.into_iter().map(Collector::into_collected).collect();
    let selected = collected.iter().map(|part| part.tally().selected).sum();
    if let Some(keys) = by.selection().as_keys() {
        let mut absent = by.collector();
        absent.add_absent((keys.len() as u64).saturating_sub(selected));
        collected.push(absent.into_collected());
    }
    let shares = match &hold {
        Some(hold) => by.shares_of_held(collected, hold)?,
        None => by.shares(collected)?,
    };
    plan.measured = Some(Measured { elapsed: begin.elapsed(), visited: filled.visited, selected });
    let found = match (&hold, plan.executor) {
        (Some(hold), _) => Found::Held(hold),
        (None, Executor::Log) => Found::InLog,
        (None, _) => Found::Anyhow,
    };
    let mut run = apply(objects, by, &shares, found, execution);
    drop(shares);
    if let Some(hold) = hold
        && run.stopped.as_ref().is_some_and(Error::is_out_of_memory)
        && let Some(pending) = run.pending.take()
    {
        // Now the log may be compacted, which gives memory back.
        drop(hold);
        run = resume(objects, by, pending, execution)?;
    }
    Ok(DisaggregationRun { plan: Some(plan), ..run })
}

/// Gives those objects their parts that a disaggregation left, each exactly once.
///
/// # Errors
/// [`Error::Query`] if they were left by another disaggregation.
///
/// ```
/// use sapwood_aggregate::Disaggregation;
/// use sapwood_chunkmap::ChunkMap;
/// use sapwood_execute::{Execution, disaggregate, resume};
///
/// let map = ChunkMap::new();
/// map.put(b"acorn", &[3])?;
/// let by = Disaggregation::new("n:u8".parse()?, "n", 10).adding().compile()?;
/// let mut run = disaggregate(&map, &by, &Execution::new())?;
/// // What a cancellation left, or an engine that had no memory.
/// while let Some(pending) = run.pending.take() {
///     run = resume(&map, &by, pending, &Execution::new())?;
/// }
/// assert_eq!(run.report.given, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn resume(
    objects: &impl Objects,
    by: &Disaggregator,
    pending: Pending,
    execution: &Execution<'_>,
) -> Result<DisaggregationRun> {
    Ok(apply(objects, by, &by.resume(pending)?, Found::Anyhow, execution))
}

/// Gives all objects their parts, or those before it is stopped.
fn apply(
    objects: &impl Objects,
    by: &Disaggregator,
    shares: &Shares<'_>,
    found: Found<'_, '_>,
    execution: &Execution<'_>,
) -> DisaggregationRun {
    let pool = match objects.changes_by_threads() {
        true => Pool::new(execution, shares.count()),
        false => Pool::new(&execution.clone().threads(1), shares.count()),
    };
    let (count, at_once) = (shares.batch_count(), objects.batches_at_once());
    let turns = count.div_ceil(at_once);
    let (parts, ended) = pool.all_parts(turns, &|| shares.progress(), |turn, worker| {
        let batches = turn * at_once..((turn + 1) * at_once).min(count);
        let (done, end) = objects.change(by, shares, batches, found, &mut worker.sink);
        let flow = worker.count(done);
        end.map(|()| flow)
    });
    let progress =
        parts.into_iter().map(|(progress, _)| progress).reduce(DisaggregationProgress::merge);
    let progress = progress.unwrap_or_else(|| shares.progress());
    let report = shares.report(&progress);
    let mut run = DisaggregationRun { report, pending: None, stopped: None, plan: None };
    // Told to stop when all was done, it did all.
    if run.report.pending > 0 {
        run.stopped = ended;
        match shares.pending(&progress) {
            Ok(pending) => run.pending = Some(pending),
            Err(cause) => run.stopped = Some(Error::Query(cause)),
        }
    }
    run
}

#[cfg(test)]
mod tests {
    use sapwood_aggregate::Disaggregation;
    use sapwood_hashlog::{HashLog, Layout, Options};

    use super::*;

    /// Where no other thread writes, all are changed where they lie: those that only a hold keeps, and those whose keys
    /// are kept, since some of them come near the end of their range.
    #[test]
    fn nothing_is_copied() {
        const COUNT: u64 = 300_000;
        let mut options = Options::default();
        options.layout = Layout::Fixed8;
        let log = HashLog::in_memory(options).expect("memory");
        let value = |at: u64| match at {
            ..150_000 => at as i64,
            _ if at.is_multiple_of(1_000) => i64::MAX - 1,
            _ => -1,
        };
        for at in 0..COUNT {
            log.put(&at.to_be_bytes(), &value(at).to_le_bytes()).expect("room");
        }
        let by = Disaggregation::new("n:i64le".parse().expect("a layout"), "n", COUNT.into());
        let by = by.adding().compile().expect("words");
        let execution = Execution::new().executor(Executor::Log).threads(1);
        let tail = log.stats().tail;
        let run = disaggregate(&log, &by, &execution).expect("it can be walked");
        assert_eq!((run.report.changed, run.report.given), (COUNT, COUNT.into()));
        for at in 0..COUNT {
            let now = log.get(&at.to_be_bytes()).expect("memory");
            assert_eq!(now, Some((value(at) + 1).to_le_bytes().to_vec()), "{at}");
        }
        assert_eq!(log.stats().tail, tail);
    }
}
