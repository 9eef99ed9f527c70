//! Rounds of threads that get in each other's way, recorded and checked.
//!
//! A round is bounded in operations, not in time; its keys are few, so that threads meet.

use crate::engine::{Bounds, Direction, Edit, OrderedEngine, Refusal, Result, ScanForm};
use crate::history::{Call, Clock, Event, History};
use crate::interleave::{self, StartLine};
use crate::op::Rule;
use crate::scan_promise::ScanRecord;
use crate::{Bytes, Rng, linear};
use rand::RngExt as _;
use std::ops::Bound;

/// What a round is made of.
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

/// How much a round proved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Events checked.
    pub events: usize,
    /// Events that ran while another of the same key did.
    pub overlaps: usize,
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
        let (mut history, scans) = self.run(engine, seed)?;
        let universe: Vec<Vec<u8>> = self.keys.iter().map(|key| key.to_vec()).collect();
        for scan in &scans {
            scan.add_to(&mut history, &universe)?;
        }
        linear::check(&history).map_err(|stuck| stuck.to_string())?;
        engine.check().map_err(|what| format!("check after the round: {what}"))?;
        if engine.len() != engine.len_exact() {
            let (len, exact) = (engine.len(), engine.len_exact());
            return Err(format!("after the round, len {len} but len_exact {exact}"));
        }
        Ok(Evidence { events: history.len(), overlaps: history.overlaps() })
    }

    fn run(
        &self,
        engine: &impl OrderedEngine,
        seed: u64,
    ) -> std::result::Result<(History, Vec<ScanRecord>), String> {
        let clock = Clock::default();
        let start = StartLine::new(self.writer_count + self.scanner_count);
        let worker = |thread: usize| Worker {
            round: self,
            engine,
            clock: &clock,
            thread,
            rng: crate::rng(seed.wrapping_mul(1_000) + thread as u64),
            history: History::default(),
            scans: Vec::new(),
            written: 0,
        };
        let mut first = worker(self.writer_count + self.scanner_count);
        first.fill().map_err(failed)?;
        let go = |mut worker: Worker<'_, _>| {
            interleave::seed_thread(seed.rotate_left(32) ^ worker.thread as u64);
            start.wait();
            if worker.thread < self.writer_count {
                for _ in 0..self.ops_per_writer {
                    worker.write()?;
                    interleave::pause();
                }
            } else {
                for _ in 0..self.scans_per_scanner {
                    worker.scan()?;
                }
            }
            Ok((worker.history, worker.scans))
        };
        let mut history = std::mem::take(&mut first.history);
        let mut scans = Vec::new();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.writer_count + self.scanner_count)
                .map(|thread| {
                    let worker = worker(thread);
                    let go = &go;
                    scope.spawn(move || go(worker))
                })
                .collect();
            for thread in threads {
                let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                let (events, seen) = done.map_err(failed)?;
                history.merge(events);
                scans.extend(seen);
            }
            Ok::<(), String>(())
        })?;
        // What is there at the end is part of the history.
        for key in &self.keys {
            first.get(key).map_err(failed)?;
        }
        history.merge(first.history);
        Ok((history, scans))
    }
}

fn failed(refusal: Refusal) -> String {
    format!("an operation was refused: {refusal:?}")
}

struct Worker<'a, E> {
    round: &'a Round,
    engine: &'a E,
    clock: &'a Clock,
    thread: usize,
    rng: Rng,
    history: History,
    scans: Vec<ScanRecord>,
    written: u32,
}

