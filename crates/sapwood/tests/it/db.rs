//! Tables by name: making, opening, dropping, naming, and what errors say.

use sapwood::{Db, Error, OrderedEngineError, OrderedTableOptions};

fn plain() -> OrderedTableOptions {
    OrderedTableOptions::default()
}

#[test]
fn a_table_is_made_once_and_opened_often() {
    let db = Db::in_memory();
    let made = db.create_ordered_table("t", plain()).expect("a free name");
    made.put(b"k", b"v").expect("put");
    for opened in [
        db.ordered_table("t").expect("it is there"),
        db.open_or_create_ordered_table("t", plain()).expect("it is there"),
        db.clone().ordered_table("t").expect("clones are the same database"),
    ] {
        assert_eq!(opened.get(b"k"), Ok(Some(b"v".to_vec())));
    }
    let error = db.create_ordered_table("t", plain()).expect_err("the name is taken");
    assert_eq!(
        error.to_string(),
        "table `t` exists already; open it with `Db::ordered_table`, or choose another name"
    );
}

#[test]
fn a_table_is_opened_as_it_is_or_made_with_the_options_given() {
    let db = Db::in_memory();
    let options = plain().memory_budget(1 << 20);
    let made = db.open_or_create_ordered_table("t", options.clone()).expect("a free name");
    assert_eq!(made.stats().budget_bytes, Some(1 << 20));
    made.put(b"k", b"v").expect("put");
    let opened =
        db.open_or_create_ordered_table("t", options.memory_budget(2 << 20)).expect("it is there");
    assert_eq!(opened.stats().budget_bytes, Some(1 << 20));
    assert_eq!(opened.get(b"k"), Ok(Some(b"v".to_vec())));
    // In memory all tables end with the process: whether that is said or not is the same.
    let said = db.open_or_create_ordered_table("t", plain().volatile()).expect("it is there");
    assert_eq!(said.get(b"k"), Ok(Some(b"v".to_vec())));
}

#[test]
fn one_of_many_threads_makes_what_all_open() {
    let db = Db::in_memory();
    let inserted = std::thread::scope(|scope| {
        let open = || {
            let table = db.open_or_create_ordered_table("t", plain()).expect("made, or there");
            table.put_if_absent(b"k", b"v").expect("put")
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).filter(|put| *put).count()
    });
    assert_eq!(inserted, 1, "it is one table");
}

#[test]
fn a_missing_table_is_answered_with_those_that_are_there() {
    let db = Db::in_memory();
    let message = |name: &str| db.ordered_table(name).expect_err("not there").to_string();
    assert_eq!(
        message("t"),
        "no table `t`; there is none yet; `Db::create_ordered_table`, `Db::create_hash_table`, \
         `Db::create_tree_table` and `Db::create_rollup_table` make them"
    );
    db.create_ordered_table("b", plain()).expect("a free name");
    db.create_ordered_table("a", plain()).expect("a free name");
    assert_eq!(message("t"), "no table `t`; there are: a, b");
    for index in 0..20 {
        db.create_ordered_table(&format!("t{index:02}"), plain()).expect("a free name");
    }
    assert_eq!(message("t"), "no table `t`; there are: a, b, t00, t01, t02, t03, t04, t05, ...");
    assert!(matches!(db.drop_table("t"), Err(Error::TableMissing { .. })));
}

#[test]
fn a_dropped_table_frees_its_name_and_its_handles_work_on() {
    let db = Db::in_memory();
    let old = db.create_ordered_table("t", plain()).expect("a free name");
    old.put(b"k", b"old").expect("put");
    db.drop_table("t").expect("it is there");
    assert_eq!(db.table_names(), Vec::<String>::new());
    let new = db.create_ordered_table("t", plain()).expect("the name is free again");
    assert_eq!(new.get(b"k"), Ok(None));
    assert_eq!(old.get(b"k"), Ok(Some(b"old".to_vec())));
    old.put(b"k", b"older").expect("a handle works on");
}

