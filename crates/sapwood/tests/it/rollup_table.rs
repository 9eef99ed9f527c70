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
    let query = Query::group_by(["editor"]);
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

/// Figures of statements are those of native queries, of live facts, sealed ones, and after opening again.
#[test]
fn statements_read_facts() {
    use sapwood::sql::Outcome;

    let path = tempfile::TempDir::new().expect("a directory for the test");
    let db = Db::open(path.path()).expect("new");
    let schema = Schema::new("time")
        .dimension(Dimension::text("page"))
        .dimension(Dimension::long("editor"))
        .dimension(Dimension::text("tags"))
        .metric(Metric::count("edits"))
        .metric(Metric::long_sum("added", "added"))
        .metric(Metric::double_max("most", "share"))
        .metric(Metric::distinct("users", "editor"));
    let edits = db.create_rollup_table("edits", RollupTableOptions::new(schema)).expect("made");
    let mut rng = fastrand::Rng::with_seed(11);
    let rows = |db: &Db, statement: &str| -> Vec<Vec<String>> {
        let outcome = db.sql(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        let Outcome::Rows(answer) = outcome else { panic!("{statement} has rows") };
        let row = |row| {
            let value = |column| answer.value(row, column).expect("a value").to_string();
            (0..answer.columns().len()).map(value).collect()
        };
        (0..answer.len()).map(row).collect()
    };
    let expect_same = |db: &Db| {
        let edits = db.rollup_table("edits").expect("it is there");
        let query = Query::group_by(["page"])
            .aggregation(Aggregation::long_sum("edits", "edits"))
            .aggregation(Aggregation::long_sum("added", "added"))
            .aggregation(Aggregation::double_max("most", "most"))
            .order_by("page", false);
        let native = edits.query(&query).expect("an answer");
        let text = |value: &rollup::Value<'_>| match value {
            rollup::Value::Null => "null".to_owned(),
            value => value.to_text().expect("one value").into_owned(),
        };
        let native: Vec<Vec<String>> =
            native.rows.iter().map(|row| row.iter().skip(1).map(text).collect()).collect();
        let statement = "select page, sum(edits), sum(added), max(most) from edits \
                         group by page order by page nulls last";
        assert_eq!(rows(db, statement), native);
        // Times are cut to an interval before anything is read.
        let within = "from edits where __time >= timestamp '1970-01-01 00:00:20' and __time < timestamp '1970-01-01 00:00:30'";
        let least = rows(db, &format!("select count(*), min(__time), max(__time) {within}"));
        let all = rows(db, "select __time, page, editor, tags from edits order by __time");
        let expected: Vec<&String> = all
            .iter()
            .map(|row| &row[0])
            .filter(|time| ("1970-01-01 00:00:20".."1970-01-01 00:00:30").contains(&time.as_str()))
            .collect();
        assert_eq!(least[0][0], expected.len().to_string());
        assert_eq!((&least[0][1], &least[0][2]), (expected[0], *expected.last().expect("some")));
        let explained = rows(db, &format!("explain select count(*) {within}"));
        assert!(format!("{explained:?}").contains("1970-01-01T00:00:20"), "{explained:?}");
        let never =
            "__time > timestamp '1970-01-01 00:00:30' and __time < timestamp '1970-01-01 00:00:20'";
        let count = |of: &str| rows(db, &format!("select count(*) from edits where {of}"));
        assert_eq!(count(never), [["0"]]);
        assert_eq!(count("__time = timestamp '1970-01-01 00:00:00.000001'"), [["0"]]);
        assert_eq!(count("__time > timestamp '9999-01-01 00:00:00'"), [["0"]]);
        assert_eq!(
            count("__time in (timestamp '1970-01-01 00:00:20', timestamp '1970-01-01 00:00:07')"),
            count("extract(second from __time) in (7, 20)")
        );
        let lists = rows(db, "select tags, count(*) from edits where tags like '[%' group by 1");
        assert_eq!(lists.len(), 1);
        assert_eq!(lists[0][0], r#"["a","b"]"#);
    };
    for round in 0..3 {
        let lines: Vec<String> = (0..5_000)
            .map(|_| {
                let page = match rng.u8(..9) {
                    0 => "null".to_owned(),
                    page => format!("\"page {page}\""),
                };
                let tags = ["null", r#""a""#, r#"["a","b"]"#][rng.usize(..3)];
                let (time, editor) = (rng.u32(..60) * 1_000, rng.u32(..50));
                let (added, share) = (rng.i32(-500..500), f64::from(rng.u32(..1_000)) / 8.0);
                format!(
                    r#"{{"time": {time}, "page": {page}, "editor": {editor}, "tags": {tags}, "added": {added}, "share": {share}}}"#
                )
            })
            .collect();
        let (batch, bad) = RowBatch::from_json_lines(lines.join("\n").as_bytes());
        assert!(bad.is_empty());
        edits.ingest(&batch).expect("room");
        expect_same(&db);
        if round < 2 {
            edits.seal().expect("sealed");
            expect_same(&db);
        }
    }
    let estimates = rows(&db, "select min(users), max(users) from edits");
    assert_eq!(estimates, [["1", "1"]]);
    let tables = rows(&db, "show tables");
    assert!(format!("{tables:?}").contains("__time:timestamp(ms), page:text?"), "{tables:?}");
    let refused = db.sql("delete from edits").expect_err("facts stay").to_string();
    assert!(refused.contains("sapwood ingest"), "{refused}");
    drop(edits);
    expect_same(&Db::open_read_only(path.path()).expect("it opens"));
    drop(db);
    expect_same(&Db::open(path.path()).expect("it opens"));
}
