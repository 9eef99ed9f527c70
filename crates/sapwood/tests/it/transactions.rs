//! Transactions and batches over tables of all kinds.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use sapwood::{
    AnyTable, Compute, Computed, Db, DbOptions, Direction, Error, HashEngineError,
    HashTableOptions, OrderedEngineError, OrderedTableOptions, RecordLayout, Retry, Transaction,
    TreeTableOptions, Upsert,
};
use sapwood_disk::SimDisk;
use sapwood_testkit::case;
use sapwood_testkit::serializable::{Ran, check};

fn tables(db: &Db) -> [AnyTable; 3] {
    [
        db.open_or_create_ordered_table("ordered", OrderedTableOptions::default())
            .expect("made, or there")
            .into(),
        db.open_or_create_hash_table("hash", HashTableOptions::default())
            .expect("made, or there")
            .into(),
        db.open_or_create_tree_table("tree", TreeTableOptions::default())
            .expect("made, or there")
            .into(),
    ]
}

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn entries(table: &AnyTable) -> Entries {
    let mut entries = Entries::new();
    let walked = table.for_each(|key, value| {
        entries.insert(key.to_vec(), value.to_vec());
        ControlFlow::<()>::Continue(())
    });
    assert!(walked.expect("walked").is_continue());
    entries
}

/// A transaction's operations, beside the same on maps.
struct Step<'t, 'db> {
    tx: &'t Transaction<'db>,
    table: &'t AnyTable,
    model: &'t mut Entries,
}

impl Step<'_, '_> {
    fn run(self, rng: &mut fastrand::Rng) {
        let Step { tx, table, model } = self;
        let view = tx.table(table);
        let key = vec![rng.u8(0..24)];
        let value = vec![rng.u8(..); rng.usize(0..20)];
        let there = model.get(&key).cloned();
        match rng.u8(0..12) {
            0 => {
                view.put(&key, &value).expect("put");
                model.insert(key, value);
            }
            1 => {
                let put = view.put_if_absent(&key, &value).expect("put");
                assert_eq!(put, there.is_none());
                model.entry(key).or_insert(value);
            }
            2 => assert_eq!(
                view.remove_with(&key, <[u8]>::to_vec).expect("removed"),
                model.remove(&key)
            ),
            3 => assert_eq!(view.get(&key).expect("read"), there),
            4 => assert_eq!(view.contains_key(&key).expect("read"), there.is_some()),
            5 => {
                let done = view.update(&key, |value| {
                    value.extend_from_slice(b"!").expect("short");
                    value.len()
                });
                if let Some(value) = model.get_mut(&key) {
                    value.push(b'!');
                }
                assert_eq!(done.expect("updated"), model.get(&key).map(Vec::len));
            }
            6 => {
                let done = view.put_if_absent_or_update(&key, &value, |value| value.resize(3));
                match done.expect("put") {
                    Upsert::Inserted => assert_eq!(model.insert(key, value), None),
                    Upsert::Updated(resized) => {
                        resized.expect("short");
                        model.get_mut(&key).expect("it is there").resize(3, 0);
                    }
                }
            }
            7 => {
                let expected = there.clone().unwrap_or_default();
                let put = view.compare_and_put(&key, &expected, &value).expect("put");
                assert_eq!(put, there.is_some());
                if put {
                    model.insert(key, value);
                }
            }
            8 => {
                let key = [b"n", &key[..]].concat();
                let there = model
                    .get(&key)
                    .map(|value| i64::from_le_bytes(value[..].try_into().expect("a counter")));
                let sum = view.add(&key, 5).expect("added");
                assert_eq!(sum, there.unwrap_or(0) + 5);
                assert_eq!(view.get_counter(&key).expect("read"), Some(sum));
                model.insert(key, sum.to_le_bytes().to_vec());
            }
            9 => {
                let (decided, done) = match (rng.u8(0..3), &there) {
                    (0, Some(_)) => (Compute::Keep, Computed::Kept),
                    (0, None) => (Compute::Keep, Computed::Absent),
                    (1, Some(_)) => (Compute::Remove, Computed::Removed),
                    (1, None) => (Compute::Remove, Computed::Absent),
                    (_, Some(_)) => (Compute::Replace(value.clone()), Computed::Replaced),
                    (_, None) => (Compute::Replace(value.clone()), Computed::Inserted),
                };
                match &decided {
                    Compute::Keep => {}
                    Compute::Remove => drop(model.remove(&key)),
                    Compute::Replace(value) => drop(model.insert(key.clone(), value.clone())),
                }
                let computed = view.compute(&key, |seen| {
                    assert_eq!(seen, there.as_deref());
                    decided.clone()
                });
                assert_eq!(computed.expect("computed"), done);
            }
            10 => assert_eq!(view.len().expect("counted"), model.len()),
            _ => scan(tx, table, model, rng),
        }
    }
}

