//! The order of measurements: loads one after the other, then for each thread count and
//! workload rounds in which engines take turns, then latencies, then a full scan as a last check.

use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;

use super::baseline::{BASELINE, Baseline};
use super::load::{Load, Loadable, Settled};
use super::space::{Data, Space};
use super::workload::{Job, SCAN_ENTRIES, ScanForm, Workload};
use super::{Plan, contenders, jvm};
use crate::Error;
use crate::figures::Rates;
use crate::pages::touch;
use crate::rounds::{latencies, progress, rounds};

/// All figures of one kind of keys and values.
pub(crate) struct Figures {
    pub(crate) data: Data,
    pub(crate) entries: usize,
    pub(crate) payload_bytes: f64,
    pub(crate) scan_entries: usize,
    pub(crate) loads: Vec<(String, Load)>,
    pub(crate) settled: Vec<(String, Settled)>,
    pub(crate) rates: Rates<Workload>,
}

impl Figures {
    pub(crate) fn load(&self, engine: &str) -> Option<&Load> {
        self.loads.iter().find(|(name, _)| name == engine).map(|(_, load)| load)
    }
}

/// How many times longer a run is made, at most.
const LONGER_MOST: f64 = 1e3;

/// Names that `--engines` knows.
pub(crate) fn engine_names() -> impl Iterator<Item = &'static str> {
    contenders::ALL.iter().map(|(name, _)| *name).chain([BASELINE]).chain(jvm::ENGINES)
}

/// The state of the process's heap before a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heap {
    Fresh,
    /// With freed memory at hand: the growth of resident memory tells nothing about engines on it.
    Used,
}

/// Measures everything on `space`.
pub(crate) fn measure(plan: &Plan, space: &Arc<Space>, heap: Heap) -> Result<Figures, Error> {
    Course::new(plan, space, contenders(plan, space)?).run(heap)
}

/// One course of measurement, from load to last check.
struct Course<'a> {
    plan: &'a Plan,
    space: &'a Arc<Space>,
    /// Those that still take part.
    contenders: Vec<Box<dyn Loadable>>,
    figures: Figures,
    progress: ProgressBar,
}