#[test]
fn names_are_checked() {
    let db = Db::in_memory();
    let long = "n".repeat(255);
    for good in ["a", "9", "a.b-c_D", &long] {
        db.create_ordered_table(good, plain()).expect("a good name");
    }
    let too_long = "n".repeat(256);
    for (bad, why) in [
        ("", "is empty"),
        (too_long.as_str(), "is too long"),
        (".", "begins with another character"),
        ("-a", "begins with another character"),
        ("a b", "has another character"),
        ("a/b", "has another character"),
        ("é", "begins with another character"),
        ("a\0", "has another character"),
    ] {
        let expected = Error::TableName { name: bad.to_owned(), why };
        assert_eq!(db.create_ordered_table(bad, plain()).err(), Some(expected.clone()));
        assert_eq!(db.open_or_create_ordered_table(bad, plain()).err(), Some(expected));
    }
    assert_eq!(
        db.open_or_create_ordered_table("a b", plain()).expect_err("a bad name").to_string(),
        "table name \"a b\" has another character; use 1 to 255 letters, digits, `_`, `-` or `.`, \
         beginning with a letter or a digit"
    );
}

#[test]
fn one_of_many_threads_creates_a_name() {
    let db = Db::in_memory();
    let made = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| db.create_ordered_table("t", plain()).is_ok())).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .filter(|made| *made)
            .count()
    });
    assert_eq!(made, 1);
}

#[test]
fn stats_sum_the_tables() {
    let db = Db::in_memory();
    let a = db.create_ordered_table("a", plain()).expect("a free name");
    let b = db.create_ordered_table("b", plain()).expect("a free name");
    a.put(b"key", b"value").expect("put");
    b.put(b"key", b"").expect("put");
    b.put(b"k", b"v").expect("put");
    let stats = db.stats();
    assert_eq!(stats.entries_estimate, 3);
    assert_eq!(stats.data_bytes, 8 + 3 + 2);
    assert_eq!(stats.ordered_tables["a"].entries, 1);
    assert_eq!(stats.reserved_bytes, a.stats().reserved_bytes + b.stats().reserved_bytes);
}

#[test]
fn a_thousand_empty_tables_are_small() {
    let db = Db::in_memory();
    for index in 0..1000 {
        db.open_or_create_ordered_table(&format!("t{index}"), plain()).expect("a free name");
    }
    let stats = db.stats();
    assert_eq!(stats.ordered_tables.len(), 1000);
    assert!(
        stats.reserved_bytes < 1000 * 64 * 1024,
        "{} bytes are mapped for 1000 empty tables",
        stats.reserved_bytes
    );
}

#[test]
fn a_budget_that_is_reached_says_so_and_loses_nothing() {
    let db = Db::in_memory();
    let table =
        db.create_ordered_table("small", plain().memory_budget(256 << 10)).expect("a free name");
    let value = [7_u8; 1000];
    let mut entries = 0_u32;
    let error = loop {
        match table.put(entries.to_be_bytes(), value) {
            Ok(_) => entries += 1,
            Err(error) => break error,
        }
        assert!(entries < 1000, "a budget of 256 KiB holds a megabyte");
    };
    assert!(matches!(error.ordered_engine(), Some(OrderedEngineError::OutOfMemory { .. })));
    let message = error.to_string();
    assert!(message.starts_with("table `small`: "), "{message}");
    assert!(message.contains("OrderedTableOptions::memory_budget"), "{message}");
    assert_eq!(table.len(), Ok(entries as usize));
    for entry in 0..entries {
        assert_eq!(table.get_with(entry.to_be_bytes(), |bytes| *bytes == value), Ok(Some(true)));
    }
}

#[test]
fn bad_options_are_refused_with_the_tables_name() {
    let error = Db::in_memory()
        .create_ordered_table("t", plain().chunk_entries(0))
        .expect_err("a chunk without entries");
    assert!(matches!(error.ordered_engine(), Some(OrderedEngineError::Options(_))));
    assert!(error.to_string().starts_with("table `t`: "));
}
