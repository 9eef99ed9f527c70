//! `sapwood ingest`: rows of files into a roll-up table, each once, and `sapwood query` about it.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{flights_path, sapwood, stdout_of};

const SCHEMA: &str = r#"{
    "timestampSpec": {"column": "time"},
    "dimensionsSpec": {"dimensions": ["page"]},
    "metricsSpec": [{"type": "count", "name": "edits"}],
    "granularitySpec": {"queryGranularity": "hour"}
}"#;

const QUERY: &str = r#"{
    "queryType": "groupBy", "dataSource": "edits", "dimensions": ["page"], "granularity": "all",
    "aggregations": [{"type": "longSum", "name": "n", "fieldName": "edits"}],
    "intervals": ["2013-01-01/P1Y"]
}"#;

fn words(path: &Path) -> &str {
    path.to_str().expect("a path in words")
}

fn pages(dir: &str) -> String {
    stdout_of(&["query", QUERY, dir, "--csv"])
}

#[test]
fn a_file_that_grows_is_taken_once() {
    let folder = TempDir::new().expect("a folder");
    let (dir, csv) = (folder.path().join("events"), folder.path().join("edits.csv"));
    let (dir, csv) = (words(&dir), words(&csv));
    fs::write(csv, "time,page\n2013-01-01,Oak\n2013-01-01,Oak\nshort\n").expect("written");
    let ingest = |more: &[&str]| -> Value {
        let args = ["ingest", csv, "--dir", dir, "--table", "edits", "--json", "-q"];
        serde_json::from_str(&stdout_of(&[&args[..], more].concat())).expect("JSON")
    };
    let told = ingest(&["--schema", SCHEMA]);
    assert_eq!(
        (&told["processed"], &told["unparseable"], &told["skipped"]),
        (&2.into(), &1.into(), &0.into())
    );
    assert_eq!(pages(dir), "timestamp,page,n\n2013-01-01T00:00:00.000Z,Oak,2\n");
    let again = ingest(&[]);
    assert_eq!((&again["processed"], &again["skipped"]), (&0.into(), &3.into()));
    fs::write(csv, "time,page\n2013-01-01,Oak\n2013-01-01,Oak\nshort\n2013-01-01,Elm\n")
        .expect("written");
    assert_eq!(ingest(&["--seal"])["processed"], 1);
    assert_eq!(ingest(&["--schema", SCHEMA])["processed"], 0);
    let rows = "2013-01-01T00:00:00.000Z,Elm,1\n2013-01-01T00:00:00.000Z,Oak,2\n";
    assert_eq!(pages(dir), format!("timestamp,page,n\n{rows}"));

    // JSON lines, whose last one has no end, beside it.
    let lines = folder.path().join("edits.jsonl");
    fs::write(&lines, "{\"time\": \"2013-01-02\", \"page\": \"Oak\"}\n{\"time\": \"2013-01-02\"}")
        .expect("written");
    for _ in 0..2 {
        let args = ["ingest", words(&lines), "--dir", dir, "--table", "edits", "-q"];
        let said = stdout_of(&args);
        assert!(said.starts_with("table edits: "), "{said}");
    }
    let rows = format!("2013-01-01T00:00:00.000Z,,1\n{}", rows.replace("Oak,2", "Oak,3"));
    assert_eq!(pages(dir), format!("timestamp,page,n\n{rows}"));
    let checked = stdout_of(&["check", dir]);
    assert!(checked.contains("edits"), "{checked}");

    // A byte that flips is found, and told with its file.
    let rollup = fs::read_dir(Path::new(dir).join("rollups")).expect("there").next().expect("one");
    let path = rollup.expect("there").path().join("segment-00000001");
    let mut bytes = fs::read(&path).expect("there");
    bytes[100] ^= 1;
    fs::write(&path, bytes).expect("written");
    let out = sapwood(&["check", dir]).output().expect("it runs");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(!out.status.success() && said.contains(words(&path)), "{said}");
    let refused = sapwood(&["query", QUERY, dir]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("corrupt at offset"));
}

/// Of facts that were written elsewhere.
const OF_FACTS: &str = r#"{
    "timestampSpec": {"column": "__time"},
    "dimensionsSpec": {"dimensions": ["page"]},
    "metricsSpec": [{"type": "longSum", "name": "edits", "fieldName": "edits"}],
    "granularitySpec": {"queryGranularity": "hour"}
}"#;

