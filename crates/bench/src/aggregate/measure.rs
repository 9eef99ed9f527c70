//! The order of measurements. Tables are loaded; then, for each number of threads and each
//! selection, all ways to answer and the baseline run in rounds; then all ways to spread a total
//! do; then sums run beside a writer.

use std::sync::Arc;

use indicatif::ProgressBar;

use super::baseline::Baseline;
use super::contenders::{Answers, Chosen, LoadedTable, TableKind, WAYS};
use super::disaggregate::{
    self, DisaggregationBaseline, DisaggregationContender, DisaggregationJob, Total,
};
use super::objects::Objects;
use super::workload::{Job, Pick, Picked, Workload};
use super::writers::{SUMMED, Written};
use super::{Part, Plan};
use crate::Error;
use crate::figures::{Percentiles, Rates};
use crate::rounds::{Contender, Outcome, Run, progress, rounds};

/// All figures of tables of one size.
pub(crate) struct Figures {
    pub(crate) objects: u32,
    pub(crate) rates: Rates<Workload>,
    /// The executor that the planner chose.
    pub(crate) chosen: Vec<Chosen>,
    /// Bytes of each kind of table when it was loaded.
    pub(crate) bytes: Vec<(TableKind, u64)>,
}

impl Figures {
    pub(crate) fn chosen(
        &self,
        engine: &str,
        workload: Workload,
        threads: usize,
    ) -> Option<&Chosen> {
        self.chosen.iter().find(|chosen| {
            chosen.way.name == engine && chosen.workload == workload && chosen.threads == threads
        })
    }

    pub(crate) fn bytes_per_object(&self, kind: TableKind) -> Option<f64> {
        let (_, bytes) = self.bytes.iter().find(|(of, _)| *of == kind)?;
        Some(*bytes as f64 / f64::from(self.objects))
    }
}

/// A participant of the rounds: a way of a table, or the baseline.
enum Entrant<T, F> {
    Table(T),
    Baseline(F),
}

impl<T, F> Entrant<T, F> {
    fn table_mut(&mut self) -> Option<&mut T> {
        match self {
            Entrant::Table(table) => Some(table),
            Entrant::Baseline(_) => None,
        }
    }
}

impl<R: Run, T: Contender<R>, F: Contender<R>> Contender<R> for Entrant<T, F> {
    fn name(&self) -> &str {
        match self {
            Entrant::Table(table) => table.name(),
            Entrant::Baseline(baseline) => baseline.name(),
        }
    }
    fn runs(&self, workload: R::Workload) -> bool {
        match self {
            Entrant::Table(table) => table.runs(workload),
            Entrant::Baseline(baseline) => baseline.runs(workload),
        }
    }
    fn run(&mut self, run: &R) -> Result<Outcome, Error> {
        match self {
            Entrant::Table(table) => table.run(run),
            Entrant::Baseline(baseline) => baseline.run(run),
        }
    }
    fn latencies(&mut self, run: &R) -> Result<Percentiles, Error> {
        match self {
            Entrant::Table(table) => table.latencies(run),
            Entrant::Baseline(baseline) => baseline.latencies(run),
        }
    }
    fn is_timed_singly(&self) -> bool {
        match self {
            Entrant::Table(table) => table.is_timed_singly(),
            Entrant::Baseline(baseline) => baseline.is_timed_singly(),
        }
    }
}

pub(crate) fn measure(plan: &Plan, count: u32) -> Result<Figures, Error> {
    let objects = Arc::new(Objects::new(count));
    let picks: Result<Vec<_>, Error> =
        plan.picks(count).map(|pick| Ok(Arc::new(Picked::new(pick, &objects)?))).collect();
    let mut figures =
        Figures { objects: count, rates: Rates::default(), chosen: Vec::new(), bytes: Vec::new() };
    let mut stores = Vec::new();
    for kind in TableKind::ALL {
        if plan.takes(kind, count) {
            let store = LoadedTable::load(kind, &objects)?;
            figures.bytes.push((kind, store.bytes()));
            stores.push(store);
        }
    }
    Course { plan, objects, picks: picks?, stores, figures }.run()
}

/// One course of measurement, from load to last check.
struct Course<'a> {
    plan: &'a Plan,
    objects: Arc<Objects>,
    picks: Vec<Arc<Picked>>,
    stores: Vec<LoadedTable>,
    figures: Figures,
}

