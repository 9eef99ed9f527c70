//! Commands that end before their work does: the reader has gone, or Ctrl-C.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use assert_cmd::cargo::CommandCargoExt;

use crate::flights_path;

fn sapwood(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("sapwood").expect("the binary of this package");
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let path = flights_path();
    let path = path.to_str().expect("UTF-8");
    for args in [
        &["scan", path, "--key", "tailnum,time_hour", "-q", "--show-errors", "0"][..],
        &["scan", path, "--key", "tailnum,time_hour", "-q", "--show-errors", "0", "--json"],
    ] {
        let mut child = sapwood(args).spawn().expect("it runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        drop(stdout);
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(!stderr.contains("error") && !stderr.contains("panicked"), "{stderr}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure() {
    let full = File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = sapwood(&["completions", "bash"]).stdout(full).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("error: standard output cannot be written: "), "{stderr}");
}

/// Sends what Ctrl-C sends.
#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    let sent = Command::new("kill").arg("-INT").arg(child.id().to_string()).status();
    assert!(sent.expect("kill is there").success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_between_rows_says_what_was_done() {
    for command in ["stats", "aggregate"] {
        ctrl_c_between_rows(command);
    }
}

#[cfg(unix)]
fn ctrl_c_between_rows(command: &str) {
    let mut child = sapwood(&[command, "-", "--format", "csv", "--key", "k:int"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let writer = std::thread::spawn(move || {
        // Rows without end, until no process reads them. Some are named, which tells us that rows
        // are being loaded.
        let mut sent = stdin.write_all(b"k\n");
        let mut number = 0_u64;
        while sent.is_ok() {
            sent = stdin.write_all(format!("{number}\nbad,row\n").as_bytes());
            number += 1;
        }
    });
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a malformed row is named");
    interrupt(&child);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("UTF-8");
    let status = child.wait().expect("it ends");
    writer.join().expect("no panic");
    assert_eq!(status.code(), Some(130), "{line}{rest}");
    assert!(rest.contains("interrupted: ") && rest.contains(" rows had been read in "), "{rest}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_while_waiting_for_input_ends_too() {
    let mut child = sapwood(&["stats", "-", "--format", "csv", "--key", "k"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    // A repeated key among enough rows is named when they are loaded; then it waits for more.
    let mut rows = String::from("k\n");
    rows.extend((0..1000).map(|number| format!("{}\n", number.max(1))));
    // Beyond what the reader takes at once.
    rows.extend((1000..200_000).map(|number| format!("{number}\n")));
    stdin.write_all(rows.as_bytes()).expect("it reads");
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a repeated key is named");
    assert!(line.contains("repeated"), "{line}");
    interrupt(&child);
    let status = child.wait().expect("it ends though input stays open");
    drop(stdin);
    assert_eq!(status.code(), Some(130));
}

/// Runs with a standard error without a reader, or that cannot be written.
#[cfg(target_os = "linux")]
#[test]
fn a_standard_error_that_cannot_be_written_changes_nothing() {
    let directory = tempfile::TempDir::new().expect("a directory for the test");
    let rows: String =
        (0..2000).map(|number| format!("{{\"id\":{}}}\n[1]\n", number / 2)).collect();
    std::fs::write(directory.path().join("x.jsonl"), rows).expect("a file for the test");
    let load = ["load", "x.jsonl", "--key", "id"];
    let many = [&load[..], &["--show-errors", "9999"]].concat();
    for (args, code) in [
        (&load[..], 0),
        (&many[..], 0),
        (&[&load[..], &["--strict"]].concat(), 1),
        (&["scan", "x.jsonl", "--key", "id"], 0),
        (&["aggregate", "x.jsonl"], 0),
        (&["aggregate", "x.jsonl", "--key", "id", "--mismatches", "skip"], 0),
        (&["get", "x.jsonl", "--key", "id", "nothing"], 2),
        (&["get", "x.jsonl", "--key", "id", "77777"], 1),
        (&["load", "none.csv", "--key", "id"], 1),
        (&["load"], 2),
        (&["sample", "flights", "--dir", "x"], 2),
        (&["man", "pages"], 0),
    ] {
        let full =
            || Stdio::from(File::options().write(true).open("/dev/full").expect("Linux has it"));
        let (reader, closed) = std::io::pipe().expect("a pipe");
        drop(reader);
        for stderr in [full(), Stdio::from(closed)] {
            let output =
                sapwood(args).current_dir(&directory).stderr(stderr).output().expect("it runs");
            assert_eq!(output.status.code(), Some(code), "{args:?}");
        }
    }
    // Both at once, as `2>&1 | head -1` has it.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut child = sapwood(&many)
        .current_dir(&directory)
        .stdout(writer.try_clone().expect("a pipe"))
        .stderr(writer)
        .spawn()
        .expect("it runs");
    let mut line = String::new();
    let mut reader = BufReader::new(reader);
    reader.read_line(&mut line).expect("a line");
    drop(reader);
    assert!(line.starts_with("line 2: malformed"), "{line}");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    for args in [&["--help"][..], &["help", "scan"], &["--version"]] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let output = sapwood(args).stdout(full).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with("error: standard output cannot be written: "), "{stderr}");
    }
}
