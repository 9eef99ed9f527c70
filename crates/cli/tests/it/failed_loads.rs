//! A load into a directory that fails, or is stopped, leaves the directory as it was.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::CommandCargoExt;
use sapwood::Db;
use tempfile::TempDir;

use crate::{sapwood, stdout_of};

const GOOD: &str = "k,n\n1,a\n2,b\n";
/// Read to its end, and refused by `--strict`.
const RAGGED: &str = "k,n\n3,c\n4,d,e\n";
/// Good rows of other columns.
const OTHER: &str = "k,other\n8,h\n";

/// What there was before the load that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// No directory, nor the one that it lies in.
    Nothing,
    EmptyDirectory,
    OtherFiles,
    OtherTable,
    /// The table that the load names, with rows.
    Table,
    /// And another beside it.
    Tables,
}

const BEFORE: [Before; 6] = [
    Before::Nothing,
    Before::EmptyDirectory,
    Before::OtherFiles,
    Before::OtherTable,
    Before::Table,
    Before::Tables,
];

struct Place {
    directory: TempDir,
}

impl Place {
    fn new(before: Before) -> Self {
        let directory = TempDir::new().expect("a directory for the test");
        let place = Self { directory };
        // Fails in the middle, when many rows are in the table.
        let mut unclosed = String::from("k,n\n");
        unclosed.extend((0..5000).map(|number| format!("{number},x\n")));
        unclosed.push_str("6000,\"y\n6001,z\n");
        for (name, text) in [
            ("good.csv", GOOD),
            ("ragged.csv", RAGGED),
            ("unclosed.csv", &unclosed),
            ("other.csv", OTHER),
        ] {
            fs::write(place.directory.path().join(name), text).expect("a file for the test");
        }
        let database = place.directory.path().join("outer/database");
        if before != Before::Nothing {
            fs::create_dir_all(&database).expect("a directory for the test");
        }
        let tables: &[&str] = match before {
            Before::OtherFiles => {
                fs::write(database.join("notes.txt"), "mine").expect("a file for the test");
                &[]
            }
            Before::OtherTable => &["others"],
            Before::Table => &["rows"],
            Before::Tables => &["others", "rows"],
            _ => &[],
        };
        for table in tables {
            place.load("good.csv", &["--table", table]).assert().success();
        }
        place
    }

    fn args<'a>(&self, file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let load = ["load", file, "--key", "k:int", "--engine", "hash", "--dir", "outer/database"];
        [&load[..], more].concat()
    }

    fn load(&self, file: &str, more: &[&str]) -> assert_cmd::Command {
        let mut command = sapwood(&self.args(file, more));
        command.current_dir(&self.directory);
        command
    }

    /// Every file and folder below, with what the tables hold and how they are described.
    fn contents(&self) -> (Vec<String>, BTreeMap<String, Vec<String>>) {
        let outer = self.directory.path().join("outer");
        let mut names = Vec::new();
        list(&outer, &mut names);
        // Files of a table that stays are the business of its engine.
        names.retain(|name| name.matches('/').count() < 4);
        names.sort();
        let mut tables = BTreeMap::new();
        let database = outer.join("database");
        if database.join("tables").is_dir() {
            let db = Db::open(&database).expect("no other process has it open");
            for name in db.table_names() {
                let table = db.hash_table(&name).expect("it opens");
                let mut entries = Vec::new();
                let _ = table.scan_log(|key, value| {
                    entries.push(format!("{key:?} {}", String::from_utf8_lossy(value)));
                    std::ops::ControlFlow::<()>::Continue(())
                });
                entries.sort();
                tables.insert(name, entries);
            }
        }
        (names, tables)
    }
}

fn list(folder: &Path, names: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("a listed file").path();
        names.push(path.display().to_string());
        // Opening a directory begins another part of its log.
        if !path.ends_with("database/log") {
            list(&path, names);
        }
    }
    // Paths below the directory of the test.
    names.iter_mut().for_each(|name| {
        if let Some((_, below)) = name.split_once("outer/") {
            *name = format!("outer/{below}");
        }
    });
}

