//! Runs a job on an engine of this process, with the loop compiled for that engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::clock::Moment;
use super::contender::{Accounted, Contender, Load, Outcome, Percentiles};
use super::space::{KeyBuffer, Space, Tally};
use super::workload::{Form, Job, Op, Workload};
use crate::Error;
use crate::resident::resident_bytes;

/// An ordered map under test. Sums are [`consume`](crate::consume::consume)'s of every byte read.
pub(crate) trait Ordered: Send + Sync + Sized {
    const NAME: &'static str;

    fn new() -> Self;

    fn put(&self, key: &[u8], value: &[u8]);

    fn put_if_absent(&self, key: &[u8], value: &[u8]);

    /// Inserts `value`, or adds one to the first 8 bytes of the value there, as a little-endian
    /// number, in place.
    fn put_if_absent_or_update(&self, key: &[u8], value: &[u8]);

    /// The value's sum, read where it lies.
    fn get(&self, key: &[u8]) -> Option<u64>;

    /// The sum of a copy of the value.
    fn get_copy(&self, key: &[u8]) -> Option<u64>;

    fn remove(&self, key: &[u8]) -> bool;

    /// Visits `limit` entries at most from `from` on, itself included.
    fn ascend(&self, from: &[u8], limit: usize, form: Form) -> Tally;

    fn descend(&self, from: &[u8], limit: usize, form: Form) -> Tally;

    fn accounted(&self) -> Option<Accounted> {
        None
    }

    /// Whether it maps its memory itself, so that resident memory grows by what it takes even
    /// where the process has freed memory at hand.
    fn maps_its_memory(&self) -> bool {
        false
    }
}

/// An engine and the space that it was loaded from.
pub(crate) struct InProcess<E> {
    engine: E,
    space: Option<Arc<Space>>,
}

impl<E: Ordered> InProcess<E> {
    pub(crate) fn boxed() -> Box<dyn Contender>
    where
        E: 'static,
    {
        Box::new(InProcess { engine: E::new(), space: None })
    }

    fn space(&self) -> &Arc<Space> {
        self.space.as_ref().expect("loaded before it runs")
    }
}

impl<E: Ordered> Contender for InProcess<E> {
    fn name(&self) -> &str {
        E::NAME
    }

    fn runs(&self, _: Workload) -> bool {
        true
    }

    fn maps_its_memory(&self) -> bool {
        self.engine.maps_its_memory()
    }

    fn load(&mut self, space: &Arc<Space>) -> Result<Load, Error> {
        let before = resident_bytes();
        let mut buffer = space.key_buffer();
        let begin = Instant::now();
        for &number in space.load_order() {
            self.engine.put_if_absent(space.key(number, &mut buffer), space.value(number));
        }
        let elapsed = begin.elapsed();
        let after = resident_bytes();
        self.space = Some(Arc::clone(space));
        Ok(Load {
            elapsed,
            resident_bytes: before.zip(after).map(|(before, after)| after.saturating_sub(before)),
            accounted: self.engine.accounted(),
        })
    }

    fn run(&mut self, job: &Job) -> Result<Outcome, Error> {
        let plans = plans(self.space(), job);
        let outcome = run_threads(
            &self.engine,
            self.space(),
            job,
            &plans,
            |engine, space, workload, plan| work(engine, space, workload, plan),
        );
        let tally = outcome.1.into_iter().fold(Tally::default(), Tally::merge);
        restore(&self.engine, self.space(), job.workload, &plans)?;
        Ok(Outcome { elapsed: outcome.0, tally })
    }

    fn latencies(&mut self, job: &Job) -> Result<Percentiles, Error> {
        let plans = plans(self.space(), job);
        let (_, histograms) = run_threads(
            &self.engine,
            self.space(),
            job,
            &plans,
            |engine, space, workload, plan| {
                let mut histogram = new_histogram();
                for op in plan {
                    let begin = Instant::now();
                    std::hint::black_box(work(engine, space, workload, std::slice::from_ref(op)));
                    histogram.saturating_record(begin.elapsed().as_nanos() as u64);
                }
                histogram
            },
        );
        restore(&self.engine, self.space(), job.workload, &plans)?;
        let mut all = new_histogram();
        for histogram in histograms {
            all.add(histogram)?;
        }
        Ok(Percentiles::from(&all))
    }

    fn everything(&mut self) -> Result<Option<Tally>, Error> {
        Ok(Some(self.engine.ascend(&[0], usize::MAX, Form::Stream)))
    }
}

/// Up to a minute in nanoseconds, to three digits; longer counts as a minute.
fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are in order")
}