fn scan(tx: &Transaction<'_>, table: &AnyTable, model: &Entries, rng: &mut fastrand::Rng) {
    let bound = |rng: &mut fastrand::Rng| match rng.u8(0..3) {
        0 => Bound::Unbounded,
        1 => Bound::Included([rng.u8(0..24)]),
        _ => Bound::Excluded([rng.u8(0..24)]),
    };
    let (low, high) = (bound(rng), bound(rng));
    let range = (low.as_ref().map(|key| &key[..]), high.as_ref().map(|key| &key[..]));
    let direction = [Direction::Ascending, Direction::Descending][rng.usize(0..2)];
    let at_most = rng.usize(1..40);
    let mut seen = Vec::new();
    let done = tx.table(table).scan(range, direction, |key, value| {
        seen.push((key.to_vec(), value.to_vec()));
        if seen.len() == at_most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if table.as_hash().is_some() {
        assert!(matches!(done, Err(Error::NoOrder { .. })));
        return;
    }
    assert_eq!(done.expect("scanned").is_break(), seen.len() == at_most);
    let is_in = |key: &[u8]| {
        (match low {
            Bound::Unbounded => true,
            Bound::Included(low) => key >= &low[..],
            Bound::Excluded(low) => key > &low[..],
        }) && (match high {
            Bound::Unbounded => true,
            Bound::Included(high) => key <= &high[..],
            Bound::Excluded(high) => key < &high[..],
        })
    };
    let inside = model.iter().filter(|(key, _)| is_in(key));
    let mut expected: Vec<_> = inside.map(|(key, value)| (key.clone(), value.clone())).collect();
    if direction == Direction::Descending {
        expected.reverse();
    }
    expected.truncate(at_most);
    assert_eq!(seen, expected);
}

#[test]
fn a_transaction_is_its_operations_at_once_or_none() {
    case!().seeds(40, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let db = Db::in_memory();
        let tables = tables(&db);
        let mut models: [Entries; 3] = Default::default();
        for _ in 0..30 {
            let tx = db.begin().expect("nothing refuses");
            let mut changed = models.clone();
            for _ in 0..rng.usize(0..25) {
                let at = rng.usize(0..3);
                Step { tx: &tx, table: &tables[at], model: &mut changed[at] }.run(&mut rng);
            }
            for (table, model) in tables.iter().zip(&models) {
                assert_eq!(entries(table), *model, "nothing is seen before the commit");
            }
            match rng.bool() {
                true => {
                    tx.commit().expect("no other thread");
                    models = changed;
                }
                false => tx.abort(),
            }
            for (table, model) in tables.iter().zip(&models) {
                assert_eq!(entries(table), *model);
            }
        }
    });
}

#[test]
fn a_scan_of_many_entries_sees_the_changes_of_the_transaction() {
    let db = Db::in_memory();
    let table = db.create_ordered_table("t", OrderedTableOptions::default()).expect("a free name");
    for key in 0..2_000_u32 {
        table.put(key.to_be_bytes(), b"old").expect("room");
    }
    for direction in [Direction::Ascending, Direction::Descending] {
        let tx = db.begin().expect("nothing refuses");
        let mut expected: BTreeMap<u32, &[u8]> = (0..2_000).map(|key| (key, &b"old"[..])).collect();
        for key in (0..3_000_u32).step_by(7) {
            tx.table(&table).put(key.to_be_bytes(), b"new").expect("put");
            expected.insert(key, b"new");
            tx.table(&table).remove((key / 2).to_be_bytes()).expect("removed");
            expected.remove(&(key / 2));
        }
        let mut seen = Vec::new();
        let end = tx.table(&table).scan(.., direction, |key, value| {
            seen.push((u32::from_be_bytes(key.try_into().expect("four bytes")), value.to_vec()));
            ControlFlow::<()>::Continue(())
        });
        assert!(end.expect("scanned").is_continue());
        if direction == Direction::Descending {
            seen.reverse();
        }
        let expected: Vec<_> = expected.into_iter().map(|(key, v)| (key, v.to_vec())).collect();
        assert_eq!(seen, expected);
    }
}

#[test]
fn a_change_of_what_was_read_is_a_conflict() {
    let db = Db::in_memory();
    let tables = tables(&db);
    for table in &tables[..2] {
        let met = |read: &dyn Fn(&Transaction<'_>), change: &dyn Fn()| {
            let tx = db.begin().expect("nothing refuses");
            read(&tx);
            tx.table(table).put(b"written", b"").expect("put");
            change();
            tx.commit().map(drop)
        };
        let put = || table.put(b"k", b"another").expect("put");
        let get = |tx: &Transaction<'_>| drop(tx.table(table).get(b"k").expect("read"));
        assert_eq!(met(&get, &|| ()), Ok(()));
        assert_eq!(met(&get, &put), Err(Error::Conflict));
        assert_eq!(met(&|_| (), &put), Ok(()), "nothing was read");
        let len = |tx: &Transaction<'_>| assert_eq!(tx.table(table).len(), table.len());
        assert_eq!(met(&len, &|| ()), Ok(()));
        let remove = || assert!(table.remove(b"k").is_ok());
        assert_eq!(met(&len, &remove), Err(Error::Conflict));
        assert_eq!(met(&get, &|| table.clear().expect("cleared")), Err(Error::Conflict));
        let many = || table.put_many(&[("a", ""), ("k", "")]).expect("put");
        assert_eq!(met(&get, &many), Err(Error::Conflict));
        // What is read together was so at one moment.
        let tx = db.begin().expect("nothing refuses");
        get(&tx);
        put();
        assert_eq!(tx.table(table).get(b"other"), Err(Error::Conflict));
    }
}

#[test]
fn a_transaction_inside_of_a_change_that_it_would_wait_for_is_a_conflict() {
    for is_used in [false, true] {
        let db = Db::in_memory();
        let [ordered, hash, _] = tables(&db);
        if is_used {
            db.transaction(|tx| tx.table(&hash).put(b"k", b"v")).expect("no other thread");
        }
        ordered.put(b"k", b"v").expect("put");
        let done = ordered.update(b"k", |_| {
            let tx = db.begin().expect("nothing refuses");
            tx.table(&ordered).put(b"k", b"w").expect("put");
            tx.commit().map(drop)
        });
        assert_eq!(done, Ok(Some(Err(Error::Conflict))));
        let done = ordered.update(b"k", |_| {
            let mut batch = db.batch();
            batch.put(&ordered, b"k", b"w").expect("put");
            batch.commit().map(drop)
        });
        assert_eq!(done, Ok(Some(Err(Error::Conflict))));
        assert_eq!(ordered.get(b"k").expect("read").as_deref(), Some(&b"v"[..]));
    }
}

#[test]
fn a_commit_that_is_refused_changes_nothing() {
    let db = Db::in_memory();
    let small = OrderedTableOptions::default().memory_budget(4 << 20);
    let small = db.create_ordered_table("small", small).expect("a free name");
    let [_, hash, tree] = tables(&db);
    hash.put(b"there", b"before").expect("put");
    small.put(b"there", b"before").expect("put");
    let tx = db.begin().expect("nothing refuses");
    tx.table(&hash).put(b"there", b"after").expect("put");
    tx.table(&hash).put(b"new", b"after").expect("put");
    tx.table(&tree).put(b"new", b"after").expect("put");
    tx.table(&small).remove(b"there").expect("removed");
    for key in 0..64_u8 {
        tx.table(&small).put([key], vec![key; 256 << 10]).expect("it waits in the transaction");
    }
    let refused = tx.commit().expect_err("they do not fit");
    assert!(
        matches!(refused.ordered_engine(), Some(OrderedEngineError::OutOfMemory { .. })),
        "{refused:?}"
    );
    assert_eq!(entries(&hash), Entries::from([(b"there".to_vec(), b"before".to_vec())]));
    assert_eq!(entries(&small.into()), Entries::from([(b"there".to_vec(), b"before".to_vec())]));
    assert!(tree.is_empty().expect("read"));
}

#[test]
fn what_no_table_takes_is_refused_at_once() {
    let (db, other) = (Db::in_memory(), Db::in_memory());
    let [ordered, hash, tree] = tables(&db);
    let fixed = HashTableOptions::default().layout(RecordLayout::Fixed8);
    let fixed = db.create_hash_table("fixed", fixed).expect("a free name");
    let tx = db.begin().expect("nothing refuses");
    assert!(tx.table(&ordered).put(b"", b"").is_err());
    assert!(tx.table(&fixed).put(b"short", b"").is_err());
    assert!(tx.table(&hash).put(vec![0; 40 << 20], b"").is_err());
    assert!(tx.table(&fixed).remove(b"short").is_err());
    assert!(db.batch().remove(&fixed, b"short").is_err());
    assert!(db.batch().remove(&ordered, b"").is_err());
    tx.table(&fixed).put([1; 8], [0; 8]).expect("put");
    assert_eq!(tx.table(&fixed).remove_with([1; 8], <[u8]>::to_vec), Ok(Some(vec![0; 8])));
    tx.table(&fixed).put([0; 8], [0; 8]).expect("put");
    let resized = tx.table(&fixed).update([0; 8], |value| value.resize(9)).expect("it is there");
    assert!(resized.expect("it is there").is_err());
    tx.table(&ordered).put(b"text", b"no number").expect("put");
    assert!(tx.table(&ordered).add(b"text", 1).is_err());
    tx.table(&hash).put(b"most", i64::MAX.to_le_bytes()).expect("put");
    assert!(tx.table(&hash).add(b"most", 1).is_err());
    for table in tables(&other) {
        assert!(tx.table(&table).put(b"k", b"v").is_err(), "{table:?}");
    }
    tx.table(&tree).put(b"k", b"v").expect("put");
    tx.commit().expect("no other thread");
    assert_eq!(hash.len(), Ok(1));
}

/// A commit may wait for the closure of a reader, and a change in that closure for the commit.
#[test]
fn a_change_in_a_closure_that_a_commit_waits_for_is_refused() {
    let path = tempfile::TempDir::new().expect("a directory for the test");
    let db = Db::open(path.path()).expect("the directory is free");
    let small = HashTableOptions::default().page_bytes(4096).memory_budget(64 << 10);
    let table = db.create_hash_table("small", small).expect("a free name");
    db.transaction(|tx| tx.table(&table).put(b"k", b"v")).expect("no other thread");
    let is_over = AtomicU64::new(0);
    thread::scope(|scope| {
        let refused = table.get_with(b"k", |_| {
            // More than fits beside the page that this closure keeps.
            scope.spawn(|| {
                let mut batch = db.batch();
                batch.put(&table, b"other", b"v").expect("short");
                for key in 0..200_u64 {
                    batch.put(&table, key.to_be_bytes(), [1; 1_000]).expect("short");
                }
                batch.commit().expect("it waits for the closure");
                is_over.store(1, Ordering::SeqCst);
            });
            loop {
                let done = table.put(b"other", b"w");
                if done.is_err() || is_over.load(Ordering::SeqCst) == 1 {
                    return done.err();
                }
            }
        });
        // The pages may do without that one.
        if let Some(refused) = refused.expect("read").expect("it is there") {
            assert_eq!(refused.hash_engine(), Some(&HashEngineError::WouldBlock));
        }
    });
    assert_eq!(table.len(), Ok(202));
}

/// Threads run transactions and single changes that append to lists: an order of them explains what they read.
#[test]
fn histories_are_serializable() {
    const LISTS: u64 = 6;
    case!().seeds(30, |seed| {
        let db = Db::in_memory();
        let tables = tables(&db);
        // Lists in trees are in transactions alone where they are with others.
        let with_trees = seed % 3 == 0;
        let of = |list: u64| match with_trees && list % 3 == 2 {
            true => &tables[2],
            false => &tables[(list % 2) as usize],
        };
        let clock = AtomicU64::new(0);
        let now = || clock.fetch_add(1, Ordering::SeqCst);
        let numbers = AtomicU64::new(1);
        let decode = |value: Option<Vec<u8>>| -> Vec<u64> {
            let value = value.unwrap_or_default();
            let numbers = value.chunks_exact(8);
            numbers.map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight"))).collect()
        };
        let key = |list: u64| list.to_be_bytes();
        let work = |thread: u64| {
            let mut rng = fastrand::Rng::with_seed(seed * 100 + thread);
            let mut history = Vec::new();
            for _ in 0..60 {
                let begin = now();
                let mut ran = Ran::default();
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                let list = rng.u64(0..LISTS);
                let append = |value: &mut sapwood::ValueMut<'_>| {
                    value.extend_from_slice(number.to_le_bytes()).expect("short");
                };
                match rng.u8(0..10) {
                    0 => {
                        ran.reads = vec![(list, decode(of(list).get(key(list)).expect("read")))];
                        history.push(Ran { is_committed: true, ..ran });
                        continue; // One key of those that a commit changes may be read early.
                    }
                    1 | 2 => {
                        let value = number.to_le_bytes();
                        of(list)
                            .put_if_absent_or_update(key(list), value, append)
                            .expect("appended");
                        ran.appends.push((list, number));
                        ran.is_committed = true;
                    }
                    _ => {
                        let mut lists: Vec<u64> = (0..LISTS).collect();
                        rng.shuffle(&mut lists);
                        lists.truncate(rng.usize(1..4));
                        let writes: Vec<bool> = lists.iter().map(|_| rng.bool()).collect();
                        let gives_way = rng.bool();
                        let done = db.transaction_with(Retry::times(30), |tx| {
                            ran.reads.clear();
                            ran.appends.clear();
                            for (list, is_written) in lists.iter().zip(&writes) {
                                let table = of(*list);
                                ran.reads.push((*list, decode(tx.table(table).get(key(*list))?)));
                                if gives_way {
                                    thread::yield_now();
                                }
                                if *is_written {
                                    let value = number.to_le_bytes();
                                    tx.table(table).put_if_absent_or_update(
                                        key(*list),
                                        value,
                                        append,
                                    )?;
                                    ran.appends.push((*list, number));
                                }
                            }
                            Ok(())
                        });
                        match done {
                            Ok(()) => ran.is_committed = true,
                            Err(error) => assert!(error.is_conflict(), "{error}"),
                        }
                    }
                }
                ran.during = Some((begin, now()));
                history.push(ran);
            }
            history
        };
        let mut history: Vec<Ran> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        let last = (0..LISTS).map(|list| (list, decode(of(list).get(key(list)).expect("read"))));
        history.push(Ran { reads: last.collect(), is_committed: true, ..Ran::default() });
        if let Err(refused) = check(&history) {
            panic!("{refused}");
        }
    });
}

