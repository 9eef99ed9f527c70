//! Engines of a program's own in `sapwood-bench trees`.

use std::collections::BTreeMap;
use std::time::Duration;

use sapwood_bench::Result;
use sapwood_bench::trees::{
    Limit, TreeEngine, TreeEntry, TreeKey, TreePhase, TreeStore, TreeValue, run_with,
};

use crate::{Lines, check_texts};

/// A map that stands for a store of another process: with a clock and a limit of its own.
#[derive(Default)]
struct Elsewhere(BTreeMap<TreeKey, TreeValue>);

const LIMIT: Limit = Limit { most: 10, why: "each takes long" };

impl TreeStore for Elsewhere {
    fn insert(&mut self, (key, value): &TreeEntry) -> Result {
        self.0.insert(*key, *value);
        Ok(())
    }

    fn remove(&mut self, key: &TreeKey) -> Result<Option<TreeValue>> {
        Ok(self.0.remove(key))
    }

    fn get_all(&self, entries: &[TreeEntry], read: &mut dyn FnMut(&[u8])) -> Result {
        entries.iter().filter_map(|(key, _)| self.0.get(key)).for_each(|value| read(value));
        Ok(())
    }

    fn iterate(&self, read: &mut dyn FnMut(&[u8], &[u8])) -> Result {
        self.0.iter().for_each(|(key, value)| read(key, value));
        Ok(())
    }

    fn elapsed(&self) -> Option<Duration> {
        Some(Duration::from_secs(2))
    }

    fn limit(&self, phase: TreePhase) -> Option<Limit> {
        (phase == TreePhase::RemoveTogether).then_some(LIMIT)
    }
}

fn elsewhere(flags: &str) -> String {
    let dir = tempfile::tempdir().expect("a folder");
    let engine = TreeEngine {
        name: "pmdk-crit-bit",
        open: |_| Ok(Box::new(Elsewhere::default())),
        recover: None,
    };
    let engines = [sapwood_bench::trees::engines(), vec![engine]].concat();
    let all = format!("--keys 500 --runs 2 --order random --dir {}", dir.path().display());
    crate::run_with(&format!("{all} {flags}"), |args, out| run_with(args, &engines, out))
}

#[test]
fn a_store_of_another_process_counts_by_its_own_clock_and_within_its_limit() {
    let printed = elsewhere("--json --workloads insert-each,get,remove-together");
    let lines = Lines::of(&printed);
    for (workload, operations) in
        [("insert-each random", 500.0), ("get random", 500.0), ("remove-together random", 10.0)]
    {
        let line = lines.find("pmdk-crit-bit", workload, "ops/s");
        assert_eq!(line["median"], operations / 2.0, "{line}");
    }
    let left_out = "left out: pmdk-crit-bit, remove-together: all but 10 of 500 operations: each \
                    takes long";
    assert_eq!(elsewhere("").matches(left_out).count(), 1);
    assert!(!elsewhere("--workloads get").contains(left_out));
}

#[test]
fn targets_against_pmdk_are_of_the_run_where_it_took_part() {
    let printed = elsewhere("--workloads insert-each,insert-together");
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
