//! `sapwood export`: every entry of a table of a directory, into a file of another program's format; the facts of a
//! roll-up, into a folder of them.

#[cfg(feature = "columnar")]
mod facts;

use std::io::{IsTerminal, Write, stdout};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use sapwood::{Db, Engine, Table};
use serde_json::{Value, json};

use crate::args::exchange::{Export, FileFormat};
use crate::rows::exchange::file_format::{self, Packing};
use crate::rows::exchange::form::Form;
use crate::rows::exchange::origin::Origin;
use crate::rows::exchange::sink::Sink;
use crate::rows::exchange::survey::{Survey, survey};
use crate::rows::exchange::writer::RowWriter;
use crate::rows::kept::{self, Description, Reading};
use crate::rows::rows_table;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, plural, rate, time};
use crate::terminal::ui::{Answers, Ui};

pub(crate) fn run(args: &Export, ui: &Ui) -> Outcome {
    let db = kept::database(&args.directory, ui)?;
    if db.engine(&args.table) == Some(Engine::Rollup) {
        return export_facts(&db, args, ui);
    }
    let (to, format, packing) = target(args)?;
    let started = Instant::now();
    let (table, description) = kept::table(&db, &args.directory, &args.table, Reading::AsIs)?;
    // A file that has been begun is taken away before the command ends.
    let _promise = to.map(|_| ui.interrupt.promise());
    let survey = survey(&table, &description, format, args.raw, ui)?;
    if let Some(why) = &survey.instead {
        ui.notice(format_args!(
            "table {}: keys and values are written as bytes: {why}",
            args.table
        ));
    }
    let sink = match to {
        Some(path) => Sink::file(path, packing)?,
        None => Sink::stdout(),
    };
    let origin = Origin::new(table.engine(), &survey.form, &description, table.fields());
    let writer = RowWriter::new(format, &survey.form, &origin, sink)?;
    let rows = write(&table, &survey, writer, ui).map_err(|failure| match (failure, to) {
        (Failure::Interrupted(done), Some(_)) => {
            Failure::Interrupted(format!("{done}; no file is left of them"))
        }
        (failure, _) => failure,
    })?;
    let answer =
        Answer { args, format, table: &table, form: &survey.form, description: &description };
    answer.tell(to, rows, started, ui)
}

#[cfg(feature = "columnar")]
fn export_facts(db: &Db, args: &Export, ui: &Ui) -> Outcome {
    facts::export(&db.rollup_table(&args.table)?, args, ui)
}

#[cfg(not(feature = "columnar"))]
fn export_facts(_: &Db, _: &Export, _: &Ui) -> Outcome {
    Err(file_format::not_built(FileFormat::Parquet.name()))
}

/// The file, if it is not standard output, its format and its packing.
fn target(args: &Export) -> Outcome<(Option<&Path>, FileFormat, Packing)> {
    let to = args.to.as_deref().filter(|path| *path != Path::new("-"));
    match to {
        Some(path) => {
            let (format, packing) = file_format::of_name(path, args.format)?;
            Ok((to, format, packing))
        }
        None => {
            let format = args.format.unwrap_or(FileFormat::Csv);
            if format.as_text().is_none() && stdout().is_terminal() {
                return Err(Failure::Usage(format!(
                    "{} is not for a terminal: name a file with --to, or use a pipe",
                    format.name()
                )));
            }
            Ok((None, format, Packing::Plain))
        }
    }
}

