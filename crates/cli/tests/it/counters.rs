//! The counters that survive a kill: the sample checks itself, this checks that it did, and its
//! last answers against the rows.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{flight_rows, sapwood, stdout_of};

fn answers(args: &[&str]) -> BTreeMap<String, Value> {
    let out = stdout_of(&[&["sample", "counters", "--json", "-q"], args].concat());
    let each = out.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).expect("an object a line");
        assert_eq!(answer["sample"], "counters");
        assert!(answer["verified"].is_string());
        (answer["question"].as_str().expect("a name").to_owned(), answer["answer"].clone())
    });
    each.collect()
}

#[test]
fn counters_survive_a_kill_and_are_counted_on() {
    let directory = TempDir::new().expect("a directory for the test");
    let kept = directory.path().join("counters");
    let answers = answers(&["--threads", "3", "--dir", kept.to_str().expect("UTF-8")]);
    let number = |question: &str, name: &str| {
        answers[question][name].as_u64().unwrap_or_else(|| panic!("{question}: {name}"))
    };

    assert_eq!(number("kill", "signal"), 9);
    assert_eq!(answers["kill"]["checkpoints"].as_array().map(Vec::len), Some(2));
    let covered = number("recover", "flights");
    assert!((336_776 / 2..336_776).contains(&covered), "{covered}");
    assert_eq!(number("recover", "checkpoint"), 2);
    assert_eq!(answers["recover"]["batches_by_thread"].as_array().map(Vec::len), Some(3));
    assert!(number("recover", "counters") < number("resume", "counters"));
    assert_eq!(number("resume", "flights"), 336_776);
    // More than the memory, on the disk for good.
    assert!(number("resume", "reserved_bytes") <= number("kill", "memory_budget"));
    assert!(number("resume", "file_bytes") > number("kill", "memory_budget"));
    assert!(number("resume", "head") > number("resume", "begin"));
    assert!(kept.join("tables/counters").is_dir());

    let (header, rows) = flight_rows();
    let column = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let (origin, dest, left) = (column("origin"), column("dest"), column("dep_time"));
    let mut routes: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows.iter().filter(|row| &row[left] != "NA") {
        *routes.entry(format!("{} to {}", &row[origin], &row[dest])).or_default() += 1;
    }
    let busiest = routes.iter().max_by_key(|(_, flights)| **flights).expect("routes");
    let found = &answers["busiest"]["route"][0];
    assert_eq!(
        (&found["who"], &found["count"]),
        (&busiest.0.as_str().into(), &(*busiest.1).into())
    );
}

#[test]
fn people_are_told_what_happened() {
    let output = sapwood(&["sample", "counters", "--threads", "1"]).assert().success();
    let out = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    assert_eq!(out.matches("verified: ").count(), 4, "{out}");
    assert!(out.contains("then it was killed (signal 9), still counting"), "{out}");
    assert!(!out.contains('\u{1b}'), "no colours when nobody looks");
}

#[test]
fn a_directory_with_files_is_refused() {
    let directory = TempDir::new().expect("a directory for the test");
    fs::write(directory.path().join("precious"), "bytes").expect("a file for the test");
    let path = directory.path().to_str().expect("UTF-8");
    let refused = sapwood(&["sample", "counters", "--dir", path]).assert().code(2);
    let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(stderr.contains("is there and not an empty directory"), "{stderr}");
    let refused = sapwood(&["sample", "flights", "--dir", path]).assert().code(2);
    let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(stderr.contains("which live in memory alone"), "{stderr}");
}