impl Course<'_> {
    fn run(mut self) -> Result<Figures, Error> {
        if self.plan.parts.contains(&Part::Sums) {
            self.sums()?;
        }
        // Writers move amounts between objects, so that they come last.
        if self.plan.parts.contains(&Part::Disaggregate) {
            self.disaggregations()?;
        }
        if self.plan.parts.contains(&Part::Writers) {
            self.writers()?;
        }
        Ok(self.figures)
    }

    /// The repetitions of a query in a run.
    fn times(&self) -> usize {
        self.plan.looked_at.div_ceil(self.objects.count()) as usize
    }

    fn sums(&mut self) -> Result<(), Error> {
        let wanted = |name: &str| self.plan.wants(name);
        let ways = self.stores.iter().flat_map(|store| {
            let of_kind = WAYS.iter().filter(|way| way.kind == store.kind() && wanted(way.name));
            of_kind.map(|way| Entrant::Table(Answers::new(*way, store.clone())))
        });
        let baselines = Baseline::forms(&self.objects, &wanted).into_iter().map(Entrant::Baseline);
        let mut entrants: Vec<_> = ways.chain(baselines).collect();
        let workloads = self.picks.iter().map(|picked| Workload::Sum(picked.pick));
        let progress = self.progress(&entrants, workloads);
        for &threads in &self.plan.threads {
            for picked in &self.picks {
                let job = Job { picked: Arc::clone(picked), threads, times: self.times() };
                entrants.iter_mut().filter_map(Entrant::table_mut).for_each(Answers::begin);
                rounds(
                    &mut entrants,
                    &mut self.figures.rates,
                    &progress,
                    self.plan.runs,
                    |_| job.clone(),
                    |job| Some(job.expected()),
                )?;
            }
        }
        for answers in entrants.iter_mut().filter_map(Entrant::table_mut) {
            self.figures.chosen.extend(answers.chosen());
        }
        progress.finish_and_clear();
        Ok(())
    }

    fn disaggregations(&mut self) -> Result<(), Error> {
        let wanted = |name: &str| self.plan.wants(name);
        let ways =
            self.stores.iter().flat_map(|store| DisaggregationContender::ways(store, &wanted));
        let baselines = DisaggregationBaseline::forms(&self.objects, &wanted)
            .into_iter()
            .map(Entrant::Baseline);
        let mut entrants: Vec<_> = ways.map(Entrant::Table).chain(baselines).collect();
        let progress =
            self.progress(&entrants, disaggregate::PICKS.into_iter().map(Workload::Disaggregate));
        for &threads in &self.plan.threads {
            for pick in disaggregate::PICKS {
                let total = Arc::new(Total::new(picked(&self.picks, pick))?);
                let job = DisaggregationJob { total, threads, times: self.times() };
                entrants
                    .iter_mut()
                    .filter_map(Entrant::table_mut)
                    .for_each(DisaggregationContender::begin);
                rounds(
                    &mut entrants,
                    &mut self.figures.rates,
                    &progress,
                    self.plan.runs,
                    |_| job.clone(),
                    |job| Some(job.expected()),
                )?;
            }
        }
        progress.finish_and_clear();
        Ok(())
    }

    /// Counts what there is to do.
    fn progress<R: Run<Workload = Workload>>(
        &self,
        entrants: &[impl Contender<R>],
        workloads: impl Iterator<Item = Workload>,
    ) -> ProgressBar {
        let runs = |workload| entrants.iter().filter(|entrant| entrant.runs(workload)).count();
        let each: usize = workloads.map(runs).sum();
        progress(each * self.plan.threads.len() * self.plan.runs)
    }

    fn writers(&mut self) -> Result<(), Error> {
        let progress = progress(self.stores.len() * self.plan.runs);
        for store in &self.stores {
            let summed: Vec<_> = SUMMED
                .into_iter()
                .filter(|(way, _)| way.kind == store.kind() && self.plan.wants(way.name))
                .map(|(way, pick)| (way, &**picked(&self.picks, pick)))
                .collect();
            if summed.is_empty() {
                continue;
            }
            let objects = self.objects.count();
            let window = self.plan.window;
            let written = Written { store, objects, summed, window };
            written.measure(self.plan.runs, &mut self.figures.rates, &progress)?;
        }
        progress.finish_and_clear();
        Ok(())
    }
}

fn picked(picks: &[Arc<Picked>], pick: Pick) -> &Arc<Picked> {
    picks.iter().find(|picked| picked.pick == pick).expect("all picks are there")
}
