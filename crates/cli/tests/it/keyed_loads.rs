//! Loads by a key into a new ordered table: rows are sorted in batches and merged into a checkpoint. They leave what a
//! model says, and what the same rows leave that are put one by one, as those of a table with a memory budget are.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use sapwood::Db;
use sapwood_testkit::case;
use serde_json::Value;
use tempfile::TempDir;

use crate::{sapwood, stdout_of};

const PUTS: [&str; 2] = ["--memory-budget", "256MiB"];

/// What became of a load.
#[derive(Debug, PartialEq)]
struct Loaded {
    code: Option<i32>,
    said: Vec<String>,
    /// Rows, malformed ones, repeated ones, entries.
    counts: Vec<Value>,
    /// Keys and values; none where there is no directory.
    entries: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

/// Loads a file of a folder into a new directory, which is named in no line.
fn load(folder: &Path, file: &str, args: &[&str]) -> Loaded {
    let directory = folder.join("db");
    let _ = fs::remove_dir_all(&directory);
    let load = ["load", file, "--dir", "db", "--json", "-q"];
    let output = sapwood(&[&load, args].concat()).current_dir(folder).output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let counts = ["rows", "malformed", "duplicates", "entries"];
    Loaded {
        code: output.status.code(),
        said: said.lines().map(str::to_owned).collect(),
        counts: counts.map(|name| report[name].clone()).to_vec(),
        entries: directory.exists().then(|| entries_of(&directory)),
    }
}

fn entries_of(directory: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let db = Db::open_read_only(directory).expect("it opens");
    let mut entries = Vec::new();
    let read = db.table("rows").expect("a table").for_each(|key, value| {
        entries.push((key.to_vec(), value.to_vec()));
        ControlFlow::<()>::Continue(())
    });
    assert!(read.expect("it is read").is_continue());
    entries
}

/// Keys as they sort: each column as text, numbers with so many digits that they sort as such.
type Key = Vec<String>;

/// A file of rows, and what is in a table of them.
struct Model {
    csv: String,
    /// The line of each row, its key if it can be loaded, and the row as it is shown.
    rows: Vec<(u64, Option<Key>, String)>,
}

/// Columns of the key, by their places in the file.
const KEYS: [(&str, &[usize]); 4] =
    [("a:int", &[0]), ("b,a:int", &[1, 0]), ("day,b,a:int", &[2, 1, 0]), ("b", &[1])];

impl Model {
    /// Some thousand rows, shuffled or nearly in order, of several blocks of the file.
    fn draw(random: &mut fastrand::Rng, key: &[usize]) -> Model {
        let mut csv = "a,b,day,n,more\n".to_owned();
        let mut rows = Vec::new();
        let count = random.usize(1..9_000);
        // Few keys, so that most come again, or many.
        let distinct = random.i64(1..20_000);
        let is_nearly_in_order = random.bool();
        let padding = "x".repeat(random.usize(0..400));
        let texts = ["", "a", "ab", "ab\u{1}", "b b", "Zürich", "東京"];
        let mut line = 2;
        for number in 0..count {
            let a = match is_nearly_in_order {
                true => number as i64 / 3 + random.i64(0..9) - 3_000,
                false => random.i64(0..distinct) - distinct / 2,
            };
            let mut text = texts[random.usize(0..texts.len())].to_owned();
            let day = format!("2024-{:02}-{:02}", random.u8(1..13), random.u8(1..29));
            let mut fields = vec![a.to_string(), text.clone(), day.clone(), number.to_string()];
            let mut is_good = true;
            match random.u32(0..400) {
                // No number, none at all, a field too much, and a key that no table has.
                0 => (fields[0], is_good) = ("none".to_owned(), false),
                1 => (fields[0], is_good) = (String::new(), !key.contains(&0)),
                2 => (fields[3], is_good) = ("1,2".to_owned(), false),
                3 if random.u32(0..8) == 0 => {
                    text = "long".repeat(16 << 10);
                    (fields[1], is_good) = (text.clone(), !key.contains(&1));
                }
                // A blank line is no row.
                4 => {
                    csv.push('\n');
                    line += 1;
                }
                _ => {}
            }
            fields.push(padding.clone());
            let parts = [format!("{:020}", a + (1 << 40)), text, day];
            let row = fields.join(",");
            writeln!(csv, "{row}").expect("text");
            let parts = key.iter().map(|part| parts[*part].clone()).collect();
            rows.push((line, is_good.then_some(parts), row));
            line += 1;
        }
        Model { csv, rows }
    }