fn plans(space: &Space, job: &Job) -> Vec<Vec<Op>> {
    (0..job.threads).map(|thread| job.plan(space, thread)).collect()
}

/// Runs `body` on a thread for each plan and times it by the job's clock.
fn run_threads<E: Ordered, R: Send>(
    engine: &E,
    space: &Space,
    job: &Job,
    plans: &[Vec<Op>],
    body: impl Fn(&E, &Space, Workload, &[Op]) -> R + Sync,
) -> (Duration, Vec<R>) {
    let barrier = Barrier::new(plans.len());
    let (barrier, body) = (&barrier, &body);
    std::thread::scope(|scope| {
        let threads: Vec<_> = plans
            .iter()
            .map(|plan| {
                scope.spawn(move || {
                    barrier.wait();
                    let begin = Moment::now();
                    let result = body(engine, space, job.workload, plan);
                    (begin, Moment::now(), result)
                })
            })
            .collect();
        let ends: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("an engine does not panic"))
            .collect();
        let elapsed = job.clock.elapsed(ends.iter().map(|end| (end.0, end.1)));
        (elapsed, ends.into_iter().map(|end| end.2).collect())
    })
}

#[inline]
fn work<E: Ordered>(engine: &E, space: &Space, workload: Workload, plan: &[Op]) -> Tally {
    let mut buffer = space.key_buffer();
    let buffer = &mut buffer;
    let mut tally = Tally::default();
    match workload {
        Workload::GetZeroCopy => {
            for op in plan {
                get(engine, space, *op, buffer, &mut tally);
            }
        }
        Workload::GetCopy => {
            for op in plan {
                if let Some(sum) = engine.get_copy(space.key(op.number(), buffer)) {
                    tally.add(sum);
                }
            }
        }
        Workload::Mixed => {
            for op in plan {
                if op.writes() {
                    engine.put(space.key(op.number(), buffer), space.value(op.number()));
                } else {
                    get(engine, space, *op, buffer, &mut tally);
                }
            }
        }
        Workload::PutIfAbsentOrUpdate => {
            for op in plan {
                engine.put_if_absent_or_update(
                    space.key(op.number(), buffer),
                    space.value(op.number()),
                );
            }
        }
        Workload::Put => {
            for op in plan {
                engine.put(space.key(op.number(), buffer), space.value(op.number()));
            }
        }
        _ => {
            let scan = workload.scan().expect("all other workloads are scans");
            for op in plan {
                let number = space.loaded_in_order()[op.number() as usize];
                let from = space.key(number, buffer);
                tally = tally.merge(if scan.descending {
                    engine.descend(from, space.scan_entries(), scan.form)
                } else {
                    engine.ascend(from, space.scan_entries(), scan.form)
                });
            }
        }
    }
    tally
}

#[inline]
fn get<E: Ordered>(engine: &E, space: &Space, op: Op, buffer: &mut KeyBuffer, tally: &mut Tally) {
    if let Some(sum) = engine.get(space.key(op.number(), buffer)) {
        tally.add(sum);
    }
}

/// Checks each value that the plans wrote, then removes what they inserted and undoes updates, so
/// that every run of every engine finds the same half of the range.
fn restore<E: Ordered>(
    engine: &E,
    space: &Space,
    workload: Workload,
    plans: &[Vec<Op>],
) -> Result<(), Error> {
    if !workload.changes() {
        return Ok(());
    }
    let mut writes = BTreeMap::<u32, u64>::new();
    for op in plans.iter().flatten().filter(|op| op.writes()) {
        *writes.entry(op.number()).or_default() += 1;
    }
    let mut buffer = space.key_buffer();
    for (number, times) in writes {
        let loaded = space.is_loaded(number);
        let value = space.value(number);
        let key = space.key(number, &mut buffer);
        let updates = match workload {
            Workload::PutIfAbsentOrUpdate if loaded => times,
            Workload::PutIfAbsentOrUpdate => times - 1,
            _ => 0,
        };
        let expected = sum_after(value, updates);
        let found = engine.get(key);
        if found != Some(expected) {
            return Err(
                format!("value {number} sums to {found:?} afterwards, not {expected}").into()
            );
        }
        if !loaded {
            engine.remove(key);
        } else if updates > 0 {
            engine.put(key, value);
        }
    }
    Ok(())
}

/// The sum of `value` after `updates` additions of one to its first word.
fn sum_after(value: &[u8], updates: u64) -> u64 {
    crate::consume::consume(value).wrapping_add(updates)
}
