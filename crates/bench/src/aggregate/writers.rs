//! The cost of exact sums beside a writer.
//!
//! A writer adds one to random objects, takes one from as many others, and begins again, as fast as
//! it can. A sum must find every object exactly once meanwhile. A sum as of one moment
//! (`sapwood-log-moment`) differs by at most one batch of the writer; any other sum by no more than
//! was changed while it ran. Once the writer has stopped, the sum is again that of before.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use sapwood::aggregate::Executor;

use super::engines::{LoadedTable, Way, execution_by, way};
use super::job::{Fraction, Pick, Picked};
use super::objects::key;
use super::{LOG, LOOK_UP, ORDERED_RANGE, WALK};
use crate::harness::*;

/// The time that sums are repeated beside a writer; less for a bench that must finish in seconds.
pub(crate) const WINDOW: Duration = Duration::from_millis(200);
const TOGETHER: usize = 32;

/// The ways that sum beside the writer: always all objects, the sum of which is known whatever
/// moved.
pub(crate) const SUMMED: [(Way, Pick); 5] = [
    (way(LOG, TableKind::Hash, Some(Executor::Log)), Pick::Everything),
    (LOG_MOMENT, Pick::Everything),
    (way(WALK, TableKind::Hash, Some(Executor::Walk)), Pick::Everything),
    (way(LOOK_UP, TableKind::Hash, Some(Executor::LookUp)), Pick::Range(Fraction::All)),
    (way(ORDERED_RANGE, TableKind::Ordered, Some(Executor::Range)), Pick::Everything),
];
const LOG_MOMENT: Way =
    Way { at_one_moment: true, ..way("sapwood-log-moment", TableKind::Hash, Some(Executor::Log)) };

pub(crate) fn writer_of(kind: TableKind) -> &'static str {
    match kind {
        TableKind::Hash => "sapwood-writer",
        TableKind::Ordered => "sapwood-ordered-writer",
    }
}

pub(crate) struct WrittenTable<'a> {
    pub(crate) store: &'a LoadedTable,
    pub(crate) objects: u32,
    pub(crate) summed: Vec<(Way, Arc<Picked>)>,
    pub(crate) window: Duration,
}

impl WrittenTable<'_> {
    /// Notes figures of so many rounds, in each of which every way takes a turn.
    pub(crate) fn measure(&self, runs: usize, report: &mut Report) -> Result {
        let writer = writer_of(self.store.kind());
        for round in 0..runs {
            report.progress.set_message(format!("{writer} beside sums"));
            let alone = self.beside_writer(round, |_| {
                std::thread::sleep(self.window);
                Ok(())
            })?;
            report.note("writes", 1, writer, &OPERATIONS, Figure::new(alone));
            for turn in 0..self.summed.len() {
                let (way, picked) = &self.summed[(round + turn) % self.summed.len()];
                let (way, pick) = (*way, picked.pick.name());
                let alone = self.sums(way, picked, None)?;
                let mut beside = 0.0;
                let writes = self.beside_writer(round * 64 + turn, |changes| {
                    beside = self.sums(way, picked, Some(changes))?;
                    Ok(())
                })?;
                for (workload, engine, unit, figure) in [
                    (format!("{pick}, no writer"), way.name, &OBJECTS, alone),
                    (format!("{pick}, a writer"), way.name, &OBJECTS, beside),
                    (format!("writes beside {}", way.deed()), writer, &OPERATIONS, writes),
                ] {
                    report.note(&workload, 1, engine, unit, Figure::new(figure));
                }
                let (found, sum, _) = self.store.sum(&picked.query, &execution_by(way, 1))?;
                check(way, picked, found, sum, 0)?;
                if way.at_one_moment {
                    self.store.tidy()?;
                }
            }
        }
        Ok(())
    }

    fn beside_writer(&self, seed: usize, during: impl FnOnce(&AtomicU64) -> Result) -> Result<f64> {
        let (changes, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write(seed as u64, &changes, &stop));
            while changes.load(Relaxed) == 0 && !writer.is_finished() {
                spin_loop();
            }
            let (begin, before) = (Instant::now(), changes.load(Relaxed));
            let done = during(&changes);
            let (elapsed, after) = (begin.elapsed(), changes.load(Relaxed));
            stop.store(true, Relaxed);
            writer.join().expect("the engine does not panic")?;
            done?;
            Ok((after - before) as f64 / elapsed.as_secs_f64())
        })
    }

    /// Leaves no change half done when it is told to stop.
    fn write(&self, seed: u64, changes: &AtomicU64, stop: &AtomicBool) -> Result {
        let mut random = Random::new(seed);
        let mut deltas = [([0; 8], 0); TOGETHER];
        while !stop.load(Relaxed) {
            for delta in [1, -1] {
                deltas.fill_with(|| (key(random.below(self.objects)), delta));
                // Release: pairs with Acquire in `sums`: a thread that sees a change sees it
                // counted.
                changes.fetch_add(TOGETHER as u64, Release);
                self.store.table.add_many(&deltas)?;
            }
        }
        Ok(())
    }

    /// Sums for as long as the window, and checks each against what a writer changes meanwhile,
    /// if there is one; answers the rate in objects.
    fn sums(&self, way: Way, picked: &Picked, changes: Option<&AtomicU64>) -> Result<f64> {
        let changed = || changes.map_or(0, |changes| changes.load(Acquire));
        let execution = execution_by(way, 1);
        let begin = Instant::now();
        let mut objects = 0;
        while begin.elapsed() < self.window || objects == 0 {
            let before = changed();
            let (found, sum, _) = self.store.sum(&picked.query, &execution)?;
            let meanwhile = changed() - before;
            let most = match changes {
                None => 0,
                Some(_) if way.at_one_moment => TOGETHER as u64,
                Some(_) => TOGETHER as u64 + meanwhile,
            };
            check(way, picked, found, sum, most)?;
            objects += found;
        }
        Ok(objects as f64 / begin.elapsed().as_secs_f64())
    }
}

