//! Tables name engines, workloads, targets and the command that repeats them.

use crate::{check_texts, run, run_in_folder};

#[test]
fn ordered() {
    let flags = "--entries 2000 --runs 3 --scans 2 --threads 1 --no-latencies";
    let printed = run(&format!("ordered {flags} --engines sapwood,crossbeam-skiplist"));
    let wanted = [
        "sapwood: put against crossbeam-skiplist",
        "sapwood: ingest accounted bytes per entry of payload bytes per entry",
        "pass --full to judge them",
        "Repeat with: ",
    ];
    check_texts(&printed.expect("it runs"), &wanted, &[]);
}

#[test]
fn hash() {
    let flags = "--keys 5000 --ops 2000 --runs 2 --threads 1";
    let engines = "sapwood,sapwood-batch-16,hashbrown-shards,floor-record";
    let printed = run(&format!("hash {flags} --engines {engines}")).expect("it runs");
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
fn aggregate() {
    let flags = "aggregate --objects 5000 --runs 2 --threads 1";
    let ours = "sapwood-look-up,sapwood-walk,sapwood-log,sapwood-planner,sapwood-ordered-range";
    let others = "sapwood-ordered-look-up,floor-records,floor-look-up";
    let printed = run(&format!("{flags} --engines {ours},{others}")).expect("it runs");
    let wanted = [
        "5000 entries, 8+8 B",
        "; hash table: ",
        "executor look-up, share of floor",
        "; ordered table: ",
        "sapwood-log: everything against floor-records",
        "sapwood-walk: everything against floor-look-up, list of 10 %",
        "sapwood-look-up: list of 10 % against floor-look-up",
        "sapwood-ordered-range: range of 100 % against floor-records, everything",
        "sapwood-ordered-range: range of 0.5 % against floor-records, everything",
        "sapwood-ordered-look-up: list of 100 % against floor-look-up",
        "sapwood-ordered-look-up: list of 0.5 % against floor-look-up",
        "sapwood-planner: list of 10 % against sapwood-",
        "sapwood-log: disaggregate over everything against floor-records",
        "sapwood-look-up: disaggregate over list of 10 % against floor-look-up",
        "everything, a writer, objects/ms",
        "pass --objects 10000000 to judge them",
        "Repeat with: ",
    ];
    check_texts(&printed, &wanted, &[]);
    let printed = run(&format!("{flags} --engines sapwood-log,floor-records --part sums"));
    // A rate of another machine is no bar, and no other table was asked for.
    let unwanted = ["sapwood-ordered", "Tarantool", "of 25000 objects", "of 400000 objects"];
    check_texts(&printed.expect("it runs"), &[], &unwanted);
}

#[test]
fn rollup() {
    let flags = "--rows 5000 --runs 1 --granularity hour --threads 1,2 --sets synthetic";
    let wanted = [
        "5000 entries, synthetic",
        "ingest, hour",
        "json, hour",
        "group-by, hour",
        "group-by of files, hour",
        "timeseries, hour",
        "top-n of files, hour",
        "sapwood-rollup: ingest, hour against druid-onheap as measured before",
        "sapwood-rollup: ingest, hour against 1 thread",
        "sapwood-rollup: ingest, hour against hash-map",
        "this run has 5000 entries",
        "Repeat with: ",
    ];
    let printed = run_in_folder(&format!("rollup {flags}")).expect("it runs");
    check_texts(&printed, &wanted, &["all:", "flights", " hit", " miss"]);
}

#[test]
fn trees() {
    let flags = "--keys 500 --syncs 32 --runs 2 --order random";
    let phases = "insert-each,insert-together,remove-together,remove-tenfold,sync,get,recover";
    let printed = run_in_folder(&format!("trees {flags} --workloads {phases}")).expect("it runs");
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
fn durability() {
    let sizes = "--keys 1000 --checkpointed 500 --recovered 1000";
    let short = "--seconds 0.02 --runs 2 --writers 1,50 --engines sapwood-ordered,floor-disk";
    let printed = run_in_folder(&format!("durability {sizes} {short}")).expect("it runs");
    let wanted = [
        "put 8 B, async",
        "sapwood-ordered: put 1 KB, async against put 1 KB, memory",
        "sapwood-ordered: put 8 B, sync against 1 thread",
        "sapwood-ordered: put beside a checkpoint against put without a checkpoint",
        "sapwood-ordered: recovery from log of 5.00 s",
        "sequential, MB/s",
        "update 8 B of 1 KB",
        "(this run has 1000 entries: pass --full to judge them)",
        "Repeat with: ",
    ];
    check_texts(&printed, &wanted, &["sapwood-hash"]);
}
