//! Every executor of every engine answers what a plain walk over the same objects answers.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::RngExt;
use sapwood::aggregate::{
    Aggregate, Cancel, Compiled, Execution, Executor, Group, Mismatches, Partial, Plan, Query,
    QueryError, Selection,
};
use sapwood::{
    AnyTable, Db, Engine, Error, HashTableOptions, OrderedTableOptions, RecordLayout, TableRef,
    TreeKind, TreeTableOptions,
};
use sapwood_testkit::{Rng, case, rng};

type Objects = BTreeMap<Vec<u8>, Vec<u8>>;

/// A table of either engine, in which everything succeeds.
pub(crate) struct Any(pub(crate) AnyTable);

impl Any {
    pub(crate) fn put(&self, key: &[u8], value: &[u8]) {
        self.0.put(key, value).expect("room");
    }

    pub(crate) fn remove(&self, key: &[u8]) -> bool {
        self.0.remove(key).expect("no error")
    }

    pub(crate) fn run(
        &self,
        query: &Compiled,
        execution: &Execution<'_>,
    ) -> sapwood::Result<(Partial, Plan)> {
        let run = self.0.aggregate_with(query, execution)?;
        Ok((run.partial, run.plan))
    }

    pub(crate) fn plan(&self, query: &Compiled) -> Plan {
        self.0.explain(query, &Execution::new()).expect("there is a way")
    }
}

/// Which tables are tried: engine, and the nastiest sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    SmallChunks,
    Ordered,
    Variable,
    Fixed,
    FixedSmallPages,
    OnDisk,
    BTree,
    CritBit,
    RedBlack,
}

pub(crate) const KINDS: [Kind; 9] = [
    Kind::BTree,
    Kind::CritBit,
    Kind::RedBlack,
    Kind::SmallChunks,
    Kind::FixedSmallPages,
    Kind::OnDisk,
    Kind::Variable,
    Kind::Fixed,
    Kind::Ordered,
];

/// A table, and the database and folder that keep it.
pub(crate) struct Kept {
    pub(crate) table: Any,
    _db: Db,
    _folder: Option<tempfile::TempDir>,
}

pub(crate) fn make(kind: Kind) -> Kept {
    let hash = HashTableOptions::default();
    let folder =
        matches!(kind, Kind::OnDisk | Kind::BTree).then(|| tempfile::tempdir().expect("a folder"));
    let db = match &folder {
        Some(folder) => Db::open(folder.path()).expect("an empty folder"),
        None => Db::in_memory(),
    };
    let hash_of = |options| Any(db.create_hash_table("t", options).expect("free").into());
    let ordered_of = |options| Any(db.create_ordered_table("t", options).expect("free").into());
    let tree_of = |options| Any(db.create_tree_table("t", options).expect("free").into());
    let tree = TreeTableOptions::default();
    let table = match kind {
        Kind::SmallChunks => ordered_of(OrderedTableOptions::default().chunk_entries(2)),
        Kind::Ordered => ordered_of(OrderedTableOptions::default()),
        Kind::Variable => hash_of(hash),
        Kind::Fixed => hash_of(hash.layout(RecordLayout::Fixed8)),
        Kind::FixedSmallPages => hash_of(hash.layout(RecordLayout::Fixed8).page_bytes(4096)),
        // Most of it lies in files.
        Kind::OnDisk => hash_of(hash.page_bytes(4096).memory_budget(256 << 10)),
        Kind::BTree => tree_of(tree),
        Kind::CritBit => tree_of(tree.kind(TreeKind::CritBit).layout(RecordLayout::Fixed8)),
        Kind::RedBlack => tree_of(tree.kind(TreeKind::RedBlack)),
    };
    Kept { table, _db: db, _folder: folder }
}