#[test]
fn a_load_that_fails_leaves_no_trace() {
    for before in BEFORE {
        for (file, more, says) in [
            ("ragged.csv", &["--strict"][..], "nothing of the file is kept in"),
            ("unclosed.csv", &[], "a quote opens a value there"),
            ("none.csv", &[], "cannot be read"),
        ] {
            let place = Place::new(before);
            let as_it_was = place.contents();
            let output = place.load(file, more).assert().code(1);
            let output = output.get_output();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(stderr.contains(says), "{before:?} {file}: {stderr}");
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(!stdout.contains("kept in") && !stdout.contains("entries"), "{stdout}");
            assert_eq!(place.contents(), as_it_was, "{before:?} {file}");
            // And binds nothing: other columns can be loaded where no rows are.
            if !matches!(before, Before::Table | Before::Tables) {
                place.load("other.csv", &[]).assert().success();
            }
        }
    }
}

#[test]
fn a_load_that_does_not_fit_the_directory_leaves_no_trace() {
    for before in [Before::Table, Before::Tables] {
        let place = Place::new(before);
        let as_it_was = place.contents();
        place.load("other.csv", &[]).assert().code(1);
        assert_eq!(place.contents(), as_it_was, "{before:?}");
    }
    for before in [Before::Nothing, Before::EmptyDirectory, Before::OtherFiles] {
        let place = Place::new(before);
        let as_it_was = place.contents();
        place.load("good.csv", &["--table", "a b"]).assert().code(1);
        assert_eq!(place.contents(), as_it_was, "{before:?}");
    }
}

#[test]
fn a_failed_load_as_json_says_what_was_read_and_not_what_is_kept() {
    let place = Place::new(Before::Nothing);
    let output = place.load("ragged.csv", &["--strict", "--json", "-q"]).assert().code(1);
    let stdout = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    let object: serde_json::Value = serde_json::from_str(&stdout).expect("an object");
    assert_eq!((&object["rows"], &object["malformed"]), (&2.into(), &1.into()));
    for name in ["dir", "table", "entries"] {
        assert!(object.get(name).is_none(), "{name}: {object}");
    }
}

