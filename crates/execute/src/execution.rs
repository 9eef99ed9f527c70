//! The execution of a query, as the caller asks for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Executor;

/// Calls what it is given, once.
pub(crate) type Within<'a> = &'a (dyn Fn(&mut dyn FnMut()) + Sync);

/// How a query is run: by how many threads, by which executor, with which reports.
///
/// ```
/// use sapwood::aggregate::{Aggregate, Execution, Executor, Query};
/// use sapwood::{Db, HashTableOptions};
///
/// let db = Db::in_memory();
/// let hits = db.create_hash_table("hits", HashTableOptions::default())?;
/// hits.add_many(&[("/oaks", 3), ("/elms", 4)])?;
/// let query = Query::new("hits:i64le".parse()?)
///     .aggregates(Aggregate::list("sum(hits)")?)
///     .compile()?;
///
/// let execution = Execution::new().threads(2).executor(Executor::Log);
/// let run = hits.aggregate_with(&query, &execution)?;
/// assert_eq!(run.plan.executor, Executor::Log);
/// assert_eq!(run.answer()?.value(0, "sum(hits)")?, &7.into());
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Clone)]
pub struct Execution<'a> {
    pub(crate) threads: usize,
    pub(crate) executor: Option<Executor>,
    pub(crate) at_one_moment: bool,
    pub(crate) within: Option<Within<'a>>,
    pub(crate) progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    pub(crate) cancel: Option<&'a Cancel>,
}

impl<'a> Execution<'a> {
    /// One thread, the caller's; the executor that the planner chooses.
    pub fn new() -> Execution<'a> {
        Execution {
            threads: 1,
            executor: None,
            at_one_moment: false,
            within: None,
            progress: None,
            cancel: None,
        }
    }

    /// By so many threads, the caller's among them; the others end with the call.
    ///
    /// Default: 1. More help where objects are many: each has its own part of the table.
    ///
    /// ```
    /// # use sapwood::aggregate::{Aggregate, Cancel, Execution, Executor, Query};
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// # let query = Query::new("hits:i64le".parse()?).aggregates(Aggregate::list("sum(hits)")?).compile()?;
    /// let run = table.aggregate_with(&query, &Execution::new().threads(2))?;
    /// assert_eq!(run.plan.threads, 2);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Execution { threads: threads.max(1), ..self }
    }

    /// By this executor, whatever the planner would choose.
    ///
    /// ```
    /// # use sapwood::aggregate::{Aggregate, Cancel, Execution, Executor, Query};
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// # let query = Query::new("hits:i64le".parse()?).aggregates(Aggregate::list("sum(hits)")?).compile()?;
    /// let run = table.aggregate_with(&query, &Execution::new().executor(Executor::Walk))?;
    /// assert_eq!(run.plan.executor, Executor::Walk);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn executor(self, executor: Executor) -> Self {
        Execution { executor: Some(executor), ..self }
    }

    /// All objects as they were at one moment of the call, while writers go on. Hash tables can, by
    /// [`Executor::Log`]; an ordered table refuses.
    ///
    /// ```
    /// # use sapwood::aggregate::{Aggregate, Cancel, Execution, Executor, Query};
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// # let query = Query::new("hits:i64le".parse()?).aggregates(Aggregate::list("sum(hits)")?).compile()?;
    /// let run = table.aggregate_with(&query, &Execution::new().at_one_moment())?;
    /// assert_eq!(run.plan.executor, Executor::Log);
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn at_one_moment(self) -> Self {
        Execution { at_one_moment: true, ..self }
    }

    /// As [`at_one_moment`](Self::at_one_moment), and the moment lies inside a call of `within`,
    /// which calls what it is given once. A caller that changes several keys under a lock sees
    /// either all of them or none, if `within` takes that lock; it is held for the moment alone.
    ///
    /// ```
    /// use std::sync::{Mutex, PoisonError};
    /// # use sapwood::aggregate::{Aggregate, Execution, Query};
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// # let query = Query::new("hits:i64le".parse()?).aggregates(Aggregate::list("sum(hits)")?).compile()?;
    /// let transfers = Mutex::new(());
    /// let between = |moment: &mut dyn FnMut()| {
    ///     let _held = transfers.lock().unwrap_or_else(PoisonError::into_inner);
    ///     moment();
    /// };
    /// let run = table.aggregate_with(&query, &Execution::new().at_one_moment_within(&between))?;
    /// assert_eq!(run.answer()?.value(0, "sum(hits)")?, &7.into());
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn at_one_moment_within(self, within: &'a (dyn Fn(&mut dyn FnMut()) + Sync)) -> Self {
        Execution { at_one_moment: true, within: Some(within), ..self }
    }

    /// Tells how far it is, some hundred times; any of the threads may call.
    ///
    /// ```
    /// # use sapwood::aggregate::Progress;
    /// # use sapwood::aggregate::{Aggregate, Cancel, Execution, Executor, Query};
    /// # use sapwood::{Db, HashTableOptions};
    /// # let table = Db::in_memory().create_hash_table("t", HashTableOptions::default())?;
    /// # table.add_many(&[("/oaks", 3), ("/elms", 4)])?;
    /// # let query = Query::new("hits:i64le".parse()?).aggregates(Aggregate::list("sum(hits)")?).compile()?;
    /// let show = |progress: Progress| println!("{} of {}", progress.done, progress.total);
    /// table.aggregate_with(&query, &Execution::new().progress(&show))?;
    /// # Ok::<(), sapwood::Error>(())
    /// ```
    #[must_use]
    pub fn progress(self, tell: &'a (dyn Fn(Progress) + Sync)) -> Self {
        Execution { progress: Some(tell), ..self }
    }

    /// Stops when told so, with [`Error::Cancelled`](crate::Error::Cancelled).
    #[must_use]
    pub fn cancel(self, cancel: &'a Cancel) -> Self {
        Execution { cancel: Some(cancel), ..self }
    }
}

impl Default for Execution<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Execution<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution")
            .field("threads", &self.threads)
            .field("executor", &self.executor)
            .field("at_one_moment", &self.at_one_moment)
            .field("progress", &self.progress.is_some())
            .field("cancel", &self.cancel)
            .finish()
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Objects, keys or records visited so far.
    pub done: u64,
    /// About how many there are to visit.
    pub total: u64,
}

/// Stops runs that were given it. Clones are the same.
///
/// ```
/// use sapwood::aggregate::{Aggregate, Cancel, Execution, Query};
/// use sapwood::{Db, Error, OrderedTableOptions};
///
/// let table = Db::in_memory().create_ordered_table("t", OrderedTableOptions::default())?;
/// table.put(b"k", b"v")?;
/// let cancel = Cancel::new();
/// cancel.cancel(); // from anywhere: another thread, a handler of Ctrl-C
/// let count = vec![Aggregate::count()];
/// let query = Query::new("n:u8".parse()?).aggregates(count).compile()?;
/// let stopped = table.aggregate_with(&query, &Execution::new().cancel(&cancel));
/// assert!(matches!(stopped, Err(Error::Cancelled { .. })));
/// # Ok::<(), sapwood::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Stops nothing yet.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Stops every run that was given it, now or later.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The flag that is set then, for work that looks at one itself.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether it was told to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
