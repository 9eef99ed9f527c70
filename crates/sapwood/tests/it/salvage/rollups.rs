//! Roll-up tables of damaged databases: a segment is saved whole or told, and no row is counted twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use sapwood::rollup::{Aggregation, Column, Dimension, Metric, Query, RowBatch, Schema};
use sapwood::{Db, DbOptions, Durability, RollupTable, RollupTableOptions, Salvage};
use sapwood_testkit::case;
use tempfile::TempDir;

use super::{copy, files};

const HOUR: i64 = 3_600_000;
const ROWS: i64 = 300;
/// Batches before the checkpoint; behind it and in a segment; in the log alone.
const BATCHES: (i64, i64, i64) = (6, 3, 4);
const ALL: i64 = BATCHES.0 + BATCHES.1 + BATCHES.2;

/// By the number of a row: how often it is there, and its figure.
type Rows = BTreeMap<i64, (i64, i64)>;

fn schema() -> Schema {
    Schema::new("time")
        .dimension(Dimension::long("id"))
        .dimension(Dimension::text("page"))
        .metric(Metric::count("count"))
        .metric(Metric::long_sum("added", "added"))
        .metric(Metric::distinct("users", "page"))
}

/// Rows of two days.
fn batch(number: i64) -> RowBatch {
    let ids = || number * ROWS..(number + 1) * ROWS;
    let pages: Vec<String> = ids().map(|id| format!("page {}", id % 7)).collect();
    RowBatch::new(ROWS as usize)
        .column("time", Column::longs(ids().map(|id| id % 48 * HOUR)))
        .and_then(|batch| batch.column("id", Column::longs(ids())))
        .and_then(|batch| batch.column("page", Column::texts(pages.iter().map(String::as_str))))
        .and_then(|batch| batch.column("added", Column::longs(ids().map(|id| id * 3))))
        .expect("columns of one length")
}

fn bring(table: &RollupTable, numbers: std::ops::Range<i64>) {
    for number in numbers {
        let offset = [("source", number as u64 + 1)];
        table.ingest_from(&batch(number), &offset).expect("room");
    }
}

/// A table with segments that were merged, one that only the log's checkpoint does not know, and rows in the log alone.
fn made(path: &Path) {
    let db = Db::open_with(path, DbOptions::default().durability(Durability::Sync)).expect("new");
    let table = db.create_rollup_table("edits", RollupTableOptions::new(schema())).expect("made");
    let (first, second, _) = BATCHES;
    for number in 0..first {
        bring(&table, number..number + 1);
        table.seal().expect("sealed");
        if number == first / 2 {
            table.merge().expect("merged");
        }
    }
    db.checkpoint().expect("written");
    bring(&table, first..first + second);
    table.seal().expect("sealed");
    bring(&table, first + second..ALL);
}

fn rows(path: &Path) -> Rows {
    let db = Db::open_read_only(path).expect("it opens");
    let Ok(table) = db.rollup_table("edits") else { return Rows::new() };
    let query = Query::group_by(["id"])
        .aggregation(Aggregation::long_sum("count", "count"))
        .aggregation(Aggregation::long_sum("added", "added"));
    let answer = table.query(&query).expect("it can be read");
    let long = |row: usize, column: &str| {
        let value = answer.value(row, column).expect("there is one");
        value.to_long().expect("a number").expect("no null")
    };
    (0..answer.rows.len())
        .map(|row| (long(row, "id"), (long(row, "count"), long(row, "added"))))
        .collect()
}

/// All rows of some batches, each once.
fn rows_of(batches: impl IntoIterator<Item = i64>) -> Rows {
    let ids = batches.into_iter().flat_map(|number| number * ROWS..(number + 1) * ROWS);
    ids.map(|id| (id, (1, id * 3))).collect()
}

fn is_segment(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("segment-"))
}

struct Saved {
    salvage: Salvage,
    rows: Rows,
    offset: Option<u64>,
}

/// Saves a damaged database, and what holds whatever is damaged.
fn saved(old: &Path, past_damage: bool, what: &str) -> Saved {
    let new = old.with_extension("new");
    let salvage = match past_damage {
        true => Db::salvage_past_damage(old, &new),
        false => Db::salvage(old, &new),
    };
    let salvage = salvage.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(Db::check(&new).expect("it can be read").problems, [], "{what}");
    let found = rows(&new);
    for (id, (count, added)) in &found {
        assert_eq!((*count, *added), (1, id * 3), "{what}: row {id}");
    }
    if found != rows_of(0..ALL) {
        assert!(!salvage.is_complete(), "{what}: rows are lost, and nothing is told");
    }
    let db = Db::open(&new).expect("it opens");
    let offset = db.rollup_table("edits").ok().and_then(|table| {
        // It takes what comes, and only what is new.
        let again = table.ingest_from(&batch(0), &[("source", 1)]).expect("room");
        assert_eq!(again.processed == 0, table.offsets().contains_key("source"), "{what}");
        bring(&table, ALL..ALL + 1);
        table.offsets().get("source").copied()
    });
    drop(db);
    fs::remove_dir_all(new).expect("removed");
    Saved { salvage, rows: found, offset }
}

