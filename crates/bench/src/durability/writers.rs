//! Threads that put for a while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use super::data::{Data, StampedEntry};
use super::store::DurableStore;
use crate::harness::*;

#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterJob {
    pub(crate) data: Data,
    pub(crate) keys: u32,
    pub(crate) writers: usize,
    pub(crate) seed: u64,
    pub(crate) timing: Timing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    Together,
    Singly,
}

pub(crate) struct PutTotals {
    pub(crate) puts: u64,
    pub(crate) elapsed: Duration,
    pub(crate) latencies: Percentiles,
}

impl PutTotals {
    pub(crate) fn rate(&self) -> f64 {
        self.puts as f64 / self.elapsed.as_secs_f64()
    }
}

/// Lets writers put as long as `during` takes; each puts once at least.
pub(crate) fn write_while<R: Send>(
    store: &dyn DurableStore,
    job: &WriterJob,
    during: impl FnOnce() -> Result<R> + Send,
) -> Result<(PutTotals, R)> {
    let is_over = AtomicBool::new(false);
    let during = Mutex::new((Some(during), None));
    let threads: Vec<Option<usize>> = (0..job.writers).map(Some).chain([None]).collect();
    let (elapsed, done) = run_threads(&threads, |thread| match thread {
        Some(writer) => write(store, job, *writer, &is_over),
        None => {
            let mut during = during.lock();
            during.1 = during.0.take().map(|during| during());
            // Relaxed: pairs with the load of each writer, and orders nothing else.
            is_over.store(true, Ordering::Relaxed);
            Ok((0, new_histogram()))
        }
    });
    let (puts, histograms): (Vec<u64>, _) =
        done.into_iter().collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let latencies = percentiles(histograms)?;
    let result = during.into_inner().1.expect("it has run")?;
    Ok((PutTotals { puts: puts.iter().sum(), elapsed, latencies }, result))
}

fn write(
    store: &dyn DurableStore,
    job: &WriterJob,
    writer: usize,
    is_over: &AtomicBool,
) -> Result<(u64, Histogram<u64>)> {
    let mut random = Random::new((job.seed << 16) ^ writer as u64);
    let mut entry = StampedEntry::new(job.data);
    let mut histogram = new_histogram();
    let mut puts = 0;
    loop {
        entry.set(random.below(job.keys), puts);
        match job.timing {
            Timing::Together => store.put(&entry.key, &entry.value)?,
            Timing::Singly => {
                let begin = Instant::now();
                store.put(&entry.key, &entry.value)?;
                histogram.saturating_record(u64::try_from(begin.elapsed().as_nanos())?);
            }
        }
        puts += 1;
        // Relaxed: pairs with the store of `write_while`; some puts more do no harm.
        if is_over.load(Ordering::Relaxed) {
            return Ok((puts, histogram));
        }
    }
}

const LOADED_TOGETHER: u32 = 1_000;

pub(crate) fn load(store: &dyn DurableStore, data: Data, keys: u32) -> Result {
    let mut first = 0;
    while first < keys {
        let end = keys.min(first.saturating_add(LOADED_TOGETHER));
        let entries: Vec<_> = (first..end)
            .map(|number| StampedEntry::of(data, number, 0))
            .map(|entry| (entry.key, entry.value))
            .collect();
        store.load(&entries)?;
        first = end;
    }
    Ok(())
}

const CHECKED: u32 = 1_000;

pub(crate) fn check(store: &dyn DurableStore, data: Data, keys: u32, seed: u64) -> Result {
    let mut random = Random::new(seed);
    for _ in 0..CHECKED.min(keys) {
        let entry = StampedEntry::of(data, random.below(keys), 0);
        let mut is_right = false;
        store.get(&entry.key, &mut |value| is_right = entry.may_have(value))?;
        if !is_right {
            bail!("a key has lost its value, or has that of another");
        }
    }
    Ok(())
}
