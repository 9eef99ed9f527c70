//! The clauses of queries and disaggregations.

use std::time::Duration;

use sapwood::aggregate::{
    Aggregate, Execution, Executor, Group, Layout, Mismatches, Missing, OrderBy, Predicate, Query,
    Selection,
};
use sapwood::{AnyTable, Error};

use crate::command::arguments::is;
use crate::refusal::{Refusal, SYNTAX};

use super::misfit;
use super::words::{Words, bounds, one_of};
use super::work::{Telling, Work};

const EXECUTORS: &[(&str, Option<Executor>)] = &[
    ("planner", None),
    ("lookup", Some(Executor::LookUp)),
    ("range", Some(Executor::Range)),
    ("walk", Some(Executor::Walk)),
    ("log", Some(Executor::Log)),
];
const MISMATCHES: &[(&str, Mismatches)] =
    &[("refuse", Mismatches::Refuse), ("skip", Mismatches::Skip)];
const MISSING: &[(&str, Missing)] = &[("pass", Missing::PassOver), ("refuse", Missing::Refuse)];

/// The most threads of a job.
const THREADS_MAX: u64 = 256;
/// A run that is expected to take longer has more than one thread.
const ALONE_MAX: Duration = Duration::from_millis(2);

/// The entries that count, and how they are reached.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) filter: Option<Predicate>,
    pub(super) selection: Selection,
    layout: Option<Layout>,
    pub(super) mismatches: Mismatches,
    pub(super) run: Run,
}

/// How a job is run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    executor: Option<Executor>,
    /// `None`: one for what is short, and else as many as the server has.
    threads: Option<usize>,
    is_at_one_moment: bool,
    telling: Telling,
    threads_of_server: usize,
}

impl Scope {
    pub(super) fn new(threads_of_server: usize) -> Scope {
        Scope {
            filter: None,
            selection: Selection::EVERYTHING,
            layout: None,
            mismatches: Mismatches::Refuse,
            run: Run {
                executor: None,
                threads: None,
                is_at_one_moment: false,
                telling: Telling::Nothing,
                threads_of_server,
            },
        }
    }

