//! Roll-up tables: by name, beside tables with keys, by several threads at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sapwood::rollup::{
    self, Aggregation, Column, Dimension, Discovery, Metric, Query, RowBatch, Schema,
};
use sapwood::{Db, Engine, Error, HashTableOptions, OrderedTableOptions, RollupTableOptions};

fn schema() -> Schema {
    Schema::new("time")
        .dimension(Dimension::text("page"))
        .metric(Metric::count("edits"))
        .metric(Metric::long_sum("added", "added"))
}

fn options() -> RollupTableOptions {
    RollupTableOptions::new(schema())
}

fn batch(rows: &[(i64, &str, i64)]) -> RowBatch {
    RowBatch::new(rows.len())
        .column("time", Column::longs(rows.iter().map(|row| row.0)))
        .and_then(|batch| batch.column("page", Column::texts(rows.iter().map(|row| row.1))))
        .and_then(|batch| batch.column("added", Column::longs(rows.iter().map(|row| row.2))))
        .expect("columns of one length")
}

fn sum() -> Query {
    Query::group_by(Vec::<&str>::new()).aggregation(Aggregation::long_sum("added", "added"))
}

#[test]
fn a_name_is_that_of_one_table_of_any_kind() {
    let db = Db::in_memory();
    let edits = db.create_rollup_table("edits", options()).expect("a free name");
    assert_eq!((edits.name(), db.engine("edits")), ("edits", Some(Engine::Rollup)));
    assert_eq!(db.table_names(), ["edits"]);
    let taken = Error::TableExists { name: "edits".to_owned(), engine: Engine::Rollup };
    assert_eq!(db.create_rollup_table("edits", options()).err(), Some(taken.clone()));
    let refused = db.create_hash_table("edits", HashTableOptions::default()).err();
    assert_eq!(refused, Some(taken.clone()));
    let refused = db.create_ordered_table("edits", OrderedTableOptions::default()).err();
    assert_eq!(refused, Some(taken.clone()));
    let refused = db.create_tree_table("edits", sapwood::TreeTableOptions::default()).err();
    assert_eq!(refused, Some(taken));
    assert!(matches!(db.create_rollup_table("no name", options()), Err(Error::TableName { .. })));
    assert!(matches!(db.rollup_table("others"), Err(Error::TableMissing { .. })));
    db.create_hash_table("hits", HashTableOptions::default()).expect("a free name");
    let refused = db.rollup_table("hits").expect_err("it has keys");
    let words = "table `hits` is a hash table; open it with `Db::hash_table`";
    assert_eq!(refused.to_string(), words);
    let refused = db.open_or_create_rollup_table("hits", options());
    assert!(matches!(refused, Err(Error::OtherEngine { engine: Engine::Hash, .. })));
}

#[test]
fn a_reader_of_keys_is_told_that_there_are_none() {
    let db = Db::in_memory();
    db.create_rollup_table("edits", options()).expect("a free name");
    let expected = Error::OtherEngine { name: "edits".to_owned(), engine: Engine::Rollup };
    assert_eq!(db.table("edits").err(), Some(expected.clone()));
    assert_eq!(db.hash_table("edits").err(), Some(expected.clone()));
    assert_eq!(db.ordered_table("edits").err(), Some(expected.clone()));
    assert_eq!(db.tree_table("edits").err(), Some(expected.clone()));
    assert_eq!(
        expected.to_string(),
        "table `edits` is a roll-up table, which has no keys: rows are ingested, and queries \
         answered; open it with `Db::rollup_table`"
    );
}

#[test]
fn a_dropped_name_is_free_and_handles_work_on() {
    let db = Db::in_memory();
    let edits = db.create_rollup_table("edits", options()).expect("a free name");
    edits.ingest(&batch(&[(0, "Oak", 1)])).expect("room");
    db.drop_table("edits").expect("it is there");
    assert!(matches!(db.drop_table("edits"), Err(Error::TableMissing { .. })));
    let other = db.create_rollup_table("edits", options()).expect("a free name");
    edits.ingest(&batch(&[(0, "Oak", 2)])).expect("room");
    assert_eq!((edits.stats().processed, other.stats().processed), (2, 0));
}

