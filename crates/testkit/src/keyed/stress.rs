//! Rounds of threads that get in each other's way on an engine without order.

use super::{KeyedEngine, Walk};
use crate::engine::{Direction, Refusal, Result, ScanForm};
use crate::history::Call;
use crate::op::Rule;
use crate::scan_promise::ScanRecord;
use crate::threads::{self, Recorder};
pub use crate::threads::{Evidence, ValueSizes};
use crate::{Bytes, interleave};
use rand::RngExt as _;
use std::ops::Bound;

/// The ingredients of a round.
#[derive(Debug, Clone)]
pub struct KeyedRound {
    /// Threads that read and write single keys.
    pub writer_count: usize,
    /// Threads that walk over all pairs.
    pub walker_count: usize,
    /// Operations of each writer.
    pub ops_per_writer: usize,
    /// Walks of each walker.
    pub walks_per_walker: usize,
    /// All keys, ascending.
    pub keys: Vec<Bytes>,
    /// How long the values are.
    pub sizes: ValueSizes,
    /// Writers leave these keys, given by index, alone once they are there: walks must see them.
    pub is_stable: fn(usize) -> bool,
}

impl KeyedRound {
    /// `key_count` keys, of 8 bytes where the values are, else of 2.
    pub fn few_keys(
        writer_count: usize,
        ops_per_writer: usize,
        key_count: u16,
        sizes: ValueSizes,
    ) -> Self {
        let key = |key: u16| match sizes {
            ValueSizes::Counters => Bytes::from(u64::from(key).to_be_bytes()),
            _ => Bytes::from(key.to_be_bytes()),
        };
        KeyedRound {
            writer_count,
            walker_count: 0,
            ops_per_writer,
            walks_per_walker: 0,
            keys: (0..key_count).map(key).collect(),
            sizes,
            is_stable: |_| false,
        }
    }

    /// Runs this round on `engine`, which is empty, and checks what came of it.
    pub fn check(
        &self,
        engine: &impl KeyedEngine,
        seed: u64,
    ) -> std::result::Result<Evidence, String> {
        let evidence = self.check_among_others(engine, seed)?;
        engine.check().map_err(|what| format!("check after the round: {what}"))?;
        let exact = engine.len_exact();
        match engine.len_counted() {
            Some(len) if exact != Ok(len) => {
                Err(format!("after the round, len {len} but len_exact {exact:?}"))
            }
            _ => Ok(evidence),
        }
    }

    /// As `check`, while other threads change other keys; a round with walkers has none of them.
    pub fn check_among_others(
        &self,
        engine: &impl KeyedEngine,
        seed: u64,
    ) -> std::result::Result<Evidence, String> {
        let (history, scans) = threads::run(
            engine,
            (self.writer_count + self.walker_count, self.sizes, seed),
            |first| self.fill(first),
            |by| self.play(by),
            // What is there at the end is part of the history.
            |first| self.keys.iter().try_for_each(|key| get(first, key)),
        )?;
        threads::check(history, &scans, &self.keys)
    }

    /// Puts the stable keys and every second one of the others.
    fn fill(&self, by: &mut Recorder<'_, impl KeyedEngine>) -> Result<()> {
        for (index, key) in self.keys.iter().enumerate() {
            if (self.is_stable)(index) || index % 2 == 0 {
                put(by, key)?;
            }
        }
        Ok(())
    }

    fn play(&self, by: &mut Recorder<'_, impl KeyedEngine>) -> Result<()> {
        if by.thread >= self.writer_count {
            return (0..self.walks_per_walker).try_for_each(|_| walk(by));
        }
        for _ in 0..self.ops_per_writer {
            self.write(by)?;
            interleave::pause();
        }
        Ok(())
    }

    fn write<E: KeyedEngine>(&self, by: &mut Recorder<'_, E>) -> Result<()> {
        let index = by.rng.random_range(0..self.keys.len());
        let key = self.keys[index].clone();
        let stable = (self.is_stable)(index);
        match by.rng.random_range(0..if stable { 80 } else { 100 }) {
            // These leave a key that is there, there.
            0..8 => get(by, &key),
            8..16 => by.record(&key, |engine| engine.get_with(&key), Call::Get),
            16..18 => by.record(&key, |engine| engine.contains_key(&key), Call::Contains),
            18..28 => put(by, &key),
            28..40 => {
                let edits = by.edits();
                by.record(
                    &key,
                    |engine| engine.update(&key, &edits),
                    |left| Call::Update(edits.clone(), left),
                )
            }
            40..48 => {
                let (value, edits) = (by.value(), by.edits());
                by.record(
                    &key,
                    |engine| engine.upsert(&key, &value, &edits),
                    |upserted| Call::upsert(&value, &edits, upserted),
                )
            }
            48..60 => add(by, &key),
            60..66 => {
                let counter = by.counter();
                let put = |engine: &E| engine.put(&key, &counter);
                by.record(&key, put, |()| Call::Put(counter.clone(), None))
            }
            66..71 => compare_and_put(by, &key),
            71..74 => {
                let rule = Rule::Replace(by.value());
                compute(by, &key, rule)
            }
            74..78 => self.batch(by),
            78..80 => self.update_stable(by),
            // These do not.
            80..87 => {
                let value = by.value();
                by.record(
                    &key,
                    |engine| engine.put_if_absent(&key, &value),
                    |inserted| Call::PutIfAbsent(value.clone(), inserted),
                )
            }
            87..91 => {
                let rule = Rule::Toggle(by.value());
                compute(by, &key, rule)
            }
            91..93 => compute(by, &key, Rule::Remove),
            93..96 => by.record(&key, |engine| engine.take(&key), Call::Take),
            _ => by.record(&key, |engine| engine.remove(&key), Call::Remove),
        }
    }

