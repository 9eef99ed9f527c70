//! The operations of tables that answer queries.

use std::sync::Arc;

use sapwood_aggregate::{Answer, Compiled, Layout, Partial, Query};
use sapwood_execute::{Execution, Plan};

use super::named;
use crate::{Error, HashTable, OrderedTable, Result, TreeTable};

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Aggregated<'q> {
    /// What the objects add up to: it merges with that of other tables and machines.
    pub partial: Partial,
    /// How they were reached, and what was measured.
    pub plan: Plan,
    query: &'q Compiled,
}

impl Aggregated<'_> {
    /// The rows of the answer.
    ///
    /// # Errors
    /// [`Error::Query`]: objects do not have what the query reads, or a figure leaves its range.
    ///
    /// ```
    /// # use sapwood::aggregate::{Aggregate, Cancel, Execution, Executor, Query};
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

impl OrderedTable {
    /// Answers a query over the table's objects, without fetching them.
    ///
    /// What it sees of changes is said at [`aggregate`](crate::aggregate). Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Query`]: the query does not fit together, objects do not have what it reads, or a
    /// figure leaves its range. [`Error::OrderedEngine`]: an object could not be read.
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
}

impl HashTable {
    /// Answers a query over the table's objects, without fetching them.
    ///
    /// What it sees of changes is said at [`aggregate`](crate::aggregate). Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Query`]: the query does not fit together, objects do not have what it reads, or a
    /// figure leaves its range. [`Error::HashEngine`]: an object could not be read.
    ///
    /// ```
    /// use sapwood::aggregate::{Aggregate, Query};
    /// use sapwood::{Db, HashTableOptions};
    ///
    /// let hits = Db::in_memory().create_hash_table("hits", HashTableOptions::default())?;
    /// hits.add_many(&[("/oaks", 3), ("/elms", 4), ("/oaks", 10)])?;
    /// let query = Query::new("hits:i64le".parse()?)
    ///     .filter("hits > 3".parse()?)
    ///     .aggregates(Aggregate::list("count, sum(hits)")?);
    /// let answer = hits.aggregate(&query)?;
    /// assert_eq!(answer.value(0, "count")?, &2.into());
    /// assert_eq!(answer.value(0, "sum(hits)")?, &17.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn aggregate(&self, query: &Query) -> Result<Answer> {
        self.aggregate_with(&query.compile()?, &Execution::new())?.answer()
    }
}

impl TreeTable {
    /// Answers a query over the table's objects, without fetching them.
    ///
    /// What it sees of changes is said at [`aggregate`](crate::aggregate): with
    /// [`Execution::at_one_moment`] commits to the table wait meanwhile. Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Query`]: the query does not fit together, objects do not have what it reads, or a
    /// figure leaves its range. [`Error::TreeEngine`]: an object could not be read.
    ///
    /// ```
    /// use sapwood::aggregate::{Aggregate, Query};
    /// use sapwood::{Db, TreeTableOptions};
    ///
    /// let accounts = Db::in_memory().create_tree_table("accounts", TreeTableOptions::default())?;
    /// accounts.add_many(&[("ada", 300), ("bob", -40)])?;
    /// let query = Query::new("cents:i64le".parse()?).aggregates(Aggregate::list("sum(cents)")?);
    /// assert_eq!(accounts.aggregate(&query)?.value(0, "sum(cents)")?, &260.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    pub fn aggregate(&self, query: &Query) -> Result<Answer> {
        self.aggregate_with(&query.compile()?, &Execution::new())?.answer()
    }
}

/// What both kinds of tables do alike.
macro_rules! operations {
    ($table:ty, $engine:ident $(, $fallible:tt)?) => {
        impl $table {
            /// As [`aggregate`](Self::aggregate), run as told; it answers a partial state, which merges
            /// with those of other tables, and the plan with what was measured.
            ///
            /// # Errors
            /// As [`aggregate`](Self::aggregate); [`Error::Cancelled`]; [`Error::Executor`] if the one that
            /// was asked for cannot answer the query.
            ///
            /// ```
            /// # use sapwood::aggregate::{Aggregate, Cancel, Execution, Executor, Query};
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
                let run = sapwood_execute::aggregate(self.$engine() $($fallible)?, query, execution);
                let (partial, plan) = run.map_err(|cause| named(&self.shared.name, cause))?;
                Ok(Aggregated { partial, plan, query })
            }

            /// The fields that the table was declared to have.
            ///
            /// ```
            /// # use sapwood::aggregate::{Aggregate, Layout};
            /// # use sapwood::{Db, OrderedTableOptions};
            /// let fields: Layout = "pieces:u32le".parse()?;
            /// let options = OrderedTableOptions::default().fields(fields.clone());
            /// let stock = Db::in_memory().create_ordered_table("stock", options)?;
            /// assert_eq!(stock.fields(), Some(&fields));
            /// # Ok::<(), sapwood::Error>(())
            /// ```
            pub fn fields(&self) -> Option<&Layout> {
                self.shared.fields.as_ref()
            }

            /// Begins a query over the fields that the table was declared to have.
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
                let declared = || Error::NoFields { table: Arc::clone(&self.shared.name) };
                self.fields().cloned().map(Query::new).ok_or_else(declared)
            }

            /// How a query would be answered, without answering it.
            ///
            /// # Errors
            /// [`Error::Executor`] if the executor that is asked for cannot answer the query.
            ///
            /// ```
            /// # use sapwood::aggregate::{Aggregate, Cancel, Execution, Executor, Query};
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
                let plan = sapwood_execute::explain(self.$engine() $($fallible)?, query, execution);
                plan.map_err(|cause| named(&self.shared.name, cause))
            }
        }
    };
}

operations!(OrderedTable, map, ?);
operations!(HashTable, log);
operations!(TreeTable, tree);
