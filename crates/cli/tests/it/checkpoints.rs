//! Checkpoints of a table in a directory: listed, looked at, gone back to.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{sapwood, stdout_of};

/// A directory that was loaded twice, with a row each time.
fn loaded_twice() -> (TempDir, String) {
    let folder = TempDir::new().expect("a directory for the test");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    for row in ["a,1", "b,2"] {
        fs::write(path("rows.csv"), format!("k,n\n{row}\n")).expect("a file for the test");
        let args =
            ["load", &path("rows.csv"), "--key", "k", "--engine", "hash", "--dir", &path("d")];
        stdout_of(&args);
    }
    let database = path("d");
    (folder, database)
}

fn listed(database: &str) -> Vec<Value> {
    let lines = stdout_of(&["checkpoints", database, "--json"]);
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn checkpoints_are_listed_and_looked_at() {
    let (_folder, database) = loaded_twice();
    let all = listed(&database);
    let entries: Vec<_> = all.iter().map(|one| one["entries"].as_u64()).collect();
    assert_eq!(entries, [Some(1), Some(2)], "{all:?}");
    assert!(all.iter().all(|one| one["opens"] == true), "{all:?}");
    let older = all[0]["checkpoint"].to_string();
    let rows = stdout_of(&["scan", &database, "--checkpoint", &older]);
    assert_eq!(rows, "k,n\na,1\n");
    let counted = stdout_of(&["aggregate", &database, "--checkpoint", &older, "--json", "-q"]);
    assert!(counted.contains("\"count\":1"), "{counted}");
    assert_eq!(stdout_of(&["scan", &database]).lines().count(), 3, "nothing has changed");
    let table = stdout_of(&["checkpoints", &database]);
    assert!(table.contains("whole") && table.contains("entries"), "{table}");
}

#[test]
fn a_table_that_does_not_open_leads_back() {
    let (folder, database) = loaded_twice();
    let all = listed(&database);
    let (older, newest) = (&all[0]["checkpoint"], all[1]["checkpoint"].as_u64().expect("a number"));
    let image = folder.path().join(format!("d/tables/rows/index-{newest:016x}.image"));
    fs::write(&image, "something else").expect("it can be written");
    let output = sapwood(&["scan", &database]).assert().code(1);
    let told = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(told.contains(&format!("--checkpoint {older}")), "{told}");
    let way = format!("sapwood checkpoints {database} --table rows --go-back {older}");
    assert!(told.contains(&way), "{told}");
    let all = listed(&database);
    assert!(all[0]["opens"] == true && all[1]["opens"] == false, "{all:?}");
    assert!(all[1]["error"].as_str().is_some_and(|why| why.contains(".image")), "{all:?}");
    let older = older.to_string();
    assert_eq!(stdout_of(&["scan", &database, "--checkpoint", &older]), "k,n\na,1\n");
    let left = stdout_of(&["checkpoints", &database, "--go-back", &older, "--json"]);
    assert_eq!(left.lines().count(), 1, "{left}");
    assert_eq!(stdout_of(&["scan", &database]), "k,n\na,1\n");
}

#[test]
fn what_is_not_there_is_named() {
    let (folder, database) = loaded_twice();
    let rows = folder.path().join("rows.csv");
    let rows = rows.to_str().expect("UTF-8");
    for (args, code, says) in [
        (&["checkpoints", &database, "--go-back", "77"][..], 1, "no checkpoint 77"),
        (&["scan", &database, "--checkpoint", "77"], 1, "no checkpoint 77"),
        (&["checkpoints", &database, "--table", "other"], 1, "no table `other`"),
        (&["checkpoints", rows], 1, "rows.csv is a file, and the directory"),
        (
            &["scan", rows, "--key", "k", "--checkpoint", "1"],
            2,
            "--checkpoint looks at a directory",
        ),
    ] {
        let output = sapwood(args).assert().code(code);
        let told = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(told.contains(says), "{args:?}: {told}");
    }
}
