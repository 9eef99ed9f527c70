//! Threads that put for a while.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

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

/// Lets writers put as long as `during` takes, which runs on this thread; each puts once at least.
pub(crate) fn write_while<R>(
    store: &dyn DurableStore,
    job: &WriterJob,
    during: impl FnOnce() -> Result<R>,
) -> Result<(PutTotals, R)> {
    let barrier = Barrier::new(job.writers + 1);
    let is_over = AtomicBool::new(false);
    let (barrier, is_over) = (&barrier, &is_over);
    let (ends, result) = std::thread::scope(|scope| {
        let write = |writer| {
            barrier.wait();
            let begin = Instant::now();
            let done = write(store, job, writer, is_over);
            (begin, Instant::now(), done)
        };
        let threads: Vec<_> =
            (0..job.writers).map(|writer| scope.spawn(move || write(writer))).collect();
        barrier.wait();
        let result = during();
        // Relaxed: pairs with the load of each writer, and orders nothing else.
        is_over.store(true, Ordering::Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().expect("an engine does not panic")
        };
        (threads.into_iter().map(join).collect::<Vec<_>>(), result)
    });
    let elapsed = elapsed(ends.iter().map(|end| (end.0, end.1)));
    let mut puts = 0;
    let mut histograms = Vec::new();
    for (.., done) in ends {
        let (count, histogram) = done?;
        puts += count;
        histograms.push(histogram);
    }
    let latencies = Percentiles::of_all(histograms)?;
    Ok((PutTotals { puts, elapsed, latencies }, result?))
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