#[test]
fn rows_of_each_format_are_taken_once() {
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("words").to_owned();
    let ingest = |file: &str, dir: &str, schema: &str| -> Value {
        let args = ["ingest", file, "--dir", dir, "--table", "edits", "--schema", schema];
        serde_json::from_str(&stdout_of(&[&args[..], &["--json", "-q"]].concat())).expect("JSON")
    };
    let twice = |file: &str, schema: &str, rows: u64| {
        let dir = path(&format!("{}.dir", file.rsplit('/').next().expect("a name")));
        let first = ingest(file, &dir, schema);
        assert_eq!((&first["processed"], &first["skipped"]), (&rows.into(), &0.into()), "{file}");
        let again = ingest(file, &dir, schema);
        assert_eq!((&again["processed"], &again["skipped"]), (&0.into(), &rows.into()), "{file}");
        dir
    };
    let csv = path("edits.csv");
    let rows =
        (0..30_000).map(|row| format!("2013-01-01T{:02}:00:00Z,p{},{row}", row % 24, row % 7));
    fs::write(&csv, format!("time,page,n\n{}\n", rows.collect::<Vec<_>>().join("\n")))
        .expect("written");
    let expected = pages(&twice(&csv, SCHEMA, 30_000));
    assert_eq!(expected.lines().count(), 1 + 7);

    // Files of typed columns, as another command writes them.
    let table = path("table");
    stdout_of(&["load", &csv, "--key", "n:int", "--dir", &table, "-q"]);
    for name in ["edits.arrow", "edits.parquet"] {
        stdout_of(&["export", &table, "rows", "--to", &path(name), "-q"]);
        assert_eq!(pages(&twice(&path(name), SCHEMA, 30_000)), expected, "{name}");
    }

    // Facts, as files and as a stream.
    let dir = path("edits.csv.dir");
    let facts = path("facts");
    let told = stdout_of(&["export", &dir, "edits", "--to", &facts, "--json", "-q"]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!((&told["facts"], told["files"].as_array().map(Vec::len)), (&168.into(), Some(1)));
    let file = told["files"][0]["file"].as_str().expect("a name");
    assert_eq!(pages(&twice(file, OF_FACTS, 168)), expected);
    let again = ["export", &dir, "edits", "--to", &facts, "-q"];
    let refused = sapwood(&again).output().expect("it runs");
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.contains("stays as it is: name another folder, or give --overwrite"),
        "{refused}"
    );
    let said = stdout_of(&[&again[..], &["--overwrite"]].concat());
    assert!(said.contains("168 facts in 1 file"), "{said}");
    let scan = r#"{"queryType": "scan", "dataSource": "edits"}"#;
    let stream = sapwood(&["query", scan, &dir, "--arrow"]).output().expect("it runs");
    fs::write(path("facts.arrows"), &stream.stdout).expect("written");
    assert_eq!(pages(&twice(&path("facts.arrows"), OF_FACTS, 168)), expected);

    // MessagePack: a value that is no row counts, too.
    let mut bytes = Vec::new();
    for row in 0..30_000_u32 {
        let time = format!("2013-01-01T{:02}:00:00Z", row % 24);
        bytes.extend([&b"\x82\xa4time\xb4"[..], time.as_bytes(), b"\xa4page\xa2p"].concat());
        bytes.push(b'0' + (row % 7) as u8);
    }
    fs::write(path("edits.msgpack"), &bytes).expect("written");
    assert_eq!(pages(&twice(&path("edits.msgpack"), SCHEMA, 30_000)), expected);
    let grown = [&bytes[..], b"\x07", &bytes[..70]].concat();
    fs::write(path("edits.msgpack"), grown).expect("written");
    let told = ingest(&path("edits.msgpack"), &path("edits.msgpack.dir"), SCHEMA);
    assert_eq!((&told["processed"], &told["unparseable"]), (&2.into(), &1.into()), "{told}");
}

#[test]
fn flights_are_rolled_up_in_a_directory_as_in_memory() {
    let folder = TempDir::new().expect("a folder");
    let dir = folder.path().join("events");
    let schema = r#"{
        "timestampSpec": {"column": "time_hour"},
        "dimensionsSpec": {"dimensions": ["carrier", "origin"]},
        "metricsSpec": [{"type": "count", "name": "flights"},
                        {"type": "longSum", "name": "miles", "fieldName": "distance"}],
        "granularitySpec": {"queryGranularity": "day", "segmentGranularity": "month"}
    }"#;
    let query = r#"{
        "queryType": "groupBy", "dimensions": ["carrier", "origin"], "granularity": "month",
        "aggregations": [{"type": "longSum", "name": "n", "fieldName": "flights"},
                         {"type": "longSum", "name": "miles", "fieldName": "miles"}],
        "intervals": ["2013-01-01/P2Y"]
    }"#;
    let flights = flights_path();
    let flights = words(&flights);
    let in_memory = stdout_of(&["query", "--schema", schema, query, flights, "--csv"]);
    let args =
        ["ingest", flights, "--dir", words(&dir), "--table", "flights", "--schema", schema, "-q"];
    stdout_of(&args);
    assert_eq!(stdout_of(&["query", query, words(&dir), "--csv", "--threads", "2"]), in_memory);
    assert!(in_memory.lines().count() > 100);
}