impl<'a> Course<'a> {
    fn new(
        plan: &'a Plan,
        space: &'a Arc<Space>,
        contenders: Vec<Box<dyn Loadable>>,
    ) -> Course<'a> {
        let timed =
            plan.threads.len() * plan.workloads.len() * (plan.runs + usize::from(plan.latencies));
        let steps = contenders.len() * (timed + 1);
        Course {
            plan,
            space,
            contenders,
            figures: Figures {
                data: space.data(),
                entries: space.entries(),
                payload_bytes: space.payload_bytes(),
                scan_entries: space.scan_entries(SCAN_ENTRIES),
                loads: Vec::new(),
                settled: Vec::new(),
                rates: Rates::default(),
            },
            progress: progress(steps),
        }
        .without_those_of_short_keys()
    }

    /// Leaves engines out that do not take the keys.
    fn without_those_of_short_keys(mut self) -> Course<'a> {
        let Data::Generated { key_bytes, .. } = self.space.data() else { return self };
        let figures = &mut self.figures;
        self.contenders.retain(|contender| {
            let most = contender.key_bytes_max();
            if key_bytes > most {
                let sentence = format!("{} takes keys of at most {most} bytes", contender.name());
                figures.rates.wrong.push(sentence);
            }
            key_bytes <= most
        });
        self
    }

    fn run(mut self, heap: Heap) -> Result<Figures, Error> {
        if heap == Heap::Fresh {
            self.progress.set_message("touching memory");
            touch(self.space.bytes_needed() * self.contenders.len());
        }
        for contender in &mut self.contenders {
            self.progress.set_message(format!("{}: loading", contender.name()));
            let mut load = contender.load(self.space)?;
            if heap == Heap::Used && !contender.maps_its_memory() {
                load.resident_bytes = None;
            }
            self.figures.loads.push((contender.name().to_owned(), load));
            self.progress.inc(1);
        }
        self.check_everything()?;
        let pairs = |plan: &Plan| -> Vec<(usize, Workload)> {
            let of =
                |&threads: &usize| plan.workloads.iter().map(move |&workload| (threads, workload));
            plan.threads.iter().flat_map(of).collect()
        };
        let mut is_settled = false;
        for (threads, workload) in pairs(self.plan) {
            if workload.scan().is_some() && !std::mem::replace(&mut is_settled, true) {
                self.settle();
            }
            self.rounds(workload, threads)?;
        }
        if self.plan.latencies {
            for (threads, workload) in pairs(self.plan) {
                self.latencies(workload, threads)?;
            }
        }
        self.check_everything()?;
        self.progress.finish_and_clear();
        Ok(self.figures)
    }

    fn rounds(&mut self, workload: Workload, threads: usize) -> Result<(), Error> {
        let ops = self.ops(workload, threads)?;
        rounds(
            &mut self.contenders,
            &mut self.figures.rates,
            &self.progress,
            self.plan.runs,
            |round| Job { ops, ..job(self.plan, self.space, workload, threads, round) },
            |job| self.space.expected(job),
        )
    }

    /// Operations of each thread with which a run of the first engine is long enough.
    fn ops(&mut self, workload: Workload, threads: usize) -> Result<usize, Error> {
        let job = job(self.plan, self.space, workload, threads, self.plan.runs + 1);
        let first = self.contenders.iter_mut().find(|contender| contender.runs(workload));
        let Some(first) = first.filter(|_| !self.plan.least.is_zero() && !workload.loads()) else {
            return Ok(job.ops);
        };
        self.progress.set_message(format!(
            "{}: how long does {} take",
            first.name(),
            workload.name()
        ));
        let took = first.run(&job)?.elapsed;
        Ok(lengthened(job.ops, took, self.plan.least))
    }

    fn latencies(&mut self, workload: Workload, threads: usize) -> Result<(), Error> {
        let job = job(self.plan, self.space, workload, threads, self.plan.runs);
        latencies(&mut self.contenders, &mut self.figures.rates, &self.progress, &job)
    }

    /// Scans are timed as they are in the long run.
    fn settle(&mut self) {
        for contender in &mut self.contenders {
            self.progress
                .set_message(format!("{}: scanning until nothing moves", contender.name()));
            let settled = contender.settle();
            let name = contender.name().to_owned();
            self.figures.settled.extend(settled.map(|settled| (name, settled)));
        }
    }

    /// Full scans must find the loaded entries, before and after all runs.
    fn check_everything(&mut self) -> Result<(), Error> {
        let expected = self.space.everything();
        for contender in &mut self.contenders {
            let found = contender.everything()?;
            if let Some(found) = found.filter(|found| *found != expected) {
                let what = format!("{} holds {found}, not {expected}", contender.name());
                return Err(format!(
                    "{what}: a bug in it or in its adapter; leave it out with --engines"
                )
                .into());
            }
        }
        Ok(())
    }
}

fn contenders(plan: &Plan, space: &Space) -> Result<Vec<Box<dyn Loadable>>, Error> {
    let wanted =
        |name: &str| plan.engines.is_empty() || plan.engines.iter().any(|engine| engine == name);
    let mut contenders: Vec<Box<dyn Loadable>> = Vec::new();
    for &(name, make) in contenders::ALL {
        if wanted(name) {
            contenders.push(make());
        }
    }
    if wanted(BASELINE) && matches!(space.data(), Data::Generated { .. }) {
        contenders.push(Box::new(Baseline::default()));
    }
    if plan.jvm {
        contenders.extend(jvm::contenders(&wanted)?);
    }
    Ok(contenders)
}

fn job(plan: &Plan, space: &Space, workload: Workload, threads: usize, round: usize) -> Job {
    let ops = match workload.scan() {
        _ if workload.is_short_scan() => plan.ops,
        None if workload.loads() => space.entries().div_ceil(threads),
        None => plan.ops,
        // Keys alone are read so fast that as many scans are too short to time.
        Some(scan) if scan.form == ScanForm::Keys => plan.scans * 5,
        Some(_) => plan.scans,
    };
    let seed = ((workload as u64) << 24) | ((threads as u64) << 16) | round as u64;
    Job { workload, threads, ops, seed, clock: plan.clock }
}

