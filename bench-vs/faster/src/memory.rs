//! FASTER in memory, configured as its own benchmark configures it: a log that is never too small, and a
//! bucket for some keys.
//!
//! Its operations go through one by one, in a loop that was compiled with it, as in its benchmark:
//! the loop takes them in pieces between two refreshes.

use std::ops::Range;

use sapwood_bench::Error;
use sapwood_bench::hash::peer::{HashStore, Mix, Op, Tally, key, number_of, value};

use crate::native::{Call, INCREMENT, Memory, READ, REFRESHED_TOGETHER, UPSERT};

/// Pieces between two looks for what is pending: 1,600 operations, as in its benchmark.
const PIECES_COMPLETED_TOGETHER: usize = 25;
/// A header, a key and a value.
const RECORD_BYTES: u64 = 24;
const PAGE_BYTES: u64 = 32 << 20;
/// Pages beside those of the records: of the end of the log that may not change in place, and those
/// that are opened in advance.
const PAGES_SPARE: u64 = 16;

/// FASTER with a bucket for about so many keys.
pub struct Faster<const KEYS_OF_BUCKET: u64>(Memory);

impl<const KEYS_OF_BUCKET: u64> Faster<KEYS_OF_BUCKET> {
    fn run(
        &self,
        piece: usize,
        calls: &[Call],
        found: &mut [u64; REFRESHED_TOGETHER],
        tally: &mut Tally,
    ) {
        let complete = piece % PIECES_COMPLETED_TOGETHER == PIECES_COMPLETED_TOGETHER - 1;
        for value in self.0.run(calls, complete, found) {
            tally.add(number_of(*value));
        }
    }

    /// One call on its own.
    fn call(&self, call: Call) -> Option<u64> {
        self.0.run(&[call], false, &mut [0; REFRESHED_TOGETHER]).first().copied()
    }
}

impl<const KEYS_OF_BUCKET: u64> HashStore for Faster<KEYS_OF_BUCKET> {
    const NAME: &'static str = match KEYS_OF_BUCKET {
        // As its benchmark has it.
        2 => "faster",
        // As few buckets as ours, so that it takes about as much memory.
        8 => "faster-compact",
        _ => panic!("buckets for 2 and for 8 keys have names"),
    };

    fn with_room(keys: u32) -> Result<Self, Error> {
        let buckets = (u64::from(keys) / KEYS_OF_BUCKET).next_power_of_two();
        // Nine tenths of the log's pages change in place. Those that are not used take no memory.
        let pages = (u64::from(keys) * RECORD_BYTES / PAGE_BYTES + PAGES_SPARE) * 2;
        Ok(Faster(Memory::open(buckets, pages * PAGE_BYTES)?))
    }

    fn enter(&self) {
        self.0.enter();
    }

    fn leave(&self) {
        self.0.leave();
    }

    fn get(&self, key: u64) -> Option<u64> {
        self.call(Call { key, value: 0, kind: READ })
    }

    fn put(&self, key: u64, value: u64) {
        self.call(Call { key, value, kind: UPSERT });
    }

    fn increment(&self, key: u64) {
        self.call(Call { key, value: 0, kind: INCREMENT });
    }

    fn load(&self, numbers: Range<u32>) {
        let mut calls = [Call::default(); REFRESHED_TOGETHER];
        let mut found = [0; REFRESHED_TOGETHER];
        let step = REFRESHED_TOGETHER as u32;
        for (piece, begin) in numbers.clone().step_by(REFRESHED_TOGETHER).enumerate() {
            let calls = &mut calls[..(numbers.end - begin).min(step) as usize];
            for (call, number) in calls.iter_mut().zip(begin..) {
                *call = Call { key: key(number), value: value(number, 0), kind: UPSERT };
            }
            self.run(piece, calls, &mut found, &mut Tally::default());
        }
    }

    fn work(&self, mix: Mix, low: u32, plan: &[Op]) -> Tally {
        let mut calls = [Call::default(); REFRESHED_TOGETHER];
        let mut found = [0; REFRESHED_TOGETHER];
        let mut tally = Tally::default();
        for (piece, ops) in plan.chunks(REFRESHED_TOGETHER).enumerate() {
            let calls = &mut calls[..ops.len()];
            for (call, op) in calls.iter_mut().zip(ops) {
                let number = op.number();
                let kind = match mix {
                    Mix::ReadModifyWrite => INCREMENT,
                    // A number and not a branch, which the processor would have to guess.
                    Mix::Reads(_) => u64::from(op.writes()) * UPSERT,
                };
                *call = Call { key: key(number), value: value(number, low), kind };
            }
            self.run(piece, calls, &mut found, &mut tally);
        }
        tally
    }
}
