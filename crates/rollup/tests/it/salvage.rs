//! Damaged segments: each byte of one, one at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use sapwood_disk::{Disk, SimDisk};
use sapwood_rollup::{
    Aggregation, Column, Dimension, Error, Metric, Query, Rollup, RowBatch, Schema, Writer, salvage,
};

const ROWS: i64 = 300;
const COLUMNS: [&str; 6] = ["__time", "id", "page", "count", "added", "users"];

fn schema() -> Schema {
    Schema::new("time")
        .dimension(Dimension::long("id"))
        .dimension(Dimension::text("page"))
        .metric(Metric::count("count"))
        .metric(Metric::double_sum("added", "added"))
        .metric(Metric::distinct("users", "page"))
}

/// A folder with two segments of [`ROWS`] facts each.
fn folder() -> Arc<SimDisk> {
    let disk = Arc::new(SimDisk::new());
    let rollup = Arc::new(Rollup::on_disk(schema(), disk.clone()).expect("segments"));
    for day in 0..2 {
        let ids = || day * ROWS..(day + 1) * ROWS;
        let pages: Vec<String> = ids().map(|id| format!("page {}", id % 7)).collect();
        let batch = RowBatch::new(ROWS as usize)
            .column("time", Column::longs(ids().map(|id| day * 86_400_000 + id)))
            .and_then(|batch| batch.column("id", Column::longs(ids())))
            .and_then(|batch| batch.column("page", Column::texts(pages.iter().map(String::as_str))))
            .and_then(|batch| batch.column("added", Column::longs(ids())))
            .expect("columns of one length");
        Writer::new(&rollup).ingest_from(&batch, &[("source", day as u64 + 1)]).expect("room");
        rollup.seal().expect("sealed");
    }
    disk
}

/// The numbers of the rows that are there, each once.
fn ids(rollup: &Rollup) -> BTreeSet<i64> {
    let query = Query::group_by(["id"]).aggregation(Aggregation::long_sum("count", "count"));
    let answer = rollup.query(&query).expect("it can be read");
    let long = |row: usize, column: &str| {
        let value = answer.value(row, column).expect("there is one");
        value.to_long().expect("a number").expect("no null")
    };
    let rows = (0..answer.rows.len()).inspect(|row| assert_eq!(long(*row, "count"), 1));
    rows.map(|row| long(row, "id")).collect()
}

#[test]
fn a_damaged_byte_costs_its_segment_or_nothing_and_names_the_column() {
    let damaged = folder();
    let segment = "segment-00000001";
    let bytes = damaged.contents(segment).expect("it is there").len();
    let (mut named, mut remade) = (BTreeSet::new(), 0);
    for at in 0..bytes as u64 {
        damaged.damage(segment, at, 1).expect("it is there");
        let new = Arc::new(SimDisk::new());
        let problems = salvage(&schema(), &*damaged, 2, new.clone()).expect("it can be written");
        damaged.damage(segment, at, 1).expect("it is there");
        let rollup = Rollup::on_disk(schema(), new).expect("segments");
        assert_eq!(rollup.check(), [], "byte {at}");
        assert_eq!((rollup.sealed_batches(), rollup.offsets()["source"]), (2, 2), "byte {at}");
        let first = usize::from(ids(&rollup).contains(&0));
        let all: BTreeSet<i64> = (0..ROWS * 2).skip((1 - first) * ROWS as usize).collect();
        assert_eq!(ids(&rollup), all, "byte {at}");
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1, "byte {at} of {bytes}: {told:?}");
        assert!(matches!(&problems[0], Error::Corrupt { file, .. } if file == segment));
        let lost = told[0].contains("its 300 facts") && told[0].contains("are not copied");
        assert_eq!((first == 0, told[0].contains("all of its facts are copied")), (lost, !lost));
        remade += first;
        for column in COLUMNS {
            let words = format!(
                "the column `{column}` is damaged: its 300 facts of \
                 1970-01-01T00:00:00.000Z/1970-01-02T00:00:00.000Z are not copied"
            );
            if told[0].contains(&words) {
                named.insert(column);
            }
        }
    }
    assert_eq!(named, BTreeSet::from(COLUMNS));
    assert!(remade > 0, "bitmaps and the times of blocks are made again");
}

