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
    // Its number alone names one of them.
    let one = stdout_of(&["get", &path, "--key", "k", "--duplicates", "all", "-q", "a", "3"]);
    assert_eq!(one, "k  a\nv  3\n");
}

#[test]
fn members_of_json_lines_are_columns() {
    let lines = "{\"id\": 10, \"tags\": [1, 2], \"note\":\"x,y\"}\n{\"id\":9,\"big\":18446744073709551615}\n";
    let (_directory, path) = file("rows.jsonl", lines);
    assert_eq!(
        stdout_of(&["scan", &path, "--key", "id"]),
        "id,tags,note,big\n9,,,18446744073709551615\n10,\"[1, 2]\",\"x,y\",\n"
    );
    assert_eq!(
        stdout_of(&["scan", &path, "--key", "id", "--json"]),
        "{\"id\":9,\"tags\":null,\"note\":null,\"big\":18446744073709551615}\n\
         {\"id\":10,\"tags\":[1,2],\"note\":\"x,y\",\"big\":null}\n"
    );
    assert_eq!(
        stdout_of(&["get", &path, "--key", "id", "-q", "10"]),
        "id    10\ntags  [1, 2]\nnote  x,y\nbig   null\n"
    );
    // A string is text, even if it looks like a number.
    let (_directory, path) = file("text.jsonl", "{\"id\":\"9\"}\n{\"id\":\"10\"}\n");
    let scan = |key| stdout_of(&["scan", &path, "--key", key, "--json"]);
    assert_eq!(scan("id"), "{\"id\":\"10\"}\n{\"id\":\"9\"}\n");
    assert_eq!(scan("id:int"), "{\"id\":9}\n{\"id\":10}\n");
}

#[test]
fn csv_rows_come_back_whole() {
    let rows = "k,text\n1,\"a,b\"\n2,\"say \"\"x\"\"\"\n3,\"two\nlines\"\n4,\n5,é\n";
    let (_directory, path) = file("rows.csv", rows);
    assert_eq!(stdout_of(&["scan", &path, "--key", "k"]), rows);
    let json = stdout_of(&["scan", &path, "--key", "k", "--json", "--prefix", "3"]);
    assert_eq!(json, "{\"k\":3,\"text\":\"two\\nlines\"}\n");
}

#[test]
fn quoted_values_may_hold_commas() {
    let (_directory, path) = file("rows.csv", "k,v\n\"a,b\",1\na,2\n");
    assert_eq!(
        stdout_of(&["scan", &path, "--key", "k", "--prefix", "\"a,b\","]),
        "k,v\n\"a,b\",1\n"
    );
}

/// The same rows in every form, one of which has a missing value.
fn forms(directory: &Path) -> Vec<String> {
    let records = ["name,n,x", "b,10,0.5", "a,9,", "b,-2,2"];
    let objects = [
        r#"{"name": "b", "n": 10, "x": 0.5}"#,
        r#"{"name": "a", "n": 9, "x": null}"#,
        r#"{"name": "b", "n": -2, "x": 2}"#,
    ];
    let apart = |sign: &str| records.join("\n").replace(',', sign).into_bytes();
    let files: [(&str, Vec<u8>); 9] = [
        ("comma.csv", apart(",")),
        ("semicolon.csv", apart(";")),
        ("tab.tsv", apart("\t")),
        ("bar", apart("|")),
        ("packed.csv.zst", zstd::encode_all(&apart(";")[..], 1).expect("memory")),
        ("lines.jsonl", objects.join("\n").into_bytes()),
        ("array.json", format!("[{}]", objects.join(",\n")).into_bytes()),
        ("array", format!("[\n{}\n]\n", objects.join(",")).into_bytes()),
        ("packed.json.gz", gzip(format!("[{}]", objects.join(",")).as_bytes())),
    ];
    let path = |name: &str| directory.join(name).to_str().expect("UTF-8").to_owned();
    let mut paths = Vec::new();
    for (name, bytes) in files {
        fs::write(directory.join(name), bytes).expect("a file for the test");
        paths.push(path(name));
    }
    if cfg!(feature = "columnar") {
        let database = path("database");
        stdout_of(&["load", &path("comma.csv"), "--key", "name,n", "--dir", &database, "-q"]);
        for name in ["rows.parquet", "rows.arrow"] {
            stdout_of(&["export", &database, "rows", "--to", &path(name), "-q"]);
            paths.push(path(name));
        }
    }
    paths
}

