//! Queries and disaggregations over a table of any kind.

use super::each;
use crate::aggregate::{
    Aggregated, Answer, Compiled, Disaggregated, Disaggregation, DisaggregationRun, Disaggregator,
    Execution, Layout, Pending, Plan, Query,
};
use crate::{Result, Table};

#[cfg(doc)]
use crate::{Error, HashTable};

impl Table {
    /// The fields that the table was declared to have.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # use sapwood::aggregate::{Aggregate, Disaggregation, Execution, Query};
    /// # let db = Db::in_memory();
    /// # let options = OrderedTableOptions::default().fields("hits:i64le".parse()?);
    /// # db.create_ordered_table("t", options)?;
    /// # let table = db.table("t")?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// assert_eq!(table.fields(), Some(&"hits:i64le".parse()?));
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn fields(&self) -> Option<&Layout> {
        each!(self, table => table.fields())
    }

    /// Begins a query over the fields that the table was declared to have.
    ///
    /// # Errors
    /// [`Error::NoFields`] if there are none.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # use sapwood::aggregate::{Aggregate, Disaggregation, Execution, Query};
    /// # let db = Db::in_memory();
    /// # let options = HashTableOptions::default().fields("hits:i64le".parse()?);
    /// # db.create_hash_table("t", options)?;
    /// # let table = db.table("t")?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// let query = table.query()?.aggregates(Aggregate::list("sum(hits)")?);
    /// assert_eq!(table.aggregate(&query)?.value(0, "sum(hits)")?, &7.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn query(&self) -> Result<Query> {
        each!(self, table => table.query())
    }

    /// Answers a query over the table's objects, without fetching them.
    ///
    /// What it sees of changes is said at [`aggregate`](crate::aggregate). Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Query`]: the query does not fit together, objects do not have what it reads, or a
    /// figure leaves its range. What the engine answers, for an object that could not be read.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # use sapwood::aggregate::{Aggregate, Disaggregation, Execution, Query};
    /// # let db = Db::in_memory();
    /// # let options = OrderedTableOptions::default().fields("hits:i64le".parse()?);
    /// # db.create_ordered_table("t", options)?;
    /// # let table = db.table("t")?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// let query = table.query()?.aggregates(Aggregate::list("max(hits)")?);
    /// assert_eq!(table.aggregate(&query)?.value(0, "max(hits)")?, &4.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn aggregate(&self, query: &Query) -> Result<Answer> {
        each!(self, table => table.aggregate(query))
    }

    /// As [`aggregate`](Self::aggregate), run as told; it answers a partial state, which merges
    /// with those of other tables, and the plan with what was measured.
    ///
    /// # Errors
    /// As [`aggregate`](Self::aggregate); [`Error::Cancelled`]; [`Error::Executor`] if the one that
    /// was asked for cannot answer the query.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # use sapwood::aggregate::{Aggregate, Disaggregation, Execution, Query};
    /// # let db = Db::in_memory();
    /// # let options = HashTableOptions::default().fields("hits:i64le".parse()?);
    /// # db.create_hash_table("t", options)?;
    /// # let table = db.table("t")?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// let query = table.query()?.aggregates(Aggregate::list("sum(hits)")?).compile()?;
    /// let run = table.aggregate_with(&query, &Execution::new().threads(2))?;
    /// assert_eq!(run.answer()?.value(0, "sum(hits)")?, &7.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn aggregate_with<'q>(
        &self,
        query: &'q Compiled,
        execution: &Execution<'_>,
    ) -> Result<Aggregated<'q>> {
        each!(self, table => table.aggregate_with(query, execution))
    }

    /// How a query would be answered, without answering it.
    ///
    /// # Errors
    /// [`Error::Executor`] if the executor that is asked for cannot answer the query.
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # use sapwood::aggregate::{Aggregate, Disaggregation, Execution, Query};
    /// # let db = Db::in_memory();
    /// # let options = OrderedTableOptions::default().fields("hits:i64le".parse()?);
    /// # db.create_ordered_table("t", options)?;
    /// # let table = db.table("t")?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// let query = table.query()?.aggregates(Aggregate::list("sum(hits)")?).compile()?;
    /// let plan = table.explain(&query, &Execution::new())?;
    /// assert_eq!(plan.measured, None);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn explain(&self, query: &Compiled, execution: &Execution<'_>) -> Result<Plan> {
        each!(self, table => table.explain(query, execution))
    }

    /// Spreads a total over a field of the table's objects, in parts that add up to it exactly.
    ///
    /// It is not one atomic operation; [`HashTable::disaggregate`] says what others may see.
    ///
    /// # Errors
    /// [`Error::Query`]: it does not fit together, no object is selected, or a part does not fit
    /// into its field; nothing was changed. What stops it later is answered too.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # use sapwood::aggregate::{Aggregate, Disaggregation, Execution, Query};
    /// # let db = Db::in_memory();
    /// # let options = HashTableOptions::default().fields("hits:i64le".parse()?);
    /// # db.create_hash_table("t", options)?;
    /// # let table = db.table("t")?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// let more = Disaggregation::new("hits:i64le".parse()?, "hits", 10).adding();
    /// assert_eq!(table.disaggregate(&more)?.given, 10);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn disaggregate(&self, what: &Disaggregation) -> Result<Disaggregated> {
        each!(self, table => table.disaggregate(what))
    }

    /// As [`disaggregate`](Self::disaggregate), run as told; the answer says what was done, and
    /// holds what is left if it was stopped.
    ///
    /// # Errors
    /// Nothing was changed: as [`disaggregate`](Self::disaggregate), and [`Error::Cancelled`],
    /// [`Error::Executor`].
    ///
    /// ```
    /// # use sapwood::{Db, OrderedTableOptions};
    /// # use sapwood::aggregate::{Aggregate, Disaggregation, Execution, Query};
    /// # let db = Db::in_memory();
    /// # let options = OrderedTableOptions::default().fields("hits:i64le".parse()?);
    /// # db.create_ordered_table("t", options)?;
    /// # let table = db.table("t")?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// let more = Disaggregation::new("hits:i64le".parse()?, "hits", 10).adding().compile()?;
    /// let run = table.disaggregate_with(&more, &Execution::new())?;
    /// assert!(run.pending.is_none());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn disaggregate_with(
        &self,
        by: &Disaggregator,
        execution: &Execution<'_>,
    ) -> Result<DisaggregationRun> {
        each!(self, table => table.disaggregate_with(by, execution))
    }

    /// Gives those objects their parts that a disaggregation left, each exactly once.
    ///
    /// # Errors
    /// [`Error::Query`] if they were left by another disaggregation.
    ///
    /// ```
    /// # use sapwood::{Db, HashTableOptions};
    /// # use sapwood::aggregate::{Aggregate, Disaggregation, Execution, Query};
    /// # let db = Db::in_memory();
    /// # let options = HashTableOptions::default().fields("hits:i64le".parse()?);
    /// # db.create_hash_table("t", options)?;
    /// # let table = db.table("t")?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// let more = Disaggregation::new("hits:i64le".parse()?, "hits", 10).adding().compile()?;
    /// let mut run = table.disaggregate_with(&more, &Execution::new())?;
    /// while let Some(pending) = run.pending.take() {
    ///     run = table.resume(&more, pending, &Execution::new())?;
    /// }
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn resume(
        &self,
        by: &Disaggregator,
        pending: Pending,
        execution: &Execution<'_>,
    ) -> Result<DisaggregationRun> {
        each!(self, table => table.resume(by, pending, execution))
    }
}
