//! Backups of a directory, and what is restored of them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use sapwood::{Backups, Db, HashTableOptions};
use serde_json::Value;
use tempfile::TempDir;

use crate::{sapwood, stdout_of};

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn object(out: &str) -> Value {
    serde_json::from_str(out).expect("one object")
}

#[test]
fn a_directory_goes_into_backups_and_comes_back_with_its_columns() {
    let folder = TempDir::new().expect("a directory for the test");
    let path = |name: &str| folder.path().join(name);
    let (db, backups, again) = (path("db"), path("backups"), path("again"));
    let (db, backups, again) = (text(&db), text(&backups), text(&again));
    let rows = path("rows.csv");
    fs::write(&rows, "k,n\na,1\nb,2\nc,3\n").expect("room");
    let load = ["load", text(&rows), "--key", "k", "--engine", "hash", "--dir", db];
    sapwood(&load).assert().success();
    let first = object(&stdout_of(&["backup", db, backups, "--json"]));
    assert_eq!((&first["backup"], &first["of"]), (&1.into(), &db.into()));
    let second = object(&stdout_of(&["backup", db, backups, "--json"]));
    assert_eq!((&second["backup"], &second["own_bytes"]), (&2.into(), &0.into()));
    assert!(stdout_of(&["backups", backups, "--verify"]).contains(db));

    let restored = object(&stdout_of(&["restore", backups, again, "--number", "1", "--json"]));
    assert_eq!(restored["backup"], 1);
    let rows = |directory| stdout_of(&["scan", directory, "--json"]);
    assert_eq!(rows(again), rows(db));

    let told = stdout_of(&["backup", db, backups, "--keep", "1"]);
    assert!(told.starts_with("backup 3 of "), "{told}");
    let listed = stdout_of(&["backups", backups, "--json"]);
    assert_eq!(object(&listed)["backup"], 3);

    let refused = |args: &[&str]| {
        let output = sapwood(args).assert().code(1).get_output().stderr.clone();
        String::from_utf8(output).expect("UTF-8")
    };
    assert!(refused(&["restore", backups, again]).contains("not empty"));
    assert!(
        refused(&["restore", backups, text(&path("b")), "--number", "1"]).contains("no backup 1")
    );
    assert!(refused(&["backups", text(&path("none"))]).contains("no backups"));
    let open = Db::open(db).expect("no other has it");
    assert!(refused(&["backup", db, backups]).contains("open"));
    drop(open);
    refused(&["backup", text(&path("none")), backups]);
}

/// Whenever a backup is killed, those that are listed are whole, and the next one succeeds.
#[test]
fn a_backup_that_is_killed_leaves_the_others_whole() {
    let folder = TempDir::new().expect("a directory for the test");
    let path = |name: &str| folder.path().join(name);
    let (db, backups) = (path("db"), path("backups"));
    let open = Db::open(&db).expect("new");
    let table = open.create_hash_table("t", HashTableOptions::default()).expect("a free name");
    for key in 0..8_000_u64 {
        table.put(key.to_be_bytes(), [key as u8; 1_000]).expect("room");
    }
    drop((table, open));
    let mut kills = 0;
    for round in 0..12_u64 {
        let mut process = Command::new(env!("CARGO_BIN_EXE_sapwood"))
            .args(["backup", text(&db), text(&backups)])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a process");
        thread::sleep(Duration::from_millis(round * 3));
        process.kill().expect("it is ours");
        kills += u32::from(!process.wait().expect("it ended").success());
        let there = Backups::open_or_create(&backups).expect("no other has it");
        there.verify(None, |_| true).expect("what is listed is whole");
        // The next one has all to do again.
        there.keep(0).expect("removed");
    }
    assert!(kills > 0, "each was done before it was killed");
    let there = Backups::open(&backups).expect("no other has it");
    there.add_directory(&db, |_| true).expect("room");
    there.restore(None, path("again"), |_| true).expect("restored");
    let again = Db::open(path("again")).expect("it is whole");
    assert_eq!(again.hash_table("t").expect("there").len(), Ok(8_000));
}
