//! Rows in tree tables: in memory, and kept in a directory from one command to the next.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{sapwood, stdout_of};

const ROWS: &str = "k,n,v\na,1,x\nb,2,y\na,1,z\nc,3,w\n";

struct Files(TempDir);

impl Files {
    fn new() -> Files {
        let files = Files(TempDir::new().expect("a directory for the test"));
        fs::write(files.0.path().join("rows.csv"), ROWS).expect("a file for the test");
        files
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn load(&self, more: &[&str]) -> Value {
        let (rows, database) = (self.path("rows.csv"), self.path("database"));
        let mut args = vec!["load", &rows, "--key", "k,n", "--engine", "tree", "--json", "-q"];
        args.extend(["--dir", &database, "--show-errors", "0"]);
        args.extend(more);
        serde_json::from_str(&stdout_of(&args)).expect("JSON")
    }

    fn scan(&self, more: &[&str]) -> String {
        let database = self.path("database");
        let mut args = vec!["scan", &database, "-q"];
        args.extend(more);
        stdout_of(&args)
    }
}

#[track_caller]
fn refused(args: &[&str], code: i32, message: &str) {
    let output = sapwood(args).assert().code(code);
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains(message), "{stderr}");
}

#[test]
fn a_tree_in_memory_answers_as_an_ordered_table() {
    let files = Files::new();
    let rows = files.path("rows.csv");
    for more in [
        &["--duplicates", "first"][..],
        &["--duplicates", "last"],
        &["--duplicates", "all"],
        &["--reverse", "--limit", "2"],
        &["--prefix", "a"],
        &["--from", "b", "--json"],
    ] {
        let scan = |engine: &[&str]| {
            let common = ["scan", &rows, "--key", "k,n", "-q", "--show-errors", "0"];
            let args: Vec<&str> = common.iter().chain(engine).chain(more).copied().collect();
            stdout_of(&args)
        };
        let ordered = scan(&["--engine", "ordered"]);
        for kind in ["btree", "crit-bit", "red-black"] {
            assert_eq!(scan(&["--engine", "tree", "--kind", kind]), ordered, "{more:?} {kind}");
        }
    }
}

#[test]
fn a_directory_keeps_trees_of_each_kind_and_every_command_takes_it() {
    for kind in ["btree", "crit-bit", "red-black"] {
        let files = Files::new();
        let report = files.load(&["--kind", kind]);
        assert_eq!((&report["entries"], &report["duplicates"]), (&3.into(), &1.into()));
        assert!(report["heap_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
        assert_eq!(files.scan(&[]), "k,n,v\na,1,z\nb,2,y\nc,3,w\n");
        assert_eq!(files.scan(&["--reverse", "--limit", "1"]), "k,n,v\nc,3,w\n");
        assert_eq!(files.scan(&["--from", "b", "--to", "c"]), "k,n,v\nb,2,y\n");
        let database = files.path("database");
        assert_eq!(stdout_of(&["get", &database, "-q", "b", "2"]), "k  b\nn  2\nv  y\n");
        let stats: Value =
            serde_json::from_str(&stdout_of(&["stats", &database, "-q", "--json"])).expect("JSON");
        assert_eq!((&stats["entries"], &stats["kind"]), (&3.into(), &kind.into()));
        let figures = stdout_of(&["aggregate", &database, "-q", "--select", "sum(n)", "--json"]);
        assert!(figures.contains("6"), "{figures}");
        refused(&["scan", &database, "--checkpoint", "1"], 2, "as its last commit left it");
        refused(&["scan", &database, "--memory-budget", "64M"], 2, "of hash tables");
        refused(&["checkpoints", &database], 1, "is a tree table");
        // Rows of another file go beside those that are there.
        fs::write(files.path("rows.csv"), "k,n,v\nd,4,v\na,1,q\n").expect("written");
        files.load(&[]);
        assert_eq!(files.scan(&[]), "k,n,v\na,1,q\nb,2,y\nc,3,w\nd,4,v\n");
        // And a hash table beside the tree.
        let rows = files.path("rows.csv");
        let hash = ["--engine", "hash", "--table", "hash", "--dir", &database, "-q"];
        let args = [&["load", &rows, "--key", "k,n"][..], &hash].concat();
        stdout_of(&args);
        assert_eq!(files.scan(&["--table", "hash"]).lines().count(), 3);
    }
}

#[test]
fn a_strict_load_that_fails_leaves_the_directory_as_it_was() {
    let files = Files::new();
    let (rows, database) = (files.path("rows.csv"), files.path("database"));
    let load = ["load", &rows, "--key", "k,n", "--engine", "tree", "--dir", &database, "-q"];
    let strict = [&load[..], &["--strict"]].concat();
    refused(&strict, 1, "nothing of the file is kept");
    assert!(!std::path::Path::new(&database).exists(), "nor the directory");
    files.load(&[]);
    let before = files.scan(&[]);
    fs::write(&rows, "k,n,v\ne,5,u\ne,5,t\n").expect("written");
    refused(&strict, 1, "nothing of the file is kept");
    assert_eq!(files.scan(&[]), before);
    let other = ["load", &rows, "--key", "n", "--engine", "tree", "--dir", &database, "-q"];
    refused(&other, 1, "table `rows` has the key k,n");
    assert_eq!(files.scan(&[]), before);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let files = Files::new();
    let rows = files.path("rows.csv");
    let load = ["load", &rows, "--key", "k", "-q"];
    for (more, message) in [
        (&["--engine", "hash", "--kind", "btree"][..], "--kind is of --engine tree"),
        (&["--engine", "tree", "--memory-budget", "1G"], "no memory budget"),
    ] {
        refused(&[&load[..], more].concat(), 2, message);
    }
}
