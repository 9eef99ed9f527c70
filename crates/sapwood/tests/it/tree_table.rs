//! Tree tables: what lasts in a directory, and transactions over several.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use rand::RngExt;
use sapwood::{
    Db, DbOptions, Direction, Durability, Engine, Entry, Error, HashTableOptions,
    OrderedTableOptions, RecordLayout, TreeEngineError, TreeKind, TreeTable, TreeTableOptions,
    Upsert,
};
use sapwood_disk::FileDisk;
use sapwood_ptree::{Pool, PoolOptions, TreeLayout};
use sapwood_testkit::{case, rng};

fn of_kind(kind: TreeKind) -> TreeTableOptions {
    TreeTableOptions::default().kind(kind)
}

const KINDS: [TreeKind; 3] = [TreeKind::BTree, TreeKind::CritBit, TreeKind::RedBlack];

fn contents(table: &TreeTable) -> BTreeMap<Vec<u8>, Vec<u8>> {
    table.range(..).map(|entry| entry.expect("read").into_pair()).collect()
}

#[test]
fn a_directory_keeps_tables_with_their_kind_layout_and_fields() {
    let folder = tempfile::tempdir().expect("a folder");
    let fields: sapwood::aggregate::Layout = "n:i64le".parse().expect("a layout");
    {
        let db = Db::open(folder.path()).expect("an empty folder");
        for kind in KINDS {
            let options = of_kind(kind).layout(RecordLayout::Fixed8).fields(fields.clone());
            let table = db.create_tree_table(&format!("{kind:?}"), options).expect("free");
            table.add(7_u64.to_be_bytes(), 42).expect("room");
        }
        db.create_hash_table("hash", HashTableOptions::default()).expect("free");
        // Neither closed nor checkpointed.
    }
    for round in 0..2 {
        let db = Db::open(folder.path()).expect("it is there");
        assert_eq!(db.table_names(), ["BTree", "CritBit", "RedBlack", "hash"]);
        for kind in KINDS {
            let table = db.tree_table(&format!("{kind:?}")).expect("stored");
            assert_eq!((table.kind(), table.layout()), (kind, RecordLayout::Fixed8));
            assert_eq!(table.fields(), Some(&fields));
            assert_eq!(table.get_counter(7_u64.to_be_bytes()), Ok(Some(42)));
        }
        match round {
            0 => db.close().expect("closed"),
            _ => db.checkpoint().expect("written"),
        }
    }
    // What is dropped is gone, and its name may have another engine.
    let db = Db::open(folder.path()).expect("it is there");
    let held = db.tree_table("BTree").expect("stored");
    db.drop_table("BTree").expect("dropped");
    let refused = held.get(7_u64.to_be_bytes()).expect_err("dropped");
    assert_eq!(refused.tree_engine(), Some(&TreeEngineError::TreeRemoved));
    db.create_hash_table("BTree", HashTableOptions::default()).expect("free");
    drop((held, db));
    let db = Db::open(folder.path()).expect("it is there");
    assert_eq!(db.engine("BTree"), Some(Engine::Hash));
}

#[test]
fn names_are_of_one_engine_and_refusals_say_which() {
    let db = Db::in_memory();
    db.create_tree_table("t", TreeTableOptions::default()).expect("free");
    let taken = Error::TableExists { name: "t".to_owned(), engine: Engine::Tree };
    assert_eq!(db.create_tree_table("t", TreeTableOptions::default()).unwrap_err(), taken);
    assert_eq!(db.create_hash_table("t", HashTableOptions::default()).unwrap_err(), taken);
    assert_eq!(db.create_ordered_table("t", OrderedTableOptions::default()).unwrap_err(), taken);
    let other = db.hash_table("t").unwrap_err().to_string();
    assert_eq!(other, "table `t` is a tree table; open it with `Db::tree_table`");
    assert!(matches!(db.tree_table("u"), Err(Error::TableMissing { .. })));
    db.create_ordered_table("o", OrderedTableOptions::default()).expect("free");
    assert!(matches!(db.tree_table("o"), Err(Error::OtherEngine { .. })));
    let refused = db.open_or_create_tree_table("o", TreeTableOptions::default());
    assert!(matches!(refused, Err(Error::OtherEngine { .. })));
    assert!(matches!(
        db.create_tree_table("a b", TreeTableOptions::default()),
        Err(Error::TableName { .. })
    ));
}

