//! `sapwood-bench durability`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use sapwood_bench::Error;
use sapwood_bench::durability::{DurableEngine, DurableStore, Level, run_with};
use serde_json::Value;

use crate::{Command, check_line, check_refused, check_texts, lines, texts};

bench!(durability);

/// Figures of an engine in a unit.
fn count(lines: &[Value], engine: &str, unit: &str) -> usize {
    lines.iter().filter(|line| line["engine"] == engine && line["unit"] == unit).count()
}

#[test]
fn a_smoke_run_prints_a_line_for_every_figure_and_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().to_str().expect("a folder in words");
    let ours = ["sapwood-ordered", "sapwood-hash", "redb", "floor-disk"];
    let flags = ["--smoke", "--json", "--writers", "1,3", "--dir", path, "--engines"];
    let printed = durability(&[&flags[..], &[&ours.join(",")]].concat()).expect("it runs");
    let lines = lines(&printed);
    lines.iter().for_each(check_line);
    assert_eq!(texts(&lines, "bench"), BTreeSet::from(["durability"]));
    assert_eq!(texts(&lines, "engine"), ours.into_iter().collect());
    // Four levels of two sizes by one writer and by three; one and two writers with a checkpoint
    // and without one.
    for engine in ["sapwood-ordered", "sapwood-hash"] {
        assert_eq!(count(&lines, engine, "ops/s"), 16 + 4, "{engine}");
        assert_eq!(count(&lines, engine, "ns"), 4, "{engine}");
        // Memory has no log.
        assert_eq!(count(&lines, engine, "log bytes/s"), 12, "{engine}");
        assert_eq!(count(&lines, engine, "log bytes/op"), 4, "{engine}");
        // Two checkpoints beside writers; opened from a checkpoint, and from the log.
        assert_eq!(count(&lines, engine, "s"), 2 + 2, "{engine}");
    }
    assert_eq!((count(&lines, "redb", "ops/s"), count(&lines, "floor-disk", "ops/s")), (8, 2));
    for line in lines.iter().filter(|line| line["unit"] == "log bytes/op") {
        let bytes = |field: &str| line[field].as_f64().expect("bytes");
        assert!(bytes("median") >= bytes("user_bytes"), "less than what changed: {line}");
    }
    let left = std::fs::read_dir(dir.path()).expect("the folder is still there").count();
    assert_eq!(left, 0, "files were left behind");
}

/// A server that is not installed is left out with a sentence.
#[test]
fn redis_is_measured_where_it_is_installed() {
    let flags = ["--smoke", "--part", "levels,recovery", "--writers", "2", "--engines", "redis"];
    let printed = durability(&flags).expect("it runs");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_installed =
        std::env::split_paths(&path).any(|folder| folder.join("redis-server").is_file());
    let rows = printed.lines().filter(|line| line.contains("redis  ")).count();
    let left_out = printed.matches("left out: redis").count();
    // Four levels of two sizes, and two kinds of files; else a sentence for each size and the
    // files.
    let expected = if is_installed { (10, 0) } else { (0, 3) };
    assert_eq!((rows, left_out), expected, "{printed}");
}

#[test]
fn the_tables_name_engines_targets_and_the_command() {
    let sizes = ["--keys", "1000", "--checkpointed", "500", "--recovered", "1000"];
    let short = ["--seconds", "0.02", "--runs", "2", "--writers", "1,50", "--engines"];
    let engines = "sapwood-ordered,floor-disk";
    let printed = durability(&[&sizes[..], &short, &[engines]].concat()).expect("it runs");
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

#[test]
fn what_cannot_run_is_explained() {
    check_refused(
        durability,
        &[
            (&["--engines", "lmdb"], "no engine is called lmdb: choose from sapwood-ordered, "),
            (&["--part", "nothing"], "--part"),
            (&["--levels", "forever"], "--levels"),
            (&["--runs", "0"], "at least 1"),
            (&["--writers", "0"], "at least 1"),
            (&["--seconds", "0"], "above 0"),
            (&["--smoke", "--dir", "/proc/nowhere"], "choose a folder with --dir"),
        ],
    );
}

/// A map that counts its syncs, and loses what is put to it where it is told to.
#[derive(Default)]
struct Map {
    entries: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    loses: bool,
}

static SYNCS: AtomicU64 = AtomicU64::new(0);

impl DurableStore for Map {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let value = if self.loses { &value[1..] } else { value };
        self.entries.lock().expect("no panic").insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn load(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        self.entries.lock().expect("no panic").extend(entries.iter().cloned());
        Ok(())
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        if let Some(value) = self.entries.lock().expect("no panic").get(key) {
            read(value);
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Error> {
        SYNCS.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn settle(&self) -> Result<(), Error> {
        Ok(())
    }
}

fn with_maps(flags: &[&str]) -> String {
    let engines = [
        DurableEngine {
            name: "map",
            open: |place| {
                Ok((place.level == Level::Async)
                    .then(|| Box::<Map>::default() as Box<dyn DurableStore>))
            },
        },
        DurableEngine {
            name: "sieve",
            open: |_| Ok(Some(Box::new(Map { loses: true, ..Map::default() }))),
        },
    ];
    let all = ["--smoke", "--part", "levels", "--data", "small", "--writers", "2"];
    let chosen = ["--engines", "map,sieve", "--runs", "1"];
    let args = Command::args(&[&all[..], &chosen, flags].concat()).expect("flags");
    let mut printed = Vec::new();
    run_with(&args, &engines, &mut printed).expect("it runs");
    String::from_utf8(printed).expect("it prints words")
}

#[test]
fn an_engine_without_a_thread_is_synced_beside_its_writers() {
    let before = SYNCS.load(Ordering::SeqCst);
    let printed = with_maps(&["--levels", "async,sync", "--seconds", "0.25"]);
    // A run is longer than the time between two syncs: there is one, however late the thread wakes.
    assert!(SYNCS.load(Ordering::SeqCst) > before, "{printed}");
    assert!(printed.contains("left out: map has no level sync"), "{printed}");
}

#[test]
fn a_peer_that_loses_values_has_no_figures() {
    let printed = with_maps(&["--levels", "async"]);
    assert!(printed.contains("put 8 B, async"), "{printed}");
    let lost = "sieve, put 8 B, async on 2 threads: a key has lost its value";
    assert!(printed.contains(lost), "{printed}");
    assert!(!printed.lines().any(|line| line.contains("sieve  ")), "{printed}");
}
