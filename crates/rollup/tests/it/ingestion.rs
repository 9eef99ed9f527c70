//! What becomes of rows: errors, limits, windows, transforms, columns that appear while running.

use std::sync::Arc;

use sapwood_rollup::{
    Column, Dimension, DimensionKind, Discovery, Error, Expression, Filter, Granularity, Ingested,
    Limits, Metric, Query, Rollup, RowBatch, ScanOrder, Schema, Value, Writer,
};

fn lines(text: &str) -> RowBatch {
    let (batch, bad) = RowBatch::from_json_lines(text.as_bytes());
    assert!(bad.is_empty(), "{bad:?}");
    batch
}

fn ingest(rollup: &Arc<Rollup>, text: &str) -> Ingested {
    Writer::new(rollup).ingest(&lines(text)).expect("there is room")
}

fn rollup(schema: Schema) -> Arc<Rollup> {
    Arc::new(Rollup::new(schema).expect("the schema fits"))
}

/// All facts, as text.
fn facts(rollup: &Rollup) -> Vec<String> {
    let answer = rollup.query(&Query::scan([], ScanOrder::Ascending)).expect("a scan");
    let row =
        |row: &Vec<Value<'_>>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    answer.rows.iter().map(row).collect()
}

#[test]
fn rows_without_a_time_are_told() {
    let rollup = rollup(Schema::new("t").metric(Metric::count("n")));
    let told = ingest(
        &rollup,
        r#"{"t": 5}
           {"t": "never"}
           {"u": 5}
           {"t": null}
           {"t": 6}"#,
    );
    assert_eq!((told.processed, told.unparseable), (2, 3));
    let rows: Vec<usize> = told.samples.iter().map(|sample| sample.row).collect();
    assert_eq!(rows, [1, 2, 3]);
    assert!(told.samples[0].why.contains("`never` is no ISO 8601 time"), "{:?}", told.samples[0]);
    assert_eq!(facts(&rollup), ["5 1", "6 1"]);
    assert_eq!((rollup.stats().processed, rollup.stats().unparseable), (2, 3));
}

#[test]
fn a_missing_time_can_have_a_value() {
    let rollup = rollup(Schema::new("t").missing_time(7).metric(Metric::count("n")));
    let told = ingest(&rollup, "{\"t\": \"\"}\n{}\n{\"t\": \"x\"}");
    assert_eq!((told.processed, told.unparseable), (2, 1));
    assert_eq!(facts(&rollup), ["7 2"]);
}

#[test]
fn values_that_cannot_be_read_are_null_and_told() {
    let schema = Schema::new("t")
        .dimension(Dimension::long("d"))
        .metric(Metric::long_sum("s", "x"))
        .metric(Metric::double_max("m", "x"))
        .metric(Metric::quantiles("q", "x"));
    let rollup = rollup(schema);
    let told = ingest(
        &rollup,
        r#"{"t": 0, "d": "seven", "x": "many"}
           {"t": 0, "d": "7", "x": "2.9"}
           {"t": 0, "d": 7, "x": [1]}"#,
    );
    assert_eq!((told.processed, told.processed_with_error), (3, 2));
    let told: Vec<String> =
        told.samples.iter().map(|sample| format!("{} {}", sample.row, sample.column)).collect();
    assert_eq!(told, ["0 d", "0 x", "2 x", "0 x", "2 x", "0 x", "2 x"]);
    assert_eq!(facts(&rollup), ["0 null null null null", "0 7 2 2.9 2.9"]);
}

#[test]
fn numbers_that_are_not_finite_are_null_and_told() {
    let schema =
        Schema::new("t").dimension(Dimension::double("d")).metric(Metric::double_sum("s", "x"));
    let rollup = rollup(schema);
    let batch = RowBatch::new(2)
        .column("t", Column::longs([0, 0]))
        .and_then(|batch| batch.column("d", Column::doubles([f64::NAN, 1.0])))
        .and_then(|batch| batch.column("x", Column::doubles([1.0, f64::INFINITY])))
        .expect("columns of two");
    let told = Writer::new(&rollup).ingest(&batch).expect("room");
    assert_eq!((told.processed, told.processed_with_error), (2, 2));
    assert_eq!(facts(&rollup), ["0 null 1.0", "0 1.0 null"]);
}

