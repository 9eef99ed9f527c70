//! The verbs that all kinds of tables have, each over all of them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::thread;

use rand::RngExt;
use sapwood::aggregate::{Aggregate, Disaggregation, Execution};
use sapwood::{
    AnyTable, Compute, Computed, Db, Engine, Error, HashEngineError, HashTableOptions,
    OrderedEngineError, OrderedTableOptions, RecordLayout, TableStats, TreeEngineError, TreeKind,
    TreeTableOptions, Upsert,
};
use sapwood_testkit::{Rng, case, rng};

type Oracle = BTreeMap<Vec<u8>, Vec<u8>>;

/// All kinds, with the nastiest sizes and with those that nothing was said about.
fn tables() -> Vec<AnyTable> {
    let db = Db::in_memory();
    let ordered = |name: &str, options| db.create_ordered_table(name, options).expect("free");
    let hash = |name: &str, options| db.create_hash_table(name, options).expect("free");
    let tree = |name: &str, kind| {
        let options = TreeTableOptions::default().kind(kind);
        db.create_tree_table(name, options).expect("free")
    };
    vec![
        ordered("chunks-of-2", OrderedTableOptions::default().chunk_entries(2)).into(),
        ordered("ordered", OrderedTableOptions::default()).into(),
        hash("small-pages", HashTableOptions::default().page_bytes(4096)).into(),
        hash("hash", HashTableOptions::default()).into(),
        tree("b-tree", TreeKind::BTree).into(),
        tree("crit-bit", TreeKind::CritBit).into(),
        tree("red-black", TreeKind::RedBlack).into(),
    ]
}

fn bytes(rng: &mut Rng) -> Vec<u8> {
    // Often as long as a counter.
    let len = if rng.random_ratio(1, 2) { 8 } else { rng.random_range(0..40) };
    (0..len).map(|_| rng.random()).collect()
}

fn key(rng: &mut Rng) -> Vec<u8> {
    format!("k{}", rng.random_range(0..60_u32)).into_bytes()
}

fn counter(value: &[u8]) -> Option<i64> {
    value.try_into().ok().map(i64::from_le_bytes)
}

/// What a counter becomes, if the addition is not refused.
fn sum(held: Option<&Vec<u8>>, delta: i64) -> Option<i64> {
    match held {
        None => Some(delta),
        Some(held) => counter(held)?.checked_add(delta),
    }
}

fn append(value: &mut sapwood::ValueMut<'_>, tail: &[u8]) -> usize {
    value.extend_from_slice(tail).expect("it fits");
    if let Some(first) = value.first_mut() {
        *first = first.wrapping_add(1);
    }
    value.len()
}

fn appended(value: &mut Vec<u8>, tail: &[u8]) -> usize {
    value.extend_from_slice(tail);
    if let Some(first) = value.first_mut() {
        *first = first.wrapping_add(1);
    }
    value.len()
}