#[test]
fn batches_of_threads_are_seen_as_wholes() {
    let db = Db::in_memory();
    let tables = tables(&db);
    thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (db, tables) = (&db, &tables);
            scope.spawn(move || {
                for round in 0..300_u64 {
                    let mut batch = db.batch();
                    let value = (thread * 1_000 + round).to_le_bytes();
                    for table in tables {
                        for key in 0..4_u8 {
                            batch.put(table, [key], value).expect("short");
                        }
                    }
                    batch.commit().expect("it waits for others");
                }
            });
        }
        let (db, tables) = (&db, &tables);
        scope.spawn(move || {
            for _ in 0..300 {
                let seen = db.transaction_with(Retry::times(100_000), |tx| {
                    let mut seen = Vec::new();
                    for table in tables {
                        for key in 0..4_u8 {
                            seen.push(tx.table(table).get([key])?);
                        }
                    }
                    Ok(seen)
                });
                let seen = seen.expect("read");
                assert!(seen.iter().all(|value| *value == seen[0]), "{seen:?}");
            }
        });
    });
}

#[test]
fn what_is_committed_is_there_again_as_a_whole() {
    let path = tempfile::TempDir::new().expect("a directory for the test");
    let db = Db::open(path.path()).expect("the directory is free");
    let tables = tables(&db);
    for amount in 0..200_i64 {
        db.transaction(|tx| {
            for (at, table) in tables.iter().enumerate() {
                tx.table(table).add([at as u8], amount)?;
            }
            tx.table(&tables[1]).put(amount.to_le_bytes(), b"booked")
        })
        .expect("no other thread");
    }
    let mut batch = db.batch();
    batch.remove(&tables[1], 7_i64.to_le_bytes()).expect("a fine key");
    batch.put(&tables[0], b"last", b"one").expect("short");
    batch.commit().expect("nothing refuses").wait().expect("a disk");
    let before = tables.each_ref().map(entries);
    drop((tables, db));
    let db = Db::open(path.path()).expect("the directory is free");
    assert_eq!(self::tables(&db).each_ref().map(entries), before);
    assert_eq!(before[1].len(), 200);
}

