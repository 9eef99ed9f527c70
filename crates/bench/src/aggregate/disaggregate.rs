//! The speed of disaggregation: a total is spread over the objects.
//!
//! A run adds to each selected object its part of a total that is no multiple of their number, so
//! that some parts are greater by one. Then, untimed, the parts are taken back, so that every run
//! finds what was loaded. Every report is compared with what it must be, and an independent sum
//! with the report.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sapwood::aggregate::{self, Disaggregator, Execution, Value};

use super::engines::{LoadedTable, Patience, Way, execution_by};
use super::floor::{LIVE, RECORDS, RecordMemory, in_batches};
use super::job::{FIELD, Fraction, LAYOUT, Pick, Picked, repeated};
use super::objects::Placed;
use super::{LOG, LOOK_UP, ORDERED_LOOK_UP, ORDERED_RANGE, WALK};
use crate::harness::*;

/// The part of every object; the first half, by key, gets one more.
const PART: i64 = 3;

const SPREAD: [(&str, Pick); 6] = [
    (WALK, Pick::Everything),
    (LOG, Pick::Everything),
    (LOOK_UP, Pick::Range(Fraction::Tenth)),
    (ORDERED_RANGE, Pick::Range(Fraction::Tenth)),
    (LOOK_UP, Pick::List(Fraction::Tenth)),
    (ORDERED_LOOK_UP, Pick::List(Fraction::Tenth)),
];

pub(crate) const PICKS: [Pick; 3] =
    [Pick::Everything, Pick::Range(Fraction::Tenth), Pick::List(Fraction::Tenth)];

/// A total for the selected objects, and the way back.
pub(crate) struct SpreadTotal {
    pub(crate) picked: Arc<Picked>,
    there: Disaggregator,
    back: Disaggregator,
    /// The sum of the objects afterwards.
    after: i128,
    /// Objects with lesser numbers get a unit more.
    cutoff: u32,
}

impl SpreadTotal {
    pub(crate) fn new(picked: &Arc<Picked>) -> Result<SpreadTotal> {
        let greater = picked.len() / 2;
        let total = PART as i128 * picked.len() as i128 + greater as i128;
        let compiled = |total| {
            aggregate::Disaggregation::new(LAYOUT.parse()?, FIELD, total)
                .select(picked.query.selection().clone())
                .equally()
                .adding()
                .compile()
        };
        Ok(SpreadTotal {
            there: compiled(total)?,
            back: compiled(-total)?,
            after: picked.sum() + total,
            cutoff: picked.placed()[greater].number,
            picked: Arc::clone(picked),
        })
    }

    #[inline]
    fn part(&self, number: u32) -> i64 {
        PART + i64::from(number < self.cutoff)
    }
}

#[derive(Clone)]
pub(crate) struct Disaggregation {
    pub(crate) total: Arc<SpreadTotal>,
    pub(crate) threads: usize,
    pub(crate) times: usize,
}

impl Job for Disaggregation {
    fn workload(&self) -> String {
        format!("disaggregate over {}", self.total.picked.pick.name())
    }

    fn unit(&self) -> &'static Unit {
        &OBJECTS
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn expected(&self) -> Option<Tally> {
        let once = Tally { entries: self.total.picked.len() as u64, sum: self.total.after as u64 };
        Some(repeated(once, self.times))
    }
}

pub(crate) struct Spread {
    way: Way,
    store: LoadedTable,
    patience: Patience,
}

impl Spread {
    pub(crate) fn new(way: Way, store: LoadedTable) -> Spread {
        Spread { way, store, patience: Patience::default() }
    }

    /// Disaggregates once and takes it back; answers how long the first took.
    fn there_and_back(
        &self,
        total: &SpreadTotal,
        execution: &Execution<'_>,
    ) -> Result<(Duration, Tally)> {
        let begin = Instant::now();
        let (changed, after) = self.store.disaggregate(&total.there, execution)?;
        let elapsed = begin.elapsed();
        let (found, sum, _) = self.store.sum(&total.picked.query, execution)?;
        let (restored, before) = self.store.disaggregate(&total.back, execution)?;
        let count = total.picked.len() as u64;
        if (found, sum) != (changed, after) || (restored, before) != (count, total.picked.sum()) {
            bail!(
                "{changed} objects that sum to {after} were reported, and {found} that sum to \
                 {sum} are there; after taking it back {restored} that sum to {before}, not {}",
                total.picked.sum()
            );
        }
        Ok((elapsed, Tally { entries: changed, sum: after as u64 }))
    }
}

impl Engine<Disaggregation> for Spread {
    fn name(&self) -> &str {
        self.way.name
    }

