//! Facts as Parquet files, read back by another reader than the one that scans use.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use fastrand::Rng;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sapwood_aggregate::{Accumulator, Function};
use sapwood_disk::{Disk, Faults, FileDisk, SimDisk, WriteFault};
use sapwood_rollup::{
    Answer, Column, Dimension, Discovery, Error, Filter, Granularity, Interval, Metric,
    ParquetOptions, Query, Rollup, RowBatch, ScanOrder, Schema, Value, Writer,
};

fn schema() -> Schema {
    Schema::new("t")
        .dimension(Dimension::text("page"))
        .dimension(Dimension::text("tags"))
        .dimension(Dimension::long("size"))
        .dimension(Dimension::double("score"))
        .discover(Discovery::Typed, &["x", "y"])
        .metric(Metric::count("rows"))
        .metric(Metric::count("some").where_(Filter::equal("page", "p1")))
        .metric(Metric::long_sum("sum", "x"))
        .metric(Metric::double_sum("total", "y"))
        .metric(Metric::long_min("least", "x"))
        .metric(Metric::double_max("most", "y"))
        .metric(Metric::long_first("first", "x"))
        .metric(Metric::double_last("last", "y"))
        .metric(Metric::distinct("users", "page"))
        .metric(Metric::quantiles("delays", "y"))
        .metric(Metric::variance("spread", "y"))
        .metric(Metric::hll("pages", "page"))
        .metric(Metric::theta("visits", "page"))
        .metric(Metric::kll("ranks", "y"))
        // Hides the column of times that the last one would have.
        .metric(Metric::long_max("last_time", "x"))
        .query_granularity(Granularity::parse("minute").expect("known"))
        .segment_granularity(Granularity::parse("hour").expect("known"))
}

/// Rows with nulls, with several values, and with a column that comes late.
fn batch(rng: &mut Rng, rows: usize, is_late: bool) -> RowBatch {
    let mut any = |values: &mut dyn FnMut(&mut Rng) -> Value<'static>| {
        Column::values((0..rows).map(|_| match rng.u8(0..5) {
            0 => Value::Null,
            _ => values(rng),
        }))
    };
    let text = |rng: &mut Rng| Value::from(format!("p{}", rng.u8(0..4)));
    let pages = any(&mut |rng| text(rng));
    let tags = any(&mut |rng| match rng.u8(0..3) {
        0 => text(rng),
        many => Value::List((0..=many).map(|_| text(rng)).collect()),
    });
    let sizes = any(&mut |rng| Value::Long(rng.i64(-2..2)));
    let scores = any(&mut |rng| Value::Double(f64::from(rng.i8(-2..2)) / 8.0));
    let longs = any(&mut |rng| Value::Long(rng.i64(-1_000..1_000)));
    let doubles = any(&mut |rng| Value::Double(f64::from(rng.i32(-1_000..1_000)) / 16.0));
    let late = (0..rows).map(|_| rng.bool().then(|| rng.i64(0..2)));
    let late = Column::optional_longs(late.collect::<Vec<_>>());
    let times = Column::longs((0..rows).map(|_| rng.i64(0..3 * 3_600_000)));
    let batch = RowBatch::new(rows)
        .column("t", times)
        .and_then(|batch| batch.column("page", pages))
        .and_then(|batch| batch.column("tags", tags))
        .and_then(|batch| batch.column("size", sizes))
        .and_then(|batch| batch.column("score", scores))
        .and_then(|batch| batch.column("x", longs))
        .and_then(|batch| batch.column("y", doubles))
        .expect("columns of one length");
    match is_late {
        true => batch.column("late", late).expect("of the same length"),
        false => batch,
    }
}

/// Three hours of facts in segments, of which some came before a dimension was discovered, and among live facts.
fn filled(rows: usize) -> Arc<Rollup> {
    let rollup = Arc::new(Rollup::new(schema()).expect("it fits"));
    let (mut rng, mut writer) = (Rng::with_seed(7), Writer::new(&rollup));
    for round in 0..3 {
        writer.ingest(&batch(&mut rng, rows, round > 0)).expect("room");
        if round < 2 {
            rollup.seal().expect("memory");
        }
    }
    rollup
}

fn read(file: File) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("it is whole");
    reader.build().expect("it is Parquet").map(|batch| batch.expect("it is sound")).collect()
}

