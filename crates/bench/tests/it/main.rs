//! Benches at their smoke sizes: they run, check their answers and print what programs can read.

/// A function of a bench's name that runs it and answers what it printed.
macro_rules! bench {
    ($name:ident) => {
        fn $name(flags: &[&str]) -> Result<String, sapwood_bench::Error> {
            let mut printed = Vec::new();
            sapwood_bench::$name::run_to(&crate::Command::args(flags)?, &mut printed)?;
            Ok(String::from_utf8(printed)?)
        }
    };
}

mod aggregate;
mod durability;
mod hash;
mod ordered;
mod plot;
mod program;
mod rollup;
mod server;
mod trees;

use std::collections::BTreeSet;

use clap::Parser;
use serde_json::Value;

/// The flags of a bench, as its command takes them.
#[derive(Parser)]
struct Command<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

impl<A: clap::Args> Command<A> {
    fn args(flags: &[&str]) -> Result<A, sapwood_bench::Error> {
        Ok(Self::try_parse_from([&["bench"], flags].concat())?.args)
    }
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

/// Looks whether flags that cannot run are refused with a message.
fn check_refused(
    run: impl Fn(&[&str]) -> Result<String, sapwood_bench::Error>,
    cases: &[(&[&str], &str)],
) {
    for (flags, message) in cases {
        let error = run(flags).expect_err("it cannot run").to_string();
        assert!(error.contains(message), "{flags:?} answers {error:?}");
    }
}

fn lines(printed: &str) -> Vec<Value> {
    printed.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect()
}

fn texts<'a>(lines: &'a [Value], field: &str) -> BTreeSet<&'a str> {
    lines.iter().map(|line| line[field].as_str().expect(field)).collect()
}

/// Looks for the fields that every line has, whichever bench printed it.
fn check_line(line: &Value) {
    for text in ["bench", "workload", "engine", "unit", "data"] {
        assert!(line[text].is_string(), "{text} of {line}");
    }
    for count in ["threads", "entries", "runs"] {
        assert!(line[count].as_u64().is_some_and(|count| count > 0), "{count} of {line}");
    }
    assert!(line["bytes_per_entry"].is_number() || line["bytes_per_entry"].is_null());
    let figure = |name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name} of {line}"));
    assert!(
        figure("min") >= 0.0
            && figure("min") <= figure("median")
            && figure("median") <= figure("max"),
        "{line}"
    );
    if line["unit"] == "ns" {
        assert!(figure("p50_ns") <= figure("p99_ns") && figure("p99_ns") <= figure("p999_ns"));
    }
}
