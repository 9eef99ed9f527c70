//! The smoke size of `cargo xtask duckdb`, where that has made its environment.

use crate::commands::built_sapwood;
use crate::workspace::root;
use std::process::Command;

#[test]
fn figures_of_small_files_are_those_of_duckdb() {
    let python = root().join("target/duckdb/bin/python");
    if !python.exists() {
        println!("skipped: `cargo xtask duckdb` makes the environment that this needs");
        return;
    }
    let mut compare = Command::new(python);
    compare.arg(root().join("xtask/duckdb/compare.py")).arg("--smoke");
    compare.arg("--sapwood").arg(built_sapwood());
    compare.arg("--flights").arg(root().join("datasets/flights-2013.csv.zst"));
    let output = compare.output().expect("the environment has an interpreter");
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{told}{errors}", output.status);
}
