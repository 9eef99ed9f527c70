//! Figures of rows, against plain work on the bundled file, in every kind of table.

use std::collections::BTreeMap;
use std::fs;

use sapwood::{Db, HashTableOptions};
use serde_json::Value;
use tempfile::TempDir;

use crate::{flight_rows, flights_path, sapwood, stdout_of};

const KEY: &str = "carrier,flight,month,day,sched_dep_time";

fn rows_of(args: &[&str]) -> Vec<Value> {
    let out = stdout_of(args);
    out.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

/// Flights, departures, minutes of delay and the greatest, of each carrier.
fn expected() -> BTreeMap<String, (u64, u64, i64, i64)> {
    let (header, rows) = flight_rows();
    let column = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let (carrier, delay) = (column("carrier"), column("dep_delay"));
    let mut carriers = BTreeMap::new();
    for row in &rows {
        let figures = carriers.entry(row[carrier].to_owned()).or_insert((0, 0, 0, i64::MIN));
        figures.0 += 1;
        if let Ok(delay) = row[delay].parse::<i64>() {
            figures.1 += 1;
            figures.2 += delay;
            figures.3 = figures.3.max(delay);
        }
    }
    carriers
}

/// A directory whose table has the rows of `rows.csv` as text, as earlier versions kept them.
fn kept_as_text(directory: &TempDir, key: &str) -> String {
    let path = |name| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let kept = path("kept");
    sapwood(&["import", &kept, "rows", &path("rows.csv"), "--key", key, "-q"]).assert().success();
    kept
}

#[test]
fn figures_are_those_of_the_rows_in_every_table_and_by_every_executor() {
    let path = flights_path();
    let path = path.to_str().expect("UTF-8");
    let directory = TempDir::new().expect("a directory for the test");
    let kept = directory.path().join("kept");
    let kept = kept.to_str().expect("UTF-8");
    sapwood(&["load", path, "--key", KEY, "--engine", "hash", "--dir", kept, "-q"])
        .assert()
        .success();
    let expected = expected();
    let ask = ["--by", "carrier", "--json", "-q", "--select"];
    let select = "count, count(dep_delay) as left, sum(dep_delay) as minutes, max(dep_delay)";
    for rows in [
        &["aggregate", path, "--key", KEY][..],
        &["aggregate", path, "--key", KEY, "--engine", "hash", "--threads", "3"],
        &["aggregate", kept, "--executor", "walk"],
        &["aggregate", kept, "--executor", "log", "--threads", "2"],
    ] {
        let found = rows_of(&[rows, &ask, &[select]].concat());
        assert_eq!(found.len(), expected.len());
        for (found, (carrier, (flights, left, minutes, worst))) in found.iter().zip(&expected) {
            let expected = serde_json::json!({
                "carrier": carrier,
                "count": flights,
                "left": left,
                "minutes": minutes,
                "max(dep_delay)": worst,
            });
            assert_eq!(*found, expected, "{rows:?}");
        }
    }
}

#[test]
fn keys_come_from_a_file_or_standard_input() {
    let path = flights_path();
    let path = path.to_str().expect("UTF-8");
    let keys = "carrier,flight,month,day,sched_dep_time\nUA,1545,1,1,515\nUA,1545,1,1,516\n";
    let ask = ["--key", KEY, "--keys", "-", "--json", "--select", "count, sum(distance) as miles"];
    let asked = [&["aggregate", path, "-q"], &ask[..]].concat();
    let output = sapwood(&asked).write_stdin(keys).assert().success();
    let output = output.get_output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"count\":1,\"miles\":1400}\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "warning: 1 key of --keys without a row\n");
    for (keys, says) in [
        ("UA,1545\n", "-, line 1: 2 values, the key has 5 columns: carrier:text,flight:i64,"),
        ("UA,1545,1,1,515\nUA,x,1,1,515\n", "-, line 2: key column `flight`: `x` is no i64"),
    ] {
        let output = sapwood(&asked).write_stdin(keys).assert().code(1);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.starts_with(&format!("error: {says}")), "{stderr}");
    }
    let both = ["aggregate", "-", "--format", "csv", "--key", "k", "--keys", "-"];
    let output = sapwood(&both).write_stdin("k\n1\n").assert().code(2);
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains("put one of them into a file"), "{stderr}");
}

