//! `sapwood-bench rollup`.

use std::collections::BTreeSet;

use sapwood_bench::Error;

use crate::{Command, check_line, check_refused, check_texts, lines, texts};

fn rollup(flags: &[&str]) -> Result<String, Error> {
    // Of its own: tests of one process run at once.
    let folder = tempfile::tempdir()?;
    let dir = folder.path().to_str().ok_or("a path of texts")?;
    let args = Command::args(&[flags, &["--dir", dir]].concat())?;
    let mut printed = Vec::new();
    sapwood_bench::rollup::run_to(&args, &mut printed)?;
    Ok(String::from_utf8(printed)?)
}

/// Peers in other programs are measured by hand alone: they need a JDK, Maven, Python and a
/// network.
#[test]
fn a_smoke_run_prints_a_line_for_every_figure() {
    eprintln!(
        "passed over: druid-onheap, duckdb, datafusion; `sapwood-bench rollup --smoke --druid --frames` has them"
    );
    let lines = lines(&rollup(&["--smoke", "--json", "--threads", "1,2"]).expect("it runs"));
    lines.iter().for_each(check_line);
    assert_eq!(texts(&lines, "bench"), BTreeSet::from(["rollup"]));
    assert_eq!(texts(&lines, "engine"), BTreeSet::from(["hash-map", "sapwood-rollup"]));
    // The synthetic stream at three granularities, and the flights.
    const SETS: usize = 4;
    for (engine, questions, sizes) in [
        // One thread asks the map, and live facts alone.
        ("hash-map", 5, 1),
        // By one thread and two, live facts and segments; live facts are trimmed.
        ("sapwood-rollup", 5 * 2 * 2, 3),
    ] {
        let count = |unit: &str| {
            lines.iter().filter(|line| line["engine"] == engine && line["unit"] == unit).count()
        };
        assert_eq!(
            [count("rows/s"), count("questions/s"), count("bytes/fact")],
            // Columns and JSON lines, by one thread and two.
            [SETS * 2 * 2, SETS * questions, SETS * sizes],
            "{engine}"
        );
    }
}

#[test]
fn the_tables_name_engines_targets_and_the_command() {
    let flags = ["--rows", "5000", "--runs", "1", "--granularity", "hour", "--threads", "1,2"];
    let printed = rollup(&[&flags[..], &["--sets", "synthetic"]].concat()).expect("it runs");
    let wanted = [
        "5000 entries, synthetic",
        "ingest, hour",
        "json, hour",
        "group-by, hour",
        "group-by of files, hour",
        "timeseries, hour",
        "top-n of files, hour",
        "sapwood-rollup: ingest, hour against druid-onheap as measured before",
        "sapwood-rollup: ingest, hour against 1 thread",
        "sapwood-rollup: ingest, hour against hash-map",
        "this run has 5000 entries",
        "Repeat with: ",
    ];
    check_texts(&printed, &wanted, &["all:", "flights", " hit", " miss"]);
}

#[test]
fn edits_with_nulls_and_truth_values_are_read_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("edits.json");
    let edit = |time: &str, city: &str, added: i64| {
        format!(
            r##"{{"time":"2015-09-12T{time}Z","channel":"#fr.wikipedia","cityName":{city},"countryName":null,"isRobot":false,"namespace":"Main","added":{added},"delta":-1,"comment":"\u00e9"}}"##
        )
    };
    let edits = [
        edit("00:46:58.771", "null", 36),
        edit("00:47:00.496", "null", 1),
        edit("01:02:00.000", r#""Lyon""#, 5),
    ];
    std::fs::write(&file, edits.join("\n")).expect("a file");
    let path = file.to_str().expect("a path of texts");
    let flags = ["--json", "--runs", "1", "--threads", "1", "--sets", "wikiticker"];
    let lines = lines(&rollup(&[&flags[..], &["--wikiticker", path]].concat()).expect("it runs"));
    lines.iter().for_each(check_line);
    assert_eq!(texts(&lines, "engine"), BTreeSet::from(["hash-map", "sapwood-rollup"]));
    assert!(texts(&lines, "workload").contains("json, wikiticker"));
    assert!(lines.iter().all(|line| line["entries"] == 3), "{lines:?}");

    std::fs::write(&file, "{\"time\":\"yesterday\"}\n").expect("a file");
    let error = rollup(&[&flags[..], &["--wikiticker", path]].concat()).expect_err("no time");
    assert!(error.to_string().contains("line 1 is no edit"), "{error}");
}

#[test]
fn flags_that_cannot_be_are_refused() {
    check_refused(
        rollup,
        &[
            (&["--engines", "pinot"], "no engine is called pinot"),
            (&["--engines", "druid-onheap"], "add --druid"),
            (&["--engines", "duckdb"], "add --frames"),
            (&["--sets", "wikiticker"], "say with --wikiticker FILE"),
            (&["--rows", "0"], "choose 1 to "),
            (&["--threads", "0"], "at least 1"),
        ],
    );
}
