//! Aggregates keep their promise while writers write.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rand::RngExt;
use sapwood::aggregate::{Aggregate, Cell, Execution, Executor, Group, Query, Selection, Value};
use sapwood::{AnyTable, Db, HashTableOptions, RecordLayout, TreeKind, TreeTableOptions};
use sapwood_testkit::{case, rng};

use crate::aggregate::{KINDS, make};

/// Keys that stay, and keys that come and go beside them.
const STAYING: u64 = 3_000;

fn key_of(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Runs `body` while two threads run `write(thread, round)` for as long as it lasts, which is at
/// least until each has written a thousand times.
fn while_writing(write: impl Fn(u64, u64) + Sync, body: impl Fn()) {
    let is_over = AtomicBool::new(false);
    let rounds = [AtomicU64::new(0), AtomicU64::new(0)];
    thread::scope(|scope| {
        for (writer, rounds) in rounds.iter().enumerate() {
            let (is_over, write) = (&is_over, &write);
            scope.spawn(move || {
                for round in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    write(writer as u64, round);
                    rounds.store(round, Ordering::Relaxed);
                }
            });
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while rounds.iter().any(|rounds| rounds.load(Ordering::Relaxed) < 1_000) {
                body();
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Keys that are there throughout are counted exactly once by every executor, with a value that
/// they had, while each of them is overwritten, moved and lies among keys that come and go.
#[test]
fn staying_keys_are_counted_once_while_others_come_and_go() {
    case!().seeds(2, |seed| {
        for kind in KINDS {
            let kept = make(kind);
            let table = &kept.table;
            for number in 0..STAYING {
                table.put(&key_of(number), &(number + (1 << 40)).to_le_bytes());
            }
            let select = |selection: Selection, figures: &str| {
                Query::new("low:u32le, high:u32le@4".parse().expect("a layout"))
                    .aggregates(Aggregate::list(figures).expect("figures"))
                    .select(selection)
                    .compile()
                    .expect("a query")
            };
            let (low, high) = (key_of(0), key_of(STAYING));
            let range = Selection::range((Bound::Included(&low), Bound::Excluded(&high)));
            let list = Selection::keys((0..STAYING).map(key_of));
            // The low half of a value stays, the high half is rewritten all the time.
            let figures = "count, sum(low), distinct(low, 14), max(high)";
            let queries = [select(range.expect("the right way"), figures), select(list, figures)];
            let write = |writer: u64, round: u64| {
                let mut rng = rng(seed ^ round << 8 ^ writer);
                let number = rng.random_range(0..STAYING);
                table.put(&key_of(number), &(number + (round << 32)).to_le_bytes());
                let passing = STAYING + (rng.random_range(0..500) << 1 | writer);
                match round % 3 {
                    0 => drop(table.remove(&key_of(passing))),
                    _ => table.put(&key_of(passing), &[0xFF; 8]),
                }
            };
            while_writing(write, || {
                for query in &queries {
                    for candidate in table.plan(query).candidates {
                        let execution = Execution::new().executor(candidate.executor).threads(2);
                        let (partial, plan) = table.run(query, &execution).expect("an answer");
                        let answer = query.finish(partial).expect("no overflow");
                        let what = format!("{kind:?} {plan}");
                        assert_eq!(answer.value(0, "count"), Ok(&STAYING.into()), "{what}");
                        let sum = STAYING * (STAYING - 1) / 2;
                        assert_eq!(answer.value(0, "sum(low)"), Ok(&sum.into()), "{what}");
                        assert_eq!(answer.tally.absent, 0, "{what}");
                    }
                }
            });
        }
    });
}

/// One writer raises key after key; at any moment those raised in this round are the first ones.
/// A run at one moment sees just that, whatever the threads and the pages.
#[test]
fn logs_and_trees_are_seen_as_of_one_moment() {
    let variable = HashTableOptions::default().page_bytes(4096);
    let fixed = variable.clone().layout(RecordLayout::Fixed8);
    let folder = tempfile::tempdir().expect("a folder");
    let on_disk = Db::open(folder.path()).expect("an empty folder");
    let memory = Db::in_memory();
    let tables = [
        memory.create_hash_table("fixed", fixed.clone()).expect("free"),
        memory.create_hash_table("variable", variable.clone()).expect("free"),
        on_disk.create_hash_table("cold", variable.memory_budget(256 << 10)).expect("free"),
    ];
    let trees = [TreeKind::BTree, TreeKind::CritBit, TreeKind::RedBlack].map(|kind| {
        let options = TreeTableOptions::default().kind(kind);
        memory.create_tree_table(&format!("{kind:?}"), options).expect("free")
    });
    let trees = trees.map(AnyTable::from);
    for table in tables.map(AnyTable::from).iter().chain(&trees) {
        case!().once(|| raise_in_order(table));
    }
}

fn raise_in_order(table: &AnyTable) {
    const COUNT: u64 = 2_000;
    for number in 0..COUNT {
        table.put(key_of(number), 0_u64.to_le_bytes()).expect("room");
    }
    let query = Query::new("n:u64le".parse().expect("a layout"))
        .group_by(Group::list("n").expect("groups"))
        .aggregates(Aggregate::list("count, min(key), max(key)").expect("figures"))
        .compile()
        .expect("a query");
    let write = |writer: u64, step: u64| {
        if writer == 0 {
            let (number, round) = (step % COUNT, step / COUNT + 1);
            table.put(key_of(number), round.to_le_bytes()).expect("room");
        } else {
            // Others come and go meanwhile, outside of what is looked at.
            let passing = format!("passing {}", step % 50);
            if table.as_hash().is_none_or(|hash| hash.layout() == RecordLayout::Variable) {
                table.put(passing.as_bytes(), u64::MAX.to_le_bytes()).expect("room");
                table.remove(passing.as_bytes()).expect("no error");
            }
        }
    };
    while_writing(write, || {
        for threads in [1, 3] {
            let execution = Execution::new().at_one_moment().threads(threads);
            let run = table.aggregate_with(&query, &execution).expect("an answer");
            let expected = table.as_hash().map_or(Executor::Range, |_| Executor::Log);
            assert_eq!(run.plan.executor, expected);
            let mut answer = run.answer().expect("figures");
            answer.rows.retain(|row| row[0] != Cell::Value(u64::MAX.into()));
            let number = |cell: &Cell| match cell {
                Cell::Value(Value::Bytes(key)) => {
                    u64::from_be_bytes(key[..].try_into().expect("8 bytes"))
                }
                other => panic!("{other:?}"),
            };
            let rows: Vec<(u64, u64)> =
                answer.rows.iter().map(|row| (number(&row[2]), number(&row[3]))).collect();
            // Rows ascend by round: the later round has the first keys.
            match rows[..] {
                [(0, last)] => assert_eq!(last, COUNT - 1),
                [(first, last), (0, raised)] => {
                    assert_eq!((first, last), (raised + 1, COUNT - 1), "{rows:?}");
                }
                _ => panic!("not one moment: {rows:?}"),
            }
        }
    });
}

/// Objects that are removed and put again all the time are counted at most once.
#[test]
fn objects_that_come_and_go_are_counted_at_most_once() {
    case!().seeds(1, |_| {
        for kind in KINDS {
            let kept = make(kind);
            let table = &kept.table;
            let query = Query::new("n:u64le".parse().expect("a layout"))
                .group_by(Group::list("key").expect("groups"))
                .aggregates(vec![Aggregate::count()])
                .compile()
                .expect("a query");
            let write = |writer: u64, round: u64| {
                let key = key_of((round * 7 % 300) << 1 | writer);
                table.put(&key, &round.to_le_bytes());
                table.remove(&key_of((round * 11 % 300) << 1 | writer));
            };
            while_writing(write, || {
                for candidate in table.plan(&query).candidates {
                    let execution = Execution::new().executor(candidate.executor).threads(2);
                    let (partial, plan) = table.run(&query, &execution).expect("an answer");
                    let answer = query.finish(partial).expect("figures");
                    for row in answer.rows {
                        assert_eq!(row[1], Cell::Value(1.into()), "{kind:?} {plan}");
                    }
                }
            });
        }
    });
}