/// One operation, on the table and on the oracle: both answer the same.
fn step(table: &AnyTable, oracle: &mut Oracle, rng: &mut Rng) {
    let (key, value) = (key(rng), bytes(rng));
    let delta = if rng.random_ratio(1, 8) { i64::MAX - 5 } else { rng.random_range(-9..9) };
    match rng.random_range(0..17) {
        0 | 1 => {
            assert_eq!(table.put(&key, &value), Ok(()));
            oracle.insert(key, value);
        }
        2 => {
            let is_new = !oracle.contains_key(&key);
            assert_eq!(table.put_if_absent(&key, &value), Ok(is_new));
            oracle.entry(key).or_insert(value);
        }
        3 => assert_eq!(table.remove(&key), Ok(oracle.remove(&key).is_some())),
        4 => {
            let expected = oracle.get_mut(&key).map(|held| appended(held, b"+"));
            assert_eq!(table.update(&key, |held| append(held, b"+")), Ok(expected));
        }
        5 => {
            let expected = match oracle.get_mut(&key) {
                Some(held) => Upsert::Updated(appended(held, b"++")),
                None => {
                    oracle.insert(key.clone(), value.clone());
                    Upsert::Inserted
                }
            };
            let answer = table.put_if_absent_or_update(&key, &value, |held| append(held, b"++"));
            assert_eq!(answer, Ok(expected));
        }
        6 => {
            let held = oracle.get(&key).cloned();
            let expected = match &held {
                Some(held) if rng.random_ratio(3, 4) => held.clone(),
                _ => bytes(rng),
            };
            let is_equal = held.as_ref() == Some(&expected);
            assert_eq!(table.compare_and_put(&key, &expected, &value), Ok(is_equal));
            if is_equal {
                oracle.insert(key, value);
            }
        }
        7 | 8 => {
            let expected = sum(oracle.get(&key), delta);
            assert_eq!(table.add(&key, delta).ok(), expected);
            if let Some(sum) = expected {
                oracle.insert(key, sum.to_le_bytes().to_vec());
            }
        }
        9 => {
            let entries: Vec<_> = (0..20).map(|_| (self::key(rng), bytes(rng))).collect();
            assert_eq!(table.put_many(&entries), Ok(()));
            oracle.extend(entries);
        }
        10 => {
            let keys: Vec<_> = (0..20).map(|_| self::key(rng)).collect();
            let mut found = 0;
            for (index, key) in keys.iter().enumerate() {
                let tail = [index as u8];
                found += usize::from(oracle.get_mut(key).map(|v| appended(v, &tail)).is_some());
            }
            let changed = table.update_many(&keys, |index, held| {
                append(held, &[index as u8]);
            });
            assert_eq!(changed, Ok(found));
        }
        11 => {
            let deltas: Vec<_> = (0..20).map(|_| (self::key(rng), delta)).collect();
            let mut done = 0;
            let before = oracle.clone();
            for (key, delta) in &deltas {
                let Some(sum) = sum(oracle.get(key), *delta) else { break };
                oracle.insert(key.clone(), sum.to_le_bytes().to_vec());
                done += 1;
            }
            let stopped = match table.add_many(&deltas) {
                Ok(()) => deltas.len(),
                Err(Error::OrderedBatch { done, .. } | Error::HashBatch { done, .. }) => done,
                // A batch of a tree table is one transaction.
                Err(Error::TreeEngine { .. }) => {
                    *oracle = before;
                    done
                }
                Err(other) => panic!("{other}"),
            };
            assert_eq!(stopped, done);
        }
        12 => {
            let keys: Vec<_> = (0..20).map(|_| self::key(rng)).collect();
            let mut seen = vec![None; keys.len()];
            let read = table.get_many(&keys, |index, value| {
                seen[index] = Some(value.map(<[u8]>::to_vec));
            });
            assert_eq!(read, Ok(()));
            let expected: Vec<_> = keys.iter().map(|key| Some(oracle.get(key).cloned())).collect();
            assert_eq!(seen, expected);
        }
        13 => {
            let removed = oracle.remove(&key);
            assert_eq!(table.remove_with(&key, <[u8]>::to_vec), Ok(removed));
        }
        14 => {
            let decision = match rng.random_range(0..3) {
                0 => Compute::Keep,
                1 => Compute::Remove,
                _ => Compute::Replace(value),
            };
            let held = oracle.get(&key).cloned();
            let expected = match (&decision, &held) {
                (Compute::Keep | Compute::Remove, None) => Computed::Absent,
                (Compute::Keep, Some(_)) => Computed::Kept,
                (Compute::Remove, Some(_)) => Computed::Removed,
                (Compute::Replace(_), None) => Computed::Inserted,
                (Compute::Replace(_), Some(_)) => Computed::Replaced,
            };
            let computed = table.compute(&key, |seen| {
                assert_eq!(seen, held.as_deref());
                decision.clone()
            });
            assert_eq!(computed, Ok(expected));
            match decision {
                Compute::Keep => {}
                Compute::Remove => drop(oracle.remove(&key)),
                Compute::Replace(value) => drop(oracle.insert(key, value)),
            }
        }
        15 if rng.random_ratio(1, 8) => {
            let keep = |key: &[u8], value: &[u8]| !(key.len() + value.len()).is_multiple_of(5);
            let before = oracle.len();
            oracle.retain(|key, value| keep(key, value));
            assert_eq!(table.retain(keep), Ok((before - oracle.len()) as u64));
        }
        _ if rng.random_ratio(1, 20) => {
            assert_eq!(table.clear(), Ok(()));
            oracle.clear();
        }
        _ => {
            let held = oracle.get(&key);
            assert_eq!(table.get(&key).as_ref(), Ok(&held.cloned()));
            assert_eq!(table.get_with(&key, <[u8]>::len), Ok(held.map(Vec::len)));
            assert_eq!(table.contains_key(&key), Ok(held.is_some()));
            let expected = held.map(|held| counter(held)).map_or(Some(None), |c| c.map(Some));
            assert_eq!(table.get_counter(&key).ok(), expected);
        }
    }
}

