//! Ordered tables answer by columns what a plain walk answers, whatever their objects look like.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::RngExt;
use sapwood::aggregate::{
    Aggregate, Execution, Executor, Group, Mismatches, Query, QueryError, Selection,
};
use sapwood::{Db, Error, OrderedTable, OrderedTableOptions};
use sapwood_testkit::{Rng, case, rng};

/// Ends the writer, however the test ends.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Objects = BTreeMap<Vec<u8>, Vec<u8>>;

fn table(chunk_entries: Option<u32>) -> OrderedTable {
    let options = OrderedTableOptions::default();
    let options = match chunk_entries {
        Some(count) => options.chunk_entries(count as usize),
        None => options,
    };
    Db::in_memory().create_ordered_table("t", options).expect("room")
}

fn bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    // Few different ones, of both signs.
    std::iter::repeat_with(|| [0, 1, 2, 200, 255][rng.random_range(0..5)]).take(len).collect()
}

/// Objects whose keys and values may be shorter than what a query reads of them.
fn fill(table: &OrderedTable, rng: &mut Rng, count: usize) -> Objects {
    let mut objects = Objects::new();
    let least = if rng.random() { 16 } else { 0 };
    for _ in 0..count {
        let key_len = if rng.random() { 8 } else { rng.random_range(1..16) };
        let key = bytes(rng, key_len);
        if rng.random_ratio(1, 5) {
            assert_eq!(table.remove(&key).expect("no error"), objects.remove(&key).is_some());
        } else {
            let value_len = rng.random_range(least..40);
            let value = bytes(rng, value_len);
            table.put(&key, &value).expect("room");
            objects.insert(key, value);
        }
    }
    objects
}

fn questions() -> Vec<Query> {
    let of = |layout: &str, figures: &str| {
        let layout = layout.parse().expect("a layout");
        Query::new(layout).aggregates(Aggregate::list(figures).expect("figures"))
    };
    let groups = |text| Group::list(text).expect("groups");
    let all =
        "count, sum(n), mean(n), min(n), max(n), variance(n), stddev(n), distinct(n), median(n)";
    vec![
        of("n:u8", all),
        of("n:i16be@3", all).filter("n > 0 or n in (-1, -200, 257)".parse().expect("ok")),
        of("n:i64le@8, low:key.u8@7", all).filter("not low >= 2 and n != 0".parse().expect("ok")),
        of("n:u32le@12, start:key.bytes2", "count, sum(n), max(n)").group_by(groups("start")),
        of("a:u16le, b:i32be@2", "sum(a), count(b), min(b)")
            .filter("a < b".parse().expect("ok"))
            .group_by(groups("bucket(a, 256)")),
        of("k:key.u64be", "count, sum(k), min(k)"),
        of("n:u8@30", "count"),
        of("n:u8@200", "sum(n)"),
        // Not by columns at once.
        of("n:f32le@4, s:bytes3", "sum(n), max(s)"),
        of("n:i64le", "first(n), last(n), top(n, 2)"),
    ]
}

fn selections(rng: &mut Rng, objects: &Objects) -> Vec<Selection> {
    let keys: Vec<&Vec<u8>> = objects.keys().collect();
    let mut any = || match rng.random_ratio(3, 4) && !keys.is_empty() {
        true => keys[rng.random_range(0..keys.len())].clone(),
        false => bytes(rng, 5),
    };
    let mut ends = [any(), any()];
    ends.sort();
    let [low, high] = &ends;
    let some: Vec<Vec<u8>> = std::iter::repeat_with(any).take(300).collect();
    let range = |begin: Bound<&[u8]>, limit: Bound<&[u8]>| {
        Selection::range((begin, limit)).expect("the right way around")
    };
    vec![
        Selection::EVERYTHING,
        range(Bound::Included(low), Bound::Excluded(high)),
        range(Bound::Excluded(low), Bound::Included(high)),
        range(Bound::Excluded(high), Bound::Excluded(high)),
        range(Bound::Unbounded, Bound::Included(low)),
        Selection::prefix([1]),
        Selection::keys(&some),
        Selection::keys(keys),
        Selection::keys([&b""[..], &[7; 70_000], high]),
        Selection::keys::<&[u8]>([]),
    ]
}

