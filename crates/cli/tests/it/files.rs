//! Loading, looking up and scanning small files: forms, packing, duplicates, order.

use std::fs;
use std::io::Write;
use std::path::Path;

use tempfile::TempDir;

use crate::{sapwood, stdout_of};

/// A directory with one file, and the path of the file as an argument.
fn file(name: &str, bytes: impl AsRef<[u8]>) -> (TempDir, String) {
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path().join(name);
    fs::write(&path, bytes).expect("a file for the test");
    let path = path.to_str().expect("UTF-8").to_owned();
    (directory, path)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

const ROWS: &str = "name,n,x\nb,10,0.5\na,9,-1.5\nb,-2,2\n";

#[test]
fn packing_does_not_matter() {
    let expected = "name,n,x\na,9,-1.5\nb,-2,2\nb,10,0.5\n";
    let packed: [(&str, Vec<u8>); 4] = [
        ("rows.csv", ROWS.into()),
        ("rows.csv.gz", gzip(ROWS.as_bytes())),
        ("rows.csv.zst", zstd::encode_all(ROWS.as_bytes(), 1).expect("a vector takes everything")),
        // The bytes decide, not the name.
        ("rows.csv", gzip(ROWS.as_bytes())),
    ];
    for (name, bytes) in packed {
        let (_directory, path) = file(name, bytes);
        assert_eq!(stdout_of(&["scan", &path, "--key", "name,n"]), expected, "{name}");
    }
    let from_stdin = sapwood(&["scan", "-", "--format", "csv", "--key", "name,n"])
        .write_stdin(gzip(ROWS.as_bytes()))
        .assert()
        .success();
    assert_eq!(String::from_utf8_lossy(&from_stdin.get_output().stdout), expected);
}

#[test]
fn numbers_sort_as_numbers_and_text_as_text() {
    let (_directory, path) = file("rows.csv", "n,x\n10,1e3\n9,-1.5\n-2,20\n100,3\n");
    let first_column = |key: &str| -> Vec<String> {
        let out = stdout_of(&["scan", &path, "--key", key]);
        let rows = out.lines().skip(1);
        rows.map(|row| row.split(',').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(first_column("n"), ["-2", "9", "10", "100"]);
    assert_eq!(first_column("n:str"), ["-2", "10", "100", "9"]);
    assert_eq!(first_column("n:float"), ["-2", "9", "10", "100"]);
    assert_eq!(first_column("x"), ["9", "100", "-2", "10"]);
}

#[test]
fn bounds_prefixes_and_limits() {
    let (_directory, path) = file("rows.csv", "k,n\na,1\nab,2\nb,3\nb,4\nc,5\n");
    let scanned = |args: &[&str]| -> String {
        let mut all = vec!["scan", &path, "--key", "k,n", "-q"];
        all.extend(args);
        let out = stdout_of(&all);
        let rows = out.lines().skip(1);
        rows.map(|row| row.rsplit(',').next().unwrap_or_default()).collect()
    };
    for (args, expected) in [
        (&[][..], "12345"),
        (&["--reverse"], "54321"),
        (&["--from", "b"], "345"),
        (&["--from", "b,4"], "45"),
        (&["--to", "b"], "12"),
        (&["--to", "b,4"], "123"),
        (&["--from", "ab", "--to", "c", "--reverse"], "432"),
        (&["--from", "c", "--to", "a"], ""),
        (&["--from", "b", "--to", "b"], ""),
        (&["--prefix", "a"], "12"),
        (&["--prefix", "a,"], "1"),
        (&["--prefix", "b,4"], "4"),
        (&["--prefix", "b,"], "34"),
        (&["--prefix", "x"], ""),
        (&["--prefix", "", "--limit", "2"], "12"),
        (&["--limit", "2", "--reverse"], "54"),
        (&["--limit", "0"], ""),
        (&["--limit", "99"], "12345"),
    ] {
        assert_eq!(scanned(args), expected, "{args:?}");
    }
}

#[test]
fn negative_values_are_values() {
    let (_directory, path) = file("rows.csv", "n\n-5\n3\n-10\n");
    assert_eq!(stdout_of(&["get", &path, "--key", "n", "-q", "-5"]), "n  -5\n");
    assert_eq!(stdout_of(&["get", &path, "--key", "n", "-q", "--", "-5"]), "n  -5\n");
    assert_eq!(stdout_of(&["scan", &path, "--key", "n", "-q", "--from", "-5"]), "n\n-5\n3\n");
}

#[test]
fn repeated_keys_are_counted_and_kept_as_asked() {
    let (_directory, path) = file("rows.csv", "k,v\na,1\nb,2\na,3\na,4\n");
    for (which, rows, entries) in [
        ("first", "k,v\na,1\nb,2\n", 2),
        ("last", "k,v\na,4\nb,2\n", 2),
        ("all", "k,v\na,1\na,3\na,4\nb,2\n", 4),
    ] {
        assert_eq!(stdout_of(&["scan", &path, "--key", "k", "--duplicates", which]), rows);
        let report = stdout_of(&["load", &path, "--key", "k", "--duplicates", which, "--json"]);
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!((&report["rows"], &report["duplicates"]), (&4.into(), &2.into()), "{which}");
        assert_eq!(report["entries"], entries, "{which}");
        // Repeated keys are no fault where all are kept.
        let strict =
            sapwood(&["load", &path, "--key", "k", "--duplicates", which, "--strict"]).assert();
        strict.code(if which == "all" { 0 } else { 1 });
    }
    // The number of the row, behind the columns of the key, is part of its layout.
    let grouped = ["--duplicates", "all", "--by", "k", "--json", "-q"];
    let grouped = stdout_of(&[&["aggregate", &path, "--key", "k"], &grouped[..]].concat());
    assert_eq!(grouped, "{\"k\":\"a\",\"count\":3}\n{\"k\":\"b\",\"count\":1}\n");
    let all = stdout_of(&["get", &path, "--key", "k", "--duplicates", "all", "-q", "a"]);
    assert_eq!(all, "k  a\nv  1\n\nk  a\nv  3\n\nk  a\nv  4\n");
}

#[test]
fn json_lines_come_back_as_they_are() {
    let lines = "{\"id\": 10, \"tags\": [1, 2], \"note\":\"x,y\"}\n{\"id\":9,\"big\":18446744073709551615}\n";
    let (_directory, path) = file("rows.jsonl", lines);
    let expected = "{\"id\":9,\"big\":18446744073709551615}\n{\"id\": 10, \"tags\": [1, 2], \"note\":\"x,y\"}\n";
    assert_eq!(stdout_of(&["scan", &path, "--key", "id"]), expected);
    assert_eq!(stdout_of(&["scan", &path, "--key", "id", "--json"]), expected);
    assert_eq!(
        stdout_of(&["get", &path, "--key", "id", "-q", "10"]),
        "id    10\ntags  [1,2]\nnote  x,y\n"
    );
    // A string is text, even if it looks like a number.
    let (_directory, path) = file("text.jsonl", "{\"id\":\"9\"}\n{\"id\":\"10\"}\n");
    assert_eq!(stdout_of(&["scan", &path, "--key", "id"]), "{\"id\":\"10\"}\n{\"id\":\"9\"}\n");
    assert_eq!(stdout_of(&["scan", &path, "--key", "id:int"]), "{\"id\":\"9\"}\n{\"id\":\"10\"}\n");
}

#[test]
fn csv_rows_come_back_whole() {
    let rows = "k,text\n1,\"a,b\"\n2,\"say \"\"x\"\"\"\n3,\"two\nlines\"\n4,\n5,é\n";
    let (_directory, path) = file("rows.csv", rows);
    assert_eq!(stdout_of(&["scan", &path, "--key", "k"]), rows);
    let json = stdout_of(&["scan", &path, "--key", "k", "--json", "--prefix", "3"]);
    assert_eq!(json, "{\"k\":\"3\",\"text\":\"two\\nlines\"}\n");
}

#[test]
fn quoted_values_may_hold_commas() {
    let (_directory, path) = file("rows.csv", "k,v\n\"a,b\",1\na,2\n");
    assert_eq!(
        stdout_of(&["scan", &path, "--key", "k", "--prefix", "\"a,b\","]),
        "k,v\n\"a,b\",1\n"
    );
}

#[test]
fn manual_pages_and_completions() {
    let directory = TempDir::new().expect("a directory for the test");
    let target = directory.path().join("new/man1");
    sapwood(&["man", target.to_str().expect("UTF-8")]).assert().success();
    for page in ["sapwood.1", "sapwood-scan.1", "sapwood-sample.1"] {
        let text = fs::read_to_string(target.join(page)).expect("a page");
        assert!(text.contains(".SH NAME"), "{page}");
    }
    assert!(stdout_of(&["man"]).contains("sapwood"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(stdout_of(&["completions", shell]).contains("sapwood"), "{shell}");
    }
    let file_in_the_way = directory.path().join("file");
    fs::write(&file_in_the_way, "").expect("a file for the test");
    let refused = sapwood(&["man", file_in_the_way.to_str().expect("UTF-8")]).assert().code(1);
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(message.contains("cannot be written"), "{message}");
    assert!(Path::new(&file_in_the_way).is_file());
}