fn contents(table: &AnyTable) -> Oracle {
    let mut entries = Oracle::new();
    let end = table.for_each(|key, value| {
        assert_eq!(entries.insert(key.to_vec(), value.to_vec()), None, "seen once");
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(end, Ok(ControlFlow::Continue(())));
    entries
}

#[test]
fn every_verb_answers_as_an_oracle_does() {
    case!().seeds(8, |seed| {
        for table in tables() {
            let (mut rng, mut oracle) = (rng(seed), Oracle::new());
            for _ in 0..1_500 {
                step(&table, &mut oracle, &mut rng);
            }
            assert_eq!(contents(&table), oracle, "{table:?}");
            assert_eq!(table.len(), Ok(oracle.len()), "{table:?}");
            assert_eq!(table.len_estimate(), oracle.len(), "{table:?}");
            assert_eq!(table.stats().entries_estimate(), oracle.len() as u64, "{table:?}");
            assert_eq!(table.is_empty(), Ok(oracle.is_empty()));
            table.check().expect("a sound table");
        }
    });
}

#[test]
fn a_walk_ends_where_it_is_told() {
    for table in tables() {
        table.put_many(&[("a", "1"), ("b", "2"), ("c", "3")]).expect("room");
        let mut seen = 0;
        let end = table.for_each(|key, _| {
            seen += 1;
            if seen == 2 { ControlFlow::Break(key.to_vec()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(end, Ok(ControlFlow::Break(_))) && seen == 2, "{table:?}: {end:?}");
    }
}

#[test]
fn additions_of_many_threads_are_all_counted() {
    const THREADS: i64 = 4;
    const ROUNDS: i64 = 3_000;
    for table in tables() {
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 0..ROUNDS {
                        let key = [b'k', (round % 5) as u8];
                        match round % 3 {
                            0 => table.add_many(&[(key, 1)]).expect("room"),
                            _ => drop(table.add(key, 1).expect("room")),
                        }
                    }
                });
            }
        });
        for key in 0..5 {
            assert_eq!(table.get_counter([b'k', key]), Ok(Some(THREADS * ROUNDS / 5)), "{table:?}");
        }
    }
}

#[test]
fn exchanges_of_many_threads_lose_none() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 1_000;
    for table in tables() {
        // Values of changing length: some exchanges are in place, some are not.
        let text = |number: u64| format!("{number:0>width$}", width = 20 + (number % 50) as usize);
        table.put(b"k", text(0).as_bytes()).expect("room");
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        loop {
                            let held = table.get(b"k").expect("no error").expect("it stays");
                            let number: u64 =
                                String::from_utf8_lossy(&held).parse().expect("a number");
                            let new = text(number + 1);
                            match table.compare_and_put(b"k", &held, new.as_bytes()) {
                                Ok(true) => break,
                                Ok(false) => {}
                                Err(error) => panic!("{error}"),
                            }
                        }
                    }
                });
            }
        });
        let last = table.get(b"k").expect("no error").expect("it stays");
        assert_eq!(String::from_utf8_lossy(&last), text(THREADS * ROUNDS), "{table:?}");
    }
}