#[test]
fn tables_that_programs_made_are_read_with_a_layout() {
    let directory = TempDir::new().expect("a directory for the test");
    let kept = directory.path().join("counters");
    let db = Db::open(&kept).expect("a database");
    let counters = db.create_hash_table("counters", HashTableOptions::default());
    let keys = (0..900_u16).map(|id| [(id % 3) as u8, (id >> 8) as u8, id as u8]);
    let deltas: Vec<([u8; 3], i64)> = keys.map(|key| (key, i64::from(key[2]))).collect();
    counters.expect("a table").add_many(&deltas).expect("room");
    db.close().expect("kept");
    let kept = kept.to_str().expect("UTF-8");
    let table = ["aggregate", kept, "--table", "counters", "-q", "--json"];

    let output = sapwood(&table).assert().code(2);
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains("declares no fields: say with --layout how"), "{stderr}");

    // A count of each kind of counter, which the first byte of the key names.
    let layout = ["--layout", "kind:key.u8, n:i64le", "--by", "kind", "--select", "count, sum(n)"];
    let found = rows_of(&[&table, &layout[..]].concat());
    assert_eq!(found.len(), 3, "{found:?}");
    let counted: u64 = found.iter().filter_map(|row| row["count"].as_u64()).sum();
    let all = rows_of(&[&table, &["--layout", "n:i64le"][..]].concat());
    assert_eq!(all, [serde_json::json!({ "count": counted })]);

    // Fields that a program declares are known without one.
    let path = directory.path().join("hits");
    let db = Db::open(&path).expect("a database");
    let options = HashTableOptions::default().fields("hits:i64le".parse().expect("fields"));
    let hits = db.create_hash_table("hits", options).expect("a table");
    hits.add_many(&[("/oaks", 3), ("/elms", 4)]).expect("room");
    drop(hits);
    db.close().expect("kept");
    let path = path.to_str().expect("UTF-8");
    let declared = ["aggregate", path, "--table", "hits", "-q", "--json", "--select", "sum(hits)"];
    assert_eq!(rows_of(&declared), [serde_json::json!({ "sum(hits)": 7 })]);

    // Keys that programs made are one value each: their bytes.
    let until = |from: &str| {
        let range = ["--layout", "n:i64le", "--from", from];
        rows_of(&[&table, &range[..]].concat())
    };
    assert_eq!(until(r"\x00"), all);
    assert_eq!(until(r"\xFF\xFF"), [serde_json::json!({ "count": 0 })]);
    let range = ["--layout", "n:i64le", "--from", "x,y"];
    let output = sapwood(&[&table, &range[..]].concat()).assert().code(2);
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains("2 values given, the key has 1 column"), "{stderr}");
}

#[test]
fn what_was_measured_is_told_as_json() {
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path().join("rows.csv");
    fs::write(&path, "k,n\n1,5\n2,\n3,x\n").expect("a file for the test");
    let kept = kept_as_text(&directory, "k:int");
    let ask = ["--select", "median(n)", "--layout", "n:cell(1).decimal?''", "--mismatches", "skip"];
    let told = ["--explain", "--json", "-q", "--threads", "1"];
    let found = rows_of(&[&["aggregate", &kept], &ask[..], &told].concat());
    assert_eq!(found[0].to_string(), r#"{"median(n)":5.0}"#);
    let explain = &found[1]["explain"];
    assert_eq!(
        (&explain["executor"], &explain["forced"], &explain["threads"]),
        (&"range".into(), &false.into(), &1.into())
    );
    assert_eq!(explain["candidates"].as_array().map(Vec::len), Some(1));
    assert_eq!(explain["measured"]["visited"], 3);
    assert_eq!(explain["layout"], r#"n:cell(1).decimal?"", k:key.tuple(i64)[0]"#);
    let answer = &explain["answer"];
    let counts = ["selected", "matched", "mismatched", "missing", "absent_keys"];
    assert_eq!(counts.map(|name| answer[name].as_u64()), [3, 2, 1, 1, 0].map(Some));
    assert_eq!(answer["columns"][0]["accuracy"], "rounded once");
    assert_eq!(answer["columns"][0]["at_most"], Value::Null);
}

#[test]
fn every_row_of_a_file_counts_without_a_key() {
    let path = flights_path();
    let path = path.to_str().expect("UTF-8");
    let (header, rows) = flight_rows();
    let column = header.iter().position(|column| column == "distance").expect("a column");
    let miles: i64 = rows.iter().map(|row| row[column].parse::<i64>().expect("a number")).sum();
    let expected = serde_json::json!({ "count": rows.len(), "sum(distance)": miles });
    for more in [&[][..], &["--engine", "hash"], &["--threads", "2"]] {
        let ask = ["aggregate", path, "-q", "--json", "--select", "count, sum(distance)"];
        assert_eq!(
            rows_of(&[&ask[..], more].concat()),
            std::slice::from_ref(&expected),
            "{more:?}"
        );
    }

    // Rows that are equal, and rows that a key would drop.
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path().join("rows.csv");
    fs::write(&path, "k,n\n1,5\n1,5\n1,7\n2,x\n").expect("a file for the test");
    let path = path.to_str().expect("UTF-8");
    let ask = ["aggregate", path, "--json", "--by", "k"];
    let output = sapwood(&ask).assert().success();
    let output = output.get_output();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "{\"k\":1,\"count\":3}\n{\"k\":2,\"count\":1}\n"
    );
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with(&format!("{path}: 4 rows, ")), "{stderr}");
    let output = sapwood(&[&ask[..], &["--key", "k", "-q"]].concat()).assert().success();
    let output = output.get_output();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "{\"k\":1,\"count\":1}\n{\"k\":2,\"count\":1}\n"
    );
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("warning: 2 rows dropped: a later row has the same key; "), "{stderr}");
    assert!(stderr.contains("no --key or --duplicates all would keep them all"), "{stderr}");

    // A row that does not fit is named by its line.
    let ask = ["aggregate", path, "-q", "--select", "sum(n)", "--types", "n:i64", "--json"];
    let output = sapwood(&ask).assert().success();
    let output = output.get_output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"sum(n)\":17}\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("line 5: malformed: `x` in column `n` is no i64\n"), "{stderr}");
    // And one that has not what is asked for, by its number.
    let ask = ["--na", "x", "--missing", "refuse"];
    let ask = [&["aggregate", path, "-q", "--select", "sum(n)"], &ask[..]].concat();
    let output = sapwood(&ask).assert().code(1);
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains("the first by key, row 4: field `n` is missing"), "{stderr}");
    assert!(stderr.contains("say with --types or --na how"), "{stderr}");
}

