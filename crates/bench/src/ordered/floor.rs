//! The cost of reading the same bytes without a map. Entries lie one after the other in key
//! order in a flat arena on 2 MiB pages; a get computes its value's address, a scan reads on.

use std::sync::Arc;
use std::time::Instant;

use memmap2::MmapMut;

use super::job::{Kind, OrderedJob, Scan, ScanForm};
use super::map::{OrderedContender, OrderedLoad};
use super::space::{Space, SpaceData};
use crate::harness::*;

pub(crate) const FLOOR: &str = "floor (flat arena)";

#[derive(Default)]
pub(crate) struct OrderedFloor {
    flat: Option<Flat>,
}

struct Flat {
    bytes: MmapMut,
    key_bytes: usize,
    entry_bytes: usize,
    space: Arc<Space>,
}

impl Engine<OrderedJob> for OrderedFloor {
    fn name(&self) -> &str {
        FLOOR
    }

    fn runs(&self, job: &OrderedJob) -> bool {
        match job.workload.kind {
            Kind::Get => true,
            Kind::Scan(scan) => scan.form == ScanForm::Stream && scan.is_long(),
            _ => false,
        }
    }

    fn run(&mut self, job: &OrderedJob) -> Result<Outcome> {
        let flat = self.flat.as_ref().expect("loaded before it runs");
        let space = &flat.space;
        // Ranks, drawn before the clock starts: a get's key number becomes an address by a table
        // that no map has, so it is not timed.
        let mut ranks = vec![0u32; space.range as usize];
        for (rank, &number) in space.in_order.iter().enumerate() {
            ranks[number as usize] = rank as u32;
        }
        let plans: Vec<Vec<u32>> = (0..job.threads)
            .map(|thread| {
                let plan = job.plan(space, thread);
                let is_get = job.workload.kind == Kind::Get;
                let rank = |number: u32| if is_get { ranks[number as usize] } else { number };
                plan.into_iter().map(|op| rank(op.number())).collect()
            })
            .collect();
        let (elapsed, tallies) = run_threads(&plans, |plan| flat.read(job.workload.kind, plan));
        Ok(Outcome::of(job.ops * job.threads, elapsed, tallies.into_iter().sum()))
    }
}

impl OrderedContender for OrderedFloor {
    fn load(&mut self, space: &Arc<Space>) -> Result<OrderedLoad> {
        let SpaceData::Generated { key_bytes, value_bytes, .. } = space.data else {
            bail!("the baseline needs entries of one size");
        };
        let begin = Instant::now();
        let entry_bytes = key_bytes + value_bytes;
        let mut bytes = map_huge(space.entries() * entry_bytes);
        let mut buffer = space.key_buffer();
        for (entry, &number) in bytes.chunks_exact_mut(entry_bytes).zip(&space.in_order) {
            entry[..key_bytes].copy_from_slice(space.key(number, &mut buffer));
            entry[key_bytes..].copy_from_slice(space.value(number));
        }
        self.flat = Some(Flat { bytes, key_bytes, entry_bytes, space: Arc::clone(space) });
        Ok(OrderedLoad { elapsed: begin.elapsed(), resident_bytes: None, accounted: None })
    }

    fn everything(&mut self) -> Result<Option<Tally>> {
        Ok(None)
    }
}

impl Flat {
    fn read(&self, kind: Kind, ranks: &[u32]) -> Tally {
        let mut tally = Tally::default();
        let entry =
            |rank: usize| &self.bytes[rank * self.entry_bytes..(rank + 1) * self.entry_bytes];
        let sum = |entry: &[u8]| {
            consume(&entry[..self.key_bytes]).wrapping_add(consume(&entry[self.key_bytes..]))
        };
        for &rank in ranks {
            let rank = rank as usize;
            let Kind::Scan(Scan { descending, entries, .. }) = kind else {
                tally.add(consume(&entry(rank)[self.key_bytes..]));
                continue;
            };
            let entries = self.space.scan_entries(entries);
            if descending {
                for rank in (rank + 1 - entries..=rank).rev() {
                    tally.add(sum(entry(rank)));
                }
            } else {
                let begin = rank * self.entry_bytes;
                let run = &self.bytes[begin..begin + entries * self.entry_bytes];
                for entry in run.chunks_exact(self.entry_bytes) {
                    tally.add(sum(entry));
                }
            }
        }
        tally
    }
}
