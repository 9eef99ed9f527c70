//! The workloads: keys, values, and the timed operations.
//!
//! Entries are numbered from 0. An entry's key is its number scrambled, so that neither the order
//! of loading nor popularity shows in the keys; its value keeps the number in the upper half, so
//! that every read is checked by one sum, and in the lower half what was last written or added.

use std::collections::HashMap;

use crate::clock::Clock;
use crate::figures::{Timed, Unit};
use crate::random::{Random, scrambled, zipf};
use crate::rounds::Run;
use crate::tally::Tally;

/// Written keys that are looked at after each run.
const PROBES: usize = 512;

/// The key of entry `number`: no two numbers have one key.
#[inline]
#[must_use]
pub fn key(number: u32) -> u64 {
    scrambled(u64::from(number))
}

/// A value of entry `number`.
#[inline]
#[must_use]
pub fn value(number: u32, low: u32) -> u64 {
    u64::from(number) << 32 | u64::from(low)
}

/// The number that a value was written for.
#[inline]
#[must_use]
pub fn number_of(value: u64) -> u64 {
    value >> 32
}

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Reads, this many in a hundred, and blind updates.
    Reads(u8),
    /// One is added to each value, in place.
    ReadModifyWrite,
}

impl Mix {
    /// In the order of a run: what adds comes last, so that its sums can be checked.
    pub(crate) const ALL: [Mix; 7] = [
        Mix::Reads(100),
        Mix::Reads(99),
        Mix::Reads(95),
        Mix::Reads(90),
        Mix::Reads(50),
        Mix::Reads(0),
        Mix::ReadModifyWrite,
    ];

    /// FASTER's four.
    pub(crate) const FOUR: [Mix; 4] =
        [Mix::Reads(100), Mix::Reads(50), Mix::Reads(0), Mix::ReadModifyWrite];

    pub(crate) fn name(self) -> String {
        match self {
            Mix::Reads(100) => "read".to_owned(),
            Mix::Reads(0) => "update".to_owned(),
            Mix::Reads(percent) => format!("read-{percent}"),
            Mix::ReadModifyWrite => "read-modify-write".to_owned(),
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Mix> {
        Self::ALL.into_iter().find(|mix| mix.name() == name)
    }

    fn writes(self, random: &mut Random) -> bool {
        match self {
            Mix::Reads(percent) => random.below(100) >= u32::from(percent),
            Mix::ReadModifyWrite => true,
        }
    }
}

/// The distribution of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Draw {
    /// All alike
    Uniform,
    /// By Zipf's law with exponent 0.99, popular keys scattered
    Zipf,
}

impl Draw {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Draw::Uniform => "uniform",
            Draw::Zipf => "zipf",
        }
    }

    /// `count` numbers below `keys`.
    pub(crate) fn numbers(self, keys: u32, count: usize, seed: u64) -> Vec<u32> {
        match self {
            Draw::Uniform => {
                let mut random = Random::new(seed);
                (0..count).map(|_| random.below(keys)).collect()
            }
            Draw::Zipf => zipf(keys, count, seed),
        }
    }
}

/// The timed work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    /// All keys are put into an empty store.
    Load,
    /// Operations on loaded keys.
    Mixed(Mix, Draw),
}

impl Timed for Workload {
    fn name(self) -> String {
        match self {
            Workload::Load => "load".to_owned(),
            Workload::Mixed(mix, draw) => format!("{} {}", mix.name(), draw.name()),
        }
    }

    fn unit(self) -> Unit {
        Unit::Operations
    }
}

/// One planned operation: an entry's number, and whether it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op(u32);

const WRITES: u32 = 1 << 31;
/// Most entries: numbers leave a bit for [`WRITES`].
pub(crate) const KEYS_MAX: u32 = WRITES - 1;

impl Op {
    pub(crate) fn read(number: u32) -> Op {
        Op(number)
    }

    pub(crate) fn write(number: u32) -> Op {
        Op(number | WRITES)
    }

    /// The entry's number.
    #[inline]
    #[must_use]
    pub fn number(self) -> u32 {
        self.0 & !WRITES
    }

    /// Whether it writes; else it reads.
    #[inline]
    #[must_use]
    pub fn writes(self) -> bool {
        self.0 & WRITES != 0
    }
}

/// One timed run, planned before the clock starts: the same for every contender.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) mix: Mix,
    pub(crate) draw: Draw,
    pub(crate) clock: Clock,
    /// The lower half after blind updates, before the contender's own mark.
    pub(crate) tag: u32,
    /// The operations of each thread.
    pub(crate) plans: Vec<Vec<Op>>,
    /// Some written entries, and how often each is written.
    pub(crate) probes: Vec<(u32, u32)>,
}

