//! A query, from plan to partial state.

use std::time::Instant;

use sapwood_aggregate::{Compiled, Partial};

use crate::objects::Request;
use crate::pool::Pool;
use crate::{Execution, Measured, Objects, Plan, Result};

/// How a query would be answered, without answering it.
///
/// # Errors
/// [`Error::Executor`](crate::Error::Executor) if the executor that is asked for cannot answer the
/// query.
///
/// ```
/// use sapwood_aggregate::{Aggregate, Query};
/// use sapwood_chunkmap::ChunkMap;
/// use sapwood_execute::{Execution, explain};
///
/// let query = Query::new("n:u8".parse()?).aggregates(vec![Aggregate::count()]).compile()?;
/// let plan = explain(&ChunkMap::new(), &query, &Execution::new())?;
/// assert_eq!((plan.candidates.len(), plan.measured), (1, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn explain(
    objects: &impl Objects,
    query: &Compiled,
    execution: &Execution<'_>,
) -> Result<Plan> {
    Request::of_query(query, execution).plan(objects, execution)
}

/// Answers a query: what the objects add up to, and the plan with what was measured.
///
/// # Errors
/// [`Error::Query`](crate::Error::Query) if objects do not have what the query reads;
/// [`Error::Cancelled`](crate::Error::Cancelled), [`Error::Executor`](crate::Error::Executor); what
/// the engine says of an object that it cannot read.
///
/// ```
/// use sapwood_aggregate::{Aggregate, Query};
/// use sapwood_chunkmap::ChunkMap;
/// use sapwood_execute::{Execution, aggregate};
///
/// let map = ChunkMap::new();
/// map.put(b"acorn", &[3])?;
/// let query = Query::new("n:u8".parse()?).aggregates(Aggregate::list("sum(n)")?).compile()?;
/// let (partial, plan) = aggregate(&map, &query, &Execution::new())?;
/// assert_eq!(query.finish(partial)?.value(0, "sum(n)")?, &3.into());
/// assert_eq!(plan.measured.expect("it ran").selected, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn aggregate(
    objects: &impl Objects,
    query: &Compiled,
    execution: &Execution<'_>,
) -> Result<(Partial, Plan)> {
    let request = Request::of_query(query, execution);
    let mut plan = request.plan(objects, execution)?;
    let begin = Instant::now();
    let pool = Pool::new(execution, plan.expected().visits);
    let filled = objects.reach(plan.executor, &request, &pool, &|| query.fold())?;
    let mut partial = query.empty();
    for fold in filled.sinks {
        partial = query.merge(partial, fold.into_partial())?;
    }
    if let Some(keys) = query.selection().as_keys() {
        let mut fold = query.fold();
        fold.add_absent((keys.len() as u64).saturating_sub(partial.tally().selected));
        partial = query.merge(partial, fold.into_partial())?;
    }
    plan.measured = Some(Measured {
        elapsed: begin.elapsed(),
        visited: filled.visited,
        selected: partial.tally().selected,
    });
    Ok((partial, plan))
}