fn key_of(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Objects that were put, overwritten, removed and put again; keys below 4,096.
fn fill(table: &Any, rng: &mut Rng, count: usize) -> Objects {
    let mut objects = Objects::new();
    for _ in 0..count {
        let key = key_of(rng.random_range(0..4_096));
        if rng.random_ratio(1, 5) && objects.remove(&key[..]).is_some() {
            assert!(table.remove(&key));
        } else {
            let value = rng.random_range(-1_000..1_000_i64).to_le_bytes();
            table.put(&key, &value);
            objects.insert(key.to_vec(), value.to_vec());
        }
    }
    objects
}

/// What a plain walk adds up to.
fn expected(query: &Compiled, objects: &Objects) -> Partial {
    let mut fold = query.fold();
    for (key, value) in objects {
        fold.push(key, value).expect("few groups");
    }
    let selected = fold.partial().tally().selected;
    if let Some(keys) = query.selection().as_keys() {
        fold.add_absent(keys.len() as u64 - selected);
    }
    fold.into_partial()
}

fn selections(rng: &mut Rng) -> Vec<Selection> {
    let mut number = || rng.random_range(0..4_200_u64);
    let (a, b, width) = (number(), number(), number() % 300);
    let (low, high) = (key_of(a.min(b)), key_of(a.max(b)));
    let some: Vec<[u8; 8]> = (0..width).map(|_| key_of(number())).collect();
    let range = |begin: Bound<&[u8]>, limit: Bound<&[u8]>| {
        Selection::range((begin, limit)).expect("the right way around")
    };
    vec![
        Selection::EVERYTHING,
        Selection::keys(&some),
        Selection::keys::<&[u8]>([]),
        // Keys that a table cannot hold are absent from it.
        Selection::keys([&b""[..], b"nobody", &low, &high, &[7; 70_000]]),
        range(Bound::Included(&low), Bound::Excluded(&high)),
        range(Bound::Excluded(&low), Bound::Included(&high)),
        range(Bound::Excluded(&key_of(a)), Bound::Excluded(&key_of(a + width + 1))),
        range(Bound::Included(&high[..7]), Bound::Unbounded),
        range(Bound::Excluded(&high), Bound::Excluded(&high)),
        Selection::prefix(&low[..7]),
        Selection::prefix(b"\x01"),
    ]
}

fn questions() -> Vec<Query> {
    let layout = || "n:i64le, low:key.u8@7, high:key.u8@6".parse().expect("a layout");
    let figures = |text| Aggregate::list(text).expect("figures");
    let groups = |text| Group::list(text).expect("groups");
    vec![
        Query::new(layout()).aggregates(figures("count, sum(n), min(n), max(n)")),
        Query::new(layout()).aggregates(figures("sum(n)")).filter("n >= 0".parse().expect("ok")),
        Query::new(layout())
            .aggregates(figures("count, mean(n), stddev(n), first(n), last(n), distinct(n)"))
            .group_by(groups("high, bucket(n, 500)")),
        Query::new(layout())
            .aggregates(figures("median(n), top(low, 3), max(key)"))
            .filter("low < 200 and not n = 7".parse().expect("ok")),
    ]
}

#[test]
fn a_key_of_other_types_than_the_layout_says_is_a_mismatch() {
    let db = Db::in_memory();
    let options = OrderedTableOptions::default();
    let table = db.create_ordered_table("flights", options).expect("there is room");
    table.put(sapwood::key::encode(&("UA", 7_i32)), b"").expect("there is room");
    let ask = |layout: &str, figures: &str| {
        let query = Query::new(layout.parse().expect("it has the form"))
            .aggregates(Aggregate::list(figures).expect("it has the form"));
        table.aggregate(&query).and_then(|answer| Ok(answer.value(0, figures)?.as_i64()))
    };
    assert_eq!(ask("key(a:str, b:i32)", "sum(b)"), Ok(Some(7)));
    for (layout, figures) in [
        ("key(a:str, b:u16)", "sum(b)"),
        ("key(a:str, b:u16)", "count(a)"),
        ("key(a:str, b:u64)", "count(a)"),
        ("key(a:str)", "count(a)"),
    ] {
        let refused = ask(layout, figures).expect_err("the key is longer or shorter");
        assert!(matches!(refused, Error::Query(QueryError::Mismatched { .. })), "{refused}");
    }
    assert_eq!(ask("key(a:str, ..)", "count(a)"), Ok(Some(1)));
}

#[test]
fn every_executor_answers_as_a_plain_walk_does() {
    case!().seeds(6, |seed| {
        let mut rng = rng(seed);
        for kind in KINDS {
            let kept = make(kind);
            let count = [0, 3, 400, 9_000][(seed % 4) as usize];
            let objects = fill(&kept.table, &mut rng, count);
            let mut ran = Vec::new();
            for (selection, query) in
                selections(&mut rng).into_iter().zip(questions().iter().cycle())
            {
                let query = query.clone().select(selection.clone()).compile().expect("a query");
                let expected = expected(&query, &objects).encode();
                for candidate in kept.table.plan(&query).candidates {
                    let threads = rng.random_range(1..4);
                    let execution = Execution::new().executor(candidate.executor).threads(threads);
                    let (partial, plan) = kept.table.run(&query, &execution).expect("an answer");
                    let what = format!("{kind:?}, {selection:?}, {plan}");
                    assert_eq!(partial.encode(), expected, "{what}");
                    assert!(plan.is_forced && plan.executor == candidate.executor, "{what}");
                    ran.push(candidate.executor);
                }
            }
            let all: &[Executor] = match kept.table.0.engine() {
                Engine::Hash => &[Executor::LookUp, Executor::Walk, Executor::Log],
                _ => &[Executor::LookUp, Executor::Range],
            };
            assert!(all.iter().all(|executor| ran.contains(executor)), "{kind:?}: {ran:?}");
        }
    });
}

#[test]
fn the_planner_takes_look_ups_for_few_and_walks_for_many() {
    for kind in [Kind::Fixed, Kind::Variable, Kind::Ordered] {
        let kept = make(kind);
        for number in 0..50_000_u64 {
            kept.table.put(&key_of(number), &number.to_le_bytes());
        }
        let chosen = |selection| {
            let query = Query::new("n:i64le".parse().expect("a layout"))
                .aggregates(vec![Aggregate::sum("n")])
                .select(selection);
            kept.table.plan(&query.compile().expect("a query")).executor
        };
        let whole = match kept.table.0.engine() {
            Engine::Hash => Executor::Log,
            _ => Executor::Range,
        };
        assert_eq!(chosen(Selection::EVERYTHING), whole, "{kind:?}");
        let few = Selection::keys((0..50).map(|number| key_of(number * 1_000)));
        assert_eq!(chosen(few), Executor::LookUp, "{kind:?}");
        let (low, high) = (key_of(700), key_of(720));
        let short = Selection::range((Bound::Included(&low), Bound::Excluded(&high))).expect("ok");
        let short_way = match kind {
            // Its keys are numbers of 8 bytes: all between the bounds can be looked up.
            Kind::Fixed => Executor::LookUp,
            Kind::Variable => Executor::Log,
            _ => Executor::Range,
        };
        assert_eq!(chosen(short), short_way, "{kind:?}");
    }
}

#[test]
fn a_cancelled_run_says_so_and_leaves_no_trace() {
    for kind in KINDS {
        let kept = make(kind);
        let objects: Objects = (0..30_000_u64)
            .map(|number| (key_of(number).to_vec(), number.to_le_bytes().to_vec()))
            .collect();
        objects.iter().for_each(|(key, value)| kept.table.put(key, value));
        let query = Query::new("n:i64le".parse().expect("a layout"))
            .aggregates(vec![Aggregate::sum("n")])
            .select(
                Selection::range((Bound::Included(&key_of(0)), Bound::Excluded(&key_of(30_000))))
                    .expect("ok"),
            )
            .compile()
            .expect("a query");
        for candidate in kept.table.plan(&query).candidates {
            for threads in [1, 3] {
                let cancel = Cancel::new();
                let tell = |progress: sapwood::aggregate::Progress| {
                    assert!(progress.done <= progress.total);
                    if progress.done > 0 {
                        cancel.cancel();
                    }
                };
                let execution = Execution::new().executor(candidate.executor).threads(threads);
                let stopped =
                    kept.table.run(&query, &execution.clone().progress(&tell).cancel(&cancel));
                let what = format!("{kind:?} {} by {threads}: {stopped:?}", candidate.executor);
                let Err(Error::Cancelled { visited, .. }) = stopped else { panic!("{what}") };
                assert!(visited < 30_000, "{what}");
                assert!(cancel.is_cancelled());
                let (partial, _) = kept.table.run(&query, &execution).expect("not cancelled");
                assert_eq!(partial.encode(), expected(&query, &objects).encode(), "{what}");
            }
        }
    }
}

#[test]
fn progress_comes_to_the_end() {
    for kind in KINDS {
        let kept = make(kind);
        for number in 0..20_000_u64 {
            kept.table.put(&key_of(number), &number.to_le_bytes());
        }
        let query = Query::new("n:i64le".parse().expect("a layout"))
            .aggregates(vec![Aggregate::count()])
            .compile()
            .expect("a query");
        for candidate in kept.table.plan(&query).candidates {
            let (calls, greatest) = (AtomicU64::new(0), AtomicU64::new(0));
            let tell = |progress: sapwood::aggregate::Progress| {
                calls.fetch_add(1, Ordering::Relaxed);
                greatest.fetch_max(progress.done, Ordering::Relaxed);
            };
            let execution =
                Execution::new().executor(candidate.executor).threads(2).progress(&tell);
            let (_, plan) = kept.table.run(&query, &execution).expect("an answer");
            let visited = plan.measured.expect("it ran").visited;
            assert_eq!(visited, 20_000, "{kind:?} {}", candidate.executor);
            assert_eq!(greatest.into_inner(), visited, "{kind:?} {}", candidate.executor);
            assert!((2..600).contains(&calls.into_inner()), "{kind:?} {}", candidate.executor);
        }
    }
}

#[test]
fn what_cannot_be_answered_is_an_error_that_says_why() {
    let kept = make(Kind::Ordered);
    let TableRef::Ordered(ordered) = kept.table.0.resolve() else { unreachable!("it is ordered") };
    let kept = make(Kind::Variable);
    let TableRef::Hash(hash) = kept.table.0.resolve() else { unreachable!("it is a hash table") };
    for number in 0..10_u64 {
        ordered.put(key_of(number), &[1; 7][..(number % 8) as usize]).expect("room");
        hash.put(key_of(number), &[1; 7][..(number % 8) as usize]).expect("room");
    }
    let query = Query::new("n:u16le".parse().expect("a layout"))
        .aggregates(Aggregate::list("count, sum(n)").expect("figures"));

    // Values of 0 and 1 byte have no number of two bytes.
    for refused in [ordered.aggregate(&query), hash.aggregate(&query)] {
        let Err(Error::Query(QueryError::Mismatched { count, selected, first })) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((count, selected, &first.key[..]), (4, 10, &key_of(0)[..]));
    }
    let skipping = query.clone().mismatches(Mismatches::Skip);
    for answer in [ordered.aggregate(&skipping), hash.aggregate(&skipping)] {
        let answer = answer.expect("others are skipped");
        assert_eq!(answer.value(0, "count"), Ok(&6.into()));
        assert_eq!(answer.tally.mismatched, 4);
    }

    let compiled = query.compile().expect("a query");
    let refusals = [
        (ordered.explain(&compiled, &Execution::new().executor(Executor::Log)), "choose of: range"),
        (ordered.explain(&compiled, &Execution::new().at_one_moment()), "one moment"),
        (
            hash.explain(&compiled, &Execution::new().executor(Executor::LookUp)),
            "cannot answer the query here; choose of: ",
        ),
        (
            hash.explain(&compiled, &Execution::new().executor(Executor::Walk).at_one_moment()),
            "`log` does",
        ),
    ];
    for (refused, what) in refusals {
        let error = refused.expect_err("no such way").to_string();
        assert!(error.starts_with("table `t`: ") && error.contains(what), "{error}");
    }

    // Nothing selected is an answer, and no figure.
    let none = hash.aggregate(&query.clone().select(Selection::keys(["nobody"]))).expect("none");
    assert_eq!(none.value(0, "count"), Ok(&0.into()));
    assert_eq!(none.value(0, "sum(n)"), Err(QueryError::Nothing { column: "sum(n)".into() }));
    assert_eq!((none.tally.selected, none.tally.absent), (0, 1));

    // A sum that leaves its type is an error, not another number.
    hash.clear().expect("room");
    for number in 0..3_u64 {
        hash.put(key_of(number), i128::MAX.to_le_bytes()).expect("room");
    }
    let wide =
        Query::new("n:i128le".parse().expect("a layout")).aggregates(vec![Aggregate::sum("n")]);
    let Err(Error::Query(QueryError::Overflow { .. })) = hash.aggregate(&wide) else {
        panic!("it does not fit")
    };
}

#[test]
fn declared_fields_are_there_when_the_table_is_opened_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = Db::open(folder.path()).expect("an empty folder");
    let options = HashTableOptions::default().fields("n:i64le".parse().expect("a layout"));
    let table = db.create_hash_table("t", options.clone()).expect("free");
    table.add(b"k", 7).expect("room");
    drop(table);
    db.close().expect("a checkpoint");

    let db = Db::open(folder.path()).expect("closed");
    let sum = |table: &sapwood::HashTable| {
        let query = table.query().expect("fields").aggregates(vec![Aggregate::sum("n")]);
        table.aggregate(&query).expect("a sum").value(0, "sum(n)").cloned()
    };
    assert_eq!(sum(&db.hash_table("t").expect("stored")), Ok(7.into()));
    let renamed = options.fields("m:i64le, n:u8".parse().expect("a layout"));
    let table = db.hash_table_with("t", renamed).expect("no handles");
    assert_eq!(
        (sum(&table), table.fields().map(|fields| fields.fields().len())),
        (Ok(7.into()), Some(2))
    );

    let plain =
        db.create_ordered_table("plain", OrderedTableOptions::default().volatile()).expect("free");
    let error = plain.query().expect_err("none declared");
    assert!(error.to_string().contains("`OrderedTableOptions::fields`"), "{error}");
    let long = (0..400).map(|at| format!("f{at}:u8@{at}")).collect::<Vec<_>>().join(", ");
    let long = HashTableOptions::default().fields(long.parse().expect("a layout"));
    let refused = db.create_hash_table("long", long.clone()).expect_err("no room for them");
    assert!(refused.to_string().contains("its fields cannot be kept"), "{refused}");
    assert_eq!(db.engine("long"), None);
    Db::in_memory().create_hash_table("long", long).expect("nothing is kept");
}

