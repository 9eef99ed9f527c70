//! `sapwood-bench trees`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sapwood_bench::Error;
use sapwood_bench::trees::{
    Limit, TreeEngine, TreeEntry, TreeKey, TreePhase, TreeStore, TreeValue, Writers, run_with,
};

use crate::{Command, check_line, check_refused, check_texts, lines, texts};

const OURS: [&str; 3] = ["sapwood-btree", "sapwood-crit-bit", "sapwood-red-black"];

bench!(trees);

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
        // Six workloads, commits of one writer and of many, recovery, and removes from a larger
        // tree, in two orders.
        assert_eq!(count(engine, "ops/s"), 20, "{engine}");
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
    let phases = "insert-each,insert-together,remove-together,remove-tenfold,sync,get,recover";
    let printed = trees(&[&flags[..], &["--workloads", phases]].concat()).expect("it runs");
    let wanted = [
        "sapwood-btree: insert-each random against pmdk-btree as measured before",
        "sapwood-crit-bit: insert-each random against redb",
        "sapwood-red-black: get random against redb",
        "sapwood-btree: sync random against floor-fdatasync",
        "sapwood-btree: remove-tenfold random against remove-together random",
        "sapwood-btree: recover random of 1073.7 log MB/s",
        "sapwood-btree: insert-together random of 41.9 B/entry",
        "leave --keys and --ops out to judge them",
        "Repeat with: ",
    ];
    check_texts(&printed, &wanted, &["iterate"]);
}

#[test]
fn what_cannot_run_is_explained() {
    check_refused(
        trees,
        &[
            (&["--engines", "lmdb"], "no engine is called lmdb: choose from sapwood-btree, "),
            (&["--engines", "pmdk-btree"], "pmdk-btree runs in a process of its own: add --pmdk"),
            (&["--workloads", "fly"], "no workload is called fly"),
            (&["--keys", "0"], "choose 1 to "),
            (&["--runs", "0"], "at least 1"),
            (&["--smoke", "--dir", "/proc/nowhere"], "choose a folder with --dir"),
        ],
    );
}

/// A map that stands for a store of another process: with a clock and a limit of its own.
#[derive(Default)]
struct Elsewhere(BTreeMap<TreeKey, TreeValue>);

const LIMIT: Limit = Limit { most: 10, why: "each takes long" };

impl TreeStore for Elsewhere {
    fn insert(&mut self, (key, value): &TreeEntry) -> Result<(), Error> {
        self.0.insert(*key, *value);
        Ok(())
    }

    fn remove(&mut self, key: &TreeKey) -> Result<Option<TreeValue>, Error> {
        Ok(self.0.remove(key))
    }

    fn insert_all(&mut self, entries: &[TreeEntry]) -> Result<(), Error> {
        self.insert_each(entries)
    }

    fn remove_all(
        &mut self,
        entries: &[TreeEntry],
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        self.remove_each(entries, removed)
    }

    fn get_all(&self, entries: &[TreeEntry], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
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

    fn limit(&self, phase: TreePhase) -> Option<Limit> {
        (phase == TreePhase::RemoveTogether).then_some(LIMIT)
    }
}

fn elsewhere(flags: &[&str]) -> String {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().to_str().expect("a folder in words");
    let all = ["--keys", "500", "--runs", "2", "--order", "random", "--dir", path];
    let args = Command::args(&[&all, flags].concat()).expect("the flags are right");
    let engine = TreeEngine {
        name: "pmdk-crit-bit",
        open: |_| Ok(Box::new(Elsewhere::default())),
        recover: None,
    };
    let engines = [sapwood_bench::trees::engines(), vec![engine]].concat();
    let mut printed = Vec::new();
    run_with(&args, &engines, &mut printed).expect("it runs");
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
    for (engine, peer) in [
        ("sapwood-crit-bit", "pmdk-crit-bit in this run"),
        ("sapwood-btree", "pmdk-btree as measured before"),
        ("sapwood-red-black", "pmdk-red-black as measured before"),
    ] {
        for workload in ["insert-each", "insert-together"] {
            check_texts(&printed, &[&format!("{engine}: {workload} random against {peer}")], &[]);
        }
    }
}
