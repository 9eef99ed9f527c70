//! Counts of commands, a block for each thread: none waits for another to count.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::catalog::Catalog;
use crate::replicas::thread_number;

/// Times of a histogram: up to 1 us, 2 us, 4 us and so on, and all others.
pub(crate) const TIMES: usize = 24;
/// Codes of errors that are counted apart.
const ERRORS_MAX: usize = 128;

// Relaxed throughout: counts tell nothing of other memory.

/// Counts of one command.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) calls: u64,
    pub(crate) nanos: u64,
    pub(crate) rejected: u64,
    pub(crate) failed: u64,
    pub(crate) times: [u64; TIMES],
}

impl Count {
    pub(crate) fn micros(&self) -> u64 {
        self.nanos / 1_000
    }

    /// The time in microseconds that a share of the calls has not exceeded, as far as is known.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let wanted = (self.calls as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (at, count) in self.times.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return (1_u64 << at) as f64;
            }
        }
        (1_u64 << (TIMES - 1)) as f64
    }
}

#[derive(Debug, Default)]
struct Cell {
    calls: AtomicU64,
    nanos: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
    times: [AtomicU64; TIMES],
}

/// Counts of all commands.
#[derive(Debug)]
pub(crate) struct Tally {
    catalog: &'static Catalog,
    blocks: Box<[CachePadded<Box<[Cell]>>]>,
    errors: Mutex<BTreeMap<String, u64>>,
    pub(crate) hits: Striped,
    pub(crate) misses: Striped,
    pub(crate) expired: AtomicU64,
    /// Changes, for the rules of saves.
    pub(crate) changes: Striped,
    /// Bytes from clients and to them, as they were when all counts began anew.
    bytes_before: Mutex<(u64, u64)>,
    pub(crate) connected: AtomicU64,
    pub(crate) connections: AtomicU64,
    rate: Mutex<Rate>,
}

/// A sum of counts of threads.
#[derive(Debug)]
pub(crate) struct Striped(Box<[CachePadded<AtomicU64>]>);

impl Striped {
    fn new(threads: usize) -> Striped {
        let cell = || CachePadded::new(AtomicU64::new(0));
        Striped(std::iter::repeat_with(cell).take(threads).collect())
    }

    #[inline]
    pub(crate) fn add(&self, count: u64) {
        self.0[thread_number() % self.0.len()].fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().map(|cell| cell.load(Ordering::Relaxed)).sum()
    }

    fn reset(&self) {
        self.0.iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
    }
}

/// The last commands by tenths of a second.
#[derive(Debug, Default)]
struct Rate {
    /// Commands, bytes from clients, and bytes to them.
    samples: [[f64; 3]; 16],
    next: usize,
    last: Option<(std::time::Instant, [u64; 3])>,
}

impl Tally {
    pub(crate) fn new(threads: usize, catalog: &'static Catalog) -> Tally {
        let threads = threads.max(1);
        let commands = catalog.all().len();
        let block =
            || CachePadded::new(std::iter::repeat_with(Cell::default).take(commands).collect());
        Tally {
            catalog,
            blocks: std::iter::repeat_with(block).take(threads).collect(),
            errors: Mutex::default(),
            hits: Striped::new(threads),
            misses: Striped::new(threads),
            expired: AtomicU64::new(0),
            changes: Striped::new(threads),
            bytes_before: Mutex::default(),
            connected: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            rate: Mutex::default(),
        }
    }

    #[inline]
    fn cell(&self, command: usize) -> Option<&Cell> {
        self.blocks[thread_number() % self.blocks.len()].get(command)
    }

    /// Counts calls of a command that took so long together.
    #[inline]
    pub(crate) fn called(&self, command: usize, calls: u64, took: Duration) {
        let Some(cell) = self.cell(command) else { return };
        let nanos = took.as_nanos() as u64;
        cell.calls.fetch_add(calls, Ordering::Relaxed);
        cell.nanos.fetch_add(nanos, Ordering::Relaxed);
        let micros = (nanos / calls.max(1)).div_ceil(1_000).max(1);
        let place = micros.next_power_of_two().trailing_zeros() as usize;
        cell.times[place.min(TIMES - 1)].fetch_add(calls, Ordering::Relaxed);
    }