/// Whatever moment a kill meets, while rows come in, are sealed, merged or done again from the log.
#[test]
fn rows_are_taken_once_by_processes_that_are_killed() {
    let folder = TempDir::new().expect("a folder");
    let dir = folder.path().join("events");
    let schema = r#"{
        "timestampSpec": {"column": "time_hour"},
        "dimensionsSpec": {"dimensions": ["carrier", "origin", "dest"]},
        "metricsSpec": [{"type": "count", "name": "flights"}],
        "granularitySpec": {"queryGranularity": "hour", "segmentGranularity": "month"},
        "limits": {"maxRowsInMemory": 20000}
    }"#;
    let flights = flights_path();
    let args = [
        "ingest",
        words(&flights),
        "--dir",
        words(&dir),
        "--table",
        "flights",
        "--schema",
        schema,
        "-q",
    ];
    for attempt in 0..6 {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("sapwood"));
        let null = std::process::Stdio::null;
        let mut child =
            command.args(args).stdout(null()).stderr(null()).spawn().expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(60 + attempt * 170));
        child.kill().expect("a process that is there, or has ended");
        child.wait().expect("it ends");
    }
    stdout_of(&args);
    let query = r#"{
        "queryType": "timeseries", "granularity": "all", "intervals": ["2013-01-01/P2Y"],
        "aggregations": [{"type": "longSum", "name": "n", "fieldName": "flights"}]
    }"#;
    assert_eq!(
        stdout_of(&["query", query, words(&dir), "--csv"]),
        "timestamp,n\n2013-01-01T00:00:00.000Z,336776\n"
    );
    let checked = stdout_of(&["check", words(&dir)]);
    assert!(!checked.contains("corrupt"), "{checked}");
}

#[test]
fn what_does_not_fit_is_told() {
    let folder = TempDir::new().expect("a folder");
    let (dir, csv) = (folder.path().join("events"), folder.path().join("edits.csv"));
    let (dir, csv) = (words(&dir), words(&csv));
    fs::write(csv, "time,page\n2013-01-01,Oak\n").expect("written");
    let refused = |args: &[&str], code: i32, says: &str| {
        let out = sapwood(args).output().expect("it runs");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(code) && said.contains(says), "{args:?}: {said}");
    };
    let ingest = ["ingest", csv, "--dir", dir, "--table", "edits"];
    refused(&ingest, 2, "give --schema");
    refused(&["query", QUERY, csv], 2, "--schema is needed");
    refused(
        &[&ingest[..], &["--schema", "{\"timestampSpecs\": {}}"]].concat(),
        1,
        "`timestampSpecs`",
    );
    stdout_of(&[&ingest[..], &["--schema", SCHEMA, "-q"]].concat());
    refused(&[&ingest[..], &["--schema", "{}"]].concat(), 1, "has another schema");
    refused(&["query", QUERY, dir, "--schema", SCHEMA], 2, "leave --schema out");
    refused(&["query", QUERY, dir, "--table", "others"], 1, "no table `others`");
    refused(&["ingest", "nothing.csv", "--dir", dir, "--table", "edits"], 1, "nothing.csv");
    refused(&["get", dir, "Oak", "--table", "edits"], 1, "roll-up");
    refused(
        &["ingest", "-", "--dir", dir, "--table", "edits"],
        2,
        "add --format csv, jsonl, msgpack",
    );
    let arrow = folder.path().join("edits.arrow");
    fs::write(&arrow, b"no stream").expect("written");
    refused(&["ingest", words(&arrow), "--dir", dir, "--table", "edits"], 1, "cannot be read");
    let facts = folder.path().join("facts.csv");
    for (more, says) in [
        (&[][..], "name their folder with --to"),
        (&["--to", words(&facts)], "this is the name of a file"),
        (&["--to", csv], "--to is a folder"),
        (&["--to", "-"], "--to is a folder"),
        (&["--format", "csv"], "leave --format out"),
        (&["--raw"], "--raw is for tables with keys"),
    ] {
        refused(&[&["export", dir, "edits"], more].concat(), 2, says);
    }
    assert!(!facts.exists());
}