#[test]
fn a_directory_that_is_a_pool_is_a_database_of_its_trees() {
    let folder = tempfile::tempdir().expect("a folder");
    let pool = folder.path().join("pool");
    {
        let disk = Arc::new(FileDisk::open(&pool).expect("a folder"));
        let pool = Pool::create(disk, PoolOptions::default().id(7)).expect("an empty folder");
        let tree = pool.create_tree("t", TreeKind::BTree, TreeLayout::Bytes).expect("free");
        tree.put("k", "v").expect("room");
    }
    for read_only in [true, false, true] {
        let db = match read_only {
            false => Db::open(&pool),
            true => Db::open_read_only(&pool),
        };
        let db = db.expect("a pool");
        assert_eq!(db.table_names(), ["t"]);
        assert_eq!(db.tree_table("t").expect("stored").get("k"), Ok(Some(b"v".to_vec())));
        assert!(!pool.join("tables").exists(), "nothing of another kind is made");
        if !read_only {
            assert!(matches!(Db::open(&pool), Err(Error::DirectoryInUse { .. })));
        }
    }
    // Other tables find room there, too.
    let db = Db::open(&pool).expect("a pool");
    let hash = db.create_hash_table("h", HashTableOptions::default()).expect("free");
    hash.put("k", "w").expect("room");
    drop(hash);
    db.close().expect("closed");
    assert_eq!(Db::open(&pool).expect("a pool").table_names(), ["h", "t"]);
    let disk = Arc::new(FileDisk::open(&pool).expect("a folder"));
    let refused = Pool::open(disk, PoolOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("open the database"), "{refused}");
}

#[test]
fn a_reader_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    {
        let db = Db::open(folder.path()).expect("an empty folder");
        let table = db.create_tree_table("t", TreeTableOptions::default()).expect("free");
        table.put("k", "v").expect("room");
    }
    let (db, other) = (Db::open_read_only(folder.path()), Db::open_read_only(folder.path()));
    for db in [db.expect("readable"), other.expect("readable")] {
        let table = db.tree_table("t").expect("stored");
        assert_eq!(table.get("k"), Ok(Some(b"v".to_vec())));
        for refused in [
            table.put("k", "w").unwrap_err(),
            table.clear().unwrap_err(),
            db.transaction(|tx| tx.table(&table).put("k", "w")).unwrap_err(),
            db.drop_table("t").unwrap_err(),
        ] {
            assert_eq!(refused.tree_engine(), Some(&TreeEngineError::ReadOnly), "{refused}");
            assert!(refused.to_string().contains("`Db::open`"), "{refused}");
        }
        let refused = db.create_tree_table("u", TreeTableOptions::default()).unwrap_err();
        assert!(matches!(refused, Error::ReadOnly { .. }));
    }
}

