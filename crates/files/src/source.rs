//! A file as a source of rows, or several as one.

mod several;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sapwood_schema::{Scan, SourceColumn, Type};

#[cfg(feature = "columnar")]
use crate::columnar::ColumnFile;
use crate::content::{Detected, HEAD_BYTES, Layout};
use crate::csv::{self, CsvScan};
use crate::error::{Error, Result};
#[cfg(not(feature = "columnar"))]
use crate::format::NOT_BUILT;
use crate::input::Input;
use crate::json::{self, JsonScan};
use crate::options::ReadOptions;
use crate::pattern::files_of;
use crate::text::{Known, TextFile};
use crate::watch::Watch;
use crate::words::bytes;

/// A file whose rows have typed columns.
///
/// Types of text are those of the first rows. If a later value of a column that is read does not fit, the scan
/// ends with an error, and [`is_too_narrow`](Self::is_too_narrow) says so: [`reopen`](Self::reopen) looks at all
/// rows of these columns, and the statement that is run again answers as if it had been so from the beginning.
///
/// Rows of text are named by their lines, as 8 bytes with the low ones first; those of columns have no names.
///
/// *Consistency*: the file is read anew by each scan. A file that changes meanwhile gives rows of both times.
pub struct FileSource {
    content: Content,
}

enum Content {
    Csv(TextFile, u8),
    Json(TextFile, Layout),
    #[cfg(feature = "columnar")]
    Columns(ColumnFile),
    Several(Vec<FileSource>),
}

impl std::fmt::Debug for FileSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSource").field("columns", &self.columns()).finish_non_exhaustive()
    }
}