#[test]
fn objects_of_any_length_are_answered_as_by_a_plain_walk() {
    case!().seeds(6, |seed| {
        let mut rng = rng(seed);
        let table = table([Some(2), Some(16), None][(seed % 3) as usize]);
        let objects = fill(&table, &mut rng, [0, 40, 5_000][(seed / 2 % 3) as usize]);
        let mut mismatched = 0;
        for selection in selections(&mut rng, &objects) {
            for question in questions() {
                let question = question.select(selection.clone()).mismatches(Mismatches::Skip);
                let query = question.compile().expect("a query");
                let mut fold = query.fold();
                for (key, value) in &objects {
                    fold.push(key, value).expect("few groups");
                }
                let tally = fold.partial().tally().clone();
                if let Some(keys) = selection.as_keys() {
                    fold.add_absent(keys.len() as u64 - tally.selected);
                }
                mismatched += tally.mismatched;
                let expected = fold.into_partial().encode();
                let plan = table.explain(&query, &Execution::new()).expect("there is a way");
                for candidate in plan.candidates {
                    let threads = rng.random_range(1..4);
                    let execution = Execution::new().executor(candidate.executor).threads(threads);
                    let run = table.aggregate_with(&query, &execution).expect("an answer");
                    let what = format!("{selection:?}, {}", run.plan);
                    assert_eq!(run.partial.encode(), expected, "{what}");
                    let visited = run.plan.measured.as_ref().expect("it ran").visited;
                    let least = match candidate.executor {
                        Executor::LookUp => candidate.visits.saturating_sub(2),
                        _ => tally.selected,
                    };
                    assert!(visited >= least, "{what}");
                }
            }
        }
        assert!(objects.len() < 100 || mismatched > 0, "no object was too short");
    });
}

#[test]
fn a_short_object_is_an_error_unless_it_is_skipped() {
    let table = table(None);
    for key in 0..3_000_u32 {
        table
            .put(key.to_be_bytes(), &key.to_le_bytes()[..if key == 2_000 { 3 } else { 4 }])
            .expect("room");
    }
    let query =
        Query::new("n:u32le".parse().expect("a layout")).aggregates(vec![Aggregate::sum("n")]);
    for selection in [Selection::EVERYTHING, Selection::keys((0..3_000_u32).map(u32::to_be_bytes))]
    {
        let query = query.clone().select(selection);
        let refused = table.aggregate(&query).expect_err("one is too short");
        assert!(matches!(refused, Error::Query(QueryError::Mismatched { .. })), "{refused}");
        let answer = table.aggregate(&query.mismatches(Mismatches::Skip)).expect("an answer");
        assert_eq!(answer.tally.mismatched, 1);
        assert_eq!(
            answer.value(0, "sum(n)").expect("it is asked for").as_i64(),
            Some(2_999 * 1_500 - 2_000)
        );
    }
}

/// A writer keeps two numbers of each value opposite: no sum has one of them without the other.
#[test]
fn values_are_whole_beside_writers() {
    let table = table(Some(16));
    for key in 0..2_000_u32 {
        table.put(key.to_be_bytes(), [0; 16]).expect("room");
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = rng(11);
            while !is_over.load(Ordering::Relaxed) {
                let key = rng.random_range(0..2_000_u32).to_be_bytes();
                let number = rng.random_range(-1_000..1_000_i64);
                table
                    .update(key, |value| {
                        value[..8].copy_from_slice(&number.to_le_bytes());
                        value[8..].copy_from_slice(&(-number).to_le_bytes());
                    })
                    .expect("room");
            }
        });
        let _at_end = AtEnd(&is_over);
        let query = Query::new("a:i64le, b:i64le@8".parse().expect("a layout"))
            .aggregates(Aggregate::list("count, sum(a), sum(b)").expect("figures"));
        let keys = Selection::keys((0..2_000_u32).map(u32::to_be_bytes));
        for round in 0..200 {
            let selection = if round % 2 == 0 { Selection::EVERYTHING } else { keys.clone() };
            let answer = table.aggregate(&query.clone().select(selection)).expect("an answer");
            let figure =
                |name| answer.value(0, name).expect("it is asked for").as_i64().expect("whole");
            assert_eq!((figure("count"), figure("sum(a)")), (2_000, -figure("sum(b)")));
        }
    });
}