/// A cell, as another program would take it.
fn cell(array: &dyn Array, row: usize) -> Value<'static> {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Int64 => Value::Long(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => Value::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Timestamp(..) => {
            Value::Long(array.as_primitive::<TimestampMillisecondType>().value(row))
        }
        DataType::Utf8 => Value::from(array.as_string::<i32>().value(row).to_owned()),
        DataType::List(_) => {
            let list = array.as_list::<i32>().value(row);
            let values: Vec<_> = (0..list.len()).map(|at| cell(&list, at)).collect();
            match <[Value<'static>; 1]>::try_from(values) {
                Ok([one]) => one,
                Err(values) => Value::List(values),
            }
        }
        other => panic!("no column is {other}"),
    }
}

fn scan(rollup: &Rollup, interval: Interval) -> Answer {
    rollup.query(&Query::scan([], ScanOrder::Ascending).interval(interval)).expect("it is answered")
}

#[test]
fn every_value_is_that_of_a_scan() {
    let folder = tempfile::tempdir().expect("a folder");
    let rollup = filled(500);
    let disk = FileDisk::open(folder.path()).expect("it opens");
    let written = rollup.write_parquet(&disk, "edits", &ParquetOptions::default());
    let written = written.expect("the disk takes it");
    let names: Vec<&str> = written.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "edits_1970-01-01T00Z_1970-01-01T01Z.parquet",
            "edits_1970-01-01T01Z_1970-01-01T02Z.parquet",
            "edits_1970-01-01T02Z_1970-01-01T03Z.parquet",
        ]
    );
    let (mut seen, mut nulls, mut lists) = (0, 0, 0);
    let mut first = None;
    for file in &written {
        let path = folder.path().join(&file.name);
        assert_eq!(std::fs::metadata(&path).expect("it is there").len(), file.bytes);
        let expected = scan(&rollup, file.interval);
        let batches = read(File::open(&path).expect("it opens"));
        let schema = batches[0].schema();
        assert_eq!(*first.get_or_insert(schema.clone()), schema, "all files have the same columns");
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!((rows, file.facts), (expected.rows.len(), rows as u64));
        let mut expected_rows = expected.rows.iter();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                let expected_row = expected_rows.next().expect("as many rows");
                for (name, value) in expected.columns.iter().zip(expected_row) {
                    if DATASKETCHES.contains(&name.as_str()) {
                        datasketch_is_sound(batch, row, name, value);
                        continue;
                    }
                    let array = batch.column_by_name(name).expect(name);
                    assert_eq!(&cell(array, row), value, "{name} of row {row}");
                    nulls += usize::from(value.is_null());
                    lists += usize::from(matches!(value, Value::List(_)));
                }
                states_are_sound(batch, row);
                seen += 1;
            }
        }
    }
    assert!(seen > 1_000 && nulls > 1_000 && lists > 100, "{seen} {nulls} {lists}");
    let schema = first.expect("there are files");
    let types: BTreeMap<&str, String> = schema
        .fields()
        .iter()
        .map(|field| (field.name().as_str(), field.data_type().to_string()))
        .collect();
    assert_eq!(types["__time"], "Timestamp(ms, \"UTC\")");
    assert_eq!((&*types["page"], &*types["late"]), ("Utf8", "Int64"));
    assert!(types["tags"].starts_with("List("), "{}", types["tags"]);
    // The name of a metric stays its own.
    assert_eq!((&*types["last_time"], &*types["last_time_"]), ("Int64", "Timestamp(ms, \"UTC\")"));
}

/// Of these a scan shows the bytes, in base64.
const DATASKETCHES: [&str; 3] = ["pages", "visits", "ranks"];

fn datasketch_is_sound(batch: &RecordBatch, row: usize, name: &str, shown: &Value<'_>) {
    let states = batch.column_by_name(&format!("{name}_state")).expect(name).as_binary::<i32>();
    let state = states.is_valid(row).then(|| BASE64.encode(states.value(row)));
    assert_eq!(state.map_or(Value::Null, Value::from), *shown, "{name} of row {row}");
    let of = |name: &str| cell(batch.column_by_name(name).expect(name), row);
    match name {
        // So few are counted exactly, but for what an estimate of HLL is off.
        "pages" | "visits" => {
            let (Value::Double(estimate), Value::Long(users)) = (of(name), of("users")) else {
                panic!("counts are never null")
            };
            assert!((estimate - users as f64).abs() < 0.01, "{estimate} and {users}");
        }
        _ => assert_eq!(of(name).is_null(), shown.is_null()),
    }
}