/// The rows that are in no other file than each segment.
fn rows_of_segments(folder: &Path, sound: &Path) -> BTreeMap<PathBuf, BTreeSet<i64>> {
    let mut of_files = BTreeMap::new();
    let segments = files(sound).into_iter().filter(|file| is_segment(file));
    for (number, file) in segments.enumerate() {
        let old = folder.join(format!("without-{number}"));
        copy(sound, &old);
        let name = file.strip_prefix(sound).expect("within").to_owned();
        fs::remove_file(old.join(&name)).expect("removed");
        let Saved { salvage, rows, offset } = saved(&old, false, &format!("without {name:?}"));
        let lost: BTreeSet<i64> = (0..ALL * ROWS).filter(|id| !rows.contains_key(id)).collect();
        let told = salvage.problems.iter().find(|problem| problem.path.ends_with(&name));
        let told = told.unwrap_or_else(|| panic!("{:?}", salvage.problems)).to_string();
        assert!(told.contains(&format!("its {} facts are not copied", lost.len())), "{told}");
        assert_eq!(offset, Some(ALL as u64 + 1));
        of_files.insert(name, lost);
    }
    of_files
}

#[test]
fn a_sound_roll_up_is_copied_whole() {
    let folder = TempDir::new().expect("a folder for the test");
    let old = folder.path().join("old");
    made(&old);
    let Saved { salvage, rows, offset } = saved(&old, false, "sound");
    assert!(salvage.is_complete(), "{:?}", salvage.problems);
    assert_eq!(rows, rows_of(0..ALL));
    assert_eq!(offset, Some(ALL as u64 + 1));
    assert_eq!(salvage.tables[0].entries, (ALL * ROWS) as u64);
}

#[test]
fn a_missing_segment_costs_its_own_rows_and_no_others() {
    let folder = TempDir::new().expect("a folder for the test");
    let sound = folder.path().join("sound");
    made(&sound);
    let lost = rows_of_segments(folder.path(), &sound);
    assert!(lost.len() > 4, "{lost:?}");
    let all: Vec<i64> = lost.values().flatten().copied().collect();
    let sealed: Vec<i64> = (0..(BATCHES.0 + BATCHES.1) * ROWS).collect();
    let different: BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!((all.len(), different.into_iter().collect::<Vec<_>>()), (sealed.len(), sealed));
}

/// Any byte of any file, one at a time, and any file cut anywhere.
#[test]
fn damage_of_a_roll_up_costs_what_is_told_and_doubles_nothing() {
    let folder = TempDir::new().expect("a folder for the test");
    let sound = folder.path().join("sound");
    made(&sound);
    let lost = rows_of_segments(folder.path(), &sound);
    let whole = rows_of(0..ALL);
    let files: Vec<PathBuf> = files(&sound);
    case!().seeds(120, |seed| {
        let mut rng = Rng::with_seed(seed);
        let old = folder.path().join(format!("old-{seed}"));
        copy(&sound, &old);
        let name = files[seed as usize % files.len()].strip_prefix(&sound).expect("within");
        let mut bytes = fs::read(old.join(name)).expect("there");
        let at = rng.usize(..bytes.len());
        let is_cut = rng.u8(..4) == 0;
        match is_cut {
            true => bytes.truncate(at),
            false => bytes[at] ^= 1 << rng.u8(..8),
        }
        fs::write(old.join(name), bytes).expect("written");
        let what = format!("seed {seed}, byte {at} of {}, cut: {is_cut}", name.display());
        let check = Db::check(&old).unwrap_or_else(|error| panic!("{what}: {error}"));
        let past_damage = rng.bool();
        let is_end_of_log = is_cut && name.starts_with("log");
        if is_end_of_log {
            // Nothing tells it from what a crash has cut off.
            return;
        }
        let Saved { salvage, rows, .. } = saved(&old, past_damage, &what);
        if check.problems.is_empty() {
            assert_eq!(rows, whole, "{what}");
            assert!(salvage.is_complete(), "{what}: {:?}", salvage.problems);
        }
        let missing: BTreeSet<i64> =
            whole.keys().filter(|id| !rows.contains_key(id)).copied().collect();
        match lost.get(name) {
            // Of a segment all rows are there, or none.
            Some(lost) => assert!(missing.is_empty() || missing == *lost, "{what}: {missing:?}"),
            None if name.starts_with("rollups") => assert!(missing.is_empty(), "{what}"),
            // The log's own manifest has the schema.
            None if name.ends_with("manifest") => {}
            None => {
                let sealed = (BATCHES.0 + BATCHES.1) * ROWS;
                assert!(missing.iter().all(|id| *id >= sealed), "{what}: {missing:?}");
                // Whole batches.
                assert_eq!(missing.len() as i64 % ROWS, 0, "{what}");
                if past_damage && !is_cut {
                    assert!(missing.len() as i64 <= ROWS, "{what}: one record is damaged");
                }
            }
        }
        fs::remove_dir_all(old).expect("removed");
    });
}

/// Without any manifest nothing says which segments count: the log's rows are there, once each.
#[test]
fn without_manifest_and_copy_the_log_alone_is_saved() {
    let folder = TempDir::new().expect("a folder for the test");
    let old = folder.path().join("old");
    made(&old);
    let found = files(&old);
    for name in ["manifest", "manifest.copy"] {
        let file = found.iter().find(|file| {
            file.ends_with(name)
                && file.strip_prefix(&old).is_ok_and(|name| name.starts_with("rollups"))
        });
        fs::remove_file(file.expect("there is one")).expect("removed");
    }
    let Saved { salvage, rows, .. } = saved(&old, false, "no manifest");
    assert_eq!(rows, rows_of(BATCHES.0..ALL));
    let told = salvage.problems[0].to_string();
    assert!(told.contains("batches up to number 6 are lost"), "{told}");
}