/// Money moves between tables of all kinds; whatever fails, the sum stays.
#[test]
fn transfers_over_several_tables_keep_the_sum() {
    const ACCOUNTS: u32 = 20;
    let folder = tempfile::tempdir().expect("a folder");
    let db = Db::open_with(folder.path(), DbOptions::default().checkpoint_bytes(64 << 10));
    let db = db.expect("an empty folder");
    let tables = KINDS.map(|kind| db.create_tree_table(&format!("{kind:?}"), of_kind(kind)));
    let tables = tables.map(|table| table.expect("free"));
    for table in &tables {
        let accounts = (0..ACCOUNTS).map(|account| (account.to_be_bytes(), 100_i64.to_le_bytes()));
        db.transaction(|tx| tx.load(table, accounts.clone())).expect("loaded");
    }
    let sum = |tables: &[TreeTable; 3]| -> i64 {
        tables
            .iter()
            .flat_map(contents)
            .map(|(_, value)| i64::from_le_bytes(value.try_into().expect("8 bytes")))
            .sum()
    };
    case!().seeds(1, |seed| {
        thread::scope(|scope| {
            for thread in 0..3 {
                let (db, tables) = (&db, &tables);
                scope.spawn(move || {
                    let mut rng = rng(seed ^ thread);
                    for _ in 0..400 {
                        let [from, to] = [0, 1].map(|_| &tables[rng.random_range(0..3)]);
                        let [payer, payee] =
                            [0, 1].map(|_| rng.random_range(0..ACCOUNTS).to_be_bytes());
                        let cents = rng.random_range(1..50);
                        let moved = db.begin_on(&[from, to]).and_then(|tx| {
                            tx.table(from).add(payer, -cents)?;
                            // Refused as often as not, after the first half was done.
                            if rng.random_ratio(1, 2) {
                                tx.table(to).add(b"no account", i64::MAX)?;
                                tx.table(to).add(b"no account", 1)?;
                            }
                            tx.table(to).add(payee, cents)?;
                            tx.commit()
                        });
                        if let Err(error) = moved {
                            let cause = error.tree_engine();
                            assert!(
                                matches!(cause, Some(TreeEngineError::Overflow { .. })),
                                "{error}"
                            );
                        }
                    }
                });
            }
        });
    });
    let total = i64::from(ACCOUNTS) * 100 * 3;
    assert_eq!(sum(&tables), total);
    tables[0].check().expect("sound");
    drop((tables, db));
    let db = Db::open(folder.path()).expect("recovered");
    let tables = KINDS.map(|kind| db.tree_table(&format!("{kind:?}")).expect("stored"));
    assert_eq!(sum(&tables), total);
}

#[test]
fn each_verb_of_a_transaction_sees_its_changes_and_an_abort_forgets_them() {
    let db = Db::in_memory();
    for kind in KINDS {
        let table = db.create_tree_table(&format!("{kind:?}"), of_kind(kind)).expect("free");
        table.put_many(&[("a", "1"), ("b", "2")]).expect("room");
        let before = contents(&table);
        let changes = |tx: &sapwood::Transaction<'_>| -> sapwood::Result<()> {
            assert!(tx.table(&table).put_if_absent("c", "3")?);
            assert!(tx.table(&table).compare_and_put("c", "3", "33")?);
            assert!(!tx.table(&table).compare_and_put("c", "3", "4")?);
            let changed = tx.table(&table).update("a", |value| value.set("one"))?;
            assert_eq!(changed, Some(Ok(())));
            let upsert =
                tx.table(&table).put_if_absent_or_update("n", [1], |value| value[0] += 1)?;
            assert_eq!(upsert, Upsert::Inserted);
            assert_eq!(tx.table(&table).remove_with("b", <[u8]>::to_vec)?, Some(b"2".to_vec()));
            assert_eq!(tx.table(&table).add("counter", 5)?, 5);
            assert_eq!(tx.table(&table).get_counter("counter")?, Some(5));
            assert!(tx.table(&table).get_counter("c").is_err());
            assert_eq!(tx.table(&table).len()?, 4);
            let mut keys = Vec::new();
            let _all = tx.table(&table).scan(.., Direction::Ascending, |key, _| {
                keys.push(key.to_vec());
                std::ops::ControlFlow::<()>::Continue(())
            })?;
            assert_eq!(keys, [&b"a"[..], b"c", b"counter", b"n"]);
            Ok(())
        };
        let tx = db.begin().expect("begun");
        changes(&tx).expect("changed");
        assert_eq!(contents(&table), before, "not committed");
        tx.abort();
        assert_eq!(contents(&table), before, "forgotten");
        db.transaction(changes).expect("committed");
        assert_eq!(table.get("a"), Ok(Some(b"one".to_vec())));
        assert_eq!(table.pop_last().expect("read"), Some((b"n".to_vec(), vec![1])));
        db.transaction(|tx| tx.table(&table).clear()).expect("cleared");
        assert_eq!(table.pop_first().expect("read"), None);
    }
}

