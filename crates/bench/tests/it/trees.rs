//! `sapwood bench trees`.

use std::collections::BTreeSet;

use clap::Parser;

use crate::{check_line, lines, texts};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    trees: sapwood_bench::trees::Args,
}

const OURS: [&str; 3] = ["sapwood-btree", "sapwood-crit-bit", "sapwood-red-black"];

fn trees(flags: &[&str]) -> Result<String, sapwood_bench::Error> {
    let command = Command::try_parse_from([&["trees"], flags].concat())?;
    let mut printed = Vec::new();
    sapwood_bench::trees::run_to(&command.trees, &mut printed)?;
    Ok(String::from_utf8(printed)?)
}

#[test]
fn a_smoke_run_prints_a_line_for_every_figure_and_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().to_str().expect("a folder in words");
    let flags = ["--smoke", "--json", "--keys", "600", "--dir", path];
    let lines = lines(&trees(&flags).expect("it runs"));
    lines.iter().for_each(check_line);
    assert_eq!(texts(&lines, "bench"), BTreeSet::from(["trees"]));
    let all = ["floor-fdatasync", "redb", "std-btreemap"].into_iter().chain(OURS);
    assert_eq!(texts(&lines, "engine"), all.collect());
    let count = |engine: &str, unit: &str| {
        lines.iter().filter(|line| line["engine"] == engine && line["unit"] == unit).count()
    };
    for engine in OURS {
        // Six phases, commits of one writer and of many, recovery, in two orders.
        assert_eq!(count(engine, "ops/s"), 18, "{engine}");
        assert_eq!(count(engine, "log bytes/op"), 6, "{engine}");
        assert_eq!(count(engine, "log bytes/s"), 2, "{engine}");
    }
    assert_eq!(
        ["redb", "std-btreemap", "floor-fdatasync"].map(|engine| count(engine, "ops/s")),
        [16, 12, 2]
    );
    for line in lines.iter().filter(|line| line["unit"] == "log bytes/op") {
        assert!(line["median"].as_f64() >= Some(16.0), "less than its entry: {line}");
    }
    let left = std::fs::read_dir(dir.path()).expect("the folder is still there").count();
    assert_eq!(left, 0, "files were left behind");
}

#[test]
fn the_tables_name_engines_targets_and_the_command() {
    let flags = ["--keys", "500", "--syncs", "32", "--runs", "2", "--order", "random"];
    let phases = "insert-each,remove-together,remove-tenfold,sync,get,recover";
    let printed = trees(&[&flags[..], &["--workloads", phases]].concat()).expect("it runs");
    for text in [
        "sapwood-btree: insert, a transaction each against PMDK",
        "sapwood-crit-bit: insert-each against redb",
        "sapwood-red-black: get against redb",
        "sapwood-btree: commits that last against syncs of the disk",
        "sapwood-btree: remove of ten times as many, each",
        "sapwood-btree: recovery against 1 GiB/s",
        "sapwood-btree: bytes of an entry",
        "leave --keys and --ops out to judge them",
        "Repeat with: ",
    ] {
        assert!(printed.contains(text), "{text} is missing in:\n{printed}");
    }
    assert!(!printed.contains("iterate"), "{printed}");
}

#[test]
fn what_cannot_run_is_explained() {
    for (flags, message) in [
        (&["--engines", "lmdb"][..], "no engine is called lmdb: choose from sapwood-btree, "),
        (&["--workloads", "fly"], "--workloads"),
        (&["--keys", "0"], "at least 1"),
        (&["--runs", "0"], "at least 1"),
        (&["--smoke", "--dir", "/proc/nowhere"], "choose a folder with --dir"),
    ] {
        let error = trees(flags).expect_err("it cannot run").to_string();
        assert!(error.contains(message), "{flags:?} answers {error:?}");
    }
}