#[test]
fn na_is_missing_in_every_column_of_a_file_that_has_it_in_numbers() {
    let path = flights_path();
    let path = path.to_str().expect("UTF-8");
    let figures = ["--select", "count, count(tailnum), distinct(tailnum), count(dep_delay)"];
    let ask = |more: &[&str]| {
        rows_of(&[&["aggregate", path, "-q", "--json"], &figures[..], more].concat())
    };
    let expected = |flights: u64, planes: u64| {
        serde_json::json!({
            "count": 336_776,
            "count(tailnum)": flights,
            "distinct(tailnum)": planes,
            "count(dep_delay)": 328_521,
        })
    };
    assert_eq!(ask(&[]), [expected(334_264, 4_043)]);
    assert_eq!(ask(&["--na", "NA"]), [expected(334_264, 4_043)]);
    // But of the key, whose texts are what they are.
    let key = ["--key", "tailnum,time_hour,flight,origin", "--show-errors", "0"];
    let by_key = ask(&key);
    assert_eq!(by_key, ask(&[&key[..], &["--na", "NA"]].concat()));
    assert_eq!(by_key[0]["distinct(tailnum)"], 4_044);
    // What is said wins.
    let told = ["--select", "count(tailnum)", "--na", "-"];
    let found = rows_of(&[&["aggregate", path, "-q", "--json"], &told[..]].concat());
    assert_eq!(found, [serde_json::json!({ "count(tailnum)": 336_776 })]);

    // Beside the empty text.
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path().join("rows.csv");
    fs::write(&path, "n,text\n1,NA\nNA,\n2,x\n").expect("a file for the test");
    let path = path.to_str().expect("UTF-8");
    let ask = ["aggregate", path, "--json", "--select", "count(n), count(text)"];
    let output = sapwood(&ask).assert().success();
    let output = output.get_output();
    let figures = String::from_utf8_lossy(&output.stdout);
    assert_eq!(figures, "{\"count(n)\":2,\"count(text)\":1}\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let note = "rows.csv: NA stands for a missing value in all columns\n";
    assert!(stderr.contains(note), "{stderr}");
}

#[test]
fn a_column_of_text_that_has_empty_values_keeps_to_those() {
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path().join("rows.csv");
    fs::write(&path, "n,text\n1,NA\nNA,\n2,x\n").expect("a file for the test");
    let kept = kept_as_text(&directory, "n:str");
    let note = "text is missing where it is empty, and NA is a value of it: --na NA changes that";
    let out = stdout_of(&["aggregate", &kept, "-q", "--select", "count(n), count(text)"]);
    assert!(out.contains(note), "{out}");
    let out = stdout_of(&["aggregate", &kept, "-q", "--select", "count(n)"]);
    assert!(!out.contains(note), "{out}");
    let told = ["--select", "count(n), count(text)", "--json", "--na"];
    let figures = |na| stdout_of(&[&["aggregate", &kept, "-q"], &told[..], &[na]].concat());
    assert_eq!(figures("NA"), "{\"count(n)\":2,\"count(text)\":2}\n");
    assert_eq!(figures("x"), "{\"count(n)\":3,\"count(text)\":2}\n");
}

#[test]
fn medians_are_those_of_the_definition() {
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path().join("rows.csv");
    fs::write(&path, "n\n177\n116\n").expect("a file for the test");
    let path = path.to_str().expect("UTF-8");
    let found = rows_of(&["aggregate", path, "-q", "--json", "--select", "median(n)"]);
    assert_eq!(found, [serde_json::json!({ "median(n)": 146.5 })]);
    let flights = flights_path();
    let flights = flights.to_str().expect("UTF-8");
    let ask =
        ["aggregate", flights, "-q", "--select", "median(arr_delay), quantile(distance, 0.5)"];
    let out = stdout_of(&ask);
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines, [vec!["median(arr_delay)", "quantile(distance,", "0.5)"], vec!["-5", "872"]]);
}