    /// The rows that are there, in the order of their keys.
    fn shown(&self, duplicates: &str) -> Vec<&str> {
        let mut rows = BTreeMap::<&Key, Vec<&str>>::new();
        for (_, key, row) in &self.rows {
            let Some(key) = key else { continue };
            let of_key = rows.entry(key).or_default();
            match duplicates {
                "first" if !of_key.is_empty() => {}
                "last" => *of_key = vec![row],
                _ => of_key.push(row),
            }
        }
        rows.into_values().flatten().collect()
    }

    /// Where each complaint begins, and how many rows are malformed and repeated.
    fn complaints(&self, duplicates: &str) -> (Vec<String>, usize, usize) {
        let mut keys = BTreeMap::new();
        let (mut said, mut malformed, mut repeated) = (Vec::new(), 0, 0);
        for (line, key, _) in &self.rows {
            match key {
                None => {
                    malformed += 1;
                    said.push(format!("line {line}: malformed: "));
                }
                Some(key) if keys.insert(key, ()).is_some() => {
                    repeated += 1;
                    if duplicates != "all" {
                        said.push(format!("line {line}: repeated: key "));
                    }
                }
                Some(_) => {}
            }
        }
        (said, malformed, repeated)
    }
}

#[test]
fn a_load_by_a_key_leaves_what_a_model_says_and_what_puts_leave() {
    case!().seeds(4, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let folder = TempDir::new().expect("a directory for the test");
        let folder = folder.path();
        for duplicates in ["first", "last", "all"] {
            let (key, places) = KEYS[random.usize(0..KEYS.len())];
            let model = Model::draw(&mut random, places);
            fs::write(folder.join("rows.csv"), &model.csv).expect("a file for the test");
            let shown = random.choice([0, 1, 10, 100_000]).expect("some").to_string();
            let types = "a:i64, b:text, day:date, n:i64, more:text";
            let args = ["--key", key, "--types", types, "--duplicates", duplicates];
            let args = [&args[..], &["--show-errors", &shown]].concat();

            let loaded = load(folder, "rows.csv", &args);
            let (said, malformed, repeated) = model.complaints(duplicates);
            let shown: usize = shown.parse().expect("a number");
            let lines = said.len().min(shown);
            assert_eq!(loaded.code, Some(0), "{:?}", loaded.said);
            for (found, expected) in loaded.said.iter().zip(&said[..lines]) {
                assert!(found.starts_with(expected.as_str()), "{found} for {expected}");
            }
            let mut rest = loaded.said[lines..].iter();
            let warned =
                usize::from(malformed > 0) + usize::from(duplicates != "all" && repeated > 0);
            assert!(rest.clone().all(|line| line.starts_with("warning: ")), "{rest:?}");
            assert_eq!(rest.by_ref().count(), warned);
            let rows = model.shown(duplicates);
            let counts = [model.rows.len(), malformed, repeated, rows.len()];
            assert_eq!(loaded.counts, counts.map(Value::from));
            let there = stdout_of(&["scan", folder.join("db").to_str().expect("UTF-8"), "-q"]);
            assert!(there.lines().skip(1).eq(rows), "{key} --duplicates {duplicates}");

            assert!(loaded == load(folder, "rows.csv", &[&args[..], &PUTS].concat()), "by puts");

            // What is refused strictly leaves nothing.
            let is_refused = malformed > 0 || (duplicates != "all" && repeated > 0);
            let strict = [&args[..], &["--strict"]].concat();
            let strictly = load(folder, "rows.csv", &strict);
            assert_eq!(strictly.code, Some(i32::from(is_refused)), "{:?}", strictly.said);
            assert_eq!(strictly.entries.is_none(), is_refused);
            assert!(strictly == load(folder, "rows.csv", &[&strict[..], &PUTS].concat()));
        }
    });
}

