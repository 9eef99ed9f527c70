//! Files of each format, read by one thread and by two.

mod columns;
mod csv;
mod json;
mod speed;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use sapwood::aggregate::Cancel;
use sapwood::schema::Batch;
use sapwood::sql::{Request, Source};

use super::{FileSource, FrameOptions};
use crate::terminal::exit::Failure;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::ui::Ui;

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
        open(&self.write(name, contents), &FrameOptions::default()).expect("a source")
    }
}

fn quiet() -> Ui {
    Ui::quiet(Interrupt::of(Cancel::new()))
}

/// Opens a file; errors are their words, without the directory of the test.
fn open(path: &Path, options: &FrameOptions) -> Result<FileSource, String> {
    FileSource::open(path, options, &quiet()).map_err(|failure| match failure {
        Failure::Failed(what) => short(path, &what),
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
    let request = Request { columns: columns.to_vec(), ..Request::default() };
    let scan = source.scan(&request)?;
    let batches: Mutex<Vec<(u64, Vec<String>)>> = Mutex::default();
    let read = || {
        scan.work(&mut |number, batch| {
            assert!(batch.len > 0 && batch.len <= sapwood::schema::BATCH_ROWS);
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
        let what = open(&path, &FrameOptions::default()).err().expect(name);
        assert!(what.starts_with(expected), "{what}");
    }
    let what = open(&files.path("none.csv"), &FrameOptions::default()).err().expect("no file");
    assert_eq!(what, "none.csv cannot be read: No such file or directory");
    let what = open(&files.path(""), &FrameOptions::default()).err().expect("a directory");
    assert!(what.contains("is a directory"), "{what}");
}

#[test]
fn an_interrupt_ends_a_scan() {
    let files = Files::new();
    let path = files.write("a.csv", "a\n1\n");
    let cancel = Cancel::new();
    let ui = Ui::quiet(Interrupt::of(cancel.clone()));
    let source = FileSource::open(&path, &FrameOptions::default(), &ui).expect("a source");
    assert_eq!(rows(&source).expect("a row"), ["1"]);
    cancel.cancel();
    let what = rows(&source).expect_err("it was interrupted");
    assert!(what.ends_with("interrupted"), "{what}");
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
    assert!(open(&cut, &FrameOptions::default()).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_are_read_again_from_memory() {
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    std::io::Write::write_all(&mut writer, b"a;b\n1;2\n").expect("it has room");
    drop(writer);
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    let source = open(&path, &FrameOptions::default()).expect("a source");
    assert_eq!(rows(&source).expect("rows"), ["1|2"]);
}

#[test]
fn sources_say_how_they_answer() {
    let files = Files::new();
    let source = files.open("a.csv", "a,b\n1,2\n");
    let said = source.explain(&Request { columns: vec![1, 1], ..Request::default() });
    assert_eq!(short(&files.path("a.csv"), &said), "every row of a.csv (8 B, 1 of 2 columns)");
    assert_eq!((source.rows_estimate(), source.key_columns().len()), (None, 0));
}
