//! The examples in the help texts run as they stand.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::{flight_rows, sapwood, stdout_of};

/// The files that the examples name, with fewer flights.
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
    fs::write(directory.join("flights.csv.zst"), packed).expect("a file for the test");
    let written = sapwood(&["sample", "files"]).current_dir(directory).assert().success();
    let told = String::from_utf8_lossy(&written.get_output().stdout).into_owned();
    assert!(told.starts_with("flights.csv.zst is there, and stays\n"), "{told}");
    assert_eq!(told.matches("is written").count(), 8, "{told}");
}

/// True of a word of a command that is the name of a file to read.
fn is_input(word: &str) -> bool {
    let name = word.trim_matches(|sign: char| !sign.is_ascii_alphanumeric());
    [".csv", ".zst", ".gz", ".jsonl", ".json"].iter().any(|ending| name.ends_with(ending))
}

/// Commands of README run where `sample files` has written their file.
#[test]
fn lines_of_readme_run() {
    let directory = TempDir::new().expect("a directory for the test");
    sapwood(&["sample", "files"]).current_dir(&directory).assert().success();
    let readme = include_str!("../../../../README.md");
    let (_, behind) = readme.split_once("On your own data, without code").expect("it is there");
    let (_, lines) = behind.split_once("```sh\n").expect("commands");
    let (lines, _) = lines.split_once("```").expect("their end");
    assert!(lines.lines().count() > 8 && lines.contains("stops.csv"), "{lines}");
    run_in(directory.path(), lines);
}

#[track_caller]
fn run_in(directory: &Path, lines: &str) {
    let binary = assert_cmd::cargo::cargo_bin("sapwood");
    let path = std::env::join_paths(
        std::iter::once(binary.parent().expect("a directory").to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )
    .expect("no separator in a path");
    for line in lines.lines() {
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(directory)
            .env("PATH", &path)
            .output()
            .expect("sh runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}\n{stderr}");
        assert!(!output.stdout.is_empty(), "{line} prints nothing\n{stderr}");
    }
}

#[test]
fn examples_run() {
    let directory = TempDir::new().expect("a directory for the test");
    write_files(directory.path());
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
            for input in example.split([' ', '\'']).filter(|word| is_input(word)) {
                let name = input.trim_matches('"');
                let is_output =
                    example.contains(&format!("to {name}")) || example.contains(" to '");
                let is_there = directory.path().join(name).exists();
                assert!(is_there || is_output, "{example}: {name} is nowhere");
            }
            run_in(directory.path(), example);
            ran += 1;
        }
    }
    assert_eq!(ran, 69, "as many examples as there are in the help texts");
}
