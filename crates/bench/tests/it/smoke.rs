//! A smoke run prints a line for every figure.

use std::collections::BTreeSet;

use crate::{Lines, is_installed, run, run_in_folder};

fn smoke(words: &str) -> Lines {
    let (bench, flags) = words.split_once(' ').expect("flags");
    let lines = Lines::of(&run_in_folder(&format!("{bench} --smoke --json {flags}")).expect(words));
    assert_eq!(lines.texts("bench"), BTreeSet::from([bench]));
    lines
}

#[test]
fn ordered() {
    let lines = smoke("ordered --threads 1,2");
    assert!(lines.0.iter().all(|line| line["min"].as_f64() > Some(0.0)));
    let data =
        ["100+1000 B", "1024+100 B, shared middle", "8+8 B", "81+100 B, shared middle", "flights"];
    assert_eq!(lines.texts("data"), BTreeSet::from(data));
    let engines = [
        "RwLock<BTreeMap>",
        "crossbeam-skiplist",
        "floor (flat arena)",
        "masstree",
        "sapwood",
        "scc::TreeIndex",
    ];
    assert_eq!(lines.texts("engine"), BTreeSet::from(engines));
    // Ours has no figure left out: 5 data, the ingest, the scans before the timed ones, 21
    // workloads on 2 thread counts.
    let ours = lines.0.iter().filter(|line| line["engine"] == "sapwood").count();
    let latencies = lines.count("sapwood", "ns");
    assert_eq!((ours - latencies, latencies), (5 * (2 + 21 * 2), 5 * 21 * 2));
    // 1,000 entries of 1,100 bytes are not read in 5 us: times must not be cut off below.
    let scans: Vec<u64> = lines
        .all("sapwood", "scan-ascending-stream")
        .into_iter()
        .filter(|line| line["unit"] == "ns" && line["data"] == "100+1000 B")
        .map(|line| line["p50_ns"].as_u64().expect("a time"))
        .collect();
    assert!(scans.len() == 2 && scans.iter().all(|&ns| ns > 5_000), "scans take {scans:?} ns");
    let bytes = lines.find("sapwood", "ingest", "ops/s")["accounted_bytes_per_entry"].as_f64();
    assert!(bytes > Some(1100.0), "an entry of 1,100 bytes takes {bytes:?}");
}

#[test]
fn ordered_in_all_key_shapes() {
    for shape in ["prefix", "middle"] {
        let flags = format!("--data generated --key-shape {shape} --engines sapwood");
        let lines = smoke(&format!("ordered {flags}"));
        let data = format!("100+1000 B, shared {shape}");
        assert_eq!(lines.texts("data"), BTreeSet::from([data.as_str()]));
    }
}

#[test]
fn ordered_in_runs_that_are_made_longer() {
    let flags = "--entries 500 --ops 10 --runs 1 --threads 1 --no-latencies --least-ms 5";
    // What answers wrongly ends the bench.
    let printed = run(&format!("ordered {flags} --engines sapwood --json")).expect("it runs");
    assert_eq!(Lines::of(&printed).0.len(), 2 + 21);
}

#[test]
fn hash_in_memory() {
    let lines = smoke("hash --part memory --threads 1,2");
    let engines = [
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
    ];
    assert_eq!(lines.texts("engine"), BTreeSet::from(engines));
    // No figure was left out: 7 mixes, 2 draws, 2 thread counts.
    for engine in ["sapwood", "sapwood-batch-16", "dashmap", "papaya", "moka", "mutex-hashmap"] {
        let loads = lines.all(engine, "load").len();
        let counts = (lines.count(engine, "ops/s") - loads, lines.count(engine, "ns"));
        assert_eq!(counts, (28, 28), "{engine}");
    }
    let dashmap = lines.find("dashmap", "read uniform", "ops/s");
    let times = &dashmap["times_as_fast"]["sapwood-batch-16"];
    assert!(times["min"].as_f64() <= times["median"].as_f64(), "{times}");
    let memory = lines.find("sapwood", "memory", "bytes/entry");
    let bytes = memory["accounted_bytes_per_entry"].as_f64();
    assert!(bytes > Some(24.0), "a record of 24 bytes takes {bytes:?}");
}

#[test]
fn hash_beyond_memory() {
    let lines = smoke("hash --part spill --threads 1,2");
    for engine in ["sapwood", "sapwood-batch-64", "sapwood-batch-1024", "sapwood-stay"] {
        let misses = lines.find(engine, "read uniform", "misses/op")["median"].as_f64();
        assert!((Some(0.3)..=Some(1.0)).contains(&misses), "{engine} missed {misses:?}");
    }
    // Three workloads that read, two draws, two thread counts.
    for depth in ["floor-disk-1", "floor-disk-2", "floor-disk-64", "floor-disk-128"] {
        assert_eq!(lines.0.iter().filter(|line| line["engine"] == depth).count(), 12, "{depth}");
    }
    let mut shares = lines.all("sapwood-batch-1024", "read-modify-write uniform");
    shares.retain(|line| line["unit"] == "share of disk");
    let depths: Vec<_> = shares.iter().map(|line| &line["reads_in_flight"]).collect();
    assert_eq!(depths, [128, 128]);
}

