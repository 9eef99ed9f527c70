//! Queries beside writers: each sees a cut between batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sapwood_rollup::{
    Aggregation, Column, Dimension, Discovery, Error, Filter, Granularity, Metric, Query, Rollup,
    RowBatch, ScanOrder, Schema, TopNMetric, Value, Writer,
};

const GROUPS: i64 = 200;

/// A row for each group, with one more in each for each call, and sums that cancel out.
fn batch(number: i64) -> RowBatch {
    let groups = 0..GROUPS;
    RowBatch::new(GROUPS as usize)
        .column("t", Column::longs(groups.clone().map(|group| group / 10)))
        .and_then(|batch| {
            // Half of the facts are new ones in each batch.
            let names = groups.clone().map(|group| match group % 2 {
                0 => format!("g{group}"),
                _ => format!("g{group} {number}"),
            });
            batch.column("d", Column::texts(names))
        })
        .and_then(|batch| {
            let signs = groups.map(|group| if group < GROUPS / 2 { number } else { -number });
            batch.column("x", Column::longs(signs))
        })
        .expect("columns of one length")
}

#[test]
fn a_query_sees_each_batch_whole_or_not_at_all() {
    let schema = Schema::new("t")
        .dimension(Dimension::text("d"))
        .metric(Metric::count("n"))
        .metric(Metric::long_sum("s", "x"))
        .metric(Metric::distinct("u", "x"));
    let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
    let (done, batches) = (AtomicBool::new(false), AtomicU64::new(0));
    let query = |threads: usize| {
        Query::group_by(Vec::<&str>::new())
            .aggregation(Aggregation::long_sum("n", "n"))
            .aggregation(Aggregation::long_sum("s", "s"))
            .threads(threads)
    };
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (rollup, done, batches) = (&rollup, &done, &batches);
            scope.spawn(move || {
                let mut ingest = Writer::new(rollup);
                for number in 0..150 {
                    ingest.ingest(&batch(2 * number + writer)).expect("room");
                    batches.fetch_add(1, Ordering::Release);
                }
                done.store(true, Ordering::Release);
            });
        }
        let (mut asked, mut last) = (0, 0);
        while !done.load(Ordering::Acquire) || asked < 20 {
            let before = batches.load(Ordering::Acquire);
            let answer = rollup.query(&query(1 + asked % 3)).expect("an answer");
            let Some(Value::Long(count)) = answer.value(0, "n") else { continue };
            assert_eq!(count % GROUPS, 0, "a part of a batch");
            assert_eq!(answer.value(0, "s"), Some(&Value::Long(0)), "a part of a batch");
            assert!(count / GROUPS >= before as i64, "a batch that was done before is not seen");
            assert!(*count >= last, "facts are lost");
            (asked, last) = (asked + 1, *count);
            // The facts themselves, which takes longer.
            let scan = rollup.query(&Query::scan(["n", "s"], ScanOrder::Descending));
            let rows = scan.expect("an answer").rows;
            let sum = |at: usize| -> i64 {
                rows.iter().map(|row| row[at].to_long().ok().flatten().expect("a number")).sum()
            };
            assert_eq!((sum(0) % GROUPS, sum(1)), (0, 0), "a part of a batch");
        }
    });
    assert_eq!(rollup.stats().processed, 300 * GROUPS as u64);
    assert_eq!(rollup.stats().facts, (GROUPS / 2 + 300 * GROUPS / 2) as u64);
    let answer = rollup.query(&query(2)).expect("an answer");
    assert_eq!(answer.value(0, "n"), Some(&Value::Long(300 * GROUPS)));
}

#[test]
fn a_query_that_is_cancelled_says_so() {
    let schema = Schema::new("t").metric(Metric::count("n"));
    let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
    let batch = RowBatch::new(5_000).column("t", Column::longs(0..5_000)).expect("as long");
    Writer::new(&rollup).ingest(&batch).expect("room");
    let flag = Arc::new(AtomicBool::new(true));
    for query in [Query::scan([], ScanOrder::Ascending), Query::group_by(["__time"]).threads(2)] {
        let answer = rollup.query(&query.cancelled_by(Arc::clone(&flag)));
        assert_eq!(answer, Err(Error::Cancelled));
    }
}

#[test]
fn a_dimension_that_appears_beside_cuts_goes_on() {
    let schema = Schema::new("t").metric(Metric::count("n")).discover(Discovery::Texts, &[]);
    let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
    let done = AtomicBool::new(false);
    let name = |number: i64| format!("d{number}");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = Writer::new(&rollup);
            for number in 0..2_000 {
                let batch = RowBatch::new(1)
                    .column("t", Column::longs([0]))
                    .and_then(|batch| batch.column(name(number), Column::texts(["x"])))
                    .expect("columns of one length");
                writer.ingest(&batch).expect("room");
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            rollup.cut().expect("memory");
        }
    });
    let known: Vec<String> = rollup.dimensions().into_iter().map(|known| known.name).collect();
    assert!((0..2_000).all(|number| known.contains(&name(number))), "{} are left", known.len());
    rollup.seal().expect("memory");
    for number in [0, 1_000, 1_999] {
        let query = Query::group_by([name(number).as_str()])
            .filter(Filter::equal(&name(number), "x"))
            .aggregation(Aggregation::long_sum("n", "n"));
        let answer = rollup.query(&query).expect("an answer");
        assert_eq!(answer.value(0, "n"), Some(&Value::Long(1)));
    }
}

#[test]
fn a_query_without_time_ends_at_once() {
    let schema = Schema::new("t").dimension(Dimension::text("d")).metric(Metric::count("n"));
    let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
    for rows in [0, 3] {
        let batch = RowBatch::new(rows).column("t", Column::longs(0..rows as i64));
        let batch = batch.and_then(|it| it.column("d", Column::texts(vec!["x"; rows])));
        Writer::new(&rollup).ingest(&batch.expect("as long")).expect("room");
        for query in [
            Query::timeseries(Granularity::ALL),
            Query::group_by(["d"]).threads(2),
            Query::top_n("d", TopNMetric::Dimension, 1),
            Query::scan([], ScanOrder::Ascending),
            Query::search([], "x"),
            Query::time_boundary(),
            Query::segment_metadata(),
        ] {
            assert!(rollup.query(&query).is_ok(), "{query:?}");
            // The clock cannot say when that is over: never.
            assert!(rollup.query(&query.clone().timeout(Duration::MAX)).is_ok(), "{query:?}");
            assert_eq!(rollup.query(&query.timeout(Duration::ZERO)), Err(Error::Timeout));
        }
    }
}
