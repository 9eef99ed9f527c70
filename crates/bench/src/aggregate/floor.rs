//! The cost without a table: a plain loop over the same bytes, which are records of 24 bytes
//! with a mark of life, a key and an integer, in the order of loading; the integers alone, dense;
//! and look-ups in batches, each of the line of a bucket and of the record that it leads to.
//!
//! Batches overlap their waits without a hint to the processor: the loads of a batch do not depend
//! on each other, so that they are in flight together.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use memmap2::MmapMut;
use parking_lot::Mutex;
use zerocopy::FromBytes;

use super::disaggregate;
use super::job::{AggregateJob, Pick};
use super::objects::{Objects, Placed, amount, key};
use crate::harness::*;

type Record = [u64; 3];
pub(super) const LIVE: u64 = 1;
const BUCKET_WORDS: usize = 8;
/// Records of a bucket, before rounding the buckets up to a power of two.
const BUCKET_RECORDS: usize = 6;
/// Look-ups that are in flight together.
const BATCH: usize = 32;

pub(crate) const RECORDS: &str = "floor-records";
pub(crate) const COLUMN: &str = "floor-column";
pub(crate) const LOOK_UPS: &str = "floor-look-up";

pub(crate) struct AggregateFloor {
    pub(crate) name: &'static str,
    pub(crate) memory: Arc<Mutex<RecordMemory>>,
}

pub(crate) struct RecordMemory {
    records: MmapMut,
    column: MmapMut,
    buckets: MmapMut,
}

impl RecordMemory {
    pub(super) fn load(objects: &Objects) -> RecordMemory {
        let count = objects.count() as usize;
        let mut memory = RecordMemory {
            records: map_huge(count * size_of::<Record>()),
            column: map_huge(count * 8),
            buckets: map_huge((count / BUCKET_RECORDS).next_power_of_two() * BUCKET_WORDS * 8),
        };
        let records = <[Record]>::mut_from_bytes(&mut memory.records).expect(ALIGNED);
        let column = <[u64]>::mut_from_bytes(&mut memory.column).expect(ALIGNED);
        for ((record, word), &number) in records.iter_mut().zip(column).zip(&objects.in_load_order)
        {
            *word = amount(number) as u64;
            *record = [LIVE, u64::from_ne_bytes(key(number)), *word];
        }
        // A write gives each page memory of its own.
        memory.buckets.fill(0);
        memory
    }

    fn records(&self) -> &[Record] {
        <[Record]>::ref_from_bytes(&self.records).expect(ALIGNED)
    }

    fn column(&self) -> &[u64] {
        <[u64]>::ref_from_bytes(&self.column).expect(ALIGNED)
    }

    fn buckets(&self) -> &[u64] {
        <[u64]>::ref_from_bytes(&self.buckets).expect(ALIGNED)
    }
}

type SharedWords<'a> = (&'a mut [[AtomicU64; 3]], &'a [u64]);

impl RecordMemory {
    pub(super) fn records_and_buckets(&mut self) -> SharedWords<'_> {
        let records = <[[AtomicU64; 3]]>::mut_from_bytes(&mut self.records).expect(ALIGNED);
        (records, <[u64]>::ref_from_bytes(&self.buckets).expect(ALIGNED))
    }
}

const ALIGNED: &str = "a map is page-aligned and as long as it was asked to be";

impl Engine<AggregateJob> for AggregateFloor {
    fn name(&self) -> &str {
        self.name
    }

    fn runs(&self, job: &AggregateJob) -> bool {
        let pick = job.picked.pick;
        match self.name {
            COLUMN => pick == Pick::Everything && job.total.is_none(),
            // A total is added in place by look-ups, where not all objects are selected.
            RECORDS if job.total.is_some() => pick == Pick::Everything,
            RECORDS => !pick.is_list(),
            _ => pick != Pick::Everything,
        }
    }

