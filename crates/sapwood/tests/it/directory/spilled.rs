//! Tables that are larger than their budget, and the disk that they take.

use std::path::Path;

use sapwood::aggregate::{Aggregate, Compiled, Execution, Executor, Query, Selection};
use sapwood::{Compaction, Cut, Db, HashTable, RecordLayout};

use super::{directory, open, plain};

#[test]
fn a_table_larger_than_its_budget_lies_on_the_disk() {
    const ENTRIES: u32 = 20_000;
    let path = directory();
    let db = open(&path);
    let options = plain().page_bytes(64 << 10).memory_budget(2 << 20);
    let table = db.create_hash_table("t", options).expect("a free name");
    let value = |entry: u32| [entry.to_le_bytes()[0]; 500];
    for entry in 0..ENTRIES {
        table.put(entry.to_be_bytes(), value(entry)).expect("it spills");
    }
    let stats = table.stats();
    assert!(stats.reserved_bytes <= 2 << 20, "{stats:?}");
    assert!(stats.head > stats.begin, "something left memory: {stats:?}");
    for entry in (0..ENTRIES).step_by(7) {
        let right = table.get_with(entry.to_be_bytes(), |bytes| *bytes == value(entry));
        assert_eq!(right, Ok(Some(true)), "{entry}");
    }
    drop(table);
    db.close().expect("close");
    let table = open(&path).hash_table("t").expect("it is there");
    assert_eq!(table.len(), Ok(ENTRIES as usize));
}

#[test]
fn compaction_gives_the_disk_back() {
    let path = directory();
    let db = open(&path);
    let options = plain().page_bytes(4096).checkpoints_kept(1);
    let table = db.create_hash_table("t", options).expect("a free name");
    table.put(b"old", b"kept").expect("put");
    for round in 0..2000_u32 {
        table.put((round % 10).to_be_bytes(), vec![b'x'; round as usize]).expect("put");
    }
    table.checkpoint(Cut::Full).expect("checkpoint");
    let compacted = table.compact(1.0).expect("compact");
    assert!(compacted.records_dropped > 1000 && compacted.bytes_freed > 1 << 20, "{compacted:?}");
    table.checkpoint(Cut::Full).expect("checkpoint");
    drop(table);
    db.close().expect("close");
    let table = open(&path).hash_table("t").expect("it is there");
    assert_eq!(table.get(b"old"), Ok(Some(b"kept".to_vec())));
    assert_eq!(table.len(), Ok(11));
    assert_eq!(table.get_with(9_u32.to_be_bytes(), <[u8]>::len), Ok(Some(1999)));
}

/// By itself, and as its options say when it is opened again.
#[test]
fn a_table_keeps_itself_short_as_it_was_told() {
    let path = directory();
    let db = open(&path);
    let compaction =
        Compaction { garbage_share: 0.5, log_bytes_min: 1 << 20, ..Compaction::default() };
    let options = plain().page_bytes(16 << 10).memory_budget(512 << 10).compaction(compaction);
    drop(db.create_hash_table("t", options.clone()).expect("a free name"));
    db.close().expect("close");

    let db = open(&path);
    let table = db.hash_table("t").expect("it is there");
    for round in 0..20_u64 {
        for key in 0..5000_u64 {
            table.put(key.to_be_bytes(), [round as u8; 200]).expect("put");
        }
    }
    // Its own thread does it; how soon is not promised. It may wait for checkpoints, which keep
    // the files.
    let short = |table: &HashTable| table.stats().tail - table.stats().begin < 4 << 20;
    while !short(&table) {
        table.checkpoint(Cut::Incremental).expect("checkpoint");
    }
    let stats = table.stats();
    assert!(stats.compactions > 0 && stats.compacted_bytes > 4 << 20, "{stats:?}");
    assert_eq!(stats.compaction_error, None);
    assert!(table.estimate_garbage().expect("an estimate") < 4 << 20);
    assert_eq!(table.get(7_u64.to_be_bytes()), Ok(Some(vec![19; 200])));
    assert_eq!(table.len(), Ok(5000));
    drop(table);

    let table = db.hash_table_with("t", options.compaction(None)).expect("no other handle");
    let before = table.stats().begin;
    for round in 0..20_u64 {
        for key in 0..5000_u64 {
            table.put(key.to_be_bytes(), [round as u8; 200]).expect("put");
        }
    }
    assert_eq!((table.stats().compactions, table.stats().begin), (0, before));
}

