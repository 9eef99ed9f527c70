//! The cost of touching the same memory without a map: as many bytes on 2 MiB pages as the
//! hash log takes, buckets of 64 bytes, and records of 24 bytes in the order of their numbers.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use memmap2::MmapMut;
use parking_lot::RwLock;
use zerocopy::FromBytes;

use super::load::{Load, Loadable};
use super::workload::{Draw, Job, Mix, Op, Workload, key};
use crate::Error;
use crate::figures::Percentiles;
use crate::pages::map_huge;
use crate::rounds::{Contender, Outcome, run_threads};
use crate::tally::Tally;

const RECORD_WORDS: usize = 3;
const BUCKET_WORDS: usize = 8;
/// Records of a bucket, before rounding the buckets up to a power of two.
const BUCKET_RECORDS: usize = 6;

/// Names that `--engines` knows.
pub(crate) const NAMES: [&str; 3] = ["floor-record", "floor-bucket-and-record", "floor-chain"];

/// Which lines an operation touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The record's line, at an address that is known at once.
    Record,
    /// A bucket's line, then the record's line at an address read there: what an index costs.
    BucketAndRecord,
    /// As `Record`, but each address is known only when the last line has come.
    Chain,
}

impl Shape {
    pub(crate) const ALL: [Shape; 3] = [Shape::Record, Shape::BucketAndRecord, Shape::Chain];

    pub(crate) fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

pub(crate) struct Baseline {
    shape: Shape,
    memory: Arc<RwLock<Option<Memory>>>,
}

impl Baseline {
    /// Those shapes that are wanted, on the same memory.
    pub(crate) fn shapes(wanted: &dyn Fn(&str) -> bool) -> Vec<Baseline> {
        let memory = Arc::new(RwLock::new(None));
        let shapes = Shape::ALL.into_iter().filter(|shape| wanted(shape.name()));
        shapes.map(|shape| Baseline { shape, memory: Arc::clone(&memory) }).collect()
    }
}

struct Memory {
    buckets: MmapMut,
    records: MmapMut,
}

impl Contender<Job> for Baseline {
    fn name(&self) -> &str {
        self.shape.name()
    }

    fn runs(&self, workload: Workload) -> bool {
        let Workload::Mixed(mix, Draw::Uniform) = workload else { return false };
        match self.shape {
            Shape::Record | Shape::BucketAndRecord => matches!(mix, Mix::Reads(0 | 100)),
            Shape::Chain => mix == Mix::Reads(100),
        }
    }

    fn run(&mut self, job: &Job) -> Result<Outcome, Error> {
        let mut memory = self.memory.write();
        let memory = memory.as_mut().expect("loaded before it runs");
        let words = |map| <[AtomicU64]>::mut_from_bytes(map).expect("a map is page-aligned");
        let buckets = &*words(&mut memory.buckets[..]);
        let records = &*words(&mut memory.records[..]);
        let (elapsed, tallies) = run_threads(job.clock, &job.plans, |plan| match job.mix {
            Mix::Reads(0) => store(self.shape, buckets, records, plan),
            _ => load(self.shape, buckets, records, plan),
        });
        let tally = tallies.into_iter().fold(Tally::default(), Tally::merge);
        Ok(Outcome { elapsed, tally, operations: None })
    }

    fn latencies(&mut self, _: &Job) -> Result<Percentiles, Error> {
        Err("the baseline has no operations to time".into())
    }

    fn is_timed_singly(&self) -> bool {
        false
    }
}

#[inline]
fn record(number: u64) -> usize {
    number as usize * RECORD_WORDS
}

/// The first word of a key's bucket.
#[inline]
fn bucket(buckets: &[AtomicU64], number: u32) -> usize {
    // As many buckets as a power of two says.
    (key(number) as usize & (buckets.len() / BUCKET_WORDS - 1)) * BUCKET_WORDS
}

fn load(shape: Shape, buckets: &[AtomicU64], records: &[AtomicU64], plan: &[Op]) -> Tally {
    let mut tally = Tally::default();
    // Buckets hold zeros, which the compiler must not know.
    let mut last = 0;
    let mask = black_box(0);
    for op in plan {
        let number = u64::from(op.number());
        let offset = match shape {
            Shape::Record => 0,
            Shape::BucketAndRecord => buckets[bucket(buckets, op.number())].load(Relaxed),
            Shape::Chain => last & mask,
        };
        last = records[record(number + offset)].load(Relaxed);
        tally.add(last);
    }
    tally
}

fn store(shape: Shape, buckets: &[AtomicU64], records: &[AtomicU64], plan: &[Op]) -> Tally {
    for op in plan {
        let number = u64::from(op.number());
        let offset = match shape {
            Shape::Record | Shape::Chain => 0,
            Shape::BucketAndRecord => buckets[bucket(buckets, op.number())].load(Relaxed),
        };
        records[record(number + offset)].store(number, Relaxed);
    }
    Tally::default()
}

impl Loadable for Baseline {
    fn load(&mut self, keys: u32) -> Result<Option<Load>, Error> {
        let mut memory = self.memory.write();
        if memory.is_some() {
            return Ok(None);
        }
        let keys = keys as usize;
        let bucket_count = (keys / BUCKET_RECORDS).next_power_of_two();
        let mut buckets = map_huge(bucket_count * BUCKET_WORDS * 8);
        let mut records = map_huge(keys * RECORD_WORDS * 8);
        // A write gives each page memory of its own.
        buckets.fill(0);
        let record_bytes = RECORD_WORDS * 8;
        for (number, record) in records.chunks_exact_mut(record_bytes).enumerate() {
            record[..8].copy_from_slice(&(number as u64).to_le_bytes());
        }
        *memory = Some(Memory { buckets, records });
        Ok(None)
    }

    fn check_everything(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
