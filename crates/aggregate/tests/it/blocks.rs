//! A block is its live objects, one after the other.

use std::ops::Bound;

use proptest::prelude::*;
use sapwood_aggregate::{Aggregate, Compiled, Group, Mismatches, Query, QueryError, Selection};
use sapwood_engine::{Column, ColumnBatch, Validity};

/// Queries whose batches are gathered, queries that go by column object by object, and queries that do neither.
const QUERIES: [(&str, &str, &str, &str); 17] = [
    ("n:i64le", "", "count, sum(n), min(n), max(n)", ""),
    ("n:u64be", "n > 9223372036854775808", "count(n), sum(n), min(n), max(n)", ""),
    (
        "n:i16ord@3, k:key.u32le@1",
        "n >= -3 and not (k = 7 or n < 100)",
        "count, sum(n), max(k)",
        "",
    ),
    ("n:u8@7, k:key.i8", "k < n or n > 200", "count, sum(n)", ""),
    ("n:i32be@4", "n < 99999999999 and n != -1", "count, mean(n), min(n)", ""),
    ("n:i64le", "", "sum(n)", "n"),
    ("n:i16le@1, c:key.bytes2", "n > -9000", "count, sum(n), max(n)", "c"),
    ("n:i64le, m:u8@3", "", "sum(n), min(n), count(m)", "bucket(m, 16, 5)"),
    ("n:i32be@4", "", "count, sum(n)", "bucket(n, 1000003, -7)"),
    ("n:u64be", "n != 1", "sum(n), max(n)", "bucket(n, 2)"),
    ("n:i8, k:key.i16ord@2", "n > 5", "min(k), max(k), count", "bucket(n, 1)"),
    ("n:u8, m:u8@1", "", "count", "n, m"),
    ("n:f64le", "n > 0", "count, sum(n)", ""),
    ("n:i64le@1", "", "count, sum(n)", ""),
    ("n:i64le, m:u16le@2?0", "m > 5", "sum(n), variance(m), distinct(n)", ""),
    (
        "n:u8, m:u8@1",
        "m in (3, 0, 250) or not n >= 2.5",
        "count, first(n)",
        "classes(n, 0.5, 9, 77)",
    ),
    (
        "n:i64le, k:key.text2?'none'",
        "k begins with 'a' or n is missing",
        "max(k), count(k)",
        "n, k",
    ),
];

/// Whether the query may go by column: what is asked of the key keeps it from doing so, and is always true.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Any,
    ByObject,
}

fn compile(at: usize, way: Way, selection: &Selection) -> Compiled {
    let (layout, filter, figures, groups) = QUERIES[at];
    let of_key = "not key is missing";
    let filter = match (way, filter) {
        (Way::Any, filter) => filter.to_owned(),
        (Way::ByObject, "") => of_key.to_owned(),
        (Way::ByObject, filter) => format!("({filter}) and {of_key}"),
    };
    let mut query = Query::new(layout.parse().expect("a layout"))
        .aggregates(Aggregate::list(figures).expect("figures"))
        .select(selection.clone())
        .mismatches(Mismatches::Skip);
    if !filter.is_empty() {
        query = query.filter(filter.parse().unwrap_or_else(|error| panic!("{error}")));
    }
    if !groups.is_empty() {
        query = query.group_by(Group::list(groups).expect("groups"));
    }
    let query = query.compile().unwrap_or_else(|error| panic!("{error}"));
    assert!(way == Way::Any || !query.goes_by_column());
    query
}

/// A word, a key of 8 bytes, a value of 8 bytes, and some room.
const WORD: usize = 0;
const KEY: usize = 8;
const VALUE: usize = 16;

fn number() -> impl Strategy<Value = u64> {
    let edge = prop::sample::select(vec![0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, 1 << 32]);
    prop_oneof![any::<u64>(), edge, 0..300_u64]
}

