//! The cost of touching the same memory without a map: as many bytes on 2 MiB pages as the
//! hash log takes, buckets of 64 bytes, and records of 24 bytes in the order of their numbers.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use memmap2::MmapMut;
use parking_lot::RwLock;
use zerocopy::FromBytes;

use super::job::{Draw, HashJob, Mix, key};
use super::store::{HashContender, HashLoad};
use crate::harness::*;

const RECORD_WORDS: usize = 3;
const BUCKET_WORDS: usize = 8;
/// Records of a bucket, before rounding the buckets up to a power of two.
const BUCKET_RECORDS: usize = 6;

/// The lines of memory that an operation touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FloorShape {
    /// The record's line, at an address that is known at once.
    Record,
    /// A bucket's line, then the record's line at an address read there: what an index costs.
    BucketAndRecord,
    /// The record's line, at an address that is known only when the last line has come.
    Chain,
}

const SHAPES: [(&str, FloorShape); 3] = [
    ("floor-record", FloorShape::Record),
    ("floor-bucket-and-record", FloorShape::BucketAndRecord),
    ("floor-chain", FloorShape::Chain),
];

pub(crate) struct HashFloor {
    name: &'static str,
    shape: FloorShape,
    memory: Arc<RwLock<Option<FloorMemory>>>,
}

pub(crate) fn floors(wanted: &dyn Fn(&str) -> bool) -> Vec<HashFloor> {
    let memory = Arc::new(RwLock::new(None));
    let shapes = SHAPES.into_iter().filter(|(name, _)| wanted(name));
    shapes.map(|(name, shape)| HashFloor { name, shape, memory: Arc::clone(&memory) }).collect()
}

struct FloorMemory {
    buckets: MmapMut,
    records: MmapMut,
}

impl Engine<HashJob> for HashFloor {
    fn name(&self) -> &str {
        self.name
    }

    fn runs(&self, job: &HashJob) -> bool {
        let mixes: &[Mix] = match self.shape {
            FloorShape::Record | FloorShape::BucketAndRecord => &[Mix::Reads(0), Mix::Reads(100)],
            FloorShape::Chain => &[Mix::Reads(100)],
        };
        job.draw == Draw::Uniform && mixes.contains(&job.mix)
    }

    fn run(&mut self, job: &HashJob) -> Result<Outcome> {
        let mut memory = self.memory.write();
        let memory = memory.as_mut().expect("loaded before it runs");
        let words = |map| <[AtomicU64]>::mut_from_bytes(map).expect("a map is page-aligned");
        let buckets = &*words(&mut memory.buckets[..]);
        let records = &*words(&mut memory.records[..]);
        let (elapsed, tallies) = run_threads(&job.plans, |plan| {
            let mut tally = Tally::default();
            if job.mix == Mix::Reads(0) {
                visit(self.shape, buckets, plan, |place, number| {
                    records[place].store(number, Relaxed);
                    0
                });
            } else {
                visit(self.shape, buckets, plan, |place, _| {
                    let word = records[place].load(Relaxed);
                    tally.add(word);
                    word
                });
            }
            tally
        });
        Ok(Outcome::of(job.operations(), elapsed, tallies.into_iter().sum()))
    }
}

#[inline]
fn bucket(buckets: &[AtomicU64], number: u32) -> usize {
    // As many buckets as a power of two says.
    (key(number) as usize & (buckets.len() / BUCKET_WORDS - 1)) * BUCKET_WORDS
}

/// Calls `touch` with the place of each record, which answers a word of it.
#[inline]
fn visit(
    shape: FloorShape,
    buckets: &[AtomicU64],
    plan: &[Op],
    mut touch: impl FnMut(usize, u64) -> u64,
) {
    // Buckets hold zeros, which the compiler must not know.
    let (mut last, mask) = (0, black_box(0));
    for op in plan {
        let number = u64::from(op.number());
        let offset = match shape {
            FloorShape::Record => 0,
            FloorShape::BucketAndRecord => buckets[bucket(buckets, op.number())].load(Relaxed),
            FloorShape::Chain => last & mask,
        };
        last = touch((number + offset) as usize * RECORD_WORDS, number);
    }
}

impl HashContender for HashFloor {
    fn load(&mut self, keys: u32) -> Result<Option<HashLoad>> {
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
        *memory = Some(FloorMemory { buckets, records });
        Ok(None)
    }

    fn check_everything(&mut self) -> Result {
        Ok(())
    }
}
