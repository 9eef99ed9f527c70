//! Rounds of threads that get in each other's way, recorded and checked.
//!
//! A round is bounded in operations, not in time; its keys are few, so that threads meet.

use crate::engine::{Bounds, Direction, OrderedEngine, Result, ScanForm};
use crate::history::Call;
use crate::op::Rule;
use crate::scan_promise::ScanRecord;
pub use crate::threads::Evidence;
use crate::threads::{self, Recorder, ValueSizes};
use crate::{Bytes, interleave};
use rand::RngExt as _;
use std::ops::Bound;

/// The ingredients of a round.
#[derive(Debug, Clone)]
pub struct Round {
    /// Threads that read and write single keys.
    pub writer_count: usize,
    /// Threads that scan.
    pub scanner_count: usize,
    /// Operations of each writer.
    pub ops_per_writer: usize,
    /// Scans of each scanner.
    pub scans_per_scanner: usize,
    /// All keys, ascending.
    pub keys: Vec<Bytes>,
    /// Writers leave these keys, given by index, alone once they are there: scans must see them.
    pub is_stable: fn(usize) -> bool,
}

impl Round {
    /// `key_count` keys of 2 bytes, so that every thread meets every other at each of them.
    pub fn few_keys(writer_count: usize, ops_per_writer: usize, key_count: u16) -> Self {
        Round {
            writer_count,
            scanner_count: 0,
            ops_per_writer,
            scans_per_scanner: 0,
            keys: (0..key_count).map(|key| Bytes::from(key.to_be_bytes())).collect(),
            is_stable: |_| false,
        }
    }

    /// Runs this round on `engine`, which is empty, and checks what came of it.
    pub fn check(
        &self,
        engine: &impl OrderedEngine,
        seed: u64,
    ) -> std::result::Result<Evidence, String> {
        let (history, scans) = threads::run(
            engine,
            (self.writer_count + self.scanner_count, ValueSizes::Any, seed),
            |first| self.fill(first),
            |by| self.play(by),
            // What is there at the end is part of the history.
            |first| self.keys.iter().try_for_each(|key| get(first, key)),
        )?;
        let evidence = threads::check(history, &scans, &self.keys)?;
        engine.check().map_err(|what| format!("check after the round: {what}"))?;
        if engine.len() != engine.len_exact() {
            let (len, exact) = (engine.len(), engine.len_exact());
            return Err(format!("after the round, len {len} but len_exact {exact}"));
        }
        Ok(evidence)
    }

    /// Puts the stable keys and every second one of the others.
    fn fill(&self, by: &mut Recorder<'_, impl OrderedEngine>) -> Result<()> {
        for (index, key) in self.keys.iter().enumerate() {
            if (self.is_stable)(index) || index % 2 == 0 {
                put(by, key)?;
            }
        }
        Ok(())
    }

    fn play(&self, by: &mut Recorder<'_, impl OrderedEngine>) -> Result<()> {
        if by.thread < self.writer_count {
            for _ in 0..self.ops_per_writer {
                self.write(by)?;
                interleave::pause();
            }
        } else {
            for _ in 0..self.scans_per_scanner {
                self.scan(by)?;
            }
        }
        Ok(())
    }

    fn write<E: OrderedEngine>(&self, by: &mut Recorder<'_, E>) -> Result<()> {
        let index = by.rng.random_range(0..self.keys.len());
        let key = self.keys[index].clone();
        let stable = (self.is_stable)(index);
        let (value, edits) = (by.value(), by.edits());
        match by.rng.random_range(0..if stable { 60 } else { 100 }) {
            // These leave a key that is there, there.
            0..8 => get(by, &key),
            8..16 => by.record(&key, |engine| engine.get_with(&key), Call::Get),
            16..18 => by.record(&key, |engine| engine.contains_key(&key), Call::Contains),
            18..28 => put(by, &key),
            28..42 => by.record(
                &key,
                |engine| engine.update(&key, &edits),
                |left| Call::Update(edits.clone(), left),
            ),
            42..52 => by.record(
                &key,
                |engine| engine.upsert(&key, &value, &edits),
                |upserted| Call::upsert(&value, &edits, upserted),
            ),
            52..57 => compute(by, &key, Rule::AppendIfPresent(value)),
            57..60 => self.batch(by),
            // These do not.
            60..72 => by.record(
                &key,
                |engine| engine.put_if_absent(&key, &value),
                |inserted| Call::PutIfAbsent(value.clone(), inserted),
            ),
            72..84 => by.record(&key, |engine| engine.remove(&key), Call::Remove),
            84..90 => by.record(&key, |engine| engine.take(&key), Call::Take),
            90..96 => compute(by, &key, Rule::Toggle(value)),
            96..98 => compute(by, &key, Rule::Remove),
            _ => self.pop(by),
        }
    }