/// Begins to load a file.
#[cfg(unix)]
fn begin(place: &Place, file: &str) -> Child {
    Command::cargo_bin("sapwood")
        .expect("the binary of this package")
        .args(place.args(file, &["--format", "csv", "-q", "--show-errors", "0"]))
        .current_dir(&place.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs")
}

/// Sends a signal, twice, as people do; the exit code, and what was said.
#[cfg(unix)]
fn stop(mut child: Child, signal: &str) -> (Option<i32>, String) {
    let stdin = child.stdin.take().expect("piped");
    for _ in 0..2 {
        let sent = Command::new("kill").arg(signal).arg(child.id().to_string()).status();
        sent.expect("kill is there");
    }
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("piped");
    stderr.read_to_string(&mut said).expect("UTF-8");
    let code = child.wait().expect("it ends").code();
    drop(stdin);
    (code, said)
}

#[cfg(unix)]
const SIGNALS: [&str; 3] = ["-INT", "-TERM", "-HUP"];

#[cfg(unix)]
#[test]
fn ctrl_c_while_input_comes_leaves_no_trace() {
    for (before, signal) in BEFORE.into_iter().zip(SIGNALS.into_iter().cycle()) {
        let place = Place::new(before);
        let as_it_was = place.contents();
        let mut child = begin(&place, "-");
        let mut rows = String::from("k,n\n");
        rows.extend((100..200_000).map(|number| format!("{number},x\n")));
        // It has read most of it when the pipe has taken all.
        child.stdin.as_mut().expect("piped").write_all(rows.as_bytes()).expect("it reads");
        let (code, said) = stop(child, signal);
        assert_eq!(code, Some(130), "{said}");
        assert_eq!(place.contents(), as_it_was, "{before:?}");
    }
}

/// Rows are being put when the signal comes; if it comes too late, all are there, and if it comes before the
/// process heeds it, the process ends by it.
#[cfg(unix)]
#[test]
fn ctrl_c_while_rows_are_put_leaves_no_trace() {
    for (before, signal) in BEFORE.into_iter().zip(SIGNALS.into_iter().cycle()) {
        let place = Place::new(before);
        let as_it_was = place.contents();
        let mut rows = String::from("k,n\n");
        rows.extend((0..1_000_000).map(|number| format!("{number},{number}x\n")));
        fs::write(place.directory.path().join("large.csv"), rows).expect("a file for the test");
        let mut child = begin(&place, "large.csv");
        let table = place.directory.path().join("outer/database/tables/rows");
        while !table.exists() && child.try_wait().expect("a child").is_none() {
            std::thread::yield_now();
        }
        let (code, said) = stop(child, signal);
        match code {
            Some(0) => assert!(place.contents().1["rows"].len() >= 1_000_000, "{before:?}"),
            code => {
                assert!(matches!(code, None | Some(130)), "{code:?} {said}");
                assert_eq!(place.contents(), as_it_was, "{before:?}");
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_at_the_end_is_taken_back() {
    // A limit on the size of files stands for a full disk.
    let place = Place::new(Before::OtherTable);
    let as_it_was = place.contents();
    let mut rows = String::from("k,n\n");
    rows.extend((0..300_000).map(|number| format!("{number},{}\n", "x".repeat(100))));
    fs::write(place.directory.path().join("large.csv"), rows).expect("a file for the test");
    let binary = assert_cmd::cargo::cargo_bin("sapwood");
    let load = place.args("large.csv", &["-q"]).join(" ");
    let script = format!("trap '' XFSZ; ulimit -f 32768; exec {} {load}", binary.display());
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&place.directory)
        .output()
        .expect("sh runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("kept in"), "{stderr}");
    assert_eq!(place.contents(), as_it_was, "{stderr}");
}

#[test]
fn a_second_load_says_that_keys_may_be_in_the_table() {
    let place = Place::new(Before::Table);
    let output = place.load("good.csv", &[]).assert().success();
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(
        stderr.starts_with(
            "line 2: repeated: key 1 is in the table or came before; this row takes the place of the \
             earlier one\n"
        ),
        "{stderr}"
    );
    assert!(stderr.contains("warning: 2 rows dropped, of the table or of the file: "), "{stderr}");
    assert!(!stderr.contains("--duplicates all"), "a hash table has one row a key: {stderr}");
}

#[test]
fn another_process_that_has_the_directory_is_told_in_words_of_the_command_line() {
    let place = Place::new(Before::Table);
    let directory = place.directory.path().join("outer/database");
    let _held = Db::open(&directory).expect("no other process has it open");
    let path = directory.to_str().expect("UTF-8");
    for args in [&["put", path, "1", "a"][..], &["remove", path, "1"], &["compact", path]] {
        let output = sapwood(args).assert().code(1);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.starts_with("error: another process has "), "{stderr}");
        assert!(stderr.contains("wait until it ends") && !stderr.contains("`Db`"), "{stderr}");
    }
    let as_it_was = || {
        let mut names = Vec::new();
        list(&directory, &mut names);
        names.sort();
        names
    };
    let before = as_it_was();
    place.load("good.csv", &[]).assert().code(1);
    assert_eq!(as_it_was(), before);
}

#[test]
fn what_a_killed_load_leaves_is_taken_over() {
    let place = Place::new(Before::EmptyDirectory);
    // A table without rows or description is what it leaves.
    let db = Db::open(place.directory.path().join("outer/database")).expect("a database");
    drop(db.create_hash_table("rows", sapwood::HashTableOptions::default()).expect("a table"));
    drop(db);
    place.load("good.csv", &[]).assert().success();
    let path = place.directory.path().join("outer/database");
    let out = stdout_of(&["get", path.to_str().expect("UTF-8"), "-q", "1"]);
    assert_eq!(out, "k  1\nn  a\n");
}
