//! In which order does everything run? Tables are loaded; then, for each number of threads and each
//! selection, all ways to answer and the floor run in rounds; then sums run beside a writer.

use std::sync::Arc;

use indicatif::ProgressBar;

use super::floor::Floor;
use super::objects::Objects;
use super::tables::{Answers, Chosen, Kind, Store, WAYS};
use super::workload::{Job, Pick, Picked, Workload};
use super::writers::{SUMMED, Written};
use super::{Part, Plan};
use crate::Error;
use crate::figures::{Percentiles, Rates};
use crate::rounds::{Contender, Outcome, progress, rounds};

/// All figures of tables of one size.
pub(crate) struct Figures {
    pub(crate) objects: u32,
    pub(crate) rates: Rates<Workload>,
    /// Whom the planner chose.
    pub(crate) chosen: Vec<Chosen>,
    /// Bytes of each kind of table when it was loaded.
    pub(crate) bytes: Vec<(Kind, u64)>,
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

    pub(crate) fn bytes_per_object(&self, kind: Kind) -> Option<f64> {
        let (_, bytes) = self.bytes.iter().find(|(of, _)| *of == kind)?;
        Some(*bytes as f64 / f64::from(self.objects))
    }
}

/// Who takes part in a round.
enum Entrant {
    Answers(Answers),
    Floor(Floor),
}

impl Entrant {
    fn answers_mut(&mut self) -> Option<&mut Answers> {
        match self {
            Entrant::Answers(answers) => Some(answers),
            Entrant::Floor(_) => None,
        }
    }

    fn contender(&self) -> &dyn Contender<Job> {
        match self {
            Entrant::Answers(answers) => answers,
            Entrant::Floor(floor) => floor,
        }
    }

    fn contender_mut(&mut self) -> &mut dyn Contender<Job> {
        match self {
            Entrant::Answers(answers) => answers,
            Entrant::Floor(floor) => floor,
        }
    }
}

impl Contender<Job> for Entrant {
    fn name(&self) -> &str {
        self.contender().name()
    }
    fn runs(&self, workload: Workload) -> bool {
        self.contender().runs(workload)
    }
    fn run(&mut self, job: &Job) -> Result<Outcome, Error> {
        self.contender_mut().run(job)
    }
    fn latencies(&mut self, job: &Job) -> Result<Percentiles, Error> {
        self.contender_mut().latencies(job)
    }
    fn is_timed_singly(&self) -> bool {
        self.contender().is_timed_singly()
    }
}

pub(crate) fn measure(plan: &Plan, count: u32) -> Result<Figures, Error> {
    let objects = Arc::new(Objects::new(count));
    let picks: Result<Vec<_>, Error> =
        Pick::ALL.into_iter().map(|pick| Ok(Arc::new(Picked::new(pick, &objects)?))).collect();
    let mut figures =
        Figures { objects: count, rates: Rates::default(), chosen: Vec::new(), bytes: Vec::new() };
    let mut stores = Vec::new();
    for kind in Kind::ALL {
        if plan.takes(kind, count) {
            let store = Store::load(kind, &objects)?;
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
    stores: Vec<Store>,
    figures: Figures,
}

impl Course<'_> {
    fn run(mut self) -> Result<Figures, Error> {
        if self.plan.parts.contains(&Part::Sums) {
            self.sums()?;
        }
        if self.plan.parts.contains(&Part::Writers) {
            self.writers()?;
        }
        Ok(self.figures)
    }

    fn entrants(&self) -> Vec<Entrant> {
        let wanted = |name: &str| self.plan.wants(name);
        let ways = self.stores.iter().flat_map(|store| {
            let of_kind = WAYS.iter().filter(|way| way.kind == store.kind() && wanted(way.name));
            of_kind.map(|way| Entrant::Answers(Answers::new(*way, store.clone())))
        });
        let floors = Floor::forms(&self.objects, &wanted).into_iter().map(Entrant::Floor);
        ways.chain(floors).collect()
    }

    fn sums(&mut self) -> Result<(), Error> {
        let mut entrants = self.entrants();
        let progress = self.progress(&entrants);
        for &threads in &self.plan.threads {
            for picked in &self.picks {
                let job = Job {
                    picked: Arc::clone(picked),
                    threads,
                    times: self.plan.looked_at.div_ceil(self.objects.count()) as usize,
                };
                entrants.iter_mut().filter_map(Entrant::answers_mut).for_each(Answers::begin);
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
        for answers in entrants.iter_mut().filter_map(Entrant::answers_mut) {
            self.figures.chosen.extend(answers.chosen());
        }
        progress.finish_and_clear();
        Ok(())
    }

    /// Counts what there is to do.
    fn progress(&self, entrants: &[Entrant]) -> ProgressBar {
        let runs = |picked: &Arc<Picked>| {
            let workload = Workload::Sum(picked.pick);
            entrants.iter().filter(|entrant| entrant.runs(workload)).count()
        };
        let each: usize = self.picks.iter().map(runs).sum();
        progress(each * self.plan.threads.len() * self.plan.runs)
    }

    fn writers(&mut self) -> Result<(), Error> {
        let progress = progress(self.stores.len() * self.plan.runs);
        for store in &self.stores {
            let picked = |pick| {
                let picked = self.picks.iter().find(|picked| picked.pick == pick);
                &**picked.expect("all picks are there")
            };
            let summed: Vec<_> = SUMMED
                .into_iter()
                .filter(|(way, _)| way.kind == store.kind() && self.plan.wants(way.name))
                .map(|(way, pick)| (way, picked(pick)))
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
