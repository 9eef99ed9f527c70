//! Files that a name stands for: one, those of a pattern, or those of a folder.

use std::path::{Path, PathBuf};

use crate::format::is_of_rows;

/// The files that a name stands for, in the order of their names: `logs/*.csv` those that are called so, a folder
/// those in it whose names tell a format; any other name itself.
pub(crate) fn files_of(path: &Path) -> Result<Vec<PathBuf>, String> {
    if path.is_dir() {
        return of_folder(path);
    }
    let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']));
    match pattern.filter(|_| !path.exists()) {
        Some(pattern) => of_pattern(pattern),
        None => Ok(vec![path.to_owned()]),
    }
}

fn of_pattern(pattern: &str) -> Result<Vec<PathBuf>, String> {
    let found = glob::glob(pattern)
        .map_err(|error| format!("`{pattern}` is no pattern of files: {error}"))?;
    let files = found.collect::<Result<Vec<_>, _>>();
    let mut files = files.map_err(|error| format!("`{pattern}`: {error}"))?;
    files.retain(|file| !file.is_dir());
    match files.is_empty() {
        true => Err(format!("no file is called as `{pattern}` says")),
        false => Ok(files),
    }
}

/// The files of a folder. Hidden ones are none of them.
fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| {
        format!("{} cannot be read: {}", folder.display(), crate::packing::plain(&error))
    };
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes()[0] == b'.');
        if !is_hidden && is_of_rows(&path) && path.is_file() {
            files.push(path);
        }
    }
    files.sort_unstable();
    match files.is_empty() {
        true => Err(format!(
            "{} is a directory without files of rows: names end in .csv, .tsv, .json, .jsonl, .msgpack, .parquet or \
             .arrow, maybe with .gz or .zst",
            folder.display()
        )),
        false => Ok(files),
    }
}
