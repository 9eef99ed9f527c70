//! `sapwood-bench server`.

use std::collections::BTreeSet;

use crate::{check_line, lines, texts};

bench!(server);

#[test]
fn a_smoke_run_prints_a_line_for_every_figure() {
    let flags = ["--smoke", "--json", "--engines", "sapwood,floor-epoll"];
    let loops = ["--workloads", "closed loop,open loop,sum"];
    let lines = lines(&server(&[&flags[..], &loops].concat()).expect("it runs"));
    lines.iter().for_each(check_line);
    assert_eq!(texts(&lines, "bench"), BTreeSet::from(["server"]));
    assert_eq!(texts(&lines, "engine"), BTreeSet::from(["floor-epoll", "sapwood"]));
    let of = |engine: &str, unit: &str| {
        lines.iter().filter(|line| line["engine"] == engine && line["unit"] == unit).count()
    };
    // 2 commands, 6 shapes of a closed loop and one of an open one; sums without the script.
    for engine in ["sapwood", "floor-epoll"] {
        assert_eq!((of(engine, "ops/s"), of(engine, "ns")), (14, 14), "{engine}");
    }
    assert_eq!(of("sapwood", "objects/s"), 7);
}

/// A server that is not installed is left out with a sentence.
#[test]
fn memcached_is_measured_where_it_is_installed() {
    let flags = ["--smoke", "--json", "--engines", "sapwood,memcached"];
    let flags = [&flags[..], &["--workloads", "closed loop,open loop,sum"]].concat();
    let lines = lines(&server(&flags).expect("it runs"));
    lines.iter().for_each(check_line);
    let of = |unit: &str| {
        let is_its = |line: &&serde_json::Value| line["engine"] == "memcached";
        lines.iter().filter(is_its).filter(|line| line["unit"] == unit).count()
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_installed =
        std::env::split_paths(&path).any(|folder| folder.join("memcached").is_file());
    let expected = if is_installed { (14, 14, 3) } else { (0, 0, 0) };
    assert_eq!((of("ops/s"), of("ns"), of("objects/s")), expected);
}

/// The loop is left out with a sentence where the system has no io_uring.
#[test]
fn io_uring_is_measured_beside_epoll() {
    let flags = ["--smoke", "--no-memory", "--servers", "floor-epoll,floor-io_uring"];
    let flags = [&flags[..], &["--workloads", "closed loop"]].concat();
    let printed = server(&flags).expect("it runs");
    let of = |engine: &str| printed.lines().filter(|line| line.contains(engine)).count();
    if printed.contains("left out: floor-io_uring: ") {
        // The floor is measured all the same: a rate and a latency for each of 12 workloads.
        assert_eq!((of("floor-io_uring"), of("floor-epoll")), (1, 24), "{printed}");
    } else {
        // And the head of the comparison.
        assert_eq!((of("floor-io_uring"), of("floor-epoll")), (25, 24), "{printed}");
    }
}

#[test]
fn names_that_are_not_known_are_refused() {
    for flags in [["--servers", "oracle"], ["--workloads", "nothing"], ["--seconds", "0"]] {
        assert!(server(&flags).is_err(), "{flags:?}");
    }
}
