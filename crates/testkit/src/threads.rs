//! The threads of a round, and the events that each of them writes down.

use crate::engine::{Edit, Pair, Refusal, Result};
use crate::history::{Call, Clock, Event, History};
use crate::interleave::{self, StartLine};
use crate::scan_promise::ScanRecord;
use crate::{Bytes, Rng};
use rand::RngExt as _;

/// How much a round proved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Events checked.
    pub events: usize,
    /// Events that ran while another of the same key did.
    pub overlaps: usize,
}

impl std::ops::AddAssign for Evidence {
    fn add_assign(&mut self, more: Evidence) {
        self.events += more.events;
        self.overlaps += more.overlaps;
    }
}

/// How long the values of a round are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSizes {
    /// Small and large ones.
    Any,
    /// At most so many bytes, 16 or more; changes in place do not grow them either.
    AtMost(usize),
    /// All of them counters of 8 bytes.
    Counters,
}

/// A thread of a round: asks the engine, and records what it asked and was told.
pub(crate) struct Recorder<'a, E> {
    pub(crate) engine: &'a E,
    pub(crate) rng: Rng,
    pub(crate) thread: usize,
    clock: &'a Clock,
    sizes: ValueSizes,
    history: History,
    scans: Vec<ScanRecord>,
    written: u32,
}

impl<'a, E> Recorder<'a, E> {
    fn new(engine: &'a E, clock: &'a Clock, thread: usize, sizes: ValueSizes, seed: u64) -> Self {
        Recorder {
            engine,
            rng: crate::rng(seed.wrapping_mul(1_000) + thread as u64),
            thread,
            clock,
            sizes,
            history: History::default(),
            scans: Vec::new(),
            written: 0,
        }
    }

    /// Runs `ask` between two moments and records what `call` makes of its answer.
    pub(crate) fn record<T>(
        &mut self,
        key: &[u8],
        ask: impl FnOnce(&E) -> Result<T>,
        call: impl FnOnce(T) -> Call,
    ) -> Result<()> {
        let (begin, answer, end) = self.timed(ask)?;
        self.push(key, begin, end, call(answer));
        Ok(())
    }

    /// As `record`, for an operation that says something about many keys or none.
    pub(crate) fn record_many<'k, T>(
        &mut self,
        ask: impl FnOnce(&E) -> Result<T>,
        calls: impl FnOnce(T) -> Vec<(&'k [u8], Call)>,
    ) -> Result<()> {
        let (begin, answer, end) = self.timed(ask)?;
        for (key, call) in calls(answer) {
            self.push(key, begin, end, call);
        }
        Ok(())
    }

    /// Runs a scan between two moments; `scan` makes a record of those and of what it saw.
    pub(crate) fn record_scan(
        &mut self,
        ask: impl FnOnce(&E) -> Result<Vec<Pair>>,
        scan: impl FnOnce(usize, u64, u64, Vec<Pair>) -> ScanRecord,
    ) -> Result<()> {
        let (begin, seen, end) = self.timed(ask)?;
        self.scans.push(scan(self.thread, begin, end, seen));
        Ok(())
    }

    /// The answer of `ask` between the moments before and after it.
    fn timed<T>(&self, ask: impl FnOnce(&E) -> Result<T>) -> Result<(u64, T, u64)> {
        let begin = self.clock.tick();
        let answer = ask(self.engine)?;
        Ok((begin, answer, self.clock.tick()))
    }

    fn push(&mut self, key: &[u8], begin: u64, end: u64, call: Call) {
        let thread = self.thread;
        self.history.push(key, Event { thread, begin, end, call });
    }

    /// Up to four different keys of `keys`.
    pub(crate) fn few_of(&mut self, keys: &[Bytes]) -> Vec<Bytes> {
        let picked = (0..4).map(|_| self.rng.random_range(0..keys.len()));
        let mut picked: Vec<usize> = picked.collect();
        picked.sort_unstable();
        picked.dedup();
        picked.into_iter().map(|key| keys[key].clone()).collect()
    }

