//! The examples in the help texts run as they stand.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::{flight_rows, stdout_of};

const SCHEMA: &[u8] = br#"{
    "timestampSpec": {"column": "time_hour"},
    "dimensionsSpec": {"dimensions": ["carrier"]},
    "metricsSpec": [{"type": "count", "name": "flights"}]
}"#;

const QUERY: &[u8] = br#"{
    "queryType": "topN", "dimension": "carrier", "metric": "flights", "threshold": 3,
    "aggregations": [{"type": "longSum", "name": "flights", "fieldName": "flights"}]
}"#;

/// The files that the examples name, small.
fn write_files(directory: &Path) {
    let (header, rows) = flight_rows();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&header).expect("a vector takes everything");
    // The first day, and some of every other.
    for row in rows.iter().take(842).chain(rows.iter().step_by(50)) {
        writer.write_record(row).expect("a vector takes everything");
    }
    let flights = writer.into_inner().expect("a vector takes everything");
    let packed = zstd::encode_all(&flights[..], 1).expect("a vector takes everything");
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("a vector takes everything");
        encoder.finish().expect("a vector takes everything")
    };
    for (name, bytes) in [
        ("flights.csv.zst", packed),
        ("events.jsonl", b"{\"user\":\"a\",\"time\":1}\n{\"user\":\"a\",\"time\":1}\n".to_vec()),
        ("rows.csv.gz", gzip(b"id\n1\n2\n")),
        ("deltas.csv", b"delta\n-5\n5\n".to_vec()),
        ("schema.json", SCHEMA.to_vec()),
        ("query.json", QUERY.to_vec()),
        ("pieces.csv", b"shop,pieces,euros\nnorth,3,0.5\n".to_vec()),
        ("hits.jsonl.gz", gzip(b"{\"key\":\"/\",\"value\":\"7\"}\n")),
    ] {
        fs::write(directory.join(name), bytes).expect("a file for the test");
    }
}

#[test]
fn examples_run() {
    let directory = TempDir::new().expect("a directory for the test");
    write_files(directory.path());
    let binary = assert_cmd::cargo::cargo_bin("sapwood");
    let path = std::env::join_paths(
        std::iter::once(binary.parent().expect("a directory").to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )
    .expect("no separator in a path");
    let mut ran = 0;
    for command in [
        "load",
        "get",
        "scan",
        "aggregate",
        "sql",
        "ingest",
        "query",
        "stats",
        "tables",
        "describe",
        "checkpoints",
        "put",
        "remove",
        "compact",
        "check",
        "inspect",
        "repair",
        "export",
        "import",
        "backup",
        "backups",
        "restore",
    ] {
        let help = stdout_of(&["help", command]);
        let (_, examples) = help.split_once("Examples:\n").expect("every command has examples");
        for example in examples.lines().take_while(|line| line.starts_with("  ")) {
            let output = Command::new("sh")
                .args(["-c", example])
                .current_dir(&directory)
                .env("PATH", &path)
                .output()
                .expect("sh runs");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{example}\n{stderr}");
            assert!(!output.stdout.is_empty(), "{example} prints nothing\n{stderr}");
            ran += 1;
        }
    }
    assert_eq!(ran, 68, "as many examples as there are in the help texts");
}
