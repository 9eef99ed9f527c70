//! `sapwood-bench aggregate`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{check_line, check_refused, check_texts, lines, texts};

bench!(aggregate);

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
    let wanted = [
        "5000 entries, 8+8 B",
        "; hash table: ",
        "executor look-up, share of floor",
        "; ordered table: ",
        "sapwood-log: everything against floor-records",
        "sapwood-walk: everything against floor-look-up, list of 10 %",
        "sapwood-look-up: list of 10 % against floor-look-up",
        "sapwood-ordered-range: range of 100 % against floor-records, everything",
        "sapwood-ordered-range: range of 0.5 % against floor-records, everything",
        "sapwood-ordered-look-up: list of 100 % against floor-look-up",
        "sapwood-ordered-look-up: list of 0.5 % against floor-look-up",
        "sapwood-planner: list of 10 % against sapwood-",
        "sapwood-log: disaggregate over everything against floor-records",
        "sapwood-look-up: disaggregate over list of 10 % against floor-look-up",
        "everything, a writer, objects/ms",
        "pass --objects 10000000 to judge them",
        "Repeat with: ",
    ];
    check_texts(&printed, &wanted, &[]);
    let few = ["--engines", "sapwood-log,floor-records", "--part", "sums"];
    let printed = aggregate(&[&flags[..], &few].concat()).expect("it runs");
    // A rate of another machine is no bar, and no other table was asked for.
    let unwanted = ["sapwood-ordered", "Tarantool", "of 25000 objects", "of 400000 objects"];
    check_texts(&printed, &[], &unwanted);
}

#[test]
fn what_cannot_run_is_explained() {
    check_refused(
        aggregate,
        &[
            (&["--engines", "redis"], "no engine is called redis: choose from sapwood-look-up, "),
            (&["--objects", "10"], "--entries"),
            (&["--objects", "500000000"], "choose fewer with --objects, or fewer tables"),
            (&["--threads", "0"], "at least 1"),
            (&["--runs", "0"], "at least 1"),
        ],
    );
}