#[test]
fn what_the_engine_refuses_has_the_name_of_the_table() {
    let db = Db::in_memory();
    let twice = RollupTableOptions::new(schema().dimension(Dimension::text("page")));
    let refused = db.create_rollup_table("edits", twice).expect_err("two dimensions of one name");
    assert!(matches!(refused.rollup(), Some(rollup::Error::Schema(_))), "{refused}");
    assert!(refused.to_string().starts_with("table `edits`: the schema cannot be: "), "{refused}");
    assert!(db.table_names().is_empty(), "nothing is left of it");
    let edits = db.create_rollup_table("edits", options()).expect("a free name");
    let query = Query::group_by(["user"]);
    let refused = edits.query(&query).expect_err("no such dimension");
    assert!(matches!(refused, Error::Rollup { ref table, .. } if &**table == "edits"), "{refused}");
    let flag = Arc::new(AtomicBool::new(true));
    edits.ingest(&batch(&[(0, "Oak", 1)])).expect("room");
    let refused = edits.query(&sum().cancelled_by(flag)).expect_err("cancelled");
    assert_eq!(refused.rollup(), Some(&rollup::Error::Cancelled));
}

#[test]
fn figures_of_the_database_have_roll_ups() {
    let db = Db::in_memory();
    let edits = db.create_rollup_table("edits", options()).expect("a free name");
    edits.ingest(&batch(&[(0, "Oak", 1), (0, "Oak", 2), (0, "Elm", 3)])).expect("room");
    let stats = db.stats();
    assert_eq!((stats.rollup_tables["edits"].facts, stats.entries_estimate), (2, 2));
    assert!(stats.reserved_bytes >= stats.rollup_tables["edits"].fact_bytes);
    assert_eq!(stats.rollup_tables["edits"], edits.stats());
}

#[test]
fn sums_are_exact_beside_writers_of_both_kinds() {
    const THREADS: i64 = 4;
    const BATCHES: i64 = 50;
    let options = RollupTableOptions::new(schema().discover(Discovery::Texts, &[]));
    let edits = Db::in_memory().create_rollup_table("edits", options).expect("a free name");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let bring = |thread: i64, edits: &sapwood::RollupTable| {
            let mut writer = (thread % 2 == 0).then(|| edits.writer());
            for number in 0..BATCHES {
                let pages = [format!("{thread}"), format!("{}", number % 7)];
                // Each batch adds up to 0, so that a part of one would show.
                let rows = batch(&[(number, &pages[0], 5), (number, &pages[1], -5)]);
                let told = match &mut writer {
                    Some(writer) => writer.ingest(&rows),
                    None => edits.ingest(&rows),
                };
                assert_eq!(told.expect("room").processed, 2);
            }
        };
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let answer = edits.query(&sum()).expect("an answer");
                if let Some(sum) = answer.value(0, "added") {
                    assert_eq!(sum, &0.into());
                }
            }
        });
        let edits = &edits;
        let writers: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || bring(thread, edits))).collect();
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        done.store(true, Ordering::Relaxed);
        reader.join().expect("no panic");
    });
    assert_eq!(edits.stats().processed, (THREADS * BATCHES * 2) as u64);
}

#[test]
fn a_directory_has_roll_ups_beside_its_tables_while_it_is_open() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Db::open(directory.path()).expect("a directory");
    let edits = db.create_rollup_table("edits", options()).expect("a free name");
    edits.ingest(&batch(&[(0, "Oak", 1)])).expect("room");
    db.create_hash_table("hits", HashTableOptions::default()).expect("a free name");
    db.checkpoint().expect("those with keys are written");
    drop(edits);
    db.close().expect("closed");
    let reader = Db::open_read_only(directory.path()).expect("it is closed");
    let refused = reader.create_rollup_table("more", options());
    assert!(matches!(refused, Err(Error::ReadOnly { .. })));
    let check = Db::check(directory.path()).expect("it is there");
    assert_eq!(check.problems, []);
}
