//! The Wikipedia edits of Druid's tutorials against plain loops over the same lines.
//!
//! The data is not in the repository: the test looks beside it, or where `SAPWOOD_DATA` says, and is passed
//! over with a notice where it finds none.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use sapwood_rollup::{Query, Rollup, RowBatch, Schema, Value, Writer};

const NAME: &str = "wikiticker-2015-09-12-sampled.json.gz";

fn edits() -> Option<String> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = std::env::var_os("SAPWOOD_DATA").map_or_else(|| beside.into(), PathBuf::from);
    let file = std::fs::File::open(folder.join(NAME)).ok()?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip of UTF-8");
    Some(text)
}

const SCHEMA: &str = r#"{
    "timestampSpec": {"column": "time", "format": "iso"},
    "dimensionsSpec": {"dimensions": ["channel", "cityName", "countryName", "isRobot", "namespace"]},
    "metricsSpec": [
        {"type": "count", "name": "count"},
        {"type": "longSum", "name": "added", "fieldName": "added"},
        {"type": "longMax", "name": "largest", "fieldName": "delta"},
        {"type": "distinct", "name": "users", "fieldName": "user"}],
    "granularitySpec": {"queryGranularity": "minute", "segmentGranularity": "day"}
}"#;

fn text(edit: &serde_json::Value, name: &str) -> Option<String> {
    match &edit[name] {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[test]
fn edits_are_rolled_up_as_plain_loops_do() {
    let Some(lines) = edits() else {
        eprintln!("passed over: there is no {NAME}; say with SAPWOOD_DATA in which folder it is");
        return;
    };
    let edits: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let rollup = Arc::new(Rollup::new(Schema::from_json(SCHEMA).expect("a schema")).expect("room"));
    let half = lines.len() / 2 + lines[lines.len() / 2..].find('\n').expect("a line") + 1;
    std::thread::scope(|scope| {
        for part in [&lines[..half], &lines[half..]] {
            let rollup = &rollup;
            scope.spawn(move || {
                let (batch, bad) = RowBatch::from_json_lines(part.as_bytes());
                assert!(bad.is_empty());
                let told = Writer::new(rollup).ingest(&batch).expect("room");
                assert_eq!((told.processed, told.processed_with_error), (batch.rows() as u64, 0));
            });
        }
    });
    assert_eq!(rollup.stats().processed, edits.len() as u64);

    let dimensions = ["channel", "cityName", "countryName", "isRobot", "namespace"];
    let facts: BTreeSet<(String, Vec<Option<String>>)> = edits
        .iter()
        .map(|edit| {
            let minute = text(edit, "time").expect("a time")[..16].to_owned();
            (minute, dimensions.iter().map(|name| text(edit, name)).collect())
        })
        .collect();
    assert_eq!(rollup.stats().facts, facts.len() as u64);

    // Edits, letters and editors of each country, by people.
    let mut expected: BTreeMap<Option<String>, (i64, i64, i64, BTreeSet<String>)> = BTreeMap::new();
    for edit in edits.iter().filter(|edit| text(edit, "isRobot").as_deref() == Some("false")) {
        let group =
            expected.entry(text(edit, "countryName")).or_insert((0, 0, i64::MIN, BTreeSet::new()));
        group.0 += 1;
        group.1 += edit["added"].as_i64().unwrap_or(0);
        group.2 = group.2.max(edit["delta"].as_i64().unwrap_or(i64::MIN));
        group.3.extend(text(edit, "user"));
    }
    for threads in [1, 2] {
        let query = Query::from_json(
            r#"{"queryType": "groupBy", "dimensions": ["countryName"], "granularity": "all",
            "filter": {"type": "selector", "dimension": "isRobot", "value": "false"},
            "aggregations": [
                {"type": "longSum", "name": "edits", "fieldName": "count"},
                {"type": "longSum", "name": "added", "fieldName": "added"},
                {"type": "longMax", "name": "largest", "fieldName": "largest"},
                {"type": "distinct", "name": "users", "fieldName": "users"}],
            "intervals": ["2015-09-12/P1D"]}"#,
        );
        let answer = rollup.query(&query.expect("a query").threads(threads)).expect("an answer");
        assert_eq!(answer.rows.len(), expected.len());
        for (row, (country, (edits, added, largest, users))) in answer.rows.iter().zip(&expected) {
            let country = country.clone().map_or(Value::Null, Value::from);
            let exact = [Value::Long(*edits), Value::Long(*added), Value::Long(*largest)];
            assert_eq!((&row[1], &row[2..5]), (&country, &exact[..]));
            let found = row[5].to_long().ok().flatten().expect("a number");
            // Exact up to 256, then within four standard errors of 1.6 %.
            let error = if users.len() <= 256 { 0.0 } else { 4.0 * 0.01625 * users.len() as f64 };
            assert!((found - users.len() as i64).abs() as f64 <= error, "{country}: {found}");
        }
    }
}
