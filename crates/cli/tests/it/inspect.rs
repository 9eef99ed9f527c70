//! Looking beneath tree tables, checking them, and saving what can be read of damaged ones.

use std::fs;
use std::path::Path;

use sapwood::{Db, TreeKind, TreeTableOptions};
use serde_json::Value;
use tempfile::TempDir;

use crate::{flights_path, sapwood, stdout_of};

const ENTRIES: u32 = 5000;

/// A database with a tree table of each kind.
fn made(directory: &Path) {
    let db = Db::open(directory).expect("new");
    for (name, kind) in [
        ("aircraft", TreeKind::BTree),
        ("airport", TreeKind::CritBit),
        ("route", TreeKind::RedBlack),
    ] {
        let options = TreeTableOptions::default().kind(kind);
        let options = options.fields("minutes:i64le".parse().expect("fields"));
        let table = db.create_tree_table(name, options).expect("made");
        let keys = (0..ENTRIES).map(|number| number.wrapping_mul(0x9e37_79b9).to_be_bytes());
        let entries: Vec<_> = keys.map(|key| (key, 7_i64.to_le_bytes())).collect();
        table.put_many(&entries).expect("room");
    }
    db.close().expect("written");
}

/// Damages a node in the middle of the B-tree.
fn damage(pool: &Path) {
    let path = pool.join("heap");
    let mut heap = fs::read(&path).expect("a pool");
    let objects = 18 << 16;
    let is_node = |at: &usize| heap[at + 4..at + 8] == [0x02, 0xff, 0, 0];
    let nodes: Vec<usize> = (objects..heap.len()).step_by(8).filter(is_node).collect();
    assert!(nodes.len() > 50, "{} nodes", nodes.len());
    heap[nodes[nodes.len() / 2] + 4] = 0x7f;
    fs::write(&path, heap).expect("a pool");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn object(out: &str) -> Value {
    serde_json::from_str(out).expect("one object")
}

#[test]
fn a_pool_is_described_from_the_database_and_from_its_own_folder() {
    let directory = TempDir::new().expect("a directory for the test");
    made(directory.path());
    for path in [directory.path().to_owned(), directory.path().join("trees")] {
        let told = object(&stdout_of(&["inspect", "pool", text(&path), "--json"]));
        assert_eq!((&told["version"], &told["checkpoint"]), (&1.into(), &2.into()), "{told}");
        // What fills the last block, and no entry.
        assert!(told["log_bytes"].as_u64() < Some(4096), "{told}");
        let trees = told["trees"].as_array().expect("a list");
        let kinds: Vec<_> = trees.iter().map(|tree| tree["kind"].as_str()).collect();
        assert_eq!(kinds, [Some("btree"), Some("crit-bit"), Some("red-black")]);
        for tree in trees {
            assert_eq!((&tree["entries"], &tree["layout"]), (&ENTRIES.into(), &"variable".into()));
            assert_eq!(tree["fields"], "minutes:i64le");
        }
        let heap = &told["heap"];
        let number = |of: &Value, name: &str| of[name].as_u64().expect("a number");
        let classes = heap["classes"].as_array().expect("a list");
        let taken: u64 = classes.iter().map(|class| number(class, "taken")).sum();
        assert_eq!(taken, number(heap, "objects"), "no object is large");
        // A record an entry, and a node an entry of two of the trees.
        assert!(taken > 5 * u64::from(ENTRIES), "{heap}");
        assert!(number(heap, "object_bytes") < number(heap, "bytes"));
    }
    let out = stdout_of(&["inspect", "pool", text(directory.path())]);
    for says in ["log since then", "red-black", "minutes:i64le", "slots of", "opened in"] {
        assert!(out.contains(says), "{out}");
    }
}

#[test]
fn what_has_no_tree_tables_is_told() {
    let directory = TempDir::new().expect("a directory for the test");
    let path = directory.path().join("hash");
    drop(Db::open(&path).expect("new"));
    let new = directory.path().join("new");
    for (args, says) in [
        (vec!["inspect", "pool", text(&path)], "has no tree tables"),
        (vec!["inspect", "pool", text(&path), "--check"], "has no tree tables"),
        (vec!["repair", text(&path), "--into", text(&new)], "there are none"),
        (vec!["inspect", "pool", text(directory.path())], "holds no database"),
    ] {
        let refused = sapwood(&args).assert().code(1);
        let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(stderr.contains(says), "{args:?}: {stderr}");
    }
    assert!(!new.exists());
}

#[test]
fn a_sound_pool_passes_and_is_copied_with_all_that_reads_it() {
    let directory = TempDir::new().expect("a directory for the test");
    let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    let load = ["load", text(&flights_path()), "--key", "carrier,flight,month,day,sched_dep_time"]
        .map(str::to_owned);
    let kept = ["--engine", "tree", "--kind", "crit-bit", "-q", "--dir", text(&old)];
    let args: Vec<&str> = load.iter().map(String::as_str).chain(kept).collect();
    sapwood(&args).assert().success();
    let checked = object(&stdout_of(&["inspect", "pool", text(&old), "--check", "--json"]));
    assert_eq!((&checked["entries"], &checked["trees"]), (&336_776.into(), &1.into()));
    assert_eq!(checked["problems"].as_array().map(Vec::len), Some(0));

    let told = object(&stdout_of(&["repair", text(&old), "--into", text(&new), "--json"]));
    assert_eq!((&told["complete"], &told["trees"][0]["copied"]), (&true.into(), &336_776.into()));
    let rows =
        |of: &Path| stdout_of(&["scan", text(of), "-q", "--from", "UA,1500", "--limit", "999"]);
    assert_eq!(rows(&old).lines().count(), 1000);
    assert_eq!(rows(&old), rows(&new));

    // What is there is not overwritten, and nothing is copied into itself.
    for into in [new.clone(), old.join("tables/inside")] {
        let refused = sapwood(&["repair", text(&old), "--into", text(&into)]).assert().code(1);
        let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(stderr.contains("choose another"), "{stderr}");
    }
}

#[test]
fn damage_is_found_and_what_can_be_read_is_saved() {
    let directory = TempDir::new().expect("a directory for the test");
    let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    made(&old);
    damage(&old.join("trees"));
    let before = fs::read(old.join("trees/heap")).expect("a pool");

    let found = sapwood(&["inspect", "pool", text(&old), "--check"]).assert().code(1);
    let stdout = String::from_utf8_lossy(&found.get_output().stdout).into_owned();
    let stderr = String::from_utf8_lossy(&found.get_output().stderr).into_owned();
    assert!(stdout.contains("no node of a B-tree is there"), "{stdout}");
    assert!(stderr.contains("sapwood repair "), "{stderr}");

    let saved = sapwood(&["repair", text(&old), "--into", text(&new)]).assert().code(1);
    let stdout = String::from_utf8_lossy(&saved.get_output().stdout).into_owned();
    let stderr = String::from_utf8_lossy(&saved.get_output().stderr).into_owned();
    assert!(stdout.contains("table aircraft: "), "{stdout}");
    assert!(stderr.contains("something is lost"), "{stderr}");
    assert!(fs::read(old.join("trees/heap")).expect("a pool") == before, "it is not written");

    let checked = object(&stdout_of(&["inspect", "pool", text(&new), "--check", "--json"]));
    let entries = checked["entries"].as_u64().expect("a number");
    let all = u64::from(3 * ENTRIES);
    assert!((all - 600..all).contains(&entries), "{entries} of {all}");
}
