//! The keys, the values, and the timed operations.
//!
//! Entries are numbered from 0. An entry's key is its number scrambled, so that neither the order
//! of loading nor popularity shows in the keys; its value keeps the number in the upper half, so
//! that every read is checked by one sum, and in the lower half what was last written or added.

use std::collections::HashMap;

use crate::harness::*;

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

const MIXES: [(&str, Mix); 7] = [
    ("read", Mix::Reads(100)),
    ("read-50", Mix::Reads(50)),
    ("update", Mix::Reads(0)),
    ("read-modify-write", Mix::ReadModifyWrite),
    ("read-99", Mix::Reads(99)),
    ("read-95", Mix::Reads(95)),
    ("read-90", Mix::Reads(90)),
];

/// The names of all mixes: those of every run, and others.
pub(crate) const NAMES: [&str; MIXES.len()] = names(&MIXES);

impl Mix {
    pub(crate) fn named(name: &str) -> Option<Mix> {
        MIXES.iter().find(|(known, _)| *known == name).map(|(_, mix)| *mix)
    }

    fn writes(self, random: &mut Random) -> bool {
        match self {
            Mix::Reads(percent) => random.below(100) >= u32::from(percent),
            Mix::ReadModifyWrite => true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Draw {
    /// All alike
    Uniform,
    /// By Zipf's law with exponent 0.99, popular keys scattered
    Zipf,
}

impl Draw {
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

pub(crate) struct HashJob {
    pub(crate) mix: Mix,
    pub(crate) draw: Draw,
    /// The lower half after blind updates, before the contender's own mark.
    pub(crate) tag: u32,
    pub(crate) plans: Vec<Vec<Op>>,
    /// Some written entries, and how often each is written.
    pub(crate) probes: Vec<(u32, u32)>,
}

impl HashJob {
    pub(crate) fn plan(
        mix: Mix,
        draw: Draw,
        keys: u32,
        threads: usize,
        ops: usize,
        tag: u32,
    ) -> HashJob {
        let plans: Vec<Vec<Op>> = (0..threads)
            .map(|thread| {
                let seed = u64::from(tag) << 32 | thread as u64;
                let mut random = Random::new(!seed);
                draw.numbers(keys, ops, seed)
                    .into_iter()
                    .map(|number| Op::new(number, mix.writes(&mut random)))
                    .collect()
            })
            .collect();
        let probes = probes(&plans);
        HashJob { mix, draw, tag, plans, probes }
    }

    pub(crate) fn operations(&self) -> usize {
        self.plans.iter().map(Vec::len).sum()
    }

    pub(crate) fn check(&self, low: u32, before: &[Option<u64>], after: &[Option<u64>]) -> Result {
        for ((&(number, writes), before), after) in self.probes.iter().zip(before).zip(after) {
            let expected = match self.mix {
                Mix::Reads(_) => Some(value(number, low)),
                Mix::ReadModifyWrite => before.map(|value| value + u64::from(writes)),
            };
            if *after != expected {
                bail!("entry {number} holds {after:x?} after {writes} writes, not {expected:x?}");
            }
        }
        Ok(())
    }

    /// The first so many operations of each thread.
    pub(crate) fn first(&self, ops: usize) -> HashJob {
        let first = |plan: &Vec<Op>| plan[..plan.len().min(ops)].to_vec();
        let plans: Vec<Vec<Op>> = self.plans.iter().map(first).collect();
        let probes = probes(&plans);
        let HashJob { mix, draw, tag, .. } = *self;
        HashJob { mix, draw, tag, plans, probes }
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

impl Job for HashJob {
    fn workload(&self) -> String {
        let name = MIXES.iter().find(|(_, mix)| *mix == self.mix).map_or("mix", |(name, _)| name);
        format!("{name} {}", self.draw.name())
    }

    fn threads(&self) -> usize {
        self.plans.len()
    }

    fn expected(&self) -> Option<Tally> {
        let mut tally = Tally::default();
        for op in self.plans.iter().flatten().filter(|op| !op.writes()) {
            tally.add(u64::from(op.number()));
        }
        Some(tally)
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
        for (name, mix) in MIXES {
            let job = HashJob::plan(mix, Draw::Uniform, 1000, 2, 20_000, 3);
            let writes = job.plans.iter().flatten().filter(|op| op.writes()).count();
            let wanted = match mix {
                Mix::Reads(percent) => 400 * (100 - usize::from(percent)),
                Mix::ReadModifyWrite => 40_000,
            };
            assert!(writes.abs_diff(wanted) < 800, "{name}: {writes}, not {wanted}");
            assert_eq!(job.expected().expect("a sum").entries as usize, 40_000 - writes);
            assert_eq!(job.probes.is_empty(), wanted == 0);
        }
    }

    #[test]
    fn the_first_of_a_job_is_a_job() {
        let job = HashJob::plan(Mix::Reads(50), Draw::Uniform, 1000, 2, 500, 3);
        let first = job.first(100);
        assert_eq!(first.operations(), 200);
        assert!(first.plans.iter().zip(&job.plans).all(|(first, all)| all.starts_with(first)));
        let written: u32 = first.probes.iter().map(|(_, writes)| writes).sum();
        assert_eq!(first.expected().expect("a sum").entries + u64::from(written), 200);
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
        let plan = |numbers: &[u32]| numbers.iter().map(|&number| Op::new(number, true)).collect();
        let mut probes = probes(&[plan(&[1, 2, 1]), plan(&[1])]);
        probes.sort_unstable();
        assert_eq!(probes, [(1, 3), (2, 1)]);
    }
}
