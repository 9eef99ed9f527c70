//! The columns of files that statements name, for completion.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use sapwood::files::{FileSource, ReadOptions, ending, extension};

/// Rows that are looked at: fields of JSON that come later are not completed.
const ROWS_MAX: usize = 100;

/// Bytes that are read at once: a header and the first rows.
const BLOCK_BYTES: usize = 64 << 10;

/// Words behind which a text in quotes is a file.
const BEFORE_FILES: [&str; 8] =
    ["from", "into", "update", "describe", "desc", "summarize", "copy", "join"];

/// The columns of files that were looked at. Each file is read once, and again when it has changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileColumns {
    seen: Arc<Mutex<HashMap<PathBuf, Seen>>>,
}

#[derive(Debug)]
struct Seen {
    changed: Option<SystemTime>,
    length: u64,
    columns: Vec<String>,
}

impl FileColumns {
    /// The columns of a file, which has no more than its first bytes read; none if it cannot be read.
    pub(crate) fn of(&self, path: &Path) -> Vec<String> {
        // A pipe would wait for its other end.
        let Some(about) = path.metadata().ok().filter(std::fs::Metadata::is_file) else {
            return Vec::new();
        };
        let (changed, length) = (about.modified().ok(), about.len());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.get(path) {
            Some(seen) if (seen.changed, seen.length) == (changed, length) => seen.columns.clone(),
            _ => {
                let columns = read(path);
                let now = Seen { changed, length, columns: columns.clone() };
                seen.insert(path.to_owned(), now);
                columns
            }
        }
    }
}

fn read(path: &Path) -> Vec<String> {
    // These have their columns at their end, so that all of a packed one would be unpacked.
    let has_end = matches!(&ending(path)[..], "parquet" | "arrow" | "feather");
    if has_end && matches!(&extension(path)[..], "gz" | "zst") {
        return Vec::new();
    }
    let options =
        ReadOptions { sample_rows: ROWS_MAX, block_bytes: BLOCK_BYTES, ..ReadOptions::default() };
    match FileSource::open(path, &options) {
        Ok(file) => file.columns().iter().map(|column| column.name.clone()).collect(),
        Err(_) => Vec::new(),
    }
}

/// The files that a statement names.
pub(crate) fn named_in(statement: &str) -> Vec<String> {
    let parts: Vec<&str> = statement.split('\'').collect();
    let quoted = parts.iter().enumerate().skip(1).step_by(2);
    let files = quoted.filter(|(at, _)| {
        let before = parts[at - 1].trim_end();
        let word = &before[before.trim_end_matches(char::is_alphanumeric).len()..];
        // The last text has no end yet.
        let is_whole = at + 1 < parts.len();
        is_whole && BEFORE_FILES.iter().any(|it| it.eq_ignore_ascii_case(word))
    });
    files.map(|(_, file)| (*file).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_once_until_they_change() {
        let folder = tempfile::TempDir::new().expect("a directory for the test");
        let columns = FileColumns::default();
        let path = folder.path().join("a.csv");
        assert_eq!(columns.of(&path), Vec::<String>::new());
        std::fs::write(&path, "carrier,delay\nUA,1\n").expect("a file");
        assert_eq!(columns.of(&path), ["carrier", "delay"]);
        assert_eq!(columns.clone().seen.lock().expect("unpoisoned").len(), 1);
        std::fs::write(&path, "carrier,delay,dest\nUA,1,x\n").expect("a file");
        assert_eq!(columns.of(&path), ["carrier", "delay", "dest"]);
        let json = folder.path().join("a.jsonl");
        std::fs::write(&json, "{\"a\":{\"b\":1},\"c\":2}\n").expect("a file");
        assert_eq!(columns.of(&json), ["a.b", "c"]);
        assert_eq!(columns.of(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn files_stand_behind_some_words() {
        for (statement, files) in [
            ("select a from 'f.csv' where b = 'g.csv'", &["f.csv"][..]),
            ("select 'from' FROM\n'f.csv'", &["f.csv"]),
            ("copy t from 'f.csv'", &["f.csv"]),
            ("select a from 'f.c", &[]),
            ("select a", &[]),
        ] {
            assert_eq!(named_in(statement), files, "{statement}");
        }
    }
}