    /// Counts a call that was refused before it began.
    pub(crate) fn rejected(&self, command: usize) {
        if let Some(cell) = self.cell(command) {
            cell.rejected.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a call that ended with an error.
    pub(crate) fn failed(&self, command: usize) {
        if let Some(cell) = self.cell(command) {
            cell.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the code of an error.
    pub(crate) fn error(&self, text: &str) {
        let code = text.split(' ').next().unwrap_or_default();
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < ERRORS_MAX {
            errors.insert(code.to_owned(), 1);
        }
    }

    /// Counts of one command.
    pub(crate) fn count(&self, command: usize) -> Count {
        let mut sum = Count::default();
        for cell in self.blocks.iter().filter_map(|block| block.get(command)) {
            sum.calls += cell.calls.load(Ordering::Relaxed);
            sum.nanos += cell.nanos.load(Ordering::Relaxed);
            sum.rejected += cell.rejected.load(Ordering::Relaxed);
            sum.failed += cell.failed.load(Ordering::Relaxed);
            for (sum, time) in sum.times.iter_mut().zip(&cell.times) {
                *sum += time.load(Ordering::Relaxed);
            }
        }
        sum
    }

    /// Counts of the commands that were called or refused, by name.
    pub(crate) fn counts(&self) -> Vec<(&'static str, Count)> {
        let commands = self.catalog.all().iter();
        let counts = commands.map(|command| (command.name, self.count(command.id)));
        counts.filter(|(_, count)| count.calls + count.rejected > 0).collect()
    }

    /// Commands that were called.
    pub(crate) fn commands(&self) -> u64 {
        let cells = self.blocks.iter().flat_map(|block| block.iter());
        cells.map(|cell| cell.calls.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn errors(&self) -> BTreeMap<String, u64> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a sample of the commands of a second. For a timer.
    pub(crate) fn sample(&self, (bytes_in, bytes_out): (u64, u64)) {
        let (now, counts) = (std::time::Instant::now(), [self.commands(), bytes_in, bytes_out]);
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, known)) = rate.last {
            let seconds = now.duration_since(before).as_secs_f64().max(1e-6);
            let next = rate.next % rate.samples.len();
            for (at, (count, known)) in counts.iter().zip(known).enumerate() {
                rate.samples[next][at] = count.saturating_sub(known) as f64 / seconds;
            }
            rate.next += 1;
        }
        rate.last = Some((now, counts));
    }

    /// Commands, bytes from clients, and bytes to them, of a second, of late.
    pub(crate) fn per_second(&self) -> [f64; 3] {
        let rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        let known = rate.next.min(rate.samples.len());
        let mean = |at: usize| {
            // `sum` of no floats is minus zero.
            let sum = rate.samples[..known].iter().fold(0.0, |sum, sample| sum + sample[at]);
            sum / known.max(1) as f64
        };
        [mean(0), mean(1), mean(2)]
    }

    /// What is counted of bytes from clients and to them, of which there were so many.
    pub(crate) fn bytes_since(&self, (bytes_in, bytes_out): (u64, u64)) -> (u64, u64) {
        let before = *self.bytes_before.lock().unwrap_or_else(PoisonError::into_inner);
        (bytes_in.saturating_sub(before.0), bytes_out.saturating_sub(before.1))
    }

    /// Begins all counts anew, but for those of changes and of clients that are connected.
    pub(crate) fn reset(&self, bytes: (u64, u64)) {
        *self.bytes_before.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
        for cell in self.blocks.iter().flat_map(|block| block.iter()) {
            let times = cell.times.iter();
            let others = [&cell.calls, &cell.nanos, &cell.rejected, &cell.failed];
            others.into_iter().chain(times).for_each(|count| count.store(0, Ordering::Relaxed));
        }
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for striped in [&self.hits, &self.misses] {
            striped.reset();
        }
        self.expired.store(0, Ordering::Relaxed);
        self.connections.store(0, Ordering::Relaxed);
        self.rate.lock().unwrap_or_else(PoisonError::into_inner).last = None;
    }
}
