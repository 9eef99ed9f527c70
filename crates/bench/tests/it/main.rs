//! Benches at their smoke sizes: they run, check their answers and print what programs can read.

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

use serde_json::Value;

fn lines(printed: &str) -> Vec<Value> {
    printed.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect()
}

fn texts<'a>(lines: &'a [Value], field: &str) -> BTreeSet<&'a str> {
    lines.iter().map(|line| line[field].as_str().expect(field)).collect()
}

/// What every line has, whichever bench printed it.
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
