//! Files of each format, read by one thread and by two.

mod columns;
mod csv;
mod json;
mod writing;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use sapwood_schema::Batch;

use crate::error::Error;
use crate::watch::Watch;
use crate::{FileSource, ReadOptions};

/// A directory for the files of a test.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::TempDir::new().expect("a directory for the test"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, contents).expect("a file of the test");
        path
    }

    /// Opens a file that has these contents.
    fn open(&self, name: &str, contents: impl AsRef<[u8]>) -> FileSource {
        open(&self.write(name, contents), &ReadOptions::default()).expect("a source")
    }
}

/// Opens a file; errors are their words, without the directory of the test.
fn open(path: &Path, options: &ReadOptions) -> Result<FileSource, String> {
    FileSource::open(path, options).map_err(|failure| match failure {
        Error::Read(what) => short(path, &what),
        other => panic!("{other:?}"),
    })
}

fn short(path: &Path, what: &str) -> String {
    let directory = path.parent().expect("a directory").display().to_string();
    what.replace(&format!("{directory}/"), "")
}

/// The rows of some columns, as text with bars between, in the order of the source. Both ways of reading have the
/// same.
fn rows_of(source: &FileSource, columns: &[usize]) -> Result<Vec<String>, String> {
    let one = scan(source, columns, 1);
    let two = scan(source, columns, 2);
    if let (Ok(one), Ok(two)) = (&one, &two) {
        assert_eq!(one, two, "with two threads");
    }
    assert_eq!(one.is_ok(), two.is_ok(), "with two threads");
    one
}

fn rows(source: &FileSource) -> Result<Vec<String>, String> {
    let all: Vec<usize> = (0..source.columns().len()).collect();
    rows_of(source, &all)
}

fn scan(source: &FileSource, columns: &[usize], threads: usize) -> Result<Vec<String>, String> {
    let scan = source.scan(columns, false).map_err(|error| error.to_string())?;
    let batches: Mutex<Vec<(u64, Vec<String>)>> = Mutex::default();
    let read = || {
        scan.work(&mut |number, batch| {
            assert!(batch.len > 0 && batch.len <= sapwood_schema::BATCH_ROWS);
            let rows = shown(source, columns, batch);
            batches.lock().expect("no panic").push((number, rows));
            ControlFlow::Continue(())
        })
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(read)).collect();
        let own = read();
        let others = others.into_iter().map(|other| other.join().expect("no panic"));
        others.fold(own, |all, other| all.and(other))
    })?;
    let mut batches = batches.into_inner().expect("no panic");
    batches.sort();
    assert!(batches.is_sorted_by(|left, right| left.0 < right.0), "numbers are distinct");
    Ok(batches.into_iter().flat_map(|(_, rows)| rows).collect())
}

fn shown(source: &FileSource, columns: &[usize], batch: &Batch) -> Vec<String> {
    assert_eq!(batch.columns.len(), columns.len());
    let cell = |row: usize, at: usize| {
        let vector = &batch.columns[at];
        assert_eq!(vector.len(), batch.len);
        let value = vector.value(row, &source.columns()[columns[at]].kind);
        value.expect("UTF-8").to_string()
    };
    let row = |row| {
        let cells: Vec<String> = (0..columns.len()).map(|at| cell(row, at)).collect();
        cells.join("|")
    };
    (0..batch.len).map(row).collect()
}

/// The columns of a source: `a i64, b text`.
fn columns(source: &FileSource) -> String {
    let columns = source.columns().iter().map(|column| format!("{} {}", column.name, column.kind));
    columns.collect::<Vec<_>>().join(", ")
}

/// Runs a scan of some columns, again as often as types widen; the source that it ended with.
fn settled(mut source: FileSource, columns: &[usize]) -> (FileSource, Vec<String>, usize) {
    for opened in 1.. {
        assert!(opened < 5, "types widen a few times at most");
        match rows_of(&source, columns) {
            Ok(rows) => return (source, rows, opened),
            Err(what) => {
                assert!(source.is_too_narrow(), "{what}");
                source = source.reopen().expect("a wider source");
            }
        }
    }
    unreachable!("it ends above")
}

#[test]
fn input_that_is_no_rows_is_refused_with_words() {
    let files = Files::new();
    for (name, contents, expected) in [
        ("empty.csv", &b""[..], "empty.csv is empty: a header line"),
        ("blank.csv", b"\n\r\n\n", "blank.csv is empty"),
        ("empty.jsonl", b"", "empty.jsonl has no object with fields"),
        ("a.bin", b"\x89PNG\0\0", "a.bin cannot be read: its bytes are no text"),
        ("a.parquet", b"a,b\n", "a.parquet cannot be read as Parquet"),
        ("a.arrow", b"a,b\n1,2\n", "a.arrow cannot be read as Arrow"),
        ("header.csv", b"a,\xFF\n1,2\n", "header.csv, line 1: the header is not UTF-8"),
        ("open.csv", b"a,b\n1,2\n3,\"x\n", "open.csv, line 3: a quote opens a value there"),
    ] {
        let path = files.write(name, contents);
        let what = open(&path, &ReadOptions::default()).expect_err(name);
        assert!(what.starts_with(expected), "{what}");
    }
    let what = open(&files.path("none.csv"), &ReadOptions::default()).expect_err("no file");
    assert_eq!(what, "none.csv cannot be read: No such file or directory");
}