#[test]
fn numbers_that_were_taken_for_text_are_told() {
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path().join("rows.csv");
    fs::write(&path, "k,n,m\n1,10,.5\n2,9,+4\n3,NaN,3\n").expect("a file for the test");
    let kept = kept_as_text(&directory, "k:int");
    let ask = |select: &str| {
        let output =
            sapwood(&["aggregate", &kept, "-q", "--select", select, "--json"]).assert().success();
        let output = output.get_output();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let (out, stderr) = ask("max(n)");
    assert_eq!(out, "{\"max(n)\":\"NaN\"}\n");
    assert!(
        stderr
            .starts_with("warning: `n` is read as text, and sorts so: it has `NaN` beside numbers"),
        "{stderr}"
    );
    assert_eq!(ask("sum(m), max(m)"), ("{\"sum(m)\":7.5,\"max(m)\":4}\n".into(), String::new()));
    assert_eq!(ask("count").1, "");
    let told = ["--layout", "n:cell(1).decimal", "--mismatches", "skip", "--select", "max(n)"];
    let output = sapwood(&[&["aggregate", &kept, "-q"], &told[..]].concat()).assert().success();
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(!stderr.contains("is read as text"), "{stderr}");
    let refused = [&["aggregate", &kept, "-q", "--select", "max(n)"], &told[..2]].concat();
    let output = sapwood(&refused).assert().code(1);
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains("the first by key, 3: field `n` is not a decimal number"), "{stderr}");
    assert!(stderr.contains("say with --layout or --na how"), "{stderr}");
}

/// A file whose end is missing is read in its first rows before the names of columns are looked at.
#[test]
fn names_are_checked_before_a_file_is_read() {
    use std::io::Write;
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path().join("cut.csv.gz");
    let mut text = String::from("carrier,delay\n");
    (0..200_000).for_each(|row| text += &format!("C{},{}\n", row % 7, row * 7919 % 1000));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).expect("a vector takes everything");
    let packed = packed.finish().expect("a vector takes everything");
    fs::write(&path, &packed[..packed.len() - 100]).expect("a file for the test");
    let path = path.to_str().expect("UTF-8");
    let run = |args: &[&str]| {
        let output = sapwood(&[&["aggregate", path][..], args].concat()).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&["--by", "carier"]);
    assert!(code == Some(2) && said.contains("did you mean `carrier`?"), "{said}");
    let (code, said) = run(&["--by", "carrier"]);
    assert!(code == Some(1) && said.contains("is the file whole?"), "{said}");
}

#[test]
fn columns_that_are_not_asked_for_change_nothing() {
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path().join("rows.csv");
    fs::write(&path, "a,b,c\n1,x,2\n3,y,\nNA,z,5\n").expect("a file for the test");
    let path = path.to_str().expect("UTF-8");
    let run = |args: &[&str]| rows_of(&[&["aggregate", path, "--json", "-q"][..], args].concat());
    assert_eq!(run(&[])[0]["count"], 3);
    assert_eq!(run(&["--select", "sum(a) as s"])[0]["s"], 4);
    assert_eq!(run(&["--select", "sum(c) as s", "--where", "b = \"x\""])[0]["s"], 2);
    assert_eq!(run(&["--select", "sum(c) as s", "--key", "b"])[0]["s"], 7);
}
