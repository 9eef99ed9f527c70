//! Writers and readers in processes of their own, which are killed.

use std::env;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use sapwood::Db;
use tempfile::TempDir;

use super::{Writer, check, open, reads};

const DIRECTORY: &str = "SAPWOOD_TEST_DIRECTORY";

/// Starts a test of this module in a process of its own.
fn start(test: &str, path: &Path) -> Child {
    let program = env::current_exe().expect("this program");
    let name = format!("beside::processes::{test}");
    let mut command = Command::new(program);
    command.args(["--exact", &name, "--nocapture", "--include-ignored"]).env(DIRECTORY, path);
    command.stdout(Stdio::piped()).spawn().expect("started")
}

/// The lines that a process tells.
fn told(child: &mut Child) -> Lines<BufReader<ChildStdout>> {
    BufReader::new(child.stdout.take().expect("it is piped")).lines()
}

/// Waits until a process has told so many lines that begin with a word, and answers the last.
fn wait_for(told: &mut Lines<BufReader<ChildStdout>>, word: &str, mut lines: u64) -> String {
    for line in told {
        let line = line.expect("text");
        if line.contains(word) {
            lines -= 1;
            if lines == 0 {
                return line;
            }
        }
    }
    panic!("the other process has ended");
}

#[test]
#[ignore = "a process of other tests"]
fn a_writer() {
    let Ok(path) = env::var(DIRECTORY) else { return };
    let mut writer = Writer::open(path.as_ref());
    loop {
        let number = writer.step();
        if number.is_multiple_of(50) {
            writer.db.checkpoint().expect("written");
        }
        println!("\nstep {number}");
    }
}

#[test]
#[ignore = "a process of other tests"]
fn a_reader() {
    let Ok(path) = env::var(DIRECTORY) else { return };
    loop {
        let reader = open(path.as_ref());
        println!("\nopen");
        println!("\nstep {}", check(&reader));
    }
}

#[test]
fn a_writer_is_killed_while_readers_read() {
    let path = TempDir::new().expect("a directory for the test");
    let path = path.path();
    let (mut last, mut kept) = (0, Vec::new());
    for round in 0..reads(60) / 20 {
        let mut writer = start("a_writer", path);
        let mut lines = told(&mut writer);
        let waited = wait_for(&mut lines, "step", 20 + round * 7);
        // It goes on until the pipe is full.
        for _ in 0..10 {
            let reader = open(path);
            let step = check(&reader);
            assert!(step >= last, "step {step} after {last}");
            last = step;
            kept.push((step, reader));
        }
        assert!(Db::open(path).is_err(), "one writes");
        writer.kill().expect("killed");
        let opening = open(path);
        writer.wait().expect("it has ended");
        let ended = open(path);
        for reader in [opening, ended] {
            let step = check(&reader);
            assert!(step >= last, "step {step} after {last}");
            last = step;
            kept.push((step, reader));
        }
        // What it told of is there, and at most the step that it was about to tell of.
        let step = |line: String| line.strip_prefix("step ")?.parse::<u64>().ok();
        let steps = lines.filter_map(|line| step(line.expect("text")));
        let acknowledged = steps.last().or_else(|| step(waited)).expect("it counts steps");
        assert!((acknowledged..=acknowledged + 1).contains(&last), "{last} of {acknowledged}");
    }
    // Those readers keep none from writing.
    let writer = Writer::open(path);
    assert_eq!(writer.number, last);
    for (step, reader) in &kept {
        assert_eq!(check(reader), *step);
    }
}

#[test]
fn readers_are_killed_while_a_writer_writes() {
    let path = TempDir::new().expect("a directory for the test");
    let path = path.path();
    let mut writer = Writer::open(path);
    writer.step();
    for round in 0..reads(60) / 12 {
        let mut readers = [(); 2].map(|()| start("a_reader", path));
        let [mut one, mut other] = readers.each_mut().map(told);
        wait_for(&mut one, "open", 1);
        for number in 0..40 {
            writer.step();
            if number % 10 == round % 10 {
                writer.db.checkpoint().expect("written");
            }
        }
        wait_for(&mut other, "step", 1 + round);
        for reader in &mut readers {
            reader.kill().expect("killed");
            reader.wait().expect("it has ended");
        }
        writer.db.checkpoint().expect("written");
        let files = std::fs::read_dir(path.join("log")).expect("it is there");
        let names = files.map(|file| file.expect("listed").file_name());
        let is_snapshot = |name: &std::ffi::OsString| name.as_encoded_bytes().starts_with(b"snap");
        // Of the ordered table, and of one that may be there for a turn.
        assert!(names.filter(is_snapshot).count() <= 2, "nothing is kept for those");
    }
    assert_eq!(check(&open(path)), writer.number);
}