    /// Takes a clause in, if it is one of these.
    pub(super) fn take(&mut self, word: &[u8], words: &mut Words<'_>) -> Result<bool, Refusal> {
        if is(word, "where") {
            self.filter = Some(words.text()?.parse().map_err(misfit)?);
        } else if is(word, "keys") {
            self.selection = Selection::keys(words.counted(1)?);
        } else if is(word, "prefix") {
            self.selection = Selection::prefix(words.value()?);
        } else if is(word, "range") {
            self.selection = match bounds(words.value()?, words.value()?)? {
                Some(bounds) => Selection::range(bounds).map_err(misfit)?,
                None => Selection::keys::<&[u8]>([]),
            };
        } else if is(word, "layout") {
            self.layout = Some(words.text()?.parse().map_err(misfit)?);
        } else if is(word, "mismatches") {
            self.mismatches = one_of(words.value()?, MISMATCHES)?;
        } else if is(word, "using") {
            self.run.executor = one_of(words.value()?, EXECUTORS)?;
        } else if is(word, "threads") {
            self.run.threads = Some(threads(words)?);
        } else if is(word, "moment") {
            self.run.is_at_one_moment = true;
        } else if is(word, "progress") {
            self.run.telling = Telling::Progress;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// The layout: of the clause, or else of the table.
    pub(super) fn layout(&mut self, table: &AnyTable) -> Option<Layout> {
        self.layout.take().or_else(|| table.fields().cloned())
    }
}

impl Run {
    /// The execution that the clauses ask for, but for its threads.
    pub(super) fn execution<'e>(&self) -> Execution<'e> {
        let mut execution = Execution::new();
        if let Some(executor) = self.executor {
            execution = execution.executor(executor);
        }
        if self.is_at_one_moment {
            execution = execution.at_one_moment();
        }
        execution
    }

    /// The news that the client asked for.
    pub(super) fn telling(&self) -> Telling {
        self.telling
    }

    /// Its threads, where one alone would take so long.
    pub(super) fn threads(&self, alone: Duration) -> usize {
        match self.threads {
            Some(threads) => threads,
            None if alone <= ALONE_MAX => 1,
            None => self.threads_of_server,
        }
    }

    /// Runs a job's work, with its progress noted, until it is cancelled.
    pub(super) fn run<T>(
        &self,
        work: &Work<'_>,
        alone: Duration,
        run: impl FnOnce(&Execution<'_>) -> sapwood::Result<T>,
    ) -> sapwood::Result<T> {
        let tell = |progress| work.note(progress);
        let within = |moment: &mut dyn FnMut()| work.between_transactions(moment);
        let execution = self.execution().threads(self.threads(alone));
        let execution = execution.progress(&tell).cancel(&work.running.cancel);
        match self.is_at_one_moment {
            true => run(&execution.at_one_moment_within(&within)),
            false => run(&execution),
        }
    }
}

/// A query with what its command says of the answer.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) query: Query,
    pub(super) run: Run,
    pub(super) form: Form,
    /// States to be merged.
    pub(super) states: Vec<Vec<u8>>,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Rows,
    /// A state that merges with others.
    State,
}

/// The command that a question belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Aggregate,
    Explain,
    Merge,
}

impl Question {
    pub(super) fn parse(
        words: &mut Words<'_>,
        table: &AnyTable,
        threads: usize,
        asked: Asked,
    ) -> Result<Question, Refusal> {
        let mut scope = Scope::new(threads);
        let (mut figures, mut groups, mut order) = (Vec::new(), Vec::new(), Vec::new());
        let (mut having, mut limit, mut groups_max) = (None, None, None);
        let mut missing = Missing::PassOver;
        let (mut form, mut states) = (Form::Rows, None);
        while let Some(word) = words.keyword() {
            if is(word, "select") {
                figures = Aggregate::list(words.text()?).map_err(misfit)?;
            } else if is(word, "by") {
                groups = Group::list(words.text()?).map_err(misfit)?;
            } else if is(word, "having") {
                having = Some(words.text()?.parse().map_err(misfit)?);
            } else if is(word, "order") {
                order = OrderBy::list(words.text()?).map_err(misfit)?;
            } else if is(word, "limit") {
                limit = Some(size(words.number()?));
            } else if is(word, "groups") {
                groups_max = Some(size(words.number()?));
            } else if is(word, "missing") {
                missing = one_of(words.value()?, MISSING)?;
            } else if is(word, "partial") && asked != Asked::Explain {
                form = Form::State;
            } else if is(word, "states") && asked == Asked::Merge {
                let given = words.counted(1)?;
                states = Some(given.iter().map(|state| state.to_vec()).collect());
            } else if !scope.take(word, words)? {
                return words.unknown();
            }
        }
        let mut query = Query::new(scope.layout(table).unwrap_or_default())
            .select(scope.selection)
            .mismatches(scope.mismatches)
            .missing(missing)
            .aggregates(figures)
            .group_by(groups)
            .order_by(order);
        if let Some(filter) = scope.filter {
            query = query.filter(filter);
        }
        if let Some(having) = having {
            query = query.having(having);
        }
        if let Some(limit) = limit {
            query = query.limit(limit);
        }
        if let Some(groups_max) = groups_max {
            query = query.groups_max(groups_max);
        }
        let states = match (states, asked) {
            (None, Asked::Merge) => return Err(SYNTAX),
            (states, _) => states.unwrap_or_default(),
        };
        Ok(Question { query, run: scope.run, form, states })
    }
}

/// A number of threads.
pub(super) fn threads(words: &mut Words<'_>) -> Result<usize, Refusal> {
    match words.number()? {
        threads @ 1..=THREADS_MAX => Ok(threads as usize),
        _ => Err(Refusal::err(format!("THREADS is a number from 1 to {THREADS_MAX}"))),
    }
}

/// A number of rows or groups.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The refusal of a table without a layout, where a layout is needed.
pub(super) fn no_layout(table: &AnyTable) -> Refusal {
    super::refused(Error::NoFields { table: table.name().into() })
}