/// Writes all rows and answers how many.
fn write(table: &Table, survey: &Survey, mut writer: RowWriter, ui: &Ui) -> Outcome<u64> {
    let progress = ui.progress("exporting", survey.rows);
    let mut rows = 0;
    let columns = survey.form.columns().len();
    let end = rows_table::scan_entries(table, |key, value| {
        let mut cells = Vec::with_capacity(columns);
        let written = match survey.form.split(key, value, &mut cells) {
            Ok(()) => writer.write(&cells),
            // All were looked at, and nothing changes the directory meanwhile.
            Err(why) => Err(Failure::Failed(format!("the table changed: {why}; try again"))),
        };
        rows += 1;
        progress.inc(1);
        match written {
            Err(failure) => ControlFlow::Break(failure),
            Ok(()) if ui.interrupt.asked() => {
                let rows = plural(rows as usize, "row");
                ControlFlow::Break(Failure::Interrupted(format!("{rows} had been written")))
            }
            Ok(()) => ControlFlow::Continue(()),
        }
    })?;
    progress.finish_and_clear();
    match end {
        ControlFlow::Break(failure) => Err(failure),
        ControlFlow::Continue(()) => writer.finish().map(|()| rows),
    }
}

/// What is said of an export that is done.
struct Answer<'a> {
    args: &'a Export,
    format: FileFormat,
    table: &'a Table,
    form: &'a Form,
    description: &'a Description,
}

impl Answer<'_> {
    /// Prints it; beside the rows, where those are on standard output.
    fn tell(&self, to: Option<&Path>, rows: u64, started: Instant, ui: &Ui) -> Outcome {
        let elapsed = started.elapsed();
        let Answer { args, format, form, .. } = self;
        let file = to.map(|path| path.display().to_string());
        let bytes = to.and_then(|path| path.metadata().ok()).map(|about| about.len());
        let import = self.import_command(file.as_deref());
        match (ui.answers, &file) {
            (Answers::Json, _) => {
                let object = json!({
                    "dir": args.directory.display().to_string(),
                    "table": args.table,
                    "file": file,
                    "format": format.name(),
                    "form": form.name(),
                    "columns": self.columns(),
                    "rows": rows,
                    "bytes": bytes,
                    "import": import,
                    "seconds": elapsed.as_secs_f64(),
                });
                match file {
                    Some(_) => ui.print_json(&object),
                    None => {
                        ui.notice(object);
                        Ok(())
                    }
                }
            }
            (Answers::Text, Some(file)) => ui.print(|out| {
                writeln!(out, "rows         {}", count(rows))?;
                writeln!(out, "as           {}", form.name())?;
                writeln!(out, "file         {file}")?;
                writeln!(out, "back by      {import}")?;
                writeln!(out, "time         {}, {}", time(elapsed), rate(rows, "rows", elapsed))
            }),
            (Answers::Text, None) => {
                ui.notice(format_args!("{} in {}", plural(rows as usize, "row"), time(elapsed)));
                Ok(())
            }
        }
    }

    fn columns(&self) -> Value {
        match self.form {
            Form::Lines { .. } => Value::Null,
            form => form.columns().iter().map(|column| column.name.as_str()).collect(),
        }
    }

    /// The command that makes a table like it of the file.
    fn import_command(&self, file: Option<&str>) -> String {
        let engine = match self.table.engine() {
            Engine::Hash => "hash",
            Engine::Tree => "tree",
            _ => "ordered",
        };
        let file = file.map_or_else(|| "FILE".to_owned(), quoted_word);
        let table = quoted_word(&self.args.table);
        let mut command = format!("sapwood import DIR {table} {file} --engine {engine}");
        // Files of typed columns say the rest themselves.
        if self.format.as_text().is_some() {
            let key = || quoted_word(&self.description.keys.to_spec());
            match self.form {
                Form::Entries { .. } => {}
                Form::Fields { .. } => {
                    if let Some(layout) = self.table.fields() {
                        command += &format!(" --layout {}", quoted_word(&layout.to_string()));
                    }
                }
                Form::Cells(_) if self.format == FileFormat::Jsonl => {
                    command += &format!(" --key {} --cells", key());
                }
                Form::Cells(_) | Form::Lines { .. } => command += &format!(" --key {}", key()),
            }
        }
        command
    }
}

/// A word of a command, in quotes where a shell would take it apart.
fn quoted_word(word: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "_-./:,=+@%".contains(char);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
