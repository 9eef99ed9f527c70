//! Two engines in one set of names: a name is one or the other, and errors say which.

use sapwood::{
    Compaction, Db, Engine, Error, HashEngineError, HashTableOptions, OrderedTableOptions,
};

#[test]
fn a_name_has_one_engine() {
    let db = Db::in_memory();
    db.create_ordered_table("o", OrderedTableOptions::default()).expect("a free name");
    db.create_hash_table("h", HashTableOptions::default()).expect("a free name");
    assert_eq!(db.table_names(), ["h", "o"]);
    assert_eq!(
        (db.engine("o"), db.engine("h"), db.engine("x")),
        (Some(Engine::Ordered), Some(Engine::Hash), None)
    );
    let is_hash = "table `h` is a hash table; open it with `Db::hash_table`";
    for error in [
        db.ordered_table("h").err(),
        db.open_or_create_ordered_table("h", OrderedTableOptions::default()).err(),
    ] {
        assert_eq!(error.expect("another engine").to_string(), is_hash);
    }
    let is_ordered = "table `o` is an ordered table; open it with `Db::ordered_table`";
    for error in [
        db.hash_table("o").err(),
        db.hash_table_with("o", HashTableOptions::default()).err(),
        db.hash_table_at("o", 1).err(),
        db.open_or_create_hash_table("o", HashTableOptions::default()).err(),
    ] {
        assert_eq!(error.expect("another engine").to_string(), is_ordered);
    }
    for error in [
        db.create_ordered_table("h", OrderedTableOptions::default()).err(),
        db.create_hash_table("h", HashTableOptions::default()).err(),
    ] {
        assert_eq!(
            error.expect("the name is taken").to_string(),
            "table `h` exists already; open it with `Db::hash_table`, or choose another name"
        );
    }
    let error = db.create_hash_table("o", HashTableOptions::default()).expect_err("taken");
    assert_eq!(error, Error::TableExists { name: "o".to_owned(), engine: Engine::Ordered });
}

#[test]
fn a_dropped_name_may_take_the_other_engine() {
    let db = Db::in_memory();
    let old = db.create_hash_table("t", HashTableOptions::default()).expect("a free name");
    old.put(b"k", b"old").expect("put");
    db.drop_table("t").expect("it is there");
    db.create_ordered_table("t", OrderedTableOptions::default()).expect("the name is free again");
    assert_eq!(old.get(b"k"), Ok(Some(b"old".to_vec())), "a handle works on");
    assert!(matches!(db.hash_table("t"), Err(Error::OtherEngine { .. })));
    db.drop_table("t").expect("it is there");
    assert_eq!(
        db.drop_table("t"),
        Err(Error::TableMissing { name: "t".to_owned(), known: vec![] })
    );
    assert!(matches!(db.hash_table("t"), Err(Error::TableMissing { .. })));
}

#[test]
fn a_hash_table_is_opened_as_it_is_or_made_with_the_options_given() {
    let options = HashTableOptions::default();
    let db = Db::in_memory();
    let table = db.open_or_create_hash_table("t", options.clone().memory_budget(32 << 20));
    let table = table.expect("a free name");
    assert_eq!(table.stats().budget_bytes, Some(32 << 20));
    table.put(b"k", b"v").expect("put");
    let again = db.open_or_create_hash_table("t", options.clone()).expect("it is there");
    assert_eq!(again.get(b"k"), Ok(Some(b"v".to_vec())));
    assert_eq!(again.stats().budget_bytes, Some(32 << 20));
    assert!(matches!(db.open_or_create_hash_table("a b", options), Err(Error::TableName { .. })));
}

#[test]
fn stats_sum_both_engines() {
    let db = Db::in_memory();
    let ordered =
        db.create_ordered_table("o", OrderedTableOptions::default()).expect("a free name");
    let hash = db.create_hash_table("h", HashTableOptions::default()).expect("a free name");
    ordered.put(b"key", b"value").expect("put");
    hash.put(b"key", b"value").expect("put");
    hash.put(b"another", b"value").expect("put");
    let stats = db.stats();
    assert_eq!(stats.entries_estimate, 3);
    assert_eq!(
        (stats.ordered_tables["o"].entries, stats.hash_tables["h"].entries_estimate),
        (1, 2)
    );
    assert_eq!(stats.reserved_bytes, ordered.stats().reserved_bytes + hash.stats().reserved_bytes);
    assert_eq!((stats.file_bytes, stats.unopened.len()), (0, 0));
}

#[test]
fn memory_has_no_checkpoints() {
    let db = Db::in_memory();
    let table = db.create_hash_table("t", HashTableOptions::default()).expect("a free name");
    assert_eq!(db.directory(), None);
    assert_eq!(
        db.checkpoint().expect_err("no directory").to_string(),
        "the database lives in memory alone; `Db::open` keeps one in a directory"
    );
    assert_eq!(db.hash_table_at("t", 1).err(), Some(Error::NoDirectory));
    let error = table.checkpoint(sapwood::Cut::Full).expect_err("no directory");
    assert_eq!(error.hash_engine(), Some(&HashEngineError::NoDirectory));
    assert!(error.to_string().ends_with("(`Db::open`)"), "{error}");
    db.close().expect("nothing to do");
}

#[test]
fn bad_options_are_refused_with_the_tables_name() {
    let db = Db::in_memory();
    for options in [
        HashTableOptions::default().page_bytes(1000),
        HashTableOptions::default().mutable_share(1.5),
        HashTableOptions::default().checkpoints_kept(0),
        HashTableOptions::default()
            .compaction(Compaction { garbage_share: 1.5, ..Compaction::default() }),
    ] {
        let error = db.create_hash_table("t", options).expect_err("options that cannot work");
        assert!(matches!(error.hash_engine(), Some(HashEngineError::Options(_))), "{error}");
        assert!(error.to_string().starts_with("table `t`: "), "{error}");
    }
    assert_eq!(db.table_names(), Vec::<String>::new());
}
