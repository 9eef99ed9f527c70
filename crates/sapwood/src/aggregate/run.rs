//! Runs of queries and of disaggregations.

use std::sync::Arc;

use sapwood_aggregate::{Answer, Compiled, Disaggregated, Partial, Pending};
use sapwood_execute::Plan;

use super::named;
use crate::{Error, Result};

/// The result of a query before its rows are made: [`Table::aggregate_with`](crate::Table::aggregate_with).
#[derive(Debug, Clone)]
pub struct Aggregated<'q> {
    /// The aggregates of all entries; it merges with those of other tables and machines.
    pub partial: Partial,
    /// The executor that reached the entries, and its measurements.
    pub plan: Plan,
    query: &'q Compiled,
}

impl<'q> Aggregated<'q> {
    pub(crate) fn new(partial: Partial, plan: Plan, query: &'q Compiled) -> Aggregated<'q> {
        Aggregated { partial, plan, query }
    }

    /// The rows of the answer.
    ///
    /// # Errors
    /// [`Error::Query`]: entries do not have the fields that the query reads, or an aggregate leaves its range.
    ///
    /// ```
    /// # use sapwood::aggregate::{Aggregate, Execution, Query};
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// # let query = Query::new("hits:i64le".parse()?).aggregates(Aggregate::list("sum(hits)")?).compile()?;
    /// let run = table.aggregate_with(&query, &Execution::new())?;
    /// assert_eq!(run.answer()?.value(0, "sum(hits)")?, &7.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn answer(self) -> Result<Answer> {
        Ok(self.query.finish(self.partial)?)
    }
}

/// The run of a disaggregation: the work done, the rest, and the reason for a rest.
#[derive(Debug, Clone)]
pub struct DisaggregationRun {
    /// Counts of the entries that were changed, and of those that are left.
    pub report: Disaggregated,
    /// The rest, if there is one: [`Table::resume`](crate::Table::resume) gives it to the same entries, now or later, in this process or
    /// another ([`Pending::encode`]).
    pub pending: Option<Pending>,
    /// The reason for a rest: [`Error::Cancelled`], or an engine's refusal.
    pub stopped: Option<Error>,
    /// The executor that reached the entries, and its measurements; `None` when resumed.
    pub plan: Option<Plan>,
}

impl DisaggregationRun {
    /// Puts a table's name to the errors of a run.
    pub(crate) fn named(
        table: &Arc<str>,
        run: sapwood_execute::Result<sapwood_execute::DisaggregationRun>,
    ) -> Result<DisaggregationRun> {
        let sapwood_execute::DisaggregationRun { report, pending, stopped, plan } =
            run.map_err(|cause| named(table, cause))?;
        let stopped = stopped.map(|cause| named(table, cause));
        Ok(DisaggregationRun { report, pending, stopped, plan })
    }

    pub(crate) fn whole(self) -> Result<Disaggregated> {
        match self.stopped {
            None => Ok(self.report),
            Some(error) => Err(error),
        }
    }
}
