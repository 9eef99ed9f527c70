//! `sapwood tail` beside a process that has the directory open.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use sapwood::{Db, HashTableOptions, OrderedTableOptions};
use tempfile::TempDir;

use crate::{sapwood, stdout_of};

#[test]
fn changes_are_told_while_another_process_makes_them() {
    let place = TempDir::new().expect("a directory for the test");
    let path = place.path().to_str().expect("UTF-8");
    let db = Db::open(path).expect("new");
    let trees = db.create_ordered_table("trees", OrderedTableOptions::default()).expect("made");
    let hits = db.create_hash_table("hits", HashTableOptions::default()).expect("made");
    trees.put("oak", "12 m\n").expect("put");
    trees.update("oak", |value| value[1] = b'3').expect("there");
    hits.add("home", 1).expect("added");
    hits.remove("home").expect("removed");

    let all = stdout_of(&["tail", path]);
    let lines: Vec<Vec<&str>> = all.lines().map(|line| line.split('\t').collect()).collect();
    let told: Vec<&[&str]> = lines.iter().map(|line| &line[1..]).collect();
    let expected: [&[&str]; 6] = [
        &["trees", "create"],
        &["hits", "create"],
        &["trees", "put", "oak", r"12\x20m\n"],
        &["trees", "write", "oak", "at 1", "3"],
        &["hits", "put", "home", r"\x01\0\0\0\0\0\0\0"],
        &["hits", "remove", "home"],
    ];
    assert_eq!(told[..2], expected[..2], "{all}");
    assert_eq!(told[2], expected[2], "{all}");
    // Whether an update is told whole is the engine's choice.
    assert_eq!(told[3][..3], ["trees", told[3][1], "oak"], "{all}");
    assert_eq!(told[4..], expected[4..], "{all}");

    let fourth = lines[3][0];
    let later = stdout_of(&["tail", path, "--from", fourth, "--table", "hits", "--json"]);
    let last: serde_json::Value =
        serde_json::from_str(later.lines().last().expect("two lines")).expect("JSON");
    assert_eq!(later.lines().count(), 2, "{later}");
    assert_eq!((&last["change"], &last["key"]), (&"remove".into(), &"home".into()));

    let mut child = Command::new(assert_cmd::cargo::cargo_bin("sapwood"))
        .args(["tail", path, "--follow", "--from", lines[5][0]])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut followed = BufReader::new(child.stdout.take().expect("piped")).lines();
    for number in 0..3 {
        trees.put(format!("elm{number}"), "9 m").expect("put");
        let line = followed.next().expect("it follows").expect("text");
        assert!(line.ends_with(&format!("trees\tput\telm{number}\t9\\x20m")), "{line}");
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");

    db.checkpoint().expect("written");
    for (from, why) in [(fourth, "is gone with a checkpoint"), ("9999999999", "the log ends at")] {
        let refused = sapwood(&["tail", path, "--from", from]).assert().code(1);
        let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(stderr.contains(why), "{stderr}");
    }
    sapwood(&["tail", "no-such-directory"]).assert().code(1);
}
