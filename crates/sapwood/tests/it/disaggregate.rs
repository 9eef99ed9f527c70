//! A total is spread over the objects of every engine, exactly, once, and so that it can be gone on
//! with.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;

use rand::RngExt;
use sapwood::aggregate::{
    Aggregate, Cancel, Disaggregated, Disaggregation, DisaggregationRun, Disaggregator, Execution,
    Plan, Progress, Query, QueryError, Selection, Value,
};
use sapwood::{Error, Result};
use sapwood_testkit::{case, rng};

use crate::aggregate::{Any, KINDS, Kind, make};

impl Any {
    fn spread(&self, by: &Disaggregator, execution: &Execution<'_>) -> Result<DisaggregationRun> {
        self.0.disaggregate_with(by, execution)
    }

    fn go_on(
        &self,
        by: &Disaggregator,
        pending: sapwood::aggregate::Pending,
        execution: &Execution<'_>,
    ) -> DisaggregationRun {
        self.0.resume(by, pending, execution).expect("it is of this disaggregation")
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.get(key).expect("no error")
    }

    fn number(&self, number: u64) -> i64 {
        let value = self.get(&key_of(number)).expect("it is there");
        i64::from_le_bytes(value.try_into().expect("8 bytes"))
    }

    fn sum(&self) -> i64 {
        let query = Query::new("n:i64le".parse().expect("a layout"))
            .aggregates(vec![Aggregate::sum("n")])
            .compile()
            .expect("a query");
        let (partial, _) = self.run(&query, &Execution::new()).expect("no error");
        let answer = query.finish(partial).expect("it fits");
        match answer.value(0, "sum(n)") {
            Ok(Value::Int(sum)) => *sum as i64,
            other => panic!("{other:?}"),
        }
    }

    /// What the planner knows of a selection.
    fn ways(&self, selection: &Selection) -> Plan {
        let query = Query::new("n:i64le".parse().expect("a layout"))
            .select(selection.clone())
            .aggregates(vec![Aggregate::count()]);
        self.plan(&query.compile().expect("a query"))
    }
}

