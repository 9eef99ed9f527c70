//! The engines: a hash table and an ordered one, by each executor and by the planner's choice.

use std::time::{Duration, Instant};

use sapwood::aggregate::{Compiled, Execution, Executor};
use sapwood::{AnyTable, Db, RecordLayout};

use super::disaggregate;
use super::job::{AggregateJob, Pick, SUM};
use super::objects::{Objects, amount, key};
use super::{LOG, LOOK_UP, ORDERED_LOOK_UP, ORDERED_PLANNER, ORDERED_RANGE, PLANNER, WALK};
use crate::harness::*;

const LOADED_TOGETHER: usize = 256;

#[derive(Clone)]
pub(crate) struct LoadedTable {
    pub(crate) table: AnyTable,
}

impl LoadedTable {
    pub(crate) fn load(kind: TableKind, objects: &Objects) -> Result<LoadedTable> {
        let db = Db::in_memory();
        let table = kind.create(&db, RecordLayout::Fixed8, u64::from(objects.count()), false)?;
        for numbers in objects.in_load_order.chunks(LOADED_TOGETHER) {
            let entry = |&number: &u32| (key(number), amount(number).to_le_bytes());
            let entries: Vec<_> = numbers.iter().map(entry).collect();
            table.put_many(&entries)?;
        }
        // The scans of the first rounds would lay the entries together: the later ones are measured
        // alike.
        if let Some(table) = table.as_ordered() {
            table.compact();
        }
        Ok(LoadedTable { table })
    }

    pub(crate) fn kind(&self) -> TableKind {
        if self.table.as_hash().is_some() { TableKind::Hash } else { TableKind::Ordered }
    }

    pub(crate) fn sum(
        &self,
        query: &Compiled,
        execution: &Execution<'_>,
    ) -> Result<(u64, i128, Executor)> {
        let run = self.table.aggregate_with(query, execution)?;
        let executor = run.plan.executor;
        let answer = run.answer()?;
        match answer.value(0, SUM)? {
            sapwood::aggregate::Value::Int(sum) => Ok((answer.tally.matched, *sum, executor)),
            other => bail!("{SUM} of integers is {other}, not an integer"),
        }
    }

    /// Compacts a log. After a walk as of one moment, updates copy records and the log grows, so
    /// that later contenders would be slower.
    pub(crate) fn tidy(&self) -> Result {
        if let Some(table) = self.table.as_hash() {
            table.compact(1.0)?;
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.table.stats().reserved_bytes()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) kind: TableKind,
    pub(crate) executor: Option<Executor>,
    /// True if all objects are seen as of one moment.
    pub(crate) at_one_moment: bool,
}

pub(crate) const WAYS: [Way; 7] = [
    way(LOOK_UP, TableKind::Hash, Some(Executor::LookUp)),
    way(WALK, TableKind::Hash, Some(Executor::Walk)),
    way(LOG, TableKind::Hash, Some(Executor::Log)),
    way(PLANNER, TableKind::Hash, None),
    way(ORDERED_LOOK_UP, TableKind::Ordered, Some(Executor::LookUp)),
    way(ORDERED_RANGE, TableKind::Ordered, Some(Executor::Range)),
    way(ORDERED_PLANNER, TableKind::Ordered, None),
];

pub(crate) const fn way(name: &'static str, kind: TableKind, executor: Option<Executor>) -> Way {
    Way { name, kind, executor, at_one_moment: false }
}

impl Way {
    /// The name without that of the table.
    pub(crate) fn deed(self) -> &'static str {
        self.name.trim_start_matches("sapwood-").trim_start_matches("ordered-")
    }

    pub(crate) fn answers(self, pick: Pick) -> bool {
        match (self.kind, self.executor) {
            (TableKind::Hash, Some(Executor::LookUp)) => pick != Pick::Everything,
            // Of the whole table, a range is what a list is not.
            (_, executor) if pick == Pick::EVERY_KEY => executor == Some(Executor::LookUp),
            // Ranges are scanned, or there is nothing to choose.
            (TableKind::Ordered, Some(Executor::LookUp) | None) => pick.is_list(),
            _ => true,
        }
    }
}

/// A run that takes longer than this is not repeated on the same threads.
const LONGEST: Duration = Duration::from_secs(1);

pub(crate) fn execution_by(way: Way, threads: usize) -> Execution<'static> {
    let execution = Execution::new().threads(threads);
    let execution = if way.at_one_moment { execution.at_one_moment() } else { execution };
    match way.executor {
        Some(executor) => execution.executor(executor),
        None => execution,
    }
}

pub(crate) struct AggregateWay {
    pub(crate) way: Way,
    pub(crate) store: LoadedTable,
    pub(crate) tired_of: Option<(String, usize)>,
}

impl Engine<AggregateJob> for AggregateWay {
    fn name(&self) -> &str {
        self.way.name
    }

    fn runs(&self, job: &AggregateJob) -> bool {
        let pick = job.picked.pick;
        let can = match job.total {
            Some(_) => disaggregate::SPREAD.contains(&(self.way.name, pick)),
            None => self.way.answers(pick),
        };
        can && self.tired_of != Some((job.workload(), job.threads))
    }

    fn run(&mut self, job: &AggregateJob) -> Result<Outcome> {
        let execution = execution_by(self.way, job.threads);
        let (mut elapsed, mut tally) = (Duration::ZERO, Tally::default());
        let mut more = Fields::new();
        for _ in 0..job.times {
            let found = match &job.total {
                Some(total) => {
                    let (took, found) =
                        self.store.there_and_back(&job.picked, total, &execution)?;
                    elapsed += took;
                    found
                }
                None => {
                    let begin = Instant::now();
                    let (entries, sum, executor) = self.store.sum(&job.picked.query, &execution)?;
                    elapsed += begin.elapsed();
                    if self.way.executor.is_none() {
                        // The planner's choice.
                        more = fields(serde_json::json!({ "executor": executor.to_string() }));
                    }
                    Tally { entries, sum: sum as u64 }
                }
            };
            tally = tally.merge(found);
        }
        self.tired_of = (elapsed > LONGEST).then(|| (job.workload(), job.threads));
        let mut outcome = Outcome::of(job.picked.len() * job.times, elapsed, tally);
        outcome.figures[0].fields = more;
        Ok(outcome)
    }
}
