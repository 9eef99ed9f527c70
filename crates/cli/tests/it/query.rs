//! `sapwood query`: rows of files, rolled up, and asked.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{flight_rows, flights_path, sapwood, stdout_of};

const SCHEMA: &str = r#"{
    "timestampSpec": {"column": "time_hour"},
    "dimensionsSpec": {"dimensions": ["carrier", "origin"]},
    "metricsSpec": [{"type": "count", "name": "flights"},
                    {"type": "longSum", "name": "miles", "fieldName": "distance"}],
    "granularitySpec": {"queryGranularity": "day"}
}"#;

const QUERY: &str = r#"{
    "queryType": "groupBy", "dimensions": ["carrier"], "granularity": "all",
    "filter": {"type": "selector", "dimension": "origin", "value": "JFK"},
    "aggregations": [{"type": "longSum", "name": "n", "fieldName": "flights"},
                     {"type": "longSum", "name": "miles", "fieldName": "miles"}],
    "intervals": ["2013-01-01/P1Y"]
}"#;

#[test]
fn a_file_is_rolled_up_and_asked() {
    let (header, rows) = flight_rows();
    let index = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let [carrier, origin, time, miles] = ["carrier", "origin", "time_hour", "distance"].map(index);
    let mut expected: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for row in rows.iter().filter(|row| &row[origin] == "JFK" && row[time].starts_with("2013")) {
        let entry = expected.entry(row[carrier].to_owned()).or_default();
        entry.0 += 1;
        entry.1 += row[miles].parse::<i64>().expect("a number");
    }
    let path = flights_path();
    let path = path.to_str().expect("a path in words");
    let out = stdout_of(&["query", "--schema", SCHEMA, QUERY, path, "--json", "-q"]);
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    let found: BTreeMap<String, (i64, i64)> = answer
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| {
            let event = &row["event"];
            let number = |name: &str| event[name].as_i64().expect("a number");
            let carrier = event["carrier"].as_str().expect("a text").to_owned();
            (carrier, (number("n"), number("miles")))
        })
        .collect();
    assert_eq!(found, expected);

    let csv = stdout_of(&["query", "--schema", SCHEMA, QUERY, path, "--csv", "--threads", "2"]);
    let (first, figures) = expected.first_key_value().expect("flights");
    let line = format!("2013-01-01T00:00:00.000Z,{first},{},{}\n", figures.0, figures.1);
    assert!(csv.starts_with(&format!("timestamp,carrier,n,miles\n{line}")), "{csv}");
}

#[test]
fn documents_are_files_too_and_bad_rows_are_told() {
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("words").to_owned();
    fs::write(path("schema.json"), SCHEMA).expect("a file");
    fs::write(
        path("query.json"),
        QUERY
            .replace("\"selector\"", "\"not\", \"field\": {\"type\": \"selector\"")
            .replace("\"JFK\"}", "\"JFK\"}}"),
    )
    .expect("a file");
    let lines = "{\"time_hour\": \"2013-01-01\", \"carrier\": \"A\", \"distance\": \"far\", \"origin\": \"X\"}\n\
                 nonsense\n\
                 {\"carrier\": \"A\"}\n";
    fs::write(path("rows.jsonl"), lines).expect("a file");
    let (schema, query, rows) = (path("schema.json"), path("query.json"), path("rows.jsonl"));
    let args = ["query", "--schema", &schema, &query, &rows];
    let output = sapwood(&args).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    for wanted in [
        "1 row rolled up into 1 fact",
        "lines or values that are no rows: 1",
        "rows.jsonl:2: no JSON object",
        "rows without a time that can be read, left out: 1",
        "row 2, time_hour: ",
        "rows with a value that cannot be read, taken as null: 1",
        "row 1, distance: `far` is no number",
    ] {
        assert!(stderr.contains(wanted), "{wanted}: {stderr}");
    }
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("2013-01-01T00:00:00.000Z"), "{stdout}");
    sapwood(&[&args[..], &["--strict"]].concat()).assert().code(1);
}

#[test]
fn what_cannot_be_is_told() {
    for (schema, query, file, code, why) in [
        ("gone.json", QUERY, "-", 2, "gone.json is neither a JSON object nor a file"),
        (r#"{"timestampSpecs": {}}"#, QUERY, "-", 1, "`timestampSpecs` is not known"),
        (SCHEMA, r#"{"queryType": "sql"}"#, "-", 1, "`queryType` is `sql`"),
        (SCHEMA, QUERY, "gone.csv", 1, "gone.csv cannot be read"),
    ] {
        let output = sapwood(&["query", "--schema", schema, query, file, "--format", "jsonl"])
            .output()
            .expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(why), "{why}: {stderr}");
    }
}