fn key_of(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn filled(kind: Kind, count: u64) -> crate::aggregate::Kept {
    let kept = make(kind);
    for number in 0..count {
        kept.table.put(&key_of(number), &(number as i64 % 90).to_le_bytes());
    }
    kept
}

fn compiled(what: Disaggregation) -> Disaggregator {
    what.compile().expect("it fits together")
}

fn over_n(total: i128) -> Disaggregation {
    Disaggregation::new("n:i64le".parse().expect("a layout"), "n", total)
}

/// What the least keys get: of equal shares one more each, until nothing is left.
fn equal_part(total: i128, count: u64, rank: u64) -> i64 {
    let (count, rank) = (i128::from(count), i128::from(rank));
    let part = total.abs() / count + i128::from(rank < total.abs() % count);
    (part * total.signum()) as i64
}

#[test]
fn equal_parts_add_up_on_every_engine_by_every_executor() {
    case!().seeds(3, |seed| {
        let mut rng = rng(seed);
        for kind in KINDS {
            let count = rng.random_range(1..6_000);
            let kept = filled(kind, count);
            let (low, high) = (key_of(count / 3), key_of(count - count / 4));
            let some: Vec<u64> =
                (0..count).filter(|number| number % 7 == 3 || *number == 0).collect();
            let selections = [
                (Selection::EVERYTHING, (0..count).collect::<Vec<_>>()),
                (
                    Selection::range((Bound::Included(&low), Bound::Excluded(&high))).expect("ok"),
                    (count / 3..count - count / 4).collect(),
                ),
                (Selection::keys(some.iter().copied().map(key_of)), some),
            ];
            for (selection, selected) in selections {
                for candidate in kept.table.ways(&selection).candidates {
                    let total = rng.random_range(-40_000..40_000_i128);
                    let threads = rng.random_range(1..4);
                    let execution = Execution::new().executor(candidate.executor).threads(threads);
                    let before: i64 = (0..count).map(|number| kept.table.number(number)).sum();
                    let held: i64 = selected.iter().map(|&number| kept.table.number(number)).sum();
                    let what = format!("{kind:?} {} of {count}: {total}", candidate.executor);

                    let added = compiled(over_n(total).select(selection.clone()).adding());
                    let settled = kept.table.spread(&added, &execution).expect("all fits");
                    check_whole(&settled, selected.len() as u64, total, &what);
                    assert_eq!(settled.report.sum_before, Some(held.into()), "{what}");
                    assert_eq!(settled.report.sum_after, Some((i128::from(held) + total).into()));
                    let after: i64 = (0..count).map(|number| kept.table.number(number)).sum();
                    assert_eq!(i128::from(after), i128::from(before) + total, "{what}");

                    let set = compiled(over_n(total).select(selection.clone()).setting());
                    let settled = kept.table.spread(&set, &execution).expect("all fits");
                    check_whole(&settled, selected.len() as u64, total, &what);
                    for (rank, &number) in selected.iter().enumerate() {
                        let part = equal_part(total, selected.len() as u64, rank as u64);
                        assert_eq!(kept.table.number(number), part, "{what}, key {number}");
                    }
                }
            }
        }
    });
}

fn check_whole(settled: &DisaggregationRun, count: u64, total: i128, what: &str) {
    let Disaggregated { changed, vanished, refused, pending, given, .. } = settled.report;
    assert_eq!((changed, vanished, refused, pending), (count, 0, 0, 0), "{what}");
    assert_eq!((given, settled.stopped.clone()), (total, None), "{what}");
    assert!(settled.pending.is_none(), "{what}");
}

#[test]
fn parts_in_proportion_and_by_weight_add_up() {
    for kind in [Kind::SmallChunks, Kind::Variable, Kind::OnDisk] {
        let kept = make(kind);
        let layout = || "minutes:decimal@4, seats:u32le".parse().expect("a layout");
        for number in 0..1_000_u32 {
            let value = [&(number % 50).to_le_bytes()[..], b"100"].concat();
            kept.table.put(&number.to_be_bytes(), &value);
        }
        let minutes = |number: u32| -> i64 {
            let value = kept.table.get(&number.to_be_bytes()).expect("it is there");
            str::from_utf8(&value[4..]).expect("digits").parse().expect("a number")
        };
        let by_seats = Disaggregation::new(layout(), "minutes", -777_777).in_proportion_to("seats");
        let settled = kept.table.spread(&compiled(by_seats.adding()), &Execution::new());
        check_whole(&settled.expect("all fits"), 1_000, -777_777, "by seats");
        let after: i64 = (0..1_000).map(minutes).sum();
        assert_eq!(after, 100_000 - 777_777, "{kind:?}");
        let seats: i64 = (0..1_000).map(|number| number % 50).sum();
        for number in 0..1_000 {
            let exact = -777_777.0 * f64::from(number % 50) / seats as f64;
            let part = (minutes(number) - 100) as f64;
            assert!((part - exact).abs() < 1.0, "{kind:?} {number}: {part} for {exact}");
        }

        let weights = [(7_u32, 1), (8, 2), (9, 0), (5_000, 3)].map(|(n, w)| (n.to_be_bytes(), w));
        let by_weight = Disaggregation::new(layout(), "minutes", 10).weights(weights).setting();
        let settled = kept.table.spread(&compiled(by_weight), &Execution::new().threads(3));
        check_whole(&settled.expect("all fits"), 3, 10, "by weight");
        assert_eq!((minutes(7), minutes(8), minutes(9)), (3, 7, 0), "{kind:?}");
    }
}

/// Cancelled while objects are collected, it has changed nothing; later, it says what is left. That
/// can be kept as bytes, and gone on with, and every object has its part exactly once.
#[test]
fn what_is_cancelled_can_be_gone_on_with() {
    for kind in KINDS {
        // More than are changed in one turn.
        let count = match kind {
            Kind::Fixed | Kind::FixedSmallPages | Kind::Variable => 70_000,
            _ => 12_000,
        };
        let kept = filled(kind, count);
        let total = 123_456;
        let by = compiled(over_n(total).adding());
        let before = kept.table.sum();
        let mut spreads = 0;

        // At the first and the second call of the second phase; at the first of all.
        for (phase, call, threads) in [(1, 0, 1), (2, 0, 1), (2, 1, 1), (2, 1, 3), (1, 0, 2)] {
            let what = format!("{kind:?}: call {call} of phase {phase}, {threads} threads");
            let before = kept.table.sum();
            let cancel = Cancel::new();
            let (phases, calls, last) = (AtomicU64::new(1), AtomicU64::new(0), AtomicU64::new(0));
            let tell = |progress: Progress| {
                if progress.done < last.swap(progress.done, Ordering::Relaxed) {
                    phases.fetch_max(2, Ordering::Relaxed);
                }
                if phases.load(Ordering::Relaxed) == phase
                    && calls.fetch_add(1, Ordering::Relaxed) == call
                {
                    cancel.cancel();
                }
            };
            let execution = Execution::new().threads(threads).progress(&tell).cancel(&cancel);
            let settled = kept.table.spread(&by, &execution);
            if phase == 1 {
                assert!(matches!(settled, Err(Error::Cancelled { .. })), "{what}: {settled:?}");
                assert_eq!(kept.table.sum(), before, "{what}");
                continue;
            }
            // Of several threads one may tell late how far it was before.
            if threads > 1 && matches!(settled, Err(Error::Cancelled { .. })) {
                assert_eq!(kept.table.sum(), before, "{what}");
                continue;
            }
            spreads += 1;
            let settled = settled.expect("what is left is an answer");
            let report = settled.report;
            assert_eq!(i128::from(kept.table.sum() - before), report.given, "{what}");
            assert_eq!(report.given + report.pending_sum, total, "{what}");
            let Some(pending) = settled.pending else {
                // Others may have been so far already.
                assert!(threads > 1, "{what}");
                continue;
            };
            assert_eq!(report.pending, pending.count(), "{what}");
            assert!(matches!(settled.stopped, Some(Error::Cancelled { .. })), "{what}");
            if threads == 1 {
                assert_eq!((report.changed == 0, report.pending > 0), (call == 0, true), "{what}");
            }
            let pending = by.decode(&pending.encode()).expect("its own bytes");
            let settled = kept.table.go_on(&by, pending, &Execution::new().threads(threads));
            check_whole(&settled, count, total, &what);
            assert_eq!(i128::from(kept.table.sum() - before), total, "{what}");
        }
        assert!(spreads >= 2, "{kind:?}");
        assert_eq!(i128::from(kept.table.sum() - before), spreads * total, "{kind:?}");
        for number in (0..count).step_by(97) {
            let part = spreads as i64 * equal_part(total, count, number);
            assert_eq!(kept.table.number(number), number as i64 % 90 + part, "{kind:?} {number}");
        }
    }
}

/// What others add meanwhile stays, and every object gets its part exactly once.
#[test]
fn others_may_add_meanwhile() {
    for kind in KINDS {
        let count = 5_000;
        let kept = filled(kind, count);
        let table = &kept.table;
        let before: i64 = (0..count).map(|number| table.number(number)).sum();
        let (added, is_over) = (AtomicI64::new(0), AtomicBool::new(false));
        let mut spread = 0;
        thread::scope(|scope| {
            for writer in 0..2_u64 {
                let (added, is_over) = (&added, &is_over);
                scope.spawn(move || {
                    let mut rng = rng(writer);
                    // As many as a walk of a table beyond memory can skip on a busy machine, too.
                    for _ in 0..50_000 {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let key = key_of(rng.random_range(0..count));
                        table.0.add(key, 1).expect("room");
                        added.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for round in 0..6 {
                let total = 10_007 * (round - 2);
                let execution = Execution::new().threads(1 + (round % 2) as usize);
                let settled = table.spread(&compiled(over_n(total).adding()), &execution);
                check_whole(&settled.expect("all fits"), count, total, &format!("{kind:?}"));
                spread += total as i64;
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let after: i64 = (0..count).map(|number| table.number(number)).sum();
        assert_eq!(after, before + spread + added.into_inner(), "{kind:?}");
    }
}

/// Objects that go away between the phases do not get their parts, and the report says how many.
#[test]
fn objects_that_vanish_are_reported() {
    for kind in KINDS {
        let count = 9_000;
        let kept = filled(kind, count);
        let removed = std::sync::Mutex::new(BTreeMap::new());
        let first = AtomicBool::new(true);
        // Objects are removed when the first of them are changed: told by a second beginning.
        let calls = AtomicU64::new(0);
        let last = AtomicU64::new(0);
        let tell = |progress: Progress| {
            calls.fetch_add(1, Ordering::Relaxed);
            let began_again = progress.done < last.swap(progress.done, Ordering::Relaxed);
            if began_again && first.swap(false, Ordering::Relaxed) {
                for number in (0..count).filter(|number| number % 10 == 0) {
                    let value = kept.table.number(number);
                    assert!(kept.table.remove(&key_of(number)));
                    removed.lock().expect("whole").insert(number, value);
                }
            }
        };
        let by = compiled(over_n(900_000).adding());
        let settled = kept.table.spread(&by, &Execution::new().progress(&tell)).expect("all fits");
        let report = settled.report;
        let removed = removed.into_inner().expect("whole");
        assert_eq!(removed.len(), 900, "{kind:?}");
        // Those before the removal had been changed already: their part went with them.
        let gone = removed.iter().filter(|(number, held)| **held == **number as i64 % 90).count();
        assert_eq!(report.vanished, gone as u64, "{kind:?}");
        assert_eq!(report.changed, count - gone as u64, "{kind:?}");
        assert_eq!(
            (report.given, report.not_given),
            (900_000 - gone as i128 * 100, gone as i128 * 100)
        );
        assert!(gone > 0, "{kind:?}");
        let there = (0..count).filter(|number| number % 10 != 0);
        for number in there {
            assert_eq!(kept.table.number(number), number as i64 % 90 + 100, "{kind:?} {number}");
        }
    }
}

#[test]
fn what_cannot_be_spread_changes_nothing() {
    for kind in KINDS {
        let kept = filled(kind, 300);
        let before: Vec<i64> = (0..300).map(|number| kept.table.number(number)).collect();
        let narrow = |total| {
            Disaggregation::new("n:i8, w:u8@1".parse().expect("a layout"), "n", total).adding()
        };
        let cases: [(Disaggregation, fn(&QueryError) -> bool); 4] = [
            // 89 + 40 leaves i8.
            (narrow(300 * 40), |error| matches!(error, QueryError::Unfit { .. })),
            (narrow(5).select(Selection::keys(["nobody"])), |error| {
                matches!(error, QueryError::NoObjects { .. })
            }),
            (narrow(5).in_proportion_to("w"), |error| {
                matches!(error, QueryError::NoWeights { .. })
            }),
            (Disaggregation::new("n:i64le, m:i64le@8".parse().expect("ok"), "m", 1), |error| {
                matches!(error, QueryError::Mismatched { .. })
            }),
        ];
        for (what, is_right) in cases {
            match kept.table.spread(&compiled(what), &Execution::new().threads(2)) {
                Err(Error::Query(error)) if is_right(&error) => {}
                other => panic!("{kind:?}: {other:?}"),
            }
            let after: Vec<i64> = (0..300).map(|number| kept.table.number(number)).collect();
            assert_eq!(after, before, "{kind:?}");
        }
    }
}

/// Objects that can no longer hold their part when they are changed are counted, and nothing else is
/// lost.
#[test]
fn objects_that_no_longer_fit_are_reported() {
    for kind in KINDS {
        let count = 9_000;
        let kept = filled(kind, count);
        let (first, last) = (AtomicBool::new(true), AtomicU64::new(0));
        let tell = |progress: Progress| {
            let began_again = progress.done < last.swap(progress.done, Ordering::Relaxed);
            if began_again && first.swap(false, Ordering::Relaxed) {
                for number in (0..count).step_by(10) {
                    kept.table.put(&key_of(number), &i64::MAX.to_le_bytes());
                }
            }
        };
        let by = compiled(over_n(900_000).adding());
        let settled = kept.table.spread(&by, &Execution::new().progress(&tell)).expect("all fits");
        let report = settled.report;
        assert_eq!((report.changed, report.refused, report.vanished), (8_100, 900, 0), "{kind:?}");
        assert_eq!((report.given, report.not_given), (810_000, 90_000), "{kind:?}");
        assert!(report.first_refusal.is_some() && settled.pending.is_none(), "{kind:?}");
        for number in 0..count {
            let expected = match number % 10 {
                0 => i64::MAX,
                _ => number as i64 % 90 + 100,
            };
            assert_eq!(kept.table.number(number), expected, "{kind:?} {number}");
        }
    }
}

/// Keys of a list that have no object are counted, also after a resume.
#[test]
fn absent_keys_are_counted_to_the_end() {
    for kind in KINDS {
        let kept = filled(kind, 10);
        let by = compiled(over_n(7).select(Selection::keys((5..30).map(key_of))).adding());
        let cancel = Cancel::new();
        let last = AtomicU64::new(0);
        let tell = |progress: Progress| {
            if progress.done < last.swap(progress.done, Ordering::Relaxed) {
                cancel.cancel();
            }
        };
        let execution = Execution::new().progress(&tell).cancel(&cancel);
        let settled = kept.table.spread(&by, &execution).expect("what is left is an answer");
        assert_eq!((settled.report.tally.absent, settled.report.pending), (20, 5), "{kind:?}");
        let pending = by.decode(&settled.pending.expect("all is left").encode()).expect("its own");
        let settled = kept.table.go_on(&by, pending, &Execution::new());
        assert_eq!((settled.report.tally.absent, settled.report.changed), (20, 5), "{kind:?}");
    }
}