    fn run(&mut self, job: &AggregateJob) -> Result<Outcome> {
        let mut memory = self.memory.lock();
        if let Some(outcome) = disaggregate::floor(self.name, &mut memory, job) {
            return Ok(outcome);
        }
        let (records, picked) = (memory.records(), &*job.picked);
        let (elapsed, tally) = match (self.name, picked.pick) {
            (COLUMN, _) => run(job, memory.column(), |part| {
                let sum = part.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
                Tally { entries: part.len() as u64, sum }
            }),
            (RECORDS, Pick::Everything) => run(job, records, |part| those(part, |_| true)),
            (RECORDS, _) => {
                let numbers = u64::from(picked.numbers.start)..u64::from(picked.numbers.end);
                run(job, records, |part| those(part, |key| numbers.contains(&u64::from_be(key))))
            }
            _ => run(job, picked.placed(), |part| look_up(memory.buckets(), records, part)),
        };
        Ok(Outcome::of(picked.len() * job.times, elapsed, tally))
    }
}

pub(super) fn parts<T>(all: &[T], threads: usize) -> Vec<&[T]> {
    all.chunks(all.len().div_ceil(threads).max(1)).collect()
}

fn run<T: Sync>(
    job: &AggregateJob,
    all: &[T],
    fold: impl Fn(&[T]) -> Tally + Sync,
) -> (Duration, Tally) {
    let (elapsed, tallies) = run_threads(&parts(all, job.threads), |part| {
        (0..job.times).map(|_| fold(black_box(part))).sum()
    });
    (elapsed, tallies.into_iter().sum())
}

/// Sums without branches: keys lie in a random order, and half of the guesses would be wrong.
#[inline]
fn those(records: &[Record], is_selected: impl Fn(u64) -> bool) -> Tally {
    let mut tally = Tally::default();
    for [control, key, word] in records {
        let counts = u64::from((control & LIVE != 0) & is_selected(*key));
        tally.entries += counts;
        tally.sum = tally.sum.wrapping_add(word & counts.wrapping_neg());
    }
    tally
}

fn look_up(buckets: &[u64], records: &[Record], wanted: &[Placed]) -> Tally {
    let mut tally = Tally::default();
    in_batches(buckets, wanted, |place, object| {
        let [control, found, word] = records[place];
        if control & LIVE != 0 && found == object.key_word() {
            tally.add(word);
        }
    });
    tally
}

/// Calls `visit` with each object and the place of its record, by way of the bucket of its key.
#[inline]
pub(super) fn in_batches(
    buckets: &[u64],
    wanted: &[Placed],
    mut visit: impl FnMut(usize, &Placed),
) {
    // As many buckets as a power of two says.
    let mask = (buckets.len() / BUCKET_WORDS - 1) as u64;
    let bucket =
        |number: u32| (Random::new(u64::from(number)).next() & mask) as usize * BUCKET_WORDS;
    let mut places = [0; BATCH];
    for batch in wanted.chunks(BATCH) {
        for (place, object) in places.iter_mut().zip(batch) {
            // Buckets hold zeros, which the compiler does not know.
            *place = object.place as usize + buckets[bucket(object.number)] as usize;
        }
        for (place, object) in places.iter().zip(batch) {
            visit(*place, object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::disaggregate::SpreadTotal;
    use super::super::job::Picked;
    use super::*;

    #[test]
    fn every_form_sums_what_is_selected_and_spreads_a_total_over_it() {
        let objects = Arc::new(Objects::new(2_000));
        let memory = Arc::new(Mutex::new(RecordMemory::load(&objects)));
        let form = |name| AggregateFloor { name, memory: Arc::clone(&memory) };
        let mut ran = [0; 2];
        for pick in Pick::ALL {
            let picked = Arc::new(Picked::new(pick, &objects).expect("the query is sound"));
            let total = Arc::new(SpreadTotal::new(&picked).expect("the total is sound"));
            for (threads, total) in [(1, None), (3, None), (1, Some(&total)), (3, Some(&total))] {
                let (picked, total) = (Arc::clone(&picked), total.cloned());
                let job = AggregateJob { picked, total, threads, times: 2 };
                for mut form in [RECORDS, COLUMN, LOOK_UPS].map(form) {
                    if form.runs(&job) {
                        let found = form.run(&job).expect("it cannot fail").tally;
                        assert_eq!(Some(found), job.expected(), "{}, {}", form.name, pick.name());
                        ran[usize::from(job.total.is_some())] += 1;
                    }
                }
            }
        }
        assert_eq!(ran, [2 * (1 + 4 + 6), 2 * (1 + 6)]);
    }
}