/// Changes that wait for a commit come behind it in the log, too.
#[test]
fn a_change_behind_a_commit_is_replayed_behind_it() {
    for _ in 0..20 {
        let disk = SimDisk::new();
        let open = || Db::open_simulated(&disk, DbOptions::default()).expect("opened");
        let db = open();
        let table = db.create_ordered_table("t", OrderedTableOptions::default()).expect("made");
        let key = |number: u64| number.to_be_bytes();
        // Of different stripes, which the commit lets go one after the other.
        let later = || (0..8).map(|number| key(500 * number));
        thread::scope(|scope| {
            for key in later() {
                let table = &table;
                scope.spawn(move || {
                    while table.get(key).expect("read").is_none() {
                        thread::yield_now();
                    }
                    table.put(key, b"later").expect("it waits for the commit");
                });
            }
            scope.spawn(|| {
                let mut batch = db.batch();
                for number in 0..4_000 {
                    batch.put(&table, key(number), [1; 500]).expect("short");
                }
                batch.commit().expect("nothing refuses");
            });
        });
        drop((table, db));
        let table = open().ordered_table("t").expect("it is there");
        for key in later() {
            assert_eq!(table.get(key), Ok(Some(b"later".to_vec())), "a change is lost");
        }
        assert_eq!(table.len(), Ok(4_000));
    }
}