/// Complaints of one line have the order of the file, and lines of a file of columns are those of its rows.
#[test]
fn rows_of_one_line_and_of_files_of_columns_are_named_as_if_they_were_put() {
    case!().seeds(2, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let folder = TempDir::new().expect("a directory for the test");
        let folder = folder.path();
        let mut text = String::from("[");
        for number in 0..7_000 {
            let comma = if number > 0 { "," } else { "" };
            let a = random.u32(0..4_000);
            let _ = match random.u32(0..100) {
                0 => write!(text, "{comma}{{\"n\": {number}}}"),
                1 => writeln!(text, "{comma}{{\"a\": {a}, \"n\": {number}}}"),
                _ => write!(text, "{comma}{{\"a\": {a}, \"n\": {number}}}"),
            };
        }
        text.push(']');
        fs::write(folder.join("rows.json"), &text).expect("a file for the test");
        let mut files = vec!["rows.json"];
        if cfg!(feature = "columnar") {
            load(folder, "rows.json", &[]);
            for file in ["rows.parquet", "rows.arrow"] {
                let export = ["export", "db", "rows", "--to", file, "-q"];
                sapwood(&export).current_dir(folder).assert().success();
                files.push(file);
            }
        }
        for file in files {
            for duplicates in ["first", "last", "all"] {
                for shown in ["7", "100000"] {
                    let args = ["--key", "a", "--duplicates", duplicates, "--show-errors", shown];
                    let loaded = load(folder, file, &args);
                    assert_eq!(loaded.code, Some(0), "{:?}", loaded.said);
                    assert!(loaded.said.len() > 7, "{:?}", loaded.said);
                    let by_puts = load(folder, file, &[&args[..], &PUTS].concat());
                    assert_eq!(loaded.said, by_puts.said, "{file} --duplicates {duplicates}");
                    assert!(loaded == by_puts, "{file} --duplicates {duplicates}");
                }
            }
        }
    });
}

/// So many rows of few keys that they are merged before all are read.
#[test]
fn rows_whose_place_others_take_do_not_stay_in_memory() {
    let (rows, keys) = (400_000_u32, 1_000);
    let mut random = fastrand::Rng::with_seed(5);
    let padding = "x".repeat(230);
    let mut csv = String::from("k,n,v\n");
    let (mut first, mut last) = (BTreeMap::new(), BTreeMap::new());
    for number in 0..rows {
        let key = random.u32(0..keys);
        first.entry(key).or_insert(number);
        last.insert(key, number);
        writeln!(csv, "{key},{number},{padding}").expect("text");
    }
    let folder = TempDir::new().expect("a directory for the test");
    let folder = folder.path();
    fs::write(folder.join("rows.csv"), csv).expect("a file for the test");
    for (duplicates, expected) in [("first", first), ("last", last)] {
        let args = ["--key", "k", "--duplicates", duplicates, "--show-errors", "3"];
        let loaded = load(folder, "rows.csv", &args);
        assert_eq!(loaded.code, Some(0), "{:?}", loaded.said);
        let counts = [rows, 0, rows - keys, keys];
        assert_eq!(loaded.counts, counts.map(Value::from));
        assert_eq!(loaded.said.len(), 4, "{:?}", loaded.said);
        let there = stdout_of(
            &["sql", "select k, n from rows", "--dir"]
                .into_iter()
                .chain([folder.join("db").to_str().expect("UTF-8"), "--mode", "csv", "-q"])
                .collect::<Vec<_>>(),
        );
        let expected = expected.iter().map(|(key, number)| format!("{key},{number}"));
        assert!(there.lines().skip(1).eq(expected), "--duplicates {duplicates}");
    }
}

/// Numbers that a column is too narrow for widen it only where the load succeeds.
#[test]
fn a_column_that_a_failed_load_would_have_widened_stays_as_it_was() {
    for engine in ["ordered", "hash", "tree"] {
        let folder = TempDir::new().expect("a directory for the test");
        let folder = folder.path();
        fs::write(folder.join("rows.csv"), "k,n\n1,1\n").expect("a file for the test");
        fs::write(folder.join("wide.csv"), "k,n\n2,100000\n1,7\n").expect("a file for the test");
        let args = ["--key", "k", "--engine", engine];
        assert_eq!(load(folder, "rows.csv", &args).code, Some(0));
        let described = || {
            let directory = folder.join("db");
            let directory = directory.to_str().expect("UTF-8");
            let rows =
                ["sql", "select * from rows order by k", "--dir", directory, "--mode", "csv", "-q"];
            (stdout_of(&["tables", directory, "--json"]), stdout_of(&rows))
        };
        let as_it_was = described();
        let add = ["load", "wide.csv", "--dir", "db", "-q"];
        sapwood(&[&add[..], &["--strict"]].concat()).current_dir(folder).assert().failure();
        assert_eq!(described(), as_it_was, "{engine}");
        sapwood(&add).current_dir(folder).assert().success();
        let (tables, rows) = described();
        assert!(tables.contains("n:i32"), "{engine} {tables}");
        assert_eq!(rows, "k,n\n1,7\n2,100000\n", "{engine}");
    }
}

