//! The program `sapwood-bench`: its flags, its errors, and the list of benches.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use crate::Lines;

fn bench(words: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_sapwood-bench"));
    program.args(words).output().expect("it starts")
}

/// The standard output of a run that ends well.
fn printed(words: &[&str]) -> String {
    let Output { status, stdout, stderr } = bench(words);
    assert!(status.success(), "{words:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("it prints words")
}

/// The message of a run that is refused.
fn refused(words: &[&str]) -> String {
    let Output { status, stderr, .. } = bench(words);
    assert_eq!(status.code(), Some(1), "{words:?}");
    String::from_utf8(stderr).expect("it prints words")
}

/// Flags, an engine, a unit, and the workloads that are printed in it.
const CASES: &str = "\
ordered --data generated --threads 1 --no-latencies --workloads get-zero-copy | sapwood | ops/s | get-zero-copy; ingest
hash --part memory --threads 1 --workloads read --draw uniform --no-latencies | dashmap | ops/s | load; read uniform
aggregate --objects 2000 --threads 1 --part sums | sapwood-log | objects/s | everything; list of 0.5 %; list of 10 %; range of 0.5 %; range of 10 %; range of 100 %
trees --order random --workloads get,iterate | sapwood-btree | ops/s | get random; iterate random
durability --part levels --writers 2 --levels memory,sync --data small | sapwood-ordered | ops/s | put 8 B, memory; put 8 B, sync";

#[test]
fn each_bench_takes_its_flags_and_prints_what_was_asked_for() {
    for case in CASES.lines() {
        let fields: Vec<&str> = case.split(" | ").collect();
        let [words, engine, unit, workloads] = fields[..] else { panic!("{case}") };
        let flags = ["--smoke", "--json", "--engines", engine];
        let words: Vec<&str> = words.split(' ').chain(flags).collect();
        let mut lines = Lines::of(&printed(&words));
        assert_eq!(lines.texts("bench"), BTreeSet::from([words[0]]));
        assert_eq!(lines.texts("engine"), BTreeSet::from([engine]));
        lines.0.retain(|line| line["unit"] == unit);
        assert_eq!(lines.texts("workload"), workloads.split("; ").collect(), "{words:?}");
    }
}

#[test]
fn the_list_names_benches_workloads_and_engines() {
    let list = printed(&["list"]);
    let benches = "ordered hash aggregate rollup sql server trees durability";
    let workloads = "get-zero-copy read-modify-write by-carrier";
    let engines = "crossbeam-skiplist dashmap floor-records druid-onheap sqlite redis pmdk-btree \
                   floor-disk";
    for name in [benches, workloads, engines].join(" ").split(' ') {
        assert!(list.split_whitespace().any(|word| word == name), "{name} is missing in:\n{list}");
    }
}

#[test]
fn an_unknown_engine_is_answered_with_those_that_there_are() {
    let message = refused(&["ordered", "--smoke", "--engines", "nope"]);
    let known = "error: no engine is called nope: choose from sapwood, ";
    assert!(message.starts_with(known), "{message}");
    let message = refused(&["sql", "--smoke", "--engines", "duckdb"]);
    assert!(message.contains("duckdb is not part of this program: add --peers"), "{message}");
}

#[test]
fn a_run_of_another_size_is_not_judged() {
    let words = "ordered --smoke --no-latencies --threads 1 --data generated --engines sapwood";
    let out = printed(&words.split(' ').collect::<Vec<_>>());
    assert!(out.contains("pass --full to judge them"), "{out}");
    assert!(!out.split_whitespace().any(|word| word == "miss" || word == "hit"), "{out}");
    assert!(!out.contains(['|', '\u{2502}', '\u{250C}']), "tables are drawn without boxes: {out}");
    assert!(out.contains("Repeat with: sapwood-bench ordered --smoke "), "{out}");
}

/// The program `sapwood`, built if it is not there.
fn sapwood() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_sapwood-bench")).with_file_name("sapwood");
    if !program.is_file() {
        let mut build = Command::new(env!("CARGO"));
        let built = build.args(["build", "--quiet", "--package", "sapwood-cli"]).status();
        assert!(built.expect("cargo starts").success(), "{build:?} fails");
    }
    program.to_str().expect("a path of words").to_owned()
}

#[test]
fn the_bench_of_statements_asks_processes_and_tables() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().to_str().expect("a folder in words");
    let program = sapwood();
    let flags = ["sql", "--smoke", "--json", "--runs", "1", "--dir", path, "--program", &program];
    let lines = Lines::of(&printed(&flags));
    let counts = |engine, units: &[&str]| -> Vec<usize> {
        units.iter().map(|unit| lines.count(engine, unit)).collect()
    };
    // Of two sets each: four questions of files; loads; four questions, a get and an update of a
    // process, and of a program, which counts rows of the latter.
    assert_eq!(counts("sapwood", &["questions/s", "rows/s", "ops/s"]), [8, 0, 0]);
    for engine in ["sapwood-ordered", "sapwood-hash"] {
        let units = ["questions/s", "rows/s", "ops/s", "bytes"];
        assert_eq!(counts(engine, &units), [20, 2, 4, 2], "{engine}");
    }
    let left = std::fs::read_dir(dir.path()).expect("the folder is still there").count();
    assert_eq!(left, 0, "files were left behind");
}