    fn runs(&self, job: &Disaggregation) -> bool {
        let pick = job.total.picked.pick;
        SPREAD.contains(&(self.way.name, pick)) && self.patience.allows(pick, job.threads)
    }

    fn run(&mut self, job: &Disaggregation) -> Result<Outcome> {
        let execution = execution_by(self.way, job.threads);
        let (mut elapsed, mut tally) = (Duration::ZERO, Tally::default());
        for _ in 0..job.times {
            let (took, found) = self.there_and_back(&job.total, &execution)?;
            elapsed += took;
            tally = tally.merge(found);
        }
        self.patience.note(job.total.picked.pick, job.threads, elapsed);
        Ok(Outcome::of(job.total.picked.len() * job.times, elapsed, tally))
    }
}

impl LoadedTable {
    /// Disaggregates a total; answers how many objects were changed, and what they then sum to.
    fn disaggregate(
        &self,
        total: &Disaggregator,
        execution: &Execution<'_>,
    ) -> Result<(u64, i128)> {
        let settled = self.table.disaggregate_with(total, execution)?;
        if let Some(error) = settled.stopped {
            return Err(error.into());
        }
        match settled.report.sum_after {
            Some(Value::Int(sum)) => Ok((settled.report.changed, sum)),
            other => bail!("integers sum to {other:?}, not to an integer"),
        }
    }
}

/// The cost of adding to the same integers without a table: a plain loop over the records, or
/// look-ups in batches that add to each record in place. Both forms share memory.
pub(crate) struct SpreadFloor {
    pub(crate) name: &'static str,
    pub(crate) memory: Arc<Mutex<RecordMemory>>,
}

/// Words are loaded and stored relaxed, as plain ones are; but threads may share them.
type SharedRecord = [AtomicU64; 3];

impl SpreadFloor {
    fn add_parts(&self, job: &Disaggregation, times: i64) -> (Duration, Tally) {
        let mut memory = self.memory.lock();
        let (records, buckets) = memory.records_and_buckets();
        let (records, total) = (&*records, &*job.total);
        let (elapsed, tallies) = if self.name == RECORDS {
            run_threads(&parts(records, job.threads), |part| every(part, total, times))
        } else {
            run_threads(&parts(total.picked.placed(), job.threads), |part| {
                look_up(buckets, records, part, total, times)
            })
        };
        (elapsed, tallies.into_iter().sum())
    }
}

fn parts<T>(all: &[T], threads: usize) -> Vec<&[T]> {
    all.chunks(all.len().div_ceil(threads).max(1)).collect()
}

impl Engine<Disaggregation> for SpreadFloor {
    fn name(&self) -> &str {
        self.name
    }

    fn runs(&self, job: &Disaggregation) -> bool {
        (self.name == RECORDS) == (job.total.picked.pick == Pick::Everything)
    }

    fn run(&mut self, job: &Disaggregation) -> Result<Outcome> {
        let (mut elapsed, mut tally) = (Duration::ZERO, Tally::default());
        for _ in 0..job.times {
            let (took, found) = self.add_parts(job, 1);
            elapsed += took;
            tally = tally.merge(found);
            self.add_parts(job, -1);
        }
        Ok(Outcome::of(job.total.picked.len() * job.times, elapsed, tally))
    }
}

fn every(records: &[SharedRecord], total: &SpreadTotal, times: i64) -> Tally {
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
    records: &[SharedRecord],
    wanted: &[Placed],
    total: &SpreadTotal,
    times: i64,
) -> Tally {
    let mut tally = Tally::default();
    in_batches(buckets, wanted, |place, object| {
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
    use super::super::floor::LOOK_UPS;
    use super::super::objects::Objects;
    use super::*;

    #[test]
    fn every_form_disaggregates_the_total_and_takes_it_back() {
        let objects = Arc::new(Objects::new(2_000));
        let memory = Arc::new(Mutex::new(RecordMemory::load(&objects)));
        let form = |name| SpreadFloor { name, memory: Arc::clone(&memory) };
        for pick in PICKS {
            let picked = Arc::new(Picked::new(pick, &objects).expect("the query is sound"));
            let total = Arc::new(SpreadTotal::new(&picked).expect("the total is sound"));
            for threads in [1, 3] {
                let job = Disaggregation { total: Arc::clone(&total), threads, times: 2 };
                let forms = [RECORDS, LOOK_UPS].map(form);
                let found: Vec<Option<Tally>> = forms
                    .into_iter()
                    .filter(|form| form.runs(&job))
                    .map(|mut form| Some(form.run(&job).expect("it cannot fail").tally))
                    .collect();
                assert_eq!(found, [job.expected()], "{}", pick.name());
            }
        }
    }
}