/// A table that is dropped while a transaction has changed it: the commit is refused, and changes nothing.
#[test]
fn a_commit_to_a_dropped_table_is_refused() {
    let path = tempfile::TempDir::new().expect("a directory for the test");
    let stored = Db::open(path.path()).expect("the directory is free");
    for (db, is_in_memory) in [(Db::in_memory(), true), (stored, false)] {
        let other = db.create_ordered_table("other", Default::default()).expect("made");
        let mut dropped: Vec<AnyTable> =
            vec![db.create_ordered_table("dropped", Default::default()).expect("made").into()];
        if is_in_memory {
            // One in a directory is in use, and stays.
            dropped.push(db.create_hash_table("gone", Default::default()).expect("made").into());
        }
        for table in &dropped {
            let tx = db.begin().expect("begun");
            tx.table(&other).put("k", "v").expect("put");
            tx.table(table).put("k", "v").expect("put");
            let mut batch = db.batch();
            batch.put(&other, "k", "v").expect("put");
            batch.put(table, "k", "v").expect("put");
            db.drop_table(table.name()).expect("dropped");
            for refused in [tx.commit(), batch.commit()] {
                let refused = refused.expect_err("the table is gone");
                assert!(
                    matches!(&refused, Error::TableDropped { table: name } if **name == *table.name()),
                    "{refused}"
                );
            }
            assert_eq!(other.get("k"), Ok(None), "half of the transaction is there");
        }
    }
}