    /// No two values are the same, so that each tells its writer; sizes vary where they may.
    pub(crate) fn value(&mut self) -> Bytes {
        self.written += 1;
        let mut value = format!("{}:{}", self.thread, self.written).into_bytes();
        let size = [0, 0, 0, 20, 100, 700][self.rng.random_range(0..6)];
        value.extend(std::iter::repeat_n(b'.', size));
        match self.sizes {
            ValueSizes::Any => {}
            ValueSizes::AtMost(len) => value.truncate(len - 1),
            ValueSizes::Counters => return self.counter(),
        }
        value.into()
    }

    /// A value that is a counter, as different from all others as any.
    pub(crate) fn counter(&mut self) -> Bytes {
        self.written += 1;
        let count = (self.thread as i64) << 40 | i64::from(self.written) << 8;
        count.to_le_bytes().into()
    }

    pub(crate) fn edits(&mut self) -> Vec<Edit> {
        let value = self.value();
        let xors = [Edit::Xor(0x55), Edit::Set(value.clone()), Edit::Xor(0x55)];
        match (self.sizes, self.rng.random_range(0..6)) {
            (_, 0) => vec![Edit::Set(value)],
            (ValueSizes::Counters, 1..3) => vec![Edit::Xor(0x0F)],
            (ValueSizes::Counters, _) => xors.into(),
            (ValueSizes::AtMost(len), 2) => vec![Edit::Resize(self.rng.random_range(0..len))],
            (_, 1) => vec![Edit::Append(value[..1].into()), Edit::Resize(value.len() / 2)],
            (_, 2) => vec![Edit::Resize(self.rng.random_range(0..40)), Edit::Append(value)],
            (ValueSizes::AtMost(_), 3) => xors.into(),
            // Half of it is no thread's value: readers must not see it.
            (_, 3) => vec![Edit::Xor(0x55), Edit::Append(value), Edit::Xor(0x55)],
            (ValueSizes::AtMost(_), _) => {
                vec![Edit::Resize(4), Edit::Append(value[..value.len().min(6)].into())]
            }
            _ => vec![Edit::Append(value[..value.len().min(6)].into())],
        }
    }
}

/// Runs threads against each other on `engine`: `before` by one thread, `each` by `count` at once
/// from one start line, `after` by one again.
pub(crate) fn run<E: Sync>(
    engine: &E,
    (count, sizes, seed): (usize, ValueSizes, u64),
    before: impl FnOnce(&mut Recorder<'_, E>) -> Result<()>,
    each: impl Fn(&mut Recorder<'_, E>) -> Result<()> + Sync,
    after: impl FnOnce(&mut Recorder<'_, E>) -> Result<()>,
) -> std::result::Result<(History, Vec<ScanRecord>), String> {
    let clock = Clock::default();
    let start = StartLine::new(count);
    let mut first = Recorder::new(engine, &clock, count, sizes, seed);
    before(&mut first).map_err(failed)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|thread| {
                let mut recorder = Recorder::new(engine, &clock, thread, sizes, seed);
                let (each, start) = (&each, &start);
                scope.spawn(move || {
                    interleave::seed_thread(seed.rotate_left(32) ^ thread as u64);
                    start.wait();
                    each(&mut recorder).map(|()| recorder)
                })
            })
            .collect();
        for thread in threads {
            let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let recorder = done.map_err(failed)?;
            first.history.merge(recorder.history);
            first.scans.extend(recorder.scans);
        }
        Ok::<(), String>(())
    })?;
    after(&mut first).map_err(failed)?;
    Ok((first.history, first.scans))
}

fn failed(refusal: Refusal) -> String {
    format!("an operation was refused: {refusal:?}")
}

/// Checks that some order of all operations explains every answer, those of the scans included.
pub(crate) fn check(
    mut history: History,
    scans: &[ScanRecord],
    keys: &[Bytes],
) -> std::result::Result<Evidence, String> {
    let universe: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
    for scan in scans {
        scan.add_to(&mut history, &universe)?;
    }
    crate::linear::check(&history).map_err(|stuck| stuck.to_string())?;
    Ok(Evidence { events: history.len(), overlaps: history.overlaps() })
}