#[test]
fn neighbours_and_ranges_meet_in_the_middle() {
    let db = Db::in_memory();
    for kind in KINDS {
        let table = db.create_tree_table(&format!("{kind:?}"), of_kind(kind)).expect("free");
        let keys: Vec<u32> = (0..1_000).map(|number| number * 2).collect();
        for key in &keys {
            table.put(key.to_be_bytes(), key.to_le_bytes()).expect("room");
        }
        let number = |entry: Option<Entry<'_>>| {
            entry.map(|entry| u32::from_be_bytes(entry.key().try_into().expect("4 bytes")))
        };
        for probe in [0_u32, 1, 2, 999, 1_000, 1_998, 1_999, 5_000] {
            let key = probe.to_be_bytes();
            let below = |limit: u32| keys.iter().rev().find(|key| **key < limit).copied();
            let above = |limit: u32| keys.iter().find(|key| **key >= limit).copied();
            assert_eq!(number(table.floor(key).expect("read")), below(probe + 1));
            assert_eq!(number(table.lower(key).expect("read")), below(probe));
            assert_eq!(number(table.ceiling(key).expect("read")), above(probe));
            assert_eq!(number(table.higher(key).expect("read")), above(probe + 1));
        }
        case!().seeds(4, |seed| {
            let mut rng = rng(seed);
            let (low, high) = (rng.random_range(0..900_u32), rng.random_range(900..2_100_u32));
            let mut range = table.range(low.to_be_bytes()..high.to_be_bytes());
            let mut left: std::collections::VecDeque<u32> =
                keys.iter().copied().filter(|key| (low..high).contains(key)).collect();
            loop {
                let (next, expected) = match rng.random_ratio(1, 2) {
                    true => (range.next(), left.pop_front()),
                    false => (range.next_back(), left.pop_back()),
                };
                assert_eq!(number(next.transpose().expect("read")), expected);
                if expected.is_none() {
                    break;
                }
            }
            assert!(range.next().is_none() && range.next_back().is_none(), "it stays at its end");
        });
    }
}

#[test]
fn what_is_logged_together_is_there_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = Db::open_with(folder.path(), DbOptions::default().durability(Durability::Sync));
    let db = db.expect("an empty folder");
    let table = db.create_tree_table("t", TreeTableOptions::default()).expect("free");
    let (done, commit) = db
        .together(|| {
            table.put("a", "1")?;
            // What another thread opens meanwhile waits for nothing.
            let opened = thread::scope(|scope| scope.spawn(|| db.table("t").is_ok()).join());
            assert_eq!(opened.ok(), Some(true));
            table.put("b", "2")
        })
        .expect("logged");
    done.expect("put");
    assert!(commit.are_durable(), "the database syncs each commit");
    drop((table, db));
    let refused = Db::open(folder.path()).expect_err("the commit may be waited for");
    assert!(matches!(refused, Error::DirectoryInUse { .. }), "{refused}");
    drop(commit);
    let db = Db::open(folder.path()).expect("recovered");
    assert_eq!(contents(&db.tree_table("t").expect("stored")).len(), 2);
}

#[test]
fn threads_that_make_one_table_get_one() {
    let db = Db::in_memory();
    let tables: Vec<TreeTable> = thread::scope(|scope| {
        let made = (0..4).map(|_| {
            scope.spawn(|| db.open_or_create_tree_table("t", TreeTableOptions::default()))
        });
        let made: Vec<_> = made.collect();
        made.into_iter().map(|made| made.join().expect("no panic").expect("made")).collect()
    });
    for (number, table) in tables.iter().enumerate() {
        table.put([number as u8], "v").expect("room");
    }
    assert!(tables.iter().all(|table| table.len() == Ok(4)));
    assert_eq!(db.stats().tree_tables["t"].entries, 4);
    assert!(db.stats().trees.is_some_and(|trees| trees.heap_bytes > 0));
}

#[test]
fn a_damaged_pool_is_told_with_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    {
        let db = Db::open(folder.path()).expect("an empty folder");
        let table = db.create_tree_table("t", TreeTableOptions::default()).expect("free");
        table.put("k", "v").expect("room");
        db.close().expect("closed");
    }
    let heap = folder.path().join("trees").join("heap");
    let mut bytes = std::fs::read(&heap).expect("there");
    bytes[..8192].fill(0x5a);
    std::fs::write(&heap, bytes).expect("written");
    let error = Db::open(folder.path()).expect_err("damaged");
    let text = error.to_string();
    assert!(matches!(error, Error::Trees { path: Some(_), .. }), "{text}");
    assert!(text.contains("trees") && text.contains("copy"), "{text}");
}