/// A transaction that lasts gets on beside short ones of the same key: after some runs it has its turn.
#[test]
fn a_long_transaction_on_a_hot_key_is_not_starved() {
    let db = Db::in_memory();
    let table = db.create_ordered_table("t", Default::default()).expect("made");
    let has_ended = AtomicBool::new(false);
    let long = |_| {
        db.transaction_with(Retry::times(60), |tx| {
            let sum = tx.table(&table).get_counter("hot")?.unwrap_or(0);
            thread::sleep(Duration::from_millis(2));
            tx.table(&table).put("hot", (sum + 1).to_le_bytes())
        })
    };
    let (done, short) = thread::scope(|scope| {
        let short = scope.spawn(|| {
            let mut count = 0;
            while !has_ended.load(Ordering::Relaxed) {
                db.transaction_with(Retry::times(u32::MAX), |tx| tx.table(&table).add("hot", 1))
                    .expect("it is run again");
                count += 1;
            }
            count
        });
        let done: Vec<_> = (0..20).map(long).collect();
        has_ended.store(true, Ordering::Relaxed);
        (done, short.join().expect("no panic"))
    });
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    assert_eq!(table.get_counter("hot"), Ok(Some(short + 20)), "an addition is lost");
}

#[test]
fn a_table_in_a_transaction_has_the_verbs_of_every_table() {
    let db = Db::in_memory();
    let ordered = db.create_ordered_table("ordered", OrderedTableOptions::default());
    let tree = db.create_tree_table("tree", TreeTableOptions::default());
    let hash = db.create_hash_table("hash", HashTableOptions::default());
    let tables = [AnyTable::from(ordered.expect("free")), tree.expect("free").into()];
    let key = |number: u32| number.to_be_bytes();
    for table in &tables {
        for number in (0..2_000).step_by(2) {
            table.put(key(number), b"outside").expect("room");
        }
    }
    let checked = db.transaction(|tx| {
        for table in &tables {
            let table = tx.table(table);
            // Behind the pages that a scan reads, and among them.
            for number in [1, 999, 1_999, 5_000] {
                table.put(key(number), b"inside")?;
            }
            assert_eq!(table.retain(|key, _| key != 4_u32.to_be_bytes())?, 1);
            assert_eq!(table.remove_range(key(10)..key(16))?, 3);
            let all: Vec<u32> = (0..2_000)
                .step_by(2)
                .chain([1, 999, 1_999, 5_000])
                .filter(|it| ![4, 10, 12, 14].contains(it))
                .collect();
            let mut all = std::collections::VecDeque::from({
                let mut all = all;
                all.sort_unstable();
                all
            });
            let name = table.name();
            let number = |key: &[u8]| u32::from_be_bytes(key.try_into().expect("4 bytes"));
            let ascending =
                table.keys().map(|key| Ok(number(&key?))).collect::<sapwood::Result<Vec<_>>>()?;
            assert!(ascending.iter().eq(&all), "{name}: {ascending:?}");
            // Both ends meet, in steps of odd lengths.
            let mut range = table.range(..);
            for step in 0.. {
                let (next, expected) = match step % 3 {
                    0 => (range.next_back(), all.pop_back()),
                    _ => (range.next(), all.pop_front()),
                };
                let next = next.transpose()?.map(|entry| number(entry.key()));
                assert_eq!(next, expected, "{name}, {step}");
                if expected.is_none() {
                    break;
                }
            }
            assert!(range.next().is_none() && range.next_back().is_none());
            let near = |entry: Option<sapwood::Entry<'_>>| entry.map(|entry| number(entry.key()));
            assert_eq!(near(table.first()?), Some(0));
            assert_eq!(near(table.last()?), Some(5_000));
            assert_eq!(near(table.floor(key(5))?), Some(2));
            assert_eq!(near(table.higher(key(2))?), Some(6));
            assert_eq!(near(table.ceiling(key(1_999))?), Some(1_999));
            assert_eq!(near(table.lower(key(0))?), None);
            assert_eq!(table.pop_last()?, Some((key(5_000).to_vec(), b"inside".to_vec())));
            assert_eq!(table.pop_first()?.map(|(key, _)| number(&key)), Some(0));
            assert_eq!(table.len()?, 1_000 + 4 - 4 - 2);
            table.entry(key(7)).and_update(|_| unreachable!("it is new")).or_put(b"new")?;
            table
                .update_many(&[key(7), key(9)], |_, value| value.set(b"changed").expect("room"))?;
            assert_eq!(table.get(key(7))?.as_deref(), Some(&b"changed"[..]));
        }
        let hash = tx.table(hash.as_ref().expect("free"));
        hash.put_many(&[("b", "2"), ("a", "1"), ("c", "3")])?;
        hash.add_many(&[("n", 4), ("n", 3)])?;
        assert_eq!(hash.get_counter("n")?, Some(7));
        let keys = hash.keys().collect::<sapwood::Result<Vec<_>>>()?;
        assert_eq!(keys, [b"a", b"b", b"c", b"n"]);
        assert!(matches!(hash.range(..).next(), Some(Err(Error::NoOrder { .. }))));
        hash.clear()?;
        hash.is_empty()
    });
    assert_eq!(checked, Ok(true));
    assert_eq!(tables.each_ref().map(|table| table.len()), [Ok(999), Ok(999)]);
}