/// What the engine of either kind refused, in the same words.
fn refused(error: &Error) -> String {
    let causes = [
        error.ordered_engine().map(ToString::to_string),
        error.hash_engine().map(ToString::to_string),
        error.tree_engine().map(ToString::to_string),
    ];
    let cause = causes.into_iter().flatten().next();
    let cause = cause.unwrap_or_else(|| panic!("not an engine's: {error}"));
    assert!(error.to_string().contains(&cause), "{error}");
    cause
}

#[test]
fn counters_that_overflow_or_are_none_stay_as_they_are() {
    for table in tables() {
        assert_eq!(table.get_counter(b"max"), Ok(None));
        assert_eq!(table.contains_key(b"max"), Ok(false), "reading makes none");
        assert_eq!(table.add(b"max", i64::MAX), Ok(i64::MAX));
        assert_eq!(
            refused(&table.add(b"max", 1).unwrap_err()),
            format!(
                "{} + 1 leaves the range of a 64-bit counter; the counter is unchanged",
                i64::MAX
            )
        );
        assert_eq!(table.get_counter(b"max"), Ok(Some(i64::MAX)));
        table.put(b"text", b"nine long").expect("room");
        let none = "the value has 9 bytes, and a counter has 8: put 8 bytes, little endian, before \
                    adding";
        assert_eq!(refused(&table.add(b"text", 1).unwrap_err()), none);
        assert_eq!(refused(&table.get_counter(b"text").unwrap_err()), none);
        assert_eq!(refused(&table.add_many(&[("a", 1), ("text", 1)]).unwrap_err()), none);
        assert_eq!(table.get(b"text").as_ref().map(Option::as_deref), Ok(Some(&b"nine long"[..])));
    }
}

#[test]
fn keys_and_values_of_a_wrong_length_are_refused_alike() {
    for table in tables() {
        for key in [vec![], vec![1; (64 << 10) + 1]] {
            if key.is_empty() && table.engine() == Engine::Tree {
                continue;
            }
            let long = match table.engine() {
                Engine::Ordered => Some(OrderedEngineError::KeyLength { len: key.len() }),
                _ => None,
            };
            let changes_nothing = [
                table.get(&key).map(drop),
                table.get_with(&key, |_| ()).map(drop),
                table.contains_key(&key).map(drop),
                table.get_counter(&key).map(drop),
                table.get_many(&[&key], |_, _| {}),
                table.put(&key, b""),
                table.put_if_absent(&key, b"").map(drop),
                table.put_many(&[(&key, b"")]),
                table.update(&key, |_| ()).map(drop),
                table.update_many(&[&key], |_, _| ()).map(drop),
                table.put_if_absent_or_update(&key, b"", |_| ()).map(drop),
                table.add(&key, 1).map(drop),
                table.add_many(&[(&key, 1)]),
                table.compare_and_put(&key, b"", b"").map(drop),
                table.remove(&key).map(drop),
            ];
            for answer in changes_nothing {
                let error = answer.expect_err("no table has such a key");
                let len = match (error.hash_engine(), error.tree_engine()) {
                    (Some(HashEngineError::KeyLength { len, .. }), _) => Some(*len),
                    (_, Some(TreeEngineError::KeyLength { len, .. })) => Some(*len),
                    _ => None,
                };
                match (&long, len) {
                    (Some(cause), _) => assert_eq!(error.ordered_engine(), Some(cause)),
                    (None, Some(len)) => assert_eq!(len, key.len()),
                    (None, None) => panic!("{error}"),
                }
            }
        }
        assert_eq!(table.is_empty(), Ok(true));
        if table.engine() == Engine::Tree {
            assert_eq!(table.put(b"", b""), Ok(()), "an empty key is one");
            assert_eq!(table.get(b""), Ok(Some(Vec::new())));
        }
    }
    let fixed = HashTableOptions::default().layout(RecordLayout::Fixed8);
    let fixed: AnyTable = Db::in_memory().create_hash_table("t", fixed).expect("free").into();
    assert_eq!(fixed.put(b"8 bytes!", b"8 bytes!"), Ok(()));
    for error in [
        fixed.put(b"8 bytes!", b"long value").unwrap_err(),
        fixed.compare_and_put(b"8 bytes!", b"8 bytes!", b"long value").unwrap_err(),
        fixed.update(b"8 bytes!", |value| value.set(b"long value")).unwrap().unwrap().unwrap_err(),
    ] {
        let cause = HashEngineError::ValueLength { len: 10, min: 8, max: 8 };
        assert_eq!(error, Error::HashEngine { table: "t".into(), cause });
    }
}

