//! `sapwood query`: rows of files, rolled up in memory, and a native query over them.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

use sapwood::rollup::{
    Answer, CsvRows, Ingested, Query, Rollup, RowBatch, SAMPLES_MAX, Schema, Value, Writer,
};

use crate::args;
use crate::args::rows::Format;
use crate::rows::source::{Source, plain};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, escaped, plural, table, write_table};
use crate::terminal::stderr;
use crate::terminal::ui::{Answers, Ui};

/// Lines of JSON that are read together, about.
const CHUNK_BYTES: usize = 4 << 20;
/// Rows of CSV that come in together.
const BATCH_ROWS: usize = 8_192;

pub(crate) fn run(args: &args::rows::Query, ui: &Ui) -> Outcome {
    let schema = Schema::from_json(&document(&args.schema)?)?;
    let query = Query::from_json(&document(&args.query)?)?.threads(args.threads.into());
    let rollup = Arc::new(Rollup::new(schema)?);
    let mut told = Told::default();
    let mut writer = Writer::new(&rollup);
    for file in &args.files {
        let source = Source::open(file, args.format, ui)?;
        let progress = source.progress.clone();
        let read = told.read(source, &mut writer, ui);
        progress.finish_and_clear();
        read?;
    }
    told.say(&rollup, ui);
    if args.strict && told.refused() > 0 {
        return Err(Failure::Failed(format!(
            "{} refused; leave --strict out to go on without them",
            plural(told.refused() as usize, "row")
        )));
    }
    print(&rollup.query(&query)?, args.csv, ui)
}

/// A document that was given as text, or as the path of a file.
fn document(given: &str) -> Outcome<String> {
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

/// What became of the rows of all files.
#[derive(Default)]
struct Told {
    rows: usize,
    rolled_up: Ingested,
    /// Lines that are no rows.
    bad_lines: u64,
    /// The first of them.
    examples: Vec<String>,
}

impl Told {
    fn refused(&self) -> u64 {
        self.bad_lines + self.rolled_up.unparseable + self.rolled_up.overflowed
    }

    fn read(&mut self, source: Source, writer: &mut Writer, ui: &Ui) -> Outcome {
        let Source { name, format, bytes, .. } = source;
        match format {
            Format::Jsonl => self.read_json(&name, BufReader::new(bytes), writer, ui),
            Format::Csv => self.read_csv(&name, bytes, writer, ui),
        }
    }

    fn read_json(
        &mut self,
        name: &str,
        mut input: impl BufRead,
        writer: &mut Writer,
        ui: &Ui,
    ) -> Outcome {
        let (mut chunk, mut line) = (Vec::with_capacity(CHUNK_BYTES), 0);
        loop {
            let read = input.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
            let read = read.and_then(|_| input.read_until(b'\n', &mut chunk));
            read.map_err(|error| self.failed(name, &error, ui))?;
            if chunk.is_empty() {
                return Ok(());
            }
            let (batch, bad) = RowBatch::from_json_lines(&chunk);
            for bad in bad {
                self.bad_line(name, line + bad.line + 1, &bad.why);
            }
            line += chunk.iter().filter(|byte| **byte == b'\n').count();
            chunk.clear();
            self.roll_up(&batch, writer, ui)?;
        }
    }

    fn read_csv(&mut self, name: &str, input: impl Read, writer: &mut Writer, ui: &Ui) -> Outcome {
        let mut rows = CsvRows::new(input).map_err(|error| self.failed(name, &error, ui))?;
        loop {
            let read =
                rows.next_batch(BATCH_ROWS).map_err(|error| self.failed(name, &error, ui))?;
            let Some((batch, bad)) = read else { return Ok(()) };
            for bad in bad {
                self.bad_line(name, bad.line + 1, &bad.why);
            }
            self.roll_up(&batch, writer, ui)?;
        }
    }

    fn roll_up(&mut self, batch: &RowBatch, writer: &mut Writer, ui: &Ui) -> Outcome {
        if ui.interrupt.asked() {
            return Err(self.interrupted());
        }
        let told = writer.ingest(batch)?;
        self.rolled_up.merge(told, self.rows);
        self.rows += batch.rows();
        Ok(())
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

    fn bad_line(&mut self, name: &str, line: usize, why: &str) {
        self.bad_lines += 1;
        if self.examples.len() < SAMPLES_MAX {
            self.examples.push(format!("{name}:{line}: {why}"));
        }
    }

    /// Says by the way how far rows rolled up, and warns of those that did not.
    fn say(&self, rollup: &Rollup, ui: &Ui) {
        let stats = rollup.stats();
        ui.notice(format_args!(
            "{} rolled up into {}, in {} bytes",
            plural(stats.processed as usize, "row"),
            plural(stats.facts as usize, "fact"),
            count(stats.fact_bytes + stats.dictionary_bytes)
        ));
        let told = &self.rolled_up;
        for (number, what) in [
            (self.bad_lines, "lines that are no rows"),
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

fn print(answer: &Answer, csv: bool, ui: &Ui) -> Outcome {
    if csv {
        return ui.print(|out| write!(out, "{}", answer.to_csv()));
    }
    match ui.answers {
        Answers::Json => ui.print(|out| writeln!(out, "{}", answer.to_json())),
        Answers::Text => ui.print(|out| {
            let mut shown = table(&answer.columns);
            for row in &answer.rows {
                let cells = row.iter().zip(&answer.columns).map(|(value, column)| match value {
                    Value::Null => String::new(),
                    time if answer.is_time(column) => answer.time(time).unwrap_or_default(),
                    value => escaped(&value.to_string()).into_owned(),
                });
                shown.add_row(cells);
            }
            write_table(&shown, out)
        }),
    }
}
