//! `sapwood-bench hash`.

use std::collections::BTreeSet;

use crate::{check_line, check_refused, check_texts, lines, texts};

bench!(hash);

#[test]
fn a_smoke_run_in_memory_prints_a_line_for_every_figure() {
    let flags = ["--smoke", "--json", "--part", "memory", "--threads", "1,2"];
    let lines = lines(&hash(&flags).expect("it runs"));
    lines.iter().for_each(check_line);
    assert_eq!(texts(&lines, "bench"), BTreeSet::from(["hash"]));
    assert_eq!(
        texts(&lines, "engine"),
        BTreeSet::from([
            "dashmap",
            "floor-bucket-and-record",
            "floor-chain",
            "floor-record",
            "hashbrown-shards",
            "moka",
            "mutex-hashmap",
            "papaya",
            "papaya-atomic",
            "sapwood",
            "sapwood-batch-16",
            "sapwood-batch-32",
            "scc",
        ])
    );
    // No figure was left out: 7 mixes, 2 draws, 2 thread counts.
    for engine in ["sapwood", "sapwood-batch-16", "dashmap", "papaya", "moka", "mutex-hashmap"] {
        let of = |unit: &str| {
            let loads = ["load", "memory"].map(serde_json::Value::from);
            let timed = |line: &&serde_json::Value| {
                line["engine"] == engine
                    && line["unit"] == unit
                    && !loads.contains(&line["workload"])
            };
            lines.iter().filter(timed).count()
        };
        assert_eq!((of("ops/s"), of("ns")), (28, 28), "{engine}");
    }
    let against = lines.iter().find(|line| {
        line["engine"] == "dashmap" && line["workload"] == "read uniform" && line["unit"] == "ops/s"
    });
    let times = &against.expect("dashmap reads")["times_as_fast"]["sapwood-batch-16"];
    assert!(times["min"].as_f64() <= times["median"].as_f64(), "{times}");
    let bytes =
        lines.iter().find(|line| line["workload"] == "memory" && line["engine"] == "sapwood");
    let bytes = bytes.expect("ours is loaded")["accounted_bytes_per_entry"].as_f64();
    assert!(bytes > Some(24.0), "a record of 24 bytes takes {bytes:?}");
}

#[test]
fn a_smoke_run_beyond_memory_reads_the_disk() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().to_str().expect("a folder in words");
    let flags = ["--smoke", "--json", "--part", "spill", "--threads", "1,2", "--dir", path];
    let lines = lines(&hash(&flags).expect("it runs"));
    lines.iter().for_each(check_line);
    for engine in ["sapwood", "sapwood-batch-64", "sapwood-batch-1024", "sapwood-stay"] {
        let misses = lines.iter().find(|line| {
            line["engine"] == engine
                && line["workload"] == "read uniform"
                && line["unit"] == "misses/op"
        });
        let misses = misses.expect("reads are counted")["median"].as_f64().expect("a number");
        assert!((0.3..=1.0).contains(&misses), "{engine} missed {misses}");
    }
    // Three workloads that read, two draws, two thread counts.
    for depth in ["floor-disk-1", "floor-disk-2", "floor-disk-64", "floor-disk-128"] {
        assert_eq!(lines.iter().filter(|line| line["engine"] == depth).count(), 12, "{depth}");
    }
    let share = |line: &&serde_json::Value| {
        line["unit"] == "share of disk"
            && line["engine"] == "sapwood-batch-1024"
            && line["workload"] == "read-modify-write uniform"
    };
    let shares: Vec<_> = lines.iter().filter(share).map(|line| &line["reads_in_flight"]).collect();
    assert_eq!(shares, [128, 128]);
    let left = std::fs::read_dir(dir.path()).expect("the folder is still there").count();
    assert_eq!(left, 0, "files were left behind");
}

#[test]
fn tables_name_engines_bars_and_the_command() {
    let flags = ["--keys", "5000", "--ops", "2000", "--runs", "2", "--threads", "1"];
    let chosen = ["--engines", "sapwood,sapwood-batch-16,hashbrown-shards,floor-record"];
    let printed = hash(&[&flags[..], &chosen].concat()).expect("it runs");
    let wanted = [
        "hashbrown-shards",
        "sapwood: read uniform against hashbrown-shards",
        "sapwood-batch-16: update uniform against hashbrown-shards",
        "sapwood: memory of 40.0 B/entry",
        "pass --full to judge them",
        "Repeat with: ",
    ];
    // FASTER takes no part.
    check_texts(&printed, &wanted, &["faster"]);
}

#[test]
fn what_cannot_run_is_explained() {
    check_refused(
        hash,
        &[
            (&["--engines", "rocksdb"], "no engine is called rocksdb: choose from sapwood, "),
            (&["--workloads", "fly"], "no workload is called fly: choose from read, "),
            (&["--keys", "1"], "--entries"),
            (&["--keys", "200000000"], "choose fewer with --engines, or fewer --keys"),
            (&["--threads", "0"], "at least 1"),
            (&["--runs", "0"], "at least 1"),
            (&["--part", "spill", "--run-time", "0"], "--run-time is 0.001 to 3600"),
            (
                &["--part", "spill", "--smoke", "--dir", "/proc/nowhere"],
                "choose a folder with --dir",
            ),
        ],
    );
}
