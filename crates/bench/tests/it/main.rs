//! Benches at their smoke sizes: they run, check their answers and print what programs can read.

mod durability;
mod plot;
mod program;
mod refused;
mod smoke;
mod tables;
mod trees;

use std::collections::BTreeSet;

use clap::Parser;
use sapwood_bench::Result;
use serde_json::Value;

/// The flags of a bench, as its command takes them.
#[derive(Parser)]
struct Command<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

impl<A: clap::Args> Command<A> {
    fn args(flags: &[&str]) -> Result<A> {
        Ok(Self::try_parse_from([&["bench"], flags].concat())?.args)
    }
}

/// Runs a bench within this process, by its name and its flags; what it printed.
fn run(words: &str) -> Result<String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut printed = Vec::new();
    macro_rules! run {
        ($($bench:ident)*) => {
            match words[0] {
                $(stringify!($bench) => {
                    sapwood_bench::$bench::run_to(&Command::args(&words[1..])?, &mut printed)?;
                })*
                other => panic!("{other} is no bench"),
            }
        };
    }
    run!(aggregate durability hash ordered rollup server trees);
    Ok(String::from_utf8(printed)?)
}

/// Runs a bench with engines of the test; what it printed.
fn run_with<A: clap::Args>(
    flags: &str,
    run: impl FnOnce(&A, &mut dyn std::io::Write) -> Result,
) -> String {
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let mut printed = Vec::new();
    run(&Command::args(&flags).expect("flags"), &mut printed).expect("it runs");
    String::from_utf8(printed).expect("it prints words")
}

/// Runs a bench in a folder of its own, where it must leave nothing behind.
fn run_in_folder(words: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let printed = run(&format!("{words} --dir {}", folder.path().display()));
    assert_eq!(folder.path().read_dir()?.count(), 0, "files were left behind");
    printed
}

/// Looks for texts that a run must print, and others that it must not.
fn check_texts(printed: &str, wanted: &[&str], unwanted: &[&str]) {
    for text in wanted {
        assert!(printed.contains(text), "{text} is missing in:\n{printed}");
    }
    for text in unwanted {
        assert!(!printed.contains(text), "{text} is in:\n{printed}");
    }
}

/// JSON lines that a bench printed.
struct Lines(Vec<Value>);

impl Lines {
    /// Reads lines, and looks for the fields that every line has.
    fn of(printed: &str) -> Lines {
        let line = |line| serde_json::from_str(line).expect("a JSON object a line");
        let lines: Vec<Value> = printed.lines().map(line).collect();
        lines.iter().for_each(check_line);
        Lines(lines)
    }

    fn texts(&self, field: &str) -> BTreeSet<&str> {
        self.0.iter().map(|line| line[field].as_str().expect(field)).collect()
    }

    /// The number of lines of an engine in a unit.
    fn count(&self, engine: &str, unit: &str) -> usize {
        self.0.iter().filter(|line| line["engine"] == engine && line["unit"] == unit).count()
    }

    fn all(&self, engine: &str, workload: &str) -> Vec<&Value> {
        let is_meant = |line: &&Value| line["engine"] == engine && line["workload"] == workload;
        self.0.iter().filter(is_meant).collect()
    }

    /// The line of an engine's workload in a unit.
    fn find(&self, engine: &str, workload: &str, unit: &str) -> &Value {
        let all = self.all(engine, workload);
        let line = all.into_iter().find(|line| line["unit"] == unit);
        line.unwrap_or_else(|| panic!("{engine} has no {workload} in {unit}"))
    }
}

fn check_line(line: &Value) {
    for text in ["bench", "workload", "engine", "unit", "data"] {
        assert!(line[text].is_string(), "{text} of {line}");
    }
    for count in ["threads", "entries", "runs"] {
        assert!(line[count].as_u64().is_some_and(|count| count > 0), "{count} of {line}");
    }
    assert!(line["bytes_per_entry"].is_number() || line["bytes_per_entry"].is_null());
    let figure = |name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name} of {line}"));
    let spread = [0.0, figure("min"), figure("median"), figure("max")];
    assert!(spread.is_sorted(), "{line}");
    if line["unit"] == "ns" {
        assert!(figure("p50_ns") <= figure("p99_ns") && figure("p99_ns") <= figure("p999_ns"));
    }
}

/// True if a program is in one of the folders of programs.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
