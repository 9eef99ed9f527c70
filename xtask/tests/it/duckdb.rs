//! The smoke size of `cargo xtask duckdb`, where that has made its environment.

use crate::commands::built_sapwood;
use crate::workspace::root;
use std::process::Command;

/// Runs a script at its smoke size; nothing without the environment.
fn run(script: &str, args: &[&str]) {
    let python = root().join("target/duckdb/bin/python");
    if !python.exists() {
        println!("skipped: `cargo xtask duckdb` makes the environment that this needs");
        return;
    }
    let mut compare = Command::new(python);
    compare.arg(root().join("xtask/duckdb").join(script)).arg("--smoke");
    compare.arg("--sapwood").arg(built_sapwood()).args(args).current_dir(root());
    let output = compare.output().expect("the environment has an interpreter");
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{told}{errors}", output.status);
}

#[test]
fn figures_of_small_files_are_those_of_duckdb() {
    run("compare.py", &["--flights", "datasets/flights-2013.csv.zst"]);
}

#[test]
fn figures_of_roll_ups_are_those_of_duckdb() {
    run("rollup.py", &[]);
}

#[test]
fn answers_of_statements_are_those_of_duckdb() {
    run("sql.py", &[]);
}
