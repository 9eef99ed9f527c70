//! A file as a source of rows, or several as one.

mod several;

use std::path::{Path, PathBuf};

use sapwood::schema::{Scan, SourceColumn, Type};
use sapwood::sql::{Request, Source, SourceResult};

#[cfg(feature = "columnar")]
use super::columnar::ColumnFile;
use super::content::{Format, HEAD_BYTES, Layout};
use super::csv::{self, CsvScan};
use super::input::Input;
use super::json::{self, JsonScan};
use super::options::FrameOptions;
use super::text::{Known, TextFile};
#[cfg(not(feature = "columnar"))]
use crate::rows::exchange::file_format::NOT_BUILT;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::bytes;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::ui::Ui;

/// A file whose rows have typed columns.
///
/// Types of text are those of the first rows. If a later value of a column that is read does not fit, the scan
/// ends with an error, and [`is_too_narrow`](Self::is_too_narrow) says so: [`reopen`](Self::reopen) looks at all
/// rows of these columns, and the statement that is run again answers as if it had been so from the beginning.
///
/// Rows of text are named by their lines, as 8 bytes with the low ones first; those of columns have no names.
///
/// *Consistency*: the file is read anew by each scan. A file that changes meanwhile gives rows of both times.
pub(crate) struct FileSource {
    content: Content,
}

enum Content {
    Csv(TextFile, u8),
    Json(TextFile, Layout),
    #[cfg(feature = "columnar")]
    Columns(ColumnFile),
    Several(Vec<FileSource>),
}

impl FileSource {
    /// Opens files that have the same columns: one behind the other they are one source. There is
    /// one at least.
    pub(crate) fn open_all(
        paths: &[PathBuf],
        options: &FrameOptions,
        ui: &Ui,
    ) -> Outcome<FileSource> {
        let files = paths.iter().map(|path| FileSource::open(path, options, ui));
        let files = files.collect::<Outcome<Vec<_>>>()?;
        several::of(files).map_err(Failure::Failed)
    }

    /// Opens a file, or standard input for `-`, and looks at its first rows.
    pub(crate) fn open(path: &Path, options: &FrameOptions, ui: &Ui) -> Outcome<FileSource> {
        let input = Input::open(path, ui)?;
        let interrupt = input.interrupt.clone();
        FileSource::of(input, options).map_err(|what| failure(&interrupt, what))
    }

    fn of(input: Input, options: &FrameOptions) -> Result<FileSource, String> {
        let head = input.head(HEAD_BYTES).map_err(|error| input.unread(&error))?;
        let format = Format::of(&input.path, &head, options).map_err(|what| input.failed(what))?;
        let content = match format {
            Format::Csv { delimiter } => {
                let known = csv::sample(&input, options, delimiter)?;
                Content::Csv(TextFile::new(input, options.clone(), known)?, delimiter)
            }
            Format::Json(layout) => {
                let rows = options.sample_rows;
                let mut known = json::look(&input, options, layout, Known::default(), rows)?;
                // A field whose type is said may come late.
                if options.types.iter().any(|(name, _)| !known.names.contains(name)) {
                    known = json::look(&input, options, layout, known, usize::MAX)?;
                }
                Content::Json(TextFile::new(input, options.clone(), known)?, layout)
            }
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
    pub(crate) fn again(&self, options: &FrameOptions) -> Outcome<FileSource> {
        let input = self.input();
        FileSource::of(input.clone(), options).map_err(|what| failure(&input.interrupt, what))
    }

    /// What is to be said of the file, once.
    pub(crate) fn notices(&self) -> &[String] {
        match &self.content {
            Content::Csv(file, _) | Content::Json(file, _) => &file.typed.notices,
            #[cfg(feature = "columnar")]
            Content::Columns(file) => &file.notices,
            // What holds for one mostly holds for all.
            Content::Several(files) => files[0].notices(),
        }
    }

    /// How many records the last scan left out ([`Malformed::Skip`](super::Malformed::Skip)), and the first of them
    /// with their lines: as many as the options say.
    pub(crate) fn left_out(&self) -> (u64, Vec<(u64, String)>) {
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
    pub(crate) fn stored_kinds(&self) -> Vec<Type> {
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

    /// Whether a scan failed at a value that no type of the first rows has, or at a further column.
    pub(crate) fn is_too_narrow(&self) -> bool {
        match &self.content {
            Content::Csv(file, _) | Content::Json(file, _) => file.widening().is_some(),
            #[cfg(feature = "columnar")]
            Content::Columns(_) => false,
            Content::Several(files) => files.iter().any(FileSource::is_too_narrow),
        }
    }

    /// The file with the types that all rows have in the columns of the scan that failed; if none did, in all
    /// columns. Of JSON it has all fields.
    pub(crate) fn reopen(&self) -> Outcome<FileSource> {
        self.reopen_for(None)
    }

    /// Opens the source again, to read these columns alone.
    pub(crate) fn reopen_for(&self, wanted: Option<&[String]>) -> Outcome<FileSource> {
        self.wider(wanted).map_err(|what| failure(&self.input().interrupt, what))
    }

    /// True where no row can have a column that is not known.
    pub(crate) fn has_all_columns(&self) -> bool {
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
            Content::Columns(file) => Content::Columns(file.clone()),
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
}

fn failure(interrupt: &Interrupt, what: String) -> Failure {
    match interrupt.asked() {
        true => Failure::Interrupted(what),
        false => Failure::Failed(what),
    }
}

impl Source for FileSource {
    fn columns(&self) -> &[SourceColumn] {
        match &self.content {
            Content::Csv(file, _) | Content::Json(file, _) => &file.typed.columns,
            #[cfg(feature = "columnar")]
            Content::Columns(file) => &file.columns,
            Content::Several(files) => files[0].columns(),
        }
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn rows_estimate(&self) -> Option<u64> {
        match &self.content {
            Content::Csv(..) | Content::Json(..) => None,
            #[cfg(feature = "columnar")]
            Content::Columns(file) => file.rows(),
            Content::Several(files) => files.iter().map(FileSource::rows_estimate).sum(),
        }
    }

    fn explain(&self, request: &Request) -> String {
        let mut wanted = request.columns.clone();
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

    fn scan<'a>(&'a self, request: &Request) -> SourceResult<Box<dyn Scan + 'a>> {
        let columns = &request.columns;
        match &self.content {
            Content::Csv(file, delimiter) => {
                file.begin();
                Ok(Box::new(CsvScan::new(file, *delimiter, columns, request.with_ids)?))
            }
            Content::Json(file, layout) => {
                file.begin();
                Ok(Box::new(JsonScan::new(file, *layout, columns, request.with_ids)?))
            }
            #[cfg(feature = "columnar")]
            Content::Columns(file) => file.scan(columns),
            Content::Several(files) => several::scan(files, request),
        }
    }
}