#[test]
fn a_sum_beyond_its_type_refuses_rows_and_no_more() {
    for batches in [1, 3] {
        let schema = Schema::new("t")
            .dimension(Dimension::text("d"))
            .metric(Metric::count("n"))
            .metric(Metric::long_sum("s", "x"))
            .metric(Metric::double_sum("f", "y"))
            .metric(Metric::distinct("u", "u"));
        let rollup = rollup(schema);
        let rows = [
            format!(r#"{{"t": 0, "d": "a", "x": {}, "u": 1}}"#, i64::MAX - 1),
            r#"{"t": 0, "d": "a", "x": 5, "u": 2}"#.to_owned(),
            r#"{"t": 0, "d": "b", "x": 5, "y": 1e308}"#.to_owned(),
            r#"{"t": 0, "d": "a", "x": 1, "u": 3}"#.to_owned(),
            r#"{"t": 0, "d": "b", "x": 5, "y": 1e308}"#.to_owned(),
            r#"{"t": 0, "d": "a", "x": -7, "u": 4}"#.to_owned(),
        ];
        let mut told = Ingested::default();
        for part in rows.chunks(rows.len() / batches) {
            let rows = told.processed + told.overflowed;
            told.merge(ingest(&rollup, &part.join("\n")), rows as usize);
        }
        assert_eq!((told.processed, told.overflowed), (4, 2), "{told:?}");
        let rows: Vec<(usize, &str)> =
            told.samples.iter().map(|sample| (sample.row, sample.column.as_str())).collect();
        assert_eq!(rows, [(1, "s"), (4, "f")]);
        let sum = i64::MAX - 7;
        assert_eq!(facts(&rollup), [format!("0 a 3 {sum} null 3"), "0 b 1 5 1e308 0".to_owned()]);
    }
}

#[test]
fn a_row_that_is_refused_is_no_processed_one_with_an_error() {
    let schema =
        Schema::new("t").metric(Metric::long_sum("s", "x")).metric(Metric::long_max("m", "y"));
    let rollup = rollup(schema);
    let rows = format!(
        "{{\"t\": 0, \"x\": {}, \"y\": \"a\"}}\n{{\"t\": 0, \"x\": 1, \"y\": \"b\"}}",
        i64::MAX
    );
    let told = ingest(&rollup, &rows);
    assert_eq!((told.processed, told.processed_with_error, told.overflowed), (1, 1, 1));
}

#[test]
fn facts_that_reach_a_limit_are_sealed_and_a_batch_beyond_it_is_refused_whole() {
    let limits = {
        let mut limits = Limits::default();
        limits.facts_max = Some(3);
        limits
    };
    let schema = Schema::new("t").metric(Metric::count("n")).limits(limits);
    let rollup = rollup(schema);
    ingest(&rollup, "{\"t\": 1}\n{\"t\": 2}");
    // Facts that are there take none of the room.
    ingest(&rollup, "{\"t\": 2}\n{\"t\": 3}\n{\"t\": 1}");
    assert_eq!(facts(&rollup), ["1 2", "2 2", "3 1"]);
    assert_eq!((rollup.stats().facts, rollup.stats().segments), (3, 0));
    ingest(&rollup, "{\"t\": 3}\n{\"t\": 4}");
    assert_eq!((rollup.stats().facts, rollup.stats().segments), (2, 1));
    // What is live, and what is in a segment, are facts of their own until segments are merged.
    assert_eq!(facts(&rollup), ["1 2", "2 2", "3 1", "3 1", "4 1"]);
    let all: String = (1..5).map(|time| format!("{{\"t\": {time}}}\n")).collect();
    let refused = Writer::new(&rollup).ingest(&lines(&all));
    assert!(matches!(refused, Err(Error::Full { limit: 3, .. })), "{refused:?}");
    assert_eq!(facts(&rollup), ["1 2", "2 2", "3 1", "3 1", "4 1"]);
    assert!(rollup.merge_all().expect("segments") && !rollup.merge_all().expect("segments"));
    assert_eq!(facts(&rollup), ["1 2", "2 2", "3 2", "4 1"]);

    let mut limits = Limits::default();
    limits.bytes_max = Some(8 << 20);
    let schema = Schema::new("t").dimension(Dimension::text("d")).metric(Metric::count("n"));
    let rollup = self::rollup(schema.limits(limits));
    let mut writer = Writer::new(&rollup);
    for number in 0..20_000 {
        let batch = lines(&format!("{{\"t\": 0, \"d\": \"{number:0>1000}\"}}"));
        writer.ingest(&batch).expect("room");
        let stats = rollup.stats();
        assert!(stats.dictionary_bytes + stats.fact_bytes <= 10 << 20);
    }
    let stats = rollup.stats();
    assert_eq!(stats.facts + stats.segment_facts, 20_000);
    assert!((2..20).contains(&stats.segments), "{stats:?}");
}

#[test]
fn windows_throw_away_what_is_late_or_early() {
    let mut limits = Limits::default();
    (limits.late_max, limits.early_max) = (Some(10), Some(5));
    let rollup = rollup(Schema::new("t").metric(Metric::count("n")).limits(limits));
    let batch = lines("{\"t\": 89}\n{\"t\": 90}\n{\"t\": 100}\n{\"t\": 105}\n{\"t\": 106}");
    let told = Writer::new(&rollup).at(100).ingest(&batch).expect("room");
    assert_eq!((told.processed, told.thrown_away), (3, 2));
    assert_eq!(facts(&rollup), ["90 1", "100 1", "105 1"]);
}

#[test]
fn facts_are_kept_as_long_as_the_schema_says() {
    let mut limits = Limits::default();
    // A hundred years, so that no clock matters.
    limits.retention = Some(100 * 366 * 86_400_000);
    let rollup = rollup(Schema::new("t").metric(Metric::count("n")).limits(limits));
    let batch =
        lines("{\"t\": \"1900-01-01\"}\n{\"t\": \"1900-01-02T03:00\"}\n{\"t\": \"2200-01-01\"}");
    // At that time they are not too late; on the clock they are.
    let now = -2_208_988_800_000;
    let told = Writer::new(&rollup).at(now).ingest(&batch).expect("room");
    assert_eq!((told.processed, told.thrown_away), (3, 0));
    rollup.seal().expect("memory");
    assert_eq!(rollup.stats().segments, 3);
    rollup.merge().expect("memory");
    assert_eq!((rollup.stats().segments, rollup.stats().segment_facts), (1, 1));
    let told = Writer::new(&rollup).ingest(&batch).expect("room");
    assert_eq!((told.processed, told.thrown_away), (1, 2));
}

#[test]
fn transforms_and_filters_go_before_everything() {
    let expression = |text: &str| Expression::parse(text).expect("an expression");
    let schema = Schema::new("t")
        .dimension(Dimension::text("word"))
        .metric(Metric::long_sum("twice", "double"))
        .transform("__time", expression("__time * 1000"))
        .transform("word", expression("upper(word)"))
        .transform("double", expression("x * 2"))
        .filter(Filter::not(Filter::equal("word", "ELM")));
    let rollup = rollup(schema);
    let told = ingest(
        &rollup,
        r#"{"t": 1, "word": "oak", "x": 3}
           {"t": 1, "word": "elm", "x": "y"}
           {"t": 1, "word": "Oak", "x": 4}
           {"t": 1, "word": "Oak", "x": "y"}
           {"t": 9000000000000, "word": "Oak"}"#,
    );
    assert_eq!((told.processed, told.thrown_away, told.unparseable), (3, 1, 1), "{told:?}");
    assert_eq!(told.processed_with_error, 1, "{told:?}");
    assert_eq!(facts(&rollup), ["1000 OAK 14"]);
}

#[test]
fn columns_are_discovered_while_rows_come_in() {
    for (discovery, kinds) in [
        (Discovery::Typed, [DimensionKind::Text, DimensionKind::Long, DimensionKind::Double]),
        (Discovery::Texts, [DimensionKind::Text; 3]),
    ] {
        let schema = Schema::new("t")
            .dimension(Dimension::text("a"))
            .metric(Metric::long_sum("s", "x"))
            .discover(discovery, &["secret"]);
        let rollup = rollup(schema);
        let mut writer = Writer::new(&rollup);
        let batches = [
            r#"{"t": 0, "a": "old", "x": 1}"#,
            r#"{"t": 0, "a": "old", "x": 1, "b": 5, "secret": 1, "none": null}"#,
            r#"{"t": 0, "a": "old", "x": 1}"#,
            r#"{"t": 0, "a": "old", "x": 1, "c": 0.5, "b": 5}"#,
        ];
        for batch in batches {
            writer.ingest(&lines(batch)).expect("room");
        }
        let found: Vec<_> =
            rollup.dimensions().into_iter().map(|found| (found.name, found.kind)).collect();
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(found, names.into_iter().zip(kinds).collect::<Vec<_>>());
        let mut facts = facts(&rollup);
        facts.sort();
        assert_eq!(facts, ["0 old 5 0.5 1", "0 old 5 null 1", "0 old null null 2"]);
        // A column that has not come yet is null, as those of Druid are.
        let answer = rollup.query(&Query::group_by(["d"])).expect("it may yet come");
        assert_eq!(answer.rows, [[Value::Long(0), Value::Null]]);
    }
}

#[test]
fn null_and_the_empty_text_are_two_values() {
    let schema = Schema::new("t").dimension(Dimension::text("d")).metric(Metric::count("n"));
    let rollup = rollup(schema);
    ingest(
        &rollup,
        r#"{"t": 0, "d": ""}
           {"t": 0, "d": null}
           {"t": 0}
           {"t": 0, "d": []}
           {"t": 0, "d": ["a"]}
           {"t": 0, "d": "a"}
           {"t": 0, "d": ["b", "a"]}
           {"t": 0, "d": ["a", "b"]}"#,
    );
    let mut facts = facts(&rollup);
    facts.sort();
    assert_eq!(facts, ["0  1", "0 [a, b] 2", "0 a 2", "0 null 3"]);
}

#[test]
fn without_rollup_each_row_is_a_fact() {
    let schema = Schema::new("t")
        .dimension(Dimension::text("d"))
        .metric(Metric::long_sum("s", "x"))
        .query_granularity(Granularity::parse("day").expect("known"))
        .rollup(false);
    let rollup = rollup(schema);
    for _ in 0..2 {
        ingest(&rollup, "{\"t\": 5, \"d\": \"a\", \"x\": 1}\n{\"t\": 6, \"d\": \"a\", \"x\": 2}");
    }
    assert_eq!(facts(&rollup), ["0 a 1", "0 a 2", "0 a 1", "0 a 2"]);
}

#[test]
fn facts_of_all_of_time_have_that_of_their_segment() {
    let schema = Schema::new("t")
        .metric(Metric::count("n"))
        .query_granularity(Granularity::ALL)
        .segment_granularity(Granularity::parse("day").expect("known"));
    let rollup = rollup(schema);
    ingest(&rollup, "{\"t\": 5}\n{\"t\": 86400000}\n{\"t\": 86400001}");
    assert_eq!(facts(&rollup), ["0 1", "86400000 2"]);
}