impl Job {
    pub(crate) fn plan(
        mix: Mix,
        draw: Draw,
        keys: u32,
        threads: usize,
        ops: usize,
        tag: u32,
        clock: Clock,
    ) -> Job {
        let plans: Vec<Vec<Op>> = (0..threads)
            .map(|thread| {
                let seed = u64::from(tag) << 32 | thread as u64;
                let mut random = Random::new(!seed);
                draw.numbers(keys, ops, seed)
                    .into_iter()
                    .map(|number| match mix.writes(&mut random) {
                        true => Op::write(number),
                        false => Op::read(number),
                    })
                    .collect()
            })
            .collect();
        let probes = probes(&plans);
        Job { mix, draw, clock, tag, plans, probes }
    }

    /// The first so many operations of each thread.
    pub(crate) fn first(&self, ops: usize) -> Job {
        let first = |plan: &Vec<Op>| plan[..plan.len().min(ops)].to_vec();
        let plans: Vec<Vec<Op>> = self.plans.iter().map(first).collect();
        let probes = probes(&plans);
        let Job { mix, draw, clock, tag, .. } = *self;
        Job { mix, draw, clock, tag, plans, probes }
    }

    /// The expected sum of its reads.
    pub(crate) fn expected(&self) -> Tally {
        let mut tally = Tally::default();
        for op in self.plans.iter().flatten().filter(|op| !op.writes()) {
            tally.add(u64::from(op.number()));
        }
        tally
    }
}

/// Written entries at even distances, with the count of their writes.
fn probes(plans: &[Vec<Op>]) -> Vec<(u32, u32)> {
    let writes = || plans.iter().flatten().filter(|op| op.writes());
    let step = writes().count() / PROBES + 1;
    let mut counts: HashMap<u32, u32> = writes().step_by(step).map(|op| (op.number(), 0)).collect();
    if counts.is_empty() {
        return Vec::new();
    }
    for op in writes() {
        if let Some(count) = counts.get_mut(&op.number()) {
            *count += 1;
        }
    }
    counts.into_iter().collect()
}

impl Run for Job {
    type Workload = Workload;

    fn workload(&self) -> Workload {
        Workload::Mixed(self.mix, self.draw)
    }

    fn threads(&self) -> usize {
        self.plans.len()
    }

    fn operations(&self) -> usize {
        self.plans.iter().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_numbers_share_a_key_and_values_name_theirs() {
        let keys: HashSet<u64> = (0..100_000).map(key).collect();
        assert_eq!(keys.len(), 100_000);
        assert_eq!(number_of(value(77, u32::MAX)), 77);
    }

    #[test]
    fn mixes_write_their_share() {
        for mix in Mix::ALL {
            let job = Job::plan(mix, Draw::Uniform, 1000, 2, 20_000, 3, Clock::Wall);
            let writes = job.plans.iter().flatten().filter(|op| op.writes()).count();
            let wanted = match mix {
                Mix::Reads(percent) => 400 * (100 - usize::from(percent)),
                Mix::ReadModifyWrite => 40_000,
            };
            assert!(writes.abs_diff(wanted) < 800, "{}: {writes}, not {wanted}", mix.name());
            assert_eq!(job.expected().entries as usize, 40_000 - writes);
            assert_eq!(job.probes.is_empty(), wanted == 0);
        }
    }

    #[test]
    fn the_first_of_a_job_is_a_job() {
        let job = Job::plan(Mix::Reads(50), Draw::Uniform, 1000, 2, 500, 3, Clock::Wall);
        let first = job.first(100);
        assert_eq!(first.operations(), 200);
        assert!(first.plans.iter().zip(&job.plans).all(|(first, all)| all.starts_with(first)));
        let written: u32 = first.probes.iter().map(|(_, writes)| writes).sum();
        assert_eq!(first.expected().entries + u64::from(written), 200);
        assert_eq!(job.first(9_999).expected(), job.expected());
    }

    #[test]
    fn zipf_prefers_few_and_stays_in_range() {
        let numbers = Draw::Zipf.numbers(10_000, 50_000, 1);
        let mut counts = HashMap::<u32, usize>::new();
        for number in numbers {
            assert!(number < 10_000);
            *counts.entry(number).or_default() += 1;
        }
        let most = counts.values().max().copied().unwrap_or(0);
        // The most popular of 10,000 takes about a tenth at exponent 0.99.
        assert!((3_500..7_500).contains(&most), "{most} of 50,000");
    }

    #[test]
    fn probes_count_the_writes_of_all_threads() {
        let plan = |numbers: &[u32]| numbers.iter().copied().map(Op::write).collect();
        let mut probes = probes(&[plan(&[1, 2, 1]), plan(&[1])]);
        probes.sort_unstable();
        assert_eq!(probes, [(1, 3), (2, 1)]);
    }
}