/// Operations that take `least`, where so many took `took`.
fn lengthened(ops: usize, took: Duration, least: Duration) -> usize {
    let times = least.as_secs_f64() / took.max(Duration::from_micros(1)).as_secs_f64();
    (ops as f64 * times.clamp(1.0, LONGER_MOST)) as usize
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::contenders::{BTREE, peers::btree::LockedBTree};
    use super::super::in_process::InProcess;
    use super::super::space::KeyShape;
    use super::*;
    use crate::clock::Clock;
    use crate::figures::Percentiles;
    use crate::rounds::{Contender, Failed, Outcome};
    use crate::tally::Tally;

    /// A BTreeMap that forgets: what it reads, or what it was given.
    struct Forgetful {
        inner: Box<dyn Loadable>,
        failed: Failed,
    }

    impl Contender<Job> for Forgetful {
        fn name(&self) -> &str {
            "forgetful"
        }
        fn runs(&self, workload: Workload) -> bool {
            self.inner.runs(workload)
        }
        fn run(&mut self, job: &Job) -> Result<Outcome, Error> {
            let outcome = self.inner.run(job)?;
            match self.failed {
                Failed::Reading => {
                    let sum = outcome.tally.sum.wrapping_sub(1);
                    Ok(Outcome { tally: Tally { sum, ..outcome.tally }, ..outcome })
                }
                Failed::Altogether => Err("it lost a value".into()),
            }
        }
        fn latencies(&mut self, job: &Job) -> Result<Percentiles, Error> {
            self.inner.latencies(job)
        }
    }

    impl Loadable for Forgetful {
        fn maps_its_memory(&self) -> bool {
            false
        }
        fn load(&mut self, space: &Arc<Space>) -> Result<Load, Error> {
            self.inner.load(space)
        }
        fn everything(&mut self) -> Result<Option<Tally>, Error> {
            self.inner.everything()
        }
    }

    fn plan() -> Plan {
        Plan {
            data: Vec::new(),
            entries: 200,
            engines: Vec::new(),
            workloads: vec![Workload::GetZeroCopy, Workload::AscendingKeys, Workload::Put],
            threads: vec![1],
            runs: 2,
            ops: 50,
            scans: 2,
            latencies: true,
            least: Duration::ZERO,
            jvm: false,
            clock: Clock::Wall,
            flights: Path::new("no flights").to_owned(),
        }
    }

    fn figures_beside(failed: Failed) -> Figures {
        let data = Data::Generated { key_bytes: 8, value_bytes: 8, shape: KeyShape::Integer };
        let plan = plan();
        let space = Arc::new(Space::new(data, plan.entries, &plan.flights).expect("it is small"));
        let inner = InProcess::<LockedBTree>::boxed();
        let contenders =
            vec![InProcess::<LockedBTree>::boxed(), Box::new(Forgetful { inner, failed }) as _];
        Course::new(&plan, &space, contenders).run(Heap::Fresh).expect("peers may be wrong")
    }

    #[test]
    fn an_engine_that_reads_wrongly_has_no_figure_for_it() {
        let figures = figures_beside(Failed::Reading);
        let of =
            |engine: &str| figures.rates.rates.iter().filter(|rate| rate.engine == engine).count();
        // A put reads nothing.
        assert_eq!((of(BTREE), of("forgetful")), (3, 1));
        assert!(figures.rates.rate("forgetful", Workload::Put, 1).is_some());
        assert_eq!(figures.rates.wrong.len(), 2);
        assert!(figures.rates.wrong[0].starts_with("forgetful, get-zero-copy on 1 threads: read "));
        assert_eq!(
            figures.rates.latencies.iter().filter(|latency| latency.engine == "forgetful").count(),
            1
        );
    }

    #[test]
    fn an_engine_that_loses_values_takes_no_further_part() {
        let figures = figures_beside(Failed::Altogether);
        assert_eq!(figures.rates.rates.iter().filter(|rate| rate.engine == "forgetful").count(), 0);
        assert_eq!(figures.rates.wrong.len(), 1, "{:?}", figures.rates.wrong);
        assert_eq!(figures.rates.rates.len(), 3);
    }

    #[test]
    fn our_own_wrong_answer_ends_the_bench() {
        let mut figures = figures_beside(Failed::Reading);
        assert!(
            figures.rates.refuse(contenders::SAPWOOD, Workload::Put, 1, "it lost a value").is_err()
        );
    }

    #[test]
    fn runs_are_lengthened_within_bounds() {
        let [none, short, least] = [0, 50, 500].map(Duration::from_millis);
        assert_eq!(lengthened(100, short, least), 1_000);
        assert_eq!(lengthened(100, least, short), 100, "never shortened");
        assert_eq!(lengthened(100, none, least), 100_000);
    }
}