    /// Each entry of a batch is an operation on its key some time during the batch.
    fn batch(&self, by: &mut Recorder<'_, impl KeyedEngine>) -> Result<()> {
        let keys = by.few_of(&self.keys);
        if by.rng.random() {
            return by
                .record_many(|engine| engine.get_many(&keys), |values| Call::gets(&keys, values));
        }
        let pairs: Vec<(Bytes, Bytes)> = keys.into_iter().map(|key| (key, by.value())).collect();
        by.record_many(|engine| all(engine.put_many(&pairs)), |()| Call::puts(&pairs))
    }

    /// As a batch, on keys that stay: a change may be tried more than once, and that it was tried
    /// in vain, since its key had gone meanwhile, cannot be told from the outside.
    fn update_stable(&self, by: &mut Recorder<'_, impl KeyedEngine>) -> Result<()> {
        let stable = (0..self.keys.len()).filter(|index| (self.is_stable)(*index));
        let keys: Vec<Bytes> = stable.map(|index| self.keys[index].clone()).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let (keys, edits) = (by.few_of(&keys), by.edits());
        by.record_many(
            |engine| all(engine.update_many(&keys, &edits)),
            |left| {
                let updates = left.into_iter().map(|left| Call::Update(edits.clone(), left));
                keys.iter().map(|key| &**key).zip(updates).collect()
            },
        )
    }
}

fn all<T>(batch: super::Batch<T>) -> Result<T> {
    batch.map_err(|(_, refusal)| refusal)
}

fn get(by: &mut Recorder<'_, impl KeyedEngine>, key: &[u8]) -> Result<()> {
    by.record(key, |engine| engine.get(key), Call::Get)
}

fn put(by: &mut Recorder<'_, impl KeyedEngine>, key: &[u8]) -> Result<()> {
    let value = by.value();
    by.record(key, |engine| engine.put(key, &value), |()| Call::Put(value.clone(), None))
}

fn add(by: &mut Recorder<'_, impl KeyedEngine>, key: &[u8]) -> Result<()> {
    let delta = by.rng.random_range(-9..=9);
    by.record(
        key,
        |engine| match engine.add(key, delta) {
            Err(Refusal::NotACounter) => Ok(None),
            sum => sum.map(Some),
        },
        |sum| Call::Add(delta, sum),
    )
}

fn compute(by: &mut Recorder<'_, impl KeyedEngine>, key: &[u8], rule: Rule) -> Result<()> {
    let decided = rule.clone();
    by.record(
        key,
        |engine| engine.compute(key, &mut |value| decided.decide(value)),
        |computed| Call::Compute(rule, computed),
    )
}

/// Expects what was there a moment ago.
fn compare_and_put(by: &mut Recorder<'_, impl KeyedEngine>, key: &[u8]) -> Result<()> {
    let mut expected = Bytes::from(&b"nothing"[..]);
    by.record(
        key,
        |engine| engine.get(key),
        |seen| {
            if let Some(seen) = &seen {
                expected = seen[..].into();
            }
            Call::Get(seen)
        },
    )?;
    interleave::pause();
    let new = by.value();
    by.record(
        key,
        |engine| engine.compare_and_put(key, &expected, &new),
        |done| Call::CompareAndPut(expected.clone(), new.clone(), done),
    )
}

fn walk(by: &mut Recorder<'_, impl KeyedEngine>) -> Result<()> {
    let walk = Walk::ALL[by.rng.random_range(0..Walk::ALL.len())];
    by.record_scan(
        |engine| engine.pairs(walk).map(super::op::sorted),
        |thread, begin, end, seen| ScanRecord {
            thread,
            begin,
            end,
            form: ScanForm::Stream,
            bounds: (Bound::Unbounded, Bound::Unbounded),
            direction: Direction::Ascending,
            limit: usize::MAX,
            seen,
        },
    )
}
