//! The cost of adding to the same integers without a table: a plain loop over the records, or
//! look-ups in batches that add to each record in place.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;

use super::{DisaggregationJob, Total};
use crate::Error;
use crate::aggregate::baseline::{self, LIVE, LOOK_UPS, Memory, RECORDS};
use crate::aggregate::objects::{Objects, Placed};
use crate::aggregate::workload::{Pick, Workload};
use crate::clock::Clock;
use crate::figures::Percentiles;
use crate::rounds::{Contender, Outcome, run_threads};
use crate::tally::Tally;

/// One form of the baseline, on memory that both share.
pub(crate) struct DisaggregationBaseline {
    name: &'static str,
    memory: Arc<Mutex<Memory>>,
}

/// Words are loaded and stored relaxed, as plain ones are; but threads may share them.
type Record = [AtomicU64; 3];

impl DisaggregationBaseline {
    /// Those forms that are wanted.
    pub(crate) fn forms(
        objects: &Objects,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Vec<DisaggregationBaseline> {
        let names: Vec<_> = [RECORDS, LOOK_UPS].into_iter().filter(|name| wanted(name)).collect();
        if names.is_empty() {
            return Vec::new();
        }
        let memory = Arc::new(Mutex::new(Memory::load(objects)));
        let form = |name| DisaggregationBaseline { name, memory: Arc::clone(&memory) };
        names.into_iter().map(form).collect()
    }

    /// Adds to each selected record its part, so many times over.
    fn add_parts(&self, job: &DisaggregationJob, times: i64) -> (Duration, Tally) {
        let mut memory = self.memory.lock();
        let (records, buckets) = memory.records_and_buckets();
        let (records, total) = (&*records, &*job.total);
        let (elapsed, tallies) = if self.name == RECORDS {
            run_threads(Clock::Wall, &parts(records, job.threads), |part| every(part, total, times))
        } else {
            run_threads(Clock::Wall, &parts(total.picked.placed(), job.threads), |part| {
                look_up(buckets, records, part, total, times)
            })
        };
        (elapsed, tallies.into_iter().fold(Tally::default(), Tally::merge))
    }
}

fn parts<T>(all: &[T], threads: usize) -> Vec<&[T]> {
    all.chunks(all.len().div_ceil(threads).max(1)).collect()
}

impl Contender<DisaggregationJob> for DisaggregationBaseline {
    fn name(&self) -> &str {
        self.name
    }

    fn runs(&self, workload: Workload) -> bool {
        let Workload::Disaggregate(pick) = workload else { return false };
        (self.name == RECORDS) == (pick == Pick::Everything)
    }

    fn run(&mut self, job: &DisaggregationJob) -> Result<Outcome, Error> {
        let (mut elapsed, mut tally) = (Duration::ZERO, Tally::default());
        for _ in 0..job.times {
            let (took, found) = self.add_parts(job, 1);
            elapsed += took;
            tally = tally.merge(found);
            self.add_parts(job, -1);
        }
        Ok(Outcome { elapsed, tally, operations: None })
    }

    fn latencies(&mut self, _: &DisaggregationJob) -> Result<Percentiles, Error> {
        Err("the baseline has no operations to time".into())
    }

    fn is_timed_singly(&self) -> bool {
        false
    }
}

fn every(records: &[Record], total: &Total, times: i64) -> Tally {
    let mut tally = Tally::default();
    for [control, key, word] in records {
        if control.load(Relaxed) & LIVE != 0 {
            let number = u64::from_be(key.load(Relaxed)) as u32;
            tally.add(add(word, total.part(number) * times));
        }
    }
    tally
}

fn look_up(
    buckets: &[u64],
    records: &[Record],
    wanted: &[Placed],
    total: &Total,
    times: i64,
) -> Tally {
    let mut tally = Tally::default();
    baseline::in_batches(buckets, wanted, |place, object| {
        let [control, found, word] = &records[place];
        if control.load(Relaxed) & LIVE != 0 && found.load(Relaxed) == object.key_word() {
            tally.add(add(word, total.part(object.number) * times));
        }
    });
    tally
}

#[inline]
fn add(word: &AtomicU64, part: i64) -> u64 {
    let after = word.load(Relaxed).wrapping_add_signed(part);
    word.store(after, Relaxed);
    after
}

#[cfg(test)]
mod tests {
    use super::super::PICKS;
    use super::*;
    use crate::aggregate::workload::Picked;

    #[test]
    fn every_form_disaggregates_the_total_and_takes_it_back() {
        let objects = Arc::new(Objects::new(2_000));
        let mut forms = DisaggregationBaseline::forms(&objects, &|_| true);
        for pick in PICKS {
            let picked = Arc::new(Picked::new(pick, &objects).expect("the query is sound"));
            let total = Arc::new(Total::new(&picked).expect("the total is sound"));
            for threads in [1, 3] {
                let job = DisaggregationJob { total: Arc::clone(&total), threads, times: 2 };
                let mut ran = 0;
                for form in &mut forms {
                    if form.runs(Workload::Disaggregate(pick)) {
                        let outcome = form.run(&job).expect("it cannot fail");
                        assert_eq!(outcome.tally, job.expected(), "{}, {}", form.name, pick.name());
                        ran += 1;
                    }
                }
                assert_eq!(ran, 1, "{}", pick.name());
            }
        }
    }
}