/// The files are as long as each other, and both are of this table.
#[test]
fn a_segment_under_the_name_of_another_is_not_believed() {
    let schema = || Schema::new("time").metric(Metric::long_sum("added", "added"));
    let disk = Arc::new(SimDisk::new());
    let rollup = Arc::new(Rollup::on_disk(schema(), disk.clone()).expect("segments"));
    for day in 0..2 {
        let batch = RowBatch::new(1)
            .column("time", Column::longs([day * 86_400_000]))
            .and_then(|batch| batch.column("added", Column::longs([5 + day])))
            .expect("columns of one length");
        Writer::new(&rollup).ingest(&batch).expect("room");
        rollup.seal().expect("sealed");
    }
    drop(rollup);
    let names = ["segment-00000001", "segment-00000002"];
    let bytes = names.map(|name| disk.contents(name).expect("it is there"));
    assert_eq!(bytes[0].len(), bytes[1].len(), "the length does not tell");
    let plant = |which: [usize; 2]| {
        for (name, at) in names.iter().zip(which) {
            disk.remove(name).expect("it is there");
            disk.plant(name, &bytes[at]).expect("a name");
        }
    };
    for which in [[1, 1], [1, 0], [0, 0]] {
        plant(which);
        let refused = Rollup::on_disk(schema(), disk.clone()).expect_err("it is another's");
        let is_named = |file: &String| names.contains(&file.as_str());
        assert!(matches!(&refused, Error::Corrupt { file, .. } if is_named(file)), "{refused}");
        assert!(refused.to_string().contains("another segment"), "{refused}");
    }
    plant([0, 1]);
    Rollup::on_disk(schema(), disk.clone()).expect("as it was");
}

/// A manifest of a version that had no checks of segments.
#[test]
fn a_manifest_of_the_first_version_is_read_and_written_anew() {
    let disk = folder();
    let text = |disk: &SimDisk| {
        String::from_utf8(disk.contents("manifest").expect("it is there")).expect("text")
    };
    let now = text(&disk);
    let json = now.lines().nth(2).expect("three lines");
    let mut first: serde_json::Value = serde_json::from_str(json).expect("JSON");
    for segment in first["segments"].as_array_mut().expect("a list") {
        segment.as_object_mut().expect("an object").remove("check").expect("it has one");
    }
    let json = first.to_string();
    let sum = sapwood_disk::checksum(json.as_bytes());
    let manifest = format!("sapwood rollup manifest 1\n{sum:08x}\n{json}\n");
    disk.plant("manifest", manifest.as_bytes()).expect("a name");
    let rollup = Rollup::on_disk(schema(), disk.clone()).expect("it is read");
    assert_eq!(ids(&rollup), (0..ROWS * 2).collect());
    assert_eq!(text(&disk), now);
}

/// Each byte of the manifest: its copy counts, which is as new.
#[test]
fn a_damaged_manifest_costs_nothing() {
    let damaged = folder();
    let bytes = damaged.contents("manifest").expect("it is there");
    assert_eq!(bytes, damaged.contents("manifest.copy").expect("it is there"));
    for at in 0..bytes.len() as u64 {
        damaged.damage("manifest", at, 8).expect("it is there");
        let new = Arc::new(SimDisk::new());
        let problems = salvage(&schema(), &*damaged, 2, new.clone()).expect("it can be written");
        damaged.damage("manifest", at, 8).expect("it is there");
        assert!(problems[0].to_string().contains("another one counts"), "byte {at}");
        let rollup = Rollup::on_disk(schema(), new).expect("segments");
        assert_eq!(ids(&rollup), (0..ROWS * 2).collect(), "byte {at}");
    }
}

/// What is told where a manifest of an earlier moment is all that there is.
#[test]
fn batches_that_no_manifest_has_are_told() {
    let damaged = folder();
    let told = |disk: &SimDisk, sealed: u64| {
        let problems = salvage(&schema(), disk, sealed, Arc::new(SimDisk::new()));
        problems.expect("it can be written").iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(&damaged, 2), <[String; 0]>::default());
    let gap = &told(&damaged, 5)[0];
    assert!(gap.contains("rows of the batches from number 3 to number 5 are lost"), "{gap}");
    for name in ["manifest", "manifest.copy"] {
        damaged.remove(name).expect("it is there");
    }
    let missing = &told(&damaged, 2)[0];
    assert!(missing.contains("rows of the batches up to number 2 are lost"), "{missing}");
    // None was written yet, and the log has all.
    assert_eq!(told(&damaged, 0), <[String; 0]>::default());
}
