//! `sapwood-bench ordered`.

use std::collections::BTreeSet;

use crate::{check_line, check_refused, check_texts, lines, texts};

bench!(ordered);

#[test]
fn a_smoke_run_prints_a_line_for_every_figure() {
    let lines = lines(&ordered(&["--smoke", "--json", "--threads", "1,2"]).expect("it runs"));
    for line in &lines {
        assert_eq!(line["bench"], "ordered");
        check_line(line);
        assert!(line["min"].as_f64() > Some(0.0), "{line}");
    }
    assert_eq!(
        texts(&lines, "data"),
        BTreeSet::from([
            "100+1000 B",
            "1024+100 B, shared middle",
            "8+8 B",
            "81+100 B, shared middle",
            "flights",
        ])
    );
    assert_eq!(
        texts(&lines, "engine"),
        BTreeSet::from([
            "RwLock<BTreeMap>",
            "crossbeam-skiplist",
            "floor (flat arena)",
            "masstree",
            "sapwood",
            "scc::TreeIndex",
        ])
    );
    // Ours has no figure left out: 5 data, the ingest, the scans before the timed ones, 21
    // workloads on 2 thread counts.
    let ours: Vec<_> = lines.iter().filter(|line| line["engine"] == "sapwood").collect();
    let rates = ours.iter().filter(|line| line["unit"] != "ns").count();
    let latencies = ours.iter().filter(|line| line["unit"] == "ns").count();
    assert_eq!((rates, latencies), (5 * (2 + 21 * 2), 5 * 21 * 2));
    // 1,000 entries of 1,100 bytes are not read in 5 us: times must not be cut off below.
    let scans: Vec<u64> = ours
        .iter()
        .filter(|line| line["unit"] == "ns" && line["data"] == "100+1000 B")
        .filter(|line| line["workload"] == "scan-ascending-stream")
        .map(|line| line["p50_ns"].as_u64().expect("a time"))
        .collect();
    assert!(scans.len() == 2 && scans.iter().all(|&ns| ns > 5_000), "scans take {scans:?} ns");
    let ingest =
        lines.iter().find(|line| line["engine"] == "sapwood" && line["workload"] == "ingest");
    let bytes = ingest.expect("ours is loaded")["accounted_bytes_per_entry"]
        .as_f64()
        .expect("by its stats");
    assert!(bytes > 1100.0, "an entry of 1,100 bytes takes {bytes}");
}

#[test]
fn tables_name_engines_bars_and_the_command() {
    let flags =
        ["--entries", "2000", "--runs", "3", "--scans", "2", "--threads", "1", "--no-latencies"];
    let printed = ordered(&[&flags[..], &["--engines", "sapwood,crossbeam-skiplist"]].concat())
        .expect("it runs");
    let wanted = [
        "sapwood: put against crossbeam-skiplist",
        "sapwood: ingest accounted bytes per entry of payload bytes per entry",
        "pass --full to judge them",
        "Repeat with: ",
    ];
    check_texts(&printed, &wanted, &[]);
}

#[test]
fn all_key_shapes_run() {
    for shape in ["prefix", "middle"] {
        let flags = [
            "--smoke",
            "--json",
            "--data",
            "generated",
            "--key-shape",
            shape,
            "--engines",
            "sapwood",
        ];
        let lines = lines(&ordered(&flags).expect("it runs"));
        let data = format!("100+1000 B, shared {shape}");
        assert_eq!(texts(&lines, "data"), BTreeSet::from([data.as_str()]));
    }
}

#[test]
fn runs_are_made_longer() {
    let flags = [
        "--entries",
        "500",
        "--ops",
        "10",
        "--runs",
        "1",
        "--threads",
        "1",
        "--no-latencies",
        "--least-ms",
        "5",
        "--engines",
        "sapwood",
        "--json",
    ];
    // What answers wrongly ends the bench.
    let lines = lines(&ordered(&flags).expect("it runs"));
    assert_eq!(lines.len(), 2 + 21);
}

#[test]
fn what_cannot_run_is_explained() {
    check_refused(
        ordered,
        &[
            (&["--engines", "rocksdb"], "no engine is called rocksdb: choose from sapwood, "),
            (&["--engines", "jdk-skiplist"], "add --jvm"),
            (&["--workloads", "fly"], "no workload is called fly: choose from get-zero-copy, "),
            (&["--key-bytes", "7"], "raise --key-bytes or --value-bytes"),
            (
                &["--key-bytes", "8", "--key-shape", "middle"],
                "have at least 9 bytes: raise --key-bytes",
            ),
            (&["--value-bytes", "65536"], "lower --value-bytes"),
            (&["--entries", "1"], "with --entries"),
            (&["--threads", "0"], "at least 1"),
            (&["--runs", "0"], "at least 1"),
        ],
    );
}