/// Every object must be there, and their sum be off by no more than `most`.
fn check(way: Way, picked: &Picked, found: u64, sum: i128, most: u64) -> Result {
    let off = sum.abs_diff(picked.sum());
    if found == picked.expected.entries && off <= u128::from(most) {
        return Ok(());
    }
    bail!(
        "{} finds {found} of {} objects, and a sum that is off by {off} where {most} is \
         possible: a writer breaks it",
        way.name,
        picked.expected.entries
    )
}

#[cfg(test)]
mod tests {
    use sapwood::aggregate::{Aggregate, Execution, Query, Selection};

    use super::super::job::{LAYOUT, SUM};
    use super::super::objects::{Objects, amount};
    use super::*;

    #[test]
    fn sums_that_cannot_be_are_refused() {
        let objects = Arc::new(Objects::new(1_000));
        let picked = Picked::new(Pick::Everything, &objects).expect("the query is sound");
        let check = |found, off: i128, most| {
            check(LOG_MOMENT, &picked, found, picked.sum() + off, most).is_ok()
        };
        assert!(check(1_000, 0, 0) && check(1_000, -32, 32));
        assert!(!check(999, 0, 0) && !check(1_001, 0, 32) && !check(1_000, 33, 32));
        assert!(!check(1_000, -1, 0));
    }

    #[test]
    fn the_writer_leaves_the_sum_as_it_was() {
        let objects = Arc::new(Objects::new(1_000));
        let picked = Picked::new(Pick::Everything, &objects).expect("the query is sound");
        for kind in TableKind::ALL {
            let store = LoadedTable::load(kind, &objects).expect("memory is there");
            let (objects, window) = (objects.count(), Duration::ZERO);
            let written = WrittenTable { store: &store, objects, summed: Vec::new(), window };
            let sum = || store.sum(&picked.query, &Execution::new()).expect("it is summed");
            let before = sum();
            let during = |counted: &AtomicU64| {
                while counted.load(Relaxed) < 10_000 {
                    spin_loop();
                }
                Ok(())
            };
            written.beside_writer(7, during).expect("it writes");
            assert_eq!(before, sum());
            let moved = (0..objects).filter(|&number| {
                let list = Selection::keys([key(number)]);
                let one = Query::new(LAYOUT.parse().expect("a layout")).select(list);
                let one = one.aggregates(Aggregate::list(SUM).expect("a sum"));
                let one = one.compile().expect("the query is sound");
                let (_, found, _) = store.sum(&one, &Execution::new()).expect("it is summed");
                found != i128::from(amount(number))
            });
            assert!(moved.count() > 500, "the writer writes nothing");
        }
    }
}