impl FileSource {
    /// Opens a file, and looks at its first rows. The name may be a pattern (`logs/*.csv`) or a folder: its files,
    /// which have the same columns, are one source, one behind the other.
    ///
    /// # Errors
    /// No file is called so, it cannot be read, or it has no columns; files with other columns than the first one.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<FileSource> {
        let paths = files_of(path).map_err(Error::Read)?;
        FileSource::open_all(&paths, options)
    }

    fn open_all(paths: &[PathBuf], options: &ReadOptions) -> Result<FileSource> {
        let opened = paths.iter().map(|path| {
            let input = Input::open(path, Arc::clone(&options.watch))?;
            FileSource::of(input, options)
        });
        let opened = opened.collect::<Result<Vec<_>, String>>().and_then(several::of);
        opened.map_err(|what| failure(&*options.watch, what))
    }

    /// Reads all bytes of a pipe, and looks at the first rows. The path is the name that messages have; `-` is
    /// standard input.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn read(
        path: &Path,
        bytes: impl Read + Send + 'static,
        options: &ReadOptions,
    ) -> Result<FileSource> {
        Input::of(path, bytes, Arc::clone(&options.watch))
            .and_then(|input| FileSource::of(input, options))
            .map_err(|what| failure(&*options.watch, what))
    }

    fn of(input: Input, options: &ReadOptions) -> Result<FileSource, String> {
        let head = input.head(HEAD_BYTES).map_err(|error| input.unread(&error))?;
        let format =
            Detected::of(&input.path, &head, options).map_err(|what| input.failed(what))?;
        let content = match format {
            Detected::Csv { delimiter } => {
                let known = csv::sample(&input, options, delimiter)?;
                Content::Csv(TextFile::new(input, options.clone(), known)?, delimiter)
            }
            Detected::Json(layout) => of_json(input, options, layout)?,
            Detected::MessagePack => of_json(input.into_json_lines(), options, Layout::Lines)?,
            #[cfg(feature = "columnar")]
            format => Content::Columns(ColumnFile::open(input, format)?),
            #[cfg(not(feature = "columnar"))]
            _ => {
                return Err(input.failed(NOT_BUILT));
            }
        };
        Ok(FileSource { content })
    }

    /// The same file, read by other options.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn again(&self, options: &ReadOptions) -> Result<FileSource> {
        let again = match &self.content {
            Content::Several(files) => files
                .iter()
                .map(|file| FileSource::of(file.input().clone(), options))
                .collect::<Result<_, _>>()
                .and_then(several::of),
            _ => FileSource::of(self.input().clone(), options),
        };
        again.map_err(|what| failure(&*self.input().watch, what))
    }

    /// Notices about the file.
    pub fn notices(&self) -> &[String] {
        match &self.content {
            Content::Csv(file, _) | Content::Json(file, _) => &file.typed.notices,
            #[cfg(feature = "columnar")]
            Content::Columns(file) => &file.notices,
            // What holds for one mostly holds for all.
            Content::Several(files) => files[0].notices(),
        }
    }

    /// The text that the writer of a columnar file noted by this name.
    pub fn metadata(&self, name: &str) -> Option<&str> {
        #[cfg(feature = "columnar")]
        if let Content::Columns(file) = &self.content {
            return file.metadata.get(name).map(String::as_str);
        }
        let _ = name;
        None
    }

    /// The number of records that the last scan left out ([`Malformed::Skip`](crate::Malformed::Skip)), and the first of them
    /// with their lines: as many as the options say.
    pub fn left_out(&self) -> (u64, Vec<(u64, String)>) {
        match &self.content {
            Content::Csv(file, _) | Content::Json(file, _) => file.left_out(),
            #[cfg(feature = "columnar")]
            Content::Columns(_) => (0, Vec::new()),
            Content::Several(files) => {
                let left_out = files.iter().map(FileSource::left_out);
                left_out.fold((0, Vec::new()), |(count, mut all), (of_file, first)| {
                    all.extend(first);
                    (count + of_file, all)
                })
            }
        }
    }

    /// The type of each column in a table: narrower than that which statements compute with, where it was not said and
    /// the file has none.
    pub fn stored_kinds(&self) -> Vec<Type> {
        let columns = self.columns().iter();
        match &self.content {
            Content::Csv(file, _) | Content::Json(file, _) => {
                let known = file.known.looks.iter().zip(&file.typed.is_said);
                let kinds = columns.zip(known).map(|(column, (look, is_said))| match is_said {
                    true => column.kind.clone(),
                    false => look.stored_kind(&column.kind),
                });
                kinds.collect()
            }
            #[cfg(feature = "columnar")]
            Content::Columns(_) => columns.map(|column| column.kind.clone()).collect(),
            Content::Several(_) => columns.map(|column| column.kind.clone()).collect(),
        }
    }

    /// True where a scan failed at a value that no type of the first rows has, or at a further column.
    pub fn is_too_narrow(&self) -> bool {
        match &self.content {
            Content::Csv(file, _) | Content::Json(file, _) => file.widening().is_some(),
            #[cfg(feature = "columnar")]
            Content::Columns(file) => file.is_too_narrow(),
            Content::Several(files) => files.iter().any(FileSource::is_too_narrow),
        }
    }

    /// The file with the types that all rows have in the columns of the scan that failed; if none did, in all
    /// columns. Of JSON it has all fields.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn reopen(&self) -> Result<FileSource> {
        self.reopen_for(None)
    }

    /// Opens the source again, to read these columns alone.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn reopen_for(&self, wanted: Option<&[String]>) -> Result<FileSource> {
        self.wider(wanted).map_err(|what| failure(&*self.input().watch, what))
    }

    /// True where no row can have a column that is not known.
    pub fn has_all_columns(&self) -> bool {
        match &self.content {
            Content::Json(..) => false,
            Content::Several(files) => files.iter().all(FileSource::has_all_columns),
            _ => true,
        }
    }

    fn wider(&self, wanted: Option<&[String]>) -> Result<FileSource, String> {
        let content = match &self.content {
            Content::Csv(file, delimiter) => {
                let (delimiter, width) = (*delimiter, file.known.names.len());
                let is_wanted = |column: &usize| {
                    wanted.is_none_or(|wanted| wanted.contains(&file.known.names[*column]))
                };
                let mut columns: Vec<usize> = match file.widening() {
                    Some(widening) => widening.columns,
                    None => (0..width).filter(is_wanted).collect(),
                };
                columns.sort_unstable();
                columns.dedup();
                let (input, options) = (&file.input, &file.options);
                let looks = csv::look_at_all(input, options, delimiter, width, &columns)?;
                let mut known = file.known.clone();
                for (column, look) in columns.iter().zip(&looks) {
                    known.looks[*column].merge(look);
                }
                Content::Csv(file.widened(known)?, delimiter)
            }
            Content::Json(file, layout) => {
                let known = file.known.clone();
                let known = json::look(&file.input, &file.options, *layout, known, usize::MAX)?;
                Content::Json(file.widened(known)?, *layout)
            }
            #[cfg(feature = "columnar")]
            Content::Columns(file) => Content::Columns(file.widened()?),
            Content::Several(files) => {
                let wider = files.iter().map(|file| file.wider(wanted));
                return several::of(wider.collect::<Result<_, _>>()?);
            }
        };
        Ok(FileSource { content })
    }

    fn input(&self) -> &Input {
        match &self.content {
            Content::Csv(file, _) | Content::Json(file, _) => &file.input,
            #[cfg(feature = "columnar")]
            Content::Columns(file) => &file.input,
            Content::Several(files) => files[0].input(),
        }
    }

    /// The columns, in their order.
    pub fn columns(&self) -> &[SourceColumn] {
        match &self.content {
            Content::Csv(file, _) | Content::Json(file, _) => &file.typed.columns,
            #[cfg(feature = "columnar")]
            Content::Columns(file) => &file.columns,
            Content::Several(files) => files[0].columns(),
        }
    }

    /// The rows, where the file says how many there are.
    pub fn rows_estimate(&self) -> Option<u64> {
        match &self.content {
            Content::Csv(..) | Content::Json(..) => None,
            #[cfg(feature = "columnar")]
            Content::Columns(file) => file.rows(),
            Content::Several(files) => files.iter().map(FileSource::rows_estimate).sum(),
        }
    }

    /// The way in which some columns are read, for people.
    pub fn explain(&self, columns: &[usize]) -> String {
        let mut wanted = columns.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let (name, size) = match &self.content {
            Content::Several(files) => {
                let size = files.iter().map(|file| file.input().length()).sum();
                (format!("{} files from {} on", files.len(), self.input().name), size)
            }
            _ => (self.input().name.clone(), self.input().length()),
        };
        let (size, all) = (bytes(size), self.columns().len());
        let columns = if all == 1 { "column" } else { "columns" };
        format!("every row of {name} ({size}, {} of {all} {columns})", wanted.len())
    }

    /// Begins to read some columns; batches have them in this order. Rows of text are named by their lines, if that
    /// is asked for: as 8 bytes with the low ones first.
    ///
    /// # Errors
    /// The file cannot be read from its beginning.
    pub fn scan(&self, columns: &[usize], with_lines: bool) -> Result<Box<dyn Scan + '_>> {
        self.begin(columns, with_lines).map_err(|what| failure(&*self.input().watch, what))
    }

    fn begin(&self, columns: &[usize], with_lines: bool) -> Result<Box<dyn Scan + '_>, String> {
        match &self.content {
            Content::Csv(file, delimiter) => {
                file.begin();
                Ok(Box::new(CsvScan::new(file, *delimiter, columns, with_lines)?))
            }
            Content::Json(file, layout) => {
                file.begin();
                Ok(Box::new(JsonScan::new(file, *layout, columns, with_lines)?))
            }
            #[cfg(feature = "columnar")]
            Content::Columns(file) => file.scan(columns),
            Content::Several(files) => several::scan(files, columns, with_lines),
        }
    }
}

/// The columns of objects, which their fields are.
fn of_json(input: Input, options: &ReadOptions, layout: Layout) -> Result<Content, String> {
    let rows = options.sample_rows;
    let mut known = json::look(&input, options, layout, Known::default(), rows)?;
    // A field whose type is said may come late.
    if options.types.iter().any(|(name, _)| !known.names.contains(name)) {
        known = json::look(&input, options, layout, known, usize::MAX)?;
    }
    Ok(Content::Json(TextFile::new(input, options.clone(), known)?, layout))
}

fn failure(watch: &dyn Watch, what: String) -> Error {
    match watch.is_cancelled() {
        true => Error::Cancelled(what),
        false => Error::Read(what),
    }
}