#[test]
fn counters_are_exact_while_they_spill() {
    const EVENTS: u64 = 60_000;
    // Hot ones, recent ones, and any: in place, in a copy, and back from the disk.
    let keys = |event: u64| {
        let random = event.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        [random % 16, 100 + event / 2, 100 + random % (event / 2 + 1)]
    };
    let path = directory();
    let db = open(&path);
    let options = plain().page_bytes(16 << 10).memory_budget(1 << 20);
    let table = db.create_hash_table("t", options).expect("a free name");
    let mut expected = std::collections::BTreeMap::new();
    (0..EVENTS).flat_map(keys).for_each(|key| *expected.entry(key).or_insert(0_i64) += 1);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let table = &table;
            scope.spawn(move || {
                for batch in (thread..EVENTS / 100).step_by(2) {
                    let events = batch * 100..(batch + 1) * 100;
                    let deltas: Vec<([u8; 8], i64)> =
                        events.flat_map(keys).map(|key| (key.to_be_bytes(), 1)).collect();
                    table.add_many(&deltas).expect("counters");
                }
            });
        }
        for _ in 0..3 {
            table.checkpoint(Cut::Incremental).expect("checkpoint");
        }
    });
    let equal = |table: &HashTable, when: &str| {
        let mut found = std::collections::BTreeMap::new();
        let mut visited = 0;
        let _ = table
            .scan_log(|key, value| {
                visited += 1;
                let key = u64::from_be_bytes(key.try_into().expect("8 bytes"));
                found.insert(key, i64::from_le_bytes(value.try_into().expect("a counter")));
                std::ops::ControlFlow::<()>::Continue(())
            })
            .expect("walk");
        assert_eq!(visited, expected.len(), "{when}: each once");
        let wrong = expected.iter().find(|(key, sum)| found.get(key) != Some(sum));
        assert_eq!(wrong, None, "{when}");
    };
    assert!(table.stats().head > table.stats().begin, "something left memory");
    equal(&table, "while open");
    drop(table);
    db.close().expect("close");
    equal(&open(&path).hash_table("t").expect("it is there"), "opened again");
}

/// What a query of a table that was opened would read back and visit is what it then does, and what
/// it answers is what the table answered before. The first walk of either kind brings all back, and
/// leaves later ones nothing to ask the index about.
#[test]
fn an_opened_table_is_walked_in_the_cheapest_way() {
    const ENTRIES: u64 = 20_000;
    /// Of the few records that a walk looks at before pages come back, and of keys that share slots.
    const ASKED_MAX: u64 = 256 + ENTRIES / 20;
    let selections = [
        Selection::EVERYTHING,
        Selection::prefix([0; 7]),
        Selection::prefix([0; 6]),
        Selection::keys((0..300_u64).map(u64::to_be_bytes)),
        Selection::keys((0..ENTRIES).map(u64::to_be_bytes)),
    ];
    let queries = selections.map(|selection| {
        let query = Query::new("n:u64le".parse().expect("a layout")).select(selection);
        query
            .aggregates(Aggregate::list("count, sum(n)").expect("figures"))
            .compile()
            .expect("a query")
    });
    let ways = [None, Some(Executor::Log), Some(Executor::Walk)].map(|executor| match executor {
        Some(executor) => Execution::new().executor(executor),
        None => Execution::new(),
    });
    let openings: [fn(&Path) -> Db; 2] = [
        |path| Db::open(path).expect("it opens"),
        |path| Db::open_read_only(path).expect("it opens"),
    ];
    let layouts = [RecordLayout::Variable, RecordLayout::Fixed8];
    for (layout, replaced) in layouts.into_iter().flat_map(|layout| [(layout, 0), (layout, 3)]) {
        let path = directory();
        let db = open(&path);
        // Several pages: of one alone a walk of the log keeps nothing.
        let options = plain().layout(layout).page_bytes(16 << 10);
        let table = db.create_hash_table("t", options).expect("a free name");
        let put = |entry: u64| table.put(entry.to_be_bytes(), entry.to_le_bytes()).expect("put");
        (0..ENTRIES).for_each(put);
        if replaced > 0 {
            db.checkpoint().expect("a checkpoint");
            (0..ENTRIES).step_by(replaced).for_each(put);
        }
        let answer_of = |table: &HashTable, query: &Compiled| {
            let run = table.aggregate_with(query, &Execution::new()).expect("an answer");
            run.answer().expect("an answer").to_string()
        };
        let answers = queries.each_ref().map(|query| answer_of(&table, query));
        drop(table);
        db.close().expect("close");

        for (query, answer) in queries.iter().zip(&answers) {
            for (way, opening) in ways.iter().flat_map(|way| openings.map(|opening| (way, opening)))
            {
                let db = opening(path.as_ref());
                let table = db.hash_table("t").expect("it is there");
                let run = || {
                    let run = table.aggregate_with(query, way).expect("an answer");
                    let plan = run.plan.clone();
                    assert_eq!(run.answer().expect("an answer").to_string(), *answer, "{plan}");
                    plan
                };
                let before = table.stats();
                assert!(before.read_back_bytes >= ENTRIES * 24, "{before:?}");
                let plan = run();
                let (expected, measured) = (plan.expected(), plan.measured.expect("it ran"));
                let visits = measured.visited / 2..=measured.visited * 2;
                assert!(visits.contains(&expected.visits), "{plan}");
                if plan.executor == Executor::LookUp {
                    assert_eq!(expected.read_back_bytes, 0, "{plan}");
                    continue;
                }
                assert_eq!(expected.read_back_bytes, before.read_back_bytes, "{plan}");
                let after = table.stats();
                assert_eq!(after.read_back_bytes, 0, "{plan}");
                let named = if replaced > 0 { ENTRIES / replaced as u64 } else { 0 };
                assert!(after.chains_asked <= ASKED_MAX + named, "{after:?}, {plan}");
                let again = run();
                assert_eq!(again.expected().read_back_bytes, 0, "{again}");
                assert_eq!(table.stats().chains_asked, after.chains_asked, "{again}");
                if !plan.is_forced {
                    // Keys of a list may be looked up once all is back.
                    assert_eq!(plan.executor, Executor::Log);
                    assert_ne!(again.executor, Executor::Walk, "{again}");
                }
            }
        }
    }
}
