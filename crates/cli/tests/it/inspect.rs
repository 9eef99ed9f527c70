//! Looking beneath tree tables, checking them, and saving what can be read of damaged ones.

use std::fs;
use std::path::Path;

use sapwood::{Db, HashTableOptions, OrderedTableOptions, TreeKind, TreeTableOptions};
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
fn a_pool_is_described_from_its_database_alone() {
    let directory = TempDir::new().expect("a directory for the test");
    made(directory.path());
    let alone = text(&directory.path().join("trees")).to_owned();
    let alone = sapwood(&["inspect", "pool", &alone]).assert().failure();
    let refused = String::from_utf8_lossy(&alone.get_output().stderr).into_owned();
    assert!(refused.contains("open the directory that this one lies in"), "{refused}");
    let path = directory.path();
    let told = object(&stdout_of(&["inspect", "pool", text(path), "--json"]));
    assert_eq!((&told["version"], &told["checkpoint"]), (&2.into(), &2.into()), "{told}");
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
    let (new, file) = (directory.path().join("new"), directory.path().join("rows.csv"));
    std::fs::write(&file, "a\n1\n").expect("a file for the test");
    for (args, says) in [
        (vec!["inspect", "pool", text(&path)], "has no tree tables"),
        (vec!["inspect", "pool", text(&path), "--check"], "has no tree tables"),
        (vec!["inspect", "pool", text(directory.path())], "holds no database"),
        (vec!["check", text(directory.path())], "holds no database"),
        (vec!["check", text(&new)], "there is no directory"),
        (vec!["tables", text(&file)], "rows.csv is a file, and the directory of a database"),
        (vec!["repair", text(directory.path()), "--into", text(&new)], "holds no database"),
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

/// A directory with an ordered table and a hash table, a checkpoint, and changes behind it.
fn logged(directory: &Path) {
    let db = Db::open(directory).expect("new");
    let ordered = db.create_ordered_table("sessions", OrderedTableOptions::default());
    let hash = db.create_hash_table("hits", HashTableOptions::default());
    let (ordered, hash) = (ordered.expect("made"), hash.expect("made"));
    ordered.put(b"one", b"1").expect("room");
    hash.put(b"one", b"1").expect("room");
    db.checkpoint().expect("written");
    for number in 0..50_u32 {
        ordered.put(number.to_be_bytes(), b"behind").expect("room");
        hash.put(number.to_be_bytes(), b"behind").expect("room");
    }
}

#[test]
fn the_log_tells_of_commits_to_trees() {
    let directory = TempDir::new().expect("a directory for the test");
    let db = Db::open(directory.path()).expect("new");
    let tree = db.create_tree_table("t", TreeTableOptions::default()).expect("made");
    tree.put(b"one", b"1").expect("room");
    drop((tree, db));
    let path = text(directory.path());
    assert!(stdout_of(&["inspect", "log", path]).contains("(trees)"));
    let told = object(&stdout_of(&["inspect", "log", path, "--json"]));
    assert_eq!(told["tables"][0]["table"], Value::Null);
    assert!(told["tables"][0]["changes"].as_u64() > Some(1), "{told}");
}

#[test]
fn a_log_is_described_checked_and_saved() {
    let directory = TempDir::new().expect("a directory for the test");
    let [old, new, more] = ["old", "new", "more"].map(|name| directory.path().join(name));
    logged(&old);
    let told = object(&stdout_of(&["inspect", "log", text(&old), "--json"]));
    assert_eq!((&told["says"]["puts"], &told["checkpoint"]), (&100.into(), &1.into()), "{told}");
    assert!(told["ends"].as_u64() > told["begins"].as_u64(), "{told}");
    let tables = told["tables"].as_array().expect("a list");
    assert_eq!((&tables[0]["table"], &tables[0]["changes"]), (&"sessions".into(), &50.into()));
    assert!(tables[0]["snapshot_bytes"].as_u64() > Some(0) && tables[1]["checkpoint"] == 1);
    let out = stdout_of(&["inspect", "log", text(&old)]);
    for says in ["ends at position", "wal-", "snapshot-", "its checkpoint 1"] {
        assert!(out.contains(says), "{out}");
    }
    let checked = object(&stdout_of(&["check", text(&old), "--json"]));
    assert_eq!((&checked["sound"], &checked["tables"][0]["entries"]), (&true.into(), &51.into()));
    assert!(stdout_of(&["check", text(&old)]).contains("everything is as it was written"));

    // A snapshot of which a byte flips: what the log has behind it is there.
    let snapshot = old.join("log").join(tables[0]["snapshot"].as_str().expect("a name"));
    let mut bytes = fs::read(&snapshot).expect("there");
    bytes[40] ^= 1;
    fs::write(&snapshot, bytes).expect("written");
    let found = sapwood(&["check", text(&old)]).assert().code(1);
    let stdout = String::from_utf8_lossy(&found.get_output().stdout).into_owned();
    let stderr = String::from_utf8_lossy(&found.get_output().stderr).into_owned();
    assert!(stdout.contains("snapshot-") && stdout.contains("byte 32"), "{stdout}");
    assert!(stderr.contains("sapwood repair "), "{stderr}");
    for (into, past) in [(&new, None), (&more, Some("--past-damage"))] {
        let args = ["repair", text(&old), "--into", text(into)];
        let args: Vec<&str> = args.into_iter().chain(past).collect();
        let saved = sapwood(&args).assert().code(1);
        let stdout = String::from_utf8_lossy(&saved.get_output().stdout).into_owned();
        assert!(stdout.contains("snapshot-"), "{stdout}");
        let checked = object(&stdout_of(&["check", text(into), "--json"]));
        let counts: Vec<_> = checked["tables"].as_array().expect("a list").iter().collect();
        assert_eq!((&counts[0]["table"], &counts[0]["entries"]), (&"hits".into(), &51.into()));
        assert_eq!((&counts[1]["table"], &counts[1]["entries"]), (&"sessions".into(), &50.into()));
    }
}