proptest! {
    #![proptest_config(crate::cases(120))]

    #[test]
    fn a_block_is_its_objects(
        at in 0..QUERIES.len(),
        numbers in prop::collection::vec((number(), number(), 0..4_u64), 0..40),
        repeats in prop_oneof![Just(1_usize), 1..80_usize],
        room in prop_oneof![Just(0_usize), 0..20_usize],
        how in 0..3,
        cuts_the_end in any::<bool>(),
        select in 0..4,
    ) {
        let keys = || numbers.iter().map(|number| number.0.to_le_bytes());
        let selection = match (select, keys().next()) {
            (1, _) => Selection::keys(keys().step_by(2)),
            (2, Some(key)) => Selection::range((Bound::Excluded(&key), Bound::Unbounded)).expect("a range"),
            (3, Some(key)) => Selection::prefix(&key[..1]),
            _ => Selection::EVERYTHING,
        };
        let query = compile(at, Way::Any, &selection);
        let by_object_alone = compile(at, Way::ByObject, &selection);
        let stride = 24 + room;
        let count = numbers.len() * repeats;
        let mut bytes = vec![0xA5; count * stride];
        let mut bits = vec![0_u64; count.div_ceil(64)];
        let all = numbers.iter().cycle().take(count).enumerate();
        for (record, (at, &(key, value, word))) in bytes.chunks_mut(stride).zip(all) {
            // Runs differ, though numbers repeat.
            let key = key.wrapping_add(at as u64 / 7);
            record[WORD..KEY].copy_from_slice(&word.to_le_bytes());
            record[KEY..VALUE].copy_from_slice(&key.to_le_bytes());
            record[VALUE..24].copy_from_slice(&value.to_le_bytes());
            bits[at / 64] |= u64::from(word == 2) << (at % 64);
        }
        if cuts_the_end {
            // The last record may end with its value.
            bytes.truncate(bytes.len().saturating_sub(room));
        }
        let column = |offset: usize| Column::new(&bytes, offset.min(bytes.len()), stride, 8).expect("inside");
        let live = match how {
            0 => Validity::All,
            1 => Validity::Bits(&bits),
            _ => Validity::Word { words: column(WORD), mask: !1, equals: 2 },
        };
        let block = ColumnBatch::new(count, column(KEY), column(VALUE), live).expect("inside");

        let mut by_block = query.fold();
        // A run that has begun object by object does not mix with the block.
        by_block.push(&7_u64.to_le_bytes(), &9_u64.to_le_bytes()).expect("few groups");
        by_block.push_batch(&block).expect("few groups");
        let mut folds = [query.fold(), by_object_alone.fold()];
        for fold in &mut folds {
            fold.push(&7_u64.to_le_bytes(), &9_u64.to_le_bytes()).expect("few groups");
            for record in bytes.chunks(stride).take(count) {
                let word = record[WORD];
                if how == 0 || how == 1 && word == 2 || how == 2 && word >= 2 {
                    fold.push(&record[KEY..VALUE], &record[VALUE..24]).expect("few groups");
                }
            }
        }
        let [gathered, alone] = folds.map(|fold| fold.into_partial());
        let block = by_block.into_partial();
        prop_assert_eq!(block.encode(), gathered.encode());
        // Sums of floats from any bits may overflow, either way.
        prop_assert_eq!(query.finish(block), by_object_alone.finish(alone));
    }
}

