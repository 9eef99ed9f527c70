//! The speed of disaggregation: a total is spread over the objects.
//!
//! A run adds to each selected object its part of a total that is no multiple of their number, so
//! that some parts are greater by one. Then, untimed, the parts are taken back, so that every run
//! finds what was loaded. Every report is compared with what it must be, and an independent sum
//! with the report.

mod baseline;

use std::sync::Arc;
use std::time::{Duration, Instant};

use sapwood::aggregate::{Disaggregation, Disaggregator, Execution, Value};

use super::contenders::{
    LOG, LOOK_UP, LoadedTable, ORDERED_LOOK_UP, ORDERED_RANGE, Patience, WALK, Way, execution_by,
};
use super::workload::{FIELD, Fraction, LAYOUT, Pick, Picked, Workload};
use crate::Error;
use crate::figures::Percentiles;
use crate::rounds::{Contender, Outcome, Run};
use crate::tally::Tally;

pub(crate) use baseline::DisaggregationBaseline;

/// The part of every object; the first half, by key, gets one more.
const PART: i64 = 3;

/// The ways to disaggregate, and the objects.
const CONTENDERS: [(Way, Pick); 6] = [
    (WALK, Pick::Everything),
    (LOG, Pick::Everything),
    (LOOK_UP, Pick::Range(Fraction::Tenth)),
    (ORDERED_RANGE, Pick::Range(Fraction::Tenth)),
    (LOOK_UP, Pick::List(Fraction::Tenth)),
    (ORDERED_LOOK_UP, Pick::List(Fraction::Tenth)),
];

/// The objects that totals are spread over.
pub(crate) const PICKS: [Pick; 3] =
    [Pick::Everything, Pick::Range(Fraction::Tenth), Pick::List(Fraction::Tenth)];

/// A total for the selected objects, and the way back.
pub(crate) struct Total {
    pub(crate) picked: Arc<Picked>,
    there: Disaggregator,
    back: Disaggregator,
    /// The sum of the objects afterwards.
    after: i128,
    /// Objects with lesser numbers get a unit more.
    cutoff: u32,
}

impl Total {
    pub(crate) fn new(picked: &Arc<Picked>) -> Result<Total, Error> {
        let greater = picked.len() / 2;
        let total = PART as i128 * picked.len() as i128 + greater as i128;
        let compiled = |total| {
            Disaggregation::new(LAYOUT.parse()?, FIELD, total)
                .select(picked.query.selection().clone())
                .equally()
                .adding()
                .compile()
        };
        Ok(Total {
            there: compiled(total)?,
            back: compiled(-total)?,
            after: picked.sum() + total,
            cutoff: picked.placed()[greater].number,
            picked: Arc::clone(picked),
        })
    }

    /// The part of an object.
    #[inline]
    fn part(&self, number: u32) -> i64 {
        PART + i64::from(number < self.cutoff)
    }
}

/// One timed run: the same total, several times where the table is small.
#[derive(Clone)]
pub(crate) struct DisaggregationJob {
    pub(crate) total: Arc<Total>,
    pub(crate) threads: usize,
    pub(crate) times: usize,
}

impl DisaggregationJob {
    pub(crate) fn expected(&self) -> Tally {
        let once = Tally { entries: self.total.picked.len() as u64, sum: self.total.after as u64 };
        (0..self.times).fold(Tally::default(), |sum, _| sum.merge(once))
    }
}

impl Run for DisaggregationJob {
    type Workload = Workload;

    fn workload(&self) -> Workload {
        Workload::Disaggregate(self.total.picked.pick)
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn operations(&self) -> usize {
        self.total.picked.len() * self.times
    }
}

/// A way to disaggregate, as a contender.
pub(crate) struct DisaggregationContender {
    way: Way,
    store: LoadedTable,
    patience: Patience,
}

impl DisaggregationContender {
    /// All that a table of this kind takes part with.
    pub(crate) fn ways(
        store: &LoadedTable,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Vec<DisaggregationContender> {
        let mut ways: Vec<Way> = Vec::new();
        for (way, _) in CONTENDERS {
            if way.kind == store.kind() && wanted(way.name) && !ways.contains(&way) {
                ways.push(way);
            }
        }
        let contender = |way| DisaggregationContender {
            way,
            store: store.clone(),
            patience: Patience::default(),
        };
        ways.into_iter().map(contender).collect()
    }

    /// Rounds of another workload, or on other threads, begin.
    pub(crate) fn begin(&mut self) {
        self.patience = Patience::default();
    }

    /// DisaggregationContender once and takes it back; answers how long the first took.
    fn there_and_back(
        &self,
        total: &Total,
        execution: &Execution<'_>,
    ) -> Result<(Duration, Tally), Error> {
        let begin = Instant::now();
        let (changed, after) = self.store.disaggregate(&total.there, execution)?;
        let elapsed = begin.elapsed();
        let (found, sum, _) = self.store.sum(&total.picked.query, execution)?;
        let (restored, before) = self.store.disaggregate(&total.back, execution)?;
        let count = total.picked.len() as u64;
        if (found, sum) != (changed, after) || (restored, before) != (count, total.picked.sum()) {
            return Err(format!(
                "{changed} objects that sum to {after} were reported, and {found} that sum to \
                 {sum} are there; after taking it back {restored} that sum to {before}, not {}",
                total.picked.sum()
            )
            .into());
        }
        Ok((elapsed, Tally { entries: changed, sum: after as u64 }))
    }
}

impl Contender<DisaggregationJob> for DisaggregationContender {
    fn name(&self) -> &str {
        self.way.name
    }

    fn runs(&self, workload: Workload) -> bool {
        let Workload::Disaggregate(pick) = workload else { return false };
        CONTENDERS.contains(&(self.way, pick)) && !self.patience.is_over()
    }

    fn run(&mut self, job: &DisaggregationJob) -> Result<Outcome, Error> {
        let execution = execution_by(self.way, job.threads);
        let (mut elapsed, mut tally) = (Duration::ZERO, Tally::default());
        for _ in 0..job.times {
            let (took, found) = self.there_and_back(&job.total, &execution)?;
            elapsed += took;
            tally = tally.merge(found);
        }
        self.patience.note(elapsed);
        Ok(Outcome { elapsed, tally, operations: None })
    }

    fn latencies(&mut self, _: &DisaggregationJob) -> Result<Percentiles, Error> {
        Err("a run is one call, or few: there are no single calls to time".into())
    }

    fn is_timed_singly(&self) -> bool {
        false
    }
}

impl LoadedTable {
    /// DisaggregationContender a total; answers how many objects were changed, and what they then sum to.
    fn disaggregate(
        &self,
        total: &Disaggregator,
        execution: &Execution<'_>,
    ) -> Result<(u64, i128), Error> {
        let settled = self.table.disaggregate_with(total, execution)?;
        if let Some(error) = settled.stopped {
            return Err(error.into());
        }
        match settled.report.sum_after {
            Some(Value::Int(sum)) => Ok((settled.report.changed, sum)),
            other => Err(format!("integers sum to {other:?}, not to an integer").into()),
        }
    }
}
