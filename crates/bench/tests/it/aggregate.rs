//! `sapwood-bench aggregate`.

use std::collections::BTreeSet;

use clap::Parser;
use serde_json::Value;

use crate::{check_line, lines, texts};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    aggregate: sapwood_bench::aggregate::Args,
}

fn aggregate(flags: &[&str]) -> Result<String, sapwood_bench::Error> {
    let command = Command::try_parse_from([&["aggregate"], flags].concat())?;
    let mut printed = Vec::new();
    sapwood_bench::aggregate::run_to(&command.aggregate, &mut printed)?;
    Ok(String::from_utf8(printed)?)
}

#[test]
fn a_smoke_run_prints_a_line_for_every_figure() {
    let lines = lines(&aggregate(&["--smoke", "--json", "--threads", "1,2"]).expect("it runs"));
    lines.iter().for_each(check_line);
    assert_eq!(texts(&lines, "bench"), BTreeSet::from(["aggregate"]));
    let of = |engine: &str, workload: &str| {
        let of = |line: &&Value| line["engine"] == engine && line["workload"] == workload;
        lines.iter().filter(of).collect::<Vec<_>>()
    };
    let all = ["everything", "range of 100 %", "range of 10 %", "range of 0.5 %"];
    let lists = ["list of 10 %", "list of 0.5 %"];
    let all_lists = ["list of 100 %", "list of 10 %", "list of 0.5 %"];
    for (engine, workloads) in [
        ("sapwood-look-up", [&all[1..], &all_lists].concat()),
        ("sapwood-walk", [&all[..], &lists].concat()),
        ("sapwood-log", [&all[..], &lists].concat()),
        ("sapwood-planner", [&all[..], &lists].concat()),
        ("sapwood-ordered-look-up", all_lists.to_vec()),
        ("sapwood-ordered-range", [&all[..], &lists].concat()),
        ("sapwood-ordered-planner", lists.to_vec()),
        ("floor-records", all.to_vec()),
        ("floor-column", vec!["everything"]),
        ("floor-look-up", [&all[1..], &all_lists].concat()),
    ] {
        for workload in workloads {
            // Two sizes, two thread counts.
            assert_eq!(of(engine, workload).len(), 4, "{engine}, {workload}");
        }
    }
    for (engine, pick) in [
        ("sapwood-walk", "everything"),
        ("sapwood-log", "everything"),
        ("floor-records", "everything"),
        ("sapwood-look-up", "range of 10 %"),
        ("sapwood-ordered-range", "range of 10 %"),
        ("sapwood-ordered-look-up", "list of 10 %"),
        ("floor-look-up", "list of 10 %"),
    ] {
        assert_eq!(of(engine, &format!("disaggregate over {pick}")).len(), 4, "{engine}, {pick}");
    }
    let log = &of("sapwood-log", "everything")[0];
    assert!(log["share_of_floor"]["median"].as_f64() > Some(0.0), "{log}");
    assert!(log["times_ramcloud"].as_f64() > Some(0.0), "{log}");
    for planned in of("sapwood-planner", "list of 0.5 %") {
        assert_eq!(planned["executor"], "look-up", "{planned}");
    }
    for (executor, sums) in [
        ("log", "everything"),
        ("log-moment", "everything"),
        ("walk", "everything"),
        ("look-up", "range of 100 %"),
    ] {
        let engine = format!("sapwood-{executor}");
        for company in ["no writer", "a writer"] {
            assert_eq!(of(&engine, &format!("{sums}, {company}")).len(), 2, "{engine}");
        }
        let writes = of("sapwood-writer", &format!("writes beside {executor}"));
        assert_eq!(writes.len(), 2, "{executor}");
    }
    assert_eq!(of("sapwood-ordered-writer", "writes beside range").len(), 2);
    let bytes = log["bytes_per_entry"].as_f64();
    assert!(bytes > Some(24.0), "a record of 24 bytes takes {bytes:?}");
}

#[test]
fn tables_name_ways_bars_and_the_command() {
    let flags = ["--objects", "5000", "--runs", "2", "--threads", "1"];
    let engines = "sapwood-look-up,sapwood-walk,sapwood-log,sapwood-planner,sapwood-ordered-range,\
                   sapwood-ordered-look-up,floor-records,floor-look-up";
    let chosen = ["--engines", engines];
    let printed = aggregate(&[&flags[..], &chosen].concat()).expect("it runs");
    for text in [
        "5000 objects of 8+8 B",
        "  hash table: ",
        "sapwood-planner: look-up",
        "  ordered table: ",
        "sapwood-log, everything, of floor-records",
        "sapwood-walk, everything, of floor-look-up, list of 10 %",
        "sapwood-look-up, list of 10 %, of floor-look-up",
        "sapwood-ordered-range, range of 100 %, of floor-records, everything",
        "sapwood-ordered-range, range of 0.5 %, of floor-records, everything",
        "sapwood-ordered-look-up, list of 100 %, of floor-look-up",
        "sapwood-ordered-look-up, list of 0.5 %, of floor-look-up",
        "sapwood-planner, list of 10 %, of the best: sapwood-",
        "Totals spread back over the selected objects",
        "sapwood-log, disaggregate over everything, of floor-records",
        "sapwood-look-up, disaggregate over list of 10 %, of floor-look-up",
        "a writer beside",
        "pass --objects 10000000 to judge them",
        "Repeat with: ",
    ] {
        assert!(printed.contains(text), "{text} is missing in:\n{printed}");
    }
    let few = ["--engines", "sapwood-log,floor-records", "--part", "sums"];
    let printed = aggregate(&[&flags[..], &few].concat()).expect("it runs");
    assert!(!printed.contains("sapwood-ordered"), "it was not asked for:\n{printed}");
    for text in ["Tarantool", "of 25000 objects/ms", "of 400000 objects/ms"] {
        assert!(!printed.contains(text), "a rate of another machine is a bar:\n{printed}");
    }
}

#[test]
fn what_cannot_run_is_explained() {
    for (flags, message) in [
        (&["--engines", "redis"][..], "no engine is called redis: choose from sapwood-look-up, "),
        (&["--objects", "10"], "--objects"),
        (&["--objects", "500000000"], "choose fewer with --objects, or fewer tables"),
        (&["--threads", "0"], "at least 1"),
        (&["--runs", "0"], "at least 1"),
    ] {
        let error = aggregate(flags).expect_err("it cannot run").to_string();
        assert!(error.contains(message), "{flags:?} answers {error:?}");
    }
}
