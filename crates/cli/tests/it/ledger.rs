//! The ledger that survives kills: the sample checks itself, this checks that it did, and what it
//! left against the rows.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{flight_rows, sapwood, stdout_of};

/// The answers of the sample, by name; its temporary files go into a folder.
fn answers(temporary: &TempDir, args: &[&str]) -> BTreeMap<String, Value> {
    let out = sapwood(&[&["sample", "ledger", "--json", "-q"], args].concat())
        .env("TMPDIR", temporary.path())
        .assert()
        .success();
    let out = String::from_utf8(out.get_output().stdout.clone()).expect("UTF-8");
    let each = out.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).expect("an object a line");
        assert_eq!(answer["sample"], "ledger");
        assert!(answer["verified"].is_string());
        (answer["question"].as_str().expect("a name").to_owned(), answer["answer"].clone())
    });
    each.collect()
}

#[test]
fn a_ledger_survives_kills_to_the_row() {
    let directory = TempDir::new().expect("a directory for the test");
    let temporary = TempDir::new().expect("a directory for the test");
    let kept = directory.path().join("ledger");
    let kept = kept.to_str().expect("UTF-8");
    let answers = answers(&temporary, &["--seed", "7", "--dir", kept]);

    assert_eq!(answers["kills"]["seed"], 7);
    let kills = answers["kills"]["kills"].as_array().expect("a list");
    assert_eq!(kills.len(), 8);
    let number = |kill: &Value, name: &str| kill[name].as_u64().expect("a number");
    let booked: Vec<u64> = kills.iter().map(|kill| number(kill, "booked")).collect();
    assert!(booked.is_sorted(), "{booked:?}");
    assert_eq!(booked[7], 336_776);
    assert!(booked[6] < 336_776, "the last process had something to book");
    let whiles: Vec<&Value> = kills.iter().map(|kill| &kill["while"]).collect();
    assert_eq!(whiles.iter().filter(|moment| **moment == "booking").count(), 6, "{whiles:?}");
    assert_eq!(whiles.iter().filter(|moment| **moment == "opening").count(), 1, "{whiles:?}");
    assert!(whiles[7].is_null());
    for kill in kills {
        assert_eq!(number(kill, "different"), 0);
        assert!(kill["said"].as_u64().unwrap_or(0) <= number(kill, "booked"), "{kill}");
    }
    assert!(number(&kills[7], "compared") > 4000);

    // What is there for another program, against the rows.
    let (header, rows) = flight_rows();
    let column = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let (plane, origin, dest) = (column("tailnum"), column("origin"), column("dest"));
    let delay = column("dep_delay");
    let mut expected: [BTreeMap<String, (i64, i64, i64)>; 3] = Default::default();
    for row in &rows {
        let plane = if &row[plane] == "NA" { "" } else { &row[plane] };
        let route = format!("{}{}", &row[origin], &row[dest]);
        let minutes: Option<i64> = row[delay].parse().ok();
        for (book, key) in [(0, plane), (1, &row[origin]), (1, &row[dest]), (2, &route)] {
            let account = expected[book].entry(key.to_owned()).or_default();
            account.0 += 1;
            account.1 += i64::from(minutes.is_none());
            account.2 += minutes.unwrap_or(0);
        }
    }
    for (table, expected) in ["aircraft", "airport", "route"].iter().zip(&expected) {
        let select = "sum(flights) as flights, sum(cancelled) as cancelled, sum(minutes) as minutes, count as n";
        let args = ["aggregate", kept, "--table", table, "-q", "--json", "--select", select];
        let found: Value = serde_json::from_str(&stdout_of(&args)).expect("one object");
        let sum = |of: fn(&(i64, i64, i64)) -> i64| expected.values().map(of).sum::<i64>();
        assert_eq!(found["n"], expected.len(), "{table}");
        assert_eq!(found["flights"], sum(|account| account.0), "{table}");
        assert_eq!(found["cancelled"], sum(|account| account.1), "{table}");
        assert_eq!(found["minutes"], sum(|account| account.2), "{table}");
        let most = expected.values().map(|account| account.2).max();
        assert_eq!(answers["totals"][table]["latest"]["minutes"].as_i64(), most, "{table}");
    }

    let left = fs::read_dir(temporary.path()).expect("there").count();
    assert_eq!(left, 0, "nothing is left behind");
}

#[test]
fn people_are_told_what_happened_and_nothing_is_left_behind() {
    let temporary = TempDir::new().expect("a directory for the test");
    let output = sapwood(&["sample", "ledger"]).env("TMPDIR", temporary.path()).assert().success();
    let out = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    assert_eq!(out.matches("verified: ").count(), 2, "{out}");
    assert_eq!(out.matches("\n     booking ").count(), 6, "{out}");
    assert_eq!(out.matches("\n     opening ").count(), 1, "{out}");
    assert!(out.contains("sapwood sample ledger --seed "), "{out}");
    assert!(!out.contains('\u{1b}'), "no colours when nobody looks");
    assert_eq!(fs::read_dir(temporary.path()).expect("there").count(), 0);
}

#[test]
fn what_does_not_fit_is_refused() {
    let directory = TempDir::new().expect("a directory for the test");
    fs::write(directory.path().join("precious"), "bytes").expect("a file for the test");
    let path = directory.path().to_str().expect("UTF-8");
    for (args, says) in [
        (&["sample", "ledger", "--dir", path][..], "is there and not an empty directory"),
        (&["sample", "ledger", "--threads", "2"], "by one thread"),
        (&["sample", "counters", "--seed", "2"], "--seed is of `sapwood sample ledger`"),
    ] {
        let refused = sapwood(args).assert().code(2);
        let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(stderr.contains(says), "{stderr}");
    }
}
