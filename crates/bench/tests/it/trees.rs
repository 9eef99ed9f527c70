//! `sapwood-bench trees`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Parser;
use sapwood_bench::Error;
use sapwood_bench::trees::{Engine, Entry, Key, Limit, Phase, TreeStore, Value, Writers, run_with};

use crate::{check_line, lines, texts};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    trees: sapwood_bench::trees::Args,
}

const OURS: [&str; 3] = ["sapwood-btree", "sapwood-crit-bit", "sapwood-red-black"];

fn trees(flags: &[&str]) -> Result<String, Error> {
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
        (&["--engines", "pmdk-btree"], "pmdk-btree runs in a process of its own: add --pmdk"),
        (&["--workloads", "fly"], "--workloads"),
        (&["--keys", "0"], "at least 1"),
        (&["--runs", "0"], "at least 1"),
        (&["--smoke", "--dir", "/proc/nowhere"], "choose a folder with --dir"),
    ] {
        let error = trees(flags).expect_err("it cannot run").to_string();
        assert!(error.contains(message), "{flags:?} answers {error:?}");
    }
}

/// A map that stands for a store of another process: with a clock and a limit of its own.
#[derive(Default)]
struct Elsewhere(BTreeMap<Key, Value>);

const LIMIT: Limit = Limit { most: 10, why: "each takes long" };

impl TreeStore for Elsewhere {
    fn insert(&mut self, (key, value): &Entry) -> Result<(), Error> {
        self.0.insert(*key, *value);
        Ok(())
    }

    fn remove(&mut self, key: &Key) -> Result<Option<Value>, Error> {
        Ok(self.0.remove(key))
    }

    fn insert_all(&mut self, entries: &[Entry]) -> Result<(), Error> {
        self.insert_each(entries)
    }

    fn remove_all(
        &mut self,
        entries: &[Entry],
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        self.remove_each(entries, removed)
    }

    fn get_all(&self, entries: &[Entry], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        entries.iter().filter_map(|(key, _)| self.0.get(key)).for_each(|value| read(value));
        Ok(())
    }

    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        self.0.iter().for_each(|(key, value)| read(key, value));
        Ok(())
    }

    fn writers(&self) -> Option<&dyn Writers> {
        None
    }

    fn elapsed(&self) -> Option<Duration> {
        Some(Duration::from_secs(2))
    }

    fn limit(&self, phase: Phase) -> Option<Limit> {
        (phase == Phase::RemoveTogether).then_some(LIMIT)
    }
}

fn elsewhere(flags: &[&str]) -> String {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().to_str().expect("a folder in words");
    let all = ["trees", "--keys", "500", "--runs", "2", "--order", "random", "--dir", path];
    let flags = [&all, flags].concat();
    let command = Command::try_parse_from(flags).expect("the flags are right");
    let engine = Engine {
        name: "pmdk-crit-bit",
        open: |_| Ok(Box::new(Elsewhere::default())),
        recover: None,
    };
    let engines = [sapwood_bench::trees::engines(), vec![engine]].concat();
    let mut printed = Vec::new();
    run_with(&command.trees, &engines, &mut printed).expect("it runs");
    String::from_utf8(printed).expect("it prints words")
}

#[test]
fn a_store_of_another_process_counts_by_its_own_clock_and_within_its_limit() {
    let lines = lines(&elsewhere(&["--json", "--workloads", "insert-each,get,remove-together"]));
    for (workload, operations) in
        [("insert-each random", 500.0), ("get random", 500.0), ("remove-together random", 10.0)]
    {
        let is_it = |line: &&serde_json::Value| {
            line["engine"] == "pmdk-crit-bit" && line["workload"] == workload
        };
        let line = lines.iter().find(is_it).expect("there is such a line");
        assert_eq!(line["median"], operations / 2.0, "{line}");
    }
    let left_out = "left out: pmdk-crit-bit, remove-together: all but 10 of 500 operations: each \
                    takes long";
    assert_eq!(elsewhere(&[]).matches(left_out).count(), 1);
    assert!(!elsewhere(&["--workloads", "get"]).contains(left_out));
}

#[test]
fn targets_against_pmdk_are_of_the_run_where_it_took_part() {
    let printed = elsewhere(&["--workloads", "insert-each,insert-together"]);
    for (engine, source) in [
        ("sapwood-crit-bit", "in this run"),
        ("sapwood-btree", "as measured before"),
        ("sapwood-red-black", "as measured before"),
    ] {
        for title in ["insert, a transaction each", "insert, one transaction"] {
            let target = format!("{engine}: {title} against PMDK {source}");
            assert!(printed.contains(&target), "{target} is missing in:\n{printed}");
        }
    }
}
