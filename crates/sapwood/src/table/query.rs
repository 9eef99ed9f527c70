//! Aggregates over the entries of a table, and their inverse.

use std::sync::Arc;

use super::{Stored, Table};
use crate::aggregate::{
    Aggregated, Answer, Compiled, Disaggregated, Disaggregation, DisaggregationRun, Disaggregator,
    Execution, Layout, Pending, Plan, Query,
};
use crate::{Error, Result};

/// Implements the operations on many entries over an engine that [`sapwood_execute`] knows.
macro_rules! operations {
    ($engine:ident $(, $fallible:tt)?) => {
        fn aggregate(
            table: &Table<Self>,
            query: &Compiled,
            execution: &Execution<'_>,
        ) -> Result<(Partial, Plan)> {
            let run = sapwood_execute::aggregate(table.$engine() $($fallible)?, query, execution);
            run.map_err(|cause| aggregate::named(&table.shared.name, cause))
        }

        fn explain(
            table: &Table<Self>,
            query: &Compiled,
            execution: &Execution<'_>,
        ) -> Result<Plan> {
            let plan = sapwood_execute::explain(table.$engine() $($fallible)?, query, execution);
            plan.map_err(|cause| aggregate::named(&table.shared.name, cause))
        }

        fn disaggregate(
            table: &Table<Self>,
            by: &Disaggregator,
            execution: &Execution<'_>,
        ) -> Result<DisaggregationRun> {
            table.change_any(|| {
                let engine = table.$engine() $($fallible)?;
                let run = sapwood_execute::disaggregate(engine, by, execution);
                DisaggregationRun::named(&table.shared.name, run)
            })
        }

        fn resume(
            table: &Table<Self>,
            by: &Disaggregator,
            pending: Pending,
            execution: &Execution<'_>,
        ) -> Result<DisaggregationRun> {
            table.change_any(|| {
                let engine = table.$engine() $($fallible)?;
                let run = sapwood_execute::resume(engine, by, pending, execution);
                DisaggregationRun::named(&table.shared.name, run)
            })
        }
    };
}
pub(crate) use operations;

