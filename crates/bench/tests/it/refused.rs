//! Flags that cannot run are refused with a message that names the next step.

use crate::run;

#[test]
fn what_cannot_run_is_explained() {
    for bench in ["aggregate", "durability", "hash", "ordered", "rollup", "server", "trees"] {
        for (flags, message) in [
            ("--engines oracle", "no engine is called oracle: choose from "),
            ("--workloads fly", "no workload is called fly: choose from "),
            ("--runs 0", "at least 1"),
            ("--threads 0", "at least 1"),
            ("--entries 0", "--entries"),
        ] {
            check(&format!("{bench} {flags}"), message);
        }
    }
    for (words, message) in [
        ("aggregate --objects 10", "--entries"),
        ("aggregate --objects 500000000", "choose fewer with --objects, or fewer tables"),
        ("durability --part nothing", "--part"),
        ("durability --levels forever", "--levels"),
        ("durability --seconds 0", "above 0"),
        ("durability --smoke --dir /proc/nowhere", "choose a folder with --dir"),
        ("hash --keys 1", "--entries"),
        ("hash --keys 200000000", "choose fewer with --engines, or fewer --keys"),
        ("hash --part spill --run-time 0", "--run-time is 0.001 to 3600"),
        ("hash --part spill --smoke --dir /proc/nowhere", "choose a folder with --dir"),
        ("ordered --engines jdk-skiplist", "add --jvm"),
        ("ordered --key-bytes 7", "raise --key-bytes or --value-bytes"),
        ("ordered --key-bytes 8 --key-shape middle", "have at least 9 bytes: raise --key-bytes"),
        ("ordered --value-bytes 65536", "lower --value-bytes"),
        ("ordered --entries 1", "with --entries"),
        ("rollup --engines druid-onheap", "add --druid"),
        ("rollup --engines duckdb", "add --frames"),
        ("rollup --sets wikiticker", "say with --wikiticker FILE"),
        ("rollup --rows 0", "choose 1 to "),
        ("server --seconds 0", "above 0"),
        ("trees --engines pmdk-btree", "pmdk-btree runs in a process of its own: add --pmdk"),
        ("trees --keys 0", "choose 1 to "),
        ("trees --smoke --dir /proc/nowhere", "choose a folder with --dir"),
    ] {
        check(words, message);
    }
}

fn check(words: &str, message: &str) {
    let error = run(words).expect_err("it cannot run").to_string();
    assert!(error.contains(message), "{words} answers {error:?}");
}
