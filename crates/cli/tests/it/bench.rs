//! `sapwood bench` reaches the workloads, and its JSON has the fields that readers rely on.

use crate::{sapwood, stdout_of};

#[test]
fn the_smoke_size_prints_a_json_object_a_line() {
    // One engine and one workload: the others are the business of the bench's own tests.
    let args = ["--smoke", "--no-latencies", "--threads", "1", "--data", "generated"];
    let chosen = ["--engines", "sapwood", "--workloads", "get-zero-copy"];
    for json in [&["bench", "ordered", "--json"][..], &["--json", "bench", "ordered"]] {
        let out = stdout_of(&[json, &args, &chosen].concat());
        let mut workloads = Vec::new();
        for line in out.lines() {
            let object: serde_json::Value = serde_json::from_str(line).expect("an object a line");
            assert_eq!(
                (&object["bench"], &object["engine"]),
                (&"ordered".into(), &"sapwood".into())
            );
            for field in ["threads", "entries", "median", "min", "max", "runs", "bytes_per_entry"] {
                assert!(object[field].is_number(), "{field} in {line}");
            }
            workloads.push(object["workload"].as_str().expect("a name").to_owned());
        }
        assert!(workloads.contains(&"get-zero-copy".to_owned()), "{workloads:?}");
    }
}

#[test]
fn an_unknown_engine_is_answered_with_those_that_there_are() {
    let refused = sapwood(&["bench", "ordered", "--smoke", "--engines", "nope"]).assert().code(1);
    let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(
        stderr.starts_with("error: no engine is called nope: choose from sapwood, "),
        "{stderr}"
    );
}

#[test]
fn the_hash_bench_takes_its_flags() {
    let args = ["bench", "hash", "--smoke", "--json", "--part", "memory", "--threads", "1"];
    let chosen = ["--engines", "dashmap", "--workloads", "read", "--draw", "uniform"];
    let out = stdout_of(&[&args[..], &chosen, &["--no-latencies"]].concat());
    let workloads: Vec<String> = out
        .lines()
        .map(|line| {
            let object: serde_json::Value = serde_json::from_str(line).expect("an object a line");
            assert_eq!((&object["bench"], &object["engine"]), (&"hash".into(), &"dashmap".into()));
            object["workload"].as_str().expect("a name").to_owned()
        })
        .collect();
    assert_eq!(workloads, ["memory", "load", "read uniform"]);
}

#[test]
fn the_aggregate_bench_takes_its_flags() {
    let args = ["bench", "aggregate", "--smoke", "--json", "--objects", "2000", "--threads", "1"];
    let out = stdout_of(&[&args[..], &["--part", "sums", "--engines", "sapwood-log"]].concat());
    let workloads: Vec<String> = out
        .lines()
        .map(|line| {
            let object: serde_json::Value = serde_json::from_str(line).expect("an object a line");
            assert_eq!(
                (&object["bench"], &object["executor"]),
                (&"aggregate".into(), &"log".into())
            );
            object["workload"].as_str().expect("a name").to_owned()
        })
        .collect();
    assert_eq!(workloads.len(), 6, "{workloads:?}");
}

#[test]
fn the_bench_of_trees_takes_its_flags() {
    let args = ["bench", "trees", "--smoke", "--json", "--order", "random"];
    let chosen = ["--engines", "sapwood-btree", "--workloads", "get,iterate"];
    let out = stdout_of(&[&args[..], &chosen].concat());
    let timed: Vec<String> = out
        .lines()
        .filter_map(|line| {
            let object: serde_json::Value = serde_json::from_str(line).expect("an object a line");
            assert_eq!(
                (&object["bench"], &object["engine"]),
                (&"trees".into(), &"sapwood-btree".into())
            );
            let workload = object["workload"].as_str().expect("a name").to_owned();
            (object["unit"] == "ops/s").then_some(workload)
        })
        .collect();
    assert_eq!(timed, ["get random", "iterate random"]);
}

#[test]
fn the_bench_of_durability_takes_its_flags() {
    let args = ["bench", "durability", "--smoke", "--json", "--part", "levels", "--writers", "2"];
    let chosen = ["--engines", "sapwood-ordered", "--levels", "memory,sync", "--data", "small"];
    let out = stdout_of(&[&args[..], &chosen].concat());
    let timed: Vec<String> = out
        .lines()
        .filter_map(|line| {
            let object: serde_json::Value = serde_json::from_str(line).expect("an object a line");
            assert_eq!(
                (&object["bench"], &object["engine"]),
                (&"durability".into(), &"sapwood-ordered".into())
            );
            let workload = object["workload"].as_str().expect("a name").to_owned();
            (object["unit"] == "ops/s").then_some(workload)
        })
        .collect();
    assert_eq!(timed, ["put 8 B, memory", "put 8 B, sync"]);
}

#[test]
fn a_run_of_another_size_is_not_judged() {
    let args = ["bench", "ordered", "--smoke", "--no-latencies", "--threads", "1"];
    let chosen = ["--data", "generated", "--engines", "sapwood"];
    let out = stdout_of(&[&args[..], &chosen].concat());
    assert!(out.contains("pass --full to judge them"), "{out}");
    let words = || out.split_whitespace();
    assert!(!words().any(|word| word == "miss" || word == "hit"), "{out}");
    assert!(!out.contains(['|', '\u{2502}', '\u{250C}']), "tables are drawn without boxes: {out}");
}

#[test]
fn the_bench_of_statements_asks_processes_and_tables() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().to_str().expect("a folder in words");
    let out = stdout_of(&["bench", "sql", "--smoke", "--json", "--runs", "1", "--dir", path]);
    let lines = out.lines().map(|line| serde_json::from_str(line).expect("an object a line"));
    let lines: Vec<serde_json::Value> = lines.collect();
    let count = |engine: &str, unit: &str| {
        lines.iter().filter(|line| line["engine"] == engine && line["unit"] == unit).count()
    };
    // Of two sets each: four questions of files; loads; four questions, a get and an update of a process, and of a
    // program, which counts rows of the latter.
    assert_eq!(["questions/s", "rows/s", "ops/s"].map(|unit| count("sapwood", unit)), [8, 0, 0]);
    for engine in ["sapwood-ordered", "sapwood-hash"] {
        let counts = ["questions/s", "rows/s", "ops/s", "bytes"].map(|unit| count(engine, unit));
        assert_eq!(counts, [20, 2, 4, 2], "{engine}");
    }
    let left = std::fs::read_dir(dir.path()).expect("the folder is still there").count();
    assert_eq!(left, 0, "files were left behind");
    let refused = sapwood(&["bench", "sql", "--smoke", "--engines", "duckdb"]).assert().code(1);
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(message.contains("duckdb is not part of this program: add --peers"), "{message}");
}