/// A file whose rows are in no order, and which LZ4 makes no smaller.
#[cfg(unix)]
fn write_large(folder: &Path, rows: u32) {
    let mut random = fastrand::Rng::with_seed(1);
    let mut csv = String::from("k,v\n");
    for _ in 0..rows {
        writeln!(csv, "{},{:032x}", random.u64(..), random.u128(..)).expect("text");
    }
    fs::write(folder.join("large.csv"), csv).expect("a file for the test");
}

/// All files below a directory that a load may have made, and the rows of the table that was there.
#[cfg(unix)]
fn left(folder: &Path) -> (Vec<String>, Option<String>) {
    let directory = folder.join("db");
    if !directory.exists() {
        return (Vec::new(), None);
    }
    let list = |folder: &str| {
        let entries = fs::read_dir(directory.join(folder)).expect("a folder");
        entries.map(|entry| entry.expect("a file").path().display().to_string())
    };
    let mut names: Vec<String> = list("tables").collect();
    // Of each table; numbers go up with each checkpoint.
    let table_of =
        |name: String| Some(name.split_once("snapshot-")?.1.rsplit_once('-')?.1.to_owned());
    names.extend(list("log").filter_map(table_of));
    names.sort();
    let shown = stdout_of(&[
        "sql",
        "select * from rows order by k",
        "--dir",
        directory.to_str().expect("UTF-8"),
        "--mode",
        "csv",
        "-q",
    ]);
    let tables = stdout_of(&["tables", directory.to_str().expect("UTF-8"), "--json"]);
    assert!(!tables.contains("large"), "{tables}");
    (names, Some(shown))
}

/// The first load into a directory, and one beside another table.
#[cfg(unix)]
fn before(is_first: bool) -> TempDir {
    let folder = TempDir::new().expect("a directory for the test");
    fs::write(folder.path().join("small.csv"), "k,v\n2,b\n1,a\n").expect("a file for the test");
    if !is_first {
        load(folder.path(), "small.csv", &["--key", "k"]);
    }
    folder
}

#[cfg(unix)]
const LARGE: [&str; 8] = ["load", "large.csv", "--key", "k", "--dir", "db", "--table", "large"];

/// The signal comes while batches are read, or while they are merged.
#[cfg(unix)]
#[test]
fn a_load_that_is_stopped_leaves_no_trace() {
    use std::process::{Command, Stdio};

    use assert_cmd::cargo::CommandCargoExt;

    let mut stopped = 0;
    for (is_first, signal, written) in [
        (true, "-INT", 0),
        (false, "-TERM", 1),
        (true, "-HUP", 256 << 10),
        (false, "-INT", 1 << 20),
    ] {
        let folder = before(is_first);
        write_large(folder.path(), 300_000);
        let as_it_was = left(folder.path());
        let mut child = Command::cargo_bin("sapwood")
            .expect("the binary of this package")
            .args([&LARGE[..], &["-q"]].concat())
            .current_dir(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        // The snapshot that grows.
        let bytes_written = || {
            let files = fs::read_dir(folder.path().join("db/log")).into_iter().flatten().flatten();
            let files = files.filter(|file| {
                file.file_name().to_str().is_some_and(|name| name.starts_with("snapshot-"))
            });
            files.filter_map(|file| file.metadata().ok()).map(|about| about.len()).max()
        };
        while bytes_written().is_none_or(|bytes| bytes < written)
            && child.try_wait().expect("a child").is_none()
        {
            std::thread::yield_now();
        }
        let sent = Command::new("kill").arg(signal).arg(child.id().to_string()).status();
        sent.expect("kill is there");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            // It came too late.
            Some(0) => continue,
            code => assert!(matches!(code, None | Some(130)), "{code:?} {said}"),
        }
        stopped += 1;
        assert_eq!(left(folder.path()), as_it_was, "{is_first} {written} {said}");
    }
    assert!(stopped > 0, "each signal came too late");
}

#[cfg(target_os = "linux")]
#[test]
fn a_load_that_fills_the_disk_leaves_no_trace() {
    for is_first in [true, false] {
        let folder = before(is_first);
        write_large(folder.path(), 400_000);
        let as_it_was = left(folder.path());
        let binary = assert_cmd::cargo::cargo_bin("sapwood");
        let load = format!("{} -q", LARGE.join(" "));
        // A limit on the size of files stands for a full disk.
        let script = format!("trap '' XFSZ; ulimit -f 16384; exec {} {load}", binary.display());
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(&folder)
            .output()
            .expect("sh runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("nothing of the file is kept in db") && said.contains("write"),
            "{said}"
        );
        assert_eq!(left(folder.path()), as_it_was, "{said}");
    }
}