impl<E: Stored> Table<E> {
    /// The fields of values that the table was declared to have.
    ///
    /// ```
    /// # use sapwood::aggregate::Layout;
    /// # use sapwood::{Db, OrderedTableOptions};
    /// let fields: Layout = "pieces:u32le".parse()?;
    /// let options = OrderedTableOptions::default().fields(fields.clone());
    /// let stock = Db::in_memory().create_ordered_table("stock", options)?;
    /// assert_eq!(stock.fields(), Some(&fields));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn fields(&self) -> Option<&Layout> {
        E::fields(self)
    }

    /// Begins a query over the declared fields.
    ///
    /// # Errors
    /// [`Error::NoFields`] if there are none.
    ///
    /// ```
    /// # use sapwood::aggregate::Aggregate;
    /// # use sapwood::{Db, OrderedTableOptions};
    /// let options = OrderedTableOptions::default().fields("pieces:u32le".parse()?);
    /// let stock = Db::in_memory().create_ordered_table("stock", options)?;
    /// stock.put(b"acorn", &90_u32.to_le_bytes())?;
    /// let query = stock.query()?.aggregates(Aggregate::list("sum(pieces)")?);
    /// assert_eq!(stock.aggregate(&query)?.value(0, "sum(pieces)")?, &90.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn query(&self) -> Result<Query> {
        let none = || Error::NoFields { table: Arc::clone(E::shared_name(self)) };
        self.fields().cloned().map(Query::new).ok_or_else(none)
    }

    /// Answers a query over the table's entries, where they are. Its consistency is that of the module
    /// [`aggregate`](crate::aggregate#consistency).
    ///
    /// # Errors
    /// [`Error::Query`]: the query does not fit together, entries do not have the fields that it reads, or an aggregate
    /// leaves its range. [The engine's](Table#errors) for an entry that cannot be read.
    ///
    /// ```
    /// use sapwood::aggregate::{Aggregate, Query, Selection};
    /// use sapwood::{Db, OrderedTableOptions};
    ///
    /// let table = Db::in_memory().create_ordered_table("stock", OrderedTableOptions::default())?;
    /// for (item, pieces) in [("acorn", 90_u32), ("leaf", 7), ("twig", 12)] {
    ///     table.put(item.as_bytes(), &pieces.to_le_bytes())?;
    /// }
    /// let query = Query::new("pieces:u32le".parse()?)
    ///     .select(Selection::keys(["acorn", "twig", "root"]))
    ///     .aggregates(Aggregate::list("sum(pieces), max(pieces)")?);
    /// let answer = table.aggregate(&query)?;
    /// assert_eq!(answer.value(0, "sum(pieces)")?, &102.into());
    /// assert_eq!(answer.tally.absent, 1);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn aggregate(&self, query: &Query) -> Result<Answer> {
        self.aggregate_with(&query.compile()?, &Execution::new())?.answer()
    }

    /// Runs a query with the given execution. The answer is a partial state, which merges with those of other
    /// tables, and the plan with its measurements.
    ///
    /// # Errors
    /// The errors of [`aggregate`](Self::aggregate); [`Error::Cancelled`]; [`Error::Executor`] if the executor that is asked for
    /// cannot answer the query.
    ///
    /// ```
    /// # use sapwood::aggregate::{Aggregate, Execution, Query};
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// # let query = Query::new("hits:i64le".parse()?).aggregates(Aggregate::list("sum(hits)")?).compile()?;
    /// let run = table.aggregate_with(&query, &Execution::new().threads(2))?;
    /// println!("{}", run.plan);
    /// assert_eq!(run.answer()?.value(0, "sum(hits)")?, &7.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn aggregate_with<'q>(
        &self,
        query: &'q Compiled,
        execution: &Execution<'_>,
    ) -> Result<Aggregated<'q>> {
        let (partial, plan) = E::aggregate(self, query, execution)?;
        Ok(Aggregated::new(partial, plan, query))
    }

    /// The plan of a query, without running it.
    ///
    /// # Errors
    /// [`Error::Executor`] if the executor that is asked for cannot answer the query.
    ///
    /// ```
    /// # use sapwood::aggregate::{Aggregate, Execution, Executor, Query};
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// # let query = Query::new("hits:i64le".parse()?).aggregates(Aggregate::list("sum(hits)")?).compile()?;
    /// let plan = table.explain(&query, &Execution::new().executor(Executor::Walk))?;
    /// assert!(plan.is_forced);
    /// assert_eq!(plan.measured, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn explain(&self, query: &Compiled, execution: &Execution<'_>) -> Result<Plan> {
        E::explain(self, query, execution)
    }

    /// Spreads a total over a field of the table's entries: the inverse of an aggregate. Every entry gets its part in one
    /// step for every reader, the parts add up to the total exactly, and nothing is changed unless all of them fit.
    ///
    /// It is not one atomic operation: readers may see some entries changed and some not yet. An entry that is removed
    /// between being collected and being changed does not get its part, which the report counts; one that is put
    /// meanwhile has none.
    ///
    /// # Errors
    /// [`Error::Query`]: it does not fit together, no entry is selected, or a part does not fit into its field; nothing
    /// was changed. A later failure is answered too; [`disaggregate_with`](Self::disaggregate_with) keeps what is left.
    ///
    /// ```
    /// # use sapwood::aggregate::Disaggregation;
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// let more = Disaggregation::new("hits:i64le".parse()?, "hits", 10).adding();
    /// let report = table.disaggregate(&more)?;
    /// assert_eq!((report.changed, report.given), (2, 10));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn disaggregate(&self, what: &Disaggregation) -> Result<Disaggregated> {
        self.disaggregate_with(&what.compile()?, &Execution::new())?.whole()
    }

    /// Runs a disaggregation with the given execution. Cancelled while entries are collected, it is an error. Stopped
    /// later, the answer says what was done and holds the rest for [`resume`](Self::resume).
    ///
    /// # Errors
    /// The errors of [`disaggregate`](Self::disaggregate), and [`Error::Cancelled`], [`Error::Executor`]; nothing was changed.
    ///
    /// ```
    /// # use sapwood::aggregate::{Disaggregation, Execution};
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// let more = Disaggregation::new("hits:i64le".parse()?, "hits", 10).adding().compile()?;
    /// let run = table.disaggregate_with(&more, &Execution::new().threads(2))?;
    /// assert!(run.stopped.is_none() && run.pending.is_none());
    /// assert_eq!(run.report.given, 10);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn disaggregate_with(
        &self,
        by: &Disaggregator,
        execution: &Execution<'_>,
    ) -> Result<DisaggregationRun> {
        E::disaggregate(self, by, execution)
    }

    /// Gives the entries that a disaggregation left their parts, each exactly once.
    ///
    /// # Errors
    /// [`Error::Query`] if another disaggregation left them.
    ///
    /// ```
    /// # use sapwood::aggregate::{Disaggregation, Execution};
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// let more = Disaggregation::new("hits:i64le".parse()?, "hits", 10).adding().compile()?;
    /// let mut run = table.disaggregate_with(&more, &Execution::new())?;
    /// // Something is left after a cancellation, or where an engine had no memory.
    /// while let Some(pending) = run.pending.take() {
    ///     run = table.resume(&more, pending, &Execution::new())?;
    /// }
    /// assert_eq!(run.report.given, 10);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn resume(
        &self,
        by: &Disaggregator,
        pending: Pending,
        execution: &Execution<'_>,
    ) -> Result<DisaggregationRun> {
        E::resume(self, by, pending, execution)
    }
}