/// What stands beside a figure says the same.
fn states_are_sound(batch: &RecordBatch, row: usize) {
    let of = |name: &str| cell(batch.column_by_name(name).expect(name), row);
    let state = |name: &str, function: Function| {
        let states = batch.column_by_name(name).expect(name).as_binary::<i32>();
        states.is_valid(row).then(|| Accumulator::decode(function, states.value(row)))
    };
    let distinct = state("users_state", Function::Distinct { input: "page".into(), precision: 12 });
    let counted = distinct.map_or(0, |users| {
        let cell = users.expect("it was written").cell().expect("a count");
        cell.to_string().parse::<i64>().expect("a number")
    });
    assert_eq!(of("users"), Value::Long(counted));
    let quantile = Function::Quantile { input: "y".into(), share: 0.5, accuracy: 0.01 };
    let delays = state("delays_state", quantile);
    assert_eq!(delays.is_none(), of("delays").is_null());
    assert!(delays.is_none_or(|delays| delays.is_ok()));
    let Value::Long(count) = of("spread_count") else { panic!("a count is never null") };
    match (of("spread"), of("spread_mean"), of("spread_m2")) {
        (Value::Null, Value::Null, Value::Null) => assert_eq!(count, 0),
        (Value::Double(variance), Value::Double(mean), Value::Double(m2)) => {
            assert!((m2 / count as f64 - variance).abs() <= 1e-12 * variance.abs(), "{m2}");
            let Value::Double(total) = of("total") else { panic!("numbers have a sum") };
            assert!((mean * count as f64 - total).abs() < 1e-9, "{mean} of {count} and {total}");
        }
        other => panic!("{other:?} are not all null"),
    }
    let Value::Long(minute) = of("__time") else { panic!("a fact has a time") };
    for (value, time) in [("first", "first_time"), ("last", "last_time_")] {
        match (of(value), of(time)) {
            (Value::Null, Value::Null) => {}
            (_, Value::Long(time)) => assert!((minute..minute + 60_000).contains(&time), "{time}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn files_say_of_what_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = FileDisk::open(folder.path()).expect("it opens");
    let rollup = filled(10);
    let written = rollup.write_parquet(&disk, "edits", &ParquetOptions::default());
    let file = &written.expect("the disk takes it")[0];
    let reader = File::open(folder.path().join(&file.name)).expect("it is there");
    let reader = ParquetRecordBatchReaderBuilder::try_new(reader).expect("it is whole");
    let said = reader.metadata().file_metadata().key_value_metadata().expect("it says something");
    let said = |key: &str| {
        let found = said.iter().find(|said| said.key == key).expect(key);
        found.value.clone().expect("it says what")
    };
    assert_eq!(Schema::from_json(&said("sapwood.rollup.schema")), Ok(schema()));
    assert_eq!(Interval::parse(&said("sapwood.rollup.interval")), Ok(file.interval));
}

#[test]
fn many_facts_are_several_row_groups() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = FileDisk::open(folder.path()).expect("it opens");
    let schema = Schema::new("t").dimension(Dimension::long("d")).metric(Metric::count("rows"));
    let rollup = Arc::new(Rollup::new(schema).expect("it fits"));
    let rows = 150_000;
    let batch = RowBatch::new(rows)
        .column("t", Column::longs((0..rows as i64).map(|row| row / 2)))
        .and_then(|batch| batch.column("d", Column::longs(0..rows as i64)))
        .expect("columns of one length");
    Writer::new(&rollup).ingest(&batch).expect("room");
    rollup.seal().expect("memory");
    let written = rollup.write_parquet(&disk, "edits", &ParquetOptions::default());
    let written = written.expect("the disk takes it");
    assert_eq!((written.len(), written[0].facts), (1, rows as u64));
    let file = File::open(folder.path().join(&written[0].name)).expect("it is there");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("it is whole");
    let groups = reader.metadata().row_groups();
    let in_groups: Vec<i64> = groups.iter().map(|group| group.num_rows()).collect();
    assert_eq!(in_groups, [131_072, 150_000 - 131_072]);
}

#[test]
fn lists_are_said_beforehand_and_nothing_makes_no_file() {
    let disk = SimDisk::new();
    let rollup = Arc::new(Rollup::new(schema()).expect("it fits"));
    let options = ParquetOptions::default();
    assert_eq!(rollup.write_parquet(&disk, "edits", &options), Ok(vec![]));
    assert_eq!(disk.list().expect("names"), Vec::<String>::new());

    let folder = tempfile::tempdir().expect("a folder");
    let disk = FileDisk::open(folder.path()).expect("it opens");
    let (batch, _) = RowBatch::from_json_lines(br#"{"t": 0, "page": "a", "tags": "b"}"#);
    Writer::new(&rollup).ingest(&batch).expect("room");
    let written = rollup.write_parquet(&disk, "edits", &options.clone().lists(["tags"]));
    let name = written.expect("the disk takes it").remove(0).name;
    let batch = read(File::open(folder.path().join(name)).expect("it is there")).remove(0);
    let is_list = |name: &str| {
        matches!(batch.column_by_name(name).expect(name).data_type(), DataType::List(_))
    };
    assert_eq!((is_list("page"), is_list("tags")), (false, true));
    for name in ["size", "nothing"] {
        let refused = rollup.write_parquet(&disk, "edits", &options.clone().lists([name]));
        let error = refused.expect_err("no texts");
        assert!(error.to_string().contains(&format!("no dimension of texts `{name}`")), "{error}");
    }
}

/// The files that are there under their own names.
fn whole(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let names = disk.list().expect("names").into_iter();
    let names = names.filter(|name| name.ends_with(".parquet"));
    names.map(|name| (name.clone(), disk.contents(&name).expect("it is there"))).collect()
}

#[test]
fn a_file_is_there_whole_or_not_at_all_after_a_loss_of_power() {
    let (few, many) = (filled(20), filled(60));
    let options = ParquetOptions::default();
    let older = SimDisk::new();
    few.write_parquet(&older, "edits", &options).expect("the disk takes it");
    let newer = SimDisk::new();
    many.write_parquet(&newer, "edits", &options).expect("the disk takes it");
    let (old, new) = (whole(&older), whole(&newer));
    assert!(old.len() == 3 && new.len() == 3 && old != new);
    let changes = newer.operations();
    assert!(changes > 10, "{changes}");
    let (mut half, mut parts) = (0, 0);
    for count in 0..=changes {
        let disk = older.crash(0);
        assert!(whole(&disk) == old, "what is done lasts");
        disk.stop_after(count);
        let done = many.write_parquet(&disk, "edits", &options);
        for seed in 0..4 {
            let after = disk.crash(seed);
            let found = whole(&after);
            assert_eq!(found.len(), 3, "after {count} changes");
            for (name, bytes) in &found {
                let is_new = *bytes == new[name];
                assert!(is_new || *bytes == old[name], "{name} after {count} changes");
                half += usize::from(is_new && done.is_err());
            }
            parts += after.list().expect("names").len() - found.len();
            // What a crash has left gives way.
            many.write_parquet(&after, "edits", &options).expect("the disk takes it");
            assert!(whole(&after) == new, "the next export is whole");
            assert_eq!(after.list().expect("names").len(), 3);
        }
    }
    assert!(half > 0 && parts > 0, "{half} {parts}");
}

#[test]
fn a_disk_that_refuses_is_told_and_leaves_no_part() {
    let disk = SimDisk::new();
    disk.set_faults(Faults::new().writes(0.., WriteFault::Error(std::io::ErrorKind::StorageFull)));
    let refused = filled(50).write_parquet(&disk, "edits", &ParquetOptions::default());
    let Err(Error::Io { what, kind, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(what, "write edits_1970-01-01T00Z_1970-01-01T01Z.parquet");
    assert_eq!(kind, std::io::ErrorKind::StorageFull);
    assert_eq!(disk.list().expect("names"), Vec::<String>::new());
}

#[test]
fn files_that_are_there_are_kept_if_they_are_to_be() {
    let disk = SimDisk::new();
    let rollup = filled(50);
    let written = rollup.write_parquet(&disk, "edits", &ParquetOptions::default());
    let last = written.expect("the disk takes it").pop().expect("a file").name;
    disk.plant(&last, b"of another program").expect("a valid name");
    for name in disk.list().expect("names").into_iter().filter(|name| *name != last) {
        disk.remove(&name).expect("removed");
    }
    let refused = rollup.write_parquet(&disk, "edits", &ParquetOptions::default().keep_files());
    let Err(Error::Io { kind, what, .. }) = refused else { panic!("{refused:?}") };
    assert!(kind == std::io::ErrorKind::AlreadyExists && what.contains(&last), "{what}");
    assert_eq!(disk.list().expect("names"), [&*last], "none is written");
    assert_eq!(disk.contents(&last).expect("it is there"), b"of another program");
}
