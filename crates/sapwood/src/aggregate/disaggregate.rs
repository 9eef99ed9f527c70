//! The operations of tables that spread a total over objects.

use std::sync::Arc;

use sapwood_aggregate::{Disaggregated, Disaggregation, Disaggregator, Pending};
use sapwood_execute::{Execution, Plan};

use super::named;
use crate::{Error, HashTable, OrderedTable, Result, TreeTable};

/// The run of a disaggregation: what was done, what is left, and why.
#[derive(Debug, Clone)]
pub struct DisaggregationRun {
    /// What was done, and what is left.
    pub report: Disaggregated,
    /// What is left, if anything: the same objects get it from
    /// [`OrderedTable::resume`] or [`HashTable::resume`], now or later, in this process or another
    /// ([`Pending::encode`]).
    pub pending: Option<Pending>,
    /// Why something is left: [`Error::Cancelled`], or what an engine refused.
    pub stopped: Option<Error>,
    /// How the objects were reached, and what was measured of that; `None` when resumed.
    pub plan: Option<Plan>,
}

impl DisaggregationRun {
    /// Puts a table's name to the errors of a run.
    fn named(
        table: &Arc<str>,
        run: sapwood_execute::Result<sapwood_execute::DisaggregationRun>,
    ) -> Result<DisaggregationRun> {
        let sapwood_execute::DisaggregationRun { report, pending, stopped, plan } =
            run.map_err(|cause| named(table, cause))?;
        let stopped = stopped.map(|cause| named(table, cause));
        Ok(DisaggregationRun { report, pending, stopped, plan })
    }

    fn whole(self) -> Result<Disaggregated> {
        match self.stopped {
            None => Ok(self.report),
            Some(error) => Err(error),
        }
    }
}

macro_rules! operations {
    ($table:ty, $engine:ident $(, $fallible:tt)?) => {
        impl $table {
            /// Spreads a total over a field of the table's objects: the way back from a figure.
            /// Every object gets its part in one step for every reader, the parts add up to the
            /// total exactly, and nothing is changed unless all of them fit.
            ///
            /// Not one atomic operation: others may see some objects changed and some not yet. An
            /// object that goes away between being collected and being changed does not get its
            /// part, which the report tells; one that comes meanwhile has none.
            ///
            /// # Errors
            /// [`Error::Query`]: it does not fit together, no object is selected, or a part does
            /// not fit into its field; nothing was changed. What stops it later is answered too;
            /// [`disaggregate_with`](Self::disaggregate_with) keeps what is left to go on with.
            ///
            /// ```
            /// # use sapwood::aggregate::{Disaggregation, Execution};
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

            /// As [`disaggregate`](Self::disaggregate), run as told. If it is cancelled while
            /// objects are collected, that is an error. If it is later, or the engine refuses to
            /// change an object, the answer says what was done and holds what is left, for
            /// [`resume`](Self::resume).
            ///
            /// # Errors
            /// Nothing was changed: as [`disaggregate`](Self::disaggregate), and
            /// [`Error::Cancelled`], [`Error::Executor`].
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
                self.change_any(|| {
                    let run = sapwood_execute::disaggregate(self.$engine() $($fallible)?, by, execution);
                    DisaggregationRun::named(&self.shared.name, run)
                })
            }

            /// Gives those objects their parts that a disaggregation left, each exactly once.
            ///
            /// # Errors
            /// [`Error::Query`] if they were left by another disaggregation.
            ///
            /// ```
            /// # use sapwood::aggregate::{Disaggregation, Execution};
            /// # use sapwood::{Db, HashTableOptions};
            /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
            /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
            /// let more = Disaggregation::new("hits:i64le".parse()?, "hits", 10).adding().compile()?;
            /// let mut run = table.disaggregate_with(&more, &Execution::new())?;
            /// // What a cancellation left, or an engine that had no memory.
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
                self.change_any(|| {
                    let run = sapwood_execute::resume(self.$engine() $($fallible)?, by, pending, execution);
                    DisaggregationRun::named(&self.shared.name, run)
                })
            }
        }
    };
}

operations!(OrderedTable, map, ?);
operations!(HashTable, log);
operations!(TreeTable, tree);
