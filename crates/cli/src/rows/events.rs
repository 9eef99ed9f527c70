//! Rows of files as events of a roll-up: read in batches, with what became of them.

#[cfg(feature = "columnar")]
mod columnar;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use sapwood::rollup::{self, CsvRows, Ingested, MessagePackRows, RowBatch, SAMPLES_MAX};

use crate::args::rows::EventFormat;
#[cfg(not(feature = "columnar"))]
use crate::rows::exchange::file_format::not_built;
use crate::rows::source::Source;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, escaped, plural};
use crate::terminal::stderr;
use crate::terminal::ui::Ui;
use sapwood::files::{ending, plain};

/// Lines of JSON that are read together, about.
const CHUNK_BYTES: usize = 4 << 20;
/// Rows of other formats that come in together.
const BATCH_ROWS: usize = 8_192;

/// A document that was given as text, or as the path of a file.
pub(crate) fn document(given: &str) -> Outcome<String> {
    if given.trim_start().starts_with('{') {
        return Ok(given.to_owned());
    }
    std::fs::read_to_string(Path::new(given)).map_err(|error| {
        Failure::Usage(format!(
            "{given} is neither a JSON object nor a file that can be read: {}",
            plain(&error)
        ))
    })
}

impl EventFormat {
    /// What was said, or what the name of a file tells.
    fn of(path: &Path, said: Option<EventFormat>) -> Outcome<EventFormat> {
        let by_name = || match ending(path).as_str() {
            "csv" => Some(EventFormat::Csv),
            "jsonl" | "ndjson" => Some(EventFormat::Jsonl),
            "msgpack" | "mpk" => Some(EventFormat::Msgpack),
            "arrow" | "arrows" | "feather" => Some(EventFormat::Arrow),
            "parquet" => Some(EventFormat::Parquet),
            _ => None,
        };
        said.or_else(by_name).ok_or_else(|| {
            let name = match path == Path::new("-") {
                true => "standard input has no name to tell its format".to_owned(),
                false => format!("{} has a name that does not tell its format", path.display()),
            };
            Failure::Usage(format!("{name}: add --format csv, jsonl, msgpack, arrow or parquet"))
        })
    }
}

/// Takes a batch of rows; up to which row of its file they go is told with it, those counted that are none. In text
/// a row is a line, without the header.
pub(crate) type Take<'t> = dyn FnMut(&RowBatch, u64) -> sapwood::Result<Ingested> + 't;

/// Rows of a file, batch after batch.
trait Rows {
    /// Passes over so many, those counted that are none; how many there were.
    fn pass(&mut self, rows: u64) -> rollup::Result<u64>;

    /// The next batch, and where and why there are no rows; nothing at the end.
    fn next(&mut self, name: &str) -> rollup::Result<Option<(RowBatch, Vec<String>)>>;
}

impl<R: Read> Rows for CsvRows<R> {
    fn pass(&mut self, rows: u64) -> rollup::Result<u64> {
        self.skip(rows)
    }

    fn next(&mut self, name: &str) -> rollup::Result<Option<(RowBatch, Vec<String>)>> {
        let Some((batch, bad)) = self.next_batch(BATCH_ROWS)? else { return Ok(None) };
        let bad = bad.iter().map(|bad| format!("{name}:{}: {}", bad.line + 1, bad.why));
        Ok(Some((batch, bad.collect())))
    }
}

impl<R: Read> Rows for MessagePackRows<R> {
    fn pass(&mut self, rows: u64) -> rollup::Result<u64> {
        self.skip(rows)
    }

    fn next(&mut self, name: &str) -> rollup::Result<Option<(RowBatch, Vec<String>)>> {
        let Some((batch, bad)) = self.next_batch(BATCH_ROWS)? else { return Ok(None) };
        let bad = bad.iter().map(|bad| format!("{name}, byte {}: {}", bad.offset, bad.why));
        Ok(Some((batch, bad.collect())))
    }
}

/// What became of the rows of all files.
#[derive(Default)]
pub(crate) struct Told {
    rows: usize,
    pub(crate) rolled_up: Ingested,
    /// Lines and values that are no rows.
    pub(crate) bad_rows: u64,
    /// The first of them.
    examples: Vec<String>,
}

impl Told {
    fn refused(&self) -> u64 {
        self.bad_rows + self.rolled_up.unparseable + self.rolled_up.overflowed
    }

    /// Fails if any row was refused.
    pub(crate) fn strictly(&self) -> Outcome {
        match self.refused() {
            0 => Ok(()),
            refused => Err(Failure::Failed(format!(
                "{} refused; leave --strict out to go on without them",
                plural(refused as usize, "row")
            ))),
        }
    }

    /// Reads a file, without so many of its first rows.
    pub(crate) fn read(
        &mut self,
        path: &Path,
        format: Option<EventFormat>,
        skip: u64,
        take: &mut Take<'_>,
        ui: &Ui,
    ) -> Outcome {
        let format = EventFormat::of(path, format)?;
        if matches!(format, EventFormat::Arrow | EventFormat::Parquet) {
            return self.read_columns(path, format, skip, take, ui);
        }
        let Source { name, bytes, progress, .. } = Source::of(path, format, ui)?;
        let read = match format {
            EventFormat::Jsonl => self.read_json(&name, BufReader::new(bytes), skip, take, ui),
            EventFormat::Csv => match CsvRows::new(bytes) {
                Ok(rows) => self.read_rows(&name, rows, skip, take, ui),
                Err(error) => Err(self.failed(&name, &error, ui)),
            },
            _ => self.read_rows(&name, MessagePackRows::new(bytes), skip, take, ui),
        };
        progress.finish_and_clear();
        read
    }

