//! Files with the same columns, one behind the other.

use std::collections::HashMap;
use std::ops::ControlFlow;

use sapwood_schema::{Scan, Sink};

use super::{Content, FileSource};
use crate::looks::Look;
use crate::text::TextFile;
use crate::words::quoted;

/// Batches of a file have smaller numbers than this.
const BATCHES_OF_FILE: u64 = 1 << 48;

/// One source of several files, whose columns have the types that all of them have.
pub(crate) fn of(mut files: Vec<FileSource>) -> Result<FileSource, String> {
    if files.len() == 1 {
        return Ok(files.remove(0));
    }
    for file in &files[1..] {
        expect_alike(&files[0], file)?;
        expect_alike(file, &files[0])?;
    }
    let mut looks: HashMap<String, Look> = HashMap::new();
    for (name, look) in files.iter().filter_map(FileSource::text).flat_map(TextFile::looks) {
        looks.entry(name.clone()).and_modify(|all| all.merge(look)).or_insert(*look);
    }
    let files = files.into_iter().map(|file| file.with_looks(&looks));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let first = files[0].columns();
    for file in &files[1..] {
        for column in file.columns() {
            let same = first.iter().find(|it| it.name == column.name);
            if let Some(same) = same.filter(|it| it.kind != column.kind) {
                return Err(format!(
                    "{} has column {} as {}, and {} as {}: ask the files one by one, or say the type (--types)",
                    files[0].input().name,
                    quoted(&same.name),
                    same.kind,
                    file.input().name,
                    column.kind
                ));
            }
        }
    }
    Ok(FileSource { content: Content::Several(files) })
}

/// Refuses a file that has a column which another lacks.
fn expect_alike(one: &FileSource, other: &FileSource) -> Result<(), String> {
    let mut columns = one.columns().iter();
    match columns.find(|column| !other.columns().iter().any(|it| it.name == column.name)) {
        None => Ok(()),
        Some(column) => Err(format!(
            "{} has no column {}, which {} has: files that are asked together have the same columns",
            other.input().name,
            quoted(&column.name),
            one.input().name
        )),
    }
}

impl FileSource {
    /// The file, if it is of text.
    fn text(&self) -> Option<&TextFile> {
        match &self.content {
            Content::Csv(file, _) | Content::Json(file, _) => Some(file),
            _ => None,
        }
    }

    /// Replaces the types found in this file by those found in all files, by the names of columns.
    fn with_looks(self, looks: &HashMap<String, Look>) -> Result<FileSource, String> {
        let content = match self.content {
            Content::Csv(file, delimiter) => Content::Csv(file.with_looks(looks)?, delimiter),
            Content::Json(file, layout) => Content::Json(file.with_looks(looks)?, layout),
            content => content,
        };
        Ok(FileSource { content })
    }
}

/// Begins to read files.
pub(crate) fn scan<'a>(
    files: &'a [FileSource],
    columns: &[usize],
    with_lines: bool,
) -> Result<Box<dyn Scan + 'a>, String> {
    let known = files[0].columns();
    let scans = files.iter().map(|file| {
        let place = |column: &usize| {
            let mut names = file.columns().iter().map(|it| &it.name);
            names.position(|name| *name == known[*column].name).expect("all have the same")
        };
        let columns: Vec<usize> = columns.iter().map(place).collect();
        file.begin(&columns, with_lines)
    });
    Ok(Box::new(Scans(scans.collect::<Result<_, String>>()?)))
}

/// Files that are being read.
struct Scans<'a>(Vec<Box<dyn Scan + 'a>>);

impl Scan for Scans<'_> {
    fn threads_max(&self) -> usize {
        self.0.iter().map(|scan| scan.threads_max()).max().unwrap_or(1)
    }

    fn work(&self, sink: &mut Sink<'_>) -> Result<(), String> {
        for (file, scan) in self.0.iter().enumerate() {
            let mut has_ended = false;
            scan.work(&mut |number, batch| {
                debug_assert!(number < BATCHES_OF_FILE);
                let flow = sink(file as u64 * BATCHES_OF_FILE + number, batch);
                has_ended |= flow == ControlFlow::Break(());
                flow
            })?;
            if has_ended {
                break;
            }
        }
        Ok(())
    }
}
