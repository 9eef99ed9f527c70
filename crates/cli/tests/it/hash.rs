//! Rows in hash tables: in memory, and kept in a directory from one command to the next.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::{flights_path, sapwood, stdout_of};

const ROWS: &str = "k,n,v\na,1,x\nb,2,y\na,1,z\nc,3,w\n";

/// A directory with a file of rows, and where a database can be beside it.
struct Files {
    directory: TempDir,
}

impl Files {
    fn new() -> Self {
        let directory = TempDir::new().expect("a directory for the test");
        fs::write(directory.path().join("rows.csv"), ROWS).expect("a file for the test");
        Self { directory }
    }

    fn rows(&self) -> String {
        text(&self.directory.path().join("rows.csv"))
    }

    fn database(&self) -> String {
        text(&self.directory.path().join("database"))
    }

    /// Loads the rows into the database.
    fn load(&self, more: &[&str]) -> Value {
        let (rows, database) = (self.rows(), self.database());
        let mut args = vec!["load", &rows, "--key", "k,n", "--engine", "hash", "--json", "-q"];
        args.extend(["--dir", &database]);
        args.extend(more);
        serde_json::from_str(&stdout_of(&args)).expect("JSON")
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// The rows below the header, in order.
fn sorted(out: &str) -> Vec<&str> {
    let mut rows: Vec<&str> = out.lines().skip(1).collect();
    rows.sort_unstable();
    rows
}

#[track_caller]
fn refused(args: &[&str], code: i32, message: &str) {
    let output = sapwood(args).assert().code(code);
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    let error = stderr.split_once("error: ").unwrap_or_else(|| panic!("no error in {stderr}")).1;
    assert!(error.starts_with(message), "{stderr}");
}

#[test]
fn a_hash_table_in_memory_answers_as_an_ordered_one_but_for_order() {
    let files = Files::new();
    let path = files.rows();
    let common = ["--key", "k,n", "-q", "--show-errors", "0"];
    let with = |command: &[&'static str], engine: &'static str, more: &[&'static str]| {
        let mut args = vec![command[0], path.as_str()];
        args.extend(common);
        args.extend(["--engine", engine]);
        args.extend(more);
        stdout_of(&args)
    };
    for duplicates in ["first", "last"] {
        let scans = ["ordered", "hash"]
            .map(|engine| with(&["scan"], engine, &["--duplicates", duplicates]));
        assert_eq!(sorted(&scans[0]), sorted(&scans[1]), "{duplicates}");
        let gets = ["ordered", "hash"]
            .map(|engine| with(&["get"], engine, &["--duplicates", duplicates, "a", "1"]));
        assert_eq!(gets[0], gets[1], "{duplicates}");
        let loads = ["ordered", "hash"].map(|engine| {
            let out = with(&["load"], engine, &["--duplicates", duplicates, "--json"]);
            let report: Value = serde_json::from_str(&out).expect("JSON");
            ["rows", "entries", "duplicates", "malformed"].map(|name| report[name].clone())
        });
        assert_eq!(loads[0], loads[1], "{duplicates}");
    }
    let stats: Value = serde_json::from_str(&with(&["stats"], "hash", &["--json"])).expect("JSON");
    assert_eq!((&stats["entries_estimate"], &stats["file_bytes"]), (&3.into(), &0.into()));
    assert!(with(&["stats"], "hash", &[]).contains("log in memory"));
    assert_eq!(with(&["scan"], "hash", &["--limit", "2"]).lines().count(), 3);
}

#[test]
fn what_a_hash_table_cannot_do_is_refused() {
    let files = Files::new();
    let (path, database) = (files.rows(), files.database());
    files.load(&[]);
    for option in [&["--prefix", "a"][..], &["--from", "a"], &["--to", "b"], &["--reverse"]] {
        let message = format!("a hash table has no order: {} needs a tree table", option[0]);
        refused(
            &[&["scan", &path, "--key", "k", "--engine", "hash"], option].concat(),
            2,
            &message,
        );
        refused(&[&["scan", &database], option].concat(), 2, &message);
    }
    let load = ["load", &path, "--key", "k"];
    refused(
        &[&load[..], &["--engine", "hash", "--duplicates", "all"]].concat(),
        2,
        "a hash table has one row a key",
    );
    for option in
        [&["--key", "k"][..], &["--format", "csv"], &["--engine", "ordered"], &["--strict"]]
    {
        refused(&[&["scan", &database], option].concat(), 2, &database);
    }
    refused(&["get", &database, "a"], 2, "1 value given, the key has 2 columns");
}

#[test]
fn rows_are_kept_from_one_command_to_the_next() {
    let files = Files::new();
    let database = files.database();
    let report = files.load(&[]);
    assert_eq!((&report["entries"], &report["duplicates"]), (&3.into(), &1.into()));
    assert_eq!((&report["dir"], &report["table"]), (&database.as_str().into(), &"rows".into()));
    // The file is of no use any more.
    fs::remove_file(files.rows()).expect("it is there");
    assert_eq!(stdout_of(&["get", &database, "-q", "a", "1"]), "k  a\nn  1\nv  z\n");
    let json = stdout_of(&["get", &database, "--json", "b", "2"]);
    assert_eq!(json, "{\"k\":\"b\",\"n\":2,\"v\":\"y\"}\n");
    let scan = stdout_of(&["scan", &database]);
    assert_eq!(
        (scan.lines().next(), sorted(&scan)),
        (Some("k,n,v"), vec!["a,1,z", "b,2,y", "c,3,w"])
    );
    let stats: Value =
        serde_json::from_str(&stdout_of(&["stats", &database, "--json"])).expect("JSON");
    assert_eq!((&stats["entries_estimate"], &stats["key"]), (&3.into(), &"k:text,n:i64".into()));
    let compaction = ["compactions", "held_bytes", "compaction_error"].map(|name| &stats[name]);
    assert_eq!(compaction, [&0.into(), &0.into(), &Value::Null]);
    // The page that the last checkpoint closed is nearly empty.
    assert!(stats["garbage_bytes"].as_u64() > Some(1 << 20), "{stats}");
    assert!(stdout_of(&["stats", &database]).contains("held for checkpoints"));
    refused(&["get", &database, "x", "9"], 1, "no row has the key x,9 (k:text,n:i64)");
}

/// Commands that only read run side by side, and beside one that writes.
#[test]
fn readers_share_a_directory() {
    let files = Files::new();
    let database = files.database();
    files.load(&[]);
    let reads: [&[&str]; 4] = [
        &["get", &database, "-q", "a", "1"],
        &["scan", &database],
        &["stats", &database],
        &["aggregate", &database, "--select", "count"],
    ];
    let reader = sapwood::Db::open_read_only(&database).expect("it is there");
    let rows = reader.hash_table("rows").expect("it is there");
    let _writer = sapwood::Db::open(&database).expect("none writes");
    for args in reads {
        assert!(!stdout_of(args).is_empty(), "{args:?}");
    }
    assert!(!rows.is_empty().expect("read"));
    let load = ["load", &files.rows(), "--key", "k,n", "--engine", "hash", "--dir", &database];
    refused(&load, 1, &format!("another process has {database} open and changes it: "));
}

#[test]
fn a_second_load_adds_to_the_first() {
    let files = Files::new();
    let database = files.database();
    files.load(&[]);
    fs::write(files.rows(), "k,n,v\nd,4,new\nb,2,newer\n").expect("a file for the test");
    let report = files.load(&[]);
    assert_eq!((&report["entries"], &report["duplicates"]), (&4.into(), &1.into()));
    let rows = ["a,1,z", "b,2,newer", "c,3,w", "d,4,new"];
    assert_eq!(sorted(&stdout_of(&["scan", &database])), rows);
    // Other columns need another table, and both are there.
    fs::write(files.rows(), "k,n,other\ne,5,u\n").expect("a file for the test");
    let path = files.rows();
    let load = ["load", &path, "--key", "k,n", "--engine", "hash", "--dir", &database];
    refused(&load, 1, "table `rows` has no column `other`");
    stdout_of(&[&load[..], &["--table", "others"]].concat());
    assert_eq!(stdout_of(&["scan", &database, "--table", "others"]), "k,n,other\ne,5,u\n");
    assert_eq!(sorted(&stdout_of(&["scan", &database])), rows);
    refused(
        &["scan", &database, "--table", "none"],
        1,
        "no table `none`; there are: others, rows\n",
    );
    refused(
        &[&load[..], &["--table", "load.columns"]].concat(),
        2,
        "table `load.columns` describes the others",
    );
}

#[test]
fn a_load_that_fails_leaves_the_directory_as_it_was() {
    let files = Files::new();
    let database = files.database();
    files.load(&[]);
    fs::write(files.rows(), "k,n,v\nd,4,new\nd,4,newer\n").expect("a file for the test");
    let path = files.rows();
    let load = ["load", &path, "--key", "k,n", "--engine", "hash", "--dir", &database, "--strict"];
    refused(
        &load,
        1,
        &format!(
            "--strict: 0 malformed rows, 1 repeated key; nothing of the file is kept in {database}"
        ),
    );
    assert_eq!(sorted(&stdout_of(&["scan", &database])), ["a,1,z", "b,2,y", "c,3,w"]);
}

#[test]
fn json_lines_have_columns() {
    let files = Files::new();
    let path = text(&files.directory.path().join("rows.jsonl"));
    fs::write(&path, "{\"user\":\"ada\",\"n\":[1,2]}\n").expect("a file for the test");
    let database = files.database();
    stdout_of(&["load", &path, "--key", "user", "--engine", "hash", "--dir", &database]);
    // Arrays that are all of one length are arrays.
    let row = stdout_of(&["get", &database, "--json", "ada"]);
    assert_eq!(row, "{\"user\":\"ada\",\"n\":[1,2]}\n");
}

#[test]
fn a_directory_without_a_database_is_told() {
    let empty = TempDir::new().expect("a directory for the test");
    let path = text(empty.path());
    refused(&["scan", &path], 1, &format!("{path} is a directory that holds no database"));
    assert_eq!(fs::read_dir(&empty).expect("it is there").count(), 0, "looking makes nothing");
}

#[test]
fn flights_larger_than_the_budget_are_all_there() {
    let files = Files::new();
    let database = files.database();
    let flights: PathBuf = flights_path();
    let key = "carrier,flight,month,day,sched_dep_time";
    let report = stdout_of(&[
        "load",
        &text(&flights),
        "--key",
        key,
        "--engine",
        "hash",
        "--dir",
        &database,
        "--memory-budget",
        "16M",
        "--json",
        "-q",
    ]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["rows"], 336_776);
    let memory = report["reserved_bytes"].as_u64().expect("a number");
    let disk = report["file_bytes"].as_u64().expect("a number");
    assert!(memory <= 16 << 20 && disk > 2 * memory, "{report}");
    let one = stdout_of(&["get", &database, "--json", "UA", "1545", "1", "1", "515"]);
    assert!(one.contains("\"tailnum\":\"N14228\""), "{one}");
    let scan = stdout_of(&["scan", &database, "-q"]);
    assert_eq!(scan.lines().count(), 336_776 + 1);
    // A reader has as much as it asks for.
    let within = |budget| {
        let select = ["--select", "count,sum(distance)"];
        let within = ["aggregate", &database, "--memory-budget", budget, "-q"];
        stdout_of(&[&within[..], &select].concat())
    };
    let figures = within("8M");
    assert!(figures.contains("336776") || figures.contains("336,776"), "{figures}");
    assert_eq!(figures, within("1G"));
    let stats = stdout_of(&["stats", &database, "--memory-budget", "8M", "--json"]);
    let stats: Value = serde_json::from_str(&stats).expect("JSON");
    assert!(stats["reserved_bytes"].as_u64().expect("a number") <= 8 << 20, "{stats}");
}

/// Space is given back at once, and to do it again takes none.
#[test]
fn a_compacted_directory_is_never_larger() {
    let files = Files::new();
    let database = files.database();
    for round in 0..6 {
        let rows: String = (0..20_000).map(|key| format!("{key},1,{round:0200}\n")).collect();
        fs::write(files.directory.path().join("rows.csv"), format!("k,n,v\n{rows}")).expect("room");
        files.load(&["--compact-at", "off"]);
    }
    let live = 20_000 * 220;
    let mut last = u64::MAX;
    for turn in 0..3 {
        let told = stdout_of(&["compact", &database, "--json", "-q"]);
        let told: Value = serde_json::from_str(&told).expect("JSON");
        let [before, now] =
            ["bytes_before", "bytes"].map(|name| told[name].as_u64().expect("a number"));
        // Opened, the log has a part more.
        assert!(now <= before && now <= last, "{turn}: {told}");
        assert!(now <= 3 * live, "{turn}: {told}");
        assert!(turn > 0 || before > 5 * live, "{told}");
        last = now;
    }
    assert_eq!(stdout_of(&["scan", &database, "-q"]).lines().count(), 20_001);
}

#[test]
fn a_table_is_told_when_to_compact() {
    for compact_at in ["off", "30", "75%"] {
        let files = Files::new();
        files.load(&["--compact-at", compact_at]);
        let path = Path::new(&files.database()).join("tables/rows/options");
        let options = fs::read_to_string(path).expect("text");
        let line = match compact_at {
            "off" => "\ncompaction off\n",
            "30" => "\ncompaction 0.3 268435456 none\n",
            _ => "\ncompaction 0.75 268435456 none\n",
        };
        assert!(options.contains(line), "{options}");
    }
    let files = Files::new();
    let (rows, database) = (files.rows(), files.database());
    let load = ["load", &rows, "--key", "k", "--engine", "hash", "--dir", &database];
    for bad in ["0", "100", "-1", "half"] {
        let at = format!("--compact-at={bad}");
        refused(
            &[&load[..], &[&at]].concat(),
            2,
            &format!("invalid value '{bad}' for '--compact-at <PERCENT>'"),
        );
    }
    refused(
        &["load", &rows, "--key", "k", "--engine", "hash", "--compact-at", "30"],
        2,
        "the following required arguments were not provided:\n  --dir <DIRECTORY>",
    );
}