    /// Each pair of a batch is a put, and each key a get, some time during the batch.
    fn batch(&self, by: &mut Recorder<'_, impl OrderedEngine>) -> Result<()> {
        let keys = by.few_of(&self.keys);
        if by.rng.random() {
            return by
                .record_many(|engine| engine.get_many(&keys), |values| Call::gets(&keys, values));
        }
        let pairs: Vec<(Bytes, Bytes)> = keys.into_iter().map(|key| (key, by.value())).collect();
        by.record_many(
            |engine| engine.put_many(&pairs).map_err(|(_, refusal)| refusal),
            |_| Call::puts(&pairs),
        )
    }

    /// A pop that took a key is a removal of that key. Where keys must stay, there is none.
    fn pop(&self, by: &mut Recorder<'_, impl OrderedEngine>) -> Result<()> {
        if (0..self.keys.len()).any(self.is_stable) {
            return Ok(());
        }
        let first = by.rng.random();
        // The pair must outlive the call that borrows its key.
        let mut key = Vec::new();
        by.record_many(
            |engine| if first { engine.pop_first() } else { engine.pop_last() },
            |popped| match popped {
                Some((taken, value)) => {
                    key = taken;
                    vec![(&*key, Call::Take(Some(value)))]
                }
                None => vec![],
            },
        )
    }

    fn scan(&self, by: &mut Recorder<'_, impl OrderedEngine>) -> Result<()> {
        let form = ScanForm::ALL[by.rng.random_range(0..4)];
        let direction = match by.rng.random() {
            true => Direction::Ascending,
            false => Direction::Descending,
        };
        let limit = match by.rng.random_range(0..4) {
            0 => by.rng.random_range(1..8),
            _ => usize::MAX,
        };
        let dice = by.rng.random_range(0..4);
        let mut key = || self.keys[by.rng.random_range(0..self.keys.len())].to_vec();
        let bounds = match dice {
            0 => (Bound::Included(key()), Bound::Unbounded),
            1 => (Bound::Unbounded, Bound::Excluded(key())),
            _ => (Bound::Unbounded, Bound::Unbounded),
        };
        let borrowed: Bounds<'_> =
            (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice));
        by.record_scan(
            |engine| engine.scan(form, borrowed, direction, limit),
            |thread, begin, end, seen| ScanRecord {
                thread,
                begin,
                end,
                form,
                bounds: bounds.clone(),
                direction,
                limit,
                seen,
            },
        )
    }
}

fn get(by: &mut Recorder<'_, impl OrderedEngine>, key: &[u8]) -> Result<()> {
    by.record(key, |engine| engine.get(key), Call::Get)
}

fn put(by: &mut Recorder<'_, impl OrderedEngine>, key: &[u8]) -> Result<()> {
    let value = by.value();
    by.record(
        key,
        |engine| engine.put(key, &value),
        |replaced| Call::Put(value.clone(), Some(replaced)),
    )
}

fn compute(by: &mut Recorder<'_, impl OrderedEngine>, key: &[u8], rule: Rule) -> Result<()> {
    let decided = rule.clone();
    by.record(
        key,
        |engine| engine.compute(key, &mut |value| decided.decide(value)),
        |computed| Call::Compute(rule, computed),
    )
}