#[test]
fn every_form_of_a_file_is_read_alike() {
    let directory = TempDir::new().expect("a directory for the test");
    for path in forms(directory.path()) {
        let asked = |command: &str, more: &[&str]| {
            let key: &[&str] = if more.contains(&"--by") { &[] } else { &["--key", "name,n"] };
            stdout_of(&[&[command, &path, "-q"], key, more].concat())
        };
        assert_eq!(asked("scan", &[]), "name,n,x\na,9,\nb,-2,2\nb,10,0.5\n", "{path}");
        assert_eq!(
            asked("scan", &["--from", "b,0", "--json"]),
            "{\"name\":\"b\",\"n\":10,\"x\":0.5}\n",
            "{path}"
        );
        assert_eq!(asked("get", &["b", "10"]), "name  b\nn     10\nx     0.5\n", "{path}");
        let missing = "{\"name\":\"a\",\"n\":9,\"x\":null}\n";
        assert_eq!(asked("get", &["a", "9", "--json"]), missing, "{path}");
        let stats = asked("stats", &["--json"]);
        let stats: serde_json::Value = serde_json::from_str(&stats).expect("JSON");
        assert_eq!(stats["entries"], 3, "{path}");
        let figures = ["--select", "count, sum(n), count(x), max(x)", "--json"];
        let expected = "{\"count\":3,\"sum(n)\":17,\"count(x)\":2,\"max(x)\":2.0}\n";
        assert_eq!(asked("aggregate", &figures), expected, "{path}");
        // Without a key too.
        let by = ["--by", "name", "--select", "count", "--json"];
        let expected = "{\"name\":\"a\",\"count\":1}\n{\"name\":\"b\",\"count\":2}\n";
        assert_eq!(asked("aggregate", &by), expected, "{path}");
    }
}

#[test]
fn every_command_takes_delimiters_types_and_missing_values() {
    let (directory, path) = file("rows.txt", "k:n\n1:5\n2:none\n3:x\n");
    let text = ["--delimiter", ":", "--na", "none", "--types", "n:f64", "-q"];
    let asked = |command: &[&str], more: &[&str]| {
        let args = [&command[..1], &[&path, "--key", "k"], &command[1..], &text, more].concat();
        let output = sapwood(&args).assert().success();
        let output = output.get_output();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            stderr,
            "line 4: malformed: `x` in column `n` is no f64\nwarning: 1 malformed row left out\n",
            "{command:?}"
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(asked(&["scan"], &[]), "k,n\n1,5\n2,\n");
    assert_eq!(asked(&["get", "2"], &[]), "k  2\nn  null\n");
    assert!(asked(&["stats"], &["--json"]).contains("\"entries\":2,"));
    let figures = asked(&["aggregate"], &["--select", "count, sum(n), count(n)", "--json"]);
    assert_eq!(figures, "{\"count\":2,\"sum(n)\":5.0,\"count(n)\":1}\n");
    // Without them, all are text.
    let text = stdout_of(&["scan", &path, "--key", "k", "--delimiter", ":", "-q"]);
    assert_eq!(text, "k,n\n1,5\n2,none\n3,x\n");

    // Rows of a directory have been read.
    let kept = directory.path().join("kept");
    let kept = kept.to_str().expect("UTF-8");
    stdout_of(&["load", &path, "--key", "k", "--delimiter", ":", "--dir", kept, "-q"]);
    for option in [["--delimiter", ":"], ["--na", "none"], ["--types", "n:f64"]] {
        for command in
            [&["scan", kept][..], &["get", kept, "1"], &["stats", kept], &["aggregate", kept]]
        {
            let refused = sapwood(&[command, &option].concat()).assert().code(2);
            let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
            let says = format!("whose rows were loaded before: {} is of `sapwood load`", option[0]);
            assert!(stderr.contains(&says), "{command:?} {option:?}: {stderr}");
        }
    }
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
