//! Tables that programs made, whose entries no columns describe.

use std::path::Path;

use sapwood::{AnyTable, Db, HashTableOptions, TreeTableOptions};
use serde_json::Value;
use tempfile::TempDir;

use crate::{sapwood, stdout_of};

const KEYS: [&[u8]; 6] = [b"", b"\0\xff", b"a", b"a,b", b"a\\b", "é\u{202e}\n".as_bytes()];

fn fill(table: &AnyTable, keys: &[&[u8]]) {
    for key in keys {
        let value: Vec<u8> = key.iter().rev().copied().collect();
        table.put(key, &value).expect("room");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Bytes as they are shown; `\x` stands before two digits.
const SHOWN: [&str; 6] = ["", r"\0\xFF", "a", "a,b", r"a\\b", r"é\xE2\x80\xAE\n"];

#[test]
fn entries_are_shown_as_bytes_and_found_by_what_is_shown() {
    let directory = TempDir::new().expect("a directory for the test");
    let path = text(directory.path());
    let db = Db::open(directory.path()).expect("new");
    let tree = db.create_tree_table("tree", TreeTableOptions::default()).expect("made");
    fill(&AnyTable::from(tree), &KEYS);
    let hash = db.create_hash_table("hash", HashTableOptions::default()).expect("made");
    fill(&AnyTable::from(hash), &KEYS[1..]);
    db.close().expect("written");

    let shown = stdout_of(&["scan", path, "--table", "tree", "--json", "-q"]);
    let lines = shown.lines().map(|line| serde_json::from_str(line).expect("an object"));
    let keys: Vec<String> =
        lines.map(|entry: Value| entry["key"].as_str().expect("a string").to_owned()).collect();
    assert_eq!(keys, SHOWN);
    // A hash table has no empty key.
    for (table, first) in [("tree", 0), ("hash", 1)] {
        for (key, shown) in KEYS.iter().zip(SHOWN).skip(first) {
            let got = stdout_of(&["get", path, shown, "--table", table, "--json", "-q"]);
            let got: Value = serde_json::from_str(&got).expect("one object");
            assert_eq!(got["key"], shown);
            assert_eq!(got["value"].as_str().map(str::len) > Some(0), !key.is_empty());
        }
        let missing = sapwood(&["get", path, "b", "--table", table]).assert().code(1);
        let stderr = String::from_utf8_lossy(&missing.get_output().stderr).into_owned();
        assert!(stderr.contains("no row has the key b (its bytes)"), "{stderr}");
    }
    // What is the beginning of other keys is one key all the same.
    assert_eq!(stdout_of(&["get", path, "a", "--table", "tree", "-q"]), "key    a\nvalue  a\n");
    let of_a = ["scan", path, "--table", "tree", "-q", "--prefix", "a", "--reverse"];
    assert_eq!(stdout_of(&of_a), "key,value\na\\\\b,b\\\\a\n\"a,b\",\"b,a\"\na,a\n");
    let between = ["scan", path, "--table", "tree", "-q", "--from", "a", "--to", r"a\\"];
    assert_eq!(stdout_of(&between), "key,value\na,a\n\"a,b\",\"b,a\"\n");
}