/// Its second change is refused when the first is applied: what went before the transaction stays in the record.
#[test]
fn a_commit_that_is_refused_among_changes_that_go_together_takes_back_its_own_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = Db::open(folder.path()).expect("an empty folder");
    let hash = db.create_hash_table("hash", HashTableOptions::default()).expect("free");
    let small = OrderedTableOptions::default().memory_budget(1 << 20);
    let small = db.create_ordered_table("small", small).expect("free");
    let (done, _) = db
        .together(|| {
            hash.put("before", "1").expect("room");
            let refused = db.transaction(|tx| {
                tx.table(&hash).put("own", "2")?;
                tx.table(&small).put("large", vec![7; 4 << 20])
            });
            hash.put("behind", "3").expect("room");
            refused
        })
        .expect("the log is well");
    let refused = done.expect_err("beyond the budget");
    assert!(matches!(refused, Error::OrderedEngine { .. }), "{refused}");
    let found = |hash: &sapwood::HashTable| {
        ["before", "own", "behind"].map(|key| hash.contains_key(key).expect("read"))
    };
    assert_eq!(found(&hash), [true, false, true]);
    drop((hash, small, db));
    let db = Db::open(folder.path()).expect("whole");
    assert_eq!(found(&db.hash_table("hash").expect("there")), [true, false, true], "opened again");
}
