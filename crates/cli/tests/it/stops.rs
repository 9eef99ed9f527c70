//! Commands that end before their work does: the reader has gone, or Ctrl-C.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
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
    let (is_read, reads) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        // Rows without end, until no process reads them. More than a pipe holds tells us that they are read.
        let mut sent = stdin.write_all(b"k\n");
        let mut number = 0_u64;
        while sent.is_ok() {
            sent = stdin.write_all(format!("{number}\nbad,row\n").as_bytes());
            number += 1;
            if number == 200_000 {
                is_read.send(()).expect("it is waited for");
            }
        }
    });
    reads.recv().expect("rows are read");
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert_eq!(stderr, "interrupted: nothing was read\n");
}

/// Of a file, which is read twice: it says how far it came.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_between_rows_of_a_file_says_what_was_done() {
    let directory = tempfile::TempDir::new().expect("a directory for the test");
    let path = directory.path().join("x.csv");
    let rows: String = (0..3_000_000).map(|number| format!("{number}\n")).collect();
    std::fs::write(&path, format!("k\n{rows}")).expect("a file for the test");
    let path = path.to_str().expect("UTF-8");
    let child = sapwood(&["stats", path, "--key", "k"]).spawn().expect("it runs");
    // It has the file open when it reads it.
    let files = format!("/proc/{}/fd", child.id());
    let is_open = || {
        let mut files = std::fs::read_dir(&files).expect("Linux has it").flatten();
        files.any(|file| std::fs::read_link(file.path()).is_ok_and(|file| file.ends_with("x.csv")))
    };
    while !is_open() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    let is_told = stderr.contains("was not read to its end") || stderr.contains(" read in ");
    assert!(stderr.starts_with("interrupted: ") && is_told, "{stderr}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_while_waiting_for_input_ends_too() {
    let mut child = sapwood(&["stats", "-", "--format", "csv", "--key", "k"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    // More than a pipe holds: when all is written, it has begun to read. Then it waits for more.
    let mut rows = String::from("k\n");
    rows.extend((0..200_000).map(|number| format!("{number}\n")));
    stdin.write_all(rows.as_bytes()).expect("it reads");
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
        (&["sample", "trains"], 2),
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