impl<E: OrderedEngine> Worker<'_, E> {
    /// Puts the stable keys and every second one of the others.
    fn fill(&mut self) -> Result<()> {
        for (index, key) in self.round.keys.iter().enumerate() {
            if (self.round.is_stable)(index) || index % 2 == 0 {
                self.put(key)?;
            }
        }
        Ok(())
    }

    /// Runs `ask` between two moments and records what `call` makes of its answer.
    fn record<T>(
        &mut self,
        key: &[u8],
        ask: impl FnOnce(&E) -> Result<T>,
        call: impl FnOnce(T) -> Call,
    ) -> Result<()> {
        let begin = self.clock.tick();
        let answer = ask(self.engine)?;
        let end = self.clock.tick();
        let (thread, call) = (self.thread, call(answer));
        self.history.push(key, Event { thread, begin, end, call });
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<()> {
        self.record(key, |engine| engine.get(key), Call::Get)
    }

    fn put(&mut self, key: &[u8]) -> Result<()> {
        let value = self.value();
        self.record(
            key,
            |engine| engine.put(key, &value),
            |replaced| Call::Put(value.clone(), Some(replaced)),
        )
    }

    fn write(&mut self) -> Result<()> {
        let index = self.rng.random_range(0..self.round.keys.len());
        let key = self.round.keys[index].clone();
        let stable = (self.round.is_stable)(index);
        let (value, edits) = (self.value(), self.edits());
        match self.rng.random_range(0..if stable { 60 } else { 100 }) {
            // These leave a key that is there, there.
            0..8 => self.get(&key),
            8..16 => self.record(&key, |engine| engine.get_with(&key), Call::Get),
            16..18 => self.record(&key, |engine| engine.contains_key(&key), Call::Contains),
            18..28 => self.put(&key),
            28..42 => self.record(
                &key,
                |engine| engine.update(&key, &edits),
                |left| Call::Update(edits.clone(), left),
            ),
            42..52 => {
                let ask = |engine: &E| engine.upsert(&key, &value, &edits);
                self.record(&key, ask, |upserted| match upserted {
                    crate::engine::Upserted::Inserted => {
                        Call::Upsert(value.clone(), edits.clone(), None)
                    }
                    crate::engine::Upserted::Updated(left) => {
                        Call::Upsert(value.clone(), edits.clone(), Some(left))
                    }
                })
            }
            52..57 => self.compute(&key, Rule::AppendIfPresent(value)),
            57..60 => self.batch(),
            // These do not.
            60..72 => self.record(
                &key,
                |engine| engine.put_if_absent(&key, &value),
                |inserted| Call::PutIfAbsent(value.clone(), inserted),
            ),
            72..84 => self.record(&key, |engine| engine.remove(&key), Call::Remove),
            84..90 => self.record(&key, |engine| engine.take(&key), Call::Take),
            90..96 => self.compute(&key, Rule::Toggle(value)),
            96..98 => self.compute(&key, Rule::Remove),
            _ => self.pop(),
        }
    }

    fn compute(&mut self, key: &[u8], rule: Rule) -> Result<()> {
        let decided = rule.clone();
        let ask = |engine: &E| engine.compute(key, &mut |value| decided.decide(value));
        self.record(key, ask, |computed| Call::Compute(rule, computed))
    }

    /// Each pair of a batch is a put, and each key a get, some time during the batch.
    fn batch(&mut self) -> Result<()> {
        let picked = (0..4).map(|_| self.rng.random_range(0..self.round.keys.len()));
        let mut picked: Vec<usize> = picked.collect();
        picked.sort_unstable();
        picked.dedup();
        let keys: Vec<Bytes> = picked.iter().map(|key| self.round.keys[*key].clone()).collect();
        let (thread, begin) = (self.thread, self.clock.tick());
        if self.rng.random() {
            let values = self.engine.get_many(&keys)?;
            let end = self.clock.tick();
            for (key, value) in keys.iter().zip(values) {
                let call = Call::Get(value);
                self.history.push(key, Event { thread, begin, end, call });
            }
            return Ok(());
        }
        let values: Vec<Bytes> = keys.iter().map(|_| self.value()).collect();
        let pairs: Vec<(Bytes, Bytes)> = keys.into_iter().zip(values).collect();
        self.engine.put_many(&pairs).map_err(|(_, refusal)| refusal)?;
        let end = self.clock.tick();
        for (key, value) in pairs {
            let call = Call::Put(value, None);
            self.history.push(&key, Event { thread, begin, end, call });
        }
        Ok(())
    }

    /// A pop that took a key is a removal of that key. Where keys must stay, there is none.
    fn pop(&mut self) -> Result<()> {
        if (0..self.round.keys.len()).any(self.round.is_stable) {
            return Ok(());
        }
        let (thread, begin) = (self.thread, self.clock.tick());
        let popped = match self.rng.random() {
            true => self.engine.pop_first()?,
            false => self.engine.pop_last()?,
        };
        let end = self.clock.tick();
        if let Some((key, value)) = popped {
            let call = Call::Take(Some(value));
            self.history.push(&key, Event { thread, begin, end, call });
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<()> {
        let form = ScanForm::ALL[self.rng.random_range(0..4)];
        let direction = match self.rng.random() {
            true => Direction::Ascending,
            false => Direction::Descending,
        };
        let limit = match self.rng.random_range(0..4) {
            0 => self.rng.random_range(1..8),
            _ => usize::MAX,
        };
        let dice = self.rng.random_range(0..4);
        let mut key = || self.round.keys[self.rng.random_range(0..self.round.keys.len())].to_vec();
        let bounds = match dice {
            0 => (Bound::Included(key()), Bound::Unbounded),
            1 => (Bound::Unbounded, Bound::Excluded(key())),
            _ => (Bound::Unbounded, Bound::Unbounded),
        };
        let borrowed: Bounds<'_> =
            (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice));
        let begin = self.clock.tick();
        let seen = self.engine.scan(form, borrowed, direction, limit)?;
        let end = self.clock.tick();
        self.scans.push(ScanRecord {
            thread: self.thread,
            begin,
            end,
            form,
            bounds,
            direction,
            limit,
            seen,
        });
        Ok(())
    }

    /// No two values are the same, so that each tells who put it; sizes vary.
    fn value(&mut self) -> Bytes {
        self.written += 1;
        let mut value = format!("{}:{}", self.thread, self.written).into_bytes();
        let size = [0, 0, 0, 20, 100, 700][self.rng.random_range(0..6)];
        value.extend(std::iter::repeat_n(b'.', size));
        value.into()
    }

    fn edits(&mut self) -> Vec<Edit> {
        let value = self.value();
        match self.rng.random_range(0..6) {
            0 => vec![Edit::Set(value)],
            1 => vec![Edit::Append(value.clone()), Edit::Resize(value.len() / 2)],
            2 => vec![Edit::Resize(self.rng.random_range(0..40)), Edit::Append(value)],
            // Half of it is nobody's value: readers must not see it.
            3 => vec![Edit::Xor(0x55), Edit::Append(value), Edit::Xor(0x55)],
            _ => vec![Edit::Append(value[..value.len().min(6)].into())],
        }
    }
}