#[test]
fn values_alone_are_enough_where_nothing_depends_on_keys() {
    let values: Vec<u8> = (0..3000_u64).flat_map(u64::to_le_bytes).collect();
    let column = Column::new(&values, 0, 8, 8).expect("inside");
    let block = ColumnBatch::new(3000, Column::NOTHING, column, Validity::All).expect("inside");
    let query = |layout: &str, figures: &str| {
        Query::new(layout.parse().expect("a layout"))
            .aggregates(Aggregate::list(figures).expect("figures"))
            .select(Selection::prefix(b"x"))
    };
    let sum = query("n:i64le", "sum(n)").compile().expect("a query");
    assert!(sum.goes_by_column() && !sum.needs_keys());
    assert_eq!(sum.value_bytes_min(), 8);
    let mut fold = sum.fold();
    fold.push_batch_selected(&block).expect("no groups");
    let answer = sum.finish(fold.into_partial()).expect("an answer");
    assert_eq!(answer.value(0, "sum(n)"), Ok(&(2999 * 1500).into()));

    for (layout, figures, by_column) in [
        ("n:i64le, k:key.u8", "max(k)", true),
        ("n:f64le", "sum(n)", true),
        ("n:u8?7", "sum(n)", true),
        ("n:decimal", "sum(n)", false),
        ("n:i64le", "first(n)", false),
        ("n:i64le", "count(key)", false),
    ] {
        let query = query(layout, figures).compile().expect("a query");
        assert!(query.needs_keys(), "{figures}");
        assert_eq!(query.goes_by_column(), by_column, "{figures}");
    }
}

/// More groups than a fold keeps at hand, and than the query allows.
#[test]
fn many_groups_are_poured_out_again_and_again() {
    let count = 40_000_u64;
    let values: Vec<u8> = (0..count).flat_map(|at| (at * 7 % 20_000).to_le_bytes()).collect();
    let column = Column::new(&values, 0, 8, 8).expect("inside");
    let block = ColumnBatch::new(count as usize, column, column, Validity::All).expect("inside");
    let query = |groups_max| {
        Query::new("n:u64le".parse().expect("a layout"))
            .group_by(Group::list("n").expect("groups"))
            .aggregates(Aggregate::list("count, sum(n), min(n), max(n)").expect("figures"))
            .groups_max(groups_max)
            .compile()
            .expect("a query")
    };
    let enough = query(20_000);
    let mut fold = enough.fold();
    fold.push_batch(&block).expect("as many groups as there may be");
    fold.push_batch_selected(&block).expect("the same groups");
    let answer = enough.finish(fold.into_partial()).expect("an answer");
    assert_eq!(answer.rows.len(), 20_000);
    for row in [0, 1, 7_777, 19_999] {
        let value = |column| answer.value(row, column).cloned().expect("a whole number");
        let group = value("n");
        assert_eq!(
            (value("count"), value("min(n)"), value("max(n)")),
            (4.into(), group.clone(), group)
        );
        assert_eq!(value("sum(n)"), (4 * row as u64).into());
    }
    let few = query(19_999);
    let refused = QueryError::TooManyGroups { max: 19_999 };
    assert_eq!(few.fold().push_batch(&block), Err(refused.clone()));
    // One by one, it is the end that refuses the last ones at the latest.
    let by_object = |query: &Compiled| {
        let mut fold = query.fold();
        for value in values.chunks(8) {
            fold.push(value, value)?;
        }
        query.finish(fold.into_partial()).map(|answer| answer.rows.len())
    };
    assert_eq!(by_object(&few), Err(refused));
    assert_eq!(by_object(&enough), Ok(20_000));
}

/// Found by reading: it panicked. Slots were full in the very run that ends the fold, with more
/// groups than there may be.
#[test]
fn too_many_groups_in_the_last_run_are_an_error_at_the_end() {
    let query = Query::new("n:u32le".parse().expect("a layout"))
        .group_by(Group::list("n").expect("groups"))
        .aggregates(Aggregate::list("count").expect("figures"))
        .groups_max(8_100)
        .compile()
        .expect("a query");
    let mut fold = query.fold();
    let numbers = (0..8_192_u32).map(|at| at % 8_000).chain(8_000..8_300);
    for number in numbers {
        fold.push(b"key", &number.to_le_bytes()).expect("not asked before the run is full");
    }
    let refused = query.finish(fold.into_partial()).expect_err("too many");
    assert_eq!(refused, QueryError::TooManyGroups { max: 8_100 });
}
