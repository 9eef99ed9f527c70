//! The speed of disaggregation: a total is spread over the objects.
//!
//! A run adds to each selected object its part of a total that is no multiple of their number, so
//! that some parts are greater by one. Then, untimed, the parts are taken back, so that every run
//! finds what was loaded. Every report is compared with what it must be, and an independent sum
//! with the report.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use sapwood::aggregate::{self, Disaggregator, Execution, Value};

use super::engines::LoadedTable;
use super::floor::{LIVE, RECORDS, RecordMemory, in_batches, parts};
use super::job::{AggregateJob, FIELD, Fraction, LAYOUT, Pick, Picked};
use super::objects::Placed;
use super::{LOG, LOOK_UP, ORDERED_LOOK_UP, ORDERED_RANGE, WALK};
use crate::harness::*;

/// The part of every object; the first half, by key, gets one more.
const PART: i64 = 3;

pub(crate) const SPREAD: [(&str, Pick); 6] = [
    (WALK, Pick::Everything),
    (LOG, Pick::Everything),
    (LOOK_UP, Pick::Range(Fraction::Tenth)),
    (ORDERED_RANGE, Pick::Range(Fraction::Tenth)),
    (LOOK_UP, Pick::List(Fraction::Tenth)),
    (ORDERED_LOOK_UP, Pick::List(Fraction::Tenth)),
];

pub(crate) const PICKS: [Pick; 3] =
    [Pick::Everything, Pick::Range(Fraction::Tenth), Pick::List(Fraction::Tenth)];

pub(crate) struct SpreadTotal {
    there: Disaggregator,
    back: Disaggregator,
    pub(crate) after: i128,
    /// Objects with lesser numbers get a unit more.
    cutoff: u32,
}

impl SpreadTotal {
    pub(crate) fn new(picked: &Picked) -> Result<SpreadTotal> {
        let greater = picked.len() / 2;
        let total = PART as i128 * picked.len() as i128 + greater as i128;
        let compiled = |total| {
            aggregate::Disaggregation::new(LAYOUT.parse()?, FIELD, total)
                .select(picked.query.selection().clone())
                .equally()
                .adding()
                .compile()
        };
        let (there, back) = (compiled(total)?, compiled(-total)?);
        let cutoff = picked.placed()[greater].number;
        Ok(SpreadTotal { there, back, after: picked.sum() + total, cutoff })
    }

    #[inline]
    fn part(&self, number: u32) -> i64 {
        PART + i64::from(number < self.cutoff)
    }
}

impl LoadedTable {
    /// Disaggregates once and takes it back; answers how long the first took.
    pub(crate) fn there_and_back(
        &self,
        picked: &Picked,
        total: &SpreadTotal,
        execution: &Execution<'_>,
    ) -> Result<(Duration, Tally)> {
        let begin = Instant::now();
        let (changed, after) = self.disaggregate(&total.there, execution)?;
        let elapsed = begin.elapsed();
        let (found, sum, _) = self.sum(&picked.query, execution)?;
        let (restored, before) = self.disaggregate(&total.back, execution)?;
        let count = picked.len() as u64;
        if (found, sum) != (changed, after) || (restored, before) != (count, picked.sum()) {
            bail!(
                "{changed} objects that sum to {after} were reported, and {found} that sum to \
                 {sum} are there; after taking it back {restored} that sum to {before}, not {}",
                picked.sum()
            );
        }
        Ok((elapsed, Tally { entries: changed, sum: after as u64 }))
    }

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
/// look-ups in batches that add to each record in place.
pub(crate) fn floor(name: &str, memory: &mut RecordMemory, job: &AggregateJob) -> Option<Outcome> {
    let total = job.total.as_deref()?;
    let (mut elapsed, mut tally) = (Duration::ZERO, Tally::default());
    for _ in 0..job.times {
        let (took, found) = add_parts(name, memory, job, total, 1);
        elapsed += took;
        tally = tally.merge(found);
        add_parts(name, memory, job, total, -1);
    }
    Some(Outcome::of(job.picked.len() * job.times, elapsed, tally))
}

/// Words are loaded and stored relaxed, as plain ones are; but threads may share them.
type SharedRecord = [AtomicU64; 3];

fn add_parts(
    name: &str,
    memory: &mut RecordMemory,
    job: &AggregateJob,
    total: &SpreadTotal,
    times: i64,
) -> (Duration, Tally) {
    let (records, buckets) = memory.records_and_buckets();
    let records = &*records;
    let (elapsed, tallies) = if name == RECORDS {
        run_threads(&parts(records, job.threads), |part| every(part, total, times))
    } else {
        run_threads(&parts(job.picked.placed(), job.threads), |part| {
            look_up(buckets, records, part, total, times)
        })
    };
    (elapsed, tallies.into_iter().sum())
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