#[test]
fn a_name_opens_a_table_of_either_kind() {
    let db = Db::in_memory();
    db.create_ordered_table("o", OrderedTableOptions::default()).expect("free");
    db.create_hash_table("h", HashTableOptions::default()).expect("free");
    db.create_tree_table("t", TreeTableOptions::default()).expect("free");
    let tree = db.table("t").expect("there");
    assert_eq!((tree.name(), tree.engine()), ("t", Engine::Tree));
    assert!(tree.as_tree().is_some() && tree.as_ordered().is_none() && tree.as_hash().is_none());
    assert!(matches!(tree.stats(), TableStats::Tree(_)));
    let (ordered, hash) = (db.table("o").expect("there"), db.table("h").expect("there"));
    assert!(ordered.as_tree().is_none() && hash.as_tree().is_none());
    assert_eq!((ordered.name(), ordered.engine()), ("o", Engine::Ordered));
    assert_eq!((hash.name(), hash.engine()), ("h", Engine::Hash));
    assert!(ordered.as_ordered().is_some() && ordered.as_hash().is_none());
    assert!(hash.as_hash().is_some() && hash.as_ordered().is_none());
    assert!(matches!(ordered.stats(), TableStats::Ordered(_)));
    assert!(matches!(hash.stats(), TableStats::Hash(_)));
    assert!(matches!(db.table("none"), Err(Error::TableMissing { .. })));
    ordered.clone().put(b"k", b"v").expect("room");
    assert_eq!(db.ordered_table("o").expect("there").len(), Ok(1), "the same table");
}

#[test]
fn a_table_of_a_directory_is_recovered_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = Db::open(folder.path()).expect("an empty folder");
    let hits = db.create_hash_table("hits", HashTableOptions::default()).expect("free");
    hits.add(b"/", 7).expect("room");
    drop(hits);
    db.close().expect("a checkpoint");
    let db = Db::open(folder.path()).expect("it was closed");
    assert_eq!(db.table("hits").expect("stored").get_counter(b"/"), Ok(Some(7)));
}

#[test]
fn figures_go_both_ways() {
    let db = Db::in_memory();
    let fields = || "n:i64le".parse().expect("a layout");
    let ordered = OrderedTableOptions::default().fields(fields());
    db.create_ordered_table("o", ordered).expect("free");
    db.create_hash_table("h", HashTableOptions::default().fields(fields())).expect("free");
    db.create_tree_table("t", TreeTableOptions::default().fields(fields())).expect("free");
    for name in db.table_names() {
        let table = db.table(&name).expect("there");
        table.add_many(&[("a", 1), ("b", 2), ("c", 4)]).expect("room");
        assert_eq!(table.fields(), Some(&fields()));
        let figures = Aggregate::list("sum(n)").expect("a list");
        let query = table.query().expect("fields").aggregates(figures);
        let total = |expected: i64| {
            let answer = table.aggregate(&query).expect("an answer");
            assert_eq!(answer.value(0, "sum(n)"), Ok(&expected.into()), "{name}");
        };
        total(7);
        let compiled = query.compile().expect("a query");
        let plan = table.explain(&compiled, &Execution::new()).expect("a plan");
        let run = table.aggregate_with(&compiled, &Execution::new()).expect("an answer");
        assert_eq!(run.plan.executor, plan.executor);
        let more = Disaggregation::new(fields(), "n", 10).adding();
        assert_eq!(table.disaggregate(&more).expect("it fits").given, 10);
        total(17);
        let more = more.compile().expect("it fits together");
        let settled = table.disaggregate_with(&more, &Execution::new()).expect("it fits");
        assert!(settled.pending.is_none() && settled.stopped.is_none());
        total(27);
    }
}
