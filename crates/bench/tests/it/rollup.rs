//! `sapwood bench rollup`.

use std::collections::BTreeSet;

use clap::Parser;
use sapwood_bench::Error;

use crate::{check_line, lines, texts};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    rollup: sapwood_bench::rollup::Args,
}

fn rollup(flags: &[&str]) -> Result<String, Error> {
    let command = Command::try_parse_from([&["rollup"], flags].concat())?;
    let mut printed = Vec::new();
    sapwood_bench::rollup::run_to(&command.rollup, &mut printed)?;
    Ok(String::from_utf8(printed)?)
}

#[test]
fn a_smoke_run_prints_a_line_for_every_figure() {
    let lines = lines(&rollup(&["--smoke", "--json", "--threads", "1,2"]).expect("it runs"));
    lines.iter().for_each(check_line);
    assert_eq!(texts(&lines, "bench"), BTreeSet::from(["rollup"]));
    assert_eq!(texts(&lines, "engine"), BTreeSet::from(["hash-map", "sapwood-rollup"]));
    for engine in ["hash-map", "sapwood-rollup"] {
        let count = |unit: &str| {
            lines.iter().filter(|line| line["engine"] == engine && line["unit"] == unit).count()
        };
        // Two phases and two questions, at three granularities, by one thread and two.
        assert_eq!([count("rows/s"), count("objects/s"), count("bytes/fact")], [12, 12, 3]);
    }
}

#[test]
fn the_tables_name_engines_targets_and_the_command() {
    let flags = ["--rows", "5000", "--runs", "1", "--granularity", "hour", "--threads", "1,2"];
    let printed = rollup(&flags).expect("it runs");
    for wanted in [
        "ingest, hour",
        "json, hour",
        "group-by, hour",
        "timeseries, hour",
        "hour: rows/s against Druid as measured before",
        "hour: rows/s of two threads against one",
        "hour: bytes of a fact",
        "this run has 5000 rows",
        "Repeat with: ",
    ] {
        assert!(printed.contains(wanted), "{wanted}: {printed}");
    }
    assert!(!printed.contains("all:"), "{printed}");
}

#[test]
fn flags_that_cannot_be_are_refused() {
    for (flags, why) in [
        (["--engines", "pinot"], "no engine is called pinot"),
        (["--engines", "druid-onheap"], "add --druid"),
        (["--rows", "0"], "at least 1"),
        (["--threads", "0"], "at least 1"),
    ] {
        let error = rollup(&flags).expect_err("it cannot run").to_string();
        assert!(error.contains(why), "{error}");
    }
}