/// Counts bytes, until it is asked to stop.
#[derive(Debug, Default)]
struct Stop {
    is_asked: AtomicBool,
    bytes: AtomicU64,
}

impl Watch for Stop {
    fn advance(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }
}

#[test]
fn an_interrupt_ends_a_scan() {
    let files = Files::new();
    let path = files.write("a.csv", "a\n1\n");
    let watch = Arc::new(Stop::default());
    let options =
        ReadOptions { watch: Arc::clone(&watch) as Arc<dyn Watch>, ..ReadOptions::default() };
    let source = FileSource::open(&path, &options).expect("a source");
    assert_eq!(rows(&source).expect("a row"), ["1"]);
    let read = watch.bytes.load(Ordering::Relaxed);
    assert!(read >= 4 && read % 4 == 0, "{read}: each reader passes over the file");
    watch.is_asked.store(true, Ordering::Relaxed);
    let what = rows(&source).expect_err("it was interrupted");
    assert!(what.ends_with("interrupted"), "{what}");
    assert!(matches!(FileSource::open(&path, &options), Err(Error::Cancelled(_))));
}

#[test]
fn packed_files_are_unpacked() {
    use std::io::Write;
    let files = Files::new();
    let text = "a,b\n1,x\n2,y\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).expect("a vector takes everything");
    let gzip = gzip.finish().expect("a vector takes everything");
    let zstd = zstd::encode_all(text.as_bytes(), 1).expect("a vector takes everything");
    for (name, contents) in [("a.csv.gz", gzip.clone()), ("a.csv.zst", zstd.clone()), ("a", zstd)] {
        assert_eq!(rows(&files.open(name, contents)).expect("rows"), ["1|x", "2|y"]);
    }
    let cut = files.write("cut.csv.gz", &gzip[..gzip.len() - 9]);
    assert!(open(&cut, &ReadOptions::default()).is_err());
}

#[test]
fn patterns_and_folders_are_many_files() {
    let files = Files::new();
    files.write("b.csv", "b,a\n2.5,1\n");
    files.write("a.csv", "a,b\n3,1\n");
    files.write(".hidden.csv", "x\n1\n");
    files.write("README.md", "# words\n");
    for name in ["?.csv", "*.csv", ""] {
        let source = open(&files.path(name), &ReadOptions::default());
        // Hidden files are those of a pattern that names them.
        let source = match name {
            "*.csv" => {
                assert!(source.is_err_and(|what| what.contains("has no column")));
                continue;
            }
            _ => source.expect(name),
        };
        assert_eq!(rows(&source).expect("rows"), ["3|1", "1|2.5"], "{name}");
    }
    let what = open(&files.path("none*.csv"), &ReadOptions::default()).expect_err("no file");
    assert!(what.starts_with("no file is called as"), "{what}");
    std::fs::create_dir(files.path("empty")).expect("a folder");
    let what = open(&files.path("empty"), &ReadOptions::default()).expect_err("no file");
    assert!(what.contains("without files of rows"), "{what}");
}

#[test]
fn maps_of_message_pack_are_rows() {
    let files = Files::new();
    let maps = b"\x82\xa1a\x01\xa1b\x81\xa1c\xa1x\x82\xa1a\xc0\xa1b\x81\xa1c\xa1y";
    for (name, contents) in [("a.msgpack", &maps[..]), ("a", maps)] {
        let source = files.open(name, contents);
        let columns = source.columns().iter().map(|it| (it.name.as_str(), it.kind.to_string()));
        assert_eq!(columns.collect::<Vec<_>>(), [("a", "i64".into()), ("b.c", "text".into())]);
        assert_eq!(rows(&source).expect("rows"), ["1|x", "null|y"]);
    }
    let cut = open(&files.write("cut.msgpack", &maps[..9]), &ReadOptions::default());
    assert!(cut.is_err_and(|what| what.ends_with("is the file whole?")));
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_are_read_again_from_memory() {
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    std::io::Write::write_all(&mut writer, b"a;b\n1;2\n").expect("it has room");
    drop(writer);
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    let source = open(&path, &ReadOptions::default()).expect("a source");
    assert_eq!(rows(&source).expect("rows"), ["1|2"]);
}

#[test]
fn sources_say_how_they_answer() {
    let files = Files::new();
    let source = files.open("a.csv", "a,b\n1,2\n");
    let said = source.explain(&[1, 1]);
    assert_eq!(short(&files.path("a.csv"), &said), "every row of a.csv (8 B, 1 of 2 columns)");
    assert_eq!(source.rows_estimate(), None);
}