#[test]
fn aggregate() {
    let lines = smoke("aggregate --threads 1,2");
    let of = |engine: &str, workload: &str| lines.all(engine, workload);
    let all = ["everything", "range of 100 %", "range of 10 %", "range of 0.5 %"];
    let lists = ["list of 10 %", "list of 0.5 %"];
    let all_lists = ["list of 100 %", "list of 10 %", "list of 0.5 %"];
    for (engine, workloads) in [
        ("sapwood-look-up", [&all[1..], &all_lists].concat()),
        ("sapwood-walk", [&all[..], &lists].concat()),
        ("sapwood-log", [&all[..], &lists].concat()),
        ("sapwood-planner", [&all[..], &lists].concat()),
        ("sapwood-ordered-look-up", all_lists.to_vec()),
        ("sapwood-ordered-range", [&all[..], &lists].concat()),
        ("sapwood-ordered-planner", lists.to_vec()),
        ("floor-records", all.to_vec()),
        ("floor-column", vec!["everything"]),
        ("floor-look-up", [&all[1..], &all_lists].concat()),
    ] {
        for workload in workloads {
            // Two sizes, two thread counts.
            assert_eq!(of(engine, workload).len(), 4, "{engine}, {workload}");
        }
    }
    for (engine, pick) in [
        ("sapwood-walk", "everything"),
        ("sapwood-log", "everything"),
        ("floor-records", "everything"),
        ("sapwood-look-up", "range of 10 %"),
        ("sapwood-ordered-range", "range of 10 %"),
        ("sapwood-ordered-look-up", "list of 10 %"),
        ("floor-look-up", "list of 10 %"),
    ] {
        assert_eq!(of(engine, &format!("disaggregate over {pick}")).len(), 4, "{engine}, {pick}");
    }
    let log = of("sapwood-log", "everything")[0];
    assert!(log["share_of_floor"]["median"].as_f64() > Some(0.0), "{log}");
    assert!(log["times_ramcloud"].as_f64() > Some(0.0), "{log}");
    let bytes = log["bytes_per_entry"].as_f64();
    assert!(bytes > Some(24.0), "a record of 24 bytes takes {bytes:?}");
    for planned in of("sapwood-planner", "list of 0.5 %") {
        assert_eq!(planned["executor"], "look-up", "{planned}");
    }
    for (executor, sums) in [
        ("log", "everything"),
        ("log-moment", "everything"),
        ("walk", "everything"),
        ("look-up", "range of 100 %"),
    ] {
        let engine = format!("sapwood-{executor}");
        for company in ["no writer", "a writer"] {
            assert_eq!(of(&engine, &format!("{sums}, {company}")).len(), 2, "{engine}");
        }
        let writes = of("sapwood-writer", &format!("writes beside {executor}"));
        assert_eq!(writes.len(), 2, "{executor}");
    }
    assert_eq!(of("sapwood-ordered-writer", "writes beside range").len(), 2);
}

/// Peers in other programs are measured by hand alone: they need a JDK, Maven, Python and a
/// network.
#[test]
fn rollup() {
    eprintln!(
        "passed over: druid-onheap, duckdb, datafusion; `sapwood-bench rollup --smoke --druid --frames` has them"
    );
    let lines = smoke("rollup --threads 1,2");
    assert_eq!(lines.texts("engine"), BTreeSet::from(["hash-map", "sapwood-rollup"]));
    // The synthetic stream at three granularities, and the flights.
    const SETS: usize = 4;
    for (engine, questions, sizes) in [
        // One thread asks the map, and live facts alone.
        ("hash-map", 5, 1),
        // By one thread and two, live facts and segments; live facts are trimmed.
        ("sapwood-rollup", 5 * 2 * 2, 3),
    ] {
        assert_eq!(
            ["rows/s", "questions/s", "bytes/fact"].map(|unit| lines.count(engine, unit)),
            // Columns and JSON lines, by one thread and two.
            [SETS * 2 * 2, SETS * questions, SETS * sizes],
            "{engine}"
        );
    }
}

#[test]
fn rollup_of_edits_with_nulls_and_truth_values_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("edits.json");
    let edit = |time: &str, city: &str, added: i64| {
        format!(
            r##"{{"time":"2015-09-12T{time}Z","channel":"#fr.wikipedia","cityName":{city},"countryName":null,"isRobot":false,"namespace":"Main","added":{added},"delta":-1,"comment":"\u00e9"}}"##
        )
    };
    let edits = [
        edit("00:46:58.771", "null", 36),
        edit("00:47:00.496", "null", 1),
        edit("01:02:00.000", r#""Lyon""#, 5),
    ];
    std::fs::write(&file, edits.join("\n")).expect("a file");
    let flags = "--json --runs 1 --threads 1 --sets wikiticker --wikiticker";
    let rollup = || run_in_folder(&format!("rollup {flags} {}", file.display()));
    let lines = Lines::of(&rollup().expect("it runs"));
    assert_eq!(lines.texts("engine"), BTreeSet::from(["hash-map", "sapwood-rollup"]));
    assert!(lines.texts("workload").contains("json, wikiticker"));
    assert!(lines.0.iter().all(|line| line["entries"] == 3));

    std::fs::write(&file, "{\"time\":\"yesterday\"}\n").expect("a file");
    let error = rollup().expect_err("no time").to_string();
    assert!(error.contains("line 1 is no edit"), "{error}");
}