    #[cfg(feature = "columnar")]
    fn read_columns(
        &mut self,
        path: &Path,
        format: EventFormat,
        skip: u64,
        take: &mut Take<'_>,
        ui: &Ui,
    ) -> Outcome {
        let name = path.display().to_string();
        let opened = columnar::ColumnRows::open(path, format, ui)?;
        let (rows, progress) = opened.map_err(|error| self.failed(&name, &error, ui))?;
        let read = self.read_rows(&name, rows, skip, take, ui);
        progress.finish_and_clear();
        read
    }

    #[cfg(not(feature = "columnar"))]
    fn read_columns(
        &mut self,
        _: &Path,
        format: EventFormat,
        _: u64,
        _: &mut Take<'_>,
        _: &Ui,
    ) -> Outcome {
        Err(not_built(if format == EventFormat::Parquet { "parquet" } else { "arrow" }))
    }

    fn read_rows(
        &mut self,
        name: &str,
        mut rows: impl Rows,
        skip: u64,
        take: &mut Take<'_>,
        ui: &Ui,
    ) -> Outcome {
        let mut read = 0;
        while read < skip {
            self.expect_wanted(ui)?;
            let wanted = (skip - read).min(BATCH_ROWS as u64);
            match rows.pass(wanted).map_err(|error| self.failed(name, &error, ui))? {
                0 => return Ok(()),
                passed => read += passed,
            }
        }
        loop {
            self.expect_wanted(ui)?;
            let next = rows.next(name).map_err(|error| self.failed(name, &error, ui))?;
            let Some((batch, bad)) = next else { return Ok(()) };
            read += (batch.rows() + bad.len()) as u64;
            bad.into_iter().for_each(|bad| self.bad_row(bad));
            self.take(&batch, read, take, ui)?;
        }
    }

    fn read_json(
        &mut self,
        name: &str,
        mut input: impl BufRead,
        skip: u64,
        take: &mut Take<'_>,
        ui: &Ui,
    ) -> Outcome {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let mut lines = 0;
        while lines < skip {
            chunk.clear();
            let read = input.read_until(b'\n', &mut chunk);
            if read.map_err(|error| self.failed(name, &error, ui))? == 0 {
                return Ok(());
            }
            lines += 1;
        }
        loop {
            chunk.clear();
            let read = input.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
            let read = read.and_then(|_| input.read_until(b'\n', &mut chunk));
            read.map_err(|error| self.failed(name, &error, ui))?;
            if chunk.is_empty() {
                return Ok(());
            }
            let (batch, bad) = RowBatch::from_json_lines(&chunk);
            for bad in bad {
                self.bad_row(format!("{name}:{}: {}", lines as usize + bad.line + 1, bad.why));
            }
            lines += chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
            // The last one may have no end.
            lines += u64::from(!chunk.ends_with(b"\n"));
            self.take(&batch, lines, take, ui)?;
        }
    }

    fn take(&mut self, batch: &RowBatch, lines: u64, take: &mut Take<'_>, ui: &Ui) -> Outcome {
        self.expect_wanted(ui)?;
        let told = take(batch, lines)?;
        self.rolled_up.merge(told, self.rows);
        self.rows += batch.rows();
        Ok(())
    }

    fn expect_wanted(&self, ui: &Ui) -> Outcome {
        if ui.interrupt.asked() { Err(self.interrupted()) } else { Ok(()) }
    }

    /// Why the input ended: because it could not be read, or because the user said so.
    fn failed(&self, name: &str, error: &dyn std::fmt::Display, ui: &Ui) -> Failure {
        match ui.interrupt.asked() {
            true => self.interrupted(),
            false => Failure::Failed(format!("{name} cannot be read: {error}")),
        }
    }

    fn interrupted(&self) -> Failure {
        Failure::Interrupted(format!("{} rows had been rolled up", count(self.rows as u64)))
    }

    fn bad_row(&mut self, example: String) {
        self.bad_rows += 1;
        if self.examples.len() < SAMPLES_MAX {
            self.examples.push(example);
        }
    }

    /// Warns of rows that were not rolled up, or not as they are.
    pub(crate) fn warn(&self) {
        let told = &self.rolled_up;
        for (number, what) in [
            (self.bad_rows, "lines or values that are no rows"),
            (told.unparseable, "rows without a time that can be read, left out"),
            (told.overflowed, "rows that would take a sum beyond its type, left out"),
            (told.processed_with_error, "rows with a value that cannot be read, taken as null"),
        ] {
            if number > 0 {
                stderr::line(format_args!("warning: {what}: {}", count(number)));
            }
        }
        for example in &self.examples {
            stderr::line(format_args!("  {}", escaped(example)));
        }
        for sample in &told.samples {
            let text = format!("row {}, {}: {}", sample.row + 1, sample.column, sample.why);
            stderr::line(format_args!("  {}", escaped(&text)));
        }
    }
}