/// Found by reading: look-ups of the last keys of 8 bytes went round to the first ones.
#[test]
fn the_last_keys_there_are_are_found_by_every_executor() {
    for kind in KINDS {
        let kept = make(kind);
        let objects: Objects = (u64::MAX - 3_000..=u64::MAX)
            .map(|number| (key_of(number).to_vec(), 3_i64.to_le_bytes().to_vec()))
            .collect();
        objects.iter().for_each(|(key, value)| kept.table.put(key, value));
        let (low, high) = (key_of(u64::MAX - 2_500), key_of(u64::MAX));
        let selections = [
            Selection::range((Bound::Included(&low), Bound::Excluded(&high))).expect("a range"),
            Selection::range((Bound::Excluded(&low), Bound::Included(&high))).expect("a range"),
            Selection::prefix([0xFF; 7]),
            Selection::prefix([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE]),
        ];
        for selection in selections {
            let query = Query::new("n:i64le".parse().expect("a layout"))
                .aggregates(Aggregate::list("count, sum(n)").expect("figures"))
                .select(selection)
                .compile()
                .expect("a query");
            for candidate in kept.table.plan(&query).candidates {
                let execution = Execution::new().executor(candidate.executor);
                let (partial, plan) = kept.table.run(&query, &execution).expect("an answer");
                assert_eq!(
                    partial.encode(),
                    expected(&query, &objects).encode(),
                    "{kind:?} {plan}"
                );
            }
        }
    }
}