/// A server that is not installed is left out with a sentence.
#[test]
fn server() {
    for (engine, is_there) in [("floor-epoll", true), ("memcached", is_installed("memcached"))] {
        let flags = format!("--engines sapwood,{engine} --workloads closed,open,sum");
        let lines = smoke(&format!("server {flags}"));
        let counts = |engine| ["ops/s", "ns", "objects/s"].map(|unit| lines.count(engine, unit));
        // 2 commands, 6 shapes of a closed loop and one of an open one; sums without the script.
        assert_eq!(counts("sapwood"), [14, 14, 7], "{engine}");
        let sums = if engine == "memcached" { 3 } else { 0 };
        let expected = if is_there { [14, 14, sums] } else { [0; 3] };
        assert_eq!(counts(engine), expected, "{engine}");
    }
}

/// The loop is left out with a sentence where the system has no io_uring.
#[test]
fn server_over_io_uring() {
    let flags = "--smoke --no-memory --servers floor-epoll,floor-io_uring --workloads closed";
    let printed = run(&format!("server {flags}")).expect("it runs");
    let of = |engine: &str| printed.lines().filter(|line| line.contains(engine)).count();
    // The floor is measured all the same: a rate and a latency for each of 12 workloads; where both
    // are, there is the head of the comparison, too.
    let is_left_out = printed.contains("left out: floor-io_uring: ");
    let uring = if is_left_out { 1 } else { 25 };
    assert_eq!((of("floor-io_uring"), of("floor-epoll")), (uring, 24), "{printed}");
}

#[test]
fn trees() {
    let lines = smoke("trees --keys 600");
    let ours = ["sapwood-btree", "sapwood-crit-bit", "sapwood-red-black"];
    let all = ["floor-fdatasync", "redb", "std-btreemap"].into_iter().chain(ours);
    assert_eq!(lines.texts("engine"), all.collect());
    for engine in ours {
        // Six workloads, commits of one writer and of many, recovery, and removes from a larger
        // tree, in two orders.
        let counts = ["ops/s", "log bytes/op", "log bytes/s"].map(|unit| lines.count(engine, unit));
        assert_eq!(counts, [20, 6, 2], "{engine}");
    }
    let peers = ["redb", "std-btreemap", "floor-fdatasync"];
    assert_eq!(peers.map(|engine| lines.count(engine, "ops/s")), [16, 12, 2]);
    for line in lines.0.iter().filter(|line| line["unit"] == "log bytes/op") {
        assert!(line["median"].as_f64() >= Some(16.0), "less than its entry: {line}");
    }
}

#[test]
fn durability() {
    let engines = ["sapwood-ordered", "sapwood-hash", "redb", "floor-disk"];
    let lines = smoke(&format!("durability --writers 1,3 --engines {}", engines.join(",")));
    assert_eq!(lines.texts("engine"), engines.into_iter().collect());
    for engine in ["sapwood-ordered", "sapwood-hash"] {
        for (unit, count) in [
            // Four levels of two sizes by one writer and by three; one and two writers with a
            // checkpoint and without one.
            ("ops/s", 16 + 4),
            ("ns", 4),
            // Memory has no log.
            ("log bytes/s", 12),
            ("log bytes/op", 4),
            // Two checkpoints beside writers; opened from a checkpoint, and from the log.
            ("s", 2 + 2),
        ] {
            assert_eq!(lines.count(engine, unit), count, "{engine}, {unit}");
        }
    }
    assert_eq!((lines.count("redb", "ops/s"), lines.count("floor-disk", "ops/s")), (8, 2));
    for line in lines.0.iter().filter(|line| line["unit"] == "log bytes/op") {
        let bytes = |field: &str| line[field].as_f64().expect("bytes");
        assert!(bytes("median") >= bytes("user_bytes"), "less than what changed: {line}");
    }
}

/// A server that is not installed is left out with a sentence.
#[test]
fn durability_of_redis() {
    let flags = "--smoke --part levels,recovery --writers 2 --engines redis";
    let printed = run_in_folder(&format!("durability {flags}")).expect("it runs");
    let rows = printed.lines().filter(|line| line.contains("redis  ")).count();
    let left_out = printed.matches("left out: redis").count();
    // Four levels of two sizes, and two kinds of files; else a sentence for each size and the
    // files.
    let expected = if is_installed("redis-server") { (10, 0) } else { (0, 3) };
    assert_eq!((rows, left_out), expected, "{printed}");
}
